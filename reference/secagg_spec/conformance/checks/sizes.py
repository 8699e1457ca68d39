"""Checks at the sizes of real models: vectors of a million elements, and as many users as are declared (CNF-85)."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import ring
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import strategies, sums
from secagg_spec.conformance.cases.neighbours import SUM, nobody, sum_moduli, sum_rosters
from secagg_spec.conformance.cases.requests import shares_length
from secagg_spec.conformance.checks.base import Caller, check, fail, same, suits
from secagg_spec.conformance.checks.outside_chance import roundable
from secagg_spec.conformance.checks.sums import judge_sum
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, WIDE
from secagg_spec.crypto.entropy import SeededSource, draw_rounding

SIZES = (10**4, 10**5, 10**6)
_SHORT = SIZES[:2]
"""The sizes of what costs several products for each element."""
_USERS = 1000
_PATIENCE, _SECONDS = 20, 10.0
"""A size is asked for when one of a tenth took at most this part of the time for an answer."""


def _grown(call: Caller, sizes: tuple[int, ...], ask: Callable[[int], None]) -> None:
    """Ask for one size after the other, and leave out those for which the answers would take too long."""
    most = getattr(call.connection, "timeout", _SECONDS) / _PATIENCE
    for size in sizes:
        call.transcript.clear()
        start = time.monotonic()
        ask(size)
        took = time.monotonic() - start
        if took > most and size < sizes[-1]:
            call.limits.append(f"more than {size:,} elements were left out, because these took {took:.1f} s")
            break
    call.transcript.clear()


def _elements(seed: int, label: str, q: int, n: int) -> UintArray:
    return strategies.seeded_elements(SeededSource(seed.to_bytes(4, "little"), label), q, n)


def _seed(draw: Any) -> int:
    return int(draw(st.integers(0, 2**32 - 1)))


def _pairs(operation: str, clause: str, first: str, second: str, result: str, exact: str) -> None:
    prime = operation == "lightsecagg.mask"

    @check(f"{operation}/size", clause, examples=1, wide=operation.startswith(WIDE))
    def size(draw: Any, call: Caller) -> None:
        """A million elements give what each of them gives, and ten thousand modulo a number above 2**32."""
        q, seed = max(strategies.Space(call.caps, (operation,)).moduli(prime=prime)), _seed(draw)

        def ask(n: int) -> None:
            a, b = (_elements(seed, name, q, n) for name in (first, second))
            params = {"q": q, first: pack(a, q), second: pack(b, q)}
            want = getattr(ring(q), exact)(a, b)
            same(f"{result} of {n:,} elements", call.vector(operation, params, result, n), want)

        _grown(call, SIZES if q <= MAX_MODULUS else SIZES[:1], ask)


_pairs("field.add", "MOD-03", "a", "b", "value", "add")
_pairs("field.multiply", "MOD-03", "a", "b", "value", "multiply")
_pairs("lightsecagg.mask", "LSA-02", "update", "mask", "masked", "add")


@check("quantizer.quantize/size", "QNT-02", applies=lambda caps: bool(roundable(caps)), examples=1)
def quantize(draw: Any, call: Caller) -> None:
    """A million numbers are each quantised to an integer next to it."""
    scale, seed = roundable(call.caps)[0], _seed(draw)
    modulo = Ring(scale["q"])

    def ask(n: int) -> None:
        whole = _elements(seed, "numbers", 2, n).astype(np.float64)
        x = strategies.taken(call.caps, (whole - 0.25 * (whole > 0)) / scale["level"])
        draws = draw_rounding(SeededSource(seed.to_bytes(4, "little"), "rounding"), n)
        rand = call.randomness("quantizer.quantize", {"rounding": pack_reals(draws)})
        got = modulo.decode_signed(
            call.vector("quantizer.quantize", {**scale, "x": pack_reals(x)}, "value", n, rand)
        ).astype(np.float64)
        y = x * scale["level"]
        same(f"integers next to {n:,} numbers", got, np.clip(got, np.floor(y), np.ceil(y)))

    _grown(call, SIZES, ask)


_BOTH = ("mds.encode", "mds.decode")


@check("mds/size", "MDS-05", operations=_BOTH, applies=suits(*_BOTH), examples=1)
def code(draw: Any, call: Caller) -> None:
    """Any U shares of a vector of 100,000 elements decode to it."""
    numbers, seed = strategies.code(draw, call.caps, _BOTH), _seed(draw)
    users = strategies.subset(draw, range(numbers["N"]), numbers["U"], numbers["U"])
    params = {name: numbers[name] for name in ("q", "N", "U", "T")}

    def ask(d: int) -> None:
        vector, L = _elements(seed, "vector", params["q"], d), shares_length(numbers, d)
        rand = call.randomness(
            "mds.encode", {"noise": pack(_elements(seed, "noise", params["q"], params["T"] * L))}, seed
        )
        shares = call.result("mds.encode", {**params, "mask": pack(vector)}, rand).get("shares") or []
        if len(shares) != params["N"]:
            fail(f"there are {len(shares)} shares, must be {params['N']}")
        given = {"d": d, "users": users, "shares": [shares[user] for user in users]}
        same(f"vector of {d:,} elements", call.vector("mds.decode", {**params, **given}, "mask", d), vector)

    _grown(call, _SHORT, ask)


@check("secagg.sum/size", "ADP-41", examples=1)
def total(draw: Any, call: Caller) -> None:
    """The sum of updates of 100,000 elements is right, and so is that of as many users as are declared, up to 1,000."""
    seed, R = _seed(draw), max(sum_moduli(call.caps, SUM))
    N, t = min(sum_rosters(call.caps, SUM))

    def ask(d: int) -> None:
        rows = tuple(sums.elements(R, d, seed, user) for user in range(N))
        judge_sum(call, sums.Sum(R, N, t, rows, nobody(SUM_PHASES)))

    _grown(call, _SHORT, ask)
    for N, t in _largest(call.caps):
        rows = tuple(sums.elements(R, 3, seed, user) for user in range(N))
        judge_sum(call, sums.Sum(R, N, t, rows, nobody(SUM_PHASES)))
    call.transcript.clear()


def _largest(caps: Capabilities) -> Iterator[tuple[int, int]]:
    """Yield the largest declared number of users up to 1,000, with a threshold, if it is declared."""
    sets = [(chosen["N"], chosen["t"]) for chosen in caps.parameter_sets(SUM)]
    N, t = (caps.range(SUM, name) for name in ("N", "t"))
    if not sets and (N.values is not None or N.high is not None):
        most = min(_USERS, max(N.values) if N.values is not None else int(N.high or 0))
        sets = [(most, least) for least in (most // 2 + 1, most, 1) if least in t and most in N][:1]
    fitting = [pair for pair in sets if pair[0] <= _USERS and pair[0] in N and pair[1] in t]
    yield from [max(fitting)] if fitting else []
