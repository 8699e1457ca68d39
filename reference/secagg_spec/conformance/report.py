"""What a run says: a table of clauses by implementation, each failure with its smallest case, and a JSON report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from secagg_spec import __version__
from secagg_spec.conformance import replay
from secagg_spec.conformance.capabilities import HELLO, Capabilities
from secagg_spec.conformance.expectations import Judged
from secagg_spec.conformance.runner import BROKEN, Failure
from secagg_spec.conformance.wire import Request, unpack

EXACT, RELATION, EXPECTED, FAILED, BROKE, NOT_RUN, NONE = "●", "◐", "x", "✕", "!", "?", "·"
LEGEND = (
    f"{EXACT} passes, bit for bit   {RELATION} passes, by relation   {EXPECTED} fails as expected   "
    f"{FAILED} fails   {BROKE} breaks   {NOT_RUN} not run   {NONE} not offered   "
    "+ composed of several functions"
)
_WORST_FIRST = (BROKE, FAILED, NOT_RUN, EXPECTED, RELATION, EXACT, NONE)


@dataclass
class TargetReport:
    """One implementation's results, or the reason why there are none."""

    name: str
    caps: Capabilities | None = None
    judged: list[Judged] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    absent: str = ""
    unusable: str = ""
    repros: dict[str, Path] = field(default_factory=dict)
    command: str = "./adapter"

    @property
    def title(self) -> str:
        """The name and version that the adapter gave, or the target's name."""
        return f"{self.caps.name} {self.caps.version}" if self.caps else self.name

    def count(self, mark: str) -> int:
        """Return how many checks have this mark."""
        return sum(_mark(judged) == mark for judged in self.judged)

    @property
    def exit_code(self) -> int:
        """Return 0, 1, 3 or 4, as spec/adapter.md, section 6, says."""
        if self.unusable or any(judged.outcome.verdict == "not_run" for judged in self.judged):
            return 3
        if self.stale or any(judged.unexpected for judged in self.judged):
            return 1
        return 0 if any(judged.outcome.cases for judged in self.judged) else 4


def clause_cells(report: TargetReport) -> dict[str, str]:
    """Return the mark of each clause: the worst of its checks, and "+" where one of these is composed."""
    checks: dict[str, list[Judged]] = {}
    for judged in report.judged:
        for clause in judged.outcome.check.clauses:
            checks.setdefault(clause, []).append(judged)
    return {clause: _cell(report, found) for clause, found in checks.items()}


def _cell(report: TargetReport, checks: Sequence[Judged]) -> str:
    worst = next(mark for mark in _WORST_FIRST if any(_mark(judged) == mark for judged in checks))
    decisive = [judged for judged in checks if _mark(judged) == worst]
    composed = worst != NONE and any(_composed(report, judged) for judged in decisive)
    return worst + ("+" if composed else "")


def _composed(report: TargetReport, judged: Judged) -> bool:
    return report.caps is not None and any(report.caps.composed(name) for name in judged.outcome.check.operations)


def table(reports: Sequence[TargetReport], clauses: Mapping[str, str]) -> str:
    """Return the table of clauses by implementation; `clauses` gives the sentences, in the order of the text."""
    columns = [report for report in reports if report.caps]
    cells = [clause_cells(report) for report in columns]
    width = max((len(report.name) for report in columns), default=0)
    shown = [clause for clause in clauses if any(clause in column for column in cells)]
    head = "clause   " + "  ".join(report.name.center(width) for report in columns)
    lines = [head, "-" * len(head)]
    for clause in shown:
        row = "  ".join(column.get(clause, NONE).center(width) for column in cells)
        lines.append(f"{clause:<9}{row}   {_clip(_plain(clauses[clause]), 96)}")
    return "\n".join([*lines, "", LEGEND])


def _plain(sentence: str) -> str:
    """Return a sentence of the text without its markup."""
    for markup, plain in (("$", ""), ("`", ""), ("\\le ", "≤ "), ("\\ge ", "≥ ")):
        sentence = sentence.replace(markup, plain)
    return sentence


def summary(report: TargetReport) -> str:
    """Return one line of counts for an implementation."""
    if report.absent:
        return f"{report.name}: not run: {report.absent}"
    if report.unusable:
        return f"{report.name}: cannot be used: {report.unusable}"
    failed = report.count(FAILED) + report.count(BROKE)
    parts = [
        f"{report.count(EXACT) + report.count(RELATION)} pass ({report.count(RELATION)} by relation)",
        f"{failed} FAIL" if failed else "0 fail",
        f"{report.count(EXPECTED)} fail as expected",
        f"{report.count(NONE)} not offered",
    ]
    parts += [f"{len(report.stale)} stale expectations"] if report.stale else []
    parts += [f"{report.count(NOT_RUN)} not run"] if report.count(NOT_RUN) else []
    cases = sum(judged.outcome.cases for judged in report.judged)
    return f"{report.name} ({report.title}): {', '.join(parts)}; {cases} cases"


def failures(report: TargetReport, *, expected: bool) -> str:
    """Return the failures of an implementation, expected ones or the others, each with its smallest case."""
    blocks = [
        _failure(report, judged)
        for judged in report.judged
        if judged.outcome.failure and (judged.expected is not None) == expected
    ]
    return "\n".join(blocks)


