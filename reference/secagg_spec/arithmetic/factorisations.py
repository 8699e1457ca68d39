"""Perfect one-factorisations of complete graphs: n - 1 pairings of n points, any two of which together form one cycle.

Source: spec/heterosag.md, section 4 (HSA-06, HSA-11). The constructions are the classical ones for p + 1 and 2p points,
p an odd prime, and two starters.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.errors import ParameterError

Pair: TypeAlias = tuple[int, int]
Factor: TypeAlias = tuple[Pair, ...]

STARTERS = MappingProxyType(
    {
        16: ((1, 3), (2, 11), (4, 5), (6, 13), (7, 10), (8, 12), (9, 14)),
        28: (
            *((1, 20), (2, 3), (4, 6), (5, 22), (7, 21), (8, 24), (9, 16)),
            *((10, 15), (11, 14), (12, 18), (13, 25), (17, 26), (19, 23)),
        ),
    }
)
"""Pairs of the numbers 1 … n - 2 modulo n - 1, in which each difference occurs once."""


def perfect_factorisation(points: int) -> tuple[Factor, ...]:
    """Return the factors of a perfect one-factorisation, each a tuple of ascending pairs: n (n - 1) / 2 pairs in all.

    Time and memory grow with the square of n: some 100 bytes a pair.

    Parameters
    ----------
    points : int
        n, even and at least 2.

    Raises
    ------
    ParameterError
        n is odd, or not one of 2, p + 1, 2p, 16, 28 for an odd prime p, the sizes constructed here (HSA-06).
    """
    allowed = f"2, p + 1, 2p, 16 or 28, for an odd prime p, and below {validate.MAX_COUNT}"
    points = validate.integer("points", points, 2, validate.MAX_COUNT - 1, allowed)
    if points == 2:
        return (((0, 1),),)
    if points % 2 == 0 and is_prime(points - 1):
        return tuple(_factor(_reflected(row, points - 1)) for row in range(points - 1))
    if points % 2 == 0 and is_prime(points // 2):
        return _twice_a_prime(points // 2)
    if points in STARTERS:
        return _from_starter(points, STARTERS[points])
    raise ParameterError("points", points, allowed)


def _reflected(row: int, prime: int) -> list[Pair]:
    """Return the pairs of a and row + 1 - a; an a that would be its own partner is paired with the point `prime`."""
    partners = ((a, (row + 1 - a) % prime) for a in range(prime))
    return [(a, prime if a == partner else partner) for a, partner in partners]


def _from_starter(points: int, starter: Sequence[Pair]) -> tuple[Factor, ...]:
    order = points - 1
    shifted = ([((a + shift) % order, (b + shift) % order) for a, b in starter] for shift in range(order))
    return tuple(_factor([*pairs, (shift, order)]) for shift, pairs in enumerate(shifted))


def _twice_a_prime(prime: int) -> tuple[Factor, ...]:
    points = 2 * prime
    mirrored = (
        [(a, (2 * shift - a) % points) for a in range(points) if a % prime != shift] + [(shift, shift + prime)]
        for shift in range(prime)
    )
    odd = (j for j in range(1, points, 2) if j != prime)
    crossed = ([(a, (a + j) % points) for a in range(0, points, 2)] for j in odd)
    return tuple(_factor(pairs) for pairs in (*mirrored, *crossed))


def _factor(pairs: Sequence[Pair]) -> Factor:
    return tuple(sorted({(min(pair), max(pair)) for pair in pairs}))


guard(__name__)
