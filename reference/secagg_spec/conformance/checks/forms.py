"""Checks of form: lines that are not requests, types of members, hex and decimal digits (spec/adapter.md, 1 and 3)."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter import results
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases.requests import Place, can_request, one_of, places, put, several, simple_types
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check
from secagg_spec.conformance.sdk.secagg_adapter import (
    OPERATIONS,
    RESULTS,
    WIDE,
    form,
    has_form,
    said,
    sized,
    wide_bytes,
)
from secagg_spec.conformance.sessions.choices import among

DECIMAL = reject.MALFORMED | {"bad_param"}
_HELLO = b'{"id": 7, "op": "hello", "params": {"protocol": [1, 0]}'
NOT_REQUESTS = (
    b"",
    b"hello",
    b"{",
    b"[]",
    b"7",
    b"null",
    b'"hello"',
    b"[" + _HELLO + b"}]",
    b"{}",
    _HELLO,
    _HELLO + b",}",
    _HELLO + b"} x",
    _HELLO + b"}}",
    _HELLO + b"} " + _HELLO + b"}",
    _HELLO.replace(b'"', b"'") + b"}",
    _HELLO.replace(b"1, 0", b"1, NaN") + b"}",
    _HELLO.replace(b"1, 0", b"1, 00") + b"}",
    _HELLO.replace(b"hello", b"hell\xff") + b"}",
    _HELLO.replace(b'"id": 7, ', b"") + b"}",
    *(_HELLO.replace(b"7", id) + b"}" for id in (b'"7"', b"null", b"true", b"7.5", b"7.0", b"7e0", b"[7]", b"{}")),
)
"""Lines that are not JSON, not an object, or without an integer id."""

WRONG: dict[str, tuple[Any, ...]] = {
    "decimal": (7, None, True, [], {}, ["7"]),
    "integer": ("1", None, True, False, [], {}, 1.5),
    "flag": (0, 1, None, "true", [], {}),
    "text": (5, None, True, [], {}),
    **dict.fromkeys(("vector", "words", "binary64", "bytes", "seed"), (0, None, True, [], {}, [1])),
    "object": (None, 0, True, "", []),
    "party": (None, True, [], {}, 1.5, "Server", "1"),
    "event": (None, {}, {"event": "start"}, {"event": "stop", "user": 0}),
    "visit": (None, {}, {"event": "upload"}, {"event": "start", "user": 0}),
    "alteration": (0, True, "", [], {}, {"byte": 0}, {"byte": 0, "mask": "1"}, {"sender": 1, "receiver": 2}),
}
"""For each simple type, values of another JSON type."""


def wrong_values(place: Place) -> list[Any]:
    """Return values of other JSON types; for an integer, also the same number with a fraction."""
    if place.form[0] == "[":
        return [None, 0, True, "", "00000000", {}]
    if place.form[0] == "(":
        return [None, 0, "", {}, [], place.value[:-1], [*place.value, 0]]
    if place.form[0] == "{":
        return [None, 0, True, "", []]
    return [*WRONG.get(place.form, ()), *([float(place.value)] if place.form == "integer" else [])]


_OTHER_NUMBER = reject.MALFORMED | reject.NONCANONICAL
"""The codes for a capital digit of another number, which may be too large as well (CNF-56)."""

_DIGITS_OF_ENTRY = {"vector": 8, "words": 8, "binary64": 16, "bytes": 2, "seed": 64}


@check("adapter/not-a-request", "ADP-10", examples=3 * len(NOT_REQUESTS))
def not_a_request(draw: Any, call: Caller) -> None:
    """A line that is not a request is rejected as malformed, and the id of the answer is null."""
    line = draw(among(NOT_REQUESTS))
    because = "NaN is not JSON, so that " if b"NaN" in line else ""
    _demand_malformed(call, line, None, f"{because}this line is not a request")


def _known(caps: Capabilities) -> list[str]:
    return [name for name in VALID if can_request(name, caps)]


@check("adapter/request-members", "ADP-11", applies=lambda caps: bool(_known(caps)), examples=40, wide=True)
def request_members(draw: Any, call: Caller) -> None:
    """A request with an extra member, a missing member, or a member of the wrong type is rejected as malformed."""
    operation = draw(among(_known(call.caps)))
    valid = VALID[operation](draw, call.caps)
    rand = call.randomness(operation, valid.rand)
    body: dict[str, Any] = {"id": 7, "op": operation, "params": decimal(valid.params)} | (
        {"rand": rand} if rand else {}
    )
    name = draw(among(sorted(_BROKEN_MEMBERS)))
    if name in ("op", "params") and draw(st.booleans()):
        del body[name]
        why = f"the request lacks {name!r}"
    else:
        body[name] = draw(among(_BROKEN_MEMBERS[name]))
        why = f"{name!r} is {json.dumps(body[name])}"
    _demand_malformed(call, json.dumps(body).encode(), 7, why)


_BROKEN_MEMBERS: dict[str, tuple[Any, ...]] = {
    "op": (None, 5, True, [], {}),
    "params": (None, 5, "", [], "{}"),
    "rand": (None, 0, False, "", [], "{}"),
    "Params": ({},),
    "zq": (1,),
}
"""Values of the wrong type for the members of a request, and members that no request has."""


def _about(operation: str) -> dict[str, Any]:
    return {"operations": (operation,), "wide": operation.startswith(WIDE)}


def _types(operation: str) -> None:
    @check(f"{operation}/types", "ADP-12", applies=_can(operation), examples=15, **_about(operation))
    def types(draw: Any, call: Caller) -> None:
        """A member of the wrong JSON type is rejected as malformed."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        found = [place for place in places(operation, valid.params, rand) if wrong_values(place)]
        for place, wrong in _spoiled(draw, found, wrong_values):
            params, changed = put(valid.params, rand, place.path, wrong)
            call.refused(operation, params, reject.MALFORMED, f"{place.name} is {json.dumps(wrong)}", changed)


