"""Combine the means of a segment's cells into one segment: mean, coordinate-wise median, trimmed mean.

Source: HeteroSAg, sections 4.1 and 4.2; spec/heterosag.md, section 7 (HSA-24 to HSA-26).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, ParameterError

METHODS = ("mean", "median", "trimmed")


def combined(means: RealArray, counts: Sequence[int], method: str = "mean", trim: int = 0) -> RealArray:
    """Return one segment of an aggregate from the means (cells, L) of its cells.

    Parameters
    ----------
    means : array (cells, L) of float64
    counts : sequence of int
        The number of users in each cell.
    method : str
        ``"mean"``, ``"median"`` or ``"trimmed"``.
    trim : int
        b of the trimmed mean; 0 for the other methods.

    Raises
    ------
    ParameterError
        The method is unknown, or does not allow this `trim` (HSA-26, ADP-39), or a count is below 1 in a mean.
    LengthMismatch
        The number of counts differs from the number of cells.

    Source: HeteroSAg, sections 4.1 and 4.2; HSA-24 to HSA-26.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ParameterError("method", method, " or ".join(map(repr, METHODS)))
    _one_each(_cells(means), counts)
    if method == "trimmed":
        return trimmed_mean(means, trim)
    validate.integer("trim", trim, 0, 0)
    return weighted_mean(means, counts) if method == "mean" else median(means)


def weighted_mean(means: RealArray, counts: Sequence[int]) -> RealArray:
    """Return the mean over all users, given the means (cells, L) of the cells and their numbers of users (HSA-24).

    Raises
    ------
    ParameterError
        A count is below 1, or there is no cell.
    LengthMismatch
        The number of counts differs from the number of cells.
    """
    means = _cells(means)
    _one_each(means, counts)
    weights = [validate.integer(f"counts[{at}]", one, 1, validate.MAX_COUNT) for at, one in enumerate(counts)]
    return _average(means, weights)


def median(means: RealArray) -> RealArray:
    """Return the coordinate-wise median of the means (cells, L): for an even number, the mean of two (HSA-25)."""
    means = _cells(means)
    return trimmed_mean(means, (len(means) - 1) // 2)


def trimmed_mean(means: RealArray, trim: int) -> RealArray:
    """Return the coordinate-wise mean of the means (cells, L) without the `trim` largest and smallest values (HSA-26).

    Raises
    ------
    ParameterError
        `trim` is below 0, or not below half the number of cells.
    """
    means = _cells(means)
    trim = validate.integer("trim", trim, 0, (len(means) - 1) // 2)
    kept = np.sort(means, axis=0)[trim : len(means) - trim]
    return _average(kept, [1] * len(kept))


def _average(means: RealArray, weights: Sequence[int]) -> RealArray:
    """Return the weighted mean of each coordinate, scaled by a power of two so that no sum is too large.

    Rows are added one at a time: how a matrix or vector product rounds depends on the processor.
    """
    exponents = np.frexp(np.abs(means).max(axis=0))[1]
    scaled = np.ldexp(means, -exponents)
    total = np.zeros(scaled.shape[1])
    for weight, row in zip(weights, scaled, strict=True):
        total += weight * row
    average = total / sum(weights)
    return np.asarray(np.ldexp(np.clip(average, scaled.min(axis=0), scaled.max(axis=0)), exponents), np.float64)


def _one_each(means: RealArray, counts: Sequence[int]) -> None:
    if len(validate.sequence("counts", counts, "integers")) != len(means):
        raise LengthMismatch("len(counts)", len(counts), f"{len(means)}, one for each cell")


def _cells(means: RealArray) -> RealArray:
    means = validate.reals("means", means, (None, None))
    validate.integer("len(means)", len(means), 1)
    return means


guard(__name__)
