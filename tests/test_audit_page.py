"""The page on auditing a deployment: its logs are those beside it, and its outputs are what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from secagg_spec.cli import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "explanation" / "auditing-a-deployment.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ secagg-spec ([^\n]*)\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize(("command", "printed"), BLOCKS, ids=[command.split("/")[-1] for command, _ in BLOCKS])
def test_outputs_are_those_of_the_command(
    command: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code = main(command.split())
    assert capsys.readouterr().out == printed
    assert code == int("random" in command or command.endswith("4"))


def test_there_are_outputs_of_each_log() -> None:
    assert len(BLOCKS) == 4
    for name in ("participation-random.csv", "participation-batches.csv"):
        assert f"(../assets/{name})" in PAGE
        assert any(name in command for command, _ in BLOCKS)


def test_the_log_of_the_page_is_the_one_beside_it() -> None:
    log = (ROOT / "docs" / "assets" / "participation-random.csv").read_text(encoding="utf-8")
    assert f"```text\n{log}```" in PAGE
