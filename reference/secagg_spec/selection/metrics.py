"""Exact measures of a participation log: strong privacy, fairness and cardinality, and their expected values.

====================  ==========================================
paper                 here
====================  ==========================================
P(t)                  `log`, or its first rounds
F, F(t)               `fairness_gap`, `fairness_gaps`
C, C(t)               `cardinality`, `cardinalities`
C of theorem 1        `expected_cardinality`
====================  ==========================================

Source: Multi-RoundSecAgg, section 3.2, theorem 1 and section 6; spec/multi-round.md, sections 4 and 8 (MRA-12, MRA-16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from math import prod

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.participation_classes import class_labels
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection.batches import Parameters

Log = BoolArray
"""One row per round, one column per user: whether the user was in the sum."""
MOST_SETS = 2**16
MOST_WORK = 2**38
"""The largest square of the number of batches, times the bits of the denominators of all users' rates: some seconds."""
Rate = Fraction | float | int


def check_log(log: Log) -> Log:
    """Return the log when it is a table of truth values.

    Raises
    ------
    ParameterError
        The log is not a numpy array of dtype bool.
    LengthMismatch
        The log does not have two axes.
    """
    return validate.truths("log", log, (None, None))


# --------------------------------------------------------------------------------------------------- of one log


def classes(log: Log) -> list[tuple[int, ...]]:
    """Return the classes: users who are in the same sets, and in at least one; ascending by first user.

    Parameters
    ----------
    log : bool array (J, N)

    Raises
    ------
    ParameterError, LengthMismatch
        The log is not such an array.
    """
    found: dict[int, list[int]] = {}
    for user, label in enumerate(class_labels(check_log(log)).tolist()):
        if label >= 0:
            found.setdefault(label, []).append(user)
    return [tuple(users) for users in found.values()]


def strong_privacy(log: Log) -> int:
    """Return the least number of users in a class, or 0 if there are no users (MRA-12).

    The arguments and errors are the same as for `classes`.

    Source: Multi-RoundSecAgg, eq. (5).
    """
    return min(map(len, classes(log)), default=0)


def fairness_gap(log: Log) -> Fraction:
    """Return the largest minus the smallest share of rounds of a user, or 0 if there are no rounds (MRA-16).

    The arguments and errors are the same as for `classes`.

    Source: Multi-RoundSecAgg, eq. (6).
    """
    gaps = fairness_gaps(log)
    return gaps[-1] if gaps else Fraction(0)


def fairness_gaps(log: Log) -> list[Fraction]:
    """Return the fairness gap of the first t + 1 rounds, for each t.

    The arguments and errors are the same as for `classes`.

    Source: Multi-RoundSecAgg, section 6.
    """
    if not check_log(log).shape[1]:
        return [Fraction(0)] * len(log)
    counts = np.cumsum(log, axis=0, dtype=np.int32)
    spread = counts.max(axis=1) - counts.min(axis=1)
    return [Fraction(int(gap), rounds) for rounds, gap in enumerate(spread, start=1)]


def cardinality(log: Log) -> Fraction:
    """Return the mean number of users in the sum of a round, or 0 if there are no rounds (MRA-16).

    The arguments and errors are the same as for `classes`.

    Source: Multi-RoundSecAgg, eq. (7).
    """
    means = cardinalities(log)
    return means[-1] if means else Fraction(0)


def cardinalities(log: Log) -> list[Fraction]:
    """Return the cardinality of the first t + 1 rounds, for each t.

    The arguments and errors are the same as for `classes`.

    Source: Multi-RoundSecAgg, section 6.
    """
    totals = np.cumsum(check_log(log).sum(axis=1, dtype=np.int64))
    return [Fraction(int(total), rounds) for rounds, total in enumerate(totals, start=1)]


# ----------------------------------------------------------------------------------------------- of rounds to come


def expected_cardinality(parameters: Parameters, rates: Rate | Sequence[Rate]) -> Fraction:
    """Return the expected number of users in the sum of a round, exactly, when users drop out independently.

    Parameters
    ----------
    parameters : Parameters
    rates : Fraction, float or int, or a sequence of N of them
        The probability that a user drops out, in [0, 1]; a single number applies to all users.

    Raises
    ------
    ParameterError
        The parameters or a rate have the wrong type, or would take more than `MOST_WORK`.
    LengthMismatch
        The number of rates differs from the number of users.
    OutOfRange
        A rate is outside [0, 1].

    Source: Multi-RoundSecAgg, theorem 1; spec/multi-round.md, section 8.
    """
    complete = _complete(parameters, rates)
    many = _how_many(complete)
    enough = Fraction(sum(many.ways[parameters.per_round :]), many.all)
    return parameters.K * enough


