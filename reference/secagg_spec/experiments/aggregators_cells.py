"""HeteroSAg as a drop-in: quantised segments in the cells of subgroups; mean, median or trimmed mean of the cells.

====================  ==========================================
paper                 here
====================  ==========================================
G, n_g                `groups`, of sizes as equal as possible, of users in ascending order
K_g                   `levels`; None for cells of real numbers
r1, r2, Delta_K       `range` and its steps
B                     ``matrix``
====================  ==========================================

The mean of each cell differs by less than its step from the mean of the real numbers. Mean, coordinate-wise median and
trimmed mean are monotone in each argument and shift with all of them, so they change by at most the largest change of
an argument. So the aggregate differs by less than the largest step from the same aggregate of cells of real numbers.
For the mean, that is the plain mean; the median of cells has no plain counterpart.

Source: HeteroSAg, section 4; spec/experiments.md, section 4 (EXP-13 to EXP-16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from secagg_spec.arithmetic import averages, validate
from secagg_spec.arithmetic.levels import Range, round_levels
from secagg_spec.arithmetic.quantizer import IntArray
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import ParameterError
from secagg_spec.experiments.aggregates import PLAIN, Aggregate, Given
from secagg_spec.experiments.aggregators_quantised import Quantised
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import combine
from secagg_spec.protocols.heterosag.plan import MATRICES, Cell, Parameters
from secagg_spec.protocols.secagg import round as secagg

T = 1
FEWEST_LEVELS = 2


@dataclass(frozen=True, eq=False)
class Segment:
    """The cells of a segment: its columns, members (cells, n), numbers of members, and levels (cells, 1)."""

    start: int
    stop: int
    members: RealArray
    counts: tuple[int, ...]
    levels: RealArray

    def means(self, values: RealArray) -> RealArray:
        """Return the mean of each cell (cells, L) of numbers (n, d); for integers the sums are exact."""
        result: RealArray = self.members @ values[:, self.start : self.stop] / np.array(self.counts)[:, None]
        return result


@dataclass(frozen=True, eq=False)
class Layout:
    """The members and levels of each cell, in a round of n users."""

    parameters: Parameters

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The cells by segment."""
        rows: list[list[Cell]] = [[] for _ in self.parameters.lengths]
        for cell in self.parameters.parts:
            rows[cell.segment].append(cell)
        return tuple(self._segment(row) for row in rows)

    @cached_property
    def levels(self) -> IntArray:
        """The levels of each user in each coordinate (n, d)."""
        table = np.zeros((self.parameters.N, self.parameters.count), np.int64)
        for cell in self.parameters.parts:
            table[sorted(cell.members), cell.segment] = cell.levels
        return np.repeat(table, self.parameters.lengths, axis=1)

    def _segment(self, row: Sequence[Cell]) -> Segment:
        members = np.zeros((len(row), self.parameters.N))
        for at, cell in enumerate(row):
            members[at, sorted(cell.members)] = 1
        levels = np.array([[cell.levels] for cell in row], np.float64)
        return Segment(row[0].start, row[0].stop, members, tuple(len(cell.members) for cell in row), levels)


