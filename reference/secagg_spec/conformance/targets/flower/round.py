"""A whole round of Flower's SecAgg+: the released ``SecAggPlusWorkflow`` with released clients, in one process.

The network is ours: it delivers messages, and a user that drops out no longer answers. The strategy is ours too: it
stores the workflow's aggregate unchanged. All of this runs in Flower's environment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.client.mod import secaggplus_mod
from flwr.common import FitIns, bytes_to_ndarray, constant, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey

from . import released
from .client import SERVER, STAGES, Client, stage_of, user_of
from .released import FLOWER_LOGGER, on_the_wire

Change = Callable[[int, Any], None]
_RAISED = getattr(constant.ErrorCode, "CLIENT_APP_RAISED_EXCEPTION", 2)


@dataclass(frozen=True)
class Settings:
    """The parameters of ``SecAggPlusWorkflow``, with its defaults."""

    num_shares: int | float
    reconstruction_threshold: int | float
    max_weight: float = 1000.0
    clipping_range: float = 8.0
    quantization_range: int = 2**22
    modulus_range: int = 2**32


class Halted(Exception):
    """The workflow ended without an aggregate; contains the errors that it logged and the exceptions of users."""

    def __init__(self, logged: Sequence[str], raised: Sequence[str]) -> None:
        super().__init__("; ".join([*logged, *raised]) or "no error was logged")
        self.logged, self.raised = tuple(logged), tuple(raised)


@dataclass(frozen=True)
class Outcome:
    """What the workflow passes to the strategy, and what the watched party saw.

    The strategy gets the weighted average, and the users whose replies it includes.
    """

    average: list[float]
    contributors: list[int]
    seen: list[Any] = field(default_factory=list)
    logged: tuple[str, ...] = ()


def run_round(
    updates: Sequence[Sequence[float]],
    weights: Sequence[int],
    drop: Mapping[str, Collection[int]],
    settings: Settings,
    change: Change = lambda user, configs: None,
    watched: int = SERVER,
    engine: type[Network] | None = None,
) -> Outcome:
    """Return what the workflow passes to the strategy.

    Parameters
    ----------
    updates, weights
        N vectors of binary64 numbers, and the numbers of examples of the N users.
    drop
        Users by stage (``STAGES``): they drop out just before they would answer in it.
    change
        A change to the configs of a user's last reply on the way to the server.
    watched
        The node whose messages the outcome has: all that come to it.
    engine
        The network, with the workflow and the mod that it is for; that of the released ones when left out.

    Raises
    ------
    Halted
        The workflow ended without an aggregate. Its other exceptions are passed on.
    """
    engine = engine or Network
    clients = [Client(user, *given, engine.mod) for user, given in enumerate(zip(updates, weights, strict=True))]
    network = engine(clients, drop, change, watched)
    strategy = Strategy(network.clients)
    workflow = engine.workflow(**asdict(settings))
    with errors_logged(engine.level) as errors:
        workflow(network, context(strategy, len(updates[0]) if engine.shaped else 1))
    if strategy.outcome is None:
        raise Halted(errors, network.raised)
    return replace(strategy.outcome, seen=network.seen, logged=tuple(errors))


class Network:
    """Replaces Flower's ``Grid``: asks the clients in turn, and reports their exceptions as Flower's runtime does.

    `record` is the record of configs of a message of the round, `level` that of the lines that say why it ended, and
    `shaped` says whether the model has the shape of the updates before the round.
    """

    workflow, mod, record, stages = SecAggPlusWorkflow, staticmethod(secaggplus_mod), RECORD_KEY_CONFIGS, STAGES
    level, shaped = logging.ERROR, False

    def __init__(
        self, clients: Sequence[Client], drop: Mapping[str, Collection[int]], change: Change, watched: int
    ) -> None:
        self.clients = {client.node: client for client in clients}
        self.raised: list[str] = []
        self.seen: list[Any] = []
        self._drop, self._change, self._watched = drop, change, watched

    def send_and_receive(self, messages: Iterable[Any], *, timeout: float | None = None) -> list[Any]:
        """Return the replies of the users that have not dropped out."""
        asked = [message for message in messages if not self.dropped(message)]
        replies = [self.reply(message) for message in asked]
        to_users = [message for message in asked if message.metadata.dst_node_id == self._watched]
        self.seen += [on_the_wire(message) for message in (replies if self._watched == SERVER else to_users)]
        return replies

    def create_message(self, **given: Any) -> Any:
        """Return a message of the workflow, which asks for it up to 1.13."""
        return released.message(**given)

    def stage_of(self, message: Any) -> str:
        """Return the stage of a message."""
        return stage_of(message)

    def dropped(self, message: Any) -> bool:
        """Return whether the receiver dropped out before the stage of the message, or before an earlier one."""
        passed = self.stages[: self.stages.index(self.stage_of(message)) + 1]
        return any(user_of(message.metadata.dst_node_id) in self._drop.get(stage, ()) for stage in passed)

    def reply(self, message: Any) -> Any:
        """Return the client's reply, or an error message in its place."""
        node = message.metadata.dst_node_id
        try:
            answer = self.clients[node].answer(message)
        except Exception as raised:  # Flower reports any exception of the released code as an error message
            reason = f"{type(raised).__name__}: {raised}"
            self.raised.append(f"user {user_of(node)} in {self.stage_of(message)}: {reason}")
            return on_the_wire(released.reply(released.Error(_RAISED, reason), message))
        if self.stage_of(message) == self.stages[-1]:
            self._change(user_of(node), released.configs(answer.content)[self.record])
        return answer


