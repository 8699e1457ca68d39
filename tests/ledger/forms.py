"""Small ledgers for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from secagg_spec import cli
from secagg_spec.ledger import entries

_FIELDS: Mapping[str, str] = {
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
"""A good entry, each field as it is written in TOML."""
HEAD = 'paper = "test"\ntitle = "A paper"\n'


def load(folder: Path, text: str, name: str = "test.toml") -> entries.Ledger:
    (folder / name).write_text(text, encoding="utf-8")
    return entries.load(folder)


def entry(**changed: str | None) -> str:
    """Return a good entry with changed fields; None leaves a field out."""
    fields = {**_FIELDS, **changed}
    return "[[claim]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items() if text is not None)


def bound(**changed: str | None) -> str:
    """Return a list with one theorem, as an entry has it; None leaves a field out."""
    fields = {"theorem": "Quorum.quorum", "covers": "all", "digest": "0123456789abcdef", **changed}
    return "[{ " + ", ".join(f'{name} = "{text}"' for name, text in fields.items() if text is not None) + " }]"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``secagg-spec claims`` in this process; return its exit code and what it printed."""
    try:
        code = cli.main(["claims", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err
