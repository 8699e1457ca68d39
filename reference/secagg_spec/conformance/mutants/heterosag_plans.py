"""Planted bugs of the plan of HeteroSAg: subgroups, segments, matrices, moduli, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from secagg_spec.arithmetic import segments
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.heterosag_witness import Function, many, plan, plan_of
from secagg_spec.conformance.mutants.wrapped import BUILD, changing
from secagg_spec.protocols.heterosag_plan import Cell, Parameters

_PLAN = "secagg_spec.protocols.heterosag_plan"
_NUMBERS = f"{_PLAN}:Parameters"
_FACTORS = "secagg_spec.arithmetic.factorisations:perfect_factorisation"
_OPERATIONS = ("segment.plan", "heterosag.request")


# --------------------------------------------------------------------------------------------- subgroups and segments


def _runs(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    ends = list(accumulate(sizes))
    return tuple(tuple(range(end - size, end)) for end, size in zip(ends, sizes, strict=True))


def _shares(count: int, parts: int) -> list[int]:
    """Return parts of which the last ones are larger."""
    return [(count + at) // parts for at in range(parts)]


@mutant(
    "first-segments-shorter",
    "HSA-11",
    "disagreement: where Z does not divide d, the last segments have one element more",
    f"{_NUMBERS}.lengths",
    plan,
    kind="form",
    source="other rule: the rest goes to the last ones",
)
def _shorter(right: Any) -> Any:
    return property(lambda self: tuple(_shares(self.d, self.count)))


@mutant(
    "rest-in-the-last-segment",
    "HSA-11",
    "disagreement: where Z does not divide d, the last segment takes all that is left",
    f"{_NUMBERS}.lengths",
    plan,
    kind="form",
    source="other rule: the rest goes to the last one",
)
def _rest(right: Any) -> Any:
    def wrong(self: Parameters) -> tuple[int, ...]:
        size = self.d // self.count
        return (*[size] * (self.count - 1), self.d - size * (self.count - 1))

    return property(wrong)


@mutant(
    "first-subgroups-smaller",
    "HSA-11",
    "disagreement: where subgroups are not alike, the last ones have one user more",
    f"{_NUMBERS}.members",
    plan,
    kind="form",
    source="other rule: the rest goes to the last ones",
)
def _smaller(right: Any) -> Any:
    def wrong(self: Parameters) -> tuple[tuple[int, ...], ...]:
        cut = zip(self.sizes, self.subgroups, strict=True)
        return _runs([size for users, parts in cut for size in _shares(users, parts)])

    return property(wrong)


@mutant(
    "users-dealt-out",
    "HSA-11",
    "disagreement: the users of a group are dealt out to its subgroups in turn",
    f"{_NUMBERS}.members",
    plan,
    kind="form",
    source="other rule: users dealt out in turn",
)
def _dealt(right: Any) -> Any:
    def wrong(self: Parameters) -> tuple[tuple[int, ...], ...]:
        groups = zip(_runs(self.sizes), self.subgroups, strict=True)
        return tuple(users[at::parts] for users, parts in groups for at in range(parts))

    return property(wrong)


# ------------------------------------------------------------------------------------------------------------ matrices


def _planned(
    name: str, effect: str, witness: Callable[[], object], *, kind: str, source: str
) -> Callable[[Callable[[Parameters], Any]], Any]:
    """Register a mutant with another matrix; the function returns None where it is the right one."""

    def register(change: Callable[[Parameters], Any]) -> Any:
        def build(right: Any) -> Any:
            return property(lambda self: change(self) or right.func(self))

        return mutant(name, "HSA-11", effect, f"{_NUMBERS}.plan", witness, kind=kind, source=source)(build)

    return register


def _cells(table: Sequence[Sequence[int]]) -> segments.Matrix:
    """Return the cells of a table B, whatever stands in it."""
    rows = []
    for row in table:
        together = {entry: tuple(a for a, other in enumerate(row) if other == entry) for entry in set(row) - {-1}}
        alone = [(a,) for a, entry in enumerate(row) if entry == -1]
        rows.append(tuple(sorted([*together.values(), *alone])))
    return tuple(rows)


@_planned(
    "algorithm-2-as-printed",
    "privacy: the counter s starts from 0, so that cells of three subgroups stand beside ones alone",
    lambda: plan(matrix="cyclic", N=18, sizes=(9, 9), subgroups=(3, 3)),
    kind="privacy",
    source="paper: HET-ALG2",
)
def _printed(self: Parameters) -> Any:
    return _cells(segments.algorithm_2(self.subgroups, lambda d: 0)) if self.matrix == "cyclic" else None


@_planned(
    "cyclic-for-even-z",
    "privacy: for an even number of subgroups the matrix perfect is the cyclic one, which shows more",
    lambda: many(6),
    kind="privacy",
    source="paper: heterosag, inference robustness",
)
def _even(self: Parameters) -> Any:
    return segments.cyclic(self.count) if self.count % 2 == 0 else None


@_planned(
    "cyclic-for-any-z",
    "privacy: the matrix is the cyclic one whatever was agreed on",
    lambda: many(9),
    kind="privacy",
    source="paper: heterosag, inference robustness",
)
def _always(self: Parameters) -> Any:
    return segments.cyclic(self.count)


@_planned(
    "perfect-for-any-z",
    "disagreement: the matrix is the perfect one whatever was agreed on",
    lambda: many(9, "cyclic"),
    kind="form",
    source="other rule: one matrix for all",
)
def _never(self: Parameters) -> Any:
    return segments.perfect(self.count) if self.matrix == "cyclic" and self.count <= 32 else None


@_planned(
    "row-sum-without-one",
    "disagreement: in segment l the subgroup a is with l - a, so that segments stand in each other's place",
    lambda: many(5, "cyclic"),
    kind="form",
    source="off by one",
)
def _row_sum(self: Parameters) -> Any:
    rows = segments.cyclic(self.count)
    return (rows[-1], *rows[:-1]) if self.matrix == "cyclic" else None


@_planned(
    "all-alone-first",
    "disagreement: the segment in which each subgroup is alone is the first and not the last",
    lambda: many(6),
    kind="form",
    source="order",
)
def _alone_first(self: Parameters) -> Any:
    rows = segments.perfect(self.count) if self.matrix == "perfect" and self.count % 2 == 0 else None
    return rows and (rows[-1], *rows[:-1])


@_planned(
    "naive-matrix",
    "privacy: each subgroup is alone in every segment, as in the naive scheme",
    lambda: many(3),
    kind="privacy",
    source="other rule: the naive scheme",
)
def _naive(self: Parameters) -> Any:
    return segments.separate(self.count)


def _rotated(points: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the usual one-factorisation: one point stays, the others go round. It is perfect when n - 1 is a prime."""
    m = points - 1
    return tuple(tuple(sorted({_pair(a, (row + 1 - a) % m, m) for a in range(m)})) for row in range(m))


