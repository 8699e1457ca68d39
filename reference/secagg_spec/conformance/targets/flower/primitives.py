"""The released helpers of Flower's secure aggregation, one by one, for its adapter.

It runs in Flower's environment, and needs the SDK's folder on the path. A refusal is an error that the released code
raises on purpose (`REFUSALS`); any other exception, including an assertion, is an error.

=====================  =============================================================================================
operation              released functions
=====================  =============================================================================================
prg.expand             pseudo_rand_gen
quantizer.quantize     quantize, minus the shift by its smallest integer (composed)
quantizer.dequantize   parameters_mod and dequantize of a sum, minus the shift, as in the workflow (composed)
shamir.share           create_shares
shamir.reconstruct     combine_shares, which takes neither the threshold, by which the workflow counts the shares
                       before, nor the users: it uses the index inside each share
pair.agree             generate_key_pairs, generate_shared_key, public_key_to_bytes (composed)
pair.seal              share_keys_plaintext_concat and encrypt, as in the mod's second stage; opened by the mod's third
                       stage, which compares the users (composed)
=====================  =============================================================================================

Documented ranges: ``modulus_range`` is a power of two up to 2**32 and larger than ``quantization_range``, which is
positive; ``num_shares`` is at least 3. A level is ``quantization_range / (2 * clipping_range)``; the default level,
2**18, is declared. For a total weight of W users' inputs, ``quantization_range = modulus_range / W``. This is the
largest value for which their sum does not wrap, so nothing that the text allows is clipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import bare
import numpy as np
from cryptography.fernet import InvalidToken
from flwr.client.mod.secure_aggregation.secaggplus_mod import SecAggPlusState, _collect_masked_vectors
from flwr.common import ndarrays_to_parameters
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import encrypt, generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_mod
from flwr.common.secure_aggregation.quantization import dequantize, quantize
from flwr.common.secure_aggregation.secaggplus_constants import Key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen, share_keys_plaintext_concat
from secagg_adapter import Reject, Unsupported, pack, pack_reals, unpack, unpack_reals

from .client import node_of
from .released import generate_key_pairs, private_key_to_bytes, public_key_to_bytes

Handler = Callable[..., dict[str, Any]]
_LEVEL, _TARGET = 2**18, 2**22
_MODULI = [2**bits for bits in range(1, 33)]
_QUANTIZED = [q for q in _MODULI if q > _TARGET]
_WEIGHTS = [2**bits for bits in range(1, 11)]

POLICY = {"prg.stream": "other", "shamir.field": "other", "pair.sealing": "other"}
BINARY32 = "--binary32" in sys.argv[1:]
DECLARED: dict[str, dict[str, Any]] = {
    "prg.expand": {"ranges": {"q": {"values": [str(q) for q in _MODULI]}}},
    "quantizer.quantize": {
        "ranges": {
            "q": {"values": [str(q) for q in _QUANTIZED]},
            "level": {"values": [str(_LEVEL)]},
            "weight": {"values": _WEIGHTS},
            **({"x": {"values": ["binary32"]}} if BINARY32 else {}),
        },
        "randomness": "seeded",
        "composed": True,
    },
    "quantizer.dequantize": {
        "ranges": {
            "q": {"values": [str(q) for q in _QUANTIZED]},
            "level": {"values": [str(_LEVEL)]},
            "format": {"values": ["binary64"]},
        },
        "composed": True,
    },
    "shamir.share": {"ranges": {"n": {"min": 3}, "t": {"min": 2}}, "randomness": "none"},
    "shamir.reconstruct": {"ranges": {"t": {"min": 2}}},
    "pair.agree": {"composed": True},
    "pair.seal": {"composed": True},
}
"""The declaration of each operation; the adapter also declares `POLICY`."""

REFUSALS = {
    "Duplicate share": "duplicate_id",
    "Failed to combine shares": "bad_share",
    "received ciphertext from": "bad_ciphertext",
    "received an encrypted message": "bad_ciphertext",
    "InvalidToken": "bad_ciphertext",
}
"""The texts in the messages of ValueErrors that the released code raises on purpose, and an error without a message."""


refusing = bare.refusing(REFUSALS, ValueError, InvalidToken)


def demand(value: int, allowed: list[int]) -> int:
    """Return a number if it is among the declared ones; otherwise raise `Unsupported`."""
    if value not in allowed:
        raise Unsupported
    return value


def expand(q: str, key: str, n: int) -> dict[str, Any]:
    """pseudo_rand_gen, for one array."""
    (values,) = pseudo_rand_gen(bytes.fromhex(key), demand(int(q), _MODULI), [(n,)])
    return {"value": pack(values.tolist())}


def quantized(q: str, level: str, weight: int, x: str, rand: dict[str, Any]) -> dict[str, Any]:
    """Quantise, minus the shift; the rounding is drawn from numpy's global generator."""
    modulus = demand(int(q), _QUANTIZED)
    target = modulus // demand(weight, _WEIGHTS)
    clip = target / (2 * demand(int(level), [_LEVEL]))
    np.random.seed(np.frombuffer(bytes.fromhex(rand["seed"]), "<u4"))
    (values,) = quantize([np.array(unpack_reals(x), dtype=np.float32 if BINARY32 else np.float64)], clip, target)
    return {"value": pack(((values.astype(np.int64) - target // 2) % modulus).tolist())}


def dequantized(q: str, level: str, format: str, value: str) -> dict[str, Any]:
    """Reduce and dequantise a sum of as many users as fit into the modulus, as in the workflow."""
    modulus = demand(int(q), _QUANTIZED)
    clip, users = _TARGET / (2 * demand(int(level), [_LEVEL])), modulus // _TARGET
    if format != "binary64":
        raise Unsupported
    shifted = np.array(unpack(value), dtype=np.int64) + modulus // 2
    (numbers,) = dequantize(parameters_mod([shifted], modulus), clip, _TARGET)
    return {"x": pack_reals((numbers - (users - 1) * clip).tolist())}


def share(t: int, n: int, secret: str, rand: dict[str, Any]) -> dict[str, Any]:
    """create_shares."""
    return {"shares": [each.hex() for each in create_shares(bytes.fromhex(secret), t, n)]}


def reconstruct(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """combine_shares."""
    if len(users) != len(shares):
        raise Reject("length_mismatch", f"{len(shares)} shares of {len(users)} users")
    return {"secret": combine_shares([bytes.fromhex(text) for text in shares]).hex()}


def agree() -> dict[str, Any]:
    """Derive the key of two key pairs on both sides."""
    (own, public), (other, others_public) = generate_key_pairs(), generate_key_pairs()
    derived = generate_shared_key(own, others_public), generate_shared_key(other, public)
    sent = [public_key_to_bytes(each).hex() for each in (public, others_public)]
    return {"first": derived[0].hex(), "second": derived[1].hex(), "public": sent}


def seal(plaintext: str, sender: int, receiver: int, alter: dict[str, int] | None) -> dict[str, Any]:
    """Seal the plaintext in place of a share, and open it with the third stage of the receiver's mod."""
    (own, public), (other, others_public) = generate_key_pairs(), generate_key_pairs()
    text = share_keys_plaintext_concat(node_of(sender), node_of(receiver), bytes.fromhex(plaintext), b"")
    payload, changed = encrypt(generate_shared_key(own, others_public), text), alter or {}
    users = node_of(changed.get("sender", sender)), node_of(changed.get("receiver", receiver))
    key, pems = generate_shared_key(other, public), (private_key_to_bytes(other), public_key_to_bytes(public))
    opened = third_stage(*users, key, *pems, altered(payload, changed))
    return {"opened": opened.hex(), "payload": payload.hex()}


def altered(payload: bytes, alter: dict[str, int]) -> bytes:
    """Return the payload, with one byte altered if `alter` names one."""
    changed = bytearray(payload)
    if "byte" in alter:
        changed[alter["byte"] % len(payload)] ^= alter["mask"]
    return bytes(changed)


def third_stage(source: int, node: int, key: bytes, private: bytes, public: bytes, payload: bytes) -> bytes:
    """Return the share that the released third stage of `node` stores for `source`; no training takes place."""
    state = SecAggPlusState(nid=node, threshold=2, sk1=private, rd_seed=bytes(32), max_weight=1000.0)
    state.clipping_range, state.target_range, state.mod_range = 8.0, _TARGET, 2**32
    state.rd_seed_share_dict, state.sk1_share_dict = {}, {}
    state.ss2_dict, state.public_keys_dict = {source: key}, {source: (public, public)}
    configs = {Key.CIPHERTEXT_LIST: [payload], Key.SOURCE_LIST: [source]}
    _collect_masked_vectors(state, configs, 1, ndarrays_to_parameters([]))
    return bytes(state.rd_seed_share_dict[source])


HANDLERS: dict[str, Handler] = {
    "prg.expand": refusing(expand),
    "quantizer.quantize": refusing(quantized),
    "quantizer.dequantize": refusing(dequantized),
    "shamir.share": refusing(share),
    "shamir.reconstruct": refusing(reconstruct),
    "pair.agree": refusing(agree),
    "pair.seal": refusing(seal),
}
"""The operations by name; a refusal of the released code is a rejection, any other exception an error."""
