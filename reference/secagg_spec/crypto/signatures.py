"""Signatures: Ed25519 over a list of fields that identifies the signed content; a thin layer over the library.

The library verifies without the cofactor and requires S below the order of the base point, as SIG-03 demands; a test
checks this. It decodes some keys that RFC 8032 does not allow, and these are refused here. Ed25519 draws no random
values: the private key and the fields determine the signature (RND-01).

Source: spec/conventions.md, section 10 (SIG-01 to SIG-05).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import LABEL, VERSION, fields
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import BadSignature

SIGNATURE_BYTES = 64
_PRIME = 2**255 - 19
_KEPT = 1024


def verification_key(private: bytes) -> bytes:
    """Return the Ed25519 verification key of a private signing key; both are 32 bytes long (SIG-04)."""
    check_key("private", private)
    return _signing_key(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


@lru_cache(maxsize=_KEPT)
def _signing_key(private: bytes) -> Ed25519PrivateKey:
    """Return the library's key object, cached: making it from the private key takes as long as a signature."""
    return Ed25519PrivateKey.from_private_bytes(private)


def signed_fields(context: Context, purpose: str, signer: int, content: Sequence[bytes]) -> bytes:
    """Return the bytes that a signature covers (SIG-01).

    Raises
    ------
    ParameterError
        The purpose is no text in ASCII, the signer not in ``[0, 2**32)``, or the content no sequence of bytes.
    """
    validate.integer("signer", signer, 0, validate.MAX_COUNT)
    validate.ascii_text("purpose", purpose)
    for at, field in enumerate(validate.sequence("content", content, "bytes")):
        validate.octets(f"content[{at}]", field)
    return fields(
        LABEL,
        VERSION,
        context.protocol,
        context.parameters,
        context.session,
        context.round,
        purpose,
        context.message_type,
        signer,
        *content,
    )


def sign(private: bytes, data: bytes) -> bytes:
    """Return the Ed25519 signature of `data`, 64 bytes (SIG-01).

    Raises
    ------
    LengthMismatch
        The private key is not 32 bytes long (SIG-04).
    """
    check_key("private", private)
    return _signing_key(private).sign(validate.octets("data", data))


def verify(public: bytes, data: bytes, signature: bytes, blamed: Iterable[int] = ()) -> None:
    """Refuse a signature that is not valid for `data` under a verification key.

    Raises
    ------
    BadSignature
        The signature is not 64 bytes long, or not valid (SIG-02, SIG-03); the error blames the users of `blamed`.
    LengthMismatch
        The verification key is not 32 bytes long (SIG-04).
    """
    check_key("public", public)
    data, signature = validate.octets("data", data), validate.octets("signature", signature)
    if len(signature) != SIGNATURE_BYTES:
        raise BadSignature(f"a signature of {len(signature)} bytes, where {SIGNATURE_BYTES} are needed", blamed)
    try:
        if not _is_canonical(public):
            raise InvalidSignature
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except InvalidSignature:
        raise BadSignature(f"a signature is not valid under the key {public.hex()}", blamed) from None


def _is_canonical(public: bytes) -> bool:
    """Return whether a verification key is the canonical encoding of its point: y below the prime, no sign if x is 0.

    Source: RFC 8032, 5.1.3, which rejects all other encodings (SIG-03).
    """
    y, sign = int.from_bytes(public, "little") & 2**255 - 1, public[-1] >> 7
    return y < _PRIME and not (sign and y in (1, _PRIME - 1))


guard(__name__)
