"""Probabilities of a plan: binomial tails with a certified error, and what they decide.

====================  ==============================================================
section 3             here
====================  ==============================================================
N, p                  `users`, `rate`: each user drops out with probability p
J, r                  `rounds`, and how many of them a user is in
pi_r                  the probability of one set of r of J rounds
====================  ==============================================================

A tail is computed by ball arithmetic: the result is at least the probability, and larger by at most 2^-60 of it.
Sparse graphs have probabilities of their own, in `privacy.sparse`.

Source: spec/planning.md, section 3 (PLN-03 to PLN-05).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, isqrt, lgamma, log

import flint

_BITS, _MOST_BITS, _SURE = 192, 2**14, 61
_NEGLIGIBLE = Fraction(1, 2**64)


def at_least(trials: int, rate: Fraction, least: int) -> Fraction:
    """Return the probability that at least `least` of independent trials happen, each with the probability `rate`.

    The result is an upper bound, above the probability by at most 2^-60 of it (PLN-03).
    """
    if least <= 0 or (rate == 1 and least <= trials):
        return Fraction(1)
    if least > trials or rate == 0:
        return Fraction(0)
    return _certified(lambda: _arb(rate).beta_lower(least, trials - least + 1, True))


def fewer_than(trials: int, rate: Fraction, bound: int) -> Fraction:
    """Return the probability that fewer than `bound` of independent trials happen; an upper bound like `at_least`."""
    return at_least(trials, 1 - rate, trials - bound + 1)


@lru_cache(maxsize=1024)
def least_dropouts(users: int, rate: Fraction, allowed: Fraction) -> int:
    """Return the least D such that more than D users drop out with at most the allowed probability (PLN-04)."""

    def rare(count: int) -> bool:
        return at_least(users, rate, count + 1) <= allowed

    mean = int(users * rate)
    step = max(1, isqrt(int(users * rate * (1 - rate))))
    high = mean
    while high < users and not rare(high):
        high = min(users, high + step)
        step *= 2
    return first(0 if high == mean else mean, min(high, users), rare)


def without_companions(rounds: int, rate: Fraction, others: int, least: int, stop: Fraction) -> Fraction:
    """Return the probability that a user is in a round, and fewer than `least` of the others are in the same rounds.

    The sum over r is taken from its largest weight on. It ends when it is above `stop`, and then is a lower bound; or
    when the rest is negligible, and is added (PLN-05).
    """
    stays = 1 - rate
    if not rate:
        return Fraction(int(others < least))
    weights = sorted(
        ((_weight(rounds, r, stays), r) for r in range(1, rounds + 1)), key=lambda pair: (-pair[0], -pair[1])
    )
    total, seen = Fraction(0), Fraction(0)
    for _, r in weights:
        one = stays**r * rate ** (rounds - r)
        weight, alone = comb(rounds, r) * one, one * others <= _NEGLIGIBLE
        total, seen = total + weight * (1 if alone else fewer_than(others, one, least)), seen + weight
        rest = 1 - rate**rounds - seen
        if total > stop or rest <= stop * _NEGLIGIBLE:
            return short(min(Fraction(1), total + (0 if total > stop else rest)))
    return short(total)


def _weight(rounds: int, r: int, stays: Fraction) -> float:
    """Return about the logarithm of the probability that a user is in r of the rounds, to order them."""
    chosen = lgamma(rounds + 1) - lgamma(r + 1) - lgamma(rounds - r + 1)
    return chosen + r * log(stays) + (rounds - r) * log(1 - stays)


def first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number in [low, high] for which a condition holds that holds from some number on."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _arb(number: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def _certified(compute: Callable[[], flint.arb]) -> Fraction:
    """Return the upper end of a ball that is small enough, with as many bits as that takes."""
    before = flint.ctx.prec
    try:
        for bits in (_BITS, 8 * _BITS, _MOST_BITS):
            flint.ctx.prec = bits
            ball = compute()
            if ball.rel_accuracy_bits() >= _SURE or bits == _MOST_BITS:
                mantissa, exponent = ball.upper().man_exp()
                return min(Fraction(1), Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
    finally:
        flint.ctx.prec = before
    raise AssertionError("the last precision returns")


def short(number: Fraction) -> Fraction:
    """Return a fraction of few digits that is at least this one, and larger by at most 2^-60 of it."""
    if not number:
        return number
    shift = 64 - (number.numerator.bit_length() - number.denominator.bit_length())
    scaled = number * Fraction(2) ** shift
    return min(Fraction(1), Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift)
