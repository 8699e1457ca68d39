"""Cutting groups into L subgroups each leaves the bound on the error as it is, when segments are equally long.

Statement. Let sigma^2 be (r2 - r1)^2/(4 N^2) times the sum, over the cells of all segments, of L_l |S|/(K - 1)^2.
(a) With L subgroups in each of G groups a user of group g quantises L segments with each lower K and (G - g) L with
    K_g, whatever the sizes of groups and subgroups are. So sigma^2 does not change with L if Z = G L divides m; for
    groups of n users it is (r2 - r1)^2/(4 N^2) (m/G) n sum_g (2(G - g) - 1)/(K_g - 1)^2.
(b) Where Z does not divide m, segments differ in length, and sigma^2 changes with L, up or down, unless all K are
    equal. So it does where groups have different numbers of subgroups.
(c) With all K equal sigma^2 is (r2 - r1)^2/(4 N^2) m N/(K - 1)^2 for every cutting, which is that of SecAgg.
(d) The error itself is another matter: cutting changes which elements are quantised with which levels. So it changes,
    for inputs on levels here and between levels there. It does not for users whose elements are all equal, nor in the
    mean over all orders of the elements, since each user quantises as many with each K as before.

Idea. The (2(Z - z) - 1) segments of subgroup z add up to L^2 (2(G - g) - 1) for group g, a polynomial in G, g and L.
The bound of the reference adds up the cells of the plan; it is held against the formulas for both matrices, for two and
three groups. For (d) the exact variance of each element of each user is added up, for two groups and four elements.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from secagg_spec.arithmetic.levels import Range, round_levels
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.protocols.heterosag.costs import error_bound
from secagg_spec.protocols.heterosag.plan import Parameters, cells_of

CLAIMS = {
    "HET-PROP1": "enumeration",
    "HET-TAB3A": "enumeration",
    "HET-PROP1E": "expectation",
}
UNIT = Range(-1.0, 1.0)
DRAWS = 4000


def cut(sizes: tuple[int, ...], subgroups: tuple[int, ...], levels: tuple[int, ...], m: int, matrix: str) -> Parameters:
    """Return the plan of groups that are cut into subgroups."""
    return Parameters(sum(sizes), 1, 1, 3, m, sizes, subgroups, levels, UNIT, matrix)


def of_the_theorem(n: int, levels: tuple[int, ...], m: int) -> Fraction:
    """Return sigma^2 as Theorem 2 has it, for G groups of n users on [-1, 1]."""
    G = len(levels)
    terms = (Fraction(2 * (G - g) - 1, (K - 1) ** 2) for g, K in enumerate(levels))
    return Fraction(4, 4 * (G * n) ** 2) * Fraction(m, G) * n * sum(terms, Fraction(0))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c)."""
    identities(report)
    return {"HET-PROP1": partition(report), "HET-TAB3A": homogeneous(report), "HET-PROP1E": itself(report)}


def identities(report: Report) -> None:
    """Prove the sums of (a) and (c)."""
    sympy = package("sympy")
    G, g, L, j = sympy.symbols("G g L j", integer=True, nonnegative=True)
    group = sympy.summation(2 * (G * L - g * L - j) - 1, (j, 0, L - 1))
    cut_alike = sympy.expand(group - L**2 * (2 * (G - g) - 1)) == 0
    report.agree("HET-PROP1", "symbolic", cut_alike, "(a) the segments of a group, L^2 times those without subgroups")
    all_groups = sympy.summation(2 * (G - g) - 1, (g, 0, G - 1))
    report.agree("HET-TAB3A", "symbolic", sympy.expand(all_groups - G**2) == 0, "(c) the segments of all groups")


def partition(report: Report) -> Finding:
    """Decide (a) and (b) for two and three groups, in one to three subgroups each."""
    tally, up, down = Tally(), 0, 0
    for n, L, m in sorted(product((6, 7, 9, 12), (1, 2, 3), range(6, 20)), key=lambda case: (case[2], case[0])):
        for G, matrix in product((2, 3), ("cyclic", "perfect")):
            if n // L < 3 or m < G * L:
                continue
            levels = (2, 4, 9)[:G]
            found = error_bound(cut((n,) * G, (L,) * G, levels, m, matrix))
            whole = error_bound(cut((n,) * G, (1,) * G, levels, m, matrix))
            equal = m % (G * L) == 0
            case = {"G": G, "n": n, "L": L, "m": m, "matrix": matrix, "without": str(whole), "with": str(found)}
            if equal:
                tally.add(case, found == whole)
            up, down = up + (found > whole), down + (found < whole)
            report.check(not equal or found == of_the_theorem(n, levels, m), f"(a) as in Theorem 2: {case}")
    report.check(up > 0 and down > 0, "(b) up or down")
    for subgroups in ((1, 1), (2, 2), (3, 3)):
        report.check(
            error_bound(cut((9, 13), subgroups, (2, 4), 12, "cyclic"))
            == error_bound(cut((9, 13), (1, 1), (2, 4), 12, "cyclic")),
            "(a) groups of different sizes",
        )
    unequal = error_bound(cut((6, 6), (2, 1), (2, 4), 6, "perfect"))
    report.check(unequal != error_bound(cut((6, 6), (1, 1), (2, 4), 6, "perfect")), "(b) cutting one group only")
    report.say(
        f"sigma^2 with subgroups: unchanged in {tally.held} of {tally.cases} plans with equal segments;"
        f" with others it is larger in {up}, less in {down}"
    )
    return Finding(tally.verdict, "unchanged when segments are equally long", tally.against)


