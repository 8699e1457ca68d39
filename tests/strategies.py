"""Strategies that the suites share. Edge values come first, so that failures shrink to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.protocols.lightsecagg.round import Parameters
from secagg_spec.protocols.steps import Randomness

EDGE_MODULI = (2, 3, 7, 2**31 - 1, 2**32 - 5, 2**32)
OTHER_MODULI = (4, 6, 2**16, 2**16 + 1, 2**31, 2**31 + 11, 2**32 - 1)
PRIMES = (2, 3, 5, 7, 11, 251, 257, 65521, 65537, 16777213, 2**31 - 1, 2**32 - 17, 2**32 - 5)


def moduli() -> st.SearchStrategy[int]:
    """Moduli in [2, 2**32], edges first."""
    return st.sampled_from(EDGE_MODULI + OTHER_MODULI) | st.integers(2, 2**32)


def primes(above: int = 1) -> st.SearchStrategy[int]:
    """Primes greater than `above`, of every size."""
    return st.sampled_from([p for p in PRIMES if p > above])


def elements(modulus: int) -> st.SearchStrategy[int]:
    """Elements, edges first."""
    edges = {0, 1, modulus - 1, modulus // 2, (modulus - 1) // 2, 2**15 % modulus, 0x7FFF8000 % modulus}
    return st.sampled_from(sorted(edges)) | st.integers(0, modulus - 1)


def arrays(modulus: int, *shape: int) -> st.SearchStrategy[UintArray]:
    """Arrays of elements, each entry drawn by itself: for small shapes."""
    size = int(np.prod(shape))
    lists = st.lists(elements(modulus), min_size=size, max_size=size)
    return lists.map(lambda values: vector(values).reshape(shape))


def bulk(modulus: int, *shape: int) -> st.SearchStrategy[UintArray]:
    """Arrays of elements of any shape: constant, or pseudorandom from a drawn seed."""
    constant = st.sampled_from((0, 1, modulus - 1)).map(lambda value: np.full(shape, value, dtype=np.uint64))
    seeded = st.integers(0, 2**32 - 1).map(lambda seed: pseudorandom(seed, modulus, *shape))
    return constant | seeded | seeded


def pseudorandom(seed: int, modulus: int, *shape: int) -> UintArray:
    """An array of elements that a seed determines."""
    return np.random.default_rng(seed).integers(0, modulus, size=shape, dtype=np.uint64)


def vector(values: Sequence[Any]) -> UintArray:
    """A vector, or a matrix, from Python integers."""
    return np.array(values, dtype=np.uint64)


def integers_of(array: Any) -> list[Any]:
    """The entries of an array as Python integers, nested as the array is."""
    result: list[Any] = np.asarray(array).tolist()
    return result


# ------------------------------------------------------------------------------------------------- parameters


@st.composite
def codes(draw: st.DrawFn, max_users: int = 8) -> MaskCode:
    """Codes with 1 <= T < U <= N < q; the points are the default ones or drawn."""
    N = draw(st.integers(2, max_users))
    U = draw(st.integers(2, N))
    T = draw(st.integers(1, U - 1))
    q = draw(primes(above=N))
    points = st.lists(st.integers(1, q - 1), min_size=N, max_size=N, unique=True)
    return MaskCode(PrimeField(q), N, U, T, draw(st.none() | points))


@st.composite
def sessions(draw: st.DrawFn, max_users: int = 7, max_length: int = 9) -> Parameters:
    """Parameters of LightSecAgg that LSA-01 allows."""
    T = draw(st.integers(1, max_users - 3))
    enough = draw(st.integers(T + 2, max_users))
    U = draw(st.integers(T + 1, enough))
    N = draw(st.integers(enough, max_users))
    return Parameters(
        q=draw(primes(above=N)), N=N, D=draw(st.integers(0, N - enough)), U=U, T=T, d=draw(st.integers(1, max_length))
    )


@dataclass(frozen=True, eq=False)
class Round:
    """Everything that a round takes, but who drops out."""

    parameters: Parameters
    updates: UintArray
    randomness: Mapping[int, Randomness]


@st.composite
def rounds(draw: st.DrawFn, parameters: Parameters | None = None) -> Round:
    """Updates and sampled values for drawn or given parameters."""
    p = parameters or draw(sessions())
    values: dict[int, Randomness] = {
        user: {"mask": draw(bulk(p.q, p.d)), "noise": draw(bulk(p.q, p.T, p.share_length))} for user in range(p.N)
    }
    return Round(p, draw(bulk(p.q, p.N, p.d)), values)


def fixed_round(parameters: Parameters, seed: int = 1) -> Round:
    """A round whose every sampled value differs, from a seed."""
    p = parameters
    values: dict[int, Randomness] = {
        user: {
            "mask": pseudorandom(1000 * seed + 2 * user, p.q, p.d),
            "noise": pseudorandom(1000 * seed + 2 * user + 1, p.q, p.T, p.share_length),
        }
        for user in range(p.N)
    }
    return Round(p, pseudorandom(seed, p.q, p.N, p.d), values)


def schedules(N: int) -> st.SearchStrategy[tuple[str, ...]]:
    """For each user, the phase in which it drops out, or ``stays``."""
    fates = st.sampled_from(("stays", "stays", "stays", "share", "upload", "recover"))
    return st.lists(fates, min_size=N, max_size=N).map(tuple)


def dropouts(schedule: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """A schedule in the form that `run_round` takes."""
    phases = ("share", "upload", "recover")
    return {phase: tuple(user for user, fate in enumerate(schedule) if fate == phase) for phase in phases}


# ----------------------------------------------------------------------------------------------------- helpers


def subsets(items: Sequence[int], at_least: int) -> Iterator[tuple[int, ...]]:
    """Every subset of at least `at_least` items."""
    for size in range(at_least, len(items) + 1):
        yield from combinations(items, size)


def snapshot(value: Any) -> Any:
    """The contents of a value, down to the bytes of its arrays, as something that can be compared."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, [(f.name, snapshot(getattr(value, f.name))) for f in fields(value)])
    if hasattr(value, "items"):
        return [(key, snapshot(entry)) for key, entry in value.items()]
    if isinstance(value, (list, tuple)):
        return [snapshot(entry) for entry in value]
    return value


def fewer(divisor: int) -> settings:
    """The settings of the profile with a part of its examples, for tests whose examples are long."""
    return settings(max_examples=max(3, settings.default.max_examples // divisor))  # type: ignore[union-attr]
