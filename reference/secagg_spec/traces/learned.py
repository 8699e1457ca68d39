"""What the server of a recorded round learned of the inputs, whether or not anybody kept to the protocol.

Every message that the server got is a linear form of the inputs, of masks and of seeds; the modules of `privacy` decide
what all of them determine together. What a message says about users is taken from the message itself: a masked input
holds the masks of the neighbours that it names, and an answer holds the shares of the users that it names.

Source: spec/traces.md, section 4 (TRC-15).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from secagg_spec.errors import Malformed
from secagg_spec.privacy import lightsecagg
from secagg_spec.privacy.secagg import Answer, Element, Situation
from secagg_spec.privacy.verdict import readable
from secagg_spec.privacy.views import Derived, Forms, View, join
from secagg_spec.protocols import codec
from secagg_spec.protocols.heterosag.round import MaskedSegments
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, SurvivingSet
from secagg_spec.protocols.secagg.round import MaskedInput, UnmaskShares
from secagg_spec.protocols.steps import SERVER
from secagg_spec.traces.files import Sent
from secagg_spec.traces.rounds import Round

MOST_SYMBOLS = 10_000
"""The most unknown numbers in a system that is solved; in SecAgg, whose systems are sparse, four times as many."""
_SECRET = re.compile(r"x_(\d+)\[(\d+)\]")
Users: TypeAlias = tuple[int, ...]


class Sum(NamedTuple):
    """A combination of the inputs that is known, with a factor for each user; `where` is the part, if not the whole."""

    factors: Mapping[int, int]
    where: str = ""

    @property
    def users(self) -> Users:
        """The users."""
        return tuple(sorted(self.factors))

    @property
    def by_user(self) -> dict[str, int]:
        """The factors as JSON data."""
        return {str(user): factor for user, factor in self.factors.items()}

    @property
    def plain(self) -> bool:
        """Whether it is a sum, with all factors 1 or all -1."""
        return set(self.factors.values()) in ({1}, {-1})


@dataclass(frozen=True)
class Learned:
    """What was learned.

    `dimension` is the rank of what is known of `unknown` numbers: one element of the input of each user, or one
    column of each kind of LightSecAgg, or one element of each cell of HeteroSAg. `sums` are known of each element;
    `other` are combinations of different elements, as text. `seeds` are the users whose self masks are known, and
    `pairs` the pairs of users whose common masks are. `alone` are the users of whose own input something is known.
    """

    dimension: int
    unknown: int
    sums: tuple[Sum, ...]
    other: tuple[str, ...] = ()
    seeds: Users = ()
    pairs: tuple[tuple[int, int], ...] = ()
    alone: Users = ()


@dataclass
class Seen:
    """What the server saw of one round, line by line; vectors and shares are not kept.

    `uploads` are the users whose masked inputs came, with the neighbours whose masks they hold. `answers` are the
    shares of SecAgg that came, by holder, and `asked` the sets for which users of LightSecAgg answered.
    """

    round: Round
    uploads: dict[int, set[int]] = field(default_factory=dict)
    answers: dict[int, tuple[set[int], set[int]]] = field(default_factory=dict)
    asked: set[tuple[int, Users]] = field(default_factory=set)
    announced: dict[int, Users] = field(default_factory=dict)

    def take(self, entry: Sent) -> None:
        """Note what a message shows; bytes that cannot be read show nothing."""
        kind = self.round.kinds.get(int.from_bytes(entry.data[:2], "little"))
        if kind is None or entry.user not in self.round.users:
            return
        try:
            message = codec.decode(kind, entry.data)
        except Malformed:
            return
        if message.sender == (entry.user if entry.incoming else SERVER):
            self._note(entry.user, message)

    def _note(self, user: int, message: codec.Message) -> None:
        match message:
            case MaskedInput() | MaskedSegments():
                self.uploads.setdefault(user, set()).update(self._known(message.neighbours))
            case UnmaskShares():
                seeds, keys = self.answers.setdefault(user, (set(), set()))
                seeds.update(self._known(message.survivors))
                keys.update(self._known(message.dropped))
            case MaskedUpdate():
                self.uploads.setdefault(user, set())
            case SurvivingSet():
                self.announced[user] = tuple(sorted(self._known(message.users)))
            case AggregatedShare() if user in self.announced:
                self.asked.add((user, self.announced[user]))

    def _known(self, users: Sequence[int]) -> set[int]:
        return set(users) & set(self.round.users)

    # ------------------------------------------------------------------------------------------- verdicts

    def learned(self, coalition: Collection[int] = ()) -> Learned | None:
        """Return what the server learned, together with a coalition; None if the round is too large for that.

        Without a coalition it is the server alone.
        """
        if hasattr(self.round.parameters, "U"):
            return self._lightsecagg(coalition)
        return self._secagg(coalition)

    def _secagg(self, coalition: Collection[int]) -> Learned | None:
        base = getattr(self.round.state, "base", self.round.state)
        graph, t = base.round.graph, base.round.parameters.t
        parts = [part for part in base.round.parameters.parts if part.members & set(self.uploads)]
        sharers = tuple(sorted(set(self.uploads).union(*self.uploads.values())))
        if len(sharers) * graph.k * max(1, len(parts)) > 4 * MOST_SYMBOLS:
            return None
        answers = {j: Answer(tuple(sorted(seeds)), tuple(sorted(keys))) for j, (seeds, keys) in self.answers.items()}
        happened = Situation(sharers, (), tuple(sorted(self.uploads)), MappingProxyType(answers))
        views, known = [], set[Any]()
        for part in parts:
            arrived = MappingProxyType({user: set(peers) for user, peers in self.uploads.items()})
            given = {"indices": (part.start,), "members": part.members, "arrived": arrived}
            element = Element(part.ring, graph, t, sharers, **given)
            view = element.view(coalition, happened)
            where = "" if len(base.round.parameters.parts) == 1 else f"segment {part.segment}"
            views.append((view, where, len(part.members - set(coalition))))
            symbols = element.space.symbols
            found = zip(symbols, view.known(), strict=True)
            known |= {symbol.derivation.seed for symbol, yes in found if yes and isinstance(symbol, Derived)}
        seeds = tuple(sorted(token[-1] for token in known if token[0] == "self seed"))
        pairs = tuple(sorted(token[-2:] for token in known if token[0] == "agreed"))
        return _together(views, seeds, pairs)

    def _lightsecagg(self, coalition: Collection[int]) -> Learned | None:
        p = self.round.parameters
        if p.N * (2 * p.U - p.T) > MOST_SYMBOLS:
            return None
        views = []
        for elements in lightsecagg.columns(p) if self.uploads else ():
            column = lightsecagg.Column(p, p.code, elements)
            view = View(column.space, coalition)
            column.show(view, lightsecagg.Situation((), tuple(sorted(self.uploads)), {}))
            view.see(*(_sum_of_shares(column, user, chosen) for user, chosen in sorted(self.asked) if chosen))
            views.append((view, "", p.N - len(set(coalition))))
        return _together(views)


def _sum_of_shares(column: lightsecagg.Column, user: int, chosen: Users) -> Forms:
    """Return the sum of the shares that a user has of the masks of some users, whether or not it may send it."""
    joined = join([column.shares[owner].row(user) for owner in chosen])
    ones = np.ones((1, len(chosen)), dtype=np.uint64)
    return Forms(joined.symbols, column.parameters.field.matmul(ones, joined.matrix))


def _together(
    views: Sequence[tuple[View, str, int]], seeds: Users = (), pairs: tuple[tuple[int, int], ...] = ()
) -> Learned:
    """Return what views without common symbols determine of the inputs of users outside the coalition.

    Each view comes with the words for its part of the inputs, and with the number of these users.
    """
    sums, other, dimension, unknown = dict[tuple[Any, str], Sum](), dict[str, None](), 0, 0
    alone = set[int]()
    for view, where, users in views:
        verdict = view.decide()
        dimension += verdict.dimension
        places = [tuple(map(int, _match(name))) for name in verdict.secrets]
        elements = {index for _, index in places}
        unknown += users * len(elements)
        by_element: dict[int, list[tuple[tuple[int, int], ...]]] = {index: [] for index in elements}
        for row in verdict.excess:
            terms = [(place, int(factor)) for place, factor in zip(places, row.tolist(), strict=True) if factor]
            of, found = {user for (user, _), _ in terms}, {index for (_, index), _ in terms}
            alone |= of if len(of) == 1 else set()
            if len(found) > 1:
                other[readable(row, verdict.secrets, verdict.modulus)] = None
                continue
            by_element[found.pop()].append(tuple((user, _signed(f, verdict.modulus)) for (user, _), f in terms))
        common = set.intersection(*map(set, by_element.values())) if by_element else set()
        for index, rows in sorted(by_element.items()):
            for row in rows:
                place = where if row in common else f"element {index}"
                sums[row, place] = Sum(dict(row), place)
    return Learned(dimension, unknown, tuple(sums.values()), tuple(other), seeds, pairs, tuple(sorted(alone)))


def _match(name: str) -> Iterator[str]:
    found = _SECRET.fullmatch(name)
    assert found is not None, name
    yield from found.groups()


def _signed(factor: int, modulus: int) -> int:
    return factor if factor <= modulus // 2 else factor - modulus
