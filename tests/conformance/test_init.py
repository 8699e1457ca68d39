"""The command ``init``: it writes over nothing, and what it starts says what is not written, and can be finished."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.commands import init
from secagg_spec.conformance.adapter.capabilities import HELLO, greet
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.forms import NOT_REQUESTS
from secagg_spec.conformance.running.runner import Settings, begin, judged
from secagg_spec.errors import UsageError
from tests import kit
from tests.quick import exhaustive, part

FILLED = Path(__file__).with_name("starters_filled")
BEGIN, END = "--- write this", "--- until here"
LANGUAGES = init.languages()
MASK = {"q": "4294967291", "update": "01000000", "mask": "fafffffe"}
KIT = [sys.executable, "-m", "secagg_spec.cli"]
BUILT: dict[str, tempfile.TemporaryDirectory[str]] = {}
"""The start of each language, as it was built first."""


def started(language: str, folder: Path) -> init.Starter:
    """The start of an adapter, built in a folder; skips where its toolchain is absent."""
    chosen = init.starter(language)
    absent = [name for name in chosen.toolchain if shutil.which(name) is None]
    if absent:
        pytest.skip(f"untested here: {', '.join(absent)} is not installed")
    assert cli.main(["init", "--lang", language, "--into", str(folder)]) == 0
    if language not in BUILT:
        build(chosen, folder)
        BUILT[language] = tempfile.TemporaryDirectory()
        shutil.copytree(folder, BUILT[language].name, dirs_exist_ok=True)
    shutil.copytree(BUILT[language].name, folder, dirs_exist_ok=True)
    return chosen


def build(chosen: init.Starter, folder: Path) -> None:
    """Build an adapter as its CI job does."""
    if chosen.build:
        done = subprocess.run(chosen.build, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def fill_in(chosen: init.Starter, folder: Path, handler: str) -> None:
    """Put a handler between the marks, as a user would."""
    path = folder / chosen.edit
    lines = path.read_text().splitlines()
    begin, end = (next(at for at, line in enumerate(lines) if mark in line) for mark in (BEGIN, END))
    path.write_text("\n".join([*lines[: begin + 1], *handler.splitlines(), *lines[end:], ""]))
    build(chosen, folder)


def right_handler(language: str) -> str:
    """A handler that does what the text says."""
    return (FILLED / f"{language}.txt").read_text()


def conform(chosen: init.Starter, folder: Path, *options: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """The exit code of ``conform``, its checks by their id, and what it printed."""
    fuzz = [] if "--fuzz" in options else ["--fuzz", "3"]
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = cli.main(["conform", *fuzz, "--json", "report.json", *options, "--", *chosen.adapter])
    checks = json.loads((folder / "report.json").read_text())["targets"][0]["checks"]
    return code, {check["check"]: check for check in checks}, said.getvalue()


# ------------------------------------------------------------------------------------------------------- what it writes


def contents(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def expected_files(language: str) -> list[str]:
    return sorted(str(place) for place in init.starter(language).files())


@pytest.mark.requirement("CNF-41")
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_files_are_written_and_six_lines_say_what_is_next(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "some" / "where"
    assert cli.main(["init", "--lang", language, "--into", str(folder)]) == 0
    written = sorted(name for name, content in contents(folder).items() if content is not None)
    assert written == expected_files(language)
    helper = next(name for name in written if name.lower().startswith(("secagg_adapter", "secaggadapter")))
    assert {helper, init.starter(language).edit, "expectations.toml", str(init.JOB)} <= set(written)
    out = capsys.readouterr().out.splitlines()
    assert all(name in out[0] for name in [*written, str(folder)])
    words = "enter write build check judge keep"
    assert [line.split()[:2] for line in out[1:]] == [[f"{at}.", word] for at, word in enumerate(words.split(), 1)]
    edited = (folder / init.starter(language).edit).read_text()
    assert edited.count(BEGIN) == edited.count(END) == 1


def test_a_shell_takes_the_line_for_a_folder_that_begins_like_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "--lang", "python", "--into=-x"]) == 0
    assert "1. enter   cd ./-x" in capsys.readouterr().out.splitlines()


@pytest.mark.slow
@exhaustive
def test_the_lines_hold_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the operation is written, check and conform end in `error`; once it is, both pass."""
    assert cli.main(["init", "--lang", "python", "--into", str(tmp_path)]) == 0
    lines = [line.split(maxsplit=2)[2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines[1].endswith("until then lines 4 and 5 end in `error`")
    commands = [shlex.split(line.replace("python3", shlex.quote(sys.executable))) for line in lines[3:5]]
    for written, code in ((False, 1), (True, 0)):
        if written:
            fill_in(init.starter("python"), tmp_path, right_handler("python"))
        for program, *arguments in commands:
            assert program == "secagg-spec"
            done = kit.run(arguments, tmp_path)
            assert done.returncode == code, done.stdout
            assert ("write me: lightsecagg.mask" in done.stdout) != written


@pytest.mark.requirement("CNF-41")
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_written_over(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in expected_files(language):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("mine")
        before = contents(folder)
        assert cli.main(["init", "--lang", language, "--into", str(folder)]) == 2
        assert name in capsys.readouterr().err
        assert contents(folder) == before


@pytest.mark.parametrize(
    ("other", "language"),
    [
        ("javascript", "node"),
        ("js", "node"),
        ("golang", "go"),
        ("rs", "rust"),
        ("py", "python"),
        ("c", "c"),
        ("c++", "cpp"),
        ("cxx", "cpp"),
        ("kt", "kotlin"),
    ],
)
def test_a_language_may_be_called_by_its_other_names(other: str, language: str) -> None:
    assert init.starter(other) == init.starter(language)
    assert init.starter(other).folder.name == language


def test_help_and_error_name_each_name_of_a_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", "--lang", "ada"]) == 2
    refused = capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["init", "--help"])
    helped = " ".join(capsys.readouterr().out.split())
    for listed in ("cpp (c++, cxx)", "node (javascript, js)", "python (py)", "java,"):
        assert listed in refused
        assert listed in helped


def test_no_name_stands_for_two_languages() -> None:
    names = [name for language in LANGUAGES for name in (language, *init._others(language))]
    assert len(set(names)) == len(names)


@pytest.mark.requirement("CNF-41")
def test_a_link_that_leads_nowhere_is_there_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "expectations.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert cli.main(["init", "--lang", "python", "--into", str(tmp_path)]) == 2
    assert "expectations.toml exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["expectations.toml"]


@pytest.mark.requirement("CNF-41")
def test_files_that_are_written_before_one_fails_are_gone_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".github").write_text("a file where a folder must be")
    assert cli.main(["init", "--lang", "python", "--into", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert ".github" in err
    assert contents(tmp_path) == {".github": b"a file where a folder must be"}


@pytest.mark.requirement("CNF-41")
def test_folders_that_are_made_before_a_file_fails_are_gone_again(tmp_path: Path) -> None:
    files = {Path("a/b/c"): b"1", Path("x" * 300): b"2"}
    with pytest.raises(UsageError, match="nothing was written"):
        init.write_all(tmp_path / "new", files)
    assert contents(tmp_path) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_rights_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    assert cli.main(["init", "--lang", "python", "--into", str(tmp_path / "new")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("into", ["file", "file/below"])
def test_a_folder_that_cannot_be_one_is_one_line(into: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["init", "--lang", "python", "--into", str(tmp_path / into)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "file is not a folder" in err


@pytest.mark.parametrize("language", ["cobol", "", "../vectors", "Node", "\x1b[2J"])
def test_an_unknown_language_is_refused_with_the_languages(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["init", "--lang", language, "--into", str(tmp_path / "new")]) == 2
    err = capsys.readouterr().err
    assert all(f" {known}" in err for known in LANGUAGES)
    assert "\x1b" not in err
    assert not (tmp_path / "new").exists()


def test_a_compiled_module_of_a_starter_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(init.STARTERS, tmp_path / "kit" / "starters")
    monkeypatch.setattr(init, "STARTERS", copy)
    (tmp_path / "sdk").mkdir()
    (tmp_path / "kit" / "sdk").mkdir()
    (tmp_path / "kit" / "sdk" / "secagg_adapter.py").write_text("")
    (copy / "python" / "__pycache__").mkdir(exist_ok=True)
    (copy / "python" / "__pycache__" / "adapter.cpython-311.pyc").write_bytes(b"\0")
    assert expected_files("python") == [str(init.JOB), "adapter.py", "expectations.toml", "secagg_adapter.py"]


# -------------------------------------------------------------------------------------------------------------- the job


REPORTS = ("secagg.xml", "secagg.json", "secagg.html", "secagg-badge.json")


def job(language: str) -> dict[str, Any]:
    """The CI job that is written for a language, as the service reads it."""
    yaml: Any = pytest.importorskip("yaml")
    loaded = yaml.safe_load(init.starter(language).files()[init.JOB])
    assert list(loaded["jobs"]) == ["conform"]
    return loaded["jobs"]["conform"]  # type: ignore[no-any-return]


@pytest.mark.requirement("CNF-43")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_job_installs_builds_judges_and_keeps_the_reports(language: str) -> None:
    chosen, steps = init.starter(language), job(language)["steps"]
    runs = {step["name"]: step["run"] for step in steps if "run" in step}
    assert "$KIT" in runs["install the kit"]
    assert runs.get("build", "") == shlex.join(chosen.build)
    assert runs["conform"].endswith(f"-- {shlex.join(chosen.adapter)}")
    assert all(option in runs["conform"] for option in ("--expect expectations.toml", "--junit", "--json"))
    assert [step.get("with") for step in steps if step.get("uses") == chosen.setup and chosen.setup] == (
        [chosen.given or None] if chosen.setup else []
    )
    last = steps[-1]
    assert (last["uses"].split("@")[0], last["if"]) == ("actions/upload-artifact", "always()")
    assert all("continue-on-error" not in step for step in steps)
    assert all(name in last["with"]["path"] for name in (*REPORTS, "repro"))


@pytest.mark.requirement("CNF-43")
@pytest.mark.slow
def test_the_command_of_the_job_fails_as_the_run_does_and_leaves_reports(tmp_path: Path) -> None:
    chosen = started("python", tmp_path)
    script = next(step["run"] for step in job("python")["steps"] if step.get("name") == "conform")
    (tmp_path / "secagg-spec").write_text(f'#!/bin/sh\nexec {shlex.join(KIT)} "$@" \n')
    (tmp_path / "secagg-spec").chmod(0o700)
    summary = tmp_path / "summary.md"
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)}
    asked = script.replace("conform ", "conform -k lightsecagg.mask --fuzz 3 ")
    for code in (1, 0):
        done = subprocess.run(["bash", "-e", "-c", asked], cwd=tmp_path, env=environment, check=False)
        assert done.returncode == code
        assert all((tmp_path / name).stat().st_size for name in REPORTS)
        assert "adapter" in summary.read_text()
        fill_in(chosen, tmp_path, right_handler("python"))


# ------------------------------------------------------------------------------------------------------------- adapters


@pytest.mark.slow
@pytest.mark.parametrize("language", part(3, LANGUAGES))
def test_the_hello_names_the_language(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = started(language, tmp_path)
    monkeypatch.chdir(tmp_path)
    connection = ProcessConnection(chosen.adapter)
    try:
        caps = greet(connection.ask)
    finally:
        connection.close()
    assert caps.language == chosen.language
    assert set(caps.operations) == {"echo", "lightsecagg.mask"}


@pytest.mark.slow
@pytest.mark.requirement("CNF-42")
@pytest.mark.parametrize("language", sorted(LANGUAGES, key=lambda name: name != "python"))
def test_an_operation_that_is_not_written_breaks_and_says_so(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = started(language, tmp_path)
    monkeypatch.chdir(tmp_path)
    connection = ProcessConnection(chosen.adapter)
    changes: tuple[dict[str, str], ...] = (
        {},
        {"update": ""},
        {"mask": "", "update": ""},
        {"q": "7"},
        {"q": "-1"},
        {"q": str(2**64)},
        {"q": "-" + "9" * 39},
        {"mask": "ffffffff"},
    )
    try:
        said = [connection.ask(Request("lightsecagg.mask", {**MASK, **change})) for change in changes]
    finally:
        connection.close()
    assert {answer.kind for answer in said} == {"error"}
    assert all("write me: lightsecagg.mask" in answer.message for answer in said)


@pytest.mark.requirement("CNF-42", "ADP-01", "ADP-02", "ADP-04", "ADP-05", "ADP-10", "ADP-11", "ADP-12", "ADP-13")
@pytest.mark.slow
@pytest.mark.parametrize("language", part(2, LANGUAGES))
def test_a_start_says_what_is_unwritten_and_passes_when_it_is_written(language: str, tmp_path: Path) -> None:
    chosen = started(language, tmp_path)
    code, checks, said = conform(chosen, tmp_path, "--no-vectors")
    failing = {name: check for name, check in checks.items() if check["failure"]}
    assert code == 1, said
    assert {check["verdict"] for check in failing.values()} == {"error"}, said
    assert all("write me: lightsecagg.mask" in check["failure"]["message"] for check in failing.values())
    assert {"lightsecagg.mask/exact", "lightsecagg.mask/length", "lightsecagg.mask/elements"} <= set(failing)
    assert {name for name in failing if name.startswith("adapter/")} == {"adapter/independent"}

    fill_in(chosen, tmp_path, right_handler(language))
    code, checks, said = conform(chosen, tmp_path, "--expect", "expectations.toml")
    assert code == 0, said
    passing = {name for name, check in checks.items() if check["verdict"] == "pass"}
    assert {"adapter/echo", "adapter/long-line", "adapter/independent", "lightsecagg.mask/exact"} <= passing
    with contextlib.chdir(tmp_path):
        assert [cli.main([command, "--", *chosen.adapter]) for command in ("vectors", "check")] == [0, 0]


# -------------------------------------------------------------------------------------------------------------- helpers

ECHO = [
    None,
    -7,
    '\u00e9\U0001f600\u0000\u2028\\"/',
    [[], {}, [1, [True]]],
    {"": {"a": []}, "__proto__": [0]},
    "\ud800",
]
REQUESTS: list[dict[str, Any]] = [
    *({"id": at, "op": "echo", "params": {"data": data}} for at, data in enumerate(ECHO)),
    {"id": 10, "op": "lightsecagg.mask", "params": MASK},
    {"id": -11, "op": "lightsecagg.mask", "params": MASK, "rand": {}},
    {"id": 12, "op": "lightsecagg.mask", "params": MASK, "rand": {"seed": "00" * 32}},
    {"id": 13, "op": "lightsecagg.mask", "params": {**MASK, "q": "-0"}},
    {"id": 15, "op": "lightsecagg.mask", "params": {**MASK, "update": "0" * 7}},
    {"id": 16, "op": "lightsecagg.mask", "params": {**MASK, "update": ["01000000"], "more": 1}},
    {"id": 17, "op": "field.add", "params": {}},
    {"id": 18, "op": "toString", "params": {}},
]
EDGES_OF_UTF8 = (
    "c280 c3 c080 c1bf 80 c3c3 ff f888808080 e0a080 e09fbf ed9fbf eda080 efbfbf e180 e18041 1f 7f 00 09 "
    "f0908080 f08fbfbf f48fbfbf f4908080 f5808080 f18080"
)
ESCAPES = rb"""\ud83d\ude00 \uD83D\uDE00 \ud83d\u0041 \ud83d \ude00 \u12g4 \ud83d\uzzzz \u+041 \u-041 \x \u00
\b\f\n\r\t\/\\\" \a \U0041 \\\ \u0000 ' \'"""
STRINGS = [*map(bytes.fromhex, EDGES_OF_UTF8.split()), *ESCAPES.split()]
NUMBERS = b"0 -0 00 01 -01 - +1 1. .5 1e 1.0 1e0 1E+0 0x1 1_0 --1 2147483647 true null".split()
ALPHABET = b'{}[]":,0123456789.eE+-truefalsn \\u\t\x00\x1f\x7f\xc3\xa9\xed\xa0\x80\xf0\x9f\xff'


def odd_lines(count: int) -> list[bytes]:
    """Lines that are no request, or odd ones: right ones with a few bytes changed, the same ones each time."""
    draw = random.Random(0)
    right = [
        json.dumps(request, ensure_ascii=at % 2 > 0).encode("utf-8", "surrogatepass")
        for at, request in enumerate(REQUESTS)
    ]
    twice = [line[:-1] + b", " + line[1:] for line in right]
    whole = [HELLO, Request("lightsecagg.mask", {**MASK, "q": "9" * 60})]
    lines = [
        *(request.line(14).strip().encode() for request in whole),
        *NOT_REQUESTS,
        *right,
        *twice,
        b" \t" + right[0] + b"\r",
        b'{"id": 1, "op": "echo", "params": {"data": {"a": 1, "a": 2}, "data": {"a": 3, "a": 4}}, "id": 2}',
    ]
    lines += [b'{"id": 1, "op": "echo", "params": {"data": "%b"}}' % text for text in STRINGS]
    lines += [b'{"id": 1, "op": "echo", "params": {"data": %b}}' % (b"[" * deep + b"]" * deep) for deep in (90, 10**6)]
    lines += [b'{"id": 1, "op": "echo", "params": {"data": 1, "%b": 2, "dat%b": 3}}' % (text, text) for text in STRINGS]
    lines += [b'{"id": %b, "op": "ech\\u006F", "params": {"data": [%b]}}' % pair for pair in product(NUMBERS, NUMBERS)]
    for _ in range(count):
        line = bytearray(draw.choice(right))
        for _ in range(draw.choice((1, 1, 2, 5))):
            at, sign = draw.randrange(len(line)), draw.choice(ALPHABET)
            line[at : at + draw.randrange(2)] = [sign][: draw.randrange(2)]
        lines.append(bytes(line).replace(b"\n", b" "))
    return lines


def answers(command: list[str], folder: Path, lines: list[bytes]) -> list[Any]:
    """What an adapter answers to lines: of rejections the code alone, of errors nothing."""
    done = subprocess.run(command, cwd=folder, input=b"\n".join(lines) + b"\n", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    bodies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(bodies) == len(lines)
    return [(body["id"], _said(body)) for body in bodies]


def _said(body: dict[str, Any]) -> Any:
    if "reject" in body:
        return body["reject"]["code"]
    if "error" in body:
        return "error"
    assert set(body) in ({"id", "result"}, {"id", "unsupported"})
    named = body.get("result", {}).get("implementation", {})
    return "hello" if named else body.get("result", "unsupported")


def never_asked(value: Any) -> bool:
    """Whether a result holds what `echo` is never asked for: a number with a fraction, or one beyond 2**31."""
    if isinstance(value, (list, tuple)):
        return any(map(never_asked, value))
    if isinstance(value, dict):
        return never_asked(list(value.values()))
    return isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**31)


def holds_half_a_pair(line: bytes) -> bool:
    """Whether a line escapes half of a surrogate pair, which is no Unicode text: some languages cannot hold it."""
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False


def differences(language: str, folder: Path, count: int) -> list[Any]:
    """The lines that the starts of two languages answer differently."""
    first, second = started("python", folder / "python"), started(language, folder / "other")
    lines = odd_lines(count)
    ours = answers([sys.executable, *first.adapter[1:]], folder / "python", lines)
    theirs = answers(second.adapter, folder / "other", lines)
    pairs = [(line, our, their) for line, our, their in zip(lines, ours, theirs, strict=True) if our != their]
    return [pair for pair in pairs if not never_asked(pair[1]) and not holds_half_a_pair(pair[0])]


@pytest.mark.slow
@pytest.mark.requirement("ADP-10", "ADP-11", "ADP-12", "ADP-13", "ADP-14")
@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "python"])
def test_the_helpers_answer_odd_lines_alike(language: str, tmp_path: Path) -> None:
    assert differences(language, tmp_path, 3000) == []


@pytest.mark.slow
@pytest.mark.parametrize("language", ["cpp", "java", "kotlin", "rust"])
def test_half_a_pair_of_surrogates_is_no_character(language: str, tmp_path: Path) -> None:
    chosen = started(language, tmp_path)
    halves = [b"\\ud83d", b"\\ude00", b"\\ud83d\\u0041", b"\\ud83d\\ud83d", b"\\udfff\\ud83d", b"\\ud83d\\ude0"]
    lines = [b'{"id": 1, "op": "echo", "params": {"data": "%b"}}' % text for text in (*halves, b"\\ud83d\\ude00")]
    assert answers(chosen.adapter, tmp_path, lines) == [(None, "malformed")] * 6 + [(1, {"data": "\U0001f600"})]


@pytest.mark.slow
@pytest.mark.parametrize("language", part(2, ["cpp", "c"]))
@exhaustive
def test_the_helper_is_clean_under_the_sanitizers(language: str, tmp_path: Path) -> None:
    chosen = started(language, tmp_path)
    fill_in(chosen, tmp_path, right_handler(language))
    strict = ["-Werror", "-pedantic", "-Wshadow", "-Wconversion", "-g", "-fsanitize=address,undefined"]
    done = subprocess.run(
        [*chosen.build, *strict, "-fno-sanitize-recover=all"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if "cannot find" in done.stderr:
        pytest.skip("untested here: the sanitizers are not installed")
    assert done.returncode == 0, done.stderr
    long = json.dumps({"id": 1, "op": "echo", "params": {"data": "\u00e9" * 2**20}}).encode()
    deep = b'{"id": 1, "op": "echo", "params": {"data": ' + b"[" * 400 + b"]" * 400 + b"}}"
    said = answers(chosen.adapter, tmp_path, [*odd_lines(3000), long, deep, deep.replace(b"[", b"[" * 9), b"[" * 10**6])
    assert [entry for _, entry in said[-2:]] == ["malformed"] * 2
    assert said[-4][1] == {"data": "\u00e9" * 2**20}
    assert said[-3][0] == 1


THROWN = """
    if (mask.size() == 0) throw 42;
    if (mask.size() == 1) throw std::out_of_range("caf\\xe9");
    if (mask.size() == 2) throw Unsupported();
    if (mask.size() == 3) throw Reject("no code", "");
    if (mask.size() == 4) throw Reject("other", "no", {7});
    return Value(q).vector();
"""


@pytest.mark.slow
def test_whatever_a_handler_in_cpp_throws_is_answered(tmp_path: Path) -> None:
    chosen = started("cpp", tmp_path)
    fill_in(chosen, tmp_path, f"(void)update;{THROWN}")
    masks = ["00000000" * length for length in range(6)]
    lines = [Request("lightsecagg.mask", {**MASK, "mask": mask}).line(1).strip().encode() for mask in masks]
    said = [body for _, body in answers(chosen.adapter, tmp_path, [*lines, json.dumps(REQUESTS[1]).encode()])]
    assert said == ["error", "error", "unsupported", "error", "other", "error", {"data": -7}]


RETURNED = """
    return when (mask.size) {
        0 -> mapOf("masked" to doubleArrayOf(-0.0, 1.5))
        1 -> mapOf("masked" to floatArrayOf(1.5f), "n" to listOf(1, -2L, true, null, "caf\u00e9"))
        2 -> throw Unsupported()
        3 -> throw Reject("no code", "")
        4 -> throw Reject("other", "no", listOf(7))
        5 -> mapOf("masked" to longArrayOf(q + mask[4] + 5))
        6 -> mapOf("masked" to longArrayOf(-1))
        7 -> mapOf("masked" to intArrayOf(1))
        8 -> mapOf("masked" to LongArray(9_000_000))
        9 -> Obj().of("mask")
        else -> throw StackOverflowError()
    }
"""


@pytest.mark.slow
def test_whatever_a_handler_in_kotlin_returns_or_throws_is_answered(tmp_path: Path) -> None:
    chosen = started("kotlin", tmp_path)
    path = tmp_path / chosen.edit
    text = path.read_text().replace("): LongArray", "): Map<String, Any?>")
    path.write_text(re.sub(r'mapOf\("masked" to (maskUpdate.*)\)', r"\1", text))
    fill_in(chosen, tmp_path, RETURNED)
    masks = ["00000000" * length for length in range(11)]
    lines = [Request("lightsecagg.mask", {**MASK, "mask": mask}).line(1).strip().encode() for mask in masks]
    said = [body for _, body in answers(chosen.adapter, tmp_path, [*lines, json.dumps(REQUESTS[1]).encode()])]
    assert said == [
        {"masked": "0000000000000080000000000000f83f"},
        {"masked": "0000c03f", "n": [1, -2, True, None, "caf\u00e9"]},
        "unsupported",
        "error",
        "other",
        *["error"] * 3,
        "unsupported",
        *["error"] * 2,
        {"data": -7},
    ]


@pytest.mark.slow
def test_an_element_of_more_than_32_bits_is_an_error_in_java(tmp_path: Path) -> None:
    chosen = started("java", tmp_path)
    fill_in(chosen, tmp_path, "return new long[] {mask.length == 0 ? -1 : q + mask[0] + 4};")
    masks = ["", "00000000", "01000000"]
    lines = [Request("lightsecagg.mask", {**MASK, "mask": mask}).line(1).strip().encode() for mask in masks]
    said = [body for _, body in answers(chosen.adapter, tmp_path, lines)]
    assert said == ["error", {"masked": "ffffffff"}, "error"]


TAKES_ANY = {
    "c": '(void)update, (void)mask; sa_put_decimal(call, "masked", q); return SA_DONE;',
    "cpp": "(void)q, (void)update; return mask;",
    "go": "return mask, nil",
    "java": "return mask;",
    "kotlin": "return mask",
    "rust": "let _ = (q, update, refuse as fn(_, _) -> _);\nOk(mask.to_vec())",
}


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize("language", sorted(TAKES_ANY))
def test_a_number_that_a_handler_cannot_read_has_no_result(language: str, tmp_path: Path) -> None:
    chosen = started(language, tmp_path)
    fill_in(chosen, tmp_path, TAKES_ANY[language])
    edges = [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64 + 7, 10**41, 7]
    lines = [Request("lightsecagg.mask", {**MASK, "q": str(edge)}).line(1).strip().encode() for edge in edges]
    said = [body for _, body in answers(chosen.adapter, tmp_path, lines)]
    assert said[2:6] == ["bad_param"] * 4
    assert all("masked" in body for body in (said[0], said[1], said[6]))
    if language == "c":
        assert [said[at]["masked"] for at in (0, 1, 6)] == [str(edges[at]) for at in (0, 1, 6)]


LONGEST = 2**26


@pytest.mark.slow
@pytest.mark.parametrize("language", part(2, [name for name in LANGUAGES if name != "python"]))
def test_a_line_has_at_most_64_mib_and_the_last_needs_no_end(language: str, tmp_path: Path) -> None:
    chosen = started(language, tmp_path)
    line = b'{"id": 1, "op": "echo", "params": {"data": "%b"}}\n'
    longest = line % (b"x" * (LONGEST - len(line % b"")))
    asked = longest + longest.replace(b"x", b"xx", 1) + (line % b"end").strip()
    done = subprocess.run(chosen.adapter, cwd=tmp_path, input=asked, capture_output=True, check=True)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert len(longest) == LONGEST
    assert set(first["result"]["data"]) == {"x"}
    assert second["reject"]["code"] == "malformed"
    assert third == {"id": 1, "result": {"data": "end"}}


FORMS = {path.stem: path for path in Path(__file__).with_name("starters_forms").iterdir()}
OF_FORM = ("types", "hex", "decimal", "members", "randomness", "result")


@pytest.mark.slow
@pytest.mark.requirement("ADP-05", "ADP-08", "ADP-12", "ADP-13", "ADP-14", "ADP-15", "RND-04")
@pytest.mark.parametrize("language", part(2, sorted(FORMS)))
def test_members_of_every_form_are_read_and_written(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = started(language, tmp_path)
    shutil.copy(FORMS[language], tmp_path / chosen.edit)
    build(chosen, tmp_path)
    monkeypatch.chdir(tmp_path)
    connection = ProcessConnection(chosen.adapter)
    try:
        caps = begin(connection)
        checks = [
            REGISTRY[f"{name}/{kind}"] for name in caps.operations for kind in OF_FORM if f"{name}/{kind}" in REGISTRY
        ]
        outcomes = [judged(connection, caps, check, Settings(cases=30)) for check in checks if not check.obstacle(caps)]
        seeded = judged(connection, caps, REGISTRY["adapter/seeded"], Settings(cases=3))
        echoed = connection.ask(Request("echo", {"data": [1]}))
        three = {"q": "7", "N": 4, "T": 1, "surviving": [0], "held": [[0, "01000000", 0]]}
        refused = connection.ask(Request("lightsecagg.aggregate_shares", three))
    finally:
        connection.close()
    assert len(outcomes) > 4 * (len(caps.operations) - 1)
    assert [(outcome.check.id, outcome.failure) for outcome in outcomes if outcome.verdict != "pass"] == []
    assert refused.code == "malformed"
    assert (seeded.verdict, echoed.value) == ("pass", {"data": [1]})
    assert (caps.policy("mds.code"), dict(caps.reject_map)) == ("other", {"no": "other"})


# -------------------------------------------------------------------------------------------------------- the tutorial

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "adopt-in-an-afternoon.md"


def blocks(language: str) -> list[str]:
    """The blocks of code of the page in a language."""
    return re.findall(rf"^```{language}\b[^\n]*\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def not_said(block: str, said: str) -> list[str]:
    """The lines of a block that nothing that was printed begins with; a line may be cut."""
    printed = tuple(said.splitlines())
    return [line for line in block.splitlines() if not any(out.startswith(line.removesuffix("…")) for out in printed)]


@pytest.mark.requirement("CNF-05")
@pytest.mark.slow
@exhaustive
def test_the_tutorial_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, chosen = Path("adapter"), started("c", Path("adapter"))
    shown = blocks("console")[0].partition("\n")
    assert shown[0] == "$ secagg-spec init --lang c --into adapter"
    assert shown[2] == capsys.readouterr().out
    assert blocks("yaml")[0] in (folder / init.JOB).read_text()

    unwritten, counted, first, mended, expected, stale = blocks("text")
    naive, right = blocks("c")
    mask = ("-k", "lightsecagg.mask", "--fuzz", "100")
    assert not_said(unwritten + counted, conform(chosen, folder, *mask)[2]) == []
    fill_in(chosen, folder, naive)
    assert not_said(first, conform(chosen, folder, *mask)[2]) == []
    fill_in(chosen, folder, right)
    assert not_said(mended, conform(chosen, folder, "--fuzz", "100", "--badge", "badge.json")[2]) == []
    assert blocks("json")[0] == (folder / "badge.json").read_text()

    (folder / "expectations.toml").write_text(blocks("toml")[0])
    assert not_said(stale, conform(chosen, folder, *mask, "--expect", "expectations.toml")[2]) == []
    fill_in(chosen, folder, "".join(line for line in right.splitlines(True) if "length == 0" not in line))
    assert not_said(expected, conform(chosen, folder, *mask, "--expect", "expectations.toml")[2]) == []
