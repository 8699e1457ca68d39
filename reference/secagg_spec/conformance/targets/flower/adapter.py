"""An adapter for SecAgg+ of Flower, from 1.8.0 on: the released workflow and mod, driven without a network.

It runs in its own environment. A refusal is an error that the released code raises or logs on purpose (`REFUSALS`); any
other exception, such as a KeyError, is an error.

With ``--any``, the declared numbers include undocumented ones that the released code accepts: an even ``num_shares``
below the number of users, with a warning, and a ``reconstruction_threshold`` equal to ``num_shares``, if ``num_shares``
is a fraction. A single client does not see the difference.

With ``--binary32``, only the quantiser is declared, and given arrays of binary32, as the parameters of most models are.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
secagg.average       SecAggPlusWorkflow with secaggplus_mod in every client (composed: the network is ours)
secagg.recovery      the same
secagg.sum           the same, with one example for each user: an element v goes in as v - clip, with clip = (R - 1) / 2
                     and ``quantization_range = R - 1``, for which quantize gives v exactly; from the average we take
                     back what the workflow does to the sum
secagg.view          the same: the messages that come to a party. Masked vectors, the first of each user its masked
                     weight, are vectors; all else is a string
secagg.unmasking     secaggplus_mod in every client (composed: the network and the server are ours; SecAggPlusWorkflow
                     checks the parameters, and ``num_shares = 1`` stands for all users)
the others           the helpers, one by one: `flower.primitives`
===================  ===============================================================================================

N users, t and k are the users that the strategy samples, ``reconstruction_threshold`` and ``num_shares`` - 1. An input
in [-clip, clip] becomes an integer in [0, 2*clip*level]; ``quantization_range`` is therefore ``2 * clip * level``.
clip is ``clipping_range``, R is ``modulus_range``, and weights are numbers of examples, at most ``max_weight``.
"""

from __future__ import annotations

import logging
import sys
import warnings
from copy import deepcopy
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.insert(1, str(Path(__file__).parents[1]))

from flower.client import SERVER, STAGES, Client, node_of, user_of
from flower.primitives import BINARY32, DECLARED, HANDLERS, POLICY
from flower.released import FLOWER_LOGGER, value_at
from flower.round import Change, Halted, Outcome, Settings, read, run_round
from flower.unmasking import Ring, before_unmasking, kind_of, released
from flwr.server.workflow import SecAggPlusWorkflow
from secagg_adapter import (
    ROUND_PHASES,
    SUM_PHASES,
    Adapter,
    Reject,
    Unsupported,
    check_drop,
    pack,
    pack_reals,
    unpack,
    unpack_reals,
)

VERSION = metadata.version("flwr")
ANY = "--any" in sys.argv[1:]
FLOWER_LOGGER.setLevel(logging.ERROR)
warnings.simplefilter("ignore")

REFUSALS = {
    "`num_shares` ": "bad_param",
    "`reconstruction_threshold` ": "bad_param",
    "If `reconstruction_threshold` is a float": "bad_param",
    "`max_weight` ": "bad_param",
    "`quantization_range` ": "bad_param",
    "`modulus_range` ": "bad_param",
    "The number of samples should be greater than 1": "below_threshold",
    "Insufficient available nodes": "below_threshold",
    "Not enough shares to recover secret": "below_threshold",
    "Available neighbours number smaller than threshold": "below_threshold",
    "Not enough available neighbour clients": "below_threshold",
    "Abort secure aggregation: expect": "wrong_phase",
    "Some public keys are identical": "duplicate_id",
    "Failed to combine shares": "bad_share",
}
"""The beginnings of messages that the released code raises or logs on purpose, and their meanings."""


def refused(message: str) -> Reject | None:
    """Return the rejection for a message of the released code; None for other messages."""
    return next((Reject(code, message) for start, code in REFUSALS.items() if message.startswith(start)), None)


