"""Planted bugs in what a party of the active profile checks before it signs or answers, which vectors find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.signatures import SIGNATURE_BYTES, verification_key
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols import lightsecagg, lightsecagg_active
from secagg_spec.protocols.agreement import Ballot, Proposal
from secagg_spec.protocols.lightsecagg import SurvivingSet
from secagg_spec.protocols.lightsecagg_active import Quorum
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.lightsecagg_active"
_AGREEMENT = "secagg_spec.protocols.agreement"
_TINY = lightsecagg_active.PRESETS["tiny"]
_SESSION, _SET = bytes(16), (0, 1, 2, 3)


def _asked(*sets: Sequence[int] | None) -> object:
    """Return what user 0 does when it is asked to confirm sets, one after another; None is no message."""
    state, outcomes = Confirmations(_TINY).waiting[0], []
    for users in sets:
        inbox = () if users is None else (SurvivingSet(_SESSION, 0, SERVER, 0, tuple(users)),)
        try:
            state, _ = lightsecagg_active.user_confirm(state, inbox, randomness={})
        except (ParameterError, ProtocolError) as error:
            outcomes.append(type(error).__name__)
    return [*outcomes, state.phase]


def _shown(*quorums: bytes | None) -> object:
    """Return what user 0 does when it is shown signatures of users 0 to 3, one quorum after another."""
    message = SurvivingSet(_SESSION, 0, SERVER, 0, _SET)
    state, _ = lightsecagg_active.user_confirm(Confirmations(_TINY).waiting[0], (message,), randomness={})
    outcomes = []
    for signatures in quorums:
        inbox = () if signatures is None else (Quorum(_SESSION, 0, SERVER, 0, _SET, signatures),)
        try:
            state, _ = lightsecagg_active.user_recover(state, inbox, randomness={})
        except (ParameterError, ProtocolError) as error:
            outcomes.append(type(error).__name__)
    return [*outcomes, state.phase]


def _right() -> bytes:
    users = Confirmations(_TINY)
    return b"".join(users.signature(user, _SET) for user in _SET)


@mutant(
    "any-set-is-signed",
    "LSA-09",
    "privacy: a surviving set is signed without a look at it",
    f"{_ACTIVE}:check_surviving_set",
    lambda: _asked((0, 1)),
    also=("LSA-10", "LSA-11"),
    kind="privacy",
    source="clause left out",
)
def _any_set(right: Function) -> Function:
    return lambda N, T, surviving, held: tuple(surviving)


def _any_order(right: Function) -> Function:
    return lambda what, users, blamed: None


mutant(
    "set-in-any-order-is-answered",
    "LSA-32",
    "no interoperation: a user answers a surviving set that other users refuse",
    "secagg_spec.protocols.lightsecagg:check_ascending",
    lambda: _answered((3, 0, 1, 2)),
    kind="acceptance",
    source="clause left out",
)(_any_order)

mutant(
    "set-in-any-order-is-signed",
    "LSA-32",
    "no interoperation: a user signs a surviving set that other users refuse, so that the round has too few signers",
    f"{_ACTIVE}:check_ascending",
    lambda: _asked((0, 2, 1, 3)),
    kind="acceptance",
    source="clause left out",
)(_any_order)

mutant(
    "signers-in-any-order-count",
    "LSA-33",
    "no interoperation: a user answers a quorum that other users refuse",
    f"{_AGREEMENT}:check_ascending",
    lambda: _shown_in((0, 2, 1, 3)),
    kind="acceptance",
    source="clause left out",
)(_any_order)


def _answered(users: Sequence[int]) -> object:
    """Return how user 0 takes a surviving set in the semi-honest profile."""
    state = Confirmations(_TINY).waiting[0].base
    message = SurvivingSet(_SESSION, 0, SERVER, 0, tuple(users))
    try:
        return lightsecagg.user_recover(state, (message,), randomness={})[0].phase
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _shown_in(signers: Sequence[int]) -> object:
    """Return how user 0 takes right signatures on the set that it signed, in an order."""
    users, message = Confirmations(_TINY), SurvivingSet(_SESSION, 0, SERVER, 0, _SET)
    state, _ = lightsecagg_active.user_confirm(users.waiting[0], (message,), randomness={})
    together = b"".join(users.signature(user, _SET) for user in signers)
    quorum = Quorum(_SESSION, 0, SERVER, 0, tuple(signers), together)
    try:
        return lightsecagg_active.user_recover(state, (quorum,), randomness={})[0].phase
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


@mutant(
    "no-set-is-signed",
    "LSA-09",
    "privacy: without a surviving set a user signs that everybody survives whose share it holds",
    f"{_ACTIVE}:user_confirm",
    lambda: _asked(None),
    kind="privacy",
    source="other rule: no message stands for everybody",
)
def _no_set(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        base = state.base
        everybody = SurvivingSet(base.session, base.round, SERVER, base.user, tuple(sorted(base.held)))
        return right(state, inbox or (everybody,), randomness=randomness)

    return wrong


@mutant(
    "no-quorum-is-enough",
    "LSA-29",
    "privacy: a user that is asked for its answer without a quorum gives it",
    f"{_ACTIVE}:user_recover",
    lambda: _shown(None),
    also=("LSA-26",),
    kind="privacy",
    source="other rule: no message stands for a quorum",
)
def _no_quorum(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if inbox or state.phase != "recover":
            return right(state, inbox, randomness=randomness)
        base, outbox = lightsecagg.user_recover(state.base, (state.announced,), randomness=randomness)
        return replace(state, base=base), outbox

    return wrong


@mutant(
    "quorum-of-any-length",
    "MSG-02",
    "acceptance: a quorum is read as far as it goes: signers without a signature are passed over, and bytes too many",
    f"{_AGREEMENT}:check_quorum",
    lambda: _shown(_right() + b"\0"),
    kind="acceptance",
    source="silent repair",
)
def _any_length(right: Function) -> Function:
    def wrong(ballot: Ballot, proposal: Proposal, signers: Sequence[int], signatures: bytes) -> None:
        count = min(len(signers), len(signatures) // SIGNATURE_BYTES)
        right(ballot, proposal, signers[:count], signatures[: count * SIGNATURE_BYTES])

    return wrong


def _marking(right: Function, name: str, change: Callable[[Any], object]) -> Function:
    """Return a step that changes a member of the state when it is refused."""

    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except (ParameterError, ProtocolError):
            object.__setattr__(state, name, change(state))
            raise

    return wrong


@mutant(
    "refused-set-is-remembered",
    "ERR-01",
    "failure: a set that was refused counts as the one that was signed, and the right one is refused",
    f"{_ACTIVE}:user_confirm",
    lambda: _asked((0, 1), _SET),
    kind="refusal",
    source="trace of a refusal",
)
def _remembered(right: Function) -> Function:
    return _marking(
        right,
        "announced",
        lambda state: state.announced or SurvivingSet(_SESSION, 0, SERVER, state.base.user, ()),
    )


@mutant(
    "refused-quorum-forgets-shares",
    "ERR-01",
    "failure: a quorum that is refused makes the user forget its shares, so that one wrong message ends the round",
    f"{_ACTIVE}:user_recover",
    lambda: _shown(bytes(256), _right()),
    kind="refusal",
    source="trace of a refusal",
)
def _forgets(right: Function) -> Function:
    return _marking(right, "base", lambda state: replace(state.base, held={}))


_SCRIPTS = ("lightsecagg_active.user", "lightsecagg_active.server")


def _server(count: int) -> object:
    """Return what the reference's adapter says to a server with this many verification keys, and no steps."""
    keys = [verification_key(bytes([user + 1]) * 32).hex() for user in range(count)]
    numbers = {"q": "7", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "W": 4}
    roster = [public_key(bytes([user + 1]) * 32).hex() for user in range(5)]
    lists = {"roster": roster, "verification": keys}
    params = {**numbers, "session": "00" * 16, "round": "0", **lists, "steps": []}
    return sorted(reference.build().answer({"id": 1, "op": _SCRIPTS[1], "params": params}))


@mutant(
    "long-verification-cut",
    "SIG-04",
    "acceptance: of more than N verification keys the first N are taken",
    "secagg_spec.conformance.sdk.secagg_adapter:Adapter._arguments",
    lambda: _server(6),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def wrong(self: Adapter, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        arguments: dict[str, Any] = right(self, operation, request)
        keys, N = arguments.get("verification"), arguments.get("N")
        if operation not in _SCRIPTS or not isinstance(keys, list) or not isinstance(N, int):
            return arguments
        return {**arguments, "verification": keys[:N]}

    return wrong
