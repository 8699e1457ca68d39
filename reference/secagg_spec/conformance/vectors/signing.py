"""Vectors of signatures: what is signed, and what is not a valid signature (spec/conventions.md, section 10)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from secagg_spec.conformance.cases.valid import signed_bytes
from secagg_spec.conformance.checks.crypto import KEY_LENGTH
from secagg_spec.conformance.checks.lightsecagg_active import BAD_SIGNATURE
from secagg_spec.conformance.checks.scripts import OUT_OF_RANGE
from secagg_spec.conformance.vectors.base import (
    LARGE,
    SMALL,
    VectorFile,
    begun,
    drawn_bytes,
)
from secagg_spec.crypto import signatures
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.sealing import Context

_SIGN, _VERIFY = "signature.sign", "signature.verify"
_TINY: dict[str, int] = {"q": SMALL, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "W": 4}
_DEFAULT: dict[str, int] = {"q": LARGE[2], "N": 10, "D": 2, "U": 7, "T": 3, "d": 16, "W": 7}
_ORDER = 2**252 + 27742317777372353535851937790883648493
_P = 2**255 - 19
_ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
_NEUTRAL = (1).to_bytes(32, "little")
_RFC_8032 = (
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    ),
)
"""The private and public keys of the first tests in section 7.1."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("signing", "Signatures: the bytes that are signed, and what is not valid for them.")
    _signed(made)
    _not_signed(made)
    _valid(made)
    _not_valid(made)
    _large_numbers(made)
    _small_orders(made)
    _encodings(made)
    _lengths(made)
    return made


# --------------------------------------------------------------------------------------------------------- signing


def _fields(id: str, numbers: Mapping[str, int] = _TINY, **changed: Any) -> dict[str, Any]:
    """Return the fields as both operations state them."""
    return {
        "protocol": "lightsecagg-active",
        "parameters": [[name, str(number)] for name, number in numbers.items()],
        "session": drawn_bytes(id, "session", 16).hex(),
        "round": str(int.from_bytes(drawn_bytes(id, "round", 4), "little")),
        "purpose": "surviving-set",
        "type": 261,
        "signer": 2,
        "content": [drawn_bytes(id, "content", 16).hex()],
        **changed,
    }


def _private(id: str) -> bytes:
    return drawn_bytes(id, "private", 32)


def _signing(id: str, numbers: Mapping[str, int] = _TINY, **changed: Any) -> dict[str, Any]:
    """Return a request to sign."""
    return {**_fields(id, numbers, **changed), "private": _private(id).hex()}


_CASES: tuple[tuple[str, Mapping[str, int], dict[str, Any], str, str], ...] = (
    ("plain", _TINY, {}, "Signed", "the parameters tiny"),
    ("default", _DEFAULT, {"signer": 9}, "Signed", "the parameters default"),
    ("largest-round", _TINY, {"round": str(2**32 - 1)}, "Signed", "the largest round number"),
    ("round-256", _TINY, {"round": "256"}, "FieldForm", "round 256"),
    ("signer", _TINY, {"signer": 2**31 - 1}, "FieldForm", "the largest user number"),
    ("type-0", _TINY, {"type": 0}, "FieldForm", "the message type 0"),
    ("type-65535", _TINY, {"type": 65535}, "FieldForm", "the largest message type"),
    ("protocol", _TINY, {"protocol": "another"}, "Signed", "another protocol"),
    ("purpose", _TINY, {"purpose": "weights"}, "Signed", "another purpose"),
    ("no-content", _TINY, {"content": []}, "Signed", "no field of content"),
    ("empty-content", _TINY, {"content": [""]}, "FieldForm", "one field of content, which is empty"),
    ("more-content", _TINY, {"content": ["00", "", "0102"]}, "FieldForm", "three fields of content"),
    ("order", {"b": 1, "a": 2}, {}, "ParameterOrder", "parameters that are not in the order of their names"),
)


def _signed(made: VectorFile) -> None:
    for name, numbers, changed, flag, comment in _CASES:
        id = f"sign-{name}"
        params = _signing(id, numbers, **changed)
        made.valid(id, _SIGN, params, clauses=["SIG-01"], flags=[flag], comment=comment)
    for at, (private, _) in enumerate(_RFC_8032, 1):
        id = f"sign-rfc-8032-{at}"
        comment = f"the key of test {at} in RFC 8032, 7.1"
        made.valid(
            id, _SIGN, {**_fields(id), "private": private}, clauses=["SIG-01"], flags=["Signed"], comment=comment
        )


def _not_signed(made: VectorFile) -> None:
    for size in (0, 31, 33, 64):
        id = f"sign-private-{size}"
        params = {**_fields(id), "private": drawn_bytes(id, "private", size).hex()}
        _refused(made, id, _SIGN, params, KEY_LENGTH, "SIG-04", "SigningKeyLength", f"the private key has {size} bytes")
    _broken_fields(made, "sign", _SIGN, _signing)


