"""Certified lower and upper bounds on the weak privacy of a log: the least number of users in a combination of rounds.

====================  ==========================================
paper                 here
====================  ==========================================
P(t)                  `log`, or its first rounds
P(t)^T z              a word
T(t)                  between `Bounds.low` and `Bounds.high`
====================  ==========================================

The words are a linear code over the rationals, and the weak privacy is its least weight (spec/multi-round.md,
section 4); `selection.codewords` explains the bounds. T(t) never increases over the rounds of a log, so each bound also
holds for other rounds: an upper bound (a word) for later rounds, a lower bound (on all words) for earlier rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import flint
import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError
from secagg_spec.selection.codewords import Code, code_of
from secagg_spec.selection.metrics import Log, check_log

EFFORT = 3_000_000
"""The number of columns to compare for one bound: a few tenths of a second."""


@dataclass(frozen=True)
class Bounds(validate.Plain):
    """The weak privacy lies in [low, high]; `users` are `high` users, and some word is zero outside them."""

    low: int
    high: int
    users: tuple[int, ...]

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}..{self.high}"


NOTHING = Bounds(0, 0, ())


def least_weight(log: Log, *, effort: int = EFFORT) -> Bounds:
    """Return a lower and an upper bound on the weak privacy (MRA-13); they are equal for at most 12 users (MRA-14).

    Parameters
    ----------
    log : bool array (J, N)
        Whether each user was in the sum of each round.
    effort : int
        The largest number of columns to compare for one bound, at least 0.

    Raises
    ------
    ParameterError, LengthMismatch
        An argument has the wrong type, or the log is not a table.
    """
    log, effort = check_log(log), validate.integer("effort", effort, 0)
    if not log.any():
        return NOTHING
    code = code_of(log)
    while code.low < code.high and code.raise_to(code.low + 1, effort):
        pass
    return _bounds(code)


def least_weights(log: Log, *, effort: int = EFFORT) -> list[Bounds]:
    """Return bounds as `least_weight` does, for the first t + 1 rounds of a log, for each t.

    A bound for one number of rounds also serves others, so bounds can be closer than those of `least_weight` with the
    same `effort`. The arguments and errors are the same as for `least_weight`.
    """
    log, effort = check_log(log), validate.integer("effort", effort, 0)
    start = int(np.argmax(log.any(axis=1))) if log.any() else len(log)
    return [NOTHING] * start + (_Course(log, start).bounds(effort) if start < len(log) else [])


def witness(log: Log, users: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return integers z, one per round, and the combination of the rounds with them, which is zero outside `users`.

    Parameters
    ----------
    log : bool array (J, N)
    users : sequence of int
        The users outside whom the combination is zero. It is not zero, and the integers z have no common factor.

    Raises
    ------
    ParameterError
        The log is not such an array, or there is no such combination.
    UnknownUser, DuplicateUser
        A user is not in the log, or is listed twice.
    """
    log = check_log(log)
    inside = set(validate.users("users", users, log.shape[1]))
    outside = [user for user in range(log.shape[1]) if user not in inside]
    for z in _zero_on(log[:, outside]):
        word = [sum(step for step, there in zip(z, column, strict=True) if there) for column in log.T]
        if any(word):
            factor = gcd(*word)
            return _over(z, factor, word)
    raise ParameterError("users", list(users), "users outside of which some combination that is not zero is zero")


def _over(z: list[int], factor: int, word: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    factor = gcd(factor, *z)
    return tuple(step // factor for step in z), tuple(value // factor for value in word)


def _zero_on(columns: NDArray[np.bool_]) -> Iterator[list[int]]:
    """Yield a basis of the integer vectors, one entry per round, whose combination is zero on the given columns."""
    rounds, count = columns.shape
    if not count:
        yield from np.eye(rounds, dtype=int).tolist()
        return
    kernel, nullity = flint.fmpz_mat(columns.T.astype(int).tolist()).nullspace()
    for at in range(nullity):
        yield [int(kernel[row, at]) for row in range(rounds)]


# ------------------------------------------------------------------------------------------- all rounds of a log


class _Course:
    """The bounds of all rounds of a log; no bound increases from one round to the next."""

    def __init__(self, log: Log, start: int) -> None:
        self.codes = list(_codes(log, start))
        self.low = [code.low for code in self.codes]
        self.best = [_bounds(code) for code in self.codes]
        self._spread()

    def bounds(self, effort: int) -> list[Bounds]:
        for weight in range(self.best[0].high, 1, -1):
            self._last_with(weight, effort)
        return [Bounds(low, best.high, best.users) for low, best in zip(self.low, self.best, strict=True)]

    def _last_with(self, weight: int, effort: int) -> None:
        """Search for the last round for which it can be shown that each word has at least this weight."""
        first = sum(low >= weight for low in self.low)
        last = sum(best.high >= weight for best in self.best) - 1
        at = last
        while first <= at <= last:
            code = self.codes[at]
            if code.raise_to(weight, effort):
                first = at + 1
            else:
                last = at - 1
            self._note(at)
            last = min(last, sum(best.high >= weight for best in self.best) - 1)
            at = (first + last) // 2

    def _note(self, at: int) -> None:
        self.low[at], self.best[at] = self.codes[at].low, min(self.best[at], _bounds(self.codes[at]), key=_high)
        self._spread()

    def _spread(self) -> None:
        for at in range(1, len(self.best)):
            self.best[at] = min(self.best[at - 1], self.best[at], key=_high)
        for at in reversed(range(len(self.low) - 1)):
            self.low[at] = max(self.low[at], self.low[at + 1])


def _bounds(code: Code) -> Bounds:
    return Bounds(code.low, code.high, code.users)


def _high(bounds: Bounds) -> int:
    return bounds.high


def _codes(log: Log, start: int) -> Iterator[Code]:
    """Yield the code of the first rounds, up to each round from `start` on; an unchanged code is reused."""
    code: Code | None = None
    for last in range(start, len(log)):
        if code is None or not code.holds(log[last]):
            code = code_of(log[: last + 1])
        yield code


guard(__name__)
