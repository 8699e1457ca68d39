"""Vectors of LightSecAgg: masking, aggregated shares, recovery, and whole rounds step by step (spec/lightsecagg.md).

The steps of a round come from the reference's transcript. Each step says who takes it, whether it succeeds, and the
bytes of the messages that it sends, over the plain channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases.requests import encode, shares_length
from secagg_spec.conformance.checks.base import (
    BAD_PARAM,
    BAD_SHARE,
    LENGTH,
    NONCANONICAL,
    OUTSIDE,
    TOO_FEW,
    TWICE,
)
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    SMALL,
    VectorFile,
    begun,
    drawn,
)
from secagg_spec.conformance.vectors.code import VANDERMONDE
from secagg_spec.conformance.vectors.steps import SESSION, steps_of_round

Numbers = dict[str, int]
_MASK, _AGGREGATE = "lightsecagg.mask", "lightsecagg.aggregate_shares"
_RECOVER, _ROUND = "lightsecagg.recover", "lightsecagg.round"
_SET: Numbers = {"q": BYTE, "N": 6, "T": 2}
_TINY: Numbers = {"q": SMALL, "N": 5, "D": 1, "U": 3, "T": 1, "d": 8}
_SESSION: Numbers = {"q": BYTE, "N": 6, "D": 1, "U": 4, "T": 2, "d": 5}
_WIDE: Numbers = {"q": LARGE[2], "N": 5, "D": 1, "U": 3, "T": 2, "d": 4}


def file() -> VectorFile:
    """Make the vectors of this area."""
    covers = (
        "LightSecAgg: masked updates, aggregated shares, recovery and whole rounds. The operations of a round are over "
        f"the plain channel, in round 0 of the session {SESSION.hex()}."
    )
    made = begun("lightsecagg", covers)
    _masks(made)
    _aggregated(made)
    _recovered(made)
    _rounds(made)
    _refused_rounds(made)
    return made


def _masks(made: VectorFile) -> None:
    for q in (SMALL, BYTE, *LARGE):
        id = f"lightsecagg-mask-{q}"
        _masked(made, id, q, drawn(id, "update", q, 8), drawn(id, "mask", q, 8), f"random elements modulo {q}")
    for name, extra in (("update", 9), ("mask", 7)):
        id = f"lightsecagg-mask-length-{name}"
        values = {"update": drawn(id, "update", LARGE[1], 8), "mask": drawn(id, "mask", LARGE[1], 8)}
        values[name] = drawn(id, name, LARGE[1], extra)
        comment = f"the {name} has {extra} elements, the other vector 8"
        _not_masked(made, id, LARGE[1], values, LENGTH, ["LSA-03", "ERR-02"], "MaskLength", comment)
    for name in ("update", "mask"):
        id = f"lightsecagg-mask-noncanonical-{name}"
        values = {other: drawn(id, other, BYTE, 4) for other in ("update", "mask")}
        values[name][2] = BYTE
        comment = f"the {name} holds q itself"
        _not_masked(made, id, BYTE, values, NONCANONICAL, ["LSA-03", "ERR-02"], "NonCanonical", comment)
    id = "lightsecagg-mask-composite"
    values = {name: drawn(id, name, 9, 8) for name in ("update", "mask")}
    _not_masked(made, id, 9, values, BAD_PARAM, ["MOD-02"], "FieldNeeded", "the modulus 9 is composite")


def _masked(made: VectorFile, id: str, q: int, update: UintArray, mask: UintArray, comment: str) -> None:
    params = {"q": q, "update": pack(update), "mask": pack(mask)}
    made.valid(id, _MASK, params, clauses=["LSA-02"], flags=["Basic"], comment=comment)


def _not_masked(
    made: VectorFile,
    id: str,
    q: int,
    values: Mapping[str, UintArray],
    codes: frozenset[str],
    clauses: Sequence[str],
    flag: str,
    comment: str,
) -> None:
    params = {"q": q, **{name: pack(vector) for name, vector in values.items()}}
    made.invalid(id, _MASK, params, codes=codes, clauses=clauses, flags=[flag], comment=comment)


# --------------------------------------------------------------------------------------------- aggregated shares


def _held(id: str, numbers: Numbers, users: Sequence[int] | None = None) -> list[list[Any]]:
    shares = drawn(id, "held", numbers["q"], numbers["N"], 8)
    return [[user, pack(shares[user])] for user in (range(numbers["N"]) if users is None else users)]


def _aggregated(made: VectorFile) -> None:
    wide = {**_SET, "q": LARGE[2]}
    for id, numbers, surviving, flag, comment in (
        ("aggregate-all", _SET, [0, 1, 2, 3, 4, 5], "ExactlyTheSet", "everybody survives"),
        ("aggregate-some", _SET, [0, 2, 3, 5], "ExactlyTheSet", "T + 2 users survive"),
        ("aggregate-unordered", _SET, [4, 1, 0, 3], "ExactlyTheSet", "the set in any order"),
        (f"aggregate-{LARGE[2]}", wide, [1, 2, 3, 4, 5], "ExactlyTheSet", "a field of 32 bits"),
        ("aggregate-small", {"q": SMALL, "N": 5, "T": 1}, [1, 3, 4], "ExactlyTheSet", "q = 7"),
    ):
        params = {**numbers, "surviving": surviving, "held": _held(id, numbers)}
        made.valid(id, _AGGREGATE, params, clauses=["LSA-08"], flags=[flag], comment=comment)
    _refused_sets(made)


def _refused_sets(made: VectorFile) -> None:
    tiny = {"q": SMALL, "N": 5, "T": 1}
    cases: list[tuple[str, Numbers, list[int], frozenset[str], str, str, str]] = [
        ("aggregate-small-set", _SET, [0, 2, 4], TOO_FEW, "LSA-09", "SmallSet", "T + 1 users survive"),
        ("aggregate-pair", tiny, [0, 1], TOO_FEW, "LSA-09", "SmallSet", "{0, 1} with T = 1: the example of the text"),
        ("aggregate-twice-01", _SET, [0, 1, 2, 2], TWICE, "LSA-10", "SetTwice", "T + 2 entries, T + 1 users"),
        ("aggregate-twice-02", _SET, [3, 0, 1, 2, 3], TWICE, "LSA-10", "SetTwice", "enough users, one of them twice"),
        ("aggregate-outside-01", _SET, [0, 1, 2, 3, 6], OUTSIDE, "LSA-10", "SetOutside", "user N"),
        ("aggregate-outside-02", _SET, [0, 1, 2, 3, -1], OUTSIDE, "LSA-10", "SetOutside", "user -1"),
    ]
    for id, numbers, surviving, codes, clause, flag, comment in cases:
        params = {**numbers, "surviving": surviving, "held": _held(id, numbers)}
        made.invalid(id, _AGGREGATE, params, codes=codes, clauses=[clause], flags=[flag], comment=comment)
    id = "aggregate-not-held"
    params = {**_SET, "surviving": [0, 1, 2, 3, 4], "held": _held(id, _SET, [0, 1, 2, 4, 5])}
    comment = "the share of user 3 is not held"
    made.invalid(id, _AGGREGATE, params, codes=OUTSIDE, clauses=["LSA-11"], flags=["NotHeld"], comment=comment)
    id = "aggregate-noncanonical"
    held = _held(id, _SET)
    held[2][1] = _with_last(drawn(id, "altered", BYTE, 8), BYTE)
    params = {**_SET, "surviving": [0, 1, 2, 3], "held": held}
    comment = "the share of user 2 holds q itself"
    made.invalid(
        id, _AGGREGATE, params, codes=NONCANONICAL, clauses=["MOD-06"], flags=["NonCanonical"], comment=comment
    )


def _with_last(vector: UintArray, value: int) -> str:
    """Return a packed vector with its last number changed."""
    return pack(np.append(vector[:-1], np.uint64(value)))


# ------------------------------------------------------------------------------------------------------ recovery


def _recovery(id: str, numbers: Numbers, surviving: Sequence[int], users: Sequence[int]) -> dict[str, Any]:
    """Return a recovery. Each user that answers gives its share of the sum of the surviving users' masks."""
    q, d, field = numbers["q"], numbers["d"], PrimeField(numbers["q"])
    updates, masks = drawn(id, "updates", q, len(surviving), d), drawn(id, "masks", q, len(surviving), d)
    noise = drawn(id, "noise", q, numbers["T"], shares_length(numbers, d))
    shares = encode(numbers, field.sum(masks), noise)
    return {
        **numbers,
        "surviving": list(surviving),
        "masked": [pack(row) for row in field.add(updates, masks)],
        "users": list(users),
        "shares": [pack(shares[user]) for user in users],
    }


