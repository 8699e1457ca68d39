"""Planted bugs in the steps of BASecAgg: stamps, shares, buffers, and who may do what when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic.staleness import floor_weight
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.targets import reference_basecagg_scripts as scripts
from secagg_spec.conformance.targets.reference_scripts import Call, entries_of
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.crypto.keys import public_key
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import basecagg, basecagg_store
from secagg_spec.protocols.basecagg import (
    BufferedSet,
    ModelRequest,
    ModelStamp,
    StampedShare,
    StampedUpdate,
    WeightedShare,
)
from secagg_spec.protocols.codec import Message, encode, vector_bytes
from secagg_spec.protocols.shape import SERVER, Role

Function = Callable[..., Any]
_BAS = "secagg_spec.protocols.basecagg"
_STORE = "secagg_spec.protocols.basecagg_store"
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_SCRIPTS = "secagg_spec.conformance.targets.reference_basecagg_scripts"
_ID = bytes(16)
_NUMBERS: Mapping[str, Any] = MappingProxyType(
    {
        "q": "97",
        "N": 5,
        "D": 1,
        "U": 3,
        "T": 1,
        "d": 3,
        "K": 3,
        "c_l": "1",
        "c_g": "5",
        "tau_max": 2,
        "kind": "polynomial",
        "numerator": 1,
        "denominator": 1,
        "start": "0",
    }
)
_FIRST = 7
_ROW = np.zeros(3, np.uint64)


# ---------------------------------------------------------------------------------------- the parties of a witness


def _call(phase: str, *messages: Message) -> Call:
    return Call(phase, tuple(encode(message) for message in messages))


def _user(*calls: Call, sealed: bool = False) -> object:
    """Return the entries of user 0, whose masks are all different."""
    channel: Any = "plain"
    if sealed:
        keys = [bytes([user + 1]) * 32 for user in range(5)]
        roster = [public_key(key).hex() for key in keys]
        channel = {"private": keys[0].hex(), "roster": roster}
    vectors = [pack(np.array([at, at + 1, at + 2], np.uint64)) for at in (1, 5, 9)]
    noises = [pack(np.array([at, at + 3], np.uint64)) for at in (4, 8, 12)]
    setup = {"user": 0, "channel": channel, "updates": vectors}
    rand = {"masks": vectors, "noises": noises}
    return entries_of(scripts.Stamped().open(Role.USER, _NUMBERS, _ID, _FIRST, setup, rand), calls)


def _server(*calls: Call) -> object:
    """Return the entries of the server."""
    rand = {"roundings": [pack_reals(np.array([0.0, 0.75, 0.25]))] * 3}
    return entries_of(scripts.Stamped().open(Role.SERVER, _NUMBERS, _ID, _FIRST, {}, rand), calls)


_REQUEST, _UPLOAD, _CLOSE = Call("request"), Call("upload"), Call("close")


def _stamp(round: int) -> Call:
    return _call("share", ModelStamp(_ID, round, SERVER, 0))


def _hold(stamp: int, *senders: int) -> Call:
    payload = vector_bytes(np.array([stamp, 1], np.uint64))
    return _call("hold", *(StampedShare(_ID, stamp, sender, 0, payload) for sender in senders))


def _shown(round: int, entries: Mapping[int, int]) -> Call:
    """Return the step on a buffer, from the stamps of its users, with the largest weights."""
    users, stamps = tuple(entries), np.array(list(entries.values()), np.uint64)
    weights = np.array([-(-5 // (1 + round - stamp)) for stamp in entries.values()], np.uint64)
    return _call("recover", BufferedSet(_ID, round, SERVER, 0, users, stamps, weights))


def _asking(*users: int, round: int = _FIRST) -> Call:
    return _call("request", *(ModelRequest(_ID, round, user, SERVER) for user in users))


def _sharing(*users: int, stamp: int = _FIRST, missing: int | None = None) -> Call:
    pairs = [(i, j) for i in users for j in range(5) if j not in (i, missing)]
    return _call("share", *(StampedShare(_ID, stamp, i, j, bytes([i, j])) for i, j in pairs))


def _sending(*users: int, stamp: int = _FIRST) -> Call:
    return _call("upload", *(StampedUpdate(_ID, stamp, user, SERVER, _ROW + np.uint64(user)) for user in users))


def _answering(*users: int, round: int = _FIRST) -> Call:
    return _call("recover", *(WeightedShare(_ID, round, user, SERVER, _ROW[:2]) for user in users))


_ALL = (_asking(0, 1, 2, 3, 4), _sharing(0, 1, 2, 3, 4))
_RECOVERED = (*_ALL, _sending(0, 1, 2), _CLOSE, _answering(0, 1, 2))


def _lenient(**changes: Any) -> Callable[[Function], Function]:
    """Return what makes a step forget parts of its state before it judges; the step's own changes are kept."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            loose = {name: value(state) if callable(value) else value for name, value in changes.items()}
            return right(replace(state, **loose), inbox, randomness=randomness)

        return wrong

    return build


