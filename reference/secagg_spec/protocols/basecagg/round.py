"""BASecAgg: the weighted sum over a buffer of updates that start from models of different rounds.

========================  ==========================================
papers                    here
========================  ==========================================
q, N, D, U, T, d, K       `Parameters`
c_l, c_g, tau_max, s      `c_l`, `c_g`, `tau_max`, `staleness`
t, t_i                    the round of the server, the stamp of user i
Delta_i, z_i, y_i         `update`, `mask`, `masked` of user i
[n_i]_k                   `noise`, T rows
z~_{i,j}                  the share of user i's mask that user j holds
S(t)                      the entries of the buffer of round t
========================  ==========================================

This is the semi-honest profile; `basecagg.active` is the active one. Whole runs are in `basecagg.runs`, and storage of
a server's state in `basecagg.store`.

Source: BASecAgg, sections 2 and 3; spec/basecagg.md (BSA-01 to BSA-36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import modular, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.mds import MaskCode, check_prime
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import KINDS, Staleness, admissible_weights, realised_weight
from secagg_spec.crypto.channels import StampedChannel
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.sealing import Context
from secagg_spec.protocols import buffers, codec, steps
from secagg_spec.protocols.begun import session_id

PROTOCOL = "basecagg"
LAST_ROUND = 2**32 - 1


@dataclass(frozen=True)
class Parameters(validate.Plain):
    """The parameters of a session.

    Raises
    ------
    ParameterError
        They break BSA-01: ``T >= 1``, ``U > T``, ``D >= 0``, ``N - D >= U``, ``T + 2 <= K <= N``, q a prime above N and
        at most 2**32, ``d >= 1``, tau_max in ``[0, 2**31 - 1]``; or BSA-02: c_l and c_g in ``[1, 2**32]``,
        ``c_g s(tau_max) >= 1``, ``K c_g <= (q - 1) // 2``, ``c_l K c_g <= 2**53``.
    """

    q: int
    N: int
    D: int
    U: int
    T: int
    d: int
    K: int
    c_l: int
    c_g: int
    tau_max: int
    staleness: Staleness

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("N", self.N, 3, modular.DEFAULT_PRIME - 1)
        check_prime(self.q, self.N)
        validate.integer("d", self.d, 1, validate.MAX_COUNT)
        validate.integer("D", self.D, 0, self.N - 2)
        _ = self.code  # it refuses U and T that do not fit
        if self.U > self.N - self.D:
            raise errors.ParameterError("N - D", self.N - self.D, f"at least U = {self.U}")
        validate.integer("K", self.K, self.T + 2, self.N)
        self._check_levels()

    def _check_levels(self) -> None:
        buffers.check_levels("q", self.q, self.K, self.c_l, self.c_g, self.tau_max, self.staleness)

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

    @property
    def total_weight(self) -> int:
        """K c_g, the largest total weight of a buffer."""
        return self.K * self.c_g

    @property
    def budget(self) -> int:
        """B, the largest magnitude of an element of an update (BSA-06)."""
        return buffers.budget(self.field, self.total_weight)

    def numbers(self) -> dict[str, int]:
        """Return the names and values that keys and signatures are bound to, in this order (BSA-03)."""
        names = ("q", "N", "D", "U", "T", "d", "K", "c_l", "c_g", "tau_max")
        s = self.staleness
        function = {"kind": KINDS.index(s.kind), "numerator": s.numerator, "denominator": s.denominator}
        return {name: int(getattr(self, name)) for name in names} | function | {"start": s.start}


_SLOWLY = Staleness.polynomial(1)
PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(q=19, N=5, D=1, U=3, T=1, d=3, K=3, c_l=1, c_g=3, tau_max=2, staleness=_SLOWLY),
        "default": Parameters(
            q=modular.DEFAULT_PRIME, N=10, D=2, U=7, T=3, d=16, K=5, c_l=65536, c_g=64, tau_max=10, staleness=_SLOWLY
        ),
        "paper": Parameters(
            q=modular.DEFAULT_PRIME,
            N=100,
            D=30,
            U=70,
            T=8,
            d=1000,
            K=10,
            c_l=65536,
            c_g=64,
            tau_max=10,
            staleness=_SLOWLY,
        ),
    }
)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class ModelRequest(codec.Message):
    """A request for the model; `round` is the latest round that the sender knows of."""

    TYPE: ClassVar[int] = 769


@dataclass(frozen=True, eq=False)
class ModelStamp(codec.Message):
    """The receiver's stamp, which is `round`."""

    TYPE: ClassVar[int] = 770


