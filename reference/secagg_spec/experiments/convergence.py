"""Runs next to the bounds of a theorem: users, the constants measured on the way, statements, and the picture.

====================  ==============================================================================
text                  here
====================  ==============================================================================
N, E, B               `Users.count`, ``steps`` and ``batch`` of settings
F, F_i                the loss of `Users.whole`, which is the mean of those of `Users.parts`
x^(t), J              models of `Users`; ``rounds`` of settings
sigma_l^2, sigma_g^2  `Largest.noise`, `Largest.apart`
====================  ==============================================================================

A variant of an experiment is a problem with some settings, and the bounds that judge it. A theorem bounds an
expectation; here it is the mean of some runs with one partition and one first model, which draw everything else afresh.
The rounds are numbered consecutively over all runs, so no number is drawn twice.

Source: spec/experiments.md, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.experiments.curves import band
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement
from secagg_spec.learning import datasets, partitions, problems
from secagg_spec.learning.problems import Network, Points, Regression
from secagg_spec.learning.streams import BATCHES, MODEL, PARTITION, stream

ALL = "all"
"""The partition in which each user holds all samples."""
ROOM = 4
"""How much larger than at the first model the curvature of a network may become."""
_LOOKS = (("#d55e00", "--"), ("#009e73", "-."), ("#cc79a7", ":"))
_LEFT = ("#0072b2", "-")
_SQUARE = 4
"""With this many panels, they are drawn in two columns."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The gradients of all users at a model (N, d), and the noise of one sample of each (N,)."""

    gradients: RealArray
    noise: RealArray

    @property
    def mean(self) -> RealArray:
        """The gradient of F."""
        mean: RealArray = self.gradients.mean(axis=0)
        return mean

    @property
    def square(self) -> float:
        """The squared length of the gradient of F."""
        return float(self.mean @ self.mean)


@dataclass(frozen=True, eq=False)
class Users:
    """What users learn, from parts of the data: one part for each user, or one for all."""

    problem: Regression | Network
    parts: tuple[Points, ...]
    count: int
    seed: int

    @cached_property
    def whole(self) -> Points:
        """The points whose loss is F."""
        return Points.joined(self.parts)

    def part(self, user: int) -> Points:
        """Return the points of a user."""
        return self.parts[user if len(self.parts) > 1 else 0]

    def first(self) -> RealArray:
        """Return the first model (d,)."""
        return self.problem.initial(stream(self.seed, MODEL))

    def seen(self, model: RealArray) -> Seen:
        """Return the gradients and noise of all users at a model."""
        gradients, noise = self.problem.moments(model, self.whole, [len(part.y) for part in self.parts])
        shape = (self.count, self.problem.d)
        return Seen(np.broadcast_to(gradients, shape), np.broadcast_to(noise, shape[:1]))

    def smoothness(self, model: RealArray) -> float:
        """Return L: a proven bound for a regression, else an estimate at a model times `ROOM`."""
        if isinstance(self.problem, Regression):
            return max(self.problem.smoothness(part) for part in self.parts)
        return ROOM * self.estimated(model)

    def estimated(self, model: RealArray) -> float:
        """Return an estimate of the largest curvature of a user's loss at a model."""
        draws = stream(self.seed, MODEL, 1)
        return max(problems.curvature(self.problem, model, part, draws) for part in self.parts)


def users(cell: Data, context: Context) -> Users:
    """Return the users of a cell.

    Parameters
    ----------
    cell : mapping
        With the members ``seed``, ``data``, ``problem``, ``decay``, ``users`` and ``partition``, which may be `ALL`,
        and ``alpha`` if the partition has one.
    context : Context
        The location of the data.
    """
    dataset = datasets.load(cell["data"], context.data)
    parts = tuple(Points.of(dataset.train, part) for part in _split(cell, dataset))
    problem = problems.build(cell["problem"], parts[0].x.shape[1], dataset.classes, cell["decay"])
    return Users(problem, parts, cell["users"], cell["seed"])


def _split(cell: Data, dataset: datasets.Dataset) -> tuple[problems.IntArray, ...]:
    if cell["partition"] == ALL:
        return (np.arange(len(dataset.train)),)
    return partitions.split(
        dataset, cell["partition"], cell["users"], stream(cell["seed"], PARTITION), cell.get("alpha")
    )


# ----------------------------------------------------------------------------------------------------- measurements


