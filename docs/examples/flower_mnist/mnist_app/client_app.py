"""The client: the mod stands where Flower's ``secaggplus_mod`` would, and nothing else of the app knows about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flwr.app import Context, Message
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod as own_mod
from flwr.clientapp import ClientApp

from secagg_spec.flower import lightsecagg_mod, secagg_mod, secaggplus_mod

from . import task

MODS = {"secaggplus": secaggplus_mod, "secagg": secagg_mod, "lightsecagg": lightsecagg_mod, "own": own_mod}


class Client(NumPyClient):  # type: ignore[misc, unused-ignore]
    """A client with its samples."""

    def __init__(self, data: task.Samples, seed: int) -> None:
        self.data, self.seed = data, seed

    def fit(self, parameters: task.Arrays, config: dict[str, Any]) -> tuple[task.Arrays, int, dict[str, Any]]:
        """Train one epoch from the model of the server."""
        net = task.with_arrays(task.model(), parameters)
        task.train(net, self.data, self.seed)
        return task.arrays_of(net), len(self.data[1]), {}


def client_fn(context: Context) -> Any:
    """Return the client of a node."""
    number, clients = int(context.node_config["partition-id"]), int(context.run_config["clients"])
    data = task.part(task.samples(str(context.run_config["data"]), train=True), number, clients)
    return Client(data, number).to_client()


def chosen(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """Use the mod that the configuration of the run names; an app of one protocol names its mod below instead."""
    mod = MODS.get(str(context.run_config["protocol"]))
    return call_next(message, context) if mod is None else mod(message, context, call_next)


app = ClientApp(client_fn=client_fn, mods=[chosen])
