"""How long users take to train together, beside one after the other (`engines` has the ways to do it)."""

from __future__ import annotations

import importlib.util

from tests.benchmarks.record import Absent, Benchmark, Sides, processor

from secagg_spec.extras import install

WORDS = {
    "loop": "one after the other, in the loop of this project",
    "vmap": "together, by vmap",
    "stacked": "together, by gradients written out for dense layers",
    "plain": "one after the other, in plain PyTorch",
}
DENSE = (("logistic", 8), ("mlp", 8), ("logistic", 28), ("mlp", 28))
CASES = (
    *((kind, model, side) for model, side in DENSE for kind in ("vmap", "stacked")),
    ("vmap", "lenet5", 28),
)
AIMED = ("mlp", 28)
"""The network of 79,510 parameters."""
WIDE = (
    "At least 3 times. A network of 79,510 parameters is wide enough that products of matrices, and moving the "
    "parameters of 100 users through memory, are most of the time: that is the same work in both ways."
)


def engines(way: str, beside: str, model: str, side: int, users: int, batch: int, steps: int) -> Sides:
    """Train all users in two ways."""
    if importlib.util.find_spec("torch") is None:
        raise Absent(f"PyTorch is not installed: {install('torch')}")
    from tests.benchmarks.engines import engine

    return Sides.of(processor(engine(kind, model, side, users, batch, steps)) for kind in (way, beside))


def _benchmark(way: str, beside: str, model: str, side: int, batch: int) -> Benchmark:
    work: dict[str, int | str] = {"way": way, "beside": beside, "model": model, "side": side}
    return Benchmark(
        id=f"training-{model}-{side}-{batch}-{beside if way == 'loop' else way}",
        what=f"users train {WORDS[way]}",
        beside=f"they train {WORDS[beside]}",
        sizes={**work, "users": 100, "batch": batch, "steps": 5},
        tiny={**work, "users": 2, "batch": 2, "steps": 1},
        sides=engines,
        withdrawn=WIDE if (model, side) == AIMED and way == "loop" else "",
        turns=3,
    )


BENCHMARKS = (
    *(_benchmark("loop", kind, model, side, batch) for kind, model, side in CASES for batch in (10, 50)),
    *(_benchmark("plain", "loop", *AIMED, batch) for batch in (10, 50)),
)
