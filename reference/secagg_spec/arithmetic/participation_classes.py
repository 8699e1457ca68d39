"""Classes of users who were always summed together: every combination of the sums is one of the sums of these classes.

Source: spec/heterosag.md, section 8 (HSA-27, HSA-28); spec/multi-round.md, section 4 (MRA-12).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import BoolArray


def participation_classes(sets: Collection[frozenset[int]]) -> list[frozenset[int]]:
    """Return the users of the sets, grouped into classes of users who are in exactly the same sets.

    Raises
    ------
    ParameterError
        A set is none, or holds something else than integers of 2^13 bits at most.
    """
    for members in sets:
        validate.instance("sets", members, frozenset)
    found: dict[tuple[bool, ...], set[int]] = {}
    for user in sorted(validate.user_numbers("sets", [*frozenset[int]().union(*sets)])):
        found.setdefault(tuple(user in members for members in sets), set()).add(user)
    return [frozenset(members) for members in found.values()]


def small_class(sets: Collection[frozenset[int]], least: int) -> frozenset[int] | None:
    """Return the smallest class of users who are in the same `sets`, if it has fewer than `least` users.

    Parameters
    ----------
    sets : collection of frozenset of int
        The users of each sum.
    least : int
        The smallest size allowed for a class.

    Returns
    -------
    frozenset of int or None
        None when all classes have `least` users or more, or there are no users.

    Raises
    ------
    ParameterError
        `least` is no integer, or below 0.
    """
    validate.integer("least", least, 0)
    fewest = min(participation_classes(sets), key=len, default=None)
    return fewest if fewest is not None and len(fewest) < least else None


def class_labels(log: BoolArray) -> NDArray[np.intp]:
    """Return a label for each column of a boolean table: equal labels for equal columns, -1 for all-false columns.

    Raises
    ------
    LengthMismatch
        The table does not have two axes.
    """
    validate.truths("log", log, (None, None))
    columns = np.ascontiguousarray(np.packbits(log, axis=0).T)
    labels, numbers = np.full(len(columns), -1, dtype=np.intp), dict[bytes, int]()
    for at in np.flatnonzero(columns.any(axis=1)):
        labels[at] = numbers.setdefault(columns[at].tobytes(), len(numbers))
    return labels


guard(__name__)
