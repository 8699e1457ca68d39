"""Elimination over prime fields, against python-flint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flint import nmod_mat
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import echelon
from secagg_spec.privacy.echelon import eliminate, independent_rows, rank, reduced_basis
from tests.strategies import arrays, integers_of, primes, pseudorandom


@pytest.fixture(autouse=True, scope="module", params=[0, 512], ids=["arrays", "integers"])
def small(request: pytest.FixtureRequest) -> Iterator[None]:
    """Eliminate all matrices in arrays, or all of these tests in Python integers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(echelon, "_SMALL", request.param)
        yield


@st.composite
def systems(draw: st.DrawFn) -> tuple[PrimeField, UintArray]:
    """Matrices of every shape up to 6 x 6, zero rows and columns among them."""
    q = draw(primes())
    return PrimeField(q), draw(arrays(q, draw(st.integers(0, 6)), draw(st.integers(1, 6))))


def in_flint(matrix: UintArray, q: int) -> nmod_mat:
    """The matrix in python-flint."""
    return nmod_mat(matrix.shape[0], matrix.shape[1], [int(x) for x in matrix.ravel()], q)


def flint_rank(matrix: UintArray, q: int) -> int:
    """The rank according to python-flint."""
    return int(in_flint(matrix, q).rank()) if matrix.size else 0


@given(systems())
def test_rank_agrees_with_flint(system: tuple[PrimeField, UintArray]) -> None:
    field, matrix = system
    assert rank(field, matrix) == flint_rank(matrix, field.modulus)


@given(systems())
def test_the_reduced_basis_is_the_reduced_echelon_form_of_flint(system: tuple[PrimeField, UintArray]) -> None:
    field, matrix = system
    found = reduced_basis(field, matrix)
    if matrix.size:
        form, count = in_flint(matrix, field.modulus).rref()
        assert integers_of(found) == [[int(x) for x in row] for row in form.tolist()[:count]]


@given(systems(), st.data())
def test_rows_without_a_pivot_generate_what_vanishes_there(
    system: tuple[PrimeField, UintArray], data: st.DataObject
) -> None:
    field, matrix = system
    columns = data.draw(st.integers(0, matrix.shape[1]))
    rest = eliminate(field, matrix, columns).rest
    assert not rest[:, :columns].any()
    left = flint_rank(np.ascontiguousarray(matrix[:, :columns]), field.modulus)
    assert flint_rank(rest, field.modulus) == flint_rank(matrix, field.modulus) - left


@given(systems())
def test_independent_rows_are_those_that_raise_the_rank(system: tuple[PrimeField, UintArray]) -> None:
    field, matrix = system
    ranks = [flint_rank(matrix[:count], field.modulus) for count in range(len(matrix) + 1)]
    assert independent_rows(field, matrix) == [row for row in range(len(matrix)) if ranks[row + 1] > ranks[row]]


@pytest.mark.parametrize("q", [2, 7, 2**32 - 5])
def test_a_large_sparse_matrix_keeps_its_rank(q: int) -> None:
    field = PrimeField(q)
    matrix = pseudorandom(5, q, 90, 80) * (pseudorandom(6, 10, 90, 80) == 0)
    assert rank(field, matrix) == flint_rank(matrix, q)


@pytest.mark.parametrize("rows", [2, 200])
def test_what_has_no_elements_of_the_field_is_refused(rows: int) -> None:
    field, right = PrimeField(7), np.ones((rows, 3), dtype=np.uint64)
    wrong: Any
    for wrong in (right + np.uint64(6), right.astype(np.int64), right.astype(float), right.tolist(), right[0], None):
        for call in (eliminate, rank, reduced_basis, independent_rows):
            with pytest.raises(ParameterError, match=r"^matrix(\[0\](\[0\])?|\.shape)? = "):
                call(field, wrong)
    with pytest.raises(ParameterError, match=r"^reduced = 'str': must be of the class bool$"):
        eliminate(field, right, reduced="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("columns", [-1, 4, 1.0])
@pytest.mark.parametrize("rows", [2, 200])
def test_columns_that_a_matrix_does_not_have_are_refused(rows: int, columns: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^columns = {columns}: must be an integer in \[0, 3\]$"):
        eliminate(PrimeField(7), np.ones((rows, 3), dtype=np.uint64), columns)


@given(systems(), st.data())
def test_integers_and_arrays_are_eliminated_alike(system: tuple[PrimeField, UintArray], data: st.DataObject) -> None:
    field, matrix = system
    columns, reduced = data.draw(st.none() | st.integers(0, matrix.shape[1])), data.draw(st.booleans())
    found = []
    for most in (0, matrix.size):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(echelon, "_SMALL", most - (not most))
            found.append(eliminate(field, matrix, columns, reduced=reduced))
    assert found[0].pivots == found[1].pivots
    assert found[0].work.dtype == found[1].work.dtype
    assert integers_of(found[0].work) == integers_of(found[1].work)
