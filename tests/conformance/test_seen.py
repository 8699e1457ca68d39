"""What a user sees of a run: the terminal, the page, the files, and what is left when the run is ended."""

from __future__ import annotations

import argparse
import errno
import gzip
import html
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec import cli, system
from secagg_spec.commands import conform as command
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.plain import KEPT, MESSAGE, Room, pasted, visible
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import Caller, CheckFailed
from secagg_spec.conformance.mutation import coverage, evidence, kills
from secagg_spec.conformance.reports import document, junit, page, summaries
from secagg_spec.conformance.reports import report as reporting
from secagg_spec.conformance.running import chart, repros, suite
from secagg_spec.conformance.running.runner import Failure, Settings, _failure
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import entries
from secagg_spec.errors import ParameterError
from secagg_spec.learning import digits
from tests import kit
from tests.conformance.test_reach import CAPS, declaring
from tests.quick import one_in, part

FAKE = str(Path(__file__).with_name("fake_adapter.py"))
REFERENCE = [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]
KIT = [sys.executable, "-m", "secagg_spec.cli"]
UNSEEN = "\x1b\x07\x85\u202e\u2066\u200b\ufeff"


def conform(folder: Path, fault: str, *options: str, cases: int = 8) -> int:
    """Judge a fake adapter on sums modulo q."""
    arguments = ["conform", "--fuzz", str(cases), "--repro", str(folder / "repro"), *options]
    return cli.main([*arguments, "--", sys.executable, FAKE, fault])


# --------------------------------------------------------------------------------------------- runs that are ended


