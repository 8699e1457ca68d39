"""The quantiser of K levels and the means of cells against exact rational arithmetic, whatever the range."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import LARGEST, MAX_LEVELS, Range, cell_mean, check_levels, quantize_levels
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, NonCanonical, OutOfRange, ParameterError
from tests.strategies import integers_of, snapshot, vector

DRAWS = 2**53
LEAST = 5e-324
DYADIC = Range(-1.0, 1.0)
EDGE_RANGES = (
    DYADIC,
    Range(0.0, 1.0),
    Range(-0.3, 0.7),
    Range(0.0, LEAST),
    Range(-LEAST, LEAST),
    Range(-3 * LEAST, 7 * LEAST),
    Range(2.0**-1022, 2.0**-1021),
    Range(-LARGEST / 2, LARGEST / 2),
    Range(0.0, LARGEST),
    Range(-LARGEST, 0.0),
    Range(nextafter(LARGEST, 0), LARGEST),
    Range(1.0, nextafter(1.0, 2.0)),
    Range(-1e300, 1e-300),
    Range(-1e-300, 1e300),
)
levels_of = st.sampled_from((2, 3, 4, 10, 2**16, MAX_LEVELS - 1, MAX_LEVELS)) | st.integers(2, MAX_LEVELS)
draws = st.sampled_from((0, 1, DRAWS // 2, DRAWS - 1)) | st.integers(0, DRAWS - 1)


def _ranges(low: float, high: float) -> Range | None:
    low, high = min(low, high), max(low, high)
    return Range(low, high) if low < high and high - low < np.inf else None


bounds = st.floats(allow_nan=False, allow_infinity=False)
drawn_ranges: st.SearchStrategy[Any] = st.builds(_ranges, bounds, bounds).filter(bool)
ranges: st.SearchStrategy[Range] = st.sampled_from(EDGE_RANGES) | drawn_ranges


def inside(range: Range) -> st.SearchStrategy[float]:
    """Numbers of a range: its bounds, what is beside them, and others."""
    beside = (nextafter(range.low, range.high), nextafter(range.high, range.low))
    return st.sampled_from((range.low, range.high, *beside)) | st.floats(range.low, range.high)


def reals(*values: float) -> RealArray:
    """A vector of binary64 numbers."""
    return np.array(values, dtype=np.float64)


def one(x: float, u: float, levels: int, range: Range) -> int:
    """Quantise one number."""
    return int(quantize_levels(reals(x), levels=levels, range=range, rounding=reals(u))[0])


def scaled(x: float, levels: int, range: Range) -> Fraction:
    """The number y of the text, exactly."""
    low, high = Fraction(range.low), Fraction(range.high)
    return (levels - 1) * (Fraction(x) - low) / (high - low)


def tolerance(range: Range) -> Fraction:
    """By how much a mean may be off."""
    return Fraction(max(abs(range.low), abs(range.high))) / 2**40 + Fraction(1, 2**1070)


# --------------------------------------------------------------------------------------------------- the quantiser


@pytest.mark.requirement("HSA-08")
@given(st.data(), ranges, levels_of, draws)
def test_a_number_is_the_integer_above_y_less_the_draw(
    data: st.DataObject, range: Range, levels: int, draw: int
) -> None:
    x, error = data.draw(inside(range)), Fraction(levels, 2**48)
    k = one(x, draw / DRAWS, levels, range)
    low = scaled(x, levels, range) - Fraction(draw, DRAWS)
    assert 0 <= k <= levels - 1
    assert low - error <= k < low + 1 + error


@pytest.mark.requirement("HSA-08")
@given(ranges, levels_of, draws)
def test_the_bounds_are_the_first_and_the_last_number(range: Range, levels: int, draw: int) -> None:
    assert one(range.low, draw / DRAWS, levels, range) == 0
    assert one(range.high, draw / DRAWS, levels, range) == levels - 1


@pytest.mark.requirement("HSA-08")
@given(st.sampled_from((2, 3, 5, 9, 17, 1025)), st.data(), st.sampled_from((1.0, 2.0**-1000, 2.0**1000)), draws)
def test_the_points_of_the_levels_are_themselves(levels: int, data: st.DataObject, scale: float, draw: int) -> None:
    k = data.draw(st.integers(0, levels - 1))
    range = Range(-scale, scale)
    point = float(range.value(reals(k), levels)[0])
    assert Fraction(point) == Fraction(range.low) + k * Fraction(range.high - range.low) / (levels - 1)
    assert one(point, draw / DRAWS, levels, range) == k


@pytest.mark.requirement("HSA-08")
@given(st.integers(0, 2**10), st.integers(1, 6))
def test_the_mean_is_y_and_the_variance_that_of_the_text_over_all_draws(numerator: int, bits: int) -> None:
    """Draws on a grid that y is on are all cases: each integral is a sum over them."""
    levels, grid = 2**bits + 1, 2**10
    x = -1.0 + numerator / 2**9
    y = scaled(x, levels, DYADIC)
    many = quantize_levels(
        np.full(grid, x), levels=levels, range=DYADIC, rounding=np.arange(grid, dtype=np.float64) / grid
    )
    numbers = [Fraction(k) for k in integers_of(many)]
    mean = sum(numbers) / grid
    variance = sum((k - mean) ** 2 for k in numbers) / grid
    step = Fraction(2, levels - 1)
    assert Fraction(DYADIC.step(levels)) == step
    assert mean == y
    assert step**2 * variance == step**2 * (y - floor(y)) * (1 - y + floor(y))
    assert (variance == Fraction(1, 4)) == (y - floor(y) == Fraction(1, 2))
    assert variance <= Fraction(1, 4)


@pytest.mark.requirement("HSA-08")
@given(st.data(), ranges, levels_of)
def test_the_value_goes_from_one_integer_to_the_other_where_the_text_says_so(
    data: st.DataObject, range: Range, levels: int
) -> None:
    """The value falls as the draw grows, so that where it changes is the probability of the integer above."""
    x, error = data.draw(inside(range)), Fraction(levels, 2**48)
    y = scaled(x, levels, range)
    first, last = one(x, 0.0, levels, range), one(x, 1 - 2.0**-53, levels, range)
    assert 0 <= first - last <= 1
    low, high = 0, DRAWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one(x, middle / DRAWS, levels, range) == first else (low, middle)
    mean = last + (first - last) * Fraction(high, DRAWS)
    assert abs(mean - y) <= error + Fraction(1, DRAWS)


@pytest.mark.requirement("HSA-08")
def test_the_quantiser_is_equation_3_of_the_paper() -> None:
    for x, levels in ((0.3, 2), (-0.45, 4), (0.99, 10)):
        y = scaled(x, levels, DYADIC)
        up = sum(one(x, u / 1000, levels, DYADIC) == ceil(y) for u in range(1000))
        assert abs(Fraction(up, 1000) - (y - floor(y))) <= Fraction(2, 1000)
    assert [one(0.0, u, 2, DYADIC) for u in (0.0, 0.25, 0.49, 0.5, 0.75)] == [1, 1, 1, 0, 0]


# ---------------------------------------------------------------------------------------------------------- means


@pytest.mark.requirement("HSA-23")
@given(st.data(), ranges, levels_of)
def test_the_mean_of_a_cell_is_that_of_the_text(data: st.DataObject, range: Range, levels: int) -> None:
    count = data.draw(st.sampled_from((1, 2, 3, 7, 40, 2**16)))
    total = data.draw(
        st.sampled_from((0, 1, count * (levels - 1) - 1, count * (levels - 1))) | st.integers(0, count * (levels - 1))
    )
    got = Fraction(float(cell_mean(vector([total]), count=count, levels=levels, range=range)[0]))
    low, high = Fraction(range.low), Fraction(range.high)
    assert abs(got - (low + (high - low) / (levels - 1) * Fraction(total, count))) <= tolerance(range)
    assert low <= got <= high


@pytest.mark.requirement("HSA-23")
@given(ranges, levels_of, st.integers(1, 100))
def test_the_mean_of_extreme_sums_is_a_bound_of_the_range(range: Range, levels: int, count: int) -> None:
    means = cell_mean(vector([0, count * (levels - 1)]), count=count, levels=levels, range=range)
    assert integers_of(means) == [range.low, range.high]


@pytest.mark.requirement("HSA-20", "HSA-23")
@given(levels_of, st.integers(1, 100))
def test_a_sum_that_so_many_users_cannot_have_is_refused(levels: int, count: int) -> None:
    most = count * (levels - 1)
    with pytest.raises(NonCanonical, match="total"):
        cell_mean(vector([0, most + 1]), count=count, levels=levels, range=DYADIC)


@pytest.mark.requirement("HSA-23")
@pytest.mark.parametrize("count", [0, -1, 1.0, True, None, "1", 2**64])
def test_a_count_that_is_none_is_refused(count: Any) -> None:
    with pytest.raises(ParameterError, match="count"):
        cell_mean(vector([1]), count=count, levels=2, range=DYADIC)


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("HSA-05")
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, 1.0),
        (1.0, -1.0),
        (0.0, -0.0),
        (np.nan, 1.0),
        (0.0, np.nan),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (-LARGEST, LARGEST),
        (-LARGEST, 1e300),
        ("0", 1.0),
        (None, 1.0),
        (False, True),
        (np.longdouble("-1e4000"), 1.0),
        (np.array([0.0]), 1.0),
        (0, 2**1024),
        (-(10**500), 0),
        (0, 1j),
        (2**53 + 1, 2**54),
        (-(2**53) - 1, np.int64(0)),
    ],
)
def test_a_range_that_is_none_is_refused(low: Any, high: Any) -> None:
    with pytest.raises(ParameterError, match="range"):
        Range(low, high)


@pytest.mark.requirement("HSA-05")
def test_a_range_of_integers_is_one_of_numbers() -> None:
    assert Range(-1, 1) == DYADIC
    assert repr(Range(0, 2**1000)) == repr(Range(0.0, 2.0**1000))
    assert Range(np.float64(-1), 1) == DYADIC
    assert Range(-LARGEST / 2, LARGEST / 2).high > 0


@pytest.mark.requirement("HSA-07", "ERR-02")
@given(ranges, levels_of, st.booleans())
def test_a_number_outside_the_range_is_refused_and_clipped_on_demand(range: Range, levels: int, above: bool) -> None:
    inner, outer = (range.high, np.inf) if above else (range.low, -np.inf)
    x = nextafter(inner, outer)
    with pytest.raises(OutOfRange, match=r"x\[1\]"):
        quantize_levels(reals(range.low, x), levels=levels, range=range, rounding=reals(0, 0))
    assert integers_of(range.clip(reals(x, inner, outer))) == [inner] * 3


@pytest.mark.requirement("HSA-07", "ERR-02")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_nan_is_never_clipped(bad: float) -> None:
    with pytest.raises(OutOfRange, match=r"x\[1\]"):
        quantize_levels(reals(0, bad), levels=2, range=DYADIC, rounding=reals(0, 0))
    if np.isnan(bad):
        with pytest.raises(OutOfRange, match=r"x\[1\] = nan"):
            DYADIC.clip(reals(0, bad))


@pytest.mark.requirement("HSA-09", "ERR-02")
@pytest.mark.parametrize("draw", [-(2.0**-53), -LEAST, -1.0, 1.0, 1.5, np.inf, -np.inf, np.nan])
def test_draws_outside_0_to_1_are_refused(draw: float) -> None:
    with pytest.raises(OutOfRange, match=r"rounding\[1\]"):
        quantize_levels(reals(0, 0), levels=3, range=DYADIC, rounding=reals(0.5, draw))


@pytest.mark.requirement("HSA-10", "ERR-02")
@pytest.mark.parametrize("levels", [1, 0, -1, MAX_LEVELS + 1, 10**500, 2.0, True, "2", None])
def test_levels_out_of_range_are_refused(levels: Any) -> None:
    with pytest.raises(ParameterError, match="levels"):
        quantize_levels(reals(0), levels=levels, range=DYADIC, rounding=reals(0))
    with pytest.raises(ParameterError, match="levels"):
        cell_mean(vector([0]), count=1, levels=levels, range=DYADIC)
    with pytest.raises(ParameterError, match="levels"):
        check_levels(levels)
    with pytest.raises(ParameterError, match="levels"):
        DYADIC.step(levels)


@pytest.mark.requirement("HSA-10")
@pytest.mark.parametrize(
    "levels", [1, 0, 2.5, np.array([3.0, 1.0]), np.array([3.0, np.nan]), np.array([3.0, 2.5]), np.array([3, "a"])]
)
def test_a_level_is_a_value_of_two_or_more(levels: Any) -> None:
    with pytest.raises(ParameterError, match="levels"):
        DYADIC.value(reals(0, 0), levels)


@pytest.mark.requirement("HSA-10")
def test_levels_are_those_of_numbers_or_of_their_rows() -> None:
    assert DYADIC.value(np.ones((2, 3)), np.array([[2], [3]])).shape == (2, 3)
    for numbers, levels in [(reals(0, 0), (3,)), (reals(0, 0), (2, 1)), (np.ones((2, 3)), (3, 1))]:
        with pytest.raises(LengthMismatch, match=r"^levels\.shape = "):
            DYADIC.value(numbers, np.full(levels, 4))
    with pytest.raises(ParameterError, match=r"^numbers = 'list'"):
        DYADIC.value([1.0], 4)  # type: ignore[arg-type]


@pytest.mark.requirement("HSA-10")
def test_the_least_and_the_largest_number_of_levels_are_taken() -> None:
    assert MAX_LEVELS == 2**31
    assert [one(1.0, 0.5, levels, DYADIC) for levels in (2, MAX_LEVELS)] == [1, MAX_LEVELS - 1]
    small = quantize_levels(reals(1.0), levels=np.uint8(200), range=DYADIC, rounding=reals(0))  # type: ignore[arg-type]
    assert integers_of(small) == [199]


@pytest.mark.requirement("ERR-02", "MOD-07")
def test_arrays_of_another_kind_are_refused() -> None:
    for x, rounding, error in (
        (reals(0, 0), reals(0), LengthMismatch),
        (reals(0), np.array([0], np.float32), ParameterError),
        ([0.0], reals(0), ParameterError),
        (np.zeros((1, 1)), np.zeros((1, 1)), LengthMismatch),
    ):
        with pytest.raises(error):
            quantize_levels(x, levels=2, range=DYADIC, rounding=rounding)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="x"):
        DYADIC.clip([0.0, 2.0])  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-01")
def test_inputs_stay_as_they_were() -> None:
    x, rounding, total = reals(-0.25, 0.5), reals(0.5, 0.25), vector([3, 4])
    before = snapshot([x, rounding, total])
    quantize_levels(x, levels=3, range=DYADIC, rounding=rounding)
    cell_mean(total, count=2, levels=4, range=DYADIC)
    DYADIC.clip(x)
    assert snapshot([x, rounding, total]) == before
