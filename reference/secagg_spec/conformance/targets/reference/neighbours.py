"""SecAgg as frameworks ship it: a round over reals, and the shares that one user releases (spec/adapter.md, section 4).

The keys, seeds and polynomials of these rounds are drawn from a fixed seed, since no result depends on them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.shamir import ELEMENT_BYTES
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import check_drop
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError, ProtocolError, UnknownUser
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import Parameters, UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Network, Randomness, run_synchronous

_SESSION = b"secagg-spec kit."


def parameters(N: int, t: int, k: int, d: int, R: int = MAX_MODULUS) -> Parameters:
    """Return the parameters with the largest T and D that N, t and k allow on the complete graph, else T = 1, D = 0."""
    complete = type(k) is int and k == N - 1
    return Parameters(R=R, N=N, D=max(N - t, 0) if complete else 0, T=t - 2 if complete else 1, t=t, k=k, d=d)


def rows(name: str, texts: Sequence[str], N: int, d: int) -> RealArray:
    """Return N vectors of d reals."""
    vectors = [readers.reals(f"{name}[{at}]", text) for at, text in enumerate(texts)]
    if len(vectors) != N:
        raise LengthMismatch(f"len({name})", len(vectors), f"N = {N}")
    for at, vector in enumerate(vectors):
        if vector.size != d:
            raise LengthMismatch(f"{name}[{at}]", f"{vector.size} numbers", f"{d} numbers")
    return np.stack(vectors)


def check_scale(clip: int, most: int) -> None:
    """Refuse a largest magnitude or a largest weight below 1 (ADP-33)."""
    validate.integer("clip", clip, 1)
    validate.integer("max_weight", most, 1)


def check_inputs(x: RealArray, clip: int) -> None:
    """Refuse inputs that are not finite or beyond `clip` (ADP-31)."""
    wrong = ~(np.abs(x) <= clip)
    if wrong.any():
        user, at = (int(place) for place in np.argwhere(wrong)[0])
        raise OutOfRange(f"x[{user}][{at}]", float(x[user, at]), f"a finite number of at most clip = {clip}")


def check_weights(weights: Sequence[int], N: int, most: int) -> None:
    """Refuse weights that are not N integers in [1, max_weight] (ADP-32)."""
    if len(weights) != N:
        raise LengthMismatch("len(weights)", len(weights), f"N = {N}")
    for user, weight in enumerate(weights):
        validate.integer(f"weights[{user}]", weight, 1, most)


def quantised(
    ring: Ring, x: RealArray, weights: Sequence[int], level: int, most: int, rounding: RealArray
) -> UintArray:
    """Return the inputs of the round: each quantised vector times its weight, for a total weight of N times `most`."""
    total = len(weights) * most
    rows = [
        ring.multiply(
            quantizer.quantize(row, level=level, ring=ring, weight=total, rounding=draws),
            np.full(row.size, weight, dtype=np.uint64),
        )
        for row, draws, weight in zip(x, rounding, weights, strict=True)
    ]
    return np.stack(rows)


def averaged(ring: Ring, aggregate: UintArray, level: int, total: int) -> RealArray:
    """Return the decoded sum, divided by the level and the total weight in one division."""
    return np.array([float(Fraction(int(value), level * total)) for value in ring.decode_signed(aggregate)])


def _average(drop: Any, rand: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    ring, numbers, updates = _inputs(drop, rand, **given)
    result = secagg.run_round(numbers, updates, randomness=sampled(numbers), dropouts=drop, session=_SESSION, round=0)
    return _result(ring, result.aggregate, result.contributors, given)


def _recovery(drop: Any, user: Any, owner: Any, kind: Any, rand: Mapping[str, Any], **given: Any) -> dict[str, Any]:
    ring, numbers, updates = _inputs(drop, rand, **given)
    whole = secagg.open_round(numbers, updates, session=_SESSION, round=0)
    network = Network(secagg.TABLE[:-1], whole.states)
    run_synchronous(network, drop, sampled(numbers))
    network.waiting[SERVER] = alter(network.waiting[SERVER], user, owner, kind)
    server = network.take(secagg.TABLE[-1], SERVER).state
    return _result(ring, server.aggregate, server.survivors, given)


_SHARES = {"seed": ("survivors", "seed_shares"), "key": ("dropped", "key_shares")}
"""The kinds of shares that a user releases: the members of its message with their owners, and with the shares."""


def alter(mail: Sequence[Message], user: int, owner: int, kind: str) -> list[Message]:
    """Return the server's mail, with one bit of one share changed."""
    if kind not in _SHARES:
        raise ParameterError("kind", kind, " or ".join(map(repr, _SHARES)))
    owners, shares = _SHARES[kind]
    for at, message in enumerate(mail):
        if message.sender == user and owner in getattr(message, owners, ()):
            data = bytearray(getattr(message, shares))
            data[getattr(message, owners).index(owner) * ELEMENT_BYTES] ^= 1
            return [*mail[:at], replace(message, **{shares: bytes(data)}), *mail[at + 1 :]]  # type: ignore[arg-type]
    raise UnknownUser("owner", owner, f"a user of whose {kind} user {user} releases a share")


