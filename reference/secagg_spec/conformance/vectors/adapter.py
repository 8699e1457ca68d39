"""Vectors of the adapter protocol itself: echo, members, sampled values by name (spec/adapter.md, sections 1 to 3)."""

from __future__ import annotations

from typing import Any

from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.checks.base import BAD_RANDOMNESS, MALFORMED, OUTSIDE, TWICE
from secagg_spec.conformance.checks.forms import DECIMAL
from secagg_spec.conformance.vectors.base import (
    BYTE,
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
    drawn_rounding,
)


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun(
        "adapter", "Requests and answers: echo, members that lack or are unknown, their forms, names of sampled values."
    )
    _echo(made)
    _members(made)
    _randomness(made)
    _forms(made)
    _held(made)
    _drop(made)
    return made


def _echo(made: VectorFile) -> None:
    digits = drawn_bytes("echo-basic-01", "data", 8).hex()
    made.valid(
        "echo-basic-01",
        "echo",
        {"data": {"list": [1, 2, [3, None]], "text": digits}},
        clauses=["ADP-01"],
        flags=["Echo"],
        comment="nested values come back",
    )
    edges: list[object] = [None, True, False, "", '\u00e9\u20ac\U0001f600\n"\\', 2**31 - 1, -(2**31), [], {}]
    made.valid(
        "echo-edges-01",
        "echo",
        {"data": edges},
        clauses=["ADP-01"],
        flags=["Echo"],
        comment="empty values, null, characters outside ASCII, the largest and the smallest integer",
    )


def _members(made: VectorFile) -> None:
    unknown = "UnknownMember"
    missing = "MissingMember"
    id = "members-unknown-01"
    params = {"q": BYTE, **{name: pack(drawn(id, name, BYTE, 4)) for name in ("a", "b")}}
    made.invalid(
        id,
        "field.add",
        {**params, "modulus": "257"},
        codes=MALFORMED,
        clauses=["ADP-05"],
        flags=[unknown],
        comment="params hold the member modulus, which the operation does not know",
    )
    made.invalid(
        "members-missing-01",
        "field.add",
        {"q": BYTE, "a": ""},
        codes=MALFORMED,
        clauses=["ADP-05"],
        flags=[missing],
        comment="b is missing",
    )


def _randomness(made: VectorFile) -> None:
    name = "SampledValueNames"
    unused, absent = "randomness-unused-01", "randomness-absent-01"
    mask, noise = drawn(unused, "mask", BYTE, 4), drawn(unused, "noise", BYTE, 4)
    made.invalid(
        unused,
        "mds.encode",
        {"q": BYTE, "N": 4, "U": 2, "T": 1, "mask": pack(mask)},
        {"noise": pack(noise), "seed": drawn_bytes(unused, "seed", 32).hex()},
        codes=BAD_RANDOMNESS,
        clauses=["RND-04"],
        flags=[name],
        comment="rand holds the name seed beside the noise, which the grade explicit does not use",
    )
    made.invalid(
        absent,
        "quantizer.quantize",
        {"q": BYTE, "level": 1, "weight": 1, "x": ""},
        {"draw": pack_reals(drawn_rounding(absent, 1))},
        codes=BAD_RANDOMNESS,
        clauses=["RND-04"],
        flags=[name],
        comment="the draws are given under the name draw instead of rounding",
    )


def _forms(made: VectorFile) -> None:
    product = {"q": BYTE, "rows": 2, "inner": 1, "columns": 2}
    for name, changed, comment in (
        ("fraction", {"columns": 2.0}, "columns is 2.0, which is no integer"),
        ("text", {"rows": "2"}, "rows is a string"),
        ("true", {"inner": True}, "inner is true"),
    ):
        id = f"form-{name}"
        vectors = {member: pack(drawn(id, member, BYTE, 2)) for member in ("a", "b")}
        _refused_form(made, id, "field.matmul", {**product, **vectors, **changed}, "ADP-12", "OtherTypes", comment)
    for name, text, comment in (
        ("capital", "0A000000", "a digit is a capital letter"),
        ("space", "0a 000000", "a space stands among the digits"),
    ):
        id = f"form-hex-{name}"
        params = {"q": BYTE, "a": text + pack(drawn(id, "a", BYTE, 3)), "b": pack(drawn(id, "b", BYTE, 4))}
        _refused_form(made, id, "field.add", params, "ADP-13", "HexDigits", comment)
    for name, text in (("plus", "+257"), ("space", " 257"), ("zero", "0257"), ("grouped", "2_57")):
        id = f"form-decimal-{name}"
        params = {"q": text, **{member: pack(drawn(id, member, BYTE, 4)) for member in ("a", "b")}}
        comment = f"the modulus is written {text!r}"
        made.invalid(
            id, "field.add", params, codes=DECIMAL, clauses=["ADP-14"], flags=["DecimalDigits"], comment=comment
        )
    made.valid(
        "form-result",
        "field.add",
        {"q": BYTE, "a": "fb000000ab000000", "b": "000000000c000000"},
        clauses=["ADP-15", "MOD-03"],
        flags=["DigitsOfResults"],
        comment="a result with digits from a to f",
    )


def _refused_form(
    made: VectorFile, id: str, operation: str, params: dict[str, Any], clause: str, flag: str, comment: str
) -> None:
    made.invalid(id, operation, params, codes=MALFORMED, clauses=[clause], flags=[flag], comment=comment)


def _held(made: VectorFile) -> None:
    twice = "HeldTwice"
    outside = "HeldOutside"
    for id, users, flag, codes, comment in (
        ("held-twice", (0, 1, 2, 2), twice, TWICE, "held has two shares of user 2"),
        ("held-outside", (0, 1, 2, 4), outside, OUTSIDE, "held has a share of user N"),
    ):
        shares = drawn(id, "held", BYTE, len(users), 4)
        held = [[user, pack(share)] for user, share in zip(users, shares, strict=True)]
        params = {"q": BYTE, "N": 4, "T": 1, "surviving": [0, 1, 2], "held": held}
        made.invalid(
            id,
            "lightsecagg.aggregate_shares",
            params,
            codes=codes,
            clauses=["ADP-16"],
            flags=[flag],
            comment=comment,
        )


def _drop(made: VectorFile) -> None:
    twice = "DropsTwice"
    phases = "Phases"
    for name, drop, flag, codes, clause, comment in (
        ("twice", {"recover": [1, 1]}, twice, TWICE, "ADP-16", "user 1 drops out twice in one phase"),
        ("two-phases", {"share": [1], "recover": [1]}, twice, TWICE, "ADP-16", "user 1 drops out in two phases"),
        ("no-phase", {"upload": None}, phases, MALFORMED, "ADP-17", "the phase upload is missing"),
        ("unknown-phase", {"done": []}, phases, MALFORMED, "ADP-17", "there is no phase done"),
    ):
        id = f"drop-{name}"
        full = {"share": [], "upload": [], "recover": [], **drop}
        params: dict[str, Any] = {"q": BYTE, "N": 4, "D": 1, "U": 2, "T": 1, "d": 4}
        updates, masks, noises = (drawn(id, part, BYTE, 4, 4) for part in ("updates", "masks", "noises"))
        params |= {
            "updates": _rows(updates),
            "drop": {phase: users for phase, users in full.items() if users is not None},
        }
        rand = {"masks": _rows(masks), "noises": _rows(noises)}
        made.invalid(
            id, "lightsecagg.round", params, rand, codes=codes, clauses=[clause], flags=[flag], comment=comment
        )


def _rows(matrix: Any) -> list[str]:
    return [pack(row) for row in matrix]
