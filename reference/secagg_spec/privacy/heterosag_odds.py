"""Compute the probability that a HeteroSAg subgroup keeps few survivors, if users drop out independently.

Every subgroup is alone in one segment, and a cell consists of one or two subgroups. So some cell has at least one but
fewer than T + 2 survivors exactly when some subgroup does.

Source: HeteroSAg, eq. (12); spec/heterosag.md, section 6 (HSA-17, HSA-18).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import comb, prod

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard


def survivors(users: int, count: int, p: Fraction) -> Fraction:
    """Return the probability that `count` of `users` users survive, if each drops out with probability p.

    Raises
    ------
    ParameterError
        A number of users is no integer in [0, 2^16], or p is no fraction in [0, 1].
    """
    users, count, p = _users("users", users), _users("count", count), validate.probability("p", p)
    if count > users:
        return Fraction(0)
    return comb(users, count) * (1 - p) ** count * p ** (users - count)


def few(users: int, below: int, p: Fraction) -> Fraction:
    """Return the probability that at least one but fewer than `below` of the users survive.

    It is exact; the time grows with `below` times the square of `users`.

    Raises
    ------
    ParameterError
        An argument is not as for `survivors`.
    """
    users, below, p = _users("users", users), _users("below", below), validate.probability("p", p)
    return sum((survivors(users, count, p) for count in range(1, min(below, users + 1))), Fraction(0))


def any_of(odds: Iterable[Fraction]) -> Fraction:
    """Return the probability that at least one of several independent events happens.

    Raises
    ------
    ParameterError
        A probability is no fraction in [0, 1].
    """
    return 1 - prod((1 - validate.probability("odds", each) for each in odds), start=Fraction(1))


def _users(name: str, value: int) -> int:
    return validate.integer(name, value, 0, 2**16)


guard(__name__)
