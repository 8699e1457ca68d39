"""The bytes of messages against `struct`."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, Malformed, NonCanonical, OutOfRange, ParameterError
from secagg_spec.protocols import codec
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare, SurvivingSet
from secagg_spec.protocols.steps import SERVER
from tests.strategies import snapshot, vector

KINDS: tuple[type[Message], ...] = (MaskShare, MaskedUpdate, SurvivingSet, AggregatedShare)
u32 = st.sampled_from((0, 1, 2**32 - 1)) | st.integers(0, 2**32 - 1)
word_lists = st.lists(u32, max_size=5)
headers = st.tuples(st.binary(min_size=16, max_size=16), u32, u32, u32)


def words(values: list[int]) -> bytes:
    """A count and its words."""
    return struct.pack(f"<I{len(values)}I", len(values), *values)


BODIES: dict[type[Message], tuple[st.SearchStrategy[Any], Callable[[Any], bytes], Callable[[Any], Any]]] = {
    MaskShare: (st.binary(max_size=20), lambda v: struct.pack("<I", len(v)) + v, lambda v: v),
    MaskedUpdate: (word_lists, words, vector),
    SurvivingSet: (word_lists, words, tuple),
    AggregatedShare: (word_lists, words, vector),
}


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, bytes]:
    """A message, and its bytes by `struct`."""
    kind: Any = draw(st.sampled_from(KINDS))
    values, write, field = BODIES[kind]
    header, value = draw(headers), draw(values)
    return kind(*header, field(value)), struct.pack("<H16sIII", kind.TYPE, *header) + write(value)


@pytest.mark.requirement("MSG-01")
@given(messages())
def test_bytes_are_the_fields_in_declared_order(case: tuple[Message, bytes]) -> None:
    message, expected = case
    assert codec.encode(message) == expected


@pytest.mark.requirement("MSG-01", "MSG-02")
@given(messages())
def test_a_message_survives_the_round_trip(case: tuple[Message, bytes]) -> None:
    message, data = case
    assert snapshot(codec.decode(type(message), data)) == snapshot(message)


@pytest.mark.requirement("MSG-01")
def test_the_header_has_30_bytes_and_the_server_its_number() -> None:
    data = codec.encode(MaskShare(bytes(range(16)), 1, 2, SERVER, b""))
    assert data == bytes.fromhex("0101" + bytes(range(16)).hex() + "01000000" + "02000000" + "ffffffff" + "00000000")
    assert len(data) == 30 + 4


@pytest.mark.requirement("MSG-02")
@given(messages(), st.binary(min_size=1, max_size=5))
def test_bytes_that_end_early_or_go_on_are_refused(case: tuple[Message, bytes], more: bytes) -> None:
    message, data = case
    for end in range(len(data)):
        with pytest.raises(Malformed):
            codec.decode(type(message), data[:end])
    with pytest.raises(Malformed):
        codec.decode(type(message), data + more)


@pytest.mark.requirement("MSG-02")
@given(messages(), st.integers(0, 2**16 - 1))
def test_another_type_number_is_refused(case: tuple[Message, bytes], number: int) -> None:
    message, data = case
    other = struct.pack("<H", number) + data[2:]
    if number == message.TYPE:
        codec.decode(type(message), other)
    else:
        with pytest.raises(Malformed):
            codec.decode(type(message), other)


@pytest.mark.requirement("MSG-02")
@given(st.sampled_from(KINDS), st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_message_of_the_same_bytes_or_refused(kind: type[Message], data: bytes, typed: bool) -> None:
    data = struct.pack("<H", kind.TYPE) + data if typed else data
    try:
        message = codec.decode(kind, data)
    except Malformed:
        return
    assert codec.encode(message) == data


@pytest.mark.requirement("MSG-02")
@given(messages(), st.data())
def test_a_changed_byte_gives_another_message_or_is_refused(case: tuple[Message, bytes], data: st.DataObject) -> None:
    message, encoded = case
    at = data.draw(st.integers(0, len(encoded) - 1))
    changed = encoded[:at] + bytes([encoded[at] ^ data.draw(st.integers(1, 255))]) + encoded[at + 1 :]
    try:
        other = codec.decode(type(message), changed)
    except Malformed:
        return
    assert snapshot(other) != snapshot(message)


@pytest.mark.requirement("MSG-01", "MSG-02")
@given(word_lists, st.binary(min_size=1, max_size=5))
def test_a_vector_has_the_bytes_of_a_field(values: list[int], more: bytes) -> None:
    data = codec.vector_bytes(vector(values))
    assert data == words(values)
    assert codec.vector_from_bytes(data).tolist() == values
    for wrong in (data + more, data[:-1], b""):
        with pytest.raises(Malformed):
            codec.vector_from_bytes(wrong)


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize("bad", [-1, 2**32, 2**70])
def test_numbers_that_do_not_fit_their_field_are_refused(bad: int) -> None:
    for header in ((bad, 0, 0), (0, bad, 0), (0, 0, bad)):
        with pytest.raises(OutOfRange):
            codec.encode(MaskShare(bytes(16), *header, b""))
    with pytest.raises((NonCanonical, OutOfRange)):
        codec.encode(SurvivingSet(bytes(16), 0, 0, 0, (0, bad)))


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize("bad", [None, 1.0, "1", b"1", True])
def test_a_header_number_of_another_kind_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="round"):
        codec.encode(MaskShare(bytes(16), bad, 0, 0, b""))


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize("session", [b"", bytes(15), bytes(17)])
def test_a_session_of_another_length_is_refused(session: bytes) -> None:
    with pytest.raises(LengthMismatch, match="session"):
        codec.encode(MaskShare(session, 0, 0, 0, b""))


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize("bad", [None, 3, "01", (1.5,), (1, None), ("1",), (True,), ((1, 2), (3, 4))], ids=repr)
def test_users_of_another_kind_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="users"):
        codec.encode(SurvivingSet(bytes(16), 0, 0, 0, bad))


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize(
    "bad", [None, 3, "01", [1.5], np.array([1.5]), np.ones((2, 2), dtype=np.uint64), np.array([-1])], ids=repr
)
def test_vectors_of_another_kind_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="masked"):
        codec.encode(MaskedUpdate(bytes(16), 0, 0, 0, bad))


@pytest.mark.requirement("MSG-01", "ERR-02")
@pytest.mark.parametrize("bad", [None, 3, "01", bytearray(2)], ids=repr)
def test_payloads_that_are_not_bytes_are_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="payload"):
        codec.encode(MaskShare(bytes(16), 0, 0, 0, bad))


@pytest.mark.requirement("ERR-01")
def test_decoded_vectors_are_read_only() -> None:
    message = codec.decode(MaskedUpdate, codec.encode(MaskedUpdate(bytes(16), 0, 0, 0, vector([1]))))
    with pytest.raises(ValueError, match="read-only"):
        message.masked[0] = 2


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("kind", [codec.Message, int, type("Other", (), {"TYPE": 25185})])
def test_a_class_without_a_type_number_is_not_decoded(kind: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^kind = {kind.__name__!r}: must be a class of messages"):
        codec.decode(kind, b"ab" * 20)
