"""LightSecAgg: masks shared by a T-private MDS code and removed all at once.

====================  ==========================================
papers                here
====================  ==========================================
q, N, D, U, T, d      `Parameters`
x_i, z_i, y_i         `update`, `mask`, `masked` of user i
[n_i]_k               `noise`, T rows
z~_{i,j}              the share of user i's mask that user j holds
U_1                   `surviving`
U_2                   the users whose answers are decoded
====================  ==========================================

This is the semi-honest profile; `lightsecagg.active` is the active one.

Source: BASecAgg, appendix A.2 and eq. (21); spec/lightsecagg.md (LSA-01 to LSA-18, LSA-32).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import modular, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.mds import MaskCode, check_prime
from secagg_spec.arithmetic.validate import UintArray, frozen, read_only
from secagg_spec.crypto import entropy
from secagg_spec.crypto.channels import Channel, PlainChannel
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.sealing import Context
from secagg_spec.protocols import begun, codec, steps

PHASES = ("share", "upload", "recover")


@dataclass(frozen=True)
class Parameters(validate.Plain):
    """The parameters of a session.

    Raises
    ------
    ParameterError
        They break LSA-01: ``T >= 1``, ``U > T``, ``D >= 0``, ``N - D >= U``, ``N - D >= T + 2``, q a prime above N and
        at most 2**32, ``d >= 1``.
    """

    q: int
    N: int
    D: int
    U: int
    T: int
    d: int

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("N", self.N, 3, modular.DEFAULT_PRIME - 1)
        check_prime(self.q, self.N)
        validate.integer("d", self.d, 1, validate.MAX_COUNT)
        validate.integer("D", self.D, 0, self.N - 3)
        _ = self.code  # it refuses U and T that do not fit
        enough = max(self.U, self.T + 2)
        if enough > self.N - self.D:
            raise errors.ParameterError("N - D", self.N - self.D, f"at least max(U, T + 2) = {enough}")

    @cached_property
    def field(self) -> modular.PrimeField:
        """The field of the vectors."""
        return modular.PrimeField(self.q)

    @cached_property
    def code(self) -> MaskCode:
        """The code that shares the masks."""
        return MaskCode(self.field, self.N, self.U, self.T)

    @property
    def share_length(self) -> int:
        """L, the number of elements of a share."""
        return self.code.share_length(self.d)


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(q=7, N=5, D=1, U=3, T=1, d=3),
        "default": Parameters(q=modular.DEFAULT_PRIME, N=10, D=2, U=7, T=3, d=16),
        "paper": Parameters(q=modular.DEFAULT_PRIME, N=100, D=30, U=70, T=50, d=1000),
    }
)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class MaskShare(codec.Message):
    """The receiver's share of the sender's mask, closed by the channel."""

    TYPE: ClassVar[int] = 257
    payload: codec.Opaque


@dataclass(frozen=True, eq=False)
class MaskedUpdate(codec.Message):
    """The masked update, d elements."""

    TYPE: ClassVar[int] = 258
    masked: codec.Vector


@dataclass(frozen=True, eq=False)
class SurvivingSet(codec.Message):
    """The users whose masked updates were accepted, ascending."""

    TYPE: ClassVar[int] = 259
    users: codec.Users


@dataclass(frozen=True, eq=False)
class AggregatedShare(codec.Message):
    """The sum of the shares of the surviving set, L elements."""

    TYPE: ClassVar[int] = 260
    share: codec.Vector


# -------------------------------------------------------------------------------------------------- pure cores


def mask_update(field: modular.PrimeField, update: UintArray, mask: UintArray) -> UintArray:
    """Return y_i = x_i + z_i, d elements (LSA-02, LSA-03; BASecAgg appendix A.2)."""
    update = field.check("update", update, (None,))
    masked = field.add(update, mask, names=("update", "mask"))
    if masked.size == 0:
        raise errors.LengthMismatch("update", update, "d >= 1 elements")
    return masked


def aggregate_shares(
    field: modular.PrimeField, N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]
) -> UintArray:
    """Return the sum of one user's shares over the surviving set, L elements (LSA-08).

    Parameters
    ----------
    field : PrimeField
        The field of the shares.
    N, T : int
        The number of users on the roster, and of users that may collude.
    surviving : sequence of int
        The set that the server announced, in any order: the sum does not depend on it.
    held : mapping from user to array (L,)
        The share of each user's mask.

    Raises
    ------
    InconsistentSets
        The set names a user twice, a user outside the roster (LSA-10) or one whose share is not held (LSA-11).
    TooFewSurvivors
        Fewer than T + 2 users (LSA-09).
    LengthMismatch, NonCanonical
        The shares differ in length, or one is not a vector of elements.

    Source: BASecAgg, appendix A.2.
    """
    surviving = check_surviving_set(N, T, surviving, held)
    length = field.check(f"held[{surviving[0]}]", held[surviving[0]], (None,)).size
    if length == 0:
        raise errors.LengthMismatch(f"held[{surviving[0]}]", held[surviving[0]], "L >= 1 elements")
    return field.sum(np.stack([field.check(f"held[{user}]", held[user], (length,)) for user in surviving]))


def check_surviving_set(N: int, T: int, surviving: Sequence[int], held: Mapping[int, UintArray]) -> tuple[int, ...]:
    """Return the announced set, given in any order, if a user may answer for it (LSA-09 to LSA-11).

    The arguments are those of `aggregate_shares`. The steps check the order in the message (LSA-32).

    Raises
    ------
    InconsistentSets
        The set names a user twice, a user outside the roster (LSA-10) or one whose share is not held (LSA-11).
    TooFewSurvivors
        Fewer than T + 2 users (LSA-09).
    """
    N, T = validate.integer("N", N, 1), validate.integer("T", T, 1)
    surviving = validate.user_numbers("surviving", surviving)
    if len(set(surviving)) != len(surviving):
        raise errors.InconsistentSets(f"the surviving set {list(surviving)} names a user twice", (steps.SERVER,))
    unknown = [user for user in surviving if not 0 <= user < N]
    if unknown:
        raise errors.InconsistentSets(f"the surviving set names {unknown}: users are in [0, {N})", (steps.SERVER,))
    if len(surviving) < T + 2:
        raise errors.TooFewSurvivors(f"{len(surviving)} users survive and T + 2 = {T + 2} are needed")
    missing = [user for user in surviving if user not in validate.mapping("held", held)]
    if missing:
        raise errors.InconsistentSets(
            f"the surviving set names {missing}, whose shares were never received", (steps.SERVER,)
        )
    return surviving


def recover(parameters: Parameters, masked_sum: UintArray, users: Sequence[int], shares: UintArray) -> UintArray:
    """Return the sum of the updates: the masked sum minus the sum of the masks, d elements (LSA-13).

    Parameters
    ----------
    parameters : Parameters
    masked_sum : array (d,)
        The sum of the masked updates of the surviving set.
    users : sequence of int
        The users that answered: at least U distinct members of the surviving set.
    shares : array (len(users), L)
        Their aggregated shares, in that order.

    Raises
    ------
    TooFewSurvivors
        Fewer than U answers (LSA-14).
    BadShare
        More than U answers that do not lie on one codeword (LSA-15).
    NonCanonical, LengthMismatch
        `masked_sum` is not of d elements, or the shares are not of L elements each.

    Source: BASecAgg, appendix A.2.
    """
    masked_sum = parameters.field.check("masked_sum", masked_sum, (parameters.d,))
    mask_sum = parameters.code.decode(users, shares, parameters.d)
    return parameters.field.subtract(masked_sum, mask_sum)


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState(steps.PartyState):
    """The state of one user between its steps. `phase` is the step that it is ready for."""

    phases: ClassVar = PHASES
    parameters: Parameters
    session: bytes
    round: int
    user: int
    update: UintArray
    channel: Channel
    phase: str = "share"
    mask: UintArray | None = None
    held: Mapping[int, UintArray] = field(default_factory=dict)

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the user."""
        return steps.Endpoint(self.session, self.round, self.user)

    @property
    def others(self) -> frozenset[int]:
        """The other users of the roster."""
        return frozenset(range(self.parameters.N)) - {self.user}


