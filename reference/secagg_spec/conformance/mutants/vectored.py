"""Planted bugs in keys, sealing, messages and steps for which a vector is the natural test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets import readers, reference_crypto
from secagg_spec.crypto import keys, prg, sealing
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.errors import DecryptionFailed, Malformed, ParameterError, ProtocolError, WeakKey
from secagg_spec.protocols import codec, lightsecagg
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_KEYS, _SEALING = "secagg_spec.crypto.keys", "secagg_spec.crypto.sealing"
_CODEC = "secagg_spec.protocols.codec"
_LSA = "secagg_spec.protocols.lightsecagg"
_TARGETS = "secagg_spec.conformance.targets"
_P = 2**255 - 19
_KEY, _ID = bytes(range(32)), bytes(16)
_PRIVATE = [bytes([user + 1]) * 32 for user in range(5)]
_PUBLIC = tuple(keys.public_key(private) for private in _PRIVATE)
_TINY = lightsecagg.PRESETS["tiny"]
_SAMPLED = {"mask": np.array([1, 2, 3], np.uint64), "noise": np.array([[4, 5]], np.uint64)}


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails, as something that can be compared."""
    try:
        result = call()
    except (ParameterError, ProtocolError, Reject) as error:
        return type(error).__name__
    return result.tolist() if isinstance(result, np.ndarray) else result


# --------------------------------------------------------------------------------------------- generator and keys


@mutant(
    "prg-refuses-no-elements",
    "PRG-01",
    "failure: a layer without parameters stops a round",
    "secagg_spec.crypto.prg:expand",
    lambda: _outcome(lambda: prg.expand(_KEY, Ring(7), 0)),
    kind="refusal",
    source="clause too strict",
)
def _refuses_nothing(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        if n == 0:
            raise ParameterError("n", n, "at least 1")
        return right(key, ring, n)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "secret-with-highest-byte-first",
    "KEY-02",
    "no interoperation: the shared secret is written as a big-endian number",
    f"{_KEYS}:agree",
    lambda: keys.agree(_PRIVATE[0], _PUBLIC[1]),
    also=("KEY-10",),
    kind="form",
    source="encoding",
)
def _reversed(right: Function) -> Function:
    return lambda private, public: right(private, public)[::-1]


@mutant(
    "top-bit-counts",
    "KEY-02",
    "no interoperation: the top bit of a public key is taken for a part of the number",
    f"{_KEYS}:agree",
    lambda: keys.agree(_PRIVATE[0], bytes([9, *bytes(30), 128])),
    also=("KEY-10",),
    kind="form",
    source="encoding",
)
def _top_bit(right: Function) -> Function:
    def wrong(private: bytes, public: bytes) -> Any:
        prg.check_key("public", public)
        return right(private, (int.from_bytes(public, "little") % _P).to_bytes(32, "little"))

    return wrong


@mutant(
    "large-coordinates-refused",
    "KEY-02",
    "no interoperation: public keys from 2**255 - 19 on are refused instead of reduced",
    f"{_KEYS}:agree",
    lambda: _outcome(lambda: keys.agree(_PRIVATE[0], (_P + 9).to_bytes(32, "little"))),
    also=("KEY-10",),
    kind="refusal",
    source="clause too strict",
)
def _large(right: Function) -> Function:
    def wrong(private: bytes, public: bytes) -> Any:
        if int.from_bytes(public, "little") % 2**255 >= _P:
            raise WeakKey("the public key is not a reduced coordinate")
        return right(private, public)

    return wrong


@mutant(
    "secret-and-session-are-padded",
    "KEY-03",
    "acceptance: secrets and sessions of other lengths are cut or padded",
    f"{_KEYS}:derive",
    lambda: _outcome(lambda: keys.derive(_KEY[:31], _ID, b"")),
    kind="acceptance",
    source="silent repair",
)
def _padded(right: Function) -> Function:
    return lambda secret, session, info: right(_fit(secret, 32), _fit(session, 16), info)


def _fit(data: bytes, size: int) -> bytes:
    return data[:size].ljust(size, b"\0")


# --------------------------------------------------------------------------------------------------- the binding


def _bound(sender: int = 1, receiver: int = 3, protocol: str = "lightsecagg") -> bytes:
    context = sealing.Context(protocol, bytes(32), _ID, 3, 257)
    return sealing.binding(context, sender, receiver, _PUBLIC[sender], _PUBLIC[receiver])


