"""Compute row echelon forms over a prime field, for sparse matrices such as views.

A view is sparse: a user's messages mention that user's symbols only. So an elimination step touches only the rows with
a nonzero entry in the pivot's column, and only the columns with a nonzero entry in the pivot's row. Most views are also
small; these are eliminated in Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray

_SMALL = 512
"""The most entries of a matrix that is eliminated in Python integers: one numpy call costs as much as many of these."""


@dataclass(frozen=True, eq=False)
class Echelon:
    """An eliminated matrix: each pivot is the (row, column) of an entry; rows keep their places."""

    work: UintArray
    pivots: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self.pivots)

    @property
    def basis(self) -> UintArray:
        """The rows with a pivot, in the order of the pivots' columns."""
        return self.work[[row for row, _ in self.pivots]]

    @property
    def rest(self) -> UintArray:
        """The rows without a pivot: they are 0 in every column that was eliminated."""
        kept = np.ones(len(self.work), dtype=bool)
        kept[[row for row, _ in self.pivots]] = False
        return self.work[kept]


def eliminate(field: PrimeField, matrix: UintArray, columns: int | None = None, *, reduced: bool = False) -> Echelon:
    """Eliminate the first `columns` columns (all when left out) of an (m, n) matrix.

    With `reduced`, each pivot is 1 and the only nonzero entry in its column.

    Raises `ParameterError` for a number of columns that is not in [0, n], and for a matrix that has no elements of the
    field as entries; so do the functions below.
    """
    width = field.check("matrix", matrix, (None, None)).shape[1]
    columns = width if columns is None else validate.integer("columns", columns, 0, width)
    if matrix.size <= _SMALL:
        return _eliminate_small(field.modulus, matrix, columns, reduced=reduced)
    work = matrix.copy()
    free = np.ones(len(work), dtype=bool)
    pivots: list[tuple[int, int]] = []
    for column in range(columns):
        hits = np.flatnonzero(work[:, column])
        candidates = hits[free[hits]]
        if candidates.size:
            row = int(candidates[0])
            free[row] = False
            pivots.append((row, column))
            others = hits[hits != row] if reduced else candidates[1:]
            _clear(field, work, row, column, others, reduced)
    return Echelon(work, tuple(pivots))


def rank(field: PrimeField, matrix: UintArray) -> int:
    """Return the rank of an (m, n) matrix."""
    return eliminate(field, matrix).rank


def reduced_basis(field: PrimeField, matrix: UintArray) -> UintArray:
    """Return the reduced row echelon form without zero rows."""
    return eliminate(field, matrix, reduced=True).basis


def independent_rows(field: PrimeField, matrix: UintArray) -> list[int]:
    """Return the indices, ascending, of the rows that are not combinations of the rows before them."""
    return [column for _, column in eliminate(field, _transposed(matrix)).pivots]


def _transposed(matrix: UintArray) -> UintArray:
    return np.ascontiguousarray(validate.array("matrix", matrix, np.uint64).T)


def _eliminate_small(p: int, matrix: UintArray, columns: int, *, reduced: bool) -> Echelon:
    """Eliminate as `eliminate` does, on lists of Python integers."""
    rows: list[list[int]] = matrix.tolist()
    free = [True] * len(rows)
    pivots: list[tuple[int, int]] = []
    for column in range(columns):
        hits = [at for at, row in enumerate(rows) if row[column]]
        chosen = next((at for at in hits if free[at]), None)
        if chosen is not None:
            free[chosen] = False
            pivots.append((chosen, column))
            others = [rows[at] for at in hits if at != chosen and (reduced or free[at])]
            _clear_small(p, rows[chosen], column, others, reduced)
    return Echelon(np.array(rows, dtype=np.uint64).reshape(matrix.shape), tuple(pivots))


def _clear_small(p: int, pivot: list[int], column: int, others: list[list[int]], reduced: bool) -> None:
    inverse = pow(pivot[column], -1, p)
    monic = [(at, divmod(entry * inverse, p)[1]) for at, entry in enumerate(pivot) if entry]
    if reduced:
        for at, entry in monic:
            pivot[at] = entry
    for row in others:
        factor = row[column]
        for at, entry in monic:
            row[at] = divmod(row[at] - factor * entry, p)[1]


def _clear(field: PrimeField, work: UintArray, row: int, column: int, others: NDArray[np.intp], reduced: bool) -> None:
    """Set the entries of `others` in the pivot's column to 0 and, with `reduced`, the pivot to 1."""
    support = np.flatnonzero(work[row])
    inverse = np.uint64(pow(int(work[row, column]), -1, field.modulus))
    monic = field.multiply(work[row, support], np.broadcast_to(inverse, support.shape))
    if reduced:
        work[row, support] = monic
    if others.size:
        block: Any = np.ix_(others, support)
        shape = (others.size, support.size)
        factors = np.broadcast_to(work[others, column][:, np.newaxis], shape)
        work[block] = field.subtract(work[block], field.multiply(factors, np.broadcast_to(monic, shape)))


guard(__name__)
