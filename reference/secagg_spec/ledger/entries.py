"""The entries of the ledger: what the papers claim, and the verdict on each claim.

Source: spec/ledger.md, sections 1, 2 and 6 (CLM-01 to CLM-04, CLM-13, CLM-17, CLM-26); spec/claims/schema.json.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from secagg_spec import resources
from secagg_spec.ledger import theorems
from secagg_spec.ledger.errors import (
    BrokenEntry,
    BrokenFile,
    DeadLink,
    DuplicateClaim,
    MissingEvidence,
    UnknownClaim,
    UnknownClause,
)
from secagg_spec.ledger.files import Data, EntryFile, place, read

VERDICTS = ("confirmed", "conditional", "refuted", "imprecise", "unconfirmed", "open")
ERRATA = ("refuted", "conditional", "imprecise")
"""The verdicts on claims of a paper that fail as written."""
OURS = "derived"
"""The file of this project's own results, which no paper has."""
_TEXTS = (
    *("place", "statement", "quote", "root", "condition", "repair", "matters", "decides", "note", "method", "scope"),
    "new",
)
MOST_WORDS = 25
"""The most words of a quotation."""
OMITTED = "..."
"""What stands in a quotation for words that are left out."""
_NAME = re.compile(r"\b[A-Z]{2,}-[A-Z0-9]+\b")
_FORMULA = re.compile(
    r"\b(?:eq|equation|theorem|lemma|definition|assumption|algorithm|proposition|property|matrix|table)\b", re.I
)
"""The places that have a formula, or the lines of an algorithm."""
_NEARLY = 0.8
_FILE = re.compile(r"\b(?:proofs|spec|docs|reference|tests)/[\w./-]*\w")


