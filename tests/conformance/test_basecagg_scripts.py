"""Parties of BASecAgg in scripts, sessions and schedules: the reference's adapter, mixed sessions, and the checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer, Request, pack, pack_reals, unpack
from secagg_spec.conformance.cases import basecagg_sessions
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.running.runner import Settings, first_failure, run
from secagg_spec.conformance.sessions.basecagg_stage import Stage, Turn
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding
from secagg_spec.crypto.keys import public_key
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.steps import SERVER
from tests.conformance import narrow
from tests.quick import QUICK, exhaustive, part

NUMBERS: dict[str, Any] = {
    "q": "97",
    "N": 5,
    "D": 1,
    "U": 3,
    "T": 1,
    "d": 3,
    "K": 3,
    "c_l": "1",
    "c_g": "3",
    "tau_max": 2,
    "kind": "polynomial",
    "numerator": 1,
    "denominator": 1,
    "start": "0",
}
CASES = 3 if QUICK else 12


def ask(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer of the reference's adapter."""
    return reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand or {}})


def two_buffers(*, sealed: bool = True) -> Stage:
    """Return a session of two buffers, with an update in the second one that is a round late."""
    stage = Stage.of(inputs(sealed=sealed))
    start(stage, 0, 1, 2, 3)
    send(stage, 1)
    send(stage, 0, 3)
    recover(stage, 0, 2, 3, 4)
    start(stage, 0, 1)
    send(stage, 2, 1, 0)
    recover(stage, 1, 2, 4)
    return stage


