"""Finds the package data, in a checkout or in an installed wheel: the text, the claims, the vectors, the proofs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_CLAUSE = re.compile(r"^- \[([A-Z]+-\d\d)\] (.*?)(?=^- \[|^$|\Z)", re.MULTILINE | re.DOTALL)
PAGES = (
    "conventions.md",
    "lightsecagg.md",
    "secagg.md",
    "fedbuff.md",
    "basecagg.md",
    "attributes.md",
    "basa.md",
    "heterosag.md",
    "multi-round.md",
    "experiments.md",
    "adapter.md",
    "conformance.md",
    "ledger.md",
)
"""The pages of the text, in reading order."""


def root(part: str) -> Path:
    """Return the folder `part`, which is ``"spec"`` or ``"proofs"``.

    Raises
    ------
    FileNotFoundError
        Neither a checkout nor package data is there.
    """
    for candidate in (_PACKAGE / "_data" / part, _PACKAGE.parents[1] / part):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{part}/ is neither beside the package nor in it: the installation is incomplete")


@cache
def clauses() -> dict[str, str]:
    """Return the sentence of every clause of the text by its id, in the order of the text."""
    found: dict[str, str] = {}
    for title, on_page in clauses_by_page().items():
        for identifier, sentence in on_page.items():
            if identifier in found:
                raise ValueError(f"{title}: the clause {identifier} stands twice in the text")
            found[identifier] = sentence
    return found


@cache
def clauses_by_page() -> dict[str, dict[str, str]]:
    """Return the sentences of the clauses by the title of their page, then by id."""
    found: dict[str, dict[str, str]] = {}
    for page in PAGES:
        text = (root("spec") / page).read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        found[title] = {match[1]: " ".join(match[2].split()) for match in _CLAUSE.finditer(text)}
    return found
