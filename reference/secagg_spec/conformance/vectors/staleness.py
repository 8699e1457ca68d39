"""Vectors of the weight of a late update (spec/fedbuff.md, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.checks.base import BAD_PARAM, LENGTH, NOT_FINITE
from secagg_spec.conformance.vectors.base import VectorFile, begun, drawn_rounding

_WEIGHT = "staleness.weight"
_SMALLEST = 2.0**-53
_LARGEST = 1 - _SMALLEST
_NO_DRAW = 2.0
"""Marks a vector below whose draw is drawn."""


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("staleness", "The integer weights of late updates, decided exactly.")
    _functions(made)
    _thresholds(made)
    _whole(made)
    _beside(made)
    _refused_functions(made)
    _refused_numbers(made)
    _refused_draws(made)
    return made


def _params(kind: str, p: int, r: int, level: int, tau: int, start: int = 0) -> dict[str, Any]:
    fraction = {"kind": kind, "numerator": p, "denominator": r}
    return {**fraction, "start": str(start), "level": level, "tau": str(tau)}


def _rand(*draws: float) -> dict[str, str]:
    return {"rounding": pack_reals(np.array(draws, dtype=np.float64))}


def _valid(
    made: VectorFile,
    id: str,
    params: dict[str, Any],
    draw: float,
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
) -> None:
    given = float(drawn_rounding(id, 1)[0]) if draw == _NO_DRAW else draw
    made.valid(id, _WEIGHT, params, _rand(given), clauses=clauses, flags=flags, comment=comment)


def _functions(made: VectorFile) -> None:
    for name, kind, p, r, start in (
        ("constant", "constant", 0, 1, 0),
        ("reciprocal", "polynomial", 1, 1, 0),
        ("root", "polynomial", 1, 2, 0),
        ("power", "polynomial", 3, 2, 0),
        ("flat", "polynomial", 0, 1, 0),
        ("hinge", "hinge", 1, 2, 3),
        ("hinge-from-zero", "hinge", 10, 1, 0),
        ("flat-hinge", "hinge", 0, 1, 4),
    ):
        for level, tau in ((64, 0), (2**16, 2), (1000, 10), (2**32, 2**32 - 1)):
            id = f"staleness-{name}-{level}-{tau}"
            params = _params(kind, p, r, level, tau, start)
            comment = f"{kind} with {p}/{r} and b = {start}, at the level {level} and the staleness {tau}"
            _valid(made, id, params, _NO_DRAW, ["STL-04", "STL-06"], ["Basic"], comment)
    for tau in (3, 4):
        id, params = f"staleness-hinge-bend-{tau}", _params("hinge", 1, 2, 64, tau, 3)
        _valid(made, id, params, _NO_DRAW, ["STL-04"], ["Basic"], f"b = 3 and the staleness {tau}")


def _thresholds(made: VectorFile) -> None:
    clauses, flags = ["STL-06"], ["Rounding"]
    for name, draw in (("below", 0.25 - _SMALLEST), ("at", 0.25), ("above", 0.25 + _SMALLEST), ("zero", 0.0)):
        params = _params("polynomial", 1, 1, 65, 3)
        comment = f"65/4 has the fraction 1/4; the draw is {name} it" if draw else "65/4, and the draw 0"
        _valid(made, f"staleness-quarter-{name}", params, draw, clauses, flags, comment)
    third = math.floor(2**53 / 3)
    for k in (third, third + 1):
        comment = f"64/3 at the draw {k} / 2**53, with {third} / 2**53 the last one below 1/3"
        params = _params("polynomial", 1, 1, 64, 2)
        _valid(made, f"staleness-third-{k - third}", params, k * _SMALLEST, clauses, flags, comment)
    small = _params("polynomial", 1000, 1, 1, 2**32 - 1)
    _valid(made, "staleness-tiny", small, 0.0, clauses, flags, "2**-32000 is above 0, and so above the draw 0")
    _valid(made, "staleness-tiny-down", small, _SMALLEST, clauses, flags, "2**-32000 is below the draw 2**-53")
    slow = _params("polynomial", 1, 100, 2**32, 1)
    _valid(made, "staleness-slow", slow, _NO_DRAW, ["STL-04", "STL-06"], ["Basic"], "the hundredth root of 2")


def _whole(made: VectorFile) -> None:
    for p, r, level, tau in (
        (1, 1, 49, 48),
        (2, 1, 98, 6),
        (1, 2, 49, 2400),
        (1, 3, 9, 26),
        (1, 5, 20, 1023),
        (2, 3, 16, 7),
        (1, 1, 64, 7),
        (1, 2, 64, 3),
    ):
        params = _params("polynomial", p, r, level, tau)
        for name, draw in (("zero", 0.0), ("largest", _LARGEST)):
            id = f"staleness-whole-{p}-{r}-{level}-{tau}-{name}"
            comment = f"{level} / {1 + tau}**({p}/{r}) is an integer, so that it stays as it is, at the draw {draw!r}"
            _valid(made, id, params, draw, ["STL-05", "STL-06"], ["Whole"], comment)
    hinge = _params("hinge", 1, 10, 110, 12, 2)
    _valid(made, "staleness-whole-hinge", hinge, 0.0, ["STL-05"], ["Whole"], "110 / (10 / 10 + 1) is 55")


def _beside(made: VectorFile) -> None:
    for level, tau, draw, where in (
        (318281039, 1, _LARGEST, "just below an integer"),
        (1855077841, 1, _LARGEST, "just below an integer"),
        (768398401, 1, 0.0, "just above an integer"),
        (708158977, 2, 0.0, "just above an integer"),
        (2642885282, 2, 0.0, "just above an integer"),
    ):
        params = _params("polynomial", 1, 2, level, tau)
        comment = f"{level} over the square root of {1 + tau} is {where}, and in binary64 equal to it"
        _valid(made, f"staleness-beside-{level}", params, draw, ["STL-05", "STL-06"], ["Beside"], comment)


def _refused(
    made: VectorFile, id: str, params: dict[str, Any], clause: str, flag: str, comment: str, *draws: float
) -> None:
    rand = _rand(*draws) if draws else _rand(float(drawn_rounding(id, 1)[0]))
    codes = {"STL-07": NOT_FINITE, "MOD-07": LENGTH}.get(clause, BAD_PARAM)
    made.invalid(id, _WEIGHT, params, rand, codes=codes, clauses=[clause], flags=[flag], comment=comment)


def _refused_functions(made: VectorFile) -> None:
    for p, r in ((-1, 2), (1001, 1), (1, 101), (1, 0), (1, -2), (2, 4), (0, 2)):
        for kind in ("polynomial", "hinge"):
            id = f"staleness-fraction-{kind}-{p}-{r}".replace("--", "-minus-")
            comment = f"{p}/{r} is no fraction of the text, or not in lowest terms"
            _refused(made, id, _params(kind, p, r, 64, 3), "STL-01", "Fraction", comment)
    for id, params, comment in (
        ("staleness-constant-numerator", _params("constant", 1, 1, 64, 3), "a constant function has no exponent"),
        ("staleness-constant-start", _params("constant", 0, 1, 64, 3, 2), "a constant function has no b"),
        ("staleness-polynomial-start", _params("polynomial", 1, 1, 64, 3, 2), "a polynomial has no b"),
        ("staleness-unknown", _params("exponential", 0, 1, 64, 3), "there is no kind exponential"),
        ("staleness-capital", _params("Hinge", 1, 1, 64, 3), "there is no kind Hinge"),
    ):
        _refused(made, id, params, "STL-03", "Unused", comment)


def _refused_numbers(made: VectorFile) -> None:
    for name, level, tau, start in (
        ("level-zero", 0, 3, 1),
        ("level-negative", -1, 3, 1),
        ("level-too-large", 2**32 + 1, 3, 1),
        ("tau-negative", 64, -1, 1),
        ("tau-too-large", 64, 2**32, 1),
        ("start-negative", 64, 3, -1),
        ("start-too-large", 64, 3, 2**32),
    ):
        comment = f"the level is {level}, the staleness {tau}, and b is {start}"
        params = _params("hinge", 1, 2, level, tau, start)
        _refused(made, f"staleness-{name}", params, "STL-02", "Numbers", comment)


def _refused_draws(made: VectorFile) -> None:
    params = _params("polynomial", 1, 1, 64, 2)
    for name, draw in (
        ("one", 1.0),
        ("negative", -_SMALLEST),
        ("nan", math.nan),
        ("finer", 0.5 * _SMALLEST),
    ):
        _refused(made, f"staleness-draw-{name}", params, "STL-07", "Draw", f"the draw is {draw!r}", draw)
    id = "staleness-two-draws"
    _refused(made, id, params, "MOD-07", "OneDraw", "two draws for one weight", *drawn_rounding(id, 2).tolist())
    made.invalid(
        "staleness-no-draw",
        _WEIGHT,
        params,
        {"rounding": ""},
        codes=LENGTH,
        clauses=["MOD-07"],
        flags=["OneDraw"],
        comment="no draw",
    )
