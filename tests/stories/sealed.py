"""Which key and nonce each payload of an honest user was sealed under.

The recorder stands in the place of the cipher that `crypto.sealing` uses, and hands everything on to it. It knows
nothing about protocols: two payloads with one key and one nonce are two payloads with one key stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar
from unittest.mock import patch

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.crypto import sealing, signatures

NONCE_BYTES = 12
KEPT = 2**16


@dataclass
class Recorder:
    """The payloads that were sealed since the last `clear`, by what the library returned."""

    sealed: dict[bytes, tuple[bytes, bytes, bytes]] = field(default_factory=dict)
    streams: dict[tuple[bytes, bytes], dict[bytes, bytes]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget everything."""
        self.sealed.clear()
        self.streams.clear()

    def note(self, key: bytes, nonce: bytes, plaintext: bytes, ciphertext: bytes) -> None:
        """Take down one payload."""
        self.sealed[ciphertext] = (key, nonce, plaintext)
        self.streams.setdefault((key, nonce), {})[plaintext] = ciphertext

    def broken(self, payload: bytes) -> tuple[bytes, ...]:
        """Return the ciphertexts that share key and nonce with a payload, itself included, when there are several.

        They are of different plaintexts. From two of them an adversary has the XOR of the plaintexts, and the key of
        the authenticator: nothing that rests on the seal holds any more.
        """
        key, nonce, _ = self.sealed[self.core(payload)]
        together = tuple(self.streams[key, nonce].values())
        return together if len(together) > 1 else ()

    def core(self, payload: bytes) -> bytes:
        """Return what the library returned for a payload; a nonce may stand before it."""
        for candidate in (payload, payload[NONCE_BYTES:]):
            if candidate in self.sealed:
                return candidate
        raise AssertionError("a payload was sealed past the recorder")


RECORDER = Recorder()


class _Recording:
    """Stands in for the library's class, and takes down what is sealed."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._cipher = ChaCha20Poly1305(key)

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes:
        """Seal as the library does."""
        sealed = self._cipher.encrypt(nonce, data, associated_data)
        RECORDER.note(self._key, nonce, data, sealed)
        return sealed

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes:
        """Open as the library does."""
        return self._cipher.decrypt(nonce, data, associated_data)


class _Remembering:
    """Stands in for the library's Ed25519 key: a signature that was checked is not checked again, in no story."""

    answers: ClassVar[dict[tuple[bytes, bytes, bytes], bool]] = {}

    def __init__(self, public: bytes) -> None:
        self._public = public

    @classmethod
    def from_public_bytes(cls, data: bytes) -> _Remembering:
        """Take a key as the library does."""
        return cls(data)

    def verify(self, signature: bytes, data: bytes) -> None:
        """Refuse a signature as the library does."""
        asked = (self._public, signature, data)
        if asked not in self.answers:
            if len(self.answers) >= KEPT:
                self.answers.clear()
            self.answers[asked] = _holds(*asked)
        if not self.answers[asked]:
            raise InvalidSignature


def _holds(public: bytes, signature: bytes, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except InvalidSignature:
        return False
    return True


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Let `crypto.sealing` seal under the recorder's eyes, and `crypto.signatures` check each signature once."""
    assert vars(sealing)["ChaCha20Poly1305"] is ChaCha20Poly1305, "the recorder is there already"
    RECORDER.clear()
    with (
        patch.object(sealing, "ChaCha20Poly1305", _Recording),
        patch.object(signatures, "Ed25519PublicKey", _Remembering),
    ):
        yield RECORDER
