"""Properties of the models."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import torch

from secagg_spec.arithmetic import validate
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning import models
from secagg_spec.learning.datasets import Samples
from tests.learning import stand_in

pytestmark = pytest.mark.slow

COUNTS = {
    ("logistic", 1, 8): 650,
    ("logistic", 1, 28): 7_850,
    ("mlp", 1, 8): 64 * 32 + 32 + 32 * 10 + 10,
    ("mlp", 1, 28): 79_510,
    ("lenet5", 1, 28): 61_706,
    ("mcmahan-cnn", 1, 28): 1_663_370,
    ("femnist-cnn", 1, 28): 1_199_882,
    ("heterosag-cnn", 3, 32): 117_706,
    ("fedml-cnn", 3, 32): 1_756_426,
    ("flsim-cnn", 3, 32): 31_530,
    ("vgg11", 3, 32): 9_225_610,
}
"""The parameters of the papers' networks, by hand from their tables; that of McMahan et al. is theirs."""


@pytest.mark.parametrize(("name", "channels", "side"), list(COUNTS))
def test_models_have_as_many_parameters_as_in_the_papers(name: str, channels: int, side: int) -> None:
    data = stand_in.dataset(3, channels=channels, side=side)
    model = models.build(name, data)
    assert model.d == COUNTS[name, channels, side]
    vector = model.initial(np.random.default_rng(0))
    assert vector.shape == (model.d,)
    logits = model.logits(model.views(torch.from_numpy(vector).float()), torch.from_numpy(data.train.x))
    assert logits.shape == (3, 10)


def test_every_model_is_counted() -> None:
    assert {name for name, _, _ in COUNTS} == set(models.NAMES)


def test_other_names_and_images_that_are_too_small_are_refused() -> None:
    with pytest.raises(ParameterError, match="one of logistic, mlp"):
        models.build("lenet", stand_in.dataset())
    for name in ("lenet5", "heterosag-cnn", "vgg11"):
        with pytest.raises(ParameterError, match="8x8 pixels"):
            models.build(name, stand_in.dataset())
    for name in models.NAMES:
        with pytest.raises(ParameterError, match="0x0 pixels, which are too small"):
            models.build(name, stand_in.dataset(side=0))


def test_models_start_as_the_papers_say() -> None:
    ours = models.build("heterosag-cnn", stand_in.dataset(3, channels=3, side=32))
    weights, biases, *_, last = ours.views(torch.from_numpy(ours.initial(np.random.default_rng(0))))
    bound = math.sqrt(6 / (3 * 9 + 16 * 9))
    assert 0.9 * bound < float(weights.abs().max()) <= bound
    assert not biases.any()
    assert not last.any()
    other = models.build("fedml-cnn", stand_in.dataset(3, channels=3, side=32))
    weights, biases, *_ = other.views(torch.from_numpy(other.initial(np.random.default_rng(0))))
    for part in (weights, biases):
        assert 0.9 / math.sqrt(75) < float(part.abs().max()) <= 1 / math.sqrt(75)


def test_the_score_of_a_logistic_regression_is_that_of_numpy() -> None:
    data = stand_in.dataset(2_300)
    model = models.build("logistic", data)
    vector = model.initial(np.random.default_rng(1))
    logits = data.test.x.reshape(len(data.test.y), -1) @ vector[:640].reshape(10, 64).T + vector[640:]
    right = float((logits.argmax(1) == data.test.y).mean())
    peak = logits.max(axis=1)
    losses = peak + np.log(np.exp(logits - peak[:, None]).sum(axis=1)) - logits[np.arange(2_300), data.test.y]
    assert model.accuracy(vector, data.test) == pytest.approx(right, abs=1e-3)
    assert model.loss(vector, data.test) == pytest.approx(float(losses.mean()), rel=1e-5)
    with pytest.raises(LengthMismatch):
        model.loss(vector[1:], data.test)


@pytest.mark.filterwarnings("error")
def test_vectors_and_samples_may_be_read_only_and_backwards() -> None:
    data = stand_in.dataset(30)
    model, x, y = models.build("logistic", data), data.train.x, data.train.y
    vector = model.initial(np.random.default_rng(0))
    wanted = model.evaluate(vector, data.train)
    assert model.evaluate(validate.frozen(vector), Samples(validate.frozen(x), validate.frozen(y))) == wanted
    backwards = Samples(x[::-1].copy()[::-1], y[::-1].copy()[::-1])
    assert model.evaluate(vector[::-1].copy()[::-1], backwards) == wanted


@pytest.mark.requirement("EXP-02")
@pytest.mark.parametrize("label", [-100, -1, 10])
def test_a_label_that_is_no_class_is_refused(label: int) -> None:
    data = stand_in.dataset(3)
    model = models.build("logistic", data)
    with pytest.raises(OutOfRange, match=r"samples\.y\[1\] = "):
        model.evaluate(np.zeros(650), Samples(data.train.x, np.array([0, label, 2])))


def test_a_seed_is_no_generator() -> None:
    seed: Any = 5
    with pytest.raises(ParameterError, match=r"^rng = 'int': must be of the class Generator$"):
        models.build("logistic", stand_in.dataset(3)).initial(seed)


