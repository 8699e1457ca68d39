"""The command ``secagg-spec power``: what a run can catch, shown on planted bugs."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance import mutants, options
from secagg_spec.conformance.capabilities import Capabilities, greet
from secagg_spec.conformance.connection import ProcessConnection
from secagg_spec.conformance.mutants import Mutant
from secagg_spec.conformance.plain import shown
from secagg_spec.conformance.runner import Settings, run
from secagg_spec.conformance.wire import AdapterUnusable, UsageError

_USAGE = """secagg-spec power [options]
       secagg-spec power [options] -- ./adapter [arguments]"""
_EPILOG = """Without an adapter: every planted bug of the catalogue must be found (exit code 1 when one is alive).
With one: which of them a run with the operations and policies that it declares could find (exit code 0)."""


@dataclass(frozen=True)
class Kill:
    """What found a mutant: the check, how many cases that took, in the median over the seeds; nothing when alive."""

    mutant: Mutant
    checks: tuple[str, ...] = ()
    cases: int = 0


def add_parser(commands: Any) -> None:
    """Add ``power`` to the commands."""
    parser = commands.add_parser(
        "power",
        help="show which planted bugs a run finds",
        description="Run the checks on wrong implementations, each with one planted bug.",
        usage=_USAGE,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-k", dest="pattern", metavar="PATTERN", help="only mutants whose name or clause holds this")
    parser.add_argument("--fuzz", type=int, default=100, metavar="N", help="cases per check (100)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs with different seeds for each (1)")
    options.add_start_timeout(parser)
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=main)


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    for name in ("fuzz", "seeds"):
        if getattr(given, name) < 1:
            raise UsageError(f"--{name} is {getattr(given, name)}; it must be at least 1")
    chosen = [mutant for mutant in mutants.load().values() if not mutant.reach and _matches(mutant, given.pattern)]
    if not chosen:
        raise UsageError(f"-k {given.pattern}: no mutant has this in its name or clause")
    caps = None
    if given.adapter:
        try:
            caps = _declared(given.adapter, given.start_timeout)
        except AdapterUnusable as unusable:
            print(f"the adapter cannot be used: {shown(str(unusable))}", file=sys.stderr)
            return 3
    kills = []
    for kill in hunt(chosen, given.fuzz, given.seeds, caps):
        print(_line(kill, caps is not None), flush=True)
        kills.append(kill)
    return _conclude(kills, caps)


def hunt(chosen: Sequence[Mutant], cases: int, seeds: int, caps: Capabilities | None = None) -> Iterator[Kill]:
    """Yield, for each mutant, what kills it: the checks of its clause, run on the reference with the bug planted.

    With `caps`, only the checks that an adapter with these capabilities would meet count.
    """
    for mutant in chosen:
        found: list[tuple[str, int]] = []
        for seed in range(seeds):
            found += _killers(mutant, Settings(cases=cases, seed=seed, pattern=mutant.clause), caps)
        median = int(statistics.median(count for _, count in found)) if found else 0
        yield Kill(mutant, tuple(dict.fromkeys(check for check, _ in found)), median)


def _killers(mutant: Mutant, settings: Settings, caps: Capabilities | None) -> list[tuple[str, int]]:
    command = [sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", mutant.name]
    connection = ProcessConnection(command)
    try:
        _, outcomes = run(connection, settings)
    finally:
        connection.close()
    return [
        (outcome.check.id, outcome.first_failure)
        for outcome in outcomes
        if outcome.failure and (caps is None or outcome.check.runs_on(caps))
    ]


def _declared(command: Sequence[str], start_timeout: float) -> Capabilities:
    connection = ProcessConnection(command, start_timeout=start_timeout)
    try:
        return greet(connection.ask)
    finally:
        connection.close()


def _matches(mutant: Mutant, pattern: str | None) -> bool:
    return pattern is None or pattern.lower() in f"{mutant.name} {mutant.clause}".lower()


def _line(kill: Kill, for_adapter: bool) -> str:
    mutant = kill.mutant
    head = f"{mutant.name:<28} {mutant.clause}   "
    if not kill.checks:
        return head + ("out of reach of what is declared" if for_adapter else "ALIVE") + f"   ({mutant.effect})"
    others = f" and {len(kill.checks) - 1} more" if len(kill.checks) > 1 else ""
    return f"{head}killed by {kill.checks[0]}{others}, after {kill.cases} cases   ({mutant.effect})"


def _conclude(kills: Sequence[Kill], caps: Capabilities | None) -> int:
    killed = sum(bool(kill.checks) for kill in kills)
    if caps is None:
        print(f"\n{killed} of {len(kills)} planted bugs are found, {len(kills) - killed} alive")
        return 0 if killed == len(kills) else 1
    print(
        f"\n{shown(caps.name)} {shown(caps.version)}: with the operations and policies that it declares, "
        f"a run that passes could have caught {killed} of {len(kills)} known bugs"
    )
    return 0
