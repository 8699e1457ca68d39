"""The command line: what it prints, its exit codes, and one clear line for every wrong call."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from secagg_spec import cli, signals, terminal
from secagg_spec.conformance.adapter.plain import relative
from secagg_spec.errors import ParameterError
from secagg_spec.simulate import secagg as simulated
from tests.quick import exhaustive

FAKE = str(Path(__file__).parent / "conformance" / "fake_adapter.py")
HOSTILE = str(Path(__file__).parent / "conformance" / "hostile_adapter.py")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command in this process; return its exit code and what it printed."""
    try:
        code = cli.main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_simulate_shows_a_round_and_that_the_sum_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "simulate", "lightsecagg", "--users", "8", "--drop", "upload:2")
    assert code == 0
    assert "MaskShare: 56 messages" in out
    assert "absent: user 2" in out
    right = "it is right: 6 of 6 elements equal the plain sum"
    assert out.splitlines()[-2:] == [
        f"User 2 dropped out; the server has the sum of 7 users, and {right}.",
        "What the server and colluders learn beyond it: secagg-spec privacy lightsecagg",
    ]


def test_simulate_tells_how_far_a_round_came_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    drops = [argument for user in (1, 2, 3) for argument in ("--drop", f"recover:{user}")]
    code, out, _ = call(capsys, "simulate", "lightsecagg", *drops)
    assert code == 1
    assert "the server now has masked sum" in out
    said = "Users 1 to 3 dropped out; the round ends without a sum: 5 shares are given and U = 6 are needed."
    assert out.splitlines()[-2] == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--users 5 --drop advertise_keys:2,3,4", "2 users advertised keys and max(t, T + 2) = 3 are needed"),
        ("--users 5 --drop share_keys:2,3,4", "2 users shared their secrets and max(t, T + 2) = 3 are needed"),
        (
            "--users 12 --neighbours 4 --drop advertise_keys:1,2,3,4,5,6,7",
            "3 users of the 5 that advertised keys have t = 3 holders among these and max(t, T + 2) = 5 are needed",
        ),
    ],
)
def test_a_round_of_secagg_that_ends_counts_those_who_sent(
    capsys: pytest.CaptureFixture[str], options: str, said: str
) -> None:
    assert f"the round ends without a sum: {said}." in call(capsys, "simulate", "secagg", *options.split())[1]


def test_users_who_drop_out_together_are_listed_or_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    one_by_one = [argument for user in (1, 2) for argument in ("--drop", f"upload:{user}")]
    told = [call(capsys, "simulate", "lightsecagg", *drops) for drops in (one_by_one, ["--drop", "upload:1,2"])]
    assert told[0] == told[1]
    assert "Users 1 and 2 dropped out; the server has the sum of 6 users" in told[0][1]
    for wrong in ("upload:1,", "upload:1 2", "upload:1-2", "upload:,", f"upload:{'9' * 5000}"):
        code, _, err = call(capsys, "simulate", "lightsecagg", "--drop", wrong)
        assert code == 2
        assert "must be PHASE:USER or PHASE:USER,USER,…, as in upload:2" in err


@pytest.mark.slow
def test_a_long_round_shows_on_a_terminal_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for protocol in ("lightsecagg", "secagg", "heterosag", "basecagg"):
        plain = call(capsys, "simulate", protocol)
        assert plain[2] == ""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        code, out, err = call(capsys, "simulate", protocol)
        monkeypatch.undo()
        assert (code, out) == plain[:2]
        steps = err.split("\r\x1b[2K")
        asked = (
            r"round 5: upload of user \d, 4 of 5 in the buffer" if protocol == "basecagg" else r"\w+: user 1, of \d+"
        )
        assert any(re.fullmatch(rf" +\d+%  {asked}", step) for step in steps)
        answers = r" +\d+%  round 5: recover: user \d, of 6, 5 of 5 in the buffer"
        assert sum(bool(re.fullmatch(answers, step)) for step in steps) == 6 * (protocol == "basecagg")
        shares = [int(step.partition("%")[0]) for step in steps if "%" in step]
        assert protocol != "basecagg" or shares == sorted(shares)
        assert steps[-1] == ""


def test_a_round_that_is_too_large_names_the_neighbours_that_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "simulate", "secagg", "--users", "1000")
    assert code == 2
    assert "give --neighbours 30, which is SecAgg+, fewer --users or a smaller --length" in err
    options = cli.parser(["simulate"]).parse_args(["simulate", "secagg", "--users", "1000", "--neighbours", "30"])
    assert simulated._parameters(options).k == 30
    _, _, err = call(capsys, "simulate", "secagg", "--users", "60000")
    assert "SecAgg+" not in err


def test_simulate_shows_a_round_of_the_active_profile(capsys: pytest.CaptureFixture[str]) -> None:
    drops = ["--drop", "upload:2", "--drop", "confirm:5"]
    options = ["--profile", "active", "--users", "10", "--answers", "7"]
    code, out, _ = call(capsys, "simulate", "lightsecagg", *options, *drops)
    assert code == 0
    assert "before W = 7 users have signed the surviving set" in out
    assert "SignedSet: 8 messages" in out
    assert "Quorum: 8 messages" in out
    assert "the server now has signers: users 0, 1, 3, 4, 6 to 9" in out
    assert "right: 6 of 6 elements equal the plain sum.\n" in out


