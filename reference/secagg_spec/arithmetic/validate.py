"""Argument checks for all public functions, so that errors have the same wording everywhere."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg_spec.errors import DuplicateUser, LengthMismatch, NonCanonical, OutOfRange, ParameterError, UnknownUser

UintArray: TypeAlias = NDArray[np.uint64]
RealArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
_Class = TypeVar("_Class")
_NOT_HEX = re.compile("[^0-9a-f]")
MAX_COUNT = 2**32 - 1
"""The largest number of users, and of elements of a vector: the largest 32-bit count."""
_BITS = 2**13
"""What an integer without an upper bound has at most: Python writes one of 4300 digits or more into no error."""


def integer(name: str, value: object, low: int, high: int | None = None, allowed: str = "") -> int:
    """Return `value` as an ``int`` when it is an integer in ``[low, high]``; an error says so, or what is `allowed`.

    Raises
    ------
    ParameterError
        The value is not an integer, is outside the bounds, or has more than 2^13 bits where there is no upper bound.
    """
    number = value if type(value) is int else _int(value)
    if number is None or number < low or (high is not None and number > high):
        raise ParameterError(name, value if number is None else number, allowed or _between(low, high))
    if high is None and number.bit_length() > _BITS:
        raise ParameterError(name, number, f"{_between(low, high)}, of {_BITS} bits at most")
    return number


def _int(value: object) -> int | None:
    """Return an integer of any type as ``int``; None if it is no integer."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        return None
    return int(value)


def number(value: object) -> int | float | None:
    """Return an integer or a float of any type as Python's; None if it is neither, or a float longer than binary64."""
    if not isinstance(value, (float, np.floating)):
        return _int(value)
    found = float(value)
    return found if found == value or np.isnan(value) else None


def probability(name: str, value: object) -> Fraction:
    """Return `value` when it is a fraction in ``[0, 1]``.

    Raises
    ------
    ParameterError
        It is not.
    """
    if not isinstance(value, Fraction) or not 0 <= value <= 1:
        raise ParameterError(name, value, "a fraction in [0, 1]")
    return value


def finite(value: object) -> bool:
    """Return whether `value` is a number as in `number`, and in the range of binary64."""
    found = number(value)
    return found is not None and abs(found) <= sys.float_info.max


def secret_integer(name: str, value: object, allowed: str) -> int:
    """Return `value` as an ``int`` when it is one; an error shows its class alone (ERR-03).

    Raises
    ------
    ParameterError
        It is not.
    """
    number = value if type(value) is int else _int(value)
    if number is None:
        raise ParameterError(name, class_of(value), allowed)
    return number


class Plain:
    """The base of data classes whose members are plain values, whatever type of integer or sequence the caller gives.

    What a member holds as a number of numpy becomes an ``int`` or a ``float``: numpy's integers wrap (ERR-02). A
    sequence becomes a ``tuple``, which the caller cannot change afterwards. A class with checks of its own calls this
    first.
    """

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) not in _AS_THEY_ARE and (kept := plain(value)) is not value:
                object.__setattr__(self, name, kept)


_AS_THEY_ARE = frozenset({int, str, bytes, float, bool, type(None), np.ndarray})


def plain(value: Any) -> Any:
    """Return a number of numpy as Python's, another sequence than text as a ``tuple``, and any other value itself."""
    if type(value) in _AS_THEY_ARE or (type(value) is tuple and _AS_THEY_ARE.issuperset(map(type, value))):
        return value
    if isinstance(value, (np.integer, np.floating)):
        found = number(value)
        return value if found is None else found
    named = isinstance(value, tuple) and type(value) is not tuple
    if not named and isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return tuple(map(plain, value))
    return value


def _between(low: int, high: int | None) -> str:
    if high is None:
        return f"an integer >= {_written(low)}"
    if low > high:
        return (
            f"at least {_written(low)} and at most {_written(high)}: beside the other arguments no integer is allowed"
        )
    return f"an integer in [{_written(low)}, {_written(high)}]"


def _written(bound: int) -> str:
    """Return a bound as digits, or its size where Python writes no digits."""
    return str(bound) if int(bound).bit_length() <= _BITS else f"(an integer of {int(bound).bit_length()} bits)"


