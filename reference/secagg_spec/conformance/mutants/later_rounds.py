"""Planted bugs in an adapter whose parties go on from round to round of their session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk import secagg_adapter
from secagg_spec.conformance.sdk.secagg_adapter import Reject, Unsupported
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.targets.reference_sessions import Member, Sessions
from secagg_spec.conformance.wire import pack
from secagg_spec.protocols import heterosag, heterosag_plan

Function = Callable[..., Any]
_HERE = "secagg_spec.conformance.targets.reference_sessions"
_SDK = "secagg_spec.conformance.sdk.secagg_adapter"
_AGAIN = f"{_HERE}:Member.again"
_LIGHT: dict[str, Any] = {
    "protocol": "lightsecagg",
    "numbers": {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3},
    "session": "00" * 16,
    "round": "5",
}


def _vector(*values: int) -> str:
    return pack(np.array(values, np.uint64))


_SERVER = {"role": "server", "setup": {}}
_USER = {"role": "user", "setup": {"user": 0, "channel": "plain", "update": _vector(1, 2, 3)}}
_RANDS = [{"mask": _vector(4, at, 6), "noise": _vector(at, 5)} for at in range(2)]
_SHARE = {"phase": "share", "inbox": []}


def _asked(*requests: tuple[str, Mapping[str, Any], Mapping[str, Any]]) -> object:
    """Return the answers to requests about one session, without what they say in words."""
    adapter, answers = reference.build(), []
    for number, (op, params, rand) in enumerate(requests):
        answer = adapter.answer({"id": number, "op": op, "params": {"handle": "a", **params}, "rand": rand})
        for kind in ("reject", "error"):
            answer.get(kind, {}).pop("message", None)
            answer.get(kind, {}).pop("trace", None)
        answers.append(answer)
    return answers


def _new(**own: Any) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    return "session.new", {**_LIGHT, **own}, _RANDS[0] if own["role"] == "user" else {}


def _again(round: int, **setup: Any) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    return "session.again", {"round": str(round), "setup": setup}, _RANDS[1] if setup else {}


def _step() -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    return "session.step", _SHARE, {}


_NEXT = {"channel": "plain", "update": _vector(3, 2, 1)}


# ------------------------------------------------------------------------------------------------- numbers of rounds


def _number(state: Any) -> int:
    """Return the number of the round of a party."""
    if hasattr(state, "base"):
        return _number(state.base)
    return int(getattr(state.round, "number", state.round))


def _numbered(state: Any, number: int) -> Any:
    """Return the state of a party as if it were in the round of another number."""
    if hasattr(state, "base"):
        return replace(state, base=_numbered(state.base, number))
    round = state.round if isinstance(state.round, int) else replace(state.round, number=number)
    return replace(state, round=number if isinstance(round, int) else round)


def _finished(state: Any) -> bool:
    """Return whether a party has taken all of its steps."""
    return bool((getattr(state, "base", state)).phase == "done")


def _comparing(right: Function, floor: Callable[[Member], int]) -> Function:
    """Return a party that goes on to each round whose number is above another one than the last."""

    def wrong(self: Member, round: int, setup: Any, rand: Any) -> None:
        before = self.state
        self.state = _numbered(before, max(0, floor(self)))
        try:
            right(self, round, setup, rand)
        except Exception:
            self.state = before
            raise

    return wrong


mutant(
    "round-of-the-same-number",
    "SES-01",
    "privacy: the number of the last round is taken again, and the keys and masks of that round serve two inputs",
    _AGAIN,
    lambda: _asked(_new(**_SERVER), _again(5)),
    kind="privacy",
    source="off by one",
)(lambda right: _comparing(right, lambda party: _number(party.state) - 1))


mutant(
    "number-of-a-round-that-failed-is-free",
    "SES-01",
    "privacy: a round that did not end is run again under its number, and two attempts tell what none may tell alone",
    _AGAIN,
    lambda: _asked(_new(**_SERVER), _again(5)),
    kind="privacy",
    source="clause in part",
)(lambda right: _comparing(right, lambda party: _number(party.state) - (not _finished(party.state))))


@mutant(
    "numbers-compared-with-the-first",
    "SES-01",
    "privacy: later rounds are above the first one of the session, and may come twice",
    _AGAIN,
    lambda: _asked(_new(**_SERVER), _again(6), _again(6)),
    kind="privacy",
    source="clause in part",
)
def _first(right: Function) -> Function:
    return _comparing(right, lambda party: party.__dict__.setdefault("first", _number(party.state)))


@mutant(
    "refused-round-ends-the-session",
    "ERR-01",
    "failure: a later round that is refused ends the session, so that one wrong number ends a round",
    f"{_HERE}:Sessions.again",
    lambda: _asked(_new(**_SERVER), _again(5), _step()),
    kind="refusal",
    source="trace of a refusal",
)
def _ends(right: Function) -> Function:
    def wrong(self: Sessions, handle: Any, round: Any, setup: Any, rand: Any) -> Any:
        try:
            return right(self, handle, round, setup, rand)
        except Exception:
            self.open.pop(handle, None)
            raise

    return wrong


@mutant(
    "refused-round-takes-the-new-values",
    "ERR-01",
    "privacy: a later round that is refused gives the values that it samples to the old one",
    _AGAIN,
    lambda: _asked(_new(**_USER), _again(5, **_NEXT), _step()),
    kind="privacy",
    source="trace of a refusal",
)
def _early(right: Function) -> Function:
    def wrong(self: Member, round: int, setup: Any, rand: Any) -> None:
        if self.sampled:
            self.sampled = self.protocol.sampled(self.parameters, rand)
        right(self, round, setup, rand)

    return wrong


# ------------------------------------------------------------------------------------------------- what is kept


@mutant(
    "mask-of-the-round-before",
    "ADP-54",
    "privacy: the mask of a round serves again in the next, and the difference of two inputs comes out",
    _AGAIN,
    lambda: _asked(_new(**_USER), _again(6, **_NEXT), _step()),
    kind="privacy",
    source="used twice",
)
def _old_mask(right: Function) -> Function:
    def wrong(self: Member, round: int, setup: Any, rand: Any) -> None:
        before = self.sampled
        right(self, round, setup, rand)
        self.sampled = before

    return wrong


def _answered(again: Function, state: Any, *update: Any) -> object:
    return [sorted(users) for users in again(state, 6, *update).past]


_CELLS = heterosag_plan.PRESETS["tiny"]
_PAST = (frozenset(range(_CELLS.N)),)


def _cells_user() -> object:
    zeros = np.zeros(_CELLS.d, np.uint64)
    state = heterosag.user_start(_CELLS, bytes(16), 5, 0, zeros, past=_PAST)
    return _answered(heterosag.user_again, state, zeros)


def _forgets(right: Function) -> Function:
    return lambda state, *rest: replace(right(state, *rest), past=())


mutant(
    "answers-forgotten-in-the-next-round",
    "HSA-27",
    "privacy: a user forgets between rounds which requests it answered, and two rounds tell few users of a cell",
    "secagg_spec.protocols.heterosag:user_again",
    _cells_user,
    also=("ADP-54",),
    kind="privacy",
    source="forgotten",
)(_forgets)


mutant(
    "requests-forgotten-in-the-next-round",
    "HSA-28",
    "privacy: the server forgets between rounds what it asked for, and asks for what tells few users of a cell",
    "secagg_spec.protocols.heterosag:server_again",
    lambda: _answered(heterosag.server_again, heterosag.server_start(_CELLS, bytes(16), 5, past=_PAST)),
    also=("ADP-54",),
    kind="privacy",
    source="forgotten",
)(_forgets)


# ------------------------------------------------------------------------------------------------- handles and members


def _checked(party: str | None, **setup: Any) -> object:
    """Return how the helper takes the members of a request."""
    try:
        return secagg_adapter.check_again({"handle": "a", "round": "6", "setup": setup}, party)
    except (Reject, Unsupported) as error:
        return type(error).__name__


@mutant(
    "later-round-of-no-session",
    "ADP-51",
    "a later round of a session that is not open is called unsupported, as if the operation were not offered",
    f"{_SDK}:check_again",
    lambda: _checked(None),
    kind="form",
    source="wrong reason",
)
def _nowhere(right: Function) -> Function:
    def wrong(params: dict[str, Any], party: str | None) -> Any:
        if party is None:
            raise Unsupported
        return right(params, party)

    return wrong


@mutant(
    "later-round-where-there-are-none",
    "ADP-52",
    "a party of a protocol without common rounds refuses a later one, as if the request were wrong",
    f"{_SDK}:check_again",
    lambda: _checked("basecagg.server"),
    kind="form",
    source="wrong reason",
)
def _none(right: Function) -> Function:
    def wrong(params: dict[str, Any], party: str | None) -> Any:
        try:
            return right(params, party)
        except Unsupported:
            raise Reject("bad_param", "it has no rounds") from None

    return wrong


@mutant(
    "members-of-a-later-round-are-passed-over",
    "ADP-53",
    "what a party is not given again is taken all the same, and a misspelt member with it",
    f"{_SDK}:check_again",
    lambda: _checked("lightsecagg.server", zq=1),
    kind="form",
    source="silent repair",
)
def _passed_over(right: Function) -> Function:
    def wrong(params: dict[str, Any], party: str | None) -> Any:
        names = secagg_adapter.PARTIES[party][0] if party else ()
        known = [name for name in names if name not in secagg_adapter.REMEMBERED]
        params["setup"] = {name: value for name, value in params["setup"].items() if name in known}
        return right(params, party)

    return wrong
