"""The mods of a Flower client app, each in the place of Flower's ``secaggplus_mod``.

Source: spec/flower.md, section 3.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common import Code, parameters_to_ndarrays
from flwr.compat.common import recorddict_compat

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.errors import ParameterError
from secagg_spec.flower import plan as plans
from secagg_spec.flower import records, weights
from secagg_spec.flower.client import Client, Policy
from secagg_spec.flower.journal import FileJournal
from secagg_spec.flower.plan import Plan
from secagg_spec.flower.records import RECORD

JOURNAL = "secagg-journal"
"""The entry of the configuration of a node that names the folder of its journal."""
_TRAIN = "train"
_LOG = logging.getLogger("flwr")


class SecureAggregationMod:
    """A mod that trains when the server asks for a masked model, and for no other message about training (FLW-09).

    Parameters
    ----------
    policy : Policy
        What the client demands of each round.
    journal : path, optional
        The folder under which each node has a journal; else that of the node's configuration (``secagg-journal``), or
        ``flower`` in the folder that SECAGG_SPEC_HOME names, or in ``.secagg-spec`` of the home folder.
    """

    def __init__(self, policy: Policy, journal: str | Path | None = None) -> None:
        self.policy, self.journal = policy, journal

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        """Answer a message about training by one step of the round; give any other one to the app."""
        if message.metadata.message_type.partition(".")[0] != _TRAIN:
            return call_next(message, context)
        packet, kept = records.take(message.content) or {}, context.state.get(RECORD, {})

        def produce(plan: Plan) -> UintArray:
            try:
                reply = call_next(message, context)
            except Exception:  # its text would go to the server
                _LOG.exception("secure aggregation: the training of the app failed")
                raise ParameterError("the app", "failed", "able to train") from None
            return _input(plan, reply)

        client = Client(self.policy, FileJournal(self._folder(context)))
        reply, memory, refused = client.handle(packet, list(kept.get("memory", [])), produce)
        context.state[RECORD] = ConfigRecord({"memory": list(memory)})
        if refused is not None:
            _LOG.error("secure aggregation: refused %r: %s: %s", packet.get("phase"), type(refused).__name__, refused)
        return Message(records.put(reply, RecordDict()), reply_to=message)

    def _folder(self, context: Context) -> Path:
        home = os.environ.get("SECAGG_SPEC_HOME", Path.home() / ".secagg-spec")
        folder = self.journal or context.node_config.get(JOURNAL) or Path(home) / "flower"
        return Path(str(folder)) / str(context.node_id)


def _input(plan: Plan, reply: Message) -> UintArray:
    if reply.has_error():
        raise ParameterError("the app", "failed", "able to train")
    result = recorddict_compat.recorddict_to_fitres(reply.content, keep_input=False)
    if result.status.code != Code.OK:
        raise ParameterError("the status of the app", result.status.code.name, "OK")
    return weights.encode(plan, parameters_to_ndarrays(result.parameters), result.num_examples, SystemSource())


secagg_mod = secaggplus_mod = SecureAggregationMod(Policy((plans.SECAGG,)))
lightsecagg_mod = SecureAggregationMod(Policy((plans.LIGHTSECAGG,)))
