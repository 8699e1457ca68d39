"""The pages of the command line and of the formats hold all that the commands and the schemas have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from docs.pages import command_line, common, formats

from secagg_spec import cli


@pytest.fixture(scope="module")
def helps(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("helps")
    command_line.write_command_line(out)
    return (out / common.COMMAND_LINE).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("tables")
    formats.write_formats(out)
    return (out / common.FORMATS).read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    """The part of a page below a title."""
    return page.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_stands_with_all_its_options(
    name: str, helps: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", command_line.WIDTH)
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert "--help" in said
    assert section(helps, f"secagg-spec {name}").strip() == f"```text\n{said.rstrip()}\n```"


def test_all_commands_stand_in_the_help_of_the_program(helps: str) -> None:
    whole = section(helps, "secagg-spec")
    assert [name for name in cli.COMMANDS if not re.search(rf"^ +{name}\b", whole, re.MULTILINE)] == []


@pytest.mark.parametrize("given", [None, "40"])
def test_the_width_of_the_terminal_is_as_before(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = command_line.told("text")
    monkeypatch.delenv("COLUMNS", raising=False)
    if given is not None:
        monkeypatch.setenv("COLUMNS", given)
    assert command_line.told("text") == before
    assert os.environ.get("COLUMNS") == given


def properties(schema: Any) -> Iterator[str]:
    """The names of all members that a schema has anywhere."""
    if isinstance(schema, Mapping):
        found = schema.get("properties", {})
        yield from found if isinstance(found, Mapping) else ()
        for below in schema.values():
            yield from properties(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from properties(below)


ROW = re.compile(r'^<tr><th scope="row"><code>(.+?)</code></th>(.+)</tr>$', re.MULTILINE)
CELL = re.compile(r'<td data-of="([^"]+)">(.*?)</td>')


def told(page: str, schema: formats.Schema) -> list[tuple[str, dict[str, str]]]:
    """The rows of a schema on the page: the name of each member, and its cells by the heads of their columns."""
    part = section(page, common.escaped(schema["title"]))
    rows = ROW.findall(part)
    assert part.count('<div class="stacked">') == 1
    assert len(rows) == len(part.split("<tbody>")[1].split("<tr>")) - 1
    return [(name.replace("<wbr>", ""), dict(CELL.findall(cells))) for name, cells in rows]


@pytest.mark.parametrize("path", formats.files())
def test_each_member_of_each_schema_stands_on_the_page(path: str, tables: str) -> None:
    schema = formats.files()[path]
    rows = [re.split(r"[.\[\]]+", name) for name, _ in told(tables, schema)]
    assert f"`{path}`" in section(tables, common.escaped(schema["title"]))
    assert {*properties(schema)} <= {piece for row in rows for piece in row}
    assert all(name in {row[0] for row in rows} for name in schema["properties"])


@pytest.mark.parametrize("path", formats.files())
def test_each_member_has_a_meaning_on_the_page(path: str, tables: str) -> None:
    rows = told(tables, formats.files()[path])
    assert {tuple(cells) for _, cells in rows} == {("required", "what it may be", "meaning")}
    assert [name for name, cells in rows if not cells["meaning"].strip()] == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 1}, "string, not empty"),
        ({"type": "string", "pattern": r"\S"}, "string, not blank"),
        ({"type": "string", "pattern": "^a&b$"}, "string, matches <code>^a&amp;b$</code>"),
        ({"type": "string", "minLength": 2, "maxLength": 8}, "string, at least 2 characters, at most 8 characters"),
        ({"type": "array", "minItems": 2}, "array, at least 2 items"),
        ({"type": "array", "items": {"type": "string", "minLength": 1}}, "array of string, not empty"),
        ({"type": "array", "minItems": 1, "items": {"type": "string"}}, "array, not empty, of string"),
        ({"type": "array", "minItems": 2, "maxItems": 2, "items": {}}, "array, exactly 2 items, of anything"),
        ({"type": "array", "maxItems": 1}, "array, at most 1 item"),
        ({"type": "object", "minProperties": 1, "additionalProperties": False}, "object, not empty"),
        (
            {"type": "object", "minProperties": 1, "maxProperties": 1},
            "object, exactly 1 member, with other members too",
        ),
    ],
)
def test_limits_are_told_in_words(schema: formats.Schema, words: str) -> None:
    assert formats.kind(schema, {}) == words


def test_members_are_told_as_their_schema_has_them() -> None:
    schema = {
        "$defs": {
            "part": {"type": "integer", "minimum": 2},
            "tree": {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}},
        },
        "required": ["a"],
        "properties": {
            "a": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {"b": {"const": 3}}}},
            "c": {"additionalProperties": {"enum": ["x", "y"]}, "type": "object"},
            "d": {"$ref": "#/$defs/tree"},
            "e": {"type": "array", "items": {"$ref": "#/$defs/part"}},
        },
    }
    found = [
        (name, needed, formats.kind(one, schema))
        for name, needed, one in formats.members(schema, schema, "", frozenset())
    ]
    assert found == [
        ("a", True, "array, not empty, of object, with other members too"),
        ("a[].b", False, "<code>3</code>"),
        ("c", False, "object"),
        ("c.*", False, "<code>x</code>, <code>y</code>"),
        ("d", False, "object, with other members too"),
        ("d.below", False, "object, with other members too"),
        ("e", False, "array of integer, at least <code>2</code>"),
    ]
