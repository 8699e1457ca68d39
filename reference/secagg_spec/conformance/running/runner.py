"""Run checks on an adapter: draw cases, shrink failures by asking the adapter, and confirm them in a fresh process."""

from __future__ import annotations

import fnmatch
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import TracebackType
from typing import Any, NoReturn

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import Flaky

from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import WAITED, Connection
from secagg_spec.conformance.adapter.generators import NoStream
from secagg_spec.conformance.adapter.plain import KEPT, MESSAGE, Room, clip
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, RawLine, Request
from secagg_spec.conformance.cases.strategies import refuse_impossible
from secagg_spec.conformance.checks import REGISTRY, Check, base
from secagg_spec.conformance.outside import chance
from secagg_spec.conformance.running import chart, suite
from secagg_spec.conformance.running.drawing import Drawing, same_cases_everywhere
from secagg_spec.conformance.sdk.secagg_adapter import DRAWING, PARTIES
from secagg_spec.errors import UsageError
from secagg_spec.terminal import did_you_mean

BROKEN = ("crash", "timeout", "error", "protocol")
MOST_TIMEOUTS = 3
"""The number of checks with a time-out after which the remaining checks are not run."""
_CONFIRMATIONS = 3
"""The most fresh processes in which a failure is tried again."""
_HANG_SECONDS = 5.0
_MOST_SHRINKING = 10_000
"""The most requests for shrinking a case after the first failure of a check."""


@dataclass(frozen=True)
class Failure:
    """The smallest case in which a check failed."""

    verdict: str
    message: str
    transcript: tuple[base.Exchange, ...]
    expected: object = None
    repeats: bool | None = None
    """Whether it recurred in a fresh process; None if that was not tried, as where the adapter draws by itself."""
    clauses: tuple[str, ...] = ()
    """The broken clauses, if a correct step before the fault had a wrong answer."""
    at: chart.Place | None = None
    """The place of the fault in the transcript; None if several answers together show it."""
    also: tuple[str, ...] = ()
    """The other verdicts that its check met; the message names them."""
    draws: tuple[object, ...] = ()
    """The values that the check drew, in order: enough to judge the same case again."""
    repaired: bool = False
    """Whether the fault is that of a raw value, which the adapter repairs (CNF-92)."""


@dataclass(frozen=True)
class Outcome:
    """The result of a check. `verdict` is "pass", "unsupported", "not_run", or the verdict of the failure."""

    check: Check
    verdict: str
    by_relation: bool = False
    reason_unchecked: bool = False
    cases: int = 0
    seconds: float = 0.0
    failure: Failure | None = None
    first_failure: int = 0
    """The number of the case that failed first, before shrinking; 0 if none failed."""
    short: bool = False
    """Whether its share of the budget was spent before all cases were drawn."""
    timed_out: bool = False
    """Whether a case ended in a time-out, regardless of the verdict."""
    inexpressible: int = 0
    """The number of cases that cannot be expressed; they are not among `cases`."""
    note: str = ""
    """For "unsupported", the reason; for "pass", what the check cannot see."""


def _tell_nobody(check: Check, failure: Failure) -> None:
    """Keep nothing: a named function, because settings are pickled for other processes."""


class PatternError(UsageError):
    """A pattern chooses no check."""


