"""Letters: the messages of a round in transit, and the network's changes to them.

A *change* is plain data, a list whose first entry is a word, so it can be stored and repeated. A change applies to any
message; its result may be bytes that are not a message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.targets.reference.messages import KINDS, parse
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.codec import Message, OpaqueBytes, Unsigned, Words, encode, field_codecs
from secagg_spec.protocols.steps import SERVER

Change: TypeAlias = Sequence[Any]
_HEADER = tuple(field_codecs(Message))
_WORDS = 2**32


@dataclass(frozen=True, eq=False)
class Letter:
    """A message in transit, as bytes.

    Parameters
    ----------
    data : bytes
        The delivered bytes.
    made : bool
        Whether the network made it. Such a letter goes with the next step, whatever its type, and is lost if refused.
    original : Letter or None
        The letter that returns in its place when it is lost.
    changed : bool
        Whether its bytes differ from those that somebody sent to this party in this round.
    """

    data: bytes
    made: bool = False
    original: Letter | None = None
    changed: bool = False

    @cached_property
    def message(self) -> Message | None:
        """The message, or None if the bytes are not a message."""
        try:
            return parse(self.data)
        except ProtocolError:
            return None


def changed(data: bytes, change: Change) -> bytes:
    """Return the bytes of a message after a change.

    Raises
    ------
    LookupError
        The change does not exist, or the message lacks what it names.
    """
    word, *rest = change
    return _CHANGES[word](data, *rest)


def announcing(data: bytes, change: Change) -> bytes:
    """Return a message with other users named in it, as a server might send to one user and not to another."""
    word, name, *rest = change
    message = parse(data)
    return encode(replace(message, **_LISTS[word](message, name, *rest)))


def _flip(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def _element(data: bytes, name: str, at: int, mask: int) -> bytes:
    message = parse(data)
    values: Any = getattr(message, name)
    if isinstance(values, bytes):
        flipped: Any = _flip(values, at, mask)
        return encode(replace(message, **{name: flipped}))
    numbers = [int(value) for value in values]
    numbers[at] ^= mask
    made: Any = tuple(numbers) if isinstance(values, tuple) else np.array(numbers, np.uint64)
    return encode(replace(message, **{name: made}))


def _headed(name: str) -> Callable[[bytes, Any], bytes]:
    return lambda data, value: encode(replace(parse(data), **{name: value}))


_CHANGES: Mapping[str, Callable[..., bytes]] = MappingProxyType(
    {
        "flip": _flip,
        "cut": lambda data, count: data[: len(data) - count],
        "longer": lambda data, count: data + bytes(count),
        "type": lambda data, number: number.to_bytes(2, "little") + data[2:],
        "element": _element,
        **{name: _headed(name) for name in _HEADER},
    }
)


def user_lists(message: Message) -> list[str]:
    """Return the names of the fields that are lists of users."""
    codecs = field_codecs(type(message))
    return [name for name, codec in codecs.items() if codec == Words(tuple) and getattr(message, name) is not None]


def _columns(message: Message, name: str) -> dict[str, list[Any]]:
    """Return a list of users together with the parallel lists, one entry for each user, by field name."""
    count, found = len(getattr(message, name)), {name: list(getattr(message, name))}
    if not count or len(user_lists(message)) > 1:
        return found
    for other, codec in field_codecs(type(message)).items():
        value = getattr(message, other)
        if isinstance(codec, OpaqueBytes) and value and not divmod(len(value), count)[1]:
            width = len(value) // count
            found[other] = [value[at : at + width] for at in range(0, len(value), width)]
        elif codec == Words(np.ndarray) and len(value) == count:
            found[other] = value.tolist()
    return found


def _joined(columns: Mapping[str, list[Any]], message: Message) -> dict[str, Any]:
    """Return the fields of a message into which columns are written."""
    joined: Mapping[type, Callable[[list[Any]], Any]] = {tuple: tuple, bytes: b"".join}
    words: Callable[[list[Any]], Any] = lambda entries: np.array(entries, np.uint64)  # noqa: E731
    return {name: joined.get(type(getattr(message, name)), words)(entries) for name, entries in columns.items()}


def _each(change: Callable[[list[Any], int], list[Any]]) -> Callable[[Message, str, int], dict[str, Any]]:
    """Return what changes a list of users and the parallel lists alike."""
    return lambda message, name, at: _joined(
        {other: change(entries, at) for other, entries in _columns(message, name).items()}, message
    )


_left_out = _each(lambda entries, at: entries[:at] + entries[at + 1 :])


def _added(message: Message, name: str, user: int) -> dict[str, Any]:
    """Insert another user where it belongs, with a copy of the parallel entries of the user after it."""
    columns = _columns(message, name)
    at = sum(other < user for other in columns[name])
    for other, entries in columns.items():
        entries.insert(at, user if other == name else entries[min(at, len(entries) - 1)])
    return _joined(columns, message)


def _moved(message: Message, name: str, at: int) -> dict[str, Any]:
    """Move a user from one list to the other."""
    return {**_left_out(message, name, at), **_in_both(message, name, at)}


def _in_both(message: Message, name: str, at: int) -> dict[str, Any]:
    """Add a user of one list to the other list as well."""
    [other] = [field for field in user_lists(message) if field != name]
    user = getattr(message, name)[at]
    return {other: tuple(sorted({*getattr(message, other), user}))}


_LISTS: Mapping[str, Callable[..., dict[str, Any]]] = MappingProxyType(
    {
        "without": _left_out,
        "with": _added,
        "moved": _moved,
        "both": _in_both,
        "twice": _each(lambda entries, at: entries[: at + 1] + entries[at:]),
        "swapped": _each(lambda entries, at: [*entries[: at - 1], entries[at], entries[at - 1], *entries[at + 1 :]]),
    }
)


@st.composite
def changes(draw: st.DrawFn, data: bytes, parties: Sequence[int]) -> list[Any]:
    """Draw a change of a message; `parties` are its possible senders and receivers."""
    message = parse(data)
    word = draw(among(("element", "flip", "sender", "receiver", "round", "session", "cut", "longer", "type")))
    if word == "element" and _own(message):
        return _drawn_element(draw, message)
    values: Mapping[str, Callable[[], list[Any]]] = {
        "cut": lambda: [draw(st.integers(1, len(data)))],
        "longer": lambda: [draw(st.integers(1, 4))],
        "type": lambda: [draw(among([number for number in sorted(KINDS) if number != message.TYPE]))],
        "session": lambda: [bytes([message.session[0] ^ 1]) + message.session[1:]],
        "round": lambda: [message.round ^ 1 << draw(among((0, 1, 31)))],
        "sender": lambda: [draw(among([party for party in parties if party != message.sender]))],
        "receiver": lambda: [draw(among([party for party in parties if party != message.receiver]))],
    }
    if word in values:
        return [word, *values[word]()]
    return ["flip", draw(st.integers(0, len(data) - 1)), 1 << draw(st.integers(0, 7))]


def _own(message: Message) -> list[str]:
    """Return the nonempty fields after the header."""
    codecs = field_codecs(type(message))
    lists = (name for name, codec in codecs.items() if name not in _HEADER and not isinstance(codec, Unsigned))
    return [name for name in lists if len(getattr(message, name))]


def _drawn_element(draw: st.DrawFn, message: Message) -> list[Any]:
    name = draw(among(_own(message)))
    value = getattr(message, name)
    at, bits = draw(st.integers(0, len(value) - 1)), 8 if isinstance(value, bytes) else 32
    return ["element", name, at, 1 << draw(st.integers(0, bits - 1))]


@st.composite
def lies(draw: st.DrawFn, data: bytes, size: int) -> list[Any]:
    """Draw a change of the users that a message names, among the `size` users of the round."""
    message = parse(data)
    lists = user_lists(message)
    name = draw(among(lists))
    users = getattr(message, name)
    unnamed = [user for user in (*range(size), size, SERVER) if user not in users]
    words = ["without", *(["moved", "both"] if len(lists) == 2 else []), "twice"] if users else []
    words += ["with"] if unnamed else []
    words += ["swapped"] if len(users) > 1 else []
    word = draw(among(words))
    if word == "with":
        return [word, name, draw(among(unnamed))]
    return [word, name, draw(st.integers(1 if word == "swapped" else 0, len(users) - 1))]