def _pair(a: int, b: int, last: int) -> tuple[int, int]:
    return (a, last) if a == b else (min(a, b), max(a, b))


@mutant(
    "factors-by-rotation",
    "HSA-11",
    "privacy: the factors are the usual ones, which form short circles where n - 1 is no prime",
    _FACTORS,
    lambda: many(9),
    kind="privacy",
    source="other rule: the usual one-factorisation",
)
def _rotation(right: Function) -> Function:
    def wrong(points: int) -> Any:
        right(points)
        return _rotated(points)

    return wrong


@mutant(
    "starter-turned-round",
    "HSA-11",
    "disagreement: the pairs of a starter go round in the other direction",
    "secagg_spec.arithmetic.factorisations:_from_starter",
    lambda: many(15),
    kind="form",
    source="order",
)
def _starter(right: Function) -> Function:
    def wrong(points: int, starter: Any) -> Any:
        factors = right(points, starter)
        return (factors[0], *reversed(factors[1:]))

    return wrong


@mutant(
    "any-perfect-matrix",
    "HSA-06",
    "privacy: where no construction is known, one that shows more is taken in silence",
    _FACTORS,
    lambda: many(35),
    kind="privacy",
    source="silent repair",
)
def _any_perfect(right: Function) -> Function:
    return lambda points: _rotated(points) if points > 32 else right(points)


