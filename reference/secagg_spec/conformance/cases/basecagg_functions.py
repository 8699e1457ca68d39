"""Cases of BASecAgg, one function at a time: updates within their budget, buffers that a user answers, recoveries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.staleness import Staleness, admissible_weights, floor_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import staleness, strategies
from secagg_spec.conformance.cases.requests import Make, Valid, encode, shares_length
from secagg_spec.conformance.sessions.basecagg_buffers import Buffer, Entry, Recovery, half, weighted
from secagg_spec.conformance.sessions.choices import among

ENCODE, MASK = "basecagg.encode", "basecagg.mask"
COMBINE, RECOVER = "basecagg.combine", "basecagg.recover"
EXACT = 2**53
LAST_ROUND = 2**32 - 1
MAX_STALENESS = 2**31 - 1
_COARSE = (1, 2, 3, 10, 64, 1000, 2**16)
_AGES = (0, 1, 2, 3, 10, 100, MAX_STALENESS)
_RATES = ((1, 1), (1, 2), (0, 1), (2, 1), (2, 3), (1, 100))


@dataclass(frozen=True)
class Levels:
    """The numbers that determine how large an update may be."""

    q: int
    K: int
    c_g: int
    c_l: int = 1

    @property
    def budget(self) -> int:
        """B, the largest magnitude that fits."""
        return half(self.q) // (self.K * self.c_g)

    def params(self, *names: str, **changed: Any) -> dict[str, Any]:
        """Return these members of ``params``, with some changed. Levels are decimal strings."""
        params = {**{name: getattr(self, name) for name in names}, **changed}
        return {name: str(value) if name in ("c_l", "c_g") else value for name, value in params.items()}


def coarse(draw: Any, most: int, least: int = 1) -> int:
    """Draw a level c_g in [least, most], either small or among the largest."""
    listed = [c for c in _COARSE if least <= c <= most]
    return int(draw(among([*listed, least]) | st.sampled_from([max(most - 1, least), most])))


def levels(draw: Any, caps: Capabilities, operation: str) -> Levels:
    """Draw numbers that satisfy BSA-02."""
    q = strategies.modulus(draw, caps, operation, prime=True, above=2 * strategies.FEWEST_IN_BUFFER)
    K = draw(st.integers(strategies.FEWEST_IN_BUFFER, min(10, half(q))))
    c_g = coarse(draw, half(q) // K)
    most = min(EXACT // (K * c_g), 2**32)
    c_l = draw(among([c for c in strategies.LEVELS if c <= most]))
    return Levels(q, K, c_g, c_l)


def carried(draw: Any, chosen: Levels, d: int) -> UintArray:
    """Draw an update that fits: integers of magnitude up to the budget, with both ends among them."""
    B = chosen.budget
    integers = st.sampled_from((0, B, -B, 1 if B else 0)) | st.integers(-B, B)
    values = [draw(integers) for _ in range(d)]
    return np.array([value + chosen.q if value < 0 else value for value in values], dtype=np.uint64)


def _encode(draw: Any, caps: Capabilities) -> Valid:
    chosen, n = levels(draw, caps, ENCODE), strategies.length(draw, 1)
    params = chosen.params("q", "K", "c_l", "c_g", x=pack_reals(np.zeros(n)))
    return Valid(params, {"rounding": pack_reals(strategies.rounding(draw, n))})


def masked(draw: Any, caps: Capabilities) -> tuple[Levels, UintArray, UintArray]:
    """Draw an update that fits, and its mask."""
    chosen, d = levels(draw, caps, MASK), strategies.length(draw, 1)
    return chosen, carried(draw, chosen, d), strategies.vector(draw, chosen.q, d)


def _mask(draw: Any, caps: Capabilities) -> Valid:
    chosen, update, mask = masked(draw, caps)
    return Valid(chosen.params("q", "K", "c_g", update=pack(update), mask=pack(mask)), {}, ("update", "mask"))


def function(draw: Any) -> Staleness:
    """Draw a staleness function."""
    return staleness.function(draw, _RATES, (0, 1, 4))


def least_level(chosen: Staleness, tau: int, most: int) -> int:
    """Return the smallest c_g up to `most` with c_g s(tau) >= 1."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if floor_weight(chosen, middle, tau) else (middle, high)
    return high


