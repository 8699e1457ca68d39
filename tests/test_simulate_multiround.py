"""``secagg-spec simulate multiround``: what a person sees of a session, and that what it says is so."""

from __future__ import annotations

import re

import pytest

from secagg_spec.cli import main
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round import runs as multi_round_runs
from secagg_spec.simulate import multiround


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["simulate", "multiround", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rounds(out: str) -> list[tuple[list[int], list[int], list[int]]]:
    """The batches that were chosen, left out, and in the sum, of each round."""
    found = []
    for text in re.split(r"^round \d+:", out.split("\n\n")[1], flags=re.M)[1:]:
        named = [re.search(rf"^  {what}: batch(?:es)? ([\d, ]+)", text, re.M) for what in KINDS]
        found.append(tuple([int(batch) for batch in one[1].split(", ")] if one else [] for one in named))
    return found  # type: ignore[return-value]


KINDS = ("chosen", "left out", "in the sum")


@pytest.mark.parametrize("base", ["secagg", "lightsecagg"])
@pytest.mark.parametrize("strategy", ["fair", "uniform", "least"])
def test_it_shows_a_whole_session(capsys: pytest.CaptureFixture[str], base: str, strategy: str) -> None:
    code, out, err = call(capsys, "--protocol", base, "--strategy", strategy, "--lost", "0.1", "--rounds", "8")
    assert (code, err) == (0, "")
    assert "N = 24 users in 6 batches of T = 4, K = 12 of them in a round, c = 2 may collude" in out
    assert f"strategy {strategy}; the family has 20 sets of 3 batches" in out
    report = rounds(out)
    assert len(report) == 8
    assert any(left and summed for _, left, summed in report)
    for chosen, left, summed in report:
        assert len(chosen) in {0, 3}
        if summed:
            assert sorted(left + summed) == chosen
    counts = [sum(batch in summed for _, _, summed in report) for batch in range(6)]
    with_sum = sum(bool(summed) for _, _, summed in report)
    assert f"the log: {with_sum} of 8 rounds with a sum; each user is in {min(counts)} to {max(counts)} sums" in out
    patterns = [tuple(batch in summed for _, _, summed in report) for batch in range(6)]
    together = [4 * patterns.count(pattern) for pattern in patterns if any(pattern)]
    assert f"at least {min(together)} users are always together (T = 4)" in out
    assert f"with 2 of them on its side, {min(together) - 2} are" in out
    assert "12 of 12 users refuse and blame the server" in out
    assert out.splitlines()[-2].startswith(f"{with_sum} of 8 rounds have a sum, and it is right: ")
    assert "in numbers of the round: the survivors [1, 2, 3" in out
    assert all(len(line) <= 120 for line in out.splitlines())


@pytest.mark.slow
def test_a_seed_is_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    outs = [call(capsys, "--seed", seed)[1] for seed in ("1", "1", "2")]
    assert outs[0] == outs[1] != outs[2]


def test_a_session_without_rounds_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--away", "0.9")
    assert code == 1
    assert out.count("fewer than 3 batches complete: no round") == 6
    assert "the log: 0 of 6 rounds with a sum; each user is in 0 sums" in out
    assert out.endswith("\nNone of 6 rounds has a sum.\n")
    assert "refuse" not in out


def test_a_round_with_too_few_users_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--lost", "0.9", "--away", "0", "--rounds", "2")
    assert code == 1
    assert out.count("too few users are left: no sum") == 2


@pytest.mark.slow
@pytest.mark.requirement("MRA-27")
@pytest.mark.parametrize("base", ["secagg", "lightsecagg"])
def test_a_round_that_failed_late_is_in_the_log(capsys: pytest.CaptureFixture[str], base: str) -> None:
    """A round is of one batch of nine users, of whom nearly all have to answer; a few drop out in each phase."""
    found = 0
    numbers = {"colluders": 7, "batch": 9, "chosen": 9, "users": 18, "rounds": 30, "lost": 0.3, "away": 0, "length": 2}
    options = [f"--{name}={number}" for name, number in numbers.items()]
    for seed in range(1, 7):
        _, out, _ = call(capsys, *options, "--strategy", "partition", "--protocol", base, "--seed", str(seed))
        report = r"^  too few users are left: no sum; batch (\d) had been announced and are in the log$"
        late, summed = re.findall(report, out, re.M), re.findall(r"^  in the sum: batch (\d);", out, re.M)
        counts = [(late + summed).count(batch) for batch in "01"]
        often = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{max(counts)}"
        failed = f", {len(late)} that failed after survivors were announced\n" if late else "; "
        assert f"the log: {len(summed)} of 30 rounds with a sum{failed}each user is in {often} " in out
        assert all(len(line) <= 120 for line in out.splitlines())
        found += len(late)
    assert found


def test_one_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--users", "12", "--batch", "12", "--rounds", "1", "--lost", "0", "--away", "0")
    assert "the family has 1 set of 1 batch\n" in out
    assert "the log: 1 of 1 round with a sum; each user is in 1 sum\n" in out


def test_many_users_that_are_away_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--users", "200", "--rounds", "1", "--length", "1", "--away", "0.2")
    assert re.search(r"^round 0: not available: [2-6]\d users$", out, re.M)


def test_large_families_are_told_by_their_power_of_ten(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--users", "2000", "--rounds", "1", "--length", "1")
    assert f"has about 10**{len(str(500 * 499 * 498 // 6)) - 1} sets of 3 batches" in out


def test_a_batch_of_three_users_has_one_colluder(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--batch", "3")
    assert code == 0
    assert "in 8 batches of T = 3, K = 12 of them in a round, c = 1 may collude" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--batch", "5"], "--chosen = 12: must be a multiple of T = 5"),
        (["--strategy", "partition"], "--batch = 4: must be 12 for the strategy 'partition'"),
        (["--colluders", "0"], "--colluders = 0: must be an integer"),
        (["--away", "nan"], "away = 'nan': must be a number"),
        (["--lost", "1e-400"], "lost = '1e-400': must be 0, or from 2^-53 to 1 - 2^-53: a draw has 53 bits"),
        (["--away", "0.99999999999999999999"], "away = '0.99999999999999999999': must be 0, or from 2^-53 to"),
        (["--lost=-0.1"], "lost = '-0.1': must be at least 0 and below 1"),
        (["--lost", "1"], "lost = '1': must be at least 0 and below 1"),
        (["--users", "2"], "--users = 2: must be an integer in [3, 4294967295]"),
        (["--users", "3"], "--chosen = 12: must be an integer in [3, 3]"),
        (["--colluders", "3"], "--colluders = 3: must be an integer in [1, 2]"),
        (["--batch", "3", "--colluders", "2"], "--colluders = 2: must be an integer in [1, 1]"),
        (["--batch", "2"], "--batch = 2: must be an integer in [3, 12]"),
        (["--users", "0"], "users = 0: must be an integer"),
        (["--batch", "13"], "--batch = 13: must be an integer in [3, 12]"),
        (["--rounds", "0"], "rounds = 0: must be an integer in [1, 1000]"),
        (["--users", "1000000000", "--chosen", "8"], "must be at most 2097152 elements"),
        (["--users", "120", "--chosen", "120", "--length", "1"], "give fewer --rounds or --chosen, fewer --users or"),
        (["--length", "0"], "length = 0: must be an integer"),
        (["--seed", "-1"], "seed = -1: must be an integer"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_sums_are_compared_with_plain_ones(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: object, **named: object) -> object:
        outcomes = multi_round_runs.run_session(*arguments, **named)  # type: ignore[arg-type]
        return tuple(
            multi_round_runs.Outcome(one.chosen, one.survivors[4:], one.aggregate) if one.survivors else one
            for one in outcomes
        )

    monkeypatch.setattr(multiround, "run_session", wrong)
    with pytest.raises(AssertionError, match="did not give the plain sum"):
        call(capsys)


def test_a_user_that_answers_the_lie_is_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_round, "look_at_survivors", lambda base, state, request: request)
    with pytest.raises(AssertionError, match="answered for part of a batch"):
        call(capsys)
