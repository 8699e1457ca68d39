"""Which combinations of sums over sets of users are about few users.

A sum over a set is the product of the set's indicator vector with the inputs, so a combination of sums is about the
users in whose place the same combination of indicator vectors is not zero.

Source: spec/heterosag.md, section 8 (HSA-27, HSA-28).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations


def rank(rows: Iterable[Sequence[int]]) -> int:
    """Return the rank of a matrix over the rationals, given by its rows."""
    left = [[Fraction(entry) for entry in row] for row in rows]
    found = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((at for at in range(found, len(left)) if left[at][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        for at in range(found + 1, len(left)):
            factor = left[at][column] / left[found][column]
            if factor:
                left[at] = [a - factor * b for a, b in zip(left[at], left[found], strict=True)]
        found += 1
    return found


def light_combination(sets: Collection[frozenset[int]], least: int) -> frozenset[int] | None:
    """Return users that some combination of the sums over `sets` is about, when they are fewer than `least`.

    Users that are in the same sets cannot be told apart, so only unions of such classes are tried. A combination that
    is zero outside a union exists exactly when the rank falls as the columns of the union are left out.

    Parameters
    ----------
    sets : collection of frozenset of int
        The users of each sum.
    least : int
        The fewest users that a combination may be about.

    Returns
    -------
    frozenset of int or None
        The smallest such users; None when every combination that is not zero is about `least` users or more.
    """
    rows = list(dict.fromkeys(members for members in sets if members))
    classes = _classes(rows)
    full = rank(_columns(rows, classes))
    for union in _light_unions(classes, least):
        kept = [members for members in classes if members not in union]
        if rank(_columns(rows, kept)) < full:
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
    small = [members for members in classes if len(members) < least]
    choices = (choice for size in range(1, least) for choice in combinations(small, size))
    weighed = [(sum(map(len, choice)), choice) for choice in choices]
    yield from (choice for weight, choice in sorted(weighed, key=lambda pair: pair[0]) if weight < least)