def _inputs(
    drop: Any, rand: Mapping[str, Any], *,
    R: Any, N: Any, t: Any, k: Any, clip: Any, level: Any, max_weight: Any, weights: Any, x: Any,
) -> tuple[Ring, Parameters, UintArray]:  # fmt: skip
    """Return the ring, the parameters and the inputs of a round over reals."""
    d = len(x[0]) // 16 if x else 0
    numbers = parameters(N, t, k, d, readers.number("R", R))
    check_drop(drop, N)
    step = validate.integer("level", readers.number("level", level), 1, quantizer.MAX_LEVEL)
    check_scale(clip, max_weight)
    check_weights(weights, N, max_weight)
    inputs = rows("x", x, N, d)
    check_inputs(inputs, clip)
    rounding = rows("rounding", rand["rounding"], N, d)
    return numbers.ring, numbers, quantised(numbers.ring, inputs, weights, step, max_weight, rounding)


def _result(ring: Ring, aggregate: UintArray, users: Sequence[int], given: Mapping[str, Any]) -> dict[str, Any]:
    total = sum(given["weights"][user] for user in users)
    return {"average": pack_reals(averaged(ring, aggregate, int(given["level"]), total)), "contributors": list(users)}


def sampled(numbers: Any, label: str = "secagg") -> dict[int, Randomness]:
    """Return values for the users of a round whose result does not depend on them."""
    sources = {user: SeededSource(user.to_bytes(4, "little"), label) for user in range(numbers.N)}
    return secagg.draw_randomness(numbers, sources)


def _unmasking(N: Any, t: Any, k: Any, drop: Any, user: Any, requests: Any) -> dict[str, Any]:
    numbers = parameters(N, t, k, 1)
    check_drop(drop, N)
    network = before_unmasking(numbers, drop)
    check_survivor(network, user)
    state, answers = network.states[user], []
    for asked in requests:
        request = UnmaskRequest(_SESSION, 0, SERVER, user, tuple(asked["survivors"]), tuple(asked["dropped"]))
        state, entry = release(state, request)
        answers.append(entry)
    return {"answers": answers}


def before_unmasking(numbers: Parameters, drop: Mapping[str, Sequence[int]]) -> Network:
    """Return the network of an all-zero round after the masked inputs were sent."""
    network = secagg.open_round(numbers, np.zeros((numbers.N, 1), dtype=np.uint64), session=_SESSION, round=0)
    early = Network(tuple(step for step in secagg.TABLE if step.phase != "unmasking"), network.states)
    run_synchronous(early, drop, sampled(numbers))
    return early


def check_survivor(network: Network, user: int) -> None:
    """Refuse a user that sent no masked input (ADP-34)."""
    if user not in network.states[SERVER].survivors:
        raise UnknownUser("user", user, "a user that sends a masked input")


def release(state: secagg.UserState, request: UnmaskRequest) -> tuple[secagg.UserState, dict[str, Any]]:
    """Return the user after a request, and the users whose shares it released, or its refusal."""
    try:
        state, (answer,) = secagg.user_unmasking.take(state, (request,), randomness={})
    except (ParameterError, ProtocolError) as error:
        return state, {"reject": {"code": reject_code(error), "message": str(error)}}
    assert isinstance(answer, UnmaskShares)
    return state, {"seeds": list(answer.survivors), "keys": list(answer.dropped)}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "secagg.average": _average,
    "secagg.unmasking": _unmasking,
    "secagg.recovery": _recovery,
}
