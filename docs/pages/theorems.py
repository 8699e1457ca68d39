"""The page of the theorems that a prover checks: each beside the clauses and claims that it carries."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path

from docs.pages.common import ROOT, THEOREMS, TRUST, SiteError, claims_book, count, relative, write
from docs.pages.markup import badge, fields, link, mentioned, plain
from secagg_spec import resources
from secagg_spec.ledger import bindings, theorems
from secagg_spec.ledger.entries import Bound, Claim
from secagg_spec.ledger.theorems import Theorem

_MARKS = (
    (re.compile(r"\$([^$]+)\$"), r'<span class="arithmatex">\\(\1\\)</span>'),
    (re.compile(r"`([^`]+)`"), r"<code>\1</code>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
    (re.compile(r"\[([^\]]+)\]\([^)]+\)"), r"\1"),
)
"""What the sentence of a clause is marked with, and what stands for it in HTML; of links the words are left."""
_ABOUT = re.compile(r"\A\(\*(.*?)\*\)", re.DOTALL)


@functools.cache
def known() -> Mapping[str, Theorem]:
    """Return the theorems.

    Raises
    ------
    SiteError
        A claim and a theorem that it names changed since they were bound.
    """
    found = theorems.load()
    for line in bindings.stale(claims_book().claims.values(), found):
        raise SiteError(line)
    return found


def write_theorems(out: Path) -> None:
    """Write the page."""
    parts = [_head()]
    shown: set[str] = set()
    for file, group in groupby(known().values(), lambda theorem: theorem.name.partition(".")[0]):
        parts += ["", f"## {file}", "", f"<p>{plain(_about(file), THEOREMS)}</p>", ""]
        parts += [_article(theorem, shown) for theorem in group]
    write(out / THEOREMS, "\n".join([*parts, ""]))


def _head() -> str:
    bound = sum(bool(claim.formal) for claim in claims_book().claims.values())
    clauses = {clause for theorem in known().values() for clause in theorem.clauses}
    trust, newcomers = relative(TRUST, THEOREMS), relative("explanation/learns-exactly.md", THEOREMS)
    return (
        "# Theorems\n\n"
        f"{count(known(), 'theorem')}, which a prover, Rocq with MathComp, checks for all parameters, without an "
        f"axiom or a gap. They carry {count(clauses, 'clause')} of the text, and {bound} claims in whole or in part. "
        "Each is here in words, with what it takes as ideal and what it does not say, and as Rocq states it. "
        "`make formal` checks them where the prover is installed, and compares what it prints with what is shown here. "
        "A digest binds each claim to its theorems: when one of them changes, the site is not built until a person has "
        "read both again.\n\n"
        f"[What *learns exactly* means]({newcomers}) · [What rests on what]({trust})"
    )


def _about(file: str) -> str:
    """Return the first comment of a file of the prover, in which its subject stands."""
    found = _ABOUT.match((ROOT / "proofs" / theorems.FOLDER / f"{file}.v").read_text(encoding="utf-8"))
    if found is None:
        raise SiteError(f"proofs/formal/{file}.v does not begin with a comment on what it is about")
    return " ".join(found[1].split())


def anchor(name: str) -> str:
    """Return the anchor of a theorem or a definition on its page."""
    return name.replace(".", "-")


def linked(name: str, page: str) -> str:
    """Return a link to a theorem, as HTML."""
    return link(f"{THEOREMS}#{anchor(name)}", page, f"<code>{escape(name)}</code>")


def carrying(claim: Claim, page: str) -> str:
    """Return the theorems that carry a part of a claim, each with this part, as HTML."""
    return "<br>".join(f"{linked(bound.theorem, page)}: {plain(bound.covers, page)}" for bound in claim.formal)


def of_clause(clause: str) -> list[str]:
    """Return the names of the theorems that carry a clause."""
    return [theorem.name for theorem in known().values() if clause in theorem.clauses]


def _article(theorem: Theorem, shown: set[str]) -> str:
    """Return a theorem; a definition stands with the first theorem that rests on it, and `shown` keeps which do."""
    fresh = [name for name in theorem.definitions if name not in shown]
    shown.update(fresh)
    permanent = f'<a class="headerlink" href="#{anchor(theorem.name)}" title="Permanent link">&para;</a>'
    members = {
        "idealises": plain(theorem.idealises, THEOREMS),
        "does not say": "; ".join(plain(words, THEOREMS) for words in theorem.unsaid),
        "clauses": "<br>".join(_clause(clause) for clause in theorem.clauses),
        "claims": "<br>".join(_claim(claim, bound) for claim, bound in _carried(theorem.name)),
    }
    return (
        f'<article class="claim theorem">\n<h3 id="{anchor(theorem.name)}">{escape(theorem.name)}{permanent}</h3>\n'
        f"<p>{plain(theorem.says, THEOREMS)}</p>\n{fields(members)}\n{_in_rocq(theorem, fresh)}\n</article>\n"
    )


def _clause(clause: str) -> str:
    """Return a clause and its sentence, with its formulas, code and emphasis."""
    text = escape(" ".join(resources.clauses()[clause].split()), quote=False)
    for mark, shown in _MARKS:
        text = mark.sub(shown, text)
    return f"{mentioned(clause, THEOREMS)} {text}"


def _carried(name: str) -> Iterator[tuple[Claim, Bound]]:
    for claim in claims_book().claims.values():
        yield from ((claim, bound) for bound in claim.formal if bound.theorem == name)


def _claim(claim: Claim, bound: Bound) -> str:
    said = f'<em class="quoted">{plain(claim.statement, THEOREMS)}</em>'
    return f"{mentioned(claim.id, THEOREMS)} {badge(claim.verdict)} {said} It carries: {plain(bound.covers, THEOREMS)}."


def _in_rocq(theorem: Theorem, fresh: Iterable[str]) -> str:
    blocks = [f'<pre id="{anchor(name)}">{escape(theorem.definitions[name])}</pre>' for name in fresh]
    before = [name for name in theorem.definitions if name not in fresh]
    rests = f"<p>It rests on {', '.join(linked(name, THEOREMS) for name in before)} too.</p>" if before else ""
    return (
        f"<details>\n<summary>As Rocq states it</summary>\n{''.join(blocks)}{rests}\n"
        f"<pre>{escape(theorem.statement)}</pre>\n</details>"
    )
