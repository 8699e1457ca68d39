"""Planted bugs in the generator, in keys and in sealing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import keys, prg, sealing
from secagg_spec.errors import DecryptionFailed, ParameterError, ProtocolError, WeakKey

Function = Callable[..., Any]
_PRG, _KEYS, _SEALING = (f"secagg_spec.crypto.{name}" for name in ("prg", "keys", "sealing"))
_CHANNEL = f"{_SEALING}:SealedChannel"
_RING = Ring(2**31 + 11)
_KEY = bytes(range(32))
_PRIVATE = [bytes([user + 1]) * 32 for user in range(3)]
_PUBLIC = tuple(keys.public_key(private) for private in _PRIVATE)


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails and who is blamed, as something that can be compared."""
    try:
        result = call()
    except ParameterError as error:
        return type(error).__name__
    except ProtocolError as error:
        return type(error).__name__, sorted(error.blamed)
    return result.tolist() if isinstance(result, np.ndarray) else result


def _expanded(n: int = 8, key: bytes = _KEY) -> object:
    return _outcome(lambda: prg.expand(key, _RING, n))


def _words(key: bytes, n: int, dtype: str = "<u4", start: int = 0) -> UintArray:
    stream = Cipher(algorithms.AES(key), modes.CTR(start.to_bytes(16, "big"))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * n)), dtype=dtype).astype(np.uint64)


def _channel(user: int, **changes: Any) -> sealing.SealedChannel:
    numbers = {"q": 7, "N": 3}
    context = sealing.Context("lightsecagg", keys.hash_parameters(numbers), bytes(16), 1, 257)
    return sealing.SealedChannel(replace(context, **changes), _PRIVATE[user], keys.Roster(_PUBLIC))


def _sealed() -> object:
    return _outcome(lambda: _channel(0).close(0, 1, b"a share"))


def _opened(payload: bytes, **changes: Any) -> object:
    return _outcome(lambda: _channel(1, **changes).open(0, 1, payload))


# ------------------------------------------------------------------------------------------------- the generator


