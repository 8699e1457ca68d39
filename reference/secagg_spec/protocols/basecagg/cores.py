"""The runs of `basecagg.runs` by the pure cores alone: no messages, no channels, no user states.

A run recovers the same result, bit for bit, in a fraction of the time and memory. Long simulations and training use
this module. The parties do not check each other: they are honest by construction and have nothing to refuse.

Source: spec/basecagg.md, sections 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import WrongPhase
from secagg_spec.protocols.basecagg.round import LAST_ROUND, Entry, Parameters, Recovered, mask_update, recover, weigh
from secagg_spec.protocols.buffers import average, check_rounding


@dataclass(frozen=True, eq=False)
class Mask(validate.Plain):
    """The mask of a user in training: its stamp, its d elements, and its N shares, (N, L)."""

    stamp: int
    mask: UintArray = field(repr=False)
    shares: UintArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Waiting(validate.Plain):
    """An update in the buffer: its stamp, its d masked elements, and the N shares of its mask, (N, L)."""

    stamp: int
    masked: UintArray
    shares: UintArray = field(repr=False)


@dataclass(eq=False)
class CoreRun:
    """A server and N users; the methods are the turns of `basecagg.runs`, with the sampled values as arguments.

    Raises
    ------
    WrongPhase
        A turn is refused by BSA-07, BSA-12, BSA-14, BSA-16, BSA-17 or BSA-20; nothing has changed then.
    ParameterError
        The round is not in ``[0, 2**32)``, or a user not in ``[0, N)``.
    """

    parameters: Parameters
    round: int = 0

    def __post_init__(self) -> None:
        self.round = validate.integer("round", self.round, 0, LAST_ROUND)
        self._training: dict[int, Mask] = {}
        self._newest: dict[int, int] = {}
        self._buffer: dict[int, Waiting] = {}

    @property
    def full(self) -> bool:
        """Whether the buffer holds K updates."""
        return len(self._buffer) == self.parameters.K

    def start(self, user: int, mask: UintArray, noise: UintArray) -> None:
        """Let a user take its stamp and share a mask of d elements with noise (T, L)."""
        (user,) = validate.users("user", (user,), self.parameters.N)
        self.parameters.field.check("mask", mask, (self.parameters.d,))
        self._require(user not in self._training, f"user {user} is training")
        self._require(user not in self._buffer, f"the update of user {user} waits in the buffer")
        self._require(self._newest.get(user) != self.round, f"user {user} has the stamp {self.round} already")
        shares = self.parameters.code.encode(mask, noise)
        self._training[user] = Mask(self.round, validate.frozen(mask), shares)
        self._newest[user] = self.round

    def upload(self, user: int, update: UintArray) -> None:
        """Put the masked update of a user, d elements, into the buffer."""
        p = self.parameters
        (user,) = validate.users("user", (user,), p.N)
        self._require(user in self._training, f"user {user} has no mask to upload under")
        p.field.check("update", update, (p.d,))
        self._require(not self.full, f"the buffer is full with K = {p.K} updates")
        mine = self._training[user]
        tau = self.round - mine.stamp
        self._require(tau <= p.tau_max, f"the update of user {user} is {tau} rounds old, and may be {p.tau_max}")
        masked = mask_update(p.field, p.total_weight, update, mine.mask)
        self._buffer[user] = Waiting(mine.stamp, masked, mine.shares)
        del self._training[user]

    def abandon(self, user: int) -> None:
        """Let a user give up its training."""
        (user,) = validate.users("user", (user,), self.parameters.N)
        self._require(user in self._training, f"user {user} has no training to abandon")
        del self._training[user]

    def recover(self, users: Sequence[int], rounding: RealArray) -> Recovered:
        """Return the buffer recovered from the answers of `users`; K draws round the weights (`basecagg.weigh`).

        Raises also the errors of `basecagg.recover`.
        """
        p = self.parameters
        self._require(self.full, f"the buffer has {len(self._buffer)} updates of {p.K}")
        self._require(self.round < LAST_ROUND, "this is the last round that a message can name")
        chosen = validate.users("users", users, p.N)
        members = sorted(self._buffer)
        waiting = [self._buffer[user] for user in members]
        draws = check_rounding("rounding", rounding, p.K).tolist()
        weights = weigh(p, self.round, [one.stamp for one in waiting], draws)
        factors = np.array(weights, dtype=np.uint64)
        answers = p.field.weighted_sum(factors, [one.shares[list(chosen)].reshape(-1) for one in waiting])
        total = recover(
            p.code, factors, [one.masked for one in waiting], chosen, answers.reshape(len(chosen), p.share_length)
        )
        entries = tuple(
            Entry(user, one.stamp, weight) for user, one, weight in zip(members, waiting, weights, strict=True)
        )
        done = Recovered(self.round, entries, total, average(p.field, p.c_l, factors, total))
        self._buffer, self.round = {}, self.round + 1
        return done

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise WrongPhase(message)


guard(__name__)
