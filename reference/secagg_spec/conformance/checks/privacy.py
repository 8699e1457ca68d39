"""Checks of what shares hide, where no sampled value is given bit for bit (spec/conventions.md, section 3)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance import cases
from secagg_spec.conformance.capabilities import Capabilities
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail
from secagg_spec.conformance.checks.requests import shares_length, vandermonde
from secagg_spec.conformance.wire import pack
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.privacy.echelon import rank

_ENCODE = "mds.encode"
_SPARE = 33
"""Encodings beyond the number of elements that T users hold.

Uniform noise almost never fails. T users hold n = T L uniform elements of one encoding, so the differences of n + 33
encodings from the first one are n + 32 uniform independent vectors. They all lie in one of the (q**n - 1) / (q - 1)
hyperplanes with a probability below q**n / q**(n + 32) <= 3**-32 < 1e-15. With q <= 13, the values of one element for
two masks are disjoint with a probability below 2**q / 4**(n + 33) <= 2**-55: for each set of values, the first mask has
all of its values in it, and the second none. There are n < 120 elements. In 8 cases this is less than 1e-12 together.
"""
_SMALL = 13


def _not_given(caps: Capabilities) -> bool:
    """Return whether no exact check decides what the shares are (MDS-04)."""
    return not (vandermonde(caps) and caps.grade(_ENCODE) == "explicit")


@check("mds.encode/hides", "MDS-10", operations=(_ENCODE,), applies=_not_given, examples=8)
def hides(draw: Any, call: Caller) -> None:
    """The shares of T users vary with the noise in every direction, and have values that another mask gives as well."""
    code, d = cases.code(draw, call.caps, _ENCODE), cases.length(draw, 1, 3)
    masks = [cases.vector(draw, code["q"], d) for _ in range(2)]
    users = cases.subset(draw, range(code["N"]), code["T"], code["T"])
    seed = draw(st.integers(0, 2**32))
    call.by_relation = True
    held = [_held(call, code, mask, users, seed + at * 2**40) for at, mask in enumerate(masks)]
    _demand_span(code["q"], held[0], users)
    if code["q"] <= _SMALL:
        _demand_common_values(held, users)


def _held(call: Caller, code: dict[str, int], mask: UintArray, users: list[int], seed: int) -> UintArray:
    """Return what some users hold of a mask together, one row for each encoding."""
    n = code["T"] * shares_length(code, mask.size)
    return np.array([_encoding(call, code, mask, users, seed + at) for at in range(n + _SPARE)])


def _encoding(call: Caller, code: dict[str, int], mask: UintArray, users: list[int], seed: int) -> UintArray:
    L = shares_length(code, mask.size)
    seed = int.from_bytes(sha256(seed.to_bytes(32, "little")).digest(), "little")
    noise = draw_elements(SeededSource(seed.to_bytes(32, "little"), "noise"), Ring(code["q"]), (code["T"] * L,))
    rand = call.randomness(_ENCODE, {"noise": pack(noise)}, seed)
    shares = call.result(_ENCODE, {**code, "mask": pack(mask)}, rand).get("shares")
    if not isinstance(shares, list) or len(shares) != code["N"]:
        raise CheckFailed("wrong_value", f"{_ENCODE}: there must be {code['N']} shares")
    return np.concatenate([call.read(_ENCODE, shares[user], f"shares[{user}]", L, code["q"]) for user in users])


def _demand_span(q: int, held: UintArray, users: list[int]) -> None:
    """Fail when all encodings lie in one plane: what users hold is then not uniform."""
    field = PrimeField(q)
    found = rank(field, field.subtract(held[1:], np.broadcast_to(held[0], held[1:].shape).copy()))
    if found < held.shape[1]:
        what = f"{held.shape[0]} encodings of one mask differ for the users {sorted(users)} in {found} directions"
        fail(f"{what}; their shares have {held.shape[1]} elements, which uniform noise moves independently")


def _demand_common_values(held: list[UintArray], users: list[int]) -> None:
    """Fail when an element of a share never has a value that it has for another mask."""
    for at in range(held[0].shape[1]):
        values = [set(rows[:, at].tolist()) for rows in held]
        if not values[0] & values[1]:
            who = users[at // (held[0].shape[1] // len(users))]
            fail(
                f"the share of user {who} has the values {sorted(values[0])} or, for another mask, {sorted(values[1])}"
            )
