"""The ledger: what the papers claim, the verdict on each claim, and the proof that reaches the verdict.

``spec/claims/NAME.toml`` holds the claims of one paper; ``spec/claims/schema.json`` says which fields an entry has, and
is what entries are checked against. ``proofs/NAME.py`` holds one theorem:

- its docstring: the statement, and the idea of the proof;
- ``CLAIMS``, a tuple of the ids of the claims that it decides;
- ``prove(report)``, which computes, and returns the `Finding` of each of these claims.

A finding is compared with the entry: its verdict, its counterexample and its numbers. An entry that says something else
than its proof finds is an error of one of the two, and `Outcome.differences` names it.

Source: docs/explanation/claims.md.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.machinery
import importlib.util
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from secagg_spec import resources, schemas

Data: TypeAlias = Mapping[str, Any]
VERDICTS = ("confirmed", "conditional", "refuted", "imprecise", "unconfirmed", "open")


class LedgerError(ValueError):
    """The ledger or a proof cannot be used; the message is one line that names the file, the entry and the fault."""


class BrokenFile(LedgerError):
    """A file of the ledger is not TOML, or is not there."""


class BrokenEntry(LedgerError):
    """An entry breaks the schema: a field is missing, unknown, or has a value that is not allowed."""


class DuplicateClaim(LedgerError):
    """Two entries have one id."""


class UnknownClause(LedgerError):
    """An entry names a clause that the text does not have."""


class MissingEvidence(LedgerError):
    """An entry names neither a proof that exists nor the reason why there is none."""


class UnknownClaim(LedgerError):
    """No claim, or no paper, has this name."""


class BrokenProof(LedgerError):
    """A file in ``proofs/`` is no proof: it cannot be read, or it lacks a part."""


class PackageMissing(LedgerError):
    """A proof needs a package that is not installed."""


class ProofFailed(Exception):
    """A statement that a proof checks does not hold; the message says which and where."""


# ------------------------------------------------------------------------------------------------------ claims


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger; texts that are not given are empty.

    `proof` is the name of the proof that decides it; where there is none, `no_proof` says why.
    """

    id: str
    paper: str
    place: str
    statement: str
    kind: str
    verdict: str
    condition: str
    counterexample: Data | None
    repair: str
    numbers: Data
    note: str
    proof: str
    no_proof: str
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class Ledger:
    """All claims, by id, in the order of the files; and the title of each paper."""

    claims: Mapping[str, Claim]
    papers: Mapping[str, str]

    def claim(self, identifier: str) -> Claim:
        """Return a claim.

        Raises
        ------
        UnknownClaim
            There is none with this id; the message names those that are close.
        """
        if identifier not in self.claims:
            raise UnknownClaim(f"there is no claim {identifier!r}; {_close(identifier, self.claims)}")
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


