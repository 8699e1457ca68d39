"""An adapter for the secure aggregation of OpenFL 1.9: its helpers one by one, and whole rounds without a network.

It runs in an environment of its own. OpenFL raises nothing on purpose here; what it raises is an error, but for the
failed authentication of a ciphertext, which is a refusal.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
secagg.average       Collaborator with SecAggBootstrapping, SecAggSetup, TensorDB, SecureWeightedAverage: `rounds`
                     (composed: the network is ours, and what Aggregator does between these)
shamir.share         create_secret_shares (composed: a share is a text, here as its bytes)
shamir.reconstruct   reconstruct_secret, which is told no threshold (composed)
pair.agree           generate_key_pair, generate_agreed_key (composed)
pair.seal            create_ciphertext and decipher_ciphertext, on a plaintext in hex digits in place of a share of a
                     seed; nonce, tag and ciphertext are put together here. decipher_ciphertext returns both users, and
                     its caller in the release looks at neither (composed)
===================  ===============================================================================================

The threshold is N and the graph is complete: SecAggBootstrapping shares a secret so that all are needed, and the plan
accepts no policy for stragglers but to wait for all. Numbers are binary32, and nothing is taken modulo R: R, level,
clip and max_weight say nothing to OpenFL. Collaborators count from 1. Its pseudo-random generator gives one binary64
number for a seed, which no operation asks for.
"""

from __future__ import annotations

import logging
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import bare
from rounds import STAGES, Experiment
from secagg_adapter import Adapter, Reject, Unsupported, check_drop, pack_reals, unpack_reals

logging.disable(logging.CRITICAL)
_HELPERS = "openfl.utilities.secagg"
create_secret_shares, reconstruct_secret = bare.taken(_HELPERS, "create_secret_shares", "reconstruct_secret")
generate_key_pair, generate_agreed_key = bare.taken(_HELPERS, "generate_key_pair", "generate_agreed_key")
create_ciphertext, decipher_ciphertext = bare.taken(_HELPERS, "create_ciphertext", "decipher_ciphertext")
NONCE, TAG = 32, 16
"""How many bytes the nonce and the tag of create_ciphertext have."""

LEVEL = 2**10
"""What binary32 carries beside inputs of up to 100."""
ROSTERS = [{"N": N, "t": N, "k": N - 1} for N in range(3, 6)]
SCALE: dict[str, Any] = {
    "R": {"values": [str(2**32)]},
    "level": {"values": [str(LEVEL)]},
    "clip": {"max": 100},
}

POLICY = {"shamir.field": "other", "pair.sealing": "other"}
adapter = Adapter("OpenFL", metadata.version("openfl"), randomness="none", policy=POLICY)


def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


def average(
    R: str, N: int, t: int, k: int, clip: int, level: str, max_weight: int, weights: list[int], x: list[str],
    drop: dict[str, list[int]], rand: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Play the setup, and one round after it."""
    check_drop(drop, N)
    if {"N": N, "t": t, "k": k} not in ROSTERS or str(2**32) != R or int(level) != LEVEL:
        raise Unsupported
    if len(x) != N or len(weights) != N:
        raise Reject("length_mismatch", f"{len(x)} inputs and {len(weights)} weights of {N} users")
    keys, shares, masked, last = (tuple(drop[phase]) for phase in drop_phases())
    outcome = experiment(N, keys, shares, last).round([unpack_reals(row) for row in x], weights, masked)
    return {"average": pack_reals(outcome.average), "contributors": outcome.contributors}


def drop_phases() -> tuple[str, ...]:
    """Return the phases of a request in the order in which `average` takes them."""
    return "advertise_keys", "share_keys", "masked_input", "unmasking"


@lru_cache(maxsize=16)
def experiment(N: int, *gone: tuple[int, ...]) -> Experiment:
    """Return an experiment after its setup; one setup serves the rounds of equal numbers, as it does in OpenFL."""
    return Experiment(N, dict(zip(STAGES, gone, strict=True)))


def share(t: int, n: int, secret: str, rand: dict[str, Any]) -> dict[str, Any]:
    """create_secret_shares."""
    shares = create_secret_shares(bytes.fromhex(secret), n, t)
    return {"shares": [shares[index].encode().hex() for index in sorted(shares)]}


def reconstruct(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """reconstruct_secret, which takes a share for each collaborator."""
    if len(users) != len(shares):
        raise Reject("length_mismatch", f"{len(shares)} shares of {len(users)} users")
    if len(set(users)) != len(users):
        raise Reject("duplicate_id", "a dictionary has one share for each user")
    texts = {user + 1: bytes.fromhex(text).decode() for user, text in zip(users, shares, strict=True)}
    return {"secret": reconstruct_secret(texts).hex()}


def agree() -> dict[str, Any]:
    """Derive the key of two key pairs on both sides."""
    (own, public), (other, others_public) = generate_key_pair(), generate_key_pair()
    derived = generate_agreed_key(own, others_public), generate_agreed_key(other, public)
    return {"first": derived[0].hex(), "second": derived[1].hex(),
            "public": [text.encode().hex() for text in (public, others_public)]}  # fmt: skip


def seal(plaintext: str, sender: int, receiver: int, alter: dict[str, int] | None) -> dict[str, Any]:
    """Seal the plaintext in place of a share of a seed, and open it with the key of the other side."""
    (own, public), (other, others_public) = generate_key_pair(), generate_key_pair()
    sealed = create_ciphertext(generate_agreed_key(own, others_public), sender + 1, receiver + 1, plaintext, "")
    ciphertext, tag, nonce = sealed
    payload = bytearray(nonce + tag + ciphertext)
    if alter and "byte" in alter:
        payload[alter["byte"] % len(payload)] ^= alter["mask"]
    parts = bytes(payload[NONCE + TAG :]), bytes(payload[NONCE : NONCE + TAG]), bytes(payload[:NONCE])
    try:
        _, _, opened, _ = decipher_ciphertext(generate_agreed_key(other, public), *parts)
    except ValueError as error:
        if str(error) != "MAC check failed":
            raise
        raise Reject("bad_ciphertext", str(error)) from error
    return {"opened": opened.decode(), "payload": payload.hex()}


adapter.operation("echo")(echo)
adapter.operation("secagg.average", ranges=SCALE, parameter_sets=ROSTERS, composed=True)(average)
adapter.operation("shamir.share", ranges={"n": {"min": 2}, "t": {"min": 2}}, composed=True)(share)
adapter.operation("shamir.reconstruct", ranges={"t": {"min": 2}}, composed=True)(reconstruct)
adapter.operation("pair.agree", composed=True)(agree)
adapter.operation("pair.seal", composed=True)(seal)


if __name__ == "__main__":
    adapter.run()
