"""The random numbers of a cell: one stream for each use, never one for each scheme.

So all schemes with the same seed see the same partition, initial model, batches, users, delays and staleness. Source:
spec/experiments.md, section 3 (EXP-08).
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard

PARTITION, MODEL, BATCHES, CHOICE, DELAY, STALENESS, WEIGHTS, QUANTISER, ATTACK, KEYS = range(10)
MOST = 2**32 - 1


def stream(seed: int, which: int, *numbers: int) -> np.random.Generator:
    """Return the generator for one use of random numbers in a cell.

    Parameters
    ----------
    seed : int
        The seed of the cell, in ``[0, 2**32)``.
    which : int
        The use of the random numbers, such as `BATCHES`.
    numbers : int
        Numbers that distinguish the streams of this use, such as a round and a user; each in ``[0, 2**32)``.
        Zeros at the end distinguish nothing, since numpy pads a seed with them: a use has as many numbers each time.

    Raises
    ------
    ParameterError
        A number is out of its range.
    """
    key = [validate.integer("seed", seed, 0, MOST), validate.integer("which", which, 0, KEYS)]
    return np.random.default_rng([*key, *(validate.integer("numbers", number, 0, MOST) for number in numbers)])


guard(__name__)
