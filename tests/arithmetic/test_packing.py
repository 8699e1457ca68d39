"""The packed form against Python's integers: a number of many bits, its lowest bits first."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.packing import bits_of, pack, packed_bytes, unpack
from secagg_spec.errors import LengthMismatch, NonCanonical, ParameterError
from tests.strategies import arrays, bulk, integers_of, moduli, vector

small = st.sampled_from((2, 3, 4, 5, 8, 9, 16, 17, 128, 255, 256, 257, 1000)) | moduli()


def packed(numbers: list[int], modulus: int) -> bytes:
    """The packed form of the text, from one integer of all bits."""
    width = (modulus - 1).bit_length()
    whole = int("0" + "".join(f"{number:0{width}b}" for number in reversed(numbers)), 2)
    return whole.to_bytes((width * len(numbers) + 7) // 8, "little")


@pytest.mark.requirement("HSA-15")
@given(small)
def test_an_element_takes_the_logarithm_rounded_up(modulus: int) -> None:
    assert 2 ** (bits_of(modulus) - 1) < modulus <= 2 ** bits_of(modulus)


@pytest.mark.requirement("HSA-15")
@given(small, st.integers(0, 12), st.data())
def test_the_packed_form_is_one_integer_of_all_bits(modulus: int, count: int, data: st.DataObject) -> None:
    numbers = data.draw(arrays(modulus, count))
    got = pack(numbers, modulus)
    assert got == packed(integers_of(numbers), modulus)
    assert len(got) == packed_bytes(count, modulus) == -(-count * bits_of(modulus) // 8)
    assert integers_of(unpack(got, count, modulus)) == integers_of(numbers)


@pytest.mark.requirement("HSA-15")
@given(moduli(), st.integers(0, 300), st.data())
def test_long_segments_survive(modulus: int, count: int, data: st.DataObject) -> None:
    numbers = data.draw(bulk(modulus, count))
    assert integers_of(unpack(pack(numbers, modulus), count, modulus)) == integers_of(numbers)


@pytest.mark.requirement("HSA-15", "HSA-16")
@pytest.mark.parametrize("count", [2**15 - 1, 2**15, 2**15 + 1])
@pytest.mark.parametrize("modulus", [2, 5, 2**17, 2**32 - 5])
def test_segments_that_are_packed_in_parts_are_packed_as_one(modulus: int, count: int) -> None:
    numbers = np.arange(count, dtype=np.uint64) * np.uint64(104_729) % np.uint64(modulus)
    got = pack(numbers, modulus)
    assert got == packed(integers_of(numbers), modulus)
    assert np.array_equal(unpack(got, count, modulus), numbers)
    if modulus & (modulus - 1):
        with pytest.raises(NonCanonical, match=rf"^data\[{count - 1}\] = {modulus}: must be in \[0, {modulus}\)$"):
            unpack(packed([*integers_of(numbers[:-1]), modulus], modulus), count, modulus)


@pytest.mark.requirement("ERR-02")
def test_a_million_elements_are_packed_in_little_memory() -> None:
    numbers = np.zeros(2**20, dtype=np.uint64)
    tracemalloc.start()
    try:
        unpack(pack(numbers, 2**32), numbers.size, 2**32)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


@pytest.mark.requirement("HSA-16")
@given(small, st.integers(0, 9), st.binary(max_size=40))
def test_bytes_are_taken_exactly_when_they_are_the_packed_form_of_something(
    modulus: int, count: int, data: bytes
) -> None:
    data = data[: packed_bytes(count, modulus)]
    whole, width = int.from_bytes(data, "little"), bits_of(modulus)
    numbers = [(whole >> (width * at)) & (2**width - 1) for at in range(count)]
    if len(data) != packed_bytes(count, modulus):
        with pytest.raises(LengthMismatch):
            unpack(data, count, modulus)
    elif whole >> (width * count) or any(number >= modulus for number in numbers):
        with pytest.raises(NonCanonical):
            unpack(data, count, modulus)
    else:
        assert integers_of(unpack(data, count, modulus)) == numbers


@pytest.mark.requirement("HSA-16")
@given(small, st.integers(1, 9), st.data())
def test_each_left_over_bit_is_seen(modulus: int, count: int, data: st.DataObject) -> None:
    right = pack(data.draw(arrays(modulus, count)), modulus)
    for bit in range(bits_of(modulus) * count, 8 * len(right)):
        wrong = (int.from_bytes(right, "little") | 1 << bit).to_bytes(len(right), "little")
        with pytest.raises(NonCanonical, match="left over"):
            unpack(wrong, count, modulus)


@pytest.mark.requirement("HSA-16")
@given(small, st.integers(1, 9), st.data())
def test_each_element_that_is_not_below_the_modulus_is_seen(modulus: int, count: int, data: st.DataObject) -> None:
    numbers = integers_of(data.draw(arrays(modulus, count)))
    at, top = data.draw(st.integers(0, count - 1)), 2 ** bits_of(modulus)
    if top > modulus:
        numbers[at] = data.draw(st.sampled_from((modulus, top - 1)))
        with pytest.raises(NonCanonical):
            unpack(packed(numbers, modulus << 1 if top < modulus else modulus), count, modulus)


@pytest.mark.requirement("HSA-16")
@given(small, st.integers(0, 9), st.integers(-2, 2))
def test_other_lengths_are_refused(modulus: int, count: int, off: int) -> None:
    size = packed_bytes(count, modulus) + off
    if off and size >= 0:
        with pytest.raises(LengthMismatch, match="data"):
            unpack(bytes(size), count, modulus)


@pytest.mark.requirement("HSA-15", "ERR-02")
def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(NonCanonical, match=r"numbers\[1\]"):
        pack(vector([0, 5]), 5)
    bad: list[tuple[Any, Any]] = [
        ([0], 5),
        (np.array([0]), 5),
        (vector([0]), 1),
        (vector([0]), 5.0),
        (vector([0]), True),
    ]
    for numbers, modulus in [*bad, (vector([0]), 2**32 + 1), (vector([0]), 10**5000)]:
        with pytest.raises(ParameterError):
            pack(numbers, modulus)
    for data, count, modulus in ((b"", -1, 2), (b"", 1.0, 2), (b"", True, 2), ("", 0, 2), (bytearray(1), 1, 2)):
        with pytest.raises(ParameterError):
            unpack(data, count, modulus)  # type: ignore[arg-type]
