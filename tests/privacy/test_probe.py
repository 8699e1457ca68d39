"""The probe finds the matrix of an affine core, and refuses every core that is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, NonCanonical, ParameterError
from secagg_spec.privacy.probe import NotAffine, probe
from tests.strategies import arrays, integers_of, moduli, vector


@given(moduli(), st.integers(1, 4), st.integers(1, 4), st.data())
def test_an_affine_core_is_found_with_its_constant(R: int, inputs: int, outputs: int, data: st.DataObject) -> None:
    ring = Ring(R)
    matrix = data.draw(arrays(R, outputs, inputs))
    constant = data.draw(arrays(R, outputs))
    found = probe(ring, lambda x: ring.add(ring.matmul(matrix, x.reshape(-1, 1))[:, 0], constant), inputs)
    assert np.array_equal(found.matrix, matrix)
    assert np.array_equal(found.constant, constant)
    assert found.linear == (not any(integers_of(constant)))
    x = data.draw(arrays(R, inputs))
    expected = [
        (sum(a * b for a, b in zip(row, integers_of(x), strict=True)) + c) % R
        for row, c in zip(integers_of(matrix), integers_of(constant), strict=True)
    ]
    assert integers_of(found(x)) == expected


def square_in_place(ring: Ring, x: UintArray) -> UintArray:
    """A core that hides behind its own input."""
    x[:] = ring.multiply(x, x)
    return x


WRONG: dict[str, Callable[[Ring, UintArray], UintArray]] = {
    "square": lambda ring, x: ring.multiply(x, x),
    "product of two inputs": lambda ring, x: ring.multiply(x[:1], x[1:2]),
    "product of three inputs": lambda ring, x: ring.multiply(ring.multiply(x[:1], x[1:2]), x[2:]),
    "square in place": square_in_place,
    "wrong at the largest element": lambda ring, x: np.where(x == np.uint64(ring.modulus - 1), np.uint64(0), x),
    "wrong where two inputs are 1": lambda ring, x: vector([int(x[0] == x[1] == 1)]),
    "carry": lambda ring, x: x // np.uint64(2),
    "sum that wraps at another modulus": lambda ring, x: vector([(int(x[0]) + int(x[1])) % (ring.modulus - 1)]),
    "clipped": lambda ring, x: np.minimum(x, np.uint64(1)),
    "sorted": lambda ring, x: np.sort(x),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("R", [5, 6, 257, 2**32 - 5, 2**32])
def test_a_core_that_is_not_affine_is_refused_by_name(name: str, R: int) -> None:
    ring = Ring(R)
    with pytest.raises(NotAffine, match=f"^{name} = 'not affine at .*affine modulo {R}"):
        probe(ring, lambda x: WRONG[name](ring, x), 3, name=name)


@pytest.mark.parametrize("R", [2, 3, 4])
def test_over_few_inputs_one_wrong_value_is_enough(R: int) -> None:
    ring = Ring(R)
    for wrong in np.ndindex(*[R] * 3):
        if sum(wrong) > 1:

            def core(x: UintArray, wrong: tuple[int, ...] = wrong) -> UintArray:
                return vector([int(tuple(x.tolist()) == wrong)])

            with pytest.raises(NotAffine):
                probe(ring, core, 3)


def test_a_core_that_draws_its_own_randomness_is_refused() -> None:
    ring = PrimeField(7)
    calls = iter(range(10**6))
    with pytest.raises(NotAffine):
        probe(ring, lambda x: vector([next(calls) ** 2 % 7]), 2)


def test_a_core_may_use_its_input_as_scratch() -> None:
    def core(x: UintArray) -> UintArray:
        x[0] = 0
        return x

    assert probe(Ring(10), core, 2).matrix.tolist() == [[0, 0], [0, 1]]


def test_values_outside_the_ring_and_changing_lengths_are_refused() -> None:
    ring = Ring(5)
    with pytest.raises(NonCanonical, match="core"):
        probe(ring, lambda x: x + np.uint64(5), 2)
    with pytest.raises(LengthMismatch):
        probe(ring, lambda x: x[: 1 + int(x[0])], 2)
    for inputs in (0, 2**31):
        with pytest.raises(ParameterError, match=rf"^inputs = {inputs}: must be an integer in \[1, 16384\]$"):
            probe(ring, lambda x: x, inputs)
    with pytest.raises(ParameterError, match=r"^values.shape = \(3,\): must be \(2\)$"):
        probe(ring, lambda x: x, 2)(np.zeros(3, np.uint64))


@given(st.data())
def test_a_core_that_takes_many_inputs_at_once_gives_the_same_map(data: st.DataObject) -> None:
    ring = Ring(data.draw(st.sampled_from([2, 6, 2**32])))
    matrix, constant = (data.draw(arrays(ring.modulus, size)) for size in (6, 2))
    matrix = matrix.reshape(2, 3)

    def core(x: UintArray) -> UintArray:
        return ring.add(ring.matmul(matrix, x.reshape(-1, 1))[:, 0], constant)

    def many(points: UintArray) -> UintArray:
        return np.stack([core(point) for point in points])

    one, all_at_once = probe(ring, core, 3), probe(ring, many, 3, together=True)
    assert integers_of(one.matrix) == integers_of(all_at_once.matrix) == integers_of(matrix)
    assert integers_of(one.constant) == integers_of(all_at_once.constant)
    with pytest.raises(NotAffine, match=r"^wrong = .not affine at"):
        probe(Ring(6), lambda points: points * points % np.uint64(6), 2, name="wrong", together=True)
