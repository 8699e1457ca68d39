"""A failing case as a chart of messages: what each party was told, what it answered, and which step is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.plain import shown
from secagg_spec.conformance.targets.reference_messages import parse
from secagg_spec.errors import ParameterError, ProtocolError

_FREE = "session.free"
_STEP = re.compile(r"steps?\[(\d+)\]")
_MOST = 200
"""Rows of a chart; of a longer case the last ones are shown."""


@dataclass(frozen=True)
class Row:
    """One step: its number, the party that takes it, what it is given, what it answers, and whether that is wrong."""

    number: int
    party: str
    given: str
    answered: str
    wrong: bool


def rows(exchanges: Sequence[tuple[Any, Any]], message: str, expected: object) -> list[Row]:
    """Return the chart of a case; nothing for a case of one request that has no steps."""
    found = list(_rows(exchanges, message, expected))
    return found[-_MOST:] if len(found) > 1 else []


def fault(exchanges: Sequence[tuple[Any, Any]]) -> int:
    """Return the number of the exchange at fault: the last one, but for the sessions that were freed behind it."""
    ends = [
        isinstance(asked, dict) and asked.get("op") == _FREE and "result" in (said or {}) for asked, said in exchanges
    ]
    return max((at for at, freed in enumerate(ends) if not freed), default=len(exchanges) - 1)


def _rows(exchanges: Sequence[tuple[Any, Any]], message: str, expected: object) -> Iterator[Row]:
    if len(exchanges) == 1 and _steps(exchanges[0][0]):
        yield from _script(*exchanges[0], message, expected)
        return
    parties, wrong = dict[str, str](), fault(exchanges)
    for at, (request, answer) in enumerate(exchanges):
        yield _exchange(at + 1, request, answer, parties, at == wrong)


# ------------------------------------------------------------------------------------------------------- sessions


def _exchange(number: int, request: Any, answer: Any, parties: dict[str, str], wrong: bool) -> Row:
    if not isinstance(request, dict):
        return Row(number, "adapter", "a line that is no request", _answer(answer), wrong)
    op, params = str(request["op"]), request["params"]
    handle = str(params.get("handle", "")) if isinstance(params, dict) else ""
    if op == "session.new" and isinstance(params, dict):
        setup = params.get("setup")
        user = f" {setup['user']}" if isinstance(setup, dict) and "user" in setup else ""
        parties[handle] = shown(f"{params.get('protocol')}.{params.get('role')}{user} ({handle})", 60)
        return Row(number, parties[handle], "begins", _answer(answer), wrong)
    party = parties.get(handle, "adapter")
    if op == "session.step":
        return Row(number, party, _step(params), _answer(answer), wrong)
    if op == "session.again" and isinstance(params, dict):
        return Row(number, party, shown(f"goes on to round {params.get('round')}", 60), _answer(answer), wrong)
    return Row(number, party, "ends" if op == _FREE else op, _answer(answer), wrong)


# -------------------------------------------------------------------------------------------------------- scripts


def _steps(request: Any) -> list[Any]:
    params = request.get("params") if isinstance(request, dict) else None
    steps = params.get("steps") if isinstance(params, dict) else None
    return steps if isinstance(steps, list) and all(isinstance(step, dict) for step in steps) else []


def _script(request: Mapping[str, Any], answer: Any, message: str, expected: object) -> Iterator[Row]:
    """Yield the steps of one party of a script, each beside its entry in the answer."""
    steps = _steps(request)
    given = answer.get("result", {}).get("steps") if isinstance(answer, dict) else None
    entries = given if isinstance(given, list) else []
    at = _wrong_step(message, entries, expected)
    for number, step in enumerate(steps):
        entry = entries[number] if number < len(entries) else None
        said = _answer(entry if isinstance(entry, dict) else None) if entries else _answer(answer)
        last = not entries and number == len(steps) - 1
        yield Row(number, str(request["op"]), _step(step), said, number == at or last)


def _wrong_step(message: str, entries: Sequence[Any], expected: object) -> int | None:
    """Return the step that a message names, or the first whose entry is not the one that is expected."""
    named = _STEP.search(message)
    if named:
        return int(named[1])
    wanted = expected if isinstance(expected, list) else []
    pairs = enumerate(zip(entries, wanted, strict=False))
    return next((number for number, (mine, right) in pairs if mine != right), None)


# ---------------------------------------------------------------------------------------------------------- words


def _step(step: Any) -> str:
    """Return what a step is: its phase, or its act, and the messages that it is given."""
    if not isinstance(step, dict):
        return "step"
    name = next((str(step[key]) for key in ("phase", "act", "event", "kind") if key in step), "step")
    inbox = step.get("inbox")
    given = f", given {_messages(inbox)}" if isinstance(inbox, list) and inbox else ""
    return shown(f"{name}{given}", 300)


def _answer(answer: Any) -> str:
    """Return what an answer, or an entry of one, says in short."""
    if not isinstance(answer, dict):
        return "no answer"
    for kind, word in (("reject", "refuses"), ("error", "breaks")):
        if kind in answer:
            why = answer[kind] if isinstance(answer[kind], dict) else {}
            return shown(" ".join(f"{word}: {why.get('code', '')} {why.get('message', '')}".split()), 200)
    if answer.get("unsupported"):
        return "unsupported"
    body = answer.get("result", answer)
    if not isinstance(body, dict):
        return "answers"
    sent = f"sends {_messages(body['outbox'])}" if isinstance(body.get("outbox"), list) and body["outbox"] else ""
    others = [name for name in body if name != "outbox"]
    has = f"has {', '.join(others)}" if others else ""
    return shown("; ".join(part for part in (sent, has) if part) or "takes it", 200)


def _messages(texts: Sequence[Any]) -> str:
    """Return what messages are: their types, counted."""
    kinds = Counter(_kind(text) for text in texts)
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in kinds.items())


def _kind(text: Any) -> str:
    try:
        return type(parse(bytes.fromhex(text))).__name__
    except (ProtocolError, ParameterError, TypeError, ValueError):
        return "bytes that are no message"
