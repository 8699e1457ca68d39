"""The command ``secagg-spec demo``."""

from __future__ import annotations

import argparse
import os

from secagg_spec.commands import conform
from secagg_spec.terminal import painted

TARGETS = ("node", "flower", "fedml-managers", "fedml", "openfl", "fedbiomed", "declearn")
CASES = 3
"""Cases per check: on these targets they find what a hundred find (`tests/conformance/test_readme.py`)."""
SLOW = (
    *("sum/rounds", "view/rounds", "seal/contrast", "share/contrast", "seal/long"),
    *("/ends", "/blocks", "/size", "/long-line"),
)
"""Checks of hundreds of rounds or messages, and those that ask others again with the ends of ranges or large sizes."""
_NEXT = """The report, with each failure and its smallest case: {page}
Next: secagg-spec init --lang python    (begins an adapter for your own code)"""


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    code = conform.main(conform.parsed(words(given)))
    print(_NEXT.format(page=painted(os.fspath(given.html), "strong")))
    return code


def words(given: argparse.Namespace) -> list[str]:
    """Return the options of ``secagg-spec conform`` that judge the same."""
    chosen = [part for name in TARGETS for part in ("--target", name)]
    left = [part for one in SLOW for part in ("-k", f"!{one}")]
    few = [] if given.full else ["--brief", "--fuzz", str(CASES), *left]
    return [*chosen, *few, "--jobs", str(given.jobs), "--html", os.fspath(given.html)]
