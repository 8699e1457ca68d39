"""The K-level quantiser is unbiased, its variance is at most Delta^2/4, and errors add up: Lemma 1 of HeteroSAg.

Statement. Let T(l) = r1 + l Delta, Delta = (r2 - r1)/(K - 1), and let Q_K(x) for x in [T(l), T(l + 1)] be T(l + 1) with
the probability (x - T(l))/Delta, else T(l).
(a) E Q_K(x) = x. The reference gives each value with this probability, for each x in [r1, r2], ends included.
(b) E(Q_K(x) - x)^2 = (T(l + 1) - x)(x - T(l)) <= Delta^2/4, with equality at the midpoints, so that the bound of a
    vector in G segments of m/G elements is attained.
(c) For users who round independently, E||p' - p||^2 is the sum of all variances over N^2, at most
    (r2 - r1)^2/(4 N^2) (m/G) sum_i sum_l 1/(K_i^l - 1)^2, attained when all elements are at midpoints.
(d) Without independence (c) fails: with one draw for all users and all elements at midpoints it is N times as large.
(e) The sum of |U| carried integers decodes to |U| r1 + Delta s, s = 0, ..., |U|(K - 1). It needs |U| besides s.

Idea. With f = (x - T(l))/Delta (a) and (b) are identities of polynomials. In (c) the cross terms vanish, since errors
are independent with mean 0, for two users an identity as well. The program computes both sides from whole
distributions, on a grid of numbers for 2 to 9 levels and three ranges, and for (c) for up to three users. Draws of the
reference are uniform on [0, 1), so a grid of draws that has every threshold on it counts probabilities exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic.levels import Range, cell_mean, quantize_levels
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "HET-EQ3": "expectation",
    "HET-L1I": "expectation",
    "HET-L1II": "expectation",
    "HET-L1III": "expectation",
    "HET-EQ5B": "enumeration",
}
Law: TypeAlias = dict[Fraction, Fraction]
"""The probability of each value."""
RANGES = ((Fraction(-1), Fraction(1)), (Fraction(0), Fraction(8)), (Fraction(1, 4), Fraction(3)))
GRID = 8
HALF = Fraction(1, 2)


def quantised(x: Fraction, K: int, low: Fraction, high: Fraction) -> Law:
    """Return the distribution of Q_K(x), eq. (3)."""
    step = (high - low) / (K - 1)
    level = min((x - low) // step, K - 2)
    up = (x - low) / step - level
    values = ((low + level * step, 1 - up), (low + (level + 1) * step, up))
    return {value: p for value, p in values if p}


def mean(law: Law) -> Fraction:
    """Return the expectation."""
    return sum((p * value for value, p in law.items()), Fraction(0))


def squared(law: Law, centre: Fraction) -> Fraction:
    """Return the mean squared distance from a centre."""
    return sum((p * (value - centre) ** 2 for value, p in law.items()), Fraction(0))


def points(K: int, low: Fraction, high: Fraction) -> list[Fraction]:
    """Return numbers of the range: eight in each step, the ends of steps included."""
    count = GRID * (K - 1)
    return [low + (high - low) * k / count for k in range(count + 1)]


def prove(report: Report) -> dict[str, Finding]:
    """Decide all of it."""
    identities(report)
    code(report)
    return {
        **moments(report),
        "HET-L1III": users(report),
        "HET-EQ5B": decoded(report),
    }


def identities(report: Report) -> None:
    """Prove (a) and (b) as identities."""
    sympy = package("sympy")
    T, d, f = sympy.symbols("T Delta f")
    x = T + f * d
    average = (1 - f) * T + f * (T + d)
    variance = (1 - f) * (T - x) ** 2 + f * (T + d - x) ** 2
    report.agree(("HET-EQ3", "HET-L1I"), "symbolic", sympy.expand(average - x) == 0, "(a) E Q_K(x) = x")
    report.check(sympy.expand(variance - (T + d - x) * (x - T)) == 0, "(b) the variance is (T(l+1) - x)(x - T(l))")
    gap = d**2 / 4 - variance - d**2 * (f - sympy.Rational(1, 2)) ** 2
    below = "(b) it is below Delta^2/4 by the square of the distance from the middle"
    report.agree("HET-L1II", "symbolic", sympy.expand(gap) == 0, below)
    two_users(report)


def two_users(report: Report) -> None:
    """Prove (c) for one element of two users: the error of the mean, over the four ways to round."""
    sympy = package("sympy")
    shares, steps = sympy.symbols("f1 f2"), sympy.symbols("D1 D2")
    error = 0
    for ups in product((0, 1), repeat=2):
        chance = sympy.prod([f if up else 1 - f for up, f in zip(ups, shares, strict=True)])
        off = sum(d * (up - f) for up, f, d in zip(ups, shares, steps, strict=True))
        error += chance * (off / 2) ** 2
    variances = sum(d**2 * f * (1 - f) for f, d in zip(shares, steps, strict=True))
    adds_up = sympy.expand(error - variances / 4) == 0
    report.agree("HET-L1III", "symbolic", adds_up, "(c) the errors of two users add up")


def code(report: Report) -> None:
    """Check that the reference gives each value with its probability: 8 draws between the multiples of 1/8."""
    draws = (np.arange(GRID) + 0.5) / GRID
    for K in (2, 3, 5, 9):
        low, high = RANGES[1]
        for x in points(K, low, high):
            found = quantize_levels(
                np.full(GRID, float(x)), levels=K, range=Range(float(low), float(high)), rounding=draws
            )
            values, counts = np.unique(found, return_counts=True)
            law = {
                low + int(v) * (high - low) / (K - 1): Fraction(int(n), GRID)
                for v, n in zip(values, counts, strict=True)
            }
            right = law == quantised(x, K, low, high)
            report.agree("HET-EQ3", "enumeration", right, f"(a) the reference for K = {K} at {x}, over all draws")


def moments(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b) on a grid of three ranges."""
    unbiased, bounded, attained = Tally(), Tally(), 0
    for (low, high), K in product(RANGES, range(2, 10)):
        step = (high - low) / (K - 1)
        for x in points(K, low, high):
            law, case = quantised(x, K, low, high), {"range": f"[{low}, {high}]", "K": K, "x": str(x)}
            unbiased.add(case, mean(law) == x)
            bounded.add(case, squared(law, x) <= step**2 / 4)
            attained += squared(law, x) == step**2 / 4
    middles = len(RANGES) * sum(K - 1 for K in range(2, 10))
    report.check(attained == middles, "(b) attained at the midpoints, and nowhere else")
    report.say(f"one number: unbiased in {unbiased.held} of {unbiased.cases} cases, Delta^2/4 attained in {attained}")
    return {
        "HET-EQ3": Finding(unbiased.verdict, "its mean is x", unbiased.against),
        "HET-L1I": Finding(unbiased.verdict, "its mean is x", unbiased.against),
        "HET-L1II": Finding(bounded.verdict, "at most Delta^2/4, attained at midpoints", bounded.against),
    }


