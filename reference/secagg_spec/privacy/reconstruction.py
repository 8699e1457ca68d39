"""Compute exactly how a server gets single models out of the sums of many rounds, or why it cannot.

====================  ==========================================
paper                 here
====================  ==========================================
P(J)                  `log`, truth values (J, N): which users were in the sum of which round
X P(J)^T              the sums, `aggregates`, transposed
z                     `Combination`, rounds with their numbers
====================  ==========================================

Source: Multi-RoundSecAgg, sections 3.2 and 6; spec/multi-round.md, section 4 (MRA-10, MRA-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, isfinite, lcm
from typing import Any, TypeAlias

import flint
import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection.metrics import Log

Integers: TypeAlias = NDArray[np.int64]
Combination: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Rounds, ascending, each with the nonzero number by which its sum is multiplied."""


def combination(log: Log, *users: int) -> Combination | None:
    """Return a combination of the sums of the earliest rounds that is the sum over some users; for one, its model.

    Parameters
    ----------
    log : bool array (J, N)
        Which users were in the sum of which round.
    *users : int
        Distinct users in [0, N).

    Returns
    -------
    Combination, or None
        Numbers z with ``sum z_t log[t]`` = 1 for the users and 0 for all others. The last round is the first one after
        which such numbers exist. None if there are none.

    Raises
    ------
    ParameterError, LengthMismatch
        The log is not an array of truth values with two axes.
    UnknownUser, DuplicateUser
        A user is outside [0, N), or is given twice.

    Source: spec/multi-round.md, section 4 (MRA-10, MRA-11).
    """
    found = _solution(_checked(log).T.astype(int), _indicator(log, users))
    return None if found is None else _terms(found)


def mildest(log: Log, *users: int) -> Combination | None:
    """Return the combination, over all rounds, that solves `combination` with the least sum of squares.

    If models drift, the errors of many rounds average out in it. The arguments and errors are those of `combination`.
    """
    rounds = _checked(log).astype(int)
    found = _solution(rounds.T @ rounds, _indicator(log, users))
    if found is None:
        return None
    weights = np.array(found, dtype=object)
    return _terms([Fraction(weights[row].sum()) for row in log])


def recovered(combination: Combination, aggregates: Integers) -> NDArray[np.object_]:
    """Return the combination of integer sums (J, d), exactly: d fractions.

    Raises
    ------
    ParameterError, LengthMismatch
        The sums are not an int64 array with two axes, or a round has no sum.
    """
    validate.array_shape("aggregates", validate.signed("aggregates", aggregates), (None, None))
    _check_rounds(combination, "aggregates", len(aggregates))
    common = lcm(*(number.denominator for _, number in combination)) if combination else 1
    total = np.zeros(aggregates.shape[1], dtype=object)
    for round, number in combination:
        total = total + aggregates[round].astype(object) * int(number * common)
    return np.array([Fraction(entry, common) for entry in total], dtype=object)


def estimated(combination: Combination, aggregates: RealArray) -> RealArray:
    """Return the combination of real sums (J, d), in binary64.

    Raises
    ------
    ParameterError, LengthMismatch, OutOfRange
        The sums are not a float64 array with two axes and finite entries, a round has no sum, or the result is not
        finite.
    """
    validate.reals("aggregates", aggregates, (None, None))
    _check_rounds(combination, "aggregates", len(aggregates))
    rounds = [round for round, _ in combination]
    try:
        numbers = np.array([float(number) for _, number in combination], dtype=np.float64)
    except OverflowError:
        raise OutOfRange("combination", "a number of 2**1024 or more", "numbers that binary64 has") from None
    with np.errstate(over="ignore", invalid="ignore"):
        found: RealArray = numbers @ aggregates[rounds]
    if not np.isfinite(found).all():
        raise OutOfRange("aggregates", float(np.abs(aggregates[rounds]).max()), "such that their combination is finite")
    return found