def _broken_fields(made: VectorFile, prefix: str, operation: str, request: Callable[..., dict[str, Any]]) -> None:
    """Add requests with sessions of wrong lengths, and with a round number that is too large."""
    for size in (15, 17):
        id = f"{prefix}-session-{size}"
        params = request(id, session=drawn_bytes(id, "session", size).hex())
        comment = f"the session has {size} bytes"
        _refused(made, id, operation, params, KEY_LENGTH, "SIG-01", "SessionLength", comment)
    id = f"{prefix}-round-above"
    params = request(id, round=str(2**32))
    _refused(made, id, operation, params, OUT_OF_RANGE, "SIG-01", "RoundRange", "the round is 2**32")


def _refused(
    made: VectorFile,
    id: str,
    operation: str,
    params: Mapping[str, Any],
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    made.invalid(id, operation, params, codes=codes, clauses=[clause], flags=[flag], comment=comment)


# ------------------------------------------------------------------------------------------------------- verifying


def _under(params: Mapping[str, Any], private: bytes, data: bytes) -> dict[str, Any]:
    """Return fields with the public key of a private key and its signature of some bytes."""
    public = signatures.verification_key(private)
    return {**params, "public": public.hex(), "signature": signatures.sign(private, data).hex()}


def _signature(id: str, numbers: Mapping[str, int] = _TINY, **changed: Any) -> dict[str, Any]:
    """Return a request to verify a right signature."""
    params = _fields(id, numbers, **changed)
    return _under(params, _private(id), _data(params))


def _data(params: Mapping[str, Any]) -> bytes:
    """Return the bytes that are signed. A session or round that no request may have is cut."""
    session, round = params["session"].ljust(32, "0")[:32], str(int(params["round"]) & 2**32 - 1)
    return signed_bytes({**params, "session": session, "round": round})


def _valid(made: VectorFile) -> None:
    for name, numbers, changed, flag, comment in _CASES:
        id = f"verify-{name}"
        params = _signature(id, numbers, **changed)
        made.valid(id, _VERIFY, params, clauses=["SIG-01", "SIG-02"], flags=[flag], comment=comment)
    for at, (private, public) in enumerate(_RFC_8032, 1):
        id = f"verify-rfc-8032-{at}"
        params = _under(_fields(id), bytes.fromhex(private), _data(_fields(id)))
        assert params["public"] == public
        comment = f"the key of test {at} in RFC 8032, 7.1"
        made.valid(id, _VERIFY, params, clauses=["SIG-01", "SIG-02"], flags=["Signed"], comment=comment)


def _not_valid(made: VectorFile) -> None:
    for name, change, comment in (
        ("first-bit", lambda right: _flip(right, 0, 1), "the first bit of R is flipped"),
        ("last-of-r", lambda right: _flip(right, 31, 128), "the last bit of R is flipped"),
        ("first-of-s", lambda right: _flip(right, 32, 1), "the first bit of S is flipped"),
        ("last-bit", lambda right: _flip(right, 63, 128), "the last bit of S is flipped"),
        ("exchanged", lambda right: right[32:] + right[:32], "R and S have changed places"),
        ("zero", lambda right: bytes(64), "the signature is all zero"),
        ("cut", lambda right: right[:-1], "the last byte is cut off"),
        ("longer", lambda right: right + b"\0", "a byte follows"),
        ("half", lambda right: right[:32], "only R is there"),
        ("empty", lambda right: b"", "the signature is empty"),
    ):
        id = f"verify-{name}"
        params = _signature(id)
        params["signature"] = change(bytes.fromhex(params["signature"])).hex()
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-02", "NotValid", comment)
    id = "verify-another-key"
    params = {**_signature(id), "public": signatures.verification_key(drawn_bytes(id, "other", 32)).hex()}
    _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-02", "NotValid", "signed with another key")
    _elsewhere(made)
    _unsigned(made)


def _flip(signature: bytes, at: int, bit: int) -> bytes:
    return signature[:at] + bytes([signature[at] ^ bit]) + signature[at + 1 :]


def _elsewhere(made: VectorFile) -> None:
    """Add signatures that are right for something else."""
    for name, change in (
        ("protocol", lambda params: "lightsecagg"),
        ("parameters", lambda params: params["parameters"][:-1]),
        ("session", lambda params: _flip(bytes.fromhex(params["session"]), 15, 1).hex()),
        ("round", lambda params: str(int(params["round"]) ^ 1)),
        ("purpose", lambda params: "weights"),
        ("type", lambda params: 262),
        ("signer", lambda params: 3),
        ("content", lambda params: [*params["content"], ""]),
        ("partition", lambda params: [params["content"][0][:8], params["content"][0][8:]]),
    ):
        id = f"verify-another-{name}"
        params = _fields(id)
        member = "content" if name == "partition" else name
        params = _under(params, _private(id), _data({**params, member: change(params)}))
        comment = "signed with the content cut in two" if name == "partition" else f"signed for another {name}"
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-02", "NotValid", comment)


def _unsigned(made: VectorFile) -> None:
    """Add signatures of a signer that omits the session or the round from what it signs."""
    for name, flag, changed in (("session", "SessionSigned", {"session": b""}), ("round", "RoundSigned", {"round": 0})):
        id = f"verify-without-{name}"
        params = _fields(id)
        hashed = hash_parameters({name: int(value) for name, value in params["parameters"]})
        bound: dict[str, Any] = {"session": bytes.fromhex(params["session"]), "round": int(params["round"]), **changed}
        context = Context(params["protocol"], hashed, bound["session"], bound["round"], params["type"])
        content = [bytes.fromhex(text) for text in params["content"]]
        data = signatures.signed_fields(context, params["purpose"], params["signer"], content)
        params = _under(params, _private(id), data)
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-02", flag, f"the signer did not sign the {name}")


# ------------------------------------------------------------------------------------------- one way to verify them


def _large_numbers(made: VectorFile) -> None:
    for at in (1, 2):
        id = f"verify-large-s-{at}"
        params = _signature(id)
        right = bytes.fromhex(params["signature"])
        S = int.from_bytes(right[32:], "little") + _ORDER
        params["signature"] = (right[:32] + S.to_bytes(32, "little")).hex()
        comment = "the order of the base point is added to S"
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-03", "LargeS", comment)
    id = "verify-s-is-the-order"
    params = {**_fields(id), "public": _NEUTRAL.hex(), "signature": (_NEUTRAL + _ORDER.to_bytes(32, "little")).hex()}
    comment = "S is the order of the base point, where 0 were right"
    _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-03", "LargeS", comment)


def _small(id: str, public: bytes, remainder: Callable[[int], bool]) -> dict[str, Any]:
    """Return a request with a key of low order, neutral R and S = 0, in a round with a suitable k modulo 8."""
    params = {**_fields(id), "public": public.hex(), "signature": (_NEUTRAL + bytes(32)).hex()}
    for round in count():
        params["round"] = str(round)
        digest = hashlib.sha512(_NEUTRAL + public + _data(params)).digest()
        if remainder(int.from_bytes(digest, "little") % _ORDER & 7):
            break
    return params


def _small_orders(made: VectorFile) -> None:
    for k in (1, 2, 4):
        id = f"verify-cofactor-{k}"
        params = _small(id, _ORDER_8, lambda rest, k=k: rest == k)  # type: ignore[misc]
        comment = f"a key of order 8, R is neutral, S = 0, and k is {k} modulo 8: right only when multiplied by 8"
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-03", "Cofactor", comment)
    id = "verify-cofactor-0"
    params = _small(id, _ORDER_8, lambda rest: rest == 0)
    comment = "a key of order 8, R is neutral, S = 0, and 8 divides k: right as it stands"
    made.valid(id, _VERIFY, params, clauses=["SIG-03"], flags=["Cofactor"], comment=comment)


def _encodings(made: VectorFile) -> None:
    id = "verify-neutral-key"
    params = _small(id, _NEUTRAL, lambda rest: True)
    comment = "the key is neutral, R is neutral, S = 0: right"
    made.valid(id, _VERIFY, params, clauses=["SIG-03"], flags=["KeyEncoding"], comment=comment)
    for name, number, comment in (
        ("sign", 2**255 + 1, "x = 0, and the sign is set"),
        ("above", _P + 1, "y is not below the prime"),
        ("above-sign", 2**255 + _P + 1, "y is not below the prime, and the sign is set"),
        ("order-2-sign", 2**255 + _P - 1, "x = 0 and y = -1, and the sign is set"),
    ):
        id = f"verify-key-{name}"
        params = _small(id, number.to_bytes(32, "little"), lambda rest: rest == 0)
        why = f"a key that RFC 8032 does not decode: {comment}"
        _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-03", "KeyEncoding", why)
    id = "verify-r-above"
    params = {**_fields(id), "public": _NEUTRAL.hex(), "signature": ((_P + 1).to_bytes(32, "little") + bytes(32)).hex()}
    comment = "R is the neutral point in another encoding"
    _refused(made, id, _VERIFY, params, BAD_SIGNATURE, "SIG-03", "NotValid", comment)


def _lengths(made: VectorFile) -> None:
    for size in (0, 31, 33, 64):
        id = f"verify-public-{size}"
        params = _signature(id)
        params["public"] = (params["public"] + drawn_bytes(id, "added", 32).hex())[: 2 * size]
        comment = f"the verification key has {size} bytes"
        _refused(made, id, _VERIFY, params, KEY_LENGTH, "SIG-04", "SigningKeyLength", comment)
    _broken_fields(made, "verify", _VERIFY, _signature)
