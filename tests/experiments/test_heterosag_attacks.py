"""Figures 6 and 13 of HeteroSAg: who attacks and how, what is compared, and what is drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import ParameterError
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED, UNCONFIRMED

pytest.importorskip("torch", reason="torch is in the extra `train`")
pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")

from secagg_spec.experiments import heterosag_attacks as experiments
from secagg_spec.experiments import runs
from secagg_spec.experiments.runs import Task, Work
from secagg_spec.learning.streams import ATTACK, stream

pytestmark = pytest.mark.slow
SIX, THIRTEEN = experiments.EXPERIMENTS
TINY = SIX.presets["tiny"]
BOTH = pytest.mark.parametrize("experiment", [SIX, THIRTEEN], ids=lambda one: one.name)


def cell(experiment: Experiment = SIX, **changed: Any) -> Data:
    """Return the first cell of the tiny settings, changed."""
    return {**experiment.cells(experiment.presets["tiny"])[0], **changed}


@pytest.fixture(scope="module")
def task() -> Task:
    return runs.task(cell(), Context())


def sent(task: Task, attack: str, byzantine: set[int], number: int = 3) -> tuple[RealArray, RealArray]:
    """Return the first model, and what all 15 users send in a round that begins with it."""
    model = task.first()
    attacked = experiments.attacked(task, attack, frozenset(byzantine))
    return model, attacked.updates(range(15), np.tile(model, (15, 1)), number, Work())


# -------------------------------------------------------------------------------------------------------- the attacks


@pytest.mark.parametrize("attack", experiments.ATTACKS)
def test_an_attack_changes_what_byzantine_users_send_and_nothing_else(task: Task, attack: str) -> None:
    model, honest = sent(task, experiments.NONE, set())
    start, found = sent(task, attack, {1, 7})
    others = [user for user in range(15) if user not in (1, 7)]
    assert np.array_equal(start, model)
    assert np.array_equal(found[others], honest[others])
    assert all(np.abs(found[user] - honest[user]).max() > 1e-3 for user in (1, 7))


def test_a_sign_flip_sends_the_update_times_minus_five(task: Task) -> None:
    (_, honest), (_, found) = sent(task, experiments.NONE, set()), sent(task, experiments.SIGN_FLIP, {4})
    assert found[4] == pytest.approx(-5 * honest[4], abs=1e-12)


def test_a_sign_flip_of_the_model_claims_it_times_minus_five(task: Task) -> None:
    (model, honest), (_, found) = sent(task, experiments.NONE, set()), sent(task, experiments.MODEL_FLIP, {4})
    assert model - found[4] == pytest.approx(-5 * (model - honest[4]), abs=1e-12)


def test_a_gaussian_attack_claims_a_model_of_noise_that_is_new_in_each_round(task: Task) -> None:
    model, found = sent(task, experiments.GAUSSIAN, {4, 5})
    noise = model - found
    assert noise[4] == pytest.approx(stream(task.seed, ATTACK, 3, 4).normal(0.0, 5.0, len(model)), abs=1e-9)
    assert 4.7 < noise[5].std() < 5.3
    assert np.abs(noise[4] - noise[5]).max() > 1
    later = model - sent(task, experiments.GAUSSIAN, {4, 5}, number=4)[1]
    assert np.abs(noise[4] - later[4]).max() > 1


def test_a_label_flip_trains_on_opposite_labels_and_sends_thirty_times_the_update(task: Task) -> None:
    _, found = sent(task, experiments.LABEL_FLIP, {4})
    labels = task.dataset.train.y.copy()
    labels[task.parts[4]] = 9 - labels[task.parts[4]]
    samples = replace(task.dataset.train, y=labels)
    _, alone = sent(replace(task, trainer=replace(task.trainer, samples=samples)), experiments.NONE, set())
    assert found[4] == pytest.approx(30 * alone[4], abs=1e-12)
    assert task.trainer.samples is task.dataset.train


# --------------------------------------------------------------------------------------------------- who attacks, when


def test_byzantine_users_are_in_groups_of_their_own_and_more_hold_all_of_fewer() -> None:
    chosen = [experiments.byzantine_users(3, 15, 5, count) for count in range(6)]
    assert [len(one) for one in chosen] == list(range(6))
    assert chosen[5] == {0, 3, 6, 9, 12}
    assert all(fewer < more for fewer, more in pairwise(chosen))
    assert len({experiments.byzantine_users(seed, 15, 5, 1) for seed in range(30)}) == 5
    with pytest.raises(ParameterError, match="byzantine = 6"):
        experiments.byzantine_users(3, 15, 5, 6)


@BOTH
@pytest.mark.parametrize("preset", ["tiny", "default", "paper"])
def test_the_statements_are_about_as_many_byzantine_users_as_the_bound_allows(
    experiment: Experiment, preset: str
) -> None:
    settings = experiment.presets[preset]
    assert settings["byzantine"] == -(-settings["groups"] // 4) - 1
    assert all(count > settings["byzantine"] for count in settings["beyond"])
    assert settings["users"] >= 3 * settings["groups"]


def test_the_numbers_of_the_paper_are_those_of_its_preset() -> None:
    paper, other = SIX.presets["paper"], THIRTEEN.presets["paper"]
    for one in (paper, other):
        assert (one["users"], one["groups"], one["byzantine"]) == (300, 75, 18)
    assert (paper["rate"], paper["epochs"], paper["batch"], paper["model"]) == (0.06, 1, 40, "mlp")
    assert (other["rate"], other["epochs"], other["alphas"], other["model"]) == (
        0.02,
        4,
        (0.7, 1.0, 10.0),
        "heterosag-cnn",
    )
    assert other["batch"] == round(0.2 * 50_000 / 300)


@pytest.mark.requirement("EXP-08")
def test_mean_and_median_have_the_same_byzantine_users_and_updates() -> None:
    whole = [
        experiments.attacked(runs.task(cell(attack="gaussian", method=how), Context()), "gaussian", frozenset({2}))
        for how in ("mean", "median")
    ]
    updates = [one.updates(range(15), np.tile(one.first(), (15, 1)), 0, Work()) for one in whole]
    assert np.array_equal(updates[0], updates[1])


# ----------------------------------------------------------------------------------------------------------- the cells


@BOTH
def test_each_scheme_has_a_cell_for_each_seed_and_alpha(experiment: Experiment) -> None:
    settings = experiment.presets["tiny"]
    cells = experiment.cells(settings)
    schemes = [json.dumps(one, sort_keys=True) for one in cells]
    attacks = len(settings["attacks"])
    wanted = 2 + 2 * (attacks + len(settings["shown"])) + attacks * len(settings["beyond"])
    assert len(cells) == len(set(schemes)) == wanted * len(settings["alphas"]) * settings["seeds"]


@pytest.mark.parametrize(
    ("experiment", "changed", "name"),
    [
        (SIX, {"attack": "label-flip", "byzantine": 1, "method": "median"}, "heterosag"),
        (SIX, {"attack": "gaussian", "byzantine": 5, "method": "median"}, "heterosag"),
        (SIX, {"attack": "model-sign-flip", "byzantine": 1, "method": "mean"}, "secagg"),
        (THIRTEEN, {"attack": "none", "byzantine": 0, "method": "mean"}, "secagg"),
    ],
)
def test_a_cell_runs_to_its_end(experiment: Experiment, changed: Mapping[str, Any], name: str) -> None:
    shares: list[float] = []
    found = experiment.run(cell(experiment, **changed), Context(tell=shares.append))
    assert json.loads(json.dumps(found)) == found
    assert (found["rounds"], found["diverged"], shares[-1]) == ([0, 1, 2], None, 1.0)
    assert (found["aggregator"]["name"], found["aggregator"]["shortcut"]) == (name, 2)


# ------------------------------------------------------------------------------------------------ what the paper says


def fabricated(experiment: Experiment, accuracies: Mapping[tuple[str, str], float]) -> list[Result]:
    """Return results whose accuracy is that of attack and method, half a percent more for each seed."""
    results = []
    for one in experiment.cells(experiment.presets["tiny"]):
        value = accuracies.get((one["attack"], one["method"]), 0.0) + 0.005 * one["seed"]
        value -= one["byzantine"] > 1
        found = {"rounds": [0, 1, 2], "accuracy": [0.1, 0.1, value], "loss": [2.0, 1.0, 1.0], "diverged": None}
        results.append(Result(one, {**found, "aggregator": {"moved": 0}}))
    return results


GOOD = {("none", "median"): 0.9, ("none", "mean"): 0.9, **{(attack, "median"): 0.885 for attack in experiments.ATTACKS}}


@BOTH
def test_a_median_that_withstands_and_a_mean_that_does_not_confirm_the_paper(experiment: Experiment) -> None:
    settings = experiment.presets["tiny"]
    judged = experiment.judge(settings, fabricated(experiment, GOOD)[::-1])
    assert len(judged) == 2 * len(settings["attacks"]) * len(settings["alphas"])
    assert {one.verdict for one in judged} == {CONFIRMED}
    assert experiment.claims == ("HET-EXP2", "HET-EXP2F")
    for one in judged:
        wanted = -0.015 if one.statement.claim == "HET-EXP2" else 0.885
        assert one.numbers == pytest.approx((wanted,) * 3)


def test_a_median_that_loses_and_a_mean_that_does_not_refute_the_paper() -> None:
    results = fabricated(SIX, {**GOOD, ("sign-flip", "median"): 0.87, ("sign-flip", "mean"): 0.6})
    verdicts = {one.statement.name: one.verdict for one in SIX.judge(TINY, results)}
    assert [name for name, verdict in verdicts.items() if verdict != CONFIRMED] == [
        "median, sign-flip",
        "mean, sign-flip",
    ]
    assert set(verdicts.values()) == {CONFIRMED, REFUTED}
    alone = [one for one in results if one.cell["seed"] == 0]
    assert {one.verdict for one in SIX.judge(TINY, alone)} == {UNCONFIRMED}


@BOTH
def test_bounds_are_those_that_were_fixed(experiment: Experiment) -> None:
    bounds = {"HET-EXP2": -0.02, "HET-EXP2F": 0.3}
    for one in experiment.statements(experiment.presets["paper"]):
        assert (one.relation, one.bound) == (">=", bounds[one.claim])


# ------------------------------------------------------------------------------------------------------- what is shown


@BOTH
def test_each_attack_has_a_panel_and_each_evaluated_round_a_row(experiment: Experiment) -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    settings, results = experiment.presets["tiny"], fabricated(experiment, GOOD)
    rows = list(experiment.rows(settings, results))
    assert len(rows) == 3 * len(results)
    assert set(rows[0]) == {"seed", "alpha", "attack", "byzantine", "method", "moved", "round", "accuracy", "loss"}
    figures = experiment.draw(plt, settings, results)
    panels = [axes for axes in figures["accuracy"].axes if axes.get_visible()]
    assert len(panels) == (len(settings["attacks"]) + len(settings["shown"])) * len(settings["alphas"])
    assert all(len(axes.lines) == 4 for axes in panels)
    assert ("beyond-the-bound" in figures) == bool(settings["beyond"])
    for figure in figures.values():
        plt.close(figure)
