"""Checks of the quantiser (spec/conventions.md, section 4)."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.arithmetic.wide import MAX_WIDE, dequantize, quantize, ring
from secagg_spec.conformance.adapter.capabilities import EVERYTHING, Capabilities
from secagg_spec.conformance.adapter.wire import pack, pack_reals, unpack
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import VALID
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, check, fail, same
from secagg_spec.conformance.sessions.choices import among

_QUANTIZE, _DEQUANTIZE = "quantizer.quantize", "quantizer.dequantize"
_FINE = 2**40
"""Every other number is below this, so that rounding shows where larger ones are all integers."""


def _stochastic(caps: Capabilities) -> bool:
    return caps.policy("quantizer.rounding") == "stochastic" and caps.grade(_QUANTIZE) == "explicit"


def rounded(caps: Capabilities, y: Fraction) -> set[int]:
    """Return the integers that a number may become by the declared policy."""
    policy, low = caps.policy("quantizer.rounding"), math.floor(y)
    if policy == "floor":
        return {low}
    return {n for n in (low, low + 1) if policy == "stochastic" or abs(y - n) <= Fraction(1, 2)}


@check("quantizer.quantize/exact", "QNT-03", wide=True, applies=_stochastic)
def exact(draw: Any, call: Caller) -> None:
    """A number is rounded up exactly when the draw is below its fractional part."""
    numbers, x = _inputs(draw, call)
    draws = strategies.rounding(draw, x.size)
    want = quantize(x, level=numbers["level"], ring=ring(numbers["q"]), weight=numbers["weight"], rounding=draws)
    same("quantised values", _quantize(call, numbers, x, draws), want)


@check("quantizer.quantize/neighbours", "QNT-02", "QNT-12", wide=True)
def neighbours(draw: Any, call: Caller) -> None:
    """The result is one of the two integers next to c x, or by the policy the nearest or the lower."""
    numbers, x = _inputs(draw, call)
    draws = strategies.rounding(draw, x.size)
    got = ring(numbers["q"]).decode_signed(_quantize(call, numbers, x, draws))
    for at, (value, y) in enumerate(zip(got.tolist(), (x * float(numbers["level"])).tolist(), strict=True)):
        allowed = {math.floor(y), math.floor(y) + 1} if y != math.floor(y) else {int(y)}
        allowed = allowed & rounded(call.caps, Fraction(y))
        if value not in allowed:
            fail(f"element {at}: {float(x[at])!r} times {numbers['level']} was quantised to {value}", sorted(allowed))


def _powers(caps: Capabilities, q: int = MAX_WIDE) -> list[int]:
    """Return the declared levels that are powers of 2, for a modulus: with them every product is exact."""
    allowed = caps.range(_QUANTIZE, "level")
    most = max(allowed.values or (allowed.high or MAX_LEVEL,)) if q > MAX_MODULUS else MAX_LEVEL
    return [2**bits for bits in range(most.bit_length()) if 2**bits in allowed]


def _binary64(v: int) -> int:
    """Return the largest integer up to v in magnitude that binary64 holds."""
    cut = max(0, abs(v).bit_length() - 53)
    return (abs(v) >> cut << cut) * (1 if v > 0 else -1)


def _beyond(v: int) -> int:
    """Return the next integer above v >= 0 that binary64 holds."""
    return v + 1 if v < 2**53 else int(math.nextafter(_binary64(v), math.inf))


@check("quantizer.quantize/signed", "QNT-05", wide=True, applies=lambda caps: bool(_powers(caps)))
def signed(draw: Any, call: Caller) -> None:
    """An integer multiple of 1/c is encoded as its residue modulo q, and negative multiples are too."""
    numbers = _numbers(draw, call)
    bound, level = _bound(numbers), draw(among(_powers(call.caps, numbers["q"]) or _powers(call.caps)[:1]))
    values = [_binary64(draw(st.integers(-bound, bound))) for _ in range(strategies.length(draw, 1))]
    x = strategies.taken(call.caps, np.array(values, dtype=np.float64) / float(level))
    draws = strategies.rounding(draw, x.size)
    want = _residues(numbers["q"], [int(value) for value in x * float(level)])
    same("residues", _quantize(call, {**numbers, "level": level}, x, draws), want)


@check("quantizer.quantize/not-finite", "QNT-01", wide=True, examples=15)
def not_finite(draw: Any, call: Caller) -> None:
    """NaN, infinities, and numbers whose product with c overflows are refused."""
    numbers = _numbers(draw, call)
    bad = [math.nan, math.inf, -math.inf]
    bad += [1.7e308] if numbers["level"] > 1 else []
    x = np.zeros(strategies.length(draw, 1, 3))
    x[draw(st.integers(0, x.size - 1))] = draw(among(bad))
    _refused(call, numbers, x, reject.NOT_FINITE, "a number is not finite, or not once it is scaled")


@check("quantizer.quantize/range", "QNT-04", wide=True, examples=40)
def too_large(draw: Any, call: Caller) -> None:
    """A number is refused if a sum of total weight W of such numbers could wrap."""
    numbers = _numbers(draw, call)
    bound = _bound(numbers)
    next_one = bound + 1 + (bound >> 40)
    beyond = draw(among((next_one, next_one + 1, 2 * bound + 2, numbers["q"], max(10**12, 3 * bound))))
    x = np.zeros(strategies.length(draw, 1, 3))
    x[draw(st.integers(0, x.size - 1))] = draw(among((1, -1))) * (beyond + 0.75) / float(numbers["level"])
    x = strategies.taken(call.caps, x, away=True)
    why = f"{beyond} times W = {numbers['weight']} is beyond (q - 1) / 2"
    _refused(call, numbers, x, reject.NOT_FINITE, why)


@check(
    "quantizer.quantize/bound", *("QNT-04", "QNT-05"), wide=True, applies=lambda caps: bool(_powers(caps)), examples=1
)
def bound(draw: Any, call: Caller) -> None:
    """The largest and smallest integers that the total weight allows are encoded. The next ones beyond are refused."""
    moduli = sorted(strategies.moduli(call.caps.range(_QUANTIZE, "q"), prime=False))
    weights = strategies.weights(call.caps)
    levels = {q: _powers(call.caps, q)[0] for q in (*moduli[:3], *moduli[-4:]) if _powers(call.caps, q)}
    for q, level in levels.items():
        for weight in dict.fromkeys((*weights[:3], weights[-1])):
            numbers = {"q": q, "level": level, "weight": weight}
            most, zero = _binary64(_bound(numbers)), np.zeros(1)
            for v in dict.fromkeys((most, -most)):
                x = strategies.taken(call.caps, np.array([v / level]))
                kept = int(x[0] * float(level))
                same(f"{kept} modulo {q}", _quantize(call, numbers, x, zero), _residues(q, [kept]))
            for v in (_beyond(_bound(numbers)), -_beyond(_bound(numbers))):
                x = strategies.taken(call.caps, np.array([v / level]), away=True)
                why = f"{int(x[0] * float(level))} times W = {weight} is beyond (q - 1) / 2, and q is {q}"
                _refused(call, numbers, x, reject.NOT_FINITE, why)


@check("quantizer.quantize/draw", "QNT-09", wide=True, applies=_stochastic, examples=20)
def bad_draw(draw: Any, call: Caller) -> None:
    """A draw outside [0, 1) is refused, at any position in the list."""
    valid = VALID[_QUANTIZE](draw, call.caps)
    bad = draw(among((1.0, -(2.0**-53), 2.0, math.nan)))
    draws = unpack(valid.rand["rounding"], "<f8").copy()
    at = draw(st.integers(0, draws.size - 1))
    draws[at] = bad
    rand = {"rounding": pack_reals(draws)}
    call.refused(_QUANTIZE, valid.params, reject.NOT_FINITE, f"draw {at} of {draws.size} is {bad}", rand)


@check("quantizer.quantize/finer-draw", "QNT-10", wide=True, applies=_stochastic, examples=20)
def finer_draw(draw: Any, call: Caller) -> None:
    """A draw that is not a multiple of 2**-53 is refused, at any position in the list."""
    valid = VALID[_QUANTIZE](draw, call.caps)
    draws = unpack(valid.rand["rounding"], "<f8").copy()
    at = draw(st.integers(0, draws.size - 1))
    draws[at] = draw(among((2.0**-54, 0.25 + 2.0**-54, 2.0**-1074, 0.125 + 3 * 2.0**-55)))
    rand = {"rounding": pack_reals(draws)}
    call.refused(_QUANTIZE, valid.params, reject.NOT_FINITE, f"draw {at} of {draws.size} is {draws[at]!r}", rand)


@check("quantizer.quantize/level", "QNT-08", wide=True, examples=25)
def bad_level(draw: Any, call: Caller) -> None:
    """A level or a total weight that is not positive is refused."""
    valid = VALID[_QUANTIZE](draw, call.caps)
    level = {"level": draw(among(_bad_levels(call.caps, _QUANTIZE, valid.params["level"])))}
    changed = draw(among((level, level, {"weight": 0}, {"weight": -1})))
    rand = call.randomness(_QUANTIZE, valid.rand)
    call.refused(_QUANTIZE, {**valid.params, **changed}, reject.BAD_PARAM, f"{changed} is not allowed", rand)


@check("quantizer.dequantize/signed", "QNT-06", wide=True)
def decoder(draw: Any, call: Caller) -> None:
    """Elements up to (q - 1) // 2 decode as positive, larger ones as negative. A policy decides the middle one."""
    q, level = strategies.scale(draw, call.caps, _DEQUANTIZE)
    middle = (q - 1) // 2
    edges = sorted(edge for edge in {0, 1, middle - 1, middle, middle + 1, q - 1} if 0 <= edge < q)
    value = np.array([draw(among(edges)) for _ in range(strategies.length(draw, 1))], dtype=ring(q).dtype)
    format = draw(among(strategies.formats(call.caps)))
    value = strategies.within(format, value, q, level)
    want = _decoded(call.caps, value, q, level, format)
    params = {"q": q, "level": level, "format": format, "value": pack(value, q)}
    got = call.reals(_DEQUANTIZE, params, "x", "<f8" if params["format"] == "binary64" else "<f4")
    if got.size != value.size:
        fail(f"x has {got.size} entries; it must have {value.size}")
    signs = np.sign(got.astype(np.float64))
    if (signs != np.sign(want)).any():
        at = int(np.flatnonzero(signs != np.sign(want))[0])
        fail(f"element {at}: {int(value[at])} modulo {q} was decoded to {float(got[at])}", float(want[at]))


