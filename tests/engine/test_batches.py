"""The participation log of a workflow, and batches in the place of Flower's own client manager."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from flwr.server import SimpleClientManager
from flwr.server.compat.app_utils import start_update_client_manager_thread
from flwr.server.strategy import FedAvg

from secagg_spec.commands import audit
from secagg_spec.errors import ParameterError
from secagg_spec.flower import (
    BatchClientManager,
    LightSecAggWorkflow,
    SecAggPlusWorkflow,
    SecAggWorkflow,
    SecureAggregationMod,
    lightsecagg_mod,
    secagg_mod,
)
from secagg_spec.flower.client import Policy
from secagg_spec.flower.participation import ParticipationLog
from tests.engine.nodes import Grid, apps, lost, models, run
from tests.engine.test_glue import NODES, SHAPES, ZEROS

TWELVE = list(models(12))


def filled(manager: Any, nodes: Iterable[int]) -> Any:
    """A client manager that has the nodes."""
    for node in nodes:
        assert manager.register(SimpleNamespace(node_id=node, cid=str(node)))
    return manager


def verdict(log: Path, *options: str) -> int:
    """The exit code of the audit."""
    parser = ArgumentParser()
    audit.add_parser(parser.add_subparsers())
    found = parser.parse_args(["audit-participation", str(log), *options])
    return int(found.run(found))


@pytest.mark.requirement("FLW-17", "FLW-19")
@pytest.mark.parametrize(
    ("workflow", "mod"),
    [
        (lambda log: SecAggPlusWorkflow(5, 3, participation=log), secagg_mod),
        (lambda log: SecAggWorkflow(3, participation=log), secagg_mod),
        (lambda log: LightSecAggWorkflow(4, participation=log), lightsecagg_mod),
    ],
    ids=["secaggplus", "secagg", "lightsecagg"],
)
def test_each_round_of_a_workflow_has_its_line(workflow: Any, mod: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    trainers = models(6, *SHAPES)
    masking, phases = 2, 4
    gone = {(masking, NODES[0]): lost, **{(phases + 1, node): lost for node in NODES[:4]}}
    grid = Grid(apps(mod, trainers), replied=gone)
    run(workflow(path), grid, ZEROS, rounds=2)
    lines = path.read_text().splitlines()
    assert lines == ["round,users", "1," + " ".join(map(str, NODES[1:])), "2,"]
    failed = Grid(apps(mod, trainers), replied={(masking + 1, node): lost for node in NODES[:4]})
    run(workflow(str(path)), failed, ZEROS)
    run(workflow(ParticipationLog(path)), Grid(apps(mod, trainers)), ZEROS)
    everybody = " ".join(map(str, NODES))
    assert path.read_text().splitlines() == [*lines, f"3,{everybody}", f"4,{everybody}"]
    assert verdict(path) == 1


@pytest.mark.requirement("FLW-20")
def test_a_workflow_refuses_a_foreign_log(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    for make in (SecAggPlusWorkflow, SecAggWorkflow, LightSecAggWorkflow):
        with pytest.raises(ParameterError, match=r"notes\.txt"):
            make(5, *([3] if make is SecAggPlusWorkflow else []), participation=path)


@pytest.mark.requirement("FLW-21", "FLW-22", "FLW-23", "FLW-25")
@pytest.mark.parametrize("name", ["secagg", "lightsecagg"])
def test_rounds_with_batches_sum_over_whole_batches(name: str, tmp_path: Path) -> None:
    trainers = models(12, *SHAPES)
    mod = SecureAggregationMod(Policy((name,), batch=3))
    rng = Random(name)
    for part in range(3):  # a restart each
        manager = BatchClientManager(12, 9, 3, seats=tmp_path / "seats", participation=tmp_path / "log")
        workflow = SecAggWorkflow(4) if name == "secagg" else LightSecAggWorkflow(4)
        strategy = FedAvg(fraction_fit=0.5, min_available_clients=9)
        away = {(4 * at + 2, rng.choice(TWELVE)): lost for at in range(4)}
        grid = Grid(apps(mod, trainers), replied=away)
        before = manager.participation.rounds
        assert before == 4 * part
        final, _ = run(workflow, grid, ZEROS, 4, filled(manager, rng.sample(TWELVE, 12)), strategy)
        assert manager.participation.rounds == before + 4
        assert any(array.any() for array in final)
    rows = [line.partition(",")[2].split() for line in (tmp_path / "log").read_text().splitlines()[1:]]
    assert {len(row) for row in rows} <= {6, 9}
    assert 6 in map(len, rows)
    assert verdict(tmp_path / "log", "--privacy", "3") == 0
    batch = [{int(node) for node in row} for row in rows]
    seats = list(manager.batches.seats)
    for nodes in batch:
        assert all(len(nodes.intersection(seats[at : at + 3])) in (0, 3) for at in range(0, 12, 3))


@pytest.mark.requirement("FLW-22", "FLW-23")
def test_two_hundred_rounds_hold_with_batches_and_break_with_flowers_own_manager(tmp_path: Path) -> None:
    logs = {name: ParticipationLog(tmp_path / name) for name in ("batches", "simple")}
    ours = filled(BatchClientManager(24, 12, 4, participation=logs["batches"]), range(24))
    simple, rng = filled(SimpleClientManager(), range(24)), Random(0)
    for _ in range(200):
        came = {node for node in range(24) if rng.random() < 0.95}
        chosen = {client.node_id for client in ours.sample(12, 12)}
        assert len(chosen) == 12
        logs["batches"].add(ours.batches.whole(chosen & came))
        logs["simple"].add({client.node_id for client in simple.sample(12, 12)} & came)
    assert verdict(tmp_path / "batches", "--privacy", "4") == 0
    assert verdict(tmp_path / "simple") == 1


@pytest.mark.requirement("FLW-22")
def test_too_few_batches_are_no_round(tmp_path: Path) -> None:
    manager = BatchClientManager(12, 6, 3, seats=tmp_path / "seats", participation=tmp_path / "log")
    filled(manager, TWELVE)
    assert len(manager.sample(12)) == 6
    seats = manager.batches.seats
    for at in (0, 3, 6):
        manager.unregister(manager.clients[str(seats[at])])
    assert manager.sample(1) == []
    grid = Grid(apps(secagg_mod, models(12, *SHAPES)))
    final, _ = run(SecAggWorkflow(3), grid, ZEROS, 1, manager, FedAvg(min_available_clients=6))
    assert not any(array.any() for array in final)
    assert (tmp_path / "log").read_text() == "round,users\n1,\n"
    filled(manager, [seats[0]])
    assert {client.node_id for client in manager.sample(1)} == {*seats[:3], *seats[9:]}


@pytest.mark.requirement("FLW-21")
def test_flower_registers_clients_beyond_the_seats_and_they_are_not_chosen() -> None:
    manager, there = BatchClientManager(12, 6, 3), set(TWELVE)
    grid: Any = SimpleNamespace(get_node_ids=lambda: there, run=SimpleNamespace(run_id=1))
    thread, stop, done = start_update_client_manager_thread(grid, manager)
    assert done.wait(30)
    assert len(manager.sample(6, 12)) == 6
    there.update(range(12))
    for _ in range(20):
        assert {client.node_id for client in manager.sample(6)} <= set(TWELVE)
    assert manager.num_available() == 24
    stop.set()
    thread.join(30)


def test_seats_and_log_are_two_files(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="another file than the participation log"):
        BatchClientManager(12, 6, 3, seats=tmp_path / "x", participation=tmp_path / "." / "x")
    assert not list(tmp_path.iterdir())
    for seats in ("", 5):
        with pytest.raises(ParameterError, match="seats"):
            BatchClientManager(12, 6, 3, seats=seats)  # type: ignore[arg-type, unused-ignore]


def test_a_log_is_given_once(tmp_path: Path) -> None:
    manager = filled(BatchClientManager(12, 6, 3), TWELVE)
    workflow = SecAggWorkflow(3, participation=tmp_path / "log")
    with pytest.raises(ParameterError, match="participation"):
        run(workflow, Grid(apps(secagg_mod, models(12, *SHAPES))), ZEROS, 1, manager, FedAvg())
