"""The document of a result, its tables and pictures; and its verdicts, reached again from its numbers."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import secagg_spec
from secagg_spec import resources, schemas
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import results
from secagg_spec.experiments.experiment import Context, Data, Result, accuracy, by_seed
from secagg_spec.experiments.results import Run
from secagg_spec.experiments.statistics import interval
from secagg_spec.experiments.sweeps import Swept
from tests.experiments import toy

HASHES = {"digits": {"a file": "0" * 64}}


def swept(settings: Data) -> Swept:
    """What a sweep of the toy gives, each cell in a second."""
    found = tuple(Result(cell, toy.run(cell, Context())) for cell in toy.cells(settings))
    return Swept(found, (1.0,) * len(found), ())


def run(seeds: int = 4) -> Run:
    """A run of the toy with so many seeds, of the 4 that it asks for."""
    experiment = toy.experiment()
    return Run(experiment, "default", {**experiment.presets["default"], "seeds": seeds}, 4, HASHES)


def document(seeds: int = 4) -> dict[str, Any]:
    """The document of that run, as JSON holds it."""
    one = run(seeds)
    content: dict[str, Any] = json.loads(json.dumps(results.document(one, swept(one.settings))))
    return content


def stored(path: Path, content: Data) -> Path:
    """A file with this document."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.requirement("EXP-27")
def test_the_document_fits_its_schema() -> None:
    schema = schemas.load(resources.root("spec") / "experiment.schema.json")
    assert list(schemas.faults(document(), schema)) == []


@pytest.mark.requirement("EXP-28")
@pytest.mark.parametrize("number", [1e308, -1e308, 1.1e150, 10**400])
@pytest.mark.parametrize("member", ["numbers", "bound", "mean", "low", "high", "count"])
def test_a_number_that_no_interval_can_be_of_is_refused_in_one_line(tmp_path: Path, member: str, number: float) -> None:
    content = document()
    stated = content["statements"][0]
    if member == "numbers":
        stated["numbers"][:2] = [number, -number]
    else:
        (stated["interval"] if member in stated["interval"] else stated)[member] = number
    with pytest.raises(ParameterError, match=rf"{member}.* (greater|less) than the (maximum|minimum) of") as refused:
        results.read(stored(tmp_path / "a.json", content))
    assert len(str(refused.value)) < 300


@pytest.mark.requirement("EXP-27")
def test_the_document_names_what_was_run() -> None:
    content = document()
    assert content["version"] == secagg_spec.__version__
    assert (content["experiment"], content["preset"]) == ("toy", "default")
    assert content["settings"] == {"data": "none", "seeds": 4, "fails": ""}
    assert content["data"] == HASHES
    assert content["seconds"] == {"training": 16.0, "aggregation": 4.0, "cells": 8.0}
    assert [one["cell"]["seed"] for one in content["results"]] == [0, 1, 2, 3] * 2
    assert content["environment"]["device"] == "cpu"


@pytest.mark.requirement("EXP-15")
def test_the_document_says_how_each_aggregator_went() -> None:
    assert document()["aggregators"] == [
        {"name": name, "protocol": 4, "shortcut": 8, "moved": 12} for name in ("plain", "secure")
    ]


def test_what_aggregators_say_is_found_in_lists_as_well() -> None:
    found = {"runs": [{"aggregator": {"name": "x", "protocol": 1, "shortcut": 0}}], "seconds": {"training": 1.0}}
    assert results.aggregators([Result({}, found)] * 2) == [{"name": "x", "protocol": 2, "shortcut": 0, "moved": 0}]


@pytest.mark.requirement("EXP-28")
def test_verdicts_follow_from_the_numbers_that_are_written(tmp_path: Path) -> None:
    content = results.read(stored(tmp_path / "x.json", document()))
    again = results.judge_again(content)
    assert [one.verdict for one in again] == ["confirmed"]
    assert [asdict(one.interval) for one in again] == [one["interval"] for one in content["statements"]]


@pytest.mark.requirement("EXP-28")
def test_the_numbers_follow_from_the_cells_that_are_written() -> None:
    content, experiment = document(), toy.experiment()
    again = experiment.judge(content["settings"], results.results_of(content), content["asked"])
    assert again == results.judge_again(content)


def _verdict(content: dict[str, Any]) -> None:
    content["statements"][0]["verdict"] = "refuted"


def _number(content: dict[str, Any]) -> None:
    content["statements"][0]["numbers"][0] = -0.5


def _bound(content: dict[str, Any]) -> None:
    content["statements"][0]["bound"] = 0.5


def _relation(content: dict[str, Any]) -> None:
    content["statements"][0]["relation"] = "<="
    content["statements"][0]["bound"] = -0.5


def _interval(content: dict[str, Any]) -> None:
    content["statements"][0]["interval"]["low"] = 0.5


def _seeds(content: dict[str, Any]) -> None:
    content["asked"] = 5


