"""The model, its training, and the samples of each client."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Arrays: TypeAlias = list[NDArray[Any]]
Samples: TypeAlias = tuple[torch.Tensor, torch.Tensor]
SIDE, CLASSES, HIDDEN = 28, 10, 32
MOST = 6000
"""So many samples a client has at most: this is the largest weight of a client."""


def model() -> torch.nn.Module:
    """Return the model, the same each time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(SIDE**2, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
    )


def arrays_of(net: torch.nn.Module) -> Arrays:
    """Return the parameters of a model."""
    return [value.detach().numpy() for value in net.state_dict().values()]


def with_arrays(net: torch.nn.Module, arrays: Arrays) -> torch.nn.Module:
    """Set the parameters of a model."""
    values = (torch.tensor(np.asarray(array)) for array in arrays)
    net.load_state_dict(dict(zip(net.state_dict(), values, strict=True)))
    return net


def samples(folder: str, train: bool) -> Samples:
    """Return the training or the test samples: of MNIST if a folder is given, else drawn around ten centres."""
    if not folder:
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(CLASSES, SIDE**2))
        drawn = np.random.default_rng(1 + train).integers(0, CLASSES, 4000 if train else 1000)
        noise = np.random.default_rng(3 + train).normal(scale=4.0, size=(drawn.size, SIDE**2))
        return torch.tensor((centres[drawn] + noise), dtype=torch.float32), torch.tensor(drawn)
    name = "train" if train else "t10k"
    images = _read(Path(folder) / f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, SIDE**2)
    labels = _read(Path(folder) / f"{name}-labels-idx1-ubyte.gz", 8)
    return torch.tensor(images / 255.0, dtype=torch.float32), torch.tensor(labels.astype(np.int64))


def _read(path: Path, header: int) -> NDArray[np.uint8]:
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8)[header:]


def part(whole: Samples, client: int, clients: int) -> Samples:
    """Return the samples of one client: each has as many as the others, or fewer by up to a third."""
    x, y = whole
    mine = torch.arange(client, len(y), clients)[: min(MOST, len(y) // clients)]
    mine = mine[: len(mine) - len(mine) * client // (3 * clients)]
    return x[mine], y[mine]


def train(net: torch.nn.Module, data: Samples, seed: int) -> None:
    """Train one epoch."""
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x, y = data
    order = torch.randperm(len(y))
    for start in range(0, len(y), 64):
        batch = order[start : start + 64]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[batch]), y[batch])
        torch.autograd.backward(loss)
        optimizer.step()


def test(net: torch.nn.Module, data: Samples) -> tuple[float, float]:
    """Return the loss and the accuracy."""
    x, y = data
    with torch.no_grad():
        out = net(x)
        return float(torch.nn.functional.cross_entropy(out, y)), float((out.argmax(1) == y).float().mean())
