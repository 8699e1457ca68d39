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


@pytest.mark.parametrize("path", formats.files())
def test_each_member_of_each_schema_stands_on_the_page(path: str, tables: str) -> None:
    schema = formats.files()[path]
    part = section(tables, common.escaped(schema["title"]))
    rows = [re.split(r"[.\[\]]+", name) for name in re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)]
    assert f"`{path}`" in part
    assert {*properties(schema)} <= {piece for row in rows for piece in row}
    assert all(name in {row[0] for row in rows} for name in schema["properties"])


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
    told = [
        (name, needed, formats.kind(one, schema))
        for name, needed, one in formats.members(schema, schema, "", frozenset())
    ]
    assert told == [
        ("a", True, "array of object, with other members too, at least so many items: <code>1</code>"),
        ("a[].b", False, "<code>3</code>"),
        ("c", False, "object"),
        ("c.*", False, "<code>x</code>, <code>y</code>"),
        ("d", False, "object, with other members too"),
        ("d.below", False, "object, with other members too"),
        ("e", False, "array of integer, at least <code>2</code>"),
    ]
