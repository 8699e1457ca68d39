"""Planted bugs in messages and in the steps of a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets.reference_scripts import Call, play, server_end
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.errors import BadShare, Malformed, ParameterError, ProtocolError
from secagg_spec.protocols import codec, lightsecagg
from secagg_spec.protocols.codec import encode, vector_bytes, vector_from_bytes
from secagg_spec.protocols.lightsecagg import AggregatedShare, MaskedUpdate, MaskShare, SurvivingSet
from secagg_spec.protocols.shape import SERVER, Role

Function = Callable[..., Any]
_LSA = "secagg_spec.protocols.lightsecagg"
_CODEC = "secagg_spec.protocols.codec"
_ACCEPT = "secagg_spec.protocols.shape:accept"
_TABLE = f"{_LSA}:TABLE"
_TINY = lightsecagg.PRESETS["tiny"]
_ID = bytes(16)
_OTHERS = (1, 2, 3, 4)
_SAMPLED = {"mask": np.array([1, 2, 3], np.uint64), "noise": np.array([[4, 5]], np.uint64)}


# ---------------------------------------------------------------------------------------- the parties of a witness


def _share(sender: int, **changes: Any) -> bytes:
    message = MaskShare(_ID, 0, sender, 0, vector_bytes(np.array([sender, 1], np.uint64)))
    return encode(replace(message, **changes))


def _set(*users: int) -> Call:
    return Call("recover", (encode(SurvivingSet(_ID, 0, SERVER, 0, users)),))


_SHARE = Call("share")
_UPLOAD = Call("upload", tuple(_share(sender) for sender in _OTHERS))


def _user(*calls: Call) -> object:
    """Return the entries of user 0."""
    start = lightsecagg.user_start(_TINY, _ID, 0, 0, np.array([6, 5, 4], np.uint64), PlainChannel())
    return play(lightsecagg.TABLE, Role.USER, start, calls, _SAMPLED, lambda state: {})


def _parcels(missing: Sequence[tuple[int, int]] = (), payload: bytes = b"\1") -> Call:
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j and (i, j) not in missing]
    return Call("share", tuple(encode(MaskShare(_ID, 0, i, j, payload)) for i, j in pairs))


def _updates(*users: int) -> Call:
    row = np.zeros(3, np.uint64)
    return Call("upload", tuple(encode(MaskedUpdate(_ID, 0, user, SERVER, row)) for user in users))


def _answers(*users: int, wrong: int | None = None) -> Call:
    rows = [np.full(2, user == wrong, np.uint64) for user in users]
    pairs = zip(users, rows, strict=True)
    return Call("recover", tuple(encode(AggregatedShare(_ID, 0, user, SERVER, row)) for user, row in pairs))


def _server(*calls: Call) -> object:
    """Return the entries of the server."""
    start = lightsecagg.server_start(_TINY, _ID, 0)
    return play(lightsecagg.TABLE, Role.SERVER, start, calls, {}, server_end)


def _with_step(table: Any, phase: str, role: Role, build: Callable[[Function], Function]) -> Any:
    """Return the table of phases with another function for one of its rows."""
    return tuple(
        replace(step, run=build(step.run)) if (step.phase, step.role) == (phase, role) else step for step in table
    )


# ------------------------------------------------------------------------------------------------------ messages


def _decoded(data: bytes) -> object:
    try:
        return codec.decode(SurvivingSet, data).users
    except Malformed as error:
        return type(error).__name__


_SET = _set(0, 1, 2).inbox[0]


@mutant(
    "trailing-bytes-accepted",
    "MSG-02",
    "acceptance: what follows the last field is not looked at",
    f"{_CODEC}:decode",
    lambda: _decoded(_SET + b"\0"),
    kind="acceptance",
    source="clause in part",
)
def _trailing(right: Function) -> Function:
    def wrong(kind: Any, data: bytes) -> Any:
        for end in range(len(data), -1, -1):
            try:
                return right(kind, data[:end])
            except Malformed as error:
                if "follow" not in str(error):
                    raise
        raise AssertionError(data)

    return wrong


@mutant(
    "type-number-unchecked",
    "MSG-02",
    "acceptance: the type number is skipped, and any message with fitting fields is read",
    f"{_CODEC}:decode",
    lambda: _decoded(b"\4\1" + _SET[2:]),
    kind="acceptance",
    source="clause in part",
)
def _type(right: Function) -> Function:
    return lambda kind, data: right(kind, kind.TYPE.to_bytes(2, "little") + data[2:])


@mutant(
    "integers-big-endian",
    "MSG-01",
    "no interoperation: the integers of messages are written in network order",
    f"{_CODEC}:Unsigned.write",
    lambda: encode(SurvivingSet(_ID, 1, SERVER, 0, (0, 1))),
    kind="form",
    source="encoding",
)
def _big_endian(right: Function) -> Function:
    return lambda self, name, value: right(self, name, value)[::-1]


@mutant(
    "sender-after-receiver",
    "MSG-01",
    "no interoperation: the receiver stands before the sender in the header",
    f"{_CODEC}:encode",
    lambda: codec.encode(SurvivingSet(_ID, 1, SERVER, 0, (0, 1))),
    kind="form",
    source="order",
)
def _swapped(right: Function) -> Function:
    return lambda message: right(replace(message, sender=message.receiver, receiver=message.sender))


def _lenient(right: Function, **given: str) -> Function:
    """Return `accept` that takes a part of every header as right."""

    def wrong(inbox: Any, kinds: Any, **expected: Any) -> None:
        right([replace(message, **{name: expected[name] for name in given}) for message in inbox], kinds, **expected)

    return wrong


@mutant(
    "session-unchecked",
    "MSG-03",
    "acceptance: messages of another session are taken",
    _ACCEPT,
    lambda: _user(_SHARE, Call("upload", (_share(1, session=bytes([1]) * 16),))),
    kind="acceptance",
    source="clause in part",
)
def _session(right: Function) -> Function:
    return _lenient(right, session="")


@mutant(
    "round-unchecked",
    "MSG-03",
    "acceptance: messages of an earlier round are taken",
    _ACCEPT,
    lambda: _user(_SHARE, Call("upload", (_share(1, round=1),))),
    kind="acceptance",
    source="clause in part",
)
def _round(right: Function) -> Function:
    return _lenient(right, round="")


@mutant(
    "receiver-unchecked",
    "MSG-03",
    "acceptance: messages for somebody else are taken",
    _ACCEPT,
    lambda: _user(_SHARE, Call("upload", (_share(1, receiver=2),))),
    kind="acceptance",
    source="clause in part",
)
def _receiver(right: Function) -> Function:
    return _lenient(right, receiver="")


@mutant(
    "stranger-accepted",
    "MSG-03",
    "acceptance: messages from outside the roster are taken",
    _ACCEPT,
    lambda: _user(_SHARE, Call("upload", (_share(9),))),
    kind="acceptance",
    source="clause in part",
)
def _stranger(right: Function) -> Function:
    def wrong(inbox: Any, kinds: Any, *, senders: Any, **expected: Any) -> None:
        right(inbox, kinds, senders={message.sender for message in inbox}, **expected)

    return wrong


@mutant(
    "last-message-wins",
    "MSG-04",
    "acceptance: a second message of a sender takes the place of the first",
    _ACCEPT,
    lambda: _user(_SHARE, Call("upload", (_share(1), _share(1)))),
    kind="acceptance",
    source="silent repair",
)
def _last_wins(right: Function) -> Function:
    return lambda inbox, kinds, **expected: right(
        list({message.sender: message for message in inbox}.values()), kinds, **expected
    )


@mutant(
    "server-takes-parcels-twice",
    "MSG-04",
    "acceptance: the server relays the later one of two shares from one user to another",
    "secagg_spec.protocols.shape:parcels",
    lambda: _server(Call("share", _parcels().inbox + _parcels(payload=b"\2").inbox)),
    kind="acceptance",
    source="silent repair",
)
def _twice(right: Function) -> Function:
    def wrong(inbox: Any, kind: Any, **expected: Any) -> Any:
        last = {(message.sender, message.receiver): message for message in inbox}
        return right(list(last.values()), kind, **expected)

    return wrong


# ------------------------------------------------------------------------------------------------- steps of a user


@mutant(
    "second-upload-allowed",
    "LSA-04",
    "privacy: a user that is asked again uploads again, under the same mask",
    _TABLE,
    lambda: _user(_SHARE, _UPLOAD, _UPLOAD),
    kind="privacy",
    source="used twice",
)
def _second_upload(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            again = replace(state, phase="upload") if state.phase == "recover" else state
            after, outbox = right(again, inbox, randomness=randomness)
            return replace(after, mask=state.mask), outbox

        return wrong

    return _with_step(table, "upload", Role.USER, build)


@mutant(
    "second-share-released",
    "LSA-12",
    "privacy: two aggregated shares for two sets give the mask of a single user away",
    _TABLE,
    lambda: _user(_SHARE, _UPLOAD, _set(0, 1, 2), _set(0, 1, 2, 3)),
    kind="privacy",
    source="paper: lightsecagg, one share per user and round",
)
def _second_share(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            again = replace(state, phase="recover") if state.phase == "done" else state
            after, outbox = right(again, inbox, randomness=randomness)
            return replace(after, held=state.held), outbox

        return wrong

    return _with_step(table, "recover", Role.USER, build)


@mutant(
    "refused-upload-counts",
    "ERR-01",
    "failure: an upload that was refused counts as the upload, and the user is lost",
    _TABLE,
    lambda: _user(_SHARE, Call("upload", (_share(9),)), _UPLOAD),
    kind="refusal",
    source="trace of a refusal",
)
def _refused_upload(table: Any) -> Any:
    return _with_step(table, "upload", Role.USER, lambda right: _marking(right, phase="recover"))


@mutant(
    "refused-set-forgets-shares",
    "ERR-01",
    "failure: a refused surviving set makes the user forget its shares, so that one wrong message ends the round",
    _TABLE,
    lambda: _user(_SHARE, _UPLOAD, _set(0), _set(0, 1, 2)),
    kind="refusal",
    source="trace of a refusal",
)
def _refused_set(table: Any) -> Any:
    return _with_step(table, "recover", Role.USER, lambda right: _marking(right, held={}))


def _marking(right: Function, **changes: Any) -> Function:
    """Return a step that changes the state when it is refused."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except (ParameterError, ProtocolError):
            for name, value in changes.items():
                object.__setattr__(state, name, value)
            raise

    return wrong


