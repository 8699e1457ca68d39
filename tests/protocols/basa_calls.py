"""One valid call of every public function of BASA: the function, its arguments, objects that stay, further names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.crypto import boxes
from secagg_spec.crypto.keys import public_key
from secagg_spec.protocols.basa import authority as basa_authority
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa import messages as basa_messages
from secagg_spec.protocols.basa import round as basa
from secagg_spec.protocols.basa import runs as basa_runs
from secagg_spec.protocols.basa import server as basa_server
from secagg_spec.protocols.basa import store as basa_store
from secagg_spec.protocols.basa import user as basa_user
from secagg_spec.protocols.codec import field_codecs
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, Step
from tests.protocols.positions import SESSION, TINY, Scene, opened
from tests.strategies import vector

MODULES = (boxes, basa, basa_authority, basa_cores, basa_messages, basa_runs, basa_server, basa_store, basa_user)
CORES = {
    "table_of",
    "sampled_by_users",
    "whole",
    "digests",
    "split",
    "check_length",
    "require",
    "blaming",
    "draw_signing_keys",
    "draw_hidden",
    "store_server",
    "store_authority",
    "store_user",
    "plus",
    "minus",
}
"""Functions behind a boundary, and functions whose only arguments are objects of the library."""

Parts: TypeAlias = tuple[Callable[..., Any], dict[str, Any], dict[str, Any], tuple[str, ...]]

KEY = bytes([7]) * 32
NUMBERS = {"R": 16, "N": 6, "T": 1, "d": 2, "K": 3, "S": 1, "c_l": 1, "c_g": 2, "tau_max": 1, "timeouts": "settle"}
ADDRESS = boxes.Address(boxes.Epoch(bytes(32), SESSION, 0, 4, True), boxes.PAIR, 0, 0, 1)
BOX = boxes.seal(ADDRESS, public_key(KEY), KEY, KEY)
MASKS = basa_cores.Masks([vector([1, 2])], [vector([3, 4])])
SCENE = Scene(TINY)
PUBLIC = {"verification": SCENE.server.session.verification, "authority": SCENE.server.session.authority}
START = {"session": SESSION, "round": 0}
HEADER = ("session", "round", "sender", "receiver", "inbox", "party")
SAMPLED = ("pair_keys", "self_keys", "seeds", "box_key", "rounding", "draw", "randomness", "seed", "private")
WAY = (
    ("open", AUTHORITY), ("open", SERVER), ("request", 0), ("offer", SERVER), ("assign", AUTHORITY), ("fetch", 0),
    ("issue", AUTHORITY), ("upload", 0), ("take", SERVER), ("settle", AUTHORITY), ("settle", SERVER),
)  # fmt: skip
END = (("close", SERVER), ("close", AUTHORITY), ("recover", SERVER))


def ready(step: Step[Any]) -> tuple[Scene, int]:
    """A session in which a party may take a step, and the party."""
    parties = {Role.SERVER: SERVER, Role.AUTHORITY: AUTHORITY, Role.USER: 0}
    place = (step.phase, parties[step.role])
    if place in END:
        scene = opened()
        scene.upload(0, 1, 2)
        for phase, party in END[: END.index(place)]:
            scene.take(phase, party)
        return scene, place[1]
    scene = Scene(TINY)
    before = {("expire", SERVER): 4, ("abandon", SERVER): 4, ("abandon", AUTHORITY): 4}
    for phase, party in WAY[: before.get(place, WAY.index(place) if place in WAY else 0)]:
        if phase == "request":
            scene.train(0)
        scene.take(phase, party)
    if step.phase == "request":
        scene.train(0)
    if place == ("abandon", AUTHORITY):
        scene.take("abandon", SERVER)
    return scene, place[1]


def step_parts(step: Step[Any]) -> Parts:
    """A valid call of a step."""
    scene, party = ready(step)
    row = scene.step(step.phase, party)
    fields = {name for kind in step.receives for name in field_codecs(kind)}
    also = (*HEADER, *SAMPLED, *fields, *(kind.__name__ for kind in step.receives))
    arguments = {"inbox": scene.mail(step.phase, party), "randomness": scene.draw(row, {})}

    def call(state: Any, inbox: Any, randomness: Any) -> Any:
        return row.take(state, inbox, randomness=randomness)

    return call, arguments, {"state": scene.network.states[party]}, also


def stored_parts() -> Iterator[tuple[str, Parts]]:
    """Valid calls of what restores the parties."""
    scene = opened()
    scene.upload(0, 1, 2)
    scene.close()
    scene.open()
    scene.upload(0)
    scene.keyed(1)
    stored: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "restore_user": (basa_store.restore_user, basa_store.store_user(scene.user(1))),
        "restore_authority": (basa_store.restore_authority, basa_store.store_authority(scene.authority)),
        "restore_server": (basa_store.restore_server, basa_store.store_server(scene.server)),
    }
    names = {
        *NUMBERS, "staleness", "kind", "numerator", "denominator", "start", "data", "vector", "user", "weight",
        "entries", "accepted", "boxes", "box", "hash", "hashes", "total", "sum", "modulus", "private", "round",
    }  # fmt: skip
    for name, (function, data) in stored.items():
        yield name, (function, {"data": data}, {}, (*names, *data))


CALLS: dict[str, Parts] = {
    "Parameters of BASA": (
        basa_cores.Parameters, {**NUMBERS}, {"staleness": TINY.staleness}, ()
    ),
    "seal": (boxes.seal, {"public": public_key(KEY), "seed": KEY, "box_key": KEY}, {"address": ADDRESS}, ("private",)),
    "open_box": (boxes.open_box, {"private": KEY, "box": BOX}, {"address": ADDRESS}, ()),
    "mask_key": (
        lambda seed: boxes.mask_key(ADDRESS.epoch, seed, 0, 1), {"seed": KEY}, {}, ("secret",)
    ),
    "encode_update of BASA": (
        basa_cores.encode_update, {"x": np.array([0.5, -0.25]), "rounding": np.array([0.5, 0.0])},
        {"parameters": TINY}, (),
    ),
    "mask_update of BASA": (
        basa_cores.mask_update, {"update": vector([1, 15]), "weight": 2}, {"parameters": TINY, "masks": MASKS}, (),
    ),
    "check_accepted": (basa_cores.check_accepted, {"accepted": [0, 2]}, {"name": "accepted", "end": 4}, ()),
    "authority_start": (
        basa_authority.authority_start, {**START, "signing": KEY},
        {"parameters": TINY, "verification": PUBLIC["verification"]}, (),
    ),
    "server_start of BASA": (basa_server.server_start, START, {"parameters": TINY, **PUBLIC}, ()),
    "user_start of BASA": (
        basa_user.user_start, {"session": SESSION, "user": 0, "signing": SCENE.keys.users[0]},
        {"parameters": TINY, **PUBLIC}, ("private",),
    ),
    "user_trained of BASA": (
        basa_user.user_trained, {"update": vector([1, 15]), "stamp": 0}, {"state": SCENE.user(0)}, (),
    ),
    "open_session of BASA": (basa_runs.open_session, START, {"parameters": TINY, "keys": SCENE.keys}, ()),
    **{f"{step.name} of BASA": step_parts(step) for step in basa.TABLE},
    **dict(stored_parts()),
}  # fmt: skip
