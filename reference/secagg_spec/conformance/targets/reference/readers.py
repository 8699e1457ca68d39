"""Convert the members of a request to the reference's types (spec/adapter.md, section 3).

The helper for adapters has already checked the form of every member. If a member may contain anything, its contents
go through `formed` first.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from secagg_spec.arithmetic import modular, validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.sdk.secagg_adapter import Reject, check_form
from secagg_spec.errors import LengthMismatch, OutOfRange
from secagg_spec.protocols.steps import AUTHORITY, SERVER

X = TypeVar("X")


def number(name: str, text: str) -> int:
    """Return the integer in a decimal string."""
    return int(text)


def parameters(kind: Callable[..., X], **numbers: Any) -> X:
    """Return the parameters of a session from its separate numbers, of which the modulus is a decimal string."""
    return kind(**{name: number(name, value) if name in ("q", "R") else value for name, value in numbers.items()})


def field(q: Any) -> modular.PrimeField:
    """Return the field of a modulus in a request."""
    return modular.PrimeField(number("q", q))


def array(text: str, dtype: str) -> Any:
    """Return the entries of a string of hex digits."""
    return np.frombuffer(bytes.fromhex(text), dtype=dtype)


def vector(name: str, text: str) -> UintArray:
    """Return a vector of elements."""
    values: UintArray = array(text, "<u4").astype(np.uint64)
    return values


def words(name: str, text: str) -> list[int]:
    """Return numbers below 2**32."""
    values: list[int] = array(text, "<u4").tolist()
    return values


def reals(name: str, text: str) -> validate.RealArray:
    """Return a vector of binary64 numbers."""
    numbers: validate.RealArray = array(text, "<f8").astype(np.float64)
    return numbers


def octets(name: str, text: str) -> bytes:
    """Return bytes."""
    return bytes.fromhex(text)


Reader = Callable[[str, str], UintArray]
"""Returns the vector of elements in a text, given its name."""


def shaped(name: str, text: str, rows: int, columns: int, *, read: Reader = vector) -> UintArray:
    """Return a matrix of elements, given row by row."""
    values = read(name, text)
    if values.size != rows * columns:
        raise LengthMismatch(name, f"{values.size} elements", f"{rows} rows of {columns} elements")
    return values.reshape(rows, columns)


def rows(name: str, texts: list[str], count: int, columns: int, *, read: Reader = vector) -> UintArray:
    """Return a list of vectors of one length as a matrix."""
    if len(texts) != count:
        raise LengthMismatch(name, f"{len(texts)} vectors", f"{count} vectors")
    parts = [shaped(f"{name}[{at}]", text, 1, columns, read=read) for at, text in enumerate(texts)]
    return np.concatenate(parts) if parts else read(name, "").reshape(0, columns)


def formed(name: str, value: Any, form: str) -> Any:
    """Return a value inside a member if it has the right form."""
    check_form(name, value, form)
    return value


def integer(name: str, value: Any, bound: int = 2**31) -> int:
    """Return an integer in [0, bound)."""
    return validate.integer(name, value, 0, bound - 1)


def u32(name: str, text: Any) -> int:
    """Return the integer below 2**32 in a decimal string."""
    value = number(name, text)
    if not 0 <= value < 2**32:
        raise OutOfRange(name, value, "an integer in [0, 2**32)")
    return value


def party(name: str, value: Any) -> int:
    """Return the number of a party: a user, the server, or the authority."""
    return {"server": SERVER, "authority": AUTHORITY}[value] if isinstance(value, str) else integer(name, value)


def ascii_text(name: str, value: str) -> str:
    """Return a string of ASCII characters."""
    if not value.isascii():
        raise Reject("malformed", f"{name} is {value!r}; it must be ASCII text")
    return value


def members(name: str, value: Any, *names: str) -> tuple[Any, ...]:
    """Return the members of an object that has exactly these."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise Reject("malformed", f"{name} must be an object with exactly {', '.join(names)}")
    return tuple(value[member] for member in names)
