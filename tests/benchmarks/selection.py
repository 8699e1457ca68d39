"""How long it takes to choose among many users.

The family is never listed: with 10^6 users it has more sets than anybody can write down. What a choice costs is to grow
as the number of users does. Drawing from the system is included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from tests.benchmarks.record import Aim, Benchmark, Sides, processor

from secagg_spec.crypto.entropy import SystemSource, draw_below
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.strategies import STRATEGIES, choose, ranges

T, AIM = 10, 20
"""Users of a batch where the strategy leaves them free, and the most that ten times as many users may cost."""


def of_more_users(strategy: str, N: int, fewer: int, K: int) -> Sides:
    """Choose K of N users, a tenth of whom are away, and of fewer."""
    return Sides.of(processor(_choice(strategy, users, K)) for users in (N, fewer))


def more_users(strategy: str, N: int, K: int, fewer: int) -> Sides:
    """Choose K of N users, a tenth of whom are away, and fewer of them."""
    return Sides.of(processor(_choice(strategy, N, chosen)) for chosen in (K, fewer))


def _choice(name: str, N: int, K: int) -> Callable[[], object]:
    """Return what makes one choice, with whole batches away, so that there is one."""
    own = STRATEGIES[name].batch
    p = Parameters(N, K, T if own is None else own(K))
    sampled = np.random.default_rng(1)
    frequencies = sampled.integers(0, 5, p.N, dtype=np.int64)
    available = np.repeat(sampled.random(p.batches) > 0.1, p.T)
    return partial(_choose, p, name, frequencies, available)


def _choose(p: Parameters, name: str, frequencies: np.ndarray, available: np.ndarray) -> object:
    bounds = ranges(p, name, frequencies, available)
    assert bounds is not None
    return choose(p, name, frequencies, available, draw_below(SystemSource(), bounds))


BENCHMARKS = (
    *(
        Benchmark(
            id=f"selection-{name}",
            what=f"K of N users are chosen by the strategy {name}",
            beside="K of a tenth as many are",
            sizes={"strategy": name, "N": 10**6, "fewer": 10**5, "K": 1000},
            tiny={"strategy": name, "N": 200, "fewer": 100, "K": 20},
            sides=of_more_users,
            aim=Aim("at most", AIM),
            turns=9,
        )
        for name in STRATEGIES
    ),
    *(
        Benchmark(
            id=f"selection-{name}-more",
            what=f"K of N users are chosen by the strategy {name}",
            beside="a tenth as many of the same users are",
            sizes={"strategy": name, "N": 10**6, "K": 10_000, "fewer": 1000},
            tiny={"strategy": name, "N": 200, "K": 40, "fewer": 20},
            sides=more_users,
            aim=Aim("at most", 1, of="what"),
            turns=9,
        )
        for name in STRATEGIES
    ),
)
