"""A step takes the state of a party that takes it, and no state of another protocol or profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from secagg_spec.errors import Malformed, ParameterError, WrongPhase
from secagg_spec.protocols.basa.cores import Masks
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round.runs import Turn
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Role, Table
from secagg_spec.selection import batches

ROUND: dict[str, Any] = {"session": bytes(16), "round": 0}
SESSIONS = {
    "secagg": multi_round.Parameters(batches.Parameters(12, 6, 3), secagg.Parameters(97, 6, 1, 1, 3, 5, 2)),
    "lightsecagg": multi_round.Parameters(batches.Parameters(12, 6, 3), lightsecagg.Parameters(97, 6, 1, 3, 1, 2)),
}
KEYS = {user: lightsecagg_active.PrivateKeys(bytes([user + 1]) * 32, bytes([user + 9]) * 32) for user in range(5)}


def of_session(parameters: multi_round.Parameters) -> tuple[Table, Any]:
    """Return the table of a session, and a network before the first step of a round."""
    chosen = range(parameters.selection.K)
    zeros = np.zeros((parameters.selection.K, parameters.round.d), np.uint64)
    return parameters.base.table, multi_round.open_round(parameters, chosen, zeros, **ROUND)


def opened() -> dict[str, tuple[Table, Any]]:
    """Return the table of each profile, and a network before its first step."""
    sa, la, active = secagg.PRESETS["tiny"], lightsecagg.PRESETS["tiny"], secagg_active.PRESETS["tiny"]
    signing = {user: bytes([user + 1]) * 32 for user in range(active.N)}
    zeros = {name: np.zeros((p.N, p.d), np.uint64) for name, p in (("sa", sa), ("la", la), ("active", active))}
    plan = heterosag_plan.PRESETS["tiny"]
    return {
        "secagg": (secagg.TABLE, secagg.open_round(sa, zeros["sa"], **ROUND)),
        "secagg, active": (
            secagg_active.TABLE,
            secagg_active.open_round(active, zeros["active"], signing=signing, **ROUND),
        ),
        "lightsecagg": (lightsecagg.TABLE, lightsecagg.open_round(la, zeros["la"], **ROUND)),
        "lightsecagg, active": (
            lightsecagg_active.TABLE,
            lightsecagg_active.open_round(lightsecagg_active.PRESETS["tiny"], zeros["la"], keys=KEYS, **ROUND),
        ),
        "basecagg": (basecagg.TABLE, basecagg_runs.open_session(basecagg.PRESETS["tiny"], **ROUND)),
        "heterosag": (
            heterosag.TABLE,
            heterosag.open_round(plan, np.zeros((plan.N, plan.d), np.uint64), **ROUND),
        ),
        "basecagg, active": (
            basecagg_active.TABLE,
            basecagg_active.open_session(basecagg_active.PRESETS["tiny"], keys=KEYS, **ROUND),
        ),
        **{f"multi-round, {name}": of_session(p) for name, p in SESSIONS.items()},
    }


OPENED = opened()


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("other", OPENED)
@pytest.mark.parametrize("name", OPENED)
def test_a_step_refuses_the_states_of_another_profile(name: str, other: str) -> None:
    states = OPENED[other][1].states
    for step in OPENED[name][0] if name != other else ():
        randomness = dict.fromkeys(step.randomness)
        with pytest.raises(ParameterError, match=r"^state(\.base)? = "):
            step.take(states[SERVER if step.role is Role.SERVER else 0], [], randomness=randomness)


@pytest.mark.requirement("MSG-01", "MSG-03")
def test_the_server_relays_no_payload_that_is_no_message() -> None:
    table, network = OPENED["lightsecagg"]
    server, sent = network.states[SERVER], [lightsecagg.MaskShare(bytes(16), 0, 0, user, b"") for user in range(1, 5)]
    (step,) = (step for step in table if (step.phase, step.role) == ("share", Role.SERVER))
    assert len(step.take(server, sent, randomness={})[1]) == 4
    wrong: tuple[Any, ...] = (None, "text", 5, bytearray(4))
    for payload in wrong:
        spoiled = [replace(sent[0], payload=payload), *sent[1:]]
        with pytest.raises(Malformed, match=r"^MaskShare from 0 to 1: payload = '.*': must be bytes$") as refused:
            step.take(server, spoiled, randomness={})
        assert refused.value.blamed == {0}
    with pytest.raises(WrongPhase, match=r"^MaskShare from 0 belongs to another session or round$"):
        step.take(server, [replace(sent[0], round=1)], randomness={})
    with pytest.raises(WrongPhase, match=r"^SurvivingSet from 0 is not a message of this phase$"):
        step.take(server, [lightsecagg.SurvivingSet(bytes(16), 0, 0, 1, ())], randomness={})


@pytest.mark.requirement("LSA-06", "ERR-01")
def test_a_vector_of_another_length_is_named_by_its_field() -> None:
    table, network = OPENED["lightsecagg"]
    (step,) = (step for step in table if (step.phase, step.role) == ("upload", Role.SERVER))
    server = replace(network.states[SERVER], phase="upload", sharers=(0, 1, 2, 3, 4))
    update = lightsecagg.MaskedUpdate(bytes(16), 0, 0, SERVER, np.zeros(2, np.uint64))
    with pytest.raises(Malformed, match=r"^MaskedUpdate from 0: masked\.shape = \(2,\): must be \(3\)$"):
        step.take(server, [update], randomness={})


@pytest.mark.requirement("ERR-03")
def test_inputs_and_masks_are_not_shown() -> None:
    secret = np.array([123.25, 7.0])
    state = fedbuff.receive(fedbuff.start(fedbuff.PRESETS["tiny"], np.zeros(3)), 0, 0, np.full(3, 123.25))
    masks = Masks([secret], [secret], secret)
    turn = Turn(np.full((2, 2), 12325, np.uint64), (0, 1))
    for shown in (repr(state), repr(state.buffer), repr(masks), repr(turn)):
        assert "123" not in shown
