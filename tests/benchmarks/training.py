"""How long users take to train together, beside one after the other: ``make bench``.

Each user takes five steps, on noise: how long that takes does not depend on what is learnt. All times are seconds of
the processor, the least of several runs that take turns. `plain PyTorch` is what a user of PyTorch would write: a
module, an optimiser, and a loop over users; `loop` of this project is already leaner than that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tests.benchmarks.basa import seconds
from torch import nn

from secagg_spec.learning import models
from secagg_spec.learning.datasets import Samples
from secagg_spec.learning.training import LocalSGD, Trainer

STEPS = 5
AIM = 3
"""How much faster 100 users of the network with 79,510 parameters are wanted together."""
CASES = [
    (model, side, users, batch)
    for model, side in (("logistic", 8), ("mlp", 8), ("logistic", 28), ("mlp", 28), ("lenet5", 28))
    for users in (10, 100)
    for batch in (10, 50)
]


def main() -> None:
    """Print all figures."""
    torch.set_num_threads(1)
    print(f"{STEPS} steps of each user: ms, and how many times faster than the loop of this project")
    print(f"{'':28}{'plain PyTorch':>20}{'loop':>9}{'vmap':>18}{'stacked':>18}")
    for model, side, users, batch in CASES:
        _report(model, side, users, batch)


def _report(name: str, side: int, users: int, batch: int) -> None:
    engines = {kind: _engine(name, side, users, batch, kind) for kind in _kinds(name)}
    if name == "mlp":
        engines["plain"] = _plain(side, users, batch)
    repeats = 3 if name == "lenet5" else 5
    found = dict(zip(engines, seconds(*engines.values(), repeats=repeats), strict=True))
    shown = [_beside(found.get(kind), found["loop"]) for kind in ("plain", "vmap", "stacked")]
    print(f"{name:9} {side}x{side} {users:4} users B = {batch:2} {shown[0]:>18}{1000 * found['loop']:9.1f}", end="")
    print(f"{shown[1]:>18}{shown[2]:>18}", flush=True)


def _kinds(name: str) -> tuple[str, ...]:
    return ("loop", "vmap") if name == "lenet5" else ("loop", "vmap", "stacked")


def _beside(found: float | None, loop: float) -> str:
    return "" if found is None else f"{1000 * found:.1f} ({loop / found:.1f})"


def _engine(name: str, side: int, users: int, batch: int, kind: str) -> Callable[[], object]:
    """Return what trains all users with an engine."""
    rng = np.random.default_rng(0)
    count = STEPS * batch
    samples = Samples(rng.random((count, 1, side, side)).astype(np.float32), rng.integers(0, 10, count))
    data: Any = SimpleNamespace(train=samples, classes=10)
    model = models.build(name, data)
    trainer = Trainer(model, samples, LocalSGD(1, batch, 0.01), kind)
    starts = np.tile(model.initial(rng), (users, 1))
    return partial(_train, trainer, starts, [np.arange(count)] * users)


def _train(trainer: Trainer, starts: np.ndarray, parts: list[np.ndarray]) -> None:
    trainer.train(starts, parts, [np.random.default_rng(user) for user in range(len(parts))])


def _plain(side: int, users: int, batch: int) -> Callable[[], object]:
    """Return what trains the mlp of all users in the usual way."""
    pixels, hidden = side * side, 32 if side == 8 else 100
    x, y = torch.rand(STEPS * batch, pixels), torch.randint(0, 10, (STEPS * batch,))

    def train() -> None:
        for _ in range(users):
            network = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 10))
            optimiser = torch.optim.SGD(network.parameters(), lr=0.01)
            for images, labels in zip(torch.split(x, batch), torch.split(y, batch), strict=True):
                optimiser.zero_grad()
                torch.autograd.backward(nn.functional.cross_entropy(network(images), labels))
                optimiser.step()

    return train


if __name__ == "__main__":
    main()
