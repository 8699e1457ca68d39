"""The command ``secagg-spec conform``."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from secagg_spec import resources
from secagg_spec.commands import opening, options
from secagg_spec.commands.conform_options import FILES, add_parser
from secagg_spec.conformance.adapter import values
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import MESSAGE, clip, counted, for_encoding, in_encoding, relative, shown
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.mutation import coverage
from secagg_spec.conformance.reports import brief, document, junit, page, summaries
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.reports.report import TargetReport
from secagg_spec.conformance.running import defaults, drawing, parallel, repros
from secagg_spec.conformance.running import expectations as expected
from secagg_spec.conformance.running.runner import Outcome, Settings, begin, judged, outcomes
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.errors import UsageError
from secagg_spec.system import replaceable, write_new, write_whole
from secagg_spec.terminal import Progress, painted, width


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return the options in these words, for another command that judges."""
    top = argparse.ArgumentParser()
    add_parser(top.add_subparsers())
    return top.parse_args(["conform", *words])


def main(given: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if given.list_targets:
        print("\n".join(f"{target.name:<10} {target.about}" for target in TARGETS.values()))
        return 0
    settings = _settings(given)
    options.refuse_idle(settings)
    if given.list_checks:
        print("\n".join(f"{check.id:<46} {', '.join(check.clauses):<24} {check.text}" for check in settings.chosen()))
        return 0
    _refuse_unwritable(given)
    _point_out_options(given.adapter)
    drawing.leave_the_folder_alone()
    named = opening.connections(given.target, given.adapter, given.timeout, given.start_timeout)
    entries = {name: expected.known(name, given.expect) for name, _ in named}
    reports, files = list[TargetReport](), _Files(settings, given)
    if not files.begin():
        return 2
    try:
        _judge_all(reports, named, entries, settings, given)
    except KeyboardInterrupt:
        files.end(reports, complete=False)
        raise
    written = files.end(reports) and _write_baseline(reports, given.baseline)
    if given.brief:
        print(files.brief(reports))
    else:
        _print(reports, settings)
    return reporting.exit_code(reports) if written else 2


def _settings(given: argparse.Namespace) -> Settings:
    return Settings(
        cases=given.fuzz,
        seed=given.seed,
        pattern=options.pattern(given),
        budget=given.budget,
        deadline=time.monotonic() + given.budget if given.budget else math.inf,
        vectors=not given.no_vectors,
    )


def _refuse_unwritable(given: argparse.Namespace) -> None:
    values.writable_folder("--repro", given.repro)
    for option in FILES:
        path = getattr(given, option)
        if path:
            begins = '{\n  "schema": "secagg-spec-report/' if option == "json" else None
            values.writable_file(f"--{option}", path, given.expect, *values.files_of(given.adapter), begins=begins)
    if given.baseline:
        if os.path.lexists(given.baseline):
            raise UsageError(f"--baseline {given.baseline}: this exists, and it is not written over; name a new file")
        values.writable_file("--baseline", given.baseline)
    named: dict[Path, str] = {}
    for option in (*FILES, "baseline"):
        path = getattr(given, option)
        if path and (other := named.setdefault(path.resolve(), option)) != option and replaceable(path):
            raise UsageError(f"--{option} {path}: --{other} names the same file, and one of them would be lost")
        if path and path.name.endswith(repros.ENDS) and path.resolve().parent == given.repro.resolve():
            raise UsageError(f"--{option} {path}: --repro may store a failing case there, and one would be lost")


def _write_baseline(reports: Sequence[TargetReport], path: Path | None) -> bool:
    """Write what failed as expectations, and return whether that was possible; without a path, do nothing."""
    if path is None or not any(report.judged for report in reports):
        return True
    failed = {report.name: expected.failures(report.judged) for report in reports}
    count = sum(map(len, failed.values()))
    if not count:
        print(f"nothing failed, so {path} was not written", file=sys.stderr)
        return True
    try:
        write_new(path, expected.written(failed).encode())
    except OSError as error:
        print(f"secagg-spec conform: --baseline {path}: {error.strerror}", file=sys.stderr)
        return False
    said = f"wrote {counted(count, 'failure')} to {path}: give each its reason, and judge with --expect {path}"
    left = sum(one.outcome.verdict == "not_run" for report in reports for one in report.judged)
    more = (
        f"; {counted(left, 'check was', 'checks were')} not run: a run with this file passes only if every check is run"
        if left
        else ""
    )
    print(f"{said}{more}", file=sys.stderr)
    return True


def _point_out_options(adapter: Sequence[str]) -> None:
    """Print a note if an option of this command stands after ``--``, where it goes to the adapter."""
    known = {f"--{option}" for option in (*FILES, "expect", "baseline", "repro", "fuzz", "seed", "jobs")}
    theirs = [word for word in adapter if word.partition("=")[0] in known]
    if theirs:
        print(f"note: arguments after -- go to the adapter: {shown(shlex.join(theirs))}", file=sys.stderr)


# ------------------------------------------------------------------------------------------------------- judging


def _judge_all(
    reports: list[TargetReport],
    named: Sequence[tuple[str, ProcessConnection | str]],
    entries: Mapping[str, Sequence[expected.Expectation]],
    settings: Settings,
    given: argparse.Namespace,
) -> None:
    """Judge the implementations one by one. Each finding goes into `reports` at once, to survive an interrupt."""
    progress = _Progress(len(named), quiet=given.brief)
    settings = replace(settings, progress=progress.judged)
    with parallel.workers(given.jobs) if given.jobs > 1 else nullcontext() as workers:
        for name, connection in named:
            reports.append(TargetReport(name, options=defaults.waits(given.timeout, given.start_timeout)))
            if isinstance(connection, str):
                reports[-1].absent = connection
            else:
                try:
                    _judge(reports[-1], connection, entries[name], settings, progress, workers)
                finally:
                    _write_repros(reports[-1], given.repro)


def _judge(
    report: TargetReport,
    connection: ProcessConnection,
    entries: Sequence[expected.Expectation],
    settings: Settings,
    progress: _Progress,
    workers: parallel.Workers | None,
) -> None:
    """Judge one implementation, and write the findings into its report."""
    report.command = relative(connection.command)
    progress.begin(report.name)
    done = "ended"
    try:
        caps = report.caps = begin(connection)
        for outcome in _outcomes(connection, caps, settings, workers):
            report.judged += expected.judge(report.name, [outcome], entries)
        done = "done"
    except AdapterUnusable as unusable:
        command = shlex.join(connection.command)
        said = clip(str(unusable), MESSAGE)
        report.unusable = said if command in said else f"{command}: {said}"
    finally:
        progress.close(done)
        connection.close()
    report.power = _power(report)
    report.stale = expected.stale(report.name, [judged.outcome for judged in report.judged], entries)


def _power(report: TargetReport) -> coverage.Reach | None:
    """Return the bugs that this run can detect; None if no check ran, or if the checks found more than that."""
    verdicts = {judged.outcome.check.id: judged.outcome.verdict for judged in report.judged}
    ran = {check for check, verdict in verdicts.items() if verdict not in ("unsupported", "not_run")}
    found = coverage.could_have_caught(report.caps, ran, could_run=verdicts) if report.caps and ran else None
    failed = any(judged.outcome.failure for judged in report.judged)
    return None if found and not found.n and failed else found


def _outcomes(
    connection: ProcessConnection, caps: Capabilities, settings: Settings, workers: parallel.Workers | None
) -> Iterator[Outcome]:
    """Yield the outcome of each check, computed in this process or in several."""
    checks = settings.chosen()
    if workers is not None:
        connection.close()
        return workers.outcomes(connection, caps, checks, settings)
    settings = settings.shared(caps, checks)
    return outcomes(caps, checks, settings, lambda check: judged(connection, caps, check, settings))


def _write_repros(report: TargetReport, folder: Path) -> None:
    """Write the smallest case of each failure; keep the stored cases of checks that did not run."""
    judged = {judged.outcome.check.id for judged in report.judged if judged.outcome.verdict != "not_run"}
    try:
        reporting.renew_repros(report, folder, judged)
    except OSError as error:
        print(f"--repro {folder}: {error.strerror}", file=sys.stderr)


def _print(reports: Sequence[TargetReport], settings: Settings) -> None:
    text = "\n".join(_pieces(reports, settings))
    print(for_encoding(text, sys.stdout.encoding or "utf-8"))


def _pieces(reports: Sequence[TargetReport], settings: Settings) -> Iterator[str]:
    judged = any(report.caps for report in reports)
    if judged:
        yield reporting.table(reports, resources.clauses())
    for is_expected in (True, False):
        blocks = [reporting.failures(report, expected=is_expected) for report in reports]
        for report, block in zip(reports, blocks, strict=True):
            if block:
                kind = "expected failures" if is_expected else "FAILURES" if report.failed else "NOT RUN"
                yield f"\n{report.name}: {kind}\n{block}"
    for report in reports:
        if by_chance := reporting.chances(report):
            yield f"\n{report.name}: passes that rest on chance\n{by_chance}"
    yield ""
    for report in reports:
        yield from (f"STALE    {line}" for line in report.stale)
        yield reporting.summary(report)
        outcomes = (judged.outcome for judged in report.judged)
        passed = ((one.check.id, one.cases, reporting.why_fewer(one, settings)) for one in outcomes)
        if few := reporting.fewer(settings.cases, passed):
            yield f"  {few}"
    counts = " (the table counts clauses, the lines above count checks)" if judged else ""
    yield f"\n{reporting.conclusion(reports)}{counts}"


class _Files:
    """The output files. From the start of the run until its end they say that the run is incomplete (CNF-68)."""

    def __init__(self, settings: Settings, given: argparse.Namespace) -> None:
        self._settings = settings
        self._paths: dict[str, Path] = {option: path for option in FILES if (path := getattr(given, option))}
        self._summary = ""

    def brief(self, reports: Sequence[TargetReport]) -> str:
        """Return the brief summary of the run (CNF-93)."""
        body = document.document(reports, self._settings)
        return in_encoding(brief.summary(body, painted, width()), sys.stdout.encoding or "utf-8")

    def begin(self) -> bool:
        """Write the files before judging, over those of earlier runs; return whether all can be written."""
        return self._write([], {o: path for o, path in self._paths.items() if replaceable(path)}, complete=False)

    def end(self, reports: Sequence[TargetReport], *, complete: bool = True) -> bool:
        """Write the files; return whether all were written. The report of an incomplete run has no footer (CNF-09)."""
        return self._write(reports, self._paths, complete=complete)

    def _write(self, reports: Sequence[TargetReport], paths: Mapping[str, Path], *, complete: bool) -> bool:
        body = document.document(reports, self._settings, complete=complete)
        texts: dict[str, Callable[[], str]] = {
            "json": lambda: document.as_text(body),
            "html": lambda: page.html(body),
            "markdown": lambda: summaries.markdown(body),
            "badge": lambda: document.as_text(summaries.badge(body)),
            "junit": lambda: junit.document(reports, complete=complete),
        }
        written = [self._written(option, path, texts[option]()) for option, path in paths.items()]
        return all(written)

    def _written(self, option: str, path: Path, text: str) -> bool:
        try:
            write_whole(path, self._added(path, text) if option == "markdown" else text)
        except OSError as error:
            print(f"secagg-spec conform: --{option} {path}: {error.strerror}", file=sys.stderr)
            return False
        return True

    def _added(self, path: Path, text: str) -> str:
        """Return the content of a file plus this summary; the summary replaces an earlier one of this run."""
        there = path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else ""
        head, found, tail = there.rpartition(self._summary) if self._summary else ("", "", there)
        self._summary = text
        begin = "" if tail.endswith("\n") or not tail else "\n"
        return f"{head}{text}{tail}" if found else f"{tail}{begin}{text}"


class _Progress(Progress):
    """Says on standard error which implementation is judged, unless quiet; on a terminal also what is left to do."""

    def __init__(self, number: int, *, quiet: bool) -> None:
        super().__init__()
        self._quiet, self._number, self._done = quiet, max(number, 1), -1
        self._name = ""
        self._begun = 0.0

    def begin(self, name: str) -> None:
        self._name, self._begun, self._done = name, time.monotonic(), self._done + 1
        if not self._quiet:
            print(f"{name}: judging ...", file=sys.stderr, flush=True)

    def judged(self, check: Check, done: int, total: int) -> None:
        """Show which check is judged."""
        self(f"{self._name}  {done + 1}/{total}  {check.id}", (self._done + done / total) / self._number)

    def close(self, done: str) -> None:
        """Say that an implementation is judged, and how long that took."""
        self.end()
        if not self._quiet:
            print(f"{self._name}: {done} after {time.monotonic() - self._begun:.0f} s", file=sys.stderr, flush=True)
