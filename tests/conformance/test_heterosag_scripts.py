"""HeteroSAg's round in scripts, sessions and single functions: the reference's adapter, mixed rounds, the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.wire import Answer, pack, pack_reals, unpack
from secagg_spec.conformance.cases import heterosag_rounds
from secagg_spec.conformance.cases.lightsecagg_parties import round_secrets
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.faults import REFUSALS
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation.evidence import PlantedConnection
from secagg_spec.conformance.running.runner import Settings, first_failure
from secagg_spec.conformance.sessions import mixed
from secagg_spec.conformance.sessions.heterosag_cells import MASK, ROUND, UNMASK
from secagg_spec.conformance.sessions.heterosag_numbers import members, totals
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference
from secagg_spec.conformance.sessions.session import Played
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.heterosag.round import MaskedSegments
from secagg_spec.protocols.steps import SERVER
from tests.conformance.test_sessions import ID, Tampering, honest, tampered
from tests.quick import QUICK, part

EIGHT = Parameters(8, 1, 1, 3, 5, (4, 4), (1, 1), (3, 6), Range(-1.0, 1.0))
UPDATES = [[(user + at) % 3 if at < 3 or user < 4 else (2 * user + at) % 6 for at in range(5)] for user in range(8)]
SECOND = [4, 5, 6, 7]


def inputs(past: Sequence[Sequence[int]] = ()) -> SessionInputs:
    """A round of two subgroups of four, which can each lose a user; the last segment is masked by one subgroup."""
    setups: dict[int, Any] = {SERVER: {"past": [list(users) for users in past]}}
    for user in range(8):
        own = [list(users) for users in past if user in users]
        setups[user] = {"user": user, "past": own, "update": pack(np.array(UPDATES[user], np.uint64))}
    rands = {user: round_secrets(SeededSource(b"cells", str(user)), 3) for user in range(8)}
    return SessionInputs("heterosag", members(EIGHT), bytes.fromhex(ID), 9, setups, rands)


def ask(op: str, params: Mapping[str, Any], rand: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The answer of the reference's adapter."""
    return reference.build().answer({"id": 1, "op": op, "params": dict(params), "rand": dict(rand or {})})


def summed(users: Sequence[int], at: int, stop: int) -> list[int]:
    """The sum of some elements over some users."""
    return [sum(UPDATES[user][place] for user in users) for place in range(at, stop)]


# ---------------------------------------------------------------------------------------------------------- the adapter


@pytest.mark.requirement("HSA-19", "HSA-21", "ADP-20")
@pytest.mark.parametrize(
    ("dropouts", "sums"),
    [
        ({}, [*summed(range(8), 0, 3), *summed(range(4), 3, 5), *summed(SECOND, 3, 5)]),
        ({"masked_input": [1]}, [*summed([0, *range(2, 8)], 0, 3), *summed([0, 2, 3], 3, 5), *summed(SECOND, 3, 5)]),
        ({"share_keys": SECOND}, [*summed(range(4), 0, 3), *summed(range(4), 3, 5)]),
        ({"masked_input": SECOND}, [*summed(range(4), 0, 3), *summed(range(4), 3, 5)]),
    ],
)
def test_the_scripts_of_all_parties_are_their_steps_in_the_round(dropouts: Any, sums: list[int]) -> None:
    network = inputs().played(dropouts)
    for party in (SERVER, *range(8)):
        scene = Played(inputs(), party, network)
        answer = ask(scene.inputs.named(party), scene.params(scene.calls()), scene.inputs.rand(party))
        entries = answer["result"]["steps"]
        assert [entry["outbox"] for entry in entries] == [[encode(m).hex() for m in e.sent] for e in scene.events()]
        found = [unpack(entry["aggregate"]).tolist() for entry in entries if "aggregate" in entry]
        assert found == ([sums] if party == SERVER else [])