@check("quantizer.dequantize/quotient", "QNT-07", wide=True)
def quotient(draw: Any, call: Caller) -> None:
    """The decoded integer is divided by c and rounded once."""
    q, level = strategies.scale(draw, call.caps, _DEQUANTIZE)
    value = strategies.vector(draw, q, strategies.length(draw))
    format = draw(among(strategies.formats(call.caps)))
    value = strategies.within(format, value, q, level)
    params = {"q": q, "level": level, "format": format, "value": pack(value, q)}
    got = call.reals(_DEQUANTIZE, params, "x", "<f8" if format == "binary64" else "<f4").astype(np.float64)
    want = _decoded(call.caps, value, q, level, format)
    if got.size != want.size:
        fail(f"x has {got.size} entries; it must have {want.size}")
    same("decoded numbers", got, want)


def _every_quotient(caps: Capabilities) -> bool:
    """Return whether all moduli and levels and the format binary32 are declared."""
    free = all(caps.range(_DEQUANTIZE, name) == EVERYTHING for name in ("q", "level"))
    return free and "binary32" in caps.range(_DEQUANTIZE, "format")


@check("quantizer.dequantize/once", "QNT-07", wide=True, applies=_every_quotient, examples=40)
def rounded_once(draw: Any, call: Caller) -> None:
    """A quotient just next to the midpoint of two binary32 numbers is rounded to the nearer one.

    The quotients are n / 2**25 -+ 1 / (2**25 c) with n odd. No binary64 number is that close to the midpoint.
    """
    n = 2**24 + 1 + 2 * draw(st.integers(0, 2**21))
    sign = draw(among((1, -1)))
    level = (-sign * pow(n, -1, 2**25)) % 2**25 + 2**31 + 2**25 * draw(st.integers(0, 8))
    value = np.array([(level * n + sign) >> 25], dtype=np.uint64)
    params = {"q": 2**32, "level": level, "format": "binary32", "value": pack(value)}
    want = dequantize(value, level=level, ring=ring(2**32), format="binary32").astype(np.float64)
    got = call.reals(_DEQUANTIZE, params, "x", "<f4").astype(np.float64)
    if got.size != 1 or got[0] != want[0]:
        fail(f"{int(value[0])} / {level} was decoded to {got.tolist()}, must be [{float(want[0])!r}]", float(want[0]))


