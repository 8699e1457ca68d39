"""Key agreement and key derivation: a thin layer over the library.

Source: spec/conventions.md, section 9 (KEY-01 to KEY-04, KEY-08, KEY-09).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.errors import ParameterError, WeakKey

LABEL = b"secagg-spec"
VERSION = 1
SESSION_BYTES = 16
_KEPT = 4096
"""The size of each cache of library results: the same keys meet repeatedly, within a round and across rounds."""


def public_key(private: bytes) -> bytes:
    """Return the X25519 public key of 32 private bytes."""
    check_key("private", private)
    return _public_bytes(private)


@lru_cache(maxsize=_KEPT)
def _public_bytes(private: bytes) -> bytes:
    return _private_key(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


@lru_cache(maxsize=_KEPT)
def _private_key(private: bytes) -> X25519PrivateKey:
    """Return the library's key object, cached: it costs as much as an agreement, and a key usually meets many keys."""
    return X25519PrivateKey.from_private_bytes(private)


@lru_cache(maxsize=_KEPT)
def _agreed(private: bytes, public: bytes) -> bytes:
    return _private_key(private).exchange(X25519PublicKey.from_public_bytes(public))


@lru_cache(maxsize=_KEPT)
def _derived(secret: bytes, session: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, session, info).derive(secret)


def agree(private: bytes, public: bytes) -> bytes:
    """Return the X25519 shared secret, 32 bytes.

    Raises
    ------
    LengthMismatch
        A key is not 32 bytes long (KEY-03).
    WeakKey
        The shared secret is all zero, which happens for points of low order (KEY-01).
    """
    check_key("private", private)
    check_key("public", public)
    try:
        return _agreed(private, public)
    except ValueError:
        raise WeakKey("the shared secret is all zero: the public key is a point of low order") from None


def refuse_weak(public: bytes) -> None:
    """Refuse a public key of low order, which gives the all-zero secret with every private key (KEY-01).

    Raises
    ------
    LengthMismatch
        The key is not 32 bytes long (KEY-03).
    WeakKey
        The key is of low order.
    """
    agree(bytes(KEY_BYTES), public)


def derive(secret: bytes, session: bytes, info: bytes) -> bytes:
    """Return HKDF-SHA256 of a shared secret: 32 bytes (KEY-02)."""
    check_key("secret", secret)
    validate.octets("session", session, SESSION_BYTES)
    validate.octets("info", info)
    return _derived(secret, session, info)


def fields(*values: bytes | str | int) -> bytes:
    """Return the fields as bytes, each preceded by its length as u32; text is ASCII, integers are u32 (section 9).

    Raises
    ------
    ParameterError
        A text is not ASCII, or an integer is not in ``[0, 2**32)``.
    """
    return b"".join([_field(value) for value in values])


def _field(value: bytes | str | int) -> bytes:
    if isinstance(value, str):
        value = validate.ascii_text("field", value).encode("ascii")
    elif not isinstance(value, bytes):
        number = validate.secret_integer("field", value, "bytes, text or an integer")
        value = validate.integer("field", number, 0, validate.MAX_COUNT).to_bytes(4, "little")
    return len(value).to_bytes(4, "little") + value


def sha256(data: bytes) -> bytes:
    """Return SHA-256 of `data`; raises `ParameterError` for what is no bytes."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(validate.octets("data", data))
    return digest.finalize()


def hash_parameters(numbers: Mapping[str, int] | Sequence[tuple[str, int]], keys: bytes | None = None) -> bytes:
    """Return SHA-256 of the names and values of parameters, in the given order; pairs may repeat a name.

    Parameters
    ----------
    numbers : mapping from name to int, or sequence of pairs
    keys : bytes, optional
        The result of `hash_keys`, 32 bytes. In the active profiles it follows the parameters as one more parameter,
        named ``keys`` (KEY-09).

    Raises
    ------
    ParameterError
        A name is no text in ASCII, or a value is negative, or has more than 2^13 bits; or `keys` is no bytes.
    LengthMismatch
        `keys` is not 32 bytes long.
    """
    if keys is not None:
        check_key("keys", keys)
    pairs = [*numbers.items()] if isinstance(numbers, Mapping) else validate.sequence("numbers", numbers, "pairs")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ParameterError("numbers", validate.class_of(pair), "pairs of a name and an integer")
    named: list[bytes | str | int] = [
        part for name, value in pairs for part in (name, str(validate.integer(name, value, 0)))
    ]
    return sha256(fields(*named, *(() if keys is None else ("keys", keys))))


def hash_keys(keys: Mapping[int, Sequence[bytes]]) -> bytes:
    """Return SHA-256 of the public keys of an attempt: each user's number and keys, in ascending user order (KEY-08).

    Parameters
    ----------
    keys : mapping from user to sequence of bytes
        Each user's public keys for this attempt, 32 bytes each, in the order of the protocol's page.

    Raises
    ------
    ParameterError
        The argument is no mapping from users in ``[0, 2**32 - 2]`` to sequences of bytes.
    LengthMismatch
        A key is not 32 bytes long (KEY-03).
    """
    listed: list[bytes | str | int] = []
    for user in sorted(validate.users("keys", [*validate.mapping("keys", keys)], validate.MAX_COUNT)):
        for at, key in enumerate(validate.sequence(f"keys[{user}]", keys[user], "public keys")):
            check_key(f"keys[{user}][{at}]", key)
        listed += [user, *keys[user]]
    return sha256(fields(*listed))


@dataclass(frozen=True)
class Roster(validate.Plain):
    """The public keys of a session's users, by user number.

    Raises
    ------
    LengthMismatch
        A key is not 32 bytes long (KEY-03).
    ParameterError
        Two users have the same key (KEY-04).
    """

    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for user, key in enumerate(validate.sequence("keys", self.keys, "public keys")):
            check_key(f"keys[{user}]", key)
        _refuse_equal(self.keys)

    @cached_property
    def hash(self) -> bytes:
        """The hash of the keys of an attempt in which all users of the roster take part (KEY-08)."""
        return hash_keys({user: (key,) for user, key in enumerate(self.keys)})


def _refuse_equal(keys: Sequence[bytes]) -> None:
    owner: dict[bytes, int] = {}
    for user, key in enumerate(keys):
        if key in owner:
            raise ParameterError(f"keys[{user}]", key.hex(), f"different from the key of user {owner[key]}")
        owner[key] = user


guard(__name__)