@pytest.mark.requirement("HSA-27", "ADP-38")
def test_a_user_looks_back_at_the_requests_that_it_is_told_of() -> None:
    scene = Played(inputs([list(range(8))]), 0, inputs().played({"masked_input": [1]}))
    entries = ask("heterosag.user", scene.params(scene.calls()), scene.inputs.rand(0))["result"]["steps"]
    assert entries[3]["reject"]["code"] == "below_threshold"
    assert "tell users [1] from the others" in entries[3]["reject"]["message"]
    wrong = {**scene.params([]), "past": [SECOND]}
    assert ask("heterosag.user", wrong, scene.inputs.rand(0))["reject"]["code"] == "bad_param"


@pytest.mark.requirement("HSA-13")
def test_an_input_is_below_the_levels_of_its_cell() -> None:
    params, rand = Played(inputs(), 0, inputs().played()).params([]), inputs().rand(0)
    for element, answered in ((2, "result"), (3, "reject"), (16, "reject")):
        update = pack(np.array([*UPDATES[0][:4], element], np.uint64))
        assert answered in ask("heterosag.user", {**params, "update": update}, rand)


@pytest.mark.requirement("HSA-14", "HSA-15", "HSA-16", "HSA-20", "ADP-38")
def test_what_masks_is_what_unmasks() -> None:
    keys = [bytes([user + 1] * 32).hex() for user in range(8)]
    named = {**members(EIGHT), "session": ID, "round": "9", "keys": keys}
    secret = {(i, j): bytes([i + 8 * j] * 32).hex() for i in range(8) for j in range(8) if i < j}
    segments = []
    for user in range(1, 8):
        known = [[peer, secret[min(user, peer), max(user, peer)]] for peer in range(8) if peer != user]
        own = {"user": user, "self_seed": keys[-user], "secrets": known, "update": pack(np.array(UPDATES[user], "u8"))}
        segments.append(ask(MASK, {**named, **own})["result"]["segments"])
    given = {"survivors": list(range(1, 8)), "segments": segments, "self_seeds": [keys[-user] for user in range(1, 8)]}
    params = {**named, **given, "secrets": [[0, user, secret[0, user]] for user in range(1, 8)]}
    rows = {user: np.array(UPDATES[user], np.uint64) for user in range(1, 8)}
    assert ask(UNMASK, params)["result"]["sums"] == [pack(total) for total in totals(EIGHT, rows)]
    for changed, code in (
        ({"segments": [segments[0] + "00", *segments[1:]]}, "malformed"),
        ({"secrets": params["secrets"][1:]}, "bad_param"),
        ({"secrets": [*params["secrets"], params["secrets"][0]]}, "duplicate_id"),
        ({"secrets": [*params["secrets"], [1, 2, secret[1, 2]]]}, "bad_param"),
        ({"survivors": [2, 1, *range(3, 8)]}, "bad_param"),
        ({"survivors": [1, *range(4, 8)]}, "below_threshold"),
    ):
        assert ask(UNMASK, {**params, **changed})["reject"]["code"] == code