def inputs(*, sealed: bool, count: int = 3) -> SessionInputs:
    """Return what every party is given: drawn keys, updates and sampled values."""
    source, ring, N, d = SeededSource(b"tests", "basecagg inputs"), PrimeField(97), NUMBERS["N"], NUMBERS["d"]
    keys = [source.take(32) for _ in range(N)]
    roster = [public_key(key).hex() for key in keys]
    roundings = [pack_reals(draw_rounding(source, NUMBERS["K"])) for _ in range(count)]
    setups: dict[int, dict[str, Any]] = {SERVER: {}}
    rands: dict[int, dict[str, Any]] = {SERVER: {"roundings": roundings}}
    B = basecagg_sessions.budget(NUMBERS)
    for user in range(N):
        inputs = (draw_elements(source, Ring(2 * B + 1), (count, d)).astype(np.int64) - B) % 97
        channel: Any = {"private": keys[user].hex(), "roster": roster} if sealed else "plain"
        setups[user] = {"user": user, "channel": channel, "updates": [pack(row.astype(np.uint64)) for row in inputs]}
        sizes = {"masks": d, "noises": NUMBERS["T"] * -(-d // (NUMBERS["U"] - NUMBERS["T"]))}
        rands[user] = {
            name: [pack(draw_elements(source, ring, (n,))) for _ in range(count)] for name, n in sizes.items()
        }
    return SessionInputs("basecagg", dict(NUMBERS), source.take(16), 70_000, setups, rands)


def start(stage: Stage, *users: int) -> None:
    """Let users ask, get their stamps and share their masks. All users hold the shares."""
    asked = [key for user in users for key in stage.take(Turn(user, "request"))]
    stamps = stage.take(Turn(SERVER, "request", tuple(asked)))
    sent = [key for stamp in stamps for key in stage.take(Turn(stamp.receiver, "share", (stamp,)))]
    relayed = stage.take(Turn(SERVER, "share", tuple(sent)))
    for user in stage.inputs.users:
        mine = tuple(key for key in relayed if key.receiver == user)
        if mine:
            stage.take(Turn(user, "hold", mine))


def send(stage: Stage, *users: int) -> None:
    """Let users upload, and the server accept their updates in one step."""
    sent = [key for user in users for key in stage.take(Turn(user, "upload"))]
    stage.take(Turn(SERVER, "upload", tuple(sent)))


def recover(stage: Stage, *users: int) -> None:
    """Let the buffer be closed, and recovered from the answers of some users."""
    shown = {key.receiver: key for key in stage.take(Turn(SERVER, "close"))}
    answers = [key for user in users for key in stage.take(Turn(user, "recover", (shown[user],)))]
    stage.take(Turn(SERVER, "recover", tuple(answers)))


def steps_of(played: Stage, party: int) -> list[dict[str, Any]]:
    """Return the steps of a party as a script has them."""
    return [
        {"phase": event.step.phase, "inbox": [encode(message).hex() for message in event.received]}
        for event in played.transcript
        if event.party == party
    ]


# ---------------------------------------------------------------------------------------------------------- the adapter


@pytest.mark.requirement("BSA-11", "BSA-13", "BSA-19", "BSA-29", "ADP-20")
@pytest.mark.parametrize("sealed", [True, False])
def test_the_scripts_of_all_parties_are_their_steps_in_the_session(sealed: bool) -> None:
    played = two_buffers(sealed=sealed)
    assert len(played.aggregates) == 2
    for party in (*played.inputs.users, SERVER):
        inputs = played.inputs
        agreed = {"session": inputs.session.hex(), "round": str(inputs.round)}
        params = {**inputs.numbers, **agreed, **inputs.setups[party], "steps": steps_of(played, party)}
        entries = ask(inputs.named(party), params, inputs.rand(party))["result"]["steps"]
        sent = [[encode(m).hex() for m in event.sent] for event in played.transcript if event.party == party]
        assert [entry["outbox"] for entry in entries] == sent
        sums = [entry["aggregate"] for entry in entries if "aggregate" in entry]
        assert sums == ([pack(total) for total in played.aggregates] if party == SERVER else [])


@pytest.mark.requirement("ERR-01", "RND-04")
def test_what_is_sampled_is_used_in_order_by_the_steps_that_are_taken() -> None:
    played = two_buffers(sealed=False)
    inputs = played.inputs
    params = {**inputs.numbers, "session": inputs.session.hex(), "round": str(inputs.round), **inputs.setups[1]}
    right = steps_of(played, 1)
    refused = {"phase": "share", "inbox": []}
    whole = ask("basecagg.user", {**params, "steps": right}, inputs.rand(1))["result"]["steps"]
    mixed = [step for pair in zip([refused] * len(right), right, strict=True) for step in pair]
    entries = ask("basecagg.user", {**params, "steps": mixed}, inputs.rand(1))["result"]["steps"]
    assert entries[1::2] == whole
    assert all(entry["reject"]["code"] == "wrong_phase" for entry in entries[0::2])
    short = {name: rows[:1] for name, rows in inputs.rand(1).items()}
    less = ask("basecagg.user", {**params, "steps": right}, short)["result"]["steps"]
    second = [at for at, step in enumerate(right) if step["phase"] == "share"][1]
    assert less[:second] == whole[:second]
    assert less[second]["reject"]["message"] == "no mask is left: 1 were used"


EVENTS: list[dict[str, Any]] = [
    *({"event": "start", "user": user} for user in range(5)),
    *({"event": "upload", "user": user} for user in (4, 2, 0)),
    {"event": "recover", "users": [0, 1, 2]},
    {"event": "abandon", "user": 1},
    {"event": "start", "user": 1},
    *({"event": "upload", "user": user} for user in (1, 3)),
    {"event": "start", "user": 4},
    {"event": "upload", "user": 4},
    {"event": "recover", "users": [4, 3, 2, 1, 0]},
]


def schedule(events: Sequence[Any], **changes: Any) -> dict[str, Any]:
    """Return the answer to a schedule with masks, updates and roundings to spare."""
    updates = [pack(np.array([at, 97 - at, 1], np.uint64)) for at in range(8)]
    rows = [pack(np.array([at, at + 1, at + 2], np.uint64)) for at in range(9)]
    rand = {
        "masks": rows,
        "noises": [row[:16] for row in rows],
        "roundings": [pack_reals(np.array([0.25, 0.75, 0.5]))] * 3,
    }
    params = {**NUMBERS, "round": "4", "updates": ["00" * 12, *updates[1:]], "schedule": list(events), **changes}
    return ask("basecagg.rounds", params, rand)


@pytest.mark.requirement("BSA-18", "BSA-19", "BSA-29", "BSA-34")
def test_a_schedule_gives_each_buffer_with_its_stamps_and_weights() -> None:
    first, second = schedule(EVENTS)["result"]["buffers"]
    assert (first["round"], first["users"]) == ("4", [0, 2, 4])
    assert unpack(first["stamps"]).tolist() == [4, 4, 4]
    assert unpack(first["weights"]).tolist() == [3, 3, 3]
    assert unpack(first["sum"]).tolist() == [3 * (0 + 1 + 2), 97 - 3 * (1 + 2), 6]
    assert (second["round"], second["users"]) == ("5", [1, 3, 4])
    assert unpack(second["stamps"]).tolist() == [5, 4, 5]
    assert unpack(second["weights"]).tolist() == [3, 1, 3]
    assert unpack(second["sum"]).tolist() == [3 * 3 + 4 + 3 * 5, 97 - 28, 7]


@pytest.mark.requirement("ADP-35")
@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"event": "stop", "user": 0}, "malformed"),
        ({"event": "start"}, "malformed"),
        ({"event": "recover", "user": 0}, "malformed"),
        ({"event": "start", "user": 0, "users": []}, "malformed"),
        ("start", "malformed"),
        ({"event": "start", "user": 5}, "unknown_peer"),
        ({"event": "upload", "user": 4}, "wrong_phase"),
        ({"event": "abandon", "user": 4}, "wrong_phase"),
        ({"event": "recover", "users": [0, 1, 2]}, "wrong_phase"),
    ],
)
def test_an_event_that_is_none_or_that_a_party_refuses_is_rejected(event: Any, code: str) -> None:
    assert schedule([*EVENTS, event])["reject"]["code"] == code


