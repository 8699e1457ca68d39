"""One party in a session: the steps that it is asked to take, what arrives in each, and the reference in its place."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.targets.reference.scripts import Call, Party, RepeatingParty, entries_of
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import Event, Network, Step, role_of


class Session:
    """One party in a session. A class says what the party is given and what arrives at it; the rest follows."""

    party: int

    @cached_property
    def inputs(self) -> SessionInputs:
        """The inputs of the party before its first step."""
        raise NotImplementedError

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """The phase of each right step, and the messages that arrive in it."""
        raise NotImplementedError

    @property
    def operation(self) -> str:
        """The operation of the party's scripts."""
        return self.inputs.named(self.party).replace("-", "_")

    @property
    def size(self) -> int:
        """The number of users."""
        return int(self.inputs.numbers["N"])

    def calls(self) -> list[Call]:
        """Return the right steps."""
        return [Call.of(phase, inbox) for phase, inbox in self.inboxes]

    def inbox(self, at: int) -> list[Any]:
        """Return the messages that arrive in a numbered step."""
        return list(self.inboxes[at][1])

    def row(self, at: int) -> Step[Any]:
        """Return the row of the protocol's table that a numbered step takes."""
        rows = {row.phase: row for row in self.inputs.table if row.role is role_of(self.party)}
        return rows[self.inboxes[at][0]]

    @cached_property
    def states(self) -> list[Any]:
        """The states of the reference's party before its first step and after each right step."""
        party = self.inputs.open(self.party)
        states = [party.state]
        for step in self.calls():
            party.take(step)
            states.append(party.state)
        return states

    @cached_property
    def bases(self) -> list[Any]:
        """The states, as the semi-honest profile has them."""
        return [base_of(state) for state in self.states]

    def before(self, at: int) -> Party:
        """Return the reference's party before a numbered step; the number of steps stands for the end."""
        party = self.inputs.open(self.party)
        party.state = self.states[at]
        if isinstance(party, RepeatingParty):
            party.used = Counter(phase for phase, _ in self.inboxes[:at])
        return party

    def params(self, calls: Sequence[Call]) -> dict[str, Any]:
        """Return the ``params`` of a script with these steps."""
        inputs = self.inputs
        agreed = {"session": inputs.session.hex(), "round": str(inputs.round_of(self.party))}
        return {**inputs.numbers, **agreed, **inputs.setups[self.party], "steps": written(calls)}

    def rand(self) -> dict[str, Any]:
        """Return the sampled values of the party."""
        return self.inputs.rand(self.party)

    def entries(self, calls: Sequence[Call] | None = None) -> list[Any]:
        """Return the reference's entries for these steps; by default, for the right ones."""
        return self.right_entries if calls is None else entries_of(self.inputs.open(self.party), calls)

    @cached_property
    def right_entries(self) -> list[Any]:
        """The reference's entries for the right steps."""
        return self.entries(self.calls())


@dataclass(frozen=True, eq=False)
class Played(Session):
    """One party of a session that the reference has played."""

    inputs: SessionInputs = field()
    party: int
    network: Network

    @cached_property
    def inboxes(self) -> Sequence[tuple[str, Sequence[Message]]]:
        """The phase of each step that the party took, and the messages that arrived in it."""
        return [(event.step.phase, event.received) for event in self.events()]

    @cached_property
    def states(self) -> list[Any]:
        """The states of the party before its first step and after each step."""
        return [self.inputs.open(self.party).state, *(event.state for event in self.events())]

    @cached_property
    def right_entries(self) -> list[Any]:
        """The party's entries for the steps that it took."""
        party = self.inputs.open(self.party)
        entries = []
        for event in self.events():
            party.state = event.state
            entries.append({"outbox": [encode(message).hex() for message in event.sent], **party.shown(event.step)})
        return entries

    @property
    def enough(self) -> int:
        """The fewest users whose sum may be computed: max(t, T + 2)."""
        return int(max(self.inputs.numbers["t"], self.inputs.numbers["T"] + 2))

    def events(self, party: int | None = None) -> list[Event]:
        """Return the steps of a party; by default, of this party."""
        chosen = self.party if party is None else party
        return [event for event in self.network.transcript if event.party == chosen]

    def state(self, at: int) -> Any:
        """Return the state of the party after a numbered step, as a party of SecAgg would have it."""
        return base_of(self.events()[at].state)


def base_of(state: Any) -> Any:
    """Return what a state has as the semi-honest profile has it; HeteroSAg's states hold one of SecAgg as well."""
    return getattr(state, "base", state)


def written(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return steps in the form of a request."""
    return [{"phase": call.phase, "inbox": [data.hex() for data in call.inbox]} for call in calls]


def without(call: Call, at: int) -> Call:
    """Return a step without one of its messages."""
    return replace(call, inbox=call.inbox[:at] + call.inbox[at + 1 :])


def exchanged(call: Call, at: int, data: bytes) -> Call:
    """Return a step with one of its messages replaced by other bytes."""
    return replace(call, inbox=(*call.inbox[:at], data, *call.inbox[at + 1 :]))


def moved(call: Call, at: int, message: Message) -> Call:
    """Return a step with one of its messages replaced."""
    return exchanged(call, at, encode(message))


def with_more(call: Call, *messages: Message) -> Call:
    """Return a step with extra messages."""
    return replace(call, inbox=(*call.inbox, *(encode(message) for message in messages)))