@dataclass(frozen=True, eq=False)
class StampedShare(codec.Message):
    """The receiver's share of the sender's mask, closed by the channel; `round` is the sender's stamp."""

    TYPE: ClassVar[int] = 771
    payload: codec.Opaque


@dataclass(frozen=True, eq=False)
class StampedUpdate(codec.Message):
    """The masked update, d elements; `round` is the sender's stamp."""

    TYPE: ClassVar[int] = 772
    masked: codec.Vector


@dataclass(frozen=True, eq=False)
class BufferedSet(codec.Message):
    """The buffer of `round`: its users, ascending, and the stamp and the weight of each."""

    TYPE: ClassVar[int] = 773
    users: codec.Users
    stamps: codec.Vector
    weights: codec.Vector


@dataclass(frozen=True, eq=False)
class WeightedShare(codec.Message):
    """The weighted sum of the shares of the buffer of `round`, L elements."""

    TYPE: ClassVar[int] = 774
    share: codec.Vector


# -------------------------------------------------------------------------------------------------- pure cores


@dataclass(frozen=True)
class Entry(validate.Plain):
    """One update of a buffer: its user, its stamp and its weight."""

    user: int
    stamp: int
    weight: int


@dataclass(frozen=True, eq=False)
class Held(validate.Plain):
    """A share of a user's mask, L elements, and the stamp of the mask."""

    stamp: int
    share: validate.UintArray = field(repr=False)


def encode_update(parameters: Parameters, x: validate.RealArray, rounding: validate.RealArray) -> validate.UintArray:
    """Return an update of d real numbers as elements: the quantiser at c_l with the total weight K c_g (BSA-36).

    `rounding` has d draws, uniform in ``[0, 1)``; the errors are those of `quantize`.
    """
    validate.array_shape("x", validate.reals("x", x, (None,)), (parameters.d,))
    return quantize(x, level=parameters.c_l, ring=parameters.field, weight=parameters.total_weight, rounding=rounding)


def mask_update(
    field: modular.PrimeField, total_weight: int, update: validate.UintArray, mask: validate.UintArray
) -> validate.UintArray:
    """Return y_i = Delta_i + z_i, d elements, for an update that the buffer can carry (BSA-04 to BSA-06)."""
    return field.add(buffers.check_update(field, total_weight, update), mask, names=("update", "mask"))


def weigh(parameters: Parameters, round: int, stamps: Sequence[int], draws: Sequence[float]) -> tuple[int, ...]:
    """Return the realised weight of each stamp in the buffer of a round, with one draw for each (BSA-18).

    Raises
    ------
    LengthMismatch
        There is not one draw for each stamp.
    ParameterError
        A stamp is later than the round.
    OutOfRange
        A draw is not a multiple of 2**-53 in ``[0, 1)``.
    """
    round, stamps = _round(round), validate.user_numbers("stamps", stamps)
    draws = validate.sequence("draws", draws, "draws")
    if len(draws) != len(stamps):
        raise errors.LengthMismatch("len(draws)", len(draws), f"{len(stamps)}, one for each stamp")
    ages = [validate.integer("round - stamp", round - stamp, 0, buffers.MAX_STALENESS) for stamp in stamps]
    s, c_g = parameters.staleness, parameters.c_g
    pairs = enumerate(zip(ages, draws, strict=True))
    return tuple(realised_weight(s, c_g, tau, draw, name=f"draws[{at}]") for at, (tau, draw) in pairs)


def entries_of(users: Sequence[int], stamps: validate.UintArray, weights: validate.UintArray) -> tuple[Entry, ...]:
    """Return the entries of a buffer from the fields of its announcement.

    Raises
    ------
    InconsistentSets
        There is not one stamp and one weight for each user (BSA-21).
    """
    users = validate.user_numbers("users", users)
    stamps = validate.elements("stamps", stamps, modular.MAX_MODULUS, (None,))
    weights = validate.elements("weights", weights, modular.MAX_MODULUS, (None,))
    if not len(users) == stamps.size == weights.size:
        message = f"the buffer has {len(users)} users, {stamps.size} stamps and {weights.size} weights"
        raise errors.InconsistentSets(message, (steps.SERVER,))
    return tuple(Entry(user, int(t), int(w)) for user, t, w in zip(users, stamps, weights, strict=True))


