"""Multi-RoundSecAgg: rounds of SecAgg or LightSecAgg among chosen users, whose sums are over whole batches.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, T               `Numbers`, with c, the users that may collude
p(t)                  `chosen` before a round, `survivors` once the server announced them
f(t)                  `ServerState.frequencies`
====================  ==========================================

The state of a party holds its state in the protocol of the round as `base`, and the steps of that protocol act on
`base`. Three things differ: a user joins with a choice, the server leaves out the masked inputs of batches that lack
one, and a user checks the survivors before it releases anything. In a round the users have the numbers 0 … K - 1, in
the order of their numbers in the session.

Source: Multi-RoundSecAgg, section 4; spec/multi-round.md, section 6 (MRA-17 to MRA-23, MRA-27 to MRA-29).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import keys
from secagg_spec.crypto.channels import Channel, PlainChannel
from secagg_spec.crypto.entropy import Source
from secagg_spec.protocols import steps
from secagg_spec.protocols.begun import LAST_ROUND, later_round
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.selection import batches
from secagg_spec.selection.strategies import Counts

PURPOSE = "multi-round"
BaseParameters: TypeAlias = secagg.Parameters | lightsecagg.Parameters
BaseUser: TypeAlias = secagg.UserState | lightsecagg.UserState
BaseServer: TypeAlias = secagg.ServerState | lightsecagg.ServerState
Logged: TypeAlias = tuple[int, tuple[int, ...]]
"""A round of a log: its number, and the announced survivors, ascending; empty if none were announced."""


@dataclass(frozen=True)
class Numbers(batches.Parameters):
    """N users, K of them in one round, in batches of T, of whom c may collude with the server.

    Raises
    ------
    ParameterError
        They break MRA-01, or MRA-17: ``c >= 1`` and ``T >= c + 2``.
    """

    c: int

    def __post_init__(self) -> None:
        super().__post_init__()
        honest = self.T - validate.integer("c", self.c, 1, validate.MAX_COUNT)
        if honest < 2:
            raise errors.ParameterError("T", self.T, f"at least c + 2 = {self.c + 2}")


@dataclass(frozen=True)
class Parameters:
    """The parameters of a session: those of the choice of users, and those of the protocol of each round.

    Raises
    ------
    ParameterError
        They break MRA-17: the round is neither SecAgg on the complete graph nor LightSecAgg, it does not have K users,
        or T is less than c + 2, where c is the T of the round.
    """

    selection: batches.Parameters
    round: BaseParameters

    def __post_init__(self) -> None:
        kind = type(self.round)
        if kind not in BASES:
            given = f"{kind.__name__} of {kind.__module__}"
            raise errors.ParameterError("round", given, "parameters of SecAgg or of LightSecAgg, semi-honest")
        if self.round.N != self.selection.K:
            raise errors.ParameterError("round.N", self.round.N, f"K = {self.selection.K}")
        if isinstance(self.round, secagg.Parameters) and not self.round.complete:
            raise errors.ParameterError("round.k", self.round.k, f"K - 1 = {self.round.N - 1}, of the complete graph")
        _ = self.numbers

    @cached_property
    def numbers(self) -> Numbers:
        """N, K, T and c."""
        return Numbers(self.selection.N, self.selection.K, self.selection.T, self.round.T)

    @property
    def base(self) -> Base:
        """The protocol of each round."""
        return BASES[type(self.round)]


# ---------------------------------------------------------------------------------------------- what is checked


def round_batches(parameters: batches.Parameters) -> batches.Parameters:
    """Return the batches of one round: K users, all chosen, in batches of T."""
    return batches.Parameters(parameters.K, parameters.K, parameters.T)


def whole_inputs(parameters: batches.Parameters, arrived: Sequence[int]) -> tuple[int, ...]:
    """Return the survivors of a round, ascending: the users of each batch whose inputs all arrived (MRA-18).

    Parameters
    ----------
    parameters : batches.Parameters
    arrived : sequence of int
        The users whose masked inputs arrived: distinct, by their numbers in the round, [0, K).

    Raises
    ------
    UnknownUser, DuplicateUser
        A user is outside [0, K), or named twice.
    """
    return batches.whole_batches(round_batches(parameters), validate.users("arrived", arrived, parameters.K))


def check_choice(parameters: batches.Parameters, user: int, chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the choice of a round if a user may join it; all numbers are numbers in the session (MRA-20).

    Raises
    ------
    InconsistentSets
        The choice is not a set of the family, is not in ascending order, or lacks the user; the server is blamed.
    """
    validate.integer("user", user, 0, parameters.N - 1)
    chosen = validate.user_numbers("chosen", chosen)
    if not _is_choice(parameters, chosen):
        what = f"{parameters.per_round} whole batches of {parameters.T} users, ascending"
        raise errors.InconsistentSets(f"the choice {_some(chosen)} must be {what}", (steps.SERVER,))
    if user not in chosen:
        raise errors.InconsistentSets(f"the choice {_some(chosen)} is without user {user}", (steps.SERVER,))
    return chosen