@dataclass(frozen=True, eq=False)
class ServerState(steps.PartyState):
    """The state of the server between its steps. `phase` is the step that it is ready for."""

    phases: ClassVar = PHASES
    parameters: Parameters
    session: bytes
    round: int
    phase: str = "share"
    sharers: tuple[int, ...] = ()
    surviving: tuple[int, ...] = ()
    masked_sum: UintArray | None = None
    aggregate: UintArray | None = None

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the server."""
        return steps.Endpoint(self.session, self.round, steps.SERVER)


def user_start(
    parameters: Parameters, session: bytes, round: int, user: int, update: UintArray, channel: Channel
) -> UserState:
    """Return the state of a user before its first step. `update` has d elements (LSA-03)."""
    validate.integer("user", user, 0, parameters.N - 1)
    update = parameters.field.check("update", update, (parameters.d,))
    return UserState(parameters, begun.session_id(session), _round(round), user, frozen(update), channel)


def sealing_context(parameters: Parameters, session: bytes, round: int) -> Context:
    """Return the context that the keys of the sealed channels of a round are bound to (LSA-18)."""
    numbers = {name: getattr(parameters, name) for name in ("q", "N", "D", "U", "T", "d")}
    return Context("lightsecagg", hash_parameters(numbers), begun.session_id(session), round, MaskShare.TYPE)


def server_start(parameters: Parameters, session: bytes, round: int) -> ServerState:
    """Return the state of the server before its first step."""
    return ServerState(parameters, begun.session_id(session), _round(round))


def user_again(state: UserState, round: int, update: UintArray, channel: Channel) -> UserState:
    """Return the state of a user before another round of its session, with the same parameters (SES-01).

    Parameters
    ----------
    state : UserState
        The state of the user at the end of a round, or at the point where it left the round.
    round : int
        The number of the new round, above the number of the last round that the user began.
    update : array (d,)
        The input of this round.
    channel : Channel
        The user's channel in this round.

    Raises
    ------
    ParameterError
        The number is not above the last one.
    LengthMismatch, NonCanonical
        The update is not d elements (LSA-03).
    """
    number = begun.later_round(state.round, round, "round")
    return user_start(state.parameters, state.session, number, state.user, update, channel)


def server_again(state: ServerState, round: int) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (SES-01)."""
    return server_start(state.parameters, state.session, begun.later_round(state.round, round, "round"))


