"""An adapter for secure aggregation by masks of declearn 2.9.1: whole rounds without a network, and two helpers.

It runs in its own environment. A refusal is an error that the released code raises on purpose (`REFUSALS`); any other
exception is an error.

===================  ===============================================================================================
operation            released code
===================  ===============================================================================================
secagg.sum           MaskingSecaggConfigServer and MaskingSecaggConfigClient with their X3DH setup, MaskingEncrypter,
                     MaskedAggregate and MaskingDecrypter. An update is an array of unsigned integers, which is not
                     quantised, and R is 2 ** ``bitsize`` (composed: the network is ours)
secagg.view          the same round: masked arrays are vectors, all messages of the setup and the rest of an aggregate
                     strings (composed)
shamir.share         generate_secret_shares, of the bytes of the secret behind a byte of 1, modulo 2**521 - 1 (composed)
shamir.reconstruct   recover_shared_secret, which takes no threshold; user j has the coordinate j + 1 (composed)
pair.agree           X3DHManager: a request, its answer, and what both sides derive (composed)
===================  ===============================================================================================

t is N: the masks of all clients cancel, and nothing restores those of a client that drops out. The server waits for
every client without a limit in time, in the setup as in a round. Nothing comes after the masked arrays, so a user that
drops out then is refused here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "sdk"))
sys.path.append(str(Path(__file__).parents[1]))

import bare
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from secagg_adapter import SUM_PHASES, Adapter, Reject, Unsupported, check_drop, element_bytes, pack, unpack

bare.packages(bare.folder_of("declearn"), ["declearn", "declearn.model"])
bare.placeholders(["pandas", "scipy", "scipy.sparse", "scipy.stats"])
bare.placeholders(["sklearn", "sklearn.metrics", "declearn.model.sklearn"])
ClientConfig, ServerConfig = bare.taken(
    "declearn.secagg.masking", "MaskingSecaggConfigClient", "MaskingSecaggConfigServer"
)
GenericMessage, SerializedMessage = bare.taken("declearn.messaging", "GenericMessage", "SerializedMessage")
generate_secret_shares, recover_shared_secret = bare.taken(
    "declearn.secagg.shamir", "generate_secret_shares", "recover_shared_secret"
)
(IdentityKeys,) = bare.taken("declearn.secagg.utils", "IdentityKeys")
(X3DHManager,) = bare.taken("declearn.secagg.x3dh", "X3DHManager")
(Aggregate,) = bare.taken("declearn.utils", "Aggregate")

PRIME = 2**521 - 1
BITS = {2**bits: bits for bits in (16, 32, 64)}
"""The moduli, which are those of numpy's unsigned integers, and their ``bitsize``."""
ROSTERS = [{"N": N, "t": N} for N in range(2, 7)]
REFUSALS = {
    "to result from the summation of": "below_threshold",
    "distinct specs": "length_mismatch",
    "'thresh' must": "bad_param",
    "'shares' must": "bad_param",
}
"""Texts in the messages of errors that the released code raises on purpose, and their meanings."""

adapter = Adapter("declearn", metadata.version("declearn"), randomness="none", policy={"shamir.field": "other"})
GIVEN: dict[str, Any] = {
    "ranges": {"R": {"values": [str(R) for R in BITS]}},
    "parameter_sets": ROSTERS,
    "composed": True,
}


@dataclasses.dataclass
class Update(Aggregate, base_cls=True):  # type: ignore[misc, call-arg, valid-type]
    """What a client sends: one array, which is summed."""

    _group_key = "Update"
    values: Any


class Halted(Exception):
    """The server waits without end; the message says for whom."""


class Network:
    """Replaces NetworkServer: queues of bytes. `came` has what came to each party in the setup."""

    def __init__(self, names: Iterable[str], dropped: Collection[str]) -> None:
        self.client_names = set(names)
        self.came: dict[str, list[bytes]] = {name: [] for name in (SERVER, *self.client_names)}
        self.dropped = dropped
        self._to = {name: asyncio.Queue[bytes]() for name in self.client_names}
        self._of = {name: asyncio.Queue[bytes]() for name in self.client_names}

    async def broadcast_message(self, message: Any, clients: Any = None) -> None:
        """Send one message to all clients."""
        await self.send_messages(dict.fromkeys(self.client_names, message))

    async def send_messages(self, messages: Mapping[str, Any]) -> None:
        """Send each client its message."""
        for name, message in messages.items():
            await self._pass(message, name, self._to[name])

    async def wait_for_messages(self, clients: Any = None) -> dict[str, Any]:
        """Return a message of each client."""
        if self.dropped:
            raise Halted(f"the server waits without end for {sorted(self.dropped)}")
        return {name: SerializedMessage.from_bin_message(await self._of[name].get()) for name in self.client_names}

    async def send(self, name: str, message: Any) -> None:
        """Send a client's message to the server."""
        await self._pass(message, SERVER, self._of[name])

    async def receive(self, name: str) -> Any:
        """Return the next message to a client."""
        return SerializedMessage.from_bin_message(await self._to[name].get())

    async def _pass(self, message: Any, receiver: str, queue: asyncio.Queue[bytes]) -> None:
        text = message.serialize()
        if not isinstance(message, GenericMessage):
            self.came[receiver].append(text)
        await queue.put(text)


@dataclasses.dataclass
class Endpoint:
    """Replaces NetworkClient."""

    name: str
    network: Network

    async def send_message(self, message: Any) -> None:
        """Send a message to the server."""
        await self.network.send(self.name, message)

    async def recv_message(self) -> Any:
        """Return the next message of the server."""
        return await self.network.receive(self.name)


