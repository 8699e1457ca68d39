"""Planted bugs of signatures and of rosters of verification keys, which tests find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import keys, signatures
from secagg_spec.errors import ParameterError, ProtocolError

Function = Callable[..., Any]
_VERIFY = "secagg_spec.crypto.signatures:verify"
_TESTS = "tests/crypto/test_signatures.py::"
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
    _TESTS + "test_an_altered_signature_is_refused",
)
def _any(right: Function) -> Function:
    return lambda public, data, signature, blamed=(): None


@mutant(
    "S-is-reduced",
    "SIG-03",
    "agreement: S is reduced before it is compared, so that there are two signatures where the text has one",
    _VERIFY,
    lambda: _verified(_moved()),
    _TESTS + "test_S_at_or_above_the_order_is_refused",
)
def _reduced(right: Function) -> Function:
    def wrong(public: bytes, data: bytes, signature: bytes, blamed: Any = ()) -> None:
        S = int.from_bytes(signature[32:], "little")
        low = S - _ORDER if _ORDER <= S < 2 * _ORDER else S
        right(public, data, signature[:32] + low.to_bytes(len(signature) - 32, "little"), blamed)

    return wrong


@mutant(
    "key-length-unchecked",
    "SIG-04",
    "misuse: a key of any length passes, and fails somewhere else",
    "secagg_spec.crypto.keys:check_key",
    lambda: _outcome(lambda: signatures.verification_key(bytes(31))),
    _TESTS + "test_keys_of_another_length_are_refused",
)
def _length(right: Function) -> Function:
    return lambda name, key: key


@mutant(
    "one-key-for-two-users",
    "SIG-05",
    "agreement: one user signs for two, so that fewer users than W make a quorum",
    "secagg_spec.crypto.keys:_refuse_equal",
    lambda: _outcome(lambda: keys.Roster((bytes(32), bytes(32)))),
    _TESTS + "test_two_users_with_one_verification_key_are_refused",
)
def _equal(right: Function) -> Function:
    return lambda given: None
