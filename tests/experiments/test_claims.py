"""The verdict on a claim, from stored results."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest

from secagg_spec import resources
from secagg_spec.experiments import claims
from secagg_spec.experiments.claims import Stated
from secagg_spec.experiments.experiment import Statement, judged
from secagg_spec.ledger import entries as ledger_entries

C, R, U = "confirmed", "refuted", "not confirmed at this scale"
NUMBERS = {C: [1.0, 1.1, 1.2], R: [-1.0, -1.1, -1.2], U: [-1.0, 0.1, 1.0]}


def stated(preset: str, verdict: str) -> Stated:
    """A statement with such a verdict."""
    again = judged(Statement("X-1", "one", "a statement", "a number", ">=", 0.0), NUMBERS[verdict], 3)
    assert again.verdict == verdict
    return Stated("toy", preset, "", again, {"verdict": verdict, "interval": asdict(again.interval)})


@pytest.mark.requirement("EXP-31")
@pytest.mark.parametrize(
    ("statements", "verdict"),
    [
        ([], "open"),
        ([("default", C)], "confirmed"),
        ([("default", C), ("paper", C)], "confirmed"),
        ([("default", C), ("default", U)], "unconfirmed"),
        ([("default", C), ("default", R)], "unconfirmed"),
        ([("default", R)], "unconfirmed"),
        ([("paper", R)], "refuted"),
        ([("paper", U)], "unconfirmed"),
        ([("default", C), ("paper", R), ("paper", C)], "refuted"),
        ([("default", R), ("paper", C)], "unconfirmed"),
    ],
)
def test_a_claim_is_what_its_statements_make_of_it(statements: list[tuple[str, str]], verdict: str) -> None:
    assert claims.verdict([stated(*one) for one in statements]) == verdict


@pytest.mark.requirement("EXP-31")
def test_a_report_is_called_refuted_at_the_scale_of_the_paper_only() -> None:
    ends = [
        stated(*one).said.partition(": ")[2] for one in (("paper", R), ("default", R), ("default", U), ("paper", C))
    ]
    assert ends == [R, "not so at this scale", U, C]


@pytest.mark.requirement("EXP-28")
def test_a_stored_verdict_that_its_numbers_do_not_give_is_seen() -> None:
    assert stated("default", C).follows
    right = stated("default", R)
    assert right.follows
    assert not replace(right, stored={**right.stored, "verdict": C}).follows


@pytest.mark.requirement("EXP-28")
@pytest.mark.parametrize("end", ["mean", "low", "high", "count"])
def test_a_stored_interval_that_its_numbers_do_not_give_is_seen(end: str) -> None:
    right = stated("default", C)
    interval = right.stored["interval"]
    assert not replace(right, stored={**right.stored, "interval": {**interval, end: 0.5}}).follows
    last_bit = {**interval, end: math.nextafter(interval[end], math.inf)}
    assert replace(right, stored={**right.stored, "interval": last_bit}).follows


@pytest.mark.requirement("EXP-31")
def test_each_claim_that_rests_on_experiments_has_the_verdict_of_the_stored_results() -> None:
    entries = [claim for claim in ledger_entries.load().claims.values() if claim.proof == "experiments"]
    assert entries
    found = claims.stored()
    about = {entry.id: [one for one in found if one.judged.statement.claim == entry.id] for entry in entries}
    for entry in entries:
        assert any(name.startswith("scale of ") for name in entry.numbers)
        if about[entry.id]:
            assert (entry.id, claims.verdict(about[entry.id])) == (entry.id, entry.verdict)
    assert [name for name, statements in about.items() if not statements] == ["BASA-RUN"]


def test_aggregation_cost_less_than_training_in_each_stored_run() -> None:
    for path in sorted((resources.root("spec") / "experiments").glob("*.json")):
        seconds = json.loads(path.read_text(encoding="utf-8"))["seconds"]
        assert seconds["aggregation"] <= seconds["training"], path.name
