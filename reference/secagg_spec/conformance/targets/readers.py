"""What stands in the members of a request, as the reference takes it (spec/adapter.md, section 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from secagg_spec.arithmetic import modular, validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.wire import unpack
from secagg_spec.errors import InconsistentSets, LengthMismatch, OutOfRange
from secagg_spec.protocols.shape import SERVER


def number(name: str, text: Any) -> int:
    """Return the integer in a decimal string."""
    if not isinstance(text, str) or not text.lstrip("-").isdecimal():
        raise Reject("malformed", f"{name} is {text!r}; it must be a decimal string")
    return int(text)


def field(q: Any) -> modular.PrimeField:
    """Return the field of a modulus that stands in a request."""
    return modular.PrimeField(number("q", q))


def array(name: str, text: Any, dtype: str) -> Any:
    """Return the entries of a string of hex digits."""
    try:
        return unpack(text, dtype)
    except ValueError as error:
        raise Reject("malformed", f"{name}: {error}") from None


def vector(name: str, text: Any) -> UintArray:
    """Return a vector of elements."""
    values: UintArray = array(name, text, "<u4").astype(np.uint64)
    return values


def reals(name: str, text: Any) -> validate.RealArray:
    """Return a vector of binary64 numbers."""
    numbers: validate.RealArray = array(name, text, "<f8").astype(np.float64)
    return numbers


def octets(name: str, text: Any) -> bytes:
    """Return bytes."""
    data: bytes = array(name, text, "u1").tobytes()
    return data


def shaped(name: str, text: Any, rows: int, columns: int) -> UintArray:
    """Return a matrix of elements, given row by row."""
    values = vector(name, text)
    if values.size != rows * columns:
        raise LengthMismatch(name, f"{values.size} elements", f"{rows} rows of {columns} elements")
    return values.reshape(rows, columns)


def rows(name: str, texts: Any, count: int, columns: int) -> UintArray:
    """Return a list of vectors of one length as a matrix."""
    if not isinstance(texts, list):
        raise Reject("malformed", f"{name} is {type(texts).__name__}; it must be a list of vectors")
    if len(texts) != count:
        raise LengthMismatch(name, f"{len(texts)} vectors", f"{count} vectors")
    parts = [shaped(f"{name}[{at}]", text, 1, columns) for at, text in enumerate(texts)]
    return np.concatenate(parts) if parts else np.empty((0, columns), dtype=np.uint64)


def users(name: str, value: Any) -> list[int]:
    """Return a list of users."""
    if not isinstance(value, list) or not all(type(user) is int for user in value):
        raise Reject("malformed", f"{name} must be a list of users")
    return value


def pairs(name: str, value: Any) -> list[tuple[int, Any]]:
    """Return a list of pairs of a user and a value; no user may stand there twice."""
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Reject("malformed", f"{name} must be a list of [user, vector]")
    owners = users(name, [pair[0] for pair in value])
    if len(set(owners)) != len(owners):
        raise InconsistentSets(f"{name} gives two shares of one user")
    return [(pair[0], pair[1]) for pair in value]


def integer(name: str, value: Any, bound: int = 2**31) -> int:
    """Return a JSON integer in [0, bound)."""
    if type(value) is not int:
        raise Reject("malformed", f"{name} is {value!r}; it must be an integer")
    return validate.integer(name, value, 0, bound - 1)


def u32(name: str, text: Any) -> int:
    """Return the integer below 2**32 in a decimal string."""
    value = number(name, text)
    if not 0 <= value < 2**32:
        raise OutOfRange(name, value, "an integer in [0, 2**32)")
    return value


def party(name: str, value: Any) -> int:
    """Return the number of a party: a user, or the server."""
    return SERVER if value == "server" else integer(name, value)


def ascii_text(name: str, value: Any) -> str:
    """Return a string of ASCII characters."""
    if not isinstance(value, str) or not value.isascii():
        raise Reject("malformed", f"{name} is {value!r}; it must be ASCII text")
    return value


def items(name: str, value: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise Reject("malformed", f"{name} is {type(value).__name__}; it must be a list")
    return value


def members(name: str, value: Any, *names: str) -> tuple[Any, ...]:
    """Return the members of an object that has exactly these."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise Reject("malformed", f"{name} must be an object with exactly {', '.join(names)}")
    return tuple(value[member] for member in names)
