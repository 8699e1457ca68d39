"""Parties of BASA in scripts and sessions: the reference's adapter, mixed sessions in every assignment, the checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer, Request, pack, pack_reals, unpack
from secagg_spec.conformance.cases import basa_sessions
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation.evidence import PlantedConnection
from secagg_spec.conformance.running.runner import Settings, first_failure, run
from secagg_spec.conformance.sdk.secagg_adapter import Reject, check_form
from secagg_spec.conformance.sessions import basa_acts, basa_fixed
from secagg_spec.conformance.sessions.basa_acts import Director, part_of
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Role, role_of
from tests.quick import QUICK, part

FIRST = 9


def take(name: str, count: int) -> bytes:
    """Bytes of a name."""
    return hashlib.shake_256(name.encode()).digest(count)


def session(kind: str = "settle") -> Director:
    """A session with every kind of timeout, in either profile."""
    if kind == "void":
        return basa_fixed.played(take, basa_fixed.VOID, FIRST, basa_fixed.void_acts(FIRST))
    return basa_fixed.played(take, basa_fixed.NUMBERS, FIRST, basa_fixed.acts(FIRST))


def ask(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer of the reference's adapter."""
    return reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand or {}})


# ---------------------------------------------------------------------------------------------------------- the adapter


@pytest.mark.requirement("BAA-20", "BAA-35", "BAA-41", "ADP-20")
@pytest.mark.parametrize("kind", ["settle", "void"])
def test_the_scripts_of_all_parties_are_their_steps_in_the_session(kind: str) -> None:
    director = session(kind)
    stage = director.stage
    assert len(stage.aggregates) == (2 if kind == "settle" else 1)
    for party in stage.inputs.setups:
        part = part_of(director, party)
        entries = ask(stage.inputs.named(party), part.params(part.calls()), part.inputs.rand(party))["result"]["steps"]
        assert [entry["outbox"] for entry in entries] == [[encode(m).hex() for m in e.sent] for e in part.events()]
        sums = [entry["aggregate"] for entry in entries if "aggregate" in entry]
        assert sums == ([pack(total) for total in stage.aggregates] if party == SERVER else [])


@pytest.mark.requirement("BAA-41")
def test_the_sum_is_that_of_the_weighted_updates() -> None:
    director = session()
    setups, R = director.stage.inputs.setups, int(basa_fixed.NUMBERS["R"])
    rows = {user: [unpack(text).tolist() for text in setups[user]["updates"]] for user in range(7)}
    weights = [(4, rows[0][0]), (None, rows[3][0]), (2, rows[4][0])]
    total = director.stage.aggregates[0].tolist()
    sums = [
        [sum(w * row[at] for w, row in ((w or late, row) for w, row in weights)) % R for at in range(3)]
        for late in (1, 2)
    ]
    assert total in sums


@pytest.mark.requirement("BAA-27", "ERR-01", "RND-04")
def test_what_is_sampled_is_used_in_order_by_the_steps_that_are_taken() -> None:
    part = part_of(session(), 0)
    right, rand = part.calls(), part.inputs.rand(0)
    whole = ask("basa.user", part.params(right), rand)["result"]["steps"]
    refused = right[2]
    twice = [step for pair in zip([refused] * len(right), right, strict=True) for step in pair]
    entries = ask("basa.user", part.params(twice), rand)["result"]["steps"]
    taken = [entry for entry in entries if "reject" not in entry]
    assert [entry["outbox"] for entry in taken if entry in whole] == [entry["outbox"] for entry in whole]
    short = {**rand, "seeds": rand["seeds"][:1]}
    less = ask("basa.user", part.params(right), short)["result"]["steps"]
    second = part.taking("upload")[1]
    assert less[:second] == whole[:second]
    assert less[second]["reject"]["message"] == "no seeds is left: 1 were used"


@pytest.mark.requirement("RND-04")
@pytest.mark.parametrize(
    ("party", "changed", "text"),
    [
        (0, {"stamps": ""}, "len(stamps) = 0: must be 3: one for each update"),
        (0, {"seeds": ["00" * 31]}, "len(seeds[0]) = 31: must be 32 bytes for each position"),
        (AUTHORITY, {"pair_keys": ["00" * 32]}, "len(pair_keys[0]) = 32: must be 32 bytes for each position"),
    ],
)
def test_what_belongs_to_the_whole_request_is_refused_with_it(party: int, changed: dict[str, Any], text: str) -> None:
    part = part_of(session(), party)
    params, rand = part.params(part.calls()), part.inputs.rand(party)
    given = {name: value for name, value in changed.items() if name in params}
    drawn = {name: value for name, value in changed.items() if name in rand}
    answer = ask(part.inputs.named(party), {**params, **given}, {**rand, **drawn})
    assert answer["reject"]["message"] == text


