"""Prints what a round costs beside Flower's own workflow: seconds of processor time, and bytes in both directions.

    python -m tests.engine.compare [NUMBERS] [CLIENTS]

All parties run in one process, one after another, on the same models; nothing is sent over a network, and no process is
started. The same neighbours and the same threshold for all.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

import numpy as np
from flwr.client.mod import secaggplus_mod as own_mod
from flwr.server.workflow import SecAggPlusWorkflow as OwnWorkflow

from secagg_spec.flower import LightSecAggWorkflow, SecAggPlusWorkflow, SecAggWorkflow, lightsecagg_mod, secaggplus_mod
from tests.engine.nodes import Grid, apps, models, run


def main(numbers: int = 1_000_000, clients: int = 10) -> None:
    """Print one line for each protocol."""
    holders, threshold = (7 * clients // 10) | 1, 6 * clients // 10
    rows: dict[str, tuple[Any, Any]] = {
        "Flower SecAgg+": (OwnWorkflow(holders, threshold), own_mod),
        "SecAgg+": (SecAggPlusWorkflow(holders, threshold), secaggplus_mod),
        "SecAgg": (SecAggWorkflow(threshold), secaggplus_mod),
        "LightSecAgg": (LightSecAggWorkflow(threshold + 1), lightsecagg_mod),
    }
    print(f"{clients} clients, {numbers} numbers, {holders} holders, threshold {threshold}")
    print("workflow         clients s  server s   MB       largest error of the mean")
    for name, (workflow, mod) in rows.items():
        trainers = models(clients, (numbers,))
        grid = Grid(apps(mod, trainers))
        total = sum(each.examples for each in trainers.values())
        exact = sum(each.examples * each.arrays[0].astype(np.float64) for each in trainers.values()) / total
        start = time.process_time()
        found, _ = run(workflow, grid, [np.zeros(numbers, np.float32)])
        server = time.process_time() - start - grid.seconds - grid.carrying
        error = float(np.abs(found[0] - exact).max())
        print(f"{name:<16} {grid.seconds:9.2f} {server:9.2f} {grid.bytes / 1e6:9.1f}   {error:.1e}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SECAGG_SPEC_HOME"] = home
        main(*map(int, sys.argv[1:]))
