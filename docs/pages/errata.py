"""The errata: the errors of all papers, and a page for each paper with what was read, the errors, and slips apart."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from docs.pages.common import (
    CLAIMS,
    CLAUSE_LINE,
    ERRATA,
    ROOT,
    claims_book,
    errata_page,
    escaped,
    heading,
    named,
    names,
    relative,
    slug,
    write,
)
from docs.pages.markup import (
    badge,
    codes,
    evidence,
    fields,
    headline,
    heads,
    link,
    mentioned,
    paper_name,
    plain,
    quoted,
    table,
)
from secagg_spec.ledger import entries, roots
from secagg_spec.ledger.entries import Claim, Ledger
from secagg_spec.ledger.roots import Root
from secagg_spec.resources import PAGES

ABOUT_CLAIMS = "claims.md"
"""The page of explanation that takes claims as examples of what a claim is."""
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)

OPEN = "what-the-papers-leave-open-or-get-wrong"
OWN = (("lightsecagg", 8), ("secagg", 11))
"""The sections of the text on papers that are not in the ledger."""


def write_errata(out: Path) -> None:
    """Write the page of all errors, the gravest first, and a page for each paper, which its authors can be sent."""
    book = claims_book()
    found = roots.load(book)
    papers = list(dict.fromkeys(root.paper for root in found))
    lines = [_head(book, found), _counts(book, papers), "", *_grave(found), ""]
    write(out / ERRATA, "\n".join(lines))
    for paper in papers:
        write(out / errata_page(paper), "\n".join(_paper(book, paper, [root for root in found if root.paper == paper])))


def wrong(book: Ledger, paper: str) -> Sequence[Claim]:
    """Return the claims of a paper that do not hold as they stand, by their roots, the gravest first."""
    found = (root for root in roots.load(book) if root.paper == paper)
    return [claim for root in found for claim in (*filter(None, (root.lead,)), *root.follow)]


def _head(book: Ledger, found: Sequence[Root]) -> str:
    judged = sum(len(book.of(paper)) for paper in book.sources)
    errors = [root for root in found if root.lead]
    slips = sum(len(root.follow) for root in found if not root.lead)
    light, pairs = (relative(f"spec/{page}.md", ERRATA) + f"#{part}-{OPEN}" for page, part in OWN)
    return (
        f"# Errata of the papers\n\nOf the {judged} claims of the papers that are judged here, {len(book.errata())} do "
        f"not hold as they stand. Behind them are {len(errors)} errors, and {slips} slips and names. Each paper has a "
        "page: what was read of it and what was not, its errors with what follows from each, and slips apart. "
        "Each error has the smallest case that the program finds; what holds instead; what changes for somebody who "
        "has built on it; and the command that shows it. `secagg-spec claims --errata` prints them. "
        f"What the papers of [LightSecAgg]({light}) and of [SecAgg]({pairs}) leave open, or get wrong, stands on the "
        f"pages of these protocols. [All claims]({relative(CLAIMS, ERRATA)}), "
        f"[what a verdict and a severity is]({relative('spec/ledger.md', ERRATA)}).\n"
    )


def _counts(book: Ledger, papers: Sequence[str]) -> str:
    head = heads([*map(badge, entries.ERRATA), "of claims"])
    rows = "\n".join(_row(book, paper) for paper in papers)
    return (
        '<div class="ledger-matrix">\n<table aria-label="Errata by paper">\n'
        f"<thead><tr><td></td>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(book: Ledger, paper: str) -> str:
    counts = Counter(claim.verdict for claim in book.of(paper))
    cells = "".join(f"<td>{counts[verdict]}</td>" for verdict in entries.ERRATA)
    name = link(errata_page(paper), ERRATA, escape(paper_name(paper)))
    return f'<tr><th scope="row">{name}</th>{cells}<td>{len(book.of(paper))}</td></tr>'


def _grave(found: Sequence[Root]) -> Iterator[str]:
    """Yield a list of the errors for each severity."""
    for severity in roots.SEVERITIES:
        errors = [root for root in found if root.severity == severity and root.lead]
        if errors:
            yield f"## {severity.capitalize()}\n"
            yield from (_line(root) for root in errors)
            yield ""


def _line(root: Root) -> str:
    there = f"{relative(errata_page(root.paper), ERRATA)}#{root.id}"
    claims = "1 claim" if not root.follow else f"{1 + len(root.follow)} claims"
    return f"- [{escaped(root.fails)}]({there}) ({paper_name(root.paper)}, {claims})"


def _paper(book: Ledger, paper: str, found: Sequence[Root]) -> Iterator[str]:
    """Yield the lines of the page of a paper: what was read, the errors, and slips apart."""
    page, source = errata_page(paper), book.sources[paper]
    errors, slips = ([root for root in found if bool(root.lead) is grave] for grave in (True, False))
    yield f"# Errata: {paper_name(paper)}\n\n{book.papers[paper]}\n"
    told = {name: plain(text, page) for name, text in (*vars(source).items(), ("judged", _judged(book, paper)))}
    yield f'<div class="claim">{fields(told)}</div>'
    yield (
        f"\nEach entry has a command that shows it, on a computer with this project and no network; [how to get it]("
        f"{relative('explanation/claims.md', page)}). Where an entry is unfair or wrong, tell us: "
        f"[how to answer]({relative('contributing.md', page)}#answer-an-erratum). "
        f"[All errata]({relative(ERRATA, page)}), [verdicts and severities]({relative('spec/ledger.md', page)}).\n"
    )
    for number, root in enumerate(errors, 1):
        yield f"## {number}. {escaped(root.fails)} {{ #{root.id} }}\n\n*Severity: {root.severity}.*\n"
        assert root.lead is not None
        yield erratum(root.lead, page)
        if root.follow:
            yield "\nWhat follows, or has the same reason:\n"
        yield from (erratum(claim, page) for claim in root.follow)
        yield ""
    for root in slips:
        yield f"## Slips and names {{ #{root.id} }}\n\n{escaped(root.fails)}\n"
        yield from (erratum(claim, page) for claim in root.follow)
    yield ""


def _judged(book: Ledger, paper: str) -> str:
    counts = Counter(claim.verdict for claim in book.of(paper))
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in entries.VERDICTS if counts[verdict])


def erratum(claim: Claim, page: str) -> str:
    """Return the entry of a claim that does not hold as it stands."""
    members = {
        "claimed": f'{plain(claim.statement, page)} <span class="place">({plain(claim.place, page)})</span>',
        "in the paper": quoted(claim),
        "holds if": plain(claim.condition, page),
        "fails for": table(claim.counterexample) if claim.counterexample else "",
        "numbers": codes(claim.numbers),
        "instead": plain(claim.repair, page),
        "what changes": plain(claim.matters, page),
        "note": plain(claim.note, page),
        "see it": f"<code>secagg-spec claims {claim.id} --verify</code>" if claim.proof else "",
        "shown for": plain(claim.scope, page),
        "formulas": plain(claims_book().formulas(claim), page),
        "in the text": _in_the_text(claim, page),
        "explained": _explained(claim, page),
        "more": f"{link(f'{named()[claim.id]}#{claim.id}', page, 'the whole entry')}; {evidence(claim, page)}",
    }
    return f'<article class="claim">\n{headline(claim)}\n{fields(members)}\n</article>'


def _in_the_text(claim: Claim, page: str) -> str:
    """Return links to the clauses that depend on a claim or on its repair, by the sections in which they stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for clause in claim.clauses:
        found[clause_sections()[clause]].append(mentioned(clause, page))
    places = (f'{", ".join(links)} <span class="place">({escape(place)})</span>' for place, links in found.items())
    return "; ".join(places) or "no clause depends on it"