def test_the_profile_without_self_keys_has_none() -> None:
    part = part_of(session("void"), AUTHORITY)
    rand = {**part.inputs.rand(AUTHORITY), "self_keys": part.inputs.rand(AUTHORITY)["pair_keys"]}
    answer = ask("basa.authority", part.params(part.calls()), rand)
    assert answer["reject"]["code"] == "bad_param"


@pytest.mark.requirement("ADP-12", "ADP-13")
def test_the_draws_of_a_user_are_one_vector_and_those_of_a_buffer_a_list() -> None:
    part = part_of(session(), 0)
    opening = {"handle": "h", **part.inputs.opening(0)}
    assert "result" in ask("session.new", opening, part.inputs.rand(0))
    wrong = {**part.inputs.rand(0), "roundings": [part.inputs.rand(0)["roundings"]]}
    assert ask("session.new", opening, wrong)["reject"]["code"] == "malformed"
    check_form("party", "authority", "party")
    with pytest.raises(Reject):
        check_form("party", "user", "party")


# ----------------------------------------------------------------------------------------------------- mixed sessions


class Altering:
    """The reference as an adapter that alters a message of one step, or draws its sampled values itself."""

    def __init__(
        self,
        phase: str = "",
        change: Callable[[Any], Any] = lambda message: message,
        own: Mapping[int, Any] | None = None,
    ) -> None:
        adapter = reference.build()
        if own is not None:
            adapter.hello["randomness"] = "none"
        self._explicit, self._own = reference.build(), own
        self._phase, self._change = phase, change
        self._hello = DirectConnection(adapter.answer)
        self._steps = DirectConnection(self._explicit.answer)
        self.caps = greet(self._hello.ask)

    def ask(self, request: Request) -> Answer:
        """The answer, perhaps another one than the right one."""
        if self._own is not None and request.op == "session.new":
            role, setup = Role(request.params["role"]), request.params["setup"]
            party = {Role.SERVER: SERVER, Role.AUTHORITY: AUTHORITY}.get(role, setup.get("user"))
            request = replace(request, rand=self._own[party])
        answer = self._steps.ask(request)
        if request.op != "session.step" or answer.kind != "result" or request.params["phase"] != self._phase:
            return answer
        outbox = [encode(self._change(parse(bytes.fromhex(text)))).hex() for text in answer.value["outbox"]]
        return Answer("result", value={**answer.value, "outbox": outbox})

    def player(self) -> Player:
        """The adapter as a player."""
        return Player(self, self.caps)


def own_values(inputs: SessionInputs) -> dict[int, Any]:
    """Sampled values of each party that are not those of the inputs."""
    P, settle = basa_acts.positions(inputs.numbers), inputs.numbers["timeouts"] == "settle"

    def rows(name: str, size: int) -> list[str]:
        return [take(f"own {name} {at}", size).hex() for at in range(4)]

    values: dict[int, Any] = {
        user: {
            "seeds": rows(f"seeds {user}", 32 * P),
            "box_keys": rows(f"box keys {user}", 32),
            "roundings": pack_reals(np.full(4, 0.75)),
        }
        for user in inputs.users
    }
    keys = {"pair_keys": rows("pair keys", 32 * P), "self_keys": rows("self keys", 32 * P) if settle else []}
    return {**values, SERVER: {}, AUTHORITY: keys}


