"""Scripts: one party of a round, step by step, by the reference's table of phases (spec/adapter.md, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sdk.secagg_adapter import Reject
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.crypto import channel
from secagg_spec.conformance.targets.reference.messages import named, parse
from secagg_spec.crypto.channels import Channel, PlainChannel
from secagg_spec.errors import ParameterError, ProtocolError, WrongPhase
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import Randomness, Role, Step, Table

End = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """One step of a script: its phase, and the bytes of the messages in its inbox."""

    phase: str
    inbox: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, phase: str, messages: Sequence[Message]) -> Call:
        """Return a step with these messages."""
        return cls(phase, tuple(encode(message) for message in messages))


@dataclass(eq=False)
class Party:
    """One party of a round between its steps: its state, its sampled values, and its results at the end."""

    table: Table
    role: Role
    state: Any
    sampled: Randomness
    end: End

    def take(self, call: Call) -> dict[str, Any]:
        """Take a step and return its entry; if the step raises, the party is unchanged."""
        step = self.step(call.phase)
        inbox = tuple(parse(data) for data in call.inbox)
        self.state, outbox = step.take(self.state, inbox, randomness=self.values(step))
        return {"outbox": [encode(message).hex() for message in outbox], **self.shown(step)}

    def refusal(self, call: Call, state: Any) -> ParameterError | ProtocolError | None:
        """Return how a step would be refused in a state; None if it would be taken. The party does not change."""
        try:
            replace(self, state=deepcopy(state)).take(call)
        except (ParameterError, ProtocolError) as error:
            return error
        return None

    def step(self, phase: str) -> Step[Any]:
        """Return the party's row for a phase."""
        return {step.phase: step for step in self.table if step.role is self.role}[phase]

    def values(self, step: Step[Any]) -> Randomness:
        """Return the sampled values that a step takes."""
        return {name: self.sampled[name] for name in step.randomness}

    def shown(self, step: Step[Any]) -> dict[str, Any]:
        """Return the members, in addition to the outbox, of the entry of the step that was just taken."""
        return self.end(self.state)


@dataclass(eq=False)
class RepeatingParty(Party):
    """A party that takes a step as often as its state allows, and its sampled values from lists, in order.

    `used` counts how often it took each step.
    """

    used: Counter[str] = field(default_factory=Counter)

    def take(self, call: Call) -> dict[str, Any]:
        """Take a step and return its entry; if the step raises, the party is unchanged."""
        entry = super().take(call)
        self.used = self.used + Counter((call.phase,))
        return entry

    def values(self, step: Step[Any]) -> Randomness:
        """Return the next values that a step consumes."""
        at = self.used[step.phase]
        for name in step.randomness:
            if at >= len(self.sampled[name]):
                raise WrongPhase(f"no {name} is left: {at} were used")
        return {name: self.sampled[name][at] for name in step.randomness}

    def shown(self, step: Step[Any]) -> dict[str, Any]:
        """Return the aggregate of a buffer or an epoch that was just recovered."""
        if (step.phase, step.role) != ("recover", Role.SERVER):
            return {}
        return self.end(self.state)


def play(table: Table, role: Role, state: Any, calls: Sequence[Call], sampled: Randomness, end: End) -> list[Any]:
    """Return one entry for each step of a party, in order; a refused step leaves the state unchanged.

    Parameters
    ----------
    table, role
        The protocol's phases, and the role of the party.
    state
        The party before its first step.
    calls : sequence of Call
        The steps.
    sampled : mapping from name to array
        The values that steps take, by name.
    end : function
        Returns the members, in addition to ``outbox``, of the entry of the step that led to a state.
    """
    return entries_of(Party(table, role, state, sampled, end), calls)


def entries_of(party: Party, calls: Sequence[Call]) -> list[Any]:
    """Let a party take steps, and return the entry of each; a refused step leaves the party unchanged."""
    entries: list[Any] = []
    for call in calls:
        try:
            entries.append(party.take(call))
        except (ParameterError, ProtocolError) as error:
            entries.append({"reject": rejection(error)})
    return entries


def rejection(error: ParameterError | ProtocolError) -> dict[str, Any]:
    """Return a refusal in the form of an entry."""
    blamed = sorted(error.blamed) if isinstance(error, ProtocolError) else []
    return {"code": reject_code(error), "message": str(error), "blamed": [named(party) for party in blamed]}


def read_calls(table: Table, role: Role, steps: Any) -> list[Call]:
    """Return the steps of a request."""
    phases = [step.phase for step in table if step.role is role]
    calls = []
    for at, value in enumerate(readers.formed("steps", steps, "[step]")):
        phase, inbox = readers.members(f"steps[{at}]", value, "phase", "inbox")
        if phase not in phases:
            raise Reject("malformed", f"steps[{at}].phase is {phase!r}; it must be one of {', '.join(phases)}")
        texts = readers.formed(f"steps[{at}].inbox", inbox, "[bytes]")
        calls.append(Call(phase, tuple(readers.octets(f"steps[{at}].inbox", text) for text in texts)))
    return calls


def read_channel(parameters: lightsecagg.Parameters, session: Any, round: Any, value: Any) -> Channel:
    """Return the channel of a user, plain or sealed."""
    if value == "plain":
        return PlainChannel()
    private, roster = readers.members("channel", value, "private", "roster")
    readers.formed("channel.private", private, "bytes")
    readers.formed("channel.roster", roster, "[bytes]")
    sealed: Channel = channel(parameters, session, round, lightsecagg.MaskShare.TYPE, private, roster)
    return sealed


def read_sampled(parameters: lightsecagg.Parameters, rand: Mapping[str, Any]) -> Randomness:
    """Return the mask and the noise of a request."""
    shape = (parameters.T, parameters.share_length)
    mask = parameters.field.check("mask", readers.vector("mask", rand["mask"]), (parameters.d,))
    noise = parameters.field.check("noise", readers.shaped("noise", rand["noise"], *shape), shape)
    return {"mask": mask, "noise": noise}


def server_end(state: Any) -> dict[str, Any]:
    """Return the members, in addition to the outbox, of the entry of the server's last step."""
    aggregate = (state if hasattr(state, "aggregate") else state.base).aggregate
    return {} if aggregate is None else {"aggregate": pack(aggregate)}


def recovered_end(state: Any) -> dict[str, Any]:
    """Return the members, in addition to the outbox, of the entry of a step that recovered a buffer or an epoch."""
    return {"aggregate": pack(state.recovered.sum)}
