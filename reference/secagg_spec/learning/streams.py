"""The streams of random numbers that a seed gives, by what is drawn from them and never by scheme.

Source: spec/experiments.md, section 3 (EXP-08).
"""

from __future__ import annotations

import numpy as np

PARTITION, MODEL, BATCHES, CHOICE, DELAY, STALENESS, WEIGHTS, QUANTISER, ATTACK, KEYS = range(10)


def stream(seed: int, which: int, *numbers: int) -> np.random.Generator:
    """Return the generator of one purpose; further numbers tell its uses apart, such as a round and a user."""
    return np.random.default_rng([seed, which, *numbers])
