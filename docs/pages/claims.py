"""The page of the ledger: a summary, the filters, and each claim with all its fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from docs.pages import theorems
from docs.pages.common import CLAIMS, ERRATA, INDEX, claims_book, relative, write
from docs.pages.markup import (
    badge,
    codes,
    evidence,
    fields,
    headline,
    heads,
    listed,
    meanings,
    ordered_papers,
    paper_name,
    plain,
)
from secagg_spec.ledger import entries, proofs
from secagg_spec.ledger.entries import Claim, Ledger


def write_claims(out: Path) -> None:
    """Write the page of the ledger."""
    book = claims_book()
    lines = [_head(book), _matrix(book), "", _legend(), "", *_filters(book)]
    for paper in ordered_papers(book):
        lines += ["", f"## {book.papers[paper]} {{ #{paper} }}", "", *map(entry, book.of(paper))]
    lines += ["", '<script src="../../assets/claims.js" defer></script>', ""]
    write(out / CLAIMS, "\n".join(lines))


def _head(book: Ledger) -> str:
    proved = [claim for claim in book.claims.values() if claim.proof]
    single = sum(not claim.second for claim in proved)
    pages = ("explanation/claims.md", "spec/ledger.md", ERRATA, INDEX)
    how, text, errata, index = (relative(page, CLAIMS) for page in pages)
    return (
        "# Claims of the papers\n\nWhat the papers claim, in our words, and the verdict that a program reaches. "
        f"Of {len(book.claims)} claims {len(proved)} are decided by {len({claim.proof for claim in proved})} programs; "
        f"{len(proved) - single} of these are also decided by a second method, {single} by one method only. The "
        f"last section has the results of this project, found in no paper. [How it works]({how}), [what a verdict "
        f"is]({text}), [what is wrong in the papers]({errata}), [what each paper numbers]({index}).\n\n"
        "## Summary\n"
    )


# The summary


def _matrix(book: Ledger) -> str:
    """Return the table of papers by verdicts; each number leads to the claims that it counts."""
    head = heads([*map(badge, entries.VERDICTS), "all"])
    rows = [_matrix_row(paper_name(paper), paper, book.of(paper)) for paper in ordered_papers(book)]
    total = _matrix_row("All", "", tuple(book.claims.values()))
    return (
        '<div class="ledger-matrix">\n<table aria-label="Claims by paper and verdict">\n'
        f"<thead><tr><td></td>{head}</tr></thead>\n"
        f"<tbody>\n{chr(10).join([*rows, total])}\n</tbody>\n</table>\n</div>"
    )


def _matrix_row(name: str, paper: str, claims: Sequence[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    cells = [_matrix_cell(paper, verdict, counts[verdict]) for verdict in entries.VERDICTS]
    total = _matrix_cell(paper, "", len(claims))
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}{total}</tr>'


def _matrix_cell(paper: str, verdict: str, number: int) -> str:
    if not number:
        return "<td>0</td>"
    asked = "&amp;".join(f"{field}={word}" for field, word in (("paper", paper), ("verdict", verdict)) if word)
    return f'<td><a href="?{asked}#{paper or "summary"}">{number}</a></td>'


def _legend() -> str:
    """Say what each verdict means, and, where it is opened, what each method does."""
    verdicts = {badge(verdict): meaning for verdict, meaning in meanings().items()}
    opened = f"<details>\n<summary>Methods</summary>\n{_meanings(proofs.METHODS)}\n</details>"
    return f"{_meanings(verdicts)}\n\n{opened}"


def _meanings(words: Mapping[str, str]) -> str:
    rows = (f"<dt>{word}</dt><dd>{escape(meaning, quote=False)}</dd>" for word, meaning in words.items())
    return f'<dl class="verdicts">{"".join(rows)}</dl>'


# The filters


def _filters(book: Ledger) -> Iterator[str]:
    """Yield the form; it stays hidden where no script runs, since it would do nothing."""
    claims = tuple(book.claims.values())
    papers = {paper: paper_name(paper) for paper in ordered_papers(book)}
    papers[entries.OURS] = "results of this project"
    yield '<form id="claim-filters" aria-label="Filter the claims" hidden>'
    yield _choice("paper", papers, (claim.paper for claim in claims))
    yield _choice("verdict", _same(entries.VERDICTS), (claim.verdict for claim in claims))
    yield _choice("kind", _same(sorted({claim.kind for claim in claims})), (claim.kind for claim in claims))
    used = [method for claim in claims for method in _methods(claim)]
    yield _choice("method", _same(method for method in proofs.METHODS if method in used), used)
    yield '<label class="words">text <input type="search" name="text" autocomplete="off"></label>'
    yield '<label class="check"><input type="checkbox" name="single" value="yes"> by one method only</label>'
    yield '<button type="reset">Show all</button>'
    yield '<p role="status" aria-live="polite"></p>'
    yield "</form>"


def _same(words: Iterable[str]) -> Mapping[str, str]:
    return {word: word for word in words}


def _choice(name: str, words: Mapping[str, str], found: Iterable[str]) -> str:
    counts = Counter(found)
    options = (f'<option value="{one}">{escape(word)} ({counts[one]})</option>' for one, word in words.items())
    return f'<label>{name} <select name="{name}"><option value="">all</option>{"".join(options)}</select></label>'


def _methods(claim: Claim) -> Sequence[str]:
    return [claim.method, *claim.second] if claim.method else []


# One claim


def entry(claim: Claim) -> str:
    """Return a claim with all its fields."""
    members = {
        "holds if": plain(claim.condition, CLAIMS),
        "fails for": codes(claim.counterexample),
        "repair": plain(claim.repair, CLAIMS),
        "matters": plain(claim.matters, CLAIMS),
        "new": plain(claim.new, CLAIMS),
        "numbers": codes(claim.numbers),
        "note": plain(claim.note, CLAIMS),
        "evidence": evidence(claim, CLAIMS),
        "method": _method(claim),
        "scope": plain(claim.scope, CLAIMS),
        "theorems": theorems.carrying(claim, CLAIMS),
        "clauses": listed(claim.clauses, CLAIMS),
    }
    return (
        f'<article class="claim" {_attributes(claim)}>\n{headline(claim)}\n'
        f'<p class="place">{plain(claim.place, CLAIMS)} · {claim.kind}</p>\n<p>{plain(claim.statement, CLAIMS)}</p>\n'
        f"{fields(members)}\n</article>"
    )


def _attributes(claim: Claim) -> str:
    """Return what the filters look at."""
    data = {"paper": claim.paper, "verdict": claim.verdict, "kind": claim.kind, "method": " ".join(_methods(claim))}
    single = ["data-single"] if claim.proof and not claim.second else []
    return " ".join([*(f'data-{name}="{word}"' for name, word in data.items()), *single])


def _method(claim: Claim) -> str:
    """Say how a claim is decided, and whether in a second way."""
    second = f", and {', '.join(claim.second)}" if claim.second else ", by this method only"
    return claim.method and claim.method + second
