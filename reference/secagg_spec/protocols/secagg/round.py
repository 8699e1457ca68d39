"""SecAgg and SecAgg+: pairwise masks that cancel, self masks, and secret sharing in case users drop out.

====================  ==========================================
papers                here
====================  ==========================================
R, N, D, T, t, k, d   `Parameters`
x_i, y_i              `update`, `masked` of user i
b_i                   `self_seed`
s_i^SK, s_i^PK        `masking_key`, `masking` of user i
PRG(s_{i,j})          the stream of `crypto.masks.pairwise_key`
U_1, U_2, U_3, U_5    `advertised`, `sharers`, `survivors`, the answerers
====================  ==========================================

This is the semi-honest profile; `secagg.active` is the active one. The graph is a parameter: k = N - 1 is SecAgg, a
smaller k is SecAgg+.

Source: HeteroSAg, eq. (4) and (5); spec/secagg.md (SAG-01 to SAG-30).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import modular, shamir, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto import entropy, masks, prg
from secagg_spec.crypto.keys import agree, hash_parameters, public_key, refuse_weak
from secagg_spec.crypto.sealing import Context, Lane
from secagg_spec.protocols import begun, codec, steps
from secagg_spec.protocols.secagg import graph as graphs

PROTOCOL = "secagg"
PHASES = ("advertise_keys", "share_keys", "masked_input", "unmasking")


@dataclass(frozen=True)
class Part(validate.Plain):
    """Elements `start` to `stop` of the inputs, which `members` mask together, as elements of `ring`.

    In SecAgg the whole input is one part: all users are members, and the segment is 0.
    """

    segment: int
    start: int
    stop: int
    ring: modular.Ring
    members: frozenset[int]

    @property
    def length(self) -> int:
        """The number of elements of the part."""
        return self.stop - self.start

    def of(self, vector: validate.UintArray) -> validate.UintArray:
        """Return this part of a vector of d elements."""
        return vector[self.start : self.stop]


class Numbers(validate.Plain):
    """The interface of the steps below to the parameters of a session, implemented by SecAgg and HeteroSAg."""

    N: int
    D: int
    T: int
    t: int
    k: int
    d: int

    @property
    def complete(self) -> bool:
        """Whether every two users are neighbours."""
        return self.k == self.N - 1

    @property
    def enough(self) -> int:
        """The smallest number of users in a sum: max(t, T + 2)."""
        return max(self.t, self.T + 2)

    def graph(self, order: Sequence[int] | None = None) -> graphs.Graph:
        """Return the graph on an order of the users; the default is the order of the roster."""
        users = tuple(range(self.N)) if order is None else validate.user_numbers("order", order)
        if len(users) != self.N:
            raise errors.LengthMismatch("len(order)", len(users), f"N = {self.N}")
        return graphs.Graph(users, self.k)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the input that are masked together."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> bytes:
        """The hash of the parameters that keys are bound to."""
        raise NotImplementedError


@dataclass(frozen=True)
class Parameters(Numbers):
    """The parameters of a session.

    Raises
    ------
    ParameterError
        They break SAG-01 (``2 <= R <= 2**32``, ``d >= 1``, ``T >= 1``, ``D >= 0``, ``N - D >= T + 2``, a graph of
        degree k exists) or SAG-02 (``T + 2 <= t <= N - D``, or ``2 <= t <= k + 1`` on a sparse graph).
    """

    R: int
    N: int
    D: int
    T: int
    t: int
    k: int
    d: int

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("R", self.R, 2, modular.MAX_MODULUS)
        validate.integer("d", self.d, 1, validate.MAX_COUNT)
        N = validate.integer("N", self.N, 3, validate.MAX_COUNT - 1)
        D, T = (
            validate.integer("D", self.D, 0, N - 3),
            validate.integer("T", self.T, 1, N - 2),
        )
        if N - D < T + 2:
            raise errors.ParameterError("N - D", N - D, f"at least T + 2 = {T + 2}")
        graphs.check_degree(N, self.k, shamir.MAX_HOLDERS - 1)
        low, high = (T + 2, N - D) if self.complete else (2, min(self.k + 1, N - D))
        validate.integer("t", self.t, max(low, self.signers), high)

    @property
    def signers(self) -> int:
        """The smallest t that signatures need; 0 where nobody signs."""
        return 0

    @cached_property
    def ring(self) -> modular.Ring:
        """The integers modulo R."""
        return modular.Ring(self.R)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are masked together: one, the whole input, by all users."""
        return (Part(0, 0, self.d, self.ring, frozenset(range(self.N))),)

    def numbers(self) -> dict[str, int]:
        """Return the names and values that keys are bound to, in the order of the text."""
        return {name: getattr(self, name) for name in ("R", "N", "D", "T", "t", "k", "d")}

    @cached_property
    def digest(self) -> bytes:
        """The hash of the parameters that keys are bound to."""
        return hash_parameters(self.numbers())


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(R=8, N=5, D=1, T=1, t=3, k=4, d=3),
        "default": Parameters(R=2**32, N=10, D=2, T=3, t=6, k=9, d=16),
        "sparse": Parameters(R=2**32, N=100, D=20, T=10, t=16, k=30, d=100),
    }
)


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class AdvertisedKeys(codec.Message):
    """The sender's two X25519 public keys, 32 bytes each."""

    TYPE: ClassVar[int] = 513
    sealing: codec.Opaque
    masking: codec.Opaque


@dataclass(frozen=True, eq=False)
class NeighbourKeys(codec.Message):
    """The keys of the receiver's neighbours: users ascending, and 32 bytes for each of them."""

    TYPE: ClassVar[int] = 514
    users: codec.Users
    sealing: codec.Opaque
    masking: codec.Opaque


@dataclass(frozen=True, eq=False)
class SecretShares(codec.Message):
    """The receiver's shares of the sender's masking key and self seed, sealed."""

    TYPE: ClassVar[int] = 515
    payload: codec.Opaque