def one_of(name: str, value: str, names: Sequence[str]) -> str:
    """Return `value` when it is one of `names`.

    Raises
    ------
    ParameterError
        It is not; the error lists all names and suggests the closest one (EXP-29).
    """
    if isinstance(value, str) and value in names:
        return value
    close = difflib.get_close_matches(value.lower() if isinstance(value, str) else "", names, n=1)
    raise ParameterError(name, value, "one of " + ", ".join(names) + "".join(f"; {found} is close" for found in close))


def elements(name: str, value: object, modulus: int | None, shape: tuple[int | None, ...] | None) -> UintArray:
    """Return `value` when it is a uint64 array of the given shape with entries in ``[0, modulus)``.

    `shape` has one entry per axis. An entry ``None`` fits every length; a shape ``None`` fits every shape. With the
    modulus ``None`` the caller looks at the entries itself.

    Raises
    ------
    ParameterError
        The value is not a numpy array of dtype uint64.
    LengthMismatch
        The shape differs.
    NonCanonical
        An entry is not in ``[0, modulus)`` (MOD-06).
    """
    value = array(name, value, np.uint64)
    if shape is not None:
        array_shape(name, value, shape)
    if modulus is not None:
        canonical(name, value, modulus)
    return value


def array(name: str, value: object, dtype: type | np.dtype[Any] | None) -> NDArray[Any]:
    """Return `value` when it is a plain array of the dtype, or of any dtype for None; ``np.memmap`` counts as plain.

    Other subclasses are refused, since they change what operations do: a masked array leaves entries out of a sum, and
    a matrix keeps two axes (ERR-02).

    Raises
    ------
    ParameterError
        It is not.
    """
    own = type(value) is np.ndarray or type(value) is np.memmap
    if own and (dtype is None or value.dtype == dtype):  # type: ignore[attr-defined]
        return value  # type: ignore[return-value]
    wanted = "a numpy array" if dtype is None else f"a numpy array of dtype {np.dtype(dtype)}"
    wanted += ", and of no subclass" if isinstance(value, np.ndarray) and not own else ""
    raise ParameterError(name, class_of(value), wanted)


def canonical(name: str, value: NDArray[Any], modulus: int) -> None:
    """Refuse an array of unsigned integers if an entry is not in ``[0, modulus)`` (MOD-06).

    Raises
    ------
    NonCanonical
        An entry is not in ``[0, modulus)``.
    """
    if modulus >> 8 * value.itemsize == 0 and value.size and int(value.max()) >= modulus:
        position = int(np.argmax(value.ravel() >= np.uint64(modulus)))
        raise NonCanonical(place(name, value, position), int(value.ravel()[position]), f"in [0, {modulus})")


def reals(name: str, value: object, shape: tuple[int | None, ...]) -> RealArray:
    """Return `value` when it is a float64 array of the given shape with finite entries.

    Raises
    ------
    ParameterError
        The value is not a numpy array of dtype float64.
    LengthMismatch
        The shape differs.
    OutOfRange
        An entry is NaN or infinite (QNT-01).
    """
    value = binary64(name, value)
    array_shape(name, value, shape)
    finite = np.isfinite(value)
    if not finite.all():
        position = int(np.argmin(finite.ravel()))
        raise OutOfRange(place(name, value, position), float(value.ravel()[position]), "finite")
    return value


def place(name: str, value: NDArray[Any], position: int) -> str:
    """Return what an error calls the entry at a position of the flat array, such as ``updates[2][0]``.

    This is for checked arguments: a position of the array.
    """
    return name + "".join(f"[{at}]" for at in np.unravel_index(position, value.shape))


def binary64(name: str, value: object) -> RealArray:
    """Return `value` when it is a float64 array; its entries may be any numbers.

    Raises
    ------
    ParameterError
        It is not.
    """
    return array(name, value, np.float64)


def signed(name: str, value: object) -> NDArray[np.int64]:
    """Return `value` when it is an int64 array.

    Raises
    ------
    ParameterError
        It is not.
    """
    return array(name, value, np.int64)


def truths(name: str, value: object, shape: tuple[int | None, ...]) -> BoolArray:
    """Return `value` when it is an array of truth values of the given shape, where ``None`` fits every length.

    Raises
    ------
    ParameterError
        The value is not a numpy array of dtype bool.
    LengthMismatch
        The shape differs.
    """
    value = array(name, value, np.bool_)
    array_shape(name, value, shape)
    return value


