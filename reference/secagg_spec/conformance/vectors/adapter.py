"""Vectors of the adapter protocol itself: echo, members, sampled values by name (spec/adapter.md, sections 1 to 3)."""

from __future__ import annotations

from secagg_spec.conformance.checks.base import BAD_RANDOMNESS, MALFORMED
from secagg_spec.conformance.vectors.base import (
    BYTE,
    EDGE_CASE,
    MISSING_STEP,
    Book,
    drawn,
    drawn_bytes,
    drawn_rounding,
)
from secagg_spec.conformance.wire import pack, pack_reals


def book() -> Book:
    """Make the vectors of this area."""
    made = Book("adapter", "Requests and answers: echo, members that lack or are unknown, the names of sampled values.")
    _echo(made)
    _members(made)
    _randomness(made)
    return made


def _echo(made: Book) -> None:
    made.flag(
        "Echo",
        EDGE_CASE,
        "A JSON value changes on its way through the adapter: characters outside ASCII, null, empty values.",
        "what is sent is not what is judged",
        "ADP-01",
        "text-loses-characters",
    )
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


def _members(made: Book) -> None:
    unknown = made.flag(
        "UnknownMember",
        MISSING_STEP,
        "A member of params that the operation does not know is dropped.",
        "a misspelt option has no effect, and nobody notices",
        "ADP-05",
        "unknown-members-dropped",
    )
    missing = made.flag(
        "MissingMember",
        MISSING_STEP,
        "A member of params that is missing is taken as empty.",
        "a request that says nothing gets a result",
        "ADP-05",
        "missing-members-empty",
    )
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


def _randomness(made: Book) -> None:
    name = made.flag(
        "SampledValueNames",
        MISSING_STEP,
        "Sampled values are not checked for their names.",
        "a misspelt name makes an implementation draw, or take zeros, where the caller meant to give the value",
        "RND-04",
        "sampled-values-unchecked",
    )
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
