"""The stochastic quantiser Q_c, whose values the signed map turns into elements, and its inverse.

Notation of the papers: c is `level`; Q_c(x) is ``quantized / level``; phi is `Ring.encode_signed`, its inverse is
`Ring.decode_signed`; W is `weight`.

Source: BASecAgg eq. (7) to (9) and (14); spec/conventions.md, section 4 (QNT-01 to QNT-10).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import OutOfRange, ParameterError

IntArray: TypeAlias = NDArray[np.int64]
Format: TypeAlias = Literal["binary64", "binary32"]
MAX_LEVEL = 2**32
_PART = 2**14
"""So many numbers are quantised at a time: as many as the nearest memory of a processor holds."""


def stochastic_round(scaled: RealArray, rounding: RealArray) -> IntArray:
    """Return floor(y) + 1 where u < y - floor(y), else floor(y), for checked arguments (QNT-02, QNT-03).

    `scaled` has finite y below 2**53 in magnitude, `rounding` as many draws u in ``[0, 1)``.

    The difference is exact in binary64 except for -1 < y < 0. There ``u - 1 < y`` is used: it is exact for multiples
    u of 2**-53.

    Source: BASecAgg eq. (7), times c.
    """
    below = np.floor(scaled)
    up = np.where(below == -1, rounding - 1 < scaled, rounding < scaled - below)
    return (below + up).astype(np.int64)


def largest_level(modulus: int, weight: int, magnitude: Fraction) -> int:
    """Return the largest power of two at which numbers up to `magnitude` cannot wrap around (QNT-04, PLN-07).

    The level c has ceil(c * magnitude) * weight <= (modulus - 1) // 2, and is at most 2^32; 0 when there is none.

    Raises
    ------
    ParameterError
        The modulus is below 2, the weight below 1, or the magnitude is no Fraction of at least 0.
    """
    if not isinstance(magnitude, Fraction) or magnitude < 0:
        raise ParameterError("magnitude", magnitude, "a Fraction >= 0")
    modulus = validate.integer("modulus", modulus, 2)
    room = (modulus - 1) // 2 // validate.integer("weight", weight, 1)
    level = MAX_LEVEL
    while level and ceil(level * magnitude) > room:
        level //= 2
    return level


def quantize(x: RealArray, *, level: int, ring: Ring, weight: int, rounding: RealArray) -> UintArray:
    """Quantise real numbers to elements: phi(c * Q_c(x)).

    Parameters
    ----------
    x : array (d,) of float64
        Finite numbers.
    level : int
        c, in ``[1, 2**32]``.
    ring : Ring
        The integers modulo R in which the sum is formed.
    weight : int
        W >= 1, the largest possible total weight of a sum that includes this input.
    rounding : array (d,) of float64
        Draws, uniform in ``[0, 1)`` (multiples of 2**-53).

    Returns
    -------
    array (d,) of elements

    Raises
    ------
    OutOfRange
        A number is not finite (QNT-01), a quantised value v has ``|v| * W > (R - 1) // 2`` (QNT-04), a draw is
        outside ``[0, 1)`` (QNT-09), or a draw is not a multiple of 2**-53 (QNT-10).
    ParameterError
        The level or the weight is out of range (QNT-08), or the modulus is above 2**32 (`wide.quantize` takes that).

    Source: BASecAgg eq. (8), (9).
    """
    ring.check_words()
    level = validate.integer("level", level, 1, MAX_LEVEL)
    bound = (ring.modulus - 1) // 2 // validate.integer("weight", weight, 1)
    x = validate.binary64("x", x)
    validate.array_shape("x", x, (None,))
    rounding = validate.binary64("rounding", rounding)
    validate.array_shape("rounding", rounding, x.shape)
    parts = [slice(left, left + _PART) for left in range(0, x.size, _PART)]
    elements = np.empty(x.size, dtype=ring.dtype)
    try:
        for part in parts:
            elements[part] = _quantized(x[part], rounding[part], level, ring, bound)
    except OutOfRange:  # the whole says what is wrong first, and where
        return _quantized(x, rounding, level, ring, bound)
    return elements


def _quantized(x: RealArray, rounding: RealArray, level: int, ring: Ring, bound: int) -> UintArray:
    """Return the elements of numbers; what is refused is found in the order of the errors of `quantize`."""
    x = validate.reals("x", x, (None,))
    rounding = validate.reals("rounding", rounding, x.shape)
    if not (inside := (rounding >= 0) & (rounding < 1)).all():
        position = int(np.argmin(inside))
        raise OutOfRange(f"rounding[{position}]", float(rounding[position]), "in [0, 1)")
    _refuse_finer(rounding)
    values = stochastic_round(_scaled(x, level, bound), rounding)
    _refuse_large(values, x, level, bound)
    return ring.encode_signed(values)


def _refuse_finer(rounding: RealArray) -> None:
    """Refuse a draw in ``[0, 1)`` that is not a multiple of 2**-53 (QNT-10)."""
    multiples = rounding * 2.0**53
    finer = multiples != np.floor(multiples)
    if finer.any():
        position = int(np.argmax(finer))
        raise OutOfRange(f"rounding[{position}]", float(rounding[position]), "a multiple of 2**-53")


def _scaled(x: RealArray, level: int, bound: int) -> RealArray:
    """Return the binary64 product c * x; refuse an entry that is too large for every draw."""
    with np.errstate(over="ignore"):
        scaled = x * np.float64(level)
    too_large = np.abs(scaled) >= bound + 1
    if too_large.any():
        position = int(np.argmax(too_large))
        raise OutOfRange(f"x[{position}]", float(x[position]), f"at most {bound} / {level} in magnitude")
    return scaled


def _refuse_large(values: IntArray, x: RealArray, level: int, bound: int) -> None:
    too_large = np.abs(values) > bound
    if too_large.any():
        position = int(np.argmax(too_large))
        raise OutOfRange(f"x[{position}]", float(x[position]), f"at most {bound} / {level} in magnitude once rounded")


def dequantize(values: UintArray, *, level: int, ring: Ring, format: Format = "binary64") -> NDArray[np.floating]:
    """Return the signed integers that `values` encode, divided by the level: float64 or float32 of the same length.

    The quotient is rounded once (QNT-07).

    Raises
    ------
    NonCanonical
        A value is not an element.
    ParameterError
        The level is out of range, or the format is neither ``binary64`` nor ``binary32``.

    Source: BASecAgg eq. (13), (14).
    """
    level = validate.integer("level", level, 1, MAX_LEVEL)
    if not isinstance(format, str) or format not in ("binary64", "binary32"):
        raise ParameterError("format", format, "'binary64' or 'binary32'")
    signed = ring.decode_signed(ring.check("values", values, (None,)))
    quotient = signed.astype(np.float64) / np.float64(level)
    return quotient if format == "binary64" else to_binary32(quotient, signed, level)


def to_binary32(quotient: RealArray, signed: IntArray, level: int) -> NDArray[np.floating]:
    """Round signed / level to binary32 once, for checked arguments, without the error of double rounding.

    A binary64 quotient may lie at a tie only because it was rounded. The exact remainder ``signed - quotient * level``
    shows whether the quotient is inexact; if so, it is replaced by its odd neighbour (rounding to odd). The second
    rounding then gives the same result as rounding the exact value.
    """
    inexact = np.array([_sign(int(s), float(v), level) for s, v in zip(signed, quotient, strict=True)], dtype=np.int64)
    bits = quotient.view(np.int64)
    even = (bits & 1) == 0
    away = np.where((quotient > 0) == (inexact > 0), 1, -1)
    odd = np.where((inexact != 0) & even, bits + away, bits).view(np.float64)
    return odd.astype(np.float32)


def _sign(signed: int, quotient: float, level: int) -> int:
    """Return the sign of signed / level - quotient, computed in integers."""
    numerator, denominator = quotient.as_integer_ratio()
    difference = signed * denominator - numerator * level
    return (difference > 0) - (difference < 0)


guard(__name__)
