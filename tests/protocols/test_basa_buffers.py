"""Several buffers of BASA side by side, who sends users to them, and how long users wait."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError, ProtocolError, UnknownUser, WrongPhase
from secagg_spec.events import Event, Schedule, ordered
from secagg_spec.protocols.basa.buffers import Dispatcher, sessions
from secagg_spec.protocols.basa.cores import PRESETS
from secagg_spec.protocols.basa.messages import PositionRequest
from secagg_spec.protocols.basa.runs import Run
from secagg_spec.protocols.steps import SERVER
from secagg_spec.simulate.visits import Visit, visits

BASE = bytes(range(16))
TINY = PRESETS["tiny"]


def dispatcher(count: int) -> Dispatcher:
    """A dispatcher of some buffers."""
    return Dispatcher(sessions(BASE, count))


# ------------------------------------------------------------------------------------------------------- sessions


@pytest.mark.requirement("BAA-47")
@example(BASE, bytes(16), 2)
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16), st.integers(1, 40))
def test_sessions_side_by_side_differ(base: bytes, other: bytes, count: int) -> None:
    made = sessions(base, count)
    assert len(made) == len(set(made)) == count
    assert all(len(session) == 16 for session in made)
    assert made == sessions(base, count + 3)[:count]
    assert base == other or set(made).isdisjoint(sessions(other, count))
    assert base not in made


@pytest.mark.requirement("BAA-47")
@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_dispatcher_refuses_buffers_of_one_session(count: int) -> None:
    made = sessions(BASE, count)
    for at in range(count):
        with pytest.raises(ParameterError, match="all different"):
            Dispatcher((*made, made[at]))
    assert Dispatcher(made).sessions == made


@pytest.mark.requirement("BAA-47")
def test_what_is_no_session_id_is_refused() -> None:
    with pytest.raises(ParameterError, match="one at least"):
        Dispatcher(())
    for bad in (b"", bytes(15), bytes(17)):
        with pytest.raises(LengthMismatch, match=r"^len\(sessions\) = [0-9]+: must be 16 bytes$"):
            Dispatcher((BASE, bad))
        with pytest.raises(LengthMismatch, match="16 bytes"):
            sessions(bad, 2)
    for count in (0, -1, 2**16 + 1, 10**30):
        with pytest.raises(ParameterError, match=r"\[1, 65536\]"):
            sessions(BASE, count)


@pytest.mark.requirement("BAA-47")
def test_nothing_of_one_buffer_enters_another() -> None:
    first, second = (
        Run(TINY, SeededSource(b"seed", "buffers"), session=session, round=0) for session in sessions(BASE, 2)
    )
    zeros = TINY.ring.zeros(TINY.d)
    for user in range(TINY.K):
        first.upload(user, zeros, 0, 0.0)
    assert len(first.server.entries) == TINY.K
    assert not second.server.entries
    for event in first.transcript:
        assert {message.session for message in event.sent} <= {first.server.session.id}
    request = PositionRequest(first.server.session.id, 0, 0, SERVER)
    step = next(step for step in second.network.table if step.phase == "offer")
    with pytest.raises(ProtocolError):
        second.network.take_on((request,), step, SERVER, {})
    second.network.take_on((replace(request, session=second.server.session.id),), step, SERVER, {})


# ---------------------------------------------------------------------------------------------------- dispatchers


class Dispatching(RuleBasedStateMachine):
    """A dispatcher beside a table of who is where."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 3
        self.dispatcher = dispatcher(self.count)
        self.at: dict[int, int] = {}

    @rule(user=st.integers(0, 6))
    def send(self, user: int) -> None:
        """Send a user, who may be at a buffer."""
        if user in self.at:
            with pytest.raises(WrongPhase, match=f"user {user} is at buffer {self.at[user]} already"):
                self.dispatcher.send(user)
            return
        load = [list(self.at.values()).count(buffer) for buffer in range(self.count)]
        self.at[user] = self.dispatcher.send(user)
        assert self.at[user] == load.index(min(load))

    @rule(user=st.integers(0, 6))
    def leave(self, user: int) -> None:
        """Let a user go, who may be nowhere."""
        if user not in self.at:
            with pytest.raises(WrongPhase, match=f"user {user} is at no buffer"):
                self.dispatcher.leave(user)
            return
        self.dispatcher.leave(user)
        del self.at[user]

    @invariant()
    def known(self) -> None:
        """Whoever is at a buffer is refused another, and changes nothing by asking."""
        for user in list(self.at):
            with pytest.raises(WrongPhase):
                self.dispatcher.send(user)


