"""How docstrings become API pages: a Griffe extension that mkdocs.yml names.

The line ``Source: …`` ends a docstring. Griffe would read it as one more entry of the section before it, so it is moved
in front of the sections. Tables between lines of ``====`` become tables of Markdown. Mentions of clauses become links.
"""

from __future__ import annotations

import re
from typing import Any

import griffe  # type: ignore[import-not-found, unused-ignore]

from secagg_spec.resources import clauses

_SECTION = re.compile(r"^[A-Z][A-Za-z ]*\n-{3,}$", re.MULTILINE)
_SOURCE = re.compile(r"\n\n(Source: .*?)(?=\n\n|\Z)", re.DOTALL)
_TABLE = re.compile(r"^(=+(?: +=+)+)\n(.+)\n\1\n((?:.+\n)+?)\1$", re.MULTILINE)
_CODE_OR_CLAUSE = re.compile(r"(`+)[^`]+\1|\b(" + "|".join(clauses()) + r")\b")


def source_first(text: str) -> str:
    """Return the docstring with its source in front of its first section."""
    section = _SECTION.search(text)
    source = _SOURCE.search(text, section.end()) if section else None
    if section is None or source is None:
        return text
    without = text[: source.start()] + text[source.end() :]
    return f"{without[: section.start()]}{source.group(1)}\n\n{without[section.start() :]}"


def with_tables(text: str) -> str:
    """Return the docstring with its tables in Markdown; a line whose first cell is empty continues the one before."""
    return _TABLE.sub(lambda table: _markdown(table[1], table[2], table[3].splitlines()), text)


def _markdown(rule: str, head: str, lines: list[str]) -> str:
    starts = [column.start() for column in re.finditer("=+", rule)]
    rows: list[list[str]] = []
    for line in lines:
        cells = _cells(line, starts)
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{before} {more}".strip() for before, more in zip(rows[-1], cells, strict=True)]
    table = [_cells(head, starts), ["---"] * len(starts), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def _cells(line: str, starts: list[int]) -> list[str]:
    cells = [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return [re.sub(r"(`+[^`]+`+)|([_*|])", lambda hit: hit[1] or f"\\{hit[2]}", cell) for cell in cells]


def linked(text: str) -> str:
    """Return the docstring with each clause that it mentions as a cross-reference."""
    return _CODE_OR_CLAUSE.sub(lambda hit: f"[{hit.group(2)}][]" if hit.group(2) else hit.group(), text)


class Docstrings(griffe.Extension):  # type: ignore[misc, unused-ignore]
    """Applies all three to every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of one object before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = linked(with_tables(source_first(obj.docstring.value)))
