"""An adapter for ``fedml.core.mpc.secagg`` of FedML 0.9.6, function by function.

Nothing in the release calls these functions: its ``federated_optimizer: SA`` imports ``fedml.cross_silo.secagg``, which
its wheel does not contain. The adapter therefore offers no whole round. It offers no key agreement either, because
nothing says which base ``my_pk_gen`` gets, or who draws the secrets. `adapter` covers ``modular_inv`` and the
quantiser.

=====================  =============================================================================================
operation              released functions
=====================  =============================================================================================
field.add              aggregate_models_in_finite, of two models with one layer (composed)
field.multiply         PI, element by element (composed)
shamir.share           BGW_encoding with T = t - 1, of the bytes of the secret as elements (composed)
shamir.reconstruct     BGW_decoding, which takes no threshold (composed)
=====================  =============================================================================================

The modulus is ``prime_number: 2 ** 15 - 19`` from the examples of the release. The release documents no numbers of
users. Up to 12 are declared, whose powers fit into 64 bits; with ``--large``, 24 to 40 with a threshold of at least 12.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))

import numpy as np
from released import VERSION, load, packed, seed
from secagg_adapter import Adapter, Reject, pack, unpack

PRIME = 2**15 - 19
released = load("fedml/core/mpc/secagg.py")

LARGE = "--large" in sys.argv[1:]
HOLDERS: dict[str, Any] = (
    {"n": {"values": [24, 32, 40]}, "t": {"min": 12}} if LARGE else {"n": {"min": 2, "max": 12}, "t": {"min": 2}}
)

name = "FedML SecAgg" + (" (large thresholds)" if LARGE else "")
adapter = Adapter(name, VERSION, randomness="seeded", policy={"shamir.field": "other"})
DOCUMENTED: dict[str, Any] = {"ranges": {"q": {"values": [str(PRIME)]}}, "composed": True}


def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


def add(q: str, a: str, b: str) -> dict[str, Any]:
    """aggregate_models_in_finite."""
    models = [{"layer": np.array(unpack(text), dtype="int64")} for text in (a, b)]
    return {"value": packed(released.aggregate_models_in_finite(models, int(q))["layer"])}


def multiply(q: str, a: str, b: str) -> dict[str, Any]:
    """PI, on pairs of numbers."""
    left, right = (np.array(unpack(text), dtype="int64") for text in (a, b))
    if len(left) != len(right):
        raise Reject("length_mismatch", f"{len(left)} and {len(right)} elements")
    return {"value": packed(released.PI(pair, int(q)) for pair in zip(left, right, strict=True))}


def share(t: int, n: int, secret: str, rand: dict[str, Any]) -> dict[str, Any]:
    """BGW_encoding; its coefficients come from numpy's global generator."""
    seed(rand)
    column = np.array([*bytes.fromhex(secret)], dtype="int64").reshape(-1, 1)
    return {"shares": [packed(each) for each in released.BGW_encoding(column, n, t - 1, PRIME)]}


def reconstruct(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """BGW_decoding; numbers that are not bytes are passed on as elements."""
    if len(users) != len(shares):
        raise Reject("length_mismatch", f"{len(shares)} shares of {len(users)} users")
    rows = np.array([unpack(text) for text in shares], dtype="int64")
    numbers = [int(value) for value in released.BGW_decoding(rows, users, PRIME)[0]]
    return {"secret": bytes(numbers).hex() if max(numbers) < 256 else pack(numbers)}


adapter.operation("echo")(echo)
adapter.operation("shamir.share", ranges=HOLDERS, composed=True)(share)
adapter.operation("shamir.reconstruct", ranges={"t": HOLDERS["t"]}, composed=True)(reconstruct)
if not LARGE:
    adapter.operation("field.add", **DOCUMENTED)(add)
    adapter.operation("field.multiply", **DOCUMENTED)(multiply)


if __name__ == "__main__":
    adapter.run()
