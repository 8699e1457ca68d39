"""Training of users on their own samples: one user at a time, or many at once with the same result.

Each engine takes the same steps. `loop` trains one user at a time. `vmap` stacks the parameters of users and lets
PyTorch differentiate for all users at once. The batches of users with fewer samples are padded with samples of
weight 0, and users that have finished are removed. `stacked` does the same with products of stacked matrices, for
networks of dense layers; its gradient is written out, so no automatic differentiation is needed. `grouped` stacks the
layers too, the convolutions of users as groups of one, and differentiates the sum of the users' losses: of `vmap`, most
of the time of a GPU is lost to what it does between two kernels.

====================  ============================
spec                  here
====================  ============================
E, B, eta_l, lambda   `LocalSGD`
====================  ============================

Source: spec/experiments.md, section 3 (EXP-06, EXP-07).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning.datasets import Samples
from secagg_spec.learning.digits import numbers_of_samples
from secagg_spec.learning.models import Model, tensor

IntArray: TypeAlias = NDArray[np.int64]
Tensors: TypeAlias = tuple[torch.Tensor, ...]
Batch: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Images, labels, and the weight of each sample in the loss of its user; the weight of padding is 0."""
ENGINES = ("auto", "loop", "vmap", "stacked", "grouped")
_TOGETHER, _ON_GPU = 2**20, 2**26
"""The number of parameters that are trained together: about as many as fit into a cache, or keep a GPU at work."""


