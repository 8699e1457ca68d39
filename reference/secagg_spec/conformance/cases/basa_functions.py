"""Cases of BASA, one function at a time: numbers of a session, uploads of a whole epoch, boxes, recoveries."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import Staleness, floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import basecagg_sessions, lightsecagg_parties, strategies
from secagg_spec.conformance.cases.requests import Make, Valid, allowed
from secagg_spec.conformance.sessions.basa_positions import MASK, OPEN, RECOVER, SEAL, Box, Buffer, epoch_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto import boxes
from secagg_spec.crypto.boxes import PAIR, SELF, Address
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import public_key
from secagg_spec.protocols.basa.cores import SETTLE, VOID, Parameters

_MODULI = (257, 16, 97, 2**16, 2**31 - 1, 2**32 - 5, 2**32, 10**6)
_FUNCTIONS = (Staleness.polynomial(1), Staleness.constant(), Staleness.hinge("1/2", 1), Staleness.polynomial("1/2"))
_LEVELS = (2, 1, 3, 64, 1000)
_LATEST = (1, 0, 2, 3, 10)
_EXACT = 2**53
_SEED = 32


def half(R: int) -> int:
    """Return the largest positive integer that an element represents."""
    return (R - 1) // 2


def parameters(draw: Any, *, timeouts: str = "", spare: int = 0, short: bool = False, large: bool = True) -> Parameters:
    """Draw numbers that satisfy BAA-01 and BAA-02. `spare` is the least S; with `short`, K is above T + 2."""
    profile = timeouts or (SETTLE if spare else draw(among((SETTLE, VOID))))
    T = draw(st.integers(1, 2))
    K = T + 2 + draw(st.integers(int(short), 3))
    S = draw(st.integers(spare, spare + 3)) if profile == SETTLE else 0
    if large and draw(st.integers(0, 19)) == 19:
        K, S = K + 30, S + (20 if profile == SETTLE else 0)
    N = draw(among((K + S, K + S + 1, 300, 2**31 - 1)))
    return Parameters(N=N, T=T, K=K, S=S, d=strategies.length(draw, 1, 8), **_levels(draw, K), timeouts=profile)


def _levels(draw: Any, K: int) -> dict[str, Any]:
    """Draw a modulus, the levels, the largest staleness and the function, as BAA-02 allows."""
    tau_max = draw(among(_LATEST))
    R = draw(among([R for R in _MODULI if half(R) >= K]))
    most = half(R) // K
    levels = sorted({c for c in (*_LEVELS, most) if c <= min(most, 2**32)}, key=lambda c: (c != 2, c))
    choices = [(s, c) for s in _FUNCTIONS for c in levels if floor_weight(s, c, tau_max) >= 1]
    staleness, c_g = choices[draw(st.integers(0, len(choices) - 1))]
    largest = min(_EXACT // (K * c_g), 2**32)
    c_l = draw(among([c for c in (1, 3, 65536, largest) if c <= largest]))
    return {"R": R, "c_l": c_l, "c_g": c_g, "tau_max": tau_max, "staleness": staleness}


def others(p: Parameters) -> dict[str, Parameters]:
    """Return other numbers for the same positions that BAA-01 and BAA-02 allow, by what differs."""
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
    return allowed(p, changes)


def wrong_numbers(p: Parameters) -> dict[str, dict[str, Any]]:
    """Return changes that break BAA-01 or BAA-02, by name."""
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
        "tau_max of 2**31": {"tau_max": 2**31, "kind": "constant", "numerator": 0, "denominator": 1, "start": "0"},
        **basecagg_sessions.wrong_levels(p.R, p.K, p.c_g),
        "no staleness function": {"kind": "exponential"},
        "no fraction in lowest terms": {"kind": "polynomial", "numerator": 2, "denominator": 4, "start": "0"},
    }


def buffer(draw: Any, p: Parameters, *, skips: int = 0, accepted: tuple[int, ...] = ()) -> Buffer:
    """Draw the uploads of a closed epoch. At least `skips` positions are not accepted."""
    session, number = lightsecagg_parties.session_id(draw), int(draw(among(lightsecagg_parties.ROUNDS)))
    accepted = accepted or _accepted(draw, p, skips)
    source = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "basa")
    seeds = {k: tuple(source.take(_SEED) for _ in range(p.positions)) for k in accepted}
    weights = {k: draw(among((p.c_g, 1)) | st.integers(1, p.c_g)) for k in accepted}
    rows = carried(draw, p, len(accepted))
    return Buffer(p, session, number, accepted, seeds, weights, dict(zip(accepted, rows, strict=True)))


def _accepted(draw: Any, p: Parameters, skips: int) -> tuple[int, ...]:
    """Draw the accepted positions: the first K, or between T + 2 and K of all."""
    if not p.settle:
        return tuple(range(p.K))
    fewest = p.T + 2 if p.positions - p.T - 2 >= skips else p.positions - skips
    count = draw(among((p.K, fewest)) | st.integers(fewest, p.K))
    return tuple(sorted(strategies.subset(draw, range(p.positions), count, count)))


def carried(draw: Any, p: Parameters, count: int) -> list[UintArray]:
    """Draw updates that fit."""
    return basecagg_sessions.carried(draw, p.budget, p.R, p.d, count)


def drawn(draw: Any, **wanted: Any) -> tuple[Buffer, int]:
    """Draw a buffer and one of its accepted positions."""
    chosen = buffer(draw, parameters(draw, **wanted))
    return chosen, int(draw(among(chosen.accepted)))


def _mask(draw: Any, caps: Capabilities) -> Valid:
    chosen, k = drawn(draw)
    return Valid(chosen.mask_params(k))


def recovery(draw: Any, **wanted: Any) -> tuple[Buffer, dict[str, Any]]:
    """Draw a buffer and the ``params`` of its recovery."""
    chosen = buffer(draw, parameters(draw, **wanted), skips=wanted.get("spare", 0))
    return chosen, chosen.recover_params([chosen.masked(k) for k in chosen.accepted])


def box(draw: Any, *, purpose: str = "", given: Parameters | None = None) -> Box:
    """Draw a seed and its sender and receiver."""
    p = given or parameters(draw)
    kind = purpose or draw(among((PAIR, SELF) if p.settle else (PAIR,)))
    epoch = epoch_of(p, lightsecagg_parties.session_id(draw), int(draw(among(lightsecagg_parties.ROUNDS))))
    target = draw(among((p.positions - 1, 1)) | st.integers(1, p.positions - 1))
    source = draw(among((0, target - 1)) | st.integers(0, target - 1))
    sender = int(draw(among((0, p.N - 1)) | st.integers(0, p.N - 1)))
    places = (source, target) if kind == PAIR else (source,) * 2
    source_of = SeededSource(draw(st.integers(0, 2**32 - 1)).to_bytes(4, "little"), "box")
    seed, box_key, private = (source_of.take(_SEED) for _ in range(3))
    return Box(p, Address(epoch, kind, sender, *places), seed, box_key, private)


def weak_box(chosen: Box, weak: bytes) -> bytes:
    """Return a box with a public key of low order, sealed under the shared secret 0, which everybody knows."""
    bound = chosen.address.binding()
    cipher = boxes._cipher(chosen.address.epoch, bound, bytes(_SEED), weak, public_key(chosen.private))
    return weak + cipher.encrypt(bytes(12), chosen.seed, bound)


def _seal(draw: Any, caps: Capabilities) -> Valid:
    chosen = box(draw)
    return Valid(chosen.seal_params(), {"box_key": chosen.box_key.hex()})


def _open(draw: Any, caps: Capabilities) -> Valid:
    chosen = box(draw)
    return Valid(chosen.open_params(chosen.sealed()))


VALID: dict[str, Make] = {MASK: _mask, SEAL: _seal, OPEN: _open, RECOVER: lambda draw, caps: Valid(recovery(draw)[1])}