@dataclass(frozen=True, eq=False)
class SeedCommitment(codec.Message):
    """The commitment to the sender's self seed, 32 bytes; the recovered seed is checked against it."""

    TYPE: ClassVar[int] = 516
    commitment: codec.Opaque


@dataclass(frozen=True, eq=False)
class MaskedInput(codec.Message):
    """The masked input, d elements, and the neighbours whose masks it holds, ascending."""

    TYPE: ClassVar[int] = 517
    neighbours: codec.Users
    masked: codec.Vector


@dataclass(frozen=True, eq=False)
class UnmaskRequest(codec.Message):
    """The users whose masked inputs were accepted, and the users that shared secrets and dropped out, ascending."""

    TYPE: ClassVar[int] = 518
    survivors: codec.Users
    dropped: codec.Users


@dataclass(frozen=True, eq=False)
class UnmaskShares(codec.Message):
    """Shares of the self seeds of survivors and of the masking keys of dropped users, 66 bytes for each."""

    TYPE: ClassVar[int] = 519
    survivors: codec.Users
    seed_shares: codec.Opaque
    dropped: codec.Users
    key_shares: codec.Opaque


# -------------------------------------------------------------------------------------------------- pure cores


def mask_update(
    ring: modular.Ring,
    user: int,
    update: validate.UintArray,
    self_mask: modular.Summand,
    pairwise: Iterable[tuple[int, modular.Summand]],
) -> validate.UintArray:
    """Return y_i, d elements: the update plus the self mask and the pairwise masks (SAG-12; HeteroSAg eq. 4).

    Parameters
    ----------
    ring : Ring
    user : int
        i.
    update, self_mask : array (d,)
        x_i and PRG(b_i). A mask may be given in consecutive pieces.
    pairwise : iterable of (int, array (d,))
        Each neighbour j in U_2, with PRG(s_ij). The mask is added if i < j, and subtracted otherwise.
    """
    user, pairwise = validate.secret_integer("user", user, "an integer"), _masks_of("pairwise", pairwise, 1)
    signed = ((user < peer, mask) for peer, mask in pairwise)
    names = (("self_mask",), validate.entries("pairwise"))
    return ring.signed_sum(update, [(True, self_mask)], signed, name="update", names=names)


def unmask(
    ring: modular.Ring,
    masked_sum: validate.UintArray,
    self_masks: Iterable[modular.Summand],
    left: Iterable[tuple[int, int, modular.Summand]],
) -> validate.UintArray:
    """Return the sum of the updates of the survivors, d elements (SAG-29; HeteroSAg eq. 5 with the sign repaired).

    Parameters
    ----------
    ring : Ring
    masked_sum : array (d,)
        The sum of the masked inputs.
    self_masks : iterable of array (d,)
        The self masks of the survivors.
    left : iterable of (int, int, array (d,))
        The masks that do not cancel: each pair of a dropped user i and a surviving neighbour j of i, with PRG(s_ij).
        Each mask is added with the sign with which user i would have added it.
    """
    own, left = ((False, mask) for mask in self_masks), _masks_of("left", left, 2)
    names = (validate.entries("self_masks"), validate.entries("left"))
    return ring.signed_sum(masked_sum, own, ((i < j, mask) for i, j, mask in left), name="masked_sum", names=names)


def _masks_of(name: str, given: Iterable[Any], users: int) -> Iterable[Any]:
    """Yield masks with their users, after a look at each entry."""
    wanted = f"{'a user' if users == 1 else 'two users'} and a mask"
    for called, entry in zip(validate.entries(name), given, strict=False):
        *numbers, mask = validate.parts(called, entry, users + 1, wanted)
        yield *validate.user_numbers(called, numbers), mask


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True)
class KeyPair:
    """The two public keys or the two private keys of a user."""

    sealing: bytes = field(repr=False)
    masking: bytes = field(repr=False)


@dataclass(frozen=True)
class Shares(validate.Plain):
    """A holder's shares of one user's secrets: a share of the masking key and a share of the self seed."""

    key: int = field(repr=False)
    seed: int = field(repr=False)


@dataclass(frozen=True)
class Round(validate.Plain):
    """The facts that all parties of a round agree on before it begins."""

    parameters: Numbers
    graph: graphs.Graph
    session: bytes
    number: int
    protocol: str = PROTOCOL

    def __post_init__(self) -> None:
        super().__post_init__()
        begun.session_id(self.session)
        validate.integer("number", self.number, 0, begun.LAST_ROUND)
        if (len(self.graph.order), self.graph.k) != (self.parameters.N, self.parameters.k):
            given = f"of {len(self.graph.order)} users and degree {self.graph.k}"
            raise errors.ParameterError("graph", given, f"of N = {self.parameters.N} and k = {self.parameters.k}")

    def parts_of(self, user: int) -> tuple[Part, ...]:
        """Return the parts that a user masks, in the order of the input."""
        user = validate.integer("user", user, 0, self.parameters.N - 1)
        return tuple(part for part in self.parameters.parts if user in part.members)

    def context(self, kind: type[codec.Message] = SecretShares) -> Context:
        """Return the context that keys are bound to."""
        return Context(self.protocol, self.parameters.digest, self.session, self.number, kind.TYPE)

    def sealing_context(self, keys: Mapping[int, KeyPair]) -> Context:
        """Return the context that the payloads of secret shares are bound to.

        `keys` are the public keys of the user and of its neighbours in U_1. Only the active profile binds them.
        """
        return self.context()


