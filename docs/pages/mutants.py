"""The pages of mutants: what kills how many, and for each its diff, its clauses and its evidence."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from docs.pages.common import MUTANTS, escaped, mention, relative, write
from secagg_spec import resources
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine
from secagg_spec.conformance.mutation import kills

_FOUND = {kills.VECTORS: "vectors", kills.DRAWN: "drawn cases only", kills.TEST: "a test", kills.NOTHING: "nothing"}
"""The words for what kills a mutant, in the order of the columns."""
_ROW = ("edits", "killed", "equivalent", "survive")
_SHOWN = 3
"""So many vectors, and so many checks, are named at most."""


_PARTS = {"conventions": {"numbers": ("MOD", "MDS", "SHM", "QNT")}}
"""The parts of protocols with too many mutants for one page, by the families of clauses; the others are a last part."""
_OTHERS = "messages"


def power() -> str:
    """Return how many mutants are killed by what, by protocol, as a table."""
    return "\n".join(_table("{}"))


def mutation() -> str:
    """Return how many drawn edits of each package the project's own tests notice, as it is stored."""
    stored = json.loads((resources.root("spec") / "mutation.json").read_text(encoding="utf-8"))
    about = f"Of the edits drawn with the seed {stored['seed']} at the commit `{stored['commit'][:12]}`:"
    lines = [
        "| package | edits | killed | equivalent | survive | mutation score |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for package, row in stored["packages"].items():
        score = row["killed"] / (row["edits"] - row["equivalent"])
        lines.append(f"| {package} | {' | '.join(str(row[name]) for name in _ROW)} | {score:.1%} |")
    return "\n".join([about, "", *lines])


def _table(named: str) -> Iterator[str]:
    counts = {protocol: Counter(bug.found for bug in bugs) for protocol, bugs in _by_protocol().items()}
    total = sum(counts.values(), Counter[str]())
    used = [kind for kind in _FOUND if total[kind]]
    yield f"| protocol | mutants | {' | '.join(f'by {_FOUND[kind]}' for kind in used)} |"
    yield "| --- " * (len(used) + 2) + "|"
    for protocol, found in (*((named.format(name), counts[name]) for name in counts), ("all", total)):
        yield f"| {protocol} | {found.total()} | {' | '.join(str(found[kind]) for kind in used)} |"
    pairs = sum(bool(bug.parts) for bug in kills.load().values())
    yield from ("", f"{pairs} of them are two mutants that hide each other.")


def _by_protocol() -> Mapping[str, Sequence[kills.Bug]]:
    groups: dict[str, list[kills.Bug]] = defaultdict(list)
    for bug in kills.load().values():
        groups[bug.protocol].append(bug)
    return dict(sorted(groups.items()))


def write_mutants(out: Path) -> None:
    """Write the page that counts the mutants, and for each protocol the page that shows them."""
    how = relative("explanation/power.md", MUTANTS)
    about = f"The reference with one known bug, or with two that hide each other, and what kills it. [How]({how})."
    folder = MUTANTS.removesuffix(".md")
    named = f"[{{0}}]({relative(folder, MUTANTS)}/{{0}}.md)"
    write(out / MUTANTS, "\n".join(["# Mutants\n", about, "", *_table(named)]))
    for protocol, bugs in _by_protocol().items():
        parts = _parts(protocol, bugs)
        for name, some in parts.items():
            page = f"{folder}/{name}.md"
            how = relative("explanation/power.md", page)
            head = f"Each of these {len(some)} is the reference with the edit that is shown. [What that is for]({how})."
            title = ", ".join([protocol, *name.removeprefix(protocol).removeprefix("-").split()])
            lines = [f"# Mutants: {title}", "", head, "", *(line for bug in some for line in _mutant(bug, page))]
            write(out / page, "\n".join(lines))
        if protocol not in parts:
            lines = [f"# Mutants: {protocol}", "", f"There are {len(bugs)}, on pages by what they break:", ""]
            lines += [f"- [{name}]({name}.md): {len(some)}, of {_families(some)}" for name, some in parts.items()]
            write(out / f"{folder}/{protocol}.md", "\n".join(lines))


def _parts(protocol: str, bugs: Sequence[kills.Bug]) -> Mapping[str, Sequence[kills.Bug]]:
    """Return the mutants of a protocol by the name of their page, each by the first clause that it breaks."""
    if protocol not in _PARTS:
        return {protocol: bugs}
    of = {family: name for name, families in _PARTS[protocol].items() for family in families}
    found = dict[str, list[kills.Bug]]()
    for bug in bugs:
        part = of.get(bug.clauses[0].partition("-")[0], _OTHERS)
        found.setdefault(f"{protocol}-{part}", []).append(bug)
    return dict(sorted(found.items()))


def _families(bugs: Sequence[kills.Bug]) -> str:
    return ", ".join(sorted({bug.clauses[0].partition("-")[0] for bug in bugs}))


def _mutant(bug: kills.Bug, page: str) -> Iterator[str]:
    """Yield the lines of one mutant."""
    yield from (f"## {bug.name}", "", f"{escaped(bug.effect)}.", "")
    if bug.parts:
        yield f"These are {' and '.join(f'`{part}`' for part in bug.parts)} at once, which hide each other."
    yield f"Breaks {', '.join(mention(clause, page) for clause in bug.clauses)}. {_killed(bug)}"
    yield from ("", "```diff", *engine.diff(mutants.load()[bug.name].all_edits).splitlines(), "```", "")


def _killed(bug: kills.Bug) -> str:
    """Return what kills a mutant, in words."""
    if bug.test:
        return f"Killed by the test `{bug.test.rpartition('::')[2]}`."
    checks = list(dict.fromkeys(case.check for case in bug.cases))
    named = [_few("vector", bug.vectors)] * bool(bug.vectors) + [_few("check", checks)] * bool(checks)
    some = "" if bug.seeds == kills.SEEDS else f", {bug.seeds} of which kill it"
    often = f" It takes {bug.calls} requests (median of {kills.SEEDS} seeds{some})." if bug.seeds else ""
    return f"Killed by {' and by '.join(named) or 'nothing'}.{often}"


def _few(kind: str, names: Sequence[str]) -> str:
    """Return the first names in a row, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the {kind}{'s' if len(names) > 1 else ''} {shown}{more}"
