"""The workflow and the mod in Flower's own places: same arguments, same strategy, models in sums alone."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.app.message.message import make_message
from flwr.common import Code, FitRes, Parameters, Status
from flwr.compat.common import recorddict_compat

from secagg_spec.errors import ParameterError
from secagg_spec.flower import (
    LightSecAggWorkflow,
    SecAggPlusWorkflow,
    SecAggWorkflow,
    SecureAggregationMod,
    lightsecagg_mod,
    secagg_mod,
    secaggplus_mod,
)
from secagg_spec.flower.client import Policy
from secagg_spec.flower.records import RECORD
from tests.engine.nodes import Change, Grid, Known, Trainer, active, apps, lost, models, run

SHAPES = ((3, 4), (5,), ())
ZEROS = [np.zeros(shape, np.float32) for shape in SHAPES]
NODES = list(models(6))


CASES: dict[str, tuple[Any, Any, int, int]] = {
    "secaggplus": (SecAggPlusWorkflow(5, 3, timeout=9), secaggplus_mod, 4, 2),
    "parts": (SecAggPlusWorkflow(1.0, 0.6, max_weight=200.0, quantization_range=2**22, timeout=9), secagg_mod, 4, 2),
    "secagg": (SecAggWorkflow(4, timeout=9), secagg_mod, 4, 2),
    "lightsecagg": (LightSecAggWorkflow(4, timeout=9), lightsecagg_mod, 4, 2),
    "secagg, active": (SecAggWorkflow(5, active=True, timeout=9), active("secagg-active", NODES), 6, 3),
    "lightsecagg, active": (LightSecAggWorkflow(5, active=True, timeout=9), active("lightsecagg-active", NODES), 5, 2),
}
"""A workflow, its mod, the number of its phases, and the one in which the model is masked."""


def mean(trainers: dict[int, Trainer], nodes: list[int]) -> list[Any]:
    """The weighted mean of the models of some nodes."""
    total = sum(trainers[node].examples for node in nodes)
    return [
        sum(trainers[node].examples * trainers[node].arrays[at].astype(np.float64) for node in nodes) / total
        for at in range(len(SHAPES))
    ]


def close(found: list[Any], wanted: list[Any]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.requirement("FLW-10", "FLW-13")
def test_a_round_in_flowers_places_gives_the_weighted_mean(name: str, clock: Any) -> None:
    workflow, mod, phases, _ = CASES[name]
    trainers = models(6, *SHAPES)
    grid = Grid(apps(mod, trainers))
    found, strategy = run(workflow, grid, ZEROS, rounds=2)
    close(found, mean(trainers, NODES))
    assert len(strategy.given) == 2
    assert all(len(results) == 6 and not failures for results, failures in strategy.given)
    assert (grid.phase + 1, clock.now) == (2 * phases, 0)
    for reply in grid.replies:
        assert list(reply) == [RECORD]
        assert "my accuracy" not in reply[RECORD]


def failed(message: Message) -> Message:
    return make_message(message.metadata, error=Error(code=2, reason="the process was killed"))


def empty(message: Message) -> Message:
    message.content = RecordDict()
    return message


@pytest.mark.requirement("FLW-13")
@pytest.mark.parametrize("change", [lost, failed, empty], ids=["lost", "failed", "empty"])
@pytest.mark.parametrize("name", CASES)
def test_a_node_that_does_not_answer_is_a_dropout_in_any_phase(name: str, change: Change) -> None:
    workflow, mod, phases, masking = CASES[name]
    for phase in range(phases):
        trainers = models(6, *SHAPES)
        grid = Grid(apps(mod, trainers), replied={(at, NODES[2]): change for at in range(phase, 9)})
        found, strategy = run(workflow, grid, ZEROS)
        inside = phase > masking
        close(found, mean(trainers, NODES if inside else NODES[:2] + NODES[3:]))
        assert [len(each) for each in strategy.given[0]] == ([6, 0] if inside else [5, 1])


class Slow(Grid):
    """A grid in which the replies of one node come so many seconds after they were first asked for."""

    clock: Any
    seconds: float
    first: float | None = None

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Answer for the others."""
        here = [number for number in message_ids if number.split()[1] != str(NODES[2])]
        if len(here) < len(list(message_ids)):
            self.first = self.clock.now if self.first is None else self.first
            if self.clock.now - self.first >= self.seconds:
                here, self.first = list(message_ids), None
        return super().pull_messages(here)


