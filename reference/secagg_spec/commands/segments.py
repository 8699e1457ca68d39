"""The command ``secagg-spec segments``: which users mask which segment together, and what that reveals."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from secagg_spec import system
from secagg_spec.arithmetic import segments, validate
from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.arithmetic.segments import Matrix, Robustness, inference_robustness
from secagg_spec.conformance.adapter.plain import visible
from secagg_spec.conformance.adapter.values import writable_file
from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.privacy.wording import numbers
from secagg_spec.simulate.drawing import Panel, picture
from secagg_spec.simulate.matrices import (
    MOST,
    Look,
    claimed,
    legend,
    number,
    side_by_side,
    table,
    things,
    witness,
)
from secagg_spec.simulate.narration import counted

_CHOICES = ("both", "cyclic", "perfect")
_FEW = 16
_LEAST = 20
"""The least width of a sentence; a narrower terminal breaks its lines."""
_EPILOG = """The inference robustness is 1 minus the largest share of segments in which the sum of one set of groups is
known, over all sets that are neither empty nor all (spec/heterosag.md, section 4).

exit codes:
  0  done
  2  wrong usage, a number of groups that is not allowed, or a file that cannot
     be written"""


def add_parser(commands: Any) -> None:
    """Add ``segments`` to the commands."""
    parser = commands.add_parser(
        "segments",
        description="Draw the segment selection matrices of HeteroSAg. Decide exactly what each reveals, also after a\n"
        "whole group drops out.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("--groups", metavar="G", help="number of groups (5, or as many as --subgroups names)")
    add("--subgroups", metavar="L,L,…", help="number of subgroups of each group, as in 1,2,2 (one each)")
    add("--matrix", choices=_CHOICES, default="both", help="which matrix to draw (both)")
    add("--dropped", metavar="A,A,…", help="groups that dropped out as a whole; subgroups if there are any")
    add("--svg", type=Path, metavar="FILE", help="also write the picture to a file")
    parser.set_defaults(run=main)


@dataclass(frozen=True)
class Asked:
    """What to draw: the number of subgroups of each group, and which of all subgroups dropped out."""

    subgroups: tuple[int, ...]
    dropped: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of subgroups, Z."""
        return sum(self.subgroups)

    @property
    def unit(self) -> str:
        """The word for a column."""
        return "group" if self.group_of is None else "subgroup"

    @property
    def group_of(self) -> tuple[int, ...] | None:
        """The group of each subgroup, if some group has several."""
        if max(self.subgroups) == 1:
            return None
        return tuple(group for group, parts in enumerate(self.subgroups) for _ in range(parts))


@dataclass(frozen=True)
class Drawn:
    """A matrix, and what it reveals after the given dropouts."""

    name: str
    matrix: Matrix
    found: Robustness


def main(options: argparse.Namespace) -> int:
    """Run the command and return exit code 0."""
    asked = _asked(options)
    if options.svg is not None:
        writable_file("--svg", options.svg)
    drawn, missing = _drawn(asked, options.matrix)
    if options.svg is not None:
        _write(options.svg, asked, drawn)
    print("\n".join(_lines(asked, drawn, missing, Look.of_terminal())))
    if options.svg is not None:
        print(f"\nthe picture is in {visible(str(options.svg))}")
    return 0


def _asked(options: argparse.Namespace) -> Asked:
    """Return the checked settings."""
    least = 2 if options.subgroups is None else 1
    groups = None if options.groups is None else _whole("groups", options.groups, least)
    given = (1,) * (groups or 5) if options.subgroups is None else numbers("--subgroups", options.subgroups)
    if groups not in (None, len(given)):
        raise ParameterError("subgroups", list(given), f"{groups} numbers, one for each of --groups")
    for group, parts in enumerate(given):
        validate.integer(f"subgroups[{group}]", parts, 1, MOST)
    validate.integer("subgroups in all", sum(given), 2, MOST)
    dropped = () if options.dropped is None else numbers("--dropped", options.dropped)
    if len(set(dropped)) < len(dropped):
        raise ParameterError("dropped", list(dropped), "numbers of which none is given twice")
    asked = Asked(given, tuple(sorted(dropped)))
    _check_dropped(asked)
    return asked


def _whole(name: str, text: str, least: int) -> int:
    """Parse a number of groups."""
    sound = text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= 20
    return validate.integer(name, int(text) if sound else text, least, MOST)


def _check_dropped(asked: Asked) -> None:
    for at in asked.dropped:
        if at >= asked.count:
            raise ParameterError("dropped", at, f"a {asked.unit} in [0, {asked.count})")
    if len(asked.dropped) > asked.count - 2:
        raise ParameterError(
            "dropped",
            list(asked.dropped),
            f"at most {asked.count - 2} of the {asked.count} {asked.unit}s: two must stay",
        )


def _drawn(asked: Asked, choice: str) -> tuple[list[Drawn], str]:
    """Return the matrices, and why one is missing if it was not asked for alone."""
    names = _CHOICES[1:] if choice == "both" else (choice,)
    missing = ""
    if choice == "both" and not _has_perfect(asked.count):
        names = ("cyclic",)
        missing = f"no perfect matrix is known here for {asked.count} {asked.unit}s, so only cyclic is drawn"
    matrices = {name: segments.MATRICES[name](asked.count) for name in names}
    return [Drawn(name, one, inference_robustness(one, asked.dropped)) for name, one in matrices.items()], missing


