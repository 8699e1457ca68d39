"""Planted bugs of several buffers of BASA. No operation of the adapter protocol comes near them; tests find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.errors import ParameterError, WrongPhase
from secagg_spec.protocols import basa_buffers
from secagg_spec.protocols.basa_buffers import Dispatcher

Function = Callable[..., Any]
_BUFFERS = "secagg_spec.protocols.basa_buffers"
_TESTS = "tests/protocols/test_basa_buffers.py::"
_BASE = bytes(16)


def _sent_twice() -> object:
    """Return where a user is sent that is at a buffer already."""
    dispatcher = Dispatcher((_BASE, b"\1" * 16))
    try:
        return [dispatcher.send(0), dispatcher.send(0)]
    except WrongPhase:
        return "refused"


def _equal_sessions() -> object:
    """Return how many buffers a dispatcher takes that have one session."""
    try:
        return len(Dispatcher((_BASE, _BASE)).sessions)
    except ParameterError:
        return "refused"


def _again() -> object:
    """Return where a user is sent that comes again."""
    dispatcher = Dispatcher((_BASE, b"\1" * 16))
    dispatcher.send(0)
    dispatcher.leave(0)
    try:
        return dispatcher.send(0)
    except WrongPhase:
        return "refused"


@mutant(
    "buffers-share-a-session",
    "BAA-47",
    "privacy: an update of one buffer, and its keys and masks, are those of another as well",
    f"{_BUFFERS}:sessions",
    lambda: basa_buffers.sessions(_BASE, 3),
    _TESTS + "test_sessions_side_by_side_differ",
    kind="privacy",
    source="used twice",
)
def _one_session(right: Function) -> Function:
    return lambda base, count: right(base, 1) * count


@mutant(
    "equal-sessions-side-by-side",
    "BAA-47",
    "privacy: a dispatcher takes two buffers that have one session",
    f"{_BUFFERS}:Dispatcher.__init__",
    _equal_sessions,
    _TESTS + "test_a_dispatcher_refuses_buffers_of_one_session",
    kind="privacy",
    source="clause left out",
)
def _equal_accepted(right: Function) -> Function:
    def wrong(self: Dispatcher, sessions: Any) -> None:
        right(self, tuple(dict.fromkeys(sessions)))
        self.sessions = tuple(sessions)

    return wrong


@mutant(
    "user-at-two-buffers",
    "BAA-48",
    "privacy: a user that is at a buffer is sent to another, and masks one update in both",
    f"{_BUFFERS}:Dispatcher.send",
    _sent_twice,
    _TESTS + "test_a_user_is_at_one_buffer_at_a_time",
    kind="privacy",
    source="clause left out",
)
def _twice(right: Function) -> Function:
    def wrong(self: Dispatcher, user: int) -> Any:
        self._at.pop(user, None)
        return right(self, user)

    return wrong


@mutant(
    "user-never-leaves",
    "BAA-48",
    "liveness: a user that was gone is held to be at its buffer, and is refused ever after",
    f"{_BUFFERS}:Dispatcher.leave",
    _again,
    _TESTS + "test_a_user_may_come_again_when_its_visit_is_over",
    kind="refusal",
    source="kept too long",
)
def _never(right: Function) -> Function:
    return lambda self, user: None
