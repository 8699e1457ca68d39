"""LightSecAgg of FedML 0.9.6 at message level: its released managers, and our own network, in one process.

``FedMLServerManager``, ``LightSecAggAggregator`` and ``FedMLClientManager`` run as released. Our parts are:

- the network, which replaces ``GRPCCommManager``: it delivers messages one by one, pickled as in gRPC;
- the trainers, which train nothing: a client's trainer returns the given update, the server's keeps the average;
- placeholders for torch (one class, which holds an array as binary32, as ``torch.Tensor`` does), for wandb, and for
  the services of ``fedml.mlops``, which report to a dashboard.

It runs in FedML's environment.
"""

from __future__ import annotations

import pickle
import random
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import bare
import numpy as np

PRIME, BITS = 2**15 - 19, 10
"""``prime_number`` and ``precision_parameter`` from the examples of the release."""
SERVER = 0
"""The rank of the server; a user's rank is its number plus 1."""


class Tensor(np.ndarray):
    """Replaces ``torch.Tensor``: binary32 numbers, and the three methods that the released code calls."""

    def __new__(cls, values: Any) -> Tensor:
        """Return the values as binary32."""
        return np.array(values, dtype=np.float32).view(cls)

    def cpu(self) -> Tensor:
        """Return the tensor."""
        return self

    def detach(self) -> Tensor:
        """Return the tensor."""
        return self

    def numpy(self) -> Any:
        """Return an array."""
        return np.asarray(self)


class Stuck(Exception):
    """No message is in transit, and the round has no result: the released parties would wait forever."""


class Network:
    """Carry messages between the parties of one round; a random draw may select the link of the next message.

    Each link, from one party to another, is first-in first-out. Messages to a party that is not connected are lost.

    Parameters
    ----------
    drop
        Users by phase: ``share``, ``upload`` and ``recover``. The first message with which a user would take part in a
        phase is lost, and so are all later messages from and to the user.
    order
        Draws the links; None delivers messages in the order in which they are sent.
    """

    current: Network

    def __init__(self, drop: Mapping[str, Collection[int]], order: random.Random | None) -> None:
        self.parties: dict[int, Any] = {}
        self._links: dict[tuple[int, int], deque[bytes]] = {}
        self._waiting: list[tuple[int, int]] = []
        self._drop, self._order = drop, order
        self._dropped: set[int] = set()
        self._came: list[Any] = []

    def send(self, message: Any) -> None:
        """Accept a message, unless its sender or receiver has dropped out or is not connected."""
        link = sender, receiver = int(message.get_sender_id()), int(message.get_receiver_id())
        if sender - 1 in self._drop.get(PHASES.get(message.get_type(), ""), ()):
            self._dropped.add(sender)
        if receiver in self.parties and not self._dropped & set(link):
            self._links.setdefault(link, deque()).append(pickle.dumps(message))
            self._waiting.append(link)

    def deliver(self) -> bool:
        """Deliver the next message; return whether there was one."""
        if not self._waiting:
            return False
        link = self._order.choice(self._waiting) if self._order else self._waiting[0]
        self._waiting.remove(link)
        message = pickle.loads(self._links[link].popleft())  # noqa: S301
        if not self._dropped & set(link):
            self._came.append(pickle.loads(pickle.dumps(message)))  # noqa: S301
            self.parties[link[1]].receive(message)
        return True

    def seen(self, party: int) -> list[Any]:
        """Return the messages that came to a party, as they came, and then those that are still on their way to it."""
        came = [message for message in self._came if int(message.get_receiver_id()) == party]
        waiting = [text for link, texts in self._links.items() if link[1] == party for text in texts]
        return came + [pickle.loads(text) for text in waiting]  # noqa: S301


