"""What the pages of the ledger are written with: HTML, in which nothing of an entry is markup."""

from __future__ import annotations

import functools
import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from docs.pages.common import PROOFS, ROOT, SiteError, heading, named, names, site_path
from secagg_spec.ledger import entries
from secagg_spec.ledger.entries import Claim, Ledger

_FILE = re.compile(r"\b(?:docs|proofs|spec)/[\w./-]+\.(?:md|py)\b")
_MEANING = re.compile(r"^\| ([a-z]+) \| ([^|]+?) \|", re.MULTILINE)


# Links


def href(target: str, page: str) -> str:
    """Return the address of a page of the site, with its anchor if it has one, as seen from another page."""
    path, _, anchor = target.partition("#")
    there = "" if path == page else posixpath.relpath(_folder(path), _folder(page)) + "/"
    return there + (f"#{anchor}" if anchor else "")


def _folder(page: str) -> str:
    """Return the folder in which a page stands as HTML."""
    path = page.removesuffix(".md")
    return (posixpath.dirname(path) if posixpath.basename(path) == "index" else path) or "."


def link(target: str, page: str, words: str) -> str:
    """Return a link to a place on the site; the words are HTML."""
    return f'<a href="{href(target, page)}">{words}</a>'


def mentioned(name: str, page: str) -> str:
    """Return a link to a clause or a claim."""
    return f'<a class="mention" href="{href(f"{named()[name]}#{name}", page)}">{name}</a>'


def listed(found: Sequence[str], page: str) -> str:
    """Return links to several clauses or claims."""
    return ", ".join(mentioned(name, page) for name in found)


def plain(words: str, page: str) -> str:
    """Return words as HTML, with a link behind each clause, claim and file of the project that stands on the site."""
    text = names().sub(lambda hit: mentioned(hit.group(), page), escape(words, quote=False))
    return _FILE.sub(lambda hit: _file_link(hit.group(), page), text)


def _file_link(path: str, page: str) -> str:
    there = site_path(path)
    return link(there, page, path) if there and (ROOT / path).is_file() else path


def evidence(claim: Claim, page: str) -> str:
    """Return a link to the page of the proof of a claim, or the reason why there is none."""
    if not claim.proof:
        return f"none: {plain(claim.no_proof, page)}"
    return link(f"{PROOFS}/{claim.proof}.md", page, f"<code>proofs/{claim.proof}.py</code>")


# Data


def codes(data: Mapping[str, object] | None) -> str:
    """Return data of an entry in a line."""
    pairs = (f"{name} = {value(found)}" for name, found in (data or {}).items())
    return "; ".join(f"<code>{escape(pair, quote=False)}</code>" for pair in pairs)


def table(data: Mapping[str, object]) -> str:
    """Return data of an entry as a table; a matrix in it is a table as well."""
    rows = (f'<tr><th scope="row">{escape(name)}</th><td>{_cell(found)}</td></tr>' for name, found in data.items())
    return f'<table class="data"><tbody>{"".join(rows)}</tbody></table>'


def value(found: object) -> str:
    """Return one value as a reader would write it."""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _cell(found: object) -> str:
    if isinstance(found, dict):
        return table(found)
    if found in ([], {}):
        return "none"
    if isinstance(found, list) and all(isinstance(row, list) for row in found):
        rows = ("".join(f"<td>{escape(value(one))}</td>" for one in row) for row in found)
        return f'<table class="data"><tbody>{"".join(f"<tr>{row}</tr>" for row in rows)}</tbody></table>'
    return escape(", ".join(map(value, found)) if isinstance(found, list) else value(found))


def heads(columns: Iterable[str]) -> str:
    """Return the heads of the columns of a table; the words are HTML."""
    return "".join(f'<th scope="col">{words}</th>' for words in columns)


def stacked(columns: tuple[str, ...], rows: str) -> str:
    """Return a table whose cells stand below each other on a phone."""
    body = f"<thead><tr>{heads(columns)}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
    return f'<div class="stacked">\n<table>\n{body}\n</table>\n</div>'


# Entries


@functools.cache
def meanings() -> Mapping[str, str]:
    """Return what each verdict means, as the text of the ledger has it.

    Raises
    ------
    SiteError
        The text has no row for one of them.
    """
    found = dict(_MEANING.findall((ROOT / "spec" / "ledger.md").read_text(encoding="utf-8")))
    missing = [verdict for verdict in entries.VERDICTS if verdict not in found]
    if missing:
        raise SiteError(f"spec/ledger.md does not say what {missing[0]} means")
    return {verdict: found[verdict] for verdict in entries.VERDICTS}


def badge(verdict: str) -> str:
    """Return a verdict as it is marked on all pages."""
    return f'<span class="verdict {verdict}">{verdict}</span>'


def judgements(found: Iterable[str], book: Ledger, page: str) -> str:
    """Return links to several claims, each with its verdict."""
    pairs = (f"{mentioned(name, page)} {badge(book.claim(name).verdict)}" for name in found)
    return " ".join(f'<span class="judged">{pair}</span>' for pair in pairs)


def paper_name(paper: str) -> str:
    """Return the short name of a paper: that of its protocol."""
    path = ROOT / "spec" / f"{paper}.md"
    return "This project" if paper == entries.OURS else heading(path) if path.is_file() else paper


def ordered_papers(book: Ledger) -> Sequence[str]:
    """Return the papers, and the results of this project last."""
    return sorted(book.papers, key=lambda paper: paper == entries.OURS)


def headline(claim: Claim, place: str = "") -> str:
    """Return the heading of an entry, which carries its permanent anchor; the place of the claim is HTML."""
    permanent = f'<a class="headerlink" href="#{claim.id}" title="Permanent link">&para;</a>'
    return f'<h3 id="{claim.id}">{claim.id} {place}{badge(claim.verdict)}{permanent}</h3>'


def quoted(claim: Claim) -> str:
    """Return the words of the paper as a quotation in HTML; empty if none are quoted."""
    return claim.quote and f"<q>{escape(claim.quote, quote=False)}</q>"


def fields(pairs: Mapping[str, str]) -> str:
    """Return the fields of an entry that are not empty, as a list of names and texts; the texts are HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in pairs.items() if text)}</dl>"
