"""Theorem 2 of Multi-RoundSecAgg: the loss of runs, next to the printed bound and the bound proved here.

====================  ==============================================================================
paper                 here
====================  ==============================================================================
N, K, T, E            ``users``, ``per_round``, ``batch_of_users``, ``steps``
C/K                   `Step.share`
rho, mu               `Step.smoothness`, ``decay``
sigma_i^2, G^2        `Largest.noise`, `Largest.moment`
L^* - sum L_i^*       `Step.summed`; with their mean `Step.mean`
====================  ==============================================================================

The step is 2/(mu (gamma + t)), as in the work that the theorem is based on; t counts the local steps of the earlier
rounds that took place, or of all earlier rounds.

Source: Multi-RoundSecAgg, theorem 2, eq. (8); proofs/effective_rounds.py; claims MRS-THM2R, MRS-GAMMA, UNI-CONVRUNS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import aggregators, convergence, runs, selection
from secagg_spec.experiments.convergence import Bound, Largest, Local, Theorem, Users, Variant, Watch, preset
from secagg_spec.experiments.experiment import Context, Data
from secagg_spec.learning.problems import Regression
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.selection import metrics
from secagg_spec.selection.batches import Parameters


@dataclass(frozen=True)
class Step:
    """The part that the bounds share: N, K, T, C/K, E, rho, mu, the squared distance, and Gamma in both readings."""

    chosen: Parameters
    share: float
    steps: int
    smoothness: float
    convexity: float
    distance: float = 0.0
    summed: float = 0.0
    mean: float = 0.0

    @property
    def gamma(self) -> float:
        """The smallest t of the learning rate."""
        return max(8 * self.smoothness / self.convexity, self.steps)

    def rate(self, t: int) -> float:
        """Return the learning rate."""
        return 2 / (self.convexity * (self.gamma + t))

    def printed(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (8) for each J, which may be negative."""
        return self._over(self._scale(seen, self.summed, self.chosen.N, self.chosen.K), self.steps * J - 1 / self.share)

    def read(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (8) with the mean of the L_i^* in Gamma."""
        return self._over(self._scale(seen, self.mean, self.chosen.N, self.chosen.K), self.steps * J - 1 / self.share)

    def repaired(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the bound of (a) of the proof for each J, with the batches of (c) in beta."""
        scale = self._scale(seen, self.mean, self.chosen.batches, self.chosen.per_round)
        return self._over(scale, self.steps * (J + 1) - self.steps / self.share)

    def _over(self, scale: float, count: RealArray) -> RealArray:
        return scale / (self.gamma + self.share * count)

    def _scale(self, seen: Largest, Gamma: float, among: int, chosen: int) -> float:
        """Return A; in beta, `chosen` of `among` are selected, users or batches."""
        E, mu = self.steps, self.convexity
        alpha = float(seen.noise.mean()) + 6 * self.smoothness * Gamma + 8 * (E - 1) ** 2 * seen.moment
        beta = 4 * (among - chosen) * E**2 * seen.moment / (chosen * (among - 1))
        return self.smoothness * (2 * (alpha + beta) / mu**2 + self.gamma / 2 * self.distance)


def run(cell: Data, context: Context) -> Data:
    """Run a cell: the mean over runs of the loss after each round, and the bounds of its variant."""
    users, work = convergence.users(cell, context), runs.Work()
    seen, (step, least) = Largest.of(users, cell["batch"]), _step(cell, users)
    aggregator = aggregators.build({"aggregator": "plain"}, users.count, users.problem.d, users.seed)
    watch = Watch(users, seen, cell["estimate"])
    play = Play(users, cell, step, watch, aggregator, work, chosen(cell))
    J, lefts = convergence.repeated(cell, context, play.fill)
    bounds = {name: BOUNDS[name](step, seen, J).tolist() for name in cell["judged"]}
    constants = {**watch.constants(step.smoothness), "mu": step.convexity, "gamma": step.gamma, "share": step.share}
    constants |= {"distance": step.distance, "Gamma, sum": step.summed, "Gamma, mean": step.mean}
    left = (lefts.mean(axis=0) - least).tolist()
    return {"left": left, "bounds": bounds, "constants": constants, "seconds": work.seconds, "aggregator": work.account}


def _settings(cell: Data) -> selection.Settings:
    rounds, rate = cell["rounds"] * cell["repeats"], Fraction(cell["dropout"])
    batch = (cell["batch_of_users"],)
    return selection.Settings(cell["users"], cell["per_round"], batch, rounds, (rate,), cell["seed"], "uniform")


def chosen(cell: Data) -> list[list[int]]:
    """Return the users in the sum of each round of all runs of a cell; none if the round does not take place."""
    settings = _settings(cell)
    there = selection.available(settings, selection.rates_of_users(settings))
    return [[int(user) for user in row.nonzero()[0]] for row in selection.take_rounds(settings, _scheme(cell), there)]


def _scheme(cell: Data) -> selection.Scheme:
    return selection.schemes(_settings(cell))[-1]


def _step(cell: Data, users: Users) -> tuple[Step, float]:
    """Return the part that the bounds share, and L^*. For a network neither is known, and 0 stands for L^*."""
    parameters, first, problem = _scheme(cell).parameters, users.first(), users.problem
    share = float(metrics.expected_cardinality(parameters, Fraction(cell["dropout"])) / parameters.K)
    step = Step(parameters, share, cell["steps"], users.smoothness(first), cell["decay"])
    if not isinstance(problem, Regression):
        return step, 0.0
    best = problem.minimum(users.whole)
    least = problem.loss(best, users.whole)
    own = [problem.loss(problem.minimum(part), part) for part in users.parts]
    distance, mean = float(np.square(first - best).sum()), least - sum(own) / len(own)
    return replace(step, distance=distance, summed=least - sum(own), mean=mean), least


@dataclass(frozen=True)
class Play:
    """Plays the rounds of runs."""

    users: Users
    cell: Data
    step: Step
    watch: Watch
    aggregator: aggregators.Aggregator
    work: runs.Work
    chosen: Sequence[Sequence[int]]

    def fill(self, row: RealArray, repeat: int) -> None:
        """Write the loss after each round of one run."""
        model, held = self.users.first(), 0
        for t, who in enumerate(self.chosen[repeat * len(row) : (repeat + 1) * len(row)]):
            with self.work.training():
                self.watch.look(model, t)
            counted = held if self.cell["counts"] == HELD else t
            model = self._round(model, who, counted, repeat * len(row) + t) if who else model
            held += bool(who)
            row[t] = self.users.problem.loss(model, self.users.whole)

    def _round(self, model: RealArray, who: Sequence[int], counted: int, number: int) -> RealArray:
        E = self.cell["steps"]
        local = Local(self.users, self.watch.largest, E, lambda at: self.step.rate(counted * E + at))
        with self.work.training():
            updates = local.updates(who, np.tile(model, (len(who), 1)), number)
        mean = self.work.aggregate(self.aggregator, updates, [1] * len(who), users=who, round=number)
        return fedbuff.moved(model, mean, 1.0)


# ----------------------------------------------------------------------------------------------------------- experiment

HELD, EVERY = "rounds that take place", "all rounds"
_TEXT = "the loss is at most {} above its minimum, for each J"
PRINTED = Bound("printed bound", "MRS-GAMMA", _TEXT.format("the right side of (8)"))
READ = Bound(
    "printed bound, mean in Gamma",
    "MRS-THM2R",
    _TEXT.format("the right side of (8), with the mean of the users' minima in Gamma,"),
)
REPAIRED = Bound("repaired bound", "UNI-CONVRUNS", _TEXT.format("the repaired bound"))

BOUNDS: MappingProxyType[str, Callable[[Step, Largest, RealArray], RealArray]] = MappingProxyType(
    {PRINTED.name: Step.printed, READ.name: Step.read, REPAIRED.name: Step.repaired}
)


def _variant(name: str, problem: str, partition: str, counts: str, *bounds: Bound) -> Variant:
    named = {"problem": problem, "partition": partition, "counts": counts}
    left = "loss above the minimum" if problem == "regression" else "loss"
    return Variant(name, {**named, "judged": [bound.name for bound in bounds]}, bounds, left)


VARIANTS = (
    _variant("regression, users alike", "regression", "iid", HELD, PRINTED, REPAIRED, READ),
    _variant("regression, batches that differ", "regression", "by-class", HELD, PRINTED, REPAIRED, READ),
    _variant("users alike, t of all rounds", "regression", "iid", EVERY, PRINTED, READ),
    _variant("batches that differ, t of all rounds", "regression", "by-class", EVERY, PRINTED, READ),
    _variant("network", "network", "iid", HELD),
)
_DEFAULT: Data = {
    "data": "digits",
    "users": 24,
    "per_round": 12,
    "batch_of_users": 4,
    "dropout": "1/5",
    "steps": 2,
    "batch": 8,
    "decay": 0.1,
    "rounds": 200,
    "repeats": 3,
    "estimate": 50,
    "seeds": 3,
}
_ABOUT = """FedAvg with the selection of Multi-RoundSecAgg in batches of four users, each of whom drops out with
probability 1/5, on logistic regression with weight decay 0.1, whose strong convexity is exactly 0.1. The users hold
samples at random, or of few classes, so that the users of a batch are alike. L* and the minima of the users' losses
are computed, rho is a certain bound, C is the exact expectation, and the other constants are the largest at all
models of all runs of a cell, global and local ones, from all samples. Updates are averaged as they are, since the
theorem has no quantiser. The printed bound is judged with Gamma as printed and with the mean of the users' minima in
it. A network of 16 units of tanh is not convex: the theorem says nothing of it, and its loss is shown without a
bound. The paper runs nothing for its theorem: there is no preset paper."""
THEOREM = Theorem(
    name="multi-round-theorem2",
    title="The loss beside the bound of theorem 2 and its repair",
    figure="Multi-RoundSecAgg, theorem 2",
    about=_ABOUT,
    presets={
        "tiny": preset(_DEFAULT, users=8, per_round=4, batch_of_users=2, rounds=10, repeats=2),
        "default": _DEFAULT,
    },
    variants=VARIANTS,
    run=run,
)
EXPERIMENTS = (THEOREM.experiment,)
