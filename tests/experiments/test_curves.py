"""Lines of means with bands of seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from secagg_spec.experiments import catalogue, curves, pictures
from secagg_spec.experiments.experiment import Result

LONG = {"rounds": [0, 2, 4], "accuracy": [0.1, 0.4, 0.6], "loss": [2.0, 1.0, 1.0]}
SHORT = {"rounds": [0, 2], "accuracy": [0.1, 0.2], "loss": [2.0, 3.0], "diverged": 3}
SHARES = {"refused": 0.5, "wrapped": 0.0, "megabits": [1.0] * 5, "cardinality": 3.0}


@pytest.fixture
def plt() -> Iterator[Any]:
    """Pyplot without a screen."""
    pictures.library()
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("found", [[SHORT, LONG], [LONG, SHORT]])
def test_a_run_that_ended_early_shortens_no_other_whichever_it_is(plt: Any, found: list[dict[str, Any]]) -> None:
    _, axes = plt.subplots()
    curves.accuracies(axes, found, "#000000", "-", "some")
    mean, cross = axes.get_lines()
    assert mean.get_xdata().tolist() == [0, 2, 4]
    assert mean.get_ydata().tolist() == pytest.approx([0.1, 0.3, 0.6])
    assert [float(cross.get_xdata()[0]), float(cross.get_ydata()[0])] == [2, 0.2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("basecagg-fig1", "basecagg-fig2", "heterosag-fig5", "heterosag-fig6", "heterosag-fig11"),
        *("heterosag-fig13", "multi-round-fig6"),
    ],
)
def test_an_experiment_is_drawn_though_the_first_seed_diverged(plt: Any, name: str) -> None:
    experiment = catalogue.load(name)
    settings = experiment.presets["tiny"]
    cells = experiment.cells(settings)
    results = [Result(cell, {**SHARES, **(LONG if cell["seed"] else SHORT)}) for cell in cells]
    assert experiment.draw(plt, settings, results)
