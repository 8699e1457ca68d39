"""Checks of roundings that the implementation draws itself: how often it rounds up (QNT-11).

A number with fractional part f is rounded up with probability f. Of n such numbers, the count that is rounded up is
compared with n f by Chernoff's bound (`counting`).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import MAX_TAU
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals, unpack
from secagg_spec.conformance.cases import basecagg_functions, heterosag_rounds, neighbours, staleness, strategies
from secagg_spec.conformance.cases.heterosag_masking import reals
from secagg_spec.conformance.cases.neighbour_rounds import Average
from secagg_spec.conformance.checks.base import Caller, check, fail
from secagg_spec.conformance.checks.counting import ALARM_BITS, demand_shares
from secagg_spec.conformance.checks.heterosag_rounds import between
from secagg_spec.conformance.checks.outside_chance import own_draws, roundable
from secagg_spec.conformance.sessions.choices import among

_QUANTIZE, _ENCODE, _WEIGHT, _ROUND = "quantizer.quantize", "basecagg.encode", "staleness.weight", "heterosag.round"
_AVERAGE = neighbours.AVERAGE
_PARTS = (0.25, 0.375, 0.625, 0.75)
_EACH = 1000
"""Roundings for each fractional part: a rate of f**2 up to f = 5/8 stays undetected with probability below 2**-25."""

Counts = Mapping[Fraction, tuple[int, int]]
"""For each fractional part: how many numbers were rounded up, and how many there were.