def read(message: Any) -> tuple[list[list[int]], list[bytes]]:
    """Return what a message holds: masked vectors, with the masked weight first, and all else."""
    vectors, others = list[list[int]](), list[bytes]()
    records = released.configs(message.content)
    configs = records.pop(RECORD_KEY_CONFIGS) if RECORD_KEY_CONFIGS in records else {}
    for name, value in configs.items():
        if name == Key.MASKED_PARAMETERS:
            vectors += [[int(number) for number in bytes_to_ndarray(each).ravel()] for each in value]
        else:
            parts = value if isinstance(value, list) else [value]
            others += [each if isinstance(each, bytes) else str(each).encode() for each in parts]
    return vectors, [*others, released.content_to_proto(message.content).SerializeToString(deterministic=True)]


class Strategy:
    """Replaces Flower's ``Strategy``: it selects all clients, and keeps the aggregate."""

    def __init__(self, nodes: Collection[int]) -> None:
        self.outcome: Outcome | None = None
        self._nodes = nodes

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[tuple[Any, Any]]:
        """Return every client with its instructions."""
        return [(SimpleNamespace(node_id=node), FitIns(parameters, {})) for node in self._nodes]

    def aggregate_fit(self, server_round: int, results: list[tuple[Any, Any]], failures: list[Any]) -> tuple[Any, Any]:
        """Keep the aggregate, which the workflow writes into each result."""
        (layer,) = parameters_to_ndarrays(results[0][1].parameters)
        contributors = sorted(user_of(proxy.node_id) for proxy, _ in results)
        self.outcome = Outcome([float(value) for value in layer], contributors)
        return None, {}


def context(strategy: Strategy, d: int) -> Any:
    """Return the server's context before round 1, with a model of d zeros."""
    state = released.RecordDict()
    released.configs(state)[MAIN_CONFIGS_RECORD] = released.ConfigRecord({WorkflowKey.CURRENT_ROUND: 1})
    zeros = ndarrays_to_parameters([np.zeros(d)])
    released.arrays(state)[MAIN_PARAMS_RECORD] = released.parameters_to_record(zeros, keep_input=True)
    return released.server_context(state, strategy)


@contextmanager
def errors_logged(level: int) -> Iterator[list[str]]:
    """Collect what Flower logs within the context, from a level on."""
    lines: list[str] = []
    handler = logging.Handler(level)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    FLOWER_LOGGER.addHandler(handler)
    try:
        yield lines
    finally:
        FLOWER_LOGGER.removeHandler(handler)
