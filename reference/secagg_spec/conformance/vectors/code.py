"""Vectors of the code that shares a mask (spec/conventions.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
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

VANDERMONDE = {"mds.code": "vandermonde"}
Code = dict[str, int]
_CODE: Code = {"q": BYTE, "N": 5, "U": 3, "T": 1}
_D = 7


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("code", "The (N, U) Vandermonde code with T noise rows that shares a mask: encoding and decoding.")
    _encoding(made)
    _decoding(made)
    _numbers(made)
    _wrong_inputs(made)
    _wrong_users(made)
    return made


def _drawn(id: str, code: Code, d: int) -> tuple[UintArray, UintArray]:
    length = shares_length(code, d)
    return drawn(id, "mask", code["q"], d), drawn(id, "noise", code["q"], code["T"], length)


def _encoding(made: VectorFile) -> None:
    mask, noise = np.array([4, 0, 6], dtype=np.uint64), np.array([[2, 5]], dtype=np.uint64)
    example: Code = {"q": SMALL, "N": 5, "U": 3, "T": 1}
    _encode(made, "mds-encode-example", example, mask, noise, ["Basic", "Points"], "the example of the text")
    cases: list[tuple[str, Code, int, list[str], str]] = [
        (
            "mds-encode-small",
            {"q": SMALL, "N": 6, "U": 3, "T": 2},
            8,
            ["RowOrder"],
            "all points but 0 of a small field",
        ),
        ("mds-encode-byte", _CODE, 8, ["Basic"], "U - T divides d"),
        ("mds-encode-padded", _CODE, 7, ["Padding"], "one element of padding"),
        ("mds-encode-padded-row", {"q": BYTE, "N": 7, "U": 5, "T": 1}, 5, ["Padding"], "a whole sub-mask of padding"),
        ("mds-encode-two-noise-rows", {"q": BYTE, "N": 6, "U": 4, "T": 2}, 8, ["RowOrder"], "two noise rows"),
        ("mds-encode-one-element", {"q": LARGE[2], "N": 3, "U": 2, "T": 1}, 1, ["Basic"], "a vector of one element"),
        ("mds-encode-two-users", {"q": LARGE[0], "N": 2, "U": 2, "T": 1}, 4, ["Basic"], "the smallest roster"),
    ]
    cases += [
        (f"mds-encode-{q}", {"q": q, "N": 10, "U": 7, "T": 3}, 16, ["LargeField"], f"the field of {q} elements")
        for q in LARGE
    ]
    for id, code, d, flags, comment in cases:
        _encode(made, id, code, *_drawn(id, code, d), flags, comment)
    largest: Code = {"q": LARGE[2], "N": 12, "U": 10, "T": 5}
    full = np.full(10, LARGE[2] - 1, dtype=np.uint64)
    _encode(made, "mds-encode-largest", largest, full, full.reshape(5, 2), ["LargeField", "Points"], "largest elements")


def _encode(
    made: VectorFile, id: str, code: Code, mask: UintArray, noise: UintArray, flags: Sequence[str], comment: str
) -> None:
    clauses = ["MDS-04", *(["MDS-03"] if mask.size < shares_length(code, mask.size) * (code["U"] - code["T"]) else [])]
    request = {**code, "mask": pack(mask)}, {"noise": pack(noise.reshape(-1))}
    made.valid(id, "mds.encode", *request, clauses=clauses, flags=flags, comment=comment, policy=VANDERMONDE)


def _decoding(made: VectorFile) -> None:
    cases: list[tuple[str, Code, int, list[int], list[str], str]] = [
        ("mds-decode-first", _CODE, _D, [0, 1, 2], ["Basic"], "the shares of the first U users"),
        ("mds-decode-last", _CODE, _D, [2, 3, 4], ["AnyUsers"], "the shares of the last U users"),
        ("mds-decode-unordered", _CODE, _D, [4, 0, 3], ["AnyUsers"], "users in any order"),
        ("mds-decode-all", _CODE, _D, [3, 1, 4, 0, 2], ["AnyUsers"], "more shares than are needed, all right"),
        ("mds-decode-small", {"q": SMALL, "N": 6, "U": 4, "T": 1}, 8, [5, 1, 2, 4], ["AnyUsers"], "q = 7, N = 6"),
        ("mds-decode-many", {"q": LARGE[2], "N": 257, "U": 2, "T": 1}, 1, [255, 256], ["ManyUsers"], "N = 257"),
    ]
    cases += [
        (f"mds-decode-{q}", {"q": q, "N": 10, "U": 7, "T": 3}, 16, [9, 2, 4, 7, 1, 0, 8], ["LargeField"], f"modulo {q}")
        for q in LARGE
    ]
    for id, code, d, users, flags, comment in cases:
        _valid(made, id, _request(id, code, d, users), ["MDS-05"], flags, comment)
    _sums(made)


def _sums(made: VectorFile) -> None:
    for q in (BYTE, LARGE[2]):
        id, code = f"mds-decode-sum-{q}", {**_CODE, "q": q}
        field, users = PrimeField(q), [1, 2, 4]
        parts = [encode(code, *_drawn(f"{id}-{part}", code, _D)) for part in range(3)]
        shares = field.add(field.add(parts[0], parts[1]), parts[2])
        params = _params(code, _D, users, shares[users])
        _valid(made, id, params, ["MDS-06"], ["SumOfShares"], "sums of the shares of three vectors")
    id = "mds-decode-other-padding"
    padded = drawn(id, "mask", BYTE, _D + 1), drawn(id, "noise", BYTE, 1, 4)
    params = _params(_CODE, _D, [0, 2, 3], encode(_CODE, *padded)[[0, 2, 3]])
    comment = "what stands behind the last element of the vector is not zero, and is not looked at"
    _valid(made, id, params, ["MDS-06"], ["OtherPadding"], comment)


def _params(code: Code, d: int, users: Sequence[int], shares: UintArray) -> dict[str, Any]:
    return {**code, "d": d, "users": list(users), "shares": [pack(share) for share in shares]}


def _request(id: str, code: Code, d: int, users: Sequence[int]) -> dict[str, Any]:
    """Return a request to decode shares. A user outside the roster gives the share of its number modulo N."""
    shares = encode(code, *_drawn(id, code, d))
    return _params(code, d, users, shares[[user % code["N"] for user in users]])


def _valid(
    made: VectorFile, id: str, params: dict[str, Any], clauses: Sequence[str], flags: Sequence[str], comment: str
) -> None:
    made.valid(id, "mds.decode", params, clauses=clauses, flags=flags, comment=comment, policy=VANDERMONDE)


def _numbers(made: VectorFile) -> None:
    changes: list[tuple[str, dict[str, int], str]] = [
        ("t-zero", {"T": 0}, "T = 0: there would be no noise"),
        ("t-equals-u", {"T": 3}, "T = U: there would be no sub-mask"),
        ("u-above-n", {"U": 6}, "U = N + 1: there would never be enough shares"),
        ("n-equals-q", {"q": 5}, "N = q: there are only q - 1 points that are not 0"),
    ]
    for name, changed, comment in changes:
        id, code = f"mds-encode-{name}", {**_CODE, **changed}
        mask = drawn(id, "mask", code["q"], 8)
        rows = shares_length(code, 8) if code["U"] > code["T"] else 8
        noise = drawn(id, "noise", code["q"], max(code["T"], 0) * rows)
        made.invalid(
            id,
            "mds.encode",
            {**code, "mask": pack(mask)},
            {"noise": pack(noise)},
            codes=BAD_PARAM,
            clauses=["MDS-01"],
            flags=["Numbers"] if noise.size else ["Numbers", "Points"],
            comment=comment,
        )
    made.invalid(
        "mds-encode-empty",
        "mds.encode",
        {**_CODE, "mask": ""},
        {"noise": ""},
        codes=BAD_PARAM | LENGTH,
        clauses=["MDS-01"],
        flags=["NothingToShare", "Padding"],
        comment="an empty vector",
    )
    for q in (9, 2**32 - 1):
        id, code = f"mds-encode-composite-{q}", {**_CODE, "q": q}
        mask, noise = _drawn(id, code, 12)
        made.invalid(
            id,
            "mds.encode",
            {**code, "mask": pack(mask)},
            {"noise": pack(noise.reshape(-1))},
            codes=BAD_PARAM,
            clauses=["MOD-02"],
            flags=["FieldNeeded"],
            comment=f"the modulus {q} is composite",
        )


def _wrong_inputs(made: VectorFile) -> None:
    id = "mds-encode-noncanonical-mask"
    mask, noise = _drawn(id, _CODE, 8)
    mask[5] = BYTE
    _refused_encoding(made, id, mask, noise, NONCANONICAL, "MOD-06", "NonCanonical", "the mask holds q itself")
    id = "mds-encode-noncanonical-noise"
    mask, noise = _drawn(id, _CODE, 8)
    noise[0, 1] = 2**32 - 1
    _refused_encoding(made, id, mask, noise, NONCANONICAL, "MOD-06", "NonCanonical", "the noise holds 2**32 - 1")
    id = "mds-encode-short-noise"
    mask = drawn(id, "mask", BYTE, 8)
    noise = drawn(id, "noise", BYTE, 3)
    _refused_encoding(made, id, mask, noise, LENGTH, "MOD-07", "Shapes", "the noise has 3 elements instead of 4")
    id = "mds-decode-short-share"
    params = _request(id, _CODE, _D, [0, 1, 2])
    params["shares"][1] = params["shares"][1][:-8]
    _refused(made, id, params, LENGTH, "MOD-07", ["Shapes"], "the second share is one element short")
    id = "mds-decode-noncanonical"
    params = _request(id, _CODE, _D, [0, 1, 2])
    params["shares"][2] = pack(np.append(drawn(id, "altered", BYTE, 3), np.uint64(BYTE)))
    _refused(made, id, params, NONCANONICAL, "MOD-06", ["NonCanonical"], "the third share holds q itself")


def _refused_encoding(
    made: VectorFile,
    id: str,
    mask: UintArray,
    noise: UintArray,
    codes: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    request = {**_CODE, "mask": pack(mask)}, {"noise": pack(noise.reshape(-1))}
    clauses = [clause, "ERR-02"]
    made.invalid(id, "mds.encode", *request, codes=codes, clauses=clauses, flags=[flag], comment=comment)


def _wrong_users(made: VectorFile) -> None:
    few = "TooFewShares"
    for id, users, flags in (
        ("mds-decode-one-too-few", [0, 3], [few]),
        ("mds-decode-one-share", [2], [few]),
        ("mds-decode-no-share", [], [few, "Points"]),
    ):
        comment = f"{len(users)} shares, and U = 3"
        _refused(made, id, _request(id, _CODE, _D, users), TOO_FEW, "MDS-07", flags, comment)
    for id, users, comment in (
        ("mds-decode-twice-01", [0, 1, 1, 2], "user 1 appears twice, with the same share, among enough others"),
        ("mds-decode-twice-02", [0, 1, 2, 0], "user 0 appears again behind enough others"),
        ("mds-decode-twice-03", [4, 4, 4], "one user three times, in place of three users"),
    ):
        _refused(made, id, _request(id, _CODE, _D, users), TWICE, "MDS-08", ["Twice"], comment)
    for id, users, comment in (
        ("mds-decode-outside-01", [5, 1, 2], "user N, with the share of user 0"),
        ("mds-decode-outside-02", [0, 1, -1], "user -1, with the share of the last user"),
        ("mds-decode-outside-03", [0, 2147483647, 4], "the largest number that a user can have in a request"),
    ):
        _refused(made, id, _request(id, _CODE, _D, users), OUTSIDE, "MDS-08", ["Outside"], comment)
    for id, code, at in (
        ("mds-decode-altered-last", _CODE, 3),
        ("mds-decode-altered-first", _CODE, 0),
        (f"mds-decode-altered-{LARGE[2]}", {**_CODE, "q": LARGE[2]}, 2),
    ):
        params = _request(id, code, _D, [3, 0, 4, 1])
        share = np.frombuffer(bytes.fromhex(params["shares"][at]), dtype="<u4").astype(np.uint64)
        share[-1] = PrimeField(code["q"]).add(share[-1:], np.ones(1, dtype=np.uint64))[0]
        params["shares"][at] = pack(share)
        comment = (
            f"of four shares, where three suffice, the one at position {at} was altered by one in its last element"
        )
        _refused(made, id, params, BAD_SHARE, "MDS-09", ["AlteredShare"], comment)


def _refused(
    made: VectorFile,
    id: str,
    params: dict[str, Any],
    codes: frozenset[str],
    clause: str,
    flags: list[str],
    comment: str,
) -> None:
    made.invalid(
        id,
        "mds.decode",
        params,
        codes=codes,
        clauses=[clause],
        flags=flags,
        comment=comment,
        policy=VANDERMONDE,
    )
