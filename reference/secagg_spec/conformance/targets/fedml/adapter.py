"""An adapter for LightSecAgg of FedML 0.9.6: the released functions, in the order in which upstream calls them.

It runs in its own environment, and loads ``fedml/core/mpc/lightsecagg.py`` as a file (`released`). Without torch, it
does not declare the operations that need torch.

With ``--any``, the declared ranges are what the functions accept, not what the release documents: any modulus from 257
on, and any N, U, T. The evaluation points of the functions are 1 … N + U, so smaller moduli make points collide.

With ``--init``, the process is one of a client: it begins with ``fedml.init``, and takes no seeds. Only the code is
declared.

=============================  =====================================================================================
operation                      released functions
=============================  =====================================================================================
field.inverse                  modular_inv
mds.encode                     mask_encoding, on a mask padded as in ``LSAClientManager.__offline`` (composed)
mds.decode                     LCC_decoding_with_points, as in ``LightSecAggAggregator.aggregate_mask_reconstruction``
                               (composed)
quantizer.quantize             my_q
quantizer.dequantize           my_q_inv; binary32 by transform_finite_to_tensor
lightsecagg.mask               model_masking
lightsecagg.aggregate_shares   compute_aggregate_encoded_mask
lightsecagg.round              all of these (composed)
=============================  =====================================================================================

Documented configuration: ``prime_number: 2 ** 15 - 19`` and ``precision_parameter: 10`` in the examples of the release;
U = N and T = floor(N / 2) are fixed in ``LightSecAggAggregator`` and ``LSAClientManager``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from released import HAS_TORCH, VERSION, begin, load, packed, seed
from secagg_adapter import Adapter, Reject, check_drop, check_users, pack_reals, unpack, unpack_reals

ANY, INIT = ("--any" in sys.argv[1:], "--init" in sys.argv[1:])
if INIT:
    begin()
lsa = load("fedml/core/mpc/lightsecagg.py")

DOCUMENTED_Q = {"q": {"values": ["32749"]}}
ANY_Q = {"q": {"min": 257, "max": 2**32}}
CONFIGURED = [{"N": N, "D": 0, "U": N, "T": N // 2} for N in range(3, 11)]
FIELD: dict[str, Any] = {"ranges": ANY_Q if ANY else DOCUMENTED_Q}
POWERS = [str(2**bits) for bits in ((0, 1, 6, 10, 16) if ANY else (10,))]
QUANTIZER: dict[str, Any] = {"ranges": {**FIELD["ranges"], "level": {"values": POWERS}}}


def session(*names: str) -> dict[str, Any]:
    """Return the declaration of an operation that has these parameters of a session."""
    if ANY:
        return FIELD
    return {**FIELD, "parameter_sets": [{name: known[name] for name in names} for known in CONFIGURED]}


adapter = Adapter(
    "FedML" + (" (undocumented ranges)" if ANY else " (clients)" if INIT else ""),
    VERSION,
    randomness="none" if INIT else "seeded",
    policy={"mds.code": "other", "quantizer.rounding": "nearest"},
)


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


@adapter.operation("field.inverse", **FIELD)
def inverse(q: str, a: str) -> dict[str, Any]:
    """modular_inv, element by element."""
    return {"value": packed(lsa.modular_inv(np.int64(value), int(q)) for value in unpack(a))}


@adapter.operation("mds.encode", **session("N", "U", "T"), composed=True)
def encode(q: str, N: int, U: int, T: int, mask: str, rand: dict[str, Any]) -> dict[str, Any]:
    """mask_encoding of the padded mask; the noise comes from numpy's global generator."""
    seed(rand)
    column = padded(np.array(unpack(mask), dtype="int64"), U, T)
    return {"shares": [packed(row) for row in lsa.mask_encoding(len(column), N, U, T, int(q), column)]}