@mutant(
    "prg-without-rejection",
    "PRG-01",
    "privacy: words of the key stream are reduced without rejection, so that masks are not uniform",
    f"{_PRG}:expand",
    _expanded,
    also=("PRG-04",),
    kind="privacy",
    source="weak draw: reduced without rejection",
)
def _without_rejection(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        return _words(key, n) % np.uint64(ring.modulus)

    return wrong


def _sampled(words: UintArray, ring: Ring, n: int) -> UintArray:
    kept = words[words < np.uint64(2**32 // ring.modulus * ring.modulus)]
    return kept[:n] % np.uint64(ring.modulus)


@mutant(
    "prg-big-endian-words",
    "PRG-01",
    "no interoperation: the key stream is read as big-endian words, so that masks do not cancel",
    f"{_PRG}:expand",
    _expanded,
    kind="form",
    source="encoding",
)
def _big_endian(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        return _sampled(_words(key, 3 * n + 64, ">u4"), ring, n)

    return wrong


@mutant(
    "prg-counter-from-one",
    "PRG-01",
    "no interoperation: the counter starts at 1",
    f"{_PRG}:expand",
    _expanded,
    kind="form",
    source="off by one",
)
def _counter(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        return _sampled(_words(key, 3 * n + 64, start=1), ring, n)

    return wrong


@mutant(
    "prg-short-counter",
    "PRG-01",
    "privacy: the counter has 8 bits, so that the stream repeats after 256 blocks",
    f"{_PRG}:expand",
    lambda: _expanded(2100),
    kind="privacy",
    source="arithmetic: overflow",
)
def _short_counter(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        return _sampled(np.resize(_words(key, 1024), 3 * n + 64), ring, n)

    return wrong


@mutant(
    "prg-key-is-padded",
    "PRG-02",
    "acceptance: a shorter key is padded by zeros, a longer one is cut",
    f"{_PRG}:expand",
    lambda: _expanded(key=bytes(16)),
    kind="acceptance",
    source="silent repair",
)
def _padded_key(right: Function) -> Function:
    return lambda key, ring, n: right(key[:32].ljust(32, b"\0"), ring, n)


@mutant(
    "prg-refills-in-place",
    "PRG-03",
    "no interoperation: a rejected word is replaced by one from behind the end, so that elements depend on the length",
    f"{_PRG}:expand",
    _expanded,
    kind="form",
    source="other rule: rejected words replaced from behind",
)
def _refills(right: Function) -> Function:
    def wrong(key: bytes, ring: Ring, n: int) -> UintArray:
        right(key, ring, 0)
        words = _words(key, 4 * n + 64)
        accepted = words < np.uint64(2**32 // ring.modulus * ring.modulus)
        head = words[:n].copy()
        holes = np.flatnonzero(~accepted[:n])
        head[holes] = words[n:][accepted[n:]][: holes.size]
        return head % np.uint64(ring.modulus)

    return wrong


# ---------------------------------------------------------------------------------------------------------- keys


@mutant(
    "zero-secret-accepted",
    "KEY-01",
    "privacy: a public key of low order gives a secret that everybody knows",
    f"{_KEYS}:agree",
    lambda: _outcome(lambda: keys.agree(_KEY, bytes(32))),
    kind="privacy",
    source="clause left out",
)
def _zero_secret(right: Function) -> Function:
    def wrong(private: bytes, public: bytes) -> Any:
        try:
            return right(private, public)
        except WeakKey:
            return bytes(32)

    return wrong


@mutant(
    "session-not-in-salt",
    "KEY-02",
    "privacy: two sessions with the same key pairs have the same keys",
    f"{_KEYS}:derive",
    lambda: keys.derive(_KEY, b"sixteen bytes id", b""),
    kind="privacy",
    source="field not bound: the session",
)
def _no_salt(right: Function) -> Function:
    return lambda secret, session, info: right(secret, bytes(len(session)), info)


def _binding(sender: int = 1, receiver: int = 0, round: int = 3) -> bytes:
    context = sealing.Context("lightsecagg", bytes(32), bytes(16), round, 257)
    return sealing.binding(context, sender, receiver, _PUBLIC[sender], _PUBLIC[receiver])


@mutant(
    "binding-sorts-users",
    "KEY-02",
    "privacy: both directions between two users have one key",
    f"{_SEALING}:binding",
    _binding,
    kind="privacy",
    source="field not bound: the direction",
)
def _sorts(right: Function) -> Function:
    def wrong(context: Any, sender: int, receiver: int, sender_key: bytes, receiver_key: bytes, *rest: Any) -> Any:
        (low, low_key), (high, high_key) = sorted([(sender, sender_key), (receiver, receiver_key)])
        return right(context, low, high, low_key, high_key, *rest)

    return wrong


@mutant(
    "binding-without-parameters",
    "KEY-02",
    "acceptance: users with other parameters have the same keys",
    f"{_KEYS}:hash_parameters",
    lambda: keys.hash_parameters({"q": 7}),
    kind="acceptance",
    source="field not bound: the parameters",
)
def _no_parameters(right: Function) -> Function:
    return lambda numbers, keys=None: right({}, keys)


@mutant(
    "parameters-in-sorted-order",
    "KEY-02",
    "no interoperation: the parameters are hashed in the order of their names",
    f"{_KEYS}:hash_parameters",
    lambda: keys.hash_parameters({"q": 7, "N": 5}),
    kind="form",
    source="order",
)
def _sorted_parameters(right: Function) -> Function:
    return lambda numbers, keys=None: right(dict(sorted(numbers.items())), keys)


@mutant(
    "binding-without-round",
    "KEY-02",
    "privacy: two rounds have the same keys",
    f"{_SEALING}:binding",
    _binding,
    kind="privacy",
    source="field not bound: the round",
)
def _no_round(right: Function) -> Function:
    return lambda context, *rest: right(replace(context, round=0), *rest)


@mutant(
    "binding-without-public-keys",
    "KEY-02",
    "no interoperation: the public keys are left out of the binding",
    f"{_SEALING}:binding",
    _binding,
    kind="form",
    source="field not bound: the public keys",
)
def _no_public_keys(right: Function) -> Function:
    return lambda context, sender, receiver, _one, _other, *rest: right(
        context, sender, receiver, bytes(32), bytes(32), *rest
    )


@mutant(
    "equal-keys-accepted",
    "KEY-04",
    "acceptance: one key pair takes part under two user numbers",
    f"{_KEYS}:_refuse_equal",
    lambda: _outcome(lambda: len(keys.Roster((_KEY, _KEY)).keys)),
    kind="acceptance",
    source="clause left out",
)
def _equal(right: Function) -> Function:
    return lambda public: None


@mutant(
    "key-lengths-unchecked",
    "KEY-03",
    "acceptance: keys of other lengths are cut or padded",
    f"{_KEYS}:agree",
    lambda: _outcome(lambda: keys.agree(_KEY, _PUBLIC[0] + b"\0")),
    kind="acceptance",
    source="silent repair",
)
def _lengths(right: Function) -> Function:
    return lambda private, public: right(private[:32].ljust(32, b"\0"), public[:32].ljust(32, b"\1"))


@mutant(
    "keys-hash-without-the-users",
    "KEY-08",
    "no interoperation: the keys of an attempt are hashed without the numbers of their users",
    f"{_KEYS}:hash_keys",
    lambda: keys.hash_keys({3: (_KEY,)}),
    kind="form",
    source="field not bound: the users",
)
def _no_users(right: Function) -> Function:
    return lambda listed: keys.sha256(keys.fields(*(key for user in sorted(listed) for key in listed[user])))


@mutant(
    "keys-come-before-the-parameters",
    "KEY-09",
    "no interoperation: the hash of the keys stands before the parameters",
    f"{_KEYS}:hash_parameters",
    lambda: keys.hash_parameters({"q": 7}, _KEY),
    kind="form",
    source="order",
)
def _keys_first(right: Function) -> Function:
    def wrong(numbers: Any, listed: bytes | None = None) -> Any:
        if listed is None:
            return right(numbers)
        pairs = numbers.items() if hasattr(numbers, "items") else numbers
        return keys.sha256(keys.fields("keys", listed, *(part for name, n in pairs for part in (name, str(n)))))

    return wrong


# ------------------------------------------------------------------------------------------------------- sealing


def _payload() -> bytes:
    return _channel(0).close(0, 1, b"a share")


def _second_key() -> list[bytes]:
    """Return the payloads of two plaintexts by a user that was restored, which begins its channel twice."""
    return [_channel(0).close(0, 1, plaintext) for plaintext in (b"one", b"two")]


@mutant(
    "nonce-is-zero-again",
    "SEA-08",
    "privacy: a user that was restored seals two plaintexts under one key and nonce, and shows their difference",
    f"{_SEALING}:Lane._nonce",
    _second_key,
    also=("SEA-09",),
    kind="privacy",
    source="used twice",
)
def _zero_nonce(right: Function) -> Function:
    return lambda self, secret, associated, plaintext: bytes(12)


@mutant(
    "nonce-of-the-context-alone",
    "SEA-08",
    "privacy: the nonce is that of the key, whatever the plaintext is, so that two plaintexts share it",
    f"{_SEALING}:Lane._nonce",
    _second_key,
    kind="privacy",
    source="field not bound: the plaintext",
)
def _context_nonce(right: Function) -> Function:
    return lambda self, secret, associated, plaintext: right(self, secret, associated, b"")


@mutant(
    "nonce-of-the-plaintext-alone",
    "SEA-08",
    "no interoperation: the nonce is computed without the associated data",
    f"{_SEALING}:Lane._nonce",
    _second_key,
    kind="form",
    source="field not bound: the associated data",
)
def _plaintext_nonce(right: Function) -> Function:
    return lambda self, secret, associated, plaintext: right(self, secret, b"", plaintext)


@mutant(
    "nonce-under-the-seal-key",
    "KEY-07",
    "no interoperation: one key encrypts the payload and makes its nonce",
    f"{_SEALING}:Lane._bound",
    _second_key,
    kind="form",
    source="field not bound: the purpose",
)
def _one_purpose(right: Function) -> Function:
    return lambda self, purpose: right(self, "seal")


def _other_nonce() -> object:
    way = _channel(1)._lane(0, 1)
    secret = keys.agree(_PRIVATE[0], _PUBLIC[1])
    cipher, associated = way._cipher(secret)
    return _opened(bytes(12) + cipher.encrypt(bytes(12), b"a share", associated))


@mutant(
    "nonce-is-not-checked",
    "SEA-09",
    "acceptance: a payload opens under whatever nonce its sender took",
    f"{_SEALING}:Lane._check_nonce",
    _other_nonce,
    kind="acceptance",
    source="clause left out",
)
def _any_nonce(right: Function) -> Function:
    return lambda self, nonce, right_nonce: None


@mutant(
    "message-type-not-bound",
    "SEA-02",
    "acceptance: a payload of one message type opens in another",
    f"{_SEALING}:Lane._cipher",
    lambda: _opened(_payload(), message_type=258),
    kind="acceptance",
    source="field not bound: the message type",
)
def _no_type(right: Function) -> Function:
    def wrong(self: sealing.Lane, secret: bytes) -> Any:
        cipher, associated = right(self, secret)
        return cipher, associated[:-2]

    return wrong


@mutant(
    "one-key-for-all-rounds",
    "SEA-01",
    "privacy: the key of a pair of users is used for every payload",
    f"{_KEYS}:derive",
    _sealed,
    kind="privacy",
    source="field not bound: everything but the session",
)
def _one_key(right: Function) -> Function:
    return lambda secret, session, info: right(secret, session, b"")


@mutant(
    "tag-not-checked",
    "SEA-02",
    "acceptance: a payload that was altered opens to an altered share",
    f"{_CHANNEL}.open",
    lambda: _opened(_payload()[:-1] + b"\0"),
    kind="acceptance",
    source="clause left out",
)
def _no_tag(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, payload: bytes) -> Any:
        try:
            return right(self, sender, receiver, payload)
        except DecryptionFailed:
            cipher, associated = self._lane(sender, receiver)._cipher(self._secret(sender))
            body = payload[12:-16]
            stream = cipher.encrypt(payload[:12].ljust(12, b"\0"), bytes(len(body)), associated)
            return bytes(a ^ b for a, b in zip(stream[:-16], body, strict=False))

    return wrong


@mutant(
    "short-payload-is-empty",
    "SEA-02",
    "acceptance: a payload that is shorter than a nonce and a tag opens to nothing",
    f"{_CHANNEL}.open",
    lambda: _opened(b"\1\2\3"),
    kind="acceptance",
    source="silent repair",
)
def _short(right: Function) -> Function:
    return lambda self, sender, receiver, payload: b"" if len(payload) < 28 else right(self, sender, receiver, payload)


@mutant(
    "only-the-sender-is-blamed",
    "SEA-02",
    "wrong blame: the server could have altered the payload, and the sender alone is blamed",
    f"{_CHANNEL}.open",
    lambda: _opened(b""),
    kind="refusal",
    source="wrong reason",
)
def _blames_sender(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, payload: bytes) -> Any:
        try:
            return right(self, sender, receiver, payload)
        except DecryptionFailed as failed:
            raise DecryptionFailed(str(failed), (sender,)) from None

    return wrong


def _twice() -> object:
    own = _channel(0)
    return _outcome(lambda: [own.close(0, 1, b"one"), own.close(0, 1, b"two")])


@mutant(
    "second-payload-allowed",
    "SEA-03",
    "privacy: two payloads under one key show whether their plaintexts are equal",
    f"{_CHANNEL}.close",
    _twice,
    kind="privacy",
    source="used twice",
)
def _second(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, plaintext: bytes) -> Any:
        self._sealed.clear()
        return right(self, sender, receiver, plaintext)

    return wrong


def _weak_roster() -> object:
    own = sealing.SealedChannel(_channel(0).context, _PRIVATE[0], keys.Roster((*_PUBLIC[:2], bytes(32))))
    return [_outcome(lambda: [own.close(0, 1, b"one"), own.close(0, 2, b"two")]) for _ in range(2)]


@mutant(
    "refused-share-leaves-payloads",
    "ERR-01",
    "failure: a weak key of the last user leaves payloads sealed for the others, which are then refused",
    f"{_CHANNEL}.close",
    _weak_roster,
    kind="refusal",
    source="trace of a refusal",
)
def _leaves_payloads(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, plaintext: bytes) -> Any:
        before = set(self._sealed)
        try:
            return right(self, sender, receiver, plaintext)
        except WeakKey:
            self._sealed |= before | {receiver}
            raise

    return wrong
