"""The quantiser against exact rational arithmetic."""

from __future__ import annotations

import struct
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import quantizer
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import MAX_LEVEL, dequantize, quantize, stochastic_round
from secagg_spec.arithmetic.staleness import Staleness, realised_weight
from secagg_spec.errors import NonCanonical, OutOfRange, ParameterError
from tests.strategies import elements, integers_of, moduli, snapshot, vector

DRAWS = 2**53
LARGE = Ring(2**32)
levels = st.sampled_from((1, 2, 3, 10, 2**16, 2**32)) | st.integers(1, 2**32)
draws = st.sampled_from((0, 1, DRAWS // 2, DRAWS - 1)) | st.integers(0, DRAWS - 1)
scaled_values = st.one_of(
    st.floats(-(2.0**31), 2.0**31),
    st.floats(-2, 2),
    st.sampled_from(
        (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 5e-324, -5e-324, -(2.0**-60), 2.0**-60, -1 + 2.0**-53, -1 - 2.0**-52)
    ),
    st.integers(-(2**31), 2**31).map(float),
    st.integers(1, 2**53 - 1).map(lambda k: -k * 2.0**-54),
)


def reals(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A vector of binary64 numbers."""
    return np.array(values, dtype=np.float64)


def rounded(y: float, draw: int) -> int:
    """What the reference rounds y to with the draw ``draw / 2**53``."""
    return int(stochastic_round(reals(y), reals(draw / DRAWS))[0])


def exact_round(y: float, draw: int) -> int:
    """Equation (7) of the BASecAgg paper, times c, in rational numbers."""
    value = Fraction(y)
    below = floor(value)
    return below + 1 if Fraction(draw, DRAWS) < value - below else below


def draws_below(fraction: Fraction) -> int:
    """How many multiples of 2**-53 in [0, 1) are below a fraction."""
    return -(-fraction.numerator * DRAWS // fraction.denominator)


def one(x: float, draw: int = 0, *, level: int = 1, ring: Ring = LARGE, weight: int = 1) -> int:
    """Quantise one number."""
    return int(quantize(reals(x), level=level, ring=ring, weight=weight, rounding=reals(draw / DRAWS))[0])


@pytest.mark.requirement("QNT-01", "QNT-04", "QNT-09", "QNT-10")
@given(
    st.lists(st.tuples(st.floats(-9, 9) | st.sampled_from((1e300, np.nan)), draws | st.just(0.25)), max_size=9),
    st.integers(1, 4),
)
def test_parts_are_quantised_as_the_whole_is(numbers: list[tuple[float, float]], part: int) -> None:
    """Whatever is refused, the whole says what and where."""
    x, draw = reals(*(number for number, _ in numbers)), reals(*(draw / DRAWS for _, draw in numbers))

    def result(count: int) -> tuple[int, ...] | str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quantizer, "_PART", count)
            try:
                return tuple(quantize(x, level=8, ring=Ring(1001), weight=9, rounding=draw).tolist())
            except OutOfRange as refused:
                return str(refused)

    assert result(part) == result(10)


# ------------------------------------------------------------------------------------------------------- rounding


@pytest.mark.requirement("QNT-02", "QNT-03")
@given(scaled_values, draws)
def test_rounding_is_the_formula_in_rational_numbers(y: float, draw: int) -> None:
    assert rounded(y, draw) == exact_round(y, draw)


@pytest.mark.requirement("QNT-12")
@given(st.floats(-16, 16, width=32), st.integers(1, 2**26), draws)
def test_a_number_of_binary32_is_quantised_as_what_it_is(x: float, level: int, draw: int) -> None:
    quantised = int(LARGE.decode_signed(np.array([one(x, draw, level=level)], dtype=np.uint64))[0])
    value = Fraction(x) * level
    assert quantised == floor(value) + (Fraction(draw, DRAWS) < value - floor(value))


@pytest.mark.requirement("QNT-02")
@given(scaled_values, draws)
def test_the_value_is_one_of_the_two_integers_beside(y: float, draw: int) -> None:
    assert abs(Fraction(rounded(y, draw)) - Fraction(y)) < 1
    if Fraction(y).denominator == 1:
        assert rounded(y, draw) == int(y)


@pytest.mark.requirement("QNT-03")
@given(scaled_values)
def test_the_value_is_rounded_up_by_exactly_the_draws_below_the_fraction(y: float) -> None:
    below, fraction = floor(Fraction(y)), Fraction(y) - floor(Fraction(y))
    up = draws_below(fraction)
    around = [draw for draw in (0, up - 1, up, up + 1, DRAWS - 1) if 0 <= draw < DRAWS]
    assert [rounded(y, draw) - below for draw in around] == [int(draw < up) for draw in around]


@pytest.mark.requirement("QNT-03")
@given(scaled_values)
def test_the_mean_is_y_and_the_variance_meets_its_bound(y: float) -> None:
    value, below = Fraction(y), floor(Fraction(y))
    up = draws_below(value - below)
    assert up == 0 or rounded(y, up - 1) == below + 1
    assert up == DRAWS or rounded(y, up) == below
    probability = Fraction(up, DRAWS)
    mean = (below + 1) * probability + below * (1 - probability)
    variance = (below + 1 - mean) ** 2 * probability + (below - mean) ** 2 * (1 - probability)
    assert 0 <= mean - value < Fraction(1, DRAWS)
    assert mean == value or abs(value) < 1
    assert variance <= Fraction(1, 4)
    assert (variance == Fraction(1, 4)) == (mean - below == Fraction(1, 2))


@pytest.mark.requirement("QNT-03")
@given(st.integers(-(2**30), 2**30))
def test_the_variance_bound_is_attained_at_the_midpoints(n: int) -> None:
    y = n + 0.5
    assert (rounded(y, DRAWS // 2 - 1), rounded(y, DRAWS // 2)) == (n + 1, n)


@pytest.mark.requirement("QNT-03")
def test_the_mean_and_variance_of_the_formula_by_symbols() -> None:
    import sympy

    n, f, c = sympy.symbols("n f c", positive=True)
    mean = sympy.expand((n + 1) * f + n * (1 - f))
    variance = sympy.expand((n + 1 - mean) ** 2 * f + (n - mean) ** 2 * (1 - f))
    assert mean == n + f
    assert sympy.simplify(variance - f * (1 - f)) == 0
    assert sympy.maximum(variance, f, sympy.Interval(0, 1)) == sympy.Rational(1, 4)
    assert sympy.solve(sympy.diff(variance, f), f) == [sympy.Rational(1, 2)]
    assert sympy.simplify(variance.subs(f, sympy.Rational(1, 2)) / c**2 - 1 / (4 * c**2)) == 0


@pytest.mark.requirement("QNT-02", "QNT-05")
@given(st.floats(-4, 4), levels, draws)
def test_a_number_is_scaled_by_the_level_rounded_and_carried(x: float, level: int, draw: int) -> None:
    value = exact_round(x * float(level), draw)
    if abs(value) <= 2**31 - 1:
        assert one(x, draw, level=level) == value % 2**32
    else:
        with pytest.raises(OutOfRange):
            one(x, draw, level=level)


@pytest.mark.requirement("QNT-05", "QNT-07")
@given(st.integers(-(2**20), 2**20), st.sampled_from((1, 2, 2**10)))
def test_multiples_of_the_unit_survive(k: int, level: int) -> None:
    values = quantize(reals(k / level), level=level, ring=LARGE, weight=1, rounding=reals(0))
    assert integers_of(dequantize(values, level=level, ring=LARGE)) == [k / level]


# ----------------------------------------------------------------------------------------------------- signed map


@pytest.mark.requirement("QNT-05", "QNT-06", "ERR-02")
@pytest.mark.parametrize("modulus", [*range(2, 41), 2**31, 2**31 - 1, 2**32 - 5, 2**32])
def test_exactly_the_stated_integers_survive_the_round_trip(modulus: int) -> None:
    ring, low, high = Ring(modulus), -(modulus // 2), (modulus - 1) // 2
    near = [x for x in range(-50, 51) if low <= x <= high] + [low, high]
    for x in near:
        encoded = ring.encode_signed(np.array([x]))
        assert integers_of(encoded) == [x % modulus]
        assert integers_of(ring.decode_signed(encoded)) == [x]
    for x in (low - 1, high + 1, low - modulus, high + modulus):
        with pytest.raises(OutOfRange):
            ring.encode_signed(np.array([0, x]))
    assert high - low + 1 == modulus


@pytest.mark.requirement("QNT-06")
@given(st.data())
def test_the_decoder_at_every_element(data: st.DataObject) -> None:
    modulus = data.draw(moduli())
    x = data.draw(elements(modulus))
    expected = x if x <= (modulus - 1) // 2 else x - modulus
    assert integers_of(Ring(modulus).decode_signed(vector([x]))) == [expected]


@pytest.mark.requirement("QNT-06")
def test_the_middle_of_an_odd_ring_is_positive() -> None:
    assert integers_of(Ring(7).decode_signed(vector([3, 4]))) == [3, -3]
    assert integers_of(Ring(8).decode_signed(vector([3, 4]))) == [3, -4]


# ------------------------------------------------------------------------------------------------------ dequantise


def nearest(value: Fraction, precision: int) -> Fraction:
    """The nearest number with `precision` binary digits, ties to even; no underflow, no overflow."""
    if value == 0:
        return value
    exponent = 0
    while abs(value) * Fraction(2) ** -exponent >= 2**precision:
        exponent += 1
    while abs(value) * Fraction(2) ** -exponent < 2 ** (precision - 1):
        exponent -= 1
    return round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent


@pytest.mark.requirement("QNT-07")
@given(st.integers(-(2**31), 2**31 - 1), levels, st.sampled_from([("binary64", 53), ("binary32", 24)]))
def test_the_quotient_is_rounded_once(signed: int, level: int, format: tuple[str, int]) -> None:
    got = dequantize(LARGE.encode_signed(np.array([signed])), level=level, ring=LARGE, format=format[0])  # type: ignore[arg-type]
    assert got.dtype == {"binary64": np.float64, "binary32": np.float32}[format[0]]
    assert Fraction(float(got[0])) == nearest(Fraction(signed, level), format[1])


@pytest.mark.requirement("QNT-07")
@given(st.integers(2**31, 2**32), st.integers(2**23, 2**24 - 1), st.sampled_from((-1, 1)), st.integers(-1, 1))
def test_quotients_beside_a_tie_are_rounded_once(level: int, top: int, sign: int, off: int) -> None:
    tie = Fraction(2 * top + 1, 2**25)
    signed = sign * (round(tie * level) + off)
    if -(2**31) <= signed < 2**31:
        got = dequantize(LARGE.encode_signed(np.array([signed])), level=level, ring=LARGE, format="binary32")
        assert Fraction(float(got[0])) == nearest(Fraction(signed, level), 24)


@pytest.mark.requirement("QNT-07")
@given(st.integers(2**27, 2**28 - 1), st.sampled_from((-1, 1)))
def test_quotients_whose_nearest_binary64_is_the_next_to_a_tie_are_rounded_once(half: int, side: int) -> None:
    """The quotient is M / 2**25 + side / (level 2**25), M odd: over half a place of binary64 off a tie."""
    level = 2 * half + 1
    tie = -side * pow(level, -1, 2**25) % 2**25
    signed = (tie * level + side) // 2**25
    assert Fraction(signed, level) == Fraction(tie, 2**25) + Fraction(side, level * 2**25)
    got = dequantize(LARGE.encode_signed(np.array([signed, -signed])), level=level, ring=LARGE, format="binary32")
    expected = nearest(Fraction(signed, level), 24)
    assert [Fraction(float(value)) for value in got] == [expected, -expected]


@pytest.mark.requirement("QNT-07")
@pytest.mark.parametrize(("signed", "expected"), [(1082130496, "0100003f"), (-1082130496, "010000bf")])
def test_the_example_of_the_text(signed: int, expected: str) -> None:
    level = 2164260863
    values = LARGE.encode_signed(np.array([signed]))
    got = dequantize(values, level=level, ring=LARGE, format="binary32")
    assert got.astype("<f4").tobytes().hex() == expected
    twice = struct.pack("<f", signed / level).hex()
    assert twice == expected.replace("01", "00", 1)


@pytest.mark.requirement("QNT-07")
def test_an_empty_vector_has_each_format() -> None:
    empty = np.empty(0, dtype=np.uint64)
    assert dequantize(empty, level=3, ring=LARGE).dtype == np.float64
    assert dequantize(empty, level=3, ring=LARGE, format="binary32").dtype == np.float32


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("QNT-01", "ERR-02")
@pytest.mark.parametrize(("x", "level"), [(np.nan, 1), (np.inf, 1), (-np.inf, 1), (1e308, 2**32), (-1e308, 2**32)])
def test_what_is_not_finite_is_refused(x: float, level: int) -> None:
    with pytest.raises(OutOfRange, match="x"):
        one(x, level=level)


@pytest.mark.requirement("QNT-04", "ERR-02")
@given(moduli(), st.integers(1, 2**33), st.integers(-2, 2), st.sampled_from((-1, 1)), draws)
def test_the_weight_bound_is_exact(modulus: int, weight: int, off: int, sign: int, draw: int) -> None:
    value = sign * ((modulus - 1) // 2 // weight + off)
    if abs(value) * weight <= (modulus - 1) // 2:
        assert one(float(value), draw, ring=Ring(modulus), weight=weight) == value % modulus
    else:
        with pytest.raises(OutOfRange):
            one(float(value), draw, ring=Ring(modulus), weight=weight)


@pytest.mark.requirement("QNT-04")
@given(st.integers(2, 200), st.integers(1, 5), st.floats(0, 2), st.sampled_from((-1, 1)), draws)
def test_the_weight_bound_holds_for_the_rounded_value(
    modulus: int, weight: int, off: float, sign: int, draw: int
) -> None:
    x = sign * ((modulus - 1) // 2 // weight - 0.5 + off)
    value = exact_round(x, draw)
    if abs(value) * weight <= (modulus - 1) // 2:
        assert one(x, draw, ring=Ring(modulus), weight=weight) == value % modulus
    else:
        with pytest.raises(OutOfRange):
            one(x, draw, ring=Ring(modulus), weight=weight)


@pytest.mark.requirement("QNT-04", "QNT-06")
@given(st.data())
def test_a_sum_within_the_weight_is_decoded_exactly(data: st.DataObject) -> None:
    modulus, weight = data.draw(moduli()), data.draw(st.integers(1, 6))
    ring, bound = Ring(modulus), (modulus - 1) // 2 // weight
    inputs = data.draw(st.lists(st.integers(-bound, bound), min_size=weight, max_size=weight))
    rows = [[one(float(x), ring=ring, weight=weight)] for x in inputs]
    assert integers_of(dequantize(ring.sum(vector(rows)), level=1, ring=ring)) == [sum(inputs)]


@pytest.mark.requirement("QNT-08")
@pytest.mark.parametrize("level", [0, -1, 2**32 + 1, 1.0, True, "1", None])
def test_levels_out_of_range_are_refused(level: int) -> None:
    with pytest.raises(ParameterError, match="level"):
        one(0.0, level=level)
    with pytest.raises(ParameterError, match="level"):
        dequantize(vector([0]), level=level, ring=LARGE)


@pytest.mark.requirement("QNT-08")
def test_the_largest_level_is_taken() -> None:
    assert one(2.0**-32, level=MAX_LEVEL) == 1
    assert MAX_LEVEL == 2**32


@pytest.mark.requirement("QNT-08")
@pytest.mark.parametrize("weight", [0, -1, 1.0, True, None])
def test_weights_below_1_are_refused(weight: int) -> None:
    with pytest.raises(ParameterError, match="weight"):
        one(0.0, weight=weight)


@pytest.mark.requirement("QNT-09")
@pytest.mark.parametrize("draw", [-(2.0**-53), -1.0, 1.0, 1.5, np.inf, np.nan])
def test_draws_outside_0_to_1_are_refused(draw: float) -> None:
    with pytest.raises(OutOfRange, match="rounding"):
        quantize(reals(0, 0), level=1, ring=LARGE, weight=1, rounding=reals(0.5, draw))


@pytest.mark.requirement("QNT-10")
@given(st.integers(0, 2**53 - 1), st.integers(54, 1074), st.integers(-4, 4))
def test_draws_are_taken_exactly_as_multiples_of_2_to_minus_53(steps: int, exponent: int, x: int) -> None:
    """A draw is moved by less than a step: what is left of it in binary64 is a multiple again, or it is refused."""
    right = steps / DRAWS
    quantize(reals(x, x), level=1, ring=LARGE, weight=1, rounding=reals(0.5, right))
    finer = right + 2.0**-exponent
    if finer == right:
        quantize(reals(x, x), level=1, ring=LARGE, weight=1, rounding=reals(0.5, finer))
        return
    with pytest.raises(OutOfRange, match="2\\*\\*-53" if finer < 1 else "rounding"):
        quantize(reals(x, x), level=1, ring=LARGE, weight=1, rounding=reals(0.5, finer))


@pytest.mark.requirement("QNT-10", "STL-07")
@pytest.mark.parametrize("draw", [2.0**-54, 0.25 + 2.0**-54, 2.0**-1074, 0.125 + 3 * 2.0**-55])
def test_the_quantiser_and_the_weights_refuse_the_same_draws(draw: float) -> None:
    with pytest.raises(OutOfRange):
        quantize(reals(0.5), level=1, ring=LARGE, weight=1, rounding=reals(draw))
    with pytest.raises(OutOfRange):
        realised_weight(Staleness("polynomial", 1, 1), 64, 2, draw)


@pytest.mark.requirement("MOD-06", "QNT-07")
def test_dequantise_refuses_what_is_no_element_or_format() -> None:
    with pytest.raises(NonCanonical):
        dequantize(vector([7]), level=1, ring=Ring(7))
    with pytest.raises(ParameterError, match="format"):
        dequantize(vector([6]), level=1, ring=Ring(7), format="binary16")  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-01")
def test_inputs_stay_as_they_were() -> None:
    x, rounding = reals(-0.25, 1.5), reals(0.5, 0.25)
    before = snapshot([x, rounding])
    values = quantize(x, level=3, ring=LARGE, weight=2, rounding=rounding)
    held = snapshot(values)
    dequantize(values, level=3, ring=LARGE, format="binary32")
    assert (snapshot([x, rounding]), snapshot(values)) == (before, held)


@pytest.mark.requirement("QNT-04", "ERR-02")
def test_an_entry_that_is_too_large_once_rounded_is_named() -> None:
    """3.5 is rounded to 3, which modulo 7 is the largest that can be carried, or to 4."""
    x, seven = reals(0, 3.5, 3.5), Ring(7)
    with pytest.raises(OutOfRange, match=r"^x\[2\] = 3\.5: must be at most 3 / 1 in magnitude once rounded$"):
        quantize(x, level=1, ring=seven, weight=1, rounding=reals(0, 0.5, 0))
    assert integers_of(quantize(x, level=1, ring=seven, weight=1, rounding=reals(0, 0.5, 0.5))) == [0, 3, 3]
