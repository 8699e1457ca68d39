"""The action at the root: its steps install this checkout, judge an adapter as ``conform`` does, and leave reports."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.test_init import KIT, PAGE, REPORTS, fill_in, job, right_handler, started
from tests.quick import exhaustive

ROOT = Path(__file__).parents[2]
EXPECTED = """[[expect]]
target = "adapter"
checks = "lightsecagg.mask/exact"
verdict = "error"
reason = "nothing is written yet"
"""


def action() -> dict[str, Any]:
    """The action, as the service reads it."""
    yaml: Any = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def steps() -> dict[str, dict[str, Any]]:
    """The steps of the action by their names."""
    return {step["name"]: step for step in action()["runs"]["steps"]}


def run_action(folder: Path, kit: Path, **given: str) -> int:
    """Take the steps with these inputs, where ``make`` installs the kit under test; return the last exit code."""
    inputs = {name: about.get("default", "") for name, about in action()["inputs"].items()} | given
    programs = kit / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    command = kit / ".venv" / "bin" / "secagg-spec"
    (programs / "make").write_text(
        f'#!/bin/sh\ntest "$*" = "-C {kit} setup" || exit 9\nmkdir -p {command.parent}\n'
        f"printf '%s\\n' '#!/bin/sh' 'exec {shlex.join(KIT)} \"$@\"' > {command}\nchmod 700 {command}\n"
    )
    (programs / "make").chmod(0o700)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_ACTION_PATH": str(kit),
        "GITHUB_STEP_SUMMARY": str(kit / "summary.md"),
    }
    code = 0
    for step in steps().values():
        assert step["shell"] == "bash"

        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], text)

        own = {name: filled(value) for name, value in step.get("env", {}).items()}
        where = folder / filled(step.get("working-directory", "."))
        script = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        code = subprocess.run(script, cwd=where, env={**environment, **own}, check=False).returncode
        if code:
            return code
    return code


@pytest.mark.requirement("CNF-43")
def test_the_action_asks_for_what_it_needs_and_puts_no_input_into_a_script() -> None:
    inputs = action()["inputs"]
    assert [name for name, about in inputs.items() if about.get("required")] == ["adapter"]
    assert {"expect", "cases"} <= set(inputs)
    assert all("${{" not in step["run"] for step in steps().values())
    assert all("uses" not in step for step in steps().values()), "it uploads nothing, and depends on no other action"


@pytest.mark.requirement("CNF-43")
def test_the_action_gives_the_options_of_the_job_that_init_writes() -> None:
    (of_job,) = [step["run"] for step in job("python")["steps"] if step.get("name") == "conform"]
    options = set(re.findall(r"--[a-z]+\s+\S+", " ".join(of_job.split()))) - {"--expect expectations.toml"}
    assert all(option in " ".join(steps()["conform"]["run"].split()) for option in options)


@pytest.mark.requirement("CNF-43")
@pytest.mark.slow
@exhaustive
def test_the_action_fails_as_the_run_does_and_leaves_reports(tmp_path: Path) -> None:
    folder, kit = tmp_path / "their project", tmp_path / "kit"
    chosen = started("python", folder / "adapter")
    given = {"working-directory": "adapter", "cases": "2", "adapter": f"'{sys.executable}' adapter.py"}
    (folder / "adapter" / "known.toml").write_text(EXPECTED)
    assert run_action(folder, kit, expect="known.toml", **given) == 1
    assert all((folder / "adapter" / name).stat().st_size for name in REPORTS)
    assert "adapter" in (kit / "summary.md").read_text()
    report = json.loads((folder / "adapter" / "secagg.json").read_text())
    assert report["header"]["settings"]["cases"] == 2
    assert '"expected_failure"' in (folder / "adapter" / "secagg.json").read_text()

    fill_in(chosen, folder / "adapter", right_handler("python"))
    assert run_action(folder, kit, **given) == 0
    assert run_action(folder, kit, **{**given, "adapter": "./none"}) == 3


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="untested here: make is not installed")
def test_the_kit_is_where_make_puts_it() -> None:
    said = subprocess.run(
        ["make", "-C", str(ROOT), "--dry-run", "--always-make", "setup"], capture_output=True, text=True, check=True
    )
    assert ".venv/core" in said.stdout


def test_the_tutorial_shows_how_the_action_is_used() -> None:
    yaml: Any = pytest.importorskip("yaml")
    blocks = re.findall(r"^```yaml\b[^\n]*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    ((step,),) = [yaml.safe_load(block) for block in blocks if "uses:" in block]
    assert re.fullmatch(r"\S+/secagg-spec@\S+", step["uses"])
    assert set(step["with"]) <= set(action()["inputs"])
    (words,) = re.findall(r"^pytest .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shlex.split(words)[1] == "--secagg-adapter"