@pytest.mark.requirement("BAA-41", "ADP-24")
@pytest.mark.parametrize("kind", ["settle", "void"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("roles", [r for r in product((False, True), repeat=3) if any(r)])
def test_two_implementations_share_an_epoch_in_every_assignment_of_roles(
    kind: str, own: bool, roles: tuple[bool, bool, bool]
) -> None:
    stage = session(kind).stage
    chosen = {role for role, other in zip(Role, roles, strict=True) if other}
    parties = [party for party in stage.inputs.setups if role_of(party) in chosen]
    adapter = Altering(own=own_values(stage.inputs) if own else None)
    again = PositionStage.played(stage.inputs, dict.fromkeys(parties, adapter.player()), stage.turns)
    assert len(again.aggregates) == len(stage.aggregates)
    if not own:
        assert [total.tolist() for total in again.aggregates] == [total.tolist() for total in stage.aggregates]


@pytest.mark.requirement("BAA-07", "BAA-33")
@pytest.mark.parametrize(
    ("party", "name", "text"),
    [
        (AUTHORITY, "pair_keys", "the authority, step open: key 0 was used before"),
        (0, "seeds", "user 0, step upload: seed 0 was used before"),
    ],
)
def test_what_an_implementation_draws_itself_is_new(party: int, name: str, text: str) -> None:
    stage = session().stage
    own = own_values(stage.inputs)
    own[party][name] = own[party][name][:1] * 4
    with pytest.raises(Difference, match=text):
        PositionStage.played(stage.inputs, {party: Altering(own=own).player()}, stage.turns)


def test_seeds_for_several_positions_are_different() -> None:
    stage = session().stage
    own = own_values(stage.inputs)
    own[0]["seeds"] = [entry[:64] * 5 for entry in own[0]["seeds"]]
    with pytest.raises(Difference, match="user 0, step upload: seed 1 was used before"):
        PositionStage.played(stage.inputs, {0: Altering(own=own).player()}, stage.turns)


def more_weight(message: Any) -> Any:
    """An upload of a larger weight."""
    return replace(message, weight=message.weight + 1)


def other_element(message: Any) -> Any:
    """An upload whose second element is another one."""
    masked = message.masked.copy()
    masked[1] = masked[1] ^ np.uint64(1)
    return replace(message, masked=masked)


@pytest.mark.parametrize(
    ("phase", "party", "change", "own", "text"),
    [
        ("upload", 3, other_element, False, r"user 3, step upload: message 0 \(PositionUpload\), masked\[1\]: got \d+"),
        (
            "issue",
            AUTHORITY,
            lambda m: replace(m, key=bytes(32)),
            False,
            r"the authority, step issue: message 0 \(Posi",
        ),
        ("issue", AUTHORITY, lambda m: replace(m, key=bytes(32)), True, r"the authority, step upload: user 0 refuses"),
        ("upload", 0, more_weight, True, r"user 0, step take: the server refuses what it sent: "),
        (
            "open",
            AUTHORITY,
            lambda m: replace(m, keys=m.keys[1:]),
            True,
            r"the authority, step open: the server refuses",
        ),
    ],
    ids=["element", "key", "own key", "weight", "keys"],
)
def test_a_fault_is_located_at_its_party(phase: str, party: int, change: Any, own: bool, text: str) -> None:
    stage = session().stage
    adapter = Altering(phase, change, own_values(stage.inputs) if own else None)
    with pytest.raises(Difference, match=text) as caught:
        PositionStage.played(stage.inputs, {party: adapter.player()}, stage.turns)
    assert caught.value.party == party


def test_a_sum_that_is_not_that_of_the_accepted_updates_is_seen() -> None:
    stage = session().stage

    class Wrong(Altering):
        def ask(self, request: Request) -> Answer:
            answer = super().ask(request)
            if "aggregate" not in (answer.value or {}):
                return answer
            return Answer("result", value={**answer.value, "aggregate": "00" * 12})

    with pytest.raises(Difference, match=r"the server, step recover: aggregate: got 00"):
        PositionStage.played(stage.inputs, {SERVER: Wrong().player()}, stage.turns)


# -------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.slow
@settings(max_examples=10 if QUICK else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_drawn_session_can_be_gone_through_again(data: st.DataObject) -> None:
    director = basa_sessions.session(data.draw)
    stage = director.stage
    again = PositionStage.played(stage.inputs, {}, stage.turns)
    assert [total.tolist() for total in again.aggregates] == [total.tolist() for total in stage.aggregates]
    assert 1 <= len(again.aggregates) <= 2
    for party, moments in director.moments.items():
        assert len(moments) == len([turn for turn in stage.turns if turn.party == party])


BUGS = [
    ("position-given-again", "basa.authority/exact"),
    ("closed-while-assigned", "basa.authority/close-assigned"),
    ("closed-without-T-plus-2", "basa.authority/close-few"),
    ("one-user-at-two-positions", "basa.authority/holder"),
    ("hashes-not-compared", "basa.user/exchanged-boxes"),
    ("box-that-does-not-open-passed-over", "basa.user/unopened"),
    ("key-not-compared", "basa.user/another-key"),
    ("late-upload-taken", "basa.server/late-upload"),
    ("recovery-with-unopened-boxes", "basa.server/unopened"),
    ("added-before-it-is-settled", "basa.server/not-accepted"),
    ("pair-key-of-an-accepted-position", "session.new/basa-mixed"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), part(4, BUGS))
def test_a_check_finds_the_bug_that_it_is_for(name: str, check: str) -> None:
    assert name in mutants.load()
    connection = PlantedConnection(name)
    try:
        caps, _ = run(connection, Settings(pattern="no such check"))
        assert first_failure(connection, caps, REGISTRY[check], Settings(cases=60))
    finally:
        connection.close()
