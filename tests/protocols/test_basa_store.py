"""What the parties of BASA come back from, at every step, and what they do not come back from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import ParameterError, Replay, WrongPhase
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.store import (
    restore_authority,
    restore_server,
    restore_user,
    store_authority,
    store_server,
    store_user,
)
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER
from tests.protocols.positions import CLOSED, PROFILES, TINY, Scene, opened
from tests.strategies import integers_of, snapshot


def again(data: dict[str, Any]) -> dict[str, Any]:
    """Stored data as JSON brings it back."""
    read: dict[str, Any] = json.loads(json.dumps(data))
    return read


def revive(scene: Scene) -> None:
    """All parties are killed, and come back from what they stored."""
    states = scene.network.states
    for party, state in states.items():
        before = snapshot(state)
        if party == SERVER:
            states[party] = restore_server(again(store_server(state)))
        elif party == AUTHORITY:
            states[party] = restore_authority(again(store_authority(state)))
        else:
            states[party] = restore_user(again(store_user(state)))
        assert snapshot(states[party]) == before


class Mortal(Scene):
    """A session in which everybody dies between all steps."""

    def take(self, *args: Any, **given: Any) -> Any:
        """Take a step, after a death and before another."""
        revive(self)
        event = super().take(*args, **given)
        revive(self)
        return event


@pytest.mark.slow
@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize("parameters", PROFILES)
def test_parties_that_die_between_all_steps_go_on_as_if_they_had_not(parameters: Parameters) -> None:
    mortal, scene = Mortal(parameters), Scene(parameters)
    for one in (mortal, scene):
        for _ in range(2):
            one.open()
            one.upload(0)
            one.expire(1, keyed=False)
            one.upload(1)
            if parameters.settle:
                one.expire(2, keyed=True)
            one.upload(3)
            one.recover_rightly()
        one.open()
        one.upload(4)
        one.abandon()
    said = [[encode(m) for event in one.network.transcript for m in event.sent] for one in (mortal, scene)]
    assert said[0] == said[1]
    assert snapshot(mortal.server.recovered) == snapshot(scene.server.recovered)


@pytest.mark.requirement("BAA-12", "BAA-44")
def test_an_authority_that_comes_back_gives_no_key_twice() -> None:
    scene = opened()
    scene.keyed(0)
    asked = scene.network.transcript[-1].received
    revive(scene)
    scene.refuse(Replay, (), "issue", AUTHORITY, asked)


@pytest.mark.requirement("BAA-27", "BAA-44")
def test_a_user_that_comes_back_uploads_nothing_twice() -> None:
    scene = opened()
    scene.keyed(0)
    answer = scene.mail("upload", 0)
    scene.send(0)
    revive(scene)
    scene.refuse(WrongPhase, (), "upload", 0, answer)


@pytest.mark.requirement("BAA-44")
def test_an_authority_comes_back_in_the_last_epoch() -> None:
    scene = opened(round=2**32 - 1)
    scene.upload(0)
    revive(scene)
    assert scene.authority.is_open
    scene.upload(1, 2)
    scene.recover_rightly()
    assert scene.authority.epoch == 2**32
    revive(scene)
    assert not scene.authority.is_open


# ------------------------------------------------------------------------------------------------ what is refused


def at(phase: str) -> Scene:
    """A session in which the server is in a phase, after an epoch that was recovered."""
    scene = opened()
    scene.upload(0, 1, 2)
    scene.close()
    if phase == "idle":
        return scene
    scene.open()
    scene.upload(0)
    scene.expire(1, keyed=True)
    scene.upload(2)
    if phase in ("serving", "settling"):
        scene.keyed(3)
    if phase == "settling":
        scene.send(3)
        scene.take("take", SERVER)
    if phase == "closing":
        scene.upload(3)
        scene.take("close", SERVER)
    return scene


Change = Callable[[dict[str, Any]], Any]


def flip(text: str) -> str:
    """Hex digits of which one is another."""
    return ("1" if text[0] == "0" else "0") + text[1:]


SERVER_CHANGES: list[tuple[str, Change, str]] = [
    ("idle", lambda d: d.update(format="x"), "format"),
    ("idle", lambda d: d.update(phase="dead"), "phase"),
    ("idle", lambda d: d.update(serving=2), "serving"),
    ("idle", lambda d: d.update(serving=np.arange(2)), "serving"),
    ("idle", lambda d: d.update(keys="00"), "keys"),
    ("idle", lambda d: d.update(epoch=-1), "epoch"),
    ("idle", lambda d: d.update(session="00"), "len(session)"),
    ("idle", lambda d: d.update(encryption="cp-abe"), "encryption"),
    ("idle", lambda d: d.update(encryption=np.arange(2)), "encryption"),
    ("idle", lambda d: d["verification"].pop(), "len(verification)"),
    ("idle", lambda d: d["parameters"].update(K=2), "K"),
    ("idle", lambda d: d["recovered"].update(epoch=1), "recovered"),
    ("idle", lambda d: d["recovered"].update(epoch=-1), "epoch"),
    ("idle", lambda d: d["recovered"]["entries"].reverse(), "entries"),
    ("idle", lambda d: d["recovered"]["entries"].pop(), "len(entries)"),
    ("idle", lambda d: d["recovered"]["entries"][0].update(weight=0), "weight"),
    ("idle", lambda d: d["recovered"].update(sum="0000"), "sum"),
    ("filling", lambda d: d.update(epoch=None), "recovered"),
    ("filling", lambda d: d.update(epoch=2), "keys, signature"),
    ("filling", lambda d: d.update(keys=flip(d["keys"])), "keys, signature"),
    ("filling", lambda d: d.update(total=None), "epoch, total"),
    ("filling", lambda d: d.update(phase="idle"), "keys, signature, places, total"),
    ("filling", lambda d: d.update(phase="serving"), "serving"),
    ("filling", lambda d: d.update(serving=3), "serving"),
    ("filling", lambda d: d["places"][1].update(user=0), "places"),
    ("filling", lambda d: d["places"][0].update(user=6), "user"),
    ("filling", lambda d: d["places"][0].update(weight=3), "weight"),
    ("filling", lambda d: d["places"][0].update(accepted=1), "accepted"),
    ("filling", lambda d: d["places"][1].update(weight=1), "weight"),
    ("filling", lambda d: d["places"][0]["boxes"].pop(), "boxes"),
    ("filling", lambda d: d["places"][0]["boxes"].append(""), "boxes"),
    ("filling", lambda d: d["places"][0]["boxes"].__setitem__(0, "00"), "len(box)"),
    ("filling", lambda d: d.update(places=d["places"][1:2]), "total"),
    ("filling", lambda d: d.pop("places"), "data"),
    ("filling", lambda d: d["recovered"].update(epoch=1), "recovered"),
    ("serving", lambda d: d.update(serving=0), "places"),
    ("serving", lambda d: d.update(serving=None), "serving"),
    ("serving", lambda d: d.update(serving=True), "serving"),
    ("serving", lambda d: d.update(serving=6), "serving"),
    ("serving", lambda d: d.update(serving=-1), "serving"),
    ("settling", lambda d: d.update(phase="serving"), "upload"),
    ("settling", lambda d: d.update(upload=flip(d["upload"])), "upload"),
    ("settling", lambda d: d.update(upload=d["upload"][:-2] + "zz"), "upload"),
    ("settling", lambda d: d.update(upload=d["upload"][:-2] + "ff"), "upload"),
    ("settling", lambda d: d.update(serving=4), "upload"),
    ("closing", lambda d: d["places"][3].update(accepted=False, weight=0, boxes=[], user=0), "places"),
]


@pytest.mark.requirement("BAA-44")
def test_a_server_serves_nobody_once_the_buffer_is_full() -> None:
    scene = opened()
    scene.upload(0, 1, 2)
    data = again(store_server(scene.server))
    assert (
        len(restore_server(data).entries)
        == scene.server.session.parameters.K
        < scene.server.session.parameters.positions
    )
    data.update(phase="serving", serving=3)
    with pytest.raises(ParameterError) as refused:
        restore_server(data)
    assert refused.value.parameter == "places"
    skipped = {"user": 3, "weight": 0, "boxes": [], "accepted": False}
    data.update(phase="filling", serving=None, places=[*data["places"], skipped])
    with pytest.raises(ParameterError, match="none skipped after K"):
        restore_server(data)


@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize(("phase", "change", "named"), SERVER_CHANGES)
def test_a_server_to_which_no_steps_lead_is_refused(phase: str, change: Change, named: str) -> None:
    data = again(store_server(at(phase).server))
    assert restore_server(data).phase == phase
    change(data)
    with pytest.raises(ParameterError) as refused:
        restore_server(data)
    assert refused.value.parameter == named


def with_four(data: dict[str, Any]) -> None:
    """A position that is skipped after K were accepted."""
    data["seats"] = [data["seats"][0], data["seats"][0] | {"user": 4}, data["seats"][2], data["seats"][1] | {"user": 5}]
    data["seats"][1]["hashes"] = data["seats"][0]["hashes"][1:]
    data["seats"].insert(2, data["seats"].pop(2))


AUTHORITY_CHANGES: list[tuple[Change, str]] = [
    (lambda d: d.update(epoch=2**32 + 1), "epoch"),
    (lambda d: d.update(is_open=1), "is_open"),
    (lambda d: d.update(epoch=2**32), "is_open"),
    (lambda d: d.update(is_open=False), "len(ring)"),
    (lambda d: d.update(is_open=False, ring=""), "seats"),
    (lambda d: d.update(ring=d["ring"][2:]), "len(ring)"),
    (lambda d: d.update(signing=flip(d["signing"])), "authority"),
    (lambda d: d["seats"][0].update(user=1), "seats"),
    (lambda d: d["seats"][0].update(user=-1), "user"),
    (lambda d: d["seats"][0].update(state="unused"), "seats"),
    (lambda d: d["seats"][1].update(state="keyed"), "seats"),
    (lambda d: d["seats"][0]["hashes"].pop(), "hashes"),
    (lambda d: d["seats"][0]["hashes"].__setitem__(1, "00"), "len(hash)"),
    (lambda d: d["seats"][1]["hashes"].append("00" * 32), "hashes"),
    (lambda d: d["seats"].extend(d["seats"][1] | {"user": user} for user in (4, 5)), "seats"),
    (with_four, "seats"),
]  # fmt: skip


@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize(("change", "named"), AUTHORITY_CHANGES)
def test_an_authority_to_which_no_steps_lead_is_refused(change: Change, named: str) -> None:
    data = again(store_authority(at("filling").authority))
    assert len(restore_authority(data).seats) == 3
    change(data)
    with pytest.raises(ParameterError) as refused:
        restore_authority(data)
    assert refused.value.parameter == named


USER_CHANGES: list[tuple[Change, str]] = [
    (lambda d: d.update(user=1), "signing"),
    (lambda d: d.update(phase="dead"), "phase"),
    (lambda d: d.update(phase="idle"), "phase"),
    (lambda d: d.update(phase="asked"), "phase"),
    (lambda d: d.update(update=None), "phase"),
    (lambda d: d.update(offer=None), "phase"),
    (lambda d: d.update(offer=flip(d["offer"])), "offer"),
    (lambda d: d.update(offer=7), "offer"),
    (lambda d: d.update(stamp=9), "offer"),
    (lambda d: d.update(stamp=-1), "stamp"),
    (lambda d: d.update(last=1), "offer"),
    (lambda d: d.update(last=-1), "last"),
    (lambda d: d.update(update="0100000000000000"), "update.shape"),
]


@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize(("change", "named"), USER_CHANGES)
def test_a_user_to_which_no_steps_lead_is_refused(change: Change, named: str) -> None:
    data = again(store_user(at("serving").user(3)))
    assert restore_user(data).phase == "fetched"
    change(data)
    with pytest.raises(ParameterError) as refused:
        restore_user(data)
    assert refused.value.parameter == named


@pytest.mark.requirement("BAA-44")
def test_a_server_of_the_other_profile_has_no_skipped_positions() -> None:
    data = again(store_server(opened(CLOSED).server))
    data["places"] = [{"user": 0, "weight": 0, "boxes": [], "accepted": False}]
    with pytest.raises(ParameterError) as refused:
        restore_server(data)
    assert refused.value.parameter == "places"


@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.update(more=1), "data = 'with 1 unknown'"),
        (lambda d: d["parameters"].pop("timeouts"), "parameters = 'without timeouts'"),
        (lambda d: d["parameters"]["staleness"].pop("start"), "staleness = 'without start'"),
        (lambda d: d.pop("session"), "data = 'without session'"),
        (lambda d: d.update(session=d["session"] + " "), "session = '33 characters'"),
        (lambda d: d["verification"].append(d["verification"][2]), r"verification\[6\] = '[0-9a-f]*…"),
    ],
)
def test_what_lacks_a_member_or_has_another_one_is_refused(change: Change, text: str) -> None:
    scene = at("settling")
    for stored, restore in (
        (store_server(scene.server), restore_server),
        (store_authority(scene.authority), restore_authority),
        (store_user(scene.user(3)), restore_user),
    ):
        data = again(stored)
        change(data)
        with pytest.raises(ParameterError, match=f"^{text}: must be ") as refused:
            restore(data)
        assert scene.user(3).signing.hex() not in str(refused.value)


@pytest.mark.requirement("BAA-44")
def test_members_of_a_stored_position_are_not_left_out() -> None:
    for name in ("weight", "accepted"):
        data = again(store_server(at("filling").server))
        del data["places"][1][name]
        with pytest.raises(ParameterError, match="places"):
            restore_server(data)
    nothings: tuple[Any, ...] = ("", {})
    for nothing in nothings:
        with pytest.raises(ParameterError, match="places"):
            restore_server({**again(store_server(opened().server)), "places": nothing})


@given(st.sampled_from(("none", -1, "x", [1], {"0": 1})), st.data())
def test_nonsense_is_refused_as_what_it_is(value: Any, data: st.DataObject) -> None:
    scene = at("settling")
    for stored, restore in (
        (store_server(scene.server), restore_server),
        (store_authority(scene.authority), restore_authority),
        (store_user(scene.user(3)), restore_user),
    ):
        changed = {**again(stored), data.draw(st.sampled_from(sorted(stored))): value}
        if changed != stored:
            with pytest.raises(ParameterError):
                restore(changed)


def test_the_sum_of_a_restored_server_is_the_one_that_it_had() -> None:
    scene = at("idle")
    restored = restore_server(again(store_server(scene.server))).recovered
    assert restored is not None
    assert scene.server.recovered is not None
    assert integers_of(restored.sum) == integers_of(scene.server.recovered.sum)
    assert restored.average.tolist() == scene.server.recovered.average.tolist()
    assert replace(scene.server, recovered=restored).session.parameters == TINY
