"""Encryption by attributes: a key decrypts a ciphertext if its attributes satisfy the ciphertext's access tree.

Notation: s is the secret of a ciphertext, lambda_y the share of its leaf y; `attribute_keys` has the notation of keys.

Source: Bethencourt, Sahai and Waters, Ciphertext-Policy Attribute-Based Encryption, 2007, section 4.2, without
delegation. spec/attributes.md adapts it to an asymmetric pairing and to key encapsulation (ABE-12 to ABE-26).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.scalars import scalar
from secagg_spec.crypto import access_tree, pairing
from secagg_spec.crypto.access_tree import Gate, Leaf, Tree, all_of, any_of
from secagg_spec.crypto.attribute_keys import MasterKey, PublicKey, SecretKey, issue, point_1, point_2, setup
from secagg_spec.crypto.keys import LABEL, SESSION_BYTES, VERSION, fields, sha256
from secagg_spec.crypto.pairing import GT, G1Point, G2Point
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import DecryptionFailed, LengthMismatch, ParameterError

__all__ = [
    "Gate",
    "Leaf",
    "MasterKey",
    "PublicKey",
    "SecretKey",
    "Tree",
    "all_of",
    "any_of",
    "decrypt",
    "encrypt",
    "issue",
    "setup",
]

MAX_PLAINTEXT: Final = 2**24
_NONCE = bytes(12)


def encrypt(
    public: PublicKey,
    tree: Tree,
    plaintext: bytes,
    *,
    session: bytes,
    associated: bytes,
    secret: int,
    coefficients: Sequence[int],
) -> bytes:
    """Return the ciphertext of a plaintext under an access tree (ABE-12, ABE-13).

    Parameters
    ----------
    public : PublicKey
        The key of the authority.
    tree : Leaf or Gate
        The condition that the attributes of a key must satisfy.
    plaintext, associated : bytes
        The plaintext, at most 2**24 bytes, and the associated data.
    session : bytes
        The session id, 16 bytes.
    secret : int
        Uniform in ``[1, r)``, fresh for each ciphertext (ABE-26).
    coefficients : sequence of int
        `access_tree.coefficient_count` numbers, uniform in ``[0, r)`` and fresh.

    Raises
    ------
    ParameterError
        The tree is refused (ABE-03), an argument has another type, or a leaf would have the share 0 (ABE-22).
    NonCanonical
        A number is out of its range (ABE-19).
    LengthMismatch
        The number of coefficients (ABE-07) or the length of the session id or the plaintext (ABE-25) is wrong.
    """
    _check_lengths(session, plaintext)
    validate.octets("associated", associated)
    secret = scalar("secret", secret)
    shares = access_tree.share(tree, secret, coefficients)
    _refuse_zero(shares)
    header = _header(public, tree, secret, shares)
    key = _payload_key(public, public.target.power(secret), header, session)
    payload = ChaCha20Poly1305(key).encrypt(_NONCE, plaintext, associated)
    return header + len(payload).to_bytes(4, "little") + payload


def _check_lengths(session: bytes, plaintext: bytes) -> None:
    if len(validate.octets("plaintext", plaintext)) > MAX_PLAINTEXT:
        raise LengthMismatch("len(plaintext)", len(plaintext), f"at most {MAX_PLAINTEXT}")
    _check_session(session)


def _check_session(session: bytes) -> None:
    validate.octets("session", session, SESSION_BYTES)


def _refuse_zero(shares: Sequence[int]) -> None:
    if 0 in shares:
        raise ParameterError("coefficients", f"a list that gives leaf {shares.index(0)} the share 0", "another list")


def _header(public: PublicKey, tree: Tree, secret: int, shares: Iterable[int]) -> bytes:
    parts = [access_tree.tree_bytes(tree), public.fixed_h.power(secret).to_compressed_bytes()]
    for leaf, value in zip(access_tree.leaves(tree), shares, strict=True):
        hashed = pairing.power_1(pairing.hash_attribute(leaf.attribute), value)
        parts += [pairing.base_2().power(value).to_compressed_bytes(), hashed.to_compressed_bytes()]
    return b"".join(parts)


def _payload_key(public: PublicKey, element: GT, header: bytes, session: bytes) -> bytes:
    info = fields(LABEL, VERSION, "attributes", public.digest, sha256(header))
    return HKDF(hashes.SHA256(), KEY_BYTES, session, info).derive(pairing.target_bytes(element))


# -------------------------------------------------------------------------------------------------------- decryption

_Part: TypeAlias = tuple[G2Point, G1Point]
"""C_y and C'_y of a leaf."""


class _Opened(NamedTuple):
    """A decoded ciphertext."""

    header: bytes
    tree: Tree
    c: G1Point
    parts: tuple[_Part, ...]
    payload: bytes


def decrypt(public: PublicKey, key: SecretKey, ciphertext: bytes, *, session: bytes, associated: bytes) -> bytes:
    """Return the plaintext of a ciphertext.

    Raises
    ------
    ParameterError
        An argument has another type.
    Malformed
        The bytes do not encode a ciphertext (ABE-17, ABE-23, ABE-24).
    DecryptionFailed
        The attributes of the key do not satisfy the tree (ABE-15), or the ciphertext was altered or made with other
        inputs (ABE-17, ABE-18).
    LengthMismatch
        The session id is not 16 bytes long (ABE-25).
    """
    _check_session(session)
    validate.octets("associated", associated)
    opened = _read_ciphertext(validate.octets("ciphertext", ciphertext))
    chosen = access_tree.select(opened.tree, key.by_attribute)
    if chosen is None:
        raise DecryptionFailed("the attributes of the key do not satisfy the access tree")
    element = pairing.pairing_product(_pairs(key, opened, chosen))
    cipher = ChaCha20Poly1305(_payload_key(public, element, opened.header, session))
    try:
        return cipher.decrypt(_NONCE, opened.payload, associated)
    except InvalidTag:
        raise DecryptionFailed("the ciphertext does not open: it was altered, or made with something else") from None


def _pairs(key: SecretKey, opened: _Opened, chosen: Mapping[int, int]) -> Iterator[tuple[G1Point, G2Point]]:
    """Yield the pairs of points whose pairings multiply to K: one pair, and two for each leaf."""
    yield opened.c, key.d
    leaves = access_tree.leaves(opened.tree)
    for number, weight in chosen.items():
        component, (share, hashed) = key.by_attribute[leaves[number].attribute], opened.parts[number]
        yield -_power(component.blinded, weight), share
        yield _power(hashed, weight), component.blinding


def _power(point: G1Point, weight: int) -> G1Point:
    return point if weight == 1 else pairing.power_1(point, weight)


def _read_ciphertext(data: bytes) -> _Opened:
    reader = Reader("a ciphertext", data)
    tree = access_tree.read_tree(reader)
    c = point_1(reader)
    parts = tuple((point_2(reader), point_1(reader)) for _ in access_tree.leaves(tree))
    header = data[: reader.at]
    payload = reader.take(reader.number(4))
    reader.end()
    return _Opened(header, tree, c, parts, payload)


guard(__name__)
