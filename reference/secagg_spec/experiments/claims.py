"""Derives the verdict on a claim of a paper from the stored results of experiments.

Source: spec/experiments.md, section 8 (EXP-31, EXP-34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from secagg_spec import resources
from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue
from secagg_spec.experiments.experiment import PAPER, Data, Judged
from secagg_spec.experiments.results import follows, judge_again, load
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED

_SHOWN = ("data", "model", "users", "rounds", "seeds")


@dataclass(frozen=True)
class Stated:
    """A statement of an experiment, judged again from stored numbers, and the stored verdict."""

    experiment: str
    preset: str
    scale: str
    judged: Judged
    stored: Data

    @property
    def follows(self) -> bool:
        """Whether the stored verdict and interval follow from the stored numbers (EXP-28)."""
        return follows(self.stored, self.judged)

    @property
    def of_paper(self) -> bool:
        """Whether the numbers are the paper's: preset ``paper``, or ``paper-`` and the name of other data (EXP-34)."""
        return self.preset.split("-")[0] == PAPER

    @property
    def chosen(self) -> str:
        """What the preset ``paper`` of the experiment has that is not the paper's; nothing where all of it is."""
        return catalogue.CHOSEN.get(self.experiment, "")

    @property
    def refutes(self) -> bool:
        """Whether it refutes the claim: it fails with the paper's numbers, and nothing is chosen here (EXP-31)."""
        return self.judged.verdict == REFUTED and self.of_paper and not self.chosen

    @property
    def said(self) -> str:
        """The interval, its bound and the verdict, as the ledger writes them: only the paper's numbers refute it."""
        of, statement, verdict = self.judged.interval, self.judged.statement, self.judged.verdict
        if verdict == REFUTED and not self.refutes:
            verdict = "not so with what is chosen here" if self.of_paper else "not so at this scale"
        return f"[{of.low:.3g}, {of.high:.3g}] {statement.relation} {statement.bound:.3g}: {verdict}"


def stored(folder: Path | None = None) -> tuple[Stated, ...]:
    """Return all statements of stored results, by file; of ``spec/experiments`` by default.

    Raises
    ------
    ParameterError
        There is no such folder, or a file holds no result; see `results.load`.
    """
    folder = validate.path_of("folder", resources.root("spec") / "experiments" if folder is None else folder)
    if not folder.is_dir():
        raise ParameterError("folder", str(folder), "a folder with stored results")
    found: list[Stated] = []
    for path in sorted(folder.glob("*.json")):
        content = load(path)
        named = content["experiment"], content["preset"], _scale(content)
        pairs = zip(judge_again(content), content["statements"], strict=True)
        found += [Stated(*named, again, statement) for again, statement in pairs]
    return tuple(found)


def counted(statements: Sequence[Stated]) -> list[Stated]:
    """Return the statements that count: of an experiment with runs at the paper's scale, those alone (EXP-34)."""
    at_scale = {one.experiment for one in statements if one.of_paper}
    return [one for one in statements if one.of_paper or one.experiment not in at_scale]


def verdict(statements: Sequence[Stated]) -> str:
    """Return the verdict on a claim: confirmed, refuted, unconfirmed, or open without a statement (EXP-31, EXP-34)."""
    if not statements:
        return "open"
    if any(one.refutes for one in statements):
        return "refuted"
    return "confirmed" if all(one.judged.verdict == CONFIRMED for one in counted(statements)) else "unconfirmed"


def _scale(content: Data) -> str:
    settings = content["settings"]
    said = ", ".join(f"{name} {settings[name]}" for name in _SHOWN if name in settings)
    return f"{content['preset']}: {said}"