TestDispatching = pytest.mark.requirement("BAA-48")(Dispatching.TestCase)


@pytest.mark.requirement("BAA-48")
@given(st.integers(1, 6), st.lists(st.integers(0, 9), max_size=30))
@example(2, [0, 0])
def test_a_user_is_at_one_buffer_at_a_time(count: int, users: list[int]) -> None:
    sender, at = dispatcher(count), dict[int, int]()
    for user in users:
        if user in at:
            with pytest.raises(WrongPhase, match=f"user {user} is at buffer {at[user]} already"):
                sender.send(user)
            sender.leave(user)
            del at[user]
        else:
            at[user] = sender.send(user)
            assert 0 <= at[user] < count


@pytest.mark.parametrize("user", [-1, 2**53 + 1, 10**30, None, "0", True, [0]])
def test_what_is_no_user_is_not_sent(user: Any) -> None:
    for move in (dispatcher(2).send, dispatcher(2).leave):
        with pytest.raises(ParameterError, match=r"^user = "):
            move(user)
    with pytest.raises(WrongPhase):
        dispatcher(2).leave(3)


# --------------------------------------------------------------------------------------------------------- visits


def at_once(users: int) -> Schedule:
    """All users come at the time 0."""
    return Schedule(users, tuple(Event(0.0, "arrive", user) for user in range(users)))


@given(st.integers(1, 8), st.integers(1, 40))
def test_when_all_come_at_once_the_last_is_gone_after_a_share_of_the_turns(count: int, users: int) -> None:
    received = list(visits(dispatcher(count), at_once(users), lambda user: 1.0))
    assert max(visit.ended for visit in received) == math.ceil(users / count)
    waits = [user // count for user in range(users)]
    assert sorted(visit.began for visit in received) == waits
    assert sorted(visit.user for visit in received) == list(range(users))


@st.composite
def crowds(draw: st.DrawFn) -> tuple[int, Schedule, list[float]]:
    """Some buffers, users that come some time, each once, and how long each is served."""
    N = draw(st.integers(1, 12))
    times = draw(st.lists(st.integers(0, 20), min_size=N, max_size=N))
    lengths = draw(st.lists(st.integers(1, 8).map(float), min_size=N, max_size=N))
    return draw(st.integers(1, 5)), ordered(N, (Event(t, "arrive", u) for u, t in enumerate(times))), lengths


@given(crowds())
def test_a_buffer_serves_one_user_at_a_time_in_the_order_in_which_they_came(
    crowd: tuple[int, Schedule, list[float]],
) -> None:
    count, arrivals, lengths = crowd
    received = list(visits(dispatcher(count), arrivals, lambda user: lengths[user]))
    assert sorted(visit.user for visit in received) == sorted(event.user for event in arrivals.events)
    assert [visit.ended for visit in received] == sorted(visit.ended for visit in received)
    came = {event.user: event.time for event in arrivals.events}
    for visit in received:
        assert visit.came == came[visit.user] <= visit.began
        assert visit.ended == visit.began + lengths[visit.user]
    for buffer in range(count):
        served = sorted((visit for visit in received if visit.buffer == buffer), key=lambda visit: visit.began)
        assert [visit.came for visit in served] == sorted(visit.came for visit in served)
        for one, other in pairwise(served):
            assert other.began == max(other.came, one.ended), "a buffer rests although somebody waits"


def test_a_user_may_come_again_when_its_visit_is_over() -> None:
    arrivals = Schedule(2, (Event(0.0, "x", 0), Event(0.0, "x", 1), Event(1.5, "x", 0)))
    received = list(visits(dispatcher(2), arrivals, lambda user: 1.0))
    assert received[-1] == Visit(0, 0, 1.5, 1.5, 2.5)
    with pytest.raises(WrongPhase, match="user 0 is at buffer 0 already"):
        list(visits(dispatcher(1), arrivals, lambda user: 1.0 + user * 5 + (user == 0)))


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_visit_takes_a_time(wrong: float) -> None:
    with pytest.raises((OutOfRange, ParameterError)):
        list(visits(dispatcher(1), at_once(1), lambda user: wrong))


def test_what_is_no_schedule_is_refused() -> None:
    with pytest.raises(ParameterError, match="a Schedule"):
        list(visits(dispatcher(1), [], lambda user: 1.0))  # type: ignore[arg-type]
    with pytest.raises(UnknownUser):
        Schedule(1, (Event(0.0, "arrive", 1),))
