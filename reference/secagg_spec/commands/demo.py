"""The command ``secagg-spec demo``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from secagg_spec.commands import conform, options
from secagg_spec.terminal import painted

TARGETS = ("node", "flower", "fedml-managers", "fedml", "openfl", "fedbiomed", "declearn")
CASES = 3
"""Cases per check: on these targets they find what a hundred find (`tests/conformance/test_demo.py`)."""
SLOW = ("sum/rounds", "view/rounds", "seal/contrast", "share/contrast", "seal/long", "/ends", "/blocks", "/size")
"""Checks of hundreds of rounds or messages, and those that ask others again with the ends of ranges or large sizes."""
BY_CHANCE = ("lightsecagg.round/parameters",)
"""Checks that draw one of several wrong requests a case, so that few cases may miss what is known."""
_JOBS = min(os.cpu_count() or 2, 8)
PAGE = Path("demo.html")
_NEXT = """The report, with each failure and its smallest case: {page}
Next: secagg-spec init --lang python    (begins an adapter for your own code)"""


def add_parser(commands: Any) -> None:
    """Add ``demo`` to the commands."""
    parser = commands.add_parser(
        "demo",
        description="Judge released frameworks and an implementation in JavaScript, live, in two minutes on two cores.",
        epilog="The exit code is that of secagg-spec conform.",
    )
    parser.add_argument("--full", action="store_true", help="all checks with 100 cases each, and every failure printed")
    parser.add_argument("--html", type=Path, default=PAGE, metavar="FILE", help=f"the report ({PAGE})")
    parser.add_argument("--jobs", type=options.jobs, default=_JOBS, metavar="N", help="number of judging processes")
    parser.set_defaults(run=main)


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    code = conform.main(conform.parsed(words(given)))
    print(_NEXT.format(page=painted(os.fspath(given.html), "strong")))
    return code


def words(given: argparse.Namespace) -> list[str]:
    """Return the options of ``secagg-spec conform`` that judge the same."""
    chosen = [part for name in TARGETS for part in ("--target", name)]
    left = [part for one in (*SLOW, *BY_CHANCE) for part in ("-k", f"!{one}")]
    few = [] if given.full else ["--brief", "--fuzz", str(CASES), *left]
    return [*chosen, *few, "--jobs", str(given.jobs), "--html", os.fspath(given.html)]
