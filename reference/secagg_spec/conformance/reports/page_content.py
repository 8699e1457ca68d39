"""The content of a report page, as plain data for its template."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance.adapter.plain import counted, shown
from secagg_spec.conformance.reports.page_difference import window
from secagg_spec.conformance.reports.report import fewer, in_words, known_failures, plain_sentence
from secagg_spec.conformance.running import chart
from secagg_spec.conformance.running.runner import BROKEN
from secagg_spec.conformance.running.suite import PREFIX


@dataclass(frozen=True)
class Mark:
    """A mark of the matrix: its symbol, the class that gives its colour, and its meaning."""

    sign: str
    style: str
    says: str


MARKS = {
    "fails": Mark("✕", "fails", "fails"),
    "breaks": Mark("!", "fails", "breaks: no answer, or none that counts"),
    "not run": Mark("?", "unknown", "not run"),
    "fails as expected": Mark("x", "expected", "fails as expected"),
    "pass by relation": Mark("◐", "passes", "passes, by relation"),
    "pass": Mark("●", "passes", "passes, bit for bit"),
    "not offered": Mark("·", "none", "not offered"),
}
"""The marks, with the worst first."""
_COMPOSED = " (composed)"


def page(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that the template needs."""
    targets = [_target(number, target, document) for number, target in enumerate(document["targets"])]
    judged = [target for target in targets if target["implementation"]]
    return {
        "header": document["header"],
        "footer": document.get("footer"),
        "targets": targets,
        "fewer": _fewer(document, targets, named=False).capitalize(),
        "judged": judged,
        "groups": list(_groups([target["cells"] for target in judged])),
        "marks": [mark for name, mark in MARKS.items() if name != "not offered"],
        "not_offered": MARKS["not offered"],
        "verdict": _verdict(targets, document),
    }


def _verdict(targets: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> tuple[str, str]:
    """Return the verdict on the run: a word that selects its colour, and a sentence."""
    if "footer" not in document:
        return "fails", "This run was ended before it was complete"
    if any(target["unusable"] for target in targets):
        return "fails", "An adapter could not be used"
    failed = sum(target["failed"] for target in targets)
    if failed:
        return "fails", f"{failed} unexpected failure{'s' if failed > 1 else ''}"
    if stale := sum(len(target["stale"]) for target in targets):
        return "fails", counted(stale, "expectation is stale", "expectations are stale")
    if any(target["counts"]["not run"] for target in targets):
        return "unknown", "Some checks were not run"
    known = known_failures(sum(target["counts"]["fails as expected"] for target in targets))
    ran = any(target["cases"] for target in targets)
    green = ("passes", "No unexpected failure") if ran else ("unknown", "Nothing ran")
    return ("expected", known) if known else green


def _target(number: int, target: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    declared = (target["implementation"] or {}).get("operations", {})
    checks = [_check(f"t{number}-{at}", check, declared) for at, check in enumerate(target["checks"])]
    counts = {name: sum(check["mark"] is mark for check in checks) for name, mark in MARKS.items()}
    by_id = {check["check"]: check for check in checks}
    findings = [{**found, "alike": [by_id[id] for id in found["checks"]]} for found in target["findings"]]
    return {
        **target,
        "id": f"t{number}",
        "cells": {clause: _cell(words) for clause, words in target["clauses"].items()},
        "counts": counts,
        "failed": counts["fails"] + counts["breaks"],
        "passed": counts["pass"] + counts["pass by relation"],
        "vectors": sum(check["check"].startswith(PREFIX) and check["mark"].style == "passes" for check in checks),
        "cases": sum(check["cases"] for check in checks),
        "fewer": _fewer(document, [target], named=True),
        "unchecked": sum(check["verdict"] == "pass" and not check["reason_checked"] for check in checks),
        "findings": findings,
        "failures": sum(len(found["alike"]) for found in findings),
        "not_run": [check for check in checks if check["verdict"] == "not_run"],
        "by_clause": _by_clause(checks),
        "seconds": round(sum(document["timing"].get(target["target"], {}).values())),
    }


def _fewer(document: Mapping[str, Any], targets: Iterable[Mapping[str, Any]], *, named: bool) -> str:
    """Return what `fewer` says of the checks of some targets."""
    checks = ((one["check"], one["cases"], one.get("fewer") or "") for target in targets for one in target["checks"])
    return fewer(document["header"]["settings"]["cases"], checks, named=named)


def _cell(words: str) -> dict[str, Any]:
    return {"mark": MARKS[words.removesuffix(_COMPOSED)], "composed": words.endswith(_COMPOSED)}


def _by_clause(checks: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the checks that ran, by the clauses that they decide."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for check in checks:
        if check["verdict"] != "unsupported":
            for clause in check["clauses"]:
                found.setdefault(clause, []).append(check)
    return found


def _check(id: str, check: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    failure = check["failure"]
    return {**check, "id": id, "mark": _mark(check), "failure": failure and _failure(check, failure, declared)}


def _mark(check: Mapping[str, Any]) -> Mark:
    if check["verdict"] in ("pass", "unsupported"):
        words = "pass by relation" if check["by_relation"] else "pass"
        return MARKS["not offered" if check["verdict"] == "unsupported" else words]
    if check["verdict"] == "not_run":
        return MARKS["not run"]
    if check["expected_failure"]:
        return MARKS["fails as expected"]
    return MARKS["breaks" if check["verdict"] in BROKEN else "fails"]


def _failure(check: Mapping[str, Any], failure: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    sentences = resources.clauses()
    asked = failure["requests"], failure["answers"]
    exchanges = list(zip(*asked, strict=True))
    last = exchanges[failure["at"][0] if failure["at"] else chart.fault(exchanges)] if exchanges else (None, None)
    params = last[0]["params"] if isinstance(last[0], dict) else None
    format = params.get("format") if isinstance(params, dict) else None
    return {
        **failure,
        "message": shown(failure["message"]),
        "sentences": [(clause, plain_sentence(sentences.get(clause, ""))) for clause in check["clauses"]],
        "case": in_words(*asked, failure["at"], declared)[0] if exchanges else "",
        "request": last[0],
        "answer": last[1],
        "window": window(last[1].get("result", {}), failure["expected"], format) if isinstance(last[1], dict) else None,
        "rows": chart.rows(exchanges, failure["at"]),
    }


def _groups(columns: Sequence[Mapping[str, Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the matrix by page of the text; pages whose clauses do not occur in the report are left out."""
    for name, clauses in resources.clauses_by_page().items():
        known = [clause for clause in clauses if any(clause in cells for cells in columns)]
        rows = [_row(clause, clauses[clause], columns) for clause in known]
        if rows:
            offered = sum(row["style"] != "none" for row in rows)
            yield {"title": name, "rows": rows, "offered": offered, "anchor": name.lower().replace(" ", "-")}


def _row(clause: str, sentence: str, columns: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    none = {"mark": MARKS["not offered"], "composed": False}
    cells = [cells.get(clause, none) for cells in columns]
    worst = next(mark for mark in MARKS.values() if any(cell["mark"] is mark for cell in cells))
    return {"clause": clause, "sentence": plain_sentence(sentence), "cells": cells, "style": worst.style}