@dataclass(frozen=True, eq=False)
class UserState(steps.PartyState):
    """The state of one user between its steps. `phase` is the step that it is ready for.

    `peers` are the public keys of the neighbours in U_1, and `sealing_secrets` the secrets agreed with them.
    `mask_keys` are the keys of the pairwise masks by segment and peer, and `self_keys` the keys of the self masks.
    `held` are the shares by owner.
    """

    phases: ClassVar = PHASES
    round: Round
    user: int
    update: validate.UintArray
    phase: str = PHASES[0]
    private: KeyPair | None = field(default=None, repr=False)
    peers: Mapping[int, KeyPair] = field(default_factory=dict)
    sealing_secrets: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    mask_keys: Mapping[tuple[int, int], bytes] = field(default_factory=dict, repr=False)
    self_keys: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    held: Mapping[int, Shares] = field(default_factory=dict)

    @cached_property
    def sealing_context(self) -> Context:
        """The context of the payloads of secret shares; in the active profile it takes a hash over all keys of U_1."""
        return self.round.sealing_context(self.peers)

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the user."""
        return steps.Endpoint(self.round.session, self.round.number, self.user)


@dataclass(frozen=True, eq=False)
class ServerState(steps.PartyState):
    """The state of the server between its steps. `phase` is the step that it is ready for.

    `keys` are the public keys of U_1 by user, and `commitments` the commitments of U_2. `masked_sums` and `sums` hold
    one sum for each part.
    """

    phases: ClassVar = PHASES
    round: Round
    phase: str = PHASES[0]
    keys: Mapping[int, KeyPair] = field(default_factory=dict)
    commitments: Mapping[int, bytes] = field(default_factory=dict)
    sharers: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    masked_sums: tuple[validate.UintArray, ...] = ()
    sums: tuple[validate.UintArray, ...] = ()

    @property
    def endpoint(self) -> steps.Endpoint:
        """The endpoint of the server."""
        return steps.Endpoint(self.round.session, self.round.number, steps.SERVER)

    @property
    def aggregate(self) -> validate.UintArray | None:
        """The sums over the survivors, one part after another, once they are known; in SecAgg, d elements."""
        return validate.read_only(np.concatenate(self.sums)) if self.sums else None

    @property
    def dropped(self) -> tuple[int, ...]:
        """The users that shared secrets and sent no masked input."""
        return tuple(sorted(set(self.sharers) - set(self.survivors)))


def user_start(round: Round, user: int, update: validate.UintArray) -> UserState:
    """Return the state of a user before its first step. `update` has d elements (SAG-14)."""
    validate.integer("user", user, 0, round.parameters.N - 1)
    update = validate.elements("update", update, None, (round.parameters.d,))
    for part in round.parts_of(user):
        part.ring.check("update", part.of(update), None)
    return UserState(round, user, validate.frozen(update))


def server_start(round: Round) -> ServerState:
    """Return the state of the server before its first step."""
    return ServerState(round)


def user_again(
    state: UserState, number: int, update: validate.UintArray, order: Sequence[int] | None = None
) -> UserState:
    """Return the state of a user before another round of its session, with the same parameters (SES-01).

    Parameters
    ----------
    state : UserState
        The state of the user at the end of a round, or at the point where it left the round.
    number : int
        The number of the new round, above the number of the last round that the user began.
    update : array (d,)
        The input of this round.
    order : sequence of int
        The order of the users on the circle of the graph in this round; the order of the roster when left out.

    Raises
    ------
    ParameterError
        The number is not above the last one, or the order is not a permutation of the roster (SAG-04).
    LengthMismatch, NonCanonical
        The update is not d integers modulo R (SAG-14).
    """
    return user_start(_next_round(state.round, number, order), state.user, update)


def server_again(state: ServerState, number: int, order: Sequence[int] | None = None) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (SES-01)."""
    return server_start(_next_round(state.round, number, order))


def _next_round(round: Round, number: int, order: Sequence[int] | None) -> Round:
    number = begun.later_round(round.number, number)
    return replace(round, number=number, graph=round.parameters.graph(order))


# ------------------------------------------------------------------------------------------- masks, part by part


def mask_keys(
    round: Round, user: int, keys: Mapping[int, bytes], secrets: Mapping[int, bytes]
) -> dict[tuple[int, int], bytes]:
    """Return the keys of the pairwise masks of a user, by segment and peer (MSK-01).

    `keys` are the public masking keys of the user and of its peers, and `secrets` the secret agreed with each peer.

    Raises
    ------
    ParameterError
        The key of the user or of a peer is missing.
    """
    parts, context = round.parts_of(user), round.context()
    absent = {user, *secrets} - set(keys)
    if absent:
        raise errors.ParameterError("keys", f"{len(keys)} entries", "with those of the user and of all its peers")
    for peer, secret in secrets.items():
        prg.check_key(validate.entry("secrets", peer), secret)
    return {
        (part.segment, peer): masks.pairwise_key(context, secret, {user: keys[user], peer: keys[peer]}, part.segment)
        for part in parts
        for peer, secret in secrets.items()
        if peer in part.members
    }


def self_keys(round: Round, user: int, seed: bytes) -> dict[int, bytes]:
    """Return the keys of a user's self masks, by segment (MSK-02)."""
    context = round.context()
    return {part.segment: masks.self_key(context, seed, user, part.segment) for part in round.parts_of(user)}


def masked_update(state: UserState, received: Collection[int]) -> validate.UintArray:
    """Return the masked input of a user, d elements, over the neighbours whose shares arrived (SAG-12).

    Raises
    ------
    ParameterError
        The state has no keys of masks with one of `received`, who is no neighbour, or whose masks were forgotten.
    """
    here = set(validate.user_set("received", received, state.round.parameters.N))
    parts = state.round.parts_of(state.user)
    needed = {(part.segment, peer) for part in parts for peer in part.members & here}
    if not needed <= set(state.mask_keys) or not {part.segment for part in parts} <= set(state.self_keys):
        raise errors.ParameterError("received", sorted(here), "users with whom the user has keys of masks")
    return np.concatenate([_masked(state, part, received) for part in parts])


