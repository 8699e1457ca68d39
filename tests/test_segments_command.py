"""``secagg-spec segments``: the matrices that it draws, what it says of them, and one clear line for bad input."""

from __future__ import annotations

import re
import sys
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from secagg_spec.arithmetic import segments
from secagg_spec.arithmetic.segments import Matrix, algorithm_1, entries
from secagg_spec.cli import main
from secagg_spec.errors import ParameterError
from secagg_spec.simulate import matrices
from secagg_spec.simulate.matrices import Look

SVG = "{http://www.w3.org/2000/svg}"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["segments", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def drawn(out: str) -> list[list[str]]:
    """The entries of each row of the last table, or of tables next to each other as one."""
    return [line.split()[1:] for line in out.splitlines() if re.fullmatch(r" {7}[ \d]\d  [ \d*!.]+", line)]


def printed(matrix: Matrix) -> list[list[str]]:
    """The entries that the table of a matrix holds, from the table B of the text."""
    return [["*" if entry == segments.ALONE else str(entry) for entry in row] for row in entries(matrix)]


def robustness(matrix: Matrix, left_out: frozenset[int] = frozenset()) -> Fraction:
    """Definition 1 by trying all sets, on plain sets."""
    there = [a for a in range(len(matrix)) if a not in left_out]
    sets = chain.from_iterable(combinations(there, size) for size in range(1, len(there)))
    left = [[set(cell) - left_out for cell in row] for row in matrix]
    most = max(sum(all(cell <= set(some) or not cell & set(some) for cell in row) for row in left) for some in sets)
    return 1 - Fraction(most, len(matrix))


def test_it_draws_the_matrix_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--groups", "6", "--matrix", "cyclic")
    assert (code, err) == (0, "")
    assert drawn(out) == [["*" if x < 0 else str(x) for x in row] for row in algorithm_1(6)]
    assert "inference robustness 1/2 (0.500); theorem 1 of the paper claims more: (Z - 2)/Z = 2/3" in out
    assert "the sum of groups 0, 2, 4 in segments 1, 3, 5 is known in 3 of 6 segments" in out
    assert "\x1b" not in out


def test_both_matrices_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--groups", "6")
    both = zip(printed(segments.cyclic(6)), printed(segments.perfect(6)), strict=True)
    assert drawn(out) == [[*first, str(at), *second] for at, (first, second) in enumerate(both)]
    starts = {line.index("perfect:") for line in out.splitlines() if line.startswith("cyclic:  ")}
    assert len(starts) == 1
    assert "the last, shows the sum of every group" in out


@pytest.mark.parametrize("Z", range(2, 11))
@pytest.mark.parametrize("name", ["cyclic", "perfect"])
def test_values_are_those_of_the_definition(capsys: pytest.CaptureFixture[str], name: str, Z: int) -> None:
    _, out, _ = call(capsys, "--groups", str(Z), "--matrix", name)
    matrix = segments.MATRICES[name](Z)
    assert drawn(out) == printed(matrix)
    value = robustness(matrix)
    assert f"{name}: inference robustness {value} ({float(value):.3f})" in out
    paper = Fraction(Z - 1, Z) if Z % 2 else Fraction(Z - 2, Z)
    assert ("claims more" in out) == (paper > value)
    assert ("claims less" in out) == (paper < value)
    report = {int(at): Fraction(found) for at, found in re.findall(r"^ +(\d+) {3}(\d/\d+|\d) +group", out, re.M)}
    assert report == ({a: robustness(matrix, frozenset({a})) for a in range(Z)} if Z > 2 else {})
    assert ("an odd number" in out) == (Z % 2 == 0)


@pytest.mark.slow
def test_a_witness_is_known_where_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    for Z in range(2, 13):
        _, out, _ = call(capsys, "--groups", str(Z))
        found = re.findall(r"^  the sum of groups? ([\d, ]+) in segments? ([\d, to]+) is known in (\d+) of", out, re.M)
        assert len(found) == 2
        for matrix, (groups, rows, count) in zip((segments.cyclic(Z), segments.perfect(Z)), found, strict=True):
            decodable = segments.decodable(matrix, [int(a) for a in groups.split(", ")])
            assert [int(row) for row in rows.split(", ")] == list(decodable)
            assert int(count) == len(decodable)


def test_who_drops_out_leaves_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--groups", "5", "--dropped", "3", "--matrix", "perfect")
    rows, before = drawn(out), printed(segments.perfect(5))
    assert [row[3] for row in rows] == ["."] * 5
    assert sum(entry == "!" for row in rows for entry in row) == 4
    changed = {(at, g) for at in range(5) for g in range(5) if g != 3 and rows[at][g] != before[at][g]}
    partners = {(at, g) for at, row in enumerate(segments.perfect(5)) for cell in row if 3 in cell for g in cell}
    assert changed == {(at, g) for at, g in partners if g != 3}
    assert "perfect: inference robustness 3/5 (0.600); it was 4/5 (0.800) with all groups there" in out
    assert ". has dropped out, ! is left alone by it" in out


def test_several_that_drop_out_are_told_alone_and_together(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--groups", "8", "--dropped", "3,1", "--matrix", "perfect")
    report = re.findall(r"^ +([\d, ]+?) {3}(\d/\d)", out, re.M)
    sets = [frozenset({1}), frozenset({3}), frozenset({1, 3})]
    wanted = [str(robustness(segments.perfect(8), left_out)) for left_out in sets]
    assert report == list(zip(["1", "3", "1, 3"], wanted, strict=True))


def test_subgroups_are_columns_under_their_groups(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--subgroups", "1,2,2", "--matrix", "cyclic")
    assert code == 0
    assert "3 groups, 1, 2, 2 subgroups in each: 5 subgroups and as many segments" in out
    assert "    group   0 1 1 2 2\n subgroup   0 1 2 3 4\n" in out
    assert drawn(out) == printed(segments.cyclic(5))
    assert "as theorem 4 of the paper claims" in out
    assert call(capsys, "--groups", "3", "--subgroups", "1,2,2", "--matrix", "cyclic")[1] == out
    assert call(capsys, "--subgroups", "1,1,1")[1] == call(capsys, "--groups", "3")[1]


def test_one_group_has_the_subgroups_that_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--groups", "1", "--subgroups", "3")
    assert (code, err) == (0, "")
    assert out == call(capsys, "--subgroups", "3")[1]


def test_without_a_perfect_matrix_cyclic_is_still_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--groups", "35")
    assert (code, err) == (0, "")
    assert "no perfect matrix is known here for 35 groups, so only cyclic is drawn\n" in out
    assert drawn(out) == printed(segments.cyclic(35))
    assert "it exists for every number up to 34" in out
    assert all(len(line) <= 120 for line in out.splitlines())
    for Z in range(2, 35):
        assert len(segments.perfect(Z)) == Z
    with pytest.raises(ParameterError):
        segments.perfect(35)


def test_the_picture_holds_the_same_entries(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    code, out, _ = call(capsys, "--subgroups", "1,2,3", "--dropped", "4", "--svg", str(path))
    assert code == 0
    assert f"the picture is in {path}" in out
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    panels = root.findall(f"{SVG}g")
    tables = [[text.text for text in panel.findall(f"{SVG}text[@class='entry']")] for panel in panels]
    shown = [[row[at : at + 6] for row in drawn(out)] for at in (0, 7)]
    assert tables == [[entry for row in table for entry in row] for table in shown]
    framed = [sum("shown" in str(rect.get("class")) for rect in panel.iter(f"{SVG}rect")) for panel in panels]
    assert all(framed)


def test_the_picture_needs_nothing_else_and_is_legible_in_the_dark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call(capsys, "--groups", "7", "--svg", str(tmp_path / "x.svg"))
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|@font-face|url\(|<image|<script|href", text)
    light, _, dark = text.partition("@media (prefers-color-scheme:dark)")
    for part in (light, dark):
        assert all(f".c{at}{{fill:" in part for at in range(7))
        assert ".page{fill:" in part


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Look.of_terminal().colours
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Look.of_terminal().colours
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not Look.of_terminal().colours
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert Look.of_terminal() == Look()


@pytest.mark.parametrize("width", [1, 2, 20])
def test_a_terminal_may_be_narrow(capsys: pytest.CaptureFixture[str], monkeypatch: Any, width: int) -> None:
    monkeypatch.setattr(Look, "of_terminal", lambda: Look(width=width))
    code, out, err = call(capsys, "--dropped", "0")
    assert (code, err) == (0, "")
    assert "no other set is known in more" in " ".join(out.split())


def test_colours_move_no_column() -> None:
    matrix = segments.perfect(6)
    plain, coloured = (
        matrices.side_by_side([matrices.table(matrix, dropped=(2,), look=look)] * 2, look)
        for look in (Look(), Look(colours=True))
    )
    assert plain != coloured
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--groups", "1"], "groups = 1: must be an integer in [2, 35]"),
        (["--groups", "0"], "groups = 0: must be an integer in [2, 35]"),
        (["--groups", "-3"], "groups = -3: must be an integer in [2, 35]"),
        (["--groups", "0", "--subgroups", "3"], "groups = 0: must be an integer in [1, 35]"),
        (["--groups", "1", "--subgroups", "1"], "subgroups in all = 1: must be an integer in [2, 35]"),
        (["--groups", "36"], "groups = 36: must be an integer in [2, 35]"),
        (["--groups", "abc"], "groups = 'abc': must be an integer in [2, 35]"),
        (["--groups", "5.0"], "groups = '5.0': must be an integer in [2, 35]"),
        (["--groups", ""], "groups = '': must be an integer in [2, 35]"),
        (["--groups", "\u00b2"], "must be an integer in [2, 35]"),
        (["--groups", "9" * 30], "must be an integer in [2, 35]"),
        (["--groups", "35", "--matrix", "perfect"], "subgroups in all = 35: must be from 2 to 32, or such that"),
        (["--matrix", "latin"], "choose from"),
        (["--groups", "6", "--dropped", "6"], "dropped = 6: must be a group in [0, 6)"),
        (["--subgroups", "2,2", "--dropped", "4"], "dropped = 4: must be a subgroup in [0, 4)"),
        (["--dropped", "-1"], "--dropped"),
        (["--dropped", "x"], "--dropped = 'x': must be whole numbers with commas between"),
        (
            ["--groups", "4", "--dropped", "0,1,2"],
            "--dropped = [0, 1, 2]: must be at most 2 of the 4 groups: two must stay",
        ),
        (["--subgroups", "2,0"], "subgroups[1] = 0: must be an integer in [1, 35]"),
        (["--subgroups", "30,30"], "subgroups in all = 60: must be an integer in [2, 35]"),
        (["--subgroups", "1"], "subgroups in all = 1: must be an integer in [2, 35]"),
        (["--subgroups", ""], "subgroups in all = 0: must be an integer in [2, 35]"),
        (["--subgroups", "2;2"], "--subgroups = '2;2': must be whole numbers"),
        (["--groups", "4", "--subgroups", "2,2"], "subgroups = [2, 2]: must be 4 numbers, one for each of --groups"),
        (["--svg", "/nowhere/x.svg"], "--svg /nowhere/x.svg: there is no folder /nowhere"),
        (["--svg", "/"], "--svg /: this is a folder, not a file"),
        (["--svg", "/dev/full"], "--svg /dev/full: "),
        (["--colour"], "--colour"),
    ],
)
def test_bad_input_gets_one_clear_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    try:
        code, out, err = call(capsys, *arguments)
    except SystemExit as ended:
        code, (out, err) = int(str(ended.code)), capsys.readouterr()
    assert code == 2
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_path_is_shown_without_what_a_terminal_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--groups", "3", "--svg", str(tmp_path / "\x1b[31m.svg"))
    assert out.endswith(r"\x1b[31m.svg" + "\n")
