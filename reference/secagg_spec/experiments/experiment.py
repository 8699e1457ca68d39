"""The definition of an experiment: settings, cells, a run, statements that are fixed beforehand, and pictures.

An experiment is one figure, table or theorem of a paper, and a module of this package. Its settings, its cells and the
results of its cells are plain data that JSON can hold, so cells can be stored, sent to processes, and judged again.

Source: spec/experiments.md, sections 1, 6 and 7 (EXP-21 to EXP-29).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from secagg_spec.experiments.statistics import Interval, interval, verdict

Data: TypeAlias = Mapping[str, Any]
PAPER = "paper"
PRESETS = ("tiny", "default", PAPER)


@dataclass(frozen=True)
class Statement:
    """A statement of a paper as an inequality: the mean of `measure`, one number for each seed, is >= or <= `bound`."""

    claim: str
    name: str
    text: str
    measure: str
    relation: Literal[">=", "<="]
    bound: float


@dataclass(frozen=True)
class Judged:
    """A statement with the numbers of its seeds, their interval, and the verdict (EXP-22, EXP-23)."""

    statement: Statement
    numbers: tuple[float, ...]
    interval: Interval
    verdict: str


@dataclass(frozen=True)
class Context:
    """The location of the data, the device that trains, and a callback for the finished share of a cell."""

    data: Path | None = None
    device: str = "cpu"
    tell: Callable[[float], None] = field(default=lambda share: None, compare=False)


"""A cell, and the result of its run."""


@dataclass(frozen=True)
class Result:
    """A cell, and what its run gave."""

    cell: Data
    found: Data


@dataclass(frozen=True)
class Experiment:
    """One figure, table or theorem of a paper, or several that share a run.

    Parameters
    ----------
    name, title : str
        Such as ``basecagg-fig1``, and one line about its content.
    figures : tuple of str
        The figures, tables and theorems that it reproduces, such as ``BASecAgg, figure 1``.
    about : str
        What is trained or measured, and the differences from the paper.
    presets : mapping
        The settings by name of the preset; without `PAPER` if the paper has no numbers. Each has ``data`` (a data set,
        or ``none``), and ``seeds``.
    cells : callable
        Returns the cells of settings; each has ``seed`` and everything that its run needs.
    run : callable
        Runs one cell.
    statements : callable
        Returns the statements of settings, before anything runs (EXP-21).
    numbers : callable
        Returns for each statement, by name, one number for each seed.
    rows : callable
        Returns the rows of the CSV file.
    draw : callable
        Takes matplotlib's pyplot, settings and results; returns figures by file name.
    """

    name: str
    title: str
    figures: tuple[str, ...]
    about: str
    presets: Mapping[str, Data]
    cells: Callable[[Data], Sequence[Data]]
    run: Callable[[Data, Context], Data]
    statements: Callable[[Data], tuple[Statement, ...]]
    numbers: Callable[[Data, Sequence[Result]], Mapping[str, Sequence[float]]]
    rows: Callable[[Data, Sequence[Result]], Iterator[Mapping[str, Any]]]
    draw: Callable[[Any, Data, Sequence[Result]], Mapping[str, Any]]

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims of its statements, each once."""
        return tuple(dict.fromkeys(s.claim for s in self.statements(self.presets["default"])))

    def judge(self, settings: Data, results: Sequence[Result], asked: int | None = None) -> tuple[Judged, ...]:
        """Return each statement with its verdict; `asked` is the preset's number of seeds, if another was run."""
        numbers = self.numbers(settings, results)
        seeds = settings["seeds"] if asked is None else asked
        return tuple(judged(s, numbers[s.name], seeds) for s in self.statements(settings))


def judged(statement: Statement, numbers: Sequence[float], seeds: int) -> Judged:
    """Return a statement with the verdict on the numbers of its seeds."""
    found = interval(numbers)
    return Judged(statement, tuple(numbers), found, verdict(found, statement.relation, statement.bound, seeds))


def by_seed(results: Sequence[Result], **wanted: Any) -> dict[int, Data]:
    """Return the results of the cells with these members, by seed."""
    return {
        r.cell["seed"]: r.found for r in results if all(r.cell.get(name) == value for name, value in wanted.items())
    }


def accuracy(found: Data) -> float:
    """Return the accuracy of a run: the mean over the last tenth of its evaluated rounds, at least one.

    A run that diverged has the accuracy of the last stored round (EXP-24).
    """
    values = found["accuracy"]
    last = values[-1:] if found.get("diverged") else values[-max(1, len(values) // 10) :]
    return float(sum(last) / len(last))
