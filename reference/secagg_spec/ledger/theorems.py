"""The theorems that a prover checks, as its answers and their table have them.

Source: spec/ledger.md, section 6 (CLM-17, CLM-18); proofs/formal/theorems.toml and statements.txt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secagg_spec import documents, resources, schemas
from secagg_spec.ledger.errors import BrokenFile
from secagg_spec.ledger.files import place, toml

FOLDER = "formal"
_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
_LIST, _BY_NAME = {"type": "array", "items": _TEXT}, {"type": "object", "additionalProperties": _TEXT}
_GIVEN = ("file", "name", "says", "idealises")
_THEOREM = {
    "type": "object",
    "required": _GIVEN,
    "additionalProperties": False,
    "properties": {**dict.fromkeys((*_GIVEN, "unsaid"), _TEXT), "clauses": _LIST, "definitions": _LIST},
}
_TABLE = {"idealises": _BY_NAME, "unsaid": _BY_NAME, "theorem": {"type": "array", "items": _THEOREM}}
_FORM = {"type": "object", "required": [*_TABLE], "additionalProperties": False, "properties": _TABLE}
_HEAD = re.compile(r"^([A-Z]\w*\.\w+)(?= =|\s*:)", re.MULTILINE)


@dataclass(frozen=True)
class Theorem:
    """A theorem: what it says in words, the clauses it carries, and what the prover prints.

    `statement` is what the prover prints of the theorem, and `definitions` what it prints of each definition that the
    theorem rests on, by its name. `idealises` says what the theorem takes as ideal, and `unsaid` what it does not say.
    """

    name: str
    says: str
    clauses: tuple[str, ...]
    idealises: str
    unsaid: tuple[str, ...]
    statement: str
    definitions: Mapping[str, str]


def load(proofs: Path | None = None) -> Mapping[str, Theorem]:
    """Return the theorems by their names, such as ``Quorum.quorum``, in the order of their table.

    Parameters
    ----------
    proofs : Path, optional
        Folder of the proofs; without ``formal/theorems.toml`` in it there are no theorems. ``proofs`` by default.

    Raises
    ------
    BrokenFile
        ``theorems.toml`` or ``statements.txt`` cannot be read, the table has not its form, names a theorem twice, or
        names what is not there.
    """
    folder = place("proofs", proofs, resources.root("proofs")) / FOLDER
    if not (folder / "theorems.toml").is_file():
        return {}
    _, table = toml(folder / "theorems.toml")
    for where, fault in schemas.faults(table, _FORM):
        raise BrokenFile("".join(f"{part}: " for part in ("theorems.toml", *where)) + fault)
    shown = printed(_statements(folder / "statements.txt"))
    found: dict[str, Theorem] = {}
    for entry in table["theorem"]:
        name = f"{entry['file']}.{entry['name']}"
        if name in found:
            raise BrokenFile(f"theorems.toml: {name}: is in the file twice")
        for part in ("idealises", "unsaid"):
            if entry["idealises"] not in table[part]:
                raise BrokenFile(f"theorems.toml: {name}: idealises: there is no {entry['idealises']} in [{part}]")
        for one in (name, *entry.get("definitions", ())):
            if one not in shown:
                raise BrokenFile(f"statements.txt: {one} is not there, and theorems.toml names it")
        found[name] = Theorem(
            name=name,
            says=entry["says"],
            clauses=tuple(entry.get("clauses", ())),
            idealises=table["idealises"][entry["idealises"]],
            unsaid=(*((entry["unsaid"],) if "unsaid" in entry else ()), table["unsaid"][entry["idealises"]]),
            statement=shown[name],
            definitions={one: shown[one] for one in entry.get("definitions", ())},
        )
    return found


def _statements(path: Path) -> str:
    try:
        return documents.read_text(path)
    except OSError as error:
        raise BrokenFile(f"{path.name}: cannot be read: {error.strerror}") from None
    except documents.NotText as error:
        raise BrokenFile(f"{path.name}: cannot be read: it {error}") from None


def printed(text: str) -> Mapping[str, str]:
    """Return what the prover printed of each name, without its lines on implicit arguments."""
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    parts = (text[head.start() : end].partition("\nArguments ")[0] for head, end in zip(heads, ends, strict=True))
    return {head[1]: part.strip() for head, part in zip(heads, parts, strict=True)}
