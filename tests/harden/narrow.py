"""The same right and wrong calls, with numpy's integers and with arrays of subclasses in the place of plain ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.errors import ParameterError
from secagg_spec.protocols.steps import PartyState
from tests.harden.surfaces import DOCUMENTED
from tests.strategies import snapshot

_WRITTEN = re.compile(r"np\.u?int\d+\((-?\d+)\)")
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
EDGES = (0, 1, 2, 3, 6, 100, 126, 127, 128, 254, 255, -1, -128)
"""Values of a single argument at which numpy's integers wrap."""


def narrowed(old: Any, types: tuple[Any, ...] = SIGNED) -> Any:
    """Return a value with each of its integers as one of numpy's, of the smallest type that holds it."""
    if type(old) is int:
        return next((kind(old) for kind in types if np.iinfo(kind).min <= old <= np.iinfo(kind).max), old)
    if type(old) in (list, tuple):
        return type(old)(narrowed(one, types) for one in old)
    if type(old) is dict:
        return {narrowed(key, types): narrowed(one, types) for key, one in old.items()}
    if rebuilt(old):
        return replace(old, **{name: narrowed(getattr(old, name), types) for name in members(old)})
    return old


def rebuilt(old: Any) -> bool:
    """Return whether a value is an object of a public data class that callers make; states come from steps."""
    return (
        is_dataclass(old) and not isinstance(old, type | PartyState) and type(old).__dataclass_params__.frozen  # type: ignore[attr-defined]
    )


def members(old: Any) -> list[str]:
    """Return the members that a data class takes."""
    return [one.name for one in fields(old) if one.init and not one.name.startswith("_")]


def subclassed(old: Any) -> Iterator[Any]:
    """Yield a value with one of its arrays as a masked array, and as a matrix."""
    if isinstance(old, np.ndarray):
        yield np.ma.MaskedArray(old, mask=np.zeros(old.shape, bool))
        if old.ndim == 2:
            yield old.view(np.matrix)
    elif type(old) in (list, tuple):
        for at, one in enumerate(old[:3]):
            yield from (type(old)([*old[:at], other, *old[at + 1 :]]) for other in subclassed(one))
    elif type(old) is dict:
        for key in list(old)[:3]:
            yield from ({**old, key: other} for other in subclassed(old[key]))
    elif rebuilt(old):
        for name in members(old):
            yield from (replace(old, **{name: other}) for other in subclassed(getattr(old, name)))


def outcome(call: Callable[..., Any], changed: Mapping[str, Any]) -> Any:
    """Return what came of a call: the contents of its result, or its refusal; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return snapshot(call(**changed))
        except ParameterError as error:
            return type(error).__name__, error.parameter, _WRITTEN.sub(r"\1", error.allowed)
        except DOCUMENTED as error:
            return type(error).__name__, _WRITTEN.sub(r"\1", str(error))
        except Exception as error:
            return "an error that is not documented", repr(error)


def wrong(old: Any) -> Iterator[Any]:
    """Yield other values of an integer; of a list or tuple, the same with the first integer replaced."""
    if type(old) is int:
        yield from EDGES
    elif type(old) in (list, tuple) and old and type(old[0]) is int:
        yield from (type(old)([edge, *old[1:]]) for edge in EDGES)


def _draws(call: Callable[..., Any], arguments: Mapping[str, Any], once: Any) -> bool:
    """Return whether a call gives another outcome at last: among few values, a draw gives the same one now and then."""
    return any(repr(outcome(call, arguments)) != repr(once) for _ in range(40))


def differences(call: Callable[..., Any], arguments: Mapping[str, Any], skipped: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield how a call differs when its integers are numpy's, as it is right and with one argument wrong."""
    changes: list[dict[str, Any]] = [{}]
    changes += [{name: value} for name, old in arguments.items() if name not in skipped for value in wrong(old)]
    for change in changes:
        given = {**arguments, **change}
        want = outcome(call, given)
        if repr(want) != repr(outcome(call, given)):
            continue  # it draws, or remembers what was asked
        for types in (SIGNED, UNSIGNED):
            got = outcome(call, narrowed(given, types))
            if _WRITTEN.sub(r"\1", repr(got)) != repr(want) and not _draws(call, given, want):
                yield f"{change or 'right'} as {types[0].__name__}: {str(got)[:200]} and not {str(want)[:200]}"
