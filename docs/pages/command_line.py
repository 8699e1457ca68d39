"""The page of the command line: what each command says of itself, and each command below one."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from docs.pages.common import COMMAND_LINE, relative, write
from secagg_spec import cli

WIDTH = "88"
"""The columns of the terminal for which the texts are broken."""


def write_command_line(out: Path) -> None:
    """Write the page, from the help of the commands."""
    guide = relative("explanation/commands.md", COMMAND_LINE)
    lines = [
        "# Command line\n",
        (
            f"What `secagg-spec` and each of its {len(cli.COMMANDS)} commands say when they are asked with `--help`. "
            "Where a command has commands of its own, one for each protocol, what these say stands below it. "
            f"[How they are used beside each other]({guide})."
        ),
        *sections(),
    ]
    write(out / COMMAND_LINE, "\n".join([*lines, ""]))


def sections() -> list[str]:
    """Return the section of each parser, below that of the command that it belongs to."""
    with _columns():
        return [_section(depth, parser) for depth, parser in _reached(cli.parser())]


def _section(depth: int, parser: argparse.ArgumentParser) -> str:
    return f"\n{'#' * max(depth, 2)} {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```"


def _reached(parser: argparse.ArgumentParser, depth: int = 1) -> Iterator[tuple[int, argparse.ArgumentParser]]:
    """Yield a parser and all below it, each with how deep it stands."""
    yield depth, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _reached(below, depth + 1)


@contextlib.contextmanager
def _columns() -> Iterator[None]:
    given = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        yield
    finally:
        if given is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = given
