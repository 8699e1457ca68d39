"""BASecAgg, active profile: a user answers only for a buffer that W users have signed.

========================  ==========================================
the text                  here
========================  ==========================================
the parameters, and W     `Parameters`
the answer set aside      `pending` of a user's state
the signers               `signers` of the server's state
========================  ==========================================

The state of a party holds its state in the semi-honest profile as `base`, and the steps of that profile act on
`base`: what `user_confirm` sets aside is the answer of that profile's `user_recover`.

Source: spec/basecagg.md, section 11 (BSA-37 to BSA-47, BSA-50).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.crypto.sealing import Context, SealedStampedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.protocols import agreement, steps
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.codec import Message, Opaque, Users
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active

PROTOCOL = "basecagg-active"
PURPOSE = "buffered-set"
_State = TypeVar("_State", "UserState", "ServerState")


@dataclass(frozen=True)
class Parameters(basecagg.Parameters):
    """The parameters of a session of the active profile.

    Raises
    ------
    ParameterError
        They break BSA-01 or BSA-02, or BSA-37: ``2W > N + T`` and ``U <= W <= N - D``.
    """

    W: int

    def __post_init__(self) -> None:
        super().__post_init__()
        agreement.check_threshold(self.W, self.N, self.D, self.T)
        validate.integer("W", self.W, self.U)

    def numbers(self) -> dict[str, int]:
        """Return the names and values that keys and signatures are bound to: W comes last (BSA-45)."""
        return {**super().numbers(), "W": self.W}


def with_signatures(parameters: basecagg.Parameters, W: int) -> Parameters:
    """Return the parameters of the semi-honest profile extended by W."""
    values = {entry.name: getattr(parameters, entry.name) for entry in fields(basecagg.Parameters)}
    return Parameters(**values, W=W)


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": with_signatures(basecagg.PRESETS["tiny"], W=4),
        "default": with_signatures(basecagg.PRESETS["default"], W=7),
    }
)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class SignedBuffer(Message):
    """The sender's signature on the buffer of `round` that it received, 64 bytes."""

    TYPE: ClassVar[int] = 775
    signature: Opaque


@dataclass(frozen=True, eq=False)
class BufferQuorum(Message):
    """The users that signed the buffer of `round`, ascending, and their signatures one after another."""

    TYPE: ClassVar[int] = 776
    signers: Users
    signatures: Opaque


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class Pending:
    """The buffer that a user signed last, and the answer that it set aside."""

    proposal: agreement.Proposal
    answer: basecagg.WeightedShare


@dataclass(frozen=True, eq=False)
class UserState(steps.ProfileState):
    """The state of one user between its steps."""

    base: basecagg.UserState
    roster: lightsecagg_active.PublicKeys
    signing: bytes = field(repr=False)
    pending: Pending | None = None


@dataclass(frozen=True, eq=False)
class ServerState(steps.ProfileState):
    """The state of the server between its steps; `signers` are the users that confirmed its buffer."""

    base: basecagg.ServerState
    roster: lightsecagg_active.PublicKeys
    signers: tuple[int, ...] = ()

    @property
    def phase(self) -> str:
        """What the server does: ``filling``, ``confirming`` or ``recovering``."""
        return "confirming" if self.base.entries and not self.signers else self.base.phase

    @property
    def round(self) -> int:
        """The round of the server."""
        return self.base.round

    @property
    def recovered(self) -> basecagg.Recovered | None:
        """The last recovered buffer."""
        return self.base.recovered


def sealing_context(parameters: basecagg.Parameters, session: bytes, sealing: Roster) -> Context:
    """Return the context of the keys of the sealed channels; the stamp replaces the round (BSA-45, BSA-47).

    `sealing` are the public sealing keys of the N users in this session.
    """
    bound = hash_parameters(parameters.numbers(), sealing.hash)
    return replace(basecagg.sealing_context(parameters, session), protocol=PROTOCOL, parameters=bound)


def ballot_of(
    parameters: basecagg.Parameters, session: bytes, round: int, roster: lightsecagg_active.PublicKeys
) -> agreement.Ballot:
    """Return the ballot of the signatures on the buffer of a round (BSA-38, BSA-45, BSA-47)."""
    assert isinstance(parameters, Parameters)
    context = replace(sealing_context(parameters, session, roster.sealing), round=round, message_type=SignedBuffer.TYPE)
    return agreement.Ballot(context, roster.verification, parameters.W, PURPOSE)