@pytest.mark.requirement("FLW-13")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("seconds", "inside"), [(0.05, 6), (8.5, 6), (9.5, 5)])
def test_a_reply_counts_if_it_comes_in_time(name: str, seconds: float, inside: int, clock: Any) -> None:
    workflow, mod, phases, _ = CASES[name]
    trainers = models(6, *SHAPES)
    grid = Slow(apps(mod, trainers))
    grid.clock, grid.seconds = clock, seconds
    found, strategy = run(workflow, grid, ZEROS)
    close(found, mean(trainers, [node for node in NODES if inside == 6 or node != NODES[2]]))
    assert [len(each) for each in strategy.given[0]] == [inside, 6 - inside]
    assert clock.now == pytest.approx(9) if inside == 5 else 0 <= clock.now - phases * seconds <= 0.2 * phases


@pytest.mark.requirement("FLW-16")
@pytest.mark.parametrize("name", CASES)
def test_a_round_with_too_few_leaves_the_model_and_says_so(name: str, caplog: pytest.LogCaptureFixture) -> None:
    workflow, mod, *_ = CASES[name]
    grid = Grid(apps(mod, models(6, *SHAPES)), replied={(1, node): lost for node in NODES[:4]})
    found, strategy = run(workflow, grid, ZEROS)
    assert strategy.given == []
    assert all(not array.any() for array in found)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines[-1].startswith("secure aggregation: round 1 ends without a sum: TooFewSurvivors: ")
    assert len([line for line in lines if "ends without" in line]) == 1


@pytest.mark.requirement("FLW-09")
@pytest.mark.parametrize("kind", ["train", "train.anything"])
def test_a_server_that_asks_for_a_model_in_clear_gets_none(kind: str) -> None:
    trainers = models(6, *SHAPES)

    def bare(message: Message) -> Message:
        message.content.config_records.pop(RECORD)
        return Message(message.content, dst_node_id=message.metadata.dst_node_id, message_type=kind, group_id="1")

    grid = Grid(apps(secaggplus_mod, trainers), asked={(2, NODES[0]): bare})
    run(CASES["secaggplus"][0], grid, ZEROS)
    assert trainers[NODES[0]].asked == 0
    assert trainers[NODES[1]].asked == 1


@pytest.mark.requirement("FLW-08")
def test_what_training_says_when_it_fails_stays_with_the_client() -> None:
    trainers = models(6, *SHAPES)

    def fails(parameters: Any, config: Any) -> Any:
        raise ZeroDivisionError(f"the first number is {trainers[NODES[1]].arrays[0][0, 0]}")

    trainers[NODES[1]].fit = fails  # type: ignore[method-assign]
    trainers[NODES[2]].arrays[0][0, 0] = np.nan
    grid = Grid(apps(secaggplus_mod, trainers))
    found, _ = run(SecAggPlusWorkflow(1.0, 4, timeout=9), grid, ZEROS)
    close(found, mean(trainers, [NODES[0], *NODES[3:]]))
    refused = [reply[RECORD]["refused"] for reply in grid.replies if "refused" in reply[RECORD]]
    assert sorted(refused) == ["bad_param", "out_of_range"]


