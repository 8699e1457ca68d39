"""HeteroSAg's round by the reference: masking and unmasking of segments, and a whole round over real numbers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import Reject, check_drop, check_users
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.conformance.targets.reference.neighbours import rows, sampled
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols.heterosag import averages as heterosag_averages
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import CellSum
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg import round as secagg

_HIDDEN = b"secagg-spec kit."
"""The session, and the seed for keys and seeds that do not affect the result."""


def _mask(
    *, session: Any, round: Any, user: Any, self_seed: Any, keys: Any, secrets: Any, update: Any, **numbers: Any
) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    agreed = (readers.octets("session", session), readers.u32("round", round))
    state = heterosag.user_start(parameters, *agreed, user, readers.vector("update", update)).base
    check_users("secrets", [user, *(peer for peer, _ in secrets)], parameters.N)
    seed, public = _key("self_seed", self_seed), _keys("keys", keys, parameters.N)
    known = {peer: _key(f"the secret with user {peer}", secret) for peer, secret in secrets}
    masking = secagg.mask_keys(state.round, user, dict(enumerate(public)), known)
    state = replace(state, mask_keys=masking, self_keys=secagg.self_keys(state.round, user, seed))
    masked = secagg.masked_update(state, set(known))
    return {"segments": heterosag.pack_segments(state.round.parts_of(user), masked).hex()}


def _unmask(
    *, session: Any, round: Any, keys: Any, survivors: Any, segments: Any, self_seeds: Any, secrets: Any, **numbers: Any
) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    agreed = heterosag.agreed(parameters, readers.octets("session", session), readers.u32("round", round))
    check_survivors("survivors", survivors, parameters)
    public = _keys("keys", keys, parameters.N)
    seeds = dict(zip(survivors, _keys("self_seeds", self_seeds, len(survivors)), strict=True))
    if len(segments) != len(survivors):
        raise LengthMismatch("len(segments)", len(segments), f"{len(survivors)}, one for each survivor")
    left = _left(parameters, survivors, secrets)
    sent = zip(survivors, segments, strict=True)
    masked = {user: heterosag.read_segments(agreed, user, readers.octets("segments", text)) for user, text in sent}
    state = replace(
        secagg.server_start(agreed),
        keys={user: secagg.KeyPair(b"", key) for user, key in enumerate(public)},
        masked_sums=secagg.masked_sums(parameters, masked),
    )
    found = heterosag.cell_sums(parameters, survivors, secagg.unmasked_sums(state, seeds, left))
    return {"sums": _sums(found)}


def _round(
    *, clip: Any, x: Any, method: Any, trim: Any, drop: Any, rand: Mapping[str, Any], **numbers: Any
) -> dict[str, Any]:
    parameters = read_parameters(**numbers)
    check_drop(drop, parameters.N)
    inputs = rows("x", x, parameters.N, parameters.d)
    draws = rows("rounding", rand["rounding"], parameters.N, parameters.d)
    quantize, each = heterosag_averages.quantize_update, range(parameters.N)
    updates = np.stack([quantize(parameters, u, inputs[u], rounding=draws[u], clip=clip) for u in each])
    drawn = sampled(parameters, "heterosag")
    result = heterosag.run_round(parameters, updates, randomness=drawn, dropouts=drop, session=_HIDDEN, round=0)
    aggregate = heterosag_averages.combine(parameters, result.sums, method, trim)
    return {"sums": _sums(result.sums), "aggregate": pack_reals(aggregate), "contributors": list(result.contributors)}


def read_past(parameters: Parameters, past: Any, user: int | None = None) -> tuple[frozenset[int], ...]:
    """Return the survivors of earlier requests, each with enough users in each cell and with the user that answered."""
    for at, users in enumerate(past):
        check_survivors(f"past[{at}]", users, parameters)
        if user is not None and user not in users:
            raise ParameterError(f"past[{at}]", list(users), f"users with user {user}, who answered")
    return tuple(frozenset(users) for users in past)


def check_survivors(name: str, users: Sequence[int], parameters: Parameters) -> None:
    """Refuse users that do not ascend in ``[0, N)``, or that leave a cell with fewer than T + 2, but at least one."""
    check_users(name, users, parameters.N)
    if not users or any(first > second for first, second in pairwise(users)):
        raise ParameterError(name, list(users), "at least one user, ascending")
    heterosag.check_cells(parameters, users)


def _key(name: str, text: str) -> bytes:
    data = readers.octets(name, text)
    if len(data) != KEY_BYTES:
        raise LengthMismatch(name, f"{len(data)} bytes", f"{KEY_BYTES} bytes")
    return data


def _keys(name: str, texts: Sequence[str], count: int) -> list[bytes]:
    if len(texts) != count:
        raise LengthMismatch(f"len({name})", len(texts), f"{count}")
    return [_key(f"{name}[{at}]", text) for at, text in enumerate(texts)]


def _left(parameters: Parameters, survivors: Collection[int], entries: Any) -> dict[tuple[int, int], bytes]:
    """Return the secrets of dropped users with survivors: of each dropped user with each survivor of its cells."""
    dropped = sorted({user for user, _, _ in entries})
    check_users("secrets", dropped, parameters.N)
    if set(dropped) & set(survivors):
        raise ParameterError("secrets", sorted(set(dropped) & set(survivors)), "dropped users that do not survive")
    found = {(user, peer): _key(f"the secret of {user} with {peer}", secret) for user, peer, secret in entries}
    if len(found) != len(entries):
        raise Reject("duplicate_id", "secrets names a pair twice")
    wanted = {(user, peer) for user in dropped for peer in survivors if _share_a_cell(parameters, user, peer)}
    if set(found) != wanted:
        allowed = "each pair of a dropped user and a survivor that share a cell, once"
        raise ParameterError("secrets", sorted(found), allowed)
    return found


def _share_a_cell(parameters: Parameters, user: int, peer: int) -> bool:
    return any({user, peer} <= cell.members for cell in parameters.parts)


def _sums(found: Sequence[CellSum]) -> list[str]:
    return [pack(each.total) for each in found]


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "heterosag.mask": _mask,
    "heterosag.unmask": _unmask,
    "heterosag.round": _round,
}
