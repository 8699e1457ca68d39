"""Prints a segment selection matrix, and what its cells reveal.

Source: HeteroSAg, definition 1, theorems 1 and 4; spec/heterosag.md, section 4.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest

from secagg_spec.arithmetic.segments import Cell, Matrix, Robustness, Row
from secagg_spec.privacy.wording import runs

MOST = 35
"""The number of subgroups in a line."""
GONE, LEFT, ALONE = ".", "!", "*"
_WIDTH = 110
_BETWEEN = 6
_COLOURS = (36, 33, 35, 32, 34, 96, 93, 95, 92, 94)
_STYLES = {GONE: 2, LEFT: 31, ALONE: 1}


@dataclass(frozen=True)
class Look:
    """How matrices are shown: with colours or without, and the columns of a line."""

    colours: bool = False
    width: int = _WIDTH

    @classmethod
    def of_terminal(cls) -> Look:
        """Return the look for standard output: colours only on a terminal, and only if ``NO_COLOR`` is not set."""
        there = sys.stdout.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(there and not plain, shutil.get_terminal_size((_WIDTH, 24)).columns if there else _WIDTH)


def entries(row: Row, dropped: Collection[int] = ()) -> list[str]:
    """Return the entries of a row of the table B: `ALONE`, `LEFT` (alone after dropouts), `GONE`, or a number.

    The number is the smaller subgroup of the cell.
    """
    cells = {a: cell for cell in row for a in cell}
    return [_entry(a, cells[a], dropped) for a in range(len(cells))]


def _entry(subgroup: int, cell: Cell, dropped: Collection[int]) -> str:
    left = [a for a in cell if a not in dropped]
    if subgroup not in left:
        return GONE
    if len(left) > 1:
        return str(cell[0])
    return ALONE if len(cell) == 1 else LEFT


def table(
    matrix: Matrix,
    *,
    group_of: Sequence[int] | None = None,
    dropped: Collection[int] = (),
    look: Look | None = None,
) -> list[str]:
    """Return the lines of a matrix: a column for each subgroup, a row for each segment.

    Parameters
    ----------
    matrix : Matrix
    group_of : sequence of int
        The group of each subgroup, shown in a row above if groups have several. Without it, subgroups are groups.
    dropped : collection of int
        Subgroups without survivors.
    look : Look
        Without it, no colours.
    """
    count = len(matrix)
    width = len(str(count - 1)) + 1
    heads = [("group", range(count))] if group_of is None else [("group", group_of), ("subgroup", range(count))]
    lines = [f"{name:>9}  " + "".join(f"{number:>{width}}" for number in numbers) for name, numbers in heads]
    lines.append(f"{'segment':>9}  " + " " + "-" * (count * width - 1))
    for at, row in enumerate(matrix):
        painted = (_painted(text, width, look) for text in entries(row, dropped))
        lines.append(f"{at:>9}  " + "".join(painted))
    return lines


def _painted(text: str, width: int, look: Look | None) -> str:
    padding = " " * (width - len(text))
    if look is None or not look.colours:
        return padding + text
    style = _STYLES[text] if text in _STYLES else _COLOURS[int(text) % len(_COLOURS)]
    return f"{padding}\x1b[{style}m{text}\x1b[0m"


def legend(unit: str, dropped: Collection[int]) -> list[str]:
    """Explain the entries; `unit` is the word for a column, a group or a subgroup."""
    lines = [f"a number is the smaller {unit} of the two that mask the segment together, {ALONE} masks it alone"]
    if dropped:
        lines.append(f"{GONE} has dropped out, {LEFT} is left alone by it")
    return lines


def side_by_side(blocks: Sequence[Sequence[str]], look: Look) -> list[str]:
    """Return blocks of lines next to each other, when they fit into a line, or else below each other."""
    widths = [max(_length(line) for line in block) + _BETWEEN for block in blocks]
    if sum(widths) - _BETWEEN > look.width:
        return [line for at, block in enumerate(blocks) for line in (*([""] if at else []), *block)]
    rows = zip_longest(*blocks, fillvalue="")
    return ["".join(_filled(line, size) for line, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def _filled(line: str, size: int) -> str:
    return line + " " * (size - _length(line))


def _length(line: str) -> int:
    """Return how many columns a line takes, colours left out."""
    return sum(len(part.partition("m")[2]) if at else len(part) for at, part in enumerate(line.split("\x1b[")))


# ------------------------------------------------------------------------------------------------- robustness


def claimed(count: int) -> tuple[str, Fraction]:
    """Return the inference robustness that theorems 1 and 4 of the paper have, as they write it and in numbers."""
    return ("(Z - 1)/Z", Fraction(count - 1, count)) if count % 2 else ("(Z - 2)/Z", Fraction(count - 2, count))


def number(value: Fraction) -> str:
    """Return a fraction, and what it is in decimals: ``2/3 (0.667)``."""
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.3f})"


def things(one: str, numbers: Collection[int]) -> str:
    """Return numbers with the name of what they number: ``group 3``, ``groups 0, 2, 4``."""
    return f"{one}{'' if len(numbers) == 1 else 's'} {runs(sorted(numbers), most=40)}" if numbers else f"no {one}"


def witness(found: Robustness, unit: str) -> str:
    """Say which set shows the most, and where."""
    return f"{things(unit, found.subgroups)} in {things('segment', found.rows)}"
