"""Properties of figures 1 and 2 of BASecAgg."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import OutOfRange
from secagg_spec.experiments import aggregators, basecagg_fig1, basecagg_fig2, pictures
from secagg_spec.experiments.aggregates import weighted_mean
from secagg_spec.experiments.basecagg_fig2 import FIELD, Wrapping, wrapped_sum
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result

pytestmark = pytest.mark.slow

FIGURE_1, FIGURE_2 = basecagg_fig1.EXPERIMENTS[0], basecagg_fig2.EXPERIMENTS[0]


def swept(experiment: Experiment, settings: Data) -> list[Result]:
    """The results of all cells."""
    return [Result(cell, experiment.run(cell, Context())) for cell in experiment.cells(settings)]


@pytest.fixture(scope="module")
def figure_1() -> list[Result]:
    """The results of figure 1 at its smallest."""
    return swept(FIGURE_1, FIGURE_1.presets["tiny"])


@pytest.fixture(scope="module")
def figure_2() -> list[Result]:
    """The results of figure 2 at its smallest."""
    return swept(FIGURE_2, FIGURE_2.presets["tiny"])


def drawn(experiment: Experiment, results: list[Result]) -> Mapping[str, Any]:
    """The pictures of results."""
    pictures.library()
    from matplotlib import pyplot as plt

    figures = experiment.draw(plt, experiment.presets["tiny"], results)
    for figure in figures.values():
        plt.close(figure)
    return figures


# -------------------------------------------------------------------------------------------------------- figure 1


@pytest.mark.requirement("EXP-21", "EXP-15")
def test_figure_1_compares_the_two_schemes_with_one_seed(figure_1: list[Result]) -> None:
    settings = FIGURE_1.presets["tiny"]
    found = FIGURE_1.numbers(settings, figure_1)
    assert set(found) == {one.name for one in FIGURE_1.statements(settings)}
    assert {len(numbers) for numbers in found.values()} == {3}
    last = {(r.cell["scheme"], r.cell["weighting"], r.cell["seed"]): r.found["accuracy"][-1] for r in figure_1}
    for weighting in basecagg_fig1.WEIGHTINGS:
        wanted = [last["BASecAgg", weighting, seed] - last["FedBuff", weighting, seed] for seed in range(3)]
        assert list(found[f"not-worse-{weighting}"]) == list(found[f"not-better-{weighting}"]) == wanted


def test_what_is_quantised_is_near_to_what_is_not(figure_1: list[Result]) -> None:
    losses = {(r.cell["scheme"], r.cell["weighting"], r.cell["seed"]): r.found["loss"] for r in figure_1}
    for weighting in basecagg_fig1.WEIGHTINGS:
        for seed in range(3):
            mine, plain = losses["BASecAgg", weighting, seed], losses["FedBuff", weighting, seed]
            assert mine[0] == plain[0]
            assert mine[1:] != plain[1:]
            np.testing.assert_allclose(mine, plain, rtol=0.02)


def test_the_whole_protocol_runs_where_the_settings_say_so(figure_1: list[Result]) -> None:
    for result in figure_1:
        report = result.found["aggregator"]
        if result.cell["scheme"] == "BASecAgg":
            assert (report["protocol"], report["shortcut"], report["moved"]) == (2, 2, 0)
            assert 0 < report["largest_error"] < report["bound"] == 2**-16
        else:
            assert (report["protocol"], report["shortcut"]) == (0, 0)


def test_fedasync_counts_as_many_uploads_as_a_buffer_holds_as_a_round(figure_1: list[Result]) -> None:
    rounds = {r.cell["scheme"]: r.found["rounds"] for r in figure_1}
    assert rounds["FedAsync"] == rounds["FedBuff"] == rounds["FedAvg"] == [0, 1, 2, 3, 4]


def test_the_rows_and_pictures_of_figure_1(figure_1: list[Result]) -> None:
    rows = list(FIGURE_1.rows(FIGURE_1.presets["tiny"], figure_1))
    assert len(rows) == 3 * 6 * 5
    assert set(rows[0]) == {"scheme", "weighting", "seed", "round", "accuracy", "loss"}
    left, right = drawn(FIGURE_1, figure_1)["accuracy"].axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["FedBuff", "BASecAgg", "FedAvg"]
    assert len(right.get_legend().get_texts()) == 4
    colours = [{line.get_label(): line.get_color() for line in axes.get_lines()} for axes in (left, right)]
    assert colours[1] == {**colours[0], "FedAsync": colours[1]["FedAsync"]}
    assert all(at.is_integer() for axes in (left, right) for at in axes.get_xticks())


# -------------------------------------------------------------------------------------------------------- figure 2


@given(st.lists(st.tuples(st.integers(-(2**45), 2**45), st.integers(1, 64)), min_size=1, max_size=10))
def test_sums_wrap_around_as_residues_do(pairs: list[tuple[int, int]]) -> None:
    exact = sum(value * weight for value, weight in pairs)
    (found,) = wrapped_sum(np.array([[value] for value, _ in pairs]), [weight for _, weight in pairs]).tolist()
    assert divmod(found - exact, FIELD.modulus)[1] == 0
    assert abs(found) <= FIELD.modulus // 2


def test_where_nothing_wraps_it_is_the_aggregator_of_the_standard() -> None:
    rng = np.random.default_rng(0)
    updates, users, taus, draws = rng.normal(0, 0.1, (4, 30)), [5, 0, 3, 6], [0, 2, 1, 0], np.zeros(4)
    settings = {"aggregator": "basecagg", "level": 2**16, "c_g": 64, "tau_max": 3, "every": 0}
    wanted = aggregators.build(settings, 8, 30, 7).aggregate(
        updates, [64] * 4, users=users, round=2, taus=taus, draws=draws
    )
    wrapping = Wrapping(2**16, 64, 4, 7)
    found = wrapping.aggregate(updates, [64] * 4, users=users, round=2, taus=taus, draws=draws)
    assert (found.mean == wanted.mean).all()
    assert (wrapping.updates, wrapping.refused, wrapping.sums, wrapping.wrapped) == (4, 0, 30, 0)


def test_what_the_standard_refuses_is_counted() -> None:
    updates = np.full((4, 3), 0.01)
    updates[1, 2] = 1.0
    wrapping = Wrapping(2**24, 64, 4, 0)
    found = wrapping.aggregate(updates, [64] * 4, users=[0, 1, 2, 3], round=0)
    assert (wrapping.updates, wrapping.refused, wrapping.wrapped) == (4, 1, 0)
    assert np.abs(found.mean - weighted_mean(updates, [64] * 4)).max() < 2**-24
    updates[:, 2] = 1.0
    found = wrapping.aggregate(updates, [64] * 4, users=[0, 1, 2, 3], round=1)
    assert (wrapping.updates, wrapping.refused, wrapping.wrapped) == (8, 5, 1)
    assert abs(found.mean[2]) <= 2**31 / 2**24 / 256
    settings = {"aggregator": "basecagg", "level": 2**24, "c_g": 64, "tau_max": 3, "every": 0}
    with pytest.raises(OutOfRange, match="the range of the quantiser"):
        aggregators.build(settings, 4, 3, 0).aggregate(updates, [64] * 4, users=[0, 1, 2, 3], round=1)


def test_numbers_beyond_exact_integers_are_refused() -> None:
    wrapping = Wrapping(2**32, 64, 10, 0)
    with pytest.raises(OutOfRange, match="user 3"):
        wrapping.aggregate(np.full((1, 2), 1e5), [64], users=[3], round=0)
    assert wrapping.shares() == {"refused": 0.0, "wrapped": 0.0}


def test_figure_2_compares_levels_with_one_seed(figure_2: list[Result]) -> None:
    settings = FIGURE_2.presets["tiny"]
    found = FIGURE_2.numbers(settings, figure_2)
    assert set(found) == {one.name for one in FIGURE_2.statements(settings)}
    last = {(r.cell["weighting"], r.cell["bits"], r.cell["seed"]): r.found["accuracy"][-1] for r in figure_2}
    for weighting in basecagg_fig1.WEIGHTINGS:
        few, mine, many = ([last[weighting, bits, seed] for seed in range(3)] for bits in (0, 16, 32))
        assert found[f"coarse-{weighting}"] == [b - a for a, b in zip(few, mine, strict=True)]
        assert found[f"wraps-{weighting}"] == [b - c for b, c in zip(mine, many, strict=True)]
        best = [b - max(a, b, c) for a, b, c in zip(few, mine, many, strict=True)]
        assert found[f"best-{weighting}"] == best


def test_both_ends_of_figure_2_fail_in_their_own_way(figure_2: list[Result]) -> None:
    for weighting in basecagg_fig1.WEIGHTINGS:
        of = {r.cell["bits"]: r.found for r in figure_2 if r.cell["weighting"] == weighting and r.cell["seed"] == 0}
        assert of[0]["wrapped"] == of[16]["wrapped"] == of[0]["refused"] == of[16]["refused"] == 0
        assert 0 < of[32]["wrapped"] < 1
        assert of[32]["refused"] == 1
        off = {bits: abs(of[bits]["loss"][-1] - of[None]["loss"][-1]) for bits in (0, 16, 32)}
        assert off[16] < min(off[0], off[32])


def test_the_rows_and_pictures_of_figure_2(figure_2: list[Result]) -> None:
    rows = list(FIGURE_2.rows(FIGURE_2.presets["tiny"], figure_2))
    assert len(rows) == 3 * 2 * 4
    assert {row["scheme"] for row in rows if row["bits"] is None} == {"FedBuff"}
    assert len(drawn(FIGURE_2, figure_2)["levels"].axes) == 4


@pytest.mark.parametrize("experiment", [FIGURE_1, FIGURE_2], ids=lambda one: one.name)
def test_the_paper_presets_have_its_numbers(experiment: Experiment) -> None:
    for name, rate in (("paper", 0.01), ("paper-cifar10", 0.1)):
        settings = experiment.presets[name]
        assert (settings["users"], settings["buffer"], settings["tau_max"], settings["batch"]) == (100, 10, 10, 50)
        assert (settings["rate"], settings["decay"], settings["c_g"]) == (rate, 5e-4, 64)
        assert math.log2(settings.get("level", 2**16)) == 16
