"""The inputs of a simulated round of HeteroSAg, the attacks of Byzantine users, and the plain sums."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import RealArray, UintArray, frozen
from secagg_spec.crypto.entropy import SeededSource, draw_rounding
from secagg_spec.learning import attacks
from secagg_spec.protocols.heterosag.averages import CellSum, combine, quantize_update
from secagg_spec.protocols.heterosag.plan import Parameters

ATTACKS: Mapping[str, str] = MappingProxyType(
    {
        "gaussian": f"normal noise with the deviation {attacks.GAUSSIAN_DEVIATION:g} in place of the input",
        "sign-flip": f"the input times -{attacks.SIGN_FLIP_SCALE:g}",
    }
)
_COMMON, _OWN = 0.4, 0.2


@dataclass(frozen=True, eq=False)
class Inputs:
    """Real inputs (N, d), the honest ones and those that are sent, and the draws that round them."""

    parameters: Parameters
    honest: RealArray
    sent: RealArray
    rounding: RealArray
    byzantine: tuple[int, ...]

    @property
    def updates(self) -> UintArray:
        """What the users mask, (N, d): the sent inputs, quantised."""
        return self._quantized(self.sent)

    def unharmed(self) -> UintArray:
        """Return what the users would mask if all were honest, with the same draws."""
        return self._quantized(self.honest)

    def _quantized(self, reals: RealArray) -> UintArray:
        p = self.parameters
        rows = zip(range(p.N), reals, self.rounding, strict=True)
        return np.stack([quantize_update(p, user, x, rounding=draws) for user, x, draws in rows])

    def mean(self, survivors: Collection[int]) -> RealArray:
        """Return the plain mean of the honest users among some users."""
        honest = sorted(set(survivors) - set(self.byzantine))
        return np.asarray(self.honest[honest].mean(axis=0), np.float64)


def byzantine_users(parameters: Parameters, count: int) -> tuple[int, ...]:
    """Return `count` users: the first of each subgroup, then the second of each, to spread them over cells.

    Raises `ParameterError` for a count that is not in [0, N].
    """
    count = validate.integer("count", count, 0, parameters.N)
    columns = zip_longest(*parameters.members)
    return tuple(user for column in columns for user in column if user is not None)[:count]


def draw_inputs(parameters: Parameters, byzantine: Sequence[int], attack: str, seed: bytes) -> Inputs:
    """Draw inputs with a large common part, and apply the attack of the Byzantine users.

    Raises `ParameterError` for an attack that is none of `ATTACKS`, and for what are no distinct users of the roster.
    """
    validate.one_of("attack", attack, [*ATTACKS])
    byzantine = validate.users("byzantine", byzantine, parameters.N)
    p, source = parameters, SeededSource(seed, "simulate")
    middle, half = (p.range.low + p.range.high) / 2, (p.range.high - p.range.low) / 2
    common = draw_rounding(source, p.d) * 2 - 1
    own = draw_rounding(source, p.N * p.d).reshape(p.N, p.d) * 2 - 1
    honest = np.round(middle + half * (_COMMON * common + _OWN * own), 3)
    sent = honest.copy()
    for user in byzantine:
        sent[user] = p.range.clip(_attacked(attack, honest[user], SeededSource(seed, f"attack of user {user}")))
    rounding = draw_rounding(source, p.N * p.d).reshape(p.N, p.d)
    return Inputs(p, honest, sent, rounding, byzantine)


def _attacked(attack: str, x: RealArray, source: SeededSource) -> RealArray:
    if attack == "sign-flip":
        return attacks.sign_flip(x)
    draws = draw_rounding(source, 2 * len(x)).reshape(2, len(x))
    return attacks.gaussian(x, attacks.normals(draws, attacks.GAUSSIAN_DEVIATION))


def plain_sums(parameters: Parameters, updates: UintArray, survivors: Collection[int]) -> tuple[CellSum, ...]:
    """Return the sums of all cells with survivors, computed from the quantised inputs."""
    found = []
    for cell in parameters.parts:
        present = tuple(sorted(cell.members & set(survivors)))
        if present:
            total = cell.ring.sum(updates[list(present), cell.start : cell.stop])
            found.append(CellSum(cell, present, frozen(total)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One way to average: its name, its result, and the distance from the mean of the honest users.

    The distances are root mean squares over the elements: with the attack, without it, and between these two.
    """

    name: str
    vector: RealArray
    attacked: float
    unharmed: float
    moved: float


def aggregates(
    inputs: Inputs, sums: Sequence[CellSum], survivors: Collection[int], trim: int | None
) -> list[Aggregate]:
    """Compare the ways to average the sums of a round; `trim` is b of the trimmed mean, or None to omit it."""
    others = plain_sums(inputs.parameters, inputs.unharmed(), survivors)
    methods = [("mean", "mean", 0), ("median", "median", 0)]
    methods += [] if trim is None else [(f"trimmed, b = {trim}", "trimmed", trim)]
    found = []
    for name, method, b in methods:
        vector, unharmed = (combine(inputs.parameters, each, method, b) for each in (sums, others))
        wanted = inputs.mean(survivors)
        apart = (vector - wanted, unharmed - wanted, vector - unharmed)
        found.append(Aggregate(name, vector, *(_size(each) for each in apart)))
    return found


def _size(vector: RealArray) -> float:
    return float(np.sqrt(np.mean(vector**2)))