def numbers() -> list[dict[str, int]]:
    """Return the declared N, t and k."""
    rosters = [{"N": N, "t": t, "k": k} for N in range(3, 7) for k in range(2, N) for t in range(2, k + 2)]
    complete = [roster for roster in rosters if roster["k"] == roster["N"] - 1 and roster["t"] > 2]
    sparse = [roster for roster in rosters if roster["k"] < roster["N"] - 1 and roster["k"] * roster["N"] % 2 == 0]
    usual = [roster for roster in sparse if roster["k"] % 2 == 0 and roster["t"] <= roster["k"]]
    return [roster for roster in sparse if roster not in usual] if ANY else [*complete, *usual]


POWERS = [str(2**bits) for bits in (32, 31, 24, 16)]

SUMMED = (2**16, 2**24)
"""The moduli of sums of integers: the weights of up to 6 users and their sum are exact in binary64."""
COMPLETE = [{"N": N, "t": t} for N in range(3, 7) for t in range(3, N + 1)]

adapter = Adapter(
    "Flower" + (" (undocumented ranges)" if ANY else " (arrays of binary32)" if BINARY32 else ""),
    VERSION,
    randomness="none",
    policy={"average.weights": "quantised", **({} if ANY else POLICY)},
)


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


def shares(N: int, t: int, k: int) -> int | float:
    """Return ``num_shares``: 1.0 for all users; a fraction if the threshold is equal, which integers forbid."""
    return 1.0 if k == N - 1 else (k + 1) / N if t == k + 1 else k + 1


