"""Planted bugs of staleness functions and of the weights that they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from secagg_spec.arithmetic import staleness
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack_reals, unpack
from secagg_spec.errors import ParameterError

Function = Callable[..., Any]
_MODULE = "secagg_spec.arithmetic.staleness"
_BUILD = "secagg_spec.conformance.targets.reference:build"
_TESTS = "tests/arithmetic/test_staleness.py::"
_RECIPROCAL = Staleness.polynomial(1)
_HINGE = Staleness.hinge("1/2", 2)


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or the name of its failure."""
    try:
        return call()
    except ParameterError as error:
        return type(error).__name__


def _weights(function: Staleness, c_g: int, tau: int) -> list[int]:
    """Return the weights at the ends and in the middle of all draws."""
    return [staleness.realised_weight(function, c_g, tau, draw) for draw in (0.0, 0.5, 1 - 2.0**-53)]


def _value(function: Staleness, tau: int) -> float:
    """Return s(tau) as a binary64 number, as most implementations compute it."""
    rate = function.numerator / function.denominator
    if function.kind == "polynomial":
        return float((1 + tau) ** -rate)
    return 1 / (rate * max(tau - function.start, 0) + 1) if function.kind == "hinge" else 1.0


# ----------------------------------------------------------------------------------------------------------- rounding


@mutant(
    "weight-by-binary64-power",
    "STL-06",
    "wrong blame: powers are those of a library, so that an honest party's weight is called wrong on another machine",
    f"{_MODULE}:realised_weight",
    lambda: _weights(_RECIPROCAL, 49, 48),
    also=("STL-05",),
    kind="sum",
    source="arithmetic: powers of a library",
)
def _binary64(right: Function) -> Function:
    def wrong(function: Staleness, c_g: int, tau: int, draw: float) -> int:
        right(function, c_g, tau, draw)
        y = c_g * _value(function, tau)
        return math.floor(y) + (draw < y - math.floor(y))

    return wrong


@mutant(
    "weight-to-nearest",
    "STL-06",
    "bias: the weight is rounded to the nearest integer, whatever the draw is",
    f"{_MODULE}:realised_weight",
    lambda: _weights(_RECIPROCAL, 64, 2),
    kind="sum",
    source="other rule: rounding to the nearest integer",
)
def _nearest(right: Function) -> Function:
    def wrong(function: Staleness, c_g: int, tau: int, draw: float) -> int:
        right(function, c_g, tau, draw)
        return int(right(function, c_g, tau, 0.5))

    return wrong


@mutant(
    "weight-always-down",
    "STL-06",
    "bias: the fraction is cut off, so that late updates count too little",
    f"{_MODULE}:realised_weight",
    lambda: _weights(_RECIPROCAL, 64, 2),
    kind="sum",
    source="weak draw: always rounded down",
)
def _down(right: Function) -> Function:
    def wrong(function: Staleness, c_g: int, tau: int, draw: float) -> int:
        right(function, c_g, tau, draw)
        return staleness.floor_weight(function, c_g, tau)

    return wrong


@mutant(
    "weight-up-at-the-threshold",
    "STL-06",
    "bias: the draw is compared with <=, so that integers move up at the draw 0",
    f"{_MODULE}:realised_weight",
    lambda: _weights(_RECIPROCAL, 64, 3),
    also=("STL-05",),
    kind="sum",
    source="off by one: <= in place of <",
)
def _at_most(right: Function) -> Function:
    def wrong(function: Staleness, c_g: int, tau: int, draw: float) -> int:
        weight = int(right(function, c_g, tau, draw))
        n, d, r = function.power(tau)
        at_threshold = (2**53 * weight + int(draw * 2**53)) ** r * d == (2**53 * c_g) ** r * n
        return weight + int(at_threshold)

    return wrong


# ---------------------------------------------------------------------------------------------------------- functions


@mutant(
    "staleness-without-one",
    "STL-04",
    "wrong weights: the function is tau**-alpha, so that an update that is one round late counts in full",
    f"{_MODULE}:Staleness.power",
    lambda: _weights(_RECIPROCAL, 64, 2),
    kind="sum",
    source="off by one",
)
def _without_one(right: Function) -> Function:
    def wrong(self: Staleness, tau: int) -> Any:
        right(self, tau)
        return right(self, max(tau - 1, 0) if self.kind == "polynomial" else tau)

    return wrong


@mutant(
    "hinge-without-one",
    "STL-04",
    "wrong weights: the hinge is 1 / (a (tau - b)) beyond b, so that late updates count more than others",
    f"{_MODULE}:Staleness.power",
    lambda: _weights(_HINGE, 64, 5),
    kind="sum",
    source="off by one",
)
def _hinge(right: Function) -> Function:
    def wrong(self: Staleness, tau: int) -> Any:
        n, d, r = right(self, tau)
        steep = self.kind == "hinge" and d > self.denominator
        return (n, d - self.denominator, r) if steep else (n, d, r)

    return wrong


@mutant(
    "hinge-from-zero",
    "STL-04",
    "wrong weights: the hinge falls from 0 on and not from b on",
    f"{_MODULE}:Staleness.power",
    lambda: _weights(_HINGE, 64, 5),
    kind="sum",
    source="other rule: the hinge falls from 0 on",
)
def _from_zero(right: Function) -> Function:
    def wrong(self: Staleness, tau: int) -> Any:
        n, d, r = right(self, tau)
        late = self.kind == "hinge" and d > self.denominator
        return (n, self.numerator * tau + self.denominator, r) if late else (n, d, r)

    return wrong


