"""Checks that vary what they draw: small composites, noise of an adapter's own drawing, failures of every operation."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import RawLine
from secagg_spec.conformance.checks import REGISTRY, forms
from secagg_spec.conformance.checks.arithmetic import COMPOSITES
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Exchange
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running import repros, runner
from secagg_spec.conformance.running.runner import Failure, Settings, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import drawing
from tests.quick import QUICK, part


def verdict(check: str, build: Any = reference.build, cases: int = 20) -> tuple[str, str]:
    """The verdict of a check on an adapter, and its message."""
    connection = DirectConnection(build().answer)
    outcome = run_check(connection, greet(connection.ask), REGISTRY[check], Settings(cases=cases))
    return outcome.verdict, outcome.failure.message if outcome.failure else outcome.note


def test_the_composites_are_composite_and_hold_pseudoprimes() -> None:
    assert not any(is_prime(q) for q in COMPOSITES)
    assert sum(pow(2, q - 1, q) == 1 for q in COMPOSITES) >= 10


@pytest.mark.parametrize("declared", ["seeded", "explicit and another code"])
def test_uniform_noise_hides(declared: str) -> None:

    def uniform() -> Any:
        return drawing.seeded(reference.build(), "mds.encode", drawing.noise)

    def other_code() -> Any:
        adapter = reference.build()
        adapter.hello["policy"] = {"mds.code": "other"}
        return adapter

    assert verdict("mds.encode/hides", uniform if declared == "seeded" else other_code)[0] == "pass"


def test_what_explicit_noise_gives_is_decided_exactly() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    assert not REGISTRY["mds.encode/hides"].runs_on(caps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("noise-of-zeros", "in 0 directions"),
        ("noise-with-a-row-of-zeros", "directions"),
        ("noise-of-one-bit", "for another mask"),
    ],
)
def test_noise_that_is_not_uniform_is_named(name: str, said: str) -> None:
    with mutants.planted(name):
        found, message = verdict("mds.encode/hides", reference.build)
    assert found == "wrong_value"
    assert said in message


def empty_results(request: Any) -> dict[str, Any]:
    """Answer hello as the reference does, and everything else by an empty result."""
    if isinstance(request, dict) and request.get("op") == "hello":
        return reference.build().answer(request)
    return {"id": request.get("id") if isinstance(request, dict) else None, "result": {}}


def first(connection: Any, caps: Any, check: Any) -> Failure | None:
    """The first failure of a check, as it was drawn."""
    met = runner._Run()
    runner._search(connection, caps, check, Settings(cases=2), met, shrink=False)
    return met.first


@pytest.mark.slow
def test_every_failing_case_of_every_check_is_written_and_judged_again(tmp_path: Path) -> None:
    connection = DirectConnection(empty_results)
    caps, found = greet(connection.ask), 0
    checks = part(12 if QUICK else 6, REGISTRY.values())
    for check in checks:
        failure = first(connection, caps, check) if check.runs_on(caps) else None
        if failure is not None:
            found += 1
            stored = repros.load(report.write_repro(tmp_path, "empty", check.id, failure))
            assert repros.judge(connection, check.id, stored["draws"]) is not None, check.id
            assert report.describe(failure.transcript[-1].request, {})
    assert found > len(checks) / 3


SDK_WITHOUT_FORM = """
import json, sys
for line in sys.stdin.buffer:
    try:
        request = json.loads(line.decode())
    except ValueError:
        request = {"id": None}
    if not isinstance(request, dict):
        request = {"id": None}
    if request.get("op") == "hello" and request.get("params") == {"protocol": [1, 1], "max_line": 67108864}:
        about = {"name": "lax", "version": "1", "language": "python"}
        body = {"protocol": [1, 0], "implementation": about, "randomness": "explicit", "operations": {}}
        answer = {"result": body}
    elif request.get("id") is None:
        answer = {"reject": {"code": "malformed"}}
    else:
        answer = {"unsupported": True}
    print(json.dumps({"id": request.get("id"), **answer}), flush=True)
"""


@pytest.mark.slow
def test_a_line_that_is_not_a_request_is_written_and_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lax = tmp_path / "lax.py"
    lax.write_text(SDK_WITHOUT_FORM)
    command = ["--", sys.executable, str(lax)]
    assert cli.main(["conform", "--repro", str(tmp_path), "-k", "adapter/not-a-request", *command]) == 1
    assert "replay:" in capsys.readouterr().out
    path = tmp_path / "adapter-adapter-not-a-request.jsonl"
    assert json.loads(path.read_bytes().splitlines()[0])["op"] == "hello"
    assert len(path.read_bytes().splitlines()) == 2
    assert cli.main(["replay", str(path), *command]) == 1
    right = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
    assert cli.main(["replay", str(path), "--", *right]) == 0


def test_a_line_with_nan_is_said_not_to_be_json() -> None:
    line = b'{"id": 7, "op": "hello", "params": {"protocol": [1, NaN]}}'
    direct = DirectConnection(lambda request: {"id": 7, "reject": {"code": "malformed"}})
    caller = Caller(direct, greet(DirectConnection(reference.build().answer).ask))
    with pytest.raises(
        CheckFailed, match=r"NaN is not JSON, so that this line is not a request.*must have the id null"
    ):
        forms.not_a_request(lambda strategy: line, caller)


def test_lines_that_are_not_utf8_survive_the_file(tmp_path: Path) -> None:
    exchange = Exchange(RawLine(data=b"hell\xff", id=None), None)
    path = report.write_repro(tmp_path, "x", "adapter/not-a-request", Failure("protocol", "", (exchange,)))
    assert path.read_bytes().splitlines()[1] == b"hell\xff"


@pytest.mark.parametrize("given", ["0", "-1", "x"])
def test_a_number_of_jobs_is_refused_as_one(capsys: pytest.CaptureFixture[str], given: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["conform", "--jobs", given, "--target", "reference"])
    err = capsys.readouterr().err
    assert "whole number of jobs" in err
    assert "cases" not in err.splitlines()[-1]


@pytest.mark.parametrize("given", ["513", "9" * 23, "9" * 5000])
def test_more_jobs_than_any_machine_has_are_refused(capsys: pytest.CaptureFixture[str], given: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["conform", "--jobs", given, "--target", "reference"])
    line = capsys.readouterr().err.splitlines()[-1]
    assert "is more than 512 jobs" in line
    assert len(line) < 400
