"""One client of Flower 1.41.0's SecAgg+: the released ``secaggplus_mod``, asked message by message.

It runs in Flower's environment. Every message passes through Flower's ProtoBuf form in both directions, as on the wire,
so no party sees another party's objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Parameters, Status, ndarrays_to_parameters
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, RECORD_KEY_STATE, Key, Stage
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.compat.common import recorddict_compat
from flwr.supercore.task_identity import TaskIdentity

STAGES: tuple[str, ...] = Stage.all()
RUN, SERVER, FIRST_NODE = 1, 1, 2
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, SERVER, 1


def node_of(user: int) -> int:
    """Return Flower's node id of a user; the server is 1, and users count from 0."""
    return user + FIRST_NODE


def user_of(node: int) -> int:
    """Return the user of a node id."""
    return node - FIRST_NODE


def on_the_wire(message: Message) -> Message:
    """Return the message as its receiver decodes it."""
    return message_from_proto(message_to_proto(message))


def stage_of(message: Message) -> str:
    """Return the stage that a server message names."""
    return str(message.content.config_records[RECORD_KEY_CONFIGS][Key.STAGE])


class Client:
    """A user, with its state between stages and an app that trains nothing but returns the given update.

    Parameters
    ----------
    user
        The user, from 0.
    update
        Binary64 numbers, one layer.
    weight
        The number of examples that the app reports.
    """

    def __init__(self, user: int, update: Sequence[float], weight: int) -> None:
        self.node = node_of(user)
        self._parameters = ndarrays_to_parameters([np.array(update, dtype=np.float64)])
        self._weight = weight
        self._context = Context(run_id=RUN, node_id=self.node, node_config={}, state=RecordDict(), run_config={})

    def answer(self, message: Message) -> Message:
        """Return the reply of the released mod; its exceptions are passed on and leave the state unchanged."""
        return on_the_wire(secaggplus_mod(on_the_wire(message), self._context, self._train))

    def ask(self, stage: str, **configs: Any) -> dict[str, Any]:
        """Return the configs in the reply to a server message with this stage and these configs."""
        reply = self.answer(request(self.node, {**configs, Key.STAGE: stage}))
        return dict(reply.content.config_records[RECORD_KEY_CONFIGS])

    def state(self) -> dict[str, Any]:
        """Return what the mod keeps between stages, including secrets; empty before the first stage."""
        return dict(self._context.state.config_records.get(RECORD_KEY_STATE, {}))

    def _train(self, message: Message, _: Context) -> Message:
        done = FitRes(Status(Code.OK, ""), self._parameters, self._weight, {})
        return Message(recorddict_compat.fitres_to_recorddict(done, keep_input=True), reply_to=message)


def request(node: int, configs: Mapping[str, Any]) -> Message:
    """Return a server message with the configs and the instructions of a training round."""
    content = recorddict_compat.fitins_to_recorddict(FitIns(Parameters([], "numpy.ndarray"), {}), keep_input=True)
    content.config_records[RECORD_KEY_CONFIGS] = ConfigRecord(dict(configs))
    return Message(content, dst_node_id=node, message_type=MessageType.TRAIN, group_id="1")
