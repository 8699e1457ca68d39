"""Determine the exact affine map that an implementation computes, by queries.

`secagg_spec.privacy.probe` does the same for the reference's own cores. Here each value costs a request, and the field
of secret sharing has 521 bits; therefore numbers are Python integers, and fewer points are compared.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.crypto.entropy import SeededSource

Core: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Takes one number below the modulus for each input, and returns a fixed number of numbers below the modulus."""
Span: TypeAlias = tuple[int, int]

POINTS = 6
"""The number of random points at which a map is compared. A core that differs on a fraction f of its inputs passes
with probability (1 - f)**6; for a non-affine polynomial of degree e over a field of q elements, f >= 1 - e/q."""
SWEEP = 640
"""The number of points of a sweep. If an input has at most so many values, it takes all of them; otherwise it takes
its ends, the numbers around 0, and all first and last bytes. The order is random (CNF-66)."""
_FEWEST, _NEAR, _BYTE = 32, 32, 256


class NotAffine(Exception):
    """A value differs from the affine map given by the values at 0 and at the basis vectors."""


@dataclass(frozen=True)
class Probed:
    """The map x -> matrix x + constant modulo `modulus`; `matrix` has one row for each output."""

    modulus: int
    matrix: tuple[tuple[int, ...], ...]
    constant: tuple[int, ...]

    @cached_property
    def _columns(self) -> list[tuple[int, Any]]:
        """The inputs on which outputs depend, each with its column; the constant comes last, with index -1."""
        columns = [*zip(*self.matrix, strict=True), self.constant]
        kind: Any = object if self._type is int else self._type
        arrays = [(at, np.array(column, dtype=kind)) for at, column in enumerate(columns)]
        return [(at, column) for at, column in arrays if column.any() or at == len(columns) - 1]

    @cached_property
    def _table(self) -> Any:
        """The columns as one array, if a machine word can hold a product of two residues; else None."""
        terms = [column for _, column in self._columns[:-1]]
        return None if self._type is int or not terms else np.ascontiguousarray(np.column_stack(terms))

    @property
    def _type(self) -> type:
        """The type that can hold a product of two residues."""
        return np.uint64 if self.modulus <= 2**32 else int

    def __call__(self, point: Sequence[int]) -> list[int]:
        """Return the value at a point."""
        *terms, (_, total) = self._columns
        if self._table is not None:
            factors = np.array([reduced(point[at], self.modulus) for at, _ in terms], dtype=np.uint64)
            total = (total + (self._table * factors % self.modulus).sum(axis=1, dtype=np.uint64)) % self.modulus
            terms = []
        for at, column in terms:
            total = (total + column * reduced(point[at], self.modulus)) % self.modulus
        values: list[int] = total.tolist()
        return values


def reduced(value: int, modulus: int) -> int:
    """Return the residue of an integer in ``[0, modulus)``."""
    return divmod(value, modulus)[1]


def everything(modulus: int) -> Span:
    """Return the span of an input that may be any number below the modulus."""
    return 0, modulus - 1


def probe(modulus: int, core: Core, spans: Sequence[Span], seed: int = 0) -> Probed:
    """Return the affine map of a core: query 0 and each basis vector, then compare at further points.

    Parameters
    ----------
    modulus : int
    core : callable
    spans : sequence of pairs of int
        The smallest and the largest integer that each input may stand for; 0 and 1 must lie between them.
    seed : int
        The seed of the points, below 2**32.

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
    compare(found, core, points(modulus, spans, seed, 0))
    return found


def compare(found: Probed, core: Core, points: Iterable[Sequence[int]]) -> None:
    """Compare a core with a map at some points; raise `NotAffine` if they differ."""
    for point in points:
        got, want = list(core(point)), found(point)
        if got != want:
            at = next(at for at in range(len(want)) if got[at] != want[at])
            raise NotAffine(
                f"the answers at 0 and at the basis vectors say that element {at} is {want[at]} at {point}; "
                f"it is {got[at]}: no affine map modulo {found.modulus}"
            )


def points(modulus: int, spans: Sequence[Span], seed: int = 0, sweep: int = SWEEP) -> Iterator[list[int]]:
    """Yield the points for comparing a map: the largest inputs, a sweep of `sweep` points, and random points."""
    yield [reduced(high, modulus) for _, high in spans]
    source = SeededSource(seed.to_bytes(4, "little"), f"points {modulus} {len(spans)}")
    count = min(sweep, max([_FEWEST, *(high - low + 1 for low, high in spans)]))
    columns = [_swept(source, low, high, count) for low, high in spans]
    for point in zip(*columns, strict=True):
        yield [reduced(value, modulus) for value in point]


def _swept(source: SeededSource, low: int, high: int, count: int) -> list[int]:
    """Return the values of one input: as many special values as the sweep has points, then random ones."""
    width = high - low + 1
    size = (width.bit_length() + 71) // 8
    data = source.take(size * max(_BYTE, count + POINTS))
    drawn = [low + reduced(int.from_bytes(data[at : at + size], "little"), width) for at in range(0, len(data), size)]
    values = range(low, high + 1) if width <= count else _telling(low, high, drawn)
    order = np.argsort(np.frombuffer(source.take(8 * len(values)), "<u8"), kind="stable")[:count]
    return [*(values[at] for at in order.tolist()), *drawn[len(order) : count + POINTS]]


def _telling(low: int, high: int, drawn: Sequence[int]) -> list[int]:
    """Return the ends, the numbers around 0, and for each byte two random numbers, which begin and end with it."""
    near = {value for end in (low, 0, high) for value in range(end - _NEAR, end + _NEAR + 1) if low <= value <= high}
    top = max((high - low).bit_length() - 8, 0)
    ends = [value - (value & _BYTE - 1) + byte for byte, value in enumerate(drawn[:_BYTE])]
    tops = [low + (byte << top) + (value - low & (1 << top) - 1) for byte, value in enumerate(drawn[:_BYTE])]
    return [*sorted(near), *(value for value in (*ends, *tops) if low <= value <= high)]
