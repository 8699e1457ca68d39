"""The first difference between the vector in an answer and the expected one, with the entries around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.adapter.wire import unpack

_AROUND = 3


@dataclass(frozen=True)
class Window:
    """Some entries of two vectors: (index, actual, expected, whether they differ); `at` is the first difference."""

    at: int
    entries: tuple[tuple[int, str, str, bool], ...]
    length: int


def window(result: Mapping[str, Any], expected: object, format: object = None) -> Window | None:
    """Return the entries around the first difference between the only vector in a result and the expected vector.

    `expected` is a vector as hex digits or as numbers; `format` is that of numbers which are not binary64. None is
    returned if the result does not contain exactly one such vector, or if the vectors are equal or have different
    lengths.
    """
    found = [text for text in result.values() if isinstance(text, str)]
    if len(found) != 1:
        return None
    for dtype in ("<f4",) if format == "binary32" else ("<u4", "<f8"):
        got, right = _entries(found[0], dtype), _entries(expected, dtype)
        if got is not None and right is not None and len(got) == len(right) and got != right:
            return _around(got, right)
    return None


def _entries(value: object, dtype: str) -> list[Any] | None:
    if isinstance(value, list):
        return value if all(isinstance(entry, (int, float)) for entry in value) else None
    try:
        entries: list[Any] = unpack(value, dtype).tolist()
    except ValueError:
        return None
    return entries


def _around(got: list[Any], right: list[Any]) -> Window:
    at = next(number for number, (mine, theirs) in enumerate(zip(got, right, strict=True)) if mine != theirs)
    numbers = range(max(0, at - _AROUND), min(len(got), at + _AROUND + 1))
    entries = tuple((n, str(got[n]), str(right[n]), got[n] != right[n]) for n in numbers)
    return Window(at, entries, len(got))
