"""The command ``secagg-spec explain``: the meaning of an id of the text, the kit or the ledger, and why it matters.

What a clause says is printed at once. No check is loaded: what is needed of them is stored (`index`).
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.plain import for_encoding
from secagg_spec.errors import UsageError

_WIDTH, _HEAD, _NEAR, _MOST = 100, 15, 6, 500
_CLAUSE = re.compile(r"^- \[([A-Z]+-\d\d)\]", re.MULTILINE)
_HEADING = re.compile(r"^#{2,4} (.+)$", re.MULTILINE)
Lines = Iterator[tuple[str, str]]
"""What is known about an id: labels and their values."""


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    asked = " ".join(given.words)
    if len(asked) > _MOST:
        raise UsageError(f"{len(asked)} characters are asked for; an id and what is searched have {_MOST} at most")
    if (clause := asked.upper()) in resources.clauses():
        first = list(head(clause))
        _print(_block("clause", clause, iter(first)))
        rest = itertools.islice(_meanings().KINDS["clause"](clause), len(first), None)
        _print(_lines(rest if given.all else _shorter(rest)))
    elif given.all:
        raise UsageError(f"--all names the tests of a clause, and {asked!r} is none")
    elif not _explained(asked):
        finding = import_module("secagg_spec.commands.finding")
        words = " " in asked or asked.isalpha()
        alike = [] if words else _alike(asked, _meanings().names())
        if not alike and (best := finding.hits(asked) if words else finding.verbatim(asked)):
            _print(finding.found(asked, best))
        else:
            _explained(spelled(asked, _meanings().names()))
    return 0


def _explained(name: str) -> bool:
    """Print what is known of an id; return whether there is one."""
    if (found := _meanings().explained(name)) is None:
        return False
    kind, lines = found
    _print(_block(kind, name, lines))
    return True


def _meanings() -> Any:
    """Return the module that knows all ids, which is loaded once a clause is printed."""
    return import_module("secagg_spec.commands.meanings")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(for_encoding(line, sys.stdout.encoding or "utf-8"), flush=True)


def head(clause: str) -> Lines:
    """Yield what is known of a clause from the text alone."""
    yield "says", resources.clauses()[clause]
    yield "is in", place(clause)


def _shorter(lines: Lines) -> Lines:
    """Yield the lines of a clause with the number of its tests in place of their names."""
    for word, said in lines:
        many = said.count("\n") + 1
        tests = word == "tests" and said.startswith("tests/")
        yield word, f"{many} test{'s' * (many > 1)} (--all names them)" if tests else said


def spelled(id: str, ids: Sequence[str]) -> str:
    """Return an id in its own spelling; if only one id has these letters, case does not matter.

    Raises
    ------
    UsageError
        There is no such id.
    """
    alike = _alike(id, ids)
    if len(alike) == 1:
        return alike[0]
    raise UsageError(f"there is no {id!r}; {nearest(id, ids)}")


def _alike(id: str, ids: Sequence[str]) -> list[str]:
    """Return the ids that have the letters of one, in either case."""
    return [name for name in ids if name.lower() == id.lower()]


def nearest(id: str, ids: Iterable[str]) -> str:
    """Return a message that names the ids closest to an unknown id."""
    lower = {name.lower(): name for name in ids}
    padded = re.sub(r"-(\d)$", r"-0\1", id.lower())
    close = sorted(difflib.get_close_matches(id.lower(), lower, n=_NEAR, cutoff=0.6), key=lambda name: name != padded)
    within = [name for name in lower if len(id) > 2 and id.lower() in name and name not in close]
    near = [lower[name] for name in [*close, *sorted(within, key=len)]][:_NEAR]
    others = f" Or {', '.join(near[1:])}?" if near[1:] else ""
    return f"did you mean {near[0]}?{others}" if near else "see secagg-spec explain --help for the kinds of ids"


def _block(kind: str, name: str, lines: Lines) -> Iterator[str]:
    yield f"{name}   {kind}"
    yield from _lines(lines)


def _lines(lines: Lines) -> Iterator[str]:
    for word, said in lines:
        if said:
            head, rest = f"  {word:<{_HEAD - 2}}", " " * _HEAD
            if "\n" in said:
                yield f"{head}{said.splitlines()[0]}"
                yield from (f"{rest}{line}" for line in said.splitlines()[1:])
                continue
            yield from textwrap.wrap(
                said,
                _WIDTH,
                initial_indent=head,
                subsequent_indent=rest,
                break_long_words=False,
                break_on_hyphens=False,
            )


@cache
def _page(name: str) -> str:
    return (resources.root("spec") / name).read_text(encoding="utf-8")


def place(clause: str) -> str:
    """Return the place of a clause: the page with the heading's anchor, and the heading."""
    for page in resources.PAGES:
        text = _page(page)
        found = next((match for match in _CLAUSE.finditer(text) if match[1] == clause), None)
        if found:
            headings = _HEADING.findall(text[: found.start()])
            if not headings:
                return f"spec/{page}"
            anchor = re.sub(r"[^\w -]", "", headings[-1].lower()).strip().replace(" ", "-")
            return f"spec/{page}#{anchor} ({headings[-1]})"
    raise KeyError(clause)
