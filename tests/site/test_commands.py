"""Every command on every page runs, ends with the code that is right, and prints the lines that are shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.quick import exhaustive, part
from tests.site.commands import PAGES, ROOT, Shown, matches, shown

from secagg_spec import cli
from secagg_spec.conformance import targets

ALL = [command for page in PAGES for command in shown(page)]
TARGETS = Path(targets.__file__).parent
SMALL = "lightsecagg.mask/"

INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "fuzz --time 10m -- ./adapter": f"fuzz --time 1s -k {SMALL} -- ./adapter",
        "conform --html report.html --junit report.xml -- node adapter.js": (
            f"conform -k {SMALL} --html report.html --junit report.xml -- node adapter.js"
        ),
        "conform --brief --html report.html -- node adapter.js": (
            f"conform --brief -k {SMALL} --html report.html -- node adapter.js"
        ),
        "conform --jobs 2 --fuzz 2000 -k LSA-09 -- ./adapter": f"conform --jobs 2 --fuzz 20 -k {SMALL} -- ./adapter",
        "conform -- ./adapter": f"conform -k {SMALL} -- ./adapter",
        "round --server ./a --user ./b": "round -p lightsecagg --rounds 1 --server ./a --user ./b",
        "claims --verify": "claims --verify --paper multi-round --verdict refuted",
        "vectors -- ./adapter": "vectors -k LSA-02 -- ./adapter",
        "replay repro/adapter-….jsonl -- node adapter.js": (
            "replay repro/adapter-lightsecagg-mask-exact.jsonl -- node adapter.js"
        ),
        "replay repro/adapter-adversary-secagg-user.jsonl -- ./adapter": (
            "replay repro/adapter-lightsecagg-mask-exact.jsonl -- ./adapter"
        ),
        "reproduce basecagg-fig1": "reproduce basecagg-fig1 --preset tiny",
    }
)
"""What is run in the place of a command that takes long, or that names a file which only its reader has."""

PARSED: Mapping[str, str] = MappingProxyType(
    {
        "--data-dir": "it reads data that the project does not hold",
        "reconstruct --images 4 --net dense --out pictures": "tests/test_reconstruct_command.py runs it on one image",
        "fuzz --rounds 4 -k lightsecagg.mask/ -- ./wrong": "it takes a minute; tests/conformance/test_fuzz.py does it",
        "promote ": "it writes into spec/vectors; tests/conformance/test_promote.py does it beside a copy",
        "selection --users 120": "it takes long; tests/test_selection_command.py runs smaller ones",
        "conform -- python adapter.py": "tests/site/test_site.py runs it on the adapter of the tutorial",
        "conform -k LSA-0 -- python adapter.py": "tests/site/test_site.py runs it on the adapter of the tutorial",
    }
)
"""Commands that are only parsed, by a part of them, each with the reason."""

PLAYED: Mapping[str, str] = MappingProxyType(
    {"docs/tutorials/judge-a-foreign-library.md": "tests/conformance/test_foreign_tutorial.py plays the whole page"}
)
"""Pages whose commands are only parsed, each with the reason."""

CODES: Mapping[str, int] = MappingProxyType(
    {
        "check --start-timeout": 3,
        "round -p secagg": 1,
        "diff old.json new.json": 1,
        "privacy lightsecagg --points": 1,
        "privacy lightsecagg --preset tiny --points": 1,
        "privacy basecagg --weights": 1,
        "privacy basa --rule paper": 1,
        "plan --users 1000 --dimension 1e6 --dropout 0.1 --colluders 0.2 --rounds 100": 1,
        "privacy secagg --neighbours 2 --threshold 2": 1,
        "audit-participation docs/assets/participation-random.csv": 1,
        "audit-participation docs/assets/participation-batches.csv --users 12 --privacy 4": 1,
        "trace docs/assets/trace-asked-twice.jsonl": 1,
    }
)
"""The exit codes that are not 0, by how a command begins."""


LONG = {
    *("check", "conform", "diff", "fuzz", "privacy", "reconstruct", "replay", "reproduce", "round", "selection"),
    *("vectors", "--verify"),
}
"""What commands that are left out of ``make quick`` say."""
COMMANDS = [
    pytest.param(
        one,
        id=f"{one.page}:{one.line}",
        marks=[*[exhaustive] * (one.words[1:] == ["selection"]), *[pytest.mark.slow] * bool(LONG & {*one.words})],
    )
    for one in {
        (*one.words, one.output, one.page in PLAYED): one for one in ALL if one.words[0] == "secagg-spec"
    }.values()
]
"""Each command once, and once more for each other output that a page shows of it."""


QUIET = """import json, sys
for line in sys.stdin.readlines():
    print(json.dumps({"id": json.loads(line)["id"], "result": {}}))