_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class LocalSGD(validate.Plain):
    """Local SGD: E epochs of batches of B samples, the learning rate, momentum, and weight decay.

    Training takes time and memory in proportion to the epochs.

    Raises
    ------
    ParameterError
        The epochs or the batch size are not an integer above 0.
    OutOfRange
        The rate is not a number above 0 in the range of binary32, or is rounded to 0 there, or momentum or decay is not
        in [0, 1).
    """

    epochs: int
    batch: int
    rate: float
    momentum: float = 0.0
    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("epochs", self.epochs, 1)
        validate.integer("batch", self.batch, 1)
        _positive("rate", self.rate)
        for name in ("momentum", "decay"):
            if not validate.finite(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise OutOfRange(name, getattr(self, name), "in [0, 1)")


def batches(part: IntArray, sgd: LocalSGD, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield a user's batches of sample numbers; each epoch has all of the user's samples in fresh order (EXP-06).

    It is for checked arguments.
    """
    for _ in range(sgd.epochs):
        order = part[rng.permutation(len(part))]
        for start in range(0, len(order), sgd.batch):
            yield order[start : start + sgd.batch]


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains users on samples; `engine` is one of `ENGINES`, and `auto` selects the engine that was measured as faster.

    Raises
    ------
    ParameterError
        No engine has this name, or the engine cannot train this model this way, or its outputs are no logits.
    OutOfRange
        A label is no class of the model (EXP-02).
    LengthMismatch
        The images have another shape than the model is for.
    """

    model: Model
    samples: Samples
    sgd: LocalSGD
    engine: str = "auto"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ParameterError("engine", self.engine, f"one of {', '.join(ENGINES)}")
        if self.engine == "stacked" and not self._written_out:
            raise ParameterError("engine", self.engine, "for dense layers without momentum only: take vmap or loop")
        self.model.check(self.samples)

    @property
    def _written_out(self) -> bool:
        """Whether `stacked` can train this model."""
        return self.model.dense is not None and not self.sgd.momentum

    @property
    def chosen(self) -> str:
        """The engine that trains.

        On a CPU, convolutions do not gain from vmap (tests/benchmarks/training.py).
        """
        if self.engine != "auto":
            return self.engine
        if self._written_out:
            return "stacked"
        if self.device != "cpu":
            return "grouped"
        return "loop" if self.model.dense is None else "vmap"

    @cached_property
    def _data(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All images and labels."""
        return tensor(self.samples.x, self.device), tensor(self.samples.y, self.device)

    def train(
        self,
        starts: RealArray,
        parts: Sequence[IntArray],
        rngs: Sequence[np.random.Generator],
        rate: float | None = None,
    ) -> RealArray:
        """Return the models after the users' training.

        Parameters
        ----------
        starts : array (U, d) of float64
            The model with which each user begins.
        parts : sequence of U arrays
            The sample numbers of each user, at least one.
        rngs : sequence of U generators
            The generator that draws the order of each user's samples.
        rate : float, optional
            A learning rate that replaces the one of `sgd`.

        Returns
        -------
        array (U, d) of float64
            It may hold numbers that are not finite, if training diverges. Steps are computed in binary32, and a user's
            movement is added to its start in binary64. So a user that takes no step returns exactly its start.

        Raises
        ------
        ParameterError
            A user has no sample, or one that is not the number of a sample; the numbers of users differ; the rate is
            not a number above 0 in the range of binary32; or a generator is none of numpy.
        """
        starts = validate.reals("starts", starts, (len(parts), self.model.d))
        if len(validate.sequence("rngs", rngs, "Generator")) != len(parts):
            raise LengthMismatch("len(rngs)", len(rngs), f"{len(parts)}, one for each user")
        for user, rng in enumerate(rngs):
            validate.instance(f"rngs[{user}]", rng, np.random.Generator)
        rate = self.sgd.rate if rate is None else _positive("rate", rate)
        parts = [numbers_of_samples(f"parts[{user}]", part, len(self.samples)) for user, part in enumerate(parts)]
        plans = [list(batches(part, self.sgd, rng)) for part, rng in zip(parts, rngs, strict=True)]
        if not all(plans):
            raise ParameterError(f"parts[{plans.index([])}]", [], "one sample or more")
        trained = np.empty_like(starts)
        together = _TOGETHER if self.device == "cpu" else _ON_GPU
        size = 1 if self.chosen == "loop" else max(1, together // self.model.d)
        for start in range(0, len(plans), size):
            users = slice(start, start + size)
            np.add(starts[users], self._moved(starts[users], plans[users], rate), out=trained[users])
        return trained

    def _moved(self, starts: RealArray, plans: Sequence[Sequence[IntArray]], rate: float) -> NDArray[np.float32]:
        """Return the movement of each user from its start, (U, d)."""
        before = tensor(starts, self.device, torch.float32)
        after = before.clone()
        if self.chosen == "loop":
            self._alone(after[0], plans[0], rate)
        else:
            self._together(after, plans, rate)
        moved: NDArray[np.float32] = after.sub_(before).cpu().numpy()
        return moved

    # ------------------------------------------------------------------------------------------------------- one user

    def _alone(self, row: torch.Tensor, plan: Sequence[IntArray], rate: float) -> None:
        """Train one user."""
        images, labels = self._data
        parameters = tuple(view.requires_grad_() for view in self.model.views(row.detach()))
        velocities = self.model.views(torch.zeros_like(row))
        for batch in plan:
            chosen = torch.from_numpy(batch).to(self.device)
            loss = functional.cross_entropy(self.model.logits(parameters, images[chosen]), labels[chosen])
            self._move(parameters, torch.autograd.grad(loss, parameters), velocities, rate)

    def _move(self, parameters: Tensors, gradients: Sequence[torch.Tensor], velocities: Tensors, rate: float) -> None:
        """Take one step."""
        with torch.no_grad():
            for x, gradient, velocity in zip(parameters, gradients, velocities, strict=True):
                step = gradient.add(x, alpha=self.sgd.decay) if self.sgd.decay else gradient
                if self.sgd.momentum:
                    step = velocity.mul_(self.sgd.momentum).add_(step)
                x.sub_(step, alpha=rate)

    # ------------------------------------------------------------------------------------------------------ many users

    def _together(self, rows: torch.Tensor, plans: Sequence[Sequence[IntArray]], rate: float) -> None:
        """Train users in place; users that have finished take no part in further steps."""
        order = sorted(range(len(plans)), key=lambda user: -len(plans[user]))
        if order != list(range(len(plans))):
            sorted_rows = rows[order]
            self._together(sorted_rows, [plans[user] for user in order], rate)
            rows[order] = sorted_rows
            return
        parameters = self.model.views(rows)
        velocities = self.model.views(torch.zeros_like(rows)) if self.sgd.momentum else parameters
        step = self._step()
        for batch in self._batches(plans):
            mine, fast = (tuple(one[: len(batch[0])] for one in all_) for all_ in (parameters, velocities))
            step(mine, batch, fast, rate)

    def _batches(self, plans: Sequence[Sequence[IntArray]]) -> Iterator[Batch]:
        """Yield the batches of each step; users with more steps come first, and those that have finished have none.

        The batches of a step are padded to one length. A sample weighs 1/B for its user's B, padding weighs 0. All
        steps go to the device at once.
        """
        images, labels = self._data
        steps = [[plan[number] for plan in plans if len(plan) > number] for number in range(len(plans[0]))]
        lengths = [max(map(len, chosen)) for chosen in steps]
        shape = len(steps), len(plans), max(lengths)
        numbers, weights = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        for row, weight, chosen in zip(numbers, weights, steps, strict=True):
            for user, one in enumerate(chosen):
                row[user, : len(one)], weight[user, : len(one)] = one, 1 / len(one)
        at, weighing = torch.from_numpy(numbers).to(self.device), torch.from_numpy(weights).to(self.device)
        for step, (chosen, longest) in enumerate(zip(steps, lengths, strict=True)):
            here = step, slice(len(chosen)), slice(longest)
            yield images[at[here]], labels[at[here]], weighing[here].contiguous()

    def _step(self) -> Callable[[Tensors, Batch, Tensors, float], None]:
        """Return the function that takes a step of many users."""
        if self.chosen == "grouped":
            return self._step_grouped
        return self._step_written_out if self.chosen == "stacked" else self._step_derived()

    def _step_grouped(self, parameters: Tensors, batch: Batch, velocities: Tensors, rate: float) -> None:
        """Take a step along the gradient of the sum of all losses: each user's parameters change only its own loss."""
        images, labels, weights = batch
        leaves = tuple(one.detach().requires_grad_() for one in parameters)
        logits = self.model.logits_of_many(leaves, images).flatten(0, 1)
        loss = functional.cross_entropy(logits, labels.flatten(), reduction="none") @ weights.flatten()
        self._move(parameters, torch.autograd.grad(loss, leaves), velocities, rate)

    def _step_derived(self) -> Callable[[Tensors, Batch, Tensors, float], None]:
        """Return the function that takes a step, with gradients from PyTorch's automatic differentiation."""
        gradients = torch.func.vmap(torch.func.grad(self._loss))

        def step(parameters: Tensors, batch: Batch, velocities: Tensors, rate: float) -> None:
            self._move(parameters, gradients(parameters, *batch), velocities, rate)

        return step

    def _loss(self, parameters: Tensors, x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum of the cross-entropies of one user's batch."""
        return functional.cross_entropy(self.model.logits(parameters, x), y, reduction="none") @ weights

    @torch.no_grad()
    def _step_written_out(self, parameters: Tensors, batch: Batch, velocities: Tensors, rate: float) -> None:
        """Take a step of dense layers: the gradient of the logits is softmax minus one-hot, the others are products."""
        images, labels, weights = batch
        signals = [images.flatten(2)]
        for matrix, bias in _pairs(parameters):
            inner = signals[-1] if len(signals) == 1 else signals[-1].clamp_(min=0)
            signals.append(torch.baddbmm(bias.unsqueeze(1), inner, matrix.transpose(1, 2)))
        slope = torch.softmax(signals.pop(), 2)
        slope.scatter_add_(2, labels.unsqueeze(2), torch.full_like(slope[:, :, :1], -1.0)).mul_(weights.unsqueeze(2))
        for (matrix, bias), below in zip(reversed(_pairs(parameters)), reversed(signals), strict=True):
            further = torch.bmm(slope, matrix).mul_(below > 0) if below is not signals[0] else slope
            shrunk = 1 - rate * self.sgd.decay
            matrix.baddbmm_(slope.transpose(1, 2), below, beta=shrunk, alpha=-rate)
            bias.mul_(shrunk).sub_(slope.sum(1), alpha=rate)
            slope = further


def _pairs(parameters: Tensors) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return weights and biases, layer by layer."""
    return list(pairwise(parameters))[::2]


def _positive(name: str, value: float) -> float:
    """Return the learning rate when it is valid."""
    if not validate.finite(value) or not 0 < value <= _LARGEST or not np.float32(value):
        raise OutOfRange(name, value, "a finite number above 0, in the range of binary32")
    return float(value)


guard(__name__)
