"""Planted bugs of the kit's own power: evidence that is not tried, flags that show nothing, bugs out of reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from secagg_spec.conformance.capabilities import Capabilities
from secagg_spec.conformance.mutants import mutant

Function = Callable[..., Any]
_KIT = "secagg_spec.conformance"
_GATE = "tests/conformance/test_mutants.py::"
_REACH = "tests/conformance/test_reach.py::"


def _kit(module: str) -> Any:
    """Return a module of the kit, which adapters that are the reference with a bug need not load."""
    return import_module(f"{_KIT}.{module}")


def _book() -> Any:
    store = _kit("vectors.store")
    return store.load(store.folder() / "arithmetic.json")


@mutant(
    "evidence-is-believed",
    "CNF-10",
    "acceptance: that a vector finds a bug is taken for true and not tried",
    f"{_KIT}.gather:failing",
    lambda: len(_kit("gather").failing("small-set-accepted", _book().vectors[:2])),
    _GATE + "test_evidence_that_does_not_hold_is_seen",
    kind="acceptance",
    source="clause left out",
)
def _believed(right: Function) -> Function:
    return lambda name, vectors: list(vectors)


def _idle() -> object:
    book = _book()
    flags = {name: replace(flag, mutants=()) for name, flag in book.flags.items()}
    return _kit("gather").idle_flags(replace(book, flags=flags), {})


@mutant(
    "flags-without-a-bug",
    "CNF-11",
    "acceptance: a flag of vectors may name no bug, or one that they do not find",
    f"{_KIT}.gather:idle_flags",
    _idle,
    _GATE + "test_a_flag_that_kills_nothing_is_seen",
    kind="acceptance",
    source="clause left out",
)
def _no_flags(right: Function) -> Function:
    return lambda book, table: []


def _narrow() -> object:
    ranges = {"q": {"max": 1000}}
    caps = Capabilities("x", "1", "x", {"field.multiply": {"ranges": ranges}}, "explicit", {}, {})
    return _kit("reach")._inside(caps, _kit("kills").Need("field.multiply", {"q": "65537"}))


@mutant(
    "bugs-outside-the-ranges-count",
    "CNF-12",
    "acceptance: a run counts bugs that show outside the declared ranges only",
    f"{_KIT}.reach:_inside",
    _narrow,
    _REACH + "test_a_bug_that_shows_outside_the_declared_range_does_not_count",
    kind="acceptance",
    source="clause in part",
)
def _anywhere(right: Function) -> Function:
    return lambda caps, need: True
