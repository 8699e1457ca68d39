"""Compute the probability that a HeteroSAg subgroup keeps few survivors, if users drop out independently.

Every subgroup is alone in one segment, and a cell consists of one or two subgroups. So some cell has at least one but
fewer than T + 2 survivors exactly when some subgroup does.

Source: HeteroSAg, eq. (12); spec/heterosag.md, section 6 (HSA-17, HSA-18).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import comb, prod


def survivors(users: int, count: int, p: Fraction) -> Fraction:
    """Return the probability that `count` of `users` users survive, if each drops out with probability p."""
    return comb(users, count) * (1 - p) ** count * p ** (users - count)


def few(users: int, below: int, p: Fraction) -> Fraction:
    """Return the probability that at least one but fewer than `below` of the users survive."""
    return sum((survivors(users, count, p) for count in range(1, min(below, users + 1))), Fraction(0))


def any_of(odds: Iterable[Fraction]) -> Fraction:
    """Return the probability that at least one of several independent events happens."""
    return 1 - prod((1 - each for each in odds), start=Fraction(1))