@mutant(
    "exponent-turned-round",
    "STL-04",
    "wrong weights: the exponent is r/p and not p/r",
    f"{_MODULE}:Staleness.power",
    lambda: _weights(Staleness.polynomial("1/2"), 64, 3),
    kind="sum",
    source="order",
)
def _turned(right: Function) -> Function:
    def wrong(self: Staleness, tau: int) -> Any:
        n, d, r = right(self, tau)
        return (1, (1 + tau) ** r, self.numerator) if self.kind == "polynomial" and self.numerator else (n, d, r)

    return wrong


# ----------------------------------------------------------------------------------------------------------- refusals


def _weight_answer(**changed: Any) -> object:
    params = {"kind": "hinge", "numerator": 1, "denominator": 2, "start": "1", "level": "64", "tau": "4", **changed}
    rand = {"rounding": "00" * 8 if "rounding" not in params else params.pop("rounding")}
    answer = reference.build().answer({"id": 1, "op": "staleness.weight", "params": params, "rand": rand})
    return answer.get("result", answer.get("reject", {}).get("code"))


def _weighing(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Function], Function]:
    """Return what makes a reference that changes what it is asked for a weight, where it would refuse that."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()
            asked = adapter._handlers["staleness.weight"]

            @adapter.operation("staleness.weight")
            def weight(**arguments: Any) -> Any:
                return asked(**change(arguments))

            return adapter

        return wrong

    return build


def _nearest_fraction(arguments: dict[str, Any]) -> dict[str, Any]:
    """Bring a fraction to the nearest one that is allowed."""
    p, r = max(arguments["numerator"], 0), max(arguments["denominator"], 1)
    nearest = min(Fraction(p, r), Fraction(1000)).limit_denominator(100)
    if arguments["kind"] == "constant":
        return arguments
    return {**arguments, "numerator": nearest.numerator, "denominator": nearest.denominator}


mutant(
    "fraction-brought-near",
    "STL-01",
    "disagreement: an exponent that is not allowed is replaced by the nearest one, in silence",
    _BUILD,
    lambda: _weight_answer(numerator=1, denominator=101),
    kind="acceptance",
    source="silent repair",
)(_weighing(_nearest_fraction))


def _clamped(arguments: dict[str, Any]) -> dict[str, Any]:
    """Bring the level, the staleness and b into their ranges."""
    highs = {"level": (1, 2**32), "tau": (0, 2**32 - 1), "start": (0, 2**32 - 1)}
    inside = {name: str(min(max(int(arguments[name]), low), high)) for name, (low, high) in highs.items()}
    return {**arguments, **inside}


mutant(
    "weight-numbers-clamped",
    "STL-02",
    "wrong weights: an update from the future counts as a fresh one, and a level of 0 as 1",
    _BUILD,
    lambda: _weight_answer(tau="-1"),
    kind="acceptance",
    source="silent repair",
)(_weighing(_clamped))


def _tidied(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take no notice of numbers that a kind does not have; a kind that is unknown is constant."""
    if arguments["kind"] == "hinge":
        return arguments
    if arguments["kind"] == "polynomial":
        return {**arguments, "start": "0"}
    return {**arguments, "kind": "constant", "numerator": 0, "denominator": 1, "start": "0"}


mutant(
    "staleness-extras-ignored",
    "STL-03",
    "disagreement: a kind that is unknown is constant, and numbers that a kind does not have are passed over",
    _BUILD,
    lambda: _weight_answer(kind="exponential"),
    kind="acceptance",
    source="silent repair",
)(_weighing(_tidied))


def _clipped(arguments: dict[str, Any]) -> dict[str, Any]:
    """Move draws to the nearest ones below that are allowed."""
    draws = np.clip(np.nan_to_num(unpack(arguments["rand"]["rounding"], "<f8")), 0, 1 - 2.0**-53)
    return {**arguments, "rand": {"rounding": pack_reals(np.floor(draws * 2**53) / 2**53)}}


mutant(
    "weight-draw-clipped",
    "STL-07",
    "bias: a draw that is none is moved to the nearest one below",
    _BUILD,
    lambda: _weight_answer(rounding=pack_reals(np.array([1.0]))),
    kind="acceptance",
    source="silent repair",
)(_weighing(_clipped))


def _first_draw(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take the first draw, and 0 when there is none."""
    return {**arguments, "rand": {"rounding": (arguments["rand"]["rounding"] + "00" * 8)[:16]}}


mutant(
    "weight-of-the-first-draw",
    "MOD-07",
    "disagreement: of several draws the first one is taken, and 0 when there is none",
    _BUILD,
    lambda: _weight_answer(rounding=""),
    kind="acceptance",
    source="silent repair",
)(_weighing(_first_draw))


@mutant(
    "weight-of-honest-party-refused",
    "STL-08",
    "wrong blame: a party calls only the lower of the two integers right",
    f"{_MODULE}:admissible_weights",
    lambda: staleness.admissible_weights(_RECIPROCAL, 64, 2),
    _TESTS + "test_admissible_weights_are_what_some_draw_gives",
    kind="refusal",
    source="clause too strict",
)
def _lower(right: Function) -> Function:
    return lambda function, c_g, tau: right(function, c_g, tau)[:1]
