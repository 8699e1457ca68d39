"""Checks of the adapter itself: transport, honesty, independence of answers (spec/adapter.md)."""

import contextlib
import json
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import HELLO, Capabilities, shake_hands
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import can_request
from secagg_spec.conformance.cases.valid import VALID
from secagg_spec.conformance.checks import arithmetic, basecagg, crypto, lightsecagg, mds, quantizer, reject
from secagg_spec.conformance.checks.base import LAST, Caller, CheckFailed, Declined, Judge, check
from secagg_spec.conformance.sdk.secagg_adapter import DRAWING, MAX_LINE, OPERATIONS, WIDE
from secagg_spec.conformance.sessions.choices import among

_TEXTS = (
    ("letters", "echo"),
    ("control characters", "".join(map(chr, range(32)))),
    ("quotes and backslashes", '"\\/\'\\u0041 \\" %s {} </p> &amp;'),
    ("characters of two bytes", "\x7f\x80\x85\x9f\xa0\xe9\u07ff"),
    ("characters of three bytes", "\u0800\u4e16\ud7ff\ue000\ufdd0\ufffd\uffff"),
    ("line separators and invisible characters", "\u2028\u2029\u200b\u202e\ufeff"),
    ("characters of four bytes", "\U00010000\U0001f600\U0010ffff"),
    ("a name of JavaScript", "__proto__"),
    ("no character", ""),
    ("100,000 bytes", '\xe9"' * 33_334),
)
_MEBIBYTE = 2**20
_MARGIN = 1024
"""Bytes reserved for the request around the longest string."""


@check("adapter/echo", "ADP-01", operations=("echo",), examples=20)
def echo(draw: Any, call: Caller) -> None:
    """Any JSON value comes back as it was sent."""
    leaves = st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.text(max_size=8)
    data = draw(st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=5))
    wanted, got = ({"data": data}, call.result("echo", {"data": data}))
    if json.dumps(got, sort_keys=True) != json.dumps(wanted, sort_keys=True):  # since True == 1 in Python
        raise CheckFailed("wrong_value", f"echo of {data!r} gave something else", wanted)


@check("adapter/texts", "ADP-01", operations=("echo",), examples=1)
def texts(draw: Any, call: Caller) -> None:
    """Texts that JSON escapes, or that take several bytes, come back, also where a request holds them as UTF-8."""
    first = draw(st.integers(0, len(_TEXTS) - 1))
    for name, text in (*_TEXTS[first:], *_TEXTS[:first]):
        data = [text, {text: text}]
        for escaped in (True, False):
            call.transcript.clear()
            line = json.dumps({"id": 1, "op": "echo", "params": {"data": data}}, ensure_ascii=escaped)
            what = f"echo of {name}, in {'escapes' if escaped else 'UTF-8'},"
            answer = call.raw(line.encode(), 1, what)
            if answer.kind != "result":
                verdict = "error" if answer.kind == "error" else "rejected_valid"
                raise CheckFailed(verdict, f"{what} was answered by {answer.said}", {"data": data}, LAST)
            if answer.value != {"data": data}:
                raise CheckFailed("wrong_value", f"{what} gave something else", {"data": data}, LAST)


@check("adapter/long-line", "ADP-02", operations=("echo",), examples=2)
def long_line(draw: Any, call: Caller) -> None:
    """Lines of one mebibyte, and of nearly the longest allowed length, are read and answered."""
    size = draw(among((_MEBIBYTE, MAX_LINE - _MARGIN)))
    data = "x" * size
    if call.result("echo", {"data": data}).get("data") != data:
        raise CheckFailed("wrong_value", f"echo of a string of {size} characters gave something else")


@check("adapter/hello", "ADP-07", "ADP-03", examples=1)
def hello(draw: Any, call: Caller) -> None:
    """A second hello gets the same answer as the first. It has all members, and names only operations of the text."""
    answer = call.ask(HELLO.op, HELLO.params)
    try:
        again = shake_hands(answer)
    except AdapterUnusable as unusable:
        raise CheckFailed("protocol", str(unusable)) from None
    if again != call.caps:
        raise CheckFailed("inconsistent", "the second hello declares something else than the first")


@check("adapter/unknown-operation", "ADP-04", examples=5)
def unknown_operation(draw: Any, call: Caller) -> None:
    """An operation that does not exist is answered with `unsupported`."""
    name = "x" + draw(st.text(alphabet="abcdefghij", min_size=6, max_size=6)) + ".none"
    call.unsupported(name, {}, f"{name} is not declared")


@check(
    "adapter/undeclared-operation", "ADP-04", examples=5, applies=lambda caps: len(caps.operations) < len(OPERATIONS)
)
def undeclared_operation(draw: Any, call: Caller) -> None:
    """An operation that exists but is not declared is answered with `unsupported`."""
    name = draw(among([name for name in OPERATIONS if not call.caps.offers(name)]))
    call.unsupported(name, {}, f"{name} is not declared")


@check("adapter/reject-code", "ADP-09", operations=("field.add",), examples=5, wide=True)
def code_of_rejection(draw: Any, call: Caller) -> None:
    """A rejection carries a code of the list. The runner reports any other code as a protocol failure."""
    valid = VALID["field.add"](draw, call.caps)
    call.refused("field.add", {"q": valid.params["q"]}, reject.MALFORMED, "a and b are missing")


