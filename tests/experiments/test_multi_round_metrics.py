"""Figures 3 to 5 and table 1 of Multi-RoundSecAgg: what is measured is that of a log, and what is said of it."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from secagg_spec.experiments import multi_round_metrics, selection
from secagg_spec.experiments.experiment import Context, Experiment, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED
from secagg_spec.selection import metrics
from secagg_spec.selection.batches import Parameters

pytestmark = pytest.mark.slow

NAMED = {one.name: one for one in multi_round_metrics.EXPERIMENTS}


def run(name: str) -> list[Result]:
    experiment = NAMED[name]
    cells = experiment.cells(experiment.presets["tiny"])
    return [Result(cell, json.loads(json.dumps(experiment.run(cell, Context())))) for cell in cells]


@pytest.fixture(scope="module")
def figure_4() -> list[Result]:
    return run("multi-round-fig4")


@pytest.fixture(scope="module")
def figure_3() -> list[Result]:
    return run("multi-round-fig3")


@pytest.fixture(scope="module")
def table_1() -> list[Result]:
    return run("multi-round-table1")


def judged(name: str, results: list[Result]) -> dict[str, str]:
    experiment = NAMED[name]
    return {one.statement.name: one.verdict for one in experiment.judge(experiment.presets["tiny"], results)}


@pytest.fixture(scope="module")
def courses() -> list[list[selection.Course]]:
    """What the command runs, with each seed."""
    return [list(selection.run(selection.Settings(24, 6, (3, 2), 60, seed=seed), effort=10_000)) for seed in range(3)]


def test_cells_are_the_courses_of_the_command(figure_4: list[Result], courses: list[list[selection.Course]]) -> None:
    right = [selection.as_json(course) for of_seed in courses for course in of_seed]
    assert [one.found for one in figure_4] == right
    names = ["Random", "Weighted Random", "Partition", "Multi-RoundSecAgg, T=3", "Multi-RoundSecAgg, T=2"]
    assert [one.cell["scheme"] for one in figure_4] == names * 3


def test_a_course_comes_back_from_json(figure_4: list[Result], courses: list[list[selection.Course]]) -> None:
    for one, course in zip(figure_4, courses[0], strict=False):
        again = selection.of_json(one.found, 24, 6)
        assert (again.gaps, again.cardinalities) == (course.gaps, course.cardinalities)
        assert (again.scheme, again.strong, again.family) == (course.scheme, course.strong, course.family)
        assert list(map(str, again.weak)) == list(map(str, course.weak))
        assert selection.as_json(again) == one.found


def test_numbers_of_figure_4_are_those_of_the_last_round(
    figure_4: list[Result], courses: list[list[selection.Course]]
) -> None:
    experiment = NAMED["multi-round-fig4"]
    numbers = experiment.numbers(experiment.presets["tiny"], figure_4[::-1])
    for seed, of_seed in enumerate(courses):
        of = {course.scheme.name: course for course in of_seed}
        mean = {name: float(metrics.cardinality(course.log)) for name, course in of.items()}
        gap = {name: float(metrics.fairness_gap(course.log)) for name, course in of.items()}
        least = min(value for name, value in mean.items() if name != "Partition")
        assert numbers["Partition: least cardinality"][seed] == least - mean["Partition"]
        assert numbers["T = 3: fairness"][seed] == gap["Random"] - gap["Multi-RoundSecAgg, T=3"]
        privacy = {name: course.weak[-1] for name, course in of.items()}
        assert numbers["Partition: privacy"][seed] == privacy["Partition"].low
        assert numbers["T = 2: privacy"][seed] == 2 - max(privacy[name].high for name in ("Random", "Weighted Random"))


def test_statements_of_figure_4(figure_4: list[Result]) -> None:
    found = judged("multi-round-fig4", figure_4)
    assert {found[name] for name in found if "privacy" in name} == {CONFIRMED}
    assert found["Partition: least cardinality"] == CONFIRMED
    turned = {"Partition": "Random", "Random": "Partition"}
    others = [Result({**r.cell, "scheme": turned.get(r.cell["scheme"], r.cell["scheme"])}, r.found) for r in figure_4]
    found = judged("multi-round-fig4", others)
    assert found["Partition: most privacy"] == found["Random: privacy"] == found["T = 3: privacy"] == REFUTED


def test_figure_5_has_the_last_round_of_figure_4(figure_4: list[Result]) -> None:
    results = run("multi-round-fig5")
    for one, other in zip(results, figure_4, strict=True):
        for name in ("fairness_gap", "cardinality"):
            assert one.found[name] == other.found[name][-1:]
        assert len(one.found["weak"]) == 1
        assert other.found["weak"][-1][0] <= one.found["weak"][0][1]
    experiment = NAMED["multi-round-fig5"]
    numbers = experiment.numbers(experiment.presets["tiny"], results)
    shares = [
        Fraction(results[4].found["cardinality"][-1]) / Fraction(results[at].found["cardinality"][-1]) for at in (0, 1)
    ]
    assert numbers["T = 2: cardinality"][0] == pytest.approx(float(min(shares)))
    assert judged("multi-round-fig5", results)["T = 3: cardinality"] == REFUTED
    rows = list(experiment.rows(experiment.presets["tiny"], results))
    assert [row["round"] for row in rows] == [60] * 15
    assert rows[0]["fairness gap"] == float(Fraction(figure_4[0].found["fairness_gap"][-1]))


def test_figure_3_measures_what_theorem_1_is_about(figure_3: list[Result]) -> None:
    assert len(figure_3) == 15
    for one in figure_3:
        assert one.found["privacy"] == [1, 2, 3, 6]
        rate = Fraction(one.cell["rates"][0])
        theorem = [float(metrics.expected_cardinality(Parameters(24, 6, T), rate)) for T in (1, 2, 3, 6)]
        assert one.found["theorem"] == theorem
        assert np.allclose(one.found["measured"], theorem, atol=1.0)
    numbers = NAMED["multi-round-fig3"].numbers(NAMED["multi-round-fig3"].presets["tiny"], figure_3)
    last = figure_3[4].found
    differences = [a - b for a, b in zip(last["measured"], last["theorem"], strict=True)]
    assert numbers["p = 0.5: theorem 1"][0] == max(map(abs, differences))
    assert numbers["p = 0.5: from K"][0] == last["measured"][0]
    assert numbers["p = 0.5: falls"][0] == -max(np.diff(last["measured"]))


def test_statements_of_figure_3(figure_3: list[Result]) -> None:
    found = judged("multi-round-fig3", figure_3)
    assert found["p = 0.1: theorem 1"] == found["p = 0.4: falls"] == CONFIRMED
    others = [Result(r.cell, {**r.found, "measured": r.found["measured"][::-1]}) for r in figure_3]
    found = judged("multi-round-fig3", others)
    assert found["p = 0.4: theorem 1"] == found["p = 0.4: falls"] == found["p = 0.4: from K"] == REFUTED


def test_table_1_is_counted_and_listed(table_1: list[Result]) -> None:
    first = {one.cell["privacy"]: one.found for one in table_1[:5]}
    assert first[1] == {"family": "10542859559688820", "listed": None}
    assert {T: (int(found["family"]), found["listed"]) for T, found in first.items() if T > 1} == {
        3: (91390, 91390),
        4: (4060, 4060),
        6: (190, 190),
        12: (10, 10),
    }
    assert set(judged("multi-round-table1", table_1).values()) == {CONFIRMED}
    wrong = [Result(one.cell, {"family": str(int(one.found["family"]) * 4), "listed": 191}) for one in table_1]
    assert set(judged("multi-round-table1", wrong).values()) == {REFUTED}


def pictures_of(experiment: Experiment, results: list[Result]) -> list[str]:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = experiment.draw(plt, experiment.presets["tiny"], results)
    for figure in figures.values():
        figure.canvas.draw()
    plt.close("all")
    return list(figures)


def test_pictures_and_rows(figure_3: list[Result], figure_4: list[Result], table_1: list[Result]) -> None:
    last = ("weak", "fairness_gap", "cardinality")
    fig5 = [Result(one.cell, {**one.found, **{name: one.found[name][-1:] for name in last}}) for one in figure_4]
    assert pictures_of(NAMED["multi-round-fig3"], figure_3) == ["trade-off"]
    assert pictures_of(NAMED["multi-round-fig4"], figure_4) == ["metrics"]
    assert pictures_of(NAMED["multi-round-fig5"], fig5) == ["trade-off"]
    assert pictures_of(NAMED["multi-round-table1"], table_1) == ["family-sizes"]
    tiny = {name: one.presets["tiny"] for name, one in NAMED.items()}
    rows = list(NAMED["multi-round-fig4"].rows(tiny["multi-round-fig4"], figure_4))
    assert [row["round"] for row in rows[:60]] == list(range(1, 61))
    assert rows[59]["cardinality"] == float(Fraction(figure_4[0].found["cardinality"][-1]))
    assert len(list(NAMED["multi-round-fig3"].rows(tiny["multi-round-fig3"], figure_3))) == 60
    assert len(list(NAMED["multi-round-table1"].rows(tiny["multi-round-table1"], table_1))) == 15


@pytest.mark.parametrize("experiment", NAMED.values(), ids=list(NAMED))
def test_presets_give_cells_and_statements(experiment: Experiment) -> None:
    for settings in experiment.presets.values():
        cells = experiment.cells(settings)
        assert {cell["seed"] for cell in cells} == set(range(settings["seeds"]))
        assert len({json.dumps(cell, sort_keys=True) for cell in cells}) == len(cells)
        names = [one.name for one in experiment.statements(settings)]
        assert len(set(names)) == len(names)
