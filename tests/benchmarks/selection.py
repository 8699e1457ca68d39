"""How long it takes to choose among many users: ``make bench``.

The family is never listed: with 10**6 users it has more sets than anybody can write down. What is taken is to grow as
the number of users does, so that ten times as many users take about ten times as long. All times are seconds of the
processor, the least of several runs that take turns; drawing from the system is included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from tests.benchmarks.basa import seconds

from secagg_spec.crypto.entropy import SystemSource, draw_below
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.strategies import STRATEGIES, choose, ranges

MANY, FEWER, K, T = 10**6, 10**5, 1000, 10
AIM = 20
"""The most that ten times as many users may cost."""


def main() -> None:
    """Print all figures."""
    print(f"choose K = {K:,} users, a tenth of {MANY:,} away; beside a tenth as many users")
    for name, strategy in STRATEGIES.items():
        batch = T if strategy.batch is None else strategy.batch(K)
        many, fewer = seconds(_choice(name, MANY, batch), _choice(name, FEWER, batch), repeats=9)
        verdict = "linear" if many <= AIM * fewer else "MORE THAN LINEAR"
        print(f"  {name:9} T = {batch:5,}: {1000 * many:6.1f} ms, {many / fewer:5.1f} times as long: {verdict}")


def _choice(name: str, N: int, batch: int) -> Callable[[], object]:
    """Return what makes one choice, with whole batches away, so that there is one."""
    p = Parameters(N, K, batch)
    sampled = np.random.default_rng(1)
    frequencies = sampled.integers(0, 5, N, dtype=np.int64)
    available = np.repeat(sampled.random(p.batches) > 0.1, batch)
    return partial(_choose, p, name, frequencies, available)


def _choose(p: Parameters, name: str, frequencies: np.ndarray, available: np.ndarray) -> object:
    bounds = ranges(p, name, frequencies, available)
    assert bounds is not None
    return choose(p, name, frequencies, available, draw_below(SystemSource(), bounds))


if __name__ == "__main__":
    main()
