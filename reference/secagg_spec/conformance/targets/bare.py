"""Modules of a released Python package without what its ``__init__`` files load: for adapters in their environments.

A framework's ``__init__`` imports clients for clouds, trainers and dashboards before the protocol's own module can be
reached. Here a package stands bare, so that the released files inside it are imported as they are; what they import
and what a round does not need is replaced by a placeholder that does nothing.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any


def folder_of(distribution: str) -> Path:
    """Return the folder that the files of an installed distribution are relative to."""
    return Path(str(metadata.distribution(distribution).locate_file("")))


def packages(folder: Path, names: Iterable[str]) -> None:
    """Let packages stand for themselves, each by its dotted name, without running their ``__init__``."""
    for name in names:
        package = types.ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
        _put(name, package)


def placeholders(names: Iterable[str]) -> None:
    """Let modules be `Placeholder`."""
    for name in names:
        _put(name, Placeholder(name))


def module(name: str, **content: Any) -> None:
    """Let a module be one that holds this content and nothing else."""
    made = types.ModuleType(name)
    made.__dict__.update(content)
    _put(name, made)


def taken(name: str, *members: str) -> tuple[Any, ...]:
    """Return members of a module, which is imported now."""
    imported = import_module(name)
    return tuple(getattr(imported, member) for member in members)


class Placeholder(types.ModuleType):
    """A module that has every name: each is a `Nothing`."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Nothing:
    """Takes whatever it is called with, and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take anything."""


def _put(name: str, made: types.ModuleType) -> None:
    """Make a module known, also as an attribute of its package."""
    sys.modules[name] = made
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], own, made)
