"""The row space of a growing matrix of zeros and ones modulo a prime: a quick test before exact arithmetic.

What holds modulo a prime need not hold over the rationals. Rows that are independent modulo a prime are independent
over the rationals too; everything else must be certified, as `arithmetic.rationals` does.

Source: spec/multi-round.md, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.limbs import exact_matmul
from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import ParameterError

PRIMES = (2**31 - 1, 2**31 - 19, 2**31 - 61, 2**31 - 69)


class RowSpace:
    """The reduced echelon basis of the rows so far, and each basis row as a combination of the independent rows.

    Parameters
    ----------
    columns : int
        The length of the rows.
    prime : int
        The modulus, a prime of at most 2**31.

    Raises
    ------
    ParameterError
        The columns are no count, or the modulus is no such prime.
    """

    def __init__(self, columns: int, prime: int = PRIMES[0]) -> None:
        self.columns = validate.integer("columns", columns, 0, validate.MAX_COUNT)
        self.prime = validate.integer("prime", prime, 2, 2**31)
        if not is_prime(self.prime):
            raise ParameterError("prime", self.prime, "a prime")
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

    def extended(self, rows: BoolArray) -> tuple[RowSpace, list[int]]:
        """Return the space after `add` of all rows in turn, but for its `column`, and the independent ones among them.

        This space does not change. Many rows are added faster together: by a few products of matrices.
        """
        validate.truths("rows", rows, (None, self.columns))
        hits = np.ascontiguousarray(rows[:, self.pivots].astype(np.uint64))
        rest = self._minus(rows.astype(np.uint64), hits, self.basis)
        own = np.zeros((len(rows), self.rank + len(rows)), dtype=np.uint64)
        own[:, : self.rank] = self._minus(own[:, : self.rank], hits, self.origins)
        own[:, self.rank :] = np.eye(len(rows), dtype=np.uint64)
        kept, pivots = self._reduce(rest, own)
        new = RowSpace(self.columns, self.prime)
        new.rank = self.rank + len(kept)
        new._pivots = np.concatenate([self.pivots, np.array(pivots, dtype=np.intp)])
        own = own[np.ix_(kept, [*range(self.rank), *(self.rank + at for at in kept)])]
        factors = np.ascontiguousarray(self.basis[:, pivots])
        before = np.pad(self.origins, ((0, 0), (0, len(kept))))
        new._rows = np.concatenate([self._minus(self.basis, factors, rest[kept]), rest[kept]])
        new._origins = np.concatenate([self._minus(before, factors, own), own])
        return new, kept

    def _minus(self, rows: UintArray, factors: UintArray, known: UintArray) -> UintArray:
        """Return rows minus factors @ known."""
        product = exact_matmul(factors, np.ascontiguousarray(known), self.prime)
        return (rows + (self._p - product)) % self._p

    def _reduce(self, rest: UintArray, own: UintArray) -> tuple[list[int], list[int]]:
        """Bring rows to reduced echelon form in place, in turn; return which are not zero, and their pivots."""
        kept, pivots = list[int](), list[int]()
        for at in range(len(rest)):
            places = np.flatnonzero(rest[at])
            if places.size:
                pivot = int(places[0])
                inverse = np.uint64(pow(int(rest[at, pivot]), -1, self.prime))
                factors = rest[:, pivot].copy()
                factors[at] = 0
                for matrix in (rest, own):
                    matrix[at] = matrix[at] * inverse % self._p
                    held = np.flatnonzero(factors)
                    matrix[held] = (matrix[held] + (self._p - factors[held, np.newaxis]) * matrix[at]) % self._p
                kept.append(at)
                pivots.append(pivot)
        return kept, pivots

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


guard(__name__)
