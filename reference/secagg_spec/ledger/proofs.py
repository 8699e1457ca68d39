"""Proofs: what a program finds about claims, by which methods, and whether the ledger says the same.

Source: spec/ledger.md, sections 2 and 3 (CLM-05 to CLM-09, CLM-14 to CLM-16).
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, SupportsInt

import numpy as np

from secagg_spec import resources
from secagg_spec.extras import install
from secagg_spec.ledger.entries import Claim, one_line
from secagg_spec.ledger.errors import BrokenProof, MissingEvidence, PackageMissing, ProofFailed
from secagg_spec.ledger.evidence import Watch, apart
from secagg_spec.ledger.files import Data

COMPUTED_WITH = ("scipy", "sympy")
"""The packages that proofs need besides the core; all in one extra."""
METHODS: Mapping[str, str] = MappingProxyType(
    {
        "symbolic": "computer algebra, for all values",
        "matrices": "ranks, determinants or invariant factors of what the code does to basis vectors",
        "expectation": "each way that chance can go, with its probability as a fraction",
        "enumeration": "all cases of small parameters",
        "arithmetic": "numbers that are printed, or that follow from a formula, computed exactly",
        "readings": "the ways in which a sentence can be read, each decided",
        "samples": "cases drawn from a fixed stream",
        "experiment": "stored results of training runs, judged again",
        "library": "a library that this project has no part in",
    }
)
"""How a proof decides a claim; ``library`` is allowed only as a second method."""


@dataclass(frozen=True)
class Finding:
    """What a proof found about one claim: the verdict, and the data behind it.

    `found` is a sentence for readers; all other fields are compared with the entry. A proof does not set `method` and
    `second`: `run` sets them, from ``CLAIMS`` and from the checks by `Report.agree`.
    """

    verdict: str
    found: str
    counterexample: Data | None = None
    numbers: Data = field(default_factory=dict)
    method: str = ""
    second: tuple[str, ...] = ()


@dataclass
class Tally:
    """Counts cases of a claim, and reaches a verdict.

    In each case the extra condition holds or not, and the claim holds or not. Without an extra condition, it counts as
    holding in every case.
    """

    cases: int = 0
    held: int = 0
    against: Data | None = None
    breaches: int = 0
    spared: int = 0
    met: int = 0
    odd: str = ""

    def add(self, data: Data, holds: bool, *, condition: bool = True) -> None:
        """Count a case; `data` describes the case, and is kept for the first case in which the claim fails.

        Raises
        ------
        ProofFailed
            `holds` or `condition` is not a truth value. There is no verdict then (CLM-14).
        """
        for value in (holds, condition):
            if not _is_truth(value):
                self.odd = f"neither true nor false, but {type(value).__name__}: the case {data}"
                raise ProofFailed(self.odd)
        self.cases += 1
        self.held += holds
        self.breaches += condition and not holds
        self.spared += holds and not condition
        self.met += condition
        if not holds and self.against is None:
            self.against = data

    @property
    def verdict(self) -> str:
        """Confirmed: always held. Conditional: held wherever the condition holds. Refuted: failed even there.

        Open: there was no case; or the condition held in none, and the claim held in some.
        """
        if self.odd:
            raise ProofFailed(self.odd)
        return _verdict(self.cases, self.held, self.breaches, self.met)

    @property
    def exact(self) -> bool:
        """Whether the claim held in exactly the cases in which the condition holds."""
        return not self.breaches and not self.spared


def _verdict(cases: int, held: int, breaches: int, met: int) -> str:
    """Return the verdict on a claim from the counts of its cases; open without cases (CLM-07)."""
    if breaches or cases > held == 0:
        return "refuted"
    if not cases:
        return "open"
    if held == cases:
        return "confirmed"
    return "conditional" if met else "open"


def by_reading(readings: Iterable[Tally | bool]) -> str:
    """Return the verdict on a claim that can be read in several ways (spec/ledger.md, section 2, rule 2).

    Confirmed if it holds in all of them, imprecise if in some. If in none, the verdict that all have, or refuted.
    """
    verdicts = [one.verdict if isinstance(one, Tally) else ("refuted", "confirmed")[one] for one in readings]
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "imprecise" if "confirmed" in verdicts else "refuted" if verdicts else "open"


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


class Report:
    """What a proof reports and checks while it runs.

    Parameters
    ----------
    say : callable
        Receives each line that the proof reports.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.checks = 0
        self.agreed: list[tuple[str, str]] = []
        self.failed: list[str] = []

    def check(self, holds: bool, statement: str) -> None:
        """Check a statement; return if it holds.

        Raises
        ------
        ProofFailed
            The statement fails. `failed` keeps it, so a proof that catches the error still fails (CLM-14).
        """
        self.checks += 1
        if not _is_truth(holds):
            self.failed.append(f"neither true nor false, but {type(holds).__name__}: {statement}")
        elif not holds:
            self.failed.append(f"this does not hold: {statement}")
        check_failed(self.failed)

    def agree(self, claims: str | Sequence[str], method: str, holds: bool, statement: str) -> None:
        """Check that a second method gives the same result for one claim or several (CLM-08).

        Parameters
        ----------
        claims : str or sequence of str
            Ids of claims of this proof.
        method : str
            One of `METHODS`, different from the method of the claims.
        holds : bool
            Whether it gives the same result.
        statement : str
            What the second method finds.

        Raises
        ------
        ProofFailed
            It gives another result.
        """
        self.check(holds, f"by a second method, {method}: {statement}")
        self.agreed += [(claim, method) for claim in ((claims,) if isinstance(claims, str) else claims)]


