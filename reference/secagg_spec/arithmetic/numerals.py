"""Numbers that a user writes, read exactly: what is typed is what counts, or it is refused."""

from __future__ import annotations

import re
from contextlib import suppress
from fractions import Fraction

from secagg_spec.errors import ParameterError

_SHORT = 20


def _text(name: str, value: object) -> str:
    """Refuse what is no text, as `validate.instance` does; this module is loaded without numpy."""
    if not isinstance(value, str):
        raise ParameterError(name, type(value).__name__, "of the class str")
    return value


def number(name: str, text: str) -> Fraction:
    """Parse a number: decimal, with an exponent, or a fraction, as 1000, 1e6, 0.1, 1/3 or 2^-40.

    Raises
    ------
    ParameterError
        The text is no such number, has more than 30 characters, or an exponent of more than 3 digits, 4 behind 2^; or
        it is no text.
    """
    text = _text(name, text)
    base, power, exponent = text.partition("^")
    if len(text) > 30 or re.search(r"[eE][+-]?[0-9]{4}|\^-?[0-9]{5}", text):
        allowed = "of at most 30 characters, with at most 3 digits in an exponent, or 4 behind 2^"
        raise ParameterError(name, text, allowed)
    try:
        if not text.isascii() or "_" in text or any(map(str.isspace, text)):
            raise ValueError
        if not power:
            return Fraction(text)
        if base != "2" or not exponent.removeprefix("-").isdecimal():
            raise ValueError
        return Fraction(2) ** int(exponent)
    except (ValueError, ZeroDivisionError):
        raise ParameterError(name, text, "a number, as 1000, 1e6, 0.1, 1/3 or 2^-40 are") from None


def integer(text: str) -> int | None:
    """Parse an integer in digits from 0 to 9, with or without a sign; None if it is none, or of over 4300 digits.

    Raises `ParameterError` for what is no text.
    """
    _text("text", text)
    return int(text) if re.fullmatch("[+-]?[0-9]{1,4300}", text) else None


def whole(name: str, text: str) -> int:
    """Parse a whole number, which may have an exponent, as `number` does.

    Raises
    ------
    ParameterError
        It is no number, or not whole.
    """
    value = number(name, text)
    if value.denominator != 1:
        raise ParameterError(name, text, "a whole number, as 1000 or 1e6 are")
    return int(value)


def probability(name: str, text: str) -> Fraction:
    """Parse a probability of few digits, so that powers of it can be computed exactly.

    Raises
    ------
    ParameterError
        It is no number in [0, 1], has more than 20 characters, or an exponent; or it is no text.
    """
    _text(name, text)
    if len(text) <= _SHORT and not set("eE^") & set(text):
        with suppress(ParameterError):
            value = number(name, text)
            if 0 <= value <= 1:
                return value
    raise ParameterError(
        name, text, f"a probability in [0, 1] such as 0.1 or 1/10, of at most {_SHORT} characters, no exponent"
    )


def real(name: str, text: str) -> float:
    """Parse a number as `number` does, and return the nearest float.

    Raises
    ------
    ParameterError
        It is no number, is beyond binary64, or is so small that the nearest float is 0.
    """
    value = number(name, text)
    try:
        found = float(value)
    except OverflowError:
        found = 0.0
    if value and not found:
        raise ParameterError(name, text, "a number that binary64 has, from 5e-324 to 1.7e308 in magnitude, or 0")
    return found
