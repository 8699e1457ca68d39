"""Checks of what shares hide, when sampled values are not given bit for bit (spec/conventions.md, section 3)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import field as field_of
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import shares_length, vandermonde
from secagg_spec.conformance.checks.base import Caller, check, fail
from secagg_spec.conformance.outside import leaks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.privacy import echelon

_ENCODE = "mds.encode"
_SPARE = 33
"""How many encodings are drawn in addition to the number of elements that T users hold.

Uniform noise almost never fails. T users hold n = T L uniform elements of one encoding, so the differences of n + 33
encodings from the first one are n + 32 uniform independent vectors. They all lie in one of the (q**n - 1) / (q - 1)
hyperplanes with a probability below q**n / q**(n + 32) <= 3**-32 < 1e-15. For q <= 13, the values of one element for
two masks are disjoint with a probability below 2**q / 4**(n + 33) <= 2**-55: for each set of values, the first mask has
all of its values in the set, and the second has none. There are n < 120 elements. Over 8 cases the total is below
1e-12.
"""
_SMALL = 13
_FEW, _COLLUDERS, _SETS, _SAMPLES = 8, 3, 1000, 64
"""How many N, how many T for each N, how many coalitions of T users, and how many columns beyond T are inspected.

The shares that T users hold of a zero mask are T rows of T + 64 uniform elements. A given combination of the rows is
zero with probability q**-(T + 64), so the rows are dependent with probability below q**-64 <= 2**-101. For 27,000
coalitions the total is below 2**-86.
"""


def not_given(caps: Capabilities) -> bool:
    """Return whether no exact check decides the values of the shares (MDS-04)."""
    return not (vandermonde(caps) and caps.grade(_ENCODE) == "explicit")


@check("mds.encode/hides", "MDS-10", applies=not_given, examples=8, wide=True)
def hides(draw: Any, call: Caller) -> None:
    """The noise moves the shares of T users in every direction, and their values occur for another mask too."""
    code, d = strategies.code(draw, call.caps, _ENCODE), strategies.length(draw, 1, 3)
    masks = [strategies.vector(draw, code["q"], d) for _ in range(2)]
    users = strategies.subset(draw, range(code["N"]), code["T"], code["T"])
    seed = draw(st.integers(0, 2**32))
    call.by_relation = True
    held = [_held(call, code, mask, users, seed + at * 2**40) for at, mask in enumerate(masks)]
    _demand_span(code["q"], held[0], users)
    if code["q"] <= _SMALL:
        _demand_common_values(held, users)


@check("mds.encode/coalitions", "MDS-10", applies=not_given, examples=1, wide=True)
def coalitions(draw: Any, call: Caller) -> None:
    """For few users and for many, the shares of any T users vary in every direction from column to column."""
    call.by_relation = True
    space = strategies.Space(call.caps, (_ENCODE,))
    for code in _codes(space):
        q, N, T = (code[name] for name in ("q", "N", "T"))
        zeros = field_of(q).zeros((_SAMPLES + T) * (code["U"] - T))
        rows = encoding(call, code, zeros, list(range(N)), N).reshape(N, -1)
        for users in leaks.subsets(range(N), T, _SETS):
            if _rank(q, rows[list(users)]) < T:
                fail(f"modulo {q} the shares of {leaks.named(users)} are tied to each other, of {N} users with T = {T}")
        call.transcript.clear()


def _codes(space: strategies.Space) -> Iterator[dict[str, int]]:
    """Yield declared N, U and T: each N up to 8 and the largest N, each with its few smallest T."""
    rosters = space.rosters()
    few = {*rosters[:_FEW], rosters[-1]}
    sets = space.sets() or [{"N": N, "T": T} for N in few for T in space.colluders(N)[:_COLLUDERS]]
    for chosen in sets[: _FEW * _COLLUDERS]:
        N, T = chosen["N"], chosen["T"]
        q = space.moduli(prime=True, above=N)[0]
        yield {"q": q, "N": N, "U": chosen["U"] if "U" in chosen else space.thresholds(N, T, 0)[0], "T": T}


def _held(call: Caller, code: dict[str, int], mask: UintArray, users: list[int], seed: int) -> UintArray:
    """Return what some users together hold of a mask, one row for each encoding."""
    n = code["T"] * shares_length(code, mask.size)
    return np.array([encoding(call, code, mask, users, seed + at) for at in range(n + _SPARE)])


def encoding(call: Caller, code: dict[str, int], mask: UintArray, users: Sequence[int], seed: int) -> UintArray:
    """Return the shares of some users of one encoding, concatenated."""
    L = shares_length(code, mask.size)
    seed = int.from_bytes(sha256(seed.to_bytes(32, "little")).digest(), "little")
    q, source = code["q"], SeededSource(seed.to_bytes(32, "little"), "noise")
    rand = call.randomness(_ENCODE, {"noise": pack(strategies.seeded_elements(source, q, code["T"] * L), q)}, seed)
    shares = call.listed(_ENCODE, {**code, "mask": pack(mask, q)}, "shares", code["N"], rand)
    return np.concatenate([call.read(_ENCODE, shares[user], f"shares[{user}]", L, code["q"]) for user in users])


def _rank(q: int, rows: UintArray) -> int:
    field = field_of(q)
    return field.rank(rows) if q > MAX_MODULUS else echelon.rank(field, rows)


def _demand_span(q: int, held: UintArray, users: list[int]) -> None:
    """Fail when all encodings lie in one hyperplane: then the shares that the users hold are not uniform."""
    field = field_of(q)
    found = _rank(q, field.subtract(held[1:], np.broadcast_to(held[0], held[1:].shape).copy()))
    if found < held.shape[1]:
        what = f"{held.shape[0]} encodings of one mask differ for the users {sorted(users)} in {found} directions"
        fail(f"{what}; their shares have {held.shape[1]} elements, which uniform noise moves independently")


def _demand_common_values(held: list[UintArray], users: list[int]) -> None:
    """Fail when the values of an element of a share for one mask never occur for another mask."""
    for at in range(held[0].shape[1]):
        values = [set(rows[:, at].tolist()) for rows in held]
        if not values[0] & values[1]:
            who = users[at // (held[0].shape[1] // len(users))]
            one, other = map(sorted, values)
            fail(f"the share of user {who} has the values {one} or, for another mask, {other}")
