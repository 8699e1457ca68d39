"""Vectors of the generator, of keys and of sealing (spec/conventions.md, sections 8 and 9).

The outcomes of `agree-rfc-…` and the blocks of `prg-zero-key` also appear elsewhere: in RFC 7748, sections 5.2 and 6.1,
and in test cases 13 and 14 of GCM, which encrypt the same counter blocks.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.conformance.checks.base import BAD_CIPHERTEXT, BAD_PARAM
from secagg_spec.conformance.checks.crypto import (
    AGAIN,
    EQUAL_KEYS,
    KEY_LENGTH,
    PEER,
    SEARCHED,
    WEAK_KEY,
    limit,
    searched_key,
)
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    SMALL,
    VectorFile,
    begun,
    drawn_bytes,
)
from secagg_spec.crypto import keys, sealing
from secagg_spec.protocols.lightsecagg import round as lightsecagg

_EXPAND, _AGREE, _DERIVE, _CLOSE, _OPEN = "prg.expand", "key.agree", "key.derive", "seal.close", "seal.open"
_TINY: dict[str, Any] = {"q": SMALL, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}
_DEFAULT: dict[str, Any] = {"q": LARGE[2], "N": 10, "D": 2, "U": 7, "T": 3, "d": 16}
_P = 2**255 - 19
_ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_LOW_ORDER = (0, 1, *_ORDER_8, _P - 1, _P, _P + 1)
_BLOCKS = 2**14 + 65
_REJECTING = 19033026
"""The little-endian integer of a key whose stream has 2**32 - 4 as word 4. One word in 859 million is that large."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("crypto", "The pseudo-random generator, key agreement, key derivation, sealed payloads.")
    _streams(made)
    _refused_keys(made)
    _agreed(made)
    _derived(made)
    _closed(made)
    _not_closed(made)
    _opened(made)
    _not_opened(made)
    return made


# ------------------------------------------------------------------------------------------------- the generator


def _streams(made: VectorFile) -> None:
    counting, rejecting = bytes(range(32)), _REJECTING.to_bytes(32, "little")
    known = "the all-zero key and R = 2**32: the elements are the key stream"
    _stream(made, "prg-zero-key", 2**32, bytes(32), 12, ["KeyStream"], known)
    for q in (2, 3, BYTE - 1, LARGE[0], LARGE[2], 2**32):
        id = f"prg-{q}"
        _stream(made, id, q, drawn_bytes(id, "key", 32), 16, ["KeyStream"], f"a random key modulo {q}")
    first = "the key 00 01 … 1f, which meets its first rejection within the first words"
    _stream(made, "prg-rejection-2147483659", LARGE[1], counting, 20, ["StreamRejection"], first)
    rare = "word 4 is 2**32 - 4, and is skipped"
    _stream(made, "prg-rejection-4294967291", LARGE[2], rejecting, 12, ["StreamRejection"], rare)
    for q in (LARGE[2], 2**32 - 3, 3 * 2**30):
        for word in (limit(q), limit(q) - 1):
            at, what = SEARCHED[word][1], "skipped" if word == limit(q) else "used"
            comment = f"word {at} is {word}, and is {what}: the limit modulo {q} is {limit(q)}"
            _stream(made, f"prg-limit-{q}-{word}", q, searched_key(word), at + 4, ["StreamLimit"], comment)
    for n in (24, 9):
        key = drawn_bytes("prg-prefix", "key", 32)
        comment = f"{n} elements: 9 of a key are the first 9 of its 24"
        _stream(made, f"prg-prefix-{n}", LARGE[1], key, n, ["StreamPrefix"], comment, "PRG-03")
    carry = "more than 256 blocks, so that the counter carries"
    _stream(made, "prg-carry", 2**32, drawn_bytes("prg-carry", "key", 32), 1040, ["Counter"], carry)
    _stream(made, "prg-none", LARGE[2], drawn_bytes("prg-none", "key", 32), 0, ["NoElements"], "no elements")


