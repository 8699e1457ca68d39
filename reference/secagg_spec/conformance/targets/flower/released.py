"""The names of Flower that SecAgg+ needs, in the releases from 1.8.0 on, which moved and renamed them.

Up to 1.13, a RecordDict is a RecordSet, its members have other names, a message is made from Metadata, and shares are
pickled. It runs in Flower's environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def first(*places: str) -> Any:
    """Return what the first place holds, each ``module:name``, or None if none is there."""
    for module, name in (place.split(":") for place in places):
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return None


def moved(name: str, *modules: str) -> Any:
    """Return a member of the first module that has it."""
    return first(*(f"{module}:{name}" for module in modules))


def compat(name: str) -> Any:
    """Return a function of the module between records and the older messages, by its newest name."""
    older = name.replace("recorddict", "recordset").replace("arrayrecord", "parametersrecord")
    places = [f"{package}.recorddict_compat:{name}" for package in ("flwr.compat.common", "flwr.common")]
    return first(*places, f"flwr.common.recordset_compat:{older}")


Context, Error, Message, MessageType = (
    moved(name, "flwr.app", "flwr.common") for name in ("Context", "Error", "Message", "MessageType")
)
RecordDict = first("flwr.app:RecordDict", "flwr.common:RecordDict", "flwr.common:RecordSet")
ConfigRecord = first("flwr.app:ConfigRecord", "flwr.common:ConfigRecord", "flwr.common:ConfigsRecord")
FLOWER_LOGGER = moved("FLOWER_LOGGER", "flwr.supercore.logger", "flwr.common.logger")
LegacyContext = first("flwr.server:LegacyContext")
RENAMED = "config_records" in dir(RecordDict)
_KEYS = ("flwr.supercore.primitives.asymmetric", "flwr.common.secure_aggregation.crypto.symmetric_encryption")
generate_key_pairs, private_key_to_bytes, public_key_to_bytes = (
    moved(name, *_KEYS) for name in ("generate_key_pairs", "private_key_to_bytes", "public_key_to_bytes")
)
fitins_to_record, fitres_to_record, parameters_to_record = map(
    compat, ("fitins_to_recorddict", "fitres_to_recorddict", "parameters_to_arrayrecord")
)
content_to_proto, content_from_proto = (
    first(f"flwr.common.serde:recorddict_{way}_proto", f"flwr.common.serde:recordset_{way}_proto")
    for way in ("to", "from")
)
_to_proto, _from_proto = (first(f"flwr.common.serde:message_{way}_proto") for way in ("to", "from"))
_identity = first("flwr.supercore.task_identity:TaskIdentity")
_RUN, _SERVER, _TTL = 1, 1, 3600.0
if _identity:
    _identity.run_id, _identity.node_id, _identity.task_id = _RUN, _SERVER, 1


def configs(content: Any) -> Any:
    """Return the records of configs of a message's content."""
    return content.config_records if RENAMED else content.configs_records


def arrays(content: Any) -> Any:
    """Return the records of arrays of a message's content."""
    return content.array_records if RENAMED else content.parameters_records


def message(content: Any, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None) -> Any:
    """Return a message of the server; the older workflow makes its messages so."""
    if RENAMED:
        return Message(content, dst_node_id=dst_node_id, message_type=message_type, group_id=group_id)
    metadata = moved("Metadata", "flwr.common", "flwr.common.message")
    head = metadata(_RUN, "", _SERVER, dst_node_id, "", group_id, _TTL if ttl is None else ttl, message_type)
    return Message(metadata=head, content=content)


def reply(content: Any, asked: Any) -> Any:
    """Return the reply to a message, with a content or an error."""
    if RENAMED:
        return Message(content, reply_to=asked)
    return asked.create_error_reply(content) if isinstance(content, Error) else asked.create_reply(content)


def on_the_wire(sent: Any) -> Any:
    """Return a message as its receiver decodes it."""
    if _to_proto:
        return _from_proto(_to_proto(sent))
    if sent.has_error():
        return sent
    return Message(metadata=sent.metadata, content=content_from_proto(content_to_proto(sent.content)))


def plain_context(node: int, state: Any) -> Any:
    """Return the context of a node."""
    given = {"run_id": _RUN, "node_id": node, "node_config": {}, "state": state, "run_config": {}}
    return Context(**_taken(Context, given))


def server_context(state: Any, strategy: Any) -> Any:
    """Return the context of the workflow."""
    given = {"context": plain_context(_SERVER, state), "state": state, "strategy": strategy}
    return LegacyContext(**_taken(LegacyContext, given))


def _taken(made: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(made).parameters
    return {name: value for name, value in given.items() if name in known}


def value_at(share: bytes) -> int:
    """Return where the first value of a share begins: behind its index, or behind the head of 16 pickled bytes."""
    return share.index(b"C\x10") + 2 if share.startswith(b"\x80") else 4
