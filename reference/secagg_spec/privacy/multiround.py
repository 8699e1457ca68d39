"""Decide what the sums of many rounds reveal together: whose model, after which round, by which combination.

====================  ==========================================
paper                 here
====================  ==========================================
P(t)                  `log`, its first t rows
z                     `combination`
x_j                   one model of each user: they do not change
====================  ==========================================

A row space modulo a prime shows whose unit vector enters it, and after which round. Everything that is reported is then
decided over the rationals, without the prime, by certificates. A model is recoverable: some combination of rounds is
its unit vector, or there are as many independent rows as different columns. It is not recoverable earlier: a *witness*
gives models that change none of the sums so far but change this user's model. If a certificate fails, another prime is
used.

Source: Multi-RoundSecAgg, eq. (4), (5); spec/multi-round.md, section 4 (MRA-10, MRA-11).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import rationals, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.participation_classes import class_labels
from secagg_spec.arithmetic.row_space import PRIMES, RowSpace
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import ParameterError

_TOGETHER = 64
"""The most rows that the audit of a log adds at a time."""

Combination: TypeAlias = tuple[tuple[int, Fraction], ...]


class _UnluckyPrimeError(Exception):
    """Raised when something holds modulo the prime but not over the rationals."""


@dataclass(frozen=True, eq=False)
class Recovery:
    """A user whose model is recoverable.

    `rounds` is the number of rounds needed. `combined` are those rounds, linearly independent, whose combination is the
    model, and `residues` are their factors modulo the prime.
    """

    user: int
    rounds: int
    witness: tuple[int, ...]
    combined: tuple[int, ...]
    residues: UintArray
    prime: int


@dataclass(frozen=True, eq=False)
class Audit:
    """The audit of a log, (J, N) truth values: which users take part in which round.

    `recoveries` are by user. `witness` is for the whole log and is nonzero for every user that is not recoverable.
    """

    log: BoolArray
    recoveries: Mapping[int, Recovery]
    witness: tuple[int, ...]

    def combination(self, user: int) -> Combination:
        """Return the rounds, ascending, with nonzero factors, whose combination is this user's model (MRA-11).

        Raises
        ------
        ParameterError
            The user is not recoverable.
        """
        return self.combinations([user])[user]

    def combinations(self, users: Collection[int]) -> dict[int, Combination]:
        """Return the `combination` of each of some users; faster than one call per user.

        Raises
        ------
        ParameterError
            The users are no collection, or one of them is not recoverable.
        """
        asked = [validate.integer("user", user, 0) for user in validate.collection("users", users, "users")]
        for user in asked:
            if user not in self.recoveries:
                raise ParameterError("user", user, "a recoverable one")
        return _combinations(self.log, [self.recoveries[user] for user in asked])

    def not_before(self, user: int) -> tuple[int, ...]:
        """Return models, one number for each user, whose sums are the same as those of models that are all 0.

        The sums are those of the rounds before the user's model is recoverable, or of all rounds if it is not. The
        user's own number is not 0.
        """
        validate.integer("user", user, 0, self.log.shape[1] - 1)
        found = self.recoveries.get(user)
        return self.witness if found is None else found.witness


def audit(log: BoolArray) -> Audit:
    """Return which users are recoverable from a log, from which round on, with certificates (MRA-10, MRA-11).

    Parameters
    ----------
    log : bool array (J, N)
        The participation matrix: which users are in the sum of each round.

    Raises
    ------
    ParameterError
        Not a numpy array of truth values with two axes.
    """
    validate.truths("log", log, (None, None))
    log = validate.frozen(log) if log.flags.writeable else log
    for prime in PRIMES:
        try:
            return _Screen(log, prime).audit()
        except _UnluckyPrimeError:
            continue
    raise ParameterError("log", f"{log.shape[0]} rounds of {log.shape[1]} users", f"decidable modulo one of {PRIMES}")


class _Screen:
    """The walk through a log modulo a prime; each class of users is one column, that of its first user."""

    def __init__(self, log: BoolArray, prime: int) -> None:
        labels = class_labels(log)
        firsts = np.unique(labels, return_index=True)[1]
        self.log = log
        self.columns = np.sort(firsts[labels[firsts] >= 0])
        self.single = np.bincount(labels[labels >= 0], minlength=len(self.columns))[labels[self.columns]] == 1
        self.labels = labels
        self.rows = np.ascontiguousarray(log[:, self.columns])
        self.space = RowSpace(len(self.columns), prime)
        self.independent: list[int] = []

    def audit(self) -> Audit:
        """Return the result of the walk."""
        found = {recovery.user: recovery for recovery in self._walk()}
        return Audit(self.log, dict(sorted(found.items())), self._last_witness())

    def _walk(self) -> Iterator[Recovery]:
        """Yield the recoveries, round by round; rows that bring none are added many at a time."""
        known, at, together = np.zeros(0, dtype=np.intp), 0, 1
        while at < len(self.rows) and self.space.rank < self.space.columns:
            if together > 1:
                part = self.rows[at : at + together]
                space, independent = self.space.extended(part)
                if len(space.units()) > len(known):
                    together //= 2
                    continue
                self.space = space
                self.independent += [at + row for row in independent]
                at, together = at + len(part), min(2 * together, _TOGETHER)
                continue
            at, together = at + 1, 2
            if not self.space.add(self.rows[at - 1]):
                continue
            self.independent.append(at - 1)
            units = self.space.units()
            new = np.setdiff1d(units, known, assume_unique=True)
            known, together = units, 1 if new.size else 2
            yield from self._recoveries(at, new[self.single[new]])

    def _recoveries(self, rounds: int, columns: NDArray[np.intp]) -> Iterator[Recovery]:
        """Yield the recoveries for some columns, whose unit vectors entered the row space with the last row."""
        if not columns.size:
            return
        witness = self._witness(rounds - 1)
        if any(witness[self.columns[column]] == 0 for column in columns):
            raise _UnluckyPrimeError
        place = {int(pivot): at for at, pivot in enumerate(self.space.pivots)}
        independent = np.array(self.independent)
        large: dict[int, Recovery] = {}
        for column in columns.tolist():
            residues = self.space.origins[place[column]]
            used = np.flatnonzero(residues)
            combined = tuple(independent[used].tolist())
            found = Recovery(int(self.columns[column]), rounds, witness, combined, residues[used], self.space.prime)
            if _small(self.log, found) is None:
                large[column] = found
            yield found
        self._check(large)

    def _check(self, large: Mapping[int, Recovery]) -> None:
        """Refuse the prime if the unit vector of a column is not a combination of the rows over the rationals.

        It is a combination when every vector in the kernel of the rows is 0 at this column. A component is a connected
        set of columns and independent rows; the dimension of its kernel is the number of columns minus that of rows.
        """
        rows, left = self.rows[self.independent], set(large)
        while left:
            members = _component(rows, min(left))
            inside = left & set(members.tolist())
            left -= inside
            free = self._free(rows, members)
            if len(free) > len(inside):
                _combinations(self.log, [large[column] for column in sorted(inside)])
            elif len(free) and any(unseen[column] for unseen in self._unseen(rows, members, free) for column in inside):
                raise _UnluckyPrimeError

    def _free(self, rows: BoolArray, members: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the columns of a component without a pivot, one of each group of equal columns."""
        labels = class_labels(rows[:, members])
        taken = labels[np.isin(members, self.space.pivots)]
        others = np.flatnonzero(~np.isin(labels, taken))
        return members[others[np.unique(labels[others], return_index=True)[1]]]

    def _unseen(
        self, rows: BoolArray, members: NDArray[np.intp], free: NDArray[np.intp]
    ) -> Iterator[Mapping[int, Fraction]]:
        """Yield, for each free column, the pivot entries of the kernel vector with -1 there, 0 at other free ones."""
        pivots = np.intersect1d(self.space.pivots, members)
        own = rows[rows[:, members].any(axis=1)]
        for numbers in rationals.solve_all(own[:, pivots], own[:, free].T.astype(int).tolist()):
            yield dict(zip(pivots.tolist(), numbers, strict=True))

    def _witness(self, rounds: int) -> tuple[int, ...]:
        """Return a kernel vector of the first rounds, for the users whose unit vector entered with the last row."""
        pivot = self.space.pivots[-1]
        values = np.zeros(self.space.columns, dtype=np.uint64)
        values[pivot] = 1
        values[self.space.pivots[:-1]] = _negative(self.space.column, self.space.prime)
        rows, places = self.independent[:-1], self.space.pivots[:-1]
        return self._certified(rounds, values, rows, places)

    def _last_witness(self) -> tuple[int, ...]:
        """Return a kernel vector of all rounds that is nonzero for every user that is not recoverable."""
        free = np.setdiff1d(np.arange(self.space.columns), self.space.pivots)
        values = np.zeros(self.space.columns, dtype=np.uint64)
        values[free], values[self.space.pivots] = self._hiding(free)
        vector = list(self._certified(len(self.log), values, self.independent, self.space.pivots))
        return self._with_the_rest(vector)

    def _hiding(self, free: NDArray[np.intp]) -> tuple[UintArray, UintArray]:
        """Return nonzero values of the free columns, and values of the pivots' columns that are 0 only if they must be.

        Each value is the least one for which no pivot whose last free column this is becomes 0; so it is small.
        """
        prime, basis = np.uint64(self.space.prime), self.space.basis[:, free]
        given, total = np.zeros(len(free), dtype=np.uint64), np.zeros(len(basis), dtype=np.uint64)
        last = np.array([max(np.flatnonzero(row), default=-1) for row in basis])
        for at, factors in enumerate(basis.T):
            ends = np.flatnonzero(last == at)
            given[at] = self._least(total[ends], factors[ends])
            total = (total + factors * given[at]) % prime
        return given, _negative(total, self.space.prime)

    def _least(self, totals: UintArray, factors: UintArray) -> int:
        """Return the least number above 0 such that no total plus its factor times the number is 0."""
        prime = self.space.prime
        pairs = zip(totals.tolist(), factors.tolist(), strict=True)
        taken = {-total * pow(factor, -1, prime) % prime for total, factor in pairs}
        found = next(number for number in range(1, len(taken) + 2) if number not in taken)
        if found >= prime:
            raise _UnluckyPrimeError
        return found

    def _certified(
        self, rounds: int, values: UintArray, rows: Sequence[int], places: NDArray[np.intp]
    ) -> tuple[int, ...]:
        """Return an integer kernel vector of the first rounds that is a multiple of `values` modulo the prime.

        The columns at `places` follow from the other columns, by the rows `rows`.
        """
        for found in self._candidates(values, rows, places):
            whole, _ = rationals.integers(found)
            if rationals.in_kernel(self.rows[:rounds], whole):
                vector = [0] * self.log.shape[1]
                for column, number in zip(self.columns.tolist(), whole, strict=True):
                    vector[column] = number
                return tuple(vector)
        raise _UnluckyPrimeError

    def _candidates(
        self, values: UintArray, rows: Sequence[int], places: NDArray[np.intp]
    ) -> Iterator[tuple[Fraction, ...]]:
        small = rationals.small_fractions(values, self.space.prime)
        if small is not None:
            yield small
        support = np.flatnonzero(values)
        follow = np.intersect1d(support, places)
        free = np.setdiff1d(support, follow)
        given = [int(value) for value in values[free]]
        left = self.rows[list(rows)]
        needed = list(range(len(left)))
        if len(follow) < len(left):
            needed = rationals.independent_columns(left[:, follow].T, self.space.prime)
        if len(needed) < len(follow):
            raise _UnluckyPrimeError
        right = [-number for number in rationals.multiply(left[needed][:, free], given)]
        solved = rationals.solve(left[needed][:, follow], right)
        numbers = dict(zip(free.tolist(), map(Fraction, given), strict=True))
        numbers |= dict(zip(follow.tolist(), solved, strict=True))
        yield tuple(numbers.get(column, Fraction(0)) for column in range(self.space.columns))

    def _with_the_rest(self, vector: list[int]) -> tuple[int, ...]:
        """Return a witness with the same sums that is also nonzero for users in shared classes or in no round."""
        sizes = np.bincount(self.labels[self.labels >= 0]).tolist()
        first: dict[int, int] = {}
        steps: dict[int, int] = {}
        for user, label in enumerate(self.labels.tolist()):
            if label < 0:
                vector[user] = 1
            elif first.setdefault(label, user) != user:
                step = steps.setdefault(label, 2 if vector[first[label]] == sizes[label] - 1 else 1)
                vector[user] = step
                vector[first[label]] -= step
        return tuple(vector)