def check_survivors(parameters: batches.Parameters, survivors: Sequence[int]) -> None:
    """Refuse survivors, by their numbers in the round, that are not a union of batches of the round (MRA-21).

    Raises
    ------
    InconsistentSets
        The survivors are not a union of batches; the server is blamed.
    """
    users = validate.user_numbers("survivors", survivors)
    inside = set(users) <= set(range(parameters.K)) and len(set(users)) == len(users)
    if not inside or len(whole_inputs(parameters, users)) != len(users):
        what = f"whole batches of the {parameters.K} users of the round, {parameters.T} in each"
        raise errors.InconsistentSets(f"the survivors {_some(users)} must be {what}", (steps.SERVER,))


def round_session(parameters: batches.Parameters, session: bytes, number: int, chosen: Sequence[int]) -> bytes:
    """Return the session id of a round, 16 bytes, which depends on its choice (MRA-19).

    Parameters
    ----------
    parameters : batches.Parameters
    session : bytes
        The session id, 16 bytes.
    number : int
        The round.
    chosen : sequence of int
        The users of the round by their numbers in the session: a set of the family, ascending.

    Raises
    ------
    LengthMismatch
        The session id is not 16 bytes long.
    ParameterError
        The round is not below 2**32, or the choice is not an ascending set of the family.
    """
    validate.octets("session", session, keys.SESSION_BYTES)
    validate.integer("number", number, 0, validate.MAX_COUNT)
    chosen = validate.user_numbers("chosen", chosen)
    if not _is_choice(parameters, chosen):
        raise errors.ParameterError("chosen", list(chosen), "a set of the family, its users ascending")
    numbers = (number, parameters.N, parameters.K, parameters.T)
    return keys.sha256(keys.fields(keys.LABEL, PURPOSE, session, *numbers, *chosen))[: keys.SESSION_BYTES]


def _is_choice(parameters: batches.Parameters, chosen: Sequence[int]) -> bool:
    """Return whether the users are in ascending order and form a set of the family."""
    ascends = all(before < after for before, after in pairwise(chosen))
    inside = bool(chosen) and min(chosen) >= 0 and max(chosen) < parameters.N
    return ascends and inside and batches.in_family(parameters, chosen)


def _some(users: Sequence[int]) -> str:
    shown = ", ".join(map(str, users[:12]))
    return f"[{shown}]" if len(users) <= 12 else f"[{shown}, …] of {len(users)} users"


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True)
class Round(validate.Plain):
    """The facts that all parties of a round agree on before it begins; `chosen` are its users, ascending.

    Raises
    ------
    LengthMismatch, ParameterError
        The errors of `round_session`.
    """

    parameters: Parameters
    session: bytes
    number: int
    chosen: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        assert len(self.id) == keys.SESSION_BYTES

    @cached_property
    def id(self) -> bytes:
        """The session id of the round."""
        return round_session(self.parameters.selection, self.session, self.number, self.chosen)


