"""The pseudo-random generator: it expands a key into a stream of elements.

Source: spec/conventions.md, section 8 (PRG-01 to PRG-03).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.running import PIECE
from secagg_spec.arithmetic.sampling import Words, elements_of, words_for
from secagg_spec.arithmetic.validate import UintArray

KEY_BYTES = 32
_ZEROS = bytes(4 * PIECE)
_FROM_ZERO = modes.CTR(bytes(16))
Generator: TypeAlias = Callable[[bytes, Ring, int], Iterator[Words]]
_GENERATOR: ContextVar[Generator | None] = ContextVar("generator", default=None)


def expand(key: bytes, ring: Ring, n: int) -> UintArray:
    """Return the first `n` elements of the stream of a key (PRG-01).

    Parameters
    ----------
    key : bytes
        32 bytes.
    ring : Ring
        The integers modulo R.
    n : int
        How many elements, from 0 to 2^32 - 1. Each takes 8 bytes; `stream` takes less.

    Raises
    ------
    LengthMismatch
        The key is not 32 bytes long (PRG-02).
    ParameterError
        The modulus is above 2**32.
    """
    elements = np.empty(validate.integer("n", n, 0, validate.MAX_COUNT), dtype=np.uint64)
    at = 0
    for piece in stream(key, ring, n):
        elements[at : at + piece.size] = piece
        at += piece.size
    return elements


def stream(key: bytes, ring: Ring, n: int) -> Iterator[Words]:
    """Yield the elements of `expand` piece by piece, as uint32; a caller can add up a stream without storing it.

    A piece is valid until the next one is requested. The arguments and errors are the same as for `expand`.
    """
    check_key("key", key)
    return (_GENERATOR.get() or usual)(key, ring, validate.integer("n", n, 0))


@contextmanager
def generator(other: Generator | None) -> Iterator[None]:
    """Replace the generator of all streams inside a ``with`` block; None stands for the generator of the specification.

    `other` takes a key, the ring and the number of elements, and yields the elements in pieces, like `stream`.
    """
    token = _GENERATOR.set(other)
    try:
        yield
    finally:
        _GENERATOR.reset(token)


def is_exchanged() -> bool:
    """Return whether streams come from a generator other than the one of the specification."""
    return _GENERATOR.get() is not None


def usual(key: bytes, ring: Ring, missing: int) -> Iterator[Words]:
    """Yield the pieces of a stream from the generator of the specification, for checked arguments."""
    cipher = Cipher(algorithms.AES(key), _FROM_ZERO).encryptor()
    count = min(PIECE, words_for(ring, missing))
    zeros, buffer = memoryview(_ZEROS)[: 4 * count], bytearray(4 * count + 15)
    words = np.frombuffer(buffer, dtype="<u4", count=count)
    while missing:
        cipher.update_into(zeros, buffer)
        piece = elements_of(ring, words)[:missing]
        yield piece
        missing -= piece.size


def check_key(name: str, key: bytes) -> None:
    """Refuse a key that is not 32 bytes.

    Raises
    ------
    ParameterError
        The key is not bytes.
    LengthMismatch
        The key has another length.
    """
    validate.octets(name, key, KEY_BYTES)


guard(__name__)
