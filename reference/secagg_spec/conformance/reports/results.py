"""Results of the released implementations, as stored in ``docs/results`` and shown on the site.

    python -m secagg_spec.conformance.reports.results REPORT … --out docs/results

takes reports of ``secagg-spec conform --json`` and writes a file for each target in them. The file holds the adapter's
declaration, the mark of each clause, and each check that ran, with the smallest case of each failure. It leaves out
times, the run's files, and checks that are not offered. With ``--published URL`` the report is one that somebody else
publishes: `secagg_spec.conformance.reports.published`.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import system
from secagg_spec.conformance.checks.base import NO_CASE
from secagg_spec.conformance.reports import document, published
from secagg_spec.conformance.running.suite import OUTSIDE
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.errors import UsageError

SCHEMA = "secagg-spec-target/1"
NOT_OFFERED = "not offered"
_KEPT = ("check", "clauses", "verdict", "note", "by_relation", "reason_checked", "expected_failure", "cases")
_FAILURE = ("message", "requests")
_OUTSIDE = (NO_CASE, OUTSIDE)
"""The reasons why a check was not run although the adapter declares what it needs."""


def framework(target: str) -> str:
    """Return the framework of a target: its name up to what names a configuration or a release."""
    return re.split("[-@]", target)[0]


def released() -> list[str]:
    """Return the targets whose results are stored: those with expected failures, in the order of the kit."""
    return [target.name for target in TARGETS.values() if target.expectations]


def stored(target: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data to store for one target of a report."""
    checks = [check for check in target["checks"] if check["verdict"] != "unsupported"]
    environment = TARGETS[target["target"]].environment
    return {
        "schema": SCHEMA,
        "settings": dict(settings),
        "target": target["target"],
        "released": str(environment.released) if environment else None,
        "implementation": target["implementation"],
        "randomness": target["hello"].get("randomness"),
        "outside": [check["check"] for check in target["checks"] if check["note"] in _OUTSIDE],
        "clauses": {clause: mark for clause, mark in target["clauses"].items() if mark != NOT_OFFERED},
        "checks": [
            {**{name: check[name] for name in _KEPT}, "failure": _failure(check["failure"])} for check in checks
        ],
    }


def _failure(failure: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the smallest case of a failure, with its requests."""
    return {name: failure[name] for name in _FAILURE} if failure else None


def from_report(path: Path) -> list[dict[str, Any]]:
    """Return the data to store for each target of a report.

    Raises
    ------
    UsageError
        The file is not a complete report, or a target was judged only in part, or did not fail as expected.
    """
    report = document.load(path)
    settings = report["header"]["settings"]
    for target in report["targets"]:
        _demand_whole(path, target, settings)
    return [stored(target, settings) for target in report["targets"]]


def _demand_whole(path: Path, target: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    name = target["target"]
    if name not in released():
        raise UsageError(f"{path}: {name} is not one of the targets whose results are stored: {', '.join(released())}")
    if settings["pattern"] is not None or not settings["vectors"]:
        raise UsageError(f"{path}: only some of the checks were run")
    if target["exit_code"] != 0:
        raise UsageError(f"{path}: {name} did not end with exit code 0: what it gave is not what is expected")


def load(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the stored results by target, in the order of the kit.

    Raises
    ------
    UsageError
        A target has no file.
    """
    missing = [name for name in released() if not (folder / f"{name}.json").is_file()]
    if missing:
        raise UsageError(f"{folder / missing[0]}.json is missing")
    return {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in released()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Store the targets of some reports; return 0, or 2 if a report cannot be used."""
    parser = argparse.ArgumentParser(description="Store what released implementations gave, for the site.")
    parser.add_argument("report", nargs="*", type=Path, help="a report of secagg-spec conform --json")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), metavar="DIR")
    parser.add_argument("--targets", action="store_true", help="print the options of secagg-spec conform for all")
    parser.add_argument("--published", metavar="URL", help="the address at which somebody else publishes the report")
    given = parser.parse_args(arguments)
    if given.targets and (given.report or given.published):
        parser.error("--targets goes with no report, and no --published")
    if given.targets:
        print(*(f"--target {name}" for name in released()))
        return 0
    if not given.report:
        parser.error("name a report, or give --targets")
    try:
        if given.published is not None:
            for path in given.report:
                published.add(given.out, published.entries(path, given.published))
            return 0
        results = [result for path in given.report for result in from_report(path)]
    except UsageError as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    for result in results:
        system.write_whole(given.out / f"{result['target']}.json", document.as_text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
