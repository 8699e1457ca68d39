"""``secagg-spec audit-participation``: what it says of a log, what it writes, and one clear line for bad input."""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec import resources, schemas
from secagg_spec.cli import main
from secagg_spec.protocols.heterosag.plan import PRESETS

TRIANGLE = "round,users\n1,0 1\n2,1 2\n3,0 2\n4,\n5,3 4\n"


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["audit-participation", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that tells three models."""
    path = tmp_path / "log.csv"
    path.write_text(TRIANGLE, encoding="utf-8")
    return path


def written(path: Path) -> dict[str, Any]:
    """What the command wrote, which fits its schema."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert not list(schemas.faults(document, schemas.load(resources.root("spec") / "audit.schema.json")))
    return document


def test_the_first_line_is_the_verdict(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    code, out, err = call(capsys, log, "--users", 6)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0] == "3 of 6 users are recoverable; the first, user 0, after round 3"
    assert "log: 5 rounds, 1 to 5, 1 without survivors: 4; 6 users" in lines
    assert "in no sum: user 5" in lines
    assert "strong privacy: 1, the fewest users that are in the same sums: such as user 0" in lines
    assert "weak privacy: 1, the fewest users in a combination of sums" in lines
    assert "fairness gap: 2/5 (about 0.4), cardinality: 8/5 (about 1.6)" in lines
    assert "     0      3      3  x[0] = 1/2 s[1] - 1/2 s[2] + 1/2 s[3]" in lines
    assert "     2      3      3  x[2] = -1/2 s[1] + 1/2 s[2] + 1/2 s[3]" in lines


def test_a_terminal_says_what_takes_long_until_the_verdict(
    capsys: pytest.CaptureFixture[str], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for arguments, code, rest in (
        ((), 1, ""),
        (("--user", "9"), 2, "secagg-spec audit-participation: --user = '9': must be "),
    ):
        found, _, err = call(capsys, log, *arguments)
        assert (found, err.startswith("\r\x1b[2K  0%  looking for combinations of sums ...")) == (code, code == 1)
        assert err.removesuffix("\r\x1b[2K").count("\n") == bool(rest)
        assert rest in err


@pytest.mark.parametrize(
    ("text", "arguments", "code", "verdict"),
    [
        (
            "round,users\n0,0 1 2\n1,3 4 5\n",
            (),
            0,
            "each user is always summed together with at least 2 others or in no sum",
        ),
        ("round,users\n0,0 1\n", ("--users", "2"), 0, "each user is always summed together with at least 1 other"),
        ("round,users\n0,0 1\n1,1 2\n", (), 0, "but nobody stays together with user 0 in all sums"),
        ("round,users\n0,\n", ("--users", "2"), 0, "no model is recoverable: nobody is in a sum"),
        ("round,users\n", (), 0, "no model is recoverable: nobody is in a sum"),
        ("round,users\n7,0\n", (), 1, "1 of 1 users is recoverable after round 7"),
        ("round,users\n0,0 1\n", ("--privacy", "3"), 1, "no model is recoverable; each user is always summed together"),
        ("round,users\n0,0 1\n", ("--privacy", "2"), 0, "no model is recoverable; each user is always summed together"),
    ],
)
def test_verdicts_and_exit_codes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, arguments: tuple[str, ...], code: int, verdict: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    found, out, err = call(capsys, path, *arguments)
    assert (found, err) == (code, "")
    assert verdict in out.splitlines()[0]
    assert ("below --privacy 3: such as users 0, 1\n" in out) == ("3" in arguments)
    assert ("users who never took part are unknown" in out) == ("--users" not in arguments)


def test_a_log_without_users_has_no_privacy_to_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("round,users\n4,\n", encoding="utf-8")
    code, out, _ = call(capsys, path, "--users", 2, "--privacy", 2)
    assert code == 0
    assert "below" not in out
    assert "\nlog: 1 round, 4, 1 without survivors: 4; 2 users\n" in out
    assert "\nstrong and weak privacy: no round has a sum, so there is none\n" in out


def test_a_user_is_told_in_full(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    _, out, _ = call(capsys, log, "--user", 1)
    assert (
        "user 1 is recoverable after round 3:\nx[1] =\n  1/2 s[1]\n  + 1/2 s[2]\n  - 1/2 s[3]\noff by at most 3" in out
    )
    assert re.search(
        r"no sum up to round 2 changes when all of these change together: x\[1\] by ([+-])1, x\[0\] by (?!\1)", out
    )
    _, out, _ = call(capsys, log, "--user", 3)
    pair = "x[3] by +1, x[4] by -1"
    assert f"user 3 is not recoverable:\n  no sum of the log changes when all of these change together: {pair}" in out
    _, out, _ = call(capsys, log, "--user", 5, "--users", 6)
    assert "user 5 is not recoverable:\n  no sum of the log has it" in out


def test_names_are_those_of_the_roster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    roster, path = tmp_path / "roster.txt", tmp_path / "log.csv"
    roster.write_text("Ann\nBob\nEve Smith\n", encoding="utf-8")
    path.write_text("round,user\n0,Ann\n0,Bob\n0,Eve Smith\n1,Bob\n1,Eve Smith\n", encoding="utf-8")
    _, out, _ = call(capsys, path, "--roster", roster, "--privacy", 2)
    assert out.startswith(
        "1 of 3 users is recoverable after round 1\nthe strong privacy is 1, below --privacy 2: such as user Ann\n"
    )
    assert "x[Ann] = s[0] - s[1]" in out
    _, out, _ = call(capsys, path, "--roster", roster, "--user", "Eve Smith")
    assert "x[Eve Smith] by +1, x[Bob] by -1" in out


@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=7), st.sampled_from([None, 0, 5]))
@settings(deadline=None)
def test_what_is_written_is_exact(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[set[int]], user: int | None
) -> None:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "log.json").write_text(json.dumps({"users": 6, "rounds": [sorted(users) for users in rounds]}))
    asked = ["--all"] if user is None else ["--user", str(user)]
    code = main(["audit-participation", str(folder / "log.json"), "--json", str(folder / "out.json"), *asked])
    document = written(folder / "out.json")
    assert code == int(bool(document["recoverable"]))
    for entry in document["recoverable"]:
        assert ("combination" in entry) == (user is None or str(user) == entry["user"])
        factors = {part["round"]: Fraction(part["factor"]) for part in entry.get("combination", [])}
        for member in range(6) if factors else []:
            total = sum(factor for at, factor in factors.items() if member in rounds[at])
            assert total == (str(member) == entry["user"])
        if factors:
            assert Fraction(entry["drift"]) == sum(abs(factor) * len(rounds[at]) for at, factor in factors.items())
    for shift in document.get("unseen", []):
        until = next((one["after_round"] for one in document["recoverable"] if one["user"] == str(user)), len(rounds))
        changes = {int(name): Fraction(change) for name, change in shift["changes"].items()}
        assert changes[user or 0]
        assert all(sum(changes.get(member, 0) for member in users) == 0 for users in rounds[:until])