def octets(name: str, value: object, length: int | None = None) -> bytes:
    """Return `value` when it is ``bytes``, and has this length if one is given.

    Raises
    ------
    ParameterError
        It is not.
    LengthMismatch
        It has another length.
    """
    if not isinstance(value, bytes):
        raise ParameterError(name, class_of(value), "bytes")
    if length is not None and len(value) != length:
        raise LengthMismatch(f"len({name})", len(value), f"{_written(length)} bytes")
    return value


def ascii_text(name: str, value: object) -> str:
    """Return `value` when it is text in ASCII; an error shows its class alone (ERR-03).

    Raises
    ------
    ParameterError
        It is not.
    """
    if not isinstance(value, str) or not value.isascii():
        raise ParameterError(name, class_of(value), "text in ASCII")
    return value


def from_hex(name: str, value: object) -> bytes:
    """Return the bytes whose hex digits `value` has, as ``bytes.hex`` writes them; an error shows no digit (ERR-03).

    Raises
    ------
    ParameterError
        It is no text, or has anything but pairs of lower-case hex digits, such as capitals and spaces.
    """
    text = value if isinstance(value, str) else None
    if text is None or len(text) % 2 or _NOT_HEX.search(text):
        found = class_of(value) if text is None else f"{len(text)} characters"
        raise ParameterError(name, found, "bytes as pairs of hex digits in lower case, without spaces")
    return bytes.fromhex(text)


def mapping(name: str, value: object) -> Mapping[Any, Any]:
    """Return `value` when it is a mapping.

    Raises
    ------
    ParameterError
        It is not.
    """
    if not isinstance(value, Mapping):
        raise ParameterError(name, class_of(value), "a mapping")
    return value


def keyed(name: str, value: object, keys: Collection[Any], allowed: str) -> Mapping[Any, Any]:
    """Return `value` when it is a mapping with exactly the given keys; an error shows nothing that it holds (ERR-03).

    Raises
    ------
    ParameterError
        It is not.
    """
    given = mapping(name, value)
    if len(given) != len(keys) or set(given) != set(keys):
        raise ParameterError(name, f"{len(given)} entries", allowed)
    return given


def members(name: str, value: object, names: Collection[str] | type[Any]) -> dict[str, Any]:
    """Return `value` as a ``dict`` when it is an object of JSON data with exactly these members.

    A data class stands for the names of its members.

    Raises
    ------
    ParameterError
        It is no mapping, or lacks a member, or has another one; the error shows no value and no unknown name (ERR-03).
    """
    given = dict(mapping(name, value))
    names = [one.name for one in fields(names)] if isinstance(names, type) else names
    missing = [one for one in names if one not in given]
    unknown = len(given) + len(missing) - len(names)
    if missing or unknown:
        found = [*(f"without {one}" for one in missing), *([f"with {unknown} unknown"] if unknown else ())]
        raise ParameterError(name, ", ".join(found), f"an object with the members {', '.join(names)}")
    return given


