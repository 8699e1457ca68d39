"""Vectors of BASecAgg: parties step by step, and whole sessions with a schedule of arrivals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases.basecagg_parties import announced
from secagg_spec.conformance.cases.basecagg_sessions import budget
from secagg_spec.conformance.cases.lightsecagg_parties import exchanged
from secagg_spec.conformance.checks.base import BAD_CIPHERTEXT, BAD_PARAM, BAD_SHARE, MALFORMED, TOO_FEW
from secagg_spec.conformance.checks.basecagg_scripts import INCOMPLETE, LATE, NOT_HELD, NOT_NOW, REPLAY
from secagg_spec.conformance.checks.crypto import AGAIN
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE
from secagg_spec.conformance.checks.scripts import BAD_VECTOR, ELSEWHERE, OUT_OF_TURN, SECOND, STRANGER
from secagg_spec.conformance.sessions.basecagg_stage import Key, Stage, Turn, opened_stage, staleness_of
from secagg_spec.conformance.sessions.deals import Deal
from secagg_spec.conformance.sessions.scenes import call, written
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
    drawn_rounding,
)
from secagg_spec.conformance.vectors.code import VANDERMONDE
from secagg_spec.conformance.vectors.entries import Refusal
from secagg_spec.crypto.keys import public_key
from secagg_spec.protocols.basecagg.round import ModelRequest, ModelStamp, StampedShare, StampedUpdate
from secagg_spec.protocols.codec import encode, vector_bytes
from secagg_spec.protocols.steps import SERVER

_Q = 2**31 + 11
_SLOWLY: dict[str, Any] = {"kind": "polynomial", "numerator": 1, "denominator": 1, "start": "0"}
_SIZES: dict[str, Any] = {"N": 5, "D": 1, "U": 3, "T": 1, "d": 3}
_TINY: dict[str, Any] = {"q": str(_Q), **_SIZES, "K": 3, "c_l": "1", "c_g": "3", "tau_max": 2, **_SLOWLY}
_PROMPT: dict[str, Any] = {**_TINY, "tau_max": 0}
_LARGE: dict[str, Any] = {
    "q": "4294967291",
    "N": 6,
    "D": 1,
    "U": 4,
    "T": 2,
    "d": 5,
    "K": 4,
    "c_l": "65536",
    "c_g": "64",
    "tau_max": 10,
    "kind": "polynomial",
    "numerator": 1,
    "denominator": 2,
    "start": "0",
}
_HINGE: dict[str, Any] = {**_LARGE, "q": "2147483647", "kind": "hinge", "denominator": 3, "start": "1"}
_OWN = 2
"""The user whose steps are refused."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("basecagg_scripts", "BASecAgg: parties step by step, and sessions by a schedule of arrivals.")
    _whole(made)
    _user_messages(made)
    _user_steps(made)
    _user_buffers(made)
    _requests(made)
    _server_messages(made)
    _server_steps(made)
    _server_buffers(made)
    _rounds(made)
    _refused_rounds(made)
    return made


# -------------------------------------------------------------------------------------------------------- deals, turns