@dataclass
class Settings:
    """The extent of a run: cases per check, the seed, the selected checks, and the time limit.

    `pattern` is a comma-separated list of shell patterns for ids or clauses; a check is selected if one of them fits.
    A pattern that is the whole id of a check or vector selects only that one. One after an exclamation mark leaves out
    what it fits.

    `vectors` says whether the test vectors are judged too, before the checks that draw cases.

    `budget` is a time in seconds for use in messages; after it, no further case is drawn. `deadline` is the reading of
    `time.monotonic` at which the budget is spent. `shares` has, by check, the reading at which its share of the budget
    is spent; after it, the check draws no further case. `found` is called with each failing case before it is
    confirmed; the smallest case comes last.
    """

    cases: int = 100
    seed: int = 0
    pattern: str | None = None
    progress: Callable[[Check, int, int], None] = lambda check, done, total: None
    budget: float | None = None
    deadline: float = math.inf
    shares: Mapping[str, float] = field(default_factory=dict)
    vectors: bool = False
    found: Callable[[Check, Failure], None] = _tell_nobody

    @property
    def spent(self) -> str:
        """Return the reason why no further case may be drawn; empty if more may be drawn."""
        late = time.monotonic() >= self.deadline
        return f"the budget of {self.budget:g} s (--budget) was spent before" if late and self.budget else ""

    def shared(self, caps: Capabilities, checks: Iterable[Check]) -> Settings:
        """Return settings in which each check that can run has an equal share of the budget, and what others left."""
        if self.budget is None:
            return self
        names = [check.id for check in checks if check.runs_on(caps)]
        begun, each = self.deadline - self.budget, self.budget / max(len(names), 1)
        ends = {name: min(begun + each * (at + 1), self.deadline) for at, name in enumerate(names)}
        return replace(self, shares=ends)

    def chosen(self) -> list[Check]:
        """Return the checks that the pattern selects and does not leave out; all checks if there is no pattern."""
        return [check for check in self._known() if self._matches(check)]

    def refuse_idle(self) -> None:
        """Refuse patterns that choose nothing, and the empty one, which would choose all.

        Raises
        ------
        PatternError
            One fits no check, or is empty as an unset variable is; or one leaves out all that the others choose.
        """
        known = [*self._known()]
        for one in self._patterns():
            name = one.removeprefix("!")
            if not name.strip():
                raise PatternError(f"{self.pattern!r} has an empty pattern, which would fit every check")
            if not any(_selects(name, check) for check in known):
                names = dict.fromkeys(word for check in known for word in (check.id, *check.clauses, *check.operations))
                kind = "check or vector" if self.vectors else "check"
                said = f"no {kind} has this id or clause (see secagg-spec conform --list-checks)"
                raise PatternError(f"{one}: {did_you_mean(name, names)}{said}")
        if not self.chosen():
            raise PatternError(f"{self.pattern}: this leaves out every check that it chooses")

    @property
    def left_out(self) -> list[str]:
        """The patterns of checks that are left out."""
        return [one[1:] for one in self._patterns() if one.startswith("!")]

    def _known(self) -> Iterable[Check]:
        return (suite.everything() if self.vectors else REGISTRY).values()

    def _patterns(self) -> list[str]:
        return self.pattern.split(",") if self.pattern is not None else []

    def _matches(self, check: Check) -> bool:
        wanted = [one for one in self._patterns() if not one.startswith("!")]
        chosen = not wanted or any(_selects(one, check) for one in wanted)
        return chosen and not any(_selects(one, check) for one in self.left_out)


def _selects(pattern: str, check: Check) -> bool:
    """Return whether a pattern matches an id or a clause; the whole id of a check or vector matches only that one."""
    if pattern in REGISTRY or (pattern.startswith(suite.PREFIX) and pattern in suite.vector_checks()):
        return check.id == pattern
    names = (check.id, *check.clauses, *(check.operations if check.fixed else ()))
    return any(fnmatch.fnmatch(name.lower(), f"*{pattern.lower()}*") for name in names)


@dataclass(frozen=True)
class _Known:
    """A case that failed: the choices of Hypothesis that draw it, and what came of it."""

    choices: tuple[Any, ...]
    failed: base.CheckFailed
    trace: TracebackType | None
    failure: Failure