def least_gap(parameters: Parameters, rates: Rate | Sequence[Rate]) -> Fraction:
    """Return the least long-run fairness gap of all strategies that skip no round that could take place.

    The arguments and errors are the same as for `expected_cardinality`. Sets with equally many batches of each rate
    count as one set; if there are more than `MOST_SETS` sets, the rates are refused.

    Source: spec/multi-round.md, section 8.
    """
    complete = Counter(_complete(parameters, rates))
    sets = prod(count + 1 for count in complete.values())
    if sets > MOST_SETS:
        raise ParameterError("rates", f"such that {sets} sets of batches differ", f"at most {MOST_SETS}")
    shares = [
        (_some(parameters, complete, Counter(dict(zip(complete, counts, strict=True)))), sum(counts))
        for counts in product(*(range(count + 1) for count in complete.values()))
    ]
    everything = shares[-1][0]
    most = max((everything - rest[0]) / of[1] for of, rest in zip(shares, reversed(shares), strict=True) if of[1])
    return most - min(share / count for share, count in shares if count)


@dataclass(frozen=True)
class _Many:
    """The distribution of the number of complete batches: n batches with probability ``ways[n] / all``."""

    ways: tuple[int, ...]
    all: int


def _complete(parameters: Parameters, rates: Rate | Sequence[Rate]) -> list[Fraction]:
    """Return the probability that a batch is complete, for each batch."""
    rates = validate.plain(rates)
    if isinstance(rates, (Fraction, float, int)) and not isinstance(rates, bool):
        stays = 1 - _rate("rates", rates)
        _check_work(parameters, parameters.N * stays.denominator.bit_length())
        return [stays**parameters.T] * parameters.batches
    given = validate.sequence("rates", rates, "probabilities")
    if len(given) != parameters.N:
        raise LengthMismatch("len(rates)", len(given), f"{parameters.N}, one for each user")
    stay = [1 - _rate(f"rates[{user}]", rate) for user, rate in enumerate(given)]
    _check_work(parameters, sum(rate.denominator.bit_length() for rate in stay))
    return [
        prod((stay[user] for user in parameters.members(at)), start=Fraction(1)) for at in range(parameters.batches)
    ]


def _check_work(parameters: Parameters, bits: int) -> None:
    """Refuse batches and denominators whose distribution would take minutes or more."""
    if parameters.batches**2 * bits > MOST_WORK:
        allowed = f"shorter fractions, or of fewer batches: their square times the bits is at most {MOST_WORK}"
        raise ParameterError("rates", f"{parameters.batches} batches, and denominators of {bits} bits", allowed)


def _rate(name: str, rate: object) -> Fraction:
    if isinstance(rate, bool) or not isinstance(rate, (Fraction, float, int)):
        raise ParameterError(name, rate, "a probability")
    if not 0 <= rate <= 1:
        raise OutOfRange(name, rate, "in [0, 1]")
    return Fraction(rate)


def _how_many(complete: Iterable[Fraction]) -> _Many:
    ways, total = [1], 1
    for rate in complete:
        yes, no = rate.numerator, rate.denominator - rate.numerator
        ways = [no * here + yes * below for here, below in zip([*ways, 0], [0, *ways], strict=True)]
        total *= rate.denominator
    return _Many(tuple(ways), total)


def _some(parameters: Parameters, complete: Counter[Fraction], some: Counter[Fraction]) -> Fraction:
    """Return g: the expected value of the largest number of batches of the subset `some` that a round can have."""
    inside, outside = _how_many(some.elements()), _how_many((complete - some).elements())
    need = parameters.per_round
    beyond = list(accumulate(reversed(outside.ways)))[::-1]
    ways = (
        min(n, need) * way * beyond[max(need - n, 0)] for n, way in enumerate(inside.ways) if need - n < len(beyond)
    )
    return Fraction(sum(ways), inside.all * outside.all)


guard(__name__)
