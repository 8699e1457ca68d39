"""What the server of a recorded round learned of the inputs, whether or not anybody kept to the protocol.

Every message that the server got is a linear form of the inputs, of masks and of seeds; the modules of `privacy` decide
what all of them determine together. What a message says about users is taken from the message itself: a masked input
holds the masks of the neighbours that it names, and an answer holds the shares of the users that it names.

Source: spec/traces.md, section 4 (TRC-15).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import Malformed
from secagg_spec.privacy import lightsecagg
from secagg_spec.privacy.echelon import independent_rows
from secagg_spec.privacy.secagg import Answer, Element, Situation
from secagg_spec.privacy.verdict import decide, readable
from secagg_spec.privacy.views import Derived, Forms, Space, View, join
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
    """A combination of the inputs that is known, with a factor for each user.

    `where` names the elements or the segment of which it is known; it is empty if it is known of every element.
    """

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
    column of each kind of LightSecAgg, or one element of each cell of HeteroSAg. `sums` hold a basis of what is known
    of each element; `other`, as text, are combinations of different elements that do not follow from them, for the
    first and the last of columns of one kind. `seeds` are the users whose self masks are known, and
    `pairs` the pairs of users whose common masks are. `alone` are the users of whose own input something is known.
    """

    dimension: int
    unknown: int
    sums: tuple[Sum, ...]
    other: tuple[str, ...] = ()
    seeds: Users = ()
    pairs: tuple[tuple[int, int], ...] = ()
    alone: Users = ()


class Part(NamedTuple):
    """A view of a part of the inputs, the words for the part, and the number of users outside the coalition in it.

    What holds for an element i of the view holds for each of the elements i + `first` to i + `last`.
    """

    view: View
    words: str
    users: int
    first: int = 0
    last: int = 0


@dataclass
class Seen:
    """What the server saw of one round, line by line; vectors and shares are not kept.

    `uploads` are the users whose masked inputs came, and for each of these the neighbours whose masks it holds.
    `answers` are the shares of SecAgg that came, by holder, and `asked` the sets for which users of LightSecAgg
    answered: `announced` are those that await an answer, of which the first gets the next one, and `answered` those
    that had the last one.
    """

    round: Round
    uploads: dict[int, set[Users]] = field(default_factory=dict)
    answers: dict[int, tuple[set[int], set[int]]] = field(default_factory=dict)
    asked: set[tuple[int, Users]] = field(default_factory=set)
    announced: dict[int, list[Users]] = field(default_factory=dict)
    answered: dict[int, Users] = field(default_factory=dict)

    def take(self, entry: Sent) -> None:
        """Note what a message shows; bytes that cannot be read show nothing, nor do messages of another round."""
        kind = self.round.kinds.get(int.from_bytes(entry.data[:2], "little"))
        if kind is None or entry.user not in self.round.users:
            return
        try:
            message = codec.decode(kind, entry.data)
        except Malformed:
            return
        here = (message.session, message.round) == (self.round.head.session, self.round.head.round)
        right = message.sender == (entry.user if entry.incoming else SERVER)
        if here and right and entry.incoming is not isinstance(message, SurvivingSet):
            self._note(entry.user, message)

    def _note(self, user: int, message: codec.Message) -> None:
        match message:
            case MaskedInput() | MaskedSegments():
                self.uploads.setdefault(user, set()).add(self._known(message.neighbours))
            case UnmaskShares():
                seeds, keys = self.answers.setdefault(user, (set(), set()))
                seeds.update(self._known(message.survivors))
                keys.update(self._known(message.dropped))
            case MaskedUpdate():
                self.uploads.setdefault(user, set()).add(())
            case SurvivingSet():
                self.announced.setdefault(user, []).append(self._known(message.users))
            case AggregatedShare() if user in self.announced:
                if self.announced[user]:
                    self.answered[user] = self.announced[user].pop(0)
                self.asked.add((user, self.answered[user]))

    def _known(self, users: Sequence[int]) -> Users:
        return tuple(sorted(set(users) & set(self.round.users)))

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
        layers = [*self._layers()]
        sharers = tuple(sorted({*self.uploads}.union(*(peers for layer in layers for peers in layer.values()))))
        if len(sharers) * graph.k * max(1, len(parts)) * max(1, len(layers)) > 4 * MOST_SYMBOLS:
            return None
        answers = {j: Answer(tuple(sorted(seeds)), tuple(sorted(keys))) for j, (seeds, keys) in self.answers.items()}
        found, known = list[Part](), set[Any]()
        for part in parts:
            given = {"indices": (part.start,), "members": part.members, "space": Space(part.ring)}
            elements = [Element(part.ring, graph, t, sharers, arrived=layer, **given) for layer in layers]
            view = elements[0].view(coalition)
            for element, layer in zip(elements, layers, strict=True):
                element.show(view, Situation(sharers, (), tuple(sorted(layer)), MappingProxyType(answers)))
            where = "" if len(base.round.parameters.parts) == 1 else f"segment {part.segment}"
            found.append(Part(view, where, len(part.members - set(coalition))))
            known |= {
                symbol.derivation.seed
                for symbol, yes in zip(view.space.symbols, view.known(), strict=True)
                if yes and isinstance(symbol, Derived)
            }
        seeds = tuple(sorted(token[-1] for token in known if token[0] == "self seed"))
        pairs = tuple(sorted(token[-2:] for token in known if token[0] == "agreed"))
        return _together(found, seeds, pairs)

    def _layers(self) -> Iterator[Mapping[int, Users]]:
        """Yield masked inputs, one of each user at most: its neighbours; the users in the first layer are all."""
        ordered = {user: sorted(each) for user, each in self.uploads.items()}
        for at in range(max(map(len, ordered.values()), default=0)):
            yield {user: each[at] for user, each in ordered.items() if at < len(each)}

    def _lightsecagg(self, coalition: Collection[int]) -> Learned | None:
        p = self.round.parameters
        if p.N * (2 * p.U - p.T) > MOST_SYMBOLS:
            return None
        found, full = list[Part](), p.d - (len(lightsecagg.columns(p)[0]) - 1) * p.share_length
        for elements in lightsecagg.columns(p) if self.uploads else ():
            column = lightsecagg.Column(p, p.code, elements)
            view = View(column.space, coalition)
            column.show(view, lightsecagg.Situation((), tuple(sorted(self.uploads)), {}))
            view.see(*(_sum_of_shares(column, user, chosen) for user, chosen in sorted(self.asked) if chosen))
            first, last = (0, full - 1) if elements[0] == 0 else (1 + full - p.share_length, 0)
            found.append(Part(view, "", p.N - len(set(coalition)), first, last))
        return _together(found)


