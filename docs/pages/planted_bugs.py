"""The page of planted bugs, and the table of what finds them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.pages.common import PLANTED, escaped, mention, relative, write
from secagg_spec.conformance import kills

_FOUND = {kills.VECTORS: "vectors", kills.DRAWN: "drawn cases only", kills.TEST: "a test", kills.NOTHING: "nothing"}
"""The words for what finds a planted bug, in the order of the columns."""


def power() -> str:
    """Return how many planted bugs are found by what, by protocol, as a table."""
    counts = {protocol: Counter(bug.found for bug in bugs) for protocol, bugs in _by_protocol().items()}
    total = sum(counts.values(), Counter[str]())
    used = [kind for kind in _FOUND if total[kind]]
    lines = [
        f"| protocol | bugs | {' | '.join(f'by {_FOUND[kind]}' for kind in used)} |",
        "| --- " * (len(used) + 2) + "|",
    ]
    for protocol, found in (*counts.items(), ("all", total)):
        lines.append(f"| {protocol} | {found.total()} | {' | '.join(str(found[kind]) for kind in used)} |")
    pairs = sum(bool(bug.parts) for bug in kills.load().values())
    return "\n".join([*lines, "", f"{pairs} of them are two bugs that hide each other."])


def _by_protocol() -> Mapping[str, Sequence[kills.Bug]]:
    groups: dict[str, list[kills.Bug]] = defaultdict(list)
    for bug in kills.load().values():
        groups[bug.protocol].append(bug)
    return dict(sorted(groups.items()))


def write_planted_bugs(out: Path) -> None:
    """Write the page that lists the planted bugs, by protocol, with what finds each."""
    how = relative("explanation/power.md", PLANTED)
    lines = [
        "# Planted bugs\n",
        f"The reference with one known fault, or with two that hide each other, and what finds it. [How]({how}).",
        "",
    ]
    for protocol, bugs in _by_protocol().items():
        lines += [f"## {protocol}", "", "| bug | clauses | kind | effect | found by |", "| --- " * 5 + "|"]
        lines += [_planted_row(bug) for bug in bugs] + [""]
    write(out / PLANTED, "\n".join(lines))


def _planted_row(bug: kills.Bug) -> str:
    clauses_of = ", ".join(mention(clause, PLANTED) for clause in bug.clauses)
    cases = f"`{bug.cases[0].check}`, {bug.calls} requests (median)" if bug.cases else ""
    found = {
        kills.VECTORS: ", ".join(f"`{id}`" for id in bug.vectors[:3]) + (" …" if len(bug.vectors) > 3 else ""),
        kills.DRAWN: cases,
        kills.TEST: f"`{bug.test.rpartition('::')[2]}`",
        kills.NOTHING: "nothing",
    }[bug.found]
    parts = f" ({', '.join(f'`{part}`' for part in bug.parts)})" if bug.parts else ""
    return f"| `{bug.name}`{parts} | {clauses_of} | {bug.kind} | {escaped(bug.effect)} | {found} |"