def drift_bound(log: Log, combination: Combination, delta: Fraction | float) -> Fraction:
    """Return the largest error of a combination if no model is further than `delta` from a fixed one.

    It is ``delta * sum |z_t| |S_t|``, in the norm of `delta`, and it is attained.

    Raises
    ------
    ParameterError, LengthMismatch, OutOfRange
        The log is not an array of truth values with two axes, a round is not in the log, or `delta` is not a finite
        number of at least 0.

    Source: spec/multi-round.md, section 4.
    """
    _check_rounds(combination, "log", len(_checked(log)))
    exact = delta if isinstance(delta, Fraction) else validate.number(delta)
    if exact is None:
        raise ParameterError("delta", delta, "a fraction, an integer, or a float of 64 bits at most")
    if (isinstance(exact, float) and not isfinite(exact)) or exact < 0:
        raise OutOfRange("delta", exact, "finite, and at least 0")
    return Fraction(exact) * sum(abs(number) * int(log[round].sum()) for round, number in combination)


def witness(log: Log, user: int) -> NDArray[np.object_] | None:
    """Return a change of the models that changes the user's model but none of the sums, or None.

    Parameters
    ----------
    log : bool array (J, N)
    user : int
        A user in [0, N).

    Returns
    -------
    array of N integers of any size, or None
        A vector v that is orthogonal to every round, with ``v[user] != 0``. If another user is in the same rounds, v is
        1 for the user and -1 for that other user. None exactly when there is a `combination`.

    Raises
    ------
    ParameterError, LengthMismatch, UnknownUser
        The arguments are not of these types or ranges.
    """
    (user,) = validate.users("user", (user,), _checked(log).shape[1])
    unit = np.array(_indicator(log, (user,)), dtype=object)
    if not log[:, user].any():
        return unit
    twins = np.flatnonzero((log == log[:, [user]]).all(axis=0) & (unit == 0))
    if twins.size:
        unit[twins[0]] = -1
        return unit
    return _orthogonal(log, user)


def _orthogonal(log: Log, user: int) -> NDArray[np.object_] | None:
    """Return a vector of the null space, without a common factor, that is not 0 at the user."""
    basis, count = flint.fmpz_mat(log.astype(int).tolist()).nullspace()
    for column in range(count):
        vector = [int(basis[row, column]) for row in range(log.shape[1])]
        if vector[user]:
            common = gcd(*vector)
            return np.array([number // common for number in vector], dtype=object)
    return None


def _solution(matrix: NDArray[Any], right: Sequence[int]) -> list[Fraction] | None:
    """Return the x with matrix x = right that is 0 except at the first independent columns, or None."""
    columns = matrix.shape[1]
    augmented = np.column_stack([matrix, np.array(right)]).tolist()
    reduced, denominator, rank = flint.fmpz_mat(augmented).rref()
    found = [Fraction(0)] * columns
    for row in range(rank):
        pivot = next(column for column in range(columns + 1) if reduced[row, column])
        if pivot == columns:
            return None
        found[pivot] = Fraction(int(reduced[row, columns]), int(denominator))
    return found


def _terms(numbers: Sequence[Fraction]) -> Combination:
    return tuple((round, number) for round, number in enumerate(numbers) if number)


def _checked(log: Log) -> Log:
    return validate.truths("log", log, (None, None))


def _indicator(log: Log, users: Sequence[int]) -> list[int]:
    """Return the vector with 1 for each of the users and 0 for the others."""
    chosen = set(validate.users("users", users, log.shape[1]))
    return [int(user in chosen) for user in range(log.shape[1])]


def _check_rounds(combination: Combination, name: str, count: int) -> None:
    """Refuse a value that is not a combination, or a combination with rounds that do not exist."""
    for term in validate.sequence("combination", combination, "rounds and fractions"):
        fits = isinstance(term, tuple) and len(term) == 2 and isinstance(term[1], (Fraction, int))
        if not fits or isinstance(term[1], bool):
            raise ParameterError("combination", term, "a round and a fraction")
        validate.integer("combination", term[0], 0)
    last = max((round for round, _ in combination), default=-1)
    if last >= count:
        raise LengthMismatch(f"len({name})", count, f"at least {last + 1}, the rounds that the combination takes")


guard(__name__)