def added(laws: Sequence[Law]) -> Law:
    """Return the law of the sum of independent values."""
    total: Law = {Fraction(0): Fraction(1)}
    for law in laws:
        after: Law = {}
        for (x, p), (y, q) in product(total.items(), law.items()):
            after[x + y] = after.get(x + y, Fraction(0)) + p * q
        total = after
    return total


def users(report: Report) -> Finding:
    """Decide (c) and (d) for one element of up to three users, each with its own number of levels."""
    low, high = RANGES[0]
    tally, attained = Tally(), 0
    for N in (1, 2, 3):
        for levels in product((2, 3, 5), repeat=N):
            bound = (high - low) ** 2 / (4 * N**2) * sum(Fraction(1, (K - 1) ** 2) for K in levels)
            for share in product((Fraction(0), Fraction(1, 4), HALF), repeat=N):
                at = [low + (high - low) / (K - 1) * f for K, f in zip(levels, share, strict=True)]
                laws = [quantised(x, K, low, high) for x, K in zip(at, levels, strict=True)]
                error = squared(added(laws), sum(at, Fraction(0))) / N**2
                tally.add({"N": N, "K": list(levels), "x": [str(x) for x in at]}, error <= bound)
                middle = set(share) == {HALF}
                attained += error == bound
                report.check((error == bound) == middle, f"(c) attained at midpoints alone: {levels}, {at}")
                if middle:
                    together(report, at, laws, bound)
    report.say(f"the mean of N users: within the bound in {tally.held} of {tally.cases} cases, attained in {attained}")
    return Finding(tally.verdict, "errors of independent users add up", tally.against)


def together(report: Report, at: Sequence[Fraction], laws: Sequence[Law], bound: Fraction) -> None:
    """Check (d): all users round up, or all down."""
    N, total = len(at), sum(at, Fraction(0))
    sums = [sum((choose(law) for law in laws), Fraction(0)) for choose in (min, max)]
    error = sum((HALF * (value - total) ** 2 for value in sums), Fraction(0)) / N**2
    report.check(error >= bound, "(d) one draw for all is no better")
    if len(set(map(max, laws))) == 1:
        report.check(error == N * bound, "(d) one draw for all, and equal levels: N times as large")


def decoded(report: Report) -> Finding:
    """Decide (e), with the function of the reference that decodes to a mean."""
    tally = Tally()
    for (low, high), K, U in product(RANGES, range(2, 6), range(1, 5)):
        step, most = (high - low) / (K - 1), U * (K - 1)
        sums = {U * low + step * s for s in range(most + 1)}
        of_levels = {sum(v, Fraction(0)) for v in product([low + step * k for k in range(K)], repeat=U)}
        got = cell_mean(np.arange(most + 1, dtype=np.uint64), count=U, levels=K, range=Range(float(low), float(high)))
        close = all(abs(float(x) / U - y) < 2**-40 for x, y in zip(sorted(sums), got.tolist(), strict=True))
        tally.add({"K": K, "U": U}, of_levels == sums and max(sums) == U * high and close)
    sympy = package("sympy")
    r, D, k = sympy.Symbol("r"), sympy.Symbol("D"), sympy.symbols("k:4")
    affine = all((sum(r + D * one for one in k[:U]) - (U * r + D * sum(k[:U]))).expand() == 0 for U in range(1, 5))
    report.agree("HET-EQ5B", "symbolic", affine, "(e) the sum of r1 + Delta k_i, for one to four users")
    report.say(f"the sum of carried integers decodes to |U| r1 + Delta s in {tally.held} of {tally.cases} sizes")
    return Finding(tally.verdict, "an affine map that needs |U|", tally.against)
