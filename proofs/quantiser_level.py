"""A higher level c does not always make the quantiser's variance smaller.

Statement. The variance of Q_c(x) is V(c) = f (1 - f) / c^2 with f = c x - floor(c x).
(a) V is not monotone in c: x = 1/2 is a multiple of 1/2 and not of 1/3, so that V(2) = 0 and V(3) = 1/36.
(b) V(k c) <= V(c) / k for each integer k >= 1.
(c) The largest variance over all x is 1/(4 c^2), which falls in c.
The paper sends its reader to Lemma 1 for what it means, and the lemma has the bound of (c). So the sentence fails when
it is read as one on each x, and holds when it is read as one on the bound.

Idea of (b). A sum of k independent variables that are 1 with probability f has mean k f and variance k f (1 - f). Among
all integer variables with mean k f, the one on the two integers beside k f has the least variance, and that variance is
c^2 k^2 V(k c).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import floor

import numpy as np

from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading

CLAIMS = {
    "BAS-VARC": "readings",
}
LEVELS = range(1, 25)
GRID = sorted({Fraction(k, m) for m in range(1, 13) for k in range(m)}, key=lambda x: (x.denominator, x))


def variance(x: Fraction, c: int) -> Fraction:
    """Return the variance of Q_c(x)."""
    f = c * x - floor(c * x)
    return f * (1 - f) / c**2


def of_the_code(x: Fraction, c: int) -> Fraction:
    """Return the variance of what the code makes of x, over 64 draws, which is exact where c x has 6 binary digits."""
    values = [Fraction(int(n), c) for n in stochastic_round(np.full(64, float(c * x)), np.arange(64) / 64)]
    return sum(((value - x) ** 2 for value in values), Fraction(0)) / 64


def prove(report: Report) -> dict[str, Finding]:
    """Decide both readings: for each x, and for the bound over all x."""
    each, bound = at_each(report), over_all()
    half = [of_the_code(Fraction(1, 2), c) for c in (2, 3, 6)]
    grows = half[0] == 0 and half[1] == Fraction(1, 36) and half[2] == 0
    report.agree(
        "BAS-VARC", "expectation", grows, "the code rounds 1/2 with the variances 0, 1/36 and 0 at the levels 2, 3, 6"
    )
    report.say(f"{each.cases} pairs of levels: the higher level has the larger variance in {each.cases - each.held}")
    report.say(f"the bound 1/(4 c^2) is attained and falls in {bound.held} of {bound.cases} pairs")
    verdict = by_reading((each, bound))
    return {"BAS-VARC": Finding(verdict, "at a fixed x the variance can grow with c; its bound cannot", each.against)}


def at_each(report: Report) -> Tally:
    """Compare all pairs of levels at all fractions with denominators up to 12."""
    claim = Tally()
    for x in GRID:
        for low in LEVELS:
            for high in range(low + 1, LEVELS.stop):
                before, after = variance(x, low), variance(x, high)
                case = {"x": str(x), "c": [low, high], "variance": [str(before), str(after)]}
                claim.add(case, after <= before)
                if high % low == 0:
                    report.check(after * (high // low) <= before, f"V(k c) <= V(c)/k for {case}")
    return claim


def over_all() -> Tally:
    """Compare the largest variances of all pairs of levels, each of which must be the bound of Lemma 1."""
    tally = Tally()
    largest = {c: max(variance(x, c) for x in (*GRID, Fraction(1, 2 * c))) for c in LEVELS}
    for low, high in combinations(LEVELS, 2):
        lemma = all(largest[c] == Fraction(1, 4 * c * c) for c in (low, high))
        tally.add({"c": [low, high]}, lemma and largest[high] < largest[low])
    return tally
