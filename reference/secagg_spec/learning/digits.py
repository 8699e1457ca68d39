"""Images of handwritten digits: the images bundled with scikit-learn, or MNIST from a folder."""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError

CLASSES = 10
"""The digits."""
_CHUNK = 4096
_MOST = 1 << 28
_SQUARE = 1e150
"""The largest magnitude of values that are added, or their squares."""
_IMAGES, _LABELS = "mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"


@dataclass(frozen=True, eq=False)
class Digits:
    """Square images (n, side, side), their largest value, and the digit on each (n,).

    Raises
    ------
    ParameterError
        The name is no text, the images are no array of real numbers or of another shape, there are none, or not as many
        as labels.
    OutOfRange
        The largest value is not above 0 and at most 10^150, a value is not between 0 and that, or a label is no digit.
    """

    name: str
    raw: NDArray[np.generic]
    largest: float
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        validate.instance("name", self.name, str)
        if validate.array("raw", self.raw, None).dtype.kind not in "uif":
            raise ParameterError("raw.dtype", str(self.raw.dtype), "a type of integers or real numbers")
        side = self.raw.shape[-1] if self.raw.ndim else None
        validate.array_shape("raw", self.raw, (None, side, side))
        if not self.raw.size:
            raise LengthMismatch("len(raw)", len(self.raw), "one image or more, of one pixel or more")
        if not validate.finite(self.largest) or not 0 < self.largest <= _SQUARE:
            raise OutOfRange("largest", self.largest, f"a number above 0 and at most {_SQUARE:.0e}")
        low, high = self.raw.min().item(), self.raw.max().item()
        if not 0 <= low <= high <= self.largest:
            raise OutOfRange("raw", low if not low >= 0 else high, f"between 0 and {self.largest}")
        check_labels("labels", self.labels, CLASSES)
        validate.array_shape("labels", self.labels, (len(self.raw),))

    @property
    def side(self) -> int:
        """The height and width of an image, in pixels."""
        return int(self.raw.shape[1])

    def images(self, chosen: NDArray[np.intp]) -> RealArray:
        """Return the chosen images, with values in [0, 1].

        Raises `ParameterError` for what is no vector of numbers of images.
        """
        return self.raw[numbers_of_samples("chosen", chosen, len(self.raw))].astype(np.float64) / self.largest

    def squares(self, image: RealArray) -> RealArray:
        """Return the sum of squared differences between an image and each image of the data, up to rounding.

        Raises `ParameterError` for an image that is no float64 array of the size of the others, or has a value that is
        not finite or above 10^150 in magnitude.
        """
        largest = float(np.abs(validate.reals("image", image, self.raw.shape[1:])).max())
        if largest > _SQUARE:
            raise OutOfRange("image", largest, f"at most {_SQUARE:.0e} in magnitude")
        flat = self.raw.reshape(len(self.raw), -1)
        lengths, products = np.empty(len(flat)), np.empty(len(flat))
        for start in range(0, len(flat), _CHUNK):
            part = flat[start : start + _CHUNK].astype(np.float64) / self.largest
            lengths[start : start + _CHUNK] = np.square(part).sum(axis=1)
            products[start : start + _CHUNK] = part @ image.ravel()
        return np.asarray(lengths - 2 * products + np.square(image).sum())

    def mean(self) -> RealArray:
        """Return the mean of all images, in [0, 1]."""
        return np.asarray(self.raw.mean(axis=0, dtype=np.float64) / self.largest)