@pytest.mark.slow
@pytest.mark.requirement("CNF-68")
@pytest.mark.parametrize("earlier", [True, False])
def test_a_run_that_is_killed_leaves_no_file_that_says_more_than_it_judged(tmp_path: Path, earlier: bool) -> None:
    names = {"json": "r.json", "html": "r.html", "junit": "r.xml", "badge": "b.json", "markdown": "s.md"}
    files = [word for option, name in names.items() for word in (f"--{option}", str(tmp_path / name))]
    if earlier:
        assert conform(tmp_path, "none", "-k", "field.add/exact", *files) == 0
    run = [*KIT, "conform", "--repro", str(tmp_path / "repro"), "--fuzz", "400", *files, "--", sys.executable, FAKE]
    with subprocess.Popen([*run, "slow"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as kit:
        assert kit.stderr is not None
        assert b"judging" in kit.stderr.readline()
        time.sleep(0.5)
        kit.kill()
    read = {option: (tmp_path / name).read_text() for option, name in names.items()}
    assert "footer" not in json.loads(read["json"])
    assert "This run was ended before it was complete" in read["html"]
    assert [error.get("type") for error in Xml.fromstring(read["junit"].split("\n", 1)[1]).iter("error")] == [
        "incomplete"
    ]
    assert json.loads(read["badge"])["isError"]
    assert read["markdown"].endswith("cases a check, **ended before it was complete**.\n")
    assert read["markdown"].count("## Conformance: No unexpected failure") == earlier
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.requirement("CNF-68")
def test_files_say_from_the_start_that_the_run_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "r.json", list[str]()
    path.write_text('{\n  "schema": "secagg-spec-report/1", "footer": "of an earlier one"}')
    monkeypatch.setattr(command, "_judge_all", lambda *arguments: seen.append(path.read_text()))
    conform(tmp_path, "none", "-k", "field.add/exact", "--json", str(path))
    assert "footer" not in json.loads(seen[0])


@pytest.mark.requirement("CNF-68")
def test_the_results_of_a_run_that_is_not_complete_hold_an_error() -> None:
    ended, whole = (Xml.fromstring(junit.document([], complete=done).split("\n", 1)[1]) for done in (False, True))
    assert [suite.get("errors") for suite in ended] == ["1"]
    assert not list(whole)


@pytest.mark.requirement("CNF-68")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_summary_takes_the_place_of_its_own_beginning_and_of_nothing_else(tmp_path: Path, end: bytes) -> None:
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"before \xff" + end)
    for runs in (1, 2):
        assert conform(tmp_path, "none", "-k", "field.add/exact", "--markdown", str(summary)) == 0
        assert summary.read_bytes().startswith(b"before \xff" + (end or b"\n") + b"## ")
        assert summary.read_bytes().count(b"\n## Conformance: No unexpected failure") == runs
        assert b"ended before" not in summary.read_bytes()


@given(st.binary(max_size=30), st.binary(max_size=30), st.booleans())
@settings(max_examples=30, deadline=None)
def test_a_file_is_replaced_as_a_whole_and_keeps_its_rights(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, linked: bool
) -> None:
    folder = tmp_path_factory.mktemp("whole")
    path, link = folder / "file", folder / "link"
    path.write_bytes(old)
    path.chmod(0o640)
    link.symlink_to(path)
    held = path.open("rb")
    system.write_whole(link if linked else path, new)
    with held:
        assert held.read() == old
    assert (path.read_bytes(), path.stat().st_mode & 0o777, link.is_symlink()) == (new, 0o640, True)
    assert sorted(folder.iterdir()) == [path, link]


def test_a_device_is_written_to_and_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    system.write_whole(Path(os.devnull), "x")
    assert not system.replaceable(Path(os.devnull))
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        system.write_whole(tmp_path / "folder", "x", follow=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("there", ["file", "folder", "link", "nothing"])
def test_a_new_file_takes_the_place_of_nothing(
    tmp_path: Path, there: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    if not links:
        none = PermissionError(errno.EPERM, "no hard links here")
        monkeypatch.setattr(os, "link", Mock(side_effect=none))
    if there == "nothing":
        system.write_new(path, b"new")
        assert (path.read_bytes(), path.stat().st_mode) == (b"new", _written(other).stat().st_mode)
        other.unlink()
    else:
        _there(there, path)
        with pytest.raises(FileExistsError) as raised:
            system.write_new(path, b"new")
        assert raised.value.filename == str(path)
        assert there != "file" or path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_new_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        system.write_new(tmp_path / "no" / "file", b"new")
    assert raised.value.filename == str(tmp_path / "no" / "file")


def _there(what: str, path: Path) -> None:
    if what == "folder":
        path.mkdir()
    elif what == "link":
        path.symlink_to(path.with_name("other"))
    else:
        _written(path)


def _written(path: Path) -> Path:
    path.write_bytes(b"old")
    return path


# --------------------------------------------------------------------------------------------------- failing cases


@pytest.mark.requirement("CNF-69")
@pytest.mark.parametrize("suffix", [".jsonl", ".expected.json"])
def test_no_link_in_the_folder_of_cases_is_followed(tmp_path: Path, suffix: str) -> None:
    repro, outside = tmp_path / "repro", tmp_path / "outside"
    assert conform(tmp_path, "wrong-value", "-k", "field.add/exact") == 1
    theirs = (repro / f"adapter-field-add-exact{suffix}").rename(outside)
    kept = theirs.read_bytes()
    (repro / f"adapter-field-add-exact{suffix}").symlink_to(outside)
    assert conform(tmp_path, "wrong-value", "-k", "field.add/exact", "--seed", "3") == 1
    assert outside.read_bytes() == kept
    assert not any(path.is_symlink() for path in repro.iterdir())


@pytest.mark.slow
@pytest.mark.requirement("CNF-69")
def test_a_run_removes_the_cases_of_the_checks_that_it_judged_and_no_others(tmp_path: Path) -> None:
    def left() -> set[str]:
        return {path.name.removeprefix("adapter-").split(".")[0] for path in (tmp_path / "repro").glob("*.jsonl")}

    assert conform(tmp_path, "reject-everything", "-k", "field.add/", "--no-vectors") == 1
    before = left()
    assert {"field-add-exact"} < before
    assert conform(tmp_path, "none", "-k", "adapter/echo") == 0
    assert conform(tmp_path, "none", "-k", "field.add/exact", "--budget", "0.000001") == 3
    assert left() == before
    assert conform(tmp_path, "none", "-k", "field.add/exact") == 0
    assert left() == before - {"field-add-exact"}
    stored = tmp_path / "repro" / "adapter-of-old.expected.json"
    stored.write_text(json.dumps({"schema": "secagg-spec-repro/1", "check": "of/old"}))
    assert conform(tmp_path, "none", "-k", "field.add", "--no-vectors") == 0
    assert left() == set()
    assert not stored.exists()


def test_several_patterns_select_what_each_selects(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    both = ["-k", "field.add/exact", "-k", "adapter/echo"]
    assert cli.main(["conform", "--no-vectors", "--list-checks", *both]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {check.id for one in both[1::2] for check in Settings(pattern=one).chosen()} > {"field.add/exact"}
    assert conform(tmp_path, "none", *both, "-k", "no-such") == 2
    assert "-k no-such: no check" in capsys.readouterr().err
    assert cli.main(["fuzz", "--rounds", "1", *both, "-k", "no-such", "--", sys.executable, FAKE, "none"]) == 2
    assert "-k no-such: no check" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.requirement("CNF-74")
@pytest.mark.parametrize("verb", ["conform", "fuzz"])
def test_the_command_of_a_failure_can_be_pasted_into_a_shell(tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "it's $(a) \x1b[31m \u202e folder"
    folder.mkdir()
    adapter = folder / "my adapter.py"
    adapter.write_text(Path(FAKE).read_text())
    more = ["--rounds", "1"] if verb == "fuzz" else ["--fuzz", "8", "--html", "report.html"]
    asked = [verb, "-k", "field.add/exact", "--timeout", "7", *more]
    ran = kit.run([*asked, "--", sys.executable, str(adapter), "wrong-value"], folder)
    assert ran.returncode == 1
    [line] = re.findall("replay: +(secagg-spec replay .*)", ran.stdout)
    assert line.startswith("secagg-spec replay repro/adapter-field-add-exact.jsonl --timeout 7 -- ")
    assert visible(line) == line
    assert verb == "fuzz" or line in html.unescape((folder / "report.html").read_text())
    shell = f'secagg-spec() {{ {shlex.join(KIT)} "$@"; }}\n{line}'
    again = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout[:6]) == (1, "FAILED")


@pytest.mark.requirement("CNF-74")
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=3
    )
)
@settings(max_examples=25, deadline=None)
def test_a_shell_takes_words_as_they_are_shown(words: list[str]) -> None:
    shown = pasted(words)
    assert visible(shown) == shown
    assert "\n" not in shown
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {shown}"], capture_output=True, check=True).stdout
    assert printed.decode().split("\0")[:-1] == words


@pytest.mark.requirement("CNF-74")
@pytest.mark.parametrize("changed", [".jsonl", ".expected.json", "absent"])
def test_a_case_whose_files_disagree_is_not_judged_again(
    tmp_path: Path, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(tmp_path, "wrong-value", "-k", "field.add/exact") == 1
    lines = tmp_path / "repro" / "adapter-field-add-exact.jsonl"
    beside = lines.with_suffix(".expected.json")
    if changed == ".jsonl":
        lines.write_text(lines.read_text().replace("field.add", "field.sub"))
    elif changed == "absent":
        lines.unlink()
    else:
        stored = json.loads(beside.read_text())
        beside.write_text(json.dumps({**stored, "draws": [*stored["draws"], 0]}))
    capsys.readouterr()
    assert cli.main(["replay", str(lines), "--", sys.executable, FAKE, "wrong-value"]) == 2
    said = capsys.readouterr().err
    assert ("No such file" if changed == "absent" else "are not of one case: one of them was changed") in said
    assert str(lines) in said
    assert cli.main(["replay", str(beside), "--", sys.executable, FAKE, "wrong-value"]) == 2
    assert capsys.readouterr().err == said


@pytest.mark.slow
@pytest.mark.requirement("CNF-73")
def test_a_failure_in_a_session_shows_its_parameters_its_steps_and_who_dropped_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--repro", str(tmp_path), "--html", str(tmp_path / "r.html"), "-k", "session.again/lightsecagg"]
    adapter = [*REFERENCE, "--mutant", "mask-of-the-round-before"]
    assert cli.main(["conform", "--fuzz", "12", *files, "--", *adapter]) == 1
    output = capsys.readouterr().out
    assert re.search(
        "smallest case: session.new protocol=lightsecagg role=user numbers=.q: 11, N: 3, D: 0, U: 2", output
    )
    assert "dropped out: nobody" in output
    [*_, wrong] = re.findall(r"\n +\d+  lightsecagg.user 0 \(party \d+\): (.*)   <- wrong here", output)
    assert wrong == "share -> sends 2 MaskShare"
    assert "smallest case: session.free" not in output
    shown = (tmp_path / "r.html").read_text()
    assert "session.free" not in re.sub("<pre.*?</pre>", "", shown, flags=re.DOTALL).split('id="matrix"')[0]


def met(name: str, case: kills.Case) -> Failure:
    """Return the failure of a stored case on the reference with a mutant planted."""
    connection, check = evidence.PlantedConnection(name), suite.find(case.check)
    caller, draws = Caller(connection, greet(connection.ask)), iter(repros.restored(case.draws))
    with pytest.raises(CheckFailed) as raised:
        check.judge(lambda strategy: next(draws), caller)
    return _failure(raised.value, caller, [])


def decided(answer: Any) -> Any:
    """Return what an answer, or the entry of a step, decides: that it is refused, or what is sent and computed."""
    body = answer.get("result", answer)
    return "refused" if "reject" in body else (sorted(body.get("outbox", [])), body.get("aggregate"))


def first_difference(requests: list[Any], answers: list[Any]) -> chart.Place | None:
    """Return the first place at which the reference decides otherwise than answers to a script or to sessions do."""
    connection = DirectConnection(reference.build().answer)
    right = [connection.ask(Request(one["op"], one["params"], one.get("rand"))).as_json() for one in requests]
    steps = len(requests) == 1 and "result" in answers[0] and "result" in right[0]
    sides = (answers[0]["result"]["steps"], right[0]["result"]["steps"]) if steps else (answers, right)
    differ = [at for at, (mine, other) in enumerate(zip(*sides, strict=False)) if decided(mine) != decided(other)]
    return ((0, differ[0]) if steps else (differ[0], None)) if differ else None


STEPS = [
    (bug.name, case)
    for bug in kills.load().values()
    for case in bug.cases
    if case.check.partition("/")[0] in entries.SCRIPTS and bug.name != "refused-steps-have-no-entry"
]
"""Mutants, and stored cases in which a check of one party fails on them."""


@pytest.mark.requirement("CNF-73")
@pytest.mark.parametrize("stored", one_in(20, STEPS), ids=lambda stored: f"{stored[0]}-{stored[1].check}")
def test_the_step_called_wrong_is_the_first_that_is_answered_otherwise(stored: tuple[str, kills.Case]) -> None:
    failure = met(*stored)
    first = first_difference(*reporting.asked_and_answered(failure))
    if failure.verdict == "wrong_reason" or "blamed is" in failure.message:
        assert failure.at is not None, "a refusal is refused otherwise, which the reference does not decide"
    else:
        assert failure.at == first


@pytest.mark.requirement("CNF-73")
def test_no_step_is_called_wrong_where_answers_show_a_fault_together() -> None:
    [case] = [case for case in kills.load()["noise-rows-alike"].cases if case.check == "privacy/mds.encode"]
    failure = met("noise-rows-alike", case)
    output = reporting.in_words(*reporting.asked_and_answered(failure), failure.at, {})
    assert (failure.verdict, failure.at) == ("leaked", None)
    assert len(output) == len(failure.transcript) + 1 > 2
    assert not any("wrong here" in line for line in output)


@pytest.mark.requirement("CNF-73")
def test_a_step_of_a_session_is_found_among_those_of_other_sessions() -> None:
    def asked(op: str, handle: str) -> tuple[Any, Any]:
        return {"op": f"session.{op}", "params": {"handle": handle}}, {"result": {}}

    exchanges = [asked(*one.split()) for one in ("new a", "step a", "free a", "new a", "step b", "step a", "step a")]
    assert [chart.place(exchanges, step)[0] for step in (0, 1, 2, None)] == [5, 6, 6, 6]
    assert chart.place([*exchanges, asked("free", "a")], None) == (6, None)
    many = [asked("step", "a")] * 500
    assert [row.number for row in chart.rows(many, (9, None)) if row.wrong] == [10]
    assert [len(chart.rows(many, at)) for at in (None, (9, None), (499, None))] == [200] * 3


@pytest.mark.requirement("CNF-73")
def test_what_is_freed_behind_a_fault_is_not_the_fault() -> None:
    free = {"op": "session.free", "params": {"handle": "a"}}
    step = {"op": "session.step", "params": {"handle": "a", "phase": "share", "inbox": []}}
    assert chart.fault([(step, {"result": {}}), (free, {"result": {}}), (free, {"result": {}})]) == 0
    assert chart.fault([(step, {"result": {}}), (free, {"reject": {"code": "bad_param"}}), (free, {"result": {}})]) == 1
    assert chart.fault([(step, {"result": {}}), (free, None)]) == 1
    assert chart.fault([(free, {"result": {}})]) == 0


@pytest.mark.requirement("CNF-73")
@given(st.binary(min_size=70, max_size=300), st.integers(0, 10**9), st.integers(1, 255))
def test_the_first_byte_in_which_long_values_differ_is_told(right: bytes, at: int, change: int) -> None:
    at %= len(right)
    got = bytes([*right[:at], right[at] ^ change, *right[at + 1 :]])
    message = str(CheckFailed("wrong_value", f"x.y: the secret is {got.hex()}, must be {right.hex()}"))
    mine, wanted = (side[at // 4 * 4 : at // 4 * 4 + 4].hex() for side in (got, right))
    assert message.endswith(f"; first difference at byte {at} of {len(right)}: {mine!r} in place of {wanted!r}")
    assert len(message) < 250
    assert str(CheckFailed("wrong_value", message)) == message


@pytest.mark.requirement("CNF-73")
@given(st.lists(st.binary(min_size=40, max_size=60), min_size=1, max_size=4), st.integers(0, 10**9), st.integers(0, 39))
def test_the_first_byte_in_which_lists_of_values_differ_is_told(right: list[bytes], number: int, at: int) -> None:
    number %= len(right)
    changed = bytes([*right[number][:at], right[number][at] ^ 255, *right[number][at + 1 :]])
    got = [*right[:number], changed, *right[number + 1 :]]
    sides = ([value.hex() for value in side] for side in (got, right))
    message = str(CheckFailed("wrong_value", "the payloads are {}, must be {}".format(*sides)))
    mine, wanted = (side[at // 4 * 4 : at // 4 * 4 + 4].hex() for side in (changed, right[number]))
    place = f"byte {at} of {len(right[number])} in entry {number}"
    assert message.endswith(f"; first difference at {place}: {mine!r} in place of {wanted!r}")


@pytest.mark.requirement("CNF-73")
@given(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=200), st.integers(0, 100))
def test_any_message_can_be_shortened(text: str, cut: int) -> None:
    short = f"the value is {text}, must be {text[:cut]}!"
    assert str(CheckFailed("wrong_value", short)).startswith("the value is ")


@pytest.mark.requirement("CNF-75")
def test_checks_with_fewer_cases_than_asked_for_are_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert REGISTRY["adapter/not-a-request"].examples
    assert conform(tmp_path, "none", "-k", "adapter/not-a-request", cases=300) == 0
    assert re.search(
        r"fewer than 300 cases: 1 check with no more .*: adapter/not-a-request \(\d+\)", capsys.readouterr().out
    )
    assert conform(tmp_path, "none", "-k", "field.add/exact", cases=30) == 0
    assert "fewer than" not in capsys.readouterr().out


def test_a_list_of_checks_that_were_not_run_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "r.html"
    assert conform(tmp_path, "none", "-k", "field.add/exact", "--budget", "0.000001", "--html", str(written)) == 3
    said = capsys.readouterr().out
    assert "\nadapter: NOT RUN\nNOT RUN  field.add/exact\n" in said
    assert "\n1 implementation judged, 1 check not run (" in said
    assert ">adapter: 1 check not run</h2>" in written.read_text()


# ------------------------------------------------------------------------------------------------ terminal and page


@pytest.mark.requirement("CNF-70")
@given(st.text(max_size=40), st.sampled_from(UNSEEN), st.text(max_size=40))
def test_a_page_holds_no_character_that_is_obeyed(before: str, unseen: str, behind: str) -> None:
    body = document.document([reporting.TargetReport("adapter", unusable=before + unseen + behind)], Settings())
    shown = page.html(body)
    assert unseen not in shown
    assert all(visible(line) == line for line in shown.splitlines())
    assert unseen not in summaries.markdown(body)


@pytest.mark.requirement("CNF-70")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_names_of_users_are_shown_with_escapes(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    unseen = "".join(char for char in UNSEEN if form == "json" or not char.isspace())
    names = [f"ann{unseen}", "b\u202eob"]
    log = tmp_path / f"log.{form}"
    rounds = [names, names[1:]]
    table = "".join(f"{at},{' '.join(users)}\n" for at, users in enumerate(rounds))
    if form == "csv":
        log.write_text(f"round,users\n{table}", newline="")
    else:
        log.write_text(json.dumps({"users": names, "rounds": rounds}))
    for more in ([], ["--user", names[0]], ["--user", names[1]]):
        cli.main(["audit-participation", str(log), *more])
        output = capsys.readouterr()
        assert "\\u202eob" in output.out + output.err
        assert visible(output.out) == output.out
        assert visible(output.err) == output.err


@pytest.mark.requirement("CNF-70")
def test_a_line_on_a_wrong_call_is_one_line_without_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["audit-participation", str(tmp_path / f"no\n{UNSEEN}")]) == 2
    said = capsys.readouterr().err
    assert (said.count("\n"), visible(said)) == (1, said)


_FLOOD = """
import json, sys
big = "x" * (20 << 20)
body = {"error": {"error": {"message": big}}, "result": {"result": {"value": big, big: 1}}, "hello": {}}[sys.argv[1]]
about = {"name": big if sys.argv[1] == "hello" else "flood", "version": "1", "language": "python"}
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        result = {"protocol": [1, 0], "implementation": about, "randomness": "explicit"}
        result["operations"] = {"field.add": {}}
        print(json.dumps({"id": request["id"], "result": result}), flush=True)
    else:
        print(json.dumps({"id": request["id"], **body}), flush=True)
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-71")
@pytest.mark.parametrize("what", ["error", "result", "hello"])
def test_a_message_of_20_megabytes_does_not_make_a_large_report(tmp_path: Path, what: str) -> None:
    adapter = tmp_path / "flood.py"
    adapter.write_text(_FLOOD)
    files = ["--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html"), "--junit", str(tmp_path / "r.xml")]
    narrow = ["-k", "field.add/exact", "--fuzz", "2", "--repro", str(tmp_path / "repro"), *files]
    assert cli.main(["conform", *narrow, "--", sys.executable, str(adapter), what]) == 1
    sizes = {path.name: path.stat().st_size for path in [*tmp_path.glob("r.*"), *(tmp_path / "repro").iterdir()]}
    assert max(sizes.values()) < 2_000_000, sizes
    assert "20,971,520 characters" in (tmp_path / "r.json").read_text() or what != "result"
    assert document.load(tmp_path / "r.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
)


@pytest.mark.requirement("CNF-71")
@given(JSON, st.integers(0, 200))
def test_what_fits_is_kept_as_it_is_and_what_does_not_is_bounded(value: object, room: int) -> None:
    assert len(json.dumps(Room(room).fit(value), ensure_ascii=False)) <= 20 * room + 200
    assert Room(10 * len(json.dumps(value)) + 100).fit(value) == value
    assert MESSAGE < KEPT


# ------------------------------------------------------------------------------------------------------------ hints


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
@pytest.mark.parametrize(
    "own", part(3, ["secagg.user", "lightsecagg.mask", "basecagg.user", "basa.user", "heterosag.user"])
)
def test_advice_is_on_the_protocol_that_is_offered(own: str) -> None:
    first = coverage.could_have_caught(declaring(own)).declare[0]
    assert first.declare.startswith(own.partition(".")[0])
    caught = len(coverage.could_have_caught(declaring(own)).caught)
    others = [name for name in CAPS.operations if name.startswith(own.partition(".")[0] + ".") and name != own]
    gains = [len(coverage.could_have_caught(declaring(own, name)).caught) - caught for name in others]
    assert first.more >= max(gains)


@pytest.mark.slow
@pytest.mark.requirement("CNF-12")
def test_a_run_is_advised_as_if_it_asked_what_would_be_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(tmp_path, "none", cases=1) == 0
    best = coverage.could_have_caught(declaring("field.add")).declare[0]
    assert f"mutants; declaring {best.declare} would add {best.more}; " in capsys.readouterr().out


def test_a_run_that_failed_is_not_told_that_it_could_have_caught_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(tmp_path, "wrong-value", "-k", "field.add/exact", "--no-vectors") == 1
    assert "would notice 0" not in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------ input files

READ = {
    "audit-participation": ["{}"],
    "trace": ["{}"],
    "audit-participation --roster": ["--roster", "{}", "{}"],
    "replay": ["{}", "--", "x"],
    "promote": ["{}", "--id", "a", "--clause", "ADP-01"],
    "promote --into": [],
    "vectors --file": ["--file", "{}", "--target", "reference"],
    "diff old": ["{}", "{}"],
    "diff new": ["{}", "{}"],
    "conform --expect": ["--expect", "{}", "--target", "reference"],
    "fuzz --expect": ["--expect", "{}", "--target", "reference"],
    "simulate --log": ["basecagg", "--log", "{}"],
}
"""How each option or argument that names a file to read is given; promote reads --into behind its first file only."""
WRITTEN = {"--json", "--html", "--markdown", "--badge", "--junit", "--baseline", "--repro", "--out", "--svg"}
WRITTEN |= {"--write-log", "--into"}
FOLDERS = {"--data-dir", "--texts"}


def paths(parser: argparse.ArgumentParser, words: str) -> Iterator[str]:
    """Yield the options and arguments of a command that take a path."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from paths(inner, words or name)
        elif action.type is Path and not {*action.option_strings} & (WRITTEN | FOLDERS):
            name = action.option_strings[-1] if action.option_strings else action.dest
            yield f"{words} {name}"


def test_each_file_that_a_command_reads_is_tried() -> None:
    tried = {name.split(" ")[0] for name in READ} | set(READ)
    found = set(paths(cli.parser(), ""))
    assert {name for name in found if name not in tried and name.split(" ")[0] not in READ} == set()


@pytest.fixture
def strange(tmp_path: Path) -> dict[str, Path]:
    """Return a socket, a pipe and two devices."""
    made = {
        "socket": tmp_path / "socket",
        "null": Path("/dev/null"),
        "pipe": tmp_path / "pipe",
        "zero": Path("/dev/zero"),
    }
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(made["socket"]))
    os.mkfifo(made["pipe"])
    return made


@pytest.mark.requirement("CNF-72", "CNF-53")
@pytest.mark.parametrize("kind", ["socket", "null", "pipe", "zero"])
def test_what_is_no_regular_file_is_refused_without_being_read(
    kind: str, strange: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="a regular file is needed"):
        system.regular(strange[kind])
    link = tmp_path / "named-as-a-stored-failure.jsonl"
    link.symlink_to(strange[kind])
    for name, words in READ.items():
        if words:
            given_words = [word.format(link) for word in words]
            assert cli.main([name.split(" ")[0], *given_words]) == 2, name
            said = capsys.readouterr().err
            assert "a regular file is needed" in said, name
            assert said.count("\n") == 1


def test_a_corrupt_deflate_body_is_a_parameter_error(tmp_path: Path) -> None:

    packed = bytearray(gzip.compress(bytes(range(256)) * 40))
    for at in range(10, len(packed)):
        spoiled = bytearray(packed)
        spoiled[at] ^= 0xFF
        try:
            digits.bytes_of_idx(bytes(spoiled), 3, "x")
        except ParameterError:
            continue
        raise AssertionError(at)
