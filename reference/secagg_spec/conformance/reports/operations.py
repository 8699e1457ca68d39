"""All operations as data for any language: a JSON Schema of each request and result, its clauses, and the codes.

What an operation takes, draws and returns is that of the tables of the text; the clauses are those of the checks that
call it. Nothing is stated here a second time but what the simple types are.

Source: spec/adapter.md, sections 3 to 5.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter import declared
from secagg_spec.conformance.adapter.capabilities import ranged, rawable
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.sdk.secagg_adapter import (
    DRAWING,
    EPOCH_EVENTS,
    EVENTS,
    NUMBERS,
    OPERATIONS,
    PARTIES,
    PROTOCOL,
    REMEMBERED,
    RESULTS,
    WIDE,
    WITHOUT_ROUNDS,
    form,
    members,
)

FILE = "operations.json"
Schema = dict[str, Any]


def _hex(digits: int) -> Schema:
    return {"type": "string", "pattern": f"^([0-9a-f]{{{digits}}})*$"}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _schema(type: str) -> Schema:
    """Return the schema of a type of the text (section 3)."""
    if type.endswith("?"):
        return {"oneOf": [_schema(type[:-1]), {"type": "null"}]}
    if type[0] == "[":
        return {"type": "array", "items": _schema(type[1:-1])}
    if type[0] == "(":
        parts = [_schema(part) for _, part in members(type)]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    return _object(**{name: _schema(part) for name, part in members(type)}) if type[0] == "{" else _ref(type)


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _one_event(events: Mapping[str, tuple[str, ...]]) -> Schema:
    types = {"user": "integer", "users": "[integer]", "stamp": "decimal", "keyed": "flag"}
    members = {name: {member: _schema(types[member]) for member in given} for name, given in events.items()}
    return {"oneOf": [_object(event={"const": name}, **given) for name, given in members.items()]}


FORMS: Mapping[str, Schema] = {
    "json": {},
    "object": {"type": "object"},
    "step": _schema("{phase:text,inbox:[bytes]}"),
    "channel": {"oneOf": [{"const": "plain"}, _schema("{private:bytes,roster:[bytes]}")]},
    "flag": {"type": "boolean"},
    "text": {"type": "string"},
    "integer": {"type": "integer", "description": "written without a fraction and without an exponent"},
    "decimal": {"type": "string", "pattern": "^-?(0|[1-9][0-9]*)$"},
    "bytes": _hex(2),
    "seed": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "vector": _hex(8),
    "words": _hex(8),
    "binary64": _hex(16),
    "formatted": _hex(8),
    "party": {"oneOf": [_ref("integer"), {"enum": ["server", "authority"]}]},
    "event": _one_event({name: ("users",) if name == "recover" else ("user",) for name in EVENTS}),
    "visit": _one_event(EPOCH_EVENTS),
    "alteration": {
        "oneOf": [
            {"type": "null"},
            *map(_schema, ("{byte:integer,mask:integer}", "{sender:integer}", "{receiver:integer}")),
        ]
    },
    "reject": {
        "type": "object",
        "properties": {"code": {"enum": sorted(ALL_CODES)}, "message": _ref("text"), "blamed": _schema("[party]")},
        "required": ["code"],
    },
    "outbox": {
        "type": "object",
        "properties": {"outbox": _schema("[bytes]"), "aggregate": _ref("vector")},
        "required": ["outbox"],
        "additionalProperties": False,
    },
    "refused": _schema("{reject:reject}"),
    "entry": {"oneOf": [_ref("outbox"), _ref("refused")]},
    "released": {"oneOf": [_schema("{seeds:[integer],keys:[integer]}"), _ref("refused")]},
    "answered": {"oneOf": [_object(), _ref("refused")]},
    "buffer": _schema("{users:[integer],stamps:words,round:decimal,weights:words,sum:vector}"),
    "epoch": _schema("{positions:[integer],users:[integer],round:decimal,weights:words,sum:vector?}"),
    "recoverable": _schema("{user:integer,round:integer,combination:[(integer,(decimal,decimal))]}"),
}
"""Each simple type of a member (section 3), in the words of JSON Schema; a formatted number has 8 or 16 digits."""


def _members(operation: str, names: tuple[str, ...]) -> Schema:
    return _object(**{name: _schema(_written(operation, form(operation, name))) for name in names})


def _written(operation: str, type: str) -> str:
    """Return a type; where moduli may be above 2**32, the bytes of each element of a vector are the modulus's."""
    return type.replace("vector", "bytes") if operation.startswith(WIDE) else type


def _rand(operation: str, names: tuple[str, ...]) -> Schema:
    """Return what ``rand`` may be: the sampled values, or a seed; it is left out in the grade ``none``."""
    return {"oneOf": [_members(operation, names), _object(seed=_ref("seed"))]}


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
    found = _object(id={"type": "integer"}, op={"const": operation}, params=_members(operation, params))
    if operation in ("session.new", "session.again"):
        found["properties"]["rand"] = {"type": "object"}
        found["anyOf"] = list(_parties(operation.partition(".")[2]))
    elif operation in DRAWING:
        found["properties"]["rand"] = _rand(operation, drawn) if drawn else _object(seed=_ref("seed"))
    if rawable(operation):
        found["properties"]["raw"] = {"const": True}
    return found


def _result(operation: str) -> Schema:
    if operation == "session.step":
        return _ref("outbox")
    found = _object(**{name: _schema(_written(operation, type)) for name, type in RESULTS[operation].items()})
    raw = {name: _schema(type.replace("vector", "[decimal]")) for name, type in rawable(operation).items()}
    if raw:
        found["properties"]["raw"] = {"type": "object", "properties": raw, "additionalProperties": False}
    return found


def _answer() -> Schema:
    """Return what an answer may be (section 1), of any operation."""
    error, id = _object(message=_ref("text")), {"type": ["integer", "null"]}
    kinds = {"result": {"type": "object"}, "reject": _ref("reject"), "error": error, "unsupported": {"const": True}}
    return {"oneOf": [_object(id=id, **{kind: schema}) for kind, schema in kinds.items()]}


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
    results = {f"{name}.result": _result(name) for name in OPERATIONS}
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
        "oneOf": [_ref(name) for name in requests],
        "$defs": {**FORMS, "answer": _answer(), **requests, **results},
        "operations": about,
        "refusals": _codes(),
    }


def written() -> str:
    """Return the file as text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
