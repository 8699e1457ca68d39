"""The command ``secagg-spec privacy heterosag``: what it says, and its one-line refusals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.commands import privacy_heterosag as command
from secagg_spec.commands.privacy_report import conclusion
from secagg_spec.privacy import heterosag as model
from secagg_spec.privacy.heterosag import RULES, Plan
from secagg_spec.privacy.secagg import Situation, Users
from secagg_spec.protocols.heterosag.plan import PRESETS, Cell, Parameters
from secagg_spec.protocols.secagg import round as secagg
from tests.privacy.test_command import line_of, privacy
from tests.quick import exhaustive

call = partial(privacy, "heterosag")
SMALL = Parameters(9, 1, 1, 3, 3, (6, 3), (2, 1), (2, 3), PRESETS["tiny"].range)
"""Three subgroups of three users."""
SMALLER = replace(SMALL, N=7, d=2, sizes=(4, 3), subgroups=(1, 1), levels=(2, 2))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the preset `tiny` be a smaller one."""
    monkeypatch.setattr(command, "PRESETS", MappingProxyType({"tiny": SMALL}))


def test_a_whole_audit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PRESETS", MappingProxyType({"tiny": SMALLER}))
    code, out, _ = call(capsys, "--matrix", "separate", "--odds", "0", "--all")
    assert code == 0
    assert line_of(out, "4 users, K = 2, R = 5 (2 cells)").endswith("  nothing, in 24 cases")
    assert line_of(out, "3 users, K = 2, R = 4 (2 cells)").endswith("  nothing, in 14 cases")
    assert "each of these sums is over at least two honest users, or nobody: in all 38 cases\n" in out
    assert "the permitted sums are learned in every case" in out
    assert "  the sum can be one segment: segment 0, subgroup 0: x_2[0] for users 0, 1, when of the cell" in out
    assert "4 dimensions modulo 5 when nobody survives and users 0 to 3 came late: x_0[0]; " in out
    assert "nobody dropped: a share of 1 at most, of subgroup 0 in segments 0, 1; inference robustness 0\n" in out
    assert "each user drops out with probability 0, exactly:\n" in out
    assert "in any of the 2 subgroups: 0 = 0\n" in out
    assert out.startswith("PRIVATE up to T = 1: ")


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(1, 10)])
@pytest.mark.parametrize("T", [1, 2])
def test_the_odds_are_those_of_all_ways_to_drop_out(T: int, p: Fraction) -> None:
    """Each of the 2**9 ways has its probability; the first subgroup is larger than the second."""
    parameters = replace(SMALL, N=9, T=T, t=5, sizes=(5, 4), subgroups=(1, 1), levels=(2, 2))
    ways = [tuple(sum(alive) for alive in (way[:5], way[5:])) for way in product((0, 1), repeat=9)]
    chances = [((1 - p) ** sum(left) * p ** (9 - sum(left)), left) for left in ways]
    first = sum(chance for chance, left in chances if left[0] == 1)
    either = sum(chance for chance, left in chances if 1 in left)
    fails = sum(chance for chance, left in chances if any(0 < count < T + 2 for count in left))
    lines = list(command._odds(parameters, p))
    assert lines[0] == f"each user drops out with probability {p}, exactly:"
    assert f"which has 5 users: {command._exactly(Fraction(first))}" in lines[1]
    assert lines[2].endswith(f"in any of the 2 subgroups: {command._exactly(Fraction(either))}")
    assert f"with 1 to T + 1 = {T + 1} survivors" in lines[3]
    assert lines[4].strip() == command._exactly(Fraction(fails))


def test_subgroups_whose_loss_ends_a_round_are_not_dropped() -> None:
    """Six users stay without one subgroup: enough for t = 6, too few for t = 7."""
    six, seven = (list(command._robustness(Plan(replace(SMALL, t=t)))) for t in (6, 7))
    first, nobody, one = six
    assert "nobody dropped: a share of 1/3 at most, of subgroups 0, 1 in segment 0; inference robustness 2/3" in nobody
    assert "subgroup 0 dropped: a share of 2/3 at most, of subgroup 1 in segments 0, 1; inference rob" in one
    assert seven == [first, nobody]