def proposal_of(parameters: basecagg.Parameters, entries: Sequence[basecagg.Entry]) -> agreement.Proposal:
    """Return the proposal that any user signs for a buffer: its users, their stamps and weights (BSA-38)."""
    stamps, weights = (
        agreement.words([entry.stamp for entry in entries]),
        agreement.words([entry.weight for entry in entries]),
    )
    return agreement.Proposal(tuple(entry.user for entry in entries), (stamps, weights), range(parameters.N))


def user_start(
    parameters: Parameters,
    session: bytes,
    round: int,
    user: int,
    keys: lightsecagg_active.PrivateKeys,
    roster: lightsecagg_active.PublicKeys,
) -> UserState:
    """Return the state of a user before its first step, with its sealed channel.

    The sealing keys belong to this session: a user that begins the session again draws a new one.

    Raises
    ------
    LengthMismatch
        The roster does not name N users, or a private key is not 32 bytes long.
    ParameterError
        The keys of the user are not its keys on the roster.
    """
    roster = _roster(parameters, roster)
    context = sealing_context(parameters, session, roster.sealing)
    channel = SealedStampedChannel(context, keys.sealing, roster.sealing)
    base = basecagg.user_start(parameters, session, round, user, channel)
    own = (public_key(keys.sealing), verification_key(keys.signing))
    if own != (roster.sealing.keys[user], roster.verification.keys[user]):
        raise errors.ParameterError("keys", f"of another than user {user}", "those whose public keys the roster has")
    return UserState(base, roster, keys.signing)


def server_start(
    parameters: Parameters, session: bytes, round: int, roster: lightsecagg_active.PublicKeys
) -> ServerState:
    """Return the state of the server before its first step, with the public keys of the N users."""
    return ServerState(basecagg.server_start(parameters, session, round), _roster(parameters, roster))


def _roster(parameters: Parameters, roster: lightsecagg_active.PublicKeys) -> lightsecagg_active.PublicKeys:
    if len(roster.verification.keys) != parameters.N:
        raise errors.LengthMismatch("len(verification)", len(roster.verification.keys), f"N = {parameters.N}")
    return roster


def user_trained(state: UserState, update: UintArray) -> UserState:
    """Return the state of a training user with its update, as in the semi-honest profile."""
    return replace(state, base=basecagg.user_trained(state.base, update))


# ------------------------------------------------------------------------------------------------------- steps


@steps.row("confirm", steps.Role.USER, receives=(basecagg.BufferedSet,), sends=(SignedBuffer,), one=True)
def user_confirm(state: UserState, message: basecagg.BufferedSet) -> tuple[UserState, steps.Outbox]:
    """Sign a buffer that passes the checks, and set the answer aside (BSA-21 to BSA-26, BSA-38, BSA-39; step 1)."""
    base, (answer,) = basecagg.user_recover.take(state.base, (message,), randomness={})
    assert isinstance(answer, basecagg.WeightedShare)
    proposal = proposal_of(base.parameters, basecagg.entries_of(message.users, message.stamps, message.weights))
    ballot = ballot_of(base.parameters, base.session, message.round, state.roster)
    signature = agreement.sign_proposal(ballot, state.signing, base.user, proposal)
    outbox = (SignedBuffer(base.session, message.round, base.user, steps.SERVER, signature),)
    return replace(state, base=base, pending=Pending(proposal, answer)), outbox


@steps.row(
    "confirm",
    steps.Role.SERVER,
    receives=(SignedBuffer,),
    sends=(BufferQuorum,),
    senders=lambda server: server.base.users,
)
def server_confirm(state: ServerState, inbox: Sequence[SignedBuffer]) -> tuple[ServerState, steps.Outbox]:
    """Check the signatures, and relay all of them to each signer (BSA-40 to BSA-42; step 2)."""
    base = state.base
    basecagg.require_round(base, inbox)
    if state.phase != "confirming":
        raise errors.WrongPhase(f"the server is {state.phase}, and has no buffer to confirm")
    ballot, _ = _agenda(state)
    signatures = {message.sender: _checked(state, message) for message in inbox}
    signers = tuple(sorted(signatures))
    if len(signers) < ballot.enough:
        raise errors.TooFewSurvivors(f"{len(signers)} users confirmed the buffer and W = {ballot.enough} are needed")
    together = b"".join(signatures[user] for user in signers)
    outbox = tuple(BufferQuorum(base.session, base.round, steps.SERVER, user, signers, together) for user in signers)
    return replace(state, signers=signers), outbox


def _checked(state: ServerState, message: SignedBuffer) -> bytes:
    """Return the signature of a message on the announced buffer; if it is wrong, blame the sender (BSA-41)."""
    ballot, proposal = _agenda(state)
    agreement.check_signature(ballot, message.sender, proposal, message.signature, message.sender)
    return message.signature


