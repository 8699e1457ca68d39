"""Times of a plan: the fit through measured times, and rounds that are timed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.experiments import costs
from secagg_spec.planning import times
from secagg_spec.planning.choices import Choice, Work, answer
from secagg_spec.planning.times import Curve, Times
from secagg_spec.planning.wishes import Wish

WISH = Wish(200, 5000, Fraction(1, 10), Fraction(1, 10))
KINDS = [(kind, role) for kind in times.DEGREES for role in ("user", "server")]


@given(st.floats(1e-6, 1), st.floats(0, 1), st.floats(1e-6, 1), st.sampled_from((1, 2)), st.integers(256, 10**6))
def test_the_terms_that_made_the_stored_times_are_found_again(
    here: float, c_0: float, c_1: float, e: int, n: int
) -> None:
    def made(n: int) -> float:
        return float(c_0 * n ** (e - 1) + c_1 * n**e)

    points = tuple((users, made(users)) for users in (28, 64, 128, 256))
    assert Curve(28, here, points, e).at(n) == pytest.approx(here * made(n) / made(28), rel=1e-6)


@given(st.floats(0, 2), st.integers(3, 256))
def test_between_stored_times_and_below_a_part_grows_as_a_power(e: float, n: int) -> None:
    points = tuple((users, 3.0 * users**e) for users in (28, 64, 128, 256))
    assert Curve(28, 1.0, points, 2).at(n) == pytest.approx((n / 28) ** e)


@given(st.lists(st.floats(1e-9, 1), min_size=4, max_size=4), st.integers(1, 2))
def test_a_curve_meets_stored_times_and_grows_as_the_text_says_beyond(seconds: list[float], e: int) -> None:
    points = tuple(zip((28, 64, 128, 256), seconds, strict=True))
    curve = Curve(28, seconds[0], points, e)
    assert [curve.at(n) for n, _ in points] == pytest.approx(seconds)
    assert curve.at(256) * 10 ** (e - 1) * (1 - 1e-9) <= curve.at(2560) <= curve.at(256) * 10**e * (1 + 1e-9)


def test_without_stored_times_a_part_grows_as_the_text_says() -> None:
    assert Curve(28, 3.0, (), 2).at(280) == pytest.approx(300)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_noise_makes_no_part_negative(few: float, many: float) -> None:
    fixed, each = times.parts({1000: few, 40_000: many})
    assert fixed >= 0
    assert each >= 0
    if 0 <= few <= many <= 40 * few:
        assert (fixed + 1000 * each, fixed + 40_000 * each) == pytest.approx((few, many))


@pytest.mark.parametrize(("kind", "role"), KINDS)
def test_rounds_are_stored_for_all_that_is_scaled(kind: str, role: str) -> None:
    """Most parts of both kinds are above the noise, in rounds of the sizes that are measured here and larger ones."""
    fixed, each = times.grown(kind, role)
    assert len(fixed) >= 3
    assert {times.USERS, 256} <= {n for n, _ in each}


@pytest.mark.requirement("PLN-13")
def test_times_are_scaled_by_users_length_and_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(kind: str, n: int, d: int, dropout: float, colluders: float, repeats: int) -> Times:
        assert (kind, n, dropout, colluders) == ("secagg", 28, 0.1, 0.1)
        return Times(5 + 0.5 * d, 7 + 0.25 * d)

    grown = {"user": ((28, 1.0), (100, 2.0), (200, 6.0)), "server": ((28, 1.0), (50, 4.0), (200, 10.0))}
    monkeypatch.setattr(times, "measured", measured)
    monkeypatch.setattr(times, "grown", lambda kind, role: (grown[role], grown[role][::2]))
    times.growth.cache_clear()
    choice = answer("secagg", WISH)
    assert isinstance(choice, Choice)
    found = times.scaled(choice, WISH)
    times.growth.cache_clear()
    assert found.user == pytest.approx(6 * 5 + 6 * 0.5 * 5000)
    assert found.server == pytest.approx(10 * 7 + 10 * 0.25 * 5000)


@pytest.mark.requirement("PLN-13")
def test_a_sparse_graph_and_segments_are_scaled_from_secagg() -> None:
    sparse = answer("secagg-plus", Wish(1000, 9, Fraction(1, 10), Fraction(1, 5)))
    assert isinstance(sparse, Choice)
    assert sparse.work == Work("secagg", int(sparse.numbers["k"]) + 1, Fraction(1000, int(sparse.numbers["k"]) + 1))
    cells = answer("heterosag", WISH)
    assert isinstance(cells, Choice)
    Z = int(cells.numbers["subgroups"])
    assert cells.work.user == Fraction(2 * Z - 1, Z**2)


@pytest.mark.requirement("PLN-13")
@pytest.mark.parametrize("kind", list(times.DEGREES))
def test_each_kind_of_round_can_be_timed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_the_clock = times.measured(kind, 10, 50, 0.1, 0.1)
    assert min(by_the_clock.user, by_the_clock.server) > 0
    ticks = itertools.count()  # with them each step takes 1
    monkeypatch.setattr(costs, "time", SimpleNamespace(process_time=lambda: float(next(ticks))))
    costs._measured.cache_clear()
    few, many = (times.measured(kind, 10, d, 0.1, 0.1) for d in (100, 2_000))
    costs._measured.cache_clear()
    assert few == many
    assert few.user >= 1
    assert few.server >= 1
    assert few.user.is_integer()
    assert few.server.is_integer()


@pytest.mark.parametrize("kind", ["bogus", "", "SECAGG", None, 3])
def test_kinds_and_roles_that_there_are_not_are_refused(kind: Any) -> None:
    for call in (lambda: times.grown(kind, "user"), lambda: times.measured(kind, 10, 50, 0.1, 0.1)):
        with pytest.raises(ParameterError, match=r"^kind = .*: must be one of .*secagg, "):
            call()
    with pytest.raises(ParameterError, match=r"^role = .*: must be one of user, server"):
        times.grown("secagg", kind)


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in times.stored()} - {*times.DEGREES}))
def test_kinds_that_are_scaled_from_others_are_not_timed(kind: str) -> None:
    with pytest.raises(ParameterError, match=r"^kind = .*: must be one of secagg, lightsecagg, basecagg, basa"):
        times.measured(kind, 10, 50, 0.1, 0.1)  # which timed LightSecAgg


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "0.1", True, None])
def test_shares_and_repeats_that_are_none_are_refused(share: Any) -> None:
    for name in ("dropout", "colluders"):
        with pytest.raises(OutOfRange, match=rf"^{name} = .*: must be a number in \[0, 1\]$"):
            times.measured("secagg", 10, 50, **{"dropout": 0.1, "colluders": 0.1, name: share})
    for repeats in (0, True, 1.0):
        with pytest.raises(ParameterError, match=r"^repeats = "):
            times.measured("secagg", 10, 50, 0.1, 0.1, repeats)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{}, {10: 1.0}, {10: 1.0, 20: 2.0, 30: 3.0}])
def test_parts_are_those_of_two_lengths(given: dict[int, float]) -> None:
    with pytest.raises(LengthMismatch, match=rf"^len\(times\) = {len(given)}: must be 2, one for each of two lengths$"):
        times.parts(given)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"users": 0}, "users = 0: must be an integer in "),
        ({"e": -1}, "e = -1: must be an integer in "),
        ({"e": 1.5}, "e = 1.5: must be an integer in "),
        ({"e": 9}, r"e = 9: must be an integer in \[0, 8\]"),
        ({"seconds": float("nan")}, "seconds = nan: must be a finite number of at least 0"),
        ({"seconds": -1.0}, "seconds = -1.0: must be a finite number of at least 0"),
        ({"points": ((8, 2.0), (4, 1.0))}, r"points\[1\]\[0\] = 4: must be an integer in \[9, "),
        ({"points": ((4, 1.0), (4, 2.0))}, r"points\[1\]\[0\] = 4: must be an integer in \[5, "),
        ({"points": ((0, 1.0),)}, r"points\[0\]\[0\] = 0: must be an integer in \[1, "),
        ({"points": ((4, 0.0),)}, r"points\[0\]\[1\] = 0.0: must be a finite number above 0"),
        ({"points": (4, 1.0)}, r"points\[0\] = 'int': must be a number of users and its seconds"),
        ({"points": ((4,),)}, r"points\[0\] = 'tuple': must be a number of users and its seconds"),
    ],
)
def test_a_curve_goes_through_ascending_users_and_times_above_0(changed: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"users": 28, "seconds": 3.0, "points": ((4, 1.0), (8, 2.0)), "e": 2}
    assert Curve(**right).at(28) == 3
    with pytest.raises(ParameterError, match=f"^{said}"):
        Curve(**{**right, **changed})


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("n", [0, -1, 2.5, 2**32])
def test_a_curve_is_for_one_user_or_more(n: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^n = {n}: must be an integer in \[1, 4294967295\]"):
        Curve(28, 3.0, ((4, 1.0), (8, 2.0)), 2).at(n)


@pytest.mark.requirement("ERR-02")
def test_seconds_beyond_binary64_are_refused() -> None:
    assert Curve(1, 1.0, (), 8).at(2**32 - 1) == float((2**32 - 1) ** 8)
    for curve, n in ((Curve(1, 1.0, ((2, 1e-300), (3, 1.0)), 1), 2), (Curve(1, 1e300, (), 8), 10**6)):
        with pytest.raises(OutOfRange, match=rf"^n = {n}: must be users for which the points give finite seconds$"):
            curve.at(n)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda wrong: times.measured("secagg", wrong, 50, 0.1, 0.1), "n = "),
        (lambda wrong: times.measured("secagg", 10, wrong, 0.1, 0.1), "d = "),
        (times.sources, "n = "),
        (lambda wrong: times.parts({wrong: 1.0, 9: 2.0}), "a length in times = "),
        (lambda wrong: times.grown(wrong, "user"), "kind = "),
    ],
)
@pytest.mark.parametrize("wrong", [-1, 2.5, "1", None, 2**64])
def test_numbers_of_rounds_that_are_none_are_refused(call: Callable[[Any], object], said: str, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        call(wrong)


def test_seconds_are_numbers_and_kinds_are_text() -> None:
    wrong: Any
    for wrong in (float("nan"), "1", None):
        with pytest.raises(ParameterError, match=r"^seconds in times = "):
            times.parts({9: 1.0, 10: wrong})
    wrong = ["user"]
    with pytest.raises(ParameterError, match=r"^role = "):
        times.grown("secagg", wrong)
