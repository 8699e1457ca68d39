"""Vectors of messages and their bytes (spec/conventions.md, section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from secagg_spec.conformance.cases.valid import message_params
from secagg_spec.conformance.checks.base import MALFORMED
from secagg_spec.conformance.checks.messages import ANOTHER_TYPE, FIELDS
from secagg_spec.conformance.vectors.base import (
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
)
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare, SurvivingSet
from secagg_spec.protocols.steps import SERVER

_ENCODE, _DECODE = "message.encode", "message.decode"
_HEADER = 30


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("messages", "The bytes of the four messages of LightSecAgg: written, read and refused.")
    _both_ways(made)
    _not_encoded(made)
    _not_decoded(made)
    return made


def _session(id: str) -> bytes:
    return drawn_bytes(id, "session", 16)


def _round(id: str) -> int:
    return int.from_bytes(drawn_bytes(id, "round", 4), "little")


def _message(id: str, kind: type[Any] = MaskedUpdate, **changed: Any) -> Any:
    """Return a message of a round with drawn fields."""
    ends = {MaskShare: (1, 3), SurvivingSet: (SERVER, 2)}.get(kind, (2, SERVER))
    content: dict[type[Any], Any] = {
        MaskShare: lambda: {"payload": drawn_bytes(id, "payload", 11)},
        MaskedUpdate: lambda: {"masked": drawn(id, "masked", 2**32, 3)},
        SurvivingSet: lambda: {"users": (0, 2, 258)},
        AggregatedShare: lambda: {"share": drawn(id, "share", 2**32, 2)},
    }
    header = {"session": _session(id), "round": _round(id), "sender": ends[0], "receiver": ends[1]}
    return kind(**{**header, **content[kind](), **changed})


_NAMES = {
    MaskShare: "mask-share",
    MaskedUpdate: "masked-update",
    SurvivingSet: "surviving-set",
    AggregatedShare: "aggregated-share",
}


def _both_ways(made: VectorFile) -> None:
    usual = ["Integers", "Header"]
    counted = [*usual, "Counts"]
    largest = np.array([2**32 - 1, 2**31, 0], dtype=np.uint64)
    nothing = np.empty(0, dtype=np.uint64)
    for name, kind, changed, flags, comment in (
        ("mask-share", MaskShare, {}, usual, "an opaque payload, from a user to a user"),
        ("masked-update", MaskedUpdate, {}, counted, "a vector, from a user to the server"),
        ("surviving-set", SurvivingSet, {}, counted, "a list of users, from the server to a user"),
        ("aggregated-share", AggregatedShare, {}, counted, "a vector, from a user to the server"),
        ("empty-payload", MaskShare, {"payload": b""}, ["EmptyFields"], "an empty payload"),
        ("empty-vector", MaskedUpdate, {"masked": nothing}, ["EmptyFields"], "a vector of no elements"),
        ("empty-set", SurvivingSet, {"users": ()}, ["EmptyFields"], "a list of no users"),
        ("empty-share", AggregatedShare, {"share": nothing}, ["EmptyFields"], "a vector of no elements"),
        ("largest-elements", MaskedUpdate, {"masked": largest}, ["LargestNumbers"], "the largest elements"),
        ("largest-round", MaskShare, {"round": 2**32 - 1}, ["LargestNumbers"], "the largest round number"),
        ("largest-users", SurvivingSet, {"users": (2**31 - 1,)}, ["Integers"], "the largest user number"),
        ("largest-parties", MaskShare, {"sender": 2**31 - 1, "receiver": 256}, usual, "large user numbers as parties"),
        ("from-server", MaskShare, {"sender": SERVER}, ["ServerParty"], "the server as sender"),
        ("to-server", AggregatedShare, {}, ["ServerParty"], "the server as receiver"),
        ("round-0", SurvivingSet, {"round": 0}, ["Header"], "round 0"),
    ):
        for operation, verb in ((_ENCODE, "encode"), (_DECODE, "decode")):
            id = f"message-{verb}-{name}"
            message = _message(id, kind, **changed)
            params = message_params(message) if operation == _ENCODE else _data(message)
            made.valid(id, operation, params, clauses=["MSG-01"], flags=flags, comment=comment)


def _data(message: Message) -> dict[str, Any]:
    return {"type": message.TYPE, "bytes": encode(message).hex()}


def _not_encoded(made: VectorFile) -> None:
    for size in (15, 17):
        id = f"message-encode-session-{size}"
        _not_written(made, id, {"session": drawn_bytes(id, "altered", size).hex()}, "SessionLength", f"{size} bytes")
    id = "message-encode-round"
    _not_written(made, id, {"round": str(2**32 + 1)}, "RoundFits", "the round 2**32 + 1 does not fit")
    for id, fields, comment in (
        ("message-encode-no-field", {}, "the field masked is missing"),
        ("message-encode-unknown-field", {"masked": "", "zq": ""}, "there is no field zq"),
        (
            "message-encode-other-field",
            {"share": "01000000"},
            "masked is missing, and share is the field of another type",
        ),
    ):
        _not_written(made, id, {"fields": fields}, "FieldNames", comment)


def _not_written(made: VectorFile, id: str, changed: dict[str, Any], flag: str, comment: str) -> None:
    params = {**message_params(_message(id)), **changed}
    made.invalid(id, _ENCODE, params, codes=FIELDS, clauses=["MSG-01"], flags=[flag], comment=comment)


def _not_decoded(made: VectorFile) -> None:
    whole = {kind: len(encode(_message("any", kind))) for kind in _NAMES}
    for kind, name in _NAMES.items():
        for left in (10, 29, _HEADER, _HEADER + 3, whole[kind] - 1):
            id = f"message-decode-{name}-cut-{left}"
            data = encode(_message(id, kind))[:left]
            _not_read(made, id, kind, data, "EndsEarly", f"{left} bytes of {whole[kind]}")
        id = f"message-decode-{name}-longer"
        _not_read(made, id, kind, encode(_message(id, kind)) + b"\0", "GoesOn", "a byte follows the last field")
        _counts(made, kind, name)
    id = "message-decode-two"
    data = encode(_message(id, SurvivingSet)) * 2
    _not_read(made, id, SurvivingSet, data, "GoesOn", "the message stands there twice")
    _types(made)


def _counts(made: VectorFile, kind: type[Any], name: str) -> None:
    for word, change, flag in (("more", 1, "CountLies"), ("fewer", -1, "GoesOn"), ("huge", None, "CountLies")):
        id = f"message-decode-{name}-count-{word}"
        data = encode(_message(id, kind))
        count = int.from_bytes(data[_HEADER : _HEADER + 4], "little")
        lie = 2**32 - 1 if change is None else count + change
        changed = data[:_HEADER] + lie.to_bytes(4, "little") + data[_HEADER + 4 :]
        _not_read(made, id, kind, changed, flag, f"the count is {lie}, and {count} entries follow")


def _types(made: VectorFile) -> None:
    for kind, number in (
        (AggregatedShare, 258),
        (MaskedUpdate, 260),
        (SurvivingSet, 257),
        (MaskShare, 0),
        (MaskShare, 1),
    ):
        id = f"message-decode-{_NAMES[kind]}-type-{number}"
        data = number.to_bytes(2, "little") + encode(_message(id, kind))[2:]
        comment = f"the bytes of another type: {number}, where {kind.TYPE} is to be read"
        made.invalid(
            id,
            _DECODE,
            {"type": kind.TYPE, "bytes": data.hex()},
            codes=ANOTHER_TYPE,
            clauses=["MSG-02"],
            flags=["AnotherType"],
            comment=comment,
        )


def _not_read(made: VectorFile, id: str, kind: type[Any], data: bytes, flag: str, comment: str) -> None:
    params = {"type": kind.TYPE, "bytes": data.hex()}
    made.invalid(id, _DECODE, params, codes=MALFORMED, clauses=["MSG-02"], flags=[flag], comment=comment)
