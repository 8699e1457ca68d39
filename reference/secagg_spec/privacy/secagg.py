"""Decide what the server and a coalition of users learn in a round of SecAgg or SecAgg+.

The verdicts come from the cores that run in a round: `mask_update` is probed, and `unmask` is run on the coefficients
of its inputs. Masks are PRG streams of seeds. Streams with equal derivations are one symbol, so the analysis detects a
stream that is used twice. A coalition knows a seed when

- a member of the coalition drew it, or drew one of the two masking keys that it follows from; or
- at least t of its shares are in view: shares sent to the coalition, and shares in answers to the server.

**One element at a time.** Both cores work element by element, and every symbol belongs to one element. So what is
learned of a vector is what is learned of each element. A test compares with rounds of several elements.

**From the least to the most.** An additional message never makes a coalition learn less. For a coalition, U_2 and U_3,
the least that it can see is the masked inputs of U_3, without any answer. The most is the masked inputs of all of U_2,
delayed ones included, with the answers of all of U_3. Every other case lies between.

**The allowed sums** are the sums over the connected components of the graph between the honest survivors. On the
complete graph this is the sum over all honest survivors; on a sparse graph there can be more components (section 9 of
the page).

==============  ===================================================
papers          here
==============  ===================================================
x_i             the secret ``x`` of user i
y_i             `Element.masked` of user i
b_i, s_{i,j}    the tokens `Tokens.self_seed`, `Tokens.agreed`
U_2, U_3, U_5   `sharers`, `survivors`, the keys of `Situation.answers`
==============  ===================================================

Source: spec/secagg.md, sections 5 and 9; HeteroSAg, eq. (4) and (5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import LengthMismatch, ParameterError, ProtocolError, UnknownUser
from secagg_spec.privacy.probe import AffineMap, probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Derivation, Forms, Rule, Rules, Space, Token, View, join, space_over, user_token
from secagg_spec.protocols.secagg import round as protocol
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import Parameters, UnmaskRequest, UnmaskShares, UserState
from secagg_spec.protocols.steps import SERVER, run_synchronous

Users = tuple[int, ...]
_MOST = 2**24
"""The most elements of the inputs of all users."""


# ------------------------------------------------------------------------------------------------------- seeds


@dataclass(frozen=True)
class Streams:
    """The public values from which the masks of one vector are derived: the fields of conventions, section 12.

    `drawing` numbers the secrets that users draw: rounds with the same `drawing` have the same keys and seeds. Raises
    `ParameterError` if the session is no bytes, the protocol no text, or one of the others no integer from 0 on.
    """

    session: bytes = bytes(16)
    protocol: str = protocol.PROTOCOL
    round: int = 0
    segment: int = 0
    drawing: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        validate.octets("session", self.session)
        validate.instance("protocol", self.protocol, str)
        for name, value in (("round", self.round), ("segment", self.segment), ("drawing", self.drawing)):
            validate.integer(name, value, 0)

    def derivation(self, seed: Token, purpose: str) -> Derivation:
        """Return the derivation that identifies the stream of a seed for a purpose."""
        return Derivation(seed, self.session, self.protocol, self.round, purpose, self.segment)


@dataclass(frozen=True)
class Tokens:
    """The keys, seeds and shares of the users of a graph, drawn once, and the rules between them."""

    graph: Graph
    t: int
    drawing: int = 0

    def masking_key(self, user: int) -> Token:
        """Return the token of a user's private masking key, for checked arguments."""
        return ("masking key", self.drawing, user)

    def self_seed(self, user: int) -> Token:
        """Return the token of a user's self seed, for checked arguments."""
        return ("self seed", self.drawing, user)

    def agreed(self, user: int, peer: int) -> Token:
        """Return the token of the secret that two users agree on by their masking keys, for checked arguments."""
        return ("agreed", self.drawing, min(user, peer), max(user, peer))

    def share(self, secret: Token, holder: int) -> Token:
        """Return the token of the share of a secret that a holder has, for checked arguments."""
        return ("share", secret, holder)

    def held(self, holder: int, sharers: Collection[int]) -> Iterator[Token]:
        """Yield the shares that a holder has of the secrets of `sharers`, for checked arguments."""
        for owner in self.graph.holders(holder) & set(sharers):
            yield from (self.share(secret, holder) for secret in (self.masking_key(owner), self.self_seed(owner)))

    def rules(self) -> Rules:
        """Return the rules: for secrets that users draw, for t shares of a secret (SAG-10), and for key agreement."""
        found = []
        for user in self.graph.order:
            for secret in (self.masking_key(user), self.self_seed(user)):
                shares = tuple(self.share(secret, holder) for holder in sorted(self.graph.holders(user)))
                found += [Rule(secret, (user_token(user),)), Rule(secret, shares, self.t)]
            for peer in self.graph.neighbours(user):
                found += [Rule(self.agreed(user, peer), (self.masking_key(user),))]
        return Rules(found)


