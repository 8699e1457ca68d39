"""Describe in readable form what a view determines, by combining the verdicts of `privacy` over all elements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import PrimeField, is_prime
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.privacy.verdict import Verdict, readable
from secagg_spec.privacy.views import View

_SMALL = 1000
"""Below this modulus, the factor that makes a functional readable is found by trying all factors."""


@dataclass(frozen=True)
class Knowledge:
    """What is known of the updates: `dimension` of the `unknown` numbers, given by the `functionals`.

    A functional that names no element is known for every element. `hidden` are the users of whose own update nothing is
    known, even if sums with other updates are known. `exposed` are the users of whose own update something is known.
    """

    unknown: int = 0
    dimension: int = 0
    functionals: tuple[str, ...] = ()
    hidden: tuple[int, ...] = ()
    exposed: tuple[int, ...] = ()


def known(views: Sequence[View], users: Collection[int], d: int) -> Knowledge:
    """Return what views without common symbols determine of users' updates of d elements, for checked arguments."""
    d, verdicts = validate.integer("d", d, 1, validate.MAX_COUNT), [(view, view.decide()) for view in views]
    hidden = tuple(sorted(user for user in users if all(view.about(user).private for view in views)))
    exposed = tuple(sorted(set(users) - set(hidden)))
    functionals = whole((text for view, verdict in verdicts for text in _learned(view, verdict)), d)
    dimension = sum(verdict.dimension for _, verdict in verdicts)
    return Knowledge(len(users) * d, dimension, functionals, hidden, exposed)


def _learned(view: View, verdict: Verdict) -> list[str]:
    """Return the functionals of a verdict; over a small field, each is multiplied by the factor that makes it short."""
    modulus, rows = view.space.ring.modulus, list(verdict.excess)
    if modulus < _SMALL and is_prime(modulus):
        rows = [_shortest(PrimeField(modulus), row) for row in rows]
    return [readable(row, verdict.secrets, modulus) for row in rows]


def _shortest(field: PrimeField, row: UintArray) -> UintArray:
    """Return the multiple of a row with the least sum of magnitudes; of two, the one whose first entry is positive."""
    factors = np.arange(1, field.modulus, dtype=np.uint64)
    multiples = [field.multiply(row, np.full_like(row, factor)) for factor in factors]
    return min(multiples, key=lambda multiple: _weight(field, multiple))


def _weight(field: PrimeField, row: UintArray) -> tuple[int, bool]:
    signed = field.decode_signed(row)
    return int(np.abs(signed).sum()), bool(signed[signed != 0][0] < 0)


def whole(functionals: Iterable[str], d: int) -> tuple[str, ...]:
    """Return the functionals; one that occurs for each of d elements is given once, without the element.

    It is for checked arguments.
    """
    found, d = list(functionals), validate.integer("d", d, 1, validate.MAX_COUNT)
    each = [{text.replace(f"[{at}]", "") for text in found if _of(text, at)} for at in range(d)]
    common = set.intersection(*each)
    return tuple(dict.fromkeys(_plain(text, common, d) for text in found))


def _of(text: str, at: int) -> bool:
    """Return whether a functional contains this element only."""
    return text.count("[") == text.count(f"[{at}]")


def _plain(text: str, common: Collection[str], d: int) -> str:
    for at in range(d):
        bare = text.replace(f"[{at}]", "")
        if _of(text, at) and bare in common:
            return bare
    return text


guard(__name__)
