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
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.wire import AdapterUnusable
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding

X = TypeVar("X")
Draw: TypeAlias = Callable[[st.SearchStrategy[X]], X]

PRIMES = (7, 2, 3, 5, 11, 13, 31, 97, 251, 257, 32749, 65521, 65537, 2**29 - 3, 2**31 - 1, 2**31 + 11, 2**32 - 5)
COMPOSITES = (4, 6, 8, 9, 15, 256, 2**16, 2**31, 2**32 - 1, 2**32)
LEVELS = (1, 2, 3, 10, 2**6, 2**10, 2**16, 10**6, 2**32)
_SMALL = 8
LARGE = 40
_WEIGHTS = 100


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


def levels(caps: Capabilities, operation: str) -> list[int]:
    """Return levels inside the declared range."""
    allowed = caps.range(operation, "level")
    ends = [end for end in (allowed.low, allowed.high) if end is not None]
    candidates = allowed.values if allowed.values is not None else (*LEVELS, *ends)
    return [c for c in candidates if 1 <= c <= MAX_LEVEL and c in allowed]


def level(draw: Any, caps: Capabilities, operation: str) -> int:
    """Draw a level c that the operation declares."""
    return int(draw(st.sampled_from(levels(caps, operation))))


def weight(draw: Any, caps: Capabilities) -> int:
    """Draw a total weight that `quantizer.quantize` declares."""
    return int(draw(st.sampled_from(_options(caps.range("quantizer.quantize", "weight"), 1, _WEIGHTS))))


def formats(caps: Capabilities) -> list[str]:
    """Return the floating-point formats that `quantizer.dequantize` declares."""
    allowed = caps.range("quantizer.dequantize", "format")
    return [format for format in ("binary64", "binary32") if format in allowed]


def code(draw: Any, caps: Capabilities, operation: str, spare: int = 0) -> dict[str, int]:
    """Draw (q, N, U, T) with 1 <= T < U <= N - spare and N < q that the operation declares."""
    declared = [chosen for chosen in caps.parameter_sets(operation) if chosen["N"] >= chosen["U"] + spare]
    if declared:
        return _with_modulus(draw, caps, operation, dict(draw(st.sampled_from(declared))))
    N = _users(draw, [N for N in _rosters(caps, operation) if _code_fits(caps, operation, N, spare)])
    T = int(
        draw(st.sampled_from([T for T in _colluders(caps, operation, N) if _thresholds(caps, operation, T, N - spare)]))
    )
    U = int(draw(st.sampled_from(_thresholds(caps, operation, T, N - spare))))
    return _with_modulus(draw, caps, operation, {"N": N, "U": U, "T": T})


def session(draw: Any, caps: Capabilities, operation: str, spare: int = 0) -> dict[str, int]:
    """Draw (q, N, D, U, T, d) that satisfy LSA-01 with U <= N - spare, and that the operation declares."""
    declared = [chosen for chosen in caps.parameter_sets(operation) if chosen.get("U", 0) + spare <= chosen["N"]]
    chosen = draw(st.sampled_from(declared)) if declared else _drawn_session(draw, caps, operation, spare)
    return {"D": 0, **_with_modulus(draw, caps, operation, dict(chosen)), "d": length(draw, 1)}


def _drawn_session(draw: Any, caps: Capabilities, operation: str, spare: int) -> dict[str, int]:
    N = _users(draw, [N for N in _rosters(caps, operation) if _session_fits(caps, operation, N, spare)])
    T = int(
        draw(st.sampled_from([T for T in _colluders(caps, operation, N) if _tolerated(caps, operation, N, T, spare)]))
    )
    D = int(draw(st.sampled_from(_tolerated(caps, operation, N, T, spare))))
    U = int(draw(st.sampled_from(_thresholds(caps, operation, T, N - max(D, spare)))))
    return {"N": N, "D": D, "U": U, "T": T}