SERVER = "server"


@lru_cache(maxsize=8)
def identities(N: int) -> list[Any]:
    """Return the identity keys of N clients, which trust each other; they outlive rounds, as in declearn."""
    keys = [Ed25519PrivateKey.generate() for _ in range(N)]
    return [IdentityKeys(key, [other.public_key() for other in keys if other is not key]) for key in keys]


async def client(keys: Any, endpoint: Endpoint, values: list[int], sends: bool) -> None:
    """Take part in the setup, and send the masked update."""
    encrypter = await ClientConfig(keys).setup_encrypter(endpoint, await endpoint.recv_message())
    if sends:
        masked = encrypter.encrypt_aggregate(Update(np.array(values, dtype=np.uint64)))
        await endpoint.send_message(GenericMessage("update", {"masked": masked}))


async def server(network: Network, bits: int, dropped: Collection[str]) -> tuple[list[int], list[Any]]:
    """Run the setup and a round; return the sum, and the aggregates that came in."""
    try:
        decrypter = await ServerConfig(bitsize=bits, clipval=1.0).setup_decrypter(network)
    except RuntimeError as failed:
        raise failed.__cause__ or failed from None
    network.dropped = dropped
    replies = await network.wait_for_messages()
    masked = [replies[name].deserialize().params["masked"] for name in sorted(replies)]
    total = masked[0]
    for each in masked[1:]:
        total = total.aggregate(each)
    return [int(value) for value in decrypter.decrypt_aggregate(total).values], masked


def played(R: str, N: int, t: int, updates: list[str], drop: dict[str, list[int]]) -> tuple[list[int], list[Any], Any]:
    """Play a setup and a round; return the sum, the aggregates that the server got, and the network."""
    check_drop(drop, N)
    if int(R) not in BITS or {"N": N, "t": t} not in ROSTERS:
        raise Unsupported
    if len(updates) != N:
        raise Reject("length_mismatch", f"{len(updates)} updates of {N} users")
    rows = [unpack(text, element_bytes(int(R))) for text in updates]
    names = [name_of(user) for user in range(N)]
    early, late, last = ({name_of(user) for user in drop[phase]} for phase in SUM_PHASES)
    if last:
        raise Reject("below_threshold", "t is N, and not all users are left in the end")

    async def together() -> tuple[list[int], list[Any], Any]:
        network = Network(names, early)
        clients = [
            client(keys, Endpoint(name, network), row, name not in late)
            for name, keys, row in zip(names, identities(N), rows, strict=True)
            if name not in early
        ]
        (total, masked), *_ = await asyncio.gather(server(network, BITS[int(R)], late), *clients)
        return total, masked, network

    return asyncio.run(together())


def name_of(user: int) -> str:
    """Return the name of a client; names sort in the order of the users."""
    return f"client{user:03}"


refusing = bare.refusing(REFUSALS, TypeError, ValueError)


@adapter.operation("echo")
def echo(data: Any) -> dict[str, Any]:
    """Return what was sent."""
    return {"data": data}


@adapter.operation("secagg.sum", **GIVEN)
@refusing
def total(**given: Any) -> dict[str, Any]:
    """Return the sum of a round."""
    values, _, _ = played(**given)
    return {"sum": pack(values, element_bytes(int(given["R"]))), "contributors": list(range(given["N"]))}


@adapter.operation("secagg.view", **GIVEN)
@refusing
def view(viewer: int | str, **given: Any) -> dict[str, Any]:
    """Return what comes to a party in such a round."""
    if viewer != SERVER and viewer not in range(given["N"]):
        raise Reject("unknown_peer", f"there is no user {viewer}")
    _, masked, network = played(**given)
    if viewer != SERVER:
        return {"vectors": [], "strings": [text.hex() for text in network.came[name_of(int(viewer))]]}
    others = [repr({**each.to_dict(), "encrypted": None}).encode() for each in masked]
    vectors = [pack(each.encrypted, element_bytes(int(given["R"]))) for each in masked]
    return {"vectors": vectors, "strings": [text.hex() for text in (*network.came[SERVER], *others)]}


@adapter.operation("shamir.share", composed=True)
@refusing
def share(t: int, n: int, secret: str, rand: dict[str, Any]) -> dict[str, Any]:
    """generate_secret_shares."""
    made = generate_secret_shares(int("01" + secret, 16), n, t, mprime=PRIME)
    return {"shares": [value.to_bytes(66, "big").hex() for _, value in made]}


@adapter.operation("shamir.reconstruct", composed=True)
@refusing
def reconstruct(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
    """recover_shared_secret."""
    if len(users) != len(shares):
        raise Reject("length_mismatch", f"{len(shares)} shares of {len(users)} users")
    given = [(user + 1, int(text, 16)) for user, text in zip(users, shares, strict=True)]
    secret = recover_shared_secret(given, PRIME)
    return {"secret": secret.to_bytes(66, "big").lstrip(b"\0").removeprefix(b"\1").hex()}


@adapter.operation("pair.agree", composed=True)
def agree() -> dict[str, Any]:
    """Let two managers shake hands."""
    keys = [Ed25519PrivateKey.generate() for _ in range(2)]
    first, second = (X3DHManager(key, [other.public_key() for other in keys]) for key in keys)
    request = first.create_handshake_request()
    response = second.process_handshake_request(request)
    first.process_handshake_response(response)
    ((one,), (two,)) = first.secrets.values(), second.secrets.values()
    sent = [number.to_bytes(size, "big").hex() for number, size in ((request, 160), (response, 124))]
    return {"first": one.hex(), "second": two.hex(), "public": sent}


if __name__ == "__main__":
    adapter.run()