def _recovered(made: VectorFile) -> None:
    everybody = [0, 1, 2, 3, 4, 5]
    cases: list[tuple[str, Numbers, list[int], list[int], list[str], str]] = [
        ("recover-all", _SESSION, everybody, everybody, ["AnyAnswers"], "everybody answers"),
        ("recover-first", _SESSION, everybody, [0, 1, 2, 3], ["AnyAnswers"], "the first U users answer"),
        ("recover-last", _SESSION, everybody, [5, 3, 4, 2], ["AnyAnswers"], "the last U users answer, in any order"),
        ("recover-some", _SESSION, [0, 2, 3, 5], [0, 2, 3, 5], ["AnyAnswers"], "max(U, T + 2) users survive"),
        ("recover-unordered", _SESSION, [5, 1, 4, 0, 2], [2, 0, 5, 4], ["AnyAnswers"], "the set in any order"),
        ("recover-small", _TINY, [0, 1, 3, 4], [4, 0, 1], ["AnyAnswers"], "q = 7"),
    ]
    cases += [
        (f"recover-{q}", {**_WIDE, "q": q, "d": 4}, [0, 1, 2, 4], [1, 4, 2], ["LargeField"], f"modulo {q}")
        for q in LARGE
    ]
    for id, numbers, surviving, users, flags, comment in cases:
        params = _recovery(id, numbers, surviving, users)
        made.valid(id, _RECOVER, params, clauses=["LSA-13"], flags=flags, comment=comment, policy=VANDERMONDE)
    _refused_recoveries(made)


