"""Simulated clocks: the times at which users train and send, and at which the server has a new model.

========================  ==========================================================
papers                    here
========================  ==========================================================
K users of a round        `chosen[t]`
K, the buffer's size      `Buffered.buffer`
M users at once           `Buffered.at_once`
beta, the delay scale     `Work.beta`
tau                       `ServerStep.staleness`
========================  ==========================================================

For each step of the server, a clock gives its time, its updates, and the model with which each update began; training
can be replayed exactly from these. Delays are drawn by *place*. In a round the first chosen user has the first place,
and so on. In buffered training a user that begins takes the place of the user that has just sent. The n-th delay of a
place is the same in all schemes; for different beta it differs only by that factor (EXP-08).

Events at the same instant happen in this order: updates arrive and buffers are finished, then users begin.

Source: spec/experiments.md, section 5 (EXP-17 to EXP-19); BASA, section 4.2 and appendix B.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import simpy
from simpy.events import EventPriority

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.learning.streams import CHOICE, DELAY, stream

_Process: TypeAlias = Generator[Any, Any, None]
MOST_UPDATES = 2**22
"""The most updates of buffered training: minutes, and up to 1.6 GiB; each user at work adds 0.4 ms and 4 KiB."""
_LAST_OF_INSTANT = EventPriority(2)


@dataclass(frozen=True)
class Work(validate.Plain):
    """The training time of a user: a fixed time plus an exponentially distributed delay with mean `beta`, in seconds.

    Raises
    ------
    OutOfRange
        A number is negative or not finite.
    """

    training: float
    beta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_seconds(training=self.training, beta=self.beta)


@dataclass(frozen=True)
class Costs(validate.Plain):
    """The time that a protocol takes, in seconds.

    Parameters
    ----------
    sending : float
        From the end of a user's training to the arrival of its update; all users send in parallel.
    after : float
        From the arrival of the last update until the server has the new model.
    visits : tuple of float
        The duration of a visit, for each position of the buffer, if the server takes one user at a time. In this case
        `sending` is 0.

    Raises
    ------
    OutOfRange
        A number is negative or not finite.
    ParameterError
        There are visits, and `sending` is not 0; or the visits are no sequence.
    """

    sending: float = 0.0
    after: float = 0.0
    visits: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_seconds(sending=self.sending, after=self.after)
        for visit in validate.sequence("visits", self.visits, "numbers of seconds"):
            _check_seconds(visits=visit)
        if self.visits and self.sending:
            raise ParameterError("sending", self.sending, "0 where there are visits, which end with the update")


@dataclass(frozen=True)
class Update:
    """One update: its user, the model it began with (as a number of server steps), and its times, in seconds."""

    user: int
    model: int
    began: float
    trained: float
    sent: float


@dataclass(frozen=True)
class ServerStep:
    """One new model of the server: its time, and the updates that it contains, in order of arrival."""

    time: float
    updates: tuple[Update, ...]

    @property
    def users(self) -> tuple[int, ...]:
        """The users of the updates."""
        return tuple(update.user for update in self.updates)

    def staleness(self, number: int) -> tuple[int, ...]:
        """Return how many steps the server took while each user was at work; `number` is this step's number, from 0.

        Raises `ParameterError` for a number that is no integer, or below that of the model of an update.
        """
        number = validate.integer("number", number, max((update.model for update in self.updates), default=0))
        return tuple(number - update.model for update in self.updates)


@dataclass(frozen=True)
class Buffered(validate.Plain):
    """The sizes of buffered training: `users` in all, `at_once` of them at work or waiting, and `buffer` in one sum.

    Raises
    ------
    ParameterError
        A number is less than 1, or there are fewer users than `at_once` and `buffer` together, so no user could begin.
    """

    users: int
    at_once: int
    buffer: int

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("at_once", self.at_once, 1, validate.MAX_COUNT)
        validate.integer("buffer", self.buffer, 1, validate.MAX_COUNT)
        validate.integer("users", self.users, self.at_once + self.buffer - 1, 2 * validate.MAX_COUNT)


def synchronous(chosen: Sequence[Sequence[int]], work: Work, costs: Costs, seed: int) -> tuple[ServerStep, ...]:
    """Return the steps of rounds, each of which lasts until its slowest user has sent (EXP-17).

    Each user of a round takes 0.2 ms, and each place 4 KiB.

    Parameters
    ----------
    chosen : sequence of sequences of int
        The users of each round.
    work : Work
    costs : Costs
        The costs of a protocol without visits.
    seed : int

    Raises
    ------
    ParameterError
        A round has no user, the rounds or their users are no sequences, the costs have visits, an argument is of
        another class, or the seed is no seed of a stream.
    DuplicateUser, UnknownUser
        A round has a user twice, or a negative one.
    OutOfRange
        A time is not finite, as the work and the costs are too large.
    """
    given = validate.sequence("chosen", chosen, "sequences of users")
    users = [validate.users(f"chosen[{at}]", one, 2 * validate.MAX_COUNT) for at, one in enumerate(given)]
    if not all(users):
        raise ParameterError("chosen", users, "one user or more in each round")
    validate.instance("work", work, Work)
    if validate.instance("costs", costs, Costs).visits:
        raise ParameterError("costs", "visits", "without visits, which only buffered training has")
    stream(seed, DELAY, 0)  # refuses a wrong seed before the clock starts
    rounds = _Rounds(users, work, costs, _Delays(seed, work.beta))
    rounds.clock.process(rounds.run())
    rounds.clock.run()
    return _timed(rounds.steps, work)


def buffered(plan: Buffered, steps: int, work: Work, costs: Costs, seed: int) -> tuple[ServerStep, ...]:
    """Return the first steps of a server that receives the updates of users who come and go (EXP-18, EXP-19).

    A user that begins is drawn uniformly from the users that are not at work, not waiting, and not in the buffer that
    is being filled. So no user is in a buffer twice, as the protocols demand. While the server is busy, users go on
    training, and their updates count for `MOST_UPDATES` too.

    Parameters
    ----------
    plan : Buffered
    steps : int
        The number of server steps, at least 1; all together have at most 2^22 updates. Each update takes some 50
        microseconds and up to 400 bytes.
    work : Work
    costs : Costs
        Costs with visits are for a protocol that takes users one at a time, in order of arrival.
    seed : int

    Raises
    ------
    ParameterError
        There are visits, but not exactly one per position of the buffer; an argument is of another class; or the seed
        is no seed of a stream; or more than 2^22 users are at work or in the buffer, or more updates would come.
    OutOfRange
        A time is not finite, as the work and the costs are too large; or so many updates come before the last step that
        the server is too slow for them.
    """
    validate.instance("plan", plan, Buffered)
    validate.integer("plan.at_once", plan.at_once, 1, MOST_UPDATES)
    validate.integer("plan.buffer", plan.buffer, 1, MOST_UPDATES)
    validate.integer("steps", steps, 1, MOST_UPDATES // plan.buffer)
    validate.instance("work", work, Work)
    if len(validate.instance("costs", costs, Costs).visits) not in (0, plan.buffer):
        raise ParameterError("costs.visits", list(costs.visits), f"none, or {plan.buffer}: one for each position")
    queue = _Queue(plan, steps, work, costs, seed)
    for place in range(plan.at_once):
        queue.clock.process(queue.place(place))
    queue.clock.process(queue.serve())
    queue.clock.run(until=queue.done)
    if len(queue.steps) < steps:
        raise OutOfRange("costs", costs, f"such that all steps come before {MOST_UPDATES + 1} updates do")
    return _timed(queue.steps, work)


class _Delays:
    """Draws the delays of each place from a separate stream."""

    def __init__(self, seed: int, beta: float) -> None:
        self.seed, self.beta = seed, beta
        self._streams: dict[int, np.random.Generator] = {}

    def draw(self, place: int) -> float:
        """Return the next delay of a place, in seconds."""
        if place not in self._streams:
            self._streams[place] = stream(self.seed, DELAY, place)
        return self.beta * float(self._streams[place].standard_exponential())


@dataclass(eq=False)
class _Rounds:
    """Rounds of users that train and send in parallel."""

    chosen: Sequence[Sequence[int]]
    work: Work
    costs: Costs
    delays: _Delays
    steps: list[ServerStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = simpy.Environment()

    def run(self) -> _Process:
        """Run the rounds."""
        for users in self.chosen:
            came: list[Update] = []
            yield self.clock.all_of([self.clock.process(self._user(*one, came)) for one in enumerate(users)])
            yield self.clock.timeout(self.costs.after)
            self.steps.append(ServerStep(self.clock.now, tuple(came)))

    def _user(self, place: int, user: int, came: list[Update]) -> _Process:
        began = self.clock.now
        yield self.clock.timeout(self.work.training + self.delays.draw(place))
        trained = self.clock.now
        yield self.clock.timeout(self.costs.sending)
        came.append(Update(user, len(self.steps), began, trained, self.clock.now))


class _Queue:
    """Places at which users train, and a server that does one task at a time and handles full buffers first.

    `busy` are the users at work, waiting or in the buffer that is being filled, ascending: few where users are many.
    """

    def __init__(self, plan: Buffered, wanted: int, work: Work, costs: Costs, seed: int) -> None:
        self.plan, self.wanted, self.work, self.costs = plan, wanted, work, costs
        self.clock = simpy.Environment()
        self.full: deque[tuple[Update, ...]] = deque()
        self.waiting: deque[tuple[Callable[[float], Update], simpy.Event]] = deque()
        self.task = self.clock.event()
        self.done = self.clock.event()
        self.delays = _Delays(seed, work.beta)
        self.choices = [stream(seed, CHOICE, place) for place in range(plan.at_once)]
        self.busy: list[int] = []
        self.buffer: list[Update] = []
        self.steps: list[ServerStep] = []
        self.came = 0

    def place(self, place: int) -> _Process:
        """Let one user after another train and send."""
        while True:
            yield _Beginning(self.clock)
            user = self._begin(int(self.choices[place].integers(self.plan.users - len(self.busy))))
            model, began = len(self.steps), self.clock.now
            yield self.clock.timeout(self.work.training + self.delays.draw(place))
            trained = partial(Update, user, model, began, self.clock.now)
            yield from self._visit(trained) if self.costs.visits else self._send(trained)

    def _begin(self, at: int) -> int:
        """Return the user at this place among those that are free, and note that it is no longer."""
        user = at + bisect_right(range(len(self.busy)), at, key=lambda place: self.busy[place] - place)
        insort(self.busy, user)
        return user

    def _send(self, trained: Callable[[float], Update]) -> _Process:
        yield self.clock.timeout(self.costs.sending)
        self._put(trained(self.clock.now))

    def _visit(self, trained: Callable[[float], Update]) -> _Process:
        left = self.clock.event()
        self.waiting.append((trained, left))
        self._call()
        yield left

    def serve(self) -> _Process:
        """Finish full buffers and visit waiting users, one after the other."""
        while True:
            if self.full:
                yield self.clock.timeout(self.costs.after)
                self.steps.append(ServerStep(self.clock.now, self.full.popleft()))
                if len(self.steps) == self.wanted:
                    self._end()
            elif self.waiting:
                trained, left = self.waiting.popleft()
                yield self.clock.timeout(self.costs.visits[len(self.buffer)])
                self._put(trained(self.clock.now))
                left.succeed()
            else:
                self.task = self.clock.event()
                yield self.task

    def _call(self) -> None:
        """Let the server go on if it has no task."""
        if not self.task.triggered:
            self.task.succeed()

    def _put(self, update: Update) -> None:
        """Add an update to the buffer; the server handles a full buffer as soon as it is free."""
        self.came += 1
        if self.came > MOST_UPDATES:
            self._end()
        self.buffer.append(update)
        if len(self.buffer) == self.plan.buffer:
            for one in self.buffer:
                del self.busy[bisect_left(self.busy, one.user)]
            self.full.append(tuple(self.buffer))
            self.buffer = []
            self._call()

    def _end(self) -> None:
        """Let the clock stop."""
        if not self.done.triggered:
            self.done.succeed()


class _Beginning(simpy.Event):
    """The event of a user that begins: now, but after all other events of this instant."""

    def __init__(self, clock: simpy.Environment) -> None:
        super().__init__(clock)
        self._ok, self._value = True, None
        clock.schedule(self, priority=_LAST_OF_INSTANT)


def _timed(steps: Sequence[ServerStep], work: Work) -> tuple[ServerStep, ...]:
    """Return the steps when the last one, and so each one, has a finite time."""
    if steps and not validate.finite(steps[-1].time):
        raise OutOfRange("work", work, "such that with the costs all times are finite")
    return tuple(steps)


def _check_seconds(**given: float) -> None:
    for name, value in given.items():
        if validate.number(value) is None:
            raise ParameterError(name, value, "a number of seconds: an integer, or a float of 64 bits at most")
        if not validate.finite(value) or value < 0:
            raise OutOfRange(name, value, "finite and at least 0")


guard(__name__)
