"""Losses whose gradients, noise and smoothness can be computed, for comparing runs with the bounds of theorems.

====================  ==============================================================================
text                  here
====================  ==============================================================================
d                     `Problem.d`
lambda, mu            `decay`: the losses of `Regression` are decay-strongly convex
L, rho                `Regression.smoothness`, a certain bound, and `curvature`, an estimate at one model
sigma^2 of a sample   the second result of `Problem.moments`, after the gradients
====================  ==============================================================================

A model is one vector of d numbers in binary64. A loss is the weighted mean of the points' cross-entropies plus decay/2
times the squared length of the model. In each layer the gradient of one point is an outer product, so its squared
length is the product of the two factors' squared lengths.

Source: spec/experiments.md, section 6.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning.datasets import Samples
from secagg_spec.learning.digits import numbers_of_samples

IntArray: TypeAlias = NDArray[np.int64]
Outer: TypeAlias = tuple[tuple[RealArray, RealArray], ...]
"""The two factors (n, outputs) and (n, inputs) of the points' gradients, for each layer."""
PROBLEMS = ("regression", "network")
HIDDEN = 16
_LARGEST = 1e70
"""The largest magnitude of inputs, of the numbers of models, and of decays: products of four of them are added."""
_MOST = 2**28
"""The most parameters, of 2 GiB."""
_FLAT = 1e-6
_STEP = 1e-4
_ITERATIONS = 30


@dataclass(frozen=True, eq=False)
class Points:
    """Inputs (n, inputs), labels (n,), and a weight for each point; weights add up to 1.

    The last input of samples is 1, so that models have offsets.

    Raises
    ------
    ParameterError
        There is no point, an array is of another type or shape, a number is not finite, an input is above 10^70 in
        magnitude, a label or a weight is below 0, or the weights do not add up to 1.
    """

    x: RealArray
    y: IntArray
    weights: RealArray

    def __post_init__(self) -> None:
        n = len(_bounded("x", self.x, (None, None)))
        if not n:
            raise LengthMismatch("len(x)", 0, "1 or more")
        validate.array_shape("y", validate.signed("y", self.y), (n,))
        if self.y.min() < 0:
            raise OutOfRange("y", int(self.y.min()), "labels of at least 0")
        weights = validate.reals("weights", self.weights, (n,))
        if weights.min() < 0:
            raise OutOfRange("weights", float(weights.min()), "at least 0")
        with np.errstate(over="ignore"):  # an infinite sum is not 1 either
            total = float(weights.sum())
        if not np.isclose(total, 1):
            raise OutOfRange("sum(weights)", total, "1")

    @classmethod
    def of(cls, samples: Samples, chosen: IntArray) -> Points:
        """Return samples as points of equal weight.

        Raises `ParameterError` for numbers of samples that are none, or no number at all.
        """
        chosen = _some(chosen, len(samples))
        pixels = samples.x[chosen].reshape(len(chosen), -1).astype(np.float64)
        return cls(np.column_stack([pixels, np.ones(len(chosen))]), samples.y[chosen], _equal(len(chosen)))

    @classmethod
    def joined(cls, parts: Sequence[Points]) -> Points:
        """Return the points whose loss is the mean of the losses of the parts.

        Raises `ParameterError` where there is no part, or the parts have points of several lengths.
        """
        if not validate.sequence("parts", parts, "points"):
            raise LengthMismatch("len(parts)", 0, "1 or more")
        for at, part in enumerate(parts):
            validate.array_shape(
                f"parts[{at}].x", validate.instance(f"parts[{at}]", part, cls).x, (None, parts[0].x.shape[1])
            )
        weights = np.concatenate([part.weights for part in parts]) / len(parts)
        return cls(np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts]), weights)

    def taken(self, chosen: IntArray) -> Points:
        """Return the chosen points with equal weights; a point may be chosen more than once.

        Raises `ParameterError` for numbers of points that are none, or no number at all.
        """
        chosen = _some(chosen, len(self.y))
        return Points(self.x[chosen], self.y[chosen], _equal(len(chosen)))


def _some(chosen: IntArray, count: int) -> IntArray:
    """Return the numbers of points when there is one or more."""
    if not len(chosen := numbers_of_samples("chosen", chosen, count)):
        raise LengthMismatch("len(chosen)", 0, "1 or more")
    return chosen


def _equal(count: int) -> RealArray:
    return np.full(count, 1 / count)


def _bounded(name: str, value: RealArray, shape: tuple[int | None, ...]) -> RealArray:
    """Return an array of real numbers that are at most `_LARGEST` in magnitude."""
    largest = float(np.abs(validate.reals(name, value, shape)).max(initial=0))
    if largest > _LARGEST:
        raise OutOfRange(name, largest, f"at most {_LARGEST:.0e} in magnitude")
    return value


