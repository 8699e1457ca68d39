"""The state of a round between two acts, with the network as the adversary: steps taken, and letters waiting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from secagg_spec.conformance.sessions.adversary_letters import Letter
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Remote
from secagg_spec.conformance.targets.reference.scripts import Party
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.steps import role_of


@dataclass(frozen=True, eq=False)
class Taken:
    """A step that a party was asked for: its input, its output, and its refusal, if it was refused.

    `before` is the reference party's state when it took the step, or the earlier state if it refuses a repeated step.
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
    inputs : SessionInputs
        The inputs of every party.
    parties : dict from party to Party
        The reference's parties; for parties that an adapter plays, the shadows.
    remotes : dict from party to Remote
        The parties that the adapter plays.
    twin : Round or None
        The round that runs alongside if the adapter draws its own values.
    """

    inputs: SessionInputs
    parties: dict[int, Party]
    remotes: dict[int, Remote] = field(default_factory=dict)
    twin: Round | None = None
    mail: dict[int, list[Letter]] = field(default_factory=dict)
    log: list[Taken] = field(default_factory=list)
    lives: Counter[int] = field(default_factory=Counter)
    dropped: set[int] = field(default_factory=set)
    row: int = 0
    cycle: int = 0
    over: bool = False

    @property
    def users(self) -> list[int]:
        """The users of the round."""
        return self.inputs.users

    def rows(self, party: int) -> list[str]:
        """Return the phases of a party, in order."""
        return [step.phase for step in self.inputs.table if step.role is role_of(party)]

    def taken(self, party: int) -> list[Taken]:
        """Return the steps that a party took since its last start."""
        return [event for event in self.steps(party) if event.life == self.lives[party]]

    def steps(self, party: int) -> list[Taken]:
        """Return the steps that a party took, including those before restarts."""
        return [event for event in self.log if event.party == party and event.error is None]

    def state(self, party: int) -> Any:
        """Return the state of a party; if an adapter plays it, its shadow's state."""
        return (self.twin or self).parties[party].state

    @property
    def aggregates(self) -> list[str]:
        """The sums that the server computed."""
        return [event.aggregate for event in self.log if event.aggregate is not None]

    def waiting(self, party: int) -> list[Letter]:
        """Return the letters that wait for a party."""
        return self.mail.setdefault(party, [])
