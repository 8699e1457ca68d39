"""Numbers that are used once: the memory of a party, going on to later rounds, and states that refuse a second message.

The rows of the table of spec/conventions.md, section 13, are read from the text: what it lists is what is tried.
"""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import LengthMismatch, ParameterError, Replay, WrongPhase
from secagg_spec.protocols.basa import store as basa_store
from secagg_spec.protocols.basa.authority import AuthorityState
from secagg_spec.protocols.basa.user import UserState
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import store as basecagg_store
from secagg_spec.protocols.begun import Begun, restore
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Event, Network, run_synchronous
from tests.protocols import buffered, positions

SESSIONS = st.binary(min_size=16, max_size=16)
ROUNDS = st.integers(0, 2**32 - 1)
SESSION = bytes(range(16))


# ------------------------------------------------------------------------------------------------------ the memory


@pytest.mark.requirement("SES-01", "SES-02")
@given(st.lists(st.tuples(st.sampled_from([bytes([n]) * 16 for n in range(3)]), st.integers(0, 5)), max_size=12))
def test_a_session_is_begun_once_and_its_rounds_in_ascending_order(calls: list[tuple[bytes, int]]) -> None:
    memory, last = Begun(), dict[bytes, int]()
    for session, round in calls:
        before = dict(memory.last)
        if session not in last:
            with pytest.raises(ParameterError, match="a session that this party has begun"):
                memory.go_on(session, round)
            memory = memory.begin(session, round)
        else:
            with pytest.raises(ParameterError, match="never begun a session with"):
                memory.begin(session, round)
            if round <= last[session]:
                allowed = rf"round = {round}: must be an integer in \[{last[session] + 1}, 4294967295\]"
                with pytest.raises(ParameterError, match=allowed):
                    memory.go_on(session, round)
                assert memory.last == before
                continue
            memory = memory.go_on(session, round)
        last[session] = round
        assert memory.last == last


@pytest.mark.requirement("SES-01", "SES-02")
@given(st.dictionaries(SESSIONS, ROUNDS, max_size=4))
def test_a_memory_that_was_stored_comes_back(last: dict[bytes, int]) -> None:
    memory = Begun(last)
    copies = restore(json.loads(json.dumps(memory.store()))), pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory)
    assert {memory, *copies} == {memory}


@pytest.mark.requirement("SES-01")
def test_after_the_last_round_there_is_no_later_one() -> None:
    last = 2**32 - 1
    memory = Begun({SESSION: last - 1})
    for number in (last + 1, 10**30):
        with pytest.raises(ParameterError, match=rf"^round = {number}: must be an integer in \[{last}, {last}\]$"):
            memory.go_on(SESSION, number)
    for number in (last, last + 1):
        with pytest.raises(ParameterError, match=f"must be of another session: round {last} was the last of this one$"):
            memory.go_on(SESSION, last).go_on(SESSION, number)


@pytest.mark.parametrize("data", [None, {"zz": 0}, {"00": 0}, {"00" * 16: -1}, {"00" * 16: 2**32}, {1: 0}])
def test_what_is_no_memory_is_refused(data: Any) -> None:
    with pytest.raises(ParameterError):
        restore(data)


@pytest.mark.requirement("SES-01", "SES-02")
@pytest.mark.parametrize("spelled", ["AB" * 16, "aB" * 16, " ".join(["ab"] * 16), "ab" * 16 + "\n", "\uff41b" * 16])
def test_a_session_has_one_spelling_so_that_no_older_round_replaces_a_later_one(spelled: str) -> None:
    for data in ({spelled: 3}, {"ab" * 16: 9, spelled: 3}, {spelled: 3, "ab" * 16: 9}):
        with pytest.raises(ParameterError, match=r"session = .*must be bytes as pairs of hex digits in lower case"):
            restore(data)
    assert restore({"ab" * 16: 9}).last == {b"\xab" * 16: 9}


