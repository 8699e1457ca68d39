"""Runs vectors against an adapter. The outcomes are fixed, so that no oracle is needed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.sampling import Words
from secagg_spec.conformance.adapter import generators, results
from secagg_spec.conformance.adapter.capabilities import WIDENED, Capabilities
from secagg_spec.conformance.adapter.connection import Connection
from secagg_spec.conformance.adapter.wire import unpack
from secagg_spec.conformance.cases.strategies import Verbatim
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Declined
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, WIDE
from secagg_spec.conformance.vectors import entries
from secagg_spec.conformance.vectors.base import Vector
from secagg_spec.conformance.vectors.differences import first_difference
from secagg_spec.crypto import prg

PRESUPPOSED = {"prg.expand": {"prg.stream": "aes-ctr"}}
"""Policies that all vectors of an operation presuppose. Those of single vectors are in the vectors themselves."""
_NEAR = {("heterosag.average", "segment"), ("heterosag.round", "aggregate")}
"""Members of results that may be off by 2**-40 of the larger bound of a range, and 2**-1070 (HSA-23 to HSA-26)."""
_OFF, _LEAST = 2.0**-40, 2.0**-1070
_UNORDERED = {("select.family", "sets")}
"""Members of results that are lists in any order (spec/adapter.md, section 4)."""
_STREAMED: dict[str, bool] = {}
PASS, UNDECLARED = "pass", "undeclared"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a vector: `verdict` is "pass", "undeclared", or a failure's, as in the adapter protocol."""

    vector: Vector
    verdict: str
    message: str = ""
    answer: dict[str, Any] | None = None
    reason_unchecked: bool = False
    clauses: tuple[str, ...] = ()
    """The clauses that the answer breaks, when a right step before the fault came out wrong."""

    @property
    def failed(self) -> bool:
        """Whether the text rules the answer out."""
        return self.verdict not in (PASS, UNDECLARED)


def run(connection: Connection, caps: Capabilities, vectors: Iterable[Vector]) -> Iterator[Outcome]:
    """Judge an adapter by each vector, in order.

    Raises
    ------
    AdapterUnusable
        The adapter crashed and cannot be started again.
    """
    for vector in vectors:
        yield judge(connection, caps, vector)


def judge(connection: Connection, caps: Capabilities, vector: Vector) -> Outcome:
    """Judge an adapter by one vector.

    A vector with a result must have all its numbers inside the declared ranges. A vector that must be refused is asked
    outside them too; there `unsupported` decides nothing (ADP-06).
    """
    if not asks(caps, vector):
        return Outcome(vector, UNDECLARED)
    call = Caller(connection, caps, shuffles=False)
    try:
        demand(call, vector)
    except Declined:
        return Outcome(vector, UNDECLARED)
    except CheckFailed as failed:
        return Outcome(vector, failed.verdict, str(failed), _answer(call), clauses=failed.clauses)
    if call.transcript[-1].answer is not None and call.transcript[-1].answer.kind == "unsupported":
        return Outcome(vector, UNDECLARED)
    return Outcome(vector, PASS, answer=_answer(call), reason_unchecked=call.reason_unchecked)


def asks(caps: Capabilities, vector: Vector) -> bool:
    """Return whether a vector applies to a declaration: it is inside it, or its operation must refuse the vector."""
    return applies(caps, vector) and (_in_range(caps, vector) if vector.result is not None else _refused(caps, vector))


def _refused(caps: Capabilities, vector: Vector) -> bool:
    """Return whether an adapter must refuse what a vector says is refused: not a number above 2**32 if it has such."""
    if caps.narrow is caps or not vector.operation.startswith(WIDE):
        return True
    numbers = (str(vector.params.get(name)) for name in WIDENED)
    return not any(number.isdecimal() and int(number) > MAX_MODULUS for number in numbers)


def covers(caps: Capabilities, vector: Vector) -> bool:
    """Return whether a vector is wholly inside a declaration: operation, grade, policies and numbers."""
    return applies(caps, vector) and _in_range(caps, vector)


def applies(caps: Capabilities, vector: Vector) -> bool:
    """Return whether the operation is declared, with explicit randomness and the policies that the vector needs."""
    if not caps.offers(vector.operation):
        return False
    explicit = not OPERATIONS[vector.operation][1] or caps.grade(vector.operation) == "explicit"
    presupposed = {**PRESUPPOSED.get(vector.operation, {}), **vector.policy}
    declared = explicit and all(caps.policy(name) == choice for name, choice in presupposed.items())
    return declared and not (generators.own(caps) and _takes_streams(vector))


