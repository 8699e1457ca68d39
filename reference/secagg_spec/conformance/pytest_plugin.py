"""A plugin of pytest: ``pytest --secagg-adapter "./adapter"`` runs each check of the kit as a test.

The plugin imports the checks only if the option is given. With pytest-xdist, each worker starts its own adapter.
"""

from __future__ import annotations

import unittest
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from secagg_spec.conformance.adapter.values import count, integer, path, seconds, writable_folder

if TYPE_CHECKING:
    from secagg_spec.conformance.api import AdapterTest

_NAME = "secagg"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup(_NAME, "secagg-spec: judge an implementation of secure aggregation")
    group.addoption("--secagg-adapter", metavar="COMMAND", help="the command that starts the adapter, as one word")
    group.addoption("--secagg-expect", metavar="FILE", type=path, help="expected failures (TOML); target name: adapter")
    group.addoption("--secagg-fuzz", metavar="N", type=count, default=100, help="cases for each check (100)")
    group.addoption("--secagg-seed", metavar="N", type=integer, default=0, help="seed of the cases (0)")
    group.addoption("--secagg-k", metavar="PATTERN", help="only checks whose id or clause matches")
    group.addoption("--secagg-timeout", metavar="S", type=seconds, default=10.0, help="seconds for one answer (10)")
    group.addoption("--secagg-repro", metavar="DIR", type=path, default=Path("repro"), help="where failing cases go")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options with which nothing would be judged, and an option that the command line has twice.

    The command line may change what a file of settings says, so only its own words are counted.
    """
    adapter = config.getoption("--secagg-adapter")
    if adapter is not None and not adapter.strip():
        raise pytest.UsageError("--secagg-adapter: it is empty, and must be the command that starts the adapter")
    words = [word.partition("=")[0] for word in map(str, config.invocation_params.args)]
    given = Counter(word for word in words if word.startswith(f"--{_NAME}-"))
    for option, times in given.items():
        if adapter is None:
            raise pytest.UsageError(f"{option}: nothing is judged without --secagg-adapter")
        if times > 1:
            raise pytest.UsageError(f"{option}: is given twice, and one of the values would be lost")
    if adapter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Asked())


class _Asked:
    """Counts the checks that asked the adapter: a run in which none did is no success (CNF-01)."""

    def __init__(self) -> None:
        self.asked = self.skipped = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a check; an expected failure, which pytest calls skipped, has asked."""
        if report.nodeid.startswith(f"{_NAME}::") and (report.when == "call" or not report.passed):
            skipped = report.skipped and not hasattr(report, "wasxfail")
            self.skipped, self.asked = self.skipped + skipped, self.asked + (not skipped)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Give a run without a failure, in which each check was skipped, the code of one without tests."""
        if self.skipped and not self.asked and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say that nothing was asked."""
        if self.skipped and not self.asked:
            terminalreporter.write_line(f"{_NAME}: nothing was asked: all {self.skipped} checks were skipped")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse an unusable adapter before pytest-xdist starts workers, whose errors it would not show."""
    if session.config.getoption("--secagg-adapter") and session.config.getoption("numprocesses", None):
        _tests(session.config)[0].of.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each check, before tests are selected by name."""
    if config.getoption("--secagg-adapter"):
        collector = AdapterCollector.from_parent(session, name=_NAME, nodeid=_NAME, tests=_tests(config))
        items.extend(session.genitems(collector))


def _tests(config: pytest.Config) -> list[AdapterTest]:
    """Return the tests of an adapter that has answered `hello`; an unusable adapter ends the run at once."""
    from secagg_spec.conformance import api  # noqa: PLC0415
    from secagg_spec.conformance.adapter.plain import shown  # noqa: PLC0415
    from secagg_spec.conformance.adapter.wire import AdapterUnusable  # noqa: PLC0415
    from secagg_spec.conformance.running.expectations import ExpectationsError  # noqa: PLC0415
    from secagg_spec.conformance.running.runner import PatternError  # noqa: PLC0415
    from secagg_spec.errors import UsageError  # noqa: PLC0415

    option = config.getoption
    try:
        writable_folder("--secagg-repro", option("--secagg-repro"))
    except UsageError as error:
        raise pytest.UsageError(shown(str(error))) from None
    try:
        tests = api.adapter_tests(
            option("--secagg-adapter"),
            cases=option("--secagg-fuzz"),
            seed=option("--secagg-seed"),
            pattern=option("--secagg-k"),
            expect=option("--secagg-expect"),
            repro=option("--secagg-repro"),
            timeout=option("--secagg-timeout"),
        )
        tests[0].of.start()
    except (AdapterUnusable, UsageError) as error:
        kinds = {ExpectationsError: "--secagg-expect", PatternError: "--secagg-k"}
        blamed = next((name for kind, name in kinds.items() if isinstance(error, kind)), "--secagg-adapter")
        raise pytest.UsageError(f"{blamed}: {shown(str(error))}") from None
    return tests


class AdapterCollector(pytest.Collector):
    """All checks of the kit, for one adapter."""

    def __init__(self, *, tests: Sequence[AdapterTest], **named: Any) -> None:
        super().__init__(**named)
        self.tests = tests

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each check."""
        self.config.add_cleanup(self.tests[0].of.close)
        for test in self.tests:
            yield AdapterItem.from_parent(self, name=str(test), test=test)


class AdapterItem(pytest.Item):
    """One check of the adapter."""

    def __init__(self, *, test: AdapterTest, **named: Any) -> None:
        super().__init__(**named)
        self.test = test

    def runtest(self) -> None:
        """Run the check: an undeclared operation gives a skip, and an expected failure gives an xfail."""
        from secagg_spec.conformance.api import ExpectedFailure  # noqa: PLC0415

        try:
            self.test.run()
        except unittest.SkipTest as skipped:
            pytest.skip(str(skipped))
        except ExpectedFailure as failed:
            pytest.xfail(str(failed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the failure as the kit prints it, without a Python traceback."""
        from secagg_spec.conformance.api import AdapterFailed  # noqa: PLC0415

        if isinstance(excinfo.value, AdapterFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location of the check: its id."""
        return Path(_NAME), None, f"{_NAME}::{self.name}"
