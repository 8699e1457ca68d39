"""Figures 10 and 12 of HeteroSAg: what is measured of labels, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.experiments import heterosag_labels
from secagg_spec.experiments.experiment import Context, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED, UNCONFIRMED

(EXPERIMENT,) = heterosag_labels.EXPERIMENTS
TINY = EXPERIMENT.presets["tiny"]


@pytest.fixture(scope="module")
def results() -> list[Result]:
    pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")
    return [Result(cell, EXPERIMENT.run(cell, Context())) for cell in EXPERIMENT.cells(TINY)]


@pytest.mark.slow
def test_each_cell_is_a_partition_of_all_samples(results: list[Result]) -> None:
    assert len(results) == 9
    labels = np.array(results[0].found["counts"]).sum(axis=0)
    assert all(("counts" in one.found) == (one.cell["seed"] == 0) for one in results)
    for one in results[:3]:
        counts = np.array(one.found["counts"])
        assert counts.shape == (12, 10)
        assert np.array_equal(counts.sum(axis=0), labels)
    assert json.loads(json.dumps([one.found for one in results])) == [one.found for one in results]


def test_distances_fall_with_alpha(results: list[Result]) -> None:
    judged = EXPERIMENT.judge(TINY, results)
    assert [one.statement.name for one in judged] == [
        "N = 12: alpha 0.7 to 1",
        "N = 12: alpha 1 to 10",
        "N = 12: scarce labels",
    ]
    assert {one.statement.claim for one in judged} == {"HET-DIRICHLET"}
    assert judged[1].verdict == CONFIRMED
    assert all(len(one.numbers) == 3 for one in judged)


def test_the_other_way_round_is_refuted_and_one_seed_decides_nothing(results: list[Result]) -> None:
    turned = {0.7: 10.0, 10.0: 0.7, 1.0: 1.0}
    others = [Result({**one.cell, "alpha": turned[one.cell["alpha"]]}, one.found) for one in results]
    assert EXPERIMENT.judge(TINY, others)[0].verdict == REFUTED
    alone = [one for one in results if one.cell["seed"] == 0]
    assert {one.verdict for one in EXPERIMENT.judge(TINY, alone)} == {UNCONFIRMED}


def test_the_numbers_of_a_seed_are_differences_of_its_own_cells(results: list[Result]) -> None:
    by = {(one.cell["seed"], one.cell["alpha"]): one.found for one in results}
    numbers = EXPERIMENT.numbers(TINY, results[::-1])
    wanted = [by[seed, 0.7]["distance"] - by[seed, 1.0]["distance"] for seed in range(3)]
    assert numbers["N = 12: alpha 0.7 to 1"] == wanted
    assert numbers["N = 12: scarce labels"] == [by[seed, 0.7]["scarce"] for seed in range(3)]


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3).filter(any), min_size=1, max_size=8))
def test_distances_and_scarce_labels_are_those_of_a_count(counts: list[list[int]]) -> None:
    everyone = [sum(row[label] for row in counts) / sum(map(sum, counts)) for label in range(3)]
    distances = [sum(abs(row[a] / sum(row) - everyone[a]) for a in range(3)) / 2 for row in counts]
    few = [sum(100 * number < sum(row) for number in row) for row in counts]
    array = np.array(counts)
    assert heterosag_labels.distance(array) == pytest.approx(sum(distances) / len(counts))
    assert heterosag_labels.scarce(array) == pytest.approx(sum(few) / len(counts))


@pytest.mark.slow
def test_each_user_has_a_bar_of_height_one_and_each_cell_a_row(results: list[Result]) -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = EXPERIMENT.draw(plt, TINY, results)
    assert set(figures) == {"labels-12-users"}
    for axes in figures["labels-12-users"].axes:
        assert len(axes.patches) == 120
        heights = np.array([bar.get_height() for bar in axes.patches]).reshape(10, 12)
        assert np.allclose(heights.sum(axis=0), 1)
    plt.close("all")
    rows = list(EXPERIMENT.rows(TINY, results))
    assert len(rows) == 9
    assert (rows[0]["distance"], rows[0]["alpha"]) == (results[0].found["distance"], 0.7)