def check_buffer(
    parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]
) -> tuple[Entry, ...]:
    """Return the entries of a buffer if a user may answer for it (BSA-21 to BSA-25).

    Parameters
    ----------
    parameters : Parameters
    round : int
        The round of the buffer.
    entries : sequence of Entry
        The entries that the server announced, in the announced order.
    held : mapping from user to Held
        The shares that the user holds, at most one of each user.

    Raises
    ------
    InconsistentSets
        The buffer fails a check, or a share is not held.
    """
    if not all(isinstance(kept, Held) for kept in validate.mapping("held", held).values()):
        raise errors.ParameterError(
            "held", validate.class_of(held), "a mapping from users to the shares of their masks"
        )
    check_entries(parameters, round, entries)
    missing = [e.user for e in entries if e.user not in held or held[e.user].stamp != e.stamp]
    if missing:
        raise errors.InconsistentSets(f"the buffer names {missing}, whose shares are not held under these stamps")
    return tuple(entries)


def check_entries(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
    """Refuse entries that no buffer of a round can have (BSA-21 to BSA-24).

    Raises
    ------
    InconsistentSets
        They are not K users in ascending order with admissible stamps and weights.
    """
    _round(round)
    for entry in validate.sequence("entries", entries, "entries"):
        if not isinstance(entry, Entry):
            raise errors.ParameterError("entries", entry, "entries of a buffer")
    _check_users(parameters, [entry.user for entry in entries])
    _check_weights(parameters, round, entries)


def _check_users(parameters: Parameters, users: Sequence[int]) -> None:
    if len(users) != parameters.K:
        raise errors.InconsistentSets(f"the buffer has {len(users)} entries and K is {parameters.K}", (steps.SERVER,))
    if any(not 0 <= user < parameters.N for user in users):
        raise errors.InconsistentSets(f"the buffer names {users}: users are in [0, {parameters.N})", (steps.SERVER,))
    if any(a >= b for a, b in pairwise(users)):
        raise errors.InconsistentSets(f"the users {users} of the buffer are not in ascending order", (steps.SERVER,))


def _check_weights(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
    for entry in entries:
        tau = int(round) - entry.stamp
        if not 0 <= tau <= parameters.tau_max:
            message = f"user {entry.user} has the stamp {entry.stamp} in round {round}: tau_max is {parameters.tau_max}"
            raise errors.InconsistentSets(message, (steps.SERVER,))
        allowed = admissible_weights(parameters.staleness, parameters.c_g, tau)
        if entry.weight not in allowed:
            message = f"user {entry.user} weighs {entry.weight} in the buffer, and may weigh {allowed}"
            raise errors.InconsistentSets(message, (steps.SERVER,))
    positive = sum(entry.weight > 0 for entry in entries)
    if positive < parameters.T + 2:
        raise errors.InconsistentSets(
            f"{positive} entries have a weight and T + 2 = {parameters.T + 2} are needed", (steps.SERVER,)
        )


def combine_shares(
    parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]
) -> validate.UintArray:
    """Return the weighted sum of the shares of a buffer's entries, as many elements as each share has (BSA-27).

    The arguments and errors are those of `check_buffer`. Shares of different lengths are refused; that each has L
    elements was checked when it arrived.

    Source: BASecAgg, section 3, step 3.
    """
    entries = check_buffer(parameters, round, entries, held)
    weights = np.array([entry.weight for entry in entries], dtype=np.uint64)
    return parameters.field.weighted_sum(weights, [held[entry.user].share for entry in entries])


def recover(
    code: MaskCode,
    weights: validate.UintArray,
    masked: Sequence[validate.UintArray],
    users: Sequence[int],
    shares: validate.UintArray,
) -> validate.UintArray:
    """Return the weighted sum of the updates: the sum of the masked updates minus the sum of the masks (BSA-29).

    Parameters
    ----------
    code : MaskCode
        The code that shared the masks.
    weights : array (n,)
        The weight of each update, elements.
    masked : sequence of n arrays (d,)
        The masked updates, in that order.
    users : sequence of int
        The users that answered: at least U distinct users.
    shares : array (len(users), L)
        Their weighted shares, in that order.

    Raises
    ------
    ParameterError
        All weights are 0 (BSA-32).
    TooFewSurvivors
        Fewer than U answers (BSA-30).
    BadShare
        More than U answers that do not lie on one codeword (BSA-31).

    Source: BASecAgg eq. (11).
    """
    total = code.field.weighted_sum(weights, masked, name="masked")
    buffers.weight_sum(weights)
    return code.field.subtract(total, code.decode(users, shares, total.size))


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState(steps.PartyState):
    """The state of one user between its steps.

    `phase` is ``idle``, ``asked`` or ``training``. `known` is the latest round that the user knows of. `newest` holds
    the newest stamp that the user saw from each other user. `answered` is the round of the last buffer that the user
    answered.
    """

    parameters: Parameters
    session: bytes
    user: int
    channel: StampedChannel
    known: int
    phase: str = "idle"
    stamp: int | None = None
    mask: validate.UintArray | None = None
    update: validate.UintArray | None = None
    held: Mapping[int, Held] = field(default_factory=dict)
    newest: Mapping[int, int] = field(default_factory=dict)
    answered: int | None = None

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the user; it accepts messages of any round."""
        return steps.Endpoint(self.session, None, self.user)

    @property
    def others(self) -> frozenset[int]:
        """The other users of the roster."""
        return frozenset(range(self.parameters.N)) - {self.user}


@dataclass(frozen=True)
class Record(validate.Plain):
    """The server's record of a user: its newest stamp, and whether its shares were relayed and its update accepted."""

    stamp: int
    relayed: bool = False
    taken: bool = False


@dataclass(frozen=True, eq=False)
class Recovered(validate.Plain):
    """A recovered buffer: its round and entries, and the weighted sum and the average of its updates."""

    round: int
    entries: tuple[Entry, ...]
    sum: validate.UintArray
    average: validate.RealArray


@dataclass(frozen=True, eq=False)
class ServerState(steps.PartyState):
    """The state of the server between its steps.

    `buffer` holds the masked updates by user. `entries` are the entries of the announced buffer; they are empty while
    the buffer fills.
    """

    parameters: Parameters
    session: bytes
    round: int
    records: Mapping[int, Record] = field(default_factory=dict)
    buffer: Mapping[int, validate.UintArray] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    recovered: Recovered | None = None

    @property
    def phase(self) -> str:
        """What the server does: ``filling`` or ``recovering``."""
        return "recovering" if self.entries else "filling"

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the server; messages of earlier rounds may reach it."""
        return steps.Endpoint(self.session, None, steps.SERVER)

    @property
    def users(self) -> range:
        """The users of the roster."""
        return range(self.parameters.N)


def sealing_context(parameters: Parameters, session: bytes, round: int = 0) -> Context:
    """Return the context that the keys of the sealed channels are bound to; the stamp replaces the round (BSA-03)."""
    numbers = hash_parameters(parameters.numbers())
    return Context(PROTOCOL, numbers, session_id(session), _round(round), StampedShare.TYPE)


def user_start(parameters: Parameters, session: bytes, round: int, user: int, channel: StampedChannel) -> UserState:
    """Return the state of a user before its first step; the user knows of `round`."""
    validate.integer("user", user, 0, parameters.N - 1)
    return UserState(parameters, session_id(session), user, channel, _round(round))


def server_start(parameters: Parameters, session: bytes, round: int) -> ServerState:
    """Return the state of the server before its first step, in its first round, `round`."""
    return ServerState(parameters, session_id(session), _round(round))


def user_trained(state: UserState, update: validate.UintArray) -> UserState:
    """Return the state of a training user with the update that its next `upload` masks (BSA-05, BSA-06).

    Raises
    ------
    WrongPhase
        The user is not training.
    OutOfRange
        The update has an element that the buffer cannot carry.
    """
    _require(state.phase == "training", f"an update comes while training, and user {state.user} is {state.phase}")
    parameters = state.parameters
    parameters.field.check("update", update, (parameters.d,))
    return replace(
        state, update=validate.frozen(buffers.check_update(parameters.field, parameters.total_weight, update))
    )


# ------------------------------------------------------------------------------------------------ steps of a user


@steps.row("request", steps.Role.USER, sends=(ModelRequest,))
def user_request(state: UserState) -> tuple[UserState, steps.Outbox]:
    """Ask for the model, for the first time or again (section 4)."""
    _require(state.phase != "training", f"user {state.user} is training: it uploads or abandons first")
    return replace(state, phase="asked"), (ModelRequest(state.session, state.known, state.user, steps.SERVER),)


@steps.row(
    "share", steps.Role.USER, receives=(ModelStamp,), sends=(StampedShare,), randomness=("mask", "noise"), one=True
)
def user_share(
    state: UserState, message: ModelStamp, mask: validate.UintArray, noise: validate.UintArray
) -> tuple[UserState, steps.Outbox]:
    """Take the stamp and share a mask under it: send one share to each other user, keep one (BSA-08; section 4).

    The sampled values are ``mask`` (d,) and ``noise`` (T, L), uniform and fresh.
    """
    _require(state.phase == "asked", f"user {state.user} did not ask for a model")
    parameters, stamp = state.parameters, message.round
    if state.stamp is not None and stamp <= state.stamp:
        raise errors.Replay(f"the stamp {stamp} is not newer than {state.stamp}", (steps.SERVER,))
    parameters.field.check("mask", mask, (parameters.d,))
    shares = parameters.code.encode(mask, noise)
    outbox = tuple(_closed(state, stamp, user, shares[user]) for user in range(parameters.N) if user != state.user)
    held = {**state.held, state.user: Held(stamp, validate.frozen(shares[state.user]))}
    known = max(state.known, stamp)
    return replace(state, phase="training", known=known, stamp=stamp, mask=validate.frozen(mask), held=held), outbox


@steps.row("hold", steps.Role.USER, receives=(StampedShare,), senders=lambda user: user.others)
def user_hold(state: UserState, inbox: Sequence[StampedShare]) -> tuple[UserState, steps.Outbox]:
    """Keep the shares of others; a share replaces an older one of the same sender (BSA-09, BSA-10; section 4)."""
    held, newest = dict(state.held), dict(state.newest)
    for message in inbox:
        sender, stamp = message.sender, message.round
        if sender in newest and stamp <= newest[sender]:
            text = f"a share of user {sender} has the stamp {stamp}, which is not newer than {newest[sender]}"
            raise errors.Replay(text, (sender, steps.SERVER))
        held[sender], newest[sender] = Held(stamp, _open(state, message)), stamp
    return replace(state, held=held, newest=newest), ()


@steps.row("upload", steps.Role.USER, sends=(StampedUpdate,))
def user_upload(state: UserState) -> tuple[UserState, steps.Outbox]:
    """Send the masked update once, and forget the update and the mask (BSA-04 to BSA-07; section 4)."""
    _require(state.phase == "training", f"user {state.user} has no mask to upload under")
    _require(state.update is not None, f"user {state.user} has no update yet")
    assert state.update is not None
    assert state.mask is not None
    assert state.stamp is not None
    parameters = state.parameters
    masked = mask_update(parameters.field, parameters.total_weight, state.update, state.mask)
    outbox = (StampedUpdate(state.session, state.stamp, state.user, steps.SERVER, validate.frozen(masked)),)
    return replace(state, phase="idle", mask=None, update=None), outbox


@steps.row("abandon", steps.Role.USER)
def user_abandon(state: UserState) -> tuple[UserState, steps.Outbox]:
    """Abandon the training, and forget the mask (section 4)."""
    _require(state.phase == "training", f"user {state.user} has no training to abandon")
    return replace(state, phase="idle", mask=None, update=None), ()


@steps.row("recover", steps.Role.USER, receives=(BufferedSet,), sends=(WeightedShare,), one=True)
def user_recover(state: UserState, message: BufferedSet) -> tuple[UserState, steps.Outbox]:
    """Answer a buffer with the weighted sum of its shares, and forget them (BSA-21 to BSA-28; section 4)."""
    parameters = state.parameters
    _require(state.stamp is None or message.round >= state.stamp, f"the buffer of round {message.round} comes late")
    if state.answered is not None and message.round <= state.answered:
        raise errors.Replay(
            f"the buffer of round {state.answered} was answered: that of {message.round} is not after it"
        )
    entries = entries_of(message.users, message.stamps, message.weights)
    share = combine_shares(parameters, message.round, entries, state.held)
    answered = {entry.user for entry in entries}
    held = {user: kept for user, kept in state.held.items() if user not in answered}
    outbox = (WeightedShare(state.session, message.round, state.user, steps.SERVER, validate.frozen(share)),)
    known = max(state.known, message.round)
    return replace(state, known=known, held=held, answered=message.round), outbox


# ------------------------------------------------------------------------------------------- steps of the server


@steps.row(
    "request", steps.Role.SERVER, receives=(ModelRequest,), sends=(ModelStamp,), senders=lambda server: server.users
)
def server_request(state: ServerState, inbox: Sequence[ModelRequest]) -> tuple[ServerState, steps.Outbox]:
    """Send each user that asks the current round as its stamp (BSA-11, BSA-12; section 4)."""
    records = dict(state.records)
    for message in inbox:
        user = message.sender
        who = (user,)
        _require(message.round <= state.round, f"user {user} knows of round {message.round}, after {state.round}", who)
        _require(user not in state.buffer, f"the update of user {user} waits in the buffer", who)
        _require(_stamp(state, user) != state.round, f"user {user} has the stamp {state.round} already", who)
        records[user] = Record(state.round)
    users = sorted(message.sender for message in inbox)
    return replace(state, records=records), tuple(ModelStamp(*_header(state, user)) for user in users)


@steps.row("share", steps.Role.SERVER, receives=(StampedShare,), sends=(StampedShare,), senders=None)
def server_share(state: ServerState, inbox: steps.Inbox) -> tuple[ServerState, steps.Outbox]:
    """Relay the shares of users that sent one to each other user under their newest stamp (BSA-13; section 4)."""
    everyone = set(state.users)
    batches = steps.parcels(inbox, StampedShare, state.endpoint, everyone)
    records = dict(state.records)
    for user, batch in sorted(batches.items()):
        stamp = _stamp(state, user)
        if any(message.round != stamp for message in batch.values()):
            raise errors.InconsistentSets(f"shares of user {user} are not under its stamp, {stamp}", (user,))
        if set(batch) != everyone - {user}:
            raise errors.InconsistentSets(
                f"{len(batch)} shares of user {user} came, one for each other is needed", (user,)
            )
        if records[user].relayed:
            raise errors.Replay(f"the shares of user {user} under the stamp {stamp} were relayed before", (user,))
        records[user] = replace(records[user], relayed=True)
    outbox = tuple(batch[receiver] for _, batch in sorted(batches.items()) for receiver in sorted(batch))
    return replace(state, records=records), outbox


@steps.row("upload", steps.Role.SERVER, receives=(StampedUpdate,), senders=lambda server: server.users)
def server_upload(state: ServerState, inbox: Sequence[StampedUpdate]) -> tuple[ServerState, steps.Outbox]:
    """Put masked updates into the buffer (BSA-14 to BSA-17; section 4)."""
    parameters = state.parameters
    _require(not state.entries, "the server recovers its buffer, and takes no updates")
    records, buffer = dict(state.records), dict(state.buffer)
    for message in inbox:
        user, masked = message.sender, _vector(parameters, message, "masked", message.masked, parameters.d)
        _check_arrival(state, user, message.round)
        records[user], buffer[user] = replace(records[user], taken=True), masked
    _require(len(buffer) <= parameters.K, f"the buffer has room for {parameters.K - len(state.buffer)} updates")
    return replace(state, records=records, buffer=buffer), ()


def _check_arrival(state: ServerState, user: int, stamp: int) -> None:
    """Refuse an update that the buffer may not take (BSA-14 to BSA-16)."""
    record, who = state.records.get(user), (user,)
    if record is None or record.stamp != stamp:
        raise errors.WrongPhase(f"the update of user {user} has not the newest stamp that it was given", who)
    _require(record.relayed, f"the shares of user {user} under the stamp {stamp} were not relayed", who)
    if record.taken:
        raise errors.Replay(f"an update of user {user} under the stamp {stamp} was taken before", who)
    tau, most = state.round - stamp, state.parameters.tau_max
    _require(tau <= most, f"the update of user {user} is {tau} rounds old, and may be {most}", who)


@steps.row("close", steps.Role.SERVER, sends=(BufferedSet,), randomness=("rounding",))
def server_close(state: ServerState, rounding: validate.RealArray) -> tuple[ServerState, steps.Outbox]:
    """Weigh the updates of a full buffer, and announce the buffer to all users (BSA-18 to BSA-20; section 4).

    The sampled value is ``rounding``: K draws, multiples of 2**-53 in ``[0, 1)``, by user in ascending order.
    """
    parameters = state.parameters
    _require(not state.entries, "the buffer was announced before")
    _require(len(state.buffer) == parameters.K, f"the buffer has {len(state.buffer)} updates of {parameters.K}")
    _require(state.round < LAST_ROUND, "this is the last round that a message can name")
    users = tuple(sorted(state.buffer))
    stamps = [state.records[user].stamp for user in users]
    draws = buffers.check_rounding("rounding", rounding, parameters.K).tolist()
    weights = weigh(parameters, state.round, stamps, draws)
    entries = tuple(Entry(*entry) for entry in zip(users, stamps, weights, strict=True))
    fields = (users, _words(stamps), _words(weights))
    outbox = tuple(BufferedSet(*_header(state, user), *fields) for user in range(parameters.N))
    return replace(state, entries=entries), outbox


@steps.row("recover", steps.Role.SERVER, receives=(WeightedShare,), senders=lambda server: server.users)
def server_recover(state: ServerState, inbox: Sequence[WeightedShare]) -> tuple[ServerState, steps.Outbox]:
    """Remove the masks of the buffer, and begin the next round (BSA-29 to BSA-33; section 4).

    The result is `recovered`.
    """
    parameters = state.parameters
    require_round(state, inbox)
    _require(bool(state.entries), "no buffer was announced")
    length = parameters.share_length
    answers = {m.sender: _vector(parameters, m, "share", m.share, length) for m in inbox}
    users = sorted(answers)
    shares = np.array([answers[user] for user in users], dtype=np.uint64).reshape(-1, length)
    weights = _words([entry.weight for entry in state.entries])
    masked = [state.buffer[entry.user] for entry in state.entries]
    total = recover(parameters.code, weights, masked, users, shares)
    mean = buffers.average(parameters.field, parameters.c_l, weights, total)
    recovered = Recovered(state.round, state.entries, validate.frozen(total), validate.frozen(mean))
    return replace(state, round=state.round + 1, buffer={}, entries=(), recovered=recovered), ()


TABLE: steps.Table = (
    *(user_request, server_request, user_share, server_share, user_hold, user_upload, user_abandon),
    *(server_upload, server_close, user_recover, server_recover),
)


# ----------------------------------------------------------------------------------------------------- helpers


def _round(round: int) -> int:
    return validate.integer("round", round, 0, LAST_ROUND)


def _header(state: ServerState, receiver: int) -> tuple[bytes, int, int, int]:
    return state.session, state.round, steps.SERVER, receiver


def _require(condition: bool, message: str, blamed: Iterable[int] = ()) -> None:
    if not condition:
        raise errors.WrongPhase(message, blamed)


def require_round(state: ServerState, inbox: steps.Inbox) -> None:
    """Refuse messages of any round but the server's, in a step that accepts no others (MSG-03).

    Raises
    ------
    WrongPhase
        A message is of another round; its sender is blamed.
    ParameterError
        A header cannot be encoded.
    """
    for message in inbox:
        codec.check_header(message)
        what = f"{type(message).__name__} from {message.sender} is of round {message.round}, and {state.round} is open"
        _require(message.round == state.round, what, (message.sender,))


def _stamp(state: ServerState, user: int) -> int | None:
    record = state.records.get(user)
    return None if record is None else record.stamp


def _words(values: Sequence[int]) -> validate.UintArray:
    return validate.frozen(np.array(values, dtype=np.uint64))


def _closed(state: UserState, stamp: int, receiver: int, share: validate.UintArray) -> StampedShare:
    payload = state.channel.close(stamp, state.user, receiver, codec.vector_bytes(share))
    return StampedShare(state.session, stamp, state.user, receiver, payload)


def _open(state: UserState, message: StampedShare) -> validate.UintArray:
    plaintext = state.channel.open(message.round, message.sender, state.user, message.payload)
    try:
        share = codec.vector_from_bytes(plaintext)
    except (errors.Malformed, errors.ParameterError) as error:
        raise errors.Malformed(f"StampedShare from {message.sender}: {error}", (message.sender,)) from error
    return _vector(state.parameters, message, "payload", share, state.parameters.share_length)


def _vector(
    parameters: Parameters, message: codec.Message, name: str, value: validate.UintArray, length: int
) -> validate.UintArray:
    """Return a vector from a message as elements; if it is wrong, blame the sender, not the caller."""
    try:
        return validate.frozen(parameters.field.check(name, value, (length,)))
    except errors.ParameterError as error:
        text = f"{type(message).__name__} from {message.sender}: {error}"
        raise errors.Malformed(text, (message.sender,)) from error


guard(__name__)