def itself(report: Report) -> Finding:
    """Decide (d), for inputs whose elements are -1 or 0, a level and a midpoint of two levels."""
    plans = [cut((6, 6), (L, L), (2, 3), 4, "cyclic") for L in (1, 2)]
    tally, bounds, means = Tally(), Tally(), [Fraction(0), Fraction(0)]
    for x in product((Fraction(-1), Fraction(0)), repeat=4):
        before, after = (error(p, x) for p in plans)
        alike = len(set(x)) == 1
        case: dict[str, object] = {"x": [int(e) for e in x]}
        tally.add(case | {"error in one subgroup": str(before), "in two": str(after)}, before == after)
        bounds.add(case, error_bound(plans[0]) == error_bound(plans[1]) >= max(before, after))
        report.check(before == after or not alike, "(d) unchanged when all elements are equal")
        if x.count(Fraction(0)) == 1:
            means = [means[0] + before, means[1] + after]
    report.check(means[0] == means[1] > 0, "(d) the same in the mean over the orders of an input")
    x = (Fraction(-1), Fraction(-1), Fraction(-1), Fraction(0))
    near = [abs(sampled(p, x) / float(error(p, x)) - 1) < 0.15 for p in plans]
    report.agree(
        "HET-PROP1E", "samples", all(near), f"(d) the mean error of {DRAWS} roundings by the reference: {near}"
    )
    report.say(f"the error itself is unchanged for {tally.held} of {tally.cases} inputs")
    return Finding(by_reading((tally, bounds)), "the bound stays", tally.against)


def error(p: Parameters, x: tuple[Fraction, ...]) -> Fraction:
    """Return E||p' - p||^2 when all users have the input x, on [-1, 1]."""
    total = Fraction(0)
    for cell in p.parts:
        step = Fraction(2, cell.levels - 1)
        parts = [divmod(e + 1, step)[1] for e in x[cell.start : cell.stop]]
        total += len(cell.members) * sum((part * (step - part) for part in parts), Fraction(0))
    return total / p.N**2


def sampled(p: Parameters, x: tuple[Fraction, ...]) -> float:
    """Return the mean of ||p' - p||^2 over roundings by the reference, when all users have the input x."""
    draw, given = np.random.default_rng(5), np.array(x, dtype=np.float64)
    total = np.zeros((DRAWS, p.d))
    for user in range(p.N):
        levels = np.concatenate([np.full(cell.stop - cell.start, cell.levels) for cell in cells_of(p, user)])
        rounded = round_levels(np.tile(given, (DRAWS, 1)), levels, p.range, draw.random((DRAWS, p.d)))
        total += p.range.value(rounded, levels.astype(np.float64)) - given
    return float(((total / p.N) ** 2).sum(axis=1).mean())


def homogeneous(report: Report) -> Finding:
    """Decide (c)."""
    tally = Tally()
    for sizes, K, matrix in product(combinations_with_replacement((3, 7, 9), 2), (2, 5), ("cyclic", "perfect")):
        for subgroups, m in product(product((1, 2, 3), repeat=2), (7, 12)):
            if any(n // L < 3 for n, L in zip(sizes, subgroups, strict=True)):
                continue
            N = sum(sizes)
            secagg = Fraction(4, 4 * N**2) * m * N * Fraction(1, (K - 1) ** 2)
            case = {"sizes": list(sizes), "L": list(subgroups), "m": m, "K": K}
            tally.add(case, error_bound(cut(sizes, subgroups, (K, K), m, matrix)) == secagg)
    report.check(of_the_theorem(4, (6, 6, 6), 12) == Fraction(12, 12 * 25), "(c) the formula of Theorem 2 as well")
    report.say(f"equal levels: the bound of SecAgg in {tally.held} of {tally.cases} plans")
    return Finding(tally.verdict, "one bound for all plans", tally.against)