@check("quantizer.dequantize/level", "QNT-08", wide=True, examples=15)
def bad_level_back(draw: Any, call: Caller) -> None:
    """A level that is not positive is refused."""
    valid = VALID[_DEQUANTIZE](draw, call.caps)
    level = draw(among(_bad_levels(call.caps, _DEQUANTIZE, valid.params["level"])))
    call.refused(_DEQUANTIZE, {**valid.params, "level": level}, reject.BAD_PARAM, f"the level is {level}")


def _bad_levels(caps: Capabilities, operation: str, level: int) -> tuple[int, ...]:
    """Return levels outside the text's range, including some that are valid modulo a power of 2."""
    allowed = caps.range(operation, "level")
    if max(allowed.values or (allowed.high or 0,)) > MAX_LEVEL:
        return 0, -1, -level, MAX_WIDE + level, 2 * MAX_WIDE
    return 0, -1, 2**32 + 1, 2**33 + level, 2**64 + level, -level, level - 2**32


def _decoded(caps: Capabilities, value: UintArray, q: int, level: int, format: Any = "binary64") -> RealArray:
    """Return the decoded value that the text demands, with the declared sign of the middle element."""
    want = dequantize(value, level=level, ring=ring(q), format=format).astype(np.float64)
    if caps.policy("quantizer.middle") == "negative" and q % 2:
        larger = ring(MAX_MODULUS if q < MAX_MODULUS else MAX_WIDE)
        below = np.array([larger.modulus - (q + 1) // 2], dtype=larger.dtype)
        middle = dequantize(below, level=level, ring=larger, format=format).astype(np.float64)[0]
        want = np.where(value == (q - 1) // 2, middle, want)
    return want


def _numbers(draw: Any, call: Caller) -> dict[str, int]:
    q, level = strategies.scale(draw, call.caps, _QUANTIZE)
    return {"q": q, "level": level, "weight": strategies.weight(draw, call.caps)}


def _bound(numbers: dict[str, int]) -> int:
    return (numbers["q"] - 1) // 2 // numbers["weight"]


def _residues(q: int, values: list[int]) -> UintArray:
    return np.array([value % q for value in values], dtype=ring(q).dtype)


def _inputs(draw: Any, call: Caller) -> tuple[dict[str, int], RealArray]:
    """Draw numbers whose two neighbours are both inside the range."""
    numbers = _numbers(draw, call)
    bound = _bound(numbers)
    grid = max(0, (4 if bound < _FINE else 2) * (bound - 1))
    grids = (min(grid, _FINE), grid)
    quarters = [draw(st.integers(-grids[at % 2], grids[at % 2])) for at in range(strategies.length(draw, 1))]
    x = np.array(quarters, dtype=np.float64) / 4 / float(numbers["level"])
    if bound and draw(st.booleans()):
        x[0] = draw(among((1.75, -1.75))) * 2.0**-53 / numbers["level"]
    fragile = strategies.fragile(call.caps, bound, numbers["level"])
    return numbers, np.concatenate([strategies.taken(call.caps, x), fragile])


def _quantize(call: Caller, numbers: dict[str, int], x: RealArray, draws: RealArray) -> UintArray:
    rand = call.randomness(_QUANTIZE, {"rounding": pack_reals(draws)})
    return call.vector(_QUANTIZE, {**numbers, "x": pack_reals(x)}, "value", x.size, rand)


def _refused(call: Caller, numbers: dict[str, int], x: RealArray, codes: frozenset[str], why: str) -> None:
    rand = call.randomness(_QUANTIZE, {"rounding": pack_reals(np.zeros(x.size))})
    call.refused(_QUANTIZE, {**numbers, "x": pack_reals(x)}, codes, why, rand)
