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
from secagg_spec.conformance.adapter.codes import ALL_CODES
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


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _list(of: str) -> Schema:
    return _array(_ref(of))


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
    return _array({"oneOf": [_event(name, *members) for name, members in events.items()]})


FORMS: Mapping[str, Schema] = {
    "json": {},
    "object": {"type": "object"},
    "list": _list("step"),
    "step": _object(phase=_ref("text"), inbox=_ref("bytes list")),
    "channel": {"oneOf": [{"const": "plain"}, _object(private=_ref("bytes"), roster=_ref("bytes list"))]},
    "flag": {"type": "boolean"},
    "text": {"type": "string"},
    "integer": {"type": "integer", "description": "written without a fraction and without an exponent"},
    "user": _ref("integer"),
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
    "term": _tuple("integer", "decimals"),
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
    "reject": {
        "type": "object",
        "properties": {"code": {"enum": sorted(ALL_CODES)}, "message": _ref("text"), "blamed": _list("party")},
        "required": ["code"],
    },
    "outbox": {
        "type": "object",
        "properties": {"outbox": _ref("bytes list"), "aggregate": _ref("vector")},
        "required": ["outbox"],
        "additionalProperties": False,
    },
    "refused entry": _object(reject=_ref("reject")),
    "entries": _array({"oneOf": [_ref("outbox"), _ref("refused entry")]}),
}
"""Each form of a member (section 3), in the words of JSON Schema."""


_OF_RESULTS = {"reals": "vector"}
"""A result may hold numbers of binary32 or binary64; its digits come in eights."""


def _answers(*forms: Schema) -> Schema:
    return _object(answers=_array({"oneOf": [*forms, _ref("refused entry")]}))


_HEADER = {"session": _ref("bytes"), "round": _ref("decimal"), "sender": _ref("party"), "receiver": _ref("party")}
_RECOVERABLE = _object(user=_ref("integer"), round=_ref("integer"), combination=_list("term"))
_SUMMED = {"round": _ref("decimal"), "weights": _ref("words"), "sum": _ref("vector")}
_SUM_OR_NULL = {"oneOf": [_ref("vector"), {"type": "null"}]}
OTHER_RESULTS: Mapping[str, Schema] = {
    "echo": _object(data=_ref("json")),
    "message.decode": _object(**_HEADER, fields=_ref("object")),
    "session.step": _ref("outbox"),
    "secagg.unmasking": _answers(_object(seeds=_ref("users"), keys=_ref("users"))),
    "heterosag.request": _answers(_object()),
    "basecagg.rounds": _object(buffers=_array(_object(users=_ref("users"), stamps=_ref("words"), **_SUMMED))),
    "basa.epochs": _object(
        epochs=_array(_object(positions=_ref("users"), users=_ref("users"), **{**_SUMMED, "sum": _SUM_OR_NULL}))
    ),
    **dict.fromkeys(("session.new", "session.again", "session.free"), _object()),
    **dict.fromkeys(("signature.verify", "select.request"), _object()),
    **{party.replace("-", "_"): _object(steps=_ref("entries")) for party in PARTIES},
}
"""The results whose members have no check of their form alone."""


# --------------------------------------------------------------------------------------------------------- operations


def _form(operation: str, name: str) -> str:
    return name if name == "channel" else form(operation, name)


def _members(operation: str, names: tuple[str, ...]) -> Schema:
    return _object(**{name: _ref(_form(operation, name)) for name in names})


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
    return found


def _result(operation: str) -> Schema:
    if operation in OTHER_RESULTS:
        return OTHER_RESULTS[operation]
    like = "secagg.average" if operation == "secagg.recovery" else operation
    more = {"recoverable": _array(_RECOVERABLE)} if operation == "audit.privacy" else {}
    return _object(**{name: _ref(_OF_RESULTS.get(kind, kind)) for name, kind in RESULTS[like].items()}, **more)


def _answer() -> Schema:
    """Return what an answer may be (section 1), of any operation."""
    error, id = _object(message=_ref("text")), {"type": ["integer", "null"]}
    kinds = {"result": {"type": "object"}, "reject": _ref("reject"), "error": error, "unsupported": {"const": True}}
    return {"oneOf": [_object(id=id, **{kind: schema}) for kind, schema in kinds.items()]}


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

    `operations` says of each operation, by name: the parameters that may have a range, the words of the text for what
    it takes, draws and returns, and the clauses that the checks which call it decide. `refusals` has, for each kind of
    broken rule, its clauses and the codes that fit; where a rule has a qualifier, `when` says it.
    """
    words = _described()
    forms = {name.replace(" ", "-"): schema for name, schema in FORMS.items()}
    requests = {f"{name}.request": _request(name) for name in OPERATIONS}
    results = {f"{name}.result": _result(name) for name in OPERATIONS}
    about = {
        name: {
            "ranged": list(ranged(name)),
            "says": dict(zip(("params", "rand", "result"), words[name], strict=True)),
            "clauses": _clauses(name),
        }
        for name in OPERATIONS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The operations of the adapter protocol (spec/adapter.md)",
        "description": "Describes one request; the definitions also describe answers and results. The grade of "
        "randomness decides which form of rand comes, if any. Written by secagg-spec text --regenerate.",
        "version": list(PROTOCOL),
        "oneOf": [_ref(name) for name in requests],
        "$defs": {**forms, "answer": _answer(), **requests, **results},
        "operations": about,
        "refusals": _codes(),
    }


def written() -> str:
    """Return the file as text."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