def possible(caps: Capabilities, operation: str, spare: int = 0) -> bool:
    """Return whether the declared ranges hold parameters that the text allows, with `spare` users beyond U."""
    parameters = OPERATIONS[operation][0]
    choices: dict[str, Callable[[], list[Any]]] = {
        "q": lambda: moduli(caps.range(operation, "q"), prime=_needs_prime(operation)),
        "level": lambda: levels(caps, operation),
        "weight": lambda: _options(caps.range(operation, "weight"), 1, _WEIGHTS),
        "format": lambda: formats(caps),
    }
    if not all(choice() for name, choice in choices.items() if name in parameters):
        return False
    return "N" not in parameters or _roster_fits(caps, operation, spare)


def _roster_fits(caps: Capabilities, operation: str, spare: int) -> bool:
    declared = caps.parameter_sets(operation)
    if declared:
        return any(chosen["N"] >= chosen.get("U", 0) + spare for chosen in declared)
    fits = _session_fits if operation.startswith(("seal.", "lightsecagg.")) else _code_fits
    return any(fits(caps, operation, N, spare) for N in _rosters(caps, operation))


def refuse_impossible(caps: Capabilities) -> None:
    """Refuse declarations under which an operation has no valid parameters at all.

    Raises
    ------
    AdapterUnusable
        The ranges of an operation exclude everything that the text allows.
    """
    for operation in caps.operations:
        if not possible(caps, operation):
            raise AdapterUnusable(f"hello: the ranges of {operation!r} leave no parameters that the text allows")


def _needs_prime(operation: str) -> bool:
    return operation.startswith(("field.inverse", "mds.", "seal.", "lightsecagg."))


def _rosters(caps: Capabilities, operation: str) -> list[int]:
    """Return the numbers of users that may be drawn: up to 40, or a few from the declared minimum on."""
    allowed = caps.range(operation, "N")
    largest = max(moduli(caps.range(operation, "q"), prime=True), default=0) - 1
    return _options(allowed, 2, min(largest, max(LARGE, (allowed.low or 0) + _SMALL)))


def _code_fits(caps: Capabilities, operation: str, N: int, spare: int) -> bool:
    return any(_thresholds(caps, operation, T, N - spare) for T in _colluders(caps, operation, N))


def _session_fits(caps: Capabilities, operation: str, N: int, spare: int) -> bool:
    return any(_tolerated(caps, operation, N, T, spare) for T in _colluders(caps, operation, N))


def _colluders(caps: Capabilities, operation: str, N: int) -> list[int]:
    return _options(caps.range(operation, "T"), 1, N - 1)


def _thresholds(caps: Capabilities, operation: str, T: int, high: int) -> list[int]:
    return _options(caps.range(operation, "U"), T + 1, high)


def _tolerated(caps: Capabilities, operation: str, N: int, T: int, spare: int) -> list[int]:
    allowed = _options(caps.range(operation, "D"), 0, N - T - 2)
    return [D for D in allowed if _thresholds(caps, operation, T, N - max(D, spare))]


def _users(draw: Any, candidates: list[int]) -> int:
    """Draw a number of users: mostly a small one, now and then any."""
    small = [N for N in candidates if N <= _SMALL] or candidates[:_SMALL]
    return int(draw(st.sampled_from(candidates if draw(st.integers(0, 9)) == 9 else small)))


def _with_modulus(draw: Any, caps: Capabilities, operation: str, chosen: dict[str, int]) -> dict[str, int]:
    return {"q": modulus(draw, caps, operation, prime=True, above=chosen["N"]), **chosen}


def _options(allowed: Range, low: int, high: int) -> list[int]:
    """Return the integers in [low, high] inside a declared range, ascending."""
    if allowed.values is not None:
        return sorted(value for value in allowed.values if low <= value <= high)
    bottom = low if allowed.low is None else max(low, allowed.low)
    top = high if allowed.high is None else min(high, allowed.high)
    return list(range(bottom, top + 1))


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