def _hex(operation: str) -> None:
    @check(f"{operation}/hex", "ADP-13", applies=_has_hex(operation), examples=15, **_about(operation))
    def hex(draw: Any, call: Caller) -> None:
        """A string is malformed unless it consists of lowercase hex digits that encode a whole number of entries."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        found = [
            place for place in places(operation, valid.params, rand) if place.form in _DIGITS_OF_ENTRY and place.value
        ]
        for place, wrong in _spoiled(draw, found, _not_hex):
            params, changed = put(valid.params, rand, place.path, wrong)
            codes = reject.MALFORMED if not wrong.startswith("0A") or place.value.startswith("0a") else _OTHER_NUMBER
            call.refused(operation, params, codes, f"{place.name} is {wrong[:40]!r}", changed)


def _has_hex(operation: str) -> Any:
    """Return whether a request holds hex digits. Some do only with sampled values."""
    given = any(_with_hex(form(operation, member)) for member in OPERATIONS[operation][0])
    return lambda caps: can_request(operation, caps) and (given or caps.grade(operation) != "none")


def _with_hex(form: str) -> bool:
    return not simple_types(form).isdisjoint(_DIGITS_OF_ENTRY)


def _not_hex(place: Place) -> list[str]:
    text = place.value
    capital = text.upper() if text.upper() != text else "0A" + text[2:]
    cut = [text[:-1], text + "0"] if place.form == "bytes" else [text[:-1], text + "0", text[:-2], text + "00"]
    return [
        capital,
        *cut,
        text[:-1] + "g",
        text + " " * _DIGITS_OF_ENTRY[place.form],
        text[:2] + " " + text[2:],
        "0x" + text[2:],
        "-" + text[1:],
        "\uff10" + text[1:],
        text + "\n",
    ]


def _decimal(operation: str) -> None:
    @check(f"{operation}/decimal", "ADP-14", applies=_can(operation), examples=10, **_about(operation))
    def decimal_digits(draw: Any, call: Caller) -> None:
        """A decimal string is an optional minus sign and digits without leading zeros; anything else is malformed."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        found = [place for place in places(operation, valid.params, rand) if place.form == "decimal"]
        for place, wrong in _spoiled(draw, found, _not_decimal):
            params, changed = put(valid.params, rand, place.path, wrong)
            call.refused(operation, params, DECIMAL, f"{place.name} is {wrong[:40]!r}", changed)


