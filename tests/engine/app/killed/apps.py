"""A client whose model is known from its number, a mod that kills its node, and a server that checks the mean."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import Grid, LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow
from flwr.serverapp import ServerApp

from secagg_spec.flower import LightSecAggWorkflow, SecAggPlusWorkflow, SecAggWorkflow, lightsecagg_mod, secagg_mod
from secagg_spec.flower.mod import RECORD

MODS = {"secaggplus": secagg_mod, "secagg": secagg_mod, "lightsecagg": lightsecagg_mod}
SIZE = 1000


def model(number: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the model of a node: the sum of some models tells which they are."""
    return np.full(SIZE, 2.0**number / 16, dtype=np.float32)


class Client(NumPyClient):  # type: ignore[misc, unused-ignore]
    """A client that gives its model."""

    def __init__(self, number: int) -> None:
        self.number = number

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        """Return the model, of 100 examples."""
        return [model(self.number)], 100, {}


def kill(context: Context) -> None:
    """Kill the node of this process, which wrote its number down, and this process."""
    pid = int(Path(str(context.node_config["pids"]), str(context.node_config["number"])).read_text(encoding="ascii"))
    os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def killing(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """Use the mod of the protocol, and kill the node of the victim before or after its step of a phase."""
    config, record = context.run_config, message.content.config_records.get(RECORD, {})
    hit = (record.get("phase"), context.node_config["number"]) == (config["phase"], config["victim"])
    if hit and not config["after"]:
        kill(context)
    reply = MODS[str(config["protocol"])](message, context, call_next)
    if hit:
        kill(context)
    return reply


class Counted:
    """A grid that counts the steps that nodes replied with in each phase."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.replies = grid, list[int]()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Ask the nodes."""
        replies = list(self.grid.send_and_receive(messages, timeout=timeout))
        records = [reply.content.config_records.get(RECORD, {}) for reply in replies if not reply.has_error()]
        self.replies.append(sum("refused" not in record for record in records))
        return replies


client = ClientApp(client_fn=lambda context: Client(int(context.node_config["number"])).to_client(), mods=[killing])
server = ServerApp()


@server.main()  # type: ignore[misc, untyped-decorator, unused-ignore]
def main(grid: Grid, context: Context) -> None:
    """Run rounds, and print one line for each."""
    config = context.run_config
    timeout, nodes = float(config["timeout"]), int(config["nodes"])
    workflow = {
        "secaggplus": lambda: SecAggPlusWorkflow(5, 3, timeout=timeout),
        "secagg": lambda: SecAggWorkflow(4, timeout=timeout),
        "lightsecagg": lambda: LightSecAggWorkflow(4, timeout=timeout),
    }[str(config["protocol"])]()

    def timed(grid: Grid, legacy: Context) -> None:
        before, start, counted = len(known.means), time.perf_counter(), Counted(grid)
        workflow(counted, legacy)
        took = time.perf_counter() - start
        if len(known.means) == before:
            print(f"KILLED no sum of {counted.replies} replies, after {took:.1f} s", flush=True)
            return
        mean, count = known.means[-1]
        whole = round(float(mean[0]) * count * 16)
        error = float(np.abs(mean - whole / 16 / count).max())
        inside = [number for number in range(nodes) if whole >> number & 1]
        right = error < 1e-5 and len(inside) == count and whole < 2**nodes
        print(f"KILLED sum of {inside}, {'right' if right else 'WRONG'}, after {took:.1f} s", flush=True)

    class Known(FedAvg):  # type: ignore[misc, unused-ignore]
        """FedAvg that keeps the means."""

        means: list[tuple[Any, int]] = []  # noqa: RUF012

        def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
            self.means.append((parameters_to_ndarrays(results[0][1].parameters)[0], len(results)))
            return super().aggregate_fit(server_round, results, failures)

    zeros = ndarrays_to_parameters([np.zeros(SIZE, np.float32)])
    known = Known(fraction_evaluate=0.0, min_available_clients=nodes, initial_parameters=zeros)
    legacy = LegacyContext(context, ServerConfig(num_rounds=int(config["rounds"])), known)
    DefaultWorkflow(fit_workflow=timed)(grid, legacy)
