"""The command ``secagg-spec conform``."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from secagg_spec import resources
from secagg_spec.conformance import expectations as expected
from secagg_spec.conformance import junit
from secagg_spec.conformance import report as reporting
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.connection import ProcessConnection
from secagg_spec.conformance.report import TargetReport
from secagg_spec.conformance.runner import Outcome, Settings, run
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from secagg_spec.conformance.wire import AdapterUnusable, UsageError

_REPRO = Path("repro")
_USAGE = """secagg-spec conform [options] --target NAME [--target NAME …]
       secagg-spec conform [options] -- ./adapter [arguments]"""
_EXIT_CODES = """exit codes:
  0  all that was asked passed, or failed as expected
  1  a check failed, or an expectation is stale
  2  wrong usage
  3  an adapter could not be used
  4  nothing ran"""


def add_parser(commands: Any) -> None:
    """Add ``conform`` to the commands."""
    parser = commands.add_parser(
        "conform",
        help="judge an implementation, clause by clause",
        description="Judge implementations against the text, through their adapters (spec/adapter.md).",
        usage=_USAGE,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--target", action="append", default=[], metavar="NAME", help="a known implementation")
    parser.add_argument("--list-targets", action="store_true", help="list the known implementations, and end")
    parser.add_argument("--list-checks", action="store_true", help="list the checks, and end")
    parser.add_argument("-k", dest="pattern", metavar="PATTERN", help="only checks whose id or clause matches")
    parser.add_argument("--fuzz", type=_count, default=100, metavar="N", help="cases per check (100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the cases (0)")
    parser.add_argument("--timeout", type=_seconds, default=10.0, metavar="S", help="seconds for one answer (10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--expect", type=Path, metavar="FILE", help="expected failures (TOML); target name: adapter")
    parser.add_argument("--repro", type=Path, default=_REPRO, metavar="DIR", help="where failing cases go (repro)")
    parser.add_argument("adapter", nargs="*", help="the command that starts your adapter, after --")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if options.list_targets:
        print("\n".join(f"{target.name:<10} {target.about}" for target in TARGETS.values()))
        return 0
    settings = Settings(cases=options.fuzz, seed=options.seed, pattern=options.pattern, progress=_Progress())
    if options.list_checks:
        print("\n".join(f"{check.id:<46} {', '.join(check.clauses):<24} {check.text}" for check in settings.chosen()))
        return 0
    if not settings.chosen():
        raise UsageError(f"-k {options.pattern}: no check has such an id or clause (see --list-checks)")
    named = _connections(options)
    entries = {name: _expectations(name, options) for name, _ in named}
    reports = [_judge(name, connection, entries[name], options.repro, settings) for name, connection in named]
    _print(reports, options)
    if options.json:
        _write("--json", options.json, _json(options, reports))
    if options.junit:
        _write("--junit", options.junit, junit.document(reports))
    return _exit_code(reports)


def _connections(options: argparse.Namespace) -> list[tuple[str, ProcessConnection | str]]:
    """Return each implementation's connection, or why there is none."""
    if bool(options.target) == bool(options.adapter):
        raise UsageError("name one or more --target, or give the command of an adapter after -- (not both)")
    if options.adapter:
        return [("adapter", ProcessConnection(options.adapter, options.timeout))]
    unknown = [name for name in options.target if name not in TARGETS]
    if unknown:
        raise UsageError(f"--target {unknown[0]}: the targets are {', '.join(TARGETS)}")
    return [(name, _connect(name, options.timeout)) for name in dict.fromkeys(options.target)]


def _connect(name: str, timeout: float) -> ProcessConnection | str:
    try:
        return TARGETS[name].connect(timeout)
    except TargetAbsent as absent:
        return str(absent)


def _judge(
    name: str,
    connection: ProcessConnection | str,
    entries: Sequence[expected.Expectation],
    folder: Path,
    settings: Settings,
) -> TargetReport:
    if isinstance(connection, str):
        return TargetReport(name, absent=connection)
    assert isinstance(settings.progress, _Progress)
    settings.progress.begin(name)
    try:
        caps, outcomes = run(connection, settings)
    except AdapterUnusable as unusable:
        command = shlex.join(connection.command)
        return TargetReport(name, unusable=str(unusable) if command in str(unusable) else f"{command}: {unusable}")
    finally:
        settings.progress.end()
        connection.close()
    report = TargetReport(name, caps, expected.judge(name, outcomes, entries), command=_relative(connection.command))
    report.stale = expected.stale(name, outcomes, entries)
    report.repros = _write_repros(folder, name, outcomes)
    return report


def _write_repros(folder: Path, name: str, outcomes: Sequence[Outcome]) -> dict[str, Path]:
    """Write the requests of each failure; return the files by check."""
    repros = {}
    for outcome in outcomes:
        if outcome.failure and outcome.failure.transcript:
            try:
                repros[outcome.check.id] = reporting.write_repro(folder, name, outcome.check.id, outcome.failure)
            except OSError as error:
                raise UsageError(f"--repro {folder}: {error.strerror}") from None
    return repros


def _expectations(name: str, options: argparse.Namespace) -> list[expected.Expectation]:
    path = options.expect or (TARGETS[name].expectations if name in TARGETS else None)
    try:
        return expected.load(path) if path else []
    except expected.ExpectationsError as error:
        raise UsageError(str(error)) from None


def _print(reports: Sequence[TargetReport], options: argparse.Namespace) -> None:
    if any(report.caps for report in reports):
        print(reporting.table(reports, resources.clauses()))
    for is_expected in (True, False):
        blocks = [reporting.failures(report, expected=is_expected) for report in reports]
        for report, block in zip(reports, blocks, strict=True):
            if block:
                kind = "failures that are expected" if is_expected else "FAILURES"
                print(f"\n{report.name}: {kind}   (./adapter stands for: {report.command})\n{block}")
    print()
    for report in reports:
        for line in report.stale:
            print(f"STALE    {line}")
        print(reporting.summary(report))


def _relative(command: Sequence[str]) -> str:
    """Return a command with paths inside the current folder as seen from there."""
    here = Path.cwd()
    words = [Path(word) for word in command]
    short = [str(word.relative_to(here)) if word.is_relative_to(here) else str(word) for word in words]
    return shlex.join(short)


def _json(options: argparse.Namespace, reports: Sequence[TargetReport]) -> str:
    settings = {"cases": options.fuzz, "seed": options.seed, "pattern": options.pattern}
    return json.dumps(reporting.as_json(reports, settings), indent=2) + "\n"


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from None


def _exit_code(reports: Sequence[TargetReport]) -> int:
    """Return the code of the whole run: an adapter that cannot be used weighs most, then failures.

    A target that is absent from this machine is said to be so, and counts only when nothing else ran.
    """
    codes = [report.exit_code for report in reports if not report.absent]
    return next((code for code in (3, 1, 0) if code in codes), 4)


class _Progress:
    """A line that says what runs, on a terminal only."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._name = ""
        self._start = 0.0

    def begin(self, name: str) -> None:
        self._name, self._start = name, time.monotonic()

    def __call__(self, check: Check, done: int, total: int) -> None:
        if self._shown:
            seconds = time.monotonic() - self._start
            line = f"{self._name}  {done + 1}/{total}  {seconds:.0f} s  {check.id}"
            print(f"\r\x1b[2K{line[:100]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of cases, at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
