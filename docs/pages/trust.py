"""What the promises of the protocols rest on, for the page that says it and for the page of each protocol."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from html import escape

from docs.pages.common import ROOT, THEOREMS, TRUST, claims_book, escaped, heading, relative
from docs.pages.markup import fields, heads, link, mentioned, plain
from docs.pages.theorems import anchor, known
from docs.pages.theorems import linked as in_html
from secagg_spec.ledger import promises as data
from secagg_spec.ledger.promises import Promise

WORDS = {
    "machine-checked": "theorems",
    "exact": "claims",
    "argued": "argued",
    "tested": "tested",
    "assumed": "assumed",
}
"""The words of the text for what a promise rests on (spec/ledger.md, section 7), and the field of each."""


@functools.cache
def _all() -> Sequence[Promise]:
    return data.load(claims_book())


def linked(name: str, page: str) -> str:
    """Return a link to a theorem, in Markdown."""
    return f"[`{name}`]({relative(THEOREMS, page)}#{anchor(name)})"


def promises() -> str:
    """Return a table of how many promises rest on what, and each promise with what it rests on."""
    return "\n".join([_counts(), *(line for page in data.PAGES for line in _section(page))])


def _counts() -> str:
    rows = []
    for page in data.PAGES:
        here = [promise for promise in _all() if promise.page == page]
        cells = "".join(f"<td>{sum(bool(getattr(one, field)) for one in here)}</td>" for field in WORDS.values())
        name = link(f"{TRUST}#{page}", TRUST, escape(_title(page)))
        rows.append(f'<tr><th scope="row">{name}</th><td>{len(here)}</td>{cells}</tr>')
    head = heads(["promises of", "all", *WORDS])
    table = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>"
    return (
        f'<div class="ledger-matrix">\n<table aria-label="Promises by what they rest on">\n{table}\n</table>\n</div>\n'
    )


def _title(page: str) -> str:
    return heading(ROOT / "spec" / f"{page}.md")


def _section(page: str) -> Iterator[str]:
    yield f"\n### {_title(page)} {{ #{page} }}\n"
    yield from (_article(promise) for promise in _all() if promise.page == page)


def _article(promise: Promise) -> str:
    theorems = "<br>".join(f"{in_html(name, TRUST)}: {plain(known()[name].says, TRUST)}" for name in promise.theorems)
    ideal = "; ".join(dict.fromkeys(known()[name].idealises for name in promise.theorems))
    book = claims_book()
    exact = "<br>".join(f"{mentioned(name, TRUST)}: {plain(book.claim(name).scope, TRUST)}" for name in promise.claims)
    members = {
        "machine-checked": plain(promise.carry, TRUST),
        "by": theorems,
        "idealised": plain(ideal, TRUST),
        "exact": exact,
        "argued": plain(promise.argued, TRUST),
        "tested": plain(promise.tested, TRUST),
        "assumed": plain(promise.assumed, TRUST),
    }
    holds = f"<strong>{plain(_text(promise.holds), TRUST)}</strong>"
    said = f"<p>{holds}<br>for: {plain(_text(promise.condition), TRUST)}</p>"
    return f'<article class="claim">\n{said}\n{fields(members)}\n</article>\n'


def _text(cell: str) -> str:
    """Return a cell of a table without marks for emphasis and formulas."""
    return cell.replace("*", "").replace("\\ge", "≥").replace("$", "")


def machine_checked(page: str) -> str:
    """Return the block that says which of the promises of a page theorems carry, at least in part."""
    here = [promise for promise in _all() if promise.page == page]
    carried = [promise for promise in here if promise.theorems]
    where, trust = f"spec/{page}.md", relative(TRUST, f"spec/{page}.md")
    lines = [f'??? note "Machine-checked, in whole or in part: {len(carried)} of these {len(here)} statements"', ""]
    for promise in carried:
        by = ", ".join(linked(name, where) for name in promise.theorems)
        lines += [f"    - *{escaped(_text(promise.what))}* …: {escaped(promise.carry)} ({by})."]
    rest = [f"*{escaped(_text(promise.what))}* …" for promise in here if not promise.theorems]
    lines += ["", f"    By no theorem: {'; '.join(rest)}."] if rest else []
    lines += ["", f"    [What they idealise, and what else each statement rests on]({trust}#{page})", ""]
    return "\n".join(lines)