def test_many_users_are_cut_and_shown_on_demand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    random, path = np.random.default_rng(2), tmp_path / "log.csv"
    rows = [np.flatnonzero(random.random(40) < 0.3) for _ in range(60)]
    path.write_text("round,users\n" + "".join(f"{at},{' '.join(map(str, row))}\n" for at, row in enumerate(rows)))
    _, out, _ = call(capsys, path, "--json", tmp_path / "out.json")
    assert "\nthe findings, with combinations for 10 of 40 recoverable users (--all: for all), are in " in out
    assert sum("combination" in one for one in written(tmp_path / "out.json")["recoverable"]) == 10
    assert "and 30 more (--all shows them, --user NAME shows one in full)" in out
    assert len(re.findall(r"^ +\d+ +\d+ +\S+  .* sums, factors of up to \d+ digits$", out, re.M)) == 10
    _, out, _ = call(capsys, path, "--all", "--json", tmp_path / "out.json")
    assert "\nall findings are in " in out
    assert len(re.findall(r"^ +\d+ +\d+ +\S+  .* sums, factors of up to \d+ digits$", out, re.M)) == 40
    assert all(len(line) <= 120 for line in out.splitlines())


def test_survivors_of_heterosag_are_audited_cell_by_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, p = tmp_path / "log.csv", PRESETS["tiny"]
    everyone = " ".join(map(str, range(p.N)))
    path.write_text(f"round,users\n0,{everyone}\n1,{everyone.removesuffix(' 11')}\n", encoding="utf-8")
    code, out, _ = call(capsys, path, "--heterosag", "tiny", "--json", tmp_path / "out.json")
    assert code == 1
    assert out.startswith("1 of 12 users is recoverable after round 1\n")
    assert f"log: 2 rounds, 0 to 1; 12 users, {p.count} segments" in out
    assert re.search(r"^ +11 +1 +0 +\d+  x\[11\] = s\[0\]\{[\d, to]+11\} - s\[1\]\{[\d, to]+10\}$", out, re.M)
    [entry] = written(tmp_path / "out.json")["recoverable"]
    assert [part["factor"] for part in entry["combination"]] == ["1", "-1"]
    _, plain, _ = call(capsys, path)
    assert plain.startswith("1 of 12 users is recoverable after round 1\n")
    code, out, _ = call(capsys, path, "--heterosag", "default", "--users", 12, "--groups", 2, "--colluders", 1)
    assert (code, out.splitlines()[0]) == (1, "1 of 12 users is recoverable after round 1")


