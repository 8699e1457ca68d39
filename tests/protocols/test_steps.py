"""A step takes the state of a party that takes it, and no state of another protocol or profile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from secagg_spec.errors import ParameterError
from secagg_spec.protocols.basa.cores import Masks
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round.runs import Turn
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Role, Table

ROUND: dict[str, Any] = {"session": bytes(16), "round": 0}
KEYS = {user: lightsecagg_active.PrivateKeys(bytes([user + 1]) * 32, bytes([user + 9]) * 32) for user in range(5)}


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
    }


OPENED = opened()


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("other", OPENED)
@pytest.mark.parametrize("name", OPENED)
def test_a_step_refuses_the_states_of_another_profile(name: str, other: str) -> None:
    if {name, other} == {"secagg, active", "heterosag"}:
        pytest.skip("both hold a state of SecAgg, and take the same steps with it")
    states = OPENED[other][1].states
    for step in OPENED[name][0] if name != other else ():
        randomness = dict.fromkeys(step.randomness)
        with pytest.raises(ParameterError, match=r"^state(\.base)? = "):
            step.take(states[SERVER if step.role is Role.SERVER else 0], [], randomness=randomness)


@pytest.mark.requirement("ERR-03")
def test_inputs_and_masks_are_not_shown() -> None:
    secret = np.array([123.25, 7.0])
    state = fedbuff.receive(fedbuff.start(fedbuff.PRESETS["tiny"], np.zeros(3)), 0, 0, np.full(3, 123.25))
    masks = Masks([secret], [secret], secret)
    turn = Turn(np.full((2, 2), 12325, np.uint64), (0, 1))
    for shown in (repr(state), repr(state.buffer), repr(masks), repr(turn)):
        assert "123" not in shown
