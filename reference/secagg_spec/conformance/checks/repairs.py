"""Checks of what an implementation gives before its adapter repairs it (spec/adapter.md, raw values; CNF-92).

The other checks see the repaired result alone. For each operation the cases of its right results are asked again, and
the raw value is compared with the result: one that differs is the implementation's failure, under the clauses of the
result, and one that has nothing to do with it is the adapter's. A pass decides nothing but the clauses of raw values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities, rawable
from secagg_spec.conformance.adapter.wire import elements
from secagg_spec.conformance.checks.base import LAST, REGISTRY, Caller, Check, CheckFailed, Declined, check, judge_again
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, WIDE, element_bytes, has_form, sized
from secagg_spec.documents import MOST_DIGITS

_RIGHT = {
    *("exact", "neighbours", "signed", "any-shares", "sum", "same", "round-trip", "prefix", "own-masks", "own-shares")
}
"""The last parts of the names of the checks that ask valid requests and compare their results."""
_CARRIED = {"quantizer.quantize": ("QNT-05",)}
"""The clauses that say in which range a result lies, where they are not those of the check that asked."""
_NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS - 1}}}", re.ASCII)


class _Untrue(Exception):
    """A raw value is not the one that the result was made of."""


def _register(operation: str, right: tuple[Check, ...]) -> None:
    def able(caps: Capabilities) -> bool:
        return bool(caps.raw(operation)) and any(one.runs_on(caps) for one in right)

    about: Any = {"operations": (operation,), "applies": able, "wide": operation.startswith(WIDE), "examples": 15}

    @check(f"{operation}/raw", "ADP-55", "ADP-56", **about)
    def raw(draw: Any, call: Caller) -> None:
        """What the implementation gives is the result: its adapter need not reduce it, cut it or fill it up."""
        known = [one for one in right if one.runs_on(call.caps)]
        first, judged = draw(st.integers(0, len(known) - 1)), False
        for chosen in (*known[first:], *known[:first]):
            call.transcript.clear()
            try:
                judge_again(chosen, draw, call, probed=operation)
            except (CheckFailed, Declined):
                if call.transcript and call.transcript[-1].answer is None:
                    raise
            for exchange in [*call.transcript]:
                if exchange.request.raw and exchange.answer and exchange.answer.kind == "result":
                    call.transcript[:], judged = [exchange], True
                    _judge(chosen, call.caps, exchange.request.params, exchange.answer.value, operation)
        if not judged:
            raise Declined


def _judge(
    chosen: Check, caps: Capabilities, params: Mapping[str, Any], result: Mapping[str, Any], operation: str
) -> None:
    """Fail when a raw value is not the result."""
    given, listed = result.get("raw"), caps.raw(operation)
    if not isinstance(given, dict) or set(given) != set(listed):
        _fail(f"{operation}: the result must have the member 'raw', with {', '.join(listed)}", "protocol", "ADP-55")
    R = int(params.get("q", params.get("R", 2)))
    for name in listed:
        try:
            for differs in _compared(rawable(operation)[name], name, given[name], result.get(name), R):
                broken = _CARRIED.get(operation, chosen.clauses)
                _fail(f"{operation}: the implementation gives {differs}", "wrong_value", *broken)
        except ValueError:
            _fail(f"{operation}: the raw value of {name} does not have its form", "protocol", "ADP-55")
        except _Untrue as untrue:
            said = f"is not the raw value reduced, cut or filled up, as the adapter declares: {untrue}"
            _fail(f"{operation}: {name} {said}", "wrong_value", "ADP-56")


def _fail(message: str, verdict: str, *clauses: str) -> NoReturn:
    failed = CheckFailed(verdict, message, step=LAST)
    failed.clauses = clauses
    raise failed


def _compared(type: str, name: str, raw: Any, answer: Any, R: int) -> Iterator[str]:
    """Say of each place where a raw value is not the answer how it differs; ValueError if it has another form.

    An answer of another form is not compared: that is judged elsewhere (ADP-15).
    """
    if type.startswith("["):
        if not isinstance(answer, list):
            return
        if not isinstance(raw, list) or len(raw) != len(answer):
            raise ValueError
        for at, pair in enumerate(zip(raw, answer, strict=True)):
            yield from _compared(type[1:-1], f"{name}[{at}]", *pair, R)
    elif has_form(answer, sized(type, element_bytes(R))):
        yield from (_of_numbers if type == "vector" else _of_bytes)(name, raw, answer, R)


def _of_numbers(name: str, raw: Any, answer: str, R: int) -> Iterator[str]:
    if not isinstance(raw, list) or not all(isinstance(text, str) and _NUMBER.fullmatch(text) for text in raw):
        raise ValueError
    given, got = [*map(int, raw)], [*map(int, elements(answer, R))]
    both = [*enumerate(zip(given, got, strict=False))]
    if any((number - value) % R for _, (number, value) in both) or any(got[len(given) :]):
        raise _Untrue(f"{given} and {got} modulo {R}")
    for at, (number, value) in both:
        if number != value:
            yield f"{name}[{at}] = {number}, which is not reduced modulo {R}; the adapter reduces it to {value}"
    if len(given) != len(got):
        yield f"{name} with {len(given)} elements; the adapter {_lengths(len(given), len(got))}"


def _of_bytes(name: str, raw: Any, answer: str, R: int) -> Iterator[str]:
    if not has_form(raw, "bytes"):
        raise ValueError
    short, long = sorted((raw, answer), key=len)
    rests = [long.removeprefix(short)] * long.startswith(short) + [long.removesuffix(short)] * long.endswith(short)
    if not any(long == raw or set(rest) <= {"0"} for rest in rests):
        raise _Untrue(f"{raw} and {answer}")
    if raw != answer:
        yield f"{name} with {len(raw) // 2} bytes; the adapter {_lengths(len(raw) // 2, len(answer) // 2)}"


def _lengths(given: int, got: int) -> str:
    return f"cuts it to {got}" if given > got else f"fills it up with zeros to {got}"


def register() -> None:
    """Register the check of each operation whose results may be given raw. All other checks must be registered."""
    for operation in OPERATIONS:
        named = [one for one in REGISTRY.values() if operation in one.operations]
        named.sort(key=lambda one: not one.id.startswith(operation))
        right = tuple(one for one in named if one.id.rpartition("/")[2] in _RIGHT)
        if rawable(operation) and right:
            _register(operation, right)
