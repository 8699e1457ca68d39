"""Where the member of an answer first differs from that of a vector, in words."""

from typing import Any

from numpy.typing import NDArray

from secagg_spec.conformance.adapter.plain import clip
from secagg_spec.conformance.adapter.wire import unpack

_ELEMENTS = {"value", "masked", "share", "mask", "sum", "sums"}
_REALS = {"average", "segment"}
_SHOWN = 80


def first_difference(name: str, got: object, want: object) -> str:
    """Return the first entry that differs, with its value and the right one, or "" if no entry can be named.

    Lists are searched entry by entry, and so are vectors of elements and of binary64 numbers, which are recognised by
    the name of their member.
    """
    place = name
    while isinstance(got, list) and isinstance(want, list) and len(got) == len(want) and got != want:
        at = _first([mine != right for mine, right in zip(got, want, strict=True)])
        got, want, place = got[at], want[at], f"{place}[{at}]"
    mine, right = _numbers(name, got), _numbers(name, want)
    if mine is not None and right is not None and mine.shape == right.shape and (mine != right).any():
        at = _first((mine != right).tolist())
        return f"{place}[{at}] is {mine[at]}, must be {right[at]}"
    return "" if place == name else f"{place} is {clip(str(got), _SHOWN)}, must be {clip(str(want), _SHOWN)}"


def _first(differs: list[bool]) -> int:
    return differs.index(True)


def _numbers(name: str, text: object) -> NDArray[Any] | None:
    """Return the entries of a vector, or ``None`` if the text is not a vector."""
    if name not in _ELEMENTS | _REALS:
        return None
    try:
        return unpack(text, "<f8" if name in _REALS else "<u4")
    except ValueError:
        return None
