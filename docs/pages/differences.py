"""What changes from one protocol to the next, computed from their tables of phases, messages and parameters.

``differences.toml`` says which protocols are compared, where, and which names of the one stand for which of the other.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from docs.pages.common import ROOT, SiteError
from docs.pages.markup import stacked
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import Step, Table

PLACES = Path(__file__).with_suffix(".toml")
SIGNS = {"added": "+", "removed": "\N{MINUS SIGN}", "changed": "±", "same": "="}
"""The sign of each kind of row."""
HEADER = frozenset(field.name for field in dataclasses.fields(Message))
_SYMBOLS = re.compile(r"^\| symbol \| meaning \|.*\n\|.*\n((?:\|.*\n)+)", re.MULTILINE)
_SYMBOL = re.compile(r"^\| ([^|]+?) \| ([^|:,]+)", re.MULTILINE)

Cells: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Change:
    """Two protocols that are compared: where, their modules, their names, and which names stand for each other."""

    page: str
    behind: str
    old: str
    new: str
    titles: Sequence[str]
    pages: Sequence[str]
    same: Mapping[str, str]


@dataclass(frozen=True)
class Row:
    """One row: its kind, what it is about, and what it says of the old and of the new protocol, piece by piece."""

    kind: str
    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]


@functools.cache
def changes() -> Sequence[Change]:
    """Return all comparisons.

    Raises
    ------
    SiteError
        A name that stands for another is not one of the old protocol, or the other not one of the new.
    """
    found = [Change(**{"pages": (entry["page"], entry["page"]), **entry}) for entry in _texts()["difference"]]
    for change in found:
        _check_names(change)
    return found


@functools.cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(PLACES.read_text(encoding="utf-8"))


def _check_names(change: Change) -> None:
    old, new = (_names(name) for name in (change.old, change.new))
    for before, after in change.same.items():
        if before not in old or after not in new:
            raise SiteError(f"{PLACES.name}: {before} and {after} are not names of {change.old} and {change.new}")


def _names(name: str) -> set[str]:
    table: Table = module(name).TABLE
    parts = (phases(table), messages(table), parameters(name, {}))
    return {name.partition(",")[0] for part in parts for name in part}


def of(page: str) -> Sequence[Change]:
    """Return the comparisons that stand on a page of the text."""
    return [change for change in changes() if change.page == page]


def module(name: str) -> ModuleType:
    """Return the module with the table of a protocol, or the one that a dotted name is."""
    return importlib.import_module(f"secagg_spec.protocols.{_texts()['modules'].get(name, name)}")


# What a protocol has, by name.


def phases(table: Table) -> Cells:
    """Return what each phase receives, sends and draws, by phase and role."""
    return {f"{step.phase}, {step.role.value}": tuple(_step(step)) for step in table}


def _step(step: Step[Any]) -> Iterator[str]:
    yield from (f"receives {kind.__name__}" for kind in step.receives)
    yield from (f"sends {kind.__name__}" for kind in step.sends)
    yield from (f"draws {name}" for name in step.randomness)


def messages(table: Table) -> Cells:
    """Return the fields of each message that a table names, without the header."""
    kinds = dict.fromkeys(kind for step in table for kind in (*step.receives, *step.sends))
    return {kind.__name__: tuple(_fields(kind)) for kind in kinds}


def _fields(kind: type[Message]) -> Iterator[str]:
    for field in dataclasses.fields(kind):
        if field.name not in HEADER:
            yield f"{field.name} ({str(field.type).lower()})"


def parameters(name: str, meaning: Mapping[str, str]) -> Cells:
    """Return the parameters of a protocol, each with what the symbol for it means."""
    home = module(_texts()["parameters"].get(name, name))
    names = [field.name for field in dataclasses.fields(home.Parameters) if field.init]
    return {one: tuple(_meaning(one, meaning)) for one in names}


def _meaning(name: str, meaning: Mapping[str, str]) -> Iterator[str]:
    symbol = _texts()["symbols"].get(name, name)
    if meaning and symbol not in meaning:
        raise SiteError(f"no table of symbols says what the parameter {name} means")
    if meaning:
        yield meaning[symbol] if symbol == name else f"`{symbol.strip('$')}`: {meaning[symbol]}"


@functools.cache
def meanings(page: str) -> Mapping[str, str]:
    """Return what the tables of symbols of a page say of each symbol, up to the first colon or comma."""
    text = (ROOT / "spec" / page).read_text(encoding="utf-8")
    return {symbol: meaning.strip() for rows in _SYMBOLS.findall(text) for symbol, meaning in _SYMBOL.findall(rows)}


# The comparison.


def compared(old: Cells, new: Cells, same: Mapping[str, str], *, ordered: bool = True) -> list[Row]:
    """Compare two tables row by row; `same` gives the names of the new one for those of the old.

    Where the order counts, a row that stands elsewhere is one that was removed and added.
    """
    before = {_renamed(name, same): (name, cells) for name, cells in old.items()}
    place = {key: at for at, key in enumerate(new)}
    keys = list(before) if ordered else sorted(before, key=lambda key: place.get(key, -1))
    rows = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, keys, list(new), autojunk=False).get_opcodes():
        rows += [Row("removed", *before[key], ()) for key in keys[a:b] if tag != "equal"]
        rows += [Row("added", key, (), new[key]) for key in list(new)[c:d] if tag != "equal"]
        rows += [_pair(*before[key], key, new[key]) for key in list(new)[c:d] if tag == "equal"]
    return rows


def _pair(name: str, old: tuple[str, ...], after: str, new: tuple[str, ...]) -> Row:
    if (name, old) == (after, new):
        return Row("same", name, old, new)
    return Row("changed", name if name == after else f"{name} → {after}", old, new)


def _renamed(name: str, same: Mapping[str, str]) -> str:
    first, comma, rest = name.partition(",")
    return same.get(first, first) + comma + rest


def tables(change: Change) -> Mapping[str, list[Row]]:
    """Return the three tables of a comparison: phases, messages and parameters."""
    old, new = module(change.old), module(change.new)
    names = zip((change.old, change.new), change.pages, strict=True)
    tables = [parameters(name, meanings(page)) for name, page in names]
    return {
        "Phases": compared(phases(old.TABLE), phases(new.TABLE), change.same),
        "Messages": compared(messages(old.TABLE), messages(new.TABLE), change.same),
        "Parameters": compared(tables[0], tables[1], change.same, ordered=False),
    }


# As HTML.


def block(change: Change) -> str:
    """Return a comparison as a block that can be opened, in HTML."""
    old, new = change.titles
    parts = "\n".join(rendered(name, rows, change.titles) for name, rows in tables(change).items())
    return (
        f'<details class="info difference" id="from-{change.old}-to-{change.new}">\n'
        f"<summary>What changes from {escape(old)} to {escape(new)}</summary>\n"
        f"<p>Computed from the tables of the two programs.</p>\n{parts}\n</details>"
    )


def rendered(name: str, rows: Sequence[Row], titles: Sequence[str], *, numbers: bool = False) -> str:
    """Return one table of a comparison; rows that did not change are only named, and numbers bear no signs."""
    kept = [row for row in rows if row.kind != "same"]
    same = [escape(row.name) for row in rows if row.kind == "same"]
    alike = f"<p>{SIGNS['same']} The same in both: {'; '.join(same)}.</p>" if same else ""
    if not kept:
        return f"<p><strong>{name}</strong></p>\n{alike}"
    body = "\n".join(_row(row, titles, numbers) for row in kept)
    table = stacked(("change", name.lower(), *map(escape, titles)), body)
    return f"<p><strong>{name}</strong></p>\n{table}\n{alike}".rstrip()


def _row(row: Row, titles: Sequence[str], numbers: bool) -> str:
    sign = f'<td class="sign {row.kind}">{SIGNS[row.kind]} {row.kind}</td>'
    others = (row.old, row.new) if numbers else (row.new, row.old)
    pair = (_cell(row.old, others[0], "removed"), _cell(row.new, others[1], "added"))
    name = escape(row.name) if numbers else f"<code>{escape(row.name)}</code>"
    cells = (f'<td data-of="{escape(title)}">{cell}</td>' for title, cell in zip(titles, pair, strict=True))
    return f'<tr class="{row.kind}">{sign}<th scope="row">{name}</th>{"".join(cells)}</tr>'


def _cell(pieces: Sequence[str], others: Sequence[str], kind: str) -> str:
    """Return the pieces of one side; those that the other side does not have bear a sign."""
    if not pieces:
        return "\N{EN DASH}"
    return "<br>".join(f"{'' if piece in others else SIGNS[kind] + ' '}{_coded(piece)}" for piece in pieces)


def _coded(text: str) -> str:
    """Return a text with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
