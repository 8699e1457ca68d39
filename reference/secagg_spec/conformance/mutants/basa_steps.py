"""Planted bugs in the steps of BASA: keys given twice, positions settled twice, keys released that should not be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from secagg_spec.conformance.checks import basa_fixed
from secagg_spec.conformance.checks.basa_cast import BOX, Cast
from secagg_spec.conformance.checks.basa_parties import Part, part_of
from secagg_spec.conformance.checks.basa_visits import Act
from secagg_spec.conformance.checks.dealt_scenes import call
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.crypto.boxes import PAIR, SELF
from secagg_spec.errors import DecryptionFailed, TooFewSurvivors
from secagg_spec.protocols import basa_authority, basa_messages, basa_server, basa_user
from secagg_spec.protocols.basa_messages import ACCEPTED, SKIPPED, PositionState, Release
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.shape import AUTHORITY, SERVER

Function = Callable[..., Any]
_AUTHORITY = "secagg_spec.protocols.basa_authority"
_USER = "secagg_spec.protocols.basa_user"
_SERVER = "secagg_spec.protocols.basa_server"
_MESSAGES = "secagg_spec.protocols.basa_messages"
_BOXES = "secagg_spec.crypto.boxes"
_SCRIPTS = "secagg_spec.conformance.targets.reference_basa_scripts"
_FIRST = 7


# --------------------------------------------------------------------------------------------- the parties of a witness


def _take(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)


@lru_cache(maxsize=4)
def _steps(name: str, party: int) -> tuple[Part, tuple[Call, ...]]:
    """Return a party of a session of the right reference, and its steps."""
    settle = name == "settle"
    numbers, acts = (basa_fixed.NUMBERS, basa_fixed.acts) if settle else (basa_fixed.VOID, basa_fixed.void_acts)
    given = _denied() if name == "denied" else acts(_FIRST)
    numbers = basa_fixed.NUMBERS if name == "denied" else numbers
    part = part_of(basa_fixed.played(_take, numbers, _FIRST, given), party)
    return part, tuple(part.calls())


def _denied() -> list[Act]:
    """Return an epoch in which the authority does not accept an upload that the server took."""
    visits = [Act("upload", user, _FIRST) for user in (0, 1, 3, 4)]
    return [Act("open"), visits[0], Act("denied", 2, _FIRST), *visits[1:], Act("close")]


def _entries(party: int, *calls: Call, void: bool = False, name: str = "") -> object:
    """Return the entries of a party on some steps, or on those of its session."""
    part, right = _steps(name or ("void" if void else "settle"), party)
    return part.entries(list(calls or right))


def _right(party: int, count: int, *, void: bool = False) -> tuple[Call, ...]:
    """Return the first steps of a party in its session."""
    return _steps("void" if void else "settle", party)[1][:count]


def _cast(*, void: bool = False) -> Cast:
    return _steps("void" if void else "settle", SERVER)[0].cast


def _call(phase: str, *messages: Message) -> Call:
    return call(phase, messages)


def _lenient(**changes: Any) -> Callable[[Function], Function]:
    """Return what makes a step forget parts of its state before it judges; they come back where it left them."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            loose = {name: change(state, inbox) for name, change in changes.items()}
            after, outbox = right(replace(state, **loose), inbox, randomness=randomness)
            kept = {name: getattr(state, name) for name, value in loose.items() if getattr(after, name) is value}
            return replace(after, **kept), outbox

        return wrong

    return build


def _on_message(change: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
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


def _without(module: ModuleType, name: str, value: Any) -> Callable[[Function], Function]:
    """Return what runs a step with something else under a name of its module."""

    def build(right: Function) -> Function:
        def wrong(*args: Any, **given: Any) -> Any:
            with _swapped(module, name, value):
                return right(*args, **given)

        return wrong

    return build


def _nothing(*args: Any, **given: Any) -> None:
    """Check nothing."""


# ------------------------------------------------------------------------------------------- the authority: assignments


def _wish(user: int, position: int, epoch: int = _FIRST) -> Call:
    return _call("issue", _cast().key_request(user, epoch, position))


def _assigned(user: int, position: int, epoch: int = _FIRST) -> Call:
    return _call("assign", _cast().assignment(user, epoch, position))


def _expired(position: int, *, void: bool = False) -> Call:
    return _call("settle", _cast(void=void).expired(_FIRST, position))


_OPEN = Call("open")


def _seats(change: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda state, inbox: tuple(change(seat) for seat in state.seats)


mutant(
    "position-assigned-while-keyed",
    "BAA-09",
    "privacy: a position whose key was given out is assigned to another user, as in the paper",
    f"{_AUTHORITY}:authority_assign",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 0), _wish(0, 0), _assigned(1, 0)),
)(_lenient(seats=_seats(lambda seat: replace(seat, state="assigned") if seat.state == "keyed" else seat)))
mutant(
    "any-position-assigned",
    "BAA-09",
    "failure: whatever position the server names, the next one is assigned",
    f"{_AUTHORITY}:authority_assign",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 2)),
)(_on_message(lambda state, message: replace(message, position=len(basa_authority._settled(state)))))