@dataclass(frozen=True)
class Bound:
    """A theorem that a prover checks, which part of a claim it carries, and the digest of both."""

    theorem: str
    covers: str
    digest: str


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger; omitted texts are empty.

    `quote` has words of the paper, `decides` what would decide a claim that is not decided.

    `proof` names the proof that decides the claim; without a proof, `no_proof` says why. `formal` has the theorems that
    carry a part of it. `root` is the id of the error that it has in common with others.
    """

    id: str
    paper: str
    place: str
    statement: str
    quote: str
    kind: str
    verdict: str
    root: str
    condition: str
    counterexample: Data | None
    repair: str
    matters: str
    decides: str
    numbers: Data
    note: str
    proof: str
    no_proof: str
    method: str
    second: tuple[str, ...]
    scope: str
    new: str
    clauses: tuple[str, ...]
    formal: tuple[Bound, ...]


@dataclass(frozen=True)
class Source:
    """What of a paper was read: its version, which parts and which not, and in which form its formulas."""

    version: str
    read: str
    unread: str
    formulas: str


@dataclass(frozen=True)
class Ledger:
    """All claims, by id, in the order of the files; the title of each paper; and what of it was read.

    `places` has for each claim where its root stands, or else the claim: the beginning of a message.
    """

    claims: Mapping[str, Claim]
    papers: Mapping[str, str]
    sources: Mapping[str, Source]
    places: Mapping[str, str]

    def formulas(self, claim: Claim) -> str:
        """Return in which form the formulas were read that a claim rests on; empty if it rests on none (CLM-25)."""
        source = self.sources.get(claim.paper)
        return source.formulas if source and _FORMULA.search(claim.place) else ""

    def claim(self, identifier: str) -> Claim:
        """Return a claim.

        Raises
        ------
        UnknownClaim
            No claim has this id; the message names ids that are close.
        """
        if identifier not in self.claims:
            raise UnknownClaim(f"there is no claim {identifier!r}; {close_to(identifier, self.claims)}")
        return self.claims[identifier]

    def of(self, paper: str) -> tuple[Claim, ...]:
        """Return the claims of a paper.

        Raises
        ------
        UnknownClaim
            The ledger has no paper of this name.
        """
        if paper not in self.papers:
            raise UnknownClaim(f"there is no paper {paper!r}; the papers are {', '.join(self.papers)}")
        return tuple(claim for claim in self.claims.values() if claim.paper == paper)

    def errata(self) -> tuple[Claim, ...]:
        """Return the claims of papers that fail as written."""
        return tuple(claim for claim in self.claims.values() if claim.verdict in ERRATA and claim.paper != OURS)


def load(folder: Path | None = None, proofs: Path | None = None) -> Ledger:
    """Read and check the ledger.

    Parameters
    ----------
    folder : Path, optional
        Folder of the TOML files; ``spec/claims`` by default.
    proofs : Path, optional
        Folder of the proofs that entries name; ``proofs`` by default.

    Raises
    ------
    LedgerError
        The first fault found, as one of its subclasses (CLM-01 to CLM-04).
    """
    folder = place("folder", folder, resources.root("spec") / "claims")
    proofs = place("proofs", proofs, resources.root("proofs"))
    claims: dict[str, Claim] = {}
    papers: dict[str, str] = {}
    sources: dict[str, Source] = {}
    places: dict[str, str] = {}
    files = [read(path, "claims/schema.json", "claim", "id") for path in sorted(folder.glob("*.toml"))]
    if not files:
        raise BrokenFile(f"{folder.name}/ holds no claims")
    for file in files:
        papers[file.content["paper"]] = file.content["title"]
        if file.content["paper"] != OURS:
            told = {one.name: one_line(file.content.get(one.name, "")) for one in fields(Source)}
            sources[file.content["paper"]] = Source(**told)
        for number, entry in enumerate(file.entries):
            claim = _claim(file.content["paper"], entry)
            _check_once(file, number, claims)
            claims[claim.id], places[claim.id] = claim, file.place(number, "root")
    known = theorems.load(proofs)
    for file in files:
        for number, entry in enumerate(file.entries):
            _check_names(file, number, claims[entry["id"]], proofs, known)
            check_links(file, number, claims)
            _check_kind(file, number, claims[entry["id"]])
            _check_quote(file, number, claims[entry["id"]])
    read_only = MappingProxyType(claims), MappingProxyType(papers), MappingProxyType(sources), MappingProxyType(places)
    return Ledger(*read_only)


def _claim(paper: str, entry: Data) -> Claim:
    return Claim(
        id=entry["id"],
        paper=paper,
        kind=entry["kind"],
        verdict=entry["verdict"],
        counterexample=entry.get("counterexample"),
        numbers=entry.get("numbers", {}),
        proof=entry["evidence"].get("proof", ""),
        no_proof=one_line(entry["evidence"].get("none", "")),
        second=tuple(entry.get("second", ())),
        clauses=tuple(entry["clauses"]),
        formal=tuple(Bound(**bound) for bound in entry.get("formal", ())),
        **{name: one_line(entry.get(name, "")) for name in _TEXTS},
    )


def _check_once(file: EntryFile, number: int, claims: Mapping[str, Claim]) -> None:
    if file.entries[number]["id"] in claims:
        raise DuplicateClaim(f"{file.place(number, 'id')}: is in the ledger twice")


def _check_names(file: EntryFile, number: int, claim: Claim, proofs: Path, known: Collection[str]) -> None:
    """Check that the clauses, the proof and the theorems of an entry exist."""
    for clause in claim.clauses:
        if clause not in resources.clauses():
            near = close_to(clause, resources.clauses())
            raise UnknownClause(f"{file.place(number, 'clauses')}: the text has no clause {clause}; {near}")
    if claim.proof and not os.path.isfile(proofs / f"{claim.proof}.py"):
        near = close_to(claim.proof, proof_names(proofs))
        raise MissingEvidence(f"{file.place(number, 'evidence')}: there is no proof {claim.proof!r}; {near}")
    names = [bound.theorem for bound in claim.formal]
    for name in names:
        if name not in known:
            raise DeadLink(f"{file.place(number, 'formal')}: there is no theorem {name}; {close_to(name, known)}")
        if names.count(name) > 1:
            raise BrokenEntry(f"{file.place(number, 'formal')}: {name} is named twice")


def check_links(file: EntryFile, number: int, claims: Collection[str]) -> None:
    """Refuse an entry of a file, or an item of an index, if one of its texts names something absent (CLM-03)."""
    for field, value in file.entries[number].items():
        for text in _texts(value):
            for name in _dead(text, claims):
                raise DeadLink(f"{file.place(number, field)}: there is no {name}")


def _check_kind(file: EntryFile, number: int, claim: Claim) -> None:
    """Check that a second method differs from the first, and that only our own results are marked as new."""
    if claim.method in claim.second:
        raise BrokenEntry(f"{file.place(number, 'second')}: {claim.method} is the method itself, and no second one")
    if bool(claim.new) != (claim.paper == OURS):
        wrong = "must not be given here" if claim.new else "is missing"
        raise BrokenEntry(f"{file.place(number, 'new')}: {wrong}: it is for results of this project, {OURS}.toml")


def _check_quote(file: EntryFile, number: int, claim: Claim) -> None:
    """Check that a quotation is of a paper, and short (CLM-26)."""
    words = len(claim.quote.replace(OMITTED, " ").split())
    if claim.quote and claim.paper == OURS:
        raise BrokenEntry(f"{file.place(number, 'quote')}: must not be given here: no paper says it")
    if words > MOST_WORDS:
        raise BrokenEntry(f"{file.place(number, 'quote')}: has {words} words: at most {MOST_WORDS} are quoted")


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a field, including those in tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _dead(text: str, claims: Collection[str]) -> Iterator[str]:
    """Yield the absent claims, clauses and project files that a text names."""
    for name in _NAME.findall(text):
        if name in claims or name in resources.clauses():
            continue
        known = frozenset((*claims, *resources.clauses()))
        if _meant(name, known):
            yield f"claim or clause {name}; {close_to(name, known)}"
    project = resources.root("spec").parent
    for name in _FILE.findall(text):  # os.path finds no file for a name that is too long, where Path raises
        if (project / name.partition("/")[0]).is_dir() and not os.path.exists(project / name):
            yield f"file {name}"


@lru_cache(maxsize=256)
def _meant(name: str, known: frozenset[str]) -> bool:
    """Whether a name is meant as a claim or clause: it begins like one, or nearly is one (HETT-1 for HET-1)."""
    prefixes = {entry.partition("-")[0] for entry in known}
    return name.partition("-")[0] in prefixes or bool(difflib.get_close_matches(name, known, n=1, cutoff=_NEARLY))


def proof_names(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names of all proofs."""
    return tuple(sorted(path.stem for path in (folder or resources.root("proofs")).glob("*.py")))


def close_to(name: str, known: Collection[str]) -> str:
    """Name the known names that are close, or say how many names there are."""
    by_capitals = {entry.upper(): entry for entry in known}
    found = [by_capitals[match] for match in difflib.get_close_matches(name.upper(), by_capitals, n=4, cutoff=0.6)]
    return f"close to it: {', '.join(found)}" if found else f"none of the {len(known)} is close to it"


def one_line(text: object) -> str:
    """Return a text with single spaces."""
    return " ".join(str(text).split())
