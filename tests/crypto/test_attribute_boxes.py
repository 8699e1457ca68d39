"""Boxes that are sealed to attributes, and whole epochs of BASA with them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.attribute_boxes import ATTRIBUTE_BOXES, AttributeKeyRing, attribute, key_ring
from secagg_spec.crypto.attribute_keys import issue
from secagg_spec.crypto.attributes import Leaf, encrypt
from secagg_spec.crypto.boxes import PAIR, SELF, Address, Epoch, PositionKeys
from secagg_spec.crypto.entropy import SeededSource, draw_scalars
from secagg_spec.errors import DecryptionFailed, LengthMismatch, Malformed, NonCanonical, ParameterError
from secagg_spec.protocols.basa.cores import PRESETS
from secagg_spec.protocols.basa.runs import Run
from secagg_spec.protocols.basa.store import (
    restore_authority,
    restore_server,
    restore_user,
    store_authority,
    store_server,
    store_user,
)
from secagg_spec.protocols.steps import AUTHORITY, SERVER
from tests.protocols.positions import CLOSED, PROFILES, Scene, flipped

EPOCH = Epoch(b"p" * 32, b"s" * 16, 7, 4, own=True)
RING = key_ring(alpha=3, beta=5)
PUBLIC = RING.published(EPOCH)
SEED = bytes(range(32))
SECRETS = (11, 12, 13, 14)
ADDRESS = Address(EPOCH, PAIR, 9, 0, 2)
BOX = ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, SEED, SECRETS)


def key(slot: tuple[str, int], epoch: Epoch = EPOCH, ring: AttributeKeyRing = RING) -> bytes:
    """The secret key of a slot."""
    (made,) = ring.secrets(epoch, (slot,), ((21, 22),))
    return made


KEY = key((PAIR, 2))


def refused(address: Address, box: bytes, secret: bytes = KEY, public: bytes = PUBLIC) -> None:
    """A box does not open, and its sender is blamed."""
    with pytest.raises(DecryptionFailed) as error:
        ATTRIBUTE_BOXES.open(address, public, secret, box)
    assert error.value.blamed == frozenset({address.sender})


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("wrong", [None, 3, "0", [PUBLIC], bytearray(PUBLIC)])
@pytest.mark.parametrize("name", ["address", "published", "key"])
def test_arguments_of_another_type_are_named(name: str, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        ATTRIBUTE_BOXES.open(**{"address": ADDRESS, "published": PUBLIC, "key": KEY, "box": BOX, name: wrong})
    if name != "key":
        with pytest.raises(ParameterError, match=f"^{name} = "):
            ATTRIBUTE_BOXES.seal(
                **{"address": ADDRESS, "published": PUBLIC, "seed": SEED, "sampled": SECRETS, name: wrong}
            )


# ---------------------------------------------------------------------------------------------------------- boxes


@st.composite
def addresses(draw: st.DrawFn) -> Address:
    """What a box is bound to."""
    positions = draw(st.integers(2, 6))
    session = draw(st.binary(min_size=16, max_size=16))
    epoch = Epoch(draw(st.binary(min_size=32, max_size=32)), session, draw(st.integers(0, 2**32 - 1)), positions, True)
    source = draw(st.integers(0, positions - 1))
    purpose = SELF if source == positions - 1 else draw(st.sampled_from((PAIR, SELF)))
    target = source if purpose == SELF else draw(st.integers(source + 1, positions - 1))
    return Address(epoch, purpose, draw(st.integers(0, 2**31 - 1)), source, target)


@pytest.mark.requirement("BAA-04", "BAA-05")
@given(addresses(), st.binary(min_size=32, max_size=32), st.integers(0, 2**32))
def test_a_box_opens_with_the_key_of_its_position(address: Address, seed: bytes, number: int) -> None:
    source = SeededSource(number.to_bytes(8, "little"), "boxes")
    ring = key_ring(alpha=draw_scalars(source, 1)[0], beta=draw_scalars(source, 1)[0])
    public, secrets = ring.published(address.epoch), draw_scalars(source, address.epoch.positions)
    (secret,) = ring.secrets(address.epoch, (address.slot,), (draw_scalars(source, 2),))
    box = ATTRIBUTE_BOXES.seal(address, public, seed, secrets)
    assert len(box) == ATTRIBUTE_BOXES.box_bytes
    assert len(secret) == ATTRIBUTE_BOXES.key_bytes
    assert len(public) == 192
    ATTRIBUTE_BOXES.check_published(address.epoch, public)
    ATTRIBUTE_BOXES.check_key(address.epoch, public, address.slot, secret)
    assert ATTRIBUTE_BOXES.open(address, public, secret, box) == seed


@pytest.mark.requirement("BAA-05")
@pytest.mark.parametrize(
    "other",
    [
        replace(ADDRESS, epoch=replace(EPOCH, parameters=b"q" * 32)),
        replace(ADDRESS, epoch=replace(EPOCH, session=b"t" * 16)),
        replace(ADDRESS, epoch=replace(EPOCH, number=8)),
        replace(ADDRESS, sender=8),
        replace(ADDRESS, source=1),
        replace(ADDRESS, target=3),
        replace(ADDRESS, purpose=SELF, source=2),
    ],
)
def test_a_box_opens_for_nothing_else(other: Address) -> None:
    refused(other, BOX)
    refused(other, BOX, key(other.slot, other.epoch))


@pytest.mark.requirement("BAA-05")
@given(st.integers(0, 8 * len(BOX) - 1))
def test_a_box_with_another_bit_does_not_open(bit: int) -> None:
    refused(ADDRESS, flipped(BOX, bit // 8, bit % 8))


@pytest.mark.requirement("BAA-05")
def test_every_altered_byte_cut_and_added_one_is_seen() -> None:
    for at in range(len(BOX)):
        refused(ADDRESS, flipped(BOX, at, at % 8))
    for box in (b"", BOX[:1], BOX[:-1], BOX[1:], BOX + b"\0", BOX * 2, bytes(len(BOX))):
        refused(ADDRESS, box)


@pytest.mark.requirement("BAA-05")
def test_a_plaintext_that_is_no_seed_does_not_open() -> None:
    bound: dict[str, Any] = {"session": EPOCH.session, "associated": ADDRESS.binding()}
    leaf = Leaf(attribute(EPOCH, ADDRESS.slot))
    for seed in (b"", SEED[:-1], SEED + b"\0"):
        refused(ADDRESS, encrypt(RING.public, leaf, seed, **bound, secret=11, coefficients=()))


@pytest.mark.requirement("BAA-05")
def test_no_other_key_opens_a_box() -> None:
    others = [key(slot) for slot in EPOCH.slots() if slot != ADDRESS.slot]
    others += [key((PAIR, 2), replace(EPOCH, number=number)) for number in (6, 8)]
    others += [key((PAIR, 2), ring=key_ring(alpha=4, beta=5)), key((PAIR, 2), ring=key_ring(alpha=3, beta=6))]
    for other in others:
        refused(ADDRESS, BOX, other)
    assert ATTRIBUTE_BOXES.open(ADDRESS, PUBLIC, KEY, BOX) == SEED
    refused(ADDRESS, BOX, public=key_ring(alpha=4, beta=5).published(EPOCH))


@pytest.mark.requirement("BAA-07")
def test_keys_of_old_epochs_open_nothing_of_new_ones() -> None:
    for number in range(8, 12):
        later = replace(EPOCH, number=number)
        renewed = RING.renew(later, ())
        assert renewed.published(later) == PUBLIC
        address = replace(ADDRESS, epoch=later)
        refused(address, ATTRIBUTE_BOXES.seal(address, PUBLIC, SEED, SECRETS))
        with pytest.raises(ParameterError, match="the one of the pair-box of position 2"):
            ATTRIBUTE_BOXES.check_key(later, PUBLIC, (PAIR, 2), KEY)


def test_attributes_of_slots_differ() -> None:
    epochs = [
        EPOCH,
        replace(EPOCH, number=8),
        replace(EPOCH, session=b"t" * 16),
        replace(EPOCH, parameters=b"q" * 32),
    ]
    named = [attribute(epoch, slot) for epoch in epochs for slot in epoch.slots()]
    assert len(set(named)) == len(named) == 32
    assert {len(name) for name in named} == {32}


@pytest.mark.requirement("BAA-04")
def test_the_scalar_of_the_target_is_used() -> None:
    same = ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, SEED, (1, 2, 13, 4))
    assert same == BOX
    assert ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, SEED, (11, 12, 3, 14)) != BOX


# ----------------------------------------------------------------------------------------------------------- keys


def test_each_key_is_issued_with_two_blindings_of_its_own() -> None:
    slots, blindings = ((PAIR, 2), (SELF, 0), (PAIR, 1)), (21, 22, 23, 24, 25, 26)
    for slot, made in zip(slots, RING.secrets(EPOCH, slots, (blindings,)), strict=True):
        name, at = attribute(EPOCH, slot), 2 * slots.index(slot)
        alone = issue(RING.master, [name], key_blinding=21 + at, attribute_blindings={name: 22 + at})
        assert made == alone.to_bytes()


@pytest.mark.requirement("BAA-30")
def test_a_key_for_other_attributes_is_refused() -> None:
    check = ATTRIBUTE_BOXES.check_key
    check(EPOCH, PUBLIC, (PAIR, 2), KEY)
    names = [attribute(EPOCH, slot) for slot in EPOCH.slots()]
    both = issue(RING.master, names[:2], key_blinding=7, attribute_blindings=dict.fromkeys(names[:2], 9)).to_bytes()
    for slot in EPOCH.slots():
        if slot != (PAIR, 2):
            with pytest.raises(ParameterError, match=f"the one of the {slot[0]} of position {slot[1]}"):
                check(EPOCH, PUBLIC, slot, KEY)
    with pytest.raises(ParameterError, match="the one of the pair-box"):
        check(EPOCH, PUBLIC, (PAIR, 0), both)
    for bad in (b"", KEY[:-1], KEY + b"\0", bytes(len(KEY))):
        with pytest.raises(ParameterError, match="one of the scheme"):
            check(EPOCH, PUBLIC, (PAIR, 2), bad)


@pytest.mark.requirement("BAA-51")
@pytest.mark.parametrize("bad", [b"", PUBLIC[:-1], PUBLIC + b"\0", bytes(192), flipped(PUBLIC, 5)])
def test_what_is_no_public_key_is_refused(bad: bytes) -> None:
    with pytest.raises(ParameterError, match="a public key of the scheme"):
        ATTRIBUTE_BOXES.check_published(EPOCH, bad)


def test_lengths_and_numbers_that_do_not_fit_are_refused() -> None:
    for seed in (b"", SEED[:-1], SEED + b"\0"):
        with pytest.raises(LengthMismatch, match="seed"):
            ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, seed, SECRETS)
    for secrets in ((), SECRETS[:-1], (*SECRETS, 1)):
        with pytest.raises(LengthMismatch, match="4, one for each position"):
            ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, SEED, secrets)
    with pytest.raises(NonCanonical, match=r"^box_secrets\[2\] = 0: "):
        ATTRIBUTE_BOXES.seal(ADDRESS, PUBLIC, SEED, (1, 1, 0, 1))
    for at, four in enumerate(((0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0))):
        with pytest.raises(NonCanonical, match=rf"^key_blindings\[{at}\] = 0: "):
            RING.secrets(EPOCH, ((PAIR, 0), (PAIR, 1)), (four,))
    for blindings in ((), (1,), (1, 2, 3)):
        with pytest.raises(LengthMismatch, match="2, two for each key"):
            RING.secrets(EPOCH, ((PAIR, 0),), (blindings,))
    for wrong in (0, 2**256):
        with pytest.raises(NonCanonical):
            key_ring(alpha=wrong, beta=5)


def test_a_ring_shows_no_secret_and_comes_back() -> None:
    assert "master" not in repr(RING)
    for is_open in (False, True):
        assert RING.restored(EPOCH, RING.stored(), is_open).stored() == RING.stored()
    assert RING.restored(EPOCH, RING.stored(), True).secrets(EPOCH, ((PAIR, 2),), ((21, 22),)) == (KEY,)
    other = key_ring(alpha=4, beta=6).stored()
    for bad in (b"", RING.stored()[:-1], RING.stored() + b"\0", RING.stored()[:-64] + other[-64:]):
        with pytest.raises(Malformed):
            RING.restored(EPOCH, bad, True)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("slot", "text"),
    [
        (("other", 0), "purpose = 'other': must be one of "),
        ((PAIR, 4), r"position = 4: must be an integer in \[0, 3\]"),
        ((PAIR, "0"), "position = '0'"),
        ((PAIR,), "slot = .*: must be a purpose and a position"),
        (5, "slot = 'int': must be a list or another sequence"),
    ],
)
def test_a_slot_that_the_epoch_does_not_have_has_no_attribute_and_no_key(slot: Any, text: str) -> None:
    for call in (lambda: attribute(EPOCH, slot), lambda: RING.secrets(EPOCH, (slot,), ((21, 22),))):
        with pytest.raises(ParameterError, match=f"^{text}"):
            call()


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("is_open", ["yes", None, 1, 0, []])
def test_whether_an_epoch_is_open_is_a_truth_value(is_open: Any) -> None:
    keys = PositionKeys().renew(EPOCH, (bytes(32 * EPOCH.positions), bytes(32 * EPOCH.positions * EPOCH.own)))
    for ring in (RING, keys):
        with pytest.raises(ParameterError, match=r"^is_open = .*must be of the class bool$"):
            ring.restored(EPOCH, ring.stored(), is_open)


# --------------------------------------------------------------------------------------------------- whole epochs


@pytest.mark.requirement("BAA-41")
@pytest.mark.parametrize("parameters", PROFILES, ids=["settle", "void"])
def test_a_whole_epoch_is_that_of_the_other_encryption(parameters: Any) -> None:
    sums = []
    for ring in (PositionKeys(), RING):
        run = Run(parameters, SeededSource(b"seed", "run"), ring=ring, session=bytes(16), round=0)
        ones = parameters.ring.zeros(parameters.d) + 1
        run.expire(0, 0, keyed=False)
        users = list(range(parameters.K))
        run.upload(users[1], ones, 0, 0.0)
        if parameters.settle:
            run.expire(users[2], 0, keyed=True)
        run.upload(parameters.N - 1, ones, 0, 0.0)
        run.upload(parameters.N - 2, ones, 0, 0.0)
        done = run.close()
        assert len(done.entries) == parameters.K
        assert done.sum.tolist() == [sum(entry.weight for entry in done.entries)] * parameters.d
        sums.append([(entry.position, entry.user, entry.weight) for entry in done.entries])
    assert sums[0] == sums[1]


@pytest.mark.requirement("BAA-17")
def test_a_timeout_voids_an_epoch_and_the_next_one_goes_on() -> None:
    run = Run(CLOSED, SeededSource(b"seed", "run"), ring=RING, session=bytes(16), round=0)
    ones = CLOSED.ring.zeros(CLOSED.d) + 1
    run.upload(0, ones, 0, 0.0)
    run.expire(1, 0, keyed=True)
    assert run.server.phase == "idle"
    for user in range(CLOSED.K):
        run.upload(user, ones, 1, 0.0)
    assert run.close().epoch == 1


def through_json(data: Any) -> Any:
    """What JSON makes of stored data."""
    return json.loads(json.dumps(data))


@pytest.mark.requirement("BAA-44")
@pytest.mark.parametrize("parameters", PROFILES, ids=["settle", "void"])
def test_parties_that_are_stored_after_each_step_go_on(parameters: Any) -> None:
    scene = Scene(parameters, ring=RING)

    def again() -> None:
        states = scene.network.states
        states[SERVER] = restore_server(through_json(store_server(scene.server)), ATTRIBUTE_BOXES)
        states[AUTHORITY] = restore_authority(through_json(store_authority(scene.authority)), RING)
        for user in range(parameters.N):
            states[user] = restore_user(through_json(store_user(scene.user(user))), ATTRIBUTE_BOXES)

    scene.open()
    again()
    for user in range(parameters.K):
        scene.offer(user)
        again()
        scene.key(user)
        again()
        scene.send(user)
        again()
        scene.take("take", SERVER)
        again()
        scene.settle()
        again()
    done = scene.close()
    again()
    assert done.sum.tolist() == scene.plain_sum(done.epoch, done.entries)
    with pytest.raises(ParameterError, match="encryption"):
        restore_server(store_server(scene.server))


def test_a_default_session_runs_with_attributes() -> None:
    p = PRESETS["default"]
    run = Run(p, SeededSource(b"seed", "run"), ring=RING, session=b"s" * 16, round=0)
    for user in range(p.K):
        run.upload(user, p.ring.zeros(p.d), 0, 0.5)
    assert not run.close().sum.any()


@pytest.mark.requirement("ERR-02", "BAA-05")
@pytest.mark.parametrize(
    ("published", "key", "name"), [(0, 500, "published"), (191, 500, "published"), (192, 0, "key")]
)
def test_keys_of_another_length_are_no_fault_of_the_sender(published: int, key: int, name: str) -> None:
    address = Address(Epoch(bytes(32), bytes(16), 0, 2, False), PAIR, 7, 0, 1)
    with pytest.raises(LengthMismatch, match=rf"^len\({name}\) = "):
        ATTRIBUTE_BOXES.open(address, bytes(published), bytes(key), b"")


def test_a_ring_issues_keys_with_the_blindings_of_all() -> None:
    with pytest.raises(LengthMismatch, match=r"^len\(sampled\) = 0: must be 1: the blindings of all keys$"):
        RING.secrets(Epoch(bytes(32), bytes(16), 0, 2, False), [(PAIR, 0)], ())