# ------------------------------------------------------------------------------------------------------- steps


@steps.row("share", steps.Role.USER, sends=(MaskShare,), randomness=("mask", "noise"))
def user_share(state: UserState, mask: UintArray, noise: UintArray) -> tuple[UserState, steps.Outbox]:
    """Share the mask: send one share to each other user, and keep the own share (section 4, step 1).

    The sampled values are ``mask`` (d,) and ``noise`` (T, L), uniform and fresh.
    """
    parameters = state.parameters
    parameters.field.check("mask", mask, (parameters.d,))
    shares = parameters.code.encode(mask, noise)
    outbox = tuple(
        MaskShare(*state.endpoint.header(user), state.channel.close(state.user, user, codec.vector_bytes(shares[user])))
        for user in sorted(state.others)
    )
    held = {state.user: frozen(shares[state.user])}
    return replace(state, phase="upload", mask=frozen(mask), held=held), outbox


@steps.row("share", steps.Role.SERVER, receives=(MaskShare,), sends=(MaskShare,), senders=None)
def server_share(state: ServerState, inbox: steps.Inbox) -> tuple[ServerState, steps.Outbox]:
    """Relay, unopened, the shares of every user that sent one to each other user (LSA-05; section 4, step 2)."""
    everyone = set(range(state.parameters.N))
    shares = steps.parcels(inbox, MaskShare, state.endpoint, everyone)
    sharers = tuple(sorted(user for user, sent in shares.items() if set(sent) == everyone - {user}))
    outbox = tuple(shares[user][receiver] for user in sharers for receiver in sorted(shares[user]))
    return replace(state, phase="upload", sharers=sharers), outbox


@steps.row("upload", steps.Role.USER, receives=(MaskShare,), sends=(MaskedUpdate,), senders=lambda user: user.others)
def user_upload(state: UserState, shares: Sequence[MaskShare]) -> tuple[UserState, steps.Outbox]:
    """Keep the shares of the others; send the masked update and forget the mask (LSA-02, LSA-04; step 3)."""
    assert state.mask is not None
    held = {**state.held, **{share.sender: _open(state, share) for share in shares}}
    masked = mask_update(state.parameters.field, state.update, state.mask)
    outbox = (MaskedUpdate(*state.endpoint.header(steps.SERVER), read_only(masked)),)
    return replace(state, phase="recover", mask=None, held=held), outbox


def _added(state: ServerState, updates: Sequence[MaskedUpdate]) -> ServerState:
    """Return the state with the sum of more masked updates (LSA-06)."""
    field, d = state.parameters.field, state.parameters.d
    total = field.zeros(d) if state.masked_sum is None else state.masked_sum
    for message in updates:
        total = field.add(total, _checked(state, message, "masked", message.masked, d))
    surviving = tuple(sorted([*state.surviving, *(message.sender for message in updates)]))
    return replace(state, surviving=surviving, masked_sum=read_only(total))


@steps.row(
    *("upload", steps.Role.SERVER),
    receives=(MaskedUpdate,),
    sends=(SurvivingSet,),
    senders=lambda server: set(server.sharers) - set(server.surviving),
    part=_added,
)
def server_upload(state: ServerState, updates: Sequence[MaskedUpdate]) -> tuple[ServerState, steps.Outbox]:
    """Add the masked updates, and announce the surviving set (LSA-06, LSA-07, LSA-16; step 4)."""
    after = replace(_added(state, updates), phase="recover")
    surviving, enough = after.surviving, max(state.parameters.U, state.parameters.T + 2)
    if len(surviving) < enough:
        raise errors.TooFewSurvivors(f"{len(surviving)} masked updates arrived and max(U, T + 2) = {enough} are needed")
    return after, tuple(SurvivingSet(*state.endpoint.header(user), surviving) for user in surviving)