@mutant(
    "bound-keys-are-padded",
    "KEY-03",
    "acceptance: public keys of other lengths are cut or padded before they are bound",
    f"{_SEALING}:binding",
    lambda: _outcome(lambda: sealing.binding(sealing.Context("a", b"", _ID, 0, 0), 0, 1, _KEY, _KEY[1:])),
    kind="acceptance",
    source="silent repair",
)
def _padded_bound(right: Function) -> Function:
    return lambda context, sender, receiver, *public: right(context, sender, receiver, *(_fit(k, 32) for k in public))


@mutant(
    "binding-without-users",
    "KEY-02",
    "privacy: sender and receiver are left out of the binding, so that both directions have one key",
    f"{_SEALING}:binding",
    _bound,
    kind="privacy",
    source="field not bound: sender and receiver",
)
def _no_users(right: Function) -> Function:
    return lambda context, sender, receiver, *public: right(context, 0, 0, *public)


@mutant(
    "public-keys-exchanged",
    "KEY-02",
    "no interoperation: the receiver's public key stands before the sender's",
    f"{_SEALING}:binding",
    _bound,
    kind="form",
    source="order",
)
def _exchanged(right: Function) -> Function:
    return lambda context, sender, receiver, *public: right(context, sender, receiver, *public[::-1])


@mutant(
    "binding-without-protocol",
    "KEY-02",
    "acceptance: two protocols with the same key pairs have the same keys",
    f"{_SEALING}:binding",
    _bound,
    kind="privacy",
    source="field not bound: the protocol",
)
def _no_protocol(right: Function) -> Function:
    return lambda context, *rest: right(replace(context, protocol=""), *rest)


@mutant(
    "binding-without-lengths",
    "KEY-02",
    "ambiguity: the fields of a binding stand without their lengths",
    f"{_KEYS}:fields",
    _bound,
    kind="form",
    source="encoding",
)
def _no_lengths(right: Function) -> Function:
    return lambda *values: b"".join(right(value)[4:] for value in values)


@mutant(
    "binding-with-highest-byte-first",
    "KEY-02",
    "no interoperation: the integers of a binding have the highest byte first",
    f"{_KEYS}:_field",
    _bound,
    kind="form",
    source="encoding",
)
def _highest_first(right: Function) -> Function:
    return lambda value: right(value)[::-1] if isinstance(value, int) else right(value)


# ------------------------------------------------------------------------------------------------------- sealing


def _channel(private: bytes = _PRIVATE[0], roster: tuple[bytes, ...] = _PUBLIC) -> sealing.SealedChannel:
    return sealing.SealedChannel(lightsecagg.sealing_context(_TINY, _ID, 0), private, keys.Roster(roster))


@mutant(
    "private-key-is-padded",
    "KEY-03",
    "acceptance: a private key of another length is cut or padded",
    f"{_SEALING}:SealedChannel.__post_init__",
    lambda: _outcome(lambda: _channel(private=_KEY[1:]).private),
    kind="acceptance",
    source="silent repair",
)
def _padded_private(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel) -> None:
        self.private = _fit(self.private, 32)
        right(self)

    return wrong


@mutant(
    "roster-keys-are-padded",
    "KEY-03",
    "acceptance: public keys of another length are cut or padded",
    f"{_KEYS}:Roster.__post_init__",
    lambda: _outcome(lambda: keys.Roster((_KEY[1:],)).keys),
    kind="acceptance",
    source="silent repair",
)
def _padded_roster(right: Function) -> Function:
    def wrong(self: keys.Roster) -> None:
        object.__setattr__(self, "keys", tuple(_fit(key, 32) for key in self.keys))
        right(self)

    return wrong


@mutant(
    "roster-is-fitted",
    "KEY-03",
    "acceptance: a roster that has not N keys is cut, or continued",
    f"{_TARGETS}.reference_crypto:channel",
    lambda: _outcome(lambda: len(reference_crypto.channel(_TINY, _ID.hex(), "0", 0, _KEY.hex(), []).roster.keys)),
    kind="acceptance",
    source="silent repair",
)
def _fitted_roster(right: Function) -> Function:
    def wrong(parameters: Any, session: Any, round: Any, type: Any, private: Any, roster: Any) -> Any:
        made_up = [f"{user + 1:02x}" * 32 for user in range(parameters.N)]
        fitted = [*roster, *made_up[len(roster) :]][: parameters.N]
        return right(parameters, session, round, type, private, fitted)

    return wrong


