"""The numbers of a session of HeteroSAg as they stand in a request (spec/adapter.md, section 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.conformance.wire import pack_reals
from secagg_spec.protocols.heterosag_plan import Parameters


def packed_range(range: Range) -> str:
    """Return r1 and r2 as a binary64 vector."""
    return pack_reals(np.array([range.low, range.high], np.float64))


def members(p: Parameters) -> dict[str, Any]:
    """Return the numbers of a session as they stand in a request."""
    numbers = {name: getattr(p, name) for name in ("N", "D", "T", "t", "d", "matrix")}
    lists = {name: list(getattr(p, name)) for name in ("sizes", "subgroups", "levels")}
    return {**numbers, **lists, "range": packed_range(p.range)}
