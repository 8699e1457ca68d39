"""The pages of the command line and of the formats hold all that the commands and the schemas have."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from docs.pages import command_line, common, formats

from secagg_spec import cli


def calls(parser: argparse.ArgumentParser) -> Iterator[str]:
    """What is given to reach a parser, and each one below it."""
    yield parser.prog
    for names in (action.choices for action in parser._actions if isinstance(action.choices, Mapping)):
        for below in names.values():
            yield from calls(below)


CALLS = list(calls(cli.parser()))
WIDTHS = ["80", command_line.WIDTH]


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
    """The part of a page below a title, up to the next title."""
    _, below = re.split(rf"^##+ {re.escape(title)}\n", page, flags=re.MULTILINE)
    return re.split(r"^##+ ", below, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.fixture
def said(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a call answers to ``--help`` in a terminal of some columns."""
    call, columns = request.param
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as end:
        cli.main([*call.split()[1:], "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


ON_THE_PAGE = [(call, command_line.WIDTH) for call in CALLS]
IN_A_TERMINAL = [(call, columns) for call in CALLS for columns in WIDTHS]


@pytest.mark.parametrize(("said", "call"), [*zip(ON_THE_PAGE, CALLS, strict=True)], indirect=["said"], ids=CALLS)
def test_each_parser_stands_with_all_its_options(call: str, said: str, helps: str) -> None:
    assert "--help" in said
    assert section(helps, call).strip() == f"```text\n{said.rstrip()}\n```"


def test_each_command_below_a_command_is_found() -> None:
    assert {f"secagg-spec {name}" for name in cli.COMMANDS} < set(CALLS)
    assert {"secagg-spec simulate secagg", "secagg-spec privacy heterosag"} <= set(CALLS)


def test_each_command_below_a_command_stands_below_it(helps: str) -> None:
    titles = re.findall(r"^(##+) (.+)$", helps, re.MULTILINE)
    assert [title for _, title in titles] == CALLS
    assert [len(marks) for marks, _ in titles] == [max(len(call.split()), 2) for call in CALLS]


@pytest.mark.parametrize("said", IN_A_TERMINAL, indirect=True, ids=" ".join)
def test_no_line_of_a_help_is_longer_than_the_terminal(said: str) -> None:
    assert [line for line in said.splitlines() if len(line) > int(os.environ["COLUMNS"])] == []


@pytest.mark.parametrize("said", IN_A_TERMINAL, indirect=True, ids=" ".join)
def test_no_word_of_a_help_is_broken(said: str) -> None:
    assert re.findall(r"^.*\w-$", said, re.MULTILINE) == []


@pytest.mark.parametrize("said", [("secagg-spec audit-participation", "40")], indirect=True)
def test_sentences_are_filled_and_rows_stand_as_they_are(said: str) -> None:
    assert "\nThe log is a table of comma-separated\nvalues with one of the headers\n\n  round,users    " in said
    assert "\n  round,segment,users    a cell of a segment of a round, of HeteroSAg\n" in said


def test_all_commands_stand_in_the_help_of_the_program(helps: str) -> None:
    whole = section(helps, "secagg-spec")
    assert [name for name in cli.COMMANDS if not re.search(rf"^ +{name}\b", whole, re.MULTILINE)] == []


@pytest.mark.parametrize("given", [None, "40"])
def test_the_width_of_the_terminal_is_as_before(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = command_line.sections()
    monkeypatch.delenv("COLUMNS", raising=False)
    if given is not None:
        monkeypatch.setenv("COLUMNS", given)
    assert command_line.sections() == before
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


def report(page: str, schema: formats.Schema) -> list[tuple[str, dict[str, str]]]:
    """The rows of a schema on the page: the name of each member, and its cells by the heads of their columns."""
    part = section(page, common.escaped(schema["title"]))
    rows = ROW.findall(part)
    assert part.count('<div class="stacked">') == 1
    assert len(rows) == len(part.split("<tbody>")[1].split("<tr>")) - 1
    return [(name.replace("<wbr>", ""), dict(CELL.findall(cells))) for name, cells in rows]


@pytest.mark.parametrize("path", formats.files())
def test_each_member_of_each_schema_stands_on_the_page(path: str, tables: str) -> None:
    schema = formats.files()[path]
    rows = [re.split(r"[.\[\]]+", name) for name, _ in report(tables, schema)]
    assert f"`{path}`" in section(tables, common.escaped(schema["title"]))
    assert {*properties(schema)} <= {piece for row in rows for piece in row}
    assert all(name in {row[0] for row in rows} for name in schema["properties"])


@pytest.mark.parametrize("path", formats.files())
def test_each_member_has_a_meaning_on_the_page(path: str, tables: str) -> None:
    rows = report(tables, formats.files()[path])
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
