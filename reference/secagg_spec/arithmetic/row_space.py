"""The row space of a growing matrix of zeros and ones modulo a prime: a quick test before exact arithmetic.

What holds modulo a prime need not hold over the rationals. Rows that are independent modulo a prime are independent
over the rationals too; everything else must be certified, as `arithmetic.rationals` does.

Source: spec/multi-round.md, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import BoolArray, UintArray

PRIMES = (2**31 - 1, 2**31 - 19, 2**31 - 61, 2**31 - 69)


class RowSpace:
    """The reduced echelon basis of the rows so far, and each basis row as a combination of the independent rows.

    Parameters
    ----------
    columns : int
        The length of the rows.
    prime : int
        The modulus, at most 2**31.
    """

    def __init__(self, columns: int, prime: int = PRIMES[0]) -> None:
        self.columns = validate.integer("columns", columns, 0, validate.MAX_COUNT)
        self.prime = validate.integer("prime", prime, 2, 2**31)
        self.rank = 0
        self.column = np.zeros(0, dtype=np.uint64)
        self._p = np.uint64(prime)
        self._rows = np.zeros((0, columns), dtype=np.uint64)
        self._origins = np.zeros((0, 0), dtype=np.uint64)
        self._pivots = np.zeros(0, dtype=np.intp)

    @property
    def pivots(self) -> NDArray[np.intp]:
        """The column in which each basis row is 1 and all others are 0."""
        return self._pivots[: self.rank]

    @property
    def basis(self) -> UintArray:
        """The reduced basis, (rank, columns), with its rows in the order in which they were added."""
        return self._rows[: self.rank]

    @property
    def origins(self) -> UintArray:
        """The basis as combinations of the independent rows, (rank, rank): basis = origins @ rows modulo the prime."""
        return self._origins[: self.rank, : self.rank]

    def add(self, row: BoolArray) -> bool:
        """Add a row, and return whether it is independent of the earlier rows modulo the prime.

        If it is, `column` holds the entries that the other basis rows had in the new pivot's column before this call.

        Raises
        ------
        ParameterError
            The row is not a numpy array of truth values, or has another length.
        """
        validate.truths("row", row, (self.columns,))
        hits = np.flatnonzero(row[self.pivots])
        rest = self._less(row.astype(np.uint64), self.basis[hits])
        places = np.flatnonzero(rest)
        if places.size:
            own = np.zeros(self.rank + 1, dtype=np.uint64)
            own[self.rank] = 1
            own[: self.rank] = self._less(own[: self.rank], self.origins[hits])
            self._extend(rest, own, int(places[0]))
        return bool(places.size)

    def units(self) -> NDArray[np.intp]:
        """Return, ascending, the columns whose unit vector is in the space, modulo the prime."""
        return np.sort(self.pivots[np.count_nonzero(self.basis, axis=1) == 1])

    def _less(self, row: UintArray, known: UintArray) -> UintArray:
        known_sum: UintArray = known.sum(axis=0, dtype=np.uint64) % self._p
        return (row + self._p - known_sum) % self._p

    def _extend(self, rest: UintArray, own: UintArray, pivot: int) -> None:
        self._grow()
        inverse = np.uint64(pow(int(rest[pivot]), -1, self.prime))
        self.column = self.basis[:, pivot].copy()
        for rows, new in ((self._rows, rest * inverse % self._p), (self._origins, own * inverse % self._p)):
            self._clear(rows, new)
        self._pivots[self.rank] = pivot
        self.rank += 1

    def _clear(self, rows: UintArray, new: UintArray) -> None:
        """Append the new row, and subtract it from each other row, times that row's entry in the pivot's column."""
        held, support = np.flatnonzero(self.column), np.flatnonzero(new)
        factors = (self._p - self.column[held])[:, np.newaxis]
        block = np.ix_(held, support)
        sums = factors * new[support]  # below 2**62
        sums += rows[block]
        sums -= sums // self._p * self._p  # numpy divides several times faster than it finds remainders
        rows[block] = sums
        rows[self.rank, : len(new)] = new

    def _grow(self) -> None:
        """Make room for one more row."""
        if self.rank == len(self._rows):
            room = min(2 * self.rank + 16, self.columns)
            more = room - self.rank
            self._rows = np.pad(self._rows, ((0, more), (0, 0)))
            self._origins = np.pad(self._origins, ((0, more), (0, more)))
            self._pivots = np.pad(self._pivots, (0, more))
