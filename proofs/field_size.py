"""The prime of the paper, and when sums do not wrap around.

Statement. (a) 2^32 - 5 is the largest prime below 2^32.
(b) With q = 2^32 - 5, K = 10, c_g = 2^6, c_l = 2^16 and weights up to c_g, every sum of K quantised updates is decoded
correctly exactly when each quantised entry is at most 3355443 in magnitude, that is when each entry of an update is at
most 3355443/65536, about 51.2. Without a bound on the updates the sum can wrap around.

Idea. (a) by trial division, and with sympy. (b): the sum of the weights is at most K c_g = 640. With M = floor(((q -
3)/2)/640) all sums lie in the range that is decoded; with M + 1, ten users without delay leave it at both ends. Buffers
are drawn besides, with entries up to M and weights up to c_g.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import takewhile

import numpy as np

from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField, Ring, is_prime
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "BAS-Q": "arithmetic",
    "BAS-WRAP": "arithmetic",
}
K, WEIGHT_LEVEL, UPDATE_LEVEL = 10, 2**6, 2**16
CANDIDATE = 2**32 - 5


def divisor(n: int) -> int:
    """Return the least divisor above 1."""
    return next((p for p in range(2, 2**16 + 1) if n % p == 0), n)


def prove(report: Report) -> dict[str, Finding]:
    """Divide, and run the sums at the bound."""
    return {"BAS-Q": largest_prime(report), "BAS-WRAP": wrap_around(report)}


def largest_prime(report: Report) -> Finding:
    """Decide (a)."""
    composite = list(takewhile(lambda n: divisor(n) < n, range(2**32 - 1, 2, -1)))
    found = (composite[-1] if composite else 2**32) - 1
    for n in (*composite, found):
        report.check(is_prime(n) == (divisor(n) == n), f"the test of the reference agrees on {n}")
    report.check(found == DEFAULT_PRIME, "it is the default prime of the reference")
    below = int(package("sympy").prevprime(2**32))
    report.agree("BAS-Q", "library", below == found, "sympy finds the same prime below 2^32")
    for n in composite:
        report.say(f"{n} = {divisor(n)} * {n // divisor(n)}")
    report.say(f"{found} has no divisor up to 2^16")
    verdict = "confirmed" if found == CANDIDATE else "refuted"
    return Finding(verdict, f"the largest prime below 2^32 is {found}", None, {"q": found})


def decoded(weight: int, entry: int) -> int:
    """Return what the code decodes of K entries with one weight each; residues, sum and map are those that run."""
    field = PrimeField(CANDIDATE)
    residue = field.encode_signed(np.array([entry], dtype=np.int64))
    weighted = field.multiply(residue, np.array([weight], dtype=np.uint64))
    return int(field.decode_signed(field.sum(np.stack([weighted] * K)))[0])


def printed_decoder(total: int, q: int) -> int:
    """Return what eq. (14), as printed, makes of the residue of an integer."""
    y = total % q
    return y if 2 * y < q - 1 else y - q


def wrap_around(report: Report) -> Finding:
    """Decide (b): the claim is that no sum wraps; the condition, that no entry is above the bound."""
    q, tally = CANDIDATE, Tally()
    bound = ((q - 3) // 2) // (K * WEIGHT_LEVEL)
    entries = {sign * (bound + k) for sign in (-1, 1) for k in (-1, 0, 1, 2)} | {0, 1, -1, 52 * UPDATE_LEVEL}
    for entry in sorted(entries, key=lambda entry: (abs(entry), entry < 0)):
        total = K * WEIGHT_LEVEL * entry
        case = {"K": K, "c_g": WEIGHT_LEVEL, "c_l": UPDATE_LEVEL, "entry": entry, "sum": total}
        case |= {"decoded": decoded(WEIGHT_LEVEL, entry)}
        tally.add(case, decoded(WEIGHT_LEVEL, entry) == total, condition=abs(entry) <= bound)
        same = printed_decoder(total, q) == decoded(WEIGHT_LEVEL, entry)
        report.check(same, f"the printed decoder agrees for the entry {entry}")
        smaller = decoded(WEIGHT_LEVEL - 1, entry) == K * (WEIGHT_LEVEL - 1) * entry
        report.check(smaller or abs(entry) > bound, f"smaller weights do not wrap either, for the entry {entry}")
    same = bound == (q - 1) // 2 // (K * WEIGHT_LEVEL)
    report.check(same, "the repaired decoder, which goes up to (q - 1)/2, has the same bound")
    report.check(tally.exact, "the sum of ten undelayed equal entries is right exactly up to the bound")
    drawn_buffers(report, bound)
    report.say(
        f"K c_g = {K * WEIGHT_LEVEL}; the largest entry that cannot wrap is {bound} = {bound / UPDATE_LEVEL:.5f} c_l"
    )
    numbers = {"largest entry": bound, "largest update": str(Fraction(bound, UPDATE_LEVEL))}
    return Finding(tally.verdict, "it depends on the size of the updates", tally.against, numbers)


def drawn_buffers(report: Report, bound: int) -> None:
    """Draw 500 buffers with entries up to the bound, and 500 of ten undelayed users with larger ones."""
    right = wrong = 0
    for number in range(500):
        source = SeededSource(b"field size", f"{number}")
        weights = draw_elements(source, Ring(WEIGHT_LEVEL), (K,)).astype(np.int64) + 1
        entries = draw_elements(source, Ring(2 * bound + 1), (K,)).astype(np.int64) - bound
        right += summed(weights, entries) == int((weights * entries).sum())
        beyond = np.full(K, bound + 1 + int(draw_elements(source, Ring(bound), (1,))[0]))
        wrong += summed(np.full(K, WEIGHT_LEVEL), beyond) != WEIGHT_LEVEL * int(beyond.sum())
    shown = "500 drawn buffers up to the bound are right, and 500 beyond it wrong"
    report.agree("BAS-WRAP", "samples", right == wrong == 500, shown)


def summed(weights: np.ndarray, entries: np.ndarray) -> int:
    """Return what the code decodes of a weighted sum."""
    field = PrimeField(CANDIDATE)
    rows = field.encode_signed(entries).reshape(-1, 1)
    return int(field.decode_signed(field.weighted_sum(weights.astype(np.uint64), rows))[0])
