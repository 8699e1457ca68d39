"""Searches what people read for what nobody may read: values of parties that no message carries in the clear.

While a round is played, each step is noted with its state, messages and sampled values. A *secret* is every value of
them that is long enough to be known again, and is neither public by its class nor in a message: keys, seeds, masks,
noise, shares, inputs. It is searched in hex digits, base64, decimals and as Python writes bytes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import steps
from secagg_spec.protocols.codec import Message

PUBLIC = {
    *("Parameters", "Roster", "PublicKeys", "PublicKey", "Context", "Graph", "Round", "Epoch", "Ballot", "Address"),
    *("Session", "Proposal", "Seat", "Place", "Recovered"),
}
"""Classes whose instances everybody knows; the last hold hashes of boxes, boxes, and what a round is for."""
PUBLIC_MEMBERS = {"session", "verification", "authority", "signature"}
"""Members of stored states that everybody knows."""
RESULTS = {"aggregate", "masked_sum", "total", "average"}
"""Members of a server's state that are what it is for."""
WIDTH = 12
"""How many characters of a secret are searched: they are 48 bits or more of it."""
LEAST = 10**7
"""The smallest number that is searched: others stand in texts by chance."""


@dataclass
class Taken:
    """A step that was taken, with all that went in and came out."""

    step: steps.Step[Any]
    state: Any
    inbox: Sequence[Message]
    sampled: Mapping[str, Any]
    after: Any
    outbox: Sequence[Message]


@dataclass
class Watch:
    """The steps of a play, and what public functions were given in it."""

    taken: list[Taken] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)

    def secrets(self) -> set[str]:
        """Return the needles of all secrets of the play."""
        public: set[Any] = set()
        hidden: set[Any] = set()
        for one in self.taken:
            for message in (*one.inbox, *one.outbox):
                public |= set(leaves(message))
            for state in (one.state, one.after):
                public |= set(leaves(state, of=PUBLIC))
                hidden |= set(leaves(state, but=PUBLIC))
            hidden |= set(leaves(one.sampled))
        return {needle for leaf in hidden - public for needle in needles(leaf)}

    def printed(self) -> dict[str, str]:
        """Return what each object of a play looks like when it is printed, by the name of its class."""
        found: dict[str, str] = {}
        seen: set[int] = set()
        steps = ((one.step, one.state, one.after, *one.inbox, *one.outbox) for one in self.taken)
        for value in (*chain.from_iterable(steps), *self.given):
            for part in parts(value, seen):
                name = type(part).__qualname__
                found[name] = f"{found.get(name, '')}\n{part!r}\n{part!s}"
        return found

    def refused(self, random: Random, each: int) -> dict[str, str]:
        """Return what the errors of spoiled steps say, by the class of the error and the phase."""
        found: dict[str, str] = {}
        for one in self.taken:
            for _ in range(each):
                inbox, sampled, state = spoiled(one, random)
                for text in said(lambda: one.step.take(state, inbox, randomness=sampled)):  # noqa: B023
                    place = f"{one.step.phase} of {one.step.role.value}"
                    found[place] = f"{found.get(place, '')}\n{text}"
        return found


@contextmanager
def watched() -> Iterator[Watch]:
    """Note each step that is taken while the block runs."""
    watch = Watch()

    def noting(take: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: Any, state: Any, inbox: Any, *, randomness: Any) -> Any:
            after, outbox = take(self, state, inbox, randomness=randomness)
            watch.taken.append(Taken(self, state, tuple(inbox), dict(randomness), after, outbox))
            return after, outbox

        return noted

    with (
        patch.object(steps.Step, "take", noting(steps.Step.take)),
        patch.object(steps._TakenBy, "take", noting(steps._TakenBy.take)),
    ):
        yield watch


