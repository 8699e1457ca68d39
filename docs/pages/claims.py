"""The pages of claims: a list of all with a summary and filters, and a page for each paper with all fields of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape, unescape
from pathlib import Path

from docs.pages import theorems
from docs.pages.common import (
    CLAIMS,
    ERRATA,
    INDEX,
    claims_book,
    claims_page,
    errata_page,
    named,
    relative,
    write,
)
from docs.pages.markup import (
    badge,
    codes,
    evidence,
    fields,
    headline,
    heads,
    href,
    link,
    listed,
    meanings,
    ordered_papers,
    paper_name,
    plain,
    quoted,
)
from secagg_spec.ledger import entries, proofs
from secagg_spec.ledger.entries import Claim, Ledger

_INLINE = re.compile(r"&para;|</?(?:a|code|span)\b[^>]*>")
_TAG = re.compile(r"<[^>]+>")


def write_claims(out: Path) -> None:
    """Write the list of all claims, and a page for each paper; the results of this project have theirs already."""
    book = claims_book()
    lines = [_head(book), _matrix(book), "", _legend(), "", *_filters(book)]
    for paper in ordered_papers(book):
        rows = map(_row, book.of(paper))
        lines += ["", f"## {book.papers[paper]} {{ #{paper} }}", "", '<ul class="claims">', *rows, "</ul>"]
    lines += ["", '<script src="../../assets/claims.js" defer></script>', ""]
    write(out / CLAIMS, "\n".join(lines))
    for paper in book.sources:
        write(out / claims_page(paper), "\n".join(_paper(book, paper)))


def _head(book: Ledger) -> str:
    proved = [claim for claim in book.claims.values() if claim.proof]
    single = sum(not claim.second for claim in proved)
    pages = ("explanation/claims.md", "spec/ledger.md", ERRATA, INDEX)
    how, text, errata, index = (relative(page, CLAIMS) for page in pages)
    return (
        "# Claims of the papers\n\nWhat the papers claim, in our words, and the verdict that a program reaches. "
        f"Of {len(book.claims)} claims {len(proved)} are decided by {len({claim.proof for claim in proved})} programs; "
        f"{len(proved) - single} of these are also decided by a second method, {single} by one method only. The "
        "last section has the results of this project, found in no paper. Each id leads to the entry: what fails, what "
        f"holds instead, what was run. [How it works]({how}), [what a verdict is]({text}), "
        f"[what is wrong in the papers]({errata}), [what each paper numbers]({index}).\n\n"
        "## Summary\n"
    )


# The summary


def _matrix(book: Ledger) -> str:
    """Return the table of papers by verdicts; each number leads to the claims that it counts."""
    head = heads([*map(badge, entries.VERDICTS), "all"])
    pages = {paper: link(claims_page(paper), CLAIMS, escape(paper_name(paper))) for paper in ordered_papers(book)}
    rows = [_matrix_row(name, paper, book.of(paper)) for paper, name in pages.items()]
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
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}{total}</tr>'


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


def _row(claim: Claim) -> str:
    """Return a claim in the list; its old address leads to its entry, and the filters read the words of the entry."""
    page = named()[claim.id]
    shown = (
        f'<a class="moved" id="{claim.id}" href="{href(f"{page}#{claim.id}", CLAIMS)}">{claim.id}</a> '
        f'{badge(claim.verdict)} <span class="place">{plain(claim.place, CLAIMS)} · {claim.kind}</span>'
        f"<br>{plain(claim.statement, CLAIMS)}"
    )
    here = _text(shown)
    more = dict.fromkeys(word for word in _text(entry(claim, page)).split() if word not in here)
    return f'<li {_attributes(claim)} data-words="{escape(" ".join(more))}">{shown}</li>'


def _text(html: str) -> str:
    """Return what can be read of HTML, in small letters."""
    return unescape(_TAG.sub(" ", _INLINE.sub("", html))).lower()


def _paper(book: Ledger, paper: str) -> Iterator[str]:
    """Yield the lines of the page of a paper: its claims by verdicts, and each in full."""
    page, claims = claims_page(paper), book.of(paper)
    others = (CLAIMS, errata_page(paper), f"{INDEX}#{paper}", "spec/ledger.md")
    every, errata, index, text = (relative(other, page) for other in others)
    yield (
        f"# Claims: {paper_name(paper)}\n\n{len(claims)} claims of this paper, in our words, and the verdict that a "
        f"program reaches. [All claims, with filters]({every}), [what is wrong in this paper]({errata}), [what it "
        f"numbers]({index}), [what a verdict is]({text}).\n"
    )
    found = {verdict: [claim.id for claim in claims if claim.verdict == verdict] for verdict in entries.VERDICTS}
    rows = (f"<dt>{badge(verdict)}</dt><dd>{listed(names, page)}</dd>" for verdict, names in found.items() if names)
    yield f'<dl class="verdicts">{"".join(rows)}</dl>'
    yield f"\n## {book.papers[paper]} {{ #{paper} }}\n"
    yield from (entry(claim, page) for claim in claims)
    yield ""


def entry(claim: Claim, page: str) -> str:
    """Return a claim with all its fields."""
    members = {
        "in the paper": quoted(claim),
        "holds if": plain(claim.condition, page),
        "fails for": codes(claim.counterexample),
        "repair": plain(claim.repair, page),
        "matters": plain(claim.matters, page),
        "new": plain(claim.new, page),
        "what would decide it": plain(claim.decides, page),
        "numbers": codes(claim.numbers),
        "note": plain(claim.note, page),
        "evidence": evidence(claim, page),
        "method": _method(claim),
        "see it": f"<code>secagg-spec claims {claim.id} --verify</code>" if claim.proof else "",
        "scope": plain(claim.scope, page),
        "theorems": theorems.carrying(claim, page),
        "clauses": listed(claim.clauses, page),
    }
    place = f'<span class="place">{plain(claim.place, page)}</span> '
    return (
        f'<article class="claim">\n{headline(claim, place)}\n<p>{plain(claim.statement, page)} '
        f'<span class="place">({claim.kind})</span></p>\n{fields(members)}\n</article>'
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