@functools.cache
def clause_sections() -> Mapping[str, str]:
    """Return the page and the section of the text in which each clause stands."""
    found: dict[str, str] = {}
    for page in PAGES:
        path = ROOT / "spec" / page
        for title, body in _sections(path.read_text(encoding="utf-8")):
            found |= dict.fromkeys(CLAUSE_LINE.findall(body), f"{heading(path)}, section {title}")
    return found


def _explained(claim: Claim, page: str) -> str:
    places = (link(target, page, escape(title)) for target, title in explanations().get(claim.id, {}).items())
    return "; ".join(places)


@functools.cache
def explanations() -> Mapping[str, Mapping[str, str]]:
    """Return, for each claim that pages of explanation name, where they do, and what these places are called."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted((ROOT / "docs" / "explanation").glob("*.md")):
        if path.name != ABOUT_CLAIMS:
            for title, body in _sections(path.read_text(encoding="utf-8")):
                anchor = f"#{slug(title)}" if title else ""
                link = f"{heading(path)}: {title}" if title else heading(path)
                for name in dict.fromkeys(names().findall(body)):
                    found[name][f"explanation/{path.name}{anchor}"] = link
    return found


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each section of a page, its title and its text; what stands before the first one has no title."""
    first, *rest = _SECTION.split(text)
    yield "", first
    yield from zip(rest[::2], rest[1::2], strict=True)
