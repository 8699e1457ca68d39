"""How much noise quantisation adds to gradients: updates are rounded after they were made eta_l times smaller.

Statement. Let Delta = eta_l (g_1 + ... + g_E), with independent stochastic gradients of mean m and variance s^2 in each
of d entries, sigma_l^2 = d s^2, and let Q round to multiples of 1/c.
(a) The mean of Q(Delta)/(eta_l E) is the gradient m, and its variance is at most sigma_l^2/E + d/(4 c^2 eta_l^2 E^2).
    The bound is attained. For one local step and eta_l = 1 it is sigma_c^2 = d/(4 c^2) + sigma_l^2 of Lemma 1.
(b) So the variance for each local step, that is E times the one in (a), is at most sigma_c^2 for all c exactly when
    eta_l^2 E >= 1. The same condition decides whether quantisation adds at most d/(4 c^2) to it; it adds d/(4 c^2)
    exactly when eta_l^2 E = 1, and less and less as c grows.

Idea. Lemma 1 rounds a gradient, eq. (8) an update. Entries are rounded on their own, so that one entry decides. Given
Delta, rounding has mean Delta and variance at most 1/(4 c^2), with equality at midpoints, and dividing by eta_l E
divides variances by its square. The program sums over all gradients and both ways to round; and for all numbers solves
what the share of rounding at a midpoint is, and when it is at most 1/(4 c^2).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, floor

from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-THM1S": "expectation",
    "BAS-REM1": "expectation",
}
LEVELS, STEPS = (1, 4), (1, 2, 4, 100)
RATES = (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(2))


def moments(m: Fraction, s: Fraction, eta_l: Fraction, E: int, c: int) -> tuple[Fraction, Fraction]:
    """Return mean and variance of Q(Delta)/(eta_l E) for gradients m + s and m - s with probability 1/2 each."""
    law = []
    for plus in range(E + 1) if s else (0,):
        chance = Fraction(comb(E, plus), 2**E) if s else Fraction(1)
        scaled = c * eta_l * (E * m + (2 * plus - E) * s)
        up = scaled - floor(scaled)
        law += [(chance * p, (floor(scaled) + k) / (c * eta_l * E)) for k, p in ((0, 1 - up), (1, up))]
    mean = sum((p * value for p, value in law), Fraction(0))
    return mean, sum((p * (value - mean) ** 2 for p, value in law), Fraction(0))


def largest(eta_l: Fraction, E: int, c: int, s: Fraction, report: Report) -> Fraction:
    """Return the largest variance for each local step, E times that of `moments`, over a grid of means."""
    bound = s**2 / E + Fraction(1, 4 * c * c) / (eta_l * E) ** 2
    step, found = 1 / (c * eta_l * E), Fraction(0)
    for m in (step * Fraction(k, 4) for k in range(-4, 5)):
        mean, variance = moments(m, s, eta_l, E, c)
        report.check(mean == m and variance <= bound, f"(a) eta_l = {eta_l}, E = {E}, c = {c}, m = {m}, s = {s}")
        found = max(found, variance)
    return found * E


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b), and count what the paper's step sizes need."""
    bounded, added = Tally(), Tally()
    for c, eta_l, E in product(LEVELS, RATES, STEPS):
        s = 1 / (c * eta_l)
        with_noise, without = largest(eta_l, E, c, s, report), largest(eta_l, E, c, Fraction(0), report)
        extra = Fraction(1, 4 * c * c) / (eta_l**2 * E)
        report.check(with_noise == s**2 + extra and without == extra, f"(a) is attained: {c, eta_l, E}")
        case = {"eta_l": str(eta_l), "E": E, "c_l": c, "d": 1, "added": str(without), "printed": f"1/{4 * c * c}"}
        enough = eta_l**2 * E >= 1
        bounded.add(case, with_noise <= s**2 + Fraction(1, 4 * c * c), condition=enough)
        added.add(case, without <= Fraction(1, 4 * c * c), condition=enough)
        report.check((without == Fraction(1, 4 * c * c)) == (eta_l**2 * E == 1), f"(b) {c, eta_l, E}")
    report.check(bounded.exact and added.exact, "(b) sigma_c^2 and its share are bounds exactly when eta_l^2 E >= 1")
    report.say(f"what is added is at most d/(4 c^2) in {added.held} of {added.cases} settings")
    report.say(f"sigma_c^2 bounds the variance for each local step in {bounded.held} of {bounded.cases} settings,")
    report.say("which are those with eta_l^2 E >= 1")
    by_algebra(report)
    needed = {f"local steps for eta_l {rate}": int(1 / rate**2) for rate in (Fraction(1, 10), Fraction(1, 100))}
    shown = ", ".join(f"{steps} {name}" for name, steps in needed.items())
    report.say(f"at the step sizes that the paper found best that takes {shown}")
    return {
        "BAS-THM1S": Finding(bounded.verdict, "updates are rounded, not gradients", bounded.against, needed),
        "BAS-REM1": Finding(
            added.verdict, "the share of rounding grows by 1/(eta_l^2 E)", added.against, sizes(report)
        ),
    }


def by_algebra(report: Report) -> None:
    """Find (b) again from the two ways to round an update at a midpoint, for all step sizes, E and c."""
    sympy = package("sympy")
    eta, E, c, n = sympy.symbols("eta E c n", positive=True)
    half = sympy.Rational(1, 2)
    values = [(n + up) / (c * eta * E) for up in (0, 1)]
    middle = (n + half) / (c * eta * E)
    added = sympy.simplify(E * sum(half * (value - middle) ** 2 for value in values))
    printed = 1 / (4 * c**2)
    equal = sympy.solve(sympy.Eq(added, printed), E) == [1 / eta**2]
    falls = all(sympy.simplify(sympy.diff(added, size)).is_negative for size in (E, c))
    shown = "what is added is 1/(4 c^2) exactly when E is 1/eta_l^2, and falls in E and in c"
    report.agree(("BAS-THM1S", "BAS-REM1"), "symbolic", bool(falls and equal), shown)


def sizes(report: Report) -> dict[str, str]:
    """Return what is added for a million entries, c_l = 2^16 and one local step, at the paper's step sizes."""
    found = {}
    for rate in (Fraction(1), Fraction(1, 10), Fraction(1, 100)):
        value = Fraction(10**6, 4 * 2**32) / rate**2
        found[f"added for eta_l {rate}"] = f"{float(value):.1e}"
        report.say(f"d = 10^6, c_l = 2^16, E = 1, eta_l = {rate}: {value} = {float(value):.1e} is added")
    return found
