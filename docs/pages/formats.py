"""The page of formats: the members of each file and report that has a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from docs.pages.common import FORMATS, ROOT, escaped, relative, write
from docs.pages.markup import plain, stacked
from secagg_spec import schemas
from secagg_spec.conformance.adapter.plain import counted

Schema: TypeAlias = Mapping[str, Any]
_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
    "pattern": "matches",
}
"""The words for each limit of a value that the schemas set."""
_SIZES = {"Length": "character", "Items": "item", "Properties": "member"}
"""What the limits of a size count, by the ends of their names."""
_COLUMNS = ("member", "required", "what it may be", "meaning")


def files() -> Mapping[str, Schema]:
    """Return each schema of the text, by its path in the repository."""
    folder = ROOT / "spec"
    paths = sorted([*folder.glob("*.schema.json"), *folder.glob("*/schema.json")])
    return {path.relative_to(ROOT).as_posix(): schemas.load(path) for path in paths}


def write_formats(out: Path) -> None:
    """Write the page, from the schemas."""
    lines = [
        "# Formats\n",
        (
            "The files and reports with a schema, JSON Schema 2020-12, member by member. `[]` stands for each "
            "item of a list, `*` for each member of an object with free names. Members that are not listed are refused "
            "unless the table says so. Messages of the adapter protocol stand in "
            f"[its text]({relative('spec/adapter.md', FORMATS)})."
        ),
        *(_section(path, schema) for path, schema in files().items()),
    ]
    write(out / FORMATS, "\n".join([*lines, ""]))


def _section(path: str, schema: Schema) -> str:
    head = f"\n## {escaped(schema['title'])}\n\n`{path}`. {escaped(schema.get('description', ''))}".rstrip()
    rows = "\n".join(_row(*one, schema) for one in members(schema, schema, "", frozenset()))
    return f'{head}\n\n<div class="format-members">\n{stacked(_COLUMNS, rows)}\n</div>'


def _row(name: str, required: bool, schema: Schema, whole: Schema) -> str:
    said = plain(schema.get("description", referred(schema, whole).get("description", "")), FORMATS)
    values = ("yes" if required else "no", kind(schema, whole), said)
    cells = (f'<td data-of="{head}">{cell}</td>' for head, cell in zip(_COLUMNS[1:], values, strict=True))
    shown = _code(name).replace(".", "<wbr>.")
    return f'<tr><th scope="row">{shown}</th>{"".join(cells)}</tr>'


def members(schema: Schema, whole: Schema, name: str, seen: frozenset[str]) -> Iterator[tuple[str, bool, Schema]]:
    """Yield each member below a schema with its name from the top and whether it is required, references followed.

    A definition that refers to itself is followed once.
    """
    if reference := schema.get("$ref"):
        if reference not in seen:
            yield from members(referred(schema, whole), whole, name, seen | {reference})
        return
    for part, below in schema.get("properties", {}).items():
        path = f"{name}.{part}" if name else part
        yield path, part in schema.get("required", ()), below
        yield from members(below, whole, path, seen)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(below := schema.get(key), Mapping):
            path = f"{name}{mark}".lstrip(".")
            if key == "additionalProperties":
                yield path, False, below
            yield from members(below, whole, path, seen)
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from members(branch, whole, name, seen)


def referred(schema: Schema, whole: Schema) -> Schema:
    """Return the definition that a schema refers to; the schema itself where it refers to none."""
    reference = schema.get("$ref")
    found: Schema = whole["$defs"][reference.rpartition("/")[2]] if reference else schema
    return found


def kind(schema: Schema, whole: Schema) -> str:
    """Return what a member may be, in words; what it refers to is told as if it stood there."""
    schema = referred(schema, whole)
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return ", ".join(map(_code, schema["enum"]))
    branches = (*schema.get("oneOf", ()), *schema.get("anyOf", ()))
    if found := [kind(branch, whole) for branch in branches if set(branch) != {"required"}]:
        return " or ".join(found)
    types = schema.get("type", "anything")
    words = types if isinstance(types, str) else " or ".join(types)
    free = ["with other members too"] if words == "object" and schema.get("additionalProperties", True) is True else []
    words = ", ".join([words, *_sizes(schema)]) + _items(schema, whole)
    return ", ".join([words, *_limits(schema), *free])


def _sizes(schema: Schema) -> Iterator[str]:
    """Yield how long or large a value must be, in words."""
    for ending, unit in _SIZES.items():
        least, most = schema.get(f"min{ending}", 0), schema.get(f"max{ending}")
        if least and least == most:
            yield f"exactly {counted(least, unit)}"
            continue
        if least:
            yield "not empty" if least == 1 else f"at least {counted(least, unit)}"
        if most is not None:
            yield f"at most {counted(most, unit)}"


def _items(schema: Schema, whole: Schema) -> str:
    """Return what the items of an array are; the size of the array itself stands before."""
    if schema.get("type") != "array" or not isinstance(items := schema.get("items"), Mapping):
        return ""
    return f"{',' if any(_sizes(schema)) else ''} of {kind(items, whole)}"


def _limits(schema: Schema) -> Iterator[str]:
    for key, words in _LIMITS.items():
        if key in schema:
            yield "not blank" if schema[key] == r"\S" else f"{words} {_code(schema[key])}"


def _code(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"<code>{escape(text, quote=False)}</code>"
