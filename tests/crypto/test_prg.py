"""The generator: its definition recomputed block by block, its rejections, and its prefixes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto import prg
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import LengthMismatch, ParameterError

KEYS = st.binary(min_size=32, max_size=32)
MODULI = st.sampled_from([2, 3, 5, 7, 256, 65537, 2**31 - 1, 2**31 + 11, 2**32 - 5, 2**32])
COUNTING_KEY = bytes(range(32))


def by_blocks(key: bytes, modulus: int, n: int) -> list[int]:
    """Return the stream by the definition: each counter block encrypted alone, each word read by itself."""
    block_cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    found: list[int] = []
    counter = 0
    while len(found) < n:
        block = block_cipher.update(counter.to_bytes(16, "big"))
        counter += 1
        words = [int.from_bytes(block[at : at + 4], "little") for at in range(0, 16, 4)]
        found += [word % modulus for word in words if word < 2**32 // modulus * modulus]
    return found[:n]


@pytest.mark.requirement("PRG-01")
@given(KEYS, MODULI, st.integers(0, 50))
def test_the_stream_is_the_one_of_the_definition(key: bytes, modulus: int, n: int) -> None:
    assert expand(key, Ring(modulus), n).tolist() == by_blocks(key, modulus, n)


@pytest.mark.requirement("PRG-01")
def test_long_streams_cross_every_refill() -> None:
    for modulus in (2**31 + 11, 3):
        assert expand(COUNTING_KEY, Ring(modulus), 5000).tolist() == by_blocks(COUNTING_KEY, modulus, 5000)


@pytest.mark.parametrize("modulus", [2, 3, 2**31 + 11, 2**32 - 5, 2**32])
@pytest.mark.parametrize("n", [0, 1, 100, 200_000])
def test_a_stream_is_made_of_about_as_many_words_as_it_needs(
    modulus: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word is used with probability `accepted` / 2**32; two pieces, or pieces of 2**16 words, are enough."""
    made: list[int] = []

    class Counting:
        def __init__(self, *given: Any) -> None:
            self.stream = Cipher(*given).encryptor()

        def encryptor(self) -> Counting:
            return self

        def update_into(self, data: bytes, buffer: bytearray) -> int:
            made.append(len(data) // 4)
            return self.stream.update_into(data, buffer)

    monkeypatch.setattr(prg, "Cipher", Counting)
    assert expand(COUNTING_KEY, Ring(modulus), n).size == n
    accepted = 2**32 // modulus * modulus
    expected = n * 2**32 // accepted
    assert max(made, default=0) <= min(2**16, expected + 16)
    assert n <= sum(made) <= expected + max(made, default=0) + 6 * math.isqrt(n)


@pytest.mark.requirement("PRG-01")
def test_the_counting_key_meets_a_rejection_within_the_first_words() -> None:
    words = expand(COUNTING_KEY, Ring(2**32), 4)
    assert int((words < np.uint64(2**31 + 11)).argmin()) < 3
    assert expand(COUNTING_KEY, Ring(2**31 + 11), 1)[0] != words[0] % np.uint64(2**31 + 11)


@pytest.mark.requirement("PRG-01")
def test_a_rejection_at_the_default_prime() -> None:
    key, position = (0x65D).to_bytes(32, "little"), 122497
    words = expand(key, Ring(2**32), position + 2)
    assert int(words[position]) >= 2**32 - 5, "the key was found by search for this word"
    sampled = expand(key, Ring(2**32 - 5), position + 1)
    assert sampled[position] == words[position + 1]


@pytest.mark.requirement("PRG-03")
@given(KEYS, MODULI, st.integers(0, 40), st.integers(0, 40))
def test_a_shorter_output_begins_a_longer_one(key: bytes, modulus: int, short: int, more: int) -> None:
    longer = expand(key, Ring(modulus), short + more)
    assert np.array_equal(expand(key, Ring(modulus), short), longer[:short])


@pytest.mark.requirement("PRG-02")
@pytest.mark.parametrize("key", [b"", bytes(16), bytes(31), bytes(33)])
def test_keys_of_other_lengths_are_refused(key: bytes) -> None:
    with pytest.raises(LengthMismatch, match="32 bytes"):
        expand(key, Ring(7), 1)


@pytest.mark.requirement("PRG-02")
def test_a_key_that_is_no_bytes_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^key = 'str': must be bytes$"):
        expand("0" * 32, Ring(7), 1)  # type: ignore[arg-type]


@pytest.mark.requirement("PRG-04")
@pytest.mark.parametrize("modulus", [2, 3, 4, 7, 3 * 2**30])
def test_each_residue_is_met_about_equally_often(modulus: int) -> None:
    n, parts = 60_000, min(modulus, 7)
    places = expand(COUNTING_KEY, Ring(modulus), n) * np.uint64(parts) // np.uint64(modulus)
    counts = np.bincount(places.astype(np.int64), minlength=parts)
    assert np.abs(counts - n / parts).max() < 5 * (n / parts) ** 0.5


@pytest.mark.requirement("PRG-05")
@given(KEYS, st.integers(0, 255), st.permutations(range(8)))
def test_keys_that_are_alike_give_other_streams(key: bytes, bit: int, order: list[int]) -> None:
    words = [key[at : at + 4] for at in range(0, 32, 4)]
    flipped = (int.from_bytes(key, "little") ^ 1 << bit).to_bytes(32, "little")
    for other in {flipped, b"".join(words[at] for at in order)} - {key}:
        assert not np.array_equal(expand(key, Ring(2**32), 4), expand(other, Ring(2**32), 4))


@pytest.mark.requirement("PRG-06")
@given(KEYS, KEYS, MODULI)
def test_a_key_gives_its_stream_again(key: bytes, other: bytes, modulus: int) -> None:
    before = expand(key, Ring(modulus), 9)
    expand(other, Ring(modulus), 5)
    assert np.array_equal(expand(key, Ring(modulus), 9), before)
