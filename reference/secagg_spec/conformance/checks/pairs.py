"""Checks of key agreement and sealing by relations: the adapter draws the keys (spec/conventions.md, section 9)."""

from collections.abc import Mapping
from hashlib import shake_256
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail, octets
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.sealing import OVERHEAD

_AGREE, _SEAL = "pair.agree", "pair.seal"
SIZES = (1, 2**12 + 17, 2**14 + 65, 2**22 + 65)
"""Lengths of long plaintexts: one block more than 2**8 blocks of 16 and of 64 bytes, and than 2**16 of 64 bytes."""
_PIECE = 32
"""Bytes of one piece of a payload: two pieces are equal with probability at most 2**-128, even if they are hex digits.

The longest payload has fewer than 2**19 pieces, so that two of them are equal with probability below 2**-90.
"""
_MOST = 256
"""A payload of another sealing may be this many bytes longer than twice its plaintext."""
_END = 3
"""How many trailing bytes of a payload are altered in every way in which a text encoding could be respelt."""


def _asked(call: Caller, op: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    call.by_relation = True
    return call.result(op, params)


def _agreed(call: Caller) -> tuple[str, str, list[str]]:
    """Return what the two sides of two new key pairs derive, and the public keys."""
    result = _asked(call, _AGREE, {})
    first, second, public = (result.get(name) for name in ("first", "second", "public"))
    keys = [first, second, *public] if isinstance(public, list) and len(public) == 2 else []
    if not (first and second and keys and all(isinstance(key, str) for key in keys)):
        raise CheckFailed("protocol", f"{_AGREE}: first, second and two public keys are due, got {dict(result)}")
    return keys[0], keys[1], keys[2:]


@check("pair.agree/same", "KEY-05", examples=10)
def agree(draw: Any, call: Caller) -> None:
    """Both sides derive the same key."""
    first, second, _ = _agreed(call)
    if first != second:
        fail(f"one side derives {first}, the other {second}")


@check("pair.agree/fresh", "KEY-06", examples=5)
def fresh_keys(draw: Any, call: Caller) -> None:
    """Public keys and derived keys all differ, within a call and between calls."""
    (secret, _, publics), (later, _, others) = _agreed(call), _agreed(call)
    if len({*publics, *others}) < 4:
        fail(f"of four key pairs, two have one public key: {[*publics, *others]}")
    if secret == later:
        fail(f"two pairs of keys derive the same: {secret}")


def _sealed(call: Caller, params: Mapping[str, Any]) -> tuple[str, str]:
    """Return the opened plaintext and the payload."""
    result = _asked(call, _SEAL, params)
    opened, payload = result.get("opened"), result.get("payload")
    if not isinstance(opened, str) or not isinstance(payload, str):
        raise CheckFailed("protocol", f"{_SEAL}: opened and payload are due, got {dict(result)}")
    return opened, payload


@check("pair.seal/round-trip", "SEA-05", examples=30)
def round_trip(draw: Any, call: Caller) -> None:
    """A payload opens to its plaintext."""
    params = VALID[_SEAL](draw, call.caps).params
    params["plaintext"] = bytes(draw(st.binary(max_size=100))).hex()
    opened, _ = _sealed(call, params)
    if opened != params["plaintext"]:
        fail(f"the plaintext {params['plaintext']!r} was opened to {opened!r}", params["plaintext"])


@check("pair.seal/altered", "SEA-02", examples=60)
def altered(draw: Any, call: Caller) -> None:
    """A payload does not open when any one of its bytes was altered."""
    params = VALID[_SEAL](draw, call.caps).params
    at = draw(st.integers(0, 63) | st.integers(-64, -1 - _END))
    mask = draw(among([1 << bit for bit in range(8)]) | st.integers(1, 255))
    _demand_refused(call, params, {"byte": at, "mask": mask}, f"byte {at} was altered by {mask}")


@check("pair.seal/end", "SEA-02", examples=3)
def altered_end(draw: Any, call: Caller) -> None:
    """A payload does not open when its last bytes were altered, even if they only spell the same text differently."""
    params = VALID[_SEAL](draw, call.caps).params
    for at in range(-_END, 0):
        for mask in range(1, 32):
            _demand_refused(call, params, {"byte": at, "mask": mask}, f"byte {at} from the end was altered by {mask}")


@check("pair.seal/another-user", "SEA-02", examples=20)
def another_user(draw: Any, call: Caller) -> None:
    """A payload does not open under another sender or for another receiver."""
    params = VALID[_SEAL](draw, call.caps).params
    end = draw(among(("sender", "receiver")))
    user = draw(
        among([user for user in (4, 5, 0, 1, 254, 2**30) if user not in (params["sender"], params["receiver"])])
    )
    _demand_refused(call, params, {end: user}, f"the {end} was {params[end]}, and it is opened with {user}")


@check("pair.seal/reversed", "SEA-02", examples=10)
def reversed_users(draw: Any, call: Caller) -> None:
    """A payload does not open when sender and receiver are swapped."""
    params = VALID[_SEAL](draw, call.caps).params
    end, other = draw(among((("sender", "receiver"), ("receiver", "sender"))))
    _demand_refused(call, params, {end: params[other]}, f"it is opened as if the {end} were the {other}")


def _demand_refused(call: Caller, params: Mapping[str, Any], alter: Mapping[str, int], why: str) -> None:
    call.by_relation = True
    call.refused(_SEAL, {**params, "alter": dict(alter)}, reject.BAD_CIPHERTEXT, why)


@check("pair.seal/fresh", "SEA-06", examples=10)
def fresh_payloads(draw: Any, call: Caller) -> None:
    """Two payloads of the same plaintext under different keys differ."""
    params = VALID[_SEAL](draw, call.caps).params
    (_, one), (_, other) = _sealed(call, params), _sealed(call, params)
    if one == other:
        fail(f"two payloads of one plaintext are equal although the keys were drawn anew: {one}")


@check("pair.seal/hidden", "SEA-07", examples=10)
def hidden(draw: Any, call: Caller) -> None:
    """A payload does not contain its plaintext in clear."""
    params = VALID[_SEAL](draw, call.caps).params
    secret = bytes(draw(st.binary(min_size=16, max_size=32)))
    _, payload = _sealed(call, {**params, "plaintext": secret.hex()})
    if secret in octets(f"{_SEAL}: payload", payload):
        fail(f"the payload holds its plaintext {secret.hex()}")


def long_plaintexts(size: int) -> tuple[bytes, bytes, bytes]:
    """Return three plaintexts of a given size: zeros, ones, and bytes without structure."""
    return bytes(size), b"\xff" * size, shake_256(b"long").digest(size)


@check("pair.seal/long", "SEA-11", "SEA-05", "SEA-10", examples=1)
def long(draw: Any, call: Caller) -> None:
    """Long plaintexts open, and their payloads add only a few bytes and have no repeated pieces."""
    own = call.caps.policy("pair.sealing") == "chacha20-poly1305"
    for size in SIZES:
        call.transcript.clear()
        payloads = [_opened(call, plaintext) for plaintext in long_plaintexts(size)]
        lengths = sorted({len(payload) for payload in payloads})
        if len(lengths) > 1:
            fail(f"payloads of three plaintexts of {size} bytes have {lengths} bytes: the length tells them apart")
        if own and lengths != [size + OVERHEAD]:
            due = f"the sealing of the text adds {OVERHEAD}; another one is declared by the policy pair.sealing"
            fail(f"the payload of {size} bytes has {lengths[0]} bytes: {due}", size + OVERHEAD)
        if lengths[0] > 2 * size + _MOST:
            fail(f"the payload of {size} bytes has {lengths[0]} bytes, more than twice as many and {_MOST}")
        pieces = [payloads[0][at : at + _PIECE] for at in range(0, lengths[0] - _PIECE + 1, _PIECE)]
        if len(set(pieces)) < len(pieces):
            fail(f"the payload of {size} zeros holds {len(pieces) - len(set(pieces))} pieces of {_PIECE} bytes again")


def _opened(call: Caller, plaintext: bytes) -> bytes:
    """Return the payload of a plaintext, after it opened to that plaintext."""
    opened, payload = _sealed(call, {"plaintext": plaintext.hex(), "sender": 0, "receiver": 1, "alter": None})
    if opened != plaintext.hex():
        fail(f"a plaintext of {len(plaintext)} bytes was opened to {len(opened) // 2} other bytes")
    return octets(f"{_SEAL}: payload", payload)