# -------------------------------------------------------------------------------------------------- situations


class Answer(NamedTuple):
    """The shares in one answer: the users whose self seeds, and the users whose masking keys, are shared."""

    seeds: Users
    keys: Users


@dataclass(frozen=True)
class Situation(validate.Plain):
    """What the server got in a round.

    `sharers` is U_2, and `survivors` is the set whose sum is allowed. `uploaded` are the users whose masked inputs
    arrived, and ``answers[j]`` is the answer of user j.

    Raises
    ------
    ParameterError
        What is given are no sequences of integers, or no answers; or a survivor, or a user that uploaded, is not in
        `sharers`.
    """

    sharers: Users
    survivors: Users
    uploaded: Users
    answers: Mapping[int, Answer]

    def __post_init__(self) -> None:
        """Check the users, of which the number is not known here."""
        super().__post_init__()
        sharers = set(validate.user_numbers("sharers", self.sharers))
        for name, users in (("survivors", self.survivors), ("uploaded", self.uploaded)):
            for user in validate.user_numbers(name, users):
                if user not in sharers:
                    raise UnknownUser(name, user, f"a user of U_2, which is {self.sharers}")
        validate.user_numbers("answers", [*validate.mapping("answers", self.answers)])
        for answer in self.answers.values():
            validate.instance("answers", answer, Answer)

    @property
    def delayed(self) -> frozenset[int]:
        """The users whose masked input arrived although they count as dropped."""
        return frozenset(self.uploaded) - set(self.survivors)


def least(sharers: Users, survivors: Users) -> Situation:
    """Return the situation in which only the survivors' masked inputs arrived, and no answers."""
    return Situation(sharers, survivors, survivors, MappingProxyType({}))


def most(graph: Graph, sharers: Users, survivors: Users) -> Situation:
    """Return the situation in which every masked input arrived, some too late, and every survivor answered.

    Raises `UnknownUser` for users that are none of the graph, and for survivors that are none of `sharers`.
    """
    sharers, survivors = (
        validate.users(name, users, len(graph.order))
        for name, users in (("sharers", sharers), ("survivors", survivors))
    )
    dropped = set(sharers) - set(survivors)
    return Situation(sharers, survivors, sharers, {j: honest_answer(graph, j, survivors, dropped) for j in survivors})


def honest_answer(graph: Graph, user: int, survivors: Collection[int], dropped: Collection[int]) -> Answer:
    """Return the shares that a user sends when it receives these sets (SAG-24), for checked sets.

    Raises `UnknownUser` for a user that is none of the graph.
    """
    holders = _holders(graph, user)
    return Answer(*(tuple(sorted(holders.intersection(users))) for users in (survivors, dropped)))


@lru_cache(maxsize=2**12)
def _holders(graph: Graph, user: int) -> frozenset[int]:
    return graph.holders(user)


