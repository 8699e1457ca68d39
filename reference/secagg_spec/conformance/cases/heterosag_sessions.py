"""Cases of HeteroSAg: the numbers of a session, valid and invalid ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import allowed, one_of
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.conformance.sessions.heterosag_numbers import packed_range
from secagg_spec.protocols.heterosag.plan import Parameters

RANGES = (
    Range(-1.0, 1.0),
    Range(0.0, 1.0),
    Range(-3.0, -0.1),
    Range(-0.001, 12.5),
    Range(1.0, 1.0 + 2.0**-20),
    Range(1e-300, 3e-300),
    Range(-9e307, 8e307),
    Range(0.0, 1.7e308),
)
"""Ranges r1, r2: symmetric, positive, negative, narrow, tiny and huge."""
LEVELS = (2, 3, 2, 6, 12, 256, 65537)
MOST_SUBGROUPS = 5
_MATRICES = ("perfect", "cyclic")


def parameters(
    draw: Any, *, subgroups: int = 2, most: int = MOST_SUBGROUPS, spare: int = 0, large: bool = True
) -> Parameters:
    """Draw numbers that satisfy HSA-01 to HSA-06, with few groups and users.

    `subgroups` and `most` bound Z. Each subgroup has at least `spare` users beyond T + 2. With `large`, there may be
    as many levels as the moduli allow.
    """
    T = draw(st.integers(1, 2))
    Z = draw(st.integers(subgroups, most))
    parts = _parts(draw, Z)
    sizes = tuple(count * (T + 2 + spare) + draw(st.integers(0, 3)) for count in parts)
    N = sum(sizes)
    D = draw(among((1, 0, N - T - 2)))
    t = draw(among((T + 2, N - D)) | st.integers(T + 2, N - D))
    d = Z + strategies.length(draw, 0, Z + 2)
    range = one_of(draw, RANGES)
    plain = Parameters(N, D, T, t, d, sizes, parts, (2,) * len(parts), range, draw(among(_MATRICES)))
    return replace(plain, levels=_levels(draw, _bounds(plain), large))


def _parts(draw: Any, count: int) -> tuple[int, ...]:
    """Draw the number of subgroups of each group, for up to four groups."""
    groups = draw(st.integers(1, min(count, 4)))
    cuts = sorted(draw(st.permutations(range(1, count)))[: groups - 1])
    return tuple(stop - start for start, stop in zip([0, *cuts], [*cuts, count], strict=True))


def _bounds(p: Parameters) -> list[int]:
    """Return the most levels of each group that the moduli allow. A group may have as many as the groups after it."""
    largest = [max(len(cell.members) for cell in p.parts if p.group_of[cell.subgroups[0]] == g) for g in _groups(p)]
    most = [(MAX_MODULUS - 1) // users + 1 for users in largest]
    return [min(most[group:]) for group in _groups(p)]


def _groups(p: Parameters) -> range:
    return range(len(p.levels))


def _levels(draw: Any, bounds: Sequence[int], large: bool) -> tuple[int, ...]:
    """Draw non-decreasing levels: equal ones, small ones, and the largest."""
    chosen: list[int] = []
    for most in bounds:
        least = chosen[-1] if chosen else 2
        options = [least, *(K for K in (*LEVELS, *([most] if large else [])) if least <= K <= most)]
        chosen.append(int(draw(among(options))))
    return tuple(chosen)


def others(p: Parameters) -> dict[str, Parameters]:
    """Return other numbers that HSA-01 to HSA-06 allow, by what differs."""
    last, low, high = len(p.levels) - 1, p.range.low, p.range.high
    changes: dict[str, dict[str, Any]] = {
        **{f"{name} + 1": {name: getattr(p, name) + 1} for name in ("D", "T", "t", "d")},
        **{f"{name} - 1": {name: getattr(p, name) - 1} for name in ("D", "T", "t", "d")},
        **{f"users[{g}] + 1": {"N": p.N + 1, "sizes": _more(p.sizes, g, 1)} for g in _groups(p)},
        **{f"users[{g}] - 1": {"N": p.N - 1, "sizes": _more(p.sizes, g, -1)} for g in _groups(p)},
        **{f"subgroups[{g}] + 1": {"subgroups": _more(p.subgroups, g, 1)} for g in _groups(p)},
        **{f"subgroups[{g}] - 1": {"subgroups": _more(p.subgroups, g, -1)} for g in _groups(p)},
        "levels[0] - 1": {"levels": _more(p.levels, 0, -1)},
        "levels[-1] + 1": {"levels": _more(p.levels, last, 1)},
        "r1": {"range": Range(float(np.nextafter(low, -np.inf)), high)},
        "r2": {"range": Range(low, float(np.nextafter(high, np.inf)))},
        "matrix": {"matrix": "cyclic" if p.matrix == "perfect" else "perfect"},
    }
    return allowed(p, changes)


def _more(numbers: Sequence[int], at: int, step: int) -> tuple[int, ...]:
    return tuple(number + step * (place == at) for place, number in enumerate(numbers))


def wrong_numbers(p: Parameters) -> dict[str, dict[str, Any]]:
    """Return changes of the members of a request that break HSA-01 to HSA-05, by name."""
    fewest, groups = p.T + 2, len(p.levels)
    largest = max(len(cell.members) for cell in p.parts if p.group_of[cell.subgroups[0]] == groups - 1)
    most = (MAX_MODULUS - 1) // largest + 2
    return {
        "one user more than the groups have": {"N": p.N + 1},
        "one user less than the groups have": {"N": p.N - 1},
        "an empty group": {"sizes": [*p.sizes, 0], "subgroups": [*p.subgroups, 1], "levels": [*p.levels, p.levels[-1]]},
        "a group without subgroups": {"subgroups": [0, *p.subgroups[1:]]},
        "a single subgroup": {"sizes": [p.N], "subgroups": [1], "levels": [p.levels[0]]},
        "a subgroup of T + 1 users": {"subgroups": [p.sizes[0] // fewest + 1, *p.subgroups[1:]], "d": 10**4},
        "nobody colludes": {"T": 0},
        "a negative D": {"D": -1},
        "too few users that stay": {"D": p.N - fewest + 1},
        "a threshold of T + 1": {"t": p.T + 1},
        "a threshold above N - D": {"t": p.N - p.D + 1},
        "no levels of a group": {"levels": list(p.levels[1:])},
        "levels of a group too many": {"levels": [*p.levels, p.levels[-1]]},
        "subgroups of a group too many": {"subgroups": [*p.subgroups, 1]},
        "one level": {"levels": [1, *p.levels[1:]]},
        "levels that fall": {"sizes": [*p.sizes, fewest], "subgroups": [*p.subgroups, 1], "N": p.N + fewest}
        | {"levels": [*p.levels[:-1], p.levels[-1] + 1, p.levels[-1]], "matrix": "cyclic", "d": p.d + 1},
        "a modulus above 2**32": {"levels": [*p.levels[: groups - 1], most]},
        "fewer elements than segments": {"d": p.count - 1},
        **{name: {"range": bits(*wrong)} for name, wrong in wrong_ranges(p.range).items()},
        "no matrix of the text": {"matrix": "separate"},
    }


def without_construction(draw: Any) -> dict[str, Any]:
    """Draw members of a request whose number of subgroups has no construction of a perfect matrix (HSA-06)."""
    Z = draw(among((35, 36, 39, 40, 51)))
    sizes = {"N": 3 * Z, "D": 0, "T": 1, "t": 3, "d": Z, "sizes": [3 * Z], "subgroups": [Z], "levels": [2]}
    return {**sizes, "range": packed_range(RANGES[0]), "matrix": "perfect"}


def wrong_ranges(range: Range) -> dict[str, tuple[float, ...]]:
    """Return bounds that break HSA-05, by name."""
    low, high = range.low, range.high
    return {
        "a range of no width": (low, low),
        "a range that falls": (high, low),
        "a range from minus infinity": (-np.inf, high),
        "a range to infinity": (low, np.inf),
        "a range to no number": (low, np.nan),
        "a range of infinite width": (-1.7e308, 1.7e308),
        "one bound": (low,),
        "three bounds": (low, high, high),
    }


def bits(*numbers: float) -> str:
    """Return a binary64 vector."""
    return pack_reals(np.array(numbers, np.float64))
