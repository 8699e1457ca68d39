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
mds.encode             mask_encoding, of the mask as it is; with ``--lcc``, LCC_encoding with K = U - T (composed)
mds.decode             LCC_decoding_with_points at the points of mask_encoding; with ``--lcc``, LCC_decoding (composed)
=====================  =============================================================================================

Sums, products and shares of masks are given raw as well: the adapter only writes them.

The modulus is ``prime_number: 2 ** 15 - 19`` from the examples of the release. The release documents no numbers of
users. Up to 12 are declared, whose powers fit into 64 bits; with ``--large``, 24 to 40 with a threshold of at least 12.
With ``--lcc``, only the code is declared.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from released import VERSION, load, packed, seed
from secagg_adapter import Adapter, Reject, pack, repaired, unpack

PRIME = 2**15 - 19
released = load("fedml/core/mpc/secagg.py")

LARGE, LCC = ("--large" in sys.argv[1:], "--lcc" in sys.argv[1:])
HOLDERS: dict[str, Any] = (
    {"n": {"values": [24, 32, 40]}, "t": {"min": 12}} if LARGE else {"n": {"min": 2, "max": 12}, "t": {"min": 2}}
)

name = "FedML SecAgg" + (" (large thresholds)" if LARGE else " (LCC_encoding)" if LCC else "")
adapter = Adapter(name, VERSION, randomness="seeded", policy={"shamir.field": "other", "mds.code": "other"})
DOCUMENTED: dict[str, Any] = {"ranges": {"q": {"values": [str(PRIME)]}}, "composed": True}


def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


def add(q: str, a: str, b: str) -> dict[str, Any]:
    """aggregate_models_in_finite."""
    models = [{"layer": np.array(unpack(text), dtype="int64")} for text in (a, b)]
    given = released.aggregate_models_in_finite(models, int(q))["layer"]
    return {"value": repaired(packed(given), given)}


def multiply(q: str, a: str, b: str) -> dict[str, Any]:
    """PI, on pairs of numbers."""
    left, right = (np.array(unpack(text), dtype="int64") for text in (a, b))
    if len(left) != len(right):
        raise Reject("length_mismatch", f"{len(left)} and {len(right)} elements")
    given = [released.PI(pair, int(q)) for pair in zip(left, right, strict=True)]
    return {"value": repaired(packed(given), given)}


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


def encode(q: str, N: int, U: int, T: int, mask: str, rand: dict[str, Any]) -> dict[str, Any]:
    """mask_encoding, or LCC_encoding, of the mask as one column."""
    seed(rand)
    column = np.array(unpack(mask), dtype="int64").reshape(-1, 1)
    made = released.LCC_encoding(column, N, U - T, T, int(q)) if LCC else None
    rows = released.mask_encoding(len(column), N, U, T, int(q), column) if made is None else made
    return {"shares": [repaired(packed(row), row.ravel()) for row in rows]}


def decode(q: str, N: int, U: int, T: int, d: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """LCC_decoding, or LCC_decoding_with_points as in ``fedml.cross_silo.lightsecagg``, of shares of one length."""
    if len(users) != len(shares):
        raise Reject("length_mismatch", f"{len(shares)} shares of {len(users)} users")
    rows = np.array([unpack(text) for text in shares], dtype="int64")
    alpha, beta = np.array(range(N)) + 1, np.array(range(U)) + (N + 1)
    made = released.LCC_decoding(rows, 1, N, U - T, T, users, int(q)) if LCC else None
    found = released.LCC_decoding_with_points(rows, alpha[users], beta, int(q)) if made is None else made
    return {"mask": packed(found.reshape(-1)[:d])}


adapter.operation("echo")(echo)
if not LCC:
    adapter.operation("shamir.share", ranges=HOLDERS, composed=True)(share)
    adapter.operation("shamir.reconstruct", ranges={"t": HOLDERS["t"]}, composed=True)(reconstruct)
if not LARGE:
    CODE = {**DOCUMENTED, "ranges": {**DOCUMENTED["ranges"], "N": {"max": 12}}}
    adapter.operation("mds.encode", **CODE, raw=["shares"])(encode)
    adapter.operation("mds.decode", **CODE)(decode)
if not (LARGE or LCC):
    adapter.operation("field.add", **DOCUMENTED, raw=["value"])(add)
    adapter.operation("field.multiply", **DOCUMENTED, raw=["value"])(multiply)


if __name__ == "__main__":
    adapter.run()
