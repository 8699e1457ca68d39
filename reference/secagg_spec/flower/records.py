"""Packets as records of Flower's messages; a long message is an array, which Flower sends in pieces.

The records are reached without `config_records` and its like: such a view holds itself, and so what it shows, until the
garbage is collected.

Source: spec/flower.md, section 2.
"""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from secagg_spec.flower.plan import Packet

RECORD = "secagg_spec"
"""The name of the record of a message that holds a packet, and of that of the state that holds the memory."""
LONG = "secagg_spec.long"
"""The name of the record of a message that holds the long messages of its packet."""
MOST = 2**20
"""The most bytes of a message that stands in the packet itself."""


def put(packet: Packet, content: RecordDict) -> RecordDict:
    """Put a packet into a content, and return this."""
    messages = packet.get("messages", [])
    short, long = [each for each in messages if len(each) <= MOST], [each for each in messages if len(each) > MOST]
    others = {name: value for name, value in packet.items() if name != "messages"}
    content[RECORD] = ConfigRecord({**others, **({"messages": short} if short else {})})
    if long:
        arrays = {str(at): Array("uint8", (len(each),), "bytes", each) for at, each in enumerate(long)}
        content[LONG] = ArrayRecord(arrays)
    return content


def take(content: RecordDict) -> Packet | None:
    """Take the packet out of a content; None if there is none."""
    record, arrays = content.pop(RECORD, None), content.pop(LONG, None)
    if not isinstance(record, ConfigRecord):
        return None
    packet = dict(record)
    short = packet.get("messages", [])
    if isinstance(arrays, ArrayRecord) and isinstance(short, list):
        packet["messages"] = [*short, *(array.data for array in arrays.values())]
    return packet