def test_a_memory_that_is_refused_says_which_part_is_wrong() -> None:
    with pytest.raises(ParameterError, match=r"^round = -1: must be an integer in \[0, 4294967295\]$"):
        restore({"ab" * 16: -1})
    with pytest.raises(LengthMismatch, match=r"^len\(session\) = 15: must be 16 bytes$"):
        restore({"ab" * 15: 0})


@pytest.mark.parametrize("session", [bytearray(16), "0" * 16, None])
def test_a_session_id_is_bytes(session: Any) -> None:
    with pytest.raises(ParameterError, match=r"^session = .*: must be bytes$"):
        Begun().begin(session)


@pytest.mark.parametrize("session", [b"", bytes(15), bytes(17)])
def test_a_session_id_has_sixteen_bytes(session: Any) -> None:
    with pytest.raises(LengthMismatch, match="16 bytes"):
        Begun().begin(session)
    with pytest.raises(LengthMismatch, match="16 bytes"):
        Begun().go_on(session, 1)


# ---------------------------------------------------------------------------------------------------- whole rounds


def _updates(modulus: int, users: int, d: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.arange(users * d, dtype=np.uint64).reshape(users, d) % np.uint64(modulus)


def _sources(users: int) -> dict[int, SeededSource]:
    return {user: SeededSource(b"begun", f"user {user}") for user in range(users)}


def _light(number: int) -> tuple[Network, Mapping[int, Any]]:
    p = lightsecagg.PRESETS["tiny"]
    network = lightsecagg.open_round(p, _updates(p.q, p.N, p.d), session=SESSION, round=number)
    return network, lightsecagg.draw_randomness(p, _sources(p.N))


def _pairwise(number: int) -> tuple[Network, Mapping[int, Any]]:
    p = secagg.PRESETS["tiny"]
    network = secagg.open_round(p, _updates(p.R, p.N, p.d), session=SESSION, round=number)
    return network, secagg.draw_randomness(p, _sources(p.N))


def _pairwise_active(number: int) -> tuple[Network, Mapping[int, Any]]:
    p = secagg_active.PRESETS["tiny"]
    signing = {user: bytes([user + 1]) * 32 for user in range(p.N)}
    network = secagg_active.open_round(p, _updates(p.R, p.N, p.d), signing=signing, session=SESSION, round=number)
    return network, secagg.draw_randomness(p, _sources(p.N))


def _cells(number: int) -> tuple[Network, Mapping[int, Any]]:
    p = heterosag_plan.PRESETS["tiny"]
    network = heterosag.open_round(p, _updates(2, p.N, p.d), session=SESSION, round=number)
    return network, secagg.draw_randomness(p, _sources(p.N))


def _keys(round: int) -> dict[int, lightsecagg_active.PrivateKeys]:
    """The keys of the users in a round: verification keys that stay, sealing keys that do not."""
    users = range(lightsecagg_active.PRESETS["tiny"].N)
    sealing = {user: hashlib.sha256(f"{round} {user}".encode()).digest() for user in users}
    return {user: lightsecagg_active.PrivateKeys(sealing[user], bytes([user + 101]) * 32) for user in users}


def _light_active(number: int) -> tuple[Network, Mapping[int, Any]]:
    p = lightsecagg_active.PRESETS["tiny"]
    updates = _updates(p.q, p.N, p.d)
    network = lightsecagg_active.open_round(p, updates, keys=_keys(number), session=SESSION, round=number)
    return network, lightsecagg.draw_randomness(p, _sources(p.N))


def _further(name: str, party: int, state: Any, number: int) -> tuple[Any, ...]:
    """What a party needs for another round besides its number and, of a user, its input."""
    if name == "LightSecAgg, active":
        roster = lightsecagg_active.roster_of(lightsecagg_active.PRESETS["tiny"], _keys(number))
        return (roster,) if party == SERVER else (_keys(number)[party], roster)
    return (state.channel,) if name == "LightSecAgg" and party != SERVER else ()


OPENED: dict[str, tuple[ModuleType, Callable[[int], tuple[Network, Mapping[int, Any]]]]] = {
    "LightSecAgg": (lightsecagg, _light),
    "LightSecAgg, active": (lightsecagg_active, _light_active),
    "SecAgg": (secagg, _pairwise),
    "SecAgg, active": (secagg_active, _pairwise_active),
    "HeteroSAg": (heterosag, _cells),
}
"""By protocol: its module, and the network of a round with that number and its sampled values."""


def _input_of(state: Any) -> Any:
    while hasattr(state, "base"):
        state = state.base
    return state.update


@cache
def _states(name: str, number: int) -> list[tuple[int, Any]]:
    """Each party with each state that it has in an honest round, from its start on."""
    network, randomness = OPENED[name][1](number)
    found = list(network.states.items())
    run_synchronous(network, {}, randomness)
    return found + [(event.party, event.state) for event in network.transcript]


def _started(name: str, number: int) -> dict[int, Any]:
    """The state of each party before its first step."""
    found: dict[int, Any] = {}
    for party, state in _states(name, number):
        found.setdefault(party, state)
    return found


@pytest.mark.requirement("SES-01")
@pytest.mark.parametrize("name", OPENED)
@given(st.data())
def test_a_party_goes_on_to_later_rounds_only_wherever_it_left_the_last(name: str, data: st.DataObject) -> None:
    module, last = OPENED[name][0], 5
    party, state = data.draw(st.sampled_from(_states(name, last)))
    number = data.draw(st.integers(0, 2 * last) | ROUNDS)
    extra = () if party == SERVER else (_input_of(_started(name, last)[party]),)
    extra += _further(name, party, state, number % 2**16 if number > last else last + 1)
    again = module.server_again if party == SERVER else module.user_again
    if number <= last:
        with pytest.raises(ParameterError, match=rf"= {number}: must be an integer in \[{last + 1}, "):
            again(state, number, *extra)
    else:
        assert again(state, number, *extra).phase == module.PHASES[0]


@pytest.mark.requirement("SES-01")
@pytest.mark.parametrize("name", OPENED)
def test_parties_that_went_on_have_a_round_with_its_sum(name: str) -> None:
    module = OPENED[name][0]
    network, randomness = OPENED[name][1](3)
    run_synchronous(network, {}, randomness)
    once = network.states[SERVER]
    inputs = {user: _input_of(state) for user, state in network.states.items() if user != SERVER}
    again = Network(network.table, {SERVER: module.server_again(once, 4, *_further(name, SERVER, once, 4))})
    for user, update in inputs.items():
        state = network.states[user]
        again.states[user] = module.user_again(state, 4, update, *_further(name, user, state, 4))
    run_synchronous(again, {}, randomness)
    one, two = (state.base if hasattr(state, "base") else state for state in (once, again.states[SERVER]))
    assert np.array_equal(np.concatenate([one.aggregate]), np.concatenate([two.aggregate]))


@pytest.mark.requirement("LSA-35")
def test_a_sealing_key_of_the_active_profile_is_that_of_one_round() -> None:
    for party, state in _states("LightSecAgg, active", 5):
        if party != SERVER:
            p, keys = lightsecagg_active.PRESETS["tiny"], _keys(5)
            roster, update = lightsecagg_active.roster_of(p, keys), _input_of(_started("LightSecAgg, active", 5)[party])
            with pytest.raises(ParameterError, match=r"keys\.sealing = 'that of the round before'.*drawn anew"):
                lightsecagg_active.user_again(state, 6, update, keys[party], roster)
            other = {**keys, (party + 1) % p.N: _keys(6)[(party + 1) % p.N]}
            with pytest.raises(ParameterError, match="drawn anew"):
                lightsecagg_active.user_again(state, 6, update, keys[party], lightsecagg_active.roster_of(p, other))


# ------------------------------------------------------------------------------------- what is stored before it leaves


def _rows() -> list[tuple[str, str, str]]:
    """The rows of the table that name a message: protocol, who, message."""
    text = (resources.root("spec") / "conventions.md").read_text(encoding="utf-8")
    section = text[text.index("## 13. ") :]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [(row[0], row[1], row[2].strip("`")) for row in rows if re.fullmatch(r"`\w+`", row[2])]


Trial = tuple[list[Event], Callable[[Any], Any]]
"""The steps of an honest run, and what becomes of a state that is stored and restored."""


def _round_of(name: str) -> Trial:
    network, randomness = OPENED[name][1](0)
    run_synchronous(network, {}, randomness)
    return network.transcript, lambda state: state


def _buffer(protocol: ModuleType) -> Trial:
    scene = buffered.Scene(protocol.PRESETS["tiny"])
    scene.fill()
    scene.recover()

    def stored(state: Any) -> Any:
        if not isinstance(state, basecagg.ServerState):
            return state
        return basecagg_store.restore(json.loads(json.dumps(basecagg_store.store(state))))

    return scene.network.transcript, stored


def _epoch() -> Trial:
    scene = positions.Scene(positions.TINY)
    scene.open()
    scene.upload(*range(positions.TINY.K))
    ring = scene.authority.ring

    def stored(state: Any) -> Any:
        if isinstance(state, AuthorityState):
            data = json.loads(json.dumps(basa_store.store_authority(state)))
            return basa_store.restore_authority(data, ring)
        if isinstance(state, UserState):
            return basa_store.restore_user(json.loads(json.dumps(basa_store.store_user(state))))
        return basa_store.restore_server(json.loads(json.dumps(basa_store.store_server(state))))

    return scene.network.transcript, stored


TRIALS: dict[str, Callable[[], Trial]] = {
    **{name: partial(_round_of, name) for name in OPENED},
    "BASecAgg": partial(_buffer, basecagg),
    "BASecAgg, active": partial(_buffer, basecagg_active),
    "BASA": _epoch,
}
ROWS = _rows()


def test_the_table_names_every_protocol() -> None:
    assert {protocol for protocol, _, _ in ROWS} == set(TRIALS)


@pytest.mark.requirement("SES-03")
@pytest.mark.parametrize(("protocol", "who", "message"), ROWS, ids=" ".join)
def test_a_state_that_was_stored_refuses_to_send_its_message_again(protocol: str, who: str, message: str) -> None:
    events, stored = TRIALS[protocol]()
    sent = [e for e in events if message in {type(each).__name__ for each in e.sent} and e.step.role.value == who]
    assert sent, f"nobody sends {message}"
    for event in sent:
        sampled = dict.fromkeys(event.step.randomness)
        with pytest.raises((Replay, WrongPhase)):
            event.step.take(stored(event.state), event.received, randomness=sampled)


DRAWS = {"StampedShare", "BufferedSet", "PositionKey", "PositionUpload"}
"""Messages of steps that sample values, which events do not keep."""
PLAIN = [row for row in ROWS if row[2] not in DRAWS | {"StampedUpdate"}]  # before its upload a user gets an update


@pytest.mark.requirement("SES-03")
@pytest.mark.parametrize(("protocol", "who", "message"), PLAIN, ids=" ".join)
def test_a_state_from_before_sends_the_message_once_more(protocol: str, who: str, message: str) -> None:
    """Nothing but the stored state stops a party: what it had before the step takes the step again."""
    events, _ = TRIALS[protocol]()
    tried = 0
    for at, event in enumerate(events):
        named = message in {type(each).__name__ for each in event.sent} and event.step.role.value == who
        before = [one.state for one in events[:at] if one.party == event.party]
        if named and before:
            _, sent = event.step.take(before[-1], event.received, randomness={})
            assert [encode(one) for one in sent] == [encode(one) for one in event.sent]
            tried += 1
    assert tried
