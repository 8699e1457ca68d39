"""Numbers modulo the order of the groups of BLS12-381: the exponents of encryption by attributes.

Notation: r is `ORDER`. Numbers are Python integers, as in `shamir`.

Source: spec/attributes.md, sections 3 and 4 (ABE-06, ABE-08, ABE-19, ABE-20).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Final

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import LengthMismatch, NonCanonical

ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
SCALAR_BYTES: Final = 32
_BITS = 2**255 - 1


def scalar(name: str, value: object, low: int = 1) -> int:
    """Return `value` when it is an integer in ``[low, r)``; `name` appears in the error message (ABE-19).

    Raises
    ------
    ParameterError
        The value is not an integer.
    NonCanonical
        The value is not in ``[low, r)``.
    """
    allowed = f"an integer in [{low}, r), where r is the order of the groups"
    number = validate.secret_integer(name, value, allowed)
    if not low <= number < ORDER:
        raise NonCanonical(name, number, allowed)
    return number


def scalars_from_bytes(data: bytes) -> tuple[int, ...]:
    """Return the numbers in ``[1, r)`` that `data` yields: little-endian pieces of 255 bits, others skipped (ABE-20).

    Raises
    ------
    LengthMismatch
        The bytes do not fill whole pieces.
    """
    if len(validate.octets("data", data)) % SCALAR_BYTES:
        raise LengthMismatch("data", f"{len(data)} bytes", f"a multiple of {SCALAR_BYTES} bytes")
    pieces = (data[start : start + SCALAR_BYTES] for start in range(0, len(data), SCALAR_BYTES))
    numbers = (int.from_bytes(piece, "little") & _BITS for piece in pieces)
    return tuple(number for number in numbers if 0 < number < ORDER)


def evaluate(value: int, coefficients: Sequence[int], x: int) -> int:
    """Return value + c_1 x + c_2 x^2 + ... modulo r, for checked arguments (ABE-06)."""
    result = 0
    for coefficient in reversed((value, *coefficients)):
        result = (result * x + coefficient) % ORDER
    return result


@lru_cache(maxsize=1024)
def weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weights m with f(0) = m_1 f(x_1) + ... for f of degree below the number of points (ABE-08).

    This is for checked arguments: distinct points, none of them 0 modulo r.
    """
    return tuple(
        quotient(prod(other for other in points if other != x), prod(other - x for other in points if other != x))
        for x in points
    )


def product(a: int, b: int) -> int:
    """Return a·b modulo r, for checked arguments."""
    return a * b % ORDER


def quotient(a: int, b: int) -> int:
    """Return a/b modulo r, for checked arguments: `b` is not a multiple of r."""
    return a * pow(b, -1, ORDER) % ORDER


def total(a: int, b: int) -> int:
    """Return a + b modulo r, for checked arguments."""
    return (a + b) % ORDER


guard(__name__)
