"""The stochastic quantiser is unbiased, and its variance is at most 1/(4 c^2): Lemma 1 of BASecAgg.

Statement. Let Q_c(x) be floor(c x)/c or (floor(c x) + 1)/c, the latter with probability f = c x - floor(c x).
(a) E[Q_c(x)] = x.
(b) E[(Q_c(x) - x)^2] = (1/4 - (f - 1/2)^2) / c^2 <= 1/(4 c^2), with equality at the midpoints f = 1/2.
(c) For a random vector g of d entries with mean m and E||g - m||^2 = s^2: E[Q_c(g)] = m, and
    E||Q_c(g) - m||^2 = E||Q_c(g) - g||^2 + s^2 <= d/(4 c^2) + s^2; the bound is attained.
(d) The step in (c) does not follow from the triangle inequality: it needs (a).

Idea. With n = floor(c x) everything is a polynomial in n, f and 1/c, so (a) and (b) are identities of polynomials. For
(c), the cross term E<Q_c(g) - g, g - m> vanishes, since the mean of the first factor is 0 for each g. For (d), rounding
to the *nearest* integer obeys the triangle inequality like any other map, and breaks the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import floor
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-EQ7": "symbolic",
    "BAS-LEM1A": "expectation",
    "BAS-LEM1B": "expectation",
    "BAS-LEM1C": "expectation",
}

Distribution: TypeAlias = Sequence[tuple[Fraction, Fraction]]
"""Pairs of probability and value."""

HALF = Fraction(1, 2)


def quantised(x: Fraction, c: int) -> Distribution:
    """Return the distribution of Q_c(x), as in eq. (7)."""
    n = floor(c * x)
    f = c * x - n
    return ((1 - f, Fraction(n, c)), (f, Fraction(n + 1, c)))


def nearest(x: Fraction, c: int) -> Distribution:
    """Return x rounded to the nearest multiple of 1/c, ties upwards."""
    return ((Fraction(1), Fraction(floor(c * x + HALF), c)),)


def mean(values: Distribution) -> Fraction:
    """Return the expectation."""
    return sum((p * value for p, value in values), Fraction(0))


def spread(values: Distribution, centre: Fraction) -> Fraction:
    """Return the mean squared distance from a centre."""
    return mean([(p, (value - centre) ** 2) for p, value in values])


def prove(report: Report) -> dict[str, Finding]:
    """Prove (a) and (b) as identities, (c) and (d) on every small distribution of a grid."""
    identities(report)
    code_follows_the_definition(report)
    cross_terms(report)
    return {
        "BAS-EQ7": Finding("confirmed", "the mean minus x is the zero polynomial in floor(c x), c x - floor(c x), 1/c"),
        **lemma(report),
        "BAS-LEM1C": triangle(report),
    }


def identities(report: Report) -> None:
    """Check (a) and (b) as identities of polynomials."""
    sympy = package("sympy")
    n, f, c = sympy.symbols("n f c")
    x = (n + f) / c
    outcomes = ((1 - f, n / c), (f, (n + 1) / c))
    bias = sum(p * value for p, value in outcomes) - x
    report.check(sympy.simplify(bias) == 0, "E[Q_c(x)] - x = 0")
    variance = sum(p * (value - x) ** 2 for p, value in outcomes)
    printed = (sympy.Rational(1, 4) - (f - sympy.Rational(1, 2)) ** 2) / c**2
    report.check(sympy.simplify(variance - printed) == 0, "the variance is (1/4 - (f - 1/2)^2)/c^2, eq. (26)")
    report.check(sympy.simplify(printed.subs(f, sympy.Rational(1, 2)) - 1 / (4 * c**2)) == 0, "attained at f = 1/2")
    report.say("identities in n, f, c: the bias is 0, and the variance is (1/4 - (f - 1/2)^2)/c^2")


def code_follows_the_definition(report: Report) -> None:
    """Check that of 64 equally spaced draws exactly 64 f round up, for numbers with 6 binary digits of f."""
    draws = np.arange(64) / 64
    for n, j in product(range(-3, 3), range(64)):
        rounded = stochastic_round(np.full(64, n + j / 64), draws)
        report.check(bool(np.isin(rounded, [n, n + 1]).all()), f"{n} + {j}/64 is rounded to a neighbour")
        report.check(int((rounded == n + 1).sum()) == j, f"the code rounds {n} + {j}/64 up with probability {j}/64")
    means = [mean(quantised(Fraction(k, 12), c)) == Fraction(k, 12) for k in range(-24, 25) for c in range(1, 6)]
    report.agree("BAS-EQ7", "expectation", all(means), "the mean is x for 49 numbers at five levels")
    report.say("the code: over all draws in steps of 1/64, exactly the fraction f rounds up, for 384 numbers")


def cross_terms(report: Report) -> None:
    """Check (c) and (d) as identities, for a g of two values with any probabilities."""
    sympy = package("sympy")
    c, p, u, v, f, h, eu, ev = sympy.symbols("c p u v f h eu ev")
    weights, g = (p, 1 - p), (u, v)
    rounded = [((1 - f, u - f / c), (f, u + (1 - f) / c)), ((1 - h, v - h / c), (h, v + (1 - h) / c))]
    m = p * u + (1 - p) * v
    kept = sum(w * sum(r * y for r, y in law) for w, law in zip(weights, rounded, strict=True)) - m
    report.agree("BAS-LEM1A", "symbolic", sympy.expand(kept) == 0, "(25) for every g of two values")
    whole = sum(w * sum(r * (y - m) ** 2 for r, y in law) for w, law in zip(weights, rounded, strict=True))
    own = sum(w * (x - m) ** 2 for w, x in zip(weights, g, strict=True))
    noise = (p * f * (1 - f) + (1 - p) * h * (1 - h)) / c**2
    exact = sympy.simplify(whole - own - noise) == 0
    report.agree(
        "BAS-LEM1B", "symbolic", exact, "(27) is an equality, and what rounding adds is a mean of f (1 - f)/c^2"
    )
    off = p * (u + eu - m) ** 2 + (1 - p) * (v + ev - m) ** 2 - own - p * eu**2 - (1 - p) * ev**2
    cross = 2 * (p * eu * (u - m) + (1 - p) * ev * (v - m))
    half = sympy.Rational(1, 2)
    example = cross.subs({p: half, u: -1, v: -half, eu: 0, ev: half})
    broken = sympy.expand(off - cross) == 0 and example == half**3
    report.agree(
        "BAS-LEM1C", "symbolic", broken, "errors eu, ev of any rounding leave a cross term, here 1/8 and above 0"
    )


def grid(entries: int) -> Iterator[tuple[int, Distribution, tuple[Fraction, ...]]]:
    """Yield a level, and a g that is uniform on some values: quarters in [-1, 1], and sixths for two values."""
    values = sorted({Fraction(k, m) for m in ((4, 6) if entries == 2 else (4,)) for k in range(-m, m + 1)})
    for c in (1, 2, 3):
        for chosen in product(values, repeat=entries):
            yield c, [(Fraction(1, entries), value) for value in chosen], chosen


def through(rounding: Callable[[Fraction, int], Distribution], g: Distribution, c: int) -> Distribution:
    """Return the distribution of the rounded g."""
    return [(p * r, value) for p, x in g for r, value in rounding(x, c)]


def lemma(report: Report) -> dict[str, Finding]:
    """Decide (22) and (23), entry by entry; both sides of (23) are sums over the d entries."""
    unbiased, bounded, attained = Tally(), Tally(), 0
    for entries in (2, 3):
        for c, g, chosen in grid(entries):
            m, rounded = mean(g), through(quantised, g, c)
            case = {"c": c, "g": [str(value) for value in chosen]}
            unbiased.add(case, mean(rounded) == m)
            limit = Fraction(1, 4 * c * c) + spread(g, m)
            bounded.add(case, spread(rounded, m) <= limit)
            attained += spread(rounded, m) == limit
            noise = sum((p * spread(quantised(x, c), x) for p, x in g), Fraction(0))
            report.check(spread(rounded, m) == noise + spread(g, m), f"the cross term vanishes for {case}")
    report.check(attained > 0, "the bound d/(4 c^2) + sigma_l^2 is attained")
    report.say(
        f"{bounded.cases} random g: (22) held in {unbiased.held}, (23) in {bounded.held}, equality in {attained}"
    )
    return {
        "BAS-LEM1A": Finding(unbiased.verdict, "the mean is kept for each g, hence on average", unbiased.against),
        "BAS-LEM1B": Finding(bounded.verdict, "the bound holds, and is attained at midpoints", bounded.against),
    }


def triangle(report: Report) -> Finding:
    """Decide whether the step (27) holds for every rounding, as it would if the triangle inequality gave it."""
    step, own = Tally(), Tally()
    for c, g, chosen in grid(2):
        m = mean(g)
        for tally, rounding in ((step, nearest), (own, quantised)):
            noise = sum((p * spread(rounding(x, c), x) for p, x in g), Fraction(0))
            left, right = spread(through(rounding, g, c), m), noise + spread(g, m)
            case = {
                "rounding": "nearest",
                "c": c,
                "g": [str(x) for x in chosen],
                "left": str(left),
                "right": str(right),
            }
            tally.add(case, left <= right)
    report.check(own.verdict == "confirmed", "(27) holds for Q_c")
    report.say(
        f"(27) for rounding to the nearest: fails in {step.cases - step.held} of {step.cases} cases; for Q_c: never"
    )
    verdict = "imprecise" if step.against else "confirmed"
    return Finding(verdict, "the step needs that the rounding is unbiased; then it is an equality", step.against)
