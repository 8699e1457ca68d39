"""One valid call of every public function that tells what a log of participation is worth."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from secagg_spec.selection import metrics, weights
from secagg_spec.selection.batches import Parameters

LOG = {"log": np.array([[True, True, False], [False, True, True]])}
RATES = ([0.5, 0, Fraction(1, 3), 1], {"parameters": Parameters(4, 2, 2)})

CALLS: Mapping[str, tuple[Any, ...]] = {
    "check_log": (metrics.check_log, LOG),
    "classes": (metrics.classes, LOG),
    "strong_privacy": (metrics.strong_privacy, LOG),
    "fairness_gap": (metrics.fairness_gap, LOG),
    "fairness_gaps": (metrics.fairness_gaps, LOG),
    "cardinality": (metrics.cardinality, LOG),
    "cardinalities": (metrics.cardinalities, LOG),
    "expected_cardinality": (metrics.expected_cardinality, {"rates": RATES[0]}, RATES[1]),
    "least_gap": (metrics.least_gap, {"rates": RATES[0]}, RATES[1]),
    "least_weight": (weights.least_weight, {**LOG, "effort": 10}),
    "least_weights": (weights.least_weights, {**LOG, "effort": 10}),
    "witness": (weights.witness, {**LOG, "users": [0, 2]}),
}
MODULES: tuple[ModuleType, ...] = (metrics, weights)
