"""Planted bugs: each a small change of the reference, with the clause that it breaks and an input that shows it.

``planted(name)`` plants one for a while. A mutant replaces a function or method *by name*, wherever the library refers
to it, so that what runs is the reference itself with one wrong piece.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from secagg_spec.errors import ParameterError
from secagg_spec.protocols.shape import Step


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    `target` is ``"module:attribute"`` or ``"module:Class.method"``; `build` makes the wrong one from the right one.
    `witness` returns something that differs between the reference and the mutant, which proves that they do differ.
    `reach` is the test that finds it, as ``"file::name"``, where no operation of the kit comes near; else it is empty.
    """

    name: str
    clause: str
    effect: str
    target: str
    build: Callable[[Callable[..., Any]], Callable[..., Any]]
    witness: Callable[[], object]
    reach: str = ""


REGISTRY: dict[str, Mutant] = {}


def mutant(
    name: str, clause: str, effect: str, target: str, witness: Callable[[], object], reach: str = ""
) -> Callable[[Any], Any]:
    """Register a function that makes the wrong piece from the right one."""

    def register(build: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        assert name not in REGISTRY, f"two mutants are called {name}"
        REGISTRY[name] = Mutant(name, clause, effect, target, build, witness, reach)
        return build

    return register


@contextmanager
def planted(name: str) -> Iterator[Mutant]:
    """Plant a mutant for the time of the context.

    Raises
    ------
    ParameterError
        No mutant has this name.
    """
    load()
    if name not in REGISTRY:
        raise ParameterError("mutant", name, f"one of {', '.join(sorted(REGISTRY))}")
    chosen = REGISTRY[name]
    places = list(_places(chosen.target))
    right = getattr(*places[0])
    wrong = chosen.build(right)
    for holder, attribute in places:
        _put(holder, attribute, wrong)
    try:
        yield chosen
    finally:
        for holder, attribute in places:
            _put(holder, attribute, right)


def load() -> dict[str, Mutant]:
    """Import all mutants and return the registry."""
    for module in ("catalogue", "adapter", "crypto", "sessions", "active"):
        import_module(f"secagg_spec.conformance.mutants.{module}")
    return REGISTRY


def _put(holder: Any, attribute: str, value: Any) -> None:
    """Set an attribute, of a row of a protocol's table as well, which is frozen otherwise."""
    if isinstance(holder, Step):
        object.__setattr__(holder, attribute, value)
    else:
        setattr(holder, attribute, value)


def _places(target: str) -> Iterator[tuple[Any, str]]:
    """Yield everything that refers to the target: its class, or each module and each table that took it over."""
    module_name, _, path = target.partition(":")
    module = import_module(module_name)
    owner, _, attribute = path.rpartition(".")
    if owner:
        yield getattr(module, owner), attribute
        return
    right = getattr(module, attribute)
    yield module, attribute
    for other in list(sys.modules.values()):
        name = getattr(other, "__name__", "")
        if not name.startswith("secagg_spec.") or ".conformance" in name:
            continue
        if other is not module and getattr(other, attribute, None) is right:
            yield other, attribute
        yield from ((step, "run") for step in getattr(other, "TABLE", ()) if step.run is right)
