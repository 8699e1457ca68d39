"""What the server computes from a full buffer: equations (11), (13), (15), and how they relate to (4).

Statement. Let w_i = c_g Q_{c_g}(s_i) be the realised weights and v_i = c_l Q_{c_l}(Delta_i) the quantised updates.
(a) What is recovered is sum w_i v_i, that is c_g c_l sum Q(s_i) Q(Delta_i); it is not c_g c_l times eq. (11).
(b) Eq. (13) equals eq. (15) when its undefined s_{c_g} is read as Q_{c_g}(s); read as the weight of eq. (12) it is
    smaller by the factor c_g.
(c) Both hold exactly when sum w_i v_i lies in the range that phi^-1 decodes, -(q + 1)/2 ... (q - 3)/2, and not all
    weights are 0.
(d) Eq. (15) is an unbiased estimate of eq. (4) when eq. (12) leaves nothing to chance (every c_g s_i is an integer) or
    all s_i in the buffer are equal, and in general not. Of the buffers of two and three users with delays up to 10, for
    c_g = 1, 2, 3, 4, 8, 16, 64, in which no realised weight can be 0, one more is unbiased, by coincidence: c_g = 8
    with the delays 2 and 6.

Idea. (a) to (c) are exact fractions against arithmetic in F_q. In (d) the quantised updates are unbiased given the
weights, so what counts is the expectation of w_i / sum w, a finite sum. (b) is an identity in the weights besides, and
the bias of one buffer is found again by rounding with the code, with draws from a fixed stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import floor, prod

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import stochastic_round
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "BAS-EQ11": "readings",
    "BAS-EQ13": "readings",
    "BAS-EQ15": "enumeration",
    "BAS-UNB": "expectation",
}
Q = 31


def phi_inverse(y: int, q: int) -> int:
    """Return phi^-1(y), eq. (14), as printed."""
    return y if 2 * y < q - 1 else y - q


def recovered(weights: Sequence[int], updates: Sequence[int], q: int) -> int:
    """Return the sum that the server decodes."""
    return phi_inverse(sum(w * v for w, v in zip(weights, updates, strict=True)) % q, q)


def rounded(x: Fraction, c: int) -> list[tuple[Fraction, int]]:
    """Return the distribution of c Q_c(x): probabilities and integers."""
    below = floor(c * x)
    up = c * x - below
    return [(1 - up, below)] if not up else [(1 - up, below), (up, below + 1)]


def prove(report: Report) -> dict[str, Finding]:
    """Compare the equations on every case of a grid."""
    found = {**recovery(report), "BAS-EQ15": range_of_sums(report), "BAS-UNB": expectation(report)}
    for_all_weights(report)
    drawn(report)
    return found


def for_all_weights(report: Report) -> None:
    """Check (b) as identities in the weights and updates of three users."""
    sympy = package("sympy")
    c_g, c_l = sympy.symbols("c_g c_l")
    Q, V = sympy.symbols("Q1:4"), sympy.symbols("V1:4")
    total = sum(c_g * w * c_l * v for w, v in zip(Q, V, strict=True))
    update = sum(w * v for w, v in zip(Q, V, strict=True)) / sum(Q)
    read = sympy.simplify(total / (c_g * c_l * sum(Q)) - update)
    small = sympy.simplify(total / (c_g * c_l * sum(c_g * w for w in Q)) - update / c_g)
    report.agree("BAS-EQ13", "symbolic", read == small == 0, "eq. (13) is eq. (15), or 1/c_g of it")


def drawn(report: Report) -> None:
    """Find the bias of the counterexample of (d) again, by rounding with the code 2^17 times."""
    count, stale = 2**17, (Fraction(1), Fraction(1, 2))
    draws = draw_elements(SeededSource(b"weighted update", "bias"), Ring(2**20), (count,)).astype(float) / 2**20
    second = stochastic_round(np.full(count, float(3 * stale[1])), draws)
    off = float(np.mean(3 / (3 + second))) - float(stale[0] / sum(stale))
    exact = float(bias(3, stale)[0])
    report.agree("BAS-UNB", "samples", abs(off - exact) < exact / 4, f"a bias of {off:.5f} among {count} draws")


def recovery(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b), by readings: which of them holds in every case."""
    c_l, q, s = 4, 2**31 - 1, (Fraction(1), Fraction(1, 3))
    updates = sorted((Fraction(k, 8) for k in range(-5, 6)), key=lambda x: (abs(x), -x))
    readings = {"real": Tally(), "quantised": Tally()}
    divisors = {"Q_c(s)": Tally(), "c Q_c(s)": Tally(), "s": Tally()}
    factors = set()
    for c_g, (first, second) in product((2, 64), product(updates, repeat=2)):
        chances = [rounded(value, c_g) for value in s] + [rounded(value, c_l) for value in (first, second)]
        for outcome in product(*chances):
            w, v = [value for _, value in outcome[:2]], [value for _, value in outcome[2:]]
            total = recovered(w, v, q)
            case = {"c_g": c_g, "c_l": c_l, "s": [str(x) for x in s], "Delta": [str(first), str(second)]}
            case |= {"weights": w, "quantised": v}
            quantised = sum(Fraction(a, c_g) * Fraction(b, c_l) for a, b in zip(w, v, strict=True))
            readings["real"].add(case, Fraction(total, c_g * c_l) == s[0] * first + s[1] * second)
            readings["quantised"].add(case, Fraction(total, c_g * c_l) == quantised)
            update = quantised / Fraction(sum(w), c_g)
            for name, divisor in (("Q_c(s)", Fraction(sum(w), c_g)), ("c Q_c(s)", Fraction(sum(w))), ("s", sum(s))):
                printed = Fraction(total) / (c_g * c_l * divisor)
                divisors[name].add(case, printed == update)
                if name == "c Q_c(s)" and update and c_g == 64:
                    factors.add(printed / update)
    for title, tallies in (("eq. (11)", readings), ("eq. (13) against (15)", divisors)):
        for name, tally in tallies.items():
            report.say(f"{title}, read with {name}: holds in {tally.held} of {tally.cases} cases")
    report.check(factors == {Fraction(1, 64)}, "with the weights of eq. (12) eq. (13) is 1/64 of eq. (15)")
    report.check(readings["real"].against is not None, "(a) the sum of the real updates is not what is recovered")
    sums = Finding(readings["quantised"].verdict, "the recovered sum is that of the quantised updates, as in eq. (15)")
    factor = {"factor with c_g = 64": str(factors.pop())}
    norm = Finding(
        by_reading(divisors.values()), "only the reading Q_c(s) gives eq. (15)", divisors["c Q_c(s)"].against, factor
    )
    return {"BAS-EQ11": sums, "BAS-EQ13": norm}


