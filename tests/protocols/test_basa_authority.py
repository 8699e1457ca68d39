"""The authority of BASA, clause by clause: one key and one upload for each position, ever."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.boxes import PAIR, SELF
from secagg_spec.crypto.keys import public_key, sha256
from secagg_spec.crypto.signatures import sign
from secagg_spec.errors import BadSignature, DecryptionFailed, Malformed, Replay, TooFewSurvivors, WrongPhase
from secagg_spec.protocols.basa.authority import AuthorityState, Seat
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.messages import (
    Abandonment,
    Assignment,
    CloseRequest,
    EpochKeys,
    KeyRequest,
    PositionKey,
    PositionState,
    Release,
    Settlement,
)
from secagg_spec.protocols.steps import AUTHORITY, SERVER
from tests.crypto.test_boxes import framed
from tests.protocols.positions import CLOSED, PROFILES, SESSION, TINY, Scene, changed, flipped, opened
from tests.strategies import integers_of

TO_AUTHORITY = (SESSION, 0, SERVER, AUTHORITY)
EXPIRED: tuple[Any, ...] = (0, 0, 0, b"", b"")


def assign(position: int, user: int) -> Assignment:
    """The server says who is at a position."""
    return Assignment(*TO_AUTHORITY, position, user)


def ask(position: int, user: int) -> KeyRequest:
    """A user asks for a key."""
    return KeyRequest(SESSION, 0, user, AUTHORITY, position)


def expired(position: int) -> Settlement:
    """The server says that an offer expired."""
    return Settlement(*TO_AUTHORITY, position, *EXPIRED)


def seats(scene: Scene) -> list[tuple[int, str]]:
    """Who is where, in which state."""
    return [(seat.user, seat.state) for seat in scene.authority.seats]


def with_seats(scene: Scene, *states: str) -> Scene:
    """The authority with users 0, 1, … at its positions, in these states."""
    made = tuple(
        Seat(user, state, tuple(bytes([at]) * 32 for at in range(TINY.positions - user)) if state == "accepted" else ())
        for user, state in enumerate(states)
    )
    scene.network.states[AUTHORITY] = replace(scene.authority, seats=made)
    return scene


# ------------------------------------------------------------------------------------------------------- its keys


@pytest.mark.requirement("BAA-07")
@pytest.mark.parametrize("parameters", PROFILES)
def test_the_keys_of_each_epoch_are_new(parameters: Parameters) -> None:
    scene = opened(parameters)
    published = [scene.server.keys]
    for _ in range(3):
        scene.abandon()
        scene.take("open", AUTHORITY)
        private = scene.sampled[-1]["pair_keys"] + scene.sampled[-1]["self_keys"]
        made = b"".join(public_key(private[at : at + 32]) for at in range(0, len(private), 32))
        scene.take("open", SERVER)
        assert scene.server.keys == made
        published.append(made)
    keys = [data[at : at + 32] for data in published for at in range(0, len(data), 32)]
    assert len(set(keys)) == len(keys) == 4 * parameters.positions * (1 + parameters.settle)


@pytest.mark.requirement("BAA-05", "BAA-07")
def test_keys_of_an_epoch_open_nothing_of_another() -> None:
    scene = opened()
    old = scene.authority
    scene.abandon()
    scene.open()
    scene.upload(0, 1)
    known, keys = scene.server.session, scene.server.keys
    for source, target in ((0, 1), (0, 2), (1, 3), (0, 0), (1, 1)):
        address = known.address(1, source, source, target)
        box = scene.server.places[source].boxes[known.targets(source).index(target)]
        for state in (scene.authority, old):
            (key,) = state.ring.secrets(known.epoch(state.epoch), (address.slot,), ())
            if state is old:
                with pytest.raises(DecryptionFailed):
                    known.encryption.open(address, keys, key, box)
            else:
                known.encryption.open(address, keys, key, box)


@pytest.mark.requirement("BAA-08")
@given(st.sampled_from(PROFILES), st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_keys_of_an_epoch_are_signed_with_the_fields_of_the_text(p: Parameters, epoch: int, seed: int) -> None:
    scene = Scene(p, seed, epoch)
    (message,) = scene.take("open", AUTHORITY).sent
    assert isinstance(message, EpochKeys)
    assert (message.round, message.sender, message.receiver) == (epoch, AUTHORITY, SERVER)
    hashed = sha256(framed(*(part for name, x in [*p.numbers().items(), ("encryption", 0)] for part in (name, str(x)))))
    head = (b"secagg-spec", 1, "basa", hashed, SESSION, epoch)
    data = framed(*head, "epoch-keys", 1025, 2**32 - 2, message.keys)
    Ed25519PublicKey.from_public_bytes(scene.authority.session.authority).verify(message.signature, data)


# -------------------------------------------------------------------------------------------------------- assign


@pytest.mark.requirement("BAA-09")
@pytest.mark.parametrize(
    ("states", "allowed"),
    [
        ((), {0}), (("assigned",), {0}), (("keyed",), set()), (("accepted",), {1}), (("skipped",), {1}),
        (("accepted", "assigned"), {1}), (("accepted", "skipped", "keyed"), set()),
        (("accepted", "accepted"), {2}), (("accepted",) * 3, set()), (("skipped",) * 4, set()),
        (("accepted", "skipped", "accepted", "accepted"), set()), (("accepted", "skipped", "accepted"), {3}),
    ],
)  # fmt: skip
def test_only_the_position_to_be_filled_is_assigned(states: tuple[str, ...], allowed: set[int]) -> None:
    for position in range(TINY.positions):
        scene = with_seats(opened(), *states)
        if position in allowed:
            scene.take("assign", AUTHORITY, [assign(position, 5)])
            assert seats(scene)[position:] == [(5, "assigned")]
        else:
            scene.refuse(WrongPhase, (), "assign", AUTHORITY, [assign(position, 5)])


@pytest.mark.requirement("BAA-10")
@pytest.mark.parametrize("state", ["accepted", "skipped"])
def test_who_holds_a_key_is_assigned_nothing(state: str) -> None:
    scene = with_seats(opened(), state)
    scene.refuse(Replay, (), "assign", AUTHORITY, [assign(1, 0)])
    scene.take("assign", AUTHORITY, [assign(1, 1)])
    scene.take("assign", AUTHORITY, [assign(1, 2)])
    scene.take("assign", AUTHORITY, [assign(1, 1)])
    for outside in (6, 2**31, SERVER, AUTHORITY):
        scene.refuse(Malformed, (SERVER,), "assign", AUTHORITY, [assign(1, outside)])


# --------------------------------------------------------------------------------------------------------- issue


@pytest.mark.requirement("BAA-11", "BAA-12")
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3))
def test_a_key_is_given_once_and_to_the_assigned_user(assigned: int, asking: int, position: int) -> None:
    scene = opened()
    scene.take("assign", AUTHORITY, [assign(0, assigned)])
    if (asking, position) != (assigned, 0):
        scene.refuse(WrongPhase, (), "issue", AUTHORITY, [ask(position, asking)])
    (answer,) = scene.take("issue", AUTHORITY, [ask(0, assigned)]).sent
    assert isinstance(answer, PositionKey)
    assert answer.receiver == assigned
    assert public_key(answer.key) == scene.server.keys[:32]
    scene.refuse(Replay, (), "issue", AUTHORITY, [ask(0, assigned)])
    if asking != assigned:
        scene.refuse(WrongPhase, (), "issue", AUTHORITY, [ask(0, asking)])


@pytest.mark.requirement("BAA-12")
def test_a_key_is_not_given_again_after_its_position_was_settled() -> None:
    scene = opened()
    scene.upload(0)
    scene.expire(1, keyed=True)
    for position in (0, 1):
        scene.refuse(Replay, (), "issue", AUTHORITY, [ask(position, position)])
    scene.offer(2)
    scene.refuse(Replay, (), "issue", AUTHORITY, [ask(1, 1)])


@pytest.mark.requirement("BAA-11")
def test_a_position_that_is_free_again_goes_to_the_next_user_only() -> None:
    scene = opened()
    scene.expire(0, keyed=False)
    scene.offer(1)
    scene.refuse(WrongPhase, (), "issue", AUTHORITY, [ask(0, 0)])
    scene.key(1)


@pytest.mark.requirement("BAA-13")
@given(st.lists(st.booleans(), min_size=0, max_size=3), st.permutations(range(6)))
def test_a_key_names_the_accepted_positions_before(accepted: list[bool], users: list[int]) -> None:
    if sum(accepted) == TINY.K:
        accepted[1] = False
    scene = opened()
    for user, uploads in zip(users, accepted, strict=False):
        if uploads:
            scene.upload(user)
        else:
            scene.expire(user, keyed=True)
    position, before = len(accepted), [at for at, yes in enumerate(accepted) if yes]
    scene.keyed(users[5])
    (answer,) = scene.mail("upload", users[5])
    assert isinstance(answer, PositionKey)
    assert answer.position == position
    assert integers_of(answer.positions) == before
    assert integers_of(answer.senders) == [users[at] for at in before]
    boxes = [scene.uploads[0, at][1].boxes[80 * (position - at - 1) :][:80] for at in before]
    assert answer.hashes == b"".join(sha256(box) for box in boxes)


# -------------------------------------------------------------------------------------------------------- settle


def received(scene: Scene) -> Settlement:
    """What the server tells of the upload that it took."""
    (message,) = scene.mail("settle", AUTHORITY)
    assert isinstance(message, Settlement)
    return message


@pytest.mark.requirement("BAA-14")
@pytest.mark.parametrize("parameters", PROFILES)
def test_only_a_signed_upload_is_accepted(parameters: Parameters) -> None:
    scene = opened(parameters)
    scene.upload(0)
    scene.keyed(1)
    scene.send(1)
    scene.take("take", SERVER)
    right = received(scene)
    for wrong in (
        changed(right, signature=flipped(right.signature, 40)),
        changed(right, hashes=flipped(right.hashes)),
        changed(right, stamp=1),
        changed(right, weight=1),
        changed(right, signature=sign(scene.keys.users[2], b"")),
    ):
        scene.refuse(BadSignature, (SERVER,), "settle", AUTHORITY, [wrong])
    for wrong in (
        changed(right, hashes=right.hashes[32:]),
        changed(right, hashes=right.hashes + bytes(32)),
        changed(right, hashes=right.hashes[1:]),
        changed(right, hashes=b""),
        changed(right, signature=b""),
        changed(right, accepted=2),
    ):
        scene.refuse(Malformed, (SERVER,), "settle", AUTHORITY, [wrong])
    scene.take("settle", AUTHORITY)
    assert seats(scene)[1] == (1, "accepted")
    assert b"".join(scene.authority.seats[1].hashes) == right.hashes


@pytest.mark.requirement("BAA-14")
def test_what_a_user_signed_for_elsewhere_is_not_accepted() -> None:
    """A signature of the same user on the same boxes, for another position, epoch or session, is refused."""
    scene = opened()
    scene.upload(0)
    scene.keyed(1)
    upload = scene.send(1)
    hashes = b"".join(sha256(upload.boxes[at : at + 80]) for at in range(0, len(upload.boxes), 80))
    known, signed = scene.server.session, (upload.position, upload.stamp, upload.weight)
    others = [
        known.boxes_signed(0, 1, (0, *signed[1:]), hashes),
        known.boxes_signed(1, 1, signed, hashes),
        known.boxes_signed(0, 2, signed, hashes),
        replace(known, id=b"s" * 16).boxes_signed(0, 1, signed, hashes),
        replace(known, parameters=replace(TINY, c_l=2)).boxes_signed(0, 1, signed, hashes),
    ]
    right = Settlement(*TO_AUTHORITY, 1, 1, upload.stamp, upload.weight, hashes, upload.signature)
    for data in others:
        wrong = changed(right, signature=sign(scene.keys.users[1], data))
        scene.refuse(BadSignature, (SERVER,), "settle", AUTHORITY, [wrong])
    scene.take("settle", AUTHORITY, [right])


@pytest.mark.requirement("BAA-14")
def test_a_position_that_is_not_keyed_is_not_accepted() -> None:
    scene = opened()
    scene.keyed(0)
    upload = scene.send(0)
    hashes = b"".join(sha256(upload.boxes[at : at + 80]) for at in range(0, len(upload.boxes), 80))
    said = Settlement(*TO_AUTHORITY, 0, 1, 0, upload.weight, hashes, upload.signature)
    for states in ((), ("assigned",)):
        scene.refuse(WrongPhase, (), "settle", AUTHORITY, [replace(said, position=1)])
        with_seats(scene, *states).refuse(WrongPhase, (), "settle", AUTHORITY, [said])
    with_seats(scene, "keyed").refuse(WrongPhase, (), "settle", AUTHORITY, [replace(said, position=1)])
    scene.take("settle", AUTHORITY, [said])


@pytest.mark.requirement("BAA-15")
@pytest.mark.parametrize("first", ["accepted", "skipped"])
def test_a_position_is_settled_once(first: str) -> None:
    """Whatever comes after: the same again, the other outcome, or the upload of who was too late."""
    scene = opened()
    scene.keyed(0)
    scene.send(0)
    if first == "accepted":
        scene.take("take", SERVER)
        said = received(scene)
        scene.settle()
    else:
        twin = opened()
        twin.keyed(0)
        twin.send(0)
        twin.take("take", SERVER)
        said = received(twin)
        scene.take("expire", SERVER)
        scene.settle()
    for again in (said, expired(0)):
        scene.refuse(WrongPhase, (), "settle", AUTHORITY, [again])
    assert seats(scene) == [(0, first)]


@pytest.mark.requirement("BAA-16", "BAA-17")
@pytest.mark.parametrize(("parameters", "keyed"), list(product(PROFILES, (False, True))))
def test_what_becomes_of_a_position_that_timed_out(parameters: Parameters, keyed: bool) -> None:
    scene = opened(parameters)
    scene.upload(0)
    scene.offer(1)
    if keyed:
        scene.key(1)
    scene.take("expire", SERVER)
    (state,) = scene.take("settle", AUTHORITY).sent
    assert isinstance(state, PositionState)
    assert state.position == 1
    if not keyed:
        assert state.state == 0
        assert seats(scene) == [(0, "accepted")]
    elif parameters.settle:
        assert state.state == 2
        assert seats(scene) == [(0, "accepted"), (1, "skipped")]
    else:
        assert state.state == 3
        assert not scene.authority.is_open
        assert scene.authority.epoch == 1


@pytest.mark.requirement("BAA-16")
def test_a_position_that_the_authority_was_never_told_of_is_free() -> None:
    scene = opened()
    scene.train(0)
    scene.take("request", 0)
    scene.take("offer", SERVER)
    scene.network.waiting[AUTHORITY] = []
    scene.take("expire", SERVER)
    (state,) = scene.take("settle", AUTHORITY).sent
    assert isinstance(state, PositionState)
    assert (state.position, state.state, scene.authority.seats) == (0, 0, ())


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize("change", [{"stamp": 1}, {"weight": 1}, {"hashes": bytes(32)}, {"signature": bytes(64)}])
def test_a_settlement_without_an_upload_says_nothing_of_one(change: dict[str, Any]) -> None:
    scene = opened()
    scene.keyed(0)
    scene.refuse(Malformed, (SERVER,), "settle", AUTHORITY, [changed(expired(0), **change)])
    scene.take("settle", AUTHORITY, [expired(0)])


# ----------------------------------------------------------------------------------------------------- close, abandon


def close_request(epoch: int = 0) -> CloseRequest:
    """The server asks to end an epoch."""
    return CloseRequest(SESSION, epoch, SERVER, AUTHORITY)


@pytest.mark.requirement("BAA-18")
@pytest.mark.parametrize("state", ["assigned", "keyed"])
def test_an_epoch_is_not_closed_while_a_position_is_assigned(state: str) -> None:
    for before in ((), ("accepted",), ("accepted", "accepted"), ("accepted", "skipped", "accepted")):
        scene = with_seats(opened(), *before, state)
        scene.refuse(WrongPhase, (), "close", AUTHORITY, [close_request()])


@pytest.mark.requirement("BAA-19", "BAA-20")
@pytest.mark.parametrize("states", [s for n in range(5) for s in product(("accepted", "skipped"), repeat=n)])
def test_an_epoch_is_closed_with_enough_updates_and_one_key_for_each_position(states: tuple[str, ...]) -> None:
    accepted = [at for at, state in enumerate(states) if state == "accepted"]
    if len(accepted) > TINY.K:
        return
    scene = with_seats(opened(), *states)
    full = len(accepted) == TINY.K
    if not (full or (len(states) == TINY.positions and len(accepted) >= TINY.T + 2)):
        scene.refuse(TooFewSurvivors, (), "close", AUTHORITY, [close_request()])
        return
    epoch = scene.authority.session.epoch(0)
    slots = [(SELF if at in accepted else PAIR, at) for at in range(TINY.positions)]
    expected = b"".join(scene.authority.ring.secrets(epoch, slots, ()))
    (release,) = scene.take("close", AUTHORITY, [close_request()]).sent
    assert isinstance(release, Release)
    assert release.keys == expected
    assert not scene.authority.is_open


@pytest.mark.requirement("BAA-19")
def test_fewer_than_t_plus_2_updates_are_never_released() -> None:
    """K - 1 accepted of larger buffers, with no position left, are enough only from T + 2 on."""
    p = replace(TINY, T=2, K=5, S=0, c_g=1, tau_max=0, N=6)
    for count in range(6):
        scene = opened(p)
        scene.upload(*range(count))
        for user in range(count, 5):
            scene.expire(user, keyed=True)
        if count >= p.T + 2:
            scene.recover_rightly()
        else:
            scene.take("close", SERVER)
            scene.refuse(TooFewSurvivors, (), "close", AUTHORITY)


@pytest.mark.requirement("BAA-19")
@pytest.mark.parametrize("skipped", [False, True])
def test_an_epoch_with_a_position_left_is_closed_with_k_updates_only(skipped: bool) -> None:
    """Also when T + 2 are accepted."""
    p = replace(TINY, K=5, S=1, c_g=1, tau_max=0, N=6)
    for count in range(5):
        scene = opened(p)
        if skipped:
            scene.expire(5, keyed=True)
        scene.upload(*range(count))
        scene.take("close", SERVER)
        scene.refuse(TooFewSurvivors, (), "close", AUTHORITY)
    scene = opened(p)
    scene.upload(*range(5))
    scene.recover_rightly()


@pytest.mark.requirement("BAA-21")
def test_nothing_is_released_where_timeouts_end_the_epoch() -> None:
    scene = opened(CLOSED)
    scene.upload(0, 1, 2)
    scene.take("close", SERVER)
    (release,) = scene.take("close", AUTHORITY).sent
    assert isinstance(release, Release)
    assert release.keys == b""
    scene = opened(CLOSED)
    scene.upload(0, 1)
    scene.keyed(2)
    scene.take("expire", SERVER)
    (state,) = scene.take("settle", AUTHORITY).sent
    assert isinstance(state, PositionState)


@pytest.mark.requirement("BAA-21")
@pytest.mark.parametrize("parameters", PROFILES)
def test_nothing_is_released_for_an_epoch_that_is_abandoned(parameters: Parameters) -> None:
    for count in range(4):
        scene = opened(parameters)
        scene.upload(*range(count))
        scene.take("abandon", SERVER)
        assert scene.take("abandon", AUTHORITY).sent == ()
        assert scene.authority.ring.stored() == b""
        scene.refuse(WrongPhase, (), "close", AUTHORITY, [close_request()])


@pytest.mark.requirement("BAA-22")
@pytest.mark.parametrize("end", ["close", "abandon", "void"])
@pytest.mark.parametrize("reopened", [False, True])
def test_an_epoch_that_has_ended_stays_so(end: str, reopened: bool) -> None:
    scene = opened(CLOSED if end == "void" else TINY)
    scene.upload(0, 1)
    if end == "void":
        scene.expire(2, keyed=True)
    else:
        scene.upload(2)
        getattr(scene, end)()
    if reopened:
        scene.open()
    late = [assign(0, 0), assign(2, 5), ask(0, 0), ask(2, 2), expired(0), expired(2), close_request()]
    late.append(Abandonment(*TO_AUTHORITY))
    phases = {Assignment: "assign", KeyRequest: "issue", Settlement: "settle", CloseRequest: "close"}
    for message in late:
        scene.refuse(WrongPhase, (), phases.get(type(message), "abandon"), AUTHORITY, [message])


def test_an_epoch_is_not_opened_upon_a_message() -> None:
    Scene(TINY).refuse(WrongPhase, (SERVER,), "open", AUTHORITY, [assign(0, 0)])


def test_an_open_epoch_is_not_opened_again() -> None:
    scene = opened()
    scene.refuse(WrongPhase, (), "open", AUTHORITY, ())
    last = Scene(TINY, round=2**32 - 1)
    last.open()
    last.abandon()
    last.refuse(WrongPhase, (), "open", AUTHORITY, ())


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize("position", [4, 2**16, 2**32 - 1])
def test_a_position_that_there_is_not_is_malformed(position: int) -> None:
    scene = opened()
    scene.refuse(Malformed, (SERVER,), "assign", AUTHORITY, [assign(position, 0)])
    scene.refuse(Malformed, (3,), "issue", AUTHORITY, [ask(position, 3)])
    scene.refuse(Malformed, (SERVER,), "settle", AUTHORITY, [expired(position)])


def test_the_state_says_what_the_authority_does() -> None:
    scene = Scene(TINY)
    assert scene.authority.phase == "closed"
    scene.open()
    assert scene.authority.phase == "open"
    assert isinstance(scene.authority, AuthorityState)
