"""The clocks keep their order, and their means are those that theory gives."""

from __future__ import annotations

import math
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import DuplicateUser, OutOfRange, ParameterError, UnknownUser
from secagg_spec.learning import clock
from secagg_spec.learning.clock import Buffered, Costs, ServerStep, Update, Work, buffered, synchronous
from secagg_spec.learning.streams import CHOICE, DELAY, stream

SECONDS = st.integers(0, 12).map(lambda eighths: eighths / 8)
SEEDS = st.integers(0, 2**32 - 1)
SIDE_BY_SIDE = st.builds(Costs, sending=SECONDS, after=SECONDS)


@st.composite
def plans(draw: st.DrawFn) -> Buffered:
    at_once, buffer = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    return Buffered(at_once + buffer - 1 + draw(st.integers(0, 4)), at_once, buffer)


@st.composite
def serial(draw: st.DrawFn, plan: Buffered) -> Costs:
    times = st.integers(1, 12).map(lambda eighths: eighths / 8)
    visits = draw(st.lists(times, min_size=plan.buffer, max_size=plan.buffer))
    return Costs(after=draw(SECONDS), visits=tuple(visits))


def updates_of(steps: tuple[ServerStep, ...]) -> list[Update]:
    return [update for step in steps for update in step.updates]


# --------------------------------------------------------------------------------------------------------- rounds


@given(st.integers(1, 5), st.integers(1, 5), SECONDS, SECONDS, SIDE_BY_SIDE, SEEDS)
@pytest.mark.requirement("EXP-17", "EXP-08")
def test_a_round_lasts_as_long_as_its_slowest_user_and_the_protocol(
    K: int, rounds: int, training: float, beta: float, costs: Costs, seed: int
) -> None:
    chosen = [[7 * number + at for at in range(K)] for number in range(rounds)]
    steps = synchronous(chosen, Work(training, beta), costs, seed)
    delays = beta * np.array([stream(seed, DELAY, place).standard_exponential(rounds) for place in range(K)])
    lasts = training + delays.max(axis=0) + costs.sending + costs.after
    assert [step.time for step in steps] == pytest.approx(np.cumsum(lasts))
    assert [sorted(step.users) for step in steps] == chosen
    assert all(step.staleness(number) == (0,) * K for number, step in enumerate(steps))


@pytest.mark.slow
@pytest.mark.requirement("EXP-17")
@pytest.mark.parametrize("K", [1, 10, 32])
def test_the_mean_of_a_round_is_the_fixed_time_and_beta_times_the_harmonic_number(K: int) -> None:
    rounds, training, beta = 2000, 0.75, 3.0
    last = synchronous([range(K)] * rounds, Work(training, beta), Costs(0.25, 0.5), seed=K)[-1]
    mean = training + 0.25 + 0.5 + beta * sum(1 / k for k in range(1, K + 1))
    deviation = beta * math.sqrt(sum(1 / k**2 for k in range(1, K + 1)) / rounds)
    assert last.time / rounds == pytest.approx(mean, abs=4 * deviation)


@given(st.integers(1, 4), st.integers(1, 4), SECONDS, SIDE_BY_SIDE)
@pytest.mark.requirement("EXP-17")
def test_without_delays_all_rounds_last_equally_long(K: int, rounds: int, training: float, costs: Costs) -> None:
    steps = synchronous([range(K)] * rounds, Work(training, 0), costs, seed=1)
    lasts = training + costs.sending + costs.after
    assert [step.time for step in steps] == [lasts * (number + 1) for number in range(rounds)]


# -------------------------------------------------------------------------------------------- buffers, side by side


def played_by_hand(
    plan: Buffered, count: int, work: Work, costs: Costs, seed: int
) -> list[tuple[float, list[tuple[float, int]]]]:
    """Return time and updates (when sent, begun with which model) of each step, place by place and without a clock."""
    sent = []
    for place in range(plan.at_once):
        delays = work.beta * stream(seed, DELAY, place).standard_exponential(count * plan.buffer)
        ends = np.cumsum(work.training + delays + costs.sending)
        sent += list(zip(ends.tolist(), [0.0, *ends.tolist()], strict=False))
    sent.sort()
    through: list[float] = []
    for number in range(count):
        full = sent[(number + 1) * plan.buffer - 1][0]
        through.append(max([full, *through]) + costs.after)
    models = [sum(time <= began for time in through) for _, began in sent]
    entries = [(end, model) for (end, _), model in zip(sent, models, strict=True)]
    return [(time, entries[at * plan.buffer : (at + 1) * plan.buffer]) for at, time in enumerate(through)]


