"""Draws one party of a HeteroSAg round, and what arrives at it."""

from functools import partial
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import heterosag_rounds, requests
from secagg_spec.conformance.cases.drawn_rounds import party_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.steps import Role

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
    silent = survivors[: draw(st.integers(0, len(survivors) - p.t))]
    return party_of(draw, role, inputs, {phase: dropped, "unmasking": silent})


SCENES = {party: partial(scene, role=role) for party, role in ROLES.items()}
begun = partial(requests.begun, SCENES)
VALID = requests.scripts(SCENES)
