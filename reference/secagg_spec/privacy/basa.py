"""Decide what the server and a coalition of users learn from epochs of BASA, and of BASA under weaker rules.

The verdicts come from the cores that run: `add_masks`, which `mask_update` calls, is probed, and `recover` is run on
the coefficients of its inputs. Masks are PRG streams of seeds. A coalition knows a seed when

- a member of the coalition drew it; or
- its box reached the server, and the coalition has the secret key of the position that the box is sealed to. It has
  this key when one of its users got it, regardless of that user's fate, or when the authority released it.

**Users are numbered in order of arrival.** A user that leaves before it gets a key changes nothing and is left out.

**One element at a time**, as in `privacy.secagg`. The secret of a user is its update; weights are public.

**From the least to the most.** An additional message never makes a coalition learn less. Before an epoch ends, a
coalition sees at most all uploads and all keys that its users ever get; every prefix shows no more than that. An upload
that the server held back is the same as one that came late.

**The allowed sum** is the sum over the honest accepted updates, once the epoch is closed. If a rule has no release, the
sum is allowed as soon as no more honest users are to come. If a timeout ended the epoch and the last upload came late,
that upload is part of the allowed sum; it is then the sum of a void epoch.

==============  ===================================================
papers          here
==============  ===================================================
x_k             the secret ``x`` of a user
y_k             `Epoch.masked` of a user
PRG(s_{k,j})    the stream of the token `Epoch.seed`, of a user k and a position j
SK_k            the token `Epoch.pair_key`
(none)          the tokens `Epoch.self_seed`, `Epoch.self_key`
==============  ===================================================

Source: spec/basa.md, sections 4 and 6 (BAA-12, BAA-13, BAA-16, BAA-20, BAA-21, BAA-26); BASA, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, ParameterError, UnknownUser
from secagg_spec.privacy.probe import AffineMap, probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Derivation, Forms, Rule, Space, Token, View, join, space_over, user_token
from secagg_spec.protocols.basa import cores
from secagg_spec.protocols.basa.cores import PRESETS, Masks

Users: TypeAlias = tuple[int, ...]

ACCEPTED, LATE, GONE = "accepted", "late", "gone"
FATES = (ACCEPTED, LATE, GONE)
PAIR, SELF = "pair", "self"


# ------------------------------------------------------------------------------------------------- what happens


class Holder(NamedTuple):
    """A user that got the key of a position: its update was accepted, came too late, or never came (gone)."""

    position: int
    fate: str


@dataclass(frozen=True)
class Timeouts:
    """A rule for timeouts.

    Parameters
    ----------
    name : str
    again : bool
        Whether the position of a user that timed out is given to the next user.
    own : bool
        Whether updates have self masks.
    accepted, others : tuple of {"pair", "self"}
        Which keys the authority releases at the close: for positions with an accepted update, and for the others.
    ends : bool
        Whether a timeout ends the epoch.

    Raises
    ------
    ParameterError
        A key is none of "pair" and "self", the name is no text, or one of the others is no truth value.
    """

    name: str
    again: bool = False
    own: bool = False
    accepted: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    ends: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        validate.instance("name", self.name, str)
        for name, kinds in (("accepted", self.accepted), ("others", self.others)):
            for kind in validate.instance(name, kinds, tuple):
                validate.one_of(name, kind, (PAIR, SELF))

    @property
    def releases(self) -> bool:
        """Whether an epoch ends with a release of keys."""
        return bool(self.accepted or self.others)


SETTLE = Timeouts("settle", own=True, accepted=(SELF,), others=(PAIR,))
VOID = Timeouts("void", ends=True)
PAPER = Timeouts("paper", again=True)
RULES: Mapping[str, Timeouts] = MappingProxyType({rule.name: rule for rule in (SETTLE, VOID, PAPER)})
WEAKER: Mapping[str, Timeouts] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            replace(SETTLE, name="again", again=True),
            replace(SETTLE, name="bare", own=False, accepted=()),
            replace(SETTLE, name="both-skipped", others=(PAIR, SELF)),
            replace(SETTLE, name="both-accepted", accepted=(PAIR, SELF)),
        )
    }
)
"""Variants of `SETTLE`: positions are given again, no self masks, or both keys of some positions are released."""


@dataclass(frozen=True)
class Situation(validate.Plain):
    """What happened in an epoch.

    Parameters
    ----------
    positions : int
        P, at most 2^16.
    holders : tuple of Holder
        The users that got keys, in order of arrival: user u is ``holders[u]``.
    closed : bool
        Whether the epoch was closed and, if the rule has a release, keys were released.
    offered : mapping from user to tuple of int
        The positions from which a user got boxes. A user that is left out got the boxes from all accepted positions
        before its own.
    """

    positions: int
    holders: tuple[Holder, ...]
    closed: bool = True
    offered: Mapping[int, Users] | None = None

    def __post_init__(self) -> None:
        """Check the holders.

        Raises
        ------
        ParameterError
            Positions are out of range or descend, a fate is unknown, or two updates of a position are accepted; or
            `closed` is no truth value, or `positions` no integer in [0, 2^16]; or boxes are offered to a user that got
            no key, or from a position that there is not.
        """
        super().__post_init__()
        _count(self.positions)
        for holder in validate.sequence("holders", self.holders, "Holder"):
            position, fate = validate.instance("holders", holder, Holder)
            validate.integer("position", position, 0, self.positions - 1)
            validate.one_of("fate", fate, FATES)
        order, taken = [holder.position for holder in self.holders], [self.at(u) for u in self.accepted]
        if order != sorted(order) or len(set(taken)) < len(taken):
            raise ParameterError("holders", self.holders, "ascending by position, with one accepted update for each")
        if self.offered is not None:
            validate.users("offered", [*validate.mapping("offered", self.offered)], len(self.holders))
            for positions in self.offered.values():
                for position in validate.collection("offered", positions, "positions"):
                    validate.integer("offered", position, 0, self.positions - 1)

    def at(self, user: int) -> int:
        """Return the position of a user; raises `UnknownUser` for one that got no key."""
        (user,) = validate.users("user", (user,), len(self.holders))
        return self.holders[user].position

    @property
    def users(self) -> range:
        """All users that got a key."""
        return range(len(self.holders))

    @property
    def accepted(self) -> Users:
        """The users whose updates were accepted."""
        return tuple(user for user in self.users if self.holders[user].fate == ACCEPTED)

    @property
    def uploaded(self) -> Users:
        """The users whose masked updates reached the server, in time or not."""
        return tuple(user for user in self.users if self.holders[user].fate != GONE)

    def boxes(self, user: int) -> Users:
        """Return the users whose boxes the given user got, and whose masks it removes."""
        before = [other for other in self.accepted if self.at(other) < self.at(user)]
        chosen = self.offered.get(user) if self.offered else None
        return tuple(other for other in before if chosen is None or self.at(other) in chosen)

    def until(self, user: int) -> Situation:
        """Return the situation before this user uploads: its upload and all later ones are missing.

        For the number of users, no upload is missing. Raises `ParameterError` for a number that is not from 0 to that.
        """
        user = validate.integer("user", user, 0, len(self.holders))
        late = tuple(Holder(self.at(other), GONE) for other in self.users[user:])
        return replace(self, holders=self.holders[:user] + late, closed=False)


# ------------------------------------------------------------------------------------------------------- views


class Epoch:
    """One element of the updates of an epoch, as linear forms.

    Time and memory grow with the number of users times the square of the positions.

    Parameters
    ----------
    ring : Ring
        The integers modulo R.
    rule : Timeouts
    situation : Situation
    weights : sequence of int, optional
        The weight of each user's update; all 1 when left out.
    people : sequence of int, optional
        The person behind each user; user u is person u when left out. A coalition is a set of people.
    number : int
        The epoch. Epochs with different numbers have different keys and masks.
    space : Space, optional
        The space of the symbols. Epochs that are seen together must share one space.
    name : str
        The name of the updates. Epochs in which people upload different updates need different names.

    Raises
    ------
    LengthMismatch
        The weights or the people are not one for each user that got a key.
    ParameterError
        A weight is not in [0, R), a person or the epoch is below 0, the name is no text, or the space is over another
        ring.
    """

    def __init__(
        self,
        ring: Ring,
        rule: Timeouts,
        situation: Situation,
        *,
        weights: Sequence[int] | None = None,
        people: Sequence[int] | None = None,
        number: int = 0,
        space: Space | None = None,
        name: str = "x",
    ) -> None:
        self.ring, self.rule, self.situation = ring, rule, situation
        self.number = validate.integer("number", number, 0)
        users = situation.users
        self.weights = _each("weights", weights, (1,) * len(users), ring.modulus - 1)
        self.people = _each("people", people, tuple(users))
        self.space = space_over(ring, space)
        self.updates = {u: self.space.secret(name, self.people[u], (0,)) for u in situation.uploaded}
        self.masked = {u: self._masked(u) for u in situation.uploaded}

    def seed(self, user: int, position: int) -> Token:
        """Return the seed that a user seals to a later position, for checked arguments."""
        return ("seed", self.number, user, position)

    def self_seed(self, user: int) -> Token:
        """Return the seed of a user's self mask, for checked arguments."""
        return ("self seed", self.number, user)

    def pair_key(self, position: int) -> Token:
        """Return the secret key that opens the boxes to a position, for checked arguments."""
        return ("pair key", self.number, position)

    def self_key(self, position: int) -> Token:
        """Return the secret key that opens the self boxes of a position, for checked arguments."""
        return ("self key", self.number, position)

    def mask(self, user: int, position: int) -> Forms:
        """Return the mask of a user for a later position; raises `ParameterError` for any other position or user."""
        validate.integer("position", position, self.situation.at(user) + 1, self.situation.positions - 1)
        return self._stream(self.seed(user, position), "pairwise-mask")

    def self_mask(self, user: int) -> Forms:
        """Return the self mask of a user; raises `UnknownUser` for one that got no key."""
        self.situation.at(user)
        return self._stream(self.self_seed(user), "self-mask")

    def _stream(self, seed: Token, purpose: str) -> Forms:
        return self.space.derived(Derivation(seed, bytes(16), "basa", self.number, purpose), 1)

    def _masked(self, user: int) -> Forms:
        situation, at = self.situation, self.situation.at(user)
        before = [self.mask(other, at) for other in situation.boxes(user)]
        after = [self.mask(user, position) for position in range(at + 1, situation.positions)]
        own = [self.self_mask(user)] if self.rule.own else []
        core = _masking(cores.add_masks, self.ring, self.weights[user], len(before), len(after), self.rule.own)
        return self.space.apply(core, self.updates[user], *before, *after, *own)

    def recovered(self) -> Forms:
        """Return the output of `recover` on the accepted updates and the released masks.

        `recover` runs on the coefficients themselves, each as one element of a vector; R is at least 7. Raises
        `LengthMismatch` if no update is accepted, and `ParameterError` for a smaller R; so does `recovers`.
        """
        situation = self.situation
        if not situation.accepted:
            raise LengthMismatch("len(accepted)", 0, "1 or more")
        validate.integer("ring.modulus", self.ring.modulus, 7)
        masked = [self.masked[u] for u in situation.accepted]
        own = [self.self_mask(u) for u in situation.accepted] if self.rule.own else []
        joined = join([*masked, *own, *(self.mask(u, j) for u, j in self._left())])
        rows, first, second = list(joined.matrix), len(masked), len(masked) + len(own)
        parameters = replace(PRESETS["tiny"], R=self.ring.modulus, d=joined.symbols.size, c_g=1, tau_max=0)
        total = cores.recover(parameters, rows[:first], rows[first:second], rows[second:])
        return Forms(joined.symbols, total.reshape(1, -1))

    def _left(self) -> list[tuple[int, int]]:
        """Return the (user, position) pairs whose masks remain in the sum of all masked updates."""
        situation, taken = self.situation, {self.situation.at(u) for u in self.situation.accepted}
        others = [position for position in range(situation.positions) if position not in taken]
        return [(u, j) for u in situation.accepted for j in others if j > situation.at(u)]

    def total(self, users: Collection[int]) -> Forms:
        """Return the weighted sum over the updates of some users, at least one.

        Raises `UnknownUser` for a user whose masked update did not reach the server, and `LengthMismatch` without one.
        """
        chosen = _uploaders(self, "users", users)
        if not chosen:
            raise LengthMismatch("len(users)", 0, "1 or more")
        joined = join([self.updates[u] for u in chosen])
        weights = np.array([[self.weights[u] for u in chosen]], dtype=np.uint64)
        return Forms(joined.symbols, self.ring.matmul(weights, joined.matrix))

    # What is known.

    def rules(self) -> tuple[Rule, ...]:
        """Return the rules: who drew what, who got which key, and what each key opens of the boxes at the server."""
        found = []
        for user, person in enumerate(self.people):
            at, drawn = self.situation.at(user), user_token(person)
            found.append(Rule(self.pair_key(at), (drawn,)))
            found.append(Rule(self.self_seed(user), (drawn, self.self_key(at))))
            for position in range(at + 1, self.situation.positions):
                found.append(Rule(self.seed(user, position), (drawn, self.pair_key(position))))
        return _joined(found)

    def released(self) -> Iterator[Token]:
        """Yield the keys that the authority releases at the close."""
        taken = {self.situation.at(user) for user in self.situation.accepted}
        for position in range(self.situation.positions):
            kinds = self.rule.accepted if position in taken else self.rule.others
            yield from (self.pair_key(position) if kind == PAIR else self.self_key(position) for kind in kinds)

    def show(self, view: View) -> None:
        """Add what the server sees to a view, which may already contain other epochs of the same space."""
        view.takes("view", self.space)
        view.see(*self.masked.values())
        if self.situation.closed:
            view.reveal(*self.released())

    def view(self, coalition: Collection[int]) -> View:
        """Return what the server and a coalition see."""
        return together([self], coalition)

    def honest(self, coalition: Collection[int], users: Iterable[int]) -> Users:
        """Return the users among `users` that do not collude.

        Raises `UnknownUser` for one that got no key, and `ParameterError` for a coalition that is none of persons.
        """
        given, members = validate.users("users", [*users], len(self.people)), _members(coalition)
        return tuple(user for user in given if self.people[user] not in members)

    def contributors(self, coalition: Collection[int]) -> Users:
        """Return the honest users whose updates are in the sum that is allowed once the epoch has ended."""
        situation = self.situation
        return self.honest(coalition, situation.uploaded if self.rule.ends else situation.accepted)

    def allowed(self, coalition: Collection[int]) -> tuple[Forms, ...]:
        """Return the allowed sum over honest updates, or an empty tuple while no sum is allowed."""
        honest = self.contributors(coalition)
        return (self.total(honest),) if honest and self.ended(coalition) else ()

    def ended(self, coalition: Collection[int]) -> bool:
        """Return whether the sum is allowed: the epoch is closed or, without a release, no more honest users come."""
        situation, members = self.situation, _members(coalition)
        if situation.closed or self.rule.releases:
            return situation.closed
        done = {*self.contributors(coalition), *(u for u in situation.users if self.people[u] in members)}
        return {situation.at(user) for user in done} >= set(range(situation.positions))

    def decide(self, coalition: Collection[int]) -> Verdict:
        """Return what a coalition learns beyond the allowed sum and its own updates."""
        return self.view(coalition).decide(*self.allowed(coalition))


