"""The screen modulo a prime and the exact arithmetic behind it."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from secagg_spec.arithmetic import rationals
from secagg_spec.arithmetic.row_space import PRIMES, RowSpace
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import LengthMismatch, ParameterError


def logs(most_rows: int = 8, most_columns: int = 7) -> st.SearchStrategy[BoolArray]:
    """Matrices of truth values."""
    sizes = st.tuples(st.integers(0, most_rows), st.integers(1, most_columns))
    return sizes.flatmap(
        lambda size: st.lists(
            st.lists(st.booleans(), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
        ).map(lambda rows: np.array(rows, dtype=bool).reshape(size))
    )


@given(logs(), st.sampled_from((2, 3, 7, PRIMES[0])))
def test_the_basis_is_reduced_and_made_of_the_independent_rows(log: BoolArray, prime: int) -> None:
    space, kept = RowSpace(log.shape[1], prime), []
    for row in log:
        if space.add(row):
            kept.append(row)
    rows = np.array(kept, dtype=np.uint64).reshape(len(kept), log.shape[1])
    assert space.rank == len(kept)
    assert (space.origins @ rows % np.uint64(prime) == space.basis).all()
    assert (space.basis[:, space.pivots] == np.eye(space.rank, dtype=np.uint64)).all()
    for row in log:
        rest = row.astype(np.uint64) + (np.uint64(prime) - 1) * (row[space.pivots].astype(np.uint64) @ space.basis)
        assert not (rest % np.uint64(prime)).any()


@given(logs(), st.integers(0, 8), st.sampled_from((2, 3, 7, PRIMES[0])))
def test_many_rows_are_added_as_one_by_one(log: BoolArray, already: int, prime: int) -> None:
    space, together = RowSpace(log.shape[1], prime), RowSpace(log.shape[1], prime)
    for row in log[:already]:
        together.add(row)
    basis = together.basis.copy()
    longer, independent = together.extended(log[already:])
    assert (together.basis == basis).all()
    assert independent == [at - already for at, row in enumerate(log) if space.add(row) and at >= already]
    for name in ("pivots", "basis", "origins"):
        assert getattr(space, name).tolist() == getattr(longer, name).tolist()
    assert longer.rank == space.rank


@given(logs())
def test_units_and_rank_are_those_over_the_rationals_for_small_matrices(log: BoolArray) -> None:
    space = RowSpace(log.shape[1])
    for row in log:
        space.add(row)
    exact = sympy.Matrix(*log.shape, log.astype(int).ravel().tolist())
    assert space.rank == exact.rank() == rationals.rank(log)
    inside = [
        column
        for column in range(log.shape[1])
        if exact.col_join(sympy.eye(log.shape[1])[column, :]).rank() == exact.rank()
    ]
    assert space.units().tolist() == inside


def test_a_prime_may_see_less_than_the_rationals() -> None:
    log = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    ranks = []
    for prime in (2, PRIMES[0]):
        space = RowSpace(3, prime)
        for row in log:
            space.add(row)
        ranks.append(space.rank)
    assert ranks == [2, 3]


_big = st.integers(-(2**200), 2**200)


@given(logs(6, 5), st.data())
def test_products_with_large_numbers_are_exact(log: BoolArray, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.one_of(_big, st.just(0)), min_size=log.shape[1], max_size=log.shape[1]))
    expected = tuple(sum(n for hit, n in zip(row, numbers, strict=True) if hit) for row in log)
    assert rationals.multiply(log, numbers) == expected
    assert rationals.in_kernel(log, numbers) == (not any(expected))


@given(st.integers(-(2**14), 2**14), st.integers(1, 2**14))
def test_small_fractions_are_found_again(top: int, bottom: int) -> None:
    prime = PRIMES[0]
    residue = top * pow(bottom, -1, prime) % prime
    assert rationals.small_fractions(np.array([residue], dtype=np.uint64), prime) == (Fraction(top, bottom),)


@pytest.mark.parametrize("prime", [73, 97, 101, 199])
def test_a_residue_is_the_one_small_fraction_or_none(prime: int) -> None:
    bound = isqrt(prime // 2)
    small = {Fraction(top, bottom) for top in range(-bound, bound + 1) for bottom in range(1, bound + 1)}
    known = {each.numerator * pow(each.denominator, -1, prime) % prime: (each,) for each in small}
    assert len(known) == len(small) < prime
    for residue in range(prime):
        found = rationals.small_fractions(np.array([residue], dtype=np.uint64), prime)
        assert found == known.get(residue)


@given(logs(5, 5), st.lists(_big, min_size=5, max_size=5))
def test_solutions_solve(log: BoolArray, right: list[int]) -> None:
    size = min(log.shape)
    matrix = log[:size, :size]
    if rationals.rank(matrix) < size:
        with pytest.raises(ParameterError, match="invertible"):
            rationals.solve(matrix, right[:size])
        return
    found = rationals.solve(matrix, right[:size])
    assert [sum(x for hit, x in zip(row, found, strict=True) if hit) for row in matrix] == right[:size]


@given(logs())
def test_independent_columns_are_the_first_ones(log: BoolArray) -> None:
    exact = sympy.Matrix(*log.shape, log.astype(int).ravel().tolist())
    assert rationals.independent_columns(log, PRIMES[0]) == list(exact.rref()[1])


@pytest.mark.parametrize("prime", [4, 2**32, 2**62, 2**64 + 13, 1, 0, -7, 7.0, True])
@pytest.mark.parametrize("matrix", [np.array([[2, 0], [0, 1]]), np.zeros((0, 2), dtype=bool)])
def test_independent_columns_are_sought_modulo_a_prime_alone(matrix: NDArray[Any], prime: Any) -> None:
    """FLINT ends the whole process where it cannot invert."""
    with pytest.raises(ParameterError, match=r"^prime = "):
        rationals.independent_columns(matrix, prime)


@pytest.mark.parametrize("row", [[True, False], np.array([1, 0]), np.array([True])])
def test_rows_of_another_kind_are_refused(row: object) -> None:
    with pytest.raises(ParameterError, match="row"):
        RowSpace(2).add(row)  # type: ignore[arg-type]


def test_large_entries_are_not_reduced_and_fractions_are_refused() -> None:
    large = np.array([[2**63 + 1, 1], [2**63 + 1, 1]], dtype=np.uint64)
    assert rationals.rank(large) == 1
    assert rationals.rank(large[:1] // np.uint64(1)) == 1
    assert rationals.rank(large[:0]) == rationals.rank(large[:, :0]) == 0
    assert rationals.solve(np.array([[2**64 - 1]], dtype=np.uint64), [2**64 - 1]) == (Fraction(1),)
    for wrong in (np.array([[0.5]]), np.array([["1"]]), np.array([1]), np.zeros((0, 3, 3), int), np.zeros((0, 3))):
        with pytest.raises(ParameterError, match="matrix = "):
            rationals.rank(wrong)


def test_as_many_columns_are_multiplied_as_stay_exact() -> None:
    """A sum of fewer than 2**21 numbers below 2**32 is below 2**53."""
    most = 2**21 - 1
    assert rationals.multiply(np.ones((1, most), dtype=bool), [0] * (most - 1) + [2**70]) == (2**70,)
    for call in (rationals.multiply, rationals.in_kernel):
        with pytest.raises(
            ParameterError, match=r"^matrix = .*2097152 columns.*: must be of fewer than 2097152 columns$"
        ):
            call(np.ones((1, 2**21), dtype=bool), [])


def test_products_with_numbers_of_every_length_are_exact() -> None:
    for number in (sign * 2**bits - less for bits in range(200) for sign in (1, -1) for less in (0, 1)):
        assert rationals.multiply(np.array([[True, False], [True, True]]), [number, 1]) == (number, number + 1)
        assert rationals.in_kernel(np.ones((1, 2), dtype=bool), [number, -number])
        for count in (1, 2, 4):
            assert rationals.in_kernel(np.ones((1, count), dtype=bool), [number] * count) is (number == 0)


@pytest.mark.parametrize(
    ("shape", "rights", "error", "said"),
    [
        ((2, 2), [[1] * 2, [1] * 3], LengthMismatch, r"^len\(right\) = 3: must be 2, one number for each row"),
        ((2, 2), [[1] * 3, [1] * 2], LengthMismatch, r"^len\(right\) = 3"),
        ((2, 2), [[1]], LengthMismatch, r"^len\(right\) = 1"),
        ((0, 0), [[1]], LengthMismatch, r"^len\(right\) = 1: must be 0"),
        ((2, 3), [[1, 1]], LengthMismatch, r"^matrix\.shape = \(2, 3\): must be \(2, 2\)"),
        ((3, 2), [], LengthMismatch, r"^matrix\.shape"),
        ((2, 2), [[1, 0.5]], ParameterError, "^right = 'float': must be integers"),
        ((2, 2), [[1, True]], ParameterError, "^right = 'bool'"),
        ((2, 2), [5], ParameterError, "^right = 'int': must be a list"),
    ],
)
def test_systems_of_other_sizes_or_numbers_are_refused(
    shape: tuple[int, int], rights: list[list[Any]], error: type[ParameterError], said: str
) -> None:
    with pytest.raises(error, match=said):
        rationals.solve_all(np.eye(*shape, dtype=np.int64), rights)


@pytest.mark.parametrize("prime", [4, 6, 2**31, 1, 2**31 + 11])
def test_rows_are_reduced_modulo_a_prime_alone(prime: int) -> None:
    with pytest.raises(ParameterError, match=rf"^prime = {prime}: must be "):
        RowSpace(3, prime)


@pytest.mark.requirement("ERR-02")
def test_columns_of_what_is_no_array_are_refused() -> None:
    matrix: Any = [[1, 1, 0], [2, 2, 1]]
    table: Any
    for table in (matrix, []):
        with pytest.raises(ParameterError, match=r"^matrix = 'list': must be a numpy array"):
            rationals.independent_columns(table, 101)
    assert rationals.independent_columns(np.array(matrix), 101) == [0, 2]
    assert rationals.independent_columns(np.zeros((0, 3), np.int64), 101) == []
