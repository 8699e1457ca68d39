"""Sums of integers by SecAgg on the complete graph, and what each party sees of them (spec/adapter.md, section 4)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, check_drop
from secagg_spec.conformance.targets.reference import neighbours, readers
from secagg_spec.crypto import prg
from secagg_spec.crypto.entropy import SystemSource
from secagg_spec.errors import LengthMismatch, OutOfRange, UnknownUser
from secagg_spec.protocols import codec
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Network, run_synchronous

_SERVER = "server"
_PHASE = dict(zip(SUM_PHASES, ("advertise_keys", "masked_input", "unmasking"), strict=True))


def _played(
    R: str, N: int, t: int, updates: Sequence[str], drop: dict[str, list[int]], viewers: Sequence[Any] = ()
) -> Network:
    """Play a round in which each party draws what it draws."""
    check_drop(drop, N)
    rows = [_row(f"updates[{at}]", text) for at, text in enumerate(updates)]
    numbers = neighbours.parameters(N, t, N - 1, rows[0].size if rows else 0, readers.number("R", R))
    if len(rows) != N:
        raise LengthMismatch("len(updates)", len(rows), f"N = {N}")
    gone = {user for users in drop.values() for user in users}
    staying = [*(user for user in range(N) if user not in gone), _SERVER]
    if list(viewers) != [one for one in staying if one in viewers]:
        raise UnknownUser("viewers", viewers, 'users below N that stay, in ascending order, and then "server" or not')
    for at, row in enumerate(rows):
        numbers.ring.check(f"updates[{at}]", row, (numbers.d,))
    network = secagg.open_round(numbers, np.stack(rows), session=SystemSource().take(16), round=0)
    network.states = _Past(network.states)
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


def _seen(network: Network, viewers: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Return what comes to the viewers: vectors modulo R, and other messages."""
    sent = [message for event in network.transcript for message in event.sent]
    seen = sent if _SERVER in viewers else [message for message in sent if message.receiver in viewers]
    vectors = [pack(message.masked) for message in seen if isinstance(message, secagg.MaskedInput)]
    return vectors, [codec.encode(message).hex() for message in seen if not isinstance(message, secagg.MaskedInput)]


def _view(viewer: Any, **given: Any) -> dict[str, Any]:
    vectors, strings = _seen(_played(**given, viewers=(viewer,)), (viewer,))
    return {"vectors": vectors, "strings": strings}


def _coalition(T: int, viewers: Sequence[Any], **given: Any) -> dict[str, Any]:
    users = [one for one in viewers if one != _SERVER]
    validate.integer("T", T, 1, validate.integer("t", given["t"], 2) - 1)
    if not viewers or len(users) > T:
        raise OutOfRange("viewers", viewers, f"at most T = {T} users, and the server or not")
    network = _played(**given, viewers=viewers)
    vectors, strings = _seen(network, viewers)
    past = network.states
    assert isinstance(past, _Past)
    return {
        "vectors": [*vectors, *(pack(mask) for user in users for mask in _masks(past.masking[user]))],
        "strings": strings,
    }


class _Past(dict[int, Any]):
    """The states of parties, and in `masking` those of users that hold their masks, which a user forgets."""

    def __init__(self, states: dict[int, Any]) -> None:
        super().__init__(states)
        self.masking: dict[int, Any] = {}

    def __setitem__(self, party: int, state: Any) -> None:
        super().__setitem__(party, state)
        if party != SERVER and state.mask_keys:
            self.masking[party] = state


def _masks(user: Any) -> Iterator[UintArray]:
    """Yield the masks that a user adds: its own, and those with its neighbours."""
    numbers = user.round.parameters
    for key in (*user.self_keys.values(), *user.mask_keys.values()):
        yield prg.expand(key, numbers.ring, numbers.d)


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "secagg.sum": _sum,
    "secagg.view": _view,
    "secagg.coalition": _coalition,
}