@dataclass
class _Run:
    """The state of one check during its run."""

    cases: int = 0
    asked: int = 0
    most_asked: float = math.inf
    """The limit on requests, tested before each further case; it is finite only after a failure."""
    by_relation: bool = False
    reason_unchecked: bool = False
    first: Failure | None = None
    last: Failure | None = None
    first_failure: int = 0
    kinds: dict[str, Failure] = field(default_factory=dict)
    """The last failure of each verdict; `last` is the last failure with the verdict that occurred first."""
    hanging_since: float = math.inf
    unusable: AdapterUnusable | None = None
    limits: dict[str, None] = field(default_factory=dict)
    """What a pass cannot see; each sentence once, in the order in which the check gave them."""
    cut: bool = False
    """Whether the budget was spent before all cases were drawn, and not the check's share of it alone."""
    short: bool = False
    """Whether the check's share of the budget was spent, after one case at least."""
    without_stream: int = 0
    """The number of cases skipped because they need a stream that the adapter does not offer."""
    declined: int = 0
    """The number of cases that no answer decides, as one outside the declared ranges that was declined."""
    undecided: str = ""
    """Why the last of them is not decided."""
    inexpressible: int = 0
    """The number of cases that the interface of the implementation cannot say (ADP-44)."""
    choices: tuple[Any, ...] | None = None
    """What draws the first failure again, if its session was one that cases share."""
    known: _Known | None = None
    """The case that failed last."""


@cache
def _of_kind(verdict: str) -> type[base.CheckFailed]:
    """Return an exception class for each verdict, because Hypothesis shrinks each class separately."""
    return type("CheckFailed", (base.CheckFailed,), {})


class _Again(BaseException):
    """The case that failed last is drawn again."""


class _Enough(BaseException):
    """End the search of Hypothesis, which would treat an `Exception` as a failure of the check."""


def run(connection: Connection, settings: Settings) -> tuple[Capabilities, list[Outcome]]:
    """Run the chosen checks on an adapter.

    Raises
    ------
    AdapterUnusable
        The adapter cannot be started, or its `hello` cannot be used.
    """
    caps, checks = begin(connection), settings.chosen()
    settings = settings.shared(caps, checks)
    return caps, list(outcomes(caps, checks, settings, lambda check: judged(connection, caps, check, settings)))


def begin(connection: Connection) -> Capabilities:
    """Return what an adapter declares; refuse declarations for which checks cannot draw cases.

    Raises
    ------
    AdapterUnusable
        The adapter cannot be started, or its `hello` cannot be used.
    """
    caps = greet(connection.ask)
    refuse_impossible(caps)
    return caps


def outcomes(
    caps: Capabilities, checks: Iterable[Check], settings: Settings, find: Callable[[Check], Outcome]
) -> Iterator[Outcome]:
    """Yield the outcome of each check in order; for a check that can run, call `find`, until too many things go wrong.

    `find` is called for each check that can run on `caps`. It is no longer called once the adapter cannot be restarted
    (`AdapterUnusable`), too many checks had a time-out, or the budget is spent.
    """
    chosen, stopped, timeouts = list(checks), "", 0
    for number, check in enumerate(chosen):
        settings.progress(check, number, len(chosen))
        obstacle = check.obstacle(caps)
        if obstacle:
            yield Outcome(check, "unsupported", note=obstacle)
            continue
        stopped = stopped or settings.spent
        if stopped:
            yield _not_run(check, stopped)
            continue
        try:
            outcome = find(check)
        except AdapterUnusable as unusable:
            stopped = f"the adapter could not be started again: {unusable}"
            outcome = _not_run(check, stopped)
        timeouts += outcome.timed_out
        if timeouts >= MOST_TIMEOUTS:
            stopped = stopped or f"{timeouts} checks had ended in a time-out before"
        yield outcome


def _not_run(check: Check, why: str, cases: int = 0) -> Outcome:
    return Outcome(check, "not_run", cases=cases, failure=Failure("not_run", clip(why, MESSAGE), ()))


def judged(connection: Connection, caps: Capabilities, check: Check, settings: Settings) -> Outcome:
    """Run one check; if the kit itself has an error, the check counts as not run.

    Raises
    ------
    AdapterUnusable
        The adapter could not be started again, and no case had failed before.
    """
    try:
        return run_check(connection, caps, check, settings)
    except AdapterUnusable:
        raise
    except Exception as error:
        return _not_run(check, f"the kit itself failed in this check: {type(error).__name__}: {error}")


