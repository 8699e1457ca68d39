"""The segment selection matrix: which subgroups mask each segment together, and what its cells give away.

====================  ==========================================
paper                 here
====================  ==========================================
B(l, g)               `entries`: the smaller of the two in a cell, `ALONE` for *
delta(A)              `inference_robustness`
L_g, Z                the arguments of `algorithm_2`, and their sum
====================  ==========================================

Source: HeteroSAg, algorithms 1 and 2, definition 1; spec/heterosag.md, section 4 (HSA-06, HSA-11).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.factorisations import perfect_factorisation
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError

Cell: TypeAlias = tuple[int, ...]
Row: TypeAlias = tuple[Cell, ...]
Matrix: TypeAlias = tuple[Row, ...]
"""The cells of each segment: subgroups ascending in a cell, cells in the order of their first subgroup."""

ALONE = -1
MAX_PARTS = 20
"""The largest number of parts for which all unions are tried."""
_LAST_SUBGROUP = 2**16 - 1


# ------------------------------------------------------------------------------------------------ the matrices


def cyclic(count: int) -> Matrix:
    """Return the matrix of algorithm 1 for `count` subgroups: row l pairs subgroup a with l + 1 - a modulo `count`.

    Time and memory grow with the square of `count`, here and in the functions below.
    """
    count = validate.integer("count", count, 2, validate.MAX_COUNT)
    return tuple(_row((a, (row + 1 - a) % count) for a in range(count)) for row in range(count))


def perfect(count: int) -> Matrix:
    """Return the matrix for `count` subgroups that a perfect one-factorisation defines.

    Raises
    ------
    ParameterError
        No perfect one-factorisation of `count` points is constructed here (HSA-06).
    """
    try:
        count = validate.integer("count", count, 2, validate.MAX_COUNT - 1)
        factors = perfect_factorisation(count + count % 2)
    except ParameterError:
        allowed = "from 2 to 32, or such that it or the number above it is p + 1 or 2p for a prime p and below 2**32"
        raise ParameterError("subgroups in all", count, f"{allowed}, for a perfect matrix") from None
    rows = tuple(_row(tuple(point for point in pair if point < count) for pair in factor) for factor in factors)
    return rows if count % 2 else (*rows, _row((a,) for a in range(count)))


def separate(count: int) -> Matrix:
    """Return the matrix of the naive scheme: each subgroup runs SecAgg by itself, on every segment."""
    count = validate.integer("count", count, 1, validate.MAX_COUNT)
    return (_row((a,) for a in range(count)),) * count


def joint(count: int) -> Matrix:
    """Return the matrix in which all subgroups are one cell, as in SecAgg."""
    count = validate.integer("count", count, 1, validate.MAX_COUNT)
    return (_row([range(count)]),) * count


MATRICES: Mapping[str, Callable[[int], Matrix]] = MappingProxyType(
    {"cyclic": cyclic, "perfect": perfect, "separate": separate, "joint": joint}
)
"""The matrices by name. The specification defines the first two; the others are for comparison."""


def algorithm_1(groups: int) -> list[list[int]]:
    """Return the matrix B as algorithm 1 of the paper builds it, line by line, for one group or more."""
    groups = validate.integer("groups", groups, 1, validate.MAX_COUNT)
    table = [[ALONE] * groups for _ in range(groups)]
    for g in range(groups - 1):
        for r in range(groups - g - 1):
            row = table[(2 * g + r) % groups]
            row[g] = row[g + r + 1] = g
    return table


def algorithm_2(subgroups: Sequence[int], first: Callable[[int], int] = lambda d: d) -> list[list[int]]:
    """Return the matrix B as algorithm 2 builds it; columns and entries are numbered consecutively across all groups.

    Parameters
    ----------
    subgroups : sequence of int
        L_g for each group, at least 1.
    first : function
        The start of the counter s in the loop of subgroup d, in [0, d]; the paper prints 0, but d is correct
        (HET-ALG2).

    Raises
    ------
    ParameterError
        L_g of a group is no integer of at least 1, or `first` gives no integer in [0, d].
    """
    given = enumerate(validate.sequence("subgroups", subgroups, "integers"))
    subgroups = [validate.integer(f"subgroups[{g}]", size, 1, validate.MAX_COUNT) for g, size in given]
    before = [sum(subgroups[:g]) for g in range(len(subgroups) + 1)]
    count, last = before[-1], len(subgroups) - 1
    table = [[ALONE] * count for _ in range(count)]
    for g, size in enumerate(subgroups):
        for d in range(size - (g == last)):
            i, s = 0, validate.integer(f"first({d})", first(d), 0, d)
            for r in range(count - before[g] - d - 1):
                wraps = (d + r + 1) % sum(subgroups[g : g + i + 1]) == 0
                i, s = (i + 1, 0) if wraps else (i, s + 1)
                row = table[(2 * (before[g] + d) + r) % count]
                row[before[g] + d] = row[before[g + i] + s] = before[g] + d
    return table


def entries(matrix: Matrix) -> list[list[int]]:
    """Return the table B: the smaller subgroup of each cell, or `ALONE` for a cell of one.

    Raises
    ------
    ParameterError
        A row does not have each of as many subgroups as there are rows once.
    """
    return [_entries(row) for row in check_square(matrix)]


def _entries(row: Row) -> list[int]:
    found = {a: (min(cell) if len(cell) > 1 else ALONE) for cell in row for a in cell}
    return [found[a] for a in range(len(found))]


def check_square(matrix: Matrix) -> Matrix:
    """Return a matrix if each of its rows has each of as many subgroups as there are rows once.

    Raises
    ------
    ParameterError
        A row has not, or is no sequence of cells, or a cell is empty or no sequence of subgroups.
    """
    matrix = _check_rows(matrix)
    for at, row in enumerate(matrix):
        if sorted(a for cell in row for a in cell) != list(range(len(matrix))):
            raise ParameterError(f"matrix[{at}]", row, f"cells that have each of {len(matrix)} subgroups once")
    return matrix


def _check_rows(matrix: Matrix) -> Matrix:
    """Return a matrix as tuples, if each row is a sequence of cells, each of one subgroup or more in ``[0, 2**16)``."""
    rows = []
    for at, row in enumerate(validate.sequence("matrix", matrix, "rows")):
        name = f"matrix[{at}]"
        named = tuple(zip(validate.entries(name), validate.sequence(name, row, "cells"), strict=False))
        for place, cell in named:
            if not validate.sequence(place, cell, "subgroups"):
                raise ParameterError(name, row, "cells with a subgroup or more")
        rows.append(tuple(tuple(validate.integer(place, a, 0, _LAST_SUBGROUP) for a in cell) for place, cell in named))
    return tuple(rows)


def _check_alike(matrix: Matrix) -> Matrix:
    """Return a matrix if each of its rows has each subgroup of the first row once."""
    matrix = _check_rows(matrix)
    for at, row in enumerate(matrix):
        if sorted(a for cell in row for a in cell) != sorted({a for cell in matrix[0] for a in cell}):
            raise ParameterError(f"matrix[{at}]", row, "cells that have each subgroup of the first row once")
    return matrix


def _row(cells: Iterable[Iterable[int]]) -> Row:
    return tuple(sorted({tuple(sorted(set(cell))) for cell in cells}))


# ------------------------------------------------------------------------------------------ what is given away


@dataclass(frozen=True)
class Robustness(validate.Plain):
    """Definition 1 for a matrix: `value` is delta; the sum of `subgroups` is known in the segments `rows`."""

    value: Fraction
    subgroups: tuple[int, ...]
    rows: tuple[int, ...]


def decodable(matrix: Matrix, subgroups: Collection[int], dropped: Collection[int] = ()) -> tuple[int, ...]:
    """Return the segments in which a set of subgroups is a union of cells, which reveals the sum of the set.

    Parameters
    ----------
    matrix : Matrix
    subgroups : collection of int
        The set; it contains no dropped subgroup.
    dropped : collection of int
        Subgroups without survivors.

    Raises
    ------
    ParameterError
        A subgroup of the set, or a dropped one, is not in the matrix, or is both; or a row does not have each
        subgroup of the first once.
    """
    found = _decodable(_check_alike(matrix), subgroups, dropped)
    if both := sorted({*subgroups} & {*dropped}):
        raise ParameterError("subgroups", both, "without those that are dropped")
    return found


def _decodable(matrix: Matrix, subgroups: Collection[int], dropped: Collection[int]) -> tuple[int, ...]:
    wanted, left = _some("subgroups", subgroups, matrix), _without(matrix, dropped)
    return tuple(
        at for at, row in enumerate(left) if all(wanted >= set(cell) or not wanted & set(cell) for cell in row)
    )


def inference_robustness(matrix: Matrix, dropped: Collection[int] = ()) -> Robustness:
    """Return 1 - the largest share of segments that are decodable for one set, with such a set as witness.

    A set that is decodable in two rows is a union of parts: the connected components of the cells of both rows. So all
    unions of the parts of every two rows are tried, and one cell of each row for sets decodable in a single row.

    Raises
    ------
    ParameterError
        Two rows have more than `MAX_PARTS` parts, there is no row, a subgroup is not in ``[0, 2**16)``, a row does
        not have each subgroup of the first once, or a dropped subgroup is not in the matrix.

    Source: HeteroSAg, definition 1, for sets that are neither empty nor all subgroups.
    """
    matrix = _check_alike(matrix)
    if not matrix:
        raise ParameterError("matrix", matrix, "of one row or more")
    best = _single(matrix, dropped)
    for parts in _parts_of_pairs(_without(matrix, dropped)):
        if len(best[1]) == len(matrix):
            break
        best = max(best, _best_union(matrix, dropped, parts), key=lambda found: len(found[1]))
    return Robustness(1 - Fraction(len(best[1]), len(matrix)), *best)


def _single(matrix: Matrix, dropped: Collection[int]) -> tuple[Cell, tuple[int, ...]]:
    cells = (row[0] for row in _without(matrix, dropped) if len(row) > 1)
    found = [(cell, _decodable(matrix, cell, dropped)) for cell in cells]
    return max(found, key=lambda pair: len(pair[1]), default=((), ()))


def _parts_of_pairs(matrix: Sequence[Row]) -> Iterator[tuple[int, ...]]:
    """Yield the parts of every two rows, as bits; skip two rows that have a single part."""
    seen = set()
    for first, second in combinations(matrix, 2):
        parts = _connected([*first, *second])
        if len(parts) > 1 and parts not in seen:
            seen.add(parts)
            yield parts


def _connected(cells: Iterable[Cell]) -> tuple[int, ...]:
    parts: list[int] = []
    for cell in cells:
        bits = sum(1 << a for a in cell)
        touched = [part for part in parts if part & bits]
        parts = [part for part in parts if not part & bits]
        parts.append(bits | _union(touched))
    return tuple(sorted(parts))


def _union(sets: Iterable[int]) -> int:
    together = 0
    for bits in sets:
        together |= bits
    return together


def _best_union(matrix: Matrix, dropped: Collection[int], parts: Sequence[int]) -> tuple[Cell, tuple[int, ...]]:
    """Return the union of parts that is decodable in the most rows; only unions without the last part are tried."""
    if len(parts) > MAX_PARTS:
        raise ParameterError("matrix", f"{len(parts)} parts of two rows", f"of at most {MAX_PARTS}")
    part_of = {a: at for at, part in enumerate(parts) for a in range(part.bit_length()) if part >> a & 1}
    unions = np.arange(1, 2 ** (len(parts) - 1), dtype=np.uint64)
    holds = [(unions >> np.uint64(at)) & np.uint64(1) for at in range(len(parts))]
    counts = np.zeros(len(unions), np.int64)
    for row in _without(matrix, dropped):
        pairs = {(part_of[cell[0]], part_of[a]) for cell in row for a in cell}
        counts += np.all([holds[one] == holds[other] for one, other in pairs], axis=0)
    best = int(unions[int(np.argmax(counts))])
    subgroups = tuple(a for a in sorted(part_of) if best >> part_of[a] & 1)
    return subgroups, _decodable(matrix, subgroups, dropped)


def _without(matrix: Matrix, dropped: Collection[int]) -> list[Row]:
    """Return the cells that are left after the removal of subgroups without survivors."""
    out = _some("dropped", dropped, matrix)
    return [tuple(cell for cell in (tuple(a for a in old if a not in out) for old in row) if cell) for row in matrix]


def _some(name: str, subgroups: Collection[int], matrix: Matrix) -> set[int]:
    """Return some subgroups of a matrix as a set; refuse others."""
    given = list(validate.collection(name, subgroups, "subgroups"))
    known = {a for row in matrix[:1] for cell in row for a in cell}
    strange = [a for a in given if not isinstance(validate.number(a), int) or a not in known]
    if strange:
        raise ParameterError(name, strange, "subgroups of the matrix")
    return set(given)


guard(__name__)
