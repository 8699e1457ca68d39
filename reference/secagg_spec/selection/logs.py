"""Read logs of sessions from files: comma-separated values in three forms, and JSON.

Source: spec/multi-round.md, section 7 (MRA-24 to MRA-26, MRA-30); spec/participation.schema.json.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from secagg_spec import documents, resources, schemas, system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import DuplicateUser, ParameterError, UnknownUser
from secagg_spec.selection import pairs
from secagg_spec.selection.participation import WHOLE_DIGITS, Log, Roster, Spot, Table, Words, whole_number

FORMS = (("round", "users"), ("round", "user"), ("round", "segment", "users"))
"""The possible headers of a log of comma-separated values."""
_FORMS_SAID = ", ".join(f"'{','.join(form)}'" for form in FORMS)
_LARGEST_FIELD = 2**31 - 1
_ROUND = f"a whole number, as 0 or 17, of at most {WHOLE_DIGITS} digits"
_ODD_SPACE = re.compile(r"[^\S ]")
CUT = "a whole line: the file ends in the middle of this one; if only its line feed is missing, add it"
"""What an error says that a line without its end has to be."""
Document: TypeAlias = Any


def read(path: Path | str, roster: Roster | None = None) -> Log:
    """Return the log in a file.

    Parameters
    ----------
    path : Path or str
        JSON if the name ends with ``.json`` or the content begins with a brace, else comma-separated values.
    roster : Roster, optional
        The users; by default the log's own roster, or, if it has no roster, the users that it names.

    Raises
    ------
    OSError
        The file cannot be read.
    ParameterError
        The file is not a log, or the path is none; the error has the line or place, its content, and what is allowed.
    DuplicateUser, UnknownUser
        A user is listed twice in a round (MRA-25), or is not on the roster (MRA-26).
    """
    path = validate.path_of("path", path)
    try:
        if path.suffix.lower() == ".json" or _begins_with_brace(path):
            return _from_json(path, roster)
        return _from_table(path, roster)
    except UnicodeDecodeError:
        raise _not_text(path) from None


def read_roster(path: Path | str) -> Roster:
    """Return the roster of a file that has one user name per line; empty lines are skipped.

    Raises
    ------
    OSError
        The file cannot be read.
    ParameterError
        The file is not UTF-8, or holds no name, or the path is none.
    DuplicateUser
        A name occurs twice.
    """
    path, known = validate.path_of("path", path), dict[str, int]()
    try:
        with system.regular(path).open(encoding="utf-8-sig") as file:
            for at, line in enumerate(file, start=1):
                name = line.strip()
                if name in known:
                    allowed = f"a name that stands once; it is in line {known[name]} too"
                    raise DuplicateUser(f"{path.name}, line {at}, name", name, allowed)
                if name:
                    known[name] = at
    except UnicodeDecodeError:
        raise _not_text(path) from None
    if not known:
        raise ParameterError(str(path.name), Words("no names"), "one name a line")
    return Roster.named(list(known))


def _not_text(path: Path) -> ParameterError:
    """Return the error for a file that is not UTF-8; it names the first invalid line."""
    with system.regular(path).open("rb") as file:
        for at, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return ParameterError(f"{path.name}, line {at}", line[error.start : error.start + 4], "text in UTF-8")
    raise AssertionError("the file was no text a moment ago")


def _begins_with_brace(path: Path) -> bool:
    with system.regular(path).open("rb") as file:
        begun = (found for line in file if (found := line.removeprefix(codecs.BOM_UTF8).lstrip()))
        return next(begun, b"").startswith((b"{", b"["))


class _Seats:
    """Assigns numbers to names: from a roster, or, without a roster, in order of appearance."""

    def __init__(self, roster: Roster | None, spot: str) -> None:
        self.given = roster
        self.spot = spot
        self.known: dict[str, int] = {}
        self.first: list[Spot] = []

    def numbers(self, names: Sequence[str], at: Spot) -> list[int]:
        """Return the numbers of the users of a line."""
        known = self.known
        try:
            return [known[name] for name in names]
        except KeyError:
            return [known[name] if name in known else self._new(name, at) for name in names]

    def _new(self, name: str, at: Spot) -> int:
        if self.given is None:
            found = len(self.known)
            self.first.append(at)
        else:
            try:
                found = self.given.number(name)
            except UnknownUser as error:
                raise UnknownUser(f"{_spot(self.spot, at)}, user", name, error.allowed) from None
        self.known[name] = found
        return found

    def settle(self, table: Table, parts: int = 1) -> Log:
        """Return the log of a table with these user numbers; without a roster, first sort users by number or name.

        Without lines it has `parts` segments.
        """
        if self.given is None:
            names = self._sorted()
            place = {name: at for at, name in enumerate(names)}
            table.rename(Roster.named(names, closed=False), [place[name] for name in self.known])
        return table.log(parts)

    def _sorted(self) -> list[str]:
        numbers = {name: whole_number(name) for name in self.known}
        if any(number is None for number in numbers.values()):
            return sorted(self.known)
        held: dict[int | None, str] = {}
        for name, number in numbers.items():
            if held.setdefault(number, name) != name:
                allowed = f"one way to write a user; {held[number]!r} is the same number"
                raise ParameterError(f"{_spot(self.spot, self.first[self.known[name]])}, user", name, allowed)
        return [held[number] for number in sorted(held, key=lambda number: number or 0)]


def _table(path: Path, roster: Roster, several: bool, cells: bool) -> Table:
    return Table(roster, several, cells, lambda at: _spot(path.name, at))


def _spot(file: str, at: Spot) -> str:
    return f"{file}, line {at}" if isinstance(at, int) else f"{file}, {at}"


# -------------------------------------------------------------------------------------- comma-separated values


def _from_table(path: Path, roster: Roster | None) -> Log:
    _refuse_cut(path)
    return _from_pairs(path, roster) or _from_lines(path, roster)


def _refuse_cut(path: Path) -> None:
    """Refuse a table that does not end with the end of a line (MRA-30)."""
    with system.regular(path).open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise _not_text(path)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if not size or file.read() in b"\r\n":
            return
        file.seek(0)
        at, line = max(enumerate(file, start=1))
    end = line[-40:].decode("utf-8", "replace")
    raise ParameterError(_spot(path.name, at), f"…{end}" if len(line) > 40 else end, CUT)


def _from_pairs(path: Path, roster: Roster | None) -> Log | None:
    """Return the log if it has the one form that is read fast."""
    with system.regular(path).open("rb") as file:
        head = file.read(len(pairs.HEADER))
        found = pairs.columns(head + file.read()) if head == pairs.HEADER else None
    if found is None:
        return None
    table, seats = (
        _table(path, roster or Roster(0, (), closed=False), several=True, cells=False),
        _Seats(roster, path.name),
    )
    users, firsts, places = np.unique(found[1], return_index=True, return_inverse=True)
    numbers = np.zeros(len(users), dtype=np.int64)
    for at in np.argsort(firsts).tolist():
        numbers[at] = seats.numbers([str(users[at])], int(firsts[at]) + 2)[0]
    table.add_ones(2, found[0], numbers[places])
    return seats.settle(table)


def _from_lines(path: Path, roster: Roster | None) -> Log:
    with system.regular(path).open(encoding="utf-8-sig", newline="") as file, _long_fields():
        reader = csv.reader(file, strict=True)
        lines = _lines(reader, path.name)
        form = _form(lines, path.name)
        table = _table(path, roster or Roster(0, (), closed=False), several=form != FORMS[0], cells=form == FORMS[2])
        seats = _Seats(roster, path.name)
        for at, fields in lines:
            _take(table, seats, form, at, fields)
    return seats.settle(table)


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Lift the limit on the length of a field: in the form `round,users`, one field holds all users of a round."""
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _lines(reader: Any, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each nonempty line with its number; if quoted line breaks span several lines, the number of the last."""
    at = 0
    try:
        for fields in reader:
            at = reader.line_num
            if fields:
                yield at, fields
    except csv.Error as error:
        raise ParameterError(_spot(file, at + 1), Words(str(error)), "comma-separated values") from None


def _form(lines: Iterator[tuple[int, list[str]]], file: str) -> tuple[str, ...]:
    at, header = next(lines, (1, []))
    form = tuple(field.strip().lower() for field in header)
    if not form:
        raise ParameterError(file, Words("an empty file"), f"a log; its first line is one of {_FORMS_SAID}")
    if form not in FORMS:
        hint = "" if len(form) > 1 else "; fields are separated by commas"
        raise ParameterError(f"{_spot(file, at)}, header", ",".join(header), f"one of {_FORMS_SAID}{hint}")
    return form


def _take(table: Table, seats: _Seats, form: tuple[str, ...], at: int, fields: list[str]) -> None:
    """Add a line to the table."""
    if len(fields) != len(form):
        hint = ", and users are separated by spaces" if "users" in form else ""
        raise ParameterError(
            f"{_spot(seats.spot, at)}, fields", Words(str(len(fields))), f"{len(form)}: {','.join(form)}{hint}"
        )
    if _ODD_SPACE.search(fields[-1]):
        odd = next(word for word in fields[-1].split(" ") if _ODD_SPACE.search(word))
        allowed = "users with spaces between them" if form[-1] == "users" else "a user, whose name may have spaces"
        raise ParameterError(f"{_spot(seats.spot, at)}, {form[-1]}", odd, f"{allowed}, and no other white space")
    names = fields[-1].split() if form[-1] == "users" else [fields[-1].strip()] if fields[-1].strip() else []
    number = _whole(seats.spot, at, "round", fields[0])
    segment = _whole(seats.spot, at, "segment", fields[1]) if len(form) == 3 else 0
    table.add(at, number, segment, seats.numbers(names, at))


@lru_cache(maxsize=64)
def _number(text: str) -> int | None:
    """Return what a field says; the lines of a round have the same."""
    return whole_number(text.strip())


def _whole(file: str, at: int, name: str, text: str) -> int:
    found = _number(text)
    if found is None:
        raise ParameterError(f"{_spot(file, at)}, {name}", text, _ROUND)
    return found


# ------------------------------------------------------------------------------------------------------- JSON


@cache
def _schema() -> Mapping[str, Any]:
    return schemas.load(resources.root("spec") / "participation.schema.json")


def _from_json(path: Path, roster: Roster | None) -> Log:
    document = _document(path)
    for where, fault in schemas.faults(_abbreviated(document), _schema()):
        allowed = f"as in participation.schema.json: {_said(document, where) or fault}"
        raise ParameterError(f"{path.name}, {_place(where)}", _member(document, where), allowed)
    own = _own_roster(path, document["users"], roster)
    parts = document.get("segments")
    table = _table(path, own, several=parts is not None, cells=parts is not None)
    seats = _Seats(own, path.name)
    for at, row in enumerate(document["rounds"]):
        for segment, place, cell in _cells(path, at, row, parts):
            table.add(place, at, segment, seats.numbers(_names(seats, place, cell), place))
    return seats.settle(table, int(parts or 1))


def _said(document: Document, where: schemas.Where) -> str:
    """Return the form of a round of segments if its cells are no lists: the schema takes them for users then."""
    row = _member(document, where)
    if where[:-1] != ("rounds",) or "segments" not in document or not isinstance(row, list):
        return ""
    flat = any(isinstance(part, list) and not all(isinstance(cell, list) for cell in part) for part in row)
    return "a list of segments, each a list of cells, each a list of users" if flat else ""


def _document(path: Path) -> Document:
    try:
        return documents.read_json(path)
    except documents.NotJSON as error:
        raise ParameterError(f"{path.name}, line {error.line}", Words(error.fault), "JSON") from None
    except documents.NotText:
        raise _not_text(path) from None
    except ValueError as error:
        raise ParameterError(path.name, Words(f"a text that {error}"), "JSON as in participation.schema.json") from None


def _abbreviated(document: Document) -> Document:
    """Return a document without the rounds that obviously fit the schema: validating each of their users is slow."""
    if not isinstance(document, dict) or not isinstance(document.get("rounds"), list):
        return document
    return document | {"rounds": [[] if _plain(row) else _abbreviated_cells(row) for row in document["rounds"]]}


def _abbreviated_cells(row: object) -> object:
    """Return a round of segments without the cells that obviously fit the schema, and any other value itself."""
    if not isinstance(row, list) or not all(isinstance(part, list) for part in row):
        return row
    return [[[] if isinstance(cell, list) and _plain(cell) else cell for cell in part] for part in row]


def _plain(row: object) -> bool:
    """Return whether a value is a list of whole numbers and names; the table finds those that stand twice."""
    return isinstance(row, list) and all(user >= 0 if type(user) is int else type(user) is str and user for user in row)


def _member(document: Document, where: schemas.Where) -> object:
    """Return the value at a place in a document, or words if it has none."""
    try:
        for part in where:
            document = document[part]
    except (LookupError, TypeError):
        return Words("absent")
    return document


def _place(where: schemas.Where) -> str:
    """Return a place in a document as text, such as ``rounds[3][0]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return "".join(parts).lstrip(".") or "the document"


def _own_roster(path: Path, users: int | float | list[str], given: Roster | None) -> Roster:
    """Return the roster of a document; if the caller gave a roster, the two must be equal."""
    own = Roster.named(users) if isinstance(users, list) else Roster(int(users))
    if given is not None and given != own:
        own_size, size = (
            f"{roster.count} {'number' if roster.names is None else 'name'}{'s' if roster.count > 1 else ''}"
            for roster in (own, given)
        )
        raise ParameterError(f"{path.name}, users", Words(own_size), f"those of the roster that is given, {size}")
    return own


def _cells(path: Path, at: int, row: list[Any], parts: int | None) -> Iterator[tuple[int, str, list[Any]]]:
    """Yield the segment, place and users of each cell of a round; an empty segment yields one cell without users."""
    nested = any(isinstance(item, list) for item in row)
    if parts is None:
        if nested:
            raise ParameterError(f"{path.name}, rounds[{at}]", row, "a list of users, as there is no field 'segments'")
        yield 0, f"rounds[{at}]", row
        return
    if row and (not nested or len(row) != int(parts)):
        raise ParameterError(f"{path.name}, rounds[{at}]", row, f"a list of {parts} segments, each a list of cells")
    for segment in range(int(parts)):
        cells = [(place, cell) for place, cell in enumerate(row[segment] if row else []) if cell]
        yield from ((segment, f"rounds[{at}][{segment}][{place}]", cell) for place, cell in cells)
        if not cells:
            yield segment, f"rounds[{at}]", []


def _names(seats: _Seats, place: str, users: list[Any]) -> list[str]:
    """Return users in the form for lookup; refuse a name if the roster has numbers, else a number."""
    numbers = seats.given is not None and seats.given.names is None
    for user in users:
        if isinstance(user, str) == numbers:
            allowed = seats.given.allowed if seats.given else ""
            raise UnknownUser(f"{_spot(seats.spot, place)}, user", user, allowed)
    return [user if isinstance(user, str) else str(int(user)) for user in users]


guard(__name__)
