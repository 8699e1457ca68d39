"""The kit: round trips through the pipe, drawn cases, and several processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial

from tests.benchmarks.record import Absent, Aim, Benchmark, Sides, elapsed, shared

from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.running.runner import Settings, run
from secagg_spec.conformance.targets import TARGETS, TargetAbsent

REPEATS = "import os\nwhile line := os.read(0, 65536): os.write(1, line)"
"""A program that repeats lines and does nothing else."""
ECHO = Request("echo", {"data": 1})


def connected(target: str) -> ProcessConnection:
    """Return a connection that has answered once.

    Raises
    ------
    Absent
        The target cannot run here.
    """
    try:
        connection = TARGETS[target].connect(10.0)
    except TargetAbsent as absent:
        raise Absent(f"{target}: {absent}") from None
    connection.ask(ECHO)
    return connection


def _repeated(action: Callable[[], object], times: int) -> None:
    for _ in range(times):
        action()


def round_trips(target: str, calls: int) -> Sides:
    """Ask an adapter for an echo, beside a loop that writes a line, reads it and does nothing else."""
    connection = connected(target)
    bare = subprocess.Popen([sys.executable, "-c", REPEATS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert bare.stdin is not None
    assert bare.stdout is not None
    to, back, line = bare.stdin.fileno(), bare.stdout.fileno(), ECHO.line(1).encode()

    def repeated() -> None:
        os.write(to, line)
        os.read(back, 65536)

    def close() -> None:
        connection.close()
        with bare:
            bare.kill()

    sides = (shared(elapsed(partial(_repeated, action, calls)), calls) for action in (_asked(connection), repeated))
    return Sides.of(sides, close)


def _asked(connection: ProcessConnection) -> Callable[[], object]:
    return partial(connection.ask, ECHO)


def drawn_cases(check: str, cases: int) -> Sides:
    """Draw cases of a check, ask for them and compare, beside as many round trips."""
    connection = connected("reference")

    def drawn() -> float:
        _, outcomes = run(connection, Settings(cases=cases, pattern=check))
        [outcome] = [outcome for outcome in outcomes if outcome.check.id == check]
        return outcome.seconds / outcome.cases

    echoes = shared(elapsed(partial(_repeated, _asked(connection), cases)), cases)
    return Sides(drawn, echoes, connection.close)


def processes(pattern: str, jobs: int) -> Sides:
    """Judge the reference with one process, and with several."""
    return Sides.of(elapsed(partial(_judged, pattern, count)) for count in (1, jobs))


def _judged(pattern: str, jobs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = ["--jobs", str(jobs), "--target", "reference", "-k", pattern, "--repro", folder]
        subprocess.run([sys.executable, "-m", "secagg_spec.cli", "conform", *options], check=True, capture_output=True)


DRAWN = (
    "At most 1/1500 s. A round trip is a tenth of a case or less. Most of the rest is Hypothesis, which records and "
    "replays each choice so that a failure can be made small, and in rounds the keys of the parties."
)
BENCHMARKS = (
    *(
        Benchmark(
            id=f"kit-echo-{target}",
            what=f"the kit asks {name} for an echo",
            beside="a line goes through a pipe and back",
            sizes={"target": target, "calls": 3000},
            tiny={"target": target, "calls": 3},
            sides=round_trips,
            measures="elapsed time",
            aim=Aim("at most", 1 / 5000, of="what"),
        )
        for target, name in (("reference", "the reference"), ("node", "the implementation in Node"))
    ),
    *(
        Benchmark(
            id=f"kit-cases-{check.replace('.', '-').replace('/', '-')}",
            what=f"a case of {check} is drawn, asked and compared",
            beside="an echo is asked",
            sizes={"check": check, "cases": 500},
            tiny={"check": check, "cases": 2},
            sides=drawn_cases,
            measures="elapsed time",
            withdrawn=DRAWN,
            turns=3,
        )
        for check in ("field.add/exact", "field.add/types", "mds.encode/exact", "secagg.user/types")
    ),
    Benchmark(
        id="kit-jobs",
        what="the reference is judged in one process",
        beside="the same in two",
        sizes={"pattern": "mds.", "jobs": 2},
        tiny={"pattern": "mds.encode/exact", "jobs": 2},
        sides=processes,
        measures="elapsed time",
        turns=3,
        warm=False,
    ),
)
