"""The exact affine map that an implementation computes, from asking it.

`secagg_spec.privacy.probe` does the same for the reference's own cores. Here each value costs a request, and the field
of secret sharing has 521 bits, so numbers are Python integers and fewer points are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from typing import TypeAlias

Core: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Takes one number below the modulus for each input, and returns numbers below it, equally many each time."""
Span: TypeAlias = tuple[int, int]

POINTS = 6
"""Pseudo-random points at which a map is compared. One that differs on a part f of its inputs passes all of them with
a probability of (1 - f)**6; a polynomial of degree e over a field of q elements that is not affine has f >= 1 - e/q."""


class NotAffine(Exception):
    """A value differs from what the values at 0 and at the basis vectors say."""


@dataclass(frozen=True)
class Probed:
    """The map x -> matrix x + constant modulo `modulus`; `matrix` has one row for each output."""

    modulus: int
    matrix: tuple[tuple[int, ...], ...]
    constant: tuple[int, ...]

    def __call__(self, point: Sequence[int]) -> list[int]:
        """Return the value at a point."""
        return [
            reduced(offset + sum(a * x for a, x in zip(row, point, strict=True)), self.modulus)
            for row, offset in zip(self.matrix, self.constant, strict=True)
        ]


def reduced(value: int, modulus: int) -> int:
    """Return the residue of an integer in ``[0, modulus)``."""
    return divmod(value, modulus)[1]


def everything(modulus: int) -> Span:
    """Return the span of an input that may be any number below the modulus."""
    return 0, modulus - 1


def probe(modulus: int, core: Core, spans: Sequence[Span]) -> Probed:
    """Return the affine map that a core computes: its value at 0, at each basis vector, and compared at further points.

    Parameters
    ----------
    modulus : int
    core : callable
    spans : sequence of pairs of int
        The smallest and the largest integer that each input may stand for, 0 and 1 among them.

    Raises
    ------
    NotAffine
        The core is not affine at one of the compared points; the message names it.
    """
    size = len(spans)
    constant = tuple(core([0] * size))
    columns = []
    for at in range(size):
        value = core([int(other == at) for other in range(size)])
        columns.append([reduced(v - c, modulus) for v, c in zip(value, constant, strict=True)])
    found = Probed(modulus, tuple(zip(*columns, strict=True)), constant)
    for point in points(modulus, spans):
        got, want = list(core(point)), found(point)
        if got != want:
            at = next(at for at in range(len(want)) if got[at] != want[at])
            raise NotAffine(
                f"the answers at 0 and at the basis vectors say that element {at} is {want[at]} at {point}; "
                f"it is {got[at]}: no affine map modulo {modulus}"
            )
    return found


def points(modulus: int, spans: Sequence[Span]) -> Iterator[list[int]]:
    """Yield the points at which a map is compared: the largest inputs, and pseudo-random ones."""
    yield [reduced(high, modulus) for _, high in spans]
    width = (modulus.bit_length() + 71) // 8
    for number in range(POINTS):
        data = shake_256(f"{modulus} {len(spans)} {number}".encode()).digest(width * len(spans))
        drawn = [int.from_bytes(data[at * width : (at + 1) * width], "little") for at in range(len(spans))]
        yield [
            reduced(low + reduced(value, high - low + 1), modulus)
            for value, (low, high) in zip(drawn, spans, strict=True)
        ]
