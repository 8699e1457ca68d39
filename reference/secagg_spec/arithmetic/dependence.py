"""Find small dependent sets of columns of a matrix modulo a prime; all sets of a given size are searched, in bulk.

A set of k columns is dependent exactly when, modulo k - 2 of them, the two others are parallel. The search therefore
enumerates the sets of k - 2 columns. It reduces all later columns modulo each set, to two numbers each, and compares
the ratios of these numbers.

First the rows are mixed down to k rows. A set that is found is verified on all rows. The search can miss a set if
mixing makes k - 1 independent columns dependent, which has a probability of about 1/q^2 per set. So rows are mixed
over large fields only; over smaller fields the rank of each set is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray

MODULI = 2**31
"""Moduli are below this; the sum of two products then fits into 64 bits."""
_MIXED = 2**30
"""Rows are mixed over fields with at least this many elements."""
_MIXINGS = 3
_MOST_STATES = 2**13
_Sets = NDArray[np.intp]


class _Unlucky(Exception):
    """The mixed rows hide a dependence: mix again with another seed."""


def cost(columns: int, size: int) -> int:
    """Return approximately how many columns `lightest` compares."""
    return comb(columns, max(size - 1, 1)) if size else 0


def lightest(field: PrimeField, matrix: UintArray, size: int, weights: NDArray[np.int64]) -> tuple[int, ...] | None:
    """Return a lightest dependent set of `size` columns; None only if each such set has a dependent proper subset.

    A set with a dependent proper subset may or may not be found. This is for checked arguments.

    Parameters
    ----------
    field : PrimeField
        Its modulus is below `MODULI`.
    matrix : uint64 array (d, n), d >= size
    size : int
        At least 1.
    weights : int64 array (n,)
        Ascending. The weight of a set is the sum of the weights of its columns.
    """
    assert field.modulus < MODULI
    assert matrix.shape[0] >= size >= 1
    for seed in range(1, _MIXINGS + 1) if field.modulus >= _MIXED else ():
        try:
            found = _lightest(field, field.matmul(_mixer(field, size, matrix.shape[0], seed), matrix), weights)
        except _Unlucky:
            continue
        if found is None or field.rank(np.ascontiguousarray(matrix[:, found])) < size:
            return found
    return _tried(field, matrix, size, weights)


def _tried(field: PrimeField, matrix: UintArray, size: int, weights: NDArray[np.int64]) -> tuple[int, ...] | None:
    """Return the same as `lightest`: compute the rank of each set that is lighter than the best set so far."""
    best: tuple[int, tuple[int, ...] | None] = int(weights.sum()) + 1, None
    for chosen in combinations(range(matrix.shape[1]), size):
        weight = int(weights[list(chosen)].sum())
        if weight < best[0] and field.rank(np.ascontiguousarray(matrix[:, chosen])) < size:
            best = weight, chosen
    return best[1]


def _mixer(field: PrimeField, rows: int, columns: int, seed: int) -> UintArray:
    """Return numbers that do not depend on the matrix: consecutive integers scrambled by repeated squaring."""
    steps = np.arange(1, rows * columns + 1, dtype=np.uint64) + np.uint64(seed * 1_000_003)
    for _ in range(5):
        steps = (steps * steps + np.uint64(0x9E3779B9)) % np.uint64(field.modulus)
    return steps.reshape(rows, columns)


def _lightest(field: PrimeField, mixed: UintArray, weights: NDArray[np.int64]) -> tuple[int, ...] | None:
    best: tuple[int, tuple[int, ...]] | None = None
    for sets in _dependent(field, mixed):
        sums = weights[sets].sum(axis=1)
        at = int(np.argmin(sums))
        if best is None or sums[at] < best[0]:
            best = int(sums[at]), tuple(sets[at].tolist())
    return None if best is None else best[1]


def _dependent(field: PrimeField, rows: UintArray) -> Iterator[_Sets]:
    """Yield dependent sets of k columns of a matrix with k rows, ascending, in bulk."""
    size, count = rows.shape
    if count < size:
        return
    if size == 1:
        zero = np.flatnonzero(rows[0] == 0)
        yield from [zero[:, None]] if zero.size else []
    elif comb(count, max(size - 3, 0)) > _MOST_STATES:
        for first in range(count):
            if rows[:, first].any():
                later = _modulo(field, rows[None, :, first + 1 :], rows[None, :, first])[0]
                found = _dependent(field, later)
                yield from (np.insert(sets + first + 1, 0, first, axis=1) for sets in found)
    else:
        yield from _breadth_first(field, rows)


def _breadth_first(field: PrimeField, rows: UintArray) -> Iterator[_Sets]:
    size, count = rows.shape
    states, chosen = rows[None], np.empty((1, 0), dtype=np.intp)
    for depth in range(size - 3):
        parts = [_children(field, states, chosen, column, 0) for column in range(depth, count)]
        states, chosen = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    if size == 2:
        yield from _parallel(field, states, chosen, 0)
        return
    for column in range(size - 3, count - 2):
        children, sets = _children(field, states, chosen, column, column + 1)
        yield from _parallel(field, children, sets, column + 1)


def _children(field: PrimeField, states: UintArray, chosen: _Sets, column: int, start: int) -> tuple[UintArray, _Sets]:
    """Extend each set of earlier columns by `column`; return the columns from `start` on modulo each, and the sets."""
    earlier = chosen[:, -1] < column if chosen.shape[1] else np.ones(1, dtype=bool)
    there = earlier & states[:, :, column].any(axis=1)
    kept = states[there]
    sets = np.column_stack([chosen[there], np.full(len(kept), column, dtype=np.intp)])
    return _modulo(field, kept[:, :, start:], kept[:, :, column]), sets


def _modulo(field: PrimeField, states: UintArray, column: UintArray) -> UintArray:
    """Return the columns of each state, (B, k, n), modulo a nonzero column per state, (B, k): shape (B, k - 1, n)."""
    if not column[:, 0].all():
        raise _Unlucky
    products = states[:, 1:] * column[:, :1, None]
    products += np.uint64(field.modulus) ** np.uint64(2) - states[:, :1] * column[:, 1:, None]
    return _reduced(field, products)


def _reduced(field: PrimeField, a: UintArray) -> UintArray:
    quotient: UintArray = a // np.uint64(field.modulus)
    return a - quotient * np.uint64(field.modulus)


def _parallel(field: PrimeField, states: UintArray, chosen: _Sets, start: int) -> Iterator[_Sets]:
    """Yield each set together with two further columns that are parallel modulo it."""
    if not states.size:
        return
    ratios = _ratios(field, states[:, 0], states[:, 1])
    ordered = np.sort(ratios, axis=1)
    with_equal = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if with_equal.any():
        yield _equal(ratios[with_equal], chosen[with_equal], start)


def _equal(ratios: UintArray, chosen: _Sets, start: int) -> _Sets:
    """Return the sets extended by two columns of equal ratio, including the earliest two of each ratio."""
    order = np.argsort(ratios, axis=1, kind="stable")
    ordered = np.take_along_axis(ratios, order, axis=1)
    state, place = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    return np.column_stack([chosen[state], start + order[state, place], start + order[state, place + 1]])


def _ratios(field: PrimeField, x: UintArray, y: UintArray) -> UintArray:
    """Return y/x, and 0 where both are zero."""
    zero = x == 0
    if (zero & (y != 0)).any():
        raise _Unlucky
    inverse = _inverse(field, np.where(zero, np.uint64(1), x).ravel()).reshape(x.shape)
    return _reduced(field, inverse * y)


def _inverse(field: PrimeField, a: UintArray) -> UintArray:
    """Return the inverses of many elements, computed from the inverses of products of two."""
    if a.size < 32:
        return field.inverse(a)
    half = a.size // 2
    left, right = a[:half], a[half : 2 * half]
    both = _inverse(field, _reduced(field, left * right))
    inverses = [_reduced(field, both * right), _reduced(field, both * left), field.inverse(a[2 * half :])]
    return np.concatenate(inverses)


guard(__name__)