@pytest.mark.requirement("EXP-28")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        *((change, "verdict") for change in (_verdict, _number, _bound, _relation, _seeds)),
        (_interval, "interval"),
    ],
)
def test_a_verdict_that_does_not_follow_is_refused(tmp_path: Path, change: Any, named: str) -> None:
    content = document()
    change(content)
    with pytest.raises(ParameterError, match=rf"^the {named} of toy = .*what its numbers give"):
        results.read(stored(tmp_path / "x.json", content))


def test_what_is_no_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a file of results"):
        results.read(tmp_path / "absent.json")
    with pytest.raises(ParameterError, match="a file of results"):
        results.read(stored(tmp_path / "x.json", {}).with_suffix(""))
    content = document()
    del content["version"]
    with pytest.raises(ParameterError, match=r"x\.json = 'another content': must be as in .*; version: is missing$"):
        results.read(stored(tmp_path / "x.json", content))
    with pytest.raises(ParameterError, match=r"; schema: must be secagg-spec-experiment/1, and is 'other'$"):
        results.read(stored(tmp_path / "x.json", {**document(), "schema": "other"}))


def test_seeds_may_be_written_with_a_point_as_the_schema_says(tmp_path: Path) -> None:
    content = {**document(), "asked": float(document()["asked"])}
    assert results.read(stored(tmp_path / "x.json", content)) == content


@pytest.mark.requirement("EXP-23")
@pytest.mark.parametrize(("seeds", "verdict"), [(2, "not confirmed at this scale"), (3, "not confirmed at this scale")])
def test_fewer_seeds_than_the_experiment_asks_for_decide_nothing(seeds: int, verdict: str) -> None:
    statement = document(seeds)["statements"][0]
    assert (statement["interval"]["count"], statement["verdict"]) == (seeds, verdict)
    assert document(5)["statements"][0]["verdict"] == "confirmed"


@pytest.mark.requirement("EXP-21")
def test_the_statement_and_its_bound_are_those_of_the_experiment() -> None:
    (stated,) = toy.statements({})
    assert {name: document()["statements"][0][name] for name in asdict(stated)} == asdict(stated)


@pytest.mark.slow
def test_files_are_the_same_in_each_run(tmp_path: Path) -> None:
    one, content = run(), document()
    first, second = (results.write(one, content, tmp_path / name) for name in "ab")
    assert [path.name for path in first] == ["results.json", "results.csv", "accuracy.svg", "accuracy.png"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    ET.parse(first[2])
    assert "<dc:date>" not in first[2].read_text(encoding="utf-8")
    assert results.read(first[0]) == content


@pytest.mark.slow
def test_the_table_has_a_row_for_each_that_the_experiment_gives(tmp_path: Path) -> None:
    path = results.write(run(), document(), tmp_path)[1]
    read = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    given = toy.rows({}, results.results_of(document()))
    assert read == [{name: str(value) for name, value in row.items()} for row in given]
    assert results.table(iter([{"a": 1}, {"b": 2}])) == "a,b\n1,\n,2\n"


def test_by_seed_takes_the_cells_with_all_members() -> None:
    found = swept(run().settings).results
    assert list(by_seed(found, scheme="plain")) == [0, 1, 2, 3]
    assert by_seed(found, scheme="plain", seed=2) == {2: found[2].found}
    assert by_seed(found, scheme="none") == {}


@pytest.mark.requirement("EXP-24")
def test_a_seed_that_diverged_counts() -> None:
    found = [Result({"seed": seed}, {"accuracy": [0.1], "diverged": at}) for seed, at in enumerate((None, 3, 0))]
    assert {seed: accuracy(one) for seed, one in by_seed(found).items()} == {0: 0.1, 1: 0.1, 2: 0.1}


@pytest.mark.requirement("EXP-24")
@pytest.mark.parametrize(("count", "last"), [(1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (200, 20)])
def test_the_accuracy_is_the_mean_over_the_last_tenth(count: int, last: int) -> None:
    values = [float(number**2) for number in range(count)]
    assert accuracy({"accuracy": values}) == pytest.approx(sum(values[-last:]) / last)


def test_judging_asks_for_as_many_seeds_as_the_settings_unless_told() -> None:
    experiment = toy.experiment()
    found = swept({**run().settings, "seeds": 3}).results
    verdicts = [experiment.judge({"seeds": 3}, found, asked)[0].verdict for asked in (None, 3, 4)]
    assert verdicts == ["confirmed", "confirmed", "not confirmed at this scale"]
    assert experiment.judge({"seeds": 3}, found)[0].interval == interval(toy.numbers({}, found)["toy"])


def test_the_claims_of_an_experiment_are_named_once() -> None:
    (one,) = toy.statements({})
    twice = toy.experiment(statements=lambda settings: (one, replace(one, name="b"), replace(one, claim="BAS-FIG2")))
    assert twice.claims == ("BAS-FIG1", "BAS-FIG2")