@adapter.operation("mds.decode", **session("N", "U", "T"), composed=True)
def decode(q: str, N: int, U: int, T: int, d: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """LCC decoding at the points of the users, as in the server."""
    return {"mask": packed(reconstruct(int(q), N, U, T, d, users, [unpack(share) for share in shares]))}


@adapter.operation("quantizer.quantize", **QUANTIZER)
def quantize(q: str, level: str, weight: int, x: str, rand: dict[str, Any]) -> dict[str, Any]:
    """my_q; it draws nothing, and has no total weight."""
    seed(rand)
    return {"value": packed(lsa.my_q(np.array(unpack_reals(x)), bits(level), int(q)))}


FORMATS = {"format": {"values": ["binary64", "binary32"] if HAS_TORCH else ["binary64"]}}


@adapter.operation("quantizer.dequantize", ranges={**QUANTIZER["ranges"], **FORMATS})
def dequantize(q: str, level: str, format: str, value: str) -> dict[str, Any]:
    """my_q_inv; for binary32, transform_finite_to_tensor, if torch is present."""
    values = np.array(unpack(value), dtype="int64")
    if format == "binary32":
        tensor = lsa.transform_finite_to_tensor({"x": values}, int(q), bits(level))["x"]
        return {"x": pack_reals([float(number) for number in tensor], "binary32")}
    return {"x": pack_reals([float(number) for number in lsa.my_q_inv(values, bits(level), int(q))])}


@adapter.operation("lightsecagg.mask", **FIELD)
def mask_update(q: str, update: str, mask: str) -> dict[str, Any]:
    """model_masking of a model with one layer."""
    layer = {"layer": np.array(unpack(update), dtype="int64")}
    local_mask = np.array(unpack(mask), dtype="int64").reshape(-1, 1)
    return {"masked": packed(lsa.model_masking(layer, [len(layer["layer"])], local_mask, int(q))["layer"])}


@adapter.operation("lightsecagg.aggregate_shares", **session("N", "T"))
def aggregate_shares(q: str, N: int, T: int, surviving: list[int], held: list[Any]) -> dict[str, Any]:
    """compute_aggregate_encoded_mask over the active clients."""
    check_users("held", [user for user, _ in held], N)
    encoded = {user: np.array(unpack(text), dtype="int64") for user, text in held}
    return {"share": packed(lsa.compute_aggregate_encoded_mask(encoded, int(q), surviving))}


@adapter.operation("lightsecagg.round", **session("N", "D", "U", "T"), composed=True)
def whole_round(
    q: str, N: int, D: int, U: int, T: int, d: int, updates: list[str], drop: dict[str, Any], rand: dict[str, Any]
) -> dict[str, Any]:
    """One round in upstream's order: offline sharing, masked models, active clients, one-shot recovery."""
    check_drop(drop, N)
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    seed(rand)
    p = int(q)
    online = [user for user in range(N) if user not in drop["share"]]
    first = [user for user in online if user not in drop["upload"]]
    second = [user for user in first if user not in drop["recover"]]
    masks, encoded = {}, {}
    for user in online:
        masks[user] = np.random.randint(p, size=(padded_size(d, U, T), 1))
        encoded[user] = lsa.mask_encoding(len(masks[user]), N, U, T, p, masks[user])
    models = {}
    for user in first:
        layer = {"layer": np.array(unpack(updates[user]), dtype="int64")}
        models[user] = lsa.model_masking(layer, [d], masks[user], p)
    answers = [
        lsa.compute_aggregate_encoded_mask({other: encoded[other][user] for other in online}, p, first)
        for user in second
    ]
    total = lsa.aggregate_models_in_finite([models[user] for user in first], p)["layer"]
    mask_sum = reconstruct(p, N, U, T, d, second, answers)
    return {"aggregate": packed(np.mod(total - mask_sum, p)), "contributors": first}


def reconstruct(p: int, N: int, U: int, T: int, d: int, users: list[int], shares: list[Any]) -> Any:
    """As in ``aggregate_mask_reconstruction``: a buffer of U rows, filled in the order of the active clients.

    With ``--any``, the function itself is called, which accepts any number of rows.
    """
    size = padded_size(d, U, T)
    buffer = np.zeros((len(shares) if ANY else U, size // (U - T)), dtype="int64")
    for at, share in enumerate(shares):
        buffer[at, :] = share
    alpha, beta = np.array(range(N)) + 1, np.array(range(U)) + (N + 1)
    rows = lsa.LCC_decoding_with_points(buffer, alpha[users], beta, p)
    return np.reshape(rows, (U * (size // (U - T)), 1))[0:size].reshape(-1)[:d]


def padded_size(d: int, U: int, T: int) -> int:
    """As in ``__offline``: d, rounded up to a multiple of U - T."""
    return int(np.ceil(float(d) / (U - T))) * (U - T)


def padded(mask: Any, U: int, T: int) -> Any:
    """Return the mask as a column of the padded size; the padding is zeros here and random upstream."""
    return np.concatenate([mask, np.zeros(padded_size(len(mask), U, T) - len(mask), dtype="int64")]).reshape(-1, 1)


def bits(level: str) -> int:
    """Return the ``precision_parameter`` of a level that is a power of two."""
    return int(level).bit_length() - 1


if INIT:
    adapter.hello["operations"] = {
        name: adapter.hello["operations"][name] for name in ("echo", "mds.encode", "mds.decode")
    }

if __name__ == "__main__":
    adapter.run()