@dataclass(frozen=True, eq=False)
class UserState(steps.ProfileState):
    """The state of one user between its steps; `user` is its number in the session, `base` has its number here."""

    base: BaseUser
    round: Round
    user: int


@dataclass(frozen=True, eq=False)
class ServerState(steps.ProfileState):
    """The state of the server between its steps; `past` is the log of the earlier rounds, in order (MRA-29)."""

    base: BaseServer
    round: Round
    past: tuple[Logged, ...] = ()

    @property
    def aggregate(self) -> UintArray | None:
        """The sum of the inputs of the survivors, d elements, once it is known."""
        return self.base.aggregate

    @property
    def survivors(self) -> tuple[int, ...]:
        """The announced survivors by their numbers in the session, ascending; empty before the announcement.

        They are the same whether or not the round ends with a sum (MRA-27).
        """
        here = self.base.survivors if isinstance(self.base, secagg.ServerState) else self.base.surviving
        return tuple(self.round.chosen[user] for user in here)

    @property
    def log(self) -> tuple[Logged, ...]:
        """The log of the session so far: the rounds that the server began, each with its announced survivors.

        A round without a choice is not in this log; the log of section 7 has it as a round without users.
        """
        return (*self.past, (self.round.number, self.survivors))

    @property
    def frequencies(self) -> Counts:
        """The frequency of each user, (N,): the number of sets of the log that contain the user (MRA-28)."""
        counts = np.zeros(self.round.parameters.selection.N, dtype=np.int64)
        for _, survivors in self.log:
            counts[list(survivors)] += 1
        return counts


def user_start(
    parameters: Parameters,
    session: bytes,
    number: int,
    user: int,
    chosen: Sequence[int],
    update: UintArray,
    channel: Channel | None = None,
) -> UserState:
    """Return the state of a user that joins a round, before its first step there (MRA-20).

    Parameters
    ----------
    parameters, session, number
        The parameters, the session id of 16 bytes, and the round number.
    user : int
        The number of the user in the session.
    chosen : sequence of int
        The users of the round by their numbers in the session, as the server announces them.
    update : array (d,)
        The input of the user.
    channel : Channel, optional
        In LightSecAgg, the user's channel to the other users, by their numbers in the round; plain by default. SecAgg
        seals its shares itself.

    Raises
    ------
    InconsistentSets
        The user may not join the choice; the server is blamed.
    ParameterError
        The user is not on the roster, or the input does not fit the parameters of the round.
    """
    chosen = check_choice(parameters.selection, user, chosen)
    round = Round(parameters, session, number, chosen)
    return UserState(parameters.base.user(round, chosen.index(user), update, channel), round, user)


def server_start(
    parameters: Parameters, session: bytes, number: int, chosen: Sequence[int], past: Sequence[Logged] = ()
) -> ServerState:
    """Return the state of the server before its first step of a round; `chosen` is an ascending set of the family.

    Parameters
    ----------
    parameters, session, number
        The parameters, the session id of 16 bytes, and the round number.
    chosen : sequence of int
        The users of the round by their numbers in the session.
    past : sequence of (int, tuple of int)
        The log of the session before this round, as in `ServerState.log`, with ascending rounds (MRA-29).

    Raises
    ------
    LengthMismatch, ParameterError
        The errors of `round_session`; or the rounds of the log are not in ascending order or not below `number`; or the
        log names a user who is not on the roster, or a user twice in a round.
    """
    round = Round(parameters, session, number, validate.user_numbers("chosen", chosen))
    return ServerState(parameters.base.server(round), round, _checked_log(parameters, round.number, past))


