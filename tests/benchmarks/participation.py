"""The audit of participation logs: beside a rank for each prefix of the same log, and as a command on a large one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from resource import struct_rusage

import numpy as np
from tests.benchmarks.record import Aim, Benchmark, Side, Sides, counted, processor

from secagg_spec.arithmetic import rationals
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.privacy.multiround import audit
from secagg_spec.selection import logs


def random_log(rounds: int, users: int, chosen: int) -> BoolArray:
    """Return a log of rounds in each of which so many users are chosen at random."""
    random = np.random.default_rng(users)
    log = np.zeros((rounds, users), dtype=bool)
    for row in log:
        row[random.choice(users, chosen, replace=False)] = True
    return log


def beside_ranks(rounds: int, users: int, chosen: int) -> Sides:
    """Take a rank over the integers of each prefix, which does not even say who comes out, and audit the log."""
    log = random_log(rounds, users, chosen)
    return Sides(processor(partial(_ranks, log)), processor(partial(audit, log)))


def _ranks(log: BoolArray) -> list[int]:
    return [rationals.rank(log[: at + 1]) for at in range(len(log))]


# ------------------------------------------------------------------------------------------------- as a command


def _written(folder: str, log: BoolArray) -> Path:
    path = Path(folder) / "log.csv"
    lines = (f"{at},{user}\n" for at, row in enumerate(log) for user in np.flatnonzero(row))
    path.write_text("round,user\n" + "".join(lines), encoding="utf-8")
    return path


def _used(path: Path, users: int) -> struct_rusage:
    """Return what the command used for a log."""
    command = [sys.executable, "-m", "secagg_spec.cli", "audit-participation", str(path), "--users", str(users)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 1}, f"audit-participation ended with {process.returncode}"
    return used


def _command(side: Callable[[Path, int], Side], beside: Callable[[Path], Side], *log: int) -> Sides:
    folder = tempfile.TemporaryDirectory()
    path = _written(folder.name, random_log(*log))
    return Sides(side(path, log[1]), beside(path), folder.cleanup)


def _seconds(path: Path, users: int) -> Side:
    def side() -> float:
        used = _used(path, users)
        return used.ru_utime + used.ru_stime

    return side


def command_beside_reading(rounds: int, users: int, chosen: int) -> Sides:
    """Run the whole command on a log, and read the log alone."""
    return _command(_seconds, lambda path: processor(partial(logs.read, path)), rounds, users, chosen)


def memory_of_command(rounds: int, users: int, chosen: int) -> Sides:
    """Take the most memory that the command has, with the program itself, and the size of the log."""
    return _command(
        lambda path, users: lambda: 1024.0 * _used(path, users).ru_maxrss,
        lambda path: counted(path.stat().st_size),
        *(rounds, users, chosen),
    )


SOLVED = (
    "At most a third of what it took at first. It takes a little more than half: most of what is left is the exact "
    "solution of 1,000 equations over the integers by FLINT, on which the verdict rests."
)
LARGE = {"rounds": 10_000, "users": 1000, "chosen": 100}
TINY = {"rounds": 8, "users": 6, "chosen": 3}
BENCHMARKS = (
    *(
        Benchmark(
            id=f"participation-ranks-{users}",
            what="the ranks of all prefixes of a log",
            beside="the audit of the log, which also says who comes out",
            sizes={"rounds": 2 * users, "users": users, "chosen": users // 10},
            tiny=TINY,
            sides=beside_ranks,
            turns=3,
        )
        for users in (40, 80, 120)
    ),
    Benchmark(
        id="participation-command",
        what="secagg-spec audit-participation on a large log",
        beside="the log is read",
        sizes=LARGE,
        tiny=TINY,
        sides=command_beside_reading,
        withdrawn=SOLVED,
        turns=3,
        warm=False,
    ),
    Benchmark(
        id="participation-memory",
        what="memory of secagg-spec audit-participation on a large log",
        beside="the log",
        sizes=LARGE,
        tiny=TINY,
        sides=memory_of_command,
        measures="memory",
        aim=Aim("at most", 2 * 2**30, of="what"),
        turns=1,
        warm=False,
    ),
)
