"""How checks of sessions and of SecAgg's scripts let a party take its steps, and judge what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from secagg_spec.conformance import mixed
from secagg_spec.conformance.capabilities import Capabilities
from secagg_spec.conformance.checks import rounds
from secagg_spec.conformance.checks.base import Caller, CheckFailed
from secagg_spec.conformance.checks.scripts import Entries, Fault, ask, compare_entries, drop_faults, with_faults
from secagg_spec.conformance.deals import Deal
from secagg_spec.conformance.mixed import Difference, Player
from secagg_spec.conformance.scenes import Scene
from secagg_spec.conformance.sdk.secagg_adapter import PARTIES
from secagg_spec.conformance.targets.reference_messages import parse
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.conformance.wire import Answer, Request
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.shape import Role

NEW, STEP, FREE = "session.new", "session.step", "session.free"
SESSIONS = (NEW, STEP, FREE)


def plays(*parties: str) -> Any:
    """Return the condition that an adapter plays these parties, and takes sampled values by name."""
    return lambda caps: set(parties) <= set(caps.parties) and caps.grade(NEW) == "explicit"


@dataclass(frozen=True, eq=False)
class Through:
    """The way of a mixed round through a check, which keeps what was asked."""

    call: Caller

    def ask(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.op == NEW and PARTIES[f"{request.params['protocol']}.{request.params['role']}"][1]:
            self.call.by_relation |= self.call.caps.grade(NEW) != "explicit"
        return self.call.ask(request.op, request.params, request.rand)


def player(call: Caller) -> Player:
    """Return the adapter of a check as a player."""
    return Player(Through(call), call.caps)


def asked(call: Caller, dealt: Deal, party: int, steps: Sequence[Call]) -> Entries:
    """Let a party take steps in a session of its own, and return an entry for each, as scripts have them."""
    with mixed.opened(player(call), dealt, party) as remote:
        return [_entry(remote.step(step.phase, step.inbox)) for step in steps]


def _entry(answer: Answer) -> dict[str, Any]:
    return answer.value if answer.kind == "result" else answer.as_json()


def judge(call: Caller, scene: Scene, *faults: Fault, calls: Sequence[Call] | None = None) -> None:
    """Let a party take its steps, and others that must be refused; the right ones come out as if alone."""
    right = scene.calls() if calls is None else calls
    steps = with_faults(right, faults)
    try:
        entries = asked(call, scene.deal, scene.party, [step for step, _ in steps])
        kept = drop_faults(call, STEP, entries, [fault for _, fault in steps])
        _compare(scene, right, kept)
    except Difference as difference:
        raise failed(difference) from None


def _compare(scene: Scene, calls: Sequence[Call], entries: Entries) -> None:
    for step, mine, wanted in zip(calls, entries, scene.entries(calls), strict=True):
        assert "reject" not in wanted, f"the reference refuses {step.phase}: {wanted}"
        reject = mine.get("reject")
        answer = Answer("reject", **reject) if reject else Answer("result", value=dict(mine))
        outbox = [parse(bytes.fromhex(text)) for text in wanted["outbox"]]
        mixed.compare(answer, scene.party, step.phase, outbox, wanted.get("aggregate"))


def judge_script(call: Caller, scene: Scene, *faults: Fault) -> None:
    """Let a party take its steps in one script, and others to be refused; the right ones come out as if alone."""
    right, op = scene.calls(), scene.deal.named(scene.party)
    steps = with_faults(right, faults)
    entries = ask(call, op, scene.params([step for step, _ in steps]), scene.deal.rand(scene.party) or None)
    compare_entries(op, right, drop_faults(call, op, entries, [fault for _, fault in steps]), scene.entries(right))


def failed(difference: Difference) -> CheckFailed:
    """Return a difference as the failure of a check."""
    return CheckFailed(difference.verdict, str(difference))


def moved(step: Call, at: int, message: Message) -> Call:
    """Return a step with another message in the place of one."""
    return rounds.exchanged(step, at, encode(message))


def with_more(step: Call, *messages: Message) -> Call:
    """Return a step with further messages."""
    return replace(step, inbox=(*step.inbox, *(encode(message) for message in messages)))


def parties(caps: Capabilities, protocol: str) -> list[Role]:
    """Return the roles of a protocol that an adapter plays."""
    return [role for role in Role if f"{protocol}.{role.value}" in caps.parties]