@mutant(
    "position-assigned-when-full",
    "BAA-09",
    "failure: a spare position is assigned when K updates are accepted",
    f"{_AUTHORITY}:authority_assign",
    lambda: _entries(AUTHORITY, *_right(AUTHORITY, -1), _assigned(2, 4, _FIRST + 1)),
)
def _when_full(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        seats = state.seats
        loose = [replace(seat, state="skipped") if seat.state == "accepted" else seat for seat in seats]
        after, outbox = right(replace(state, seats=tuple(loose)), inbox, randomness=randomness)
        return replace(after, seats=(*seats[: len(after.seats) - 1], after.seats[-1])), outbox

    return wrong


def _other_users(right: Function) -> Function:
    """Return a step that does not see who was at a position before."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        loose = tuple(replace(seat, user=-1) for seat in state.seats)
        after, outbox = right(replace(state, seats=loose), inbox, randomness=randomness)
        return replace(after, seats=(*state.seats[: len(after.seats) - 1], after.seats[-1])), outbox

    return wrong


mutant(
    "one-user-at-two-positions",
    "BAA-10",
    "privacy: one colluder takes the keys of several positions",
    f"{_AUTHORITY}:authority_assign",
    lambda: _entries(AUTHORITY, *_right(AUTHORITY, 4), _assigned(0, 1)),
)(_other_users)
mutant(
    "outsider-at-a-position",
    "BAA-10",
    "privacy: a position is assigned to a number that is on no roster",
    f"{_AUTHORITY}:authority_assign",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(7, 0)),
)(
    lambda right: (
        lambda state, inbox, *, randomness: _reseated(
            right(state, [replace(m, user=min(m.user, 0)) for m in inbox], randomness=randomness), inbox[0]
        )
    )
)


def _reseated(taken: Any, message: Any) -> Any:
    """Return what an assignment gives, with the user that it named."""
    after, outbox = taken
    return replace(after, seats=(*after.seats[:-1], replace(after.seats[-1], user=message.user))), outbox


# -------------------------------------------------------------------------------------------------- the authority: keys


mutant(
    "key-to-another-user",
    "BAA-11",
    "privacy: whoever asks gets the key of the assigned position",
    f"{_AUTHORITY}:authority_issue",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 0), _wish(1, 0)),
)(
    _lenient(
        seats=lambda state, inbox: (*state.seats[:-1], *(replace(s, user=inbox[0].sender) for s in state.seats[-1:]))
    )
)
mutant(
    "key-given-twice",
    "BAA-12",
    "privacy: a key is given as often as it is asked for",
    f"{_AUTHORITY}:authority_issue",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 0), _wish(0, 0), _wish(0, 0)),
)(_lenient(seats=_seats(lambda seat: replace(seat, state="assigned") if seat.state == "keyed" else seat)))


def _key_of(change: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
    """Return what changes the key message that the authority sends, with the state before."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = right(state, inbox, randomness=randomness)
            return after, tuple(change(state, message) for message in outbox)

        return wrong

    return build


def _with_skipped(state: Any, message: Any) -> Any:
    before = [at for at, seat in enumerate(state.seats[: message.position]) if seat.state == "skipped"]
    users = [state.seats[at].user for at in before]
    return replace(
        message,
        positions=np.append(message.positions, np.array(before, np.uint64)),
        senders=np.append(message.senders, np.array(users, np.uint64)),
        hashes=message.hashes + bytes(32 * len(before)),
    )


def _other_hashes(state: Any, message: Any) -> Any:
    seats = [state.seats[at] for at in message.positions.tolist()]
    hashes = [
        seat.hashes[(message.position - at) % len(seat.hashes)]
        for at, seat in zip(message.positions.tolist(), seats, strict=True)
    ]
    return replace(message, hashes=b"".join(hashes))


mutant(
    "skipped-positions-named",
    "BAA-13",
    "failure: a key comes with positions that were not accepted, and no later user finds their boxes",
    f"{_AUTHORITY}:authority_issue",
    lambda: _entries(AUTHORITY),
)(_key_of(_with_skipped))
mutant(
    "hashes-of-another-position",
    "BAA-13",
    "failure: the hashes that come with a key are those of the boxes to the next position",
    f"{_AUTHORITY}:authority_issue",
    lambda: _entries(AUTHORITY),
)(_key_of(_other_hashes))


@mutant(
    "epoch-keys-used-again",
    "BAA-07",
    "privacy: all epochs have the keys of the first one, so that a colluder's key opens boxes of the next ones",
    f"{_SCRIPTS}:PositionParty.values",
    lambda: _entries(AUTHORITY),
)
def _old_keys(right: Function) -> Function:
    def wrong(self: Any, step: Any) -> Any:
        values = right(self, step)
        return {name: self.sampled[name][0] if step.phase == "open" else value for name, value in values.items()}

    return wrong


@mutant(
    "keys-signed-without-the-epoch",
    "BAA-08",
    "acceptance: the keys of an old epoch are valid in each later one",
    f"{_MESSAGES}:Session.keys_signed",
    lambda: _entries(AUTHORITY, _OPEN),
    also=("BAA-29",),
)
def _no_epoch(right: Function) -> Function:
    return lambda self, number, published: right(self, 0, published)


# ------------------------------------------------------------------------------------------- the authority: settlements


def _upload(user: int, position: int) -> Any:
    """Return a right upload of a user at a position of the first epoch."""
    return _cast().upload(user, _FIRST, position, _FIRST, 4, np.zeros(3, np.uint64))


def _told(user: int, position: int) -> Any:
    return _cast().settled(_upload(user, position))


def _keyed(user: int, position: int) -> tuple[Call, ...]:
    return _OPEN, _assigned(user, position), _wish(user, position)


mutant(
    "unkeyed-position-accepted",
    "BAA-14",
    "privacy: an upload is accepted at a position whose key nobody got",
    f"{_AUTHORITY}:_accept",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 0), _call("settle", _told(0, 0))),
)(
    lambda right: (
        lambda state, message: right(
            replace(state, seats=(*state.seats[:-1], *(replace(s, state="keyed") for s in state.seats[-1:]))), message
        )
    )
)
mutant(
    "unsigned-upload-accepted",
    "BAA-14",
    "privacy: the server says what boxes a user sent, and puts in boxes of its own",
    f"{_AUTHORITY}:_accept",
    lambda: _entries(AUTHORITY, *_keyed(0, 0), _call("settle", replace(_told(0, 0), signature=bytes(64)))),
)(_without(basa_authority, "verify", _nothing))


