"""Flower's messages, contexts, apps and workflow in one process: what an engine carries, without its processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.app.message.message import make_message
from flwr.client import NumPyClient
from flwr.client.mod import secaggplus_mod as own_mod
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.compat.common import recorddict_compat
from flwr.server import LegacyContext, ServerConfig, SimpleClientManager
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow as OwnWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity

from secagg_spec.crypto.signatures import verification_key
from secagg_spec.flower import (
    LightSecAggWorkflow,
    SecAggPlusWorkflow,
    SecAggWorkflow,
    SecureAggregationMod,
    lightsecagg_mod,
    secaggplus_mod,
)
from secagg_spec.flower.client import Policy

TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
Change = Callable[[Message], Message | None]


class Trainer(NumPyClient):  # type: ignore[misc, unused-ignore]
    """A client whose model is known beforehand."""

    def __init__(self, arrays: list[Any], examples: int) -> None:
        self.arrays, self.examples, self.asked = arrays, examples, 0

    def fit(self, parameters: list[Any], config: Mapping[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
        """Return the model, and something that must not reach the server."""
        self.asked += 1
        return self.arrays, self.examples, {"my accuracy": 0.75}


@dataclass
class Grid:
    """Carries messages to apps as bytes, and counts these; `asked` and `replied` change messages or lose them."""

    apps: Mapping[int, ClientApp]
    asked: Mapping[tuple[int, int], Change] = field(default_factory=dict)
    replied: Mapping[tuple[int, int], Change] = field(default_factory=dict)
    contexts: dict[int, Context] = field(init=False)
    bytes: int = 0
    seconds: float = 0.0
    carrying: float = 0.0
    phase: int = -1
    replies: list[RecordDict] = field(default_factory=list)
    pushed: dict[str, Message] = field(default_factory=dict)
    pulled: bool = True

    def __post_init__(self) -> None:
        self.contexts = {node: Context(1, node, {}, RecordDict(), {}) for node in self.apps}

    def _carried(self, content: RecordDict) -> RecordDict:
        start = time.process_time()
        proto = recorddict_to_proto(content)
        self.bytes += proto.ByteSize()
        copy = recorddict_from_proto(proto)
        self.carrying += time.process_time() - start
        return copy

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Take messages, and return their ids; what is pushed after a pull is of the next phase."""
        self.phase += self.pulled
        self.pulled, numbers = False, list[str]()
        for message in messages:
            numbers.append(f"{self.phase} {message.metadata.dst_node_id}")
            message.metadata.__dict__["_message_id"] = numbers[-1]
            self.pushed[numbers[-1]] = message
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Let the apps answer that have not; an exception of an app is an error reply, as in the engine."""
        self.pulled = True
        pushed = [self.pushed.pop(number) for number in message_ids if number in self.pushed]
        return [reply for reply in map(self._answer, pushed) if reply is not None]

    def _answer(self, message: Message) -> Message | None:
        node = message.metadata.dst_node_id
        asked = self.asked.get((self.phase, node), lambda given: given)(message)
        if asked is None:
            return None
        asked.metadata.__dict__["_message_id"] = message.metadata.message_id
        asked = make_message(asked.metadata, self._carried(asked.content))
        start = time.process_time()
        try:
            reply = self.apps[node](asked, self.contexts[node])
        except Exception as error:
            reply = Message(Error(code=2, reason=str(error)), reply_to=asked)
        self.seconds += time.process_time() - start
        replied = self.replied.get((self.phase, node), lambda given: given)(reply)
        if replied is not None and replied.has_content():
            replied.content = self._carried(replied.content)
            self.replies.append(RecordDict(dict(replied.content)))
        return replied

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Push messages and pull the replies, as in Flower's own workflow."""
        return self.pull_messages(self.push_messages(messages))


