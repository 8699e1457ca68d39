"""Cases of the weight of a late update: functions, levels and draws around the points where a weight changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import MAX_TAU, Staleness, floor_weight
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among

WEIGHT = "staleness.weight"
DRAWS = 2**53
RATES = ((1, 1), (1, 2), (0, 1), (1, 3), (2, 1), (3, 2), (2, 3), (7, 10), (1, 5), (99, 100), (1, 100), (1000, 1))
_TAUS = (0, 1, 2, 3, 7, 8, 10, 26, 48, 99, 1023, 2400, 2**16, MAX_TAU)


@dataclass(frozen=True)
class Late:
    """One weight that is asked for."""

    function: Staleness
    level: int
    tau: int
    draw: float

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the members of ``params``, with some changed. Integers that are decimal strings are converted."""
        kind = {"kind": self.function.kind, "numerator": self.function.numerator}
        numbers = {"denominator": self.function.denominator, "start": self.function.start}
        params = {**kind, **numbers, "level": self.level, "tau": self.tau, **changed}
        return {**params, **{name: str(params[name]) for name in ("start", "tau", "level")}}

    @property
    def rand(self) -> dict[str, str]:
        """The member ``rand`` of the grade ``explicit``."""
        return {"rounding": pack_reals(np.array([self.draw]))}


def levels(caps: Capabilities) -> list[int]:
    """Return levels inside the declared range, including small ones."""
    allowed = caps.range(WEIGHT, "level")
    return [*dict.fromkeys([*strategies.levels(caps, WEIGHT), *(c for c in range(1, 100) if c in allowed)])]


def function(
    draw: Any, rates: Sequence[tuple[int, int]] = RATES, starts: Sequence[int] = (0, 1, 4, 10, MAX_TAU)
) -> Staleness:
    """Draw a staleness function."""
    kind = draw(among(("polynomial", "hinge", "constant")))
    if kind == "constant":
        return Staleness.constant()
    numerator, denominator = draw(among(rates))
    return Staleness(kind, numerator, denominator, draw(among(starts)) if kind == "hinge" else 0)


def staleness(draw: Any) -> int:
    """Draw a staleness, mostly a small one."""
    return int(draw(st.integers(0, 60) | st.sampled_from(_TAUS)))


def late(draw: Any, caps: Capabilities) -> Late:
    """Draw a request for a weight: any, or one where c_g s(tau) is an integer or nearly one."""
    makers: list[Callable[[Any, Capabilities], tuple[Staleness, int, int]]] = [_any, _whole, _beside]
    chosen, level, tau = makers[draw(st.integers(0, 2))](draw, caps)
    return Late(chosen, level, tau, threshold(draw, chosen, level, tau) / DRAWS)


def _any(draw: Any, caps: Capabilities) -> tuple[Staleness, int, int]:
    return function(draw), int(draw(among(levels(caps)))), staleness(draw)


def _whole(draw: Any, caps: Capabilities) -> tuple[Staleness, int, int]:
    """Draw a polynomial with an integer c_g s(tau): tau + 1 is a power of r, and c_g is a multiple of a power of p."""
    p, r = draw(among(RATES[:9]))
    base, times = draw(st.integers(2, 60)), draw(st.integers(1, 60))
    level, tau = base**p * times, base**r - 1
    if level not in caps.range(WEIGHT, "level") or level > 2**32 or tau > MAX_TAU:
        return _any(draw, caps)
    return Staleness("polynomial", p, r), level, tau


def _beside(draw: Any, caps: Capabilities) -> tuple[Staleness, int, int]:
    """Draw a square root whose product with c_g is just next to an integer, if a level is declared for it."""
    tau, m = draw(st.integers(1, 10)), draw(st.integers(2**20, 2**30))
    level = isqrt((1 + tau) * m * m) + draw(st.integers(0, 1))
    if level not in caps.range(WEIGHT, "level") or level > 2**32:
        return _any(draw, caps)
    return Staleness("polynomial", 1, 2), level, tau


def threshold(draw: Any, chosen: Staleness, level: int, tau: int) -> int:
    """Draw a draw, times 2**53: next to the point where the weight changes, at an end, or arbitrary."""
    edge = _fraction(chosen, level, tau)
    near = [k for k in (edge - 1, edge, edge + 1) if 0 <= k < DRAWS]
    return int(draw(among((0, DRAWS - 1, *near)) | st.integers(0, DRAWS - 1)))


def _fraction(chosen: Staleness, level: int, tau: int) -> int:
    """Return floor(2**53 (y - floor(y))) for y = c_g s(tau), by halving."""
    n, d, r = chosen.power(tau)
    scaled, low, high = (level * DRAWS) ** r * n, 0, DRAWS
    start = floor_weight(chosen, level, tau) * DRAWS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (start + middle) ** r * d <= scaled else (low, middle)
    return low


def _valid(draw: Any, caps: Capabilities) -> Valid:
    chosen = late(draw, caps)
    return Valid(chosen.params(), chosen.rand)


VALID: dict[str, Make] = {WEIGHT: _valid}
