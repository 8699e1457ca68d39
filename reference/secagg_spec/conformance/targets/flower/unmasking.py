"""One client of Flower's SecAgg+ at the end of a round, among honest released clients, in Flower's environment.

The server is ours and acts like the workflow: it relays keys and shares among the neighbours that remain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .client import STAGES, Client, node_of, user_of

SETUP, SHARE_KEYS, COLLECT, UNMASK = STAGES
DEFAULTS = {"clipping_range": 8.0, "target_range": 2**22, "mod_range": 2**32, "max_weight": 1000.0}
"""The values that the workflow sends with its own defaults."""
_LONGEST_SEED_SHARE = 200
"""A share of a 32-byte seed has 52 bytes, one of a private key (306 bytes) 324; pickled, 85 to 88 and 476 or more."""


@dataclass(frozen=True)
class Ring:
    """N users on a circle in roster order, with k neighbours each."""

    N: int
    k: int

    def near(self, user: int) -> list[int]:
        """Return a user and its neighbours: k // 2 on either side, and the opposite user if k is odd."""
        steps = {0, *range(1, self.k // 2 + 1), *range(-(self.k // 2), 0), *([self.N // 2] if self.k % 2 else [])}
        return sorted({(user + step) % self.N for step in steps})


def before_unmasking(ring: Ring, threshold: int, drop: Mapping[str, Collection[int]]) -> dict[int, Client]:
    """Return the clients that sent a masked input.

    Parameters
    ----------
    ring, threshold
        The neighbour relation, and the threshold of the shares.
    drop
        Users by stage: they drop out just before they would answer in it.
    """
    sizes = {"sample_num": ring.N, "share_num": ring.k + 1, "threshold": threshold, **DEFAULTS}
    clients = {user: Client(user, [0.0], 1) for user in range(ring.N) if user not in drop[SETUP]}
    keys = {user: _pair(client.ask(SETUP, **sizes)) for user, client in clients.items()}
    clients = _without(clients, drop[SHARE_KEYS])
    sent = {
        user: client.ask(SHARE_KEYS, **{str(node_of(peer)): keys[peer] for peer in ring.near(user) if peer in keys})
        for user, client in clients.items()
    }
    clients = _without(clients, drop[COLLECT])
    for user, client in clients.items():
        client.ask(COLLECT, **_inbox(user, sent))
    return clients


def _pair(answer: Mapping[str, Any]) -> list[bytes]:
    return [answer["pk1"], answer["pk2"]]


def _without(clients: Mapping[int, Client], dropped: Collection[int]) -> dict[int, Client]:
    return {user: client for user, client in clients.items() if user not in dropped}


def _inbox(user: int, sent: Mapping[int, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the data that the others sent to a user, as the workflow relays it."""
    mail = [
        (node_of(sender), text)
        for sender, answer in sent.items()
        for node, text in zip(answer["dsts"], answer["ctxts"], strict=True)
        if user_of(node) == user
    ]
    return {"srcs": [node for node, _ in mail], "ctxts": [text for _, text in mail]}


def kind_of(share: bytes) -> str:
    """Return whether a share belongs to a self seed or to a private key."""
    return "seed" if len(share) < _LONGEST_SEED_SHARE else "key"


def released(client: Client, survivors: Sequence[int], dropped: Sequence[int]) -> dict[str, list[int]]:
    """Return the users whose shares a client releases on request: shares of self seeds, and of masking keys."""
    nodes = {"active_nids": [node_of(user) for user in survivors], "dead_nids": [node_of(user) for user in dropped]}
    answer = client.ask(UNMASK, **nodes)
    pairs = [(user_of(node), share) for node, share in zip(answer["nids"], answer["shares"], strict=True)]
    return {
        "seeds": sorted(user for user, share in pairs if kind_of(share) == "seed"),
        "keys": sorted(user for user, share in pairs if kind_of(share) == "key"),
    }
