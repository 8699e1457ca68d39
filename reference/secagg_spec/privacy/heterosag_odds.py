"""The probability that a subgroup of HeteroSAg keeps few survivors, when each user drops out on its own.

Every subgroup is alone in one segment, and a cell is a subgroup or two. So some cell has at least one and fewer than
T + 2 survivors exactly when some subgroup has.

Source: HeteroSAg, eq. (12); spec/heterosag.md, section 6 (HSA-17, HSA-18).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import comb, prod


def survivors(users: int, count: int, p: Fraction) -> Fraction:
    """Return the probability that of `users` users, who drop out with the probability p each, `count` survive."""
    return comb(users, count) * (1 - p) ** count * p ** (users - count)


def few(users: int, below: int, p: Fraction) -> Fraction:
    """Return the probability that at least one and fewer than `below` of the users survive."""
    return sum((survivors(users, count, p) for count in range(1, min(below, users + 1))), Fraction(0))


def any_of(odds: Iterable[Fraction]) -> Fraction:
    """Return the probability that one of several independent events happens at least."""
    return 1 - prod((1 - each for each in odds), start=Fraction(1))