def _sum_of_shares(column: lightsecagg.Column, user: int, chosen: Users) -> Forms:
    """Return the sum of the shares that a user has of the masks of some users, whether or not it may send it."""
    joined = join([column.shares[owner].row(user) for owner in chosen])
    ones = np.ones((1, len(chosen)), dtype=np.uint64)
    return Forms(joined.symbols, column.parameters.field.matmul(ones, joined.matrix))


def _together(parts: Sequence[Part], seeds: Users = (), pairs: tuple[tuple[int, int], ...] = ()) -> Learned:
    """Return what parts without common symbols determine of the inputs of users outside the coalition."""
    places, other = dict[tuple[Any, ...], _Place](), dict[str, None]()
    dimension, unknown, alone = 0, 0, set[int]()
    for part in parts:
        verdict, ring = part.view.decide(), part.view.space.ring
        dimension += verdict.dimension
        owner, index = np.array([tuple(map(int, _match(name))) for name in verdict.secrets], dtype=int).reshape(-1, 2).T
        users, elements = np.unique(owner).tolist(), np.unique(index).tolist()
        unknown += part.users * len(elements)
        place = places.setdefault((part.words, *users), _Place(ring, part.words, tuple(users), []))
        rows = verdict.excess
        each = [_within(ring, rows, index == element) for element in elements]
        place.known.extend(zip(((at + part.first, at + part.last) for at in elements), each, strict=True))
        alone |= {users[int(row.argmax())] for known in each for row in known if np.count_nonzero(row) == 1}
        alone |= {user for user in _apart(rows, owner, set(users) - alone) if len(_within(ring, rows, owner == user))}
        if (count := sum(map(len, each))) < len(rows):
            assert isinstance(ring, PrimeField), "only the columns of LightSecAgg hold several elements"
            own = [_within(ring, rows, owner == user) for user in users]
            found = [_wide(known, index == at) for at, known in zip(elements, each, strict=True)]
            found += [_wide(known, owner == user) for user, known in zip(users, own, strict=True)]
            stacked = np.concatenate([*found, rows])
            for row in stacked[[at for at in independent_rows(ring, stacked) if at >= count]]:
                other[_of_different_elements(row, owner.tolist(), index.tolist(), part)] = None
    sums = tuple(one for place in places.values() for one in place.sums())
    return Learned(dimension, unknown, sums, tuple(other), seeds, pairs, tuple(sorted(alone)))


