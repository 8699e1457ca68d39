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

import numpy as np

from tests.engine.nodes import Grid, apps, models, run, side_by_side


def main(numbers: int = 1_000_000, clients: int = 10) -> None:
    """Print one line for each protocol."""
    rows = side_by_side(list(models(clients)))
    print(f"{clients} clients, {numbers} numbers")
    print("workflow            clients s  server s   MB       largest error of the mean")
    for name, (workflow, mod) in rows.items():
        trainers = models(clients, (numbers,))
        grid = Grid(apps(mod, trainers))
        total = sum(each.examples for each in trainers.values())
        exact = sum(each.examples * each.arrays[0].astype(np.float64) for each in trainers.values()) / total
        start = time.process_time()
        found, _ = run(workflow, grid, [np.zeros(numbers, np.float32)])
        server = time.process_time() - start - grid.seconds - grid.carrying
        error = float(np.abs(found[0] - exact).max())
        print(f"{name:<19} {grid.seconds:9.2f} {server:9.2f} {grid.bytes / 1e6:9.1f}   {error:.1e}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SECAGG_SPEC_HOME"] = home
        main(*map(int, sys.argv[1:]))
