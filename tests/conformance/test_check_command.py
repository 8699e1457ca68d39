"""The command check: each adapter that misbehaves gets its verdict, and each that does not start is told what to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.commands import check
from secagg_spec.commands.check import FAIL, OK, SKIP, Step
from tests.quick import part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
HOSTILE = str(Path(__file__).with_name("hostile_adapter.py"))
SECONDS = 3.0


def taken(*command: str, timeout: float = SECONDS, start: float = 20.0) -> dict[str, Step]:
    """The steps that a command comes through, by name."""
    return {step.name: step for step in check.steps(list(command), timeout, start)}


def fake(fault: str, timeout: float = SECONDS) -> dict[str, Step]:
    """The steps that the fake with one fault comes through."""
    return taken(sys.executable, FAKE, fault, timeout=timeout)


def failed(steps: dict[str, Step]) -> set[str]:
    """The names of the steps that failed."""
    return {step.name for step in steps.values() if step.verdict == FAIL}


@pytest.mark.requirement("CNF-44")
@pytest.mark.parametrize("fault", ["none", "split-line", "noise-at-start", "huge-stderr", "slow"])
def test_a_right_adapter_passes_and_what_was_not_asked_is_skipped(fault: str) -> None:
    steps = fake(fault)
    assert failed(steps) == set()
    assert steps["outside ranges"].verdict == SKIP
    assert {name for name, step in steps.items() if step.verdict == OK} == {
        *("start", "hello", "hello again", "unknown", "not a request", "refusal", "line ends"),
        *("long line", "in pieces", "operations", "same again", "fresh process", "end of input"),
    }
    assert check.exit_code(list(steps.values())) == 0


FAULTS = [
    ("crash", "operations", "exit status 3", "catch what the implementation raises"),
    ("hang", "operations", "no answer within", "flush standard output"),
    ("noise", "operations", "not JSON: 'adding", "print to standard error instead"),
    ("wrong-id", "operations", "does not have its id", "copy the id"),
    ("two-answers", "operations", "['result', 'error']", "and nothing else"),
    ("truncated", "operations", "not JSON: '{", "one whole JSON object"),
    ("unknown-code", "refusal", "'because'", "spec/adapter.md, section 5"),
    ("reject-everything", "operations", "rejected this as bad_param", "declare the ranges"),
    ("state-leak", "same again", "differently than before", "keep no state"),
    ("early-exit", "operations", "exit status 0", "must not depend on earlier requests"),
    ("nth-crash", "operations", "exit status 3", "must not depend on earlier requests"),
    ("lies", "unknown", "was answered by result", '{"unsupported": true}'),
    ("deep", "operations", "nested deeper", "spec/adapter.md, section 1"),
    ("binary", "operations", "not UTF-8", "print to standard error instead"),
    ("echo", "refusal", "this one has []", "and nothing else"),
]


@pytest.mark.slow
@pytest.mark.requirement("CNF-44")
@pytest.mark.parametrize("case", part(2, FAULTS))
def test_each_fault_fails_its_step_with_what_to_do(case: tuple[str, str, str, str]) -> None:
    fault, step, said, hint = case
    steps = fake(fault, timeout=3.0 if fault == "hang" else SECONDS)
    assert step in failed(steps)
    assert said in steps[step].said
    assert hint in steps[step].hint
    assert check.exit_code(list(steps.values())) == 1


@pytest.mark.slow
@pytest.mark.requirement("CNF-44")
def test_nothing_is_asked_after_a_time_out_and_nothing_of_it_passes() -> None:
    steps = taken(sys.executable, HOSTILE, "hang", timeout=3.0)
    assert steps["unknown"].verdict == FAIL
    names = list(steps)
    later = {steps[name].verdict for name in names[names.index("unknown") + 1 :]}
    assert later == {SKIP}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["twice", "evil-text"])
def test_text_of_an_adapter_is_printed_without_what_a_terminal_obeys(fault: str) -> None:
    steps = taken(sys.executable, HOSTILE, fault)
    assert failed(steps)
    printed = "\n".join(map(str, steps.values()))
    assert not set(printed) & set("\x1b\x07\r\x85\u202e\ud800")


@pytest.mark.requirement("CNF-44")
@pytest.mark.parametrize(
    ("verdict", "said"),
    [(OK, "1 declared operation of 1 answered"), (FAIL, "field.add failed (rejected_valid)")],
    ids=["right", "refusing"],
)
def test_operations_of_large_moduli_alone_are_asked(tmp_path: Path, verdict: str, said: str) -> None:
    declared = {"field.add": {"ranges": {"q": {"values": [2**33]}}}}
    answering = f"""
    if request["op"] == "hello":
        answer["result"]["operations"] = {declared!r}
    if request["op"] == "field.add":
        a, b = ([int.from_bytes(bytes.fromhex(request["params"][n])[i:i+5], "little")
                 for i in range(0, len(request["params"][n]) // 2, 5)] for n in "ab")
        total = "".join(((x + y) % 2**33).to_bytes(5, "little").hex() for x, y in zip(a, b))
        if {verdict == OK}:
            answer = {{"id": request["id"], "result": {{"value": total}}}}
    print(json.dumps(answer), flush=True)"""
    program = script(tmp_path, ANSWERING.replace("    WRITE", answering))
    steps = taken(sys.executable, program)
    assert steps["operations"].verdict == verdict
    assert said in steps["operations"].said


# ---------------------------------------------------------------------------------------------------- not starting


def script(folder: Path, text: str, name: str = "adapter.py") -> str:
    """Write a program and return its path."""
    path = folder / name
    path.write_bytes(text.encode())
    path.chmod(0o755)
    return str(path)


HELLO = {
    "protocol": [1, 0],
    "implementation": {"name": "mine", "version": "1", "language": "python"},
    "randomness": "none",
    "operations": {},
}
ANSWERING = f"""import json, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {{"id": request["id"], "unsupported": True}}
    if request["op"] == "hello":
        answer = {{"id": request["id"], "result": {HELLO!r}}}
    WRITE
"""


def unusable(steps: dict[str, Step], step: str) -> Step:
    """The step that ended the handshake; nothing was taken after it."""
    assert list(steps)[-1] == step
    assert failed(steps) == {step}
    assert check.exit_code(list(steps.values())) == 3
    return steps[step]


def test_an_adapter_that_closes_its_output_and_runs_on_is_not_said_to_end(tmp_path: Path) -> None:
    adapter = script(tmp_path, "import os, time\nos.close(1)\ntime.sleep(60)\n")
    step = unusable(taken(sys.executable, adapter), "hello")
    assert "and ran on" in step.said
    assert step.hint == "keep standard input and standard output open until the input ends"


def test_a_command_that_there_is_not() -> None:
    assert "there is no command /nowhere/adapter" in unusable(taken("/nowhere/adapter"), "start").said


def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    path = tmp_path / "adapter"
    path.write_text("#!/bin/sh\n")
    assert "chmod +x" in unusable(taken(str(path)), "start").hint


def test_a_file_of_this_folder_without_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script(tmp_path, "", "my-own-adapter")
    assert "write ./my-own-adapter" in unusable(taken("my-own-adapter"), "start").hint


def test_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in unusable(taken(str(tmp_path)), "start").said


def test_a_script_without_a_first_line(tmp_path: Path) -> None:
    assert "#!/usr/bin/env" in unusable(taken(script(tmp_path, "import json\n")), "start").hint


def test_a_first_line_that_ends_as_on_windows(tmp_path: Path) -> None:
    path = script(tmp_path, "#!/usr/bin/env python3\r\nprint(1)\r\n")
    assert "plain line feeds" in unusable(taken(path), "start").hint


def test_a_program_that_ends_at_once_shows_the_end_of_its_standard_error(tmp_path: Path) -> None:
    step = unusable(taken(sys.executable, script(tmp_path, "import nothing_of_this_name\n")), "hello")
    assert "No module named 'nothing_of_this_name'" in step.said
    assert "run it by hand: echo '" in step.hint


@pytest.mark.slow
def test_output_that_is_kept_back_is_told_from_silence(tmp_path: Path) -> None:
    kept = "kept = open(1, 'w', 65536, closefd=False)\n"
    kept += ANSWERING.replace("WRITE", "kept.write(json.dumps(answer) + chr(10))")
    step = unusable(taken(sys.executable, script(tmp_path, kept), start=1.5), "hello")
    assert "the answer comes only when the input ends: flush" in step.hint
    silent = script(tmp_path, "import time\ntime.sleep(60)\n")
    step = unusable(taken(sys.executable, silent, start=0.5), "hello")
    assert "raise --start-timeout" in step.hint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("'\\ufeff' + json.dumps(answer)", "before, it wrote a line that is not JSON"),
        ("json.dumps(answer, indent=1)", "an answer is a JSON object; this line is not"),
        ("json.dumps(answer).replace(',', ',' + chr(10))", "a line that is not JSON"),
    ],
)
def test_an_answer_that_is_no_line_of_json_is_told_from_silence(tmp_path: Path, written: str, said: str) -> None:
    adapter = script(tmp_path, ANSWERING.replace("WRITE", f"print({written}, flush=True)"))
    step = unusable(taken(sys.executable, adapter, start=1.5), "hello")
    assert said in step.said
    assert "write the answer as one line of JSON, without a byte order mark" in step.hint
    assert "flush" not in step.hint


def test_a_hello_that_lacks_a_member_is_named(tmp_path: Path) -> None:
    short = ANSWERING.replace("'randomness': 'none', ", "").replace("WRITE", "print(json.dumps(answer), flush=True)")
    step = unusable(taken(sys.executable, script(tmp_path, short)), "hello")
    assert "randomness" in step.said


def test_a_banner_after_hello_is_named(tmp_path: Path) -> None:
    loud = ANSWERING.replace("WRITE", "print(json.dumps(answer), flush=True); print('ready', flush=True)")
    steps = taken(sys.executable, script(tmp_path, loud))
    assert "print to standard error instead" in steps["unknown"].hint


@pytest.mark.slow
def test_an_adapter_that_declares_nothing_and_runs_on_is_told_so(tmp_path: Path) -> None:
    staying = ANSWERING.replace("WRITE", "print(json.dumps(answer), flush=True)") + "import time\ntime.sleep(60)\n"
    steps = taken(sys.executable, script(tmp_path, staying))
    assert failed(steps) == {"not a request", "operations", "end of input"}


@pytest.mark.requirement("CNF-44")
@pytest.mark.parametrize(
    ("operations", "said"),
    [({}, "hello declares nothing, of which"), ({"session.step": {}}, "hello declares session.step, of which")],
)
def test_an_adapter_of_which_nothing_can_be_asked_is_not_called_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], operations: dict[str, Any], said: str
) -> None:
    lines = ["from secagg_spec.conformance.sdk.secagg_adapter import Adapter", "adapter = Adapter('x', '1')"]
    lines += [f"adapter.hello['operations'] = {operations!r}", "adapter.run()"]
    adapter = script(tmp_path, "\n".join(lines))
    assert cli.main(["check", "--", sys.executable, adapter]) == 1
    out = capsys.readouterr().out
    assert f"FAIL  operations       {said} nothing can be asked" in out
    assert out.splitlines()[-1] == "1 of 14 steps failed"


# -------------------------------------------------------------------------------------------------------- command


@pytest.mark.parametrize(("fault", "code", "last"), [("none", 0, "can be judged"), ("lies", 1, "1 of 14 steps failed")])
def test_the_command_ends_with_a_conclusion(
    capsys: pytest.CaptureFixture[str], fault: str, code: int, last: str
) -> None:
    assert cli.main(["check", "--", sys.executable, FAKE, fault]) == code
    assert last in capsys.readouterr().out.splitlines()[-1]


def test_the_line_that_is_run_by_hand_is_a_request() -> None:
    hint = unusable(taken("false"), "hello").hint
    assert json.loads(hint.partition("echo '")[2].partition("'")[0])["op"] == "hello"


def test_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check"])
    assert ended.value.code == 2
