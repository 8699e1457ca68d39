"""Reads a TOML file that is a list of entries, and names the line of each fault.

Source: spec/ledger.md (CLM-01, CLM-04).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from secagg_spec import documents, resources, schemas, system
from secagg_spec.ledger.errors import BrokenEntry, BrokenFile, LedgerError, MissingEvidence

Data: TypeAlias = Mapping[str, Any]
_FIELD = re.compile(r"([A-Za-z_]+)\s*=")
_TABLE = re.compile(r"\[\w+\.(\w+)\]\s*$")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


@dataclass(frozen=True)
class EntryFile:
    """A file of entries: its name, its content, and its lines.

    `table` is the name of an entry's table in the file, such as ``claim``; `label` is the field that names an entry.
    """

    name: str
    content: Data
    table: str
    label: str
    lines: tuple[Mapping[str, int], ...]

    @property
    def entries(self) -> Sequence[Data]:
        """The entries, in the order of the file."""
        entries: Sequence[Data] = self.content[self.table]
        return entries

    def place(self, entry: int, field: str = "") -> str:
        """Return file, line, entry and field: the beginning of a message."""
        lines = self.lines[entry] if entry < len(self.lines) else {}
        line = lines.get(field, lines.get("", 1))
        found = self.content[self.table][entry]
        label = found.get(self.label) if isinstance(found, dict) else None
        named = label if isinstance(label, str) and label.isprintable() else f"{self.table} {entry + 1}"
        return ": ".join([f"{self.name}:{line}", named, *([field] if field else [])])


def read(path: Path, schema: str, table: str, label: str) -> EntryFile:
    """Read a file of entries, and check it against a schema of ``spec/``.

    Raises
    ------
    BrokenFile, BrokenEntry, MissingEvidence
        The file is not TOML, or breaks the schema; only the first fault is reported.
    """
    text, content = toml(path)
    head, lines = line_numbers(text, table)
    source = EntryFile(path.name, content, table, label, lines)
    _check_form(source, text, head, schema)
    for number, entry in enumerate(source.entries):
        for field, value in entry.items():
            _check_plain(source, number, field, value)
    if content["paper"] != path.stem:
        name = f"{path.name}:{head.get('paper', 1)}: paper = {content['paper']!r}"
        raise BrokenEntry(f"{name}: must be the name of the file, {path.stem!r}")
    return source


def place(name: str, given: object, usual: Path) -> Path:
    """Return the path that an argument gives, or the usual one for None.

    Raises
    ------
    ParameterError
        It is no path.
    """
    if given is None or (isinstance(given, Path) and "\0" not in str(given)):
        return usual if given is None else given
    from secagg_spec.arithmetic import validate  # noqa: PLC0415 - numpy takes time, and commands need none

    return validate.path_of(name, given)


def tables(path: Path, name: str) -> Sequence[dict[str, Any]]:
    """Return the tables of a name in a file of TOML, such as those that ``[[root]]`` begins.

    Raises
    ------
    BrokenFile
        The file cannot be read, is not TOML, or has no such tables, or something else.
    """
    text, content = toml(path)
    found = content.get(name)
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        raise BrokenFile(f"{path.name}: cannot be read: it has no tables that begin with [[{name}]]")
    for other in content.keys() - {name}:
        place = f"{path.name}:{_line(text, line_numbers(text, name)[0], (other,))}"
        raise BrokenFile(f"{place}: {other}: there is no such field; all that it has are tables [[{name}]]")
    return found


def toml(path: Path) -> tuple[str, Data]:
    """Return the text of a file, and what it says as TOML.

    Raises
    ------
    BrokenFile
        The file cannot be read, or is not TOML.
    """
    try:
        text = system.regular(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise BrokenFile(f"{path.name}:{line}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise BrokenFile(f"{path.name}: cannot be read: {error.strerror}") from None
    try:
        return text.replace("\r\n", "\n"), _parsed(text)
    except documents.Limit as limit:
        raise BrokenFile(f"{path.name}: cannot be read: it {limit}") from None
    except tomllib.TOMLDecodeError as error:
        raise BrokenFile(_not_toml(path.name, text, " ".join(str(error).split()))) from None


@lru_cache(maxsize=64)
def _parsed(text: str) -> Data:
    """Return the content of a TOML file, which is read more often than it changes."""
    return documents.from_toml(text)


def _not_toml(file: str, text: str, fault: str) -> str:
    at = _AT_LINE.search(fault)
    line = at[1] if at else 1 + text.removesuffix("\n").count("\n")
    return f"{file}:{line}: is not TOML: {_AT_LINE.sub('', fault)}"


def _check_form(source: EntryFile, text: str, head: Mapping[str, int], schema: str) -> None:
    for where, fault in schemas.faults(source.content, schemas.load(resources.root("spec") / schema)):
        raise _fault(source, text, head, where, fault)


def _check_plain(source: EntryFile, number: int, field: str, value: object) -> None:
    """Refuse values that JSON lacks: dates, times, NaN and the infinities."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_plain(source, number, field, inner)
    elif not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise BrokenEntry(f"{source.place(number, field)}: {value} is neither text nor a number; write it as a text")


def _fault(
    source: EntryFile, text: str, head: Mapping[str, int], where: Sequence[str | int], fault: str
) -> LedgerError:
    """Build the error; it names the entry by its label if it has one, and the field."""
    if len(where) >= 2 and where[0] == source.table and isinstance(where[1], int):
        field, *rest = [str(part) for part in where[2:]] or [""]
        parts = [source.place(where[1], field), *rest]
    else:
        field, *rest = [str(part) for part in where] or [""]
        if len(where) >= 2 and isinstance(where[1], int):
            named = [f"{field} {where[1] + 1}", *rest[1:]]
        else:
            named = [*([field] if field else []), *rest]
        parts = [f"{source.name}:{_line(text, head, where)}", *named]
    kind = MissingEvidence if "evidence" in [*parts, field] else BrokenEntry
    return kind(": ".join([*parts, fault]))


def _line(text: str, head: Mapping[str, int], where: Sequence[str | int]) -> int:
    """Return the line of a field of the head, or of a table that is no entry; 1 where there is none."""
    name, at, field = (*where, *("", 0, "")[len(where) :])[:3]
    if name in head or not name:
        return head.get(str(name), 1)
    lines = dict(enumerate(line_numbers(text, str(name))[1])).get(int(at) if isinstance(at, int) else 0, {})
    return lines.get(str(field), lines.get("", 1))


def line_numbers(text: str, table: str) -> tuple[Mapping[str, int], tuple[Mapping[str, int], ...]]:
    """Return the lines, from 1, of the fields before the first entry, and of the fields of each entry.

    The first line of an entry is under the empty name.
    """
    head: dict[str, int] = {}
    entries: list[dict[str, int]] = []
    heads = re.compile(rf"\s*\[?\[\s*{re.escape(table)}\s*\]\]?\s*(?:#.*)?$")
    inside, below = False, False
    for number, line in enumerate(text.split("\n"), 1):
        if not inside and heads.match(line):
            entries.append({"": number})
            below = False
        elif not inside and entries and (field := _TABLE.match(line)):
            entries[-1][field[1]] = number
            below = True
        elif not inside and line.startswith("[["):
            below = True
        elif not inside and not below and (field := _FIELD.match(line)):
            (entries[-1] if entries else head).setdefault(field[1], number)
        if not (not inside and line.lstrip().startswith("#")) and line.count('"""') + line.count("'''") == 1:
            inside = not inside
    return head, tuple(entries)
