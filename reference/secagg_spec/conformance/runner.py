"""Runs checks against an adapter: draws cases, shrinks failures through the pipe, confirms them in a fresh process."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from secagg_spec.conformance.capabilities import Capabilities, greet
from secagg_spec.conformance.cases import refuse_impossible
from secagg_spec.conformance.checks import REGISTRY, Check
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Declined, Exchange
from secagg_spec.conformance.connection import Connection
from secagg_spec.conformance.wire import AdapterBroken, AdapterUnusable

BROKEN = ("crash", "timeout", "error", "protocol")
_CONFIRMATIONS = 3


@dataclass(frozen=True)
class Failure:
    """The smallest case in which a check failed."""

    verdict: str
    message: str
    transcript: tuple[Exchange, ...]
    expected: object = None
    again: int = _CONFIRMATIONS
    """In how many of three fresh processes it failed again."""
    draws: tuple[object, ...] = ()
    """What the check drew, in order: enough to judge the same case again."""


@dataclass(frozen=True)
class Outcome:
    """What a check found. `verdict` is "pass", "unsupported", "not_run", or the verdict of the failure."""

    check: Check
    verdict: str
    by_relation: bool = False
    reason_unchecked: bool = False
    cases: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    first_failure: int = 0
    """The number of the case that failed first, before shrinking; 0 when none did."""


@dataclass
class Settings:
    """How much is tried: cases per check, the seed, and which checks (shell patterns on id or clause)."""

    cases: int = 100
    seed: int = 0
    pattern: str | None = None
    progress: Callable[[Check, int, int], None] = lambda check, done, total: None

    def chosen(self) -> list[Check]:
        """Return the checks that the pattern selects, all when there is none."""
        return [check for check in REGISTRY.values() if self._matches(check)]

    def _matches(self, check: Check) -> bool:
        if self.pattern is None:
            return True
        names = (check.id, *check.clauses)
        return any(fnmatch.fnmatch(name.lower(), f"*{self.pattern.lower()}*") for name in names)


@dataclass
class _Run:
    """What one check has met so far."""

    cases: int = 0
    by_relation: bool = False
    reason_unchecked: bool = False
    last: Failure | None = None
    first_failure: int = 0


def run(connection: Connection, settings: Settings) -> tuple[Capabilities, list[Outcome]]:
    """Run the chosen checks on an adapter.

    Raises
    ------
    AdapterUnusable
        The adapter cannot be started, or its `hello` cannot be used.
    """
    caps = greet(connection.ask)
    refuse_impossible(caps)
    checks = settings.chosen()
    return caps, list(_outcomes(connection, caps, checks, settings))


def _outcomes(
    connection: Connection, caps: Capabilities, checks: Iterable[Check], settings: Settings
) -> Iterator[Outcome]:
    chosen = list(checks)
    for number, check in enumerate(chosen):
        settings.progress(check, number, len(chosen))
        if not check.runs_on(caps):
            yield Outcome(check, "unsupported")
            continue
        try:
            yield run_check(connection, caps, check, settings)
        except AdapterUnusable as unusable:
            failure = Failure("crash", f"the adapter could not be started again: {unusable}", ())
            yield Outcome(check, "not_run", failure=failure)
        except Exception as error:
            failure = Failure("kit", f"the kit itself failed in this check: {type(error).__name__}: {error}", ())
            yield Outcome(check, "not_run", failure=failure)


def run_check(connection: Connection, caps: Capabilities, check: Check, settings: Settings) -> Outcome:
    """Run one check, and confirm a failure in fresh processes."""
    met, start = _Run(), time.monotonic()
    _search(connection, caps, check, settings, met)
    connection.expect_hang(False)
    failure = met.last and _confirm(connection, caps, check, met.last)
    return Outcome(
        check,
        failure.verdict if failure else "pass",
        by_relation=met.by_relation,
        reason_unchecked=met.reason_unchecked,
        cases=met.cases,
        seconds=time.monotonic() - start,
        failure=failure,
        first_failure=met.first_failure,
    )


def _search(connection: Connection, caps: Capabilities, check: Check, settings: Settings, met: _Run) -> None:
    """Let Hypothesis draw cases and shrink the first failure; `met.last` is then the smallest one."""

    @hypothesis.seed(settings.seed)
    @hypothesis.settings(
        max_examples=min(settings.cases, check.examples or settings.cases),
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @hypothesis.given(st.data())
    def search(data: st.DataObject) -> None:
        met.cases += 1
        caller, draws = Caller(connection, caps), list[object]()

        def draw(strategy: st.SearchStrategy[object]) -> object:
            draws.append(data.draw(strategy))
            return draws[-1]

        try:
            check.judge(draw, caller)
        except Declined:
            return
        except CheckFailed as failed:
            met.first_failure = met.first_failure or met.cases
            met.last = _failure(failed, caller, draws)
            connection.expect_hang(failed.verdict == "timeout")
            raise
        finally:
            met.by_relation |= caller.by_relation
            met.reason_unchecked |= caller.reason_unchecked

    try:
        search()
    except CheckFailed:
        pass
    except (Flaky, BaseExceptionGroup) as group:
        if met.last is None:
            raise AssertionError(f"the check {check.id} itself failed") from group


def _failure(failed: CheckFailed, caller: Caller, draws: list[object]) -> Failure:
    return Failure(failed.verdict, str(failed), tuple(caller.transcript), failed.expected, draws=tuple(draws))


def _confirm(connection: Connection, caps: Capabilities, check: Check, failure: Failure) -> Failure:
    """Send the requests of a failure to fresh processes, and see in how many of them the same answers come.

    An adapter that takes explicit randomness, or none at all in these requests, must answer a fresh process alike; if
    it never does, the failure is that an answer depended on what came before (ADP-03).
    """
    if any(caps.offers(e.request.op) and e.request.op in _DRAWING and not e.request.rand for e in failure.transcript):
        return failure
    again = sum(_repeats(connection, failure) for _ in range(_CONFIRMATIONS))
    if again:
        return replace(failure, again=again)
    message = f"{failure.message} (but not in a fresh process: an answer depends on the requests before it)"
    return replace(failure, verdict="inconsistent", message=message, again=0)


_DRAWING = ("mds.encode", "quantizer.quantize", "lightsecagg.round")


def _repeats(connection: Connection, failure: Failure) -> bool:
    connection.restart()
    greet(connection.ask)
    for exchange in failure.transcript:
        try:
            answer = connection.ask(exchange.request)
        except AdapterBroken:
            return exchange.answer is None
        if exchange.answer is None or answer.as_json() != exchange.answer.as_json():
            return exchange.answer is not None and answer.kind == exchange.answer.kind == "error"
    return True
