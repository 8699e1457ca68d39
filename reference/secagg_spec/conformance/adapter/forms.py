"""The types of the adapter protocol and the results of operations in the words of JSON Schema.

What an operation returns is that of the tables of the text; nothing is stated here a second time but what the simple
types are.

Source: spec/adapter.md, sections 3 and 4.
"""

from collections.abc import Mapping
from typing import Any

from secagg_spec.conformance.adapter.capabilities import rawable
from secagg_spec.conformance.adapter.codes import ALL_CODES
from secagg_spec.conformance.sdk.secagg_adapter import EPOCH_EVENTS, EVENTS, RESULTS, WIDE, members

Schema = dict[str, Any]


def _hex(digits: int) -> Schema:
    return {"type": "string", "pattern": f"^([0-9a-f]{{{digits}}})*$"}


def ref(name: str) -> Schema:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def schema(type: str) -> Schema:
    """Return the schema of a type of the text (section 3)."""
    if type.endswith("?"):
        return {"oneOf": [schema(type[:-1]), {"type": "null"}]}
    if type[0] == "[":
        return {"type": "array", "items": schema(type[1:-1])}
    if type[0] == "(":
        parts = [schema(part) for _, part in members(type)]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    return object_of(**{name: schema(part) for name, part in members(type)}) if type[0] == "{" else ref(type)


def object_of(**members: Schema) -> Schema:
    """Return the schema of an object with exactly these members."""
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _one_event(events: Mapping[str, tuple[str, ...]]) -> Schema:
    types = {"user": "integer", "users": "[integer]", "stamp": "decimal", "keyed": "flag"}
    members = {name: {member: schema(types[member]) for member in given} for name, given in events.items()}
    return {"oneOf": [object_of(event={"const": name}, **given) for name, given in members.items()]}


FORMS: Mapping[str, Schema] = {
    "json": {},
    "object": {"type": "object"},
    "step": schema("{phase:text,inbox:[bytes]}"),
    "channel": {"oneOf": [{"const": "plain"}, schema("{private:bytes,roster:[bytes]}")]},
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
    "party": {"oneOf": [ref("integer"), {"enum": ["server", "authority"]}]},
    "event": _one_event({name: ("users",) if name == "recover" else ("user",) for name in EVENTS}),
    "visit": _one_event(EPOCH_EVENTS),
    "alteration": {
        "oneOf": [
            {"type": "null"},
            *map(schema, ("{byte:integer,mask:integer}", "{sender:integer}", "{receiver:integer}")),
        ]
    },
    "reject": {
        "type": "object",
        "properties": {"code": {"enum": sorted(ALL_CODES)}, "message": ref("text"), "blamed": schema("[party]")},
        "required": ["code"],
    },
    "outbox": {
        "type": "object",
        "properties": {"outbox": schema("[bytes]"), "aggregate": ref("vector")},
        "required": ["outbox"],
        "additionalProperties": False,
    },
    "refused": schema("{reject:reject}"),
    "entry": {"oneOf": [ref("outbox"), ref("refused")]},
    "released": {"oneOf": [schema("{seeds:[integer],keys:[integer]}"), ref("refused")]},
    "answered": {"oneOf": [object_of(), ref("refused")]},
    "buffer": schema("{users:[integer],stamps:words,round:decimal,weights:words,sum:vector}"),
    "epoch": schema("{positions:[integer],users:[integer],round:decimal,weights:words,sum:vector?}"),
    "recoverable": schema("{user:integer,round:integer,combination:[(integer,(decimal,decimal))]}"),
}
"""Each simple type of a member (section 3), in the words of JSON Schema; a formatted number has 8 or 16 digits."""


def written_as(operation: str, type: str) -> str:
    """Return a type; where moduli may be above 2**32, the bytes of each element of a vector are the modulus's."""
    return type.replace("vector", "bytes") if operation.startswith(WIDE) else type


def result(operation: str) -> Schema:
    """Return the schema of an operation's result, also of an operation that joined."""
    if operation == "session.step":
        return ref("outbox")
    found = object_of(**{name: schema(written_as(operation, type)) for name, type in RESULTS[operation].items()})
    raw = {name: schema(type.replace("vector", "[decimal]")) for name, type in rawable(operation).items()}
    if raw:
        found["properties"]["raw"] = {"type": "object", "properties": raw, "additionalProperties": False}
    return found
