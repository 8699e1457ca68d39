"""Adapters that attack the kit itself: it ends in time and memory, and what it prints is harmless."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import HELLO, greet
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.plain import fit_for_json, for_encoding, shown
from secagg_spec.conformance.adapter.wire import (
    AdapterBroken,
    AdapterUnusable,
    Answer,
    Request,
    pack,
    parse_answer,
    unpack,
)
from secagg_spec.conformance.running.runner import MOST_TIMEOUTS, Outcome, Settings, run
from tests.quick import part

HOSTILE = str(Path(__file__).with_name("hostile_adapter.py"))
ASK = Request("echo", {"data": 1})
WAITED = 60
"""Seconds that show that the kit did not wait for an adapter that sleeps ten minutes, on a busy machine as well."""


def hostile(fault: str, timeout: float = 1.0, start_timeout: float = 10.0) -> ProcessConnection:
    return ProcessConnection([sys.executable, HOSTILE, fault], timeout, start_timeout)


def judged(fault: str, timeout: float = 0.5, **settings: object) -> dict[str, Outcome]:
    connection = hostile(fault, timeout)
    try:
        _, outcomes = run(connection, Settings(cases=10, **settings))  # type: ignore[arg-type]
    finally:
        connection.close()
    return {outcome.check.id: outcome for outcome in outcomes}


@pytest.mark.requirement("ADP-01", "ADP-02")
@pytest.mark.parametrize(
    ("fault", "verdict", "said"),
    [
        ("flood", "protocol", "longer than 67,108,864 bytes"),
        ("flood-lines", "protocol", "not JSON: 'x'"),
        ("flood-stderr", "timeout", "its standard error ends: xxx"),
        ("hang", "timeout", "no answer within"),
        ("close-stdout", "crash", "closed its input or output without an answer, and ran on"),
        ("close-stdin", "timeout", "no answer within"),
        ("grandchild", "crash", "exit status 5"),
        ("grandchild-escaped", "crash", "exit status 5"),
        ("die", "crash", "exit status 7); its standard error ends: Traceback (most recent call last): | File main.py"),
        ("evil-code", "protocol", "reject code"),
        ("evil-line", "protocol", "not JSON"),
        ("unsupported-false", "protocol", "unsupported is False"),
        ("id-float", "protocol", "does not have its id"),
        ("extra-member", "protocol", "not 'note'"),
        ("message-number", "protocol", "the message of error is not text"),
        ("nan", "protocol", "not JSON"),
        ("garbage", "protocol", "not JSON"),
        ("not-utf-8", "protocol", "not UTF-8"),
        ("deep", "protocol", "deeper than 100 levels"),
    ],
)
def test_an_attack_has_a_verdict_and_leaves_nothing_behind(fault: str, verdict: str, said: str) -> None:
    connection = hostile(fault, 1.0 if verdict == "timeout" else 6.0)
    connection.ask(HELLO)
    start = time.monotonic()
    with pytest.raises(AdapterBroken) as raised:
        connection.ask(ASK)
    threads = [connection._lines, connection._stderr]
    connection.close()
    assert raised.value.verdict == verdict
    assert said in str(raised.value)
    assert len(str(raised.value)) < 600
    assert time.monotonic() - start < WAITED
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("start-flood", "longer than"),
        ("start-flood-lines", "more than 50 lines"),
        ("start-hang", "no answer within 0.7 s"),
        ("hello-hang", "no answer within 0.7 s"),
        ("hello-grandchild", "exit status 5"),
        ("start-die", "giving up"),
    ],
)
def test_an_attack_before_hello_makes_it_unusable_in_time(fault: str, said: str) -> None:
    connection = hostile(fault, start_timeout=0.7 if "hang" in fault else 10.0)
    start = time.monotonic()
    with pytest.raises(AdapterUnusable, match=said):
        greet(connection.ask)
    connection.close()
    assert time.monotonic() - start < WAITED


@pytest.mark.requirement("CNF-51", "ADP-01")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        *((line, "") for line in ("[1]", '"hi"', "17", "null", '{"id": 1}')),
        ('{"id": 1, "id": 1, "result": {}}', "two members 'id'"),
        ('{"id": 1, "result": NaN}', "NaN"),
        ('{"id": 1, "result": 1e400}', "1e400"),
        ('{"id": 1, "result": %s}' % ("9" * 5000), "4,300 digits"),
    ],
)
def test_json_that_is_no_answer_is_not_waited_past(line: str, said: str) -> None:
    connection = ProcessConnection([sys.executable, "-c", f"print({line!r}, flush=True); input(); input()"])
    start = time.monotonic()
    with pytest.raises(AdapterUnusable, match=rf"\(protocol\).*{said}"):
        greet(connection.ask)
    connection.close()
    assert time.monotonic() - start < WAITED


@pytest.mark.parametrize(("lines", "good"), [(50, True), (51, False)])
def test_fifty_lines_of_noise_are_tolerated(lines: int, good: bool) -> None:
    program = (
        f"print('{{noise}}\\n' * {lines}, end='', flush=True); input(); print('{{\"id\": 1, \"unsupported\": true}}')"
    )
    connection = ProcessConnection([sys.executable, "-c", program])
    if good:
        assert connection.ask(HELLO).kind == "unsupported"
    else:
        with pytest.raises(AdapterBroken, match="more than 50 lines"):
            connection.ask(HELLO)
    connection.close()


@pytest.mark.requirement("CNF-52")
@pytest.mark.parametrize(
    ("line", "said"),
    [("loading", "this line is not JSON: 'loading'"), ("", "not JSON"), ("\ufeff{}", "begins with a byte order mark")],
)
def test_no_noise_is_tolerated_before_the_answer_to_a_later_hello(line: str, said: str) -> None:
    answers = f'{{"id": 1, "unsupported": true}}\n{line}\n'.encode(), b'{"id": 2, "unsupported": true}\n'
    program = f"import os; input(); os.write(1, {answers[0]!r}); input(); os.write(1, {answers[1]!r}); input()"
    connection = ProcessConnection([sys.executable, "-c", program])
    assert connection.ask(HELLO).kind == "unsupported"
    with pytest.raises(AdapterBroken, match=said) as broken:
        connection.ask(HELLO)
    connection.close()
    assert broken.value.verdict == "protocol"


@pytest.mark.slow
def test_a_line_of_the_largest_size_is_read() -> None:
    size = 67_108_864 - len('{"id": 2, "result": {"data": ""}}\n')
    program = (
        'import sys; sys.stdin.readline(); print(\'{"id": 1, "unsupported": true}\', flush=True); sys.stdin.readline();'
        f'print(\'{{"id": 2, "result": {{"data": "\' + \'x\' * ({size} + EXTRA) + \'"}}}}\', flush=True)'
    )
    for extra in (0, 1):
        connection = ProcessConnection([sys.executable, "-c", program.replace("EXTRA", str(extra))])
        connection.ask(HELLO)
        if extra:
            with pytest.raises(AdapterBroken, match="longer than"):
                connection.ask(ASK)
        else:
            assert len(connection.ask(ASK).value["data"]) == size
        connection.close()


@pytest.mark.slow
def test_an_adapter_that_does_not_read_is_a_timeout() -> None:
    program = 'import time; input(); print(\'{"id": 1, "unsupported": true}\', flush=True); time.sleep(600)'
    connection = ProcessConnection([sys.executable, "-c", program], 0.5)
    connection.ask(HELLO)
    with pytest.raises(AdapterBroken, match="was not read within") as raised:
        connection.ask(Request("echo", {"data": "x" * 1_000_000}))
    connection.close()
    assert raised.value.verdict == "timeout"


@pytest.mark.parametrize(
    ("pause", "timeout", "said"), [(0, 5.0, r"0\.\d s \(smaller cases get less time\)$"), (0.1, 0.3, r"0\.3 s$")]
)
def test_a_short_time_of_a_smaller_case_is_called_so_and_is_no_longer_one(
    pause: float, timeout: float, said: str
) -> None:
    program = f"""import time