def masked_sums(
    parameters: Numbers, masked: Mapping[int, validate.UintArray], sums: Sequence[validate.UintArray] = ()
) -> tuple[validate.UintArray, ...]:
    """Return, for each part, the sum of its members' masked inputs; `masked` holds d elements by user.

    `sums` are those of other users, if any, and are in what is returned.
    """
    for user, vector in masked.items():
        name = validate.entry("masked", user)
        validate.array_shape(name, validate.array(name, vector, np.uint64), (parameters.d,))
    before = sums if len(sums) else tuple(part.ring.zeros(part.length) for part in parameters.parts)
    if len(before) != len(parameters.parts):
        raise errors.LengthMismatch("len(sums)", len(before), f"{len(parameters.parts)}, one for each part")
    return tuple(_masked_sum(part, masked, total) for part, total in zip(parameters.parts, before, strict=True))


def unmasked_sums(
    state: ServerState, seeds: Mapping[int, bytes], secrets: Mapping[tuple[int, int], bytes]
) -> tuple[validate.UintArray, ...]:
    """Return, for each part, the sum of the inputs of the survivors (SAG-29).

    This is for checked arguments: `seeds` are the self seeds of the survivors, and `secrets` the secret that each
    dropped user agreed with each survivor.
    """
    for name, keys in (("seeds", seeds), ("secrets", secrets)):
        for key, value in keys.items():
            prg.check_key(f"{name}[{key}]", value)
    parts = zip(state.round.parameters.parts, state.masked_sums, strict=True)
    return tuple(
        validate.read_only(unmask(part.ring, total, _self_masks(state, part, seeds), _left(state, part, secrets)))
        for part, total in parts
    )


# ------------------------------------------------------------------------------------------------------- steps


@steps.row("advertise_keys", steps.Role.USER, sends=(AdvertisedKeys,), randomness=("sealing_key", "masking_key"))
def user_advertise_keys(state: UserState, sealing: bytes, masking: bytes) -> tuple[UserState, steps.Outbox]:
    """Send two public keys (section 5, step 1).

    The sampled values are ``sealing_key`` and ``masking_key``, 32 bytes each, uniform and fresh.
    """
    prg.check_key("sealing_key", sealing)
    prg.check_key("masking_key", masking)
    private = KeyPair(sealing, masking)
    keys = AdvertisedKeys(*state.endpoint.header(steps.SERVER), public_key(sealing), public_key(masking))
    if keys.sealing == keys.masking:
        raise errors.ParameterError("masking_key", "the sealing key", "a key pair of its own")
    return replace(state, phase="share_keys", private=private), (keys,)


@steps.row(
    *("advertise_keys", steps.Role.SERVER),
    receives=(AdvertisedKeys,),
    sends=(NeighbourKeys,),
    senders=lambda server: range(server.round.parameters.N),
)
def server_advertise_keys(state: ServerState, inbox: Sequence[AdvertisedKeys]) -> tuple[ServerState, steps.Outbox]:
    """Send each user of U_1 the keys of its neighbours (SAG-05; step 2)."""
    sent = {message.sender: _key_pair(message) for message in inbox}
    _refuse_equal(sent, set())
    advertised = _core(state, sent, "advertised keys")
    keys = {user: sent[user] for user in advertised}
    outbox = tuple(_neighbour_keys(state, user, keys) for user in advertised)
    return replace(state, phase="share_keys", keys=keys), outbox


@steps.row(
    *("share_keys", steps.Role.USER),
    receives=(NeighbourKeys,),
    sends=(SecretShares, SeedCommitment),
    randomness=("self_seed", "key_coefficients", "seed_coefficients"),
    one=True,
)
def user_share_keys(
    state: UserState, message: NeighbourKeys, seed: bytes, for_key: Sequence[int], for_seed: Sequence[int]
) -> tuple[UserState, steps.Outbox]:
    """Share the masking key and a self seed among the holders, and commit to the seed (SAG-06 to SAG-10; step 3).

    The sampled values are ``self_seed``, 32 bytes, and ``key_coefficients`` and ``seed_coefficients``, t - 1 numbers
    below 2**521 - 1 each, uniform and fresh.
    """
    assert state.private is not None
    own = _public(state)
    peers = _peers(state, message, own)
    sealing = {peer: _secret(state.private.sealing, peer, keys.sealing) for peer, keys in peers.items()}
    masking = {peer: _secret(state.private.masking, peer, keys.masking) for peer, keys in peers.items()}
    held = _deal(state, sorted([*peers, state.user]), seed, for_key, for_seed)
    pairs = {user: pair.masking for user, pair in {**peers, state.user: own}.items()}
    after = replace(
        state,
        phase="masked_input",
        private=None,
        peers={**peers, state.user: own},
        sealing_secrets=sealing,
        mask_keys=mask_keys(state.round, state.user, pairs, masking),
        self_keys=self_keys(state.round, state.user, seed),
        held={state.user: held[state.user]},
    )
    committed = masks.commitment(state.round.context(), seed, state.user)
    shares = tuple(_sealed(after, peer, held[peer]) for peer in sorted(peers))
    return after, (*shares, SeedCommitment(*state.endpoint.header(steps.SERVER), committed))


@steps.row(
    "share_keys", steps.Role.SERVER, receives=(SecretShares, SeedCommitment), sends=(SecretShares,), senders=None
)
def server_share_keys(state: ServerState, inbox: steps.Inbox) -> tuple[ServerState, steps.Outbox]:
    """Relay the shares of U_2 to U_2, unopened (SAG-11; step 4)."""
    committed = tuple(message for message in steps.check_inbox(inbox) if isinstance(message, SeedCommitment))
    steps.accept(committed, (SeedCommitment,), state.endpoint, state.keys)
    others = tuple(message for message in inbox if not isinstance(message, SeedCommitment))
    shares = steps.parcels(others, SecretShares, state.endpoint, state.keys.keys())
    commitments = {message.sender: octets(message, "commitment", prg.KEY_BYTES) for message in committed}
    whole = {user for user, sent in shares.items() if _shared_with_all(state, user, sent)} & set(commitments)
    sharers = _core(state, whole, "shared their secrets")
    outbox = tuple(shares[user][peer] for user in sharers for peer in sorted(shares[user]) if peer in sharers)
    kept = {user: commitments[user] for user in sharers}
    return replace(state, phase="masked_input", commitments=kept, sharers=sharers), outbox


