"""Checks of messages and their bytes (spec/conventions.md, section 5)."""

from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import valid
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, Change, Each, Params, check, equal, refuses
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.protocols.codec import encode

_ENCODE, _DECODE = "message.encode", "message.decode"
_NAMES = ("session", "round", "sender", "receiver", "fields")


@check("message.encode/exact", "MSG-01")
def encoded(draw: Any, call: Caller) -> None:
    """The bytes of a message are its fields in declared order."""
    message = valid.message(draw)
    want = encode(message).hex()
    got = call.result(_ENCODE, valid.message_params(message)).get("bytes")
    equal("the bytes are", got, want)


@check("message.encode/fields", "MSG-01", examples=20)
def forbidden_fields(draw: Any, call: Caller) -> None:
    """A session that is not 16 bytes long, a round that is not a u32, and a field of the wrong type are refused."""
    params = valid.message_params(valid.message(draw))
    options: tuple[dict[str, Any], ...] = (
        {"session": params["session"][2:]},
        {"session": params["session"] + "00"},
        {"round": str(2**32)},
        {"fields": {}},
        {"fields": {**params["fields"], "zq": ""}},
    )
    changed = draw(among(options))
    call.refused(_ENCODE, {**params, **changed}, reject.FIELD, f"the field {next(iter(changed))} has no such bytes")


@check("message.decode/exact", "MSG-01")
def decoded(draw: Any, call: Caller) -> None:
    """The bytes of a message decode to its fields."""
    message = valid.message(draw)
    want = {name: value for name, value in valid.message_params(message).items() if name in _NAMES}
    result = call.result(_DECODE, {"type": message.TYPE, "bytes": encode(message).hex()})
    got = {name: result.get(name) for name in _NAMES}
    equal("the message is", got, want)


@refuses(_DECODE, "cut", "MSG-02", examples=50)
def cut(draw: Any, params: Params) -> Change:
    """Bytes that end early are refused."""
    left = draw(st.integers(0, len(params["bytes"]) // 2 - 1))
    return {"bytes": params["bytes"][: 2 * left]}, reject.MALFORMED, "the bytes end early"


@refuses(_DECODE, "longer", "MSG-02", examples=25)
def longer(draw: Any, params: Params) -> Change:
    """Bytes that continue after the last field are refused."""
    data = params["bytes"] + "00" * draw(st.integers(1, 9))
    return {"bytes": data}, reject.MALFORMED, "the bytes go on after the last field"


@refuses(_DECODE, "count", "MSG-02", examples=7)
def count(draw: Any, params: Params) -> Change:
    """A count or a length larger than the remaining bytes is refused."""
    at, bit = draw(Each((0, 1, 2, 3))), draw(st.integers(0, 7))
    data = bytearray.fromhex(params["bytes"])
    data[30 + at] ^= 1 << bit
    return {"bytes": data.hex()}, reject.MALFORMED, "the count is not that of the bytes"


@refuses(_DECODE, "type", "MSG-02", examples=5)
def another_type(draw: Any, params: Params) -> Change:
    """A message with another type number is refused, even when its fields would fit."""
    other = draw(Each([kind for kind in (257, 258, 259, 260, 0, 513) if kind != params["type"]]))
    data = other.to_bytes(2, "little").hex() + params["bytes"][4:]
    return {"bytes": data}, reject.ANOTHER_TYPE, f"the bytes have the type {other}"