@pytest.mark.parametrize("device", ["x", "", None, ["cpu"]])
def test_a_device_that_there_is_not_is_refused(device: Any) -> None:
    some = stand_in.dataset(3)
    model = models.build("logistic", some)
    with pytest.raises(ParameterError, match=r"^device = .*: must be a device that PyTorch has here"):
        model.evaluate(np.zeros(model.d), some.test, device)


def test_no_samples_have_no_score() -> None:
    data = stand_in.dataset(3)
    with pytest.raises(LengthMismatch, match=r"len\(samples\) = 0"):
        models.build("logistic", data).evaluate(np.zeros(650), Samples(data.train.x[:0], data.train.y[:0]))


@pytest.mark.parametrize("device", ["cuda:99", "mps", "meta"])
def test_a_device_that_pytorch_does_not_have_here_is_refused(device: str) -> None:
    some = stand_in.dataset(3)
    model = models.build("logistic", some)
    with pytest.raises(ParameterError, match=rf"^device = '{device}': must be a device that PyTorch has here"):
        model.evaluate(np.zeros(model.d), some.test, device)


@pytest.mark.parametrize("name", ["logistic", "mlp"])
@pytest.mark.parametrize("shape", [(2, 8, 8), (1, 9, 9), (1, 3, 3)])
def test_images_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    model = models.build(name, stand_in.dataset(3))
    others = Samples(np.zeros((3, *shape), np.float32), np.zeros(3, np.int64))
    with pytest.raises(LengthMismatch, match=r"^samples\.x\.shape\[1:\] = "):
        model.evaluate(np.zeros(model.d), others)


def test_the_layer_is_named_that_does_not_fit_those_before_it() -> None:
    model = models.Model("m", (models.Dense(64, 5), models.Dense(6, 10)))
    with pytest.raises(LengthMismatch, match=r"of images for the model m; layers\[1\] would get \(5,\) of each$"):
        model.evaluate(np.zeros(model.d), stand_in.dataset(3).test)


def test_a_model_without_dense_layers_has_none() -> None:
    assert models.Model("x", (models.Convolution(1, 3, 8),)).dense is None


OTHER: Any = None
CLASS: Any = models.Dense


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: models.Dense(-1, 3), r"inputs = -1: must be an integer in \[0, 4294967295\]"),
        (lambda: models.Dense(1, 0), r"outputs = 0: must be an integer in \[1, 4294967295\]"),
        (lambda: models.Model("x", (models.Dense(0, 3),)), "the least size of a layer = 0: "),
        (lambda: models.Convolution(1, -6, 5), "filters = -6: "),
        (lambda: models.Convolution(1, 6, 5, -1), r"padding = -1: must be an integer in \[0, "),
        (lambda: models.Maxima(2, 0), "stride = 0: "),
        (lambda: models.Model("x", OTHER), "layers = 'NoneType': "),
        (lambda: models.Model("x", (models.Positive(), OTHER)), r"layers = \['Positive', 'NoneType'\]: must be layers"),
        (lambda: models.Model("x", (CLASS,)), r"layers = \['type'\]: must be layers, such as"),
        (lambda: models.Model("x", ()), r"layers = \[\]: must be layers, one or more with parameters$"),
        (lambda: models.Model("x", (models.Positive(),)), r"layers = \['Positive'\]: must be layers, one or more with"),
        (lambda: models.Model("x", (models.Dense(2**20, 2**20),)), r"d = .*: must be an integer in \[1, 268435456\]"),
    ],
)  # fmt: skip
def test_layers_and_models_of_other_sizes_are_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        make()


@pytest.mark.parametrize("kernel", [3, 8])
def test_a_model_whose_outputs_are_no_logits_has_no_score(kernel: int) -> None:
    data, model = stand_in.dataset(), models.Model("x", (models.Convolution(1, 10, kernel),))
    for call in (lambda: model.check(data.train), lambda: model.evaluate(np.zeros(model.d), data.train)):
        with pytest.raises(
            ParameterError, match=r"^layers = .*: must be such that the outputs have the shape \(n, 10\)$"
        ):
            call()
    models.Model("x", (models.Dense(64, 10), models.Positive())).check(data.train)


def test_sizes_of_numpy_become_those_of_python() -> None:
    size: Any = np.int8(100)
    layers: Any = [models.Dense(size, size)]
    assert type(layers[0].inputs) is int
    assert models.Model("x", layers).d == 10100


@pytest.mark.parametrize("kind", "?bBhHiIlLqQefd")
@pytest.mark.parametrize("order", "<>")
def test_arrays_of_either_order_of_bytes_become_tensors(kind: str, order: Literal["<", ">"]) -> None:
    array = np.array([0, 1], np.dtype(kind).newbyteorder(order))
    assert models.tensor(array, "cpu").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (None, "array = 'NoneType': "),
        ([1.0], "array = 'list': "),
        (np.ma.masked_array([1.0]), "array = 'MaskedArray"),
        (np.array([1.0], object), r"array\.dtype = 'object': must be a type of integers or real numbers of 64 bits"),
        (np.array([1j]), r"array\.dtype = 'complex128': "),
        (np.array(["1"]), r"array\.dtype = '<U1': "),
    ],
)
def test_what_is_no_array_of_numbers_becomes_no_tensor(array: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        models.tensor(array, "cpu")
    kind: Any = 5
    with pytest.raises(ParameterError, match=r"^dtype = 'int': must be of the class dtype"):
        models.tensor(np.zeros(1), "cpu", kind)
