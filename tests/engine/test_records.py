"""Packets in records of Flower's messages: what is put there is taken out, and what is long is sent in pieces."""

from __future__ import annotations

from typing import Any

import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.constant import FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from secagg_spec.flower import records
from secagg_spec.flower.plan import Packet
from tests.engine.nodes import Grid, apps, models, run
from tests.engine.test_glue import CASES, NODES, SHAPES, ZEROS, close, mean

HEAD: Packet = {"version": 2, "phase": "masked_input", "session": bytes(16)}


def array(data: bytes) -> Array:
    return Array("uint8", (len(data),), "bytes", data)


@pytest.mark.parametrize("sizes", [[], [0], [3], [3, 4], [4, 3, 5, 0, 9], [9, 9]])
def test_a_packet_is_taken_out_as_it_was_put_in(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST", 3)
    messages = [bytes([at]) * size for at, size in enumerate(sizes)]
    packet = {**HEAD, **({"messages": messages} if messages else {})}
    content = RecordDict({"of the app": MetricRecord({"loss": 1.0})})
    assert records.put(packet, content) is content
    assert set(content) - {"of the app", records.RECORD} == ({records.LONG} if max(sizes, default=0) > 3 else set())
    taken = records.take(content)
    assert taken is not None
    assert sorted(taken.pop("messages", [])) == sorted(messages)  # type: ignore[attr-defined]
    assert taken == HEAD
    assert list(content) == ["of the app"]


@pytest.mark.requirement("FLW-13")
def test_what_holds_no_packet_gives_none() -> None:
    long = ArrayRecord({"0": array(b"x")})
    for content in ({}, {records.LONG: long}, {records.RECORD: long}, {records.RECORD: MetricRecord({"version": 2})}):
        assert records.take(RecordDict(content)) is None
    odd: dict[str, Any] = {**HEAD, "messages": 5}
    assert records.take(RecordDict({records.RECORD: ConfigRecord(odd), records.LONG: long})) == odd
    other = RecordDict({records.RECORD: ConfigRecord(dict(HEAD)), records.LONG: ConfigRecord({"0": b"x"})})
    assert records.take(other) == HEAD


def test_flower_sends_a_long_message_in_pieces() -> None:
    data = bytes(range(250)) * 80_000
    content = records.put({**HEAD, "messages": [data]}, RecordDict())
    message = Message(content, dst_node_id=1, message_type="train", group_id="1")
    message.metadata.__dict__["_message_id"] = message.object_id
    sent = {name: one.deflate() for name, one in get_all_nested_objects(message).items()}
    assert sum(map(len, sent.values())) > len(data)
    assert max(map(len, sent.values())) < FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE + 1000
    came = inflate_object_from_contents(message.object_id, sent)
    assert isinstance(came, Message)
    assert records.take(came.content) == {**HEAD, "messages": [data]}


@pytest.mark.parametrize("name", CASES)
def test_a_round_may_have_long_messages_in_any_phase(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST", 40)
    workflow, mod, *_ = CASES[name]
    trainers = models(6, *SHAPES)
    found, strategy = run(workflow, Grid(apps(mod, trainers)), ZEROS)
    close(found, mean(trainers, NODES))
    assert [len(each) for each in strategy.given[0]] == [6, 0]
