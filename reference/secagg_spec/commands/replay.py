"""The command ``secagg-spec replay``: judge a stored failure again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from secagg_spec.commands import options
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.running.repros import judge, load

_USAGE = """secagg-spec replay FILE [--timeout S] [--start-timeout S]
                          -- ./adapter [arguments]"""
_EXIT_CODES = """prints FIXED, FAILED or ERROR; exit codes:
  0  FIXED: the case passes now
  1  FAILED: the case still fails
  2  wrong usage, or the file cannot be used
  3  ERROR: the adapter could not be used"""


def add_parser(commands: Any) -> None:
    """Add ``replay`` to the commands."""
    parser = commands.add_parser(
        "replay",
        description="Send a stored failing case to an adapter, and judge the answers.",
        usage=_USAGE,
        epilog=_EXIT_CODES,
    )
    parser.add_argument("file", type=Path, help="the .jsonl file of the failure, or its .expected.json")
    options.add_timeouts(parser)
    parser.add_argument("adapter", nargs="+", help="the command that starts the adapter, after --")
    parser.set_defaults(run=main)


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    stored = load(given.file)
    connection = ProcessConnection(given.adapter, given.timeout, given.start_timeout)
    try:
        failed = judge(connection, stored["check"], stored["draws"])
    except AdapterUnusable as unusable:
        print(f"ERROR    {stored['check']}: {shown(str(unusable))}")
        return 3
    finally:
        connection.close()
    if failed is None:
        print(f"FIXED    {stored['check']} passes (it was: {shown(str(stored['message']))})")
        return 0
    print(f"FAILED   {stored['check']}   {failed.verdict}\n         {shown(str(failed))}")
    return 1
