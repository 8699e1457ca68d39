"""Draws masked segments of HeteroSAg, and whole rounds over real numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import heterosag_rounds, lightsecagg_parties, neighbours, strategies
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_cells import MASK, ROUND, UNMASK, Masked
from secagg_spec.conformance.sessions.heterosag_numbers import members, totals
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.protocols.heterosag.plan import Cell, Parameters

_KEY = 32
_FRACTIONS = (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
_DRAWS = (0.125, 0.375, 0.625, 0.875)
"""Draws whose distance to any whole number of steps is at least an eighth."""


def masked(draw: Any, p: Parameters | None = None, *, spare: int = 0) -> Masked:
    """Draw the inputs of all users, and the keys that mask them."""
    p = heterosag_rounds.parameters(draw, spare=spare) if p is None else p
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "segments")
    keys = tuple(source.take(_KEY) for _ in range(p.N))
    seeds = tuple(source.take(_KEY) for _ in range(p.N))
    secrets = {frozenset(pair): source.take(_KEY) for pair in combinations(range(p.N), 2)}
    number, session = int(draw(among(lightsecagg_parties.ROUNDS))), lightsecagg_parties.session_id(draw)
    return Masked(p, session, number, keys, seeds, secrets, heterosag_rounds.quantised(draw, p))


def sender(draw: Any, chosen: Masked) -> tuple[int, list[int]]:
    """Draw a user, and the users whose shares arrived there, in any order: most of them, or few."""
    user = int(draw(st.integers(0, chosen.parameters.N - 1)))
    others = [peer for peer in range(chosen.parameters.N) if peer != user]
    return user, strategies.subset(draw, others, 0 if draw(st.booleans()) else len(others) - 2)


def arrival(draw: Any, chosen: Masked) -> tuple[list[int], list[int]]:
    """Draw who survives and who drops out after it shared its secrets."""
    dropped = heterosag_rounds.lost(draw, chosen.parameters)
    early = dropped if draw(st.booleans()) else dropped[: len(dropped) // 2]
    return [user for user in range(chosen.parameters.N) if user not in dropped], early


def sent(chosen: Masked, survivors: Sequence[int], dropped: Sequence[int]) -> dict[int, bytes]:
    """Return the masked segments of the survivors, by user."""
    return {user: chosen.segments(user, [*survivors, *dropped]) for user in survivors}


def _mask(draw: Any, caps: Capabilities) -> Valid:
    chosen = masked(draw)
    return Valid(chosen.mask_params(*sender(draw, chosen)), {}, ("update",))


def _unmask(draw: Any, caps: Capabilities) -> Valid:
    chosen = masked(draw)
    survivors, dropped = arrival(draw, chosen)
    return Valid(chosen.unmask_params(survivors, dropped, sent(chosen, survivors, dropped)))


@dataclass(frozen=True, eq=False)
class Reals:
    """A round over real numbers: N inputs, their draws, who drops out when, and the method that combines the cells.

    `steps` are the inputs in steps of their quantiser above r1. They are at least an eighth of a step from a tie.
    """

    parameters: Parameters
    steps: Sequence[Sequence[Fraction]]
    x: RealArray
    rounding: RealArray
    method: str
    trim: int
    drop: dict[str, list[int]] = field(default_factory=neighbours.nobody)

    @property
    def contributors(self) -> list[int]:
        """The users that send masked segments."""
        dropped = {user for phase in list(self.drop)[:-1] for user in self.drop[phase]}
        return [user for user in range(self.parameters.N) if user not in dropped]

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        rows = [pack_reals(row) for row in self.x]
        own = {"clip": False, "x": rows, "method": self.method, "trim": self.trim, "drop": self.drop}
        return {**members(self.parameters), **own, **changed}

    def rand(self) -> dict[str, Any]:
        """Return the sampled values."""
        return {"rounding": [pack_reals(row) for row in self.rounding]}

    def sums(self, up: int | None = None) -> list[UintArray]:
        """Return the sums of the cells with survivors.

        Without draws they are the least sums, or with `up` the largest.
        """
        p, rows = self.parameters, np.zeros((self.parameters.N, self.parameters.d), np.uint64)
        for user, row in enumerate(self.steps):
            for at, y in enumerate(row):
                drawn = Fraction(float(self.rounding[user, at]))
                rows[user, at] = math.ceil(y - drawn) if up is None else (math.floor(y), math.ceil(y))[up]
        return totals(p, {user: rows[user] for user in self.contributors})

    def rows(self) -> list[list[tuple[Cell, int]]]:
        """Return, for each segment, its cells with survivors and the number of these."""
        p, present = self.parameters, set(self.contributors)
        found = [(cell, len(cell.members & present)) for cell in p.parts if cell.members & present]
        return [[entry for entry in found if entry[0].segment == segment] for segment in range(p.count)]


def reals(draw: Any, p: Parameters | None = None, part: Fraction | None = None) -> Reals:
    """Draw a round over real numbers without dropouts. `part`, if given, is the fractional part of all inputs."""
    p = heterosag_rounds.parameters(draw, spare=draw(st.integers(0, 1))) if p is None else p
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "reals")
    levels = {(cell.segment, user): cell.levels for cell in p.parts for user in cell.members}
    segments = [segment for segment, length in enumerate(p.lengths) for _ in range(length)]
    steps = [[_step(source, levels[segment, user], part) for segment in segments] for user in range(p.N)]
    low, width = Fraction(float(p.range.low)), Fraction(float(p.range.high)) - Fraction(float(p.range.low))
    x = [
        [_inside(p, low + width * y / (levels[segment, user] - 1)) for segment, y in zip(segments, row, strict=True)]
        for user, row in enumerate(steps)
    ]
    draws = np.frombuffer(source.take(p.N * p.d), np.uint8).reshape(p.N, p.d) & 3
    method, trim = draw(among((("mean", 0), ("median", 0), ("trimmed", 0))))
    return Reals(p, steps, np.array(x), np.array(_DRAWS)[draws], method, trim)


def _step(source: SeededSource, levels: int, part: Fraction | None) -> Fraction:
    """Draw a number of steps from 0 to K - 1: an integer, a quarter, a half, or one with the given fractional part."""
    whole = int.from_bytes(source.take(8), "little") % levels
    if part is not None:
        return min(whole, levels - 2) + part
    return min(whole + _FRACTIONS[source.take(1)[0] & 3], Fraction(levels - 1))


def _inside(p: Parameters, value: Fraction) -> float:
    return min(max(float(value), float(p.range.low)), float(p.range.high))


def dropping(draw: Any, p: Parameters, dropped: Sequence[int], phases: Sequence[str]) -> dict[str, list[int]]:
    """Draw in which phase each of these users drops out."""
    drop: dict[str, list[int]] = neighbours.nobody()
    for user in dropped:
        drop[draw(among(list(phases)))].append(user)
    return drop


VALID: dict[str, Make] = {MASK: _mask, UNMASK: _unmask, ROUND: lambda draw, caps: Valid.of(reals(draw))}
