"""From real numbers to the quantised segments of a user, and from the sums of cells back to real numbers.

Source: HeteroSAg eq. (3), sections 4.1 and 4.2; spec/heterosag.md, sections 3 and 7 (HSA-07 to HSA-10, HSA-23 to
HSA-26).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secagg_spec.arithmetic import averages, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.levels import cell_mean, quantize_levels
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.heterosag.plan import Cell, Parameters, cells_of


@dataclass(frozen=True, eq=False)
class CellSum(validate.Plain):
    """The server's result for one cell: the sum of the quantised segment over the survivors."""

    cell: Cell
    survivors: tuple[int, ...]
    total: UintArray


def quantize_update(
    parameters: Parameters, user: int, x: RealArray, *, rounding: RealArray, clip: bool = False
) -> UintArray:
    """Quantise a user's input, each segment with the levels of its cell.

    Parameters
    ----------
    parameters : Parameters
    user : int
        In ``[0, N)``.
    x, rounding : array (d,) of float64
        The input in ``[r1, r2]``, and the draws, uniform in ``[0, 1)``.
    clip : bool
        Whether to move numbers outside the range to its bounds instead of refusing them (HSA-07).

    Returns
    -------
    array (d,) of uint64, below K of the cell

    Raises
    ------
    OutOfRange
        A number is outside the range (HSA-07), or a draw is outside ``[0, 1)`` (HSA-09).
    LengthMismatch
        There are not d numbers and d draws.
    ParameterError
        The user is not on the roster, or `clip` is no truth value.

    Source: HeteroSAg eq. (3) with algorithm 1.
    """
    x = parameters.range.clip(x) if clip else x
    x, rounding = (validate.reals(name, value, (parameters.d,)) for name, value in (("x", x), ("rounding", rounding)))
    own = cells_of(parameters, user)
    parts = ((cell, slice(cell.start, cell.stop)) for cell in own)
    return np.concatenate(
        [
            quantize_levels(
                x[here], levels=cell.levels, range=parameters.range, rounding=rounding[here], first=cell.start
            )
            for cell, here in parts
        ]
    )


def combine(parameters: Parameters, sums: Sequence[CellSum], method: str = "mean", trim: int = 0) -> RealArray:
    """Return the aggregate, d real numbers, from the sums of the cells with survivors.

    Parameters
    ----------
    parameters : Parameters
    sums : sequence of CellSum
        The sums of one round.
    method : str
        ``"mean"``, ``"median"`` or ``"trimmed"``.
    trim : int
        b of the trimmed mean.

    Raises
    ------
    LengthMismatch
        The total of a cell does not have the length of its segment.
    ParameterError
        The sums are no sequence of `CellSum`, have a cell twice, a cell of other parameters or none of a segment, or
        survivors that are not users of the cell, each once; the method is unknown, ``2 * trim`` is not below the number
        of cells of a segment (HSA-26), or `trim` is not 0 for a method that does not trim (ADP-39).

    Source: HeteroSAg, sections 4.1 and 4.2; HSA-23 to HSA-26.
    """
    _check_sums(parameters, validate.sequence("sums", sums, "CellSum"))
    return np.concatenate([_combined(parameters, row, method, trim) for row in _rows(parameters, sums)])


def _check_sums(parameters: Parameters, sums: Sequence[CellSum]) -> None:
    """Refuse what is no sum of a cell of the parameters over some of its users, and a cell that comes twice."""
    cells = {(cell.segment, cell.subgroups): cell for cell in parameters.parts}
    seen = set[tuple[int, tuple[int, ...]]]()
    for at, found in enumerate(sums):
        cell = found.cell
        validate.elements(f"sums[{at}].total", found.total, cell.ring.modulus, (cell.stop - cell.start,))
        if cells.get((cell.segment, cell.subgroups)) != cell:
            raise ParameterError(f"sums[{at}].cell", f"that of segment {cell.segment}", "a cell of the parameters")
        if (cell.segment, cell.subgroups) in seen:
            raise ParameterError(f"sums[{at}]", f"the cell of segment {cell.segment} again", "one sum for each cell")
        seen.add((cell.segment, cell.subgroups))
        survivors = validate.users(f"sums[{at}].survivors", found.survivors, parameters.N)
        if not survivors or not cell.members.issuperset(survivors):
            raise ParameterError(f"sums[{at}].survivors", list(survivors), f"some of the users {sorted(cell.members)}")


def _rows(parameters: Parameters, sums: Sequence[CellSum]) -> list[list[CellSum]]:
    rows = [[found for found in sums if found.cell.segment == segment] for segment in range(parameters.count)]
    if not all(rows):
        raise ParameterError("sums", f"none of segment {rows.index([])}", "one of a cell of each segment, or more")
    return rows


def _combined(parameters: Parameters, row: Sequence[CellSum], method: str, trim: int) -> RealArray:
    counts = [len(found.survivors) for found in row]
    means = np.array(
        [
            cell_mean(found.total, count=count, levels=found.cell.levels, range=parameters.range)
            for found, count in zip(row, counts, strict=True)
        ]
    )
    return averages.combined(means, counts, method, trim)


guard(__name__)
