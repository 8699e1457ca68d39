"""The trace of a round that an engine carries: what the server sends and gets, phase by phase.

Source: spec/traces.md, section 2 (TRC-02 to TRC-04).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from secagg_spec.flower import plan as plans
from secagg_spec.flower.plan import Packet, Plan, of_this_version
from secagg_spec.flower.server import Exchange
from secagg_spec.traces.files import Head, Recorder


def traced(exchange: Exchange, path: str | Path | None, stack: ExitStack, batch: int = 0) -> Exchange:
    """Return an exchange that also writes what it carries to a trace, if there is a path; `stack` closes the file.

    `batch` is the number of users of a batch, or 0 without batches.
    """
    if path is None:
        return exchange
    recorder = stack.enter_context(closing(Recorder(path)))
    users: dict[int, int] = {}

    def watched(phase: str, packets: dict[int, Packet]) -> Iterator[tuple[int, Packet | None]]:
        _begin(recorder, users, packets, batch)
        for node, packet in packets.items():
            for message in packet.get("messages", ()):
                recorder.went(phase, users[node], message)
        missing = {users[node]: None for node in packets if users}
        for node, reply in exchange(phase, packets):
            for message in _messages(phase, reply) if node in users else ():
                recorder.came(phase, users[node], message)
                missing.pop(users[node], None)
            yield node, reply
        if users:
            recorder.closed(phase, list(missing))

    return watched


def _begin(recorder: Recorder, users: dict[int, int], packets: dict[int, Packet], batch: int) -> None:
    """Write the head when the plan goes out, and keep which user is behind each node; before it there are only keys."""
    planned = {node: packet for node, packet in packets.items() if "plan" in packet}
    if planned:
        users.update({node: packet["user"] for node, packet in planned.items()})
        recorder.begin(head_of(plans.read(next(iter(planned.values()))["plan"]), batch))


def head_of(plan: Plan, batch: int = 0) -> Head:
    """Return the head of the trace of a round, among batches of so many users, or 0 without batches."""
    setup = {"order": plan.order, "roster": plan.sealing, "verification": plan.verification}
    return Head.of(plan.protocol, plan.numbers, setup, plan.session, plan.round, batch)


def _messages(phase: str, reply: Packet | None) -> list[bytes]:
    """Return the messages of a reply to a phase."""
    if reply is None or not of_this_version(reply) or reply.get("phase") != phase or "refused" in reply:
        return []
    messages = reply.get("messages")
    return [each for each in messages if isinstance(each, bytes)] if isinstance(messages, list) else []
