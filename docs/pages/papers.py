"""The page of indices: what each paper numbers, with the claims that judge it, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from docs.pages.common import CLAIMS, INDEX, claims_book, relative, write
from docs.pages.markup import judgements, plain, stacked
from secagg_spec.ledger import papers
from secagg_spec.ledger.entries import Ledger
from secagg_spec.ledger.papers import Index, Item


def write_papers(out: Path) -> None:
    """Write the page, paper by paper."""
    book = claims_book()
    indices = papers.load(book)
    lines = [_head(indices)]
    for paper, index in indices.items():
        lines += ["", f"## {book.papers[paper]} {{ #{paper} }}", "", _count(index), "", _table(book, index)]
    write(out / INDEX, "\n".join([*lines, ""]))


def _head(indices: Mapping[str, Index]) -> str:
    total = sum(len(index.numbered) for index in indices.values())
    rules = f"{relative('spec/ledger.md', INDEX)}#4-the-index-of-a-paper"
    return (
        f"# What each paper numbers\n\nThe {total} equations, algorithms, theorems, remarks, figures, tables and other "
        f"items that the papers number, each with [the claims]({relative(CLAIMS, INDEX)}) that judge it, or the reason "
        "why there is none. Claims of running text stand under their sections. Whoever has the text of a paper can "
        f"compare it with this list: `secagg-spec claims --index --texts DIR` ([the rules]({rules})).\n"
    )


def _count(index: Index) -> str:
    judged = sum(bool(item.claims) for item in index.numbered)
    reasons = len(index.numbered) - judged
    return f"{len(index.numbered)} numbered items: {judged} with claims, {reasons} with the reason why there is none."


def _table(book: Ledger, index: Index) -> str:
    rows = "\n".join(_row(book, item) for item in index.items)
    return stacked(("item", "judged by"), rows)


def _row(book: Ledger, item: Item) -> str:
    judged = judgements(item.claims, book, INDEX)
    return f'<tr><th scope="row">{escape(item.name)}</th><td>{judged or plain(item.reason, INDEX)}</td></tr>'
