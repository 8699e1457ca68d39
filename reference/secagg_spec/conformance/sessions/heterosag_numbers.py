"""The numbers of a session of HeteroSAg in the form of a request (spec/adapter.md, section 4)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.protocols.heterosag.plan import Parameters


def packed_range(range: Range) -> str:
    """Return r1 and r2 as a binary64 vector."""
    return pack_reals(np.array([range.low, range.high], np.float64))


def members(p: Parameters) -> dict[str, Any]:
    """Return the numbers of a session in the form of a request."""
    numbers = {name: getattr(p, name) for name in ("N", "D", "T", "t", "d", "matrix")}
    lists = {name: list(getattr(p, name)) for name in ("sizes", "subgroups", "levels")}
    return {**numbers, **lists, "range": packed_range(p.range)}


def totals(p: Parameters, rows: Mapping[int, UintArray]) -> list[UintArray]:
    """Return the sum of the inputs of some users in each nonempty cell, by segment and first subgroup."""
    present = {cell: sorted(cell.members & set(rows)) for cell in p.parts}
    return [
        cell.ring.sum(np.stack([cell.of(rows[user]) for user in users])) for cell, users in present.items() if users
    ]