@dataclass(frozen=True, eq=False)
class Problem(validate.Plain, ABC):
    """A loss of models for points.

    Parameters
    ----------
    inputs, classes : int
        The number of inputs of a point, including the 1 at its end, and the number of labels; d is at most 2^28.
    decay : float
        A number in [0, 10^70].
    """

    inputs: int
    classes: int
    decay: float

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("inputs", self.inputs, 1)
        validate.integer("classes", self.classes, 2)
        if self.d > _MOST:
            given = f"such that the parameters are at most {_MOST}, and not {self.d}"
            raise ParameterError("inputs, classes", [self.inputs, self.classes], given)
        if not validate.finite(self.decay) or not 0 <= self.decay <= _LARGEST:
            raise OutOfRange("decay", self.decay, f"a number in [0, {_LARGEST:.0e}]")

    @property
    @abstractmethod
    def d(self) -> int:
        """The number of parameters."""

    @abstractmethod
    def initial(self, rng: np.random.Generator) -> RealArray:
        """Return a first model (d,)."""

    @abstractmethod
    def logits(self, model: RealArray, x: RealArray) -> RealArray:
        """Return the logits (n, classes) of inputs, for checked arguments."""

    @abstractmethod
    def outer(self, model: RealArray, points: Points) -> Outer:
        """Return the factors of the gradient of each point's cross-entropy, layer by layer, for checked arguments."""

    def loss(self, model: RealArray, points: Points) -> float:
        """Return the loss in nats.

        Raises `ParameterError` for a model or points of another form than the problem, or a model with a number that
        is not finite or above 10^70 in magnitude; so do the functions below.
        """
        model = self._fitting(model, points)
        logits = self.logits(model, points.x)
        top = logits.max(axis=1)
        whole = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        losses = whole - logits[np.arange(len(points.y)), points.y]
        return float(points.weights @ losses + self.decay / 2 * (model @ model))

    def gradient(self, model: RealArray, points: Points) -> RealArray:
        """Return the gradient (d,) of the loss."""
        model = self._fitting(model, points)
        return self._summed(self.outer(model, points), points.weights) + self.decay * model

    def moments(
        self, model: RealArray, points: Points, sizes: Sequence[int] | None = None
    ) -> tuple[RealArray, RealArray]:
        """Return the gradients, and the variance of each: the expected squared distance of a point's gradient from it.

        Parameters
        ----------
        model : array (d,)
        points : Points
            The points of several losses, one loss after the other; all losses count the same. Within a loss a point is
            drawn by its weight.
        sizes : sequence of int, optional
            The number of points of each loss, at least 1; by default there is one loss.

        Returns
        -------
        arrays (losses, d) and (losses,)

        Raises
        ------
        ParameterError
            A number of points is no integer above 0.
        LengthMismatch
            The numbers do not add up to the number of points.
        """
        model = self._fitting(model, points)
        given = validate.sequence("sizes", [len(points.y)] if sizes is None else sizes, "integers")
        cuts = np.cumsum([0, *(validate.integer("sizes", size, 1, validate.MAX_COUNT) for size in given)])
        if cuts[-1] != len(points.y):
            raise LengthMismatch("sum(sizes)", int(cuts[-1]), f"{len(points.y)}, the number of points")
        factors, weights = self.outer(model, points), points.weights * (len(cuts) - 1)
        lengths = sum(np.square(slopes).sum(1) * np.square(signals).sum(1) for slopes, signals in factors)
        means = np.stack([self._summed(_cut(factors, at), weights[at]) for at in map(slice, cuts, cuts[1:])])
        squares = np.add.reduceat(weights * lengths, cuts[:-1]) - np.square(means).sum(axis=1)
        return means + self.decay * model, np.maximum(squares, 0.0)

    def _fitting(self, model: RealArray, points: Points) -> RealArray:
        """Return a model when it and the points fit the problem."""
        validate.array_shape("points.x", points.x, (None, self.inputs))
        if points.y.max() >= self.classes:
            raise OutOfRange("points.y", int(points.y.max()), f"below {self.classes}")
        return _bounded("model", model, (self.d,))

    @staticmethod
    def _summed(factors: Outer, weights: RealArray) -> RealArray:
        return np.concatenate([((slopes * weights[:, None]).T @ signals).ravel() for slopes, signals in factors])


def _cut(factors: Outer, at: slice) -> Outer:
    return tuple((slopes[at], signals[at]) for slopes, signals in factors)