def _settled_again(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        [message] = inbox
        again = message.position < len(basa_authority._settled(state))
        if not again or message.accepted:
            return right(state, inbox, randomness=randomness)
        seat = replace(state.seats[message.position], state="skipped", hashes=())
        told = PositionState(message.session, message.round, AUTHORITY, SERVER, message.position, SKIPPED)
        return basa_authority._with_seat(state, message.position, seat), (told,)

    return wrong


mutant(
    "accepted-position-skipped-later",
    "BAA-15",
    "privacy: a position that was accepted is skipped in the end, and its pair key released",
    f"{_AUTHORITY}:authority_settle",
    lambda: _entries(AUTHORITY, *_right(AUTHORITY, 4), _expired(0)),
)(_settled_again)
mutant(
    "position-given-again",
    "BAA-16",
    "privacy: a position that timed out is free again, though its key was given out, as in the paper",
    f"{_AUTHORITY}:_time_out",
    lambda: _entries(AUTHORITY, *_keyed(0, 0), _expired(0), _assigned(1, 0)),
    also=("BAA-12",),
)(
    lambda right: (
        lambda state, message: right(
            replace(state, seats=tuple(replace(s, state="assigned") if s.state == "keyed" else s for s in state.seats)),
            message,
        )
    )
)


@mutant(
    "unkeyed-position-skipped",
    "BAA-16",
    "failure: a position that timed out before its key was given is lost as well",
    f"{_AUTHORITY}:_time_out",
    lambda: _entries(AUTHORITY, _OPEN, _assigned(0, 0), _expired(0)),
)
def _always_skipped(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        seats = tuple(replace(seat, state="keyed") if seat.state == "assigned" else seat for seat in state.seats)
        return right(replace(state, seats=seats), message)

    return wrong


@mutant(
    "void-epoch-goes-on",
    "BAA-17",
    "privacy: without self masks a position is skipped, and a late upload shows the difference of two updates",
    f"{_AUTHORITY}:_time_out",
    lambda: _entries(AUTHORITY, void=True),
)
def _goes_on(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        after = right(state, message)
        if after is not None:
            return after
        seat = replace(state.seats[message.position], state="skipped")
        return basa_authority._with_seat(state, message.position, seat)

    return wrong


mutant(
    "lengths-in-messages-unchecked",
    "BAA-51",
    "acceptance: keys, hashes and signatures in messages have any length",
    f"{_MESSAGES}:check_length",
    lambda: _entries(AUTHORITY, *_keyed(0, 0), _call("settle", replace(_told(0, 0), hashes=bytes(33)))),
    also=("BAA-14", "BAA-39"),
)(lambda right: _nothing)


# ---------------------------------------------------------------------------------------------- the authority: releases


def _close(epoch: int = _FIRST) -> Call:
    return _call("close", _cast().close_request(epoch))


@mutant(
    "closed-while-assigned",
    "BAA-18",
    "failure: an epoch is closed while the last position is open, and its upload comes too late",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY, *_right(AUTHORITY, 16), _close()),
)
def _while_assigned(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        open_ = ("assigned", "keyed")
        seats = tuple(replace(seat, state="skipped") if seat.state in open_ else seat for seat in state.seats)
        return right(replace(state, seats=seats), inbox, randomness=randomness)

    return wrong


def _released(state: Any, inbox: Any, slots: Sequence[tuple[str, int]]) -> Any:
    """Return the end of an epoch that releases the keys of some slots."""
    [message] = inbox
    keys = b"".join(state.ring.secrets(state.session.epoch(state.epoch), slots, ()))
    release = Release(message.session, message.round, AUTHORITY, SERVER, keys)
    return basa_authority._ended(state), (release,)


def _right_slots(state: Any) -> list[tuple[str, int]]:
    p = state.session.parameters
    return [(SELF if at in state.accepted else PAIR, at) for at in range(p.positions)] if p.settle else []


@mutant(
    "closed-with-too-few",
    "BAA-19",
    "privacy: the sum of fewer than T + 2 updates is released",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY, *_right(AUTHORITY, 4), _close()),
)
def _too_few(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except TooFewSurvivors:
            return _released(state, inbox, _right_slots(state))

    return wrong


@mutant(
    "closed-without-T-plus-2",
    "BAA-19",
    "privacy: when no position is left, T + 1 updates are enough",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY, *_drained()),
)
def _one_less(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except TooFewSurvivors:
            p = state.session.parameters
            if len(state.seats) < p.positions or len(state.accepted) <= p.T:
                raise
            return _released(state, inbox, _right_slots(state))

    return wrong


def _drained() -> list[Call]:
    """Return steps of the authority after which no position is left, and T + 1 are accepted."""
    steps: list[Call] = [_OPEN]
    for user in range(5):
        steps += [_assigned(user, user), _wish(user, user)]
        steps += [_call("settle", _told(user, user)) if user < 2 else _expired(user)]
    return [*steps, _close()]


def _with_slots(change: Callable[[Any], list[tuple[str, int]]]) -> Callable[[Function], Function]:
    """Return what releases other keys."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            right(state, inbox, randomness=randomness)
            return _released(state, inbox, change(state))

        return wrong

    return build


def _all(state: Any, *purposes: str) -> list[tuple[str, int]]:
    return [(purpose, at) for purpose in purposes for at in range(state.session.parameters.positions)]


mutant(
    "both-keys-released",
    "BAA-20",
    "privacy: the server gets the pair keys and the self keys of all positions, and sees each update",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY),
)(_with_slots(lambda state: _all(state, PAIR, SELF) if state.session.parameters.settle else []))
mutant(
    "self-key-of-a-skipped-position",
    "BAA-20",
    "privacy: an upload that comes late, or that the server held back, loses its self mask",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY),
)(_with_slots(lambda state: _all(state, SELF) if state.session.parameters.settle else []))
mutant(
    "pair-key-of-an-accepted-position",
    "BAA-20",
    "privacy: the masks to an accepted position are known to the server",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY),
)(_with_slots(lambda state: _all(state, PAIR) if state.session.parameters.settle else []))
mutant(
    "keys-released-in-void",
    "BAA-21",
    "privacy: pair keys are released where nothing needs them",
    f"{_AUTHORITY}:authority_close",
    lambda: _entries(AUTHORITY, void=True),
)(_with_slots(lambda state: _right_slots(state) or _all(state, PAIR)))


@mutant(
    "keys-released-when-abandoned",
    "BAA-21",
    "privacy: an epoch that is given up releases the keys of its positions",
    f"{_AUTHORITY}:authority_abandon",
    lambda: _entries(AUTHORITY, _OPEN, _call("abandon", _cast().abandonment(_FIRST))),
)
def _abandoned(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        right(state, inbox, randomness=randomness)
        return _released(state, inbox, _right_slots(state))

    return wrong


@mutant(
    "ended-epoch-goes-on",
    "BAA-22",
    "privacy: keys are given and positions settled in an epoch that has ended",
    f"{_AUTHORITY}:_ended",
    lambda: _entries(AUTHORITY, _OPEN, _call("abandon", _cast().abandonment(_FIRST)), _assigned(0, 0)),
)
def _still_open(right: Function) -> Function:
    return lambda state: state


# ------------------------------------------------------------------------------------------------------------- a user


_OWN = 4
"""A user that uploads behind accepted and skipped positions."""


def _user_steps(**changes: Any) -> list[Call]:
    """Return the steps of a user until its upload, with another key message."""
    part, right = _steps("settle", _OWN)
    [at] = part.taking("upload")
    [message] = part.inbox(at)
    return [*right[:at], _call("upload", replace(message, **changes))]


def _offer_steps(change: Callable[[Any], Any]) -> list[Call]:
    """Return the steps of a user until it takes an offer, another one."""
    part, right = _steps("settle", _OWN)
    [at] = part.taking("fetch")
    [message] = part.inbox(at)
    return [*right[:at], _call("fetch", change(message))]


def _spoilt_steps() -> list[Call]:
    """Return the steps of a user that meets a box which does not open, though it has its hash."""
    part, right = _steps("settle", _OWN)
    [fetch], [upload] = part.taking("fetch"), part.taking("upload")
    [offer], [message] = part.inbox(fetch), part.inbox(upload)
    boxes = bytes([offer.boxes[0] ^ 1]) + offer.boxes[1:]
    named = replace(message, hashes=part.cast.hashes(boxes))
    return [*right[:fetch], _call("fetch", replace(offer, boxes=boxes)), _call("upload", named)]


mutant(
    "weight-without-staleness",
    "BAA-23",
    "wrong sum: an update weighs c_g, however late it is",
    f"{_USER}:user_upload",
    lambda: _entries(_OWN),
)(_without(basa_user, "realised_weight", lambda staleness, c_g, tau, draw: c_g))


@mutant(
    "second-upload-of-an-update",
    "BAA-27",
    "privacy: an update is uploaded again, and two sums over it differ by it alone",
    f"{_USER}:user_upload",
    lambda: _entries(_OWN, *_right(_OWN, 3), _right(_OWN, 3)[-1]),
)
def _kept(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, phase="fetched", update=state.update, stamp=state.stamp, offer=state.offer), outbox

    return wrong


@mutant(
    "offer-of-any-epoch",
    "BAA-28",
    "failure: an offer is taken however old the update is, and its upload refused",
    f"{_USER}:user_fetch",
    lambda: _entries(_OWN, *_offer_steps(_later)),
)
def _any_epoch(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        offered = [message.round for message in inbox]
        after, outbox = right(replace(state, stamp=offered[0] if offered else 0), inbox, randomness=randomness)
        return replace(after, stamp=state.stamp), outbox

    return wrong


def _later(offer: Any) -> Any:
    keys = _cast().epoch_keys(_FIRST + 9, offer.keys)
    return replace(offer, round=_FIRST + 9, keys=keys.keys, signature=keys.signature)


mutant(
    "epoch-keys-not-verified",
    "BAA-29",
    "privacy: users seal their seeds to keys that the server made",
    f"{_MESSAGES}:Session.check_keys",
    lambda: _entries(_OWN, *_offer_steps(lambda offer: replace(offer, signature=bytes(64)))),
)(lambda right: _nothing)
mutant(
    "key-of-another-position-taken",
    "BAA-30",
    "failure: whatever position a key is for, it is used for the one that was offered",
    f"{_USER}:_named",
    lambda: _entries(_OWN, *_user_steps(position=2)),
)(lambda right: lambda session, offer, message: right(session, offer, replace(message, position=offer.position)))
mutant(
    "key-not-compared",
    "BAA-30",
    "wrong blame: with a key that is not the position's no box opens, and their senders are accused",
    f"{_BOXES}:PerPosition.check_key",
    lambda: _entries(_OWN, *_user_steps(key=bytes(range(32)))),
)(lambda right: _nothing)


@mutant(
    "hashes-not-compared",
    "BAA-31",
    "privacy: the server exchanges boxes for its own, and knows the masks",
    f"{_USER}:_open_boxes",
    lambda: _entries(_OWN, *_user_steps(hashes=bytes(64))),
)
def _any_hash(right: Function) -> Function:
    def wrong(state: Any, offer: Any, message: Any) -> Any:
        boxes = state.session.boxes(offer.boxes)
        if len(boxes) != message.positions.size:
            return right(state, offer, message)
        return right(state, offer, replace(message, hashes=basa_messages.digests(boxes)))

    return wrong


def _passing(failing: type[Exception]) -> Callable[[Function], Function]:
    """Return a way to open boxes that passes over those that do not open."""

    def build(right: Function) -> Function:
        def wrong(state: Any, *given: Any) -> Any:
            encryption: Any = type(state.session.encryption)

            def opened(self: Any, address: Any, published: bytes, key: bytes, box: bytes) -> bytes:
                try:
                    seed: bytes = kept(self, address, published, key, box)
                    return seed
                except failing:
                    return bytes(32)

            kept = encryption.open
            encryption.open = opened
            try:
                seeds = right(state, *given)
            finally:
                encryption.open = kept
            return {place: seed for place, seed in seeds.items() if seed != bytes(32)}

        return wrong

    return build


mutant(
    "box-that-does-not-open-passed-over",
    "BAA-32",
    "wrong sum: the mask of a box that does not open is left in, and nobody notices",
    f"{_USER}:_open_boxes",
    lambda: _entries(_OWN, *_spoilt_steps()),
)(_passing(DecryptionFailed))


@mutant(
    "one-seed-for-all-positions",
    "BAA-33",
    "privacy: all masks of a user come from one seed, so that each later user knows it",
    f"{_USER}:user_upload",
    lambda: _entries(0),
)
def _one_seed(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        seeds = randomness["seeds"]
        same = seeds[-32:] * (len(seeds) // 32)
        return right(state, inbox, randomness={**randomness, "seeds": same})

    return wrong


@mutant(
    "seeds-of-the-upload-before",
    "BAA-33",
    "privacy: a user seals the same seeds in each upload",
    f"{_SCRIPTS}:PositionParty.values",
    lambda: _entries(0),
)
def _old_seeds(right: Function) -> Function:
    def wrong(self: Any, step: Any) -> Any:
        values = right(self, step)
        return {name: self.sampled[name][0] if name == "seeds" else value for name, value in values.items()}

    return wrong


@mutant(
    "weight-not-signed",
    "BAA-34",
    "acceptance: the server changes the weight and the stamp of an upload",
    f"{_MESSAGES}:Session.boxes_signed",
    lambda: _entries(_OWN),
)
def _weight_unsigned(right: Function) -> Function:
    return lambda self, number, user, upload, digests: right(self, number, user, (upload[0], 0, 0), digests)


# ---------------------------------------------------------------------------------------------------------- the server


def _asks(user: int, stamp: int = _FIRST) -> Call:
    return _call("offer", _cast().request(user, stamp))


def _sends(upload: Any) -> Call:
    return _call("take", upload)


_SERVED = 2
"""The number of the server's first steps, after which user 0 is served."""


@mutant(
    "boxes-in-another-order",
    "BAA-35",
    "failure: boxes are offered from the last position on, and no user finds their hashes",
    f"{_SERVER}:server_offer",
    lambda: _entries(SERVER),
)
def _other_order(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, (offer, told) = right(state, inbox, randomness=randomness)
        boxes = [offer.boxes[at : at + BOX] for at in range(0, len(offer.boxes), BOX)]
        return after, (replace(offer, boxes=b"".join(boxes[::-1])), told)

    return wrong


@mutant(
    "boxes-of-skipped-positions-offered",
    "BAA-35",
    "failure: the boxes of an upload that was not accepted are offered, and no later user can go on",
    f"{_SERVER}:server_settle",
    lambda: _entries(SERVER, name="denied"),
)
def _denied_boxes(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        if state.upload is None or not after.places or after.places[-1].accepted:
            return after, outbox
        boxes = state.session.boxes(state.upload.boxes)
        place = replace(after.places[-1], boxes=boxes, accepted=True, weight=0)
        return replace(after, places=(*after.places[:-1], place)), outbox

    return wrong


def _strangers(right: Function) -> Function:
    """Return a step of the server that does not see who was at a position before."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        loose = tuple(replace(place, user=-1) for place in state.places)
        after, outbox = right(replace(state, places=loose), inbox, randomness=randomness)
        return replace(after, places=state.places), outbox

    return wrong


mutant(
    "one-user-offered-two-positions",
    "BAA-36",
    "failure: a position is offered to a user that had one, and the authority refuses",
    f"{_SERVER}:server_offer",
    lambda: _entries(SERVER, *_right(SERVER, 4), _asks(0)),
)(_strangers)
mutant(
    "two-users-served",
    "BAA-36",
    "failure: a position is offered to a second user while one is served",
    f"{_SERVER}:server_offer",
    lambda: _entries(SERVER, *_right(SERVER, _SERVED), _asks(1)),
)(_lenient(phase=lambda state, inbox: "filling" if state.phase == "serving" else state.phase))
mutant(
    "any-staleness-taken",
    "BAA-49",
    "failure: a request with any stamp is served, and its user refuses the offer",
    f"{_SERVER}:_check_staleness",
    lambda: _entries(SERVER, *_right(SERVER, 1), _asks(0, _FIRST + 1)),
    also=("BAA-38",),
)(lambda right: lambda state, message, stamp: min(max(state.epoch - stamp, 0), state.session.parameters.tau_max))
mutant(
    "upload-of-another-user",
    "BAA-37",
    "wrong sum: whoever sends an upload first takes the position of the user that is served",
    f"{_SERVER}:server_take",
    lambda: _entries(SERVER, *_right(SERVER, _SERVED), _sends(_upload(1, 0))),
)(_lenient(serving=lambda state, inbox: inbox[0].sender if state.phase == "serving" and inbox else state.serving))


@mutant(
    "late-upload-taken",
    "BAA-37",
    "wrong sum: an upload that comes when its offer expired is added, though nobody removes its masks",
    f"{_SERVER}:server_take",
    lambda: _entries(SERVER, *_right(SERVER, 10), _sends(_late())),
    also=("BAA-40",),
)
def _late_taken(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        [message] = inbox or [None]
        places = state.places
        skipped = [at for at, place in enumerate(places) if not place.accepted and message is not None]
        late = [at for at in skipped if (at, places[at].user) == (getattr(message, "position", -1), message.sender)]
        if state.phase != "filling" or not late:
            return right(state, inbox, randomness=randomness)
        served = replace(state, phase="serving", serving=message.sender, places=places[: message.position])
        right(served, inbox, randomness=randomness)
        total = state.session.parameters.ring.add(state.total, message.masked)
        return replace(state, total=total), ()

    return wrong


def _late() -> Any:
    """Return the upload of the session that came late."""
    [(_, upload)] = _steps("settle", SERVER)[0].late
    return upload


mutant(
    "weights-unchecked",
    "BAA-38",
    "wrong sum: an update weighs what its user likes",
    f"{_SERVER}:_check_upload",
    lambda: _entries(SERVER, *_right(SERVER, _SERVED), _sends(_cast().signed(_upload(0, 0), weight=99))),
)(_without(basa_server, "admissible_weights", lambda staleness, c_g, tau: range(2**32)))
mutant(
    "uploads-not-verified",
    "BAA-39",
    "failure: an upload that nobody signed is taken, and the authority refuses it",
    f"{_SERVER}:server_take",
    lambda: _entries(SERVER, *_right(SERVER, _SERVED), _sends(replace(_upload(0, 0), signature=bytes(64)))),
)(_without(basa_server, "verify", _nothing))


@mutant(
    "added-before-it-is-settled",
    "BAA-40",
    "wrong sum: an upload is in the buffer whatever the authority settles",
    f"{_SERVER}:server_settle",
    lambda: _entries(SERVER, name="denied"),
)
def _unsettled(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        [message] = inbox
        if state.upload is None or message.state == ACCEPTED or after.total is None:
            return after, outbox
        return replace(after, total=state.session.parameters.ring.add(after.total, state.upload.masked)), outbox

    return wrong


def _dropping(keep: Callable[[int, int], bool]) -> Callable[[Function], Function]:
    """Return a recovery that leaves some masks in."""

    def build(right: Function) -> Function:
        return lambda state, keys: {place: seed for place, seed in right(state, keys).items() if keep(*place)}

    return build


mutant(
    "masks-to-skipped-positions-left-in",
    "BAA-41",
    "wrong sum: after a timeout the masks to the skipped position stay in the sum",
    f"{_SERVER}:_open_boxes",
    lambda: _entries(SERVER),
)(_dropping(lambda source, target: source == target))
mutant(
    "self-masks-left-in",
    "BAA-41",
    "wrong sum: the self masks stay in the sum",
    f"{_SERVER}:_open_boxes",
    lambda: _entries(SERVER),
)(_dropping(lambda source, target: source != target))


def _unopened() -> list[Call]:
    """Return the steps of a server that took an upload whose self box does not open, until it recovers."""
    cast = _cast()
    spoilt = cast.with_box(_upload(0, 0), 0, bytes(BOX))
    uploads = [spoilt, *(_upload(user, user) for user in range(1, 4))]
    steps = [_call("open", cast.epoch_keys(_FIRST))]
    for at, upload in enumerate(uploads):
        steps += [_asks(at), _sends(upload), _call("settle", cast.state(_FIRST, at, ACCEPTED))]
    return [*steps, Call("close"), _call("recover", cast.release(_FIRST, range(4)))]


mutant(
    "recovery-with-unopened-boxes",
    "BAA-42",
    "wrong sum: the mask in a box that does not open stays in the sum, and nobody notices",
    f"{_SERVER}:_open_boxes",
    lambda: _entries(SERVER, *_unopened()),
    also=("BAA-45",),
)(_passing(DecryptionFailed))
mutant(
    "keys-of-an-old-epoch-taken",
    "BAA-50",
    "acceptance: the server goes on in an epoch that has ended",
    f"{_SERVER}:server_open",
    lambda: _entries(SERVER, _call("open", _cast().epoch_keys(_FIRST - 1, _cast().published(_FIRST)))),
)(_lenient(epoch=lambda state, inbox: None))


@mutant(
    "recovered-epoch-stays-open",
    "BAA-45",
    "acceptance: an epoch ends twice, and its sum is given out again",
    f"{_SERVER}:server_recover",
    lambda: _entries(SERVER),
)
def _stays(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(state, recovered=after.recovered), outbox

    return wrong


# --------------------------------------------------------------------------------------------------------- all of them


mutant(
    "position-states-unchecked",
    "BAA-37",
    "acceptance: a step is taken whenever it is asked for, in any state",
    f"{_MESSAGES}:require",
    lambda: _entries(SERVER, *_right(SERVER, 1), Call("expire")),
    also=("BAA-18", "BAA-22", "BAA-36"),
)(lambda right: _nothing)


@mutant(
    "vectors-of-uploads-are-fitted",
    "BAA-51",
    "acceptance: a masked update is cut, continued or reduced until it fits",
    f"{_SERVER}:_check_upload",
    lambda: _entries(SERVER, *_right(SERVER, _SERVED), _sends(replace(_upload(0, 0), masked=np.zeros(2, np.uint64)))),
    also=("MOD-07",),
)
def _fitted(right: Function) -> Function:
    def wrong(state: Any, message: Any) -> Any:
        p = state.session.parameters
        masked = np.concatenate([message.masked, np.zeros(p.d, np.uint64)])[: p.d] % np.uint64(p.R)
        object.__setattr__(message, "masked", masked)
        return right(state, message)

    return wrong
