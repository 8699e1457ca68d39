"""Cases of HeteroSAg, one function at a time: numbers to quantise, rows to average, requests of a session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import MAX_LEVELS, Range
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.heterosag_sessions import RANGES, parameters
from secagg_spec.conformance.cases.requests import Make, Valid, one_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_numbers import members, packed_range
from secagg_spec.protocols.heterosag.plan import Parameters

QUANTIZE, PLAN, AVERAGE, REQUEST = "quantize.levels", "segment.plan", "heterosag.average", "heterosag.request"
FEW_LEVELS = (2, 3, 4, 6, 12, 256)


@dataclass(frozen=True, eq=False)
class Quantised:
    """Numbers to quantise."""

    levels: int
    range: Range
    x: RealArray
    draws: RealArray
    clip: bool = False

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        given = {"levels": str(self.levels), "range": packed_range(self.range), "clip": self.clip}
        return {**given, "x": pack_reals(self.x), **changed}

    def rand(self) -> dict[str, Any]:
        """Return the sampled values."""
        return {"rounding": pack_reals(self.draws)}


def level_counts(caps: Capabilities, few: bool = False) -> list[int]:
    """Return numbers of levels that ``quantize.levels`` declares: usual ones and the ends of the range, or few."""
    known = strategies.level_counts(caps, FEW_LEVELS if few else (*FEW_LEVELS, 65537, 10**6 + 3, MAX_LEVELS))
    return [K for K in known if not few or FEW_LEVELS[-1] >= K]


def quantised(draw: Any, caps: Capabilities) -> Quantised:
    """Draw numbers in a range (bounds, levels, midpoints, arbitrary), with draws close to where the result changes."""
    K, range = int(draw(among(level_counts(caps)))), one_of(draw, RANGES)
    x = np.array([_number(draw, K, range) for _ in _few(draw)])
    draws = strategies.rounding(draw, x.size)
    if draw(st.booleans()):
        draws = np.array([_turning(draw, number, K, range) for number in x.tolist()])
    return Quantised(K, range, x, draws, draw(st.booleans()))


def _few(draw: Any) -> range:
    return range(strategies.length(draw, 1))


def _number(draw: Any, levels: int, range: Range) -> float:
    """Draw a number of the range."""
    k = draw(among((0, levels - 1)) | st.integers(0, levels - 1))
    beyond = Fraction(draw(among((0, 500, 250)) | st.integers(0, 1000)), 1000)
    share = min((k + beyond) / (levels - 1), Fraction(1))
    low, high = Fraction(range.low), Fraction(range.high)
    return oracles.clipped(float(low + share * (high - low)), range)


def _turning(draw: Any, x: float, levels: int, range: Range) -> float:
    """Draw a number in [0, 1) just next to the fractional part of y, but farther away than the error of HSA-08."""
    y = oracles.place(x, levels, range)
    side = draw(among((-1, 1)))
    near = float(y - y // 1 + side * 4 * oracles.slack(levels))
    return near if 0 <= near < 1 else float(draw(among((0.5, 0.0, 1 - 2.0**-53))))


@dataclass(frozen=True)
class Row:
    """The sums of the cells with survivors, for one segment."""

    range: Range
    levels: tuple[int, ...]
    counts: tuple[int, ...]
    sums: tuple[tuple[int, ...], ...]
    method: str = "mean"
    trim: int = 0

    @property
    def length(self) -> int:
        """How many elements the segment has."""
        return len(self.sums[0])

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        given = {"levels": list(self.levels), "counts": list(self.counts), "method": self.method, "trim": self.trim}
        sums = [pack(np.array(total, dtype=np.uint64)) for total in self.sums]
        return {"range": packed_range(self.range), "sums": sums, **given, **changed}

    def segment(self) -> list[Fraction]:
        """Return the segment of the aggregate."""
        cells, places = list(zip(self.sums, self.counts, self.levels, strict=True)), range(self.length)
        columns = ([oracles.mean_of(total[at], count, K, self.range) for total, count, K in cells] for at in places)
        return [oracles.aggregate(means, self.counts, self.method, self.trim) for means in columns]


def row(draw: Any, method: str = "", *, fewest: int = 1) -> Row:
    """Draw the sums of some cells: small ones, the largest, and arbitrary ones."""
    chosen = method or draw(among(("mean", "median", "trimmed")))
    cells, length = draw(st.integers(fewest, fewest + 5)), strategies.length(draw, 1, 4)
    levels = [int(draw(among((*FEW_LEVELS, 65537, MAX_LEVELS - 1)))) for _ in range(cells)]
    counts = [_count(draw, K) for K in levels]
    sums = [_sum(draw, min(count * (K - 1), 2**32 - 1), length) for count, K in zip(counts, levels, strict=True)]
    trim = draw(st.integers(0, (cells - 1) // 2)) if chosen == "trimmed" else 0
    return Row(one_of(draw, RANGES), tuple(levels), tuple(counts), tuple(sums), chosen, trim)


def _count(draw: Any, levels: int) -> int:
    """Draw the number of survivors of a cell, small enough that its sums are elements."""
    return int(draw(st.integers(1, max(1, min(40, (2**32 - 1) // (levels - 1))))))


def _sum(draw: Any, most: int, length: int) -> tuple[int, ...]:
    return tuple(int(draw(among((0, most, most // 2)) | st.integers(0, most))) for _ in range(length))


@dataclass(frozen=True)
class Asked:
    """The requests of successive rounds of a session, each given by its survivors."""

    parameters: Parameters
    requests: list[list[int]] = field(default_factory=list)

    def params(self) -> dict[str, Any]:
        """Return the ``params`` of a request."""
        return {**members(self.parameters), "requests": self.requests}

    def then(self, *dropped: Collection[int]) -> Asked:
        """Return the same session with further rounds, each given by its dropouts."""
        rounds = [[user for user in range(self.parameters.N) if user not in users] for users in dropped]
        return replace(self, requests=[*self.requests, *rounds])

    def answered(self) -> list[bool]:
        """Return which requests are answered."""
        return oracles.answered(self.parameters, self.requests)


def asked(draw: Any, *, sizes: Sequence[int] = (), T: int = 0) -> Asked:
    """Draw a session with the lowest threshold and no requests yet. `sizes` are the sizes of the subgroups."""
    if sizes:
        chosen = _numbers(draw, sizes, T)
    else:
        p = parameters(draw, most=3, spare=draw(st.integers(0, 1)), large=False)
        chosen = replace(p, D=0, t=p.T + 2)
    return Asked(chosen)


def _numbers(draw: Any, sizes: Sequence[int], T: int) -> Parameters:
    """Draw numbers with one group per subgroup, of these sizes."""
    groups = len(sizes)
    levels = tuple(sorted(int(draw(among(FEW_LEVELS))) for _ in sizes))
    matrix = draw(among(("perfect", "cyclic")))
    return Parameters(sum(sizes), 0, T, T + 2, groups, tuple(sizes), (1,) * groups, levels, RANGES[0], matrix)


def few_of(draw: Any, users: Sequence[int], low: int, high: int) -> list[int]:
    """Draw `low` to `high` of some users."""
    return strategies.subset(draw, users, low, high)


VALID: dict[str, Make] = {
    QUANTIZE: lambda draw, caps: Valid.of(quantised(draw, caps)),
    PLAN: lambda draw, caps: Valid(members(parameters(draw))),
    AVERAGE: lambda draw, caps: Valid(row(draw).params()),
    REQUEST: lambda draw, caps: Valid(asked(draw).then(()).params()),
}
