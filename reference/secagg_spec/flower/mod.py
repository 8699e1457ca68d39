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

from secagg_spec.arithmetic import validate
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
        ``flower`` in the folder that SECAGG_SPEC_HOME names, or in ``.secagg-spec`` of the home folder. A ``~`` at its
        beginning is the home folder.

    Raises
    ------
    ParameterError
        The policy is none, or the journal no path.
    """

    def __init__(self, policy: Policy, journal: str | Path | None = None) -> None:
        self.policy = validate.instance("policy", policy, Policy)
        self.journal = None if journal is None else _at_home("journal", journal)

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        """Answer a message about training by one step of the round; give any other one to the app.

        Raises
        ------
        ParameterError
            The node's configuration names a journal that is no path.
        """
        if message.metadata.message_type.partition(".")[0] != _TRAIN:
            return call_next(message, context)
        packet, kept = records.take(message.content) or {}, context.state.get(RECORD, {})

        def produce(plan: Plan) -> UintArray:
            try:
                arrays, examples = _trained(call_next(message, context))
            except ParameterError:
                raise
            except Exception:  # its text would go to the server
                _LOG.exception("secure aggregation: the training of the app failed, or gave no model")
                raise ParameterError("the app", "failed", "able to train") from None
            return weights.encode(plan, arrays, examples, SystemSource())

        client = Client(self.policy, FileJournal(self._folder(context)))
        memory = kept.get("memory")
        reply, memory, refused = client.handle(packet, memory if isinstance(memory, list) else [], produce)
        context.state[RECORD] = ConfigRecord({"memory": list(memory)})
        if refused is not None:
            _LOG.error("secure aggregation: refused %r: %s: %s", packet.get("phase"), type(refused).__name__, refused)
        return Message(records.put(reply, RecordDict()), reply_to=message)

    def _folder(self, context: Context) -> Path:
        folder = self.journal
        if folder is None and JOURNAL in context.node_config:
            folder = _at_home(JOURNAL, context.node_config[JOURNAL])
        home = os.environ.get("SECAGG_SPEC_HOME") or Path.home() / ".secagg-spec"
        return (folder or Path(home) / "flower") / str(context.node_id)


def _at_home(name: str, path: object) -> Path:
    """Return a path; a home folder at its beginning in full, if there is such a user."""
    return Path(os.path.expanduser(validate.path_of(name, path)))  # that of Path raises RuntimeError


def _trained(reply: Message) -> tuple[weights.Arrays, int]:
    """Return the arrays that an app trained, and the number of its examples."""
    if reply.has_error():
        raise ParameterError("the app", "failed", "able to train")
    result = recorddict_compat.recorddict_to_fitres(reply.content, keep_input=False)
    if result.status.code != Code.OK:
        raise ParameterError("the status of the app", result.status.code.name, "OK")
    return parameters_to_ndarrays(result.parameters), result.num_examples


secagg_mod = secaggplus_mod = SecureAggregationMod(Policy((plans.SECAGG,)))
lightsecagg_mod = SecureAggregationMod(Policy((plans.LIGHTSECAGG,)))
