"""Signatures that are not valid: other bytes, and other contexts (spec/conventions.md, section 10)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.sealing import Context


def spoiled(draw: Any, right: bytes) -> bytes:
    """Draw 64 other bytes: one bit of a signature is flipped, or all are zero."""
    at, mask = draw(st.integers(0, 63)), 1 << draw(st.integers(0, 7))
    flipped = right[:at] + bytes([right[at] ^ mask]) + right[at + 1 :]
    return flipped if draw(st.booleans()) else bytes(64)


def cut(draw: Any, right: bytes) -> bytes:
    """Draw a signature that is not 64 bytes long."""
    return bytes(draw(among((right[:-1], right + b"\0", b""))))


def elsewhere(right: Context, protocol: str, numbers: Mapping[str, int]) -> dict[str, Context]:
    """Return other contexts of a signature, by what is wrong with them.

    Parameters
    ----------
    right : Context
        The context of the right signature.
    protocol : str
        The name of the semi-honest profile.
    numbers : mapping
        Other parameters than those of the session.
    """
    changes: dict[str, dict[str, Any]] = {
        "session": {"session": bytes([right.session[0] ^ 1]) + right.session[1:]},
        "round": {"round": right.round ^ 1},
        "protocol": {"protocol": protocol},
        "parameters": {"parameters": hash_parameters(numbers)},
        "type": {"message_type": right.message_type ^ 1},
    }
    return {how: replace(right, **change) for how, change in changes.items()}
