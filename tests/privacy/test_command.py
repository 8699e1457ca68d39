"""The command ``secagg-spec privacy``: what it says, and its one-line refusals."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb

import pytest

from secagg_spec import cli
from secagg_spec.commands import privacy_lightsecagg as command
from secagg_spec.commands import privacy_report
from secagg_spec.commands.privacy_report import Found, Report, conclusion, show
from secagg_spec.privacy import lightsecagg as model
from secagg_spec.privacy import wording
from secagg_spec.protocols.lightsecagg.round import PRESETS


def privacy(protocol: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command for a protocol and return its exit code and what it printed."""
    try:
        code = cli.main(["privacy", protocol, *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


call = partial(privacy, "lightsecagg")


@pytest.fixture(scope="module")
def tiny() -> str:
    """The report on the preset `tiny`."""
    capture = pytest.MonkeyPatch()
    lines: list[str] = []
    capture.setattr("builtins.print", lambda *words: lines.append(" ".join(map(str, words))))
    code = cli.main(["privacy", "lightsecagg", "--preset", "tiny", "--all"])
    capture.undo()
    assert code == 0
    return "\n".join(lines)


def line_of(report: str, coalition: str) -> str:
    """The line of a coalition in the table."""
    [line] = [line for line in report.splitlines() if line.startswith(f"  {coalition}  ")]
    return line.strip()


@pytest.mark.slow
def test_tiny_names_every_coalition_and_what_it_learns(tiny: str) -> None:
    assert "coalitions: all 32" in tiny
    assert "surviving sets: all 16" in tiny
    for coalition in ("the server alone", *(f"user {user}" for user in range(5))):
        assert line_of(tiny, coalition).endswith("nothing")
    assert "2 dimensions a column when users 0 to 4 survive: x_3[0] + 3*x_3[2]; x_4[0] + 3*x_4[2]" in line_of(
        tiny, "users 0, 1"
    )
    assert "came late" in line_of(tiny, "users 0 to 3")
    assert line_of(tiny, "users 0 to 4").endswith("nothing (all inputs are its own)")
    assert len([line for line in tiny.splitlines() if line.startswith(("  user", "  the server"))]) == 32


@pytest.mark.slow
def test_tiny_concludes(tiny: str) -> None:
    first, second, *_ = tiny.splitlines()
    assert first == "PRIVATE up to T = 1: no single user, nor the server, learns more than the sum."
    assert second == "Two colluders (users 0, 1) learn x_3[0] + 3*x_3[2] (and 1 more)."
    assert "smallest coalition that learns more: users 0, 1 (T + 1 = 2 users)" in tiny
    assert "elements 0, 2: exactly that in 160 of 160 cases" in tiny
    assert "element 1: exactly that in 134 of 160 cases, less in 26 (for example users 1, 4)" in tiny
    assert "NOT decided" not in tiny


@pytest.mark.slow
def test_with_the_point_0_the_user_whose_share_is_in_clear_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--points", "0,1,2,3,4")
    assert code == 1
    assert "IN CLEAR: user 0, whose point is 0, holds sub-mask 0, elements 0, 1, of every mask in clear" in out
    assert out.startswith("NOT PRIVATE: user 0 alone learns x_1[0] (and 2 more).\n")
    assert "smallest coalition that learns more: user 0 (1 user, T = 1)" in out
    assert line_of(out, "user 0").endswith("x_1[0]; x_2[0]; x_3[0]")


@pytest.mark.slow
def test_one_coalition_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--coalition", "3, 0")
    assert code == 0
    assert "coalitions: users 0, 3 (others are NOT decided here)" in out
    assert "2 dimensions" in line_of(out, "users 0, 3")
    code, out, _ = call(capsys, "--coalition", "")
    assert code == 0
    assert "no coalition learns more, among the cases decided here" in out


def plan_of(coalition: str | None) -> command._Plan:
    """What is decided of the preset `tiny`."""
    return command._plan(Namespace(preset="tiny", points=None, coalition=coalition))


def test_only_without_a_named_coalition_all_are_decided() -> None:
    assert "coalitions: all 32" in list(command._scope(plan_of(None)))
    for coalition, named in (("", "the server alone"), ("4,0", "users 0, 4")):
        lines = list(command._scope(plan_of(coalition)))
        assert f"coalitions: {named} (others are NOT decided here)" in lines
        assert "surviving sets: all 16 that may be announced" in lines


def test_what_is_concluded_from_some_cases() -> None:
    """Of the two coalitions of T + 1 = 2 users, users 1 and 4 learn less than the figure, in one kind of column."""
    plan = replace(
        plan_of(""), coalitions=((), (4,), (0, 2), (1, 4), (0, 2, 3)), surviving=((0, 1, 2), (0, 1, 2, 3, 4))
    )
    cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.surviving))
    fewer = [case for case in cases if len(case.coalition) == 2 and case.excess < case.honest - 1]
    assert {(case.coalition, case.elements) for case in fewer} == {((1, 4), (1,))}
    lines = list(command._conclusions(plan, cases))
    scope = ", among the cases decided here"
    assert lines[:2] == [
        "the sum itself is learned in every case",
        f"smallest coalition that learns more{scope}: users 0, 2 (T + 1 = 2 users)",
    ]
    late = [case for case in cases if len(case.coalition) == 2 and case.late(5)]
    (other,) = (case for case in late if case.verdict.dimension - case.excess != case.late(5))
    assert other in fewer
    assert lines[-1] == "  each honest masked update that came too late adds one more: in 3 of 4 cases"
    rows = {found.coalition: found for found in command._found(plan, cases)}
    assert rows[0, 2, 3].row.startswith("2 dimensions a column when users 0 to 4 survive: ")
    assert [coalition for coalition, found in rows.items() if found.learns] == [(0, 2), (1, 4), (0, 2, 3)]
    less = len(fewer)
    assert "  elements 0, 2: exactly that in 4 of 4 cases" in lines
    assert f"  element 1: exactly that in {4 - less} of 4 cases, less in {less} (for example users 1, 4)" in lines