@dataclass
class Largest:
    """The maxima of several quantities over the models of runs, with batches of B samples.

    Parameters
    ----------
    batch : int
        B.
    noise : array (N,)
        For each user, the expected squared distance between the gradient of a batch and that of the user.
    steep : float
        The squared length of a user's gradient.
    moment : float
        The expected squared length of the gradient of a user's batch.
    apart, off : float
        The mean, and the largest, squared distance between users' gradients and their mean.
    """

    batch: int
    noise: RealArray
    steep: float = 0.0
    moment: float = 0.0
    apart: float = 0.0
    off: float = 0.0

    @classmethod
    def of(cls, users: Users, batch: int) -> Largest:
        """Return the state before the first run, in which nothing was seen."""
        return cls(batch, np.zeros(users.count))

    def at_all(self, seen: Seen) -> None:
        """Include the gradients and noise of all users at one model."""
        for user in range(len(self.noise)):
            self.at_one(user, seen.gradients[user], float(seen.noise[user]))
        distances = np.square(seen.gradients - seen.mean).sum(axis=1)
        self.apart, self.off = max(self.apart, float(distances.mean())), max(self.off, float(distances.max()))

    def at_one(self, user: int, gradient: RealArray, noise: float) -> None:
        """Include the gradient of a user, and the noise of one sample."""
        square, noise = float(gradient @ gradient), noise / self.batch
        self.noise[user] = max(self.noise[user], noise)
        self.steep, self.moment = max(self.steep, square), max(self.moment, square + noise)

    def constants(self) -> dict[str, float]:
        """Return the numbers as plain data; for the noise, the maximum and the mean over users."""
        named = {name: getattr(self, name) for name in ("steep", "moment", "apart", "off")}
        return {"noise": float(self.noise.max()), "mean noise": float(self.noise.mean()), **named}


@dataclass
class Local:
    """Users' local training: steps along gradients of batches, each of B samples drawn with replacement."""

    users: Users
    largest: Largest
    steps: int
    rate_of: Callable[[int], float] = field(repr=False)

    def moved(self, user: int, start: RealArray, rng: np.random.Generator) -> RealArray:
        """Return the update of a user: its first model minus its last one."""
        problem, part, model = self.users.problem, self.users.part(user), start
        for step in range(self.steps):
            if step:
                (gradient,), (noise,) = problem.moments(model, part)
                self.largest.at_one(user, gradient, float(noise))
            batch = part.taken(rng.integers(len(part.y), size=self.largest.batch))
            model = model - self.rate_of(step) * problem.gradient(model, batch)
        return start - model

    def updates(self, who: Sequence[int], starts: RealArray, number: int) -> RealArray:
        """Return the updates of users in a round; a user that appears twice draws its batches twice."""
        rngs = (stream(self.users.seed, BATCHES, number, place) for place in range(len(who)))
        return np.stack([self.moved(*each) for each in zip(who, starts, rngs, strict=True)])


@dataclass
class Watch:
    """Looks at the models of runs; estimates the curvature of a network at regular intervals."""

    users: Users
    largest: Largest
    every: int
    curvatures: list[float] = field(default_factory=list)

    def look(self, model: RealArray, t: int) -> float:
        """Record the model of round t, and return the squared length of the gradient of F."""
        seen = self.users.seen(model)
        self.largest.at_all(seen)
        if not isinstance(self.users.problem, Regression) and not divmod(t, self.every)[1]:
            self.curvatures.append(self.users.estimated(model))
        return seen.square

    def constants(self, L: float) -> dict[str, float]:
        """Return the recorded values: the maxima, L, and the largest estimate of the curvature of a network.

        Raises
        ------
        OutOfRange
            The curvature is above L: the steps were not those of the theorem.
        """
        curvature = max(self.curvatures, default=0.0)
        if curvature > L:
            raise OutOfRange("curvature on the way", curvature, f"at most {L:.6g}, which steps were chosen for")
        return {**self.largest.constants(), "L": L, "curvature": curvature}


def repeated(cell: Data, context: Context, fill: Callable[[RealArray, int], None]) -> tuple[RealArray, RealArray]:
    """Return J of each round (rounds,), and the bounded quantity in each round of each run (repeats, rounds).

    `fill` plays the run with a given number, and writes a row.
    """
    rows = np.empty((cell["repeats"], cell["rounds"]))
    for repeat, row in enumerate(rows):
        fill(row, repeat)
        context.tell((repeat + 1) / cell["repeats"])
    return np.arange(1, cell["rounds"] + 1), rows


# -------------------------------------------------------------------------------------------------------- an experiment


@dataclass(frozen=True)
class Bound:
    """The right side of a theorem: its name, the claim that its statements belong to, and their text."""

    name: str
    claim: str
    text: str


@dataclass(frozen=True)
class Variant:
    """A case of an experiment: its name, members of its cells, the bounds that judge it, and the bounded quantity."""

    name: str
    settings: Data
    bounds: tuple[Bound, ...]
    left: str