# ----------------------------------------------------------------------------------------------------- mixed sessions


class Altering:
    """The reference as an adapter that alters a message of one phase, or draws its sampled values itself."""

    def __init__(
        self, phase: str = "", change: Callable[[Any], Any] = lambda m: m, own: Mapping[str, Any] | None = None
    ):
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
            party = f"{request.params['protocol']}.{request.params['role']}"
            request = replace(request, rand=self._own[party])
        answer = self._steps.ask(request)
        if request.op != "session.step" or answer.kind != "result" or request.params["phase"] != self._phase:
            return answer
        outbox = [encode(self._change(parse(bytes.fromhex(text)))).hex() for text in answer.value["outbox"]]
        return Answer("result", value={**answer.value, "outbox": outbox})

    def player(self) -> Player:
        """The adapter as a player."""
        return Player(self, self.caps)


def own_values(inputs: SessionInputs) -> dict[str, Any]:
    """Return sampled values that are not those of the inputs."""
    rows = [pack(np.array([at, 7, at + 2], np.uint64)) for at in (3, 5, 9)]
    users = {"masks": rows, "noises": [row[:16] for row in rows]}
    return {"basecagg.user": users, "basecagg.server": {"roundings": [pack_reals(np.array([0.9, 0.0, 0.9]))] * 3}}


@pytest.mark.parametrize("parties", [(SERVER,), (0, 3), (0, 1, 2, 3, 4, SERVER)])
@pytest.mark.parametrize("own", [False, True])
def test_two_implementations_recover_buffers_with_several_stamps(parties: tuple[int, ...], own: bool) -> None:
    played = two_buffers()
    adapter = Altering(own=own_values(played.inputs) if own else None)
    again = Stage.played(played.inputs, dict.fromkeys(parties, adapter.player()), played.turns)
    assert len(again.aggregates) == 2
    if not own:
        assert [total.tolist() for total in again.aggregates] == [total.tolist() for total in played.aggregates]


def other_weight(message: Any) -> Any:
    """The announcement of a buffer with another weight."""
    weights = message.weights.copy()
    weights[1] = weights[1] + np.uint64(1)
    return replace(message, weights=weights)


def other_share(message: Any) -> Any:
    """An answer with another second element."""
    share = message.share.copy()
    share[1] = share[1] ^ np.uint64(1)
    return replace(message, share=share)


@pytest.mark.parametrize(
    ("phase", "party", "change", "own", "message"),
    [
        (
            *("recover", 2, other_share, False),
            r"user 2, step recover: message 0 \(WeightedShare\), share\[1\]: got \d+, must be \d+",
        ),
        (
            *("close", SERVER, other_weight, False),
            r"the server, step close: message 0 \(BufferedSet\), weights\[1\]: got 4, must be 3",
        ),
        (
            "close",
            SERVER,
            other_weight,
            True,
            r"the server, step close: the weight of user 1 is 4, must be 3",
        ),
        (
            *("close", SERVER, lambda m: replace(m, weights=m.weights[1:]), True),
            r"the server, step close: 2 weights are announced, must be 3",
        ),
        (
            *("close", SERVER, lambda m: replace(m, stamps=m.stamps[1:]), True),
            r"the server, step close: message 0 \(BufferedSet\), stamps",
        ),
        (
            *("share", 0, lambda m: replace(m, payload=m.payload[:-1]), True),
            r"user 0, step hold: user 1 refuses what it sent: ",
        ),
        (
            *("upload", 3, lambda m: replace(m, round=m.round + 1), True),
            r"user 3, step upload: message 0 \(StampedUpdate\), round: got 70001, must be 70000",
        ),
    ],
    ids=["answer", "weight", "own weight", "own weights", "own stamps", "share", "update"],
)
def test_a_fault_is_located_at_its_party(phase: str, party: int, change: Any, own: bool, message: str) -> None:
    played = two_buffers()
    adapter = Altering(phase, change, own_values(played.inputs) if own else None)
    with pytest.raises(Difference, match=message) as caught:
        Stage.played(played.inputs, {party: adapter.player()}, played.turns)
    assert caught.value.party == party


