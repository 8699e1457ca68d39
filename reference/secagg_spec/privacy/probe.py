"""Find the exact matrix of a pure core by running it.

An affine core is determined by its values at 0 and at each basis vector. Whether the core *is* affine is then checked
at further points: at all inputs if there are few, otherwise at multiples and sums of basis vectors and at pseudorandom
inputs.

How strong the check is: a core that differs from the affine map on a fraction f of its inputs passes one pseudorandom
point with probability 1 - f. Over a field, a polynomial of degree e that is not affine has f of at least 1 - e/q.

Source: docs/explanation/privacy-verdicts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.errors import ParameterError

Core: TypeAlias = Callable[[UintArray], UintArray]

_EVERY_INPUT = 512
_SAMPLES = 32


class NotAffine(ParameterError):
    """Raised when the outputs of a probed core are not an affine function of its inputs."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """The map x -> matrix @ x + constant; `matrix` is (m, n), `constant` (m,), both elements of `ring`."""

    ring: Ring
    matrix: UintArray
    constant: UintArray

    @property
    def linear(self) -> bool:
        """Whether the constant is 0."""
        return not self.constant.any()

    def __call__(self, values: UintArray) -> UintArray:
        """Return the value at n elements: m elements; raises `ParameterError` for other values."""
        self.ring.check("values", values, (self.matrix.shape[1],))
        return self.ring.add(self.ring.matmul(self.matrix, values.reshape(-1, 1))[:, 0], self.constant)


def probe(ring: Ring, core: Core, inputs: int, *, name: str = "core", together: bool = False) -> AffineMap:
    """Return the affine map that `core` computes.

    Parameters
    ----------
    ring : Ring
        The integers modulo R in which the core computes.
    core : callable
        Takes `inputs` elements and returns m elements, the same m for every input.
    inputs : int
        The number of inputs, in [1, 2^14]; memory grows with its square.
    name : str
        The name of the core in error messages.
    together : bool
        Whether the core takes many inputs at once, as the rows of an array, and returns as many rows of m elements.

    Raises
    ------
    NotAffine
        The core differs at some point from the affine map determined by its values at 0 and at the basis vectors.
    """
    inputs = validate.integer("inputs", inputs, 1, 2**14)

    def values(points: UintArray) -> UintArray:
        if together:
            return ring.check(name, core(points.copy()), (len(points), None))
        first = ring.check(name, core(points[0].copy()), (None,))
        rest = (ring.check(name, core(point.copy()), (first.size,)) for point in points[1:])
        return np.stack([first, *rest])

    constant, *of_basis = values(np.concatenate([np.zeros((1, inputs), np.uint64), np.eye(inputs, dtype=np.uint64)]))
    found = AffineMap(ring, np.stack([ring.subtract(value, constant) for value in of_basis], axis=1), constant)
    points = np.stack(list(_points(ring, inputs)))
    expected = ring.add(ring.matmul(points, np.ascontiguousarray(found.matrix.T)), np.tile(constant, (len(points), 1)))
    wrong = np.flatnonzero((values(points) != expected).any(axis=1))
    if wrong.size:
        raise NotAffine(name, f"not affine at {tuple(points[wrong[0]].tolist())}", f"affine modulo {ring.modulus}")
    return found


def _points(ring: Ring, inputs: int) -> Iterator[UintArray]:
    """Yield the inputs at which a map is compared with its core, including the zero vector."""
    if ring.modulus**inputs <= _EVERY_INPUT:
        yield from (np.array(point, dtype=np.uint64) for point in product(range(ring.modulus), repeat=inputs))
        return
    basis = np.eye(inputs, dtype=np.uint64)
    yield np.zeros(inputs, dtype=np.uint64)
    yield from basis * np.uint64(ring.modulus - 1)
    yield from (ring.add(left, right) for left, right in pairwise(basis))
    source = SeededSource(b"probe", f"{ring.modulus} {inputs}")
    yield from draw_elements(source, ring, (_SAMPLES, inputs))


guard(__name__)
