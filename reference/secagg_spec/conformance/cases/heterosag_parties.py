"""Draws one party of a HeteroSAg round, and what arrives at it."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import heterosag_rounds
from secagg_spec.conformance.cases.drawn_rounds import played
from secagg_spec.conformance.cases.requests import Valid
from secagg_spec.conformance.sessions.choices import among, shared
from secagg_spec.conformance.sessions.inputs import Dropouts, SessionInputs
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.steps import SERVER, Role

USER, SERVED = "heterosag.user", "heterosag.server"
ROLES = {USER: Role.USER, SERVED: Role.SERVER}


def numbers(scene: Played) -> Parameters:
    """Return the parameters of a scene."""
    return read_parameters(**scene.inputs.numbers)


def scene(draw: Any, role: Role, *, spare: int = 0) -> Played:
    """Draw a party of a round that succeeds. Each subgroup can lose `spare` users. A user takes all of its steps."""
    p = heterosag_rounds.parameters(draw, spare=max(spare, draw(st.integers(0, 1))))
    dropped = heterosag_rounds.lost(draw, p)
    survivors = [user for user in range(p.N) if user not in dropped]
    past = heterosag_rounds.seen_before(draw, p, survivors)
    inputs = heterosag_rounds.inputs(draw, p, past)
    phase = draw(among(("masked_input", "share_keys", "advertise_keys")))
    return of(draw, role, inputs, {phase: dropped, "unmasking": _silent(draw, p, survivors)})


def of(draw: Any, role: Role, inputs: SessionInputs, dropouts: Dropouts) -> Played:
    """Draw a party of a round with these dropouts."""
    network = played(inputs, dropouts)
    if role is Role.SERVER:
        return Played(inputs, SERVER, network)
    answering = [event.party for event in network.transcript if event.step.phase == "unmasking"]
    return Played(inputs, int(draw(among(answering[:-1]))), network)


def _silent(draw: Any, p: Parameters, survivors: list[int]) -> list[int]:
    """Draw survivors that do not answer. At least t survivors answer."""
    return survivors[: draw(st.integers(0, len(survivors) - p.t))]


def begun(draw: Any, party: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a right script of a party. Return its params and its sampled values."""
    drawn = shared(draw, (party,), lambda drawing: scene(drawing, ROLES[party]))
    return drawn.params(drawn.calls()), drawn.inputs.rand(drawn.party)


def _valid(party: str) -> Callable[[Any, Capabilities], Valid]:
    return lambda draw, caps: Valid(*begun(draw, party), ("update",) * (party == USER))


VALID: dict[str, Callable[[Any, Capabilities], Valid]] = {party: _valid(party) for party in ROLES}
