"""The audit of logs beside a rank for each prefix of the same log: ``make bench``. Nothing here is a test."""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from secagg_spec.arithmetic import rationals
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.privacy.multiround import audit
from secagg_spec.privacy.participation import account
from secagg_spec.selection import logs

RUNS = 3
CHOSEN = 10
"""One user in so many is in a sum."""


def main() -> None:
    """Print all figures."""
    for users in (40, 80, 120):
        beside_ranks(random_log(2 * users, users))
    if "--large" in sys.argv:
        whole(random_log(10_000, 1000))


def random_log(rounds: int, users: int) -> BoolArray:
    """Return a log of rounds of one user in ten, at random."""
    random = np.random.default_rng(users)
    log = np.zeros((rounds, users), dtype=bool)
    for row in log:
        row[random.choice(users, users // CHOSEN, replace=False)] = True
    return log


def beside_ranks(log: BoolArray) -> None:
    """Time the audit in turn with a rank over the integers of each prefix, which does not even say who comes out."""
    times = [(seconds(lambda: audit(log)), seconds(lambda: ranks(log))) for _ in range(RUNS)]
    ratio = statistics.median(naive / ours for ours, naive in times)
    print(f"audit of {len(log)} rounds, {log.shape[1]} users: ranks of all prefixes take {ratio:.1f} times as long")


def ranks(log: BoolArray) -> list[int]:
    """Return the rank of the first t + 1 rounds, for each t."""
    return [rationals.rank(log[: at + 1]) for at in range(len(log))]


def seconds(run: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def whole(log: BoolArray) -> None:
    """Time reading, audit, and ten combinations, in processor time, and say how much memory they took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        lines = (f"{at},{user}\n" for at, row in enumerate(log) for user in np.flatnonzero(row))
        path.write_text("round,user\n" + "".join(lines), encoding="utf-8")
        start = time.process_time()
        read = logs.read(path)
        then = time.process_time()
        found = account(read)
        at = time.process_time()
        found.combined(list(found.found)[:10])
        end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{len(log)} rounds, {log.shape[1]} users: read {then - start:.1f} s, audit {at - then:.1f} s, "
        f"ten combinations {end - at:.1f} s, {peak} MiB"
    )


if __name__ == "__main__":
    main()
