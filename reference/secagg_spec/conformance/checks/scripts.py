"""How one party of a round is asked step by step, and what a fault is, for any protocol (spec/adapter.md, 4)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import Answer
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.checks import base
from secagg_spec.conformance.sessions import broken
from secagg_spec.conformance.targets.reference.messages import named, parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.errors import ProtocolError

X = TypeVar("X")


class Entry(dict[str, Any]):
    """The answer to one step of a party, with the number of the step."""

    def __init__(self, body: Mapping[str, Any], step: int) -> None:
        super().__init__(body)
        self.step = step


Entries = list[Entry]


@dataclass(frozen=True)
class Fault:
    """A step that the party must refuse, inserted before one of the right steps or after them all.

    `blamed` is the blame that the refusal must carry, when a clause names it.
    """

    before: int
    call: Call
    codes: frozenset[str]
    why: str
    blamed: frozenset[int] | None = None


def ask(call: base.Caller, op: str, params: dict[str, Any], rand: dict[str, Any] | None) -> Entries:
    """Run a script and return its entries, one for each step (ADP-20)."""
    entries = call.listed(op, params, "steps", len(params["steps"]), rand)
    if not all(isinstance(entry, dict) for entry in entries):
        raise base.CheckFailed("protocol", f"{op}: steps must be a list of objects, one for each step")
    return [Entry(entry, at) for at, entry in enumerate(entries)]


@contextmanager
def at_step(step: int | None) -> Iterator[None]:
    """Record in any failure the number of the wrong step in the last script or session."""
    try:
        yield
    except base.CheckFailed as failed:
        failed.step = failed.step if step is None else step
        raise


def taken(op: str, entry: Mapping[str, Any], phase: str) -> list[str]:
    """Return the outbox, in a fixed order, of a step that the party must have taken."""
    with at_step(getattr(entry, "step", None)):
        if "reject" in entry:
            refusal = rejection(op, entry)
            message = f"{op}: the step {phase} was refused as {refusal.code}, and it is right: {refusal.message}"
            raise base.CheckFailed("rejected_valid", message, {"outbox": "…"})
        outbox = entry.get("outbox")
        if not isinstance(outbox, list):
            message = f"{op}: the entry of the step {phase} has neither a reject nor an outbox"
            raise base.CheckFailed("protocol", message)
        for text in outbox:
            base.octets(f"{op}: a message of the step {phase}", text)
        return sorted(outbox)


def sent(op: str, entry: Mapping[str, Any], phase: str) -> list[Any]:
    """Return the messages of a step that the party must have taken."""
    try:
        return [parse(bytes.fromhex(text)) for text in taken(op, entry, phase)]
    except (ValueError, ProtocolError) as error:
        base.fail(f"{op}: the step {phase} sends something that is no message: {error}")


def rejection(op: str, entry: Mapping[str, Any]) -> Answer:
    """Return the rejection in an entry of a result."""
    body = entry["reject"]
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise base.CheckFailed("protocol", f"{op}: what is refused has a reject with a code; this one is {body!r:.80}")
    return Answer("reject", code=body["code"], message=str(body.get("message", "")))


def placed(draw: Any, messages: Sequence[X]) -> tuple[int, X]:
    """Draw one of some messages. Return its place and the message."""
    place = int(draw(st.integers(0, len(messages) - 1)))
    return place, messages[place]


def demand_refused(call: base.Caller, op: str, entry: Entry, fault: Fault) -> None:
    """Demand that a step was refused with a fitting code and the blame that a clause names."""
    with at_step(entry.step):
        codes = fault.codes | broken.expected(*_opened(call)).codes(fault.call.inbox)
        expected = {"reject": sorted(codes)}
        if "reject" not in entry:
            message = f"{op} took the step {fault.call.phase} although {fault.why}"
            raise base.CheckFailed("accepted_invalid", message, expected)
        call.fits(f"{op}: the step {fault.call.phase}", rejection(op, entry), codes, fault.why)
        if fault.blamed is not None:
            blamed = entry["reject"].get("blamed")
            want = [named(party) for party in sorted(fault.blamed)]
            if not same_parties(blamed, want):
                base.fail(f"{op}: {fault.why}; blamed is {blamed}, must be {want} in any order", {"blamed": want})


def same_parties(got: object, want: Sequence[int | str]) -> bool:
    """Return whether a list names these parties, in any order and each in its form (spec/adapter.md, 3)."""
    return isinstance(got, list) and sorted(map(repr, got)) == sorted(map(repr, want))


def _opened(call: base.Caller) -> tuple[str, Mapping[str, Any]]:
    """Return the party that was asked last, and the script or session that opened it."""
    later: dict[str, Any] = {}
    for request in (exchange.request for exchange in reversed(call.transcript)):
        if request.op == "session.again":
            later = later or {"round": request.params["round"]}
        elif "session" in request.params:
            opened = {**request.params, **later}
            return (f"{opened['protocol']}.{opened['role']}" if request.op == "session.new" else request.op), opened
    raise AssertionError("no party was asked")


def with_faults(calls: Sequence[Call], faults: Sequence[Fault]) -> list[tuple[Call, Fault | None]]:
    """Return the steps of a script. Each comes with its fault, or None for a right step."""
    steps: list[tuple[Call, Fault | None]] = []
    for at in range(len(calls) + 1):
        steps += [(fault.call, fault) for fault in faults if fault.before == at]
        steps += [(right, None) for right in calls[at : at + 1]]
    return steps


@contextmanager
def right_step(op: str) -> Iterator[None]:
    """Name the clauses of a party's right steps in a failure of a right step that comes before any fault."""
    try:
        yield
    except base.CheckFailed as failed:
        named = next((base.REGISTRY[id] for id in (f"{op}/exact", f"{op}/script") if id in base.REGISTRY), None)
        failed.clauses = named.clauses if named else ()
        raise