def check_failed(failed: Sequence[str]) -> None:
    """Raise if a check failed, to stop a proof that goes on or ends after it (CLM-14).

    Raises
    ------
    ProofFailed
        A check failed.
    """
    if failed:
        raise ProofFailed(failed[0])


def package(name: str) -> Any:
    """Return an optional package that a proof needs.

    Raises
    ------
    PackageMissing
        The package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PackageMissing(f"this proof needs the package {name}: {install(name, COMPUTED_WITH)}") from None


def rank_of_flint(rows: Iterable[Iterable[SupportsInt]], q: int | None = None) -> int:
    """Return the rank of an integer matrix from FLINT: modulo a prime, or over the rationals without one.

    Raises
    ------
    PackageMissing
        FLINT is not installed.
    """
    flint, entries = package("flint"), [[int(entry) for entry in row] for row in rows]
    shape, flat = (len(entries), len(entries[0]) if entries else 0), list(chain.from_iterable(entries))
    return int((flint.fmpz_mat(*shape, flat) if q is None else flint.nmod_mat(*shape, flat, q)).rank())


@dataclass(frozen=True)
class Proof:
    """A file of ``proofs/``; `claims` gives the method for each decided claim; `watch` records the checks."""

    name: str
    text: str
    claims: Mapping[str, str]
    prove: Callable[[Report], Mapping[str, Finding]]
    watch: Watch = field(default_factory=Watch)


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs the code of a file that was compiled for a `Watch`, never a cached copy."""

    def __init__(self, name: str, path: str, code: Any) -> None:
        super().__init__(name, path)
        self.code = code

    def get_code(self, fullname: str) -> Any:
        """Return the code of the file."""
        return self.code


def load_proof(name: str, folder: Path | None = None) -> Proof:
    """Read a proof.

    Raises
    ------
    BrokenProof
        The file is absent or not Python, lacks ``CLAIMS`` or ``prove``, names an unknown method, or checks a constant.
    """
    path = (folder or resources.root("proofs")) / f"{name}.py"
    watch = Watch()
    try:
        code = watch.compiled(path.read_bytes(), str(path))
    except Exception as error:
        raise _broken(path, error) from error
    try:
        apart(path.name, lambda say: _loaded(name, path, code, watch) and None, lambda line: None)
    except ProofFailed as error:
        raise BrokenProof(str(error)) from error
    return _loaded(name, path, code, watch)


def _broken(path: Path, error: BaseException) -> BrokenProof:
    return BrokenProof(f"{path.name} is no proof: {type(error).__name__}: {one_line(error)}")


def _loaded(name: str, path: Path, code: Any, watch: Watch) -> Proof:
    module_name = f"secagg_spec_proof_{name}"
    spec = importlib.util.spec_from_loader(module_name, _Loader(module_name, str(path), code))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(watch.names)
    try:
        spec.loader.exec_module(module)
        claims, prove = dict(module.CLAIMS), module.prove
    except (Exception, SystemExit) as error:
        raise _broken(path, error) from error
    for claim, method in claims.items():
        if method not in METHODS or method == "library":
            raise BrokenProof(f"{path.name}: CLAIMS: {claim}: {method!r} is no method; {_allowed()}")
    return Proof(name, (module.__doc__ or "").strip(), MappingProxyType(claims), prove, watch)


