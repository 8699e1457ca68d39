"""A whole round of OpenFL 1.9's secure aggregation: released collaborators and the released setup, in one process.

Each collaborator is a released ``Collaborator`` with ``SecAggBootstrapping``. The aggregator's side consists of the
released ``SecAggSetup``, ``TensorDB`` and ``SecureWeightedAverage``. Our parts are:

- the network, which replaces the gRPC clients and servers: it passes named tensors in their ProtoBuf form, and one
  collaborator acts at a time. A collaborator that asks for a tensor waits until it is available;
- the task, which trains nothing: it returns the given update, in binary32 as OpenFL sends it;
- what ``Aggregator`` does between these: it hands out tensors, takes the results of a task, and weights a
  collaborator by its share of the examples.

It runs in OpenFL's environment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bare
import numpy as np

AGGREGATOR, TASK, LAYER, ROUND = "aggregator", "train", "layer", 0
STAGES = ("secagg_generate_keys", "secagg_generate_ciphertexts", "secagg_decrypt_ciphertexts")
"""The names of a collaborator's messages in the setup, in order."""


def load() -> None:
    """Make the released modules importable without those for networks, dashboards, plans and other pipelines."""
    names = ["openfl", "openfl.component", "openfl.component.collaborator", "openfl.transport", "openfl.transport.grpc"]
    bare.packages(bare.folder_of("openfl"), names)
    bare.placeholders(["psutil", "tensorboardX", "sklearn", "openfl.transport.grpc.aggregator_client"])
    bare.placeholders(["openfl.federated", "openfl.federated.data", "openfl.federated.data.loader"])


load()

(Collaborator,) = bare.taken("openfl.component.collaborator.collaborator", "Collaborator")
(TensorDB,) = bare.taken("openfl.databases", "TensorDB")
(SecureWeightedAverage,) = bare.taken("openfl.interface.aggregation_functions", "SecureWeightedAverage")
NoCompressionPipeline, TensorCodec = bare.taken("openfl.pipelines", "NoCompressionPipeline", "TensorCodec")
(NamedTensor,) = bare.taken("openfl.protocols.base_pb2", "NamedTensor")
(construct_named_tensor,) = bare.taken("openfl.protocols.utils", "construct_named_tensor")
TensorKey, change_tags = bare.taken("openfl.utilities", "TensorKey", "change_tags")
(SecAggSetup,) = bare.taken("openfl.utilities.secagg.bootstrap", "SecAggSetup")
(SingletonABCMeta,) = bare.taken("openfl.utilities.types", "SingletonABCMeta")


class Halted(Exception):
    """The round has no result; the message names a collaborator's exception, or what everybody waits for."""


@dataclass(frozen=True)
class Outcome:
    """The average, and the users whose tensors it includes."""

    average: list[float]
    contributors: list[int]


class Experiment:
    """N collaborators and the aggregator's side after the setup, which precedes all rounds and serves all of them.

    Parameters
    ----------
    size
        N.
    drop
        Users by setup message (`STAGES`): they drop out just before they would send it.

    Raises
    ------
    Halted
        The setup did not finish.
    """

    def __init__(self, size: int, drop: Mapping[str, Collection[int]]) -> None:
        self._names = [name_of(user) for user in range(size)]
        self._dropped = {user for users in drop.values() for user in users}
        self._aggregator = Aggregator(self._names)
        network = Network(self._aggregator, {name_of(user): stage for stage, users in drop.items() for user in users})
        self._network = network
        self._users = [User(name, network) for name in self._names]
        network.run(self._users)
        self._databases = [self._aggregator.database, *(user.database for user in self._users)]
        self._after_setup = [database.tensor_db for database in self._databases]

    def round(self, updates: Sequence[Sequence[float]], weights: Sequence[int], dropped: Collection[int]) -> Outcome:
        """Return the outcome of the first round; afterwards, the experiment is again in its state after the setup.

        Parameters
        ----------
        updates, weights
            N vectors of numbers, and the numbers of examples of the N users.
        dropped
            The users that send no results.

        Raises
        ------
        Halted
            There is no average. Other exceptions of the released code are passed on.
        """
        try:
            for user, (collaborator, update) in enumerate(zip(self._users, updates, strict=True)):
                if user not in self._dropped | set(dropped):
                    collaborator.train(update)
            return self._aggregator.average(dict(zip(self._names, weights, strict=True)))
        finally:
            for database, frame in zip(self._databases, self._after_setup, strict=True):
                database.tensor_db = frame

    def seen(self, viewer: int | None) -> list[Any]:
        """Return the named tensors that came to a user, or to the aggregator for None."""
        return self._network.came.get(AGGREGATOR if viewer is None else name_of(viewer), [])


