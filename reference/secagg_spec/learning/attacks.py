"""Attacks of Byzantine users on their updates and labels, and the normal numbers that one of the attacks needs.

Each attack changes a user's values before quantisation. Quantisation clips, so the values that the user sends stay
within the range of the quantiser. The strengths are the paper's.

Source: HeteroSAg, section 5.2; claim HET-EXP2L.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import OutOfRange, ParameterError

GAUSSIAN_DEVIATION = 5.0
SIGN_FLIP_SCALE = 5.0


def gaussian(update: RealArray, noise: RealArray) -> RealArray:
    """Return the result of the Gaussian attack: the noise replaces the update.

    Parameters
    ----------
    update, noise : array (d,) of float64
        The update, and normal numbers with mean 0; the paper's have the standard deviation 5 (`GAUSSIAN_DEVIATION`).

    Raises
    ------
    LengthMismatch
        The update and the noise differ in length.
    OutOfRange
        A number is NaN or infinite.

    Source: HeteroSAg, section 5.2.
    """
    update = validate.reals("update", update, (None,))
    return validate.reals("noise", noise, update.shape).copy()


def sign_flip(update: RealArray, scale: float = SIGN_FLIP_SCALE) -> RealArray:
    """Return an update, d numbers, times ``-scale``.

    Parameters
    ----------
    update : array (d,) of float64
    scale : float
        Finite and above 0; the paper's is 5.

    Raises
    ------
    ParameterError
        The scale is not a finite number above 0.
    OutOfRange
        A number is NaN or infinite, before or after the attack.

    Source: HeteroSAg, section 5.2.
    """
    update, scale = validate.reals("update", update, (None,)), _positive("scale", scale)
    with np.errstate(over="ignore"):
        return _finite("scale", scale, -scale * update, "number of the update")


def label_flip(labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Return the labels mirrored in the list of classes: ``classes - 1 - label``.

    The paper says that users "subtract 9", which gives invalid labels; for ten classes it means 9 - label. In the paper
    the users then multiply their updates by 30.

    Parameters
    ----------
    labels : array of integers, of any shape
        Each in ``[0, classes)``.
    classes : int
        In ``[2, 2**31]``.

    Returns
    -------
    array of int64, of the same shape

    Raises
    ------
    ParameterError
        The labels are not an array of integers, or the number of classes is out of range.
    OutOfRange
        A label is outside ``[0, classes)``.

    Source: HeteroSAg, section 5.2; claim HET-EXP2L.
    """
    classes = validate.integer("classes", classes, 2, 2**31)
    if validate.array("labels", labels, None).dtype.kind not in "iu":
        raise ParameterError("labels", type(labels).__name__, "a numpy array of integers")
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        raise OutOfRange("labels", int(labels[wrong][0]), f"in [0, {classes})")
    return np.asarray(classes - 1 - labels.astype(np.int64), np.int64)


def normals(draws: RealArray, deviation: float = 1.0) -> RealArray:
    """Return normal numbers with mean 0, one from each column of uniform draws, by the Box-Muller method.

    Parameters
    ----------
    draws : array (2, d) of float64
        Uniform in ``[0, 1)``.
    deviation : float
        The standard deviation, finite and above 0.

    Raises
    ------
    ParameterError
        The deviation is not a finite number above 0.
    OutOfRange
        A draw is outside ``[0, 1)``, or a result is infinite.
    """
    draws, deviation = validate.reals("draws", draws, (2, None)), _positive("deviation", deviation)
    outside = (draws < 0) | (draws >= 1)
    if outside.any():
        raise OutOfRange("draws", float(draws[outside][0]), "in [0, 1)")
    lengths = np.sqrt(-2 * np.log1p(-draws[0]))
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.asarray(deviation * lengths * np.cos(2 * np.pi * draws[1]), np.float64)
    return _finite("deviation", deviation, numbers, "normal number")


def _finite(name: str, factor: float, products: RealArray, of: str) -> RealArray:
    if not np.isfinite(products).all():
        raise OutOfRange(name, factor, f"such that its product with each {of} is finite")
    return products


def _positive(name: str, value: float) -> float:
    if not validate.finite(value) or value <= 0:
        raise ParameterError(name, value, "a finite number above 0")
    return float(value)


guard(__name__)
