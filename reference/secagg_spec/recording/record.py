"""Define the parts of a recorded round, and build a moment from the steps that were taken.

A *moment* is what a reader sees at once: the steps of all users in a phase, the step of the server, or everything that
happens when one user arrives. It contains the messages sent, additions that a reader can follow, and what the server
knows afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import SERVER, Event, Network, Role, Step, role_of, sizes
from secagg_spec.recording.knowledge import Knowledge
from secagg_spec.simulate.narration import message_in_words

Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """One summand: a vector with a name, times a factor."""

    name: str
    vector: Numbers
    factor: int = 1


@dataclass(frozen=True)
class Addition:
    """Terms that add up to the result modulo a number; `about` names the part of the vectors, if it is not all."""

    modulus: int
    terms: tuple[Term, ...]
    result: Term
    about: str = ""

    def __post_init__(self) -> None:
        validate.integer("modulus", self.modulus, 1)
        for term in validate.sequence("terms", self.terms, "terms"):
            validate.instance("terms", term, Term)

    @property
    def holds(self) -> bool:
        """Whether the terms, all as long as the result, add up to it."""
        if any(len(term.vector) != len(self.result.vector) for term in self.terms):
            return False
        rows = [[term.factor * number for number in term.vector] for term in self.terms]
        total = (sum(row[at] for row in rows) for at in range(len(self.result.vector)))
        return tuple(divmod(number, self.modulus)[1] for number in total) == self.result.vector


@dataclass(frozen=True)
class Parcel:
    """The messages of one kind that are sent in a moment: senders and receivers, and the total size in bytes."""

    kind: str
    routes: tuple[tuple[int, int], ...]
    bytes: int
    example: str

    def hops(self, role: Role) -> Iterator[tuple[int, int]]:
        """Yield the hops of these messages at a party of this role; messages between users pass through the server."""
        for sender, receiver in self.routes:
            between = role_of(sender) is role_of(receiver) is Role.USER
            if between and role is Role.USER:
                yield sender, SERVER
            elif between:
                yield SERVER, receiver
            else:
                yield sender, receiver


@dataclass(frozen=True)
class Sending:
    """What the parties of one role send, one after the other or all at once."""

    role: str
    parcels: tuple[Parcel, ...]


@dataclass(frozen=True)
class Moment:
    """What a reader sees at once.

    `key` names the moment, and `happened` says what else occurred, such as dropouts. `present` are the users that are
    present, and `acting` are those that act. `server` and `colluding` are what the server then knows, alone and
    together with one user.
    """

    key: str
    title: str
    present: Numbers
    acting: Numbers
    sendings: tuple[Sending, ...] = ()
    additions: tuple[Addition, ...] = ()
    values: tuple[Term, ...] = ()
    server: Knowledge = field(default_factory=Knowledge)
    colluding: Knowledge = field(default_factory=Knowledge)
    happened: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """A run of a protocol: its inputs, its moments, and its end: a sum, or the reason why there is none.

    `inputs` are by name. `colluder` is the user that pools its knowledge with the server.

    Raises `UnknownUser` if no user has the number of the colluder.
    """

    protocol: str
    run: str
    parameters: Mapping[str, int]
    users: int
    colluder: int
    inputs: tuple[Term, ...]
    moments: tuple[Moment, ...]
    summed: tuple[Term, ...] = ()
    ended: str = ""

    def __post_init__(self) -> None:
        validate.users("colluder", (self.colluder,), validate.integer("users", self.users, 1, validate.MAX_COUNT))

    def data(self) -> dict[str, Any]:
        """Return the recording as JSON data; empty values are left out."""
        slim: dict[str, Any] = _slim(asdict(self))
        return slim


def _slim(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _slim(entry) for name, entry in value.items() if entry not in ((), "", None)}
    return [_slim(entry) for entry in value] if isinstance(value, (tuple, list)) else value


# ----------------------------------------------------------------------------------------------------- making them


def numbers(vector: UintArray | Sequence[int]) -> Numbers:
    """Return a vector as plain integers, for checked arguments."""
    return tuple(int(number) for number in validate.collection("vector", vector, "integers"))


def plus(name: str, users: Iterable[int]) -> str:
    """Return the name of the sum of the users' vectors."""
    return " + ".join(f"{name}_{user}" for user in users)


def sending(events: Sequence[Event]) -> Sending:
    """Return the messages sent in steps of one role."""
    kinds: dict[str, list[Message]] = {}
    for event in events:
        for message in event.sent:
            kinds.setdefault(type(message).__name__, []).append(message)
    role = events[0].step.role.value if events else Role.USER.value
    return Sending(role, tuple(_parcel(kind, messages) for kind, messages in kinds.items()))


def _parcel(kind: str, messages: Sequence[Message]) -> Parcel:
    routes = tuple((message.sender, message.receiver) for message in messages)
    return Parcel(kind, routes, sizes(messages), message_in_words(messages[0]))


def sendings(events: Iterable[Event]) -> tuple[Sending, ...]:
    """Return the messages sent in the steps of each row of the table; rows without messages are left out."""
    taken: dict[int, list[Event]] = {}
    for event in events:
        taken.setdefault(id(event.step), []).append(event)
    return tuple(made for made in map(sending, taken.values()) if made.parcels)


def rows(network: Network) -> Iterator[tuple[Step[Any], tuple[Event, ...]]]:
    """Yield each row of a synchronous protocol with the steps that were taken; the last one may have been refused."""
    for step in network.table:
        events = tuple(event for event in network.transcript if event.step is step)
        yield step, events
        if step.role is Role.SERVER and not events:
            return


guard(__name__)
