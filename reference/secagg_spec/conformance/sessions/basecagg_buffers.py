"""Buffers of BASecAgg and their recoveries, in the form of requests; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack


def half(q: int) -> int:
    """Return the largest positive integer that an element can carry."""
    return (q - 1) // 2


def weighted(field: PrimeField, factors: Sequence[int], rows: UintArray) -> UintArray:
    """Return the sum of some rows, each multiplied by its weight."""
    return field.matmul(np.array([factors], dtype=np.uint64), rows).reshape(-1)


@dataclass(frozen=True)
class Entry:
    """One update of a buffer."""

    user: int
    stamp: int
    weight: int


@dataclass(frozen=True)
class Buffer:
    """A buffer that a user is asked to answer, and the user's shares by sender: the stamp and the elements."""

    q: int
    N: int
    T: int
    K: int
    c_g: int
    tau_max: int
    function: Staleness
    round: int
    entries: tuple[Entry, ...]
    held: dict[int, tuple[int, UintArray]]

    def allowed(self, tau: int) -> tuple[int, ...]:
        """Return the weights allowed for a staleness."""
        return admissible_weights(self.function, self.c_g, tau)

    def with_entry(self, at: int, **changed: int) -> Buffer:
        """Return the buffer with another entry at a place; its share is held if the roster contains its user."""
        entry = replace(self.entries[at], **changed)
        entries = (*self.entries[:at], entry, *self.entries[at + 1 :])
        share = self.held[self.entries[at].user][1]
        held = {**self.held, entry.user: (entry.stamp, share)} if 0 <= entry.user < self.N else self.held
        return replace(self, entries=entries, held=held)

    def with_level(self, c_g: int) -> Buffer:
        """Return the buffer at another level, with the larger admissible weight of each entry."""
        other = replace(self, c_g=c_g)
        weights = [other.allowed(self.round - entry.stamp)[-1] for entry in self.entries]
        entries = [replace(entry, weight=weight) for entry, weight in zip(self.entries, weights, strict=True)]
        return replace(other, entries=tuple(entries))

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the members of ``params``, with some of them replaced."""
        numbers = {name: getattr(self, name) for name in ("q", "N", "T", "K", "tau_max")}
        function = {name: getattr(self.function, name) for name in ("kind", "numerator", "denominator")}
        written = {"c_g": str(self.c_g), "start": str(self.function.start), "round": str(self.round)}
        lists = {
            "users": [entry.user for entry in self.entries],
            "stamps": pack(np.array([entry.stamp for entry in self.entries], dtype=np.uint64)),
            "weights": pack(np.array([entry.weight for entry in self.entries], dtype=np.uint64)),
            "held": [[user, str(stamp), pack(share)] for user, (stamp, share) in self.held.items()],
        }
        return {**numbers, **function, **written, **lists, **changed}


@dataclass(frozen=True)
class Recovery:
    """The end of a buffer: its weights, the server's data, the users' answers, and the weighted sum."""

    numbers: dict[str, int]
    c_l: int
    weights: list[int]
    masked: UintArray
    users: list[int]
    shares: UintArray
    sum: UintArray

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the members of ``params``, with some of them replaced."""
        lists = {
            "weights": pack(np.array(self.weights, dtype=np.uint64)),
            "masked": [pack(row) for row in self.masked],
            "users": self.users,
            "shares": [pack(self.shares[user]) for user in self.users],
        }
        numbers = {name: self.numbers[name] for name in ("q", "N", "U", "T", "d")}
        return {**numbers, "c_l": str(self.c_l), **lists, **changed}