@check("adapter/independent", "ADP-03", applies=lambda caps: bool(_repeatable(caps)), wide=True)
def independent(draw: Any, call: Caller) -> None:
    """A request has the same answer before and after another request."""
    names = _repeatable(call.caps)
    first, second = draw(among(names)), draw(among(names))
    requests = {name: VALID[name](draw, call.caps) for name in dict.fromkeys((first, second))}
    rand = call.randomness(first, requests[first].rand)
    other = call.randomness(second, requests[second].rand)
    before = call.result(first, requests[first].params, rand)
    call.result(second, requests[second].params, other)
    if call.result(first, requests[first].params, rand) != before:
        raise CheckFailed("inconsistent", f"{first} answers differently after {second}", dict(before))


@check("adapter/seeded", "ADP-08", applies=lambda caps: bool(_seeded(caps)), wide=True)
def seeded(draw: Any, call: Caller) -> None:
    """Equal requests with equal seeds have equal results."""
    name = draw(among(_seeded(call.caps)))
    valid = VALID[name](draw, call.caps)
    rand = call.randomness(name, valid.rand, draw(st.integers(0, 2**32)))
    first = call.result(name, valid.params, rand)
    if call.result(name, valid.params, rand) != first:
        raise CheckFailed("inconsistent", f"{name} gives two results for one seed", dict(first))


_RIGHT: dict[str, Judge] = {
    "field.add": arithmetic.add,
    "field.subtract": arithmetic.subtract,
    "field.multiply": arithmetic.multiply,
    "field.inverse": arithmetic.inverse,
    "field.matmul": arithmetic.matmul,
    "mds.encode": mds.any_shares,
    "quantizer.quantize": quantizer.neighbours,
    "lightsecagg.mask": lightsecagg.mask,
    "lightsecagg.aggregate_shares": lightsecagg.aggregate,
    "lightsecagg.round": lightsecagg.everybody,
    "prg.expand": crypto.any_stream,
    "basecagg.encode": basecagg.neighbours,
    "basecagg.mask": basecagg.mask,
    "basecagg.combine": basecagg.combine,
}


_BESIDE = {"mds.encode": ("mds.encode", "mds.decode")}
"""What a function of the table above needs in addition to the operation."""


def _members(operation: str) -> None:
    def known(caps: Capabilities) -> bool:
        return can_request(operation, caps)

    wide = operation.startswith(WIDE)

    @check(f"{operation}/members", "ADP-05", applies=known, examples=6, wide=wide)
    def members(draw: Any, call: Caller) -> None:
        """A request with an extra or a missing member is rejected as malformed."""
        valid = VALID[operation](draw, call.caps)
        params = dict(valid.params)
        name = draw(among(sorted(params))) if params else ""
        if not params or draw(st.booleans()):
            params["zq"] = 1
            why = "params hold the unknown member 'zq'"
        else:
            del params[name]
            why = f"params lack {name!r}"
        call.refused(operation, params, reject.MALFORMED, why, call.randomness(operation, valid.rand))


def _outside(operation: str) -> None:
    needed, wide = _BESIDE.get(operation, (operation,)), operation.startswith(WIDE)

    def narrow(caps: Capabilities) -> bool:
        return bool(_outside_moduli(caps, operation)) and strategies.possible(_moved_outside(caps, operation), needed)

    @check(f"{operation}/outside-range", "ADP-06", operations=needed, applies=narrow, wide=wide)
    def outside(draw: Any, call: Caller) -> None:
        """If the adapter gives a result for a modulus outside its declared ones, the result is right."""
        call.caps = _moved_outside(call.caps, operation)
        call.lenient = True
        with contextlib.suppress(Declined):
            _RIGHT[operation](draw, call)


def _randomness(operation: str) -> None:
    def explicit(caps: Capabilities) -> bool:
        return caps.grade(operation) == "explicit" and can_request(operation, caps)

    wide = operation.startswith(WIDE)

    @check(f"{operation}/randomness", "RND-04", applies=explicit, examples=6, wide=wide)
    def names(draw: Any, call: Caller) -> None:
        """Sampled values with an extra or a missing name are refused."""
        valid = VALID[operation](draw, call.caps)
        rand = dict(valid.rand)
        if draw(st.booleans()):
            rand["zq"] = "00000000"
        else:
            del rand[draw(among(sorted(rand)))]
        call.refused(operation, valid.params, reject.BAD_RANDOMNESS, f"rand has the names {sorted(rand)}", rand)


def _seeded(caps: Capabilities) -> list[str]:
    return [name for name in _drawing(caps) if caps.grade(name) == "seeded"]


def _repeatable(caps: Capabilities) -> list[str]:
    fixed = [name for name in VALID if can_request(name, caps) and name not in DRAWING]
    return fixed + [name for name in _drawing(caps) if caps.grade(name) != "none"]


def _drawing(caps: Capabilities) -> list[str]:
    return [name for name in VALID if OPERATIONS[name][1] and can_request(name, caps)]


def _outside_moduli(caps: Capabilities, operation: str) -> list[int]:
    """Return moduli that are not declared: listed primes that are large enough for a small N."""
    declared = caps.range(operation, "q")
    return [q for q in strategies.PRIMES if q not in declared and q > 2 * strategies.LARGE]


def _moved_outside(caps: Capabilities, operation: str) -> Capabilities:
    """Return capabilities in which every operation has the moduli outside one operation's range."""
    moved = _outside_moduli(caps, operation)
    for name in caps.operations:
        caps = strategies.narrowed(caps, name, moved)
    return caps


def register(operation: str) -> None:
    """Register the checks of the members of an operation and of its sampled values."""
    _members(operation)
    if OPERATIONS[operation][1]:
        _randomness(operation)


for _name in VALID:
    register(_name)
for _name in _RIGHT:
    _outside(_name)
