"""Decide what the server and a coalition of users learn in rounds of HeteroSAg, cell by cell.

The cores that run are `mask_update` and `unmask` of SecAgg, and verdicts are found as in `privacy.secagg`. Each cell of
each segment is one element modulo its own R. Since R is usually composite, the sizes of modules are counted instead of
ranks.

**Cells are decided one at a time** if no two of them share a symbol. Streams of different segments share none. In the
variant in which all segments of a user use one stream, cells whose moduli have a common divisor share symbols; these
are decided together, modulo the least common multiple. There a word of a stream counts as uniform modulo all moduli.
Not modelled: words are below 2**32, and one modulus rejects words that another accepts (PRG-01).

**Cells of one kind are alike.** Masks depend on two users only through which of them has the smaller number. So two
cells with the same number of users in their subgroups and the same R have the same matrices, up to the names of users.
If two users of a cell do the same in a round, exchanging them changes only the signs of masks, which are uniform. So
each kind of cell is decided once for each number of users that survive, come late, and collude; an absent user is in no
cell. A test compares this with all cases.

**From the least to the most**, as in `privacy.secagg`: only the most is decided, in which all survivors answer.

==============  ===================================================
paper           here
==============  ===================================================
x_i^l           the secret ``x_i[l]``; one element stands for all of segment l
S, R            `members`, `ring` of a `Cell`
U, D            what a `Situation` leaves of the cell
==============  ===================================================

Source: spec/heterosag.md, sections 4 to 6 and 8 (HSA-11 to HSA-19, HSA-27).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import gcd
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.participation_classes import participation_classes, small_class
from secagg_spec.arithmetic.segments import Matrix
from secagg_spec.errors import LengthMismatch, ParameterError, TooFewSurvivors
from secagg_spec.privacy.secagg import Element, Situation, Streams, Users, honest_answer
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Forms, Space, View, decide_together, join
from secagg_spec.protocols.heterosag import round as protocol
from secagg_spec.protocols.heterosag.plan import Cell, Parameters

# ------------------------------------------------------------------------------------------- rules and situations


@dataclass(frozen=True)
class Rule:
    """A variant: whether HSA-17, HSA-18 and HSA-27 are kept, and whether all segments use one stream.

    Raises `ParameterError` if one of the two is no truth value.
    """

    name: str
    checked: bool = True
    one_stream: bool = False

    def segment(self, cell: Cell) -> int:
        """Return the segment number from which the streams of a cell are derived."""
        return 0 if self.one_stream else cell.segment

    def admits(self, parameters: Parameters, survivors: Collection[int]) -> bool:
        """Return whether the rules on cells let users answer a request with these survivors (HSA-18)."""
        return not self.checked or refusal(parameters, survivors) is None


CELLS = Rule("cells")
RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for rule in (CELLS, Rule("none", checked=False), Rule("one-stream", one_stream=True))}
)


def refusal(parameters: Parameters, survivors: Collection[int], past: Sequence[frozenset[int]] = ()) -> str | None:
    """Return why a user refuses these survivors, given those of earlier rounds in `past`, or None if it answers.

    Raises
    ------
    UnknownUser, DuplicateUser
        A survivor is outside [0, N), or listed twice.
    """
    validate.users("survivors", [*survivors], parameters.N)
    try:
        protocol.check_cells(parameters, survivors)
        protocol.check_past(parameters, survivors, past)
    except TooFewSurvivors as error:
        return str(error)
    return None


def situation(
    parameters: Parameters,
    *,
    absent: Collection[int] = (),
    dropped: Collection[int] = (),
    late: Collection[int] = (),
    answered: bool = True,
) -> Situation:
    """Return the situation in which some users did not share secrets, dropped out before upload, or uploaded late.

    Parameters
    ----------
    parameters : Parameters
    absent, dropped, late : collection of int
        Disjoint sets: users that shared no secrets, users that shared secrets but sent no masked segments, and users
        whose masked segments came late.
    answered : bool
        Whether the survivors answer the request.

    Raises
    ------
    UnknownUser
        A user is outside [0, N).
    ParameterError
        A user is in two of the sets, or a round does not continue with these survivors (SAG-18); or `answered` is no
        truth value.
    """
    left_out = validate.user_numbers("absent, dropped and late", [*absent, *dropped, *late])
    if len(set(left_out)) < len(left_out):
        raise ParameterError("absent, dropped and late", sorted(left_out), "disjoint sets of users")
    validate.users("absent, dropped and late", left_out, parameters.N)
    sharers = tuple(user for user in range(parameters.N) if user not in set(absent))
    survivors = tuple(user for user in sharers if user not in set(left_out))
    if len(survivors) < parameters.enough:
        most = f"at most {parameters.N - parameters.enough} users in all"
        why = f"max(t, T + 2) = {parameters.enough} have to survive"
        raise ParameterError("absent, dropped and late", sorted(left_out), f"{most}: {why}")
    graph = parameters.graph()
    missing = set(sharers) - set(survivors)
    given = {user: honest_answer(graph, user, survivors, missing) for user in survivors} if answered else {}
    uploaded = tuple(user for user in sharers if user in {*survivors, *late})
    return Situation(sharers, survivors, uploaded, MappingProxyType(given))


# --------------------------------------------------------------------------------------------------------- views


class Plan:
    """The cells of a session under a rule, as elements; each cell is built once for each U_2.

    Parameters
    ----------
    parameters : Parameters
    rule : Rule
    """

    def __init__(self, parameters: Parameters, rule: Rule = CELLS) -> None:
        self.parameters, self.rule, self.graph = parameters, rule, parameters.graph()
        self.element, self.exact = cache(self._element), cache(exact)

    def together(self) -> Iterator[tuple[Cell, ...]]:
        """Yield groups of cells that may share symbols: single cells or, with one stream, linked by common divisors."""
        groups: list[list[Cell]] = []
        for cell in self.parameters.parts:
            near = [
                g for g in groups if self.rule.one_stream and any(gcd(o.ring.modulus, cell.ring.modulus) > 1 for o in g)
            ]
            groups = [g for g in groups if g not in near] + [[*(other for g in near for other in g), cell]]
        yield from (tuple(group) for group in groups)

    def elements(self, cells: tuple[Cell, ...], sharers: Users) -> tuple[Element, ...]:
        """Return the elements of cells; several cells have one space for each modulus, with the same symbols.

        Raises
        ------
        ParameterError
            There is no cell, or one is none of the parameters of the plan.
        UnknownUser, DuplicateUser
            A sharer is outside [0, N), or given twice.
        """
        cells = self.cells_of("cells", cells)
        sharers = validate.users("sharers", sharers, self.parameters.N)
        if len(cells) == 1:
            return (self.element(cells[0], sharers),)
        first = Space(cells[0].ring)
        spaces = {cell.ring.modulus: Space(cell.ring, first) for cell in cells}
        return tuple(self.build(cell, sharers, spaces[cell.ring.modulus]) for cell in cells)

    def cells_of(self, name: str, cells: Sequence[object]) -> tuple[Cell, ...]:
        """Return cells as a tuple; raises `ParameterError` if there is none, or one that the parameters do not have."""
        given = tuple(validate.instance(name, cell, Cell) for cell in validate.sequence(name, cells, "Cell"))
        if not given:
            raise LengthMismatch(f"len({name})", 0, "1 or more")
        for cell in given:
            if cell not in self.parameters.parts:
                raise ParameterError(name, cell, "a cell of the parameters of the plan")
        return given

    def build(self, cell: Cell, sharers: Users, space: Space, drawing: int = 0) -> Element:
        """Return the element of a cell in a space; each round `drawing` has its own number, keys and seeds.

        Raises
        ------
        ParameterError
            The cell is none of the parameters of the plan, the space is over another ring, or `drawing` is below 0.
        UnknownUser, DuplicateUser
            A sharer is outside [0, N), or given twice.
        """
        (cell,), drawing = self.cells_of("cell", (cell,)), validate.integer("drawing", drawing, 0)
        segment = self.rule.segment(cell)
        streams = Streams(protocol=protocol.PROTOCOL, round=drawing, segment=segment, drawing=drawing)
        given = (cell.ring, self.graph, self.parameters.t, sharers)
        return Element(*given, indices=(cell.segment,), streams=streams, space=space, members=cell.members)

    def _element(self, cell: Cell, sharers: Users) -> Element:
        return self.build(cell, sharers, Space(cell.ring))

    def decide(self, cells: tuple[Cell, ...], happened: Situation, coalition: Users) -> Case:
        """Return what a coalition learns of some cells, at least one, beyond the sums over their honest survivors."""
        cells = self.cells_of("cells", cells)
        coalition = validate.users("coalition", coalition, self.parameters.N)
        elements = self.elements(cells, happened.sharers)
        parts = [[e for e in elements if e.space is space] for space in dict.fromkeys(e.space for e in elements)]
        views = [seen(part, happened, coalition) for part in parts]
        allowed = [[form for e in part for form in e.allowed(coalition, happened.survivors)] for part in parts]
        verdict = views[0].decide(*allowed[0]) if len(views) == 1 else decide_together(views, allowed)
        right = all(self.exact(element, happened.survivors) for element in elements)
        return Case(cells, coalition, happened, verdict, right)

    def parts_shown(self, cell: Cell, happened: Situation, coalition: Users = ()) -> tuple[Users, ...]:
        """Return the sets of subgroups of a cell, each with honest survivors, whose honest sum the view determines."""
        (cell,) = self.cells_of("cell", (cell,))
        (element,) = self.elements((cell,), happened.sharers)
        view, honest = seen([element], happened, coalition), set(happened.survivors) - set(coalition)
        members = {z: honest & set(self.parameters.members[z]) for z in cell.subgroups}
        present = [z for z in cell.subgroups if members[z]]
        sets = (chosen for size in range(1, len(present) + 1) for chosen in combinations(present, size))
        sums = ((chosen, element.total(set[int]().union(*(members[z] for z in chosen)))) for chosen in sets)
        return tuple(chosen for chosen, total in sums if view.decide(total).withheld == 1)

    def rows_shown(self, happened: Situation) -> Matrix:
        """Return, for each segment, the smallest sets of subgroups whose sums the server learns, decided cell by cell.

        Since cells share no symbol, the sum over a union of subgroups is known in a segment exactly when the union is
        a union of these sets.
        """
        found = {cell: self.parts_shown(cell, happened) for cell in self.parameters.parts}
        return tuple(
            tuple(sorted(part for cell in self.parameters.parts if cell.segment == row for part in _least(found[cell])))
            for row in range(self.parameters.count)
        )


def _least(sets: Sequence[Users]) -> Iterator[Users]:
    """Yield the sets that are not a union of other sets."""
    for chosen in sets:
        smaller = [set(other) for other in sets if set(other) < set(chosen)]
        if set[int]().union(*smaller) != set(chosen):
            yield chosen


def seen(elements: Sequence[Element], happened: Situation, coalition: Collection[int]) -> View:
    """Return what the server and a coalition see in one round of elements, at least one, that share one space.

    Raises
    ------
    ParameterError
        There is no element, or they do not share one space.
    UnknownUser, DuplicateUser
        A member of the coalition is none of the users, or given twice.
    """
    if not validate.sequence("elements", elements, "Element"):
        raise LengthMismatch("len(elements)", 0, "1 or more")
    members = validate.user_set("coalition", coalition, len(elements[0].graph.order))
    view = View(elements[0].space, members, elements[0].rules)
    for element in elements:
        view.takes("elements", element.space)
        element.show(view, happened)
    return view


def exact(element: Element, left: Users) -> bool:
    """Return whether `unmask` returns the sum over the survivors of a cell, without any mask.

    Raises `UnknownUser` for a survivor outside [0, N).
    """
    left = validate.users("left", left, len(element.graph.order))
    survivors = tuple(user for user in element.members if user in left)
    if not survivors:
        return True
    joined = join([element.recovered(survivors), element.total(survivors)]).matrix
    return np.array_equal(joined[0], joined[1])


# --------------------------------------------------------------------------------------------------------- audit


@dataclass(frozen=True, eq=False)
class Case:
    """A coalition and a situation, decided for some cells that share symbols; usually this is a single cell.

    `verdict` is on what is learned beyond the sums over the honest survivors of each cell. `exact` says whether
    `unmask` returns the sums.
    """

    cells: tuple[Cell, ...]
    coalition: Users
    situation: Situation
    verdict: Verdict
    exact: bool

    def survivors(self, cell: Cell) -> Users:
        """Return the survivors of a cell."""
        return tuple(user for user in self.situation.survivors if user in cell.members)

    def contributors(self, cell: Cell) -> Users:
        """Return the honest survivors of a cell."""
        return tuple(user for user in self.survivors(cell) if user not in self.coalition)

    @property
    def late(self) -> Users:
        """The honest users of the cells whose masked segments came late."""
        members = frozenset[int]().union(*(cell.members for cell in self.cells))
        return tuple(sorted((self.situation.delayed & members) - set(self.coalition)))

    @property
    def bare(self) -> tuple[tuple[int, Cell], ...]:
        """The users that are the only honest survivors of a cell, with the cell: its sum reveals their input."""
        found = ((self.contributors(cell), cell) for cell in self.cells)
        return tuple((users[0], cell) for users, cell in found if len(users) == 1)


class Kind(NamedTuple):
    """The cells that have the same modulus, levels, and numbers of users in their subgroups."""

    modulus: int
    levels: int
    sizes: Users


def kinds(parameters: Parameters) -> Mapping[Kind, tuple[Cell, ...]]:
    """Return the cells of each kind."""
    found: dict[Kind, tuple[Cell, ...]] = {}
    for cell in parameters.parts:
        sizes = tuple(len(parameters.members[z]) for z in cell.subgroups)
        kind = Kind(cell.ring.modulus, cell.levels, sizes)
        found[kind] = (*found.get(kind, ()), cell)
    return MappingProxyType(found)


def every_case(plan: Plan, cell: Cell, colluders: Collection[int]) -> Iterator[tuple[Situation, Users]]:
    """Yield every way in which users of one cell survive, come late, collude or are absent, up to exchanges of users.

    Parameters
    ----------
    plan : Plan
    cell : Cell
    colluders : collection of int
        The numbers of colluding users. Colluders that are not in the cell are outside it, where everybody survives.

    Raises
    ------
    ParameterError
        A number is not in [0, N], or the cell is none of the parameters of the plan.
    """
    (cell,) = plan.cells_of("cell", (cell,))
    parameters, members = plan.parameters, sorted(cell.members)
    colluders = [validate.integer("colluders", count, 0, parameters.N) for count in colluders]
    outside = [user for user in range(parameters.N) if user not in cell.members]
    for present in range(len(members) + 1):
        for staying in range(present + 1):
            for among in range(staying + 1):
                for behind in range(present - staying + 1):
                    for count in colluders:
                        rest = count - among - behind
                        if 0 <= rest <= len(outside):
                            late, absent = members[staying:present], members[present:]
                            if _goes_on(plan, cell, staying):
                                happened = situation(parameters, absent=absent, late=late)
                                coalition = (*members[:among], *late[:behind], *outside[:rest])
                                yield happened, tuple(sorted(coalition))


def _goes_on(plan: Plan, cell: Cell, staying: int) -> bool:
    """Return whether a round continues when `staying` users of a cell and all users outside it survive."""
    parameters = plan.parameters
    few = plan.rule.checked and 0 < staying < parameters.T + 2
    return not few and staying + parameters.N - len(cell.members) >= parameters.enough


# --------------------------------------------------------------------------------------------------- over rounds


@dataclass(frozen=True)
class Combination:
    """A linear combination of sums of one cell that equals an integer combination of the inputs of a few users.

    The two are equal modulo `modulus`, or exactly if `modulus` is 0.
    """

    cell: Cell
    coefficients: tuple[Fraction, ...]
    users: Mapping[int, int]
    modulus: int = 0


class Rounds:
    """Rounds of one session in which no user changes its input; each round has its own keys and seeds.

    Parameters
    ----------
    plan : Plan
    survivors : sequence of tuples of int
        U_3 of each round; all users share secrets and send masked segments.

    Raises
    ------
    UnknownUser, DuplicateUser
        A survivor is outside [0, N), or is given twice.
    """

    def __init__(self, plan: Plan, survivors: Sequence[Users]) -> None:
        given = validate.sequence("survivors", survivors, "tuples of users")
        N, at = plan.parameters.N, range(len(given))
        self.plan, self.survivors = plan, tuple(validate.users(f"survivors[{r}]", given[r], N) for r in at)
        self.refused = self._refused()

    def _refused(self) -> tuple[str | None, ...]:
        """Return, for each round, why its request is refused, or None if it is answered."""
        found: list[str | None] = []
        past: list[frozenset[int]] = []
        for chosen in self.survivors:
            why = refusal(self.plan.parameters, chosen, past) if self.plan.rule.checked else None
            found.append(why)
            past += [frozenset(chosen)] if why is None else []
        return tuple(found)

    def sets(self, cell: Cell, rounds: Sequence[int]) -> list[frozenset[int]]:
        """Return the survivors of a cell in these rounds.

        Raises `ParameterError` for a round that there is not, or a cell of another plan; so do `too_few` and
        `combination`.
        """
        (cell,), last = self.plan.cells_of("cell", (cell,)), len(self.survivors) - 1
        chosen = (validate.integer("rounds", r, 0, last) for r in validate.sequence("rounds", rounds, "integers"))
        return [cell.members & set(self.survivors[r]) for r in chosen]

    def too_few(self, cell: Cell, rounds: Sequence[int]) -> frozenset[int] | None:
        """Return a class of fewer than T + 2 companions of a cell in these rounds, or None if there is none."""
        return small_class(self.sets(cell, rounds), self.plan.parameters.T + 2)

    def combination(self, cell: Cell, rounds: Sequence[int]) -> Combination | None:
        """Return the combination of sums of a cell that depends on the fewest users, if these are fewer than T + 2.

        There may be none even if a class of companions is too small: HSA-27 refuses more than such combinations.
        """
        sets = self.sets(cell, rounds)
        found = (_about(cell, sets, users) for users in _unions(sets, self.plan.parameters.T + 2))
        return next((one for one in found if one is not None), None)

    def view(self, cell: Cell, coalition: Collection[int], *, answered: Sequence[bool]) -> tuple[View, list[Element]]:
        """Return what the server and a coalition see of a cell, and the element of the cell in each round.

        Raises `LengthMismatch` unless `answered` has one entry for each round; so does `learned`. Raises
        `ParameterError` for a cell of another plan or a round with too few survivors to go on (SAG-18), and
        `UnknownUser` for a coalition with users outside of [0, N).
        """
        (cell,) = self.plan.cells_of("cell", (cell,))
        coalition = validate.user_set("coalition", coalition, self.plan.parameters.N)
        if len(validate.sequence("answered", answered, "truth values")) != len(self.survivors):
            raise LengthMismatch("len(answered)", len(answered), f"{len(self.survivors)}, one for each round")
        enough = self.plan.parameters.enough
        for at, chosen in enumerate(self.survivors):
            if len(chosen) < enough:
                raise ParameterError(f"survivors[{at}]", chosen, f"max(t, T + 2) = {enough} users or more")
        space, everyone = Space(cell.ring), tuple(range(self.plan.parameters.N))
        elements = [self.plan.build(cell, everyone, space, number) for number in range(len(self.survivors))]
        view = View(space, coalition, tuple(rule for element in elements for rule in element.rules))
        for element, chosen, given in zip(elements, self.survivors, answered, strict=True):
            late = set(everyone) - set(chosen)
            element.show(view, situation(self.plan.parameters, late=late, answered=given))
        return view, elements

    def learned(self, combination: Combination, *, answered: Sequence[bool]) -> bool:
        """Return whether the server learns a combination, and check that it learns only the sums of answered rounds.

        Raises `LengthMismatch` if the combination has not one coefficient for each round.
        """
        cell, count = combination.cell, len(combination.coefficients)
        if count != len(self.survivors):
            raise LengthMismatch("len(coefficients)", count, f"{len(self.survivors)}, one for each round")
        view, elements = self.view(cell, (), answered=answered)
        every = [(e, cell.members & set(s)) for e, s in zip(elements, self.survivors, strict=True)]
        sums = [e.total(s) for (e, s), yes in zip(every, answered, strict=True) if yes and s]
        assert view.decide(*sums).private, "of each round the sums are learned, and no more"
        used = [(e, s) for (e, s), factor in zip(every, combination.coefficients, strict=True) if factor and s]
        known = all(view.decide(e.total(s)).withheld == 1 for e, s in used)
        return known or (
            not combination.modulus and view.decide(_weighted(elements[0], combination.users)).withheld == 1
        )


def _unions(sets: Sequence[frozenset[int]], least: int) -> list[frozenset[int]]:
    """Return the unions of classes of companions that have fewer than `least` users, smallest first."""
    small = [members for members in participation_classes(sets) if len(members) < least]
    chosen = (classes for count in range(1, least) for classes in combinations(small, count))
    unions = (frozenset[int]().union(*classes) for classes in chosen)
    return sorted((users for users in unions if len(users) < least), key=len)


def _about(cell: Cell, sets: Sequence[frozenset[int]], users: frozenset[int]) -> Combination | None:
    """Return a combination of the sums over `sets` that depends on some of these users and on no other user."""
    rows = [[int(user in chosen) for user in sorted(cell.members)] for chosen in sets]
    kept = [at for at, user in enumerate(sorted(cell.members)) if user not in users]
    for factors in _row_operations([[row[at] for at in kept] for row in rows]):
        entries = [sum(f * x for f, x in zip(factors, column, strict=True)) for column in zip(*rows, strict=True)]
        whole, outside = gcd(*entries), gcd(*(entries[at] for at in kept))
        if whole != outside:
            return _combination(cell, factors, entries, whole, outside // whole)
    return None


def _combination(cell: Cell, factors: Sequence[int], entries: Sequence[int], whole: int, modulus: int) -> Combination:
    """Return the combination with these factors and entries, both divided by `whole`, the gcd of the entries."""
    named = {user: entry // whole for user, entry in zip(sorted(cell.members), entries, strict=True)}
    least = {user: divmod(entry, modulus)[1] if modulus else entry for user, entry in named.items()}
    nonzero = {user: entry for user, entry in least.items() if entry}
    sign = 1 if next(iter(nonzero.values())) > 0 else -1
    coefficients = tuple(Fraction(sign * factor, whole) for factor in factors)
    return Combination(cell, coefficients, MappingProxyType({u: sign * w for u, w in nonzero.items()}), modulus)


def _weighted(element: Element, users: Mapping[int, int]) -> Forms:
    """Return the sum of the inputs of some users, each times an integer."""
    chosen = sorted(users)
    joined = join([element.inputs[user] for user in chosen])
    weights = element.ring.encode_signed(np.array([[users[user] for user in chosen]], dtype=np.int64))
    return Forms(joined.symbols, element.ring.matmul(weights, joined.matrix))


def _row_operations(rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return a unimodular matrix M such that M times `rows` has multiples of rows of an integer matrix of minors 1."""
    left = [list(row) for row in rows]
    factors = [[int(at == own) for at in range(len(rows))] for own in range(len(rows))]
    open_, columns = set(range(len(rows))), set(range(len(rows[0]) if rows else 0))
    while places := [(abs(left[at][c]), at, c) for at in open_ for c in columns if left[at][c]]:
        _, pivot, column = min(places)
        for at in open_ - {pivot}:
            times = left[at][column] // left[pivot][column]
            for table in (left, factors):
                table[at] = [a - times * b for a, b in zip(table[at], table[pivot], strict=True)]
        if not any(left[at][column] for at in open_ - {pivot}):
            rest = {c: divmod(left[pivot][c], left[pivot][column])[1] for c in columns - {column}}
            for c, entry in rest.items():
                left[pivot][c] = entry
            if not any(rest.values()):
                open_, columns = open_ - {pivot}, columns - {column}
    return [tuple(row) for row in factors]


guard(__name__)
