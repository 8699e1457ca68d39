"""What a check is, and how it asks.

A check draws a case, asks the adapter about it, and raises `CheckFailed` when the text rules an answer out. A check
draws everything before it asks, so that answers never influence what is drawn.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from hashlib import sha256
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.arithmetic.wide import ring
from secagg_spec.conformance.adapter import generators, results, wire
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.codes import INEXPRESSIBLE
from secagg_spec.conformance.adapter.connection import Connection
from secagg_spec.conformance.adapter.plain import differing
from secagg_spec.conformance.adapter.wire import (
    AdapterBroken,
    AdapterUnusable,
    Answer,
    RawLine,
    Request,
    elements,
    unpack,
)
from secagg_spec.conformance.cases import valid
from secagg_spec.conformance.cases.requests import some
from secagg_spec.conformance.cases.strategies import decimal, possible
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, RESULTS
from secagg_spec.conformance.sessions.choices import NoCase

NO_CASE = "not run: the declared range holds no case"
NOT_EXPRESSIBLE = "cannot be expressed: the interface of the implementation cannot say what is asked"
NOTHING_DECLARED = "not run: the declared ranges, grades and policies hold no case"
_SEED = "seed"
_ENTRIES = {"steps", "answers"}
"""Members of results whose entries are judged one by one, in their order."""
_USUAL = 100
"""The default number of cases of a run. The `examples` of a check are a part of this number."""


LAST = -1
"""The step of a failure that the last answer shows."""


class CheckFailed(Exception):
    """An answer that the text rules out. `expected` is what the text demands, for the report.

    `clauses` are the clauses that the answer breaks, when they differ from those of the check: a right step before the
    fault came out wrong. `step` is the number of the wrong step in the last script or session, `LAST` for the last
    answer, or None when only several answers together show the fault. A `repaired` fault is that of a raw value, which
    the adapter repairs (CNF-92).
    """

    clauses: tuple[str, ...] = ()
    repaired = False

    def __init__(self, verdict: str, message: str, expected: Any = None, step: int | None = None) -> None:
        super().__init__(differing(message))
        self.verdict = verdict
        self.expected = expected
        self.step = step


class Declined(Exception):
    """No answer decides a case: the adapter declined it outside its declared range; or a message says why."""


class NotExpressible(Declined):
    """What the case asks cannot be said in the interface of the implementation (ADP-44)."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer. The answer is None when the adapter broke."""

    request: Request
    answer: Answer | None


