"""The stored results of released implementations agree with the pins, the expectations and the checks of this kit."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.conformance.adapter.capabilities import shake_hands
from secagg_spec.conformance.adapter.wire import Answer
from secagg_spec.conformance.reports import document, results
from secagg_spec.conformance.running import expectations, suite
from secagg_spec.conformance.sdk.secagg_adapter import PROTOCOL
from secagg_spec.conformance.targets import TARGETS, Apart, environments
from secagg_spec.errors import UsageError

FOLDER = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def stored() -> dict[str, dict[str, Any]]:
    """Return all stored results."""
    return results.load(FOLDER)


def entries(target: str) -> list[expectations.Expectation]:
    """Return the expected failures of a target."""
    path = TARGETS[target].expectations
    assert path is not None
    return [entry for entry in expectations.load(path) if entry.concerns(target)]


def failed(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the checks of a result that failed."""
    return [check for check in result["checks"] if check["failure"]]


def test_there_is_one_result_for_each_released_target(stored: dict[str, dict[str, Any]]) -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(stored)
    assert {result["target"] for result in stored.values()} == set(stored)


@pytest.mark.parametrize("target", results.released())
def test_it_is_of_the_pinned_version_with_the_default_settings(stored: dict[str, dict[str, Any]], target: str) -> None:
    result = stored[target]
    assert result["schema"] == results.SCHEMA
    environment = TARGETS[target].environment
    assert environment is not None
    assert result["implementation"]["version"] == environment.software.partition("==")[2]
    assert result["released"] == environment.released.isoformat()
    assert {name: result["settings"][name] for name in ("cases", "seed", "pattern")} == {
        "cases": 100,
        "seed": 0,
        "pattern": None,
    }


@pytest.mark.parametrize("target", results.released())
def test_each_stored_failure_has_its_entry(stored: dict[str, dict[str, Any]], target: str) -> None:
    known = entries(target)
    for check in failed(stored[target]):
        reasons = [
            entry.reason
            for entry in known
            if fnmatchcase(check["check"], entry.checks) and check["verdict"] in entry.verdicts
        ]
        assert check["expected_failure"] in reasons, check["check"]


@pytest.mark.parametrize("target", results.released())
def test_each_entry_has_its_stored_failure(stored: dict[str, dict[str, Any]], target: str) -> None:
    found = [check["check"] for check in failed(stored[target])]
    sure = [entry.checks for entry in entries(target) if expectations.RARE not in entry.verdicts]
    assert [pattern for pattern in sure if not any(fnmatchcase(check, pattern) for check in found)] == []


def asked(result: dict[str, Any]) -> set[str]:
    """Return the checks of this kit that an adapter is asked which declares itself as the stored one did."""
    about = result["implementation"]
    named = {name: about[name] for name in ("name", "version", "language")}
    declared = {name: value for name, value in about.items() if name not in named}
    hello = {"protocol": [*PROTOCOL], "implementation": named, **declared, "randomness": result["randomness"]}
    caps = shake_hands(Answer("result", hello))
    return {check.id for check in suite.everything().values() if not check.obstacle(caps)}


@pytest.mark.parametrize("target", results.released())
def test_the_stored_checks_are_those_of_this_kit(stored: dict[str, dict[str, Any]], target: str) -> None:
    result = stored[target]
    assert {check["check"] for check in result["checks"]} == asked(result) - set(result["outside"])


def report(tmp_path: Path, **changes: Any) -> Path:
    """Return a report of one run of one target, with changes to it, as the command writes it."""
    check = {
        "check": "echo/identity", "clauses": ["ADP-03"], "text": "", "verdict": "pass", "note": None,
        "by_relation": False, "reason_checked": True, "expected_failure": None, "cases": 1, "inexpressible": 0,
        "failure": None,
    }  # fmt: skip
    about = {"name": "n", "version": "1", "language": "python", "policy": {}, "operations": {"echo": {}}}
    target = {
        "target": "openfl", "command": "./adapter", "implementation": about, "hello": {}, "absent": None,
        "unusable": None, "exit_code": 0, "stale": [], "left_out": [], "power": None,
        "findings": [],
        "clauses": {"ADP-03": "pass", "LSA-01": "not offered"},
        "checks": [check, {**check, "check": "other", "verdict": "unsupported"}], **changes.pop("target", {}),
    }  # fmt: skip
    settings = {"cases": 100, "seed": 0, "pattern": None, "vectors": True, "budget": None, **changes}
    environment = {"python": "3", "platform": "p", "hypothesis": "1", "numpy": "1", "cryptography": "1"}
    header = {"kit": "0", "text": "0" * 64, "vectors": "0" * 64, "settings": settings, "environment": environment}
    body: dict[str, Any] = {
        "schema": document.SCHEMA,
        "header": header,
        "targets": [target],
        "timing": {"openfl": {"echo/identity": 0.1}},
    }
    body["footer"] = {**document.counts(body), "digest": document.digest(body)}
    path = tmp_path / "report.json"
    path.write_text(document.as_text(body))
    return path


def test_what_is_stored_leaves_out_times_and_what_is_not_offered(tmp_path: Path) -> None:
    assert results.main([str(report(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out" / "openfl.json").read_text())
    assert content["clauses"] == {"ADP-03": "pass"}
    assert [check["check"] for check in content["checks"]] == ["echo/identity"]
    assert "0.1" not in json.dumps(content)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pattern": "LSA"}, "only some of the checks were run"),
        ({"vectors": False}, "only some of the checks were run"),
        ({"target": {"exit_code": 1}}, "openfl did not end with exit code 0"),
        ({"target": {"target": "node"}}, "node is not one of the targets whose results are stored: fedml, "),
    ],
)
def test_a_run_that_is_not_whole_or_failed_is_not_stored(
    changes: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert results.main([str(report(tmp_path, **changes)), "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_make_targets_judges_each_released_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert results.main(["--targets"]) == 0
    words = capsys.readouterr().out.split()
    assert words[::2] == ["--target"] * len(results.released())
    assert words[1::2] == results.released()
    for given, said in (([], "name a report"), (["--targets", "x"], "--targets goes with no report")):
        with pytest.raises(SystemExit):
            results.main(given)
        assert said in capsys.readouterr().err


def test_three_releases_of_flower_and_more_are_judged_by_one_adapter() -> None:
    releases = [TARGETS[name] for name in results.released() if name == "flower" or name.startswith("flower@")]
    commands = [one.command for one in releases if isinstance(one.command, Apart)]
    assert len(commands) == len(releases) >= 3
    assert {command.program for command in commands} == {"flower/adapter.py"}
    assert {command.environment for command in commands} == {*environments.FLOWER.values()}


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"fedml\.json is missing"):
        results.load(tmp_path)
