"""Adapters that misbehave: each gets the verdict that the text gives, and no check is lost (CNF-54)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli, resources
from secagg_spec.conformance.adapter import connection
from secagg_spec.conformance.running.runner import Settings
from tests.quick import part

pytestmark = pytest.mark.usefixtures("unshrunk")

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
ROW = re.compile(r"^\| `(?P<fault>[a-z0-9-]+)` \| (?P<about>[^|]+) \| (?P<verdict>[^|]+) \|$", re.MULTILINE)
PATTERNS = {"lies": "adapter/un*", "64-kib-line": "adapter/long-line"}
TIMEOUT = {"hang": "0.4", "closes-input": "0.4"}
EXIT_CODES = {"pass": 0, "unusable": 3}


def table() -> dict[str, str]:
    """Return the verdict on each fake that the text gives."""
    text = (resources.root("spec") / "conformance.md").read_text(encoding="utf-8")
    return {row["fault"]: row["verdict"].replace("`", "").strip() for row in ROW.finditer(text.partition("## 9.")[2])}


def conform(folder: Path, fault: str, jobs: int = 1) -> tuple[int, dict[str, Any]]:
    """Judge a fake, and return the exit code and what the report says of it."""
    pattern, timeout = PATTERNS.get(fault, "field.add/*"), TIMEOUT.get(fault, "3")
    options = ["--json", str(folder / "report.json"), "--repro", str(folder / "repro"), "--jobs", str(jobs)]
    options += ["--no-vectors", "-k", pattern, "--fuzz", "10", "--timeout", timeout, "--start-timeout", "10"]
    code = cli.main(["conform", *options, "--", sys.executable, FAKE, fault])
    [target] = json.loads((folder / "report.json").read_text())["targets"]
    wanted = {check.id for check in Settings(pattern=pattern).chosen()}
    assert wanted
    if target["unusable"] is None:
        assert {check["check"] for check in target["checks"]} == wanted
    return code, target


def judged(target: dict[str, Any]) -> str:
    """Return the verdict on an adapter: that of the failures, which must be alike, or "pass"."""
    if target["unusable"]:
        return "unusable"
    verdicts = {check["verdict"] for check in target["checks"]} - {"pass", "unsupported", "not_run"}
    return " and ".join(sorted(verdicts)) or "pass"


@pytest.mark.slow
@pytest.mark.requirement("CNF-54", "CNF-06")
@pytest.mark.parametrize("fault", part(2, table()))
def test_a_fake_has_the_verdict_of_the_table(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "closes-output":  # it runs on, and each case would wait for its end
        monkeypatch.setattr(connection, "_END_SECONDS", 0.05)
    code, target = conform(tmp_path, fault)
    assert judged(target) == table()[fault]
    assert code == EXIT_CODES.get(judged(target), 1)


@pytest.mark.requirement("CNF-54", "CNF-02")
@pytest.mark.slow
@pytest.mark.parametrize("fault", part(2, ["wrong-value", "crash", "hang-at-exit", "two-answers"]))
def test_several_jobs_judge_a_fake_alike(fault: str, tmp_path: Path) -> None:
    code, target = conform(tmp_path, fault, jobs=2)
    assert judged(target) == table()[fault]
    assert code == EXIT_CODES.get(judged(target), 1)


@pytest.mark.requirement("CNF-54")
def test_the_table_has_every_fake_that_the_program_plays() -> None:
    played = set(re.findall(r'fault == "([a-z0-9-]+)"', Path(FAKE).read_text(encoding="utf-8")))
    assert set(table()) - {"none"} == played
