"""Integers modulo R for 2**32 < R <= 2**521, as Python integers in arrays of objects: what an adapter may declare.

`Ring` and `PrimeField` of `modular` stay below 2**32, where the text's protocols are. Of these rings all methods but
`signed_sum` are exact as well, but slow, and so are `quantize` and `dequantize` here and the codes of `mds`. Sums of
masks and whatever draws elements from words of 32 bits refuse them.

Source: spec/adapter.md, section 2 (large moduli); spec/conventions.md, sections 2 to 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import MAX_MODULUS, PrimeField, Ring, is_prime
from secagg_spec.arithmetic.quantizer import Format
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import NonCanonical, OutOfRange, ParameterError

MAX_WIDE = 2**521


class WideRing(Ring):
    """The integers modulo `modulus`, 2 <= modulus <= 2**521; elements are Python integers in arrays of dtype object.

    Raises
    ------
    ParameterError
        The modulus is not an integer in that range.
    """

    dtype = np.dtype(object)

    def __init__(self, modulus: int) -> None:
        self.modulus = validate.integer("modulus", modulus, 2, MAX_WIDE)
        self._m = self.modulus  # type: ignore[assignment] # Python integers, like the elements

    def check(self, name: str, value: object, shape: tuple[int | None, ...] | None) -> NDArray[Any]:
        """Return `value` when it is an array of elements of this ring with the given shape (MOD-06, MOD-07)."""
        value = validate.array(name, value, self.dtype)
        if shape is not None:
            validate.array_shape(name, value, shape)
        for at, element in enumerate(value.flat):
            if type(element) is not int or not 0 <= element < self.modulus:
                shown = element if type(element) is int else validate.class_of(element)
                raise NonCanonical(f"{name}[{at}]", shown, f"an int in [0, {self.modulus})")
        return value

    def check_words(self) -> None:
        """Refuse this ring.

        Raises
        ------
        ParameterError
            Always: its elements are no words of 32 bits.
        """
        raise ParameterError("modulus", self.modulus, f"at most 2**32 = {MAX_MODULUS}, that of a Ring of 32-bit words")

    def sum(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the rows of an (n, d) array, n >= 0: d elements (MOD-03)."""
        rows = self.check("rows", rows, (None, None))
        total: NDArray[Any] = np.add.reduce(rows, axis=0, initial=0)
        return total % self._m

    def matmul(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the exact product of an (m, k) and a (k, n) array, shape (m, n) (MOD-04)."""
        a = self.check("a", a, (None, None))
        b = self.check("b", b, (a.shape[1], None))
        return a @ b % self._m if a.shape[1] else self.zeros(a.shape[0] * b.shape[1]).reshape(a.shape[0], b.shape[1])

    def encode_signed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the residues of integers that lie in ``[-(R // 2), (R - 1) // 2]`` (QNT-05).

        Raises
        ------
        ParameterError
            Not an array, or a value is no integer.
        OutOfRange
            A value would not survive `decode_signed`.
        """
        values = validate.array("values", values, None)
        low, high = -(self.modulus // 2), (self.modulus - 1) // 2
        numbers = [validate.secret_integer("values", value, "integers") for value in values.flat]
        for value in numbers:
            if not low <= value <= high:
                raise OutOfRange("values", value, f"in [{low}, {high}] for the modulus {self.modulus}")
        return objects(numbers).reshape(values.shape) % self._m

    def decode_signed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return x for x <= (R - 1) // 2 and x - R otherwise (QNT-06)."""
        values = self.check("values", values, None)
        return np.where(values <= (self.modulus - 1) // 2, values, values - self.modulus)


class WideField(WideRing, PrimeField):
    """The field of integers modulo a prime up to 2**521.

    Raises
    ------
    ParameterError
        The modulus is out of range or composite (MOD-02).
    """

    def __init__(self, modulus: int) -> None:
        super().__init__(modulus)
        if not is_prime(self.modulus):
            raise ParameterError("modulus", modulus, "a prime")


def ring(modulus: int) -> Ring:
    """Return the integers modulo `modulus`, up to 2**521; up to 2**32 it is a `Ring` of `modular`."""
    modulus = validate.integer("modulus", modulus, 2, MAX_WIDE)
    return WideRing(modulus) if modulus > MAX_MODULUS else Ring(modulus)


def field(modulus: int) -> PrimeField:
    """Return the field of a prime up to 2**521; up to 2**32 it is a `PrimeField` of `modular`."""
    modulus = validate.integer("modulus", modulus, 2, MAX_WIDE)
    return WideField(modulus) if modulus > MAX_MODULUS else PrimeField(modulus)


def objects(values: list[int]) -> NDArray[Any]:
    """Return integers as an array of dtype object."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def quantize(x: RealArray, *, level: int, ring: Ring, weight: int, rounding: RealArray) -> NDArray[Any]:
    """Return what `quantizer.quantize` returns, also in a wide ring, and there for levels up to 2**521.

    Raises
    ------
    OutOfRange, ParameterError
        As `quantizer.quantize`; and a level above 2**32 that is no binary64 number.
    """
    if not isinstance(ring, WideRing):
        return quantizer.quantize(x, level=level, ring=ring, weight=weight, rounding=rounding)
    c, bound = _level(level), (ring.modulus - 1) // 2 // validate.integer("weight", weight, 1)
    x = validate.reals("x", x, (None,))
    rounding = validate.reals("rounding", rounding, x.shape)
    values = []
    for at, (number, u) in enumerate(zip(x.tolist(), rounding.tolist(), strict=True)):
        if not 0 <= u < 1 or (u * 2.0**53) % 1:
            raise OutOfRange(f"rounding[{at}]", u, "a multiple of 2**-53 in [0, 1)")
        y = number * c
        value = math.floor(y) + (Fraction(u) < Fraction(y) - math.floor(y)) if math.isfinite(y) else bound + 1
        if abs(value) > bound:
            raise OutOfRange(f"x[{at}]", number, f"at most {bound} / {level} in magnitude once rounded")
        values.append(value)
    return ring.encode_signed(objects(values))


def dequantize(values: NDArray[Any], *, level: int, ring: Ring, format: Format = "binary64") -> NDArray[np.floating]:
    """Return what `quantizer.dequantize` returns, also in a wide ring, and there for levels up to 2**521.

    Raises
    ------
    NonCanonical, ParameterError
        As `quantizer.dequantize`; and a level above 2**32 that is no binary64 number.
    OutOfRange
        A number is beyond the largest one of binary32, where that is the format.
    """
    if not isinstance(ring, WideRing):
        return quantizer.dequantize(values, level=level, ring=ring, format=format)
    level = int(_level(level))
    if not isinstance(format, str) or format not in ("binary64", "binary32"):
        raise ParameterError("format", format, "'binary64' or 'binary32'")
    signed = ring.decode_signed(ring.check("values", values, (None,)))
    quotient = np.array([value / level for value in signed], dtype=np.float64)
    if format == "binary64":
        return quotient
    with np.errstate(over="ignore"):
        rounded = quantizer.to_binary32(quotient, signed, level)
    if not (inside := np.isfinite(rounded)).all():
        at = int(np.argmin(inside))
        raise OutOfRange(f"values[{at}] / level", float(quotient[at]), "a number of binary32, below 2**128")
    return rounded


def _level(level: int) -> float:
    """Return a level as binary64, in which a level above 2**32 must be exact."""
    level = validate.integer("level", level, 1, MAX_WIDE)
    if level > quantizer.MAX_LEVEL and int(float(level)) != level:
        raise ParameterError("level", level, "a binary64 number")
    return float(level)


guard(__name__)