def _stream(
    made: VectorFile, id: str, q: int, key: bytes, n: int, flags: Sequence[str], comment: str, *clauses: str
) -> None:
    params = {"q": q, "key": key.hex(), "n": n}
    made.valid(id, _EXPAND, params, clauses=["PRG-01", "RND-02", *clauses], flags=flags, comment=comment)


def _refused_keys(made: VectorFile) -> None:
    for size in (0, 16, 31, 33, 64):
        id = f"prg-key-{size}"
        params = {"q": LARGE[2], "key": drawn_bytes(id, "key", size).hex(), "n": 8}
        comment = f"the key has {size} bytes"
        made.invalid(
            id, _EXPAND, params, codes=KEY_LENGTH, clauses=["PRG-02"], flags=["StreamKeyLength"], comment=comment
        )
    id = "prg-modulus-1"
    params = {"q": 1, "key": drawn_bytes(id, "key", 32).hex(), "n": 8}
    made.invalid(
        id, _EXPAND, params, codes=BAD_PARAM, clauses=["MOD-01"], flags=["ModulusRange"], comment="the modulus is 1"
    )


# ---------------------------------------------------------------------------------------------------------- keys

_ALICE = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
_RFC_7748 = (
    (
        "5-2-first",
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "Agreement",
    ),
    (
        "5-2-second",
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "TopBit",
    ),
    (
        "6-1-alice",
        _ALICE,
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
        "Agreement",
    ),
    (
        "6-1-bob",
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        "Agreement",
    ),
)
"""Private and public keys of RFC 7748, by section."""


def _agreed(made: VectorFile) -> None:
    for name, private, public, flag in _RFC_7748:
        _agreement(made, f"agree-rfc-7748-{name}", private, public, flag, "a test vector of RFC 7748")
    for id in ("agree-01", "agree-02"):
        other = keys.public_key(drawn_bytes(id, "other", 32))
        _agreement(made, id, _private(id), other.hex(), "Agreement", "a random key pair and a random public key")
    for name, number, flag in (
        ("nine", _P + 9, "LargeCoordinate"),
        ("largest", 2**255 - 1, "LargeCoordinate"),
        ("top-bit", 2**255 + 9, "TopBit"),
    ):
        id = f"agree-coordinate-{name}"
        comment = {"nine": "p + 9, which is 9", "largest": "2**255 - 1, which is 18"}.get(
            name, "9 with the top bit set"
        )
        _agreement(made, id, _private(id), _point(number), flag, f"the public key is {comment}")
    _x25519(made)
    _weak(made)
    for name in ("private", "public"):
        for size in (0, 16, 31, 33):
            id = f"agree-{name}-{size}"
            params = {"private": _private(id), "public": drawn_bytes(id, "public", 32).hex()}
            params[name] = drawn_bytes(id, name, size).hex()
            comment = f"the {name} key has {size} bytes"
            made.invalid(id, _AGREE, params, codes=KEY_LENGTH, clauses=["KEY-03"], flags=["KeyLength"], comment=comment)


def _agreement(
    made: VectorFile, id: str, private: str, public: str, flag: str, comment: str, clause: str = "KEY-02"
) -> None:
    params = {"private": private, "public": public}
    made.valid(id, _AGREE, params, clauses=[clause], flags=[flag], comment=comment)


def _x25519(made: VectorFile) -> None:
    """Add private keys with the clamped bits set differently, and public keys in another encoding."""
    for name, last, number, flag, comment in (
        ("clamped", 0x40, None, "Agreement", "the private key has its fixed bits as they are used"),
        ("not-clamped", 0x87, None, "Agreement", "the private key has its fixed bits the other way round"),
        ("large", 0x40, _P + 9, "LargeCoordinate", "the public key is p + 9, which is 9"),
        ("top-bit", 0x40, 2**255 + 9, "TopBit", "the public key is 9 with the top bit set"),
    ):
        id = f"agree-x25519-{name}"
        drawn_key = bytearray.fromhex(_private(id))
        drawn_key[0], drawn_key[31] = drawn_key[0] & 0xF8 | last & 7, drawn_key[31] & 0x3F | last & 0xC0
        other = keys.public_key(drawn_bytes(id, "other", 32)).hex() if number is None else _point(number)
        _agreement(made, id, bytes(drawn_key).hex(), other, flag, comment, "KEY-10")


