"""What adapters of released Python packages share: imports without ``__init__`` files, and refusals.

A framework's ``__init__`` imports clients for clouds, trainers and dashboards before the protocol's own module can be
reached. This module registers bare packages instead, so the released files inside them are imported unchanged.
Imports that a round does not need are replaced by placeholders that do nothing.
"""

import sys
import types
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from secagg_adapter import Reject


def refusing(codes: Mapping[str, str], *errors: type[Exception]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that turns what the released code refuses on purpose into rejections.

    It refuses by one of `errors` with one of the texts of `codes` in its name or message. All else is an error.
    """

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        def call(**given: Any) -> Any:
            try:
                return handler(**given)
            except errors as error:
                said = f"{type(error).__name__}: {error}"
                code = next((code for text, code in codes.items() if text in said), None)
                raise (Reject(code, str(error) or type(error).__name__) if code else error) from error

        return call

    return decorate


def folder_of(distribution: str) -> Path:
    """Return the folder that contains the files of an installed distribution."""
    return Path(str(metadata.distribution(distribution).locate_file("")))


def packages(folder: Path, names: Iterable[str]) -> None:
    """Register packages, each by its dotted name, without running their ``__init__``."""
    for name in names:
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        _put(name, package)


def placeholders(names: Iterable[str]) -> None:
    """Replace modules by `Placeholder`."""
    for name in names:
        _put(name, Placeholder(name))


def module(name: str, **content: Any) -> None:
    """Register a module with exactly this content."""
    made = types.ModuleType(name)
    made.__dict__.update(content)
    _put(name, made)


def taken(name: str, *members: str) -> tuple[Any, ...]:
    """Import a module, and return some of its members."""
    imported = import_module(name)
    return tuple(getattr(imported, member) for member in members)


class Placeholder(types.ModuleType):
    """A module in which every name is a `Nothing`."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Nothing:
    """Accepts any call, and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take anything."""


def _put(name: str, made: types.ModuleType) -> None:
    """Register a module, and set it as an attribute of its package."""
    sys.modules[name] = made
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], own, made)
