"""Vectors of integers modulo R and of sampling (spec/conventions.md, sections 2 and 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.checks.base import BAD_PARAM, BAD_RANDOMNESS, LENGTH, NONCANONICAL
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    SMALL,
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
)

_ELEMENTWISE = ("add", "subtract", "multiply")
_LENGTH = 8


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("arithmetic", "Sum, difference, product, inverse and matrix product modulo R; elements from bytes.")
    for operation in _ELEMENTWISE:
        _elementwise(made, operation)
    _examples(made)
    _matmul(made)
    _inverse(made)
    _refusals(made)
    _sampling(made)
    return made


def _pair(id: str, q: int) -> tuple[UintArray, UintArray]:
    return drawn(id, "a", q, _LENGTH), drawn(id, "b", q, _LENGTH)


def _vectors(q: int, a: UintArray, b: UintArray) -> dict[str, Any]:
    return {"q": q, "a": pack(a), "b": pack(b)}


def _elementwise(made: VectorFile, operation: str) -> None:
    flag = {"add": None, "subtract": "Difference", "multiply": "LargeProduct"}[operation]
    for q in (SMALL, BYTE, *LARGE, 2**32):
        id = f"field-{operation}-{q}"
        flags = ["Basic", *([flag] if flag and (operation == "subtract" or q > 2**31 + 11) else [])]
        made.valid(
            id,
            f"field.{operation}",
            _vectors(q, *_pair(id, q)),
            clauses=["MOD-03"],
            flags=flags,
            comment=f"random elements modulo {q}",
        )
    for q in (2, LARGE[-1], 2**32):
        edges = np.array([(a, b) for a in (0, 1, q - 1) for b in (0, 1, q - 1)], dtype=np.uint64)
        made.valid(
            f"field-{operation}-edges-{q}",
            f"field.{operation}",
            _vectors(q, edges[:, 0], edges[:, 1]),
            clauses=["MOD-03"],
            flags=["EdgeValues"],
            comment=f"all pairs of 0, 1 and the largest element modulo {q}",
        )
    made.valid(
        f"field-{operation}-empty",
        f"field.{operation}",
        {"q": BYTE, "a": "", "b": ""},
        clauses=["MOD-03"],
        flags=["NoElements"],
        comment="vectors of no elements have an empty result",
    )


def _examples(made: VectorFile) -> None:
    made.valid(
        "field-add-encoding",
        "field.add",
        {"q": LARGE[-1], "a": "0100000002010000", "b": "0000000000000000"},
        clauses=["MOD-03"],
        flags=["Encoding", "EdgeValues"],
        comment="(1, 258) plus zeros: the encoding that the text shows",
    )


def _matmul(made: VectorFile) -> None:
    shapes = {SMALL: (2, 4, 3), BYTE: (3, 2, 2), LARGE[0]: (2, 8, 2), LARGE[1]: (2, 8, 2), LARGE[2]: (2, 64, 2)}
    for q, (rows, inner, columns) in shapes.items():
        id = f"field-matmul-{q}"
        a, b = drawn(id, "a", q, rows, inner), drawn(id, "b", q, inner, columns)
        made.valid(
            id,
            "field.matmul",
            _product(q, rows, inner, columns, a, b),
            clauses=["MOD-04"],
            flags=["LongSum"] if q > 2**31 else ["MatrixProduct"],
            comment=f"random matrices, {rows} x {inner} and {inner} x {columns}, modulo {q}",
        )
    _matmul_edges(made)
    _empty_products(made)


def _matmul_edges(made: VectorFile) -> None:
    for q, inner in ((LARGE[0], 300), (LARGE[2], 2), (LARGE[2], 300), (2**32, 300)):
        largest = np.full(inner, q - 1, dtype=np.uint64)
        made.valid(
            f"field-matmul-largest-{q}-{inner}",
            "field.matmul",
            _product(q, 1, inner, 1, largest, largest),
            clauses=["MOD-04"],
            flags=["LongSum", "EdgeValues"],
            comment=f"the largest element {inner} times with itself, modulo {q}",
        )


def _empty_products(made: VectorFile) -> None:
    for name, (rows, inner, columns), flag in (
        ("no-inner", (2, 0, 3), "NoTerms"),
        ("no-rows", (0, 2, 3), "EmptyProduct"),
        ("no-columns", (2, 3, 0), "EmptyProduct"),
        ("nothing", (0, 0, 0), "EmptyProduct"),
    ):
        id = f"field-matmul-{name}"
        a, b = drawn(id, "a", BYTE, rows, inner), drawn(id, "b", BYTE, inner, columns)
        made.valid(
            id,
            "field.matmul",
            _product(BYTE, rows, inner, columns, a, b),
            clauses=["MOD-08"],
            flags=[flag],
            comment=f"{rows} x {inner} times {inner} x {columns}",
        )


def _product(q: int, rows: int, inner: int, columns: int, a: UintArray, b: UintArray) -> dict[str, Any]:
    shape = {"rows": rows, "inner": inner, "columns": columns}
    return {"q": q, **shape, "a": pack(a), "b": pack(b)}


def _inverse(made: VectorFile) -> None:
    for q in (SMALL, BYTE, *LARGE):
        every = np.arange(1, SMALL, dtype=np.uint64)
        values = every if q == SMALL else np.maximum(drawn(f"field-inverse-{q}", "a", q, _LENGTH), np.uint64(1))
        made.valid(
            f"field-inverse-{q}",
            "field.inverse",
            {"q": q, "a": pack(values)},
            clauses=["MOD-05"],
            flags=["Inverse", *(["EdgeValues"] if q == SMALL else [])],
            comment="every element but 0" if q == SMALL else f"random elements modulo {q}",
        )
    for q, at in ((SMALL, 0), (LARGE[2], 2)):
        id = f"field-inverse-zero-{q}"
        values = np.maximum(drawn(id, "a", q, _LENGTH), np.uint64(1))
        values[at] = 0
        made.invalid(
            id,
            "field.inverse",
            {"q": q, "a": pack(values)},
            codes=BAD_PARAM,
            clauses=["MOD-05"],
            flags=["InverseOfZero"],
            comment=f"the element {at} is 0",
        )


def _refusals(made: VectorFile) -> None:
    for q in (0, 1, 2**32 + 1, 2**32 + 15):
        id = f"field-add-modulus-{q}"
        a, b = (np.zeros(1, np.uint64),) * 2 if q < 2 else (drawn(id, "a", SMALL, 9), drawn(id, "b", SMALL, 9))
        made.invalid(
            id,
            "field.add",
            _vectors(q, a, b),
            codes=BAD_PARAM,
            clauses=["MOD-01"],
            flags=["ModulusRange", *(["EdgeValues"] if q < 2 else [])],
            comment=f"the modulus is {q}",
        )
    for q in (9, 65537 * 65521, 2**32 - 1):
        id = f"field-inverse-composite-{q}"
        made.invalid(
            id,
            "field.inverse",
            {"q": q, "a": pack(np.array([1, 2, 4], dtype=np.uint64))},
            codes=BAD_PARAM,
            clauses=["MOD-02"],
            flags=["CompositeModulus", "EdgeValues"],
            comment=f"the modulus {q} is composite",
        )
    _noncanonical(made)
    _lengths(made)


def _noncanonical(made: VectorFile) -> None:
    for operation in _ELEMENTWISE:
        for q, beyond, name in ((SMALL, SMALL, "a"), (LARGE[2], 2**32 - 1, "b")):
            id = f"field-{operation}-noncanonical-{q}"
            params = _vectors(q, *_pair(id, q))
            values = drawn(id, name, q, _LENGTH)
            values[3] = beyond
            made.invalid(
                id,
                f"field.{operation}",
                {**params, name: pack(values)},
                codes=NONCANONICAL,
                clauses=["MOD-06", "ERR-02"],
                flags=["NonCanonical"],
                comment=f"{name} holds {beyond}, which is not below {q}",
            )
    _noncanonical_products(made)


def _noncanonical_products(made: VectorFile) -> None:
    q, id = BYTE, "field-matmul-noncanonical"
    a, b = drawn(id, "a", q, 2, 2), drawn(id, "b", q, 2, 2)
    a[1, 1] = q
    made.invalid(
        id,
        "field.matmul",
        _product(q, 2, 2, 2, a, b),
        codes=NONCANONICAL,
        clauses=["MOD-06", "ERR-02"],
        flags=["NonCanonical"],
        comment="the left matrix holds the modulus itself",
    )
    id = "field-inverse-noncanonical"
    values = np.maximum(drawn(id, "a", q, 4), np.uint64(1))
    values[2] = q + 1
    made.invalid(
        id,
        "field.inverse",
        {"q": q, "a": pack(values)},
        codes=NONCANONICAL,
        clauses=["MOD-06", "ERR-02"],
        flags=["NonCanonical"],
        comment=f"the vector holds {q + 1}, which is not below {q}",
    )


def _lengths(made: VectorFile) -> None:
    changes: dict[str, tuple[str, Callable[[UintArray], UintArray]]] = {
        "one-more": ("b has one element more than a", lambda b: np.append(b, b[:1])),
        "one-less": ("b has one element less than a", lambda b: b[:-1]),
        "one": ("b has one element, which could be repeated", lambda b: b[:1]),
        "none": ("b is empty", lambda b: b[:0]),
    }
    for operation, (change, (comment, changed)) in zip((*_ELEMENTWISE, "add"), changes.items(), strict=True):
        id = f"field-{operation}-length-{change}"
        a, b = _pair(id, LARGE[0])
        made.invalid(
            id,
            f"field.{operation}",
            _vectors(LARGE[0], a, changed(b)),
            codes=LENGTH,
            clauses=["MOD-07", "ERR-02"],
            flags=["VectorLengths", *(["EdgeValues"] if change == "none" else [])],
            comment=comment,
        )
    for name, size in (("a", 3), ("b", 5)):
        id = f"field-matmul-shape-{name}"
        right = {"a": drawn(id, "a", BYTE, 4), "b": drawn(id, "b", BYTE, 4)}
        wrong = {**right, name: drawn(id, name, BYTE, size)}
        made.invalid(
            id,
            "field.matmul",
            _product(BYTE, 2, 2, 2, wrong["a"], wrong["b"]),
            codes=LENGTH,
            clauses=["MOD-07", "ERR-02"],
            flags=["MatrixShape"],
            comment=f"{name} has {size} elements where the shape needs 4",
        )


def _sampling(made: VectorFile) -> None:
    for q in (3, SMALL, BYTE, *LARGE):
        id = f"sample-field-{q}"
        made.valid(
            id,
            "sample.field",
            {"q": q, "n": _LENGTH, "bytes": drawn_bytes(id, "bytes", 100).hex()},
            clauses=["RND-02"],
            flags=["Rejection"] if q == LARGE[1] else ["Sampler"],
            comment=f"the first {_LENGTH} elements modulo {q} of 100 random bytes; what comes behind them is not read",
        )
    for q in (3, LARGE[1], LARGE[2]):
        id, limit = f"sample-field-limit-{q}", 2**32 // q * q
        words = np.array([limit - 1, limit, 2**32 - 1, limit - 2], dtype="<u4")
        made.valid(
            id,
            "sample.field",
            {"q": q, "n": 2, "bytes": words.tobytes().hex()},
            clauses=["RND-02"],
            flags=["RejectionEdges"],
            comment=f"the words {limit - 1} and {limit - 2} are taken, {limit} and {2**32 - 1} are skipped",
        )
    id = "sample-field-whole-words"
    made.valid(
        id,
        "sample.field",
        {"q": 2**32, "n": 2, "bytes": drawn_bytes(id, "bytes", 11).hex()},
        clauses=["RND-02"],
        flags=["Sampler"],
        comment="no word is skipped modulo 2**32; three bytes that do not fill a word are not read",
    )
    _short(made)


def _short(made: VectorFile) -> None:
    id = "sample-field-short"
    made.invalid(
        id,
        "sample.field",
        {"q": BYTE, "n": 4, "bytes": drawn_bytes(id, "bytes", 15).hex()},
        codes=BAD_RANDOMNESS,
        clauses=["RND-03"],
        flags=["BytesRunOut"],
        comment="15 bytes hold 3 words, and 4 elements are asked for",
    )
    id = "sample-field-rejected"
    words = np.frombuffer(drawn_bytes(id, "bytes", 16), dtype="<u4").copy()
    words[1] = 2**32 - 1
    made.invalid(
        id,
        "sample.field",
        {"q": LARGE[2], "n": 4, "bytes": words.tobytes().hex()},
        codes=BAD_RANDOMNESS,
        clauses=["RND-03"],
        flags=["BytesRunOut"],
        comment="one of the four words is skipped, and 4 elements are asked for",
    )