def _component(rows: BoolArray, column: int) -> NDArray[np.intp]:
    """Return the columns connected to the given one; a row connects all columns that it contains."""
    members = np.zeros(rows.shape[1], dtype=bool)
    members[column] = True
    count = 0
    while count < (count := int(members.sum())):
        members |= rows[rows[:, members].any(axis=1)].any(axis=0)
    return np.flatnonzero(members)


def _combinations(log: BoolArray, recoveries: Sequence[Recovery]) -> dict[int, Combination]:
    """Return the exact combination of each recovery, by user; recoveries of one round are solved together."""
    found: dict[int, Combination] = {}
    left: dict[int, list[Recovery]] = {}
    for recovery in recoveries:
        small = _small(log, recovery)
        if small is not None:
            found[recovery.user] = small
        else:
            left.setdefault(recovery.rounds, []).append(recovery)
    for group in left.values():
        found |= _solved(log, group)
    return {recovery.user: found[recovery.user] for recovery in recoveries}


def _solved(log: BoolArray, group: Sequence[Recovery]) -> dict[int, Combination]:
    """Return the combinations of the recoveries of one round, from one linear system.

    They use the rows with nonzero residues. If a factor is a multiple of the prime, its row is missing there; then all
    independent rows are used.
    """
    first, prime = group[0].rounds, group[0].prime
    found = _from_rows(log, group, sorted({row for recovery in group for row in recovery.combined}))
    if found is None:
        found = _from_rows(log, group, rationals.independent_columns(np.ascontiguousarray(log[:first].T), prime))
    if found is None:
        raise _UnluckyPrimeError
    return found


