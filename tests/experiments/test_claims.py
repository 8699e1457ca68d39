"""The verdict on a claim, from stored results."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from secagg_spec import resources
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue, claims
from secagg_spec.experiments.claims import Stated
from secagg_spec.experiments.experiment import Statement, judged
from secagg_spec.ledger import entries as ledger_entries

C, R, U = "confirmed", "refuted", "not confirmed at this scale"
NUMBERS = {C: [1.0, 1.1, 1.2], R: [-1.0, -1.1, -1.2], U: [-1.0, 0.1, 1.0]}


def stated(preset: str, verdict: str, experiment: str = "toy") -> Stated:
    """A statement with such a verdict."""
    again = judged(Statement("X-1", "one", "a statement", "a number", ">=", 0.0), NUMBERS[verdict], 3)
    assert again.verdict == verdict
    return Stated(experiment, preset, "", again, {"verdict": verdict, "interval": asdict(again.interval)})


@pytest.mark.requirement("EXP-31", "EXP-34")
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
        ([("default", R), ("paper", C)], "confirmed"),
        ([("default", C), ("paper", U)], "unconfirmed"),
        ([("default", R), ("paper", C), ("paper-cifar10", U)], "unconfirmed"),
        ([("paper", C), ("paper-cifar10", R)], "refuted"),
        ([("default", R, "other"), ("paper", C)], "unconfirmed"),
        ([("default", C, "other"), ("paper", C)], "confirmed"),
    ],
)
def test_a_claim_is_what_its_statements_make_of_it(statements: list[tuple[str, ...]], verdict: str) -> None:
    assert claims.verdict([stated(*one) for one in statements]) == verdict


@pytest.mark.slow
@pytest.mark.requirement("EXP-31")
def test_a_report_is_called_refuted_at_the_scale_of_the_paper_only() -> None:
    ends = [
        stated(*one).said.partition(": ")[2] for one in (("paper", R), ("default", R), ("default", U), ("paper", C))
    ]
    assert ends == [R, "not so at this scale", U, C]


@pytest.mark.slow
@pytest.mark.requirement("EXP-31")
@pytest.mark.parametrize("experiment", list(catalogue.CHOSEN))
def test_what_is_chosen_here_refutes_no_claim(experiment: str) -> None:
    """The preset `paper` has numbers, data or a network that are not the paper's: a failure may come from these."""
    assert "paper" in catalogue.load(experiment).presets
    failed = stated("paper", R, experiment)
    assert failed.said.endswith(": not so with what is chosen here")
    assert claims.verdict([failed]) == "unconfirmed"
    assert claims.verdict([failed, stated("paper", R)]) == "refuted"
    assert claims.verdict([stated("default", R, experiment), stated("paper", C, experiment)]) == "confirmed"


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


def test_a_folder_that_is_not_there_holds_no_results(tmp_path: Path) -> None:
    assert claims.stored(tmp_path) == ()
    (tmp_path / "file").touch()
    for name in ("none", "file"):
        with pytest.raises(ParameterError, match=r"^folder = .*: must be a folder with stored results$"):
            claims.stored(tmp_path / name)


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


@pytest.mark.requirement("EXP-31", "EXP-34")
def test_what_is_said_to_decide_a_claim_decides_it() -> None:
    """The runs that `decides` names can be run, and confirm the claim if all their statements are confirmed.

    Such a run, with more seeds or with the numbers of the authors, takes the place of what is stored of it.
    """
    book, found = ledger_entries.load().claims, claims.stored()
    elsewhere = []
    for claim in (one for one in book.values() if one.verdict == "unconfirmed"):
        assert claim.decides, claim.id
        about = [one for one in found if one.judged.statement.claim == claim.id]
        runs = [name for name in catalogue.MODULES if re.search(rf"\b{name}\b", claim.decides)]
        presets = re.search(r"presets? (paper(?:-\w+)?)(?: and (paper-\w+))?", claim.decides)
        assert bool(runs) == bool(presets), claim.id
        if not presets:  # other claims decide it, or training that this project has no experiment for
            elsewhere += [] if set(re.findall(r"\b[A-Z]+-[A-Z0-9]+\b", claim.decides)) & set(book) else [claim.id]
            continue
        about = [one for one in about if one.experiment not in runs or not one.of_paper]
        for preset in filter(None, presets.groups()):
            for run in runs:
                catalogue.settings(catalogue.load(run), preset)
                about.append(stated(preset, C, run))
        assert claims.verdict(about) == "confirmed", claim.id
    assert not elsewhere


def test_aggregation_cost_less_than_training_in_each_stored_run() -> None:
    for path in sorted((resources.root("spec") / "experiments").glob("*.json")):
        seconds = json.loads(path.read_text(encoding="utf-8"))["seconds"]
        assert seconds["aggregation"] <= seconds["training"], path.name
