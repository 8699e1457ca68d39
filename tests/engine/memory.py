"""Prints the memory that a round takes at its peak, of a client and of the server, in sizes of the model.

    python -m tests.engine.memory [NUMBERS] [CLIENTS]

All parties are in one process, and what they take is counted where Python and numpy allocate it. What a client keeps
between messages is not the server's; messages on their way are, and the model and the copies that Flower makes.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_to_proto

from tests.engine.nodes import Grid, Trainer, apps, run, side_by_side


class Forgetful(list[Any]):
    """A list that keeps nothing, in the place of the replies that a grid keeps for tests."""

    def append(self, one: Any) -> None:
        """Forget it."""


def peaks_of(workflow: Any, mod: Any, model: Any, clients: int) -> dict[str, int]:
    """Return the bytes that a client and the server take at their peaks in a round."""
    peaks, kept = {"client": 0, "server": 0}, dict[int, int]()

    def ended(who: str, before: int) -> int:
        now, peak = tracemalloc.get_traced_memory()
        peaks[who] = max(peaks[who], peak - before)
        tracemalloc.reset_peak()
        return now

    def measured(node: int, app: ClientApp) -> Callable[[Message, Context], Message]:
        def call(message: Message, context: Context) -> Message:
            gc.collect()  # what the last client left in circles: its process would have ended
            before = ended("server", sum(kept.values()))
            reply = app(message, context)
            ended("client", before)
            kept[node] = int(recorddict_to_proto(context.state).ByteSize())
            return reply

        return call

    grid = Grid(apps(mod, {number: Trainer([model], 100) for number in range(1, clients + 1)}))
    grid.replies = Forgetful()
    grid.apps = {node: measured(node, app) for node, app in grid.apps.items()}
    tracemalloc.start()
    run(workflow, grid, [model])
    ended("server", sum(kept.values()))
    tracemalloc.stop()
    return peaks


def main(numbers: int = 10_000_000, clients: int = 10) -> None:
    """Print one line for each workflow."""
    print(f"{clients} clients, {numbers} numbers in binary32; peaks in sizes of the model", flush=True)
    model = np.random.default_rng(0).normal(size=numbers).astype(np.float32)
    for name, (workflow, mod) in side_by_side(range(1, clients + 1)).items():
        size = {who: count / model.nbytes for who, count in peaks_of(workflow, mod, model, clients).items()}
        print(f"{name:<20} client {size['client']:5.1f}   server {size['server']:5.1f}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SECAGG_SPEC_HOME"] = home
        main(*map(int, sys.argv[1:]))
