"""Batches of nodes: seats that stay, choices of the reference, and sums over whole batches alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.errors import InconsistentSets, ParameterError
from secagg_spec.flower import plan as plans
from secagg_spec.flower import server
from secagg_spec.flower.batches import Batches
from secagg_spec.flower.client import Policy
from secagg_spec.flower.participation import ParticipationLog
from secagg_spec.privacy import participation
from secagg_spec.selection import logs, strategies
from secagg_spec.selection.batches import Parameters
from tests.flower.parties import SETTINGS, Engine
from tests.flower.test_rounds import engine_phase

TINY = Parameters(12, 6, 3)
NODES = [2**63 + 11 * at for at in range(15)]
BASES = ("secagg", "lightsecagg")


def source(name: object = 0) -> SeededSource:
    return SeededSource(b"batches", str(name))


@pytest.mark.requirement("FLW-21", "MRA-22")
@given(st.lists(st.sets(st.sampled_from(NODES)), max_size=8), st.integers(0, 99))
def test_a_node_keeps_its_seat(tmp_path_factory: pytest.TempPathFactory, there: list[set[int]], seed: int) -> None:
    path = tmp_path_factory.mktemp("seats") / "seats.json"
    seats: tuple[int, ...] = ()
    for at, nodes in enumerate(there):
        batches = Batches(TINY, path, source=source((seed, at)))
        assert batches.seats == seats
        batches.sit(nodes)
        assert batches.seats[: len(seats)] == seats
        seats = batches.seats
        assert len(set(seats)) == len(seats)
        assert set(nodes) <= set(seats) or len(seats) == TINY.N
    assert Batches(TINY, path).seats == seats


def test_seats_are_drawn() -> None:
    firsts = set()
    for seed in range(200):
        batches = Batches(TINY, source=source(seed))
        batches.sit(NODES)
        firsts.add(batches.seats[0])
    assert firsts == set(NODES)


@pytest.mark.requirement("FLW-21", "MRA-22")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"round,users\n",
        b"[]",
        b'{"N": 12, "K": 6, "T": 3}',
        b'{"N": 12, "K": 6, "T": 6, "nodes": [1]}',
        b'{"N": 12, "K": 6, "T": 3, "nodes": [1, 1]}',
        b'{"N": 12, "K": 6, "T": 3, "nodes": ["1"]}',
        b'{"N": 12, "K": 6, "T": 3, "nodes": [true]}',
        b'{"N": 12, "K": 6, "T": 3, "nodes": [-1]}',
        b'{"N": 12.0, "K": 6, "T": 3, "nodes": [1]}',
        json.dumps({"N": 12, "K": 6, "T": 3, "nodes": list(range(13))}).encode(),
    ],
)
def test_seats_of_another_session_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "seats.json"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"seats\.json"):
        Batches(TINY, path)
    assert path.read_bytes() == content


def test_what_cannot_be_is_refused() -> None:
    for numbers in ((12, 6, 4), (12, 5, 3), (10, 6, 3), (3, 6, 3)):
        with pytest.raises(ParameterError):
            Batches(Parameters(*numbers))
    with pytest.raises(ParameterError, match="T"):
        Batches(Parameters(12, 6, 2))
    with pytest.raises(ParameterError, match="nodes"):
        Batches(TINY).sit([-1])
    with pytest.raises(ParameterError, match=r"^available = 'NoneType'"):
        Batches(TINY).choose(None, {})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^counts = 'NoneType'"):
        Batches(TINY).choose([0], None)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^counts = 'a': must be an integer"):
        Batches(TINY).choose([0], {1: 2, "a": 3})  # type: ignore[dict-item]
    for path in (5, "", "a\0b"):
        with pytest.raises(ParameterError, match="path = 5" if path == 5 else "seats"):
            Batches(TINY, path)  # type: ignore[arg-type]
    for strategy in ("random", "partition", "best"):
        with pytest.raises(ParameterError):
            Batches(TINY, strategy=strategy)


@pytest.mark.requirement("FLW-21")
def test_seats_that_another_process_gave_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "seats"
    first, second = Batches(TINY, path), Batches(TINY, path)
    first.sit(NODES[:6])
    written = path.read_bytes()
    with pytest.raises(ParameterError, match="seats = 'changed': must be written by one process alone"):
        second.sit(NODES[6:9])
    assert path.read_bytes() == written
    first.sit(NODES[6:9])
    assert set(Batches(TINY, path).seats) == set(NODES[:9])


@pytest.mark.requirement("FLW-22")
def test_large_node_ids_that_differ_by_one_are_different_nodes() -> None:
    batches, big = Batches(TINY), [2**63 + 3 + at for at in range(6)]
    batches.sit([*big, *range(5, 11)])
    there = {*big[1:], *range(5, 11), 2**63 + 2}
    for _ in range(20):
        assert set(batches.choose(there, {})) <= there


@pytest.mark.requirement("FLW-22", "MRA-03", "MRA-04", "MRA-05", "MRA-28")
@given(
    st.sets(st.sampled_from(NODES[:12])),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.sampled_from(["least", "fair", "uniform"]),
    st.integers(0, 99),
)
def test_the_choice_is_that_of_the_reference(there: set[int], seen: list[int], strategy: str, seed: int) -> None:
    batches = Batches(TINY, strategy=strategy, source=source(seed))
    batches.sit(NODES[:12])
    frequencies = np.repeat(np.array(seen, dtype=np.int64), 3)
    available = np.array([node in there for node in batches.seats])
    counts = Counter({node: int(count) for node, count in zip(batches.seats, frequencies, strict=True)})
    batches.source = source((seed, "choice"))
    chosen = batches.choose(there, counts)
    bounds = strategies.ranges(TINY, strategy, frequencies, available)
    draws = draw_below(source((seed, "choice")), bounds or ())
    expected = strategies.choose(TINY, strategy, frequencies, available, draws)
    assert chosen == tuple(batches.seats[user] for user in expected or ())


@pytest.mark.requirement("FLW-22")
def test_a_log_of_other_seats_is_refused() -> None:
    batches = Batches(TINY, source=source())
    batches.sit(NODES[:12])
    with pytest.raises(ParameterError, match="seat"):
        batches.choose(NODES[:12], Counter({7: 1}))
    with pytest.raises(ParameterError, match="part of one"):
        batches.choose(NODES[:12], Counter(batches.seats[:2]))


WIDE = Parameters(16, 12, 4)


def session(name: str, seed: int = 0) -> tuple[Engine, Batches, tuple[int, ...]]:
    """An engine whose clients demand batches of four, the batches, and a choice of three of them."""
    engine, batches = Engine(name, WIDE.N, seed=seed), Batches(WIDE, source=source(seed))
    for node in engine.nodes.values():
        node.policy = replace(node.policy, batch=4)
    return engine, batches, batches.choose(engine.nodes, Counter())


@pytest.mark.slow
@pytest.mark.requirement("FLW-23", "FLW-25", "MRA-18", "MRA-21")
@pytest.mark.parametrize("name", BASES)
def test_a_batch_that_loses_a_user_before_the_sum_is_left_out(name: str) -> None:
    for at, phase in product((0, 5, 11), Engine(name, 6).phases):
        engine, batches, chosen = session(name, at)
        log = ParticipationLog()
        engine.lost = {phase: [list(engine.nodes).index(chosen[at])]}
        result = engine.run(1, chosen, record=log.add, batches=batches)
        late = engine.phases.index(phase) > engine.phases.index(engine_phase(name))
        alive = [node for place, node in enumerate(chosen) if late or place // 4 != at // 4]
        assert result is not None
        assert list(result.contributors) == alive
        assert sorted(log.counts) == sorted(alive)
        assert not [node.refused for node in engine.nodes.values() if node.refused]
        said = [line.count("its batch lacks another") for line in engine.lines]
        assert sum(said) == (0 if late else 3)
        inputs = [engine.nodes[node].inputs[-1].astype(object) for node in alive]
        assert result.total.tolist() == (np.sum(inputs, axis=0) % result.plan.ring.modulus).tolist()


@pytest.mark.requirement("FLW-23", "FLW-15")
def test_a_batch_whose_user_is_refused_is_left_out() -> None:
    engine, batches, chosen = session("secagg")
    bad = list(engine.nodes).index(chosen[2])
    engine.replied = {("masked_input", bad): lambda packet: {**packet, "messages": packet["messages"] * 2}}
    result = engine.run(1, chosen, batches=batches)
    assert result is not None
    assert result.contributors == chosen[4:]


@pytest.mark.requirement("FLW-23", "MRA-18")
@pytest.mark.parametrize("name", BASES)
def test_a_batch_whose_user_sends_no_masked_input_is_left_out(name: str) -> None:
    engine, batches, chosen = session(name)
    bare = list(engine.nodes).index(chosen[2])
    engine.replied = {(engine_phase(name), bare): lambda packet: {**packet, "messages": []}}
    result = engine.run(1, chosen, batches=batches)
    assert result is not None
    assert result.contributors == chosen[4:]


@pytest.mark.requirement("FLW-25", "MRA-21")
@pytest.mark.parametrize("name", BASES)
def test_a_client_refuses_survivors_that_are_no_batches(name: str) -> None:
    engine, _, chosen = session(name)
    engine.lost = {engine_phase(name): [list(engine.nodes).index(chosen[5])]}
    assert engine.run(1, chosen) is None
    refused = {number: node.refused for number, node in engine.nodes.items() if node.refused}
    assert set(refused) == {*chosen} - {chosen[5]}
    assert all(isinstance(error, InconsistentSets) for errors in refused.values() for error in errors)


@pytest.mark.requirement("FLW-25", "MRA-17")
def test_a_client_refuses_plans_without_its_batches() -> None:
    for name, count in (("secagg", 11), ("secagg+", 12), ("lightsecagg", 10)):
        engine, _, chosen = session(name)
        assert engine.run(1, chosen[:count]) is None
        assert all(isinstance(engine.nodes[number].refused[0], ParameterError) for number in chosen[:count])
    with pytest.raises(ParameterError, match="batch"):
        Policy((plans.SECAGG,), batch=2)


@pytest.mark.requirement("FLW-24", "MRA-17")
@pytest.mark.parametrize(
    "settings",
    [
        server.Settings(plans.SECAGG, 8, 9),
        server.Settings(plans.SECAGG, 8, colluding=3),
        server.Settings(plans.LIGHTSECAGG, 8, colluding=3),
        server.Settings(plans.SECAGG_ACTIVE, 10),
        server.Settings(plans.LIGHTSECAGG_ACTIVE, 10),
    ],
    ids=["neighbours", "secagg colluders", "lightsecagg colluders", "secagg active", "lightsecagg active"],
)
def test_a_round_that_batches_do_not_protect_is_refused(
    settings: server.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = settings.protocol
    monkeypatch.setitem(SETTINGS, name, settings)
    engine, batches = Engine(name, WIDE.N), Batches(WIDE, source=source())
    chosen = batches.choose(engine.nodes, Counter())
    assert engine.run(1, chosen, batches=batches) is None
    assert "round 1 ends without a sum: ParameterError: " in engine.lines[-1]
    assert {phase for phase, *_ in engine.packets} <= {"join"}


def played(rounds: int, seed: int, path: Path) -> tuple[participation.Account, participation.Account]:
    """Audits of rounds with batches, and of rounds with the same number of clients at random; one in ten is away."""
    rng = Random(seed)
    manager, log, other = Batches(TINY, source=source(seed)), ParticipationLog(path / "a"), ParticipationLog(path / "b")
    for _ in range(rounds):
        there = [node for node in NODES[:12] if rng.random() < 0.9]
        masked = {node for node in there if rng.random() < 0.95}
        log.add(manager.whole(masked.intersection(manager.choose(there, log.counts))))
        other.add(masked.intersection(rng.sample(there, 6) if len(there) >= 6 else ()))
    return participation.account(logs.read(path / "a")), participation.account(logs.read(path / "b"))


@pytest.mark.requirement("FLW-22", "FLW-23")
@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_rounds_keep_the_privacy_of_batches(seed: int, tmp_path: Path) -> None:
    batches, random = played(200, seed, tmp_path)
    assert batches.log.rounds == random.log.rounds == 200
    assert not batches.found
    assert batches.strong == 3
    assert len(random.found) == 12
    assert random.strong == 1
