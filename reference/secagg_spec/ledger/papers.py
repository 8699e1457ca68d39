"""The index of each paper: its numbered items, the claims that judge them, and the comparison with its text.

Source: spec/ledger.md, sections 1 and 4 (CLM-10 to CLM-12, CLM-27); spec/papers/schema.json.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from secagg_spec import resources
from secagg_spec.ledger.entries import OMITTED, OURS, Claim, Ledger, check_links, close_to, one_line
from secagg_spec.ledger.errors import BrokenEntry, BrokenFile, DeadLink, DuplicateClaim, Incomplete
from secagg_spec.ledger.files import Data, EntryFile, place, read

SECTION = "section"
_LEFT_OUT = 400
"""The most letters between two pieces of a quotation; a formula has many, in several forms."""
_ALIKE = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"", "-\u00ad\u2010\u2011$*")
"""Quotation marks become straight; hyphens go, of which a program left those of line ends, and so does its markup."""


@dataclass(frozen=True)
class Item:
    """A numbered item of a paper, such as ``equation 6``: the claims that judge it, or why there is none."""

    name: str
    claims: tuple[str, ...]
    reason: str

    @property
    def kind(self) -> str:
        """The kind of item: equation, theorem, section, and so on."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True)
class Index:
    """The items of a paper in its order, and the patterns that find them in its text.

    `text` is the name of a file with the text; each pattern is a kind and a regular expression.
    """

    paper: str
    text: str
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    items: tuple[Item, ...]

    @property
    def numbered(self) -> tuple[Item, ...]:
        """The items that the paper numbers, without the sections that only hold claims of running text."""
        return tuple(item for item in self.items if item.kind != SECTION)

    def found_in(self, text: str) -> set[str]:
        """Return the names of the numbered items in a text of the paper."""
        found = ((kind, match[1]) for kind, pattern in self.patterns for match in pattern.finditer(text))
        return {f"{kind} {number}" for kind, number in found if number is not None}

    def differences(self, text: str, claims: Iterable[Claim] = ()) -> Iterator[str]:
        """Yield the items that only the text or only the index has, and quotations that differ (CLM-12, CLM-27)."""
        found, listed = self.found_in(text), {item.name for item in self.numbered}
        yield from (f"{self.paper}: {name} is in the text, and not in the index" for name in _in_order(found - listed))
        yield from (f"{self.paper}: {name} is in the index, and not in the text" for name in _in_order(listed - found))
        letters = _letters(text)
        for claim in claims:
            if not _stands(claim.quote, letters):
                yield f"{self.paper}: {claim.id}: what is quoted is not in the text: {claim.quote}"


def _letters(text: str) -> str:
    """Return a text without what programs that extract it do to it: line breaks, hyphens, ligatures, other marks."""
    return "".join(unicodedata.normalize("NFKC", text.replace(r"\ge", "\u2265").translate(_ALIKE)).split())


def _stands(quote: str, letters: str) -> bool:
    """Whether the pieces of a quotation stand in the letters of a text, each soon after the one before."""
    pieces = map(re.escape, map(_letters, quote.split(OMITTED)))
    return re.search(f".{{0,{_LEFT_OUT}}}?".join(pieces), letters) is not None


def _in_order(names: set[str]) -> list[str]:
    """Return names in the order of their kinds and numbers: equation 9 before equation 10."""
    return sorted(names, key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)])


def load(book: Ledger, folder: Path | None = None) -> Mapping[str, Index]:
    """Read the index of each paper, and check it against the ledger.

    Parameters
    ----------
    book : Ledger
        The claims.
    folder : Path, optional
        Folder of the TOML files; ``spec/papers`` by default.

    Raises
    ------
    LedgerError
        A file is broken, names an item twice, names a claim that does not exist or belongs to another paper, or omits a
        paper or a claim (CLM-04, CLM-10, CLM-11).
    """
    folder = place("folder", folder, resources.root("spec") / "papers")
    indices = [_index(path, book) for path in sorted(folder.glob("*.toml"))]
    found = {index.paper: index for index in indices}
    _check_papers(folder, book, found)
    return found


def _check_papers(folder: Path, book: Ledger, found: Collection[str]) -> None:
    for paper in book.papers:
        if paper != OURS and paper not in found:
            raise Incomplete(f"{folder.name}/{paper}.toml is missing: the ledger has claims of {paper}")


def _index(path: Path, book: Ledger) -> Index:
    file = read(path, "papers/schema.json", "item", "name")
    paper = file.content["paper"]
    if paper not in book.papers:
        raise BrokenFile(f"{path.name}: the ledger has no paper {paper!r}; it has {', '.join(book.papers)}")
    patterns = tuple(_pattern(path, entry) for entry in file.content["pattern"])
    items = tuple(
        Item(entry["name"], tuple(entry.get("claims", ())), one_line(entry.get("reason", ""))) for entry in file.entries
    )
    _check_items(file, items, book, paper)
    return Index(paper, file.content["text"], patterns, items)


def _pattern(path: Path, entry: Data) -> tuple[str, re.Pattern[str]]:
    """Return the kind of items and the expression that finds them; its one group is the number."""
    expression = entry["expression"]
    lines = path.read_text(encoding="utf-8").split("\n")
    line = next((number for number, text in enumerate(lines, 1) if expression in text), 1)
    place = f"{path.name}:{line}: pattern: {expression!r}"
    try:
        pattern = re.compile(expression, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BrokenEntry(f"{place} is no regular expression: {error}") from None
    if pattern.groups != 1:
        raise BrokenEntry(f"{place} must have one group, the number, and has {pattern.groups}")
    return entry["kind"], pattern


def _check_items(file: EntryFile, items: tuple[Item, ...], book: Ledger, paper: str) -> None:
    own = {claim.id for claim in book.of(paper)}
    seen: set[str] = set()
    for number, item in enumerate(items):
        if item.name in seen:
            raise DuplicateClaim(f"{file.place(number, 'name')}: is in the index twice")
        seen.add(item.name)
        for claim in item.claims:
            _check_claim(file.place(number, "claims"), claim, own, book)
        check_links(file, number, book.claims)
    _check_all_named(file.name, items, own)


def _check_claim(place: str, claim: str, own: Collection[str], book: Ledger) -> None:
    if claim not in book.claims:
        raise DeadLink(f"{place}: there is no claim {claim}; {close_to(claim, own)}")
    if claim not in own:
        first = next(iter(own))
        raise DeadLink(f"{place}: {claim} is a claim of {book.claim(claim).paper}, not of {book.claim(first).paper}")


def _check_all_named(file: str, items: tuple[Item, ...], own: Collection[str]) -> None:
    left = sorted(set(own) - {claim for item in items for claim in item.claims})
    if left:
        raise Incomplete(f"{file}: no item names {', '.join(left)}")
