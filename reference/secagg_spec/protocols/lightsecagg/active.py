"""LightSecAgg, active profile: a user answers only for a set that W users have signed.

====================  ==========================================
the text              here
====================  ==========================================
q, N, D, U, T, d, W   `Parameters`
the surviving set     `announced` of a user's state
the signers           `signers` of the server's state
====================  ==========================================

The state of a party holds its state in the semi-honest profile as `base`, and the steps of that profile act on
`base`.

Source: spec/lightsecagg.md, section 9 (LSA-19 to LSA-35).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.protocols import agreement, codec, steps
from secagg_spec.protocols.begun import later_round
from secagg_spec.protocols.lightsecagg import round as lightsecagg

PROTOCOL = "lightsecagg-active"
PHASES = ("share", "upload", "confirm", "recover")


@dataclass(frozen=True)
class Parameters(lightsecagg.Parameters):
    """The parameters of a session of the active profile.

    Raises
    ------
    ParameterError
        They break LSA-01, or LSA-19: ``2W > N + T`` and ``W <= N - D``.
    """

    W: int

    def __post_init__(self) -> None:
        super().__post_init__()
        agreement.check_threshold(self.W, self.N, self.D, self.T)


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(q=7, N=5, D=1, U=3, T=1, d=3, W=4),
        "default": Parameters(q=DEFAULT_PRIME, N=10, D=2, U=7, T=3, d=16, W=7),
    }
)


@dataclass(frozen=True)
class PrivateKeys:
    """The two private keys of a user: X25519 for sealing, Ed25519 for signing; errors are those of `prg.check_key`."""

    sealing: bytes = field(repr=False)
    signing: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check_key("sealing", self.sealing)
        check_key("signing", self.signing)


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
            raise errors.LengthMismatch("len(verification)", len(self.verification.keys), wanted)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class SignedSet(codec.Message):
    """The sender's signature on the surviving set that it received, 64 bytes."""

    TYPE: ClassVar[int] = 261
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class Quorum(codec.Message):
    """The users that signed the surviving set, ascending, and their signatures one after another."""

    TYPE: ClassVar[int] = 262
    signers: codec.Users
    signatures: codec.Opaque


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState(steps.ProfileState):
    """The state of one user between its steps.

    `sealing` is its public sealing key in this round, and `announced` the surviving set that it signed.
    """

    phases: ClassVar = PHASES
    base: lightsecagg.UserState
    ballot: agreement.Ballot
    signing: bytes = field(repr=False)
    sealing: bytes
    announced: lightsecagg.SurvivingSet | None = None

    @property
    def phase(self) -> str:
        """The step that the user is ready for."""
        return "confirm" if self.base.phase == "recover" and self.announced is None else self.base.phase


@dataclass(frozen=True, eq=False)
class ServerState(steps.ProfileState):
    """The state of the server between its steps; `signers` are the users that confirmed the surviving set."""

    phases: ClassVar = PHASES
    base: lightsecagg.ServerState
    ballot: agreement.Ballot
    signers: tuple[int, ...] = ()

    @property
    def phase(self) -> str:
        """The step that the server is ready for."""
        return "confirm" if self.base.phase == "recover" and not self.signers else self.base.phase


def binding_context(
    parameters: Parameters, session: bytes, round: int, kind: type[codec.Message], sealing: Roster
) -> Context:
    """Return the context of the seals and signatures in messages of class `kind` (LSA-21, LSA-31, LSA-34).

    `sealing` are the public sealing keys of the N users in this attempt.

    Raises
    ------
    ParameterError
        The parameters are those of the semi-honest profile.
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

    The sealing keys belong to this attempt: a user that begins a round again draws a new one.

    Raises
    ------
    LengthMismatch
        The roster does not name N users, or a private key is not 32 bytes long.
    ParameterError
        The keys of the user are not its keys on the roster.
    """
    ballot = _ballot(parameters, session, round, roster)
    context = binding_context(parameters, session, round, lightsecagg.MaskShare, roster.sealing)
    channel = SealedChannel(context, keys.sealing, roster.sealing)
    base = lightsecagg.user_start(parameters, session, round, user, update, channel)
    own = (public_key(keys.sealing), verification_key(keys.signing))
    if own != (roster.sealing.keys[user], roster.verification.keys[user]):
        raise errors.ParameterError("keys", f"of another than user {user}", "those whose public keys the roster has")
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
        The state of the user at the end of a round, or at the point where it left the round.
    round : int
        The number of the new round, above the number of the last round that the user began.
    update : array (d,)
        The input of this round.
    keys, roster
        The user's private keys and all users' public keys in this round.

    Raises
    ------
    ParameterError
        The number is not above the last one, the sealing key is the one of the round before, or the keys of the user
        are not its keys on the roster.
    LengthMismatch, NonCanonical
        The update is not d elements, or the roster does not name N users.
    """
    base, parameters = state.base, state.base.parameters
    assert isinstance(parameters, Parameters)
    number = later_round(base.round, round, "round")
    if state.sealing == public_key(keys.sealing):
        raise errors.ParameterError("keys.sealing", "that of the round before", "drawn anew for each round")
    return user_start(parameters, base.session, number, base.user, update, keys, roster)


def server_again(state: ServerState, round: int, roster: PublicKeys) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (SES-01)."""
    base, parameters = state.base, state.base.parameters
    assert isinstance(parameters, Parameters)
    return server_start(parameters, base.session, later_round(base.round, round, "round"), roster)


