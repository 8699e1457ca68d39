"""What experiments decide of the papers' claims: the stored numbers of each seed, judged again.

Statement. Each claim below is a set of inequalities about runs of training, or about measured times, which stand in the
experiment of its figure with bound and number of seeds (spec/experiments.md, EXP-21).

Idea. The runs are long, so their results are stored in spec/experiments/. From the numbers of the seeds the intervals and the
verdicts on the inequalities follow again here (EXP-28), and from these the verdict on the claim (EXP-31): confirmed when
all its inequalities are; refuted when one is, with the paper's own numbers; else unconfirmed. What holds of small models and
few rounds need not hold of others: the numbers name the scale. `secagg-spec reproduce NAME` runs an experiment again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from secagg_spec import resources
from secagg_spec.experiments.results import judge_again
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED
from secagg_spec.ledger import Finding, Report, package

CLAIMS = ("BAS-FIG1", "BAS-FIG2", "HET-EXP1", "HET-EXP2", "MRS-ACC", "BASA-RUN")
_TOLD = ("data", "model", "users", "rounds", "seeds")


def prove(report: Report) -> dict[str, Finding]:
    """Judge all stored results again, and return the finding on each claim."""
    package("scipy")
    found: dict[str, list[tuple[Mapping[str, Any], Any]]] = {claim: [] for claim in CLAIMS}
    for path in sorted((resources.root("spec") / "experiments").glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for stated, again in zip(content["statements"], judge_again(content), strict=True):
            same = (stated["verdict"], stated["interval"]["mean"]) == (again.verdict, again.interval.mean)
            report.check(same, f"{path.name}: the verdict on {stated['name']} follows from its numbers")
            report.say(f"{content['experiment']}, {content['preset']}: {stated['name']}: {_sized(again)}")
            if stated["claim"] in found:
                found[stated["claim"]].append((content, again))
    return {claim: _finding(report, claim, judged) for claim, judged in found.items()}


def _finding(report: Report, claim: str, judged: list[tuple[Mapping[str, Any], Any]]) -> Finding:
    """Return the finding on a claim, from the statements about it; those of the preset `paper` go first."""
    report.check(bool(judged), f"a stored result has a statement about {claim}")
    papers = [pair for pair in judged if pair[0]["preset"] == "paper"]
    wrong = [pair for pair in papers if pair[1].verdict == REFUTED]
    numbers = {f"{content['experiment']}, {one.statement.name}": _sized(one) for content, one in judged}
    scale = {f"scale of {content['experiment']}": _scale(content) for content, _ in judged}
    if wrong:
        content, one = wrong[0]
        case = {"statement": one.statement.text, "mean": f"{one.interval.mean:.3f}", "scale": _scale(content)}
        return Finding("refuted", f"{len(wrong)} statements fail at the paper's scale", case, {**numbers, **scale})
    count = sum(one.verdict == CONFIRMED for _, one in judged)
    verdict = "confirmed" if count == len(judged) else "unconfirmed"
    return Finding(verdict, f"{count} of {len(judged)} statements are confirmed", None, {**numbers, **scale})


def _sized(one: Any) -> str:
    """Return the interval of a statement, its bound and the verdict, as the ledger writes them."""
    low, high = one.interval.low, one.interval.high
    return f"[{low:.3g}, {high:.3g}] {one.statement.relation} {one.statement.bound:.3g}: {one.verdict}"


def _scale(content: Mapping[str, Any]) -> str:
    settings = content["settings"]
    told = ", ".join(f"{name} {settings[name]}" for name in _TOLD if name in settings)
    return f"{content['preset']}: {told}"
