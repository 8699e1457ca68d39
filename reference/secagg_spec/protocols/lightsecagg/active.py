"""LightSecAgg, active profile: a user answers only for a set that W users have signed.

====================  ==========================================
the text              here
====================  ==========================================
q, N, D, U, T, d, W   `Parameters`
the surviving set     `announced` of a user's state
the signers           `signers` of the server's state
====================  ==========================================

The state of a party holds the one that it would have in the semi-honest profile, as `base`, and the steps of that
profile are taken on it.

Source: spec/lightsecagg.md, section 9 (LSA-19 to LSA-35).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import InconsistentSets, LengthMismatch, ParameterError, TooFewSurvivors, WrongPhase
from secagg_spec.protocols.agreement import (
    Ballot,
    Proposal,
    check_quorum,
    check_signature,
    check_threshold,
    sign_proposal,
)
from secagg_spec.protocols.begun import later_round
from secagg_spec.protocols.codec import Message, Opaque, Users
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import (
    AggregatedShare,
    MaskedUpdate,
    MaskShare,
    SurvivingSet,
    check_surviving_set,
    run_network,
)
from secagg_spec.protocols.steps import (
    SERVER,
    Inbox,
    Network,
    Outbox,
    Randomness,
    Role,
    RoundResult,
    Step,
    accept,
    check_ascending,
    require_phase,
    take_randomness,
)

PROTOCOL = "lightsecagg-active"
PHASES = ("share", "upload", "confirm", "recover")


@dataclass(frozen=True)
class Parameters(lightsecagg.Parameters):
    """The numbers that a session of the active profile agrees on.

    Raises
    ------
    ParameterError
        They break LSA-01, or LSA-19: ``2W > N + T`` and ``W <= N - D``.
    """

    W: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_threshold(self.W, self.N, self.D, self.T)


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(q=7, N=5, D=1, U=3, T=1, d=3, W=4),
        "default": Parameters(q=DEFAULT_PRIME, N=10, D=2, U=7, T=3, d=16, W=7),
    }
)


@dataclass(frozen=True)
class PrivateKeys:
    """The two private keys of a user, 32 bytes each: X25519 for sealing, Ed25519 for signing."""

    sealing: bytes = field(repr=False)
    signing: bytes = field(repr=False)


@dataclass(frozen=True)
class PublicKeys:
    """The roster of a session: the sealing key and the verification key of each user, by user number.

    Raises
    ------
    LengthMismatch
        The two rosters do not name equally many users.
    """

    sealing: Roster
    verification: Roster

    def __post_init__(self) -> None:
        if len(self.sealing.keys) != len(self.verification.keys):
            wanted = f"{len(self.sealing.keys)}, one for each sealing key"
            raise LengthMismatch("len(verification)", len(self.verification.keys), wanted)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class SignedSet(Message):
    """The sender's signature on the surviving set that it was told, 64 bytes."""

    TYPE: ClassVar[int] = 261
    signature: Opaque


@dataclass(frozen=True, eq=False)
class Quorum(Message):
    """The users that signed the surviving set, ascending, and their signatures one after another."""

    TYPE: ClassVar[int] = 262
    signers: Users
    signatures: Opaque


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState:
    """What one user knows between its steps.

    `sealing` is its public sealing key in this round, and `announced` the surviving set that it signed.
    """

    base: lightsecagg.UserState
    ballot: Ballot
    signing: bytes = field(repr=False)
    sealing: bytes
    announced: SurvivingSet | None = None

    @property
    def phase(self) -> str:
        """The step that the user is ready for."""
        return "confirm" if self.base.phase == "recover" and self.announced is None else self.base.phase


@dataclass(frozen=True, eq=False)
class ServerState:
    """What the server knows between its steps; `signers` are the users that confirmed the surviving set."""

    base: lightsecagg.ServerState
    ballot: Ballot
    signers: tuple[int, ...] = ()

    @property
    def phase(self) -> str:
        """The step that the server is ready for."""
        return "confirm" if self.base.phase == "recover" and not self.signers else self.base.phase


