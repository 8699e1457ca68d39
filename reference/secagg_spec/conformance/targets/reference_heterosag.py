"""HeteroSAg, one function at a time, over the reference (spec/heterosag.md, sections 3, 4, 7 and 8)."""

from __future__ import annotations

from typing import Any

from secagg_spec.arithmetic.levels import Range
from secagg_spec.conformance.targets import readers
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols.heterosag_plan import Parameters

_LISTS = ("sizes", "subgroups", "levels")
_MATRICES = ("cyclic", "perfect")
_BOUNDS = 2


def read_range(text: str) -> Range:
    """Return the range r1, r2 from its binary64 vector."""
    bounds = readers.reals("range", text).tolist()
    if len(bounds) != _BOUNDS:
        raise LengthMismatch("len(range)", len(bounds), "2: r1 and r2")
    return Range(*bounds)


def read_parameters(*, range: str, matrix: str, **numbers: Any) -> Parameters:
    """Return the parameters of a session, from its numbers one by one."""
    if matrix not in _MATRICES:
        raise ParameterError("matrix", matrix, " or ".join(map(repr, _MATRICES)))
    lists: dict[str, Any] = {name: tuple(numbers.pop(name)) for name in _LISTS}
    return Parameters(**numbers, **lists, range=read_range(range), matrix=matrix)