def _refused_recoveries(made: VectorFile) -> None:
    most = [0, 1, 2, 3, 4]
    outside = "user 5 answers and is not in the surviving set"
    cases: list[tuple[str, Numbers, list[int], list[int], frozenset[str], str, str, str]] = [
        ("recover-too-few", _SESSION, most, [0, 2, 4], TOO_FEW, "LSA-14", "TooFewAnswers", "U - 1 answers"),
        ("recover-no-answer", _SESSION, most, [], TOO_FEW, "LSA-14", "TooFewAnswers", "no answer"),
        (
            "recover-t-plus-1",
            _WIDE,
            [0, 1, 2],
            [0, 1, 2],
            TOO_FEW,
            "LSA-07",
            "FewContributors",
            "U, and T + 1, survive",
        ),
        ("recover-outsider", _SESSION, most, [0, 1, 2, 5], OUTSIDE, "LSA-16", "Outsider", outside),
    ]
    for id, numbers, surviving, users, codes, clause, flag, comment in cases:
        params = _recovery(id, numbers, surviving, users)
        _not_recovered(made, id, params, codes, [clause], flag, comment)
    for q in (BYTE, LARGE[2]):
        id, numbers = f"recover-altered-{q}", {**_SESSION, "q": q}
        params = _recovery(id, numbers, most, most)
        shares = drawn(id, "altered", q, shares_length(numbers, numbers["d"]))
        params["shares"][4] = pack(shares)
        comment = "five answers where four suffice, and the last one is not the share"
        _not_recovered(made, id, params, BAD_SHARE, ["LSA-15"], "AlteredAnswer", comment)
    _wrong_recoveries(made)


def _wrong_recoveries(made: VectorFile) -> None:
    base: Numbers = {"q": BYTE, "N": 5, "D": 0, "U": 3, "T": 1, "d": 4}
    for name, changed, comment in (
        ("t-zero", {"T": 0}, "T = 0"),
        ("d-negative", {"D": -1}, "D = -1"),
        ("dropouts", {"D": 3}, "N - D = T + 1 is below U"),
        (
            "alone",
            {"N": 4, "D": 2, "U": 2, "d": 2},
            "N - D = U = T + 1: one user could be left alone with the colluders",
        ),
    ):
        id, numbers = f"recover-numbers-{name}", {**base, **changed}
        params = {**_recovery(id, {**numbers, "D": 0, "T": 1}, [0, 1, 2, 3], [3, 0, 1]), **numbers}
        _not_recovered(made, id, params, BAD_PARAM, ["LSA-01"], "Numbers", comment)
    id = "recover-short-share"
    params = _recovery(id, _SESSION, [0, 1, 2, 3], [0, 1, 2, 3])
    params["shares"][2] = params["shares"][2][:-8]
    _not_recovered(made, id, params, LENGTH, ["MOD-07"], "Shapes", "the third share is one element short")


def _not_recovered(
    made: VectorFile,
    id: str,
    params: Mapping[str, Any],
    codes: frozenset[str],
    clauses: Sequence[str],
    flag: str,
    comment: str,
) -> None:
    made.invalid(id, _RECOVER, params, codes=codes, clauses=clauses, flags=[flag], comment=comment, policy=VANDERMONDE)


