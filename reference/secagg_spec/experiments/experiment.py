"""What an experiment is: settings, cells, a run, statements that were fixed before, and pictures.

An experiment is one figure, table or theorem of a paper, a module of this package. Its settings, its cells and what a
cell gives are plain data, which JSON holds, so that cells can be kept, sent to other processes, and judged again.

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
    """What a paper says, as an inequality: the mean of `measure`, a number of each seed, is >= or <= `bound`."""

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
    """Where data lie, what trains, and who is told which share of a cell is done."""

    data: Path | None = None
    device: str = "cpu"
    tell: Callable[[float], None] = field(default=lambda share: None, compare=False)


@dataclass(frozen=True)
class Result:
    """A cell, and what its run gave."""

    cell: Data
    found: Data


@dataclass(frozen=True)
class Experiment:
    """One figure, table or theorem of a paper, or several that are one run.

    Parameters
    ----------
    name, title : str
        Such as ``basecagg-fig1``, and one line on what is shown.
    figures : tuple of str
        The figures, tables and theorems that it stands for, such as ``BASecAgg, figure 1``.
    about : str
        What is trained or measured, and where this departs from the paper.
    presets : mapping
        The settings by the name of the preset, of which `PAPER` is left out where a paper has no numbers; each has
        ``data`` (a data set, or ``none``), and ``seeds``.
    cells : callable
        Gives the cells of settings; each has ``seed``, and all that its run needs.
    run : callable
        Runs one cell.
    statements : callable
        Gives the statements of settings, before anything is run (EXP-21).
    numbers : callable
        Gives for each statement, by its name, one number of each seed.
    rows : callable
        Gives the rows of the CSV file.
    draw : callable
        Given matplotlib's pyplot, settings and results, gives figures by the name of their file.
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
        """The claims that its statements are about, each once."""
        return tuple(dict.fromkeys(s.claim for s in self.statements(self.presets["default"])))

    def judge(self, settings: Data, results: Sequence[Result], asked: int | None = None) -> tuple[Judged, ...]:
        """Return each statement with its verdict; `asked` are the seeds of the preset, where others were run."""
        numbers = self.numbers(settings, results)
        seeds = settings["seeds"] if asked is None else asked
        return tuple(judged(s, numbers[s.name], seeds) for s in self.statements(settings))


def judged(statement: Statement, numbers: Sequence[float], seeds: int) -> Judged:
    """Return a statement with the verdict on the numbers of its seeds."""
    found = interval(numbers)
    return Judged(statement, tuple(numbers), found, verdict(found, statement.relation, statement.bound, seeds))


def by_seed(results: Sequence[Result], **wanted: Any) -> dict[int, Data]:
    """Return what the cells with these members gave, by seed."""
    return {
        r.cell["seed"]: r.found for r in results if all(r.cell.get(name) == value for name, value in wanted.items())
    }


def accuracy(found: Data) -> float:
    """Return the accuracy of a run: the mean over the last tenth of its evaluated rounds, at least one.

    A run that diverged has the accuracy of the last round that was kept (EXP-24).
    """
    values = found["accuracy"]
    last = values[-1:] if found.get("diverged") else values[-max(1, len(values) // 10) :]
    return float(sum(last) / len(last))
