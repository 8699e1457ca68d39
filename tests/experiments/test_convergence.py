"""Runs beside the bounds of theorems: the bounds are those of the proofs, and what is measured is what happened."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is in the extra `train`")
pytest.importorskip("sklearn", reason="scikit-learn is in the extra `train`")


from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.experiments import (
    basecagg_theorem1,
    convergence,
    heterosag_theorem2,
    multi_round_theorem2,
    runs,
)
from secagg_spec.experiments.aggregators_cells import HeteroSAg
from secagg_spec.experiments.convergence import Largest, Local, Users, Watch
from secagg_spec.experiments.experiment import Context, Data, Result
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED
from secagg_spec.learning.problems import Points, build
from secagg_spec.learning.streams import BATCHES, stream
from secagg_spec.ledger import proofs
from secagg_spec.selection.batches import Parameters

pytestmark = pytest.mark.slow

THEOREMS = (basecagg_theorem1.THEOREM, heterosag_theorem2.THEOREM, multi_round_theorem2.THEOREM)


def proof(name: str) -> dict[str, Any]:
    """What a proof defines, by name."""
    return proofs.load_proof(name).prove.__globals__


def largest(noise: list[float], **others: float) -> Largest:
    """What was seen."""
    return Largest(1, np.array(noise), **others)


def few_users(count: int = 3, problem: str = "regression") -> Users:
    """Users with two points each, whose labels differ."""
    rng = np.random.default_rng(5)
    parts = tuple(Points(rng.standard_normal((2, 3)), np.array([at, 0]), np.full(2, 0.5)) for at in (0, 1, 2))
    return Users(build(problem, 3, 3, 0.1), parts, count, 7)


# ------------------------------------------------------------------------------------------------------ the right sides


def test_the_bounds_of_basecagg_are_those_of_the_proof() -> None:
    names = proof("convergence_bound")
    names["widest"], names["apart"] = names["variance_bound"], names["steepest"]
    pair, one = names["PAIR"], ((Fraction(1), Fraction(0)),)
    for who, K, E, tau_max, c_l, s in product(
        (pair, one), (1, 3), (1, 2), (0, 2), (1, 4), (Fraction(0), Fraction(1, 2))
    ):
        run = names["Run"](who, K, E, Fraction(1, 4), Fraction(1), c_l, tau_max, s)
        differ = max(b**2 for _, b in who)
        steep = float(names["steepest"](run, 2))
        seen = largest([float(s**2)] * len(who), steep=steep, apart=float(differ), off=float(differ))
        step = basecagg_theorem1.Step(1.0, 0.25, K, E, tau_max, 1 / (4 * c_l**2), float(run.gap))
        assert step.printed(seen, np.array([2]))[0] == pytest.approx(float(names["printed"](run, 2)))
        assert step.repaired(seen, np.array([2]))[0] == pytest.approx(float(names["repaired"](run, 2)))


def test_the_bounds_of_heterosag_are_those_of_the_proof() -> None:
    names = proof("quantised_descent")
    run = names["Run"]((3, 5), s=Fraction(1, 2), start=Fraction(1, 4), eta=Fraction(1, 2))
    sigma, start = names["sigma_squared"](run), float(run.start)
    step = heterosag_theorem2.Step(0.5, float(sigma), np.zeros(2), 2 * start**2, 0.0, start**2)
    seen = largest([2 * float(run.s) ** 2] * 2)
    assert step.variance(seen) == pytest.approx(float(sigma + run.s**2))
    for at in (1, 2, 5):
        here = np.array([at])
        assert step.printed(seen, here)[0] == pytest.approx(float(names["right"](run, at, sigma)))
        assert step.repaired(seen, here)[0] == pytest.approx(float(names["right"](run, at, sigma + run.s**2)))
        assert step.gradients(seen, here)[0] == pytest.approx(2 * start**2 / (0.5 * at) + step.variance(seen))


@pytest.mark.parametrize("E", [1, 3])
def test_the_bounds_of_multi_round_are_those_of_the_proof(E: int) -> None:
    names, c, N, K, T, G = proof("effective_rounds"), Fraction(2, 5), 24, 12, 4, 7
    seen = largest([1.0, 3.0], moment=float(G))
    step = multi_round_theorem2.Step(Parameters(N, K, T), float(c), E, 2.0, 0.5, 5.0, -1.5, 0.25)
    gamma = 32
    for at, (Gamma, method, among, some) in product(
        (1, 7), ((-1.5, step.printed, N, K), (0.25, step.read, N, K), (0.25, step.repaired, N // T, K // T))
    ):
        alpha = 2 + 6 * 2 * Gamma + 8 * (E - 1) ** 2 * G
        beta = Fraction(4 * (among - some) * E**2 * G, some * (among - 1))
        A = names["scale"](2, 0.5, float(alpha + beta), gamma, 5.0)
        printed = float(A) / float(gamma + c * E * at - 1)
        assert names["bound"](A, gamma, float(c), E, at) == pytest.approx(printed)
        proved = float(A) / float(gamma + c * E * (at + 1) - E)
        expected = proved if method == step.repaired else printed
        assert method(seen, np.array([at]))[0] == pytest.approx(expected)


def test_the_rate_falls_from_two_over_mu_gamma() -> None:
    step = multi_round_theorem2.Step(Parameters(4, 2, 1), 1.0, 2, 3.0, 0.5)
    assert step.gamma == 48
    assert [step.rate(t) for t in (0, 2)] == [2 / 24, 2 / 25]


# ---------------------------------------------------------------------------------------------------- what is measured


def test_users_hold_the_parts_of_the_partition_and_each_counts_the_same() -> None:
    cell = {"seed": 1, "data": "digits", "users": 5, "partition": "by-class", "problem": "regression", "decay": 0.01}
    users = convergence.users(cell, Context())
    assert [len(part.y) for part in users.parts] == [288, 288, 287, 287, 287]
    assert sum(users.whole.weights[:288]) == pytest.approx(1 / 5)
    all_of_them = convergence.users({**cell, "partition": convergence.ALL}, Context())
    assert len(all_of_them.parts) == 1
    assert len(all_of_them.whole.y) == 1437
    seen = all_of_them.seen(all_of_them.first())
    assert seen.gradients.shape == (5, 650)
    assert seen.noise.shape == (5,)
    assert np.square(seen.gradients - seen.mean).max() < 1e-30


def test_the_largest_numbers_are_kept() -> None:
    users = few_users()
    seen, held = users.seen(np.full(9, 0.3)), Largest.of(users, 4)
    held.at_all(seen)
    squares = np.square(seen.gradients).sum(axis=1)
    off = np.square(seen.gradients - seen.gradients.mean(axis=0)).sum(axis=1)
    assert np.allclose(held.noise, seen.noise / 4)
    assert (held.steep, held.apart, held.off) == pytest.approx((squares.max(), off.mean(), off.max()))
    assert held.moment == pytest.approx((squares + seen.noise / 4).max())
    before = held.constants()
    held.at_all(convergence.Seen(seen.gradients * 0.5, seen.noise * 0.5))
    assert held.constants() == before
    held.at_one(1, np.full(9, 2.0), 400.0)
    assert (held.steep, held.moment, held.noise[1]) == (36.0, 136.0, 100.0)


def test_local_training_takes_its_steps_and_looks_at_the_models_between() -> None:
    users, rates = few_users(), [0.5, 0.25]
    held, start = Largest.of(users, 3), np.full(9, 0.2)
    found = Local(users, held, 2, rates.__getitem__).updates([2, 2], np.tile(start, (2, 1)), 11)
    for place in (0, 1):
        rng, model = stream(7, BATCHES, 11, place), start
        for rate in rates:
            batch = users.part(2).taken(rng.integers(2, size=3))
            between, model = model, model - rate * users.problem.gradient(model, batch)
        assert np.array_equal(found[place], start - model)
        _, (noise,) = users.problem.moments(between, users.part(2))
        assert held.noise[2] >= noise / 3
    assert not np.array_equal(*found), "who comes twice draws twice"
    assert held.noise[:2].tolist() == [0, 0]


def test_a_network_that_becomes_too_curved_is_refused() -> None:
    users = few_users(problem="network")
    watch = Watch(users, Largest.of(users, 1), 2)
    model = users.first()
    for t in range(3):
        assert watch.look(model, t) == pytest.approx(float(np.square(users.problem.gradient(model, users.whole)).sum()))
    assert len(watch.curvatures) == 2
    report = watch.constants(convergence.ROOM * watch.curvatures[0])
    assert report["curvature"] == max(watch.curvatures) < report["L"] == pytest.approx(users.smoothness(model))
    with pytest.raises(OutOfRange, match="curvature on the way"):
        watch.constants(0.5 * watch.curvatures[0])


# ----------------------------------------------------------------------------------------------------------------- runs


def of_tiny(theorem: convergence.Theorem) -> list[Result]:
    """What the cells of the first seed of the preset tiny give, as JSON holds it."""
    cells = [cell for cell in theorem.cells(theorem.presets["tiny"]) if cell["seed"] == 0]
    return [Result(cell, json.loads(json.dumps(theorem.run(cell, Context())))) for cell in cells]


@pytest.fixture(scope="module")
def results() -> dict[str, list[Result]]:
    return {theorem.name: of_tiny(theorem) for theorem in THEOREMS}


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_a_run_has_both_sides_of_each_bound_for_each_round(
    theorem: convergence.Theorem, results: dict[str, list[Result]]
) -> None:
    found = results[theorem.name]
    assert [one.cell["variant"] for one in found] == [variant.name for variant in theorem.variants]
    for one, variant in zip(found, theorem.variants, strict=True):
        assert set(one.found["bounds"]) == {bound.name for bound in variant.bounds}
        for values in (one.found["left"], *one.found["bounds"].values()):
            assert len(values) == one.cell["rounds"]
        assert min(one.found["left"]) > 0
        assert one.found["constants"]["L"] >= one.found["constants"]["curvature"]
        for bound in variant.bounds:
            if bound.claim == "UNI-CONVRUNS":
                assert convergence.least(one.found, bound.name) >= 1


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_picture_and_rows(theorem: convergence.Theorem, results: dict[str, list[Result]]) -> None:
    mpl = pytest.importorskip("matplotlib", reason="matplotlib is in the extra `plot`")
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = results[theorem.name]
    (figure,) = theorem.draw(plt, theorem.presets["tiny"], found).values()
    figure.canvas.draw()
    assert [len(axes.get_lines()) for axes in figure.axes] == [1 + len(one.bounds) for one in theorem.variants]
    plt.close("all")
    rows = list(theorem.rows(theorem.presets["tiny"], found))
    assert len(rows) == sum(one.cell["rounds"] for one in found)
    assert len({tuple(row) for row in rows}) == 1, "all rows have the same columns"
    assert rows[1]["left"] == found[0].found["left"][1]
    assert rows[1]["rounds"] == 2


def test_a_run_of_heterosag_is_gradient_descent_with_the_mean_of_the_quantised_gradients() -> None:
    theorem = heterosag_theorem2.THEOREM
    cell = {**theorem.cells(theorem.presets["tiny"])[2], "repeats": 2, "rounds": 1}
    found, users = theorem.run(cell, Context()), convergence.users(cell, Context())
    best = users.problem.minimum(users.whole)  # type: ignore[union-attr]
    expected = []
    for number in (0, 1):
        local = Local(users, Largest.of(users, 1), 1, lambda at: 1.0)
        gradients = local.updates(range(15), np.tile(best, (15, 1)), number)
        aggregator = HeteroSAg({**cell["aggregator"], "every": 0}, 15, 650, cell["seed"])
        mean = aggregator.aggregate(gradients, [1] * 15, users=range(15), round=number).mean
        model = best - mean / found["constants"]["L"]
        expected.append(users.problem.loss(model, users.whole) - users.problem.loss(best, users.whole))
    assert found["left"] == [pytest.approx(np.mean(expected))]
    assert found["bounds"]["printed bound"][0] == pytest.approx(
        found["constants"]["sigma^2"] / found["constants"]["L"]
    ), "the distance is 0"
    assert found["left"][0] > found["bounds"]["printed bound"][0]


def test_a_run_of_basecagg_follows_delays_within_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, list[int]]] = []
    real = runs.Work.aggregate

    def aggregate(self: runs.Work, *arguments: Any, **of_round: Any) -> Any:
        asked.append((of_round["round"], list(of_round["taus"])))
        return real(self, *arguments, **of_round)

    monkeypatch.setattr(runs.Work, "aggregate", aggregate)
    theorem = basecagg_theorem1.THEOREM
    found = theorem.run(theorem.cells(theorem.presets["tiny"])[1], Context())
    assert [number for number, _ in asked] == list(range(24))
    assert all(tau <= min(4, number if number < 12 else number - 12) for number, taus in asked for tau in taus)
    assert max(tau for _, taus in asked for tau in taus) == 4
    assert found["aggregator"]["protocol"] == 1
    assert found["aggregator"]["moved"] == 0


def test_rounds_that_do_not_take_place_keep_the_model_and_count_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sets: list[list[int]] = [[0, 1, 2, 3], [], [], [4, 5, 6, 7]]
    monkeypatch.setattr(multi_round_theorem2, "chosen", lambda cell: sets)
    theorem, report = multi_round_theorem2.THEOREM, {}
    for cell in theorem.cells(theorem.presets["tiny"])[:3:2]:
        left = theorem.run({**cell, "rounds": 4, "repeats": 1}, Context())["left"]
        assert left[0] == left[1] == left[2] != left[3]
        report[cell["counts"]] = left
    held, every = report[multi_round_theorem2.HELD], report[multi_round_theorem2.EVERY]
    assert held[0] == every[0]
    assert held[3] != every[3], "the rate of the second update depends on the count"


def test_the_users_of_a_round_are_whole_batches() -> None:
    theorem = multi_round_theorem2.THEOREM
    cell = theorem.cells(theorem.presets["tiny"])[0]
    sets = multi_round_theorem2.chosen(cell)
    assert len(sets) == cell["rounds"] * cell["repeats"]
    assert {len(one) for one in sets} == {0, 4}
    assert all(user + 1 in one for one in sets for user in one[::2])


# ----------------------------------------------------------------------------------------------------------- statements


def judged(theorem: convergence.Theorem, ratio: float) -> dict[str, str]:
    """The verdicts where each bound is so many times what it bounds, but for one round."""
    found: Data = {
        "left": [1.0, 2.0, 4.0],
        "bounds": {bound.name: [9.0, 2.0 * ratio, 36.0] for variant in theorem.variants for bound in variant.bounds},
    }
    results = [Result(cell, found) for cell in theorem.cells(theorem.presets["default"])]
    return {one.statement.name: one.verdict for one in theorem.experiment.judge(theorem.presets["default"], results)}


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
@pytest.mark.parametrize(("ratio", "verdict"), [(1.01, CONFIRMED), (0.99, REFUTED), (-5.0, REFUTED)])
def test_a_bound_has_to_hold_in_each_round(theorem: convergence.Theorem, ratio: float, verdict: str) -> None:
    verdicts = judged(theorem, ratio)
    assert set(verdicts.values()) == {verdict}
    assert set(verdicts) == {
        f"{variant.name}: {bound.name}" for variant in theorem.variants for bound in variant.bounds
    }


def test_a_left_side_that_is_not_above_zero_is_refused() -> None:
    with pytest.raises(OutOfRange, match="left side"):
        convergence.least({"left": [1.0, 0.0], "bounds": {"a": [1.0, 1.0]}}, "a")


def test_a_setting_that_is_not_there_is_refused() -> None:
    with pytest.raises(ParameterError, match="setting = 'round'"):
        convergence.preset({"rounds": 3, "seeds": 1}, round=2)


def test_the_claims_of_printed_and_of_repaired_bounds_are_apart() -> None:
    assert [theorem.experiment.claims for theorem in THEOREMS] == [
        ("BAS-THM1R", "UNI-CONVRUNS"),
        ("HET-THM2R", "UNI-CONVRUNS"),
        ("MRS-GAMMA", "UNI-CONVRUNS", "MRS-THM2R"),
    ]