def _each(name: str, given: Sequence[int] | None, default: Users, largest: int | None = None) -> Users:
    if given is None:
        return default
    if len(validate.sequence(name, given, "integers")) != len(default):
        raise LengthMismatch(name, tuple(given), f"{len(default)}, one for each user that got a key")
    return tuple(validate.integer(name, number, 0, largest) for number in given)


def _members(coalition: Collection[int]) -> frozenset[int]:
    return frozenset(validate.integer("coalition", person, 0) for person in coalition)


def _uploaders(epoch: Epoch, name: str, users: Collection[int]) -> list[int]:
    """Return users of an epoch whose masked updates reached the server, each named once, ascending."""
    given = validate.user_numbers(name, [*users])
    for user in given:
        if user not in epoch.updates:
            raise UnknownUser(name, user, f"one of the users that uploaded, {epoch.situation.uploaded}")
    return sorted(validate.users(name, given, len(epoch.people)))


def _joined(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Merge the rules for each token into one; all rules have threshold 1."""
    sources: dict[Token, tuple[Token, ...]] = {}
    for rule in rules:
        sources[rule.token] = sources.get(rule.token, ()) + rule.sources
    return tuple(Rule(token, known) for token, known in sources.items())


Adding: TypeAlias = Callable[[Ring, UintArray, Masks], UintArray]


@cache
def _masking(add: Adding, ring: Ring, weight: int, before: int, after: int, own: bool) -> AffineMap:
    """Probe `add` as a function of an update, the masks before it, the masks after it, and the self mask."""

    def core(values: UintArray) -> UintArray:
        update, *rest = values.reshape(-1, 1)
        masks = Masks(rest[:before], rest[before : before + after], rest[-1] if own else None)
        return add(ring, ring.multiply(update, np.array([weight], dtype=np.uint64)), masks)

    return probe(ring, core, 1 + before + after + own, name="add_masks")


# ----------------------------------------------------------------------------------------------- what is learned


def learned(epoch: Epoch, coalition: Collection[int]) -> tuple[Forms, ...]:
    """Return exactly what a coalition learns, its own updates aside, when the authority releases nothing.

    Let k be the last position whose key no member of the coalition ever held. The coalition knows all masks to later
    positions. So an upload at a later position is in the clear, and two uploads at k reveal the difference of their
    updates. Before k the masks are unknown, so only the sum with one upload at each position can be learned. If some of
    these positions, after the first one with an accepted honest upload, has no honest upload that removes its masks,
    not even this sum is learned.

    Raises
    ------
    ParameterError
        The epoch has self masks, keys were released at its close, or boxes were held back.
    """
    situation = epoch.situation
    if epoch.rule.own or (epoch.rule.releases and situation.closed):
        raise ParameterError("epoch", f"one under the rule {epoch.rule.name}", "without self masks and released keys")
    if situation.offered is not None:
        raise ParameterError("epoch", "one in which boxes were held back", "one in which each user gets all boxes")
    members = _members(coalition)
    held = {situation.at(user) for user in situation.users if epoch.people[user] in members}
    unknown = [position for position in range(situation.positions) if position not in held]
    last = unknown[-1] if unknown else -1
    honest = epoch.honest(coalition, situation.uploaded)
    bare = [epoch.total([user]) for user in honest if situation.at(user) > last]
    level = [user for user in honest if situation.at(user) == last]
    chain = [user for user in honest if user in situation.accepted and situation.at(user) < last] + level[:1]
    places = [situation.at(user) for user in chain]
    whole = set(places) >= {position for position in unknown if position >= min(places, default=0)}
    differences = [_difference(epoch, user, level[0]) for user in level[1:]]
    return (*bare, *differences, *([epoch.total(chain)] if chain and whole else []))


def _difference(epoch: Epoch, user: int, other: int) -> Forms:
    """Return the difference of the weighted updates of two users."""
    both = join([epoch.total([user]), epoch.total([other])])
    minus = epoch.ring.subtract(both.matrix[:1], both.matrix[1:])
    return Forms(both.symbols, minus)


def together(epochs: Sequence[Epoch], coalition: Collection[int]) -> View:
    """Return what the server and a coalition see of epochs that share one space.

    A member of the coalition that is no person of an epoch knows nothing of it.

    Raises
    ------
    ParameterError
        There is no epoch, they do not share one space, or the coalition is no collection of integers.
    """
    if not validate.sequence("epochs", epochs, "epochs"):
        raise LengthMismatch("len(epochs)", 0, "1 or more")
    view = View(epochs[0].space, coalition, tuple(rule for epoch in epochs for rule in epoch.rules()))
    for epoch in epochs:
        view.takes("epochs", epoch.space)
        epoch.show(view)
    return view


def exactly(view: View, forms: Sequence[Forms]) -> bool:
    """Return whether a view determines these forms of secrets, and nothing else but the coalition's own data."""
    verdict = view.decide(*forms)
    return verdict.private and verdict.withheld == 1


def recovers(epoch: Epoch) -> bool:
    """Return whether `recover`, given the released keys, returns the sum over the accepted updates without masks."""
    got, wanted = epoch.recovered(), epoch.total(epoch.situation.accepted)
    joined = join([got, wanted]).matrix
    exact = np.array_equal(joined[:1], joined[1:])
    return exact and epoch.view(()).decide(wanted).withheld == 1


def witness(epoch: Epoch, functional: Mapping[int, int]) -> Forms:
    """Return the combination of masked updates with the given coefficients; the weights are 1.

    Raises `UnknownUser` for a user whose masked update did not reach the server, and `ParameterError` for a coefficient
    outside of [0, R).
    """
    users, largest = _uploaders(epoch, "functional", [*functional]), epoch.ring.modulus - 1
    joined = join([epoch.masked[user] for user in users])
    factors = [validate.integer("functional", functional[user], 0, largest) for user in users]
    coefficients = np.array([factors], dtype=np.uint64)
    return Forms(joined.symbols, epoch.ring.matmul(coefficients, joined.matrix))


# --------------------------------------------------------------------------------------------- what may happen


def _count(positions: int) -> int:
    return validate.integer("positions", positions, 0, cores.MAX_POSITIONS)


def _fates(name: str, fates: Sequence[str]) -> tuple[str, ...]:
    return tuple(validate.one_of(name, fate, FATES) for fate in validate.sequence(name, fates, "fates"))


def every_pattern(positions: int) -> Iterator[Situation]:
    """Yield every closed epoch in which each position is given once: its upload is accepted, late, or missing.

    A position that nobody got looks the same as a position whose honest user never uploaded. Here and in the functions
    below there are at most 2^16 positions.
    """
    for fates in product(FATES, repeat=_count(positions)):
        yield Situation(positions, tuple(Holder(at, fate) for at, fate in enumerate(fates)))


def every_repeat(positions: int, extras: Sequence[tuple[str, ...]] = ((), (LATE,), (GONE,))) -> Iterator[Situation]:
    """Yield every full epoch of the paper in which, at each position, holders may time out before the accepted one.

    Each entry of `extras` gives the fates of the holders that timed out; by default there is at most one per position.
    """
    ways = [_fates("extras", fates) for fates in validate.sequence("extras", extras, "fates")]
    for chosen in product(ways, repeat=_count(positions)):
        holders = [Holder(at, fate) for at, early in enumerate(chosen) for fate in (*early, ACCEPTED)]
        yield Situation(positions, tuple(holders))


def every_stop(positions: int) -> Iterator[Situation]:
    """Yield every end of an epoch that a timeout ends: at any position (upload late or missing), or at none."""
    for taken in range(_count(positions)):
        before = tuple(Holder(at, ACCEPTED) for at in range(taken))
        for fate in (LATE, GONE):
            yield Situation(positions, (*before, Holder(taken, fate)), closed=False)
    yield Situation(positions, tuple(Holder(at, ACCEPTED) for at in range(positions)))


def every_settled(K: int, positions: int, enough: int, holders: tuple[Holder, ...] = ()) -> Iterator[Situation]:
    """Yield every end of an epoch in which positions are skipped: K updates accepted, or no position left.

    The epoch is closed if at least `enough` updates are accepted; otherwise it is abandoned. The time for each grows
    with the square of the positions.
    """
    begun = Situation(positions, holders).holders
    if [holder.position for holder in begun] != [*range(len(begun))]:
        raise ParameterError("holders", begun, "one for each position from 0 on")
    K, enough, waiting = validate.integer("K", K, 0), validate.integer("enough", enough, 0), [begun]
    while waiting:
        holders = waiting.pop()
        count = [fate for _, fate in holders].count(ACCEPTED)
        if count == K or len(holders) == positions:
            yield Situation(positions, holders, closed=count >= enough)
        else:
            waiting += [(*holders, Holder(len(holders), fate)) for fate in FATES[::-1]]


def arrivals(
    rule: Timeouts, K: int, positions: int, enough: int, fates: Mapping[int, str | None]
) -> tuple[Situation, Users]:
    """Return the situation when users 0, 1, 2, … arrive until the epoch ends, and the users that got a key.

    `fates` gives the fate of some users. A user with fate None leaves without a key; the update of a user that `fates`
    does not name is accepted. Users that `fates` names and that would arrive after the end are not in the epoch.

    Raises
    ------
    ParameterError
        A number is no integer from 0 on, `positions` is above 2^16, or `fates` has a user below 0 or an unknown fate.
    """
    K, positions, enough = validate.integer("K", K, 0), _count(positions), validate.integer("enough", enough, 0)
    for named, given in fates.items():
        validate.integer("fates", named, 0)
        _fates("fates", () if given is None else (given,))
    holders, people, position, user, accepted = list[Holder](), list[int](), 0, 0, 0
    stopped = False
    while position < positions and not stopped and accepted < K:
        fate = fates.get(user, ACCEPTED)
        if fate is not None:
            holders.append(Holder(position, fate))
            people.append(user)
            accepted += fate == ACCEPTED
            position += fate == ACCEPTED or not rule.again
            stopped = rule.ends and fate != ACCEPTED
        user += 1
    closed = not stopped and accepted >= enough
    return Situation(positions, tuple(holders), closed), tuple(people)


def every_coalition(people: Collection[int]) -> Iterator[Users]:
    """Yield every set of people, smallest first, starting with the empty set (the server alone)."""
    members = sorted({validate.integer("people", person, 0) for person in people})
    for size in range(len(members) + 1):
        yield from combinations(members, size)


@dataclass(frozen=True, eq=False)
class Case:
    """A situation with a coalition, and the verdict on it."""

    epoch: Epoch
    coalition: Users
    verdict: Verdict

    @property
    def situation(self) -> Situation:
        """What happened."""
        return self.epoch.situation

    @property
    def contributors(self) -> Users:
        """The honest users whose updates are in the allowed sum."""
        return self.epoch.contributors(self.coalition) if self.epoch.ended(self.coalition) else ()


def audit(ring: Ring, rule: Timeouts, situations: Iterable[Situation], largest: int | None = None) -> Iterator[Case]:
    """Yield the verdict on each situation with each coalition of at most `largest` users (any size when left out).

    Raises
    ------
    NotAffine
        A core is not affine, so no verdict of this kind exists.
    ParameterError
        `largest` is below 0.
    """
    if largest is not None:
        largest = validate.integer("largest", largest, 0)
    for situation in situations:
        epoch = Epoch(ring, rule, situation)
        for coalition in every_coalition(situation.users):
            if largest is None or len(coalition) <= largest:
                yield Case(epoch, coalition, epoch.decide(coalition))


guard(__name__)
