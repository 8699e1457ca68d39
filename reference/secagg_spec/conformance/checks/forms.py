"""Checks of form: lines that are not requests, types of members, hex and decimal digits (spec/adapter.md, 1 and 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases.requests import Place, can_request, one_of, places, put, several
from secagg_spec.conformance.cases.strategies import decimal
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks.base import (
    BAD_CIPHERTEXT,
    BAD_SHARE,
    MALFORMED,
    NONCANONICAL,
    Caller,
    CheckFailed,
    check,
)
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, form
from secagg_spec.conformance.sessions.choices import among

DECIMAL = MALFORMED | {"bad_param"}
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
    **dict.fromkeys(("vector", "words", "reals", "bytes", "seed"), (0, None, True, [], {}, [1])),
    **dict.fromkeys(
        ("vectors", "users", "lists of users", "held", "stamped shares", "skipped seeds", "reals list"),
        (None, 0, True, "", "00000000", {}),
    ),
    **dict.fromkeys(("drop", "round drop", "early drop", "request"), (None, 0, True, "", [])),
    **dict.fromkeys(("bytes list", "parcels", "numbers", "list", "requests"), (None, 0, True, "", {})),
    **dict.fromkeys(("pair", "parcel"), (None, 0, "", {}, [], [0], [0, "", 0])),
    "stamped share": (None, 0, "", {}, [], [0, ""], [0, "0", "", 0]),
    "skipped seed": (None, 0, "", {}, [], [0, 1], [0, 1, "", ""], [0, "1", ""]),
    "number": (None, 0, "", {}, [], ["q"], ["q", "7", "7"], [7, "7"]),
    "object": (None, 0, True, "", []),
    "party": (None, True, [], {}, 1.5, "Server", "1"),
    "schedule": (None, 0, True, "", {}, [None], [{}], [{"event": "start"}], [{"event": "stop", "user": 0}]),
    "epoch schedule": (None, 0, True, "", {}, [None], [{}], [{"event": "upload"}], [{"event": "start", "user": 0}]),
    "alteration": (0, True, "", [], {}, {"byte": 0}, {"byte": 0, "mask": "1"}, {"sender": 1, "receiver": 2}),
}
"""For each form, values of another JSON type."""

_ALTERED = MALFORMED | NONCANONICAL | BAD_SHARE | BAD_CIPHERTEXT | {"inconsistent_sets"}
"""The codes for a string with extra bytes."""

_HEX = ("vector", "words", "reals", "bytes", "seed")
_WITH_HEX = {*_HEX, "vectors", "held", "stamped shares", "skipped seeds", "reals list", "bytes list", "parcels"}
_DIGITS_OF_ENTRY = {"vector": 8, "words": 8, "reals": 16, "bytes": 2, "seed": 64}


@check("adapter/not-a-request", "ADP-10", examples=3 * len(NOT_REQUESTS))
def not_a_request(draw: Any, call: Caller) -> None:
    """A line that is not a request is rejected as malformed, and the id of the answer is null."""
    line = draw(among(NOT_REQUESTS))
    because = "NaN is not JSON, so that " if b"NaN" in line else ""
    _demand_malformed(call, line, None, f"{because}this line is not a request")


def _known(caps: Capabilities) -> list[str]:
    return [name for name in VALID if can_request(name, caps)]


@check("adapter/request-members", "ADP-11", applies=lambda caps: bool(_known(caps)), examples=40)
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


def _types(operation: str) -> None:
    @check(f"{operation}/types", "ADP-12", operations=(operation,), applies=_can(operation), examples=15)
    def types(draw: Any, call: Caller) -> None:
        """A member of the wrong JSON type is rejected as malformed."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        found = [place for place in places(operation, valid.params, rand) if place.form in WRONG]
        for place, wrong in _spoiled(draw, found, _of_another_type):
            params, changed = put(valid.params, rand, place.path, wrong)
            call.refused(operation, params, MALFORMED, f"{place.name} is {json.dumps(wrong)}", changed)


def _of_another_type(place: Place) -> list[Any]:
    """Return values of other JSON types; for an integer, also the same number with a fraction."""
    wrong = list(WRONG[place.form])
    return [*wrong, float(place.value)] if place.form == "integer" else wrong


def _hex(operation: str) -> None:
    @check(f"{operation}/hex", "ADP-13", operations=(operation,), applies=_has_hex(operation), examples=15)
    def hex(draw: Any, call: Caller) -> None:
        """A string is malformed unless it consists of lowercase hex digits that encode a whole number of entries."""
        valid = VALID[operation](draw, call.caps)
        rand = call.randomness(operation, valid.rand)
        found = [place for place in places(operation, valid.params, rand) if place.form in _HEX and place.value]
        for place, wrong in _spoiled(draw, found, _not_hex):
            params, changed = put(valid.params, rand, place.path, wrong)
            codes = MALFORMED if wrong.lower() != "0a" + place.value[2:] else _ALTERED
            call.refused(operation, params, codes, f"{place.name} is {wrong[:40]!r}", changed)


