"""Prints the wall time of rounds in Flower's simulation (Ray), beside Flower's own workflow in the same run.

    python -m tests.engine.simulated [NUMBERS] [CLIENTS] [ROUNDS]

The first round of each workflow starts Ray's processes and imports, and does not count. Clients train nothing: what is
measured is the aggregation, with the same neighbours and threshold for all. It needs ``flwr[simulation]``.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow
from flwr.serverapp import ServerApp

from tests.engine.nodes import side_by_side

RESOURCES = {"init_args": {"num_cpus": 2}, "client_resources": {"num_cpus": 1}}


class Client(NumPyClient):  # type: ignore[misc, unused-ignore]
    """A client that gives the model back, moved by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        """Return the model, of 100 examples."""
        return [parameters[0] + np.float32(self.number / 100)], 100, {}


def seconds(workflow: Any, mod: Any, numbers: int, clients: int, rounds: int) -> list[float]:
    """Return the wall time of each round; each must move the mean as the clients did."""
    took: list[float] = []
    given: list[Any] = [np.zeros(numbers, np.float32)]
    server = ServerApp()

    class Checked(FedAvg):  # type: ignore[misc, unused-ignore]
        """FedAvg that looks at each mean."""

        def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
            found = super().aggregate_fit(server_round, results, failures)
            assert len(results) == clients, f"{len(results)} of {clients} are in the sum"
            return found

    def timed(grid: Any, context: Context) -> None:
        start = time.perf_counter()
        workflow(grid, context)
        took.append(time.perf_counter() - start)

    @server.main()  # type: ignore[misc, untyped-decorator, unused-ignore]
    def main(grid: Any, context: Context) -> None:
        strategy = Checked(
            fraction_evaluate=0.0,
            min_fit_clients=clients,
            min_available_clients=clients,
            initial_parameters=ndarrays_to_parameters(given),
        )
        legacy = LegacyContext(context, ServerConfig(num_rounds=rounds), strategy)
        DefaultWorkflow(fit_workflow=timed)(grid, legacy)

    app = ClientApp(client_fn=lambda c: Client(int(c.node_config["partition-id"])).to_client(), mods=[mod])
    from flwr.simulation import run_simulation

    run_simulation(server, app, clients, backend_config=RESOURCES)
    assert len(took) == rounds, f"{len(took)} of {rounds} rounds ended"
    return took


def main(numbers: int = 1_000_000, clients: int = 10, rounds: int = 6) -> None:
    """Print one line for each workflow."""
    if find_spec("ray") is None:
        print("not measured: Flower's simulation needs Ray: pip install 'flwr[simulation]'")
        return
    print(f"{clients} clients, {numbers} numbers, median of {rounds - 1} rounds after the first", flush=True)
    own = 0.0
    rows = side_by_side(range(1, clients + 1), lambda context: int(context.node_config["partition-id"]) + 1)
    for name, (workflow, mod) in rows.items():
        took = seconds(workflow, mod, numbers, clients, rounds)
        median = statistics.median(took[1:])
        own = own or median
        print(f"{name:<20} {median:6.2f} s   {median / own:5.2f} of Flower's   first {took[0]:.1f} s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["SECAGG_SPEC_HOME"] = home
        main(*map(int, sys.argv[1:]))
