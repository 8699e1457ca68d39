"""The common shape of all protocols, and the network that runs them.

A protocol is a table of steps. ``step.take(state, inbox, randomness=...)`` takes a step: it reads the messages of one
phase. It either returns the next state and the messages to send, or raises and changes nothing (ERR-01). The row of a
step says when the step is taken, what it receives and from whom, and which sampled values it uses. `Step.take` checks
the row, and the body does only what the text says.

A `Network` carries messages between parties and keeps the transcript. A *schedule* decides which party takes which
step, and when. `run_synchronous` is the schedule of the protocols that run phase by phase. Protocols in which users
arrive one after another have their own schedules.

The decision and its alternatives: docs/decisions/0002-shape-of-a-protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, Concatenate, Generic, NamedTuple, TypeAlias, TypeVar

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import first_class, guard
from secagg_spec.errors import InconsistentSets, Malformed, ParameterError, Replay, UnknownUser, WrongPhase
from secagg_spec.protocols import codec
from secagg_spec.protocols.codec import AnyMessage, Message

SERVER = 2**32 - 1
AUTHORITY = 2**32 - 2
"""The party that makes keys for positions, in the protocols that have one."""

Inbox: TypeAlias = Sequence[Message]
Outbox: TypeAlias = tuple[Message, ...]
Randomness: TypeAlias = Mapping[str, Any]
Taking: TypeAlias = Callable[..., tuple[Any, Outbox]]
"""A function that takes a step: ``(state, inbox, *, randomness) -> (state, outbox)``."""


class Role(Enum):
    """Who takes a step."""

    USER = "user"
    SERVER = "server"
    AUTHORITY = "authority"


def role_of(party: int) -> Role:
    """Return the role of a party by its number."""
    return {SERVER: Role.SERVER, AUTHORITY: Role.AUTHORITY}.get(party, Role.USER)


class Endpoint(NamedTuple):
    """The session, the round and the number of a party. An endpoint without a round accepts messages of any round."""

    session: bytes
    round: int | None
    party: int

    def header(self, receiver: int) -> tuple[bytes, int, int, int]:
        """Return the first four members of a message of this round to `receiver`."""
        assert self.round is not None
        return self.session, self.round, self.party, receiver

    def takes(self, message: Message) -> bool:
        """Return whether a message belongs to this session and round."""
        return message.session == self.session and self.round in (None, message.round)


class PartyState(validate.Plain):
    """The part of a party's state that its steps rely on. A printed state shows no value of a party (ERR-03)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        setattr(cls, "__repr__", _printed)  # noqa: B010 - `dataclass` leaves alone what the class itself has

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases in order, if the protocol has an order."""
        return ()

    @property
    def phase(self) -> str:
        """The step that the party is ready for, or ``"done"`` at the end; without an order, its current activity."""
        raise NotImplementedError

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the party."""
        raise NotImplementedError


def _printed(state: PartyState) -> str:
    """Return what a printed state shows: its class, the party and its place in the session."""
    session, round, party = state.endpoint
    named = party if role_of(party) is Role.USER else role_of(party).value
    return f"{type(state).__name__}(session={session.hex()}, round={round}, party={named}, phase={state.phase!r})"


