"""The runner's verdicts on an adapter that misbehaves, and on the right one."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from secagg_spec.conformance.adapter import connection as connection_module
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection, ProcessConnection
from secagg_spec.conformance.adapter.wire import AdapterBroken, AdapterUnusable, Answer, Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import Caller, Check, CheckFailed, Declined
from secagg_spec.conformance.reports.report import write_repro
from secagg_spec.conformance.running.drawing import SHARED
from secagg_spec.conformance.running.runner import Failure, Outcome, Settings, first_failure, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, pack, unpack
from secagg_spec.conformance.sessions.choices import shared
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.quick import one_in, part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
Judge = Callable[..., dict[str, Outcome]]


@pytest.fixture
def judge() -> Iterator[Judge]:
    """Return a function that runs the checks of field.add and the adapter on the fake with one fault."""
    opened: list[ProcessConnection] = []

    def run_fake(fault: str, pattern: str = "field.add", timeout: float = 10.0) -> dict[str, Outcome]:
        connection = ProcessConnection([sys.executable, FAKE, fault], timeout)
        opened.append(connection)
        _, outcomes = run(connection, Settings(cases=60, pattern=pattern))
        return {outcome.check.id: outcome for outcome in outcomes}

    yield run_fake
    for connection in opened:
        connection.close()


def verdicts(outcomes: dict[str, Outcome]) -> set[str]:
    """Return the verdicts of what ran and failed."""
    return {outcome.verdict for outcome in outcomes.values() if outcome.failure}


@pytest.mark.slow
@pytest.mark.requirement("ADP-01")
def test_a_right_adapter_passes_everything(judge: Judge) -> None:
    outcomes = judge("none", "*")
    assert verdicts(outcomes) == set()
    assert outcomes["field.add/exact"].verdict == "pass"
    assert outcomes["mds.encode/exact"].verdict == "unsupported"


@pytest.mark.slow
@pytest.mark.requirement("CNF-54")
def test_a_failure_that_no_fresh_process_gives_is_inconsistent(judge: Judge) -> None:
    failures = [outcome.failure for outcome in judge("state-leak").values() if outcome.verdict == "inconsistent"]
    assert failures
    assert all(failure is not None and failure.repeats is False for failure in failures)


@pytest.mark.requirement("CNF-54")
def test_an_inconsistency_is_not_named_beside_itself() -> None:
    asked: Counter[str] = Counter()
    mine = Adapter("mine", "1")

    @mine.operation("field.add")
    def add(q: str, a: str, b: str) -> dict[str, str]:
        asked[q + a + b] += 1
        wrong = asked[q + a + b] == 3
        return {"value": pack([(x + y + wrong) % int(q) for x, y in zip(unpack(a), unpack(b), strict=True)])}

    [outcome] = run(DirectConnection(mine.answer), Settings(pattern="adapter/independent"))[1]
    assert outcome.failure is not None
    assert (outcome.verdict, outcome.failure.repeats, outcome.failure.also) == ("inconsistent", False, ())


@pytest.mark.slow
@pytest.mark.requirement("ADP-01")
def test_a_hang_is_a_timeout_and_is_shrunk_through_restarts(judge: Judge) -> None:
    failure = judge("hang", "field.add/exact", 0.5)["field.add/exact"].failure
    assert failure is not None
    assert failure.verdict == "timeout"
    assert failure.transcript[-1].request.params["a"] == "00" * 12, "the smallest case has three elements"
    assert failure.message == "field.add: no answer within 0.5 s", "the case was tried again with the whole time"


@pytest.mark.requirement("CNF-50")
def test_an_answer_of_a_function_beyond_the_longest_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_LINE", 40)
    connection = DirectConnection(lambda request: {"id": 1, "result": {"data": "x" * request["params"]["size"]}})
    assert connection.ask(Request("echo", {"size": 6})).kind == "result"
    with pytest.raises(AdapterBroken, match="longer than 67,108,864 bytes") as broken:
        connection.ask(Request("echo", {"size": 7}))
    assert broken.value.verdict == "protocol"


@pytest.mark.requirement("CNF-50")
@pytest.mark.parametrize("levels", [99, 100_000])
def test_an_answer_of_a_function_with_too_many_levels_is_refused(levels: int) -> None:
    data: list[Any] = []
    for _ in range(levels):
        data = [data]
    with pytest.raises(AdapterBroken, match="nested deeper than 100 levels") as broken:
        DirectConnection(lambda request: {"id": 1, "result": {"data": data}}).ask(Request("echo", {}))
    assert broken.value.verdict == "protocol"


@pytest.mark.slow
@pytest.mark.parametrize("fault", one_in(2, part(2, ["huge-stderr", "noise-at-start", "slow", "split-line"])))
def test_noise_before_hello_and_on_standard_error_slowness_and_split_lines_are_no_failure(
    judge: Judge, fault: str
) -> None:
    assert verdicts(judge(fault)) == set()


@pytest.mark.requirement("ADP-04")
def test_an_adapter_that_answers_unknown_operations_is_caught(judge: Judge) -> None:
    outcomes = judge("lies", "adapter/un")
    assert outcomes["adapter/unknown-operation"].verdict == "wrong_value"
    assert outcomes["adapter/undeclared-operation"].verdict == "wrong_value"


def test_the_smallest_case_is_found_and_replays_without_the_kit(judge: Judge, tmp_path: Path) -> None:
    outcome = judge("wrong-value", "field.add/exact")["field.add/exact"]
    assert outcome.failure is not None
    request = outcome.failure.transcript[-1].request
    assert len(request.params["a"]) == 3 * 8, "three elements are the fewest that fail"
    assert outcome.failure.repeats is True
    path = write_repro(tmp_path, "fake", outcome.check.id, outcome.failure)
    assert path.with_suffix(".expected.json").exists()
    replayed = _replay(path, "wrong-value")
    assert replayed.splitlines()[-1] == '{"id": 1, "result": {"value": "' + "00" * 12 + '"}}'


def _replay(path: Path, fault: str) -> str:
    import subprocess

    with path.open() as requests:
        done = subprocess.run([sys.executable, FAKE, fault], stdin=requests, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/adapter"],
        [sys.executable, "-c", "pass"],
        [sys.executable, "-c", "print('hello'); import sys; sys.stdin.read()"],
    ],
)
def test_an_adapter_that_cannot_be_used_is_said_to_be_so(command: list[str]) -> None:
    connection = ProcessConnection(command, 1.0, start_timeout=1.0)
    with pytest.raises(AdapterUnusable):
        run(connection, Settings(cases=1))
    connection.close()


@pytest.mark.slow
def test_the_same_seed_draws_the_same_cases() -> None:
    connection = DirectConnection(reference.build().answer)
    counts = [
        [outcome.cases for outcome in run(connection, Settings(cases=20, seed=5, pattern="MOD-03"))[1]]
        for _ in range(2)
    ]
    assert counts[0] == counts[1]


def test_no_source_is_read_to_search_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hypothesis.core.function_digest", None)
    _, outcomes = run(DirectConnection(reference.build().answer), Settings(cases=2, pattern="field.add/exact"))
    assert [(outcome.verdict, outcome.cases) for outcome in outcomes] == [("pass", 2)]


def drawn_cases() -> list[str]:
    seen: list[str] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(json.dumps(request))
        return reference.build().answer(request)

    run(DirectConnection(answer), Settings(cases=200, seed=3, pattern="field.add/exact"))
    return seen


@pytest.mark.requirement("CNF-77")
def test_an_adapter_in_this_process_has_the_global_generators_to_itself() -> None:
    """Seeded before each case, as Hypothesis does, an adapter that draws its masks from them would repeat them."""
    built, drawn = reference.build(), list[tuple[float, float]]()

    def answer(request: Any) -> dict[str, Any]:
        drawn.append((random.random(), float(np.random.random())))  # noqa: NPY002
        return built.answer(request)

    run(DirectConnection(answer), Settings(cases=20, pattern="field.add/exact"))
    assert len(drawn) > 10
    for values in zip(*drawn, strict=True):
        assert len(set(values)) == len(drawn)


@pytest.mark.requirement("CNF-78")
def test_each_case_is_drawn_anew() -> None:
    """Hypothesis follows a drawn case with copies of it in which one value takes the place of another."""
    cases: list[tuple[int, ...]] = []

    def judge_case(draw: Any, call: Caller) -> None:
        cases.append(tuple(draw(st.integers(0, 2**64 - 1)) for _ in range(8)))

    connection = DirectConnection(reference.build().answer)
    check = Check("any/check", (), (), judge_case, lambda caps: True, "")
    first_failure(connection, greet(connection.ask), check, Settings(cases=60, seed=1))
    assert len(cases) == len(set(cases)) == 60
    for one, other in combinations(cases, 2):
        assert sum(mine == yours != 0 for mine, yours in zip(one, other, strict=True)) < 4


@pytest.mark.requirement("CNF-01")
@pytest.mark.parametrize(("least", "verdict"), [(0, "unsupported"), (5, "pass")])
def test_a_check_whose_cases_are_all_declined_is_not_passed(least: int, verdict: str) -> None:
    def judge_case(draw: Any, call: Caller) -> None:
        call.ask("echo", {"data": 1})
        if draw(st.integers(0, 9)) >= least:
            raise Declined

    connection, check = DirectConnection(reference.build().answer), Check("any/check", (), (), judge_case, bool, "")
    outcome = run_check(connection, greet(connection.ask), check, Settings(cases=10))
    assert outcome.verdict == verdict
    assert (outcome.cases == 0) == bool(outcome.note) == (verdict == "unsupported")


def sharing(made: list[tuple[int, ...]], wrong: int = 2**64) -> Check:
    """Return a check whose cases share sessions of three numbers; it fails if they and a fourth one are large."""

    def session(draw: Any) -> tuple[int, ...]:
        made.append(tuple(draw(st.integers(0, 2**32)) for _ in range(3)))
        return made[-1]

    def judge_case(draw: Any, call: Caller) -> None:
        numbers = shared(draw, ("any",), session)
        more = draw(st.integers(0, 1000))
        call.ask("hello", {"protocol": [1, 0]})
        if sum(numbers) + more >= wrong and more >= 5:
            raise CheckFailed("wrong_value", f"{numbers} and {more}")

    return Check("any/check", (), (), judge_case, lambda caps: True, "")


@pytest.mark.slow
@pytest.mark.requirement("CNF-79")
def test_sessions_that_cases_share_differ() -> None:
    connection = DirectConnection(reference.build().answer)
    of_runs = []
    for seed in (1, 1, 2):
        made: list[tuple[int, ...]] = []
        run_check(connection, greet(connection.ask), sharing(made), Settings(cases=300, seed=seed))
        assert len(set(made)) == len(made) == SHARED
        assert (0, 0, 0) in made
        of_runs.append(set(made))
    assert of_runs[0] == of_runs[1]
    assert of_runs[0] & of_runs[2] == {(0, 0, 0)}


@pytest.mark.requirement("CNF-79")
def test_a_failure_in_a_shared_session_is_the_smallest_one() -> None:
    connection = DirectConnection(reference.build().answer)
    outcome = run_check(connection, greet(connection.ask), sharing([], 10_000), Settings(cases=100, seed=1))
    assert outcome.failure is not None
    *numbers, more = outcome.failure.draws
    assert [*numbers, more] == [0, 0, 9000, 1000]


@pytest.mark.parametrize("least", [0, 6])
def test_what_failed_last_is_not_asked_again(least: int) -> None:
    """Hypothesis draws the smallest case twice more; a case that a check draws out while it asks is asked each time."""
    asked, late = list[int](), list[int]()

    def judge_case(draw: Any, call: Caller, into: list[int], later: bool) -> None:
        number = draw(st.integers(0, 9))
        call.ask("hello", {"protocol": [1, 0]})
        into.append(number)
        if number >= least and (not later or draw(st.integers(0, 1)) >= 0):
            raise CheckFailed("wrong_value", f"{number}")

    connection, check = DirectConnection(reference.build().answer), sharing([])
    for into, later in ((asked, False), (late, True)):
        chosen = replace(check, judge=partial(judge_case, into=into, later=later))
        outcome = run_check(connection, greet(connection.ask), chosen, Settings(cases=50, seed=1))
        assert outcome.failure is not None
        assert outcome.failure.draws[0] == least
        assert outcome.failure.message == f"{least}"
    assert asked.count(least) == 1
    assert late.count(least) > 1


@pytest.mark.slow
@pytest.mark.requirement("CNF-79")
def test_a_failure_after_a_session_that_was_exchanged_is_the_smallest_one() -> None:
    """A case takes another session when the first one does not allow its fault."""

    def judge_case(draw: Any, call: Caller) -> None:
        first, second = (shared(draw, ("any",), pair) for _ in range(2))
        call.ask("hello", {"protocol": [1, 0]})
        if min(second) > 10_000 > max(first):
            raise CheckFailed("wrong_value", "the second is larger")

    def pair(draw: Any) -> tuple[int, int]:
        small = draw(st.booleans())
        return draw(st.integers(0, 99 if small else 2**32)), draw(st.integers(0, 99 if small else 2**32))

    connection, check = DirectConnection(reference.build().answer), replace(sharing([]), judge=judge_case)
    outcome = run_check(connection, greet(connection.ask), check, Settings(cases=100, seed=1))
    assert outcome.failure is not None
    assert outcome.failure.draws == (False, 0, 0, False, 10_001, 10_001)


@pytest.mark.requirement("CNF-79")
def test_the_first_failure_in_a_shared_session_can_be_judged_again() -> None:
    connection, found = DirectConnection(reference.build().answer), list[Failure]()
    settings = Settings(cases=100, seed=1, found=lambda check, failure: found.append(failure))
    caps, check = greet(connection.ask), sharing([], 10**6)
    run_check(connection, caps, check, settings)
    for failure in (found[0], found[-1]):
        values = iter(failure.draws)
        with pytest.raises(CheckFailed, match=re.escape(failure.message)):
            check.judge(lambda strategy, values=values: next(values), Caller(connection, caps))


@pytest.mark.slow
def test_a_seed_gives_the_same_cases_whatever_else_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn_cases()
    path = tmp_path / "constants_of_somebody_else.py"
    path.write_text(f"NUMBERS = {[1_000_003 + 17 * n for n in range(50)]}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, path.stem, module)
    assert len(before) > 200
    assert drawn_cases() == before


def test_the_whole_id_of_a_check_chooses_that_check_alone() -> None:
    def chosen(pattern: str) -> set[str]:
        return {check.id for check in Settings(pattern=pattern).chosen()}

    assert chosen("field.add/exact") == {"field.add/exact"}
    assert chosen("field.add/exact,mod-03") > {"field.add/exact", "field.add/exact/ends"}
    assert chosen("field.add/exac") == {"field.add/exact", "field.add/exact/ends"}


@pytest.mark.parametrize(
    ("id", "many"),
    {
        "key.agree/lengths": 2,
        "key.derive/lengths": 4,
        "seal.open/another-nonce": 3,
        "seal.open/users": 8,
        "seal.close/users": 8,
        "lightsecagg.mask/length": 2,
        "lightsecagg.mask/elements": 2,
        **{
            f"lightsecagg.aggregate_shares/{name}": many
            for name, many in (("outside", 3), ("parameters", 5), ("held", 5))
        },
        "lightsecagg.round/drop": 5,
        "lightsecagg.round/phases": 6,
        "lightsecagg.round/parameters": 8,
        "signature.sign/lengths": 6,
        "signature.verify/lengths": 6,
        "signature.verify/another-context": 8,
        "message.decode/count": 4,
        "message.decode/type": 5,
        "mds.decode/parameters": 3,
        "shamir.share/secret-length": 4,
        "shamir.reconstruct/elements": 5,
        "basecagg.combine/fields": 6,
        "basecagg.combine/parameters": 6,
        "basecagg.recover/parameters": 6,
    }.items(),
)
def test_one_case_asks_each_wrong_request(id: str, many: int) -> None:
    """What a check is for is not left to which one is drawn."""
    connection, asked = DirectConnection(reference.build().answer), set[str]()

    def ask(request: Request) -> Answer:
        asked.add(request.line(1))
        return DirectConnection.ask(connection, request)

    caps = greet(connection.ask)
    connection.ask = ask  # type: ignore[method-assign]
    for seed in (1, 2):
        asked.clear()
        outcome = run_check(connection, caps, REGISTRY[id], Settings(cases=1, seed=seed))
        assert outcome.verdict == "pass"
        assert len(asked) >= many


ECHOES = """import json, sys
from secagg_spec.conformance.targets.reference import adapter
reference = adapter.build()
spoil = eval(sys.argv[2])
for line in sys.stdin.buffer:
    request = json.loads(line.decode(sys.argv[1]))
    answer = reference.answer(request)
    if request["op"] == "echo":
        answer["result"]["data"] = json.loads(spoil(json.dumps(answer["result"]["data"])))
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.requirement("ADP-01")
@pytest.mark.parametrize(
    ("reads", "old", "new", "named"),
    [
        ("utf-8", "", "", ""),
        ("latin-1", "", "", "echo of characters of two bytes, in UTF-8, gave something else"),
        ("utf-8", "0000", "0001", "echo of control characters, in escapes, gave something else"),
        ("utf-8", "2028", "2029", "echo of line separators and invisible characters, in escapes, gave something else"),
        ("utf-8", "d83d", "d83c", "echo of characters of four bytes, in escapes, gave something else"),
        ("utf-8", "__proto__", "x", "echo of a name of JavaScript, in escapes, gave something else"),
    ],
)
def test_texts_that_break_writers_of_json_are_asked(reads: str, old: str, new: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text(ECHOES)
    spoil = f"lambda text: text.replace({old!r}, {new!r}) if {old!r} else text"
    connection = ProcessConnection([sys.executable, str(tmp_path / "adapter.py"), reads, spoil])
    try:
        _, (outcome,) = run(connection, Settings(cases=1, pattern="adapter/texts"))
    finally:
        connection.close()
    assert outcome.verdict == ("wrong_value" if named else "pass")
    if outcome.failure:
        assert outcome.failure.message == named
        assert len(outcome.failure.transcript) == 1
