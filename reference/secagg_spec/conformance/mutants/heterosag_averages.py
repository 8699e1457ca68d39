"""Planted bugs of the averages of HeteroSAg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic import averages
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.heterosag_numbers import packed_range
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.heterosag_witness import Function, averaged
from secagg_spec.conformance.mutants.wrapped import BUILD, changing, wrapping

_AVERAGES = "secagg_spec.arithmetic.averages"
_MEAN = "secagg_spec.arithmetic.levels:cell_mean"
_STEEP = Range(0.0, 1.7e308)
_LARGE = ["0300000000000000"] * 2
_FOUR = ["00000000", "07000000", "03000000", "0c000000"]


@mutant(
    "cell-mean-by-k-steps",
    "HSA-23",
    "wrong values: a level stands for a K-th of the range and not for one of K - 1 parts",
    _MEAN,
    averaged,
    kind="sum",
    source="off by one",
)
def _steps(right: Function) -> Function:
    def wrong(total: UintArray, *, count: int, levels: int, range: Range) -> RealArray:
        right(total, count=count, levels=levels, range=range)
        return range.low + (range.high - range.low) / levels * (total.astype(np.float64) / count)

    return wrong


@mutant(
    "cell-mean-without-r1",
    "HSA-23",
    "bias: the lower bound is not added",
    _MEAN,
    averaged,
    kind="sum",
    source="wrong term",
)
def _without(right: Function) -> Function:
    return lambda total, **named: right(total, **named) - named["range"].low


@mutant(
    "cell-mean-in-single-precision",
    "HSA-23",
    "inexact: cell means are taken in binary32",
    _MEAN,
    averaged,
    kind="sum",
    source="arithmetic: binary32",
)
def _single(right: Function) -> Function:
    def wrong(*given: Any, **named: Any) -> RealArray:
        mean: RealArray = right(*given, **named)
        with np.errstate(over="ignore"):
            return mean.astype(np.float32).astype(np.float64)

    return wrong


@mutant(
    "cell-sum-of-any-size",
    "HSA-20",
    "wrong values: a sum that no users can have is cut to the largest that they can",
    _MEAN,
    lambda: averaged(counts=[1, 1, 1, 1, 1]),
    kind="acceptance",
    source="silent repair",
)
def _any_size(right: Function) -> Function:
    def wrong(total: UintArray, *, count: int, levels: int, range: Range) -> Any:
        most = np.uint64(max(count, 0) * max(levels - 1, 0))
        return right(np.minimum(total, most), count=count, levels=levels, range=range)

    return wrong


@mutant(
    "cells-of-one-level",
    "HSA-10",
    "wrong values: a cell with one level is taken for one with two",
    _MEAN,
    lambda: averaged(levels=[1, 3, 3, 4, 6]),
    kind="acceptance",
    source="silent repair",
)
def _one_level(right: Function) -> Function:
    return lambda total, **named: right(total, **{**named, "levels": max(named["levels"], 2)})


@mutant(
    "mean-of-means",
    "HSA-24",
    "bias: each cell counts alike, however many users it has",
    f"{_AVERAGES}:weighted_mean",
    averaged,
    kind="sum",
    source="wrong term",
)
def _of_means(right: Function) -> Function:
    def wrong(means: RealArray, counts: Sequence[int]) -> Any:
        right(means, counts)
        return right(means, [1] * len(counts))

    return wrong


@mutant(
    "lower-median",
    "HSA-25",
    "bias: of an even number of cells the median is the lower one of the two in the middle",
    f"{_AVERAGES}:median",
    lambda: averaged("median", levels=[2, 3, 3, 4], counts=[4, 5, 3, 6], sums=_FOUR),
    kind="sum",
    source="other rule: the lower one of two in the middle",
)
def _lower(right: Function) -> Function:
    def wrong(means: RealArray) -> RealArray:
        right(means)
        return np.asarray(np.sort(means, axis=0)[(len(means) - 1) // 2], np.float64)

    return wrong


@mutant(
    "middle-means-added-first",
    "HSA-25",
    "no value: the two means in the middle are added before they are halved, and the sum is infinite",
    f"{_AVERAGES}:median",
    lambda: averaged("median", range=packed_range(_STEEP), levels=[2, 2], counts=[3, 3], sums=_LARGE),
    kind="sum",
    source="arithmetic: overflow",
)
def _added_first(right: Function) -> Function:
    def wrong(means: RealArray) -> RealArray:
        right(means)
        ordered = np.sort(means, axis=0)
        with np.errstate(over="ignore"):
            return np.asarray((ordered[(len(means) - 1) // 2] + ordered[len(means) // 2]) / 2, np.float64)

    return wrong


@mutant(
    "median-of-the-rows",
    "HSA-25",
    "wrong values: the cell in the middle by its first element is taken, and not the median of each coordinate",
    f"{_AVERAGES}:median",
    lambda: averaged("median"),
    kind="sum",
    source="other rule: the row in the middle",
)
def _of_rows(right: Function) -> Function:
    def wrong(means: RealArray) -> RealArray:
        right(means)
        ordered: RealArray = means[np.argsort(means[:, 0], kind="stable")] if means.shape[1] else means
        return np.asarray((ordered[(len(means) - 1) // 2] + ordered[len(means) // 2]) / 2, np.float64)

    return wrong


@mutant(
    "mean-for-median",
    "HSA-25",
    "no defence: the mean is taken for the median",
    f"{_AVERAGES}:median",
    lambda: averaged("median"),
    kind="sum",
    source="other rule: the mean",
)
def _mean(right: Function) -> Function:
    return lambda means: averages.weighted_mean(means, [1] * len(means)) if len(means) else right(means)


@mutant(
    "trimmed-on-one-side",
    "HSA-26",
    "bias: the b largest are left out, and the b smallest are not",
    f"{_AVERAGES}:trimmed_mean",
    lambda: averaged("trimmed", 1),
    kind="sum",
    source="clause in part",
)
def _one_side(right: Function) -> Function:
    def wrong(means: RealArray, trim: int) -> Any:
        right(means, trim)
        return right(np.sort(means, axis=0)[: len(means) - trim], 0)

    return wrong


@mutant(
    "trimmed-half-as-much",
    "HSA-26",
    "no defence: b cells are left out in all, and not on each side",
    f"{_AVERAGES}:trimmed_mean",
    lambda: averaged("trimmed", 1),
    kind="sum",
    source="other rule: trimmed in all and not on each side",
)
def _half(right: Function) -> Function:
    def wrong(means: RealArray, trim: int) -> Any:
        right(means, trim)
        return right(np.sort(means, axis=0)[: len(means) - trim % 2], trim // 2)

    return wrong


@mutant(
    "trimmed-as-far-as-possible",
    "HSA-26",
    "no defence: a trim that leaves nothing is made smaller, and a negative one is 0",
    f"{_AVERAGES}:trimmed_mean",
    lambda: [averaged("trimmed", 3), averaged("trimmed", -1)],
    kind="acceptance",
    source="silent repair",
)
def _as_far(right: Function) -> Function:
    return lambda means, trim: right(means, min(max(trim, 0), (len(means) - 1) // 2))


@mutant(
    "any-method-is-the-mean",
    "ADP-39",
    "no defence: a method that nobody knows is the mean",
    f"{_AVERAGES}:combined",
    lambda: averaged("mode"),
    kind="acceptance",
    source="silent repair",
)
def _any_method(right: Function) -> Function:
    def wrong(means: RealArray, counts: Sequence[int], method: str = "mean", trim: int = 0) -> Any:
        return right(means, counts, method if method in averages.METHODS else "mean", trim)

    return wrong


@mutant(
    "trim-not-looked-at",
    "ADP-39",
    "no defence: a trim beside another method is passed over",
    f"{_AVERAGES}:combined",
    lambda: averaged("median", 1),
    kind="acceptance",
    source="silent repair",
)
def _not_looked_at(right: Function) -> Function:
    def wrong(means: RealArray, counts: Sequence[int], method: str = "mean", trim: int = 0) -> Any:
        return right(means, counts, method, trim if method == "trimmed" else 0)

    return wrong


def _shortest(asked: Function, given: dict[str, Any]) -> Any:
    cells = list(zip(*(given[name] for name in _LISTS), strict=False))
    if not cells:
        return {"segment": ""}
    cut = dict(zip(_LISTS, map(list, zip(*cells, strict=True)), strict=True))
    return asked(**{**given, **cut})


_LISTS = ("levels", "counts", "sums")

mutant(
    "row-of-the-shortest-list",
    "ADP-39",
    "wrong values: levels, counts and sums are cut to the shortest of them, and empty ones give an empty segment",
    BUILD,
    lambda: [averaged(levels=[2, 3]), averaged(counts=[4, 5])],
    kind="acceptance",
    source="silent repair",
)(wrapping("heterosag.average")(_shortest))


@mutant(
    "cells-of-nobody",
    "ADP-39",
    "wrong values: a cell without survivors counts as one with a survivor",
    _MEAN,
    lambda: averaged("median", counts=[0, 5, 3, 6, 4], sums=["0000000000000000"] * 5),
    kind="acceptance",
    source="silent repair",
)
def _nobody(right: Function) -> Function:
    return lambda total, **named: right(total, **{**named, "count": max(named["count"], 1)})


def _fitted(given: dict[str, Any]) -> dict[str, Any]:
    size = len(given["sums"][0]) if given["sums"] else 0
    return {**given, "sums": [text[:size].ljust(size, "0") for text in given["sums"]]}


mutant(
    "sums-fitted",
    "MOD-07",
    "wrong values: sums are cut, or continued by zeros, to the length of the first",
    BUILD,
    lambda: averaged(sums=["00000000", "0000000001000000", *["00000000"] * 3]),
    kind="acceptance",
    source="silent repair",
)(changing("heterosag.average")(_fitted))
