"""The server: the workflow stands where Flower's ``SecAggPlusWorkflow`` would."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flwr.app import Context
from flwr.common import ndarrays_to_parameters
from flwr.server import Grid, LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow
from flwr.server.workflow import SecAggPlusWorkflow as OwnWorkflow
from flwr.serverapp import ServerApp

from secagg_spec.flower import LightSecAggWorkflow, SecAggPlusWorkflow, SecAggWorkflow

from . import task

app = ServerApp()


def workflow(protocol: str, timeout: float, log: str | None) -> Callable[[Grid, Context], None] | None:
    """Return the workflow of a round of training; None for that of Flower, in which the server sees each model."""
    if protocol == "none":
        return None
    made: Callable[[Grid, Context], None]
    match protocol:
        case "own":
            made = OwnWorkflow(0.7, 0.6, max_weight=task.MOST, timeout=timeout)
        case "secaggplus":
            made = SecAggPlusWorkflow(0.7, 0.6, max_weight=task.MOST, timeout=timeout, participation=log)
        case "secagg":
            made = SecAggWorkflow(0.6, most=task.MOST, timeout=timeout, participation=log)
        case "lightsecagg":
            made = LightSecAggWorkflow(0.6, most=task.MOST, timeout=timeout, participation=log)
        case _:
            raise ValueError(f"protocol = {protocol!r}: must be secaggplus, secagg, lightsecagg, own or none")

    def timed(grid: Grid, context: Context) -> None:
        start = time.perf_counter()
        made(grid, context)
        print(f"{protocol}: the round took {time.perf_counter() - start:.2f} s", flush=True)

    return timed


@app.main()  # type: ignore[misc, untyped-decorator, unused-ignore]
def main(grid: Grid, context: Context) -> None:
    """Train, and print how good the model is after each round."""
    config = context.run_config
    tested = task.samples(str(config["data"]), train=False)
    clients, connected = int(config["clients"]), len(list(grid.get_node_ids()))
    if connected < clients:
        more = f"in a simulation, --federation-config 'num-supernodes={clients}' starts so many"
        print(f"{connected} of {clients} clients are connected, and training waits for the others: {more}", flush=True)

    def evaluate(round: int, arrays: task.Arrays, _: Any) -> tuple[float, dict[str, float]]:
        loss, accuracy = task.test(task.with_arrays(task.model(), arrays), tested)
        print(f"round {round}: loss {loss:.4f}, accuracy {accuracy:.4f}", flush=True)
        return loss, {"accuracy": accuracy}

    strategy = FedAvg(
        fraction_evaluate=0.0,
        min_available_clients=clients,
        initial_parameters=ndarrays_to_parameters(task.arrays_of(task.model())),
        evaluate_fn=evaluate,
    )
    legacy = LegacyContext(context, ServerConfig(num_rounds=int(config["rounds"])), strategy)
    log = str(config["log"]) or None
    DefaultWorkflow(fit_workflow=workflow(str(config["protocol"]), float(config["timeout"]), log))(grid, legacy)