@given(plans(), st.integers(1, 6), SECONDS, st.sampled_from([0.5, 3.0]), SIDE_BY_SIDE, SEEDS)
@pytest.mark.requirement("EXP-18", "EXP-19", "EXP-08")
def test_users_side_by_side_come_and_go_as_by_hand(
    plan: Buffered, count: int, training: float, beta: float, costs: Costs, seed: int
) -> None:
    work = Work(training, beta)
    steps = buffered(plan, count, work, costs, seed)
    expected = played_by_hand(plan, count, work, costs, seed)
    assert [step.time for step in steps] == pytest.approx([time for time, _ in expected])
    for step, (_, entries) in zip(steps, expected, strict=True):
        assert [update.sent for update in step.updates] == pytest.approx([sent for sent, _ in entries])
        assert [update.model for update in step.updates] == [model for _, model in entries]


@pytest.mark.slow
@pytest.mark.requirement("EXP-18")
def test_M_users_send_M_updates_in_the_time_that_one_takes() -> None:
    work, costs, plan, count = Work(0.75, 3.0), Costs(0.25, 1.0), Buffered(1000, 32, 10), 1500
    last = buffered(plan, count, work, costs, seed=5)[-1]
    each = work.training + work.beta + costs.sending
    rate = plan.at_once / each
    deviation = work.beta / each / math.sqrt(count * plan.buffer)
    full = last.updates[-1].sent
    assert count * plan.buffer / full == pytest.approx(rate, rel=4 * deviation + each / full)
    assert last.time >= full + costs.after


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 8), SIDE_BY_SIDE)
@pytest.mark.requirement("EXP-18")
def test_without_delays_all_send_at_once(waves: int, buffers: int, K: int, costs: Costs) -> None:
    plan = Buffered(K * buffers + K, K * buffers, K)
    steps = buffered(plan, waves * buffers, Work(10.0, 0), costs, seed=2)
    waited = [wave * (10 + costs.sending) for wave in range(1, waves + 1)]
    full = [time for time in waited for _ in range(buffers)]
    assert [step.updates[-1].sent for step in steps] == full
    if not costs.after:
        assert [step.time for step in steps] == full
        assert [step.staleness(at) for at, step in enumerate(steps)] == [
            (number,) * K for _ in range(waves) for number in range(buffers)
        ]


# ------------------------------------------------------------------------------------------------------ who trains


@given(plans(), st.data(), SECONDS, SECONDS, SEEDS)
@pytest.mark.requirement("EXP-18")
def test_nobody_trains_twice_at_a_time_and_all_begin_with_the_newest_model(
    plan: Buffered, data: st.DataObject, training: float, beta: float, seed: int
) -> None:
    work = Work(training + 0.125, beta)
    costs = data.draw(st.one_of(SIDE_BY_SIDE, serial(plan)))
    steps = buffered(plan, 8, work, costs, seed)
    sent = updates_of(steps)
    for user in range(plan.users):
        own = sorted((update.began, update.sent) for update in sent if update.user == user)
        assert all(ended <= begun for (_, ended), (begun, _) in pairwise(own))
    assert all(len(set(step.users)) == plan.buffer for step in steps)
    for update in sent:
        assert update.model == sum(step.time <= update.began for step in steps)
        assert update.began == 0 or update.began in {other.sent for other in sent}
    for time in {update.began for update in sent}:
        assert sum(update.began <= time < update.sent for update in sent) <= plan.at_once


def test_who_begins_is_any_of_those_who_are_free() -> None:
    sent = updates_of(buffered(Buffered(12, 4, 3), 1000, Work(0.5, 2.0), Costs(0.1, 0.2), seed=3))
    counts = np.bincount([update.user for update in sent], minlength=12)
    assert np.sum((counts - 250) ** 2 / 250) < 31.3


def test_users_that_do_not_work_take_no_memory() -> None:
    plan = Buffered(2**33 - 2, 2, 2)
    assert len({update.user for update in updates_of(buffered(plan, 5, Work(1, 1), Costs(), 0))}) == 10


def test_who_begins_is_drawn_from_the_free_users_in_order() -> None:
    plan, free = Buffered(9, 4, 3), list(range(9))
    steps = buffered(plan, 1, Work(1, 0), Costs(), 5)
    drawn = [free.pop(int(stream(5, CHOICE, place).integers(len(free)))) for place in range(4)]
    assert list(steps[0].users) == drawn[:3]


