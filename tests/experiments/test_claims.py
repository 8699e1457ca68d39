"""The verdict on a claim, from stored results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import ledger, resources
from secagg_spec.experiments import claims
from secagg_spec.experiments.claims import Stated
from secagg_spec.experiments.experiment import Statement, judged

C, R, U = "confirmed", "refuted", "not confirmed at this scale"
NUMBERS = {C: [1.0, 1.1, 1.2], R: [-1.0, -1.1, -1.2], U: [-1.0, 0.1, 1.0]}


def stated(preset: str, verdict: str) -> Stated:
    """A statement with such a verdict."""
    again = judged(Statement("X-1", "one", "a statement", "a number", ">=", 0.0), NUMBERS[verdict], 3)
    assert again.verdict == verdict
    return Stated("toy", preset, "", again, {"verdict": verdict, "interval": {"mean": again.interval.mean}})


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


@pytest.mark.requirement("EXP-28")
def test_a_stored_verdict_that_its_numbers_do_not_give_is_seen() -> None:
    assert stated("default", C).follows
    altered: dict[str, Any] = {"verdict": C, "interval": {"mean": 0.0}}
    assert not Stated("toy", "default", "", stated("default", R).judged, altered).follows


@pytest.mark.requirement("EXP-31")
def test_each_claim_that_rests_on_experiments_has_the_verdict_of_the_stored_results() -> None:
    entries = [claim for claim in ledger.load().claims.values() if claim.proof == "experiments"]
    assert entries
    found = claims.stored()
    about = {entry.id: [one for one in found if one.judged.statement.claim == entry.id] for entry in entries}
    for entry in entries:
        assert any(name.startswith("scale of ") for name in entry.numbers)
        if about[entry.id]:
            assert (entry.id, claims.verdict(about[entry.id])) == (entry.id, entry.verdict)
    assert [name for name, statements in about.items() if not statements] == ["BASA-RUN"]


def test_each_stored_result_is_of_an_experiment_whose_statements_it_has() -> None:
    from secagg_spec.experiments import catalogue

    for path in sorted((resources.root("spec") / "experiments").glob("*.json")):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        experiment = catalogue.load(content["experiment"])
        now = {(s.name, s.relation, s.bound) for s in experiment.statements(content["settings"])}
        then = {(s["name"], s["relation"], s["bound"]) for s in content["statements"]}
        assert now == then, path.name


def test_aggregation_cost_less_than_training_in_each_stored_run() -> None:
    for path in sorted((resources.root("spec") / "experiments").glob("*.json")):
        seconds = json.loads(path.read_text(encoding="utf-8"))["seconds"]
        assert seconds["aggregation"] <= seconds["training"], path.name
