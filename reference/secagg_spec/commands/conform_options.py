"""The options of ``secagg-spec conform``, apart from what judges: its help is printed without loading a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from secagg_spec.commands import options
from secagg_spec.conformance.adapter import values

_REPRO = Path("repro")
CASES = 100
FILES = ("json", "html", "markdown", "badge", "junit")
"""The options that name an output file."""
_USAGE = """secagg-spec conform [options] --target NAME [--target NAME …]
       secagg-spec conform [options] -- ./adapter [arguments]"""
_EXIT_CODES = """exit codes:
  0  every check passed, or failed as expected
  1  a check failed, or an expectation is stale
  2  wrong usage, or a file that cannot be used or written
  3  an adapter could not be used; or a check did not run, and none failed
  4  nothing ran"""

_RULES = options.Rules(only={"list_targets": (), "list_checks": ("patterns", "no_vectors")})


def add_parser(commands: Any) -> None:
    """Add ``conform`` to the commands."""
    parser = commands.add_parser(
        "conform",
        description="Judge implementations against the text, through their adapters (spec/adapter.md).",
        usage=_USAGE,
        epilog=_EXIT_CODES,
    )
    options.add_targets(parser)
    parser.add_argument("--list-targets", action="store_true", help="list the known implementations and exit")
    parser.add_argument("--list-checks", action="store_true", help="list the checks and exit")
    options.add_pattern(parser)
    parser.add_argument("--no-vectors", action="store_true", help="run only checks that draw cases, no test vectors")
    parser.add_argument("--fuzz", type=values.count, default=CASES, metavar="N", help=f"cases per check ({CASES})")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the cases (0)")
    options.add_timeouts(parser)
    parser.add_argument(
        "--budget", type=values.seconds, metavar="S", help="seconds for the whole run, in equal shares for all checks"
    )
    parser.add_argument("--jobs", type=options.jobs, default=1, metavar="N", help="number of judging processes (1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as one HTML page")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="append a summary in Markdown to a file")
    parser.add_argument("--badge", type=Path, metavar="FILE", help="write badge data (shields.io endpoint)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument(
        "--expect", type=Path, metavar="FILE", help="expected failures (TOML); your adapter is named adapter"
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="write what fails in this run as a new file for --expect"
    )
    parser.add_argument("--repro", type=Path, default=_REPRO, metavar="DIR", help="folder for failing cases (repro)")
    parser.add_argument("--brief", action="store_true", help="print one screen: counts, and the worst findings")
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=options.later("conform"), rules=_RULES)