def _takes_streams(vector: Vector) -> bool:
    """Return whether the outcome of a vector depends on streams of the text's generator (PRG-01)."""
    if vector.id not in _STREAMED:
        from secagg_spec.conformance.targets.reference import adapter as reference  # noqa: PLC0415 - only these adapters need it

        taken: list[bytes] = []

        def noted(key: bytes, ring: Ring, n: int) -> Iterator[Words]:
            taken.append(key)
            return prg.usual(key, ring, n)

        request = {"id": 0, "op": vector.operation, "params": vector.params}
        with prg.generator(noted):
            reference.build().answer({**request, "rand": vector.rand} if vector.rand else request)
        _STREAMED[vector.id] = bool(taken)
    return _STREAMED[vector.id]


def _is_outside(caps: Capabilities, vector: Vector) -> bool:
    """Return whether numbers are outside declared ranges. Faults of form come before ranges."""
    narrow = {"ranges", "parameter_sets"} & set(caps.operations[vector.operation])
    of_form = any(clause.startswith("ADP-") for clause in vector.clauses)
    return bool(narrow) and not of_form and not _in_range(caps, vector)


def _in_range(caps: Capabilities, vector: Vector) -> bool:
    try:
        return caps.offers(vector.operation) and caps.declares(vector.operation, vector.params)
    except (TypeError, ValueError):  # a number that is none lies in no range
        return False


def demand(call: Caller, vector: Vector) -> None:
    """Ask a vector, and raise `CheckFailed` if the answer is not the outcome that it demands.

    Raises
    ------
    CheckFailed
        The text rules the answer out.
    Declined
        A vector outside the declared ranges was refused for another reason, which may be the range (ADP-06).
    """
    params = Verbatim(vector.params)
    if vector.result is None:
        try:
            call.refused(vector.operation, params, frozenset(vector.reject), vector.comment, vector.rand)
        except CheckFailed as failed:
            if failed.verdict == "wrong_reason" and _is_outside(call.caps, vector):
                raise Declined from None
            raise
        return
    got = call.result(vector.operation, params, vector.rand)
    unlike = None
    if wrong := results.fault(vector.operation, got):
        unlike = CheckFailed("protocol", f"{vector.operation}: {wrong}", vector.result)
        unlike.clauses = ("ADP-15",)
    if unlike and vector.operation not in entries.MEMBERS:  # a value of another form is no wrong value (CNF-58)
        raise unlike
    _compare(call, vector, got)
    if unlike:
        raise unlike


def _compare(call: Caller, vector: Vector, got: Mapping[str, Any]) -> None:
    """Raise `CheckFailed` unless the members of a result have the right values."""
    assert vector.result is not None
    if vector.operation in entries.MEMBERS:
        name = entries.MEMBERS[vector.operation]
        entries.compare(call, vector.operation, got.get(name), vector.result[name])
        return
    for name, want in vector.result.items():
        if name not in got:
            has = ", ".join(got) or "none"
            raise CheckFailed("protocol", f"{vector.operation}: the result has no member {name!r}; it has {has}", want)
        near = (vector.operation, name) in _NEAR and _is_near(got.get(name), want, vector.params["range"])
        moved = (vector.operation, name) in _UNORDERED and _in_order(got.get(name)) == _in_order(want)
        if not _same(got.get(name), want) and not near and not moved:
            where = first_difference(name, got.get(name), want) or f"{name} is not the one that the text demands"
            raise CheckFailed("wrong_value", f"{vector.operation}: {where}", want)


def _same(got: object, want: object) -> bool:
    """Return whether two values of JSON are the same: 1, 1.0 and true are three, and equal in Python."""
    return got == want and json.dumps(got, sort_keys=True) == json.dumps(want, sort_keys=True)


def _in_order(value: object) -> object:
    """Return a list in an order independent of its own, and anything else unchanged."""
    return sorted(value, key=repr) if isinstance(value, list) else value


def _is_near(got: object, want: str, range: str) -> bool:
    """Return whether a binary64 vector equals that of a vector, within the tolerance of the text."""
    right, bound = unpack(want, "<f8"), float(np.abs(unpack(range, "<f8")).max())
    try:
        numbers = unpack(got, "<f8")
    except ValueError:
        return False
    return numbers.shape == right.shape and bool((np.abs(numbers - right) <= _OFF * bound + _LEAST).all())


def _answer(call: Caller) -> dict[str, Any] | None:
    answer = call.transcript[-1].answer
    return answer.as_json() if answer is not None else None
