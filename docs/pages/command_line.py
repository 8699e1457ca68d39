"""The page of the command line: what each command says of itself."""

from __future__ import annotations

import contextlib
import io
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
            f"[How they are used beside each other]({guide})."
        ),
        _section("secagg-spec", told()),
        *(_section(f"secagg-spec {name}", told(name)) for name in cli.COMMANDS),
    ]
    write(out / COMMAND_LINE, "\n".join([*lines, ""]))


def _section(title: str, text: str) -> str:
    return f"\n## {title}\n\n```text\n{text.rstrip()}\n```"


def told(*command: str) -> str:
    """Return the help of a command, or that of the whole program."""
    said = io.StringIO()
    with _columns(), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        cli.parser(command or tuple(cli.COMMANDS)).parse_args([*command, "--help"])
    return said.getvalue()


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
