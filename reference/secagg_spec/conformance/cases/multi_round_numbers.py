"""The numbers N, K and T of Multi-RoundSecAgg that an adapter declares, as `Numbers`."""

from functools import lru_cache
from typing import Any

from secagg_spec.conformance.adapter.capabilities import EVERYTHING, Capabilities, Range
from secagg_spec.conformance.cases.multi_round_oracles import SEPARATE, STRATEGIES, Numbers

FAMILY, BATCH, SESSION = "select.family", "select.batch", "select.session"
COMPLETE, REQUEST = "select.complete", "select.request"
OPERATIONS = (FAMILY, BATCH, SESSION, COMPLETE, REQUEST)
SIZES, COLLUDING = range(1, 6), range(3, 6)
"""The usual sizes of a batch: of any, and of one that may have colluders (MRA-17)."""
PER_ROUND, SPARE = 4, 4
"""The most batches that usually make a round, and the most that usually are left over."""
_MOST, _NEXT, _SOME = 300, 4, 50
"""The most users; how many numbers count as the start of a range; how many numbers do where none of them is usual."""


def narrowed(caps: Capabilities, operation: str) -> bool:
    """Return whether an operation declares anything about its numbers."""
    return bool(caps.parameter_sets(operation)) or any(one != EVERYTHING for one in _ranges(caps, operation))


def _ranges(caps: Capabilities, operation: str) -> tuple[Range, Range, Range]:
    return caps.range(operation, "N"), caps.range(operation, "K"), caps.range(operation, "T")


def fitting(
    caps: Capabilities, operation: str, sizes: range = SIZES, *, fewest: int = 1, spare: int = 0, whole: bool = False
) -> tuple[Numbers, ...]:
    """Return numbers of at most 300 users that an operation declares: usual ones, and those around the ends of ranges.

    A batch has one of `sizes` or, if there are several, more. A round has at least `fewest` batches, or one if `whole`;
    at least `spare` batches are left over. The simplest numbers come first.
    """
    key = operation, sizes, fewest, spare, whole
    kept = caps.kept.setdefault("multi-round numbers", {})
    if key not in kept:
        sets, ranges = tuple(Numbers(**chosen) for chosen in caps.parameter_sets(operation)), _ranges(caps, operation)
        most, size = 1 if whole else _MOST, sizes[-1] if len(sizes) == 1 else _MOST
        found = [
            p
            for p in _inside(sets, *ranges)
            if sizes[0] <= p.T <= size and fewest <= p.per_round <= most and spare <= p.batches - p.per_round
        ]
        near = [p for p in found if sets or _near(p, *ranges)]
        kept[key] = tuple(near or found[:_SOME])
    known: tuple[Numbers, ...] = kept[key]
    return known


@lru_cache(maxsize=64)
def _inside(sets: tuple[Numbers, ...], N: Range, K: Range, T: Range) -> tuple[Numbers, ...]:
    """Return all numbers of at most 300 users in these ranges, and in these sets if there are any."""
    found = sets or (
        Numbers(users, chosen, size)
        for size in range(1, _MOST + 1)
        if size in T
        for chosen in range(size, _MOST + 1, size)
        if chosen in K
        for users in range(chosen, _MOST + 1, size)
    )
    inside = {p for p in found if p.N <= _MOST and p.N in N and p.K in K and p.T in T}
    return tuple(sorted(inside, key=lambda p: (p.N, p.K, p.T)))


def _near(p: Numbers, N: Range, K: Range, T: Range) -> bool:
    """Return whether each number is usual, or a declared value, or around an end of its range."""
    usual = p.T in SIZES, p.per_round <= PER_ROUND, p.batches - p.per_round <= SPARE
    return all(
        ordinary or _declared(value, allowed)
        for ordinary, value, allowed in zip(usual, (p.T, p.K, p.N), (T, K, N), strict=True)
    )


def _declared(value: int, allowed: Range) -> bool:
    start = allowed.low is not None and value <= allowed.low + _NEXT
    return allowed.values is not None or start or value == allowed.high


def of_strategy(strategy: str) -> dict[str, Any]:
    """Return the conditions, as `fitting` takes them, under which numbers fit a strategy."""
    return {"sizes": range(1, 2)} if strategy in SEPARATE else {"whole": strategy == "partition"}


def fit(caps: Capabilities, operation: str, **conditions: Any) -> bool:
    """Return whether there are declared numbers under some conditions, which `fitting` takes."""
    return not narrowed(caps, operation) or bool(fitting(caps, operation, **conditions))


def possible(caps: Capabilities, operation: str, *, bearable: bool) -> bool:
    """Return whether the declared ranges hold numbers that the text allows, of at most 300 users if `bearable`."""
    names = [name for name in STRATEGIES if operation != BATCH or name in caps.range(BATCH, "strategy")]
    least = COLLUDING[0] if operation in (COMPLETE, REQUEST) else 1
    most = 1 if set(names) <= set(SEPARATE) else None
    if not names or not _meets(caps.range(operation, "T"), least, most):
        return False
    if not bearable and _beyond(caps, operation):
        return True
    if operation == BATCH:
        return any(fit(caps, BATCH, **of_strategy(name)) for name in names)
    return fit(caps, operation, sizes=COLLUDING if operation in (COMPLETE, REQUEST) else SIZES)


def _meets(allowed: Range, least: int, most: int | None) -> bool:
    """Return whether a range has a number from `least` to `most`."""
    if allowed.values is not None:
        return any(value >= least and (most is None or value <= most) for value in allowed.values)
    return (allowed.high is None or allowed.high >= least) and (most is None or (allowed.low or 1) <= most)


def _beyond(caps: Capabilities, operation: str) -> bool:
    """Return whether there may be numbers of more users than are tried."""
    N, K, _ = _ranges(caps, operation)
    sets = caps.parameter_sets(operation)
    allowed = N if N != EVERYTHING else K
    if sets or allowed.values is not None:
        return max([one["N"] for one in sets] or allowed.values or ()) > _MOST
    return allowed.high is None or allowed.high > _MOST
