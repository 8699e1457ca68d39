"""What planted bugs of HeteroSAg are shown on: requests of one function at a time. It registers none itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.conformance.heterosag_numbers import members, packed_range
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.heterosag_plan import UNIT, Parameters

Function = Callable[..., Any]
NUMBERS = Parameters(17, 0, 1, 3, 8, (11, 6), (2, 1), (2, 3), UNIT)
"""Three subgroups, of 6, 5 and 6 users, in two groups; segments of 3, 3 and 2 elements."""


def answer(operation: str, params: dict[str, Any], **rand: str) -> object:
    """Return the result of the reference, or the code with which it refuses."""
    request = {"id": 1, "op": operation, "params": params, **({"rand": rand} if rand else {})}
    given = reference.build().answer(request)
    return given.get("result", given.get("reject", {}).get("code", given))


def quantised(
    x: Sequence[float], draws: Sequence[float], levels: int = 3, bounds: Range = UNIT, clip: bool = False
) -> object:
    """Return how numbers are carried."""
    numbers, rounding = (pack_reals(np.array(values, np.float64)) for values in (x, draws))
    params = {"levels": str(levels), "range": packed_range(bounds), "clip": clip, "x": numbers}
    return answer("quantize.levels", params, rounding=rounding)


def plan(**changed: Any) -> object:
    """Return a plan, with other numbers of its session."""
    return answer("segment.plan", members(replace(NUMBERS, **changed)))


def plan_of(**changed: Any) -> object:
    """Return a plan, with other members of its request."""
    return answer("segment.plan", {**members(NUMBERS), **changed})


def many(count: int, matrix: str = "perfect") -> object:
    """Return the matrix for many subgroups of one group."""
    N = 3 * count
    numbers = {"N": N, "D": 0, "T": 1, "t": 3, "d": count, "sizes": [N], "subgroups": [count], "levels": [2]}
    return answer("segment.plan", {**numbers, "range": packed_range(UNIT), "matrix": matrix})


def averaged(method: str = "mean", trim: int = 0, **changed: Any) -> object:
    """Return the average of five cells."""
    sums = [pack(np.array(total, np.uint64)) for total in ((0, 4), (7, 1), (3, 6), (9, 2), (4, 4))]
    row = {"levels": [2, 3, 3, 4, 6], "counts": [4, 5, 3, 6, 4], "sums": sums}
    return answer("heterosag.average", {"range": packed_range(UNIT), **row, "method": method, "trim": trim, **changed})


def requested(*dropped: Sequence[int], numbers: Parameters = NUMBERS) -> object:
    """Return how a user answers successive requests, each given by who drops out."""
    requests = [[user for user in range(numbers.N) if user not in gone] for gone in dropped]
    return answer("heterosag.request", {**members(numbers), "requests": requests})


def refusing(call: Callable[[], Any]) -> bool:
    """Return whether a call refuses what it is given."""
    try:
        call()
    except ParameterError:
        return True
    return False
