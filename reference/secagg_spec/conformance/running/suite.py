"""The checks of a run: each test vector as a check, and the checks that draw cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.checks import REGISTRY, Check
from secagg_spec.conformance.checks.base import Caller, Declined
from secagg_spec.conformance.vectors import judge, store
from secagg_spec.conformance.vectors.base import Flag, Vector

PREFIX = "vector/"
"""The prefix of the ids of checks that are test vectors."""
OUTSIDE = "not run: it lies outside the declared ranges, grades and policies"


@dataclass(frozen=True)
class VectorCheck(Check):
    """A test vector as a check: it draws nothing and sends one fixed request."""

    def obstacle(self, caps: Capabilities) -> str:
        """Return why the vector does not apply to an adapter, given its declaration; empty if it applies."""
        if not caps.offers(*self.operations):
            return "not offered"
        return "" if judge.asks(caps, vector(self.id)) else OUTSIDE

    def __reduce__(self) -> tuple[Callable[[str], Check], tuple[str]]:
        """Pickle the check by its id."""
        return find, (self.id,)


def find(id: str) -> Check:
    """Return the check or the test vector with an id.

    Raises
    ------
    KeyError
        There is no check or vector with this id.
    """
    return vector_checks()[id] if id.startswith(PREFIX) else REGISTRY[id]


def everything() -> dict[str, Check]:
    """Return all vectors and checks by id, in the order in which a run judges them."""
    return {**vector_checks(), **REGISTRY}


@cache
def vector_checks() -> Mapping[str, Check]:
    """Return the test vectors as checks, by id, in the order of their files."""
    return {name: _check(name, found) for name, (found, _) in _vectors().items()}


def vector(id: str) -> Vector:
    """Return the vector that belongs to a check."""
    return _vectors()[id][0]


def flags(id: str) -> Mapping[str, Flag]:
    """Return the kinds of bug that a failing vector suggests, by name; empty for other checks."""
    if id not in _vectors():
        return {}
    found, known = _vectors()[id]
    return {name: known[name] for name in found.flags}


@cache
def _vectors() -> Mapping[str, tuple[Vector, Mapping[str, Flag]]]:
    return {PREFIX + found.id: (found, file.flags) for file in store.load_all() for found in file.vectors}


def _check(name: str, found: Vector) -> VectorCheck:
    def demand(draw: Any, call: Caller) -> None:
        judge.demand(call, found)
        answer = call.transcript[-1].answer
        if answer is not None and answer.kind == "unsupported":
            raise Declined

    return VectorCheck(
        name, found.clauses, (found.operation,), demand, lambda caps: True, found.comment, examples=1, fixed=True
    )


def vectors_digest() -> str:
    """Return the SHA-256 of the files of the test vectors."""
    return resources.digest(sorted(path for path in store.folder().glob("*.json") if path.name != "schema.json"))