@steps.row(
    *("masked_input", steps.Role.USER),
    receives=(SecretShares,),
    sends=(MaskedInput,),
    senders=lambda user: set(user.peers) - {user.user},
)
def user_masked_input(state: UserState, inbox: Sequence[SecretShares]) -> tuple[UserState, steps.Outbox]:
    """Keep the shares of the others, send the masked input and forget the masks (SAG-12 to SAG-15; step 5)."""
    received = {message.sender: _opened(state, message) for message in inbox}
    parameters = state.round.parameters
    if len(received) + 1 < parameters.t:
        raise errors.TooFewSurvivors(
            f"shares of {len(received)} neighbours came and t - 1 = {parameters.t - 1} are needed"
        )
    masked = masked_update(state, received)
    after = replace(
        state, phase="unmasking", sealing_secrets={}, mask_keys={}, self_keys={}, held={**state.held, **received}
    )
    return after, (
        MaskedInput(*state.endpoint.header(steps.SERVER), tuple(sorted(received)), validate.read_only(masked)),
    )


def _added(state: ServerState, inbox: Sequence[MaskedInput]) -> ServerState:
    """Return the state with the sum of more masked inputs (SAG-16)."""
    _same_neighbours(state, inbox)
    masked = {message.sender: _vector(state, message) for message in inbox}
    sums = masked_sums(state.round.parameters, masked, state.masked_sums)
    return replace(state, survivors=tuple(sorted({*state.survivors, *masked})), masked_sums=sums)


@steps.row(
    "masked_input",
    steps.Role.SERVER,
    receives=(MaskedInput,),
    sends=(UnmaskRequest,),
    senders=lambda server: set(server.sharers) - set(server.survivors),
    part=_added,
)
def server_masked_input(state: ServerState, inbox: Sequence[MaskedInput]) -> tuple[ServerState, steps.Outbox]:
    """Add the masked inputs, and ask for the shares that unmask the sum (SAG-16 to SAG-18; step 6)."""
    after = replace(_added(state, inbox), phase="unmasking")
    _enough(state, after.survivors, "sent a masked input")
    _recoverable(state, after.survivors, "survive")
    requests = (UnmaskRequest(*state.endpoint.header(u), after.survivors, after.dropped) for u in after.survivors)
    return after, tuple(requests)


@steps.row("unmasking", steps.Role.USER, receives=(UnmaskRequest,), sends=(UnmaskShares,), one=True)
def user_unmasking(state: UserState, request: UnmaskRequest) -> tuple[UserState, steps.Outbox]:
    """Release one share of each user, once, and forget them (SAG-19 to SAG-25; step 7)."""
    survivors, dropped = check_request(state, request)
    survivors, dropped = (tuple(sorted(set(users) & set(state.held))) for users in (survivors, dropped))
    seeds = b"".join(shamir.element_bytes(state.held[user].seed) for user in survivors)
    keys = b"".join(shamir.element_bytes(state.held[user].key) for user in dropped)
    outbox = (UnmaskShares(*state.endpoint.header(steps.SERVER), survivors, seeds, dropped, keys),)
    return replace(state, phase="done", held={}), outbox


@steps.row("unmasking", steps.Role.SERVER, receives=(UnmaskShares,), senders=lambda server: server.survivors)
def server_unmasking(state: ServerState, inbox: Sequence[UnmaskShares]) -> tuple[ServerState, steps.Outbox]:
    """Recover the secrets and remove the masks (SAG-26 to SAG-30; step 8). The result is `sums`."""
    answers = [_answer(state, message) for message in inbox]
    _recoverable(state, [message.sender for message in inbox], "answer")
    seeds = {user: _self_seed(state, user, answers) for user in state.survivors}
    keys = {user: _masking_key(state, user, answers) for user in state.dropped}
    return replace(state, phase="done", sums=unmasked_sums(state, seeds, _pairwise_secrets(state, keys))), ()


TABLE: steps.Table = (
    *(user_advertise_keys, server_advertise_keys, user_share_keys, server_share_keys),
    *(user_masked_input, server_masked_input, user_unmasking, server_unmasking),
)


# ------------------------------------------------------------------------------------------------- whole round


def draw_randomness(parameters: Numbers, sources: Mapping[int, entropy.Source]) -> dict[int, steps.Randomness]:
    """Draw the sampled values of each user from its source (spec/secagg.md, section 8)."""
    for user, source in sources.items():
        entropy.check_source(source, validate.entry("sources", user))
    return {
        user: {
            "sealing_key": entropy.taken(source, prg.KEY_BYTES),
            "masking_key": entropy.taken(source, prg.KEY_BYTES),
            "self_seed": entropy.taken(source, prg.KEY_BYTES),
            "key_coefficients": entropy.draw_coefficients(source, parameters.t - 1),
            "seed_coefficients": entropy.draw_coefficients(source, parameters.t - 1),
        }
        for user, source in sources.items()
    }


def run_round(
    parameters: Parameters,
    updates: validate.UintArray,
    *,
    randomness: Mapping[int, steps.Randomness],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    order: Sequence[int] | None = None,
    session: bytes,
    round: int,
) -> steps.RoundResult:
    """Run a whole round among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    updates : array (N, d)
        The update of each user, integers modulo R.
    randomness : mapping from user to sampled values
        The sampled values of each user that takes part in ``advertise_keys``; see `draw_randomness`.
    dropouts : mapping from phase to users
        The users that drop out just before their step in a phase.
    order : sequence of int
        The order of the users on the circle of the graph; the order of the roster when left out.
    session, round
        The session id (16 bytes) and the round number.

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on (SAG-30).
    ParameterError
        The inputs do not fit the parameters.
    """
    network = open_round(parameters, updates, order=order, session=session, round=round)
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER]
    return steps.RoundResult(server.aggregate, server.survivors, tuple(network.transcript))


