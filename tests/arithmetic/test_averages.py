"""Means, medians and trimmed means of cells against exact rational arithmetic, huge and tiny numbers included."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, frexp, ldexp
from statistics import median as exact_median
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.arithmetic.averages import combined, median, trimmed_mean, weighted_mean
from secagg_spec.arithmetic.levels import LARGEST
from secagg_spec.arithmetic.segments import cyclic, perfect
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from tests.strategies import integers_of, pseudorandom, snapshot

SCALES = (5e-324, 1e-320, 1e-300, 1.0, 1e300, LARGEST)


@st.composite
def tables(draw: st.DrawFn, max_cells: int = 7) -> RealArray:
    """Means of cells, between -r and r for some r, huge and tiny ones and equal ones among them."""
    scale = draw(st.sampled_from(SCALES))
    cells, length = draw(st.integers(1, max_cells)), draw(st.integers(0, 3))
    entries = st.sampled_from((scale, -scale, 0.0, scale / 2, 5e-324)) | st.floats(-scale, scale)
    rows = st.lists(st.lists(entries, min_size=length, max_size=length), min_size=cells, max_size=cells)
    return np.array(draw(rows), dtype=np.float64).reshape(cells, length)


def exact(means: RealArray) -> list[list[Fraction]]:
    """The columns as rational numbers."""
    return [[Fraction(value) for value in column] for column in integers_of(means.T)]


def near(got: RealArray, wanted: list[Fraction], means: RealArray) -> None:
    """What is computed is within the tolerance of the text, and between the least and the largest mean."""
    largest = Fraction(float(np.abs(means).max(initial=0.0)))
    for value, want, column in zip(integers_of(got), wanted, integers_of(means.T), strict=True):
        assert abs(Fraction(value) - want) <= largest / 2**45 + Fraction(1, 2**1074)
        assert min(column) <= value <= max(column)


@pytest.mark.requirement("HSA-24")
@given(tables(), st.data())
def test_the_mean_weighs_each_cell_by_its_users(means: RealArray, data: st.DataObject) -> None:
    count = st.integers(1, 5) | st.sampled_from((2**16, 2**32 - 1))
    counts = data.draw(st.lists(count, min_size=len(means), max_size=len(means)))
    wanted = [
        sum((weight * value for weight, value in zip(counts, column, strict=True)), Fraction(0)) / sum(counts)
        for column in exact(means)
    ]
    near(weighted_mean(means, counts), wanted, means)


@given(tables(), st.integers(1, 9))
@example(pseudorandom(1, 2**53, 5, 64) / 2**53, 3)
def test_the_mean_has_the_same_last_bit_on_every_processor(means: RealArray, count: int) -> None:
    """One rounding after each product and each sum, in the order of the cells, as Python's own numbers have it."""
    counts = [count + at for at in range(len(means))]
    for value, column in zip(integers_of(weighted_mean(means, counts)), integers_of(means.T), strict=True):
        up = frexp(max(map(abs, column)))[1]
        total, scaled = 0.0, [ldexp(entry, -up) for entry in column]
        for weight, entry in zip(counts, scaled, strict=True):
            total += weight * entry
        assert value == ldexp(min(max(total / sum(counts), min(scaled)), max(scaled)), up)


@pytest.mark.requirement("HSA-25")
@given(tables())
def test_the_median_is_that_of_each_coordinate(means: RealArray) -> None:
    near(median(means), [exact_median(column) for column in exact(means)], means)


@pytest.mark.requirement("HSA-26")
@given(tables(), st.data())
def test_the_trimmed_mean_leaves_out_the_largest_and_the_smallest(means: RealArray, data: st.DataObject) -> None:
    trim = data.draw(st.integers(0, (len(means) - 1) // 2))
    kept = [sorted(column)[trim : len(column) - trim] for column in exact(means)]
    near(trimmed_mean(means, trim), [sum(column, Fraction(0)) / len(column) for column in kept], means)


@pytest.mark.requirement("HSA-26", "ERR-02")
@given(tables(), st.integers(0, 9))
def test_no_more_is_trimmed_than_leaves_something(means: RealArray, trim: int) -> None:
    if 2 * trim >= len(means):
        with pytest.raises(ParameterError, match="trim"):
            trimmed_mean(means, trim)
    else:
        trimmed_mean(means, trim)


@pytest.mark.requirement("HSA-24", "HSA-25", "HSA-26")
@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 5e-324, 0.0, 0.1])
@pytest.mark.parametrize("cells", range(1, 12))
def test_cells_that_agree_are_their_mean(value: float, cells: int) -> None:
    means = np.full((cells, 1), value)
    for got in (weighted_mean(means, [3] * cells), median(means), trimmed_mean(means, 0)):
        assert integers_of(got) == [value]


@pytest.mark.requirement("HSA-25")
@pytest.mark.parametrize("count", [*range(2, 17), 31, 32])
def test_the_median_is_between_benign_means_with_so_few_byzantine_users(count: int) -> None:
    """In each row the faulty cells are fewer than the benign ones, and with one user more in some row they are not."""
    few = ceil(count / 4) - 1
    for matrix in (cyclic(count), perfect(count)) if count != 1 else ():
        assert all(2 * few < len(row) for row in matrix)
        assert any(2 * (few + 1) >= len(row) for row in matrix)
    benign = list(np.linspace(-1, 1, len(min(cyclic(count), key=len)) - few))
    for outlier in (-1e9, 1e9):
        got = float(median(np.array([*benign, *[outlier] * few])[:, None])[0])
        assert -1 <= got <= 1


@pytest.mark.requirement("ERR-02", "MOD-07")
def test_what_is_no_table_of_means_is_refused() -> None:
    table = np.zeros((2, 3))
    nothing: list[Any] = [
        np.zeros(3),
        np.zeros((0, 3)),
        [[0.0]],
        np.zeros((2, 2), np.float32),
        None,
        np.zeros((1, 1, 1)),
    ]
    for bad in nothing:
        for function in (median, lambda means: trimmed_mean(means, 0), lambda means: weighted_mean(means, [1, 1])):
            with pytest.raises(ParameterError):
                function(bad)
    with pytest.raises(OutOfRange, match="means"):
        median(np.array([[np.nan]]))
    with pytest.raises(LengthMismatch, match="counts"):
        weighted_mean(table, [1])
    for counts in ([0, 1], [1, -1], [1.0, 1], [True, 1], [1, None], 2, None, "12", [1, 10**5000], {1: 1, 2: 2}):
        with pytest.raises(ParameterError, match="count"):
            weighted_mean(table, counts)  # type: ignore[arg-type]
    for trim in (-1, 1, 0.0, False, None, "0"):
        with pytest.raises(ParameterError, match="trim"):
            trimmed_mean(table, trim)  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-01")
def test_inputs_stay_as_they_were() -> None:
    means = np.array([[3.0, 1.0], [2.0, 5.0], [1.0, 1.0]])
    before = snapshot(means)
    weighted_mean(means, [1, 2, 3]), median(means), trimmed_mean(means, 1)
    assert snapshot(means) == before


@pytest.mark.requirement("HSA-26")
@pytest.mark.parametrize("method", ["mean", "median"])
@pytest.mark.parametrize("trim", [-1, 1])
def test_nothing_is_trimmed_for_another_mean(method: str, trim: int) -> None:
    means = np.array([[1.0], [2.0], [6.0]])
    assert combined(means, [1, 1, 1], method, 0).tolist() == [3.0 if method == "mean" else 2.0]
    with pytest.raises(ParameterError, match=r"^trim = "):
        combined(means, [1, 1, 1], method, trim)
