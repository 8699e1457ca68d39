"""What docs/how-to/flower.md says of Flower's messages and node ids, asked of Flower itself."""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode import fleet_http_connection, start_client_internal

TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
simulation: Any = import_module("flwr.simulation.run_simulation")


@pytest.fixture
def engine() -> tuple[Any, Any, list[int]]:
    """A grid, its state, and three nodes that are online, as Flower's simulation makes them."""
    factory = simulation.LinkStateFactory(
        simulation.FLWR_IN_MEMORY_DB_NAME, simulation.NoOpFederationManager(), simulation.ObjectStoreFactory()
    )
    state, run = factory.state(), simulation.Run.create_empty(run_id=1)
    run.federation_id, run.primary_task_id = simulation.NOOP_FEDERATION_ID, 1
    state.task_store[1] = simulation.Task(task_id=1, run_id=1)
    state.run_ids[1] = simulation.RunRecord(run=run)
    grid = simulation.InMemoryGrid(state_factory=factory)
    grid.set_run(run)
    return grid, state, [node(state, secrets.token_bytes(32)) for _ in range(3)]


def node(state: Any, key: bytes) -> int:
    """Register a node by its public key."""
    number = int(state.create_node("nobody", "nobody", key, heartbeat_interval=1e9))
    state.acknowledge_node_heartbeat(node_id=number, heartbeat_interval=1e9)
    return number


def push(grid: Any, to: int, what: str, ttl: float | None = None) -> str:
    content = RecordDict({"what": ConfigRecord({"is": what})})
    message = Message(content, dst_node_id=to, message_type="train", group_id=what, ttl=ttl)
    [number] = grid.push_messages([message])
    return str(number)


def answer(state: Any, at: int) -> Message:
    """Let a node take its next message and answer it."""
    [message] = state.get_message_ins(at, limit=1)
    reply = Message(RecordDict(message.content), reply_to=message)
    reply.metadata.__dict__["_message_id"] = secrets.token_hex(8)
    assert state.store_message_res(reply)
    return message


def pulled(grid: Any, waiting: Iterable[str]) -> list[str]:
    return [reply.content["what"]["is"] for reply in grid.pull_messages(list(waiting))]


def test_replies_come_when_they_come_and_over_the_ends_of_rounds(engine: tuple[Any, Any, list[int]]) -> None:
    grid, state, (slow, fast, _) = engine
    first = {push(grid, slow, "0, slow"): slow, push(grid, fast, "0, fast"): fast}
    assert pulled(grid, first) == []
    answer(state, fast)
    assert pulled(grid, first) == ["0, fast"]
    waiting = [number for number, at in first.items() if at == slow]
    waiting += [push(grid, fast, "1, fast"), push(grid, fast, "2, fast")]
    answer(state, fast)
    answer(state, slow)
    assert sorted(pulled(grid, waiting)) == ["0, slow", "1, fast"]
    assert pulled(grid, waiting[2:]) == []


def test_a_message_has_one_reply_and_an_end(engine: tuple[Any, Any, list[int]]) -> None:
    grid, state, (one, other, _) = engine
    push(grid, one, "once")
    message = answer(state, one)
    again = Message(RecordDict(), reply_to=message)
    again.metadata.__dict__["_message_id"] = "again"
    assert state.store_message_res(again) is None
    late = push(grid, other, "late", ttl=0.05)
    time.sleep(0.1)
    [error] = grid.pull_messages([late])
    assert error.has_error()


def test_a_supernode_takes_no_message_before_it_answered_the_last_one() -> None:
    loop = inspect.getsource(start_client_internal.start_client_internal)
    assert loop.index("_pull_and_store_message(") < loop.index("_push_messages(")
    waits = inspect.getsource(start_client_internal._push_messages)
    assert "while not (reply_messages := state.get_messages_legacy(is_reply=True)):" in waits


def test_a_node_id_lasts_as_long_as_the_key_of_the_node(engine: tuple[Any, Any, list[int]]) -> None:
    _, state, _ = engine
    key = secrets.token_bytes(32)
    first = node(state, key)
    assert state.get_node_id_by_public_key(key) == first
    with pytest.raises(ValueError, match="already in use"):
        node(state, key)
    assert node(state, secrets.token_bytes(32)) != first
    source = inspect.getsource(fleet_http_connection)
    assert "self_registered = authentication_keys is None" in source
    assert "authentication_keys = generate_key_pairs()" in source
