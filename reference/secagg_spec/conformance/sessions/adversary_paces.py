"""How the honest parties of a round proceed: who takes which row of the table next, and on which letters."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from secagg_spec.conformance.sessions.adversary_letters import Letter
from secagg_spec.conformance.sessions.adversary_round import Round, Taken
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import SERVER, Role, Step


@dataclass(frozen=True)
class Pace:
    """All users, then the server, phase by phase; a user that misses a row has dropped out.

    The table is run through `cycles` times. `haste` is extra weight for the honest act in long rounds.
    """

    cycles: int = 1
    haste: int = 0

    def chosen(self, engine: Round, step: Step[Any], party: int) -> list[Letter]:
        """Return the letters for a party's step: those that the step takes, and those that the network made."""
        return [letter for letter in engine.waiting(party) if letter.made or isinstance(letter.message, step.receives)]

    def takers(self, engine: Round, step: Step[Any]) -> list[int]:
        """Return the parties that take a row."""
        if step.role is Role.SERVER:
            return [SERVER]
        return [user for user in engine.users if user not in engine.dropped and self.ready(engine, step, user)]

    def ready(self, engine: Round, step: Step[Any], user: int) -> bool:
        """Return whether a user has taken all earlier rows and has mail for this one."""
        number = engine.rows(user).index(step.phase)
        return len(engine.taken(user)) == number and (not step.receives or bool(self.chosen(engine, step, user)))

    def allowed(self, engine: Round, party: int) -> list[str]:
        """Return the steps that a party's state allows."""
        phases, number = engine.rows(party), len(engine.taken(party))
        return phases[number : number + 1]

    def refused(self, engine: Round, event: Taken) -> None:
        """React to the server refusing a row: the round is over."""
        engine.over = True

    def turn(self, engine: Round) -> None:
        """Go to the next row; after the last row of the last cycle, the round is over."""
        engine.row += 1
        if engine.row == len(engine.inputs.table):
            engine.row, engine.cycle = 0, engine.cycle + 1
            engine.over = engine.over or engine.cycle == self.cycles


@dataclass(frozen=True)
class Buffered(Pace):
    """The table of BASecAgg row by row: idle users ask for a model, and a buffer's number of users upload."""

    cycles: int = 2
    haste: int = 25

    def chosen(self, engine: Round, step: Step[Any], party: int) -> list[Letter]:
        """Return the letters as `Pace.chosen` does, but only each sender's oldest shares if a user keeps them."""
        letters = super().chosen(engine, step, party)
        if step.phase != "hold":
            return letters
        senders: set[int] = set()
        return [letter for letter in letters if letter.made or _first(letter.message, senders)]

    def takers(self, engine: Round, step: Step[Any]) -> list[int]:
        """Return the parties that take a row; nobody abandons a training."""
        if step.phase == "abandon":
            return []
        if step.role is Role.SERVER:
            return [SERVER] if not step.receives or self.chosen(engine, step, SERVER) else []
        able = [user for user in engine.users if user not in engine.dropped and self.ready(engine, step, user)]
        return able[: self._room(engine)] if step.phase == "upload" else able

    def ready(self, engine: Round, step: Step[Any], user: int) -> bool:
        """Return whether a user would take a row."""
        state, server = engine.state(user), engine.state(SERVER)
        if step.phase == "request":
            stamp = getattr(server.records.get(user), "stamp", None)
            return state.phase == "idle" and user not in server.buffer and stamp != server.round
        if step.phase == "upload":
            return bool(state.phase == "training")
        return bool(self.chosen(engine, step, user))

    def allowed(self, engine: Round, party: int) -> list[str]:
        """Return the steps that a party's state allows, regardless of its mail."""
        phase = engine.state(party).phase
        steps = list(_STEPS[phase])
        return [*steps, "hold", "recover"] if party != SERVER else steps

    def refused(self, engine: Round, event: Taken) -> None:
        """Drop what the server refuses, and go on."""
        engine.mail[SERVER] = [letter for letter in engine.waiting(SERVER) if letter not in event.letters]

    def _room(self, engine: Round) -> int:
        server: Any = engine.state(SERVER)
        coming = sum(type(letter.message).__name__ == "StampedUpdate" for letter in engine.waiting(SERVER))
        return max(0, int(engine.inputs.numbers["K"]) - len(server.buffer) - coming)


_STEPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "idle": ("request",),
        "asked": ("request", "share"),
        "training": ("upload", "abandon"),
        "filling": ("request", "share", "upload", "close"),
        "recovering": ("request", "share", "recover"),
    }
)


def _first(message: Message | None, senders: set[int]) -> bool:
    """Return whether this is the first message of its sender, and record the sender."""
    assert message is not None
    new = message.sender not in senders
    senders.add(message.sender)
    return new


PACES: Mapping[str, Pace] = MappingProxyType(
    {
        **dict.fromkeys(("lightsecagg", "lightsecagg-active", "secagg", "secagg-active", "heterosag"), Pace()),
        "basecagg": Buffered(),
    }
)
"""The protocols whose rounds can be played, each with its pace."""
