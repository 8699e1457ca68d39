"""Rounds of SecAgg as frameworks ship them, and the requests to one user at the end (spec/adapter.md, section 4)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import neighbours, strategies
from secagg_spec.conformance.cases.neighbours import AVERAGE, RECOVERY, UNMASKING, Roster, Scale
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sdk.secagg_adapter import ROUND_PHASES
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.protocols.secagg.graph import Graph

EARLY, LATE = ROUND_PHASES[:2], ROUND_PHASES[2:]
BEFORE_UNMASKING = ROUND_PHASES[:-1]
_SLACK = Fraction(1, 2**40)


@dataclass(frozen=True)
class Average:
    """A round over reals: its numbers, the inputs and weights of N users, and who drops out when."""

    roster: Roster
    scale: Scale
    weights: tuple[int, ...]
    x: RealArray
    rounding: RealArray
    drop: dict[str, list[int]] = field(default_factory=neighbours.nobody)

    @property
    def contributors(self) -> list[int]:
        """The users that send a masked input."""
        dropped = {user for phase in BEFORE_UNMASKING for user in self.drop[phase]}
        return [user for user in range(self.roster.N) if user not in dropped]

    def params(self, **changes: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with changes."""
        rows = [pack_reals(row) for row in self.x]
        own = {"weights": list(self.weights), "x": rows, "drop": self.drop}
        return {**self.roster.members(), **self.scale.members(), **own, **changes}

    def rand(self) -> dict[str, Any]:
        """Return the sampled values."""
        return {"rounding": [pack_reals(row) for row in self.rounding]}

    def mean(self, at: int) -> Fraction:
        """Return the exact weighted average of one element over the contributors."""
        parts = [self.weights[user] * Fraction(float(self.x[user, at])) for user in self.contributors]
        return sum(parts, Fraction()) / self.total

    @property
    def total(self) -> int:
        """The sum of the weights of the contributors."""
        return sum(self.weights[user] for user in self.contributors)

    def bound(self, exact: bool) -> Fraction:
        """Return the allowed distance of a result from the exact average (ADP-30)."""
        step, slack = Fraction(1, self.scale.level), self.scale.clip * _SLACK
        if exact:
            return step + slack
        return 2 * step * len(self.contributors) * self.scale.max_weight / self.total + slack


def average(
    draw: Any, caps: Capabilities, roster: Roster | None = None, scale: Scale | None = None, operation: str = AVERAGE
) -> Average:
    """Draw a round without dropouts."""
    roster = roster or neighbours.roster(draw, caps, operation)
    scale = scale or neighbours.one_of(draw, neighbours.scales(caps, roster.N, operation=operation))
    d, usual = strategies.length(draw, 1, 3), _weights(caps, scale)
    weights = [draw(among(usual)) for _ in range(roster.N)]
    x = [[draw(among(_grid(scale))) for _ in range(d)] for _ in range(roster.N)]
    rounding = strategies.rounding(draw, roster.N * d).reshape(roster.N, d)
    return Average(roster, scale, tuple(weights), np.array(x, dtype=np.float64), rounding)


def _weights(caps: Capabilities, scale: Scale) -> list[int]:
    """Return weights that stay positive when a quantiser gets them as fractions of the largest one."""
    most, steps = scale.max_weight, 2 * scale.clip * scale.level
    usual = sorted({1, most // 2 + 1, most})
    return [weight for weight in usual if neighbours.exact_weights(caps) or weight * steps >= most]


def _grid(scale: Scale) -> tuple[float, ...]:
    """Return inputs inside the range: its ends, some on the grid of the level, and some between."""
    clip, level = float(scale.clip), float(scale.level)
    return (0.0, clip, -clip, clip / 2, -clip / 3, 0.25 / level, -0.75 / level)


def dropping(draw: Any, scene: Average, count: int, phases: Sequence[str]) -> Average:
    """Return the round with `count` drawn users that drop out in the given phases."""
    return replace(scene, drop=neighbours.dropouts(draw, scene.roster.N, count, phases))


@dataclass(frozen=True)
class Unmasking:
    """One user at the end of a round, the other users, and those of them that dropped out before a masked input."""

    roster: Roster
    drop: dict[str, list[int]]
    user: int

    @property
    def sharers(self) -> list[int]:
        """The users that shared their secrets."""
        dropped = {user for phase in EARLY for user in self.drop[phase]}
        return [user for user in range(self.roster.N) if user not in dropped]

    @property
    def dropped(self) -> list[int]:
        """The users that shared their secrets and sent no masked input."""
        return sorted(self.drop["masked_input"])

    @property
    def survivors(self) -> list[int]:
        """The users that sent a masked input."""
        return [user for user in self.sharers if user not in self.dropped]

    @property
    def holders(self) -> frozenset[int]:
        """The user and its neighbours in the order of the roster."""
        return Graph(tuple(range(self.roster.N)), self.roster.k).holders(self.user)

    def drop_all(self) -> list[int]:
        """Return all users that drop out."""
        return sorted(user for users in self.drop.values() for user in users)

    def right(self) -> dict[str, list[int]]:
        """Return the request of an honest server."""
        return {"survivors": self.survivors, "dropped": self.dropped}

    def wanted(self, caps: Capabilities) -> dict[str, list[int]]:
        """Return the users whose shares the answer to it holds (SAG-24)."""
        without = {self.user} if caps.policy("unmasking.own_share") == "none" else set()
        return {
            "seeds": [user for user in self.survivors if user in self.holders - without],
            "keys": [user for user in self.dropped if user in self.holders],
        }

    def params(self, *requests: dict[str, list[int]], **changes: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with changes."""
        own = {"drop": self.drop, "user": self.user, "requests": [*requests]}
        return {**self.roster.members(), **own, **changes}


def unmasking(
    draw: Any, caps: Capabilities, spare: int = 0, phases: Collection[str] = BEFORE_UNMASKING, least: int = 0
) -> Unmasking:
    """Draw a user that survives, in a roster that can lose `spare` users. At least `least` drop out in `phases`."""
    roster = neighbours.roster(draw, caps, UNMASKING, spare)
    count = draw(st.integers(least, roster.spare))
    drop = neighbours.dropouts(draw, roster.N, count, tuple(phases), BEFORE_UNMASKING)
    dropped = {user for users in drop.values() for user in users}
    user = draw(among([user for user in range(roster.N) if user not in dropped]))
    return Unmasking(roster, drop, user)


def _unmasking(draw: Any, caps: Capabilities) -> Valid:
    scene = unmasking(draw, caps)
    return Valid(scene.params(scene.right()))


def altered(draw: Any, caps: Capabilities) -> tuple[Average, dict[str, Any]]:
    """Draw a round and the share to alter: another user's on the complete graph, the user's own on any graph."""
    scene = average(draw, caps, operation=RECOVERY)
    roster = scene.roster
    if draw(st.booleans()):
        scene = dropping(draw, scene, draw(st.integers(0, roster.spare)), ("masked_input",))
    dropped = scene.drop["masked_input"]
    user = draw(among(scene.contributors))
    if roster.k < roster.N - 1:
        return scene, {"user": user, "owner": user, "kind": "seed"}
    owner = draw(among([*scene.contributors, *dropped]))
    return scene, {"user": user, "owner": owner, "kind": "key" if owner in dropped else "seed"}


VALID: dict[str, Make] = {AVERAGE: lambda draw, caps: Valid.of(average(draw, caps)), UNMASKING: _unmasking}
