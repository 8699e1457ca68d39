"""How often something occurs among many uniform things, and when that is too far off."""

from __future__ import annotations

import math
from collections.abc import Sequence

from secagg_spec.conformance.checks.base import fail

_ALARM_BITS = 60


def demand_shares(counts: Sequence[int], shares: Sequence[float], what: str) -> None:
    """Fail when one of some counts is too far from its share of their sum.

    By Chernoff's bound what has these shares fails with a probability below 2**-60, all counts taken together.
    """
    n, most = sum(counts), _ALARM_BITS + math.log2(2 * len(counts))
    for at in sorted(range(len(counts)), key=counts.__getitem__):
        count, share = counts[at], shares[at]
        if surprise(count, n, share) > most:
            often = "never occurs" if not count else f"occurs {count} times"
            fail(f"{what.format(at)} {often} among {n}; about {round(n * share)} are expected", round(n * share))


def surprise(count: int, n: int, share: float) -> float:
    """Return n times the relative entropy of two coins, in bits: one with the seen frequency, one with the share."""
    seen = count / n
    terms = ((seen, share), (1 - seen, 1 - share))
    return n * sum(p * math.log2(p / q) for p, q in terms if p > 0)
