"""SecAgg, active profile: users sign keys and the surviving set, and answer only for a set with t signatures.

====================  ==========================================
the text              here
====================  ==========================================
R, N, D, T, t, k, d   `Parameters`
`keys`                `AttemptRound.attempt`
the surviving set     `request` of a user's state
U_4                   `signers` of the server's state
====================  ==========================================

The state of a party holds its state in the semi-honest profile as `base`, and the steps of that profile act on
`base`.

Source: spec/secagg.md, section 10 (SAG-50 to SAG-67, SAG-75).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.keys import Roster, hash_keys, hash_parameters
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, sign, signed_fields, verification_key, verify
from secagg_spec.protocols import agreement, codec, steps
from secagg_spec.protocols.begun import LAST_ROUND, later_round
from secagg_spec.protocols.secagg import round as secagg

PROTOCOL = "secagg-active"
PHASES = ("advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking")
KEYS_PURPOSE = "advertised-keys"


@dataclass(frozen=True)
class Parameters(secagg.Parameters):
    """The parameters of a session of the active profile.

    Raises
    ------
    ParameterError
        They break SAG-01 or SAG-02, or SAG-50: a complete graph and ``2t > N + T``.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.complete:
            raise errors.ParameterError("k", self.k, f"N - 1 = {self.N - 1} in the active profile")

    @property
    def signers(self) -> int:
        """The smallest t with 2t > N + T: no two sets can both get so many signatures."""
        return agreement.least_signers(self.N, self.T) if self.complete else 0


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(R=8, N=5, D=1, T=1, t=4, k=4, d=3),
        "default": Parameters(R=2**32, N=10, D=2, T=3, t=7, k=9, d=16),
    }
)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class SignedKeys(codec.Message):
    """The sender's two X25519 public keys, 32 bytes each, and its signature on them, 64 bytes."""

    TYPE: ClassVar[int] = 520
    sealing: codec.Opaque
    masking: codec.Opaque
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class SignedNeighbourKeys(codec.Message):
    """The keys of the receiver's neighbours, 32 bytes for each user and kind, and 64 bytes of signature for each."""

    TYPE: ClassVar[int] = 521
    users: codec.Users
    sealing: codec.Opaque
    masking: codec.Opaque
    signatures: codec.Opaque


@dataclass(frozen=True, eq=False)
class SignedSurvivors(codec.Message):
    """The sender's signature on the survivors that it received, 64 bytes."""

    TYPE: ClassVar[int] = 522
    signature: codec.Opaque


@dataclass(frozen=True, eq=False)
class SurvivorQuorum(codec.Message):
    """The users that signed the surviving set, ascending, and their signatures one after another."""

    TYPE: ClassVar[int] = 523
    signers: codec.Users
    signatures: codec.Opaque


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState(steps.ProfileState):
    """The state of one user between its steps; `request` is the request whose survivors the user signed."""

    phases: ClassVar = PHASES
    base: secagg.UserState
    roster: Roster
    signing: bytes = field(repr=False)
    request: secagg.UnmaskRequest | None = None

    @property
    def phase(self) -> str:
        """The step that the user is ready for."""
        return "consistency_check" if self.base.phase == "unmasking" and self.request is None else self.base.phase


@dataclass(frozen=True, eq=False)
class ServerState(steps.ProfileState):
    """The state of the server between its steps; `signatures` are the signatures on the keys, `signers` are U_4."""

    phases: ClassVar = PHASES
    base: secagg.ServerState
    roster: Roster
    signatures: Mapping[int, bytes] = field(default_factory=dict)
    signers: tuple[int, ...] = ()

    @property
    def phase(self) -> str:
        """The step that the server is ready for."""
        return "consistency_check" if self.base.phase == "unmasking" and not self.signers else self.base.phase


