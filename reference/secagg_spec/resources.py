"""Finds the package data, in a checkout or in an installed wheel: the text, the claims, the vectors, the proofs."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterable
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
    "planning.md",
    "flower.md",
    "traces.md",
    "adapter.md",
    "conformance.md",
    "ledger.md",
)
"""The pages of the text, in reading order."""


@cache
def root(part: str) -> Path:
    """Return the folder `part`, which is ``"spec"`` or ``"proofs"``.

    Raises
    ------
    FileNotFoundError
        There is neither a checkout nor package data.
    """
    for candidate in (_PACKAGE / "_data" / part, _PACKAGE.parents[1] / part):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{part}/ is neither beside the package nor in it: the installation is incomplete")


@cache
def clauses() -> dict[str, str]:
    """Return the sentence of every clause of the text by its id, in the order of the text."""
    found: dict[str, str] = {}
    for page, on_page in clauses_by_page().items():
        for identifier, sentence in on_page.items():
            if identifier in found:
                raise ValueError(f"{page}: the clause {identifier} is in the text twice")
            found[identifier] = sentence
    return found


@cache
def clauses_by_page() -> dict[str, dict[str, str]]:
    """Return the sentences of the clauses by the title of their page, then by id."""
    return {title(page): _sentences(page) for page in PAGES}


@cache
def clause_pages() -> dict[str, str]:
    """Return the page of the text on which each clause stands."""
    return {identifier: page for page in PAGES for identifier in _sentences(page)}


def around(page: str) -> str:
    """Return the text of a page outside its clauses, with single spaces."""
    return " ".join(_CLAUSE.sub("", _page(page)).split())


def rows(page: str, header: str) -> list[list[str]]:
    """Return the cells of the table on a page whose first header is `header`."""
    return rows_of(_page(page), header)


def rows_of(text: str, header: str) -> list[list[str]]:
    """Return the cells of the table of a text whose first header is `header`."""
    table = text.partition(f"| {header} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def title(page: str) -> str:
    """Return the title of a page of the text."""
    return _page(page).partition("\n")[0].removeprefix("# ")


def _sentences(page: str) -> dict[str, str]:
    return {match[1]: " ".join(match[2].split()) for match in _CLAUSE.finditer(_page(page))}


def _page(name: str) -> str:
    path = root("spec") / name
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "this page is not UTF-8", str(path)) from None


def text_digest() -> str:
    """Return the SHA-256 of the pages of the text; any changed word changes it."""
    return digest(root("spec") / page for page in PAGES)


def digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the names and contents of files, with line ends as in the repository."""
    whole = hashlib.sha256()
    for path in paths:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.name} {len(content)}\n".encode() + content)
    return whole.hexdigest()
