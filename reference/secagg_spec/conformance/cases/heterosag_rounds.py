"""Draws rounds of HeteroSAg: what each party is given, who may drop out, and which requests a user answered before."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import heterosag_sessions, lightsecagg_parties, strategies
from secagg_spec.conformance.cases.requests import one_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.conformance.sessions.inputs import Dropouts, SessionInputs
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.steps import SERVER

PHASES = heterosag.PHASES
_MOST = 3
"""The most subgroups of a round, which then has about ten users."""


def parameters(draw: Any, *, spare: int = 0, most: int = _MOST) -> Parameters:
    """Draw the numbers of a small round in which each subgroup can lose `spare` users."""
    return heterosag_sessions.parameters(draw, subgroups=2, most=most, spare=spare)


def quantised(draw: Any, p: Parameters) -> UintArray:
    """Draw the input of each user, (N, d): zeros, the largest numbers of each cell, or pseudo-random ones."""
    pattern, seed = draw(among(("random", "largest", "zeros"))), draw(st.integers(0, 2**32 - 1))
    source = SeededSource(seed.to_bytes(4, "little"), "quantised")
    words = np.frombuffer(source.take(8 * p.N * p.d), "<u8").reshape(p.N, p.d)
    updates = np.zeros((p.N, p.d), np.uint64)
    for cell in p.parts:
        rows, columns = sorted(cell.members), slice(cell.start, cell.stop)
        drawn = {"random": words[rows, columns] % np.uint64(cell.levels), "largest": np.uint64(cell.levels - 1)}
        updates[rows, columns] = drawn.get(pattern, np.uint64(0))
    return updates


def inputs(draw: Any, p: Parameters | None = None, past: Sequence[Sequence[int]] | None = None) -> SessionInputs:
    """Draw a round. `past` are the requests that its users answered before, drawn if None."""
    p = parameters(draw, spare=draw(st.integers(0, 1))) if p is None else p
    earlier = draw(among(([], [list(range(p.N))]))) if past is None else past
    updates, seed = quantised(draw, p), draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little")
    setups: dict[int, Mapping[str, Any]] = {SERVER: {"past": [list(users) for users in earlier]}}
    for user in range(p.N):
        own = [list(users) for users in earlier if user in users]
        setups[user] = {"user": user, "past": own, "update": pack(updates[user])}
    rands = {user: lightsecagg_parties.round_secrets(SeededSource(seed, str(user)), p.t) for user in range(p.N)}
    number = draw(among(lightsecagg_parties.ROUNDS))
    return SessionInputs("heterosag", members(p), lightsecagg_parties.session_id(draw), number, setups, rands)


def spared(draw: Any, inputs: SessionInputs) -> Dropouts:
    """Draw users that drop out, so that enough are left in total and in each cell."""
    p = read_parameters(**inputs.numbers)
    dropouts: Dropouts = {phase: [] for phase in PHASES}
    return {**dropouts, draw(among(PHASES[:-1])): lost(draw, p)}


def lost(draw: Any, p: Parameters) -> list[int]:
    """Draw users that a round can lose: of each subgroup none, all, or as many as leave T + 2 users."""
    left, dropped = p.N - p.enough, list[int]()
    for users in p.members:
        most = min(left, len(users) - p.T - 2)
        kinds = ["none", *(["some"] if most else []), *(["all"] if len(users) <= left else [])]
        kind = draw(among(kinds))
        chosen = strategies.subset(draw, users, 1, most) if kind == "some" else list(users) * (kind == "all")
        dropped += chosen
        left -= len(chosen)
    return sorted(dropped)


def seen_before(draw: Any, p: Parameters, survivors: Sequence[int]) -> list[list[int]]:
    """Draw requests that may precede one with these survivors: all users, the same ones, or without some subgroups."""
    parts = [sorted(set(users) & set(survivors)) for users in p.members]
    fewer = [sorted(set(survivors) - set(part)) for part in parts if part]
    whole = [list(range(p.N)), sorted(survivors)]
    kinds = [(), (whole,), (whole, fewer), ([*whole, *fewer], [*whole, *fewer])]
    kept: list[list[int]] = []
    for found in one_of(draw, kinds):
        users = one_of(draw, found)
        if users and allowed(p, kept, users) and allowed(p, [*kept, users], survivors):
            kept.append(users)
    return kept


def allowed(p: Parameters, past: Sequence[Sequence[int]], survivors: Sequence[int]) -> bool:
    """Return whether a request with these survivors may follow the requests in `past` (HSA-27)."""
    try:
        heterosag.check_past(p, survivors, [frozenset(users) for users in past])
    except TooFewSurvivors:
        return False
    return True
