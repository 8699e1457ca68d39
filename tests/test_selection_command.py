"""``secagg-spec selection``: what it prints, draws and writes, and one clear line for bad input."""

from __future__ import annotations

import builtins
import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from secagg_spec.cli import main
from secagg_spec.selection import metrics
from secagg_spec.selection.weights import least_weight

SMALL = ("--users", "24", "--per-round", "6", "--privacy", "3,2", "--rounds", "30", "--dropout", "0.1,0.3")
NAMES = ["Random", "Weighted Random", "Partition", "Multi-RoundSecAgg, T=3", "Multi-RoundSecAgg, T=2"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["selection", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_it_prints_a_row_for_each_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *SMALL)
    assert (code, err) == (0, "")
    rows = [line for line in out.splitlines() if re.search(r"\d\.\d{3}", line)]
    assert [re.split(r"  +", row)[0] for row in rows] == NAMES
    assert [re.split(r"  +", row)[1:4] for row in rows] == [
        ["1", "1", "1"],
        ["1", "1", "1"],
        ["6", "6", "6"],
        ["3", "3", "3"],
        ["2", "2", "2"],
    ]
    assert "24 users, 6 in each of 30 rounds, seed 0" in out
    assert "assigned to users at random, 12 users for each" in out
    assert "holds     MRS-THM1P" in out
    assert all(len(line) <= 120 for line in out.splitlines())


@pytest.mark.slow
def test_the_same_seed_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    first = call(capsys, *SMALL)
    assert call(capsys, *SMALL) == first
    assert call(capsys, *SMALL, "--seed", "1") != first


def test_equal_rates_and_no_partition_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--users", "20", "--per-round", "8", "--privacy", "4", "--rounds", "5", "--dropout", "1/4")
    _, out, _ = call(capsys, *given)
    assert "each user drops out with probability 0.25, independently in each round" in out
    assert "no partition: 8 does not divide 20" in out
    assert "\nPartition" not in out
    _, out, _ = call(capsys, "--users", "7", "--per-round", "1", "--privacy", "1", "--rounds", "2")
    assert "1 or 2 users for each" in out


def test_a_scheme_without_a_round_is_compared_with_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ("--users", "20", "--per-round", "4", "--privacy", "2", "--rounds", "3", "--dropout")
    note = "\nno round: there is no sum, and so no privacy to compare\n"
    assert note in call(capsys, *given, "1")[1]
    assert note not in call(capsys, *given, "0")[1]
    path = tmp_path / "x.json"
    some = ("--users", "8", "--per-round", "4", "--privacy", "2", "--rounds", "5", "--dropout", "0.4")
    _, out, _ = call(capsys, *some, "--seed", "3", "--json", str(path))
    assert re.search(r"^Partition +4  no round  no round  ", out, re.MULTILINE)
    assert "\n  no round  MRS-OBS2  the partition has the best privacy and the worst cardinality (privacy no" in out
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [one["holds"] for one in found["statements"]] == [True, None]
    (partition,) = (one for one in found["schemes"] if one["name"] == "Partition")
    assert (partition["strong"], partition["weak"]) == (0, [[0, 0]] * 5)
    assert all(one["strong"] > 0 for one in found["schemes"] if one is not partition)


def test_json_holds_all_numbers_of_all_rounds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    _, out, _ = call(capsys, *SMALL, "--json", str(path))
    assert f"all numbers are in {path}" in out
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [scheme["name"] for scheme in found["schemes"]] == NAMES
    assert sorted(found["dropout"]) == ["1/10"] * 12 + ["3/10"] * 12
    for scheme in found["schemes"]:
        log = np.array([[user in users for user in range(24)] for users in scheme["log"]])
        assert scheme["strong"] == metrics.strong_privacy(log)
        assert [Fraction(gap) for gap in scheme["fairness_gap"]] == metrics.fairness_gaps(log)
        assert [Fraction(mean) for mean in scheme["cardinality"]] == metrics.cardinalities(log)
        low, high = scheme["weak"][-1]
        assert low <= least_weight(log).high
        assert high >= least_weight(log).low


def test_no_output_is_written_over_another_or_over_other_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "figure-3.svg"
    code, out, err = call(capsys, *SMALL, "--out", str(tmp_path), "--json", str(picture))
    assert (code, out) == (2, "")
    assert f"--json {picture}: --out draws a picture there, and one of them would be lost" in err
    assert list(tmp_path.iterdir()) == []
    for name in ("figure-3.svg", "figure-5.png"):
        (tmp_path / name).write_text("precious")
        code, out, err = call(capsys, *SMALL, "--out", str(tmp_path))
        assert (code, out) == (2, "")
        assert f"--out {tmp_path / name}: this file would be lost" in err
        assert (tmp_path / name).read_text() == "precious"
        (tmp_path / name).unlink()


@pytest.mark.slow
def test_pictures_are_drawn_with_the_names_of_the_paper(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    code, out, _ = call(capsys, *SMALL, "--out", str(tmp_path / "new"))
    assert code == 0
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == [f"figure-{number}.{kind}" for number in (3, 4, 5) for kind in ("png", "svg")]
    assert "drawn: " in out
    for path in (tmp_path / "new").glob("*.svg"):
        assert ET.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")
        assert str(tmp_path) not in path.read_text(encoding="utf-8")
    for path in (tmp_path / "new").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    texts = re.findall(r"<!-- (.*?) -->", (tmp_path / "new" / "figure-4.svg").read_text(encoding="utf-8"))
    assert [text for text in texts if text in NAMES] == NAMES
    assert {"number of rounds", "aggregation fairness gap (share of rounds)"} <= set(texts)
    before = (tmp_path / "new" / "figure-5.svg").read_bytes()
    call(capsys, *SMALL, "--out", str(tmp_path / "new"))
    assert (tmp_path / "new" / "figure-5.svg").read_bytes() == before


def test_without_matplotlib_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def absent(name: str, *others: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", absent)
    code, out, err = call(capsys, *SMALL, "--out", str(tmp_path / "new"))
    assert (code, out) == (2, "")
    assert "pip install 'secagg-spec[plot]'" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()
    assert call(capsys, *SMALL)[0] == 0


def test_progress_is_for_terminals_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    _, out, err = call(capsys, *SMALL)
    assert "Partition: privacy" in err
    assert "[#" in err
    assert err.endswith("\r\x1b[2K")
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--users", "0"], "users = 0: must be an integer in [1, 1000]"),
        (["--users", "1001"], "users = 1001: must be an integer in [1, 1000]"),
        (["--users", "x"], "users = 'x': must be a whole number"),
        (["--users", "\u00b2"], "must be a whole number"),
        (["--users", "6"], "--per-round = 12: must be an integer in [1, 6]"),
        (["--per-round", "0"], "--per-round = 0: must be an integer in [1, 120]"),
        (["--per-round", "1.5"], "--per-round = '1.5': must be a whole number"),
        (["--privacy", "5"], "privacy = 5: must be a divisor of 12 and of 120, and 4 or 6 is next to it"),
        (["--privacy", "24"], "privacy = 24: must be a divisor of 12 and of 120, and 12 is next to it"),
        (["--privacy", "0"], "privacy = 0: must be a divisor of 12 and of 120, and 1 is next to it"),
        (["--users", "122"], "privacy = 6: must be a divisor of 12 and of 122, and 2 is next to it"),
        (["--privacy", ""], "privacy = []: must be one number or several different ones"),
        (["--privacy", "3,3"], "privacy = [3, 3]: must be one number or several different ones"),
        (["--privacy", "3,x"], "--privacy = 'x': must be whole numbers with commas between"),
        (["--rounds", "0"], "rounds = 0: must be an integer in [1, 10000]"),
        (["--dropout", "1.5"], "dropout = '1.5': must be a probability in [0, 1]"),
        (["--dropout=-0.1"], "dropout = '-0.1': must be a probability in [0, 1]"),
        (["--dropout", "nan"], "dropout = 'nan': must be a probability in [0, 1] such as 0.1 or 1/10"),
        (["--dropout", "1e999999999"], "must be a probability in [0, 1] such as 0.1 or 1/10"),
        (["--dropout", "1/0"], "dropout = '1/0': must be a probability in [0, 1] such as"),
        (["--dropout", "0_1"], "dropout = '0_1': must be a probability in [0, 1] such as"),
        (["--dropout", ""], "dropout = '': must be a probability in [0, 1] such as"),
        (["--dropout", "0.1,,0.2"], "dropout = '': must be a probability in [0, 1] such as"),
        (
            ["--users", "2", "--per-round", "2", "--privacy", "2", "--dropout", "0.1,0.2,0.3"],
            "random order and as equally",
        ),
        (["--seed", "-1"], "seed = -1: must be an integer in [0, 4294967295]"),
        (["--json", "/"], "--json /: this is a folder, not a file"),
        (["--json", "/nowhere/x.json"], "--json /nowhere/x.json: there is no folder /nowhere"),
        (["--out", "/dev/null/x"], "--out /dev/null/x: /dev/null is not a folder"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("secagg-spec selection: ")
    assert err.count("\n") == 1
