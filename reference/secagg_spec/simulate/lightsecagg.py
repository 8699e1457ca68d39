"""``secagg-spec simulate lightsecagg``: one round of LightSecAgg, in either profile."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.steps import Network, check_dropouts
from secagg_spec.simulate.inputs import (
    BOX_ELEMENTS,
    add_drop,
    colluders,
    draw_inputs,
    read_dropouts,
    refuse_large,
    seed_bytes,
    told_dropouts,
)
from secagg_spec.simulate.narration import play

_PROFILES = {"semi-honest": lightsecagg, "active": lightsecagg_active}


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add_drop(parser, "upload")
    parser.add_argument("--colluders", type=int, metavar="T", help="users that may collude (N // 4, at least 1)")
    parser.add_argument("--answers", type=int, metavar="U", help="number of answers needed (N minus allowed dropouts)")
    parser.add_argument(
        "--dropouts", type=int, metavar="D", help="users that may drop out (N // 4, or fewer if T leaves fewer)"
    )
    parser.add_argument(
        "--signatures",
        type=int,
        metavar="W",
        help="active profile: signatures that a user demands (the smallest safe number)",
    )
    parser.add_argument("--modulus", type=int, default=2**32 - 5, metavar="q", help="the field's prime (2**32 - 5)")


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: the round gave the right sum; 1: too few users were left."""
    parameters, profile = _parameters(options), _PROFILES[options.profile]
    dropouts = read_dropouts(options.drop, profile.PHASES)
    check_dropouts(profile.TABLE, range(parameters.N), dropouts, "--drop")
    seed = seed_bytes(options.seed)
    inputs = draw_inputs(parameters.field, "q", parameters.N, parameters.d, seed)
    sources = {user: SeededSource(seed, f"user {user}") for user in range(parameters.N)}
    print(_heading(parameters, dropouts))
    network = network_of(parameters, inputs.updates, seed)
    return play(network, dropouts, lightsecagg.draw_randomness(parameters, sources), inputs, _result, "lightsecagg")


def _result(state: Any) -> tuple[Sequence[int], UintArray]:
    server = state.base if isinstance(state, lightsecagg_active.ServerState) else state
    assert server.aggregate is not None
    return server.surviving, server.aggregate


def network_of(parameters: lightsecagg.Parameters, updates: UintArray, seed: bytes) -> Network:
    """Return the round before its first step; the seed determines the users' keys."""
    users = range(parameters.N)
    privates = {user: SeededSource(seed, f"key of user {user}").take(KEY_BYTES) for user in users}
    if isinstance(parameters, lightsecagg_active.Parameters):
        signing = {user: SeededSource(seed, f"signing key of user {user}").take(KEY_BYTES) for user in users}
        keys = {user: lightsecagg_active.PrivateKeys(privates[user], signing[user]) for user in users}
        return lightsecagg_active.open_round(parameters, updates, keys=keys, session=bytes(16), round=0)
    context = lightsecagg.sealing_context(parameters, bytes(16), 0)
    return lightsecagg.open_round(
        parameters, updates, channel=sealed_links(context, privates), session=bytes(16), round=0
    )


def _parameters(options: argparse.Namespace) -> lightsecagg.Parameters:
    N = validate.integer("users", options.users, 3)
    T = colluders(options.colluders, max(1, N // 4), N - 2)
    most = N - T - 2 if options.profile == "semi-honest" else min(N - T - 2, N - _fewest_signers(N, T))
    D = max(0, min(N // 4, most)) if options.dropouts is None else options.dropouts
    U = N - D if options.answers is None else options.answers
    if options.dropouts is not None:
        D = validate.integer("dropouts", D, 0, N - T - 2)
    if options.answers is not None:
        U = validate.integer("answers", U, T + 1, N - D)
    elements = N * N * (-(-options.length // max(1, U - T)) + BOX_ELEMENTS) + N * options.length
    refuse_large("users * users * (share length + seal) + users * length", elements)
    numbers = {"q": options.modulus, "N": N, "D": D, "U": U, "T": T, "d": options.length}
    parameters = lightsecagg.Parameters(**numbers)
    if options.profile == "active":
        return lightsecagg_active.Parameters(**numbers, W=_signatures(options, parameters))
    if options.signatures is not None:
        raise ParameterError("signatures", options.signatures, "left out, but with --profile active")
    return parameters


def _fewest_signers(N: int, T: int) -> int:
    """Return the smallest W with 2W > N + T (LSA-19)."""
    return (N + T) // 2 + 1


def _signatures(options: argparse.Namespace, p: lightsecagg.Parameters) -> int:
    """Return W: the given one, or the smallest that LSA-19 allows."""
    fewest = _fewest_signers(p.N, p.T)
    if fewest > p.N - p.D:
        wanted = f"at most {p.N - fewest} in the active profile: 2W > N + T needs W = {fewest} signatures or more"
        raise ParameterError("dropouts", p.D, wanted)
    return fewest if options.signatures is None else int(options.signatures)


def _heading(parameters: lightsecagg.Parameters, dropouts: Mapping[str, Sequence[int]]) -> str:
    p = parameters
    return (
        f"LightSecAgg: N = {p.N} users, U = {p.U} answers needed, T = {p.T} may collude, D = {p.D} may drop out\n"
        f"q = {p.q}, updates of d = {p.d} elements, shares of L = {p.share_length}; "
        f"drops out: {told_dropouts(dropouts)}\n"
        f"channel: sealed (X25519, HKDF-SHA256, ChaCha20-Poly1305); keys, masks and inputs from the seed"
        f"{_agreement(p)}"
    )


def _agreement(p: lightsecagg.Parameters) -> str:
    if not isinstance(p, lightsecagg_active.Parameters):
        return ""
    return f"\nactive profile: nobody answers before W = {p.W} users have signed the surviving set (Ed25519)"