def _after(change: Callable[[Any, Any], Any]) -> Callable[[Function], Function]:
    """Return what changes the state that a step leads to; `change` gets the state before and the one after."""

    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = right(state, inbox, randomness=randomness)
            return change(state, after), outbox

        return wrong

    return build


# ------------------------------------------------------------------------------------------------------------- a user


mutant(
    "second-stamped-upload",
    "BSA-07",
    "privacy: a user keeps its mask after the upload, and uploads again under it",
    f"{_BAS}:user_upload",
    lambda: _user(_REQUEST, _stamp(7), _UPLOAD, _UPLOAD),
    kind="privacy",
    source="paper: BAS-MASK1",
)(_after(lambda before, after: replace(after, phase="training", mask=before.mask)))
mutant(
    "old-stamp-taken",
    "BSA-08",
    "privacy: a user shares a second mask under a stamp that it has used, or under an older one",
    f"{_BAS}:user_share",
    lambda: _user(_REQUEST, _stamp(7), _UPLOAD, _REQUEST, _stamp(7)),
    kind="privacy",
    source="clause left out",
)(_lenient(stamp=None))
mutant(
    "older-share-overwrites-newer",
    "BSA-09",
    "failure: whatever share comes last is held, so that a replay makes the user refuse the next buffer",
    f"{_BAS}:user_hold",
    lambda: _user(_hold(8, 1), _hold(7, 1)),
    kind="acceptance",
    source="clause left out",
)(_lenient(newest=lambda state: {}))
mutant(
    "forgotten-stamps-accepted",
    "BSA-09",
    "privacy: once a share was used its stamp is forgotten as well, so that it can be replayed and answered again",
    f"{_BAS}:user_hold",
    lambda: _user(_hold(7, 1, 2, 3), _shown(7, {1: 7, 2: 7, 3: 7}), _hold(7, 1)),
    kind="privacy",
    source="forgotten",
)(_lenient(newest=lambda state: {user: stamp for user, stamp in state.newest.items() if user in state.held}))
mutant(
    "late-buffer-answered",
    "BSA-26",
    "privacy: a user answers for a buffer of a round that is over, after it began with a new stamp",
    f"{_BAS}:user_recover",
    lambda: _user(_hold(7, 1, 2, 3), _REQUEST, _stamp(8), _shown(7, {1: 7, 2: 7, 3: 7})),
    kind="privacy",
    source="clause in part",
)(lambda right: _restoring(right, "stamp"))
mutant(
    "second-buffer-of-a-round-answered",
    "BSA-26",
    "privacy: a server that announces two buffers in a round gets two answers",
    f"{_BAS}:user_recover",
    lambda: _user(_hold(7, 1, 2, 3), _shown(8, {1: 7, 2: 7, 3: 7}), _hold(8, 1, 2, 3), _shown(8, {1: 8, 2: 8, 3: 8})),
    kind="privacy",
    source="clause in part",
)(_lenient(answered=None))
mutant(
    "share-kept-after-the-answer",
    "BSA-28",
    "privacy: shares of one mask are released with two weights, which gives away a single update",
    f"{_BAS}:user_recover",
    lambda: _user(_hold(7, 1, 2, 3), _shown(7, {1: 7, 2: 7, 3: 7}), _shown(8, {1: 7, 2: 7, 3: 7})),
    also=("BSA-25",),
    kind="privacy",
    source="paper: basecagg, how often a share is used",
)(_after(lambda before, after: replace(after, held=before.held)))


