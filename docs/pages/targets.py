"""The page of released implementations: what the kit found in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.pages.common import RELEASED, ROOT, SiteError, count, escaped, mention, relative, write
from secagg_spec.conformance.plain import clip
from secagg_spec.conformance.report import LEGEND, MARKS, describe
from secagg_spec.conformance.targets import TARGETS, results
from secagg_spec.conformance.wire import RawLine, Request, UsageError
from secagg_spec.resources import clauses


def write_released(out: Path) -> None:
    """Write the page that shows what released implementations gave: their clauses, and each failure.

    Raises
    ------
    SiteError
        The results of a target are not stored.
    """
    try:
        known = results.load(ROOT / "docs" / "results")
    except UsageError as error:
        raise SiteError(str(error)) from None
    lines = [_released_head(), *_matrix(known)]
    for result in known.values():
        lines += _released(result)
    write(out / RELEASED, "\n".join(lines))


def _released_head() -> str:
    return (
        "# Released implementations\n\n"
        "What the kit found in software that others released, each in a pinned version, behind an adapter of this "
        "project that runs in an environment of its own. The results are stored in `docs/results`; `make targets` "
        f"judges all of them again. A failure is one against [the text]({relative('spec/adapter.md', RELEASED)}), "
        "which these releases never promised to keep. Each has an entry with its reason, and a run fails when a "
        "release no longer fails so.\n"
    )


def _matrix(known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table of clauses by target, with the marks that the command shows."""
    rows = [clause for clause in clauses() if any(clause in result["clauses"] for result in known.values())]
    return [
        "## Clauses\n",
        f"{LEGEND.replace('   ', '; ')}\n",
        '<div class="wide-matrix" markdown>\n',
        "| clause | " + " | ".join(f"[{name}](#{name})" for name in known) + " |",
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


def _released(result: Mapping[str, Any]) -> list[str]:
    """Return the section of one target: what it declares, and what it fails."""
    about, checks = result["implementation"], result["checks"]
    failed = [check for check in checks if check["failure"]]
    operations = [
        f"`{name}`" + ("+" if declared.get("composed") else "") for name, declared in about["operations"].items()
    ]
    policy = [f"`{name}` is `{value}`" for name, value in about["policy"].items()]
    return [
        f"## {result['target']} {{ #{result['target']} }}\n",
        (
            f"{escaped(TARGETS[result['target']].about)}. Of the {len(checks)} checks and test vectors that fit what "
            f"its adapter declares, {len(checks) - len(failed)} pass.\n"
        ),
        f"- version: {escaped(about['version'])}",
        f"- declares: {', '.join(operations)}" + (f"; {', '.join(policy)}" if policy else ""),
        "",
        f'??? note "{count(failed, "finding")}"',
        *(f"    {line}".rstrip() for check in failed for line in _finding(check)),
        "",
    ]


def _finding(check: Mapping[str, Any]) -> list[str]:
    """Return one failure: its check and clauses, what happens in the smallest case, and why."""
    failure, known = check["failure"], clauses()
    case = describe(_request(failure["requests"][-1])) if failure["requests"] else ""
    return [
        "",
        f"`{check['check']}`: {check['verdict']}",
        "",
        *(f"- {mention(clause, RELEASED)}: {known[clause]}" for clause in check["clauses"]),
        f"- what happens: {escaped(clip(failure['message'], 300))}",
        *([f"- smallest case: ``{case}``"] if case else []),
        f"- why: {escaped(check['expected_failure'])}",
    ]


def _request(stored: Mapping[str, Any] | str) -> Request:
    if isinstance(stored, str):
        return RawLine(data=stored.encode())
    return Request(stored["op"], stored["params"], stored.get("rand"))
