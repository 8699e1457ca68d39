"""Planted bugs of the quantiser of HeteroSAg."""

from __future__ import annotations

from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import MAX_LEVELS, Range
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.heterosag_witness import Function, plan_of, quantised
from secagg_spec.conformance.wire import pack_reals

_QUANTISE = "secagg_spec.arithmetic.levels:quantize_levels"
_RANGE = "secagg_spec.arithmetic.levels:Range"
_READ = "secagg_spec.conformance.targets.reference_heterosag:read_range"


def _scaled(x: RealArray, levels: int, range: Range) -> RealArray:
    return (x - range.low) / (range.high - range.low) * (levels - 1)


@mutant(
    "levels-to-nearest",
    "HSA-08",
    "bias: a number is rounded to the nearest level, whatever the draw is",
    _QUANTISE,
    lambda: quantised([0.75], [0.9]),
    kind="sum",
    source="other rule: rounding to the nearest integer",
)
def _nearest(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        right(x, levels=levels, range=range, rounding=rounding)
        return right(x, levels=levels, range=range, rounding=np.full_like(rounding, 0.5))

    return wrong


@mutant(
    "levels-draw-turned-round",
    "HSA-08",
    "bias: a number is rounded up when the draw is above its fractional part",
    _QUANTISE,
    lambda: quantised([0.75], [0.9]),
    kind="sum",
    source="sign",
)
def _turned(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        right(x, levels=levels, range=range, rounding=rounding)
        y = np.minimum(_scaled(x, levels, range), levels - 1)
        return (np.floor(y) + (rounding > y - np.floor(y)) * (y > np.floor(y))).astype(np.uint64)

    return wrong


@mutant(
    "levels-as-steps",
    "HSA-08",
    "wrong values: the range is cut into K steps and not into K - 1, so that the last level is never met",
    _QUANTISE,
    lambda: quantised([0.2], [0.3]),
    kind="sum",
    source="off by one",
)
def _steps(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        right(x, levels=levels, range=range, rounding=rounding)
        y = _scaled(x, levels + 1, range)
        return np.minimum(np.ceil(y - rounding), levels - 1).astype(np.uint64)

    return wrong


@mutant(
    "levels-above-the-last",
    "HSA-08",
    "wrong sum: the draw 0 takes a number one level too high, and r2 beyond the last level",
    _QUANTISE,
    lambda: quantised([1.0], [0.0]),
    kind="sum",
    source="off by one",
)
def _above(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        right(x, levels=levels, range=range, rounding=rounding)
        return (np.floor(_scaled(x, levels, range) - rounding) + 1).astype(np.uint64)

    return wrong


@mutant(
    "levels-in-single-precision",
    "HSA-08",
    "wrong values: numbers are taken in binary32, which is too coarse for many levels and narrow ranges",
    _QUANTISE,
    lambda: quantised([0.1], [0.445], 10**6),
    kind="sum",
    source="arithmetic: binary32",
)
def _single(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        right(x, levels=levels, range=range, rounding=rounding)
        y = np.clip(_scaled(x, levels, range).astype(np.float32).astype(np.float64), 0, levels - 1)
        return np.ceil(y - rounding).astype(np.uint64)

    return wrong


@mutant(
    "levels-clipped-in-silence",
    "HSA-07",
    "bias: a number outside the range is moved to its bound, and nobody is told",
    _QUANTISE,
    lambda: quantised([1.5], [0.5]),
    kind="acceptance",
    source="silent repair",
)
def _in_silence(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> UintArray:
        value: UintArray = right(range.clip(x), levels=levels, range=range, rounding=rounding)
        return value

    return wrong


@mutant(
    "levels-never-clipped",
    "HSA-07",
    "failure: a number outside the range is refused although it was to be clipped",
    f"{_RANGE}.clip",
    lambda: quantised([1.5], [0.5], clip=True),
    kind="refusal",
    source="clause left out",
)
def _never(right: Function) -> Function:
    return lambda self, x: x


@mutant(
    "levels-nan-is-a-bound",
    "HSA-07",
    "wrong values: NaN is carried as a bound when numbers are to be clipped",
    f"{_RANGE}.clip",
    lambda: quantised([float("nan")], [0.5], clip=True),
    kind="acceptance",
    source="silent repair",
)
def _nan(right: Function) -> Function:
    return lambda self, x: right(self, np.where(np.isnan(x), self.low, x))


@mutant(
    "levels-nan-is-the-middle",
    "HSA-07",
    "wrong values: NaN is carried as the middle of the range",
    _QUANTISE,
    lambda: quantised([float("nan")], [0.5]),
    kind="acceptance",
    source="silent repair",
)
def _nan_middle(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        numbers = np.where(np.isnan(x), range.low / 2 + range.high / 2, x)
        return right(numbers, levels=levels, range=range, rounding=rounding)

    return wrong


@mutant(
    "levels-infinity-not-clipped",
    "HSA-07",
    "failure: an infinite number is refused although it was to be clipped",
    f"{_RANGE}.clip",
    lambda: quantised([float("inf")], [0.5], clip=True),
    kind="refusal",
    source="clause in part",
)
def _infinite(right: Function) -> Function:
    return lambda self, x: np.where(np.isinf(x), x, right(self, x))


@mutant(
    "levels-any-draw",
    "HSA-09",
    "bias: a draw outside [0, 1) is moved into it",
    _QUANTISE,
    lambda: quantised([0.5], [1.0]),
    kind="acceptance",
    source="silent repair",
)
def _any_draw(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        draws = np.clip(np.nan_to_num(rounding), 0.0, 1 - 2.0**-53)
        return right(x, levels=levels, range=range, rounding=draws)

    return wrong


@mutant(
    "levels-draws-fitted",
    "MOD-07",
    "bias: draws are cut, or repeated, so that they are as many as the numbers",
    _QUANTISE,
    lambda: quantised([0.5, 0.5], [0.5]),
    kind="acceptance",
    source="silent repair",
)
def _draws_fitted(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        return right(x, levels=levels, range=range, rounding=np.resize(rounding, x.shape))

    return wrong


@mutant(
    "levels-any-number",
    "HSA-10",
    "wrong values: a number of levels that is not allowed is replaced by the nearest one that is",
    _QUANTISE,
    lambda: quantised([0.5], [0.5], 1),
    kind="acceptance",
    source="silent repair",
)
def _any_number(right: Function) -> Function:
    def wrong(x: RealArray, *, levels: int, range: Range, rounding: RealArray) -> Any:
        return right(x, levels=min(max(levels, 2), MAX_LEVELS), range=range, rounding=rounding)

    return wrong


@mutant(
    "levels-up-to-2-to-32",
    "HSA-10",
    "wrong values: more than 2**31 levels are taken",
    "secagg_spec.arithmetic.levels:check_levels",
    lambda: quantised([0.5], [0.5], MAX_LEVELS + 1),
    kind="acceptance",
    source="clause in part",
)
def _up_to(right: Function) -> Function:
    return lambda levels: right(levels) if levels < 2 or levels > 2**40 else levels


def _bounds(*numbers: float) -> object:
    return plan_of(range=pack_reals(np.array(numbers, np.float64)))


@mutant(
    "range-sorted",
    "HSA-05",
    "disagreement: bounds that fall are exchanged",
    f"{_RANGE}.__post_init__",
    lambda: _bounds(1.0, -1.0),
    kind="acceptance",
    source="silent repair",
)
def _sorted(right: Function) -> Function:
    def wrong(self: Range) -> None:
        low, high = sorted((self.low, self.high))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        right(self)

    return wrong


@mutant(
    "range-of-any-width",
    "HSA-05",
    "wrong values: a range of no width, or of an infinite one, or to NaN, is taken",
    f"{_RANGE}.__post_init__",
    lambda: [_bounds(1.0, 1.0), _bounds(-1.7e308, 1.7e308)],
    kind="acceptance",
    source="clause left out",
)
def _any_width(right: Function) -> Function:
    def wrong(self: Range) -> None:
        if self.high < self.low:
            right(self)

    return wrong


@mutant(
    "range-of-the-first-two",
    "HSA-05",
    "disagreement: of a range with more than two bounds the first two are taken",
    _READ,
    lambda: _bounds(-1.0, 1.0, 2.0),
    kind="acceptance",
    source="silent repair",
)
def _first_two(right: Function) -> Function:
    return lambda text: right(text[:32])


@mutant(
    "range-of-one-bound",
    "HSA-05",
    "disagreement: a single bound stands for itself and its opposite",
    _READ,
    lambda: _bounds(-1.0),
    kind="acceptance",
    source="silent repair",
)
def _one_bound(right: Function) -> Function:
    def wrong(text: str) -> Any:
        if len(text) != 16:
            return right(text)
        bound = float(np.frombuffer(bytes.fromhex(text), "<f8")[0])
        return Range(-abs(bound), abs(bound))

    return wrong
