"""No alarm on implementations that are right: the reference in this process and in its own, and the Node one.

``make soak`` does the same with 10,000 cases and more of each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import HELLO, greet
from secagg_spec.conformance.adapter.connection import Connection, DirectConnection
from secagg_spec.conformance.checks import REGISTRY, Check
from secagg_spec.conformance.checks.playing import SESSIONS
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running import runner
from secagg_spec.conformance.running.runner import Failure, Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, PARTIES, Adapter, Reject
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import judge
from tests.conformance import narrow, right
from tests.conformance.shipped import VECTORS
from tests.quick import QUICK, WHOLE, exhaustive, part

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
NESTED: dict[str, Any] = {"suppress_health_check": list(HealthCheck)}
CASES = 500 if PROFILE == "thorough" else 2 if WHOLE else 1


@dataclass
class Sampled(Settings):
    """One of each `step` checks; in ``make quick``, one of each twelve, from the check `first` on."""

    first: int = 0
    step: int = 1

    def chosen(self) -> list[Check]:
        """Return the checks."""
        return part(12 if QUICK else self.step, super().chosen()[self.first if QUICK else 0 :])


class EachOperation(Settings):
    """The checks of the adapter, and the first check of each operation.

    The other checks ask the same operations, of the same code that answers in this process.
    """

    def chosen(self) -> list[Check]:
        """Return the checks."""
        asked: dict[tuple[str, ...], Check] = {}
        for check in super().chosen():
            asked.setdefault((check.id,) if check.id.startswith("adapter/") else check.operations, check)
        return list(asked.values())


def alarms(connection: Connection, settings: Settings) -> list[str]:
    """Return the failures of a run."""
    try:
        caps, outcomes = run(connection, settings)
    finally:
        connection.close()
    assert len(outcomes) == len(settings.chosen())
    assert sum(outcome.cases > 0 for outcome in outcomes) > len(outcomes) * 0.8
    idle = {outcome.check.operations for outcome in outcomes if outcome.check.runs_on(caps) and not outcome.cases}
    assert idle <= {(name.replace("-", "_"),) for name in PARTIES} | {("basecagg.rounds",), SESSIONS}, idle
    return [f"{outcome.check.id}: {outcome.failure.message}" for outcome in outcomes if outcome.failure]


@pytest.mark.slow
def test_the_reference_in_this_process() -> None:
    settings = Sampled(cases=CASES, seed=1, first=0, step=8)
    assert QUICK or len(settings.chosen()) >= len(REGISTRY) / settings.step
    assert alarms(DirectConnection(reference.build().answer), settings) == []


@pytest.mark.slow
def test_the_reference_over_the_pipe() -> None:
    settings = EachOperation(cases=CASES, seed=3)
    operations = {operation for check in settings.chosen() for operation in check.operations}
    assert operations == {operation for check in REGISTRY.values() for operation in check.operations}
    assert alarms(TARGETS["reference"].connect(10.0), settings) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@exhaustive
def test_the_independent_implementation_in_node() -> None:
    settings = Sampled(cases=CASES, seed=5, first=6, step=8)
    assert QUICK or len(settings.chosen()) >= len(REGISTRY) / settings.step
    assert alarms(TARGETS["node"].connect(10.0), settings) == []


@pytest.mark.slow
@pytest.mark.requirement("CNF-57")
def test_an_adapter_with_a_generator_of_its_own_is_held_to_that() -> None:
    settings = Sampled(cases=max(1, CASES // 2), seed=1, first=3, step=24, vectors=True)
    assert alarms(right.Direct("generator"), settings) == []


@pytest.mark.requirement("CNF-57")
@pytest.mark.parametrize("id", ["heterosag.unmask/result", "secagg.user/script", "session.new/basa.server"])
def test_parties_with_a_generator_of_their_own_are_judged(id: str) -> None:
    _, [outcome] = run(right.Direct("generator"), Settings(cases=3, seed=1, pattern=id))
    assert (outcome.verdict, outcome.by_relation) == ("pass", True)
    assert with_streams(id, None).verdict == "unsupported", "nobody can tell which streams it has"


@pytest.mark.requirement("CNF-57")
@pytest.mark.parametrize("id", ["heterosag.unmask/result", "secagg.user/script", "session.new/basa.server"])
def test_cases_without_a_stream_do_not_count(id: str) -> None:
    outcome = with_streams(id, {"ranges": {"q": {"max": 65536}}})
    assert (outcome.verdict, 0 < outcome.cases < 8) == ("pass", True)


def with_streams(id: str, declared: dict[str, Any] | None) -> Outcome:
    """Judge an adapter with a generator of its own by a check; it declares the streams so, or offers none."""
    connection = right.Direct("generator")
    connection.restart = lambda: None  # type: ignore[method-assign]
    hello, answer = connection.ask(HELLO).value, connection._answer
    hello["operations"] |= {"prg.expand": declared}
    hello["operations"] = {name: known for name, known in hello["operations"].items() if known is not None}
    connection._answer = lambda request: (
        {"id": request["id"], "result": hello} if request["op"] == "hello" else answer(request)
    )
    _, [outcome] = run(connection, Settings(cases=8, seed=1, pattern=id))
    return outcome


@pytest.mark.requirement("CNF-56")
@pytest.mark.parametrize("id", ["lightsecagg.user/elsewhere", "vector/secagg-user-masked-input-session-2"])
def test_a_message_under_another_header_may_fail_to_open(id: str) -> None:
    _, outcomes = run(right.Direct("bound"), Settings(cases=3, seed=1, pattern=id, vectors=True))
    assert {outcome.verdict for outcome in outcomes} == {"pass"}


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize("id", ["secagg.user/request-twice", "vector/secagg-user-request-twice-2"])
def test_a_wrong_step_before_the_fault_is_not_taken_for_the_fault(id: str) -> None:
    connection = right.Direct("generator")
    hello, answer = {**connection.ask(HELLO).value, "policy": {}}, connection._answer
    connection._answer = lambda request: (
        {"id": request["id"], "result": hello} if request["op"] == "hello" else answer(request)
    )
    _, [outcome] = run(connection, Settings(cases=3, seed=1, pattern=id, vectors=True))
    assert outcome.failure is not None
    assert (outcome.verdict, report.suspicions(id, outcome.failure)) == ("wrong_value", [])
    assert outcome.failure.clauses == REGISTRY["secagg.user/script"].clauses


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize(
    ("id", "phase"),
    [
        ("basecagg.user/budget", "share"),
        ("basecagg.user/nothing-left", "request"),
        ("basa.user/budget", "fetch"),
        ("basa.user/nothing-left", "fetch"),
        ("lightsecagg.user/refused-shares", "share"),
    ],
)
def test_a_right_step_that_is_refused_before_the_fault_is_not_the_fault(id: str, phase: str) -> None:
    """Also where an operation draws by itself, and where values are too few or too large for the step to be taken."""
    operation = id.partition("/")[0]
    hello, refused = reference.build().hello, {"reject": {"code": "echo", "message": "not now"}}
    own = {operation: {"randomness": "seeded"}} if operation.startswith("lightsecagg") else hello["operations"]
    right_one = narrow.adapter({**hello, "operations": own})

    def answer(request: Any) -> dict[str, Any]:
        given = right_one(request)
        if request["op"] == operation and "result" in given:
            asked = zip(request["params"]["steps"], given["result"]["steps"], strict=True)
            given["result"]["steps"] = [refused if step["phase"] == phase else entry for step, entry in asked]
        return given

    connection, met = DirectConnection(answer), runner._Run()
    runner._search(connection, greet(connection.ask), REGISTRY[id], Settings(seed=1), met, shrink=False)
    assert met.first is not None
    assert (met.first.verdict, met.first.clauses) == ("rejected_valid", REGISTRY[f"{operation}/exact"].clauses)


@pytest.mark.requirement("CNF-58")
def test_a_wrong_value_does_not_shrink_to_a_crash_and_both_are_told() -> None:
    right_one = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        if request["op"] != "field.add":
            return dict(right_one.answer(request))
        size = len(request["params"]["a"]) // 8
        if size < 2:
            return dict(right_one.answer(request))
        few = {"error": {"message": "broke"}}
        return {"id": request["id"], **({"result": {"value": "ffffffff" * size}} if size > 3 else few)}

    connection = DirectConnection(answer)
    caps = greet(connection.ask)

    def found(seed: int) -> tuple[str, bool]:
        outcome = run_check(connection, caps, REGISTRY["field.add/exact"], Settings(cases=30, seed=seed))
        assert outcome.failure is not None
        return outcome.verdict, "(also met: error: field.add broke" in outcome.failure.message

    assert ("wrong_value", True) in map(found, range(8))


@pytest.mark.slow
@pytest.mark.requirement("CNF-58")
def test_sessions_of_a_failure_are_no_failure_of_the_next_check() -> None:
    """The adapter never sends the masked inputs of SecAgg, all else is right."""
    built = reference.build()

    def answer(request: Any) -> dict[str, Any]:
        given = built.answer(request)
        silent = request["op"] == "session.step" and request["params"]["phase"] == "masked_input"
        return {"id": request["id"], "result": {"outbox": []}} if silent and "result" in given else given

    chosen = Settings(cases=3, seed=1, pattern="adversary/secagg.user,adversary/basecagg.user")
    found = {outcome.check.id: outcome.verdict for outcome in run(DirectConnection(answer), chosen)[1]}
    assert found == {"adversary/secagg.user": "wrong_value", "adversary/basecagg.user": "pass"}


@pytest.mark.slow
@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize("id", ["session.step/types", "session.again/members", "session.new/members"])
def test_a_session_that_a_failing_case_leaves_open_is_freed(id: str) -> None:
    """The adapter ignores members that it does not know; all its rejections are right."""
    built = reference.build()

    def answer(request: Any) -> Any:
        if isinstance(request, dict) and request.get("op") in OPERATIONS:
            known = OPERATIONS[request["op"]][0]
            request = {**request, "params": {name: it for name, it in request["params"].items() if name in known}}
        return built.answer(request)

    _, [outcome] = run(DirectConnection(answer), Settings(cases=30, seed=1, pattern=id))
    assert outcome.failure is not None
    assert (outcome.verdict, outcome.failure.also) == ("accepted_invalid", ())


@pytest.mark.slow
@pytest.mark.requirement("ADP-13")
@pytest.mark.parametrize("code", ["bad_share", "bad_ciphertext", "inconsistent_sets"])
@pytest.mark.parametrize("operation", ["field.add", "prg.expand", "quantizer.quantize", "shamir.reconstruct"])
def test_capital_digits_are_malformed_and_nothing_of_another_kind(operation: str, code: str) -> None:
    built = reference.build()

    def answer(request: Any) -> Any:
        found = built.answer(request)
        capital = re.search('"[0-9A-F]*[A-F]', json.dumps(request["params"]))
        return {**found, "reject": {"code": code}} if "reject" in found and capital else found

    _, [outcome] = run(DirectConnection(answer), Settings(cases=30, seed=1, pattern=f"{operation}/hex"))
    assert outcome.verdict == "wrong_reason"


@pytest.mark.requirement("LSA-01", "LSA-03")
def test_an_empty_vector_may_be_refused_before_lengths_are_compared() -> None:
    """A request that breaks two rules may get a code of either."""
    built = reference.build()

    def answer(request: Any) -> Any:
        found = built.answer(request)
        empty = "" in [request["params"].get(name) for name in ("update", "mask")]
        return {**found, "reject": {"code": "bad_param"}} if "reject" in found and empty else found

    for seed in range(3):
        _, outcomes = run(DirectConnection(answer), Settings(cases=8, seed=seed, pattern="lightsecagg.mask/"))
        assert {outcome.check.id: outcome.verdict for outcome in outcomes if outcome.failure} == {}


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize("allowed", [{"max": 1000}, {"max": 2**17}, {"multiple": 16}, {"multiple": 10**9}])
def test_no_check_asks_for_streams_outside_of_the_declared_lengths(allowed: dict[str, int]) -> None:
    built = reference.build()
    built.hello["operations"] = {"prg.expand": {"ranges": {"n": allowed}}}

    def answer(request: Any) -> Any:
        n = request.get("params", {}).get("n") if isinstance(request, dict) else None
        outside = type(n) is int and (n > allowed.get("max", n) or n % allowed.get("multiple", 1))
        return {"id": request["id"], "unsupported": True} if outside else built.answer(request)

    _, outcomes = run(DirectConnection(answer), Settings(cases=5, seed=1, pattern="prg.expand"))
    assert [one.check.id for one in outcomes if one.failure] == []


@pytest.mark.requirement("ADP-15")
@pytest.mark.parametrize(
    ("id", "spoil"),
    [
        ("vector/echo-basic-01", lambda text: text.replace("[1, 2, ", "[true, 2, ")),
        ("vector/echo-basic-01", lambda text: text.replace("[1, 2, ", "[1.0, 2, ")),
        ("field.add/result", lambda text: text.replace('"}', '", "raw": {"value": ["99"]}}')),
    ],
)
def test_what_python_calls_equal_and_raw_values_that_nobody_asked_for_are_noticed(
    id: str, spoil: Callable[[str], str]
) -> None:
    built = reference.build()

    def answer(request: Any) -> Any:
        given = built.answer(request)
        chosen = request["op"] in ("echo", "field.add") and "result" in given
        return {**given, "result": json.loads(spoil(json.dumps(given["result"])))} if chosen else given

    _, [outcome] = run(DirectConnection(answer), Settings(cases=3, seed=1, pattern=id, vectors=True))
    assert outcome.failure is not None


def add_member(value: Any, deep: bool) -> Any:
    """Return a result with an unknown member in itself, or in each object inside of it."""
    more = {} if deep else {"zq": 1}

    def inside(value: Any) -> Any:
        if isinstance(value, list):
            return [inside(one) for one in value]
        return {**{name: inside(one) for name, one in value.items()}, "zq": 1} if isinstance(value, dict) else value

    return {**{name: inside(one) if deep else one for name, one in value.items()}, **more}


@pytest.mark.slow
@pytest.mark.requirement("ADP-15")
@pytest.mark.parametrize(
    ("operation", "deep", "found"),
    [
        ("field.add", False, "field.add/result: protocol"),
        ("signature.verify", False, "signature.verify/result: protocol"),
        ("secagg.unmasking", True, "secagg.unmasking/result: protocol"),
        ("basa.epochs", True, "basa.epochs/result: protocol"),
        ("secagg.user", True, "secagg.user/result: protocol"),
        ("echo", False, "adapter/echo: protocol"),
        ("session.free", False, "session.new/in-use: protocol"),
        ("session.step", False, "session.new/secagg-mixed: protocol"),
    ],
)
def test_a_result_has_no_member_that_the_text_does_not_have(operation: str, deep: bool, found: str) -> None:
    built = reference.build()

    def answer(request: Any) -> Any:
        given = built.answer(request)
        chosen = request["op"] == operation and "result" in given
        return {**given, "result": add_member(given["result"], deep)} if chosen else given

    id, _, verdict = found.partition(": ")
    _, [outcome] = run(DirectConnection(answer), Settings(cases=10, seed=1, pattern=id))
    assert outcome.failure is not None
    assert (outcome.verdict, "zq" in outcome.failure.message) == (verdict, True)


OF_REFUSALS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "error": lambda reject: {"error": {"message": "broke"}},
    "unsupported": lambda reject: {"unsupported": True},
    "a result": lambda reject: {"result": {"reject": reject}},
    "blame as text": lambda reject: {"reject": {**reject, "blamed": [*map(str, reject.get("blamed", ()))]}},
}
OF_RESULTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "both": lambda result: {"result": {**result, "reject": {"code": "malformed"}}},
    "null": lambda result: {"result": {"aggregate": None, **result}},
    "line feed": lambda result: {"result": {**result, "outbox": [text + "\n" for text in result["outbox"]]}},
    "nothing": lambda result: {"unsupported": True},
    "crash": lambda result: 1 / 0,
}


def session_failure(id: str, op: str, how: str) -> Failure:
    """Return the first failure of a check of sessions, on the reference with spoiled answers to an operation."""
    kind, change = ("reject", OF_REFUSALS[how]) if how in OF_REFUSALS else ("result", OF_RESULTS[how])
    hello: dict[str, Any] = reference.build().hello
    offered = {name: hello["operations"][name] for name in (*SESSIONS, "session.again")}
    right_one = narrow.adapter({**hello, "operations": offered})

    def answer(request: Any) -> dict[str, Any]:
        given = right_one(request)
        return {"id": request["id"], **change(given[kind])} if request["op"] == op and kind in given else given

    connection, met = DirectConnection(answer), runner._Run()
    runner._search(connection, greet(connection.ask), REGISTRY[id], Settings(cases=30, seed=1), met, shrink=False)
    assert met.first is not None
    return met.first


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize("id", ["adversary/secagg.server", "adversary/secagg.user", "session.new/independent"])
@pytest.mark.parametrize(("how", "verdict"), [("error", "error"), ("unsupported", "rejected_valid")])
def test_a_step_that_is_neither_taken_nor_refused_fails_under_its_own_name(id: str, how: str, verdict: str) -> None:
    found = session_failure(id, "session.step", how)
    assert isinstance(found.expected, dict)
    assert (found.verdict, "reject" in found.expected) == (verdict, True)


@pytest.mark.requirement("ADP-15")
@pytest.mark.parametrize("id", ["secagg.user/elsewhere", "adversary/secagg.user"])
@pytest.mark.parametrize("how", ["a result", "both", "null", "line feed"])
def test_a_result_of_another_form_is_neither_a_step_nor_its_refusal(id: str, how: str) -> None:
    assert session_failure(id, "session.step", how).verdict == "protocol"


@pytest.mark.requirement("ADP-29")
def test_a_user_whose_number_is_a_text_is_not_blamed() -> None:
    found = session_failure("secagg.server/answer-order", "session.step", "blame as text")
    assert (found.verdict, "blamed is" in found.message) == ("wrong_value", True)


@pytest.mark.requirement("CNF-73")
@pytest.mark.parametrize("id", ["secagg.user/elsewhere", "session.new/secagg-mixed", "session.again/secagg"])
def test_the_last_step_of_a_failed_session_is_the_one_that_failed(id: str) -> None:
    found = session_failure(id, "session.step", "crash")
    assert (found.verdict, found.at) == ("crash", (len(found.transcript) - 1, None))
    assert found.transcript[-1].request.op == "session.step"


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize(
    ("id", "before"), [("session.new/secagg-mixed", ""), ("adversary/secagg.server", "act 0 (the beginning): ")]
)
def test_a_session_that_is_not_offered_is_named_so(id: str, before: str) -> None:
    found = session_failure(id, "session.new", "nothing")
    assert found.message.startswith(before)
    assert found.message.endswith("step session.new: not opened: unsupported")


@pytest.mark.requirement("CNF-58")
@pytest.mark.parametrize(
    ("id", "given", "verdict"),
    [
        ("adapter/unknown-operation", {"error": {"message": "broke"}}, "error"),
        ("adapter/undeclared-operation", {"error": {"message": "broke"}}, "error"),
        ("session.new/undeclared", {"error": {"message": "broke"}}, "error"),
        ("session.again/unsupported", {"error": {"message": "broke"}}, "error"),
        ("adapter/request-members", {"unsupported": True}, "rejected_valid"),
        ("secagg.average/wrap", {"unsupported": True}, "rejected_valid"),
        ("secagg.recovery/altered-share", {"unsupported": True}, "rejected_valid"),
    ],
)
def test_an_answer_of_another_kind_has_the_verdict_of_its_kind(id: str, given: Any, verdict: str) -> None:
    hello: dict[str, Any] = reference.build().hello
    parties = {"session.new": {"parties": ["basecagg.user", "secagg.user"]}}
    left = {name: it for name, it in hello["operations"].items() if name != "field.add"}
    right_one = narrow.adapter({**hello, "operations": {**left, **parties}})
    kept = ("hello", *(SESSIONS if id.startswith("session.again") else ()))

    def answer(request: Any) -> dict[str, Any]:
        return right_one(request) if request.get("op") in kept else {"id": request["id"], **given}

    _, [outcome] = run(DirectConnection(answer), Settings(cases=10, seed=1, pattern=id))
    assert outcome.verdict == verdict


def narrow_alarms(hello: dict[str, Any], settings: Settings) -> list[str]:
    """Return the failures of a run on the reference behind a declaration, what the kit itself failed at included."""
    _, outcomes = run(DirectConnection(narrow.adapter(hello)), settings)
    for outcome in outcomes:
        assert outcome.verdict != "pass" or outcome.cases, outcome.check.id
    return [f"{outcome.check.id}: {outcome.failure.message}" for outcome in outcomes if outcome.failure]


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@settings(max_examples={"quick": 2, "default": 2, "thorough": 200}[PROFILE], phases=(Phase.generate,), **NESTED)
@given(narrow.declarations(), st.integers(0, 2**32))
def test_no_declaration_of_a_right_implementation_gives_an_alarm(hello: dict[str, Any], seed: int) -> None:
    assert narrow_alarms(hello, Sampled(cases=3, seed=seed, first=seed % 12)) == []


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@settings(max_examples={"quick": 2, "default": 1, "thorough": 100}[PROFILE], phases=(Phase.generate,), **NESTED)
@given(narrow.declarations(), st.integers(0, 2**32))
def test_nor_with_more_cases(hello: dict[str, Any], seed: int) -> None:
    assert narrow_alarms(hello, Settings(cases=15, seed=seed)) == []


def one(operation: str, **declared: Any) -> dict[str, Any]:
    """Return a hello with a few operations that declare the same."""
    return {**reference.build().hello, "operations": dict.fromkeys(operation.split(), declared)}


SELECT = "select.family select.batch select.session"


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize(
    "hello",
    [
        one("field.add", ranges={"q": {"min": 1000, "max": 2000}}),
        pytest.param(
            one("field.inverse mds.encode lightsecagg.round", ranges={"q": {"min": 1000, "max": 2000}}),
            marks=exhaustive,
        ),
        pytest.param(one("lightsecagg.round lightsecagg.recover", ranges={"D": {"min": 1}}), marks=exhaustive),
        pytest.param(
            one("lightsecagg.round lightsecagg.recover", ranges={"U": {"min": 5}, "N": {"min": 8}}), marks=exhaustive
        ),
        pytest.param(one("lightsecagg.round mds.encode", ranges={"T": {"min": 2, "max": 3}}), marks=exhaustive),
        pytest.param(one("lightsecagg.round mds.encode mds.decode", ranges={"N": {"values": [100]}}), marks=exhaustive),
        pytest.param(
            one("lightsecagg.round lightsecagg.aggregate_shares mds.encode mds.decode", ranges={"N": {"min": 1000}}),
            marks=exhaustive,
        ),
        pytest.param(
            one("lightsecagg.server", ranges={"N": {"values": [41, 5000]}, "U": {"max": 9}}), marks=exhaustive
        ),
        one("basecagg.rounds", ranges={"N": {"values": [41, 5000]}, "U": {"max": 9}}),
        one("lightsecagg.recover", parameter_sets=[{"N": 5, "D": 0, "U": 5, "T": 2}]),
        one("quantizer.quantize", ranges={"weight": {"min": 200}, "level": {"values": [3, 5]}}),
        pytest.param(one("quantizer.quantize", ranges={"x": {"values": ["binary32"]}}), marks=exhaustive),
        one("quantizer.quantize", ranges={"x": {"values": ["binary32"]}, "level": {"values": [3, 10**6]}}),
        one("field.multiply quantizer.dequantize", ranges={"q": {"values": ["4294967296"]}}),
        one(
            "secagg.average",
            ranges={"R": {"values": ["251"]}, "level": {"values": [10]}, "clip": {"values": [2]}},
            parameter_sets=[{"N": N, "t": 3, "k": 2} for N in (3, 4, 40)],
        ),
        one(
            SELECT,
            ranges={"N": {"values": [12]}, "K": {"values": [4, 6]}, "T": {"values": [2]}},
        ),
        one(f"{SELECT} select.complete select.request", ranges={"T": {"min": 3}, "N": {"min": 8, "max": 20}}),
        one(
            f"{SELECT} select.complete select.request",
            parameter_sets=[{"N": 12, "K": 6, "T": 3}, {"N": 250, "K": 50, "T": 50}],
        ),
    ],
    ids=lambda hello: " ".join(hello["operations"]),
)
def test_these_declarations_give_no_alarm(hello: dict[str, Any]) -> None:
    crowded = any(set(declared.get("ranges", {})) == {"N"} for declared in hello["operations"].values())
    assert narrow_alarms(hello, Settings(cases=1 if crowded else 2, seed=1)) == []


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
def test_checks_of_two_operations_draw_what_both_declare() -> None:
    hello = one("mds.encode mds.decode")
    hello["operations"] = {
        "mds.encode": {"ranges": {"N": {"min": 3, "max": 9}}},
        "mds.decode": {
            "ranges": {"N": {"min": 8}},
            "parameter_sets": [{"N": 8, "U": 4, "T": 1}, {"N": 20, "U": 4, "T": 1}],
        },
    }
    assert narrow_alarms(hello, Settings(cases=8, seed=1)) == []


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
def test_a_check_without_a_case_is_not_passed() -> None:
    hello = one("lightsecagg.recover mds.encode mds.decode", parameter_sets=[])
    hello["operations"] = {
        "lightsecagg.recover": {"parameter_sets": [{"N": 5, "D": 0, "U": 5, "T": 2}]},
        "mds.encode": {"ranges": {"N": {"max": 5}}},
        "mds.decode": {"ranges": {"N": {"min": 6}}},
    }
    _, outcomes = run(DirectConnection(narrow.adapter(hello)), Settings(cases=5))
    found = {outcome.check.id: outcome for outcome in outcomes}
    for name in ("lightsecagg.recover/outsider", "lightsecagg.recover/bad-share", "mds/any-shares", "mds.decode/extra"):
        assert found[name].verdict == "unsupported"
        assert found[name].note.startswith("not run: the declared range")
    assert found["field.add/exact"].note == "not offered"


def one_modulus(code: str, **declared: Any) -> list[judge.Outcome]:
    """Judge, by the vectors of its operation, an adapter for one modulus that refuses each other one with this code."""
    adapter, right = Adapter("one modulus", "1"), reference.build()

    @adapter.operation("lightsecagg.mask", **declared)
    def mask(**params: str) -> dict[str, Any]:
        if params["q"] != "4294967291":
            raise Reject(code)
        return dict(right.answer({"id": 1, "op": "lightsecagg.mask", "params": params})["result"])

    connection = DirectConnection(adapter.answer)
    caps = greet(connection.ask)
    asked = [vector for vector in VECTORS.values() if vector.operation == "lightsecagg.mask"]
    of_form = [replace(vector, clauses=("ADP-14",)) for vector in asked if vector.reject]
    return [judge.judge(connection, caps, vector) for vector in [*asked, *of_form]]


@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize("code", ["bad_param", "out_of_range", "length_mismatch"])
def test_a_vector_outside_the_ranges_may_be_refused_with_any_code(code: str) -> None:
    outcomes = one_modulus(code, ranges={"q": {"values": ["4294967291"]}})
    failed = [outcome for outcome in outcomes if outcome.failed]
    assert {outcome.verdict for outcome in failed} == {"wrong_reason"}
    assert all(outcome.vector.clauses == ("ADP-14",) for outcome in failed), "what is said of forms comes first"
    everywhere = one_modulus(code)
    assert {outcome.verdict for outcome in everywhere if outcome.vector.result is None} == {"pass", "wrong_reason"}