@dataclass(frozen=True)
class Theorem:
    """An experiment for a theorem: its variants, and the rest as in `Experiment`.

    `run` gives ``left`` for each J from 1 on, and ``bounds`` by name.
    """

    name: str
    title: str
    figure: str
    about: str
    presets: Mapping[str, Data]
    variants: tuple[Variant, ...]
    run: Callable[[Data, Context], Data]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the bounds of all variants, each once."""
        return tuple(dict.fromkeys(bound.name for variant in self.variants for bound in variant.bounds))

    def cells(self, settings: Data) -> list[Data]:
        """Return one cell for each seed and variant."""
        shared = {name: value for name, value in settings.items() if name != "seeds"}
        return [
            {**shared, **variant.settings, "variant": variant.name, "seed": seed}
            for seed in range(settings["seeds"])
            for variant in self.variants
        ]

    def statements(self, settings: Data) -> tuple[Statement, ...]:
        """Return a statement for each bound of each variant."""
        return tuple(_statement(variant, bound) for variant in self.variants for bound in variant.bounds)

    def numbers(self, settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
        """Return for each statement the smallest ratio of each seed."""
        return {
            f"{variant.name}: {bound.name}": [least(one, bound.name) for one in found_of(results, variant.name)]
            for variant in self.variants
            for bound in variant.bounds
        }

    def rows(self, settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
        """Yield the bounded quantity and the bounds for each J."""
        names = self.names
        for one in results:
            for at, left in enumerate(one.found["left"]):
                bounds = {name: one.found["bounds"][name][at] for name in names if name in one.found["bounds"]}
                named = {"variant": one.cell["variant"], "seed": one.cell["seed"], "rounds": at + 1}
                yield {**named, "left": left, **dict.fromkeys(names, ""), **bounds}

    def draw(self, plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
        """Draw the bounded quantity and the bounds against J, with a panel for each variant."""
        columns = 2 if len(self.variants) == _SQUARE else 3
        rows = -(-len(self.variants) // columns)
        shape = {"figsize": (4.4 * columns, 3.9 * rows), "layout": "constrained", "squeeze": False}
        figure, panels = plt.subplots(rows, columns, **shape)
        for axes, variant in zip(panels.flat, self.variants, strict=False):
            _panel(axes, variant, found_of(results, variant.name), dict(zip(self.names, _LOOKS, strict=False)))
        for axes in panels.flat[len(self.variants) :]:
            axes.remove()
        return {"bounds": figure}

    @property
    def experiment(self) -> Experiment:
        """The `Experiment` of this theorem."""
        named = {name: getattr(self, name) for name in ("cells", "run", "statements", "numbers", "rows", "draw")}
        return Experiment(self.name, self.title, (self.figure,), self.about, self.presets, **named)


def preset(settings: Mapping[str, Any], **others: Any) -> Data:
    """Return settings with some of them replaced.

    Raises
    ------
    ParameterError
        A setting is unknown.
    """
    strange = sorted(set(others) - set(settings))
    if strange:
        raise ParameterError("setting", strange[0], f"one of {', '.join(settings)}")
    return {**settings, **others}


def _statement(variant: Variant, bound: Bound) -> Statement:
    measure = f"the least ratio over J of the {bound.name} to {variant.left}"
    return Statement(bound.claim, f"{variant.name}: {bound.name}", f"{variant.name}: {bound.text}", measure, ">=", 1.0)


def least(found: Data, name: str) -> float:
    """Return the smallest ratio of a bound to the bounded quantity, over all J; negative if the bound is.

    Raises
    ------
    OutOfRange
        The bounded quantity is not above 0.
    """
    left = np.array(found["left"])
    if not (left > 0).all():
        raise OutOfRange("left side", float(left.min()), "above 0")
    return float((np.array(found["bounds"][name]) / left).min())


def found_of(results: Sequence[Result], variant: str) -> list[Data]:
    """Return the results of the cells of a variant, by seed."""
    of = {one.cell["seed"]: one.found for one in results if one.cell["variant"] == variant}
    return [of[seed] for seed in sorted(of)]


def _panel(axes: Any, variant: Variant, found: Sequence[Data], looks: Mapping[str, tuple[str, str]]) -> None:
    band(axes, range(1, len(found[0]["left"]) + 1), [one["left"] for one in found], *_LEFT, "measured")
    for name in (bound.name for bound in variant.bounds):
        _curve(axes, np.array([one["bounds"][name] for one in found]), *looks[name], name)
    axes.set(title=variant.name, xlabel="rounds J", ylabel=variant.left, yscale="log" if variant.bounds else "linear")
    axes.legend(fontsize=9)


def _curve(axes: Any, values: RealArray, colour: str, line: str, label: str) -> None:
    """Draw a bound of all seeds (seeds, J) where it is above 0, as a logarithmic axis requires."""
    shown = np.flatnonzero((values > 0).all(axis=0))
    if shown.size:
        band(axes, (shown + 1).tolist(), values[:, shown].tolist(), colour, line, label)
    else:
        axes.plot([], [], line, color=colour, label=f"{label}, not above 0")
