"""Cases of BASA, one function at a time: numbers of a session, uploads of a whole epoch, boxes, recoveries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance import cases
from secagg_spec.conformance.capabilities import Capabilities
from secagg_spec.conformance.checks import rounds
from secagg_spec.conformance.checks.requests import Valid
from secagg_spec.conformance.wire import pack
from secagg_spec.crypto import boxes, prg
from secagg_spec.crypto.boxes import PAIR, SELF, Address, Epoch
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import hash_parameters, public_key
from secagg_spec.errors import ParameterError
from secagg_spec.protocols import basa_cores
from secagg_spec.protocols.basa_cores import SETTLE, VOID, Masks, Parameters

MASK, SEAL, OPEN, RECOVER = "basa.mask", "basa.seal", "basa.open", "basa.recover"
_MODULI = (257, 16, 97, 2**16, 2**31 - 1, 2**32 - 5, 2**32, 10**6)
_FUNCTIONS = (
    Staleness.polynomial(1),
    Staleness.constant(),
    Staleness.hinge("1/2", 1),
    Staleness.polynomial("1/2"),
)
_LEVELS = (2, 1, 3, 64, 1000)
_LATEST = (1, 0, 2, 3, 10)
_EXACT = 2**53
_SEED = 32


# ------------------------------------------------------------------------------------------------------------- numbers


def half(R: int) -> int:
    """Return the largest positive integer that an element carries."""
    return (R - 1) // 2


def parameters(draw: Any, *, timeouts: str = "", spare: int = 0, short: bool = False, large: bool = True) -> Parameters:
    """Draw numbers that satisfy BAA-01 and BAA-02; `spare` is the least S, and with `short` K is above T + 2."""
    profile = timeouts or (SETTLE if spare else draw(st.sampled_from((SETTLE, VOID))))
    T = draw(st.integers(1, 2))
    K = T + 2 + draw(st.integers(int(short), 3))
    S = draw(st.integers(spare, spare + 3)) if profile == SETTLE else 0
    if large and draw(st.integers(0, 19)) == 19:
        K, S = K + 30, S + (20 if profile == SETTLE else 0)
    N = draw(st.sampled_from((K + S, K + S + 1, 300, 2**31 - 1)))
    return Parameters(N=N, T=T, K=K, S=S, d=cases.length(draw, 1, 8), **_levels(draw, K), timeouts=profile)


def _levels(draw: Any, K: int) -> dict[str, Any]:
    """Draw a modulus, the levels, the largest staleness and the function, as BAA-02 allows."""
    tau_max = draw(st.sampled_from(_LATEST))
    R = draw(st.sampled_from([R for R in _MODULI if half(R) >= K]))
    most = half(R) // K
    levels = sorted({c for c in (*_LEVELS, most) if c <= min(most, 2**32)}, key=lambda c: (c != 2, c))
    choices = [(s, c) for s in _FUNCTIONS for c in levels if floor_weight(s, c, tau_max) >= 1]
    staleness, c_g = choices[draw(st.integers(0, len(choices) - 1))]
    largest = min(_EXACT // (K * c_g), 2**32)
    c_l = draw(st.sampled_from([c for c in (1, 3, 65536, largest) if c <= largest]))
    return {"R": R, "c_l": c_l, "c_g": c_g, "tau_max": tau_max, "staleness": staleness}


def members(p: Parameters) -> dict[str, Any]:
    """Return the numbers of a session as they stand in a request."""
    numbers = {name: getattr(p, name) for name in ("R", "N", "T", "d", "K", "S", "tau_max", "timeouts")}
    s = p.staleness
    function = {"kind": s.kind, "numerator": s.numerator, "denominator": s.denominator, "start": str(s.start)}
    return {**numbers, "c_l": str(p.c_l), "c_g": str(p.c_g), **function}


def epoch_of(p: Parameters, session: bytes, number: int) -> Epoch:
    """Return what keys and boxes of an epoch are bound to."""
    return Epoch(digest(p), session, number, p.positions, p.settle)


def digest(p: Parameters, encryption: int = 0) -> bytes:
    """Return the hash of the parameters."""
    return hash_parameters({**p.numbers(), "encryption": encryption})


def others(p: Parameters) -> dict[str, Parameters]:
    """Return other numbers of the same positions that BAA-01 and BAA-02 allow, each by what differs."""
    s = p.staleness
    changes: dict[str, dict[str, Any]] = {
        **{f"{name} + 1": {name: getattr(p, name) + 1} for name in ("R", "N", "T", "d", "c_l", "c_g", "tau_max")},
        **{f"{name} - 1": {name: getattr(p, name) - 1} for name in ("R", "N", "T", "d", "c_l", "c_g", "tau_max")},
        "K - 1, S + 1": {"K": p.K - 1, "S": p.S + 1},
        "K + 1, S - 1": {"K": p.K + 1, "S": p.S - 1},
        "S + 1": {"S": p.S + 1},
        "kind": {"staleness": Staleness("hinge", s.numerator, s.denominator)},
        "polynomial": {"staleness": Staleness("polynomial", s.numerator, s.denominator)},
        "numerator": {"staleness": Staleness(s.kind, 3, 2) if s.kind != "constant" else s},
        "denominator": {"staleness": Staleness(s.kind, 1, 3) if s.kind != "constant" else s},
        "start": {"staleness": replace(s, start=s.start + 1) if s.kind == "hinge" else s},
        "timeouts": {"timeouts": VOID if p.settle else SETTLE},
    }
    found = {name: _allowed(p, changed) for name, changed in changes.items()}
    return {name: other for name, other in found.items() if other is not None and other != p}


def _allowed(p: Parameters, changed: Mapping[str, Any]) -> Parameters | None:
    try:
        return replace(p, **changed)
    except ParameterError:
        return None


def wrong_numbers(p: Parameters) -> dict[str, dict[str, Any]]:
    """Return changes that break BAA-01 or BAA-02, each by its name."""
    return {
        "nobody colludes": {"T": 0},
        "a small buffer": {"K": p.T + 1},
        "more positions than users": {"N": p.positions - 1},
        "users that are servers": {"N": 2**31},
        "a negative S": {"S": -1},
        "void with spares": {"timeouts": VOID, "S": max(p.S, 1), "N": p.N + 1 if p.N < 2**31 - 1 else p.N},
        "no profile": {"timeouts": "never"},
        "a modulus of 1": {"R": 1},
        "a modulus above 2**32": {"R": 2**32 + 1},
        "no element": {"d": 0},
        "a negative tau_max": {"tau_max": -1},
        "tau_max of 2**31": {"tau_max": 2**31, "kind": "constant", "numerator": 0, "denominator": 1, "start": "0"},
        "c_l of 0": {"c_l": "0"},
        "c_l above 2**32": {"c_l": str(2**32 + 1)},
        "c_g of 0": {"c_g": "0"},
        "weights that vanish": {"kind": "polynomial", "numerator": 1000, "denominator": 1, "start": "0", "tau_max": 10},
        "weights that no sum holds": {"c_g": str(half(p.R) // p.K + 1)},
        "an average that is not one division": {"c_l": str(_EXACT // (p.K * p.c_g) + 1)},
        "no staleness function": {"kind": "exponential"},
        "no fraction in lowest terms": {"kind": "polynomial", "numerator": 2, "denominator": 4, "start": "0"},
    }


# ----------------------------------------------------------------------------------------------------- a whole epoch


@dataclass(frozen=True, eq=False)
class Buffer:
    """The uploads of an epoch that was closed: for each accepted position its seeds, its weight, and its update."""

    parameters: Parameters
    session: bytes
    number: int
    accepted: tuple[int, ...]
    seeds: Mapping[int, tuple[bytes, ...]]
    weights: Mapping[int, int]
    updates: Mapping[int, UintArray]

    @property
    def epoch(self) -> Epoch:
        """What masks are bound to."""
        return epoch_of(self.parameters, self.session, self.number)

    def named(self) -> dict[str, Any]:
        """Return the members that say which epoch it is."""
        return {**members(self.parameters), "session": self.session.hex(), "round": str(self.number)}

    def before(self, k: int) -> tuple[int, ...]:
        """Return the accepted positions before one."""
        return tuple(i for i in self.accepted if i < k)

    def left(self) -> list[tuple[int, int]]:
        """Return the pairs whose masks are left in the sum: an accepted position and a later one that is not."""
        gone = [j for j in range(self.parameters.positions) if j not in self.accepted]
        return [(i, j) for i in self.accepted for j in gone if i < j]

    def stream(self, i: int, j: int | None = None) -> UintArray:
        """Return the mask from a position to another, or its own."""
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
        """Return the ``params`` of `basa.mask` for a position, some of them exchanged."""
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
        """Return the ``params`` of `basa.recover` for masked updates, some of them exchanged."""
        given = {
            "accepted": list(self.accepted),
            "weights": pack(np.array([self.weights[k] for k in self.accepted], dtype=np.uint64)),
            "masked": [pack(row) for row in masked],
            "own": [self.seeds[k][k].hex() for k in self.accepted] if self.parameters.settle else [],
            "skipped": [[i, j, self.seeds[i][j].hex()] for i, j in self.left()],
        }
        return {**self.named(), **given, **changed}


def buffer(draw: Any, p: Parameters, *, skips: int = 0, accepted: tuple[int, ...] = ()) -> Buffer:
    """Draw the uploads of an epoch that was closed; at least `skips` positions are not among the accepted ones."""
    session, number = rounds.session_id(draw), int(draw(st.sampled_from(rounds.ROUNDS)))
    accepted = accepted or _accepted(draw, p, skips)
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basa")
    seeds = {k: tuple(source.take(_SEED) for _ in range(p.positions)) for k in accepted}
    weights = {k: draw(st.sampled_from((p.c_g, 1)) | st.integers(1, p.c_g)) for k in accepted}
    rows = carried(draw, p, len(accepted))
    return Buffer(p, session, number, accepted, seeds, weights, dict(zip(accepted, rows, strict=True)))


def _accepted(draw: Any, p: Parameters, skips: int) -> tuple[int, ...]:
    """Draw the accepted positions: K of the first ones, or as few as T + 2 of all."""
    if not p.settle:
        return tuple(range(p.K))
    fewest = p.T + 2 if p.positions - p.T - 2 >= skips else p.positions - skips
    count = draw(st.sampled_from((p.K, fewest)) | st.integers(fewest, p.K))
    return tuple(sorted(cases.subset(draw, range(p.positions), count, count)))


def carried(draw: Any, p: Parameters, count: int) -> list[UintArray]:
    """Draw updates that are carried: both ends of the budget, small numbers, and pseudo-random ones."""
    B, first = p.budget, draw(st.integers(0, 2))
    random = cases.seeded_vector(draw, min(2 * B + 1, 2**32), count * p.d).reshape(count, p.d)
    made = []
    for number in range(count):
        ramp, ends = [(number + at) % (B + 1) for at in range(p.d)], [B if at % 2 else -B for at in range(p.d)]
        values = (ramp, ends, [int(value) - B for value in random[number]])[(first + number) % 3]
        made.append(np.array([value % p.R for value in values], dtype=np.uint64))
    return made


def drawn(draw: Any, **wanted: Any) -> tuple[Buffer, int]:
    """Draw a buffer and one of its accepted positions."""
    chosen = buffer(draw, parameters(draw, **wanted))
    return chosen, int(draw(st.sampled_from(chosen.accepted)))


def _mask(draw: Any, caps: Capabilities) -> Valid:
    chosen, k = drawn(draw)
    return Valid(chosen.mask_params(k), {})


def recovery(draw: Any, **wanted: Any) -> tuple[Buffer, dict[str, Any]]:
    """Draw a buffer and the ``params`` of its recovery."""
    chosen = buffer(draw, parameters(draw, **wanted), skips=wanted.get("spare", 0))
    return chosen, chosen.recover_params([chosen.masked(k) for k in chosen.accepted])


def _recover(draw: Any, caps: Capabilities) -> Valid:
    return Valid(recovery(draw)[1], {})


# --------------------------------------------------------------------------------------------------------------- boxes


@dataclass(frozen=True)
class Box:
    """A seed, what its box is bound to, and the keys of both ends."""

    parameters: Parameters
    address: Address
    seed: bytes
    box_key: bytes
    private: bytes

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the members that say what the box is bound to, some of them exchanged."""
        a = self.address
        where = {"sender": a.sender, "from": a.source, "to": a.target, "purpose": a.purpose}
        named = {"session": a.epoch.session.hex(), "round": str(a.epoch.number)}
        return {**members(self.parameters), **named, **where, **changed}

    def seal_params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.seal`, some of them exchanged."""
        return self.params(**{"public": public_key(self.private).hex(), "seed": self.seed.hex(), **changed})

    def open_params(self, sealed: bytes, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of `basa.open` for a box, some of them exchanged."""
        return self.params(**{"private": self.private.hex(), "box": sealed.hex(), **changed})

    def sealed(self, address: Address | None = None) -> bytes:
        """Return the box, or the one of another address."""
        return boxes.seal(address or self.address, public_key(self.private), self.seed, self.box_key)


def box(draw: Any, *, purpose: str = "", given: Parameters | None = None) -> Box:
    """Draw a seed and where it goes."""
    p = given or parameters(draw)
    kind = purpose or draw(st.sampled_from((PAIR, SELF) if p.settle else (PAIR,)))
    epoch = epoch_of(p, rounds.session_id(draw), int(draw(st.sampled_from(rounds.ROUNDS))))
    target = draw(st.sampled_from((p.positions - 1, 1)) | st.integers(1, p.positions - 1))
    source = draw(st.sampled_from((0, target - 1)) | st.integers(0, target - 1))
    sender = int(draw(st.sampled_from((0, p.N - 1)) | st.integers(0, p.N - 1)))
    places = (source, target) if kind == PAIR else (source,) * 2
    source_of = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "box")
    seed, box_key, private = (source_of.take(_SEED) for _ in range(3))
    return Box(p, Address(epoch, kind, sender, *places), seed, box_key, private)


def weak_box(chosen: Box, weak: bytes) -> bytes:
    """Return a box that holds a public key of low order, under the shared secret 0 of everybody."""
    cipher = boxes._cipher(chosen.address, bytes(_SEED), weak, public_key(chosen.private))
    return weak + cipher.encrypt(bytes(12), chosen.seed, chosen.address.binding())


def _seal(draw: Any, caps: Capabilities) -> Valid:
    chosen = box(draw)
    return Valid(chosen.seal_params(), {"box_key": chosen.box_key.hex()})


def _open(draw: Any, caps: Capabilities) -> Valid:
    chosen = box(draw)
    return Valid(chosen.open_params(chosen.sealed()), {})


VALID: dict[str, Callable[[Any, Capabilities], Valid]] = {
    MASK: _mask,
    SEAL: _seal,
    OPEN: _open,
    RECOVER: _recover,
}