def _weak(made: VectorFile) -> None:
    for at, point in enumerate(number + top for top in (0, 2**255) for number in _LOW_ORDER):
        id = f"agree-low-order-{at + 1:02}"
        params = {"private": _private(id), "public": _point(point)}
        comment = "a point of low order" + (", with the top bit set" if point >= 2**255 else "")
        made.invalid(id, _AGREE, params, codes=WEAK_KEY, clauses=["KEY-01"], flags=["LowOrder"], comment=comment)


def _private(id: str) -> str:
    return drawn_bytes(id, "private", 32).hex()


def _point(number: int) -> str:
    return number.to_bytes(32, "little").hex()


# ---------------------------------------------------------------------------------------------------- derivation


def _derivation(id: str, numbers: Mapping[str, int], **changed: Any) -> dict[str, Any]:
    parts = {name: drawn_bytes(id, name, 32).hex() for name in ("secret", "sender_key", "receiver_key")}
    round = int.from_bytes(drawn_bytes(id, "round", 4), "little")
    return {
        "protocol": "lightsecagg",
        "parameters": [[name, str(number)] for name, number in numbers.items()],
        **parts,
        "session": drawn_bytes(id, "session", 16).hex(),
        "round": str(round),
        "sender": 1,
        "receiver": 3,
        **changed,
    }


def _derived(made: VectorFile) -> None:
    bound = ["SessionBound", "BindingInKey", "RoundBound", "ParametersBound", "UsersBound", "PublicKeysBound"]
    every = [*bound, "PublicKeyOrder", "ProtocolBound", "BindingForm", "ParameterOrder"]
    largest = 2**31 - 1
    for name, numbers, changed, flags, comment in (
        ("plain", _TINY, {}, every, "the parameters tiny, a user to one with a higher number"),
        ("back", _TINY, {"sender": 3, "receiver": 1}, ["Direction"], "a user to one with a lower number"),
        ("default", _DEFAULT, {}, every, "the parameters default"),
        ("users", _TINY, {"sender": 256, "receiver": largest}, ["UsersBound", "BindingForm"], "large user numbers"),
        ("largest-round", _TINY, {"round": str(2**32 - 1)}, ["RoundBound"], "the largest round number"),
        ("round-256", _TINY, {"round": "256"}, ["RoundBound", "BindingForm"], "round 256"),
        ("protocol", _TINY, {"protocol": "another"}, ["ProtocolBound"], "another protocol"),
        ("seven", {**_TINY, "W": 4}, {}, ["ParametersBound"], "a seventh parameter"),
        ("one", {"q": LARGE[2]}, {}, ["ParametersBound"], "a single parameter"),
        ("order", {"b": 1, "a": 2}, {}, ["ParameterOrder"], "parameters that are not in the order of their names"),
    ):
        id = f"derive-{name}"
        params = _derivation(id, numbers, **changed)
        made.valid(id, _DERIVE, params, clauses=["KEY-02"], flags=flags, comment=comment)
    _not_derived(made)


def _not_derived(made: VectorFile) -> None:
    for name, right in (("secret", 32), ("session", 16), ("sender_key", 32), ("receiver_key", 32)):
        for size in (right - 1, right + 1):
            id = f"derive-{name.replace('_', '-')}-{size}"
            params = _derivation(id, _TINY, **{name: drawn_bytes(id, name, size).hex()})
            comment = f"{name} has {size} bytes"
            made.invalid(
                id, _DERIVE, params, codes=KEY_LENGTH, clauses=["KEY-03"], flags=["KeyLength"], comment=comment
            )


