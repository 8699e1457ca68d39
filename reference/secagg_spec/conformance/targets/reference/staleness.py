"""The weight of a late update, by the reference (spec/fedbuff.md, section 2)."""

from collections.abc import Callable, Mapping
from typing import Any

from secagg_spec.arithmetic import staleness, validate
from secagg_spec.conformance.targets.reference import readers


def _weight(
    kind: Any, numerator: Any, denominator: Any, start: Any, level: Any, tau: Any, rand: Mapping[str, Any]
) -> dict[str, Any]:
    function = staleness.Staleness(kind, numerator, denominator, readers.number("start", start))
    draws = readers.reals("rounding", rand["rounding"])
    validate.array_shape("rounding", draws, (1,))
    levels = readers.number("level", level), readers.number("tau", tau)
    return {"weight": str(staleness.realised_weight(function, *levels, float(draws[0])))}


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"staleness.weight": _weight}
