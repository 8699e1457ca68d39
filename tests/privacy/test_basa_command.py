"""The command ``secagg-spec privacy basa``: what it says, and its one-line refusals."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import cli
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger import entries
from secagg_spec.protocols.basa import cores
from secagg_spec.protocols.basa.cores import Masks
from tests.privacy.test_command import line_of, privacy

call = partial(privacy, "basa")


@pytest.mark.slow
def test_tiny_decides_every_end_of_an_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--all")
    assert code == 0
    assert out.startswith(
        "PRIVATE up to T = 1: no single user, nor the server, learns more than the sum over the accepted updates.\n\n"
    )
    assert "rule settle: " in out
    assert "ends of an epoch: all 79\ncoalitions: all, of users that get a key\n" in out
    for coalition in ("the server alone", *(f"user {user}" for user in range(4)), "users 0, 1", "users 2, 3"):
        assert line_of(out, coalition).endswith("  nothing")
    assert "closed epochs: the sum and no more in 104 of 104 cases\n" in out
    assert "before the end: no more than is permitted at that time in 104 of 104 cases\n" in out
    assert "epochs that end without a sum: nothing is learned in 1152 of 1152 cases\n" in out
    assert "the server gets the sum, and recover returns it, in every closed epoch (7)\n" in out
    assert "the sum itself can be one honest update: of user 2, for users 0, 1 (T + 1 = 2 users)\n" in out
    assert "no coalition of any size learns more\n" in out
    assert "NOT" not in out


def test_the_rule_of_the_paper_is_broken_by_the_server_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "paper", "--late", "2")
    assert code == 1
    assert out.startswith("NOT PRIVATE: the server alone learns x_2 - x_3.\n")
    assert "  0: user 0 accepted; 1: user 1 accepted; 2: user 2 late, then user 3 accepted; closed\n" in out
    assert line_of(out, "the server alone").endswith("1 dimension an element when user 2 came late: x_2 - x_3")
    assert "    x_2 - x_3 = y_2 - y_3 - …\n" in out
    code, out, _ = call(capsys, "--late", "2")
    assert code == 0
    assert "no coalition of any size learns more, among the cases decided here\n" in out


def test_one_colluder_that_left_breaks_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "paper", "--timeout", "2:keyed", "--collude", "2")
    assert code == 1
    assert line_of(out, "user 2").endswith("when user 2 left with a key: x_3")
    assert "coalitions: user 2 (others are NOT decided here)" in out
    code, out, _ = call(capsys, "--rule", "paper", "--timeout", "1:keyed", "--collude", "1")
    assert code == 0
    assert "closed epochs: the sum and no more in 1 of 1 cases\n" in out


@pytest.mark.slow
def test_all_of_the_paper_at_tiny(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "paper")
    assert code == 1
    assert "ends of an epoch: all 27 (at most one timeout for each position)\n" in out
    assert "closed epochs: the sum and no more in 472 of 1000 cases\n" in out
    assert "before the end: no more than is permitted at that time in 24 of 24 cases\n" in out
    assert max(map(len, out.splitlines())) <= 170


def test_void_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "void")
    assert code == 0
    assert "closed epochs: the sum and no more in 8 of 8 cases\n" in out
    assert "nothing is learned in 18 of 28 cases\n  in 10 the sum over all their uploads is learned: " in out
    assert out.startswith(
        "PRIVATE up to T = 1: no single user, nor the server, learns more than the sum over its uploads.\n"
    )
    assert "of an epoch beyond the sum over its uploads and their own:\n" in out
    assert "sum over the accepted" not in out


def test_of_an_epoch_without_a_sum_no_sum_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--late", "0,1,2,3")
    assert code == 0
    assert out.partition("\n")[0].endswith(" learns no more than its own data: no epoch is closed.")
    assert "closed epoch" not in out


def test_what_more_than_T_users_learn_does_not_break_privacy(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--rule", "paper", "--timeout", "2:keyed", "--collude", "1,2")
    assert code == 0
    assert out.startswith("BEYOND T = 1: users 1, 2 together learn x_0.\n")
    assert "smallest coalition that learns more, among the cases decided here: users 1, 2 (T + 1 = 2 users)\n" in out


@pytest.mark.parametrize(
    ("rule", "happened", "learned"),
    [
        ("again", ("--timeout", "2:keyed", "--collude", "2"), "x_3"),
        ("bare", ("--late", "2", "--collude", "3"), "x_2"),
        ("both-skipped", ("--late", "2", "--collude", "3"), "x_2"),
        ("both-accepted", ("--timeout", "", "--collude", ""), "x_0; x_1"),
    ],
)
def test_rules_that_are_weaker_are_broken(
    rule: str, happened: tuple[str, ...], learned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, "--rule", rule, *happened)
    assert code == 1
    assert "WEAKER than settle" in out
    assert f": {learned}\n" in out


def test_a_user_without_a_key_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--timeout", "1:before", "--late", "3", "--collude", "0,3")
    assert code == 0
    assert "  0: user 0 accepted; 1: user 2 accepted; 2: user 3 late; 3: user 4 accepted; closed\n" in out
    assert line_of(out, "users 0, 3").endswith("  nothing")


def test_a_larger_preset_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--preset", "default", "--all")
    assert code == 0
    assert "ends of an epoch: 3 (others are NOT decided here)\n" in out
    assert "coalitions: none, the first and the last T and T + 1 users (others are NOT decided here)\n" in out
    assert line_of(out, "users 0 to 2").endswith("  nothing")
    code, out, _ = call(capsys, "--preset", "paper", "--rule", "paper", "--late", "9", "--collude", "")
    assert code == 1
    assert "x_9 - x_10 = y_9 - y_10 - …\n" in out


def test_broken_privacy_is_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the self mask is forgotten."""

    def bare(ring: Ring, weighted: Any, masks: Masks) -> Any:
        return ring.signed_sum(weighted, cores.plus(masks.after), cores.minus(masks.before))

    monkeypatch.setattr(cores, "add_masks", bare)
    code, out, _ = call(capsys, "--late", "2", "--collude", "3")
    assert code == 1
    assert line_of(out, "user 3").endswith("x_2")
    assert "recover returns it" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--collude", "9"), "users that get a key, each named once: 0 to 3"),
        (("--collude", "1,1"), "each named once"),
        (("--collude", "one"), "whole numbers"),
        (("--timeout", "1:before", "--collude", "1"), "each named once: 0, 2, 3"),
        (("--timeout", "2"), "a user with :keyed or :before"),
        (("--timeout", "2:soon"), "a user with :keyed or :before"),
        (("--timeout", ",2:keyed"), "a user with :keyed or :before"),
        (("--timeout", "x:keyed"), "whole numbers"),
        (("--timeout", ":keyed"), "':keyed': must be a user with :keyed or :before"),
        (("--timeout", "9:keyed"), "users that arrive before the epoch ends: 0 to 2"),
        (("--timeout", "9:before"), "users that arrive before the epoch ends: 0 to 2"),
        (("--late", "2,2"), "appear once, in --timeout or in --late"),
        (("--late", "2", "--timeout", "2:keyed"), "appear once, in --timeout or in --late"),
        (("--rule", "void", "--late", "0", "--timeout", "1:keyed"), "before the epoch ends: 0 to 0"),
        (("--rule", "best"), "'settle', 'void', 'paper', 'again', 'bare', 'both-skipped', 'both-accepted'"),
        (("--preset", "large"), "'tiny', 'default', 'paper'"),
        (("--coalition", "1"), "unrecognized arguments: --coalition"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_the_help_names_the_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["privacy", "basa", "--help"])
    assert "--timeout" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------- the page for readers

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "basa-timeouts.md").read_text(encoding="utf-8")
COMMAND = "secagg-spec privacy basa"


