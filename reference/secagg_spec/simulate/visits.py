"""Visits of users to buffers that serve one user at a time: arrival, start and end.

Source: BASA, section 4.2; spec/basa.md, section 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from secagg_spec.errors import ParameterError
from secagg_spec.events import Agenda, Event, Schedule
from secagg_spec.protocols.basa.buffers import Dispatcher

ARRIVE, LEAVE = "arrive", "leave"


@dataclass(frozen=True)
class Visit:
    """The visit of a user: its buffer, and the times of arrival, start and end."""

    user: int
    buffer: int
    came: float
    began: float
    ended: float


def visits(dispatcher: Dispatcher, arrivals: Schedule, duration: Callable[[int], float]) -> Iterator[Visit]:
    """Yield the visits of users that arrive by a schedule, each when it ends: a buffer serves one user at a time.

    Parameters
    ----------
    dispatcher : Dispatcher
    arrivals : Schedule
        When users come; the kinds of its events are ignored.
    duration : function from user to float
        The service time of a user.

    Raises
    ------
    ParameterError
        The arrivals are not a schedule.
    OutOfRange
        A duration is negative, NaN or infinite.
    WrongPhase
        A user comes again before its visit is over, or at the moment in which it ends (BAA-48).
    """
    if not isinstance(arrivals, Schedule):
        raise ParameterError("arrivals", type(arrivals).__name__, "a Schedule")
    free = [0.0] * len(dispatcher.sessions)
    agenda, under_way = Agenda(Schedule(arrivals.N, ())), dict[int, Visit]()
    for event in arrivals.events:
        agenda.add(Event(event.time, ARRIVE, event.user))
    for event in agenda:
        if event.kind == LEAVE:
            dispatcher.leave(event.user)
            yield under_way.pop(event.user)
            continue
        buffer = dispatcher.send(event.user)
        began = max(event.time, free[buffer])
        free[buffer] = began + duration(event.user)
        under_way[event.user] = Visit(event.user, buffer, event.time, began, free[buffer])
        agenda.add(Event(free[buffer], LEAVE, event.user))
