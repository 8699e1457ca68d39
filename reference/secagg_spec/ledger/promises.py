"""What the promises of the protocols rest on: the rows of the tables of section 1 of their pages.

Source: spec/ledger.md, section 7 (CLM-20, CLM-21); spec/promises.toml.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from secagg_spec import resources
from secagg_spec.ledger import theorems
from secagg_spec.ledger.entries import Ledger, close_to
from secagg_spec.ledger.errors import BrokenEntry, DeadLink, Incomplete
from secagg_spec.ledger.files import place, tables

FILE = "promises.toml"
PAGES = ("secagg", "lightsecagg", "basecagg", "basa", "heterosag", "multi-round")
"""The pages of the protocols, in the order of the comparison."""
OUT = "out of scope"
_CLAUSE = re.compile(r"\b[A-Z]{3}-\d\d\b")


@dataclass(frozen=True)
class Promise:
    """A row of a table: what holds and for what, as the page has it, and what that rests on; what is left out is empty.

    `carry` says what the theorems carry of the row.
    """

    page: str
    what: str
    holds: str = ""
    condition: str = ""
    theorems: tuple[str, ...] = ()
    carry: str = ""
    claims: tuple[str, ...] = ()
    argued: str = ""
    tested: str = ""
    assumed: str = ""


_FIELDS = {field.name: tuple if "tuple" in str(field.type) else str for field in fields(Promise)}
_GIVEN = set(_FIELDS) - {"holds", "condition"}
_RESTS = ("theorems", "claims", "argued", "tested", "assumed")


def table(page: str) -> Sequence[tuple[str, str]]:
    """Return what holds and for what, of each row of the table of a page, what is out of scope included."""
    return [(holds, condition) for holds, condition in resources.rows(f"{page}.md", "what holds | for")]


def load(book: Ledger, path: Path | None = None, proofs: Path | None = None) -> Sequence[Promise]:
    """Read and check the promises; they come in the order of the pages and of their rows.

    Parameters
    ----------
    book : Ledger
        The claims.
    path : Path, optional
        The file; ``spec/promises.toml`` by default.
    proofs : Path, optional
        Folder of the proofs; ``proofs`` by default.

    Raises
    ------
    LedgerError
        The first fault found, as one of its subclasses (CLM-20, CLM-21).
    """
    path = place("path", path, resources.root("spec") / FILE)
    found = [_promise(path.name, entry) for entry in tables(path, "promise")]
    known = theorems.load(proofs)
    for promise in found:
        _check_names(path.name, promise, book, known)
    ordered = [promise for page in PAGES for promise in _of_page(path.name, page, found)]
    for promise in found:
        if promise.page not in PAGES:
            raise BrokenEntry(f"{path.name}: page: {promise.page!r} is not one of {', '.join(PAGES)}")
    return ordered


def _promise(name: str, entry: dict[str, object]) -> Promise:
    label = f"{name}: {entry.get('page')}: {entry.get('what')}"
    for field, value in entry.items():
        if field not in _GIVEN:
            raise BrokenEntry(f"{label}: {field}: there is no such field; the fields are {', '.join(sorted(_GIVEN))}")
        texts = value if isinstance(value, list) else [value]
        fits = isinstance(value, list) is (_FIELDS[field] is tuple)
        if not fits or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise BrokenEntry(f"{label}: {field}: must not be empty, and holds texts")
    if not {"page", "what"} <= set(entry) or not set(_RESTS) & set(entry):
        raise BrokenEntry(f"{label}: must have page, what, and at least one of {', '.join(_RESTS)}")
    if ("theorems" in entry) != ("carry" in entry):
        raise BrokenEntry(f"{label}: carry: says what the theorems carry, and stands with them only")
    values = {field: tuple(value) if isinstance(value, list) else value for field, value in entry.items()}
    return Promise(**values)  # type: ignore[arg-type]


def _check_names(name: str, promise: Promise, book: Ledger, known: Collection[str]) -> None:
    texts = " ".join((promise.carry, promise.argued, promise.tested, promise.assumed))
    kinds: tuple[tuple[str, Sequence[str], Collection[str]], ...] = (
        ("theorem", promise.theorems, known),
        ("claim", promise.claims, book.claims),
        ("clause", _CLAUSE.findall(texts), resources.clauses()),
    )
    for kind, names, there in kinds:
        for one in names:
            if one not in there:
                raise DeadLink(f"{name}: {promise.page}: {promise.what}: no {kind} {one}; {close_to(one, there)}")


def _of_page(name: str, page: str, found: Sequence[Promise]) -> Iterator[Promise]:
    """Yield the promises of a page, with their rows; refuse rows without one, and promises without a row."""
    here = [promise for promise in found if promise.page == page]
    used: Counter[str] = Counter()
    for holds, condition in table(page):
        if holds == OUT:
            continue
        fits = [promise for promise in here if holds.startswith(promise.what)]
        if len(fits) != 1:
            raise Incomplete(f"{name}: {page}: {len(fits)} entries, and not one, say what this rests on: {holds}")
        used[fits[0].what] += 1
        yield replace(fits[0], holds=holds, condition=condition)
    for promise in here:
        if used[promise.what] != 1:
            raise Incomplete(f"{name}: {page}: {used[promise.what]} rows, and not one, begin with {promise.what!r}")
