"""What ``secagg-spec explain`` needs of checks, targets, vectors, mutants and claims, stored in ``spec/explain.json``.

To load all of them takes a second; to read this file takes a hundredth. ``secagg-spec text --regenerate`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from secagg_spec import documents, resources
from secagg_spec.errors import UsageError

FILE = "explain.json"


class Row(NamedTuple):
    """A check: its id, what it tests, its clauses and operations, the most cases of 100, and whether they grow."""

    id: str
    text: str
    clauses: Sequence[str]
    operations: Sequence[str]
    examples: int | None
    grows: bool


class Vector(NamedTuple):
    """A test vector: its id, its clauses, and the operation that it asks."""

    id: str
    clauses: Sequence[str]
    operation: str


class Found(NamedTuple):
    """A claim: whether it is an erratum, with its verdict; its place; what it says; and the title of its paper."""

    kind: str
    place: str
    says: str
    paper: str


class Index(NamedTuple):
    """The stored index. `ids` has the ids of each kind that is not in the text itself."""

    checks: Mapping[str, Row]
    vectors: Mapping[str, Vector]
    claims: Mapping[str, Found]
    targets: Mapping[str, str]
    failing: Mapping[str, Sequence[str]]
    ids: Mapping[str, Sequence[str]]


@cache
def load() -> Index:
    """Return the stored index.

    Raises
    ------
    UsageError
        The file cannot be read, or is none that `written` gives.
    """
    path = resources.root("spec") / FILE
    try:
        stored = documents.read_json(path)
        checks = {id: Row(id, *rest) for id, *rest in stored["checks"]}
        claims = {id: Found(*rest) for id, *rest in stored["claims"]}
        vectors = {id: Vector(id, *rest) for id, *rest in stored["vectors"]}
        return Index(checks, vectors, claims, stored["targets"], stored["failing"], stored["ids"])
    except (OSError, ValueError, LookupError, TypeError):
        raise UsageError(f"{path}: cannot be used; secagg-spec text --regenerate writes it again") from None


def written() -> str:
    """Return the index of what is there now, one line for each entry."""
    from secagg_spec.conformance.adapter.capabilities import POLICIES  # noqa: PLC0415 - loads what `load` is to spare
    from secagg_spec.conformance.checks import REGISTRY  # noqa: PLC0415
    from secagg_spec.conformance.mutants import catalogue  # noqa: PLC0415
    from secagg_spec.conformance.targets import TARGETS  # noqa: PLC0415
    from secagg_spec.conformance.vectors import store  # noqa: PLC0415
    from secagg_spec.ledger import entries  # noqa: PLC0415

    book, files = entries.load(), store.load_all()
    checks = [Row(c.id, c.text, c.clauses, c.operations, c.examples, c.grows) for c in REGISTRY.values()]
    claims = [
        (
            claim.id,
            f"{claim.verdict} {'erratum' if claim in book.errata() else 'claim'}",
            f"{claim.paper}, {claim.place}",
            claim.statement,
            book.papers[claim.paper],
        )
        for claim in book.claims.values()
    ]
    ids = {
        "mutant": [*catalogue.load()],
        "policy": [*POLICIES],
        "flag of test vectors": [*dict.fromkeys(name for file in files for name in file.flags)],
    }
    parts = {
        "checks": _lines(checks),
        "vectors": _lines([(v.id, v.clauses, v.operation) for file in files for v in file.vectors]),
        "claims": _lines(claims),
        "targets": json.dumps({target.name: target.about for target in TARGETS.values()}, ensure_ascii=False),
        "failing": json.dumps(_failing(), indent=1, ensure_ascii=False),
        "ids": json.dumps(ids, indent=1),
    }
    return "{\n" + ",\n".join(f'"{name}": {text}' for name, text in parts.items()) + "\n}\n"


def _lines(entries: Sequence[Sequence[object]]) -> str:
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]"


def _failing() -> Mapping[str, Sequence[str]]:
    """Return the frameworks that fail each clause, with the releases that do, from the stored results."""
    from secagg_spec.conformance.reports import results  # noqa: PLC0415 - as above

    found: dict[str, dict[str, dict[str, str]]] = {}
    for target, result in results.load(resources.root("spec").parent / "docs" / "results").items():
        framework, release = results.framework(target), result["implementation"]["version"]
        for clause in sorted({c for check in result["checks"] if check["failure"] for c in check["clauses"]}):
            found.setdefault(clause, {}).setdefault(framework, {})[str(result["released"])] = str(release)
    return {
        clause: [f"{name} {', '.join(names[name][day] for day in sorted(names[name]))}" for name in names]
        for clause, names in found.items()
    }
