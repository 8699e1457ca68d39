"""Probabilities of a plan: binomial tails with a certified error, and what they decide.

====================  ==============================================================
section 3             here
====================  ==============================================================
N, p                  `users`, `rate`: each user drops out with probability p
J, r                  `rounds`, and how many of them a user is in
pi_r                  the probability of one set of r of J rounds
====================  ==============================================================

A tail is computed by ball arithmetic: the result is at least the probability, and larger by at most 2^-60 of it. Where
this error alone lets it seem larger than an allowed number, the exact probability decides (`settled`). Trials are of
users or rounds, and as many at most as a wish may have: a tail of 10^6 trials takes seconds at most. Sparse graphs have
probabilities of their own, in `privacy.sparse`.

Source: spec/planning.md, section 3 (PLN-03 to PLN-05).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, exp, inf, lgamma, log, log2

import flint

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError
from secagg_spec.planning.wishes import MOST_ROUNDS, MOST_USERS

_BITS, _MOST_BITS, _SURE = 192, 2**14, 61
_NEGLIGIBLE, _TINY = Fraction(1, 2**64), Fraction(1, 2**1100)
ERROR = Fraction(1, 2**60)
"""The error of a tail, as a part of it, at most."""
_LONGEST, _FEW, _SMALLEST = 2**21, 2**10, 2**27
"""The bits of the longest exact probability that is computed, of one that is short enough to be a rate, and of any."""
_RARE = -45.0
"""The logarithm of a probability below 2^-64: (e m / k)^k bounds that k events happen when m are expected."""


class TooLong(ParameterError):
    """A probability has more digits than are worth their time."""


def at_least(trials: int, rate: Fraction, least: int, allowed: Fraction = Fraction(1)) -> Fraction:
    """Return the probability that at least `least` of independent trials happen, each with the probability `rate`.

    The result is an upper bound, above the probability by at most 2^-60 of it (PLN-03), and settled by `allowed`.

    Raises
    ------
    ParameterError
        The trials are no number in [0, 10^6], `least` is no integer, or a probability is no fraction in [0, 1].
    TooLong
        The probability is below about 2^-134,000,000.
    """
    trials, least = _counts(trials, least)
    validate.probability("rate", rate)
    validate.probability("allowed", allowed)
    if least <= 0 or (rate == 1 and least <= trials):
        return Fraction(1)
    if least > trials or rate == 0:
        return Fraction(0)
    others = trials - least + 1
    if least <= trials * rate:  # the other tail is the smaller one, and takes much less time
        bound = _certified(lambda: 1 - _arb(1 - rate).beta_lower(others, least, True))
    else:
        bound = _certified(lambda: _arb(rate).beta_lower(least, others, True))
    return settled(bound, allowed, lambda: exactly_at_least(trials, rate, least), ERROR)


def fewer_than(trials: int, rate: Fraction, bound: int, allowed: Fraction = Fraction(1)) -> Fraction:
    """Return the probability that fewer than `bound` of independent trials happen; an upper bound like `at_least`.

    Raises `ParameterError` as `at_least` does.
    """
    trials, bound = _counts(trials, bound, "bound")
    return at_least(trials, 1 - validate.probability("rate", rate), trials - bound + 1, allowed)


def _counts(trials: int, least: int, name: str = "least") -> tuple[int, int]:
    """Return the trials, and how many of them happen, as ``int``."""
    least = validate.integer(name, least, -2 * validate.MAX_COUNT, 2 * validate.MAX_COUNT)
    return validate.integer("trials", trials, 0, MOST_USERS), least


def settled(bound: Fraction, allowed: Fraction, exact: Callable[[], flint.fmpq], error: Fraction) -> Fraction:
    """Return a bound of this module, or `allowed` where the error of the bound alone takes it above that number.

    There the exact probability decides (PLN-04, PLN-09). One that would take more than 2^21 bits is not computed, and
    the bound stays.

    Parameters
    ----------
    bound, allowed : Fraction
        A bound on a probability, and the largest probability that is allowed.
    exact : callable
        Returns the probability.
    error : Fraction
        At least the error of the bound, as a part of the probability.

    Raises
    ------
    ParameterError
        A number is no fraction.
    """
    for name, value in (("bound", bound), ("allowed", allowed), ("error", error)):
        validate.instance(name, value, Fraction)
    if allowed < bound <= allowed * (1 + error):
        with suppress(TooLong):
            return allowed if exact() <= _fmpq(allowed) else bound
    return bound


def exactly_at_least(trials: int, rate: Fraction, least: int) -> flint.fmpq:
    """Return the probability of `at_least` itself; it is for `settled`, which lets go one that is too long.

    It is a^n / b^n times a sum. Each term is the one before times a fraction, and so halves are put together. Raises
    `ParameterError` as `at_least` does, and as `TooLong` for a probability of more than 2^21 bits.
    """
    trials, least = _counts(trials, least)
    validate.probability("rate", rate)
    if least <= 0 or least > trials or not rate:
        return flint.fmpq(least <= 0)
    _check_length(trials * rate.denominator.bit_length())
    a, b = rate.numerator, rate.denominator

    def halves(low: int, high: int) -> tuple[flint.fmpz, flint.fmpz, flint.fmpz]:
        """Return the products of the fractions from `low` on, above and below, and what the sum has above."""
        if high - low == 1:
            below = flint.fmpz((low + 1) * a)
            return flint.fmpz((trials - low) * (b - a)), below, below
        middle = (low + high) // 2
        (p, q, t), (r, s, u) = halves(low, middle), halves(middle, high)
        return p * r, q * s, t * s + p * u

    _, below, above = halves(0, trials - least + 1)
    return flint.fmpq(above * flint.fmpz(a) ** trials, below * flint.fmpz(b) ** trials)


def _check_length(bits: int, of: str = "the exact probability", most: int = _LONGEST) -> None:
    if bits > most:
        raise TooLong(f"bits of {of}", bits, f"at most {most}")


def some(trials: int, rate: Fraction) -> Fraction:
    """Return the probability that any of independent trials happens: an upper bound, fit to be the rate of a tail.

    It is exact if that takes few digits. Else it is above the probability by at most 2^-1024 of it: a tail of many
    trials multiplies that. Raises `ParameterError` as `at_least` does.
    """
    trials, _ = _counts(trials, 1)
    validate.probability("rate", rate)
    if trials * rate.denominator.bit_length() <= _FEW:
        return 1 - (1 - rate) ** trials
    if rate == 1:
        return Fraction(1)
    return _certified(lambda: -(trials * (-_arb(rate)).log1p()).expm1(), sure=2**10)


def least_dropouts(users: int, rate: Fraction, allowed: Fraction) -> int:
    """Return the least D such that more than D users drop out with at most the allowed probability (PLN-04).

    Where an exact probability is too long for `settled`, its bound decides, and D may be one too large.

    Raises
    ------
    ParameterError
        The users are no number in [0, 10^6], the rate is no fraction in [0, 1], or what is allowed is none above 0.
    """
    users = validate.integer("users", users, 0, MOST_USERS)
    validate.probability("rate", rate)
    if not validate.probability("allowed", allowed):
        raise ParameterError("allowed", allowed, "a fraction above 0")
    return _least_dropouts(users, rate, allowed)


@lru_cache(maxsize=1024)
def _least_dropouts(users: int, rate: Fraction, allowed: Fraction) -> int:
    """Return the result of `least_dropouts` for checked arguments."""

    def rare(count: int) -> bool:
        return at_least(users, rate, count + 1, allowed) <= allowed

    bound = logarithm(allowed) * log(2)
    if rate in (0, 1):
        return users * int(rate) * (allowed < 1)
    yes, no = logarithm(rate) * log(2), logarithm(1 - rate) * log(2)
    mean = int(users * rate)
    found = first(mean, users, lambda count: _estimate(users, yes, no, count + 1) <= bound)
    while not rare(found):
        found += 1
    return first(0, found - 1, rare) if found and rare(found - 1) else found


def _estimate(trials: int, yes: float, no: float, least: int) -> float:
    """Return about the logarithm of `at_least`, for `least` above the mean and the logarithms of both probabilities."""
    if least > trials:
        return -inf
    odds = exp(min(yes - no, 700.0))
    sum_, ratio, i = 0.0, 1.0, least
    while ratio > 2.0**-40 * sum_ and i <= trials:
        sum_ += ratio
        ratio *= (trials - i) / (i + 1) * odds
        i += 1
    ways = lgamma(trials + 1) - lgamma(least + 1) - lgamma(trials - least + 1)
    return ways + least * yes + (trials - least) * no + log(sum_)


def logarithm(value: Fraction) -> float:
    """Return the binary logarithm of a fraction above 0, however small; raises `ParameterError` for any other value."""
    if not isinstance(value, Fraction) or value <= 0:
        raise ParameterError("value", value, "a fraction above 0")
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return shift + log2(value / Fraction(2) ** shift)


def without_companions(rounds: int, rate: Fraction, others: int, least: int, stop: Fraction) -> Fraction:
    """Return the probability that a user is in a round, and fewer than `least` of the others are in the same rounds.

    The sum over r is taken from its largest weight on. It ends when it is above `stop`, and then is a lower bound; or
    when the rest is negligible, and is added (PLN-05).

    Raises
    ------
    ParameterError
        The rounds are no number in [1, 10^4], the users are none in [0, 10^6], `least` is none above 0, the rate is no
        fraction in [0, 1], or `stop` is none of at least 0.
    """
    rounds, others, least = _companions(rounds, others, least)
    validate.probability("rate", rate)
    if not isinstance(stop, Fraction) or stop < 0:
        raise ParameterError("stop", stop, "a fraction of at least 0")
    if not rate:
        return Fraction(int(others < least))
    return short(_certified(lambda: _sum(rounds, rate, others, least, stop)))


def exactly_without_companions(rounds: int, rate: Fraction, others: int, least: int) -> flint.fmpq:
    """Return the probability of `without_companions` itself; it is for `settled`, like `exactly_at_least`.

    Raises `ParameterError` as `without_companions` does, and as `TooLong` for a probability of more than 2^21 bits.
    """
    rounds, others, least = _companions(rounds, others, least)
    validate.probability("rate", rate)
    _check_length(rounds**2 * (others + 1) * rate.denominator.bit_length())
    total = flint.fmpq(0)
    for r in range(1, rounds + 1):
        one = (1 - rate) ** r * rate ** (rounds - r)
        few = exactly_at_least(others, 1 - one, others - least + 1)
        total += comb(rounds, r) * _fmpq(one) * few
    return total


def _companions(rounds: int, others: int, least: int) -> tuple[int, int, int]:
    """Return the numbers of rounds, of other users, and of those that are to be companions, as ``int``."""
    rounds, others = (
        validate.integer(name, value, low, most)
        for name, value, low, most in (("rounds", rounds, 1, MOST_ROUNDS), ("others", others, 0, MOST_USERS))
    )
    return rounds, others, validate.integer("least", least, 1, validate.MAX_COUNT)


def _sum(rounds: int, rate: Fraction, others: int, least: int, stop: Fraction) -> flint.arb:
    """Return the sum of `without_companions`."""
    weights = sorted(_weights(rounds, rate), key=lambda pair: pair[0].mid())
    rests = list(accumulate((weight for weight, _ in weights), initial=flint.arb(0)))
    limit, negligible, total = _arb(stop), _arb(stop * _NEGLIGIBLE), flint.arb(0)
    while weights and not total > limit and not rests[-1] <= negligible:
        weight, r = weights.pop()
        rests.pop()
        total += weight * _few(rounds, rate, r, others, least)
    return total if total > limit else total + rests[-1]


def _weights(rounds: int, rate: Fraction) -> Iterator[tuple[flint.arb, int]]:
    """Yield the probability that a user is in r of the rounds, and r, from r = 1 on."""
    weight, odds = _arb(rate) ** rounds, _arb((1 - rate) / rate)
    for r in range(1, rounds + 1):
        weight = weight * odds * (rounds - r + 1) / r
        yield weight, r


def _few(rounds: int, rate: Fraction, r: int, others: int, least: int) -> flint.arb:
    """Return the probability, or a bound on it, that fewer than `least` of the others are in one set of r rounds."""

    def exponent() -> flint.arb:
        return r * (-_arb(rate)).log1p() + (rounds - r) * _arb(rate).log()

    mean = float(exponent()) + log(max(others, 1))
    if least > others or least * (1 + mean - log(least)) <= _RARE:
        return flint.arb(1)
    few = _upper(lambda: (-exponent().expm1()).beta_lower(others - least + 1, least, True))
    return few.max(_arb(_TINY))


def first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the least number in [low, high] for which a condition holds that holds from some number on.

    It is `high` where the condition holds for no number below. Raises `ParameterError` for what are no integers of at
    least 0 and at most 2^62, or where `low` is above `high`.
    """
    low = validate.integer("low", low, 0, 2**62)
    high = validate.integer("high", high, low, 2**62)
    return low + bisect_left(range(low, high), True, key=lambda number: bool(holds(number)))


