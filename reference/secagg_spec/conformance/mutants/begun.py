"""Mutants of what a party remembers between rounds: numbers that are used twice, messages that leave twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols import begun, lightsecagg, lightsecagg_active
from secagg_spec.protocols.begun import Begun
from secagg_spec.protocols.lightsecagg_active import PrivateKeys
from secagg_spec.protocols.shape import Role

Function = Callable[..., Any]
_BEGUN = "secagg_spec.protocols.begun"
_TESTS = "tests/protocols/test_begun.py::"
_ID = bytes(range(16))
_TINY = lightsecagg.PRESETS["tiny"]
_ZEROS = _TINY.field.zeros(_TINY.N * _TINY.d).reshape(_TINY.N, _TINY.d)


def _ends(act: Function) -> object:
    """Return what a call gives, or how it is refused."""
    try:
        return act()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _left() -> Any:
    """Return a user of LightSecAgg that left round 5 after it uploaded, and what it uploaded on."""
    network = lightsecagg.open_round(_TINY, _ZEROS, session=_ID, round=5)
    sampled = lightsecagg.draw_randomness(_TINY, {user: SeededSource(b"begun", str(user)) for user in range(_TINY.N)})
    for step in lightsecagg.TABLE[:2]:
        for party in range(_TINY.N) if step.role is Role.USER else (2**32 - 1,):
            network.take(step, party, sampled[party] if step.role is Role.USER else {})
    return network.take(lightsecagg.TABLE[2], 0)


def _again(number: int) -> object:
    state = _left().state
    return _ends(lambda: lightsecagg.user_again(state, number, state.update, state.channel).round)


def _same_key() -> object:
    p = lightsecagg_active.PRESETS["tiny"]
    keys = {user: PrivateKeys(bytes([user + 1]) * 32, bytes([user + 101]) * 32) for user in range(p.N)}
    roster = lightsecagg_active.roster_of(p, keys)
    state = lightsecagg_active.user_start(p, _ID, 5, 0, p.field.zeros(p.d), keys[0], roster)
    return _ends(lambda: lightsecagg_active.user_again(state, 6, p.field.zeros(p.d), keys[0], roster).base.round)


mutant(
    "round-begun-again",
    "SES-01",
    "privacy: a party runs a round a second time under its number, and what two attempts tell together is told",
    f"{_BEGUN}:later_round",
    lambda: _again(5),
    _TESTS + "test_a_party_goes_on_to_later_rounds_only_wherever_it_left_the_last",
    also=("HSA-29", "MRA-22"),
    kind="privacy",
    source="clause left out",
)(lambda right: lambda last, number, name="number": number)


@mutant(
    "failed-round-counts-as-never-begun",
    "SES-01",
    "privacy: a round that did not end is begun again under its number, with a new mask for the same input",
    "secagg_spec.protocols.lightsecagg:user_again",
    lambda: _again(5),
    kind="privacy",
    source="clause in part",
)
def _failed(right: Function) -> Function:
    def user_again(state: Any, round: int, update: Any, channel: Any) -> Any:
        before = state if state.phase == "done" else replace(state, round=state.round - 1)
        return right(before, round, update, channel)

    return user_again


@mutant(
    "session-begun-again",
    "SES-02",
    "privacy: a session id is taken a second time, and keys and ballots of the first session hold in the second",
    f"{_BEGUN}:Begun.begin",
    lambda: _ends(lambda: Begun().begin(_ID, 3).begin(_ID, 0).last),
    _TESTS + "test_a_session_is_begun_once_and_its_rounds_in_ascending_order",
    kind="privacy",
    source="clause left out",
)
def _begun(right: Function) -> Function:
    def begin(self: Begun, session: bytes, round: int = 0) -> Any:
        return right(Begun({known: last for known, last in self.last.items() if known != session}), session, round)

    return begin


mutant(
    "memory-comes-back-one-round-short",
    "SES-01",
    "privacy: a party that is restored begins the last round again",
    f"{_BEGUN}:restore",
    lambda: begun.restore(Begun({_ID: 7}).store()).last,
    _TESTS + "test_a_memory_that_was_stored_comes_back",
    also=("SES-02",),
    kind="privacy",
    source="off by one",
)(lambda right: lambda data: Begun({id: last - 1 for id, last in right(data).last.items() if last}))


@mutant(
    "uploaded-and-forgotten",
    "SES-03",
    "privacy: after its upload a user still holds the mask, and sends another input under it",
    "secagg_spec.protocols.lightsecagg:user_upload",
    lambda: _left().state.phase,
    _TESTS + "test_a_state_that_was_stored_refuses_to_send_its_message_again",
    also=("LSA-04",),
    kind="privacy",
    source="clause left out",
)
def _forgotten(right: Function) -> Function:
    def user_upload(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, phase=state.phase, mask=state.mask), outbox

    return user_upload


@mutant(
    "sealing-key-of-the-round-before",
    "LSA-35",
    "privacy: a user keeps its sealing key from round to round, so that the keys of an attempt are not of it alone",
    "secagg_spec.protocols.lightsecagg_active:user_again",
    _same_key,
    kind="privacy",
    source="used twice",
)
def _kept(right: Function) -> Function:
    def user_again(state: Any, *arguments: Any) -> Any:
        return right(replace(state, sealing=b""), *arguments)

    return user_again
