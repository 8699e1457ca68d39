"""Sums of integers by any protocol: ``secagg.sum`` and its kin (spec/adapter.md, section 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import neighbours, strategies
from secagg_spec.conformance.cases.neighbours import COALITION, SUM, VIEW, bounds, sum_moduli, sum_rosters
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, element_bytes, pack
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.entropy import SeededSource


@dataclass(frozen=True)
class Sum:
    """A round that sums updates: its numbers, the updates of N users as integers, and who drops out when."""

    R: int
    N: int
    t: int
    updates: tuple[tuple[int, ...], ...]
    drop: dict[str, list[int]]

    @property
    def contributors(self) -> list[int]:
        """The users that send a hidden update."""
        gone = {user for phase in SUM_PHASES[:2] for user in self.drop[phase]}
        return [user for user in range(self.N) if user not in gone]

    @property
    def total(self) -> list[int]:
        """The sum of the updates of the contributors."""
        columns = zip(*(self.updates[user] for user in self.contributors), strict=True)
        return [sum(column) % self.R for column in columns]

    def params(self, **changes: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with changes."""
        rows = [written(self.R, row) for row in self.updates]
        return {"R": self.R, "N": self.N, "t": self.t, "updates": rows, "drop": self.drop, **changes}


def written(R: int, values: Sequence[int]) -> str:
    """Return elements modulo R as hex digits."""
    return pack(values, element_bytes(R))


def drawn(draw: Any, caps: Capabilities, operation: str = SUM, spare: int = 0) -> Sum:
    """Draw a round without dropouts."""
    N, t = neighbours.one_of(draw, sum_rosters(caps, operation, spare))
    R, d, kind = draw(among(sum_moduli(caps, operation))), strategies.length(draw, 1, 3), draw(among(_KINDS))
    seed = draw(st.integers(0, 2**32 - 1))
    rows = [elements(R, d, seed, user) if kind == "random" else _PLAIN[kind](R, d, user) for user in range(N)]
    return Sum(R, N, t, tuple(rows), neighbours.nobody(SUM_PHASES))


_PLAIN: dict[str, Callable[[int, int, int], tuple[int, ...]]] = {
    "users": lambda R, d, user: tuple((user + 1 + at) % R for at in range(d)),
    "largest": lambda R, d, user: (R - 1,) * d,
    "zeros": lambda R, d, user: (0,) * d,
}
_KINDS = (*_PLAIN, "random")


def elements(R: int, d: int, seed: int, label: object) -> tuple[int, ...]:
    """Return d pseudo-random elements modulo R."""
    source, width = SeededSource(seed.to_bytes(4, "little"), f"sum {label}"), element_bytes(R) + 8
    return tuple(int.from_bytes(source.take(width), "little") % R for _ in range(d))


def dropping(draw: Any, given: Sum, count: int, phases: Sequence[str]) -> Sum:
    """Return the round with `count` drawn users that drop out in the given phases."""
    return replace(given, drop=neighbours.dropouts(draw, given.N, count, phases, SUM_PHASES))


def _view(draw: Any, caps: Capabilities) -> Valid:
    given = drawn(draw, caps, VIEW)
    viewer = draw(among(("server", *range(given.N))))
    return Valid(given.params(viewer=viewer))


def together(draw: Any, caps: Capabilities) -> tuple[Sum, int, list[Any]]:
    """Draw a round without dropouts, how many users may collude, and who does."""
    given = drawn(draw, caps, COALITION)
    T = neighbours.one_of(draw, bounds(caps, given.N, given.t))
    users, server = strategies.subset(draw, range(given.N), 1, T), draw(st.booleans())
    return given, T, [*sorted(users), *["server"] * server]


def _coalition(draw: Any, caps: Capabilities) -> Valid:
    given, T, viewers = together(draw, caps)
    return Valid(given.params(T=T, viewers=viewers))


VALID: dict[str, Make] = {SUM: lambda draw, caps: Valid(drawn(draw, caps).params()), VIEW: _view, COALITION: _coalition}
