"""Howell's form, against the enumeration of modules and against the Smith form of python-flint."""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import Any

import pytest
from flint import fmpz_mat
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.privacy.howell import RowModule

Matrix = list[list[int]]


@st.composite
def matrices(draw: st.DrawFn, moduli: tuple[int, ...], most: int) -> tuple[int, Matrix]:
    """A modulus, and a matrix of at most `most` rows and columns."""
    R = draw(st.sampled_from(moduli))
    width = draw(st.integers(1, most))
    rows = st.lists(st.integers(0, R - 1), min_size=width, max_size=width)
    return R, draw(st.lists(rows, min_size=1, max_size=most))


def members(R: int, rows: Matrix) -> set[tuple[int, ...]]:
    """Every member of the module, by running through all combinations."""
    return {
        tuple(sum(c * x for c, x in zip(factors, column, strict=True)) % R for column in zip(*rows, strict=True))
        for factors in product(range(R), repeat=len(rows))
    }


@given(matrices((2, 3, 4, 6, 8, 9, 12), 3))
def test_the_module_has_the_members_that_enumeration_finds(system: tuple[int, Matrix]) -> None:
    R, rows = system
    module, expected = RowModule(R, len(rows[0]), rows), members(R, rows)
    assert module.size == len(expected)
    assert all(row in module for row in expected)
    assert members(R, [list(row) for row in module.rows] or [[0] * len(rows[0])]) == expected
    outside = [row for row in product(range(R), repeat=len(rows[0])) if row not in expected]
    assert not any(row in module for row in outside)


@given(matrices((4, 6, 8, 12), 3), st.data())
def test_members_that_vanish_on_the_first_columns_are_found(system: tuple[int, Matrix], data: st.DataObject) -> None:
    R, rows = system
    width = len(rows[0])
    columns = data.draw(st.integers(0, width))
    expected = {row[columns:] for row in members(R, rows) if not any(row[:columns])}
    found = [list(row) for row in RowModule(R, width, rows).vanishing(columns)]
    assert members(R, found or [[0] * (width - columns)]) == expected


@given(matrices((2, 4, 6, 30, 2**16, 2**32 - 5, 2**32), 6))
def test_the_size_is_that_of_the_invariant_factors(system: tuple[int, Matrix]) -> None:
    R, rows = system
    smith = fmpz_mat(rows).snf()
    factors = [int(smith[i, i]) for i in range(min(smith.nrows(), smith.ncols()))]
    assert RowModule(R, len(rows[0]), rows).size == prod(R // gcd(d, R) for d in factors)


@given(matrices((4, 6, 12, 2**32), 5))
def test_the_form_depends_on_the_module_only(system: tuple[int, Matrix]) -> None:
    R, rows = system
    form = RowModule(R, len(rows[0]), rows).rows
    again = RowModule(R, len(rows[0]), [*rows[::-1], *form]).rows
    assert form == again
    pivots = [next(x for x in row if x) for row in form]
    assert all(R % pivot == 0 for pivot in pivots)


def test_a_row_is_reduced_from_the_left_whatever_came_in_first() -> None:
    module = RowModule(9, 2, [[0, 1], [1, 1]])
    assert module.reduce([1, 0]) == (0, 0)


@pytest.mark.parametrize(("modulus", "width", "named"), [(0, 2, "modulus"), (1, 2, "modulus"), (12, -1, "width")])
def test_what_has_no_modules_is_refused(modulus: int, width: int, named: str) -> None:
    with pytest.raises(ParameterError, match=f"^{named} = "):
        RowModule(modulus, width)


@pytest.mark.parametrize("row", [[1], [1, 2, 3], []])
def test_a_row_of_another_width_is_refused(row: list[int]) -> None:
    module = RowModule(12, 2)
    for take in (module.add, module.reduce, module.__contains__):
        with pytest.raises(LengthMismatch, match=rf"^len\(row\) = {len(row)}: must be the width, 2$"):
            take(row)


@pytest.mark.parametrize("entry", [float("nan"), 0.5, 1.0, True, None, "1"])
def test_entries_that_are_no_integers_are_refused(entry: Any) -> None:
    module = RowModule(12, 2)
    for take in (module.add, module.reduce, module.__contains__):
        with pytest.raises(ParameterError, match=rf"^row\[1\] = '{type(entry).__name__}': must be an integer$"):
            take([1, entry])
    with pytest.raises(ParameterError, match=rf"^rows\[1\]\[1\] = '{type(entry).__name__}': must be an integer$"):
        RowModule(12, 2, [[1, 2], [1, entry]])


@pytest.mark.parametrize("wrong", [None, 3, "ab", b"ab", iter([1, 2])])
def test_what_is_no_row_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^row = '.*': must be a list or another sequence of integers$"):
        RowModule(12, 2).add(wrong)


def test_rows_and_columns_of_another_kind_are_refused() -> None:
    rows: Any = 3
    with pytest.raises(ParameterError, match=r"^rows = 'int': must be a list or another iterable$"):
        RowModule(12, 2, rows)
    columns: Any
    for columns in (-1, 3, 0.5, True, None):
        with pytest.raises(ParameterError, match=rf"^columns = {columns}: must be an integer in \[0, 2\]$"):
            RowModule(12, 2).vanishing(columns)
