"""What the library is for, done once on a small scale, so that right calls can be recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from secagg_spec import events
from secagg_spec.learning import attacks, clock, models, partitions, problems
from secagg_spec.learning.training import LocalSGD, Trainer
from secagg_spec.recording import PROTOCOLS, record
from secagg_spec.recording.chart import chart
from tests.harden.surfaces import COMMANDS, run_command
from tests.learning import stand_in
from tests.traces.recorded import COMPLETE, learned, run

ROUNDS = (
    "simulate lightsecagg", "simulate lightsecagg --profile active", "simulate secagg",
    "simulate secagg --profile active", "simulate heterosag", "simulate basecagg", "simulate basa",
    "simulate multiround",
)  # fmt: skip
_LOG = Path(__file__).parents[2] / "docs" / "assets" / "participation-batches.csv"
_TRACE = Path(__file__).parents[2] / "docs" / "assets" / "trace-asked-twice.jsonl"
DECISIONS = (
    "privacy secagg --neighbours 2 --threshold 2 --order 0,2,4,1,3", "privacy lightsecagg --points 0,1,2,3,4",
    "privacy basecagg --weights 1,0,0 --coalition 0", "privacy basa --rule paper --timeout 2:keyed --collude 2",
    "plan --users 200 --dimension 7850 --dropout 0.05 --asynchronous --no-times",
    "privacy heterosag --preset tiny", f"audit-participation {_LOG} --users 12 --privacy 4", f"trace {_TRACE}",
    "reconstruct --users 6 --per-round 4 --privacy 2 --rounds 12",
)  # fmt: skip


def _train() -> None:
    data = stand_in.dataset(40)
    parts = partitions.split(data, "dirichlet", 3, np.random.default_rng(1), 1.0)
    partitions.label_counts(data.train.y, parts, data.classes)
    partitions.left_out(data, parts)
    for name, engine in (("mlp", "vmap"), ("logistic", "stacked")):
        model = models.build(name, data)
        start = model.initial(np.random.default_rng(2))
        rngs = [np.random.default_rng(user) for user in range(len(parts))]
        sgd = LocalSGD(epochs=1, batch=8, rate=0.1)
        trained = Trainer(model, data.train, sgd, engine).train(np.stack([start] * len(parts)), parts, rngs)
        model.evaluate(trained[0], data.test)
        model.accuracy(trained[0], data.test)
        attacks.sign_flip(trained[0] - start)
        attacks.gaussian(start, attacks.normals(np.full((2, len(start)), 0.25)))
    attacks.label_flip(data.train.y, data.classes)


def _solve() -> None:
    data, rng = stand_in.dataset(30, side=2), np.random.default_rng(3)
    points = problems.Points.of(data.train, np.arange(20))
    joined = problems.Points.joined([points.taken(np.arange(8)), points.taken(np.arange(8, 20))])
    for name in ("regression", "network"):
        problem = problems.build(name, points.x.shape[1], data.classes, 0.1)
        model = problem.initial(rng)
        problem.loss(model, joined)
        problem.gradient(model, joined)
        problem.moments(model, joined, (8, 12))
        problems.curvature(problem, model, points, rng)
    regression = problems.Regression(points.x.shape[1], data.classes, 0.1)
    regression.minimum(points)
    regression.smoothness(points)


def _wait() -> None:
    work, costs = clock.Work(1.0, 0.5), clock.Costs(sending=0.25, after=0.5)
    clock.synchronous([[0, 1], [2, 1]], work, costs, 4)
    clock.buffered(clock.Buffered(8, 3, 2), 4, work, costs, 5)
    schedule = events.jobs(events.drawn_delays(b"plays", 3, 2, "uniform", 0.5, 2.0), timeout=9.0)
    events.from_csv(events.to_csv(schedule), 3)
    events.ordered(3, schedule.events)


def _record(protocol: str) -> None:
    chart(record(protocol, next(iter(PROTOCOLS[protocol]))), protocol)


def _judge(name: str) -> None:
    learned(run(name).lines)


def _learn() -> None:
    _train()
    _solve()
    _wait()


PLAYS: tuple[Callable[[], object], ...] = (
    _learn,
    *(partial(run_command, command.split()) for command in (*DECISIONS, *COMMANDS, *ROUNDS)),
    *(partial(_record, name) for name in PROTOCOLS),
    *(partial(_judge, name) for name in COMPLETE),
)
"""Training, experiments, clocks, commands, recorded rounds and traces."""
