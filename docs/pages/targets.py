"""The page of released implementations: what the kit found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from docs.pages.common import RELEASED, ROOT, SiteError, escaped, mention, relative, write
from docs.pages.frameworks import KINDS, kind, page, stored
from docs.pages.markup import link, stacked
from secagg_spec.conformance.reports import published, results
from secagg_spec.conformance.reports.report import LEGEND, MARKS
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.errors import UsageError
from secagg_spec.resources import clauses

SUMS = ("lightsecagg.round/sum", "secagg.average/mean", "secagg.sum/exact")
"""The checks whether a whole round gives the right sum."""
AT = "@"
"""Behind it stands the version in the name of a target that is another release of one."""


def write_released(out: Path) -> None:
    """Write the page that shows what released implementations gave: their clauses, and each failure.

    Raises
    ------
    SiteError
        The results of a target are not stored.
    """
    try:
        known = stored()
        others = published.load(ROOT / "docs" / "results")
    except UsageError as error:
        raise SiteError(str(error)) from None
    now = {name: result for name, result in known.items() if AT not in name}
    lines = [_released_head(now), _summary(now), *_matrix(now), *_releases(known), *_others(others)]
    write(out / RELEASED, "\n".join(lines))


def _releases(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a table for each target of which several releases were judged: which of them has which finding."""
    lines = []
    for name in dict.fromkeys(target.partition(AT)[0] for target in known if AT in target):
        found = [result for target, result in known.items() if target.partition(AT)[0] == name]
        found.sort(key=lambda result: str(result["released"]))
        checks = [{check["check"]: check for check in result["checks"]} for result in found]
        failed = sorted({check for each in checks for check in each if each[check]["failure"]})
        heads = [f"{escaped(result['implementation']['version'])} ({result['released']})" for result in found]
        rows = [f"| `{check}` | {' | '.join(_verdict(each.get(check)) for each in checks)} |" for check in failed]
        lines += [
            f"## {name}, release by release {{ #{name}-releases }}\n",
            (
                f"The adapter of {_linked([name])[0]} also judged other releases; the columns have their versions and "
                "days. A finding is there at the latest since the first release that shows it, and a later one that "
                "passes no longer has it.\n"
            ),
            '<div class="wide-matrix" markdown>\n',
            f"| check | {' | '.join(heads)} |",
            "| --- |" + " --- |" * len(heads),
            *rows,
            "\n</div>\n",
        ]
    return lines


def _verdict(check: Mapping[str, Any] | None) -> str:
    return "not asked" if check is None else "passes" if not check["failure"] else str(check["verdict"])


