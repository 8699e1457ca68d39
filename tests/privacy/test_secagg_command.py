"""The command ``secagg-spec privacy secagg``: what it says, and its one-line refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.protocols.secagg import round as protocol
from tests.privacy.test_command import line_of, privacy

call = partial(privacy, "secagg")


@pytest.mark.slow
def test_tiny_names_every_coalition_and_what_it_learns(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--all")
    assert code == 0
    assert out.startswith(
        "PRIVATE up to T = 1: no single user, nor the server, learns more than the sum.\n"
        "Three colluders (users 0 to 2) learn x_3[0] (and 1 more).\n"
    )
    assert "coalitions: all 32" in out
    assert "every pair of U_2 and U_3 with which a round goes on, 51 in all" in out
    for coalition in ("the server alone", *(f"user {user}" for user in range(5)), "users 0, 1", "users 3, 4"):
        assert line_of(out, coalition).endswith("  nothing")
    learned = "2 dimensions an element when users 0 to 2 survive and 2 honest inputs came late: x_3[0]; x_4[0]"
    assert learned in line_of(out, "users 0 to 2")
    assert line_of(out, "users 0 to 4").endswith("nothing (all inputs are its own)")
    assert len([line for line in out.splitlines() if line.startswith(("  user", "  the server"))]) == 32
    assert "a permitted sum can be one honest input: of user 2, for users 0, 1, when users 0 to 2 survive" in out
    assert "unmask returns the sum over the survivors" in out
    assert "smallest coalition that learns more: users 0 to 2 (T + 2 = 3 users, t = 3)" in out
    assert "true in 1632 of 1632 cases" in out
    assert "NOT" not in out


def test_one_coalition_and_one_dropout(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--coalition", "4, 0,1", "--drop", "2")
    assert code == 0
    assert "coalitions: users 0, 1, 4 (others are NOT decided here)" in out
    assert "dropouts: user 2 before masked_input (others are NOT decided here)" in out
    assert "1 dimension an element" in line_of(out, "users 0, 1, 4")
    assert line_of(out, "users 0, 1, 4").endswith("1 honest input came late: x_2[0]")
    assert "the permitted sums are learned in every case, and unmask returns the sum over the survivors\n" in out
    _, out, _ = call(capsys, "--coalition", "0,1,2", "--drop", "3,4")
    learned = "2 dimensions an element when users 0 to 2 survive and 2 honest inputs came late: x_3[0]; x_4[0]"
    assert line_of(out, "users 0 to 2").endswith(learned)
    code, out, _ = call(capsys, "--coalition", "", "--drop", "")
    assert code == 0
    assert out.startswith("PRIVATE in the cases decided here: the server alone learns no more than the sum.\n\n")
    assert "dropouts: nobody (" in out
    assert "no coalition learns more, among the cases decided here" in out


def test_a_sparse_graph_shows_its_components(capsys: pytest.CaptureFixture[str]) -> None:
    circle = ("--neighbours", "2", "--threshold", "3")
    code, out, _ = call(capsys, *circle, "--coalition", "0,2")
    assert code == 0
    assert "graph: sparse, order 0 to 4" in out
    assert "beyond the sums over the components of the honest survivors and their own data:" in out
    assert line_of(out, "users 0, 2").endswith("nothing; when users 0 to 4 survive, 2 sums: 1 | 3, 4")
    assert "one honest input: of user 1, for users 0, 2, when users 0 to 4 survive" in out
    _, out, _ = call(capsys, *circle, "--coalition", "0,2", "--order", "0,2,4,1,3")
    assert "graph: sparse, order 0, 2, 4, 1, 3" in out
    assert line_of(out, "users 0, 2").endswith("  nothing")


@pytest.mark.slow
def test_a_sparse_graph_says_when_the_sum_falls_apart(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--neighbours", "2", "--threshold", "2")
    assert code == 1
    assert "NOT CONNECTED in 25 of these 96 cases: more is learned than the sum over the survivors" in out
    assert out.startswith(
        "EXPOSES AN INPUT: user 0 alone learns the input of user 1, for it is the only honest user of its component "
        "when users 0, 1, 4 survive. Nobody learns more than the sums over components of the honest survivors.\n"
    )
    assert "  user 0, when users 0 to 2, 4 survive: 2 sums: 1, 2 | 4" in out
    assert "smallest coalition that learns more: users 0, 2 (T + 1 = 2 users, t = 2)" in out
    assert "true in 512 of 512 cases" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--drop", "", "--coalition", "0"), 0),
        (("--drop", "3", "--coalition", "2"), 0),
        (("--drop", "3", "--coalition", "1"), 1),
        (("--drop", "3", "--coalition", "0"), 1),
        (("--drop", "3", "--coalition", "0", "--order", "0,2,4,1,3"), 0),
    ],
)
def test_a_single_input_is_exposed_exactly_where_it_is_alone_in_its_component(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int
) -> None:
    """On a circle a user is alone where neither of its two neighbours is honest and survives."""
    found, out, _ = call(capsys, "--neighbours", "2", "--threshold", "2", *words)
    order = [int(user) for user in words[-1].split(",")] if "--order" in words else list(range(5))
    absent = {int(user) for user in (*words[1], *words[3])}
    near = {user: {order[at - 1], order[(at + 1) % 5]} for at, user in enumerate(order)}
    alone = [user for user in range(5) if user not in absent and near[user] <= absent]
    assert (found, bool(alone)) == (code, bool(code))
    assert out.startswith(
        f"EXPOSES AN INPUT: user {words[3]} alone learns the input of user {alone[0]}, " if alone else "PRIVATE"
    )


def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default")
    assert code == 0
    assert "coalitions: users 0 to 2; users 0 to 3; users 1 to 6 (others are NOT decided here)" in out
    assert "dropouts: nobody; users 4, 9 before masked_input (others are NOT decided here)" in out
    assert line_of(out, "users 0 to 3").endswith("nothing")
    assert "3 dimensions an element" in line_of(out, "users 1 to 6")
    assert max(map(len, out.splitlines())) <= 170


def test_broken_privacy_is_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the self mask is forgotten."""
    real = protocol.mask_update

    def bare(ring: Ring, user: int, update: UintArray, own: UintArray, pairwise: Any) -> UintArray:
        return real(ring, user, update, ring.zeros(own.size), pairwise)

    monkeypatch.setattr(protocol, "mask_update", bare)
    code, out, _ = call(capsys, "--coalition", "", "--drop", "2")
    assert code == 1
    assert out.startswith("NOT PRIVATE: the server alone learns x_2[0].\n")
    assert line_of(out, "the server alone").endswith("x_2[0]")
    assert "  true in 0 of 1 cases\n" in out
    code, out, _ = call(capsys, "--coalition", "0", "--drop", "2")
    assert code == 1
    assert out.startswith("NOT PRIVATE: user 0 alone learns x_2[0].\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--coalition", "0,5"), "a user in [0, 5)"),
        (("--coalition", "0,0"), "named once"),
        (("--coalition", "user 0"), "whole numbers"),
        (("--drop", "0,1,2"), "a dropout that leaves enough users"),
        (("--drop", "7"), "a user in [0, 5)"),
        (("--drop", "1,1"), "named once"),
        (("--drop", "-1"), "whole numbers"),
        (("--order", "0,1,2"), "all N = 5 users"),
        (("--order", ""), "all N = 5 users"),
        (("--order", "0,1,2,3,3"), "a permutation of 0 to N - 1 = 4"),
        (("--order", "0,1,2,3,9"), "a permutation of 0 to N - 1 = 4"),
        (("--order", "0,,1"), "whole numbers"),
        (("--neighbours", "3"), "even and in [2, 2]"),
        (("--neighbours", "2,3"), "one whole number"),
        (("--neighbours", "2", "--threshold", "4"), "[2, 3]"),
        (("--threshold", "5"), "[3, 4]"),
        (("--threshold", "9" * 30), "whole numbers"),
        (("--threshold",), "expected one argument"),
        (("--points", "1,2,3,4,5"), "unrecognized arguments: --points"),
        (("--preset", "paper"), "'tiny', 'default', 'sparse'"),
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


def test_a_protocol_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["privacy"])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