def found(*coalitions: tuple[int, ...], learn: Collection[tuple[int, ...]]) -> list[Found]:
    return [Found(users, "", "x_9[0]" if users in learn else "") for users in coalitions]


@pytest.mark.parametrize(
    ("T", "whole", "decided", "said"),
    [
        (2, True, found((), (0, 1), learn=[]), "PRIVATE up to T = 2: no 2 users, nor the server, learn more than "),
        (1, False, found((), learn=[]), "PRIVATE in the cases decided here: the server alone learns no more than "),
        (1, False, found((2,), (3,), learn=[]), "PRIVATE in the cases decided here: the server, also with user 2 or "),
        (1, True, found((), (0,), (1,), learn=[(), (1,)]), "NOT PRIVATE: the server alone learns x_9[0]."),
        (2, True, found((), (0, 1), learn=[(0, 1)]), "NOT PRIVATE: users 0, 1 together learn x_9[0]."),
        (1, False, found((0, 1), learn=[(0, 1)]), "BEYOND T = 1: users 0, 1 together learn x_9[0]."),
        (1, False, found((0, 1), learn=[]), "BEYOND T = 1: users 0, 1 together learn no more than the sum."),
    ],
)
def test_the_first_line_concludes(T: int, whole: bool, decided: list[Found], said: str) -> None:
    """It says that nobody learns more only if all were decided, and names the smallest coalition that does."""
    [line] = conclusion(Report(T, whole, "the sum", (), decided, ()))
    assert line.startswith(said)


def test_more_colluders_than_T_are_named_with_what_they_learn() -> None:
    decided = found((), (0,), (0, 1), (0, 2), (0, 1, 2), learn=[(0, 2), (0, 1, 2)])
    report = Report(1, True, "the sum", (), decided, (), table="who learns what")
    assert list(conclusion(report))[-1] == "Two colluders (users 0, 2) learn x_9[0]."
    assert not report.broken


def test_the_first_word_is_green_or_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privacy_report, "painted", lambda text, style: f"<{style}>{text}</>")
    for learn, head in (([], "<good>PRIVATE up to T = 1</>: no"), ([()], "<bad>NOT PRIVATE</>: the server")):
        assert next(conclusion(Report(1, True, "the sum", (), found((), learn=learn), ()))).startswith(head)


