"""The K-level stochastic quantiser Q_K on a range [r1, r2], and the mean that is recovered from a sum of its values.

Notation of the paper: K is `levels`, [r1, r2] is `Range`, Delta_K is `Range.step`, T(l) is `Range.value` of l.

Source: HeteroSAg eq. (3); spec/heterosag.md, sections 3 and 7 (HSA-05, HSA-07 to HSA-10, HSA-23).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError

MAX_LEVELS = 2**31
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Range:
    """The numbers from `low` to `high`, r1 and r2.

    Raises
    ------
    ParameterError
        A bound is no finite number of binary64, their difference is none, or ``low >= high`` (HSA-05).
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = (_number(bound) for bound in (self.low, self.high))
        if not low < high:
            raise ParameterError("range", [low, high], "two numbers, the smaller first")
        if high - low == np.inf:
            raise ParameterError("range", [low, high], "such that the difference of the two is finite in binary64")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def step(self, levels: int) -> float:
        """Return Delta_K, the distance between neighbouring levels; refuses what `check_levels` refuses."""
        return (self.high - self.low) / (check_levels(levels) - 1)

    def value(self, numbers: RealArray, levels: int | RealArray) -> RealArray:
        """Return r1 + Delta_K * k for each number k, exactly r2 for k = K - 1; each number or row may have its own K.

        Raises `ParameterError` for levels that are no integers in [2, 2**31] (HSA-10), or do not fit the numbers.
        """
        numbers = validate.binary64("numbers", numbers)
        known = np.asarray(levels if isinstance(levels, np.ndarray) else check_levels(levels))
        if known.dtype.kind not in "iuf" or not ((known >= 2) & (known <= MAX_LEVELS) & (known % 1 == 0)).all():
            raise ParameterError("levels", levels, "integers in [2, 2**31]")
        if known.shape not in ((), numbers.shape, (*numbers.shape[:-1], 1)):
            raise LengthMismatch("levels.shape", known.shape, f"{numbers.shape}, or one for each row")
        share = numbers / (known.astype(np.float64) - 1)
        return np.asarray(self.low * (1 - share) + self.high * share, np.float64)

    def clip(self, x: RealArray) -> RealArray:
        """Return the numbers clipped to the range; NaN is refused with `OutOfRange`."""
        x = validate.binary64("x", x)
        if np.isnan(x).any():
            raise OutOfRange(validate.place("x", x, int(np.argmax(np.isnan(x)))), float("nan"), "a number")
        return np.clip(x, self.low, self.high)


def check_levels(levels: object) -> int:
    """Return `levels` when it is an integer in ``[2, 2**31]`` (HSA-10)."""
    return validate.integer("levels", levels, 2, MAX_LEVELS)


def quantize_levels(x: RealArray, *, levels: int, range: Range, rounding: RealArray, first: int = 0) -> UintArray:
    """Quantise real numbers to the integers 0 … K - 1: the integer at or above y - u, where y is x on the scale of K.

    Parameters
    ----------
    x : array (d,) of float64
        Numbers in ``[r1, r2]``; clip others with `Range.clip` first.
    levels : int
        K, in ``[2, 2**31]``.
    range : Range
        r1 and r2.
    rounding : array (d,) of float64
        Draws u, uniform in ``[0, 1)``.
    first : int
        What errors call the place of the first number, of a part of a longer vector.

    Returns
    -------
    array (d,) of uint64, below K

    Raises
    ------
    OutOfRange
        A number is outside the range (HSA-07), or a draw is outside ``[0, 1)`` (HSA-09).
    ParameterError
        The number of levels is out of range (HSA-10).

    Source: HeteroSAg eq. (3); HSA-08.
    """
    levels = check_levels(levels)
    x = validate.reals("x", x, (None,))
    rounding = validate.reals("rounding", rounding, x.shape)
    first = validate.integer("first", first, 0)
    _refuse_outside("x", x, range.low, range.high, f"in [{range.low}, {range.high}]", first)
    _refuse_outside("rounding", rounding, 0.0, np.nextafter(1.0, 0.0), "in [0, 1)", first)
    return round_levels(x, levels, range, rounding).astype(np.uint64)


def round_levels(x: RealArray, levels: int | NDArray[np.int64], range: Range, rounding: RealArray) -> RealArray:
    """Return the result of `quantize_levels` as real numbers, for checked arguments; each number may have its own K."""
    scaled: RealArray = x - range.low
    scaled /= range.high - range.low
    scaled *= levels - 1
    np.minimum(scaled, levels - 1, out=scaled)
    below = np.floor(scaled)
    scaled -= below
    below += scaled > rounding
    return below


def cell_mean(total: UintArray, *, count: int, levels: int, range: Range) -> RealArray:
    """Return the mean of `count` users' values, given the sum s of their quantised values: r1 + Delta_K * s / |U|.

    Parameters
    ----------
    total : array (L,) of uint64
        s, each in ``[0, count * (levels - 1)]``.
    count, levels, range
        |U| >= 1, K, and r1 and r2.

    Raises
    ------
    NonCanonical
        A sum is too large for `count` users (HSA-20).
    ParameterError
        The count is below 1, or the number of levels is out of range (HSA-10).

    Source: HeteroSAg, section 2, step 5; HSA-23.
    """
    levels, count = check_levels(levels), validate.integer("count", count, 1, validate.MAX_COUNT)
    most = count * (levels - 1)
    total = validate.elements("total", total, most + 1, (None,))
    return range.value(total.astype(np.float64) / count, levels)


def _number(bound: object) -> float:
    """Return a bound as a float; -0.0 becomes 0.0, since parties with equal ranges must derive equal keys."""
    number = validate.number(bound)
    if number is None or not -LARGEST <= number <= LARGEST:
        raise ParameterError("range", bound, "two finite numbers, the smaller first")
    if float(number) != number:
        raise ParameterError("range", bound, "two numbers that binary64 has, the smaller first")
    return float(number) + 0.0


def _refuse_outside(name: str, numbers: RealArray, low: float, high: float, allowed: str, first: int) -> None:
    outside = (numbers < low) | (numbers > high)
    if outside.any():
        position = int(np.argmax(outside))
        raise OutOfRange(f"{name}[{first + position}]", float(numbers[position]), allowed)


guard(__name__)