def bundled() -> Digits:
    """Return the 1797 images of 8x8 pixels that come with scikit-learn, an extra (``secagg-spec[train]``)."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    found = load_digits()
    return Digits("scikit-learn's digits", found.images, 16.0, found.target.astype(np.int64))


def check_labels(name: str, labels: NDArray[np.int64], classes: int) -> None:
    """Refuse labels outside [0, classes) (EXP-02).

    Raises
    ------
    ParameterError
        The labels are no int64 array with one axis, or the number of classes is no integer above 0.
    OutOfRange
        A label is outside [0, classes); the error names the first.
    """
    validate.array_shape(name, validate.signed(name, labels), (None,))
    validate.integer("classes", classes, 1)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        raise OutOfRange(f"{name}[{outside[0]}]", int(labels[outside[0]]), f"in [0, {classes})")


def numbers_of_samples(name: str, part: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the numbers of samples in a vector, of any type of integers.

    Raises
    ------
    ParameterError
        It is no array of integers, or the count is no integer of at least 0.
    LengthMismatch
        It is no vector.
    OutOfRange
        A number is outside [0, count); the error names the first.
    """
    count = validate.integer("count", count, 0)
    if validate.array(name, part, None).dtype.kind not in "iu":
        raise ParameterError(f"{name}.dtype", str(part.dtype), "a type of integers, the numbers of samples")
    validate.array_shape(name, part, (None,))
    if part.size and not 0 <= part.min() <= part.max() < count:
        at = int(np.argmax((part < 0) | (part >= count)))
        raise OutOfRange(f"{name}[{at}]", int(part[at]), f"in [0, {count}), the number of a sample")
    return part.astype(np.int64, copy=False)


def holds_mnist(folder: Path) -> bool:
    """Return whether a folder has the training images of MNIST; raises `ParameterError` for what is no path."""
    folder = validate.path_of("folder", folder)
    return all(os.path.isfile(folder / name) for name in (_IMAGES, _LABELS))  # Path's raises where a name is too long


def mnist(folder: Path) -> Digits:
    """Return the 60,000 training images of MNIST, 28x28 pixels, from a folder's ``mnist/*.gz``.

    Raises
    ------
    ParameterError
        The files are missing, or are not MNIST files; or the folder is no path.
    OutOfRange
        A label is no digit.
    """
    folder = validate.path_of("folder", folder)
    images, labels = (_read(folder / name, axes) for name, axes in ((_IMAGES, 3), (_LABELS, 1)))
    if not images.size or len(images) != len(labels) or images.shape[1] != images.shape[2]:
        raise ParameterError("data", str(folder), "a folder with square images, one at least, and as many labels")
    found = labels.astype(np.int64)
    check_labels("training labels", found, CLASSES)
    return Digits("MNIST", images, 255.0, found)


def _read(path: Path, axes: int) -> NDArray[np.uint8]:
    try:
        data = system.regular(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    return bytes_of_idx(data, axes, path)


def bytes_of_idx(packed: bytes, axes: int, path: Path | str) -> NDArray[np.uint8]:
    """Return the array of bytes in an IDX file: two zeros, the type 8, the number of axes, their lengths, the data.

    No more is unpacked than the lengths say, and never more than 2^28 bytes of data: MNIST has 47 million.

    Parameters
    ----------
    packed : bytes
        The content of the file, compressed with gzip.
    axes : int
        The expected number of axes, in [1, 64]: numpy has no more.
    path : Path or str
        The origin of the data, for error messages.

    Raises
    ------
    ParameterError
        The data is not such a file, or no bytes, or the number of axes is out of its range.
    """
    axes, packed = validate.integer("axes", axes, 1, 64), validate.octets("packed", packed)
    what = f"an IDX file of bytes with {axes} ax{'i' if axes == 1 else 'e'}s, and {_MOST} bytes of data at most"
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            head = file.read(4 + 4 * axes)
            shape = tuple(int.from_bytes(head[at : at + 4], "big") for at in range(4, len(head), 4))
            long = math.prod(length for length in shape if length)  # numpy bounds this, also where a length is 0
            if head[:4] != bytes((0, 0, 8, axes)) or len(head) != 4 + 4 * axes or long > _MOST:
                raise ParameterError("data", str(path), what)
            data = file.read(math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    if len(data) != math.prod(shape):
        raise ParameterError("data", str(path), what)
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _unreadable(path: Path | str, error: Exception) -> ParameterError:
    return ParameterError("data", str(path), f"a gzip file that can be read ({error})")


guard(__name__)