def test_without_all_the_table_has_the_server_and_the_smallest_that_learns_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    decided = found((), (0,), (1,), (0, 1), (0, 2), learn=[(0, 2)])
    report = Report(1, True, "the sum", ["N = 3"], decided, ["a note"], ["how"], "who learns what")
    assert show(report, every=False) == 0
    few = capsys.readouterr().out
    assert show(report, every=True) == 0
    every = capsys.readouterr().out
    names = [line.split("  ")[1] for line in few.splitlines() if line.startswith("  ") and "(" not in line]
    assert names == ["the server alone", "users 0, 2"]
    assert "  … (--all lists all 5 coalitions)\n" in few
    assert all(line_of(every, wording.users(one.coalition)) for one in decided)
    assert every.index("N = 3") < every.index("who learns") < every.index("a note") < every.index("how\n")


@pytest.mark.parametrize(("U", "T"), [(2, 1), (3, 1), (4, 1), (4, 2), (4, 3), (5, 2)])
def test_surviving_sets_have_U_users_and_T_plus_2(U: int, T: int) -> None:
    """With U = T + 1 a set of U users leaves one honest user beside T colluders: it is no surviving set (LSA-07)."""
    parameters = replace(PRESETS["tiny"], N=5, D=0, U=U, T=T)
    sets = [users for size in range(6) for users in combinations(range(5), size) if size >= U and size - T >= 2]
    assert command._count_surviving(parameters) == len(sets)
    assert command._extreme_sets(parameters) == tuple(dict.fromkeys([sets[-1], max(sets[: comb(5, len(sets[0]))])]))


def test_kinds_of_columns_are_named() -> None:
    assert "columns of the code: elements 0, 2; element 1 (two kinds: one ends in padding)" in list(
        command._scope(plan_of(""))
    )
    plan = command._plan(Namespace(preset="default", points=None, coalition=""))
    assert "columns of the code: elements 0, 4, 8, 12" in list(command._scope(plan))


def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default")
    assert code == 0
    assert "coalitions: users 0 to 2; users 0 to 3 (others are NOT decided here)" in out
    assert "surviving sets: users 0 to 9; users 3 to 9 (others are NOT decided here)" in out
    first = "PRIVATE in the cases decided here: the server, also with users 0 to 2, learns no more than the sum.\n"
    assert out.startswith(f"{first}Four colluders (users 0 to 3) learn ")
    assert line_of(out, "users 0 to 2").endswith("nothing")
    assert "5 dimensions a column" in line_of(out, "users 0 to 3")


def test_a_larger_preset_decides_the_user_with_the_point_0_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default", "--points", "5,6,7,8,9,10,11,0,1,2")
    assert code == 1
    assert "IN CLEAR: user 7, whose point is 0" in out
    assert "smallest coalition that learns more, among the cases decided here: user 7 (1 user, T = 3)" in out


@pytest.mark.parametrize("preset", ["tiny", "default"])
def test_lines_fit_a_terminal(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--preset", preset, "--coalition", "0,1,2,3")
    assert max(map(len, out.splitlines())) <= 170


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--points", "1,2,2,3,4"), "2 for users 1 and 2"),
        (("--points", "0,1,2,3"), "N = 5 points"),
        (("--points", "1,2,3,4,7"), "[0, 6]"),
        (("--points", "1,2,,3,4"), "whole numbers"),
        (("--points", "1,2,3,4,-1"), "whole numbers"),
        (("--points", "1,2,3,4,1e3"), "whole numbers"),
        (("--points", "1,2,3,4,٣"), "whole numbers"),
        (("--points", "1,2,3,4," + "9" * 5000), "whole numbers"),
        (("--points", ""), "N = 5 points"),
        (("--coalition", "0,5"), "a user in [0, 5)"),
        (("--coalition", "0,0"), "named once"),
        (("--coalition", "user 0"), "whole numbers"),
        (("--preset", "huge"), "'tiny', 'default', 'paper'"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], said: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    assert said in err
    assert len(err) < 300


def test_an_unknown_protocol_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["privacy", "secretagg"])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
