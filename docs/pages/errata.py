"""The errata: what is wrong in the papers, the smallest counterexample, the repair, and what it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from docs.pages.common import CLAIMS, ERRATA, claims_book, relative, write
from docs.pages.markup import badge, evidence, fields, headline, link, paper_name, plain, table
from secagg_spec import ledger
from secagg_spec.ledger import Claim, Ledger

SERIOUS = ("privacy", "algorithm", "bound", "parameters", "identity", "derivation", "number", "definition")
"""The kinds of claims, those first whose fault costs most."""


def write_errata(out: Path) -> None:
    """Write the page of errata, by paper."""
    book = claims_book()
    papers = {paper: title for paper, title in book.papers.items() if paper != ledger.OURS}
    lines = [_head(book, papers), _counts(book, papers)]
    for paper, title in papers.items():
        lines += ["", f"## {title} {{ #{paper} }}", "", *(map(erratum, wrong(book, paper)))]
    write(out / ERRATA, "\n".join([*lines, ""]))


def wrong(book: Ledger, paper: str) -> Sequence[Claim]:
    """Return the claims of a paper that do not hold as they stand, the most serious ones first."""
    found = [claim for claim in book.of(paper) if claim.verdict in ledger.ERRATA]
    return sorted(found, key=lambda claim: (ledger.ERRATA.index(claim.verdict), SERIOUS.index(claim.kind)))


def _head(book: Ledger, papers: Mapping[str, str]) -> str:
    judged = sum(len(book.of(paper)) for paper in papers)
    failing = sum(len(wrong(book, paper)) for paper in papers)
    return (
        f"# Errata of the papers\n\nOf the {judged} claims of the papers that are judged here, {failing} do not hold "
        "as they stand. Of each paper those that fail come first (refuted), then those that hold only under a "
        "condition that is not stated (conditional), then those whose words have no single meaning, or not the one "
        "that holds (imprecise). Each entry says, in our words, what is claimed and where; the smallest case "
        "that the program finds in which it fails; what holds instead; and what changes for somebody who has built on "
        f"it. The command in an entry runs its program. [All claims]({relative(CLAIMS, ERRATA)}), [what a verdict "
        f"is]({relative('spec/ledger.md', ERRATA)}).\n"
    )


def _counts(book: Ledger, papers: Mapping[str, str]) -> str:
    head = "".join(f'<th scope="col">{badge(verdict)}</th>' for verdict in ledger.ERRATA)
    rows = "\n".join(_row(book, paper) for paper in papers)
    return (
        '<div class="ledger-matrix">\n<table aria-label="Errata by paper">\n'
        f'<thead><tr><td></td>{head}<th scope="col">of claims</th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _row(book: Ledger, paper: str) -> str:
    counts = Counter(claim.verdict for claim in book.of(paper))
    cells = "".join(f"<td>{counts[verdict]}</td>" for verdict in ledger.ERRATA)
    name = f'<a href="#{paper}">{escape(paper_name(paper))}</a>'
    return f'<tr><th scope="row">{name}</th>{cells}<td>{len(book.of(paper))}</td></tr>'


def erratum(claim: Claim) -> str:
    """Return the entry of a claim that does not hold as it stands."""
    told = {
        "claimed": f'{plain(claim.statement, ERRATA)} <span class="place">({plain(claim.place, ERRATA)})</span>',
        "holds if": plain(claim.condition, ERRATA),
        "fails for": table(claim.counterexample) if claim.counterexample else "",
        "repair": plain(claim.repair, ERRATA),
        "what changes": plain(claim.matters, ERRATA),
        "note": plain(claim.note, ERRATA),
        "see it": f"<code>secagg-spec claims {claim.id} --verify</code>" if claim.proof else "",
        "clauses": plain(", ".join(claim.clauses), ERRATA),
        "more": f"{link(f'{CLAIMS}#{claim.id}', ERRATA, 'the whole entry')}; {evidence(claim, ERRATA)}",
    }
    return f'<article class="claim">\n{headline(claim)}\n{fields(told)}\n</article>'
