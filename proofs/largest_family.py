"""No family that satisfies equation (5) has more sets of K users than the unions of batches of T.

Statement. A family of sets of K of N users satisfies (5) exactly when each class, the users in the same sets and at
least one, has T users or more (participation_privacy.py). With k = floor(K/T) and l = floor((N - K)/T) it has at most
C(k + l, k) sets, and that is
(a) C(N/T, K/T), the number of unions of batches, when T divides N and K, and not only for K <= N/2;
(b) C(floor(N/T), K/T) when T divides K alone, so that nothing is lost by leaving N - T floor(N/T) users out;
(c) not always attained when T does not divide K.

Idea. Each set is a union of classes, which are disjoint. As sets of classes, of which there are m, those of K users
are an antichain: none contains another one. One with j classes has j <= k, and as the m - j others have N - K users
at most, m - j <= l. So C(m, j) = C(j + (m - j), j) <= C(k + l, k). By the inequality of Lubell, Yamamoto and
Meshalkin the sum of 1/C(m, j) over the sets of an antichain is at most 1, so that there are at most C(k + l, k). The
program goes through all multisets of sizes of T or more with a sum of at most N, for N up to 24; the number of unions
of each size is the coefficient of a product of polynomials. For N up to 6 the unions are listed, as sets of users,
and their classes found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np

from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "MRS-REM6B": "enumeration",
}
LARGEST, LISTED = 24, 6


def sizes(left: int, least: int) -> Iterator[tuple[int, ...]]:
    """Yield all multisets of numbers from `least` on with a sum of at most `left`."""
    yield ()
    for first in range(least, left + 1):
        for rest in sizes(left - first, first):
            yield (first, *rest)


def unions(classes: tuple[int, ...]) -> list[int]:
    """Return how many unions of classes have each number of users."""
    ways = np.array([1])
    for size in classes:
        ways = np.pad(ways, (0, size)) + np.pad(ways, (size, 0))
    return [int(count) for count in ways]


def by_flint(classes: tuple[int, ...]) -> list[int]:
    """Return the same as coefficients of the product of the 1 + x^size."""
    poly = package("flint").fmpz_poly
    whole = poly([1])
    for size in classes:
        whole *= poly([1, *[0] * (size - 1), 1])
    return [int(count) for count in whole]


def largest(T: int) -> np.ndarray:
    """Return, by N and K, the largest number of sets of K of N users whose classes have T users or more."""
    most = np.zeros((LARGEST + 1, LARGEST + 1), dtype=np.int64)
    for classes in sizes(LARGEST, T):
        count = unions(classes)
        np.maximum(most[len(count) - 1, : len(count)], count, out=most[len(count) - 1, : len(count)])
    return np.maximum.accumulate(most, axis=0)


def listed(N: int, K: int, T: int) -> int:
    """Return the same from families of sets, whose classes are found."""
    best = 0
    for classes in (classes for classes in sizes(N, 1) if sum(classes) <= N):
        ends = [sum(classes[: at + 1]) for at in range(len(classes))]
        parts = [frozenset(range(end - size, end)) for end, size in zip(ends, classes, strict=True)]
        some = (frozenset[int]().union(*chosen) for n in range(len(parts) + 1) for chosen in combinations(parts, n))
        family = [members for members in some if len(members) == K]
        if family and min(map(len, participation_classes(family))) >= T:
            best = max(best, len(family))
    return best


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    claim, only_K, neither = Tally(), Tally(), Tally()
    for classes in sizes(12, 2):
        report.agree(
            "MRS-REM6B", "library", unions(classes) == by_flint(classes), f"the polynomial of FLINT: {classes}"
        )
    for T in range(1, LARGEST + 1):
        most = largest(T)
        for K, N in combinations_with_replacement(range(T, LARGEST + 1), 2):
            found, stated = int(most[N, K]), comb(K // T + (N - K) // T, K // T)
            case = {"N": N, "K": K, "T": T, "most": found, "bound": stated}
            report.check(found <= stated, f"never more: {case}")
            if N <= LISTED:
                report.check(found == listed(N, K, T), f"families of sets agree: {case}")
            if N % T == K % T == 0:
                claim.add(case, found == comb(N // T, K // T), condition=2 * K <= N)
            elif K % T == 0:
                only_K.add(case, found == comb(N // T, K // T))
            else:
                neither.add(case, found == stated)
    report.check(only_K.verdict == "confirmed", f"(b) {only_K.against}")
    report.check(neither.against is not None, "(c) less for some")
    report.say(
        f"attained in {claim.held} of {claim.cases} cases with N/T and K/T whole, and {only_K.cases} with K/T whole"
    )
    report.say(f"attained in {neither.held} of {neither.cases} with K/T not whole, and not for {neither.against}")
    counts = {"T divides N and K": claim.cases, "T divides K alone": only_K.cases}
    counts |= {"T does not divide K": neither.cases, "of these attained": neither.held}
    return {"MRS-REM6B": Finding(claim.verdict, "and for K > N/2 too", claim.against, counts)}
