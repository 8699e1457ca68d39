"""The Vandermonde code is MDS and T-private exactly when the points are distinct and none of them is 0.

Statement. User j holds the combination of U rows, U - T of them sub-masks and then T of noise, with the powers
(1, a_j, a_j^2, ...) of its point.
(a) Any U shares determine all rows (MDS) exactly when the points are distinct.
(b) Any T shares say nothing about the sub-masks (T-private) exactly when no point is 0.
(c) There is a sub-mask at all exactly when U > T.
(d) Hence the code shares a mask, so that any U shares give it back and no T shares say anything, exactly when U > T and
    the points are distinct and not 0; and such points exist exactly when q > N.

Idea. The shares of T users are A z + B n with B square: row j of B is a row of a Vandermonde matrix times a_j^(U - T).
B loses rank when a point is 0 (its row vanishes, and the share is the first sub-mask), and when points coincide (but
then the rows of A coincide as well, so that nothing is learned). All tuples of points over F_5 and F_7 are tried, 0 and
equal ones among them, with the rank criterion of proofs/rank_criterion.py, and the ranks are found again with FLINT.
For all codes: the determinant of the columns of U users is the product of the differences a_k - a_j, j < k, of their
points, and that of B, for T users, the product of these differences and of all a_j^(U - T). For distinct points the
first is not 0, and the second is 0 exactly when a point is. When it is not, B n is uniform whatever z is, and so are
the T shares, and any fewer of them. Where points coincide, (b) is the same for the distinct ones among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, package, rank_of_flint

CLAIMS = {
    "BAS-EQ6": "matrices",
    "BAS-EQ21": "matrices",
}

PARAMETERS = (
    (5, 3, 2, 1),
    (5, 4, 2, 1),
    (5, 4, 3, 1),
    (5, 4, 3, 2),
    (5, 5, 3, 1),
    (7, 4, 3, 2),
    (7, 4, 4, 3),
    (7, 5, 3, 2),
)
"""(q, N, U, T) of which all tuples of points are tried."""

NO_SUB_MASK = ((5, 3, 2, 2), (7, 4, 3, 3))
"""The same with U = T, which appendix A.2 allows."""


def good_points(points: Sequence[int]) -> bool:
    """Return whether the points are distinct and not 0."""
    return len(set(points)) == len(points) and 0 not in points


def tuples(q: int, N: int) -> list[tuple[int, ...]]:
    """Return all tuples of points: good ones first, then distinct ones, then the others."""
    return sorted(product(range(q), repeat=N), key=lambda points: (not good_points(points), N - len(set(points))))


class Code:
    """The code at any points, equal ones and 0 among them; tables by the points of some users."""

    def __init__(self, q: int, U: int, T: int, rank: Callable[[UintArray], int] | None = None) -> None:
        field = PrimeField(q)
        rank = field.rank if rank is None else rank

        def columns(points: tuple[int, ...]) -> UintArray:
            return field.powers(np.array(points, dtype=np.uint64), U)

        def determines_all(points: tuple[int, ...]) -> bool:
            return rank(columns(points)) == U

        def determines_mask(points: tuple[int, ...]) -> bool:
            matrix = columns(points).T
            targets = np.eye(U, dtype=np.uint64)[: U - T]
            return rank(np.concatenate([matrix, targets])) == rank(np.ascontiguousarray(matrix))

        def says_nothing(points: tuple[int, ...]) -> bool:
            matrix = columns(points).T
            return rank(np.ascontiguousarray(matrix)) == rank(np.ascontiguousarray(matrix[:, U - T :]))

        self.determines_all: Callable[[tuple[int, ...]], bool] = cache(determines_all)
        self.determines_mask: Callable[[tuple[int, ...]], bool] = cache(determines_mask)
        self.says_nothing: Callable[[tuple[int, ...]], bool] = cache(says_nothing)


def prove(report: Report) -> dict[str, Finding]:
    """Try all points for all parameters."""
    found = {"BAS-EQ6": code(report), "BAS-EQ21": recovery(report)}
    by_flint(report)
    determinants(report)
    return found


def code(report: Report) -> Finding:
    """Decide (a) and (b), and eq. (6): both at once."""
    both, existing = Tally(), {}
    for q, N, U, T in PARAMETERS:
        table, good = Code(q, U, T), 0
        for points in tuples(q, N):
            mds = all(table.determines_all(some) for some in combinations(points, U))
            private = all(table.says_nothing(some) for some in combinations(points, T))
            report.check(mds == (len(set(points)) == N), f"(a) MDS iff distinct, at {points}, q = {q}, U = {U}")
            report.check(private == (0 not in points), f"(b) T-private iff none is 0, at {points}, q = {q}, T = {T}")
            case = {"q": q, "N": N, "U": U, "T": T, "points": list(points), "MDS": mds, "T-private": private}
            both.add(case, mds and private, condition=good_points(points))
            good += mds and private
        existing[q, N] = good > 0
        report.say(f"q = {q}, (N, U, T) = ({N}, {U}, {T}): {good} of {q**N} tuples of points are MDS and T-private")
    report.check(both.exact, "MDS and T-private exactly for distinct non-zero points")
    report.check(all(found == (q > N) for (q, N), found in existing.items()), "good points exist exactly when q > N")
    found = "a user with the point 0 holds the first sub-mask in clear, although the code is MDS"
    return Finding(both.verdict, found, both.against)


def recovery(report: Report) -> Finding:
    """Decide eq. (21): the sub-masks, not all rows, must follow from any U shares; U = T is tried as well."""
    tally = Tally()
    for q, N, U, T in (*NO_SUB_MASK, *PARAMETERS):
        table = Code(q, U, T)
        for points in tuples(q, N):
            shares = U > T and all(table.determines_mask(some) for some in combinations(points, U))
            holds = shares and all(table.says_nothing(some) for some in combinations(points, T))
            case = {"q": q, "N": N, "U": U, "T": T, "points": list(points), "sub-masks": U - T}
            tally.add(case, holds, condition=good_points(points))
            stated = U > T and good_points(points)
            report.check(holds == stated, f"sharing works exactly for U > T and distinct points but 0: {case}")
    report.say(f"eq. (21): {tally.cases} codes, of which {tally.held} share a mask as is claimed")
    return Finding(tally.verdict, "it needs U > T besides what eq. (6) needs", tally.against)


def by_flint(report: Report) -> None:
    """Find all ranks on which the verdicts rest again with FLINT."""
    differ = [code for code in (*NO_SUB_MASK, *PARAMETERS) if not same_tables(*code)]
    report.agree(("BAS-EQ6", "BAS-EQ21"), "library", not differ, "FLINT finds the same ranks at all points")


def same_tables(q: int, N: int, U: int, T: int) -> bool:
    """Return whether the ranks of FLINT say the same of the shares of any U and of any T users."""
    own, other = Code(q, U, T), Code(q, U, T, lambda matrix: rank_of_flint(matrix, q))
    enough = all(
        own.determines_all(points) == other.determines_all(points)
        and own.determines_mask(points) == other.determines_mask(points)
        for points in product(range(q), repeat=U)
    )
    return enough and all(own.says_nothing(some) == other.says_nothing(some) for some in product(range(q), repeat=T))


def determinants(report: Report) -> None:
    """Check both determinants as polynomials in the points, for U up to 4."""
    holds = all(determinants_factor(U, T) for U in (2, 3, 4) for T in range(1, U))
    shown = "the determinants are products of points and of differences of points"
    report.agree(("BAS-EQ6", "BAS-EQ21"), "symbolic", holds, shown)


def determinants_factor(U: int, T: int) -> bool:
    """Return whether the determinants of all rows, for U users, and of the noise, for T users, are as stated."""
    sympy = package("sympy")
    points = sympy.symbols(f"a1:{U + 1}")
    whole = sympy.Matrix(U, U, lambda power, j: points[j] ** power).det()
    noise = sympy.Matrix(T, T, lambda power, j: points[j] ** (U - T + power)).det()
    stated = prod(points[:T]) ** (U - T) * differences(points[:T])
    return bool(sympy.expand(whole - differences(points)) == 0 and sympy.expand(noise - stated) == 0)


def differences(points: Sequence[Any]) -> Any:
    """Return the product of the differences of all pairs."""
    return prod(later - sooner for sooner, later in combinations(points, 2))
