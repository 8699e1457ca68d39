"""One valid call of every public function that counts what HeteroSAg costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.heterosag.plan import PRESETS

TINY = {"parameters": PRESETS["tiny"]}
MODULUS = ("users * (levels - 1) + 1",)

CALLS: Mapping[str, tuple[Any, ...]] = {
    "segment_costs": (heterosag_costs.segment_costs, {"user": 3}, TINY),
    "masked_bits": (heterosag_costs.masked_bits, {"user": 3}, TINY),
    "masked_bytes": (heterosag_costs.masked_bytes, {"user": 3}, TINY),
    "user_expansion": (heterosag_costs.user_expansion, {"user": 3}, TINY),
    "sum_modulus": (heterosag_costs.sum_modulus, {"users": 4, "levels": 3}, {}, MODULUS),
    "bandwidth_expansion": (heterosag_costs.bandwidth_expansion, {"users": 4, "levels": 3}, {}, MODULUS),
    "secagg_bits": (heterosag_costs.secagg_bits, {"d": 9, "users": 4, "levels": 3}, {}, MODULUS),
    "secagg_bytes": (heterosag_costs.secagg_bytes, {"d": 9, "users": 4, "levels": 3}, {}, MODULUS),
    "user_masks": (heterosag_costs.user_masks, {"user": 3, "present": (0, 1, 2)}, TINY),
    "server_masks": (heterosag_costs.server_masks, {"survivors": (0, 1, 2), "sharers": (0, 1, 2, 3)}, TINY),
    "secagg_user_masks": (heterosag_costs.secagg_user_masks, {"d": 9, "users": 4}),
}
CORES = {"error_bound"}
