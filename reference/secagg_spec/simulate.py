"""The command ``secagg-spec simulate``: one round of the reference, phase by phase, as a person would follow it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import sealed_links
from secagg_spec.errors import ParameterError, TooFewSurvivors
from secagg_spec.protocols import lightsecagg, lightsecagg_active
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.shape import SERVER, Event, Network, Role, check_dropouts, run_synchronous, sizes

_PROFILES = {"semi-honest": lightsecagg, "active": lightsecagg_active}
_LEVEL = 2**16
_MOST_ELEMENTS = 2**21
_EXIT_CODES = """exit codes:
  0  the round gave the right sum
  1  the round ended without a sum, since too few users were left
  2  wrong usage, or parameters that the text refuses"""


def add_parser(commands: Any) -> None:
    """Add ``simulate`` to the commands."""
    parser = commands.add_parser(
        "simulate",
        help="watch one round of a protocol, phase by phase",
        description="Run one round of the reference and show who sends what to whom, and that the sum is right.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("protocol", choices=["lightsecagg"], help="the protocol")
    parser.add_argument(
        "--profile", choices=list(_PROFILES), default="semi-honest", help="what is assumed of the server (semi-honest)"
    )
    parser.add_argument("--users", type=int, default=8, metavar="N", help="users on the roster (8)")
    parser.add_argument("--colluders", type=int, metavar="T", help="users that may collude (N // 4, at least 1)")
    parser.add_argument("--answers", type=int, metavar="U", help="answers that are needed (N minus dropouts allowed)")
    parser.add_argument("--dropouts", type=int, metavar="D", help="users that may drop out (N // 4)")
    parser.add_argument(
        "--signatures",
        type=int,
        metavar="W",
        help="active profile: signatures that a user demands (least that is safe)",
    )
    parser.add_argument("--length", type=int, default=6, metavar="d", help="elements of an update (6)")
    parser.add_argument("--modulus", type=int, default=2**32 - 5, metavar="q", help="the field's prime (2**32 - 5)")
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="PHASE:USER",
        help="a user drops out before a phase: upload:2 (may be given several times)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of inputs and masks (0)")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    """Run the command; 0 when the round gave the right sum, 1 when too few users were left."""
    parameters, profile = _parameters(options), _PROFILES[options.profile]
    dropouts = _dropouts(options.drop, profile.PHASES)
    check_dropouts(profile.TABLE, range(parameters.N), dropouts)
    source = SeededSource(validate.integer("seed", options.seed, 0, 2**64 - 1).to_bytes(8, "little"), "simulate")
    reals, updates = _inputs(parameters, source)
    seed = options.seed.to_bytes(8, "little")
    randomness = lightsecagg.draw_randomness(
        parameters, {u: SeededSource(seed, f"user {u}") for u in range(parameters.N)}
    )
    print(_heading(parameters, dropouts))
    network = _network(parameters, updates, seed)
    ended = ""
    try:
        run_synchronous(network, dropouts, randomness)
    except TooFewSurvivors as failed:
        ended = str(failed)
    for line in narrate(network.transcript, parameters.N):
        print(line)
    print(f"\nthe round ends without a sum: {ended}" if ended else _conclusion(parameters, reals, updates, network))
    return 1 if ended else 0


def _network(parameters: lightsecagg.Parameters, updates: UintArray, seed: bytes) -> Network:
    """Return the round before its first step, with the users' keys from the seed."""
    users = range(parameters.N)
    privates = {user: SeededSource(seed, f"key of user {user}").take(KEY_BYTES) for user in users}
    if isinstance(parameters, lightsecagg_active.Parameters):
        signing = {user: SeededSource(seed, f"signing key of user {user}").take(KEY_BYTES) for user in users}
        keys = {user: lightsecagg_active.PrivateKeys(privates[user], signing[user]) for user in users}
        return lightsecagg_active.open_round(parameters, updates, keys=keys)
    context = lightsecagg.sealing_context(parameters, bytes(16), 0)
    return lightsecagg.open_round(parameters, updates, channel=sealed_links(context, privates))


