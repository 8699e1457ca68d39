"""Times of a plan: the fit through measured times, and rounds that are timed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.planning import times
from secagg_spec.planning.choices import Choice, Work, answer
from secagg_spec.planning.times import Growth, Term, Times
from secagg_spec.planning.wishes import Wish

seconds = st.floats(0, 1)
WISH = Wish(200, 5000, Fraction(1, 10), Fraction(1, 10))


@given(seconds, seconds, st.sampled_from((1, 2)))
def test_a_term_that_made_two_times_is_found_again(c_0: float, c_1: float, e: int) -> None:
    made = Term(c_0, c_1, e)
    found = times.term({n: made.at(n) for n in (10, 28)}, e)
    assert (found.c_0, found.c_1) == pytest.approx((c_0, c_1), abs=1e-9)
    assert found.at(1000) == pytest.approx(made.at(1000))


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from((1, 2)))
def test_noise_makes_no_coefficient_negative(few: float, many: float, e: int) -> None:
    found = times.term({10: few, 28: many}, e)
    assert found.c_0 >= -1e-12
    assert found.c_1 >= 0
    assert found.at(28) == pytest.approx(max(many, 0.0), abs=1e-12)


@pytest.mark.requirement("PLN-13")
def test_times_are_scaled_by_users_length_and_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    user, server = Growth(Term(1, 2, 2), Term(3, 4, 1)), Growth(Term(5, 6, 2), Term(7, 8, 2))

    def measured(kind: str, n: int, d: int, dropout: float, colluders: float, repeats: int) -> Times:
        assert (kind, dropout, colluders) == ("secagg", 0.1, 0.1)
        return Times(user.seconds(n, d), server.seconds(n, d))

    monkeypatch.setattr(times, "measured", measured)
    times.growth.cache_clear()
    choice = answer("secagg", WISH)
    assert isinstance(choice, Choice)
    found = times.scaled(choice, WISH)
    times.growth.cache_clear()
    assert found.user == pytest.approx(200 + 2 * 200**2 + (3 + 4 * 200) * 5000)
    assert found.server == pytest.approx((5 + 6 * 200) * 200 + (7 + 8 * 200) * 200 * 5000)


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
def test_each_kind_of_round_can_be_timed(kind: str) -> None:
    few, many = (times.measured(kind, 10, d, 0.1, 0.1) for d in (100, 200_000))
    assert 0 < few.user < many.user
    assert 0 < few.server < many.server
