"""Checks of what an implementation gives before its adapter repairs it (spec/adapter.md, raw values; CNF-92).

The other checks see the repaired result alone. For each operation the cases of its right results are asked again, and
the raw value is compared with the result: one that differs is the implementation's failure, under the clauses of the
result, and one that has nothing to do with it is the adapter's. A pass decides nothing but the clauses of raw values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities, rawable
from secagg_spec.conformance.adapter.wire import elements
from secagg_spec.conformance.checks.base import (
    LAST,
    REGISTRY,
    Caller,
    Check,
    CheckFailed,
    Declined,
    Exchange,
    check,
    judge_again,
)
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, WIDE, element_bytes, has_form, sized
from secagg_spec.documents import MOST_DIGITS

_RIGHT = {
    *("exact", "neighbours", "signed", "any-shares", "sum", "same", "round-trip", "prefix", "own-masks", "own-shares")
}
"""The last parts of the names of the checks that ask valid requests and compare their results."""
_CARRIED = {"quantizer.quantize": ("QNT-05",)}
"""The clauses that say in which range a result lies, where they are not those of the check that asked."""


_NONE_CAME = "not run: no raw value came, since each case fails without them as well"
_ALL_EMPTY = "not run: each raw value was empty, where the result is zeros; so nothing shows whose zeros these are"
_MORE = 3
"""How many more cases show whether a raw value is ever more than empty."""


class _Empty(CheckFailed):
    """A raw value is empty, and its result zeros: what an adapter that gives no raw values shows of them, too."""


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
        missed, first, given = Declined(), draw(st.integers(0, len(known) - 1)), False
        doubt: tuple[_Empty, Exchange] | None = None
        shown = False
        for at, chosen in enumerate((*known[first:], *known[:first], *known[first : first + 1] * _MORE)):
            if at >= len(known) and (shown or not doubt):
                break
            call.transcript.clear()
            drawn = list[Any]()
            failed = _failed(chosen, partial(_kept, draw, drawn), call, probed=operation)
            asked = [*call.transcript]
            for exchange in asked:
                if exchange.request.raw and exchange.answer and exchange.answer.kind == "result":
                    call.transcript[:], given = [exchange], True
                    try:
                        _judge(chosen, call.caps, exchange.request.params, exchange.answer.value, operation)
                    except _Empty as empty:
                        doubt = doubt or (empty, exchange)
                    shown |= _holds(exchange.answer.value["raw"])
            call.transcript[:] = asked
            if isinstance(failed, CheckFailed) and asked:
                _refuse_other_answers(chosen, failed, drawn, call)
            if failed:
                missed = failed if isinstance(failed, Declined) else Declined(_NONE_CAME)
        if doubt and not shown:
            raise Declined(_ALL_EMPTY)
        if doubt:
            call.transcript[:] = [doubt[1]]
            raise doubt[0]
        if not given:
            raise missed


def _failed(chosen: Check, draw: Any, call: Caller, **changes: Any) -> CheckFailed | Declined | None:
    """Judge a case of another check, and return what it raises."""
    try:
        judge_again(chosen, draw, call, **changes)
    except (CheckFailed, Declined) as failed:
        return failed
    return None


def _kept(draw: Any, drawn: list[Any], strategy: Any) -> Any:
    drawn.append(draw(strategy))
    return drawn[-1]


def _refuse_other_answers(chosen: Check, failed: CheckFailed, drawn: list[Any], call: Caller) -> None:
    """Raise a failure that does not come without raw values.

    Any other is that of the check that asks without, and must not hide what the adapter repairs (CNF-58).
    """
    last = call.transcript[-1]
    if last.answer is None:
        raise failed
    without, left = last.request.raw and last.answer.kind != "result", iter(drawn)
    plain = _failed(chosen, lambda strategy: next(left), call, transcript=[])
    if not isinstance(plain, CheckFailed) or plain.verdict != failed.verdict:
        said = f"only where raw values are asked for: {failed}"
        changed = CheckFailed(failed.verdict, said, failed.expected, failed.step)
        changed.clauses = () if without else failed.clauses or chosen.clauses
        raise changed
    failed.clauses = failed.clauses or chosen.clauses


def _judge(
    chosen: Check, caps: Capabilities, params: Mapping[str, Any], result: Mapping[str, Any], operation: str
) -> None:
    """Fail when a raw value is not the result."""
    given, listed = result.get("raw"), caps.raw(operation)
    if not isinstance(given, dict) or set(given) != set(listed):
        more = min(set(given if isinstance(given, dict) else ()).difference(listed), default=None)
        lacks = "" if more is None else f" and no others; it has {more!r}"
        said = f"{operation}: the result must have the member 'raw', with {', '.join(listed)}{lacks}"
        _fail(said, "protocol", "ADP-55")
    R = int(params.get("q", params.get("R", 2)))
    for name in listed:
        try:
            for differs in _compared(rawable(operation)[name], name, given[name], result.get(name), R):
                broken, kind = _CARRIED.get(operation, chosen.clauses), CheckFailed if _holds(given[name]) else _Empty
                _fail(f"{operation}: the implementation gives {differs}", "wrong_value", *broken, repaired=kind)
        except ValueError as error:
            said = str(error) or "does not have its form"
            _fail(f"{operation}: the raw value of {name} {said}", "protocol", "ADP-55")
        except _Untrue as untrue:
            said = f"is not the raw value reduced, cut or filled up, as the adapter declares: {untrue}"
            _fail(f"{operation}: {name} {said}", "wrong_value", "ADP-56")


def _holds(raw: Any) -> bool:
    """Return whether a raw value, or one of several, is more than empty."""
    entries = raw.values() if isinstance(raw, dict) else raw if isinstance(raw, list) else ()
    return bool(raw) if isinstance(raw, str) else any(map(_holds, entries))


def _fail(message: str, verdict: str, *clauses: str, repaired: type[CheckFailed] | None = None) -> NoReturn:
    failed = (repaired or CheckFailed)(verdict, message, step=LAST)
    failed.clauses, failed.repaired = clauses, repaired is not None
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
    if not has_form(raw, "[decimal]", None):
        raise ValueError
    if any(len(text.removeprefix("-")) > MOST_DIGITS for text in raw):
        raise ValueError(f"holds an integer of more than {MOST_DIGITS:,} digits")
    given, got = [*map(int, raw)], [*map(int, elements(answer, R))]
    ends = [_aligned(given, got, shift) for shift in (0, len(given) - len(got))]
    made = [both for both in ends if all(value in (number, number % R) for _, number, value in both)]
    if not made:
        raise _Untrue(f"{given} and {got} modulo {R}")
    for at, number, value in min(made, key=lambda both: sum(number != value for _, number, value in both)):
        if number != value:
            yield f"{name}[{at}] = {number}, which is not reduced modulo {R}; the adapter reduces it to {value}"
    if len(given) != len(got):
        yield f"{name} with {len(given)} elements; the adapter {_lengths(len(given), len(got))}"


def _aligned(given: list[int], got: list[int], shift: int) -> list[tuple[int, int, int]]:
    """Return each element of an answer behind the place and the number that it is made of: 0 beyond the ends."""
    places = range(shift, shift + len(got))
    return [(at, given[at] if 0 <= at < len(given) else 0, value) for at, value in zip(places, got, strict=True)]


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