@steps.row("recover", steps.Role.USER, receives=(SurvivingSet,), sends=(AggregatedShare,), one=True)
def user_recover(state: UserState, message: SurvivingSet) -> tuple[UserState, steps.Outbox]:
    """Release the sum of the shares of the surviving set, once, and forget them (LSA-08 to LSA-12, LSA-32; step 5)."""
    parameters = state.parameters
    share = aggregate_shares(parameters.field, parameters.N, parameters.T, message.users, state.held)
    steps.check_ascending("the surviving set", message.users, (steps.SERVER,))
    outbox = (AggregatedShare(*state.endpoint.header(steps.SERVER), read_only(share)),)
    return replace(state, phase="done", held={}), outbox


@steps.row("recover", steps.Role.SERVER, receives=(AggregatedShare,), senders=lambda server: server.surviving)
def server_recover(state: ServerState, answers: Sequence[AggregatedShare]) -> tuple[ServerState, steps.Outbox]:
    """Decode the sum of the masks and remove it (LSA-13 to LSA-17; step 6). The result is `aggregate`."""
    assert state.masked_sum is not None
    parameters, length = state.parameters, state.parameters.share_length
    sent = {message.sender: _checked(state, message, "share", message.share, length) for message in answers}
    users = sorted(sent)
    shares = np.array([sent[user] for user in users], dtype=np.uint64).reshape(-1, length)
    aggregate = recover(parameters, state.masked_sum, users, shares)
    return replace(state, phase="done", aggregate=read_only(aggregate)), ()


TABLE: steps.Table = (user_share, server_share, user_upload, server_upload, user_recover, server_recover)


# ------------------------------------------------------------------------------------------------- whole round


def draw_randomness(parameters: Parameters, sources: Mapping[int, entropy.Source]) -> dict[int, steps.Randomness]:
    """Draw the mask and the noise of each user from its source (spec/lightsecagg.md, section 7)."""
    shape = (parameters.T, parameters.share_length)
    for user, source in sources.items():
        entropy.check_source(source, validate.entry("sources", user))
    return {
        user: {
            "mask": entropy.draw_elements(source, parameters.field, (parameters.d,)),
            "noise": entropy.draw_elements(source, parameters.field, shape),
        }
        for user, source in sources.items()
    }


def run_round(
    parameters: Parameters,
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
    updates : array (N, d)
        The update of each user, elements.
    randomness : mapping from user to sampled values
        ``mask`` and ``noise`` of each user that takes part in ``share``; see `draw_randomness`.
    dropouts : mapping from phase to users
        The users that drop out just before their step in ``share``, ``upload`` or ``recover``.
    session, round, channel
        The session id (16 bytes), the round number, and the channel between users (plain by default).

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on (LSA-17).
    ParameterError
        The inputs do not fit the parameters.
    """
    network = open_round(parameters, updates, session=session, round=round, channel=channel)
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER]
    return steps.RoundResult(server.aggregate, server.surviving, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    session: bytes,
    round: int,
    channel: Channel | None = None,
) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = parameters.field.check("updates", updates, (parameters.N, parameters.d))
    link = PlainChannel() if channel is None else channel
    states: dict[int, object] = {steps.SERVER: server_start(parameters, session, round)}
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, round, user, updates[user], link)
    return steps.Network(TABLE, states)


# ----------------------------------------------------------------------------------------------------- helpers


def _round(round: int) -> int:
    return validate.integer("round", round, 0, 2**32 - 1)


def _open(state: UserState, message: MaskShare) -> UintArray:
    plaintext = state.channel.open(message.sender, state.user, message.payload)
    try:
        share = codec.vector_from_bytes(plaintext)
    except (errors.Malformed, errors.ParameterError) as error:
        raise errors.Malformed(f"MaskShare from {message.sender}: {error}", (message.sender,)) from error
    return frozen(_checked(state, message, "payload", share, state.parameters.share_length))


def _checked(
    state: UserState | ServerState, message: codec.Message, name: str, value: UintArray, length: int
) -> UintArray:
    """Return a vector from a message as elements; if it is wrong, blame the sender, not the caller."""
    try:
        return state.parameters.field.check(name, value, (length,))
    except errors.ParameterError as error:
        text = f"{type(message).__name__} from {message.sender}: {error}"
        raise errors.Malformed(text, (message.sender,)) from error


guard(__name__)
