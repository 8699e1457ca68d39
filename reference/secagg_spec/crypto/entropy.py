"""Sources of sampled values. This is the only module that draws from the operating system (RND-01).

The steps of a protocol take their sampled values by name; callers that have no values yet draw them from a source.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from math import prod
from typing import Protocol

import numpy as np

from secagg_spec.arithmetic import scalars, shamir, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.sampling import elements_from_bytes, integers_below, usable_words, words_for
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import ParameterError

MOST = 2**40
"""The largest number of bytes that a source gives at once."""


class Source(Protocol):
    """A source of bytes.

    What draws elements, coefficients, scalars or integers asks it until enough words are usable, so a source that never
    gives one is asked without end.
    """

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        ...


def check_source(value: object, name: str = "source") -> None:
    """Refuse what is no source of bytes; an error calls it `name`.

    Raises
    ------
    ParameterError
        It has no method `take`.
    """
    of_numpy = isinstance(value, (np.ndarray, np.generic))  # which has a `take` of its own
    if of_numpy or not callable(getattr(value, "take", None)):
        raise ParameterError(name, validate.class_of(value), "a source of bytes, with a method take")


def taken(source: Source, count: int) -> bytes:
    """Return the next `count` bytes of a source, which may be anybody's (RND-03).

    Raises
    ------
    ParameterError
        It gives no bytes, or not so many; none of them is shown.
    """
    data = source.take(count)
    given = f"{len(data)} bytes" if isinstance(data, bytes) else validate.class_of(data)
    if given != f"{count} bytes":
        raise ParameterError(f"take({count}) of the source", given, f"{count} bytes")
    return data


class SystemSource:
    """Bytes from the operating system's generator."""

    def take(self, count: int) -> bytes:
        """Return `count` fresh bytes."""
        return os.urandom(validate.integer("count", count, 0, MOST))


class SeededSource:
    """Bytes that a seed determines: for simulations, tests and test vectors, never for real inputs.

    Block n of the stream for a seed and a label is SHAKE-256 of the length-prefixed seed, label and n.
    """

    def __init__(self, seed: bytes, label: str) -> None:
        if not isinstance(label, str):
            raise ParameterError("label", label, "a string")
        try:
            seed, encoded = validate.octets("seed", seed), label.encode()
        except UnicodeEncodeError:
            raise ParameterError("label", label, "a string that UTF-8 can write, without a lone surrogate") from None
        self._prefix = len(seed).to_bytes(4, "little") + seed + len(encoded).to_bytes(4, "little") + encoded
        self._block = 0

    def take(self, count: int) -> bytes:
        """Return a block of `count` bytes, in a time that grows with it; the next call gives another block."""
        count = validate.integer("count", count, 0, MOST)
        self._block += 1
        return hashlib.shake_256(self._prefix + self._block.to_bytes(8, "little")).digest(count)


def draw_elements(source: Source, ring: Ring, shape: tuple[int, ...]) -> UintArray:
    """Draw uniform elements of the given shape, 2^32 - 1 at most, of a ring up to 2^32 (RND-02).

    While they are drawn, each takes up to 24 bytes.
    """
    if not isinstance(shape, tuple):
        raise ParameterError("shape", shape, "a tuple")
    lengths = [validate.integer("shape", length, 0) for length in shape]
    validate.integer("elements of the shape", prod(filter(None, lengths)), 0, validate.MAX_COUNT)
    parts: list[UintArray] = []
    missing = prod(lengths)
    while missing:
        data = taken(source, 4 * words_for(ring, missing))
        part = elements_from_bytes(ring, data, min(missing, usable_words(ring, data)))
        parts.append(part)
        missing -= part.size
    return np.concatenate(parts).reshape(shape) if parts else np.empty(shape, dtype=np.uint64)


def draw_rounding(source: Source, d: int) -> RealArray:
    """Draw `d` multiples of 2**-53, uniform in ``[0, 1)``; d is 2^32 - 1 at most.

    While they are drawn, each takes 24 bytes.
    """
    words = np.frombuffer(taken(source, 8 * validate.integer("d", d, 0, validate.MAX_COUNT)), dtype="<u8")
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_coefficients(source: Source, count: int) -> tuple[int, ...]:
    """Draw `count` uniform numbers, 2^32 - 1 at most, of the field of secret sharing, zero included (SHM-07).

    While they are drawn, each takes 180 bytes.
    """
    count = validate.integer("count", count, 0, validate.MAX_COUNT)
    drawn: list[int] = []
    while len(drawn) < count:
        data = taken(source, shamir.ELEMENT_BYTES * (count - len(drawn)))
        drawn += shamir.coefficients_from_bytes(data)
    return tuple(drawn)


def draw_scalars(source: Source, count: int) -> tuple[int, ...]:
    """Draw `count` uniform numbers in ``[1, r)``, 2^32 - 1 at most: exponents of encryption by attributes (ABE-20).

    While they are drawn, each takes 100 bytes.
    """
    count = validate.integer("count", count, 0, validate.MAX_COUNT)
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += scalars.scalars_from_bytes(taken(source, scalars.SCALAR_BYTES * (count - len(drawn))))
    return tuple(drawn)


def draw_below(source: Source, ranges: Sequence[int]) -> tuple[int, ...]:
    """Draw a uniform integer below each number of `ranges`, which are at most 2**32, by rejection (MRA-07)."""
    given = validate.sequence("ranges", ranges, "integers")
    bounds = np.array([validate.integer("ranges", bound, 1, MAX_MODULUS) for bound in given], dtype=np.uint64)
    drawn = np.zeros(len(bounds), dtype=np.uint64)
    missing = np.arange(len(bounds))
    while missing.size:
        drawn[missing], usable = integers_below(bounds[missing], taken(source, 8 * missing.size))
        missing = missing[~usable]
    return tuple(drawn.tolist())


guard(__name__)