def _fmpq(number: Fraction) -> flint.fmpq:
    return flint.fmpq(number.numerator, number.denominator)


def _arb(number: Fraction) -> flint.arb:
    return flint.arb(_fmpq(number))


def _certified(compute: Callable[[], flint.arb], sure: int = _SURE) -> Fraction:
    """Return the upper end of a ball of a probability that is small enough, as a fraction."""
    mantissa, exponent = _upper(compute, sure).man_exp()
    _check_length(-int(exponent), "the probability", _SMALLEST)
    return min(Fraction(1), Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def _upper(compute: Callable[[], flint.arb], sure: int = _SURE) -> flint.arb:
    """Return the upper end of a ball that is small enough, with as many bits as that takes."""
    before = flint.ctx.prec
    try:
        for bits in (_BITS, 8 * _BITS, _MOST_BITS):
            flint.ctx.prec = bits
            ball = compute()
            if ball.rel_accuracy_bits() >= sure or bits == _MOST_BITS:
                return ball.upper()
    finally:
        flint.ctx.prec = before
    raise AssertionError("the last precision returns")


def short(number: Fraction) -> Fraction:
    """Return a fraction of few digits that is at least this one, and larger by at most 2^-60 of it; 1 for any above 1.

    Raises `ParameterError` for what is no fraction of at least 0.
    """
    if not isinstance(number, Fraction) or number < 0:
        raise ParameterError("number", number, "a fraction of at least 0")
    if not number:
        return number
    shift = 64 - (number.numerator.bit_length() - number.denominator.bit_length())
    scaled = number * Fraction(2) ** shift
    return min(Fraction(1), Fraction(-(-scaled.numerator // scaled.denominator)) / Fraction(2) ** shift)


guard(__name__)