def _not_decimal(place: Place) -> list[str]:
    text = place.value
    other_digits = "".join(chr(0x0660 + int(digit)) for digit in text)
    grouped = text[0] + "_" + text[1:]
    simple = ["", "x", "-", "--" + text, "+" + text, "0" + text, " " + text, text + " ", text + "\n"]
    return [*simple, text + ".0", text + "e0", hex(int(text)), grouped, other_digits]


def _results(operation: str) -> None:
    @check(f"{operation}/result", "ADP-15", applies=_can(operation), examples=10, **_about(operation))
    def result(draw: Any, call: Caller) -> None:
        """A result has the members of its operation and no others, encoded as the text says."""
        valid = VALID[operation](draw, call.caps)
        got = call.result(operation, valid.params, call.randomness(operation, valid.rand))
        for name, kind in _checkable(operation).items():
            width = wide_bytes(operation, decimal(valid.params))
            form = valid.params["format"] if kind == "formatted" else sized(kind, width)
            if name not in got or not has_form(got[name], form, digits=None):
                wanted = said(form) if kind == "formatted" else said(kind)
                raise CheckFailed("protocol", f"{operation}: {name} of the result is not {wanted}")
        if wrong := results.fault(operation, got):
            raise CheckFailed("protocol", f"{operation}: {wrong}")


def _checkable(operation: str) -> dict[str, str]:
    """Return the members of a result whose form says all."""
    return {name: kind for name, kind in RESULTS[operation].items() if simple_types(kind) <= {*WRONG, "formatted"}}


def _can(operation: str) -> Any:
    return lambda caps: can_request(operation, caps)


def _spoiled(draw: Any, found: list[Place], wrong: Callable[[Place], list[Any]]) -> list[tuple[Place, Any]]:
    """Draw one or several members, each with a wrong value."""
    chosen = several(draw, lambda: _drawn(draw, found))
    return [(place, one_of(draw, wrong(place))) for place in chosen]


def _drawn(draw: Any, found: list[Place]) -> Place:
    """Draw a member first and then a place in it, so that long lists do not crowd out the other members."""
    name = draw(among(sorted({str(place.path[1]) for place in found})))
    return one_of(draw, [place for place in found if place.path[1] == name])


def _demand_malformed(call: Caller, line: bytes, id: int | None, why: str) -> None:
    answer = call.raw(line, id, why)
    said = f"{why}: {line!r} was answered by {answer.kind}"
    if answer.kind == "error":
        raise CheckFailed("error", f"{said}: {answer.message}", {"reject": ["malformed"]})
    if answer.kind != "reject":
        verdict = "accepted_invalid" if answer.kind == "result" else "rejected_valid"
        raise CheckFailed(verdict, said, {"reject": ["malformed"]})
    if answer.code != "malformed":
        raise CheckFailed("wrong_reason", f"{said} {answer.code}", {"reject": ["malformed"]})


def register(operation: str) -> None:
    """Register the checks of form of an operation."""
    forms = {form(operation, member) for part in OPERATIONS[operation] for member in part}
    if forms:
        _types(operation)
    if any(map(_with_hex, forms)):
        _hex(operation)
    if "decimal" in forms:
        _decimal(operation)
    _results(operation)


for _name in VALID:
    register(_name)
