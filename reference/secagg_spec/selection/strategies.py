"""The strategies that choose the users of a round; they are deterministic given their draws.

====================  ==========================================
paper                 here
====================  ==========================================
u(t)                  `available`
f(t)                  `frequencies`
p(t)                  the result of `choose`, as a set
====================  ==========================================

Source: Multi-RoundSecAgg, sections 3.3 and 4, component 2; spec/multi-round.md, section 3 (MRA-03 to MRA-09).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection.batches import Parameters, complete

MAX_FREQUENCY = 2**32
Counts = NDArray[np.int64]
_Items = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pool(validate.Plain):
    """Candidate batches: all of `taken` are chosen, and `draws` batches are drawn from `drawn`.

    With `least`, one batch of `least` is drawn first, and then draws - 1 of the others of `drawn`.
    """

    taken: _Items
    drawn: _Items
    draws: int
    least: _Items | None = None

    @property
    def ranges(self) -> tuple[int, ...]:
        """The exclusive upper bound of each draw."""
        if self.least is None:
            return tuple(range(len(self.drawn), len(self.drawn) - self.draws, -1))
        return (len(self.least), *range(len(self.drawn) - 1, len(self.drawn) - self.draws, -1))

    def choose(self, draws: Sequence[int]) -> _Items:
        """Return the chosen batches.

        Raises
        ------
        LengthMismatch
            There is not one draw for each entry of `ranges` (MRA-08).
        OutOfRange
            A draw is outside its range (MRA-08).
        ParameterError
            The draws are no sequence.
        """
        _check_draws(self.ranges, draws)
        if self.least is None:
            return np.concatenate([self.taken, draw(self.drawn, draws)])
        first = draw(self.least, draws[:1])
        return np.concatenate([first, draw(self.drawn[self.drawn != first], draws[1:])])


def draw(items: _Items, draws: Sequence[int]) -> _Items:
    """Return the drawn items: for each s in turn, the item at place s is swapped with the item at s + draws[s].

    Raises
    ------
    ParameterError
        There are more draws than items, one reaches beyond the last item, or the items are no array or the draws no
        sequence.
    """
    validate.array_shape("items", validate.array("items", items, None), (None,))
    if len(validate.sequence("draws", draws, "integers")) > len(items):
        raise LengthMismatch("len(draws)", len(draws), f"at most {len(items)}, one for each item")
    moved = items.copy()
    for place, given in enumerate(draws):
        step = validate.integer(f"draws[{place}]", given, 0, len(items) - place - 1)
        moved[[place, place + step]] = moved[[place + step, place]]
    return moved[: len(draws)]


# ----------------------------------------------------------------------------------------------- the strategies


def uniform(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    """Draw K/T of the complete batches: Multi-RoundSecAgg for equal dropout rates; with T = 1, random selection."""
    batches = complete(parameters, available)
    return _drawn(batches, parameters.per_round) if len(batches) >= parameters.per_round else None


def least(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    """Take complete batches by ascending frequency; draw among batches of equal frequency if not all of them fit."""
    batches = complete(parameters, available)
    count = parameters.per_round
    if len(batches) < count:
        return None
    seen = _least_frequencies(parameters, frequencies)[batches]
    last = np.partition(seen, count - 1)[count - 1]
    level, taken = batches[seen == last], batches[seen < last]
    missing = count - len(taken)
    if missing == len(level):
        return Pool(np.concatenate([taken, level]), level[:0], 0)
    return Pool(taken, level, missing)


def fair(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    """Draw one complete batch of least frequency, then others: Multi-RoundSecAgg as in the paper, repaired."""
    batches = complete(parameters, available)
    if len(batches) < parameters.per_round:
        return None
    seen = _least_frequencies(parameters, frequencies)[batches]
    return Pool(batches[:0], batches, parameters.per_round, batches[seen == seen.min()])


def _least_frequencies(parameters: Parameters, frequencies: Counts) -> Counts:
    """Return the frequency of each batch: the least frequency of its users."""
    validate.array_shape("frequencies", validate.signed("frequencies", frequencies), (parameters.N,))
    found: Counts = frequencies.reshape(parameters.batches, parameters.T).min(axis=1)
    return found


def _drawn(items: _Items, count: int) -> Pool:
    return Pool(items[:0], items, count)


@dataclass(frozen=True)
class Strategy:
    """A selection strategy; `batch` gives the T that it requires for K, or is None if it allows any T."""

    name: str
    pool: Callable[[Parameters, Counts, BoolArray], Pool | None]
    batch: Callable[[int], int] | None = None

    def check(self, parameters: Parameters) -> None:
        """Refuse parameters whose T differs from the T that the strategy requires (MRA-09).

        Raises
        ------
        ParameterError
            T differs.
        """
        if self.batch is not None and self.batch(parameters.K) != parameters.T:
            raise ParameterError("T", parameters.T, f"{self.batch(parameters.K)} for the strategy {self.name!r}")


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "random": Strategy("random", uniform, lambda K: 1),
        "weighted": Strategy("weighted", least, lambda K: 1),
        "partition": Strategy("partition", fair, lambda K: K),
        "uniform": Strategy("uniform", uniform),
        "fair": Strategy("fair", fair),
        "least": Strategy("least", least),
    }
)


# -------------------------------------------------------------------------------------------------- the choice


def ranges(parameters: Parameters, strategy: str, frequencies: Counts, available: BoolArray) -> tuple[int, ...] | None:
    """Return the exclusive upper bound of each draw of a choice, or None if there is no round.

    The arguments and errors are the same as for `choose`.
    """
    pool = _pool(parameters, strategy, frequencies, available)
    return None if pool is None else pool.ranges


def choose(
    parameters: Parameters, strategy: str, frequencies: Counts, available: BoolArray, draws: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the users of a round, ascending, or None when there is no round (MRA-03 to MRA-06).

    Parameters
    ----------
    parameters : Parameters
    strategy : str
        A name of `STRATEGIES`.
    frequencies : int64 array (N,)
        The number of earlier rounds in which each user was in the sum.
    available : bool array (N,)
        Whether each user is available.
    draws : sequence of int
        One per entry of `ranges`, uniform in [0, entry) and independent; no draws if there is no round.

    Raises
    ------
    ParameterError
        The strategy is unknown, requires another T, or an argument has the wrong type (MRA-09).
    LengthMismatch
        The number of entries differs from the number of users (MRA-09), or the number of draws is wrong (MRA-08).
    OutOfRange
        A frequency (MRA-09) or a draw (MRA-08) is outside its range.

    Source: Multi-RoundSecAgg, eq. (3).
    """
    pool = _pool(parameters, strategy, frequencies, available)
    _check_draws(() if pool is None else pool.ranges, draws)
    if pool is None:
        return None
    return parameters.users(np.sort(pool.choose(draws)).tolist())


def _pool(parameters: Parameters, strategy: str, frequencies: Counts, available: BoolArray) -> Pool | None:
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ParameterError("strategy", strategy, "one of " + ", ".join(STRATEGIES))
    STRATEGIES[strategy].check(parameters)
    validate.array_shape("frequencies", validate.signed("frequencies", frequencies), (parameters.N,))
    outside = (frequencies < 0) | (frequencies >= MAX_FREQUENCY)
    if outside.any():
        at = int(np.argmax(outside))
        raise OutOfRange(f"frequencies[{at}]", int(frequencies[at]), f"in [0, {MAX_FREQUENCY})")
    validate.truths("available", available, (parameters.N,))
    return STRATEGIES[strategy].pool(parameters, frequencies, available)


def _check_draws(bounds: Sequence[int], draws: Sequence[int]) -> None:
    if len(validate.sequence("draws", draws, "integers")) != len(bounds):
        raise LengthMismatch("len(draws)", len(draws), str(len(bounds)))
    for at, (bound, step) in enumerate(zip(bounds, draws, strict=True)):
        if not isinstance(validate.number(step), int) or not 0 <= step < bound:
            raise OutOfRange(f"draws[{at}]", step, f"an integer in [0, {bound})")


guard(__name__)
