"""A step that adds up its messages may take them in parts, in any order: the sum and what is sent are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import InconsistentSets, Malformed, ParameterError, Replay, TooFewSurvivors, WrongPhase
from secagg_spec.protocols import steps
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg

SESSION = b"a session of 16b"
KEYS = {user: bytes([user + 1]) * 32 for user in range(5)}
SECAGG = secagg_active.Parameters(R=100, N=5, D=1, T=1, t=4, k=4, d=3)
LIGHTSECAGG = lightsecagg_active.Parameters(q=7, N=5, D=1, U=4, T=1, d=3, W=4)
PRIVATE = {user: lightsecagg_active.PrivateKeys(key, key) for user, key in KEYS.items()}
NETWORKS: dict[str, Any] = {
    "secagg": lambda at: secagg.open_round(secagg.PRESETS["tiny"], rows(8, at), session=SESSION, round=1),
    "secagg, active": lambda at: secagg_active.open_round(
        SECAGG, rows(100, at), signing=KEYS, session=SESSION, round=1
    ),
    "lightsecagg": lambda at: lightsecagg.open_round(
        lightsecagg.PRESETS["tiny"], rows(7, at), session=SESSION, round=1
    ),
    "lightsecagg, active": lambda at: lightsecagg_active.open_round(
        LIGHTSECAGG, rows(7, at), keys=PRIVATE, session=SESSION, round=1
    ),
}

DRAWN: dict[str, Any] = {
    "secagg": (secagg, secagg.PRESETS["tiny"]),
    "secagg, active": (secagg, SECAGG),
    "lightsecagg": (lightsecagg, lightsecagg.PRESETS["tiny"]),
    "lightsecagg, active": (lightsecagg, LIGHTSECAGG),
}


def rows(modulus: int, seed: int) -> Any:
    """Updates of five users."""
    return np.random.default_rng(seed).integers(0, modulus, (5, 3), dtype=np.uint64)


def before_the_sum(name: str, seed: int) -> tuple[steps.Step[Any], Any, list[Any]]:
    """Return the step that adds the masked inputs, the server before it, and these."""
    network = NETWORKS[name](seed)
    rounds, parameters = DRAWN[name]
    drawn = rounds.draw_randomness(parameters, {user: SeededSource(b"parts", str(user)) for user in range(5)})
    for step in network.table:
        if step.part is not None:
            return step, network.states[steps.SERVER], list(network.mail(step, steps.SERVER))
        for party in [steps.SERVER] if step.role is steps.Role.SERVER else range(5):
            given = {each: drawn[party][each] for each in step.randomness}
            network.take(step, party, given)
    raise AssertionError(name)


def seen(state: Any, outbox: steps.Outbox) -> tuple[Any, ...]:
    """What a step made of the masked inputs."""
    base = getattr(state, "base", state)
    sums = base.masked_sums if hasattr(base, "masked_sums") else (base.masked_sum,)
    return state.phase, [one.tolist() for one in sums], [encode(message) for message in outbox]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.requirement("SAG-16", "SAG-18", "LSA-06", "LSA-07", "ERR-01")
@given(st.integers(0, 2**16), st.data())
def test_a_sum_in_parts_is_the_sum(name: str, seed: int, data: st.DataObject) -> None:
    step, server, inbox = before_the_sum(name, seed)
    inbox = data.draw(st.permutations(inbox))[: data.draw(st.integers(4, 5))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(inbox)), max_size=4)))
    state, whole = server, seen(*step.take(server, inbox, randomness={}))
    for left, right in zip([0, *cuts], cuts, strict=False):
        state = step.take_part(state, inbox[left:right])
        for message in inbox[:right]:
            with pytest.raises(InconsistentSets):
                step.take_part(state, [message])
    assert seen(*step.take(state, inbox[cuts[-1] if cuts else 0 :], randomness={})) == whole
    assert seen(*step.take(server, inbox, randomness={})) == whole


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.requirement("SAG-33", "LSA-16", "MSG-03", "ERR-01")
def test_a_part_that_is_refused_changes_nothing(name: str) -> None:
    step, server, inbox = before_the_sum(name, 0)
    some = step.take_part(server, inbox[:2])
    with pytest.raises(Malformed) as refused:
        step.take_part(some, [inbox[2], replace(inbox[3], masked=inbox[3].masked[:2])])
    assert refused.value.blamed == {3}
    with pytest.raises(WrongPhase):
        step.take_part(some, [replace(inbox[2], round=2)])
    with pytest.raises(TooFewSurvivors):
        step.take(some, [], randomness={})
    after, outbox = step.take(some, inbox[2:], randomness={})
    assert seen(after, outbox) == seen(*step.take(server, inbox, randomness={}))
    with pytest.raises(Replay):
        step.take_part(after, [])


@pytest.mark.requirement("ERR-02")
def test_a_step_that_adds_nothing_up_has_no_parts() -> None:
    step, server, inbox = before_the_sum("secagg", 0)
    for other in secagg.TABLE:
        if other is not step:
            with pytest.raises(ParameterError, match=other.name):
                other.take_part(server, inbox)
    assert all(step.part is None for base in multi_round.BASES.values() for step in base.table)
