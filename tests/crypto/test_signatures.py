"""Signatures: what is signed, what is refused, and which of the two ways to verify."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto import signatures
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import BadSignature, LengthMismatch, ParameterError

PRIVATE = bytes(range(32))
PUBLIC = signatures.verification_key(PRIVATE)
CONTEXT = Context("lightsecagg-active", bytes([9]) * 32, b"sixteen bytes id", 3, 261)
ORDER = 2**252 + 27742317777372353535851937790883648493


def refused(public: bytes, data: bytes, signature: bytes) -> bool:
    """Whether a signature is refused."""
    try:
        signatures.verify(public, data, signature, (4,))
    except BadSignature as error:
        return error.blamed == {4}
    return False


@pytest.mark.requirement("SIG-01")
def test_signatures_are_those_of_rfc_8032() -> None:
    """Section 7.1, tests 1 and 2."""
    private = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    assert signatures.verification_key(private) == public
    signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd"
    signature += "25bf5f0595bbe24655141438e7a100b"
    assert signatures.sign(private, b"").hex() == signature
    private = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    assert signatures.sign(private, b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540")


@pytest.mark.requirement("SIG-01")
def test_what_is_signed_is_the_list_of_the_text() -> None:
    values = [b"secagg-spec", b"\1\0\0\0", b"lightsecagg-active", bytes([9]) * 32, b"sixteen bytes id", b"\3\0\0\0"]
    values += [b"surviving-set", b"\x05\1\0\0", b"\2\0\0\0", b"one", b"", b"two"]
    expected = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    assert signatures.signed_fields(CONTEXT, "surviving-set", 2, (b"one", b"", b"two")) == expected


@pytest.mark.requirement("SIG-01", "SIG-02")
@pytest.mark.parametrize(
    "change",
    [
        {"protocol": "lightsecagg"},
        {"parameters": bytes(32)},
        {"session": bytes(16)},
        {"round": 4},
        {"message_type": 260},
        {"purpose": "another"},
        {"signer": 1},
        {"content": (b"onetwo",)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_field_matters(change: dict[str, Any]) -> None:
    right: dict[str, Any] = {"purpose": "surviving-set", "signer": 2, "content": (b"one", b"two")}
    signature = signatures.sign(PRIVATE, signatures.signed_fields(CONTEXT, **right))
    of_context = {name: value for name, value in change.items() if name not in right}
    of_call = {**right, **{name: value for name, value in change.items() if name in right}}
    assert not refused(PUBLIC, signatures.signed_fields(CONTEXT, **right), signature)
    assert refused(PUBLIC, signatures.signed_fields(replace(CONTEXT, **of_context), **of_call), signature)


@pytest.mark.requirement("SIG-02")
@given(st.binary(max_size=100), st.integers(0, 63), st.integers(1, 255))
def test_an_altered_signature_is_refused(data: bytes, at: int, flip: int) -> None:
    signature = signatures.sign(PRIVATE, data)
    assert not refused(PUBLIC, data, signature)
    assert refused(PUBLIC, data, signature[:at] + bytes([signature[at] ^ flip]) + signature[at + 1 :])
    assert refused(PUBLIC, data + b"\0", signature)
    assert refused(signatures.verification_key(bytes(32)), data, signature)


@pytest.mark.requirement("SIG-02")
@pytest.mark.parametrize("size", [0, 1, 32, 63, 65, 128])
def test_a_signature_of_another_length_is_refused(size: int) -> None:
    assert refused(PUBLIC, b"data", (signatures.sign(PRIVATE, b"data") * 2)[:size])


@pytest.mark.requirement("SIG-03")
@given(st.binary(max_size=20))
def test_S_at_or_above_the_order_is_refused(data: bytes) -> None:
    signature = signatures.sign(PRIVATE, data)
    other = int.from_bytes(signature[32:], "little") + ORDER
    assert refused(PUBLIC, data, signature[:32] + other.to_bytes(32, "little"))


@pytest.mark.requirement("SIG-03")
def test_the_cofactor_is_not_multiplied() -> None:
    """Under a key of order 8, R = 0 and S = 0 always verify with the cofactor; without it when 8 divides k."""
    public = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
    signature = b"\1" + bytes(63)
    outcomes = set()
    for number in range(64):
        data = number.to_bytes(4, "little")
        k = int.from_bytes(hashlib.sha512(signature[:32] + public + data).digest(), "little") % ORDER
        assert refused(public, data, signature) == (k % 8 != 0)
        outcomes.add(k % 8 == 0)
    assert outcomes == {True, False}


@pytest.mark.requirement("SIG-03")
def test_a_key_that_has_another_encoding_verifies_nothing() -> None:
    """With y = 1 and x = 0 the key is the neutral point: R = 1 and S = 0 verify, but under its one encoding alone."""
    prime, signature = 2**255 - 19, b"\1" + bytes(63)
    assert not refused((1).to_bytes(32, "little"), b"data", signature)
    for number in (2**255 + 1, prime + 1, 2**255 + prime + 1):
        assert refused(number.to_bytes(32, "little"), b"data", signature)
    for number in (prime, 2**255 + prime - 1):
        key = number.to_bytes(32, "little")
        assert all(refused(key, bytes([data]), signature) for data in range(64))
    assert not all(refused((prime - 1).to_bytes(32, "little"), bytes([data]), signature) for data in range(64))


@pytest.mark.requirement("SIG-02")
def test_a_key_that_is_no_point_verifies_nothing() -> None:
    assert refused(bytes([2]) + bytes(31), b"data", signatures.sign(PRIVATE, b"data"))


@pytest.mark.requirement("SIG-04")
@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_keys_of_another_length_are_refused(size: int) -> None:
    for call in (
        lambda: signatures.verification_key(bytes(size)),
        lambda: signatures.sign(bytes(size), b""),
        lambda: signatures.verify(bytes(size), b"", bytes(64)),
        lambda: Roster((PUBLIC, bytes(size))),
    ):
        with pytest.raises(LengthMismatch):
            call()


@pytest.mark.requirement("SIG-05")
def test_two_users_with_one_verification_key_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"keys\[2\] = .*different from the key of user 0"):
        Roster((PUBLIC, signatures.verification_key(bytes(32)), PUBLIC))
