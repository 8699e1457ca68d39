"""One party of a round that the reference has played, and its incoming messages, as the basis of scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.sessions.deals import Deal
from secagg_spec.conformance.targets.reference.scripts import Call, entries_of
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import Event, Network


@dataclass(frozen=True, eq=False)
class Scene:
    """One party of a round that the reference has played, and its incoming messages."""

    deal: Deal
    party: int
    network: Network

    @property
    def size(self) -> int:
        """The number of users."""
        return int(self.deal.numbers["N"])

    @property
    def enough(self) -> int:
        """The fewest users whose sum may be computed: max(t, T + 2)."""
        return int(max(self.deal.numbers["t"], self.deal.numbers["T"] + 2))

    def events(self, party: int | None = None) -> list[Event]:
        """Return the steps of a party; by default, of this party."""
        chosen = self.party if party is None else party
        return [event for event in self.network.transcript if event.party == chosen]

    def state(self, at: int) -> Any:
        """Return the state of the party after a numbered step, as a party of SecAgg would have it."""
        after = self.events()[at].state
        return getattr(after, "base", after)

    def inbox(self, at: int) -> list[Any]:
        """Return the messages that arrive in a numbered step."""
        return list(self.events()[at].received)

    def calls(self) -> list[Call]:
        """Return the steps of the round."""
        return [call(event.step.phase, event.received) for event in self.events()]

    def params(self, calls: list[Call]) -> dict[str, Any]:
        """Return the ``params`` of a script with these steps."""
        deal = self.deal
        agreed = {"session": deal.session.hex(), "round": str(deal.round_of(self.party))}
        return {**deal.numbers, **agreed, **deal.setups[self.party], "steps": written(calls)}

    def entries(self, calls: Sequence[Call]) -> list[Any]:
        """Return the reference's entries for these steps."""
        return entries_of(self.deal.open(self.party), calls)


def call(phase: str, inbox: Sequence[Message]) -> Call:
    """Return a step with these messages."""
    return Call(phase, tuple(encode(message) for message in inbox))


def written(calls: list[Call]) -> list[dict[str, Any]]:
    """Return steps in the form of a request."""
    return [{"phase": call.phase, "inbox": [data.hex() for data in call.inbox]} for call in calls]
