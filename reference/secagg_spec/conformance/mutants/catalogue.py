"""Mutants: the reference with one edit of its source, or with two that hide each other.

They stand in ``spec/mutants/``, one file for each page of the text, with the clauses that each breaks.
``planted(name)`` makes one for a while: what runs is the reference itself with one wrong piece. A mutant that no
operation of the adapter protocol can show names the test that kills it (`Mutant.test`), and the plugin
`conformance.mutation.pytest_plugin` runs pytest on it.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache

from secagg_spec import resources
from secagg_spec.conformance.mutants import engine as edits
from secagg_spec.conformance.mutants import kinds
from secagg_spec.conformance.mutants.engine import Edit, EditError, forget
from secagg_spec.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One mutant: its edits, one mostly, or the names of the two that it consists of, `parts`.

    `clauses` are those that it breaks, the foremost first. `kind` is what it does, one of `kinds.KINDS`, and `source`
    where the idea comes from, one of `kinds.SOURCES`, with more about it behind a colon. `test` is the test that kills
    it, as ``"file::name"``, if no operation of the adapter protocol can show it; else it is empty.
    """

    name: str
    clauses: tuple[str, ...]
    effect: str
    kind: str
    source: str
    test: str = ""
    parts: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def protocol(self) -> str:
        """The page of the text, or the part of the project, that its first clause belongs to."""
        return kinds.protocol(self.clauses[0])

    @property
    def all_edits(self) -> tuple[Edit, ...]:
        """Its edits; those of its parts, where it has any."""
        return self.edits + tuple(edit for part in self.parts for edit in REGISTRY[part].edits)

    @property
    def said(self) -> tuple[str, str]:
        """What it does, in a word or two, and how."""
        matters, colon, what = self.effect.partition(": ")
        return (matters, what) if colon else (self.kind, self.effect)


__all__ = ["REGISTRY", "EditError", "Mutant", "equivalent", "forget", "load", "planted", "unbreakable"]
REGISTRY: dict[str, Mutant] = {}
_NEAR = 5


@contextmanager
def planted(name: str) -> Iterator[Mutant]:
    """Make a mutant for the time of the context.

    Raises
    ------
    ParameterError
        No mutant has this name.
    EditError
        Its edit does not fit the source.
    """
    load()
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, REGISTRY, _NEAR) or ["secagg-spec power --json lists them"]
        raise ParameterError("mutant", name, f"a name in spec/mutants, such as {', '.join(near)}")
    chosen = REGISTRY[name]
    with ExitStack() as stack:
        for edit in chosen.all_edits:
            stack.enter_context(edits.planted(edit))
        yield chosen


@cache
def load() -> dict[str, Mutant]:
    """Read all mutants, in the order of the names of their files, and return the registry.

    Raises
    ------
    EditError
        A file lacks something, a name stands in two, or a mutant consists of one that does not exist.
    """
    found: dict[str, Mutant] = {}
    for path in edits.files():
        for name, said, made in edits.read(path):
            if name in found:
                raise EditError(f"{path.name}: {name} is the name of another mutant")
            found[name] = Mutant(
                name=name,
                clauses=tuple(said["clauses"].split()),
                effect=said["effect"],
                kind=said["kind"],
                source=said["source"],
                test=said.get("test", ""),
                parts=tuple(said.get("parts", ())),
                edits=made,
            )
    for mutant in found.values():
        for part in mutant.parts:
            if part not in found or found[part].parts:
                raise EditError(f"{mutant.name}: {part} is no mutant with an edit")
    REGISTRY.update(found)
    return REGISTRY


def unbreakable() -> dict[str, str]:
    """Return the clauses that need no mutant, each with the reason (spec/vectors/unbreakable.toml)."""
    path = resources.root("spec") / "vectors" / "unbreakable.toml"
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["clause"]
    return {entry["id"]: entry["reason"] for entry in listed}


def equivalent() -> dict[str, str]:
    """Return the edits that change nothing, each with the proof (spec/equivalent.toml)."""
    listed = tomllib.loads((resources.root("spec") / "equivalent.toml").read_text(encoding="utf-8"))["change"]
    return {entry["name"]: entry["proof"] for entry in listed}
