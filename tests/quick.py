"""Which cases of long tests ``make test`` and ``make quick`` take: always the same ones. ``make whole`` takes all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import pytest

X = TypeVar("X")
QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
WHOLE = bool(os.environ.get("SECAGG_SPEC_WHOLE"))


exhaustive = pytest.mark.skipif(not WHOLE, reason="a part of the cases is enough here; make whole runs all")
"""Marks what only ``make whole`` and ``make proofs`` run."""


def part(step: int, cases: Iterable[X]) -> list[X]:
    """Return all cases of a test; but for ``make whole``, one of each `step`."""
    return list(cases)[:: 1 if WHOLE else step]


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a parametrized test; all but the first of each `step` are left out of ``make quick``."""
    return [pytest.param(case, marks=[pytest.mark.slow] if at % step else []) for at, case in enumerate(cases)]


def some(step: int, cases: Iterable[X]) -> list[X]:
    """Return all cases of a loop inside a test; in ``make quick``, one of each `step`."""
    return list(cases)[:: step if QUICK else 1]


def sample_of_proofs(cases: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the first case of each eighth proof; the first member of a case is its proof.

    ``make whole`` takes all cases, and ``make quick`` takes the first case of each sixteenth proof.
    """
    if WHOLE:
        return list(cases)
    first = {case[0]: case for case in reversed(cases)}
    proofs = list(dict.fromkeys(case[0] for case in cases))[::8]
    return [pytest.param(*first[name], marks=[pytest.mark.slow] if at % 2 else []) for at, name in enumerate(proofs)]
