"""The errata: what is wrong in the papers, the smallest counterexample, the repair, and what it changes."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from docs.pages.common import CLAIMS, CLAUSE_LINE, ERRATA, ROOT, claims_book, heading, names, relative, slug, write
from docs.pages.markup import badge, codes, evidence, fields, headline, heads, link, mentioned, paper_name, plain, table
from secagg_spec.ledger import entries
from secagg_spec.ledger.entries import Claim, Ledger
from secagg_spec.resources import PAGES

ABOUT_CLAIMS = "claims.md"
"""The page of explanation that takes claims as examples of what a claim is."""
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)

SERIOUS = ("privacy", "algorithm", "bound", "parameters", "identity", "derivation", "number", "definition")
"""The kinds of claims, those first whose fault costs most."""

OPEN = "what-the-papers-leave-open-or-get-wrong"
OWN = (("lightsecagg", 8), ("secagg", 11))
"""The sections of the text on papers that are not in the ledger."""


def write_errata(out: Path) -> None:
    """Write the page of errata, by paper."""
    book = claims_book()
    papers = {paper: title for paper, title in book.papers.items() if paper != entries.OURS}
    lines = [_head(book, papers), _counts(book, papers)]
    for paper, title in papers.items():
        lines += ["", f"## {title} {{ #{paper} }}", "", *(map(erratum, wrong(book, paper)))]
    write(out / ERRATA, "\n".join([*lines, ""]))


def wrong(book: Ledger, paper: str) -> Sequence[Claim]:
    """Return the claims of a paper that do not hold as they stand, the most serious ones first."""
    found = [claim for claim in book.errata() if claim.paper == paper]
    return sorted(found, key=lambda claim: (entries.ERRATA.index(claim.verdict), SERIOUS.index(claim.kind)))


def _head(book: Ledger, papers: Mapping[str, str]) -> str:
    judged = sum(len(book.of(paper)) for paper in papers)
    light, pairs = (relative(f"spec/{page}.md", ERRATA) + f"#{part}-{OPEN}" for page, part in OWN)
    return (
        f"# Errata of the papers\n\nOf the {judged} claims of the papers that are judged here, {len(book.errata())} do "
        "not hold as they stand. Of each paper those that fail come first (refuted), then those that hold only under a "
        "condition that is not stated (conditional), then those whose words have no single meaning, or not the one "
        "that holds (imprecise). Each entry says, in our words, what is claimed and where; the smallest case "
        "that the program finds in which it fails; what holds instead; and what changes for somebody who has built on "
        f"it, with the clauses in which the standard has it right. The command in an entry runs its program, and "
        f"`secagg-spec claims --errata` lists them all. "
        f"What the papers of [LightSecAgg]({light}) and of [SecAgg]({pairs}) leave open, or get wrong, stands on the "
        "pages of these protocols. "
        f"[All claims]({relative(CLAIMS, ERRATA)}), [what a verdict is]({relative('spec/ledger.md', ERRATA)}).\n"
    )


def _counts(book: Ledger, papers: Mapping[str, str]) -> str:
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
    name = f'<a href="#{paper}">{escape(paper_name(paper))}</a>'
    return f'<tr><th scope="row">{name}</th>{cells}<td>{len(book.of(paper))}</td></tr>'


def erratum(claim: Claim) -> str:
    """Return the entry of a claim that does not hold as it stands."""
    members = {
        "claimed": f'{plain(claim.statement, ERRATA)} <span class="place">({plain(claim.place, ERRATA)})</span>',
        "holds if": plain(claim.condition, ERRATA),
        "fails for": table(claim.counterexample) if claim.counterexample else "",
        "numbers": codes(claim.numbers),
        "repair": plain(claim.repair, ERRATA),
        "what changes": plain(claim.matters, ERRATA),
        "note": plain(claim.note, ERRATA),
        "see it": f"<code>secagg-spec claims {claim.id} --verify</code>" if claim.proof else "",
        "in the text": _in_the_text(claim),
        "explained": _explained(claim),
        "more": f"{link(f'{CLAIMS}#{claim.id}', ERRATA, 'the whole entry')}; {evidence(claim, ERRATA)}",
    }
    return f'<article class="claim">\n{headline(claim)}\n{fields(members)}\n</article>'


def _in_the_text(claim: Claim) -> str:
    """Return links to the clauses that depend on a claim or on its repair, by the sections in which they stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for clause in claim.clauses:
        found[clause_sections()[clause]].append(mentioned(clause, ERRATA))
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


def _explained(claim: Claim) -> str:
    places = (link(target, ERRATA, escape(title)) for target, title in explanations().get(claim.id, {}).items())
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
