"""All operations as data for any language: a JSON Schema of each request and result, its clauses, and the codes.

What an operation takes and draws is that of the helper for adapters; what it returns, that of the checks of results;
the words, the clauses' codes and the ranges are those of the text. Nothing is stated here a second time.

Source: spec/adapter.md, sections 3 to 5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import ranged
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.forms import RESULTS
from secagg_spec.conformance.sdk.secagg_adapter import (
    DRAWING,
    EPOCH_EVENTS,
    EVENTS,
    NUMBERS,
    OPERATIONS,
    PARTIES,
    PHASES,
    PROTOCOL,
    REMEMBERED,
    ROUND_PHASES,
    WITHOUT_ROUNDS,
    form,
)

FILE = "operations.json"
Schema = dict[str, Any]


# -------------------------------------------------------------------------------------------------------------- forms


def _hex(digits: int) -> Schema:
    return {"type": "string", "pattern": f"^([0-9a-f]{{{digits}}})*$"}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name.replace(' ', '-')}"}


def _list(of: str) -> Schema:
    return {"type": "array", "items": _ref(of)}


def _tuple(*parts: str) -> Schema:
    return {"type": "array", "prefixItems": [_ref(part) for part in parts], "items": False, "minItems": len(parts)}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _by_phase(*phases: str) -> Schema:
    return _object(**dict.fromkeys(phases, _ref("users")))


def _event(name: str, *members: str) -> Schema:
    forms = {"user": "integer", "users": "users", "stamp": "decimal", "keyed": "flag"}
    return _object(event={"const": name}, **{member: _ref(forms[member]) for member in members})


def _schedule(events: Mapping[str, tuple[str, ...]]) -> Schema:
    return {"type": "array", "items": {"oneOf": [_event(name, *members) for name, members in events.items()]}}


FORMS: Mapping[str, Schema] = {
    "json": {},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "flag": {"type": "boolean"},
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "user": {"type": "integer"},
    "decimal": {"type": "string", "pattern": "^-?(0|[1-9][0-9]*)$"},
    "bytes": _hex(2),
    "seed": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "vector": _hex(8),
    "words": _hex(8),
    "reals": _hex(16),
    "binary64": _hex(16),
    "party": {"oneOf": [_ref("integer"), {"enum": ["server", "authority"]}]},
    "vectors": _list("vector"),
    "reals list": _list("reals"),
    "bytes list": _list("bytes"),
    "users": _list("integer"),
    "lists of users": _list("users"),
    "decimals": _list("decimal"),
    "decimals list": _list("decimals"),
    "listed sets": {"oneOf": [_ref("lists of users"), {"type": "null"}]},
    "choice": {"oneOf": [_ref("users"), {"type": "null"}]},
    "share": _tuple("integer", "vector"),
    "held": _list("share"),
    "stamped share": _tuple("integer", "decimal", "vector"),
    "stamped shares": _list("stamped share"),
    "skipped seed": _tuple("integer", "integer", "bytes"),
    "skipped seeds": _list("skipped seed"),
    "parcel": _tuple("integer", "bytes"),
    "parcels": _list("parcel"),
    "number": _tuple("text", "decimal"),
    "numbers": _list("number"),
    "request": _object(survivors=_ref("users"), dropped=_ref("users")),
    "requests": _list("request"),
    "alteration": {
        "oneOf": [
            {"type": "null"},
            _object(byte=_ref("integer"), mask=_ref("integer")),
            _object(sender=_ref("integer")),
            _object(receiver=_ref("integer")),
        ]
    },
    "drop": _by_phase(*PHASES),
    "round drop": _by_phase(*ROUND_PHASES),
    "early drop": _by_phase(*ROUND_PHASES[:-1]),
    "schedule": _schedule({name: ("users",) if name == "recover" else ("user",) for name in EVENTS}),
    "epoch schedule": _schedule(EPOCH_EVENTS),
}
"""Each form of a member (section 3), in the words of JSON Schema."""


_OF_RESULTS = {"reals": "vector"}
"""A result may hold numbers of binary32 or binary64; its digits come in eights."""


# --------------------------------------------------------------------------------------------------------- operations


def _members(operation: str, names: tuple[str, ...]) -> Schema:
    return _object(**{name: _ref(form(operation, name)) for name in names})


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
    found = _object(
        id={"type": "integer", "minimum": 0},
        op={"const": operation},
        params=_members(operation, params),
    )
    found["properties"]["rand"] = (
        _rand(operation, drawn) if operation in DRAWING and drawn else _object(seed=_ref("seed"))
    )
    if operation in ("session.new", "session.again"):
        del found["properties"]["rand"], found["additionalProperties"]
        found["anyOf"] = list(_parties(operation.partition(".")[2]))
    elif operation not in DRAWING:
        del found["properties"]["rand"]
    return found


def _result(operation: str) -> Schema:
    """Return what a result is known to hold; `RESULTS` says nothing of entries of steps, which are objects."""
    known = {name: _ref(_OF_RESULTS.get(kind, kind)) for name, kind in RESULTS.get(operation, {}).items()}
    return {"type": "object", "properties": known, "required": list(known)}


def _described() -> Mapping[str, tuple[str, str, str]]:
    """Return the words of the text for what each operation takes, draws and returns."""
    found = {}
    for names, *cells in resources.rows("adapter.md", "operation | params | rand | result"):
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", names):
            found[name] = (cells[0], cells[1], cells[2])
    return found


def _clauses(operation: str) -> list[str]:
    decided = {clause for check in REGISTRY.values() if operation in check.operations for clause in check.clauses}
    return [clause for clause in resources.clauses() if clause in decided]


def _codes() -> list[Schema]:
    """Return, for each kind of broken rule, its clauses and the codes that it may be refused with (section 5)."""
    return [
        {"when": when, "clauses": re.findall(r"[A-Z]+-\d\d", when), "codes": re.findall(r"`([a-z_]+)`", codes)}
        for when, codes in resources.rows("adapter.md", "rule broken")
    ]


def document() -> Schema:
    """Return the file: a schema of a request, with one definition for each form, and one for each operation.

    `operations` says of each operation, by name: the `request` and the `result`, the parameters that may have a
    range, the words of the text for what it takes, draws and returns, and the clauses that it decides. `refusals` has
    the codes that fit each broken rule.
    """
    words = _described()
    operations = {
        name: {
            "request": _request(name),
            "result": _result(name),
            "ranged": list(ranged(name)),
            "says": dict(zip(("params", "rand", "result"), words[name], strict=True)),
            "clauses": _clauses(name),
        }
        for name in OPERATIONS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The operations of the adapter protocol (spec/adapter.md)",
        "description": "Written by secagg-spec text --regenerate. As a schema it describes one request.",
        "protocol": list(PROTOCOL),
        "oneOf": [{"$ref": f"#/operations/{name}/request"} for name in OPERATIONS],
        "$defs": {name.replace(" ", "-"): schema for name, schema in FORMS.items()},
        "operations": operations,
        "refusals": _codes(),
    }


def written() -> str:
    """Return the file as text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