def _ballot(parameters: Parameters, session: bytes, round: int, roster: PublicKeys) -> agreement.Ballot:
    if len(roster.verification.keys) != parameters.N:
        raise errors.LengthMismatch("len(verification)", len(roster.verification.keys), f"N = {parameters.N}")
    context = binding_context(parameters, session, round, SignedSet, roster.sealing)
    return agreement.Ballot(context, roster.verification, parameters.W)


# ------------------------------------------------------------------------------------------------------- steps


@steps.row("confirm", steps.Role.USER, receives=(lightsecagg.SurvivingSet,), sends=(SignedSet,), one=True)
def user_confirm(state: UserState, message: lightsecagg.SurvivingSet) -> tuple[UserState, steps.Outbox]:
    """Sign the surviving set once, if it passes the checks (LSA-09 to LSA-11, LSA-20 to LSA-22, LSA-32; step 5)."""
    base = state.base
    surviving = lightsecagg.check_surviving_set(base.parameters.N, base.parameters.T, message.users, base.held)
    steps.check_ascending("the surviving set", surviving, (steps.SERVER,))
    if base.user not in surviving:
        raise errors.InconsistentSets(
            f"the surviving set {list(surviving)} is without user {base.user}", (steps.SERVER,)
        )
    signature = agreement.sign_proposal(state.ballot, state.signing, base.user, agreement.Proposal(surviving))
    outbox = (SignedSet(*state.endpoint.header(steps.SERVER), signature),)
    return replace(state, announced=replace(message, users=surviving)), outbox


@steps.row(
    "confirm", steps.Role.SERVER, receives=(SignedSet,), sends=(Quorum,), senders=lambda server: server.base.surviving
)
def server_confirm(state: ServerState, confirmations: Sequence[SignedSet]) -> tuple[ServerState, steps.Outbox]:
    """Check the signatures, and relay all of them to each signer (LSA-23 to LSA-25; step 6)."""
    signatures = {message.sender: _checked(state, message) for message in confirmations}
    signers = tuple(sorted(signatures))
    if len(signers) < state.ballot.enough:
        raise errors.TooFewSurvivors(f"{len(signers)} users confirmed the set and W = {state.ballot.enough} are needed")
    together = b"".join(signatures[user] for user in signers)
    outbox = tuple(Quorum(*state.endpoint.header(user), signers, together) for user in signers)
    return replace(state, signers=signers), outbox


def _checked(state: ServerState, message: SignedSet) -> bytes:
    """Return the signature of a message on the surviving set; if it is wrong, blame the sender (LSA-24)."""
    agreement.check_signature(
        state.ballot, message.sender, agreement.Proposal(state.base.surviving), message.signature, message.sender
    )
    return message.signature


@steps.row("recover", steps.Role.USER, receives=(Quorum,), sends=(lightsecagg.AggregatedShare,), one=True)
def user_recover(state: UserState, message: Quorum) -> tuple[UserState, steps.Outbox]:
    """Release the aggregated share of the signed set, if W users signed it (LSA-26 to LSA-29, LSA-33; step 7)."""
    announced = state.announced
    assert announced is not None
    agreement.check_quorum(state.ballot, agreement.Proposal(announced.users), message.signers, message.signatures)
    base, outbox = lightsecagg.user_recover.take(state.base, (announced,), randomness={})
    return replace(state, base=base), outbox


TABLE: steps.Table = steps.of_profile(
    UserState,
    ServerState,
    *(step.on_base() for step in lightsecagg.TABLE if step.phase in ("share", "upload")),
    user_confirm,
    server_confirm,
    user_recover,
    lightsecagg.server_recover.on_base(senders=lambda server: server.signers),
)


# ------------------------------------------------------------------------------------------------- whole round


def run_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    randomness: Mapping[int, steps.Randomness],
    keys: Mapping[int, PrivateKeys],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    session: bytes,
    round: int,
) -> steps.RoundResult:
    """Run a whole round of the active profile among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    updates : array (N, d)
        The update of each user, elements.
    randomness : mapping from user to sampled values
        ``mask`` and ``noise`` of each user that takes part in ``share``; see `lightsecagg.draw_randomness`.
    keys : mapping from user to PrivateKeys
        The private keys of each of the N users; their public keys form the roster.
    dropouts : mapping from phase to users
        The users that drop out just before their step in ``share``, ``upload``, ``confirm`` or ``recover``.
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
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER].base
    return steps.RoundResult(server.aggregate, server.surviving, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    keys: Mapping[int, PrivateKeys],
    session: bytes,
    round: int,
) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = parameters.field.check("updates", updates, (parameters.N, parameters.d))
    roster = roster_of(parameters, keys)
    states: dict[int, object] = {steps.SERVER: server_start(parameters, session, round, roster)}
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, round, user, updates[user], keys[user], roster)
    return steps.Network(TABLE, states)


def roster_of(parameters: Parameters, keys: Mapping[int, PrivateKeys]) -> PublicKeys:
    """Return the public keys of the N users; the errors are those of `roster_of_users`."""
    return roster_of_users(parameters.N, keys)


def roster_of_users(N: int, keys: Mapping[int, PrivateKeys]) -> PublicKeys:
    """Return the public keys of users 0 to N - 1.

    Raises
    ------
    ParameterError
        The keys are not given for exactly the users 0 to N - 1, or two users have the same key.
    """
    users = range(validate.integer("N", N, 1, validate.MAX_COUNT))
    validate.keyed("keys", keys, users, f"given for exactly the users 0 to {N - 1}")
    for user in users:
        validate.instance(f"keys[{user}]", keys[user], PrivateKeys)
    sealing = Roster(tuple(public_key(keys[user].sealing) for user in users))
    return PublicKeys(sealing, Roster(tuple(verification_key(keys[user].signing) for user in users)))


guard(__name__)
