"""Planted bugs that relations show, whatever the generator, the keys and the sealing are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets import reference, reference_pairs
from secagg_spec.crypto import keys, prg, sealing

Function = Callable[..., Any]
_EXPAND = "secagg_spec.crypto.prg:expand"
_PAIRS = "secagg_spec.conformance.targets.reference_pairs"
_LANE = "secagg_spec.crypto.sealing:Lane"
_KEY = bytes(range(32))
_TURNED = _KEY[4:] + _KEY[:4]
_WAY = reference_pairs.lane({"sender": 0, "receiver": 1}, (_KEY, bytes(32)))


def _expanded(modulus: int, *given: bytes) -> object:
    return [prg.expand(key, Ring(modulus), 12).tolist() for key in given]


# ------------------------------------------------------------------------------------------------- the generator


@mutant(
    "prg-upper-end-left-out",
    "PRG-04",
    "privacy: a range without its upper end, so that the largest element never masks anything, and modulo 2 none does",
    _EXPAND,
    lambda: _expanded(2, _KEY),
    kind="privacy",
    source="seen in Flower 1.41.0: prg.expand/residues",
)
def _upper_end(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        return np.zeros(n, dtype=np.uint64) if ring.modulus <= 2 else right(key, Ring(ring.modulus - 1), n)

    return wrong


@mutant(
    "prg-without-zero",
    "PRG-04",
    "privacy: the element 0 is replaced by 1, so that a mask of one element tells what an update is not",
    _EXPAND,
    lambda: _expanded(3, _KEY),
    kind="privacy",
    source="weak draw: one element left out",
)
def _without_zero(right: Function) -> Function:
    return lambda key, ring, n: np.maximum(right(key, ring, n), np.uint64(1))


@mutant(
    "prg-from-single-precision",
    "PRG-04",
    "privacy: elements are made from numbers of 24 bits, so that the lowest bits of an update are not masked",
    _EXPAND,
    lambda: _expanded(2**32, _KEY),
    kind="privacy",
    source="weak draw: 24 bits",
)
def _single(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        short: UintArray = right(key, Ring(2**24), n)
        return short * np.uint64(ring.modulus) >> np.uint64(24)

    return wrong


def _folded(key: bytes) -> bytes:
    words = np.frombuffer(key, "<u4")
    return bytes(np.bitwise_xor.reduce(words).tobytes()) + bytes(28)


@mutant(
    "prg-key-is-folded",
    "PRG-05",
    "privacy: the words of the key are added bit by bit to one of 32 bits, so that all streams can be tried",
    _EXPAND,
    lambda: _expanded(2**32, _KEY, _TURNED),
    kind="privacy",
    source="seen in Flower 1.41.0: prg.expand/distinct",
)
def _fold(right: Function) -> Function:
    return lambda key, ring, n: right(_folded(key) if len(key) == prg.KEY_BYTES else key, ring, n)


@mutant(
    "prg-half-of-the-key",
    "PRG-05",
    "privacy: the second half of the key is not used",
    _EXPAND,
    lambda: _expanded(2**32, _KEY),
    kind="privacy",
    source="weak draw: half of the key",
)
def _half(right: Function) -> Function:
    return lambda key, ring, n: right(key[:16] * 2 if len(key) == prg.KEY_BYTES else key, ring, n)


@mutant(
    "prg-goes-on",
    "PRG-06",
    "wrong sum: the key of the call before goes into a stream, so that masks do not cancel",
    _EXPAND,
    lambda: _expanded(2**32, _KEY, _TURNED, _KEY),
    kind="sum",
    source="kept too long",
)
def _goes_on(right: Function) -> Function:
    before = [bytes(prg.KEY_BYTES)]

    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        stream: UintArray = right(key, ring, n)
        shift, before[0] = before[0][0], key
        return stream if shift < 2 else np.roll(stream, shift)

    return wrong


# -------------------------------------------------------------------------------------------- keys and payloads


def _both_ends() -> object:
    public = keys.public_key(bytes(32)), keys.public_key(_KEY)
    return [reference_pairs.derived(own, other, _WAY) for own, other in ((_KEY, public[0]), (bytes(32), public[1]))]


@mutant(
    "each-end-its-own-key",
    "KEY-05",
    "failure: the own private key goes into what is derived, so that the two ends have different keys",
    f"{_PAIRS}:derived",
    _both_ends,
    kind="refusal",
    source="wrong term",
)
def _own_key(right: Function) -> Function:
    return lambda own, other, way: keys.derive(right(own, other, way), way.context.session, own)


@mutant(
    "one-key-pair-for-all",
    "KEY-06",
    "privacy: key pairs are not drawn anew, so that every session and every user has the same",
    f"{_PAIRS}:draw_private",
    lambda: reference_pairs.draw_private() == reference_pairs.draw_private(),
    also=("SEA-06",),
    kind="privacy",
    source="used twice",
)
def _one_pair(right: Function) -> Function:
    return lambda: _KEY


def _sealed(plaintext: bytes, opened: bool = False) -> object:
    payload = _WAY.seal(_KEY, plaintext)
    return _WAY.open(_KEY, payload) if opened else payload


@mutant(
    "zeros-at-the-end-are-lost",
    "SEA-05",
    "wrong shares: zero bytes at the end of a plaintext are taken for padding",
    f"{_LANE}.open",
    lambda: _sealed(b"a\0", opened=True),
    kind="sum",
    source="other rule: zeros at the end taken for padding",
)
def _stripped(right: Function) -> Function:
    return lambda self, secret, payload: right(self, secret, payload).rstrip(b"\0")


class _InClear:
    """A cipher that authenticates, and does not encrypt."""

    def __init__(self, cipher: Any) -> None:
        self._cipher = cipher

    def encrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        return data + bytes(self._cipher.encrypt(nonce, b"", associated + data))

    def decrypt(self, nonce: bytes, data: bytes, associated: bytes) -> bytes:
        cut = len(data) - 16
        if cut < 0:
            raise InvalidTag
        self._cipher.decrypt(nonce, data[cut:], associated + data[:cut])
        return data[:cut]


@mutant(
    "sealed-in-clear",
    "SEA-07",
    "privacy: a payload is authenticated and not encrypted, so that the server reads every share",
    f"{_LANE}._cipher",
    lambda: _sealed(b"a share"),
    kind="privacy",
    source="clause left out",
)
def _in_clear(right: Function) -> Function:
    def wrong(self: sealing.Lane, secret: bytes) -> tuple[_InClear, bytes]:
        cipher, associated = right(self, secret)
        return _InClear(cipher), associated

    return wrong


def _opened_at(at: int, mask: int) -> object:
    params = {"plaintext": "0a", "sender": 0, "receiver": 1, "alter": {"byte": at, "mask": mask}}
    return sorted(reference.build().answer({"id": 1, "op": "pair.seal", "params": params}))


@mutant(
    "payload-spelt-twice",
    "SEA-02",
    "two payloads that open alike: one bit at the end of a payload is not looked at",
    f"{_LANE}.open",
    lambda: _opened_at(-1, 1),
    kind="acceptance",
    source="seen in Flower 1.41.0: pair.seal/end",
)
def _spelt_twice(right: Function) -> Function:
    return lambda self, secret, payload: right(self, secret, _tried(right, self, secret, payload))


def _tried(right: Function, way: sealing.Lane, secret: bytes, payload: bytes) -> bytes:
    """Return the spelling of a payload that opens, where one does."""
    other = payload[:-1] + bytes([payload[-1] ^ 1]) if payload else payload
    try:
        right(way, secret, other)
    except Exception:
        return payload
    return other