# ---------------------------------------------------------------------------------------------------------- visits


@given(plans(), st.data(), SECONDS, st.sampled_from([0.0, 0.5, 3.0]), SEEDS)
@pytest.mark.requirement("EXP-19")
def test_visits_are_one_at_a_time_in_the_order_of_arrival(
    plan: Buffered, data: st.DataObject, training: float, beta: float, seed: int
) -> None:
    costs = data.draw(serial(plan))
    steps = buffered(plan, 6, Work(training, beta), costs, seed)
    free, arrived = 0.0, 0.0
    for step in steps:
        assert len(step.updates) == plan.buffer
        for update, visit in zip(step.updates, costs.visits, strict=True):
            assert update.trained >= arrived
            arrived = update.trained
            free = max(free, update.trained) + visit
            assert update.sent == pytest.approx(free)
        free += costs.after
        assert step.time == pytest.approx(free)


@pytest.mark.slow
@pytest.mark.requirement("EXP-19")
def test_the_server_is_busy_as_theory_says_for_two_users() -> None:
    """With two users, training of beta in the mean and visits of D, it is busy the share D / (D + p beta / 2).

    When a user leaves, the other one waits unless it is still training after D, which has the probability
    p = exp(-D / beta); then both train, and the first is done after beta / 2 in the mean.
    """
    beta, D, count = 2.0, 1.5, 20_000
    last = buffered(Buffered(2, 2, 1), count, Work(0, beta), Costs(visits=(D,)), seed=11)[-1]
    expected = D / (D + math.exp(-D / beta) * beta / 2)
    assert count * D / last.time == pytest.approx(expected, rel=0.012)


@given(plans(), st.data(), SEEDS)
@pytest.mark.requirement("EXP-19")
def test_where_all_come_at_once_the_server_is_always_busy(plan: Buffered, data: st.DataObject, seed: int) -> None:
    costs = data.draw(serial(plan))
    steps = buffered(plan, 5, Work(0, 0), costs, seed)
    one = sum(costs.visits) + costs.after
    assert [step.time for step in steps] == pytest.approx([one * (at + 1) for at in range(5)])


@pytest.mark.requirement("EXP-08")
def test_delays_are_the_same_in_all_schemes_and_grow_with_beta() -> None:
    plan = Buffered(8, 4, 2)

    def delays(beta: float, costs: Costs) -> dict[int, float]:
        steps = buffered(plan, 4, Work(1.0, beta), costs, seed=4)
        return {u.user: u.trained - 1 for u in updates_of(steps) if u.began == 0}

    free = delays(1.0, Costs())
    for beta, costs in ((1.0, Costs(0.5, 0.5)), (1.0, Costs(visits=(0.5, 0.25))), (6.0, Costs(0.125))):
        found = delays(beta, costs)
        common = set(free) & set(found)
        assert common
        assert all(found[user] == pytest.approx(beta * free[user]) for user in common)


# -------------------------------------------------------------------------------------------------------- misuse


def test_wrong_numbers_are_refused() -> None:
    for wrong in (-1.0, math.inf, math.nan, 10**400):
        with pytest.raises(OutOfRange, match="beta"):
            Work(1.0, wrong)
        with pytest.raises(OutOfRange, match="visits"):
            Costs(visits=(wrong,))
    with pytest.raises(ParameterError, match="seconds"):
        Work("1", 0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="sending"):
        Costs(1.0, visits=(1.0,))


def test_no_time_is_infinite() -> None:
    for costs in (Costs(1e308, 1e308), Costs(after=1.7e308)):
        with pytest.raises(OutOfRange, match=r"^work = Work\(training=1e\+308, beta=0\): must be such"):
            synchronous([[0]], Work(1e308, 0), costs, 0)
        with pytest.raises(OutOfRange, match=r"^work = "):
            buffered(Buffered(1, 1, 1), 1, Work(1e308, 0), costs, 0)


@pytest.mark.parametrize(
    ("work", "costs"), [(Work(1, 1), Costs(after=1e308)), (Work(0, 0), Costs(after=1)), (Work(1, 0), Costs(after=1e6))]
)
def test_a_server_that_is_too_slow_for_its_users_is_refused(
    work: Work, costs: Costs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "MOST_UPDATES", 1000)
    with pytest.raises(OutOfRange, match=r"^costs = .*: must be such that all steps come before 1001 updates do$"):
        buffered(Buffered(9, 3, 2), 1, work, costs, 0)