def test_simulate_ends_where_too_few_users_sign(capsys: pytest.CaptureFixture[str]) -> None:
    drops = [argument for user in (1, 2, 3) for argument in ("--drop", f"confirm:{user}")]
    code, out, _ = call(capsys, "simulate", "lightsecagg", "--profile", "active", *drops)
    assert code == 1
    assert "the round ends without a sum: 5 users confirmed the set and W = 6 are needed" in out


@pytest.mark.parametrize("N", range(3, 12))
def test_simulate_finds_parameters_of_the_active_profile(capsys: pytest.CaptureFixture[str], N: int) -> None:
    for T in range(1, N - 1):
        options = ["--users", str(N), "--colluders", str(T), "--length", "2"]
        code, out, err = call(capsys, "simulate", "lightsecagg", "--profile", "active", *options)
        assert code == 0, err
        assert f"before W = {(N + T) // 2 + 1} users" in out


@pytest.mark.parametrize("q", [5, 7, 11, 13, 101, 65537, 2**32 - 5])
def test_simulate_runs_with_every_prime_that_the_text_allows(capsys: pytest.CaptureFixture[str], q: int) -> None:
    code, out, err = call(capsys, "simulate", "lightsecagg", "--users", "5", "--modulus", str(q), "--length", "3")
    assert code == (2 if q == 5 else 0), err
    assert q == 5 or "3 of 3 elements" in out
    assert ("too small to carry" in out) == (q == 7)


def test_simulate_shows_a_round_of_secagg(capsys: pytest.CaptureFixture[str]) -> None:
    drops = ["--drop", "share_keys:2", "--drop", "masked_input:5"]
    code, out, _ = call(capsys, "simulate", "secagg", "--users", "8", *drops)
    assert code == 0
    assert "the server now has masked sum: (" in out
    assert "the server now has sum: (" in out
    assert "SecAgg: N = 8 users, t = 5 shares needed" in out
    assert "SecretShares: 49 messages, users 0, 1, 3 to 7 -> users 0 to 7, 9,506 bytes" in out
    assert "survivors = users 0, 1, 3, 4, 6, 7, dropped = user 5" in out
    assert "it recovered the self seeds of users 0, 1, 3, 4, 6, 7, and the masking key of user 5" in out
    assert "right: 6 of 6 elements equal the plain sum.\n" in out
    assert out.count("the server now has keys") == 1


def test_simulate_shows_a_round_of_secagg_on_a_sparse_graph(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "simulate", "secagg", "--users", "12", "--neighbours", "4", "--seed", "3")
    assert code == 0
    assert "SecAgg+: N = 12 users, t = 3 shares needed" in out
    assert "SecretShares: 48 messages" in out
    assert "and no masking key" in out


def test_simulate_shows_a_round_of_secagg_in_the_active_profile(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "simulate", "secagg", "--profile", "active", "--drop", "consistency_check:1")
    assert code == 0
    assert "before t = 6 users have signed the survivors" in out
    assert "SurvivorQuorum: 7 messages" in out
    code, out, _ = call(
        capsys, "simulate", "secagg", "--profile", "active", *(f"--drop=consistency_check:{u}" for u in range(3))
    )
    assert code == 1
    assert "the round ends without a sum: 5 users signed the surviving set and t = 6 are needed" in out