@mutant(
    "sealing-without-length",
    "LSA-18",
    "acceptance: the number of elements of an update is not bound by the keys",
    f"{_LSA}:sealing_context",
    lambda: lightsecagg.sealing_context(_TINY, _ID, 0),
    kind="acceptance",
    source="field not bound: d",
)
def _without_length(right: Function) -> Function:
    return lambda parameters, *rest: right(replace(parameters, d=1), *rest)


@mutant(
    "protocol-name-capitalised",
    "LSA-18",
    "no interoperation: the protocol has another name in the binding",
    f"{_LSA}:sealing_context",
    lambda: lightsecagg.sealing_context(_TINY, _ID, 0),
    kind="form",
    source="encoding",
)
def _capitalised(right: Function) -> Function:
    return lambda *given: replace(right(*given), protocol="LightSecAgg")


# ------------------------------------------------------------------------------------------- steps of the server


@mutant(
    "incomplete-sharers-relayed",
    "LSA-05",
    "failure: shares are relayed although some are missing, and users cannot answer for such a sharer",
    _TABLE,
    lambda: _server(_parcels(missing=[(3, 4)])),
    kind="acceptance",
    source="clause in part",
)
def _incomplete(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, _ = right(state, inbox, randomness=randomness)
            sharers = tuple(sorted({message.sender for message in inbox}))
            return replace(after, sharers=sharers), tuple(inbox)

        return wrong

    return _with_step(table, "share", Role.SERVER, build)


@mutant(
    "server-opens-shares",
    "LSA-05",
    "privacy: the server reads the shares before it relays them",
    _TABLE,
    lambda: _server(_parcels(payload=b"\1\0\0\0\2\0\0\0\0")),
    kind="privacy",
    source="clause in part",
)
def _opens(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            for message in inbox:
                vector_from_bytes(message.payload)
            return right(state, inbox, randomness=randomness)

        return wrong

    return _with_step(table, "share", Role.SERVER, build)


@mutant(
    "payloads-change-places",
    "LSA-05",
    "failure: the server gives a user the payload that was meant for another one",
    _TABLE,
    lambda: _server(Call("share", tuple(_parcel(i, j) for i in range(5) for j in range(5) if i != j))),
    kind="sum",
    source="order",
)
def _places(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = right(state, inbox, randomness=randomness)
            moved = [message.payload for message in (*outbox[1:], *outbox[:1])]
            return after, tuple(replace(m, payload=payload) for m, payload in zip(outbox, moved, strict=True))

        return wrong

    return _with_step(table, "share", Role.SERVER, build)


def _parcel(sender: int, receiver: int) -> bytes:
    return encode(MaskShare(_ID, 0, sender, receiver, bytes([sender, receiver])))


@mutant(
    "set-in-descending-order",
    "LSA-06",
    "no interoperation: the surviving set is announced in another order",
    _TABLE,
    lambda: _server(_parcels(), _updates(0, 1, 2)),
    kind="form",
    source="order",
)
def _descending(table: Any) -> Any:
    def build(right: Function) -> Function:
        def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = right(state, inbox, randomness=randomness)
            return after, tuple(replace(message, users=message.users[::-1]) for message in outbox)

        return wrong

    return _with_step(table, "upload", Role.SERVER, build)


@mutant(
    "outsiders-answer",
    "LSA-16",
    "acceptance: masked updates of users that did not share, and answers of users that did not upload, are taken",
    f"{_LSA}:_ready",
    lambda: _server(_parcels(), _updates(0, 1, 2), _answers(0, 1, 2, 3)),
    kind="acceptance",
    source="clause left out",
)
def _outsiders(right: Function) -> Function:
    def wrong(state: Any, phase: str, inbox: Any, kinds: Any, senders: Any) -> None:
        everybody = range(state.parameters.N)
        right(state, phase, inbox, kinds, senders if isinstance(state, lightsecagg.UserState) else everybody)

    return wrong


@mutant(
    "non-sharers-upload",
    "LSA-16",
    "failure: a masked update of a user that did not share counts, and its mask can never be removed",
    f"{_LSA}:_ready",
    lambda: _server(_parcels(missing=[(4, 3)]), _updates(0, 1, 2, 4)),
    kind="acceptance",
    source="clause in part",
)
def _uploads(right: Function) -> Function:
    def wrong(state: Any, phase: str, inbox: Any, kinds: Any, senders: Any) -> None:
        uploading = isinstance(state, lightsecagg.ServerState) and phase == "upload"
        right(state, phase, inbox, kinds, range(state.parameters.N) if uploading else senders)

    return wrong


@mutant(
    "bad-share-blames-one",
    "LSA-15",
    "wrong blame: the last one of those who answered is blamed for a wrong answer of any of them",
    f"{_LSA}:recover",
    lambda: _server(_parcels(), _updates(0, 1, 2, 3), _answers(0, 1, 2, 3, wrong=1)),
    kind="refusal",
    source="wrong reason",
)
def _blames_one(right: Function) -> Function:
    def wrong(parameters: Any, masked_sum: Any, users: Sequence[int], shares: Any) -> Any:
        try:
            return right(parameters, masked_sum, users, shares)
        except BadShare as error:
            raise BadShare(str(error), users[-1:]) from None

    return wrong


@mutant(
    "few-updates-end-the-server",
    "ERR-01",
    "failure: after too few masked updates the server takes no more, although the refused step must leave no trace",
    _TABLE,
    lambda: _server(_parcels(), _updates(0), _updates(0, 1, 2)),
    kind="refusal",
    source="trace of a refusal",
)
def _ends(table: Any) -> Any:
    return _with_step(table, "upload", Role.SERVER, lambda right: _marking(right, phase="done"))
