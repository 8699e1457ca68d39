"""Whatever path stands where a command takes one, an error is one line on standard error and exit code 2."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from secagg_spec import cli, system

ROOT = Path(__file__).parents[2]
OTHERS = {
    "conform": "--target reference -k adapter/echo",
    "fuzz": "--time 1s -k lightsecagg.mask/ -- true",
    "round": "-p lightsecagg --rounds 1 --server true --user true",
    "replay": "-- true",
    "diff": "",
    "vectors": "--target reference",
    "promote": "--id promoted --clause LSA-09",
    "init": "--lang python",
    "reconstruct": "--images 1",
    "reproduce": "basecagg-fig1 --preset tiny",
    "trace": f"{ROOT}/docs/assets/trace.jsonl",
    "audit-participation": f"{ROOT}/docs/assets/participation-batches.csv",
}
"""What else the commands need to be given."""
LATER = {("diff", "new"), ("promote", "into")}
"""What is looked at only when another file was read; tests/conformance/test_promote.py has the second."""
READ = {"<log>", "<file>", "<repro>", "<old>", "--expect", "--log", "--roster", "--file"}
"""The places of files that are read."""


def places() -> Iterator[tuple[str, str, str]]:
    """Yield each command, and the place in it, an option or an argument, that takes a path."""
    [commands] = [one for one in cli.parser()._actions if isinstance(one, argparse._SubParsersAction)]
    for name, parser in commands.choices.items():
        deeper = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        below = deeper[0].choices.items() if deeper else [("", parser)]
        for kind, inner in below:
            for action in inner._actions:
                if action.type is Path and (name, action.dest) not in LATER:
                    yield name, kind, action.option_strings[0] if action.option_strings else f"<{action.dest}>"


PLACES = list(places())
WRITTEN = {"--json", "--html", "--markdown", "--badge", "--junit", "--svg", "--write-log"}
"""The places of files that are written."""
BOTH = [
    (name, kind, read, written)
    for name, kind, read in PLACES
    for other, below, written in PLACES
    if (name, kind) == (other, below) and read in READ and written in WRITTEN
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(name: str, kind: str, place: str, path: str) -> list[str]:
    """Return a command with this path in the place."""
    rest = OTHERS.get(name, "").split()
    if place.startswith("--"):
        return [name, *filter(None, [kind]), place, path, *rest]
    if name == "diff":
        return [name, path, path]
    return [name, path, *(rest if rest[:1] and rest[0].startswith("-") else [])]


def run(capsys: pytest.CaptureFixture[str], command: list[str]) -> str:
    """Run a command that has to be refused, and return the line that says why."""
    assert cli.main(command) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"secagg-spec {command[0]}: ")
    assert len(line) < 500
    return line


def test_each_place_of_a_path_is_known() -> None:
    assert len(PLACES) > 20
    assert {name for name, *_ in PLACES} >= {"conform", "diff", "replay", "segments", "trace", "audit-participation"}


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(("name", "kind", "place"), PLACES, ids=map(" ".join, PLACES))
def test_a_name_that_is_too_long_for_the_system_is_one_line(
    name: str, kind: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, words(name, kind, place, "z" * 300))
    assert not list(here.iterdir())


@pytest.mark.requirement("ERR-02")
@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize(("name", "kind", "place"), PLACES, ids=map(" ".join, PLACES))
def test_a_link_to_itself_is_one_line(
    name: str, kind: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loop").symlink_to("loop")
    run(capsys, words(name, kind, place, "loop"))
    assert [path.name for path in here.iterdir()] == ["loop"]


@pytest.mark.requirement("CNF-95", "ERR-02")
@pytest.mark.parametrize(("name", "kind", "place"), [one for one in PLACES if one[2] in READ])
def test_a_file_of_4_gib_is_read_by_no_command(
    name: str, kind: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("large.jsonl").open("wb") as file:
        file.truncate(4 << 30)
    said = run(capsys, words(name, kind, place, "large.jsonl"))
    most = 1 << 24 if place == "--expect" else 1 << 29
    assert f"4294967296 bytes, and at most {most} are read" in said or name == "trace"


def test_what_needs_more_memory_than_there_is_ends_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(path: Path) -> Path:
        raise MemoryError

    monkeypatch.setattr(system, "regular", greedy)
    assert "more memory" in run(capsys, ["audit-participation", str(ROOT / "README.md")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe with a name")
@pytest.mark.parametrize(
    "command", ["segments --svg", "conform --target reference -k adapter/echo --no-vectors --json"]
)
def test_a_pipe_that_nobody_reads_does_not_block(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert cli.main([*command.split(), "pipe"]) == 2
    assert "this is a pipe that nobody reads" in capsys.readouterr().err


def test_a_device_is_written_to(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["segments", "--svg", os.devnull]) == 0


@pytest.mark.parametrize(("name", "kind", "read", "written"), BOTH, ids=map(" ".join, BOTH))
def test_what_a_command_reads_is_not_written_over(
    name: str, kind: str, read: str, written: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(BOTH) >= 8
    Path("same").write_text("", encoding="utf-8")
    Path("link").symlink_to("same")
    for path in ("same", "link", str(here / "same")):
        command = words(name, kind, read, "same")
        at = 1 if read.startswith("<") else len(command)
        assert "the command reads this file" in run(capsys, [*command[: at + 1], written, path, *command[at + 1 :]])
    assert Path("same").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(
    "command",
    ["power --json", *(f"conform -k adapter/echo --{kind}" for kind in ("json", "html", "markdown", "junit", "badge"))],
)
def test_the_program_of_an_adapter_is_not_written_over(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("adapter.py").write_text("raise SystemExit", encoding="utf-8")
    line = run(capsys, [*command.split(), "adapter.py", "--", sys.executable, str(here / "adapter.py")])
    assert "adapter.py: the command reads this file" in line
    assert Path("adapter.py").read_text(encoding="utf-8") == "raise SystemExit"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "place"), [one for one in PLACES if one[2] in WRITTEN - {"--markdown"}])
def test_a_file_is_replaced_by_its_kind_alone(
    name: str, kind: str, place: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, command = here / "file", words(name, kind, place, "file")
    trace = Path(OTHERS["trace"]).read_text(encoding="ascii")
    log = json.dumps({"users": 3, "rounds": [[0, 1, 2]]}, indent=1)
    for content in ("import os\n", trace, log, log.replace("\n ", ""), '{\n "a": 1\n}\n'):
        path.write_text(content, encoding="utf-8")
        assert f"{place} file: this file would be lost" in run(capsys, command)
        assert path.read_text(encoding="utf-8") == content


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *(f"conform --target reference -k adapter/echo --{kind}" for kind in ("json", "html", "junit", "badge")),
        "segments --svg",
        "simulate basecagg --write-log",
        f"trace {OTHERS['trace']} --json",
        f"audit-participation {OTHERS['audit-participation']} --json",
        "selection --users 8 --per-round 4 --privacy 2 --rounds 3 --json",
        "power -k elements-that-count-for-the-whole --json",
    ],
)
def test_a_file_that_the_same_option_wrote_is_replaced(command: str, here: Path) -> None:
    path = here / "file"
    path.write_text("\n", encoding="utf-8")
    for _ in range(2):
        assert cli.main([*command.split(), "file"]) in (0, 1)
        assert path.stat().st_size > 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/stderr", "all"])
def test_a_file_behind_standard_output_loses_nothing(path: str, here: Path) -> None:
    trace = f"{ROOT}/docs/assets/trace.jsonl"
    command = [sys.executable, "-m", "secagg_spec", "trace", trace, "--json", path]
    with Path("all").open("w", encoding="utf-8") as file:
        file.write("before\n")
        file.flush()
        for _ in range(2):
            assert subprocess.run(command, stdout=file, stderr=file, check=False).returncode == 0
    alone = subprocess.run(command[:-2], capture_output=True, text=True, check=True).stdout
    text = Path("all").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.count(alone.splitlines()[0]) == text.count('"trace": ') == 2


@pytest.mark.slow
def test_two_reports_are_not_written_into_one_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", "report", "--html", str(here / "report")]
    line = run(capsys, ["conform", "--target", "reference", "-k", "adapter/echo", *files])
    assert "--json names the same file" in line
    assert not list(here.iterdir())
    assert cli.main(["conform", "--target", "reference", "-k", "adapter/echo", "--json", "r", "--html", "h"]) == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("conform --list-checks -k nosuch", "no check or vector has this id or clause"),
        ("segments --dropped 0,0", "none is given twice"),
    ],
)
def test_what_selects_nothing_or_twice_is_refused(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in run(capsys, command.split())


@pytest.mark.slow
def test_without_docstrings_the_command_says_why_it_does_not_run() -> None:
    words = [sys.executable, "-OO", "-m", "secagg_spec.cli", "simulate", "secagg"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"secagg-spec simulate: python -OO .*\n", done.stderr)