@pytest.mark.parametrize("profile", ["semi-honest", "active"])
@pytest.mark.parametrize("N", range(3, 9))
def test_simulate_finds_parameters_of_secagg(capsys: pytest.CaptureFixture[str], profile: str, N: int) -> None:
    for T in range(1, N - 1):
        options = ["--users", str(N), "--colluders", str(T), "--length", "2", "--modulus", "7"]
        code, out, err = call(capsys, "simulate", "secagg", "--profile", profile, *options)
        assert code == 0, err
        assert "2 of 2 elements" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulate", "secagg", "--drop", "upload:2"], "advertise_keys, share_keys, masked_input, unmasking"),
        (["simulate", "secagg", "--drop", "share_keys"], "as in share_keys:2"),
        (["simulate", "secagg", "--drop", "share_keys:9"], "[0, 8)"),
        (["simulate", "secagg", "--threshold", "3"], "--threshold = 3: must be an integer in [4, 6]"),
        (["simulate", "secagg", "--threshold", "9"], "--threshold = 9: must be an integer in [4, 6]"),
        (["simulate", "secagg", "--neighbours", "8"], "--neighbours = 8: must be N - 1 = 7, or in [2, 6]"),
        (["simulate", "secagg", "--neighbours", "3", "--users", "9"], "--neighbours = 3"),
        (["simulate", "secagg", "--modulus", "1"], "--modulus = 1"),
        (["simulate", "secagg", "--colluders", "99"], "colluders = 99: must be an integer in [1, 6]"),
        (["simulate", "secagg", "--colluders", "7", "--profile", "active"], "colluders = 7: must be an integer in"),
        (["simulate", "secagg", "--neighbours", "4", "--dropouts", "9"], "dropouts = 9: must be an integer in [0, 4]"),
        (["simulate", "lightsecagg", "--colluders", "7"], "colluders = 7: must be an integer in [1, 6]"),
        (["simulate", "basecagg", "--colluders", "7"], "colluders = 7: must be an integer in [1, 3]"),
        (["simulate", "lightsecagg", "--answers", "2"], "--answers = 2: must be an integer in [3, 6]"),
        (
            ["simulate", "lightsecagg", "--answers", "9", "--dropouts", "0"],
            "--answers = 9: must be an integer in [3, 8]",
        ),
        (["simulate", "basecagg", "--dropouts", "99"], "dropouts = 99: must be an integer in [0, 5]"),
        (["simulate", "basecagg", "--staleness", f"hinge:1,{'9' * 20}"], "B is a whole number of at most 10 digits"),
        (["simulate", "secagg", "--dropouts", "5"], "at most 4: t >= T + 2 needs t = 4 shares or more"),
        (
            ["simulate", "secagg", "--profile", "active", "--neighbours", "4"],
            "--neighbours = 4: must be N - 1 = 7 in the active",
        ),
        (
            ["simulate", "secagg", "--profile", "active", "--threshold", "5"],
            "--threshold = 5: must be an integer in [6, 6]",
        ),
        (["simulate", "secagg", "--users", "100000"], "users = 100000"),
        (["simulate", "secagg", "--users", "1000"], "at most 2097152 elements"),
        (["simulate", "secagg", "--answers", "3"], "--answers"),
        (["simulate"], "PROTOCOL"),
        (["simulate", "lightsecagg", "--drop", "upload"], "--drop = 'upload'"),
        (["simulate", "lightsecagg", "--drop", "lunch:1"], "'lunch'"),
        (["simulate", "lightsecagg", "--drop", "upload:8"], "[0, 8)"),
        (["simulate", "lightsecagg", "--users", "2"], "users = 2"),
        (["simulate", "lightsecagg", "--users", "x"], "--users"),
        (["simulate", "lightsecagg", "--modulus", "15"], "--modulus = 15"),
        (["simulate", "lightsecagg", "--colluders", "0"], "colluders = 0: must be an integer in [1, 6]"),
        (["simulate", "lightsecagg", "--length", "0"], "--length = 0: must be"),
        (["simulate", "lightsecagg", "--users", "1000000"], "at most 2097152 elements"),
        (["simulate", "lightsecagg", "--length", "10000000000"], "at most 2097152 elements"),
        (["simulate", "lightsecagg", "--dropouts", "8"], "dropouts = 8: must be an integer in [0, 4]"),
        (["simulate", "lightsecagg", "--signatures", "6"], "signatures = 6: must be left out"),
        (["simulate", "lightsecagg", "--profile", "active", "--dropouts", "3"], "dropouts = 3: must be at most 2"),
        (
            ["simulate", "lightsecagg", "--profile", "active", "--signatures", "5"],
            "--signatures = 5: must be an integer",
        ),
        (
            ["simulate", "lightsecagg", "--profile", "active", "--signatures", "7"],
            "--signatures = 7: must be an integer",
        ),
        (["simulate", "lightsecagg", "--profile", "active", "--drop", "x"], "share, upload, confirm, recover"),
        (["simulate", "lightsecagg", "--drop", "confirm:1"], "'confirm'"),
        (["simulate", "lightsecagg", "--profile", "brave"], "semi-honest"),
        (["simulate", "nothing"], "lightsecagg"),
        (["conform"], "--target"),
        (["conform", "--target", "nothing"], "reference"),
        (["conform", "--target", "reference", "-k", "no-such-check"], "-k no-such-check"),
        (["conform", "--target", "reference", "--fuzz", "0"], "--fuzz"),
        (["conform", "--target", "reference", "--fuzz", "many"], "--fuzz"),
        (["conform", "--target", "reference", "--timeout", "0"], "--timeout"),
        (["conform", "--target", "reference", "--start-timeout", "no"], "--start-timeout"),
        (["conform", "--target", "reference", "--budget", "-1"], "--budget"),
        (["conform", "--target", "reference", "--expect", "/nowhere.toml"], "nowhere.toml"),
        (["conform", "--target", "reference", "--json", "/nowhere/x.json"], "--json /nowhere/x.json"),
        (["conform", "--target", "reference", "--junit", "/"], "--junit /: this is a folder"),
        (["conform", "--target", "reference", "--repro", "/dev/null/x"], "--repro /dev/null/x"),
        (["replay", "x.jsonl", "--timeout", "nan", "--", "true"], "--timeout"),
        (["conform", "--target", "reference", "--wrong"], "--wrong"),
        (["nothing"], "conform"),
        (["conform", "--target", "reference", "--json", ""], "argument --json: is empty"),
        (["audit-participation", ""], "argument LOG: is empty"),
        *(([command, "--", ""], "the command after -- is empty") for command in ("check", "conform", "fuzz", "power")),
        (["replay", "x.jsonl", "--", " "], "the command after -- is empty"),
        (["vectors", "--", ""], "the command after -- is empty"),
        (["conform", "--list-checks", "--json", "x.json"], "--list-checks goes with no other option but -k, --no-v"),
        (["conform", "--list-checks", "--", "x"], "and the command of an adapter after -- is given"),
        (["conform", "--list-checks", "--fuzz", "100"], "and --fuzz is given"),
        (["conform", "--list-targets", "--target", "nope"], "--list-targets goes with no other option, and --target"),
        (["conform", "--list-targets", "--list-checks"], "--list-targets goes with no other option, and --list-checks"),
        (["simulate", "heterosag", "--attack", "sign-flip"], "--attack = 'sign-flip': must be left out where nobody"),
        (["simulate", "heterosag", "--attack", "gaussian", "--byzantine", "0"], "--attack = 'gaussian': must be left"),
        (["privacy", "heterosag", "--odds", "0.1", "--drop", "0"], "--odds = '0.1': must be left out with --collude"),
        (["privacy", "heterosag", "--odds", "0.1", "--rule", "one-stream"], "--odds = '0.1': must be left out"),
        (["round", "--authority", "x", "--protocol", "secagg"], "--authority needs --protocol basa"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    assert said in err


@pytest.mark.parametrize(
    "adapter",
    [["/nowhere/adapter"], [sys.executable, "-c", "print('{}')"], [sys.executable, "-c", "print('x')"]],
)
def test_an_adapter_that_cannot_be_used_is_one_line_and_code_3(
    capsys: pytest.CaptureFixture[str], adapter: list[str]
) -> None:
    code, out, err = call(capsys, "conform", "--", *adapter)
    assert code == 3
    assert "cannot be used" in out
    assert "Traceback" not in out + err


def test_conform_finds_a_wrong_sum_and_writes_how_to_replay_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    options = ["--repro", str(tmp_path / "repro"), "--json", str(report), "-k", "field.add/exact"]
    code, out, _ = call(capsys, "conform", *options, "--", sys.executable, FAKE, "wrong-value")
    assert code == 1
    assert "FAIL     field.add/exact   wrong_value   [MOD-03]" in out
    [line] = [line for line in out.splitlines() if "secagg-spec replay" in line]
    assert f"secagg-spec replay {tmp_path / 'repro' / 'adapter-field-add-exact.jsonl'} " in line
    assert " -- " in line
    assert line.endswith("fake_adapter.py wrong-value")
    [target] = json.loads(report.read_text())["targets"]
    assert target["clauses"] == {"MOD-03": "fails"}
    assert target["checks"][0]["failure"]["requests"][0]["op"] == "field.add"


@pytest.mark.slow
def test_conform_passes_with_the_failure_expected_and_fails_when_that_is_stale(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    expect = tmp_path / "expect.toml"
    expect.write_text(
        '[[expect]]\ntarget = "adapter"\nchecks = "field.add/exact"\nverdict = "wrong_value"\nreason = "known"\n'
    )
    options = ["--expect", str(expect), "--repro", str(tmp_path / "repro"), "-k", "field.add/exact", "--"]
    code, out, _ = call(capsys, "conform", *options, sys.executable, FAKE, "wrong-value")
    assert code == 0
    assert "why expected:  known" in out
    code, out, _ = call(capsys, "conform", *options, sys.executable, FAKE, "none")
    assert code == 1
    assert "STALE" in out


def test_a_folder_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = ["--repro", str(tmp_path / "file" / "x"), "-k", "field.add/exact", "--", sys.executable, FAKE]
    code, _, err = call(capsys, "conform", *options, "wrong-value")
    assert code == 2
    assert "--repro" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["--json", "--baseline"])
@pytest.mark.parametrize("end", [".jsonl", ".expected.json"])
def test_a_report_is_no_stored_case(capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, end: str) -> None:
    path = tmp_path / f"adapter-field-add-exact{end}"
    options = ["--repro", str(tmp_path), option, str(path), "-k", "field.add/exact", "--", sys.executable, FAKE]
    code, out, err = call(capsys, "conform", *options, "wrong-value")
    assert (code, out) == (2, "")
    assert f"{option} {path}: --repro may store a failing case there" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_files_of_earlier_runs_are_removed_and_no_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def conform(fault: str, check: str) -> int:
        return call(capsys, "conform", "--repro", str(tmp_path), "-k", check, "--", sys.executable, FAKE, fault)[0]

    others = ["adapter-notes.jsonl", "adapter-x.expected.json", "adapter-any-field-add-exact.expected.json", "x.txt"]
    for name in others:
        (tmp_path / name).write_text('{"schema": "mine"}')
    (tmp_path / others[2]).write_text('{"schema": "secagg-spec-repro/1", "check": "field.add/exact"}')
    (tmp_path / "adapter-broken.expected.json").write_text("{")
    assert conform("wrong-value", "field.add/exact") == 1
    assert (tmp_path / "adapter-field-add-exact.jsonl").exists()
    assert conform("none", "field.add/exact") == 0
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {*others, "adapter-broken.expected.json"}


def test_the_run_ends_with_a_sentence_and_says_on_the_way_what_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "conform", "-k", "adapter/echo", "--", sys.executable, FAKE, "none")
    assert code == 0
    sentence = "1 implementation judged, no unexpected failure (the table counts clauses, the lines above count checks)"
    assert out.splitlines()[-1] == sentence
    assert re.fullmatch(r"adapter: judging \.\.\.\nadapter: done after \d+ s\n", err)


