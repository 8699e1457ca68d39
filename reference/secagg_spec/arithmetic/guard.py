"""Arguments of another class than their annotation says, refused for a whole module (ERR-02).

A class is stated once, in the annotation, and `guard` reads it there. What a number, an array, a text or bytes has to
be, and which of several classes is meant, each function says itself.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, is_dataclass
from fractions import Fraction
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError

_Class = TypeVar("_Class")
_PACKAGE = __name__.partition(".")[0] + "."
_SHAPES: dict[Any, tuple[Any, str]] = {
    get_origin(Callable[..., Any]): (Callable, "a function"),
    Mapping: (Mapping, "a mapping"),
    dict: (Mapping, "a mapping"),
    type: (type, "a class"),
    Iterable: (Iterable, "a list or another iterable"),
    **dict.fromkeys((Collection, Set, frozenset), (Collection, "a list or another collection")),
    **dict.fromkeys((Sequence, list, tuple), (Collection, "a list or another sequence")),
}
"""What the shapes in annotations ask for: `Sequence` no more than a collection, since arrays and sets are taken too."""
_CLASSES, _OTHERS = (bool, Path), "numpy.random."
"""Classes of others, and where others stand, that are asked for as those of this library are."""
_ENTRIES = {int: "integers", str: "text", Fraction: "fractions"}
_TEXTS = (str, bytes, bytearray, memoryview)
_NUMBERS = "int|float|Fraction|U16|U32|(?:Uint|Int|Real|Bool)Array|NDArray.*|Users|Vector"
_PLAIN = re.compile(rf"(?:(?:\w+\.)?(?:{_NUMBERS}|str|bytes|Bytes16|Opaque|object|Any|None)(?: \| |$))*")
"""Annotations of which a function checks its arguments itself."""


class _Absent:
    """Stands for an argument that is not given; its own class, which no argument has."""


def guard(module: str) -> None:
    """Let the public functions and classes of a module refuse arguments of a wrong class.

    A module calls it in its last line. Looked at are the arguments of public functions, of the public methods of public
    classes and of what makes one, that are annotated with a class of this library, a truth value, a random generator of
    numpy, a path (text becomes one), a mapping, a collection, a function or a class, or with one of these or None; the
    items of a collection, annotated with a class of this library that is no message; and the members of a data
    class that are annotated with one of these classes.

    Parameters
    ----------
    module : str
        The name of the module, ``__name__``.
    """
    names = vars(sys.modules[module])
    for name, value in list(names.items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module:
            continue
        if inspect.isfunction(value):
            names[name] = _guarded(value)
        elif inspect.isclass(value):
            _guard_class(value)


def _guard_class(kind: type) -> None:
    if "__init__" in vars(kind):
        setattr(kind, "__init__", _guarded(vars(kind)["__init__"], kind if is_dataclass(kind) else None))  # noqa: B010
    for name, value in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, (classmethod, staticmethod)):
            setattr(kind, name, type(value)(_guarded(value.__func__)))
        elif inspect.isfunction(value):
            setattr(kind, name, _guarded(value))


def _guarded(function: Callable[..., Any], kind: type | None = None) -> Callable[..., Any]:
    """Return a function that looks at its arguments; the function itself where none is to be looked at.

    The annotations are read at the first call. Those of the members of a data class, `kind`, are read where they were
    written, which may be in the module of a base.
    """
    if all(_PLAIN.fullmatch(str(hint)) for name, hint in function.__annotations__.items() if name != "return"):
        return function
    checks: list[tuple[int, str, _Wanted, set[type]]] | None = None
    absent = _Absent()

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        nonlocal checks
        checks = _checks(function, kind) if checks is None else checks
        count = len(given)
        for at, name, wanted, fitting in checks:
            value = given[at] if at < count else named.get(name, absent)
            if type(value) not in fitting:
                taken = wanted.check(name, value)
                if taken is value:
                    if not hasattr(value, "shape") and wanted.item is None:  # an array may have no axes
                        fitting.add(type(value))
                elif at < count:
                    given = (*given[:at], taken, *given[at + 1 :])
                else:
                    named[name] = taken
        return function(*given, **named)

    return checked


def _checks(function: Callable[..., Any], kind: type | None) -> list[tuple[int, str, _Wanted, set[type]]]:
    """Return the place and the name of each argument to look at, what it may be, and the classes known to fit."""
    hints = get_type_hints(kind or function)
    found: list[tuple[int, str, _Wanted, set[type]]] = []
    for at, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        wanted = _Wanted.read(hints[name]) if name in hints else None
        if wanted is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if kind is None or not wanted.shape:
            found.append((sys.maxsize if parameter.kind is parameter.KEYWORD_ONLY else at, name, wanted, {_Absent}))
    return found


@cache
def first_class(function: Callable[..., Any], default: type[_Class]) -> type[_Class]:
    """Return the class in the annotation of a function's first argument; `default` where that is no class below it."""
    hints = get_type_hints(function)
    hint = next((hints.get(name) for name in inspect.signature(function).parameters), None)
    return hint if inspect.isclass(hint) and issubclass(hint, default) else default