@dataclass(frozen=True)
class AttemptRound(secagg.Round):
    """What all parties of a round of the active profile agree on before it begins."""

    def attempt(self, keys: Mapping[int, secagg.KeyPair], kind: type[codec.Message]) -> Context:
        """Return the context of seals and signatures once the keys of U_1 are known; it includes them (SAG-67)."""
        assert isinstance(self.parameters, Parameters)
        pairs = {u: validate.instance(validate.entry("keys", u), pair, secagg.KeyPair) for u, pair in keys.items()}
        listed = hash_keys({user: (pair.sealing, pair.masking) for user, pair in pairs.items()})
        return replace(self.context(kind), parameters=hash_parameters(self.parameters.numbers(), listed))

    def sealing_context(self, keys: Mapping[int, secagg.KeyPair]) -> Context:
        """Return the context of the payloads of secret shares; it includes the keys of U_1 (SAG-67)."""
        return self.attempt(keys, secagg.SecretShares)


def agreed(parameters: Parameters, session: bytes, number: int) -> AttemptRound:
    """Return what all parties of a round agree on, with the protocol's name in every key (SAG-65).

    Raises
    ------
    ParameterError
        The parameters are those of the semi-honest profile, or the number is not that of a round.
    """
    return AttemptRound(parameters, parameters.graph(), session, number, PROTOCOL)


def user_start(round: AttemptRound, user: int, update: UintArray, signing: bytes, roster: Roster) -> UserState:
    """Return the state of a user before its first step.

    Raises
    ------
    LengthMismatch
        The roster does not name N users, or the private signing key is not 32 bytes long.
    ParameterError
        The round is not one that `agreed` returns, the roster is none, or the signing key does not belong to the
        user's verification key.
    """
    base = secagg.user_start(round, user, update)
    check_key("signing", signing)
    if verification_key(signing) != _roster(round, roster).keys[user]:
        raise errors.ParameterError(
            "signing", f"of another than user {user}", "the one whose verification key the roster has"
        )
    return UserState(base, roster, signing)


def server_start(round: AttemptRound, roster: Roster) -> ServerState:
    """Return the state of the server before its first step, with the verification keys of the N users.

    Raises
    ------
    LengthMismatch
        The roster does not name N users.
    ParameterError
        The round is not one that `agreed` returns, or the roster is none.
    """
    base = secagg.server_start(round)
    return ServerState(base, _roster(round, roster))


def user_again(state: UserState, number: int, update: UintArray) -> UserState:
    """Return the state of a user before another round of its session; see `secagg.user_again` (SES-01)."""
    return user_start(_later(state.base.round, number), state.base.user, update, state.signing, state.roster)


def server_again(state: ServerState, number: int) -> ServerState:
    """Return the state of the server before another round of its session; see `secagg.user_again` (SES-01)."""
    return server_start(_later(state.base.round, number), state.roster)


def _later(round: secagg.Round, number: int) -> AttemptRound:
    assert isinstance(round.parameters, Parameters)
    return agreed(round.parameters, round.session, later_round(round.number, number))


def _roster(round: secagg.Round, roster: Roster) -> Roster:
    if len(roster.keys) != round.parameters.N:
        raise errors.LengthMismatch("len(roster)", len(roster.keys), f"N = {round.parameters.N}")
    return roster


# ------------------------------------------------------------------------------------------------------- steps


@steps.row("advertise_keys", steps.Role.USER, sends=(SignedKeys,), randomness=secagg.user_advertise_keys.randomness)
def user_advertise_keys(state: UserState, sealing: bytes, masking: bytes) -> tuple[UserState, steps.Outbox]:
    """Send two public keys and the signature on them (SAG-51; step 1); the sampled values are the two private keys."""
    sampled = {"sealing_key": sealing, "masking_key": masking}
    base, (keys,) = secagg.user_advertise_keys.take(state.base, (), randomness=sampled)
    assert isinstance(keys, secagg.AdvertisedKeys)
    signature = sign(state.signing, _signed_keys(base.round, base.user, secagg.KeyPair(keys.sealing, keys.masking)))
    return replace(state, base=base), (SignedKeys(*secagg.envelope(keys), keys.sealing, keys.masking, signature),)


