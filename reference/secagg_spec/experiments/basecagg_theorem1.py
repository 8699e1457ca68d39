"""Theorem 1 of BASecAgg: the mean squared gradient of runs, next to the printed bound and the bound proved here.

====================  ==============================================================================
paper                 here
====================  ==============================================================================
N, K, E, tau_max      ``users``, ``buffer``, ``steps``, ``tau_max``
eta_l, eta_g          `Step.local`, 1
c_l, c_g              ``level``, 1
F^*, L                `Step.gap`, `Step.smoothness`
G as printed          `Largest.off`; the repaired bound has `Largest.steep`
====================  ==============================================================================

eta_l is 1/(L K E), the largest that the theorem allows. Each place of a buffer has an independently drawn user, which
is a participant of the protocol.

Source: BASecAgg, section 3, eq. (16) and (17); proofs/convergence_bound.py; claims BAS-THM1R, UNI-CONVRUNS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import aggregators, convergence, runs
from secagg_spec.experiments.convergence import Bound, Largest, Local, Theorem, Users, Variant, Watch, preset
from secagg_spec.experiments.experiment import Context, Data
from secagg_spec.learning.problems import Regression
from secagg_spec.learning.streams import CHOICE, STALENESS, stream
from secagg_spec.protocols.fedbuff import round as fedbuff


@dataclass(frozen=True)
class Step:
    """The part that both bounds share: L, eta_l, K, E, tau_max, the rounding d/(4 c_l^2), and F^*."""

    smoothness: float
    local: float
    buffer: int
    steps: int
    tau_max: int
    rounding: float
    gap: float

    def printed(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (17) for each J."""
        L, eta, K, E = self.smoothness, self.local, self.buffer, self.steps
        noise = self.rounding + float(seen.noise.max())
        late = 3 * L**2 * E**2 * eta**2 * K**2 * self.tau_max**2 * (seen.off + seen.apart + noise)
        return 2 * self.gap / (eta * E * K * J) + L * eta * noise / 2 + late

    def repaired(self, seen: Largest, J: RealArray) -> RealArray:
        """Return the right side of (c) of the proof for each J."""
        L, eta, K, E, sigma = self.smoothness, self.local, self.buffer, self.steps, float(seen.noise.max())
        h, G = eta * E, seen.steep
        V = G + sigma + self.rounding / h**2
        late = 2 * L**2 * h**2 * self.tau_max**2 * (G + V / K)
        return 2 * self.gap / (h * J) + L * h / K * V + late + 2 * L**2 * eta**2 * (E - 1) ** 2 * (G + sigma)


def run(cell: Data, context: Context) -> Data:
    """Run a cell: return the mean over runs of the squared gradients, and both bounds."""
    users, work = convergence.users(cell, context), runs.Work()
    seen, step = Largest.of(users, cell["batch"]), _step(cell, users)
    aggregator = aggregators.build(cell["aggregator"], cell["buffer"], users.problem.d, cell["seed"])
    watch, local = Watch(users, seen, cell["estimate"]), Local(users, seen, cell["steps"], lambda at: step.local)
    play = Play(users, cell, watch, local, aggregator, work)
    J, squares = convergence.repeated(cell, context, play.fill)
    bounds = {PRINTED.name: step.printed(seen, J).tolist(), REPAIRED.name: step.repaired(seen, J).tolist()}
    constants = {**watch.constants(step.smoothness), "gap": step.gap, "eta_l": step.local}
    left = (np.cumsum(squares, axis=1) / J).mean(axis=0).tolist()
    return {"left": left, "bounds": bounds, "constants": constants, "seconds": work.seconds, "aggregator": work.account}


def _step(cell: Data, users: Users) -> Step:
    first, K, E = users.first(), cell["buffer"], cell["steps"]
    L, rounding = users.smoothness(first), users.problem.d / (4 * cell["aggregator"]["level"] ** 2)
    return Step(L, 1 / (L * K * E), K, E, cell["tau_max"], rounding, _gap(users, first))


