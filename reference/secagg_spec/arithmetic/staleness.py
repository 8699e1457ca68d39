"""Staleness functions as exact data, and the integer weights that they determine.

Users on different machines check each other's weights, so no weight may depend on how a library rounds a power. Every
comparison here is between integers.

Notation of the papers: tau is `tau`; s is a `Staleness`; alpha is ``numerator / denominator``, p/r, of a polynomial
function; c_g is `level`; sbar(tau) = c_g Q_{c_g}(s(tau)) is the result of `realised_weight`.

Source: BASecAgg eq. (4), (7) and (12); spec/fedbuff.md, section 2 (STL-01 to STL-08).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.errors import OutOfRange, ParameterError

Kind: TypeAlias = Literal["constant", "polynomial", "hinge"]
KINDS: tuple[str, ...] = get_args(Kind)
MAX_NUMERATOR, MAX_DENOMINATOR = 1000, 100
MAX_TAU = 2**32 - 1
"""The largest staleness, and the largest start of a hinge: round numbers have 32 bits."""

_RANGES = (("numerator", 0, MAX_NUMERATOR), ("denominator", 1, MAX_DENOMINATOR), ("start", 0, MAX_TAU))
_TEXT = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20}|/[0-9]{1,20})?", re.ASCII)
_DRAWS = 2**53
_DIGITS = 10
_ALLOWED = (
    f"a fraction p/r with 0 <= p <= {MAX_NUMERATOR} and 1 <= r <= {MAX_DENOMINATOR}: an integer, a Fraction, "
    'a string such as "0.5" or "1/2", or a float that is exactly one; the float 0.1 is not 1/10, "0.1" is'
)


@dataclass(frozen=True)
class Staleness(validate.Plain):
    """A staleness function s, with s(0) = 1, that never increases.

    Parameters
    ----------
    kind : {"constant", "polynomial", "hinge"}
        Which function (STL-04).
    numerator, denominator : int
        p in [0, 1000] and r in [1, 100], in lowest terms: the exponent of a polynomial or the slope of a hinge; 0 and 1
        if the function is constant.
    start : int
        b of a hinge, in ``[0, 2**32)``; else 0.

    Raises
    ------
    ParameterError
        A number is out of its range (STL-01, STL-02), or differs from the default though the kind ignores it (STL-03).
    """

    kind: Kind
    numerator: int = 0
    denominator: int = 1
    start: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ParameterError("kind", self.kind, f"one of {', '.join(KINDS)}")
        for name, low, high in _RANGES:
            validate.integer(name, getattr(self, name), low, high)
        if math.gcd(self.numerator, self.denominator) != 1:
            raise ParameterError("numerator", self.numerator, f"without a common factor with {self.denominator}")
        if self.kind == "constant" and (self.numerator, self.denominator) != (0, 1):
            raise ParameterError("numerator", self.numerator, "0, over the denominator 1, of a constant function")
        if self.kind != "hinge" and self.start:
            raise ParameterError("start", self.start, f"0 of a {self.kind} function")

    @classmethod
    def constant(cls) -> Staleness:
        """Return s(tau) = 1."""
        return cls("constant")

    @classmethod
    def polynomial(cls, alpha: object) -> Staleness:
        """Return s(tau) = (1 + tau)**-alpha; `alpha` is as in `fraction`."""
        exponent = fraction("alpha", alpha)
        return cls("polynomial", exponent.numerator, exponent.denominator)

    @classmethod
    def hinge(cls, a: object, b: int) -> Staleness:
        """Return s(tau) = 1 for tau <= b, else 1 / (a (tau - b) + 1); `a` is as in `fraction`."""
        slope = fraction("a", a)
        return cls("hinge", slope.numerator, slope.denominator, validate.integer("b", b, 0, MAX_TAU))

    def power(self, tau: int) -> tuple[int, int, int]:
        """Return integers n, d and r with s(tau)**r = n / d.

        Raises
        ------
        ParameterError
            tau is not an integer in ``[0, 2**32)`` (STL-02).
        """
        tau = validate.integer("tau", tau, 0, MAX_TAU)
        if self.kind == "polynomial":
            return 1, (1 + tau) ** self.numerator, self.denominator
        late = max(tau - self.start, 0) if self.kind == "hinge" else 0
        return self.denominator, self.numerator * late + self.denominator, 1


def fraction(name: str, value: object) -> Fraction:
    """Return an exponent or a slope as an exact fraction.

    Parameters
    ----------
    name : str
        The name of the argument in the error message.
    value : int, Fraction, float or str
        At least 0; a string is a decimal number such as ``"0.5"`` or a quotient such as ``"1/2"``.

    Raises
    ------
    OutOfRange
        Not a fraction p/r with p in [0, 1000] and r in [1, 100] (STL-01).
    ParameterError
        Not a number.
    """
    exact = _exact(name, value)
    if exact is None or not 0 <= exact.numerator <= MAX_NUMERATOR or exact.denominator > MAX_DENOMINATOR:
        raise OutOfRange(name, value, _ALLOWED)
    return exact


def _exact(name: str, value: object) -> Fraction | None:
    """Return a value as an exact number; None for NaN, infinities and division by zero."""
    value = validate.plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, str)):
        raise ParameterError(name, value, _ALLOWED)
    if isinstance(value, str) and not _TEXT.fullmatch(value):
        raise ParameterError(name, value, _ALLOWED)
    try:
        return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def read(name: str, text: str) -> Staleness:
    """Return the function that a string names: ``constant``, ``polynomial:1/2`` or ``hinge:1/2,4``.

    Raises
    ------
    ParameterError
        The string names no function; `name` is the name of the argument in the error message.
    """
    kind, _, numbers = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind == "polynomial" and numbers:
        return Staleness.polynomial(fraction(f"alpha of {name}", numbers))
    slope, comma, start = numbers.partition(",")
    if kind == "hinge" and comma and start.isascii() and start.isdecimal() and len(start) <= _DIGITS:
        b = validate.integer(f"b of {name}", int(start), 0, MAX_TAU)
        return Staleness.hinge(fraction(f"a of {name}", slope), b)
    if kind == "constant" and text == kind:
        return Staleness.constant()
    raise ParameterError(
        name,
        text,
        "constant, polynomial:ALPHA or hinge:A,B, as in polynomial:1/2; "
        f"B is a whole number of at most {_DIGITS} digits",
    )


def floor_weight(staleness: Staleness, c_g: int, tau: int) -> int:
    """Return floor(c_g s(tau)), an integer in ``[0, c_g]``: the largest m with ``m**r * d <= c_g**r * n``.

    Raises
    ------
    ParameterError
        c_g is not an integer in ``[1, 2**32]``, or tau is not an integer in ``[0, 2**32)`` (STL-02).

    Source: BASecAgg eq. (7), (12); STL-04.
    """
    n, d, r = staleness.power(tau)
    return _root(validate.integer("c_g", c_g, 1, MAX_LEVEL) ** r * n // d, r)


def least_level(staleness: Staleness, tau: int) -> int:
    """Return 1 / s(tau), rounded up: the smallest c_g with c_g s(tau) >= 1, which may be above 2**32.

    Raises
    ------
    ParameterError
        tau is not an integer in ``[0, 2**32)`` (STL-02).
    """
    n, d, r = staleness.power(tau)
    return _root(-(-d // n) - 1, r) + 1


def realised_weight(staleness: Staleness, c_g: int, tau: int, draw: float, *, name: str = "draw") -> int:
    """Return floor(y) + 1 where draw < y - floor(y), else floor(y), for y = c_g s(tau).

    Parameters
    ----------
    staleness : Staleness
        s.
    c_g : int
        The level, in ``[1, 2**32]``.
    tau : int
        The staleness, in ``[0, 2**32)``.
    draw : float
        A multiple of 2**-53, uniform in ``[0, 1)``.
    name : str
        What an error calls the draw.

    Raises
    ------
    ParameterError
        A number is out of its range (STL-02).
    OutOfRange
        The draw is not a multiple of 2**-53 in ``[0, 1)`` (STL-07).

    Source: BASecAgg eq. (12); STL-05, STL-06.
    """
    below, (n, d, r) = floor_weight(staleness, c_g, tau), staleness.power(tau)
    up: bool = (below * _DRAWS + _numerator(name, draw)) ** r * d < (int(c_g) * _DRAWS) ** r * n
    return below + up


def admissible_weights(staleness: Staleness, c_g: int, tau: int) -> tuple[int, ...]:
    """Return all possible weights: floor(y) and floor(y) + 1, or only y when y = c_g s(tau) is an integer.

    Raises
    ------
    ParameterError
        A number is out of its range (STL-02).

    Source: STL-05, STL-08.
    """
    below, (n, d, r) = floor_weight(staleness, c_g, tau), staleness.power(tau)
    return (below,) if below**r * d == int(c_g) ** r * n else (below, below + 1)


def _numerator(name: str, draw: float) -> int:
    """Return a draw times 2**53."""
    if not isinstance(draw, float) or not 0 <= draw < 1 or not (draw * _DRAWS).is_integer():
        raise OutOfRange(name, draw, "a float in [0, 1) that is a multiple of 2**-53")
    return int(draw * _DRAWS)


def _root(value: int, degree: int) -> int:
    """Return the largest m with ``m**degree <= value``, by Newton's method from above."""
    if value == 0:
        return 0
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


guard(__name__)