@pytest.mark.slow
def test_a_run_that_gives_up_ends_with_the_code_of_the_failures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "junit.xml"
    options = ["--timeout", "0.2", "--junit", str(path), "--repro", str(tmp_path), "-k", "field", "--"]
    code, out, _ = call(capsys, "conform", *options, sys.executable, HOSTILE, "hang")
    assert code == 1
    assert "3 checks had ended in a time-out before" in out
    assert re.search(r"1 implementation judged, 3 unexpected failures, \d+ checks not run", out)
    assert 'type="not_run"' in path.read_text()


def test_a_run_whose_budget_is_spent_without_a_failure_is_code_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["--budget", "0.001", "--repro", str(tmp_path), "-k", "field.add", "--"]
    code, out, _ = call(capsys, "conform", *options, sys.executable, FAKE, "none")
    assert code == 3
    assert "the budget of 0.001 s (--budget) was spent" in out
    assert "1 implementation judged, 39 checks not run" in out


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        *((word, word) for word in ("./adapter", "adapter", "/usr/x", f"{Path.cwd()}/")),
        ("", "''"),
        (f"{Path.cwd()}/x/y", "x/y"),
        *((f"{Path.cwd()}{name}", f"./{name.lstrip('/')}") for name in ("/x.py", "//x.py", "/-x/y")),
    ],
)
@pytest.mark.requirement("CNF-74")
def test_a_command_is_shown_as_it_can_be_typed(word: str, shown: str) -> None:
    assert relative([word]) == shown


