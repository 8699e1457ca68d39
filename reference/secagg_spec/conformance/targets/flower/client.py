"""One client of Flower's SecAgg+: the released ``secaggplus_mod``, asked message by message.

It runs in Flower's environment. Every message passes through Flower's ProtoBuf form in both directions, as on the wire,
so no party sees another party's objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Parameters, Status, ndarrays_to_parameters
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, RECORD_KEY_STATE, Key, Stage

from . import released
from .released import on_the_wire

STAGES: tuple[str, ...] = Stage.all()
SERVER, FIRST_NODE = 1, 2


def node_of(user: int) -> int:
    """Return Flower's node id of a user; the server is 1, and users count from 0."""
    return user + FIRST_NODE


def user_of(node: int) -> int:
    """Return the user of a node id."""
    return node - FIRST_NODE


def stage_of(message: Any) -> str:
    """Return the stage that a server message names."""
    return str(released.configs(message.content)[RECORD_KEY_CONFIGS][Key.STAGE])


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
    mod
        What answers; the released mod.
    """

    def __init__(self, user: int, update: Sequence[float], weight: int, mod: Any = secaggplus_mod) -> None:
        self.node, self.mod = node_of(user), mod
        self._parameters = ndarrays_to_parameters([np.array(update, dtype=np.float64)])
        self._weight = weight
        self._context = released.plain_context(self.node, released.RecordDict())

    def answer(self, message: Any) -> Any:
        """Return the reply of the released mod; its exceptions are passed on and leave the state unchanged."""
        return on_the_wire(self.mod(on_the_wire(message), self._context, self._train))

    def ask(self, stage: str, **configs: Any) -> dict[str, Any]:
        """Return the configs in the reply to a server message with this stage and these configs."""
        reply = self.answer(request(self.node, {**configs, Key.STAGE: stage}))
        return dict(released.configs(reply.content)[RECORD_KEY_CONFIGS])

    def state(self) -> dict[str, Any]:
        """Return what the mod keeps between stages, including secrets; empty before the first stage."""
        return dict(released.configs(self._context.state).get(RECORD_KEY_STATE, {}))

    def _train(self, message: Any, _: Any) -> Any:
        done = FitRes(Status(Code.OK, ""), self._parameters, self._weight, {})
        return released.reply(released.fitres_to_record(done, keep_input=True), message)


def request(node: int, configs: Mapping[str, Any]) -> Any:
    """Return a server message with the configs and the instructions of a training round."""
    content = released.fitins_to_record(FitIns(Parameters([], "numpy.ndarray"), {}), keep_input=True)
    released.configs(content)[RECORD_KEY_CONFIGS] = released.ConfigRecord(dict(configs))
    return released.message(content, released.MessageType.TRAIN, node, "1")
