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

from secagg_spec.crypto.signatures import verification_key
from secagg_spec.flower import (
    LightSecAggWorkflow,
    SecAggPlusWorkflow,
    SecAggWorkflow,
    SecureAggregationMod,
    lightsecagg_mod,
    secagg_mod,
)
from secagg_spec.flower.client import Policy
from secagg_spec.flower.records import RECORD

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


def mod(protocol: str, number: int, nodes: int) -> Any:
    """Return the mod of a protocol; in the active profiles a node signs with a key that its number gives."""
    if not protocol.endswith("active"):
        return lightsecagg_mod if protocol == "lightsecagg" else secagg_mod
    keys = [bytes([each + 1]) * 32 for each in range(nodes)]
    policy = Policy((protocol,), signing=keys[number], trusted=frozenset(map(verification_key, keys)))
    return SecureAggregationMod(policy)


def killing(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """Use the mod of the protocol, and kill the node of the victim before or after its step of a phase."""
    config, record = context.run_config, message.content.config_records.get(RECORD, {})
    number = int(context.node_config["number"])
    hit = (record.get("phase"), number) == (config["phase"], config["victim"])
    if hit and not config["after"]:
        kill(context)
    reply = mod(str(config["protocol"]), number, int(config["nodes"]))(message, context, call_next)
    if hit:
        kill(context)
    return reply


class Counted:
    """A grid that counts the nodes that are asked in each phase, and those that replied with a step."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.asked, self.replies, self.pulled = grid, list[int](), list[int](), True

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Ask nodes; what is asked after a reply was asked for is of the next phase."""
        if self.pulled:
            self.asked.append(0)
            self.replies.append(0)
        self.pulled, messages = False, list(messages)
        self.asked[-1] += len(messages)
        return list(self.grid.push_messages(messages))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Ask for replies."""
        self.pulled, replies = True, list(self.grid.pull_messages(message_ids))
        records = [reply.content.get(RECORD, {}) for reply in replies if not reply.has_error()]
        self.replies[-1] += sum("refused" not in record for record in records)
        return replies


client = ClientApp(client_fn=lambda context: Client(int(context.node_config["number"])).to_client(), mods=[killing])
server = ServerApp()


@server.main()  # type: ignore[misc, untyped-decorator, unused-ignore]
def main(grid: Grid, context: Context) -> None:
    """Run rounds, and print one line for each."""
    config = context.run_config
    timeout, nodes, log = float(config["timeout"]), int(config["nodes"]), str(config["log"]) or None
    workflow = {
        "secaggplus": lambda: SecAggPlusWorkflow(5, 3, timeout=timeout, participation=log),
        "secagg": lambda: SecAggWorkflow(4, timeout=timeout, participation=log),
        "lightsecagg": lambda: LightSecAggWorkflow(4, timeout=timeout, participation=log),
        "secagg-active": lambda: SecAggWorkflow(4, active=True, timeout=timeout, participation=log),
        "lightsecagg-active": lambda: LightSecAggWorkflow(4, active=True, timeout=timeout, participation=log),
    }[str(config["protocol"])]()

    def timed(grid: Grid, legacy: Context) -> None:
        before, start, counted = len(known.means), time.perf_counter(), Counted(grid)
        workflow(counted, legacy)
        end = f"of {counted.asked} asked with {counted.replies} replies, after {time.perf_counter() - start:.1f} s"
        if len(known.means) == before:
            print(f"KILLED no sum {end}", flush=True)
            return
        mean, count = known.means[-1]
        whole = round(float(mean[0]) * count * 16)
        error = float(np.abs(mean - whole / 16 / count).max())
        inside = [number for number in range(nodes) if whole >> number & 1]
        right = error < 1e-5 and len(inside) == count and whole < 2**nodes
        print(f"KILLED sum of {inside}, {'right' if right else 'WRONG'}, {end}", flush=True)

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