@pytest.mark.parametrize(("colluders", "broken"), [(1, True), (2, False)])
def test_privacy_is_broken_by_coalitions_of_up_to_T_users(
    monkeypatch: pytest.MonkeyPatch, colluders: int, broken: bool
) -> None:
    """Without the check of cells one survivor shows its segment; only the coalitions of one size are decided here."""
    real = model.every_case
    few = replace(SMALLER, matrix="separate")

    def chosen(plan: Plan, cell: Cell, _: Collection[int]) -> Iterator[tuple[Situation, Users]]:
        return real(plan, cell, (colluders,))

    monkeypatch.setattr(command, "_table", lambda *_: [])
    monkeypatch.setattr(model, "every_case", chosen)
    report = command._audit(Plan(few, RULES["none"]), Fraction(1, 10))
    assert report.broken == broken
    [said, *_] = conclusion(report)
    assert said.startswith("NOT PRIVATE: " if broken else "BEYOND T = 1: ")


@pytest.mark.parametrize(("rule", "least"), [("cells", 3), ("none", 1)])
def test_of_a_large_session_the_extremes_are_decided(rule: str, least: int) -> None:
    """All, as few as may be and none of the 6 users of a cell survive; 0, T = 1 and T + 1 = 2 users collude."""
    cell = SMALL.parts[0]
    found = [
        (len(cell.members & set(happened.survivors)), len(cell.members & set(happened.delayed)), len(coalition))
        for happened, coalition in command._some(Plan(SMALL, RULES[rule]), cell)
    ]
    assert sorted(found) == sorted((left, 6 - left, count) for left in (6, least, 0) for count in (0, 1, 2))


@pytest.mark.parametrize("count", [6, 7, 9])
def test_the_heading_shows_six_segments(count: int) -> None:
    three, one, two = ((number,) * count for number in (3, 1, 2))
    wide = replace(SMALL, N=3 * count, t=2 * count, d=count, sizes=three, subgroups=one, levels=two)
    lines = list(command._heading(Plan(wide)))
    assert [line[:9] for line in lines if line.startswith("segment")] == [f"segment {row}" for row in range(6)]
    rest = {6: [], 7: ["… and segment 6"], 9: ["… and segments 6 to 8"]}
    assert [line for line in lines if line.startswith("…")] == rest[count]


@pytest.mark.usefixtures("small")
def test_what_is_decided_of_one_stream(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "one-stream")
    assert code == 1
    _, _, *parts, _ = out.split("\n\n")
    happened = [part.partition(" (others are NOT decided here)\n")[0] for part in parts]
    assert happened == ["nobody drops out", "user 0 late", "users 3 to 5 dropped out", "users 3 to 8 dropped out"]
    assert "  the server alone  1 dimension modulo 7, segments 0 to 2: x_0[0] - x_0[1]\n" in out
    assert out.startswith("NOT PRIVATE: the server alone learns ")
    happened = [command._happened(found, SMALLER) for found in command._typical(SMALLER).values()]
    assert happened[2:] == ["users 4 to 6 dropped out"] * 2


@pytest.mark.usefixtures("small")
def test_only_coalitions_of_up_to_T_users_break_privacy(capsys: pytest.CaptureFixture[str]) -> None:
    """Of three survivors of a cell, two collude: the sum is the segment of the third, and T = 1."""
    for coalition in ("0", "0,1"):
        code, out, _ = call(capsys, "--collude", coalition)
        assert code == 0
        assert not out.startswith("NOT PRIVATE")
        assert ("a sum is one segment: segment 2, subgroup 0: x_2[2] for users 0, 1" in out) == (coalition == "0,1")
    code, out, _ = call(capsys, "--collude", "0", "--drop", "2", "--rule", "none")
    assert code == 1
    assert out.startswith("NOT PRIVATE: user 0 alone learns x_1[2]: the sum of a cell is just that.\n")


