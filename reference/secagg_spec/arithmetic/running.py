"""Running sums of many vectors modulo R, read piece by piece and not kept.

A sum is held as words of 32 bits and, where R is no power of two, with the number of times that each word passed 2**32:
so adding a mask moves few bytes beside those of the mask. A few vectors are read in turn, so that the part of the sum
that their pieces are added to stays in the cache.

The plain form is ``sum(int(x[j]) for x in vectors) % R``; a property test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import NonCanonical

PIECE, TOGETHER = 2**15, 4
"""The words of a piece, and the vectors that are read in turn: both fit into a cache of 1 MiB with the sums."""
_MOST = 2**8 - 1


class Sum:
    """A sum of vectors of elements modulo R, which begins with one of them, for checked arguments.

    Parameters
    ----------
    words : array (d,)
        Elements, which are added to.
    modulus : int
        R, in [2, 2**32].
    """

    def __init__(self, words: NDArray[np.uint32], modulus: int) -> None:
        self.words, self.modulus = words, modulus
        # A sum of words wraps modulo 2**32, which is a multiple of every power of two up to it.
        self.carries = np.zeros(words.size if modulus & (modulus - 1) else 0, dtype=np.uint8)
        self._room = _MOST

    def add(self, at: int, piece: NDArray[Any]) -> None:
        """Add elements to those from `at` on."""
        words = self.words[at : at + piece.size]
        np.add(words, piece, out=words, casting="unsafe")
        if self.carries.size:
            carries = self.carries[at : at + piece.size]
            carries += (words < piece).view(np.uint8)

    def make_room(self, vectors: int) -> None:
        """Let so many more vectors be added, at most 255: none of the carries passes 8 bits."""
        if self._room < vectors:
            for part in self._parts() if self.carries.size else ():
                self.words[part] = self._elements(part)
            self.carries[...], self._room = 0, _MOST
        self._room -= vectors

    def minus(self, other: Sum) -> UintArray:
        """Return the elements of this sum minus those of another one modulo R, d elements."""
        difference = np.empty(self.words.size, dtype=np.uint64)
        for part in self._parts():
            if self.carries.size:
                low, high = other._elements(part), self._elements(part)
                difference[part] = self._reduced(high + (np.uint64(self.modulus) - low))
            else:
                difference[part] = (self.words[part] - other.words[part]) & np.uint32(self.modulus - 1)
        return difference

    def _parts(self) -> Iterator[slice]:
        return (slice(at, at + PIECE) for at in range(0, self.words.size, PIECE))

    def _elements(self, part: slice) -> UintArray:
        exact: UintArray = self.words[part].astype(np.uint64)
        exact += self.carries[part].astype(np.uint64) << np.uint64(32)
        return self._reduced(exact)

    def _reduced(self, exact: UintArray) -> UintArray:
        """Return integers modulo R; numpy divides by a scalar several times faster than it finds remainders."""
        quotients = exact // np.uint64(self.modulus)
        quotients *= np.uint64(self.modulus)
        return exact - quotients


def add_all(vectors: Iterable[tuple[str, Sum, Iterator[NDArray[Any]]]]) -> None:
    """Add vectors, each given by its name and in consecutive pieces of elements, each to its sum.

    Raises
    ------
    LengthMismatch
        A vector is longer or shorter than its sum.
    NonCanonical
        A piece holds something else than elements, which are unsigned integers.
    ParameterError
        A piece is no numpy array.
    """
    waiting = iter(vectors)
    while together := list(islice(waiting, TOGETHER)):
        for total in {total for _, total, _ in together}:
            total.make_room(len(together))
        reading = [_added(*one) for one in together]
        while reading:
            reading = [one for one in reading if next(one, False)]


def _added(name: str, total: Sum, pieces: Iterator[NDArray[Any]]) -> Iterator[bool]:
    """Add the pieces of a vector one by one, and yield True after each."""
    at = 0
    for piece in pieces:
        if validate.array(name, piece, None).dtype.kind != "u":
            raise NonCanonical(name, validate.class_of(piece), "pieces of unsigned integers")
        validate.array_shape(f"a piece of {name}", piece, total.words[at : at + piece.size].shape)
        validate.canonical(name, piece, total.modulus)
        total.add(at, piece)
        at += piece.size
        yield True
    if at != total.words.size:
        validate.array_shape(name, np.broadcast_to(0, at), total.words.shape)


guard(__name__)