@steps.row(
    *("advertise_keys", steps.Role.SERVER),
    receives=(SignedKeys,),
    sends=(SignedNeighbourKeys,),
    senders=lambda server: range(server.base.round.parameters.N),
)
def server_advertise_keys(state: ServerState, inbox: Sequence[SignedKeys]) -> tuple[ServerState, steps.Outbox]:
    """Check the signatures, and send each user the keys of the others with the signatures (SAG-52; step 2)."""
    for message in inbox:
        pair = secagg.KeyPair(*(secagg.octets(message, name, KEY_BYTES) for name in ("sealing", "masking")))
        signature = secagg.octets(message, "signature", SIGNATURE_BYTES)
        _check_keys(state, message.sender, pair, signature, message.sender)
    plain = [secagg.AdvertisedKeys(*secagg.envelope(message), message.sealing, message.masking) for message in inbox]
    base, outbox = secagg.server_advertise_keys.take(state.base, plain, randomness={})
    signatures = {message.sender: message.signature for message in inbox}
    return replace(state, base=base, signatures=signatures), tuple(
        SignedNeighbourKeys(
            *secagg.envelope(m), m.users, m.sealing, m.masking, b"".join(signatures[user] for user in m.users)
        )
        for m in outbox
        if isinstance(m, secagg.NeighbourKeys)
    )


@steps.row(
    *("share_keys", steps.Role.USER),
    receives=(SignedNeighbourKeys,),
    sends=(secagg.SecretShares, secagg.SeedCommitment),
    randomness=secagg.user_share_keys.randomness,
    one=True,
)
def user_share_keys(state: UserState, message: SignedNeighbourKeys, *sampled: Any) -> tuple[UserState, steps.Outbox]:
    """Check the signatures on the keys, and share the secrets as in the semi-honest profile (SAG-53; step 3)."""
    base, outbox = secagg.user_share_keys.body(state.base, _verified(state, message), *sampled)
    return replace(state, base=base), outbox


@steps.row("consistency_check", steps.Role.USER, receives=(secagg.UnmaskRequest,), sends=(SignedSurvivors,), one=True)
def user_consistency_check(state: UserState, request: secagg.UnmaskRequest) -> tuple[UserState, steps.Outbox]:
    """Sign, once, the survivors of a request that the user may answer (SAG-54 to SAG-56; step 7)."""
    survivors, _ = secagg.check_request(state.base, request)
    signature = agreement.sign_proposal(_ballot(state), state.signing, state.base.user, agreement.Proposal(survivors))
    return replace(state, request=request), (SignedSurvivors(*state.endpoint.header(steps.SERVER), signature),)


@steps.row(
    *("consistency_check", steps.Role.SERVER),
    receives=(SignedSurvivors,),
    sends=(SurvivorQuorum,),
    senders=lambda server: server.base.survivors,
)
def server_consistency_check(state: ServerState, inbox: Sequence[SignedSurvivors]) -> tuple[ServerState, steps.Outbox]:
    """Check the signatures, and relay all of them to each signer (SAG-57 to SAG-59; step 8)."""
    ballot, proposal = _ballot(state), agreement.Proposal(state.base.survivors)
    signatures = {message.sender: message.signature for message in inbox}
    for user, signature in signatures.items():
        agreement.check_signature(ballot, user, proposal, signature, user)
    signers = tuple(sorted(signatures))
    if len(signers) < ballot.enough:
        raise errors.TooFewSurvivors(
            f"{len(signers)} users signed the surviving set and t = {ballot.enough} are needed"
        )
    together = b"".join(signatures[user] for user in signers)
    outbox = tuple(SurvivorQuorum(*state.endpoint.header(user), signers, together) for user in signers)
    return replace(state, signers=signers), outbox


@steps.row("unmasking", steps.Role.USER, receives=(SurvivorQuorum,), sends=(secagg.UnmaskShares,), one=True)
def user_unmasking(state: UserState, quorum: SurvivorQuorum) -> tuple[UserState, steps.Outbox]:
    """Answer the request whose survivors the user signed, if t users signed them (SAG-60 to SAG-63; step 9)."""
    request = state.request
    assert request is not None
    agreement.check_quorum(_ballot(state), agreement.Proposal(request.survivors), quorum.signers, quorum.signatures)
    base, outbox = secagg.user_unmasking.take(state.base, (request,), randomness={})
    return replace(state, base=base), outbox


