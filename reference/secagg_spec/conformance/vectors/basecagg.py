"""Vectors of BASecAgg, one function at a time: budgets, what a user asks of a buffer, answers, recovery, averages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases.basecagg_functions import Levels
from secagg_spec.conformance.cases.requests import encode, shares_length
from secagg_spec.conformance.checks import basecagg as codes
from secagg_spec.conformance.checks.base import (
    BAD_PARAM,
    BAD_SHARE,
    LENGTH,
    NONCANONICAL,
    NOT_FINITE,
    OUTSIDE,
    TOO_FEW,
    TWICE,
)
from secagg_spec.conformance.checks.lightsecagg import NO_ELEMENTS
from secagg_spec.conformance.sessions.basecagg_buffers import Buffer, Entry, Recovery, half, weighted
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    VectorFile,
    begun,
    drawn,
    drawn_rounding,
)
from secagg_spec.conformance.vectors.code import VANDERMONDE

_ENCODE, _MASK, _COMBINE, _RECOVER = (f"basecagg.{name}" for name in ("encode", "mask", "combine", "recover"))
_STOCHASTIC = {"quantizer.rounding": "stochastic"}
_SLOWLY = Staleness.polynomial(1)
_TEXT = Levels(LARGE[2], 10, 64, 2**16)
"""The numbers of the text's example of a budget: B = 3355443."""
_ENTRIES = ((0, 7, 3), (2, 6, 2), (3, 5, 1), (5, 7, 3))
_FRESH = ((0, 7, 3), (2, 7, 3), (3, 7, 3), (5, 7, 3))
_CODE = {"q": LARGE[2], "N": 6, "U": 4, "T": 2, "d": 5}


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("basecagg", "BASecAgg, one function at a time: updates, masks, buffers, answers, recovery.")
    _encoded(made)
    _masked(made)
    _combined(made)
    _refused_sets(made)
    _refused_entries(made)
    _refused_shares(made)
    _refused_numbers(made)
    _recovered(made)
    _averages(made)
    _refused_recoveries(made)
    return made


# ------------------------------------------------------------------------------------------------------------- budgets


def _spread(id: str, n: int) -> RealArray:
    """Draw n numbers in (-1, 1)."""
    return 2 * drawn_rounding(f"{id}/x", n) - 1


def _encoded(made: VectorFile) -> None:
    for chosen in (Levels(BYTE, 3, 4), Levels(LARGE[1], 5, 1000, 1000), _TEXT):
        id = f"basecagg-encode-{chosen.q}"
        x = _spread(id, 8) * (chosen.budget - 1) / chosen.c_l
        _quantised(made, id, chosen, x, ["Quantised"], f"random numbers; B is {chosen.budget}")
    id, ends = "basecagg-encode-bound", np.array([_TEXT.budget, -_TEXT.budget]) / _TEXT.c_l
    _quantised(made, id, _TEXT, ends, ["Budget"], "the ends of the budget of the text's example, 3355443 / 65536")
    for name, sign in (("positive", 1), ("negative", -1)):
        id = f"basecagg-encode-beyond-{name}"
        x = np.append(_spread(id, 2), sign * (_TEXT.budget + 1) / _TEXT.c_l)
        comment = f"{sign * (_TEXT.budget + 1)} / 65536 is beyond the budget 3355443 / 65536"
        _not_quantised(made, id, _TEXT, x, NOT_FINITE, "BSA-36", "TooLarge", comment)
    for name, changed, comment in (
        ("cl-zero", {"c_l": 0}, "c_l is 0"),
        ("cl-negative", {"c_l": -1}, "c_l is -1"),
        ("cl-too-large", {"c_l": 2**32 + 1}, "c_l is above 2**32"),
        *_coarse(_TEXT),
    ):
        id = f"basecagg-encode-{name}"
        _not_quantised(made, id, _TEXT, _spread(id, 3) * 2.0**-33, BAD_PARAM, "BSA-02", "Levels", comment, **changed)