def range_of_sums(report: Report) -> Finding:
    """Decide (c) for all weights up to 4 and all updates between -7 and 7, for two users and q = 31."""
    tally, small_first = Tally(), sorted(range(-7, 8), key=lambda v: (abs(v), -v))
    for weights, updates in product(product((1, 2, 3, 4, 0), repeat=2), product(small_first, repeat=2)):
        exact = sum(w * v for w, v in zip(weights, updates, strict=True))
        holds = sum(weights) > 0 and recovered(weights, updates, Q) == exact
        fits = sum(weights) > 0 and -(Q + 1) // 2 <= exact <= (Q - 3) // 2
        case = {"q": Q, "weights": list(weights), "quantised": list(updates)}
        case |= {"sum": exact, "decoded": recovered(weights, updates, Q)}
        if fits:  # section 2.2.2 leaves out sums that wrap, and without a weight neither equation has a value
            tally.add(case, holds)
        flint = int(package("flint").nmod(exact, Q))
        same = phi_inverse(flint, Q) == recovered(weights, updates, Q)
        report.agree("BAS-EQ15", "library", same, f"the residue of FLINT: {case}")
        report.check(holds == fits, f"right exactly when the sum is in the range and not all weights are 0: {case}")
    report.say(f"eq. (15): right in the {tally.held} of {tally.cases} cases in which the sum does not wrap")
    return Finding(tally.verdict, "a sum outside the range wraps, and weights that are all 0 give 0/0", tally.against)


def bias(c_g: int, stale: Sequence[Fraction]) -> list[Fraction]:
    """Return the expectation of w_i / sum w minus s_i / sum s, for each user of a buffer."""
    chances = [rounded(s, c_g) for s in stale]
    shares = [Fraction(0)] * len(stale)
    for outcome in product(*chances):
        weights, chance = [w for _, w in outcome], prod((p for p, _ in outcome), start=Fraction(1))
        shares = [share + chance * Fraction(w, sum(weights)) for share, w in zip(shares, weights, strict=True)]
    return [share - s / sum(stale) for share, s in zip(shares, stale, strict=True)]


def expectation(report: Report) -> Finding:
    """Decide (d)."""
    stated, biased, largest, by_chance = Tally(), Tally(), Fraction(0), []
    for c_g, users in product((1, 2, 3, 4, 8, 16, 64), (2, 3)):
        for delays in combinations_with_replacement(range(11), users):
            stale = [Fraction(1, 1 + tau) for tau in delays]
            if min(c_g * s for s in stale) < 1:
                continue
            off = bias(c_g, stale)
            still = all((c_g * s).denominator == 1 for s in stale) or len(set(stale)) == 1
            case = {"c_g": c_g, "delays": list(delays), "bias of the shares": [str(value) for value in off]}
            stated.add(case, not (still and any(off)))
            biased.add(case, not any(off))
            if not any(off) and not still:
                by_chance.append({"c_g": c_g, "delays": list(delays)})
            if c_g == 64:
                largest = max(largest, *map(abs, off))
    report.check(biased.held < biased.cases, "in general not")
    report.say(f"unbiased by coincidence: {by_chance}")
    report.say(f"{biased.cases} buffers: eq. (15) is unbiased for eq. (4) in {biased.held} of them")
    report.say(f"for c_g = 64 no share is off by more than {float(largest):.1e}")
    numbers: dict[str, object] = {
        "largest bias of a share at c_g = 64": str(largest),
        "unbiased by coincidence": by_chance,
    }
    numbers |= {"first that is biased": biased.against}
    return Finding(stated.verdict, "a ratio of unbiased estimates is not unbiased", stated.against, numbers)
