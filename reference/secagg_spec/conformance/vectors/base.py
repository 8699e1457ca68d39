"""What a vector is, and what it is for.

The vectors in ``spec/vectors`` are frozen: their inputs do not change. What a vector is for, its flags, is in
``flags.toml``, which uses the words of the mutants.

A vector whose result changed with the text has a new id. ``renewed.txt`` lists it next to its first id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from secagg_spec import documents, resources
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.errors import UsageError
from secagg_spec.schemas import shown

RENEWED = "renewed.txt"
FLAGS = "flags.toml"

EDGE_CASE = "EDGE_CASE"
BUG_TYPES = {
    "BASIC": "the operation as it is used; a failure here is mostly one of the adapter",
    EDGE_CASE: "a value at the end of what is allowed, or where two cases of the text meet",
    "OVERFLOW": "an intermediate result that a machine word does not hold",
    "MISSING_STEP": "a check that the text demands and that is left out",
    "WRONG_ORDER": "the right values in the wrong place",
    "FOUND": "a case in which an implementation failed",
}
"""The kinds of bugs that flags name."""


def only(flags: Mapping[str, Flag]) -> Mapping[str, Flag]:
    """Return the flags if they name only one mutant, else none: a failure does not tell several mutants apart."""
    return flags if len({name for flag in flags.values() for name in flag.mutants}) == 1 else {}


@dataclass(frozen=True)
class Flag:
    """What a vector is for: a kind of bug, what it does, the clause that it breaks, and the mutants that have it."""

    bug_type: str
    description: str
    effect: str
    clause: str
    mutants: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the flag in the form of the file."""
        return {**vars(self), "mutants": list(self.mutants)}


@dataclass(frozen=True)
class Vector:
    """One request and its outcome: either `result`, or `codes`, one of which a rejection must have.

    `policy` holds the choices of an implementation that the outcome presupposes. `operations` holds the steps of a
    whole run.
    """

    id: str
    clauses: tuple[str, ...]
    flags: tuple[str, ...]
    comment: str
    operation: str
    params: Mapping[str, Any]
    rand: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    reject: tuple[str, ...] = ()
    policy: Mapping[str, str] = field(default_factory=dict)
    operations: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the vector in the form of the file."""
        body: dict[str, Any] = {
            "id": self.id,
            "clauses": list(self.clauses),
            "flags": list(self.flags),
            "comment": self.comment,
            "operation": self.operation,
            "params": dict(self.params),
            "rand": dict(self.rand),
        }
        body |= {"policy": dict(self.policy)} if self.policy else {}
        body |= {"result": dict(self.result)} if self.result is not None else {"reject": list(self.reject)}
        body |= {"operations": [dict(step) for step in self.operations]} if self.operations else {}
        return body


def vector_of(body: Mapping[str, Any]) -> Vector:
    """Return the vector of an entry of a file. The entry must fit the schema."""
    lists = {name: tuple(body[name]) for name in ("clauses", "flags", "reject", "operations") if name in body}
    return Vector(**{**body, **lists})


@cache
def _flags() -> Mapping[str, Mapping[str, str]]:
    """Return the flags of each file (flags.toml)."""
    return engine.table(folder() / FLAGS)


def _flag(name: str, words: str) -> Flag:
    """Return a flag, in the words of the mutants that it names."""
    known, parts = mutants.load(), words.split()
    if len(parts) < 2 or parts[0] not in BUG_TYPES or not known.keys() >= set(parts[2:]):
        wanted = f"a kind ({', '.join(BUG_TYPES)}), a clause and names of mutants"
        raise UsageError(f"{FLAGS}: {name} is {shown(words)}, and must be {wanted}")
    bug_type, clause, *found = parts
    said = [known[mutant].said for mutant in found]
    description = "; or ".join(what for _, what in said)
    effect = ", ".join(dict.fromkeys(matters for matters, _ in said))
    return Flag(bug_type, f"{description[:1].upper()}{description[1:]}.", effect, clause, (*found,))


def flags_of(name: str) -> dict[str, Flag]:
    """Return the flags of a file that ``flags.toml`` lists; none of another file."""
    return {flag: _flag(flag, words) for flag, words in _flags().get(name, {}).items()}


@dataclass
class VectorFile:
    """The vectors of one file, in order, and its flags."""

    name: str
    covers: str
    flags: dict[str, Flag] = field(default_factory=dict)
    vectors: list[Vector] = field(default_factory=list)


def folder() -> Path:
    """Return the folder of the vectors, in a checkout or in the package."""
    return resources.root("spec") / "vectors"


@cache
def renewed() -> Mapping[str, str]:
    """Return the id of each vector that changed with the text, by its first id."""
    return read_renewed(folder())


def read_renewed(place: Path) -> dict[str, str]:
    """Return the list of renewed ids in a folder, empty if there is none."""
    return read_pairs(place / RENEWED)


def read_pairs(path: Path) -> dict[str, str]:
    """Return the two words of each line of a file by the first word, without comments; empty if there is no file.

    Raises
    ------
    UsageError
        The file is not UTF-8, or a line has other than two words.
    """
    try:
        lines = documents.read_text(path).splitlines() if path.is_file() else []
    except documents.NotText as error:
        raise UsageError(f"{path}: it {error}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            words = line.split()
            if len(words) != 2:
                raise UsageError(f"{path}: line {number} is {shown(line)}, and must have two words")
            found[words[0]] = words[1]
    return found


@cache
def _reference() -> Adapter:
    return reference.build()


def ask(operation: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the reference's answer."""
    return _reference().answer({"id": 0, "op": operation, "params": decimal(params), "rand": dict(rand or {})})