def _parameters(options: argparse.Namespace) -> lightsecagg.Parameters:
    N = validate.integer("users", options.users, 3)
    T = max(1, N // 4) if options.colluders is None else options.colluders
    most = N - T - 2 if options.profile == "semi-honest" else min(N - T - 2, N - _fewest_signers(N, T))
    D = max(0, min(N // 4, most)) if options.dropouts is None else options.dropouts
    U = N - D if options.answers is None else options.answers
    if options.dropouts is not None and N - T - 2 >= 0:
        validate.integer("dropouts", D, 0, N - T - 2)
    _refuse_large(N, options.length, U - T)
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
    """Return W: the one that was given, or the smallest that LSA-19 allows."""
    fewest = _fewest_signers(p.N, p.T)
    if fewest > p.N - p.D:
        wanted = (
            f"at most {p.N - fewest} in the active profile, since 2W > N + T asks for W = {fewest} signatures or more"
        )
        raise ParameterError("dropouts", p.D, wanted)
    return fewest if options.signatures is None else int(options.signatures)


def _refuse_large(N: int, d: int, pieces: int) -> None:
    """Refuse a round that is too large to be followed: N * N shares of L elements, and N updates of d."""
    elements = N * N * -(-d // max(1, pieces)) + N * d
    if elements > _MOST_ELEMENTS:
        raise ParameterError(
            "users * users * share length + users * length",
            elements,
            f"at most {_MOST_ELEMENTS} elements; give fewer --users or a smaller --length",
        )


def _inputs(p: lightsecagg.Parameters, source: SeededSource) -> tuple[RealArray | None, UintArray]:
    """Return real inputs in [-1, 1] and their updates; only updates where q is too small to carry N inputs."""
    if _bound(p) < 1:
        return None, draw_elements(source, p.field, (p.N, p.d))
    reals = np.round(draw_rounding(source, p.N * p.d) * 2 - 1, 3).reshape(p.N, p.d)
    return reals, np.stack([_quantized(p, row, source) for row in reals])


def _dropouts(given: Sequence[str], phases: Sequence[str]) -> dict[str, list[int]]:
    dropouts: dict[str, list[int]] = {}
    for entry in given:
        phase, colon, user = entry.partition(":")
        if not colon or not user.isdecimal():
            raise ParameterError("--drop", entry, f"PHASE:USER, as in upload:2; phases are {', '.join(phases)}")
        dropouts.setdefault(phase, []).append(int(user))
    return dropouts


def _quantized(parameters: lightsecagg.Parameters, row: RealArray, source: SeededSource) -> UintArray:
    rounding = draw_rounding(source, parameters.d)
    return quantizer.quantize(
        row, level=_level(parameters), ring=parameters.field, weight=parameters.N, rounding=rounding
    )


def _level(parameters: lightsecagg.Parameters) -> int:
    """Return the largest power of two up to 2**16 at which inputs in [-1, 1] fit N times into the field."""
    bound = _bound(parameters)
    return min(_LEVEL, 1 << (bound - 1).bit_length() - 1) if bound > 1 else 1


def _bound(parameters: lightsecagg.Parameters) -> int:
    """Return the largest quantised value that fits N times into the field (QNT-04)."""
    return (parameters.q - 1) // 2 // parameters.N


def _heading(parameters: lightsecagg.Parameters, dropouts: Mapping[str, Sequence[int]]) -> str:
    p = parameters
    gone = "; ".join(f"{_users(users)} before {phase}" for phase, users in dropouts.items()) or "nobody"
    return (
        f"LightSecAgg: N = {p.N} users, U = {p.U} answers needed, T = {p.T} may collude, D = {p.D} may drop out\n"
        f"q = {p.q}, updates of d = {p.d} elements, shares of L = {p.share_length}; drops out: {gone}\n"
        f"channel: sealed (X25519, HKDF-SHA256, ChaCha20-Poly1305); keys, masks and inputs from the seed"
        f"{_agreement(p)}"
    )


def _agreement(p: lightsecagg.Parameters) -> str:
    if not isinstance(p, lightsecagg_active.Parameters):
        return ""
    return f"\nactive profile: nobody answers before W = {p.W} users have signed the surviving set (Ed25519)"


def narrate(transcript: Sequence[Event], N: int) -> Iterator[str]:
    """Tell a transcript: per step who sends what to whom, how many bytes, and what the server then holds."""
    for step in dict.fromkeys(event.step for event in transcript):
        events = [event for event in transcript if event.step is step]
        yield f"\n{step.phase}: {'each user' if step.role is Role.USER else 'the server'}"
        silent = set(range(N)) - {event.party for event in events}
        if step.role is Role.USER and silent:
            yield f"  absent: {_users(sorted(silent))}"
        yield from _sent(events)
        if step.role is Role.SERVER:
            yield from _known(events[-1].state)


def _sent(events: Sequence[Event]) -> Iterator[str]:
    kinds = Counter(type(message).__name__ for event in events for message in event.sent)
    for kind, count in kinds.items():
        messages = [m for event in events for m in event.sent if type(m).__name__ == kind]
        routes = f"{_parties(m.sender for m in messages)} -> {_parties(m.receiver for m in messages)}"
        yield f"  {kind}: {count} messages, {routes}, {sizes(messages):,} bytes"
        yield f"    e.g. {_message(messages[0])}"


def _known(state: Any) -> Iterator[str]:
    assert is_dataclass(state)
    skipped = {"parameters", "session", "round", "phase", "ballot"}
    for entry in fields(state):
        value = getattr(state, entry.name)
        if entry.name == "base":
            yield from _known(value)
        elif entry.name not in skipped and value is not None and len(value):
            yield f"  the server now has {entry.name.replace('_', ' ')}: {_shown(value)}"


def _conclusion(
    parameters: lightsecagg.Parameters, reals: RealArray | None, updates: UintArray, network: Network
) -> str:
    state = network.states[SERVER]
    server: Any = state.base if isinstance(state, lightsecagg_active.ServerState) else state
    chosen = list(server.surviving)
    plain = parameters.field.sum(updates[chosen])
    assert np.array_equal(server.aggregate, plain), "the round did not give the plain sum"
    return (
        f"\n{_sums(parameters, chosen, reals, server.aggregate)}\n"
        f"the aggregate equals the plain sum of the quantised updates: {len(plain)} of {len(plain)} elements"
    )


def _sums(p: lightsecagg.Parameters, chosen: list[int], reals: RealArray | None, aggregate: UintArray) -> str:
    if reals is None:
        return (
            f"sum over {_users(chosen)}: {_shown(aggregate)}\n"
            f"q = {p.q} is too small to carry the sum of {p.N} real inputs, so the updates are drawn elements"
        )
    decoded = quantizer.dequantize(aggregate, level=_level(p), ring=p.field)
    return (
        f"sum over {_users(chosen)}, decoded: {_shown(decoded)}\n"
        f"sum of the real inputs:      {_shown(reals[chosen].sum(axis=0))}"
    )


def _message(message: Message) -> str:
    header = ("session", "round", "sender", "receiver")
    parts = [f"{f.name} = {_shown(getattr(message, f.name))}" for f in fields(message) if f.name not in header]
    return f"{_party(message.sender)} -> {_party(message.receiver)}: {', '.join(parts)}"


def _shown(value: Any, most: int = 6) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:12].hex()}…"
    numbers = [f"{x:.4f}" if isinstance(x, float) else str(x) for x in np.asarray(value).tolist()[:most]]
    return "(" + ", ".join(numbers) + (", …" if len(value) > most else "") + ")"


def _party(party: int) -> str:
    return "server" if party == SERVER else f"user {party}"


def _parties(parties: Any) -> str:
    distinct = sorted(set(parties))
    return "server" if distinct == [SERVER] else _users(distinct)


def _users(users: Sequence[int]) -> str:
    """Return users in words, runs joined: ``users 0 to 3, 5``."""
    ordered, runs = sorted(users), list[list[int]]()
    for user in ordered:
        if runs and user == runs[-1][-1] + 1:
            runs[-1].append(user)
        else:
            runs.append([user])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ("user " if len(ordered) == 1 else "users ") + ", ".join(words) if words else "nobody"