@pytest.mark.requirement("FLW-07")
def test_a_state_that_the_engine_did_not_keep_is_not_used_again() -> None:
    trainers, node = models(6, *SHAPES), NODES[0]
    grid = Grid(apps(secagg_mod, trainers))
    packet: dict[str, Any] = {}
    before: dict[str, Any] = {}

    def keep(message: Message) -> Message:
        packet.update(message.content.config_records[RECORD])
        before.update(grid.contexts[node].state.config_records[RECORD])
        return message

    grid.asked = {(2, node): keep}
    run(CASES["secagg"][0], grid, ZEROS)
    grid.contexts[node].state.config_records[RECORD] = ConfigRecord(before)
    grid.asked, grid.phase = {}, -1
    content = RecordDict({RECORD: ConfigRecord(packet)})
    message = Message(content, dst_node_id=node, message_type="train", group_id="1")
    [reply] = grid.send_and_receive([message])
    assert dict(reply.content.config_records[RECORD]) == {"version": 2, "refused": "replay"}
    assert trainers[node].asked == 1


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("timeout", [0, -1, float("nan"), float("inf"), "9", True, 10**400]),
        ("max_weight", [1.9, 0.5, "3", float("nan"), float("inf"), None, "x", 0]),
        ("clipping_range", [float("nan"), float("inf"), 0.0, "8", True, 10**400]),
        ("quantization_range", [10**400, 0, 2.5, "9", 15]),
        ("reconstruction_threshold", [2, 6, 0.0, "4"]),
        ("num_shares", [2, 0.0, "5"]),
        ("trace", [5, object(), "", "\ud800", "a\0b"]),
        ("participation", [5, b"", "", "\ud800", object()]),
    ],
)
def test_a_setting_of_flowers_workflow_is_looked_at_before_a_round(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ParameterError, match=name):
            SecAggPlusWorkflow(**{"num_shares": 5, "reconstruction_threshold": 3, name: value})
    SecAggPlusWorkflow(5, 3, max_weight=200.0, timeout=9.5)
    numbers = {"max_weight": np.float32(200), "timeout": np.int64(9), "clipping_range": np.float32(8)}
    same = SecAggPlusWorkflow(np.float32(0.5), np.int64(3), **numbers)
    assert same.settings == SecAggPlusWorkflow(0.5, 3, max_weight=200, clipping_range=8.0).settings


@pytest.mark.parametrize(("steps", "level"), [(16, 1), (31, 1), (32, 2), (2**22, 2**18)])
def test_the_steps_of_the_quantiser_give_its_level(steps: int, level: int) -> None:
    assert SecAggPlusWorkflow(5, 3, quantization_range=steps).settings.level == level
    for wrong, clip, allowed in ((2**22, 1e-4, r"\[1, 858993\]"), (1, 8, r"\[16, 4294967296\]"), (2**33, 8, r"\[16, ")):
        with pytest.raises(ParameterError, match=f"quantization_range = {wrong}: must be an integer in {allowed}"):
            SecAggPlusWorkflow(5, 3, quantization_range=wrong, clipping_range=clip)


def test_a_trace_is_looked_at_before_a_round(tmp_path: Path) -> None:
    (tmp_path / "foreign").write_text("precious\n")
    with pytest.raises(ParameterError, match="foreign"):
        SecAggWorkflow(4, trace=tmp_path / "foreign")
    assert (tmp_path / "foreign").read_text() == "precious\n"
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "no" / "trace", FileNotFoundError)):
        with pytest.raises(error):
            SecAggWorkflow(4, trace=path)


@pytest.mark.requirement("FLW-10")
@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("kind", ["i8", "i1", "u1", ">i4"])
def test_integers_of_a_model_have_their_mean(kind: str, inplace: bool) -> None:
    trainers = models(6, (3,), (2,))
    for at, trainer in enumerate(trainers.values()):
        trainer.arrays[0] = np.full(3, 6 + at % 3, dtype=kind)
    grid = Grid(apps(secagg_mod, trainers))
    given = [np.zeros(3, kind), np.zeros(2, np.float32)]
    found, strategy = run(SecAggWorkflow(4, timeout=9), grid, given, strategy=Known(grid.apps, inplace=inplace))
    assert [array.dtype for array in found] == [array.dtype for array in given]
    assert found[0].tolist() == [7, 7, 7]
    [(results, _)] = strategy.given
    assert sum(each.num_examples for _, each in results) == sum(trainer.examples for trainer in trainers.values())


@pytest.mark.requirement("FLW-16")
@pytest.mark.parametrize(("kind", "number"), [("u1", -3.0), ("f2", 7e4)])
def test_a_mean_that_the_models_type_does_not_hold_leaves_the_model(
    kind: str, number: float, caplog: pytest.LogCaptureFixture
) -> None:
    trainers = models(6, (3,))
    for trainer in trainers.values():
        trainer.arrays[0] = np.full(3, number)
    given = [np.ones(3, kind)]
    found, _ = run(SecAggWorkflow(4, timeout=9, largest=1e5), Grid(apps(secagg_mod, trainers)), given)
    assert found[0].tolist() == [1, 1, 1]
    assert f"must be one of type {given[0].dtype}" in caplog.text