def test_a_server_that_is_too_slow_is_refused_in_time_proportional_to_its_updates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "MOST_UPDATES", 64_000)
    begun = process_time()
    with pytest.raises(OutOfRange, match=r"^costs = "):
        buffered(Buffered(6, 3, 3), 9, Work(0, 0), Costs(after=1), 1)
    assert process_time() - begun < 12


@pytest.mark.parametrize(
    ("plan", "steps", "said"),
    [
        (Buffered(9, 3, 2), 2**21 + 1, r"steps = 2097153: must be an integer in \[1, 2097152\]"),
        (Buffered(2**33 - 3, 1, 2**32 - 1), 1, r"plan\.buffer = 4294967295: must be an integer in \[1, 4194304\]"),
        (Buffered(2**32, 2**32 - 1, 1), 1, r"plan\.at_once = 4294967295: must be an integer in \[1, 4194304\]"),
    ],
)
def test_more_updates_than_there_is_room_for_are_refused(plan: Buffered, steps: int, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        buffered(plan, steps, Work(1, 1), Costs(), 0)


@pytest.mark.parametrize("number", [1, -1, 2.0, True, "2", None])
def test_a_step_is_not_before_the_models_of_its_updates(number: Any) -> None:
    step = ServerStep(1.0, (Update(0, 2, 0.0, 0.5, 1.0), Update(1, 0, 0.0, 0.5, 1.0)))
    assert step.staleness(3) == (1, 3)
    with pytest.raises(ParameterError, match=r"^number = .*: must be an integer >= 2$"):
        step.staleness(number)


def test_plans_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="users"):
        Buffered(4, 4, 2)
    with pytest.raises(ParameterError, match="users"):  # the sum of the others wraps as an integer of numpy (ERR-02)
        Buffered(np.uint8(200), np.uint8(200), np.uint8(100))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^costs\.visits = "):
        buffered(Buffered(5, 4, 2), 1, Work(1, 1), Costs(visits=(1.0,)), 0)
    with pytest.raises(ParameterError, match="costs"):
        synchronous([[0]], Work(1, 1), Costs(visits=(1.0,)), 0)
    with pytest.raises(ParameterError, match="chosen"):
        synchronous([[0], []], Work(1, 1), Costs(), 0)


@pytest.mark.requirement("ERR-01")
@pytest.mark.parametrize("seed", [-1, 2**32, "1"])
def test_a_wrong_seed_is_named(seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed = "):
        synchronous([[0]], Work(1, 1), Costs(), seed)
    with pytest.raises(ParameterError, match="seed = "):
        buffered(Buffered(1, 1, 1), 1, Work(1, 1), Costs(), seed)


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ((one for one in [[0, 1], [2]]), ParameterError),
        ([(user for user in range(3))], ParameterError),
        ([[0, "a"]], ParameterError),
        ([[3, 3]], DuplicateUser),
        ([[0], [-3, 1]], UnknownUser),
    ],
)
def test_rounds_that_are_none_are_refused(chosen: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="chosen"):
        synchronous(chosen, Work(1, 1), Costs(), 0)


@pytest.mark.parametrize("visits", [5, None, {1.0}, "", np.array([1.0, 2.0])])
def test_visits_that_are_no_sequence_are_refused(visits: Any) -> None:
    with pytest.raises(ParameterError, match=r"^visits = .*a sequence of numbers of seconds"):
        Costs(visits=visits)


@pytest.mark.parametrize("name", ["work", "costs", "plan"])
def test_arguments_of_another_class_are_named(name: str) -> None:
    given: dict[str, Any] = {"work": Work(1, 1), "costs": Costs(), "seed": 0}
    with pytest.raises(ParameterError, match=f"^{name} = 'NoneType': must be of the class"):
        buffered(**{"plan": Buffered(5, 2, 2), "steps": 1, **given, name: None})
    if name != "plan":
        with pytest.raises(ParameterError, match=f"^{name} = 'NoneType': must be of the class"):
            synchronous(**{"chosen": [[0]], **given, name: None})


@pytest.mark.parametrize("number", [-1, 1, 2.0, None])
def test_the_staleness_in_a_step_before_the_models_is_refused(number: Any) -> None:
    step = ServerStep(1.0, (Update(0, 2, 0.0, 0.5, 1.0), Update(1, 0, 0.0, 0.5, 1.0)))
    with pytest.raises(ParameterError, match=rf"^number = {number}: must be an integer >= 2$"):
        step.staleness(number)
    assert step.staleness(2) == (0, 2)
