"""Planted bugs in the sessions of an adapter: what their handles name, and what they are opened with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import Reject, Unsupported
from secagg_spec.conformance.targets import readers, reference
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.conformance.targets.reference_sessions import Sessions

Function = Callable[..., Any]
_SESSIONS = "secagg_spec.conformance.targets.reference_sessions:Sessions"
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_NEW: dict[str, Any] = {
    "protocol": "secagg",
    "role": "server",
    "numbers": {"R": "8", "N": 5, "D": 1, "T": 1, "t": 3, "k": 4, "d": 3},
    "session": "00" * 16,
    "round": "0",
    "setup": {"order": [0, 1, 2, 3, 4]},
}
_OTHER: dict[str, Any] = {
    "protocol": "lightsecagg",
    "numbers": {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3},
    "setup": {},
}


def _asked(*requests: tuple[str, dict[str, Any]]) -> object:
    """Return the answers to requests, without what they say in words."""
    adapter, answers = reference.build(), []
    for number, (op, params) in enumerate(requests):
        answer = adapter.answer({"id": number, "op": op, "params": params})
        for kind in ("reject", "error"):
            answer.get(kind, {}).pop("message", None)
            answer.get(kind, {}).pop("trace", None)
        answers.append(answer)
    return answers


def _new(handle: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    return "session.new", {"handle": handle, **_NEW, **changes}


def _free(handle: str) -> tuple[str, dict[str, Any]]:
    return "session.free", {"handle": handle}


def _step(handle: str, phase: str = "advertise_keys") -> tuple[str, dict[str, Any]]:
    return "session.step", {"handle": handle, "phase": phase, "inbox": []}


def _undeclared() -> object:
    """Return how a party that is not declared is refused."""
    try:
        return secagg_adapter.check_party({**_NEW, "handle": "a"}, ("secagg.user",))
    except (Reject, Unsupported) as error:
        return type(error).__name__


@mutant(
    "handle-taken-over",
    "ADP-22",
    "a second session under a handle in use replaces the first, whose state is lost",
    f"{_SESSIONS}.new",
    lambda: _asked(_new("a"), _new("a")),
    kind="form",
    source="clause left out",
)
def _taken_over(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, **given: Any) -> Any:
        self.open.pop(handle, None)
        return right(self, handle, **given)

    return wrong


@mutant(
    "freed-session-lives",
    "ADP-23",
    "a session that was freed can still be asked",
    f"{_SESSIONS}.free",
    lambda: _asked(_new("a"), _free("a"), _free("a")),
    kind="form",
    source="kept too long",
)
def _never_freed(right: Function) -> Function:
    def wrong(self: Sessions, handle: str) -> Any:
        self._found(handle)
        return {}

    return wrong


@mutant(
    "refused-opening-keeps-the-handle",
    "ADP-23",
    "a session that was refused answers to its handle all the same",
    f"{_SESSIONS}.free",
    lambda: _asked(_free("a")),
    kind="form",
    source="clause left out",
)
def _anything_freed(right: Function) -> Function:
    def wrong(self: Sessions, handle: str) -> Any:
        with suppress(Reject):
            right(self, handle)
        return {}

    return wrong


@mutant(
    "one-session-at-a-time",
    "ADP-24",
    "a step is taken by the session that was opened last, whatever its handle",
    f"{_SESSIONS}._found",
    lambda: _asked(_new("a"), _new("b", **_OTHER), _step("a")),
    kind="form",
    source="other rule: the session that was opened last",
)
def _last_one(right: Function) -> Function:
    def wrong(self: Sessions, handle: str) -> Any:
        right(self, handle)
        return list(self.open.values())[-1]

    return wrong


@mutant(
    "forgets-the-oldest-session",
    "ADP-25",
    "when many sessions are open, the first ones are forgotten",
    f"{_SESSIONS}.new",
    lambda: _asked(*(_new(f"h{number}") for number in range(256)), _free("h0")),
    kind="form",
    source="forgotten",
)
def _forgets(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, **given: Any) -> Any:
        if len(self.open) >= 255:
            del self.open[next(iter(self.open))]
        return right(self, handle, **given)

    return wrong


@mutant(
    "unknown-numbers-are-ignored",
    "ADP-26",
    "a parameter that the protocol does not have is passed over, and so is a misspelt one",
    f"{_SDK}:check_party",
    lambda: _asked(_new("a", numbers={**_NEW["numbers"], "zq": 1})),
    kind="form",
    source="silent repair",
)
def _ignored(right: Function) -> Function:
    def wrong(params: dict[str, Any], declared: Any) -> Any:
        known = secagg_adapter.NUMBERS.get(params["protocol"], ())
        params["numbers"] = {name: value for name, value in params["numbers"].items() if name in known}
        return right(params, declared)

    return wrong


@mutant(
    "unknown-phase-breaks",
    "ADP-27",
    "a phase that the protocol does not have is an error of the adapter, and no rejection",
    f"{_SESSIONS}.step",
    lambda: _asked(_new("a"), _step("a", "sleep")),
    kind="form",
    source="clause left out",
)
def _any_phase(right: Function) -> Function:
    def wrong(self: Sessions, handle: str, phase: str, inbox: Any) -> Any:
        return self._found(handle).take(Call(phase, tuple(readers.octets("inbox", text) for text in inbox)))

    return wrong


@mutant(
    "undeclared-party-is-refused",
    "ADP-28",
    "a party that the adapter is not is refused, as if the request were wrong",
    f"{_SDK}:check_party",
    _undeclared,
    "tests/conformance/test_sessions.py::test_a_party_that_is_not_declared_is_unsupported",
    kind="form",
    source="wrong reason",
)
def _refused(right: Function) -> Function:
    def wrong(params: dict[str, Any], declared: Any) -> Any:
        try:
            return right(params, declared)
        except Unsupported:
            raise Reject("bad_param", "no such party") from None

    return wrong


@mutant(
    "steps-blame-nobody",
    "ADP-29",
    "wrong blame: a refused step of a session does not say whose message was wrong",
    f"{_SDK}:Reject.answer",
    lambda: Reject("bad_share", "x", [1]).answer(),
    kind="refusal",
    source="wrong reason",
)
def _nobody(right: Function) -> Function:
    return lambda self: {name: value for name, value in right(self).items() if name != "blamed"}
