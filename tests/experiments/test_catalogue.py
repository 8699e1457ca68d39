"""Experiments and presets by name: one that is not there is refused with what is close."""

from __future__ import annotations

import subprocess
import sys

import pytest

from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue, figures
from secagg_spec.experiments.experiment import PAPER, PRESETS
from secagg_spec.ledger import entries
from tests.experiments import toy

THEOREMS = {one.experiment for one in figures.load() if one.number.startswith("theorem")}


def _presets(name: str) -> tuple[str, ...]:
    """The presets that an experiment has to have: those for theorems have none of a paper."""
    return tuple(preset for preset in PRESETS if preset != PAPER or name not in THEOREMS)


@pytest.mark.requirement("EXP-21", "EXP-29")
@pytest.mark.parametrize("name", list(catalogue.MODULES))
def test_an_experiment_has_all_its_parts(name: str) -> None:
    experiment = catalogue.load(name)
    claims = entries.load().claims
    assert experiment.name == name
    assert set(_presets(name)) <= set(experiment.presets)
    assert experiment.title
    assert experiment.about
    for preset in _presets(name):
        settings = catalogue.settings(experiment, preset)
        assert settings["seeds"] >= 1
        assert settings["data"]
        stated = experiment.statements(settings)
        assert stated
        assert len({one.name for one in stated}) == len(stated)
        assert {one.claim for one in stated} <= set(claims)
        seeds = {cell["seed"] for cell in experiment.cells(settings)}
        assert len(seeds) == settings["seeds"]
    assert experiment.presets["default"]["seeds"] >= 3


@pytest.mark.requirement("EXP-30")
@pytest.mark.parametrize("name", list(catalogue.MODULES))
def test_the_figures_of_an_experiment_are_those_of_the_list(name: str) -> None:
    listed = {one.name for one in figures.load() if one.experiment == name}
    assert set(catalogue.load(name).figures) == listed


@pytest.mark.requirement("EXP-29")
@pytest.mark.parametrize(
    ("name", "close"),
    [("basecagg-fig3", "basecagg-fig2"), ("heterosagfig5", "heterosag-fig5"), ("BASA-TABLE1", "basa-table1")],
)
def test_an_unknown_experiment_is_refused_with_what_is_close(name: str, close: str) -> None:
    with pytest.raises(ParameterError, match=f"experiment = .*; {close} is close"):
        catalogue.load(name)


@pytest.mark.requirement("EXP-29")
def test_an_unknown_preset_is_refused_with_what_is_close() -> None:
    with pytest.raises(ParameterError, match=r"preset of .* = 'papers': .*; paper is close"):
        catalogue.settings(toy.experiment(presets={name: {} for name in PRESETS}), "papers")


def test_nothing_heavy_is_imported_before_an_experiment_is() -> None:
    heavy = ("torch", "scipy", "sklearn", "simpy", "joblib", "matplotlib", "tqdm", "distributed", "pandas")
    code = (
        "import sys, secagg_spec.cli, secagg_spec.commands.reproduce;"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "\n"
