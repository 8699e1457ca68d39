"""Boxes and masks of BASA: by the text, computed anew, and whatever is not as it was sealed is refused."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.boxes import (
    PAIR,
    PER_POSITION,
    SELF,
    Address,
    Epoch,
    PerPosition,
    PositionKeys,
    mask_key,
    open_box,
    seal,
)
from secagg_spec.crypto.keys import public_key
from secagg_spec.errors import DecryptionFailed, LengthMismatch, ParameterError, WeakKey

LOW_ORDER = [bytes(32), b"\1" + bytes(31), (2**255 - 20).to_bytes(32, "little"), (2**255 - 19).to_bytes(32, "little")]
KEY = st.binary(min_size=32, max_size=32)
NUMBER = st.sampled_from((0, 1, 2**32 - 1)) | st.integers(0, 2**32 - 1)


@st.composite
def addresses(draw: st.DrawFn) -> Address:
    """Any box of any epoch that has self keys."""
    positions = draw(st.integers(2, 12))
    epoch = Epoch(draw(KEY), draw(st.binary(min_size=16, max_size=16)), draw(NUMBER), positions, True)
    source = draw(st.integers(0, positions - 1))
    target = draw(st.integers(source, positions - 1))
    return Address(epoch, SELF if source == target else PAIR, draw(NUMBER), source, target)


def framed(*values: bytes | str | int) -> bytes:
    """Fields behind their lengths, by the conventions."""
    data = b""
    for value in values:
        part = value.to_bytes(4, "little") if isinstance(value, int) else value
        part = part.encode() if isinstance(part, str) else part
        data += len(part).to_bytes(4, "little") + part
    return data


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 of 32 bytes, by RFC 5869."""
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()


def head(epoch: Epoch, with_session: bool) -> tuple[bytes | str | int, ...]:
    """The fields that everything is bound to."""
    session = (epoch.session,) if with_session else ()
    return (b"secagg-spec", 1, "basa", epoch.parameters, *session, epoch.number)


def binding(address: Address) -> bytes:
    """The binding of a box, as section 5 says."""
    where = (address.purpose, address.sender, address.source, address.target)
    return framed(*head(address.epoch, True), *where)


def sealed(address: Address, public: bytes, seed: bytes, box_key: bytes) -> bytes:
    """A box, as section 5 says."""
    mine = X25519PrivateKey.from_private_bytes(box_key)
    shared = mine.exchange(X25519PublicKey.from_public_bytes(public))
    e = public_key(box_key)
    key = hkdf(shared, address.epoch.session, binding(address) + framed(e, public))
    return e + ChaCha20Poly1305(key).encrypt(bytes(12), seed, binding(address))


# ------------------------------------------------------------------------------------------------------- the text


@pytest.mark.requirement("BAA-03")
@given(addresses(), KEY)
def test_the_key_of_a_mask_is_derived_as_the_text_says(address: Address, seed: bytes) -> None:
    epoch, i, j = address.epoch, address.source, address.target
    pair = framed(*head(epoch, False), "pairwise-mask", 0, i, j)
    own = framed(*head(epoch, False), "self-mask", 0, i)
    assert mask_key(epoch, seed, i, j) == hkdf(seed, epoch.session, pair)
    assert mask_key(epoch, seed, i) == hkdf(seed, epoch.session, own)


@pytest.mark.requirement("BAA-04")
@given(addresses(), KEY, KEY, KEY)
def test_a_box_is_sealed_as_the_text_says(address: Address, private: bytes, box_key: bytes, seed: bytes) -> None:
    public = public_key(private)
    box = seal(address, public, seed, box_key)
    assert box == sealed(address, public, seed, box_key)
    assert len(box) == PER_POSITION.box_bytes == 80
    assert open_box(address, private, box) == seed