# ------------------------------------------------------------------------------------------------------- sealing


def _privates(id: str, N: int) -> list[bytes]:
    return [drawn_bytes(id, f"private of user {user}", 32) for user in range(N)]


def _channel(id: str, own: int, numbers: Mapping[str, int] = _TINY, **changed: Any) -> dict[str, Any]:
    """Return what both sealing operations say about a session, its roster and the party itself."""
    privates = _privates(id, numbers["N"])
    return {
        **numbers,
        "session": drawn_bytes(id, "session", 16).hex(),
        "round": str(int.from_bytes(drawn_bytes(id, "round", 4), "little")),
        "roster": [keys.public_key(private).hex() for private in privates],
        "private": privates[own].hex(),
        "type": lightsecagg.MaskShare.TYPE,
        **changed,
    }


def _closing(id: str, sender: int, sizes: Mapping[int, int], numbers: Any = _TINY, **changed: Any) -> dict[str, Any]:
    plaintexts = [[user, drawn_bytes(id, f"plaintext {user}", size).hex()] for user, size in sizes.items()]
    return {**_channel(id, sender, numbers, **changed), "sender": sender, "plaintexts": plaintexts}


def _closed(made: VectorFile) -> None:
    bound = ["SessionBound", "RoundBound", "ParametersBound", "UsersBound", "PublicKeysBound", "TypeBound"]
    every = [*bound, "SessionParameters", "NonceOfPlaintext", "NonceOfContext", "NonceKey"]
    for name, sender, sizes, numbers, changed, flags, comment in (
        ("one", 0, {1: 12}, _TINY, {}, every, "a plaintext for a user with a higher number"),
        ("back", 4, {2: 12}, _TINY, {}, [*every, "Direction"], "a plaintext for a user with a lower number"),
        ("all", 2, {4: 12, 0: 12, 3: 12, 1: 12}, _TINY, {}, every, "a plaintext for each other user, in any order"),
        ("default", 7, {9: 24, 0: 24}, _DEFAULT, {}, every, "the parameters default"),
        ("empty", 1, {3: 0}, _TINY, {}, ["EmptyPlaintext"], "an empty plaintext"),
        ("long", 3, {0: 200}, _TINY, {}, ["BindingInKey"], "a plaintext of several blocks"),
        ("256-blocks", 1, {4: _BLOCKS}, _TINY, {}, ["SealCounter"], "a plaintext of more than 256 blocks of 64 bytes"),
        ("type-0", 1, {0: 8}, _TINY, {"type": 0}, ["TypeBound"], "the message type 0"),
        ("type-65535", 1, {2: 8}, _TINY, {"type": 65535}, ["TypeBound"], "the largest message type"),
        ("round-0", 2, {3: 8}, _TINY, {"round": "0"}, ["SessionBound"], "round 0"),
        ("largest-round", 2, {3: 8}, _TINY, {"round": str(2**32 - 1)}, ["RoundBound"], "the largest round number"),
    ):
        id = f"seal-close-{name}"
        params = _closing(id, sender, sizes, numbers, **changed)
        clauses = ["SEA-01", "SEA-08", "KEY-02", "KEY-07", "LSA-18"]
        made.valid(id, _CLOSE, params, clauses=clauses, flags=flags, comment=comment)


def _not_closed(made: VectorFile) -> None:
    for name, users in (("twice", (3, 3)), ("twice-01", (3, 0, 3))):
        id = f"seal-close-{name}"
        texts = [[user, drawn_bytes(id, f"plaintext {at}", 12).hex()] for at, user in enumerate(users)]
        params = {**_closing(id, 1, {}), "plaintexts": texts}
        _refused_seal(made, id, _CLOSE, params, AGAIN, "SEA-03", "SecondPayload", "two plaintexts for user 3")
    id = "seal-close-for-itself"
    params = {**_closing(id, 1, {}), "plaintexts": [[1, drawn_bytes(id, "plaintext 0", 12).hex()]]}
    _refused_seal(made, id, _CLOSE, params, PEER, "SEA-04", "SealedForItself", "a plaintext of user 1 for user 1")
    for at, number in enumerate(_LOW_ORDER):
        id = f"seal-close-low-order-{at + 1:02}"
        params = _closing(id, 1, {0: 12, 4: 12})
        params["roster"][4] = _point(number)
        _refused_seal(made, id, _CLOSE, params, WEAK_KEY, "KEY-01", "LowOrder", "the key of user 4 is of low order")
    _broken_rosters(made, "seal-close", _CLOSE, _closing_one)