def stages(drop: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return dropouts by Flower's names for the phases."""
    return {stage: drop.get(phase, []) for stage, phase in zip(STAGES, ROUND_PHASES, strict=True)}


SCALED: dict[str, Any] = {"ranges": {"R": {"values": POWERS}}, "parameter_sets": numbers(), "composed": True}


def average(rand: dict[str, Any], **given: Any) -> dict[str, Any]:
    """SecAggPlusWorkflow, from the setup to the strategy."""
    return played(lambda user, configs: None, **given)


def recovery(user: int, owner: int, kind: str, rand: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Play the same round, with one bit changed in a share's value."""

    def change(sender: int, configs: Any) -> None:
        shares = list(configs["shares"])
        for at, (node, share) in enumerate(zip(configs["nids"], shares, strict=True)):
            if (sender, user_of(node), kind_of(share)) == (user, owner, kind):
                byte = value_at(share)
                shares[at] = share[:byte] + bytes([share[byte] ^ 1]) + share[byte + 1 :]
        configs["shares"] = shares

    return played(change, **given)


def total(**given: Any) -> dict[str, Any]:
    """Return the sum of a round of SecAggPlusWorkflow."""
    outcome, R = summed(SERVER, **given), int(given["R"])
    count = len(outcome.contributors)
    weight = count * (R - 1) % R / (R - 1)
    numbers = [round(value * weight + count * (R - 1) / 2) % R for value in outcome.average]
    return {"sum": pack(numbers), "contributors": outcome.contributors}


def view(viewer: int | str, **given: Any) -> dict[str, Any]:
    """Return the messages of such a round that come to a party."""
    stay = set(range(given["N"])) - {user for users in given["drop"].values() for user in users}
    if viewer != "server" and viewer not in stay:
        raise Reject("unknown_peer", f"user {viewer} does not stay to the end")
    outcome = summed(SERVER if viewer == "server" else node_of(int(viewer)), **given)
    parts = [read(message) for message in outcome.seen]
    vectors = [pack(vector) for numbers, _ in parts for vector in numbers]
    return {"vectors": vectors, "strings": [text.hex() for _, others in parts for text in others]}


def summed(watched: int, *, R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> Outcome:
    """Return the outcome of a round that sums integers."""
    check_drop(drop, N)
    if int(R) not in SUMMED or {"N": N, "t": t} not in COMPLETE:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    clip = (int(R) - 1) / 2
    inputs = [[value - clip for value in unpack(text)] for text in updates]
    settings = Settings(shares(N, t, N - 1), t, 1.0, clip, int(R) - 1, int(R))
    setup, masked, last = (drop[phase] for phase in SUM_PHASES)
    return run(inputs, [1] * N, dict(zip(STAGES, (setup, [], masked, last), strict=True)), settings, watched=watched)


def played(
    change: Change, *, R: str, N: int, t: int, k: int, clip: int, level: str, max_weight: int, weights: list[int],
    x: list[str], drop: dict[str, list[int]],
) -> dict[str, Any]:  # fmt: skip
    """Return the result of a round; `change` is applied to the shares in transit."""
    check_drop(drop, N)
    if len(x) != N or len(weights) != N:
        raise Reject("length_mismatch", f"{len(x)} inputs and {len(weights)} weights of {N} users")
    settings = Settings(shares(N, t, k), t, float(max_weight), float(clip), 2 * clip * int(level), int(R))
    outcome = run([unpack_reals(row) for row in x], weights, stages(drop), settings, change=change)
    return {"average": pack_reals(outcome.average), "contributors": outcome.contributors}


def run(
    x: list[list[float]], weights: list[int], drop: dict[str, list[int]], settings: Settings, **more: Any
) -> Outcome:  # fmt: skip
    """Return the outcome of a round; what the released code refuses is a rejection."""
    try:
        return run_round(x, weights, drop, settings, **more)
    except Halted as halted:
        raise refusal_of(halted) from halted
    except ValueError as error:
        raise refused(str(error)) or error from error


def refusal_of(halted: Halted) -> Reject | Halted:
    """Return the rejection that the workflow logged; if users failed before, the halt is an error instead."""
    broke = any(not refused(line.split("Error: ", 1)[-1]) for line in halted.raised)
    return halted if broke or not halted.logged else refused(halted.logged[0]) or halted


@lru_cache(maxsize=256)
def clients_before(ring: Ring, t: int, drop: tuple[tuple[str, tuple[int, ...]], ...]) -> dict[int, Client]:
    """Return the clients before the requests; each combination of numbers is played once, and copies are asked."""
    return before_unmasking(ring, t, dict(drop))


def unmasking(
    N: int, t: int, k: int, drop: dict[str, list[int]], user: int, requests: list[dict[str, list[int]]]
) -> dict[str, Any]:
    """secaggplus_mod in each client, followed by requests that name only the neighbours, as the workflow's do."""
    check_drop(drop, N)
    if user not in range(N) or any(user in users for users in drop.values()):
        raise Reject("unknown_peer", f"user {user} sends no masked input")
    try:
        SecAggPlusWorkflow(shares(N, t, k), t)
    except ValueError as error:
        raise refused(str(error)) or error from error
    ring = Ring(N, k or N - 1)
    early = tuple((stage, tuple(users)) for stage, users in stages(drop).items())
    try:
        clients = clients_before(ring, t, early)
    except ValueError as error:
        raise refused(str(error)) or error from error
    client, answers = deepcopy(clients[user]), list[dict[str, Any]]()
    for asked in requests:
        known = {name: [u for u in users if u in ring.near(user) or u not in range(N)] for name, users in asked.items()}
        try:
            answers.append(released(client, known["survivors"], known["dropped"]))
        except ValueError as error:
            rejection = refused(str(error))
            if rejection is None:
                raise
            answers.append({"reject": {"code": rejection.code, "message": str(rejection)}})
    return {"answers": answers}


if BINARY32:
    adapter.operation("quantizer.quantize", **DECLARED["quantizer.quantize"])(HANDLERS["quantizer.quantize"])
else:
    adapter.operation("secagg.average", **SCALED)(average)
    adapter.operation("secagg.recovery", **SCALED)(recovery)
if not ANY and not BINARY32:
    given: dict[str, Any] = {"ranges": {"R": {"values": [str(R) for R in SUMMED]}}, "parameter_sets": COMPLETE}
    adapter.operation("secagg.sum", composed=True, **given)(total)
    adapter.operation("secagg.view", composed=True, **given)(view)
    adapter.operation("secagg.unmasking", parameter_sets=numbers(), composed=True)(unmasking)
    for name, handler in HANDLERS.items():
        adapter.operation(name, **DECLARED[name])(handler)


if __name__ == "__main__":
    adapter.run()
