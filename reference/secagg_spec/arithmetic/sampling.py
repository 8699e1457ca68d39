"""Uniform elements from uniform bytes, by rejection.

Source: spec/conventions.md, section 6 (RND-02, RND-03).
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch

_WORDS = 2**32


def usable_words(ring: Ring, data: bytes) -> int:
    """Return how many of the words of `data` are below ``2**32 // R * R``."""
    words = np.frombuffer(data, dtype="<u4", count=len(data) // 4)
    return int(np.count_nonzero(words.astype(np.uint64) < np.uint64(_WORDS // ring.modulus * ring.modulus)))


def elements_from_bytes(ring: Ring, data: bytes, n: int) -> UintArray:
    """Return the first `n` elements that `data` yields (RND-02).

    `data` is read as little-endian 32-bit words; the words from ``2**32 // R * R`` on are skipped, the others are taken
    modulo R. Bytes after the last complete word are not read.

    Raises
    ------
    ParameterError
        `data` is not bytes.
    LengthMismatch
        The bytes yield fewer than n elements (RND-03).
    """
    n = validate.integer("n", n, 0)
    data = validate.octets("data", data)
    words = np.frombuffer(data, dtype="<u4", count=len(data) // 4).astype(np.uint64)
    accepted = words[words < np.uint64(_WORDS // ring.modulus * ring.modulus)]
    if accepted.size < n:
        raise LengthMismatch("data", f"{len(data)} bytes with {accepted.size} usable words", f"enough for n = {n}")
    return accepted[:n] % np.uint64(ring.modulus)