def binding_context(
    parameters: Parameters, session: bytes, round: int, kind: type[Message], sealing: Roster
) -> Context:
    """Return what the seals and signatures that messages of class `kind` carry are bound to (LSA-21, LSA-31, LSA-34).

    `sealing` are the public sealing keys of the N users in this attempt.
    """
    numbers = {name: getattr(parameters, name) for name in ("q", "N", "D", "U", "T", "d", "W")}
    return Context(PROTOCOL, hash_parameters(numbers, sealing.hash), session, round, kind.TYPE)


def user_start(
    parameters: Parameters,
    session: bytes,
    round: int,
    user: int,
    update: UintArray,
    keys: PrivateKeys,
    roster: PublicKeys,
) -> UserState:
    """Return the state of a user before its first step, with its sealed channel (LSA-31).

    The sealing keys are those of this attempt: a user that begins a round again draws a new one.

    Raises
    ------
    LengthMismatch
        The roster does not name N users, or a private key is not 32 bytes long.
    ParameterError
        The keys of the user are not those that the roster has for it.
    """
    ballot = _ballot(parameters, session, round, roster)
    context = binding_context(parameters, session, round, MaskShare, roster.sealing)
    channel = SealedChannel(context, keys.sealing, roster.sealing)
    base = lightsecagg.user_start(parameters, session, round, user, update, channel)
    own = (public_key(keys.sealing), verification_key(keys.signing))
    if own != (roster.sealing.keys[user], roster.verification.keys[user]):
        raise ParameterError("keys", f"of another than user {user}", "those whose public keys the roster has")
    return UserState(base, ballot, keys.signing, own[0])


def server_start(parameters: Parameters, session: bytes, round: int, roster: PublicKeys) -> ServerState:
    """Return the state of the server before its first step, with the public keys of the N users."""
    base = lightsecagg.server_start(parameters, session, round)
    return ServerState(base, _ballot(parameters, session, round, roster))


def user_again(state: UserState, round: int, update: UintArray, keys: PrivateKeys, roster: PublicKeys) -> UserState:
    """Return the state of a user before another round of its session, with a new sealing key (SES-01, LSA-35).

    Parameters
    ----------
    state : UserState
        The user at the end of a round, or wherever it left it.
    round : int
        The number of the round, above that of the last one that the user began.
    update : array (d,)
        The input of this round.
    keys, roster
        Its private keys and everybody's public keys of this round.

    Raises
    ------
    ParameterError
        The number is not above the last one, the sealing key is that of the round before, or the keys of the user are
        not those that the roster has for it.
    LengthMismatch, NonCanonical
        The update is not d elements, or the roster does not name N users.
    """
    base, parameters = state.base, state.base.parameters
    assert isinstance(parameters, Parameters)
    number = later_round(base.round, round, "round")
    if state.sealing == public_key(keys.sealing):
        raise ParameterError("keys.sealing", "that of the round before", "drawn anew for each round")
    return user_start(parameters, base.session, number, base.user, update, keys, roster)


