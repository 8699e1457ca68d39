"""Checks of the quantiser of HeteroSAg, ``quantize.levels`` (spec/heterosag.md, section 3)."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import MAX_LEVELS, Range
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.cases.heterosag_functions import QUANTIZE, Quantised, level_counts, quantised
from secagg_spec.conformance.cases.heterosag_sessions import RANGES, bits, wrong_ranges
from secagg_spec.conformance.cases.requests import one_of, place_of, some
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, fail
from secagg_spec.conformance.sessions.choices import among

OUTSIDE_RANGE = reject.NOT_FINITE | {"bad_param"}
BAD_RANGE = reject.BAD_PARAM | reject.LENGTH | reject.MALFORMED | reject.TOO_FEW
"""The codes of the table of spec/adapter.md, section 5."""

_MANY = 1600
_OFF = 180
"""Nine times the largest deviation that the count of rounded-up numbers may have."""


def _explicit(caps: Capabilities) -> bool:
    return caps.grade(QUANTIZE) == "explicit"


def _drawing(caps: Capabilities) -> bool:
    return not _explicit(caps) and bool(level_counts(caps, few=True))


@check("quantize.levels/exact", "HSA-08", applies=_explicit)
def exact(draw: Any, call: Caller) -> None:
    """A number is quantised to the smallest integer at or above y - u, where u is the given draw."""
    chosen = quantised(draw, call.caps)
    entries = zip(_values(call, chosen), chosen.x.tolist(), chosen.draws.tolist(), strict=True)
    for at, (got, x, u) in enumerate(entries):
        _one_of(at, got, x, chosen, oracles.carried(x, chosen.levels, chosen.range, u))


@check("quantize.levels/neighbours", "HSA-08")
def neighbours(draw: Any, call: Caller) -> None:
    """A number is quantised to one of the two integers next to y, whatever is drawn."""
    chosen = quantised(draw, call.caps)
    for at, (got, x) in enumerate(zip(_values(call, chosen), chosen.x.tolist(), strict=True)):
        _one_of(at, got, x, chosen, oracles.beside(x, chosen.levels, chosen.range))


@check("quantize.levels/rate", "HSA-08", applies=_drawing, examples=12)
def rate(draw: Any, call: Caller) -> None:
    """Of many equal numbers, the part that is rounded up is the fractional part of y. Both integers occur."""
    K, range = int(draw(among(level_counts(call.caps, few=True)))), one_of(draw, RANGES)
    k, quarters = draw(st.integers(0, K - 2)), draw(st.integers(1, 3))
    low, high = Fraction(range.low), Fraction(range.high)
    x = float(low + (k + Fraction(quarters, 4)) / (K - 1) * (high - low))
    got = _values(call, Quantised(K, range, np.full(_MANY, x), np.zeros(_MANY)))
    y = oracles.place(x, K, range)
    up, wanted = sum(value > y for value in got), float(y - y // 1) * _MANY
    for at, value in enumerate(got):
        _one_of(at, value, x, Quantised(K, range, np.array([x]), np.zeros(1)), oracles.beside(x, K, range))
    if abs(up - wanted) > _OFF:
        fail(f"{up} of {_MANY} numbers with y = {float(y)} were rounded up; about {wanted:.0f} must be", wanted)


@check("quantize.levels/clipped", "HSA-07", examples=60)
def clipped(draw: Any, call: Caller) -> None:
    """With clip, a number outside the range is quantised as its nearest bound, even if it is infinite."""
    chosen = replace(quantised(draw, call.caps), clip=True)
    wild = draw(among(_outside(chosen.range)))
    at = draw(st.integers(0, chosen.x.size - 1))
    numbers = chosen.x.copy()
    numbers[at] = wild
    got = _values(call, replace(chosen, x=numbers))[at]
    bound = oracles.clipped(wild, chosen.range)
    _one_of(at, got, wild, chosen, oracles.beside(bound, chosen.levels, chosen.range))
    if _explicit(call.caps):
        _one_of(at, got, wild, chosen, oracles.carried(bound, chosen.levels, chosen.range, float(chosen.draws[at])))


def _outside(range: Range) -> list[float]:
    """Return numbers outside a range, including the nearest ones."""
    low, high = (float(np.nextafter(bound, away)) for bound, away in ((range.low, -np.inf), (range.high, np.inf)))
    width = range.high - range.low
    far = [x for x in (range.low - width, range.high + width, range.high + 1.0) if math.isfinite(x) and x != range.high]
    return [high, low, *far, math.inf, -math.inf]


@check("quantize.levels/outside", "HSA-07", examples=60)
def outside(draw: Any, call: Caller) -> None:
    """Without clip, a number outside the range is refused."""
    chosen = replace(quantised(draw, call.caps), clip=False)
    _refused_number(draw, call, chosen, float(draw(among(_outside(chosen.range)))))


@check("quantize.levels/not-a-number", "HSA-07", examples=20)
def not_a_number(draw: Any, call: Caller) -> None:
    """NaN is refused, with clip and without it."""
    _refused_number(draw, call, quantised(draw, call.caps), math.nan)


def _refused_number(draw: Any, call: Caller, chosen: Quantised, wrong: float) -> None:
    numbers = chosen.x.copy()
    at = place_of(draw, numbers.tolist())
    numbers[at] = wrong
    low, high = chosen.range.low, chosen.range.high
    why = f"x[{at}] is {wrong!r}, the range is [{low!r}, {high!r}], and clip is {str(chosen.clip).lower()}"
    _refused(call, replace(chosen, x=numbers), OUTSIDE_RANGE, why)


@check("quantize.levels/draw", "HSA-09", applies=_explicit, examples=25)
def bad_draw(draw: Any, call: Caller) -> None:
    """A draw outside [0, 1) is refused, at any position in the list."""
    chosen = quantised(draw, call.caps)
    draws = chosen.draws.copy()
    at = place_of(draw, draws.tolist())
    draws[at] = draw(among((1.0, -(2.0**-53), 2.0, -1.0, math.nan, math.inf)))
    _refused(call, replace(chosen, draws=draws), OUTSIDE_RANGE, f"draw {at} is {float(draws[at])!r}")


@check("quantize.levels/draws", "MOD-07", applies=_explicit, examples=15)
def too_few_draws(draw: Any, call: Caller) -> None:
    """A request is refused unless it has as many draws as numbers."""
    chosen = quantised(draw, call.caps)
    wrong = chosen.draws[:-1] if draw(st.booleans()) else np.append(chosen.draws, 0.5)
    why = f"{wrong.size} draws are given for {chosen.x.size} numbers"
    _refused(call, replace(chosen, draws=wrong), reject.LENGTH, why)


@check("quantize.levels/levels", "HSA-10", examples=25)
def bad_levels(draw: Any, call: Caller) -> None:
    """Fewer than 2 levels, or more than 2**31, are refused."""
    chosen = quantised(draw, call.caps)
    K = draw(among((1, 0, -1, -chosen.levels, MAX_LEVELS + 1, 2**32 + chosen.levels, 2**64 + chosen.levels)))
    _refused(call, chosen, reject.BAD_PARAM, f"there are {K} levels", levels=str(K))


@check("quantize.levels/range", "HSA-05", examples=30)
def bad_range(draw: Any, call: Caller) -> None:
    """A range is refused unless it has two finite bounds in ascending order."""
    chosen = replace(quantised(draw, call.caps), clip=True)
    wrong = wrong_ranges(chosen.range)
    for name in some(draw, wrong):
        _refused(call, chosen, BAD_RANGE, f"there is {name}", range=bits(*wrong[name]))


def _values(call: Caller, chosen: Quantised) -> list[int]:
    """Ask, and return one integer for each number."""
    result = call.result(QUANTIZE, chosen.params(), call.randomness(QUANTIZE, chosen.rand()))
    numbers: list[int] = call.read(QUANTIZE, result.get("value"), "value", chosen.x.size, 2**32).tolist()
    return numbers


def _one_of(at: int, got: int, x: float, chosen: Quantised, allowed: list[int]) -> None:
    if got not in allowed:
        bounds = f"[{chosen.range.low!r}, {chosen.range.high!r}]"
        carried = f"{x!r} in {bounds} with {chosen.levels} levels is carried as {got}"
        fail(f"element {at}: {carried}, must be {' or '.join(map(str, allowed))}", allowed)


def _refused(call: Caller, chosen: Quantised, codes: frozenset[str], why: str, **changed: Any) -> None:
    rand = call.randomness(QUANTIZE, chosen.rand())
    call.refused(QUANTIZE, chosen.params(**changed), codes, why, rand)
