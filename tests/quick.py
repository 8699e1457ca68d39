"""What ``make quick`` takes of long tests: the same few cases each time, where ``make test`` takes all.

The longest ones have a target of their own: ``make proofs`` falsifies each proof in every way, ``make test`` in one.
What ``make test`` decides by a part of the cases, it decides by all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

X = TypeVar("X")
QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
PROOFS = bool(os.environ.get("SECAGG_SPEC_PROOFS"))


exhaustive = pytest.mark.skipif(not PROOFS, reason="a part of the cases is enough here; make proofs runs all")
"""Marks what only ``make proofs`` runs."""


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a parametrized test; all but the first of each `step` are left out of ``make quick``."""
    return [pytest.param(case, marks=[pytest.mark.slow] if at % step else []) for at, case in enumerate(cases)]


def some(step: int, cases: Iterable[X]) -> list[X]:
    """Return all cases of a loop inside a test; in ``make quick``, one of each `step`."""
    return list(cases)[:: step if QUICK else 1]


def first_of_each_proof(cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the cases of a parametrized test; all but the first of each proof, their first member, are long.

    ``make quick`` takes the first of each sixth proof.
    """
    names = [case[0] for case in cases]
    proofs = list(dict.fromkeys(names))
    long = pytest.mark.skipif(not PROOFS, reason="one of each proof is enough here; make proofs runs all")
    late = [case[0] in names[:at] for at, case in enumerate(cases)]
    return [
        pytest.param(*case, marks=([long] if again else []) + ([pytest.mark.slow] if proofs.index(case[0]) % 6 else []))
        for case, again in zip(cases, late, strict=True)
    ]
