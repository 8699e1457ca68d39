"""What a document that breaks a schema is told: where, and how, each fault once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from secagg_spec import resources, schemas

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "size"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": r"\S"},
        "size": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}},
        "extra": {"type": "object", "maxProperties": 1},
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), inner),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("document", "where", "said"),
    [
        (3, (), "must be of type object, and is 3"),
        ({"name": "n"}, ("size",), "is missing"),
        ({"size": 1}, ("name",), "is missing"),
        ({"name": " ", "size": 1}, ("name",), "must not be empty"),
        ({"name": "n", "size": 0}, ("size",), "0 is less than the minimum of 1"),
        ({"name": "n", "size": 1, "kind": "c"}, ("kind",), "'c' is not one of a, b"),
        ({"name": "n", "size": 1, "tags": []}, ("tags",), "must not be empty"),
        ({"name": "n", "size": 1, "tags": ["t", "t"]}, ("tags",), "names something twice"),
        ({"name": "n", "size": 1, "tags": ["t", 4]}, ("tags", 1), "must be of type string, and is 4"),
        (
            {"name": "n", "size": 1, "x": 2},
            ("x",),
            "there is no such field; the fields are name, size, kind, tags, extra",
        ),
        (
            {"name": "n", "size": 1, "extra": {"p": 1, "q": 2}},
            ("extra",),
            "has 2 fields; at least 0 and at most 1 are allowed",
        ),
    ],
)
def test_a_fault_is_named_by_its_place_and_in_words(document: object, where: tuple[str | int, ...], said: str) -> None:
    assert list(schemas.faults(document, SCHEMA)) == [(where, said)]


@given(JSON)
def test_faults_are_single_lines_and_none_comes_without_one(document: object) -> None:
    for where, said in schemas.faults(document, SCHEMA):
        assert all(isinstance(part, (str, int)) for part in where)
        assert said
        assert "\n" not in said


def test_every_schema_of_the_text_is_a_schema() -> None:
    paths = sorted(resources.root("spec").rglob("*schema*.json"))
    assert paths
    for path in paths:
        Draft202012Validator.check_schema(schemas.load(path))


def test_a_form_whose_types_fit_is_the_one_that_is_told() -> None:
    numbers = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}
    schema = {"oneOf": [numbers, {"type": "array", "items": numbers}]}
    assert list(schemas.faults([1, 1], schema)) == [((), "names something twice")]
    assert list(schemas.faults([[1], [2, 2]], schema)) == [((), "[1] names something twice")]


@pytest.mark.parametrize("after", ["\n", "\r\n", " ", "\u2028"])
def test_a_pattern_holds_up_to_the_end_of_a_text(after: str) -> None:
    schema = {"type": "string", "pattern": "^[0-9a-f]{2}$|^[A-Z]$"}
    for text in ("0f", "Q"):
        assert list(schemas.faults(text, schema)) == []
        assert [fault for _, fault in schemas.faults(text + after, schema)] != []


def test_a_document_is_checked_once_with_each_schema_and_again_when_it_is_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document: dict[str, Any] = {"name": "once", "size": 1}
    assert list(schemas.faults(document, SCHEMA)) == []
    assert list(schemas.faults(document, {**SCHEMA, "required": ["tags"]})) == [(("tags",), "is missing")]
    document["size"] = True
    for _ in range(2):
        assert [where for where, _ in schemas.faults(document, SCHEMA)] == [("size",)]
    assert next(schemas.faults({"name": "", "size": 0}, SCHEMA))[0] == ("name",)
    assert next(schemas.faults({"name": "", "size": 0}, SCHEMA))[0] == ("name",)
    monkeypatch.setattr(schemas, "validators", None)
    assert list(schemas.faults({"name": "once", "size": 1}, SCHEMA)) == []


def test_equal_items_are_found_without_a_comparison_of_each_pair() -> None:
    compared = 0

    class Text(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other) is True

    items = [*range(300), *(Text(number) for number in range(300)), None]
    validator = schemas.validators()({"uniqueItems": True})
    assert validator.is_valid(items)
    assert not validator.is_valid([*items, Text("7")])
    assert not validator.is_valid([*items, 7.0])
    assert validator.is_valid([*items, True, [7], {"a": 7}])
    assert compared < 10 * len(items)


def test_a_value_with_an_integer_of_too_many_digits_is_shown_by_its_class() -> None:
    assert schemas.shown(10**5000) == "a long int"
    assert schemas.shown([{"size": -(10**5000)}]) == "a long list"
    assert schemas.shown(10**40) == f"1{'0' * 38}…"
