"""An adapter for LightSecAgg of FedML 0.9.6 at message level: the released client and server managers.

`transport` says which code is FedML's and which is ours. A vector of elements becomes the real numbers that ``my_q``
maps to these elements. The server's average becomes the sum again, which binary32 represents exactly at the documented
modulus 2 ** 15 - 19. An element that is not below the modulus becomes that number of quantisation steps.

With ``--twice``, each client reports twice that it is online: on its own, and in answer to the server's query.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
lightsecagg.round    FedMLServerManager with LightSecAggAggregator, and FedMLClientManager for each user (composed: the
                     network and the trainers are ours). U = N and T = floor(N / 2) are fixed in them. Messages of
                     different links overtake each other, in an order drawn from the seed.
secagg.sum           the same
secagg.view          the same: what comes to a manager. Shares of masks, sums of them and the layers of masked models
                     are vectors, as they stand in the messages; each other part of a message is a string. Messages are
                     delivered in the order in which they are sent
===================  ===============================================================================================

The managers of SecAgg are not in the release: its ``federated_optimizer: SA`` imports ``fedml.cross_silo.secagg``,
which its wheel does not contain.
"""

from __future__ import annotations

import logging
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from released import VERSION, seed
from secagg_adapter import SUM_PHASES, Adapter, Reject, Unsupported, check_drop, pack, unpack
from transport import BITS, PRIME, SERVER, Outcome, read, run_round

TWICE = "--twice" in sys.argv[1:]
CONFIGURED = [{"N": N, "D": 0, "U": N, "T": N // 2} for N in range(3, 9)]
SUMMED = [{"N": known["N"], "t": known["U"]} for known in CONFIGURED]

logging.disable(logging.CRITICAL)
adapter = Adapter(
    "FedML managers" + (" (clients that announce themselves twice)" if TWICE else ""),
    VERSION,
    randomness="seeded",
    policy={"mds.code": "other"},
)


def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


def whole_round(
    q: str, N: int, D: int, U: int, T: int, d: int, updates: list[str], drop: dict[str, list[int]], rand: dict[str, Any]
) -> dict[str, Any]:
    """One round of the managers."""
    check_drop(drop, N)
    if int(q) != PRIME or {"N": N, "D": D, "U": U, "T": T} not in CONFIGURED:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    seed(rand)
    inputs = [[real(value) for value in unpack(text)] for text in updates]
    outcome = run_round(inputs, d, drop, random.Random(rand["seed"]), twice=TWICE)  # noqa: S311
    total = [round(value * N * 2**BITS) % PRIME for value in outcome.average]
    return {"aggregate": pack(total), "contributors": outcome.contributors}


def total(**given: Any) -> dict[str, Any]:
    """Return the sum of one round of the managers."""
    outcome = summed(SERVER, **given)
    numbers = [round(value * given["N"] * 2**BITS) % PRIME for value in outcome.average]
    return {"sum": pack(numbers), "contributors": outcome.contributors}


def view(viewer: int | str, **given: Any) -> dict[str, Any]:
    """Return the messages that come to one manager."""
    stay = set(range(given["N"])) - {user for users in given["drop"].values() for user in users}
    if viewer != "server" and viewer not in stay:
        raise Reject("unknown_peer", f"user {viewer} does not stay to the end")
    outcome = summed(SERVER if viewer == "server" else int(viewer) + 1, **given)
    parts = [read(message) for message in outcome.seen]
    vectors = [pack(vector) for numbers, _ in parts for vector in numbers]
    return {"vectors": vectors, "strings": [text.hex() for _, others in parts for text in others]}


def summed(watched: int, *, R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> Outcome:
    """Return the outcome of a round of clients that draw anew; U is t."""
    check_drop(drop, N)
    if int(R) != PRIME or {"N": N, "t": t} not in SUMMED:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    np.random.seed()  # noqa: NPY002 - the released code draws from it
    inputs = [[real(value) for value in unpack(text)] for text in updates]
    phases = {phase: drop[name] for phase, name in zip(("share", "upload", "recover"), SUM_PHASES, strict=True)}
    return run_round(inputs, len(inputs[0]), phases, None, watched=watched)


def real(element: int) -> float:
    """Return the number that ``my_q`` maps to an element."""
    steps = element - PRIME if PRIME // 2 < element < PRIME else element
    return steps / float(2**BITS)


adapter.operation("echo")(echo)
adapter.operation(
    "lightsecagg.round", ranges={"q": {"values": [str(PRIME)]}}, parameter_sets=CONFIGURED, composed=True
)(whole_round)
if not TWICE:
    DECLARED: dict[str, Any] = {"ranges": {"R": {"values": [str(PRIME)]}}, "parameter_sets": SUMMED, "composed": True}
    adapter.operation("secagg.sum", **DECLARED)(total)
    adapter.operation("secagg.view", **DECLARED)(view)


if __name__ == "__main__":
    adapter.run()
