"""The common part of aggregators with a quantiser: range, draws, whole protocol or shortcut, error bound.

A round clips or refuses numbers outside the range, quantises all updates at once, and sums them. In the rounds that the
settings name, the whole protocol also runs on the same quantised updates, and its result is compared.

Source: spec/experiments.md, section 4 (EXP-13 to EXP-16).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.quantizer import IntArray
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.experiments import aggregates
from secagg_spec.experiments.aggregates import PROTOCOL, SHORTCUT, Aggregate, Given
from secagg_spec.learning import streams

MAX_SEED = streams.MOST
TOGETHER = 2**15
"""How many numbers are quantised at once: about as many as fit into a cache."""


class Quantised(ABC):
    """An aggregator that quantises, runs its protocol or the shortcut, and decodes.

    Parameters
    ----------
    settings : mapping
        The settings of `aggregators.build`.
    users, d, seed : int
        N, the length of an update, and the seed of draws, keys and masks.
    """

    name: str
    bound: float

    def __init__(self, settings: Mapping[str, Any], users: int, d: int, seed: int) -> None:
        self.N = validate.integer("users", users, 1, validate.MAX_COUNT)
        self.d = validate.integer("d", d, 1, validate.MAX_COUNT)
        self.seed = validate.integer("seed", seed, 0, MAX_SEED)
        self.every = validate.integer("every", settings.get("every", 1), 0)
        self.clip = truth("clip", settings.get("clip", False))

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
        """Return the aggregate of a round; see `aggregates.Aggregator`."""
        given = aggregates.checked(updates, weights, users, round, taus, draws, shape=(self.N, self.d))
        self.check(given)
        return self.of(given)

    def of(self, given: Given) -> Aggregate:
        """Return the aggregate of checked arguments."""
        numbers, moved = within(given, *self.limits(given), self.clip)
        values = self._values(numbers, given)
        mean, ran = self.shortcut(values, given), aggregates.due(self.every, given.round)
        if ran:
            aggregates.agree(self.name, given.round, mean, self.protocol(values.astype(np.int64), given))
        error = aggregates.error_within(self.name, given.round, mean, self.exact(numbers, given), self.bound)
        return Aggregate(mean, self.bound, PROTOCOL if ran else SHORTCUT, moved, error)

    @abstractmethod
    def check(self, given: Given) -> None:
        """Refuse users and weights that the protocol cannot run with."""

    @abstractmethod
    def limits(self, given: Given) -> tuple[float, float]:
        """Return the bounds of the quantiser's range."""

    @abstractmethod
    def quantised(self, numbers: RealArray, draws: RealArray, rows: slice, n: int) -> RealArray:
        """Round numbers in the range to whole numbers with the given draws; `rows` are some of the n rows."""

    @abstractmethod
    def shortcut(self, values: RealArray, given: Given) -> RealArray:
        """Return the aggregate of whole numbers (n, d) without messages."""

    @abstractmethod
    def protocol(self, values: IntArray, given: Given) -> RealArray:
        """Return the aggregate of integers (n, d) from a run of the whole protocol."""

    def exact(self, numbers: RealArray, given: Given) -> RealArray:
        """Return the aggregate of numbers in the range, without quantisation."""
        return aggregates.weighted_mean(numbers, given.weights)

    def key(self, round: int) -> bytes:
        """Return the seed of the keys and masks of a round."""
        return streams.stream(self.seed, streams.KEYS, round).bytes(32)

    def sources(self, given: Given) -> dict[int, SeededSource]:
        """Return the source of keys and masks of each of the n users of a round."""
        key = self.key(given.round)
        return {at: SeededSource(key, f"user {user}") for at, user in enumerate(given.users)}

    def _values(self, numbers: RealArray, given: Given) -> RealArray:
        """Round numbers in the range to whole numbers (n, d), some rows at a time."""
        values, at_once = np.empty(numbers.shape), max(1, TOGETHER // self.d)
        for start in range(0, given.count, at_once):
            rows = slice(start, start + at_once)
            draws = self._draws(given.users[rows], given.round)
            values[rows] = self.quantised(numbers[rows], draws, rows, given.count)
        return values

    def _draws(self, users: Sequence[int], round: int) -> RealArray:
        """Return d draws of the quantiser for each user; they depend on seed, round and user, not on the scheme."""
        draws = np.empty((len(users), self.d))
        for row, user in zip(draws, users, strict=True):
            streams.stream(self.seed, streams.QUANTISER, round, user).random(out=row)
        return draws


def within(given: Given, low: float, high: float, clip: bool) -> tuple[RealArray, int]:
    """Return the updates clipped to a range, and how many numbers were outside it (EXP-16).

    Raises
    ------
    OutOfRange
        Some numbers are outside, and clipping is off.
    """
    if low <= given.updates.min() and given.updates.max() <= high:
        return given.updates, 0
    outside = (given.updates < low) | (given.updates > high)
    if not clip:
        row, column = np.unravel_index(int(np.argmax(outside)), outside.shape)
        allowed = f"in [{low:.9g}, {high:.9g}], the range of the quantiser, or moved there with the setting clip"
        raise OutOfRange(aggregates.whose(given.users[row], given.round), float(given.updates[row, column]), allowed)
    return np.clip(given.updates, low, high), int(np.count_nonzero(outside))


def truth(name: str, value: object) -> bool:
    """Return a setting that is true or false.

    Raises
    ------
    ParameterError
        The setting is neither.
    """
    if not isinstance(value, bool):
        raise ParameterError(name, value, "true or false")
    return value