@pytest.mark.slow
def test_tiny_decides_each_kind_of_cell(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--all")
    assert code == 0
    more = "learns more than the sum over the survivors of each cell"
    assert out.startswith(f"PRIVATE up to T = 1: no single user, nor the server, {more}.\n")
    assert "segment 0, cells: 0, 1 mod 9; 2 mod 9\n" in out
    assert line_of(out, "4 + 4 users, K = 2, R = 9 (3 cells)").endswith("  nothing, in 104 cases")
    assert line_of(out, "4 users, K = 2, R = 5 (2 cells)").endswith("  nothing, in 24 cases")
    assert "each of these sums is over at least two honest users, or nobody: in all 152 cases\n" in out
    assert "the permitted sums are learned in every case, and unmask returns the sum" in out
    assert "tightness: T + 1 = 2 users learn no more than the sums, and\n  the sum can be one segment: " in out
    assert "t = 3 users learn, segment 0, subgroups 0, 1: 8 dimensions modulo 9" in out
    assert "nobody dropped: a share of 1/3 at most, of subgroups 0, 1 in segment 0; inference robustness 2/3\n" in out
    assert "subgroup 0 dropped: a share of 2/3 at most, of subgroup 1 in segments 0, 1;" in out
    assert "one survivor in subgroup 0, which has 4 users: 9/2500 = 0.0036\n" in out
    assert "in any of the 3 subgroups: 168143229/15625000000 = 0.0108\n" in out
    assert "1 to T + 1 = 2 survivors in a subgroup:\n    18570964581/125000000000 = 0.149\n" in out
    assert "NOT" not in out


@exhaustive
def test_default_is_decided_in_whole_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default", "--odds", "1/20")
    assert code == 0
    assert "or nobody: in all 862 cases\n" in out
    assert "subgroups 0, 1 dropped: a share of 3/5 at most" in out
    assert "each user drops out with probability 1/20, exactly:\n" in out


@pytest.mark.slow
def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "large", "--matrix", "cyclic")
    assert code == 0
    assert "matrix cyclic\n" in out
    assert out.count("NOT decided here") == 2
    assert out.startswith("PRIVATE in the cases decided here: ")
    assert "nobody dropped: a share of 1/2 at most" in out
    assert "in any of the 20 subgroups: 0.00896" in out


@pytest.mark.slow
def test_without_the_rule_one_survivor_shows_a_segment(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "none")
    assert code == 1
    assert "rule none: WEAKER than cells" in out
    assert out.startswith("NOT PRIVATE: the server alone learns x_0[0]: the sum of a cell is just that.\n")
    assert "the sum of a cell can be the segment of one honest user:\n" in out
    assert "  segment 0, subgroups 0, 1: x_0[0] for the server alone, when of the cell user 0 survives\n" in out
    assert "  segment 0, subgroups 0, 1: x_1[0] for user 0, when of the cell users 0, 1 survive\n" in out


@pytest.mark.requirement("HSA-17", "HSA-18")
def test_the_rule_prevents_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--drop", "1-3", "--collude", "")
    assert code == 0
    assert "users 1 to 3 dropped out (others are NOT decided here)\n" in out
    assert "REFUSED by HSA-17 and HSA-18: 1 of the users of subgroups [0] survive in segment 2;" in out
    assert line_of(out, "the server alone").endswith("  nothing, of all 6 cells")
    code, out, _ = call(capsys, "--drop", "1-3", "--collude", "", "--rule", "none")
    assert code == 1
    assert (
        "a sum is one segment: segment 2, subgroup 0: x_0[2] for the server alone, when of the cell user 0 survives\n"
        in out
    )


def test_a_situation_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--absent", "0", "--drop", "4-7", "--late", "11", "--collude", "8")
    assert code == 0
    assert "\nuser 0 absent; users 4 to 7 dropped out; user 11 late (others are NOT decided here)\n" in out
    assert line_of(out, "user 8").endswith("  nothing, of all 6 cells")


@pytest.mark.slow
@pytest.mark.requirement("HSA-14")
def test_one_stream_for_all_segments(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "one-stream")
    assert code == 1
    assert "\nnobody drops out (others" in out
    assert "1 dimension modulo 9, segments 0 to 2: x_0[0] - x_0[1]\n" in out
    assert "3 dimensions modulo 9, segments 0 to 2: x_9[0] - x_9[2]; x_10[0] - x_10[2]; x_11[0] - x_11[2]\n" in out
    code, out, _ = call(capsys, "--rule", "one-stream", "--late", "0", "--collude", "")
    assert code == 1
    assert "x_0[0] - x_0[1]\n" in out


@pytest.mark.slow
@pytest.mark.requirement("HSA-14")
def test_one_stream_for_segments_of_two_moduli(capsys: pytest.CaptureFixture[str]) -> None:
    """Without subgroup 1, subgroup 2 is alone in segment 2, modulo 51, and in segment 3 anyway, modulo 36."""
    code, out, _ = call(capsys, "--preset", "default", "--rule", "one-stream", "--drop", "5-9", "--collude", "")
    assert code == 1
    assert "6.33985 bits, segments 0 to 4: x_11[2] - x_11[3] modulo 3; " in out
    assert "a word of a stream counts as uniform modulo every R" in out


