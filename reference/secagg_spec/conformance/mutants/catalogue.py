"""Mutants: the reference with one edit of its source, or with two edits that hide each other.

They are stored in ``spec/mutants/``, one file for each page of the text, with the clauses that each mutant breaks.
``planted(name)`` applies one temporarily: the reference itself runs, with one wrong piece. If no operation of the
adapter protocol can show a mutant, the mutant names the test that kills it (`Mutant.test`), and the plugin
`conformance.mutation.pytest_plugin` runs pytest on it.
"""

import difflib
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
    """One mutant: its edits, usually one, or the names of the two mutants that it combines, `parts`.

    `clauses` are the clauses that it breaks, the most important first. `kind` is its effect, one of `kinds.KINDS`.
    `source` is the origin of the idea, one of `kinds.SOURCES`, with details after a colon. If no operation of the
    adapter protocol can show the mutant, `test` is the test that kills it, as ``"file::name"``; else `test` is empty.
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
        """The page of the text, or the part of the project, of its first clause."""
        return kinds.protocol(self.clauses[0])

    @property
    def all_edits(self) -> tuple[Edit, ...]:
        """Its edits or, for a combination, the edits of its parts."""
        return self.edits + tuple(edit for part in self.parts for edit in REGISTRY[part].edits)

    @property
    def said(self) -> tuple[str, str]:
        """Its effect: a short label, and a description."""
        matters, colon, what = self.effect.partition(": ")
        return (matters, what) if colon else (self.kind, self.effect)


__all__ = ["REGISTRY", "EditError", "Mutant", "equivalent", "forget", "load", "planted", "unbreakable"]
REGISTRY: dict[str, Mutant] = {}
_NEAR = 5


@contextmanager
def planted(name: str) -> Iterator[Mutant]:
    """Apply a mutant for the duration of the context.

    Raises
    ------
    ParameterError
        No mutant has this name.
    EditError
        An edit of the mutant does not fit the source.
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
        A file lacks something, a name occurs twice, or a mutant has a part that does not exist.
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
    listed = edits.table(resources.root("spec") / "vectors" / "unbreakable.toml")["clause"]
    return {entry["id"]: entry["reason"] for entry in listed}


def equivalent() -> dict[str, str]:
    """Return the edits that change no result, each with the proof (spec/equivalent.toml)."""
    listed = edits.table(resources.root("spec") / "equivalent.toml")["change"]
    return {entry["name"]: entry["proof"] for entry in listed}
