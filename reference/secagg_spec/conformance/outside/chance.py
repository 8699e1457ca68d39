"""Probabilities of the statistical checks: how often correct implementations fail them, and what they detect.

Two events make a check fail. For both, the probability under uniform independent draws is bounded exactly:

================  ======================================  =====================================
event             probability                             bound
================  ======================================  =====================================
two of n draws    1 - product of (1 - i/S), i < n         n (n - 1) / (2 S)
of S are equal
one of q never    sum over k of (-1)^(k+1) C(q,k)         q (1 - 1/q)^n
occurs in n       (1 - k/q)^n
================  ======================================  =====================================

Source: spec/conformance.md, section 5.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

ALARM_BITS = 48
"""A statistical check fails for a correct implementation with a probability of at most 2**-48."""
SPREAD_BITS = 52
"""If a check judges each element, all its cases together fail with a probability of at most 2**-52."""
RUN_BITS = 40
"""All statistical checks of a run together fail with a probability below 2**-40."""
MOST_DRAWS = 2**20
PER_CASE = 40
"""The number of outputs compared for each case of a run; fewer if one takes long (`draws`)."""
_SEEN = 2
"""A truncation counts as visible if `_SEEN` equal draws are expected; they occur with 1 - exp(-2) > 0.864 then."""


def draws(cases: int, each: int = PER_CASE) -> int:
    """Return the number of outputs of one operation compared in a run: `each` for each case, at most 2**20."""
    return min(MOST_DRAWS, each * cases)


def shared_bits(parts: int) -> int:
    """Return the bits of each of `parts` statistics that together fail with a probability of at most 2**-52."""
    return SPREAD_BITS + max(parts - 1, 0).bit_length()


def said(limits: Iterable[str]) -> str:
    """Join the limits of a pass, what it cannot see, into one text for its outcome (CNF-31)."""
    return "; ".join(limits)


def collision(n: int, size: int) -> Fraction:
    """Return the probability that two of n uniform independent draws of `size` values are equal."""
    distinct = Fraction(1)
    for at in range(n):
        distinct *= Fraction(max(size - at, 0), size)
    return 1 - distinct


def collision_bound(n: int, size: int) -> Fraction:
    """Return an upper bound of `collision`: the expected number of equal pairs."""
    return Fraction(n * (n - 1), 2 * size)


def fingerprint_bits(n: int) -> int:
    """Return the fewest uniform bits with which n draws are all different, except with a probability of 2**-48."""
    return ALARM_BITS + max(n * (n - 1) // 2, 1).bit_length()


def detection(n: int, bits: int) -> float:
    """Return a lower bound of the probability that n draws of 2**bits equally likely values contain two equal ones.

    The draws are all different with a probability of the product of 1 - i/2**bits, which is at most the exponential of
    -n (n - 1) / 2**(bits + 1).
    """
    return -math.expm1(-n * (n - 1) / 2 ** (bits + 1))


def visible_bits(n: int) -> int:
    """Return the most bits to which a seed can be cut if n draws contain equal ones with a probability above 0.86.

    At that number, about two equal pairs are expected: for n = 2**k, it is 2 k - 2.
    """
    return max(0, (n * n // _SEEN).bit_length() - 2)


def missing(q: int, n: int) -> Fraction:
    """Return the probability that at least one of q values does not occur in n uniform independent draws."""
    signed = (Fraction((-1) ** (k + 1) * math.comb(q, k)) * Fraction(q - k, q) ** n for k in range(1, q + 1))
    return sum(signed, Fraction(0))


def missing_bound(q: int, n: int) -> Fraction:
    """Return an upper bound of `missing`: the expected number of values that do not occur."""
    return q * Fraction(q - 1, q) ** n


def enough(q: int) -> int:
    """Return the fewest draws in which some of q values is missing with a probability of at most 2**-48, by the bound.

    The bound is compared in integers; logarithms only give the starting point of the search.
    """
    start = math.ceil((ALARM_BITS * math.log(2) + math.log(q)) / -math.log1p(-1 / q)) - 2
    return next(n for n in range(max(start, 1), start + 8) if q * (q - 1) ** n << ALARM_BITS <= q**n)
