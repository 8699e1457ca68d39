"""What a benchmark is, and what it gives: two sides on the same work, which take turns, and the ratio of their costs.

Nothing here is a test: a machine's speed is no property of a program. Each turn gives one ratio; a record has their
median, with the least and the greatest, so that a slow moment of the machine meets both sides and can be seen.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

Sizes: TypeAlias = Mapping[str, int | str]
Side: TypeAlias = Callable[[], float]
"""Does the work once, and returns what it cost in the unit of what is measured."""

UNITS = {"processor time": "s", "elapsed time": "s", "memory": "bytes", "size": "bits", "count": ""}
"""What can be measured, and in which unit."""
DIGITS = 4
"""So many digits of a figure are kept."""


class Absent(Exception):
    """A benchmark cannot run here; the message says what is missing."""


@dataclass(frozen=True)
class Sides:
    """Two sides of a benchmark, ready to run.

    Parameters
    ----------
    what, beside : Side
        The ratio is the cost of the first over that of the second.
    close : callable
        Ends what the sides have started.
    """

    what: Side
    beside: Side
    close: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, pair: Iterable[Side], close: Callable[[], None] = lambda: None) -> Sides:
        """Return the two sides of a pair."""
        what, beside = pair
        return cls(what, beside, close)


@dataclass(frozen=True)
class Aim:
    """What the project wants of a benchmark.

    Parameters
    ----------
    relation : str
        ``"at least"`` or ``"at most"``.
    bound : float
    of : str
        ``"ratio"``, or ``"what"`` or ``"beside"`` for what that side costs.
    """

    relation: str
    bound: float
    of: str = "ratio"

    def met(self, found: float) -> bool:
        """Return whether a figure is what is wanted."""
        return found >= self.bound if self.relation == "at least" else found <= self.bound


@dataclass(frozen=True)
class Benchmark:
    """One comparison, declared before it is measured.

    Parameters
    ----------
    id : str
        Begins with the name of its module.
    what, beside : str
        The two sides in words.
    sizes : mapping
        The work; given to `sides` by name, so that what a record tells is what was measured.
    tiny : mapping
        Sizes for a test of the benchmark itself.
    sides : callable
        Prepares both sides; raises `Absent` where something is missing.
    measures : str
        A key of `UNITS`.
    withdrawn : str
        What the project had wanted once, and why it no longer does; without an aim.
    turns : int
    warm : bool
        Whether each side runs once before its cost counts.
    """

    id: str
    what: str
    beside: str
    sizes: Sizes
    tiny: Sizes
    sides: Callable[..., Sides]
    measures: str = "processor time"
    aim: Aim | None = None
    withdrawn: str = ""
    turns: int = 5
    warm: bool = True

    def declared(self) -> dict[str, Any]:
        """Return what is known before anything is measured, as a record has it."""
        aim: dict[str, Any] = {"aim": asdict(self.aim)} if self.aim else {}
        aim |= {"withdrawn": self.withdrawn} if self.withdrawn else {}
        words = {"id": self.id, "what": self.what, "beside": self.beside}
        return {**words, "sizes": dict(self.sizes), "measures": self.measures, "turns": self.turns, **aim}


def run(benchmark: Benchmark) -> dict[str, Any]:
    """Let both sides take turns, and return the record.

    Raises
    ------
    Absent
        Something that the benchmark needs is missing.
    """
    sides = benchmark.sides(**benchmark.sizes)
    try:
        costs = in_turn(sides, benchmark.turns, benchmark.warm)
    finally:
        sides.close()
    return {**benchmark.declared(), **figures(costs)}


def in_turn(sides: Sides, turns: int, warm: bool) -> list[tuple[float, float]]:
    """Return what both sides cost in each turn."""
    if warm:
        sides.what(), sides.beside()
    return [(sides.what(), sides.beside()) for _ in range(turns)]


def figures(costs: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the ratio of each turn as median, least and greatest, and the median cost of each side."""
    ratios = [what / beside for what, beside in costs]
    medians = map(statistics.median, zip(*costs, strict=True))
    spread = {"median": statistics.median(ratios), "low": min(ratios), "high": max(ratios)}
    return {
        "ratio": {name: _kept(value) for name, value in spread.items()},
        "cost": dict(zip(("what", "beside"), map(_kept, medians), strict=True)),
    }


def met(record: Mapping[str, Any]) -> bool | None:
    """Return whether the median of a record is what is wanted; None where nothing is."""
    if "aim" not in record:
        return None
    aim = Aim(**record["aim"])
    return aim.met(record["ratio"]["median"] if aim.of == "ratio" else record["cost"][aim.of])


def _kept(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


# ------------------------------------------------------------------------------------------------- kinds of sides


def processor(action: Callable[[], object], before: Callable[[], object] = lambda: None) -> Side:
    """Return a side that costs the seconds of the processor that an action takes; `before` is not counted."""
    return _clocked(time.process_time, action, before)


def elapsed(action: Callable[[], object]) -> Side:
    """Return a side that costs the seconds until an action is done."""
    return _clocked(time.perf_counter, action, lambda: None)


def _clocked(clock: Side, action: Callable[[], object], before: Callable[[], object]) -> Side:
    def side() -> float:
        before()
        start = clock()
        action()
        return clock() - start

    return side


def peak(action: Callable[[], object], but: int = 0) -> Side:
    """Return a side that costs the most bytes that an action holds at a time, but for those that are named."""

    def side() -> float:
        tracemalloc.start()
        try:
            action()
            return tracemalloc.get_traced_memory()[1] - but
        finally:
            tracemalloc.stop()

    return side


def counted(number: float) -> Side:
    """Return a side whose cost is known."""
    return lambda: number


def shared(side: Side, times: int) -> Side:
    """Return a side that costs one of several equal parts of another."""
    return lambda: side() / times