def _from_rows(log: BoolArray, group: Sequence[Recovery], at: Sequence[int]) -> dict[int, Combination] | None:
    """Return the combinations of some independent rows that give the recoveries, or None if one recovery has none."""
    rows = log[list(at)]
    columns = list(range(log.shape[1]))
    if len(rows) < len(columns):
        columns = rationals.independent_columns(rows, group[0].prime)
    units = [[int(column == recovery.user) for column in columns] for recovery in group]
    factors = rationals.solve_all(np.ascontiguousarray(rows[:, columns].T), units)
    pairs = list(zip(group, factors, strict=True))
    if not all(_makes(rows, recovery.user, numbers) for recovery, numbers in pairs):
        return None
    return {
        recovery.user: tuple((row, number) for row, number in zip(at, numbers, strict=True) if number)
        for recovery, numbers in pairs
    }


def _small(log: BoolArray, recovery: Recovery) -> Combination | None:
    """Return the combination of a recovery if its residues stand for small fractions, or None."""
    numbers = rationals.small_fractions(recovery.residues, recovery.prime)
    if numbers is None or not _makes(log[list(recovery.combined)], recovery.user, numbers):
        return None
    return tuple(zip(recovery.combined, numbers, strict=True))


def _makes(rows: BoolArray, user: int, numbers: Sequence[Fraction]) -> bool:
    """Return whether the rows, each times its number, add up to exactly the unit vector of a user."""
    tops, common = rationals.integers(numbers)
    total = rationals.multiply(np.ascontiguousarray(rows.T), tops)
    return all(number == (common if at == user else 0) for at, number in enumerate(total))


def _negative(values: UintArray, prime: int) -> UintArray:
    return (np.uint64(prime) - values) % np.uint64(prime)


guard(__name__)
