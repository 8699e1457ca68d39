"""Planted bugs of the authority of BASA: keys given twice, positions settled twice, the wrong keys released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.basa_witness import (
    FIRST,
    MESSAGES,
    OPEN,
    SCRIPTS,
    Function,
    assigned,
    entries,
    everybody,
    expired,
    lenient,
    nothing,
    on_message,
    step_on,
    steps_of,
    told_of,
    wish,
    without,
)
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.crypto.boxes import PAIR, SELF
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols import basa_authority
from secagg_spec.protocols.basa_messages import SKIPPED, PositionState, Release
from secagg_spec.protocols.shape import AUTHORITY, SERVER

_AUTHORITY = "secagg_spec.protocols.basa_authority"


# ------------------------------------------------------------------------------------------- the authority: assignments


def _seats(change: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda state, inbox: tuple(change(seat) for seat in state.seats)


mutant(
    "position-assigned-while-keyed",
    "BAA-09",
    "privacy: a position whose key was given out is assigned to another user, as in the paper",
    f"{_AUTHORITY}:authority_assign",
    lambda: entries(AUTHORITY, OPEN, assigned(0, 0), wish(0, 0), assigned(1, 0)),
    kind="privacy",
    source="paper: BASA-TO",
)(lenient(seats=_seats(lambda seat: replace(seat, state="assigned") if seat.state == "keyed" else seat)))
mutant(
    "any-position-assigned",
    "BAA-09",
    "failure: whatever position the server names, the next one is assigned",
    f"{_AUTHORITY}:authority_assign",
    lambda: entries(AUTHORITY, OPEN, assigned(0, 2)),
    kind="acceptance",
    source="silent repair",
)(on_message(lambda state, message: replace(message, position=len(basa_authority._settled(state)))))


@mutant(
    "position-assigned-when-full",
    "BAA-09",
    "failure: a spare position is assigned when K updates are accepted",
    f"{_AUTHORITY}:authority_assign",
    lambda: entries(AUTHORITY, *steps_of(AUTHORITY, -1), assigned(2, 4, FIRST + 1)),
    kind="acceptance",
    source="clause in part",
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
    lambda: entries(AUTHORITY, *steps_of(AUTHORITY, 4), assigned(0, 1)),
    kind="privacy",
    source="paper: basa, who may come how often",
)(_other_users)
mutant(
    "outsider-at-a-position",
    "BAA-10",
    "privacy: a position is assigned to a number that is on no roster",
    f"{_AUTHORITY}:authority_assign",
    lambda: entries(AUTHORITY, OPEN, assigned(7, 0)),
    kind="privacy",
    source="clause in part",
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
    lambda: entries(AUTHORITY, OPEN, assigned(0, 0), wish(1, 0)),
    kind="privacy",
    source="clause left out",
)(
    lenient(
        seats=lambda state, inbox: (*state.seats[:-1], *(replace(s, user=inbox[0].sender) for s in state.seats[-1:]))
    )
)
mutant(
    "key-given-twice",
    "BAA-12",
    "privacy: a key is given as often as it is asked for",
    f"{_AUTHORITY}:authority_issue",
    lambda: entries(AUTHORITY, OPEN, assigned(0, 0), wish(0, 0), wish(0, 0)),
    kind="privacy",
    source="used twice",
)(lenient(seats=_seats(lambda seat: replace(seat, state="assigned") if seat.state == "keyed" else seat)))


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
    lambda: entries(AUTHORITY),
    kind="refusal",
    source="wrong term",
)(_key_of(_with_skipped))
mutant(
    "hashes-of-another-position",
    "BAA-13",
    "failure: the hashes that come with a key are those of the boxes to the next position",
    f"{_AUTHORITY}:authority_issue",
    lambda: entries(AUTHORITY),
    kind="refusal",
    source="off by one",
)(_key_of(_other_hashes))


@mutant(
    "epoch-keys-used-again",
    "BAA-07",
    "privacy: all epochs have the keys of the first one, so that a colluder's key opens boxes of the next ones",
    f"{SCRIPTS}:PositionParty.values",
    lambda: entries(AUTHORITY),
    kind="privacy",
    source="used twice",
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
    f"{MESSAGES}:Session.keys_signed",
    lambda: entries(AUTHORITY, OPEN),
    also=("BAA-29",),
    kind="privacy",
    source="field not bound: the epoch",
)
def _no_epoch(right: Function) -> Function:
    return lambda self, number, published: right(self, 0, published)


# ------------------------------------------------------------------------------------------- the authority: settlements


def _keyed(user: int, position: int) -> tuple[Call, ...]:
    return OPEN, assigned(user, position), wish(user, position)


mutant(
    "unkeyed-position-accepted",
    "BAA-14",
    "privacy: an upload is accepted at a position whose key nobody got",
    f"{_AUTHORITY}:_accept",
    lambda: entries(AUTHORITY, OPEN, assigned(0, 0), step_on("settle", told_of(0, 0))),
    kind="privacy",
    source="clause in part",
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
    lambda: entries(AUTHORITY, *_keyed(0, 0), step_on("settle", replace(told_of(0, 0), signature=bytes(64)))),
    kind="privacy",
    source="paper: basa, who may send which box",
)(without(basa_authority, "verify", nothing))


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
    lambda: entries(AUTHORITY, *steps_of(AUTHORITY, 4), expired(0)),
    kind="privacy",
    source="clause left out",
)(_settled_again)
mutant(
    "position-given-again",
    "BAA-16",
    "privacy: a position that timed out is free again, though its key was given out, as in the paper",
    f"{_AUTHORITY}:_time_out",
    lambda: entries(AUTHORITY, *_keyed(0, 0), expired(0), assigned(1, 0)),
    also=("BAA-12",),
    kind="privacy",
    source="paper: BASA-TO",
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
    lambda: entries(AUTHORITY, OPEN, assigned(0, 0), expired(0)),
    kind="refusal",
    source="other rule: every timeout skips",
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
    lambda: entries(AUTHORITY, void=True),
    kind="privacy",
    source="clause left out",
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
    f"{MESSAGES}:check_length",
    lambda: entries(AUTHORITY, *_keyed(0, 0), step_on("settle", replace(told_of(0, 0), hashes=bytes(33)))),
    also=("BAA-14", "BAA-39"),
    kind="acceptance",
    source="clause left out",
)(lambda right: nothing)


# ---------------------------------------------------------------------------------------------- the authority: releases


def _close(epoch: int = FIRST) -> Call:
    return step_on("close", everybody().close_request(epoch))


@mutant(
    "closed-while-assigned",
    "BAA-18",
    "failure: an epoch is closed while the last position is open, and its upload comes too late",
    f"{_AUTHORITY}:authority_close",
    lambda: entries(AUTHORITY, *steps_of(AUTHORITY, 16), _close()),
    kind="acceptance",
    source="clause left out",
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
    lambda: entries(AUTHORITY, *steps_of(AUTHORITY, 4), _close()),
    kind="privacy",
    source="clause left out",
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
    lambda: entries(AUTHORITY, *_drained()),
    kind="privacy",
    source="clause in part",
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
    steps: list[Call] = [OPEN]
    for user in range(5):
        steps += [assigned(user, user), wish(user, user)]
        steps += [step_on("settle", told_of(user, user)) if user < 2 else expired(user)]
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
    lambda: entries(AUTHORITY),
    kind="privacy",
    source="clause left out",
)(_with_slots(lambda state: _all(state, PAIR, SELF) if state.session.parameters.settle else []))
mutant(
    "self-key-of-a-skipped-position",
    "BAA-20",
    "privacy: an upload that comes late, or that the server held back, loses its self mask",
    f"{_AUTHORITY}:authority_close",
    lambda: entries(AUTHORITY),
    kind="privacy",
    source="wrong term",
)(_with_slots(lambda state: _all(state, SELF) if state.session.parameters.settle else []))
mutant(
    "pair-key-of-an-accepted-position",
    "BAA-20",
    "privacy: the masks to an accepted position are known to the server",
    f"{_AUTHORITY}:authority_close",
    lambda: entries(AUTHORITY),
    kind="privacy",
    source="wrong term",
)(_with_slots(lambda state: _all(state, PAIR) if state.session.parameters.settle else []))
mutant(
    "keys-released-in-void",
    "BAA-21",
    "privacy: pair keys are released where nothing needs them",
    f"{_AUTHORITY}:authority_close",
    lambda: entries(AUTHORITY, void=True),
    kind="privacy",
    source="clause in part",
)(_with_slots(lambda state: _right_slots(state) or _all(state, PAIR)))


@mutant(
    "keys-released-when-abandoned",
    "BAA-21",
    "privacy: an epoch that is given up releases the keys of its positions",
    f"{_AUTHORITY}:authority_abandon",
    lambda: entries(AUTHORITY, OPEN, step_on("abandon", everybody().abandonment(FIRST))),
    kind="privacy",
    source="clause in part",
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
    lambda: entries(AUTHORITY, OPEN, step_on("abandon", everybody().abandonment(FIRST)), assigned(0, 0)),
    kind="privacy",
    source="kept too long",
)
def _still_open(right: Function) -> Function:
    return lambda state: state
