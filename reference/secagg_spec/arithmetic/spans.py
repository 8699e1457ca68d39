"""Which combinations of sums over sets of users are about few users.

A sum over a set is the product of the set's indicator vector with the inputs, so a combination of sums is about the
users in whose place the same combination of indicator vectors is not zero. Sums are known as integers: a combination
with integer entries is known modulo every m as well, and is then about the users in whose place m does not divide it.

Source: spec/heterosag.md, section 8 (HSA-27, HSA-28).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush


def minors(rows: Iterable[Sequence[int]]) -> tuple[int, int]:
    """Return the rank r of an integer matrix, given by its rows, and the greatest divisor of its minors of r rows."""
    left = [list(row) for row in rows]
    found, divisor = 0, 1
    while any(map(any, left)):
        row, column = _smallest(left)
        pivot = left[row]
        left = [other if other is pivot else _reduced(other, pivot, column) for other in left]
        if sum(bool(other[column]) for other in left) == 1:
            pivot[:] = [entry if at == column else entry % pivot[column] for at, entry in enumerate(pivot)]
            if sum(map(bool, pivot)) == 1:
                found, divisor = found + 1, divisor * abs(pivot[column])
                left.remove(pivot)
    return found, divisor


def _smallest(rows: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return where an entry of the smallest magnitude, not zero, is."""
    places = ((abs(entry), at, column) for at, row in enumerate(rows) for column, entry in enumerate(row) if entry)
    return min(places)[1:]


def _reduced(row: Sequence[int], pivot: Sequence[int], column: int) -> list[int]:
    """Return a row less the multiple of the pivot that makes its entry in `column` smallest."""
    factor = row[column] // pivot[column]
    return [entry - factor * other for entry, other in zip(row, pivot, strict=True)]


def light_combination(sets: Collection[frozenset[int]], least: int) -> frozenset[int] | None:
    """Return users that some combination of the sums over `sets` is about, when they are fewer than `least`.

    Users that are in the same sets cannot be told apart, so only unions of such classes are tried. A combination that
    is zero outside a union, but not in it, exists exactly when the rank falls as the columns of the union are left out;
    one that is so modulo some m exactly when the greatest divisor of the largest minors changes.

    Parameters
    ----------
    sets : collection of frozenset of int
        The users of each sum.
    least : int
        The fewest users that a combination may be about.

    Returns
    -------
    frozenset of int or None
        The smallest such users; None when every combination that is not zero is about `least` users or more, as it is
        and modulo every m.
    """
    rows = list(dict.fromkeys(members for members in sets if members))
    classes = _classes(rows)
    full = minors(_columns(rows, classes))
    for union in _light_unions(classes, least):
        kept = [members for members in classes if members not in union]
        if minors(_columns(rows, kept)) != full:
            return frozenset[int]().union(*union)
    return None


def _classes(rows: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Return the users by the sets that they are in."""
    found: dict[tuple[bool, ...], set[int]] = {}
    for user in sorted(frozenset[int]().union(*rows)):
        found.setdefault(tuple(user in members for members in rows), set()).add(user)
    return [frozenset(members) for members in found.values()]


def _columns(rows: Sequence[frozenset[int]], classes: Sequence[frozenset[int]]) -> list[list[int]]:
    return [[int(min(members) in row) for members in classes] for row in rows]


def _light_unions(classes: Sequence[frozenset[int]], least: int) -> Iterator[tuple[frozenset[int], ...]]:
    """Yield the choices of classes with fewer than `least` users together, those with fewer users first."""
    small = sorted((members for members in classes if len(members) < least), key=len)
    waiting: list[tuple[int, tuple[int, ...]]] = [(len(small[0]), (0,))] if small else []
    while waiting:
        weight, choice = heappop(waiting)
        yield tuple(small[at] for at in choice)
        last = choice[-1]
        for members in small[last + 1 : last + 2]:
            more = weight + len(members)
            for found in ((more, (*choice, last + 1)), (more - len(small[last]), (*choice[:-1], last + 1))):
                if found[0] < least:
                    heappush(waiting, found)