def _agenda(state: ServerState) -> tuple[agreement.Ballot, agreement.Proposal]:
    base = state.base
    ballot = ballot_of(base.parameters, base.session, base.round, state.roster)
    return ballot, proposal_of(base.parameters, base.entries)


@steps.row("recover", steps.Role.USER, receives=(BufferQuorum,), sends=(basecagg.WeightedShare,), one=True)
def user_recover(state: UserState, message: BufferQuorum) -> tuple[UserState, steps.Outbox]:
    """Release the answer that was set aside, if W users signed its buffer (BSA-43, BSA-44; step 3)."""
    base = state.base
    pending = _pending(state, message.round)
    ballot = ballot_of(base.parameters, base.session, message.round, state.roster)
    agreement.check_quorum(ballot, pending.proposal, message.signers, message.signatures)
    return replace(state, pending=None), (pending.answer,)


def _pending(state: UserState, round: int) -> Pending:
    """Return the answer that was set aside for the buffer of a round."""
    if state.pending is None and state.base.answered == round:
        raise errors.Replay(f"the quorum of round {round} was answered before")
    if state.pending is None or state.pending.answer.round != round:
        raise errors.WrongPhase(f"no answer is set aside for the buffer of round {round}")
    return state.pending


@steps.row(
    "recover",
    steps.Role.SERVER,
    receives=(basecagg.WeightedShare,),
    senders=lambda server: server.signers or server.base.users,
)
def server_recover(state: ServerState, inbox: steps.Inbox) -> tuple[ServerState, steps.Outbox]:
    """Remove the masks of the confirmed buffer; only its signers may answer (BSA-46)."""
    basecagg.require_round(state.base, inbox)
    if state.phase != "recovering":
        raise errors.WrongPhase(f"the server is {state.phase}, and recovers nothing")
    base, outbox = basecagg.server_recover.take(state.base, inbox, randomness={})
    return replace(state, base=base, signers=()), outbox


TABLE: steps.Table = steps.of_profile(
    UserState,
    ServerState,
    *(step.on_base() for step in basecagg.TABLE if step.phase != "recover"),
    *(user_confirm, server_confirm, user_recover, server_recover),
)


# ------------------------------------------------------------------------------------------- what a server stores


def store(state: ServerState) -> dict[str, Any]:
    """Return the state of a server as JSON data, without the roster of keys (BSA-35)."""
    return {"base": basecagg_store.store(state.base), "signers": list(state.signers)}


def restore(data: Mapping[str, Any], roster: lightsecagg_active.PublicKeys) -> ServerState:
    """Return the server that resumes from the data of `store`, with the roster of its session (BSA-35).

    Raises
    ------
    ParameterError
        The data is not what `store` returns.
    """
    data = validate.members("data", data, ("base", "signers"))
    validate.mapping("base", data["base"])
    base = basecagg_store.restore(data["base"], Parameters)
    parameters = base.parameters
    assert isinstance(parameters, Parameters)
    signers = validate.users("signers", data["signers"], parameters.N)
    if signers and (not base.entries or len(signers) < parameters.W):
        raise errors.ParameterError("signers", list(signers), "none, or W of them while the server recovers")
    if list(signers) != sorted(signers):
        raise errors.ParameterError("signers", list(signers), "ascending, as `store` writes them")
    state = ServerState(base, _roster(parameters, roster), signers)
    validate.stored(data, store(state))
    return state


# ------------------------------------------------------------------------------------------------- whole runs


def open_session(
    parameters: Parameters, *, keys: Mapping[int, lightsecagg_active.PrivateKeys], session: bytes, round: int
) -> steps.Network:
    """Return the network of a session before its first step; the arguments are those of `run_schedule`."""
    roster = lightsecagg_active.roster_of_users(parameters.N, keys)
    states: dict[int, object] = {steps.SERVER: server_start(parameters, session, round, roster)}
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, round, user, keys[user], roster)
    return steps.Network(TABLE, states)


def run_schedule(
    parameters: Parameters,
    updates: Sequence[UintArray],
    schedule: Sequence[runs.Turn],
    *,
    randomness: steps.Randomness,
    keys: Mapping[int, lightsecagg_active.PrivateKeys],
    session: bytes,
    round: int,
) -> runs.ScheduleResult:
    """Run a session of the active profile among honest parties.

    The users of a `Recover` confirm its buffer and answer. `keys` has the private keys of each of the N users; the
    other arguments and the errors are those of `basecagg.runs.run_schedule`.
    """
    network = open_session(parameters, keys=keys, session=session, round=round)
    return runs.run_turns(runs.Play(network, runs.supplies(parameters, updates, randomness), user_trained), schedule)


guard(__name__)
