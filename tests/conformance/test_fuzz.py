"""The command fuzz: what it draws, when it ends, and that nothing that was met is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from secagg_spec import cli
from secagg_spec.commands import fuzz, parsers
from secagg_spec.commands.fuzz import Found, Plan
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer, Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.running.runner import Settings, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.quick import part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
HOSTILE = str(Path(__file__).with_name("hostile_adapter.py"))


class Recorded(DirectConnection):
    """The reference in this process; what it is asked is written down, and an answer may be changed."""

    def __init__(self, end_after_failures: int = 0) -> None:
        super().__init__(reference.build().answer)
        self.asked: list[str] = []
        self.failures = 0
        self.end_after_failures = end_after_failures

    def ask(self, request: Request) -> Answer:
        """Answer sums of more than two elements wrongly, and after some of these raise what Ctrl-C raises."""
        self.asked.append(request.line(1))
        answer = super().ask(request)
        wrong = self.end_after_failures and request.op == "field.add" and len(answer.value.get("value", "")) > 16
        if not wrong:
            return answer
        self.failures += 1
        if self.failures > self.end_after_failures:
            raise KeyboardInterrupt
        return Answer("result", value={"value": "00000000"})


def fuzzed(connection: Recorded, plan: Plan) -> Found:
    """What fuzzing meets."""
    found = Found()
    fuzz.fuzz(connection, greet(connection.ask), plan, found, lambda found: None)
    return found


@pytest.mark.requirement("CNF-46")
def test_the_same_seed_and_rounds_draw_the_same_cases_and_others_draw_others() -> None:
    asked = []
    for seed, rounds in ((1, 2), (1, 2), (2, 2), (1, 3)):
        connection = Recorded()
        found = fuzzed(connection, Plan(seed, "field.add/exact", rounds))
        assert found.rounds == rounds
        asked.append(connection.asked)
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]
    assert asked[3][: len(asked[0])] == asked[0]
    assert len(asked[3]) > len(asked[0])


@pytest.mark.requirement("CNF-46")
def test_rounds_grow_and_each_has_a_seed_of_its_own() -> None:
    settings = [Plan(seed).settings(number, 0.0) for seed in (0, 1) for number in range(12)]
    assert len({one.seed for one in settings}) == 24
    assert [one.cases for one in settings[:3]] == [5, 10, 20]
    assert settings[11].cases == 2000


@pytest.mark.requirement("CNF-45")
@pytest.mark.parametrize("failures", [1, 5])
def test_a_failure_that_was_not_yet_made_smaller_is_kept_when_the_run_is_ended(failures: int) -> None:
    connection, found = Recorded(failures), Found()
    caps = greet(connection.ask)
    with pytest.raises(KeyboardInterrupt):
        fuzz.fuzz(connection, caps, Plan(0, "field.add/exact", 5), found, lambda found: None)
    assert found.failed == {}
    found.keep_pending()
    outcome = found.failed["field.add/exact"]
    assert outcome.failure is not None
    assert outcome.failure.repeats is None
    assert fuzz.UNCONFIRMED in outcome.failure.message
    assert outcome.failure.transcript


@pytest.mark.slow
def test_a_check_that_failed_is_left_out_of_later_rounds() -> None:
    connection = Recorded(10**9)
    found = fuzzed(connection, Plan(0, "field.add/", 6))
    assert set(found.failed) >= {"field.add/exact"}
    assert found.pending is None
    assert found.rounds == 6


def run(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the command."""
    capsys.readouterr()
    code = cli.main(["fuzz", "--repro", str(folder), *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("fault", "code", "said"), [("none", 0, "0 failures"), ("wrong-value", 1, "FAIL     field.add/exact   wrong_value")]
)
def test_a_run_by_rounds(capsys: pytest.CaptureFixture[str], tmp_path: Path, fault: str, code: int, said: str) -> None:
    options = ["--rounds", "3", "-k", "field.add/exact", "--", sys.executable, FAKE, fault]
    found, out, _ = run(capsys, tmp_path, *options)
    assert (found, said in out) == (code, True)
    stored = sorted(path.name for path in tmp_path.iterdir())
    assert stored == (["adapter-field-add-exact.expected.json", "adapter-field-add-exact.jsonl"] if code else [])
    if code:
        again = cli.main(["replay", str(tmp_path / stored[1]), "--", sys.executable, FAKE, fault])
        assert again == 1


def test_the_first_failure_ends_the_run_when_that_is_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--rounds", "9", "--stop", "-k", "field.add", "--", sys.executable, FAKE, "reject-everything"]
    code, out, _ = run(capsys, tmp_path, *options)
    assert code == 1
    assert "1 failure; seed 0" in out
    assert "ended early: a check failed" in out


@pytest.mark.requirement("CNF-05")
@pytest.mark.parametrize(
    ("verdict", "fault", "rounds", "said"),
    [
        ("wrong_value", "none", 6, "passes"),
        ("wrong_value", "none", 5, ""),
        ('["wrong_value", "pass"]', "none", 6, ""),
        ("crash", "wrong-value", 1, "fails as wrong_value instead"),
    ],
)
def test_a_stale_expectation_fails_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, verdict: str, fault: str, rounds: int, said: str
) -> None:
    expect = tmp_path / "expect.toml"
    given = verdict if verdict.startswith("[") else f'"{verdict}"'
    entry = f'target = "adapter"\nchecks = "field.add/exact"\nverdict = {given}\nreason = "known"\n'
    expect.write_text(f"[[expect]]\n{entry}")
    options = ["--rounds", str(rounds), "--expect", str(expect), "-k", "field.add/exact", "--", sys.executable, FAKE]
    code, out, _ = run(capsys, tmp_path / "repro", *options, fault)
    stale = f"STALE    adapter: field.add/exact ({verdict}): field.add/exact {said}"
    assert (stale in out.splitlines()) == bool(said)
    assert out.rstrip().endswith(", 1 stale expectation; seed 0") == bool(said)
    assert code == bool(said)


