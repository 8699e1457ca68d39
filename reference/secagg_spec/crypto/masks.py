"""The key of each mask, derived from a shared secret or a self seed, and the commitment to a self seed.

Source: spec/conventions.md, section 12 (MSK-01 to MSK-03).
"""

from __future__ import annotations

from functools import lru_cache

from cryptography.hazmat.primitives import hashes

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.keys import LABEL, VERSION, derive, fields
from secagg_spec.crypto.prg import check_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import LengthMismatch


def pairwise_key(context: Context, secret: bytes, keys: dict[int, bytes], segment: int = 0) -> bytes:
    """Return the key of the pairwise mask of two users, 32 bytes (MSK-01).

    Parameters
    ----------
    context : Context
        Protocol, parameters, session and round; the message type is not used.
    secret : bytes
        The shared secret of the two users, 32 bytes.
    keys : dict from user to bytes
        The masking keys of exactly these two, 32 bytes each.
    segment : int
        The number of the segment that the mask is for.

    Raises
    ------
    LengthMismatch
        There are not exactly two keys, or a key is not 32 bytes long.
    ParameterError
        The keys are no mapping from users to bytes.
    UnknownUser
        A user is outside ``[0, 2**32 - 2]``.
    """
    if len(validate.mapping("keys", keys)) != 2:
        raise LengthMismatch("len(keys)", len(keys), "the keys of two users")
    low, high = sorted(validate.users("keys", tuple(keys), validate.MAX_COUNT))
    for user in (low, high):
        check_key(f"keys[{user}]", keys[user])
    _check_segment(segment)
    info = _bound(context, "pairwise-mask") + fields(segment, low, high, keys[low], keys[high])
    return derive(secret, context.session, info)


def self_key(context: Context, seed: bytes, user: int, segment: int = 0) -> bytes:
    """Return the key of a user's own mask, 32 bytes, from its self seed (MSK-02).

    Raises
    ------
    LengthMismatch
        The seed is not 32 bytes long.
    ParameterError
        The user is not in ``[0, 2**32 - 2]``, or the segment not in ``[0, 2**32)``.
    """
    check_key("seed", seed)
    _check_user(user)
    _check_segment(segment)
    return derive(seed, context.session, _bound(context, "self-mask") + fields(segment, user))


def commitment(context: Context, seed: bytes, user: int) -> bytes:
    """Return the commitment to a self seed of 32 bytes, 32 bytes (MSK-03).

    Raises
    ------
    LengthMismatch
        The seed is not 32 bytes long.
    ParameterError
        The user is not in ``[0, 2**32 - 2]``.
    """
    check_key("seed", seed)
    _check_user(user)
    digest = hashes.Hash(hashes.SHA256())
    bound = (LABEL, VERSION, context.protocol, context.parameters, context.session, context.round)
    digest.update(fields(*bound, "self-seed", user, seed))
    return digest.finalize()


def _check_user(user: int) -> None:
    validate.integer("user", user, 0, validate.MAX_COUNT - 1)


def _check_segment(segment: int) -> None:
    validate.integer("segment", segment, 0, validate.MAX_COUNT)


@lru_cache(maxsize=16)
def _bound(context: Context, purpose: str) -> bytes:
    """Return the fields with which the bindings of all mask keys of a round and a purpose begin."""
    return fields(LABEL, VERSION, context.protocol, context.parameters, context.round, purpose)


guard(__name__)
