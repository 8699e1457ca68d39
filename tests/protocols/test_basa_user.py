"""A user of BASA, clause by clause: what it masks, seals and signs, and what it does not open."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import assume, example, given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness, realised_weight
from secagg_spec.crypto.boxes import PAIR, SELF, mask_key
from secagg_spec.crypto.keys import public_key, sha256
from secagg_spec.crypto.prg import expand
from secagg_spec.crypto.signatures import sign
from secagg_spec.errors import (
    BadSignature,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    NonCanonical,
    OutOfRange,
    ParameterError,
    Replay,
    WeakKey,
    WrongPhase,
)
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.messages import KeyRequest, PositionKey, PositionOffer, PositionRequest, PositionUpload
from secagg_spec.protocols.basa.store import restore_user, store_user
from secagg_spec.protocols.basa.user import UserState, user_start, user_trained
from secagg_spec.protocols.steps import AUTHORITY, SERVER
from tests.crypto.test_boxes import LOW_ORDER, framed
from tests.protocols.positions import CLOSED, PROFILES, SESSION, TINY, Scene, changed, flipped, opened, sessions
from tests.strategies import integers_of, vector


def at_third(parameters: Parameters = TINY, seed: int = 1) -> Scene:
    """Users 0 and 1 uploaded, and user 2 has the third position and its key in the mail."""
    scene = opened(parameters, seed)
    scene.upload(0, 1)
    scene.keyed(2)
    return scene


def key_of(scene: Scene, user: int = 2) -> PositionKey:
    """The key that waits for a user."""
    (message,) = scene.mail("upload", user)
    assert isinstance(message, PositionKey)
    return message


def offer_of(scene: Scene, user: int) -> PositionOffer:
    """The offer that waits for a user."""
    (message,) = scene.mail("fetch", user)
    assert isinstance(message, PositionOffer)
    return message


# ------------------------------------------------------------------------------------------------ what it sends


@pytest.mark.requirement("BAA-23")
@given(
    st.sampled_from((Staleness.polynomial(1), Staleness.polynomial("1/2"), Staleness.hinge(1, 1))),
    st.integers(0, 4),
    st.integers(0, 2**53 - 1),
    st.integers(0, 1),
)
def test_the_weight_is_the_realised_one_of_the_staleness(s: Staleness, tau: int, draw: int, low: int) -> None:
    p = replace(TINY, R=2**16, c_g=64, tau_max=4, staleness=s)
    scene = Scene(p, round=10 + low)
    scene.open()
    scene.keyed(0, stamp=10 + low - tau)
    upload = scene.send(0, rounding=draw * 2.0**-53)
    assert upload.weight == realised_weight(s, 64, tau, draw * 2.0**-53)
    assert (upload.stamp, upload.round) == (10 + low - tau, 10 + low)
    scene.take("take", SERVER)


@pytest.mark.requirement("BAA-23")
@pytest.mark.parametrize(("draw", "weight"), [(0.0, 22), (0.3330078125, 22), (0.3349609375, 21), (1 - 2**-53, 21)])
def test_each_weight_has_a_draw_of_its_own(draw: float, weight: int) -> None:
    scene = Scene(replace(TINY, R=2**16, c_g=64, tau_max=2), round=2)
    scene.open()
    scene.keyed(0, stamp=0)
    assert scene.send(0, rounding=draw).weight == weight


@pytest.mark.requirement("BAA-23")
@pytest.mark.parametrize("draw", [1.0, -0.5, 0.1 * 2**-10, float("nan"), None])
def test_a_draw_that_is_none_is_refused(draw: Any) -> None:
    scene = at_third()
    scene.refuse(OutOfRange, None, "upload", 2, rounding=draw)
    scene.send(2)


@pytest.mark.requirement("BAA-24")
def test_an_update_of_another_form_is_refused() -> None:
    state = opened().user(0)
    for wrong in (vector([0]), vector([0, 0, 0]), vector([])):
        with pytest.raises(LengthMismatch):
            user_trained(state, wrong, 0)
    for number in (16, 2**32, 2**63):
        with pytest.raises(NonCanonical):
            user_trained(state, vector([0, number]), 0)
    with pytest.raises(ParameterError):
        user_trained(state, vector([0, 0]), -1)


@pytest.mark.requirement("BAA-25")
@pytest.mark.parametrize("number", [2, 7, 8, 14])
def test_an_update_beyond_the_budget_is_not_uploaded(number: int) -> None:
    scene = opened()
    scene.keyed(0, update=vector([0, number]))
    scene.refuse(OutOfRange, None, "upload", 0)


@pytest.mark.requirement("BAA-25")
@pytest.mark.parametrize("number", [0, 1, 15])
def test_an_update_at_the_budget_is_uploaded(number: int) -> None:
    scene = opened()
    scene.keyed(0, update=vector([0, number]))
    scene.send(0)


def seeds_of(scene: Scene, position: int) -> list[bytes]:
    """The seeds that the upload at a position was given."""
    drawn = [values["seeds"] for values in scene.sampled if "seeds" in values][position]
    return [drawn[at : at + 32] for at in range(0, len(drawn), 32)]


@pytest.mark.requirement("BAA-26", "BAA-03")
@given(sessions(7), st.integers(1, 9), st.data())
def test_the_masked_update_is_that_of_the_text(p: Parameters, seed: int, data: st.DataObject) -> None:
    """Every mask is computed anew from the sampled seeds, and added up with integers of Python."""
    scene = opened(p, seed)
    done = data.draw(st.integers(0, p.K - 1))
    seats: list[int] = []
    sampled: dict[int, list[bytes]] = {}
    for user in range(min(done + 1, p.positions - 1)):
        if p.settle and data.draw(st.booleans()) and user < p.S:
            scene.expire(user, keyed=True)
        else:
            scene.upload(user)
            sampled[user] = seeds_of(scene, len(seats))
            seats.append(user)
    if len(seats) == p.K:
        return
    user = k = len(scene.server.places)
    scene.keyed(user)
    upload = scene.send(user)
    mine = seeds_of(scene, len(seats))
    epoch = scene.server.session.epoch(0)

    def mask(bytes_: bytes, i: int, j: int | None) -> list[int]:
        return integers_of(expand(mask_key(epoch, bytes_, i, j), p.ring, p.d))

    plus = [mask(mine[j], k, j) for j in range(k + 1, p.positions)] + ([mask(mine[k], k, None)] if p.settle else [])
    minus = [mask(sampled[i][k], i, k) for i in seats]
    expected = [
        (upload.weight * int(scene.updates[user][x]) + sum(m[x] for m in plus) - sum(m[x] for m in minus)) % p.R
        for x in range(p.d)
    ]
    assert integers_of(upload.masked) == expected


@pytest.mark.requirement("BAA-33", "BAA-04")
@given(sessions(7), st.integers(1, 9))
def test_one_seed_is_sealed_to_each_position_to_come(p: Parameters, seed: int) -> None:
    scene = opened(p, seed)
    opened_seeds: list[bytes] = []
    for user in range(p.K):
        scene.upload(user)
        known, upload, mine = scene.server.session, scene.uploads[0, user][1], seeds_of(scene, user)
        boxes = [upload.boxes[at : at + 80] for at in range(0, len(upload.boxes), 80)]
        targets = [*range(user + 1, p.positions), *([user] if p.settle else [])]
        assert len(boxes) == len(targets)
        for target, box in zip(targets, boxes, strict=True):
            slot = (SELF if target == user else PAIR, target)
            (key,) = scene.authority.ring.secrets(known.epoch(0), (slot,), ())
            plain = known.encryption.open(known.address(0, user, user, target), scene.server.keys, key, box)
            assert plain == mine[target]
            opened_seeds.append(plain)
        (box_key,) = [values["box_key"] for values in scene.sampled if "box_key" in values][user:]
        assert {box[:32] for box in boxes} == ({public_key(box_key)} if boxes else set())
    assert len(set(opened_seeds)) == len(opened_seeds)


@pytest.mark.requirement("BAA-34")
@given(st.sampled_from(PROFILES), st.integers(1, 9), st.integers(0, 2))
def test_the_boxes_are_signed_with_the_fields_of_the_text(p: Parameters, seed: int, position: int) -> None:
    scene = opened(p, seed, 5)
    scene.upload(*range(position))
    scene.keyed(position)
    upload = scene.send(position)
    hashed = sha256(framed(*(part for name, x in [*p.numbers().items(), ("encryption", 0)] for part in (name, str(x)))))
    boxes = [upload.boxes[at : at + 80] for at in range(0, len(upload.boxes), 80)]
    hashes = b"".join(hashlib.sha256(box).digest() for box in boxes)
    head = (b"secagg-spec", 1, "basa", hashed, SESSION, 5)
    data = framed(*head, "boxes", 1031, position, position, upload.stamp, upload.weight, hashes)
    key = Ed25519PublicKey.from_public_bytes(scene.server.session.verification.keys[position])
    key.verify(upload.signature, data)


def test_a_request_carries_the_stamp_and_a_key_request_the_position() -> None:
    scene = Scene(replace(TINY, tau_max=3, c_g=4, R=32), round=3)
    scene.open()
    scene.train(4, stamp=1)
    (request,) = scene.take("request", 4).sent
    assert isinstance(request, PositionRequest)
    assert (request.round, request.sender, request.receiver) == (1, 4, SERVER)
    scene.take("offer", SERVER)
    (asked,) = scene.take("fetch", 4).sent
    assert isinstance(asked, KeyRequest)
    assert (asked.round, asked.sender, asked.receiver, asked.position) == (3, 4, AUTHORITY, 0)


# ------------------------------------------------------------------------------------------------------- once


@pytest.mark.requirement("BAA-27")
def test_an_update_is_uploaded_once() -> None:
    """Not with the same key, not at another position, and not in another epoch, whatever came of it."""
    scene = at_third()
    answer = key_of(scene)
    scene.send(2)
    scene.refuse(WrongPhase, (), "upload", 2, [answer])
    scene.refuse(WrongPhase, (), "request", 2, ())
    scene.take("expire", SERVER)
    scene.settle()
    scene.refuse(WrongPhase, (), "request", 2, ())
    scene.abandon()
    scene.open()
    scene.refuse(WrongPhase, (), "request", 2, ())
    scene.lose()
    scene.upload(2)
    assert scene.user(2).update is None
    assert scene.user(2).offer is None


@pytest.mark.requirement("BAA-27")
def test_an_update_that_was_not_uploaded_may_be_tried_again() -> None:
    scene = opened()
    update = scene.train(0)
    for epoch in (0, 1):
        for phase, party in (("request", 0), ("offer", SERVER), ("assign", AUTHORITY)):
            scene.take(phase, party)
        if epoch == 0:
            scene.take("expire", SERVER)
            scene.settle()
            scene.network.waiting[0] = []
            scene.abandon()
            scene.open()
    scene.key(0)
    scene.send(0)
    assert scene.uploads[1, 0][0] is update


@pytest.mark.requirement("BAA-27")
def test_a_new_update_ends_what_was_begun_for_the_one_before() -> None:
    scene = at_third()
    scene.train(2)
    scene.refuse(WrongPhase, (), "upload", 2)
    scene.take("expire", SERVER)
    scene.settle()


@pytest.mark.requirement("BAA-52")
@pytest.mark.parametrize("later", [0, 1])
def test_a_key_that_comes_twice_makes_no_second_upload_at_one_position(later: int) -> None:
    """A server offers a position again for another update, in its epoch or after one more upload; nobody is blamed."""
    scene = at_third()
    offer, answer = scene.user(2).offer, key_of(scene)
    assert offer is not None
    scene.send(2)
    scene.take("take", SERVER)
    scene.settle()
    for _ in range(later):
        scene.close()
        scene.open()
        scene.upload(2)
    scene.train(2, stamp=offer.round)
    scene.take("request", 2)
    scene.refuse(Replay, (), "fetch", 2, [offer])
    scene.refuse(WrongPhase, (), "upload", 2, [answer])
    scene.network.states[2] = restore_user(store_user(scene.user(2)))
    scene.refuse(Replay, (), "fetch", 2, [offer])


@pytest.mark.requirement("BAA-52")
def test_a_user_that_uploaded_is_there_again_in_the_next_epoch() -> None:
    scene = opened()
    for _ in range(3):
        scene.upload(0, 1, 2)
        scene.recover_rightly()
        scene.open()


# ------------------------------------------------------------------------------------------------------ offers


@pytest.mark.requirement("BAA-28")
@example(0, 3)
@example(0, 4)
@example(5, 4)
@given(st.integers(0, 9), st.integers(0, 9))
def test_only_offers_of_a_fitting_epoch_are_taken(stamp: int, epoch: int) -> None:
    p = replace(TINY, tau_max=3, c_g=4, R=32)
    scene = opened(p, round=epoch)
    scene.train(0)
    scene.take("request", 0)
    scene.take("offer", SERVER)
    offer = offer_of(scene, 0)
    scene.train(0, stamp=stamp)
    scene.take("request", 0)
    if 0 <= epoch - stamp <= 3:
        scene.take("fetch", 0, [offer])
    else:
        scene.refuse(InconsistentSets, (SERVER,), "fetch", 0, [offer])


def offered(parameters: Parameters = TINY) -> tuple[Scene, PositionOffer]:
    """User 2 is offered the third position."""
    scene = opened(parameters)
    scene.upload(0, 1)
    scene.offer(2)
    return scene, offer_of(scene, 2)


@pytest.mark.requirement("BAA-29")
def test_keys_that_the_authority_did_not_sign_are_refused() -> None:
    scene, offer = offered()
    twin = opened(TINY, 2)
    twin.offer(2)
    for wrong in (
        changed(offer, keys=flipped(offer.keys, 70)),
        changed(offer, signature=flipped(offer.signature)),
        changed(offer, round=1),
        changed(offer, keys=offer.keys[128:] + offer.keys[:128]),
        offer_of(twin, 2),
    ):
        if wrong.round == 1:
            scene.train(2, stamp=1)
            scene.take("request", 2)
        scene.refuse(BadSignature, (SERVER,), "fetch", 2, [wrong])
    scene.train(2, stamp=0)
    scene.take("request", 2)
    scene.take("fetch", 2, [offer])


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize(
    "change",
    [
        lambda m: changed(m, keys=m.keys[1:]), lambda m: changed(m, keys=b""),
        lambda m: changed(m, keys=m.keys + bytes(32)),
        lambda m: changed(m, signature=m.signature[:63]), lambda m: changed(m, signature=b""),
        lambda m: changed(m, boxes=m.boxes[:-1]), lambda m: changed(m, boxes=m.boxes + b"\0"),
        lambda m: changed(m, position=4), lambda m: changed(m, position=2**32 - 1),
    ],
)  # fmt: skip
def test_a_malformed_offer_is_refused(change: Any) -> None:
    scene, offer = offered()
    scene.refuse(Malformed, (SERVER,), "fetch", 2, [change(offer)])


# -------------------------------------------------------------------------------------------------------- keys


@pytest.mark.requirement("BAA-30")
def test_the_key_of_another_position_is_refused() -> None:
    scene = at_third()
    answer = key_of(scene)
    known = scene.authority.session.epoch(0)
    for other in (0, 1, 3):
        (key,) = scene.authority.ring.secrets(known, ((PAIR, other),), ())
        scene.refuse(InconsistentSets, (AUTHORITY,), "upload", 2, [changed(answer, position=other, key=key)])
        scene.refuse(InconsistentSets, (AUTHORITY,), "upload", 2, [changed(answer, position=other)])
        scene.refuse(Malformed, (AUTHORITY,), "upload", 2, [changed(answer, key=key)])
    (own,) = scene.authority.ring.secrets(known, ((SELF, 2),), ())
    scene.refuse(Malformed, (AUTHORITY,), "upload", 2, [changed(answer, key=own)])
    scene.refuse(WrongPhase, (), "upload", 2, [changed(answer, round=1)])
    scene.send(2)


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize(
    "change",
    [
        {"key": b""}, {"key": bytes(31)}, {"key": bytes(33)}, {"hashes": b""}, {"hashes": bytes(63)},
        {"hashes": bytes(96)}, {"positions": vector([0])}, {"positions": vector([0, 0])}, {"positions": vector([1, 0])},
        {"positions": vector([0, 2])}, {"positions": vector([0, 2**32 - 1])}, {"positions": vector([0, 1, 1])},
        {"senders": vector([0])}, {"senders": vector([0, 6])}, {"senders": vector([0, 1, 2])},
        {"senders": vector([0, SERVER])}, {"senders": vector([1, 1])},
    ],
)  # fmt: skip
def test_a_malformed_key_is_refused(change: dict[str, Any]) -> None:
    scene = at_third()
    wrong = changed(key_of(scene), **change)
    with pytest.raises(Malformed) as refused:
        scene.take("upload", 2, [wrong])
    assert refused.value.blamed == {AUTHORITY}


def with_offer(scene: Scene, boxes: bytes, user: int = 2) -> None:
    """The user fetched an offer with these boxes."""
    state = scene.user(user)
    assert state.offer is not None
    scene.network.states[user] = replace(state, offer=replace(state.offer, boxes=boxes))


@pytest.mark.requirement("BAA-31")
@given(st.integers(0, 2 * 80 * 8 - 1))
def test_boxes_that_are_not_those_that_were_signed_are_refused(bit: int) -> None:
    scene = at_third()
    offer = scene.user(2).offer
    assert offer is not None
    with_offer(scene, flipped(offer.boxes, bit // 8, bit & 7))
    scene.refuse(BadSignature, (SERVER,), "upload", 2)


@pytest.mark.requirement("BAA-31")
@pytest.mark.parametrize("box", range(5))
def test_each_of_many_boxes_must_be_the_one_that_was_signed(box: int) -> None:
    scene = opened(replace(TINY, R=32, N=6, K=6, S=0))
    scene.upload(0, 1, 3, 4, 5)
    scene.keyed(2)
    offer = scene.user(2).offer
    assert offer is not None
    assert len(offer.boxes) == 5 * 80
    with_offer(scene, flipped(offer.boxes, 80 * box + 40))
    scene.refuse(BadSignature, (SERVER,), "upload", 2)


@pytest.mark.requirement("BAA-31")
def test_boxes_that_the_server_swaps_or_makes_are_refused() -> None:
    """One of another position, one that the server sealed itself, another order; and too few or too many."""
    scene = at_third()
    offer, known = scene.user(2).offer, scene.server.session
    assert offer is not None
    first, second = offer.boxes[:80], offer.boxes[80:]
    to_last = scene.server.places[0].boxes[2]
    made = known.encryption.seal(known.address(0, 0, 0, 2), offer.keys, b"s" * 32, b"e" * 32)
    for boxes in (second + first, to_last + second, made + second, first + first):
        with_offer(scene, boxes)
        scene.refuse(BadSignature, (SERVER,), "upload", 2)
    for boxes in (first, b"", first + second + first, second):
        with_offer(scene, boxes)
        scene.refuse(Malformed, (SERVER,), "upload", 2)
    with_offer(scene, first + second)
    scene.send(2)


def signed_garbage(scene: Scene, user: int, target: int) -> None:
    """A user uploads with a box to some position that does not open, properly signed; all is settled."""
    scene.keyed(user)
    upload = scene.send(user)
    known, position = scene.server.session, upload.position
    at = known.targets(position).index(target)
    boxes = upload.boxes[: 80 * at] + flipped(upload.boxes[80 * at :][:80], 79) + upload.boxes[80 * (at + 1) :]
    hashes = b"".join(sha256(boxes[at : at + 80]) for at in range(0, len(boxes), 80))
    data = known.boxes_signed(0, user, (position, upload.stamp, upload.weight), hashes)
    bad = replace(upload, boxes=boxes, signature=sign(scene.keys.users[user], data))
    scene.network.waiting[SERVER] = []
    scene.take("take", SERVER, [bad])
    scene.settle()


@pytest.mark.requirement("BAA-32")
@pytest.mark.parametrize("bad", [(0,), (1,), (0, 1)])
def test_boxes_that_do_not_open_are_blamed_on_their_senders(bad: tuple[int, ...]) -> None:
    scene = opened()
    for user in (0, 1):
        if user in bad:
            signed_garbage(scene, user, 2)
        else:
            scene.upload(user)
    scene.keyed(2)
    scene.refuse(DecryptionFailed, bad, "upload", 2)
    assert scene.user(2).update is not None


@pytest.mark.requirement("BAA-32", "BAA-42", "BAA-45")
@pytest.mark.parametrize("parameters", PROFILES)
def test_what_a_malformed_box_costs(parameters: Parameters) -> None:
    """Its position is skipped, and recovery blames the sender; or the epoch is over with the timeout."""
    scene = opened(parameters)
    signed_garbage(scene, 0, 1)
    scene.keyed(1)
    scene.refuse(DecryptionFailed, (0,), "upload", 1)
    scene.take("expire", SERVER)
    scene.settle()
    scene.network.waiting[1] = []
    if not parameters.settle:
        assert scene.server.phase == "idle"
        assert scene.server.recovered is None
        return
    scene.upload(2, 3)
    scene.take("close", SERVER)
    scene.take("close", AUTHORITY)
    scene.refuse(DecryptionFailed, (0,), "recover", SERVER)
    scene.take("abandon", SERVER)
    scene.refuse(WrongPhase, (), "abandon", AUTHORITY)
    assert scene.server.recovered is None
    scene.lose()
    scene.open()
    scene.upload(0, 1, 2)
    scene.recover_rightly()


@pytest.mark.requirement("BAA-06")
@pytest.mark.parametrize("low", LOW_ORDER)
def test_nothing_is_sealed_to_a_weak_key(low: bytes) -> None:
    scene = opened()
    scene.keyed(0)
    state = scene.user(0)
    assert state.offer is not None
    keys = state.offer.keys[:32] + low + state.offer.keys[64:]
    scene.network.states[0] = replace(state, offer=replace(state.offer, keys=keys))
    scene.refuse(WeakKey, (), "upload", 0)


# -------------------------------------------------------------------------------------------------------- states


def test_steps_that_a_state_does_not_allow_are_refused() -> None:
    scene = opened()
    scene.refuse(WrongPhase, (), "request", 0, ())
    scene.train(0)
    scene.offer(1)
    offer = replace(offer_of(scene, 1), receiver=0)
    scene.refuse(WrongPhase, (), "fetch", 0, [offer])
    scene.refuse(WrongPhase, (), "fetch", 1, ())
    scene.key(1)
    scene.refuse(WrongPhase, (), "upload", 0, [replace(key_of(scene, 1), receiver=0)])
    scene.take("request", 1, ())
    scene.refuse(WrongPhase, (), "upload", 1)


def test_a_user_has_the_keys_that_the_roster_has_for_it() -> None:
    scene = opened(CLOSED)
    known = scene.server.session
    public: dict[str, Any] = {"verification": known.verification, "authority": known.authority}
    state = user_start(CLOSED, SESSION, 1, signing=scene.keys.users[1], **public)
    assert isinstance(state, UserState)
    with pytest.raises(ParameterError):
        user_start(CLOSED, SESSION, 1, signing=scene.keys.users[2], **public)
    with pytest.raises(ParameterError):
        user_start(CLOSED, SESSION, 6, signing=scene.keys.users[2], **public)
    with pytest.raises(LengthMismatch):
        user_start(CLOSED, SESSION[1:], 1, signing=scene.keys.users[1], **public)


@pytest.mark.requirement("BAA-33")
@given(st.integers(0, 200))
def test_seeds_of_another_length_are_refused(length: int) -> None:
    assume(length != 128)
    scene = at_third()
    scene.refuse(LengthMismatch, None, "upload", 2, seeds=bytes(length))
    scene.refuse(LengthMismatch, None, "upload", 2, box_key=bytes(31))
    assert isinstance(scene.send(2), PositionUpload)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("position", [-1, 2**32, 2**70])
def test_a_position_outside_of_the_epoch_has_no_targets(position: int) -> None:
    known = Scene(TINY).server.session
    assert len(known.targets(2)) == known.box_count(2)
    for ask in (known.targets, known.box_count):
        with pytest.raises(ParameterError, match=r"^position = "):
            ask(position)
