"""Numbers modulo the order of the groups of BLS12-381."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import isprime

from secagg_spec.arithmetic import scalars
from secagg_spec.errors import LengthMismatch, NonCanonical, ParameterError

R = scalars.ORDER
Z = -(2**63 + 2**62 + 2**60 + 2**57 + 2**48 + 2**16)
numbers = st.integers(0, R - 1)
pieces = st.lists(
    st.sampled_from((0, 1, R - 1, R, R + 1, 2**255 - 1, 2**255, 2**255 + R, 2**256 - 1)) | st.integers(0, 2**256 - 1)
)


@pytest.mark.requirement("ABE-19")
def test_the_order_is_that_of_the_text() -> None:
    assert R == Z**4 - Z**2 + 1
    assert isprime(R)


@pytest.mark.requirement("ABE-20")
@given(pieces)
def test_numbers_are_sampled_as_in_the_text(words: list[int]) -> None:
    data = b"".join(word.to_bytes(32, "little") for word in words)
    assert list(scalars.scalars_from_bytes(data)) == [word % 2**255 for word in words if 1 <= word % 2**255 < R]


@pytest.mark.requirement("ABE-20")
def test_bytes_that_fill_no_piece_are_refused() -> None:
    with pytest.raises(LengthMismatch):
        scalars.scalars_from_bytes(bytes(33))


@pytest.mark.requirement("ABE-19")
@pytest.mark.parametrize("bad", [0, -1, R, R + 1, 2**300])
def test_numbers_out_of_range_are_refused(bad: int) -> None:
    with pytest.raises(NonCanonical, match="alpha"):
        scalars.scalar("alpha", bad)
    assert scalars.scalar("alpha", R - 1) == R - 1
    assert scalars.scalar("alpha", 0, 0) == 0


@pytest.mark.requirement("ABE-19")
@pytest.mark.parametrize("bad", [None, True, 1.0, "1", b"1"])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="alpha"):
        scalars.scalar("alpha", bad)


@pytest.mark.requirement("ABE-06")
@given(numbers, st.lists(numbers, max_size=5), st.integers(1, 32))
def test_a_polynomial_is_evaluated(value: int, coefficients: list[int], x: int) -> None:
    expected = value + sum(c * x**power for power, c in enumerate(coefficients, start=1))
    assert scalars.evaluate(value, coefficients, x) == expected % R


@pytest.mark.requirement("ABE-08")
@given(st.lists(numbers, min_size=1, max_size=6), st.data())
def test_weights_give_the_value_at_zero(polynomial: list[int], data: st.DataObject) -> None:
    points = data.draw(st.permutations(range(1, 33)))[: len(polynomial)]
    values = [scalars.evaluate(polynomial[0], polynomial[1:], point) for point in points]
    weights = scalars.weights(tuple(points))
    assert sum(map(scalars.product, weights, values)) % R == polynomial[0]


@given(numbers, st.integers(1, R - 1))
def test_quotients_and_sums(a: int, b: int) -> None:
    assert scalars.product(scalars.quotient(a, b), b) == a
    assert scalars.total(a, b) == (a + b) % R
