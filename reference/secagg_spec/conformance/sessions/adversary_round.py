"""A round in which the network is the adversary, between two acts: who took which step, and what waits for whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from secagg_spec.conformance.sessions.adversary_letters import Letter
from secagg_spec.conformance.sessions.deals import Deal
from secagg_spec.conformance.sessions.mixed import Remote
from secagg_spec.conformance.targets.reference.scripts import Party
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.steps import role_of


@dataclass(frozen=True, eq=False)
class Taken:
    """A step that a party was asked for: what it was given, what it sent, and how it was refused where it was.

    `before` is the state of the reference's party in which it took the step, or had taken it when it refuses it again.
    """

    party: int
    life: int
    phase: str
    letters: tuple[Letter, ...]
    sent: tuple[bytes, ...] = ()
    aggregate: str | None = None
    error: ParameterError | ProtocolError | None = None
    before: Any = None


@dataclass(eq=False)
class Round:
    """A round between two acts.

    Parameters
    ----------
    deal : Deal
        What every party is given.
    parties : dict from party to Party
        The reference's parties; those that an adapter plays as well, as shadows.
    remotes : dict from party to Remote
        The parties that the adapter plays.
    twin : Round or None
        The round that goes along, where the adapter draws its values itself.
    """

    deal: Deal
    parties: dict[int, Party]
    remotes: dict[int, Remote] = field(default_factory=dict)
    twin: Round | None = None
    mail: dict[int, list[Letter]] = field(default_factory=dict)
    log: list[Taken] = field(default_factory=list)
    lives: Counter[int] = field(default_factory=Counter)
    gone: set[int] = field(default_factory=set)
    row: int = 0
    cycle: int = 0
    over: bool = False

    @property
    def users(self) -> list[int]:
        """The users of the round."""
        return self.deal.users

    def rows(self, party: int) -> list[str]:
        """Return the phases of a party, in their order."""
        return [step.phase for step in self.deal.table if step.role is role_of(party)]

    def taken(self, party: int) -> list[Taken]:
        """Return the steps that a party took since it was started."""
        return [event for event in self.steps(party) if event.life == self.lives[party]]

    def steps(self, party: int) -> list[Taken]:
        """Return the steps that a party took in all its lives."""
        return [event for event in self.log if event.party == party and event.error is None]

    def state(self, party: int) -> Any:
        """Return what a party knows: a shadow's state, where an adapter plays it."""
        return (self.twin or self).parties[party].state

    @property
    def aggregates(self) -> list[str]:
        """The sums that the server computed."""
        return [event.aggregate for event in self.log if event.aggregate is not None]

    def waiting(self, party: int) -> list[Letter]:
        """Return the letters that wait for a party."""
        return self.mail.setdefault(party, [])
