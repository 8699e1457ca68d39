"""Users who were always summed together: whatever is made of sums over sets is made of sums over these classes.

Source: spec/heterosag.md, section 8 (HSA-27, HSA-28); spec/multi-round.md, section 4 (MRA-12).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.validate import BoolArray


def companions(sets: Collection[frozenset[int]]) -> list[frozenset[int]]:
    """Return the users of some sets, those together who are in the same ones."""
    found: dict[tuple[bool, ...], set[int]] = {}
    for user in sorted(frozenset[int]().union(*sets)):
        found.setdefault(tuple(user in members for members in sets), set()).add(user)
    return [frozenset(members) for members in found.values()]


def small_class(sets: Collection[frozenset[int]], least: int) -> frozenset[int] | None:
    """Return users who are in the same ones of `sets`, when they are fewer than `least`; the fewest there are.

    Parameters
    ----------
    sets : collection of frozenset of int
        The users of each sum.
    least : int
        The fewest users that may be together.

    Returns
    -------
    frozenset of int or None
        None when all classes have `least` users or more, or there is nobody.
    """
    fewest = min(companions(sets), key=len, default=None)
    return fewest if fewest is not None and len(fewest) < least else None


def class_labels(log: BoolArray) -> NDArray[np.intp]:
    """Return a number for each column of a table of truth values, equal for equal columns; -1 for those without any."""
    columns = np.ascontiguousarray(np.packbits(log, axis=0).T)
    numbers: dict[bytes, int] = {bytes(columns.shape[1]): -1}
    return np.array([numbers.setdefault(column.tobytes(), len(numbers) - 1) for column in columns], dtype=np.intp)
