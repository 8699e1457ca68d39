"""``secagg-spec reconstruct``: what it tells is true, and bad input is one clear line."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from secagg_spec.cli import main
from secagg_spec.commands import reconstruct
from secagg_spec.commands.reconstruct import Session, _data, _hidden, formula
from secagg_spec.experiments.sums import draw_log
from secagg_spec.learning import digits
from secagg_spec.privacy.reconstruction import combination
from secagg_spec.selection.batches import Parameters

LINE = re.compile(r"^ +(\d+) +(\d+) +(\d+) {3}(\(.*?\)) +(\(.*?\)) +([\d.]+) +([\d.]+)$", re.M)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["reconstruct", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@functools.cache
def default() -> tuple[int, str, str]:
    """What `call` returns without options."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["reconstruct"])
    return code, out.getvalue(), err.getvalue()


@pytest.mark.slow
def test_models_come_out_exactly_under_random_selection() -> None:
    code, out, err = default()
    assert code == 0
    assert err == "… 60 rounds of random selection\n… 60 rounds of batch partitioning\n"
    assert "random selection: 12 of 12 models are recovered" in out
    assert "max |error| of 12 recovered models: 0, exactly" in out
    lines = LINE.findall(out)
    assert [int(line[0]) for line in lines] == list(range(12))
    log = draw_log(Parameters(12, 4, 1), "random", 60, bytes(8))
    for user, after, taken, found, model, off, most in lines:
        rounds = combination(log, int(user))
        assert rounds is not None
        assert (int(after), int(taken)) == (rounds[-1][0] + 1, len(rounds))
        assert (found, off, most) == (model, "0", "0")


@pytest.mark.slow
def test_the_combination_that_is_shown_is_the_user() -> None:
    _, out, _ = default()
    user, below, terms = next(iter(re.findall(r"  x_(\d+) = 1/(\d+) \(([^)]*)\)", out)))
    log = draw_log(Parameters(12, 4, 1), "random", 60, bytes(8))
    numbers = re.findall(r"([+-] ?)?(\d+ )?s_(\d+)", re.sub(r"\s+", " ", terms))
    total = np.zeros(12, dtype=int)
    for sign, times, t in numbers:
        total += (-1 if sign.startswith("-") else 1) * int(times or 1) * log[int(t)]
    assert (total == int(below) * np.eye(12, dtype=int)[int(user)]).all()


@pytest.mark.slow
def test_batches_hide_models_and_the_command_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--users", "9", "--per-round", "6", "--privacy", "3", "--rounds", "20")
    assert "batch partitioning, T = 3: 0 of 9 models are recovered" in out
    user, one, other = (int(at) for at in re.findall(r"no combination is x_(\d+): users (\d+) and (\d+) are", out)[0])
    assert user in (one, other)
    assert one // 3 == other // 3
    assert "  the sums of 20 of 20 rounds stay as they are" in out
    models = re.findall(r"^    user +(\d+)   (\(.*?\)) +or else   (\(.*?\))$", out, re.M)
    assert [int(line[0]) for line in models] == [one, other]
    assert (models[0][1], models[0][2]) == (models[1][2], models[1][1])
    assert re.search(
        rf"the most that is learned about user {user}, after \d+ rounds:\n    x_\d \+ x_\d \+ x_\d = ", out
    )


@pytest.mark.slow
def test_the_sum_over_a_batch_is_right() -> None:
    _, out, _ = default()
    models = {int(user): eval(model) for user, _, _, _, model, _, _ in LINE.findall(out)}
    (batch,) = re.findall(r"^    ((?:x_\d+ \+ )*x_\d+) = ", out, re.M)
    report = eval(re.findall(r"^    which is (\(.*\))$", out, re.M)[0])
    members = [int(user) for user in re.findall(r"\d+", batch)]
    assert report == tuple(np.sum([models[user] for user in members], axis=0).tolist())