def _others(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section of reports that others publish (CNF-90)."""
    lines = [
        "## Published by others { #published }\n",
        (
            "These reports are not of this project: anybody may publish one, and nothing is run for it "
            "here. The digest is the SHA-256 of the file at the address. A report in which no check passed, or all "
            "that failed broke, is [withheld]"
            f"({relative('spec/conformance.md', RELEASED)}). How to have one listed stands in "
            f"[contributing]({relative('contributing.md', RELEASED)}).\n"
        ),
    ]
    if not entries:
        return [*lines, "There is none yet.\n"]
    heads = ["implementation", "kit", "text", "checks", "passed", *(head for _, head, _ in KINDS.values()), "report"]
    rows = [f"| {' | '.join(_entry(entry))} |" for entry in entries]
    table = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *rows]
    return [*lines, '<div class="wide-matrix" markdown>\n', *table, "\n</div>\n"]


def _entry(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"{escaped(escape(entry['name']))} {escaped(escape(entry['version']))}"
    yield escaped(escape(entry["kit"]))
    yield f"`{entry['text'][:12]}`"
    kinds = Counter[str]()
    for verdict, number in entry["verdicts"].items():
        kinds[kind({"verdict": verdict, "failure": verdict != "pass"})] += number
    yield from (str(kinds.total()), *(str(kinds[one]) for one in ("", *KINDS)))
    yield f'<a href="{escape(entry["url"])}">report</a> `{entry["sha256"]}`'


def _released_head(known: Mapping[str, Mapping[str, Any]]) -> str:
    return (
        f"# Released implementations\n\n{in_words(known)}\n\n"
        "This is what the kit found in software that others released, each in a pinned version, behind an adapter of "
        "this project that runs in an environment of its own. The results are stored in `docs/results`; `make targets` "
        "judges all of them again. Each number here counts checks of the kit and test vectors, in each configuration "
        f"anew; the [front page]({relative('index.md', RELEASED)}) and the pages of the frameworks count findings, "
        f"where one reason counts once. A failure is one against [the text]({relative('spec/adapter.md', RELEASED)}), "
        "which these releases never promised to keep. Each has an entry with its reason, and a run fails when a "
        "release no longer fails so.\n"
    )


def in_words(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how the released frameworks fare, from their results."""
    checks = [check for result in known.values() for check in result["checks"]]
    kinds = Counter(_kinds(checks))
    clean = [name for name, result in known.items() if not any(_kinds(result["checks"]))]
    shown = [f"in {kinds[one]} {words}" for one, (*_, words) in KINDS.items() if kinds[one]]
    return (
        f"**How do real frameworks fare?** {_listed(_frameworks(known))} were asked in {len(known)} configurations. "
        f"{_passing(clean)} Of {len(checks)} checks "
        f"{kinds['']} pass; {_listed(shown)}. {_sums(known)}"
    )


def _passing(clean: Sequence[str]) -> str:
    """Say which frameworks pass all that they were asked."""
    if not clean:
        return "None of them passes every check that fits."
    return f"Every check that fits is passed by {_listed(_linked(clean))}."


def _sums(known: Mapping[str, Mapping[str, Any]]) -> str:
    right, wrong = ([name for name, result in known.items() if sums_right(result) is kept] for kept in (True, False))
    return (
        f"Of these configurations {len(right) + len(wrong)} run whole rounds: the check of their sum passes with "
        f"{_listed(_linked(right)) or 'none'}, and fails with {_listed(_linked(wrong)) or 'none'}. "
        "What else goes wrong, and what to do, stands on the page of each."
    )


def _frameworks(known: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    about = (result["implementation"] for result in known.values())
    return [*dict.fromkeys(f"{escaped(one['name'].split()[0])} {escaped(one['version'])}" for one in about)]


def _listed(words: Iterable[str]) -> str:
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _linked(names: Iterable[str]) -> Sequence[str]:
    return [f"[{name}]({relative(page(results.framework(name)), RELEASED)})" for name in names]


def _kinds(checks: Iterable[Mapping[str, Any]]) -> Sequence[str]:
    return [kind(check) for check in checks]


def sums_right(result: Mapping[str, Any]) -> bool | None:
    """Return whether the check of the sum of a round passes, None where no whole round was asked for."""
    found = [not check["failure"] for check in result["checks"] if check["check"] in SUMS]
    return all(found) if found else None


def asks_for_secrets(result: Mapping[str, Any]) -> bool:
    """Return whether any check that ran could find that a secret is told."""
    return any(check["check"].startswith("privacy/") or check["verdict"] == "leaked" for check in result["checks"])


def _summary(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of targets by kinds of failures."""
    heads = ["checks", "passed", *(head for _, head, _ in KINDS.values()), "sum of a round"]
    rows = "\n".join(_summary_row(name, result, heads) for name, result in known.items())
    return f'<div class="target-list">\n{stacked(("configuration", *heads), rows)}\n</div>\n'


def _summary_row(name: str, result: Mapping[str, Any], heads: Sequence[str]) -> str:
    kinds = Counter(_kinds(result["checks"]))
    sums = {True: "passes", False: "fails", None: "not asked"}[sums_right(result)]
    counts = {one: str(kinds[one]) for one in KINDS}
    if not asks_for_secrets(result):
        counts["leaked"] = "not asked"
    shown = (str(len(result["checks"])), str(kinds[""]), *counts.values(), sums)
    cells = (f'<td data-of="{head}">{cell}</td>' for head, cell in zip(heads, shown, strict=True))
    named = link(page(results.framework(name)), RELEASED, name)
    about = f'{named}<span class="place">{escape(TARGETS[name].about)}</span>'
    return f'<tr><th scope="row">{about}</th>{"".join(cells)}</tr>'


def _matrix(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table of clauses by target, with the marks that the command shows."""
    rows = [clause for clause in clauses() if any(clause in result["clauses"] for result in known.values())]
    return [
        "## Clauses\n",
        f"{LEGEND.replace('   ', '; ')}\n",
        '<div class="wide-matrix" markdown>\n',
        "| clause | " + " | ".join(_linked(known)) + " |",
        "| --- |" + " :-: |" * len(known),
        *(
            f"| {mention(clause, RELEASED)} | "
            + " | ".join(_mark(result["clauses"].get(clause, results.NOT_OFFERED)) for result in known.values())
            + " |"
            for clause in rows
        ),
        "\n</div>\n",
    ]


def _mark(words: str) -> str:
    plain = words.removesuffix(" (composed)")
    return MARKS[plain] + ("+" if plain != words else "")