class _Place(NamedTuple):
    """What is known of some users' elements: rows with a factor for each user, by the first and last element."""

    ring: Ring
    words: str
    users: Users
    known: list[tuple[tuple[int, int], UintArray]]

    def sums(self) -> Iterator[Sum]:
        """Yield what is known of every element, and then what is known of some of them."""
        common = self.known[0][1] if self.known else np.empty((0, 0), dtype=np.uint64)
        for _, rows in self.known[1:]:
            common = _both(self.ring, common, rows)
        whole = [self._factors(row) for row in common]
        yield from (Sum(dict(factors), self.words) for factors in whole)
        found = dict[tuple[tuple[int, int], ...], list[tuple[int, int]]]()
        for span, rows in sorted(self.known, key=lambda item: item[0]):
            for factors in map(self._factors, rows if len(rows) > len(common) else ()):
                found.setdefault(factors, []).append(span)
        yield from (Sum(dict(factors), _spans(spans)) for factors, spans in found.items() if factors not in whole)

    def _factors(self, row: UintArray) -> tuple[tuple[int, int], ...]:
        pairs = zip(self.users, row.tolist(), strict=True)
        return tuple((user, _signed(factor, self.ring.modulus)) for user, factor in pairs if factor)


def _apart(rows: UintArray, owner: NDArray[np.intp], users: Collection[int]) -> Iterator[int]:
    """Yield the users whose columns no other one has; of those with equal columns nothing is known of one alone."""
    columns = {user: rows[:, owner == user].tobytes() for user in users}
    times = Counter(columns.values())
    yield from (user for user, each in columns.items() if times[each] == 1)


def _within(ring: Ring, rows: UintArray, chosen: BoolArray) -> UintArray:
    """Return a basis of the combinations of rows that are 0 outside the chosen columns, without the others."""
    return rows if chosen.all() else decide(ring, rows[:, chosen], rows[:, ~chosen], _none(chosen.sum())).excess


def _both(ring: Ring, one: UintArray, other: UintArray) -> UintArray:
    """Return a basis of what follows from the rows of one matrix, and from those of another."""
    if np.array_equal(one, other):
        return one
    padded = np.concatenate([one, np.zeros_like(other)])
    return decide(ring, padded, np.concatenate([one, other]), _none(one.shape[1])).excess


def _wide(rows: UintArray, chosen: BoolArray) -> UintArray:
    """Return rows of the chosen columns with zeros in all others."""
    found = np.zeros((len(rows), len(chosen)), dtype=np.uint64)
    found[:, chosen] = rows
    return found


def _none(width: int) -> UintArray:
    return np.empty((0, width), dtype=np.uint64)


def _of_different_elements(row: UintArray, owner: Sequence[int], index: Sequence[int], part: Part) -> str:
    """Return a combination as text: that of the first column for which the part stands, and that of the last one."""

    def shifted(by: int) -> str:
        names = [f"x_{user}[{at + by}]" for user, at in zip(owner, index, strict=True)]
        return readable(row, names, part.view.space.ring.modulus)

    return shifted(part.first) + (f", and so on to {shifted(part.last)}" if part.first < part.last else "")


def _spans(spans: Sequence[tuple[int, int]]) -> str:
    """Return ascending spans of elements in words; those next to each other are joined."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        joined.append((joined.pop()[0] if joined and first == joined[-1][1] + 1 else first, last))
    words = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in joined)
    return f"element{'' if joined[0][0] == joined[-1][1] else 's'} {words}"


def _match(name: str) -> Iterator[str]:
    found = _SECRET.fullmatch(name)
    assert found is not None, name
    yield from found.groups()


def _signed(factor: int, modulus: int) -> int:
    return factor if factor <= modulus // 2 else factor - modulus


guard(__name__)