def _restoring(right: Function, name: str) -> Function:
    """Return a step that does not look at a part of the state."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(replace(state, **{name: None}), inbox, randomness=randomness)
        return replace(after, **{name: getattr(state, name)}), outbox

    return wrong


class _Pile(dict[int, Any]):
    """The shares that a user holds, and all those that newer ones took the place of."""

    def __init__(self, held: Mapping[int, Any], older: Sequence[tuple[int, Any]]) -> None:
        super().__init__(held)
        self.older = list(older)


@mutant(
    "shares-pile-up",
    "BSA-10",
    "privacy: an older share of a sender stays, so that two masks of one user can be asked for",
    f"{_BAS}:TABLE",
    lambda: _user(_hold(7, 1, 2, 3), _hold(8, 1), _shown(8, {1: 7, 2: 7, 3: 7})),
    kind="privacy",
    source="paper: basecagg, which shares are kept, and how long",
)
def _pile_up(table: Any) -> Any:
    def hold(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = basecagg.user_hold(state, inbox, randomness=randomness)
        older = [(user, kept) for user, kept in state.held.items() if after.held[user] is not kept]
        return replace(after, held=_Pile(after.held, [*getattr(state.held, "older", ()), *older])), outbox

    def recover(state: Any, inbox: Any, *, randomness: Any) -> Any:
        held = dict(state.held)
        for message in inbox:
            asked = dict(zip(getattr(message, "users", ()), getattr(message, "stamps", ()), strict=False))
            held.update({u: kept for u, kept in getattr(state.held, "older", ()) if asked.get(u) == kept.stamp})
        return basecagg.user_recover(replace(state, held=held), inbox, randomness=randomness)

    other = {"hold": hold, "recover": recover}
    return tuple(
        replace(step, run=other[step.phase]) if step.role is Role.USER and step.phase in other else step
        for step in table
    )


@mutant(
    "mask-used-for-two-stamps",
    "BSA-04",
    "privacy: one mask serves for all updates, so that the server sees their differences",
    f"{_SCRIPTS}:StampedParty.values",
    lambda: _user(_REQUEST, _stamp(7), _UPLOAD, _REQUEST, _stamp(8), _UPLOAD),
    kind="privacy",
    source="used twice",
)
def _one_mask(right: Function) -> Function:
    def wrong(self: Any, step: Any) -> Any:
        values = right(self, step)
        return {**values, "mask": self.sampled["mask"][0]} if "mask" in values else values

    return wrong


@mutant(
    "stamp-not-in-the-binding",
    "BSA-03",
    "acceptance: payloads are sealed for the session, and open under any stamp",
    "secagg_spec.crypto.sealing:SealedStampedChannel._at",
    lambda: _user(_REQUEST, _stamp(7), sealed=True),
    kind="acceptance",
    source="field not bound: the stamp",
)
def _no_stamp(right: Function) -> Function:
    return lambda self, stamp: right(self, 0)


@mutant(
    "binding-without-tau-max",
    "BSA-03",
    "no interoperation: the largest staleness is not among the numbers that keys are bound to",
    f"{_BAS}:sealing_context",
    lambda: basecagg.sealing_context(scripts.read_parameters(**_NUMBERS), _ID),
    kind="form",
    source="field not bound: tau_max",
)
def _without_tau(right: Function) -> Function:
    return lambda parameters, *rest: right(replace(parameters, tau_max=0), *rest)


# --------------------------------------------------------------------------------------------------------- both of them


@mutant(
    "states-unchecked",
    "BSA-07",
    "acceptance: a step is taken whenever it is asked for, in any state",
    f"{_BAS}:_require",
    lambda: _server(*_ALL, _sending(0, 1, 2), _CLOSE, _CLOSE),
    also=("BSA-17", "BSA-20"),
    kind="acceptance",
    source="clause left out",
)
def _any_state(right: Function) -> Function:
    return lambda condition, message, blamed=(): None


@mutant(
    "stamped-vectors-are-fitted",
    "MOD-07",
    "acceptance: a vector in a message is cut, continued or reduced until it fits",
    f"{_BAS}:_vector",
    lambda: _user(_call("hold", StampedShare(_ID, 7, 1, 0, vector_bytes(np.array([98], np.uint64))))),
    also=("MOD-06",),
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    def wrong(parameters: Any, message: Any, value: Any, length: int) -> Any:
        padded = np.concatenate([value, np.zeros(length, np.uint64)])[:length]
        return right(parameters, message, padded % np.uint64(parameters.q), length)

    return wrong


# ------------------------------------------------------------------------------------------- the server: stamps, shares


@mutant(
    "round-that-the-user-knows",
    "BSA-11",
    "failure: the server gives out the round that the user knows of, and updates are older than they need be",
    f"{_BAS}:server_request",
    lambda: _server(_asking(0, round=3)),
    kind="sum",
    source="other rule: the round of the user is given out",
)
def _known_round(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        known = {message.sender: message.round for message in inbox}
        records = {**after.records, **{user: basecagg.Record(round) for user, round in known.items()}}
        return replace(after, records=records), tuple(replace(m, round=known[m.receiver]) for m in outbox)

    return wrong


mutant(
    "stamp-given-twice",
    "BSA-12",
    "privacy: a user that asks again in a round gets its stamp again, and uploads twice under it",
    f"{_BAS}:server_request",
    lambda: _server(_asking(0), _asking(0)),
    kind="privacy",
    source="used twice",
)(_lenient(records=lambda state: {u: r for u, r in state.records.items() if r.stamp != state.round}))
mutant(
    "request-while-the-update-waits",
    "BSA-12",
    "failure: a user whose update waits gets a new stamp, and the share that the buffer needs is replaced",
    f"{_BAS}:server_request",
    lambda: _server(*_RECOVERED, _sending(3), _asking(3)),
    kind="acceptance",
    source="clause in part",
)(
    lambda right: (
        lambda state, inbox, *, randomness: _with(
            right(replace(state, buffer={}), inbox, randomness=randomness), buffer=state.buffer
        )
    )
)


def _with(taken: Any, **changes: Any) -> Any:
    """Return what a step gives, with other parts of the state."""
    after, outbox = taken
    return replace(after, **changes), outbox


@mutant(
    "later-round-passed-over",
    "BSA-12",
    "failure: a server that fell behind its users gives out stamps that they have used",
    f"{_BAS}:server_request",
    lambda: _server(_asking(0, round=9)),
    kind="acceptance",
    source="clause in part",
)
def _later(right: Function) -> Function:
    return lambda state, inbox, *, randomness: right(
        state, [replace(m, round=min(m.round, state.round)) for m in inbox], randomness=randomness
    )


def _relabelled(state: Any, inbox: Sequence[Any]) -> tuple[list[Any], dict[int, int]]:
    """Return the messages under the newest stamps of their senders, and the rounds that they had."""
    records = state.records
    moved = [replace(m, round=records[m.sender].stamp) if m.sender in records else m for m in inbox]
    return moved, {id(new): old.round for new, old in zip(moved, inbox, strict=True)}


@mutant(
    "batch-under-an-old-stamp-relayed",
    "BSA-13",
    "failure: shares under a stamp that was replaced go out, and are held in place of those that count",
    f"{_BAS}:server_share",
    lambda: _server(_asking(0), _sharing(0, stamp=6)),
    kind="acceptance",
    source="clause in part",
)
def _old_batch(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        moved, rounds = _relabelled(state, inbox)
        after, outbox = right(state, moved, randomness=randomness)
        return after, tuple(replace(message, round=rounds[id(message)]) for message in outbox)

    return wrong


@mutant(
    "incomplete-batch-relayed",
    "BSA-13",
    "failure: shares are relayed although some are missing, and these users can't answer for the update",
    f"{_BAS}:server_share",
    lambda: _server(_asking(0), _sharing(0, missing=3)),
    kind="acceptance",
    source="clause in part",
)
def _incomplete(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        there = {(message.sender, message.receiver) for message in inbox}
        first = {message.sender: message for message in inbox}
        users = range(state.parameters.N)
        missing = [(i, j) for i in first for j in users if i != j and (i, j) not in there]
        more = [replace(first[i], receiver=j) for i, j in missing]
        after, outbox = right(state, [*inbox, *more], randomness=randomness)
        return after, tuple(message for message in outbox if not any(message is made for made in more))

    return wrong


mutant(
    "batch-relayed-again",
    "BSA-13",
    "failure: shares that were relayed are relayed again, and refused by users that saw them",
    f"{_BAS}:server_share",
    lambda: _server(_asking(0), _sharing(0), _sharing(0)),
    kind="acceptance",
    source="used twice",
)(_lenient(records=lambda state: {user: replace(r, relayed=False) for user, r in state.records.items()}))


# ------------------------------------------------------------------------------------------------ the server: updates


mutant(
    "update-before-its-shares",
    "BSA-14",
    "failure: an update is taken whose mask nobody can remove, and the whole buffer is lost",
    f"{_BAS}:server_upload",
    lambda: _server(_asking(0), _sending(0)),
    kind="acceptance",
    source="clause in part",
)(_lenient(records=lambda state: {user: replace(r, relayed=True) for user, r in state.records.items()}))


@mutant(
    "update-under-any-stamp",
    "BSA-14",
    "wrong sum: an update of an earlier stamp counts as one of the newest",
    f"{_BAS}:server_upload",
    lambda: _server(_asking(0), _sharing(0), _sending(0, stamp=6)),
    kind="acceptance",
    source="clause in part",
)
def _any_stamp(right: Function) -> Function:
    return lambda state, inbox, *, randomness: right(state, _relabelled(state, inbox)[0], randomness=randomness)


mutant(
    "late-update-counted-twice",
    "BSA-15",
    "wrong sum: an update that was taken before is taken again, in its buffer or in the next one",
    f"{_BAS}:server_upload",
    lambda: _server(*_RECOVERED, _sending(1)),
    kind="acceptance",
    source="used twice",
)(_lenient(records=lambda state: {user: replace(r, taken=False) for user, r in state.records.items()}))


@mutant(
    "stale-update-taken",
    "BSA-16",
    "failure: an update of any age is taken, and users refuse the buffer that holds it",
    f"{_BAS}:_check_arrival",
    lambda: _server(*_stale()),
    kind="acceptance",
    source="clause left out",
)
def _any_age(right: Function) -> Function:
    return lambda state, user, stamp: right(replace(state, round=min(state.round, stamp)), user, stamp)


def _stale() -> list[Call]:
    """Return steps at whose end an update comes that is one round too old."""
    calls = list(_ALL)
    for round in (7, 8, 9):
        calls += [*([] if round == 7 else [_asking(0, 1, 2), _sharing(0, 1, 2, stamp=round)])]
        calls += [_sending(0, 1, 2, stamp=round), _CLOSE, _answering(0, 1, 2, round=round)]
    return [*calls, _sending(3)]


@mutant(
    "update-lost-in-a-full-buffer",
    "BSA-17",
    "failure: an update that there is no room for is taken and dropped, and its user believes that it counts",
    f"{_BAS}:server_upload",
    lambda: _server(*_ALL, _sending(0, 1, 2), _sending(3)),
    kind="acceptance",
    source="silent repair",
)
def _dropped(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        room = state.parameters.K - len(state.buffer)
        after, outbox = right(replace(state, buffer={}), inbox[: state.parameters.K], randomness=randomness)
        kept = dict(list(after.buffer.items())[:room])
        return replace(after, buffer={**state.buffer, **kept}), outbox

    return wrong


@mutant(
    "update-taken-while-recovering",
    "BSA-17",
    "failure: an update that comes while the buffer is recovered is taken, and lost with the buffer",
    f"{_BAS}:server_upload",
    lambda: _server(*_ALL, _sending(0, 1, 2), _CLOSE, _sending(3)),
    kind="acceptance",
    source="clause in part",
)
def _while_recovering(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if not state.entries:
            return right(state, inbox, randomness=randomness)
        after, outbox = right(replace(state, entries=(), buffer={}), inbox, randomness=randomness)
        return replace(after, entries=state.entries, buffer=state.buffer), outbox

    return wrong


# ------------------------------------------------------------------------------------------------ the server: buffers


@mutant(
    "one-draw-for-all-weights",
    "BSA-18",
    "bias: the weights of a buffer are rounded by one draw, up or down together",
    f"{_BAS}:server_close",
    lambda: _server(*_RECOVERED, _asking(0), _sharing(0, stamp=8), _sending(0, stamp=8), _sending(3, 4), _CLOSE),
    kind="sum",
    source="weak draw: one draw for all",
)
def _one_draw(right: Function) -> Function:
    return lambda state, inbox, *, randomness: right(
        state, inbox, randomness={name: np.full_like(draws, draws[0]) for name, draws in randomness.items()}
    )


@mutant(
    "announced-weights-differ",
    "BSA-19",
    "wrong sum: the server announces the smaller weights, and uses those that it drew",
    f"{_BAS}:server_close",
    lambda: _server(*_RECOVERED, _asking(0), _sharing(0, stamp=8), _sending(0, stamp=8), _sending(3, 4), _CLOSE),
    kind="sum",
    source="other rule: weights rounded down where they are announced",
)
def _announced(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        p, first = state.parameters, outbox[0]
        ages = [first.round - int(stamp) for stamp in first.stamps]
        least = [floor_weight(p.staleness, p.c_g, tau) for tau in ages]
        return after, tuple(replace(message, weights=np.array(least, np.uint64)) for message in outbox)

    return wrong


@mutant(
    "buffer-in-order-of-arrival",
    "BSA-19",
    "no interoperation: the entries of a buffer are announced as they came, and users refuse them",
    f"{_BAS}:server_close",
    lambda: _server(*_ALL, _sending(2, 0), _sending(1), _CLOSE),
    kind="form",
    source="order",
)
def _arrival(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        order = [outbox[0].users.index(user) for user in state.buffer]
        return after, tuple(
            replace(m, users=tuple(m.users[at] for at in order), stamps=m.stamps[order], weights=m.weights[order])
            for m in outbox
        )

    return wrong


@mutant(
    "buffer-closed-early",
    "BSA-20",
    "privacy: a buffer of fewer than K updates is closed, and says more about each of them",
    f"{_BAS}:server_close",
    lambda: _server(*_ALL, _sending(0, 1), _CLOSE),
    kind="privacy",
    source="clause left out",
)
def _early(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        count = len(state.buffer)
        if not 0 < count < state.parameters.K:
            return right(state, inbox, randomness=randomness)
        small = replace(state.parameters, K=3)
        object.__setattr__(small, "K", count)
        cut = {name: draws[:count] for name, draws in randomness.items()}
        after, outbox = right(replace(state, parameters=small), inbox, randomness=cut)
        return replace(after, parameters=state.parameters), outbox

    return wrong


mutant(
    "recovery-stays-in-the-round",
    "BSA-11",
    "failure: the round does not move on with a recovery, so that stamps are given out again",
    f"{_BAS}:server_recover",
    lambda: _server(*_RECOVERED, _asking(0)),
    kind="refusal",
    source="kept too long",
)(_after(lambda before, after: replace(after, round=before.round)))
mutant(
    "buffer-not-emptied",
    "BSA-34",
    "failure: updates stay in the buffer after it was recovered, and there is no room for others",
    f"{_BAS}:server_recover",
    lambda: _server(*_RECOVERED, _sending(3)),
    kind="refusal",
    source="kept too long",
)(_after(lambda before, after: replace(after, buffer=before.buffer)))


@mutant(
    "few-answers-end-the-buffer",
    "BSA-30",
    "failure: after too few answers the buffer is given up, although more may still come",
    f"{_BAS}:server_recover",
    lambda: _server(*_ALL, _sending(0, 1, 2), _CLOSE, _answering(0, 1), _answering(0, 1, 2)),
    also=("ERR-01",),
    kind="refusal",
    source="trace of a refusal",
)
def _given_up(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except (ParameterError, ProtocolError):
            object.__setattr__(state, "entries", ())
            raise

    return wrong


@mutant(
    "restart-loses-the-buffer",
    "BSA-35",
    "failure: a server that comes back has forgotten the updates that it took, and refuses them when they come again",
    f"{_STORE}:_restored",
    lambda: sorted(basecagg_store.restore(_stored()).buffer),
    reach="tests/protocols/test_basecagg.py::test_a_stored_state_comes_back_as_it_was_and_spoiled_ones_are_refused",
    kind="refusal",
    source="forgotten",
)
def _lost(right: Function) -> Function:
    return lambda data, kind: replace(right(data, kind), buffer={}, entries=())


def _stored() -> dict[str, Any]:
    """Return what a server stores that has taken an update."""
    party = scripts.Stamped().open(Role.SERVER, _NUMBERS, _ID, _FIRST, {}, {"roundings": []})
    for call in (*_ALL, _sending(0)):
        party.take(call)
    return basecagg_store.store(party.state)


@mutant(
    "unknown-events-unnoticed",
    "ADP-35",
    "failure: the form of events is not checked, and one that is not of the table breaks the adapter",
    f"{_SDK}:_is_event",
    lambda: _scheduled({"event": "stop", "user": 0}),
    kind="form",
    source="clause left out",
)
def _any_event(right: Function) -> Function:
    return lambda value: isinstance(value, dict)


def _scheduled(event: Mapping[str, Any]) -> object:
    """Return whether a list with one event has the form of a schedule."""
    try:
        secagg_adapter.check_form("schedule", [dict(event)], "schedule")
    except secagg_adapter.Reject as reject:
        return reject.code
    return "a schedule"
