"""Masked segments of HeteroSAg, in the form of requests; nothing is drawn here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic import packing
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.sessions.heterosag_numbers import members, totals
from secagg_spec.crypto import masks, prg
from secagg_spec.crypto.sealing import Context
from secagg_spec.protocols.heterosag.plan import Cell, Parameters, cells_of

MASK, UNMASK, ROUND = "heterosag.mask", "heterosag.unmask", "heterosag.round"
_TYPE = 515


@dataclass(frozen=True, eq=False)
class Masked:
    """Inputs of all users, their self seeds and masking keys, and the pairwise agreed secrets."""

    parameters: Parameters
    session: bytes
    number: int
    keys: tuple[bytes, ...]
    seeds: tuple[bytes, ...]
    secrets: Mapping[frozenset[int], bytes]
    updates: UintArray

    @property
    def context(self) -> Context:
        """The data to which masks are bound (HSA-22)."""
        return Context("heterosag", self.parameters.digest, self.session, self.number, _TYPE)

    def named(self) -> dict[str, Any]:
        """Return the members that identify the round."""
        return {**members(self.parameters), "session": self.session.hex(), "round": str(self.number)}

    def own_mask(self, cell: Cell, user: int) -> UintArray:
        """Return the self mask of a user in a cell."""
        key = masks.self_key(self.context, self.seeds[user], user, cell.segment)
        return prg.expand(key, cell.ring, cell.length)

    def mask(self, cell: Cell, user: int, peer: int) -> UintArray:
        """Return the pairwise mask of two users in a cell."""
        pair = {each: self.keys[each] for each in (user, peer)}
        key = masks.pairwise_key(self.context, self.secrets[frozenset((user, peer))], pair, cell.segment)
        return prg.expand(key, cell.ring, cell.length)

    def masked(self, cell: Cell, user: int, arrived: Collection[int]) -> UintArray:
        """Return a user's masked segment, masked with the users of the cell whose shares arrived."""
        masked = cell.ring.add(cell.of(self.updates[user]), self.own_mask(cell, user))
        for peer in sorted(cell.members & set(arrived) - {user}):
            combine = cell.ring.add if user < peer else cell.ring.subtract
            masked = combine(masked, self.mask(cell, user, peer))
        return masked

    def segments(self, user: int, arrived: Collection[int]) -> bytes:
        """Return a user's masked segments in packed form."""
        cells = cells_of(self.parameters, user)
        return b"".join(packing.pack(self.masked(cell, user, arrived), cell.ring.modulus) for cell in cells)

    def sums(self, survivors: Collection[int]) -> list[UintArray]:
        """Return the sum of each cell that has survivors."""
        return totals(self.parameters, {user: self.updates[user] for user in survivors})

    def mask_params(self, user: int, arrived: Collection[int], **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `heterosag.mask` for a user, with some of them replaced."""
        secrets = [[peer, self.secrets[frozenset((user, peer))].hex()] for peer in arrived]
        given = {
            "user": user,
            "self_seed": self.seeds[user].hex(),
            "keys": [key.hex() for key in self.keys],
            "secrets": secrets,
            "update": pack(self.updates[user]),
        }
        return {**self.named(), **given, **changed}

    def unmask_params(
        self, survivors: Collection[int], dropped: Collection[int], segments: Mapping[int, bytes], **changed: Any
    ) -> dict[str, Any]:
        """Return the ``params`` of `heterosag.unmask` for masked segments by user, with some of them replaced."""
        users = sorted(survivors)
        left = [(user, peer) for user in sorted(dropped) for peer in users]
        given = {
            "keys": [key.hex() for key in self.keys],
            "survivors": users,
            "segments": [segments[user].hex() for user in users],
            "self_seeds": [self.seeds[user].hex() for user in users],
            "secrets": [[user, peer, self.secrets[frozenset((user, peer))].hex()] for user, peer in left],
        }
        return {**self.named(), **given, **changed}


def flat(sums: list[UintArray]) -> UintArray:
    """Return the concatenated sums."""
    return np.concatenate(sums)
