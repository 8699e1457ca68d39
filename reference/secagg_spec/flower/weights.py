"""The arrays of a model as an input of the round, and the weighted mean from the sum of the inputs.

A user with weight n sends the number (n / most) x for each parameter x, quantised, and n itself as its last element.
The party that has the sum divides the one by the other. With m users of total weight W, each entry of the mean differs
from the exact weighted mean by less than ``m * most / (level * W)``, and by the rounding of binary64.

Source: spec/flower.md, section 4 (FLW-10 to FLW-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import Source, draw_rounding
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError, ProtocolError
from secagg_spec.flower.plan import Plan

Arrays = Sequence[NDArray[Any]]
_REAL = "one of real numbers of at most 8 bytes"
_PART = 2**18
"""The number of parameters that are quantised together."""


def level_for(modulus: int, N: int, largest: float) -> int:
    """Return the largest power of two that is a level at which parameters up to `largest` in magnitude fit.

    Raises
    ------
    ParameterError
        There is none: `largest` is not a positive number, or is too large for N users; or N is no number of users with
        which a number fits.
    """
    N = validate.integer("N", N, 1, (validate.integer("modulus", modulus, 3) - 1) // 2)
    number = validate.number(largest)
    if number is None:
        raise ParameterError("largest", validate.class_of(largest), "a number: int, float or one of numpy")
    known = validate.finite(number) and number > 0
    level = quantizer.largest_level(modulus, N, Fraction(number)) if known else 0
    if not level:
        raise ParameterError("largest", largest, f"above 0 and at most {(modulus - 1) // 2 // N} with {N} users")
    return level


def shapes_of(arrays: Arrays) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of arrays, or numbers of numpy, that hold real numbers of at most 8 bytes.

    Raises
    ------
    ParameterError
        They hold something else, or are masked arrays, or none.
    """
    shapes = list[tuple[int, ...]]()
    for at, x in enumerate(validate.sequence("arrays", arrays, "numpy arrays")):
        shapes.append(() if isinstance(x, np.generic) else validate.array(f"arrays[{at}]", x, None).shape)
        if not _is_real(x.dtype):
            raise ParameterError(f"the type of arrays[{at}]", str(x.dtype), _REAL)
    return tuple(shapes)


def _is_real(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iuf" and dtype.itemsize <= 8


def encode(plan: Plan, arrays: Arrays, weight: int, source: Source) -> UintArray:
    """Return the input of a user: d elements.

    Parameters
    ----------
    plan : Plan
    arrays : sequence of arrays
        The trained model, in the shapes of the plan.
    weight : int
        The number of examples behind it, in ``[1, plan.most]``.
    source : Source
        The source of the draws of the quantiser.

    Raises
    ------
    ParameterError
        The weight is out of range, or an array is not one of real numbers.
    LengthMismatch
        The arrays have other shapes.
    OutOfRange
        A number is above the plan's magnitude or not finite (QNT-01), or the sum could wrap (QNT-04).
    """
    weight = validate.integer("number of examples", weight, 1, plan.most)
    if shapes_of(arrays) != plan.shapes:
        raise LengthMismatch("the shapes of the model", shapes_of(arrays), f"those of the plan, {list(plan.shapes)}")
    numbers = np.empty(plan.d, dtype=np.uint64)
    try:
        place = 0
        for part in (part for array in arrays for part in _parts(array.ravel())):
            numbers[place : place + part.size] = _quantized(plan, part, weight, source)
            place += part.size
    except OutOfRange:  # the whole says what is wrong first, and where
        for at, array in enumerate(arrays):
            wrong = np.flatnonzero(~np.isfinite(array))
            if wrong.size:
                raise OutOfRange(f"arrays[{at}].flat[{wrong[0]}]", float(array.flat[wrong[0]]), "finite") from None
        whole = np.concatenate([np.zeros(0), *(array.ravel().astype(np.float64) for array in arrays)])
        _quantized(plan, whole, weight, source)
        raise
    numbers[-1] = weight
    return numbers


def _parts(flat: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield parts of an array, so that what is computed from it in binary64 takes little memory at a time."""
    yield from (flat[left : left + _PART] for left in range(0, flat.size, _PART))


def _quantized(plan: Plan, numbers: NDArray[Any], weight: int, source: Source) -> UintArray:
    """Return the elements of numbers of the model; see `encode`."""
    flat = numbers.astype(np.float64)
    magnitude = float(max(flat.max(initial=0.0), -flat.min(initial=0.0)))
    if isfinite(magnitude) and Fraction(magnitude) > Fraction(*plan.largest):
        raise OutOfRange("a number of the model", magnitude, f"at most {float(Fraction(*plan.largest))} in magnitude")
    rounding = draw_rounding(source, flat.size)
    scaled = flat * (weight / plan.most)
    return quantizer.quantize(scaled, level=plan.level, ring=plan.ring, weight=plan.N, rounding=rounding)


def decode(plan: Plan, total: UintArray, count: int) -> tuple[list[RealArray], int]:
    """Return the weighted mean of the arrays, and the total weight, from the sum of the inputs of `count` users.

    Raises
    ------
    LengthMismatch, NonCanonical, ParameterError
        The sum is not d elements.
    ProtocolError
        The last element is not a sum of so many weights (FLW-12).
    """
    count = validate.integer("count", count, 1)
    weight = int(plan.ring.check("total", total, (plan.d,))[-1])
    if not count <= weight <= count * plan.most:
        raise ProtocolError(f"the sum of {count} weights in [1, {plan.most}] is said to be {weight}")
    flat = np.empty(total.size - 1)
    for numbers, part in zip(_parts(flat), _parts(total[:-1]), strict=True):
        numbers[:] = quantizer.dequantize(part, level=plan.level, ring=plan.ring) * (plan.most / weight)
    ends = np.cumsum([prod(shape) for shape in plan.shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), plan.shapes, strict=True)], weight


def like(arrays: Arrays, types: Sequence[np.dtype[Any]]) -> list[NDArray[Any]]:
    """Return arrays in other types of real numbers; numbers are rounded to the nearest one of a type of integers.

    Raises
    ------
    LengthMismatch
        There are not as many types as arrays.
    OutOfRange
        A number does not fit its type.
    ParameterError
        An array, or a type, is not one of real numbers of at most 8 bytes.
    """
    shapes_of(arrays)
    for at, dtype in enumerate(validate.sequence("types", types, "types of numpy")):
        if not _is_real(validate.instance(f"types[{at}]", dtype, np.dtype)):
            raise ParameterError(f"types[{at}]", str(dtype), _REAL)
    if len(types) != len(arrays):
        raise LengthMismatch("len(types)", len(types), f"{len(arrays)}, one for each array")
    return [_as(array, dtype, f"arrays[{at}]") for at, (array, dtype) in enumerate(zip(arrays, types, strict=True))]


def _as(array: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    if array.dtype == dtype:
        return array
    whole = dtype.kind in "iu"
    exact = np.rint(array) if whole and array.dtype.kind == "f" else array
    info = np.iinfo(dtype) if whole else np.finfo(dtype)
    least, most = (info.min, info.max) if whole else (float(info.min), float(info.max))
    for number in (exact.min(initial=0).item(), exact.max(initial=0).item()):
        if not isfinite(number) or not least <= (int(number) if whole else number) <= most:
            raise OutOfRange(f"a number of {name}", number, f"one of type {dtype}")
    return exact.astype(dtype)


guard(__name__)