class HeteroSAg(Quantised):
    """HeteroSAg among the users of a round, who must have equal weights.

    The settings are ``groups``, ``levels`` (a number, one for each group, or None), ``range``, ``method``, ``trim`` and
    ``matrix``. With the levels None, real numbers are averaged in the same cells, without a protocol.
    """

    name = "heterosag"

    def __init__(self, settings: Mapping[str, Any], users: int, d: int, seed: int) -> None:
        real = settings.get("levels") is None
        super().__init__({"every": 0, **settings} if real else settings, users, d, seed)
        self.groups = validate.integer("groups", settings.get("groups"), 2, self.N)
        self.levels = _levels(settings.get("levels"), self.groups)
        self.matrix = settings.get("matrix", MATRICES[0])
        self.method = validate.one_of("method", settings.get("method", "mean"), averages.METHODS)
        self.trim = settings.get("trim", 0)
        self.range = Range(*_bounds(settings.get("range", (-1.0, 1.0))))
        self.bound = 0.0 if real else self.range.step(min(self.levels))
        self._layouts: dict[int, Layout] = {}
        if real and (self.every or self.clip):
            raise ParameterError("every, clip", [self.every, self.clip], "0 and false where the levels are None")

    @property
    def real(self) -> bool:
        """Whether there is no quantiser."""
        return not self.bound

    def layout(self, n: int) -> Layout:
        """Return the cells of a round of n users; position i is the i-th user in ascending order."""
        if n not in self._layouts:
            sizes = tuple(len(part) for part in np.array_split(np.empty(n, bool), self.groups))
            named: dict[str, Any] = {"range": self.range, "matrix": self.matrix, "subgroups": (1,) * self.groups}
            p = Parameters(N=n, D=0, T=T, t=T + 2, d=self.d, sizes=sizes, levels=self.levels, **named)
            self._layouts[n] = Layout(p)
        return self._layouts[n]

    def of(self, given: Given) -> Aggregate:
        """Return the aggregate of checked arguments; without a quantiser, of real numbers in cells."""
        return Aggregate(self._of_cells(given.updates, given), self.bound, PLAIN) if self.real else super().of(given)

    def check(self, given: Given) -> None:
        """Refuse groups of fewer than three users, and unequal weights."""
        self.layout(given.count)
        if len(set(given.weights)) > 1:
            raise ParameterError("weights", list(given.weights), "equal in HeteroSAg")

    def limits(self, given: Given) -> tuple[float, float]:
        """Return r1 and r2."""
        return self.range.low, self.range.high

    def quantised(self, numbers: RealArray, draws: RealArray, rows: slice, n: int) -> RealArray:
        """Return the level of each number, with the levels of its cell."""
        one = len(set(self.levels)) == 1
        return round_levels(numbers, self.levels[0] if one else self.layout(n).levels[rows], self.range, draws)

    def shortcut(self, values: RealArray, given: Given) -> RealArray:
        """Return the combined means of the cells."""
        segments = self.layout(given.count).segments
        means = [self.range.value(segment.means(values), segment.levels) for segment in segments]
        return self._combined(means, [segment.counts for segment in segments])

    def protocol(self, values: IntArray, given: Given) -> RealArray:
        """Return the combined sums of the cells, from a round of HeteroSAg with all its messages."""
        p = self.layout(given.count).parameters
        randomness = secagg.draw_randomness(p, self.sources(given))
        result = heterosag.run_round(
            p, values.astype(np.uint64), randomness=randomness, round=given.round, session=bytes(16)
        )
        return combine(p, result.sums, self.method, self.trim)

    def exact(self, numbers: RealArray, given: Given) -> RealArray:
        """Return the plain mean, or for other methods the same aggregate of cells of real numbers."""
        return super().exact(numbers, given) if self.method == "mean" else self._of_cells(numbers, given)

    def _of_cells(self, numbers: RealArray, given: Given) -> RealArray:
        segments = self.layout(given.count).segments
        return self._combined([segment.means(numbers) for segment in segments], [s.counts for s in segments])

    def _combined(self, means: Sequence[RealArray], counts: Sequence[Sequence[int]]) -> RealArray:
        rows = zip(means, counts, strict=True)
        return np.concatenate([averages.combined(cells, users, self.method, self.trim) for cells, users in rows])


def _levels(value: object, groups: int) -> tuple[int, ...]:
    """Return the levels of each group; without a quantiser the smallest, which are never used."""
    if value is None:
        return (FEWEST_LEVELS,) * groups
    return tuple(value) if isinstance(value, (list, tuple)) else (validate.integer("levels", value, 2),) * groups


def _bounds(value: object) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ParameterError("range", value, "two numbers, the smaller first")
    return value[0], value[1]