def server_again(state: ServerState, round: int, roster: PublicKeys) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (SES-01)."""
    base, parameters = state.base, state.base.parameters
    assert isinstance(parameters, Parameters)
    return server_start(parameters, base.session, later_round(base.round, round, "round"), roster)


def _ballot(parameters: Parameters, session: bytes, round: int, roster: PublicKeys) -> Ballot:
    if len(roster.verification.keys) != parameters.N:
        raise LengthMismatch("len(verification)", len(roster.verification.keys), f"N = {parameters.N}")
    context = binding_context(parameters, session, round, SignedSet, roster.sealing)
    return Ballot(context, roster.verification, parameters.W)


# ------------------------------------------------------------------------------------------------------- steps


def user_share(state: UserState, inbox: Inbox, *, randomness: Randomness) -> tuple[UserState, Outbox]:
    """Share the mask, as in the semi-honest profile (step 1)."""
    base, outbox = lightsecagg.user_share(state.base, inbox, randomness=randomness)
    return replace(state, base=base), outbox


def server_share(state: ServerState, inbox: Inbox, *, randomness: Randomness) -> tuple[ServerState, Outbox]:
    """Relay the shares, as in the semi-honest profile (step 2)."""
    base, outbox = lightsecagg.server_share(state.base, inbox, randomness=randomness)
    return replace(state, base=base), outbox


def user_upload(state: UserState, inbox: Inbox, *, randomness: Randomness) -> tuple[UserState, Outbox]:
    """Send the masked update, as in the semi-honest profile (step 3)."""
    base, outbox = lightsecagg.user_upload(state.base, inbox, randomness=randomness)
    return replace(state, base=base), outbox


def server_upload(state: ServerState, inbox: Inbox, *, randomness: Randomness) -> tuple[ServerState, Outbox]:
    """Announce the surviving set, as in the semi-honest profile (step 4)."""
    base, outbox = lightsecagg.server_upload(state.base, inbox, randomness=randomness)
    return replace(state, base=base), outbox


def user_confirm(state: UserState, inbox: Inbox, *, randomness: Randomness) -> tuple[UserState, Outbox]:
    """Sign the surviving set, once, when it can be right (LSA-09 to LSA-11, LSA-20 to LSA-22, LSA-32; step 5)."""
    take_randomness(randomness, ())
    _ready(state, "confirm", inbox, (SurvivingSet,), (SERVER,))
    if not inbox:
        raise WrongPhase("no surviving set was received")
    message, base = inbox[0], state.base
    assert isinstance(message, SurvivingSet)
    surviving = check_surviving_set(base.parameters.N, base.parameters.T, message.users, base.held)
    check_ascending("the surviving set", surviving, (SERVER,))
    if base.user not in surviving:
        raise InconsistentSets(f"the surviving set {list(surviving)} is without user {base.user}", (SERVER,))
    signature = sign_proposal(state.ballot, state.signing, base.user, Proposal(surviving))
    outbox = (SignedSet(base.session, base.round, base.user, SERVER, signature),)
    return replace(state, announced=replace(message, users=surviving)), outbox


def server_confirm(state: ServerState, inbox: Inbox, *, randomness: Randomness) -> tuple[ServerState, Outbox]:
    """Check the signatures, and relay all of them to each signer (LSA-23 to LSA-25; step 6)."""
    take_randomness(randomness, ())
    _ready(state, "confirm", inbox, (SignedSet,), state.base.surviving)
    signatures = {message.sender: _checked(state, message) for message in inbox if isinstance(message, SignedSet)}
    signers = tuple(sorted(signatures))
    if len(signers) < state.ballot.enough:
        raise TooFewSurvivors(f"{len(signers)} users confirmed the set and W = {state.ballot.enough} are needed")
    together = b"".join(signatures[user] for user in signers)
    header = (state.base.session, state.base.round, SERVER)
    outbox = tuple(Quorum(*header, user, signers, together) for user in signers)
    return replace(state, signers=signers), outbox


def _checked(state: ServerState, message: SignedSet) -> bytes:
    """Return a signature on the surviving set; a wrong one is its sender's fault (LSA-24)."""
    check_signature(state.ballot, message.sender, Proposal(state.base.surviving), message.signature, message.sender)
    return message.signature


def user_recover(state: UserState, inbox: Inbox, *, randomness: Randomness) -> tuple[UserState, Outbox]:
    """Release the aggregated share of the signed set, when W users signed it (LSA-26 to LSA-29, LSA-33; step 7)."""
    take_randomness(randomness, ())
    _ready(state, "recover", inbox, (Quorum,), (SERVER,))
    if not inbox:
        raise WrongPhase("no quorum was received")
    message, announced = inbox[0], state.announced
    assert isinstance(message, Quorum)
    assert announced is not None
    check_quorum(state.ballot, Proposal(announced.users), message.signers, message.signatures)
    base, outbox = lightsecagg.user_recover(state.base, (announced,), randomness={})
    return replace(state, base=base), outbox


def server_recover(state: ServerState, inbox: Inbox, *, randomness: Randomness) -> tuple[ServerState, Outbox]:
    """Remove the sum of the masks, as in the semi-honest profile (step 8)."""
    require_phase(PHASES, state.phase, "recover")
    base, outbox = lightsecagg.server_recover(state.base, inbox, randomness=randomness)
    return replace(state, base=base), outbox


