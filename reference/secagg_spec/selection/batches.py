"""Batches of users that are chosen together or not at all, and the family of sets that are unions of batches.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, T               `Parameters`
G_1, G_2, ...         `members` of a batch, counted from 0
B, R_BP               `family`, `family_size`
====================  ==========================================

Source: Multi-RoundSecAgg, section 4, component 1; spec/multi-round.md, sections 2 and 6 (MRA-01, MRA-02, MRA-18).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from math import comb
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import ParameterError

MAX_USERS = 2**32 - 1
MOST_LISTED = 2**20
"""The most batches of a family that is listed: all of them are in memory at once."""
MOST_BITS = 2**22
"""The largest min(K, N - K)/T times the bits of N/T, which bounds the bits of the number of sets: some seconds."""


@dataclass(frozen=True)
class Parameters(validate.Plain):
    """N users, of whom K take part in a round, in batches of T.

    Raises
    ------
    ParameterError
        The numbers violate MRA-01: ``1 <= T <= K <= N < 2**32``, and T divides N and K.
    """

    N: int
    K: int
    T: int

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("N", self.N, 1, MAX_USERS)
        validate.integer("K", self.K, 1, self.N)
        validate.integer("T", self.T, 1, self.K)
        for name, count, most in (("K", self.K, self.N), ("N", self.N, MAX_USERS)):
            if divmod(count, self.T)[1]:
                below = self.T * (count // self.T)
                near = f"{below} or {below + self.T} are" if below + self.T <= most else f"{below} is"
                raise ParameterError(name, count, f"a multiple of T = {self.T}, as {near}")

    @property
    def batches(self) -> int:
        """The number of batches, N/T."""
        return self.N // self.T

    @property
    def per_round(self) -> int:
        """The number of batches in one round, K/T."""
        return self.K // self.T

    def batch_of(self, user: int) -> int:
        """Return the batch of a user in [0, N)."""
        return validate.integer("user", user, 0, self.N - 1) // self.T

    def members(self, batch: int) -> range:
        """Return the users of a batch in [0, N/T)."""
        start = validate.integer("batch", batch, 0, self.batches - 1) * self.T
        return range(start, start + self.T)

    def users(self, batches: Sequence[int]) -> tuple[int, ...]:
        """Return the users of the given batches, in the order of the batches."""
        given = validate.sequence("batches", batches, "integers")
        for at, batch in enumerate(given):
            validate.integer(f"batches[{at}]", batch, 0, self.batches - 1)
        return tuple(user for batch in given for user in self.members(batch))


PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {"tiny": Parameters(12, 6, 3), "default": Parameters(24, 12, 4), "paper": Parameters(120, 12, 6)}
)


def family_size(parameters: Parameters) -> int:
    """Return how many sets may be chosen, C(N/T, K/T) (MRA-02).

    Raises
    ------
    ParameterError
        min(K, N - K)/T times the bits of N/T is above `MOST_BITS`.
    """
    fewer = min(parameters.per_round, parameters.batches - parameters.per_round)
    if fewer * parameters.batches.bit_length() > MOST_BITS:
        allowed = f"such that min(K, N - K)/T times the bits of N/T is at most {MOST_BITS}"
        raise ParameterError("(N, K, T)", (parameters.N, parameters.K, parameters.T), allowed)
    return comb(parameters.batches, parameters.per_round)


def family(parameters: Parameters) -> Iterator[tuple[int, ...]]:
    """Yield the sets that may be chosen, each with ascending users, in lexicographic order (MRA-02).

    Raises
    ------
    ParameterError
        There are more than `MOST_LISTED` batches.
    """
    validate.integer("N/T", parameters.batches, 1, MOST_LISTED)
    chosen = combinations(range(parameters.batches), parameters.per_round)
    return (parameters.users(batches) for batches in chosen)


def in_family(parameters: Parameters, users: Collection[int]) -> bool:
    """Return whether the given distinct users are a set that may be chosen (MRA-02).

    Raises
    ------
    ParameterError, UnknownUser, DuplicateUser
        The users are no collection of integers, or one is outside [0, N), or listed twice.
    """
    whole = whole_batches(parameters, users)
    return len(whole) == len(users) == parameters.K


def whole_batches(parameters: Parameters, users: Collection[int]) -> tuple[int, ...]:
    """Return, ascending, the given users whose whole batch is among the given users (MRA-18).

    Raises
    ------
    UnknownUser, DuplicateUser
        A user is outside [0, N), or listed twice.
    """
    here = set(validate.users("users", list(users) if isinstance(users, Set) else users, parameters.N))
    return tuple(user for user in sorted(here) if here.issuperset(parameters.members(user // parameters.T)))


def complete(parameters: Parameters, available: BoolArray) -> NDArray[np.intp]:
    """Return, ascending, the batches in which every user is available; `available` is u(t), N truth values.

    Raises
    ------
    ParameterError, LengthMismatch
        `available` is not an array of N truth values.
    """
    available = validate.truths("available", available, (parameters.N,))
    return np.flatnonzero(available.reshape(parameters.batches, parameters.T).all(axis=1))


guard(__name__)
