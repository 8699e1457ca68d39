"""Draws rounds: the inputs of each protocol's parties, who drops out when, and one party with what arrives at it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import (
    basa_sessions,
    basecagg_sessions,
    heterosag_rounds,
    lightsecagg_active_parties,
    lightsecagg_parties,
    strategies,
)
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.inputs import NOBODY, Dropouts, SessionInputs
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import sha256
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.steps import SERVER, Network, Role

_MODULI = (8, 2, 3, 7, 256, 2**31, 2**32 - 1, 2**32)
_PRIMES = (7, 11, 97, 32749, 2**31 - 1, 2**32 - 5)
_MOST = 6


def secagg(draw: Any, *, sparse: bool | None = None, spare: int = 0) -> SessionInputs:
    """Draw a round of SecAgg in which at least `spare` users may drop out."""
    wanted = draw(st.booleans()) if sparse is None else sparse
    numbers = (_sparse_numbers if wanted else _complete_numbers)(draw, spare)
    R, d = draw(among(_MODULI)), strategies.length(draw, 1, 5)
    return secagg_round(draw, {"R": str(R), **numbers, "d": d})


def secagg_round(draw: Any, numbers: Mapping[str, Any]) -> SessionInputs:
    """Draw a round of SecAgg with these numbers."""
    N = numbers["N"]
    order = strategies.shuffled(draw, range(N))
    return _shared_round(draw, "secagg", numbers, {"order": order}, [{"order": order}] * N)


def active(draw: Any, spare: int = 0) -> SessionInputs:
    """Draw a round of SecAgg's active profile in which at least `spare` users may drop out."""
    N = draw(st.integers(3 + 2 * spare, _MOST + 1))
    least = {T: max(T + 2, (N + T) // 2 + 1) for T in range(1, N - 1)}
    T = draw(among([T for T, t in least.items() if t <= N - spare]))
    t = draw(st.integers(least[T], N - spare))
    R, d = draw(among(_MODULI)), strategies.length(draw, 1, 5)
    numbers = {"N": N, "D": draw(st.integers(0, N - t)), "T": T, "t": t, "k": N - 1, "d": d}
    return active_round(draw, {"R": str(R), **numbers})


def active_round(draw: Any, numbers: Mapping[str, Any]) -> SessionInputs:
    """Draw a round of SecAgg's active profile with these numbers."""
    signing = lightsecagg_active_parties.signing_keys(draw, numbers["N"])
    shown = {"verification": [lightsecagg_active_parties.verifying(key).hex() for key in signing]}
    return _shared_round(draw, "secagg-active", numbers, shown, [{"signing": key.hex(), **shown} for key in signing])


def _shared_round(
    draw: Any, protocol: str, numbers: Mapping[str, Any], server: Mapping[str, Any], users: Sequence[Mapping[str, Any]]
) -> SessionInputs:
    """Draw a round of SecAgg, of a profile whose parties are given this in addition to their updates."""
    N, R, d = numbers["N"], int(numbers["R"]), numbers["d"]
    updates = strategies.matrix(draw, R, N, d)
    seed = draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little")
    setups: dict[int, Mapping[str, Any]] = {SERVER: server}
    for user in range(N):
        setups[user] = {"user": user, **users[user], "update": pack(updates[user])}
    rands = {user: lightsecagg_parties.round_secrets(SeededSource(seed, str(user)), numbers["t"]) for user in range(N)}
    header = lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS))
    return SessionInputs(protocol, numbers, *header, setups, rands)


def bare(draw: Any) -> SessionInputs:
    """Draw a round of SecAgg on a sparse graph of up to 12 users. Only its server is asked."""
    N = draw(among((6, *range(4, 13))))
    k = draw(among([k for k in (3, *range(2, N - 1)) if k * N % 2 == 0 and k < N - 1]))
    T = draw(st.integers(1, N - 3))
    numbers = {"R": "8", "N": N, "D": 0, "T": T, "t": draw(st.integers(2, k + 1)), "k": k, "d": 1}
    order = strategies.shuffled(draw, range(N))
    setups: dict[int, Mapping[str, Any]] = {SERVER: {"order": order}}
    setups.update({user: {"user": user, "order": order, "update": pack(np.zeros(1, np.uint64))} for user in range(N)})
    rands = {user: lightsecagg_parties.round_secrets(SeededSource(b"", str(user)), numbers["t"]) for user in range(N)}
    header = lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS))
    return SessionInputs("secagg", numbers, *header, setups, rands)


