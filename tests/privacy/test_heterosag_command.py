"""The command ``secagg-spec privacy heterosag``: what it says, and its one-line refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.protocols import secagg
from tests.privacy.test_command import line_of, privacy

call = partial(privacy, "heterosag")


@pytest.mark.slow
def test_tiny_decides_each_kind_of_cell(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys)
    assert code == 0
    assert "segment 0, cells: 0, 1 mod 9; 2 mod 9\n" in out
    assert line_of(out, "4 + 4 users, K = 2, R = 9 (3 cells)").endswith("  nothing, in 104 cases")
    assert line_of(out, "4 users, K = 2, R = 5 (2 cells)").endswith("  nothing, in 24 cases")
    assert "up to T = 1: exactly the sums over the survivors of each cell and the coalition's own data\n" in out
    assert "each of these sums is over at least two honest users, or nobody: in all 152 cases\n" in out
    assert "what may be known is learned in every case, and unmask returns the sum" in out
    assert "tightness: T + 1 = 2 users learn no more than the sums, and\n  the sum can be one segment: " in out
    assert "t = 3 users learn, segment 0, subgroups 0, 1: 8 dimensions modulo 9" in out
    assert "nobody dropped: a share of 1/3 at most, of subgroups 0, 1 in segment 0; inference robustness 2/3\n" in out
    assert "subgroup 0 dropped: a share of 2/3 at most, of subgroup 1 in segments 0, 1;" in out
    assert "one survivor in subgroup 0, which has 4 users: 9/2500 = 0.0036\n" in out
    assert "in any of the 3 subgroups: 168143229/15625000000 = 0.0108\n" in out
    assert "T + 2 = 3 survivors in a subgroup:\n    18570964581/125000000000 = 0.149\n" in out
    assert "NOT" not in out
    assert "BROKEN" not in out


@pytest.mark.slow
def test_default_is_decided_in_whole_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default", "--odds", "1/20")
    assert code == 0
    assert "or nobody: in all 862 cases\n" in out
    assert "subgroups 0, 1 dropped: a share of 3/5 at most" in out
    assert "each user drops out with the probability 1/20, exactly:\n" in out


@pytest.mark.slow
def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "large", "--matrix", "cyclic")
    assert code == 0
    assert "matrix cyclic\n" in out
    assert out.count("NOT decided here") == 2
    assert "own data, as far as decided here\n" in out
    assert "nobody dropped: a share of 1/2 at most" in out
    assert "in any of the 20 subgroups: 0.00896" in out


@pytest.mark.slow
def test_without_the_rule_one_survivor_shows_a_segment(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "none")
    assert code == 1
    assert "rule none: WEAKER than cells" in out
    assert "PRIVACY BROKEN: the sum of a cell can be the segment of one honest user\n" in out
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
    assert "a sum is one segment: segment 2, subgroup 0: x_0[2] for the server alone, when of the cell user 0" in out


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
    assert "in each cell, users who were in the same ones of the sums that were answered are T + 2 or more\n" in out
    assert "had all requests been answered:\n" in out
    assert "  segment 0, subgroup 2: companions who are too few: user 11; at least T + 2 = 3 are needed\n" in out
    assert "  segment 0, subgroup 2: x_11[0] = (sum of round 0) - (sum of round 1)\n" in out
    assert "  as it is, the server does not learn that\n" in out
    code, out, _ = call(capsys, "--rounds", "0-11;0-10", "--rule", "none")
    assert code == 1
    assert "PRIVACY BROKEN: the sums that were answered tell fewer than T + 2 users of a cell from the others\n" in out
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
    assert "  segment 0, subgroups 0, 1: companions who are too few: user 0; at least T + 2 = 3 are needed\n" in out
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
    assert "PRIVACY BROKEN: a coalition of at most T = 1 users learns more than it may\n" in out
    code, out, _ = call(capsys)
    assert code == 1
    assert "PRIVACY BROKEN: a coalition of at most T = 1 users learns more than the sums\n" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--collude", "12"), "a user in [0, 12)"),
        (("--drop", "4-2"), "a user, or a range of users such as 4-7"),
        (("--drop", "1-2-3"), "a user, or a range of users such as 4-7"),
        (("--drop", "1-"), "whole numbers"),
        (("--late", "x"), "whole numbers"),
        (("--late", "1,1"), "named once"),
        (("--drop", "1", "--late", "1"), "disjoint sets of users"),
        (("--drop", "0-9"), "max(t, T + 2) = 3"),
        (("--rounds", "0-11;0,1"), "max(t, T + 2) = 3 survivors or more"),
        (("--rounds", "0-11;0-99999999999"), "a user in [0, 12)"),
        (("--rounds", "0-11", "--drop", "1"), "without --collude, --absent, --drop, --late and --odds"),
        (("--odds", "2"), "a probability such as 0.1 or 1/10"),
        (("--odds", "1e-99999999"), "a probability such as 0.1 or 1/10"),
        (("--odds", "0." + "1" * 40), "a probability such as 0.1 or 1/10"),
        (("--odds", "1/0"), "a probability such as 0.1 or 1/10"),
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
