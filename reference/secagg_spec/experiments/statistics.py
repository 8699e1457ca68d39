"""Intervals and verdicts: whether a mean over seeds is on one side of a bound.

Source: spec/experiments.md, section 6 (EXP-22 to EXP-24).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from secagg_spec.arithmetic import validate
from secagg_spec.errors import OutOfRange, ParameterError

CONFIRMED, REFUTED, UNCONFIRMED = "confirmed", "refuted", "not confirmed at this scale"
VERDICTS = (CONFIRMED, REFUTED, UNCONFIRMED)
RELATIONS = (">=", "<=")
LEVEL = 0.95
FEWEST = 3
"""The fewest seeds with which anything is confirmed or refuted."""
LARGEST = 1e150
"""The largest magnitude of a number: binary64 has the square of a difference of two."""


@dataclass(frozen=True)
class Interval:
    """The mean of `count` numbers, and both ends of its interval, which equal the mean if all numbers are equal."""

    mean: float
    low: float
    high: float
    count: int


def interval(numbers: Sequence[float]) -> Interval:
    """Return the two-sided 95 % interval of Student for the mean of numbers (EXP-22).

    Raises
    ------
    ParameterError
        The list is empty, or no sequence.
    OutOfRange
        A number is not finite, or above `LARGEST` in magnitude.
    """
    numbers = [_checked(number) for number in validate.sequence("numbers", numbers, "numbers")]
    if not numbers:
        raise ParameterError("numbers", numbers, "one number or more")
    count, mean = len(numbers), math.fsum(numbers) / len(numbers)
    if len(set(numbers)) == 1:
        return Interval(numbers[0], numbers[0], numbers[0], count)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / (count - 1)
    half = _quantile(count - 1) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half, count)


def verdict(found: Interval, relation: str, bound: float, seeds: int) -> str:
    """Return the verdict on "the mean is `relation` `bound`", for an experiment with so many seeds (EXP-23).

    Raises
    ------
    ParameterError
        The relation is none of `RELATIONS`, or another argument is of another type, or no number of seeds.
    OutOfRange
        The bound is no finite number.
    """
    found = validate.instance("found", found, Interval)
    validate.one_of("relation", relation, RELATIONS)
    if not validate.finite(bound):
        raise OutOfRange("bound", bound, "a finite number")
    seeds = validate.integer("seeds", seeds, 0)
    if found.count < max(FEWEST, seeds):
        return UNCONFIRMED
    low, high = (found.low, found.high) if relation == ">=" else (-found.high, -found.low)
    least = bound if relation == ">=" else -bound
    if low >= least:
        return CONFIRMED
    return REFUTED if high < least else UNCONFIRMED


def _checked(number: object) -> float:
    """Return a number as one of Python, the comparisons of which do not round."""
    value = validate.number(number)
    if value is None or not -LARGEST <= value <= LARGEST:
        raise OutOfRange("numbers", number, f"finite numbers of at most {LARGEST:g} in magnitude")
    return value


def _quantile(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's distribution."""
    from scipy.stats import t  # noqa: PLC0415

    return float(t.ppf((1 + LEVEL) / 2, freedom))