def _complete_numbers(draw: Any, spare: int) -> dict[str, int]:
    N = draw(st.integers(3 + spare, _MOST))
    T = draw(st.integers(1, N - 2 - spare))
    t = draw(st.integers(T + 2, N - spare))
    return {"N": N, "D": draw(st.integers(0, N - t)), "T": T, "t": t, "k": N - 1}


def _sparse_numbers(draw: Any, spare: int) -> dict[str, int]:
    N = draw(st.integers(max(4, 3 + spare), _MOST + 1))
    k = draw(among([k for k in range(2, N - 1) if k * N % 2 == 0]))
    T = draw(st.integers(1, N - 2 - spare))
    t = draw(st.integers(2, max(2, k + 1 - spare)))
    return {"N": N, "D": draw(st.integers(0, N - max(t, T + 2))), "T": T, "t": t, "k": k}


def light(draw: Any, *, active: bool) -> SessionInputs:
    """Draw a round of LightSecAgg, in the semi-honest profile over either channel or in the active profile."""
    T = draw(st.integers(1, 2))
    D = draw(st.integers(0, 1))
    N = draw(st.integers(T + 2 * D + 2, T + 2 * D + 4))
    U = draw(st.integers(T + 1, N - D))
    W = {"W": draw(st.integers((N + T) // 2 + 1, N - D))} if active else {}
    q, d = int(draw(among(_PRIMES[1:]))), strategies.length(draw, 1, 5)
    return _light_round(draw, {"q": str(q), "N": N, "D": D, "U": U, "T": T, "d": d, **W}, active)


def _light_round(draw: Any, numbers: Mapping[str, Any], active: bool, later: int | None = None) -> SessionInputs:
    """Draw a round of LightSecAgg with these numbers. `later` is its number if it is not the session's first round."""
    q, (N, U, T, d) = int(numbers["q"]), (numbers[name] for name in ("N", "U", "T", "d"))
    updates, masks = strategies.matrix(draw, q, N, d), strategies.matrix(draw, q, N, d)
    noises = strategies.matrix(draw, q, N, T * -(-d // (U - T)))
    rands = {user: {"mask": pack(masks[user]), "noise": pack(noises[user])} for user in range(N)}
    server, users = _light_keys(draw, N, active, later)
    setups: dict[int, Mapping[str, Any]] = {SERVER: server}
    for user in range(N):
        setups[user] = {"user": user, "update": pack(updates[user]), **users[user]}
    header = lightsecagg_parties.session_id(draw), draw(among(lightsecagg_parties.ROUNDS))
    return SessionInputs("lightsecagg-active" if active else "lightsecagg", numbers, *header, setups, rands)


def _light_keys(
    draw: Any, N: int, active: bool, later: int | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Draw the keys in the setups of the server and of the users. Those of each later round differ (LSA-35)."""
    privates = lightsecagg_parties.private_keys(draw, N)
    if active and later is not None:
        privates = [sha256(key + later.to_bytes(4, "little")) for key in privates]
    if active:
        return lightsecagg_active_parties.given_keys(draw, privates)
    plain = draw(st.booleans())
    return {}, [{"channel": "plain"}] * N if plain else lightsecagg_parties.sealed_channels(privates)


INPUTS: dict[str, Callable[[Any], SessionInputs]] = {
    "secagg": lambda draw: secagg(draw, spare=draw(st.integers(0, 2))),
    "secagg-active": lambda draw: active(draw, draw(st.integers(0, 2))),
    "basecagg": basecagg_sessions.inputs,
    "basecagg-active": lambda draw: basecagg_sessions.inputs(draw, basecagg_sessions.numbers(draw, active=True)),
    "basa": basa_sessions.inputs,
    "heterosag": heterosag_rounds.inputs,
    "lightsecagg": lambda draw: light(draw, active=False),
    "lightsecagg-active": lambda draw: light(draw, active=True),
}


def inputs(draw: Any, protocol: str) -> SessionInputs:
    """Draw a round of a protocol."""
    return INPUTS[protocol](draw)


NEXT: dict[str, Callable[[Any, SessionInputs, int], SessionInputs]] = {
    "secagg": lambda draw, inputs, number: secagg_round(draw, inputs.numbers),
    "secagg-active": lambda draw, inputs, number: active_round(draw, inputs.numbers),
    "heterosag": lambda draw, inputs, number: heterosag_rounds.inputs(draw, read_parameters(**inputs.numbers), []),
    "lightsecagg": lambda draw, inputs, number: _light_round(draw, inputs.numbers, False, number),
    "lightsecagg-active": lambda draw, inputs, number: _light_round(draw, inputs.numbers, True, number),
}
"""How another round is drawn with the numbers of a round, for each protocol whose parties go from round to round."""


def next_round(draw: Any, inputs: SessionInputs, number: int) -> SessionInputs:
    """Draw another round of a session under this number, with new inputs, keys and sampled values.

    In HeteroSAg the round starts without a past. Callers that know the answered requests add it.
    """
    return replace(NEXT[inputs.protocol](draw, inputs, number), session=inputs.session, round=number)


def dropouts(draw: Any, inputs: SessionInputs, most: int) -> Dropouts:
    """Draw who drops out before which step: at most `most` users, each once. In HeteroSAg often as many as allowed."""
    if inputs.protocol == "heterosag" and draw(st.booleans()):
        return heterosag_rounds.spared(draw, inputs)
    phases = [step.phase for step in inputs.table if step.role is Role.USER]
    dropouts: dict[str, list[int]] = {phase: [] for phase in phases}
    for user in strategies.subset(draw, inputs.users, 0, most):
        dropouts[draw(among(phases))].append(user)
    return dropouts


def played(inputs: SessionInputs, dropouts: Dropouts) -> Network:
    """Return the round with these dropouts, or without dropouts if too few users would be left."""
    try:
        return inputs.played(dropouts)
    except TooFewSurvivors:
        return inputs.played(NOBODY)


def scene(draw: Any, role: Role, *, sparse: bool | None = None, spare: int = 0) -> Played:
    """Draw a party of a SecAgg round that succeeds. A user takes all of its steps."""
    return _party(draw, role, secagg(draw, sparse=sparse, spare=spare))


def active_scene(draw: Any, role: Role, *, spare: int = 0) -> Played:
    """Draw a party of a round of SecAgg's active profile that succeeds. A user takes all of its steps.

    The signatures arrive at the server in any order.
    """
    drawn = _party(draw, role, active(draw, spare))
    for at, event in enumerate(drawn.network.transcript):
        if role is Role.SERVER and (event.step.phase, event.party) == ("consistency_check", SERVER):
            received = [event.received[place] for place in strategies.shuffled(draw, range(len(event.received)))]
            drawn.network.transcript[at] = replace(event, received=tuple(received))
    return drawn


def _party(draw: Any, role: Role, inputs: SessionInputs) -> Played:
    most = inputs.numbers["N"] - max(inputs.numbers["t"], inputs.numbers["T"] + 2)
    return party_of(draw, role, inputs, dropouts(draw, inputs, most))


def party_of(draw: Any, role: Role, inputs: SessionInputs, dropouts: Dropouts) -> Played:
    """Draw a party of a round with these dropouts."""
    network = played(inputs, dropouts)
    if role is Role.SERVER:
        return Played(inputs, SERVER, network)
    answering = [event.party for event in network.transcript if event.step.phase == "unmasking"]
    return Played(inputs, int(draw(among(answering[:-1]))), network)