def _coarse(chosen: Levels) -> tuple[tuple[str, dict[str, int], str], ...]:
    """Return changes of K and c_g that BSA-02 forbids."""
    most = half(chosen.q)
    return (
        ("cg-zero", {"c_g": 0}, "c_g is 0"),
        ("cg-negative", {"c_g": -1}, "c_g is -1"),
        ("cg-too-large", {"c_g": most // chosen.K + 1}, "K c_g is above (q - 1) / 2"),
        ("k-too-large", {"K": most // chosen.c_g + 1}, "K c_g is above (q - 1) / 2"),
    )


def _drawn_encoding(id: str, chosen: Levels, x: RealArray, **changed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    params = chosen.params("q", "K", "c_l", "c_g", x=pack_reals(x), **changed)
    return params, {"rounding": pack_reals(drawn_rounding(id, x.size))}


def _quantised(made: VectorFile, id: str, chosen: Levels, x: RealArray, flags: Sequence[str], comment: str) -> None:
    request = _drawn_encoding(id, chosen, x)
    made.valid(id, _ENCODE, *request, clauses=["BSA-36"], flags=flags, comment=comment, policy=_STOCHASTIC)


def _not_quantised(
    made: VectorFile,
    id: str,
    chosen: Levels,
    x: RealArray,
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
    **changed: int,
) -> None:
    request = _drawn_encoding(id, chosen, x, **changed)
    made.invalid(id, _ENCODE, *request, codes=codes, clauses=[clause], flags=[flag], comment=comment)


def _carried(id: str, chosen: Levels, n: int) -> UintArray:
    """Draw n elements that fit."""
    values = drawn(id, "update", 2 * chosen.budget + 1, n).astype(np.int64) - chosen.budget
    return Ring(chosen.q).encode_signed(values)


def _masked(made: VectorFile) -> None:
    for q, K, c_g in ((BYTE, 3, 4), (LARGE[0], 4, 100), (LARGE[1], 5, 1000), (LARGE[2], 10, 64)):
        id, chosen = f"basecagg-mask-{q}", Levels(q, K, c_g)
        params = _mask_params(id, chosen, _carried(id, chosen, 8))
        comment = f"random integers up to {chosen.budget} in magnitude"
        made.valid(id, _MASK, params, clauses=["BSA-04"], flags=["Masked"], comment=comment)
    id, B = "basecagg-mask-bound", _TEXT.budget
    ends = np.array([B, _TEXT.q - B, 0, 1, _TEXT.q - 1], dtype=np.uint64)
    comment = "3355443 and -3355443, the ends of the text's example of a budget"
    params = _mask_params(id, _TEXT, ends)
    made.valid(id, _MASK, params, clauses=["BSA-04", "BSA-06"], flags=["Budget"], comment=comment)
    for name, value in (("positive", B + 1), ("negative", _TEXT.q - B - 1), ("middle", half(_TEXT.q))):
        id = f"basecagg-mask-beyond-{name}"
        update = np.append(_carried(id, _TEXT, 3), np.uint64(value))
        comment = f"an element is {value}, and B is 3355443"
        _not_masked(made, id, _mask_params(id, _TEXT, update), NOT_FINITE, "BSA-06", "TooLargeToMask", comment)
    _refused_masks(made)


def _refused_masks(made: VectorFile) -> None:
    small = Levels(BYTE, 3, 4)
    for size in (7, 9):
        id = f"basecagg-mask-length-{size}"
        params = _mask_params(id, small, _carried(id, small, size), mask=pack(drawn(id, "mask", BYTE, 8)))
        comment = f"the update has {size} elements, the mask 8"
        _not_masked(made, id, params, LENGTH, "BSA-05", "MaskLength", comment)
    for name in ("update", "mask"):
        id = f"basecagg-mask-noncanonical-{name}"
        vectors = {"update": _carried(id, small, 5), "mask": drawn(id, "mask", BYTE, 5)}
        vectors[name][3] = BYTE
        params = _mask_params(id, small, vectors["update"], mask=pack(vectors["mask"]))
        _not_masked(made, id, params, NONCANONICAL, "BSA-05", "NonCanonical", f"the {name} holds q itself")
    id = "basecagg-mask-empty"
    params = _mask_params(id, small, np.zeros(0, dtype=np.uint64))
    _not_masked(made, id, params, NO_ELEMENTS, "BSA-01", "NoElements", "there are no elements")
    for name, changed, comment in _coarse(_TEXT):
        id = f"basecagg-mask-{name}"
        update = np.array([0, 1, _TEXT.q - 1], dtype=np.uint64)
        params = _mask_params(id, _TEXT, update, **changed)
        _not_masked(made, id, params, BAD_PARAM, "BSA-02", "Levels", comment)


def _mask_params(id: str, chosen: Levels, update: UintArray, **changed: Any) -> dict[str, Any]:
    mask = pack(drawn(id, "mask", chosen.q, update.size))
    return chosen.params("q", "K", "c_g", **{"update": pack(update), "mask": mask, **changed})


def _not_masked(
    made: VectorFile, id: str, params: dict[str, Any], codes: frozenset[str], clause: str, flag: str, comment: str
) -> None:
    made.invalid(id, _MASK, params, codes=codes, clauses=[clause], flags=[flag], comment=comment)


# ------------------------------------------------------------------------------------------------------------- buffers


def _buffer(id: str, entries: Sequence[tuple[int, int, int]] = _ENTRIES, **changed: Any) -> Buffer:
    """Return a buffer of four of six users, and the shares that a user holds: those of the entries and of user 4."""
    numbers: dict[str, Any] = {
        "q": LARGE[2],
        "N": 6,
        "T": 1,
        "K": 4,
        "c_g": 3,
        "tau_max": 2,
        "function": _SLOWLY,
        "round": 7,
    }
    numbers |= changed
    stamps = {4: numbers["round"], **{user: stamp for user, stamp, _ in entries}}
    shares = drawn(id, "held", numbers["q"], len(stamps), 4)
    held = {user: (stamps[user], share) for user, share in zip(sorted(stamps), shares, strict=True)}
    return Buffer(**numbers, entries=tuple(Entry(*entry) for entry in entries), held=held)


def _combined(made: VectorFile) -> None:
    for q in (BYTE, *LARGE):
        id = f"basecagg-combine-{q}"
        _answered(made, _buffer(id, q=q), id, ["Weighted"], f"weights 3, 2, 1 and 3 modulo {q}")
    for q in LARGE:
        id, c_g = f"basecagg-combine-large-{q}", half(q) // 4
        chosen = _buffer(id, ((0, 7, c_g), (2, 7, c_g), (3, 6, c_g // 2), (5, 7, c_g)), q=q, c_g=c_g)
        _answered(made, chosen, id, ["LargeWeights"], f"the largest level for q = {q} and K = 4")
    last = 2**32 - 1
    hinge, root = Staleness.hinge("1/2", 1), Staleness.polynomial("1/2")
    oldest = 2**31 - 1
    for id, chosen, comment in (
        ("round-0", _buffer("basecagg-combine-round-0", _at((0, 0, 0, 0), (3, 3, 3, 3)), round=0), "round 0"),
        (
            "last-round",
            _buffer("basecagg-combine-last-round", _at((last, last - 1, last - 2, last), (3, 2, 1, 3)), round=last),
            "the last round that a message can carry",
        ),
        (
            "fresh-only",
            _buffer("basecagg-combine-fresh-only", _at((9, 9, 9, 9), (3, 3, 3, 3)), round=9, tau_max=0),
            "tau_max is 0",
        ),
        (
            "oldest",
            _buffer(
                "basecagg-combine-oldest",
                _at((0, oldest, 1, oldest), (3, 3, 3, 3)),
                round=oldest,
                tau_max=oldest,
                function=Staleness.constant(),
            ),
            "the largest tau_max, of a constant function",
        ),
        (
            "hinge",
            _buffer("basecagg-combine-hinge", _at((7, 6, 5, 4), (64, 64, 43, 32)), c_g=64, tau_max=3, function=hinge),
            "a hinge at 1: 64 up to there, then 42 or 43, then 32",
        ),
        (
            "root",
            _buffer("basecagg-combine-root", _at((7, 6, 5, 4), (64, 46, 36, 32)), c_g=64, tau_max=3, function=root),
            "square roots: 64, 45 or 46, 36 or 37, and 32",
        ),
        (
            "enough",
            _buffer("basecagg-combine-enough", _ENTRIES[:3], K=3),
            "K is T + 2",
        ),
    ):
        _answered(made, chosen, f"basecagg-combine-{id}", ["Limits"], comment)


def _at(stamps: Sequence[int], weights: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the entries of the users 0, 2, 3 and 5."""
    return list(zip((0, 2, 3, 5), stamps, weights, strict=True))


def _answered(made: VectorFile, chosen: Buffer, id: str, flags: Sequence[str], comment: str) -> None:
    made.valid(id, _COMBINE, chosen.params(), clauses=["BSA-27"], flags=flags, comment=comment)


def _not_answered(
    made: VectorFile,
    id: str,
    params: dict[str, Any],
    codes: frozenset[str],
    clauses: Sequence[str],
    flag: str,
    comment: str,
) -> None:
    id = f"basecagg-combine-{id}"
    made.invalid(id, _COMBINE, params, codes=codes, clauses=clauses, flags=[flag], comment=comment)


def _refused_sets(made: VectorFile) -> None:
    for name, entries, fitting, flag, comment in (
        ("fewer", _ENTRIES[:3], codes.ANOTHER_COUNT, "AnotherCount", "three entries, and K is 4"),
        ("more", (*_ENTRIES[:3], (4, 7, 3), _ENTRIES[3]), codes.ANOTHER_COUNT, "AnotherCount", "five entries, K is 4"),
        ("twice", (*_ENTRIES[:2], _ENTRIES[1], _ENTRIES[3]), TWICE, "Repeats", "user 2 is named twice"),
        ("order", (_ENTRIES[0], _ENTRIES[2], _ENTRIES[1], _ENTRIES[3]), codes.NOT_ASCENDING, "Order", "3 before 2"),
        ("descending", _ENTRIES[::-1], codes.NOT_ASCENDING, "Order", "the users descend"),
    ):
        params = _buffer(f"basecagg-combine-{name}", entries).params()
        _not_answered(made, name, params, fitting, ["BSA-21"], flag, comment)
    for name, at, user in (("outside", 3, 6), ("negative", 0, -1)):
        chosen = _buffer(f"basecagg-combine-{name}")
        named = (*chosen.entries[:at], replace(chosen.entries[at], user=user), *chosen.entries[at + 1 :])
        params = replace(chosen, entries=named).params()
        _not_answered(made, name, params, OUTSIDE, ["BSA-21"], "Strangers", f"user {user}, and N is 6")
    for name, member, cut in (
        ("few-stamps", "stamps", 3),
        ("many-stamps", "stamps", 5),
        ("few-weights", "weights", 3),
        ("many-weights", "weights", 5),
    ):
        params = _buffer(f"basecagg-combine-{name}", _FRESH).params()
        params[member] = (params[member] * 2)[: 8 * cut]
        comment = f"{cut} {member} for four users"
        _not_answered(made, name, params, codes.ANOTHER_COUNT, ["BSA-21"], "Fields", comment)


def _refused_entries(made: VectorFile) -> None:
    for name, at, changed, clause, flag, comment in (
        ("future", 0, {"stamp": 8}, "BSA-22", "Future", "the stamp 8 in round 7"),
        ("far-future", 3, {"stamp": 2**32 - 1}, "BSA-22", "Future", "the last stamp in round 7"),
        ("stale", 2, {"stamp": 4, "weight": 1}, "BSA-22", "Stale", "the staleness 3, and tau_max is 2"),
        ("first-stamp", 1, {"stamp": 0, "weight": 1}, "BSA-22", "Stale", "the staleness 7, and tau_max is 2"),
        ("weight-above", 1, {"weight": 3}, "BSA-23", "Weight", "3 where 3/2 gives 1 or 2"),
        ("weight-above-whole", 2, {"weight": 2}, "BSA-23", "Weight", "2 where 3/3 gives 1"),
        ("weight-below", 0, {"weight": 2}, "BSA-23", "Weight", "2 where 3/1 gives 3"),
        ("weight-above-level", 3, {"weight": 4}, "BSA-23", "Weight", "4 where 3/1 gives 3"),
        ("weight-large", 1, {"weight": 2**31}, "BSA-23", "Weight", "2**31 where 3/2 gives 1 or 2"),
        ("weight-largest", 1, {"weight": 2**32 - 6}, "BSA-23", "Weight", "q - 1 where 3/2 gives 1 or 2"),
    ):
        chosen = _buffer(f"basecagg-combine-{name}").with_entry(at, **changed)
        _not_answered(made, name, chosen.params(), codes.WRONG_BUFFER, [clause], flag, comment)
    for name, places in (("one-weight", (1, 2, 3)), ("t-plus-1-weights", (0, 2)), ("no-weight", (0, 1, 2, 3))):
        chosen = _buffer(f"basecagg-combine-{name}")
        for at in places:
            chosen = chosen.with_entry(at, weight=0)
        comment = f"{4 - len(places)} of four entries have a weight, and T + 2 is 3"
        fitting = TOO_FEW | codes.WRONG_BUFFER
        _not_answered(made, name, chosen.params(), fitting, ["BSA-24", "BSA-23"], "ZeroWeights", comment)


def _refused_shares(made: VectorFile) -> None:
    for name, user in (("not-held", 3), ("first-not-held", 0)):
        chosen = _buffer(f"basecagg-combine-{name}")
        held = {other: share for other, share in chosen.held.items() if other != user}
        comment = f"the share of user {user} is not held"
        _not_answered(made, name, replace(chosen, held=held).params(), OUTSIDE, ["BSA-25"], "NotHeld", comment)
    for name, user, stamp in (("older-share", 2, 5), ("newer-share", 3, 6), ("share-after-round", 0, 8)):
        chosen = _buffer(f"basecagg-combine-{name}")
        held = {**chosen.held, user: (stamp, chosen.held[user][1])}
        comment = f"the share of user {user} is held under the stamp {stamp}, which the buffer does not say"
        _not_answered(made, name, replace(chosen, held=held).params(), OUTSIDE, ["BSA-25"], "OtherStamp", comment)
    chosen = _buffer("basecagg-combine-empty")
    params = replace(chosen, held={user: (stamp, share[:0]) for user, (stamp, share) in chosen.held.items()}).params()
    _not_answered(made, "empty", params, NO_ELEMENTS, ["BSA-01"], "NoElements", "shares without elements")


def _refused_numbers(made: VectorFile) -> None:
    for name, changed, comment in (
        ("t-zero", {"T": 0}, "T is 0"),
        ("t-negative", {"T": -1}, "T is -1"),
        ("t-large", {"T": 3}, "K is T + 1"),
        ("tau-negative", {"tau_max": -1}, "tau_max is -1"),
    ):
        params = _buffer(f"basecagg-combine-{name}", _FRESH).params(**changed)
        _not_answered(made, name, params, BAD_PARAM | TOO_FEW, ["BSA-01"], "Numbers", comment)
    for name, q, c_g, tau_max, comment in (
        ("vanishing", LARGE[2], 3, 3, "3 s(3) is 3/4, so that an update of staleness 3 may weigh nothing"),
        ("vanishing-far", LARGE[2], 2**20, 2**20, "one more than tau_max is above c_g"),
        ("wrapping", BYTE, 33, 2, "4 times 33 is above 128"),
        ("wrapping-large", LARGE[2], half(LARGE[2]) // 4 + 1, 2, "4 c_g is above (q - 1) / 2"),
    ):
        entries = _at((7, 7, 7, 7), (c_g,) * 4)
        params = _buffer(f"basecagg-combine-{name}", entries, q=q, c_g=c_g, tau_max=tau_max).params()
        _not_answered(made, name, params, BAD_PARAM, ["BSA-02"], "BufferLevels", comment)


# ------------------------------------------------------------------------------------------------------------ recovery


def _recovery(
    id: str,
    numbers: dict[str, int],
    weights: Sequence[int],
    users: Sequence[int],
    c_l: int,
    sums: UintArray | None = None,
) -> Recovery:
    """Return a recovery of drawn updates, or of a given update of weight 1."""
    q, d, count, field = numbers["q"], numbers["d"], len(weights), PrimeField(numbers["q"])
    updates = drawn(id, "updates", q, count, d) if sums is None else sums.reshape(1, -1)
    masks = drawn(id, "masks", q, count, d)
    noise = drawn(id, "noise", q, numbers["T"], shares_length(numbers, d))
    shares = encode(numbers, weighted(field, weights, masks), noise)
    total = weighted(field, weights, updates)
    return Recovery(numbers, c_l, list(weights), field.add(updates, masks), list(users), shares, total)


def _result(made: VectorFile, id: str, chosen: Recovery, flags: Sequence[str], comment: str) -> None:
    clauses = ["BSA-29", "BSA-33"]
    made.valid(id, _RECOVER, chosen.params(), clauses=clauses, flags=flags, comment=comment, policy=VANDERMONDE)


def _recovered(made: VectorFile) -> None:
    everybody = [0, 1, 2, 3, 4, 5]
    for name, q, weights, users, comment in (
        ("all", LARGE[2], (3, 2, 1), everybody, "everybody answers"),
        ("first", LARGE[2], (3, 2, 1), everybody[:4], "the first U users answer"),
        ("last", LARGE[2], (3, 2, 1, 3), [5, 3, 4, 2], "the last U users answer, in any order"),
        (str(BYTE), BYTE, (3, 2, 1, 3), [0, 2, 3, 5], "modulo 257"),
        (str(LARGE[0]), LARGE[0], (64, 21, 32, 13, 64), [4, 1, 0, 3], f"modulo {LARGE[0]}"),
        (str(LARGE[1]), LARGE[1], (64, 22, 32, 12, 64), [4, 1, 5, 3, 2], f"modulo {LARGE[1]}"),
        ("zero-among", LARGE[2], (3, 0, 1), [1, 2, 3, 4], "an update with weight 0 is in no sum"),
        ("one", LARGE[2], (5,), [1, 2, 3, 4], "one update"),
        ("large", LARGE[2], (half(LARGE[2]) // 2, 1, half(LARGE[2]) // 2 - 1), [0, 2, 4, 5], "large weights"),
    ):
        id = f"basecagg-recover-{name}"
        chosen = _recovery(id, {**_CODE, "q": q}, weights, users, 2**16 if sum(weights) < 2**20 else 2**20)
        _result(made, id, chosen, ["Recovered"], comment)


def _averages(made: VectorFile) -> None:
    for name, c_l, weights, comment in (
        ("level", 10, (3, 2, 1), "10 times 6"),
        ("weights", 3, (7, 3, 1, 2), "3 times 13"),
        ("largest", 2**32, (2**20, 2**20), "the divisor is 2**53"),
    ):
        id = f"basecagg-average-{name}"
        _result(made, id, _recovery(id, _CODE, weights, [0, 1, 2, 3], c_l), ["Average"], f"the divisor is {comment}")
    id, q = "basecagg-average-signs", LARGE[2]
    sums = np.array([0, 1, half(q) - 1, half(q) + 1, q - 1], dtype=np.uint64)
    comment = "0, 1, the last positive integer but one, the first negative one, and -1, over 3"
    _result(made, id, _recovery(id, _CODE, (1,), [2, 3, 4, 5], 3, sums), ["Average"], comment)


def _refused_recoveries(made: VectorFile) -> None:
    _not_recovered(made, "too-few", (3, 2, 1), [5, 0, 3], TOO_FEW, "BSA-30", "TooFewAnswers", "U - 1 answers")
    for name, at in (("altered-last", 5), ("altered-behind", 4)):
        id = f"basecagg-recover-{name}"
        chosen = _recovery(id, _CODE, (3, 2, 1), [0, 1, 2, 3, 4, 5], 2**16)
        chosen.shares[at] = drawn(id, "altered", LARGE[2], chosen.shares.shape[1])
        comment = f"the answer of user {at} is another one, and U is 4"
        _refused(made, id, chosen.params(), BAD_SHARE, "BSA-31", "AlteredAnswer", comment)
    for name, weights in (("no-weight", (0, 0, 0)), ("no-weight-of-one", (0,))):
        _not_recovered(made, name, weights, [0, 1, 2, 3], BAD_PARAM, "BSA-32", "NoWeight", "all weights are 0")
    for name, c_l in (("cl-zero", 0), ("cl-negative", -1)):
        id = f"basecagg-recover-{name}"
        params = _recovery(id, _CODE, (3, 2, 1), [0, 1, 2, 3], 2**16).params(c_l=str(c_l))
        _refused(made, id, params, BAD_PARAM, "BSA-02", "Levels", f"c_l is {c_l}")


def _not_recovered(
    made: VectorFile,
    name: str,
    weights: Sequence[int],
    users: Sequence[int],
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    id = f"basecagg-recover-{name}"
    _refused(made, id, _recovery(id, _CODE, weights, users, 2**16).params(), codes, clause, flag, comment)


def _refused(
    made: VectorFile, id: str, params: dict[str, Any], codes: frozenset[str], clause: str, flag: str, comment: str
) -> None:
    made.invalid(id, _RECOVER, params, codes=codes, clauses=[clause], flags=[flag], comment=comment, policy=VANDERMONDE)
