"""The steps of a whole run as vectors list them: who takes the step, whether it succeeds, and what it sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import unpack
from secagg_spec.conformance.checks.base import TOO_FEW
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import SERVER, Event, Network, Randomness, Step, run_synchronous

SESSION = b"secagg-spec kit."
"""The session of the rounds in the vectors; its round number is 0."""


@dataclass(eq=False)
class _Recording(Network):
    """A network that records every step, including the one that fails."""

    steps: list[dict[str, Any]] = field(default_factory=list)

    def take(self, step: Step[Any], party: int, randomness: Randomness | None = None) -> Event:
        taken: dict[str, Any] = {"actor": "server" if party == SERVER else f"user {party}", "step": step.phase}
        self.steps.append(taken)
        try:
            event = super().take(step, party, randomness)
        except TooFewSurvivors:
            taken |= {"success": False, "reject": sorted(TOO_FEW)}
            raise
        taken |= {"success": True, "sends": [encode(message).hex() for message in event.sent]}
        return event


def steps_of_round(params: Mapping[str, Any], rand: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of a LightSecAgg round up to the first that fails. The arguments are those of a request."""
    numbers = lightsecagg.Parameters(**{name: params[name] for name in ("q", "N", "D", "U", "T", "d")})
    opened = lightsecagg.open_round(numbers, _rows(params["updates"]), session=SESSION, round=0)
    network = _Recording(opened.table, opened.states)
    noises = _rows(rand["noises"]).reshape(numbers.N, numbers.T, numbers.share_length)
    masks = _rows(rand["masks"])
    randomness = {user: {"mask": masks[user], "noise": noises[user]} for user in range(numbers.N)}
    try:
        run_synchronous(network, params["drop"], randomness)
    except TooFewSurvivors:
        assert not network.steps[-1]["success"]
    return network.steps


def _rows(texts: list[str]) -> UintArray:
    return np.array([unpack(text) for text in texts], dtype=np.uint64)
