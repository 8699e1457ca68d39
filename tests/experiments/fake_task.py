"""A task of three parameters, whose training is one line, and aggregators of a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import OutOfRange
from secagg_spec.experiments.aggregates import weighted_mean
from secagg_spec.experiments.runs import Task
from secagg_spec.learning.datasets import Dataset, Samples
from secagg_spec.learning.training import IntArray


@dataclass
class Model:
    """Keeps each model that is evaluated; `losses` and accuracies come from the model."""

    seen: list[RealArray] = field(default_factory=list)
    d: int = 3

    def initial(self, rng: np.random.Generator) -> RealArray:
        """Three numbers."""
        return rng.normal(size=3)

    def evaluate(self, vector: RealArray, samples: object, device: str = "cpu") -> tuple[float, float]:
        """The first number stands for the accuracy, the last one for the loss."""
        self.seen.append(vector.copy())
        return float(vector[0]), float(vector[2])


@dataclass
class Trainer:
    """Moves a user halfway to the mean of its samples, and by a number from its generator; keeps what it is given."""

    given: list[tuple[RealArray, list[int], list[float]]] = field(default_factory=list)
    device: str = "cpu"
    spoilt: int = -1
    """In this call the training gives infinities."""

    def train(
        self,
        starts: RealArray,
        parts: Sequence[IntArray],
        rngs: Sequence[np.random.Generator],
        rate: float | None = None,
    ) -> RealArray:
        """The trained models."""
        moves = [rng.random() for rng in rngs]
        self.given.append((starts.copy(), [int(part[0]) for part in parts], moves))
        aims = np.array([part.mean() + move for part, move in zip(parts, moves, strict=True)])
        trained = starts + (rate or 0.5) * (aims[:, None] - starts)
        return trained * np.inf if len(self.given) - 1 == self.spoilt else trained


@dataclass(frozen=True)
class Found:
    """What an aggregator returns."""

    mean: RealArray
    bound: float = 0.0
    by: Any = "plain"
    moved: int = 0
    error: float = 0.0


class Plain:
    """The weighted mean itself; keeps what it is told of a round."""

    name = "plain"

    def __init__(self) -> None:
        self.report: list[dict[str, Any]] = []

    def aggregate(self, updates: RealArray, weights: Sequence[Any], **of_round: Any) -> Any:
        """The mean."""
        self.report.append({"weights": list(weights), "updates": updates.copy(), **of_round})
        return Found(weighted_mean(updates, weights))


@dataclass
class Off:
    """A mean that is off by `error`, and says that it is off by less than `bound`."""

    error: float
    bound: float
    moved: int = 0
    name: str = "off"

    def aggregate(self, updates: RealArray, weights: Sequence[Any], **of_round: Any) -> Any:
        """The mean, and the error in one coordinate."""
        mean = weighted_mean(updates, weights) + np.array([0.0, self.error, 0.0])
        return Found(mean, self.bound, "shortcut", self.moved, self.error)


class Narrow(Plain):
    """Refuses the updates of a round."""

    name = "narrow"

    def aggregate(self, updates: RealArray, weights: Sequence[Any], **of_round: Any) -> Any:
        """The mean, up to the third round."""
        if of_round["round"] == 3:
            raise OutOfRange("x[0]", 1e9, "at most 5 / 1 in magnitude")
        return super().aggregate(updates, weights, **of_round)


def task(sizes: Sequence[int] = (1, 2, 3, 4), seed: int = 0, spoilt: int = -1) -> Any:
    """A task in which user u holds sizes[u] samples."""
    ends = np.cumsum(sizes)
    parts = tuple(np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True))
    samples = Samples(np.zeros((ends[-1], 1, 1, 1), np.float32), np.zeros(ends[-1], np.int64))
    data = Dataset("mnist", "MNIST", 10, samples, samples)
    model: Any = Model()
    trainer: Any = Trainer(spoilt=spoilt)
    return Task(data, parts, model, trainer, seed)