# -------------------------------------------------------------------------------------------------- whole rounds


def _round(id: str, numbers: Numbers, drop: Mapping[str, list[int]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members of a round, and its sampled values."""
    q, N, d = numbers["q"], numbers["N"], numbers["d"]
    masks, updates = drawn(id, "masks", q, N, d), drawn(id, "updates", q, N, d)
    noises = drawn(id, "noises", q, N, numbers["T"] * shares_length(numbers, d))
    full = {"share": [], "upload": [], "recover": [], **drop}
    params = {**numbers, "updates": [pack(row) for row in updates], "drop": full}
    return params, {"masks": [pack(row) for row in masks], "noises": [pack(row) for row in noises]}


def _rounds(made: VectorFile) -> None:
    cases: list[tuple[str, Numbers, dict[str, list[int]], str]] = [
        ("round-tiny", _TINY, {}, "nobody drops out"),
        ("round-before-share", _TINY, {"share": [0]}, "user 0 is never there"),
        ("round-before-upload", _TINY, {"upload": [3]}, "user 3 shares its mask and does not upload"),
        ("round-before-recover", _TINY, {"recover": [1]}, "user 1 uploads and does not answer: it is in the sum"),
        (
            "round-each-phase",
            {**_SESSION, "U": 3, "N": 7},
            {"share": [6], "upload": [2], "recover": [0]},
            "one user drops out in each phase",
        ),
        ("round-fewest", _SESSION, {"upload": [1, 4]}, "more drop out than D, and the numbers still suffice"),
        (f"round-{LARGE[2]}", _WIDE, {"recover": [4, 0]}, "a field of 32 bits, exactly U answers"),
    ]
    for id, numbers, drop, comment in cases:
        params, rand = _round(id, numbers, drop)
        made.valid(
            id,
            _ROUND,
            params,
            rand,
            clauses=["LSA-06", "LSA-13", "LSA-17"],
            flags=["LargeField"] if numbers["q"] == LARGE[2] else ["Dropouts"],
            comment=comment,
            operations=steps_of_round(params, rand),
        )


def _refused_rounds(made: VectorFile) -> None:
    cases: list[tuple[str, Numbers, dict[str, list[int]], str, str, str]] = [
        ("round-few-answers", _TINY, {"recover": [0, 2, 4]}, "TooFewAnswers", "LSA-17", "two users answer, and U = 3"),
    ]
    for id, numbers, drop, flag, clause, comment in cases:
        params, rand = _round(id, numbers, drop)
        steps = steps_of_round(params, rand)
        _no_round(made, id, params, rand, TOO_FEW, [clause], flag, comment, steps)
    for name, changed, comment in (
        ("d-negative", {"D": -1}, "D = -1"),
        ("too-many-dropouts", {"D": 3}, "N - D is below max(U, T + 2)"),
        ("alone-with-colluders", {"N": 4, "D": 2, "U": 2}, "N - D = T + 1"),
    ):
        id = f"round-numbers-{name}"
        params, rand = _round(id, {**_TINY, **changed}, {})
        _no_round(made, id, params, rand, BAD_PARAM, ["LSA-01"], "Numbers", comment)
    id = "round-composite"
    params, rand = _round(id, {**_TINY, "q": 9}, {})
    _no_round(made, id, params, rand, BAD_PARAM, ["MOD-02"], "FieldNeeded", "the modulus 9 is composite")
    id = "round-noncanonical"
    params, rand = _round(id, _TINY, {})
    params["updates"][2] = _with_last(drawn(id, "altered", SMALL, 8), SMALL)
    _no_round(made, id, params, rand, NONCANONICAL, ["LSA-03"], "NonCanonical", "an update holds q itself")
    id = "round-short-noise"
    params, rand = _round(id, _TINY, {})
    rand["noises"][1] = rand["noises"][1][:-8]
    _no_round(made, id, params, rand, LENGTH, ["MOD-07"], "Shapes", "the noise of user 1 is one element short")


def _no_round(
    made: VectorFile,
    id: str,
    params: Mapping[str, Any],
    rand: Mapping[str, Any],
    codes: frozenset[str],
    clauses: Sequence[str],
    flag: str,
    comment: str,
    operations: Sequence[Mapping[str, Any]] = (),
) -> None:
    made.invalid(
        id, _ROUND, params, rand, codes=codes, clauses=clauses, flags=[flag], comment=comment, operations=operations
    )
