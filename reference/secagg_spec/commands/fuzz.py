"""The command ``secagg-spec fuzz``: runs the checks again and again with new cases, until the time is over."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from secagg_spec import signals
from secagg_spec.commands import opening, options
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import Connection
from secagg_spec.conformance.adapter.plain import MESSAGE, clip, counted, for_encoding, relative, shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.running import defaults
from secagg_spec.conformance.running import expectations as expected
from secagg_spec.conformance.running.expectations import Expectation
from secagg_spec.conformance.running.runner import MOST_TIMEOUTS, Failure, Outcome, Settings, begin, bounded, run_check
from secagg_spec.errors import UsageError

_CASES, _MOST_CASES, _MOST_DOUBLINGS = 5, 2000, 10
_SEEDS = 1_000_000
_EVERY_SECONDS = 10.0
UNCONFIRMED = "ended before it was made smaller and confirmed"


@dataclass(frozen=True)
class Plan:
    """The settings of a fuzzing run: seed, checks, and its end by rounds, by time or by the first failure."""

    seed: int = 0
    pattern: str | None = None
    rounds: int | None = None
    seconds: float | None = None
    stop: bool = False

    def settings(self, number: int, deadline: float) -> Settings:
        """Return the settings of one round (CNF-46)."""
        return Settings(
            cases=min(_CASES << min(number, _MOST_DOUBLINGS), _MOST_CASES),
            seed=self.seed * _SEEDS + number,
            pattern=self.pattern,
            budget=self.seconds,
            deadline=deadline,
        )


@dataclass
class Found:
    """What fuzzing has found so far."""

    total: int = 0
    start: float = field(default_factory=time.monotonic)
    rounds: int = 0
    cases: int = 0
    reached: set[str] = field(default_factory=set)
    failed: dict[str, Outcome] = field(default_factory=dict)
    passed: dict[str, Outcome] = field(default_factory=dict)
    """The checks that passed with as many cases as a run asks for by itself: what is expected of them is stale."""
    not_run: dict[str, str] = field(default_factory=dict)
    pending: tuple[Check, Failure] | None = None
    ended: str = ""

    def __str__(self) -> str:
        seconds = max(time.monotonic() - self.start, 1e-9)
        rate = f"{self.cases / seconds:,.0f} cases/s"
        checks = f"{len(self.reached)} of {self.total} checks"
        failures = counted(len(self.failed), "failure")
        so_far = f"{seconds:.0f} s, {counted(self.rounds, 'whole round')}: {self.cases:,} cases"
        return f"{so_far}, {rate}, {checks}, {failures}"

    def keep_pending(self) -> None:
        """Keep a failure that was found and is still being made smaller (CNF-45)."""
        if self.pending is not None:
            check, failure = self.pending
            message = f"{clip(failure.message, MESSAGE - len(UNCONFIRMED) - 3)} ({UNCONFIRMED})"
            kept = bounded(replace(failure, message=message))
            self._keep(Outcome(check, failure.verdict, cases=1, failure=kept))

    def take(self, outcome: Outcome, cases: int) -> None:
        """Add the outcome of a check in one round that asks for so many cases."""
        self.pending = None
        self.cases += outcome.cases
        if outcome.cases:
            self.reached.add(outcome.check.id)
        if outcome.failure and outcome.verdict != "not_run":
            self._keep(outcome)
        elif outcome.verdict == "pass" and not outcome.short and cases >= outcome.check.count(Settings.cases):
            self.passed[outcome.check.id] = outcome

    def _keep(self, outcome: Outcome) -> None:
        self.failed.setdefault(outcome.check.id, outcome)
        self.passed.pop(outcome.check.id, None)
        self.pending = None


Listener = Callable[[Found], None]


def fuzz(connection: Connection, caps: Capabilities, plan: Plan, found: Found, tell: Listener) -> None:
    """Fuzz an adapter; findings go into `found` at once, to survive an interrupt.

    Parameters
    ----------
    connection : Connection
        The adapter; it has answered `hello`.
    caps : Capabilities
        The capabilities that it declares.
    plan : Plan
        The settings of the run.
    found : Found
        Receives the findings.
    tell : function
        Called after each check.
    """
    deadline = math.inf if plan.seconds is None else found.start + plan.seconds
    checks = [check for check in plan.settings(0, deadline).chosen() if check.runs_on(caps)]
    found.total = len(checks)
    number = 0
    while checks and not found.ended:
        settings = plan.settings(number, deadline)
        settings.found = lambda check, failure: setattr(found, "pending", (check, failure))
        for check in checks:
            if time.monotonic() >= deadline or found.ended:
                return
            _one(connection, caps, check, settings, found)
            tell(found)
            if plan.stop and found.failed:
                found.ended = "a check failed (--stop)"
        checks = [check for check in checks if check.id not in {*found.failed, *found.not_run}]
        found.rounds = number = number + 1
        if plan.rounds is not None and number >= plan.rounds:
            return


def _one(connection: Connection, caps: Capabilities, check: Check, settings: Settings, found: Found) -> None:
    """Run one check in one round; if the kit cannot run it, record that."""
    try:
        found.take(run_check(connection, caps, check, settings), check.count(settings.cases))
    except AdapterUnusable as unusable:
        found.not_run[check.id] = f"the adapter could not be started again: {unusable}"
        found.ended = found.not_run[check.id]
    except Exception as error:
        found.not_run[check.id] = f"the kit itself failed in this check: {type(error).__name__}: {error}"
    hung = sum(outcome.timed_out for outcome in found.failed.values())
    if hung >= MOST_TIMEOUTS:
        found.ended = found.ended or f"{hung} checks had ended in a time-out"


# --------------------------------------------------------------------------------------------------------- command


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    plan = _plan(given)
    values.writable_folder("--repro, --out", given.repro)
    targets = [given.target] if given.target else []
    if len(names := opening.names(targets)) > 1:
        raise UsageError(f"--target {given.target}: it names {', '.join(names)}; fuzz takes one")
    [(name, connection)] = opening.connections(targets, given.adapter, given.timeout, given.start_timeout)
    if isinstance(connection, str):
        print(f"{name}: not on this machine: {shown(connection)}")
        return 4
    entries = expected.known(name, given.expect)
    try:
        return _fuzzed(name, connection, plan, entries, given)
    finally:
        connection.close()


def _plan(given: argparse.Namespace) -> Plan:
    seconds = given.time or (None if given.rounds else 60.0)
    plan = Plan(given.seed, options.pattern(given), given.rounds, seconds, given.stop)
    options.refuse_idle(plan.settings(0, math.inf))
    return plan


def _fuzzed(name: str, connection: Any, plan: Plan, entries: Sequence[Expectation], given: argparse.Namespace) -> int:
    """Fuzz one implementation and print the findings, even after an interrupt; return the exit code."""
    try:
        caps = begin(connection)
    except AdapterUnusable as unusable:
        print(f"{name}: cannot be used: {shown(str(unusable))}")
        return 3
    found, interrupted = Found(), None
    try:
        fuzz(connection, caps, plan, found, _Progress())
    except KeyboardInterrupt as end:
        interrupted = end
        signals.heed()
        found.keep_pending()
    report = _report(name, connection, caps, found, entries)
    report.options = defaults.waits(given.timeout, given.start_timeout)
    _write(report, given.repro, found)
    print(for_encoding(_summary(report, found, plan), sys.stdout.encoding or "utf-8"))
    code = _exit_code(report, found)
    if interrupted is not None and code != 1:
        raise interrupted
    return code


def _report(
    name: str, connection: Any, caps: Capabilities, found: Found, entries: Sequence[Expectation]
) -> reporting.TargetReport:
    judged = expected.judge(name, list(found.failed.values()), entries)
    stale = expected.stale(name, [*found.failed.values(), *found.passed.values()], entries)
    return reporting.TargetReport(name, caps, judged, stale, command=relative(connection.command))


def _write(report: reporting.TargetReport, folder: Path, found: Found) -> None:
    try:
        reporting.renew_repros(report, folder, {*found.reached, *found.failed})
    except OSError as error:
        raise UsageError(f"--repro {folder}: {error.strerror}") from None


def _summary(report: reporting.TargetReport, found: Found, plan: Plan) -> str:
    blocks = []
    for is_expected, title in ((True, "expected failures"), (False, "FAILURES")):
        block = reporting.failures(report, expected=is_expected)
        blocks += [f"{report.name}: {title}\n{block}\n"] if block else []
    blocks += [f"STALE    {line}" for line in report.stale]
    blocks += [f"NOT RUN  {check}\n         {shown(reason)}" for check, reason in found.not_run.items()]
    blocks += [f"ended early: {shown(found.ended)}"] if found.ended else []
    known = sum(not judged.unexpected for judged in report.judged)
    said = f"{found}, {known} of them expected" if known else str(found)
    said += f", {counted(len(report.stale), 'stale expectation')}" if report.stale else ""
    return "\n".join([*blocks, f"{report.name} ({report.title}): {said}; seed {plan.seed}"])


def _exit_code(report: reporting.TargetReport, found: Found) -> int:
    if report.stale or any(judged.unexpected for judged in report.judged):
        return 1
    if found.not_run:
        return 3
    return 0 if found.cases else 4


class _Progress:
    """Reports progress on standard error from time to time."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._failures = 0

    def __call__(self, found: Found) -> None:
        now = time.monotonic()
        if now - self._last >= _EVERY_SECONDS or len(found.failed) > self._failures:
            self._last, self._failures = now, len(found.failed)
            print(found, file=sys.stderr, flush=True)
