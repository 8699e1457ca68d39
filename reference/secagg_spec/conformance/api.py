"""The kit as a library: judge an adapter in one call, or as tests of a test framework.

``judge("./adapter", pattern="lightsecagg").exit_code`` is the exit code of ``secagg-spec conform``. In a test
framework, ``@pytest.mark.parametrize("test", adapter_tests("./adapter"), ids=str)`` makes one test for each check; its
`run` raises an error that describes the failure.
"""

from __future__ import annotations

import atexit
import os
import shlex
import unittest
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import Connection, DirectConnection, ProcessConnection
from secagg_spec.conformance.adapter.plain import as_file, relative
from secagg_spec.conformance.adapter.values import DIGITS, MOST_SECONDS
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running import defaults
from secagg_spec.conformance.running import expectations as expected
from secagg_spec.conformance.running.expectations import ADAPTER, Expectation, Judged
from secagg_spec.conformance.running.runner import MOST_TIMEOUTS, Failure, Outcome, Settings, begin, judged, run
from secagg_spec.errors import ParameterError, UsageError

Adapter: TypeAlias = str | Path | Sequence[str | Path] | Callable[[Any], dict[str, Any]]
"""A command line as one string, its words, or a function from a request to its answer (`sdk.Adapter.answer`).

A `Path` is a file, and PATH is not searched for it.
"""


class AdapterFailed(AssertionError):
    """An adapter violates the text; the message describes the failure as the kit prints it."""


class ExpectedFailure(Exception):
    """A check failed as an expectation predicts; the message is the reason in the expectation."""


def judge(
    adapter: Adapter,
    *,
    cases: int = 100,
    seed: int = 0,
    pattern: str | None = None,
    expect: str | Path | None = None,
    timeout: float = 10.0,
) -> TargetReport:
    """Judge an adapter, as ``secagg-spec conform`` does.

    Parameters
    ----------
    adapter : str, Path, sequence of these, or function
        A command line, the path of a program, the words of a command, or a function in this process.
    cases, seed : int
        Cases for each check, and the seed from which they are drawn; both of at most 100 digits.
    pattern : str, optional
        Only checks whose id or clause matches this, or one of several patterns with commas between.
    expect : str or Path, optional
        A file of expected failures, whose target name is ``adapter``.
    timeout : float
        Time limit for an answer, in seconds.

    Returns
    -------
    TargetReport
        The results: `exit_code`, `failed`, `stale`, and `judged`, with an entry for each check. If the adapter cannot
        be used, `unusable` says why.

    Raises
    ------
    UsageError
        The pattern matches nothing, the expectations cannot be used, the command line is invalid, or an argument is of
        another type or outside its range.
    """
    settings, entries = _settings(cases, seed, pattern), expected.known(ADAPTER, _path("expect", expect))
    connection = connected(adapter, timeout)
    report = TargetReport(ADAPTER, command=_named(adapter, connection))
    try:
        report.caps, outcomes = run(connection, settings)
    except AdapterUnusable as unusable:
        report.unusable = str(unusable)
        return report
    finally:
        connection.close()
    report.judged = expected.judge(ADAPTER, outcomes, entries)
    report.stale = expected.stale(ADAPTER, outcomes, entries)
    return report


def adapter_tests(
    adapter: Adapter,
    *,
    cases: int = 100,
    seed: int = 0,
    pattern: str | None = None,
    expect: str | Path | None = None,
    repro: str | Path | None = None,
    timeout: float = 10.0,
) -> list[AdapterTest]:
    """Return a test for each check; all tests ask the same adapter, which starts when the first test runs.

    Parameters
    ----------
    adapter, cases, seed, pattern, expect, timeout
        As in `judge`.
    repro : str or Path, optional
        The folder for failing cases; if it is not given, they are not written.

    Returns
    -------
    list of AdapterTest
        In the order in which the kit runs the checks; `str` of a test is the id of its check.

    Raises
    ------
    UsageError
        As in `judge`.
    """
    settings, entries = _settings(cases, seed, pattern), expected.known(ADAPTER, _path("expect", expect))
    folder, connection = _path("repro", repro), connected(adapter, timeout)
    run = AdapterRun(connection, settings, entries, _named(adapter, connection), folder)
    atexit.register(run.close)
    return [AdapterTest(check, run) for check in settings.chosen()]


def connected(adapter: Adapter, timeout: float) -> Connection:
    """Return a connection to an adapter, not yet started.

    Raises
    ------
    UsageError
        The command line is empty or invalid, what is given is none and no function, or the seconds are not between 0
        and a million.
    """
    if not validate.finite(timeout) or not 0 < timeout < MOST_SECONDS:
        raise _refused("timeout", timeout, "a number of seconds above 0 and below a million")
    if callable(adapter):
        return DirectConnection(adapter)
    try:
        words = shlex.split(adapter) if isinstance(adapter, str) else _words(adapter)
    except ValueError as error:
        raise UsageError(f"{adapter!r} is not a command line: {error}") from None
    if not words or not words[0]:
        raise UsageError("the command line of the adapter is empty")
    if any("\0" in word for word in words):
        raise UsageError("the command line of the adapter has a null character, which no command can have")
    return ProcessConnection(words, validate.plain(timeout))


def _words(adapter: object) -> list[str]:
    words = [adapter] if isinstance(adapter, os.PathLike) else adapter
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, (str, os.PathLike)) for word in words):
        found = validate.class_of(adapter)
        raise UsageError(f"adapter = {found}: it must be a command line as text, a list of its words, or a function")
    return [word if isinstance(word, str) else as_file(os.fsdecode(word)) for word in words]