TABLE: steps.Table = steps.of_profile(
    UserState,
    ServerState,
    user_advertise_keys,
    server_advertise_keys,
    user_share_keys,
    secagg.server_share_keys.on_base(),
    secagg.user_masked_input.on_base(),
    secagg.server_masked_input.on_base(),
    user_consistency_check,
    server_consistency_check,
    user_unmasking,
    secagg.server_unmasking.on_base(senders=lambda server: server.signers),
)


# ------------------------------------------------------------------------------------------------- whole round


def run_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    randomness: Mapping[int, steps.Randomness],
    signing: Mapping[int, bytes],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    session: bytes,
    round: int,
) -> steps.RoundResult:
    """Run a whole round of the active profile among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    updates : array (N, d)
        The update of each user, integers modulo R.
    randomness : mapping from user to sampled values
        The sampled values of each user that takes part in ``advertise_keys``; see `secagg.draw_randomness`.
    signing : mapping from user to bytes
        The private signing key of each of the N users, 32 bytes.
    dropouts : mapping from phase to users
        The users that drop out just before their step in a phase.
    session, round
        The session id (16 bytes) and the round number.

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on (SAG-66).
    ParameterError
        The inputs do not fit the parameters.
    """
    network = open_round(parameters, updates, signing=signing, session=session, round=round)
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER].base
    return steps.RoundResult(server.aggregate, server.survivors, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    signing: Mapping[int, bytes],
    session: bytes,
    round: int,
) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = parameters.ring.check("updates", updates, (parameters.N, parameters.d))
    users = range(parameters.N)
    validate.keyed("signing", signing, users, f"given for exactly the users 0 to {parameters.N - 1}")
    for user in users:
        check_key(f"signing[{user}]", signing[user])
    roster = Roster(tuple(verification_key(signing[user]) for user in users))
    together = agreed(parameters, session, validate.integer("round", round, 0, LAST_ROUND))
    states: dict[int, object] = {steps.SERVER: server_start(together, roster)}
    for user in users:
        states[user] = user_start(together, user, updates[user], signing[user], roster)
    return steps.Network(TABLE, states)


# ----------------------------------------------------------------------------------------------------- helpers


def _ballot(state: UserState | ServerState) -> agreement.Ballot:
    """Return the ballot of the signatures on the surviving set, with the keys of the attempt (SAG-67)."""
    round = state.base.round
    assert isinstance(round, AttemptRound)
    keys = state.base.peers if isinstance(state, UserState) else state.base.keys
    return agreement.Ballot(round.attempt(keys, SignedSurvivors), state.roster, round.parameters.t)


def _signed_keys(round: secagg.Round, user: int, keys: secagg.KeyPair) -> bytes:
    """Return the bytes that a user signs when it signs its keys (SAG-51)."""
    return signed_fields(round.context(SignedKeys), KEYS_PURPOSE, user, (keys.sealing, keys.masking))


def _check_keys(state: UserState | ServerState, user: int, keys: secagg.KeyPair, signature: bytes, blamed: int) -> None:
    verify(state.roster.keys[user], _signed_keys(state.base.round, user, keys), signature, (blamed,))


def _verified(state: UserState, message: SignedNeighbourKeys) -> secagg.NeighbourKeys:
    """Return the keys of a message if their owners' signatures on them are valid (SAG-53)."""
    users = validate.user_numbers("users", message.users)
    N, count = state.base.round.parameters.N, len(users)
    plain = secagg.NeighbourKeys(*secagg.envelope(message), message.users, message.sealing, message.masking)
    keys = [secagg.octets(message, name, KEY_BYTES * count) for name in ("sealing", "masking")]
    signatures = secagg.octets(message, "signatures", SIGNATURE_BYTES * count)
    for at, user in enumerate(users):
        if not 0 <= user < N:
            raise errors.BadSignature(f"keys of user {user}, who has no verification key", (steps.SERVER,))
        pair = secagg.KeyPair(*(each[KEY_BYTES * at : KEY_BYTES * (at + 1)] for each in keys))
        _check_keys(state, user, pair, signatures[SIGNATURE_BYTES * at : SIGNATURE_BYTES * (at + 1)], steps.SERVER)
    return plain


guard(__name__)
