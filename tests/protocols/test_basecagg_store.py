"""What a server of BASecAgg comes back from, and what it does not; and parameters of other integer types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, WrongPhase
from secagg_spec.protocols.basecagg.round import PRESETS, Parameters, server_close, user_trained
from secagg_spec.protocols.basecagg.runs import (
    Play,
    Recover,
    Start,
    Turn,
    Upload,
    draw_randomness,
    open_session,
    supplies,
)
from secagg_spec.protocols.basecagg.store import restore, store
from secagg_spec.protocols.steps import SERVER, Role

TINY = PRESETS["tiny"]
FIRST: list[Turn] = [turn for user in range(3) for turn in (Start(user), Upload(user))]
ROUND: list[Turn] = [*FIRST, Recover((0, 1, 2))]


def announced() -> dict[str, Any]:
    """The stored state of a server in its second round, which has announced its buffer."""
    schedule = [*ROUND, *FIRST]
    sampled = draw_randomness(TINY, SeededSource(b"seed", "store"), [*schedule, ROUND[-1]])
    play = Play(
        open_session(TINY, session=bytes(16), round=0),
        supplies(TINY, [np.ones(3, dtype=np.uint64)] * 6, sampled),
        user_trained,
    )
    for turn in schedule:
        play.take(turn)
    close = next(step for step in play.network.table if (step.phase, step.role) == ("close", Role.SERVER))
    play.network.take(close, SERVER, {"rounding": np.zeros(3)})
    data: dict[str, Any] = json.loads(json.dumps(store(play.network.states[SERVER])))
    return data


@pytest.mark.requirement("BSA-35")
def test_weights_that_were_announced_are_not_drawn_again() -> None:
    state = restore(announced())
    assert len(state.entries) == 3
    with pytest.raises(WrongPhase, match="announced before"):
        server_close.take(state, (), randomness={"rounding": np.zeros(3)})


def _copy_entry(data: dict[str, Any]) -> None:
    del data["buffer"]["2"]
    data["entries"][2] = data["entries"][1]


def _filling(data: dict[str, Any]) -> None:
    """Make it the state in which the users have new stamps, and no update of theirs has come."""
    records = {str(user): {"stamp": 1, "relayed": True, "taken": False} for user in range(3)}
    data.update(buffer={}, entries=[], records=records)
    restore(data)


def _forget(data: dict[str, Any]) -> None:
    _filling(data)
    del data["records"]["0"]


def _never_taken(data: dict[str, Any]) -> None:
    _filling(data)
    data["records"]["1"]["stamp"] = 0


def _again(data: dict[str, Any]) -> None:
    """An update of the sum that was recovered waits in the buffer once more."""
    data.update(entries=[])
    data["records"]["0"]["stamp"] = 0


def _grow_old(data: dict[str, Any]) -> None:
    data.update(entries=[], round=7, recovered=None)


@pytest.mark.requirement("BSA-35")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda data: data["entries"][0].update(weight=1), "entries"),
        (lambda data: data["recovered"]["entries"][0].update(stamp=-1), "stamp"),
        (lambda data: data["recovered"]["entries"][0].update(weight=0), "weight"),
        (lambda data: data["recovered"]["entries"][0].update(user=-1), "user"),
        (lambda data: data["recovered"]["entries"][2].update(user=5), "user"),
        (lambda data: data["records"]["0"].update(relayed=1), "relayed"),
        (lambda data: data["records"]["0"].update(taken=1), "taken"),
        (_copy_entry, "entries"),
        (lambda data: data["entries"].reverse(), "entries"),
        (lambda data: data.update(round=7), "entries"),
        (lambda data: data.update(round=2**32 - 1), "round"),
        (lambda data: data["records"]["0"].update(relayed=False), "records"),
        (lambda data: data["records"].update({"3": {"stamp": 1, "relayed": True, "taken": True}}), "records"),
        (lambda data: data["records"].update({"3": {"stamp": 0, "relayed": True, "taken": True}}), "records"),
        (lambda data: data["recovered"].update(round=5), "recovered"),
        (_grow_old, "buffer"),
        (_again, "buffer"),
        (_forget, "recovered"),
        (_never_taken, "recovered"),
        (lambda data: data["recovered"]["entries"][2].update(user=3), "recovered"),
        (lambda data: data["recovered"].update(round=6), "recovered"),
        (lambda data: data["buffer"].update({"03": data["buffer"]["0"]}), "user"),
        (lambda data: data["buffer"].update({" 3 ": data["buffer"]["0"]}), "user"),
    ],
)
def test_a_state_to_which_no_steps_lead_is_refused(change: Callable[[dict[str, Any]], None], named: str) -> None:
    data = announced()
    assert restore(data).round == 1
    change(data)
    with pytest.raises(ParameterError) as refused:
        restore(data)
    assert refused.value.parameter == named


@pytest.mark.requirement("BSA-02")
def test_narrow_integers_do_not_wrap_in_parameters() -> None:
    numbers: dict[str, Any] = {"q": 2**32 - 5, "N": 10, "D": 2, "U": 7, "T": 3, "d": 2, "c_l": 1, "tau_max": 0}
    narrow: dict[str, Any] = {"K": np.uint32(5), "c_g": np.uint32(2**30)}
    with pytest.raises(ParameterError, match=r"K \* c_g"):
        Parameters(**numbers, **narrow, staleness=Staleness.constant())
    numbers = {name: np.int64(value) for name, value in TINY.numbers().items() if hasattr(TINY, name)}
    wide = Parameters(**numbers, staleness=TINY.staleness)
    assert wide == TINY
    assert all(type(value) is int for value in wide.numbers().values())