@pytest.mark.requirement("CNF-06", "ADP-15")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda outbox: {"outbox": []}, "message 0 .*: got no such message, must be server"),
        (lambda outbox: {"outbox": outbox * 2}, "message 1 .*: got server, must be no such message"),
        (lambda outbox: {"outbox": outbox, "aggregate": ""}, "aggregate: got , must be None"),
    ],
    ids=["nothing", "twice", "aggregate"],
)
def test_a_user_that_draws_by_itself_sends_what_its_step_sends(change: Callable[[Any], Any], said: str) -> None:
    played = two_buffers()

    class Changing(Altering):
        def ask(self, request: Request) -> Answer:
            answer = super().ask(request)
            changed = request.op == "session.step" and request.params["phase"] == "upload"
            return Answer("result", value=change(answer.value["outbox"])) if changed else answer

    with pytest.raises(Difference, match=f"user 3, step upload: {said}"):
        Stage.played(played.inputs, {3: Changing(own=own_values(played.inputs)).player()}, played.turns)


# -------------------------------------------------------------------------------------------------------------- checks


@pytest.mark.slow
@settings(max_examples=10 if QUICK else 60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.booleans())
def test_a_drawn_session_recovers_its_buffers_and_can_be_gone_through_again(data: st.DataObject, active: bool) -> None:
    played = basecagg_sessions.played(data.draw, active=active)
    assert played.inputs.protocol == ("basecagg-active" if active else "basecagg")
    inputs = basecagg_sessions.trimmed(data.draw, played)
    again = Stage.of(inputs)
    for turn in played.turns:
        again.take(Turn(turn.party, turn.phase, turn.inbox))
    assert [total.tolist() for total in again.aggregates] == [total.tolist() for total in played.aggregates]
    assert 1 <= len(again.aggregates) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("grade", part(2, ["none", "seeded"]))
@exhaustive
def test_sessions_of_an_implementation_that_draws_by_itself_pass_by_relation(grade: str) -> None:
    hello = {**reference.build().hello, "randomness": grade}
    connection = DirectConnection(narrow.adapter(hello))
    _, outcomes = run(connection, Settings(cases=CASES, seed=2, pattern="basecagg.rounds/*"))
    found = {outcome.check.id: outcome for outcome in outcomes}
    assert [f"{id}: {outcome.failure.message}" for id, outcome in found.items() if outcome.failure] == []
    assert found["basecagg.rounds/sums"].by_relation


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("older-share-overwrites-newer", "basecagg.user/old-share"),
        ("forgotten-stamps-accepted", "basecagg.user/old-share"),
        ("share-kept-after-the-answer", "basecagg.user/second-answer"),
        ("shares-pile-up", "basecagg.user/replaced-share"),
        ("late-buffer-answered", "basecagg.user/late-buffer"),
        ("stale-update-taken", "basecagg.server/stale-update"),
        ("update-lost-in-a-full-buffer", "basecagg.server/too-many-at-once"),
        ("request-while-the-update-waits", "basecagg.server/update-waits"),
        ("few-answers-end-the-buffer", "basecagg.server/few-answers"),
        ("buffer-not-emptied", "basecagg.rounds/sums"),
        ("stale-update-taken", "basecagg.rounds/stale-upload"),
        ("user-signs-an-update-twice", "basecagg_active.user/second-answer"),
        ("answers-without-a-quorum", "basecagg_active.user/few-signers"),
        ("buffer-quorum-is-counted-and-not-verified", "basecagg_active.user/wrong-signature"),
        ("buffer-is-answered-by-anyone", "basecagg_active.server/unsigned-answer"),
    ],
)
def test_a_check_finds_the_bug_that_it_is_for(name: str, check: str) -> None:
    with mutants.planted(name):
        connection = DirectConnection(reference.build().answer)
        caps, _ = run(connection, Settings(pattern="no such check"))
        assert first_failure(connection, caps, REGISTRY[check], Settings(cases=60))