def deal(id: str, numbers: Mapping[str, Any], *, sealed: bool = False, count: int = 3) -> Deal:
    """Return what every party is given in the session of a vector."""
    q, N, K, T, d = (int(numbers[name]) for name in ("q", "N", "K", "T", "d"))
    B = budget(numbers)
    keys = [drawn_bytes(id, f"private key of user {user}", 32) for user in range(N)]
    roster = [public_key(key).hex() for key in keys]
    setups: dict[int, dict[str, Any]] = {SERVER: {}}
    rands: dict[int, dict[str, Any]] = {SERVER: {"roundings": _reals(id, count, K)}}
    for user in range(N):
        inputs = (drawn(id, f"updates of user {user}", 2 * B + 1, count, d).astype(np.int64) - B) % q
        channel: Any = {"private": keys[user].hex(), "roster": roster} if sealed else "plain"
        setups[user] = {"user": user, "channel": channel, "updates": _rows(inputs.astype(np.uint64))}
        sizes = {"masks": d, "noises": T * -(-d // (numbers["U"] - T))}
        rands[user] = {name: _rows(drawn(id, f"{name} of user {user}", q, count, n)) for name, n in sizes.items()}
    first = int.from_bytes(drawn_bytes(id, "round", 3), "little")
    return Deal("basecagg", dict(numbers), drawn_bytes(id, "session", 16), first, setups, rands)


def _rows(values: UintArray) -> list[str]:
    return [pack(row) for row in values]


def _reals(id: str, count: int, K: int) -> list[str]:
    return [pack_reals(row) for row in drawn_rounding(id, count * K).reshape(count, K)]


@dataclass(eq=False)
class Acts:
    """A session of the reference in which a vector's author chooses who does what."""

    stage: Stage

    def start(self, *users: int) -> None:
        """Let users ask, get their stamps and share their masks. All users hold the shares."""
        asked = [key for user in users for key in self.stage.take(Turn(user, "request"))]
        stamps = self.stage.take(Turn(SERVER, "request", tuple(asked)))
        sent = [key for stamp in stamps for key in self.stage.take(Turn(stamp.receiver, "share", (stamp,)))]
        relayed = self.stage.take(Turn(SERVER, "share", tuple(sent)))
        for user in self.stage.deal.users:
            mine = tuple(key for key in relayed if key.receiver == user)
            if mine:
                self.stage.take(Turn(user, "hold", mine))

    def send(self, *users: int) -> None:
        """Let users upload, and the server accept their updates in one step."""
        sent = [key for user in users for key in self.stage.take(Turn(user, "upload"))]
        self.stage.take(Turn(SERVER, "upload", tuple(sent)))

    def recover(self, *users: int) -> None:
        """Let the buffer be closed, and recovered from the answers of some users."""
        shown: dict[int, Key] = {key.receiver: key for key in self.stage.take(Turn(SERVER, "close"))}
        answers = [key for user in users for key in self.stage.take(Turn(user, "recover", (shown[user],)))]
        self.stage.take(Turn(SERVER, "recover", tuple(answers)))

    def calls(self, party: int) -> list[Call]:
        """Return the steps that a party took."""
        return [call(event.step.phase, event.received) for event in self.stage.transcript if event.party == party]

    def operations(self, party: int) -> list[dict[str, Any]]:
        """Return the steps of a party in the form that vectors of whole sessions list."""
        actor = "server" if party == SERVER else f"user {party}"
        return [
            {
                "actor": actor,
                "step": event.step.phase,
                "success": True,
                "sends": [encode(message).hex() for message in event.sent],
            }
            for event in self.stage.transcript
            if event.party == party
        ]


def _two_buffers(id: str, numbers: Mapping[str, Any] = _TINY, *, sealed: bool = False) -> Acts:
    """Return a session of five users with two buffers. In the second buffer, one update is one round late."""
    acts = Acts(opened_stage(deal(id, numbers, sealed=sealed)))
    acts.start(0, 1, 2, 3)
    acts.send(1)
    acts.send(0, 3)
    acts.recover(0, 2, 3, 4)
    acts.start(0, 1)
    acts.send(2, 1, 0)
    acts.recover(1, 2, 4)
    return acts


def _params(dealt: Deal, party: int, calls: Sequence[Call]) -> dict[str, Any]:
    agreed = {"session": dealt.session.hex(), "round": str(dealt.round)}
    return {**dealt.numbers, **agreed, **dealt.setups[party], "steps": written(list(calls))}


def _script(
    made: VectorFile,
    id: str,
    dealt: Deal,
    party: int,
    calls: Sequence[Call],
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
    *,
    refused: Mapping[int, Refusal] | None = None,
    operations: Sequence[Mapping[str, Any]] = (),
) -> None:
    made.script(
        id,
        dealt.named(party),
        _params(dealt, party, calls),
        dealt.rand(party),
        refused=refused or {},
        clauses=[*clauses, "ADP-20"],
        flags=flags,
        comment=comment,
        policy=VANDERMONDE,
        operations=operations,
    )


@dataclass(frozen=True)
class Fault:
    """A step that is refused, inserted before one of the right steps."""

    name: str
    at: int
    call: Call
    codes: frozenset[str]
    clause: str
    flag: str
    comment: str
    blamed: tuple[int | str, ...] | None = None


History = Callable[[str], tuple[Deal, list[Call]]]


def _faulty(made: VectorFile, prefix: str, party: int, history: History, fault: Fault) -> None:
    """Add a party's script with a step that is refused, followed by the right step."""
    id = f"{prefix}-{fault.name}"
    dealt, calls = history(id)
    steps = [*calls[: fault.at], fault.call, *calls[fault.at : fault.at + 1]]
    refused = {fault.at: Refusal(fault.codes, fault.blamed)}
    clauses = [fault.clause, "ERR-01", *(["ADP-21"] if fault.blamed else [])]
    _script(made, id, dealt, party, steps, clauses, [fault.flag], fault.comment, refused=refused)


# ------------------------------------------------------------------------------------------------------ whole sessions


def _whole(made: VectorFile) -> None:
    comment = "two buffers, and one update that is a round late, as {} sees them"
    for name, numbers, sealed in (("tiny", _TINY, False), ("sealed", _TINY, True), ("large", _LARGE, True)):
        acts = _large_session() if name == "large" else _two_buffers(f"basecagg-{name}", numbers, sealed=sealed)
        parties = (SERVER,) if name == "large" else (SERVER, *acts.stage.deal.users)
        for party in parties:
            who = "the server" if party == SERVER else f"user {party}"
            flags = ["Session", "Weights", "NextBuffer"] if party == SERVER else ["Session", *["Sealed"] * sealed]
            clauses = ("BSA-11", "BSA-13", "BSA-18", "BSA-19", "BSA-29") if party == SERVER else ("BSA-04", "BSA-27")
            clauses = (*clauses, "BSA-03", "SEA-01", "KEY-02") if sealed and party != SERVER else clauses
            id = f"basecagg-{name}-{'server' if party == SERVER else f'user-{party}'}"
            steps, shown = acts.calls(party), acts.operations(party)
            _script(made, id, acts.stage.deal, party, steps, clauses, flags, comment.format(who), operations=shown)


def _large_session() -> Acts:
    """Return a session with stamps of three rounds in one buffer, and with weights that are not integers."""
    acts = Acts(opened_stage(deal("basecagg-large", _LARGE, sealed=True)))
    acts.start(0, 1, 2, 3, 4, 5)
    acts.send(5, 0, 3, 1)
    acts.recover(0, 1, 2, 3)
    acts.start(0, 1, 3, 5)
    acts.send(0, 1, 3)
    acts.send(4)
    acts.recover(5, 4, 3, 1, 0)
    acts.start(1, 3)
    acts.send(2, 5, 3, 1)
    acts.recover(2, 3, 4, 5)
    return acts


# ------------------------------------------------------------------------------------------------------ a user's faults


def _share(id: str, dealt: Deal, sender: int, stamp: int) -> StampedShare:
    """Return a share for the user whose steps are refused, sealed by its sender's channel."""
    numbers = dealt.numbers
    length = -(-numbers["d"] // (numbers["U"] - numbers["T"]))
    values = vector_bytes(drawn(id, f"share of user {sender} under {stamp - dealt.round}", int(numbers["q"]), length))
    payload = dealt.open(sender).state.channel.close(stamp, sender, _OWN, values)
    return StampedShare(dealt.session, stamp, sender, _OWN, payload)


def _hold(id: str, dealt: Deal, stamps: Mapping[int, int]) -> Call:
    """Return the step that holds shares. Stamps are relative to the first round."""
    return call("hold", [_share(id, dealt, user, dealt.round + later) for user, later in stamps.items()])


def _shown(dealt: Deal, round: int, stamps: Mapping[int, int], weights: Mapping[int, int] | None = None) -> Call:
    """Return the step for a buffer. Rounds are relative to the first one, and weights are the largest unless given."""
    function, c_g = staleness_of(dealt.numbers), int(dealt.numbers["c_g"])
    largest = {user: admissible_weights(function, c_g, max(round - stamp, 0))[-1] for user, stamp in stamps.items()}
    chosen = {**largest, **(weights or {})}
    entries = [(user, dealt.round + stamp, chosen[user]) for user, stamp in stamps.items()]
    return call("recover", [announced(dealt, _OWN, dealt.round + round, entries)])


def _given(dealt: Deal, later: int) -> Call:
    return call("share", [ModelStamp(dealt.session, dealt.round + later, SERVER, _OWN)])


_OTHERS = {0: 0, 1: 0, 3: 0}


def _history(id: str, *, sealed: bool = False) -> tuple[Deal, list[Call]]:
    """Return the right steps of user 2: two stamps, an upload, an answer, and a training that it abandons."""
    dealt = deal(id, _TINY, sealed=sealed)
    calls = [
        Call("request"),
        _given(dealt, 0),
        _hold(id, dealt, {**_OTHERS, 4: 1}),
        Call("upload"),
        _shown(dealt, 1, {0: 0, 1: 0, 2: 0}),
        _hold(id, dealt, {0: 2, 1: 2}),
        Call("request"),
        _given(dealt, 2),
        Call("abandon"),
        _shown(dealt, 2, {0: 2, 1: 2, 3: 0}),
    ]
    return dealt, calls


def _sealed_history(id: str) -> tuple[Deal, list[Call]]:
    return _history(id, sealed=True)


def _altered(calls: Sequence[Call], at: int, place: int, **changes: Any) -> Call:
    """Return a step with fields of one message changed. Changes are values, or functions of the message."""
    message = parse(calls[at].inbox[place])
    values = {name: value(message) if callable(value) else value for name, value in changes.items()}
    return exchanged(calls[at], place, encode(replace(message, **values)))


def _besides(calls: Sequence[Call], at: int, place: int = 0, **changes: Any) -> Call:
    """Return a step with an additional, changed copy of one of its messages."""
    return replace(calls[at], inbox=(*calls[at].inbox, _altered(calls, at, place, **changes).inbox[place]))


def _cut(calls: Sequence[Call], at: int, tail: bytes | None = None) -> Call:
    """Return a step whose first message lacks its last byte, or continues with `tail`."""
    data = calls[at].inbox[0]
    return exchanged(calls[at], 0, data[:-1] if tail is None else data + tail)


def _other(message: Any) -> bytes:
    return bytes([message.session[0] ^ 1]) + bytes(message.session[1:])


Cases = Callable[[str], list[Fault]]


def _each(made: VectorFile, prefix: str, party: int, history: History, cases: Cases) -> None:
    """Add a script for each fault, made from a history with the fault's own id."""
    for name in [fault.name for fault in cases("")]:
        [fault] = [fault for fault in cases(f"{prefix}-{name}") if fault.name == name]
        _faulty(made, prefix, party, history, fault)


def _user_messages(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        dealt, c = _history(id)
        blank = StampedUpdate(dealt.session, dealt.round, SERVER, _OWN, np.zeros(3, np.uint64))
        cut = vector_bytes(np.array([1], np.uint64))
        large = vector_bytes(np.array([1, _Q], np.uint64))
        return [
            Fault("stamp-session", 1, _altered(c, 1, 0, session=_other), ELSEWHERE, "MSG-03", "AnotherSession",
                  "a stamp of another session"),
            Fault("share-session", 2, _altered(c, 2, 1, session=_other), ELSEWHERE, "MSG-03", "AnotherSession",
                  "a share of another session"),
            Fault("buffer-session", 4, _altered(c, 4, 0, session=_other), ELSEWHERE, "MSG-03", "AnotherSession",
                  "a buffer of another session"),
            Fault("stamp-receiver", 1, _altered(c, 1, 0, receiver=1), ELSEWHERE, "MSG-03", "AnotherReceiver",
                  "a stamp for another user"),
            Fault("buffer-receiver", 4, _altered(c, 4, 0, receiver=1), ELSEWHERE, "MSG-03", "AnotherReceiver",
                  "a buffer for another user"),
            Fault("share-stranger", 2, _besides(c, 2, sender=5), STRANGER, "MSG-03", "Stranger",
                  "a share from outside the roster"),
            Fault("buffer-stranger", 4, _altered(c, 4, 0, sender=0), STRANGER, "MSG-03", "Stranger",
                  "a buffer from a user"),
            Fault("share-twice", 2, _besides(c, 2, round=lambda m: m.round + 1), SECOND, "MSG-04", "SecondMessage",
                  "two shares of one user, under two stamps"),
            Fault("buffer-cut", 4, _cut(c, 4), ANOTHER_TYPE, "MSG-02", "NoMessage", "a buffer without its last byte"),
            Fault("stamp-longer", 1, _cut(c, 1, b"\0"), ANOTHER_TYPE, "MSG-02", "NoMessage", "a stamp that goes on"),
            Fault("upload-message", 3, call("upload", [blank]), OUT_OF_TURN, "MSG-02", "AnotherType",
                  "an upload that is given a message"),
            Fault("share-short", 2, _altered(c, 2, 0, payload=cut), BAD_VECTOR, "MOD-07", "Vectors",
                  "a share of one element"),
            Fault("share-large", 2, _altered(c, 2, 0, payload=large), BAD_VECTOR, "MOD-06", "Vectors",
                  "a share with a number that is not below q"),
        ]  # fmt: skip

    def payloads(id: str) -> list[Fault]:
        _, c = _sealed_history(id)
        first: Any = parse(c[2].inbox[0])
        flipped = bytes([first.payload[0] ^ 1]) + first.payload[1:]
        return [
            Fault("payload", 2, _altered(c, 2, 0, payload=flipped), BAD_CIPHERTEXT, "SEA-02", "Payload",
                  "a payload of which one bit was changed", (0, "server")),
        ]  # fmt: skip

    _each(made, "basecagg-user", _OWN, _history, cases)
    _each(made, "basecagg-user-sealed", _OWN, _sealed_history, payloads)


def _user_steps(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        dealt, c = _history(id)
        once = call("hold", [_share(id, dealt, 3, dealt.round)])
        used = call("hold", [_share(id, dealt, 0, dealt.round)])
        return [
            Fault("share-unasked", 0, c[1], LATE, "MSG-03", "States", "a stamp that was not asked for"),
            Fault("upload-untrained", 1, c[3], LATE, "MSG-03", "States", "an upload before a mask was shared"),
            Fault("abandon-untrained", 1, c[8], LATE, "MSG-03", "States", "nothing to abandon"),
            Fault("request-in-training", 2, c[0], LATE, "MSG-03", "States", "a request while the user trains"),
            Fault("upload-twice", 4, c[3], AGAIN, "BSA-07", "SecondUpload", "a second upload under one stamp"),
            Fault("stamp-again", 7, c[1], REPLAY, "BSA-08", "OldStamp", "the same stamp again", ("server",)),
            Fault("share-again", 5, once, REPLAY, "BSA-09", "OldShare", "a share under the stamp that is held",
                  (3, "server")),
            Fault("share-used", 5, used, REPLAY, "BSA-09", "OldShare", "a share that was used comes again",
                  (0, "server")),
        ]  # fmt: skip

    _each(made, "basecagg-user", _OWN, _history, cases)
    _beyond_the_budget(made)


def _beyond_the_budget(made: VectorFile) -> None:
    B = budget(_TINY)
    for name, value in (("above", B + 1), ("below", -B - 1)):
        id = f"basecagg-user-budget-{name}"
        dealt = deal(id, _TINY)
        dealt.setups[_OWN]["updates"][0] = pack(np.array([0, value % _Q, 1], np.uint64))
        calls = [Call("request"), _given(dealt, 0), Call("upload"), Call("abandon")]
        refused = {2: Refusal(frozenset({"out_of_range"}))}
        comment = f"an element that decodes to {value}, and B is {B}"
        _script(made, id, dealt, _OWN, calls, ["BSA-06", "ERR-01"], ["Budget"], comment, refused=refused)


def _user_buffers(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        dealt, _ = _history(id)
        served: tuple[str] = ("server",)
        stamps = {0: 0, 1: 0, 2: 0}
        return [
            Fault("buffer-larger", 4, _shown(dealt, 1, {**stamps, 3: 0}), NOT_HELD | TOO_FEW, "BSA-21", "WrongBuffer",
                  "a buffer of K + 1 entries", served),
            Fault("buffer-stale", 4, _shown(dealt, 3, stamps), NOT_HELD, "BSA-22", "WrongBuffer",
                  "a buffer whose updates are older than tau_max", served),
            Fault("buffer-weight", 4, _shown(dealt, 1, stamps, {1: 3}), NOT_HELD, "BSA-23", "WrongBuffer",
                  "a weight that no draw gives", served),
            Fault("buffer-other-stamp", 4, _shown(dealt, 1, {0: 0, 1: 1, 2: 0}), NOT_HELD, "BSA-25", "WrongBuffer",
                  "a share that is held under another stamp"),
            Fault("buffer-early", 2, _shown(dealt, 1, stamps), NOT_HELD, "BSA-25", "WrongBuffer",
                  "a buffer before the shares of its entries"),
            Fault("buffer-same", 5, _shown(dealt, 1, stamps), REPLAY, "BSA-26", "LateBuffer", "a buffer again"),
        ]  # fmt: skip

    _each(made, "basecagg-user", _OWN, _history, cases)
    _late_buffers(made)


def _late_buffers(made: VectorFile) -> None:
    """Add buffers that are wrong only in their round, or in shares that are no longer held."""

    def late(id: str) -> tuple[Deal, list[Call]]:
        dealt = deal(id, _TINY)
        begun = [_hold(id, dealt, _OTHERS), Call("request"), _given(dealt, 2)]
        return dealt, [*begun, _shown(dealt, 2, _OTHERS)]

    def second(id: str) -> tuple[Deal, list[Call]]:
        dealt = deal(id, _TINY)
        newer = dict.fromkeys(_OTHERS, 2)
        answered = [_hold(id, dealt, _OTHERS), _shown(dealt, 2, _OTHERS), _hold(id, dealt, newer)]
        return dealt, [*answered, _shown(dealt, 3, newer)]

    def again(id: str) -> tuple[Deal, list[Call]]:
        dealt = deal(id, _TINY)
        newer = dict.fromkeys(_OTHERS, 1)
        return dealt, [_hold(id, dealt, _OTHERS), _shown(dealt, 0, _OTHERS), _hold(id, dealt, newer)]

    def replaced(id: str) -> tuple[Deal, list[Call]]:
        dealt = deal(id, _TINY)
        held = [_hold(id, dealt, _OTHERS), _hold(id, dealt, {0: 1})]
        return dealt, [*held, _shown(dealt, 1, {**_OTHERS, 0: 1})]

    prefix = "basecagg-user"
    _each(made, prefix, _OWN, late, lambda name: [
        Fault("buffer-late", 3, _shown(late(name)[0], 1, _OTHERS), LATE, "BSA-26", "LateBuffer",
              "a buffer of a round before the own stamp"),
    ])  # fmt: skip
    _each(made, prefix, _OWN, second, lambda name: [
        Fault("buffer-second", 3, _shown(second(name)[0], 2, dict.fromkeys(_OTHERS, 2)), REPLAY, "BSA-26", "LateBuffer",
              "another buffer of a round that was answered"),
    ])  # fmt: skip
    _each(made, prefix, _OWN, again, lambda name: [
        Fault("buffer-answered", 2, _shown(again(name)[0], 1, _OTHERS), NOT_HELD | REPLAY, "BSA-28", "SecondAnswer",
              "a later buffer with updates that were answered for"),
    ])  # fmt: skip
    _each(made, prefix, _OWN, replaced, lambda name: [
        Fault("buffer-replaced", 2, _shown(replaced(name)[0], 1, _OTHERS), NOT_HELD, "BSA-10", "ReplacedShare",
              "a share that a newer one took the place of"),
    ])  # fmt: skip


# ------------------------------------------------------------------------------------------------------ whole requests


def _requests(made: VectorFile) -> None:
    for party, who in ((_OWN, "user"), (SERVER, "server")):
        for name, changed, comment in (
            ("vanishing", {"c_g": "2"}, "c_g is 2, and an update that is 2 rounds late weighs two thirds"),
            ("wrapping", {"c_g": str((_Q - 1) // 6 + 1)}, "three updates of one unit at the largest weight wrap"),
        ):
            id = f"basecagg-{who}-{name}"
            dealt = deal(id, _TINY)
            params, rand = _params(dealt, party, [Call("request")]), dealt.rand(party)
            made.invalid(
                id,
                dealt.named(party),
                {**params, **changed},
                rand,
                codes=BAD_PARAM,
                clauses=["BSA-02"],
                flags=["Levels"],
                comment=comment,
            )


# -------------------------------------------------------------------------------------------------- the server's faults


def _served(id: str, numbers: Mapping[str, Any] = _TINY) -> tuple[Deal, list[Call]]:
    """Return the right steps of the server in the session of two buffers."""
    acts = _two_buffers(id, numbers)
    return acts.stage.deal, acts.calls(SERVER)


def _asks(dealt: Deal, user: int, later: int) -> Call:
    return call("request", [ModelRequest(dealt.session, dealt.round + later, user, SERVER)])


def _sends(dealt: Deal, *users: int, later: int = 0) -> Call:
    row = np.zeros(dealt.numbers["d"], np.uint64)
    return call("upload", [StampedUpdate(dealt.session, dealt.round + later, user, SERVER, row) for user in users])


def _parcels(dealt: Deal, user: int, later: int) -> Call:
    others = [other for other in dealt.users if other != user]
    return call("share", [StampedShare(dealt.session, dealt.round + later, user, other, b"\1") for other in others])


def _server_messages(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        dealt, c = _served(id)
        asked = ModelRequest(dealt.session, dealt.round, 4, SERVER)
        return [
            Fault("request-session", 0, _altered(c, 0, 0, session=_other), ELSEWHERE, "MSG-03", "AnotherSession",
                  "a request of another session"),
            Fault("share-session", 1, _altered(c, 1, 0, session=_other), ELSEWHERE, "MSG-03", "AnotherSession",
                  "a share of another session"),
            Fault("answer-round", 5, _altered(c, 5, 0, round=lambda m: m.round + 1), ELSEWHERE, "MSG-03",
                  "AnotherRound", "an answer for the buffer of another round"),
            Fault("update-receiver", 2, _altered(c, 2, 0, receiver=0), ELSEWHERE, "MSG-03", "AnotherReceiver",
                  "an update for a user"),
            Fault("request-stranger", 0, _besides(c, 0, sender=5), STRANGER, "MSG-03", "Stranger",
                  "a request from outside the roster"),
            Fault("share-stranger", 1, _besides(c, 1, sender=5), STRANGER, "MSG-03", "Stranger",
                  "a share from outside the roster"),
            Fault("request-twice", 0, _besides(c, 0), SECOND, "MSG-04", "SecondMessage", "a request that comes twice"),
            Fault("share-twice", 1, _besides(c, 1, payload=b"\2"), SECOND, "MSG-04", "SecondMessage",
                  "a second share from one user to another"),
            Fault("answer-cut", 5, _cut(c, 5), ANOTHER_TYPE, "MSG-02", "NoMessage", "an answer without its last byte"),
            Fault("update-type", 2, replace(c[2], inbox=(*c[2].inbox, encode(asked))), OUT_OF_TURN, "MSG-02",
                  "AnotherType", "a request among the updates"),
            Fault("update-short", 2, _altered(c, 2, 0, masked=lambda m: m.masked[:-1]), BAD_VECTOR, "MOD-07", "Vectors",
                  "an update of d - 1 elements"),
            Fault("answer-large", 5, _altered(c, 5, 0, share=np.array([_Q, 0], np.uint64)), BAD_VECTOR, "MOD-06",
                  "Vectors", "an answer with a number that is not below q"),
        ]  # fmt: skip

    _each(made, "basecagg-server", SERVER, _served, cases)


def _server_steps(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        dealt, c = _served(id)
        return [
            Fault("request-again", 2, _asks(dealt, 3, 0), LATE, "BSA-12", "StampGiven",
                  "a request of a user that has the stamp of the round", (3,)),
            Fault("request-waiting", 9, _asks(dealt, 2, 0), LATE, "BSA-12", "StampGiven",
                  "a request of a user whose update waits", (2,)),
            Fault("request-later", 6, _asks(dealt, 0, 2), LATE, "BSA-12", "StampGiven",
                  "a request of a user that knows of a later round", (0,)),
            Fault("share-missing", 1, replace(c[1], inbox=c[1].inbox[1:]), INCOMPLETE, "BSA-13", "Relay",
                  "a share of user 0 is missing", (0,)),
            Fault("share-old", 7, _parcels(dealt, 0, 0), INCOMPLETE, "BSA-13", "Relay",
                  "shares under a stamp that was replaced", (0,)),
            Fault("share-relayed", 2, _parcels(dealt, 0, 0), REPLAY, "BSA-13", "Relay",
                  "shares that were relayed before", (0,)),
            Fault("update-unshared", 1, _sends(dealt, 0), LATE, "BSA-14", "Arrival",
                  "an update before the shares of its mask", (0,)),
            Fault("update-old", 8, _sends(dealt, 1), LATE, "BSA-14", "Arrival",
                  "an update under a stamp that was replaced", (1,)),
            Fault("update-twice", 3, _sends(dealt, 1), REPLAY, "BSA-15", "SecondUpdate",
                  "a second update for one buffer", (1,)),
            Fault("update-recovered", 6, _sends(dealt, 1), REPLAY, "BSA-15", "SecondUpdate",
                  "an update that was recovered before", (1,)),
            Fault("update-full", 4, _sends(dealt, 2), LATE, "BSA-17", "NoRoom", "an update for a full buffer"),
            Fault("update-recovering", 5, _sends(dealt, 2), LATE, "BSA-17", "NoRoom",
                  "an update while the buffer is recovered"),
            Fault("updates-many", 3, _sends(dealt, 0, 2, 3), LATE, "BSA-17", "NoRoom",
                  "three updates where there is room for two"),
        ]  # fmt: skip

    def late(id: str) -> tuple[Deal, list[Call]]:
        acts = Acts(opened_stage(deal(id, _PROMPT)))
        acts.start(0, 1, 2, 3)
        acts.send(0, 1, 3)
        acts.recover(0, 1, 2)
        acts.start(0)
        return acts.stage.deal, acts.calls(SERVER)

    _each(made, "basecagg-server", SERVER, _served, cases)
    _each(made, "basecagg-server", SERVER, late, lambda name: [
        Fault("update-stale", 5, _sends(late(name)[0], 2), LATE, "BSA-16", "StaleUpdate",
              "an update of the round before, and tau_max is 0", (2,)),
    ])  # fmt: skip


def _server_buffers(made: VectorFile) -> None:
    def cases(id: str) -> list[Fault]:
        _, c = _served(id)
        senders = tuple(parse(data).sender for data in c[5].inbox)
        wrong = _altered(c, 5, 1, share=lambda m: (m.share + np.uint64(1)) % np.uint64(_Q))
        return [
            Fault("close-early", 3, c[4], AGAIN | NOT_NOW, "BSA-20", "EarlyClose", "a buffer of one update is closed"),
            Fault("close-again", 5, c[4], AGAIN | NOT_NOW, "BSA-20", "States", "a buffer is closed twice"),
            Fault("answers-unasked", 4, c[5], AGAIN | NOT_NOW, "MSG-03", "States", "answers before the announcement"),
            Fault("answers-few", 5, replace(c[5], inbox=c[5].inbox[:2]), TOO_FEW, "BSA-30", "TooFewAnswers",
                  "U - 1 answers"),
            Fault("answer-altered", 5, wrong, BAD_SHARE, "BSA-31", "AlteredAnswer",
                  "one of U + 1 answers was altered", senders),
        ]  # fmt: skip

    _each(made, "basecagg-server", SERVER, _served, cases)


# ----------------------------------------------------------------------------------------------------------- schedules


def _start(*users: int) -> list[dict[str, Any]]:
    return [{"event": "start", "user": user} for user in users]


def _upload(*users: int) -> list[dict[str, Any]]:
    return [{"event": "upload", "user": user} for user in users]


def _recover(*users: int) -> list[dict[str, Any]]:
    return [{"event": "recover", "users": list(users)}]


def _request(id: str, numbers: Mapping[str, Any], schedule: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the params and the sampled values of a schedule, exactly as many as it uses."""
    q, K, T, d = (int(numbers[name]) for name in ("q", "K", "T", "d"))
    kinds = [event.get("event") for event in schedule]
    starts, B = kinds.count("start"), budget(numbers)
    inputs = (drawn(id, "updates", 2 * B + 1, kinds.count("upload"), d).astype(np.int64) - B) % q
    rand = {
        "masks": _rows(drawn(id, "masks", q, starts, d)),
        "noises": _rows(drawn(id, "noises", q, starts, T * -(-d // (numbers["U"] - T)))),
        "roundings": _reals(id, kinds.count("recover"), K),
    }
    first = int.from_bytes(drawn_bytes(id, "round", 3), "little")
    shown = {"round": str(first), "updates": _rows(inputs.astype(np.uint64)), "schedule": list(schedule)}
    return {**numbers, **shown}, rand


def _rounds(made: VectorFile) -> None:
    everybody = _start(0, 1, 2, 3, 4)
    six = _start(0, 1, 2, 3, 4, 5)
    late = [*everybody, *_upload(4, 2, 0), *_recover(0, 1, 2), *_start(0, 2), *_upload(1, 0), *_upload(3)]
    given_up = [{"event": "abandon", "user": 1}]
    for name, numbers, schedule, comment in (
        ("tiny", _TINY, [*everybody, *_upload(0, 1, 2), *_recover(0, 1, 2)], "one buffer of one round"),
        ("late", _TINY, [*late, *_recover(4, 3, 1, 0)], "two buffers; in the second, two updates are a round late"),
        ("abandoned", _TINY, [*everybody, *given_up, *_upload(3, 0, 4), *_recover(0, 1, 2), *_start(1), *_upload(1, 2),
                              *_start(3), *_upload(3), *_recover(1, 2, 3, 4, 0)], "a user gives up and starts again"),
        ("root", _LARGE, [*six, *_upload(5, 4, 3, 2), *_recover(0, 1, 2, 3), *_start(5, 2), *_upload(0, 5, 2, 1),
                          *_recover(5, 4, 3, 2)], "weights with a square root"),
        ("hinge", _HINGE, [*six, *_upload(5, 4, 3, 2), *_recover(0, 1, 2, 3), *_start(5, 4, 3), *_upload(5, 4, 3, 0),
                           *_recover(1, 2, 4, 5), *_start(0, 4, 5), *_upload(0, 4, 5, 1), *_recover(0, 1, 2, 3, 4, 5)],
         "weights that fall from the second round on"),
    ):  # fmt: skip
        id = f"basecagg-rounds-{name}"
        made.valid(
            id,
            "basecagg.rounds",
            *_request(id, numbers, schedule),
            clauses=["BSA-11", "BSA-18", "BSA-19", "BSA-29", "BSA-34"],
            flags=["Session", "Weights", "NextBuffer"] if name != "tiny" else ["Session"],
            comment=comment,
        )


def _refused_rounds(made: VectorFile) -> None:
    everybody, wrong = _start(0, 1, 2, 3, 4), frozenset({"wrong_phase"})
    full = [*everybody, *_upload(0, 1, 2)]
    recovered = [*full, *_recover(0, 1, 2)]
    for name, numbers, schedule, codes, clause, flag, comment in (
        ("waits", _TINY, [*recovered, *_upload(3), *_start(3)], wrong, "BSA-12", "StampGiven",
         "a user whose update waits starts again"),
        ("untrained", _TINY, [*_start(0), *_upload(1)], wrong, "BSA-07", "States", "a user uploads that did not start"),
        ("full", _TINY, [*full, *_upload(3)], wrong, "BSA-17", "NoRoom", "a fourth update for a buffer of three"),
        ("stale", _PROMPT, [*recovered, *_upload(3)], wrong, "BSA-16", "StaleUpdate",
         "an update of the round before, and tau_max is 0"),
        ("early", _TINY, [*everybody, *_upload(0, 1), *_recover(0, 1, 2)], wrong, "BSA-20", "EarlyClose",
         "a buffer of two is closed"),
        ("few", _TINY, [*full, *_recover(0, 1)], TOO_FEW, "BSA-30", "TooFewAnswers", "two answers where U is 3"),
        ("event", _TINY, [*full, {"event": "stop", "user": 3}], MALFORMED, "ADP-35", "Events", "an unknown event"),
    ):  # fmt: skip
        id = f"basecagg-rounds-{name}"
        params, rand = _request(id, numbers, schedule)
        made.invalid(
            id,
            "basecagg.rounds",
            params,
            rand,
            codes=codes,
            clauses=[clause],
            flags=[flag],
            comment=comment,
        )