class CommManager:
    """Replaces ``GRPCCommManager``: it passes a manager's messages to the network of the round."""

    def __init__(self, client_rank: int = 0, **_: Any) -> None:
        self._rank = client_rank
        self._observer: Any = None
        self._network = Network.current

    def add_observer(self, observer: Any) -> None:
        """Register the manager."""
        self._observer = observer

    def handle_receive_message(self) -> None:
        """Tell the manager that it is connected, as FedML's classes do; messages arrive through `receive`."""
        self._network.parties[self._rank] = self
        ready = Message(CONNECTION_IS_READY, self._rank, self._rank)
        self._observer.receive_message(CONNECTION_IS_READY, ready)

    def receive(self, message: Any) -> None:
        """Pass a message to the manager."""
        self._observer.receive_message(message.get_type(), message)

    def send_message(self, message: Any) -> None:
        """Send the manager's message."""
        self._network.send(message)

    def stop_receive_message(self) -> None:
        """Do nothing: the round is already over."""


def load() -> None:
    """Make the released modules importable."""
    names = ["fedml", "fedml.core", "fedml.core.mpc", "fedml.core.distributed", "fedml.core.distributed.communication"]
    names += ["fedml.core.mlops", "fedml.cross_silo", "fedml.cross_silo.lightsecagg"]
    bare.packages(bare.folder_of("fedml"), names)
    bare.placeholders(["fedml.mlops", "fedml.core.mlops.mlops_configs", "wandb"])
    bare.module("torch", Tensor=Tensor)
    bare.module("fedml.core.distributed.communication.grpc")
    bare.module("fedml.core.distributed.communication.grpc.grpc_comm_manager", GRPCCommManager=CommManager)


load()

_LIGHTSECAGG = "fedml.cross_silo.lightsecagg"
(Message,) = bare.taken("fedml.core.distributed.communication.message", "Message")
(LightSecAggAggregator,) = bare.taken(f"{_LIGHTSECAGG}.lsa_fedml_aggregator", "LightSecAggAggregator")
(FedMLClientManager,) = bare.taken(f"{_LIGHTSECAGG}.lsa_fedml_client_manager", "FedMLClientManager")
(FedMLServerManager,) = bare.taken(f"{_LIGHTSECAGG}.lsa_fedml_server_manager", "FedMLServerManager")
(MyMessage,) = bare.taken(f"{_LIGHTSECAGG}.lsa_message_define", "MyMessage")

CONNECTION_IS_READY = MyMessage.MSG_TYPE_CONNECTION_IS_READY
PHASES = {
    MyMessage.MSG_TYPE_C2S_SEND_ENCODED_MASK_TO_SERVER: "share",
    MyMessage.MSG_TYPE_C2S_SEND_MODEL_TO_SERVER: "upload",
    MyMessage.MSG_TYPE_C2S_SEND_MASK_TO_SERVER: "recover",
}
"""The phase in which a client sends a message, by its type."""
MASKS = {MyMessage.MSG_ARG_KEY_ENCODED_MASK, MyMessage.MSG_ARG_KEY_AGGREGATE_ENCODED_MASK}
"""The parts of messages that are shares of masks: lists or arrays of elements, which nothing seals."""


class Trainer:
    """Replaces the trainers: it holds a model of one or two layers, and trains nothing."""

    def __init__(self, model: Sequence[float]) -> None:
        self.model = layers(model)
        self.average: list[float] | None = None

    def get_model_params(self) -> dict[str, Tensor]:
        """Return the model before the round, which determines the numbers of elements."""
        return {name: Tensor(values) for name, values in self.model.items()}

    def set_model_params(self, model: Mapping[str, Any]) -> None:
        """Keep the average."""
        self.average = [float(value) for layer in model.values() for value in np.ravel(layer)]

    def update_dataset(self, client_index: int) -> None:
        """Do nothing."""

    def update_model(self, model: Mapping[str, Any]) -> None:
        """Do nothing."""

    def train(self, round_idx: int) -> tuple[dict[str, Any], int]:
        """Return the update, and a number of samples."""
        return {name: values.copy() for name, values in self.model.items()}, 1

    def test(self, *_: Any) -> dict[str, float]:
        """Return the measures of an empty test."""
        return {"test_correct": 0.0, "test_total": 1.0, "test_loss": 0.0}


