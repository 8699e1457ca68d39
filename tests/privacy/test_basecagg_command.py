"""The command ``secagg-spec privacy basecagg``: what it says, and its one-line refusals."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.commands import privacy_basecagg as command
from secagg_spec.privacy import basecagg as model
from secagg_spec.protocols.basecagg import round as protocol
from tests.privacy.test_command import line_of, privacy

call = partial(privacy, "basecagg")
TINY = Namespace(preset="tiny", weights=None, points=None, coalition=None)


def test_what_is_concluded_from_some_cases() -> None:
    """Users 0 to 2 are buffered: when users 0 and 1 collude, the sum is the update of user 2."""
    coalitions = ((), (0,), (3, 4), (0, 1), (0, 1, 3))
    plan = command._plan(TINY)
    plan = replace(plan, coalitions=coalitions, buffers=plan.buffers[:1], every_coalition=False)
    cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.buffers))
    rows = {found.coalition: found.row for found in command._found(plan, cases)}
    assert rows[0,] == "nothing"
    assert "2 dimensions a column when users 0 to 2 are buffered: " in rows[3, 4]
    assert "buffered and 2 other honest updates came: " in rows[0, 1]
    lines = list(command._conclusions(plan, cases))
    who = "for users 0, 1 (T + 1 = 2 users), when users 0 to 2 are buffered"
    assert lines[:2] == [
        f"the weighted sum can be one honest update: the update of user 2, {who}",
        "the weighted sum itself is learned in every case",
    ]
    assert "smallest coalition that learns more, among the cases decided here: users 3, 4 (T + 1 = 2 users)" in lines
    assert "  elements 0, 2: exactly that in 2 of 2 cases" in lines
    assert "  each other honest update adds one more: in 2 of 2 cases" in lines


def test_most_that_is_learned_is_shown() -> None:
    """User 2 is alone in one of the two buffers, where nobody else's update is left to tell from it."""
    plan = command._plan(TINY)
    plan = replace(plan, coalitions=((0, 1, 3),), buffers=(plan.buffers[0], plan.buffers[-1]))
    cases = tuple(model.audit(plan.parameters, plan.code, plan.coalitions, plan.buffers))
    most = max(case.verdict.dimension for case in cases)
    assert most > min(case.verdict.dimension for case in cases)
    [found] = command._found(plan, cases)
    assert found.row.startswith(f"{most} dimensions a column when ")


def test_all_buffers_are_checked_unless_weights_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    real = model.every_buffer

    def seven(parameters: protocol.Parameters) -> Iterator[model.Buffer]:
        return islice(real(parameters), 7)

    monkeypatch.setattr(model, "every_buffer", seven)
    plan = command._plan(TINY)
    assert plan.everything
    [line] = command._other_weights(plan)
    assert line.endswith("answers are shares times weights in 7 of 7 buffers, all that users accept")
    [line] = command._other_weights(replace(plan, given=True))
    assert line.endswith("answers are shares times weights in 10 of 10 buffers, those decided here")
    [line] = command._other_weights(replace(plan, every_coalition=False))
    assert line.endswith("answers are shares times weights in 10 of 10 buffers, those decided here")


