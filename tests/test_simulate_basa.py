"""``secagg-spec simulate basa``: what a person sees of a buffer of BASA, and that sums are compared with plain ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from secagg_spec.cli import main
from secagg_spec.protocols.basa.cores import Parameters, recover

RIGHT = "and it is right: 6 of 6 elements equal the plain one.\n"
VISIT = re.compile(r" +(\d+) +(\d+) +(\d+) +(\d+|-) +(\d+|-) +(\d+|-)  (.+)")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["simulate", "basa", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def visits(out: str) -> list[tuple[str, ...]]:
    """Position, user, staleness, weight, opened and sealed boxes, and what comes of it, of each visit."""
    return [found.groups() for line in out.splitlines() if (found := VISIT.fullmatch(line))]


def sums(out: str) -> list[str]:
    """The lines on contributors and sums."""
    return [line for line in out.splitlines() if line.startswith(("sum over", "over c_l", "of the real"))]


def test_it_shows_a_full_buffer_box_by_box(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys)
    assert code == 0
    assert "K = 6 updates in a full buffer, S = 0 spare positions; N = 8 users, T = 2 may collude" in out
    assert "publishes and signs 12 public keys, 384 bytes" in out
    report = visits(out)
    assert [(row[0], row[4], row[5]) for row in report] == [(str(k), str(k), str(6 - k)) for k in range(6)]
    assert [row[6].split() for row in report] == [["."] * (k + 1) + [str(k + 1)] * (5 - k) for k in range(6)]
    assert f"over c_l times {sum(int(row[3]) for row in report)}:" in out
    assert "releases the self keys of 6 positions\n" in out
    assert "opens 6 self boxes and 0 pair boxes" in out
    assert "PositionUpload: 6 messages" in out
    assert RIGHT in out


def test_users_that_time_out_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--timeout", "1:before", "--timeout", "2", "--timeout", "4:late")
    assert code == 0
    assert "K = 6 updates in a full buffer, S = 2 spare positions; N = 9 users" in out
    report = visits(out)
    assert [row[0] for row in report] == ["0", "1", "1", "2", "3", "4", "5", "6", "7"]
    assert report[1][3:] == ("-", "-", "-", "times out before it has the key: the position is free again")
    assert report[3][3:] == ("-", "-", "-", "has the key and times out: the position is skipped")
    late = "has the key, times out, and uploads late: the server refuses it, the position is skipped"
    assert report[5][3:] == ("-", "3", "4", late)
    assert report[4][6].split() == [".", ".", ".", ".", "3", "3", "3", "3"]
    assert "the self keys of 6 positions, and the pair keys of positions 2, 4" in out
    assert "the server opens 6 self boxes and 5 pair boxes" in out
    out_of_it = {int(report[at][1]) for at in (1, 3, 5)}
    assert out_of_it.isdisjoint(_contributors(out))
    assert RIGHT in out


def test_one_of_a_thing_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--buffer", "3", "--timeout", "1")
    assert "S = 1 spare position;" in out
    assert "and the pair key of position 1\n" in out
    assert "opens 3 self boxes and 1 pair box," in out
    assert "CloseRequest: 1 message, 30 bytes" in out
    _, out, _ = call(capsys, "--buffer", "3", "--timeouts", "void", "--timeout", "1")
    assert "without a sum: the update that waited is lost" in out


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--buffer", "11", "--length", "1"], ["--buffer", "3", "--users", "12345"]])
def test_columns_stay_in_line(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    _, out, _ = call(capsys, *options)
    lines = out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("  position"))
    header, report = lines[at], lines[at + 1 : lines.index("", at)]
    assert {len(line) for line in report} == {len(report[0])}
    for name in ("position", "user", "staleness", "weight", "opens", "seals"):
        end = header.index(name) + len(name)
        assert all(line[end - 1] != " " and line[end : end + 2] == "  " for line in report)


def _contributors(out: str) -> set[int]:
    [line] = [line for line in out.splitlines() if line.startswith("sum over users ")]
    users = line.removeprefix("sum over users ").split(", modulo")[0]
    ranges = [part.split(" to ") for part in users.split(", ")]
    return {user for part in ranges for user in range(int(part[0]), int(part[-1]) + 1)}


def test_contributors_are_those_whose_visit_had_a_weight(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--timeout", "0:key", "--seed", "3")
    assert _contributors(out) == {int(row[1]) for row in visits(out) if row[3] != "-"}


@pytest.mark.parametrize("options", [[], ["--timeout", "2", "--timeout", "3:before"], ["--timeouts", "void"]])
def test_both_encryptions_give_the_same_sum(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    common = ["--buffer", "4", *options]
    plain, attributes = (call(capsys, *common, "--encryption", name) for name in ("per-position", "cp-abe"))
    assert plain[0] == attributes[0] == 0
    assert sums(plain[1]) == sums(attributes[1])
    assert len(sums(plain[1])) == 3
    assert visits(plain[1]) == visits(attributes[1])
    assert "one public key, 192 bytes" in attributes[1]
    assert RIGHT in attributes[1]


@pytest.mark.parametrize("when", ["3", "3:key", "3:late"])
def test_a_void_epoch_ends_without_a_sum(capsys: pytest.CaptureFixture[str], when: str) -> None:
    code, out, err = call(capsys, "--timeouts", "void", "--timeout", when)
    assert (code, err) == (1, "")
    assert visits(out)[-1][6].endswith("the epoch is void")
    assert "The epoch ends without a sum: 3 updates that waited are lost.\n" in out
    assert "sum over" not in out
    assert out.endswith("\nWith no user that times out with the key, or with --timeouts settle, it can end well.\n")
    assert call(capsys, "--timeouts", "settle", "--timeout", when)[0] == 0


def test_a_timeout_before_the_key_voids_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--timeouts", "void", "--timeout", "3:before")
    assert code == 0
    assert "releases nothing" in out
    assert RIGHT in out


def test_too_few_updates_end_without_a_sum(capsys: pytest.CaptureFixture[str]) -> None:
    skipped = [part for at in range(3) for part in ("--timeout", str(at))]
    code, out, err = call(capsys, *skipped, "--spares", "0")
    assert (code, err) == (1, "")
    said = "the authority does not close it: 3 updates are accepted, and 4 are needed."
    assert out.splitlines()[-2] == f"The epoch ends without a sum: {said}"
    assert out.endswith("\nWith fewer timeouts, or spare positions (--spares), it can end well.\n")
    code, out, _ = call(capsys, *skipped, "--spares", "1")
    assert code == 0
    assert "self keys of 4 positions, and the pair keys of positions 0, 1, 2" in out


def test_several_buffers_take_users_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--buffers", "3", "--timeout", "2")
    assert code == 0
    assert out.count(RIGHT) == 3
    assert len(set(re.findall(r"session ([0-9a-f]{32})", out))) == 3
    users = [row[1] for row in visits(out)]
    assert len(users) == len(set(users)) == 21
    assert "one buffer: a user waits 10.00 on average, the last one leaves at 21" in out
    assert " 3 buffers: a user waits 3.00 on average, the last one leaves at 7" in out


def test_one_void_buffer_of_several_is_enough_for_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--buffers", "2", "--timeouts", "void", "--timeout", "0")
    assert code == 1
    assert out.count("The epoch ends without a sum") == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--modulus", "769", "--length", "1"],
        ["--modulus", str(2**32), "--seed", str(2**64 - 1)],
        ["--buffer", "3", "--users", "3"],
        ["--buffer", "20", "--spares", "5", "--timeout", "19:before"],
        ["--colluders", "4"],
        ["--length", "20000"],
    ],
    ids=" ".join,
)
def test_these_runs_end_well(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    code, out, err = call(capsys, *options)
    assert code == 0, err
    assert RIGHT.partition("6 of 6")[2] in out


def test_a_seed_decides_everything(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (call(capsys, "--seed", seed)[1] for seed in ("5", "5", "6"))
    assert first == again
    assert sums(first) != sums(other)


def test_a_wrong_sum_is_not_passed_over(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    def shifted(parameters: Parameters, *masks: Any) -> Any:
        return parameters.ring.add(recover(parameters, *masks), np.ones(parameters.d, dtype=np.uint64))

    monkeypatch.setattr("secagg_spec.protocols.basa.server.recover", shifted)
    with pytest.raises(AssertionError, match="the plain sum"):
        call(capsys)


HUGE = str(10**30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--buffer", "2"], "buffer = 2: must be an integer in [3, 65536]"),
        (["--buffer", HUGE], "must be an integer in [3, 65536]"),
        (["--timeout", "6"], "--timeout = 6: must be a position that is reached before the buffer has K = 6 updates"),
        (["--spares", "3", "--timeout", "1", "--timeout", "7"], "--timeout = 7: must be a position that is reached"),
        (
            ["--buffer", "260", "--length", "1"],
            "users * length + 32 * positions**2 * buffers = 2163460: must be at most",
        ),
        (["--buffer", "65536"], "must be at most 2097152 elements; give a smaller --buffer, fewer --buffers,"),
        (["--buffer", "six"], "--buffer"),
        (["--spares", "-1"], "spares = -1: must be an integer in [0, 65536]"),
        (["--spares", HUGE], "must be an integer in [0, 65536]"),
        (["--spares", "1", "--timeouts", "void"], "--spares = 1: must be 0 with --timeouts void"),
        (["--timeout", "x"], "--timeout = 'x': must be POSITION, or POSITION:before, :key or :late"),
        (["--timeout", "3:"], "must be POSITION, or"),
        (["--timeout", "3:never"], "must be POSITION, or"),
        (["--timeout=-1"], "must be POSITION, or"),
        (["--timeout", "\u00b2"], "must be POSITION, or"),
        (["--timeout", HUGE], "must be POSITION, or"),
        (["--timeout", "99"], "--timeout = 99: must be a position in [0, 7): K = 6, S = 1"),
        (["--timeout", "1", "--timeout", "1:late"], "--timeout = '1:late': must be one for each position"),
        (["--timeouts", "skip"], "choose from"),
        (["--encryption", "rsa"], "choose from"),
        (["--buffers", "0"], "buffers = 0: must be an integer in [1, 64]"),
        (["--buffers", HUGE], "must be an integer in [1, 64]"),
        (["--colluders", "0"], "colluders = 0: must be an integer in [1, 4]"),
        (["--colluders", "5"], "colluders = 5: must be an integer in [1, 4]"),
        (["--colluders", HUGE], "must be an integer in [1, 4]"),
        (["--modulus", "1"], "modulus = 1: must be an integer in [2, 4294967296]"),
        (["--modulus", "768"], "modulus = 768: must be at least 769, to carry weights up to 64"),
        (["--modulus", HUGE], "must be an integer in [2, 4294967296]"),
        (["--users", "5"], "users = 5: must be an integer >= 6"),
        (["--users", "13", "--buffers", "2", "--timeout", "1:before"], "users = 13: must be an integer >= 14"),
        (["--users", HUGE], "must be at most 2097152 elements"),
        (["--length", "0"], "length = 0: must be an integer >= 1"),
        (["--length", HUGE], "must be at most 2097152 elements"),
        (["--seed", "-1"], "seed = -1"),
        (["--seed", HUGE], "seed = "),
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
    assert err.count("\n") == 1
    assert "Traceback" not in err
