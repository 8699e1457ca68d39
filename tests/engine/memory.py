"""Prints the memory that a round takes at its peak, of a client and of the server, in sizes of the model.

    python -m tests.engine.memory [NUMBERS] [CLIENTS]

All parties are in one process, and what each takes beyond what it began with is counted where Python and numpy
allocate it. Messages that wait for the server belong to the server.
"""

from __future__ import annotations

import os
import sys
import tempfile
import tracemalloc
from typing import Any

import numpy as np

from tests.engine.nodes import Grid, Trainer, apps, run, side_by_side


def main(numbers: int = 10_000_000, clients: int = 10) -> None:
    """Print one line for each workflow."""
    print(f"{clients} clients, {numbers} numbers in binary32; peaks in sizes of the model", flush=True)
    model = np.random.default_rng(0).normal(size=numbers).astype(np.float32)
    for name, (workflow, mod) in side_by_side(range(1, clients + 1)).items():
        peaks = {"client": 0, "server": 0}

        def measured(app: Any, peaks: dict[str, int] = peaks) -> Any:
            def call(*given: Any) -> Any:
                before, peak = tracemalloc.get_traced_memory()
                peaks["server"] = max(peaks["server"], peak)
                tracemalloc.reset_peak()
                reply = app(*given)
                peaks["client"] = max(peaks["client"], tracemalloc.get_traced_memory()[1] - before)
                tracemalloc.reset_peak()
                return reply

            return call

        trainers = {number: Trainer([model], 100) for number in range(1, clients + 1)}
        grid = Grid({node: measured(app) for node, app in apps(mod, trainers).items()})
        tracemalloc.start()
        run(workflow, grid, [model])
        peaks["server"] = max(peaks["server"], tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        size = {who: bytes / model.nbytes for who, bytes in peaks.items()}
        print(f"{name:<20} client {size['client']:5.1f}   server {size['server']:5.1f}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SECAGG_SPEC_HOME"] = home
        main(*map(int, sys.argv[1:]))
