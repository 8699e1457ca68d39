"""A higher level of quantisation costs range: the rounding error and the largest update fall together.

Statement. Let q = 2^32 - 5, K = 10 updates, weights up to c_g = 2^6, B = floor(((q - 3)/2)/(K c_g)), and let updates be
quantised at the level c = 2^k.
(a) The root of the mean squared rounding error is at most 1/(2 c) for an entry, and reaches it at midpoints.
(b) The sum of ten updates without delay, with one entry each, is decoded exactly when that entry is at most B/c in
    magnitude; for B/c + 1/c it wraps around.
(c) So each doubling of c halves the error and the range; range over error is always 2 B. An entry of 1 wraps from
    c = 2^22 on.

Idea. (a) is the identity of proofs/quantiser_moments.py, at a midpoint for each level, with the code that rounds; the
identity itself is decided by algebra, for all entries and levels. (b) is the sum itself, in the code that maps, adds
and decodes, at both ends of the range; and again in integers alone, with the decoder as it is printed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField
from secagg_spec.arithmetic.quantizer import dequantize, quantize, stochastic_round
from secagg_spec.errors import OutOfRange
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "UNI-LEVELS": "enumeration",
}
K, WEIGHT_LEVEL = 10, 2**6
TOTAL = K * WEIGHT_LEVEL
BOUND = (DEFAULT_PRIME - 3) // 2 // TOTAL
FIELD = PrimeField(DEFAULT_PRIME)
EXPONENTS = range(4, 25)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b) for each level from 2^4 to 2^24."""
    tally = Tally()
    report.say("   c_l   rounding error at most   largest entry of an update   an entry of 1")
    for k in EXPONENTS:
        c = 2**k
        error, limit = rounding_error(Fraction(1, 2 * c), c), Fraction(BOUND, c)
        inside = [decodes(sign * limit, c) and accepts(sign * limit, c) for sign in (-1, 1)]
        outside = [decodes(sign * (limit + Fraction(1, c)), c) for sign in (-1, 1)]
        report.check(not accepts(limit + Fraction(1, c), c), f"(b) the quantiser refuses B/c + 1/c at 2^{k}")
        bounded = all(rounding_error(Fraction(j, 16 * c), c) <= error for j in range(-16, 17))
        exact = error == Fraction(1, 4 * c * c) and bounded
        tally.add({"c_l": c}, exact and all(inside) and not any(outside))
        one = "fits" if decodes(Fraction(1), c) else "wraps"
        report.say(f"  2^{k:<2}   1/2^{k + 1:<2} = {1 / 2 ** (k + 1):.1e}        {float(limit):22.6f}   {one:>13}")
    sympy = package("sympy")
    f, c = sympy.symbols("f c", positive=True)
    lost = ((1 - f) * f**2 + f * (1 - f) ** 2) / c**2
    halves = sympy.expand(1 / (4 * c**2) - lost - (f - sympy.Rational(1, 2)) ** 2 / c**2) == 0
    report.agree("UNI-LEVELS", "symbolic", halves, "(a) the squared error is at most 1/(4 c^2), at midpoints")
    first = next(k for k in EXPONENTS if not decodes(Fraction(1), 2**k))
    printed = [wraps(sign * (BOUND + more)) == bool(more) for sign in (-1, 1) for more in (0, 1)]
    first_level = next(k for k in EXPONENTS if wraps(2**k))
    agreed = all(printed) and first_level == first
    report.agree("UNI-LEVELS", "arithmetic", agreed, "the printed decoder has the same bound and the same first level")
    report.say(f"range over error is {2 * BOUND} at each level")
    numbers = {"B": BOUND, "level from which an entry of 1 wraps": 2**first}
    return {"UNI-LEVELS": Finding(tally.verdict, "rounding error and range halve together", tally.against, numbers)}


def rounding_error(x: Fraction, c: int) -> Fraction:
    """Return the mean of (Q_c(x) - x)^2, with the code that rounds, over 16 draws, which is exact for x in 1/(16 c)."""
    values = stochastic_round(np.full(16, float(c * x)), np.arange(16) / 16)
    return sum(((Fraction(int(value), c) - x) ** 2 for value in values), Fraction(0)) / 16


def decodes(entry: Fraction, c: int) -> bool:
    """Whether the weighted sum of K updates with this entry, a multiple of 1/c, is decoded to what it is."""
    residue = FIELD.encode_signed(np.array([int(c * entry)], dtype=np.int64))
    weighted = FIELD.multiply(residue, np.array([WEIGHT_LEVEL], dtype=np.uint64))
    total = dequantize(FIELD.sum(np.stack([weighted] * K)), level=c, ring=FIELD)
    return Fraction(float(total[0])) == TOTAL * entry


def wraps(entry: int) -> bool:
    """Return whether eq. (14), as printed, makes another number of the sum of K such integers with the weight c_g."""
    residue = divmod(TOTAL * entry, DEFAULT_PRIME)[1]
    decoded = residue if 2 * residue < DEFAULT_PRIME - 1 else residue - DEFAULT_PRIME
    return decoded != TOTAL * entry


def accepts(entry: Fraction, c: int) -> bool:
    """Whether the quantiser of the reference takes an entry that is to be summed with the total weight K c_g."""
    try:
        quantize(np.array([float(entry)]), level=c, ring=FIELD, weight=TOTAL, rounding=np.zeros(1))
    except OutOfRange:
        return False
    return True