def load(folder: Path | None = None, proofs: Path | None = None) -> Ledger:
    """Read and check the ledger.

    Parameters
    ----------
    folder : Path, optional
        Holds the TOML files; ``spec/claims`` when left out.
    proofs : Path, optional
        Holds the proofs that entries name; ``proofs`` when left out.

    Raises
    ------
    LedgerError
        The first fault that is found, as one of its subclasses.
    """
    folder = resources.root("spec") / "claims" if folder is None else folder
    proofs = resources.root("proofs") if proofs is None else proofs
    claims: dict[str, Claim] = {}
    papers: dict[str, str] = {}
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise BrokenFile(f"{folder.name}/ holds no claims")
    for path in files:
        content = _read(path)
        papers[content["paper"]] = content["title"]
        for entry in content["claim"]:
            claim = _claim(content["paper"], entry)
            if claim.id in claims:
                raise DuplicateClaim(f"{path.name}: {claim.id} stands twice in the ledger")
            _check_references(path.name, claim, proofs)
            claims[claim.id] = claim
    return Ledger(MappingProxyType(claims), MappingProxyType(papers))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BrokenFile(f"{path.name} is not TOML: {_one_line(error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenFile(f"{path.name} cannot be read: {_one_line(error)}") from None
    schema = schemas.load(resources.root("spec") / "claims" / "schema.json")
    for where, fault in schemas.faults(content, schema):
        raise _entry_error(path.name, content, where, fault)
    if content["paper"] != path.stem:
        raise BrokenEntry(f"{path.name}: paper = {content['paper']!r}: must be the name of the file, {path.stem!r}")
    return content


def _entry_error(file: str, content: Data, where: Sequence[str | int], fault: str) -> LedgerError:
    """Name the entry by its id where it has one, and the field."""
    parts = [str(part) for part in where]
    if len(where) >= 2 and where[0] == "claim" and isinstance(where[1], int):
        entry = content["claim"][where[1]]
        named = isinstance(entry, dict) and isinstance(entry.get("id"), str)
        parts = [entry["id"] if named else f"claim {where[1] + 1}", *parts[2:]]
    kind = MissingEvidence if "evidence" in parts else BrokenEntry
    return kind(": ".join([file, *parts, fault]))


def _claim(paper: str, entry: Data) -> Claim:
    texts = {name: _one_line(entry.get(name, "")) for name in ("place", "statement", "condition", "repair", "note")}
    return Claim(
        id=entry["id"],
        paper=paper,
        kind=entry["kind"],
        verdict=entry["verdict"],
        counterexample=entry.get("counterexample"),
        numbers=entry.get("numbers", {}),
        proof=entry["evidence"].get("proof", ""),
        no_proof=_one_line(entry["evidence"].get("none", "")),
        clauses=tuple(entry["clauses"]),
        **texts,
    )


def _check_references(file: str, claim: Claim, proofs: Path) -> None:
    for clause in claim.clauses:
        if clause not in resources.clauses():
            close = _close(clause, resources.clauses())
            raise UnknownClause(f"{file}: {claim.id}: clauses: the text has no clause {clause}; {close}")
    if claim.proof and not (proofs / f"{claim.proof}.py").is_file():
        close = _close(claim.proof, proof_names(proofs))
        raise MissingEvidence(f"{file}: {claim.id}: evidence: there is no proof {claim.proof!r}; {close}")


def _close(name: str, known: Collection[str]) -> str:
    """Say which of the known names are close, or how many there are."""
    by_capitals = {entry.upper(): entry for entry in known}
    found = [by_capitals[match] for match in difflib.get_close_matches(name.upper(), by_capitals, n=4, cutoff=0.6)]
    return f"close to it: {', '.join(found)}" if found else f"none of the {len(known)} is close to it"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


# ------------------------------------------------------------------------------------------------------ proofs


@dataclass(frozen=True)
class Finding:
    """What a proof found about one claim: the verdict that it reached, and the data behind it.

    `found` is a sentence for readers; `counterexample` and `numbers` are compared with the entry.
    """

    verdict: str
    found: str
    counterexample: Data | None = None
    numbers: Data = field(default_factory=dict)


@dataclass
class Tally:
    """Counts cases of a claim, and reaches a verdict.

    A case is one in which the extra condition holds, or not, and in which the claim holds, or not. Without an extra
    condition every case counts as one in which it holds.
    """

    cases: int = 0
    held: int = 0
    against: Data | None = None
    breaches: int = 0
    spared: int = 0

    def add(self, data: Data, holds: bool, *, condition: bool = True) -> None:
        """Count a case; `data` describes it, and is kept when it is the first in which the claim fails."""
        self.cases += 1
        self.held += holds
        self.breaches += condition and not holds
        self.spared += holds and not condition
        if not holds and self.against is None:
            self.against = data

    @property
    def verdict(self) -> str:
        """Confirmed: always held. Conditional: held wherever the condition holds. Refuted: failed even there."""
        if not self.cases:
            return "open"
        if self.held == self.cases:
            return "confirmed"
        return "refuted" if self.breaches or not self.held else "conditional"

    @property
    def exact(self) -> bool:
        """Whether the claim held in exactly the cases in which the condition does."""
        return not self.breaches and not self.spared


class Report:
    """What a proof says and checks on its way.

    Parameters
    ----------
    say : callable
        Takes each line that the proof reports.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.checks = 0

    def check(self, holds: bool, statement: str) -> None:
        """Go on when a statement holds.

        Raises
        ------
        ProofFailed
            It does not.
        """
        self.checks += 1
        if not holds:
            raise ProofFailed(f"this does not hold: {statement}")


def package(name: str) -> Any:
    """Return an optional package that a proof computes with.

    Raises
    ------
    PackageMissing
        It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PackageMissing(f"this proof needs the package {name}: pip install 'secagg-spec[test]'") from None


@dataclass(frozen=True)
class Proof:
    """A file of ``proofs/``."""

    name: str
    text: str
    claims: tuple[str, ...]
    prove: Callable[[Report], Mapping[str, Finding]]


def proof_names(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names of all proofs."""
    return tuple(sorted(path.stem for path in (folder or resources.root("proofs")).glob("*.py")))


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file and leaves no compiled copy beside it: the folder may be read-only, or packed."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write nothing."""


def load_proof(name: str, folder: Path | None = None) -> Proof:
    """Read a proof.

    Raises
    ------
    BrokenProof
        There is no such file, it is not Python, or it lacks ``CLAIMS`` or ``prove``.
    """
    path = (folder or resources.root("proofs")) / f"{name}.py"
    module_name = f"secagg_spec_proof_{name}"
    spec = importlib.util.spec_from_loader(module_name, _Loader(module_name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        claims, prove = tuple(module.CLAIMS), module.prove
    except Exception as error:
        raise BrokenProof(f"{path.name} is no proof: {type(error).__name__}: {_one_line(error)}") from error
    return Proof(name, (module.__doc__ or "").strip(), claims, prove)


def run(proof: Proof, say: Callable[[str], None] = lambda line: None) -> dict[str, Finding]:
    """Run a proof and return its finding on each of its claims.

    Raises
    ------
    ProofFailed
        A statement that it checks does not hold, or it broke.
    PackageMissing
        It needs a package that is not installed.
    BrokenProof
        It returned findings on other claims than those that it names, or none that it checked.
    """
    report = Report(say)
    try:
        findings = dict(proof.prove(report))
    except (ProofFailed, PackageMissing) as error:
        raise type(error)(f"proofs/{proof.name}.py: {error}") from error
    except Exception as error:
        raise ProofFailed(f"proofs/{proof.name}.py broke: {type(error).__name__}: {_one_line(error)}") from error
    if set(findings) != set(proof.claims):
        raise BrokenProof(f"proofs/{proof.name}.py finds {sorted(findings)} and names {sorted(proof.claims)}")
    if not report.checks:
        raise BrokenProof(f"proofs/{proof.name}.py checked nothing")
    return findings


@dataclass(frozen=True)
class Outcome:
    """A claim beside what its proof found."""

    claim: Claim
    finding: Finding

    @property
    def differences(self) -> tuple[str, ...]:
        """What the entry says otherwise than the proof; empty when they agree."""
        fields = ("verdict", "counterexample", "numbers")
        pairs = ((name, getattr(self.claim, name), getattr(self.finding, name)) for name in fields)
        return tuple(
            f"{name}: the ledger says {_plain(stated)}, the proof finds {_plain(found)}"
            for name, stated, found in pairs
            if _plain(stated) != _plain(found)
        )


def verify(claim: Claim, *, proofs: Path | None = None, say: Callable[[str], None] = lambda line: None) -> Outcome:
    """Run the proof behind a claim and compare.

    Raises
    ------
    MissingEvidence
        The claim has no proof; the message says why.
    BrokenProof
        Its proof does not decide it, or is no proof.
    ProofFailed, PackageMissing
        See `run`.
    """
    if not claim.proof:
        raise MissingEvidence(f"{claim.id} has no proof: {claim.no_proof}")
    proof = load_proof(claim.proof, proofs)
    if claim.id not in proof.claims:
        raise BrokenProof(f"proofs/{proof.name}.py decides {', '.join(proof.claims)}, and not {claim.id}")
    return Outcome(claim, run(proof, say)[claim.id])


def _plain(data: object) -> str:
    """Return data in one form, so that tuples and lists, and orders of keys, do not differ."""
    return data if isinstance(data, str) else json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
