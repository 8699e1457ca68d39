"""The report of a run as one JSON object: write it, read it, refuse it (spec/report.schema.json, CNF-07, CNF-08)."""

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from secagg_spec import __version__, resources, schemas
from secagg_spec.conformance.adapter import files
from secagg_spec.conformance.adapter.plain import KEPT, MESSAGE, Room, clip, fit_for_json
from secagg_spec.conformance.reports.findings import Finding, findings
from secagg_spec.conformance.reports.report import (
    TargetReport,
    asked_and_answered,
    clause_cells,
    suspicions,
    why_fewer,
    words,
)
from secagg_spec.conformance.running import suite
from secagg_spec.conformance.running.expectations import Judged
from secagg_spec.conformance.running.runner import Failure, Settings
from secagg_spec.errors import UsageError

SCHEMA = "secagg-spec-report/3"


def as_text(data: Any) -> str:
    """Return data as the text of a JSON file that every reader accepts, in ASCII."""
    return json.dumps(fit_for_json(data), indent=2, allow_nan=False) + "\n"


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the header and the targets of a report, which contain no times."""
    meant = fit_for_json([document["header"], document["targets"]])
    return hashlib.sha256(json.dumps(meant, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def document(reports: Sequence[TargetReport], settings: Settings, *, complete: bool = True) -> dict[str, Any]:
    """Return a run as data; if it ended before it was complete, the data has no footer."""
    body = {
        "schema": SCHEMA,
        "header": header(settings),
        "targets": [_target(report, settings) for report in reports],
        "timing": {report.name: _times(report) for report in reports},
    }
    return {**body, "footer": {**counts(body), "digest": digest(body)}} if complete else body


def header(settings: Settings) -> dict[str, Any]:
    """Return the kit's version, the settings and the environment of a run (CNF-07)."""
    return {
        "kit": __version__,
        "text": resources.text_digest(),
        "vectors": suite.vectors_digest(),
        "settings": {name: getattr(settings, name) for name in ("cases", "seed", "pattern", "vectors", "budget")},
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: metadata.version(name) for name in ("hypothesis", "numpy", "cryptography")},
        },
    }


def _times(report: TargetReport) -> dict[str, float]:
    return {judged.outcome.check.id: round(judged.outcome.seconds, 3) for judged in report.judged}


def _target(report: TargetReport, settings: Settings) -> dict[str, Any]:
    about = report.caps and {
        "name": clip(report.caps.name, MESSAGE),
        "version": clip(report.caps.version, MESSAGE),
        "language": clip(report.caps.language, MESSAGE),
        "policy": dict(report.caps.policies),
        "operations": Room(KEPT).fit({name: dict(declared) for name, declared in report.caps.operations.items()}),
    }
    return {
        "target": report.name,
        "command": report.command,
        "options": list(report.options),
        "implementation": about,
        "hello": Room(KEPT).fit(dict(report.caps.hello)) if report.caps else None,
        "absent": report.absent or None,
        "unusable": report.unusable or None,
        "exit_code": None if report.absent else report.exit_code,
        "stale": report.stale,
        "left_out": [clip(one, MESSAGE) for one in report.caps.left_out] if report.caps else [],
        "power": report.power and report.power.as_json(),
        "clauses": {clause: words(mark) for clause, mark in clause_cells(report).items()},
        "findings": [_finding(finding) for finding in findings(report.judged)],
        "checks": [_check(report, judged, settings) for judged in report.judged],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    outcomes = [judged.outcome for judged in (finding.first, *finding.others)]
    message = clip(outcomes[0].failure.message if outcomes[0].failure else "", MESSAGE)
    return {"kind": finding.kind, "message": message, "checks": [outcome.check.id for outcome in outcomes]}


def _check(report: TargetReport, judged: Judged, settings: Settings) -> dict[str, Any]:
    outcome = judged.outcome
    return {
        "check": outcome.check.id,
        "clauses": list(outcome.check.clauses),
        "text": outcome.check.text,
        "verdict": outcome.verdict,
        "note": outcome.note or None,
        "by_relation": outcome.by_relation,
        "reason_checked": not outcome.reason_unchecked,
        "expected_failure": judged.expected.reason if judged.expected else None,
        "cases": outcome.cases,
        "fewer": why_fewer(outcome, settings) or None,
        "inexpressible": outcome.inexpressible,
        "failure": outcome.failure and _failure(outcome.check.id, outcome.failure, report),
    }


def _failure(check: str, failure: Failure, report: TargetReport) -> dict[str, Any]:
    repro = report.repros.get(check)
    requests, answers = asked_and_answered(failure)
    return {
        "message": clip(failure.message, MESSAGE),
        "repeats": failure.repeats,
        "expected": failure.expected,
        "suggests": suspicions(check, failure),
        "requests": requests,
        "answers": answers,
        "at": failure.at and list(failure.at),
        "repro": repro.as_posix() if repro else None,
        "replay": report.replay(check) if repro else None,
    }


def load(path: Path) -> dict[str, Any]:
    """Return the report in a file.

    Raises
    ------
    UsageError
        The file is absent or is not JSON, has another schema, has no footer because its run was ended early, or was
        altered (CNF-08). The message is one line.
    """
    body = files.read_json(path, "this is not JSON, or it was cut")
    refuse_unusable(str(path), body)
    found: dict[str, Any] = body
    return found


def refuse_unusable(name: str, given: object) -> None:
    """Refuse data that is not a complete report of this schema; `name` appears in the message."""
    body = files.with_schema(name, given, SCHEMA)
    if "footer" not in body:
        raise UsageError(f"{name}: the report has no footer: its run was ended before it was complete")
    for where, fault in schemas.faults(body, _schema()):
        raise UsageError(f"{name}: {''.join(f'{part}: ' for part in where)}{fault}")
    if digest(body) != body["footer"]["digest"]:
        raise UsageError(f"{name}: the digest in the footer is that of another report: this one was altered")
    if {**counts(body), "digest": body["footer"]["digest"]} != body["footer"]:
        raise UsageError(f"{name}: the counts in the footer are not those of the report: it was altered")
    if _twice(target["target"] for target in body["targets"]):
        raise UsageError(f"{name}: two targets have one name")
    for target in body["targets"]:
        if _twice(check["check"] for check in target["checks"]):
            raise UsageError(f"{name}: two checks of {schemas.shown(target['target'])} have one name")


def _twice(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) < len(listed)


def counts(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of targets, checks and unexpected failures in a report."""
    checks = [check for target in body["targets"] for check in target["checks"]]
    failed = [check for check in checks if check["failure"] and not check["expected_failure"]]
    return {
        "targets": len(body["targets"]),
        "checks": len(checks),
        "failed": sum(check["verdict"] != "not_run" for check in failed),
    }


@cache
def _schema() -> Mapping[str, Any]:
    return schemas.load(resources.root("spec") / "report.schema.json")