def open_round(
    parameters: Parameters,
    updates: validate.UintArray,
    *,
    order: Sequence[int] | None = None,
    session: bytes,
    round: int,
) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = parameters.ring.check("updates", updates, (parameters.N, parameters.d))
    number = validate.integer("round", round, 0, begun.LAST_ROUND)
    agreed = Round(parameters, parameters.graph(order), session, number)
    states: dict[int, object] = {steps.SERVER: server_start(agreed)}
    for user in range(parameters.N):
        states[user] = user_start(agreed, user, updates[user])
    return steps.Network(TABLE, states)


# ------------------------------------------------------------------------------------------ what a user checks


def _peers(state: UserState, message: NeighbourKeys, own: KeyPair) -> dict[int, KeyPair]:
    """Return the keys of the neighbours in U_1; refuse a key that equals one of the user's own (SAG-06 to SAG-08)."""
    neighbours, parameters = state.round.graph.neighbours(state.user), state.round.parameters
    users = validate.user_numbers("users", message.users)
    if len(set(users)) != len(users) or not set(users) <= neighbours:
        raise errors.InconsistentSets(
            f"keys of {list(users)}: must be distinct neighbours of user {state.user}", (steps.SERVER,)
        )
    _refuse_disorder(message, "users", users)
    for name in ("sealing", "masking"):
        octets(message, name, prg.KEY_BYTES * len(users))
    peers = {
        user: KeyPair(
            *(keys[at * prg.KEY_BYTES : (at + 1) * prg.KEY_BYTES] for keys in (message.sealing, message.masking))
        )
        for at, user in enumerate(users)
    }
    _refuse_equal({**peers, state.user: own}, {steps.SERVER}, state.user)
    if len(users) + 1 < parameters.t:
        raise errors.TooFewSurvivors(
            f"{len(users)} neighbours advertised keys and t - 1 = {parameters.t - 1} are needed"
        )
    return peers


def _refuse_disorder(message: codec.Message, name: str, users: Sequence[int]) -> None:
    """Refuse users that are not in ascending order (SAG-32)."""
    steps.check_ascending(f"{type(message).__name__} from {message.sender}: {name}", users, (message.sender,))


def _refuse_equal(keys: Mapping[int, KeyPair], also: Collection[int], own: int | None = None) -> None:
    """Refuse two equal keys, regardless of owner and purpose; blame their owners except `own` (SAG-07, SAG-35)."""
    owner: dict[bytes, int] = {}
    for user, pair in keys.items():
        for key in (pair.sealing, pair.masking):
            if key in owner:
                blamed = ({user, owner[key]} | set(also)) - {own}
                raise errors.InconsistentSets(f"users {owner[key]} and {user} advertise one key", blamed)
            owner[key] = user


def _secret(private: bytes, peer: int, public: bytes) -> bytes:
    try:
        return agree(private, public)
    except errors.WeakKey as error:
        raise errors.WeakKey(f"user {peer}: {error}", (peer, steps.SERVER)) from None


