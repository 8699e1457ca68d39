"""Staleness functions and weights against rational numbers, and against square roots enclosed between integers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import (
    KINDS,
    MAX_TAU,
    Staleness,
    admissible_weights,
    floor_weight,
    fraction,
    least_level,
    realised_weight,
)
from secagg_spec.errors import OutOfRange, ParameterError

DRAWS = 2**53
levels = st.sampled_from((1, 2, 49, 64, 2**16, 2**32)) | st.integers(1, 2**32)
taus = st.sampled_from((0, 1, 2, 3, 48, 2400, MAX_TAU)) | st.integers(0, 100) | st.integers(0, MAX_TAU)
draws = st.sampled_from((0, 1, DRAWS // 2, DRAWS - 1)) | st.integers(0, DRAWS - 1)
rates = st.builds(Fraction, st.integers(0, 1000), st.integers(1, 100)).filter(lambda rate: rate.denominator <= 100)
rational = st.one_of(
    st.just(Staleness.constant()),
    st.builds(Staleness.polynomial, st.integers(0, 12)),
    st.builds(Staleness.hinge, rates, taus),
)
functions = rational | st.builds(Staleness.polynomial, rates)
REFUSED: list[tuple[Any, type[ParameterError]]] = [
    (-1, OutOfRange),
    (1001, OutOfRange),
    (Fraction(1, 101), OutOfRange),
    (0.1, OutOfRange),
    (math.nan, OutOfRange),
    (math.inf, OutOfRange),
    (-math.inf, OutOfRange),
    (-0.5, OutOfRange),
    (1e300, OutOfRange),
    (10**400, OutOfRange),
    ("1/0", OutOfRange),
    ("0.001", OutOfRange),
    ("-1", ParameterError),
    ("", ParameterError),
    ("1e2", ParameterError),
    (" 1", ParameterError),
    ("1_0", ParameterError),
    ("\u0661", ParameterError),
    ("9" * 5000, ParameterError),
    (True, ParameterError),
    (None, ParameterError),
    (1j, ParameterError),
]


def value(s: Staleness, tau: int) -> Fraction:
    """s(tau) in rational numbers, by the table of the text; the exponent of a polynomial is an integer."""
    rate = Fraction(s.numerator, s.denominator)
    if s.kind == "constant":
        return Fraction(1)
    if s.kind == "polynomial":
        return Fraction(1, 1 + tau) ** int(rate)
    return Fraction(1) if tau <= s.start else 1 / (rate * (tau - s.start) + 1)


def rounded(s: Staleness, c_g: int, tau: int, k: int) -> int:
    """The weight at the draw ``k / 2**53``."""
    return realised_weight(s, c_g, tau, k / DRAWS)


# ------------------------------------------------------------------------------------------------------------ weights


@pytest.mark.requirement("STL-04", "STL-05", "STL-06")
@given(rational, levels, taus, draws)
def test_a_rational_weight_is_the_formula(s: Staleness, c_g: int, tau: int, k: int) -> None:
    y = c_g * value(s, tau)
    below = math.floor(y)
    assert floor_weight(s, c_g, tau) == below
    assert rounded(s, c_g, tau, k) == below + (Fraction(k, DRAWS) < y - below)


@pytest.mark.requirement("STL-04")
@given(functions, taus)
def test_the_least_level_is_the_first_whose_weight_does_not_vanish(s: Staleness, tau: int) -> None:
    least, (n, d, r) = least_level(s, tau), s.power(tau)
    assert least**r * n >= d > (least - 1) ** r * n
    if least <= 2**32:
        assert floor_weight(s, least, tau) >= 1
        assert least == 1 or floor_weight(s, least - 1, tau) == 0


@pytest.mark.requirement("STL-04", "STL-06")
@given(st.builds(Staleness.polynomial, rates), levels, taus, draws)
def test_a_weight_is_enclosed_by_powers_of_integers(s: Staleness, c_g: int, tau: int, k: int) -> None:
    """With u = k / 2**53, the weight w is the smallest integer with y - u <= w, for y**r (1 + tau)**p = c_g**r."""
    p, r = s.numerator, s.denominator
    weight = rounded(s, c_g, tau, k)

    def below_y(w: int) -> bool:
        """Whether w + u < y."""
        return bool((Fraction(w) + Fraction(k, DRAWS)) ** r * (1 + tau) ** p < c_g**r)

    assert not below_y(weight)
    assert weight == 0 or below_y(weight - 1)


@pytest.mark.requirement("STL-05")
@given(functions, levels, taus, draws)
def test_the_weight_is_one_of_the_two_integers_beside(s: Staleness, c_g: int, tau: int, k: int) -> None:
    assert rounded(s, c_g, tau, k) in admissible_weights(s, c_g, tau)
    assert 0 <= rounded(s, c_g, tau, k) <= c_g


@pytest.mark.requirement("STL-05", "STL-08")
@given(functions, levels, taus)
def test_admissible_weights_are_what_some_draw_gives(s: Staleness, c_g: int, tau: int) -> None:
    allowed = admissible_weights(s, c_g, tau)
    assert allowed[0] == floor_weight(s, c_g, tau)
    ends = {rounded(s, c_g, tau, 0), rounded(s, c_g, tau, DRAWS - 1)}
    assert ends <= set(allowed)
    assert rounded(s, c_g, tau, 0) == allowed[-1]


@pytest.mark.requirement("STL-05", "STL-06")
@pytest.mark.parametrize(
    ("p", "r", "c_g", "tau", "whole"),
    [(1, 1, 49, 48, 1), (2, 1, 98, 6, 2), (1, 2, 49, 2400, 1), (1, 3, 9, 26, 3), (1, 5, 20, 1023, 5), (2, 3, 16, 7, 4)],
)
def test_integers_stay_where_binary64_misses_them(p: int, r: int, c_g: int, tau: int, whole: int) -> None:
    s = Staleness("polynomial", p, r)
    assert admissible_weights(s, c_g, tau) == (whole,)
    assert {rounded(s, c_g, tau, k) for k in (0, 1, DRAWS - 1)} == {whole}


@pytest.mark.requirement("STL-05", "STL-06")
@pytest.mark.parametrize("c_g", [318281039, 1855077841, 768398401])
def test_a_product_just_beside_an_integer_is_not_taken_for_it(c_g: int) -> None:
    s, m = Staleness.polynomial("1/2"), round(c_g / math.sqrt(2))
    assert abs(c_g**2 - 2 * m**2) == 1
    assert admissible_weights(s, c_g, 1) == ((m - 1, m) if c_g**2 < 2 * m**2 else (m, m + 1))


@pytest.mark.requirement("STL-04")
@given(functions, levels, taus, taus, draws)
def test_a_later_update_never_weighs_more(s: Staleness, c_g: int, first: int, second: int, k: int) -> None:
    weights = [rounded(s, c_g, tau, k) for tau in sorted((0, first, second))]
    assert weights[0] == c_g
    assert weights == sorted(weights, reverse=True)


@pytest.mark.requirement("STL-04")
@given(rates, st.integers(0, 20), levels)
def test_the_hinge_is_continuous_where_it_begins(rate: Fraction, b: int, c_g: int) -> None:
    s = Staleness.hinge(rate, b)
    assert floor_weight(s, c_g, b) == c_g
    assert value(s, b + 1) == 1 / (rate + 1)


@pytest.mark.requirement("STL-06")
@given(rational, levels, taus)
def test_mean_and_variance_over_all_draws(s: Staleness, c_g: int, tau: int) -> None:
    """The weight is floor + 1 for exactly the draws below the fraction f; the draws end at multiples of 2**-53."""
    y = c_g * value(s, tau)
    f = y - math.floor(y)
    up = -(-f.numerator * DRAWS // f.denominator)
    assert [rounded(s, c_g, tau, k) - math.floor(y) for k in (up - 1, up) if 0 <= k < DRAWS] == [
        step for k, step in ((up - 1, 1), (up, 0)) if 0 <= k < DRAWS
    ]
    share = Fraction(up, DRAWS)
    assert 0 <= share - f < Fraction(1, DRAWS)
    assert abs(share * (1 - share) - f * (1 - f)) < Fraction(1, DRAWS)


@pytest.mark.requirement("STL-06")
def test_mean_and_variance_in_symbols() -> None:
    y, below = sympy.symbols("y floor")
    f = y - below
    mean = (below + 1) * f + below * (1 - f)
    assert sympy.expand(mean - y) == 0
    variance = (below + 1 - mean) ** 2 * f + (below - mean) ** 2 * (1 - f)
    assert sympy.expand(variance - f * (1 - f)) == 0


@pytest.mark.requirement("STL-04", "STL-05")
def test_the_example_of_the_text() -> None:
    s = Staleness.polynomial(1)
    assert admissible_weights(s, 64, 2) == (21, 22)
    assert [admissible_weights(s, 64, tau) for tau in (0, 1, 3, 7)] == [(64,), (32,), (16,), (8,)]
    assert [tau for tau in range(10) if len(admissible_weights(s, 64, tau)) == 1] == [0, 1, 3, 7]


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("STL-01")
@pytest.mark.parametrize(("given_", "error"), REFUSED)
def test_what_is_no_fraction_is_refused(given_: Any, error: type[ParameterError]) -> None:
    for build in (Staleness.polynomial, lambda rate: Staleness.hinge(rate, 0)):
        with pytest.raises(error, match=r"p/r with 0 <= p <= 1000 and 1 <= r <= 100") as caught:
            build(given_)
        assert type(caught.value) is error


@pytest.mark.requirement("STL-01")
def test_a_fraction_is_taken_in_every_form() -> None:
    assert {fraction("alpha", v) for v in (Fraction(1, 2), 0.5, "0.5", "1/2", "2/4", "0.50")} == {Fraction(1, 2)}
    assert fraction("alpha", "0.1") == Fraction(1, 10)
    assert fraction("alpha", 1000) == 1000
    with pytest.raises(OutOfRange, match=r'the float 0\.1 is not 1/10, "0\.1" is'):
        fraction("alpha", 0.1)


@pytest.mark.requirement("STL-01", "STL-02", "STL-03")
@pytest.mark.parametrize(
    "arguments",
    [
        ("polynomial", 2, 4),
        ("polynomial", 0, 2),
        ("polynomial", 1001, 1),
        ("polynomial", 1, 101),
        ("polynomial", -1, 1),
        ("polynomial", 1, 0),
        ("polynomial", 1.0, 1),
        ("polynomial", True, 1),
        ("polynomial", 1, 1, 1),
        ("constant", 1, 1),
        ("constant", 0, 1, 1),
        ("hinge", 1, 1, -1),
        ("hinge", 1, 1, 2**32),
        ("hinge", 1, 1, 1.5),
        ("exponential", 0, 1),
        (0, 0, 1),
        ([], 0, 1),
    ],
)
def test_what_is_no_function_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        Staleness(*arguments)


@pytest.mark.requirement("STL-02")
@pytest.mark.parametrize(
    ("c_g", "tau"), [(0, 1), (-1, 1), (2**32 + 1, 1), (1.0, 1), (True, 1), (1, -1), (1, 2**32), (1, 1.0)]
)
def test_numbers_out_of_range_are_refused(c_g: Any, tau: Any) -> None:
    for call in (
        lambda: floor_weight(Staleness.polynomial(1), c_g, tau),
        lambda: admissible_weights(Staleness.polynomial(1), c_g, tau),
        lambda: realised_weight(Staleness.polynomial(1), c_g, tau, 0.5),
    ):
        with pytest.raises(ParameterError):
            call()


@pytest.mark.requirement("STL-02", "STL-06")
def test_numpy_integers_do_not_overflow() -> None:
    s = Staleness("polynomial", cast(int, np.int64(7)), cast(int, np.int64(2)))
    c_g, tau = cast(int, np.int64(2**32)), cast(int, np.uint64(2**31))
    plain = Staleness.polynomial("3.5")
    assert s == plain
    assert realised_weight(s, c_g, tau, np.float64(0.0)) == realised_weight(plain, 2**32, 2**31, 0.0) == 1
    assert admissible_weights(s, c_g, cast(int, np.uint8(3))) == (2**25,)


@pytest.mark.requirement("STL-07")
@pytest.mark.parametrize("draw", [1.0, -(2.0**-53), 2.0**-54, math.nan, math.inf, 0, "0.5", None, 2.0**-1074])
def test_what_is_no_draw_is_refused(draw: Any) -> None:
    with pytest.raises(OutOfRange, match="multiple of 2\\*\\*-53"):
        realised_weight(Staleness.polynomial(1), 64, 2, draw)


@pytest.mark.requirement("STL-03")
def test_the_kinds_are_those_of_the_text() -> None:
    assert KINDS == ("constant", "polynomial", "hinge")


@pytest.mark.requirement("STL-03")
@pytest.mark.parametrize("kind", ["", "Constant", "exponential", None, 1])
def test_another_kind_is_refused_and_named(kind: Any) -> None:
    with pytest.raises(ParameterError, match="must be one of constant, polynomial, hinge") as refused:
        Staleness(kind)
    assert (refused.value.parameter, refused.value.value) == ("kind", kind)
