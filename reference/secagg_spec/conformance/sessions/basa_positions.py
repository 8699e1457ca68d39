"""Epochs of BASA, their uploads and boxes, in the form of requests; nothing is drawn here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.crypto import boxes, prg
from secagg_spec.crypto.boxes import Address, Epoch
from secagg_spec.crypto.keys import hash_parameters, public_key
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks, Parameters

MASK, SEAL, OPEN, RECOVER = "basa.mask", "basa.seal", "basa.open", "basa.recover"


def members(p: Parameters) -> dict[str, Any]:
    """Return the numbers of a session in the form of a request."""
    numbers = {name: getattr(p, name) for name in ("R", "N", "T", "d", "K", "S", "tau_max", "timeouts")}
    s = p.staleness
    function = {"kind": s.kind, "numerator": s.numerator, "denominator": s.denominator, "start": str(s.start)}
    return {**numbers, "c_l": str(p.c_l), "c_g": str(p.c_g), **function}


def epoch_of(p: Parameters, session: bytes, number: int) -> Epoch:
    """Return the data to which keys and boxes of an epoch are bound."""
    return Epoch(digest(p), session, number, p.positions, p.settle)


def digest(p: Parameters, encryption: int = 0) -> bytes:
    """Return the hash of the parameters."""
    return hash_parameters({**p.numbers(), "encryption": encryption})


@dataclass(frozen=True, eq=False)
class Buffer:
    """The uploads of a closed epoch: the seeds, weight and update of each accepted position."""

    parameters: Parameters
    session: bytes
    number: int
    accepted: tuple[int, ...]
    seeds: Mapping[int, tuple[bytes, ...]]
    weights: Mapping[int, int]
    updates: Mapping[int, UintArray]

    @property
    def epoch(self) -> Epoch:
        """The data to which masks are bound."""
        return epoch_of(self.parameters, self.session, self.number)

    def named(self) -> dict[str, Any]:
        """Return the members that identify the epoch."""
        return {**members(self.parameters), "session": self.session.hex(), "round": str(self.number)}

    def before(self, k: int) -> tuple[int, ...]:
        """Return the accepted positions before a position."""
        return tuple(i for i in self.accepted if i < k)

    def left(self) -> list[tuple[int, int]]:
        """Return the pairs whose masks remain in the sum: an accepted position and a later one that is not accepted."""
        dropped = [j for j in range(self.parameters.positions) if j not in self.accepted]
        return [(i, j) for i in self.accepted for j in dropped if i < j]

    def stream(self, i: int, j: int | None = None) -> UintArray:
        """Return the mask from one position to another, or the self mask of a position."""
        key = boxes.mask_key(self.epoch, self.seeds[i][i if j is None else j], i, j)
        return prg.expand(key, self.parameters.ring, self.parameters.d)

    def masked(self, k: int) -> UintArray:
        """Return the masked update of an accepted position."""
        p = self.parameters
        masks = Masks(
            [self.stream(i, k) for i in self.before(k)],
            [self.stream(k, j) for j in range(k + 1, p.positions)],
            self.stream(k) if p.settle else None,
        )
        return basa_cores.mask_update(p, self.updates[k], self.weights[k], masks)

    def sum(self) -> UintArray:
        """Return the sum of the weighted updates."""
        p = self.parameters
        rows = [[self.weights[k] * value for value in self.updates[k].tolist()] for k in self.accepted]
        return np.array([sum(column) % p.R for column in zip(*rows, strict=True)], dtype=np.uint64)

    def mask_params(self, k: int, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.mask` for a position, with some of them replaced."""
        before = self.before(k)
        given = {
            "position": k,
            "accepted": list(before),
            "before": [self.seeds[i][k].hex() for i in before],
            "seeds": b"".join(self.seeds[k]).hex(),
            "weight": self.weights[k],
            "update": pack(self.updates[k]),
        }
        return {**self.named(), **given, **changed}

    def recover_params(self, masked: Sequence[UintArray], **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.recover` for masked updates, with some of them replaced."""
        given = {
            "accepted": list(self.accepted),
            "weights": pack(np.array([self.weights[k] for k in self.accepted], dtype=np.uint64)),
            "masked": [pack(row) for row in masked],
            "own": [self.seeds[k][k].hex() for k in self.accepted] if self.parameters.settle else [],
            "skipped": [[i, j, self.seeds[i][j].hex()] for i, j in self.left()],
        }
        return {**self.named(), **given, **changed}


@dataclass(frozen=True)
class Box:
    """A seed, the data to which its box is bound, and the keys of both ends."""

    parameters: Parameters
    address: Address
    seed: bytes
    box_key: bytes
    private: bytes

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the members to which the box is bound, with some of them replaced."""
        a = self.address
        where = {"sender": a.sender, "from": a.source, "to": a.target, "purpose": a.purpose}
        named = {"session": a.epoch.session.hex(), "round": str(a.epoch.number)}
        return {**members(self.parameters), **named, **where, **changed}

    def seal_params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.seal`, with some of them replaced."""
        return self.params(**{"public": public_key(self.private).hex(), "seed": self.seed.hex(), **changed})

    def open_params(self, sealed: bytes, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.open` for a box, with some of them replaced."""
        return self.params(**{"private": self.private.hex(), "box": sealed.hex(), **changed})

    def sealed(self, address: Address | None = None) -> bytes:
        """Return the box, optionally for another address."""
        return boxes.seal(address or self.address, public_key(self.private), self.seed, self.box_key)