class Known(FedAvg):  # type: ignore[misc, unused-ignore]
    """FedAvg, with what it was given kept."""

    def __init__(self, nodes: Iterable[int], **options: Any) -> None:
        super().__init__(**options)
        self.nodes, self.given = list(nodes), list[Any]()

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[Any]:
        """Ask all nodes."""
        instructions = recorddict_compat.FitIns(parameters, {})
        return [(SimpleNamespace(node_id=node), instructions) for node in self.nodes]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        """Keep the arguments."""
        self.given.append((results, failures))
        return super().aggregate_fit(server_round, results, failures)


def run(
    workflow: Callable[[Any, Context], None],
    grid: Grid,
    arrays: list[Any],
    rounds: int = 1,
    manager: SimpleClientManager | None = None,
    strategy: Any = None,
) -> tuple[list[Any], Any]:
    """Run rounds of a workflow, and return the model at the end and the strategy."""
    strategy, manager = strategy or Known(grid.apps), manager or SimpleClientManager()
    context = LegacyContext(Context(1, 0, {}, RecordDict(), {}), ServerConfig(rounds), strategy, manager)
    record = recorddict_compat.parameters_to_arrayrecord(ndarrays_to_parameters(arrays), keep_input=True)
    context.state.array_records[MAIN_PARAMS_RECORD] = record
    for number in range(1, rounds + 1):
        context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: number})
        workflow(grid, context)
    final = context.state.array_records[MAIN_PARAMS_RECORD]
    return parameters_to_ndarrays(recorddict_compat.arrayrecord_to_parameters(final, keep_input=True)), strategy


def apps(mod: Any, trainers: Mapping[int, Trainer]) -> dict[int, ClientApp]:
    """Return the app of each node, with a mod."""

    def made(trainer: Trainer) -> ClientApp:
        return ClientApp(client_fn=lambda context: trainer.to_client(), mods=[mod])

    return {node: made(trainer) for node, trainer in trainers.items()}


def models(N: int, *shapes: tuple[int, ...]) -> dict[int, Trainer]:
    """Return trainers with models of normal numbers."""
    rng = np.random.default_rng(0)
    return {
        1000 + 7 * at: Trainer([rng.normal(size=shape).astype(np.float32) for shape in shapes], 100 + at)
        for at in range(N)
    }


def active(protocol: str, numbers: Collection[int], number: Callable[[Context], int] = lambda c: c.node_id) -> Any:
    """Return a mod for clients that have a number each, by which it finds its signing key."""
    signing = {each: each.to_bytes(32, "big") for each in numbers}
    trusted = frozenset(map(verification_key, signing.values()))

    def mod(message: Message, context: Context, call_next: Any) -> Message:
        policy = Policy((protocol,), signing=signing[number(context)], trusted=trusted)
        return SecureAggregationMod(policy)(message, context, call_next)

    return mod


def side_by_side(numbers: Collection[int], number: Callable[[Context], int] = lambda c: c.node_id) -> dict[str, Any]:
    """Return workflows and mods with the same holders and threshold for so many clients; Flower's own come first."""
    clients = len(numbers)
    holders, threshold, enough = (7 * clients // 10) | 1, 6 * clients // 10, 6 * clients // 10 + 1
    signed = {name: active(name, numbers, number) for name in ("secagg-active", "lightsecagg-active")}
    return {
        "Flower SecAgg+": (OwnWorkflow(holders, threshold), own_mod),
        "SecAgg+": (SecAggPlusWorkflow(holders, threshold), secaggplus_mod),
        "SecAgg": (SecAggWorkflow(threshold), secaggplus_mod),
        "LightSecAgg": (LightSecAggWorkflow(enough), lightsecagg_mod),
        "SecAgg, active": (SecAggWorkflow(enough, active=True), signed["secagg-active"]),
        "LightSecAgg, active": (LightSecAggWorkflow(enough, active=True), signed["lightsecagg-active"]),
    }


def lost(message: Message) -> None:
    """Lose a reply."""
    return
