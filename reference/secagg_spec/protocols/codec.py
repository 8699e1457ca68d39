"""The bytes of messages, derived from their classes.

A message class is a frozen dataclass below `Message` whose fields are annotated with the types of this module. Its
bytes are the header and its fields, in declared order.

Source: spec/conventions.md, section 5 (MSG-01, MSG-02).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, get_type_hints

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray, read_only
from secagg_spec.errors import LengthMismatch, Malformed, OutOfRange, ParameterError

_U32_VALUES = 2**32


class FieldCodec(Protocol):
    """How one field is written and read; `name` is for error messages."""

    def write(self, name: str, value: Any) -> bytes:
        """Return the bytes of `value`."""
        ...

    def read(self, name: str, data: memoryview) -> tuple[Any, memoryview]:
        """Return the value at the start of `data`, and the rest."""
        ...


@dataclass(frozen=True)
class Unsigned(validate.Plain):
    """An unsigned integer of `width` bytes, little-endian."""

    width: int

    def write(self, name: str, value: Any) -> bytes:
        """Return `width` bytes; refuse a value that does not fit."""
        integer = type(value) is int or isinstance(validate.number(value), int)
        if not integer or not 0 <= value < 1 << (8 * self.width):
            raise OutOfRange(name, value, f"an integer in [0, 2**{8 * self.width})")
        return int(value).to_bytes(self.width, "little")

    def read(self, name: str, data: memoryview) -> tuple[int, memoryview]:
        """Return an integer and the rest."""
        head, rest = _cut(name, data, self.width)
        return int.from_bytes(head, "little"), rest


@dataclass(frozen=True)
class FixedBytes(validate.Plain):
    """Exactly `size` bytes."""

    size: int

    def write(self, name: str, value: Any) -> bytes:
        """Return the bytes; refuse any other length."""
        data = validate.octets(name, value)
        if len(data) != self.size:
            raise LengthMismatch(f"len({name})", len(data), str(self.size))
        return data

    def read(self, name: str, data: memoryview) -> tuple[bytes, memoryview]:
        """Return the bytes and the rest."""
        head, rest = _cut(name, data, self.size)
        return bytes(head), rest


@dataclass(frozen=True)
class OpaqueBytes:
    """Bytes, preceded by their length."""

    def write(self, name: str, value: Any) -> bytes:
        """Return the length as u32, then the bytes."""
        data = validate.octets(name, value)
        return _U32.write(f"len({name})", len(data)) + data

    def read(self, name: str, data: memoryview) -> tuple[bytes, memoryview]:
        """Return the bytes and the rest."""
        size, rest = _U32.read(name, data)
        head, rest = _cut(name, rest, size)
        return bytes(head), rest


@dataclass(frozen=True)
class Words:
    """A list of 32-bit words, preceded by their count. `kind` is a tuple of users or a uint64 array of elements."""

    kind: type

    def write(self, name: str, value: Any) -> bytes:
        """Return the count as u32, then each word as u32."""
        if self.kind is tuple:
            users = validate.sequence(name, value, "users")
            return _U32.write(f"len({name})", len(users)) + b"".join([_U32.write(name, user) for user in users])
        words = validate.elements(name, value, _U32_VALUES, (None,))
        return _U32.write(f"len({name})", words.size) + words.astype("<u4").tobytes()

    def read(self, name: str, data: memoryview) -> tuple[Any, memoryview]:
        """Return the words and the rest."""
        count, rest = _U32.read(name, data)
        head, rest = _cut(name, rest, 4 * count)
        words = np.frombuffer(head, dtype="<u4").astype(np.uint64)
        return (tuple(int(w) for w in words) if self.kind is tuple else read_only(words)), rest


_U32 = Unsigned(4)
U16 = Annotated[int, Unsigned(2)]
U32 = Annotated[int, _U32]
Bytes16 = Annotated[bytes, FixedBytes(16)]
Opaque = Annotated[bytes, OpaqueBytes()]
Users = Annotated[tuple[int, ...], Words(tuple)]
Vector = Annotated[UintArray, Words(np.ndarray)]


@dataclass(frozen=True, eq=False)
class Message(validate.Plain):
    """The header that every message has. `TYPE` is the number of the message type.

    A printed message shows numbers and users, and of bytes and vectors only how long they are (ERR-03).
    """

    TYPE: ClassVar[int]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        setattr(cls, "__repr__", _printed)  # noqa: B010 - `dataclass` leaves alone what the class itself has

    session: Bytes16
    round: U32
    sender: U32
    receiver: U32


def _printed(message: Message) -> str:
    """Return what a printed message shows."""
    session = message.session
    shown = {"session": session.hex() if isinstance(session, bytes) else validate.class_of(session)}
    for name in (one.name for one in fields(message) if one.name != "session"):
        value = getattr(message, name)
        sized = {bytes: "bytes", np.ndarray: "elements"}.get(type(value))
        shown[name] = repr(value) if sized is None else f"<{len(value)} {sized}>"
    return f"{type(message).__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"


AnyMessage = TypeVar("AnyMessage", bound=Message)
_TYPE = Unsigned(2)
_CODECS: dict[type[Message], Mapping[str, FieldCodec]] = {}


def encode(message: Message) -> bytes:
    """Return the bytes of a message (MSG-01).

    Raises
    ------
    ParameterError
        Its class has no type number, or a field cannot be encoded.
    """
    parts = [_TYPE.write("type", _of_a_type("message", type(message)).TYPE)]
    parts += [codec.write(name, getattr(message, name)) for name, codec in field_codecs(type(message)).items()]
    return b"".join(parts)


def check_header(message: Message) -> None:
    """Refuse a message whose header cannot be encoded.

    Raises
    ------
    ParameterError
        The session is not 16 bytes, or a number does not fit its field.
    """
    for name, codec in field_codecs(Message).items():
        codec.write(name, getattr(message, name))


def check_fields(message: Message) -> None:
    """Refuse a message with a field after the header that cannot be encoded.

    Raises
    ------
    ParameterError
        A field has another type or length, or holds a number that does not fit.
    """
    for name, codec in field_codecs(type(message)).items():
        if name not in field_codecs(Message):
            codec.write(name, getattr(message, name))


def decode(kind: type[AnyMessage], data: bytes) -> AnyMessage:
    """Return the message of class `kind` that `data` holds (MSG-02).

    Raises
    ------
    Malformed
        The bytes end early, continue after the last field, or have another type number.
    ParameterError
        The class is none of messages.
    """
    _of_a_type("kind", kind)
    number, rest = _TYPE.read("type", memoryview(validate.octets("data", data)))
    if number != kind.TYPE:
        raise Malformed(f"type = {number}: {kind.__name__} has the type {kind.TYPE}")
    values: dict[str, Any] = {}
    for name, codec in field_codecs(kind).items():
        values[name], rest = codec.read(name, rest)
    if rest:
        raise Malformed(f"{len(rest)} bytes follow the last field of {kind.__name__}")
    return kind(**values)


def _of_a_type(name: str, kind: type[AnyMessage]) -> type[AnyMessage]:
    if not issubclass(kind, Message) or not hasattr(kind, "TYPE"):
        raise ParameterError(name, kind.__name__, "a class of messages with a type number")
    return kind


def vector_bytes(vector: UintArray) -> bytes:
    """Return a vector's bytes as a field: its count, then its elements."""
    return Words(np.ndarray).write("vector", vector)