@pytest.mark.requirement("BAA-04", "BAA-07")
@given(addresses(), st.data())
def test_a_ring_publishes_and_gives_the_keys_of_its_slots(address: Address, data: st.DataObject) -> None:
    epoch = address.epoch
    size = 32 * epoch.positions
    pairs, own = data.draw(st.binary(min_size=size, max_size=size)), data.draw(st.binary(min_size=size, max_size=size))
    ring = PositionKeys().renew(epoch, (pairs, own))
    published = ring.published(epoch)
    private = (own if address.purpose == SELF else pairs)[32 * address.target :][:32]
    assert ring.secrets(epoch, (address.slot,), ()) == (private,)
    at = 32 * (address.target + (address.purpose == SELF) * epoch.positions)
    assert published[at : at + 32] == PER_POSITION.public(epoch, published, address.slot) == public_key(private)  # type: ignore[attr-defined]
    PER_POSITION.check_published(epoch, published)
    PER_POSITION.check_key(epoch, published, address.slot, private)
    box = PER_POSITION.seal(address, published, bytes(32), b"e" * 32)
    assert PER_POSITION.open(address, published, private, box) == bytes(32)
    assert ring.renew(epoch, (own, pairs)).published(epoch) != published or pairs == own
    assert ring.forget().keys == b""


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.requirement("BAA-05")
@given(addresses(), KEY, KEY, KEY, st.integers(0, 80 * 8 - 1), st.integers(0, 79))
def test_an_altered_or_cut_box_does_not_open(
    address: Address, private: bytes, box_key: bytes, seed: bytes, bit: int, cut: int
) -> None:
    box = seal(address, public_key(private), seed, box_key)
    altered = bytearray(box)
    altered[bit // 8] ^= 1 << (bit & 7)
    for wrong in (bytes(altered), box[:cut], box + b"\0", b""):
        with pytest.raises(DecryptionFailed) as refused:
            open_box(address, private, wrong)
        assert refused.value.blamed == {address.sender}


def elsewhere(address: Address) -> list[Address]:
    """Where a box does not belong, each differing in one thing."""
    epoch = address.epoch
    others = [
        replace(epoch, parameters=hashlib.sha256(epoch.parameters).digest()),
        replace(epoch, session=hashlib.sha256(epoch.session).digest()[:16]),
        replace(epoch, number=epoch.number ^ 1),
    ]
    moved = [replace(address, epoch=other) for other in others] + [replace(address, sender=address.sender ^ 1)]
    for source in range(epoch.positions):
        for target in range(source, epoch.positions):
            if (source, target) != (address.source, address.target):
                purpose = SELF if source == target else PAIR
                moved.append(replace(address, purpose=purpose, source=source, target=target))
    return moved


@pytest.mark.requirement("BAA-05")
@given(addresses(), KEY, KEY, KEY)
def test_a_box_opens_nowhere_else(address: Address, private: bytes, box_key: bytes, seed: bytes) -> None:
    box = seal(address, public_key(private), seed, box_key)
    for other in elsewhere(address):
        with pytest.raises(DecryptionFailed) as refused:
            open_box(other, private, box)
        assert refused.value.blamed == {other.sender}


@pytest.mark.requirement("BAA-05")
@given(addresses(), KEY, KEY, KEY, KEY)
def test_another_key_opens_nothing(address: Address, private: bytes, other: bytes, box_key: bytes, seed: bytes) -> None:
    box = seal(address, public_key(private), seed, box_key)
    if public_key(other) != public_key(private):
        with pytest.raises(DecryptionFailed):
            open_box(address, other, box)


@pytest.mark.requirement("BAA-06")
@pytest.mark.parametrize("low", LOW_ORDER, ids=["0", "1", "-1", "p"])
@given(addresses(), KEY, KEY)
def test_points_of_low_order_are_refused(low: bytes, address: Address, private: bytes, seed: bytes) -> None:
    with pytest.raises(WeakKey):
        seal(address, low, seed, private)
    with pytest.raises(DecryptionFailed) as refused:
        open_box(address, private, low + bytes(48))
    assert refused.value.blamed == {address.sender}


WHOLE = Epoch(bytes(32), bytes(16), 0, 3, True)
PLAIN = replace(WHOLE, own=False)


def test_a_purpose_is_text() -> None:
    with pytest.raises(ParameterError, match=r"^purpose = array.*: must be pair-box or self-box$"):
        Address(WHOLE, np.array([PAIR, SELF]), 0, 0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epoch", "purpose", "source", "target"),
    [
        (WHOLE, PAIR, 1, 1), (WHOLE, PAIR, 2, 1), (WHOLE, SELF, 0, 1), (WHOLE, SELF, 1, 0), (WHOLE, PAIR, 0, 3),
        (WHOLE, PAIR, -1, 1), (WHOLE, "seal", 0, 1), (PLAIN, SELF, 1, 1),
    ],
)  # fmt: skip
def test_a_box_that_no_epoch_has_is_refused(epoch: Epoch, purpose: str, source: int, target: int) -> None:
    with pytest.raises(ParameterError) as refused:
        Address(epoch, purpose, 0, source, target)
    if purpose not in epoch.purposes:
        assert (refused.value.parameter, refused.value.value) == ("purpose", purpose)
        assert refused.value.allowed.split(" or ") == list(epoch.purposes)


@pytest.mark.parametrize("epoch", [WHOLE, PLAIN])
def test_keys_of_another_length_are_refused(epoch: Epoch) -> None:
    own = 96 * epoch.own
    right: list[Any] = [bytes(96), bytes(own)]
    assert len(PositionKeys().renew(epoch, tuple(right)).published(epoch)) == 96 + own
    for wrong in ((bytes(95), bytes(own)), (bytes(96), bytes(own + 32)), (b"", b"")):
        with pytest.raises(LengthMismatch):
            PositionKeys().renew(epoch, wrong)
    for length in (0, 95 + own, 97 + own, 192 - own):
        for call in (
            lambda published: PER_POSITION.check_published(epoch, published),
            lambda published: PER_POSITION.check_key(epoch, published, (PAIR, 0), bytes(32)),
            lambda published: PER_POSITION.seal(Address(epoch, PAIR, 0, 0, 2), published, bytes(32), b"e" * 32),
        ):
            with pytest.raises(LengthMismatch, match=r"^len\(keys\) = "):
                call(bytes(length))
    with pytest.raises(LengthMismatch):
        PER_POSITION.check_key(epoch, bytes(96 + own), (PAIR, 0), bytes(31))
    with pytest.raises(ParameterError):
        PER_POSITION.check_key(epoch, bytes(96 + own), (PAIR, 0), bytes(32))


@pytest.mark.parametrize("slot", [(PAIR, 3), (PAIR, -1), ("x", 0), (SELF, 0), (PAIR, None)])
def test_a_slot_that_no_epoch_has_is_refused(slot: Any) -> None:
    ring = PositionKeys(bytes(96))
    for call in (lambda: ring.secrets(PLAIN, (slot,), ()), lambda: PerPosition().public(PLAIN, bytes(96), slot)):
        with pytest.raises(ParameterError, match=r"^(purpose|position) = "):
            call()
    with pytest.raises(LengthMismatch, match=r"^len\(keys\) = 0"):
        ring.forget().secrets(PLAIN, PLAIN.slots(), ())


def test_a_box_costs_the_same_in_an_epoch_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload is linear in the positions: no box makes the list of all keys."""
    epoch = Epoch(bytes(32), bytes(16), 0, 2**16, True)
    assert len(epoch.slots()) == epoch.slot_count
    address = Address(epoch, PAIR, 0, 0, 2**16 - 1)
    private = bytes([9]) * 32
    published = (bytes(32) * (2**16 - 1) + public_key(private)) + bytes(32) * 2**16
    monkeypatch.delattr(Epoch, "slots")
    box = PER_POSITION.seal(address, published, bytes([3]) * 32, bytes([5]) * 32)
    PER_POSITION.check_key(epoch, published, address.slot, private)
    assert PER_POSITION.open(address, published, private, box) == bytes([3]) * 32


@pytest.mark.parametrize("sampled", [(), (bytes(128),), (b"", b"", b"")])
def test_a_ring_is_renewed_with_pair_keys_and_self_keys(sampled: tuple[bytes, ...]) -> None:
    with pytest.raises(LengthMismatch, match=rf"^len\(sampled\) = {len(sampled)}: must be 2: "):
        PositionKeys().renew(PLAIN, sampled)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    "wrong", [{"number": -1}, {"number": 2**32}, {"positions": -1}, {"session": "x"}, {"parameters": 5}]
)
def test_an_epoch_names_the_member_that_is_wrong(wrong: dict[str, Any]) -> None:
    right = Epoch(bytes(32), bytes(16), 0, 4, own=True)
    with pytest.raises(ParameterError, match=rf"^{next(iter(wrong))} = "):
        replace(right, **wrong)
    for sender in (-1, 2**32):
        with pytest.raises(ParameterError, match=rf"^sender = {sender}: must be an integer in"):
            Address(right, PAIR, sender, 0, 1)
