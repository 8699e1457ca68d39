"""An adapter for the secure aggregation of OpenFL 1.9: its helpers one by one, and whole rounds without a network.

It runs in its own environment. OpenFL raises no exception on purpose here, so its exceptions are errors, except that
the failed authentication of a ciphertext is a refusal.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
secagg.average       Collaborator with SecAggBootstrapping, SecAggSetup, TensorDB, SecureWeightedAverage: `rounds`
                     (composed: the network is ours, and so is what Aggregator does between these)
secagg.view          the same, with a setup for each round: the named tensors that come to a party, as bytes. Elements
                     are numbers of binary32, and nothing is a vector modulo R (composed)
shamir.share         create_secret_shares (composed: a share is a text, here given as its bytes)
shamir.reconstruct   reconstruct_secret, which takes no threshold (composed)
pair.agree           generate_key_pair, generate_agreed_key (composed)
pair.seal            create_ciphertext and decipher_ciphertext, on a plaintext in hex digits in place of a share of a
                     seed; we join nonce, tag and ciphertext. decipher_ciphertext returns both users, but its caller in
                     the release checks neither (composed)
===================  ===============================================================================================

The threshold is N and the graph is complete: SecAggBootstrapping shares a secret so that all shares are needed, and the
only straggler policy that the plan accepts is to wait for all. Numbers are binary32, and nothing is reduced modulo R:
OpenFL does not use R, level, clip and max_weight. Collaborators count from 1. Its pseudo-random generator gives one
binary64 number for a seed, which no operation uses.
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
from secagg_adapter import SUM_PHASES, Adapter, Reject, Unsupported, check_drop, pack_reals, unpack, unpack_reals

logging.disable(logging.CRITICAL)
_HELPERS = "openfl.utilities.secagg"
create_secret_shares, reconstruct_secret = bare.taken(_HELPERS, "create_secret_shares", "reconstruct_secret")
generate_key_pair, generate_agreed_key = bare.taken(_HELPERS, "generate_key_pair", "generate_agreed_key")
create_ciphertext, decipher_ciphertext = bare.taken(_HELPERS, "create_ciphertext", "decipher_ciphertext")
NONCE, TAG = 32, 16
"""The lengths in bytes of the nonce and the tag of create_ciphertext."""

LEVEL = 2**10
"""The level that binary32 can represent for inputs of up to 100."""
SUMMED = 2**16
"""The modulus of an update as integers: binary32 holds these, and half of them, exactly."""
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
    """Play the setup and one round."""
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
def experiment(N: int, *dropped: tuple[int, ...]) -> Experiment:
    """Return an experiment after its setup; rounds with the same numbers share one setup, as in OpenFL."""
    return Experiment(N, dict(zip(STAGES, dropped, strict=True)))


def view(
    R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]], viewer: int | str
) -> dict[str, Any]:  # fmt: skip
    """Play the setup and one round, and return what comes to a party."""
    check_drop(drop, N)
    if int(R) != SUMMED or {"N": N, "t": t} not in [{"N": known["N"], "t": known["t"]} for known in ROSTERS]:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    dropped = {user for users in drop.values() for user in users}
    if viewer != "server" and viewer not in set(range(N)) - dropped:
        raise Reject("unknown_peer", f"user {viewer} does not stay to the end")
    setup, masked, last = (drop[phase] for phase in SUM_PHASES)
    played = Experiment(N, dict(zip(STAGES, (setup, [], []), strict=True)))
    played.round([unpack(text) for text in updates], [1] * N, [*masked, *last])
    seen = played.seen(None if viewer == "server" else int(viewer))
    return {"vectors": [], "strings": [tensor.SerializeToString().hex() for tensor in seen]}


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
adapter.operation(
    "secagg.view",
    ranges={"R": {"values": [str(SUMMED)]}},
    parameter_sets=[{"N": known["N"], "t": known["t"]} for known in ROSTERS],
    composed=True,
)(view)
adapter.operation("shamir.share", ranges={"n": {"min": 2}, "t": {"min": 2}}, composed=True)(share)
adapter.operation("shamir.reconstruct", ranges={"t": {"min": 2}}, composed=True)(reconstruct)
adapter.operation("pair.agree", composed=True)(agree)
adapter.operation("pair.seal", composed=True)(seal)


if __name__ == "__main__":
    adapter.run()
