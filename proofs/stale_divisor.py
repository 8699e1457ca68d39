"""A sum of a buffer is divided by K without weights, and by the sum of the weights with them, once it is decoded.

Statement, for weights alpha_k > 0 and updates Delta_k.
(a) Equation (2), the sum of the p_i Delta_i over the sum of the p_i, has shares that add up to 1: equal updates give
    themselves, and only the proportions of the p_i count.
(b) The sum of the alpha_k Delta_k, recovered modulo q without wrapping around, may be divided by the sum of the
    alpha_k once it is decoded. In the field the quotient is right exactly when it is an integer. A sum that wraps is
    never right.
(c) Without weights, as in algorithm 3, the quotient by K is the average. With weights it is that of (b) times the mean
    of the alpha_k; the two are equal exactly when the mean is 1, or the sum is 0; for alpha_k <= 1 the mean is 1 only
    when all of them are 1. When all updates are equally stale, the average is shrunk by alpha.
(d) The server subtracts: w - eta mean(Delta_k). On the loss (w - m)^2 / 2 of users that take gradient steps of size
    below 1, it comes nearer to m, for 0 < eta <= 1, when Delta_k is the model that the user started from less the one
    that it ended with, and goes away from m when it is the other way round.

Idea. Exact fractions for all small cases: two users with weights 1 to 4 and updates -7 to 7 modulo 101 for (a) and (b),
two and three users with weights 1/4 to 1 and updates -1 to 2 for (c), models and minima from -3 to 3, one to three
steps of 1/4 or 1/2, eta = 1/2 or 1 for (d). `average` of the reference, which decodes, then divides, is held against
them. A fraction is rounded once to binary64, so that equality is equality of floats. The identities of (a) and (c) hold
for all numbers, by algebra; quotients in the field are computed by FLINT as well. For all of (d): a step of a user, and
then one of the server, leave a part of w - m that is below 1 in size, or above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.protocols import buffers

CLAIMS = {
    "BASA-EQ2": "enumeration",
    "BASA-EQ6B": "enumeration",
    "BASA-ALG3": "enumeration",
    "BASA-SIGN": "readings",
}
Q, LEVEL, LARGEST = 101, 4, 7
FIELD = PrimeField(Q)
Integers = Sequence[int]


def total(weights: Integers, updates: Integers) -> int:
    """Return the weighted sum."""
    return sum(w * v for w, v in zip(weights, updates, strict=True))


def reference(weights: Integers, residue: int) -> float:
    """Return the average that the reference computes from the recovered sum."""
    sums, level = np.array([residue % Q], dtype=np.uint64), 1
    return float(buffers.average(FIELD, level, np.array(weights, dtype=np.uint64), sums)[0])


def in_the_field(weights: Integers, residue: int) -> int:
    """Return the quotient in the field, decoded."""
    quotient = residue * pow(sum(weights), -1, Q) % Q
    return quotient if 2 * quotient < Q else quotient - Q


def same_in_flint(weights: Integers, updates: Integers) -> bool:
    """Return whether a quotient in the field, of another library, is the average exactly when that is an integer."""
    flint = package("flint")
    exact = Fraction(total(weights, updates), sum(weights))
    quotient = flint.nmod(total(weights, updates), Q) / flint.nmod(sum(weights), Q)
    return bool(quotient == flint.nmod(exact.numerator, Q) / flint.nmod(exact.denominator, Q)) and (
        in_the_field(weights, total(weights, updates)) == int(quotient) - Q * (2 * int(quotient) > Q)
    )


def prove(report: Report) -> dict[str, Finding]:
    """Run through all weights from 1 to 4 and all updates from -7 to 7, for two users."""
    cases = list(
        product(
            product(range(1, LEVEL + 1), repeat=2),
            product(sorted(range(-LARGEST, LARGEST + 1), key=lambda v: (abs(v), -v)), repeat=2),
        )
    )
    identities(report)
    return {"BASA-EQ2": mean(report, cases), "BASA-EQ6B": order(report, cases), "BASA-ALG3": divisor(report)} | sign(
        report
    )


def identities(report: Report) -> None:
    """Decide the identities of (a) and (c) by algebra, for two to five users."""
    sympy = package("sympy")
    means, factors = [], []
    for K in range(2, 6):
        c, a, x = sympy.Symbol("c"), sympy.symbols(f"a:{K}"), sympy.symbols(f"x:{K}")
        weighted, scale = sum(p * v for p, v in zip(a, x, strict=True)), sum(a)
        equal = weighted.subs(dict.fromkeys(x, x[0])) / scale
        scaled = weighted.subs({p: c * p for p in a}, simultaneous=True) / (c * scale)
        means += [sympy.cancel(equal - x[0]), sympy.cancel(scaled - weighted / scale)]
        factors += [sympy.cancel((weighted / K - weighted / scale) * K * scale - weighted * (scale - K))]
        factors += [sympy.cancel((weighted / K).subs(dict.fromkeys(a, a[0])) - a[0] * sum(x) / K)]
    report.agree("BASA-EQ2", "symbolic", not any(means), "equal updates give themselves, proportions alone count")
    report.agree("BASA-ALG3", "symbolic", not any(factors), "by K it is another one unless the weights add up to K")


def mean(report: Report, cases: Sequence[tuple[Integers, Integers]]) -> Finding:
    """Decide (a), on sums that do not wrap around."""
    tally = Tally()
    for p, updates in cases:
        quotient = Fraction(total(p, updates), sum(p))
        between = min(updates) <= quotient <= max(updates)
        scaled = Fraction(total([3 * x for x in p], updates), 3 * sum(p)) == quotient
        fits = 2 * abs(total(p, updates)) < Q
        same = not fits or reference(p, total(p, updates)) == float(quotient)
        tally.add({"p": list(p), "updates": list(updates)}, between and scaled and same)
    report.say(f"equation (2): a mean in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "its shares add up to 1", tally.against)


def order(report: Report, cases: Sequence[tuple[Integers, Integers]]) -> Finding:
    """Decide (b): the weights are integers, c_g times the alpha_k, which leaves the quotient as it is."""
    readings = {True: Tally(), False: Tally()}
    report.agree("BASA-EQ6B", "library", all(same_in_flint(*case) for case in cases), "FLINT divides in F_q alike")
    for (weights, updates), decoded in product(cases, (False, True)):
        exact = Fraction(total(weights, updates), sum(weights))
        fits = 2 * abs(total(weights, updates)) < Q
        got = reference(weights, total(weights, updates)) if decoded else in_the_field(weights, total(weights, updates))
        case = {
            "q": Q,
            "weights": list(weights),
            "updates": list(updates),
            "divided": "decoded" if decoded else "in F_q",
        }
        holds = got == (float(exact) if decoded else exact)
        if fits:
            readings[decoded].add(case | {"average": str(exact), "got": str(got)}, holds)
        if decoded:
            report.check(holds == fits, f"(b) decoded first: right exactly without wrapping: {case}")
        else:
            report.check(holds == (exact.denominator == 1), f"(b) in the field: right exactly for integers: {case}")
    for decoded, tally in readings.items():
        how = "decoded first" if decoded else "in the field"
        report.say(f"divided {how}, the quotient is right in {tally.held} of {tally.cases} cases that do not wrap")
    return Finding(readings[True].verdict, "the sum is decoded, then divided", readings[True].against)


def divisor(report: Report) -> Finding:
    """Decide (c) for two and three users, with weights from 1/4 to 1."""
    tally, quarters = Tally(), [Fraction(n, LEVEL) for n in (2, 1, 3, 4)]
    for K in (2, 3):
        for alpha, updates in product(product(quarters, repeat=K), product((1, 0, -1, 2), repeat=K)):
            weighted = sum((a * x for a, x in zip(alpha, updates, strict=True)), Fraction(0))
            by_K, by_sum = weighted / K, weighted / sum(alpha)
            all_one = set(alpha) == {Fraction(1)}
            case = {"alpha": [str(a) for a in alpha], "updates": list(updates)}
            if all_one:
                tally.add(case | {"by K": str(by_K)}, by_K == Fraction(sum(updates), K) == by_sum)
            report.check(by_K == by_sum * sum(alpha) / K, f"(c) the mean of the weights is the factor: {case}")
            report.check((by_K == by_sum) == (all_one or not weighted), f"(c) when they are equal: {case}")
            shrunk = len(set(alpha)) > 1 or by_K == alpha[0] * Fraction(sum(updates), K)
            report.check(shrunk, f"(c) equally stale updates are shrunk by alpha: {case}")
    report.say(f"divided by K, without weights: the average in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "without weights it is the average", tally.against)


def sign(report: Report) -> dict[str, Finding]:
    """Decide (d): by how much of w - m each step of a user, and then the server, leaves."""
    readings = {"started - ended": Tally(), "ended - started": Tally()}
    points, (quarter, half, one) = sorted(range(-3, 4), key=lambda x: (abs(x), -x)), (Fraction(n, 4) for n in (1, 2, 4))
    grid = product(points, points, (1, 2, 3), (half, quarter), (one, half))
    for w, m, steps, size, eta in grid:
        ended = m + (1 - size) ** steps * (w - m)
        for name, tally in readings.items():
            after = w - eta * ((w - ended) if name == "started - ended" else (ended - w))
            case = {"model": w, "minimum": m, "local steps": steps, "of size": str(size), "eta": str(eta)}
            case["next model"] = str(after)
            tally.add(case, abs(after - m) < abs(w - m) or w == m == after)
    for name, tally in readings.items():
        report.say(f"an update is the model {name}: nearer to the minimum in {tally.held} of {tally.cases} cases")
    report.agree("BASA-SIGN", "symbolic", by_algebra(), "(d) the parts of w - m that are left, for all rates and steps")
    report.check(
        readings["started - ended"].verdict == "confirmed", "(d) the model that the user started from comes first"
    )
    verdict = by_reading(readings.values())
    found = "nearer when the update is the model before training less the one after it"
    return {"BASA-SIGN": Finding(verdict, found, readings["ended - started"].against)}


def by_algebra() -> bool:
    """Return whether a step of the server leaves a part of w - m that is below 1, or above it when the sign is changed.

    Users leave the part 1/(1 + a), with a > 0, and eta is 1/(1 + b), with b >= 0: all that is allowed is of this form.
    """
    sympy = package("sympy")
    a, b = sympy.Symbol("a", positive=True), sympy.Symbol("b", nonnegative=True)
    moved = 1 - 1 / (1 + a)
    nearer, farther = (sympy.factor(1 + sign * moved / (1 + b)) for sign in (-1, 1))
    return bool(nearer.is_positive and sympy.factor(1 - nearer).is_positive and sympy.factor(farther - 1).is_positive)
