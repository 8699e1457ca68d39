"""``secagg-spec simulate basecagg``: what a person sees, and that each model is compared with plain FedBuff."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secagg_spec.cli import main
from secagg_spec.protocols.fedbuff import round as fedbuff


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["simulate", "basecagg", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_it_shows_buffers_weights_recovery_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--users", "20", "--buffer", "5", "--rounds", "6", "--max-staleness", "4"]
    code, out, _ = call(capsys, *options)
    assert code == 0
    assert "BASecAgg: N = 20 users, K = 5 updates in a buffer, U = 15 answers needed, T = 3 may collude" in out
    assert "each up to 102.4" in out
    assert out.count("has this model: 6 of 6 elements, bit for bit") == 6
    assert "refused: staleness above 4" in out
    assert "6 rounds, 30 updates taken" in out
    assert "a user held 18 shares at most, and may hold N = 20" in out
    assert all(f"round {number}\n" in out for number in range(6))


@pytest.mark.parametrize(
    "options",
    [
        ["--profile", "active", "--rounds", "2"],
        ["--by", "cores", "--rounds", "3", "--staleness", "hinge:1/2,1"],
        ["--staleness", "constant", "--rounds", "1", "--users", "5", "--buffer", "3"],
        ["--rounds", "40", "--users", "5", "--buffer", "3", "--max-staleness", "0", "--length", "2"],
        ["--users", "3", "--buffer", "3", "--rounds", "2", "--modulus", "40009", "--update-level", "8"],
    ],
    ids=" ".join,
)
def test_these_runs_end_well(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    code, out, err = call(capsys, *options)
    assert code == 0, err
    assert ", and it was right: every model was that of plain FedBuff " in out.splitlines()[-2]


def test_both_ways_to_run_it_tell_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    report = []
    for by in ("messages", "cores"):
        _, out, _ = call(capsys, "--by", by, "--rounds", "4", "--users", "7", "--buffer", "4")
        report.append([line for line in out.splitlines() if line.startswith("  ") and "messages," not in line])
    assert report[0] == report[1]
    assert len(report[0]) > 30


def test_a_model_that_differs_is_a_failure(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    step = fedbuff.step

    def shifted(state: fedbuff.ServerState, *, rounding: Any) -> fedbuff.ServerState:
        after = step(state, rounding=rounding)
        model = np.nextafter(after.model, np.inf) if after.round == 2 else after.model
        return fedbuff.ServerState(after.parameters, model, after.round, after.buffer, after.accepted)

    monkeypatch.setattr(fedbuff, "step", shifted)
    code, out, _ = call(capsys)
    assert code == 1
    assert "round 1: plain FedBuff with the same quantised weights has this model: 0 of 6 elements" in out
    assert "this is a fault of the reference" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--buffer", "0"], "buffer = 0: must be an integer in [3, 8]"),
        (["--buffer", "9"], "buffer = 9: must be an integer in [3, 8]"),
        (["--buffer", "3", "--colluders", "2"], "--colluders = 2: must be an integer in [1, 1]"),
        (["--staleness", "polynomial:-1"], "alpha of --staleness = '-1': must be a fraction p/r"),
        (["--staleness", "polynomial:nan"], "alpha of --staleness = 'nan'"),
        (["--staleness", "hinge:1/200,4"], "a of --staleness = '1/200': must be a fraction p/r"),
        (["--staleness", "hinge:1,4294967296"], "b of --staleness = 4294967296: must be an integer in [0, 4294967295]"),
        (["--staleness", "polynomial:0.123"], "1 <= r <= 100"),
        (["--staleness", "hinge:1"], "hinge:A,B"),
        (["--staleness", "hinge:1/3,0.5"], "B is a whole number of at most 10 digits"),
        (["--staleness", "hinge:1," + "9" * 5000], "hinge:A,B"),
        (["--staleness", "linear"], "constant, polynomial:ALPHA or hinge:A,B"),
        (["--weight-level", "0"], "--weight-level = 0"),
        (["--update-level", "0"], "--update-level = 0"),
        (["--update-level", "-3"], "--update-level = -3"),
        (["--update-level", "1.5"], "--update-level"),
        (["--weight-level", "5"], "at least 1 / s(tau_max) for tau_max = 10"),
        (["--max-staleness", "-1"], "--max-staleness = -1"),
        (["--max-staleness", str(2**53 + 1)], f"--max-staleness = {2**53 + 1}"),
        (["--rounds", "0"], "rounds = 0"),
        (["--users", "2"], "users = 2"),
        (["--length", "0"], "length = 0"),
        (["--learning-rate", "nan"], "--learning-rate = 'nan': must be a number"),
        (["--learning-rate", "1e200"], "--learning-rate = '1e200': must be above 0 and at most 1000"),
        (
            ["--learning-rate", "999"],
            "round 1 is too large: x[0] = -502.03430478515634: must be at most 6710886 / 65536",
        ),
        (
            ["--learning-rate", "999"],
            "; take a smaller --learning-rate (999), --update-level (65536), --weight-level (64) or --buffer (5)\n",
        ),
        (
            ["--modulus", "65537"],
            "--update-level (65536), --weight-level (64) or --buffer (5), or a larger --modulus\n",
        ),
        (["--signatures", "6"], "left out, but with --profile active"),
        (["--profile", "active", "--by", "cores"], "messages in the active profile"),
        (["--profile", "active", "--signatures", "5"], "--signatures = 5"),
        (["--answers", "2"], "--answers = 2: must be an integer in [3, 6]"),
        (["--answers", "7"], "--answers = 7: must be an integer in [3, 6]"),
        (["--colluders", "4"], "--colluders = 4: must be an integer in [1, 3]"),
        (["--profile", "active", "--dropouts", "3"], "--dropouts = 3: must be an integer in [0, 2]"),
        (["--modulus", "8"], "--modulus = 8: must be a prime"),
        (["--modulus", "101"], "K * c_g"),
        (["--drop", "upload:2"], "--drop"),
    ],
)
def test_bad_input_gets_one_clear_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    try:
        code, _, err = call(capsys, *arguments)
    except SystemExit as ended:
        code, err = int(str(ended.code)), capsys.readouterr().err
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_a_log_is_written_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log, again = tmp_path / "log.csv", tmp_path / "again.csv"
    _, first, _ = call(capsys, "--rounds", "3", "--write-log", str(log))
    code, second, err = call(capsys, "--rounds", "3", "--log", str(log), "--write-log", str(again))
    assert code == 0, err
    assert log.read_text() == again.read_text()
    assert "events written to" in first
    assert second.count("round ") >= 3
    times = [[line[:24] for line in out.splitlines() if "#" in line] for out in (first, second)]
    assert times[0] == times[1]


def test_a_log_of_a_deployment_shows_what_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    events = ["0,download,0", "0,download,1", "0.5,download,2", "1,upload,0", "1,download,0", "1.5,upload,4"]
    events += ["2,timeout,1", "2,download,1", "2.5,upload,2", "3,download,3", "4,upload,3", "5,upload,3"]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["time,kind,user", *events]) + "\n")
    options = ["--users", "5", "--buffer", "3", "--log", str(log)]
    code, out, err = call(capsys, *options)
    assert code == 0, err
    assert "asks for a model, and its update waits in the buffer" in out
    assert "upload of a user that does not train" in out
    assert "timed out" in out
    assert "asks for a model, and has the newest" in out
    assert "the log ends in round 1, before the buffer is full" in out
    assert "\n1 round, 3 updates taken, 0 too late" in out
    assert "arrivals are from the log" in out


def test_a_log_without_events_claims_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("\ufefftime,kind,user\n", encoding="utf-8")
    code, out, err = call(capsys, "--log", str(log))
    assert (code, err) == (1, "")
    assert "the log ends in round 0" in out
    assert "the log has the events of 0 of 6 rounds, and the others did not happen" in out
    assert out.endswith("No round has a sum.\n")
    assert "bit for bit" not in out.split("the log ends")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "time,kind,user\n1,download,0\n0.5,download,1\n",
            "line 3, time = 0.5: must be 1.0 or later: the clock does",
        ),
        (
            "time,kind,user\n\n1.5,download,0\n2,upload,1.0\n",
            "log.csv, line 4, user = '1.0': must be a whole number",
        ),
        ("time,kind,user\n0x1,download,0\n", "--log log.csv, line 2, time = '0x1': must be a number of at least 0"),
        ("time,kind,user\nnan,download,0\n", "--log log.csv, line 2, time = 'nan': must be a number of at least 0"),
        ("time,kind,user\n1_0,download,0\n", "--log log.csv, line 2, time = '1_0'"),
        ("time,kind,user\n\u0660,download,0\n", "--log log.csv, line 2, time = '\u0660'"),
        ("time,kind,user\n1,download,\u0663\n", "--log log.csv, line 2, user = '\u0663'"),
        ("time,kind,user\n1,download," + "9" * 5000 + "\n", "--log log.csv, line 2, user = '999"),
        ("time,kind,user\n1,download\n", "--log log.csv, line 2, fields = 2: must be 3: time,kind,user"),
        ('time,kind,user\n1,"up\n', "--log log.csv, line 2 = 'unexpected end of data': must be comma-separated values"),
        (
            "time,kind,user\n1,Download,0\n",
            "kind = 'Download': must be one of download, upload, timeout; download is close",
        ),
        ("time,kind,user\n-1,download,0\n", "--log log.csv, line 2, time = -1.0: must be finite and at least 0"),
        ("time,kind,user\n1,download,9\n", "--log log.csv, line 2, user = 9: must be a user in [0, 8)"),
        ("time,kind,user\n1,lunch,0\n", "kind = 'lunch': must be one of download, upload, timeout"),
        ("when,what,who\n", "time,kind,user"),
        ("", "time"),
        ("time,kind,user\n1,up\u2028load,0", "--log log.csv, last line = '1,up\\u2028load,0': must be a whole line"),
        (
            "time,kind,user\n1,upload,0\r\n2,download,0",
            "--log log.csv, last line = '2,download,0': must be a whole line",
        ),
        (b"time,kind,user\n1,\xfcpload,0\n", "must be a file that can be read: it is not UTF-8 in line 2"),
        (None, "a file that can be read"),
    ],
)
def test_a_bad_log_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str | bytes | None,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    log = Path("log.csv")
    if text is not None:
        log.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    code, _, err = call(capsys, "--log", str(log))
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