@dataclass
class Caller:
    """How a check asks an adapter. It keeps the transcript of the case.

    `cases` is the number of cases of the run; statistical checks choose their sample size by it. A check adds to
    `limits` what a pass cannot rule out (CNF-31). Of the operation `probed`, raw values are asked for (ADP-55). With
    `shuffles`, messages arrive in a different order from the one that the check gives (CNF-61). At `until`, a reading
    of `time.monotonic`, the check's share of the budget is spent. `handles` are those of the sessions that are open.
    `begun` is called before the first request.
    """

    connection: Connection
    caps: Capabilities
    lenient: bool = False
    by_relation: bool = False
    reason_unchecked: bool = False
    transcript: list[Exchange] = field(default_factory=list)
    asked: int = 0
    cases: int = 100
    shuffles: bool = True
    limits: list[str] = field(default_factory=list)
    until: float = math.inf
    probed: str = ""
    handles: dict[str, None] = field(default_factory=dict)
    begun: Callable[[], None] = lambda: None

    def ask(self, op: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> Answer:
        """Ask, record the exchange, and return the answer. A broken adapter fails the check."""
        given = _shuffled(decimal(params)) if self.shuffles else decimal(params)
        request = Request(op, given, dict(rand) if rand else None, op == self.probed)
        self._count()
        try:
            answer = self.connection.ask(request)
        except AdapterBroken as broken:
            self.transcript.append(Exchange(request, None))
            raise CheckFailed(broken.verdict, f"{op}: {broken}", step=LAST) from None
        self.transcript.append(Exchange(request, answer))
        if answer.kind == "result":
            self._opened_or_freed(op, given.get("handle"))
        return answer

    def _opened_or_freed(self, op: str, handle: Any) -> None:
        if op == "session.new" and isinstance(handle, str):
            self.handles[handle] = None
        elif op == "session.free" and isinstance(handle, str):
            self.handles.pop(handle, None)

    def end_sessions(self) -> None:
        """Free the sessions that the case left open, since others use the same handles; no transcript holds this."""
        try:
            while self.handles:
                self.connection.ask(Request("session.free", {"handle": self.handles.popitem()[0]}))
        except AdapterBroken:
            self.connection.restart()
        except AdapterUnusable:
            pass  # the next request says so

    def raw(self, line: bytes, id: int | None, why: str) -> Answer:
        """Send a line that is not a request of the protocol, record the exchange, and return the answer."""
        request = RawLine(data=line, id=id)
        self._count()
        try:
            answer = self.connection.ask_raw(line, id)
        except AdapterBroken as broken:
            self.transcript.append(Exchange(request, None))
            raise CheckFailed(broken.verdict, f"{why}: {line!r}: {broken}", step=LAST) from None
        self.transcript.append(Exchange(request, answer))
        return answer

    def _count(self) -> None:
        if not self.asked:
            self.begun()
        self.asked += 1

    def result(self, op: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Send a valid request and return the members of the result."""
        answer = self.ask(op, params, rand)
        if answer.kind == "result":
            return answer.value
        if self.lenient and answer.kind in ("reject", "unsupported"):
            raise Declined
        if answer.kind == "error":
            raise CheckFailed("error", f"{op} broke: {answer.message}", "a result", LAST)
        said = (
            f"rejected this as {answer.code}: {answer.message}" if answer.kind == "reject" else "called it unsupported"
        )
        message = f"{op} {said}; the case is valid and inside the declared range"
        raise CheckFailed("rejected_valid", message, "a result", LAST)

    def vector(
        self, op: str, params: Mapping[str, Any], member: str, size: int, rand: Mapping[str, Any] | None = None
    ) -> UintArray:
        """Send a valid request and return one member, a vector of `size` elements modulo ``params["q"]``."""
        return self.read(op, self.result(op, params, rand).get(member), member, size, int(params["q"]))

    def read(self, op: str, text: Any, member: str, size: int, q: int) -> UintArray:
        """Return a vector from a result. Fail if its length is wrong or one of its numbers is not an element."""
        values = self._unpack(op, text, member, lambda text: elements(text, q))
        if values.size != size:
            raise CheckFailed("wrong_value", f"{op}: {member} has {values.size} elements; it must have {size}")
        if values.size and int(values.max()) >= q:
            raise CheckFailed("wrong_value", f"{op}: {member} holds {int(values.max())}, which is not below q = {q}")
        return values

    def read_all(self, op: str, texts: Sequence[Any], member: str, size: int, q: int) -> UintArray:
        """Return a list of vectors from a result as the rows of an array. Fail where `read` fails."""
        if q <= MAX_MODULUS and all(isinstance(text, str) and len(text) == 8 * size for text in texts):
            with contextlib.suppress(ValueError):
                values = unpack("".join(texts)).astype(np.uint64)
                if not values.size or int(values.max()) < q:
                    return values.reshape(len(texts), size)
        rows = [self.read(op, text, f"{member}[{at}]", size, q) for at, text in enumerate(texts)]
        return np.array(rows, dtype=ring(q).dtype).reshape(len(texts), size)

    def listed(
        self, op: str, params: Mapping[str, Any], member: str, count: int, rand: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """Send a valid request and return one member, a list of `count` entries."""
        entries = self.result(op, params, rand).get(member)
        if not isinstance(entries, list):
            said = "missing" if entries is None else f"{entries!r:.80}"
            raise CheckFailed("protocol", f"{op}: {member} is {said}, no list of {count} entries")
        if len(entries) != count:
            raise CheckFailed("wrong_value", f"{op}: {member} has {len(entries)} entries; it must have {count}")
        return entries

    def reals(self, op: str, params: Mapping[str, Any], member: str, dtype: str) -> NDArray[Any]:
        """Send a valid request and return one member, a vector of floating-point numbers."""
        return self.unpacked(op, self.result(op, params).get(member), member, dtype)

    def unpacked(self, op: str, text: Any, member: str, dtype: str = "<u4") -> NDArray[Any]:
        """Return a vector of numbers from a result. Fail if it is not one."""
        return self._unpack(op, text, member, lambda text: unpack(text, dtype))

    def some_refused(
        self,
        draw: Any,
        op: str,
        params: Mapping[str, Any],
        wrong: Mapping[str, Mapping[str, Any]],
        codes: frozenset[str],
        rand: Mapping[str, Any] | None = None,
        why: str = "there is {}",
    ) -> None:
        """Send a request with one or several drawn changes of a table, one change at a time."""
        for name in some(draw, wrong):
            self.refused(op, {**params, **wrong[name]}, codes, why.format(name), rand)

    def refused(
        self, op: str, params: Mapping[str, Any], codes: frozenset[str], why: str, rand: Mapping[str, Any] | None = None
    ) -> None:
        """Send a request that the text forbids; a rejection with a fitting code passes.

        Outside the declared range ``unsupported`` passes too (ADP-06).
        """
        if self.unless_refused(op, params, codes, why, rand) is not None:
            expected = {"reject": sorted(codes)}
            raise CheckFailed("accepted_invalid", f"{op} gave a result although {why}", expected, LAST)

    def unless_refused(
        self, op: str, params: Mapping[str, Any], codes: frozenset[str], why: str, rand: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any] | None:
        """Send a request that may be refused; return the members of the result, or None after a right refusal."""
        answer = self.ask(op, params, rand)
        expected = {"reject": sorted(codes)}
        if answer.kind == "result":
            return answer.value
        if answer.kind == "reject":
            self.fits(op, answer, codes, why)
        elif answer.kind == "error":
            raise CheckFailed("error", f"{op} broke instead of refusing ({why}): {answer.message}", expected, LAST)
        elif self.caps.declares(op, params):
            message = f"{op} called a case inside its range unsupported ({why})"
            raise CheckFailed("rejected_valid", message, expected, LAST)
        return None

    def unsupported(self, op: str, params: Mapping[str, Any], why: str, rand: Mapping[str, Any] | None = None) -> None:
        """Send a request that only the answer ``unsupported`` fits."""
        answer = self.ask(op, params, rand)
        if answer.kind != "unsupported":
            verdict = {"error": "error", "reject": "wrong_reason"}.get(answer.kind, "wrong_value")
            raise CheckFailed(verdict, f"{why}; the answer was {answer.said}", {"unsupported": True}, LAST)

    def each_refused(
        self,
        draw: Any,
        op: str,
        wrong: Iterable[tuple[Mapping[str, Any], frozenset[str], str]],
        rand: Mapping[str, Any] | None = None,
    ) -> None:
        """Send all wrong requests, each with its codes and why it is forbidden; of several, the first one is drawn.

        So even a run of few cases leaves none out. What cannot be expressed is passed over, unless it is all of them.
        """
        them, answered = list(wrong), False
        first = draw(st.integers(0, len(them) - 1)) if len(them) > 1 else 0
        for params, codes, why in (*them[first:], *them[:first]):
            self.transcript.clear()
            with contextlib.suppress(NotExpressible):
                self.refused(op, params, codes, why, rand)
                answered = True
        if not answered:
            raise NotExpressible

    def fits(self, what: str, reject: Answer, codes: frozenset[str], why: str) -> None:
        """Fail when the code of a rejection does not fit."""
        code = self._mapped(reject)
        if code == INEXPRESSIBLE:
            raise NotExpressible
        if code == "other":
            self.reason_unchecked = True
        elif code not in codes:
            fitting = " or ".join(sorted(codes))
            message = f"{what} was rejected as {code}; {why}: {fitting}"
            raise CheckFailed("wrong_reason", message, {"reject": sorted(codes)}, LAST)

    def randomness(self, op: str, values: Mapping[str, Any], seed: int = 1) -> dict[str, Any] | None:
        """Return the ``rand`` of a request in the grade that the adapter declares for the operation."""
        if not OPERATIONS[op][1]:
            return None
        grade = self.caps.grade(op)
        if grade == "explicit":
            return dict(values)
        self.by_relation = True
        return {_SEED: seed.to_bytes(32, "little").hex()} if grade == "seeded" else None

    def _unpack(self, op: str, text: Any, member: str, read: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        if text is None:
            raise CheckFailed("protocol", f"{op}: the result has no vector {member!r}: it is missing or null")
        try:
            return read(text)
        except ValueError as error:
            raise CheckFailed("protocol", f"{op}: {member} is not a vector: {error}") from None

    def _mapped(self, answer: Answer) -> str:
        """Return the code of a rejection; of one without a reason, that of the longest text in its message."""
        texts = [text for text in self.caps.reject_map if text in answer.message] if answer.code == "other" else []
        return self.caps.reject_map[max(texts, key=lambda text: (len(text), text))] if texts else answer.code


def _shuffled(params: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its inboxes in another order, always the same one for the same messages (CNF-61)."""
    if isinstance(params.get("inbox"), list):
        return type(params)({**params, "inbox": _arrived(params["inbox"])})
    if isinstance(params.get("steps"), list):
        steps = [_shuffled(step) if isinstance(step, dict) else step for step in params["steps"]]
        return type(params)({**params, "steps": steps})
    return params


def _arrived(inbox: list[Any]) -> list[Any]:
    together = sha256(" ".join(sorted(map(str, inbox))).encode()).digest()
    return sorted(inbox, key=lambda message: sha256(together + str(message).encode()).digest())


Judge = Callable[[Any, Caller], None]
Condition = Callable[[Capabilities], bool]


@dataclass(frozen=True)
class Check:
    """One check: what it decides, what it needs, and the function that draws and judges a case.

    `examples` is the number of cases of a check that needs fewer than the run has. If the check `grows`, that holds for
    runs of up to 100 cases, and the number increases in proportion beyond (CNF-67). A `fixed` check draws nothing and
    has one case. A `wide` check also judges moduli and levels above 2**32, where they are declared.
    """

    id: str
    clauses: tuple[str, ...]
    operations: tuple[str, ...]
    judge: Judge
    applies: Condition
    text: str
    examples: int | None = None
    fixed: bool = False
    grows: bool = False
    wide: bool = False

    def count(self, cases: int) -> int:
        """Return the number of cases of the check in a run of `cases` cases."""
        if self.examples is None:
            return cases
        return min(cases, max(self.examples, self.examples * cases // _USUAL * self.grows))

    def runs_on(self, caps: Capabilities) -> bool:
        """Return whether the adapter declares what the check needs."""
        return not self.obstacle(caps)

    def __reduce__(self) -> tuple[Callable[[str], Check], tuple[str]]:
        """Pickle the check by its id, because its function need not have an importable name."""
        return _registered, (self.id,)

    def obstacle(self, caps: Capabilities) -> str:
        """Return why the check cannot run with what an adapter declares, or an empty string when it can."""
        caps = caps if self.wide else caps.narrow
        if not caps.offers(*self.operations):
            return "not offered"
        if not all(possible(caps, operation) for operation in self.operations):
            return NO_CASE
        return "" if self.applies(caps) else NOTHING_DECLARED


REGISTRY: dict[str, Check] = {}


def _registered(id: str) -> Check:
    import_module("secagg_spec.conformance.checks")
    return REGISTRY[id]


def _with_streams(judge: Judge, wide: bool) -> Judge:
    """Return a check during which the reference uses the adapter's generator; it sees what it can judge."""

    @wraps(judge)
    def judged(draw: Any, call: Caller) -> None:
        call.caps = call.caps if wide else call.caps.narrow
        try:
            with generators.borrowed(call), contextlib.suppress(NoCase):
                judge(draw, call)
        except CheckFailed as failed:
            if failed.verdict == "wrong_value" and (wrong := _of_another_form(call)):
                raise wrong from failed
            raise

    return judged


def _of_another_form(call: Caller) -> CheckFailed | None:
    """Return the fault of the last answer where it has another form, whose value is not called wrong (CNF-58).

    The entries of scripts are judged one by one, and raw values have forms of their own.
    """
    asked, answer = (call.transcript[-1].request, call.transcript[-1].answer) if call.transcript else (None, None)
    if not isinstance(asked, Request) or asked.raw or answer is None or answer.kind != "result":
        return None
    if not call.caps.offers(asked.op) or _ENTRIES & set(RESULTS[asked.op]):
        return None
    if not (wrong := results.fault(asked.op, answer.value)):
        return None
    failed = CheckFailed("protocol", f"{asked.op}: {wrong}", step=LAST)
    failed.clauses = ("ADP-15",)
    return failed


def check(
    id: str,
    *clauses: str,
    operations: tuple[str, ...] | None = None,
    applies: Condition = lambda caps: True,
    examples: int | None = None,
    grows: bool = False,
    wide: bool = False,
) -> Callable[[Judge], Judge]:
    """Register a function as a check. By default it needs the operation that its id names first, if it is one."""
    head = id.removeprefix("privacy/").partition("/")[0]
    needs = ((head,) if head in OPERATIONS else ()) if operations is None else operations

    def register(judge: Judge) -> Judge:
        assert id not in REGISTRY, f"two checks are called {id}"
        text = " ".join((judge.__doc__ or "").split())
        judged = _with_streams(judge, wide)
        REGISTRY[id] = Check(id, clauses, needs, judged, applies, text, examples, grows=grows, wide=wide)
        return judge

    return register


Params = dict[str, Any]
Change = tuple[Mapping[str, Any], frozenset[str], str]
"""Changed members of a right request, the codes that fit its refusal, and why it is forbidden."""


class Each(tuple[Any, ...]):
    """Several values of which a function that `refuses` registers takes each in turn, where it would draw one."""


def _changes(draw: Any, build: Callable[[Any], Change]) -> Iterator[Change]:
    """Yield what a function builds with each of the values that it takes in turn."""
    number, many = 0, 1
    while number < many:

        def drawing(strategy: Any, at: int = number) -> Any:
            nonlocal many
            many = len(strategy) if isinstance(strategy, Each) else many
            return strategy[at] if isinstance(strategy, Each) else draw(strategy)

        yield build(drawing)
        number += 1


def refuses(
    operation: str, name: str, *clauses: str, examples: int | None = 15, **options: Any
) -> Callable[[Callable[[Any, Params], Change]], Callable[[Any, Params], Change]]:
    """Register as a check that a valid request of an operation is refused with what a function changes in it.

    Where the function draws one of `each` of several changes, the check asks about all of them.
    """

    def register(build: Callable[[Any, Params], Change]) -> Callable[[Any, Params], Change]:
        def judge(draw: Any, call: Caller) -> None:
            made = valid.VALID[operation](draw, call.caps)
            changes = _changes(draw, lambda drawing: build(drawing, made.params))
            wrong = [({**made.params, **changed}, codes, why) for changed, codes, why in changes]
            call.each_refused(draw, operation, wrong, call.randomness(operation, made.rand))

        judge.__doc__ = build.__doc__
        check(f"{operation}/{name}", *clauses, examples=examples, **options)(judge)
        return build

    return register


def suits(*operations: str, spare: int = 0, outsiders: int = 0, own_code: bool = False) -> Condition:
    """Return the condition that numbers are declared that suit all operations, and the code of the text if wanted."""
    return lambda caps: (
        not (own_code and caps.policy("mds.code") != "vandermonde") and possible(caps, operations, spare, outsiders)
    )


def judge_again(chosen: Check, draw: Any, call: Caller, **changes: Any) -> None:
    """Judge a case of another check, with other capabilities, say; the transcript is that of `call`."""
    inner = replace(call, **changes)
    try:
        chosen.judge(draw, inner)
    finally:
        call.asked, call.by_relation, call.reason_unchecked = inner.asked, inner.by_relation, inner.reason_unchecked


def same(what: str, got: UintArray | RealArray, want: UintArray | RealArray) -> None:
    """Fail at the first entry where two vectors of the same length differ."""
    differs = np.flatnonzero(got != want)
    if differs.size:
        at = int(differs[0])
        message = f"{what}: first difference at element {at}: got {got[at]}, must be {want[at]}"
        raise CheckFailed("wrong_value", message, want.tolist() if want.dtype != object else [*map(str, want)])


def octets(what: str, text: object) -> bytes:
    """Return the bytes of a string in a result; another form than lowercase hex digits fails the check (ADP-15)."""
    try:
        return wire.octets(text)
    except ValueError as error:
        raise CheckFailed("protocol", f"{what} is not bytes: {error}") from None


def equal(what: str, got: object, want: object) -> None:
    """Fail when a value is not the right one; `what` ends with the verb."""
    if got != want:
        fail(f"{what} {got}, must be {want}", want)


def fail(message: str, expected: Any = None) -> NoReturn:
    """Fail with the verdict ``wrong_value``."""
    raise CheckFailed("wrong_value", message, expected)
