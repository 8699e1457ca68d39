"""How checks of sessions and of SecAgg's scripts make a party take its steps, and judge its messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import Answer, Request
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, Condition, check
from secagg_spec.conformance.checks.faults import Refusals
from secagg_spec.conformance.checks.scripts import (
    Entries,
    Entry,
    Fault,
    ask,
    at_step,
    compare_entries,
    compare_prefix,
    drop_faults,
    right_step,
    with_faults,
)
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, PARTIES
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.sessions.session import Played, Session
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.protocols.steps import Role

NEW, STEP, FREE, AGAIN = "session.new", "session.step", "session.free", "session.again"
SESSIONS = (NEW, STEP, FREE)


def plays(*parties: str) -> Any:
    """Return the condition that an adapter plays these parties and accepts explicit sampled values."""
    return lambda caps: set(parties) <= set(caps.parties) and caps.grade(NEW) == "explicit"


def explicit(operation: str) -> Condition:
    """Return the condition that the entries of a script are determined bit for bit."""
    return lambda caps: not OPERATIONS[operation][1] or caps.grade(operation) == "explicit"


@dataclass(frozen=True, eq=False)
class Through:
    """What a mixed round calls to ask the adapter: it goes through the check, which keeps a transcript."""

    call: Caller

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.op == NEW and PARTIES[f"{request.params['protocol']}.{request.params['role']}"][1]:
            self.call.by_relation |= self.call.caps.grade(NEW) != "explicit"
        return self.call.ask(request.op, request.params, request.rand)


def player(call: Caller) -> Player:
    """Return the adapter of a check as a player."""
    return Player(Through(call), call.caps)


def asked(call: Caller, inputs: SessionInputs, party: int, steps: Sequence[Call]) -> Entries:
    """Let a party take steps in its own session, and return one entry for each step, as a script does."""
    with mixed.opened(player(call), inputs, party) as remote:
        return [_entry(remote.step(step.phase, step.inbox), at) for at, step in enumerate(steps)]


def _entry(answer: Answer, step: int) -> Entry:
    return Entry(answer.value if answer.kind == "result" else answer.as_json(), step)


def judge(call: Caller, scene: Played, *faults: Fault, calls: Sequence[Call] | None = None) -> None:
    """Let a party take right and faulty steps. The right ones must come out as they do without the faulty ones."""
    right, wanted = scene.calls() if calls is None else calls, scene.entries(calls)
    steps = with_faults(right, faults)
    try:
        entries = asked(call, scene.inputs, scene.party, [step for step, _ in steps])
        first = next((at for at, (_, fault) in enumerate(steps) if fault is not None), 0)
        with right_step(scene.inputs.named(scene.party)):
            _compare(scene, right[:first], entries[:first], wanted[:first])
        kept = drop_faults(call, STEP, entries, [fault for _, fault in steps])
        _compare(scene, right, kept, wanted)
    except Difference as difference:
        raise failed(difference) from None


def _compare(scene: Played, calls: Sequence[Call], entries: Entries, right: Sequence[Mapping[str, Any]]) -> None:
    for step, mine, wanted in zip(calls, entries, right, strict=True):
        assert "reject" not in wanted, f"the reference refuses {step.phase}: {wanted}"
        reject = mine.get("reject")
        answer = Answer("reject", **reject) if reject else Answer("result", value=dict(mine))
        outbox = [parse(bytes.fromhex(text)) for text in wanted["outbox"]]
        with at_step(mine.step):
            try:
                mixed.compare(answer, scene.party, step.phase, outbox, wanted.get("aggregate"))
            except Difference as difference:
                raise failed(difference) from None


def judge_script(call: Caller, session: Session, *faults: Fault, calls: list[Call] | None = None) -> None:
    """Do what `judge` does, with all steps in one script."""
    right, wanted = session.calls() if calls is None else calls, session.entries(calls)
    op, steps = session.operation, with_faults(right, faults)
    entries = ask(call, op, session.params([step for step, _ in steps]), session.rand() or None)
    compare_prefix(op, steps, entries, wanted)
    compare_entries(op, right, drop_faults(call, op, entries, [fault for _, fault in steps]), wanted)


def failed(difference: Difference) -> CheckFailed:
    """Return a difference as the failure of a check."""
    if difference.dropouts is None:
        return CheckFailed(difference.verdict, str(difference), step=LAST)
    before = [f"user {user} before {phase}" for phase, users in difference.dropouts.items() for user in sorted(users)]
    return CheckFailed(difference.verdict, f"{difference}; dropped out: {', '.join(before) or 'nobody'}", step=LAST)


def parties(caps: Capabilities, protocol: str) -> list[Role]:
    """Return the roles of a protocol that an adapter plays."""
    return [role for role in Role if f"{protocol}.{role.value}" in caps.parties]


def right_steps(refusals: Refusals, examples: tuple[int, int, int], *clauses: str) -> None:
    """Register the checks that a party takes its right steps as the text says, whatever it refused between them.

    Parameters
    ----------
    refusals : Refusals
        What the party must refuse.
    examples : tuple of int
        How many cases the three checks draw: right steps, refused steps, sessions.
    clauses : str
        The clauses that decide the messages of the right steps.
    """
    exactly, refused, played = examples
    party, applies = refusals.party, refusals.applies
    name = party.replace("_", "-")

    @check(f"{party}/exact", *clauses, "MSG-01", "ADP-20", applies=applies, examples=exactly)
    def exact(draw: Any, caller: Caller) -> None:
        """The party sends the messages of the text in every state in which it can take a step."""
        refusals.judge(caller, refusals.session(draw, caller.caps))

    refusals.unharmed("ADP-20", examples=refused)

    @check(f"{NEW}/{name}", "ERR-01", "ADP-24", "ADP-29", operations=SESSIONS, applies=plays(name), examples=played)
    def session(draw: Any, caller: Caller) -> None:
        """In a session each step is the one of the text, and refused steps leave no trace."""
        drawn = refusals.session_of_run(draw, caller.caps)
        judge(caller, drawn, *refusals.drawn(draw, drawn))
