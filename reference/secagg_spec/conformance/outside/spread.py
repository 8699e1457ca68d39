"""Find combinations of elements that are constant over many draws of a vector, or miss some residues.

Draws are rows x of d elements modulo R, uniform and independent except for an unknown constant that may be added to all
rows. The combination wx is judged modulo m. The gcd of w and m is 1, so wx is uniform:

=======================  ==================  ========================================================
combination              modulus             probability that a correct implementation fails
=======================  ==================  ========================================================
constant in n rows:      each prime p that   (p^d - 1) / (p - 1) p^(1 - n): the number of w, up to
any w                    divides R           factors, times the probability that wx is constant
without a residue: w of  R up to `SMALL`     d c R (1 - 1/R)^n, with c combinations of two neighbours
one element, or of two
adjacent ones
without a cell: one      R above `SMALL`     d times the sum over all cells of (1 - c/R)^n, where c is
element                                      the size of a cell
=======================  ==================  ========================================================

A *cell* contains the even or the odd numbers of a quarter of [0, R), or of a half if R < 64. Even masks miss some cells
for any constant, since sums with the constant exceed R in one quarter only. If R >= 64, masks of half the bits do too.
Over a prime R, no function of one element can pass for its neighbour, because its graph misses a residue in some
direction.
Source: spec/conformance.md, CNF-65.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count, pairwise
from math import ceil, gcd, isqrt, log, log1p

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.outside import chance
from secagg_spec.privacy.echelon import eliminate

SMALL = 11
"""The largest modulus whose residues are counted, for each element and each adjacent pair; above it, cells are."""
_PARTS, _FEW_PARTS, _WIDE = 4, 2, 64
"""The number of parts of [0, R), and the number if the modulus is below 64."""


@dataclass(frozen=True)
class Blind:
    """A combination that is constant, or misses a residue or a cell: `weights` by place, modulo `modulus`."""

    modulus: int
    weights: tuple[tuple[int, int], ...]
    constant: bool

    def holds(self, rows: UintArray) -> bool:
        """Return whether the combination is also constant, or misses a residue or a cell, in other rows."""
        values = _values(self.modulus, self.weights, rows)
        if self.constant:
            return len(set(values)) == 1
        if self.modulus <= SMALL:
            return len(set(values)) < self.modulus
        return len({_cell(self.modulus, value) for value in values}) < len(_cells(self.modulus))

    @property
    def how(self) -> str:
        """The defect of the combination."""
        if self.constant:
            return "is constant"
        return f"never has some {'residue' if self.modulus <= SMALL else 'parity in some part of [0, R)'}"

    @property
    def text(self) -> str:
        """The combination in words: "[0]", "2 [0] + [3] modulo 2"."""
        terms = " + ".join(f"{weight} [{at}]" if weight != 1 else f"[{at}]" for at, weight in self.weights)
        return f"{terms} modulo {self.modulus}"


def constant_bound(p: int, d: int, n: int) -> Fraction:
    """Return an upper bound of the probability that some combination modulo a prime is constant in n rows."""
    return Fraction(p**d - 1, (p - 1) * p ** (n - 1))


def uncovered_bound(R: int, d: int, n: int) -> Fraction:
    """Return an upper bound of the probability that a residue, or a cell, is missing in n rows."""
    if R <= SMALL:
        return d * len(directions(R)) * chance.missing_bound(R, n)
    return d * sum((Fraction(R - size, R) ** n for size in _cells(R)), Fraction())


@lru_cache(maxsize=256)
def _cells(R: int) -> tuple[int, ...]:
    """Return the numbers of even and of odd numbers in each part of [0, R)."""
    parts = _parts(R)
    ends = [-(-part * R // parts) for part in range(parts + 1)]
    return tuple(
        (high - parity + 1) // 2 - (low - parity + 1) // 2 for low, high in pairwise(ends) for parity in (0, 1)
    )


def _parts(R: int) -> int:
    return _PARTS if R >= _WIDE else _FEW_PARTS


def _cell(R: int, value: int) -> tuple[int, int]:
    return value * _parts(R) // R, value & 1


@lru_cache(maxsize=64)
def directions(R: int) -> tuple[tuple[int, int], ...]:
    """Return weights of two adjacent elements, one pair for each combination up to factors; one weight may be 0."""
    return (*((1, b) for b in range(R)), *((a, 1) for a in range(R) if gcd(a, R) > 1))


@lru_cache(maxsize=256)
def primes(R: int) -> tuple[int, ...]:
    """Return the primes that divide a number."""
    for p in range(2, isqrt(R) + 1):
        if R % p == 0:
            return (p, *(q for q in primes(R // p) if q != p))
    return (R,) if R > 1 else ()


@lru_cache(maxsize=512)
def enough(R: int, d: int, bits: int, *, residues: bool) -> int:
    """Return how many rows suffice for all tests together to fail with a probability of at most 2**-bits."""
    rate, known = Fraction(1, 2 ** (bits + 1)), primes(R)
    each = rate / len(known)
    n = max(next(n for n in count(d + 1) if constant_bound(p, d, n) <= each) for p in known)
    if residues:
        part, several = (1 / R, len(directions(R)) * R) if R <= SMALL else (min(_cells(R)) / R, 1)
        start = ceil((bits * log(2) + log(2 * d * several)) / -log1p(-part)) - 2
        n = max(n, next(n for n in count(max(start, 1)) if uncovered_bound(R, d, n) <= rate))
    return n


def blind(R: int, rows: UintArray, *, residues: bool) -> Blind | None:
    """Return a failing combination of elements with the fewest terms; None if there is none."""
    found = [*_constant(R, rows)]
    if not found and residues:
        found = [*_uncovered(R, rows)]
    return min(found, key=lambda each: len(each.weights), default=None)


def _constant(R: int, rows: UintArray) -> Iterator[Blind]:
    """Yield combinations that are the same in all rows, modulo the primes that divide R."""
    for p in primes(R):
        field, moved = PrimeField(p), rows % np.uint64(p)
        moved = field.subtract(moved[1:], np.broadcast_to(moved[0], moved[1:].shape).copy())
        done = eliminate(field, moved, reduced=True)
        pivots = {column: row for row, column in done.pivots}
        for free in range(rows.shape[1]):
            if free not in pivots:
                others = [(at, int(-int(done.work[row, free]) % p)) for at, row in pivots.items()]
                yield Blind(p, tuple(sorted([(free, 1), *((at, w) for at, w in others if w)])), constant=True)


def _uncovered(R: int, rows: UintArray) -> Iterator[Blind]:
    """Yield elements and adjacent pairs in which a residue is missing, or elements in which a cell is missing."""
    d = rows.shape[1]
    for at in range(d):
        for a, b in directions(R) if at < d - 1 and R <= SMALL else ((1, 0),):
            found = Blind(R, tuple((place, w) for place, w in ((at, a), (at + 1, b)) if w), constant=False)
            if found.holds(rows):
                yield found


def _values(m: int, weights: Sequence[tuple[int, int]], rows: UintArray) -> list[int]:
    total = sum((rows[:, at] % np.uint64(m)) * np.uint64(weight) % np.uint64(m) for at, weight in weights)
    return list((np.asarray(total, dtype=np.uint64) % np.uint64(m)).tolist())
