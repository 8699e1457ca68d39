"""Runs the command line in this process: another one would load all checks again, which takes most of a second."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from secagg_spec import cli


class Done(NamedTuple):
    """What a command ended with, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(words: Sequence[str], folder: Path = Path()) -> Done:
    """Run ``secagg-spec`` with these words in a folder."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), err.getvalue())
