"""Masks from seeds: the bytes that keys are derived from, built by hand, and what may not collide."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.masks import commitment, pairwise_key, self_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import LengthMismatch, ParameterError, UnknownUser

CONTEXT = Context("secagg", bytes(range(32)), b"s" * 16, 7, 515)
octets = st.binary(min_size=32, max_size=32)


def listed(*values: bytes) -> bytes:
    """Fields behind their lengths."""
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def word(value: int) -> bytes:
    """An integer as u32."""
    return value.to_bytes(4, "little")


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, 32 bytes, by the standard library."""
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()


@pytest.mark.requirement("MSK-01")
@given(octets, octets, st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 1))
def test_the_key_of_a_pairwise_mask_is_that_of_the_text(a: bytes, b: bytes, i: int, j: int, segment: int) -> None:
    if i == j or a == b:
        return
    one, two = public_key(a), public_key(b)
    secret = agree(a, two)
    low, high = ((i, one), (j, two)) if i < j else ((j, two), (i, one))
    info = listed(
        b"secagg-spec", word(1), b"secagg", bytes(range(32)), word(7), b"pairwise-mask", word(segment),
        word(low[0]), word(high[0]), low[1], high[1],
    )  # fmt: skip
    key = pairwise_key(CONTEXT, secret, {i: one, j: two}, segment)
    assert key == hkdf(secret, b"s" * 16, info)
    assert key == pairwise_key(CONTEXT, agree(b, one), {j: two, i: one}, segment)


@pytest.mark.requirement("MSK-02")
@given(octets, st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 1))
def test_the_key_of_a_self_mask_is_that_of_the_text(seed: bytes, user: int, segment: int) -> None:
    bound = (b"secagg-spec", word(1), b"secagg", bytes(range(32)), word(7), b"self-mask", word(segment), word(user))
    assert self_key(CONTEXT, seed, user, segment) == hkdf(seed, b"s" * 16, listed(*bound))


@pytest.mark.requirement("MSK-03")
@given(octets, st.integers(0, 2**32 - 2))
def test_the_commitment_is_that_of_the_text(seed: bytes, user: int) -> None:
    bound = (b"secagg-spec", word(1), b"secagg", bytes(range(32)), b"s" * 16, word(7), b"self-seed", word(user), seed)
    assert commitment(CONTEXT, seed, user) == hashlib.sha256(listed(*bound)).digest()


@pytest.mark.requirement("MSK-01", "MSK-02")
def test_whatever_a_mask_is_for_its_key_is_its_own() -> None:
    keys = {0: b"k" * 32, 1: b"l" * 32, 2: b"m" * 32}
    changes: tuple[dict[str, Any], ...] = (
        {}, {"session": b"t" * 16}, {"round": 8}, {"protocol": "heterosag"}, {"parameters": bytes(32)},
    )  # fmt: skip
    found = [
        key
        for change in changes
        for segment in (0, 1)
        for context in (replace(CONTEXT, **change),)
        for key in (
            *(self_key(context, bytes(32), user, segment) for user in (0, 1)),
            *(pairwise_key(context, bytes(32), {i: keys[i], j: keys[j]}, segment) for i, j in combinations(keys, 2)),
            commitment(context, bytes(32), segment),
        )
    ]
    assert len(found) == len(set(found)) == 5 * 2 * 6


@pytest.mark.parametrize("size", [0, 31, 33])
def test_seeds_of_another_length_are_refused(size: int) -> None:
    for make in (self_key, commitment):
        with pytest.raises(LengthMismatch):
            make(CONTEXT, bytes(size), 0)


@pytest.mark.requirement("MSK-01")
@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({0: b"a", 1: b"b"}, LengthMismatch),
        ({0: bytes(32), 1: bytes(33)}, LengthMismatch),
        ({0: bytes(32)}, LengthMismatch),
        ({0: 5, 1: 7}, ParameterError),
        ({"a": bytes(32), "b": bytes(32)}, ParameterError),
        ({0: bytes(32), "b": bytes(32)}, ParameterError),
        ({-1: bytes(32), 0: bytes(32)}, UnknownUser),
        ([bytes(32), bytes(32)], ParameterError),
    ],
)
def test_what_is_no_pair_of_keys_is_refused(keys: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="keys"):
        pairwise_key(CONTEXT, bytes(32), keys)


@pytest.mark.requirement("ERR-02", "MSK-02", "MSK-03")
@pytest.mark.parametrize("user", ["a", b"a\0\0\0", None, 1.0, -1, 2**32 - 1])
def test_a_mask_has_a_user_by_its_number(user: Any) -> None:
    for derived in (self_key, commitment):
        with pytest.raises(ParameterError, match=r"^user = "):
            derived(CONTEXT, bytes(32), user)


@pytest.mark.requirement("ERR-02", "MSK-01", "MSK-02")
@pytest.mark.parametrize("segment", ["a", b"a\0\0\0", None, -1, 2**32])
def test_a_mask_has_a_segment_by_its_number(segment: Any) -> None:
    with pytest.raises(ParameterError, match=r"^segment = "):
        self_key(CONTEXT, bytes(32), 1, segment)
    with pytest.raises(ParameterError, match=r"^segment = "):
        pairwise_key(CONTEXT, bytes(32), {0: bytes(32), 1: bytes(32)}, segment)
