"""Uniform elements from uniform bytes, by rejection.

Source: spec/conventions.md, section 6 (RND-02, RND-03).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch

_WORDS = 2**32
Words: TypeAlias = NDArray[np.uint32]


def elements_of(ring: Ring, words: Words) -> Words:
    """Return the elements that uint32 words yield, as uint32; words of ``2**32 // R * R`` or more are skipped (RND-02).

    The result may be `words` itself. The words are for checked arguments: a vector of uint32.

    Raises
    ------
    ParameterError
        The modulus is above 2**32.
    """
    ring.check_words()
    R, accepted = ring.modulus, _WORDS // ring.modulus * ring.modulus
    if accepted < _WORDS and words.size and int(words.max()) >= accepted:
        words = words[words < np.uint32(accepted)]
    if accepted == R:
        return words
    return words & np.uint32(R - 1) if R & (R - 1) == 0 else _remainders(words, np.uint32(R))


def _remainders(words: Words, R: np.uint32) -> Words:
    """Return words modulo R; numpy divides by a scalar several times faster than it finds remainders."""
    quotients = words // R
    quotients *= R
    rest: Words = np.subtract(words, quotients, out=quotients)
    return rest


def words_for(ring: Ring, count: int) -> int:
    """Return how many words give so many elements on average, and 16 more.

    Raises
    ------
    ParameterError
        The modulus is above 2**32, or the count is no integer of at least 0.
    """
    ring.check_words()
    return validate.integer("count", count, 0) * _WORDS // (_WORDS // ring.modulus * ring.modulus) + 16


def usable_words(ring: Ring, data: bytes) -> int:
    """Return how many of the words of `data` are below ``2**32 // R * R``, for checked arguments."""
    words = np.frombuffer(data, dtype="<u4", count=len(data) // 4)
    return int(np.count_nonzero(words.astype(np.uint64) < np.uint64(_WORDS // ring.modulus * ring.modulus)))


def elements_from_bytes(ring: Ring, data: bytes, n: int) -> UintArray:
    """Return the first `n` elements that `data` yields (RND-02).

    `data` is read as little-endian 32-bit words. Words of ``2**32 // R * R`` or more are skipped, the others are
    reduced modulo R. Bytes after the last complete word are not read.

    Raises
    ------
    ParameterError
        `data` is not bytes, or the modulus is above 2**32.
    LengthMismatch
        The bytes yield fewer than n elements (RND-03).
    """
    n = validate.integer("n", n, 0)
    data = validate.octets("data", data)
    elements = elements_of(ring, np.frombuffer(data, dtype="<u4", count=len(data) // 4))
    if elements.size < n:
        raise LengthMismatch("data", f"{len(data)} bytes with {elements.size} usable words", f"enough for n = {n}")
    return elements[:n].astype(np.uint64)


def integers_below(bounds: UintArray, data: bytes) -> tuple[UintArray, NDArray[np.bool_]]:
    """Return, for each bound, a word of `data` modulo the bound, and whether the word is usable; if so, it is uniform.

    A word is 8 bytes, little-endian, without its lowest bit. It is usable when it is below the largest multiple of the
    bound that is at most 2**63. This is for checked arguments: bounds in ``[1, 2**32]``, and bytes.

    Raises
    ------
    LengthMismatch
        There is not one word for each bound.
    """
    if len(data) != 8 * len(bounds):
        raise LengthMismatch("data", f"{len(data)} bytes", f"8 for each of {len(bounds)} bounds")
    words = np.frombuffer(data, dtype="<u8") >> np.uint64(1)
    return words % bounds, words < np.uint64(2**63) // bounds * bounds


guard(__name__)