for id in (1, 2):
    input(), time.sleep({pause}), print('{{"id": %d, "unsupported": true}}' % id, flush=True)
time.sleep(600)
"""
    connection = ProcessConnection([sys.executable, "-c", program], timeout, 20.0)
    connection.ask(HELLO)
    connection.ask(ASK)
    connection.expect_hang(True)
    with pytest.raises(AdapterBroken, match=f"no answer within {said}"):
        connection.ask(ASK)
    connection.close()


@pytest.mark.slow
def test_what_waits_to_be_read_is_bounded() -> None:
    connection = hostile("blind")
    connection.ask(HELLO)
    assert connection.ask(ASK).kind == "unsupported"
    deadline = time.monotonic() + WAITED
    while connection._lines._queue.qsize() < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    waiting = connection._lines._queue.qsize()
    with pytest.raises(AdapterBroken, match="meets another answer to request 2"):
        connection.ask(ASK)
    connection.close()
    assert waiting == 2


@pytest.mark.slow
def test_only_the_end_of_standard_error_is_kept() -> None:
    connection = hostile("flood-stderr", 3.0)
    connection.ask(HELLO)
    with pytest.raises(AdapterBroken):
        connection.ask(ASK)
    assert connection._stderr.text() == "x" * 65_536


def test_an_adapter_that_is_out_of_step_is_started_again() -> None:
    connection = hostile("twice")
    connection.ask(HELLO)
    assert connection.ask(ASK).kind == "unsupported"
    with pytest.raises(AdapterBroken, match="request 3 meets another answer to request 2"):
        connection.ask(ASK)
    assert connection.ask(ASK).kind == "unsupported"
    connection.close()


@pytest.mark.slow
def test_after_three_hanging_checks_the_rest_is_not_run() -> None:
    start = time.monotonic()
    outcomes = judged("hang")
    assert time.monotonic() - start < 2 * WAITED
    ran = [outcome for outcome in outcomes.values() if outcome.verdict != "unsupported"]
    assert [outcome.verdict for outcome in ran[:MOST_TIMEOUTS]] == ["timeout"] * MOST_TIMEOUTS
    assert {outcome.verdict for outcome in ran[MOST_TIMEOUTS:]} == {"not_run"}
    assert ran[0].failure is not None
    assert ran[0].failure.repeats is True
    assert ran[-1].failure is not None
    assert "3 checks had ended in a time-out" in ran[-1].failure.message


@pytest.mark.slow
def test_when_the_budget_is_spent_the_rest_is_not_run() -> None:
    outcomes = judged("hang", budget=0.2, deadline=time.monotonic() + 0.2, pattern="field")
    ran = [outcome for outcome in outcomes.values() if outcome.verdict != "unsupported"]
    assert ran[-1].verdict == "not_run"
    assert ran[-1].failure is not None
    assert "budget of 0.2 s" in ran[-1].failure.message


@pytest.mark.slow
def test_a_process_that_is_started_again_is_greeted_first() -> None:
    program = (
        "import sys, time, json; time.sleep(4.0)\n"
        "for line in sys.stdin:\n"
        "    r = json.loads(line)\n"
        "    print(json.dumps({'id': r['id'], 'result': r['params']}), flush=True)\n"
    )
    connection = ProcessConnection([sys.executable, "-c", program], 3.0)
    connection.ask(HELLO)
    connection.restart()
    assert connection.ask(ASK).value == {"data": 1}, "loading counts as starting, not as answering"
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_adapter_as_well(tmp_path: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and a program inherits that")
    pid = tmp_path / "pid"
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--repro", str(tmp_path), "--timeout", "30", "--"]
    kit = subprocess.Popen(
        [*command, sys.executable, HOSTILE, "ignore-sigterm", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + WAITED
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    kit.send_signal(number)
    _, err = kit.communicate(timeout=WAITED)
    assert kit.returncode == 128 + number
    assert number.name in err.decode()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
def test_a_signal_ends_all_that_judge_at_once(tmp_path: Path) -> None:
    mark = f"SECAGG_SPEC_TEST={tmp_path}"
    command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--jobs", "2", "--repro", str(tmp_path)]
    kit = subprocess.Popen(
        [*command, "--target", "reference", "--target", "node"],
        env=dict(os.environ, SECAGG_SPEC_TEST=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + WAITED
    while len(marked(mark)) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    kit.send_signal(signal.SIGTERM)
    kit.communicate(timeout=WAITED)
    assert kit.returncode == 128 + signal.SIGTERM
    while marked(mark) and time.monotonic() < deadline + 10:
        time.sleep(0.05)
    assert marked(mark) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
def test_a_second_signal_does_not_make_a_judging_process_go_on(tmp_path: Path) -> None:
    mark = f"SECAGG_SPEC_TEST={tmp_path}"
    options = ["--jobs", "2", "--repro", str(tmp_path), "--timeout", "600"]
    kit = subprocess.Popen(
        [sys.executable, "-m", "secagg_spec.cli", "conform", *options, "--", sys.executable, HOSTILE, "hang"],
        env=dict(os.environ, SECAGG_SPEC_TEST=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + WAITED
    while len(marked(mark, HOSTILE)) < 3 and time.monotonic() < deadline:  # one greets the kit, two are judged
        time.sleep(0.05)
    judging = [int(process) for process in marked(mark, "spawn_main")]
    assert len(judging) == 2
    for process in judging:
        os.kill(process, signal.SIGTERM)
    time.sleep(0.2)  # the adapter, which reads no more, gets longer than this to end
    for process in judging:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    out, _ = kit.communicate(timeout=WAITED)
    assert kit.returncode == 3
    assert "a process that judged has ended" in out.decode()
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


def marked(mark: str, word: str = "") -> list[str]:
    """Return the processes whose environment holds a mark and whose command holds a word."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                mark.encode() in (process / "environ").read_bytes()
                and word.encode() in (process / "cmdline").read_bytes()
            ):
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("encoding", part(2, ["ascii", "utf-8", "latin-1"]))
@pytest.mark.parametrize("fault", ["evil-text", "hello-evil-text"])
def test_what_is_printed_is_harmless_in_every_encoding(tmp_path: Path, encoding: str, fault: str) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "junit.xml"
    options = [
        "--json",
        str(report),
        "--junit",
        str(junit),
        "--repro",
        str(tmp_path / "repro"),
        "-k",
        "field.add/exact",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "secagg_spec.cli", "conform", *options, "--", sys.executable, HOSTILE, fault],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=60,
        check=False,
    )
    assert done.returncode == (3 if fault.startswith("hello") else 1), done.stderr
    printed = done.stdout.decode(encoding)
    assert r"\x1b[2J" in printed
    assert not set(printed) & set("\x1b\x07\x85\r\u202e\ud800")
    json.loads(report.read_bytes().decode("utf-8"))
    assert "\\ud800" not in report.read_text().replace("\\\\ud800", "")
    from xml.etree import ElementTree as Xml

    assert Xml.parse(junit).getroot().tag == "testsuites"


