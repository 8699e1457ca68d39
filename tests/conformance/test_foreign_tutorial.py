"""The page that judges a foreign library: its files run, its commands print what it shows, and its issue is true."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from secagg_spec import __version__
from tests import kit
from tests.quick import exhaustive

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "judge-a-foreign-library.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FILES = {name: text for kind, name, text in BLOCK.findall(PAGE) if kind == "python"}
(ISSUE,) = [text for _, name, text in BLOCK.findall(PAGE) if name == "issue.txt"]


def edited(text: str, diff: str) -> str:
    """Return a file with the lines of a diff: each run of lines to remove gives way to those to add after it."""
    for old, new in re.findall(r"((?:^-.*\n)+)((?:^\+.*\n)+)", diff, re.MULTILINE):
        before, after = (re.sub("^.", "", lines, flags=re.MULTILINE) for lines in (old, new))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def missing(shown: str, printed: str) -> Iterator[str]:
    """Yield the first line that was not printed in its place; three dots stand for lines, or for a part of one."""
    lines, gap = iter(printed.splitlines()), False
    for line in shown.splitlines():
        if line == "…":
            gap = True
            continue
        pattern = ".*".join(map(re.escape, line.split("…")))
        if not any(re.fullmatch(pattern, out) for out in (lines if gap else islice(lines, 1))):
            yield line
            return
        gap = False
    yield from () if gap else lines


def command(folder: Path, words: list[str]) -> str:
    """Return what a command of the page prints to its standard output."""
    assert words[0] == "secagg-spec"
    program = [sys.executable if word == "python" else word for word in words[1:]]
    return kit.run(program, folder).stdout.replace(sys.executable, "python")


def played(folder: Path) -> int:
    """Follow the page in a folder, and return how many of its commands ran."""
    ran = 0
    for kind, name, text in BLOCK.findall(PAGE):
        if kind == "python":
            (folder / name).write_text(text, encoding="utf-8")
        elif kind == "diff":
            (folder / name).write_text(edited((folder / name).read_text(encoding="utf-8"), text), encoding="utf-8")
        elif kind == "console":
            first, _, shown = text.partition("\n")
            assert list(missing(shown, command(folder, shlex.split(first.removeprefix("$ "))))) == []
            ran += 1
    return ran


@pytest.mark.slow
@pytest.mark.requirement("ADP-41", "ADP-43", "ADP-44", "CNF-05")
@exhaustive
def test_the_page_shows_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("COLUMNS", "200")
    assert played(tmp_path) == 6
    assert (tmp_path / "report.html").stat().st_size


def test_the_sizes_are_as_the_page_wants_them() -> None:
    lines = [line for line in FILES["adapter.py"].splitlines() if line and "import" not in line]
    assert len(lines) <= 40
    assert len(FILES["tinyagg.py"].splitlines()) <= 60


def test_the_issue_is_true_and_names_the_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tinyagg.py").write_text(FILES["tinyagg.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "issue.txt").write_text(ISSUE, encoding="utf-8")
    failed, tried = doctest.testfile(str(tmp_path / "issue.txt"), module_relative=False)
    sys.modules.pop("tinyagg")
    assert (failed, tried) == (0, 12)
    assert f"secagg-spec {__version__}." in ISSUE
    assert '__version__ = "0.3.0"' in FILES["tinyagg.py"]
    spec = " ".join((ROOT / "spec" / "adapter.md").read_text(encoding="utf-8").replace("`", "").split())
    quoted = re.findall(r"\(clause ADP-\d\d: \"([^\"]+)\"\)", " ".join(ISSUE.split()))
    assert len(quoted) == 3
    assert all(words in spec for words in quoted)
