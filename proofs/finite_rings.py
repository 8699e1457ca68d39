"""Masks and their code work in a field of more than N elements; a finite ring with enough points will do as well.

Statement, modulo m. So a field is required against numbers without a modulus, and not against all other rings.
(a) A uniform mask hides an element for every m. Without a modulus, no mask that is uniform on 0 to M - 1 does.
(b) The Vandermonde code modulo m, at the points of U users, gives all rows back from their U shares and says nothing of
    the sub-masks in any T, exactly when all points and all differences of two of them are units modulo m.
(c) N such points exist exactly when N is below the least prime factor of m. So a prime m has the most, 9 and 25 have
    some, and an even m, 2^32 say, has one: too few for any code.

Idea. The determinants of proofs/vandermonde_code.py are products of points and of differences, and a square matrix
modulo m is one-to-one exactly when its determinant is a unit. (c) For each prime factor p of m the points must be
distinct and not 0 modulo p, so that there are at most p - 1; and 1 to p - 1 do for the least p. All rows are counted
for m up to 9; for 9, 25 and 35 FLINT computes the determinants, and the largest sets of points are searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from math import gcd

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "BAS-FIELD": "enumeration",
}
Points = tuple[int, ...]
CODES = ((2, 1), (3, 1), (3, 2))
"""(U, T) of which all points are tried, with N = U."""
LARGE = (9, 25, 35)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c) by counting, for m from 2 to 9; a field does, and whether nothing else does."""
    masking(report)
    claim, alone = Tally(), Tally()
    for m, (U, T) in product(range(2, 10), CODES):
        working = [points for points in combinations(range(m), U) if works(m, U, T, points)]
        stated = [points for points in combinations(range(m), U) if units(m, points)]
        report.check(working == stated, f"(b) the points that work: m = {m}, U = {U}, T = {T}")
        report.check(bool(working) == (least_factor(m) > U), f"(c) there are {U} points modulo {m}")
        if least_factor(m) == m > U:
            claim.add({"m": m, "U": U, "T": T, "points": list(*working[:1])}, bool(working))
        elif least_factor(m) < m:
            alone.add({"m": m, "U": U, "T": T, "points": list(*working[:1])}, not working)
    report.say(f"m up to 9 and prime: {claim.held} of {claim.cases} codes for fewer than m users have points that work")
    large = [(m, points) for m in LARGE for points in combinations(range(m), 2)]
    agreed = all(invertible(m, points) == units(m, points) for m, points in large)
    report.agree("BAS-FIELD", "library", agreed, "FLINT's determinants are units at the same points, for 9, 25 and 35")
    report.check(not any(units(2**32, points) for points in combinations(range(64), 2)), "(c) no two modulo 2^32")
    numbers = {f"points modulo {m}": most(m) for m in LARGE}
    report.check(list(numbers.values()) == [least_factor(m) - 1 for m in LARGE], "(c) the least prime factor less 1")
    return {"BAS-FIELD": Finding(by_reading((claim, alone)), "a field does, some rings too", alone.against, numbers)}


def masking(report: Report) -> None:
    """Decide (a): whether x + z is distributed alike for all x."""
    for m in range(2, 10):
        sums = [Counter(divmod(x + z, m)[1] for z in range(m)) for x in range(m)]
        report.check(all(each == sums[0] for each in sums), f"(a) modulo {m}")
        plain = [Counter(x + z for z in range(m)) for x in (0, 1)]
        report.check(plain[0] != plain[1], f"(a) without a modulus, masks from 0 to {m - 1} do not hide 0 from 1")


def units(m: int, points: Points) -> bool:
    """Return whether all points and all differences are units."""
    differences = [later - sooner for sooner, later in combinations(points, 2)]
    return all(gcd(number, m) == 1 for number in (*points, *differences))


def least_factor(m: int) -> int:
    """Return the least prime factor."""
    return next(p for p in range(2, m + 1) if gcd(p, m) > 1)


def works(m: int, U: int, T: int, points: Points) -> bool:
    """Return whether the shares of all rows are distinct, and T of them are distributed alike for all sub-masks."""
    rows = np.indices((m,) * U).reshape(U, -1)
    powers = np.array([[divmod(point**k, m)[1] for k in range(U)] for point in points])
    shares = np.divmod(powers @ rows, m)[1]
    masks = number(m, rows[: U - T])
    hidden = (says_nothing(masks, number(m, shares[list(some)])) for some in combinations(range(U), T))
    return bool(np.unique(number(m, shares)).size == m**U and all(hidden))


def number(m: int, rows: np.ndarray) -> np.ndarray:
    """Return one number for the residues in each column."""
    return np.asarray(sum(row * m**at for at, row in enumerate(rows)))


def says_nothing(masks: np.ndarray, seen: np.ndarray) -> bool:
    """Return whether each pair of a mask and of what is seen occurs equally often."""
    pairs, often = np.unique(np.stack([masks, seen]), axis=1, return_counts=True)
    every = np.unique(masks).size * np.unique(seen).size
    return bool(pairs.shape[1] == every and (often == often[0]).all())


def invertible(m: int, points: Points) -> bool:
    """Return whether FLINT's determinants of all rows, and of each user's noise, are units; U = 2, T = 1."""
    matrix = package("flint").fmpz_mat
    whole = int(matrix([[1, point] for point in points]).det())
    noise = [int(matrix([[point]]).det()) for point in points]
    return all(gcd(number, m) == 1 for number in (whole, *noise))


def most(m: int) -> int:
    """Return how many points there are of which any two serve, by a search over all sets of them."""
    serve: set[Points] = {points for points in combinations(range(m), 2) if invertible(m, points)}
    sets: list[Points] = [(point,) for point in range(m)]
    while larger := [some for points in sets for some in extended(m, points, serve)]:
        sets = larger
    return len(sets[0])


def extended(m: int, points: Points, serve: set[Points]) -> Iterator[Points]:
    """Yield the sets with one larger point that serves with each of the others."""
    for point in range(points[-1] + 1, m):
        if all((other, point) in serve for other in points):
            yield (*points, point)
