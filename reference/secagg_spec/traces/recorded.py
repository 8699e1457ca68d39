"""Write the trace of a round that the reference ran itself, for tests and examples.

Source: spec/traces.md, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from secagg_spec.arithmetic.guard import guard
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import Event, Role, Table
from secagg_spec.traces.files import Head, Recorder


def write(recorder: Recorder, head: Head, table: Table, transcript: Iterable[Event]) -> None:
    """Write a round of a protocol that runs phase by phase: what users sent, and what the server sent after it."""
    names = list(dict.fromkeys(step.phase for step in table if step.role is Role.USER))
    after = dict(pairwise(names))
    recorder.begin(head)
    for event in transcript:
        if event.step.role is Role.USER:
            for message in event.sent:
                recorder.came(event.step.phase, event.party, encode(message))
            continue
        recorder.closed(event.step.phase)
        for message in event.sent:
            recorder.went(after[event.step.phase], message.receiver, encode(message))


guard(__name__)