def layers(values: Sequence[float]) -> dict[str, Any]:
    """Return numbers as a model: one layer, and a second layer if there are more than two numbers."""
    numbers = np.array(values, dtype=np.float64)
    return {"first": numbers[:2], "second": numbers[2:]} if len(numbers) > 2 else {"first": numbers}


@dataclass(frozen=True)
class Outcome:
    """The result of the server's trainer, the users whose masked models it includes, and what came to a party."""

    average: list[float]
    contributors: list[int]
    seen: list[Any] = field(default_factory=list)


def run_round(
    updates: Sequence[Sequence[float]],
    d: int,
    drop: Mapping[str, Collection[int]],
    order: random.Random | None,
    *,
    twice: bool = False,
    watched: int = SERVER,
) -> Outcome:
    """Return the outcome of a round.

    The server starts first, then the clients one after another; each reports once that it is online. With `twice`, all
    clients are connected when the server queries them, so each reports on its own and in answer to the server.
    `watched` is the rank of the party whose messages the outcome has.

    Raises
    ------
    Stuck
        The parties wait, and no message is in transit. Exceptions of the released code are passed on.
    """
    network = Network.current = Network(drop, order)
    clients = [_client(rank, len(updates), update) for rank, update in enumerate(updates, 1)]
    trainer = Trainer([0.0] * d)
    server = _server(len(updates), trainer)
    if twice:
        network.parties.update({client.rank: client.com_manager for client in clients})
    for manager in (server, *clients):
        manager.run()
    while trainer.average is None:
        if not network.deliver():
            raise Stuck(waiting(server.aggregator))
    return Outcome(trainer.average, sorted(server.aggregator.model_dict), network.seen(watched))


def read(message: Any) -> tuple[list[list[int]], list[bytes]]:
    """Return what a message holds: shares of masks and masked models as vectors modulo the prime, and all else."""
    vectors, others = list[list[int]](), list[bytes]()
    masked = message.get_type() == MyMessage.MSG_TYPE_C2S_SEND_MODEL_TO_SERVER
    for name, value in message.get_params().items():
        if name in MASKS:
            vectors.append([int(number) for number in np.ravel(value)])
        elif name == MyMessage.MSG_ARG_KEY_MODEL_PARAMS and masked:
            vectors += [[int(number) for number in np.ravel(layer)] for layer in value.values()]
        else:
            others.append(pickle.dumps(value))
    return vectors, others


def waiting(aggregator: Any) -> str:
    """Return what the server waits for, according to its own state."""
    for what, arrived in (
        ("masked models", aggregator.flag_client_model_uploaded_dict),
        ("aggregate encoded masks", aggregator.flag_client_aggregate_encoded_mask_uploaded_dict),
    ):
        missing = [user for user, there in arrived.items() if not there]
        if 0 < len(missing) < len(arrived):
            return f"no message is on its way, and the server waits without end for the {what} of users {missing}"
    return "no message is on its way, and the server waits without end for masked models"


def settings(clients: int, ids: Sequence[int]) -> SimpleNamespace:
    """Return the arguments of a manager, for the first of two rounds."""
    return SimpleNamespace(
        comm_round=2, client_id_list=str(list(ids)), worker_num=clients, client_num_in_total=clients,
        client_num_per_round=clients, prime_number=PRIME, precision_parameter=BITS, grpc_ipconfig_path="", dataset="",
        frequency_of_the_test=1, enable_wandb=False, run_id=0,
    )  # fmt: skip


def _server(clients: int, trainer: Trainer) -> Any:
    arguments = settings(clients, range(1, clients + 1))
    data = dict.fromkeys(range(clients))
    aggregator = LightSecAggAggregator(None, None, 0, data, data, data, clients, None, arguments, trainer)
    return FedMLServerManager(arguments, aggregator, None, SERVER, clients, "GRPC")


def _client(rank: int, clients: int, update: Sequence[float]) -> Any:
    return FedMLClientManager(settings(clients, [rank]), Trainer(update), None, rank, clients, "GRPC")