def test_a_failure_that_is_expected_is_no_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    expect = tmp_path / "expect.toml"
    entry = 'target = "adapter"\nchecks = "field.add/exact"\nverdict = "wrong_value"\nreason = "known"\n'
    expect.write_text(f"[[expect]]\n{entry}")
    options = ["--rounds", "3", "--expect", str(expect), "-k", "field.add/exact", "--", sys.executable, FAKE]
    code, out, _ = run(capsys, tmp_path / "repro", *options, "wrong-value")
    assert code == 0
    assert "why expected:  known" in out
    assert out.splitlines()[-1].endswith(", 1 failure, 1 of them expected; seed 0")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["/nowhere/adapter"], 3, "cannot be used"),
        ([sys.executable, HOSTILE, "hello-evil-text"], 3, r"\x1b[2J"),
    ],
)
def test_an_adapter_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str], code: int, said: str
) -> None:
    found, out, _ = run(capsys, tmp_path, "--rounds", "1", "--", *command)
    assert (found, said in out) == (code, True)


def test_nothing_that_can_run_is_no_success(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--rounds", "1", "-k", "mds.encode", "--", sys.executable, FAKE, "none"]
    assert run(capsys, tmp_path, *options)[0] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-k", "nothing-like-this", "--", "x"], "no check has this id or clause"),
        (["-k", "lightsecagg.mask/exat", "--", "x"], "did you mean lightsecagg.mask/exact? no check has this id"),
        ([], "name a --target"),
        (["--target", "none"], "the targets are"),
        (["--target", "[rn]*e"], "it names reference, node; fuzz takes one"),
        (["--target", "node", "--", "x"], "not both"),
        (["--expect", "/nowhere.toml", "--", "x"], "nowhere.toml"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    code, out, err = run(capsys, tmp_path, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_a_place_that_cannot_be_a_folder_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, Path("/dev/null/x"), "--", "x")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "is not a folder" in err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_durations(text: str, seconds: float) -> None:
    assert parsers.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "1d", "1e3", "1 m", "nan", "inf", "9999999h", "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Exception, match="is not a duration"):
        parsers.duration(text)


@pytest.mark.slow
def test_a_time_that_is_over_in_the_middle_of_a_check_is_no_failure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["--time", "2s", "-k", "field.add/exact", "--", sys.executable, FAKE, "slow"]
    start = time.monotonic()
    code, out, _ = run(capsys, tmp_path, *options)
    assert time.monotonic() - start < 120
    assert (code, "NOT RUN" in out) == (0, False)


@pytest.mark.slow
def test_a_budget_that_is_spent_in_the_middle_of_a_check_is_no_fault_of_the_kit() -> None:
    connection = Recorded()
    caps = greet(connection.ask)
    settings = Settings(cases=60_000, budget=1.0, deadline=time.monotonic() + 0.3)
    outcome = run_check(connection, caps, REGISTRY["field.add/exact"], settings)
    assert outcome.verdict == "not_run"
    assert outcome.failure is not None
    assert "the budget of 1 s" in outcome.failure.message


@pytest.mark.requirement("CNF-45")
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "fault", "code"),
    part(2, [(signal.SIGTERM, "wrong-value", 1), (signal.SIGTERM, "none", 143), (signal.SIGINT, "none", 130)]),
)
@pytest.mark.slow
def test_a_signal_ends_with_the_summary(tmp_path: Path, number: signal.Signals, fault: str, code: int) -> None:
    command = [sys.executable, "-m", "secagg_spec.cli", "fuzz", "--time", "10m", "-k", "field.add"]
    adapter = ["--repro", str(tmp_path), "--", sys.executable, FAKE, fault]
    process = subprocess.Popen([*command, *adapter], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        awaited = "cases/s" if fault == "none" else "1 failure"
        assert any(awaited in line for line in process.stderr)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code
    assert "cases/s" in out.splitlines()[-1]
    if fault == "wrong-value":
        assert "FAIL     field.add/exact" in out
        body = json.loads((tmp_path / "adapter-field-add-exact.expected.json").read_text())
        assert body["check"] == "field.add/exact"