TABLE = (
    Step("share", Role.USER, user_share, sends=(MaskShare,), randomness=("mask", "noise")),
    Step("share", Role.SERVER, server_share, receives=(MaskShare,), sends=(MaskShare,)),
    Step("upload", Role.USER, user_upload, receives=(MaskShare,), sends=(MaskedUpdate,)),
    Step("upload", Role.SERVER, server_upload, receives=(MaskedUpdate,), sends=(SurvivingSet,)),
    Step("confirm", Role.USER, user_confirm, receives=(SurvivingSet,), sends=(SignedSet,)),
    Step("confirm", Role.SERVER, server_confirm, receives=(SignedSet,), sends=(Quorum,)),
    Step("recover", Role.USER, user_recover, receives=(Quorum,), sends=(AggregatedShare,)),
    Step("recover", Role.SERVER, server_recover, receives=(AggregatedShare,)),
)


def _ready(
    state: UserState | ServerState,
    phase: str,
    inbox: Inbox,
    kinds: tuple[type[Message], ...],
    senders: Collection[int],
) -> None:
    """Refuse a step out of its turn, and messages that it does not take (MSG-03, MSG-04)."""
    require_phase(PHASES, state.phase, phase)
    base = state.base
    receiver = base.user if isinstance(base, lightsecagg.UserState) else SERVER
    accept(inbox, kinds, session=base.session, round=base.round, receiver=receiver, senders=senders)


# ------------------------------------------------------------------------------------------------- whole round


def run_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    randomness: Mapping[int, Randomness],
    keys: Mapping[int, PrivateKeys],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    session: bytes,
    round: int,
) -> RoundResult:
    """Run a whole round of the active profile among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    updates : array (N, d)
        The update of each user, elements.
    randomness : mapping from user to sampled values
        ``mask`` and ``noise`` of each user that takes part in ``share``; see `lightsecagg.draw_randomness`.
    keys : mapping from user to PrivateKeys
        The private keys of each of the N users; the roster is made of their public keys.
    dropouts : mapping from phase to users
        Who drops out just before its step in ``share``, ``upload``, ``confirm`` or ``recover``.
    session, round
        The session id (16 bytes) and the round number.

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on (LSA-30).
    ParameterError
        The inputs do not fit the parameters.
    """
    network = open_round(parameters, updates, keys=keys, session=session, round=round)
    run_network(network, dropouts, randomness)
    server = network.states[SERVER].base
    return RoundResult(server.aggregate, server.surviving, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    keys: Mapping[int, PrivateKeys],
    session: bytes,
    round: int,
) -> Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = parameters.field.check("updates", updates, (parameters.N, parameters.d))
    roster = roster_of(parameters, keys)
    states: dict[int, object] = {SERVER: server_start(parameters, session, round, roster)}
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, round, user, updates[user], keys[user], roster)
    return Network(TABLE, states)


def roster_of(parameters: Parameters, keys: Mapping[int, PrivateKeys]) -> PublicKeys:
    """Return the public keys of the N users; the errors are those of `roster_of_users`."""
    return roster_of_users(parameters.N, keys)


def roster_of_users(N: int, keys: Mapping[int, PrivateKeys]) -> PublicKeys:
    """Return the public keys of users 0 to N - 1.

    Raises
    ------
    ParameterError
        The keys are not given for exactly the users 0 to N - 1, or two users have one.
    """
    users = range(validate.integer("N", N, 1, validate.MAX_COUNT))
    if len(validate.mapping("keys", keys)) != N or set(keys) != set(users):
        raise ParameterError("keys", list(keys), f"given for exactly the users 0 to {N - 1}")
    for user in users:
        if not isinstance(keys[user], PrivateKeys):
            raise ParameterError(f"keys[{user}]", keys[user], "the private keys of a user")
    sealing = Roster(tuple(public_key(keys[user].sealing) for user in users))
    return PublicKeys(sealing, Roster(tuple(verification_key(keys[user].signing) for user in users)))
