"""How often something occurs among many uniform samples, and when the count is too far off."""

import math

import numpy as np
from numpy.typing import ArrayLike

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.conformance.checks.base import fail

ALARM_BITS = 60


def demand_shares(counts: ArrayLike, shares: ArrayLike, what: str, *, of: int | None = None, together: int = 1) -> None:
    """Fail when a count is too far from its share of the total, or of `of` when one sample can add to several counts.

    By Chernoff's bound, counts that have these shares fail with probability below 2**-60. That bound covers all counts
    of all `together` calls.
    """
    seen = np.asarray(counts)
    expected = np.broadcast_to(np.asarray(shares, dtype=np.float64), seen.shape)
    n = int(seen.sum()) if of is None else of
    found = np.flatnonzero(surprise(seen, n, expected) > most_surprise(seen.size * together))
    for at in sorted(found, key=lambda at: int(seen[at]))[:1]:
        often = "never occurs" if not seen[at] else f"occurs {seen[at]} times"
        about = round(n * float(expected[at]))
        fail(f"{what.format(at)} {often} among {n}; about {about} are expected", about)


def most_surprise(counts: int) -> float:
    """Return the surprise that any of `counts` counts exceeds with probability below 2**-60."""
    return ALARM_BITS + math.log2(2 * counts)


def surprise(counts: ArrayLike, n: int, shares: ArrayLike) -> RealArray:
    """Return n times the relative entropy in bits of two coins: one with the observed frequency, one with its share."""
    seen, expected = np.asarray(counts) / n, np.asarray(shares, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(p > 0, p * np.log2(p / q), 0.0) for p, q in ((seen, expected), (1 - seen, 1 - expected))]
    return np.asarray(n * (terms[0] + terms[1]))


def visible(n: int, share: float, counts: int) -> float:
    """Return how many times too often, in tenths, something must occur to fail in at least every second run.

    The median of its count is at least the expected number, rounded down.
    """
    most = most_surprise(counts)
    times = (at / 10 for at in range(11, math.floor(10 / share) + 1))
    seen = (at for at in times if float(surprise(math.floor(n * share * at), n, share)) > most)
    return next(seen, math.inf)