def test_nothing_that_runs_is_code_4(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = call(capsys, "conform", "-k", "mds.encode/exact", "--", sys.executable, FAKE, "none")
    assert code == 4


def test_targets_checks_and_version_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "fedml-any" in call(capsys, "conform", "--list-targets")[1]
    assert "LSA-09" in call(capsys, "conform", "--list-checks")[1]
    assert call(capsys, "--version")[1].startswith("secagg-spec ")


def test_power_says_what_kills_a_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "power", "-k", "inverse-of-zero")
    assert code == 0
    assert "inverse-of-zero   [MOD-05]" in out
    assert "field.inverse/zero" in out
    assert "field-inverse-zero-7" in out


def test_power_of_an_adapter_counts_what_its_declarations_reach(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "power", "--", sys.executable, FAKE, "none")
    assert code == 0
    assert re.search(r"would notice [1-9]\d* of [1-9]\d\d+ mutants", out)
    assert "To notice more, declare:" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["-k", "no-such-bug"], "no-such-bug"), (["--fuzz", "0"], "--fuzz"), (["--seeds", "0"], "--seeds")],
)
def test_a_wrong_call_of_power_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, _, err = call(capsys, "power", *arguments)
    assert code == 2
    assert said in err


def test_junit_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    options = ["--junit", str(path), "-k", "adapter/echo", "--", sys.executable, FAKE, "none"]
    assert call(capsys, "conform", *options)[0] == 0
    assert 'name="adapter/echo"' in path.read_text()
    assert call(capsys, "conform", "--junit", "/nowhere/x.xml", *options[2:])[0] == 2


@pytest.mark.slow
@exhaustive
def test_implementations_judged_at_once_get_the_same_report(tmp_path: Path) -> None:
    def judged(jobs: str) -> dict[str, object]:
        report = tmp_path / f"report-{jobs}.json"
        command = ["conform", "--target", "reference", "--target", "node", "-k", "field.add", "--fuzz", "5"]
        assert cli.main([*command, "--jobs", jobs, "--repro", str(tmp_path), "--json", str(report)]) == 0
        content = json.loads(report.read_text())
        return {**content, "timing": {}}

    assert judged("2") == judged("1")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize(
    "command",
    [
        "simulate multiround --rounds 1",
        "reconstruct --rounds 1",
        "selection --rounds 1",
        "--help",
        "--version",
        "conform --help",
        "simulate secagg --help",
    ],
)
def test_output_that_cannot_be_written_is_one_line(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "secagg_spec.cli", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].endswith("standard output: No space left on device")
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize(
    ("command", "code"),
    [("claims NOPE", 2), ("plan --users 0 --dimension 1", 2), ("conform --target reference -k field.add --fuzz 1", 0)],
)
def test_errors_that_cannot_be_written_leave_the_exit_code(command: str, code: int, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        called = [sys.executable, "-m", "secagg_spec.cli", *command.split()]
        assert (
            subprocess.run(
                called, cwd=tmp_path, stdout=full.fileno() if code else None, stderr=full, check=False
            ).returncode
            == code
        )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="removes a folder that is in use")
def test_a_working_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    judge = f"exec '{sys.executable}' -m secagg_spec.cli conform --target reference"
    command = f"mkdir gone && cd gone && rmdir ../gone && {judge}"
    ended = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "secagg-spec conform: the working folder: No such file or directory\n",
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor by the shell")
@pytest.mark.parametrize(
    ("closed", "code", "said"),
    [("1", 2, "secagg-spec segments: standard output: Bad file descriptor\n"), ("2", 0, ""), ("1>&- 2", 2, "")],
)
def test_what_goes_to_an_output_that_is_closed_before_the_start_is_not_lost_in_silence(
    closed: str, code: int, said: str
) -> None:
    command = f"exec '{sys.executable}' -m secagg_spec.cli segments --groups 3 {closed}>&-"
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, said)