@pytest.mark.requirement("HSA-21", "ADP-39")
def test_a_round_over_real_numbers_is_that_of_the_quantised_ones() -> None:
    x = [pack_reals(np.full(5, -1 + user / 4)) for user in range(8)]
    drop: dict[str, list[int]] = {phase: [] for phase in ("advertise_keys", "share_keys", "masked_input", "unmasking")}
    given = {"clip": False, "x": x, "method": "mean", "trim": 0, "drop": drop}
    rand = {"rounding": [pack_reals(np.full(5, 0.5))] * 8}
    params = {**members(EIGHT), **given}
    result = ask(ROUND, params, rand)["result"]
    assert unpack(result["aggregate"], "<f8")[0] == pytest.approx((0 + 0 + 0 + 1 + 1 + 1 + 1 + 2) / 8 - 1)
    assert [unpack(text).tolist()[0] for text in result["sums"]] == [6, 1, 13]
    assert result["contributors"] == list(range(8))
    late = ask(ROUND, {**params, "drop": {**drop, "share_keys": [1], "unmasking": [2, 3, 4]}}, rand)["result"]
    assert late["contributors"] == [0, *range(2, 8)]
    for changed, code in (
        ({"trim": 1}, "bad_param"),
        ({"method": "Mean"}, "bad_param"),
        ({"drop": {**drop, "masked_input": [1, 2]}}, "below_threshold"),
        ({"drop": {**drop, "masked_input": [1], "unmasking": [1]}}, "duplicate_id"),
        ({"x": [pack_reals(np.full(5, 1.5)), *x[1:]]}, "out_of_range"),
    ):
        assert ask(ROUND, {**params, **changed}, rand)["reject"]["code"] == code
    assert "result" in ask(ROUND, {**params, "clip": True, "x": [pack_reals(np.full(5, 1.5)), *x[1:]]}, rand)


@pytest.mark.requirement("MSG-01")
def test_masked_segments_are_a_message() -> None:
    head = {"session": ID, "round": "9", "sender": 3, "receiver": "server"}
    fields = {"neighbours": [0, 1, 2], "segments": "0badc0de"}
    data = ask("message.encode", {"type": 1281, **head, "fields": fields})["result"]["bytes"]
    assert data.startswith("0105" + ID + "09000000" + "03000000" + "ffffffff" + "03000000")
    assert data.endswith("04000000" + "0badc0de")
    assert ask("message.decode", {"type": 1281, "bytes": data})["result"] == {**head, "fields": fields}


# ------------------------------------------------------------------------------------------------------- mixed sessions

LEAVING: list[dict[str, list[int]]] = [
    {},
    {"advertise_keys": [5]},
    {"share_keys": [1], "unmasking": [0, 2]},
    {"masked_input": [1, 6]},
    {"masked_input": SECOND},
]


@pytest.mark.requirement("HSA-14", "HSA-19", "HSA-22", "ADP-24")
@pytest.mark.parametrize("dropouts", LEAVING)
@pytest.mark.parametrize("parties", [(SERVER,), (0, 3, 7), (*range(8), SERVER)])
def test_a_round_of_two_implementations_ends_with_the_sums(dropouts: Any, parties: tuple[int, ...]) -> None:
    first, second = Tampering(honest).player(), Tampering(honest).player()
    network = mixed.play(inputs(), {party: second if party == SERVER else first for party in parties}, dropouts)
    lost = {user for phase, users in dropouts.items() if phase != "unmasking" for user in users}
    survivors = [user for user in range(8) if user not in lost]
    assert network.states[SERVER].aggregate == pack(inputs().total(survivors))


@pytest.mark.requirement("HSA-17", "HSA-18", "HSA-27")
@pytest.mark.parametrize(
    ("past", "dropouts"), [((), {"masked_input": [1, 2]}), ([list(range(8))], {"masked_input": [1]})]
)
def test_a_round_that_would_tell_too_much_ends(past: Any, dropouts: Any) -> None:
    with pytest.raises(TooFewSurvivors):
        mixed.play(inputs(past), dict.fromkeys((0, SERVER), Tampering(honest).player()), dropouts)


def test_users_that_draw_by_themselves_are_judged_by_the_others_and_the_sums() -> None:
    users = dict.fromkeys((0, 5), Tampering(honest, randomness="none").player())
    network = mixed.play(inputs(), users, {"masked_input": [1]})
    assert network.states[SERVER].aggregate == pack(inputs().total([0, *range(2, 8)]))


def other_bit(message: MaskedSegments) -> MaskedSegments:
    """Masked segments in which the lowest bit is another one."""
    return replace(message, segments=bytes([message.segments[0] ^ 1]) + message.segments[1:])