def slopes(logits: RealArray, labels: IntArray) -> RealArray:
    """Return the gradient of each cross-entropy with respect to its logits, for checked arguments.

    It is softmax minus one-hot.
    """
    found: RealArray = np.exp(logits - logits.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    found[np.arange(len(labels)), labels] -= 1
    return found


class Regression(Problem):
    """Multinomial logistic regression, d = classes * inputs; it is strongly convex if the decay is not 0."""

    @property
    def d(self) -> int:
        """The number of parameters."""
        return self.classes * self.inputs

    def initial(self, rng: np.random.Generator) -> RealArray:
        """Return the model of zeros."""
        return np.zeros(self.d)

    def logits(self, model: RealArray, x: RealArray) -> RealArray:
        """Return the logits (n, classes) of inputs, for checked arguments."""
        logits: RealArray = x @ model.reshape(self.classes, self.inputs).T
        return logits

    def outer(self, model: RealArray, points: Points) -> Outer:
        """Return the factors of the gradient of each point's cross-entropy, for checked arguments."""
        return ((slopes(self.logits(model, points.x), points.y), points.x),)

    def smoothness(self, points: Points) -> float:
        """Return a bound on all eigenvalues of all Hessians of the loss.

        The Hessian of a cross-entropy with respect to its logits is diag(p) - p p', and u'(diag(p) - p p')u is the
        variance of u_c with probabilities p_c. It is at most a quarter of the largest squared difference of two entries
        of u, so at most |u|^2/2.

        Raises `ParameterError` for points of another form than the problem.
        """
        validate.array_shape("points.x", points.x, (None, self.inputs))
        moments = (points.x * points.weights[:, None]).T @ points.x
        return float(np.linalg.eigvalsh(moments)[-1] / 2 + self.decay)

    def minimum(self, points: Points) -> RealArray:
        """Return the model of least loss, up to a gradient of length 10^-6.

        Raises
        ------
        OutOfRange
            The gradient at the result is longer.
        """
        from scipy.optimize import minimize  # noqa: PLC0415

        found = minimize(
            lambda model: (self.loss(model, points), self.gradient(model, points)),
            np.zeros(self.d),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxfun": 20_000, "ftol": 0.0, "gtol": _FLAT / 100, "maxcor": 30},
        )
        steepness = float(np.linalg.norm(self.gradient(found.x, points)))
        if not steepness <= _FLAT:
            raise OutOfRange("length of the gradient at the minimum", steepness, f"at most {_FLAT}")
        model: RealArray = found.x
        return model


class Network(Problem):
    """One layer of tanh and one dense layer: smooth, and not convex."""

    @property
    def d(self) -> int:
        """The number of parameters."""
        return HIDDEN * self.inputs + self.classes * (HIDDEN + 1)

    def initial(self, rng: np.random.Generator) -> RealArray:
        """Return weights uniform between -1/sqrt(n) and 1/sqrt(n), for n inputs of a unit.

        Raises `ParameterError` for what is no generator of numpy.
        """
        below = rng.uniform(-1, 1, HIDDEN * self.inputs) / np.sqrt(self.inputs)
        above = rng.uniform(-1, 1, self.classes * (HIDDEN + 1)) / np.sqrt(HIDDEN + 1)
        return np.concatenate([below, above])

    def logits(self, model: RealArray, x: RealArray) -> RealArray:
        """Return the logits (n, classes) of inputs, for checked arguments."""
        below, above = self._matrices(model)
        logits: RealArray = _with_one(np.tanh(x @ below.T)) @ above.T
        return logits

    def outer(self, model: RealArray, points: Points) -> Outer:
        """Return the factors of the gradient of each point's cross-entropy, the layer of tanh first.

        It is for checked arguments.
        """
        below, above = self._matrices(model)
        hidden = np.tanh(points.x @ below.T)
        signals = _with_one(hidden)
        slope = slopes(signals @ above.T, points.y)
        return ((slope @ above[:, :-1] * (1 - np.square(hidden)), points.x), (slope, signals))

    def _matrices(self, model: RealArray) -> tuple[RealArray, RealArray]:
        cut = HIDDEN * self.inputs
        return model[:cut].reshape(HIDDEN, self.inputs), model[cut:].reshape(self.classes, HIDDEN + 1)


def _with_one(x: RealArray) -> RealArray:
    return np.column_stack([x, np.ones(len(x))])


def build(name: str, inputs: int, classes: int, decay: float) -> Regression | Network:
    """Return the problem with the given name.

    Raises
    ------
    ParameterError
        No problem has this name, or an argument does not meet the conditions of `Problem`.
    """
    validate.one_of("problem", name, PROBLEMS)
    return (Regression if name == "regression" else Network)(inputs, classes, decay)


def curvature(problem: Problem, model: RealArray, points: Points, rng: np.random.Generator) -> float:
    """Return a lower estimate of the largest absolute eigenvalue of the Hessian at a model.

    The method is power iteration on differences of gradients, from a random direction. Raises `ParameterError` for a
    model or points of another form than the problem, and for what is no generator of numpy.
    """
    validate.array_shape("model", validate.binary64("model", model), (problem.d,))
    direction, length = rng.standard_normal(problem.d), 0.0
    for _ in range(_ITERATIONS):
        shift = _STEP * direction / np.linalg.norm(direction)
        ahead, behind = (problem.gradient(model + sign * shift, points) for sign in (1, -1))
        direction = (ahead - behind) / (2 * _STEP)
        length = float(np.linalg.norm(direction))
        if length == 0:
            break
    return length


guard(__name__)