# ------------------------------------------------------------------------------------------------- printed text


def _lines(asked: Asked, drawn: Sequence[Drawn], missing: str, look: Look) -> Iterator[str]:
    yield _heading(asked)
    yield from ([missing] if missing else [])
    yield from legend(asked.unit, asked.dropped)
    yield ""
    yield from side_by_side([_block(asked, one, look) for one in drawn], look)
    for one in drawn:
        yield ""
        yield from _robustness(asked, one, look)
    if len(asked.dropped) != 1 and asked.count > 2:
        yield ""
        yield from _dropping(asked, drawn)
    yield ""
    yield from _recommended(asked)


def _heading(asked: Asked) -> str:
    groups = counted(len(asked.subgroups), "group")
    if asked.group_of is not None:
        groups += f", {', '.join(map(str, asked.subgroups))} subgroups in each: {asked.count} subgroups"
    dropped = f"; {things(asked.unit, asked.dropped)} dropped out" if asked.dropped else ""
    return f"HeteroSAg with {groups} and as many segments, Z = {asked.count}{dropped}"


def _block(asked: Asked, one: Drawn, look: Look) -> list[str]:
    return [f"{one.name}:", *table(one.matrix, group_of=asked.group_of, dropped=asked.dropped, look=look)]


def _robustness(asked: Asked, one: Drawn, look: Look) -> Iterator[str]:
    beside = _before(asked, one) if asked.dropped else _beside_claim(asked, one.found.value)
    yield f"{one.name}: inference robustness {number(one.found.value)}{beside}"
    shown = f"{len(one.found.rows)} of {asked.count} segments"
    sentence = f"the sum of {witness(one.found, asked.unit)} is known in {shown}; no other set is known in more"
    yield from textwrap.wrap(sentence, max(look.width - 2, _LEAST), initial_indent="  ", subsequent_indent="    ")


def _before(asked: Asked, one: Drawn) -> str:
    return f"; it was {number(inference_robustness(one.matrix).value)} with all {asked.unit}s there"


def _beside_claim(asked: Asked, value: Fraction) -> str:
    formula, paper = claimed(asked.count)
    theorem = f"theorem {1 if asked.group_of is None else 4} of the paper claims"
    if value == paper:
        return f", as {theorem}: {formula} = {paper}"
    return f"; {theorem} {'more' if paper > value else 'less'}: {formula} = {paper}"


def _dropping(asked: Asked, drawn: Sequence[Drawn]) -> Iterator[str]:
    """Show how each matrix changes without one subgroup, or without the named ones."""
    if not asked.dropped and asked.count > _FEW:
        yield f"to see how it changes when some of these {asked.unit}s drop out, name them: --dropped 0,3"
        return
    sets: list[tuple[int, ...]] = [(at,) for at in asked.dropped or range(asked.count)]
    if asked.dropped:
        sets.append(asked.dropped)
    yield f"when a whole {asked.unit} drops out, the one that shares a segment with it is left alone there:"
    yield from _drop_table(asked, drawn, sets)


def _drop_table(asked: Asked, drawn: Sequence[Drawn], sets: Sequence[Collection[int]]) -> Iterator[str]:
    rows = [["without", *(f"{one.name}: robustness, and what is known" for one in drawn)]]
    for dropped in sets:
        found = [inference_robustness(one.matrix, dropped) for one in drawn]
        columns = (f"{each.value!s:5}  {witness(each, asked.unit)}" for each in found)
        rows.append([", ".join(map(str, sorted(dropped))), *columns])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        first = f"  {row[0]:>{widths[0]}}"
        rest = (f"   {text:{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
        yield (first + "".join(rest)).rstrip()


def _recommended(asked: Asked) -> Iterator[str]:
    """Say which matrix the text recommends, and why."""
    yield f"the text recommends perfect (spec/heterosag.md, section 4): {_reason(asked)}"
    if asked.count % 2 == 0:
        yield f"it also recommends an odd number of {asked.unit}s: with an even one a segment shows two of them alone"
        yield f"in every such matrix, and in perfect one segment, the last, shows the sum of every {asked.unit}"


def _reason(asked: Asked) -> str:
    if is_prime(asked.count):
        return f"for a prime number of {asked.unit}s, as here, cyclic is the same"
    if not _has_perfect(asked.count):
        return f"it exists for every number up to {MOST - 1}"
    return "no matrix in which each pair meets once reveals less"


def _has_perfect(count: int) -> bool:
    try:
        segments.perfect(count)
    except ParameterError:
        return False
    return True


# ------------------------------------------------------------------------------------------------- the picture


def _write(path: Path, asked: Asked, drawn: Sequence[Drawn]) -> None:
    panels = [Panel(one.name, one.matrix, one.found, _notes(asked, one)) for one in drawn]
    try:
        system.write_whole(path, picture(panels, group_of=asked.group_of, dropped=asked.dropped))
    except OSError as error:
        raise UsageError(f"--svg {path}: {error.strerror}") from None


def _notes(asked: Asked, one: Drawn) -> tuple[str, str]:
    return f"inference robustness {number(one.found.value)}", f"framed: {witness(one.found, asked.unit)}"