@pytest.mark.slow
def test_with_drift_models_come_out_nearly(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--drift", "2", "--seed", "3")
    assert "in each round, each number is off by up to 2" in out
    lines = LINE.findall(out)
    assert len(lines) == 12
    assert all(0 < float(off) <= float(most) for *_, off, most in lines)
    assert "exactly" not in out
    assert "and smaller ones, of " in out


def test_few_rounds_tell_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--rounds", "1")
    assert "random selection: 0 of 12 models are recovered\n\nbatch" in out
    assert "not even x_4 + x_5 can be computed" in out


def test_a_user_that_is_in_no_round_is_said_to_be_so() -> None:
    log = np.array([[True, True, True, False, False, False]])
    session = Session(log, np.ones((1, 3), dtype=np.int64), np.ones((6, 3), dtype=np.int64), 0)
    (line,) = _hidden(Parameters(6, 3, 3), session, 4)
    assert line == "  user 4 is in none of the rounds, so the sums say nothing about it"


@pytest.mark.slow
def test_many_users_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--users", "20", "--per-round", "8", "--privacy", "4", "--rounds", "30")
    assert len(LINE.findall(out)) == 16
    assert "  and 4 more\n  max |error| of 20 recovered models: 0, exactly" in out


def test_formulas_are_written_as_usual() -> None:
    assert formula(((0, Fraction(1)),)) == "s_0"
    assert formula(((0, Fraction(-1)), (3, Fraction(2)))) == "-s_0 + 2 s_3"
    assert formula(((0, Fraction(1, 2)), (1, Fraction(-1, 3)))) == "1/6 (3 s_0 - 2 s_1)"
    many = tuple((t, Fraction(t + 1, 100)) for t in range(17))
    assert formula(many).startswith("0.1 s_9 + 0.11 s_10 + ")
    assert formula(many).endswith("+ 0.17 s_16 and smaller ones, of 17 rounds")


@pytest.mark.slow
def test_the_page_shows_what_the_command_prints() -> None:
    page = (Path(__file__).parents[1] / "docs" / "explanation" / "reconstruction.md").read_text(encoding="utf-8")
    shown = page.split("$ secagg-spec reconstruct\n")[1].split("```")[0].splitlines()
    printed = iter(default()[1].splitlines())
    for line in (line for line in shown if line != "…"):
        assert line in printed, line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--users", "2"], "--users = 2: must be an integer in [3, 200]"),
        (["--per-round", "2"], "--per-round = 2: must be an integer in [3, 12]"),
        (["--per-round", "13"], "--per-round = 13: must be an integer in [3, 12]"),
        (["--privacy", "1"], "--privacy = 1: must be an integer in [2, 4]"),
        (["--privacy", "3"], "--privacy = 3: must be a divisor of --per-round = 4"),
        (["--users", "13"], "--privacy = 2: must be a divisor of --users = 13"),
        (["--rounds", "0"], "--rounds = 0: must be an integer in [1, 2000]"),
        (["--seed", "-1"], "--seed = -1"),
        (["--drift", "0.5"], "--drift = '0.5': must be a whole number in [0, 1000000], unless --images is given"),
        (["--drift", "0.99999999999999999999"], "--drift = '0.99999999999999999999': must be a whole number in [0, 1"),
        (
            ["--drift", "1000000.0000000000000001"],
            "--drift = '1000000.0000000000000001': must be a whole number in [0, ",
        ),
        (["--drift", "1e-400"], "--drift = '1e-400': must be a whole number"),
        (["--drift", "1_0"], "--drift = '1_0': must be a number"),
        (["--images", "1", "--drift", "1e-400"], "--drift = '1e-400': must be a number that binary64 has"),
        (["--drift", "nan"], "--drift = 'nan': must be a number"),
        (["--drift", "inf"], "--drift = 'inf': must be a number"),
        (["--users", "200", "--per-round", "100"], "rounds * per-round**2 = 600000: must be at most 262144"),
        (["--out", "."], "--out needs --images"),
        (["--data-dir", "."], "--data-dir needs --images"),
        (["--net", "dense"], "--net needs --images"),
        (["--width", "3"], "--width needs --images"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"secagg-spec reconstruct: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("name", "extra"), [("torch", "train"), ("sklearn", "train"), ("matplotlib", "plot")])
def test_a_missing_package_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, extra: str, tmp_path: Path
) -> None:
    monkeypatch.setattr(reconstruct, "find_spec", lambda one: None if one == name else object())
    assert call(capsys, "--images", "1", "--out", str(tmp_path)) == (
        2,
        "",
        f"secagg-spec reconstruct: {name} is not installed: pip install 'secagg-spec[{extra}]'\n",
    )


def test_the_command_loads_torch_for_images_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("secagg_spec.experiments.inversion")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert call(capsys, "--rounds", "1")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--images", "0"], "--images = 0: must be an integer in [1, 12]"),
        (["--images", "13"], "--images = 13: must be an integer in [1, 12]"),
        (["--images", "1", "--width", "65"], "--width = 65: must be an integer in [1, 64]"),
        (["--images", "1", "--drift", "101"], "--drift = '101': must be a rate in [0, 100]"),
        (
            ["--images", "1", "--data-dir", "nowhere"],
            "data = 'nowhere/mnist/train-images-idx3-ubyte.gz': must be a gzip",
        ),
        (["--images", "1", "--out", __file__], f"--out {__file__}"),
    ],
)
def test_bad_input_beside_images_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    pytest.importorskip("torch", reason="torch is in the extra `train`")
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"secagg-spec reconstruct: {said}")
    assert err.count("\n") == 1


def test_a_picture_of_another_is_not_written_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is in the extra `train`")
    (tmp_path / "reconstruction.png").write_text("precious")
    code, out, err = call(capsys, "--images", "1", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert f"--out {tmp_path / 'reconstruction.png'}: this file would be lost" in err


@pytest.mark.slow
def test_images_are_told_and_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("torch", "sklearn", "matplotlib"):
        pytest.importorskip(name, reason=f"{name} is in the extras")
    monkeypatch.delenv("SECAGG_SPEC_DATA", raising=False)
    code, out, err = call(
        capsys, "--images", "1", "--net", "dense", "--width", "2", "--rounds", "20", "--out", str(tmp_path)
    )
    assert code == 0
    assert err.splitlines()[-1] == "… images of user 0"
    assert "12 users with one image each (scikit-learn's digits), 4 in each of 20 rounds of SecAgg" in out
    assert "random selection: the images of 1 of 1 users are found" in out
    svg, png = tmp_path / "reconstruction.svg", tmp_path / "reconstruction.png"
    assert f"the picture is in {svg} and {png}" in out
    assert svg.is_file()
    assert png.is_file()


def test_mnist_is_taken_from_the_named_folder_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def named(name: str) -> digits.Digits:
        return digits.Digits(name, np.zeros((1, 1, 1)), 1.0, np.zeros(1, dtype=np.int64))

    monkeypatch.setattr(digits, "bundled", lambda: named("bundled"))
    monkeypatch.setattr(digits, "mnist", lambda folder: named(folder.name))
    monkeypatch.setenv("SECAGG_SPEC_DATA", str(tmp_path))
    assert _data(None).name == "bundled"
    assert _data(tmp_path / "other").name == "other"
    monkeypatch.setattr(digits, "holds_mnist", lambda folder: folder == tmp_path)
    assert _data(None).name == tmp_path.name