def buffer(draw: Any, numbers: dict[str, int], late: int = 0, ahead: int = 0, spare: int = 0) -> Buffer:
    """Draw a buffer that a user answers, for a roster with these numbers. At least `spare` users have no entry.

    Its round leaves room for stamps that are `late` rounds older than tau_max, and for stamps `ahead` rounds later.
    """
    q, N, T = (numbers[name] for name in ("q", "N", "T"))
    K = draw(st.integers(T + 2, min(N - spare, half(q), T + 6)))
    chosen, most = function(draw), half(q) // K
    tau_max = draw(among([tau for tau in _AGES if floor_weight(chosen, most, tau)]))
    c_g = coarse(draw, most, least_level(chosen, tau_max, most))
    first, last = tau_max + late if late else 0, LAST_ROUND - ahead
    round = draw(among([r for r in (first, first + 1, tau_max, last) if first <= r <= last]))
    users = sorted(strategies.subset(draw, range(N), K, K))
    entries = tuple(_entry(draw, user, round, tau_max, chosen, c_g) for user in users)
    return Buffer(q, N, T, K, c_g, tau_max, chosen, round, entries, _shares(draw, q, N, round, entries))


def _entry(draw: Any, user: int, round: int, tau_max: int, chosen: Staleness, c_g: int) -> Entry:
    oldest = min(round, tau_max)
    tau = draw(among((0, oldest, min(1, oldest))) | st.integers(0, oldest))
    return Entry(user, round - tau, draw(among(admissible_weights(chosen, c_g, tau))))


def _shares(draw: Any, q: int, N: int, round: int, entries: Sequence[Entry]) -> dict[int, tuple[int, UintArray]]:
    """Draw the shares that a user holds: those of the entries, in any order, and newer ones of other users."""
    stamps = {entry.user: entry.stamp for entry in entries}
    others = [user for user in range(N) if user not in stamps]
    users = strategies.shuffled(draw, [*stamps, *strategies.subset(draw, others, 0, min(len(others), 2))])
    shares = strategies.matrix(draw, q, len(users), strategies.length(draw, 1))
    return {user: (stamps.get(user, round), share) for user, share in zip(users, shares, strict=True)}


def offered(draw: Any, caps: Capabilities, late: int = 0, ahead: int = 0, spare: int = 0) -> Buffer:
    """Draw a buffer with numbers that `basecagg.combine` declares."""
    return buffer(draw, strategies.session(draw, caps, COMBINE, outsiders=spare), late, ahead, spare)


def weights(draw: Any, q: int, count: int) -> list[int]:
    """Draw `count` weights whose sum fits in an element and is not 0."""
    most = half(q) // count
    drawn = [draw(among((1, 0, min(64, most), most)) | st.integers(0, most)) for _ in range(count)]
    return drawn if any(drawn) else [1, *drawn[1:]]


def level(draw: Any, total: int) -> int:
    """Draw a level c_l for updates of total weight `total`."""
    most = min(EXACT // max(total, 1), 2**32)
    return int(draw(among([c for c in (*strategies.LEVELS, most) if c <= most])))


def recovery(
    draw: Any, numbers: dict[str, int], answers: int | None = None, chosen: list[int] | None = None
) -> Recovery:
    """Draw a recovery by the code of the text, with at least U answers, or with `answers`. `chosen` are its weights."""
    q, d, field = numbers["q"], numbers["d"], PrimeField(numbers["q"])
    count = draw(st.integers(1, min(6, half(q)))) if chosen is None else len(chosen)
    factors = weights(draw, q, count) if chosen is None else chosen
    updates, masks = strategies.matrix(draw, q, count, d), strategies.matrix(draw, q, count, d)
    noise = strategies.matrix(draw, q, numbers["T"], shares_length(numbers, d))
    shares = encode(numbers, weighted(field, factors, masks), noise)
    fewest, most = (numbers["U"], numbers["N"]) if answers is None else (answers, answers)
    users = strategies.subset(draw, range(numbers["N"]), fewest, most)
    c_l = level(draw, sum(factors))
    added = field.add(updates, masks)
    return Recovery(numbers, c_l, factors, added, users, shares, weighted(field, factors, updates))


VALID: dict[str, Make] = {
    ENCODE: _encode,
    MASK: _mask,
    COMBINE: lambda draw, caps: Valid(offered(draw, caps).params()),
    RECOVER: lambda draw, caps: Valid(recovery(draw, strategies.session(draw, caps, RECOVER)).params()),
}
