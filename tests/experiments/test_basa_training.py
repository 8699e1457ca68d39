"""Table 1 and figures 2 and 4 of BASA: training follows the clock, and times follow from what a result holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import aggregators, basa_training, costs, runs
from secagg_spec.experiments.basa_training import BASA, EXPERIMENTS, HELD, LSA_AFL, NO_SA, SCHEMES, SECAGG, reached
from secagg_spec.experiments.experiment import Context, Experiment, Result
from secagg_spec.learning.clock import Buffered, Costs, Work, buffered, synchronous

TABLE, DELAYS, CONCURRENCY = EXPERIMENTS
FIRST = [cell for cell in TABLE.cells(TABLE.presets["tiny"]) if cell["seed"] == 0]


def played(cell: Any, found: Any, task: runs.Task) -> list[list[float]]:
    """Return the times of all steps, played again with the costs that a result holds."""
    measured, times = costs.costs(found["costs"]), []
    for beta in cell["betas"]:
        work = Work(cell["training"], beta)
        if SCHEMES[cell["scheme"]].buffered:
            plan = Buffered(cell["users"], cell["at_once"], cell["buffer"])
            steps = buffered(plan, cell["steps"], work, measured, cell["seed"])
        else:
            choose = runs.uniform(task, cell["at_once"])
            steps = synchronous([choose(number) for number in range(cell["rounds"])], work, measured, cell["seed"])
        times.append([step.time for step in steps])
    return times


@pytest.mark.slow
@pytest.mark.requirement("EXP-20", "EXP-17", "EXP-18", "EXP-19")
@pytest.mark.parametrize("cell", FIRST, ids=lambda cell: f"{cell['scheme']} {cell['betas']}")
def test_the_times_of_a_result_follow_from_its_costs(cell: Any) -> None:
    found = json.loads(json.dumps(basa_training.run(cell, Context())))
    task = runs.task(cell, Context())
    assert found["times"] == played(cell, found, task)
    assert found["costs"]["protocol"] == SCHEMES[cell["scheme"]].protocol
    assert found["costs"]["length"] == task.model.d
    assert found["rounds"] == list(range(len(found["times"][0]) + 1))


class Watched:
    """The plain aggregator, which keeps what it is given."""

    name = "plain"

    def __init__(self, users: int, d: int) -> None:
        self.plain = aggregators.build({"aggregator": "plain"}, users, d, 0)
        self.given: list[tuple[list[int], list[int]]] = []

    def aggregate(self, updates: RealArray, weights: Sequence[float], **of_round: Any) -> aggregators.Aggregate:
        self.given.append((list(of_round["users"]), list(of_round["taus"])))
        return self.plain.aggregate(updates, weights, **of_round)


@pytest.mark.slow
@pytest.mark.requirement("EXP-11", "EXP-18")
def test_training_follows_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = FIRST[1]
    task = runs.task(cell, Context())
    steps = buffered(Buffered(16, 6, 3), 6, Work(0.75, 3.0), Costs(visits=(0.5, 0.25, 1.0)), seed=0)
    assert max(max(step.staleness(number)) for number, step in enumerate(steps)) > 1
    begun: list[RealArray] = []
    models = [task.first()]
    updates, moved = runs.Task.updates, runs._moved

    def watched(self: runs.Task, users: Any, starts: RealArray, *rest: Any) -> RealArray:
        begun.append(starts)
        return updates(self, users, starts, *rest)

    def kept(*given: Any) -> RealArray:
        models.append(moved(*given))
        return models[-1]

    monkeypatch.setattr(runs.Task, "updates", watched)
    monkeypatch.setattr(runs, "_moved", kept)
    aggregator = Watched(16, task.model.d)
    runs.run_buffered(
        task,
        aggregator,
        rounds=6,
        buffer=3,
        tau_max=6,
        staleness=Staleness.polynomial("1/2"),
        c_g=None,
        arrivals=basa_training._arrivals(steps),
    )
    assert aggregator.given == [(list(s.users), list(s.staleness(number))) for number, s in enumerate(steps)]
    for step, starts in zip(steps, begun, strict=True):
        for update, start in zip(step.updates, starts, strict=True):
            assert np.array_equal(start, models[update.model])


# ------------------------------------------------------------------------------------------------------ statements


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]), max_size=12))
def test_a_target_is_held_from_the_first_of_three_steps_above_it(accuracy: list[float]) -> None:
    at = reached(accuracy, 0.5)
    places = range(1, len(accuracy) - HELD + 1)
    held = [all(value >= 0.5 for value in accuracy[place : place + HELD]) for place in places]
    assert at == (1 + held.index(True) if any(held) else None)


def course(times: list[list[float]], at: int | None) -> dict[str, Any]:
    """Return what a run gives that holds the target from this step on."""
    steps = len(times[0])
    return {"accuracy": [0.0 if at is None or step < at else 1.0 for step in range(steps + 1)], "times": times}


def results(experiment: Experiment, at: dict[str, int | None]) -> list[Result]:
    """Return results in which a step takes 1 + beta seconds, or in SFL ten times as long."""
    found = []
    for cell in experiment.cells(experiment.presets["tiny"]):
        slow = 1 if SCHEMES[cell["scheme"]].buffered else 10
        times = [[slow * (1 + beta) * (step + 1) for step in range(12)] for beta in cell["betas"]]
        found.append(Result(cell, course(times, at.get(cell["scheme"], 2))))
    return found


def test_the_table_is_read_as_its_statements_say() -> None:
    numbers = TABLE.numbers(TABLE.presets["tiny"], results(TABLE, {LSA_AFL: 5, NO_SA: 1}))
    assert numbers["SecAgg (SFL), beta = 3"] == numbers["LSA (SFL), beta = 6"] == [10.0] * 3
    assert numbers["LSA (AFL), beta = 3"] == [2.5] * 3
    assert numbers["overhead falls"] == [0.0] * 3
    assert numbers["no delays"] == pytest.approx([0.1] * 3)


def test_figures_are_read_as_their_statements_say() -> None:
    gain = DELAYS.numbers(DELAYS.presets["tiny"], results(DELAYS, {}))
    assert gain == {"gain grows": pytest.approx([0.0] * 3)}
    ratios = CONCURRENCY.numbers(CONCURRENCY.presets["tiny"], results(CONCURRENCY, {BASA: 4}))
    assert ratios == {"4 users at once": [5.0] * 3, "8 users at once": [5.0] * 3}


def test_differences_of_ratios_have_the_sign_that_their_statements_say() -> None:
    """BASA takes one second more than no protocol, and SecAgg the square: what is extra falls, the gain grows."""
    takes: dict[str, Callable[[float], float]] = dict.fromkeys(SCHEMES, lambda beta: 1 + beta)
    takes |= {BASA: lambda beta: 2 + beta, SECAGG: lambda beta: (2 + beta) ** 2}
    for experiment, name, number in ((TABLE, "overhead falls", 8 / 7 - 5 / 4), (DELAYS, "gain grows", 8.0 - 3.0)):
        settings = experiment.presets["tiny"]
        found = []
        for cell in experiment.cells(settings):
            times = [[takes[cell["scheme"]](beta) * (at + 1) for at in range(12)] for beta in cell["betas"]]
            found.append(Result(cell, course(times, 2)))
        (judged,) = (one for one in experiment.judge(settings, found) if one.statement.name == name)
        assert judged.numbers == pytest.approx((number,) * 3)
        assert judged.verdict == "confirmed"


@pytest.mark.requirement("EXP-24")
def test_a_run_that_does_not_reach_the_target_counts_with_its_last_step() -> None:
    numbers = TABLE.numbers(TABLE.presets["tiny"], results(TABLE, {SECAGG: None}))
    assert numbers["SecAgg (SFL), beta = 3"] == [60.0] * 3


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_every_statement_has_a_number_and_every_cell_a_row(experiment: Experiment) -> None:
    settings = experiment.presets["tiny"]
    found = results(experiment, {})
    assert {one.statement.name for one in experiment.judge(settings, found)} == set(experiment.numbers(settings, found))
    for one in found:
        one.found.update(  # type: ignore[attr-defined]
            costs=dict.fromkeys(["user", "server", "authority", "sending", "after"], 0.5) | {"visits": []},
            ages=[1.0] * len(one.cell["betas"]),
        )
    rows = list(experiment.rows(settings, found))
    assert len(rows) == len(settings["schemes"]) * len(settings["betas"]) * len(settings["at_once"]) * 3
    assert {row["scheme"] for row in rows} == set(settings["schemes"])


def test_the_paper_says_what_stands_in_the_settings() -> None:
    paper = TABLE.presets["paper"]
    assert (paper["betas"], paper["at_once"], paper["buffer"], paper["target"]) == ([0.0, 3.0, 6.0], [32], 10, 0.8)
    assert (paper["data"], paper["users"], paper["alpha"], paper["model"]) == ("mnist", 1000, 0.5, "logistic")
