"""Planted bugs: each a small change of the reference, with the clause that it breaks and an input that shows it.

``planted(name)`` plants one for a while. A mutant replaces a function, method or class *by name*, wherever the library
refers to it, so that what runs is the reference itself with one wrong piece.

Every module of this package may register mutants. A bug that no operation of the adapter protocol can show names the
test that does (`Mutant.reach`), and the plugin `conformance.planting` runs pytest with it planted. A *composite* plants
two mutants at once, which hide each other (`composites`).
"""

from __future__ import annotations

import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.mutants import kinds
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.shape import Step


@dataclass(frozen=True)
class Mutant:
    """One planted bug.

    `target` is ``"module:attribute"`` or ``"module:Class.method"``; `build` makes the wrong one from the right one.
    `witness` returns something that differs between the reference and the mutant, which proves that they do differ.
    `reach` is the test that finds it, as ``"file::name"``, where no operation of the adapter protocol comes near; else
    it is empty. `also` are further clauses that the bug breaks. `kind` is what it does, one of `kinds.KINDS`, and
    `source` where the idea comes from, one of `kinds.SOURCES`, with more about it behind a colon. A composite has no
    target of its own: `parts` are the mutants that it plants, in this order.
    """

    name: str
    clause: str
    effect: str
    target: str
    build: Callable[[Callable[..., Any]], Callable[..., Any]]
    witness: Callable[[], object]
    reach: str = ""
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    kind: str = field(kw_only=True)
    source: str = field(kw_only=True)

    @property
    def protocol(self) -> str:
        """The page of the text, or the part of the project, that its first clause belongs to."""
        return kinds.protocol(self.clause)

    @property
    def clauses(self) -> tuple[str, ...]:
        """All clauses that the bug breaks, the first one foremost."""
        return (self.clause, *self.also)


REGISTRY: dict[str, Mutant] = {}
_REGISTERED_BY: dict[str, str] = {}
"""The module that registered each mutant."""
_CACHING = tuple(f"secagg_spec.{package}" for package in ("arithmetic", "crypto", "protocols", "privacy", "selection"))
"""The packages whose functions may keep results."""
_Cached = type(cache(lambda: None))


def mutant(
    name: str,
    clause: str,
    effect: str,
    target: str,
    witness: Callable[[], object],
    reach: str = "",
    also: tuple[str, ...] = (),
    *,
    kind: str,
    source: str,
) -> Callable[[Any], Any]:
    """Register a function that makes the wrong piece from the right one; the arguments are the fields of `Mutant`."""

    def register(build: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
        _add(Mutant(name, clause, effect, target, build, witness, reach, also, kind=kind, source=source), module)
        return build

    module = _registering()
    return register


def composite(
    name: str,
    clause: str,
    effect: str,
    *parts: str,
    witness: Callable[[], object],
    also: tuple[str, ...] = (),
    kind: str,
    source: str,
) -> None:
    """Register a bug that consists of others, which hide each other; the arguments are the fields of `Mutant`."""
    made = Mutant(name, clause, effect, "", lambda right: right, witness, "", also, parts, kind=kind, source=source)
    _add(made, _registering())


def _registering() -> str:
    """Return the name of the module that called the caller of this function."""
    name: str = sys._getframe(2).f_globals["__name__"]
    return name


def _add(made: Mutant, module: str) -> None:
    assert made.name not in REGISTRY, f"two mutants are called {made.name}"
    REGISTRY[made.name] = made
    _REGISTERED_BY[made.name] = module


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
    with ExitStack() as stack:
        stack.callback(forget)
        for part in chosen.parts or (name,):
            stack.enter_context(_replaced(REGISTRY[part]))
        forget()
        yield chosen


@contextmanager
def _replaced(chosen: Mutant) -> Iterator[None]:
    """Put what a mutant makes in the place of its target."""
    places = list(_places(chosen.target))
    right = getattr(*places[0])
    wrong = chosen.build(right)
    for holder, attribute in places:
        _put(holder, attribute, wrong)
    try:
        yield
    finally:
        for holder, attribute in places:
            _put(holder, attribute, right)


def forget() -> None:
    """Empty the caches of the protocols and of what they stand on: none may hold a value of the other kind."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_CACHING):
            for value in list(vars(module).values()):
                if isinstance(value, _Cached):
                    value.cache_clear()


@cache
def load() -> dict[str, Mutant]:
    """Import every module of this package and return the registry, module after module.

    So the order is the same where some of them were imported before.
    """
    modules = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    for module in modules:
        import_module(module)
    ordered = sorted(REGISTRY.items(), key=lambda entry: modules.index(_REGISTERED_BY[entry[0]]))
    REGISTRY.clear()
    REGISTRY.update(ordered)
    return REGISTRY


def unbreakable() -> dict[str, str]:
    """Return the clauses that need no mutant, each with the reason (spec/vectors/unbreakable.toml)."""
    path = resources.root("spec") / "vectors" / "unbreakable.toml"
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["clause"]
    return {entry["id"]: entry["reason"] for entry in listed}


def equivalent() -> dict[str, str]:
    """Return the changes of the reference that are no bugs, each with the proof (spec/equivalent.toml)."""
    listed = tomllib.loads((resources.root("spec") / "equivalent.toml").read_text(encoding="utf-8"))["change"]
    return {entry["name"]: entry["proof"] for entry in listed}


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
    for name, other in list(sys.modules.items()):
        if not name.startswith("secagg_spec.") or ".conformance" in name:
            continue
        if other is not module and getattr(other, attribute, None) is right:
            yield other, attribute
        yield from ((step, "run") for step in getattr(other, "TABLE", ()) if step.run is right)
