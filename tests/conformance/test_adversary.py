"""Rounds in which the network is the adversary: no false alarm, every kind of act, and what a failure says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from secagg_spec import cli
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer
from secagg_spec.conformance.cases import adversary_machines
from secagg_spec.conformance.checks import REGISTRY, base
from secagg_spec.conformance.checks import adversary as checks
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.running.runner import Outcome, Settings, run
from secagg_spec.conformance.sessions import adversary as sessions_adversary
from secagg_spec.conformance.sessions import adversary_demands as demands
from secagg_spec.conformance.sessions import adversary_letters as letters
from secagg_spec.conformance.sessions.adversary import Engine, Found
from secagg_spec.conformance.sessions.adversary_round import Taken
from secagg_spec.conformance.sessions.adversary_rules import RULES
from secagg_spec.conformance.sessions.mixed import Difference, Player
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.errors import BadSignature, InconsistentSets, UsageError
from secagg_spec.protocols.steps import SERVER
from tests.conformance import right
from tests.conformance.test_sessions import INPUTS, secagg_values
from tests.quick import WHOLE, exhaustive, part

CHECKS = [id for id in REGISTRY if id.startswith("adversary/")]
REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
STATEFUL = settings(max_examples=3, stateful_step_count=20, deadline=None, database=None, derandomize=True)


def outcome(id: str, cases: int, seed: int = 0) -> Outcome:
    """What a check finds on the reference in this process."""
    _, [found] = run(DirectConnection(reference.build().answer), Settings(cases=cases, seed=seed, pattern=id))
    return found


def player() -> Player:
    """The reference as an adapter."""
    connection = DirectConnection(reference.build().answer)
    return Player(connection, greet(connection.ask))


# ------------------------------------------------------------------------------------------------- no false alarm


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_an_independent_implementation_plays_every_party_without_an_alarm() -> None:
    connection = TARGETS["node"].connect(60)
    try:
        _, outcomes = run(connection, Settings(cases=3, seed=4, pattern="adversary/*"))
    finally:
        connection.close()
    assert [(found.check.id, found.verdict) for found in outcomes] == [(id, "pass") for id in CHECKS]


@pytest.mark.requirement("CNF-56")
@pytest.mark.parametrize("name", right.ORDERS)
@pytest.mark.parametrize("protocol", INPUTS)
def test_a_step_that_breaks_several_rules_may_be_refused_for_any_of_them(protocol: str, name: str) -> None:
    connection, altered = right.Direct(name), 0
    with sessions_adversary.opened(INPUTS[protocol], Player(connection, greet(connection.ask)), [1]) as engine:
        while not engine.over:
            senders = {letter.message.sender for letter in engine.waiting(1) if letter.message} - {SERVER}
            if len(senders) > 1:
                altered += 1
                engine.do(["alter", 1, 0, "sender", max(senders)])
            engine.do(["all"])
    assert altered


@pytest.mark.slow
@pytest.mark.parametrize("name", part(4, right.ORDERS))
def test_whoever_looks_in_another_order_plays_every_party_without_an_alarm(name: str) -> None:
    before = right.ANOTHER[name]
    _, outcomes = run(right.Direct(name), Settings(cases=3, seed=1, pattern="adversary/*"))
    assert right.ANOTHER[name] > before
    assert [(found.check.id, found.failure) for found in outcomes if found.verdict != "pass"] == []


@pytest.mark.slow
@exhaustive
def test_scripts_and_vectors_give_no_alarm_on_whoever_looks_in_another_order() -> None:
    """The checks and vectors of parties: whatever else is asked, these adapters answer as the reference does."""
    before = right.ANOTHER["any"]
    _, found = run(right.Direct("any"), Settings(cases=1, seed=1, pattern="*.[us]*er*,*.authority*", vectors=True))
    assert len(found) > 1000
    assert right.ANOTHER["any"] > before + 10
    assert [(outcome.check.id, outcome.failure.message) for outcome in found if outcome.failure] == []


@pytest.mark.slow
@exhaustive
def test_derived_faults_give_no_alarm_on_whoever_looks_at_senders_first() -> None:
    """A message of another type may also come from somebody who has nothing to send to the step."""
    before = right.ANOTHER["senders"]
    _, found = run(
        right.Direct("senders"), Settings(cases=12 if WHOLE else 4, seed=1, pattern="*/type,*/sender,*/elsewhere")
    )
    assert len(found) >= 3 * 13
    assert right.ANOTHER["senders"] > before
    assert [(outcome.check.id, outcome.failure.message) for outcome in found if outcome.failure] == []


def own_values(request: dict[str, Any], number: int) -> dict[str, Any]:
    """A request that opens a user of SecAgg, with values that the adapter draws."""
    return {**request, "rand": secagg_values(f"own {number}", request["params"]["numbers"]["t"])}


@pytest.mark.slow
def test_a_user_that_draws_by_itself_is_judged_by_a_round_that_goes_along() -> None:
    own, explicit, numbers = reference.build(), reference.build(), Counter[str]()
    own.hello["randomness"] = "none"

    def answer(request: Any, lenient: bool = False, **more: str) -> dict[str, Any]:
        if request["op"] == "hello":
            return own.answer(request)
        if request["op"] == "session.new" and request["params"]["role"] == "user":
            numbers["users"] += 1
            return explicit.answer(own_values(request, numbers["users"]))
        given = explicit.answer(request)
        if request["op"] == "session.step" and "result" in given:
            given["result"] |= more
        takes_anything = lenient and request["op"] == "session.step" and "reject" in given
        return {"id": request["id"], "result": {"outbox": []}} if takes_anything else given

    own.hello["operations"]["session.new"] = {"parties": ["secagg.user"]}
    settings = Settings(cases=12, seed=1, pattern="adversary/secagg.user")
    _, [right] = run(DirectConnection(answer), settings)
    assert (right.verdict, right.by_relation) == ("pass", True)
    _, [wrong] = run(DirectConnection(lambda request: answer(request, lenient=True)), settings)
    assert wrong.verdict == "accepted_invalid"
    _, [summed] = run(DirectConnection(lambda request: answer(request, aggregate="")), settings)
    assert (summed.verdict, summed.check.id) == ("wrong_value", "adversary/secagg.user")


# ---------------------------------------------------------------------------------------------- what the network does


@pytest.mark.slow
@pytest.mark.requirement("CNF-20")
def test_everything_that_the_network_may_do_happens_and_most_rounds_come_to_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[Engine] = []
    play = checks.play

    def kept(*given: Any) -> Engine:
        rounds.append(play(*given))
        return rounds[-1]

    monkeypatch.setattr(checks, "play", kept)
    assert outcome("adversary/lightsecagg.user", 40).verdict == "pass"
    assert outcome("adversary/secagg.user", 20).verdict == "pass"
    happened = Counter(act[0] for engine in rounds for act in engine.acts)
    assert set(happened) == set(RULES) == set(sessions_adversary.ACTS)
    changes = {act[3] for engine in rounds for act in engine.acts if act[0] == "alter"}
    assert len(changes) > 5
    last = [engine.inputs.table[-1].phase for engine in rounds]
    reached = [
        any((event.party, event.phase) == (SERVER, phase) for event in engine.log)
        for engine, phase in zip(rounds, last, strict=True)
    ]
    assert 3 * sum(reached) >= len(rounds)


def acted(inputs: str, *acts: list[Any], played: tuple[int, ...] = ()) -> Engine:
    """A round after some acts."""
    with sessions_adversary.opened(INPUTS[inputs], player() if played else None, played) as engine:
        for act in acts:
            engine.do(act)
    return engine


def test_what_is_refused_leaves_the_messages_as_they_were_sent() -> None:
    engine = acted("secagg", *[["all"]] * 6, ["tell", 0, 0, "unmasking", 2, "both", "survivors", 1], ["all"], ["all"])
    refusals = [type(event.error) for event in engine.log if event.party == 0 and event.error is not None]
    assert refusals == [InconsistentSets] * 2
    assert (len(engine.aggregates), engine.over) == (1, True)


def test_a_message_that_was_altered_comes_back_when_it_is_refused() -> None:
    altered = ["alter", 0, 0, "element", "signatures", 0, 1]
    engine = acted("lightsecagg-active", *[["all"]] * 6, altered, ["step", 0, "recover"], *[["all"]] * 2)
    assert [type(event.error) for event in engine.log if event.error is not None] == [BadSignature]
    assert len(engine.aggregates) == 1


def test_lost_and_delayed_messages_leave_their_senders_out() -> None:
    lost = acted("secagg", *[["all"]] * 5, ["drop", SERVER, 0], ["hold", SERVER, 0], *[["all"]] * 3)
    late = acted("secagg", *[["all"]] * 5, ["drop", SERVER, 0], ["hold", SERVER, 0], ["release", SERVER, 0], ["all"])
    assert [sorted(lost.parties[SERVER].state.survivors), sorted(late.parties[SERVER].state.survivors)] == [
        [2, 3, 4],
        [1, 2, 3, 4],
    ]
    assert len(lost.aggregates) == 1


def test_every_change_has_words_and_works_on_a_message() -> None:
    data = acted("secagg", ["all"], ["all"]).waiting(0)[0].data
    for change in (["flip", 3, 1], ["cut", 1], ["longer", 2], ["type", 259], ["round", 1], ["sender", 2]):
        assert letters.changed(data, change) != data
        assert sessions_adversary.described(["alter", 0, 0, *change]).endswith(" ".join(map(str, change)))
    for lie in (["without", "users", 0], ["with", "users", 9], ["twice", "users", 1], ["swapped", "users", 1]):
        assert letters.announcing(data, lie) != data


# ------------------------------------------------------------------------------------------------ what a failure says


@pytest.mark.requirement("CNF-21")
def test_a_difference_is_named_by_act_party_step_message_and_element() -> None:
    lie = ["tell", 1, 0, "recover", 1, "without", "users", 4]
    with mutants.planted("set-that-another-user-was-told"), pytest.raises(Found) as caught:
        acted("lightsecagg", *[["all"]] * 4, lie, ["all"], played=(0, 1))
    difference = caught.value.difference
    assert (caught.value.number, difference.party, difference.phase) == (6, 0, "recover")
    assert difference.spot is not None
    assert (difference.spot.type, difference.spot.field, difference.spot.element) == ("AggregatedShare", "share", 0)
    said = "act 6 (all go on): user 0, step recover: message 0 (AggregatedShare), share[0]: got "
    assert str(caught.value).startswith(said)


def test_a_party_that_does_not_start_again_must_have_done_so() -> None:
    adapter = player()
    asked = Mock(wraps=adapter.adapter.ask, side_effect=[DEFAULT, Answer("unsupported")])
    with (
        pytest.raises(Found, match="not opened: unsupported") as caught,
        sessions_adversary.opened(INPUTS["secagg"], Player(Mock(ask=asked), adapter.caps), [0]) as engine,
    ):
        engine.do(["restart", 0, 10])
    assert caught.value.wanted == {"result": {}}


@pytest.mark.slow
@pytest.mark.requirement("CNF-21")
def test_a_failure_shrinks_to_few_acts_and_is_replayed_without_a_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [*REFERENCE, "--mutant", "answers-in-the-order-of-users"]
    options = ["--repro", str(tmp_path), "--timeout", "60", "-k", "adversary/lightsecagg.server"]
    assert cli.main(["conform", *options, "--", *wrong]) == 1
    [repro] = tmp_path.glob("*.jsonl")
    stored = json.loads(repro.with_suffix(".expected.json").read_text(encoding="utf-8"))
    expected = stored["expected_of_the_last_answer"]
    assert len(expected["acts"]) <= 9
    requests = [json.loads(line) for line in repro.read_text(encoding="utf-8").splitlines()]
    assert {request["op"] for request in requests} <= {"hello", "session.new", "session.step", "session.free"}
    right, faulty = (answers(command, repro) for command in (REFERENCE, wrong))
    assert right != faulty
    [first] = [at for at, (one, other) in enumerate(zip(right, faulty, strict=True)) if one != other][:1]
    assert first == len(right) - 1
    assert right[first]["result"] == expected["result"]
    capsys.readouterr()
    for command, word, code in ((wrong, "FAILED", 1), (REFERENCE, "FIXED", 0)):
        assert cli.main(["replay", str(repro), "--timeout", "60", "--", *command]) == code
        assert capsys.readouterr().out.startswith(word)


def answers(command: list[str], repro: Path) -> list[dict[str, Any]]:
    """What an adapter answers to a stored transcript that is its standard input; reasons in words left out."""
    with repro.open("rb") as lines:
        done = subprocess.run(command, stdin=lines, capture_output=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [{**answer, "reject": answer["reject"]["code"]} if "reject" in answer else answer for answer in found]


# ------------------------------------------------------------------------------------------------------ state machines


@pytest.mark.parametrize("party", ["lightsecagg.user", "basecagg.server"])
def test_a_state_machine_of_the_right_implementation_finds_nothing(party: str) -> None:
    case = adversary_machines.machine(DirectConnection(reference.build().answer), party)
    run_state_machine_as_test(case, settings=settings(STATEFUL, suppress_health_check=list(HealthCheck)))


def test_a_state_machine_finds_a_planted_bug() -> None:
    with mutants.planted("fourth-refusal-ends-the-party"):
        case = adversary_machines.machine(DirectConnection(reference.build().answer), "lightsecagg.server")
        many = settings(STATEFUL, max_examples=60, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        with pytest.raises(Found, match="the party has ended"):
            run_state_machine_as_test(case, settings=many)


def test_a_party_whose_rounds_cannot_be_played_is_refused() -> None:
    with pytest.raises(UsageError, match=r"party is 'basa\.user'; rounds can be played with lightsecagg\.user"):
        adversary_machines.machine(DirectConnection(reference.build().answer), "basa.user")


@pytest.mark.requirement("CNF-73")
def test_a_refusal_with_another_code_is_told_whole() -> None:
    refused = Taken(SERVER, 0, "upload", (), error=InconsistentSets("1 masked update arrived, and 3 are needed"))
    codes = frozenset({"below_threshold", "inconsistent_sets", "other"})
    with pytest.raises(Difference) as raised:
        demands.check_refused(Answer("reject", code="replay"), refused, codes)
    found = Found(3, ["step", SERVER, "upload"], raised.value, None)
    assert str(base.CheckFailed("wrong_reason", str(found))) == (
        "act 3 (the server is asked for its step upload): the server, step upload: refused as replay; "
        "1 masked update arrived, and 3 are needed: below_threshold or inconsistent_sets or other"
    )
