"""The groups and the pairing of BLS12-381: a thin layer over the library.

In the library, `*` is the operation of the target group and `+` is the operation of the other groups. The library
accepts several encodings of the neutral element, so every element read is encoded again and compared (ABE-23).

Source: spec/attributes.md, section 4 (ABE-10, ABE-23).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, Generic, TypeVar

from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.scalars import SCALAR_BYTES
from secagg_spec.errors import Malformed

__all__ = [
    "DOMAIN",
    "GT",
    "Fixed",
    "G1Point",
    "G2Point",
    "base_1",
    "base_2",
    "hash_attribute",
    "pairing_product",
    "power_1",
    "read_point_1",
    "read_point_2",
    "target_base",
    "target_bytes",
]

POINT_1_BYTES: Final = 48
POINT_2_BYTES: Final = 96
DOMAIN: Final = b"secagg-spec-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
_WINDOW = 4
X = TypeVar("X")
P = TypeVar("P", G1Point, G2Point)


class Fixed(Generic[X]):
    """A group element with a table for its powers: combining 64 entries of the table gives one power.

    This is not constant-time; nothing here is (SECURITY.md). Like the functions below, it is for checked arguments.
    """

    def __init__(self, element: X, combine: Callable[[X, X], X]) -> None:
        self._combine = combine
        self._rows = [self._row(element)]
        for _ in range(1, 8 * SCALAR_BYTES // _WINDOW):
            self._rows.append(self._row(combine(self._rows[-1][-1], self._rows[-1][0])))

    def _row(self, element: X) -> list[X]:
        row = [element]
        for _ in range(2**_WINDOW - 2):
            row.append(self._combine(row[-1], element))
        return row

    def power(self, exponent: int) -> X:
        """Return the power of the element, for checked arguments: an exponent in ``[1, r)``."""
        result: X | None = None
        for row in self._rows:
            digit, exponent = exponent & (2**_WINDOW - 1), exponent >> _WINDOW
            if digit:
                result = row[digit - 1] if result is None else self._combine(result, row[digit - 1])
        assert result is not None, "the exponent is not 0"
        return result


@lru_cache(maxsize=1)
def base_1() -> Fixed[G1Point]:
    """Return the generator of G_1."""
    return Fixed(G1Point(), G1Point.__add__)


@lru_cache(maxsize=1)
def base_2() -> Fixed[G2Point]:
    """Return the generator of G_2."""
    return Fixed(G2Point(), G2Point.__add__)


def target_base(left: G1Point, right: G2Point) -> Fixed[GT]:
    """Return the pairing of two points, for checked arguments."""
    return Fixed(GT.pairing(left, right), GT.__mul__)


def power_1(point: G1Point, exponent: int) -> G1Point:
    """Return the power of a point of G_1, for checked arguments: an exponent in ``[0, r)``."""
    return point * Scalar(exponent)


@lru_cache(maxsize=4096)
def hash_attribute(attribute: bytes) -> G1Point:
    """Return H of an attribute: RFC 9380 with our domain separation tag, for checked arguments (ABE-10)."""
    return G1Point.hash_to_curve(attribute, DOMAIN)


def pairing_product(pairs: Iterable[tuple[G1Point, G2Point]]) -> GT:
    """Return the product of the pairings of one pair of points or more, for checked arguments."""
    left, right = zip(*pairs, strict=True)
    return GT.multi_pairing(list(left), list(right))


def target_bytes(element: GT) -> bytes:
    """Return the 576 bytes of an element of the target group, for checked arguments."""
    return bytes.fromhex(str(element))


def read_point_1(data: bytes) -> G1Point:
    """Return the point of G_1 that 48 bytes encode.

    Raises
    ------
    Malformed
        The bytes do not encode a point, or they encode the neutral element (ABE-23).
    """
    return _read(data, POINT_1_BYTES, G1Point.from_compressed_bytes, G1Point.identity())


def read_point_2(data: bytes) -> G2Point:
    """Return the point of G_2 that 96 bytes encode.

    Raises
    ------
    Malformed
        The bytes do not encode a point, or they encode the neutral element (ABE-23).
    """
    return _read(data, POINT_2_BYTES, G2Point.from_compressed_bytes, G2Point.identity())


def _read(data: bytes, length: int, decode: Callable[[bytes], P], neutral: P) -> P:
    if len(validate.octets("data", data)) != length:
        raise Malformed(f"a point of {len(data)} bytes, where {length} are needed")
    try:
        point = decode(data)
    except ValueError:
        raise Malformed(f"{length} bytes that are no point of the group") from None
    if point == neutral or point.to_compressed_bytes() != data:
        raise Malformed(f"{length} bytes that are the neutral element, or not the one encoding of a point")
    return point


guard(__name__)
