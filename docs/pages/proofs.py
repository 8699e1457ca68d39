"""A page for each proof: what it states, why, what it decides, and its source."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path

from docs.pages.common import PROOFS, ROOT, SiteError, claims_book, relative, write
from docs.pages.markup import badge, judgements, mentioned, plain, stacked
from secagg_spec.ledger import entries
from secagg_spec.ledger import proofs as ledger_proofs
from secagg_spec.ledger.entries import Ledger
from secagg_spec.ledger.proofs import Proof

TESTS = ROOT / "tests" / "proofs" / "test_proofs.py"
_CODE = re.compile(r"`([^`\n]+)`")
_STEP = re.compile(r"\n(?=\([a-z]\) |- )")

_SIGNS = (("&gt;=", "≥"), ("&lt;=", "≤"), ("!=", "≠"), (" * ", " · "))
"""Signs as they are typed, escaped for HTML, and as they are read."""


def write_proofs(out: Path) -> None:
    """Write a page for each proof, and their list."""
    book = claims_book()
    proofs = [ledger_proofs.load_proof(name) for name in entries.proof_names()]
    for proof in proofs:
        write(out / _page(proof), _text(proof, book))
    rows = "\n".join(_row(proof, book) for proof in proofs)
    listed = f'<div class="proof-list">\n{stacked(("proof", "what it shows", "decides"), rows)}\n</div>'
    write(out / _index(), f"{_head(len(proofs))}\n{listed}\n")


def _page(proof: Proof) -> str:
    return f"{PROOFS}/{proof.name}.md"


def _index() -> str:
    return f"{PROOFS}/index.md"


def _head(count: int) -> str:
    how = relative("explanation/claims.md", _index())
    return (
        f"# Proofs\n\nThe {count} programs that decide [the claims of the papers](../claims.md), each read from top to "
        "bottom: the statement, the idea, the computation. Each is itself tested: copies with a falsified statement "
        f"must fail. [What a proof is worth]({how}#what-a-proof-is-worth).\n"
    )


def _row(proof: Proof, book: Ledger) -> str:
    page = _index()
    name = f'<a href="{proof.name}/"><code>{proof.name}</code></a>'
    cells = (prose(_parts(proof)[0], page), judgements(proof.claims, book, page))
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _parts(proof: Proof) -> tuple[str, ...]:
    """Return the paragraphs of a proof, the first of which is its title."""
    return tuple(step for paragraph in proof.text.split("\n\n") for step in _STEP.split(paragraph))


def _text(proof: Proof, book: Ledger) -> str:
    """Return the page of a proof."""
    page = _page(proof)
    title, *steps = _parts(proof)
    source = _program((ROOT / "proofs" / f"{proof.name}.py").read_text(encoding="utf-8"))
    paragraphs = "\n".join(f"<p>{prose(step, page)}</p>" for step in steps)
    return (
        f"---\ntitle: {proof.name}\n---\n[Proofs](index.md)\n\n# `{proof.name}`\n\n"
        f'<div class="proof">\n<p><strong>{prose(title, page)}</strong></p>\n{paragraphs}\n</div>\n\n'
        f"## What it decides\n\n{_decides(proof, book)}\n\n"
        f"Run it: `secagg-spec claims {next(iter(proof.claims))} --verify`. {_tested(proof)}\n\n"
        f'## The program {{ data-search-exclude }}\n\n```python title="proofs/{proof.name}.py"\n{source}```\n'
    )


def _mathematics(html: str) -> str:
    """Return prose with its signs, powers and indices as mathematics has them; links are left alone."""
    parts = re.split(r"(<[^>]+>)", html)
    return "".join(part if number & 1 else _signs(part) for number, part in enumerate(parts))


def _signs(text: str) -> str:
    for plain_form, sign in _SIGNS:
        text = text.replace(plain_form, sign)
    text = re.sub(r"\b([0-9]+|[A-Za-z])(?:\*\*|\^)(\w+|\([^()]*\))", _power, text)
    return re.sub(r"\b([A-Za-z])_([A-Za-z0-9]+)\b", r"<var>\1</var><sub>\2</sub>", text)


def _power(found: re.Match[str]) -> str:
    base, exponent = found.groups()
    return f"{base}<sup>{exponent.removeprefix('(').removesuffix(')')}</sup>"


def prose(text: str, page: str) -> str:
    """Return a paragraph of a docstring as HTML: code between backticks, and links; nothing else is markup."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(
        f"<code>{escape(part, quote=False)}</code>" if number & 1 else _mathematics(plain(part, page))
        for number, part in enumerate(parts)
    )


def _program(source: str) -> str:
    """Return a program without its docstring, which stands above it on the page."""
    statement = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[statement.end_lineno or 0 :]).lstrip("\n")


def _decides(proof: Proof, book: Ledger) -> str:
    rows = "\n".join(_claim_row(name, book, _page(proof)) for name in proof.claims)
    return stacked(("claim", "verdict", "method", "statement"), rows)


def _claim_row(name: str, book: Ledger, page: str) -> str:
    claim = book.claim(name)
    cells = (badge(claim.verdict), ", ".join((claim.method, *claim.second)), plain(claim.statement, page))
    return f'<tr><th scope="row">{mentioned(name, page)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _tested(proof: Proof) -> str:
    count = falsified()[proof.name]
    return f"It is tested on {count} falsified {'copy' if count == 1 else 'copies'}, which must fail: `make proofs`."


@functools.cache
def falsified() -> Mapping[str, int]:
    """Return how many falsified copies of each proof the tests see fail.

    Raises
    ------
    SiteError
        The tests have no list of them, or none for one of the proofs.
    """
    tree = ast.parse(TESTS.read_text(encoding="utf-8"))
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and _names(node) == ["FALSIFIED"]]
    if not lists:
        raise SiteError(f"{TESTS.name} has no list FALSIFIED")
    counts = Counter(str(name) for name, *_ in ast.literal_eval(lists[0]))
    missing = [name for name in entries.proof_names() if not counts[name]]
    if missing:
        raise SiteError(f"no falsified copy of proofs/{missing[0]}.py is tested")
    return counts


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]
