"""The list of operations as data: it is current, and describes exactly the requests that are well formed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from secagg_spec import resources
from secagg_spec.conformance.adapter import declared
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.codes import REJECT_CODES
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.cases import drawn_rounds
from secagg_spec.conformance.cases.requests import places, put
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks.forms import wrong_values
from secagg_spec.conformance.reports import operations
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS, OPERATIONS, PARTIES
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import store
from tests.quick import one_in, part

DOCUMENT = operations.document()
CAPS = greet(DirectConnection(reference.build().answer).ask)


def validator(operation: str, part: str) -> Draft202012Validator:
    return Draft202012Validator({"$defs": DOCUMENT["$defs"], "$ref": f"#/$defs/{operation}.{part}"})


def asked(operation: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a request as it stands on a line."""
    body = {"id": 1, "op": operation, "params": dict(params), **({"rand": rand} if rand else {})}
    line: dict[str, Any] = json.loads(json.dumps(body))
    return line


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_result_has_types(operation: str) -> None:
    schema = DOCUMENT["$defs"][f"{operation}.result"]
    empty = {"session.new", "session.again", "session.free", "signature.verify", "select.request"}
    assert bool(schema.get("properties") or schema.get("$ref")) == (operation not in empty)
    assert schema.get("additionalProperties") is False or "$ref" in schema


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": None, "reject": {"code": "malformed", "message": "no"}}, True),
        ({"id": 1, "reject": {"code": "replay", "blamed": [0, "server"]}}, True),
        ({"id": 1, "unsupported": True}, True),
        ({"id": 1, "error": {"message": "broke"}}, True),
        ({"id": 1, "result": {}, "unsupported": True}, False),
        ({"id": 1, "reject": {"code": "bad"}}, False),
        ({"result": {}}, False),
    ],
)
def test_an_answer_is_one_of_four(answer: dict[str, Any], right: bool) -> None:
    schema = Draft202012Validator({"$defs": DOCUMENT["$defs"], "$ref": "#/$defs/answer"})
    assert schema.is_valid(answer) == right


def test_the_file_is_the_one_that_is_written() -> None:
    path = resources.root("spec") / operations.FILE
    assert path.read_text(encoding="utf-8") == operations.written(), "run secagg-spec text --regenerate"


def test_the_helper_for_adapters_has_the_tables_of_the_text() -> None:
    assert declared.SDK.read_text(encoding="utf-8") == declared.written(), "run secagg-spec text --regenerate"


TABLES = """
| operation | params | rand | result |
| --- | --- | --- | --- |
| `a.b` | *`q`*, a prime, `x`: `[(user, vector)]`, in the order of `y`, `y`: `[user]?` | `r`: `bytes` | `z`: `vector` |
| `a.c` | the numbers of `p`, those of `y` | those of `a.b`, `s` | nothing |

| party | `numbers` | `setup` | rand |
| --- | --- | --- | --- |
| `p.user` | *`N`*, `c_l` | `user`, `past`: `[[user]]` | |
| `p-q.user` | those of `p.user`, `W` | | `m`: `[vector]` of d elements |
| `p-q.server` | the same | | |
"""


def test_a_table_says_the_types_of_members_and_which_may_have_a_range() -> None:
    tables = declared.read(TABLES)
    assert tables.lines().splitlines() == [
        '_OPERATIONS: Final = """',
        "a.b | *q x:[(integer,vector)] y:[integer]? | r:bytes | z:vector",
        "a.c | *N c_l | r:bytes s |",
        '"""  # noqa: E501',
        '_PARTIES: Final = """',
        "p.user | *N c_l | user past:[[integer]] |",
        "p-q.user | *N c_l W | | m:[vector]",
        "p-q.server | *N c_l W | |",
        '"""  # noqa: E501',
    ]