def _closing_one(id: str, numbers: Any = _TINY) -> dict[str, Any]:
    return _closing(id, 1, {0: 12}, numbers)


def _opening_one(id: str, numbers: Any = _TINY) -> dict[str, Any]:
    return _opening(id, numbers=numbers)


def _broken_rosters(made: VectorFile, prefix: str, operation: str, request: Callable[..., dict[str, Any]]) -> None:
    """Add requests with equal keys, with keys and rosters of wrong lengths, and with numbers that break LSA-01."""
    for one, other in ((2, 3), (4, 1)):
        id = f"{prefix}-equal-{one}-{other}"
        params = request(id)
        params["roster"][one] = params["roster"][other]
        comment = f"users {one} and {other} have one key"
        _refused_seal(made, id, operation, params, EQUAL_KEYS, "KEY-04", "EqualKeys", comment)
    for size in (31, 33):
        id = f"{prefix}-private-{size}"
        params = request(id)
        params["private"] = (params["private"] + "a5")[: 2 * size]
        comment = f"the private key has {size} bytes"
        _refused_seal(made, id, operation, params, KEY_LENGTH, "KEY-03", "KeyLength", comment)
        id = f"{prefix}-public-{size}"
        params = request(id)
        params["roster"][4] = (params["roster"][4] + "a5")[: 2 * size]
        comment = f"the public key of user 4 has {size} bytes"
        _refused_seal(made, id, operation, params, KEY_LENGTH, "KEY-03", "KeyLength", comment)
    for count in (4, 6):
        id = f"{prefix}-roster-{count}"
        params = request(id)
        params["roster"] = [*params["roster"], drawn_bytes(id, "added", 32).hex()][:count]
        comment = f"the roster has {count} keys for 5 users"
        _refused_seal(made, id, operation, params, KEY_LENGTH, "KEY-03", "RosterLength", comment)
    for name, changed in (("t-zero", {"T": 0}), ("u-t", {"T": 3}), ("dropouts", {"D": 3}), ("d-zero", {"d": 0})):
        id = f"{prefix}-{name}"
        [(member, value)] = changed.items()
        params = request(id, {**_TINY, **changed})
        _refused_seal(made, id, operation, params, BAD_PARAM, "LSA-01", "Numbers", f"{member} = {value}")


