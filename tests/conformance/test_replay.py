"""Stored failures: judged again, and refused when they cannot be."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import cli
from secagg_spec.commands import replay
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import NO_CASE, Declined
from secagg_spec.conformance.mutants.catalogue import load, planted
from secagg_spec.conformance.running import repros, suite
from secagg_spec.conformance.running.runner import Settings, run, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.kit import sealed

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
PLAIN = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False) | st.binary(max_size=3)
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@given(VALUES)
def test_what_a_check_draws_survives_json(value: Any) -> None:
    assert repros.restored(json.loads(json.dumps(repros.plain(value)))) == value


def test_numbers_that_are_not_finite_survive_json() -> None:
    assert math.isnan(repros.restored(repros.plain(math.nan)))
    assert repros.restored(repros.plain([math.inf, -math.inf, 2.0**-1074])) == [math.inf, -math.inf, 2.0**-1074]


@pytest.fixture
def stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the file of a failure that a run on a faulty adapter wrote."""
    options = ["--repro", str(tmp_path), "-k", "field.add/exact", "--", sys.executable, FAKE, "wrong-value"]
    assert cli.main(["conform", *options]) == 1
    capsys.readouterr()
    return tmp_path / "adapter-field-add-exact.jsonl"


@pytest.mark.requirement("CNF-74")
def test_a_case_without_its_seal_is_not_judged_again(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stored.with_suffix(".expected.json")
    body = json.loads(path.read_text())
    del body["seal"]
    path.write_text(json.dumps({**body, "draws": [11, *body["draws"][1:]]}))
    assert cli.main(["replay", str(stored), "--", sys.executable, FAKE, "wrong-value"]) == 2
    assert capsys.readouterr().err == f"secagg-spec replay: {path}: the member 'seal' is missing\n"


@pytest.mark.requirement("CNF-74")
@pytest.mark.parametrize("name", ["kit", "verdict", "message", "expected_of_the_last_answer", "answers_seen", "more"])
def test_a_case_is_not_judged_again_when_a_member_was_changed(
    stored: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = stored.with_suffix(".expected.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), name: "another"}))
    assert cli.main(["replay", str(stored), "--", sys.executable, FAKE, "wrong-value"]) == 2
    assert "one of them was changed since the run" in capsys.readouterr().err


@pytest.mark.parametrize(("fault", "word", "code"), [("wrong-value", "FAILED", 1), ("none", "FIXED", 0)])
def test_a_stored_failure_is_judged_again(
    stored: Path, capsys: pytest.CaptureFixture[str], fault: str, word: str, code: int
) -> None:
    assert cli.main(["replay", str(stored), "--", sys.executable, FAKE, fault]) == code
    assert capsys.readouterr().out.startswith(word)


def test_a_failure_that_needs_earlier_requests_is_not_called_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leak = (sys.executable, FAKE, "state-leak")
    assert cli.main(["conform", "--repro", str(tmp_path), "-k", "field.add/exact", "--", *leak]) == 1
    path = tmp_path / "adapter-field-add-exact.jsonl"
    assert json.loads(path.with_suffix(".expected.json").read_text())["verdict"] == "inconsistent"
    capsys.readouterr()
    for fault in ("state-leak", "none"):
        assert cli.main(["replay", str(path), "--", sys.executable, FAKE, fault]) == 3
        out = capsys.readouterr().out
        assert out.startswith("UNKNOWN  field.add/exact passes with these requests alone")
        assert "give the command of its run again" in out
        assert "conform -k" not in out  # the requests before it may be those of other checks


def narrowed(answer: Callable[[Any], dict[str, Any]]) -> DirectConnection:
    """The reference with the moduli of field.add cut to one; outside it, `answer` answers."""
    right = reference.build()

    def answered(request: Any) -> dict[str, Any]:
        if request["op"] == "hello":
            given = right.answer(request)
            declared = {**given["result"]["operations"], "field.add": {"ranges": {"q": {"values": ["5"]}}}}
            return {**given, "result": {**given["result"], "operations": declared}}
        outside = request["op"] == "field.add" and request["params"]["q"] != "5"
        return {"id": request["id"], **answer(request)} if outside else right.answer(request)

    return DirectConnection(answered)


def unsupported(request: Any) -> dict[str, Any]:
    """An answer that is right outside the declared ranges (ADP-06)."""
    return {"unsupported": True}


def another_modulus(request: Any) -> dict[str, Any]:
    """A refusal of the modulus, whatever else is wrong with the request."""
    return {"reject": {"code": "bad_param"}}


SMALLEST: dict[str, Sequence[Any]] = {
    "field.add/exact": (7, 1, "zeros", "zeros"),
    "field.add/noncanonical": (7, 1, "zeros", "zeros", 1, 0, 7, 0),
    "vector/field-add-noncanonical-7": (),
}


@pytest.mark.requirement("CNF-01")
@pytest.mark.parametrize("check", SMALLEST)
@pytest.mark.parametrize("answer", [unsupported, another_modulus])
def test_a_case_that_is_declined_outside_the_ranges_is_neither_fixed_nor_failed(check: str, answer: Any) -> None:
    with pytest.raises(Declined, match="not run: it lies outside the declared ranges"):
        repros.judge(narrowed(answer), check, SMALLEST[check])


@pytest.mark.requirement("ADP-06")
def test_a_case_outside_the_ranges_may_fail_or_pass_by_its_result() -> None:
    check = "field.add/exact"
    found = repros.judge(narrowed(lambda request: {"result": {"value": "01000000"}}), check, SMALLEST[check])
    assert found is not None
    assert found.verdict == "wrong_value"
    assert repros.judge(narrowed(reference.build().answer), check, SMALLEST[check]) is None


@pytest.mark.requirement("ADP-06")
def test_a_check_of_what_lies_outside_the_ranges_is_passed_by_declining() -> None:
    check = "field.add/outside-range"
    wrong = narrowed(lambda request: {"result": {"value": "00000000" * (len(request["params"]["a"]) // 8)}})
    found = run_check(wrong, greet(wrong.ask), REGISTRY[check], Settings(cases=20)).failure
    assert found is not None
    assert repros.judge(wrong, check, found.draws) is not None
    assert repros.judge(narrowed(unsupported), check, found.draws) is None


@pytest.mark.requirement("CNF-01")
def test_a_case_of_which_nothing_is_asked_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = replace(REGISTRY["field.add/exact"], judge=lambda draw, call: None)
    monkeypatch.setattr(suite, "find", {"field.add/exact": idle}.get)
    with pytest.raises(Declined, match=NO_CASE):
        repros.judge(narrowed(unsupported), "field.add/exact", ())


def test_a_case_that_is_not_judged_is_unknown(
    stored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "ProcessConnection", lambda *given: narrowed(unsupported))
    assert cli.main(["replay", str(stored), "--", "adapter"]) == 3
    assert capsys.readouterr().out == f"UNKNOWN  field.add/exact: {suite.OUTSIDE}\n"


@pytest.mark.parametrize(("fault", "code"), [("evil-text", 1), ("hello-evil-text", 3)])
def test_text_of_an_adapter_is_printed_without_what_a_terminal_obeys(
    stored: Path, capsys: pytest.CaptureFixture[str], fault: str, code: int
) -> None:
    hostile = str(Path(__file__).with_name("hostile_adapter.py"))
    assert cli.main(["replay", str(stored), "--", sys.executable, hostile, fault]) == code
    out = capsys.readouterr().out
    assert r"\x1b[2J" in out
    assert not set(out) & set("\x1b\x07\r\x85\u202e\ud800")


def test_an_adapter_that_cannot_be_used_is_an_error(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", str(stored), "--", "/nowhere/adapter"]) == 3
    assert capsys.readouterr().out.startswith("ERROR")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "secagg-spec-repro/9"}, "repro/9"),
        ({"check": "nothing"}, "no check 'nothing'"),
        ({"draws": None}, "'draws' is missing"),
        ({"draws": []}, "too few drawn values"),
        ({"answers_seen": 3}, "'answers_seen' is not a list of answers"),
        ({"draws": ["x", "y", "z", "z", "z"]}, "does not fit"),
        ({"draws": [{"float": "0x1p9999"}]}, "'draws' is not a list of drawn values as a run writes them"),
    ],
)
def test_a_file_of_another_version_is_refused_in_one_line(
    stored: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    path = stored.with_suffix(".expected.json")
    body = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({name: value for name, value in body.items() if value is not None}))
    sealed(stored)
    assert cli.main(["replay", str(stored), "--", sys.executable, FAKE, "none"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_file_that_is_absent_or_no_json_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (None, "{"):
        if text:
            (tmp_path / "x.expected.json").write_text(text)
        assert cli.main(["replay", str(tmp_path / "x.jsonl"), "--", "true"]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


DROPS = """import json, sys
from secagg_spec.conformance.targets.reference import adapter
reference = adapter.build()
for line in sys.stdin:
    request = json.loads(line)
    answer = reference.answer(request)
    if len(sys.argv) > 1 and request["op"] == "session.step" and request["params"]["phase"] == "share_keys":
        answer["result"]["outbox"] = answer["result"]["outbox"][:-1]
    print(json.dumps(answer), flush=True)
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-74")
def test_a_round_that_ended_at_its_fault_is_fixed_once_the_fault_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check draws each act after the answers to those before: a right adapter comes to acts that were not drawn."""
    adapter = tmp_path / "adapter.py"
    adapter.write_text(DROPS)
    options = ["--fuzz", "2", "--no-vectors", "--repro", str(tmp_path), "-k", "adversary/secagg.user"]
    assert cli.main(["conform", *options, "--", sys.executable, str(adapter), "drops"]) == 1
    stored = tmp_path / "adapter-adversary-secagg-user.jsonl"
    assert cli.main(["replay", str(stored), "--", sys.executable, str(adapter), "drops"]) == 1
    capsys.readouterr()
    assert cli.main(["replay", str(stored), "--", sys.executable, str(adapter)]) == 0
    assert capsys.readouterr().out.startswith("FIXED    adversary/secagg.user passes")

    path = stored.with_suffix(".expected.json")
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "draws": body["draws"][:-1]}))
    sealed(stored)
    assert cli.main(["replay", str(stored), "--", sys.executable, str(adapter)]) == 2
    assert "too few drawn values" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small-set-accepted", "inverse-of-zero", "range-forgets-weight"])
def test_the_failure_that_a_mutant_makes_fails_again_and_is_fixed_without_it(name: str) -> None:
    direct = DirectConnection(reference.build().answer)
    with planted(name):
        _, outcomes = run(direct, Settings(cases=100, pattern=load()[name].clauses[0]))
        failures = [outcome for outcome in outcomes if outcome.failure]
        assert failures
        for outcome in failures:
            assert outcome.failure is not None
            assert repros.judge(direct, outcome.check.id, outcome.failure.draws) is not None
    for outcome in failures:
        assert outcome.failure is not None
        assert repros.judge(direct, outcome.check.id, outcome.failure.draws) is None
