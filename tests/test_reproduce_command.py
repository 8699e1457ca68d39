"""``secagg-spec reproduce``: what it says before and after a run, what it writes, and one clear line for bad input."""

from __future__ import annotations

import builtins
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from secagg_spec.cli import main
from secagg_spec.commands import reproduce
from secagg_spec.experiments import catalogue, figures, progress, results, sweeps
from tests.experiments import toy


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MODULES", toy.MODULES)
    monkeypatch.delenv("SECAGG_SPEC_DATA", raising=False)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["reproduce", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def toys(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the toy in this process."""
    return call(capsys, "toy", "--jobs", "1", "--out", str(folder), *arguments)


@pytest.mark.slow
def test_a_run_says_its_verdict_and_writes_its_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = toys(capsys, tmp_path)
    assert (code, err) == (0, "")
    assert "toy: Numbers that are drawn (no paper, figure 0)" in out
    assert "preset default: data = none, seeds = 4" in out
    assert "CONFIRMED: BAS-FIG1, toy: The secure scheme is as accurate as the plain one." in out
    assert "accuracy, secure less plain: -0.001, -0.001, -0.001, -0.001" in out
    assert "mean -0.001, interval [-0.001, -0.001]; claimed >= -0.01" in out
    assert "processor time: training 16.0 s, aggregation 4.0 s; elapsed time, summed over the cells: " in out
    assert "secure: 4 rounds by the whole protocol, 8 by summing quantised updates; 12 numbers clipped" in out
    assert sorted(path.name for path in (tmp_path / "toy").iterdir()) == [
        "accuracy.png",
        "accuracy.svg",
        "cells",
        "results.csv",
        "results.json",
    ]
    for name in ("accuracy.png", "accuracy.svg", "results.csv", "results.json"):
        assert f"    {tmp_path / 'toy' / name}" in out.splitlines()
    assert results.read(tmp_path / "toy" / "results.json")["preset"] == "default"
    assert all(len(line) <= 110 or str(tmp_path) in line for line in out.splitlines())


@pytest.mark.slow
@pytest.mark.requirement("EXP-03", "EXP-09")
def test_cells_that_diverged_and_samples_that_nobody_holds_are_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, ended = results.document, {"diverged": 7, "why": "a number is not finite", "left_out": 1200}

    def document(*arguments: Any) -> dict[str, Any]:
        content = right(*arguments)
        content["results"][2]["found"] = {**content["results"][2]["found"], **ended}
        return content

    assert "cells diverged" not in toys(capsys, tmp_path)[1]
    monkeypatch.setattr(results, "document", document)
    said = " ".join(toys(capsys, tmp_path)[1].split())
    assert "1 of 8 cells diverged, and count with their accuracy before that; the first in round 7: a num" in said
    assert "1,200 training samples are held by no user" in said


@pytest.mark.requirement("EXP-21")
def test_statements_and_bounds_are_said_before_anything_is_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = []

    def run(*arguments: Any, **options: Any) -> sweeps.Swept:
        before.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "run", run)
    assert toys(capsys, tmp_path)[0] == 130
    said = " ".join(before[0].split())
    assert "statements, each decided by the mean over the seeds and its 95 % interval:" in said
    assert "BAS-FIG1, toy: The secure scheme is as accurate as the plain one." in said
    assert "accuracy, secure less plain >= -0.01" in said


@pytest.mark.slow
@pytest.mark.requirement("EXP-23")
def test_fewer_seeds_decide_nothing_and_it_is_said_before(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = toys(capsys, tmp_path, "--seeds", "3")
    assert "nothing can be decided: seeds = 3, and 4 are needed" in out
    assert "NOT CONFIRMED AT THIS SCALE: BAS-FIG1" in out
    content = results.read(tmp_path / "toy" / "results.json")
    assert (content["settings"]["seeds"], content["asked"]) == (3, 4)
    _, out, _ = toys(capsys, tmp_path, "--seeds", "5")
    assert "nothing can be decided" not in out
    assert "CONFIRMED: BAS-FIG1" in out


@pytest.mark.slow
@pytest.mark.requirement("EXP-25")
def test_kept_cells_are_used_unless_anew(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = toys(capsys, tmp_path, "--preset", "tiny")[1]
    _, out, err = toys(capsys, tmp_path)
    assert "toy: 6 of 8 cells are kept from before" in err
    assert f"the results in {tmp_path / 'toy'} will be replaced" in out
    assert "will be replaced" not in first
    assert toys(capsys, tmp_path, "--anew")[2] == ""


@pytest.mark.slow
def test_a_cell_that_fails_is_named_and_the_others_are_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = call(capsys, "toy-fails", "toy", "--jobs", "1", "--out", str(tmp_path))
    assert code == 1
    assert "toy-fails: 1 of 6 cells ended with an error, so nothing is decided:" in err
    assert "ZeroDivisionError: nothing to divide by (toy.py, line" in err
    assert "scheme = secure, seed = 1" in " ".join(err.split())
    assert not (tmp_path / "toy-fails" / "results.json").exists()
    assert len(list((tmp_path / "toy-fails" / "cells").iterdir())) == 5
    assert "CONFIRMED: BAS-FIG1" in out


def test_of_many_errors_the_first_ones_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "run_cell", lambda *task: "ValueError: all the same")
    code, _, err = toys(capsys, tmp_path, "--seeds", "5")
    assert code == 1
    assert "toy: 10 of 10 cells ended with an error" in err
    assert err.count("ValueError: all the same, in the cell scheme = ") == 8
    assert "\n  and 2 more\n" in err


@pytest.mark.slow
def test_names_that_are_given_twice_are_run_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = call(capsys, "toy", "toy", "--jobs", "1", "--out", str(tmp_path))
    assert (code, out.count("toy: Numbers that are drawn")) == (0, 1)


@pytest.mark.slow
def test_all_stands_for_every_experiment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MODULES", dict.fromkeys(("toy", "toy-fails"), toy.MODULE))
    code, out, err = call(capsys, "all", "--jobs", "1", "--out", str(tmp_path))
    assert code == 1
    assert "toy: Numbers" in out
    assert out.splitlines()[-3:] == [
        "           confirmed  refuted  not confirmed at this scale",
        "toy                1        -                            -",
        "toy-fails  a cell ended with an error",
    ]
    assert "toy-fails: 1 of 6" in err


@pytest.mark.slow
def test_all_leaves_out_what_has_no_such_preset_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MODULES", dict.fromkeys(("toy-fails", "toy"), toy.MODULE))
    code, out, _ = call(capsys, "all", "--preset", "tiny", "--jobs", "1", "--out", str(tmp_path))
    assert out.splitlines()[0] == "left out, since they have no preset tiny: toy-fails"
    assert code == 0
    assert not (tmp_path / "toy-fails").exists()
    code, out, err = call(capsys, "all", "--preset", "paper", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert "preset of toy-fails = 'paper'" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name an experiment, or all; secagg-spec reproduce --list shows them"),
        (("toi",), "experiment = 'toi': must be one of all, toy, toy-fails, toy-mnist; toy is close"),
        (
            ("toy", "heterosag-fig12"),
            "heterosag-fig12 is no experiment; HeteroSAg, figure 12 -> secagg-spec reproduce heterosag-fig10",
        ),
        (("all", "toy"), "give no other name"),
        (("toy", "--list"), "--list goes with no other option, and NAME is given"),
        (("--list", "--preset", "nope"), "--list goes with no other option, and --preset is given"),
        (("toy", "--preset", "defualt"), "preset of toy = 'defualt': must be one of tiny, default; default is close"),
        (("toy", "--data-dir", "/nowhere"), "--data-dir /nowhere: there is no such folder"),
        (("toy", "--jobs", "2", "--scheduler", "tcp://127.0.0.1:1"), "give only one of them"),
        (("toy", "--out", "/proc/x"), "--out /proc/x/toy/cells: "),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--seeds", "0", "is not a whole number of seeds, at least 1"),
        ("--seeds", "-1", "is not a whole number of seeds, at least 1"),
        ("--seeds", "x", "is not a whole number of seeds, at least 1"),
        ("--seeds", "1001", "1001 seeds are more than 1000"),
        ("--jobs", "0", "is not a whole number of jobs, at least 1"),
        ("--device", "tpu", "invalid choice"),
    ],
)
def test_bad_options_are_one_line(capsys: pytest.CaptureFixture[str], option: str, value: str, said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        call(capsys, "toy", option, value)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["accuracy.svg", "accuracy.png", "results.csv", "results.json"])
def test_a_file_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    whole = tmp_path / "toy" / "results.json"
    (tmp_path / "toy" / name).mkdir(parents=True)
    if not whole.exists():
        whole.write_text(results.BEGINS)
    code, out, err = toys(capsys, tmp_path)
    assert (code, out == "") == (2, name == "results.json")
    assert ("this is a folder, not a file" if name == "results.json" else "writable: Is a directory") in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["accuracy.svg", "mine.png", "results.csv", "results.json"])
def test_files_of_no_run_are_not_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / name).write_text("precious")
    code, out, err = toys(capsys, tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"secagg-spec reproduce: --out {tmp_path / 'toy' / name}: this file ")
    assert len(err.splitlines()) == 1
    assert [path.read_text() for path in (tmp_path / "toy").iterdir()] == ["precious"]


def test_data_that_is_missing_is_said_before_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "toy-mnist")
    assert (code, out) == (2, "")
    assert "unless --data-dir or SECAGG_SPEC_DATA names a folder with it" in err


def test_nothing_is_run_when_one_name_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = call(capsys, "toy", "toy-thing", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["joblib", "tqdm", "scipy", "threadpoolctl", "torch", "sklearn", "simpy", "PIL"])
def test_a_package_that_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(reproduce, "find_spec", lambda name: None if name == package else True)
    code, out, err = toys(capsys, tmp_path)
    assert (code, out) == (2, "")
    assert f"{package} is not installed: pip install 'secagg-spec[train]'" in err


def test_a_name_that_is_none_is_said_to_be_so_before_a_missing_package_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "find_spec", lambda name: None)
    code, _, err = call(capsys, "fig5")
    assert code == 2
    assert "fig5" in err
    assert "not installed" not in err


def test_a_missing_package_of_the_cluster_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return right(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    code, _, err = call(capsys, "toy", "--out", str(tmp_path), "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2
    assert "pip install 'secagg-spec[cluster]'" in err


def test_the_list_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--list")
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    for figure in figures.load():
        assert f"{figure.number} {figure.shows}"[:40] in said
        assert figure.stands in said
    assert all(len(line) <= 110 for line in out.splitlines())


def test_lines_say_how_much_is_left_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_RARER", 1e9)
    err = toys(capsys, tmp_path)[2].splitlines()
    assert [line.split(",")[0] for line in err] == [f"toy: {at}.0 of 8 cells" for at in range(1, 8)]
    assert all(line.endswith(" s left") for line in err)


class Screen(io.StringIO):
    """Says that it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_a_terminal_shows_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["reproduce", "toy", "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert re.search(r"toy: +\d+%\|.*\| \d\.0 of 8 cells \[\d\d:\d\d<.*\]", screen.getvalue())


@pytest.mark.slow
def test_results_do_not_change_with_a_second_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    toys(capsys, tmp_path)
    path = tmp_path / "toy" / "results.json"
    first = json.loads(path.read_text(encoding="utf-8"))
    toys(capsys, tmp_path)
    assert json.loads(path.read_text(encoding="utf-8")) == first