def write_repro(folder: Path, target: str, check: str, failure: Failure) -> Path:
    """Write the requests of a failure, and beside them what is expected; return the path of the requests.

    ``./adapter < FILE`` replays it without any tool, ``secagg-spec replay FILE -- ./adapter`` judges it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target}-{re.sub('[^a-z0-9]+', '-', check.lower())}.jsonl"
    requests = [HELLO, *(exchange.request for exchange in failure.transcript)]
    path.write_text("".join(request.line(number) for number, request in enumerate(requests)), encoding="utf-8")
    expectation = {
        "schema": replay.SCHEMA,
        "kit": __version__,
        "check": check,
        "verdict": failure.verdict,
        "message": failure.message,
        "expected_of_the_last_answer": failure.expected,
        "answers_seen": [exchange.answer.as_json() if exchange.answer else None for exchange in failure.transcript],
        "draws": replay.plain(failure.draws),
    }
    path.with_suffix(".expected.json").write_text(json.dumps(expectation, indent=2) + "\n", encoding="utf-8")
    return path


def as_json(reports: Sequence[TargetReport], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole run as data."""
    return {
        "schema": "secagg-spec-report/1",
        "kit": __version__,
        "settings": dict(settings),
        "targets": [_target_json(report) for report in reports],
    }


def _target_json(report: TargetReport) -> dict[str, Any]:
    about = report.caps and {
        "name": report.caps.name,
        "version": report.caps.version,
        "language": report.caps.language,
        "policy": dict(report.caps.policies),
        "operations": {name: dict(declared) for name, declared in report.caps.operations.items()},
    }
    return {
        "target": report.name,
        "implementation": about,
        "absent": report.absent or None,
        "unusable": report.unusable or None,
        "exit_code": None if report.absent else report.exit_code,
        "stale": report.stale,
        "clauses": {clause: _words(mark) for clause, mark in clause_cells(report).items()},
        "checks": [_check_json(judged) for judged in report.judged],
    }


def _check_json(judged: Judged) -> dict[str, Any]:
    outcome, failure = judged.outcome, judged.outcome.failure
    return {
        "check": outcome.check.id,
        "clauses": list(outcome.check.clauses),
        "verdict": outcome.verdict,
        "by_relation": outcome.by_relation,
        "reason_checked": not outcome.reason_unchecked,
        "expected_failure": judged.expected.reason if judged.expected else None,
        "cases": outcome.cases,
        "seconds": round(outcome.seconds, 3),
        "failure": failure
        and {
            "message": failure.message,
            "again_in_fresh_processes": failure.again,
            "requests": [json.loads(e.request.line(n)) for n, e in enumerate(failure.transcript, 1)],
        },
    }


_WORDS = {
    EXACT: "pass",
    RELATION: "pass by relation",
    EXPECTED: "fails as expected",
    FAILED: "fails",
    BROKE: "breaks",
    NOT_RUN: "not run",
    NONE: "not offered",
}


def _words(cell: str) -> str:
    return _WORDS[cell.removesuffix("+")] + (" (composed)" if cell.endswith("+") else "")


def _mark(judged: Judged) -> str:
    outcome = judged.outcome
    if outcome.failure is None:
        return {"unsupported": NONE}.get(outcome.verdict, RELATION if outcome.by_relation else EXACT)
    if outcome.verdict == "not_run":
        return NOT_RUN
    if judged.expected:
        return EXPECTED
    return BROKE if outcome.verdict in BROKEN else FAILED


def _failure(report: TargetReport, judged: Judged) -> str:
    outcome, failure = judged.outcome, judged.outcome.failure
    assert failure is not None
    tag = "expected" if judged.expected else "FAIL"
    lines = [f"{tag:<9}{outcome.check.id}   {outcome.verdict}   [{', '.join(outcome.check.clauses)}]"]
    lines.append(f"         {failure.message}")
    if failure.transcript:
        lines.append(f"         smallest case: {describe(failure.transcript[-1].request)}")
    if judged.expected:
        lines.append(f"         why expected:  {judged.expected.reason}")
    if outcome.check.id in report.repros:
        lines.append(f"         replay:        ./adapter < {report.repros[outcome.check.id]}")
    return "\n".join(lines)


def describe(request: Request) -> str:
    """Return a request for people: vectors as numbers, long ones cut."""
    parts = [f"{name}={_value(request.op, name, value)}" for name, value in request.params.items()]
    parts += [f"{name}={_value(request.op, name, value)}" for name, value in (request.rand or {}).items()]
    return f"{request.op} " + _clip(" ".join(parts), 200)


_NOT_VECTORS = ("q", "level", "format", "bytes", "data")


def _value(op: str, name: str, value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(op, name, item) for item in value) + "]"
    if name == "seed":
        return str(int.from_bytes(bytes.fromhex(value), "little"))
    if not isinstance(value, str) or name in _NOT_VECTORS:
        return str(value)
    dtype = "<f8" if name in ("x", "rounding") else "<u4"
    try:
        numbers: Iterable[Any] = unpack(value, dtype).tolist()
    except ValueError:
        return value
    return "(" + " ".join(str(number) for number in numbers) + ")"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
