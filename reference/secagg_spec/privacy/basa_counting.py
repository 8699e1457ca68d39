"""Decide what an epoch of BASA reveals by trying all updates and masks modulo a small number.

This module uses no algebra and none of the protocol's functions. Masked updates are written down from the text, every
value of every update and mask is tried, and the distributions of the views are compared. So for small buffers it is an
independent check of the verdicts of `secagg_spec.privacy.basa`.

Source: spec/basa.md, section 4; BASA, section 3.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log2
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.privacy.basa import PAIR, SELF, Situation, Timeouts

Numbers: TypeAlias = NDArray[np.int64]
Name: TypeAlias = tuple[str, int, int]
Sum: TypeAlias = Mapping[int, int]
"""A combination of updates: the coefficient of each user's update."""
_MOST = 2**20
"""The most values of all updates and masks that are tried, and of all combinations that are compared."""


class Comparison(NamedTuple):
    """Whether a view reveals no more than some combinations of updates, and whether it reveals no less."""

    no_more: bool
    no_less: bool


def counted(
    R: int, rule: Timeouts, situation: Situation, coalition: Collection[int], sums: Sequence[Sum]
) -> Comparison:
    """Compare what the server and a coalition see of an epoch with combinations of updates.

    The view reveals *no more* when its distribution is the same for all updates that agree on the combinations and on
    the coalition's updates. It reveals *no less* when no value of the view occurs both for some updates and for others
    that differ on these.

    Parameters
    ----------
    R : int
        A small modulus: all R^n values of n updates and masks are tried, at most 2^20.
    rule : Timeouts
    situation : Situation
    coalition : collection of int
        Users that pool what they know with the server.
    sums : sequence of Sum

    Raises
    ------
    ParameterError
        R is below 2, a coefficient is no integer, or there are more than 2^20 values to try or of the combinations.
    UnknownUser, DuplicateUser
        A combination names a user whose update did not reach the server, or the coalition one that got no key, or one
        twice.
    """
    R = validate.integer("R", R, 2, _MOST)
    coalition = validate.users("coalition", [*coalition], len(situation.holders))
    for one in validate.sequence("sums", sums, "mappings"):
        for user, coefficient in validate.mapping("sums", one).items():
            if user not in situation.uploaded:
                raise UnknownUser("sums", user, f"one of the users that uploaded, {situation.uploaded}")
            validate.secret_integer("sums", coefficient, "integers as coefficients")
    sums = [{user: divmod(coefficient, R)[1] for user, coefficient in one.items()} for one in sums]
    own: list[Sum] = [{user: 1} for user in situation.uploaded if user in coalition]
    if (len(sums) + len(own)) * log2(R) > log2(_MOST):
        raise ParameterError("sums", f"{len(sums)} combinations", f"at most {_MOST} values of them modulo R = {R}")
    names = [("x", user, 0) for user in situation.uploaded]
    updates = len(names)
    names += [("s", user, j) for user in situation.uploaded for j in _after(situation, user)]
    names += [("b", user, 0) for user in situation.uploaded if rule.own]
    if len(names) * log2(R) > log2(_MOST):
        raise ParameterError("R", R, f"such that R^n, for n = {len(names)} updates and masks, is at most {_MOST}")
    values = np.indices((R,) * len(names)).reshape(len(names), R ** len(names))
    seen = _codes(R, [_row(names, view) for view in _views(rule, situation, coalition)], values)
    known = _codes(R, [_row(names, {("x", user, 0): c for user, c in one.items()}) for one in (*sums, *own)], values)
    return _compared(_codes(R, np.eye(updates, len(names), dtype=np.int64), values), seen, known)


def _after(situation: Situation, user: int) -> range:
    return range(situation.at(user) + 1, situation.positions)


def _views(rule: Timeouts, situation: Situation, coalition: Collection[int]) -> Iterator[Mapping[Name, int]]:
    """Yield what is seen: masked updates, and each mask and update that the coalition knows."""
    held = {situation.at(user) for user in situation.users if user in coalition} | _released(rule, situation, PAIR)
    bare = _released(rule, situation, SELF)
    for user in situation.uploaded:
        known = user in coalition
        at, masks = situation.at(user), {("s", user, j): 1 for j in _after(situation, user)}
        before = {("s", other, at): -1 for other in situation.boxes(user)}
        yield {("x", user, 0): 1, **masks, **before} | ({("b", user, 0): 1} if rule.own else {})
        yield from ({mask: 1} for mask in masks if known or mask[2] in held)
        yield from [{("x", user, 0): 1}] * known
        yield from [{("b", user, 0): 1}] * (rule.own and (known or at in bare))


def _released(rule: Timeouts, situation: Situation, kind: str) -> set[int]:
    """Return the positions whose key of a kind the authority releases."""
    taken = {situation.at(user) for user in situation.accepted} if kind in rule.accepted else set[int]()
    others = set(range(situation.positions)) - {situation.at(user) for user in situation.accepted}
    return (taken | (others if kind in rule.others else set())) if situation.closed else set()


def _row(names: Sequence[Name], coefficients: Mapping[Name, int]) -> Numbers:
    return np.array([coefficients.get(name, 0) for name in names], dtype=np.int64)


def _codes(R: int, rows: Collection[Numbers] | Numbers, values: Numbers) -> Numbers:
    """Return one number for the values of the rows in each case; equal values get equal numbers."""
    if not len(rows):
        return np.zeros(values.shape[1], dtype=np.int64)
    digits = np.mod(np.stack(list(rows)) @ values, R)
    codes: Numbers = np.unique(R ** np.arange(len(digits)) @ digits, return_inverse=True)[1].reshape(-1)
    return codes


def _compared(updates: Numbers, seen: Numbers, known: Numbers) -> Comparison:
    """Compare how often each view occurs for each choice of updates; `known` is what the view may reveal of them."""
    counts = np.zeros((updates.max() + 1, seen.max() + 1), dtype=np.int64)
    np.add.at(counts, (updates, seen), 1)
    kinds = np.zeros(len(counts), dtype=np.int64)
    kinds[updates] = known
    groups = [counts[kinds == kind] for kind in range(known.max() + 1)]
    alike = all((group == group[0]).all() for group in groups)
    occurs = np.stack([group.any(axis=0) for group in groups])
    return Comparison(bool(alike), bool((occurs.sum(axis=0) == 1).all()))


guard(__name__)