@pytest.mark.requirement("HSA-15")
def test_a_fault_is_located() -> None:
    with pytest.raises(Difference) as caught:
        mixed.play(inputs(), {3: tampered("masked_input", other_bit).player()})
    spot = caught.value.spot
    assert spot is not None
    assert (caught.value.party, caught.value.phase) == (3, "masked_input")
    assert (spot.type, spot.field, spot.element) == ("MaskedSegments", "segments", 0)


@pytest.mark.requirement("HSA-19")
def test_a_wrong_sum_is_the_servers() -> None:
    def change(phase: str, answer: Answer) -> Answer:
        if phase != "unmasking" or "aggregate" not in answer.value:
            return answer
        return Answer("result", value={"outbox": [], "aggregate": answer.value["aggregate"][8:]})

    with pytest.raises(Difference, match="aggregate") as caught:
        mixed.play(inputs(), {SERVER: Tampering(change).player()})
    assert caught.value.party == SERVER


# ----------------------------------------------------------------------------------------------------------- the checks

BUGS = [
    ("segment-not-in-the-self-mask", "heterosag.mask/exact"),
    ("masks-with-users-outside-the-cell", "heterosag.mask/outsiders"),
    ("masks-with-users-outside-the-cell", "heterosag/own-segments"),
    ("range-not-in-the-hash", "heterosag.mask/bound"),
    ("packed-in-words", "heterosag.user/exact"),
    ("left-over-bits-are-not-looked-at", "heterosag.server/packed-form"),
    ("nobody-is-blamed-for-segments", "heterosag.server/packed-form"),
    ("impossible-sums-are-returned", "heterosag.unmask/impossible-sum"),
    ("all-survivors-are-blamed-for-a-sum", "heterosag.server/impossible-sum"),
    ("server-leaves-cells-to-the-users", "heterosag.server/few-of-a-cell"),
    ("users-trust-the-server-with-cells", "heterosag.user/few-of-a-cell"),
    ("the-last-round-alone-is-remembered", "heterosag.user/another-round"),
    ("lost-subgroup-ends-the-round", "heterosag.round/dropouts"),
    ("sign-of-equation-10", "heterosag.round/dropouts"),
    ("segments-bound-to-secagg", "session.new/heterosag-mixed"),
    ("both-secrets-released", "heterosag.user/request-both"),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", part(4, BUGS), ids="-".join)
def test_a_check_finds_the_bug_that_it_is_for(pair: tuple[str, str]) -> None:
    name, check = pair
    assert name in mutants.load()
    connection = PlantedConnection(name)
    try:
        caps = greet(connection.ask)
        assert first_failure(connection, caps, REGISTRY[check], Settings(cases=200))
    finally:
        connection.close()


@settings(max_examples=20 if QUICK else 200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_users_that_a_round_can_lose_leave_enough(data: st.DataObject) -> None:
    p = heterosag_rounds.parameters(data.draw, spare=1)
    dropped = heterosag_rounds.lost(data.draw, p)
    survivors = [user for user in range(p.N) if user not in dropped]
    assert len(survivors) >= p.enough
    heterosag.check_cells(p, survivors)
    assert heterosag_rounds.allowed(p, heterosag_rounds.seen_before(data.draw, p, survivors), survivors)


def test_parties_meet_the_faults_of_secaggs_round_and_those_of_their_own() -> None:
    def own(role: str) -> set[str]:
        return set(REFUSALS[f"heterosag.{role}"].rules) - shared[role]

    rules = {role: REFUSALS[f"secagg.{role}"].rules for role in ("user", "server")}
    shared = {role: {name for name, rule in known.items() if rule.shared} for role, known in rules.items()}
    assert {"keys-twice", "request-both", "another-request"} <= shared["user"]
    assert {"altered-share", "other-neighbours"} <= shared["server"]
    assert own("user") == {"few-of-a-cell", "another-round"}
    assert own("server") == {"few-of-a-cell", "packed-form", "another-round"}