@given(st.text())
@example("\x00\x1b\x7f\x85\u202e\u2066\ud800\uffff\u200b\u2028")
def test_shown_text_is_one_line_of_printable_characters(text: str) -> None:
    result = shown(text, 80)
    assert len(result) <= 80
    assert len(result.splitlines()) <= 1
    result.encode("utf-8")
    assert not set(result) & set("\x00\x1b\x7f\x85\u202e\u2066\ud800\uffff\u200b\u2028")


def test_signs_that_an_encoding_lacks_are_replaced() -> None:
    assert for_encoding("● ◐ ✕ · …", "ascii") == "P R F . ..."
    assert for_encoding("●", "utf-8") == "●"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just(1) | JSON,
        "result": JSON,
        "reject": JSON | st.fixed_dictionaries({"code": JSON | st.just("other")}, optional={"message": JSON}),
        "error": JSON | st.fixed_dictionaries({}, optional={"message": JSON, "trace": JSON}),
        "unsupported": st.just(True) | JSON,
        "note": JSON,
    },
)
LINES = (
    st.binary(max_size=40)
    | JSON.map(lambda value: json.dumps(value).encode())
    | MEMBERS.map(lambda value: json.dumps(value).encode())
    | st.text(max_size=20).map(
        lambda text: b'{"id": 1, "result": {"value": "' + text.encode("utf-8", "replace") + b'"}}'
    )
    | st.integers(0, 3000).map(lambda depth: b'{"id": 1, "result": ' + b'{"a":' * depth + b"1" + b"}" * (depth + 1))
)


