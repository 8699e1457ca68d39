"""Combinations of the rounds of a log as words of a code, and bounds on the least number of users of a word.

The combinations of a log are a linear code over the rationals, whose least weight is the weak privacy. All users
who are in the same sets form one column with a weight; the code has m columns and rank r.

Everything is computed modulo a prime p below 2**31 for which the log has the same rank as over the rationals; flint
checks this. A rational word, made integral and free of common factors, is then a nonzero word modulo p with no more
users. So lower bounds on all words modulo p hold for all rational words, and are certain. A word that is found
modulo p counts only if it also exists over the rationals: if the columns outside it have a lower rank.

There are two ways to show that each word has weight w or more. Both reduce to finding dependent columns of a matrix
(`arithmetic.dependence`).

1. *Columns.* Take the columns of a kernel matrix, (m - r, m). The columns at the places of a word are dependent, and a
   dependent set of columns contains a word. If no k columns are dependent, each word has at least k + 1 columns, so its
   weight is at least the sum of the k + 1 lightest weights. With k = m - r all words have been covered, so this way
   ends with the least weight.
2. *Bases.* Take q bases, that is sets of r independent columns, such that each user is in at most c of them. A word of
   fewer than w users has at most s = c(w - 1)/q users in some base, so at most s columns. In the reduced echelon form
   of that base, the word is a combination of at most s rows. It has few other columns. Split the other columns into
   more groups than that; then the word is zero on some group, and the s rows are dependent on that group. If no such
   rows exist, no such word exists.

Each way is used only if it compares at most `effort` columns, so results do not depend on the machine. The first way
is always used for at most 12 users.

Source: spec/multi-round.md, section 4 (MRA-13, MRA-14).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf

import flint
import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import dependence, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField, is_prime
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.selection.metrics import classes

EXACT_USERS = 12
_SHARED = (1, 2, 3)
_SPLITS = 3
_Items = NDArray[np.intp]


def code_of(log: BoolArray) -> Code:
    """Return the code of a log of rounds and users, modulo the first prime that preserves its rank over the rationals.

    Raises
    ------
    LengthMismatch
        The log has no round or no user.
    ParameterError
        Nobody took part in any round, or the log is no array of truth values.
    """
    if validate.truths("log", log, (None, None)).size == 0:
        raise LengthMismatch("log.shape", log.shape, "(rounds, users), at least one of each")
    if not log.any():
        raise ParameterError("log", "without a user that took part", "a log of a round or more with users")
    for modulus in range(dependence.MODULI - 1, 2, -2):
        if is_prime(modulus):
            try:
                return Code(log, PrimeField(modulus))
            except _Another:
                continue
    raise AssertionError("finitely many primes divide a minor of the log")


class _Another(Exception):
    """Modulo this prime the log behaves differently than over the rationals."""


@dataclass(frozen=True)
class _Base:
    """The reduced echelon form for a base: the identity at columns `inside`, and `rest` at columns `outside`."""

    inside: _Items
    outside: _Items
    rest: UintArray


@dataclass(frozen=True)
class _Packing:
    """Bases such that each user is in at most `shared` of them."""

    bases: tuple[_Base, ...]
    shared: int

    def most(self, weight: int) -> int:
        """Return s: every word below that weight has at most s columns in some base."""
        return self.shared * (weight - 1) // len(self.bases)


class Code:
    """The words of a log on its distinct nonzero columns, which have ascending weights.

    `code_of` makes it; it is for checked arguments.
    """

    def __init__(self, log: BoolArray, field: PrimeField) -> None:
        self.field = field
        self.members = _classes(log)
        self.weights = np.array([len(users) for users in self.members], dtype=np.int64)
        self.rows = _different(log[:, [int(users[0]) for users in self.members]])
        self.rank = _rank(self.rows)
        form, rank = _echelon(self.field, self.rows.astype(np.uint64))
        if rank < self.rank:
            raise _Another
        inside = np.argmax(form[:rank] != 0, axis=1)
        outside = np.setdiff1d(np.arange(len(self.weights)), inside)
        self.base = _Base(inside, outside, form[:rank, outside])
        self.low, self.high, self.places = int(self.weights[0]), int(self.weights.sum()) + 1, np.arange(0)
        self._note_rows(self.base)
        self._note_sets()
        self._seen = 0
        self._packings: list[_Packing] | None = None

    @property
    def users(self) -> tuple[int, ...]:
        """The users outside whom the lightest known word is zero."""
        return tuple(sorted(int(user) for place in self.places for user in self.members[place]))

    def holds(self, users: NDArray[np.bool_]) -> bool:
        """Return whether each union of classes is a word, and `users` is such a union."""
        if self.rank < len(self.weights):
            return False
        inside = sum(len(members) for members in self.members if users[members].all())
        return inside == int(users.sum())

    def raise_to(self, weight: int, effort: int) -> bool:
        """Try to show that each word has at least that weight; False if a word has less, or the effort is too small."""
        if self.low < weight <= self.high:
            if sum(map(len, self.members)) <= EXACT_USERS or self._cost_of_columns(weight) <= effort:
                self._by_columns(weight)
            elif self.rank < len(self.weights):
                self._by_bases(weight, effort)
        return self.low >= weight

    def _reduced(self, order: _Items) -> _Base:
        """Return the base that takes each column, in the given order, that is independent of the earlier ones."""
        form = np.zeros((self.rank, len(order)), dtype=np.uint64)
        form[:, self.base.inside], form[:, self.base.outside] = np.eye(self.rank, dtype=np.uint64), self.base.rest
        looked = min(2 * self.rank, len(order))
        while (found := _echelon(self.field, form[:, order[:looked]]))[1] < self.rank:
            looked = min(2 * looked, len(order))
        inside = np.sort(order[np.argmax(found[0][: self.rank] != 0, axis=1)])
        outside = np.setdiff1d(order, inside)
        inverse = flint.nmod_mat(form[:, inside].tolist(), self.field.modulus).inv()
        return _Base(inside, outside, self.field.matmul(_array(inverse), form[:, outside]))

    def _note_rows(self, base: _Base) -> None:
        sums = self.weights[base.inside] + (base.rest != 0) @ self.weights[base.outside]
        row = int(np.argmin(sums))
        self._note(np.append(base.outside[base.rest[row] != 0], base.inside[row]))

    def _note_sets(self) -> None:
        sums = self.rows @ self.weights
        sums[sums == 0] = self.weights.sum() + 1
        self._note(np.flatnonzero(self.rows[int(np.argmin(sums))]))

    def _note(self, places: _Items) -> None:
        """Record a word modulo the prime that is zero outside `places`, if it is the lightest so far."""
        weight = int(self.weights[places].sum())
        if weight < self.high:
            if _rank(np.delete(self.rows, places, axis=1)) == self.rank:
                raise _Another
            self.high, self.places = weight, np.sort(places)

    # -- by columns

    def _columns(self, weight: int) -> int:
        """Return how many columns must be independent to show that each word has that weight; m - r at most."""
        lightest = np.cumsum(self.weights)
        return min(int(np.searchsorted(lightest, weight)), len(self.base.outside))

    def _cost_of_columns(self, weight: int) -> int:
        sizes = range(self._seen + 1, self._columns(weight) + 1)
        return sum(dependence.cost(len(self.weights), size) for size in sizes)

    def _by_columns(self, weight: int) -> None:
        kernel = _kernel(self.field, self.base)
        lightest = np.cumsum(self.weights)
        for size in range(self._seen + 1, self._columns(weight) + 1):
            found = dependence.lightest(self.field, kernel, size, self.weights)
            if found is not None:
                self._note(np.array(found))
            self._seen = size
            self.low = max(self.low, min(self.high, int(lightest[size])))
        if self._seen == len(kernel):
            self._note(np.arange(len(kernel) + 1))

    # -- by bases

    def _by_bases(self, weight: int, effort: int) -> None:
        least = self.rank * (weight - 1) // int(self.weights.sum())
        if dependence.cost(self.rank, least) > effort:
            return
        packing = min(self._all_packings(), key=lambda packing: self._cost_of_bases(packing, weight))
        if self._cost_of_bases(packing, weight) > effort:
            return
        if all(self._has_no_word(base, weight, packing.most(weight)) for base in packing.bases):
            self.low = max(self.low, min(weight, self.high))

    def _all_packings(self) -> list[_Packing]:
        if self._packings is None:
            self._packings = [self._packing(shared) for shared in _SHARED]
        return self._packings

    def _packing(self, shared: int) -> _Packing:
        """Return bases; each prefers the columns with the most users not yet used by earlier bases."""
        left, bases = shared * self.weights, [self.base]
        left[self.base.inside] -= 1
        while len(bases) < shared * self.high:
            base = self._reduced(np.argsort(-left, kind="stable"))
            if not left[base.inside].all():
                break
            bases.append(base)
            self._note_rows(base)
            left[base.inside] -= 1
        return _Packing(tuple(bases), shared)

    def _cost_of_bases(self, packing: _Packing, weight: int) -> float:
        most = packing.most(weight)
        return sum(self._cost_of_base(base, weight, most) for base in packing.bases)

    def _cost_of_base(self, base: _Base, weight: int, most: int) -> float:
        total = comb(self.rank, 2) * len(base.outside) if most > 1 else 0
        for size in range(3, min(most, self.rank) + 1):
            groups = self._groups(base, weight, size)
            if groups * size > len(base.outside):
                return inf
            total += groups * sum(dependence.cost(self.rank, fewer) for fewer in range(1, size + 1))
        return total

    def _groups(self, base: _Base, weight: int, size: int) -> int:
        """Return the number of groups such that a word of less weight with `size` base columns is zero on one; or 0."""
        left = weight - 1 - int(self.weights[base.inside[:size]].sum())
        return 0 if left < 0 else left // int(self.weights[base.outside].min()) + 1

    def _has_no_word(self, base: _Base, weight: int, most: int) -> bool:
        """Return whether it is certain that no word of less weight has at most `most` columns of the base."""
        if most > 1:
            self._note_pairs(base)
        sizes = range(3, min(most, self.rank) + 1)
        return self.high >= weight and all(
            any(self._zero_on_none(base, size, weight, split) for split in range(_SPLITS)) for size in sizes
        )

    def _note_pairs(self, base: _Base) -> None:
        """Record the lightest combination of two rows; each is zero at the columns with the most frequent ratio."""
        there = base.rest != 0
        for row in range(self.rank - 1):
            later = base.rest[row + 1 :]
            ratios = self.field.multiply(later, np.broadcast_to(_inverse(self.field, base.rest[row]), later.shape))
            for second, ratio in enumerate(ratios, start=row + 1):
                either = there[row] | there[second]
                zero = _most_frequent(ratio, self.weights[base.outside])
                self._note(np.concatenate([base.inside[[row, second]], base.outside[either & ~zero]]))

    def _zero_on_none(self, base: _Base, size: int, weight: int, split: int) -> bool:
        """Return whether, on each of the groups, any `size` rows are independent."""
        groups = self._groups(base, weight, size)
        place = np.arange(len(base.outside))
        group = np.remainder(place + split * (place // max(groups, 1)), max(groups, 1))
        return all(self._independent(base, np.flatnonzero(group == at), size) for at in range(groups))

    def _independent(self, base: _Base, part: _Items, most: int) -> bool:
        """Return whether any `most` rows are independent on the columns `part`; if not, record a word."""
        columns = np.ascontiguousarray(base.rest[:, part].T)
        for size in range(1, most + 1):
            found = dependence.lightest(self.field, columns, size, self.weights[base.inside])
            if found is not None:
                self._note_combination(base, columns, np.array(found))
                return False
        return True

    def _note_combination(self, base: _Base, columns: UintArray, found: _Items) -> None:
        """Record the combination of the rows `found` that is zero on the given columns."""
        kernel, _ = flint.nmod_mat(columns[:, found].tolist(), self.field.modulus).nullspace()
        steps = np.array([[int(kernel[row, 0]) for row in range(len(found))]], dtype=np.uint64)
        word = self.field.matmul(steps, np.ascontiguousarray(base.rest[found]))[0]
        self._note(np.concatenate([base.inside[found[steps[0] != 0]], base.outside[word != 0]]))


def _classes(log: BoolArray) -> list[_Items]:
    """Return the classes: users who are in the same sets, and in at least one; smallest classes first."""
    found = [np.array(users, dtype=np.intp) for users in classes(log)]
    return sorted(found, key=len)


def _different(rows: BoolArray) -> BoolArray:
    """Return the distinct rows in their order; if there are many, only the first, if these have full column rank."""
    different = rows[np.sort(np.unique(np.packbits(rows, axis=1), axis=0, return_index=True)[1])]
    first = different[: 2 * rows.shape[1]]
    return first if len(first) < len(different) and _rank(first) == rows.shape[1] else different


def _echelon(field: PrimeField, matrix: UintArray) -> tuple[UintArray, int]:
    """Return the reduced echelon form of a matrix, and its rank."""
    reduced, rank = flint.nmod_mat(matrix.tolist(), field.modulus).rref()
    return _array(reduced), int(rank)


def _array(matrix: flint.nmod_mat) -> UintArray:
    entries = np.array([int(entry) for entry in matrix.entries()], dtype=np.uint64)
    return entries.reshape(matrix.nrows(), matrix.ncols())


def _rank(rows: BoolArray) -> int:
    return int(flint.fmpz_mat(rows.astype(int).tolist()).rank()) if rows.size else 0


def _most_frequent(values: UintArray, weights: NDArray[np.int64]) -> BoolArray:
    """Return the places of the nonzero value with the greatest total weight."""
    of = np.unique(values, return_inverse=True)[1]
    sums = np.bincount(of, weights=weights * (values != 0))
    most: BoolArray = of == np.argmax(sums)
    most &= values != 0
    return most


def _inverse(field: PrimeField, a: UintArray) -> UintArray:
    """Return the elementwise inverses, and 0 for 0."""
    return np.where(a == 0, np.uint64(0), field.inverse(np.where(a == 0, np.uint64(1), a)))


def _kernel(field: PrimeField, base: _Base) -> UintArray:
    """Return the (m - r, m) matrix of which columns are dependent exactly when a word is zero at all other columns."""
    kernel = np.zeros((len(base.outside), len(base.outside) + len(base.inside)), dtype=np.uint64)
    kernel[:, base.inside] = field.subtract(np.zeros_like(base.rest), base.rest).T
    kernel[np.arange(len(base.outside)), base.outside] = 1
    return kernel


guard(__name__)