def _checked_log(parameters: Parameters, number: int, past: Sequence[Logged]) -> tuple[Logged, ...]:
    """Return a log if its rounds ascend and are below `number`, and its survivors are distinct users of the roster."""
    log: list[Logged] = []
    for at, entry in enumerate(validate.sequence("past", past, "rounds with their survivors")):
        before, survivors = _logged(f"past[{at}]", entry)
        before = validate.integer(f"past[{at}][0]", before, log[-1][0] + 1 if log else 0, number - 1)
        log.append((before, tuple(sorted(validate.users(f"past[{at}][1]", survivors, parameters.selection.N)))))
    return tuple(log)


def _logged(name: str, entry: object) -> Logged:
    pair = validate.sequence(name, entry, "a round and its survivors")
    if len(pair) != 2:
        raise errors.LengthMismatch(name, entry, "a round and its survivors")
    return pair[0], pair[1]


def user_again(
    state: UserState, number: int, chosen: Sequence[int], update: UintArray, channel: Channel | None = None
) -> UserState:
    """Return the state of a user that joins another round of its session, with the same parameters (MRA-20, MRA-22).

    Parameters
    ----------
    state : UserState
        The state of the user at the end of a round, or at the point where it left the round.
    number : int
        The number of the new round, above the number of the last round that the user joined.
    chosen, update, channel
        As in `user_start`.

    Raises
    ------
    ParameterError
        The number is not above the last one.
    InconsistentSets
        The user may not join the choice; the server is blamed.
    """
    round = state.round
    return user_start(round.parameters, round.session, _later(round, number), state.user, chosen, update, channel)