def parsed(line: bytes) -> Answer | AdapterBroken:
    try:
        return parse_answer(line + b"\n", 1)
    except AdapterBroken as broken:
        return broken


@pytest.mark.requirement("ADP-01")
@given(LINES)
def test_any_bytes_are_an_answer_or_a_broken_adapter(line: bytes) -> None:
    answer = parsed(line)
    if isinstance(answer, AdapterBroken):
        assert answer.verdict == "protocol"
        assert len(str(answer)) < 800
        return
    text = json.dumps(fit_for_json(answer.as_json()), allow_nan=False, indent=2)
    assert json.loads(text) is not None
    body = json.loads(line)
    assert type(body["id"]) is int
    assert set(body) == {"id", answer.kind}


@given(LINES)
def test_any_bytes_before_the_checks_are_a_hello_or_an_unusable_adapter(line: bytes) -> None:
    def ask(request: Request) -> Answer:
        return parse_answer(line + b"\n", 1)

    with pytest.raises(AdapterUnusable):
        greet(ask)


@given(st.text(alphabet="0123456789abcdefABCDEF \n\u0660", max_size=20))
@example("00 000000")
@example("0000000A")
@example("000000")
@example("00000000\n")
def test_only_whole_entries_of_lowercase_digits_are_a_vector(text: str) -> None:
    try:
        vector = unpack(text)
    except ValueError:
        assert len(text) % 8 or set(text) - set("0123456789abcdef")
        return
    assert pack(vector) == text