def _has_hex(operation: str) -> Any:
    """Return whether a request holds hex digits. Some do only with sampled values."""
    given = any(form(operation, member) in _WITH_HEX for member in OPERATIONS[operation][0])
    return lambda caps: can_request(operation, caps) and (given or caps.grade(operation) != "none")


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
    @check(f"{operation}/decimal", "ADP-14", operations=(operation,), applies=_can(operation), examples=10)
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
    @check(f"{operation}/result", "ADP-15", operations=(operation,), applies=_can(operation), examples=10)
    def result(draw: Any, call: Caller) -> None:
        """The members of a result are encoded as the text says."""
        valid = VALID[operation](draw, call.caps)
        got = call.result(operation, valid.params, call.randomness(operation, valid.rand))
        for name, kind in RESULTS[operation].items():
            form = valid.params["format"] if kind == "reals" else kind
            if not _has_form(got.get(name), form):
                raise CheckFailed("protocol", f"{operation}: {name} of the result is not {_FORMS_OF_RESULTS[form]}")


RESULTS: dict[str, dict[str, str]] = {
    **{name: {"value": "vector"} for name in VALID if name.startswith(("field.", "sample."))},
    "mds.encode": {"shares": "vectors"},
    "mds.decode": {"mask": "vector"},
    "quantizer.quantize": {"value": "vector"},
    "quantizer.dequantize": {"x": "reals"},
    "lightsecagg.mask": {"masked": "vector"},
    "lightsecagg.aggregate_shares": {"share": "vector"},
    "lightsecagg.recover": {"aggregate": "vector"},
    "lightsecagg.round": {"aggregate": "vector", "contributors": "users"},
    "prg.expand": {"value": "vector"},
    "key.agree": {"secret": "bytes"},
    "key.derive": {"key": "bytes", "binding": "bytes"},
    "seal.close": {"payloads": "bytes list"},
    "seal.open": {"plaintext": "bytes"},
    "pair.agree": {"first": "bytes", "second": "bytes", "public": "bytes list"},
    "pair.seal": {"opened": "bytes", "payload": "bytes"},
    "message.encode": {"bytes": "bytes"},
    "signature.sign": {"signature": "bytes", "signed": "bytes"},
    "shamir.share": {"shares": "bytes list"},
    "shamir.reconstruct": {"secret": "bytes"},
    "staleness.weight": {"weight": "decimal"},
    "basecagg.encode": {"value": "vector"},
    "basecagg.mask": {"masked": "vector"},
    "basecagg.combine": {"share": "vector"},
    "basecagg.recover": {"sum": "vector", "average": "binary64"},
    "basa.mask": {"masked": "vector"},
    "basa.seal": {"box": "bytes"},
    "basa.open": {"seed": "bytes"},
    "basa.recover": {"sum": "vector", "average": "binary64"},
    "secagg.average": {"average": "binary64", "contributors": "users"},
    "quantize.levels": {"value": "vector"},
    "segment.plan": {
        **dict.fromkeys(("members", "matrix", "levels"), "lists of users"),
        "lengths": "users",
        "moduli": "decimals list",
    },
    "heterosag.average": {"segment": "binary64"},
    "heterosag.mask": {"segments": "bytes"},
    "heterosag.unmask": {"sums": "vectors"},
    "heterosag.round": {"sums": "vectors", "aggregate": "binary64", "contributors": "users"},
    "select.family": {"size": "decimal", "sets": "listed sets"},
    "select.batch": {"chosen": "choice"},
    "select.session": {"session": "bytes"},
    "select.complete": {"survivors": "users"},
    "audit.privacy": {"strong": "user", "weak": "users", "gap": "decimals", "cardinality": "decimals"},
}
"""The members of each result, and their forms."""

_FORMS_OF_RESULTS = {
    "vector": "a string of lowercase hex digits, 8 for each element",
    "binary64": "a string of lowercase hex digits, 16 for each number",
    "binary32": "a string of lowercase hex digits, 8 for each number",
    "vectors": "a list of strings of lowercase hex digits, 8 for each element",
    "user": "a JSON integer",
    "users": "a list of JSON integers",
    "decimals": "a list of decimal strings",
    "lists of users": "a list of lists of JSON integers",
    "listed sets": "a list of lists of JSON integers, or null",
    "choice": "a list of JSON integers, or null",
    "decimal": "a decimal string",
    "decimals list": "a list of lists of decimal strings",
    "bytes": "a string of lowercase hex digits, 2 for each byte",
    "bytes list": "a list of strings of lowercase hex digits",
}


def _has_form(value: Any, form: str) -> bool:
    if form in _OR_NULL:
        return value is None or _has_form(value, _OR_NULL[form])
    if form in _LISTS:
        return isinstance(value, list) and all(_has_form(entry, _LISTS[form]) for entry in value)
    if form == "user":
        return type(value) is int
    if form == "decimal":
        return isinstance(value, str) and re.fullmatch("-?(0|[1-9][0-9]*)", value, re.ASCII) is not None
    digits = {"binary64": 16, "bytes": 2}.get(form, 8)
    return isinstance(value, str) and re.fullmatch(f"([0-9a-f]{{{digits}}})*", value) is not None


_OR_NULL = {"listed sets": "lists of users", "choice": "users"}
_LISTS = {
    "vectors": "vector",
    "users": "user",
    "lists of users": "users",
    "bytes list": "bytes",
    "decimals list": "decimals",
    "decimals": "decimal",
}


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
        raise CheckFailed("accepted_invalid", said, {"reject": ["malformed"]})
    if answer.code != "malformed":
        raise CheckFailed("wrong_reason", f"{said} {answer.code}", {"reject": ["malformed"]})


for _name in VALID:
    _forms = {form(_name, member) for part in OPERATIONS[_name] for member in part}
    if _forms:
        _types(_name)
    if _forms & _WITH_HEX:
        _hex(_name)
    if "decimal" in _forms:
        _decimal(_name)
    if _name in RESULTS:
        _results(_name)
