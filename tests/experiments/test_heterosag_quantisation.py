"""Figures 5, 9 and 11 of HeteroSAg at the size of tests."""

from __future__ import annotations

from fractions import Fraction

import pytest

from secagg_spec.experiments import heterosag_quantisation as figures
from secagg_spec.experiments.experiment import Context, Experiment, Result

pytestmark = pytest.mark.slow

MNIST = {"users": 25}
D = 79_510


def experiment(name: str) -> Experiment:
    """One of the three."""
    return next(one for one in figures.EXPERIMENTS if one.name == name)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    """What the cells of figure 11 at its smallest give."""
    chosen = experiment("heterosag-fig11")
    return [Result(cell, chosen.run(cell, Context())) for cell in chosen.cells(chosen.presets["tiny"])]


def test_each_scheme_has_each_seed_and_each_distribution(results: list[Result]) -> None:
    assert len(results) == 3 * 2 * len(figures.SCHEMES)
    assert {result.cell["alpha"] for result in results} == {1.0, 10.0}


def test_statements_get_a_number_of_each_seed(results: list[Result]) -> None:
    chosen = experiment("heterosag-fig11")
    judged = chosen.judge(chosen.presets["tiny"], results)
    assert [len(one.numbers) for one in judged] == [3] * 6
    assert [one.verdict for one in judged if one.statement.name.startswith("time")] == ["confirmed"] * 2


@pytest.mark.requirement("EXP-21", "EXP-23")
@pytest.mark.parametrize(
    ("reached", "times", "verdicts"),
    [
        ((0.88, 0.7, 0.9), (2.0, 2.0), ["confirmed"] * 3),
        ((0.86, 0.7, 0.9), (2.0, 2.0), ["refuted", "confirmed", "confirmed"]),
        ((0.88, 0.8, 0.9), (3.0, 2.0), ["confirmed", "refuted", "refuted"]),
        ((0.95, 0.5, 0.9), (1.0, 2.0), ["confirmed"] * 3),
    ],
)
def test_statements_are_on_the_side_of_the_paper(
    reached: tuple[float, float, float], times: tuple[float, float], verdicts: list[str]
) -> None:
    chosen = experiment("heterosag-fig5")
    settings = chosen.presets["tiny"]
    accuracies = dict(zip(("heterogeneous", "two levels", "no quantisation"), reached, strict=True))
    bits = dict(zip(accuracies, (*times, 9.0), strict=True))
    found = [
        Result(cell, {"accuracy": [0.1, accuracies[cell["scheme"]]], "megabits": [bits[cell["scheme"]]] * 5})
        for cell in chosen.cells(settings)
    ]
    assert [one.verdict for one in chosen.judge(settings, found)] == verdicts
    assert [one.statement.name for one in chosen.judge(settings, found)] == ["close", "better", "time"]


def test_schemes_begin_with_one_model(results: list[Result]) -> None:
    for seed in range(3):
        first = {result.found["accuracy"][0] for result in results if result.cell["seed"] == seed}
        assert len(first) == 1


@pytest.mark.requirement("EXP-15", "EXP-16")
def test_quantised_schemes_say_how_they_were_summed(results: list[Result]) -> None:
    for result in results:
        report = result.found["aggregator"]
        whole = 0 if result.cell["scheme"] == "no quantisation" else 2
        assert (report["protocol"], report["shortcut"]) == (whole, whole)


def test_times_are_those_of_the_formula_of_the_paper() -> None:
    """HET-TAB4: 60.4 Mb in 200 rounds for group 0, and 569.3 Mb without quantisation, of masked models alone."""
    found = {scheme: figures.megabits({**MNIST, "scheme": scheme}, D) for scheme in figures.SCHEMES}
    rounded = {scheme: [round(200 * bits, 1) for bits in groups] for scheme, groups in found.items()}
    assert rounded == {
        "heterogeneous": [60.4, 85.9, 95.4, 95.4, 95.4],
        "two levels": [60.4] * 5,
        "no quantisation": [569.3] * 5,
    }


def test_a_round_lasts_until_the_stragglers_have_sent() -> None:
    assert figures.seconds({"megabits": [2, 1, 1, 1, 3.0]}) == 2
    assert figures.seconds({"megabits": [1, 3, 1, 1, 1.0]}) == 1.5


@pytest.mark.parametrize(("number", "rate"), [(0, Fraction(2, 100)), (150, Fraction(2, 100)), (151, Fraction(2, 402))])
def test_the_learning_rate_falls_after_a_round(number: int, rate: Fraction) -> None:
    assert figures.learning_rate(0.02, 150, number) == pytest.approx(float(rate))
    assert figures.learning_rate(0.02, None, number) == 0.02


def test_rows_hold_each_evaluated_round(results: list[Result]) -> None:
    chosen = experiment("heterosag-fig11")
    rows = list(chosen.rows(chosen.presets["tiny"], results))
    assert len(rows) == sum(len(result.found["rounds"]) for result in results)
    assert rows[0]["seconds"] == 0
    assert all(0 <= row["accuracy"] <= 1 for row in rows)