def _allowed() -> str:
    return f"the methods are {', '.join(name for name in METHODS if name != 'library')}, and library as a second one"


def run(proof: Proof, say: Callable[[str], None] = lambda line: None) -> dict[str, Finding]:
    """Run a proof in its own process, and return its finding on each of its claims.

    Raises
    ------
    ProofFailed
        A checked statement does not hold, the proof raised another error, or its process ended early.
    PackageMissing
        The proof needs a package that is not installed.
    BrokenProof
        The proof returned findings on other claims than it names, checked none, or used an unknown second method. Or
        one of its checks never ran, or one of its loops never had an item.
    """
    return apart(f"proofs/{proof.name}.py", lambda tell: _run(proof, tell), say)


def _run(proof: Proof, say: Callable[[str], None]) -> dict[str, Finding]:
    report = Report(say)
    try:
        findings = dict(proof.prove(report))
        check_failed(report.failed)
    except (ProofFailed, PackageMissing) as error:
        raise type(error)(f"proofs/{proof.name}.py: {error}") from error
    except (Exception, SystemExit) as error:
        raise ProofFailed(f"proofs/{proof.name}.py broke: {type(error).__name__}: {one_line(error)}") from error
    _check_evidence(proof, report, findings)
    second = _second(proof, report.agreed)
    return {
        claim: replace(finding, method=proof.claims[claim], second=second[claim]) for claim, finding in findings.items()
    }


def _check_evidence(proof: Proof, report: Report, findings: Mapping[str, Finding]) -> None:
    """Refuse findings without evidence (CLM-06)."""
    if set(findings) != set(proof.claims):
        raise BrokenProof(f"proofs/{proof.name}.py finds {sorted(findings)} and names {sorted(proof.claims)}")
    if not report.checks:
        raise BrokenProof(f"proofs/{proof.name}.py checked nothing")
    _check_seen(proof)
    for claim, finding in findings.items():
        if not isinstance(finding, Finding):
            raise BrokenProof(f"proofs/{proof.name}.py: {claim}: {type(finding).__name__} is no Finding")


def _check_seen(proof: Proof) -> None:
    """Refuse checks that never ran, and loops that never had an item (CLM-15)."""
    if proof.watch.idle:
        raise BrokenProof(f"proofs/{proof.name}.py compared nothing in {proof.watch.idle[0]}")


def _second(proof: Proof, agreed: Sequence[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the second methods of each claim, in the order of `METHODS` (CLM-08, CLM-09)."""
    for claim, method in agreed:
        if claim not in proof.claims:
            raise BrokenProof(f"proofs/{proof.name}.py agrees on {claim}, which it does not decide")
        if method not in METHODS:
            raise BrokenProof(f"proofs/{proof.name}.py: {claim}: {method!r} is no method; {_allowed()}")
        if method == proof.claims[claim]:
            raise BrokenProof(f"proofs/{proof.name}.py: {claim}: {method} is the method itself, and no second one")
    return {claim: tuple(method for method in METHODS if (claim, method) in agreed) for claim in proof.claims}


@dataclass(frozen=True)
class Outcome:
    """A claim next to the finding of its proof."""

    claim: Claim
    finding: Finding

    @property
    def differences(self) -> tuple[str, ...]:
        """The differences between the entry and the proof; empty if they agree."""
        fields = ("verdict", "counterexample", "numbers", "method", "second")
        pairs = ((name, _plain(getattr(self.claim, name)), _plain(getattr(self.finding, name))) for name in fields)
        return tuple(
            f"{name}: the ledger says {stated}, the proof finds {found}"
            for name, stated, found in pairs
            if stated != found
        )


def verify(claim: Claim, *, proofs: Path | None = None, say: Callable[[str], None] = lambda line: None) -> Outcome:
    """Run the proof behind a claim and compare.

    Raises
    ------
    MissingEvidence
        The claim has no proof; the message says why.
    BrokenProof
        The proof does not decide the claim, or is not a proof.
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
    """Return data in a normal form: tuples equal lists, and the order of keys does not matter."""
    return data if isinstance(data, str) else json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
