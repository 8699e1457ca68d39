"""Strategies that draw cases inside what an adapter declares, shaped so that failures shrink to small cases.

Lengths are drawn before contents, and a vector is a *pattern* that is expanded, so that every length can shrink alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring, is_prime
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.capabilities import Capabilities, Range
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding

X = TypeVar("X")
Draw: TypeAlias = Callable[[st.SearchStrategy[X]], X]

PRIMES = (7, 2, 3, 5, 11, 13, 31, 97, 251, 257, 32749, 65521, 65537, 2**29 - 3, 2**31 - 1, 2**31 + 11, 2**32 - 5)
COMPOSITES = (4, 6, 8, 9, 15, 256, 2**16, 2**31, 2**32 - 1, 2**32)
LEVELS = (1, 2, 3, 10, 2**6, 2**10, 2**16, 10**6, 2**32)
_SMALL = 8
_LARGE = 40


def moduli(allowed: Range, *, prime: bool, above: int = 1) -> list[int]:
    """Return moduli inside a declared range, the simplest first."""
    known = PRIMES if prime else (*PRIMES, *COMPOSITES)
    ends = [end for end in (allowed.low, allowed.high) if end is not None]
    candidates = list(allowed.values) if allowed.values is not None else [*known, *ends]
    return [q for q in candidates if above < q <= MAX_MODULUS and q in allowed and (is_prime(q) or not prime)]


def modulus(draw: Any, caps: Capabilities, operation: str, *, prime: bool = False, above: int = 1) -> int:
    """Draw a modulus that the operation declares: one of the three largest in half of the cases, for overflow."""
    allowed = moduli(caps.range(operation, "q"), prime=prime, above=above)
    return int(draw(st.sampled_from(allowed) | st.sampled_from(sorted(allowed)[-3:])))


def vector(draw: Any, q: int, n: int) -> UintArray:
    """Draw n elements modulo q: zeros, ones, largest, a ramp, one hot, or pseudo-random ones."""
    pattern = draw(st.sampled_from(("zeros", "ones", "ramp", "largest", "random")))
    if pattern == "random":
        return seeded_vector(draw, q, n)
    if pattern == "ramp":
        return np.arange(n, dtype=np.uint64) % np.uint64(q)
    return np.full(n, {"zeros": 0, "ones": 1, "largest": q - 1}[pattern], dtype=np.uint64)


def seeded_vector(draw: Any, q: int, n: int) -> UintArray:
    """Draw n pseudo-random elements modulo q, from a seed that shrinks to 0."""
    seed = draw(st.integers(0, 2**32 - 1))
    return draw_elements(SeededSource(seed.to_bytes(4, "little"), "vector"), Ring(q), (n,))


def matrix(draw: Any, q: int, rows: int, columns: int) -> UintArray:
    """Draw a (rows, columns) array of elements, one pattern for each row."""
    drawn = [vector(draw, q, columns) for _ in range(rows)]
    return np.array(drawn, dtype=np.uint64).reshape(rows, columns)


def rounding(draw: Any, n: int) -> RealArray:
    """Draw n numbers in [0, 1): zeros, just below 1, or pseudo-random ones."""
    pattern = draw(st.sampled_from(("zeros", "half", "largest", "random")))
    if pattern != "random":
        return np.full(n, {"zeros": 0.0, "half": 0.5, "largest": 1 - 2.0**-53}[pattern])
    seed = draw(st.integers(0, 2**32 - 1))
    return draw_rounding(SeededSource(seed.to_bytes(4, "little"), "rounding"), n)


def length(draw: Any, low: int = 0, high: int = 12) -> int:
    """Draw a length, the smallest first."""
    return int(draw(st.integers(low, high)))


def level(draw: Any, caps: Capabilities, operation: str) -> int:
    """Draw a level c that the operation declares."""
    allowed = caps.range(operation, "level")
    ends = [end for end in (allowed.low, allowed.high) if end is not None]
    candidates = allowed.values if allowed.values is not None else (*LEVELS, *ends)
    return int(draw(st.sampled_from([c for c in candidates if 1 <= c <= MAX_LEVEL and c in allowed])))


def code(draw: Any, caps: Capabilities, operation: str) -> dict[str, int]:
    """Draw (q, N, U, T) with 1 <= T < U <= N < q that the operation declares."""
    declared = caps.parameter_sets(operation)
    if declared:
        chosen = dict(draw(st.sampled_from(declared)))
        return {"q": modulus(draw, caps, operation, prime=True, above=chosen["N"]), **chosen}
    N = _users(draw, caps, operation, low=2)
    U = _within(draw, caps.range(operation, "U"), 2, N)
    T = _within(draw, caps.range(operation, "T"), 1, U - 1)
    return {"q": modulus(draw, caps, operation, prime=True, above=N), "N": N, "U": U, "T": T}


def session(draw: Any, caps: Capabilities, operation: str) -> dict[str, int]:
    """Draw (q, N, D, U, T, d) that satisfy LSA-01 and that the operation declares."""
    declared = caps.parameter_sets(operation)
    if declared:
        fitting = [chosen for chosen in declared if chosen["N"] - chosen.get("D", 0) >= chosen["T"] + 2]
        chosen = {"D": 0, **draw(st.sampled_from(fitting))}
    else:
        N = _users(draw, caps, operation, low=3)
        T = _within(draw, caps.range(operation, "T"), 1, N - 2)
        D = _within(draw, caps.range(operation, "D"), 0, N - T - 2)
        chosen = {"N": N, "D": D, "U": _within(draw, caps.range(operation, "U"), T + 1, N - D), "T": T}
    q = modulus(draw, caps, operation, prime=True, above=chosen["N"])
    return {"q": q, **chosen, "d": length(draw, 1)}


def subset(draw: Any, population: Sequence[int], low: int, high: int | None = None) -> list[int]:
    """Draw `low` to `high` distinct members of a population, in any order; the first ones are the simplest."""
    high = len(population) if high is None else high
    size = draw(st.integers(low, high))
    return list(draw(st.permutations(list(population))))[:size]


def dropouts(draw: Any, N: int, at_most: int) -> dict[str, list[int]]:
    """Draw who drops out before which phase: at most `at_most` users, each once."""
    gone = draw(st.lists(st.integers(0, N - 1), unique=True, max_size=at_most))
    phases: dict[str, list[int]] = {"share": [], "upload": [], "recover": []}
    for user in sorted(gone):
        phases[draw(st.sampled_from(("upload", "recover", "share")))].append(user)
    return phases


def decimal(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as they stand in a request: q and level are decimal strings."""
    return {name: str(value) if name in ("q", "level") else value for name, value in parameters.items()}


def _users(draw: Any, caps: Capabilities, operation: str, low: int) -> int:
    largest = max(moduli(caps.range(operation, "q"), prime=True)) - 1
    allowed = caps.range(operation, "N")
    top = _LARGE if draw(st.integers(0, 9)) == 9 else _SMALL
    return _within(draw, allowed, low, min(largest, max(top, allowed.low or 0, low)))


def _within(draw: Any, allowed: Range, low: int, high: int) -> int:
    """Draw an integer in [low, high] inside a declared range."""
    if allowed.values is not None:
        return int(draw(st.sampled_from([value for value in allowed.values if low <= value <= high])))
    bottom = max(low, low if allowed.low is None else allowed.low)
    top = min(high, high if allowed.high is None else allowed.high)
    return int(draw(st.integers(bottom, max(bottom, top))))