@pytest.mark.requirement("FLW-26")
@pytest.mark.parametrize("memory", [5, 1.5, True, "text", [5], []])
def test_a_memory_of_another_type_is_one_that_was_lost(memory: Any) -> None:
    trainers = models(6, *SHAPES)
    grid = Grid(apps(secagg_mod, trainers))
    grid.contexts[NODES[0]].state[RECORD] = ConfigRecord({"memory": memory})
    found, _ = run(SecAggWorkflow(4, timeout=9), grid, ZEROS)
    close(found, mean(trainers, NODES))


def app_that_gives(content: RecordDict | None) -> Any:
    """An app of Flower's newer interface, whose reply is no result of training."""

    def call(message: Message, context: Any) -> Message:
        return Message(content, reply_to=message)

    return lambda message, context: secagg_mod(message, context, call)


NO_ARRAYS = recorddict_compat.fitres_to_recorddict(
    FitRes(Status(Code.OK, ""), Parameters([b"12345"], "numpy.ndarray"), 1, {}), keep_input=False
)


@pytest.mark.requirement("FLW-08")
@pytest.mark.parametrize("content", [RecordDict(), RecordDict({"metrics": ConfigRecord({"a": 1})}), NO_ARRAYS])
def test_what_is_no_result_of_training_is_refused_and_logged(
    content: RecordDict, caplog: pytest.LogCaptureFixture
) -> None:
    trainers = models(6, *SHAPES)
    grid = Grid({**apps(secagg_mod, trainers), NODES[0]: app_that_gives(content)})
    found, _ = run(SecAggWorkflow(4, timeout=9), grid, ZEROS)
    close(found, mean(trainers, NODES[1:]))
    assert [reply[RECORD]["refused"] for reply in grid.replies if "refused" in reply[RECORD]] == ["bad_param"]
    assert "the training of the app failed, or gave no model" in caplog.text


@pytest.mark.parametrize("journal", [b"/path", object(), 5, True, "", "a\0b"])
def test_a_journal_is_a_path(journal: Any) -> None:
    with pytest.raises(ParameterError, match="journal"):
        SecureAggregationMod(Policy(("secagg",)), journal)
    grid = Grid(apps(secagg_mod, models(6, *SHAPES)))
    node = grid.contexts[NODES[0]]
    node.node_config = {"secagg-journal": journal}
    with pytest.raises(ParameterError, match="secagg-journal"):
        secagg_mod(Message(RecordDict(), dst_node_id=1, message_type="train", group_id="1"), node, lambda m, c: m)


def test_a_journal_in_the_home_folder_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert SecureAggregationMod(Policy(("secagg",)), "~/journal").journal == tmp_path / "journal"
    assert SecureAggregationMod(Policy(("secagg",)), "~nobody-of-this-name/x").journal == Path("~nobody-of-this-name/x")
    with pytest.raises(ParameterError, match="policy"):
        SecureAggregationMod("secagg")  # type: ignore[arg-type, unused-ignore]


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("made", [SecAggWorkflow, LightSecAggWorkflow])
@pytest.mark.parametrize("active", ["False", float("nan"), None, "", 1])
def test_whether_a_round_is_active_is_said_by_a_truth_value(made: Any, active: Any) -> None:
    with pytest.raises(ParameterError, match="active"):
        made(0.7, active=active)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("colluding", [-1, 0, float("nan"), "abc", object(), 1.0, True])
def test_the_number_of_colluding_clients_is_looked_at_before_a_round(colluding: Any) -> None:
    with pytest.raises(ParameterError, match="colluding"):
        LightSecAggWorkflow(0.6, colluding=colluding)
    LightSecAggWorkflow(0.6, colluding=2)


def test_another_modulus_is_refused() -> None:
    with pytest.raises(ParameterError, match="modulus_range"):
        SecAggPlusWorkflow(5, 3, modulus_range=2**24)