"""
"""An adapter that answers when its input ends."""


def program(path: Path, *command: str) -> None:
    """Write a program that starts another."""
    path.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages take for given: adapters, reports, a failure, a log."""
    folder = tmp_path_factory.mktemp("workshop")
    reference = (sys.executable, "-m", "secagg_spec.conformance.targets.reference")
    for name in ("adapter", "a", "b"):
        program(folder / name, *reference)
    program(folder / "wrong", *reference, "--mutant", "mask-is-subtracted")
    program(folder / "other", *reference, "--mutant", "masks-are-all-added")
    (folder / "quiet.py").write_text(QUIET, encoding="utf-8")
    tutorial = (ROOT / "docs" / "tutorials" / "first-adapter.md").read_text(encoding="utf-8")
    (folder / "adapter.py").write_text(re.findall(r"^```python\b[^\n]*\n(.*?)^```$", tutorial, re.M | re.S)[0], "utf-8")
    shutil.copytree(TARGETS / "node", folder, dirs_exist_ok=True)
    shutil.copytree(ROOT / "docs" / "assets", folder / "docs" / "assets")
    (folder / "log.csv").write_text("round,users\n0,1 2 3\n1,1 2 3\n", encoding="utf-8")
    return folder


@pytest.fixture
def inside(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the working directory, with this Python first on the path."""
    monkeypatch.chdir(workshop)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return workshop


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all that it wrote."""
    try:
        code = cli.main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out + err


def begun(table: Mapping[str, int], command: str) -> int:
    return next((code for start, code in table.items() if command.startswith(start)), 0)


def test_the_pages_show_commands_and_each_way_round_them_is_used() -> None:
    texts = {" ".join(one.words[1:]) for one in ALL if one.words[0] == "secagg-spec"}
    assert len(texts) > 60
    assert INSTEAD.keys() <= texts
    for words in PARSED:
        assert any(words in text for text in texts), words
    assert PLAYED.keys() <= {one.page for one in ALL}
    for start in CODES:
        assert any(text.startswith(start) for text in texts), start


@pytest.mark.parametrize(
    "command", [one for one in ALL if one.words[0] == "make"], ids=lambda one: f"{one.page}:{one.line}"
)
def test_every_make_target_on_a_page_is_there(command: Shown) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{re.escape(command.words[1])}:.*## ", makefile, re.MULTILINE)


def test_every_make_target_installs_the_package_before_it_runs_python() -> None:
    """In a fresh clone an interpreter alone is not enough: `make formal` writes examples by the package."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z-]+):(.*?)##.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    assert len(rules) == makefile.count("  ## ")
    runs = {name for name, _, recipe in rules if "$(BIN)/" in recipe}
    assert "formal" in runs
    assert runs - {name for name, needs, _ in rules if "$(VENV)/" in needs} == set()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(("full", "options"), [("1", " --full"), ("0", ""), ("no", ""), ("", "")])
def test_the_full_demo_is_run_for_1_alone(full: str, options: str) -> None:
    said = subprocess.run(
        ["make", "-n", "--no-print-directory", "demo", f"FULL={full}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines()[-1].rstrip() == f".venv/bin/secagg-spec demo{options}"


@pytest.mark.parametrize("command", part(3, COMMANDS))
def test_every_command_on_a_page_runs_and_prints_what_is_shown(
    command: Shown, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(command.words[1:])
    if command.page in PLAYED or any(part in text for part in PARSED):
        assert callable(cli.parser().parse_args(command.words[1:]).run)
        return
    words = INSTEAD[text].split() if text in INSTEAD else command.words[1:]
    prepare(words, inside, capsys)
    if words[0] == "init":
        monkeypatch.chdir(tmp_path)
    code, output = run(words, capsys)
    assert code == begun(CODES, text), output
    assert matches(command.output, output) == "", output


def prepare(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Make what a command reads: two reports, or a failure."""
    if words[0] == "diff" and not (folder / "new.json").exists():
        for name, adapter in (("old.json", "./adapter"), ("new.json", "./wrong")):
            run(["conform", "-k", SMALL, "--seed", "0", "--json", name, "--", adapter], capsys)
    if words[0] == "diff":
        assert json.loads((folder / "new.json").read_text(encoding="utf-8"))
    if words[0] == "replay":
        run(["conform", "-k", SMALL, "--seed", "0", "--", "./wrong"], capsys)
    capsys.readouterr()
