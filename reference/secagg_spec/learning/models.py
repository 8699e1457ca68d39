"""The models of the papers' experiments, each a function of one flat vector of d parameters.

====================  ==========================================================================================
name                  which one
====================  ==========================================================================================
logistic              multinomial logistic regression; 7,850 parameters on MNIST (BASA, appendix B.3)
mlp                   784-100-10, 79,510 parameters (HeteroSAg, table 5); on images of 64 pixels 64-32-10
lenet5                LeNet-5 on 28x28 pixels with ReLU and maxima in place of sigmoids and means (BASecAgg, section 4)
mcmahan-cnn           two convolutions of 32 and 64 filters of 5x5, 512 dense units (McMahan et al., 2017)
femnist-cnn           two convolutions of 3x3, maxima, 128 dense units, no dropout (Reddi et al., 2020; BASA, B.3)
heterosag-cnn         the network of HeteroSAg, table 6
fedml-cnn             two convolutions of 64 filters of 5x5, three dense layers (He et al., 2020; BASA, B.3)
flsim-cnn             four convolutions of 32 filters of 3x3, one dense layer, no normalisation (BASA, B.3)
vgg11                 configuration A of Simonyan and Zisserman for 32x32 pixels: one dense layer, no normalisation
====================  ==========================================================================================

Layers are initialised as in PyTorch: weights and biases are uniform between -1/sqrt(n) and 1/sqrt(n), for n inputs of a
unit. The models of HeteroSAg start with biases 0 and Glorot's uniform weights of convolutions (its appendix J.4).

Source: spec/experiments.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.learning.datasets import Dataset, Samples
from secagg_spec.learning.digits import check_labels

_PART, _WORD, _MOST = 1000, 8, 2**28
_SMALL = 64
"""Images of at most this many pixels get the smaller hidden layer."""


class Layer(Protocol):
    """A layer: the shapes of its parameters, and its functions of a batch, for checked arguments."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of its parameters: weights and biases, or none."""

    def __call__(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the output of the layer for a batch."""

    def of_many(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the outputs (U, n, ...) of U layers, for a batch (U, n, ...) and parameters (U, ...) of each.

        It is for checked arguments.
        """


class _Sized(validate.Plain):
    """The base of layers with sizes, each a 32-bit integer above 0.

    A padding may be 0, and so may the inputs that are left of images that are too small; no model has such a layer.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in vars(self).items():
            if name != "shapes":
                validate.integer(name, value, int(name not in ("padding", "inputs")), validate.MAX_COUNT)


@dataclass(frozen=True)
class Dense(_Sized):
    """A dense layer on vectors; inputs of other shapes are flattened to vectors.

    Raises `ParameterError` for sizes that are none; so do the layers below.
    """

    inputs: int
    outputs: int

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Weights and biases."""
        return (self.outputs, self.inputs), (self.outputs,)

    def __call__(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the outputs of a batch, for checked arguments."""
        weights, biases = parameters
        return functional.linear(x.flatten(1), weights, biases)

    def of_many(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the outputs of many layers, each for its own batch, for checked arguments."""
        weights, biases = parameters
        return torch.baddbmm(biases.unsqueeze(1), x.flatten(2), weights.transpose(1, 2))


@dataclass(frozen=True)
class Convolution(_Sized):
    """A convolution with square kernels and stride 1."""

    channels: int
    filters: int
    kernel: int
    padding: int = 0

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Weights and biases."""
        return (self.filters, self.channels, self.kernel, self.kernel), (self.filters,)

    def __call__(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the outputs of a batch, for checked arguments."""
        weights, biases = parameters
        return functional.conv2d(x, weights, biases, padding=self.padding)

    def of_many(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the outputs of many layers, each for its own batch, as groups of one convolution.

        It is for checked arguments.
        """
        weights, biases = parameters
        count = len(x)
        side_by_side = x.transpose(0, 1).flatten(1, 2)
        named = {"padding": self.padding, "groups": count}
        outputs = functional.conv2d(side_by_side, weights.flatten(0, 1), biases.flatten(), **named)
        return outputs.reshape(len(outputs), count, self.filters, *outputs.shape[2:]).transpose(0, 1)


@dataclass(frozen=True)
class Maxima(_Sized):
    """The largest value in each window."""

    size: int
    stride: int
    padding: int = 0
    shapes: tuple[tuple[int, ...], ...] = ()

    def __call__(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the maxima of a batch, for checked arguments."""
        return functional.max_pool2d(x, self.size, self.stride, self.padding)

    def of_many(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the maxima of many batches, for checked arguments."""
        maxima = self(x.flatten(0, 1))
        return maxima.reshape(*x.shape[:2], *maxima.shape[1:])


@dataclass(frozen=True)
class Positive:
    """ReLU: the larger of a number and 0."""

    shapes: tuple[tuple[int, ...], ...] = ()

    def __call__(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the positive part of each number of a batch, for checked arguments."""
        return functional.relu(x)

    def of_many(self, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        """Return the positive part of each number of many batches, for checked arguments."""
        return self(x)


@dataclass(frozen=True)
class Model:
    """A network of layers whose parameters form one vector.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    layers : sequence of Layer
        Applied one after the other; the output is the logits of the classes.
    glorot : bool
        Whether it is initialised as in HeteroSAg rather than as in PyTorch.

    Raises
    ------
    ParameterError
        A layer lacks what `Layer` has, or has no input, or there is no parameter, or more than 2^28.
    """

    name: str
    layers: tuple[Layer, ...]
    glorot: bool = False
    shapes: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        layers = validate.sequence("layers", self.layers, "layers")
        if any(isinstance(one, type) or not hasattr(one, "shapes") or not hasattr(one, "of_many") for one in layers):
            raise ParameterError("layers", list(map(validate.class_of, layers)), "layers, such as Dense and Positive")
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "shapes", tuple(shape for layer in layers for shape in layer.shapes))
        if not self.shapes:
            raise ParameterError("layers", list(map(validate.class_of, layers)), "layers, one or more with parameters")
        validate.integer("the least size of a layer", min(map(min, self.shapes)), 1)
        validate.integer("d", self.d, 1, _MOST)

    @property
    def d(self) -> int:
        """The number of parameters."""
        return sum(map(math.prod, self.shapes))

    @property
    def dense(self) -> tuple[Dense, ...] | None:
        """The dense layers, if the model has only these, with ReLU between them."""
        found = tuple(layer for layer in self.layers if isinstance(layer, Dense))
        between = tuple(layer for pair in pairwise(found) for layer in (pair[0], Positive()))
        return found if (*between, *found[-1:]) == self.layers and found else None

    @property
    def classes(self) -> int:
        """The number of classes: the logits of an image."""
        return self.shapes[-1][0]

    def initial(self, rng: np.random.Generator) -> RealArray:
        """Return the initial model (d,); it is drawn layer by layer, weights before biases.

        Raises `ParameterError` for what is no generator of numpy.
        """
        return np.concatenate([part for layer in self.layers if layer.shapes for part in self._first(layer, rng)])

    def _first(self, layer: Layer, rng: np.random.Generator) -> Iterator[RealArray]:
        """Yield the initial weights and biases of a layer."""
        weights, biases = layer.shapes
        inputs, outputs = math.prod(weights[1:]), weights[0] * math.prod(weights[2:])
        glorot = self.glorot and isinstance(layer, Convolution)
        bound = math.sqrt(6 / (inputs + outputs)) if glorot else 1 / math.sqrt(inputs)
        yield rng.uniform(-bound, bound, math.prod(weights))
        yield np.zeros(biases) if self.glorot else rng.uniform(-bound, bound, biases)

    def views(self, flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parameters in a vector (d,), or in each of several vectors (U, d), as views of its memory.

        It is for checked arguments, as are the two functions below.
        """
        parts = torch.split(flat, [math.prod(shape) for shape in self.shapes], dim=-1)
        return tuple(part.view(*part.shape[:-1], *shape) for part, shape in zip(parts, self.shapes, strict=True))

    def logits(self, parameters: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """Return the logits (n, classes) of images (n, channels, side, side), for checked arguments."""
        left = iter(parameters)
        for layer in self.layers:
            x = layer(x, *(next(left) for _ in layer.shapes))
        return x

    def logits_of_many(self, parameters: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """Return the logits (U, n, classes) of U models, for images (U, n, channels, side, side) of each.

        It is for checked arguments.
        """
        left = iter(parameters)
        for layer in self.layers:
            x = layer.of_many(x, *(next(left) for _ in layer.shapes))
        return x

    def check(self, samples: Samples) -> None:
        """Refuse samples that do not fit.

        Raises
        ------
        ParameterError
            The outputs of the last layer are no logits (n, classes), as those of a convolution.
        LengthMismatch
            The images have another shape than the model is for.
        OutOfRange
            A label is no class of the model (EXP-02).
        """
        check_labels("samples.y", samples.y, self.classes)
        left = iter(self.views(torch.empty(self.d, device="meta")))  # without memory and numbers: shapes alone
        x = torch.empty(samples.x[:1].shape, device="meta")
        for at, layer in enumerate(self.layers):
            try:
                x = layer(x, *(next(left) for _ in layer.shapes))
            except RuntimeError:
                why = f"layers[{at}] would get {tuple(x.shape[1:])} of each"
                allowed = f"that of images for the model {self.name}; {why}"
                raise LengthMismatch("samples.x.shape[1:]", samples.x.shape[1:], allowed) from None
        if x.shape[1:] != (self.classes,):
            raise ParameterError("layers", self.layers, f"such that the outputs have the shape (n, {self.classes})")

    def evaluate(self, vector: RealArray, samples: Samples, device: str = "cpu") -> tuple[float, float]:
        """Return the share of samples that a model (d,) classifies correctly, and its mean cross-entropy in nats.

        The model is rounded to binary32. If a number is beyond its range, or a logit becomes so, the cross-entropy is
        not finite, and the share says nothing.

        Raises
        ------
        LengthMismatch
            The vector does not have d numbers, there are no samples, or the images do not fit the model.
        ParameterError
            PyTorch has no such device here, or the outputs of the model are no logits (n, classes).
        OutOfRange
            A number of the vector is not finite, or a label is no class of the model (EXP-02).
        """
        vector = validate.reals("vector", vector, (self.d,))
        if not len(samples):
            raise LengthMismatch("len(samples)", 0, "one or more")
        self.check(samples)
        parameters = self.views(tensor(vector, device, torch.float32))
        parts = [self._score(parameters, *pair) for pair in _parts(samples, device)]
        right, loss = (math.fsum(column) / len(samples.y) for column in zip(*parts, strict=True))
        return right, loss

    def _score(self, parameters: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
        """Return how many samples are classified correctly, and the sum of the cross-entropies of all samples."""
        with torch.no_grad():
            logits = self.logits(parameters, x)
            return float((logits.argmax(1) == y).sum()), float(functional.cross_entropy(logits, y, reduction="sum"))

    def accuracy(self, vector: RealArray, samples: Samples) -> float:
        """Return the share of samples that a model (d,) classifies correctly; errors as in `evaluate`."""
        return self.evaluate(vector, samples)[0]

    def loss(self, vector: RealArray, samples: Samples) -> float:
        """Return the mean cross-entropy of a model (d,) in nats; errors as in `evaluate`."""
        return self.evaluate(vector, samples)[1]


def _parts(samples: Samples, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield images and labels, a thousand at a time."""
    for start in range(0, len(samples.y), _PART):
        part = slice(start, start + _PART)
        yield tensor(samples.x[part], device), tensor(samples.y[part], device)


def tensor(array: NDArray[Any], device: str, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a copy of an array on a device, of its type or another; the array and its bytes may be backwards.

    Raises `ParameterError` for what is no array of integers or real numbers and no type of PyTorch, for what is no name
    of a device, and for a device that PyTorch does not have here.
    """
    if validate.array("array", array, None).dtype.kind not in "biuf" or array.dtype.itemsize > _WORD:
        raise ParameterError("array.dtype", str(array.dtype), "a type of integers or real numbers of 64 bits at most")
    if dtype is not None:
        validate.instance("dtype", dtype, torch.dtype)
    try:
        place = torch.device(device)
        if place.type != "cpu":
            torch.zeros(1, device=place).cpu()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError):
        raise ParameterError("device", device, "a device that PyTorch has here, such as cpu or cuda") from None
    native = array.dtype.str[1:]
    return torch.from_numpy(np.array(array, native, order="C").view(native)).to(device=place, dtype=dtype)


# ---------------------------------------------------------------------------------------------------------- the models

Shape = tuple[int, int, int]
"""The number of channels of an image, of pixels of a side, and of classes."""


def build(name: str, dataset: Dataset) -> Model:
    """Return a model for the images and classes of a data set.

    Raises
    ------
    ParameterError
        No model has this name, or the images are too small for it.
    """
    validate.one_of("model", name, NAMES)
    _set_up()
    _, channels, side, _ = dataset.train.x.shape
    layers = _BUILDERS[name]((channels, side, dataset.classes))
    _check_sizes(name, layers, (channels, side, side))
    return Model(name, layers, glorot=name in _GLOROT)


def _set_up() -> None:
    """Let PyTorch compute on one thread; on a GPU in whole binary32, and with the same result each time (EXP-26)."""
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True


def _check_sizes(name: str, layers: Sequence[Layer], shape: tuple[int, int, int]) -> None:
    """Refuse images that are too small: a layer would leave no pixels."""
    _, side, _ = shape
    for layer in layers:
        if isinstance(layer, Convolution):
            side += 2 * layer.padding - layer.kernel + 1
        if isinstance(layer, Maxima):
            side = _pooled(side, layer)
        if min(side, shape[1]) < 1:
            raise ParameterError("model", name, f"one for images of {shape[1]}x{shape[2]} pixels, which are too small")


def _pooled(side: int, layer: Maxima) -> int:
    """Return the number of windows along a side."""
    return (side + 2 * layer.padding - layer.size) // layer.stride + 1


def _dense(*sizes: int) -> tuple[Layer, ...]:
    """Return dense layers with ReLU between them."""
    layers = [layer for pair in pairwise(sizes) for layer in (Dense(*pair), Positive())]
    return tuple(layers[:-1])


def _logistic(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    return _dense(channels * side * side, classes)


def _mlp(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    pixels = channels * side * side
    return _dense(pixels, 32 if pixels <= _SMALL else 100, classes)


def _lenet5(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    left = (side // 2 - 4) // 2
    first = (Convolution(channels, 6, 5, 2), Positive(), Maxima(2, 2))
    return (*first, Convolution(6, 16, 5), Positive(), Maxima(2, 2), *_dense(16 * left * left, 120, 84, classes))


def _mcmahan(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    left = side // 4
    first = (Convolution(channels, 32, 5, 2), Positive(), Maxima(2, 2))
    return (*first, Convolution(32, 64, 5, 2), Positive(), Maxima(2, 2), *_dense(64 * left * left, 512, classes))


def _femnist(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    left = (side - 4) // 2
    first = (Convolution(channels, 32, 3), Positive(), Convolution(32, 64, 3), Positive(), Maxima(2, 2))
    return (*first, *_dense(64 * left * left, 128, classes))


def _heterosag(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    left = ((side - 2) // 3 - 3) // 4
    first = (Convolution(channels, 16, 3), Positive(), Maxima(3, 3))
    return (*first, Convolution(16, 64, 4), Positive(), Maxima(4, 4), *_dense(64 * left * left, 384, 192, classes))


def _fedml(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    left = (side + 3) // 4
    first = (Convolution(channels, 64, 5, 2), Positive(), Maxima(3, 2, 1))
    second = (Convolution(64, 64, 5, 2), Positive(), Maxima(3, 2, 1))
    return (*first, *second, *_dense(64 * left * left, 384, 192, classes))


def _flsim(shape: Shape) -> tuple[Layer, ...]:
    channels, left, classes = shape
    layers: list[Layer] = []
    for inputs in (channels, 32, 32, 32):
        layers += [Convolution(inputs, 32, 3, 2), Positive(), Maxima(2, 2)]
        left = (left + 2) // 2
    return (*layers, *_dense(32 * left * left, classes))


def _vgg11(shape: Shape) -> tuple[Layer, ...]:
    channels, side, classes = shape
    layers: list[Layer] = []
    for filters in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for count in filters:
            layers += [Convolution(channels, count, 3, 1), Positive()]
            channels = count
        layers.append(Maxima(2, 2))
    return (*layers, *_dense(512 * (side // 32) ** 2, classes))


_BUILDERS: dict[str, Callable[[Shape], tuple[Layer, ...]]] = {
    "logistic": _logistic,
    "mlp": _mlp,
    "lenet5": _lenet5,
    "mcmahan-cnn": _mcmahan,
    "femnist-cnn": _femnist,
    "heterosag-cnn": _heterosag,
    "fedml-cnn": _fedml,
    "flsim-cnn": _flsim,
    "vgg11": _vgg11,
}
NAMES = tuple(_BUILDERS)
_GLOROT = ("mlp", "heterosag-cnn")


guard(__name__)
