"""Ways to train many users, each ready to run; this needs PyTorch.

Each user takes five steps, on noise: how long that takes does not depend on what is learnt. `plain` is what a user of
PyTorch would write: a module, an optimiser, and a loop over users; `loop` of this project is already leaner than that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from secagg_spec.learning import models
from secagg_spec.learning.datasets import Dataset, Samples
from secagg_spec.learning.training import LocalSGD, Trainer

torch.set_num_threads(1)
PLAIN = "plain"


def engine(kind: str, model: str, side: int, users: int, batch: int, steps: int) -> Callable[[], object]:
    """Return what trains all users, on images of `side` times `side` pixels."""
    if kind == PLAIN:
        assert model == "mlp"
        return _plain(side, users, batch, steps)
    return _engine(model, side, users, batch, steps, kind)


def _engine(name: str, side: int, users: int, batch: int, steps: int, kind: str) -> Callable[[], object]:
    """Return what trains all users with an engine of this project."""
    rng = np.random.default_rng(0)
    count = steps * batch
    samples = Samples(rng.random((count, 1, side, side)).astype(np.float32), rng.integers(0, 10, count))
    model = models.build(name, Dataset("mnist", "MNIST", 10, samples, samples))
    trainer = Trainer(model, samples, LocalSGD(1, batch, 0.01), kind)
    starts = np.tile(model.initial(rng), (users, 1))
    return partial(_train, trainer, starts, [np.arange(count)] * users)


def _train(trainer: Trainer, starts: np.ndarray, parts: list[np.ndarray]) -> None:
    trainer.train(starts, parts, [np.random.default_rng(user) for user in range(len(parts))])


def _plain(side: int, users: int, batch: int, steps: int) -> Callable[[], object]:
    """Return what trains the mlp of all users in the usual way."""
    pixels, hidden = side * side, 32 if side == 8 else 100
    x, y = torch.rand(steps * batch, pixels), torch.randint(0, 10, (steps * batch,))

    def train() -> None:
        for _ in range(users):
            network = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, 10))
            optimiser = torch.optim.SGD(network.parameters(), lr=0.01)
            for images, labels in zip(torch.split(x, batch), torch.split(y, batch), strict=True):
                optimiser.zero_grad()
                torch.autograd.backward(nn.functional.cross_entropy(network(images), labels))
                optimiser.step()

    return train
