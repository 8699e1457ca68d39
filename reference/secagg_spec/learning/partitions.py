"""Partitions of the training samples among users.

====================  ==========================================
papers                here
====================  ==========================================
N                     `users`
alpha, beta           `alpha`, the parameter of Dirichlet
====================  ==========================================

Source: spec/experiments.md, section 2 (EXP-03 to EXP-05); HeteroSAg, appendix J; Multi-RoundSecAgg, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.learning.datasets import Dataset, IntArray
from secagg_spec.learning.digits import check_labels, numbers_of_samples

Parts: TypeAlias = tuple[IntArray, ...]
PARTITIONS = ("iid", "by-class", "dirichlet", "writers")
ALPHAS = (1e-3, 1e6)
"""The smallest and the largest alpha."""
_MOST_USERS, _MOST_COUNTS, _MOST_CUTS = 10**6, 2**28, 2**20


def split(
    dataset: Dataset, kind: str, users: int, rng: np.random.Generator, alpha: float | None = None
) -> tuple[IntArray, ...]:
    """Return the indices of each user's training samples (EXP-03 to EXP-05).

    Parameters
    ----------
    dataset : Dataset
        The data set to divide.
    kind : str
        One of `PARTITIONS`.
    users : int
        N, from 1 to 10^6.
    rng : Generator
        The source of randomness for ``iid`` and ``dirichlet``; the other partitions draw nothing.
    alpha : float or None
        A number in [0.001, 10^6] for ``dirichlet``, None for the others.

    Raises
    ------
    ParameterError
        The partition is unknown, a user would hold no sample (EXP-04), or `rng` is no generator of numpy; or for
        ``dirichlet`` the users times the classes are more than 2^20.
    LengthMismatch
        There are no training samples.
    OutOfRange
        `alpha` is outside its range.
    """
    validate.one_of("partition", kind, PARTITIONS)
    if not len(dataset.train):
        raise LengthMismatch("len(dataset.train)", 0, "one sample or more")
    most = _most(dataset, kind)
    users = validate.integer("users", users, 1, _MOST_USERS, f"an integer in [1, {most}] with the partition {kind}")
    parts = _divided(dataset, kind, users, rng, _checked(kind, alpha))
    empty = next((user for user, part in enumerate(parts) if not part.size), None)
    if empty is not None:
        fewer = "fewer" if users <= most else f"at most {most}"
        raise ParameterError("users", users, f"{fewer} with the partition {kind}: user {empty} would hold no sample")
    return parts


def left_out(dataset: Dataset, parts: Sequence[IntArray]) -> int:
    """Return how many training samples no user holds: with ``writers``, the samples of surplus writers (EXP-03).

    Raises `ParameterError` for parts that are no vectors of numbers of training samples.
    """
    held = np.zeros(len(dataset.train), dtype=bool)
    for part in _numbers(parts, len(held)):
        held[part] = True
    return int(np.count_nonzero(~held))


def label_counts(labels: IntArray, parts: Sequence[IntArray], classes: int) -> IntArray:
    """Return the number of samples per user and label, (N, classes).

    Raises
    ------
    ParameterError
        The labels are no int64 vector, the parts are no vectors of numbers of samples, or there are no classes,
        more than 2^20, or more than 2^28 counts in all.
    OutOfRange
        A label is outside [0, classes).
    """
    check_labels("labels", labels, validate.integer("classes", classes, 1, 2**20))
    numbers = _numbers(parts, len(labels))
    validate.integer("len(parts) * classes", len(numbers) * classes, 0, _MOST_COUNTS)
    counts = [np.bincount(labels[part], minlength=classes) for part in numbers]
    return np.array(counts, dtype=np.int64).reshape(len(counts), classes)


def _numbers(parts: Sequence[IntArray], count: int) -> list[IntArray]:
    given = validate.sequence("parts", parts, "arrays of numbers of samples")
    return [numbers_of_samples(f"parts[{user}]", part, count) for user, part in enumerate(given)]


def _checked(kind: str, alpha: float | None) -> float:
    """Return alpha; it must be given for ``dirichlet``, and for no other partition."""
    if (alpha is None) == (kind == "dirichlet"):
        raise ParameterError("alpha", alpha, f"{'given' if alpha is None else 'left out'} with the partition {kind}")
    if alpha is None:
        return 0.0
    if not validate.finite(alpha) or not ALPHAS[0] <= alpha <= ALPHAS[1]:
        raise OutOfRange("alpha", alpha, f"a number in [{ALPHAS[0]:g}, {ALPHAS[1]:g}]")
    return float(alpha)


def _most(dataset: Dataset, kind: str) -> int:
    """Return the most users that a partition allows; with ``dirichlet`` one of them may still hold no sample."""
    if kind == "writers":
        return len(_written(dataset))
    cuts = _MOST_CUTS // dataset.classes if kind == "dirichlet" else _MOST_USERS
    return min(len(dataset.train), cuts, _MOST_USERS)


def _written(dataset: Dataset) -> IntArray:
    """Return the writers of a data set, ascending."""
    if dataset.writers is None:
        allowed = [kind for kind in PARTITIONS if kind != "writers"]
        raise ParameterError("partition", "writers", f"one of {', '.join(allowed)}: {dataset.name} names no writers")
    return np.unique(dataset.writers)


# ------------------------------------------------------------------------------------------------ the partitions


def _divided(dataset: Dataset, kind: str, users: int, rng: np.random.Generator, alpha: float) -> Parts:
    match kind:
        case "iid":
            return _iid(dataset, users, rng)
        case "by-class":
            return _by_class(dataset, users)
        case "dirichlet":
            return _dirichlet(dataset, users, rng, alpha)
        case _:
            return _writers(dataset, users)


def _iid(dataset: Dataset, users: int, rng: np.random.Generator) -> Parts:
    return tuple(np.array_split(rng.permutation(len(dataset.train)), users))


def _by_class(dataset: Dataset, users: int) -> Parts:
    return tuple(np.array_split(np.argsort(dataset.train.y, kind="stable"), users))


def _dirichlet(dataset: Dataset, users: int, rng: np.random.Generator, alpha: float) -> Parts:
    if users > (most := _most(dataset, "dirichlet")):
        there = f"there are {len(dataset.train)} samples and {dataset.classes} classes"
        raise ParameterError("users", users, f"at most {most} with the partition dirichlet: {there}")
    classes = (np.flatnonzero(dataset.train.y == label) for label in range(dataset.classes))
    cut = [_cut(members, users, rng, alpha) for members in classes]
    return tuple(np.concatenate(own) for own in zip(*cut, strict=True))


def _cut(members: IntArray, users: int, rng: np.random.Generator, alpha: float) -> list[IntArray]:
    """Return the samples of one class in random order, cut at the rounded cumulative sums of random shares."""
    sums = np.cumsum(rng.dirichlet(np.full(users, alpha)))[:-1]
    return np.split(rng.permutation(members), np.rint(sums * len(members)).astype(np.int64))


def _writers(dataset: Dataset, users: int) -> Parts:
    known = _written(dataset)[:users]
    found = [np.flatnonzero(dataset.writers == writer) for writer in known]
    return tuple(found + [np.empty(0, dtype=np.int64)] * (users - len(found)))


guard(__name__)
