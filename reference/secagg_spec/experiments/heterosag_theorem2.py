"""Theorem 2 of HeteroSAg: the loss of the mean model of runs, next to the printed bound and the bound proved here.

====================  ==============================================================================
paper                 here
====================  ==============================================================================
N, G, K_g, r1, r2     ``users``; ``groups``, ``levels`` and ``range`` of the aggregator
eta                   `Step.rate`, 1/L
sigma^2               `Step.rounding`
s_i^2 of the repair   `Largest.noise`
====================  ==============================================================================

In each round all users send the gradient of a batch. An entry outside [r1, r2] ends a run. Without convexity the mean
squared gradient replaces the loss: only this part of the theorem holds for a network.

Source: HeteroSAg, theorem 2, eq. (11); proofs/quantised_descent.py; claims HET-THM2R, UNI-CONVRUNS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import convergence, runs
from secagg_spec.experiments.aggregators_cells import HeteroSAg
from secagg_spec.experiments.convergence import ALL, Bound, Largest, Local, Theorem, Users, Variant, Watch, preset
from secagg_spec.experiments.experiment import Context, Data
from secagg_spec.learning.problems import Regression
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.heterosag.costs import error_bound


@dataclass(frozen=True, eq=False)
class Step:
    """The part that the bounds share: eta, sigma^2, the first model, its squared distance, F^*, F(theta_0) - F^*."""

    rate: float
    rounding: float
    start: RealArray
    distance: float
    least: float
    gap: float

    def printed(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (11) for each J."""
        return self.distance / (2 * self.rate * J) + self.rate * self.rounding

    def repaired(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (a) of the proof for each J."""
        return self.distance / (2 * self.rate * J) + self.rate * self.variance(seen)

    def gradients(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (g) of the proof for each J, for the mean squared gradient; eta L is 1."""
        return 2 * self.gap / (self.rate * J) + self.variance(seen)

    def variance(self, seen: Largest) -> float:
        """Return V."""
        return self.rounding + float(seen.noise.sum()) / len(seen.noise) ** 2


def run(cell: Data, context: Context) -> Data:
    """Run a cell: return the mean over runs of the bounded quantity, and the bounds of its variant."""
    users, work = convergence.users(cell, context), runs.Work()
    aggregator = HeteroSAg(cell["aggregator"], users.count, users.problem.d, cell["seed"])
    seen, step = Largest.of(users, cell["batch"]), _step(cell, users, aggregator)
    watch = Watch(users, seen, cell["estimate"])
    play = Play(users, step, watch, Local(users, seen, 1, lambda at: 1.0), aggregator, work)
    J, lefts = convergence.repeated(cell, context, play.fill)
    bounds = {name: BOUNDS[name](step, seen, J).tolist() for name in cell["judged"]}
    constants = {**watch.constants(1 / step.rate), "gap": step.gap, "distance": step.distance}
    constants |= {"sigma^2": step.rounding, "V": step.variance(seen)}
    left = lefts.mean(axis=0).tolist()
    return {"left": left, "bounds": bounds, "constants": constants, "seconds": work.seconds, "aggregator": work.account}


def _step(cell: Data, users: Users, aggregator: HeteroSAg) -> Step:
    problem, whole, first = users.problem, users.whole, users.first()
    sigma = float(error_bound(aggregator.layout(users.count).parameters))
    if not isinstance(problem, Regression):
        return Step(1 / users.smoothness(first), sigma, first, 0.0, 0.0, problem.loss(first, whole))
    best = problem.minimum(whole)
    start, least = (best if cell["start"] == "optimum" else first), problem.loss(best, whole)
    distance, gap = float(np.square(start - best).sum()), problem.loss(start, whole) - least
    return Step(1 / problem.smoothness(whole), sigma, start, distance, least, gap)


@dataclass(frozen=True)
class Play:
    """Plays the rounds of runs."""

    users: Users
    step: Step
    watch: Watch
    local: Local
    aggregator: HeteroSAg
    work: runs.Work

    def fill(self, row: RealArray, repeat: int) -> None:
        """Write the bounded quantity after each round of one run."""
        model, total, squares = self.step.start, np.zeros(self.users.problem.d), 0.0
        everybody = range(self.users.count)
        for t in range(len(row)):
            with self.work.training():
                squares += self.watch.look(model, t)
            model = self._round(model, everybody, repeat * len(row) + t)
            total += model
            with self.work.training():
                row[t] = self._bounded(total / (t + 1), squares / (t + 1))

    def _round(self, model: RealArray, everybody: Sequence[int], number: int) -> RealArray:
        with self.work.training():
            gradients = self.local.updates(everybody, np.tile(model, (len(everybody), 1)), number)
        mean = self.work.aggregate(self.aggregator, gradients, [1] * len(gradients), users=everybody, round=number)
        return fedbuff.moved(model, mean, self.step.rate)

    def _bounded(self, mean: RealArray, square: float) -> float:
        """Return F of the mean model above F^*, or for a network the mean squared gradient."""
        if not isinstance(self.users.problem, Regression):
            return square
        return self.users.problem.loss(mean, self.users.whole) - self.step.least


# ----------------------------------------------------------------------------------------------------------- experiment

PRINTED = Bound(
    "printed bound", "HET-THM2R", "the loss of the mean model is at most the right side of (11) above F*, for each J"
)
REPAIRED = Bound(
    "repaired bound", "UNI-CONVRUNS", "the loss of the mean model is at most the repaired bound above F*, for each J"
)
GRADIENT = Bound(
    "bound on gradients", "UNI-CONVRUNS", "the mean squared gradient is at most what is left of the bound, for each J"
)
BOUNDS = {PRINTED.name: Step.printed, REPAIRED.name: Step.repaired, GRADIENT.name: Step.gradients}
_LOSS, _SQUARE = "loss above the minimum", "mean squared gradient"
_FEW, _MANY = [4, 8, 16, 32, 64], [256, 384, 512, 768, 1024]


def _variant(
    name: str, left: str, *bounds: Bound, levels: Sequence[int] = _MANY, bound: float = 1.25, **others: str
) -> Variant:
    aggregator = {
        "aggregator": "heterosag",
        "groups": 5,
        "levels": list(levels),
        "range": [-bound, bound],
        "every": 300,
    }
    named = {"problem": "regression", "partition": ALL, "start": "first", **others}
    return Variant(name, {**named, "aggregator": aggregator, "judged": [bound.name for bound in bounds]}, bounds, left)


VARIANTS = (
    _variant("regression, few levels", _LOSS, PRINTED, REPAIRED, levels=_FEW),
    _variant("regression, many levels", _LOSS, PRINTED, REPAIRED),
    _variant("regression from its minimum", _LOSS, PRINTED, REPAIRED, start="optimum"),
    _variant("regression, users that differ", _LOSS, REPAIRED, partition="by-class"),
    _variant("network", _SQUARE, GRADIENT, bound=8.0, problem="network"),
)
_DEFAULT: Data = {
    "data": "digits",
    "users": 15,
    "batch": 1,
    "decay": 0.01,
    "rounds": 300,
    "repeats": 3,
    "estimate": 50,
    "seeds": 3,
}
_ABOUT = """Each of 15 users in five groups sends the gradient of one sample in each round, quantised on levels from
-1.25 to 1.25, for the network from -8 to 8, and the step is 1/L. Few levels are 4 to 64 in the five groups, many are
256 to 1024. The loss is that of logistic regression with weight decay 0.01, from zeros or from its minimum, or of a
network of 16 units of tanh with the same decay. All users draw from all samples, so that each gradient is unbiased,
as the theorem asks; only the repaired bound is judged where users hold samples of few classes. L is a certain bound
for the regression, and for the network four times an estimate at the first model, which no estimate on the way may
exceed. The variances of samples are the largest at all models of all runs of a cell. The theorem says nothing of a
network: what is judged there is the bound on squared gradients that its proof leaves. The paper runs nothing for its
theorem: there is no preset paper."""
THEOREM = Theorem(
    name="heterosag-theorem2",
    title="The loss of the mean model beside the bound of theorem 2 and its repair",
    figure="HeteroSAg, theorem 2",
    about=_ABOUT,
    presets={"tiny": preset(_DEFAULT, rounds=10, repeats=2), "default": _DEFAULT},
    variants=VARIANTS,
    run=run,
)
EXPERIMENTS = (THEOREM.experiment,)