def components(graph: Graph, users: Collection[int]) -> tuple[Users, ...]:
    """Return the connected components of the subgraph of some users, ordered by smallest member.

    Raises `UnknownUser` for users that are none of the graph.
    """
    left, found = set(validate.user_set("users", users, len(graph.order))), []
    while left:
        reached, border = set[int](), {min(left)}
        while border:
            reached |= border
            border = {peer for user in border for peer in graph.neighbours(user)} & left - reached
        left -= reached
        found.append(tuple(sorted(reached)))
    return tuple(found)


# ------------------------------------------------------------------------------------------------------- views


class Element:
    """One or several elements of the vectors of a round, as linear forms.

    Parameters
    ----------
    ring : Ring
        The integers modulo R.
    graph : Graph
    t : int
        Shares needed to recover a secret. No relation between t and the graph is demanded here.
    sharers : tuple of int
        U_2, ascending; all users advertised keys.
    indices : sequence of int
        The indices of the elements.
    streams : Streams
        The values from which the masks are derived.
    space : Space
        The space of the symbols; a new one when left out. Rounds that may share masks must share one space.
    name : str
        The name of the inputs; rounds with different inputs need different names.
    members : collection of int
        The users that mask this element together; all users when left out.
    arrived : mapping from user to set of users
        The users whose shares arrived at a user, which therefore shares a mask with each of them. A user that is left
        out got the shares of all its neighbours.

    Raises
    ------
    ParameterError
        The users are none of the graph, t is below 1, or an index is below 0 or there is none; the name is no text, or
        the space is over another ring.
    """

    def __init__(
        self,
        ring: Ring,
        graph: Graph,
        t: int,
        sharers: Users,
        *,
        indices: Sequence[int] = (0,),
        streams: Streams | None = None,
        space: Space | None = None,
        name: str = "x",
        members: Collection[int] | None = None,
        arrived: Mapping[int, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self.ring, self.graph, self.sharers = ring, graph, validate.users("sharers", sharers, len(graph.order))
        indices = tuple(validate.integer("indices", at, 0) for at in validate.sequence("indices", indices, "integers"))
        if not indices:
            raise LengthMismatch("len(indices)", 0, "1 or more")
        self.size, t = len(indices), validate.integer("t", t, 1)
        given = validate.mapping("arrived", arrived)
        self._users("arrived", [*given])
        self.arrived = {user: self._users("arrived", senders) for user, senders in given.items()}
        chosen = self.sharers if members is None else self._users("members", members)
        self.members = tuple(i for i in self.sharers if i in chosen)
        self.streams = Streams() if streams is None else streams
        self.space = space_over(ring, space)
        self.tokens = Tokens(graph, t, self.streams.drawing)
        self.rules = self.tokens.rules()
        self.inputs = {i: self.space.secret(name, i, indices) for i in self.members}
        self.masked = {i: self._masked(i) for i in self.members}

    def _users(self, name: str, users: Collection[int]) -> Users:
        """Return some users of the graph, ascending."""
        return validate.user_set(name, users, len(self.graph.order))

    def _masking_users(self, name: str, users: Collection[int]) -> Users:
        """Return some users that mask this element, ascending."""
        found = self._users(name, users)
        for user in found:
            if user not in self.masked:
                raise UnknownUser(name, user, "a user that masks this element")
        return found

    def self_mask(self, user: int) -> Forms:
        """Return PRG(b_i), for checked arguments."""
        return self._stream(self.tokens.self_seed(user), "self-mask")

    def pairwise_mask(self, user: int, peer: int) -> Forms:
        """Return PRG(s_ij), the same for both users, for checked arguments."""
        return self._stream(self.tokens.agreed(user, peer), "pairwise-mask")

    def _stream(self, seed: Token, purpose: str) -> Forms:
        return self.space.derived(self.streams.derivation(seed, purpose), self.size)

    def _peers(self, user: int) -> Users:
        return tuple(
            sorted(self.graph.neighbours(user) & set(self.members) & set(self.arrived.get(user, self.members)))
        )

    def _masked(self, user: int) -> Forms:
        peers = self._peers(user)
        masks = [self.pairwise_mask(user, peer) for peer in peers]
        core = _masking(protocol.mask_update, self.ring, user, peers, self.size)
        return self.space.apply(core, self.inputs[user], self.self_mask(user), *masks)

    def recovered(self, survivors: Users) -> Forms:
        """Return the output of `unmask` on the survivors' masked inputs and the masks that the answers reveal.

        `unmask` runs on the coefficients themselves, each as one element of a vector. Raises `UnknownUser` for a
        survivor that does not mask this element; so do `masked_sum` and `total` for their users.
        """
        survivors = self._masking_users("survivors", survivors)
        if not survivors:
            raise LengthMismatch("len(survivors)", 0, "1 or more")
        pairs = [(i, j) for i in self.members if i not in survivors for j in self._peers(i) if j in survivors]
        own = [self.self_mask(i) for i in survivors]
        left = [self.pairwise_mask(i, j) for i, j in pairs]
        joined = join([self.masked_sum(survivors), *own, *left])
        width = joined.symbols.size * self.size
        total, *rows = joined.matrix.reshape(-1, width)
        named = zip(pairs, rows[len(own) :], strict=True)
        found = protocol.unmask(self.ring, total, rows[: len(own)], ((i, j, row) for (i, j), row in named))
        return Forms(joined.symbols, found.reshape(self.size, -1))

    def masked_sum(self, users: Collection[int]) -> Forms:
        """Return the sum of the masked inputs of some users."""
        return self._added([self.masked[i] for i in self._masking_users("users", users)])

    def total(self, users: Collection[int]) -> Forms:
        """Return the sum of the inputs of some users, at least one."""
        return self._added([self.inputs[i] for i in self._masking_users("users", users)])

    def _added(self, parts: Sequence[Forms]) -> Forms:
        joined = join(parts)
        adding = np.tile(np.eye(self.size, dtype=np.uint64), (1, len(parts)))
        return Forms(joined.symbols, self.ring.matmul(adding, joined.matrix))

    def view(self, coalition: Collection[int], *situations: Situation) -> View:
        """Return what the server and a coalition see in one or several situations together.

        Raises `UnknownUser` for a coalition with users that are none of the graph, and what `show` raises.
        """
        view = View(self.space, self._users("coalition", coalition), self.rules)
        for situation in situations:
            self.show(view, situation)
        return view

    def show(self, view: View, situation: Situation) -> None:
        """Add what a situation shows to a view, which may already contain other elements of the same space.

        Raises `ParameterError` if U_2 is another one than that of the element, and `UnknownUser` for an answer of a
        user that is none of the graph.
        """
        view.takes("view", self.space)
        tokens, situation = self.tokens, validate.instance("situation", situation, Situation)
        if set(situation.sharers) != set(self.sharers):
            raise ParameterError("sharers", situation.sharers, f"U_2 of the element, {self.sharers}")
        self._users("answers", [*situation.answers])
        view.see(*(self.masked[i] for i in situation.uploaded if i in self.masked))
        for member in view.coalition:
            view.reveal_all(_held(tokens, member, self.sharers))
        for holder, answer in situation.answers.items():
            view.reveal_all(_answered(tokens, holder, answer))

    def allowed(self, coalition: Collection[int], survivors: Users) -> tuple[Forms, ...]:
        """Return the sums that the coalition is allowed to know in addition to its own inputs.

        Raises `UnknownUser` for colluders that are none of the graph, and for survivors that are none of `sharers`.
        """
        colluding, left = self._users("coalition", coalition), self._users("survivors", survivors)
        _check_survivors(left, self.sharers)
        honest = set(left) & set(self.members) - set(colluding)
        return tuple(self.total(users) for users in components(self.graph, honest))

    def decide(self, coalition: Collection[int], situation: Situation) -> Verdict:
        """Return what a coalition learns beyond what is allowed."""
        return self.view(coalition, situation).decide(*self.allowed(coalition, situation.survivors))


@cache
def _held(tokens: Tokens, holder: int, sharers: Users) -> frozenset[Token]:
    """Return the shares that a holder has; they are the same in many situations."""
    return frozenset(tokens.held(holder, sharers))


@lru_cache(maxsize=2**16)
def _answered(tokens: Tokens, holder: int, answer: Answer) -> frozenset[Token]:
    """Return the shares that an answer of a holder shows."""
    seeds, keys = map(tokens.self_seed, answer.seeds), map(tokens.masking_key, answer.keys)
    return frozenset(tokens.share(secret, holder) for secret in (*seeds, *keys))


@cache
def _masking(masking: Callable[..., UintArray], ring: Ring, user: int, peers: Users, size: int) -> AffineMap:
    """Probe `mask_update` as a function of an input, the self mask and one mask for each peer."""

    def core(points: UintArray) -> UintArray:
        """Mask the elements of all points as one vector: masking works element by element."""
        update, own, *shared = points.reshape(len(points), -1, size).transpose(1, 0, 2).reshape(-1, len(points) * size)
        return masking(ring, user, update, own, zip(peers, shared, strict=True)).reshape(len(points), size)

    return probe(ring, core, (2 + len(peers)) * size, name="mask_update", together=True)


# ------------------------------------------------------------------------------------------------------- audit


@dataclass(frozen=True, eq=False)
class Case:
    """A coalition with U_2 and U_3, decided for all uploads and answers.

    `parts` are the components of the honest survivors. `excess` is the number of functionals learned beyond their sums
    in the `least` situation, and `verdict` is for the `most` situation. `exact` says whether `unmask` returns the sum.
    """

    coalition: Users
    sharers: Users
    survivors: Users
    parts: tuple[Users, ...]
    excess: int
    verdict: Verdict
    exact: bool

    @property
    def delayed(self) -> int:
        """The number of honest users whose masked inputs come late in the `most` situation."""
        return len(set(self.sharers) - set(self.survivors) - set(self.coalition))


def every_coalition(N: int) -> Iterator[Users]:
    """Yield every set of users, smallest first, starting with the empty set (the server alone).

    Raises `ParameterError` if N is no number of users, or above 2^16.
    """
    N = validate.integer("N", N, 0, 2**16)
    for size in range(N + 1):
        yield from combinations(range(N), size)


def every_dropout(parameters: Parameters, graph: Graph) -> Iterator[tuple[Users, Users]]:
    """Yield every pair of U_2 and U_3 with which a round can continue (SAG-18).

    Raises `LengthMismatch` if the graph is not one of N users.
    """
    _check_graph(parameters, graph)
    users = range(parameters.N)
    for count in range(parameters.N, parameters.enough - 1, -1):
        for sharers in combinations(users, count):
            if graph.core(sharers, parameters.t) == sharers:
                yield from ((sharers, survivors) for survivors in _survivors(parameters, graph, sharers))


def _check_graph(parameters: Parameters, graph: Graph) -> None:
    if len(graph.order) != parameters.N:
        raise LengthMismatch("len(graph.order)", len(graph.order), f"N = {parameters.N}")


def _check_survivors(survivors: Users, sharers: Users) -> None:
    for user in survivors:
        if user not in sharers:
            raise UnknownUser("survivors", user, f"a user of U_2, which is {sharers}")


def _survivors(parameters: Parameters, graph: Graph, sharers: Users) -> Iterator[Users]:
    for count in range(len(sharers), parameters.enough - 1, -1):
        for survivors in combinations(sharers, count):
            if goes_on(parameters, graph, sharers, survivors):
                yield survivors


def goes_on(parameters: Parameters, graph: Graph, sharers: Collection[int], survivors: Collection[int]) -> bool:
    """Return whether a round continues with these survivors (SAG-18).

    Raises `UnknownUser` for users that are none of the graph, and for survivors that are none of `sharers`.
    """
    sharers, survivors = (
        validate.user_set(name, users, len(graph.order))
        for name, users in (("sharers", sharers), ("survivors", survivors))
    )
    _check_survivors(survivors, sharers)
    held = all(len(graph.holders(user) & set(survivors)) >= parameters.t for user in sharers)
    return held and len(survivors) >= parameters.enough


def audit(
    parameters: Parameters, graph: Graph, coalitions: Sequence[Users], dropouts: Sequence[tuple[Users, Users]]
) -> Iterator[Case]:
    """Yield the verdict of each coalition with each pair of U_2 and U_3.

    Parameters
    ----------
    parameters : Parameters
    graph : Graph
    coalitions : sequence of tuples of int
    dropouts : sequence of (tuple of int, tuple of int)
        U_2 and U_3, a user or more of U_2; see `every_dropout`.

    Raises
    ------
    NotAffine
        A core is not affine, so no verdict of this kind exists.
    UnknownUser, DuplicateUser
        A coalition or a set names a user outside the roster, or one twice.
    ParameterError
        U_3 is empty, or has a user that is not in U_2; or the graph is not one of N users.
    """
    _check_graph(parameters, graph)
    coalitions = [validate.users("coalitions", users, parameters.N) for users in coalitions]
    dropouts = [_dropout(pair, parameters.N) for pair in dropouts]
    for sharers, survivors in dropouts:
        if not survivors or not set(survivors) <= set(sharers):
            raise ParameterError("dropouts", (sharers, survivors), "U_2 and U_3, where U_3 is one user of U_2 or more")
    everyone = {s: Element(parameters.ring, graph, parameters.t, s) for s in dict.fromkeys(s for s, _ in dropouts)}
    exact = {(sharers, survivors): _exact(everyone[sharers], survivors) for sharers, survivors in dropouts}
    for coalition in coalitions:
        for sharers, survivors in dropouts:
            element = everyone[sharers]
            verdict = element.decide(coalition, most(graph, sharers, survivors))
            excess = 0 if verdict.private else element.decide(coalition, least(sharers, survivors)).dimension
            parts = components(graph, set(survivors) - set(coalition))
            yield Case(coalition, sharers, survivors, parts, excess, verdict, exact[sharers, survivors])


def _dropout(pair: tuple[Users, Users], N: int) -> tuple[Users, Users]:
    """Return a pair of U_2 and U_3 as tuples."""
    if len(validate.sequence("dropouts", pair, "pairs of U_2 and U_3")) != 2:
        raise ParameterError("dropouts", f"{len(pair)} sets", "pairs of U_2 and U_3")
    return validate.users("dropouts", pair[0], N), validate.users("dropouts", pair[1], N)


def _exact(element: Element, survivors: Users) -> bool:
    """Return whether `unmask` returns the sum over the survivors, without any mask."""
    got, wanted = element.recovered(survivors), element.total(survivors)
    joined = join([got, wanted]).matrix
    return np.array_equal(joined[: len(got)], joined[len(got) :])


def exposed(graph: Graph, t: int, coalition: Collection[int], sharers: Collection[int]) -> frozenset[int]:
    """Return the honest users with at least t colluding neighbours: the coalition recovers both of their secrets.

    Raises `UnknownUser` for users that are none of the graph, and `ParameterError` for t below 1.
    """
    t, colluding = validate.integer("t", t, 1), {*validate.user_set("coalition", coalition, len(graph.order))}
    honest = set(validate.user_set("sharers", sharers, len(graph.order))) - colluding
    return frozenset(user for user in honest if len(graph.neighbours(user) & colluding) >= t)


def expected_excess(graph: Graph, t: int, case: Case) -> int:
    """Return the number of functionals that section 9 says are learned beyond what is allowed.

    Exposed users count as vanished; their inputs are learned, even if sent late.
    """
    bare = exposed(graph, t, case.coalition, case.sharers)
    honest = set(case.survivors) - set(case.coalition)
    return len(components(graph, honest - bare)) + len(bare) - len(case.parts)


# ------------------------------------------------------------------------------------------- a server that lies


class Requests:
    """Users that sent their masked inputs and wait for a request; each question to a user starts from a fresh copy.

    Parameters
    ----------
    parameters : Parameters
        The parameters of a round in which all users sent masked inputs; inputs, keys and seeds do not matter. N d is at
        most 2^24.
    order : sequence of int
        The order of the users on the circle; the order of the roster when left out.
    arrived : mapping from user to set of users
        The users whose shares the server relays to a user. A user that is left out gets the shares of all its
        neighbours.

    Raises
    ------
    ParameterError
        N d is larger, or the order or a user of `arrived` is none of the users.
    """

    def __init__(
        self,
        parameters: Parameters,
        order: Sequence[int] | None = None,
        *,
        arrived: Mapping[int, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self.parameters, users = parameters, range(parameters.N)
        if parameters.N * parameters.d > _MOST:
            raise ParameterError("d", parameters.d, f"at most 2^24 / N = {_MOST // parameters.N}: all inputs are held")
        self.element = Element(parameters.ring, parameters.graph(order), parameters.t, tuple(users), arrived=arrived)
        self.answer = cache(self._answer)
        updates = np.zeros((parameters.N, parameters.d), dtype=np.uint64)
        network = protocol.open_round(parameters, updates, order=order, session=bytes(16), round=0)
        network.table = tuple(step for step in protocol.TABLE if step.phase in ("advertise_keys", "share_keys"))
        sources = {user: SeededSource(b"requests", str(user)) for user in users}
        run_synchronous(network, {}, protocol.draw_randomness(parameters, sources))
        masking = protocol.user_masked_input
        for user in users:
            mail = network.mail(masking, user)
            relayed = tuple(message for message in mail if message.sender in self.element.arrived.get(user, users))
            network.take_on(relayed, masking, user)
        self.waiting: dict[int, UserState] = {user: network.states[user] for user in users}

    def _answer(self, user: int, survivors: Users) -> Answer | None:
        """Return the shares that a user sends when the server requests these survivors, or None if it refuses.

        The request names as dropped all other users whose shares it holds.
        """
        state = self.waiting[user]
        known = {*self.element.arrived.get(user, range(self.parameters.N)), user}
        dropped = tuple(sorted(known - set(survivors)))
        message = UnmaskRequest(state.round.session, state.round.number, SERVER, user, survivors, dropped)
        try:
            _, (given,) = protocol.user_unmasking.take(state, (message,), randomness={})
        except ProtocolError:
            return None
        assert isinstance(given, UnmaskShares)
        return Answer(given.survivors, given.dropped)


def equivocation(requests: Requests, coalition: Collection[int], announced: Mapping[int, Collection[int]]) -> Verdict:
    """Return what a server learns by announcing different survivors to different users; all sent masked inputs.

    `requests` defines which shares the server withheld before.

    The steps that run decide which users answer which requests. The allowed sum is over one of the announced sets: the
    set for which the least is learned beyond its sum.

    Parameters
    ----------
    requests : Requests
        The users that are asked.
    coalition : collection of int
        The users that work with the server.
    announced : mapping from user to set of users
        The survivors announced to each honest user; the others are announced as dropped.

    Raises
    ------
    ParameterError
        No user gets a request, a member of the coalition gets one, or a user outside the roster does; or what is
        announced to a user are no integers.
    """
    parameters, element = requests.parameters, requests.element
    members = validate.user_set("coalition", coalition, parameters.N)
    asked = validate.user_set("announced", [*announced], parameters.N)
    if not asked or set(asked) & set(members):
        raise ParameterError("announced", [*asked], "given for honest users, at least one")
    named = {user: validate.user_set("announced", chosen, parameters.N) for user, chosen in announced.items()}
    given = {user: requests.answer(user, chosen) for user, chosen in named.items()}
    answers = {user: answer for user, answer in given.items() if answer is not None}
    everyone = element.sharers
    situations = (Situation(everyone, chosen, everyone, answers) for chosen in dict.fromkeys(named.values()))
    return min((element.decide(members, situation) for situation in situations), key=lambda verdict: verdict.index)


guard(__name__)
