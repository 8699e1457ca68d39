"""LightSecAgg over the sealed channel: the sum, what the server sees, the bytes, and everything that must not open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.sealing import OVERHEAD, SealedLinks, sealed_links
from secagg_spec.errors import DecryptionFailed, Replay
from secagg_spec.protocols.codec import vector_bytes
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import PRESETS, MaskShare, Parameters
from secagg_spec.protocols.steps import SERVER, Role, RoundResult, run_synchronous, sizes
from tests.protocols.test_lightsecagg import cost_table, evaluated

TINY = PRESETS["tiny"]
SESSION = b"a session of 16b"
PRIVATE = {user: bytes([user + 1]) * 32 for user in range(10)}


def links(p: Parameters, session: bytes = SESSION, round: int = 0) -> SealedLinks:
    """Return the sealed channels of everybody."""
    keys = {user: PRIVATE[user] for user in range(p.N)}
    return sealed_links(lightsecagg.sealing_context(p, session, round), keys)


def sources(p: Parameters) -> dict[int, SeededSource]:
    """Return a source of randomness for each user."""
    return {user: SeededSource(b"sealed", str(user)) for user in range(p.N)}


def sealed_round(p: Parameters, channel: SealedLinks, round: int = 0) -> RoundResult:
    """Run a round in which user 1 drops before its upload."""
    drawn = lightsecagg.draw_randomness(p, sources(p))
    updates = draw_elements(SeededSource(b"sealed", "updates"), p.field, (p.N, p.d))
    result = lightsecagg.run_round(
        p, updates, randomness=drawn, dropouts={"upload": [1]}, session=SESSION, round=round, channel=channel
    )
    assert np.array_equal(result.aggregate, p.field.sum(updates[list(result.contributors)]))
    return result


@pytest.mark.requirement("LSA-18", "SEA-01")
@pytest.mark.parametrize("p", [TINY, PRESETS["default"]], ids=["tiny", "default"])
def test_the_sum_is_right_and_the_bytes_are_those_of_the_text(p: Parameters) -> None:
    result, table = sealed_round(p, links(p)), cost_table()
    names = {"N": p.N, "d": p.d, "L": p.share_length, "H": 30, "S": len(result.contributors), "C": OVERHEAD}
    for event in result.transcript:
        messages, size = table.get((event.step.role.value, event.step.phase), ("0", "0"))
        assert len(event.sent) == evaluated(messages, names)
        assert sizes(event.sent) == evaluated(size, names)


@pytest.mark.requirement("LSA-18", "LSA-05")
def test_no_share_stands_in_what_the_server_relays() -> None:
    p = PRESETS["default"]
    drawn = lightsecagg.draw_randomness(p, sources(p))
    result = sealed_round(p, links(p))
    [relay] = [event for event in result.transcript if event.party == SERVER and event.step.phase == "share"]
    for message in relay.received:
        assert isinstance(message, MaskShare)
        shares = p.code.encode(drawn[message.sender]["mask"], drawn[message.sender]["noise"])
        share = vector_bytes(shares[message.receiver])
        assert share[4:] not in message.payload
        assert len(message.payload) == len(share) + OVERHEAD


@pytest.mark.requirement("SEA-03", "LSA-18")
def test_the_channels_of_a_round_serve_one_round() -> None:
    channel = links(TINY)
    sealed_round(TINY, channel)
    with pytest.raises(Replay):
        sealed_round(TINY, channel)


@pytest.mark.requirement("SEA-02", "LSA-18")
@pytest.mark.parametrize(
    "receiving",
    [links(TINY, b"another session!"), links(TINY, round=1), links(replace(TINY, D=0)), links(replace(TINY, d=4))],
    ids=["session", "round", "D", "d"],
)
def test_a_share_for_another_session_round_or_parameters_does_not_open(receiving: SealedLinks) -> None:
    mixed = _Mixed(links(TINY), receiving)
    with pytest.raises(DecryptionFailed) as failed:
        sealed_round(TINY, mixed)  # type: ignore[arg-type]
    assert SERVER in failed.value.blamed


class _Mixed:
    """Channels that seal in one context and open in another."""

    def __init__(self, sealing: SealedLinks, opening: SealedLinks) -> None:
        self.close = sealing.close
        self.open = opening.open


@pytest.mark.requirement("SEA-02", "ERR-01")
@given(st.integers(0, 4), st.integers(0, 30), st.integers(1, 255))
def test_an_altered_share_is_refused_by_its_receiver_and_nothing_is_kept(victim: int, at: int, flip: int) -> None:
    p = TINY
    drawn = lightsecagg.draw_randomness(p, sources(p))
    updates = np.zeros((p.N, p.d), dtype=np.uint64)
    network = lightsecagg.open_round(p, updates, session=SESSION, channel=links(p), round=0)
    full = network.table
    network.table = full[:2]
    run_synchronous(network, {}, drawn)
    mail = network.waiting[victim]
    first = mail[0]
    assert isinstance(first, MaskShare)
    position = at % len(first.payload)
    changed = first.payload[:position] + bytes([first.payload[position] ^ flip]) + first.payload[position + 1 :]
    network.waiting[victim] = [replace(first, payload=changed), *mail[1:]]
    before, step = network.states[victim], full[2]
    assert step.role is Role.USER
    with pytest.raises(DecryptionFailed) as failed:
        network.take(step, victim)
    assert failed.value.blamed == {first.sender, SERVER}
    assert network.states[victim] is before
    network.waiting[victim] = mail
    assert network.take(step, victim).state.phase == "recover"