def _gap(users: Users, first: RealArray) -> float:
    """Return F^*, or an upper bound for it if the minimum is unknown: losses are not below 0."""
    problem, loss = users.problem, users.problem.loss(first, users.whole)
    if not isinstance(problem, Regression):
        return loss
    return loss - problem.loss(problem.minimum(users.whole), users.whole)


@dataclass(frozen=True)
class Play:
    """Plays the rounds of runs."""

    users: Users
    cell: Data
    watch: Watch
    local: Local
    aggregator: aggregators.Aggregator
    work: runs.Work

    def fill(self, row: RealArray, repeat: int) -> None:
        """Write the squared gradient at the model of each round of one run."""
        model, past = self.users.first(), runs.Past(self.cell["tau_max"])
        for t in range(len(row)):
            past.add(model)
            with self.work.training():
                row[t] = self.watch.look(model, t)
            model = self._round(model, past, t, repeat * len(row) + t)

    def _round(self, model: RealArray, past: runs.Past, t: int, number: int) -> RealArray:
        K, seed = self.cell["buffer"], self.users.seed
        oldest = min(self.cell["tau_max"], t)
        taus = [int(tau) for tau in stream(seed, STALENESS, number).integers(0, oldest + 1, (K,))]
        who = [int(user) for user in stream(seed, CHOICE, number).integers(0, self.users.count, (K,))]
        with self.work.training():
            updates = self.local.updates(who, past.models(taus), number)
        mean = self.work.aggregate(self.aggregator, updates, [1] * K, users=range(K), round=number, taus=taus)
        return fedbuff.moved(model, mean, 1.0)


# ----------------------------------------------------------------------------------------------------------- experiment

PRINTED = Bound("printed bound", "BAS-THM1R", "the mean squared gradient is at most the right side of (17), for each J")
REPAIRED = Bound(
    "repaired bound", "UNI-CONVRUNS", "the mean squared gradient is at most the repaired bound, for each J"
)
_LEFT = "mean squared gradient"
_STALE = 4
_CASES = (
    ("regression, no delays", "regression", 0),
    ("regression, delays", "regression", _STALE),
    ("network, no delays", "network", 0),
    ("network, delays", "network", _STALE),
)
VARIANTS = tuple(
    Variant(name, {"problem": problem, "tau_max": tau_max}, (PRINTED, REPAIRED), _LEFT)
    for name, problem, tau_max in _CASES
)
_DEFAULT: Data = {
    "data": "digits",
    "users": 20,
    "partition": "dirichlet",
    "alpha": 1.0,
    "buffer": 8,
    "steps": 2,
    "batch": 16,
    "decay": 0.001,
    "rounds": 400,
    "repeats": 2,
    "estimate": 100,
    "aggregator": {"aggregator": "basecagg", "level": 2**12, "c_g": 1, "tau_max": _STALE, "every": 300},
    "seeds": 3,
}
_ABOUT = """BASecAgg with constant staleness, which is eq. (16), on logistic regression with weight decay 0.001 and on
a network of 16 units of tanh. The digits are spread over the users by a Dirichlet distribution, and F is the mean of
the users' losses. L is a certain bound for the regression; for the network it is four times an estimate at the first
model, and no estimate on the way may be larger. F* is known for the regression, and replaced by F at the first model
for the network. The other constants are the largest at all models of all runs of a cell, global and local ones,
computed from all samples. The theorem's constants hold everywhere and may be larger. The paper runs nothing for its
theorem: there is no preset paper."""
THEOREM = Theorem(
    name="basecagg-theorem1",
    title="The mean squared gradient beside the bound of theorem 1 and its repair",
    figure="BASecAgg, theorem 1",
    about=_ABOUT,
    presets={"tiny": preset(_DEFAULT, users=6, buffer=4, rounds=12, repeats=2), "default": _DEFAULT},
    variants=VARIANTS,
    run=run,
)
EXPERIMENTS = (THEOREM.experiment,)
