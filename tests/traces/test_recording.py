"""The trace of a round inside Flower: what was sent, and nothing else."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import ParameterError, UsageError
from secagg_spec.flower import server
from secagg_spec.flower.packing import unpack
from secagg_spec.flower.plan import Packet
from secagg_spec.flower.tracing import traced
from secagg_spec.protocols.steps import SERVER
from secagg_spec.traces import files, rounds
from tests.flower.parties import SETTINGS, Engine, signing_key
from tests.flower.test_batches import BASES, session
from tests.flower.test_rounds import FAULTS, OF_MESSAGES, engine_phase, engines
from tests.strategies import fewer


def run(engine: Engine, path: Path, times: int = 1) -> list[server.Result | None]:
    """Run rounds, and record them."""
    exchange, results = engine.exchange, list[server.Result | None]()
    for number in range(times):
        with ExitStack() as stack:
            engine.exchange = traced(exchange, path, stack)  # type: ignore[method-assign, assignment]
            results.append(engine.run(number + 1))
        engine.dead.clear()
        engine.lost = {}
    return results


def checked(path: Path) -> list[rounds.Round]:
    """The rounds of a trace."""
    return list(rounds.check(files.read(path, rounds.PROTOCOLS)))


@pytest.mark.requirement("TRC-02", "TRC-03")
@fewer(2)
@given(engines())
def test_the_trace_of_an_honest_round_conforms(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> None:
    path = tmp_path_factory.mktemp("flower") / "trace"
    (result,) = run(engine, path)
    if engine.begun is None:
        assert path.read_bytes() == b""
        return
    plan, _ = engine.begun
    (found,) = checked(path)
    assert found.finding is None
    assert found.complete == (result is not None)
    assert (found.head.session, found.head.round, len(found.users)) == (plan.session, plan.round, plan.N)
    assert leaked(engine, path) == []


def leaked(engine: Engine, path: Path) -> list[str]:
    """The secrets of nodes that a trace holds: keys, seeds, shares, inputs and models."""
    text = path.read_text(encoding="ascii")
    found = []
    for node in engine.nodes.values():
        secrets = {"signing key": signing_key(node.number)}
        secrets |= {f"input {at}": each.astype("<u4").tobytes() for at, each in enumerate(node.inputs)}
        secrets |= {f"array {at}": each.tobytes() for at, each in enumerate(node.arrays) if each.size > 1}
        for at, memory in enumerate(node.kept[1:]):
            secrets |= {f"memory {at}: {what}": value for what, value in leaves(unpack(memory))}
        found += [what for what, secret in secrets.items() if secret.hex() in text]
    return found


def leaves(tree: Any, name: str = "") -> list[tuple[str, bytes]]:
    """The private keys, seeds and masks of a stored state; the rest of it is public."""
    if isinstance(tree, dict):
        return [each for key, value in tree.items() for each in leaves(value, key)]
    if isinstance(tree, list):
        return [each for value in tree for each in leaves(value, name)]
    private = name in {"private", "sealing", "sealing_secrets", "mask_keys", "self_keys", "mask"}
    return [(name, tree)] if isinstance(tree, bytes) and private and len(tree) >= 16 else []


@pytest.mark.requirement("TRC-02", "TRC-04")
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_rounds_stand_one_behind_the_other(tmp_path: Path, name: str) -> None:
    path = tmp_path / "trace"
    results = run(Engine(name, 6), path, 2)
    assert None not in results
    assert [(each.finding, each.complete, each.head.round) for each in checked(path)] == [
        (None, True, 1),
        (None, True, 2),
    ]


@pytest.mark.requirement("TRC-02")
@pytest.mark.parametrize("name", sorted(SETTINGS))
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_reply_that_no_client_sends_is_found_and_one_that_says_nothing_is_missing(
    tmp_path: Path, name: str, fault: str
) -> None:
    path = tmp_path / "trace"
    engine = Engine(name, 6)
    phase = engine.phases[-1]
    engine.replied = {(phase, 2): FAULTS[fault]}
    run(engine, path)
    (found,) = checked(path)
    silent = fault not in OF_MESSAGES or fault in ("text", "no list")
    assert (found.finding is None) == silent
    if found.finding is not None:
        assert (found.finding.phase, found.finding.party) == (phase, 2)
    lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    assert lines[-1] == {"phase": phase, "closed": [2] if silent else []}


@pytest.mark.requirement("TRC-08")
@fewer(2)
@given(st.sampled_from(sorted(SETTINGS)), st.integers(0, 5))
def test_a_server_that_drops_a_message_is_found(
    tmp_path_factory: pytest.TempPathFactory, name: str, place: int
) -> None:
    """It never shows it, and so the trace lacks it; the next message of the server gives it away."""
    path = tmp_path_factory.mktemp("flower") / "trace"
    engine = Engine(name, 6)
    phase = "upload" if name.startswith("light") else "masked_input"
    assert run(engine, path) != [None]
    lines = [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
    kept = [line for line in lines if (line.get("phase", ""), line.get("from")) != (phase, place)]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="ascii")
    (found,) = checked(path)
    assert found.finding is not None
    assert (found.finding.rule, found.finding.code) == ("TRC-08", "inconsistent_sets")


@pytest.mark.requirement("TRC-02", "FLW-23")
@pytest.mark.parametrize("name", BASES)
def test_a_server_that_leaves_out_a_batch_with_a_gap_conforms_in_a_session_of_batches(
    tmp_path: Path, name: str
) -> None:
    """A head that says nothing of batches has it as a server that drops masked inputs."""
    engine, batches, chosen = session(name)
    engine.lost = {engine_phase(name): [list(engine.nodes).index(chosen[1])]}
    with ExitStack() as stack:
        engine.exchange = traced(engine.exchange, tmp_path / "trace", stack, 4)  # type: ignore[method-assign, assignment]
        result = engine.run(1, chosen, batches=batches)
    assert result is not None
    assert result.contributors == chosen[4:]
    head, *rest = files.read(tmp_path / "trace", rounds.PROTOCOLS)
    assert isinstance(head, files.Head)
    assert head.batch == 4
    (found,) = rounds.check([head, *rest])
    assert (found.finding, found.complete) == (None, True)
    (alone,) = rounds.check([replace(head, batch=0), *rest])
    assert alone.finding is not None
    assert (alone.finding.rule, alone.finding.party) == ("TRC-08", SERVER)
    (other,) = rounds.check([replace(head, batch=3), *rest])
    assert other.finding is not None
    assert (other.finding.rule, other.finding.party) == ("TRC-08", SERVER)


@pytest.mark.parametrize("batch", [1, 2, 5, -4, 24])
def test_batches_of_a_head_are_of_three_users_at_least_and_whole(tmp_path: Path, batch: int) -> None:
    engine, batches, chosen = session("secagg")
    path = tmp_path / "trace"
    with ExitStack() as stack:
        engine.exchange = traced(engine.exchange, path, stack, 4)  # type: ignore[method-assign, assignment]
        engine.run(1, chosen, batches=batches)
    (head, *_) = files.read(path, rounds.PROTOCOLS)
    assert isinstance(head, files.Head)
    recorder = files.Recorder(path)
    with closing(recorder), pytest.raises(ParameterError, match=f"batch = {batch}: must be "):
        recorder.begin(replace(head, batch=batch))
    path.write_bytes(path.read_bytes().replace(b'"batch":4', b'"batch":%d' % batch, 1))
    with pytest.raises(UsageError, match=f"line 1: batch = {batch}: must be at least 3, and a divisor of N = 12$"):
        next(files.read(path, rounds.PROTOCOLS))


def test_without_a_path_nothing_is_written() -> None:
    engine = Engine("secagg", 5)
    with ExitStack() as stack:
        assert traced(engine.exchange, None, stack) == engine.exchange


def test_a_reply_of_a_node_that_was_not_asked_is_left_to_the_server(tmp_path: Path) -> None:
    engine = Engine("secagg", 6)
    carry = engine.exchange

    def exchange(phase: str, packets: Any) -> Any:
        for number, reply in carry(phase, packets):
            yield number, reply
            yield 1, reply

    engine.exchange = exchange  # type: ignore[method-assign]
    assert run(engine, tmp_path / "trace") == [None]
    assert "node = 1: must be one that was asked" in engine.lines[-1]


@pytest.mark.requirement("TRC-02")
def test_what_is_no_packet_is_left_to_the_server(tmp_path: Path) -> None:
    """A reply with entries of any other type is carried as it is."""
    sent: list[Packet | None] = []

    def exchange(phase: str, packets: Any) -> Any:
        return dict.fromkeys(packets, sent[0]).items()

    engine = Engine("secagg", 5)
    run(engine, tmp_path / "trace")
    plan = next(packet for _, _, packet in engine.packets if "plan" in packet)
    for reply in (None, {}, {"version": 2, "phase": "advertise_keys", "messages": [1, b"x", None]}):
        sent[:] = [reply]
        with ExitStack() as stack:
            carried = traced(exchange, tmp_path / "other", stack)("advertise_keys", {7: plan})
            assert list(carried) == [(7, reply)]
    text = (tmp_path / "other").read_text(encoding="ascii")
    assert [line for line in text.splitlines() if "message" in line] == [
        f'{{"phase":"advertise_keys","from":{plan["user"]},"message":"78"}}'
    ]
    assert np.array_equal([line.count('"closed"') for line in text.splitlines()].count(1), 3)
