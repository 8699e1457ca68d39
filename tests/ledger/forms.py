"""Small ledgers for tests."""

from __future__ import annotations

from pathlib import Path

from secagg_spec import ledger

HEAD = 'paper = "test"\ntitle = "A paper"\n'
FIELDS = {
    "id": '"TST-1"',
    "place": '"eq. (1)"',
    "statement": '"One is one."',
    "kind": '"identity"',
    "verdict": '"confirmed"',
    "evidence": '{ proof = "field_size" }',
    "method": '"enumeration"',
    "scope": '"one"',
    "clauses": "[]",
}


def entry(**changed: str | None) -> str:
    """An entry of the ledger, with changed fields; None leaves a field out."""
    fields = {name: text for name, text in {**FIELDS, **changed}.items() if text is not None}
    return "[[claim]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items())


def load(folder: Path, text: str, name: str = "test.toml") -> ledger.Ledger:
    (folder / name).write_text(text, encoding="utf-8")
    return ledger.load(folder)