For the product of two fractional parts: how often both neighbours with these parts were rounded up, and the number of
such pairs.
"""
Asker = Callable[[dict[str, Any] | None], Counts]
_Build = Callable[[Any, Caller], Asker | list[Asker]]


def _rate(
    operation: str, *clauses: str, applies: Callable[[Capabilities], bool], examples: int = 4
) -> Callable[[_Build], _Build]:
    """Register a check from a function that draws a case and returns what asks for roundings, one or several."""

    def register(build: _Build) -> _Build:
        def judge(draw: Any, call: Caller) -> None:
            built, seed = build(draw, call), draw(st.integers(0, 2**31))
            askers = built if isinstance(built, list) else [built]
            for asker in askers:
                up, among = Counter[Fraction](), Counter[Fraction]()
                while min(among.values(), default=0) < _EACH:
                    call.transcript.clear()
                    seed += 1
                    for part, (more, of) in asker(call.randomness(operation, {}, seed)).items():
                        up[part] += more
                        among[part] += of
                for part, n in among.items():
                    what = f"{operation}: rounding up, where its probability is {float(part):.4g},"
                    together = 2 * examples * len(among) * len(askers)
                    demand_shares([up[part]], [float(part)], what, of=n, together=together)
            call.by_relation = True
            call.limits.append(
                "a probability of rounding up that is off by less than 0.2 may go unseen; "
                f"false alarm at most 2**-{ALARM_BITS}"
            )

        judge.__doc__ = build.__doc__
        drawing = own_draws(operation)
        kwargs: Any = {"operations": (operation,), "applies": lambda caps: drawing(caps) and applies(caps)}
        check(f"{operation}/rate", *clauses, examples=examples, **kwargs)(judge)
        return build

    return register


def _stochastic(caps: Capabilities) -> bool:
    return caps.policy("quantizer.rounding") == "stochastic"


def _numbers(draw: Any, bound: int, level: int) -> RealArray:
    """Draw numbers whose neighbours are at most `bound`, divided by the level."""
    below = draw(st.integers(-bound, bound - 1) | st.sampled_from((-1, 0)))
    found: RealArray = (below + np.array(_PARTS)) / level
    return found


def _often(x: RealArray, level: int) -> tuple[RealArray, list[Fraction]]:
    """Return many copies of each number, and their products with c."""
    x = np.tile(x, _EACH + 1)
    return x, [Fraction(y) for y in (x * level).tolist()]


def _counted(what: str, got: list[int], wanted: list[Fraction]) -> Counts:
    """Count the numbers that were rounded up. Every result must be one of its two neighbours."""
    up, among = Counter[Fraction](), Counter[Fraction]()
    for at, (value, y) in enumerate(zip(got, wanted, strict=True)):
        if value not in (math.floor(y), math.floor(y) + 1):
            fail(f"{what}: element {at} is {value}, and {float(y)!r} was rounded", [math.floor(y), math.floor(y) + 1])
        up[y - math.floor(y)] += value - math.floor(y)
        among[y - math.floor(y)] += 1
    for (value, y), (other, z) in pairwise(zip(got, wanted, strict=True)):
        both = (y - math.floor(y)) * (z - math.floor(z))
        up[both] += (value - math.floor(y)) * (other - math.floor(z))
        among[both] += 1
    return {part: (up[part], among[part]) for part in among}


def _packed(call: Caller, operation: str, params: dict[str, Any], wanted: list[Fraction]) -> Asker:
    """Return the function that asks an operation which returns quantised numbers as elements."""
    ring = Ring(int(params["q"]))

    def ask(rand: dict[str, Any] | None) -> Counts:
        values = ring.decode_signed(call.vector(operation, params, "value", len(wanted), rand))
        return _counted(operation, values.tolist(), wanted)

    return ask


@_rate(_QUANTIZE, "QNT-11", "QNT-12", applies=lambda caps: _stochastic(caps) and bool(roundable(caps)))
def quantised(draw: Any, call: Caller) -> list[Asker]:
    """Of many equal numbers, the part that is rounded up equals their fractional part.

    Where only numbers of binary32 are taken, the widest range is asked for as well.
    """
    weight = strategies.weight(draw, call.caps)
    q, level = strategies.scale(draw, call.caps, _QUANTIZE)
    scale = {"q": q, "level": level, "weight": weight}
    scale = scale if scale["q"] > 2 * weight else roundable(call.caps)[0]
    largest = max(strategies.Space(call.caps, (_QUANTIZE,)).moduli(prime=False))
    widest = {"q": largest, "level": level, "weight": min(strategies.weights(call.caps))}
    return [_scaled(draw, call, one) for one in (scale, widest)[: 1 + strategies.binary32_only(call.caps)]]


def _scaled(draw: Any, call: Caller, scale: dict[str, int]) -> Asker:
    bound, level = (scale["q"] - 1) // 2 // scale["weight"], scale["level"]
    few = min(bound, 2**20) if strategies.binary32_only(call.caps) else bound
    x = strategies.taken(call.caps, _numbers(draw, few, level))
    x = np.concatenate([x, strategies.fragile(call.caps, bound, level)])
    x, wanted = _often(x[(x * level) % 1 != 0], level)
    return _packed(call, _QUANTIZE, {**scale, "x": pack_reals(x)}, wanted)


@_rate(_ENCODE, "QNT-11", "BSA-36", applies=_stochastic)
def encoded(draw: Any, call: Caller) -> Asker:
    """Of many equal numbers in an update, the part that is rounded up equals their fractional part."""
    chosen = replace(basecagg_functions.levels(draw, call.caps, _ENCODE), c_g=1)
    x, wanted = _often(_numbers(draw, chosen.budget, chosen.c_l), chosen.c_l)
    return _packed(call, _ENCODE, chosen.params("q", "K", "c_l", "c_g", x=pack_reals(x)), wanted)


@_rate(_WEIGHT, "QNT-11", "STL-04", applies=lambda caps: True, examples=2)
def weighed(draw: Any, call: Caller) -> Asker:
    """Of many equal weights, the part that is rounded up equals the fractional part of c_g s(tau)."""
    levels = staleness.levels(call.caps)
    level = levels[draw(st.integers(0, len(levels) - 1))]
    latenesses = [tau for tau in (1, 2, 3, 4, 6, 7, 2 * level - 1) if 1 / 5 < level / (tau + 1) % 1 < 4 / 5]
    tau = min(latenesses[draw(st.integers(0, len(latenesses) - 1))], MAX_TAU)
    params = {
        "kind": "polynomial",
        "numerator": 1,
        "denominator": 1,
        "start": "0",
        "level": str(level),
        "tau": str(tau),
    }

    def ask(rand: dict[str, Any] | None) -> Counts:
        weight = str(call.result(_WEIGHT, params, rand).get("weight"))
        return _counted(_WEIGHT, [int(weight) if weight.isdigit() else -1], [Fraction(level, tau + 1)])

    return ask


def _averages(caps: Capabilities) -> list[tuple[neighbours.Roster, neighbours.Scale]]:
    """Return rosters and scales for which the average shows how each user rounded."""
    found = [(roster, scale) for roster in neighbours.rosters(caps, _AVERAGE) for scale in _fine(caps, roster.N)]
    return found if _stochastic(caps) else []


def _fine(caps: Capabilities, N: int) -> list[neighbours.Scale]:
    return [scale for scale in neighbours.scales(caps, N) if 8 * N * scale.clip * scale.level < 2**40]


@_rate(_AVERAGE, "QNT-11", "SAG-29", applies=lambda caps: bool(_averages(caps)))
def averaged(draw: Any, call: Caller) -> Asker:
    """In a round with equal inputs, the part of them that is rounded up equals their fractional part.

    An average of numbers that were not rounded is right too.
    """
    roster, scale = neighbours.one_of(draw, _averages(call.caps))
    N, parts = roster.N, (np.array(_PARTS) - draw(st.integers(0, 1))).tolist()
    x = np.tile(np.repeat(np.array(parts) / scale.level, -(-_EACH // N)), (N, 1))
    wanted = [Fraction(y) for y in (x[0] * scale.level).tolist()]
    scene = Average(roster, scale, (scale.max_weight,) * N, x, np.zeros_like(x))

    def ask(rand: dict[str, Any] | None) -> Counts:
        average = unpack(call.result(_AVERAGE, scene.params(), rand).get("average"), "<f8")
        up, among = dict.fromkeys(wanted, 0.0), Counter[Fraction]()
        for mean, y in zip((average * scale.level * N).tolist(), wanted, strict=True):
            more = mean - N * math.floor(y)
            if not -1 / 4 <= more <= N + 1 / 4:
                fail(f"{_AVERAGE}: {mean / N!r} is no mean of roundings of {float(y)!r} by {N} users")
            up[y] += more
            among[y] += N
        return {y - math.floor(y): (round(up[y]), among[y]) for y in among}

    return ask


@_rate(_ROUND, "QNT-11", "HSA-08", applies=lambda caps: True)
def summed(draw: Any, call: Caller) -> Asker:
    """Over many rounds with the same inputs, the mean of the cells' sums is the sum of the numbers themselves."""
    p = replace(heterosag_rounds.parameters(draw), d=_EACH // 4)
    scene = reals(draw, p, Fraction(draw(among(_PARTS))))
    least, most = scene.sums(0), scene.sums(1)
    part = scene.steps[0][0] - math.floor(scene.steps[0][0])

    def ask(rand: dict[str, Any] | None) -> Counts:
        found = between(call, scene, call.result(_ROUND, scene.params(), rand).get("sums"))
        up, among = (sum(int((a - b).sum()) for a, b in zip(more, least, strict=True)) for more in (found, most))
        return {part: (up, among)}

    return ask
