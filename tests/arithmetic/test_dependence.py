"""Dependent columns against trying all sets, with the ranks of python-flint."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from flint import nmod_mat
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from secagg_spec.arithmetic import dependence
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from tests.strategies import arrays

PRIMES = (2, 5, 7, 13, 101, 2**31 - 1)


@st.composite
def systems(draw: st.DrawFn) -> tuple[PrimeField, UintArray, int]:
    """Small matrices, most of small entries, so that many of their columns are dependent, and a size."""
    q, size = draw(st.sampled_from(PRIMES)), draw(st.integers(1, 5))
    shape = (draw(st.integers(size, 6)), draw(st.integers(1, 9)))
    return PrimeField(q), draw(arrays(draw(st.sampled_from([2, 3, q])), *shape)), size


def dependent(field: PrimeField, matrix: UintArray, columns: tuple[int, ...]) -> bool:
    some = matrix[:, columns]
    return int(nmod_mat(some.tolist(), field.modulus).rank()) < len(columns)


@given(systems(), st.data())
def test_a_lightest_set_is_found_unless_a_part_of_it_is_dependent(
    system: tuple[PrimeField, UintArray, int], data: st.DataObject
) -> None:
    field, matrix, size = system
    count = matrix.shape[1]
    weights = data.draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    check(field, matrix, size, np.sort(np.array(weights, dtype=np.int64)))


@pytest.mark.parametrize("seed", range(30))
def test_a_lightest_set_is_found_among_several(seed: int) -> None:
    generator = np.random.default_rng(seed)
    for size in (2, 3, 4):
        for field in map(PrimeField, PRIMES):
            matrix = generator.integers(0, min(4, field.modulus), (size, 9), dtype=np.uint64)
            check(field, matrix, size, np.sort(generator.integers(1, 9, 9)))


def check(field: PrimeField, matrix: UintArray, size: int, weights: NDArray[np.int64]) -> None:
    """Compare with all sets."""
    count = matrix.shape[1]
    found = dependence.lightest(field, matrix, size, weights)
    circuits = [
        columns
        for columns in combinations(range(count), size)
        if dependent(field, matrix, columns)
        and not any(dependent(field, matrix, fewer) for fewer in combinations(columns, size - 1))
    ]
    if found is not None:
        assert list(found) == sorted(set(found))
        assert len(found) == size
        assert dependent(field, matrix, found)
    for columns in circuits:
        assert found is not None
        assert weights[list(found)].sum() <= weights[list(columns)].sum()


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("states", [1, 2**13])
def test_one_set_among_many_is_found(size: int, states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "_MOST_STATES", states)
    field, generator = PrimeField(2**31 - 1), np.random.default_rng(size)
    matrix = generator.integers(0, field.modulus, (7, 40), dtype=np.uint64)
    weights = np.ones(40, dtype=np.int64)
    assert dependence.lightest(field, matrix, size, weights) is None
    chosen = np.sort(generator.permutation(40)[:size])
    steps = generator.integers(1, field.modulus, (size - 1, 1), dtype=np.uint64)
    matrix[:, chosen[-1]] = field.matmul(np.ascontiguousarray(matrix[:, chosen[:-1]]), steps)[:, 0]
    assert dependence.lightest(field, matrix, size, weights) == tuple(chosen.tolist())


def test_cost_is_what_is_compared() -> None:
    assert [dependence.cost(120, size) for size in (1, 2, 3, 4)] == [120, 120, 7140, 280840]


def scrambled(modulus: int, rows: int, columns: int, seed: int) -> list[list[int]]:
    """The numbers that rows are mixed with, in Python integers."""
    numbers = [at + 1_000_003 * seed for at in range(1, rows * columns + 1)]
    for _ in range(5):
        numbers = [(number**2 + 0x9E3779B9) % modulus for number in numbers]
    return [numbers[at * columns :][:columns] for at in range(rows)]


@pytest.mark.parametrize("unlucky", range(4))
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_rows_are_mixed_anew_when_a_mixture_hides_a_column(
    size: int, unlucky: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column is made whose first mixed entry is 0 in each of the first mixtures, and the rest is drawn."""
    field, rows, count = PrimeField(2**31 - 1), 6, 12
    mixtures = [scrambled(field.modulus, size, rows, seed) for seed in (1, 2, 3)]
    generator, tried = np.random.default_rng(size), list[int]()
    matrix = generator.integers(0, field.modulus, (rows, count), dtype=np.uint64)
    if unlucky:
        hidden, _ = nmod_mat([mixture[0] for mixture in mixtures[:unlucky]], field.modulus).nullspace()
        matrix[:, 0] = [int(hidden[at, 0]) for at in range(rows)]
    matrix[:, 7] = np.uint64(2) * matrix[:, : size - 1].sum(axis=1) % np.uint64(field.modulus)
    mixer = dependence._mixer

    def counted(field: PrimeField, rows: int, columns: int, seed: int) -> UintArray:
        tried.append(seed)
        mixed = mixer(field, rows, columns, seed)
        assert mixed.tolist() == mixtures[seed - 1]
        return mixed

    monkeypatch.setattr(dependence, "_mixer", counted)
    assert dependence.lightest(field, matrix, size, np.ones(count, dtype=np.int64)) == (*range(size - 1), 7)
    assert tried == [1, 2, 3][: unlucky + 1]


@pytest.mark.parametrize(("rows", "size", "modulus"), [(3, 0, 7), (3, -1, 7), (3, 4, 7), (3, 2, 2**31 + 11)])
def test_what_no_caller_asks_for_is_an_assertion(rows: int, size: int, modulus: int) -> None:
    with pytest.raises(AssertionError):
        dependence.lightest(PrimeField(modulus), np.zeros((rows, 5), dtype=np.uint64), size, np.ones(5, dtype=np.int64))
