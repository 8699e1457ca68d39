"""The roots: the errors that claims of a paper have in common, gravest first.

Source: spec/ledger.md, section 2 (CLM-22 to CLM-24); spec/roots.toml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from secagg_spec import resources
from secagg_spec.ledger.entries import ERRATA, OURS, Claim, Ledger, close_to, one_line
from secagg_spec.ledger.errors import BrokenEntry, DeadLink, DuplicateClaim, Incomplete
from secagg_spec.ledger.files import line_numbers, place, tables, toml

FILE = "roots.toml"
WORDING = "wording"
SEVERITIES = ("privacy", "correctness", "result", WORDING)
"""The severities, the gravest first."""
_FIELDS = ("id", "severity", "lead", "fails")


@dataclass(frozen=True)
class Root:
    """An error: how grave it is, one sentence on what fails, the claim that shows it best, and those that follow.

    A root of wording has no lead: each of its claims stands for itself.
    """

    id: str
    paper: str
    severity: str
    fails: str
    lead: Claim | None
    follow: tuple[Claim, ...]

    @property
    def instead(self) -> str:
        """What holds instead: the lead's repair, or the condition under which it holds."""
        assert self.lead is not None
        under = f"it holds if {self.lead.condition}" if self.lead.condition else ""
        return "; ".join(filter(None, (under, self.lead.repair)))

    @property
    def command(self) -> str:
        """The command that runs the program of the lead."""
        assert self.lead is not None
        return f"secagg-spec claims {self.lead.id} --verify"


def load(book: Ledger, path: Path | None = None) -> Sequence[Root]:
    """Read and check the roots; they come by severity, those with a refuted lead first, and else as in the file.

    Parameters
    ----------
    book : Ledger
        The claims.
    path : Path, optional
        The file; ``spec/roots.toml`` by default.

    Raises
    ------
    LedgerError
        The first fault found, as one of its subclasses (CLM-22 to CLM-24).
    """
    path = place("path", path, resources.root("spec") / FILE)
    listed = tables(path, "root")
    known = [str(entry.get("id")) for entry in listed]
    for claim in book.claims.values():
        _check_claim(claim, known, book.places[claim.id])
    places = line_numbers(toml(path)[0], "root")[1]
    begins = [*(lines[""] for lines in places), *[1] * len(known)]  # an entry in braces has no line of its own
    labels = [f"{path.name}:{line}: {name}" for line, name in zip(begins, known, strict=False)]
    found = [_root(label, entry, book) for label, entry in zip(labels, listed, strict=True)]
    for at, name in enumerate(known):
        if name in known[:at]:
            raise DuplicateClaim(f"{labels[at]}: is in the file twice")
    verdicts = {root.id: ERRATA.index(root.lead.verdict) if root.lead else 0 for root in found}
    return sorted(found, key=lambda root: (SEVERITIES.index(root.severity), verdicts[root.id]))


def _check_claim(claim: Claim, known: Sequence[str], place: str) -> None:
    """Check that a claim names a root exactly if it is one of a paper and does not hold as it stands (CLM-22)."""
    fails = claim.verdict in ERRATA and claim.paper != OURS
    if bool(claim.root) != fails:
        why = "must be given: the claim does not hold as it stands" if fails else "must not be given: nothing fails"
        raise BrokenEntry(f"{place}: {why}")
    if claim.root and claim.root not in known:
        raise DeadLink(f"{place}: there is no {claim.root}; {close_to(claim.root, known)}")


def _root(label: str, entry: Mapping[str, object], book: Ledger) -> Root:
    """Check an entry of the file, and find the claims that name it (CLM-23, CLM-24)."""
    for field, value in entry.items():
        if field not in _FIELDS or not isinstance(value, str) or not value.strip():
            raise BrokenEntry(f"{label}: {field}: must be a text, and one of the fields {', '.join(_FIELDS)}")
    if "id" not in entry:
        raise BrokenEntry(f"{label}: id: must be given")
    severity = entry.get("severity")
    if severity not in SEVERITIES:
        raise BrokenEntry(f"{label}: severity: {severity!r} is not one of {', '.join(SEVERITIES)}")
    if "fails" not in entry or ("lead" in entry) == (severity == WORDING):
        raise BrokenEntry(f"{label}: must have fails, and a lead exactly if its severity is not {WORDING}")
    of_it = [claim for claim in book.claims.values() if claim.root == entry["id"]]
    papers = {claim.paper for claim in of_it}
    if len(papers) != 1:
        raise Incomplete(f"{label}: claims of {len(papers)} papers name it, and not of one")
    lead = next((claim for claim in of_it if claim.id == entry.get("lead")), None)
    if "lead" in entry and lead is None:
        raise Incomplete(f"{label}: lead: {entry['lead']} does not name it as its root")
    refuted = [claim.id for claim in of_it if claim.verdict == "refuted"]
    if severity == WORDING and refuted:
        raise BrokenEntry(f"{label}: {', '.join(refuted)}: a slip is imprecise, and never refuted")
    follow = tuple(claim for claim in of_it if claim is not lead)
    return Root(str(entry["id"]), papers.pop(), str(severity), one_line(entry["fails"]), lead, follow)