def check_request(state: UserState, message: UnmaskRequest) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the survivors and the dropped users of a request that the user may answer.

    Raises
    ------
    InconsistentSets
        A user is named twice or is outside the roster (SAG-19), is in both sets (SAG-20); the user itself is not a
        survivor (SAG-21); or the sets do not name exactly the neighbours whose shares it holds (SAG-23).
    Malformed
        Users are not in ascending order (SAG-32).
    TooFewSurvivors
        Fewer than max(t, T + 2) survivors, or fewer than t among the holders (SAG-22).
    """
    codec.check_header(message)
    parameters, holders = state.round.parameters, state.round.graph.holders(state.user)
    survivors, dropped = set[int](), set[int]()
    for name, distinct in (("survivors", survivors), ("dropped", dropped)):
        users = validate.user_numbers(name, getattr(message, name))
        distinct.update(users)
        if len(distinct) != len(users):
            raise errors.InconsistentSets(f"{name} = {list(users)} names a user twice", (steps.SERVER,))
        if not all(0 <= user < parameters.N for user in users):
            raise errors.InconsistentSets(f"{name} = {list(users)}: users are in [0, {parameters.N})", (steps.SERVER,))
    for name in ("survivors", "dropped"):
        _refuse_disorder(message, name, getattr(message, name))
    if survivors & dropped:
        raise errors.InconsistentSets(
            f"{sorted(survivors & dropped)} are named as survivors and as dropped", (steps.SERVER,)
        )
    if state.user not in survivors:
        raise errors.InconsistentSets(f"user {state.user} is asked, and is not named as a survivor", (steps.SERVER,))
    if len(survivors) < parameters.enough:
        raise errors.TooFewSurvivors(
            f"{len(survivors)} users survive and max(t, T + 2) = {parameters.enough} are needed"
        )
    if len(survivors & holders) < parameters.t:
        raise errors.TooFewSurvivors(f"{len(survivors & holders)} holders survive and t = {parameters.t} are needed")
    if (survivors | dropped) & holders != set(state.held):
        named = sorted((survivors | dropped) & holders)
        raise errors.InconsistentSets(
            f"{named} are named, and shares of {sorted(state.held)} are held", (steps.SERVER,)
        )
    return message.survivors, message.dropped


# ---------------------------------------------------------------------------------------- sharing and sealing


def _deal(
    state: UserState, holders: Sequence[int], seed: bytes, for_key: Sequence[int], for_seed: Sequence[int]
) -> dict[int, Shares]:
    """Return the shares of the masking key and of the self seed, by holder (SAG-10)."""
    assert state.private is not None
    prg.check_key("self_seed", seed)
    wanted = state.round.parameters.t - 1
    for name, coefficients in (("key_coefficients", for_key), ("seed_coefficients", for_seed)):
        if len(shamir.elements(name, coefficients)) != wanted:
            raise errors.LengthMismatch(f"len({name})", len(coefficients), f"t - 1 = {wanted}")
    keys = shamir.share(state.private.masking, for_key, holders)
    seeds = shamir.share(seed, for_seed, holders)
    return {user: Shares(key, share) for user, key, share in zip(holders, keys, seeds, strict=True)}


def _public(state: UserState) -> KeyPair:
    assert state.private is not None
    return KeyPair(public_key(state.private.sealing), public_key(state.private.masking))


def _masked(state: UserState, part: Part, received: Collection[int]) -> validate.UintArray:
    """Return one part of the masked input, over the members whose shares arrived (SAG-12)."""
    ring, length = part.ring, part.length
    peers = sorted(part.members & set(received))
    pairwise = ((peer, prg.stream(state.mask_keys[part.segment, peer], ring, length)) for peer in peers)
    own = prg.stream(state.self_keys[part.segment], ring, length)
    return mask_update(ring, state.user, part.of(state.update), own, pairwise)


def _lane(state: UserState, sender: int, receiver: int) -> Lane:
    keys = (state.peers[sender].sealing, state.peers[receiver].sealing)
    return Lane(state.sealing_context, sender, receiver, *keys)


def _sealed(state: UserState, peer: int, shares: Shares) -> SecretShares:
    plaintext = shamir.element_bytes(shares.key) + shamir.element_bytes(shares.seed)
    payload = _lane(state, state.user, peer).seal(state.sealing_secrets[peer], plaintext)
    return SecretShares(*state.endpoint.header(peer), payload)


def _opened(state: UserState, message: SecretShares) -> Shares:
    secret = state.sealing_secrets[message.sender]
    plaintext = _lane(state, message.sender, state.user).open(secret, message.payload)
    return Shares(*_elements(message, "payload", plaintext, 2))


# ---------------------------------------------------------------------------------------- what the server does


def _key_pair(message: AdvertisedKeys) -> KeyPair:
    """Return the keys of a message; refuse a key of low order (SAG-34)."""
    pair = KeyPair(*(octets(message, name, prg.KEY_BYTES) for name in ("sealing", "masking")))
    for name, key in (("sealing", pair.sealing), ("masking", pair.masking)):
        try:
            refuse_weak(key)
        except errors.WeakKey:
            raise errors.WeakKey(
                f"the {name} key of user {message.sender} is of low order", (message.sender,)
            ) from None
    return pair


def _neighbour_keys(state: ServerState, user: int, keys: Mapping[int, KeyPair]) -> NeighbourKeys:
    users = tuple(sorted(state.round.graph.neighbours(user) & set(keys)))
    sealing, masking = (b"".join(getattr(keys[u], name) for u in users) for name in ("sealing", "masking"))
    return NeighbourKeys(*state.endpoint.header(user), users, sealing, masking)


def _core(state: ServerState, users: Collection[int], what: str) -> tuple[int, ...]:
    """Return the largest set of users in which each has t holders; refuse the set if it is too small (SAG-18)."""
    t = state.round.parameters.t
    _enough(state, users, what)
    core = state.round.graph.core(users, t)
    _enough(state, core, f"of the {len(users)} that {what} have t = {t} holders among these")
    return core


def _enough(state: ServerState, users: Collection[int], what: str) -> None:
    enough = state.round.parameters.enough
    if len(users) < enough:
        raise errors.TooFewSurvivors(f"{len(users)} users {what} and max(t, T + 2) = {enough} are needed")


def _recoverable(state: ServerState, present: Collection[int], what: str) -> None:
    """Refuse if fewer than t holders of a needed secret are present (SAG-18, SAG-27)."""
    here, t = set(present), state.round.parameters.t
    for user in state.sharers:
        holders = len(state.round.graph.holders(user) & here)
        if holders < t:
            raise errors.TooFewSurvivors(
                f"{holders} holders of the secrets of user {user} {what} and t = {t} are needed"
            )


def _shared_with_all(state: ServerState, user: int, sent: Mapping[int, SecretShares]) -> bool:
    """Return whether a user sent shares to each neighbour in U_1; blame it for shares to any other user."""
    neighbours = state.round.graph.neighbours(user)
    if not set(sent) <= neighbours:
        others = sorted(set(sent) - neighbours)
        raise errors.Malformed(f"SecretShares from {user} to {others}, who are not its neighbours", (user,))
    return set(sent) == neighbours & set(state.keys)


def _same_neighbours(state: ServerState, inbox: Sequence[MaskedInput]) -> None:
    """Refuse a masked input if its neighbours are not those that shared their secrets (SAG-37)."""
    for message in inbox:
        wanted = tuple(sorted(state.round.graph.neighbours(message.sender) & set(state.sharers)))
        if validate.user_numbers("neighbours", message.neighbours) != wanted:
            what = (
                f"the input of user {message.sender} is masked with {list(message.neighbours)}, must be {list(wanted)}"
            )
            raise errors.InconsistentSets(what, (message.sender,))


@dataclass(frozen=True)
class _Answer:
    """The shares that one holder sends, by owner."""

    holder: int
    seeds: Mapping[int, int]
    keys: Mapping[int, int]


def _answer(state: ServerState, message: UnmaskShares) -> _Answer:
    """Return the shares of an answer if they are exactly the requested ones (SAG-26)."""
    holders = state.round.graph.holders(message.sender)
    for name, asked in (("survivors", state.survivors), ("dropped", state.dropped)):
        wanted = tuple(user for user in asked if user in holders)
        if validate.user_numbers(name, getattr(message, name)) != wanted:
            raise errors.Malformed(
                f"UnmaskShares from {message.sender}: {name} must be {list(wanted)}", (message.sender,)
            )
    seeds = _elements(message, "seed_shares", message.seed_shares, len(message.survivors))
    keys = _elements(message, "key_shares", message.key_shares, len(message.dropped))
    assert len(seeds) + len(keys) == len(message.survivors) + len(message.dropped)
    return _Answer(
        message.sender,
        shamir.SharesByOwner(message.survivors, message.seed_shares),
        shamir.SharesByOwner(message.dropped, message.key_shares),
    )


def _self_seed(state: ServerState, user: int, answers: Sequence[_Answer]) -> bytes:
    """Return a survivor's self seed, checked against its commitment (SAG-28)."""
    holders = state.round.graph.holders(user)
    shares = {one.holder: one.seeds[user] for one in answers if one.holder in holders and user in one.seeds}
    seed = _recover(state, user, shares)
    if masks.commitment(state.round.context(), seed, user) != state.commitments[user]:
        raise errors.BadShare(f"the self seed of user {user} is not the one that it committed to", {user, *shares})
    return seed


