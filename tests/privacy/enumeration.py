"""Exact information by counting every case: the oracle of the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import log2
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray


def every_vector(R: int, length: int) -> UintArray:
    """All vectors over Z_R, as the columns of a (length, R ** length) array."""
    return np.array(np.unravel_index(np.arange(R**length), (R,) * length), dtype=np.uint64).reshape(length, -1)


def codes(R: int, rows: Sequence[UintArray] | UintArray) -> Any:
    """One integer for each column of a (rows, cases) array."""
    stacked = np.stack(list(rows))
    total = np.zeros(stacked.shape[1], dtype=np.int64)
    for row in stacked:
        if int(total.max()) >= 2**62 // R:
            total = np.unique(total, return_inverse=True)[1].ravel()
        total = total * R + row.astype(np.int64)
    return np.unique(total, return_inverse=True)[1].ravel()


def entropy(*variables: Any) -> float:
    """The joint entropy, in bits, of variables whose cases are equally likely."""
    joint = np.zeros_like(variables[0])
    for variable in variables:
        joint = np.unique(joint * (int(variable.max()) + 1) + variable, return_inverse=True)[1].ravel()
    counts: list[int] = np.bincount(joint).tolist()
    cases = len(joint)
    return log2(cases) - sum(count * log2(count) for count in counts) / float(cases)


def conditional_information(x: Any, y: Any, z: Any) -> float:
    """I(x; y | z) in bits."""
    return entropy(x, z) + entropy(y, z) - entropy(x, y, z) - entropy(z)


def determined(R: int, secrets: UintArray, *known: Any) -> int:
    """The number of functionals of the secrets whose value the known variables determine."""
    base = entropy(*known)
    functionals = (np.array(f, dtype=np.uint64) for f in product(range(R), repeat=len(secrets)))
    values = ((f @ secrets % np.uint64(R)).astype(np.int64) for f in functionals)
    return sum(abs(entropy(*known, value) - base) < 1e-9 for value in values)
