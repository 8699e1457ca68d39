"""Sums of integers by SecAgg on the complete graph, and what each party sees of them (spec/adapter.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, check_drop
from secagg_spec.conformance.targets.reference import neighbours, readers
from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.errors import LengthMismatch, UnknownUser
from secagg_spec.protocols import codec
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network, run_synchronous

_PHASE = dict(zip(SUM_PHASES, ("advertise_keys", "masked_input", "unmasking"), strict=True))


def _played(
    R: str, N: int, t: int, updates: Sequence[str], drop: dict[str, list[int]], viewer: Any = "server"
) -> Network:
    """Play a round in which each party draws what it draws."""
    check_drop(drop, N)
    rows = [_row(f"updates[{at}]", text) for at, text in enumerate(updates)]
    numbers = neighbours.parameters(N, t, N - 1, rows[0].size if rows else 0, readers.number("R", R))
    if len(rows) != N:
        raise LengthMismatch("len(updates)", len(rows), f"N = {N}")
    if viewer != "server" and viewer not in set(range(N)) - {user for users in drop.values() for user in users}:
        raise UnknownUser("viewer", viewer, '"server", or a user below N that stays')
    for at, row in enumerate(rows):
        numbers.ring.check(f"updates[{at}]", row, (numbers.d,))
    network = secagg.open_round(numbers, np.stack(rows), session=SystemSource().take(16), round=0)
    sampled = secagg.draw_randomness(numbers, {user: SystemSource() for user in range(N)})
    run_synchronous(network, {_PHASE[phase]: users for phase, users in drop.items()}, sampled)
    return network


def _row(name: str, text: str) -> UintArray:
    if len(text) % 8:
        raise LengthMismatch(name, f"{len(text) // 2} bytes", "4 bytes for each element")
    return readers.vector(name, text)


def _sum(**given: Any) -> dict[str, Any]:
    server = _played(**given).states[SERVER]
    return {"sum": pack(server.aggregate), "contributors": list(server.survivors)}


def _view(**given: Any) -> dict[str, Any]:
    network, viewer = _played(**given), given["viewer"]
    sent = [message for event in network.transcript for message in event.sent]
    seen = sent if viewer == "server" else [message for message in sent if message.receiver == viewer]
    vectors = [pack(message.masked) for message in seen if isinstance(message, secagg.MaskedInput)]
    others = [codec.encode(message).hex() for message in seen if not isinstance(message, secagg.MaskedInput)]
    return {"vectors": vectors, "strings": others}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"secagg.sum": _sum, "secagg.view": _view}