@pytest.mark.slow
def test_it_is_a_schema_of_requests_and_names_only_what_exists() -> None:
    Draft202012Validator.check_schema(DOCUMENT)
    assert list(DOCUMENT["operations"]) == list(OPERATIONS)
    for known in DOCUMENT["operations"].values():
        assert known["clauses"]
        assert known["says"].get("result", known["says"].get("numbers"))
    named = {code for rule in DOCUMENT["refusals"] for code in rule["codes"]}
    assert named == set(REJECT_CODES.values())
    assert {clause for rule in DOCUMENT["refusals"] for clause in rule["clauses"]} <= set(resources.clauses())
    assert {f"HSA-0{n}" for n in range(1, 7)} <= {c for rule in DOCUMENT["refusals"] for c in rule["clauses"]}
    whole = Draft202012Validator(DOCUMENT)
    assert whole.is_valid(asked("field.add", {"q": "7", "a": "00000000", "b": "01000000"}))
    assert not whole.is_valid(asked("field.add", {"q": 7, "a": "00000000", "b": "01000000"}))
    assert not whole.is_valid(asked("field.sum", {"q": "7", "a": "00000000", "b": "01000000"}))


def answered(value: Any) -> Any:
    """Return a result of a vector as an adapter gives it: with one of the codes that fit a refused step."""
    if isinstance(value, Mapping) and isinstance(value.get("reject"), list | tuple):
        return {"reject": {"code": value["reject"][0], "message": "", "blamed": []}}
    if isinstance(value, Mapping):
        return {name: answered(entry) for name, entry in value.items()}
    return [answered(entry) for entry in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("file", store.load_all(), ids=lambda file: str(file.name))
def test_each_vector_is_well_formed_unless_it_is_to_be_malformed(file: Any) -> None:
    for vector in file.vectors:
        if vector.operation not in OPERATIONS:
            continue
        line = asked(vector.operation, vector.params, vector.rand)
        if not validator(vector.operation, "request").is_valid(line):
            assert "malformed" in vector.reject, vector.id
        elif not vector.reject:
            assert validator(vector.operation, "result").is_valid(answered(vector.result)), vector.id


@pytest.mark.parametrize("operation", one_in(4, part(9, VALID)))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_valid_is_well_formed_and_another_type_is_not(operation: str, data: st.DataObject) -> None:
    valid, schema = VALID[operation](data.draw, CAPS), validator(operation, "request")
    right = decimal(valid.params)
    assert schema.is_valid(asked(operation, right, valid.rand))
    assert not schema.is_valid(asked(operation, {**right, "zq": 1}, valid.rand))
    for name in right:
        assert not schema.is_valid(asked(operation, {key: right[key] for key in right if key != name}, valid.rand))
    for place in [place for place in places(operation, right, valid.rand) if wrong_values(place)][:20]:
        for wrong in wrong_values(place):
            if place.form == "integer" and wrong == place.value:
                continue  # JSON Schema has no 1.0 apart from 1
            params, rand = put(right, valid.rand, place.path, wrong)
            assert not schema.is_valid(asked(operation, params, rand)), (place.name, wrong)


@pytest.mark.parametrize("party", one_in(4, PARTIES))
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_session_of_a_party_has_its_members_and_no_others(party: str, data: st.DataObject) -> None:
    protocol = party.partition(".")[0]
    inputs = drawn_rounds.inputs(data.draw, protocol)
    number = next(who for who in inputs.setups if inputs.named(who) == party)
    params, rand, schema = inputs.opening(number), inputs.rand(number), validator("session.new", "request")
    right = {"handle": "h", **params}
    assert schema.is_valid(asked("session.new", right, rand))
    assert not schema.is_valid(asked("session.new", {**right, "setup": {**params["setup"], "zq": 1}}, rand))
    assert not schema.is_valid(asked("session.new", {**right, "numbers": {**params["numbers"], "zq": 1}}, rand))
    assert not schema.is_valid({**asked("session.new", right, rand), "zq": 1})
    other = next(name for name in NUMBERS if NUMBERS[name] != NUMBERS[protocol])
    assert not schema.is_valid(asked("session.new", {**right, "protocol": other}, rand))
    assert not schema.is_valid(asked("session.new", {**right, "role": "dealer"}, rand))