# -------------------------------------------------------------------------------------------------- levels and moduli


def _celled(name: str, effect: str, *, kind: str, source: str) -> Callable[[Callable[[Parameters, Cell], Cell]], Any]:
    """Register a mutant with other cells."""

    def register(change: Callable[[Parameters, Cell], Cell]) -> Any:
        def build(right: Function) -> Function:
            return lambda self, *place: change(self, right(self, *place))

        return mutant(name, "HSA-12", effect, f"{_NUMBERS}._cell", plan, kind=kind, source=source)(build)

    return register


def _modulo(cell: Cell, modulus: int) -> Cell:
    return replace(cell, ring=Ring(min(modulus, MAX_MODULUS)))


@_celled("modulus-of-k-levels", "disagreement: the modulus is |S| K + 1", kind="form", source="off by one")
def _of_k(self: Parameters, cell: Cell) -> Cell:
    return _modulo(cell, len(cell.members) * cell.levels + 1)


@_celled(
    "modulus-without-one",
    "wrong sum: the modulus is |S|(K - 1), so that the largest sum is taken for 0",
    kind="sum",
    source="off by one",
)
def _without_one(self: Parameters, cell: Cell) -> Cell:
    return _modulo(cell, len(cell.members) * (cell.levels - 1))


@_celled(
    "modulus-of-the-roster",
    "cost: the modulus holds a sum over all N users, as in SecAgg",
    kind="form",
    source="other rule: the modulus of SecAgg",
)
def _of_roster(self: Parameters, cell: Cell) -> Cell:
    return _modulo(cell, self.N * (cell.levels - 1) + 1)


@_celled(
    "modulus-of-one-subgroup",
    "wrong sum: the modulus holds the sum of the smaller subgroup of a cell alone",
    kind="sum",
    source="wrong term",
)
def _of_one(self: Parameters, cell: Cell) -> Cell:
    return _modulo(cell, len(self.members[cell.subgroups[0]]) * (cell.levels - 1) + 1)


@_celled(
    "modulus-as-a-power-of-two",
    "cost: the modulus is the next power of two",
    kind="form",
    source="other rule: the next power of two",
)
def _power(self: Parameters, cell: Cell) -> Cell:
    return _modulo(cell, 1 << (cell.ring.modulus - 1).bit_length())


@_celled(
    "levels-of-the-larger-group",
    "failure: a cell quantises with the levels of its larger subgroup's group",
    kind="sum",
    source="other rule: the levels of the larger subgroup",
)
def _larger(self: Parameters, cell: Cell) -> Cell:
    levels = self.levels[self.group_of[cell.subgroups[-1]]]
    return _modulo(replace(cell, levels=levels), len(cell.members) * (levels - 1) + 1)


# ----------------------------------------------------------------------------------------------------- what is refused


def _unchecked(
    name: str, clause: str, effect: str, witness: Callable[[], object], *, kind: str, source: str
) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Any]:
    """Register a mutant that adjusts the numbers of a session before it looks at them."""
    return lambda change: mutant(name, clause, effect, BUILD, witness, kind=kind, source=source)(
        changing(*_OPERATIONS)(change)
    )


@_unchecked(
    "plan-with-other-n",
    "HSA-01",
    "disagreement: N is taken from the groups, whatever it is said to be",
    lambda: plan_of(N=18),
    kind="acceptance",
    source="silent repair",
)
def _other_n(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "N": sum(given["sizes"])}