def compare_prefix(
    op: str, steps: Sequence[tuple[Call, Fault | None]], entries: Entries, want: Sequence[Mapping[str, Any]]
) -> None:
    """Compare the entries of the right steps before the first fault, or of all steps if there is none."""
    first = next((at for at, (_, fault) in enumerate(steps) if fault is not None), 0)
    with right_step(op):
        compare_entries(op, [step for step, _ in steps[:first]], entries[:first], want[:first])


def drop_faults(call: base.Caller, op: str, entries: Entries, faults: Sequence[Fault | None]) -> Entries:
    """Judge the steps that must be refused, and return the entries of the others."""
    for entry, fault in zip(entries, faults, strict=True):
        if fault is not None:
            demand_refused(call, op, entry, fault)
    return [entry for entry, fault in zip(entries, faults, strict=True) if fault is None]


def compare_entries(op: str, calls: Sequence[Call], got: Entries, want: Sequence[Mapping[str, Any]]) -> None:
    """Compare entries bit for bit. The messages of an outbox may be in any order."""
    for step, mine, right in zip(calls, got, want, strict=True):
        assert "reject" not in right, f"the reference refuses {step.phase}: {right}"
        outbox = taken(op, mine, step.phase)
        with at_step(mine.step):
            if outbox != sorted(right["outbox"]):
                what = f"{op}: the step {step.phase} sends {len(outbox)} messages that are not the right ones"
                base.fail(what, dict(right))
            if mine.get("aggregate") != right.get("aggregate"):
                base.fail(f"{op}: aggregate is {mine.get('aggregate')}, must be {right.get('aggregate')}", dict(right))


def disordered(draw: Any, users: Sequence[int]) -> tuple[int, ...]:
    """Draw two or more users in an order that is not ascending."""
    order = strategies.shuffled(draw, users)
    return tuple(reversed(order)) if order == sorted(order) else tuple(order)
