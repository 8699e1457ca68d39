"""Small ledgers for tests."""

from __future__ import annotations

from pathlib import Path

from secagg_spec import ledger
from secagg_spec.conformance.mutants.ledger import entry

__all__ = ["HEAD", "entry", "load"]

HEAD = 'paper = "test"\ntitle = "A paper"\n'


def load(folder: Path, text: str, name: str = "test.toml") -> ledger.Ledger:
    (folder / name).write_text(text, encoding="utf-8")
    return ledger.load(folder)