def name_of(user: int) -> str:
    """Return the name of a collaborator; names sort in the order of the users."""
    return f"user{user:03}"


class Aggregator:
    """The aggregator's side: the released setup and database, and the glue between them from ``Aggregator``.

    OpenFL has one ``SecureWeightedAverage`` per process, with the masks of its experiment; here each aggregator has its
    own.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.database = TensorDB()
        self._names = list(names)
        self._setup = SecAggSetup(AGGREGATOR, self._names, self.database)
        self._codec = TensorCodec(NoCompressionPipeline())
        SingletonABCMeta._instances.pop(SecureWeightedAverage, None)
        self._function = SecureWeightedAverage()

    def take(self, sender: str, tensors: Sequence[Any]) -> None:
        """Take tensors of the setup, or the results of the task, as ``send_local_task_results`` does."""
        if not self._setup.process_secagg_setup_tensors(tensors):
            for tensor in tensors:
                self._store(sender, tensor)

    def _store(self, sender: str, tensor: Any) -> None:
        """Store a result under the sender's tag, as ``_process_named_tensor`` does."""
        key = TensorKey(tensor.name, AGGREGATOR, tensor.round_number, tensor.report, tuple(tensor.tags))
        metadata = [
            {"int_to_float": m.int_to_float, "int_list": m.int_list, "bool_list": m.bool_list}
            for m in tensor.transformer_metadata
        ]
        key, values = self._codec.decompress(key, tensor.data_bytes, metadata, require_lossless=True)
        self.database.cache_tensor({key._replace(tags=change_tags(key.tags, add_field=sender)): values})

    def find(self, name: str, tags: tuple[str, ...]) -> Any:
        """Return a tensor of the setup as a named tensor, or None if it is not available yet."""
        key = TensorKey(name, AGGREGATOR, -1, False, tags)
        values = self.database.get_tensor_from_cache(key)
        return None if values is None else construct_named_tensor(key, json.dumps(values.tolist()).encode(), {}, True)

    def average(self, weights: Mapping[str, int]) -> Outcome:
        """Return the average, with each user weighted by its share of the examples."""
        total = sum(weights.values())
        shares = {name: weight / total for name, weight in weights.items()}
        key = TensorKey(LAYER, AGGREGATOR, ROUND, False, ("trained",))
        values = self.database.get_aggregated_tensor(key, shares, self._function)
        if values is None:
            raise Halted("the aggregator waits until all collaborators have sent their results")
        return Outcome([float(value) for value in values], list(range(len(self._names))))


class User:
    """A released collaborator with its task, in its own thread."""

    def __init__(self, name: str, network: Network) -> None:
        self.name, self._runner = name, Runner()
        task = {TASK: {"function": TASK, "kwargs": {}}}
        self._collaborator = Collaborator(
            name, AGGREGATOR, "", Client(name, network), self._runner, task, callbacks=[], secure_aggregation=True
        )

    @property
    def database(self) -> Any:
        """The collaborator's own database."""
        return self._collaborator.tensor_db

    def set_up(self) -> None:
        """Take part in the setup."""
        self._collaborator.callbacks.on_experiment_begin()

    def train(self, update: Sequence[float]) -> None:
        """Take part in the first round."""
        self._runner.update = np.array(update, dtype=np.float32)
        self._collaborator.do_task(TASK, ROUND)


