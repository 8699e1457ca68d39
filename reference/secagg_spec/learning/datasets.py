"""The data sets for training: images in [0, 1] with labels, split into training and test samples.

Source: spec/experiments.md, section 2 (EXP-01, EXP-02).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.learning import digits, files
from secagg_spec.learning.digits import check_labels

IntArray: TypeAlias = NDArray[np.int64]
Images: TypeAlias = NDArray[np.float32]
NAMES = tuple(files.SETS)
TEST_EVERY = 5
"""The n for which every n-th image of the bundled digits, starting with the first, is a test sample."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Images and their labels.

    Parameters
    ----------
    x : float32 array (n, channels, side, side)
        Pixels in [0, 1].
    y : int64 array (n,)
        Labels.

    Raises
    ------
    ParameterError
        An argument is another kind of array.
    LengthMismatch
        The shapes do not match.
    OutOfRange
        A pixel is not in [0, 1].
    """

    x: Images
    y: IntArray

    def __post_init__(self) -> None:
        validate.array("x", self.x, np.float32)
        validate.array_shape("y", validate.signed("y", self.y), (None,))
        side = self.x.shape[-1] if self.x.ndim else 0
        validate.array_shape("x", self.x, (len(self.y), None, side, side))
        if self.x.size and not (self.x.min() >= 0 and self.x.max() <= 1):
            at = int(np.argmin((self.x >= 0) & (self.x <= 1)))
            raise OutOfRange(validate.place("x", self.x, at), float(self.x.ravel()[at]), "in [0, 1]")

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set.

    Parameters
    ----------
    name, title : str
        One of `NAMES`, and the title in figures.
    classes : int
        Labels are in [0, classes).
    train, test : Samples
        The samples for training, and the samples for measuring accuracy.
    writers : int64 array (n,) or None
        The writer of each training sample, if known.
    hashes : mapping
        The SHA-256 of each file from which the data set was read.

    Raises
    ------
    ParameterError
        The name or the title is no text.
    OutOfRange
        A label is outside the classes (EXP-02).
    LengthMismatch
        The number of writers differs from the number of samples.
    """

    name: str
    title: str
    classes: int
    train: Samples
    test: Samples
    writers: IntArray | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("name", "title"):
            validate.instance(name, getattr(self, name), str)
        object.__setattr__(self, "hashes", MappingProxyType(dict(validate.mapping("hashes", self.hashes))))
        check_labels("training labels", self.train.y, self.classes)
        check_labels("test labels", self.test.y, self.classes)
        if self.writers is not None:
            validate.array_shape("writers", validate.signed("writers", self.writers), (len(self.train),))


def load(name: str, folder: Path | None) -> Dataset:
    """Return a data set; each process reads it only once, and so nothing in it can be changed.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    folder : Path or None
        The folder with the files, such as ``mnist/train-images-idx3-ubyte.gz``; the digits need none.

    Raises
    ------
    ParameterError
        The data set is unknown, there is no folder, or a file is missing or damaged (EXP-01).
    OutOfRange
        A label is outside the classes (EXP-02).
    """
    if validate.one_of("data set", name, NAMES) == "digits":
        return _digits()
    if folder is None:
        raise ParameterError("data set", name, "digits, unless --data-dir or SECAGG_SPEC_DATA names a folder with it")
    return _loaded(name, system.resolved(validate.path_of("folder", folder)))


@cache
def _loaded(name: str, folder: Path) -> Dataset:
    return _kept(_READERS[name](folder))


def _kept(dataset: Dataset) -> Dataset:
    """Return the data set after its arrays have become read-only."""
    for samples in (dataset.train, dataset.test):
        validate.read_only(samples.x)
        validate.read_only(samples.y)
    if dataset.writers is not None:
        validate.read_only(dataset.writers)
    return dataset


# ------------------------------------------------------------------------------------------------- the data sets


@cache
def _digits() -> Dataset:
    found = digits.bundled()
    files.checked(files.BUNDLED, found.raw.astype(np.uint8).tobytes() + found.labels.astype(np.uint8).tobytes(), "it")
    images = _scaled(found.raw, found.largest)
    test = np.remainder(np.arange(len(images)), TEST_EVERY) == 0
    train, tests = (Samples(images[chosen], found.labels[chosen]) for chosen in (~test, test))
    return _kept(Dataset("digits", found.name, 10, train, tests, hashes=files.hashes("digits")))


def _mnist(folder: Path) -> Dataset:
    arrays = (digits.bytes_of_idx(files.read(folder, name), 3 if "images" in name else 1, name) for name in files.MNIST)
    x, y, x_test, y_test = arrays
    train, test = (Samples(_scaled(a, 255), b.astype(np.int64)) for a, b in ((x, y), (x_test, y_test)))
    return Dataset("mnist", "MNIST", 10, train, test, hashes=files.hashes("mnist"))


def _mnist_writers(folder: Path) -> Dataset:
    mnist = load("mnist", folder)
    with np.load(io.BytesIO(files.read(folder, files.WRITERS)), allow_pickle=False) as held:
        writers = held["train_writer"].astype(np.int64)
        if not np.array_equal(held["train_label"], mnist.train.y):
            raise ParameterError("data file", files.WRITERS, "in the order of the images of MNIST")
    hashes = files.hashes("mnist-writers")
    return Dataset("mnist-writers", "MNIST by writer", 10, mnist.train, mnist.test, writers, hashes)


def _cifar10(folder: Path) -> Dataset:
    with np.load(io.BytesIO(files.read(folder, files.CIFAR10)), allow_pickle=False) as held:
        train, test = (
            Samples(_decoded(held[f"{part}_jpeg"], held[f"{part}_offset"]), held[f"{part}_label"].astype(np.int64))
            for part in ("train", "test")
        )
    return Dataset("cifar10", "CIFAR-10 (JPEG q75 copy)", 10, train, test, hashes=files.hashes("cifar10"))


_READERS: Mapping[str, Callable[[Path], Dataset]] = MappingProxyType(
    {"mnist": _mnist, "mnist-writers": _mnist_writers, "cifar10": _cifar10}
)


def _scaled(raw: NDArray[np.generic], largest: float) -> Images:
    """Return images (n, side, side) as images of one channel, with values in [0, 1]."""
    images = raw.astype(np.float32)[:, np.newaxis]
    images /= np.float32(largest)
    return images


def _decoded(packed: NDArray[np.uint8], offsets: IntArray) -> Images:
    """Return the images of concatenated JPEG files; the channel is the first axis of an image."""
    from PIL import Image  # noqa: PLC0415

    images = np.empty((len(offsets) - 1, 3, 32, 32), dtype=np.float32)
    for image, start, end in zip(images, offsets, offsets[1:], strict=False):
        image[:] = np.asarray(Image.open(io.BytesIO(packed[start:end].tobytes()))).transpose(2, 0, 1)
    images /= np.float32(255)
    return images


guard(__name__)