def members(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the members of an object of the package, by name; of a collection, without names."""
    if is_dataclass(value) and not isinstance(value, type):
        return [(one.name, getattr(value, one.name)) for one in fields(value)]
    if isinstance(value, Mapping):
        return [("", part) for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [("", part) for part in value]
    if type(value).__module__.startswith("secagg_spec") and hasattr(value, "__dict__"):
        return list(vars(value).items())
    return ()


def leaves(value: Any, *, of: set[str] | None = None, but: set[str] = frozenset()) -> Iterator[Any]:  # type: ignore[assignment]
    """Yield the long byte strings, numbers and elements of arrays in a value: within classes alone, or outside them."""
    name = type(value).__name__
    if name in but or callable(value):
        return
    within = None if of is not None and name in of else of
    if within is None:
        if (isinstance(value, bytes) and len(value) >= WIDTH) or (isinstance(value, int) and value >= LEAST):
            yield value
        elif isinstance(value, np.ndarray) and value.dtype.kind in "uif":
            yield from (number for number in value.ravel().tolist() if number >= LEAST or number != int(number))
    for member, part in members(value):
        if member not in RESULTS:
            yield from leaves(part, of=within, but=but)


def parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield each object of the package that a value holds, once."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if type(value).__module__.startswith("secagg_spec"):
        yield value
    for _, part in members(value):
        yield from parts(part, seen)


def needles(leaf: Any) -> Iterator[str]:
    """Yield the beginnings of what a secret looks like in a text."""
    if isinstance(leaf, bytes):
        start = leaf[: 2 * WIDTH]
        yield start.hex()[:WIDTH]
        yield base64.b64encode(start).decode()[:WIDTH]
        yield base64.urlsafe_b64encode(start).decode()[:WIDTH]
        yield repr(start)[2 : 2 + 2 * WIDTH]
        yield ", ".join(map(str, start))[: 2 * WIDTH]
        yield str(int.from_bytes(leaf, "little"))[:WIDTH]
        yield str(int.from_bytes(leaf, "big"))[:WIDTH]
    elif isinstance(leaf, int):
        yield str(leaf)[:WIDTH]
        if leaf >= 1 << 48:
            yield f"{leaf:x}"[:WIDTH]
            yield leaf.to_bytes(-(-leaf.bit_length() // 8), "little").hex()[:WIDTH]
    else:
        yield repr(leaf)[:WIDTH]


def found(secrets: Iterable[str], text: str) -> set[str]:
    """Return the needles that are in a text."""
    numbers = set(re.findall(r"\d{8,}", text))
    grams = {width: {text[at : at + width] for at in range(len(text))} for width in (WIDTH, 2 * WIDTH)}
    return {one for one in secrets if one in numbers or one in grams.get(len(one), ())}


def said(act: Callable[[], object]) -> Iterator[str]:
    """Yield what an error, and each that it came from, says; nothing where there is none."""
    error: BaseException | None = None
    try:
        act()
    except Exception as raised:  # a spoiled state may not be one at all; what is raised then must be as silent
        error = raised
    waiting = [error]
    while waiting:
        error = waiting.pop()
        if error is not None:
            yield f"{error!s} {error!r} {error.args!r}"
            waiting += [error.__cause__, error.__context__]


def spoiled(one: Taken, random: Random) -> tuple[Sequence[Any], Mapping[str, Any], Any]:
    """Return the inbox, the sampled values and the state of a step, one of which was changed."""
    inbox, sampled, state = list(one.inbox), dict(one.sampled), one.state
    choices = [*["inbox"] * bool(inbox), *["sampled"] * bool(sampled), "state"]
    match random.choice(choices):
        case "inbox":
            at = random.randrange(len(inbox))
            act = random.randrange(4)
            if act == 0:
                del inbox[at]
            elif act == 1:
                inbox.append(inbox[at])
            else:
                name = random.choice([each.name for each in fields(inbox[at])])
                inbox[at] = replace(inbox[at], **{name: changed(getattr(inbox[at], name), random)})
        case "sampled":
            name = random.choice(list(sampled))
            sampled[name] = changed(sampled[name], random)
        case _:
            names = [
                each.name for each in fields(state) if each.init and each.name not in ("phase", "parameters", "round")
            ]
            name = random.choice(names)
            state = replace(state, **{name: changed(getattr(state, name), random)})
    return inbox, sampled, state


def changed(value: Any, random: Random) -> Any:
    """Return another value of the same type: shorter, longer, out of range, or altered in one place."""
    act = random.randrange(4)
    if isinstance(value, bytes):
        at = random.randrange(max(len(value), 1))
        return (
            value[:-1],
            value + b"\0",
            value[:at] + bytes([255 ^ value[at]]) + value[at + 1 :] if value else b"1",
            b"",
        )[act]
    if isinstance(value, np.ndarray) and value.size:
        other = value.copy()
        other.ravel()[random.randrange(value.size)] = np.iinfo(value.dtype).max if value.dtype.kind in "ui" else 3
        return (value[:-1], np.concatenate([value, value[:1]]), other, value.astype(np.float64))[act]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return (value + 1, -value - 1, value << 300, value + (1 << 32))[act]
    if isinstance(value, Mapping) and value:
        key = random.choice(list(value))
        if act == 0:
            return {k: part for k, part in value.items() if k != key}
        return {**value, key: changed(value[key], random)}
    if isinstance(value, tuple) and value and not hasattr(value, "_fields"):
        at = random.randrange(len(value))
        return value[:-1] if act == 0 else (*value[:at], changed(value[at], random), *value[at + 1 :])
    if is_dataclass(value) and not isinstance(value, type) and type(value).__name__ not in PUBLIC:
        names = [each.name for each in fields(value) if each.init]
        if names:
            name = random.choice(names)
            try:
                return replace(value, **{name: changed(getattr(value, name), random)})
            except (ParameterError, ProtocolError, TypeError, ValueError, AttributeError):
                return value
    return value


# ------------------------------------------------------------------------------------------- values of another form

MARKED = bytes(range(163, 249, 2))[:32]
"""A key that no message holds by chance: what a call is given in the place of its secret."""
EIGHT = 8
"""How many characters of a marked key an error may not show."""


class Text(str):
    """A string of a class that the package does not know."""

    __slots__ = ()


def forms(key: bytes = MARKED) -> dict[str, Any]:
    """Return a key as a careless caller may give it: of the wrong type, of the wrong length, in a container."""
    number = int.from_bytes(key, "little")
    flat: dict[str, Any] = {
        "bytes": key,
        "short": key[:-1],
        "long": key + key,
        "bytearray": bytearray(key),
        "view": memoryview(key),
        "hex": key.hex(),
        "text": Text(key.hex()),
        "base64": base64.b64encode(key).decode(),
        "latin": key.decode("latin-1"),
        "numbers": list(key),
        "range": tuple(key),
        "integer": number,
        "digits": str(number),
        "fraction": Fraction(number),
        "decimal": Decimal(number),
        "array": np.frombuffer(key, dtype=np.uint8),
        "words": np.frombuffer(key, dtype=np.uint32),
        "objects": np.array([number], dtype=object),
        "scalar": np.bytes_(key),
    }
    for what, one in {"key": key, "short": key[:-1], "hex": key.hex(), "number": number}.items():
        flat |= {f"{what} in a list": [one], f"{what} in a tuple": (one,), f"{what} in a set": frozenset({one})}
        flat |= {f"{what} in a mapping": {0: one}, f"{what} as a key": {one: 0}, f"{what} in lists": [[one]]}
    return flat


def written(key: bytes = MARKED) -> set[str]:
    """Return all runs of eight characters of what a key looks like in a text."""
    numbers = [int.from_bytes(key, order) for order in ("little", "big")]
    texts = [key.hex(), key.hex().upper(), repr(key)[2:-1], ", ".join(map(str, key)), key.decode("latin-1")]
    texts += [base64.b64encode(key).decode(), *map(str, numbers), *(f"{number:x}" for number in numbers)]
    texts += [str(np.frombuffer(key, dtype=np.uint8))[1:-1], str(np.frombuffer(key, dtype=np.uint32))[1:-1]]
    return {text[at : at + EIGHT] for text in texts for at in range(len(text) - EIGHT + 1)}


def shows(text: str, runs: set[str]) -> bool:
    """Return whether a text shows eight characters of a key, given all its runs."""
    return any(text[at : at + EIGHT] in runs for at in range(len(text) - EIGHT + 1))


def replaced(value: Any, other: Any) -> Iterator[Any]:
    """Yield `other`, and a value with `other` in the place of one of its parts, or as one more key."""
    yield other
    if isinstance(value, Mapping):
        for key in holding(value):
            yield from ({**value, key: part} for part in replaced(value[key], other))
            if isinstance(other, Hashable):
                try:
                    yield {**{one: part for one, part in value.items() if one != key}, other: value[key]}
                except TypeError:  # a tuple that holds a list has a hash function, and no hash
                    continue
    elif isinstance(value, (list, tuple)) and value and not hasattr(value, "_fields"):
        for at in holding(dict(enumerate(value))):
            yield from (type(value)([*value[:at], part, *value[at + 1 :]]) for part in replaced(value[at], other))
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__name__ not in PUBLIC:
        for name in holding({one.name: getattr(value, one.name) for one in fields(value) if one.init}):
            for part in replaced(getattr(value, name), other):
                with suppress(Exception):  # a class that checks its members is called by itself as well
                    yield replace(value, **{name: part})


def holding(parts: Mapping[Any, Any]) -> list[Any]:
    """Return the names of four parts that hold something long enough to be a secret; of the first part if none does."""

    def holds(part: Any) -> bool:
        if isinstance(part, str):
            return len(part) > 2 * WIDTH
        return any(True for _ in leaves(part, but=PUBLIC)) or any(holds(inner) for _, inner in members(part))

    return [name for name in parts if name not in PUBLIC_MEMBERS and holds(parts[name])][:4] or list(parts)[:1]
