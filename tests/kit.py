"""Runs the command line in this process: another one would load all checks again, which takes most of a second.

A stored failure that a test changes is sealed again here.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from secagg_spec import cli
from secagg_spec.conformance.running import repros


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


def sealed(path: Path) -> Path:
    """Seal the stored failure in a ``.jsonl`` file again, and return the path."""
    beside = repros.both(path)[1]
    stored = json.loads(beside.read_text(encoding="utf-8"))
    seal = repros.seal(path.read_bytes(), stored)
    beside.write_text(json.dumps({**stored, "seal": seal}), encoding="utf-8")
    return path