@mutant(
    "empty-plaintext-not-sealed",
    "SEA-01",
    "privacy: an empty plaintext is sent as an empty payload",
    f"{_SEALING}:SealedChannel.close",
    lambda: _channel().close(0, 1, b""),
    kind="privacy",
    source="clause in part",
)
def _empty(right: Function) -> Function:
    return lambda self, *given: right(self, *given) if given[-1] else b""


@mutant(
    "payload-of-a-tag-refused",
    "SEA-01",
    "failure: a payload whose plaintext is empty does not open",
    f"{_SEALING}:SealedChannel.open",
    lambda: _outcome(lambda: _channel(_PRIVATE[1]).open(0, 1, _channel().close(0, 1, b""))),
    kind="refusal",
    source="clause too strict",
)
def _tag(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, payload: bytes) -> Any:
        if len(payload) == sealing.OVERHEAD:
            raise DecryptionFailed("the payload is too short", (sender, SERVER))
        return right(self, sender, receiver, payload)

    return wrong


# ------------------------------------------------------------------------------------------------------ messages

_SET = lightsecagg.SurvivingSet(_ID, 1, SERVER, 0, (0, 1))
_SHARE = lightsecagg.MaskShare(_ID, 1, 0, 1, b"abc")


def _without_server(message: codec.Message) -> codec.Message:
    sender, receiver = (0 if party == SERVER else party for party in (message.sender, message.receiver))
    return replace(message, sender=sender, receiver=receiver)


def _decoded(kind: type[Any], data: bytes) -> object:
    return _outcome(lambda: vars(codec.decode(kind, data)))


@mutant(
    "lists-counted-in-bytes",
    "MSG-01",
    "no interoperation: the length of a list is its number of bytes",
    f"{_CODEC}:Words.write",
    lambda: codec.encode(_SET),
    kind="form",
    source="encoding",
)
def _in_bytes(right: Function) -> Function:
    def wrong(self: codec.Words, name: str, value: Any) -> bytes:
        data: bytes = right(self, name, value)
        return (len(data) - 4).to_bytes(4, "little") + data[4:]

    return wrong


@mutant(
    "empty-field-without-length",
    "MSG-01",
    "no interoperation: a field without entries is left out",
    f"{_CODEC}:encode",
    lambda: codec.encode(replace(_SET, users=())),
    kind="form",
    source="encoding",
)
def _left_out(right: Function) -> Function:
    return lambda message: right(message)[:30] if right(message)[30:] == bytes(4) else right(message)


@mutant(
    "words-are-signed",
    "MSG-01",
    "failure: numbers from 2**31 on do not fit, as in languages whose integers are signed",
    f"{_CODEC}:Unsigned.write",
    lambda: _outcome(lambda: codec.encode(replace(_SHARE, round=2**31))),
    kind="refusal",
    source="arithmetic: signed words",
)
def _signed(right: Function) -> Function:
    def wrong(self: codec.Unsigned, name: str, value: Any) -> bytes:
        if name == "round" and value >= 2**31:
            raise ParameterError(name, value, "below 2**31")
        return right(self, name, value)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "integers-read-big-endian",
    "MSG-01",
    "no interoperation: the integers of messages are read in network order",
    f"{_CODEC}:Unsigned.read",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(_SET)),
    kind="form",
    source="encoding",
)
def _read_big_endian(right: Function) -> Function:
    def wrong(self: codec.Unsigned, name: str, data: memoryview) -> Any:
        value, rest = right(self, name, data)
        counted = name in ("session", "round", "sender", "receiver")
        return (int.from_bytes(value.to_bytes(self.width, "little"), "big") if counted else value), rest

    return wrong


@mutant(
    "receiver-read-first",
    "MSG-01",
    "no interoperation: the receiver is read before the sender",
    f"{_CODEC}:decode",
    lambda: _decoded(lightsecagg.MaskShare, codec.encode(_SHARE)),
    kind="form",
    source="order",
)
def _receiver_first(right: Function) -> Function:
    def wrong(kind: Any, data: bytes) -> Any:
        message = right(kind, data)
        return replace(message, sender=message.receiver, receiver=message.sender)

    return wrong


