"""The command ``secagg-spec replay``: judge a stored failure again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks.base import Declined
from secagg_spec.conformance.running.repros import judge, load


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    stored = load(given.file)
    connection = ProcessConnection(given.adapter, given.timeout, given.start_timeout)
    try:
        failed = judge(connection, stored["check"], stored["draws"], len(stored["answers_seen"]))
    except AdapterUnusable as unusable:
        print(f"ERROR    {stored['check']}: {shown(str(unusable))}")
        return 3
    except Declined as declined:
        print(f"UNKNOWN  {stored['check']}: {declined}")
        return 3
    finally:
        connection.close()
    if failed is None and _may_need_more(stored):
        print(
            f"UNKNOWN  {stored['check']} passes with these requests alone, but it failed by requests before them\n"
            "         judge it with them: give the command of its run again, with its -k, --fuzz, --seed, --jobs"
        )
        return 3
    if failed is None:
        print(f"FIXED    {stored['check']} passes (it was: {shown(str(stored['message']))})")
        return 0
    print(f"FAILED   {stored['check']}   {failed.verdict}\n         {shown(str(failed))}")
    return 1


def _may_need_more(stored: Mapping[str, Any]) -> bool:
    """Return whether no fresh process gave the failure again, in its run: its requests alone do not cause it."""
    return stored.get("verdict") == "inconsistent" and not stored.get("repeats")
