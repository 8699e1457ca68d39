"""Secure aggregation for Flower: workflows, mods and a client manager that stand in the places of its own.

``client``, ``server`` and what they use need no Flower. ``workflow``, ``mod`` and ``manager`` do, and are imported when
one of the names below is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from secagg_spec import extras

_PLACES = {
    "SecAggWorkflow": "workflow",
    "SecAggPlusWorkflow": "workflow",
    "LightSecAggWorkflow": "workflow",
    "secagg_mod": "mod",
    "secaggplus_mod": "mod",
    "lightsecagg_mod": "mod",
    "SecureAggregationMod": "mod",
    "BatchClientManager": "manager",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(_PLACES)}")
    try:
        module = import_module(f"{__name__}.{_PLACES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "flwr":
            raise
        raise ImportError(f"{name} needs Flower: {extras.install('flwr')}") from error
    return getattr(module, name)
