"""``secagg-spec simulate secagg``: one round of SecAgg or, on a sparse graph, SecAgg+, in either profile."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.graph import draw_order
from secagg_spec.protocols.steps import Network, check_dropouts
from secagg_spec.simulate.inputs import (
    BOX_ELEMENTS,
    MOST_ELEMENTS,
    add_drop,
    colluders,
    draw_inputs,
    read_dropouts,
    refuse_large,
    seed_bytes,
    told_dropouts,
)
from secagg_spec.simulate.narration import play, users_in_words

_PROFILES = {"semi-honest": secagg, "active": secagg_active}


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add_drop(parser, "masked_input")
    parser.add_argument("--colluders", type=int, metavar="T", help="users that may collude (N // 4, at least 1)")
    parser.add_argument(
        "--dropouts", type=int, metavar="D", help="users that may drop out (N // 4, or fewer if T leaves fewer)"
    )
    parser.add_argument(
        "--threshold",
        type=int,
        metavar="t",
        help="number of shares needed (N // 2 + 1, or N - D if that is less, and at least the smallest that the text "
        "allows; k // 2 + 1 with fewer --neighbours, however many collude)",
    )
    parser.add_argument("--neighbours", type=int, metavar="k", help="neighbours of each user (N - 1: all others)")
    parser.add_argument("--modulus", type=int, default=2**32, metavar="R", help="the modulus of updates (2**32)")


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: the round gave the right sum; 1: too few users were left."""
    parameters, profile = _parameters(options), _PROFILES[options.profile]
    dropouts = read_dropouts(options.drop, profile.PHASES)
    check_dropouts(profile.TABLE, range(parameters.N), dropouts, "--drop")
    seed = seed_bytes(options.seed)
    inputs = draw_inputs(parameters.ring, "R", parameters.N, parameters.d, seed)
    sources = {user: SeededSource(seed, f"user {user}") for user in range(parameters.N)}
    order = None if parameters.complete else draw_order(SeededSource(seed, "order"), parameters.N)
    print(_heading(parameters, dropouts, order))
    network = network_of(parameters, inputs.updates, order, seed)
    sampled = secagg.draw_randomness(parameters, sources)
    return play(network, dropouts, sampled, inputs, _result, "secagg", _opened)


def _result(state: Any) -> tuple[Sequence[int], UintArray]:
    server = state.base if isinstance(state, secagg_active.ServerState) else state
    assert server.aggregate is not None
    return server.survivors, server.aggregate


def _opened(state: Any) -> str:
    """Say which secrets the server recovered, and so which masks it removed from the sum."""
    server = state.base if isinstance(state, secagg_active.ServerState) else state
    recovered = f"it recovered the self seeds of {users_in_words(server.survivors)}"
    if not server.dropped:
        return f"{recovered}, and no masking key"
    return f"{recovered}, and the masking key{'s' * (len(server.dropped) > 1)} of {users_in_words(server.dropped)}"


def network_of(p: secagg.Parameters, updates: UintArray, order: Sequence[int] | None, seed: bytes) -> Network:
    """Return the round before its first step; the seed determines the users' signing keys."""
    if isinstance(p, secagg_active.Parameters):
        signing = {user: SeededSource(seed, f"signing key of user {user}").take(KEY_BYTES) for user in range(p.N)}
        return secagg_active.open_round(p, updates, signing=signing, session=bytes(16), round=0)
    return secagg.open_round(p, updates, order=order, session=bytes(16), round=0)


def _parameters(options: argparse.Namespace) -> secagg.Parameters:
    N = validate.integer("users", options.users, 3, 2**16)
    k = N - 1 if options.neighbours is None else options.neighbours
    active, complete = options.profile == "active", k == N - 1
    T = colluders(options.colluders, max(1, N // 4), N - 2)
    least = _least(N, T, active) if complete else 2
    if options.dropouts is not None and (not complete or options.dropouts < 0):
        validate.integer("dropouts", options.dropouts, 0, N - max(least, T + 2))
    D = max(0, min(N // 4, N - max(least, T + 2))) if options.dropouts is None else options.dropouts
    t = (
        max(least, min(N // 2 + 1, N - D) if complete else k // 2 + 1)
        if options.threshold is None
        else options.threshold
    )
    fewer = f"--neighbours {most}, which is SecAgg+, " if 2 <= (most := _most_neighbours(N, options.length)) < k else ""
    refuse_large("users * neighbours * shares + users * length", N * k * BOX_ELEMENTS + N * options.length, fewer)
    numbers = {"R": options.modulus, "N": N, "D": D, "T": T, "t": t, "k": k, "d": options.length}
    if options.threshold is None and complete and t > N - D:
        why = "2t > N + T" if active else "t >= T + 2"
        raise ParameterError("dropouts", D, f"at most {N - least}: {why} needs t = {least} shares or more")
    return secagg_active.Parameters(**numbers) if active else secagg.Parameters(**numbers)


def _most_neighbours(N: int, d: int) -> int:
    """Return the largest even degree, at most 30, with which a round is not too large; below 2 if there is none."""
    return min(30, (MOST_ELEMENTS - N * d) // (N * BOX_ELEMENTS)) // 2 * 2


def _least(N: int, T: int, active: bool) -> int:
    """Return the smallest threshold on the complete graph (SAG-02, SAG-50)."""
    return (N + T) // 2 + 1 if active else T + 2


def _heading(p: secagg.Parameters, dropouts: Mapping[str, Sequence[int]], order: Sequence[int] | None) -> str:
    name = "SecAgg" if p.complete else "SecAgg+"
    around = "" if order is None else f"; order on the circle: {', '.join(map(str, order))}"
    graph = "everybody is a neighbour of everybody" if p.complete else f"each user has k = {p.k} neighbours"
    lines = [
        f"{name}: N = {p.N} users, t = {p.t} shares needed, T = {p.T} may collude, D = {p.D} may drop out",
        f"R = {p.R}, updates of d = {p.d} elements; drops out: {told_dropouts(dropouts)}",
        f"{graph}{around}",
        "keys, seeds, polynomials and inputs from the seed",
    ]
    if isinstance(p, secagg_active.Parameters):
        lines.append(f"active profile: nobody answers before t = {p.t} users have signed the survivors (Ed25519)")
    return "\n".join(lines)
