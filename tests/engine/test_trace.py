"""A trace that a workflow writes inside Flower conforms, and a node that the engine loses is missing in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secagg_spec.flower import (
    LightSecAggWorkflow,
    SecAggPlusWorkflow,
    SecAggWorkflow,
    lightsecagg_mod,
    secagg_mod,
    secaggplus_mod,
)
from secagg_spec.traces import files, rounds
from tests.engine.nodes import Grid, active, apps, lost, models, run
from tests.engine.test_glue import NODES

CASES: dict[str, tuple[Any, Any]] = {
    "secaggplus": (lambda path: SecAggPlusWorkflow(5, 3, timeout=9, trace=path), secaggplus_mod),
    "secagg": (lambda path: SecAggWorkflow(4, timeout=9, trace=path), secagg_mod),
    "secagg, active": (
        lambda path: SecAggWorkflow(5, active=True, timeout=9, trace=path),
        active("secagg-active", NODES),
    ),
    "lightsecagg": (lambda path: LightSecAggWorkflow(4, timeout=9, trace=path), lightsecagg_mod),
    "lightsecagg, active": (
        lambda path: LightSecAggWorkflow(5, active=True, timeout=9, trace=path),
        active("lightsecagg-active", NODES),
    ),
}


@pytest.mark.requirement("TRC-02", "TRC-03")
@pytest.mark.parametrize("name", CASES)
def test_the_trace_of_a_workflow_conforms(name: str, tmp_path: Path) -> None:
    workflow, mod = CASES[name]
    path = tmp_path / "trace"
    trainers = models(6, (3, 4), (5,))
    node = list(trainers)[2]
    grid = Grid(apps(mod, trainers), replied={(at, node): lost for at in range(2, 9)})
    run(workflow(str(path)), grid, [np.zeros((3, 4), np.float32), np.zeros(5, np.float32)], rounds=2)
    found = list(rounds.check(files.read(path, rounds.PROTOCOLS)))
    assert [(each.finding, each.complete, each.head.round) for each in found] == [(None, True, 1), (None, True, 2)]
    missing = [entry.missing for entry in files.read(path, rounds.PROTOCOLS) if isinstance(entry, files.Closed)]
    assert (2,) in missing
    text = path.read_text(encoding="ascii")
    assert all(array.tobytes().hex() not in text for each in trainers.values() for array in each.arrays)
