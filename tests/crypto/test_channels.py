"""Channels between users."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.channels import Channel, PlainChannel


@pytest.mark.requirement("LSA-05", "MSG-01")
@given(st.binary(max_size=40), st.integers(0, 9), st.integers(0, 9))
def test_the_plain_channel_carries_the_bytes_as_they_are(plaintext: bytes, sender: int, receiver: int) -> None:
    channel: Channel = PlainChannel()
    payload = channel.close(sender, receiver, plaintext)
    assert payload == plaintext
    assert channel.open(sender, receiver, payload) == plaintext