@_unchecked(
    "plan-without-empty-groups",
    "HSA-01",
    "disagreement: groups without users or without subgroups are left out",
    lambda: plan_of(sizes=[11, 6, 0], subgroups=[2, 1, 1], levels=[2, 3, 3]),
    kind="acceptance",
    source="silent repair",
)
def _without_empty(given: dict[str, Any]) -> dict[str, Any]:
    groups = list(zip(given["sizes"], given["subgroups"], given["levels"], strict=False))
    kept = [group for group in groups if group[0] > 0 and group[1] > 0]
    if len(kept) == len(given["sizes"]) or not kept:
        return given
    sizes, subgroups, levels = (list(entries) for entries in zip(*kept, strict=True))
    return {**given, "N": sum(sizes), "sizes": sizes, "subgroups": subgroups, "levels": levels}


@_unchecked(
    "plan-without-thresholds",
    "HSA-01",
    "privacy: T, D and t are moved to where they are allowed",
    lambda: [plan_of(T=0), plan_of(t=2)],
    kind="privacy",
    source="silent repair",
)
def _without_thresholds(given: dict[str, Any]) -> dict[str, Any]:
    T = max(given["T"], 1)
    D = min(max(given["D"], 0), max(given["N"] - T - 2, 0))
    return {**given, "T": T, "D": D, "t": min(max(given["t"], T + 2), given["N"] - D)}


@_unchecked(
    "plan-with-small-subgroups",
    "HSA-01",
    "privacy: a subgroup of T + 1 users is taken, of whom T know the sum but for one input",
    lambda: plan_of(subgroups=[4, 1]),
    kind="privacy",
    source="silent repair",
)
def _small(given: dict[str, Any]) -> dict[str, Any]:
    parts = [
        max(1, min(count, size // (max(given["T"], 0) + 2)))
        for size, count in zip(given["sizes"], given["subgroups"], strict=False)
    ]
    return {**given, "subgroups": [*parts, *given["subgroups"][len(parts) :]]}


@mutant(
    "plan-of-one-subgroup",
    "HSA-01",
    "failure: a single subgroup is taken, so that there is nothing to segment",
    f"{_NUMBERS}.count",
    lambda: many(1),
    kind="acceptance",
    source="clause in part",
)
def _one_subgroup(right: Any) -> Any:
    return property(lambda self: _Lenient(sum(self.subgroups)))


class _Lenient(int):
    """A number of subgroups that is not below two, when it is compared."""

    def __lt__(self, other: int) -> bool:
        return int(self) < other and other != 2


@_unchecked(
    "plan-with-levels-sorted",
    "HSA-02",
    "failure: levels that fall are put in order, and those that are missing or below two are made up",
    lambda: [plan_of(levels=[3, 2]), plan_of(levels=[1, 3]), plan_of(levels=[2])],
    kind="acceptance",
    source="silent repair",
)
def _levels_sorted(given: dict[str, Any]) -> dict[str, Any]:
    count, levels = len(given["sizes"]), sorted(max(K, 2) for K in given["levels"])
    return {**given, "levels": [*levels, *levels[-1:] * count][:count]}


@mutant(
    "plan-with-moduli-cut",
    "HSA-03",
    "wrong sum: a modulus above 2**32 is taken for 2**32",
    f"{_NUMBERS}._cell",
    lambda: plan_of(levels=[2, 2**30]),
    kind="acceptance",
    source="silent repair",
)
def _moduli_cut(right: Function) -> Function:
    def wrong(self: Parameters, segment: int, start: int, stop: int, subgroups: tuple[int, ...]) -> Cell:
        members = frozenset(user for subgroup in subgroups for user in self.members[subgroup])
        levels = self.levels[self.group_of[subgroups[0]]]
        ring = Ring(min(len(members) * (levels - 1) + 1, MAX_MODULUS))
        return Cell(segment, start, stop, ring, members, subgroups, levels)

    return wrong


@mutant(
    "plan-with-empty-segments",
    "HSA-04",
    "failure: there are more segments than elements, so that some are empty",
    f"{_NUMBERS}.count",
    lambda: plan_of(d=2),
    kind="acceptance",
    source="clause left out",
)
def _empty(right: Any) -> Any:
    return property(lambda self: _Roomy(sum(self.subgroups)))


class _Roomy(int):
    """A number of subgroups that no number of elements is below, when it is compared."""

    def __gt__(self, other: int) -> bool:
        return False
