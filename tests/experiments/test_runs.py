"""Properties of runs: what moves the model, what is the same for all schemes, and when a run stops."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.experiments import runs
from secagg_spec.experiments.aggregates import Disagreement
from secagg_spec.experiments.experiment import Context, accuracy
from secagg_spec.learning.streams import WEIGHTS, stream
from secagg_spec.protocols.fedbuff import round as fedbuff
from tests.experiments import fake_task
from tests.experiments.fake_task import Narrow, Off, Plain

pytestmark = pytest.mark.slow

CONSTANT, POLYNOMIAL = Staleness.constant(), Staleness.polynomial(1)


def synchronous(task: Any, aggregator: Any = None, **settings: Any) -> dict[str, Any]:
    """FedAvg with all users in each of five rounds, unless settings say otherwise."""
    users = range(len(task.parts))
    return runs.run_synchronous(task, aggregator or Plain(), **{"rounds": 5, "choose": lambda t: users, **settings})


def buffered(task: Any, aggregator: Any = None, **settings: Any) -> dict[str, Any]:
    """FedBuff with two updates in a buffer, unless settings say otherwise."""
    usual = {"rounds": 30, "buffer": 2, "tau_max": 4, "staleness": POLYNOMIAL, "c_g": 64}
    return runs.run_buffered(task, aggregator or Plain(), **{**usual, **settings})


# ------------------------------------------------------------------------------------------------------------ the rules


@pytest.mark.requirement("EXP-10")
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans(), st.sampled_from([0.3, 1.0]))
def test_fedavg_moves_the_model_against_the_weighted_mean(sizes: list[int], weighted: bool, server_rate: float) -> None:
    task, aggregator = fake_task.task(sizes), Plain()
    synchronous(task, aggregator, weighted=weighted, server_rate=server_rate)
    for (before, after), report in zip(pairwise(task.model.seen), aggregator.report, strict=True):
        weights = np.array(sizes if weighted else [1] * len(sizes))
        mean = sum(n * update for n, update in zip(weights, report["updates"], strict=True)) / weights.sum()
        np.testing.assert_allclose(after, before - server_rate * mean, rtol=1e-12)


@pytest.mark.requirement("EXP-10")
def test_an_update_is_what_was_downloaded_minus_what_was_trained() -> None:
    task, aggregator = fake_task.task([2, 3]), Plain()
    synchronous(task, aggregator, rounds=1)
    starts, _, moves = task.trainer.given[0]
    aims = np.array([0.5, 3.0]) + moves
    np.testing.assert_allclose(aggregator.report[0]["updates"], 0.5 * (starts - aims[:, None]))


def test_rounds_without_users_change_nothing() -> None:
    task, aggregator = fake_task.task(), Plain()
    synchronous(task, aggregator, rounds=2, choose=lambda t: [] if t == 0 else [2])
    assert (task.model.seen[0] == task.model.seen[1]).all()
    assert (task.model.seen[2] != task.model.seen[1]).all()
    (starts, _, moves), report = task.trainer.given[0], aggregator.report[0]
    np.testing.assert_allclose(report["updates"], 0.5 * (starts - 4 - moves[0]))
    assert (report["users"], report["round"]) == ([2], 1)


def test_the_learning_rate_of_a_round_reaches_the_training() -> None:
    task, aggregator = fake_task.task([1]), Plain()
    synchronous(task, aggregator, rounds=3, rate_of=lambda t: (0.5, 0.25, 0.125)[t])
    for report, (starts, _, moves), rate in zip(aggregator.report, task.trainer.given, (0.5, 0.25, 0.125), strict=True):
        np.testing.assert_allclose(report["updates"], rate * (starts - moves[0]))


@pytest.mark.requirement("EXP-11")
@pytest.mark.parametrize("c_g", [None, 7, 64])
def test_fedbuff_is_that_of_its_page(c_g: int | None) -> None:
    task, aggregator = fake_task.task(seed=5), Plain()
    buffered(task, aggregator, c_g=c_g, tau_max=1, server_rate=0.5)
    p = fedbuff.Parameters(4, 3, 2, 1, 0.5, POLYNOMIAL, c_g or 2**32)
    state = fedbuff.start(p, task.first())
    for report, model in zip(aggregator.report, task.model.seen[1:], strict=True):
        for user, tau, update in zip(report["users"], report["taus"], report["updates"], strict=True):
            state = fedbuff.receive(replay(state), user, state.round - tau, update)
        state = fedbuff.step(state, rounding=report["draws"][np.argsort(report["users"])])
        np.testing.assert_allclose(model, state.model, rtol=1e-9 if c_g is None else 1e-14)


def replay(state: fedbuff.ServerState) -> fedbuff.ServerState:
    """A server that takes an update again: staleness is drawn, so that a user may begin twice with one model."""
    return fedbuff.ServerState(state.parameters, state.model, state.round, state.buffer)


@pytest.mark.requirement("EXP-11")
def test_staleness_is_uniform_up_to_the_bound_and_the_round() -> None:
    for number in (0, 1, 3, 10):
        most = min(4, number)
        drawn = Counter(tau for seed in range(150) for tau in runs.drawn_taus(seed, number, 4, 10))
        assert set(drawn) == set(range(most + 1))
        mean = 1500 / (most + 1)
        assert all(abs(count - mean) < 5 * math.sqrt(mean) for count in drawn.values())


@pytest.mark.requirement("EXP-11")
def test_late_updates_begin_with_the_model_of_that_round() -> None:
    task, aggregator = fake_task.task(), Plain()
    buffered(task, aggregator)
    late = 0
    for number, (report, (starts, _, _)) in enumerate(zip(aggregator.report, task.trainer.given, strict=True)):
        for tau, start in zip(report["taus"], starts, strict=True):
            assert (start == task.model.seen[number - tau]).all()
            late += tau > 0
    assert late > 10


@pytest.mark.requirement("EXP-12")
def test_fedasync_mixes_what_a_user_trained_into_the_model() -> None:
    task = fake_task.task(seed=2)
    runs.run_fedasync(task, rounds=30, tau_max=3, staleness=POLYNOMIAL, mixing=0.6)
    seen = task.model.seen
    for number, (starts, users, moves) in enumerate(task.trainer.given):
        (tau,) = runs.drawn_taus(2, number, 3, 1)
        assert (starts[0] == seen[number - tau]).all()
        part = next(part for part in task.parts if part[0] == users[0])
        trained = starts[0] + 0.5 * (part.mean() + moves[0] - starts[0])
        share = 0.6 / (1 + tau)
        np.testing.assert_allclose(seen[number + 1], (1 - share) * seen[number] + share * trained, rtol=1e-12)


# ----------------------------------------------------------------------------------------------- the same for all


@pytest.mark.requirement("EXP-08")
def test_schemes_with_one_seed_see_the_same_users_staleness_and_batches() -> None:
    tasks = [fake_task.task(seed=9) for _ in range(3)]
    weighed, real, plain = Plain(), Plain(), Plain()
    buffered(tasks[0], weighed)
    buffered(tasks[1], real, staleness=CONSTANT, c_g=None, server_rate=0.1)
    synchronous(tasks[2], plain, rounds=30, choose=runs.uniform(tasks[2], 2), weighted=False)
    assert (tasks[0].model.seen[0] == tasks[2].model.seen[0]).all()
    for first, second, third in zip(weighed.report, real.report, plain.report, strict=True):
        assert first["users"] == second["users"] == third["users"]
        assert first["taus"] == second["taus"]
    moves = [[moves for _, _, moves in task.trainer.given] for task in tasks]
    assert moves[0] == moves[1] == moves[2]
    assert len({move for row in moves[0] for move in row}) == 60


def test_another_seed_is_another_run() -> None:
    one, other = fake_task.task(seed=1), fake_task.task(seed=2)
    buffered(one), buffered(other)
    assert (one.model.seen[0] != other.model.seen[0]).all()
    assert [given[1:] for given in one.trainer.given] != [given[1:] for given in other.trainer.given]


def test_weights_are_drawn_from_their_stream() -> None:
    task, aggregator = fake_task.task(seed=4), Plain()
    buffered(task, aggregator, rounds=3)
    for number, report in enumerate(aggregator.report):
        assert (report["draws"] == stream(4, WEIGHTS, number).integers(0, 2**53, 2) / 2**53).all()
        assert all(isinstance(weight, int) for weight in report["weights"])


# ------------------------------------------------------------------------------------------------------ where it stops


@pytest.mark.requirement("EXP-09")
@pytest.mark.parametrize("scheme", [synchronous, buffered])
def test_a_run_stops_where_training_diverges(scheme: Any) -> None:
    task = fake_task.task(spoilt=3)
    found = scheme(task, evaluate=2, rounds=9)
    assert found["diverged"] == 4
    assert found["rounds"] == [0, 2, 3]
    assert "not finite" in found["why"]
    assert len(task.trainer.given) == 4


@pytest.mark.requirement("EXP-09")
def test_a_run_stops_where_the_model_is_not_finite() -> None:
    class Huge(Plain):
        def aggregate(self, updates: Any, weights: Any, **of_round: Any) -> Any:
            return super().aggregate(updates * (1e290 if of_round["round"] == 2 else 1), weights, **of_round)

    found = synchronous(fake_task.task(), Huge(), server_rate=1e9)
    assert (found["diverged"], found["rounds"]) == (3, [0, 1, 2])
    assert "parameter" in found["why"]


@pytest.mark.requirement("EXP-09")
def test_a_run_stops_where_the_loss_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    task = fake_task.task()
    losses = iter([1.0, 1.0, math.nan, 1.0])
    monkeypatch.setattr(task.model, "evaluate", lambda vector, samples, device: (0.5, next(losses)))
    found = synchronous(task)
    assert (found["diverged"], found["rounds"]) == (2, [0, 1])
    assert "loss" in found["why"]


@pytest.mark.requirement("EXP-09")
def test_a_run_stops_where_a_quantiser_refuses() -> None:
    found = synchronous(fake_task.task(), Narrow())
    assert (found["diverged"], found["rounds"]) == (4, [0, 1, 2, 3])
    assert "5 / 1" in found["why"]


@pytest.mark.requirement("EXP-24")
def test_a_run_that_diverged_counts_with_its_last_round() -> None:
    task = fake_task.task(spoilt=38)
    found = synchronous(task, rounds=40, evaluate=5)
    assert found["rounds"][-1] == 38
    assert accuracy(found) == task.model.seen[-1][0]
    spoilt = synchronous(fake_task.task(spoilt=0), rounds=40)
    assert accuracy(spoilt) == task.model.seen[0][0]


@pytest.mark.requirement("EXP-24")
def test_a_run_that_diverged_is_not_averaged_over_its_last_tenth() -> None:
    values = [float(value) for value in range(30)]
    assert accuracy({"accuracy": values, "diverged": None}) == 28.0
    assert accuracy({"accuracy": values, "diverged": 31}) == 29.0


def test_what_the_aggregator_says_of_its_rounds_is_kept() -> None:
    found = synchronous(fake_task.task(), Off(0.9 / 64, 1 / 64, moved=2))["aggregator"]
    assert found["largest_error"] == pytest.approx(0.9 / 64)
    assert (found["name"], found["bound"], found["shortcut"], found["protocol"]) == ("off", 1 / 64, 5, 0)
    assert found["moved"] == 10
    assert synchronous(fake_task.task(), Off(3.0, math.inf))["aggregator"]["bound"] == 0.0


@pytest.mark.requirement("EXP-13")
def test_an_aggregator_that_finds_itself_wrong_stops_the_run() -> None:
    class Wrong(Off):
        def aggregate(self, *arguments: Any, **of_round: Any) -> Any:
            raise Disagreement("two ways do not meet")

    with pytest.raises(Disagreement):
        synchronous(fake_task.task(), Wrong(0.0, 1 / 64))


def test_settings_out_of_range_are_refused() -> None:
    task = fake_task.task()
    for wrong in ({"rounds": 0}, {"evaluate": 0}):
        with pytest.raises(ParameterError):
            synchronous(task, **wrong)
    for wrong in ({"buffer": 5}, {"buffer": 0}, {"tau_max": -1}):
        with pytest.raises(ParameterError):
            buffered(task, **wrong)
    with pytest.raises(ParameterError):
        runs.uniform(task, 5)
    for mixing in (1.5, True):
        with pytest.raises(OutOfRange):
            runs.run_fedasync(task, rounds=1, tau_max=0, staleness=CONSTANT, mixing=mixing)


def test_a_truth_value_a_rate_and_users_of_the_task_are_asked_for() -> None:
    task = fake_task.task()
    for wrong in ("no", 0, None):
        with pytest.raises(ParameterError, match=r"^weighted = .*: must be of the class bool$"):
            synchronous(task, weighted=wrong)
    for run in (synchronous, buffered):
        for rate in (math.nan, math.inf, "1", True, None):
            with pytest.raises(OutOfRange, match=r"^server_rate = .*: must be a finite float$"):
                run(task, server_rate=rate)
    for users in ([0, len(task.parts)], [-1], [1.0], [True], [0, 0], None, 1, "01"):
        with pytest.raises(ParameterError, match=r"^users = "):
            synchronous(task, choose=lambda t, users=users: users)
    for taus in ([0, 1], [0, -1], [0, True], [0, 0.0]):
        with pytest.raises(ParameterError, match=r"^taus = .*: must be an integer in \[0, 0\]$"):
            buffered(task, arrivals=lambda t, taus=taus: ([0, 1], taus))
    with pytest.raises(LengthMismatch, match=r"^len\(taus\) = 1: must be 2, one for each user$"):
        buffered(task, arrivals=lambda t: ([0, 1], [0]))
    with pytest.raises(LengthMismatch, match=r"^len\(taus\) = 0: must be 1 or more$"):
        buffered(task, arrivals=lambda t: ([], []))


@pytest.mark.parametrize("missing", ["seed", "data", "partition", "users", "model", "epochs", "batch", "rate"])
def test_a_cell_without_a_member_is_refused_by_its_name(missing: str) -> None:
    cell = {**CELL, "epochs": 5, "batch": 20, "rate": 0.2}
    with pytest.raises(ParameterError, match=rf"^cell = '{missing}': must be with this member, which is missing$"):
        runs.task({name: value for name, value in cell.items() if name != missing}, Context())


@pytest.mark.requirement("EXP-03")
def test_a_result_says_how_many_samples_no_user_holds() -> None:
    task = fake_task.task([2, 3, 4])
    assert synchronous(task)["left_out"] == 0
    fewer = runs.Task(task.dataset, task.parts[:2], task.model, task.trainer, task.seed)
    assert synchronous(fewer)["left_out"] == 4
    assert runs.run_fedasync(fewer, rounds=2, tau_max=0, staleness=CONSTANT, mixing=0.5)["left_out"] == 4


# ------------------------------------------------------------------------------------------------------- real training


CELL = {"seed": 1, "data": "digits", "partition": "iid", "users": 20, "model": "logistic"}


def test_fedavg_and_fedbuff_learn_the_digits() -> None:
    shares: list[float] = []
    task = runs.task({**CELL, "epochs": 5, "batch": 20, "rate": 0.2, "decay": 1e-4}, Context())
    usual: dict[str, Any] = {"rounds": 20, "evaluate": 5, "tell": shares.append}
    found = runs.run_synchronous(task, Plain(), choose=runs.uniform(task, 10), **usual)
    assert found["accuracy"][0] < 0.3 < 0.85 < accuracy(found)
    assert found["rounds"] == [0, 5, 10, 15, 20]
    assert shares == [(number + 1) / 20 for number in range(20)]
    assert found["seconds"]["training"] > 0
    again = runs.run_buffered(task, Plain(), buffer=10, tau_max=3, staleness=CONSTANT, c_g=64, **usual)
    assert accuracy(again) > 0.8
    assert again["diverged"] is None