def test_an_interrupt_while_the_command_is_loaded_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", interrupted)
    try:
        found = call(capsys, "segments", "--groups", "3")
    except KeyboardInterrupt:
        pytest.fail("the interrupt came out, which would end pytest")
    assert found == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [(("privacy", "lightsecag"), "did you mean lightsecagg?"), (("simulate", "lightsecagg", "--drop"), "")],
)
def test_a_mistyped_choice_is_asked_what_is_meant(
    words: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert ("did you mean" in err, hint in err) == (bool(hint), True)
    assert len(err.splitlines()) == 1


def in_a_callback(number: int) -> None:
    """Python drops what is raised there. Hypothesis has such a callback, so a run of the kit could go on."""
    sent = list[str]()

    def callback(phase: str, info: object) -> None:
        if not sent:
            sent.append(phase)
            signal.raise_signal(number)

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert sent


def while_it_is_dropped(number: int) -> None:
    """The signal that is sent again can come while Python still drops the first: it did on a busy machine."""

    class Dropped:
        def __del__(self) -> None:
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)

    Dropped()


def swallowed(number: int) -> None:
    """Code of others may catch all that is raised."""
    with contextlib.suppress(BaseException):
        signal.raise_signal(number)


@pytest.mark.parametrize("way", [in_a_callback, while_it_is_dropped, swallowed])
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGTERM, 143, "ended by SIGTERM\n"), (signal.SIGINT, 130, "interrupted\n")]
)
def test_a_signal_of_which_the_exception_is_dropped_is_not_lost(
    number: signal.Signals,
    code: int,
    said: str,
    way: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(options: object) -> int:
        way(number)
        time.sleep(20)
        return 0

    monkeypatch.setattr("secagg_spec.commands.text.main", run)
    assert cli.main(["text"]) == code
    assert capsys.readouterr().err == said


def test_a_signal_that_comes_before_a_wait_begins_is_sent_once_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal that comes after Python looked for one, and before the system waits, does not end the wait."""
    sent: list[int] = []
    send = signal.pthread_kill

    def late(thread: int, number: int) -> None:
        sent.append(number)
        if len(sent) > 1:
            send(thread, number)

    def run(options: object) -> int:
        swallowed(signal.SIGTERM)
        for _ in range(200):
            time.sleep(0.02)
        return 0

    monkeypatch.setattr(signal, "pthread_kill", late)
    monkeypatch.setattr("secagg_spec.commands.text.main", run)
    assert cli.main(["text"]) == 143
    assert capsys.readouterr().err == "ended by SIGTERM\n"
    assert len(sent) >= 2


def test_a_signal_that_was_heeded_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(options: object) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            signals.heed()
        time.sleep(0.2)
        return 1

    monkeypatch.setattr("secagg_spec.commands.text.main", run)
    assert cli.main(["text"]) == 1


def test_the_list_of_all_commands_is_the_same_with_the_commands_loaded() -> None:
    assert cli.parser(load=False).format_help() == cli.parser().format_help()
    assert re.search(r"simulate +watch a protocol run, step by step", cli.parser(load=False).format_help())


def options_of(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, argparse.Action]]:
    """Yield each option of a command and of those below it, with its name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from options_of(below, f"{command} {name}".strip())
        elif action.option_strings:
            yield f"{command} {action.option_strings[-1]}", action


def test_a_default_that_help_states_is_the_one_used() -> None:
    stated = {name: action for name, action in options_of(cli.parser()) if action.default not in (None, [], "")}
    numbers = 0
    for name, action in stated.items():
        if action.nargs == 0 or action.default == argparse.SUPPRESS:
            continue
        says = re.search(r"\((?:here )?([^()]*)\)$", str(action.help))
        assert says, f"{name}: help says nothing of {action.default}"
        power = re.fullmatch(r"2\*\*(\d+)(?: - (\d+))?", says[1])
        written = str(2 ** int(power[1]) - int(power[2] or 0)) if power else says[1]
        number = isinstance(action.default, float | int)
        numbers += number
        place = {".": "this one"}.get(str(action.default), str(action.default))
        assert float(written) == action.default if number else written == place, name
    assert numbers > 40


def test_each_profile_that_help_states_can_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    offered = {name: action for name, action in options_of(cli.parser()) if re.fullmatch("simulate .* --profile", name)}
    assert len(offered) == 3
    for name, action in offered.items():
        assert [call(capsys, *name.split(), choice)[0] for choice in action.choices or ()] == [0, 0]


FEWER = "(N // 4, or fewer if T leaves fewer)"
SHARES = (
    "(N // 2 + 1, or N - D if that is less, and at least the smallest that the text allows; "
    "k // 2 + 1 with fewer --neighbours, however many collude)"
)
IN_HETEROSAG = "(as in the preset; for another N, T or D, N // 2 + 1, or N - D if that is less, and at least T + 2)"


@pytest.mark.parametrize(
    ("arguments", "option", "says", "used"),
    [
        ("secagg --users 8 --colluders 6", "--dropouts", FEWER, "D = 0 may"),
        ("lightsecagg --users 8 --colluders 5", "--dropouts", FEWER, "D = 1 may"),
        ("basecagg --users 8 --buffer 8 --colluders 6 --rounds 1", "--dropouts", FEWER, "U = 7 answers"),
        ("secagg --users 8 --neighbours 5", "--threshold", SHARES, "t = 3 shares"),
        ("secagg --users 20 --dropouts 10 --colluders 2", "--threshold", SHARES, "t = 10 shares"),
        ("secagg --users 8 --colluders 5 --dropouts 0", "--threshold", SHARES, "t = 7 shares"),
        ("heterosag --preset tiny", "--threshold", IN_HETEROSAG, "t = 3 shares"),
        ("heterosag --users 25 --dropouts 20", "--threshold", IN_HETEROSAG, "t = 5 shares"),
        ("heterosag --preset tiny", "--dropouts", "(as in the preset; for another N, N // 5; or ", "D = 1 may"),
        ("heterosag --users 30", "--dropouts", "(as in the preset; for another N, N // 5; or ", "D = 6 may"),
        ("heterosag --preset tiny", "--groups", "(as in the preset, or as many as ", "in 2 groups with 3 subgroups"),
        ("heterosag --preset tiny", "--subgroups", "(as in the preset; 1 for more", "in 2 groups with 3 subgroups"),
        ("heterosag --preset tiny --users 13", "--subgroups", "(as in the preset; ", "in 2 groups with 3 subgroups"),
        ("heterosag --preset tiny --groups 3", "--subgroups", "; 1 for more or fewer groups)", "in 3 groups, t"),
    ],
)
def test_a_default_that_follows_from_others_is_as_help_says(
    capsys: pytest.CaptureFixture[str], arguments: str, option: str, says: str, used: str
) -> None:
    help_ = {name: str(action.help) for name, action in options_of(cli.parser())}
    words = arguments.split()
    assert says in help_[f"simulate {words[0]} {option}"]
    code, out, _ = call(capsys, "simulate", *words)
    assert code == 0
    assert used in out.splitlines()[0]


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["conform", "--help"]], ids=" ".join)
def test_what_only_says_what_there_is_loads_neither_checks_nor_numbers(words: list[str]) -> None:
    asked = f"import sys; from secagg_spec import cli\ntry: cli.main({words})\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "secagg_spec.cli" in loaded
    assert {"numpy", "hypothesis", "secagg_spec.conformance.checks"} & {*loaded} == set()


