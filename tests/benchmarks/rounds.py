"""Whole rounds of many users: what the server costs, beside one user, and what it holds.

A round is played message by message, with parameters that the planner finds for a share of dropouts. Users drop out
after they have shared their secrets or masks, which is the dearest moment for the server. Costs are counted step by
step: seconds are of the processor, and memory is what a step of the server holds at most, its inbox and outbox
apart, with the state that it keeps. Those are what the network brings and takes: a letter once, however many hold it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from tests.benchmarks.record import Aim, Benchmark, Sides, counted

from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.experiments import costs
from secagg_spec.planning.choices import Choice, answer
from secagg_spec.planning.wishes import Wish
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Event, Outbox, Randomness, Role, Step, run_synchronous

SESSION, SEED = bytes(16), b"rounds"
DROPS = {"secagg-plus": "masked_input", "lightsecagg": "upload"}
"""The phase before which users drop out, by the names of the planner."""


class Forgotten(list[Event]):
    """A transcript that keeps nothing: whole rounds of many users do not fit into memory."""

    def append(self, event: Event) -> None:
        """Let the event go."""


@dataclass(eq=False)
class Weighed(costs.Timed):
    """A network that also measures what each step of the server holds; a step that is taken twice changes nothing."""

    transcript: list[Event] = field(default_factory=Forgotten)
    held: dict[str, float] = field(default_factory=dict)

    def take_on(self, received: Outbox, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        """Let `party` take `step`, and the server once more to see what it holds."""
        if step.role is Role.SERVER:
            tracemalloc.start()
            step.take(self.states[party], received, randomness={})
            self.held[step.phase] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return super().take_on(received, step, party, randomness)


class Drawn(Mapping[int, Randomness]):
    """What each user samples, drawn when it is looked up, so that it need not be kept."""

    def __init__(self, draw: Any, parameters: Any) -> None:
        self._draw, self._parameters = draw, parameters

    def __getitem__(self, user: int) -> Randomness:
        drawn: Randomness = self._draw(self._parameters, {user: SeededSource(SEED, f"user {user}")})[user]
        return drawn

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._parameters.N))

    def __len__(self) -> int:
        return int(self._parameters.N)