def run_check(connection: Connection, caps: Capabilities, check: Check, settings: Settings) -> Outcome:
    """Run one check, and confirm a failure in fresh processes.

    Raises
    ------
    AdapterUnusable
        The adapter could not be started again, and no case had failed before.
    """
    met, start = _Run(), time.monotonic()
    _search(connection, caps, check, settings, met)
    connection.expect_hang(False)
    if met.last is None and met.unusable:
        raise met.unusable
    if met.last is None and met.cut:
        return _not_run(check, f"{settings.spent} its cases were through", met.cases)
    failure = bounded(_with_others(_confirmed(connection, caps, met), met))
    unjudged = met.without_stream + met.inexpressible + met.declined
    if not met.asked or (unjudged == met.cases and failure is None):
        note = base.NOT_EXPRESSIBLE if met.inexpressible else met.undecided if met.declined else base.NO_CASE
        return Outcome(check, "unsupported", note=note, inexpressible=met.inexpressible)
    return Outcome(
        check,
        failure.verdict if failure else "pass",
        by_relation=met.by_relation,
        reason_unchecked=met.reason_unchecked,
        cases=met.cases - unjudged,
        inexpressible=met.inexpressible,
        seconds=time.monotonic() - start,
        failure=failure,
        first_failure=met.first_failure,
        short=met.short,
        timed_out=met.hanging_since < math.inf,
        note="" if failure else chance.said(met.limits),
    )


def _with_others(failure: Failure | None, met: _Run) -> Failure | None:
    """Return a failure with the other failures named in its message, one for each verdict."""
    if failure is None or met.first is None:
        return failure
    others = {kind: f"{kind}: {other.message}" for kind, other in met.kinds.items() if kind != met.first.verdict}
    if not others:
        return failure
    message = f"{failure.message} (also met: {'; '.join(others.values())})"
    return replace(failure, message=message, also=tuple(others))


def first_failure(connection: Connection, caps: Capabilities, check: Check, settings: Settings) -> bool:
    """Return whether a check fails; the first failure is not shrunk or confirmed."""
    met = _Run()
    _search(connection, caps, check, settings, met, shrink=False)
    return met.last is not None


def _search(
    connection: Connection, caps: Capabilities, check: Check, settings: Settings, met: _Run, *, shrink: bool = True
) -> None:
    """Let Hypothesis draw cases and shrink the first failure; `met.last` is then the smallest one."""
    if check.fixed:
        with suppress(base.CheckFailed, _Enough):
            _case(connection, caps, check, settings, met, Drawing(_draw_nothing))
        return
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    _draw_cases(connection, caps, check, settings, met, phases)
    if met.choices is not None and shrink:
        _draw_cases(connection, caps, check, settings, met, (Phase.reuse, Phase.shrink), met.choices)
    met.known = None


