"""Messages in the form of requests, by the codec of the reference (spec/conventions.md, section 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.errors import Malformed, ParameterError
from secagg_spec.protocols import codec
from secagg_spec.protocols.basa import messages as basa_messages
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.codec import FieldCodec, Message
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import AUTHORITY, SERVER

_MODULES = lightsecagg, lightsecagg_active, secagg, secagg_active, basecagg, basecagg_active, basa_messages, heterosag
KINDS: dict[int, type[Message]] = {
    kind.TYPE: kind
    for module in _MODULES
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == module.__name__
}
"""The message types of the declared protocols, by number."""


@dataclass(frozen=True)
class _Form:
    """The form of a field in a request."""

    read: Callable[[str, Any], Any]
    write: Callable[[Any], Any]


def _bytes(name: str, value: Any) -> bytes:
    return readers.octets(name, readers.formed(name, value, "bytes"))


def _users(name: str, value: Any) -> tuple[int, ...]:
    return tuple(readers.formed(name, value, "[integer]"))


def _vector(name: str, value: Any) -> UintArray:
    return readers.vector(name, readers.formed(name, value, "vector"))


def _number(name: str, value: Any) -> int:
    return int(readers.integer(name, readers.formed(name, value, "integer"), 2**32))


_FORMS: dict[FieldCodec, _Form] = {
    codec.Unsigned(2): _Form(_number, int),
    codec.Unsigned(4): _Form(_number, int),
    codec.OpaqueBytes(): _Form(_bytes, bytes.hex),
    codec.Words(tuple): _Form(_users, list),
    codec.Words(np.ndarray): _Form(_vector, pack),
}


def parse(data: bytes) -> Message:
    """Return the message of any known type in `data` (MSG-02)."""
    number = int.from_bytes(data[:2], "little")
    if len(data) < 2 or number not in KINDS:
        raise Malformed(f"type = {number}: messages have the types {sorted(KINDS)}")
    return codec.decode(KINDS[number], data)


def named(party: int) -> int | str:
    """Return a party in the form of answers."""
    return {SERVER: "server", AUTHORITY: "authority"}.get(party, party)


def _kind(type: Any) -> type[Message]:
    number = readers.integer("type", type, 2**16)
    if number not in KINDS:
        raise ParameterError("type", number, f"one of {sorted(KINDS)}")
    return KINDS[number]


def _own_fields(kind: type[Message]) -> dict[str, _Form]:
    """Return the fields of a message type after the header."""
    header = codec.field_codecs(Message)
    return {name: _FORMS[field] for name, field in codec.field_codecs(kind).items() if name not in header}


def _encode(type: Any, session: Any, round: Any, sender: Any, receiver: Any, fields: Any) -> dict[str, Any]:
    kind = _kind(type)
    forms = _own_fields(kind)
    values = readers.members("fields", fields, *forms)
    message = kind(
        readers.octets("session", session),
        readers.u32("round", round),
        readers.party("sender", sender),
        readers.party("receiver", receiver),
        *(form.read(name, value) for (name, form), value in zip(forms.items(), values, strict=True)),
    )
    return {"bytes": codec.encode(message).hex()}


def _decode(type: Any, bytes: Any) -> dict[str, Any]:
    message = codec.decode(_kind(type), readers.octets("bytes", bytes))
    for name in ("sender", "receiver"):
        if 2**31 <= getattr(message, name) < AUTHORITY:
            raise Reject("malformed", f"{name} is {getattr(message, name)}, which is no party")
    return shown(message)


def shown(message: Message) -> dict[str, Any]:
    """Return a message in the form of a result, without its type."""
    fields = {name: form.write(getattr(message, name)) for name, form in _own_fields(type(message)).items()}
    parties = {"sender": named(message.sender), "receiver": named(message.receiver)}
    return {"session": message.session.hex(), "round": str(message.round), **parties, "fields": fields}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"message.encode": _encode, "message.decode": _decode}