def _named(adapter: Adapter, connection: Connection) -> str:
    if isinstance(connection, ProcessConnection):
        return adapter if isinstance(adapter, str) else shlex.join(connection.command)
    return "a function"


def _path(name: str, value: str | Path | None) -> Path | None:
    try:
        return None if value is None else validate.path_of(name, value)
    except ParameterError as error:
        raise UsageError(str(error)) from None


def _refused(name: str, value: object, allowed: str) -> UsageError:
    return UsageError(str(ParameterError(name, value, allowed)))


def _settings(cases: int, seed: int, pattern: str | None) -> Settings:
    if type(cases) is not int or not 0 < cases < 10**DIGITS:
        raise _refused("cases", cases, f"an integer, at least 1, of at most {DIGITS} digits")
    if type(seed) is not int or not abs(seed) < 10**DIGITS:
        raise _refused("seed", seed, f"an integer of at most {DIGITS} digits")
    if pattern is not None and not isinstance(pattern, str):
        raise _refused("pattern", pattern, "text")
    settings = Settings(cases=cases, seed=seed, pattern=pattern, vectors=True)
    settings.refuse_idle()
    return settings


@dataclass
class AdapterRun:
    """One adapter that several tests ask, one after another."""

    connection: Connection
    settings: Settings
    entries: Sequence[Expectation]
    command: str
    repro: Path | None = None
    timeouts: int = 0
    stopped: str = ""

    @cached_property
    def caps(self) -> Capabilities:
        """What the adapter declares; the first access starts the adapter.

        Raises
        ------
        AdapterUnusable
            The adapter cannot be started, or its `hello` cannot be used.
        """
        return begin(self.connection)

    def start(self) -> None:
        """Start the adapter and say hello if this has not happened yet; raises the same errors as `caps`."""
        assert self.caps

    def outcome(self, check: Check) -> Outcome:
        """Return the result of a check, or "not_run" once the kit has given up, for the same reasons as ``conform``."""
        if not self.stopped:
            try:
                return self._counted(judged(self.connection, self.caps, check, self.settings))
            except AdapterUnusable as unusable:
                self.stopped = f"the adapter could not be started again: {unusable}"
        return Outcome(check, "not_run", failure=Failure("not_run", self.stopped, ()))

    def too_wide(self, check: str) -> list[str]:
        """Return the faults of entries that cover a check and too many others that the adapter offers."""
        offered = [one.id for one in self.settings.chosen() if not one.obstacle(self.caps)]
        own = [entry for entry in self.entries if entry.covers(ADAPTER, check)]
        counts = [(entry, sum(entry.covers(ADAPTER, one) for one in offered)) for entry in own]
        return [fault for entry, count in counts for fault in expected.too_wide(ADAPTER, entry, count)]

    def _counted(self, outcome: Outcome) -> Outcome:
        self.timeouts += outcome.timed_out
        if self.timeouts >= MOST_TIMEOUTS:
            self.stopped = f"{self.timeouts} checks had ended in a time-out before"
        return outcome

    def close(self) -> None:
        """End the adapter."""
        self.connection.close()


@dataclass(frozen=True)
class AdapterTest:
    """One check of one adapter, as a test."""

    check: Check
    of: AdapterRun = field(repr=False)

    def __str__(self) -> str:
        return self.check.id

    def run(self) -> None:
        """Judge the adapter by the check; nothing is raised when it passes (CNF-49).

        Raises
        ------
        unittest.SkipTest
            The adapter does not declare what the check needs; the message names what is missing.
        AdapterFailed
            The check failed, was not run, or passed although a failure is expected.
        ExpectedFailure
            The check failed as expected.
        AdapterUnusable
            The adapter cannot be started, or its `hello` cannot be used.
        """
        obstacle = self.check.obstacle(self.of.caps)
        if obstacle:
            missing = [name for name in self.check.operations if not self.of.caps.offers(name)]
            raise unittest.SkipTest(f"{obstacle}: {', '.join(missing)}" if missing else obstacle)
        outcome = self.of.outcome(self.check)
        if outcome.verdict == "unsupported":
            raise unittest.SkipTest(outcome.note)
        [found] = expected.judge(ADAPTER, [outcome], self.of.entries)
        stale = expected.stale(ADAPTER, [outcome], self.of.entries) + self.of.too_wide(self.check.id)
        if stale or found.unexpected:
            raise AdapterFailed("\n".join([*self._block(found), *(f"STALE    {line}" for line in stale)]))
        if found.expected:
            raise ExpectedFailure(found.expected.reason)

    def _block(self, found: Judged) -> list[str]:
        """Return the failure as the kit prints it, with the name of the file that replays it."""
        report, connection = TargetReport(ADAPTER, self.of.caps, [found]), self.of.connection
        if isinstance(connection, ProcessConnection):
            report.command = relative(connection.command)
            report.options = defaults.waits(connection.timeout, connection.start_timeout)
        unwritten = self._write(report)
        block = reporting.failures(report, expected=False)
        return [line for line in (block, unwritten) if line]

    def _write(self, report: TargetReport) -> str:
        """Write the smallest case into the folder; return the error message, or an empty text if there was none."""
        try:
            if self.of.repro is not None:
                reporting.write_repros(report, self.of.repro)
        except OSError as error:
            return f"         the case could not be written to {self.of.repro}: {error.strerror}"
        return ""
