"""Checks of the weight of a late update (spec/fedbuff.md, section 2)."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import MAX_TAU, admissible_weights, realised_weight
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.cases import staleness as scenes
from secagg_spec.conformance.cases.staleness import DRAWS, WEIGHT, Late
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail
from secagg_spec.conformance.sessions.choices import among


def _explicit(caps: Capabilities) -> bool:
    return caps.grade(WEIGHT) == "explicit"


def _weight(call: Caller, late: Late) -> int:
    """Ask for a weight."""
    text = call.result(WEIGHT, late.params(), call.randomness(WEIGHT, late.rand)).get("weight")
    if not isinstance(text, str) or not re.fullmatch("0|[1-9][0-9]{0,30}", text, re.ASCII):
        raise CheckFailed("protocol", f"{WEIGHT}: weight is {text!r}, no decimal string of an integer from 0 on")
    return int(text)


def _described(late: Late) -> str:
    function = late.function
    rate = f"{function.numerator}/{function.denominator}" + (f" from {function.start} on" if function.start else "")
    return f"the weight of a {function.kind} function with {rate}, level {late.level}, staleness {late.tau}"


@check("staleness.weight/exact", "STL-04", "STL-06", applies=_explicit)
def exact(draw: Any, call: Caller) -> None:
    """A weight is rounded up exactly when the draw is below the exact fractional part, which no binary64 number is."""
    late = scenes.late(draw, call.caps)
    want, got = realised_weight(late.function, late.level, late.tau, late.draw), _weight(call, late)
    if got != want:
        fail(f"{_described(late)} at the draw {late.draw!r} is {got}, must be {want}", str(want))


@check("staleness.weight/neighbours", "STL-04", "STL-05")
def neighbours(draw: Any, call: Caller) -> None:
    """The weight is one of the two integers next to c_g s(tau), or c_g s(tau) itself when it is an integer."""
    late = scenes.late(draw, call.caps)
    allowed, got = admissible_weights(late.function, late.level, late.tau), _weight(call, late)
    if got not in allowed:
        fail(f"{_described(late)} is {got}", [str(weight) for weight in allowed])


@check("staleness.weight/non-increasing", "STL-04", applies=_explicit, examples=40)
def non_increasing(draw: Any, call: Caller) -> None:
    """For a fixed draw, a later update never weighs more. An update that is not late has weight c_g."""
    first = scenes.late(draw, call.caps)
    later = Late(first.function, first.level, scenes.staleness(draw), first.draw)
    taus = sorted({0, first.tau, later.tau})
    weights = [_weight(call, Late(first.function, first.level, tau, first.draw)) for tau in taus]
    if weights[0] != first.level or weights != sorted(weights, reverse=True):
        fail(f"{_described(first)} and at staleness {taus} is {weights}")


@check("staleness.weight/fraction", "STL-01", examples=25)
def fractions(draw: Any, call: Caller) -> None:
    """An exponent or a slope that is out of range or not in lowest terms is refused."""
    late = scenes.late(draw, call.caps)
    kind = draw(among(("polynomial", "hinge")))
    p, r = draw(
        st.sampled_from(((-1, 2), (1001, 1), (1, 101), (1, 0), (1, -2), (2, 4), (0, 2), (100, 100), (2**31 - 1, 1)))
    )
    _refused(call, late, {"kind": kind, "numerator": p, "denominator": r, "start": 0}, f"{p}/{r} is not allowed")


@check("staleness.weight/numbers", "STL-02", examples=25)
def numbers(draw: Any, call: Caller) -> None:
    """A level, a staleness or a start out of range is refused."""
    late = scenes.late(draw, call.caps)
    name = draw(among(("level", "tau", "start")))
    wrong = (0, -1, 2**32 + 1, 2**64 + late.level) if name == "level" else (-1, MAX_TAU + 1, 2**64)
    changed: dict[str, Any] = {name: draw(among(wrong))}
    hinge = {"kind": "hinge", "numerator": 1, "denominator": 2} if name == "start" else {}
    _refused(call, late, {**changed, **hinge}, f"{changed} is not allowed")


@check("staleness.weight/unused", "STL-03", examples=25)
def unused(draw: Any, call: Caller) -> None:
    """An unknown kind is refused, and so are numbers that the kind does not have."""
    late = scenes.late(draw, call.caps)
    plain = {"numerator": 0, "denominator": 1, "start": 0}
    options = (
        {"kind": "constant", **plain, "numerator": 1},
        {"kind": "constant", **plain, "start": 3},
        {"kind": "polynomial", **plain, "numerator": 1, "start": 3},
        *({"kind": kind, **plain} for kind in ("", "Constant", "exponential", "0")),
    )
    changed = options[draw(st.integers(0, len(options) - 1))]
    _refused(call, late, changed, f"{changed} is no staleness function")


@check("staleness.weight/draw", "STL-07", applies=_explicit, examples=20)
def draws(draw: Any, call: Caller) -> None:
    """A draw that is not a multiple of 2**-53 in [0, 1) is refused."""
    late = scenes.late(draw, call.caps)
    bad = draw(among((1.0, -1 / DRAWS, 2.0, math.nan, 0.5 / DRAWS, 2.0**-60, math.inf)))
    rand = {"rounding": pack_reals(np.array([bad]))}
    call.refused(WEIGHT, late.params(), reject.NOT_FINITE, f"the draw is {bad!r}", rand)


@check("staleness.weight/draws", "MOD-07", applies=_explicit, examples=10)
def one_draw(draw: Any, call: Caller) -> None:
    """A request is refused unless it has exactly one draw."""
    late = scenes.late(draw, call.caps)
    count = draw(among((0, 2, 3)))
    rand = {"rounding": pack_reals(np.full(count, late.draw))}
    call.refused(WEIGHT, late.params(), reject.LENGTH, f"there are {count} draws for one weight", rand)


def _refused(call: Caller, late: Late, changed: Mapping[str, Any], why: str) -> None:
    rand = call.randomness(WEIGHT, late.rand)
    call.refused(WEIGHT, late.params(**changed), reject.BAD_PARAM, why, rand)
