"""Numbers for the operations that frameworks can offer: N, t, k of a graph, and how reals become integers.

`strategies` draws the numbers of the other operations. Lists of options start with the simplest one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, TypeVar

from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.wide import MAX_WIDE
from secagg_spec.conformance.adapter.capabilities import Capabilities, Range, graph_allows
from secagg_spec.conformance.sdk.secagg_adapter import ROUND_PHASES
from secagg_spec.conformance.sessions.choices import among

X = TypeVar("X")

AVERAGE, UNMASKING, RECOVERY = "secagg.average", "secagg.unmasking", "secagg.recovery"
SUM, VIEW, COALITION = "secagg.sum", "secagg.view", "secagg.coalition"
OPERATIONS = (AVERAGE, UNMASKING, RECOVERY, SUM, VIEW, COALITION)
USERS = 12
_MOST = 40
_KEPT = 256
_NEXT = 4
_LAST = 2**31 - 1
_MODULI = (2**32, 2**16, 2**31, 2**32 - 5, 10**6, 251)
_LEVELS = (1, 2, 3, 10, 2**6, 2**10, 2**16, 10**6, 2**20, 2**32)
MOST_SUMMED = MAX_WIDE
"""The largest modulus of a sum of integers."""
_SUMMED = (2**32, 251, 2**16, 2**64, 2, 10**6, 2**61 - 1, 2**128, 2**255 - 19, 2**521 - 1, MOST_SUMMED)
_SUMMERS = 8
_CLIPS = (1, 2, 3, 8, 100)
_WEIGHTS = (1, 2, 10, 100, 1000)


@dataclass(frozen=True)
class Roster:
    """N users, the threshold t and the degree k of a round."""

    N: int
    t: int
    k: int

    @property
    def spare(self) -> int:
        """How many users may drop out before the round can fail, for any order of the graph."""
        return self.k + 1 - self.t

    def members(self) -> dict[str, int]:
        """Return the members of a request."""
        return {"N": self.N, "t": self.t, "k": self.k}


@dataclass(frozen=True)
class Scale:
    """How reals become integers: the modulus, the level, the largest magnitude, the largest weight."""

    R: int
    level: int
    clip: int
    max_weight: int

    def fits(self, N: int, exact: bool) -> bool:
        """Return whether no sum of N inputs can wrap (QNT-04).

        With `exact` weights, each input counts by its weight.
        """
        total = N * self.max_weight if exact else N
        return total * self.level * self.clip <= (self.R - 1) // 2

    def members(self) -> dict[str, int]:
        """Return the members of a request."""
        return {"R": self.R, "level": self.level, "clip": self.clip, "max_weight": self.max_weight}


def possible(caps: Capabilities, operation: str, *, bearable: bool) -> bool:
    """Return whether the declared ranges hold numbers that the text allows and that are fast enough to try."""
    if operation in (SUM, VIEW, COALITION):
        return bool(sum_moduli(caps, operation)) and bool(sum_rosters(caps, operation))
    found = rosters(caps, operation) if bearable else (rosters(caps, operation) or _any_roster(caps, operation))
    return bool(found) and (
        operation == UNMASKING or bool(scales(caps, min(roster.N for roster in found), operation=operation))
    )


def rosters(caps: Capabilities, operation: str, spare: int = 0) -> list[Roster]:
    """Return numbers that an operation declares: N up to 12, or a few values from the declared minimum on.

    Numbers of users of which no sum fits into a declared modulus are left out.
    """
    ranges = {name: caps.range(operation, name) for name in ("N", "t", "k")}
    sets = caps.parameter_sets(operation)
    if sets:
        inside = (Roster(**chosen) for chosen in sets if all(chosen[name] in ranges[name] for name in chosen))
        found: Sequence[Roster] = [roster for roster in inside if roster.N <= _MOST]
    else:
        found = _rosters(ranges["N"], ranges["t"], ranges["k"])
    summed = operation in (AVERAGE, RECOVERY)
    fit = {N for N in {roster.N for roster in found} if not summed or scales(caps, N, operation=operation)}
    return [roster for roster in found if roster.spare >= spare and roster.N in fit]


@lru_cache(maxsize=_KEPT)
def _rosters(N: Range, t: Range, k: Range) -> tuple[Roster, ...]:
    least = max(3, N.low or 3)
    users = options(N, 3, _MOST if N.values is not None else min(_MOST, max(USERS, least + _NEXT)))
    return tuple(
        Roster(n, threshold, degree)
        for n in users
        for degree in options(k, 2, n - 1)
        for threshold in options(t, 2, degree + 1)
        if graph_allows(n, threshold, degree)
    )


def _any_roster(caps: Capabilities, operation: str) -> list[Roster]:
    """Return some numbers of any size, if there are any."""
    sets = caps.parameter_sets(operation)
    if sets:
        return [Roster(**sets[0])]
    N, t, k = (caps.range(operation, name) for name in ("N", "t", "k"))
    beside = [*_ends(options(k, 2, _LAST)), *_ends(options(t, 2, _LAST))]
    users = [*_ends(options(N, 3, _LAST)), *(n for end in beside for n in (end + 1, end + 2) if n >= 3 and n in N)]
    candidates = (
        Roster(n, threshold, degree)
        for n in users
        for degree in _ends(options(k, 2, n - 1))
        for threshold in _ends(options(t, 2, degree + 1))
        if graph_allows(n, threshold, degree)
    )
    return [roster for roster, _ in zip(candidates, range(1), strict=False)]


def roster(draw: Any, caps: Capabilities, operation: str, spare: int = 0) -> Roster:
    """Draw numbers that an operation declares. At least `spare` users may drop out."""
    return one_of(draw, rosters(caps, operation, spare))


def one_of(draw: Any, found: Sequence[X]) -> X:
    """Draw one of some things by its number, so that a replay can record what was drawn."""
    return found[int(draw(st.integers(0, len(found) - 1)))]


def sum_moduli(caps: Capabilities, operation: str) -> list[int]:
    """Return declared moduli of a sum of integers, with the ends of the declared range."""
    return listed(caps.range(operation, "R"), _SUMMED, 2, MOST_SUMMED)


def sum_rosters(caps: Capabilities, operation: str, spare: int = 0) -> list[tuple[int, int]]:
    """Return declared pairs (N, t) with t <= N - spare: N up to 8, or a few from the declared minimum on."""
    N, t = (caps.range(operation, name) for name in ("N", "t"))
    found = [(chosen["N"], chosen["t"]) for chosen in caps.parameter_sets(operation)]
    if not found:
        most = _MOST if N.values is not None else min(_MOST, max(_SUMMERS, (N.low or 2) + 2))
        found = [(users, least) for users in options(N, 2, most) for least in options(t, 1, users)]
    fitting = [(n, least) for n, least in found if n in N and least in t and n <= _MOST and least <= n - spare]
    return fitting if operation != COALITION else [(n, least) for n, least in fitting if bounds(caps, n, least)]


def bounds(caps: Capabilities, N: int, t: int) -> list[int]:
    """Return how many users may collude in a round of N users with threshold t, as `COALITION` declares it."""
    T, sets = caps.range(COALITION, "T"), caps.parameter_sets(COALITION)
    declared = [chosen["T"] for chosen in sets if (chosen["N"], chosen["t"]) == (N, t)] if sets else range(1, t)
    return [most for most in declared if 1 <= most < t and most in T]


def exact_weights(caps: Capabilities) -> bool:
    """Return whether the declared policy multiplies quantised inputs by integer weights."""
    return caps.policy("average.weights") == "exact"


def scales(caps: Capabilities, N: int, *, fitting: bool = True, operation: str = AVERAGE) -> list[Scale]:
    """Return declared scales that cannot wrap with N users, or, unless `fitting`, those that can."""
    names = ("R", "level", "clip", "max_weight")
    ranges = tuple(caps.range(operation, name) for name in names)
    return list(_fitting(ranges, N, exact_weights(caps), fitting))


@lru_cache(maxsize=_KEPT)
def _fitting(ranges: tuple[Range, ...], N: int, exact: bool, fitting: bool) -> tuple[Scale, ...]:
    return tuple(scale for scale in _scales(*ranges) if scale.fits(N, exact) == fitting)


@lru_cache(maxsize=_KEPT)
def _scales(R: Range, level: Range, clip: Range, weight: Range) -> tuple[Scale, ...]:
    bounds = ((R, _MODULI, 2, MAX_MODULUS), (level, _LEVELS, 1, MAX_LEVEL), (clip, _CLIPS, 1, _LAST))
    known = [listed(*bound) for bound in (*bounds, (weight, _WEIGHTS, 1, _LAST))]
    return tuple(Scale(*chosen) for chosen in product(*known))


def listed(allowed: Range, usual: Sequence[int], low: int, high: int) -> list[int]:
    """Return the usual values of a parameter that are declared, and the ends of its declared range."""
    ends = [end for end in (allowed.low, allowed.high) if end is not None]
    known = allowed.values if allowed.values is not None else (*usual, *ends)
    return [value for value in dict.fromkeys(known) if low <= value <= high and value in allowed]


def options(allowed: Range, low: int, high: int) -> Sequence[int]:
    """Return the integers in [low, high] inside a declared range, ascending."""
    if allowed.values is not None:
        return sorted({value for value in allowed.values if low <= value <= high})
    bottom = low if allowed.low is None else max(low, allowed.low)
    return range(bottom, (high if allowed.high is None else min(high, allowed.high)) + 1)


def _ends(options: Sequence[int]) -> list[int]:
    return [*dict.fromkeys([*options[:_NEXT], *options[-_NEXT:]])]


def nobody(phases: Sequence[str] = ROUND_PHASES) -> dict[str, list[int]]:
    """Return a schedule in which nobody drops out."""
    return {phase: [] for phase in phases}


def dropouts(draw: Any, N: int, count: int, phases: Sequence[str], known: Sequence[str] = ROUND_PHASES) -> Any:
    """Draw when `count` users drop out, each in one of `phases`. The schedule has all phases in `known`."""
    drop = nobody(known)
    for user in sorted(draw(st.permutations(range(N)))[:count]):
        drop[draw(among(tuple(phases)))].append(user)
    return drop