def _draw_cases(
    connection: Connection,
    caps: Capabilities,
    check: Check,
    settings: Settings,
    met: _Run,
    phases: tuple[Phase, ...],
    known: tuple[Any, ...] | None = None,
) -> None:
    """Let Hypothesis draw cases; if choices are known that fail, begin with them, and share no sessions."""

    def search(draw: st.DrawFn) -> None:
        kept = None if known else caps.kept.setdefault("shared", {})
        drawing = Drawing(draw, kept, settings.seed, settings.cases)
        _case(connection, caps, check, settings, met, drawing)

    given = hypothesis.given(_drawing())(search)
    # Without a key, Hypothesis would compute one from the function's source each time. Its own `seed` drops a database.
    vars(given).update(_hypothesis_internal_database_key=b"", _hypothesis_internal_use_seed=settings.seed)
    stored = InMemoryExampleDatabase() if known else None
    if stored is not None and known:
        # Under its first key, Hypothesis would take the choices for smallest ones and not shrink them.
        stored.save(b".secondary", choices_to_bytes(known))
    chosen = hypothesis.settings(
        max_examples=check.count(settings.cases),
        database=stored,
        deadline=None,
        derandomize=False,
        phases=phases,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        with same_cases_everywhere():
            chosen(given)()
    except (base.CheckFailed, _Enough):
        pass
    except (Flaky, BaseExceptionGroup) as group:
        if met.last is None and met.unusable is None and not (met.cut or met.short):
            raise AssertionError(f"the check {check.id} itself failed") from group


def _draw_nothing(strategy: st.SearchStrategy[Any]) -> NoReturn:
    raise AssertionError("a fixed check draws nothing")


@st.composite
def _drawing(draw: st.DrawFn) -> st.DrawFn:
    """Return the function that draws; per value, it is cheaper than ``st.data()``."""
    return draw


def _case(
    connection: Connection, caps: Capabilities, check: Check, settings: Settings, met: _Run, drawing: Drawing
) -> None:
    """Judge one case, and record the result in `met`. A failure in a shared session ends the search."""
    met.short = bool(met.cases) and met.last is None and time.monotonic() >= settings.shares.get(check.id, math.inf)
    met.cut = not met.short and bool(settings.spent)
    if met.cut or met.short or time.monotonic() > met.hanging_since + _HANG_SECONDS or met.asked > met.most_asked:
        raise _Enough
    met.cases += 1
    again: _Known | None = None
    until = min(settings.deadline, settings.shares.get(check.id, math.inf))
    begun = partial(_leave_known, met)
    caller = base.Caller(connection, caps, cases=settings.cases, shuffles=not check.fixed, until=until, begun=begun)
    try:
        check.judge(drawing, caller)
    except base.NotExpressible:
        met.inexpressible += 1
        return
    except base.Declined as declined:
        met.declined, met.undecided = met.declined + 1, str(declined) or suite.OUTSIDE
        return
    except NoStream:
        met.without_stream += 1
        return
    except base.CheckFailed as failed:
        failure = _failure(failed, caller, drawing.draws)
        _note(connection, met, failed, failure)
        settings.found(check, failure)
        met.choices = drawing.choices
        if met.choices is not None:
            raise _Enough from None
        failed.__class__ = _of_kind(failed.verdict)
        if not check.fixed:
            met.known = _Known(current_build_context().data.choices, failed, failed.__traceback__, failure)
        raise
    except _Again:
        again = met.known
    except AdapterUnusable as unusable:
        met.unusable = unusable
        raise _Enough from None
    finally:
        caller.end_sessions()
        met.asked += caller.asked
        met.by_relation |= caller.by_relation
        met.reason_unchecked |= caller.reason_unchecked
        met.limits |= dict.fromkeys(caller.limits)
    if again:  # out of the handler, since Hypothesis takes a failure in another context for another one
        _note(connection, met, again.failed, again.failure)
        raise again.failed.with_traceback(again.trace)


def _leave_known(met: _Run) -> None:
    """Ask nothing again for the case that failed last: Hypothesis draws the smallest one twice more."""
    if met.known and met.known.choices == current_build_context().data.choices:
        raise _Again


def _note(connection: Connection, met: _Run, failed: base.CheckFailed, failure: Failure) -> None:
    """Record a failure in `met`."""
    met.first_failure = met.first_failure or met.cases
    met.most_asked = min(met.most_asked, met.asked + _MOST_SHRINKING)
    met.first = met.first or failure
    met.kinds[failed.verdict] = failure
    met.last = met.kinds[met.first.verdict]
    if failed.verdict == "timeout":
        met.hanging_since = min(met.hanging_since, time.monotonic())
    connection.expect_hang(failed.verdict == "timeout")


def _failure(failed: base.CheckFailed, caller: base.Caller, draws: list[object]) -> Failure:
    return Failure(
        failed.verdict,
        str(failed),
        tuple(caller.transcript),
        failed.expected,
        clauses=failed.clauses,
        at=_place(failed.step, caller.transcript),
        draws=tuple(draws),
        repaired=failed.repaired,
    )


def _place(step: int | None, transcript: Sequence[base.Exchange]) -> chart.Place | None:
    """Return the place in the transcript of a step that a check found at fault."""
    asked = (None if isinstance(e.request, RawLine) else vars(e.request) for e in transcript)
    exchanges = list(zip(asked, (e.answer and e.answer.as_json() for e in transcript), strict=True))
    return None if step is None or not exchanges else chart.place(exchanges, None if step == base.LAST else step)


def bounded(failure: Failure | None) -> Failure | None:
    """Return a failure with the adapter's text cut to the limits of a report; the last answer has priority (CNF-71)."""
    if failure is None:
        return None
    room, kept = Room(KEPT), list[base.Exchange]()
    for exchange in reversed(failure.transcript):
        said = exchange.answer
        fit = said and replace(
            said, value=room.fit(said.value), message=clip(said.message, MESSAGE), blamed=room.fit(said.blamed)
        )
        kept.append(replace(exchange, answer=fit))
    return replace(failure, message=clip(failure.message, MESSAGE), transcript=tuple(reversed(kept)))


def _confirmed(connection: Connection, caps: Capabilities, met: _Run) -> Failure | None:
    """Return the smallest failure that recurs; for time-outs, whose shrinking is unreliable, else the first failure."""
    if met.last is None or met.first is None:
        return None
    try:
        smallest = _confirm(connection, caps, met.last)
        if smallest.verdict != "inconsistent" or met.last.verdict != "timeout" or met.first is met.last:
            return smallest
        return _confirm(connection, caps, met.first)
    except AdapterUnusable as unusable:
        return replace(met.last, message=f"{met.last.message} (and it could not be started again: {unusable})")


def _confirm(connection: Connection, caps: Capabilities, failure: Failure) -> Failure:
    """Send the requests of a failure to fresh processes, at most three, until one gives the same answers.

    If an adapter takes explicit randomness, or these requests need none, a fresh process must answer in the same way.
    If none of the three does, the failure is that an answer depends on earlier requests (ADP-03).
    """
    if any(caps.offers(e.request.op) and _draws(e.request) for e in failure.transcript):
        return failure
    times = 1 if failure.verdict == "timeout" else _CONFIRMATIONS
    again = next((found for _ in range(times) if (found := _repeated(connection, failure))), None)
    if again:
        return again
    message = f"{failure.message} (but not in a fresh process: an answer depends on the requests before it)"
    also = tuple(kind for kind in dict.fromkeys((failure.verdict, *failure.also)) if kind != "inconsistent")
    return replace(failure, verdict="inconsistent", message=message, repeats=False, also=also)


def _draws(request: Request) -> bool:
    """Return whether a request makes the adapter sample something, as an operation or as a party of a session."""
    party = f"{request.params.get('protocol')}.{request.params.get('role')}"
    return not request.rand and (request.op in DRAWING or bool(PARTIES.get(party, ((), ()))[1]))


def _repeated(connection: Connection, failure: Failure) -> Failure | None:
    """Return a failure that recurs in a fresh process; None if it does not recur."""
    connection.restart()
    greet(connection.ask)
    try:
        return _answered_alike(connection, failure)
    finally:
        _end_sessions(connection, failure)


def _end_sessions(connection: Connection, failure: Failure) -> None:
    """Close the sessions that a failure left open when it was sent again, since checks reuse the same handles."""
    opened = [e.request.params.get("handle") for e in failure.transcript if e.request.op == "session.new"]
    with suppress(AdapterBroken):
        for handle in dict.fromkeys(str(handle) for handle in opened if handle is not None):
            connection.ask(Request("session.free", {"handle": handle}))


def _answered_alike(connection: Connection, failure: Failure) -> Failure | None:
    """Return a failure whose answers come again, after a time-out with the time that was waited now; else None."""
    again = replace(failure, repeats=True)
    for exchange in failure.transcript:
        line = exchange.request
        try:
            answer = connection.ask_raw(line.data, line.id) if isinstance(line, RawLine) else connection.ask(line)
        except AdapterBroken as broken:
            waited = WAITED.search(str(broken)) if broken.verdict == failure.verdict == "timeout" else None
            again = replace(again, message=WAITED.sub(waited[0], failure.message, 1)) if waited else again
            return again if exchange.answer is None else None
        if exchange.answer is None or answer.as_json() != exchange.answer.as_json():
            return again if exchange.answer is not None and answer.kind == exchange.answer.kind == "error" else None
    return again