def _is_own(kind: Any) -> bool:
    """Return whether something is a class of this library, or one that is asked for as these are."""
    return inspect.isclass(kind) and (kind in _CLASSES or kind.__module__.startswith((_PACKAGE, _OTHERS)))


def _item(inner: Sequence[Any]) -> type | None:
    """Return the class that the items of a sequence must have, where the annotation names one of this library.

    Messages are none: what others send is judged by the protocol (ERR-01).
    """
    kind = inner[0] if len(inner) == 1 and inspect.isclass(inner[0]) else object
    message = hasattr(kind, "TYPE") or "TYPE" in vars(kind).get("__annotations__", ())
    return kind if kind.__module__.startswith(_PACKAGE) and not message else None


@dataclass(frozen=True)
class _Wanted:
    """What an argument may be: of a class, a shape such as a mapping, or an object with some methods."""

    kind: Any
    others: tuple[type, ...]
    shape: str = ""
    item: type | None = None
    methods: frozenset[str] = frozenset()

    @classmethod
    def read(cls, hint: Any) -> _Wanted | None:
        """Return what a type hint allows; nothing if it does not name one class of this library or one shape."""
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = [get_origin(one) or one for one in parts]
        others = tuple(kind for kind in kinds if kind in (NoneType, str, bytes))
        if len(kinds) != len(others) + 1:
            return None
        (kind,) = (kind for kind in kinds if kind not in others)
        if kind in _SHAPES:
            inner = [one for part in parts for one in get_args(part) if one is not Ellipsis and kind is not Mapping]
            named = [
                _ENTRIES.get(one) or one.__name__
                for one in inner
                if _is_own(one) or (inspect.isclass(one) and one in _ENTRIES)
            ]
            words = (_SHAPES[kind][1], *(named if len(inner) == 1 else ()))
            return cls(_SHAPES[kind][0], others, " of ".join(words), _item(inner))
        if not _is_own(kind):
            return None
        protocol = getattr(kind, "_is_protocol", False)
        return cls(kind, others, methods=frozenset(one for one in vars(kind) if protocol and not one.startswith("_")))

    def check(self, name: str, value: object) -> object:
        """Return an argument, text as a path where one is wanted; an error about it has its class alone (ERR-03)."""
        if isinstance(value, self.others):
            return value
        if self.methods:
            # what is of numpy has a `take` of its own
            if isinstance(value, (np.ndarray, np.generic)) or not all(hasattr(value, one) for one in self.methods):
                wanted = f"an object with what {self.kind.__name__} has: {', '.join(sorted(self.methods))}"
                raise ParameterError(name, validate.class_of(value), wanted)
        elif self.kind is Path:
            path = validate.path_of(name, value)
            return value if isinstance(value, Path) else path
        elif not self.shape:
            validate.instance(name, value, self.kind)
        elif not isinstance(value, self.kind) or isinstance(value, _TEXTS) or getattr(value, "shape", None) == ():
            raise ParameterError(name, validate.class_of(value), self.shape)
        elif self.item and isinstance(value, Collection):  # which can be read again
            for at, item in enumerate(value):
                if not isinstance(item, self.item):
                    validate.instance(f"{name}[{at}]", item, self.item)
        return value