@pytest.mark.requirement("HSA-27")
def test_rounds_with_and_without_one_user(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rounds", "0-11;0-10")
    assert code == 0
    assert "  round 0: users 0 to 11 survive: answered\n" in out
    assert "  round 1: users 0 to 10 survive: REFUSED by HSA-18 or HSA-27: with earlier rounds, the sums of" in out
    assert "in each cell, users who were in the same answered sums are T + 2 or more\n" in out
    assert "if all requests had been answered:\n" in out
    assert "  segment 0, subgroup 2: too few companions: user 11; at least T + 2 = 3 are needed\n" in out
    assert "  segment 0, subgroup 2: x_11[0] = (sum of round 0) - (sum of round 1)\n" in out
    assert "  since a request was refused, the server does not learn that\n" in out
    code, out, _ = call(capsys, "--rounds", "0-11;0-10", "--rule", "none")
    assert code == 1
    told = "sums that tell fewer than T + 2 users of a cell from the others"
    assert out.startswith(f"NOT PRIVATE: the server alone learns {told}.\n")
    assert "decided on the masked segments of these rounds, modulo 9: the server learns it\n" in out
    code, out, _ = call(capsys, "--rounds", "0-11;0-7;0-11")
    assert code == 0
    assert "REFUSED" not in out


@pytest.mark.requirement("HSA-27")
@pytest.mark.parametrize(("rule", "code"), [("cells", 0), ("none", 1)])
def test_companions_that_are_too_few_without_a_combination(
    capsys: pytest.CaptureFixture[str], rule: str, code: int
) -> None:
    """Of subgroup 0, one round has user 0, one users 3 and 4, both users 1 and 2: the difference is about three."""
    found, out, _ = call(capsys, "--preset", "default", "--rounds", "0-2,5-24;1-24", "--rule", rule)
    assert found == code
    assert ("REFUSED" in out) == (rule == "cells")
    assert "  segment 0, subgroups 0, 1: too few companions: user 0; at least T + 2 = 3 are needed\n" in out
    assert "  no combination of these sums is about fewer than T + 2 users; inputs of few levels" in out


@pytest.mark.slow
def test_broken_privacy_is_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the self mask is forgotten."""

    def bare(ring: Ring, user: int, update: Any, self_mask: Any, pairwise: Any) -> Any:
        return ring.signed_sum(update, ((user < peer, mask) for peer, mask in pairwise))

    monkeypatch.setattr(secagg, "mask_update", bare)
    code, out, _ = call(capsys, "--late", "0", "--collude", "")
    assert code == 1
    assert all(f": x_0[{segment}]\n" in out for segment in range(3))
    assert out.startswith("NOT PRIVATE: the server alone learns x_0[0].\n")
    code, out, _ = call(capsys)
    assert code == 1
    assert out.startswith("NOT PRIVATE: the server alone learns x_0[0]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--collude", "12"), "a user in [0, 12)"),
        (("--drop", "4-2"), "a user, or a range of users such as 4-7"),
        (("--drop", "1-2-3"), "a user, or a range of users such as 4-7"),
        (("--drop", "1-"), "--drop = '1-': must be a user, or a range of users such as 4-7"),
        (("--collude", "-3"), "--collude = '-3': must be a user, or a range of users such as 4-7"),
        (("--collude", "1,,2"), "--collude = '': must be a user, or a range of users such as 4-7"),
        (("--late", "x"), "whole numbers"),
        (("--late", "1,1"), "named once"),
        (("--drop", "1", "--late", "1"), "--drop and --late = [1, 1]: must be disjoint sets of users"),
        (
            ("--drop", "0-9"),
            "--drop = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]: must be at most 9 users in all: max(t, T + 2) = 3",
        ),
        (("--rounds", "0-11;0,1"), "max(t, T + 2) = 3 survivors or more"),
        (("--rounds", "0-11;0-99999999999"), "a user in [0, 12)"),
        (("--rounds", "0-11", "--drop", "1"), "without --collude, --absent, --drop, --late and --odds"),
        (("--odds", ""), "a probability in [0, 1] such as 0.1 or 1/10"),
        (("--odds", "2"), "a probability in [0, 1] such as 0.1 or 1/10"),
        (("--odds", "1e-99999999"), "a probability in [0, 1] such as 0.1 or 1/10"),
        (("--odds", "0." + "1" * 40), "a probability in [0, 1] such as 0.1 or 1/10"),
        (("--odds", "1/0"), "a probability in [0, 1] such as 0.1 or 1/10"),
        (("--preset", "large", "--rule", "one-stream"), "only where N is at most 30"),
        (("--rule", "best"), "'cells', 'none', 'one-stream'"),
        (("--preset", "paper"), "'tiny', 'default', 'large'"),
        (("--matrix", "joint"), "'cyclic', 'perfect', 'separate'"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