class ProfileState(PartyState):
    """A state that holds the state of another profile as `base`; where it says nothing else, the base answers."""

    base: Any

    @property
    def phases(self) -> tuple[str, ...]:
        """The order of the phases of the base."""
        phases: tuple[str, ...] = self.base.phases
        return phases

    @property
    def phase(self) -> str:
        """The phase of the base."""
        phase: str = self.base.phase
        return phase

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the base."""
        endpoint: Endpoint = self.base.endpoint
        return endpoint


State = TypeVar("State", bound=PartyState)
Other = TypeVar("Other", bound=PartyState)


def from_server(state: PartyState) -> Collection[int]:
    """Return the default senders of the messages that a user receives: the server."""
    return (SERVER,)


def from_authority(state: PartyState) -> Collection[int]:
    """Return the sender of messages from the authority."""
    return (AUTHORITY,)


@dataclass(frozen=True)
class Step(Generic[State]):
    """One row of a protocol's table of phases, and the step that a party takes there.

    Parameters
    ----------
    phase, role
        When the step is taken, and by whom.
    body : callable
        What the step does: it maps the state, the received messages and the sampled values to the next state and the
        outbox. After the state it takes the inbox, or the only message in it if the row says `one`; if the row receives
        nothing, it takes neither.
    receives, sends
        The classes of the messages.
    randomness
        The names of the sampled values, in the order of the body's arguments.
    one : bool
        Whether exactly one message is received.
    senders : callable or None
        The parties that may send, as a function of the state. None: the body checks its inbox itself.
    part : callable, optional
        How the body begins, if its messages need not all be there by then: it maps the state and some of the messages
        to a state that has them. The body of that state and the other messages is the step.
    states : type, optional
        The class of the states; the default is what the body says of its first argument.
    """

    phase: str
    role: Role
    body: Callable[..., tuple[State, Outbox]]
    receives: tuple[type[Message], ...] = ()
    sends: tuple[type[Message], ...] = ()
    randomness: tuple[str, ...] = ()
    one: bool = False
    senders: Callable[[State], Collection[int]] | None = from_server
    part: Callable[[State, Inbox], State] | None = None
    states: type[PartyState] | None = None

    def __post_init__(self) -> None:
        if self.one and not self.receives:
            raise ParameterError("one", True, "of a step that receives messages")

    @property
    def name(self) -> str:
        """The name of the function that is the body."""
        return self.body.__name__

    @property
    def __wrapped__(self) -> Callable[..., tuple[State, Outbox]]:
        return self.body

    def take(self, state: State, inbox: Inbox, *, randomness: Randomness) -> tuple[State, Outbox]:
        """Return the state after the step and the messages to send, without changing `state` or `inbox`.

        Parameters
        ----------
        state
            The party before the step.
        inbox : sequence of messages
            The messages that the party received.
        randomness : mapping
            The sampled values that the row names.

        Raises
        ------
        ParameterError
            A sampled value is missing or unknown (RND-04), the inbox is not a sequence of messages, or the state is
            not one of a party that takes this step.
        Replay
            The step was taken before, or there are two messages of one sender.
        WrongPhase
            An earlier step was not taken yet, a message does not belong to this step (MSG-03), or there is not exactly
            one message where the row says `one`.
        Malformed, InconsistentSets
            The same errors as in `accept`.
        ProtocolError
            The body refuses its input.
        """
        sampled = take_randomness(randomness, self.randomness)
        self._accept(state, inbox)
        if self.one and len(inbox) != 1:
            name = self.receives[0].__name__
            raise WrongPhase(f"one {name} is needed, and {len(inbox)} messages were received")
        received = () if not self.receives else (inbox[0],) if self.one else (inbox,)
        return self.body(state, *received, *sampled)

    def take_part(self, state: State, inbox: Inbox) -> State:
        """Return the state with some messages of the step, so that none of them need wait for the last one.

        `take` then takes the step with the other messages, if there are any. `state` and `inbox` are not changed.

        Raises
        ------
        ParameterError
            The step has no part, or the inbox is not a sequence of messages.
        InconsistentSets
            The state has a message of one of the senders already.
        ProtocolError
            The same errors as in `take`, as for these messages.
        """
        if self.part is None:
            raise ParameterError("step", self.name, "one that takes its messages in parts")
        self._accept(state, inbox)
        return self.part(state, inbox)

    def _accept(self, state: State, inbox: Inbox) -> None:
        """Refuse the state of another party or protocol, a step out of turn, and messages that do not belong to it."""
        kind = first_class(self.body, PartyState) if self.states is None else self.states
        role = role_of(validate.instance("state", state, kind).endpoint.party)
        if role is not self.role:
            raise ParameterError("state", f"that of the {role.value}", f"that of the {self.role.value}")
        if state.phases:
            if self.phase not in state.phases:
                raise ParameterError("state", type(state).__name__, f"one that takes the step {self.name}")
            require_phase(state.phases, state.phase, self.phase)
        if self.senders is not None:
            accept(inbox, self.receives, state.endpoint, self.senders(state))

    def taken_by(self, take: Taking) -> Step[Any]:
        """Return the same row, but taken by `take`, which may call the `take` of this step."""
        row = {each.name: getattr(self, each.name) for each in fields(self)}
        return _TakenBy(**row, taking=take)

    def on_base(self, senders: Callable[[Other], Collection[int]] | None = None) -> Step[Other]:
        """Return the same step for a profile whose states hold the states of this step as ``base``.

        In that profile the step may accept messages from fewer parties; `senders` returns them.
        """

        def body(state: ProfileState, *given: Any) -> tuple[Any, Outbox]:
            base, outbox = self.body(_base(state), *given)
            return replace(state, base=base), outbox  # type: ignore[type-var]

        def part(state: Any, inbox: Inbox) -> Any:
            assert self.part is not None
            return replace(state, base=self.part(_base(state), inbox))

        def those_of_base(state: Any) -> Collection[int]:
            assert self.senders is not None
            return self.senders(_base(state))

        def _base(state: Any) -> Any:
            return validate.instance("state.base", state.base, first_class(self.body, PartyState))

        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(body, name, getattr(self.body, name))
        among = senders or (None if self.senders is None else those_of_base)
        row = (self.phase, self.role, body, self.receives, self.sends, self.randomness, self.one, among)
        return Step(*row, None if self.part is None else part)


@dataclass(frozen=True)
class _TakenBy(Step[State]):
    """A step that is taken by a function of its own."""

    taking: Taking = field(kw_only=True)

    def take(self, state: State, inbox: Inbox, *, randomness: Randomness) -> tuple[State, Outbox]:
        """Return the result of the function."""
        return self.taking(state, inbox, randomness=randomness)


def row(
    phase: str,
    role: Role,
    *,
    receives: tuple[type[Message], ...] = (),
    sends: tuple[type[Message], ...] = (),
    randomness: tuple[str, ...] = (),
    one: bool = False,
    senders: Callable[[Any], Collection[int]] | None = from_server,
    part: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Callable[Concatenate[State, ...], tuple[State, Outbox]]], Step[State]]:
    """Make a function the body of a step; the arguments are those of `Step`."""

    def made(body: Callable[Concatenate[State, ...], tuple[State, Outbox]]) -> Step[State]:
        return Step(phase, role, body, receives, sends, randomness, one, senders, part)

    return made


Table: TypeAlias = tuple[Step[Any], ...]


def of_profile(user: type[PartyState], server: type[PartyState], *rows: Step[Any]) -> Table:
    """Return rows that take the states of one profile alone: those of users of class `user`, the server's of `server`.

    A row made by `Step.on_base` would take the states of other profiles as well.
    """
    return tuple(replace(row, states=user if row.role is Role.USER else server) for row in rows)


@dataclass(frozen=True, eq=False)
class Event(validate.Plain):
    """One step that was taken: the party, its input and the result."""

    step: Step[Any]
    party: int
    received: Outbox
    sent: Outbox
    state: Any


@dataclass(frozen=True, eq=False)
class RoundResult(validate.Plain):
    """The end of a round: the sum over `contributors`, and every step that was taken."""

    aggregate: validate.UintArray
    contributors: tuple[int, ...]
    transcript: tuple[Event, ...]


@dataclass(eq=False)
class Network:
    """The parties of a run, their states, and the messages that wait for them.

    Users are connected to the server, and to the authority if there is one. A message from one user to another waits at
    the server until a step relays it.
    """

    table: Table
    states: dict[int, Any]
    waiting: dict[int, list[Message]] = field(default_factory=dict)
    transcript: list[Event] = field(default_factory=list)

    def mail(self, step: Step[Any], party: int) -> Outbox:
        """Return the messages waiting for `party` that `step` receives."""
        return tuple(m for m in self.waiting.get(party, ()) if isinstance(m, step.receives))

    def take(self, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        """Let `party` take `step` on its mail, and deliver the messages it sends to the mail of their receivers.

        Raises `UnknownUser` for a party that is not on the network, `ParameterError` for a party of another role, and
        the errors of the step. If it raises, nothing has changed.
        """
        party = self._checked(step, party)
        return self.take_on(self.mail(step, party), step, party, randomness)

    def take_on(self, received: Outbox, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        """Let `party` take `step` on some messages of its mail, and leave the others waiting. Raises as `take` does."""
        party = self._checked(step, party)
        state, sent = step.take(self.states[party], received, randomness={} if randomness is None else randomness)
        assert all(isinstance(message, step.sends) for message in sent), f"{step} sends what its row does not name"
        self.states[party] = state
        delivered = {id(message) for message in received}
        self.waiting[party] = [m for m in self.waiting.get(party, ()) if id(m) not in delivered]
        for message in sent:
            between_users = role_of(party) is role_of(message.receiver) is Role.USER
            to = SERVER if between_users else message.receiver
            self.waiting.setdefault(to, []).append(message)
        event = Event(step, party, received, sent, state)
        self.transcript.append(event)
        return event

    def _checked(self, step: Step[Any], party: int) -> int:
        """Return the party as an ``int`` when it is on the network and has the role of the step."""
        number = validate.number(party)
        if not isinstance(number, int) or number not in self.states:
            raise UnknownUser("party", party, "a party on the network")
        if role_of(number) is not step.role:
            raise ParameterError("party", number, f"the {step.role.value}, who takes this step")
        return number


Follow: TypeAlias = Callable[[Step[Any], Sequence[int]], Iterable[int]]
"""Gives the users of a step again, one by one, and so may show how far they are."""


def run_synchronous(
    network: Network,
    dropouts: Mapping[str, Collection[int]],
    randomness: Mapping[int, Randomness],
    follow: Follow = lambda step, users: users,
) -> None:
    """Let every party take each row of the table in turn: all users, then the server, phase by phase.

    A user named in ``dropouts[phase]`` takes no step from that phase on. If a row receives messages, a user takes it
    only when at least one is waiting. `randomness` holds the sampled values of each user by name; each row takes its
    own. `follow` gives the users of a row again, one by one, and so may show how far a row is.

    Raises
    ------
    ParameterError
        A phase has no row for users, a user drops out twice, or sampled values are missing or not used (RND-04).
    UnknownUser
        A user is not on the network.
    """
    users = sorted(party for party in network.states if party != SERVER)
    check_dropouts(network.table, users, dropouts)
    check_randomness(network.table, users, randomness)
    sampling = next((step.phase for step in network.table if step.randomness), "")
    missing = set(users) - set(randomness) - set(dropouts.get(sampling, ()))
    if sampling and missing:
        allowed = f"given for every user that takes part in {sampling}"
        raise ParameterError("randomness", f"without user {min(missing)}", allowed)
    dropped: set[int] = set()
    for step in network.table:
        if step.role is Role.SERVER:
            network.take(step, SERVER)
            continue
        dropped |= set(dropouts.get(step.phase, ()))
        for user in follow(step, users):
            if user not in dropped and (not step.receives or network.mail(step, user)):
                sampled = randomness.get(user, {})
                network.take(step, user, {name: sampled[name] for name in step.randomness if name in sampled})


def check_dropouts(
    table: Table, users: Sequence[int], dropouts: Mapping[str, Collection[int]], name: str = "dropouts"
) -> None:
    """Refuse dropouts that name an unknown phase, an unknown user, or a user twice."""
    phases = list(dict.fromkeys(step.phase for step in table if step.role is Role.USER))
    named: set[int] = set()
    for phase, dropped in validate.mapping(name, dropouts).items():
        if phase not in phases:
            raise ParameterError(name, phase, f"a phase of users: {', '.join(phases)}")
        if not isinstance(dropped, (Sequence, Set)):
            raise ParameterError(f"{name}[{phase!r}]", dropped, "a collection of users")
        for user in validate.user_numbers(f"{name}[{phase!r}]", tuple(dropped)):
            if user not in users:
                raise UnknownUser(f"{name}[{phase!r}]", user, f"a user in [0, {len(users)})")
            if user in named:
                raise ParameterError(f"{name}[{phase!r}]", user, "a user that drops out once")
            named.add(user)


def check_randomness(table: Table, users: Sequence[int], randomness: Mapping[int, Randomness]) -> None:
    """Refuse sampled values of an unknown user, and values that are missing or not used (RND-04)."""
    names = tuple(name for step in table if step.role is Role.USER for name in step.randomness)
    validate.users("randomness", tuple(validate.mapping("randomness", randomness)), len(users))
    for values in randomness.values():
        take_randomness(values, names)


def check_inbox(inbox: Inbox) -> Inbox:
    """Return an inbox if the header of each message can be encoded; refuse anything else as misuse."""
    for message in validate.sequence("inbox", inbox, "messages"):
        if not isinstance(message, Message):
            raise ParameterError("inbox", message, "a sequence of messages")
        codec.check_header(message)
    return inbox


def accept(
    inbox: Inbox,
    kinds: tuple[type[Message], ...],
    endpoint: Endpoint,
    senders: Iterable[int],
) -> None:
    """Refuse an inbox unless it has at most one message from each of `senders`, of a type in `kinds` (MSG-03, MSG-04).

    Raises
    ------
    ParameterError
        Not a sequence of messages.
    WrongPhase
        A message is of another type, or of another session or round.
    Malformed
        A message is addressed to another party.
    InconsistentSets
        A message comes from a party that has nothing to send in this phase.
    Replay
        A sender appears twice.
    """
    allowed, seen = set(senders), set[int]()
    for message in check_inbox(inbox):
        who = (message.sender,)
        name = type(message).__name__
        if not isinstance(message, kinds):
            raise WrongPhase(f"{name} from {message.sender} is not a message of this phase", who)
        if not endpoint.takes(message):
            raise WrongPhase(f"{name} from {message.sender} belongs to another session or round", who)
        if message.receiver != endpoint.party:
            raise Malformed(f"{name} from {message.sender} is addressed to {message.receiver}", who)
        if message.sender not in allowed:
            raise InconsistentSets(f"{name} from {message.sender}, from whom none is awaited in this phase", who)
        if message.sender in seen:
            raise Replay(f"{name} from {message.sender} came twice", who)
        seen.add(message.sender)


def parcels(
    inbox: Inbox, kind: type[AnyMessage], endpoint: Endpoint, roster: Collection[int]
) -> dict[int, dict[int, AnyMessage]]:
    """Return messages in transit between users, by sender and then by receiver (MSG-03, MSG-04).

    `endpoint` is the server's endpoint.

    Raises
    ------
    ParameterError
        Not a sequence of messages.
    WrongPhase
        A message is of another type, or of another session or round.
    Malformed
        Sender and receiver are not two different users of `roster`, or a field cannot be encoded.
    Replay
        There are two messages from one sender to one receiver.
    """
    found: dict[int, dict[int, AnyMessage]] = {}
    for message in check_inbox(inbox):
        who, name = (message.sender,), type(message).__name__
        if not isinstance(message, kind) or not endpoint.takes(message):
            other = "belongs to another session or round"
            what = other if isinstance(message, kind) else "is not a message of this phase"
            raise WrongPhase(f"{name} from {message.sender} {what}", who)
        if message.sender not in roster or message.receiver not in roster or message.sender == message.receiver:
            raise Malformed(f"{name} from {message.sender} to {message.receiver}: not two users", who)
        sent = found.setdefault(message.sender, {})
        if message.receiver in sent:
            raise Replay(f"{name} from {message.sender} to {message.receiver} came twice", who)
        try:
            codec.check_fields(message)
        except ParameterError as error:
            raise Malformed(f"{name} from {message.sender} to {message.receiver}: {error}", who) from error
        sent[message.receiver] = message
    return found


def check_ascending(what: str, users: Sequence[int], blamed: Collection[int]) -> None:
    """Refuse a list of users from a message if it is not in ascending order (SAG-32, LSA-32, LSA-33).

    A user that is named twice in a row counts as in order here: duplicates are refused under another clause.

    Raises
    ------
    Malformed
        A user follows a larger one; `blamed` sent the message.
    ParameterError
        They are no sequence of integers of 2^13 bits at most.
    """
    users = validate.user_numbers("users", users)
    if list(users) != sorted(users):
        raise Malformed(f"{what} {list(users)} must be in ascending order", blamed)


def take_randomness(randomness: Randomness, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the named values in order; refuse missing and unknown names (RND-04)."""
    given = validate.keyed("randomness", randomness, names, f"exactly {sorted(names)}")
    return tuple(given[name] for name in names)


def require_phase(phases: Sequence[str], actual: str, expected: str) -> None:
    """Refuse a step out of turn. `phases` is the order; the phase after the last one is ``"done"``.

    Raises
    ------
    Replay
        The step was taken before.
    WrongPhase
        An earlier step was not taken yet.
    """
    order = (*phases, "done")
    if order.index(actual) > order.index(expected):
        raise Replay(f"the step {expected!r} was taken before in this round")
    if actual != expected:
        raise WrongPhase(f"the step {expected!r} comes after {actual!r}")


def sizes(messages: Iterable[Message]) -> int:
    """Return the total number of bytes of messages."""
    return sum(len(codec.encode(message)) for message in messages)


guard(__name__)
