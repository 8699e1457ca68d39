"""Figure 6 of Multi-RoundSecAgg: who trains in which round, and what is said of the accuracies."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is in the extra `train`")
pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")

from secagg_spec.experiments import multi_round_accuracy, runs, selection
from secagg_spec.experiments.experiment import Context, Data, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED

pytestmark = pytest.mark.slow

(EXPERIMENT,) = multi_round_accuracy.EXPERIMENTS
TINY = EXPERIMENT.presets["tiny"]


@pytest.fixture(scope="module")
def results() -> list[Result]:
    cells = EXPERIMENT.cells(TINY)
    return [Result(cell, json.loads(json.dumps(EXPERIMENT.run(cell, Context())))) for cell in cells]


def results_of(accuracies: dict[tuple[str, str], float]) -> list[Result]:
    """Results with these accuracies, and 0.9 elsewhere, a little more with each seed."""
    return [
        Result(cell, {"accuracy": [0.1, accuracies.get((cell["setting"], cell["scheme"]), 0.9) + 1e-3 * cell["seed"]]})
        for cell in EXPERIMENT.cells(TINY)
    ]


def judged(results: list[Result]) -> dict[str, str]:
    return {one.statement.name: one.verdict for one in EXPERIMENT.judge(TINY, results)}


def test_all_schemes_are_trained_in_both_settings_with_each_seed(results: list[Result]) -> None:
    assert len(results) == 3 * 2 * 5
    assert {one.cell["partition"] for one in results} == {"iid", "dirichlet"}
    for one in results:
        assert one.found["rounds"] == [0, 2, 4, 6, 8]
        assert one.found["aggregator"]["name"] == "secagg"
        assert one.found["diverged"] is None
    firsts = {(r.cell["seed"], r.cell["setting"]): set[float]() for r in results}
    for one in results:
        firsts[one.cell["seed"], one.cell["setting"]].add(one.found["loss"][0])
    assert all(len(losses) == 1 for losses in firsts.values()), "the first model is that of the seed"


def test_the_users_of_a_round_are_those_of_the_selection(
    results: list[Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[int]] = []
    real = runs.Task.updates

    def updates(self: runs.Task, users: Any, *rest: Any) -> Any:
        asked.append(list(users))
        return real(self, users, *rest)

    monkeypatch.setattr(runs.Task, "updates", updates)
    for at in (0, 2, 3):
        cell = results[at].cell
        asked.clear()
        EXPERIMENT.run(cell, Context())
        course = next(
            one
            for one in selection.run(selection.Settings(24, 6, (3, 2), 8, seed=cell["seed"]), effort=0)
            if one.scheme.name == cell["scheme"]
        )
        assert asked == [row.nonzero()[0].tolist() for row in course.log if row.any()]
        assert results[at].found["cardinality"] == float(course.cardinalities[-1])


def test_a_round_without_users_keeps_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(cell: Data) -> list[list[int]]:
        return [[0, 1, 2], [], [], [3, 4, 5]]

    monkeypatch.setattr(multi_round_accuracy, "chosen", nobody)
    cell = {**EXPERIMENT.cells(TINY)[0], "rounds": 4, "evaluate": 1}
    losses = EXPERIMENT.run(cell, Context())["loss"]
    assert losses[1] == losses[2] == losses[3]
    assert len(set(losses)) == 3


def test_statements_are_about_differences_of_the_same_seed() -> None:
    random, partition = ("IID", "Random"), ("non-IID", "Partition")
    found = judged(results_of({random: 0.93, partition: 0.5, ("IID", "Partition"): 0.95}))
    assert found == {
        "IID: T = 3": REFUTED,
        "IID: T = 2": REFUTED,
        "IID: partition": REFUTED,
        "non-IID: T = 3": CONFIRMED,
        "non-IID: T = 2": CONFIRMED,
        "non-IID: partition": CONFIRMED,
    }
    found = judged(results_of({random: 0.915, ("non-IID", "Random"): 0.905}))
    assert found["IID: T = 3"] == CONFIRMED, "comparable is up to 0.02 less"
    assert found["non-IID: T = 3"] == REFUTED


def test_the_partition_is_compared_with_the_worst_of_the_others() -> None:
    results = results_of({("IID", "Multi-RoundSecAgg, T=2"): 0.4, ("IID", "Partition"): 0.5})
    numbers = EXPERIMENT.numbers(TINY, results[::-1])
    assert numbers["IID: partition"] == pytest.approx([-0.1] * 3)
    assert numbers["IID: T = 2"] == pytest.approx([-0.5] * 3)


def test_claims_are_one_for_each_sentence() -> None:
    assert EXPERIMENT.claims == ("MRS-ACC", "MRS-ACC3", "MRS-ACC2")


def test_picture_and_rows(results: list[Result]) -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    (figure,) = EXPERIMENT.draw(plt, TINY, results).values()
    figure.canvas.draw()
    assert [len(axes.get_lines()) for axes in figure.axes] == [5, 5]
    plt.close("all")
    rows = list(EXPERIMENT.rows(TINY, results))
    assert len(rows) == 30 * 5
    assert rows[4]["accuracy"] == results[0].found["accuracy"][4]
