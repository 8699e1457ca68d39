"""Numbers of a fixed bit length, packed one after the other into bytes, lowest bits first.

Source: spec/heterosag.md, section 5 (HSA-15, HSA-16).
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, NonCanonical

_PART = 2**15
"""So many elements are packed at a time, each as up to 32 numbers of 64 bits; they fill whole bytes."""


def bits_of(modulus: int) -> int:
    """Return how many bits an element of ``[0, modulus)`` takes: log2 of the modulus, rounded up."""
    return (validate.integer("modulus", modulus, 2, MAX_MODULUS) - 1).bit_length()


def packed_bytes(count: int, modulus: int) -> int:
    """Return how many bytes `count` packed elements take."""
    return -(-validate.integer("count", count, 0) * bits_of(modulus) // 8)


def pack(numbers: UintArray, modulus: int) -> bytes:
    """Return the packed form of elements.

    Parameters
    ----------
    numbers : array (L,) of uint64
        Elements of ``[0, modulus)``.
    modulus : int
        In ``[2, 2**32]``.

    Raises
    ------
    NonCanonical
        A number is not below the modulus.
    """
    places = np.arange(bits_of(modulus), dtype=np.uint64)
    numbers = validate.elements("numbers", numbers, modulus, (None,))
    packed = bytearray()
    for left in range(0, numbers.size, _PART):
        bits = (numbers[left : left + _PART, None] >> places) & np.uint64(1)
        packed += np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()
    return bytes(packed)


def unpack(data: bytes, count: int, modulus: int) -> UintArray:
    """Return the `count` elements whose packed form is `data`.

    Raises
    ------
    LengthMismatch
        `data` has more or fewer bytes than `count` packed elements.
    NonCanonical
        An element is not below the modulus, or an unused bit is not zero.
    """
    size, width = packed_bytes(count, modulus), bits_of(modulus)
    if len(validate.octets("data", data)) != size:
        raise LengthMismatch("len(data)", len(data), f"{size} bytes for {count} elements modulo {modulus}")
    weights = np.uint64(1) << np.arange(width, dtype=np.uint64)
    numbers = np.empty(count, dtype=np.uint64)
    for left in range(0, count, _PART):
        part = numbers[left : left + _PART]
        piece = np.frombuffer(data, np.uint8)[left * width // 8 : -(-(left + part.size) * width // 8)]
        bits = np.unpackbits(piece, bitorder="little")
        if bits[part.size * width :].any():
            raise NonCanonical("data", data, "zero in the bits that are left over")
        part[:] = bits[: part.size * width].reshape(part.size, width).astype(np.uint64) @ weights
    validate.canonical("data", numbers, modulus)
    return numbers


guard(__name__)
