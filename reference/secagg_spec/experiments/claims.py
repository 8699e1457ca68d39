"""Derives the verdict on a claim of a paper from the stored results of experiments.

Source: spec/experiments.md, section 8 (EXP-31, EXP-34).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from secagg_spec import resources
from secagg_spec.experiments import catalogue
from secagg_spec.experiments.experiment import PAPER, Data, Judged
from secagg_spec.experiments.results import follows, judge_again
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
    def said(self) -> str:
        """The interval, its bound and the verdict, as the ledger writes them: only the paper's numbers refute it."""
        of, statement, verdict = self.judged.interval, self.judged.statement, self.judged.verdict
        if verdict == REFUTED and (self.chosen or not self.of_paper):
            verdict = "not so with what is chosen here" if self.of_paper else "not so at this scale"
        return f"[{of.low:.3g}, {of.high:.3g}] {statement.relation} {statement.bound:.3g}: {verdict}"


def stored(folder: Path | None = None) -> tuple[Stated, ...]:
    """Return all statements of stored results, by file; of ``spec/experiments`` by default."""
    folder = resources.root("spec") / "experiments" if folder is None else folder
    found: list[Stated] = []
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        named = content["experiment"], content["preset"], _scale(content)
        pairs = zip(judge_again(content), content["statements"], strict=True)
        found += [Stated(*named, again, statement) for again, statement in pairs]
    return tuple(found)


def verdict(statements: Sequence[Stated]) -> str:
    """Return the verdict on a claim: confirmed, refuted, unconfirmed, or open without a statement (EXP-31, EXP-34)."""
    at_scale = {one.experiment for one in statements if one.of_paper}
    counted = [one for one in statements if one.of_paper or one.experiment not in at_scale]
    if not counted:
        return "open"
    if any(one.judged.verdict == REFUTED and one.of_paper for one in counted if not one.chosen):
        return "refuted"
    return "confirmed" if all(one.judged.verdict == CONFIRMED for one in counted) else "unconfirmed"


def _scale(content: Data) -> str:
    settings = content["settings"]
    said = ", ".join(f"{name} {settings[name]}" for name in _SHOWN if name in settings)
    return f"{content['preset']}: {said}"