def stored(data: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Refuse stored data unless it is `again`, which is the restored state stored once more.

    Raises
    ------
    ParameterError
        A member is missing, is unknown, or has another value; the error shows no value, and no unknown name (ERR-03).
    """
    wrong = [name for name in again if name not in data or again[name] != data[name]]
    wrong += ["another"] * len(set(data) - set(again))
    if wrong:
        raise ParameterError("data", wrong, "without members that are missing, unknown, or not as they are stored")


def sequence(name: str, value: object, of: str) -> Sequence[Any]:
    """Return `value` when it is a list, tuple or other sequence but no string; `of` names its entries in the error.

    Raises
    ------
    ParameterError
        It is not.
    """
    if isinstance(value, (list, tuple)):  # the common case; testing for Sequence is slow
        return value
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise ParameterError(name, class_of(value), f"a sequence of {of}")
    return value


def parts(name: str, value: object, count: int, of: str) -> Sequence[Any]:
    """Return `value` when it is a list or tuple with so many parts; `of` says in the error what they are.

    Raises
    ------
    ParameterError
        It is not; the error shows its class alone (ERR-03).
    """
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise ParameterError(name, class_of(value), of)
    return value


def collection(name: str, value: object, of: str) -> Collection[Any]:
    """Return `value` when it is a list, set or other collection but no string; `of` names its entries in the error.

    Raises
    ------
    ParameterError
        It is not.
    """
    single = isinstance(value, np.ndarray) and not value.ndim
    if single or not isinstance(value, Collection) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise ParameterError(name, class_of(value), f"a list, set or other collection of {of}")
    return value


def instance(name: str, value: object, kind: type[_Class]) -> _Class:
    """Return `value` when it is an instance of the class `kind`.

    Raises
    ------
    ParameterError
        It is not.
    """
    if not isinstance(value, kind):
        given, wanted = class_of(value), f"of the class {kind.__name__}"
        if given == kind.__name__:
            given, wanted = f"{given} of {type(value).__module__}", f"{wanted} of {kind.__module__}"
        raise ParameterError(name, given, wanted)
    return value


def array_shape(name: str, value: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Refuse an array whose shape differs from `shape`, where ``None`` fits every length.

    Raises
    ------
    LengthMismatch
        The number of axes or the length of an axis differs (MOD-07).
    """
    if value.shape == shape:
        return
    fits = value.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, value.shape, strict=True))
    if not fits:
        wanted = "(" + ", ".join("any" if want is None else _written(want) for want in shape) + ")"
        raise LengthMismatch(f"{name}.shape", value.shape, wanted)


def users(name: str, value: object, count: int) -> tuple[int, ...]:
    """Return `value` as a tuple when it is a sequence of distinct users in ``[0, count)``.

    Raises
    ------
    ParameterError
        The value is not a list, tuple or other sequence, or an entry is not an integer.
    UnknownUser
        A user is outside ``[0, count)``.
    DuplicateUser
        A user appears twice.
    """
    entries = user_numbers(name, value)
    seen: set[int] = set()
    for user in entries:
        if not 0 <= user < count:
            raise UnknownUser(name, user, f"a user in [0, {_written(count)})")
        if user in seen:
            raise DuplicateUser(name, user, "a user that is named once")
        seen.add(user)
    return entries


def entry(name: str, key: object) -> str:
    """Return what an error calls an entry of a mapping; a key that is no number of a user is not shown (ERR-03)."""
    return f"{name}[{key}]" if isinstance(key, (int, np.integer)) and 0 <= key <= MAX_COUNT else name


def entries(name: str) -> Iterator[str]:
    """Yield what an error calls each entry of a sequence, without end."""
    return (f"{name}[{at}]" for at in count())


def user_set(name: str, value: object, count: int) -> tuple[int, ...]:
    """Return distinct users in ``[0, count)`` of any collection, ascending; the errors are those of `users`."""
    return tuple(sorted(users(name, [*collection(name, value, "users")], count)))


def user_numbers(name: str, value: object) -> tuple[int, ...]:
    """Return `value` as a tuple when it is a sequence of integers, of 2^13 bits at most.

    Raises
    ------
    ParameterError
        The value is not a list, tuple or other sequence, or an entry is not an integer, or has more than 2^13 bits.
    """
    numbers = tuple(
        user if type(user) is int else secret_integer(name, user, "an integer, each one if several are given")
        for user in sequence(name, value, "users")
    )
    longest = max(numbers, key=abs, default=0)
    if longest.bit_length() > _BITS:
        raise ParameterError(name, longest, f"integers of {_BITS} bits at most")
    return numbers


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only copy of `array`, in C order."""
    copy = np.array(array, order="C", copy=True)
    copy.setflags(write=False)
    return copy


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that nobody else holds, which is read-only from now on: `frozen` without a copy."""
    array.setflags(write=False)
    return array


def class_of(value: object) -> str:
    """Return what an error shows of a value that may be secret: its class and nothing else (ERR-03)."""
    return f"{type(value).__name__} of dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def path_of(name: str, value: object) -> Path:
    """Return the path that an argument gives.

    Raises
    ------
    ParameterError
        It is no text and no path, or one that names nothing.
    """
    try:
        if isinstance(value, (str, os.PathLike)) and os.fspath(value) and b"\0" not in os.fsencode(value):
            return Path(os.fsdecode(value))
    except UnicodeEncodeError:
        pass
    raise ParameterError(name, value, "a path of the file system, as text or Path")
