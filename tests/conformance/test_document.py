"""The report of a run as data: what stands in it, that equal runs give equal reports, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli, resources, schemas
from secagg_spec.commands import conform as command
from secagg_spec.conformance.reports import document, page
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running import parallel, suite
from secagg_spec.conformance.running.runner import Outcome, Settings, judged
from secagg_spec.errors import UsageError

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
SCHEMA = schemas.load(resources.root("spec") / "report.schema.json")


def conform(folder: Path, fault: str, *options: str) -> int:
    """Judge a fake adapter on sums modulo q, and write the report."""
    arguments = ["conform", "--fuzz", "8", "-k", "field.add/", "--repro", str(folder / "repro")]
    return cli.main([*arguments, "--json", str(folder / "report.json"), *options, "--", sys.executable, FAKE, fault])


def report(folder: Path) -> dict[str, Any]:
    """Return the report as it was written."""
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.requirement("CNF-04", "CNF-07", "CNF-08")
@pytest.mark.parametrize("fault", ["none", "wrong-value", "crash", "reject-everything"])
def test_a_report_keeps_its_schema_and_says_what_judged(tmp_path: Path, fault: str) -> None:
    code = conform(tmp_path, fault)
    body = report(tmp_path)
    assert list(schemas.faults(body, SCHEMA)) == []
    assert document.load(tmp_path / "report.json") == body
    [target] = body["targets"]
    assert target["exit_code"] == code == (fault != "none")
    assert target["hello"]["implementation"]["name"] == "fake"
    assert body["header"]["vectors"] == suite.vectors_digest()
    assert body["header"]["settings"]["cases"] == 8
    assert body["footer"]["checks"] == len(target["checks"])
    assert bool(body["footer"]["failed"]) == (fault != "none")
    for check in target["checks"]:
        failure = check["failure"]
        assert failure is None or len(failure["requests"]) == len(failure["answers"]) > 0


@pytest.mark.slow
@pytest.mark.requirement("CNF-02")
def test_equal_runs_give_equal_reports_however_many_processes_judge(tmp_path: Path) -> None:
    bodies = []
    for jobs in ("1", "2", "1"):
        conform(tmp_path, "wrong-value", "--jobs", jobs)
        body = report(tmp_path)
        body["timing"] = {}
        bodies.append(body)
    assert bodies[0] == bodies[1] == bodies[2]
    conform(tmp_path, "wrong-value", "--seed", "1")
    assert report(tmp_path)["footer"]["digest"] != bodies[0]["footer"]["digest"]


@pytest.mark.slow
@pytest.mark.requirement("CNF-08")
def test_a_report_that_is_cut_or_altered_is_refused(tmp_path: Path) -> None:
    conform(tmp_path, "none")
    path, whole = tmp_path / "report.json", report(tmp_path)
    checks = whole["targets"][0]["checks"]
    broken: dict[str, dict[str, Any]] = {
        "no footer": {name: value for name, value in whole.items() if name != "footer"},
        "digest in the footer": {**whole, "header": {**whole["header"], "kit": "9"}},
        "this kit reads": {**whole, "schema": "secagg-spec-report/1"},
        "counts in the footer": {**whole, "footer": {**whole["footer"], "failed": 7}},
        "timing": {name: value for name, value in whole.items() if name != "timing"},
    }
    path.write_text(json.dumps({**whole, "timing": {}}))
    assert document.load(path)["targets"][0]["checks"] == checks
    for said, body in broken.items():
        path.write_text(json.dumps(body))
        with pytest.raises(UsageError, match=said):
            document.load(path)
    path.write_text(json.dumps(whole)[:-9])
    with pytest.raises(UsageError, match="not JSON, or it was cut"):
        document.load(path)
    for content, why in (
        (b"[]", "it holds no object"),
        (b"\xff\xfe{\x00", "UTF-8 in line 1"),
        (b'{"a": NaN}', "has NaN"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=why):
            document.load(path)
    with pytest.raises(UsageError, match="No such file"):
        document.load(tmp_path / "nothing.json")


@pytest.mark.slow
@pytest.mark.requirement("CNF-08")
def test_a_verdict_that_was_altered_changes_the_digest(tmp_path: Path) -> None:
    conform(tmp_path, "wrong-value")
    text = (tmp_path / "report.json").read_text()
    (tmp_path / "report.json").write_text(text.replace('"verdict": "wrong_value"', '"verdict": "pass"', 1))
    with pytest.raises(UsageError, match="altered"):
        document.load(tmp_path / "report.json")


def ended(tmp_path: Path, seconds: float) -> dict[str, Any]:
    """Return the report of a run that was ended after so many seconds of judging."""
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--repro", str(tmp_path / "repro"), "--fuzz", "400"]
    kit = subprocess.Popen(
        [*command, "--json", str(path), "--", sys.executable, FAKE, "slow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert kit.stderr is not None
    assert b"judging" in kit.stderr.readline()
    time.sleep(seconds)
    kit.send_signal(signal.SIGTERM)
    kit.communicate(timeout=120)
    assert kit.returncode == 128 + signal.SIGTERM
    return report(tmp_path)


@pytest.mark.slow
@pytest.mark.requirement("CNF-09")
def test_a_run_that_is_ended_leaves_what_was_judged_without_a_footer(tmp_path: Path) -> None:
    bodies = []
    for seconds in (4, 20, 100):
        bodies.append(ended(tmp_path, seconds))
        if any(check["verdict"] == "pass" for check in bodies[-1]["targets"][0]["checks"]):
            break
    assert all("footer" not in body for body in bodies)
    assert any(check["verdict"] == "pass" for check in bodies[-1]["targets"][0]["checks"])
    with pytest.raises(UsageError, match="no footer"):
        document.load(tmp_path / "report.json")


@pytest.mark.requirement("CNF-09")
def test_an_interrupt_leaves_what_was_judged_without_a_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(range(2))

    def judged_or_ended(*arguments: Any) -> Outcome:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return judged(*arguments)

    monkeypatch.setattr(command, "judged", judged_or_ended)
    assert conform(tmp_path, "wrong-value") == 130
    body = report(tmp_path)
    assert "footer" not in body
    ran = [check for check in body["targets"][0]["checks"] if check["verdict"] != "unsupported"]
    assert len(ran) == 2
    failed = [check["failure"] for check in ran if check["failure"]]
    assert all((Path(failure["repro"])).is_file() for failure in failed)


@pytest.mark.requirement("CNF-01", "CNF-04")
def test_what_was_not_run_is_no_pass_and_a_run_of_nothing_no_success(tmp_path: Path) -> None:
    assert conform(tmp_path, "none", "--budget", "0.000001") == 3
    body = report(tmp_path)
    assert {check["verdict"] for check in body["targets"][0]["checks"]} <= {"not_run", "unsupported"}
    assert "pass" not in body["targets"][0]["clauses"].values()
    arguments = ["conform", "-k", "shamir.share/", "--repro", str(tmp_path / "repro")]
    assert cli.main([*arguments, "--", sys.executable, FAKE, "none"]) == 4


@pytest.mark.slow
@pytest.mark.requirement("CNF-03", "CNF-10", "CNF-58")
def test_a_vector_that_fails_says_which_bug_it_suggests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["conform", "-k", "field.add", "--repro", str(tmp_path), "--json", str(tmp_path / "report.json")]
    assert cli.main([*arguments, "--", sys.executable, FAKE, "wrong-value"]) == 1
    checks = report(tmp_path)["targets"][0]["checks"]
    failed = [check for check in checks if check["failure"] and check["check"].startswith("vector/")]
    assert failed
    flags = {check["check"]: suite.flags(check["check"]).values() for check in failed}
    alone = {name for name, known in flags.items() if len({bug for flag in known for bug in flag.mutants}) == 1}
    assert {check["check"] for check in failed if check["failure"]["suggests"]} == alone != set(flags)
    assert "suggests:" in capsys.readouterr().out
    [repro] = [Path(failed[0]["failure"]["repro"])]
    again = subprocess.run(
        [sys.executable, FAKE, "wrong-value"], input=repro.read_bytes(), capture_output=True, check=True
    )
    answer = json.loads(again.stdout.splitlines()[-1])
    assert {name: answer[name] for name in answer if name != "id"} == failed[0]["failure"]["answers"][-1]
    assert cli.main(["replay", str(repro), "--", sys.executable, FAKE, "wrong-value"]) == 1
    assert cli.main(["replay", str(repro), "--", sys.executable, FAKE, "none"]) == 0


@pytest.mark.slow
@pytest.mark.requirement("CNF-01")
def test_a_process_that_judges_and_ends_leaves_checks_that_were_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_begin", _die)
    assert conform(tmp_path, "none", "--jobs", "2") == 3
    checks = report(tmp_path)["targets"][0]["checks"]
    ran = [check for check in checks if check["verdict"] != "unsupported"]
    assert {check["verdict"] for check in ran} == {"not_run"}
    assert "a process that judged has ended" in ran[0]["failure"]["message"]


def _die(stopped: object) -> None:
    os._exit(1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="interrupts can be blocked on POSIX alone")
def test_a_process_that_judges_hears_no_interrupt_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_begin", _begin_if_deaf)
    assert conform(tmp_path, "none", "--jobs", "2", "-k", "field.add/") == 0


def _begin_if_deaf(stopped: Any) -> None:
    if signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        os._exit(1)
    parallel._begin(stopped)


CHANGES = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import fake_adapter
started = Path(sys.argv[2])
if started.exists():
    fake_adapter.HELLO["operations"]["field.add"] = {"ranges": {"q": {"values": ["7"]}}}
started.write_text("")
fake_adapter.main("none")
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-06", "CNF-07")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_process_that_declares_something_else_is_refused(tmp_path: Path, jobs: str) -> None:
    path, folder = tmp_path / "report.json", str(Path(FAKE).parent)
    arguments = ["conform", "--fuzz", "3", "-k", "field.add/", "--jobs", jobs, "--repro", str(tmp_path / "repro")]
    adapter = [sys.executable, "-c", CHANGES, folder, str(tmp_path / "started")]
    code = cli.main([*arguments, "--json", str(path), "--", *adapter])
    checks = report(tmp_path)["targets"][0]["checks"]
    if jobs == "1":
        assert code == 0, "one process is never started again"
        return
    assert code == 3
    assert {check["verdict"] for check in checks} <= {"not_run", "unsupported"}
    messages = [check["failure"]["message"] for check in checks if check["failure"]]
    assert "its hello does not declare what that of an earlier process did" in messages[0]


@pytest.mark.slow
@pytest.mark.requirement("CNF-09")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_the_files_are_written_also_when_standard_output_is_full(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "-k", "field.add/exact", "--fuzz", "3"]
    path = tmp_path / "report.json"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--repro", str(tmp_path / "repro"), "--json", str(path), "--", sys.executable, FAKE, "none"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert document.load(path)["footer"]["failed"] == 0


@pytest.mark.slow
@pytest.mark.requirement("CNF-03")
def test_passes_whose_reason_was_not_checked_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conform(tmp_path, "other-code")
    [target] = report(tmp_path)["targets"]
    unchecked = sum(check["verdict"] == "pass" and not check["reason_checked"] for check in target["checks"])
    assert unchecked
    assert f"{unchecked} of these for a reason that was not checked" in capsys.readouterr().out


@pytest.mark.requirement("CNF-09")
def test_a_run_that_is_ended_before_anything_was_judged_has_a_page(tmp_path: Path) -> None:
    body = document.document([TargetReport("adapter")], Settings(), complete=False)
    assert "It was not judged." in page.html(body)


@pytest.mark.slow
@pytest.mark.requirement("CNF-08")
def test_a_report_with_two_targets_of_one_name_is_refused(tmp_path: Path) -> None:
    conform(tmp_path, "none")
    body = report(tmp_path)
    body["targets"] *= 2
    body["footer"].update(targets=2, checks=2 * body["footer"]["checks"], digest=document.digest(body))
    with pytest.raises(UsageError, match="two targets have one name"):
        document.refuse_unusable("report", body)
    body["targets"].pop()
    body["targets"][0]["checks"] *= 2
    body["footer"] = {**document.counts(body), "digest": document.digest(body)}
    with pytest.raises(UsageError, match=r"^report: two checks of 'adapter' have one name$"):
        document.refuse_unusable("report", body)
