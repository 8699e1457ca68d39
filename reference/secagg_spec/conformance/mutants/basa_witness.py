"""What the planted bugs of BASA have in common: parties of fixed sessions, and ways to make a step forgetful."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from secagg_spec.conformance import basa_fixed
from secagg_spec.conformance.basa_acts import Act, Part, part_of
from secagg_spec.conformance.basa_cast import Cast
from secagg_spec.conformance.scenes import call
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
MESSAGES = "secagg_spec.protocols.basa_messages"
BOXES = "secagg_spec.crypto.boxes"
SCRIPTS = "secagg_spec.conformance.targets.reference_basa_scripts"
FIRST = 7


def _take(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)


@lru_cache(maxsize=4)
def part_and_steps(name: str, party: int) -> tuple[Part, tuple[Call, ...]]:
    """Return a party of a session of the right reference, and its steps."""
    settle = name == "settle"
    numbers, acts = (basa_fixed.NUMBERS, basa_fixed.acts) if settle else (basa_fixed.VOID, basa_fixed.void_acts)
    given = _denied() if name == "denied" else acts(FIRST)
    numbers = basa_fixed.NUMBERS if name == "denied" else numbers
    part = part_of(basa_fixed.played(_take, numbers, FIRST, given), party)
    return part, tuple(part.calls())


def _denied() -> list[Act]:
    """Return an epoch in which the authority does not accept an upload that the server took."""
    visits = [Act("upload", user, FIRST) for user in (0, 1, 3, 4)]
    return [Act("open"), visits[0], Act("denied", 2, FIRST), *visits[1:], Act("close")]


def entries(party: int, *calls: Call, void: bool = False, name: str = "") -> object:
    """Return the entries of a party on some steps, or on those of its session."""
    part, right = part_and_steps(name or ("void" if void else "settle"), party)
    return part.entries(list(calls or right))


def steps_of(party: int, count: int, *, void: bool = False) -> tuple[Call, ...]:
    """Return the first steps of a party in its session."""
    return part_and_steps("void" if void else "settle", party)[1][:count]


def everybody(*, void: bool = False) -> Cast:
    """Return the kit as all parties of a session."""
    return part_and_steps("void" if void else "settle", SERVER)[0].cast


def step_on(phase: str, *messages: Message) -> Call:
    """Return a step on some messages."""
    return call(phase, messages)


def lenient(**changes: Any) -> Callable[[Function], Function]:
    """Return what makes a step forget parts of its state before it judges; they come back where it left them."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            loose = {name: change(state, inbox) for name, change in changes.items()}
            after, outbox = right(replace(state, **loose), inbox, randomness=randomness)
            kept = {name: getattr(state, name) for name, value in loose.items() if getattr(after, name) is value}
            return replace(after, **kept), outbox

        return wrong

    return build


def on_message(change: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
    """Return what makes a step judge another message than the one that came."""

    def build(right: Function) -> Function:
        return lambda state, inbox, *, randomness: right(
            state, tuple(change(state, message) for message in inbox), randomness=randomness
        )

    return build


@contextmanager
def _swapped(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """Put something else under a name of a module for a while."""
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


def without(module: ModuleType, name: str, value: Any) -> Callable[[Function], Function]:
    """Return what runs a step with something else under a name of its module."""

    def build(right: Function) -> Function:
        def wrong(*args: Any, **given: Any) -> Any:
            with _swapped(module, name, value):
                return right(*args, **given)

        return wrong

    return build


def nothing(*args: Any, **given: Any) -> None:
    """Check nothing."""


def wish(user: int, position: int, epoch: int = FIRST) -> Call:
    """Return the step on the request of a key."""
    return step_on("issue", everybody().key_request(user, epoch, position))


def assigned(user: int, position: int, epoch: int = FIRST) -> Call:
    """Return the step on an assignment."""
    return step_on("assign", everybody().assignment(user, epoch, position))


def expired(position: int, *, void: bool = False) -> Call:
    """Return the step on an offer that expired."""
    return step_on("settle", everybody(void=void).expired(FIRST, position))


OPEN = Call("open")


def upload_of(user: int, position: int) -> Any:
    """Return a right upload of a user at a position of the first epoch."""
    return everybody().upload(user, FIRST, position, FIRST, 4, np.zeros(3, np.uint64))


def told_of(user: int, position: int) -> Any:
    """Return what tells the authority of a right upload."""
    return everybody().settled(upload_of(user, position))
