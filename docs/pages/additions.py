"""What the site adds to the pages of the text: code, pictures of messages, what decides a clause, errata, differences.

The pages were copied before; each addition goes behind a heading, a paragraph, an item of a list or a table of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from docs.pages import differences, excerpts, first_figures, requirements, selected, sparse, theorems, trust, versions
from docs.pages.common import SiteError, claims_book, count, errata_page, escaped, relative
from docs.pages.errata import wrong
from docs.pages.markup import badge
from docs.pages.requirements import KINDS
from docs.pages.watch import flows
from secagg_spec import history
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.ledger import entries, promises
from secagg_spec.ledger.entries import Claim
from secagg_spec.resources import PAGES

_CLAUSE = re.compile(r"- \[\]\(\)\{ #([A-Z]+-\d\d)[^}]*\}")
_ITEM = re.compile(r"(?:-|(\d+)\.) ")


def write(out: Path) -> None:
    """Add to the pages of the text what belongs to them."""
    tables, found = requirements.deciding(), failing()
    for name in PAGES:
        page = out / "spec" / name
        text = Text(page.read_text(encoding="utf-8"), name)
        for addition in (_pictures, _figure, _edition, _differences, _excerpts, _promises):
            addition(text)
        _decided(text, tables)
        _errata(text, found)
        text.lines += versions.withdrawn_lines(versions.book(), name)
        page.write_text(text.joined(), encoding="utf-8")


class Text:
    """A page, and what is added to it.

    Parameters
    ----------
    text : str
        The page, as it was copied.
    name : str
        Its name below ``spec/``.
    """

    def __init__(self, text: str, name: str) -> None:
        self.lines, self.name = text.splitlines(), name
        self._behind: dict[int, list[str]] = defaultdict(list)

    def clauses(self) -> Iterator[tuple[int, str]]:
        """Yield each clause, with the number of its first line."""
        for at, line in enumerate(self.lines):
            if found := _CLAUSE.match(line):
                yield at, found[1]

    def starting(self, start: str) -> list[int]:
        """Return the numbers of the lines that begin so; of a clause, of that on which it stands."""
        named = [at for at, clause in self.clauses() if clause == start]
        return named or [at for at, line in enumerate(self.lines) if line.startswith(start)]

    def only(self, start: str) -> int:
        """Return the number of the one line that begins so.

        Raises
        ------
        SiteError
            There is none, or there are several.
        """
        found = self.starting(start)
        if len(found) != 1:
            raise SiteError(f"spec/{self.name} has {len(found)} places that begin with {start!r}, and not one")
        return found[0]

    def add(self, at: int, block: Iterable[str], *, inside: bool = True) -> None:
        """Add a block behind what begins at a line; behind an item of a list it belongs to the item, if it may."""
        indent = "    " if inside and _ITEM.match(self.lines[at]) else ""
        self._behind[self._end(at)] += ["", *(f"{indent}{line}".rstrip() for line in block)]

    def _end(self, at: int) -> int:
        """Return the number of the last line of what begins at a line."""
        rest = range(at + 1, len(self.lines))
        over = (line for line in rest if not self.lines[line] or _ITEM.match(self.lines[line]))
        return next(over, len(self.lines)) - 1

    def joined(self) -> str:
        """Return the page with all that was added; numbers that do not follow each other begin a list anew."""
        lines, before = [], 0
        for at, line in enumerate(self.lines):
            item = _ITEM.match(line)
            number = int(item[1]) if item and item[1] else 0
            lines += ["", "<!-- -->", ""] if number > before + 1 > 1 else []
            before = before if not line or line[0] == " " else number
            lines += [line, *self._behind.get(at, ())]
            lines += [""] if at in self._behind else []
        return "\n".join([*lines, ""])


# What is added.


def _opening(text: Text) -> int:
    """Return the line of what a page begins with: of a protocol, what it does."""
    return 2 if text.name in first_figures.FIGURES else 0


def _edition(text: Text) -> None:
    text.add(_opening(text), versions.edition(versions.book(), history.text(), f"spec/{text.name}").splitlines())


def _figure(text: Text) -> None:
    if figure := first_figures.FIGURES.get(text.name):
        text.add(_opening(text), figure.block(f"spec/{text.name}"))


def _pictures(text: Text) -> None:
    pictures = flows(text.name)
    if pictures:
        text.add(_opening(text), pictures.splitlines(), inside=False)


def _differences(text: Text) -> None:
    for change in differences.of(text.name):
        text.add(text.only(change.behind), differences.block(change).splitlines(), inside=False)
    for measured in (sparse, selected):
        if text.name == measured.PAGE:
            text.add(text.only(measured.BEHIND), measured.block().splitlines(), inside=False)


def _excerpts(text: Text) -> None:
    for start, names in excerpts.places().get(text.name, {}).items():
        text.add(text.only(start), excerpts.excerpt(names, f"spec/{text.name}"))


def _promises(text: Text) -> None:
    page = text.name.removesuffix(".md")
    if page in promises.PAGES:
        text.add(text.only("| what holds | for |"), trust.machine_checked(page).splitlines(), inside=False)


def _decided(text: Text, tables: Mapping[str, requirements.Table]) -> None:
    for at, clause in text.clauses():
        text.add(at, decided(clause, tables, f"spec/{text.name}"))


def decided(clause: str, tables: Mapping[str, requirements.Table], page: str) -> list[str]:
    """Return the lines of a block that can be opened, with the names of all that decides a clause."""
    names = {kind: [requirements.name(entry) for entry in table.get(clause, ())] for kind, table in tables.items()}
    counts = ", ".join(count(found, KINDS[kind]) for kind, found in names.items())
    listed = [f"    {kind}: {', '.join(found)}.\n" for kind, found in names.items() if found]
    reason = mutants.unbreakable().get(clause)
    listed += [f"    No mutant: {escaped(reason)}\n"] if reason else []
    carried = theorems.of_clause(clause)
    if carried:
        counts += f", {count(carried, 'theorem')}"
        listed.append(f"    Theorems: {', '.join(trust.linked(name, page) for name in carried)}.\n")
    counts = f"{later}; {counts}" if (later := versions.since(versions.book(), clause)) else counts
    return [
        f'??? decided "{counts}"',
        "",
        *"\n".join([*listed, f"    [What each of them is]({requirements.address(clause, page)})"]).split("\n"),
        "",
    ]


def failing() -> Sequence[Claim]:
    """Return the claims of the papers that do not hold as they stand and on which a clause depends."""
    book = claims_book()
    papers = (paper for paper in book.papers if paper != entries.OURS)
    return [claim for paper in papers for claim in wrong(book, paper) if claim.clauses]


def _errata(text: Text, claims: Sequence[Claim]) -> None:
    for at, clauses in _sections(text):
        found = [claim for claim in claims if clauses.intersection(claim.clauses)]
        if found:
            text.add(at, erratum(found, clauses, f"spec/{text.name}"))


def _sections(text: Text) -> Iterator[tuple[int, set[str]]]:
    """Yield the line of each heading of a section, with the clauses of the section."""
    heads = text.starting("## ")
    for start, stop in zip(heads, [*heads[1:], len(text.lines)], strict=True):
        yield start, {clause for at, clause in text.clauses() if start < at < stop}


def erratum(claims: Sequence[Claim], clauses: set[str], page: str) -> list[str]:
    """Return the lines of a block that can be opened: what the papers have wrong about the clauses of a section."""
    title = f"Errata: {count(claims, 'claim')} of the papers about what is required here"
    return [f'??? warning erratum "{title}"', "", *(f"    {_told(claim, clauses, page)}" for claim in claims), ""]


def _told(claim: Claim, clauses: set[str], page: str) -> str:
    """Return one line: a claim, its verdict, what the paper says, what holds, and the clauses that follow from it."""
    name = f"[{claim.id}]({relative(errata_page(claim.paper), page)}#{claim.id}){{ .mention }} {badge(claim.verdict)}"
    required = ", ".join(f"[{clause}](#{clause}){{ .mention }}" for clause in claim.clauses if clause in clauses)
    instead = f" *Instead:* {_sentence(claim.repair)}" if claim.repair else ""
    return f"- {name} {_sentence(claim.statement)} ({escaped(claim.place)}){instead} See {required}."


def _sentence(words: str) -> str:
    return escaped(words if words.endswith(".") else f"{words}.")
