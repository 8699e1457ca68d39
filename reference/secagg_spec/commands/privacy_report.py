"""What ``secagg-spec privacy`` prints of every protocol: the conclusion first, then the details it rests on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from secagg_spec.privacy import wording
from secagg_spec.terminal import painted, width

DECIDING = "deciding what each coalition learns"
"""What a terminal says meanwhile."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NAMED = 3
"""The most coalitions that are named in the conclusion, and that are listed without --all."""
_NAMES = 40
"""The most columns of the names in the table."""


@dataclass(frozen=True)
class Found:
    """What the server and one coalition learn: their line of the table, and what is more than they may learn.

    `learns` is empty where they learn no more than they may.
    """

    coalition: Sequence[int]
    row: str
    learns: str = ""

    @property
    def who(self) -> str:
        """The coalition with its verb."""
        words = wording.users(self.coalition)
        how = {0: " learns", 1: " alone learns"}.get(len(self.coalition), " together learn")
        return words + how


@dataclass(frozen=True)
class Report:
    """What was decided. `whole`: in all cases; `may`: what may be learned; `listing`: lines in place of the table.

    `exposed` says how up to T users learn one honest input although they learn no more than they may; else it is empty.
    """

    T: int
    whole: bool
    may: str
    parameters: Sequence[str]
    found: Sequence[Found]
    notes: Sequence[str]
    scope: Sequence[str] = ()
    table: str = ""
    listing: Sequence[str] = ()
    exposed: str = ""

    @property
    def smallest(self) -> Found | None:
        """The smallest coalition that learns more than it may."""
        more = [found for found in self.found if found.learns]
        return min(more, key=lambda found: len(found.coalition), default=None)

    @property
    def broken(self) -> bool:
        """Whether a coalition of up to T users learns more than it may."""
        return self.smallest is not None and len(self.smallest.coalition) <= self.T


def add_all(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--all``."""
    parser.add_argument("--all", action="store_true", help="list all that was decided, not only what is concluded")


def learned(functionals: Sequence[str]) -> str:
    """Return the first functional, and the number of the others."""
    more = f" (and {len(functionals) - 1} more)" if len(functionals) > 1 else ""
    return f"{wording.clipped(functionals[0], wording.LINE)}{more}"


def show(report: Report, every: bool) -> int:
    """Print a report; every line of its table if asked. Return the exit code."""
    blocks = (list(conclusion(report)), report.parameters, list(_table(report, every)), report.notes, report.scope)
    print("\n\n".join("\n".join(block) for block in blocks if block))
    print(wording.PROVES)
    return int(report.broken or bool(report.exposed))


def conclusion(report: Report) -> Iterator[str]:
    """Yield one line, or two where one is too long: what up to T users learn, and what more users learn."""
    style, head, said = _sentence(report)
    first = f"{head}: {said}."
    more = report.smallest
    if more is not None and len(more.coalition) > report.T and style == "good":
        count = len(more.coalition)
        number = _NUMBERS[count].capitalize() if count < len(_NUMBERS) else str(count)
        second = f"{number} colluders ({wording.users(more.coalition)}) learn {more.learns}."
        lines = [f"{first} {second}"] if len(f"{first} {second}") <= width() else [first, second]
    else:
        lines = [first]
    yield painted(head, style) + lines[0].removeprefix(head)
    yield from lines[1:]


def _sentence(report: Report) -> tuple[str, str, str]:
    """Return the style, the beginning and the rest of the first sentence."""
    small = [found for found in report.found if len(found.coalition) <= report.T]
    more = report.smallest
    if more is not None and (report.broken or not small):
        head = "NOT PRIVATE" if report.broken else f"BEYOND T = {report.T}"
        return "bad" if report.broken else "known", head, f"{more.who} {more.learns}"
    if report.exposed:
        return "bad", "EXPOSES AN INPUT", f"{report.exposed}. Nobody learns more than {report.may}"
    if not small:
        named = report.found[0].who if len(report.found) == 1 else "the coalitions decided here learn"
        return "known", f"BEYOND T = {report.T}", f"{named} no more than {report.may}"
    if report.whole:
        nobody = (
            "no single user, nor the server, learns" if report.T == 1 else f"no {report.T} users, nor the server, learn"
        )
        return "good", f"PRIVATE up to T = {report.T}", f"{nobody} more than {report.may}"
    names = [wording.users(found.coalition) for found in small if found.coalition]
    many = f"any of {len(names)} coalitions of up to T = {report.T} users"
    others = many if len(names) > _NAMED else " or ".join(names)
    server = f"the server, also with {others}," if names else "the server alone"
    return "good", "PRIVATE in the cases decided here", f"{server} learns no more than {report.may}"


def _table(report: Report, every: bool) -> Iterator[str]:
    """Yield the table: of all coalitions, or of the server alone and the smallest coalition that learns more."""
    if not report.table:
        yield from report.listing if every else ()
        return
    first = report.smallest
    few = every or len(report.found) <= _NAMED
    rows = [found for found in report.found if few or not found.coalition or found is first]
    names = max(len(wording.users(found.coalition)) for found in rows)
    yield f"{report.table}:"
    yield from (f"  {wording.users(found.coalition):<{min(names, _NAMES)}}  {found.row}" for found in rows)
    if not few:
        yield f"  … (--all lists all {len(report.found)} coalitions)"
