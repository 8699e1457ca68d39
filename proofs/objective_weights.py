"""Theorem 1 of BASecAgg is about the loss of eq. (1), and its iterates approach the minimum of another one.

Statement. Let the users have the losses (x - b_i)^2/2, let eq. (16) take all N of them into each buffer, E = 1, and
start at the minimum of F = sum w_i F_i, so that F* = 0.
(a) Eq. (17) holds when all w_i are 1/N, and fails otherwise where the minimum of F is not the one for equal weights: no
    term of its right side knows the w_i, and without delay it is as small as the noise of quantisation.
(b) When user i has the share p_i of the places in the buffers, the mean step of (16) is 0 exactly at sum p_i b_i, and
    the gradient of F is 0 there, for all b_i, exactly when p = w. With N w_i times its update from each user, and p_i =
    1/N, the mean step is 0 where the gradient of F is.

Idea. Nothing is random: the numbers are multiples of 1/c_l, so that rounding changes nothing, and both sides of (17)
are fractions. With one buffer in all rounds, x(t+1) - m = (1 - eta)(x(t) - m) for the mean m of the b_i. (b) is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-THM1W": "arithmetic",
}
CENTRES, ETA, LEVEL = (0, 1), Fraction(1, 2), 2**12


def prove(report: Report) -> dict[str, Finding]:
    """Run (a) for all weights in steps of 1/4, and decide (b) with symbols."""
    tally = Tally()
    for share, J in product(range(5), (2, 3, 5)):
        w = (Fraction(4 - share, 4), Fraction(share, 4))
        least = sum((weight * b for weight, b in zip(w, CENTRES, strict=True)), Fraction(0))
        left, right = mean_square(least, J), ETA / 2 * Fraction(1, 4 * LEVEL**2)
        case = {"w": [str(weight) for weight in w], "centres": list(CENTRES), "K": 2, "E": 1, "J": J, "eta_l": str(ETA)}
        case |= {"c_l": LEVEL, "x": str(least), "left": str(left), "right": str(right)}
        tally.add(case, left <= right, condition=w[0] == w[1])
    report.check(tally.exact, "(a) eq. (17) holds exactly for equal weights")
    report.say(
        f"two users, all in the buffer: eq. (17) holds in {tally.held} of {tally.cases} runs, those with w_i = 1/2"
    )
    report.agree("BAS-THM1W", "symbolic", at_rest(), "(16) rests where F does for all centres exactly when p = w")
    return {"BAS-THM1W": Finding(tally.verdict, "the iterates do not know the weights of eq. (1)", tally.against)}


def mean_square(least: Fraction, J: int) -> Fraction:
    """Return the mean over t < J of the squared gradient of F, which is x - least, for a run that starts there."""
    x, total = least, Fraction(0)
    for _ in range(J):
        total += (x - least) ** 2
        x -= sum((rounded(ETA * (x - b)) for b in CENTRES), Fraction(0)) / len(CENTRES)
    return total / J


def rounded(update: Fraction) -> Fraction:
    """Return an update, of which Q must change nothing."""
    assert (LEVEL * update).denominator == 1, "it is a multiple of 1/c_l"
    return update


def at_rest() -> bool:
    """Return whether (b) holds for three users."""
    sympy = package("sympy")
    x, p, w, b = sympy.Symbol("x"), *(sympy.symbols(f"{name}1:4") for name in "pwb")
    sums = {p[2]: 1 - p[0] - p[1], w[2]: 1 - w[0] - w[1]}
    rest = sympy.solve(weighted(p, b, x).subs(sums), x)
    gradient = sympy.expand(weighted(w, b, x).subs(sums).subs(x, rest[0]))
    equal = sympy.solve([gradient.coeff(each) for each in b], w[:2], dict=True)
    scaled = sympy.expand(
        sum(3 * weight * (x - each) / 3 for weight, each in zip(w, b, strict=True)) - weighted(w, b, x)
    )
    return bool(equal == [{w[0]: p[0], w[1]: p[1]}] and scaled == 0)


def weighted(weights: Sequence[Any], b: Sequence[Any], x: Any) -> Any:
    """Return the sum of the gradients x - b_i, each times its weight."""
    return sum(weight * (x - each) for weight, each in zip(weights, b, strict=True))