@pytest.mark.parametrize("shown", re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_the_page_shows_what_the_command_says(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, *wanted = shown.splitlines()
    assert first.startswith(f"$ {COMMAND}")
    _, out, _ = call(capsys, *shlex.split(first.removeprefix(f"$ {COMMAND}")))
    lines = iter(out.splitlines())
    for line in wanted:
        assert line == "…" or line in lines


@pytest.mark.parametrize("options", re.findall(r"`(--rule [^`]+)`", PAGE))
def test_the_commands_of_the_page_show_a_leak(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, *shlex.split(options))
    assert code == 1
    assert "WEAKER than settle" in out


def test_the_figures_of_the_page_are_right() -> None:
    rows = [re.findall(r"\d+", line.partition(" | ")[2]) for line in PAGE.splitlines() if line.startswith("| of 100")]
    rates, closed = ([int(number) for number in row] for row in rows)
    assert closed == [round(100 * (1 - rate / 100) ** 10) for rate in rates]
    assert len(rates) == 5


def test_the_claims_of_the_page_stand() -> None:
    book = entries.load()
    named = set(re.findall(r"\b(?:UNI|BASA)-[A-Z0-9]+\b", PAGE))
    assert len(named) == 6
    assert all(book.claim(name).proof in ("basa_timeouts", "basa_settle") for name in named)
