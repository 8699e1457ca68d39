"""Show a failing case as a chart of messages: each party's input, its answer, and the step at fault."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.adapter.wire import octets
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.errors import ParameterError, ProtocolError

Place = tuple[int, int | None]
"""The number of an exchange and, if the exchange is a script, of a step in it."""
Exchanges = Sequence[tuple[Any, Any]]
"""Pairs of a request and its answer, as data."""

_NEW, _STEP, _FREE = "session.new", "session.step", "session.free"
_MOST = 200
"""The most rows of a chart; for a longer case, the last rows up to the fault are shown."""


@dataclass(frozen=True)
class Row:
    """One step: its number, the party that takes it, its input, its answer, and whether the step is wrong."""

    number: int
    party: str
    given: str
    answered: str
    wrong: bool


def rows(exchanges: Exchanges, at: Sequence[int | None] | None) -> list[Row]:
    """Return the chart of a case with a fault at a place; empty if the case is a single request without steps."""
    found = list(_rows(exchanges, at))
    wrong = next((number for number, row in enumerate(found) if row.wrong), len(found))
    start = max(0, min(wrong, len(found) - _MOST))
    return found[start : start + _MOST] if len(found) > 1 else []


def place(exchanges: Exchanges, step: int | None) -> Place:
    """Return the place of the fault: the step with this number of the last script or session, or the last answer."""
    last = fault(exchanges)
    if step is None:
        return last, None
    if _steps(exchanges[last][0]):
        return last, step
    asked = [at for at in range(len(exchanges)) if _op(exchanges, at) == _STEP]
    handle = _handle(exchanges, asked[-1]) if asked else None
    news = [at for at in range(len(exchanges)) if _op(exchanges, at) == _NEW and _handle(exchanges, at) == handle]
    own = [at for at in asked if at > max(news, default=-1) and _handle(exchanges, at) == handle]
    return (own[step] if step < len(own) else last), None


def _op(exchanges: Exchanges, at: int) -> Any:
    request = exchanges[at][0]
    return request.get("op") if isinstance(request, dict) else None


def _handle(exchanges: Exchanges, at: int) -> Any:
    params = exchanges[at][0].get("params")
    return params.get("handle") if isinstance(params, dict) else None


def fault(exchanges: Exchanges) -> int:
    """Return the number of the exchange that shows a fault: the last one that is not the closing of a session."""
    ends = [_op(exchanges, at) == _FREE and "result" in (said or {}) for at, (_, said) in enumerate(exchanges)]
    return max((at for at, freed in enumerate(ends) if not freed), default=len(exchanges) - 1)


def _rows(exchanges: Exchanges, at: Sequence[int | None] | None) -> Iterator[Row]:
    number, step = at or (None, None)
    if len(exchanges) == 1 and _steps(exchanges[0][0]):
        yield from _script(*exchanges[0], step)
        return
    parties = dict[str, str]()
    for here, (request, answer) in enumerate(exchanges):
        yield _exchange(here + 1, request, answer, parties, here == number)


def _exchange(number: int, request: Any, answer: Any, parties: dict[str, str], wrong: bool) -> Row:
    if not isinstance(request, dict):
        return Row(number, "adapter", "a line that is no request", _answer(answer), wrong)
    op, params = str(request["op"]), request["params"]
    handle = str(params.get("handle", "")) if isinstance(params, dict) else ""
    if op == _NEW and isinstance(params, dict):
        setup = params.get("setup")
        user = f" {setup['user']}" if isinstance(setup, dict) and "user" in setup else ""
        parties[handle] = shown(f"{params.get('protocol')}.{params.get('role')}{user} ({handle})", 60)
        return Row(number, parties[handle], "begins", _answer(answer), wrong)
    party = parties.get(handle, "adapter")
    if op == _STEP:
        return Row(number, party, _step(params), _answer(answer), wrong)
    if op == "session.again" and isinstance(params, dict):
        return Row(number, party, shown(f"goes on to round {params.get('round')}", 60), _answer(answer), wrong)
    return Row(number, party, "ends" if op == _FREE else op, _answer(answer), wrong)


def _steps(request: Any) -> list[Any]:
    params = request.get("params") if isinstance(request, dict) else None
    steps = params.get("steps") if isinstance(params, dict) else None
    return steps if isinstance(steps, list) and all(isinstance(step, dict) for step in steps) else []


def _script(request: Mapping[str, Any], answer: Any, wrong: int | None) -> Iterator[Row]:
    """Yield the steps of one party of a script, each with its entry in the answer."""
    steps = _steps(request)
    given = answer.get("result", {}).get("steps") if isinstance(answer, dict) else None
    entries = given if isinstance(given, list) else []
    for number, step in enumerate(steps):
        entry = entries[number] if number < len(entries) else None
        said = _answer(entry if isinstance(entry, dict) else None) if entries else _answer(answer)
        yield Row(number, str(request["op"]), _step(step), said, number == wrong)


def _step(step: Any) -> str:
    """Describe a step: its phase or act, and the messages that it receives."""
    if not isinstance(step, dict):
        return "step"
    name = next((str(step[key]) for key in ("phase", "act", "event", "kind") if key in step), "step")
    inbox = step.get("inbox")
    given = f", given {_messages(inbox)}" if isinstance(inbox, list) and inbox else ""
    return shown(f"{name}{given}", 300)


def _answer(answer: Any) -> str:
    """Summarise an answer, or an entry of one."""
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
    """Summarise messages: their types, with the number of each."""
    kinds = Counter(_kind(text) for text in texts)
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in kinds.items())


def _kind(text: Any) -> str:
    try:
        return type(parse(octets(text))).__name__
    except (ProtocolError, ParameterError, TypeError, ValueError):
        return "bytes that are no message"