def test_a_long_loop_shows_what_is_at_work_and_when_it_may_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says how long the rest takes once five seconds are over, and is taken away, after an error too."""
    assert list(terminal.Progress().follow(["a", "b"])) == ["a", "b"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    clock = SimpleNamespace(monotonic=iter([0.0, 2.0, 30.0, 60.0]).__next__)
    monkeypatch.setattr("secagg_spec.terminal.time", clock)

    def fails(name: str) -> None:
        if name == "three":
            raise ParameterError("x", 0, "1")

    followed = terminal.Progress().follow(["one", "two", "three"])
    with pytest.raises(ParameterError):
        [*map(fails, followed)]
    followed.close()
    shown = capsys.readouterr().err.split("\r\x1b[2K")
    assert shown == ["", "  0%  one", " 33%  about 60 s left  two", " 67%  about 30 s left  three", ""]


@pytest.mark.parametrize("words", [["conform", "--list-targets"], ["vectors", "-k", "no such"], ["diff", "a", "b"]])
def test_a_terminal_says_that_the_checks_are_loading_before_they_are_loaded(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line is taken away when they are loaded; without a terminal there is none."""
    said = list[str]()

    def main(given: argparse.Namespace) -> int:
        said.append(capsys.readouterr().err)
        return 0

    def loaded(name: str) -> SimpleNamespace:
        said.append(capsys.readouterr().err)
        return SimpleNamespace(main=main)

    monkeypatch.setattr(terminal, "import_module", loaded)
    monkeypatch.setattr(cli, "load", import_module)
    for there, before in ((False, ""), (True, "\r\x1b[2K  0%  loading the checks ...")):
        said.clear()
        monkeypatch.setattr(sys.stderr, "isatty", lambda there=there: there, raising=False)
        assert cli.main(words) == 0
        assert said == [before, "\r\x1b[2K" if there else ""]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("claims", "--list"), "reading the ledger"),
        (("reproduce", "--list"), "reading what there is"),
        (("privacy", "secagg"), "deciding what each coalition learns"),
        (("privacy", "lightsecagg"), "deciding what each coalition learns"),
    ],
)
def test_a_terminal_says_at_once_what_takes_longer(
    words: tuple[str, ...], what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    _, out, err = call(capsys, *words)
    assert err == f"\r\x1b[2K  0%  {what} ...\r\x1b[2K"
    assert out
    monkeypatch.undo()
    assert call(capsys, *words)[2] == ""


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("simulate", "secagg", "--seed"), "an integer"),
        (("conform", "--fuzz"), "an integer"),
        (("round", "--rounds"), "an integer"),
        (("fuzz", "--rounds"), "an integer"),
        (("power", "--seeds"), "an integer"),
        (("reproduce", "--seeds"), "an integer"),
    ],
)
def test_a_number_of_5000_digits_is_not_printed(
    words: tuple[str, ...], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, *words, "9" * 5000)
    assert code == 2
    assert f"{words[-1]}: has 5000 characters; {kind} has at most 100" in err
    assert len(err) < 200


NO_INTEGERS = ("\u0663", "1_0", " 4", "4\n", "3.0", "", "0x1", "+-1")


