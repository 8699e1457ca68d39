"""Record a protocol that runs phase by phase: a moment for the users of each phase, and one for the server."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.privacy.views import View
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Role, Step, run_synchronous
from secagg_spec.recording.knowledge import Knowledge, known
from secagg_spec.recording.record import Addition, Moment, Recording, Term, rows, sendings


class Scribe(Protocol):
    """What a protocol adds to a recording."""

    @property
    def protocol(self) -> str:
        """The name of the protocol."""
        ...

    @property
    def numbers(self) -> Mapping[str, int]:
        """The parameters, by their symbols."""
        ...

    @property
    def inputs(self) -> tuple[Term, ...]:
        """The update of each user."""
        ...

    @property
    def network(self) -> Network:
        """The round before its first step."""
        ...

    def randomness(self) -> Mapping[int, Randomness]:
        """Return what each user samples."""
        ...

    def additions(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Addition]:
        """Yield the additions in some steps."""
        ...

    def values(self, step: Step[Any], events: Sequence[Event]) -> Iterator[Term]:
        """Yield the other values that some steps show."""
        ...

    def views(self, seen: Sequence[Event], coalition: Collection[int]) -> Sequence[View]:
        """Return what the server and a coalition see after some steps."""
        ...

    def summed(self) -> tuple[Term, ...]:
        """Return the sums that the round recovered, by name."""
        ...


@dataclass(frozen=True)
class Fate:
    """The users that drop out before each phase, and the name of such a run."""

    name: str
    dropouts: Mapping[str, tuple[int, ...]]


def record(scribe: Scribe, fate: Fate, colluder: int) -> Recording:
    """Run the round of a scribe with these dropouts and record it."""
    network, ended = scribe.network, ""
    try:
        run_synchronous(network, fate.dropouts, scribe.randomness())
    except TooFewSurvivors as failed:
        ended = str(failed)
    moments = tuple(_moments(scribe, fate, colluder))
    return Recording(
        scribe.protocol,
        fate.name,
        scribe.numbers,
        len(scribe.inputs),
        colluder,
        scribe.inputs,
        moments,
        () if ended else scribe.summed(),
        ended,
    )


def _moments(scribe: Scribe, fate: Fate, colluder: int) -> Iterator[Moment]:
    seen, dropped = list[Event](), set[int]()
    for step, events in rows(scribe.network):
        if step.role is Role.USER:
            dropped |= set(fate.dropouts.get(step.phase, ()))
        seen += events
        refused = step.role is Role.SERVER and not events
        yield Moment(
            f"{step.phase}.{step.role.value}",
            step.phase,
            tuple(user for user in range(len(scribe.inputs)) if user not in dropped),
            tuple(event.party for event in events if event.party != SERVER),
            sendings(events),
            tuple(scribe.additions(step, events)),
            tuple(scribe.values(step, events)),
            knowledge(scribe, seen, ()),
            knowledge(scribe, seen, (colluder,)),
            ("ended",) if refused else _befell(scribe, fate, dropped),
        )


def _befell(scribe: Scribe, fate: Fate, dropped: Collection[int]) -> tuple[str, ...]:
    """Say whether users dropped out, and whether all dropouts came in the last phase."""
    last = scribe.network.table[-1].phase
    after = set(dropped) <= set(fate.dropouts.get(last, ()))
    return () if not dropped else ("after", "dropped") if after else ("dropped",)


def knowledge(scribe: Scribe, seen: Sequence[Event], coalition: Collection[int]) -> Knowledge:
    """Return what the server and a coalition know of the updates of all others after some steps."""
    honest = [user for user in range(len(scribe.inputs)) if user not in coalition]
    return known(scribe.views(seen, coalition), honest, len(scribe.inputs[0].vector))


guard(__name__)
