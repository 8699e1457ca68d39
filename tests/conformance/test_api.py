"""The kit as a library and as a plugin of pytest: its verdicts are those of the command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import subprocess
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secagg_spec.conformance import api, pytest_plugin
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.api import AdapterFailed, ExpectedFailure, adapter_tests
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, pack, unpack
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.errors import UsageError
from tests.quick import exhaustive, part

FAKE = [sys.executable, str(Path(__file__).with_name("fake_adapter.py"))]
HOSTILE = [sys.executable, str(Path(__file__).with_name("hostile_adapter.py"))]
EXPECT = '[[expect]]\ntarget = "adapter"\nchecks = "{}"\nverdict = "wrong_value"\nreason = "known"\n'


@pytest.mark.parametrize(("fault", "code"), [("none", 0), ("wrong-value", 1)])
def test_an_adapter_is_judged_in_one_call(fault: str, code: int) -> None:
    report = api.judge([*FAKE, fault], cases=20, pattern="field.add/exact")
    assert report.exit_code == code
    assert report.failed == code
    assert [judged.outcome.check.id for judged in report.judged] == ["field.add/exact"]


def cancelled() -> None:
    raise asyncio.CancelledError


def test_a_function_is_an_adapter() -> None:
    mine = Adapter("mine", "1")

    @mine.operation("field.add")
    def add(q: str, a: str, b: str) -> dict[str, str]:
        return {"value": pack([x + y for x, y in zip(unpack(a), unpack(b), strict=True)])}

    report = api.judge(mine.answer, cases=20, pattern="field.add/exact")
    assert (report.exit_code, report.failed) == (1, 1)
    assert api.judge(reference.build().answer, cases=5, pattern="field.add/exact").exit_code == 0


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (lambda: 1 // 0, "crash"),
        (sys.exit, "crash"),
        (cancelled, "crash"),
        (lambda: pytest.fail("the implementation's own test"), "crash"),
        (lambda: {"id": 1, "result": {1}}, "protocol"),
        (lambda: {"id": 1, "result": {"value": np.int64(1)}}, "protocol"),
        (lambda: None, "protocol"),
    ],
)
def test_a_function_that_raises_or_answers_no_json_has_failed(answer: Callable[[], Any], verdict: str) -> None:
    report = api.judge(lambda _: answer())
    assert report.exit_code == 3
    assert f"({verdict})" in report.unusable
    hello = reference.build().answer
    report = api.judge(lambda q: hello(q) if q["op"] == "hello" else answer(), cases=2, pattern="field.add/exact")
    assert [found.outcome.verdict for found in report.judged] == [verdict]


@pytest.mark.requirement("ADP-04")
@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        ({"result": {}}, "wrong_value"),
        ({"reject": {"code": "malformed"}}, "wrong_reason"),
        ({"error": {"message": "no"}}, "error"),
        ({"unsupported": True}, "pass"),
    ],
)
def test_a_refusal_of_what_is_not_declared_is_none_that_fits(content: dict[str, Any], verdict: str) -> None:
    mine = Adapter("mine", "1")
    report = api.judge(
        lambda request: mine.answer(request) if request["op"] == "hello" else {"id": request["id"], **content},
        pattern="adapter/undeclared-operation",
    )
    assert [judged.outcome.verdict for judged in report.judged] == [verdict]


@pytest.mark.parametrize("result", [{}, {"value": None}])
def test_a_vector_that_is_missing_or_null_is_named(result: dict[str, Any]) -> None:
    mine = Adapter("mine", "1")
    mine.operation("field.add")(lambda q, a, b: result)
    [judged] = api.judge(mine.answer, cases=1, pattern="field.add/exact").judged
    assert judged.outcome.failure is not None
    assert judged.outcome.failure.message == "field.add: the result has no vector 'value': it is missing or null"


def test_the_words_of_an_adapter_may_be_paths(tmp_path: Path) -> None:
    words: list[str | Path] = [Path(FAKE[0]), Path(FAKE[1]), "none"]
    assert api.judge(words, cases=2, pattern="field.add/exact").exit_code == 0
    script = tmp_path / "an adapter"
    script.write_text(f"#!/bin/sh\nexec {shlex.join([*FAKE, 'none'])}\n")
    script.chmod(0o755)
    with contextlib.chdir(tmp_path):
        for path in (script, Path("./an adapter"), [Path("an adapter")]):
            assert api.judge(path, cases=2, pattern="field.add/exact").exit_code == 0
        assert "cannot start ./true: " in api.judge(Path("true"), cases=2, pattern="field.add/exact").unusable


def test_an_adapter_that_cannot_be_used_is_said_to_be_so() -> None:
    report = api.judge("/nowhere/adapter")
    assert report.exit_code == 3
    assert "cannot start" in report.unusable


HUGE = 10**5000


@pytest.mark.parametrize(
    ("adapter", "options", "said"),
    [
        ("", {}, "empty"),
        ([""], {}, "empty"),
        ("true\0", {}, "null character"),
        ("a 'b", {}, "is not a command line"),
        ("x", {"pattern": "nothing-like-this"}, "nothing-like-this"),
        ("x", {"cases": 0}, "at least 1"),
        *(
            ("x", {"cases": no}, "cases = .{,62}: must be an integer, at least 1")
            for no in (1.5, "1", None, True, -HUGE, HUGE, [HUGE])
        ),
        *(("x", {"seed": no}, "seed = .{,62}: must be an integer") for no in (1.5, None, "9" * 5000, -HUGE, HUGE)),
        *(
            ("x", {"timeout": no}, "timeout = .{,62}: must be a number of seconds")
            for no in (0, -1, float("nan"), "1", 1e9, True, HUGE)
        ),
        ("x", {"expect": Path("/nowhere.toml")}, "nowhere.toml"),
        ("x", {"expect": "/nowhere.toml"}, "nowhere.toml"),
        *(("x", {"expect": no}, "expect = .*: must be a path") for no in ("", 5, b"x")),
        *(("x", {"pattern": no}, "pattern = .{,62}: must be text") for no in (5, ["field"], b"x", HUGE)),
        *(
            (no, {}, "adapter = .*: it must be a command line")
            for no in (5, None, b"x", [5], {"a": 1}, Adapter("a", "1"))
        ),
    ],
)
def test_what_cannot_be_used_is_refused(adapter: Any, options: dict[str, Any], said: str) -> None:
    for function in (api.judge, adapter_tests):
        with pytest.raises(UsageError, match=said):
            function(adapter, **options)


def test_what_is_not_declared_is_named_in_a_skip() -> None:
    mine = Adapter("mine", "1")
    mine.operation("mds.encode")(lambda **params: {})
    [test] = adapter_tests(mine.answer, pattern="mds/sum")
    with pytest.raises(unittest.SkipTest, match=r"^not offered: mds\.decode$"):
        test.run()


def came_out(test: api.AdapterTest) -> str:
    """What a test says: pass, skip, expected, fail."""
    try:
        test.run()
    except unittest.SkipTest:
        return "skip"
    except ExpectedFailure:
        return "expected"
    except AdapterFailed:
        return "fail"
    return "pass"


@pytest.mark.slow
@pytest.mark.requirement("CNF-49")
@pytest.mark.parametrize("fault", part(3, ["none", "wrong-value", "crash"]))
def test_tests_pass_where_the_run_of_the_kit_does(fault: str) -> None:
    report = api.judge([*FAKE, fault], cases=12, pattern="field.add/")
    judged = {found.outcome.check.id: found for found in report.judged}
    tests = adapter_tests([*FAKE, fault], cases=12, pattern="field.add/")
    assert [str(test) for test in tests] == list(judged)
    for test in tests:
        found = judged[str(test)]
        wanted = {"pass": "pass", "unsupported": "skip"}.get(found.outcome.verdict, "fail")
        assert came_out(test) == wanted, str(test)
    tests[0].of.close()


@pytest.mark.slow
@pytest.mark.requirement("CNF-49")
def test_a_check_that_the_kit_gives_up_does_not_pass() -> None:
    tests = adapter_tests([*HOSTILE, "hang"], cases=2, pattern="field.*/exact", timeout=0.2)
    results = [came_out(test) for test in tests if test.check.runs_on(test.of.caps)]
    assert results == ["fail"] * len(results)
    assert len(results) == 6
    assert came_out(tests[0]) == "fail"
    assert "time-out" in tests[0].of.stopped
    tests[0].of.close()


@pytest.mark.requirement("CNF-49")
def test_an_expectation_that_is_not_true_fails(tmp_path: Path) -> None:
    expect = tmp_path / "expect.toml"
    expect.write_text(EXPECT.format("field.add/exact"))
    for fault, wanted in (("wrong-value", "expected"), ("none", "fail")):
        [test] = adapter_tests([*FAKE, fault], cases=20, pattern="field.add/exact", expect=expect)
        assert came_out(test) == wanted
        test.of.close()


@pytest.mark.requirement("CNF-49")
def test_an_expectation_for_too_many_checks_fails_as_in_a_run(tmp_path: Path) -> None:
    expect = tmp_path / "expect.toml"
    expect.write_text(
        EXPECT.format("*").replace('verdict = "', 'verdict = ["pass", "').replace('"wrong_value"', '"wrong_value"]')
    )
    tests = {str(test): test for test in adapter_tests([*FAKE, "wrong-value"], cases=20, expect=expect)}
    test = tests["field.add/exact"]
    with pytest.raises(AdapterFailed, match=r"STALE .* checks; 20 are allowed"):
        test.run()
    test.of.close()


@pytest.mark.slow
def test_a_failure_is_written_and_says_how_it_is_judged_again(tmp_path: Path) -> None:
    [test] = adapter_tests([*FAKE, "wrong-value"], cases=20, pattern="field.add/exact", repro=str(tmp_path / "repro"))
    with pytest.raises(AdapterFailed, match="secagg-spec replay"):
        test.run()
    assert len(list((tmp_path / "repro").iterdir())) == 2
    test.of.close()
    [blocked] = adapter_tests([*FAKE, "wrong-value"], cases=20, pattern="field.add/exact", repro=Path("/dev/null/x"))
    with pytest.raises(AdapterFailed, match="could not be written"):
        blocked.run()
    blocked.of.close()


def test_an_adapter_that_does_not_start_is_no_test_that_passes() -> None:
    [test] = adapter_tests("/nowhere/adapter", pattern="field.add/exact")
    with pytest.raises(AdapterUnusable):
        test.run()


# --------------------------------------------------------------------------------------------------------- plugin


def with_plugin(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest with the plugin in an empty folder; return its exit code and what it printed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    quiet = {**os.environ, "COLUMNS": "200", "PYTEST_ADDOPTS": ""}
    done = subprocess.run([*command, *arguments], cwd=folder, env=quiet, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def adapter(fault: str) -> list[str]:
    """The options for the fake with a fault, and one check or a few."""
    return ["--secagg-adapter", " ".join([*FAKE, fault]), "--secagg-fuzz", "20", "--secagg-k", "field.add/"]


@pytest.mark.slow
@pytest.mark.requirement("CNF-49")
def test_each_check_is_a_test_of_pytest(tmp_path: Path) -> None:
    code, out = with_plugin(tmp_path, *adapter("wrong-value"))
    assert code == 1
    assert "FAIL     field.add/exact   wrong_value   [MOD-03]" in out
    assert "smallest case: field.add q=7" in out
    assert "secagg-spec replay repro/adapter-field-add-exact.jsonl" in out
    assert "Traceback" not in out
    assert "FAILED secagg::field.add/exact" in out
    assert (tmp_path / "repro" / "adapter-field-add-exact.jsonl").is_file()
    code, out = with_plugin(tmp_path, *adapter("none"), "-v", "-k", "exact and not ends")
    assert code == 0
    assert "1 passed" in out
    [(collected, left)] = re.findall("collected ([0-9]+) items / ([0-9]+) deselected / 1 selected", out)
    assert int(collected) == int(left) + 1


@pytest.mark.slow
@pytest.mark.requirement("CNF-49")
def test_expected_failures_are_strict_and_what_is_not_declared_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "expect.toml").write_text(EXPECT.format("field.add/exact*") + EXPECT.format("field.add/size"))
    code, out = with_plugin(tmp_path, *adapter("wrong-value"), "--secagg-expect", "expect.toml")
    assert (code, "3 xfailed" in out) == (0, True)
    code, out = with_plugin(tmp_path, *adapter("none"), "--secagg-expect", "expect.toml", "-rs")
    assert (code, "STALE" in out) == (1, True)
    assert "hold no case" in out


@pytest.mark.slow
@pytest.mark.requirement("CNF-01", "CNF-49")
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_of_pytest_in_which_nothing_was_asked_is_no_success(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    command = ["--secagg-adapter", " ".join([*FAKE, "none"]), "--secagg-fuzz", "2", "-n", workers]
    code, out = with_plugin(tmp_path, *command, "--secagg-k", "lightsecagg.mask/")
    assert (code, "secagg: nothing was asked: all " in out) == (5, True)
    code, out = with_plugin(tmp_path, *command, "--secagg-k", "lightsecagg.mask/,field.add/size")
    assert (code, "nothing was asked" in out) == (0, False)


@pytest.mark.slow
@exhaustive
def test_with_several_workers_each_has_an_adapter(tmp_path: Path) -> None:
    code, out = with_plugin(tmp_path, *adapter("wrong-value"), "-n", "2")
    assert (code, "3 failed" in out) == (1, True)
    code, out = with_plugin(tmp_path, "--secagg-adapter", "/nowhere/adapter", "-n", "2")
    assert (code, "ERROR: --secagg-adapter: cannot start" in out) == (4, True)


BAD_TIMES = ("nan", "0", "-1")


@pytest.mark.requirement("CNF-49")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--secagg-adapter="], "--secagg-adapter: it is empty"),
        (["--secagg-adapter", " "], "--secagg-adapter: it is empty"),
        *(
            (["--secagg-adapter", "x", "--secagg-timeout", text], f"--secagg-timeout: '{text}' is")
            for text in BAD_TIMES
        ),
        (["--secagg-adapter", "x", "--secagg-fuzz", "0"], "--secagg-fuzz: '0' is not a whole number of cases"),
        (["--secagg-adapter", "x", "--secagg-fuzz", "9" * 5000], "--secagg-fuzz: has 5000 characters"),
        (["--secagg-adapter", "x", "--secagg-seed", "a"], "--secagg-seed: 'a' is not an integer"),
        (["--secagg-adapter", "x", "--secagg-seed", "9" * 5000], "--secagg-seed: has 5000 characters"),
        (["--secagg-adapter", "x", "--secagg-adapter=y"], "--secagg-adapter: is given twice"),
        (["--secagg-adapter", "x", "--secagg-fuzz=1", "--secagg-fuzz", "1"], "--secagg-fuzz: is given twice"),
        (["--secagg-adapter", "x", "--secagg-k=a", "-q", "--secagg-k=b"], "--secagg-k: is given twice"),
        (["--secagg-adapter", "x", "--secagg-repro", ""], "--secagg-repro: is empty, and must be the name of a"),
        (["--secagg-adapter", "x", "--secagg-expect", ""], "--secagg-expect: is empty, and must be the name of a"),
        (["--secagg-k=PRG"], "--secagg-k: nothing is judged without --secagg-adapter"),
        (["-q", "--secagg-expect", "known.toml"], "--secagg-expect: nothing is judged"),
    ],
)
def test_options_that_would_judge_nothing_or_wrongly_are_refused(options: list[str], said: str) -> None:
    with pytest.raises(pytest.UsageError, match=re.escape(said)):
        pytest_plugin.pytest_configure(pytest.Config.fromdictargs({}, options))


@pytest.mark.requirement("CNF-49")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--secagg-expect", "nope.toml"], "--secagg-expect: nope.toml: No such file"),
        (["--secagg-expect", "."], "--secagg-expect: .: "),
        (["--secagg-expect", __file__], "--secagg-expect: test_api.py: "),
        (["--secagg-k", "no-such-check"], "--secagg-k: no-such-check: no check or vector has this id or clause"),
        (["--secagg-k", "!"], "--secagg-k: '!' has an empty pattern"),
        (["--secagg-k", ""], "--secagg-k: '' has an empty pattern"),
        (["--secagg-k", "shamir,!shamir"], "--secagg-k: shamir,!shamir: this leaves out every check"),
        (["--secagg-repro", __file__], "--secagg-repro "),
    ],
)
def test_what_is_wrong_with_an_option_is_blamed_on_it_before_the_adapter_starts(
    options: list[str], said: str, tmp_path: Path
) -> None:
    config = pytest.Config.fromdictargs({}, ["--secagg-adapter", f"touch {tmp_path / 'started'}", *options])
    with pytest.raises(pytest.UsageError) as refused:
        pytest_plugin._tests(config)
    assert str(refused.value).startswith(said)
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["/nowhere/adapter", " ".join([*HOSTILE, "hello-die"])])
def test_an_adapter_that_cannot_be_used_ends_pytest_in_one_line(tmp_path: Path, command: str) -> None:
    code, out = with_plugin(tmp_path, "--secagg-adapter", command)
    assert code == 4
    assert "ERROR: --secagg-adapter: " in out
    assert 'Traceback (most recent call last):\n  File "/' not in out


def test_the_plugin_costs_nothing_where_it_is_not_used() -> None:
    loaded = "print([m for m in ('numpy', 'hypothesis') if m in sys.modules])"
    code = f"import sys, secagg_spec.conformance.pytest_plugin; {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
