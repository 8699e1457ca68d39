"""Planted bugs of the simulated clocks and of measured costs, which their tests find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import count
from typing import Any

from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_CLOCK = "secagg_spec.learning.clock"
_TESTS = "tests/learning/test_clock.py::"
_COSTS = "secagg_spec.experiments.costs"
_OF_ROLES = "tests/experiments/test_costs.py::test_costs_are_the_steps_of_each_role"
_BY_HAND = _TESTS + "test_users_side_by_side_come_and_go_as_by_hand"
_IN_ORDER = _TESTS + "test_visits_are_one_at_a_time_in_the_order_of_arrival"


def _clock() -> Any:
    return import_module(_CLOCK)


def _rounds() -> object:
    """Return the times of three rounds of three users."""
    clock = _clock()
    steps = clock.synchronous([range(3)] * 3, clock.Work(1.0, 2.0), clock.Costs(0.25, 0.5), seed=1)
    return [step.time for step in steps]


def _buffers(beta: float = 2.0, **costs: Any) -> Callable[[], object]:
    """Return a function that plays four buffers of two updates, with five users at once."""

    def witness() -> object:
        clock = _clock()
        plan = clock.Buffered(9, 5, 2)
        steps = clock.buffered(plan, 4, clock.Work(1.0, beta), clock.Costs(**costs), seed=1)
        return [(step.time, *((u.user, u.model, u.began, u.sent) for u in step.updates)) for step in steps]

    return witness


_BESIDE, _IN_LINE = _buffers(sending=0.5, after=0.75), _buffers(after=0.75, visits=(1.5, 0.5))


@mutant(
    "a-round-ends-with-its-first-user",
    "EXP-17",
    "the others of the round are left out, and rounds seem to be short",
    f"{_CLOCK}:_Rounds.run",
    _rounds,
    _TESTS + "test_a_round_lasts_as_long_as_its_slowest_user_and_the_protocol",
    kind="sum",
    source="wrong term",
)
def _first_user(right: Function) -> Function:
    def run(self: Any) -> Any:
        self.clock.all_of = self.clock.any_of
        yield from right(self)

    return run


@mutant(
    "rounds-without-the-protocol",
    "EXP-17",
    "the time of the protocol is left out of each round",
    f"{_CLOCK}:_Rounds.run",
    _rounds,
    _TESTS + "test_a_round_lasts_as_long_as_its_slowest_user_and_the_protocol",
    kind="sum",
    source="clause in part",
)
def _no_protocol(right: Function) -> Function:
    def run(self: Any) -> Any:
        self.costs = replace(self.costs, after=0.0)
        yield from right(self)

    return run


@mutant(
    "beta-is-the-rate-of-the-delays",
    "EXP-17",
    "delays have the mean 1 / beta: the worse the stragglers are said to be, the faster they are",
    f"{_CLOCK}:_Delays.draw",
    _rounds,
    _TESTS + "test_the_mean_of_a_round_is_the_fixed_time_and_beta_times_the_harmonic_number",
    also=("EXP-18",),
    kind="sum",
    source="other rule: the distribution by its rate",
)
def _rate(right: Function) -> Function:
    def draw(self: Any, place: int) -> float:
        delay: float = right(self, place)
        return delay / self.beta**2 if self.beta else 0.0

    return draw


@mutant(
    "delays-from-one-stream",
    "EXP-08",
    "who has which delay depends on the order in which users begin, so on the scheme",
    f"{_CLOCK}:_Delays.draw",
    _BESIDE,
    _BY_HAND,
    kind="sum",
    source="other rule: one stream for all users",
)
def _one_stream(right: Function) -> Function:
    def draw(self: Any, place: int) -> float:
        delay: float = right(self, 0)
        return delay

    return draw


@mutant(
    "users-are-replaced-once-the-protocol-is-done",
    "EXP-18",
    "fewer users are at work than are said to be",
    f"{_CLOCK}:_Queue._send",
    _BESIDE,
    _BY_HAND,
    kind="sum",
    source="other rule: who has sent waits for the protocol",
)
def _empty(right: Function) -> Function:
    def send(self: Any, trained: Any) -> Any:
        yield from right(self, trained)
        yield self.clock.timeout(self.costs.after)

    return send


@mutant(
    "a-buffer-is-through-when-it-is-full",
    "EXP-18",
    "the time that the protocol takes after the last update is left out",
    f"{_CLOCK}:_Queue._finish",
    _BESIDE,
    _BY_HAND,
    kind="sum",
    source="clause in part",
)
def _full(right: Function) -> Function:
    def finish(self: Any, full: Any, turn: Any) -> Any:
        self.costs = replace(self.costs, after=0.0)
        yield from right(self, full, turn)

    return finish


@mutant(
    "users-begin-before-a-buffer-of-the-same-instant",
    "EXP-18",
    "a user begins with a model that is not the newest one",
    f"{_CLOCK}:_LAST_OF_INSTANT",
    _buffers(beta=0.0),
    _TESTS + "test_without_delays_all_send_at_once",
    kind="sum",
    source="order",
)
def _before(right: Any) -> Any:
    return type(right)(0)


@mutant(
    "visits-side-by-side",
    "EXP-19",
    "the users of BASA seem not to wait for each other",
    f"{_CLOCK}:_Queue._visit",
    _IN_LINE,
    _IN_ORDER,
    kind="sum",
    source="clause left out",
)
def _beside(right: Function) -> Function:
    def visit(self: Any, trained: Any) -> Any:
        yield self.clock.timeout(self.costs.visits[len(self.buffer)])
        self._put(trained(self.clock.now))

    return visit


@mutant(
    "the-last-to-come-is-served-first",
    "EXP-19",
    "those who came early wait longest, and their updates are staler than they are",
    f"{_CLOCK}:_Queue._visit",
    _buffers(beta=0.5, visits=(1.5, 0.5)),
    _IN_ORDER,
    kind="sum",
    source="order",
)
def _last(right: Function) -> Function:
    numbers = count(1)

    def visit(self: Any, trained: Any) -> Any:
        with self.server.request(priority=2**60 - next(numbers)) as turn:
            yield turn
            yield self.clock.timeout(self.costs.visits[len(self.buffer)])
            self._put(trained(self.clock.now))

    return visit


@mutant(
    "the-queue-goes-before-a-full-buffer",
    "EXP-19",
    "visits of the next buffer are made while nobody has opened it",
    f"{_CLOCK}:_FIRST",
    _buffers(beta=0.0, after=0.75, visits=(1.5, 0.5)),
    _IN_ORDER,
    also=("EXP-18",),
    kind="sum",
    source="order",
)
def _queue(right: Any) -> Any:
    return right + 1


@mutant(
    "users-side-by-side-wait-in-line",
    "EXP-19",
    "protocols whose users need not wait are as slow as one in which they do",
    f"{_CLOCK}:_Queue._send",
    _BESIDE,
    _BY_HAND,
    kind="sum",
    source="clause too strict",
)
def _in_line(right: Function) -> Function:
    def send(self: Any, trained: Any) -> Any:
        with self.server.request(priority=1) as turn:
            yield turn
            yield from right(self, trained)

    return send


class _Ticks:
    """A time at which every step takes a second."""

    def __init__(self) -> None:
        self._numbers = count()

    def process_time(self) -> float:
        """Return the number of the call."""
        return float(next(self._numbers))


def _counted(protocol: str) -> Callable[[], object]:
    """Return a function that counts the steps of a protocol."""

    def witness() -> object:
        costs: Any = import_module(_COSTS)
        right, costs.time = costs.time, _Ticks()
        try:
            return costs.PROTOCOLS[protocol](costs.Setting(protocol, 7, 5, 3))
        finally:
            costs.time = right

    return witness


@mutant(
    "answers-of-users-cost-nothing",
    "EXP-20",
    "what users do after the last update is in is left out, so protocols with dropouts in mind seem to be faster",
    f"{_COSTS}:_each",
    _counted("basecagg"),
    _OF_ROLES,
    kind="sum",
    source="wrong term",
)
def _answers(right: Function) -> Function:
    def each(spent: Any, *phases: str) -> float:
        found: float = right(spent, *phases)
        return 0.0 if phases[0] in {"recover", "unmasking"} else found

    return each


@mutant(
    "the-authority-costs-nothing",
    "EXP-20",
    "visits to BASA seem to be shorter than they are, and their keys to be free",
    f"{_COSTS}:Timed.take_on",
    _counted("basa"),
    _OF_ROLES,
    kind="sum",
    source="wrong term",
)
def _authority(right: Function) -> Function:
    def take_on(self: Any, *given: Any) -> Any:
        event = right(self, *given)
        if event.step.role.value == "authority":
            self.spent.pop()
        return event

    return take_on


@mutant(
    "the-last-of-several-runs-counts",
    "EXP-20",
    "one slow moment of the machine is taken for the cost of a protocol",
    f"{_COSTS}:_least",
    lambda: import_module(_COSTS)._least([2.0, 3.0]),
    "tests/experiments/test_costs.py::test_the_least_of_several_runs_counts",
    kind="sum",
    source="other rule: the last one",
)
def _last_run(right: Function) -> Function:
    return lambda values: values[-1]


_KEPT = "secagg_spec.crypto.kept"


def _found(function: str) -> Callable[[], object]:
    """Return a function that counts what the crypto keeps after one of those that make it forget."""

    def witness() -> object:
        keys, kept = map(import_module, ("secagg_spec.crypto.keys", _KEPT))
        secret = keys.agree(bytes(31) + b"\x01", keys.public_key(bytes(31) + b"\x02"))
        keys.derive(secret, bytes(16), b"")
        getattr(kept, function)()
        return keys._derived.cache_info().currsize

    return witness


@mutant(
    "costs-of-runs-that-find-the-keys-of-an-earlier-one",
    "EXP-32",
    "agreements on keys seem to be free, since the least of several runs counts and only the first computes them",
    f"{_KEPT}:forget",
    _found("forget"),
    "tests/experiments/test_costs.py::test_a_run_begins_with_parties_that_have_computed_nothing",
    kind="sum",
    source="wrong term",
)
def _earlier(right: Function) -> Function:
    return lambda: None


@mutant(
    "costs-of-parties-that-find-what-others-have-computed",
    "EXP-32",
    "of two users that derive one key the second has it for nothing, as it never would on its own machine",
    f"{_KEPT}:forget_shared",
    _found("forget_shared"),
    "tests/experiments/test_costs.py::test_a_step_finds_nothing_of_another_party",
    kind="sum",
    source="wrong term",
)
def _of_others(right: Function) -> Function:
    return lambda: None


# ------------------------------------------------------------------------------------------- results that rest on them

_TRAINING = "secagg_spec.experiments.basa_training"
_OF_RESULTS = "tests/experiments/test_basa_training.py::"


def _result() -> object:
    """Return whether the times of a result follow from the costs that it holds."""
    training, clock, costs = map(import_module, (_TRAINING, _CLOCK, _COSTS))
    context = import_module("secagg_spec.experiments.experiment").Context()
    tiny = training.EXPERIMENTS[0].presets["tiny"]
    cell = next(one for one in training.cells(tiny) if one["scheme"] == training.BASA)
    found = training.run(cell, context)
    plan = clock.Buffered(cell["users"], cell["at_once"], cell["buffer"])
    work = clock.Work(cell["training"], cell["betas"][0])
    steps = clock.buffered(plan, cell["steps"], work, costs.costs(found["costs"]), cell["seed"])
    return found["times"] == [[step.time for step in steps]]


@mutant(
    "results-hold-other-costs-than-their-times-rest-on",
    "EXP-20",
    "nobody can tell from a result what its times are made of",
    f"{_TRAINING}:run",
    _result,
    _OF_RESULTS + "test_the_times_of_a_result_follow_from_its_costs",
    kind="sum",
    source="wrong term",
)
def _other_costs(right: Function) -> Function:
    def run(cell: Any, context: Any) -> Any:
        found = right(cell, context)
        held = {**found["costs"], "after": 2 * found["costs"]["after"] + 1e-6}
        return {**found, "costs": held}

    return run


def _staleness() -> object:
    """Return what training is told of the third step of a clock."""
    clock, training = import_module(_CLOCK), import_module(_TRAINING)
    steps = clock.buffered(clock.Buffered(9, 5, 2), 3, clock.Work(1.0, 2.0), clock.Costs(), seed=1)
    return training._arrivals(steps)(2)


@mutant(
    "training-begins-with-the-newest-model-whatever-the-clock-says",
    "EXP-18",
    "updates are not stale, and asynchronous learning seems to be as good as synchronous learning",
    f"{_TRAINING}:_arrivals",
    _staleness,
    _OF_RESULTS + "test_training_follows_the_clock",
    also=("EXP-11",),
    kind="sum",
    source="wrong term",
)
def _never_stale(right: Function) -> Function:
    def arrivals(steps: Any) -> Any:
        def told(number: int) -> Any:
            users, taus = right(steps)(number)
            return users, [0] * len(taus)

        return told

    return arrivals


@mutant(
    "a-run-that-does-not-reach-the-target-is-there-at-once",
    "EXP-24",
    "the worst run of a scheme counts as its best one",
    f"{_TRAINING}:time_to",
    lambda: import_module(_TRAINING).time_to({"accuracy": [0.0] * 5, "times": [[1.0, 2.0, 3.0, 4.0]]}, 0.5, 0),
    _OF_RESULTS + "test_a_run_that_does_not_reach_the_target_counts_with_its_last_step",
    kind="sum",
    source="clause left out",
)
def _at_once(right: Function) -> Function:
    def time_to(found: Any, target: float, which: int) -> float:
        training = import_module(_TRAINING)
        if training.reached(found["accuracy"], target) is None:
            return float(found["times"][which][0])
        time: float = right(found, target, which)
        return time

    return time_to
