"""Vectors of the quantiser (spec/conventions.md, section 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.checks.base import BAD_PARAM, LENGTH, NONCANONICAL, NOT_FINITE
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    SMALL,
    VectorFile,
    begun,
    drawn,
    drawn_rounding,
)

_STOCHASTIC = {"quantizer.rounding": "stochastic"}
_POSITIVE = {"quantizer.middle": "positive"}
_SMALLEST = 2.0**-53


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("quantizer", "Real numbers to elements by stochastic rounding, and back.")
    _rounding(made)
    _range(made)
    _refused_numbers(made)
    _back(made)
    return made


def _rounding(made: VectorFile) -> None:
    for q, level in ((BYTE, 3), (LARGE[0], 2**10), (LARGE[2], 10**6), (2**32, 2**16)):
        id = f"quantize-{q}-{level}"
        spread = (np.array(drawn(id, "x", 2**32, 8), dtype=np.float64) - 2.0**31) * 2.0**-31
        x = spread * ((q - 1) // 2 // 4 - 1) / level
        _valid(
            made, id, q, level, 4, x, drawn_rounding(id, 8), ["QNT-03", "QNT-05"], ["Basic", "Negative"], "random reals"
        )
    quarters = np.array([0.25, 0.25, 0.75, 0.75, -0.25, -0.25, -1.75, -1.75])
    draws = np.array([0.25, 0.25 - _SMALLEST, 0.75, 0.5, 0.75, 0.75 - _SMALLEST, 0.25, 0.0])
    comment = "the draw equals the fraction, or is the next one below it"
    _valid(made, "quantize-boundary", BYTE, 1, 1, quarters, draws, ["QNT-03"], ["Integers", "Negative"], comment)
    integers = np.array([0.0, 1.0, -1.0, 63.0, -64.0, -0.0])
    for name, draw in (("zero", 0.0), ("largest", 1 - _SMALLEST)):
        flat = np.full(integers.size, draw)
        comment = f"integers stay as they are, at the draw {draw!r}"
        _valid(made, f"quantize-integers-{name}", BYTE, 2, 1, integers, flat, ["QNT-02"], ["Integers"], comment)
    tiny = np.array([-1.75 * _SMALLEST, -0.5 * _SMALLEST, 0.5 * _SMALLEST, -(2.0**-1074)])
    largest = np.array([1 - 2 * _SMALLEST, 1 - _SMALLEST, 0.0, 1 - _SMALLEST])
    comment = "numbers beside zero whose fraction is no binary64 number"
    _valid(made, "quantize-near-zero", BYTE, 1, 1, tiny, largest, ["QNT-03"], ["NearZero"], comment)
    comment = "no numbers have no elements"
    _valid(made, "quantize-empty", BYTE, 1, 1, np.zeros(0), np.zeros(0), ["QNT-02"], ["Integers"], comment)


def _range(made: VectorFile) -> None:
    for q, level, weight in ((SMALL, 1, 1), (BYTE, 4, 5), (LARGE[2], 2**16, 100)):
        bound = (q - 1) // 2 // weight
        name, draws = f"{q}-{weight}", np.array([0.0, 0.0])
        inside = np.array([bound, -bound]) / level
        comment = f"the largest magnitude, {bound} / {level} with W = {weight}"
        _valid(
            made, f"quantize-bound-{name}", q, level, weight, inside, draws, ["QNT-04", "QNT-05"], ["Bound"], comment
        )
        for sign in (1, -1):
            x = np.array([0.0, sign * (bound + 1)]) / level
            comment = f"{sign * (bound + 1)} / {level} is beyond {bound} / {level}, with W = {weight}"
            id = f"quantize-beyond-{name}-{'positive' if sign > 0 else 'negative'}"
            _invalid(
                made, id, q, level, weight, x, draws, NOT_FINITE, ["QNT-04", "ERR-02"], ["TooLarge", "Bound"], comment
            )
    comment = "-2**31 is -R/2, and beyond (R - 1) // 2 in magnitude"
    x, draws = np.array([-(2.0**31)]), np.array([0.0])
    _invalid(made, "quantize-half", 2**32, 1, 1, x, draws, NOT_FINITE, ["QNT-04"], ["Half"], comment)
    comment = "50.5 is inside the bound 50, and rounds up beyond it at the draw 0"
    x, draws = np.array([50.5]), np.array([0.0])
    _invalid(
        made, "quantize-rounds-beyond", 101, 1, 1, x, draws, NOT_FINITE, ["QNT-04"], ["TooLarge", "Bound"], comment
    )
    comment = "2**70 is far beyond the range, and beyond 64-bit integers"
    x = np.array([2.0**70])
    _invalid(made, "quantize-huge", LARGE[2], 1, 1, x, draws, NOT_FINITE, ["QNT-04"], ["TooLarge", "Bound"], comment)


def _refused_numbers(made: VectorFile) -> None:
    bad = {"nan": math.nan, "infinite": math.inf, "minus-infinite": -math.inf, "overflow": 1.7e308}
    for name, value in bad.items():
        id = f"quantize-{name}"
        x, draws = _reals(id)
        x[1] = value
        comment = f"{value!r} at level 2" + (" overflows once scaled" if name == "overflow" else "")
        _invalid(made, id, BYTE, 2, 1, x, draws, NOT_FINITE, ["QNT-01", "ERR-02"], ["NotFinite"], comment)
    for name, level, weight in (
        ("level-zero", 0, 1),
        ("level-negative", -1, 1),
        ("level-too-large", 2**32 + 1, 1),
        ("weight-zero", 1, 0),
        ("weight-negative", 1, -1),
    ):
        id = f"quantize-{name}"
        x, draws = _reals(id)
        numbers, q = (x * 2.0**-32, LARGE[2]) if level > 2**32 else (x, BYTE)
        comment = f"the level is {level}, the total weight is {weight}"
        _invalid(made, id, q, level, weight, numbers, draws, BAD_PARAM, ["QNT-08"], ["LevelAndWeight"], comment)
    for name, draw in (("one", 1.0), ("negative", -_SMALLEST), ("nan", math.nan)):
        id = f"quantize-draw-{name}"
        x, draws = _reals(id)
        draws[1] = draw
        _invalid(made, id, BYTE, 1, 1, x, draws, NOT_FINITE, ["QNT-09"], ["Draw"], f"a draw is {draw!r}")
    for name, draw in (("half-a-step", 2.0**-54), ("between-steps", 0.25 + 2.0**-54), ("smallest", 2.0**-1074)):
        id = f"quantize-draw-{name}"
        x, draws = _reals(id)
        draws[1] = draw
        _invalid(made, id, BYTE, 1, 1, x, draws, NOT_FINITE, ["QNT-10"], ["FinerDraw"], f"a draw is {draw!r}")
    id = "quantize-few-draws"
    x, draws = _reals(id)
    _invalid(made, id, BYTE, 1, 1, x, draws[:1], LENGTH, ["MOD-07"], ["DrawForEach"], "three numbers and one draw")
    id = "quantize-modulus"
    x, draws = _reals(id)
    comment = "the modulus is 2**32 + 1"
    _invalid(made, id, 2**32 + 1, 1, 1, x, draws, BAD_PARAM, ["MOD-01"], ["Modulus"], comment)


def _reals(id: str) -> tuple[RealArray, RealArray]:
    """Draw three numbers in (-1, 1) and a draw for each."""
    return 2 * drawn_rounding(f"{id}/x", 3) - 1, drawn_rounding(id, 3)


def _back(made: VectorFile) -> None:
    for q in (SMALL, 8, BYTE, LARGE[2], 2**32):
        middle = (q - 1) // 2
        edges = np.array([0, 1, middle - 1, middle, middle + 1, q - 1], dtype=np.uint64)
        comment = f"0, 1, the elements around the middle and the largest one, modulo {q}"
        policy = _POSITIVE if q % 2 else {}
        for format in ("binary64", "binary32"):
            flags, id = ["Middle"], f"dequantize-edges-{q}-{format}"
            _decoded(made, id, q, 1, format, edges, ["QNT-06"], flags, comment, policy)
    for q, level in ((BYTE, 3), (LARGE[0], 10**6), (LARGE[2], 10), (2**32, 2**32)):
        for format in ("binary64", "binary32"):
            id = f"dequantize-{q}-{level}-{format}"
            value, clauses = drawn(id, "value", q, 8), ["QNT-07", "QNT-06"]
            comment, policy = f"random elements, divided by {level}", _POSITIVE if q % 2 else {}
            _decoded(made, id, q, level, format, value, clauses, ["Quotient"], comment, policy)
    once = np.array([1082130496], dtype=np.uint64)
    comment = "the example of the text: rounded twice, it ends one step off"
    flags = ["OneRounding"]
    _decoded(made, "dequantize-once", 2**32, 2164260863, "binary32", once, ["QNT-07"], flags, comment)
    negative = np.array([2**32 - 1082130496], dtype=np.uint64)
    comment = "the same with the other sign"
    _decoded(made, "dequantize-once-negative", 2**32, 2164260863, "binary32", negative, ["QNT-07"], flags, comment)
    _refused_back(made)


def _refused_back(made: VectorFile) -> None:
    for name, level in (("zero", 0), ("negative", -3), ("too-large", 2**32 + 1)):
        id = f"dequantize-level-{name}"
        value = drawn(id, "value", BYTE, 4)
        _refused(made, id, BYTE, level, value, BAD_PARAM, "QNT-08", "LevelAndWeight", f"the level is {level}")
    id = "dequantize-noncanonical"
    value = drawn(id, "value", BYTE, 4)
    value[2] = BYTE
    _refused(made, id, BYTE, 2, value, NONCANONICAL, "MOD-06", "NonCanonical", "a value is R itself")
    id = "dequantize-modulus"
    value = drawn(id, "value", LARGE[0], 3)
    _refused(made, id, 2**32 + 1, 1, value, BAD_PARAM, "MOD-01", "Modulus", "the modulus is 2**32 + 1")


def _refused(
    made: VectorFile,
    id: str,
    q: int,
    level: int,
    value: UintArray,
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    params = {"q": q, "level": level, "format": "binary64", "value": pack(value)}
    made.invalid(id, "quantizer.dequantize", params, codes=codes, clauses=[clause], flags=[flag], comment=comment)


def _decoded(
    made: VectorFile,
    id: str,
    q: int,
    level: int,
    format: str,
    value: UintArray,
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
    policy: dict[str, str] | None = None,
) -> None:
    params = {"q": q, "level": level, "format": format, "value": pack(value)}
    made.valid(id, "quantizer.dequantize", params, clauses=clauses, flags=flags, comment=comment, policy=policy)


def _request(q: int, level: int, weight: int, x: RealArray, draws: RealArray) -> tuple[dict[str, Any], dict[str, str]]:
    return {"q": q, "level": level, "weight": weight, "x": pack_reals(x)}, {"rounding": pack_reals(draws)}


def _valid(
    made: VectorFile,
    id: str,
    q: int,
    level: int,
    weight: int,
    x: RealArray,
    draws: RealArray,
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
) -> None:
    request = _request(q, level, weight, x, draws)
    made.valid(id, "quantizer.quantize", *request, clauses=clauses, flags=flags, comment=comment, policy=_STOCHASTIC)


def _invalid(
    made: VectorFile,
    id: str,
    q: int,
    level: int,
    weight: int,
    x: RealArray,
    draws: RealArray,
    codes: frozenset[str],
    clauses: Sequence[str],
    flags: Sequence[str],
    comment: str,
) -> None:
    request = _request(q, level, weight, x, draws)
    policy = (
        _STOCHASTIC
        if {"QNT-09", "QNT-10"} & set(clauses) or "MOD-07" in clauses or id == "quantize-rounds-beyond"
        else None
    )
    made.invalid(
        id, "quantizer.quantize", *request, codes=codes, clauses=clauses, flags=flags, comment=comment, policy=policy
    )