def test_logs_of_cells_are_audited_as_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "round,segment,users\n0,0,0 1\n0,0,2 3\n0,1,0 1 2 3\n1,0,0 1\n1,0,2 3\n1,1,1 2 3\n", encoding="utf-8"
    )
    code, out, _ = call(capsys, path, "--user", 1)
    assert code == 1
    assert out.startswith("1 of 4 users is recoverable after round 1\n")
    assert "strong privacy: 1, the fewest users that are in the same sums: such as user 0, in segment 1" in out
    assert "no sum of the log, in segment 0 changes" in out
    _, out, _ = call(capsys, path)
    assert "x[0] = s[0]{0, 1, 2, 3} - s[1]{1, 2, 3}" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.csv",), "missing.csv: No such file or directory"),
        ((".",), "Is a directory"),
        (("log.csv", "--users", "x"), "--users = 'x': must be an integer"),
        (("log.csv", "--users", "0"), "--users = 0: must be an integer in [1, 16777216]"),
        (("log.csv", "--users", "16777217"), "--users = 16777217: must be an integer in [1, 16777216]"),
        (
            ("log.csv", "--users", "4"),
            "log.csv, line 6, user = '4': must be a user of the roster, a whole number in [0, 4)",
        ),
        (("log.csv", "--users", "4", "--roster", "log.csv"), "--users and --roster do not go together"),
        (("log.csv", "--roster", "missing.txt"), "--roster missing.txt: No such file"),
        (("log.csv", "--user", "7"), "--user = '7': must be a user of the roster, one of 5 names (0, 1, 2, …)"),
        (("log.csv", "--privacy", "-1"), "--privacy = '-1': must be"),
        (("log.csv", "--user", "0", "--all"), "--user and --all do not go together"),
        (("log.csv", "--groups", "3"), "--groups needs --heterosag"),
        (("log.csv", "--heterosag", "tiny", "--users", "4"), "users = 4: must be enough for"),
        (("log.csv", "--heterosag", "tiny", "--colluders", "99"), "--colluders = 99: must be an integer in [1, 10]"),
        (("log.csv", "--json", "missing/x.json"), "there is no folder missing"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str],
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(log.parent)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.requirement("MRA-24", "MRA-25", "MRA-26", "MRA-15")
@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("round,users\n0,0\n2,0\n", (), "missing rounds = 1: must be none"),
        ("round,users\n0,0\n0,1\n", (), "line 3, round = 0: must be one that has no line yet"),
        ("round,user\n0,0\n0,0\n", (), "line 3, user = '0': must be named once in round 0"),
        ("round,users\n0,5\n", ("--users", "5"), "line 2, user = '5': must be a user of the roster"),
    ],
)
def test_logs_that_cannot_be_audited_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, arguments: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    code, out, err = call(capsys, path, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_exit_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit-participation", "--help"])
    printed = capsys.readouterr().out
    assert "exit codes:\n  0  no user is recoverable" in printed
    for form in ("round,users", "round,user ", "round,segment,users"):
        assert f"\n  {form}" in printed
