"""Count, for every union of subgroups, the segments in which HeteroSAg reveals the sum over it.

A set of subgroups is decodable in a row when no cell has one subgroup inside the set and another one, with survivors,
outside it. This module applies the definition itself; `segments.inference_robustness` finds the same largest share
without counting every set.

Source: HeteroSAg, definition 1; spec/heterosag.md, section 4.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.segments import Matrix, check_square
from secagg_spec.errors import ParameterError

Users = tuple[int, ...]
_MOST = 20
"""The most subgroups whose unions are counted; more have too many unions."""


class Unions:
    """All sets of the subgroups of a matrix, each numbered by its members as bits.

    Parameters
    ----------
    matrix : Matrix
        A matrix of 1 to 20 subgroups, with one or two in each cell.

    Raises
    ------
    ParameterError
        The matrix has no subgroup or more than 20, or more than two in a cell, or a row does not have each once.
    """

    def __init__(self, matrix: Matrix) -> None:
        if not 1 <= len(check_square(matrix)) <= _MOST or any(len(cell) > 2 for row in matrix for cell in row):
            raise ParameterError("matrix", matrix, f"a matrix of 1 to {_MOST} subgroups, one or two in each cell")
        self.matrix, self.count = matrix, len(matrix)
        self.sets = np.arange(2**self.count, dtype=np.uint32)
        self._partners = [_partners(row) for row in matrix]
        self._spoiled = [self._cut(partners) for partners in self._partners]

    def _cut(self, partners: Users) -> NDArray[np.uint32]:
        """Return, for each set, the subgroups (as bits) whose partner is on the other side."""
        cut = np.zeros_like(self.sets)
        for a, b in enumerate(partners):
            cut |= (((self.sets >> a) ^ (self.sets >> b)) & 1) << a
        return cut

    def counts(self, dropped: Collection[int] = ()) -> NDArray[np.int64]:
        """Return, for each set, the number of rows in which it is decodable; -1 if it has a dropped subgroup.

        Raises `ParameterError` for a dropped subgroup that is not in the matrix, as `most` and `share` do.
        """
        out = {validate.integer("dropped", z, 0, self.count - 1) for z in dropped}
        found = np.zeros(len(self.sets), np.int64)
        for partners, spoiled in zip(self._partners, self._spoiled, strict=True):
            free = sum(1 << a for a, b in enumerate(partners) if a in out or b in out)
            found += (spoiled & np.uint32(2**self.count - 1 - free)) == 0
        found[(self.sets & np.uint32(sum(1 << z for z in out))) != 0] = -1
        return found

    def most(self, dropped: Collection[int] = ()) -> tuple[int, Users]:
        """Return the largest count of a nonempty, proper set of the subgroups left, and the first set that has it.

        Where at most one subgroup is left there is no such set: 0 and the empty set.
        """
        counts, out = self.counts(dropped), sum(1 << z for z in set(dropped))
        counts[0] = counts[2**self.count - 1 - out] = -1
        best = int(np.argmax(counts))
        return max(int(counts[best]), 0), self.members(best)

    def share(self, dropped: Collection[int] = ()) -> Fraction:
        """Return the largest share of segments in which a set is decodable, 1 - delta; 0 without such a set."""
        return Fraction(self.most(dropped)[0], self.count)

    def members(self, number: int) -> Users:
        """Return the subgroups of a set; raises `ParameterError` for a number that is that of none."""
        number = validate.integer("number", number, 0, len(self.sets) - 1)
        return tuple(z for z in range(self.count) if number >> z & 1)


def _partners(row: Collection[Users]) -> Users:
    """Return the subgroup that shares a cell with each subgroup; the subgroup itself if it is alone."""
    return tuple(b for _, b in sorted((a, b) for cell in row for a, b in zip(cell, cell[::-1], strict=True)))


guard(__name__)
