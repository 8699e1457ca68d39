"""One survivor of a subgroup: n (1 - p) p^(n - 1) is the probability for a given subgroup, not for any of them.

Statement, for users that drop out with the probability p each, independently.
(a) Exactly one of the n users of a given subgroup survives with the probability n (1 - p) p^(n - 1).
(b) That is so in at least one of Z subgroups with the probability 1 - (1 - n (1 - p) p^(n - 1))^Z.
(c) Some user has a segment in clear exactly when a subgroup has one survivor, for every matrix in which each subgroup
is alone once: a cell of two subgroups with one survivor has one subgroup with one.
(d) In SecAgg, which ends only with t survivors, nobody has: the probability is 0. In HeteroSAg it is not, and for fixed
n and p it grows to 1 with the number of subgroups, unless users refuse such rounds (HSA-17, HSA-18).

(e) (12) goes to 0 with p, for subgroups of two users or more, and as n grows, for every p below 1. It need not fall at
once: from n to n + 1 it grows as long as p > n/(n + 1).

Idea. Every set of survivors is counted, with fractions, for up to five subgroups of two to four users and p = 1/10,
1/3 and 3/4; for others since users, and so subgroups, drop out independently. With a symbol for p the same counts are
polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from secagg_spec.arithmetic import segments
from secagg_spec.ledger import Finding, Report, Tally, package
from secagg_spec.privacy import heterosag_odds as odds

CLAIMS = {
    "HET-THM3": "expectation",
    "HET-REM5": "arithmetic",
    "HET-TAB3D": "expectation",
    "HET-REM5L": "symbolic",
}
SIZES = ((1, 2), (2, 2), (3, 2), (4, 2), (3, 3), (2, 4), (5, 2))
CHANCES = (Fraction(1, 10), Fraction(1, 3), Fraction(3, 4))


def formula(n: int, p: Fraction) -> Fraction:
    """Return (12) of the paper."""
    return n * (1 - p) * p ** (n - 1)


def polynomials(report: Report) -> Finding:
    """Decide (a), (b) and (e) for all p, and the limit of (d)."""
    sympy = package("sympy")
    p, n, Z = sympy.Symbol("p", positive=True), sympy.Symbol("n", positive=True), sympy.Symbol("Z")
    for subgroups, users in ((1, 2), (2, 2), (3, 2), (2, 3), (2, 4)):
        chance = sum(odds for counts, odds in fates(subgroups, users, p) if 1 in counts)
        left = sympy.expand(chance - (1 - (1 - formula(users, p)) ** subgroups))
        report.agree("HET-THM3", "symbolic", left == 0, f"(b) for all p: Z = {subgroups}, n = {users}")
    grown = sympy.limit(1 - sympy.Rational(1, 2) ** Z, Z, sympy.oo) == 1
    report.agree("HET-TAB3D", "symbolic", grown, "(d) 1 - (1 - q)^Z goes to 1")
    ratio = sympy.simplify(formula(n + 1, p) / formula(n, p) - p * (n + 1) / n) == 0
    report.check(ratio, "(e) from n to n + 1 the quotient is p (n + 1)/n, which goes to p")
    rare = [sympy.limit(formula(users, p), p, 0) for users in range(1, 9)]
    report.check(rare == [1, *[0] * 7], "(e) with p, for two users or more")
    many = [sympy.limit(formula(n, sympy.Rational(*given)), n, sympy.oo) for given in ((1, 10), (1, 2), (99, 100))]
    numeric = formula(2000, Fraction(99, 100)) < Fraction(1, 10**6) < formula(100, Fraction(99, 100))
    report.agree("HET-REM5L", "arithmetic", numeric, "(e) for p = 99/100 it is small for 2000 users, not for 100")
    return Finding("confirmed" if many == [0, 0, 0] else "refuted", "it goes to 0, for two users or more in a subgroup")


def fates(Z: int, n: int, p: Fraction) -> Iterator[tuple[list[int], Fraction]]:
    """Yield the numbers of survivors of Z subgroups of n users, with the probability, for every set of survivors."""
    for alive in product((0, 1), repeat=Z * n):
        counts = [sum(alive[z * n : z * n + n]) for z in range(Z)]
        yield counts, (1 - p) ** sum(alive) * p ** (Z * n - sum(alive))


def bare(counts: Sequence[int]) -> bool:
    """Return whether some cell of some segment, of either matrix, has one survivor."""
    cells = (cell for name in ("cyclic", "perfect") for row in segments.MATRICES[name](len(counts)) for cell in row)
    return any(sum(counts[z] for z in cell) == 1 for cell in cells)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    any_of_them = Tally()
    for (Z, n), p in product(SIZES, CHANCES):
        chances = list(fates(Z, n, p))
        given = sum(chance for counts, chance in chances if counts[0] == 1)
        some = sum(chance for counts, chance in chances if 1 in counts)
        report.check(given == formula(n, p) == odds.few(n, 2, p), f"(a) Z = {Z}, n = {n}, p = {p}")
        report.check(some == 1 - (1 - formula(n, p)) ** Z, f"(b) Z = {Z}, n = {n}, p = {p}")
        report.check(some == odds.any_of([odds.few(n, 2, p)] * Z), "(b) as the command prints it")
        if Z > 1:
            report.check(all(bare(counts) == (1 in counts) for counts, _ in chances), f"(c) Z = {Z}, n = {n}")
        case = {"Z": Z, "n": n, "p": str(p), "any": str(some), "(12)": str(formula(n, p))}
        any_of_them.add(case, some == formula(n, p), condition=Z == 1)
    report.check(any_of_them.exact, "(12) is for one subgroup exactly")
    report.say(f"(12) is the probability for any subgroup in {any_of_them.held} of {any_of_them.cases} cases: Z = 1")
    return {
        "HET-THM3": Finding(
            "imprecise" if any_of_them.verdict == "conditional" else any_of_them.verdict,
            "it is the probability for one given subgroup",
            any_of_them.against,
        ),
        "HET-REM5": remark(report),
        "HET-REM5L": polynomials(report),
        "HET-TAB3D": breach(report),
    }


def remark(report: Report) -> Finding:
    """Decide the number of remark 5: n = 8 and p = 0.1."""
    exact = formula(8, Fraction(1, 10))
    counted = sum(chance for counts, chance in fates(1, 8, Fraction(1, 10)) if counts == [1])
    report.agree("HET-REM5", "enumeration", counted == Fraction(72, 10**8), "all 256 sets of survivors of eight users")
    numbers = {"given": str(exact), "any of 20": f"{float(1 - (1 - exact) ** 20):.3g}"}
    return Finding("confirmed" if exact == Fraction("7.2e-7") else "refuted", "72/10^8 exactly", numbers=numbers)


def breach(report: Report) -> Finding:
    """Decide (d): SecAgg with a threshold, and HeteroSAg with ever more subgroups of eight users."""
    N, t = 6, 3
    ends = [counts for counts, _ in fates(1, N, Fraction(1, 10)) if counts[0] >= t]
    report.check(1 not in [counts[0] for counts in ends], "(d) SecAgg ends with t survivors or more")
    one = formula(8, Fraction(1, 10))
    many = [1 - (1 - one) ** Z for Z in (1, 10, 100)]
    report.check(many[0] == one and many == sorted(many) and many[-1] > 90 * one, "(d) it grows with Z")
    small = all(formula(n + 1, p) < formula(n, p) for p in CHANCES[:1] for n in range(1, 20))
    report.check(small, "(d) it falls with n at p = 1/10")
    grown = {"n": 8, "p": "1/10", "Z": 100, "any": f"{float(many[-1]):.3g}", "(12)": f"{float(one):.3g}"}
    verdict = "conditional" if many[-1] > many[0] else "confirmed"
    return Finding(verdict, "0 for SecAgg; in HeteroSAg small for large n, and not for many subgroups", grown)
