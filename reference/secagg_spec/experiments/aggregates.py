"""The arguments and results of an aggregator, and the plain weighted mean that all aggregators are compared with.

====================  ==========================================
text                  here
====================  ==========================================
K, d                  the rows and columns of `updates`
w_i, Delta_i          `weights`, rows of `updates`
c_l                   `level` of an aggregator, 1 / `bound`
====================  ==========================================

Source: spec/experiments.md, section 4 (EXP-13 to EXP-16).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError

PLAIN: Literal["plain"] = "plain"
PROTOCOL: Literal["protocol"] = "protocol"
SHORTCUT: Literal["shortcut"] = "shortcut"
Way: TypeAlias = Literal["plain", "protocol", "shortcut"]
LAST_ROUND = 2**32 - 2


class Disagreement(Exception):
    """Two ways to compute one aggregate differ by more than allowed (EXP-13, EXP-14): the run must stop."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The aggregate of a round.

    Parameters
    ----------
    mean : array (d,) of float64
        The aggregate.
    bound : float
        Each coordinate differs by less than this from the same aggregate without quantisation (EXP-13); 0 without a
        quantiser.
    by : {"plain", "protocol", "shortcut"}
        Whether there is no protocol, the whole protocol ran, or the sum of quantised updates replaced it (EXP-15).
    moved : int
        How many numbers were clipped to a bound of the quantiser's range (EXP-16).
    error : float
        The largest difference found (EXP-13).
    """

    mean: RealArray
    bound: float
    by: Way
    moved: int = 0
    error: float = 0.0


class Aggregator(Protocol):
    """Computes the aggregate of the updates of a round."""

    name: str

    def aggregate(
        self,
        updates: RealArray,
        weights: Sequence[float | int],
        *,
        users: Sequence[int],
        round: int,
        taus: Sequence[int] | None = None,
        draws: RealArray | None = None,
    ) -> Aggregate:
        """Return the aggregate of a round.

        Parameters
        ----------
        updates : array (n, d) of float64
            A row for each user, finite numbers.
        weights : sequence of n numbers
            Whole numbers, at least 0 and not all 0; the plain aggregator accepts real ones.
        users : sequence of int
            The users of the rows, all different, in ``[0, N)``.
        round : int
            The number of the round.
        taus : sequence of int, optional
            The age of each update in rounds; 0 by default.
        draws : array (n,) of float64, optional
            The draws that rounded the weights of a buffer: multiples of 2**-53 in ``[0, 1)``; zeros by default.

        Raises
        ------
        ParameterError
            An argument is not as described, or the weights are not those that the protocol gives.
        OutOfRange
            A number is outside the range of the quantiser (EXP-16), or not finite; the error names the user.
        Disagreement
            The aggregate is not the required one (EXP-13, EXP-14).
        """
        ...


@dataclass(frozen=True, eq=False)
class Given:
    """The checked arguments of a round, in ascending order of users."""

    updates: RealArray
    weights: tuple[float | int, ...]
    users: tuple[int, ...]
    round: int
    taus: tuple[int, ...]
    draws: RealArray

    @property
    def count(self) -> int:
        """The number of users in the round."""
        return len(self.users)

    @property
    def total(self) -> int:
        """The sum of the weights, if they are whole."""
        return int(sum(self.weights))

    @property
    def stamps(self) -> tuple[int, ...]:
        """The round of the model from which each update started."""
        return tuple(self.round - tau for tau in self.taus)


def checked(
    updates: RealArray,
    weights: Sequence[float | int],
    users: Sequence[int],
    round: int,
    taus: Sequence[int] | None,
    draws: RealArray | None,
    *,
    shape: tuple[int, int],
    whole: bool = True,
) -> Given:
    """Return the arguments of a round, sorted by user; `shape` is (N, d), and `whole` requires whole weights.

    Raises
    ------
    ParameterError
        The arguments are not as `Aggregator.aggregate` requires.
    """
    N, d = shape
    names = validate.users("users", users, N)
    n, round = validate.integer("len(users)", len(names), 1), validate.integer("round", round, 0, LAST_ROUND)
    numbers = _weights(weights, n, whole)
    ages = [validate.integer("taus", tau, 0, round) for tau in _long("taus", [0] * n if taus is None else taus, n)]
    rounding = validate.reals("draws", np.zeros(n) if draws is None else draws, (n,))
    rows = _rows(updates, (n, d), names, round)
    order = sorted(range(n), key=names.__getitem__)
    sorted_weights, sorted_names = tuple(numbers[at] for at in order), tuple(names[at] for at in order)
    rows = rows if order == list(range(n)) else rows[order]
    return Given(rows, sorted_weights, sorted_names, round, tuple(ages[at] for at in order), rounding[order])


def weighted_mean(rows: RealArray, weights: Sequence[float | int]) -> RealArray:
    """Return the sum of w_i x_i over the sum of w_i, for rows x_i (n, d), added one after the other."""
    total = np.zeros(rows.shape[1])
    for weight, row in zip(weights, rows, strict=True):
        total += weight * row
    return total / math.fsum(weights)


def due(every: int, round: int) -> bool:
    """Return whether the whole protocol runs in a round: in every `every`-th round; never for 0."""
    return every > 0 and divmod(round, every)[1] == 0


def agree(name: str, round: int, shortcut: RealArray, protocol: RealArray) -> None:
    """Raise `Disagreement` unless a shortcut equals the aggregate of the whole protocol, bit for bit (EXP-14)."""
    if shortcut.tobytes() != protocol.tobytes():
        raise Disagreement(f"{name}, round {round}: the sum of quantised updates is not what the protocol returns")


def error_within(name: str, round: int, mean: RealArray, exact: RealArray, bound: float) -> float:
    """Return the largest difference from the aggregate without quantisation, which must be below `bound` (EXP-13).

    Raises
    ------
    Disagreement
        The difference is not below the bound.
    """
    error = float(np.abs(mean - exact).max())
    if not error < bound:
        what = f"differs by {error:.6g} from the one without quantisation, which must be below {bound:.6g}"
        raise Disagreement(f"{name}, round {round}: the aggregate {what}")
    return error


def _rows(updates: RealArray, shape: tuple[int, int], users: Sequence[int], round: int) -> RealArray:
    updates = validate.binary64("updates", updates)
    validate.array_shape("updates", updates, shape)
    finite = np.isfinite(updates)
    if not finite.all():
        row, column = np.unravel_index(int(np.argmin(finite)), finite.shape)
        raise OutOfRange(whose(users[int(row)], round), float(updates[row, column]), "finite in each coordinate")
    return updates


def whose(user: int, round: int) -> str:
    """Return the name of a user's update in an error."""
    return f"update of user {user} in round {round}"


def _weights(weights: Sequence[float | int], count: int, whole: bool) -> list[float | int]:
    numbers = [_weight(weight, whole) for weight in _long("weights", weights, count)]
    total = sum(numbers)
    if not validate.finite(total) or not total > 0:
        raise ParameterError("sum(weights)", total, "positive, and a finite number")
    return numbers


def _weight(weight: float | int, whole: bool) -> float | int:
    if whole:
        return validate.integer("weights", weight, 0)
    if not validate.finite(weight) or weight < 0:
        raise ParameterError("weights", weight, "finite numbers, at least 0")
    return float(weight)


def _long(name: str, values: Sequence[float | int], count: int) -> Sequence[float | int]:
    if len(validate.sequence(name, values, "numbers")) != count:
        raise LengthMismatch(f"len({name})", len(values), f"{count}, one for each user")
    return values
