"""Planted bugs of signatures and of rosters of verification keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import keys, signatures
from secagg_spec.errors import ParameterError, ProtocolError

Function = Callable[..., Any]
_VERIFY = "secagg_spec.crypto.signatures:verify"
_ORDER = 2**252 + 27742317777372353535851937790883648493
_PRIVATE = bytes(range(32))


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails."""
    try:
        return call()
    except (ParameterError, ProtocolError, ValueError) as error:
        return type(error).__name__


def _verified(signature: bytes) -> object:
    return _outcome(lambda: signatures.verify(signatures.verification_key(_PRIVATE), b"data", signature))


def _moved() -> bytes:
    """Return a right signature with the order of the base point added to S."""
    right = signatures.sign(_PRIVATE, b"data")
    return right[:32] + (int.from_bytes(right[32:], "little") + _ORDER).to_bytes(32, "little")


@mutant(
    "any-signature",
    "SIG-02",
    "agreement: no signature is looked at, so that the server alone makes a quorum",
    _VERIFY,
    lambda: _verified(bytes(64)),
    kind="privacy",
    source="clause left out",
)
def _any(right: Function) -> Function:
    return lambda public, data, signature, blamed=(): None


@mutant(
    "S-is-reduced",
    "SIG-03",
    "agreement: S is reduced before it is compared, so that there are two signatures where the text has one",
    _VERIFY,
    lambda: _verified(_moved()),
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(public: bytes, data: bytes, signature: bytes, blamed: Any = ()) -> None:
        S = int.from_bytes(signature[32:], "little")
        if len(signature) == signatures.SIGNATURE_BYTES and _ORDER <= S < 2 * _ORDER:
            signature = signature[:32] + (S - _ORDER).to_bytes(32, "little")
        right(public, data, signature, blamed)

    return wrong


@mutant(
    "key-length-unchecked",
    "SIG-04",
    "misuse: a key of any length passes, and fails somewhere else",
    "secagg_spec.crypto.keys:check_key",
    lambda: _outcome(lambda: signatures.verification_key(bytes(31))),
    kind="acceptance",
    source="clause left out",
)
def _length(right: Function) -> Function:
    return lambda name, key: key


@mutant(
    "one-key-for-two-users",
    "SIG-05",
    "agreement: one user signs for two, so that fewer users than W make a quorum",
    "secagg_spec.crypto.keys:_refuse_equal",
    lambda: _outcome(lambda: keys.Roster((bytes(32), bytes(32)))),
    kind="privacy",
    source="clause left out",
)
def _equal(right: Function) -> Function:
    return lambda given: None
