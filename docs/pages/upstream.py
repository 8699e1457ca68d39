"""What a framework could change: a repair for each reason for which a check fails in its newest releases."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from docs.pages.common import SiteError, escaped, mention, relative
from docs.pages.frameworks import findings, kind, page, stored

PAGE = "explanation/flower-upstream.md"
WORDS = Path(__file__).with_suffix(".toml")
RELEASES = ("flower", "flower@1.42.0")
"""The targets whose failures the page is about."""


def flower() -> str:
    """Return, function by function, what fails, how Flower could repair it, and what stands in `secagg_spec.flower`.

    Raises
    ------
    SiteError
        A reason has no row in upstream.toml or two, or a row is for a check that does not fail.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for target in RELEASES:
        for check in stored()[target]["checks"]:
            if kind(check):
                one = found.setdefault(check["expected_failure"], {"checks": [], "clauses": [], "releases": []})
                one["checks"].append(check["check"])
                one["clauses"] += [clause for clause in check["clauses"] if clause not in one["clauses"]]
                release = str(stored()[target]["implementation"]["version"])
                one["releases"] += [release] if release not in one["releases"] else []
    rows = tomllib.loads(WORDS.read_text(encoding="utf-8"))["repair"]
    reasons = [next((why for why, one in found.items() if row["check"] in one["checks"]), "") for row in rows]
    spare = [row["check"] for row, reason in zip(rows, reasons, strict=True) if reasons.count(reason) > 1 or not reason]
    apart = [*spare, *({*found} - {*reasons})]
    if apart:
        raise SiteError(f"docs/pages/upstream.toml and docs/results differ in {'; '.join(sorted(apart))}")
    return "\n".join(_rows(rows, reasons, found))


def _rows(rows: list[dict[str, str]], reasons: list[str], found: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    anchors = {check: one.anchor for one in reversed(findings("flower")) for check in one.checks}
    for where in dict.fromkeys(row["where"] for row in rows):
        yield f"### {', '.join(f'`{name}`' for name in re.split(', ', where))}\n"
        for row, reason in zip(rows, reasons, strict=True):
            if row["where"] == where:
                clauses = ", ".join(mention(clause, PAGE) for clause in found[reason]["clauses"])
                seen = f"{relative(page('flower'), PAGE)}#{anchors[row['check']]}"
                yield f"- [{escaped(reason)}]({seen}) ({clauses}; in {' and '.join(found[reason]['releases'])})"
                yield f"    - Repair: {row['repair']}"
                yield f"    - `secagg_spec.flower`: {row['here']}"
        yield ""
