"""Elements from bytes, against a reading of the words one by one."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.sampling import elements_from_bytes, integers_below
from secagg_spec.errors import LengthMismatch, ParameterError
from tests.strategies import EDGE_MODULI, OTHER_MODULI, integers_of, moduli

words = st.sampled_from((0, 1, 2**31 - 1, 2**31, 2**31 + 10, 2**31 + 11, 2**32 - 6, 2**32 - 5, 2**32 - 1))
streams = st.lists(words | st.integers(0, 2**32 - 1), max_size=12)


def read(values: list[int], modulus: int) -> list[int]:
    """The elements that a list of words yields."""
    limit = 2**32 // modulus * modulus
    return [word % modulus for word in values if word < limit]


@pytest.mark.requirement("RND-02")
@given(moduli(), streams, st.binary(max_size=3), st.data())
def test_words_are_read_skipped_and_reduced(modulus: int, values: list[int], tail: bytes, data: st.DataObject) -> None:
    expected = read(values, modulus)
    n = data.draw(st.integers(0, len(expected)))
    got = elements_from_bytes(Ring(modulus), struct.pack(f"<{len(values)}I", *values) + tail, n)
    assert integers_of(got) == expected[:n]


@pytest.mark.requirement("RND-02")
@pytest.mark.parametrize("modulus", EDGE_MODULI + OTHER_MODULI)
def test_the_first_skipped_word_is_the_largest_multiple(modulus: int) -> None:
    limit = 2**32 // modulus * modulus
    assert integers_of(elements_from_bytes(Ring(modulus), struct.pack("<I", limit - 1), 1)) == [modulus - 1]
    if limit < 2**32:
        with pytest.raises(LengthMismatch):
            elements_from_bytes(Ring(modulus), struct.pack("<I", limit), 1)


@pytest.mark.requirement("RND-02")
def test_every_element_comes_from_equally_many_words() -> None:
    modulus = 2**31 + 11
    limit = 2**32 // modulus * modulus
    near = [*range(1000), *range(modulus - 1000, modulus + 1000), *range(2**32 - 1000, 2**32)]
    got = elements_from_bytes(Ring(modulus), struct.pack(f"<{len(near)}I", *near), sum(w < limit for w in near))
    assert set(Counter(integers_of(got)).values()) == {1}


@pytest.mark.requirement("RND-03", "ERR-02")
@given(moduli(), streams, st.binary(max_size=3), st.integers(1, 4))
def test_bytes_that_run_out_are_refused(modulus: int, values: list[int], tail: bytes, more: int) -> None:
    data = struct.pack(f"<{len(values)}I", *values) + tail
    with pytest.raises(LengthMismatch, match="data"):
        elements_from_bytes(Ring(modulus), data, len(read(values, modulus)) + more)


@pytest.mark.requirement("RND-03")
@pytest.mark.parametrize("n", [-1, 1.0, True, None])
def test_counts_that_are_no_counts_are_refused(n: int) -> None:
    with pytest.raises(ParameterError, match="n = "):
        elements_from_bytes(Ring(7), bytes(16), n)


@given(st.lists(st.tuples(st.integers(1, 2**32), st.integers(0, 2**64 - 1)), min_size=1))
def test_integers_below_bounds_are_those_of_usable_words(cases: list[tuple[int, int]]) -> None:
    bounds = np.array([bound for bound, _ in cases], dtype=np.uint64)
    data = b"".join(word.to_bytes(8, "little") for _, word in cases)
    drawn, usable = integers_below(bounds, data)
    assert drawn.tolist() == [word // 2 % bound for bound, word in cases]
    assert usable.tolist() == [word // 2 < 2**63 // bound * bound for bound, word in cases]