@pytest.mark.slow
def test_tiny_names_every_coalition_and_what_it_learns(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--all")
    assert code == 0
    assert out.startswith("PRIVATE up to T = 1: no single user, nor the server, learns more than the weighted sum.\n")
    assert "weights that users accept: 3 at 0, 1 or 2 at 1, 1 at 2, by staleness" in out
    assert "coalitions: all 32" in out
    assert "buffers: all 10 sets of K = 3 users, with the weights 3, 1, 1" in out
    for coalition in ("the server alone", *(f"user {user}" for user in range(5))):
        assert line_of(out, coalition).endswith("  nothing")
    learned = "2 dimensions a column when users 2 to 4 are buffered: x_4[0] + 7*x_4[2]; x_3[0] + 7*x_3[2]"
    assert learned in line_of(out, "users 0, 1")
    assert "2 other honest updates came: " in line_of(out, "users 0 to 2")
    assert line_of(out, "users 0 to 4").endswith("nothing (all updates are its own)")
    assert len([line for line in out.splitlines() if line.startswith(("  user", "  the server"))]) == 32
    assert "the weighted sum can be one honest update: the update of user 2, for users 0, 1 (T + 1 = 2 users)" in out
    assert "the weighted sum itself is learned in every case" in out
    assert "answers are shares times weights in 640 of 640 buffers, all that users accept" in out
    assert "smallest coalition that learns more: users 0, 1 (T + 1 = 2 users)" in out
    assert out.count("exactly that in 100 of 100 cases") == 2
    assert "NOT" not in out
    assert "(2)" not in out


@pytest.mark.slow
def test_weights_that_users_accept_change_the_functionals_and_no_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for weights in ("3,1,1", "3,2,3"):
        code, out, _ = call(capsys, "--coalition", "3,4", "--weights", weights)
        assert code == 0
        assert f"with the weights {weights.replace(',', ', ')}" in out
        assert "REFUSED" not in out
        found.append(line_of(out, "users 3, 4"))
    assert all("2 dimensions a column" in line for line in found)


def test_weights_that_hand_over_an_update_are_refused_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--coalition", "", "--weights", "1,0,0")
    assert code == 1
    assert "REFUSED: no user answers such a buffer: user 1 weighs 0" in out
    assert line_of(out, "the server alone").endswith("the weighted sum over users 0 to 2 is the update of user 0")
    assert "HANDED OVER: the weighted sum is the update of user 0, for the server alone" in out
    assert out.startswith("NOT PRIVATE: the server alone learns the update of user 0: the weighted sum is just that.\n")
    code, out, _ = call(capsys, "--coalition", "1", "--weights", "1,1,0")
    assert code == 1
    assert "HANDED OVER: the weighted sum is the update of user 0, for user 1 (1 user, T = 1), when users 0 to 2" in out
    code, out, _ = call(capsys, "--coalition", "", "--weights", "1,1,0")
    assert code == 0
    assert "REFUSED" in out
    assert "HANDED" not in out


def test_with_the_point_0_the_user_whose_share_is_in_clear_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--points", "0,1,2,3,4", "--coalition", "0")
    assert code == 1
    assert "IN CLEAR: user 0, whose point is 0, holds sub-mask 0, elements 0, 1, of every mask in clear" in out
    assert out.startswith("NOT PRIVATE: user 0 alone learns x_4[0] (and 2 more).\n")
    assert line_of(out, "user 0").endswith("x_4[0]; x_3[0]; x_2[0]")


def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default")
    assert code == 0
    assert "21 or 22 at 2, 16 at 3, … 5 or 6 at tau_max = 10" in out
    assert "coalitions: users 0 to 2; users 0 to 3 (others are NOT decided here)" in out
    assert "buffers: users 0 to 4; users 5 to 9 (others are NOT decided here), with the weights 64, 32, 21," in out
    assert "one other update stands for all others that came" in out
    assert line_of(out, "users 0 to 2").endswith("nothing")
    assert "5 dimensions a column" in line_of(out, "users 0 to 3")
    assert "2 of 2 buffers, those decided here" in out
    assert out.startswith("PRIVATE in the cases decided here: the server, also with users 0 to 2, learns no more than ")
    assert max(map(len, out.splitlines())) <= 175


def test_answers_without_weights_are_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unweighted(p: protocol.Parameters, round: int, entries: Any, held: Any) -> UintArray:
        return p.field.sum(np.stack([held[entry.user].share for entry in entries]))

    monkeypatch.setattr(protocol, "combine_shares", unweighted)
    code, out, _ = call(capsys, "--coalition", "", "--preset", "default")
    assert code == 1
    assert out.startswith("NOT PRIVATE: the server alone learns x_0[0] - ")
    assert "is learned in every case" not in out
    assert "OTHER WEIGHTS ARE NOT DECIDED: answers are shares times weights in 0 of 2 buffers" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--coalition", "0,5"), "a user in [0, 5)"),
        (("--coalition", "0,0"), "named once"),
        (("--coalition", "user 0"), "whole numbers"),
        (("--weights", "3,1"), "must be 3, one for each user"),
        (("--weights", "3,1,1,1"), "must be 3, one for each user"),
        (("--weights", ""), "must be 3, one for each user"),
        (("--weights", "3,1,19"), "[0, 18]"),
        (("--weights", "3,,1"), "whole numbers"),
        (("--weights", "3,1,-1"), "whole numbers"),
        (("--weights", "3,1,0.5"), "whole numbers"),
        (("--weights", "3,1," + "9" * 5000), "whole numbers"),
        (("--weights",), "expected one argument"),
        (("--points", "1,2,2,3,4"), "2 for users 1 and 2"),
        (("--points", "0,1,2,3"), "N = 5 points"),
        (("--points", "1,2,3,4,19"), "[0, 18]"),
        (("--preset", "huge"), "'tiny', 'default', 'paper'"),
        (("--drop", "1"), "unrecognized arguments: --drop"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1, err
    assert said in err
    assert len(err) < 300
