"""Audit a participation log: which users are recoverable from which sums, and how many users stay together.

====================  ==========================================
paper                 here
====================  ==========================================
z                     `factor` of the `terms` of a `Combined`
T of (5)              `smallest` of an `Account`
====================  ==========================================

Source: spec/multi-round.md, section 4 (MRA-10 to MRA-13); of HeteroSAg its last paragraph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy.multiround import Audit, audit
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.selection import metrics, weights
from secagg_spec.selection.participation import MAX_ENTRIES, Log, Sums
from secagg_spec.selection.weights import Bounds

_MOST_CLASSES = 4096
"""The most classes of users for which the weak privacy is bounded closely; for more, this takes long."""


@dataclass(frozen=True)
class Class:
    """The users that are in the same sums of a segment."""

    segment: int
    users: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """A recoverable user, with the round (counted from 0) after which it is, and the segment whose sums reveal it."""

    user: int
    at: int
    segment: int


@dataclass(frozen=True)
class Term:
    """A sum, given by its round (counted from 0) and its users, with its factor in a combination."""

    at: int
    users: tuple[int, ...]
    factor: Fraction


@dataclass(frozen=True)
class Combined:
    """The sums whose combination is the model of a user."""

    found: Found
    terms: tuple[Term, ...]

    @property
    def drift(self) -> Fraction:
        """The largest error of the combination if no model of a round is off by more than 1."""
        return sum((abs(term.factor) * len(term.users) for term in self.terms), start=Fraction(0))

    @property
    def digits(self) -> int:
        """The number of decimal digits of the largest numerator or denominator."""
        largest = max(max(abs(term.factor.numerator), term.factor.denominator) for term in self.terms)
        return len(decimal(largest))


def decimal(number: int) -> str:
    """Return the decimal digits of a number of any length, with its sign; Python writes at most 4300 digits at once.

    Raises `ParameterError` for what is no integer.
    """
    number = validate.secret_integer("number", number, "an integer")
    if number < 0:
        return "-" + decimal(-number)
    if number.bit_length() < 10_000:
        return str(number)
    half = number.bit_length() * 301 // 2000
    high, low = divmod(number, 10**half)
    return decimal(high) + decimal(low).zfill(half)


def written(number: Fraction) -> str:
    """Return an exact fraction of any length as text, such as ``-3/2``.

    Raises `ParameterError` for what is no fraction.
    """
    number = validate.instance("number", number, Fraction)
    below = "" if number.denominator == 1 else f"/{decimal(number.denominator)}"
    return decimal(number.numerator) + below


@dataclass(frozen=True, eq=False)
class Account:
    """What a log reveals, segment by segment."""

    log: Log
    audits: tuple[Audit, ...]
    _combined: dict[int, Combined] = field(default_factory=dict)

    @cached_property
    def found(self) -> Mapping[int, Found]:
        """The recoverable users, each at the first round and segment that reveals it, sorted by round, then user."""
        first: dict[int, Found] = {}
        for segment, one in enumerate(self.audits):
            rounds = self.log.segments[segment].rounds
            for user, recovery in one.recoveries.items():
                here = Found(user, int(rounds[recovery.rounds - 1]), segment)
                if user not in first or here.at < first[user].at:
                    first[user] = here
        return {found.user: found for found in sorted(first.values(), key=lambda found: (found.at, found.user))}

    def combined(self, users: Collection[int]) -> list[Combined]:
        """Return the combination of each of some recoverable users (MRA-11).

        Raises
        ------
        ParameterError
            The users are no collection, or one of them is not recoverable.
        """
        users = [validate.integer("user", user, 0) for user in validate.collection("users", users, "users")]
        asked: dict[int, list[int]] = {}
        for user in users:
            if user not in self.found:
                raise ParameterError("user", user, "a recoverable one")
            if user not in self._combined:
                asked.setdefault(self.found[user].segment, []).append(user)
        for segment, some in asked.items():
            sums = self.log.segments[segment]
            for user, terms in self.audits[segment].combinations(some).items():
                named = (Term(int(sums.rounds[at]), _members(sums, at), factor) for at, factor in terms)
                self._combined[user] = Combined(self.found[user], tuple(named))
        return [self._combined[user] for user in users]

    @cached_property
    def smallest(self) -> Class | None:
        """The smallest class of all segments, or None without users; its size is the strong privacy (MRA-12)."""
        classes = (
            Class(segment, users)
            for segment, sums in enumerate(self.log.segments)
            for users in metrics.classes(sums.sets)
        )
        return min(classes, key=lambda one: len(one.users), default=None)

    @property
    def strong(self) -> int:
        """The strong privacy (MRA-12)."""
        return len(self.smallest.users) if self.smallest else 0

    @cached_property
    def weak(self) -> Bounds:
        """A lower and an upper bound of the weak privacy (MRA-13)."""
        if self.found:
            return Bounds(1, 1, (next(iter(self.found)),))
        bounds = [_weight(sums.sets) for sums in self.log.segments]
        seen = [bound for bound in bounds if bound.high]
        if not seen:
            return Bounds(0, 0, ())
        best = min(seen, key=lambda bound: bound.high)
        return Bounds(max(min(bound.low for bound in seen), min(self.strong, best.high)), best.high, best.users)

    @cached_property
    def empty(self) -> tuple[int, ...]:
        """The rounds without a sum, counted from 0."""
        return tuple(np.flatnonzero(~self.log.taking_part.any(axis=1)).tolist())

    @cached_property
    def absent(self) -> tuple[int, ...]:
        """The users that are in no sum."""
        return tuple(np.flatnonzero(~self.log.taking_part.any(axis=0)).tolist())

    def unseen(self, user: int, segment: int) -> dict[int, int]:
        """Return changes to the models of this user and of others in a segment that change none of its sums.

        The sums are those of all rounds or, if the segment reveals the user's model, of the rounds before it does.

        Raises
        ------
        ParameterError
            There is no such user or segment.
        """
        user = validate.integer("user", user, 0, self.log.roster.count - 1)
        segment = validate.integer("segment", segment, 0, len(self.log.segments) - 1)
        sums, one = self.log.segments[segment], self.audits[segment]
        rounds = one.recoveries[user].rounds - 1 if user in one.recoveries else len(sums.sets)
        sets = sums.sets[:rounds]
        column = sets[:, user]
        if not column.any():
            return {user: 1}
        same = np.flatnonzero((sets == column[:, np.newaxis]).all(axis=0))
        if len(same) > 1:
            return {user: 1, int(same[same != user][0]): -1}
        changes = one.not_before(user)
        common = gcd(*changes) * (1 if changes[user] > 0 else -1)
        return {other: change // common for other, change in enumerate(changes) if change}


def _members(sums: Sums, at: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(sums.sets[at]).tolist())


def _weight(sets: BoolArray) -> Bounds:
    """Return bounds of the weak privacy; if there are too many users, by the smallest class and the smallest set."""
    classes = metrics.classes(sets)
    if len(classes) <= _MOST_CLASSES:
        return weights.least_weight(sets)
    sizes = sets.sum(axis=1)
    smallest = int(np.argmin(np.where(sizes > 0, sizes, sets.shape[1] + 1)))
    return Bounds(min(map(len, classes)), int(sizes[smallest]), tuple(np.flatnonzero(sets[smallest]).tolist()))


def account(log: Log) -> Account:
    """Return what a log reveals; each segment is audited on its own, since no sum is over two segments."""
    return Account(log, tuple(audit(sums.sets) for sums in log.segments))


def expand(log: Log, parameters: Parameters) -> Log:
    """Return the log of the HeteroSAg cells for a log of the survivors of each round.

    Parameters
    ----------
    log : Log
        The survivors of each round, out of N users.
    parameters : heterosag_plan.Parameters
        The parameters that define the cells.

    Raises
    ------
    LengthMismatch
        The log does not have N users.
    ParameterError
        The log is already a log of cells, or is too large.

    Source: spec/heterosag.md, section 8; spec/multi-round.md, section 4.
    """
    if log.cells:
        raise ParameterError("log", "a log with segments", "one of survivors, without segments, where a plan is given")
    if log.roster.count != parameters.N:
        raise LengthMismatch("users", log.roster.count, f"{parameters.N}, the N of the plan")
    if len(parameters.parts) * log.rounds * parameters.N > MAX_ENTRIES:
        size = f"{log.rounds} rounds of {len(parameters.parts)} cells"
        raise ParameterError("log", size, f"at most {MAX_ENTRIES} truth values, cells times users")
    rows = log.segments[0].sets
    return Log(
        log.roster, log.first, log.rounds, tuple(_cells(rows, parameters, z) for z in range(parameters.count)), True
    )


def _cells(rows: BoolArray, parameters: Parameters, segment: int) -> Sums:
    """Return the survivors of each cell of a segment, round by round."""
    cells = [sorted(cell.members) for cell in parameters.parts if cell.segment == segment]
    inside = np.zeros((len(cells), parameters.N), dtype=bool)
    for at, members in enumerate(cells):
        inside[at, members] = True
    sets = (rows[:, np.newaxis, :] & inside).reshape(-1, parameters.N)
    rounds = np.repeat(np.arange(len(rows)), len(cells))
    there = sets.any(axis=1)
    return Sums(validate.read_only(sets[there]), rounds[there])


guard(__name__)