def test_the_package_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "secagg_spec", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("secagg-spec ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fuzz", "--time", "99999999999h"), "above 0 and below a million seconds"),
        (("fuzz", "--time", "-5s"), "'-5s' is not a duration"),
        (("fuzz", "--time", "\u0663s"), "is not a duration"),
        (("fuzz", "--target", "*"), "fuzz takes one"),
        (("simulate", "multiround", "--lost", "9" * 5000), "of at most 30 characters"),
        (("conform", "--budget", "9" * 5000), "below a million"),
        (("privacy", "lightsecagg", "--points", "-1,2,3,4,5"), "--points = '-1': must be whole numbers"),
        (
            ("selection", "--dropout", "1e-400"),
            "of at most 20 characters, no exponent",
        ),
        (
            ("selection", "--dropout", "0.10000000000000000000001"),
            "of at most 20 characters, no exponent",
        ),
        (("selection", "--users", "9" * 21), "a whole number of at most 20 characters"),
        (("privacy", "lightsecagg", "--points", "9" * 21), "each of at most 20 digits"),
        (("selection", "--dropout", "-.5,1"), "must be a probability in [0, 1]"),
        *((("simulate", "secagg", "--users", no), "is not an integer, as 12 or -3 are") for no in NO_INTEGERS),
        *((("conform", "--seed", no), "is not an integer, as 12 or -3 are") for no in NO_INTEGERS),
        *(
            (("conform", "--timeout", no), "is not a number of seconds above 0")
            for no in ("1_0", "\u0663", " 5", "", "nan")
        ),
        (("simulate", "basecagg", "--learning-rate", "1_0"), "--learning-rate = '1_0': must be a number"),
        (
            ("simulate", "basecagg", "--learning-rate", "1e308"),
            "--learning-rate = '1e308': must be above 0 and at most 1000",
        ),
        (("simulate", "basecagg", "--learning-rate", "-1"), "--learning-rate = '-1': must be above 0 and at most 1000"),
        *((("conform", "--target", "reference", "-k", no), "-k: is empty, and would choose all") for no in ("", " ")),
        *(((name, "-k", ""), "-k: is empty, and would choose all") for name in ("vectors", "power", "fuzz")),
        (("fuzz", "--target", "reference", "-k", "shamir", "-k", "field,"), "-k 'shamir,field,' has an empty pattern"),
        (("conform", "--target", "reference", "-k", "!, shamir"), "has an empty pattern"),
        (("conform", "--target", "reference", "-k", "mds,!mds"), "-k mds,!mds: this leaves out every check"),
        (("power", "--"), "-- is followed by no command"),
        (("conform", "--"), "-- is followed by no command"),
        *(
            ((name, *one, "word", "--", "./adapter"), "unrecognized arguments before --: word")
            for name, one in (("conform", ()), ("check", ()), ("vectors", ()), ("power", ()), ("replay", ("x.jsonl",)))
        ),
        *(
            ((name, *one, "word", "--timeout", "3", "--", "./adapter"), "unrecognized arguments before --: word (see")
            for name, one in (("conform", ()), ("check", ()), ("vectors", ()), ("replay", ("x.jsonl",)))
        ),
        *(
            (
                (name, *one, "--nope", "3", "--timeout", "3", "--", "./adapter", "x"),
                "unrecognized arguments: --nope (see",
            )
            for name, one in (("conform", ()), ("check", ()), ("vectors", ()), ("replay", ("x.jsonl",)))
        ),
        (("-x",), "secagg-spec -x: there is no such option; the name of a command comes first"),
    ],
)
def test_a_refused_value_is_named_with_what_is_allowed(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, *words)
    assert code == 2
    assert said in err
    assert len(err) < 400


def test_rules_of_commands_name_options_that_exist() -> None:
    commands = next(action for action in cli.parser()._actions if action.dest == "command").choices
    assert isinstance(commands, dict)
    with_rules = []
    for name in commands:
        rules, known = commands[name].get_default("rules"), {action.dest for action in commands[name]._actions}
        if rules is not None:
            named = [*rules.needs, *rules.only, *(one for pair in rules.apart for one in pair)]
            named += [one for others in (*rules.needs.values(), *rules.only.values()) for one in others]
            assert set(named) <= known, name
            with_rules.append(name)
    assert {"conform", "vectors", "power", "reproduce", "reconstruct", "text"} <= set(with_rules)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("audit-participation {log} --users 1", "log: 1 round, 0; 1 user\n"),
        ("audit-participation {log} --roster {roster}", "one of 1 name (a)"),
        ("plan --users 3 --dimension 1 --no-times", ", 1 number in [-1, 1] each;"),
        ("reconstruct --rounds 1", "4 of them in 1 round of SecAgg"),
        ("reconstruct --rounds 1", "1 round of random selection"),
        ("segments --subgroups 2", "HeteroSAg with 1 group, 2 subgroups"),
        ("selection --users 1 --per-round 1 --privacy 1 --rounds 1 --dropout 0", "1 user, 1 in 1 round, seed 0\n"),
        ("selection --users 2 --per-round 1 --privacy 1 --rounds 2 --dropout 0,1", "at random, 1 user for each\n"),
    ],
)
def test_one_is_counted_in_the_singular(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, given: str, said: str
) -> None:
    log, roster = tmp_path / "log.csv", tmp_path / "roster"
    log.write_text("round,users\n0,0\n", encoding="utf-8")
    roster.write_text("a\n", encoding="utf-8")
    cli.main(given.format(log=log, roster=roster).split())
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