class Runner:
    """Replaces a ``TaskRunner``, and trains nothing."""

    def __init__(self) -> None:
        self.update: Any = None

    def set_optimizer_treatment(self, treatment: str) -> None:
        """Do nothing."""

    def get_required_tensorkeys_for_function(self, name: str, **_: Any) -> list[Any]:
        """Return no keys, because none are needed."""
        return []

    def get_train_data_size(self) -> int:
        """Return a number of examples, which the aggregator's side ignores, since it gets the weights directly."""
        return 1

    def train(self, col_name: str, round_num: int, input_tensor_dict: Any, **_: Any) -> tuple[Any, Any]:
        """Return the update as the tensor for the aggregator."""
        return {TensorKey(LAYER, col_name, round_num, False, ("trained",)): self.update}, {}


class Gone(Exception):
    """A collaborator drops out."""


class Client:
    """Replaces ``AggregatorGRPCClient``: every tensor is converted to bytes and back."""

    def __init__(self, name: str, network: Network) -> None:
        self._name, self._network = name, network

    def send_local_task_results(self, round_number: int, stage: str, data_size: int, tensors: Sequence[Any]) -> None:
        """Send tensors to the aggregator."""
        self._network.send(self._name, stage, [on_the_wire(tensor) for tensor in tensors])

    def get_aggregated_tensor(self, name: str, round_number: int, report: bool, tags: Any, lossless: bool) -> Any:
        """Return a tensor of the setup once it is available."""
        tensor = on_the_wire(self._network.wait_for(self._name, name, tuple(tags)))
        self._network.came.setdefault(self._name, []).append(tensor)
        return tensor


def on_the_wire(tensor: Any) -> Any:
    """Return a named tensor as its receiver decodes it."""
    return NamedTensor.FromString(tensor.SerializeToString())


class Network:
    """Let the collaborators act in turn: one continues until it waits for a tensor, drops out or is done.

    `came` has the named tensors that came to the aggregator and to each collaborator.
    """

    def __init__(self, aggregator: Aggregator, drop: Mapping[str, str]) -> None:
        self._aggregator, self._drop = aggregator, drop
        self._turn = threading.Condition()
        self._waiting: set[str] = set()
        self._playing = 0
        self._halted = ""
        self.came: dict[str, list[Any]] = {}

    def run(self, users: Sequence[User]) -> None:
        """Run all users through the setup.

        Raises
        ------
        Halted
            A user raised an exception, or the remaining users wait for a tensor that never arrives.
        """
        threads = [threading.Thread(target=self._play, args=(user,)) for user in users]
        self._playing = len(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._halted:
            raise Halted(self._halted)

    def _play(self, user: User) -> None:
        with self._turn:
            try:
                user.set_up()
            except Gone:
                pass
            except Exception as error:
                self._halted = self._halted or f"{user.name}: {type(error).__name__}: {error}"
            self._playing -= 1
            self._wake()

    def _wake(self) -> None:
        self._waiting.clear()
        self._turn.notify_all()

    def send(self, sender: str, stage: str, tensors: Sequence[Any]) -> None:
        """Pass tensors to the aggregator, unless their sender drops out."""
        if self._drop.get(sender) == stage:
            raise Gone
        with self._turn:
            self.came.setdefault(AGGREGATOR, []).extend(tensors)
            self._aggregator.take(sender, tensors)
            self._wake()

    def wait_for(self, receiver: str, name: str, tags: tuple[str, ...]) -> Any:
        """Return a tensor once it is available; until then, let the others run."""
        while (found := self._aggregator.find(name, tags)) is None:
            self._waiting.add(receiver)
            if self._halted or len(self._waiting) == self._playing:
                self._halted = self._halted or f"all that are left wait for the tensor {name}"
                self._wake()
                raise Gone
            self._turn.wait()
        return found