@mutant(
    "counts-read-as-bytes",
    "MSG-01",
    "no interoperation: the length of a list is read as its number of bytes",
    f"{_CODEC}:Words.read",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(_SET)),
    kind="form",
    source="encoding",
)
def _as_bytes(right: Function) -> Function:
    def wrong(self: codec.Words, name: str, data: memoryview) -> Any:
        return right(self, name, _with_count(data, int.from_bytes(data[:4], "little") // 4))

    return wrong


@mutant(
    "words-are-read-signed",
    "MSG-01",
    "failure: round numbers and elements from 2**31 on are refused, as by languages whose integers are signed",
    f"{_CODEC}:decode",
    lambda: _decoded(lightsecagg.MaskShare, codec.encode(replace(_SHARE, round=2**31))),
    kind="refusal",
    source="arithmetic: signed words",
)
def _read_signed(right: Function) -> Function:
    def wrong(kind: Any, data: bytes) -> Any:
        message = right(kind, data)
        if message.round >= 2**31 or (np.array(getattr(message, "masked", 0)) >= 2**31).any():
            raise Malformed("a number is negative")
        return message

    return wrong


@mutant(
    "empty-field-refused",
    "MSG-01",
    "failure: a message whose field has no entries is refused",
    f"{_CODEC}:decode",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(replace(_SET, users=()))),
    kind="refusal",
    source="clause too strict",
)
def _refuses_empty(right: Function) -> Function:
    def wrong(kind: Any, data: bytes) -> Any:
        if data[30:] == bytes(4):
            raise Malformed("the field has no entries")
        return right(kind, data)

    return wrong


@mutant(
    "server-read-as-a-user",
    "MSG-01",
    "no interoperation: the server is read as the user number 0",
    f"{_CODEC}:decode",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(_SET)),
    kind="form",
    source="encoding",
)
def _read_as_user(right: Function) -> Function:
    def wrong(kind: Any, data: bytes) -> Any:
        return _without_server(right(kind, data))

    return wrong


@mutant(
    "server-has-number-0",
    "MSG-01",
    "no interoperation: the server has the party number 0",
    f"{_CODEC}:encode",
    lambda: codec.encode(_SET),
    kind="form",
    source="encoding",
)
def _number_0(right: Function) -> Function:
    def wrong(message: codec.Message) -> Any:
        return right(_without_server(message))

    return wrong


@mutant(
    "session-is-fitted",
    "MSG-01",
    "acceptance: a session id of another length is cut or padded",
    f"{_CODEC}:FixedBytes.write",
    lambda: _outcome(lambda: codec.encode(replace(_SHARE, session=_ID[1:]))),
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    return lambda self, name, value: right(self, name, _fit(value, self.size))


@mutant(
    "rounds-wrap-around",
    "MSG-01",
    "acceptance: a round number that does not fit its field wraps around",
    f"{_TARGETS}.readers:u32",
    lambda: _outcome(lambda: readers.u32("round", str(2**32))),
    kind="acceptance",
    source="silent repair",
)
def _wraps(right: Function) -> Function:
    return lambda name, text: right(name, str(int(text) & 0xFFFFFFFF))


@mutant(
    "fields-by-chance",
    "MSG-01",
    "acceptance: a field that is missing is empty, and one that there is not is dropped",
    f"{_TARGETS}.readers:members",
    lambda: _outcome(lambda: readers.members("fields", {"x": ""}, "masked")),
    kind="acceptance",
    source="silent repair",
)
def _by_chance(right: Function) -> Function:
    def wrong(name: str, value: Any, *names: str) -> Any:
        given = {member: value.get(member, "") for member in names} if name == "fields" else value
        return right(name, given, *names)

    return wrong


@mutant(
    "missing-bytes-are-zero",
    "MSG-02",
    "acceptance: bytes that are missing are taken as zero",
    f"{_CODEC}:_cut",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(_SET)[:-1]),
    kind="acceptance",
    source="silent repair",
)
def _zero(right: Function) -> Function:
    def wrong(name: str, data: memoryview, size: int) -> Any:
        short = len(data) < size < 2**20
        return right(name, memoryview(_fit(bytes(data), size)) if short else data, size)

    return wrong


