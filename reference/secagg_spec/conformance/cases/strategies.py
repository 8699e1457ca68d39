"""Strategies that draw cases inside an adapter's declaration, shaped so that failures shrink to small cases.

Lengths are drawn before contents. A vector is drawn as a *pattern* and then expanded, so that its length can shrink
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, wraps
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import MAX_LEVELS
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring, is_prime
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.shamir import MAX_HOLDERS
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.arithmetic.wide import MAX_WIDE, objects, ring
from secagg_spec.conformance.adapter.capabilities import (
    DECIMAL_RANGES,
    MOST_SIZE,
    SIZES,
    Capabilities,
    Range,
    ranged,
)
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.cases import multi_round_numbers, neighbours
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, element_bytes
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding

X = TypeVar("X")
_LENGTH: ContextVar[int | None] = ContextVar("length", default=None)

PRIMES = (7, 2, 3, 5, 11, 13, 31, 97, 251, 257, 32749, 65521, 65537, 2**29 - 3, 2**31 - 1, 2**31 + 11, 2**32 - 5)
COMPOSITES = (4, 6, 8, 9, 15, 256, 2**16, 2**31, 2**32 - 1, 2**32)
WIDE_PRIMES = (2**61 - 1, 2**64 - 59, 2**127 - 1, 2**255 - 19, 2**521 - 1)
WIDE_COMPOSITES = (2**33, 2**64 - 1, 2**64, 2**128, MAX_WIDE)
"""Moduli above 2**32, for adapters that declare such."""
LEVELS = (1, 2, 3, 10, 2**6, 2**10, 2**16, 10**6, 2**32)
_SMALL = 8
LARGE = 40
_EDGE = 12
_WIDE_LEVELS = (2**33, 2**40, 10**15, 2**64, 2**100, 2**250)
_WEIGHTS = 100
_LARGEST = 2**31 - 1
_KEPT = 256
_PATTERNS = st.sampled_from(("zeros", "ones", "ramp", "largest", "random"))
_ROUNDINGS = st.sampled_from(("zeros", "half", "largest", "random"))
_SEEDS = st.integers(0, 2**32 - 1)
_WORK = 2 * 10**6
MATRIX = 20_000
"""The largest N U, the number of shares of one element, for which a code's whole matrix is asked for (CNF-76)."""
_ROWS = 64
_ACTIVE = "lightsecagg_active."
_BUFFERED = "basecagg."
_SESSIONS = ("seal.", "lightsecagg.", _ACTIVE, _BUFFERED)
FEWEST_IN_BUFFER = 3
"""The smallest K: T + 2 for T = 1 (BSA-01)."""


@lru_cache(maxsize=_KEPT)
def moduli(allowed: Range, *, prime: bool, above: int = 1) -> tuple[int, ...]:
    """Return moduli inside a declared range, the simplest first: listed ones, and the first ones from each end."""
    if allowed.values is not None:
        candidates = list(allowed.values)
    else:
        low, high = max(allowed.low or 2, above + 1, 2), min(allowed.high or MAX_MODULUS, MAX_WIDE)
        listed = (*PRIMES, *WIDE_PRIMES) if prime else (*PRIMES, *COMPOSITES, *WIDE_PRIMES, *WIDE_COMPOSITES)
        candidates = [*(q for q in listed if q <= high), *_near(low, low, high, prime), *_near(high, low, high, prime)]
    known = dict.fromkeys(q for q in candidates if above < q <= MAX_WIDE and q in allowed)
    return tuple(q for q in known if is_prime(q) or not prime)


@lru_cache(maxsize=_KEPT)
def _near(end: int, low: int, high: int, prime: bool) -> tuple[int, ...]:
    """Return the first moduli from one end of [low, high], after looking at no more than 2000 numbers."""
    step = 1 if end == low else -1
    reach = range(end, max(low - 1, end - 2000) if step < 0 else min(high + 1, end + 2000), step)
    return tuple(islice((q for q in reach if is_prime(q) or not prime), 2))