def vector_from_bytes(data: bytes) -> UintArray:
    """Return the vector that `data` holds; `data` must hold nothing else.

    Raises
    ------
    Malformed
        The bytes end early or continue after the vector.
    """
    vector, rest = Words(np.ndarray).read("vector", memoryview(validate.octets("data", data)))
    if rest:
        raise Malformed(f"{len(rest)} bytes follow the vector")
    return np.asarray(vector, dtype=np.uint64)


def stored_vector(name: str, text: object) -> UintArray:
    """Return the vector that is stored as the hex digits of `vector_bytes`; an error calls it `name`.

    Raises
    ------
    ParameterError
        It is no text of such digits.
    """
    try:
        return vector_from_bytes(validate.from_hex(name, text))
    except Malformed as error:
        raise ParameterError(name, str(error), "a vector as it was stored") from None


def field_codecs(kind: type[Message]) -> Mapping[str, FieldCodec]:
    """Return the codec of each field of a message class, in declared order."""
    if kind not in _CODECS:
        hints = get_type_hints(kind, include_extras=True)
        _CODECS[kind] = {field.name: hints[field.name].__metadata__[0] for field in fields(kind)}
    return _CODECS[kind]


def _cut(name: str, data: memoryview, size: int) -> tuple[memoryview, memoryview]:
    if len(data) < size:
        raise Malformed(f"{name}: {size} bytes are needed and {len(data)} are left")
    return data[:size], data[size:]


guard(__name__)
