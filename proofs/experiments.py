"""What experiments decide of the papers' claims: the stored numbers of each seed, judged again.

Statement. Each claim below is a set of inequalities about runs of training, or about measured times, which stand in the
experiment of its figure with bound and number of seeds (spec/experiments.md, EXP-21).

Idea. The runs are long, so their results are stored in spec/experiments/. From the numbers of the seeds the intervals
and the verdicts on the inequalities follow again here (EXP-28), and from these the verdict on the claim (EXP-31):
confirmed when all its inequalities are; refuted when one is, with the paper's own numbers and no others; else
unconfirmed. Where an experiment was run with the paper's own numbers, these alone count (EXP-34). What holds of small
models and few rounds need not hold of others: the numbers name the scale. `secagg-spec reproduce` runs them again.
"""

from __future__ import annotations

from collections.abc import Sequence

from secagg_spec.experiments import claims
from secagg_spec.experiments.claims import Stated
from secagg_spec.experiments.statistics import CONFIRMED
from secagg_spec.ledger.proofs import Finding, Report, package

_BASA = ("BASA-RUN1", "BASA-RUN2", "BASA-RUN3", "BASA-RUN4", "BASA-RUN5")
_PARTS = {"BASA-RUN": _BASA}
"""A claim that consists of others, whose statements are its own."""
CLAIMS = dict.fromkeys(
    (
        *("BAS-FIG1", "BAS-FIG2", "BAS-THM1R", "HET-THM2R", "MRS-THM2R", "UNI-CONVRUNS"),
        *("HET-EXP1", "HET-EXP2", "HET-EXP2F", "HET-DIRICHLET"),
        *("MRS-ACC", "MRS-ACC2", "MRS-ACC3", "MRS-FIG1", "MRS-FIG4", "UNI-INVERT"),
        *("BASA-RUN", *_BASA, "BASA-FIG3A", "BASA-FIG3B"),
    ),
    "experiment",
)


def prove(report: Report) -> dict[str, Finding]:
    """Judge all stored results again, and return the finding on each claim."""
    package("scipy")
    statements = claims.stored()
    for one in statements:
        name = one.judged.statement.name
        report.check(one.follows, f"{one.experiment}: the verdict on {name} follows from the numbers that are stored")
        report.say(f"{one.experiment}, {one.preset}: {name}: {one.said}")
    return {claim: _finding(report, claim, _about(claim, statements)) for claim in CLAIMS}


def _about(claim: str, statements: Sequence[Stated]) -> list[Stated]:
    names = _PARTS.get(claim, (claim,))
    return [one for one in statements if one.judged.statement.claim in names]


def _finding(report: Report, claim: str, statements: Sequence[Stated]) -> Finding:
    """Return the finding on a claim, from the statements about it."""
    report.check(bool(statements), f"a stored result has a statement about {claim}")
    numbers = {f"{one.experiment}, {one.preset}, {one.judged.statement.name}": one.said for one in statements}
    scales = {f"scale of {one.experiment}, {one.preset}": one.scale for one in statements}
    count = sum(one.judged.verdict == CONFIRMED for one in statements)
    said = f"{count} of {len(statements)} statements are confirmed"
    return Finding(claims.verdict(statements), said, _against(statements), {**numbers, **scales})


def _against(statements: Sequence[Stated]) -> dict[str, str] | None:
    """Return the first statement that fails with the paper's own numbers; nothing where none does."""
    wrong = [one for one in statements if one.refutes]
    return {"statement": wrong[0].judged.statement.text, "found": wrong[0].said} if wrong else None
