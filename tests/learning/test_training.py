"""Properties of local training: its steps against numpy, and engines against one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import models
from secagg_spec.learning.datasets import Samples
from secagg_spec.learning.training import ENGINES, IntArray, LocalSGD, Trainer, batches
from tests.learning import stand_in

pytestmark = pytest.mark.slow

DATA = stand_in.dataset(80)
SETTINGS = st.builds(
    LocalSGD,
    epochs=st.integers(1, 3),
    batch=st.integers(1, 9),
    rate=st.floats(0.01, 0.2),
    momentum=st.sampled_from([0.0, 0.5]),
    decay=st.sampled_from([0.0, 0.01]),
)
SIZES = st.lists(st.integers(1, 13), min_size=1, max_size=5)


def parts_of(sizes: list[int]) -> list[IntArray]:
    """Consecutive parts of so many samples."""
    ends = np.cumsum(sizes)
    return [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def generators(count: int) -> list[np.random.Generator]:
    """A generator for each user."""
    return [np.random.default_rng([7, user]) for user in range(count)]


def by_hand(start: RealArray, part: IntArray, sgd: LocalSGD, rng: np.random.Generator) -> RealArray:
    """Logistic regression in binary64, with the gradient written down."""
    weights, bias = start[:640].reshape(10, 64).copy(), start[640:].copy()
    fast, fast_bias = np.zeros_like(weights), np.zeros_like(bias)
    for _ in range(sgd.epochs):
        order = part[rng.permutation(len(part))]
        while len(order):
            batch, order = order[: sgd.batch], order[sgd.batch :]
            x, y = DATA.train.x[batch].reshape(len(batch), 64).astype(np.float64), DATA.train.y[batch]
            shares = np.exp(x @ weights.T + bias)
            shares /= shares.sum(axis=1, keepdims=True)
            slope = (shares - np.eye(10)[y]) / len(batch)
            fast = sgd.momentum * fast + slope.T @ x + sgd.decay * weights
            fast_bias = sgd.momentum * fast_bias + slope.sum(axis=0) + sgd.decay * bias
            weights, bias = weights - sgd.rate * fast, bias - sgd.rate * fast_bias
    return np.concatenate([weights.ravel(), bias])


def same(found: RealArray, wanted: RealArray, starts: RealArray) -> bool:
    """Whether models differ by at most 10^-4 of the largest change of a parameter (EXP-07)."""
    return bool(np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted - starts).max())


@pytest.mark.slow
@pytest.mark.requirement("EXP-06")
@given(SETTINGS, SIZES, st.sampled_from(ENGINES))
def test_training_takes_the_steps_of_the_text(sgd: LocalSGD, sizes: list[int], engine: str) -> None:
    model, parts = models.build("logistic", DATA), parts_of(sizes)
    engine = "vmap" if engine == "stacked" and sgd.momentum else engine
    starts = np.stack([model.initial(np.random.default_rng(user)) for user in range(len(parts))])
    found = Trainer(model, DATA.train, sgd, engine).train(starts, parts, generators(len(parts)))
    rows = zip(starts, parts, generators(len(parts)), strict=True)
    wanted = np.stack([by_hand(start, part, sgd, rng) for start, part, rng in rows])
    assert same(found, wanted, starts)


@pytest.mark.slow
@pytest.mark.requirement("EXP-07")
@given(SETTINGS, SIZES, st.sampled_from(["vmap", "grouped", "auto"]))
@settings(max_examples=30)
def test_users_reach_together_what_each_reaches_alone(sgd: LocalSGD, sizes: list[int], engine: str) -> None:
    model, parts = models.build("mlp", DATA), parts_of(sizes)
    starts = np.stack([model.initial(np.random.default_rng(user)) for user in range(len(parts))])
    together = Trainer(model, DATA.train, sgd, engine).train(starts, parts, generators(len(parts)))
    alone = Trainer(model, DATA.train, sgd, "loop").train(starts, parts, generators(len(parts)))
    for found, wanted, start in zip(together, alone, starts, strict=True):
        assert same(found, wanted, start)


@pytest.mark.slow
@pytest.mark.requirement("EXP-07")
@pytest.mark.parametrize("engine", ["vmap", "grouped"])
def test_users_reach_together_what_each_reaches_alone_with_convolutions(engine: str) -> None:
    data = stand_in.dataset(24, side=28)
    model, parts = models.build("lenet5", data), parts_of([3, 12, 7])
    starts = np.stack([model.initial(np.random.default_rng(0))] * 3)
    sgd = LocalSGD(2, 5, 0.05)
    together = Trainer(model, data.train, sgd, engine).train(starts, parts, generators(3))
    alone = Trainer(model, data.train, sgd, "loop").train(starts, parts, generators(3))
    assert same(together, alone, starts)


@pytest.mark.requirement("ERR-02")
def test_a_batch_size_of_numpy_does_not_wrap() -> None:
    sgd = LocalSGD(1, np.uint8(200), 0.1)  # type: ignore[arg-type]
    assert list(map(len, batches(np.arange(300), sgd, np.random.default_rng(0)))) == [200, 100]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_starts_and_samples_may_be_read_only_and_backwards(engine: str) -> None:
    model, sgd, parts = models.build("logistic", DATA), LocalSGD(1, 5, 0.1), parts_of([5, 4])
    starts = np.random.default_rng(1).normal(size=(2, model.d)) / 10
    samples = Samples(DATA.train.x[::-1].copy()[::-1], DATA.train.y[::-1].copy()[::-1])
    wanted = Trainer(model, DATA.train, sgd, engine).train(starts, parts, generators(2))
    for same_starts in (starts[::-1].copy()[::-1], validate.frozen(starts)):
        found = Trainer(model, samples, sgd, engine).train(same_starts, parts, generators(2))
        assert np.array_equal(found, wanted)


def test_more_users_than_are_trained_at_once_keep_their_places() -> None:
    data = stand_in.dataset(90, side=28)
    model, parts = models.build("mlp", data), parts_of([1, 2, 3] * 15)
    starts = np.stack([model.initial(np.random.default_rng(0))] * 45)
    sgd = LocalSGD(1, 2, 0.1)
    together = Trainer(model, data.train, sgd).train(starts, parts, generators(45))
    alone = Trainer(model, data.train, sgd, "loop").train(starts, parts, generators(45))
    for found, wanted in zip(together, alone, strict=True):
        assert same(found, wanted, starts[0])


def test_a_rate_of_the_round_takes_the_place_of_the_other() -> None:
    model, parts = models.build("logistic", DATA), parts_of([5, 5])
    starts = np.zeros((2, model.d))
    slow = Trainer(model, DATA.train, LocalSGD(1, 5, 0.1)).train(starts, parts, generators(2), 0.2)
    fast = Trainer(model, DATA.train, LocalSGD(1, 5, 0.2)).train(starts, parts, generators(2))
    assert (slow == fast).all()


def test_auto_takes_what_was_measured_to_be_faster() -> None:
    dense, sgd = models.build("mlp", DATA), LocalSGD(1, 5, 0.1)
    image = stand_in.dataset(3, side=28)
    assert Trainer(dense, DATA.train, sgd).chosen == "stacked"
    assert Trainer(dense, DATA.train, LocalSGD(1, 5, 0.1, momentum=0.9)).chosen == "vmap"
    assert Trainer(models.build("lenet5", image), image.train, sgd).chosen == "loop"
    assert Trainer(models.build("lenet5", image), image.train, sgd, device="cuda").chosen == "grouped"


@pytest.mark.parametrize("engine", ["loop", "vmap", "stacked", "grouped"])
@pytest.mark.parametrize(
    ("part", "text"),
    [
        (np.array([3, -1]), r"parts\[1\]\[1\] = -1: must be in \[0, 9\), the number of a sample"),
        (np.array([9, 3], np.uint64), r"parts\[1\]\[0\] = 9: must be in \[0, 9\)"),
        (np.array([0.5, 1.5]), r"parts\[1\].dtype = 'float64': must be a type of integers"),
        (np.array([True, False]), r"parts\[1\].dtype = 'bool'"),
        (np.array([[0, 1], [2, 3]]), r"parts\[1\].shape = \(2, 2\)"),
        ([0, 1], r"parts\[1\] = 'list': must be a numpy array"),
    ],
    ids=str,
)
def test_what_is_no_number_of_a_sample_is_refused(engine: str, part: Any, text: str) -> None:
    model = models.build("logistic", DATA)
    samples = Samples(DATA.train.x[:9], DATA.train.y[:9])
    trainer = Trainer(model, samples, LocalSGD(1, 4, 0.1), engine)
    with pytest.raises(ParameterError, match=text):
        trainer.train(np.zeros((2, model.d)), [np.arange(9), part], generators(2))
    narrow, wide = (
        trainer.train(np.zeros((1, model.d)), [np.arange(9, dtype=kind)], generators(1))
        for kind in (np.uint8, np.uint64)
    )
    assert np.array_equal(narrow, wide)


def test_what_cannot_be_trained_is_refused() -> None:
    model, sgd = models.build("logistic", DATA), LocalSGD(1, 5, 0.1)
    right: dict[str, Any] = {"epochs": 1, "batch": 1, "rate": 0.1}
    for wrong in (
        {"epochs": 0},
        {"batch": 0},
        {"rate": 0.0},
        {"rate": float("nan")},
        {"rate": 10**400},
        {"momentum": 1.0},
        {"decay": -1.0},
        {"decay": False},
    ):
        with pytest.raises(ParameterError):
            LocalSGD(**{**right, **wrong})
    with pytest.raises(ParameterError, match="one of auto"):
        Trainer(model, DATA.train, sgd, "fast")
    with pytest.raises(ParameterError, match="without momentum"):
        Trainer(model, DATA.train, LocalSGD(1, 5, 0.1, momentum=0.5), "stacked")
    trainer = Trainer(model, DATA.train, sgd)
    with pytest.raises(ParameterError, match=r"parts\[1\]"):
        trainer.train(np.zeros((2, 650)), [np.arange(2), np.arange(0)], generators(2))
    for count in (1, 3):
        with pytest.raises(LengthMismatch, match=r"len\(rngs\)"):
            trainer.train(np.zeros((2, 650)), parts_of([2, 3]), generators(count))
    seeds: Any = [*generators(1), 5]
    with pytest.raises(ParameterError, match=r"^rngs\[1\] = 'int': must be of the class Generator$"):
        trainer.train(np.zeros((2, 650)), parts_of([2, 3]), seeds)
    with pytest.raises(ParameterError, match=r"^rngs = 'set': must be a sequence of Generator$"):
        trainer.train(np.zeros((2, 650)), parts_of([2, 3]), set(generators(2)))  # type: ignore[arg-type]
    with pytest.raises(OutOfRange, match=r"samples\.y\[1\] = -100"):
        Trainer(model, Samples(DATA.train.x[:2], np.array([0, -100])), sgd)
    with pytest.raises(OutOfRange, match="rate"):
        trainer.train(np.zeros((1, 650)), parts_of([2]), generators(1), -1.0)


@pytest.mark.parametrize("rate", [1e39, 1e300, 1e-46, 1e-50])
def test_a_rate_beyond_binary32_is_refused(rate: float) -> None:
    with pytest.raises(OutOfRange, match=r"^rate = .*: must be a finite number above 0, in the range of binary32$"):
        LocalSGD(1, 1, rate)


def test_images_of_another_shape_are_not_trained_on() -> None:
    others = Samples(np.zeros((3, 2, 8, 8), np.float32), np.zeros(3, np.int64))
    with pytest.raises(LengthMismatch, match=r"^samples\.x\.shape"):
        Trainer(models.build("logistic", DATA), others, LocalSGD(1, 1, 0.1))