def _masking_key(state: ServerState, user: int, answers: Sequence[_Answer]) -> bytes:
    """Return a dropped user's private masking key, checked against its public key (SAG-28)."""
    holders = state.round.graph.holders(user)
    shares = {one.holder: one.keys[user] for one in answers if one.holder in holders and user in one.keys}
    key = _recover(state, user, shares)
    if public_key(key) != state.keys[user].masking:
        raise errors.BadShare(f"the masking key of user {user} is not the one that it advertised", {user, *shares})
    return key


def _recover(state: ServerState, user: int, shares: Mapping[int, int]) -> bytes:
    try:
        return shamir.reconstruct(state.round.parameters.t, list(shares), list(shares.values()))
    except errors.BadShare as error:
        raise errors.BadShare(f"a secret of user {user}: {error}", {user, *shares}) from None


def _masked_sum(part: Part, masked: Mapping[int, validate.UintArray], total: validate.UintArray) -> validate.UintArray:
    """Return a sum of a part with the members' masked inputs."""
    users = sorted(part.members & set(masked))
    vectors, called = ((True, part.of(masked[user])) for user in users), (f"masked[{user}]" for user in users)
    return validate.read_only(part.ring.signed_sum(total, vectors, name="sums", names=(called,)))


def _self_masks(state: ServerState, part: Part, seeds: Mapping[int, bytes]) -> Iterable[modular.Summand]:
    context = state.round.context()
    for user in sorted(part.members & set(seeds)):
        yield prg.stream(masks.self_key(context, seeds[user], user, part.segment), part.ring, part.length)


def _pairwise_secrets(state: ServerState, keys: Mapping[int, bytes]) -> dict[tuple[int, int], bytes]:
    """Return the secret that each dropped user agreed with each surviving neighbour of a common part."""
    found: dict[tuple[int, int], bytes] = {}
    for user, private in keys.items():
        together = set[int]().union(*(part.members for part in state.round.parts_of(user)))
        for peer in sorted(together & state.round.graph.neighbours(user) & set(state.survivors)):
            found[user, peer] = agree(private, state.keys[peer].masking)
    return found


def _left(
    state: ServerState, part: Part, secrets: Mapping[tuple[int, int], bytes]
) -> Iterable[tuple[int, int, modular.Summand]]:
    """Yield the masks of a part that dropped users share with survivors."""
    context = state.round.context()
    for (user, peer), secret in secrets.items():
        if user in part.members and peer in part.members:
            pair = {other: state.keys[other].masking for other in (user, peer)}
            key = masks.pairwise_key(context, secret, pair, part.segment)
            yield user, peer, prg.stream(key, part.ring, part.length)


# ----------------------------------------------------------------------------------------------------- helpers


def envelope(message: codec.Message) -> tuple[bytes, int, int, int]:
    """Return session, round, sender and receiver of a message: the arguments of a message with the same header."""
    return message.session, message.round, message.sender, message.receiver


def octets(message: codec.Message, name: str, size: int) -> bytes:
    """Return a field of a message; it must have `size` bytes.

    Raises
    ------
    Malformed
        It has another length; the sender is blamed.
    ParameterError
        `size` is not an integer, or is negative, or the header cannot be encoded.
    """
    codec.check_header(message)
    data, size = getattr(message, name), validate.integer("size", size, 0)
    if not isinstance(data, bytes) or len(data) != size:
        got = f"{len(data)} bytes" if isinstance(data, bytes) else type(data).__name__
        what = f"{type(message).__name__} from {message.sender}: {name} is {got}, must be {size} bytes"
        raise errors.Malformed(what, (message.sender,))
    return data


def _elements(message: codec.Message, name: str, data: bytes, count: int) -> tuple[int, ...]:
    """Return field elements of `ELEMENT_BYTES` each; if they are wrong, blame the sender."""
    size = shamir.ELEMENT_BYTES
    what = f"{type(message).__name__} from {message.sender}"
    if not isinstance(data, bytes) or len(data) != size * count:
        got = f"{len(data)} bytes" if isinstance(data, bytes) else type(data).__name__
        raise errors.Malformed(f"{what}: {name} is {got}, must be {size * count} bytes", (message.sender,))
    try:
        return tuple(shamir.element_from_bytes(name, data[at : at + size]) for at in range(0, len(data), size))
    except errors.ParameterError as error:
        raise errors.Malformed(f"{what}: {error}", (message.sender,)) from error


def _vector(state: ServerState, message: MaskedInput) -> validate.UintArray:
    """Return the masked input of a message if it has d elements, each below the modulus of its part (SAG-33)."""
    try:
        masked = validate.elements("masked", message.masked, modular.MAX_MODULUS, (state.round.parameters.d,))
        for part in state.round.parts_of(message.sender):
            part.ring.check("masked", part.of(masked), None)
    except errors.ParameterError as error:
        raise errors.Malformed(f"MaskedInput from {message.sender}: {error}", (message.sender,)) from error
    return masked


guard(__name__)
