"""How the costs of a round grow: seconds and memory of a user and of the server, by users, length and dropouts.

``python -m tests.benchmarks.growth`` measures rounds of growing sizes and stores one row for each in FILE, which
`secagg-spec plan` scales by and the page of benchmarks shows. A round is that of `planning.times`: its users share
secrets, some drop out before they upload, and the others end the round. Seconds are of the processor, the least of
some rounds: the median over users of all their steps, and the sum of the server's. Memory is what the largest step
holds above what was there before it, counted by tracemalloc in a round of its own; letters that arrived are apart.
"""

from __future__ import annotations

import json
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.benchmarks.selection import _choice
from tests.benchmarks.stored import environment

from secagg_spec.arithmetic.levels import Range
from secagg_spec.experiments import costs
from secagg_spec.planning import times
from secagg_spec.planning.times import DROPOUT, FAR_APART, FILE, Times
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Role, run_synchronous

COLLUDERS, USERS, SHARES, MIDDLE = 0.1, (28, 64, 128, 256), (DROPOUT, 0.0, 0.3), 40_000
CHOICES = (10**4, 10**5, 10**6)
FEW = 64


def spread(n: int, dropped: int) -> range:
    """Return so many of the users, evenly spread."""
    return range(0, dropped * (n // max(dropped, 1)), n // max(dropped, 1)) if dropped else range(0)


def _pairs(p: Any, opened: Any, draw: Any, dropped: int) -> Times:
    network = costs.timed(opened)
    away = spread(p.N, dropped)
    run_synchronous(network, {"masked_input": away}, draw(p, times.sources(p.N)))
    return times.of(network, [user for user in range(p.N) if user not in away])


def sparse(n: int, d: int, dropout: float) -> Times:
    """Return the times of a round of SecAgg+ with a degree that grows as the logarithm of N, as the text's bound."""
    k = min(2 * round(4 * math.log2(n)), n - 2 - n % 2)
    p = secagg.Parameters(R=2**32, N=n, D=round(0.4 * n), T=max(1, n // 10), t=max(2, k // 2), k=k, d=d)
    opened = secagg.open_round(p, p.ring.zeros(n * d).reshape(n, -1), session=bytes(16), round=0)
    return _pairs(p, opened, secagg.draw_randomness, round(dropout * n))


def grouped(n: int, d: int, dropout: float) -> Times:
    """Return the times of a round of HeteroSAg with five subgroups."""
    T, unit = 1, Range(-1.0, 1.0)
    p = Parameters(n, round(0.4 * n), T, n // 2 + 1, d, (n,), (5,), (2**16,), unit)
    opened = heterosag.open_round(p, secagg.Parameters(2**32, n, 0, 1, n, n - 1, d).ring.zeros(n * d).reshape(n, -1),
                                  session=bytes(16), round=0)  # fmt: skip
    return _pairs(p, opened, secagg.draw_randomness, round(dropout * n))


def planned(kind: str) -> Callable[[int, int, float], Times]:
    """Return a round of a kind that plans are scaled by."""

    def played(n: int, d: int, dropout: float) -> Times:
        costs._measured.cache_clear()  # else a second run of the same size would be the first one
        return times.measured(kind, n, d, dropout, COLLUDERS)

    return played


ROUNDS: Mapping[str, Callable[[int, int, float], Times]] = {
    **{kind: planned(kind) for kind in times.DEGREES},
    "secagg-plus": sparse,
    "heterosag": grouped,
}


class _Memory:
    """A clock of bytes: every second time it is read it tells the most that was held since, else what is held."""

    def __init__(self) -> None:
        self._ends = False

    def __call__(self) -> float:
        self._ends = not self._ends
        now, most = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        return float(now if self._ends else most)


def memory(kind: str, n: int, d: int, dropout: float) -> Times:
    """Return the bytes of the largest step of the median user, and of the server."""
    networks: list[costs.Timed] = []
    timed = costs.timed

    def watched(network: Any) -> costs.Timed:
        networks.append(timed(network))
        return networks[-1]

    tracemalloc.start()
    try:
        with (
            patch.object(costs, "time", SimpleNamespace(process_time=_Memory())),
            patch.object(costs, "timed", watched),
        ):
            ROUNDS[kind](n, d, dropout)
    finally:
        tracemalloc.stop()
    most: dict[tuple[Role, int], float] = {}
    for one in networks[-1].spent:
        most[one.role, one.party] = max(most.get((one.role, one.party), 0.0), one.seconds)
    users = [held for (role, _), held in most.items() if role is Role.USER]
    return Times(statistics.median(users), sum(held for (role, _), held in most.items() if role is Role.SERVER))


def sizes() -> Iterator[tuple[int, int, float]]:
    """Yield the users, the length and the share of dropouts of each round."""
    yield from ((n, d, DROPOUT) for n in USERS for d in FAR_APART)
    yield from ((FEW, MIDDLE, share) for share in SHARES)


def rows(kinds: Mapping[str, Callable[[int, int, float], Times]] = ROUNDS) -> Iterator[dict[str, Any]]:
    """Measure, and yield a row for each party and size."""
    for kind, played in kinds.items():
        for n, d, share in sizes():
            runs = [played(n, d, share) for _ in range(2 if n <= FEW else 1)]
            held = memory(kind, n, d, share) if n <= FEW and share == DROPOUT else None
            for role in ("user", "server"):
                row = {"kind": kind, "role": role, "N": n, "d": d, "dropout": share}
                row["seconds"] = float(f"{min(getattr(run, role) for run in runs):.4g}")
                yield row | ({"bytes": getattr(held, role)} if held else {})


def choosing() -> Iterator[dict[str, Any]]:
    """Measure what the server of Multi-RoundSecAgg takes to choose a thousandth of the users."""
    for N in CHOICES:
        action = _choice("fair", N, N // 1000)
        action()
        spent = []
        for _ in range(5):
            begun = time.process_time()
            action()
            spent.append(time.process_time() - begun)
        tracemalloc.start()
        action()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = {"kind": "multi-round", "role": "server", "N": N, "d": 0, "dropout": DROPOUT}
        yield row | {"seconds": float(f"{min(spent):.4g}"), "bytes": float(held)}


def main() -> int:
    """Measure, and store what was found."""
    found = []
    for row in chain(choosing(), rows()):
        print(json.dumps(row), flush=True)
        found.append(json.dumps(row))
    head = json.dumps({"schema": "secagg-spec-growth/1", "environment": environment()})[:-1]
    FILE.write_text(head + ', "rows": [\n' + ",\n".join(found) + "\n]}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