def server_again(state: ServerState, number: int, chosen: Sequence[int]) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (MRA-22, MRA-29)."""
    round = state.round
    return server_start(round.parameters, round.session, _later(round, number), chosen, state.log)


def _later(round: Round, number: int) -> int:
    return later_round(round.number, number)


# ------------------------------------------------------------------------------------------------------- steps


@dataclass(frozen=True)
class Base:
    """The protocol of a round: how its parties start and draw, its table, and the rows that a session changes.

    In the phase `adds` the server receives masked inputs. In the phase `releases` a user receives a request from the
    server; the field `named` of the request holds the survivors.
    """

    name: str
    user: Callable[[Round, int, UintArray, Channel | None], BaseUser]
    server: Callable[[Round], BaseServer]
    draw: Callable[[Any, Mapping[int, Source]], dict[int, steps.Randomness]]
    rows: steps.Table
    adds: str
    releases: str
    named: str

    @cached_property
    def phases(self) -> tuple[str, ...]:
        """The order of the phases."""
        return tuple(dict.fromkeys(step.phase for step in self.rows))

    @property
    def table(self) -> steps.Table:
        """The rows of a session."""
        return steps.of_profile(UserState, ServerState, *(_session_step(self, step) for step in self.rows))


def _session_step(base: Base, step: steps.Step[Any]) -> steps.Step[Any]:
    """Return the step of a session that wraps a step of the protocol of the round."""
    here: steps.Step[Any] = step.on_base()
    if (step.phase, step.role) == (base.adds, steps.Role.SERVER):
        whole = wraps(here.body)(lambda state, inbox: here.body(state, leave_out(state, inbox)))
        return replace(here, body=whole, part=None)
    if (step.phase, step.role) == (base.releases, steps.Role.USER):
        seen = wraps(here.body)(lambda state, request: here.body(state, look_at_survivors(base, state, request)))
        return replace(here, body=seen)
    return here


def leave_out(state: ServerState, inbox: steps.Inbox) -> steps.Inbox:
    """Return the masked inputs of the complete batches (MRA-18)."""
    selection = state.round.parameters.selection
    senders = validate.users("inbox", [message.sender for message in steps.check_inbox(inbox)], selection.K)
    survivors = set(whole_inputs(selection, senders))
    return tuple(message for message in inbox if message.sender in survivors)


def look_at_survivors(base: Base, state: UserState, request: Message) -> Message:
    """Return a request if its survivors are a union of batches; refuse any other request (MRA-21)."""
    check_survivors(state.round.parameters.selection, getattr(request, base.named))
    return request


def _secagg_round(round: Round) -> secagg.Round:
    parameters = round.parameters.round
    assert isinstance(parameters, secagg.Parameters)
    return secagg.Round(parameters, parameters.graph(), round.id, round.number)


def _secagg_user(round: Round, user: int, update: UintArray, channel: Channel | None) -> BaseUser:
    if channel is not None:
        raise errors.ParameterError("channel", type(channel).__name__, "left out, as SecAgg seals its shares itself")
    return secagg.user_start(_secagg_round(round), user, update)


def _secagg_server(round: Round) -> BaseServer:
    return secagg.server_start(_secagg_round(round))


def _lightsecagg_user(round: Round, user: int, update: UintArray, channel: Channel | None) -> BaseUser:
    parameters = round.parameters.round
    assert isinstance(parameters, lightsecagg.Parameters)
    link = PlainChannel() if channel is None else channel
    return lightsecagg.user_start(parameters, round.id, round.number, user, update, link)


def _lightsecagg_server(round: Round) -> BaseServer:
    parameters = round.parameters.round
    assert isinstance(parameters, lightsecagg.Parameters)
    return lightsecagg.server_start(parameters, round.id, round.number)


BASES: Mapping[type[BaseParameters], Base] = MappingProxyType(
    {
        secagg.Parameters: Base(
            "secagg",
            _secagg_user,
            _secagg_server,
            secagg.draw_randomness,
            secagg.TABLE,
            "masked_input",
            "unmasking",
            "survivors",
        ),
        lightsecagg.Parameters: Base(
            "lightsecagg",
            _lightsecagg_user,
            _lightsecagg_server,
            lightsecagg.draw_randomness,
            lightsecagg.TABLE,
            "upload",
            "recover",
            "users",
        ),
    }
)


# ------------------------------------------------------------------------------------------------- whole round


def draw_randomness(parameters: Parameters, sources: Mapping[int, Source]) -> dict[int, steps.Randomness]:
    """Draw the sampled values of each user of a round from its source, as the protocol of the round does."""
    return parameters.base.draw(parameters.round, sources)


def run_round(
    parameters: Parameters,
    chosen: Sequence[int],
    updates: UintArray,
    *,
    randomness: Mapping[int, steps.Randomness],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    session: bytes,
    round: int,
    channel: Channel | None = None,
) -> steps.RoundResult:
    """Run a whole round among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    chosen : sequence of int
        The users of the round by their numbers in the session, ascending.
    updates : array (K, d)
        The input of each of them, in that order.
    randomness : mapping from user to sampled values
        The sampled values by number in the round; see `draw_randomness`.
    dropouts : mapping from phase to users
        The users that drop out just before their step in a phase, by number in the round.
    session, round
        The session id (16 bytes) and the round number.
    channel : Channel, optional
        As in `user_start`, for all users.

    Returns
    -------
    RoundResult
        `contributors` are numbers in the session; the parties in the transcript are numbers in the round.

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on (MRA-23).
    InconsistentSets, ParameterError
        The choice is not valid, or the inputs do not fit the parameters.
    """
    network = open_round(parameters, chosen, updates, session=session, round=round, channel=channel)
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER]
    return steps.RoundResult(server.aggregate, server.survivors, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    chosen: Sequence[int],
    updates: UintArray,
    *,
    session: bytes,
    round: int,
    channel: Channel | None = None,
) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    numbers = parameters.round
    modulus = numbers.R if isinstance(numbers, secagg.Parameters) else numbers.q
    validate.elements("updates", updates, modulus, (parameters.selection.K, numbers.d))
    number = validate.integer("round", round, 0, LAST_ROUND)
    states: dict[int, object] = {steps.SERVER: server_start(parameters, session, number, chosen)}
    for place, user in enumerate(chosen):
        states[place] = user_start(parameters, session, number, user, chosen, updates[place], channel)
    return steps.Network(parameters.base.table, states)


guard(__name__)
