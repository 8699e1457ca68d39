"""The server of BASA, clause by clause; the costs and the tables of the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.crypto.keys import sha256
from secagg_spec.crypto.signatures import sign
from secagg_spec.errors import (
    BadSignature,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    ParameterError,
    Replay,
    TooFewSurvivors,
    UnknownUser,
    WrongPhase,
)
from secagg_spec.protocols.basa import messages as basa_messages
from secagg_spec.protocols.basa.cores import PRESETS, Parameters
from secagg_spec.protocols.basa.messages import (
    Abandonment,
    Assignment,
    EpochKeys,
    PositionOffer,
    PositionRequest,
    PositionState,
    PositionUpload,
    Release,
)
from secagg_spec.protocols.basa.round import TABLE
from secagg_spec.protocols.basa.runs import SigningKeys, open_session
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, Step, sizes
from tests.protocols.positions import CLOSED, PROFILES, SESSION, TINY, Scene, changed, flipped, opened, sessions
from tests.strategies import integers_of, vector
from tests.test_text import FIELD_TYPES, code, own_fields, page, rows

TO_SERVER = (SESSION, 0, AUTHORITY, SERVER)


def request(user: int, stamp: int = 0) -> PositionRequest:
    """A user asks for a position."""
    return PositionRequest(SESSION, stamp, user, SERVER)


def sent(parameters: Parameters = TINY, position: int = 1) -> tuple[Scene, PositionUpload]:
    """The upload at some position waits for the server."""
    scene = opened(parameters)
    scene.upload(*range(position))
    scene.keyed(position)
    return scene, scene.send(position)


def signed_anew(scene: Scene, message: PositionUpload, **values: Any) -> PositionUpload:
    """An upload with other values that its user signed."""
    other = replace(message, **values)
    boxes = [other.boxes[at : at + 80] for at in range(0, len(other.boxes), 80)]
    hashes = b"".join(sha256(box) for box in boxes)
    signed = (other.position, other.stamp, other.weight)
    data = scene.server.session.boxes_signed(other.round, other.sender, signed, hashes)
    return replace(other, signature=sign(scene.keys.users[other.sender], data))


# ----------------------------------------------------------------------------------------------------------- open


@pytest.mark.requirement("BAA-29", "BAA-51")
@pytest.mark.parametrize("parameters", PROFILES)
def test_only_keys_that_the_authority_signed_are_taken(parameters: Parameters) -> None:
    scene = Scene(parameters)
    (right,) = scene.take("open", AUTHORITY).sent
    assert isinstance(right, EpochKeys)
    for wrong in (
        changed(right, keys=flipped(right.keys)),
        changed(right, signature=flipped(right.signature)),
        changed(right, round=1),
        changed(right, signature=sign(scene.keys.users[0], b"")),
    ):
        scene.refuse(BadSignature, (AUTHORITY,), "open", SERVER, [wrong])
    for wrong in (
        changed(right, keys=right.keys[32:]),
        changed(right, keys=right.keys + bytes(32)),
        changed(right, keys=b""),
        changed(right, signature=right.signature[1:]),
    ):
        scene.refuse(Malformed, (AUTHORITY,), "open", SERVER, [wrong])
    scene.refuse(InconsistentSets, (0,), "open", SERVER, [changed(right, sender=0)])
    scene.take("open", SERVER)


@pytest.mark.requirement("BAA-50")
@example(1, 1)
@example(1, 2)
@given(st.integers(0, 5), st.integers(0, 5))
def test_keys_of_an_epoch_that_is_not_new_are_refused(known: int, epoch: int) -> None:
    scene = Scene(TINY, round=epoch)
    scene.network.states[SERVER] = replace(scene.server, epoch=known)
    scene.take("open", AUTHORITY)
    if epoch > known:
        scene.take("open", SERVER)
        assert scene.epoch == epoch
    else:
        scene.refuse(Replay, (AUTHORITY,), "open", SERVER)


@pytest.mark.requirement("BAA-50")
@pytest.mark.parametrize("end", ["recovered", "abandoned", "void"])
def test_the_keys_of_an_epoch_that_has_ended_are_refused(end: str) -> None:
    scene = Scene(CLOSED if end == "void" else TINY)
    (keys,) = scene.take("open", AUTHORITY).sent
    scene.take("open", SERVER)
    scene.upload(0, 1)
    if end == "recovered":
        scene.upload(2)
        scene.close()
    elif end == "void":
        scene.expire(2, keyed=True)
    else:
        scene.abandon()
    assert scene.server.phase == "idle"
    scene.refuse(Replay, (AUTHORITY,), "open", SERVER, [keys])
    scene.open()
    assert scene.epoch == 1


# ---------------------------------------------------------------------------------------------------------- offer


@pytest.mark.requirement("BAA-35")
@given(st.lists(st.booleans(), max_size=3), st.permutations(range(6)))
def test_an_offer_has_the_boxes_of_the_accepted_positions(accepted: list[bool], users: list[int]) -> None:
    if sum(accepted) == TINY.K:
        accepted[0] = False
    scene = opened()
    for user, uploads in zip(users, accepted, strict=False):
        if uploads:
            scene.upload(user)
        else:
            scene.expire(user, keyed=True)
    position, before = len(accepted), [at for at, yes in enumerate(accepted) if yes]
    scene.train(users[5])
    scene.take("request", users[5])
    offer, announced = scene.take("offer", SERVER).sent
    assert isinstance(offer, PositionOffer)
    assert isinstance(announced, Assignment)
    boxes = [scene.uploads[0, at][1].boxes[80 * (position - at - 1) :][:80] for at in before]
    assert (offer.position, offer.boxes, offer.receiver) == (position, b"".join(boxes), users[5])
    assert (offer.keys, offer.signature) == (scene.server.keys, scene.server.signature)
    assert (announced.position, announced.user, announced.receiver) == (position, users[5], AUTHORITY)


@pytest.mark.requirement("BAA-36")
def test_a_position_is_offered_to_one_user_at_a_time() -> None:
    scene = opened()
    scene.offer(0)
    for user in range(6):
        scene.refuse(WrongPhase, (), "offer", SERVER, [request(user)])
    scene.key(0)
    scene.send(0)
    scene.take("take", SERVER)
    scene.refuse(WrongPhase, (), "offer", SERVER, [request(1)])
    scene.settle()
    scene.take("offer", SERVER, [request(1)])


@pytest.mark.requirement("BAA-36")
def test_who_uploaded_or_was_skipped_gets_nothing_more_in_the_epoch() -> None:
    scene = opened()
    scene.upload(0)
    scene.expire(1, keyed=True)
    scene.expire(2, keyed=False)
    for user in (0, 1):
        scene.refuse(WrongPhase, (), "offer", SERVER, [request(user)])
    scene.upload(2)
    scene.abandon()
    scene.open()
    scene.upload(0, 1, 2)


@pytest.mark.requirement("BAA-36")
@pytest.mark.parametrize("parameters", PROFILES)
def test_a_full_buffer_offers_nothing(parameters: Parameters) -> None:
    scene = opened(parameters)
    scene.upload(0, 1, 2)
    assert len(scene.server.places) < TINY.positions
    scene.refuse(WrongPhase, (), "offer", SERVER, [request(3)])


@pytest.mark.requirement("BAA-36")
def test_a_buffer_without_a_position_left_offers_nothing() -> None:
    scene = opened()
    scene.expire(0, keyed=True)
    scene.upload(1)
    scene.expire(2, keyed=True)
    scene.upload(3)
    scene.refuse(WrongPhase, (), "offer", SERVER, [request(4)])


@pytest.mark.requirement("BAA-49")
@example(0, 3)
@example(0, 4)
@example(5, 4)
@given(st.integers(0, 9), st.integers(0, 9))
def test_only_requests_with_a_fitting_stamp_are_served(stamp: int, epoch: int) -> None:
    scene = opened(replace(TINY, tau_max=3, c_g=4, R=32), round=epoch)
    if 0 <= epoch - stamp <= 3:
        scene.take("offer", SERVER, [request(0, stamp)])
    else:
        scene.refuse(InconsistentSets, (0,), "offer", SERVER, [request(0, stamp)])


# ----------------------------------------------------------------------------------------------------------- take


@pytest.mark.requirement("BAA-37")
def test_only_the_upload_of_the_served_user_at_its_position_is_taken() -> None:
    scene, right = sent()
    for user in (0, 2, 5):
        scene.refuse(WrongPhase, (), "take", SERVER, [signed_anew(scene, right, sender=user)])
    for position in (0, 2, 3):
        scene.refuse(WrongPhase, (), "take", SERVER, [signed_anew(scene, right, position=position)])
    scene.refuse(WrongPhase, (), "take", SERVER, [signed_anew(scene, right, round=1)])
    scene.refuse(InconsistentSets, (6,), "take", SERVER, [changed(right, sender=6)])
    scene.take("take", SERVER)
    scene.refuse(WrongPhase, (), "take", SERVER, [right])


@pytest.mark.requirement("BAA-37", "BAA-12")
@pytest.mark.parametrize("parameters", PROFILES)
def test_an_upload_that_comes_late_is_refused(parameters: Parameters) -> None:
    """When the offer has expired, when the next user is served, and in the next epoch."""
    scene, right = sent(parameters)
    scene.take("expire", SERVER)
    scene.refuse(WrongPhase, (), "take", SERVER, [right])
    scene.settle()
    scene.refuse(WrongPhase, (), "take", SERVER, [right])
    scene.lose()
    if parameters.settle:
        scene.keyed(2)
        scene.refuse(WrongPhase, (), "take", SERVER, [right])
        scene.abandon()
    scene.lose()
    scene.open()
    scene.upload(0)
    scene.offer(1)
    scene.refuse(WrongPhase, (), "take", SERVER, [right])


@pytest.mark.requirement("BAA-38")
@example(0, 22, 3)
@example(1, 22, 3)
@example(3, 63, 3)
@example(1, 20, 3)
@example(4, 64, 3)
@given(st.integers(0, 6), st.integers(0, 70), st.integers(3, 5))
def test_only_weights_that_the_staleness_allows_are_taken(stamp: int, weight: int, epoch: int) -> None:
    p = replace(TINY, R=2**16, c_g=64, tau_max=2)
    scene = opened(p, round=epoch)
    scene.keyed(0)
    right = scene.send(0)
    said = signed_anew(scene, right, stamp=stamp, weight=weight)
    tau = epoch - stamp
    if 0 <= tau <= 2 and weight in admissible_weights(p.staleness, 64, tau):
        scene.take("take", SERVER, [said])
    else:
        scene.refuse(InconsistentSets, (0,), "take", SERVER, [said])


@pytest.mark.requirement("BAA-39")
@pytest.mark.parametrize("parameters", PROFILES)
def test_only_signed_boxes_as_many_as_needed_are_taken(parameters: Parameters) -> None:
    scene, right = sent(parameters)
    boxes = right.boxes
    for other in (boxes[80:], boxes + boxes[:80], b""):
        scene.refuse(Malformed, (1,), "take", SERVER, [signed_anew(scene, right, boxes=other)])
    for wrong in (
        changed(right, boxes=flipped(boxes)),
        changed(right, boxes=flipped(boxes, -1)),
        changed(right, boxes=boxes[:80] * (len(boxes) // 80))
        if parameters.settle
        else changed(right, signature=bytes(64)),
        changed(right, signature=flipped(right.signature, 63)),
        changed(right, signature=scene.uploads[0, 0][1].signature),
    ):
        scene.refuse(BadSignature, (1,), "take", SERVER, [wrong])
    scene.take("take", SERVER)


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize(
    "change",
    [
        {"masked": vector([])}, {"masked": vector([1])}, {"masked": vector([1, 2, 3])}, {"masked": vector([16, 0])},
        {"masked": vector([0, 2**32 - 1])}, {"signature": b""}, {"signature": bytes(63)}, {"signature": bytes(65)},
        {"boxes": bytes(1)}, {"boxes": bytes(241)},
    ],
)  # fmt: skip
def test_a_malformed_upload_is_refused(change: dict[str, Any]) -> None:
    scene, right = sent()
    wrong = changed(right, **change)
    with pytest.raises(Malformed) as refused:
        scene.take("take", SERVER, [wrong])
    assert refused.value.blamed == {1}
    scene.take("take", SERVER, [right])


# --------------------------------------------------------------------------------------------------------- settle


def state_of(position: int, state: int) -> PositionState:
    """The authority says what became of a position."""
    return PositionState(*TO_SERVER, position, state)


@pytest.mark.requirement("BAA-40")
@pytest.mark.parametrize("state", [0, 2])
def test_an_upload_that_the_authority_did_not_accept_is_not_in_the_buffer(state: int) -> None:
    scene, _ = sent()
    total = scene.server.total
    scene.take("take", SERVER)
    assert scene.server.total is total
    assert len(scene.server.entries) == 1
    scene.take("settle", SERVER, [state_of(1, state)])
    assert scene.server.total is total
    assert [entry.user for entry in scene.server.entries] == [0]
    assert scene.server.upload is None
    assert [place.user for place in scene.server.places] == ([0] if state == 0 else [0, 1])


@pytest.mark.requirement("BAA-40")
def test_an_upload_that_the_authority_accepted_is_in_the_buffer_once() -> None:
    scene, right = sent()
    before = scene.server.total
    scene.take("take", SERVER)
    scene.settle()
    assert before is not None
    assert scene.server.total is not None
    expected = [(int(a) + int(b)) % 16 for a, b in zip(before, right.masked, strict=True)]
    assert integers_of(scene.server.total) == expected
    scene.refuse(WrongPhase, (), "settle", SERVER, [state_of(1, 1)])


@pytest.mark.requirement("BAA-40", "BAA-51")
@pytest.mark.parametrize("parameters", PROFILES)
def test_a_state_that_cannot_be_is_refused(parameters: Parameters) -> None:
    scene = opened(parameters)
    scene.upload(0)
    scene.offer(1)
    scene.take("expire", SERVER)
    for state in (1, 3 if parameters.settle else 2, 4, 2**16 - 1):
        scene.refuse(Malformed, (AUTHORITY,), "settle", SERVER, [state_of(1, state)])
    scene.refuse(Malformed, (AUTHORITY,), "settle", SERVER, [state_of(parameters.positions, 0)])
    for position in (0, 2):
        scene.refuse(WrongPhase, (), "settle", SERVER, [state_of(position, 0)])
    scene.refuse(WrongPhase, (), "settle", SERVER, [replace(state_of(1, 0), round=1)])
    scene.settle()


# -------------------------------------------------------------------------------------------------------- recover


@pytest.mark.requirement("BAA-41", "BAA-43", "BAA-45")
@given(sessions(9), st.integers(1, 9), st.data())
def test_recovery_gives_the_weighted_sum(p: Parameters, seed: int, data: st.DataObject) -> None:
    """Any users at any positions, with any updates and stamps, and any positions skipped or free in between."""
    scene = opened(p, seed, round=3)
    users = data.draw(st.permutations(range(p.N)))
    spare = p.S
    for user in users:
        full = len(scene.server.entries) == p.K or len(scene.server.places) == p.positions
        if full:
            break
        what = data.draw(st.sampled_from(("upload", "upload", "free", "skip")))
        if what == "free":
            scene.expire(user, keyed=False)
        elif what == "skip" and spare:
            scene.expire(user, keyed=True)
            spare -= 1
        else:
            scene.upload(user, stamp=3 - data.draw(st.integers(0, min(3, p.tau_max))))
    entries = scene.server.entries
    scene.take("close", SERVER)
    if len(entries) < p.K:
        return
    scene.take("close", AUTHORITY)
    scene.take("recover", SERVER)
    recovered = scene.server.recovered
    assert recovered is not None
    assert (recovered.epoch, recovered.entries) == (3, entries)
    plain = scene.plain_sum(3, entries)
    assert integers_of(recovered.sum) == plain
    signed = [x if x <= (p.R - 1) // 2 else x - p.R for x in plain]
    assert recovered.average.tolist() == [x / (p.c_l * sum(e.weight for e in entries)) for x in signed]
    assert scene.server.phase == "idle"
    assert scene.server.places == ()


def closing(parameters: Parameters = TINY) -> tuple[Scene, Release]:
    """Positions 0, 2 and 3 are accepted and 1 is skipped, and the keys are released."""
    scene = opened(parameters)
    scene.upload(0)
    if parameters.settle:
        scene.expire(1, keyed=True)
    scene.upload(2, 3)
    scene.take("close", SERVER)
    (release,) = scene.take("close", AUTHORITY).sent
    assert isinstance(release, Release)
    return scene, release


@pytest.mark.requirement("BAA-42")
@pytest.mark.parametrize(("position", "box", "blamed"), [(0, 0, 0), (0, 3, 0), (2, 1, 2), (3, 0, 3)])
def test_a_box_to_a_released_key_that_does_not_open_is_blamed_on_its_sender(
    position: int, box: int, blamed: int
) -> None:
    scene, _ = closing()
    places = list(scene.server.places)
    boxes = list(places[position].boxes)
    boxes[box] = flipped(boxes[box], 50)
    places[position] = replace(places[position], boxes=tuple(boxes))
    scene.network.states[SERVER] = replace(scene.server, places=tuple(places))
    scene.refuse(DecryptionFailed, (blamed,), "recover", SERVER)
    assert scene.server.recovered is None


@pytest.mark.requirement("BAA-42")
def test_all_senders_of_boxes_that_do_not_open_are_blamed() -> None:
    scene, _ = closing()
    places = list(scene.server.places)
    for position in (0, 2, 3):
        boxes = places[position].boxes
        places[position] = replace(places[position], boxes=(*boxes[:-1], flipped(boxes[-1], 50)))
    users = [places[position].user for position in (0, 2, 3)]
    scene.network.states[SERVER] = replace(scene.server, places=tuple(places))
    scene.refuse(DecryptionFailed, users, "recover", SERVER)


@pytest.mark.requirement("BAA-41")
def test_boxes_to_accepted_positions_are_not_looked_at() -> None:
    """The server has no key for them; what is in them has cancelled."""
    scene, _ = closing()
    places = list(scene.server.places)
    for position, box in ((0, 1), (0, 2), (2, 0)):
        boxes = list(places[position].boxes)
        boxes[box] = bytes(80)
        places[position] = replace(places[position], boxes=tuple(boxes))
    scene.network.states[SERVER] = replace(scene.server, places=tuple(places))
    scene.take("recover", SERVER)
    assert scene.server.recovered is not None
    assert integers_of(scene.server.recovered.sum) == scene.plain_sum(0, scene.server.recovered.entries)


@pytest.mark.requirement("BAA-30", "BAA-51")
def test_released_keys_that_do_not_belong_are_refused() -> None:
    scene, release = closing()
    keys = release.keys
    for wrong in (b"", keys[32:], keys + bytes(32), keys[:-1], keys[32:] + keys[:32], flipped(keys, 3, 3)):
        scene.refuse(Malformed, (AUTHORITY,), "recover", SERVER, [changed(release, keys=wrong)])
    scene.refuse(WrongPhase, (), "recover", SERVER, [changed(release, round=1)])
    scene.take("recover", SERVER)
    scene, release = closing(CLOSED)
    scene.refuse(Malformed, (AUTHORITY,), "recover", SERVER, [changed(release, keys=bytes(32))])
    scene.take("recover", SERVER)


# --------------------------------------------------------------------------------------------------------- states

ALLOWED = {
    "idle": {"open"},
    "filling": {"offer", "close", "abandon"},
    "serving": {"take", "expire", "abandon"},
    "settling": {"settle", "abandon"},
    "closing": {"recover", "abandon"},
}


def in_phase(phase: str) -> Scene:
    """A server in some phase, with two accepted updates where it has an epoch."""
    scene = Scene(TINY)
    if phase == "idle":
        return scene
    scene.open()
    scene.upload(0, 1)
    if phase in ("serving", "settling"):
        scene.keyed(2)
    if phase == "settling":
        scene.send(2)
        scene.take("take", SERVER)
    if phase == "closing":
        scene.upload(2)
        scene.take("close", SERVER)
    assert scene.server.phase == phase
    return scene


def any_message(scene: Scene, phase: str) -> list[Message]:
    """A message that a step takes in some state."""
    other = in_phase({"take": "serving", "settle": "settling", "recover": "closing"}.get(phase, "filling"))
    match phase:
        case "open":
            return [scene.take("open", AUTHORITY).sent[0]] if not scene.authority.is_open else list(keys_of(scene))
        case "offer":
            return [request(5)]
        case "take":
            return [other.send(2)]
        case "settle":
            return list(other.take("settle", AUTHORITY).sent)
        case "recover":
            return list(other.take("close", AUTHORITY).sent)
    return []


def keys_of(scene: Scene) -> list[EpochKeys]:
    """The keys of the open epoch once more."""
    return [EpochKeys(*TO_SERVER, scene.server.keys, scene.server.signature)]


@pytest.mark.parametrize("state", list(ALLOWED))
@pytest.mark.parametrize("phase", ["open", "offer", "take", "expire", "settle", "close", "recover", "abandon"])
def test_the_server_takes_the_steps_of_its_state_and_no_others(state: str, phase: str) -> None:
    scene = in_phase(state)
    inbox = any_message(scene, phase)
    if phase in ALLOWED[state]:
        scene.take(phase, SERVER, inbox)
    else:
        scene.refuse(WrongPhase, (), phase, SERVER, inbox)


@pytest.mark.parametrize("state", [state for state in ALLOWED if state != "idle"])
def test_an_epoch_can_be_abandoned_at_any_time(state: str) -> None:
    scene = in_phase(state)
    (announced,) = scene.take("abandon", SERVER).sent
    assert isinstance(announced, Abandonment)
    assert (scene.server.phase, scene.server.places, scene.server.total) == ("idle", (), None)
    scene.take("abandon", AUTHORITY)
    scene.lose()
    scene.open()
    scene.upload(0, 1, 2)
    scene.recover_rightly()


@pytest.mark.requirement("BAA-45")
def test_a_server_whose_close_was_refused_abandons() -> None:
    scene = opened()
    scene.upload(0, 1)
    scene.take("close", SERVER)
    scene.refuse(TooFewSurvivors, (), "close", AUTHORITY)
    scene.lose()
    scene.abandon()
    assert scene.server.recovered is None


# ---------------------------------------------------------------------------------------------------- the text


@pytest.mark.requirement("MSG-01", "BAA-51")
def test_the_table_of_messages_is_that_of_the_reference() -> None:
    table = rows(page("basa.md"), "message", "type", "`round`")
    kinds = [
        kind
        for kind in vars(basa_messages).values()
        if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
    ]
    assert [(code(row[0])[0], int(row[1])) for row in table] == [(kind.__name__, kind.TYPE) for kind in kinds]
    for row, kind in zip(table, kinds, strict=True):
        stated: dict[str, Any] = {}
        named: list[str] = []
        for word in code(row[3]):
            if word in FIELD_TYPES:
                stated |= dict.fromkeys(named, FIELD_TYPES[word])
                named = []
            elif word != "EpochKeys":
                named.append(word)
        assert stated == own_fields(kind), kind.__name__
        assert list(stated) == list(own_fields(kind))


def test_the_table_of_phases_is_that_of_the_reference() -> None:
    table = rows(page("basa.md"), "phase", "role", "receives")
    named = ("server", "user", "authority")
    stated = [(code(row[0])[0], row[1], code(row[2]), code(row[3])) for row in table]
    assert {role for _, role, _, _ in stated} == set(named)
    assert stated == [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
    ]


def test_the_table_of_sampled_values_is_that_of_the_steps() -> None:
    sampled = {(name, step.role.value, step.phase) for step in TABLE for name in step.randomness}
    table = rows(page("basa.md"), "name", "drawn by")
    stated = set()
    for row in table:
        if "CP-ABE" in row[1]:
            continue
        role = "authority" if "authority" in row[1] else "user"
        stated |= {(name, role, phase) for name in code(row[0]) for phase in code(row[1])}
    assert stated == sampled


def cost(step: Step[Any], scene: Scene, event: Any) -> tuple[int, int]:
    """What the table of costs says of a step."""
    table = {(row[0], row[1]): row for row in rows(page("basa.md"), "who", "phase")}
    row = table.get((step.role.value, step.phase))
    if row is None:
        return 0, 0
    p, z = scene.parameters, int(scene.parameters.settle)
    before = [m for m in (*event.received, *event.sent) if hasattr(m, "position")]
    k = before[0].position if before else 0
    offers = [m for m in event.sent if isinstance(m, PositionOffer)]
    keys = [m for m in event.sent if hasattr(m, "senders")]
    a = len(offers[0].boxes) // 80 if offers else keys[0].positions.size if keys else 0
    names = {
        "H": 30, "k": k, "P": p.positions, "A": a, "E": 32, "B": 80, "V": 32 * p.positions * (1 + z), "Z": z, "d": p.d,
    }  # fmt: skip
    return tuple(int(eval(code(cell)[0], {}, names)) for cell in row[2:4])  # type: ignore[return-value]


@given(sessions(8), st.integers(1, 9), st.data())
def test_the_costs_of_the_text_are_those_of_the_messages(p: Parameters, seed: int, data: st.DataObject) -> None:
    scene = opened(p, seed)
    user = 0
    spare = p.S
    while len(scene.server.entries) < p.K and user < p.N:
        if spare and data.draw(st.booleans()):
            scene.expire(user, keyed=True)
            spare -= 1
        else:
            scene.upload(user)
        user += 1
    scene.close()
    for event in scene.network.transcript:
        stated = cost(event.step, scene, event)
        if (event.step.phase, event.step.role) == ("open", Role.AUTHORITY):
            continue
        assert (len(event.sent), sizes(event.sent)) == stated, event.step
        assert sizes(event.sent) == sum(len(encode(message)) for message in event.sent)


def test_what_the_parties_of_a_session_are_given_is_checked() -> None:
    scene = Scene(TINY)
    with pytest.raises(LengthMismatch):
        open_session(TINY, SigningKeys(scene.keys.users[1:], scene.keys.authority), session=bytes(16), round=0)
    with pytest.raises(LengthMismatch):
        open_session(TINY, SigningKeys(scene.keys.users, b""), session=bytes(16), round=0)
    with pytest.raises(ParameterError):
        open_session(TINY, SigningKeys((scene.keys.users[0],) * 6, scene.keys.authority), session=bytes(16), round=0)
    with pytest.raises(ParameterError):
        open_session(TINY, scene.keys, round=2**32, session=bytes(16))


def test_a_network_of_three_roles_delivers_to_each_and_knows_them() -> None:
    scene = Scene(PRESETS["default"])
    with pytest.raises(UnknownUser):
        scene.network.take(TABLE[2], 99)
    for step, party in ((TABLE[0], SERVER), (TABLE[1], AUTHORITY), (TABLE[2], AUTHORITY), (TABLE[0], 0)):
        with pytest.raises(ParameterError, match="who takes this step"):
            scene.network.take(step, party)
    scene.open()
    scene.offer(3)
    scene.take("fetch", 3)
    assert [type(m).__name__ for m in scene.network.waiting[AUTHORITY]] == ["KeyRequest"]


@pytest.mark.requirement("BAA-40", "BAA-41")
def test_an_upload_that_its_owner_writes_over_is_kept() -> None:
    scene = opened()
    scene.upload(0, 1)
    scene.keyed(2)
    message = scene.send(2)
    masked = message.masked.copy()
    scene.take("take", SERVER, (replace(message, masked=masked),))
    masked[:] = 0
    scene.settle()
    scene.network.waiting.clear()
    scene.recover_rightly()
