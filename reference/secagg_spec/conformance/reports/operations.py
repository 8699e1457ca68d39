"""All operations as data for any language: a JSON Schema of each request and result, its clauses, and the codes.

What an operation takes, draws and returns is that of the tables of the text; the clauses are those of the checks that
call it. Nothing is stated here a second time but what the simple types are.

Source: spec/adapter.md, sections 3 to 5.
"""

import json
import re
from collections.abc import Iterator, Mapping

from secagg_spec import resources
from secagg_spec.conformance.adapter import declared, forms
from secagg_spec.conformance.adapter.capabilities import ranged, rawable
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.sdk.secagg_adapter import (
    DRAWING,
    NUMBERS,
    OPERATIONS,
    PARTIES,
    PROTOCOL,
    REMEMBERED,
    WITHOUT_ROUNDS,
    form,
)

FILE = "operations.json"
Schema = forms.Schema


def _members(operation: str, names: tuple[str, ...]) -> Schema:
    return forms.object_of(**{name: forms.schema(forms.written_as(operation, form(operation, name))) for name in names})


def _rand(operation: str, names: tuple[str, ...]) -> Schema:
    """Return what ``rand`` may be: the sampled values, or a seed; it is left out in the grade ``none``."""
    return {"oneOf": [_members(operation, names), forms.object_of(seed=forms.ref("seed"))]}


def _parties(member: str) -> Iterator[Schema]:
    """Yield, for each party, what a request that opens or continues its session has besides the usual members."""
    for party, (setup, drawn) in PARTIES.items():
        protocol, _, role = party.partition(".")
        owner = party.replace("-", "_")
        if member == "again" and protocol in WITHOUT_ROUNDS:
            continue
        kept = tuple(name for name in setup if member == "new" or name not in REMEMBERED)
        params: Schema = {"properties": {"setup": _members(owner, kept)}}
        if member == "new":
            numbers = _members(owner, NUMBERS[protocol])
            params["properties"] |= {"protocol": {"const": protocol}, "role": {"const": role}, "numbers": numbers}
        yield {"properties": {"params": params, "rand": _rand(owner, drawn) if drawn else {"not": {}}}}


def _request(operation: str) -> Schema:
    params, drawn = OPERATIONS[operation]
    found = forms.object_of(id={"type": "integer"}, op={"const": operation}, params=_members(operation, params))
    if operation in ("session.new", "session.again"):
        found["properties"]["rand"] = {"type": "object"}
        found["anyOf"] = list(_parties(operation.partition(".")[2]))
    elif operation in DRAWING:
        found["properties"]["rand"] = _rand(operation, drawn) if drawn else forms.object_of(seed=forms.ref("seed"))
    if rawable(operation):
        found["properties"]["raw"] = {"const": True}
    return found


def _answer() -> Schema:
    """Return what an answer may be (section 1), of any operation."""
    error, id = forms.object_of(message=forms.ref("text")), {"type": ["integer", "null"]}
    kinds = {
        "result": {"type": "object"},
        "reject": forms.ref("reject"),
        "error": error,
        "unsupported": {"const": True},
    }
    return {"oneOf": [forms.object_of(id=id, **{kind: schema}) for kind, schema in kinds.items()]}


def _described() -> Mapping[str, Mapping[str, str]]:
    """Return the words of the text for what each operation takes, draws and returns."""
    tables = declared.of_text()
    scripts = {name.replace("-", "_"): party.says for name, party in tables.parties.items()}
    return {**{name: found.says for name, found in tables.operations.items()}, **scripts}


def _clauses(operation: str) -> list[str]:
    decided = {clause for check in REGISTRY.values() if operation in check.operations for clause in check.clauses}
    return [clause for clause in resources.clauses() if clause in decided]


def _codes() -> list[Schema]:
    """Return, for each kind of broken rule, its clauses and the codes that it may be refused with (section 5)."""
    return [
        {"when": when, "clauses": _named(when), "codes": re.findall(r"`([a-z_]+)`", codes)}
        for when, codes in resources.rows("adapter.md", "rule broken")
    ]


def _named(when: str) -> list[str]:
    """Return the clauses that words name, with those between the ends of a range."""
    found: list[str] = []
    for page, first, last in re.findall(r"([A-Z]+)-(\d\d)(?: to [A-Z]+-(\d\d))?", when):
        found += [f"{page}-{number:02}" for number in range(int(first), int(last or first) + 1)]
    return found


def document() -> Schema:
    """Return the file: a JSON Schema of one request, with a definition for each form, request, result, and the answer.

    `operations` says of each operation, by name: the parameters that may have a range, the members of its result that
    may be given raw, the words of the text for what it takes, draws and returns, and the clauses that the checks which
    call it decide. `refusals` has, for each kind of broken rule, its clauses and the codes that fit; where a rule has a
    qualifier, `when` says it.
    """
    words = _described()
    requests = {f"{name}.request": _request(name) for name in OPERATIONS}
    results = {f"{name}.result": forms.result(name) for name in OPERATIONS}
    about = {
        name: {"ranged": [*ranged(name)], "raw": [*rawable(name)], "says": {**words[name]}, "clauses": _clauses(name)}
        for name in OPERATIONS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The operations of the adapter protocol (spec/adapter.md)",
        "description": "Describes one request; the definitions also describe answers and results. The grade of "
        "randomness decides which form of rand comes, if any. Written by secagg-spec text --regenerate.",
        "version": list(PROTOCOL),
        "oneOf": [forms.ref(name) for name in requests],
        "$defs": {**forms.FORMS, "answer": _answer(), **requests, **results},
        "operations": about,
        "refusals": _codes(),
    }


def written() -> str:
    """Return the file as text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
