"""The commands that pages show: where they stand, and what is shown of their output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from secagg_spec.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "spec").glob("*.md")),
)
_FENCE = re.compile(r"^( *)```")
_COMMAND = re.compile(rf"^(?:\$ )?((?:secagg-spec (?:{'|'.join(COMMANDS)})|make [a-z]+)\b.*)$")
_ASIDE = re.compile(r"\s{2,}(?![-<|]).*$")
"""What stands behind a command as a remark: after two spaces, or a #."""


@dataclass(frozen=True)
class Shown:
    """A command of a page, its line, and what is shown below it up to the next command, where it has a ``$``."""

    page: str
    line: int
    text: str
    output: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The command as a shell splits it, without a remark."""
        return shlex.split(_ASIDE.sub("", self.text), comments=True)


def shown(path: Path) -> list[Shown]:
    """Return the commands of a page, from blocks of code."""
    found: list[Shown] = []
    for block in _blocks(path.read_text(encoding="utf-8")):
        for at, (line, text) in enumerate(block):
            command = _COMMAND.match(text)
            if command:
                rest = [after for _, after in block[at + 1 :]] if text.startswith("$ ") else []
                ends = [number for number, after in enumerate(rest) if after.startswith("$ ")]
                output = rest[: ends[0]] if ends else rest
                found.append(Shown(str(path.relative_to(ROOT)), line, command[1], tuple(output)))
    return found


def _blocks(text: str) -> Iterator[list[tuple[int, str]]]:
    """Yield the blocks of code of a page, fenced or indented, as numbered lines without their indent."""
    fence, block = None, list[tuple[int, str]]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = _FENCE.match(line)
        if mark and fence is None:
            yield block
            fence, block = len(mark[1]), []
        elif mark:
            yield block
            fence, block = None, []
        elif fence is not None:
            block.append((number, line[fence:]))
        elif line.startswith("    "):
            block.append((number, line[4:]))
        elif line.strip():
            yield block
            block = []


def matches(expected: tuple[str, ...], output: str) -> str:
    """Return the first line of shown output that is not in the real one in this order; empty when all are.

    A line may end in an ellipsis, which stands for the rest of the line; one of an ellipsis alone stands for any lines.
    """
    lines = [line.rstrip() for line in output.splitlines()]
    at, skip = 0, True
    for wanted in (line.rstrip() for line in expected):
        if wanted.strip() in {"…", "..."}:
            skip = True
            continue
        places = [number for number in range(at, len(lines)) if _alike(wanted, lines[number])]
        if not places or (not skip and places[0] != at):
            return wanted
        at, skip = places[0] + 1, False
    return ""


def _alike(wanted: str, line: str) -> bool:
    parts = [re.escape(part) for part in wanted.split("…")]
    return re.fullmatch(".*".join(parts), line) is not None