@mutant(
    "counts-are-clipped",
    "MSG-02",
    "acceptance: a count that the bytes do not hold is taken for as much as there is",
    f"{_CODEC}:Words.read",
    lambda: _decoded(lightsecagg.SurvivingSet, codec.encode(_SET)[:-4]),
    kind="acceptance",
    source="silent repair",
)
def _clipped(right: Function) -> Function:
    def wrong(self: codec.Words, name: str, data: memoryview) -> Any:
        return right(self, name, _with_count(data, (len(data) - 4) // 4))

    return wrong


@mutant(
    "lengths-are-clipped",
    "MSG-02",
    "acceptance: a length that the bytes do not hold is taken for as much as there is",
    f"{_CODEC}:OpaqueBytes.read",
    lambda: _decoded(lightsecagg.MaskShare, codec.encode(_SHARE)[:-1]),
    kind="acceptance",
    source="silent repair",
)
def _clipped_length(right: Function) -> Function:
    def wrong(self: codec.OpaqueBytes, name: str, data: memoryview) -> Any:
        return right(self, name, _with_count(data, len(data) - 4))

    return wrong


def _with_count(data: memoryview, most: int) -> memoryview:
    """Return a field whose count is at most `most`; what is too short to have one stays as it is."""
    count = min(int.from_bytes(data[:4], "little"), most)
    return data if len(data) < 4 else memoryview(count.to_bytes(4, "little") + bytes(data[4:]))


# --------------------------------------------------------------------------------------------------------- steps


def _refuses(call: Callable[[], Any]) -> object:
    try:
        call()
    except (ParameterError, ProtocolError, AssertionError) as error:
        return type(error).__name__
    return "taken"


def _user_state(phase: str = "upload") -> lightsecagg.UserState:
    start = lightsecagg.user_start(_TINY, _ID, 0, 0, np.array([1, 2, 3], np.uint64), PlainChannel())
    held = {user: np.array([user, 1], np.uint64) for user in range(5)}
    return replace(start, phase=phase, mask=np.array([4, 5, 6], np.uint64), held=held)


def _share(sender: int = 1, **changed: Any) -> lightsecagg.MaskShare:
    payload = codec.vector_bytes(np.array([3, 4], np.uint64))
    return replace(lightsecagg.MaskShare(_ID, 0, sender, 0, payload), **changed)


def _upload(*inbox: codec.Message) -> object:
    return _refuses(lambda: lightsecagg.user_upload(_user_state(), inbox, randomness={}))


def _relay(*inbox: codec.Message) -> object:
    start = lightsecagg.server_start(_TINY, _ID, 0)
    return _refuses(lambda: lightsecagg.server_share(start, inbox, randomness={}))


@mutant(
    "other-messages-skipped",
    "MSG-02",
    "acceptance: a message of a type that the step does not take is passed over",
    "secagg_spec.protocols.shape:accept",
    lambda: _refuses(lambda: lightsecagg.user_share(_user_state("share"), (_share(),), randomness=_SAMPLED)),
    kind="acceptance",
    source="silent repair",
)
def _skipped(right: Function) -> Function:
    def wrong(inbox: Any, kinds: Any, **expected: Any) -> None:
        right([message for message in inbox if isinstance(message, kinds)], kinds, **expected)

    return wrong


def _recovering(*senders: int) -> object:
    total, share = np.zeros(3, np.uint64), np.zeros(2, np.uint64)
    state = replace(lightsecagg.server_start(_TINY, _ID, 0), phase="recover", surviving=(0, 1, 2), masked_sum=total)
    inbox = [lightsecagg.AggregatedShare(_ID, 0, sender, SERVER, share) for sender in senders]
    return _refuses(lambda: lightsecagg.server_recover(state, inbox, randomness={}))


@mutant(
    "other-answers-passed-over",
    "LSA-16",
    "acceptance: answers of parties that are not in the surviving set are passed over",
    f"{_LSA}:server_recover",
    lambda: _recovering(0, 1, 2, 9),
    also=("MSG-03",),
    kind="acceptance",
    source="silent repair",
)
def _passed_over(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        return right(state, [m for m in inbox if m.sender in state.surviving], randomness=randomness)

    return wrong


def _sorts(
    name: str,
    clause: str,
    effect: str,
    sent: codec.Message,
    change: Callable[[Any, Any], Any],
    *,
    kind: str,
    source: str,
) -> None:
    """Register a server that changes its inbox, or leaves something of it out, before it sorts the shares."""

    def build(right: Function) -> Function:
        def wrong(inbox: Any, kind: Any, **expected: Any) -> Any:
            kept = [change(expected, message) for message in inbox]
            return right([message for message in kept if message is not None], kind, **expected)

        return wrong

    mutant(name, clause, effect, "secagg_spec.protocols.shape:parcels", lambda: _relay(sent), kind=kind, source=source)(
        build
    )


_sorts(
    "relay-skips-other-messages",
    "MSG-02",
    "acceptance: the server passes over messages that are no shares",
    _SET,
    lambda expected, message: message if isinstance(message, lightsecagg.MaskShare) else None,
    kind="acceptance",
    source="silent repair",
)
_sorts(
    "relay-of-any-round",
    "MSG-03",
    "acceptance: the server relays shares of other sessions and rounds",
    _share(round=1),
    lambda expected, message: replace(message, session=expected["session"], round=expected["round"]),
    kind="acceptance",
    source="clause left out",
)
_sorts(
    "relay-passes-over-strangers",
    "MSG-03",
    "acceptance: the server passes over shares that are not from one user to another",
    _share(9),
    lambda expected, message: message if _between_users(expected["roster"], message) else None,
    kind="acceptance",
    source="silent repair",
)


def _between_users(users: Any, message: Any) -> bool:
    return message.sender in users and message.receiver in users and message.sender != message.receiver


@mutant(
    "phases-unchecked",
    "MSG-03",
    "acceptance: a step is taken again, or before the ones that come first",
    "secagg_spec.protocols.shape:require_phase",
    lambda: _refuses(lambda: lightsecagg.user_upload(_user_state("done"), (), randomness={})),
    also=("MSG-04",),
    kind="acceptance",
    source="clause left out",
)
def _any_phase(right: Function) -> Function:
    return lambda phases, actual, expected: None


@mutant(
    "vectors-are-fitted",
    "MOD-07",
    "wrong sum: a vector in a message is cut, continued or reduced until it fits",
    f"{_LSA}:_vector",
    lambda: _upload(_share(payload=codec.vector_bytes(np.array([7], np.uint64)))),
    also=("MOD-06",),
    kind="acceptance",
    source="silent repair",
)
def _fitting(right: Function) -> Function:
    def wrong(state: Any, message: Any, value: UintArray, length: int) -> Any:
        fitted = np.zeros(length, np.uint64)
        fitted[: value.size] = value[:length]
        return right(state, message, np.fmod(fitted, np.uint64(state.parameters.q)), length)

    return wrong


@mutant(
    "plaintext-may-go-on",
    "MSG-02",
    "acceptance: what follows the vector in a payload is not looked at",
    f"{_CODEC}:vector_from_bytes",
    lambda: _upload(_share(payload=_share().payload + b"\0")),
    kind="acceptance",
    source="clause in part",
)
def _goes_on(right: Function) -> Function:
    return lambda data: right(data[: 4 + 4 * int.from_bytes(data[:4], "little")])


@mutant(
    "no-set-is-everybody",
    "LSA-09",
    "privacy: without a surviving set a user answers for everybody whose share it holds",
    f"{_LSA}:user_recover",
    lambda: _refuses(lambda: lightsecagg.user_recover(_user_state("recover"), (), randomness={})),
    kind="privacy",
    source="other rule: no message stands for everybody",
)
def _everybody(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        everybody = lightsecagg.SurvivingSet(state.session, state.round, SERVER, state.user, tuple(sorted(state.held)))
        return right(state, inbox or (everybody,), randomness=randomness)

    return wrong


@mutant(
    "update-is-fitted",
    "LSA-03",
    "wrong sum: an update is cut, continued or reduced until it fits",
    f"{_LSA}:user_start",
    lambda: _refuses(lambda: lightsecagg.user_start(_TINY, _ID, 0, 0, np.array([9], np.uint64), PlainChannel())),
    kind="acceptance",
    source="silent repair",
)
def _fitted_update(right: Function) -> Function:
    def wrong(parameters: Any, session: Any, round: Any, user: Any, update: UintArray, channel: Any) -> Any:
        fitted = np.zeros(parameters.d, np.uint64)
        fitted[: update.size] = np.fmod(update[: parameters.d], np.uint64(parameters.q))
        return right(parameters, session, round, user, fitted, channel)

    return wrong
