"""Where the harness draws from: one stream of numbers for each purpose, by seed, so that all schemes see the same.

Source: spec/experiments.md, section 3 (EXP-08).
"""

from __future__ import annotations

import numpy as np

PARTITION, MODEL, BATCHES, CHOICE, DELAY, STALENESS, WEIGHTS, QUANTISER, ATTACK, KEYS = range(10)


def stream(seed: int, which: int, *numbers: int) -> np.random.Generator:
    """Return the generator of a seed for one purpose, and for such as a round and a user."""
    return np.random.default_rng([seed, which, *numbers])