def _refused_seal(
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


# ------------------------------------------------------------------------------------------------------- opening


_NonceOf = Callable[[bytes, bytes, bytes, bytes], bytes]


def _code(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _right_nonce(key: bytes, nonce_key: bytes, associated: bytes, plaintext: bytes) -> bytes:
    return _code(nonce_key, associated + plaintext)[:12]


def _opening(id: str, sender: int = 1, receiver: int = 3, size: int = 12, numbers: Any = _TINY) -> dict[str, Any]:
    params = {**_channel(id, receiver, numbers), "sender": sender, "receiver": receiver}
    return {**params, "payload": _sealed(id, params, drawn_bytes(id, "plaintext", size)).hex()}


def _sealed(
    id: str,
    params: Mapping[str, Any],
    plaintext: bytes,
    *,
    left_out: str = "",
    users: tuple[int, int] | None = None,
    nonce_of: _NonceOf = _right_nonce,
) -> bytes:
    """Return the payload that fits a request of `seal.open`. The sender does not bind the fields `left_out`.

    `nonce_of` computes the nonce from the encryption key, the nonce key, the associated data and the plaintext.
    """
    N = params["N"]
    numbers = {name: params[name] for name in ("q", "N", "D", "U", "T", "d")}
    session, round = bytes.fromhex(params["session"]), int(params["round"])
    sender, receiver = users or (params["sender"], params["receiver"])
    hashed = keys.hash_parameters({} if left_out == "parameters" else numbers)
    context = sealing.Context("lightsecagg", hashed, session, 0 if left_out == "round" else round, params["type"])
    public = [bytes.fromhex(text) for text in params["roster"]]
    ends = [bytes(32), bytes(32)] if left_out == "roster" else [public[sender % N], public[receiver % N]]
    named = (0, 0) if left_out == "users" else (sender, receiver)
    bound, for_nonce = (
        sealing.binding(context, *named, ends[0], ends[1], purpose) for purpose in ("seal", "seal-nonce")
    )
    secret = keys.agree(_privates(id, N)[params["sender"]], keys.public_key(_privates(id, N)[params["receiver"]]))
    salt = bytes(16) if left_out == "session" else session
    associated = bound + (b"" if left_out == "type" else params["type"].to_bytes(2, "little"))
    key, nonce_key = keys.derive(secret, salt, bound), keys.derive(secret, salt, for_nonce)
    nonce = nonce_of(key, nonce_key, associated, plaintext)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, plaintext, associated)


def _opened(made: VectorFile) -> None:
    every = ["SessionBound", "RoundBound", "ParametersBound", "UsersBound", "PublicKeysBound", "SessionParameters"]
    for name, users, size, numbers, flags, comment in (
        ("one", (1, 3), 12, _TINY, every, "a payload from a user with a lower number"),
        ("back", (4, 0), 12, _TINY, ["Direction"], "a payload from a user with a higher number"),
        ("default", (8, 2), 24, _DEFAULT, every, "the parameters default"),
        ("empty", (2, 1), 0, _TINY, ["EmptyPlaintext"], "a payload that is a nonce and a tag: its plaintext is empty"),
        ("long", (0, 4), 200, _TINY, ["TypeBound"], "a payload of several blocks"),
        ("256-blocks", (4, 3), _BLOCKS, _TINY, ["SealCounter"], "a payload of more than 256 blocks of 64 bytes"),
    ):
        id = f"seal-open-{name}"
        params = _opening(id, *users, size, numbers)
        made.valid(id, _OPEN, params, clauses=["SEA-01", "KEY-02", "LSA-18"], flags=flags, comment=comment)


def _not_opened(made: VectorFile) -> None:
    for name, change, comment in (
        ("first-bit", lambda payload: _flip(payload, 12, 1), "the first bit of the body is flipped"),
        ("body", lambda payload: _flip(payload, 23, 128), "the last bit of the body is flipped"),
        ("tag", lambda payload: _flip(payload, 24, 1), "the first bit of the tag is flipped"),
        ("last-bit", lambda payload: _flip(payload, 39, 128), "the last bit of the tag is flipped"),
        ("nonce-first-bit", lambda payload: _flip(payload, 0, 1), "the first bit of the nonce is flipped"),
        ("nonce-last-bit", lambda payload: _flip(payload, 11, 128), "the last bit of the nonce is flipped"),
        ("cut", lambda payload: payload[:-1], "the last byte is cut off"),
        ("cut-front", lambda payload: payload[1:], "the first byte is cut off"),
        ("tag-only", lambda payload: payload[:12] + payload[-16:], "the body is cut out"),
        ("no-nonce", lambda payload: payload[12:], "the nonce is cut off"),
        ("longer", lambda payload: payload + b"\0", "a byte follows the tag"),
    ):
        id = f"seal-open-{name}"
        params = _opening(id)
        params["payload"] = change(bytes.fromhex(params["payload"])).hex()
        _refused_seal(made, id, _OPEN, params, BAD_CIPHERTEXT, "SEA-02", "Altered", comment)
    for size in (0, 8, 15, 16, 27):
        id = f"seal-open-{size}-bytes"
        params = {**_opening(id), "payload": drawn_bytes(id, "payload", size).hex()}
        comment = f"the payload has {size} bytes"
        _refused_seal(made, id, _OPEN, params, BAD_CIPHERTEXT, "SEA-02", "ShortPayload", comment)
    _other_nonces(made)
    _elsewhere(made)
    _unbound(made)
    _broken_rosters(made, "seal-open", _OPEN, _opening_one)


def _flip(payload: bytes, at: int, bit: int) -> bytes:
    return payload[:at] + bytes([payload[at] ^ bit]) + payload[at + 1 :]


def _other_nonces(made: VectorFile) -> None:
    """Add payloads that are sealed under the right key and are wrong only in their nonce."""
    nonces: tuple[tuple[str, str, _NonceOf, str], ...] = (
        ("zero", "NonceChecked", lambda key, own, associated, text: bytes(12), "the nonce is 12 zero bytes"),
        (
            "last",
            "NonceChecked",
            lambda *given: _code(given[1], given[2] + given[3])[-12:],
            "the last bytes of the code",
        ),
        (
            "plaintext",
            "NonceOfContext",
            lambda key, own, associated, text: _code(own, text)[:12],
            "the nonce is computed from the plaintext alone",
        ),
        (
            "context",
            "NonceOfPlaintext",
            lambda key, own, associated, text: _code(own, associated)[:12],
            "the nonce is computed from the associated data alone",
        ),
        (
            "seal-key",
            "NonceKey",
            lambda key, own, associated, text: _code(key, associated + text)[:12],
            "the nonce is computed under the key that encrypts",
        ),
    )
    for name, flag, nonce_of, comment in nonces:
        id = f"seal-open-nonce-{name}"
        params = _opening(id)
        params["payload"] = _sealed(id, params, drawn_bytes(id, "plaintext", 12), nonce_of=nonce_of).hex()
        _refused_seal(made, id, _OPEN, params, BAD_CIPHERTEXT, "SEA-09", flag, comment)


def _elsewhere(made: VectorFile) -> None:
    """Add payloads that were correctly sealed for something else."""
    for name in ("session", "round", "type", "d", "T", "roster", "receiver", "sender", "reversed"):
        id = f"seal-open-another-{name.lower()}"
        params = _opening(id, 1, 3)
        sealed, users = dict(params), {"receiver": (1, 2), "sender": (2, 3), "reversed": (3, 1)}.get(name)
        if name == "session":
            sealed["session"] = drawn_bytes(id, "other", 16).hex()
        elif name == "round":
            sealed["round"] = str(int(params["round"]) ^ 1)
        elif name == "roster":
            sealed["roster"] = [*params["roster"][:1], _point(9), *params["roster"][2:]]
        elif name in params and name not in ("receiver", "sender"):
            sealed[name] = params[name] + 1
        params["payload"] = _sealed(id, sealed, drawn_bytes(id, "plaintext", 12), users=users).hex()
        what = "the other direction" if name == "reversed" else f"another {name}"
        _refused_seal(made, id, _OPEN, params, BAD_CIPHERTEXT, "SEA-02", "Altered", f"sealed for {what}")


def _unbound(made: VectorFile) -> None:
    """Add payloads of a sender that omits something from its binding."""
    for name, flag in (
        ("session", "SessionBound"),
        ("round", "RoundBound"),
        ("parameters", "ParametersBound"),
        ("users", "UsersBound"),
        ("roster", "PublicKeysBound"),
        ("type", "TypeBound"),
    ):
        id = f"seal-open-without-{name}"
        params = _opening(id)
        params["payload"] = _sealed(id, params, drawn_bytes(id, "plaintext", 12), left_out=name).hex()
        comment = f"the sender did not bind the {name}"
        _refused_seal(made, id, _OPEN, params, BAD_CIPHERTEXT, "SEA-02", flag, comment)
