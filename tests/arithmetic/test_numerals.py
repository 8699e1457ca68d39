"""Numbers that a user writes: read exactly, or refused."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.numerals import integer, number, probability, real, whole
from secagg_spec.errors import ParameterError


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**12))
def test_a_fraction_is_read_as_it_is_written(top: int, bottom: int) -> None:
    assert number("x", f"{top}/{bottom}") == Fraction(top, bottom)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_it_is_written(value: float) -> None:
    assert real("x", repr(value)) == value
    assert number("x", repr(value)) == Fraction(repr(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.99999999999999999999", 1 - Fraction(1, 10**20)), ("1e-400", Fraction(1, 10**400)), ("2^-3", Fraction(1, 8))],
)
def test_no_digit_is_lost(text: str, value: Fraction) -> None:
    assert number("x", text) == value
    with pytest.raises(ParameterError, match="must be a whole number"):
        whole("x", text)


@pytest.mark.parametrize(
    "text", ["nan", "inf", "1_0", "\u0663", "", " 4", "4\t", "1 / 2", "1/0", "0x1", "3^2", "2^x", "1e9999", "9" * 31]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    for read in (number, whole, real):
        with pytest.raises(ParameterError, match=r"^x = '.*': must be (a number|of at most 30 characters)"):
            read("x", text)


@pytest.mark.parametrize("wrong", [3, 0.5, b"3", ["3"], None])
def test_what_is_no_text_is_refused(wrong: Any) -> None:
    for read in (number, whole, probability, real):
        with pytest.raises(ParameterError, match=r"^x = '.*': must be of the class str$"):
            read("x", wrong)
    with pytest.raises(ParameterError, match=r"^text = '.*': must be of the class str$"):
        integer(wrong)


@pytest.mark.parametrize("text", ["three", "seventeen", "2^hello", "elements"])
def test_a_word_is_no_number_with_a_long_exponent(text: str) -> None:
    with pytest.raises(ParameterError, match=rf"^x = '{re.escape(text)}': must be a number, as 1000"):
        number("x", text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("-7", -7), ("9" * 4300, 10**4300 - 1), ("9" * 4301, None), ("", None), ("1_0", None), ("\u0663", None)],
)
def test_an_integer_is_read_or_none(text: str, number: int | None) -> None:
    assert integer(text) == number


@pytest.mark.parametrize("text", ["1e-400", "-1e-400", "1e400", "2^-999/1"])
def test_a_number_that_binary64_lacks_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"^x = "):
        real("x", text)


@given(st.integers(0, 10**8), st.integers(1, 10**8))
def test_a_probability_is_a_number_from_0_to_1(top: int, bottom: int) -> None:
    if top <= bottom:
        assert probability("p", f"{top}/{bottom}") == Fraction(top, bottom)
    else:
        with pytest.raises(ParameterError, match="probability"):
            probability("p", f"{top}/{bottom}")


@pytest.mark.parametrize("text", ["", "-0.1", "1.1", "1e-1", "2^-1", "nan", "0." + "1" * 19, "1/0", "\u0661"])
def test_what_is_no_probability_is_refused(text: str) -> None:
    assert probability("p", "0." + "1" * 18) == Fraction(int("1" * 18), 10**18)
    with pytest.raises(ParameterError, match=r"^p = .*probability"):
        probability("p", text)
