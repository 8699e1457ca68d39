"""Reading bytes from front to back, against slices of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import Malformed, ParameterError


@given(st.binary(max_size=12), st.lists(st.integers(0, 6), max_size=6))
def test_what_is_taken_follows_what_was_taken_until_too_much_is_asked_for(data: bytes, counts: list[int]) -> None:
    reader, at = Reader("a box", data), 0
    for count in counts:
        if at + count > len(data):
            with pytest.raises(Malformed, match=f"^a box of {len(data)} bytes ends early: {count} .* from {at} on$"):
                reader.take(count)
            assert reader.at == at
        else:
            assert reader.take(count) == data[at : at + count]
            at += count
    assert reader.at == at


@pytest.mark.parametrize(
    ("data", "at", "named"), [("ab", 0, "data"), (None, 0, "data"), (b"ab", -1, "at"), (b"ab", 3, "at")]
)
def test_a_reader_is_at_a_place_in_bytes(data: Any, at: int, named: str) -> None:
    assert Reader("a box", b"ab", 2).at == 2
    with pytest.raises(ParameterError, match=f"^{named} = "):
        Reader("a box", data, at)


def test_a_negative_number_of_bytes_is_refused() -> None:
    reader = Reader("a box", b"ab", 1)
    for read in (reader.take, reader.number):
        with pytest.raises(ParameterError, match=r"^count = -1: must be an integer >= 0$"):
            read(-1)
    assert reader.at == 1


@given(st.integers(0, 2**32 - 1), st.binary(max_size=4))
def test_a_number_is_read_from_its_lowest_byte_on(number: int, rest: bytes) -> None:
    reader = Reader("a box", number.to_bytes(4, "little") + rest)
    assert reader.number(4) == number
    if rest:
        with pytest.raises(Malformed, match=f"^a box goes on after its end: {len(rest)} more bytes$"):
            reader.end()
        assert reader.take(len(rest)) == rest
    reader.end()
