"""The page on which a recorded round can be watched step by step, and the pictures of message flows.

The rounds are run when the site is built. Without a script the page shows one run of each protocol as text; the script
makes a stepper of it, for all runs, from the data that is written beside it.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from docs.pages.common import clause_pages
from docs.pages.markup import href
from secagg_spec.protocols.steps import AUTHORITY, SERVER
from secagg_spec.recording import PROTOCOLS, record
from secagg_spec.recording.chart import chart
from secagg_spec.recording.knowledge import Knowledge
from secagg_spec.recording.record import Addition, Moment, Recording, Term
from secagg_spec.simulate.narration import counted, users_in_words

PAGE = "tutorials/watch-a-round.md"
DATA = "assets/watch-data.js"
PLACE = "<!-- rounds -->"
TEXTS = Path(__file__).with_suffix(".toml")
_ROUND = re.compile(r"\bround \d+")
ENDED = "Too few are left: there is no sum"


def write(out: Path) -> None:
    """Put the recorded rounds into the page, and write the data of all runs for its script."""
    page = out / PAGE
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(PLACE, "\n".join(_sections())), encoding="utf-8")
    (out / DATA).write_text(f"window.watchData = {json.dumps(data(), separators=(',', ':'))};\n", encoding="utf-8")


def flows(page: str) -> str:
    """Return the pictures of the message flow of the protocols of a page of the text, such as ``secagg.md``."""
    found = [protocol for protocol, entry in texts().items() if entry["page"] == page]
    return "\n".join(flow(protocol) for protocol in found)


def flow(protocol: str) -> str:
    """Return the picture of the message flow of a protocol, in a round in which nobody drops out, as HTML."""
    recording = recordings()[protocol]["nobody"]
    title = f"Messages of {span(recording)} of {texts()[protocol]['title']} among {recording.users} users"
    return f'<figure class="flow">\n{chart(recording, title)}\n<figcaption>{escape(title)}.</figcaption>\n</figure>'


def span(recording: Recording) -> str:
    """Say how long a recorded run is: an epoch of BASA, else so many rounds as its moments name."""
    if recording.protocol == "basa":
        return "an epoch"
    rounds = len({found.group() for moment in recording.moments for found in _ROUND.finditer(moment.title)})
    return f"{rounds} rounds" if rounds > 1 else "a round"


@functools.cache
def recordings() -> Mapping[str, Mapping[str, Recording]]:
    """Return all recorded runs."""
    return {protocol: {run: record(protocol, run) for run in runs} for protocol, runs in PROTOCOLS.items()}


@functools.cache
def texts() -> Mapping[str, Any]:
    """Return what is said of each protocol, run and moment."""
    return tomllib.loads(TEXTS.read_text(encoding="utf-8"))


def said(protocol: str, moment: Moment) -> tuple[str, str]:
    """Return the heading and the text of a moment."""
    entry = texts()[protocol]["moments"][moment.key]
    heading = ENDED if "ended" in moment.happened else entry["heading"]
    return heading, next((entry[name] for name in moment.happened if name in entry), entry["text"])


def _address(clause: str) -> str:
    return href(f"{clause_pages()[clause]}#{clause}", PAGE)


# The data of the script.


def data() -> list[dict[str, Any]]:
    """Return all that the script needs, protocol by protocol."""
    return [_protocol(protocol, entry) for protocol, entry in texts().items()]


def _protocol(protocol: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    runs = [{"title": entry["runs"][run], **_short(made.data())} for run, made in recordings()[protocol].items()]
    moments = {
        key: {**one, "clauses": [[clause, _address(clause)] for clause in one["clauses"]]}
        for key, one in entry["moments"].items()
    }
    page = href(f"spec/{entry['page']}", PAGE)
    return {
        "id": protocol,
        "title": entry["title"],
        "page": page,
        "names": entry["names"],
        "ended": ENDED,
        "texts": moments,
        "runs": runs,
    }


def _short(value: Any) -> Any:
    """Return a recording with -1 for the server and -2 for the authority."""
    if isinstance(value, Mapping):
        return {name: _short(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return {SERVER: -1, AUTHORITY: -2}.get(value, value) if isinstance(value, int) else value


# The page without a script.


def _sections() -> Iterator[str]:
    for protocol, entry in texts().items():
        recording = recordings()[protocol]["nobody"]
        yield f'<section class="watch-static" id="watch-{protocol}">'
        yield f"<h3>{escape(entry['title'])}</h3>"
        yield f"<p>{escape(entry['names'])} {escape(_parameters(recording))}</p>"
        yield f"<p>The updates: {escape(_vectors(recording.inputs))}.</p>"
        yield flow(protocol)
        yield "<ol>"
        yield from (_item(protocol, moment) for moment in recording.moments)
        yield "</ol>"
        yield f"<p><strong>The result: {escape(_vectors(recording.summed))}.</strong></p>"
        yield "</section>"


def _parameters(recording: Recording) -> str:
    named = ", ".join(f"{name} = {value}" for name, value in recording.parameters.items())
    return f"{counted(recording.users, 'user')}; {named}."


def _vectors(terms: Sequence[Term]) -> str:
    return ", ".join(f"{term.name} = {_vector(term)}" for term in terms)


def _vector(term: Term) -> str:
    return f"({', '.join(map(str, term.vector))})"


def _item(protocol: str, moment: Moment) -> str:
    heading, text = said(protocol, moment)
    clauses: Sequence[str] = texts()[protocol]["moments"][moment.key]["clauses"]
    links = ", ".join(f'<a href="{_address(clause)}">{clause}</a>' for clause in clauses)
    parts = [f"<strong>{escape(heading)}.</strong> {escape(text)} ({links})", *map(escape, _sent(moment))]
    parts.append(escape(knowledge(moment.server, "The server")))
    return "<li>" + "".join(f"<p>{line}</p>" for line in parts) + _sums(moment) + "</li>"


def _sums(moment: Moment) -> str:
    sums = "<br>".join(escape(_sum(addition)) for addition in moment.additions)
    return f"<details><summary>Add it up</summary>{sums}</details>" if sums else ""


def _sent(moment: Moment) -> Iterator[str]:
    parcels = [parcel for sending in moment.sendings for parcel in sending.parcels]
    sent = [f"{p.kind} ({counted(len(p.routes), 'message')}, {counted(p.bytes, 'byte')})" for p in parcels]
    if sent:
        yield f"Sent: {', '.join(sent)}."


def knowledge(known: Knowledge, who: str) -> str:
    """Say what is known, and of whom nothing is known alone."""
    if not known.dimension:
        return f"{who} knows nothing of any update yet."
    alone = f"It cannot know anything of the update of {users_in_words(known.hidden)} by itself."
    return f"{who} knows {'; '.join(known.functionals)}: {known.dimension} of {known.unknown} numbers. {alone}"


def _sum(addition: Addition) -> str:
    terms = " ".join(_term(term, at == 0) for at, term in enumerate(addition.terms))
    about = f", {addition.about}" if addition.about else ""
    return f"{terms} = {addition.result.name} {_vector(addition.result)} modulo {addition.modulus}{about}"


def _term(term: Term, first: bool) -> str:
    sign = "- " if term.factor < 0 else "" if first else "+ "
    factor = f"{abs(term.factor)}·" if abs(term.factor) > 1 else ""
    return f"{sign}{factor}{term.name} {_vector(term)}"