def modulus(
    draw: Any, caps: Capabilities, operation: str | Sequence[str], *, prime: bool = False, above: int = 1
) -> int:
    """Draw a declared modulus. In half of the cases it is one of the three largest, to cause overflow."""
    return int(draw(_mostly_large(Space(caps, _several(operation)).moduli(prime=prime, above=above))))


@lru_cache(maxsize=_KEPT)
def _mostly_large(allowed: tuple[int, ...]) -> st.SearchStrategy[int]:
    return st.sampled_from(allowed) | st.sampled_from(sorted(allowed)[-3:])


def vector(draw: Any, q: int, n: int) -> UintArray:
    """Draw n elements modulo q: zeros, ones, the largest, a ramp, one nonzero, or pseudo-random."""
    pattern = draw(_PATTERNS)
    if q > MAX_MODULUS:
        return _wide_vector(draw, q, n, pattern)
    if pattern == "random":
        return seeded_vector(draw, q, n)
    if pattern == "ramp":
        return np.arange(n, dtype=np.uint64) % np.uint64(q)
    return np.full(n, {"zeros": 0, "ones": 1, "largest": q - 1}[pattern], dtype=np.uint64)


def _wide_vector(draw: Any, q: int, n: int, pattern: str) -> UintArray:
    """Draw n elements modulo q above 2**32: pseudo-random ones; mostly the ends stand at every other place."""
    values = seeded_vector(draw, q, n)
    ends = {"zeros": 0, "ones": 1, "largest": q - 1, "ramp": q // 2}
    values[::2] = ends[pattern] if pattern in ends else values[::2]
    return values


def seeded_vector(draw: Any, q: int, n: int) -> UintArray:
    """Draw n pseudo-random elements modulo q, from a seed that shrinks to 0."""
    return seeded_elements(SeededSource(draw(_SEEDS).to_bytes(4, "little"), "vector"), q, n)


def seeded_elements(source: SeededSource, q: int, n: int) -> UintArray:
    """Return n pseudo-random elements modulo q: uniform, above 2**32 up to a difference of 2**-64."""
    if q <= MAX_MODULUS:
        return draw_elements(source, Ring(q), (n,))
    width = element_bytes(q) + 8
    return objects([int.from_bytes(source.take(width), "little") % q for _ in range(n)])


def matrix(draw: Any, q: int, rows: int, columns: int) -> UintArray:
    """Draw a (rows, columns) array of elements: one pattern per row, or one for all rows if there are many."""
    if rows > _ROWS:
        return vector(draw, q, rows * columns).reshape(rows, columns)
    drawn = [vector(draw, q, columns) for _ in range(rows)]
    return np.array(drawn, dtype=ring(q).dtype).reshape(rows, columns)


def rounding(draw: Any, n: int) -> RealArray:
    """Draw n numbers in [0, 1): zeros, just below 1, or pseudo-random."""
    pattern = draw(_ROUNDINGS)
    if pattern != "random":
        return np.full(n, {"zeros": 0.0, "half": 0.5, "largest": 1 - 2.0**-53}[pattern])
    seed = draw(_SEEDS)
    return draw_rounding(SeededSource(seed.to_bytes(4, "little"), "rounding"), n)


def length(draw: Any, low: int = 0, high: int = 12) -> int:
    """Draw a length, unless `of_length` fixes it. Small lengths are simplest."""
    fixed = _LENGTH.get()
    return int(draw(st.integers(low, high))) if fixed is None else fixed


@contextmanager
def of_length(d: int) -> Iterator[None]:
    """Let all lengths be d meanwhile."""
    token = _LENGTH.set(d)
    try:
        yield
    finally:
        _LENGTH.reset(token)


def levels(caps: Capabilities, operation: str, q: int = MAX_WIDE) -> list[int]:
    """Return levels inside the declared range; levels above 2**32 for a modulus above 2**32 only, and in binary64."""
    allowed = caps.range(operation, "level")
    ends = [end for end in (allowed.low, allowed.high) if end is not None]
    listed = (*LEVELS, *(_WIDE_LEVELS if (allowed.high or 0) > MAX_LEVEL else ()), *ends)
    candidates = allowed.values if allowed.values is not None else listed
    known = [c for c in candidates if 1 <= c <= MAX_WIDE and c in allowed]
    return [c for c in known if c <= MAX_LEVEL or (q > MAX_MODULUS and int(float(c)) == c)]


def level_counts(caps: Capabilities, usual: Sequence[int] = (2,)) -> list[int]:
    """Return numbers of levels that ``quantize.levels`` declares: usual ones, and the ends of the declared range."""
    return neighbours.listed(caps.range("quantize.levels", "levels"), usual, 2, MAX_LEVELS)


def scale(draw: Any, caps: Capabilities, operation: str) -> tuple[int, int]:
    """Draw a modulus and a level c that the operation declares, and that go together."""
    fitting = tuple(q for q in Space(caps, (operation,)).moduli(prime=False) if levels(caps, operation, q))
    q = int(draw(_mostly_large(fitting)))
    return q, int(draw(among(levels(caps, operation, q))))


def weight(draw: Any, caps: Capabilities) -> int:
    """Draw a total weight that `quantizer.quantize` declares."""
    return int(draw(among(weights(caps))))


def weights(caps: Capabilities) -> list[int]:
    """Return total weights inside the declared range: up to 100, or a few from the declared minimum on."""
    space = Space(caps, ("quantizer.quantize",))
    least = space.least("weight", 1)
    high = _LARGEST if space.listed("weight") else max(_WEIGHTS, least + _SMALL)
    return space.options("weight", 1, min(high, _LARGEST))


def formats(caps: Capabilities) -> list[str]:
    """Return the floating-point formats that `quantizer.dequantize` declares."""
    allowed = caps.range("quantizer.dequantize", "format")
    return [format for format in ("binary64", "binary32") if format in allowed]


def binary32_only(caps: Capabilities) -> bool:
    """Return whether `quantizer.quantize` is declared for numbers of binary32 alone."""
    return "binary64" not in caps.range("quantizer.quantize", "x")


def taken(caps: Capabilities, x: RealArray, *, away: bool = False) -> RealArray:
    """Return numbers that `quantizer.quantize` takes: in binary32, the next ones towards zero, or away from it."""
    if not binary32_only(caps):
        return x
    with np.errstate(over="ignore"):
        near = x.astype(np.float32)
    wrong = (np.abs(near) < np.abs(x)) if away else (np.abs(near) > np.abs(x))
    ends = np.copysign(np.float32(np.inf if away else 0), near)
    return np.where(wrong, np.nextafter(near, ends), near).astype(np.float64)


def fragile(caps: Capabilities, bound: int, level: int) -> RealArray:
    """Return numbers of which a computation in binary32 loses the fraction, next to an offset or with a draw added.

    Times the level, their fractional parts are 1/16, 1/2 and 1/8 where the level is a power of two.
    """
    found = [1 / 16, min(bound, 2**22) - 1 / 2, 1 / 8 - min(bound, 2**21)] if binary32_only(caps) and bound else []
    return taken(caps, np.array(found) / level)


def within(format: str, value: UintArray, q: int, level: int) -> UintArray:
    """Return elements modulo q, with 0 for those whose quotient by the level is beyond the numbers of a format."""
    beyond = level * 2**127 if format == "binary32" else q
    return np.where((value < beyond) | (q - value < beyond), value, 0) if q > MAX_MODULUS else value


def code(
    draw: Any, caps: Capabilities, operation: str | Sequence[str], spare: int = 0, *, whole: bool = False
) -> dict[str, int]:
    """Draw (q, N, U, T) with 1 <= T < U <= N - spare and N < q, declared by the operation or by all operations.

    With `whole`, N U is at most `MATRIX`.
    """
    chosen = Space(caps, _several(operation), spare, whole=whole).draw(draw)
    return {name: chosen[name] for name in ("q", "N", "U", "T")}


def session(
    draw: Any, caps: Capabilities, operation: str | Sequence[str], spare: int = 0, outsiders: int = 0
) -> dict[str, int]:
    """Draw (q, N, D, U, T, d) that satisfy LSA-01, declared by the operation or by all operations.

    At least `spare` users are beyond U, and at least `outsiders` beyond max(U, T + 2).
    """
    chosen = Space(caps, _several(operation), spare, outsiders).draw(draw)
    return {"D": 0, **chosen, "d": length(draw, 1)}


def edges(caps: Capabilities, operation: str) -> list[dict[str, int]]:
    """Return the numbers at the ends of an operation's declared ranges, each once (CNF-67).

    These are the smallest q, N = q - 1 or the nearest to it, the largest T and U, and the most coalitions of T users.
    N is at most 12 if the declaration allows that, and N U is at most `MATRIX`.
    """
    pool = Space(caps, (operation,), whole=True).pool(_EDGE)
    kinds: tuple[Callable[[dict[str, int]], Any], ...] = (
        lambda code: (code["q"], code["N"]),
        lambda code: (code["q"] - code["N"], -code["q"]),
        lambda code: (-code["T"], -code["q"]),
        lambda code: (-math.comb(code["N"], code["T"]), code["U"], -code["q"]),
    )
    found = [min(pool, key=kind) for kind in kinds]
    return [code for at, code in enumerate(found) if code not in found[:at]]


def split(caps: Capabilities, operations: Sequence[str]) -> list[dict[str, int]]:
    """Return the fewest users with whom a vector is split into two blocks, and into most blocks (CNF-89).

    A code has U - T blocks. There is none where all codes have one, and no second one where N is above 12.
    """
    pool = [code for code in Space(caps, _several(operations), whole=True).pool(_EDGE) if code["U"] - code["T"] > 1]
    kinds: tuple[Callable[[dict[str, int]], Any], ...] = (
        lambda code: (code["U"] - code["T"], code["N"], code["q"]),
        lambda code: (code["T"] - code["U"], code["N"], code["q"]),
    )
    found = [min(pool, key=kind) for kind in kinds if pool]
    return [code for at, code in enumerate(found) if code not in found[:at] and (at == 0 or code["N"] <= _EDGE)]


def crowded(caps: Capabilities, operation: str) -> bool:
    """Return whether `edges` leaves out codes because their N U is above `MATRIX`."""
    return Space(caps, (operation,)).pool(_EDGE) != Space(caps, (operation,), whole=True).pool(_EDGE)


def sharing(draw: Any, caps: Capabilities, operation: str | Sequence[str], spare: int = 0) -> dict[str, int]:
    """Draw (t, n) with 2 <= t <= n - spare for secret sharing, declared by the operation or by all operations."""
    space = Space(caps, _several(operation))
    n = _users(draw, holders(space, spare))
    return {"t": int(draw(among(_few(shared_thresholds(space, n, spare))))), "n": n}


def shared_thresholds(space: Space, n: int, spare: int = 0) -> list[int]:
    """Return the declared thresholds of a secret among n holders."""
    sets = space.sharings()
    if sets is None:
        return space.options("t", 2, n - spare)
    return sorted(t for t, of in sets if of == n and 2 <= t <= n - spare and t in space.range("t"))


def holders(space: Space, spare: int = 0) -> list[int]:
    """Return numbers of holders of a secret: up to 40, or a few from the declared minimum on."""
    fewest = space.least("t", 2) + spare
    least = space.least("n", fewest)
    sets = space.sharings()
    if sets is not None:
        known = sorted({n for _, n in sets if n <= MAX_HOLDERS and n in space.range("n")})
        return [n for n in known if shared_thresholds(space, n, spare) and (not space.bearable or n * n <= _WORK)]
    high = MAX_HOLDERS if space.listed("n") else max(LARGE, least + _SMALL)
    return [n for n in space.options("n", fewest, min(high, MAX_HOLDERS)) if not space.bearable or n * n <= _WORK]


def _derived(method: Callable[..., X]) -> Callable[..., X]:
    """Let a method of `Space` compute each of its values once for a declaration."""

    @wraps(method)
    def derived(space: Space, *arguments: int) -> X:
        key = (method.__name__, *arguments)
        if key not in space.known:
            space.known[key] = method(space, *arguments)
        value: X = space.known[key]
        return value

    return derived


@dataclass(frozen=True)
class Space:
    """The parameters that some operations all declare.

    At least `spare` users are beyond U, and at least `outsiders` beyond max(U, T + 2). With `bearable`, it holds only
    parameters for which the operations are fast enough. With `whole`, it holds only those whose whole matrix can be
    asked for: N U is at most `MATRIX`.
    """

    caps: Capabilities
    operations: tuple[str, ...]
    spare: int = 0
    outsiders: int = 0
    bearable: bool = True
    whole: bool = False
    known: dict[Any, Any] = field(init=False, compare=False, repr=False)
    """What was derived from the declaration for these operations, shared by all equal spaces."""

    def __post_init__(self) -> None:
        key = (type(self), self.operations, self.spare, self.outsiders, self.bearable, self.whole)
        object.__setattr__(self, "known", self.caps.kept.setdefault(key, {}))

    def draw(self, draw: Any) -> dict[str, int]:
        """Draw numbers of users, and a modulus above N."""
        sets = self.sets()
        chosen = self._drawn(draw) if sets is None else dict(draw(among(sets)))
        if "U" not in chosen:
            options = self.thresholds(chosen["N"], chosen["T"], chosen.get("D", 0))
            chosen["U"] = int(draw(among(options)))
        allowed = self.moduli(prime=True, above=self._taken(chosen["N"], chosen["T"]))
        return {"q": int(draw(_mostly_large(allowed))), **chosen}

    def pool(self, most: int) -> list[dict[str, int]]:
        """Return all numbers with at most `most` users, or with the fewest if all have more, and with some moduli."""
        sets = self.sets()
        if sets is None:
            small = [*filter(range(most + 1).__contains__, self.fitting())] or self.fitting()[:1]
            sets = [{"N": N, "T": T, "D": self.tolerated(N, T)[0]} for N in small for T in self.colluders(N)]
        whole = [
            {"D": 0, **chosen, "U": U}
            for chosen in sets
            for U in ([chosen["U"]] if "U" in chosen else self.thresholds(chosen["N"], chosen["T"], chosen.get("D", 0)))
        ]
        return [
            {"q": q, **chosen}
            for chosen in whole
            for q in self.moduli(prime=True, above=self._taken(chosen["N"], chosen["T"]))
        ]

    def possible(self) -> bool:
        """Return whether there are such numbers."""
        sets = self.sets()
        return any(self._fits(N) for N in self.rosters()) if sets is None else bool(sets)

    @_derived
    def fitting(self) -> tuple[int, ...]:
        """Return the numbers of users that may be drawn and leave room for the other parameters."""
        return tuple(N for N in self.rosters() if self._fits(N))

    @_derived
    def sets(self) -> list[Mapping[str, int]] | None:
        """Return the sets inside the ranges that the operations all declare, or None when none of them declares sets.

        A set without U fits any U in the ranges, because the operations that declare sets do not restrict U.
        """
        declared = [chosen for name in self.operations if (chosen := self.caps.parameter_sets(name))]
        if not declared:
            return None
        joined = list(declared[0])
        for others in declared[1:]:
            joined = [{**one, **other} for one in joined for other in others if _agree(one, other)]
        return [chosen for chosen in joined if self._allows(chosen)]

    @_derived
    def sharings(self) -> set[tuple[int, int]] | None:
        """Return the pairs of t and n that the operations declare as sets, or None where there are none."""
        declared = [
            {(chosen["t"], chosen["n"]) for chosen in self.caps.parameter_sets(name)}
            for name in self.operations
            if "n" in OPERATIONS[name][0] and self.caps.parameter_sets(name)
        ]
        return set.intersection(*declared) if declared else None

    def _allows(self, chosen: Mapping[str, int]) -> bool:
        N, T, D = chosen["N"], chosen["T"], chosen.get("D", 0)
        U = chosen.get("U", self.least("U", T + 1))
        inside = all(value in self.range(name) for name, value in chosen.items())
        room = U + self.spare <= N and (not self.outsiders or max(U, T + 2) + self.outsiders <= N)
        possible = 1 <= T < U <= N - D and self._fills(N, T, D) and self._signs(N, T, D)
        return inside and room and possible and self._bears(N, U) and self._carries(N, T)

    def moduli(self, *, prime: bool, above: int = 1) -> tuple[int, ...]:
        """Return moduli that all operations declare."""
        return moduli(self.range("q"), prime=prime, above=above)

    @_derived
    def range(self, name: str) -> Range:
        """Return the intersection of the operations' ranges."""
        ranges = [self.caps.range(operation, name) for operation in self.operations]
        if name == "q":
            ranges = [_closed(allowed) for allowed in ranges]
        lists = [allowed.values for allowed in ranges if allowed.values is not None]
        if lists:
            return Range(values=tuple(value for value in lists[0] if all(value in allowed for allowed in ranges)))
        lows = [allowed.low for allowed in ranges if allowed.low is not None]
        highs = [allowed.high for allowed in ranges if allowed.high is not None]
        return Range(max(lows, default=None), min(highs, default=None))

    def listed(self, name: str) -> bool:
        """Return whether a parameter's values are listed one by one."""
        return self.range(name).values is not None

    def options(self, name: str, low: int, high: int) -> list[int]:
        """Return the values of a parameter in [low, high], ascending."""
        return list(neighbours.options(self.range(name), low, high))

    def least(self, name: str, low: int) -> int:
        """Return the smallest value of a parameter that is at least `low`, or 2**31 if there is none."""
        allowed = self.range(name)
        if allowed.values is not None:
            return min((value for value in allowed.values if value >= low), default=_LARGEST + 1)
        least = max(low, low if allowed.low is None else allowed.low)
        return least if least in allowed else _LARGEST + 1

    def rosters(self) -> list[int]:
        """Return the numbers of users that may be drawn: up to 40, or a few from the smallest possible one on."""
        T = self.least("T", 1)
        U = self.least("U", T + 1)
        enough = max(U, T + 2) if self._in_session() else U
        staying = (self.least("D", 0) if self._in_session() else 0) + (U if self._in_buffer() else enough)
        least = max(staying, U + self.spare, enough + self.outsiders)
        largest = max(self.moduli(prime=True), default=0) - 1
        high = _LARGEST if self.listed("N") else max(LARGE, self.least("N", least) + _SMALL)
        return self.options("N", least, min(largest, high, _LARGEST))

    @_derived
    def colluders(self, N: int) -> list[int]:
        """Return the T that leave room for D and U."""
        last = N - self.outsiders - 2 if self._in_session() else N - 1
        return [T for T in _few(self.options("T", 1, last)) if self._has_room(N, T, self.least("D", 0))]

    @_derived
    def tolerated(self, N: int, T: int) -> list[int]:
        """Return the D that leave room for U."""
        allowed = self.options("D", 0, N - T - (1 if self._in_buffer() else 2)) if self._in_session() else [0]
        return [D for D in _few(allowed) if self._has_room(N, T, D)]

    @_derived
    def thresholds(self, N: int, T: int, D: int) -> list[int]:
        """Return the U that fit."""
        return [U for U in _few(self.options("U", T + 1, self._last(N, D))) if self._bears(N, U)]

    def _fits(self, N: int) -> bool:
        """Return whether N users leave room for the other numbers. If the smallest T and D do not fit, no others do."""
        return self._has_room(N, self.least("T", 1), self.least("D", 0))

    def _has_room(self, N: int, T: int, D: int) -> bool:
        U = self.least("U", T + 1)
        enough = self._fills(N, T, D) and self._signs(N, T, D) and self._last(N, D) >= U
        return enough and self._bears(N, U) and self._carries(N, T)

    def _fills(self, N: int, T: int, D: int) -> bool:
        """Return whether T + 2 users can contribute: of those that stay, or of all N to a buffer (LSA-01, BSA-01)."""
        dropped = max(0 if self._in_buffer() else D, self.outsiders)
        return not self._in_session() or dropped + T + 2 <= N

    def _carries(self, N: int, T: int) -> bool:
        """Return whether a modulus is large enough."""
        return bool(self.moduli(prime=True, above=self._taken(N, T)))

    def _taken(self, N: int, T: int) -> int:
        """Return the largest number that a modulus must exceed: N, or what T + 2 weights of 1 need (BSA-02)."""
        return max(N, 2 * (T + 2)) if self._in_buffer() else N

    def _in_buffer(self) -> bool:
        return any(name.startswith(_BUFFERED) for name in self.operations)

    def _signs(self, N: int, T: int, D: int) -> bool:
        """Return whether some W fits, if the operations need one (LSA-19)."""
        active = any(name.startswith(_ACTIVE) for name in self.operations)
        return not active or 2 * (N - D) > N + T

    def _last(self, N: int, D: int) -> int:
        """Return the largest U."""
        return N - max(D if self._in_session() else 0, self.spare, self.outsiders)

    def _drawn(self, draw: Any) -> dict[str, int]:
        N = _users(draw, self.fitting())
        T = int(draw(among(self.colluders(N))))
        D = int(draw(among(self.tolerated(N, T))))
        U = int(draw(among(self.thresholds(N, T, D))))
        return {"N": N, "D": D, "U": U, "T": T}

    def _in_session(self) -> bool:
        return any(name.startswith(_SESSIONS) for name in self.operations)

    def _bears(self, N: int, U: int) -> bool:
        if self.whole and N * U > MATRIX:
            return False
        return not self.bearable or all(_work(name, N, U) <= _WORK for name in self.operations)


def _closed(allowed: Range) -> Range:
    """Return a range of moduli with its largest one: without a declared end it ends at 2**32."""
    return allowed if allowed.values is not None or allowed.high is not None else replace(allowed, high=MAX_MODULUS)


def _few(options: list[int]) -> list[int]:
    """Return options unchanged, or only the first and the last few if there are many."""
    return options if len(options) <= LARGE + _SMALL else options[:LARGE] + options[-_SMALL:]


def _agree(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return all(other[name] == value for name, value in one.items() if name in other)


def _work(operation: str, N: int, U: int) -> int:
    """Return roughly how many products an operation takes per element, including the kit's own work."""
    if operation in ("lightsecagg.mask", "lightsecagg.aggregate_shares"):
        return 100 * N
    if operation.endswith((".server", ".round", ".rounds")):
        return N * N * (U + 200) + U**3
    if operation.endswith(".user"):
        return N * (U + 400) + U**3
    return N * (U + 20) + (0 if operation == "mds.encode" else U**3)


def _several(operation: str | Sequence[str]) -> tuple[str, ...]:
    return (operation,) if isinstance(operation, str) else tuple(operation)


def possible(
    caps: Capabilities, operation: str | Sequence[str], spare: int = 0, outsiders: int = 0, *, bearable: bool = True
) -> bool:
    """Return whether the declared ranges hold parameters that the text allows and that are fast enough to try."""
    names = _several(operation)
    if not any(map(ranged, names)):
        return True
    if set(names) & set(neighbours.OPERATIONS):
        return all(neighbours.possible(caps, name, bearable=bearable) for name in names)
    if set(names) <= set(multi_round_numbers.OPERATIONS):
        return all(multi_round_numbers.possible(caps, name, bearable=bearable) for name in names)
    space = Space(caps, names, spare, outsiders, bearable)
    parameters = {name for operation in names for name in OPERATIONS[operation][0]}
    choices: dict[str, Callable[[], list[Any]]] = {
        "q": lambda: list(space.moduli(prime=any(_needs_prime(name) for name in names), above=_too_small(names))),
        "level": lambda: levels(caps, names[0], max(space.moduli(prime=False), default=0)),
        "weight": lambda: weights(caps),
        "format": lambda: formats(caps),
        "levels": lambda: level_counts(caps),
        "t": lambda: holders(space, spare),
        "x": lambda: [format for format in ("binary64", "binary32") if format in space.range("x")],
        **{name: partial(_sizes, caps, names[0], name) for name in ranged(names[0]) if (names[0], name) in SIZES},
    }
    if not all(choice() for name, choice in choices.items() if name in parameters):
        return False
    return "N" not in parameters or space.possible()


def _sizes(caps: Capabilities, operation: str, name: str) -> list[int]:
    """Return a declared number of bytes or elements that may be asked for, if there is one."""
    allowed = caps.range(operation, name)
    known = chain((32,), allowed.values or (), range(MOST_SIZE + 1))
    return list(islice((size for size in known if size in allowed), 1))


def refuse_impossible(caps: Capabilities) -> None:
    """Refuse declarations under which an operation has no valid parameters at all.

    Raises
    ------
    AdapterUnusable
        The ranges of an operation exclude everything that the text allows.
    """
    for operation in caps.operations:
        if not possible(caps, operation, bearable=False):
            raise AdapterUnusable(
                f"hello: the ranges of {operation!r} leave no parameters that the text allows and a kit asks for"
            )


def narrowed(caps: Capabilities, operation: str, moduli: Sequence[int]) -> Capabilities:
    """Return capabilities in which an operation has only these moduli."""
    declared = caps.operations[operation]
    ranges = {**declared.get("ranges", {}), "q": {"values": [str(q) for q in moduli]}}
    return replace(caps, operations={**caps.operations, operation: {**declared, "ranges": ranges}})


def _too_small(operations: Sequence[str]) -> int:
    """Return a number that every modulus exceeds. In BASecAgg a modulus must fit the smallest buffer (BSA-02)."""
    return 2 * FEWEST_IN_BUFFER if any(name.startswith(_BUFFERED) for name in operations) else 1


def _needs_prime(operation: str) -> bool:
    return operation.startswith(("field.inverse", "mds.", *_SESSIONS))


def _users(draw: Any, candidates: Sequence[int]) -> int:
    """Draw a number of users: mostly a small one, sometimes any."""
    small = [N for N in candidates if N <= _SMALL] or candidates[:_SMALL]
    return int(draw(among(candidates if draw(st.integers(0, 9)) == 9 else small)))


def subset(draw: Any, population: Sequence[int], low: int, high: int | None = None) -> list[int]:
    """Draw `low` to `high` distinct members of a population, in any order. The first members are the simplest."""
    high = len(population) if high is None else high
    size = draw(st.integers(low, high))
    return shuffled(draw, population)[:size]


def shuffled(draw: Any, population: Sequence[int]) -> list[int]:
    """Draw an order of a population. A large one is only rotated and mirrored, so that few draws suffice."""
    if len(population) <= _ROWS:
        return list(draw(st.permutations(list(population))))
    start = draw(st.integers(0, len(population) - 1))
    turned = [*population[start:], *population[:start]]
    return turned[::-1] if draw(st.booleans()) else turned


def dropouts(draw: Any, N: int, at_most: int) -> dict[str, list[int]]:
    """Draw who drops out before which phase: at most `at_most` users, each once."""
    dropped = draw(st.lists(st.integers(0, N - 1), unique=True, max_size=at_most))
    phases: dict[str, list[int]] = {"share": [], "upload": [], "recover": []}
    for user in sorted(dropped):
        phases[draw(among(("upload", "recover", "share")))].append(user)
    return phases


class Verbatim(dict[str, Any]):
    """Parameters that go into a request unchanged, whatever they are."""


def decimal(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a request holds them: the integers q, R and level become decimal strings."""
    if isinstance(parameters, Verbatim):
        return parameters
    decimal = {name for name, value in parameters.items() if name in DECIMAL_RANGES and type(value) is int}
    return {name: str(value) if name in decimal else value for name, value in parameters.items()}
