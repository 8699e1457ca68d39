"""The operations as the tables of the text declare them, and the lines of the helper for adapters that say the same.

A member stands in a table as a name and its type, both as code: ``"`held`: `[(user, vector)]`"``. What follows says for
readers what else holds. A parameter in italics may have a range.

Source: spec/adapter.md, sections 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from secagg_spec import resources
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.errors import ParameterError

OPERATIONS = "operation | params | rand | result"
SESSIONS = "party | `numbers` | `setup` | rand"
SDK = Path(secagg_adapter.__file__)
"""The helper for adapters, a file that stands alone."""
_ITEM = re.compile(r"(?:^|, )(\*?)`(\w+)`\*?(?:: `([^`]+)`)?")
_LIKE = re.compile(r"(?:those|the numbers) of `([\w.-]+)`")
_UNTYPED = re.compile(r"`\w+`\*?: *\w+")
_NAME = re.compile(r"`([\w.-]+)`")
_BEGIN = "# The tables of spec/adapter.md; secagg-spec text --regenerate writes these lines."
_END = "# End of the tables."


@dataclass(frozen=True)
class Members:
    """The members of one part of a request or of a result, in their order: their types, and which may have a range."""

    types: Mapping[str, str]
    ranged: frozenset[str] = frozenset()

    def __add__(self, other: Members) -> Members:
        return Members({**self.types, **other.types}, self.ranged | other.ranged)

    def __str__(self) -> str:
        return " ".join(
            "*" * (name in self.ranged) + name + f":{type}" * (type != _type(name, None))
            for name, type in self.types.items()
        )


@dataclass(frozen=True)
class Declaration:
    """An operation, or a party: its parts by the head of their column, and their words."""

    name: str
    parts: Mapping[str, Members]
    says: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " | ".join([self.name, *map(str, self.parts.values())]).replace("  ", " ").rstrip()


@dataclass(frozen=True)
class Tables:
    """The two tables: the operations, and the parties with sessions."""

    operations: Mapping[str, Declaration]
    parties: Mapping[str, Declaration]

    def lines(self) -> str:
        """Return the tables as the helper for adapters holds them."""
        return "".join(
            f'{name}: Final = """\n' + "".join(f"{each}\n" for each in some.values()) + '"""  # noqa: E501\n'
            for name, some in (("_OPERATIONS", self.operations), ("_PARTIES", self.parties))
        )


def read(text: str) -> Tables:
    """Return the tables of a page.

    Raises
    ------
    ParameterError
        A row has too few or too many cells, or a member has a type that is not in backticks or that there is not.
    """
    parties: dict[str, Declaration] = {}
    for name, *cells in _rows(text, SESSIONS):
        before = parties[next(reversed(parties))].parts["numbers"] if parties else Members({})
        numbers = before if cells[0] == "the same" else _members(cells[0], parties, "numbers")
        found = [numbers, *(_members(cell, parties, head) for cell, head in zip(cells[1:], _HEADS, strict=True))]
        party = _NAME.findall(name)[0]
        heads = ("numbers", *_HEADS)
        parties[party] = Declaration(party, dict(zip(heads, found, strict=True)), dict(zip(heads, cells, strict=True)))
    operations: dict[str, Declaration] = {}
    for names, *cells in _rows(text, OPERATIONS):
        for name in _NAME.findall(names):
            known = {**parties, **operations}
            parts = {head: _members(cell, known, head) for head, cell in zip(_PARTS, cells, strict=True)}
            operations[name] = Declaration(name, parts, dict(zip(_PARTS, cells, strict=True)))
    return Tables(operations, parties)


def _rows(text: str, header: str) -> Iterator[list[str]]:
    wanted = header.count("|") + 1
    for cells in resources.rows_of(text, header):
        if len(cells) != wanted:
            raise ParameterError("row", cells[0], f"followed by {wanted - 1} cells, and it has {len(cells) - 1}")
        if untyped := _UNTYPED.search(" | ".join(cells)):
            raise ParameterError("row", untyped[0], "a member whose type stands in backticks")
        yield cells


_HEADS = ("setup", "rand")
_PARTS = ("params", "rand", "result")


def _members(cell: str, known: Mapping[str, Declaration], head: str) -> Members:
    """Return the members that a cell declares; it may begin with those of another row."""
    found = Members({})
    if like := _LIKE.match(cell):
        named = like[1] if like[1] in known else f"{like[1]}.user"
        found, cell = known[named].parts["numbers" if like[0].startswith("the numbers") else head], cell[like.end() :]
    items = list(_ITEM.finditer(cell))
    types = {item[2]: _type(item[2], item[3]) for item in items}
    return found + Members(types, frozenset(item[2] for item in items if item[1]))


def _type(name: str, written: str | None) -> str:
    """Return a type without spaces; a user is an integer."""
    if written is None:
        return "decimal" if name in secagg_adapter.DECIMALS else "integer"
    type = re.sub(r"\buser\b", "integer", written).replace(" ", "")
    unknown = set(re.findall(r"\w+", re.sub(r"\w+:", "", type))) - secagg_adapter.TYPES
    if unknown:
        known = ", ".join(sorted(secagg_adapter.TYPES))
        raise ParameterError(f"type of {name}", min(unknown), f"made of {known}")
    return type


def of_text() -> Tables:
    """Return the tables of the text."""
    return read((resources.root("spec") / "adapter.md").read_text(encoding="utf-8"))


def written() -> str:
    """Return the source of the helper for adapters with the tables of the text in it."""
    head, _, rest = SDK.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{head}{_BEGIN}\n{of_text().lines()}{_END}{rest.partition(_END)[2]}"
