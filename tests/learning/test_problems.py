"""Losses whose gradients, noise and smoothness are known, against differences, single points and dense Hessians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import problems
from secagg_spec.learning.datasets import Samples
from secagg_spec.learning.problems import Points, Problem, Regression

INPUTS, CLASSES = 4, 3
SEEDS = st.integers(0, 2**32 - 1)
NAMES = st.sampled_from(problems.PROBLEMS)


def points(rng: np.random.Generator, count: int, classes: int = CLASSES) -> Points:
    """Points of which the last input is 1, with equal weights."""
    x = np.column_stack([rng.standard_normal((count, INPUTS - 1)), np.ones(count)])
    return Points(x, rng.integers(0, classes, count), np.full(count, 1 / count))


def drawn(name: str, seed: int, decay: float = 0.1) -> tuple[Problem, Any, Points]:
    """A problem, a model and points."""
    rng, problem = np.random.default_rng(seed), problems.build(name, INPUTS, CLASSES, decay)
    return problem, rng.standard_normal(problem.d), points(rng, 7)


def hessian(problem: Problem, model: Any, of: Points) -> Any:
    """The Hessian, by differences of gradients."""
    sides = [[problem.gradient(model + sign * 1e-5 * row, of) for row in np.eye(problem.d)] for sign in (1, -1)]
    return (np.array(sides[0]) - np.array(sides[1])) / 2e-5


@settings(max_examples=20)
@given(NAMES, SEEDS)
def test_the_gradient_is_that_of_the_loss(name: str, seed: int) -> None:
    problem, model, of = drawn(name, seed)
    ahead, behind = ([problem.loss(model + sign * 1e-5 * row, of) for row in np.eye(problem.d)] for sign in (1, -1))
    assert np.allclose((np.array(ahead) - np.array(behind)) / 2e-5, problem.gradient(model, of), atol=1e-7)


@settings(max_examples=20)
@given(NAMES, SEEDS)
def test_moments_are_those_of_the_gradients_of_single_points(name: str, seed: int) -> None:
    problem, model, of = drawn(name, seed)
    (mean,), (noise,) = problem.moments(model, of)
    alone = np.array([problem.gradient(model, of.taken(np.array([at]))) for at in range(len(of.y))])
    assert np.allclose(mean, alone.mean(axis=0))
    assert np.allclose(mean, problem.gradient(model, of))
    assert noise == pytest.approx(np.square(alone - mean).sum(axis=1).mean())


@given(NAMES, SEEDS, st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_the_moments_of_joined_parts_are_those_of_each(name: str, seed: int, sizes: list[int]) -> None:
    problem, model, _ = drawn(name, seed)
    parts = [points(np.random.default_rng([seed, at]), size) for at, size in enumerate(sizes)]
    whole = Points.joined(parts)
    means, noises = problem.moments(model, whole, sizes)
    for part, mean, noise in zip(parts, means, noises, strict=True):
        (alone,), (its,) = problem.moments(model, part)
        assert np.allclose(mean, alone)
        assert noise == pytest.approx(its, abs=1e-12)
    assert problem.loss(model, whole) == pytest.approx(np.mean([problem.loss(model, part) for part in parts]))
    assert np.allclose(problem.gradient(model, whole), means.mean(axis=0))


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        ([0, 5], ParameterError, r"^sizes = 0: must be an integer in \[1, "),
        ([5, 0], ParameterError, "^sizes = 0"),
        ([4], LengthMismatch, r"^sum\(sizes\) = 4: must be 5, the number of points$"),
        ([5, 1], LengthMismatch, r"^sum\(sizes\) = 6"),
        ([], LengthMismatch, r"^sum\(sizes\) = 0"),
        (5, ParameterError, "^sizes = 'int': must be a list or another sequence of integers"),
    ],
)
def test_losses_divide_all_points(sizes: Any, error: type[ParameterError], said: str) -> None:
    problem = problems.build("regression", INPUTS, CLASSES, 0.0)
    with pytest.raises(error, match=said):
        problem.moments(np.zeros(problem.d), points(np.random.default_rng(0), 5), sizes)


@settings(max_examples=20)
@given(SEEDS)
def test_no_eigenvalue_of_a_hessian_is_above_the_smoothness_or_below_the_decay(seed: int) -> None:
    problem, model, of = drawn("regression", seed)
    assert isinstance(problem, Regression)
    eigenvalues = np.linalg.eigvalsh(hessian(problem, model, of))
    assert eigenvalues[-1] <= problem.smoothness(of) + 1e-6
    assert eigenvalues[0] == pytest.approx(0.1, abs=1e-6), "the same added to all logits changes nothing"


def test_the_smoothness_is_attained_with_two_classes_at_zero() -> None:
    problem, of = Regression(INPUTS, 2, 0.0), points(np.random.default_rng(3), 9, 2)
    largest = np.linalg.eigvalsh(hessian(problem, np.zeros(problem.d), of))[-1]
    assert largest == pytest.approx(problem.smoothness(of), rel=1e-6)


@pytest.mark.slow
@settings(max_examples=20)
@given(NAMES, SEEDS)
def test_the_curvature_is_the_largest_eigenvalue_or_less(name: str, seed: int) -> None:
    problem, model, of = drawn(name, seed)
    largest = float(np.abs(np.linalg.eigvalsh(hessian(problem, model, of))).max())
    estimate = problems.curvature(problem, model, of, np.random.default_rng(seed))
    assert 0.8 * largest <= estimate <= largest * (1 + 1e-5)


@pytest.mark.slow
@settings(max_examples=20)
@given(SEEDS)
def test_nothing_is_below_the_minimum(seed: int) -> None:
    pytest.importorskip("scipy", reason="scipy is in the extra `train`")
    problem, model, of = drawn("regression", seed)
    assert isinstance(problem, Regression)
    best = problem.minimum(of)
    assert float(np.linalg.norm(problem.gradient(best, of))) <= 1e-6
    far = float(np.square(model - best).sum())
    assert problem.loss(model, of) >= problem.loss(best, of) + 0.1 / 2 * far * (1 - 1e-3), "strong convexity"


def test_a_minimum_that_is_not_there_is_refused() -> None:
    pytest.importorskip("scipy", reason="scipy is in the extra `train`")

    class Steep(Regression):
        def gradient(self, model: Any, points: Points) -> Any:
            return np.ones(self.d)

    with pytest.raises(OutOfRange, match="length of the gradient at the minimum"):
        Steep(INPUTS, CLASSES, 0.1).minimum(points(np.random.default_rng(1), 5))


def test_the_first_models() -> None:
    rng = np.random.default_rng(1)
    assert not problems.build("regression", INPUTS, CLASSES, 0.0).initial(rng).any()
    network = problems.build("network", INPUTS, CLASSES, 0.0)
    first = network.initial(rng)
    assert first.shape == (network.d,) == (16 * 4 + 3 * 17,)
    assert 0.4 < np.abs(first[:64]).max() <= 0.5
    assert np.abs(first[64:]).max() <= 1 / np.sqrt(17)


def test_points_and_models_that_do_not_fit_are_refused() -> None:
    x, y = np.column_stack([np.eye(3), np.ones(3)]), np.array([0, 1, 2])
    points, weights = Points(x, y, np.full(3, 1 / 3)), np.full(3, 1 / 3)
    wrong: Any
    for wrong in (
        (x.tolist(), y, weights),
        (x[:0], y[:0], weights[:0]),
        (x, y[:2], weights),
        (x, y - 1, weights),
        (x, y.astype(float), weights),
        (x, y, weights * np.nan),
        (x, y, weights[:1]),
        (x, y, weights * 10),
        (x, y, np.full(3, 1.7e308)),
        (x * 1e71, y, weights),
        (x, y, np.array([-1.0, 1.0, 1.0])),
        (x[0], y, weights),
    ):
        with pytest.raises(ParameterError, match=r"^(len\(x\)|x|y|weights|sum\(weights\))(\[\d\])?(\.shape)? = "):
            Points(*wrong)
    for wrong in ([0], np.array([3]), np.array([-1]), np.array([], np.int64), np.array([True]), np.array([0.0])):
        with pytest.raises(ParameterError, match=r"^(len\()?chosen"):
            points.taken(wrong)
    for wrong in ((), None):
        with pytest.raises(ParameterError, match=r"^(len\()?parts"):
            Points.joined(wrong)
    for name in problems.PROBLEMS:
        problem = problems.build(name, 4, 3, 0.1)
        few, narrow = problems.build(name, 4, 2, 0.1), problems.build(name, 3, 3, 0.1)
        for call in (problem.loss, problem.gradient, problem.moments):
            for wrong in (np.zeros(problem.d + 1), np.zeros((1, problem.d)), [0.0] * problem.d, None):
                with pytest.raises(ParameterError, match=r"^model(\.shape)? = "):
                    call(wrong, points)
            for number, said in ((np.nan, "finite"), (np.inf, "finite"), (-1e71, r"at most 1e\+70 in magnitude")):
                with pytest.raises(OutOfRange, match=rf"^model(\[0\])? = .*: must be {said}$"):
                    call(np.full(problem.d, number), points)
        for call in (few.loss, few.gradient, few.moments):
            with pytest.raises(OutOfRange, match=r"^points\.y = 2: must be below 2$"):
                call(np.zeros(few.d), points)
        for call in (narrow.loss, narrow.gradient, narrow.moments):
            with pytest.raises(ParameterError, match=r"^points\.x\.shape = \(3, 4\): must be \(any, 3\)$"):
                call(np.zeros(narrow.d), points)


def test_a_seed_is_no_generator() -> None:
    seed: Any = 5
    points = Points(np.ones((1, 4)), np.array([0]), np.ones(1))
    network = problems.build("network", 4, 3, 0.1)
    for call in (network.initial, lambda rng: problems.curvature(network, np.zeros(network.d), points, rng)):
        with pytest.raises(ParameterError, match=r"^rng = 'int': must be of the class Generator$"):
            call(seed)
    with pytest.raises(ParameterError, match=r"^model\.shape = \(3,\)"):
        problems.curvature(network, np.zeros(3), points, np.random.default_rng(5))


def test_samples_as_points() -> None:
    samples = Samples((np.arange(12) / 12).astype(np.float32).reshape(3, 1, 2, 2), np.array([2, 0, 1]))
    of = Points.of(samples, np.array([2, 0]))
    assert np.allclose(of.x, [[8 / 12, 9 / 12, 10 / 12, 11 / 12, 1], [0, 1 / 12, 2 / 12, 3 / 12, 1]])
    assert of.y.tolist() == [1, 2]
    assert of.weights.tolist() == [0.5, 0.5]
    assert of.taken(np.array([1, 1, 0, 1])).weights.tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("regresion", 2, 2, 0.0), "regression is close"),
        (("network", 0, 2, 0.0), "inputs"),
        (("network", 2, 1, 0.0), "classes"),
        (("network", 2, 2, -0.1), "decay"),
        (("network", 2, 2, float("inf")), "decay"),
        (("network", 2, 2, 10**400), "decay"),
        (("network", 2, 2, True), "decay"),
        (("network", 2, 2, 1e71), r"^decay = 1e\+71: must be a number in \[0, 1e\+70\]$"),
        (("network", 2**40, 2, 0.0), r"^inputs, classes = \[1099511627776, 2\]: "),
        (
            ("regression", 2**27, 3, 0.0),
            r"^inputs, classes = \[134217728, 3\]: must be such that .* are at most 268435456, and not 402653184$",
        ),
    ],
)
def test_what_is_no_problem_is_refused(arguments: tuple[Any, ...], fault: str) -> None:
    with pytest.raises(ParameterError, match=fault):
        problems.build(*arguments)


def test_the_curvature_of_what_is_flat_is_0() -> None:
    points = Points(np.zeros((2, INPUTS)), np.array([0, 1]), np.full(2, 0.5))
    flat = Regression(INPUTS, CLASSES, 0.0)
    assert problems.curvature(flat, np.zeros(flat.d), points, np.random.default_rng(0)) == 0


def test_points_of_several_lengths_are_not_joined() -> None:
    parts = [Points(np.ones((2, inputs)), np.array([0, 1]), np.full(2, 0.5)) for inputs in (4, 3)]
    with pytest.raises(LengthMismatch, match=r"^parts\[1\]\.x\.shape"):
        Points.joined(parts)


def test_the_smoothness_is_that_of_points_that_fit() -> None:
    with pytest.raises(ParameterError, match=r"^points\.x\.shape = "):
        Regression(INPUTS, CLASSES, 0.0).smoothness(Points(np.ones((1, 1)), np.array([0]), np.ones(1)))


@pytest.mark.parametrize("name", problems.PROBLEMS)
@pytest.mark.parametrize("decay", [0.0, 1e70])
@pytest.mark.parametrize("number", [0.0, 5e-324, 1e70])
@pytest.mark.parametrize("size", [0.0, 5e-324, 1e70])
@pytest.mark.filterwarnings("error")
def test_nothing_overflows_at_the_ends_of_the_ranges(name: str, decay: float, number: float, size: float) -> None:
    problem, rng = problems.build(name, 4, 3, decay), np.random.default_rng(5)
    points = Points(size * rng.choice([-1.0, 1.0], (3, 4)), np.array([0, 1, 2]), np.full(3, 1 / 3))
    model = number * rng.choice([-1.0, 1.0], problem.d)
    found: list[Any] = [problem.loss(model, points), problem.gradient(model, points), *problem.moments(model, points)]
    found += [problems.curvature(problem, model, points, rng)]
    found += [problem.smoothness(points)] if isinstance(problem, Regression) else []
    assert all(np.isfinite(one).all() for one in found)
