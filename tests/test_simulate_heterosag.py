"""``secagg-spec simulate heterosag``: what a person sees of a round, and that what it says is so."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic.segments import MATRICES, algorithm_1
from secagg_spec.cli import main
from secagg_spec.errors import ParameterError
from secagg_spec.learning import attacks
from secagg_spec.protocols.heterosag.averages import combine
from secagg_spec.protocols.heterosag.plan import PRESETS, Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.simulate.heterosag_inputs import Inputs, aggregates, byzantine_users, draw_inputs, plain_sums
from tests.quick import part

RIGHT = "and they are right: they equal the plain sums."
ISSUE = ["--groups", "5", "--users", "25", "--levels", "2,6,8,10,12", "--byzantine", "1"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its exit code and what it printed."""
    code = main(["simulate", "heterosag", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def drop(phase: str, *users: int) -> list[str]:
    """The options by which users drop out before a phase."""
    return [argument for user in users for argument in ("--drop", f"{phase}:{user}")]


def block(out: str, start: str) -> list[str]:
    """The lines after the one that begins so, up to an empty one."""
    lines = out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith(start))
    after = [*lines[first + 1 :], ""]
    return after[: after.index("")]


def bits(R: int) -> int:
    """The least number of bits that hold R values."""
    width = 0
    while 2**width < R:
        width += 1
    return width


def test_it_shows_a_whole_round(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *ISSUE)
    assert (code, err) == (0, "")
    assert "HeteroSAg: N = 25 users in 5 groups, t = 13 shares needed, T = 1 may collude, D = 5 may drop out" in out
    assert "the server has the sums of 15 cells" in out
    assert RIGHT in out
    assert "MaskedSegments: 25 messages" in out
    assert "B = 1 is within the bound ceil(Z/4) - 1 = 1; in segment 0 they are in 1 of 3 cells" in out
    assert "clipped to [-1, 1] before it is quantised: the quantiser carries nothing else" in out
    assert "\x1b" not in out
    assert all(len(line) <= 120 for line in out.splitlines())


@pytest.mark.parametrize("matrix", ["cyclic", "perfect", "separate"])
@pytest.mark.parametrize("Z", [4, 6])
def test_cells_are_those_of_the_matrix(capsys: pytest.CaptureFixture[str], matrix: str, Z: int) -> None:
    levels = ",".join(str(2 + at) for at in range(Z))
    options = ["--groups", str(Z), "--users", str(4 * Z), "--levels", levels, "--matrix", matrix]
    _, out, _ = call(capsys, *options)
    table = [line.split()[1:] for line in block(out, "who masks")[2 : Z + 2]]
    plan = MATRICES[matrix](Z)
    if matrix == "cyclic":
        assert table == [["*" if x < 0 else str(x) for x in row] for row in algorithm_1(Z)]
    report = "\n".join(block(out, "the cells of each segment"))
    for segment in range(Z):
        [line] = re.findall(rf"^  {segment}  ((?:.|\n {{5}})*)", report, re.M)
        cells = re.findall(r"([\d+]+): (\d+) users, K = (\d+), R = (\d+)", line)
        wanted = [
            ("+".join(map(str, cell)), 4 * len(cell), 2 + cell[0], 4 * len(cell) * (1 + cell[0]) + 1)
            for cell in plan[segment]
        ]
        assert cells == [(name, *map(str, rest)) for name, *rest in wanted]


def test_bits_are_counted_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, *ISSUE, "--length", "23")
    K, lengths = (2, 6, 8, 10, 12), (5, 5, 5, 4, 4)
    cells = {(at, g): cell for at, row in enumerate(MATRICES["perfect"](5)) for cell in row for g in cell}
    for g, line in enumerate(block(out, "bits of each element")[2:]):
        numbers = [float(word.replace(",", "")) for word in line.split("to")[1].split()[1:]]
        each = [bits(5 * len(cells[at, g]) * (K[min(cells[at, g])] - 1) + 1) for at in range(5)]
        sent = sum(width * length for width, length in zip(each, lengths, strict=True))
        plain = bits(25 * (K[g] - 1) + 1)
        masks = sum(5 * len(cells[at, g]) * length for at, length in enumerate(lengths))
        ratio = round(sent / (23 * plain), 2)
        assert numbers == [K[g], *each, sent, plain, 23 * plain, ratio, masks, 25 * 23]


def test_the_naive_scheme_gives_every_group_away(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--matrix", "separate")
    known = block(out, "segments in which the server")
    assert known[:5] == [f"  group {g}: segments 0 to 4, 5 of 5" for g in range(5)]
    assert "inference robustness 0" in known[5]
    assert "the naive scheme" in out


def test_a_lost_group_leaves_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, *drop("masked_input", 5, 6, 7, 8, 9))
    assert code == 0
    known = block(out, "segments in which the server")
    assert known[1] == "  group 1: lost as a whole"
    assert known[0] == "  group 0: segments 0, 4, 2 of 5; before others were lost, segment 4"
    assert known[5] == "  the most: group 0 in segments 0, 4; inference robustness 3/5 (0.600)"
    assert known[6] == "  before group 1 was lost: groups 0, 1 in segment 0; 4/5 (0.800)"
    assert "the server has the sums of 14 cells" in out
    assert RIGHT in out


def test_a_cell_with_too_few_survivors_ends_the_round(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, *drop("masked_input", 5, 6, 7))
    assert (code, err) == (1, "")
    assert "the round ends without sums: 2 of the users of subgroups [1] survive in segment 1" in out
    code, out, _ = call(capsys, *drop("unmasking", *range(13)))
    assert code == 1
    assert "the round ends without sums: 12 holders" in out


def test_messages_are_shown_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, *drop("share_keys", 3), "--show", "messages")
    assert "masked_input: each user\n  absent: user 3\n  MaskedSegments: 24 messages" in out
    assert "the server now has sums: 15 of them, the first is (" in out
    assert "the server now has masked sums: 15 of them" in out
    assert "the server now has remembered request: users 0 to 2, 4 to 24" in out


def figures(out: str) -> dict[str, list[float]]:
    """Error, error if all were honest, and how far the attack moved it, of each aggregate."""
    rows = re.findall(r"^  (mean|median|trimmed, b = \d+) +([\d.]+) +([\d.]+) +([\d.]+)$", out, re.M)
    return {name: [float(x) for x in numbers] for name, *numbers in rows}


@pytest.mark.parametrize("attack", ["gaussian", "sign-flip"])
def test_errors_are_those_of_the_round(capsys: pytest.CaptureFixture[str], attack: str) -> None:
    _, out, _ = call(capsys, *ISSUE, "--attack", attack, "--trim", "1", "--seed", "7")
    p, seed = PRESETS["default"], (7).to_bytes(8, "little")
    inputs = draw_inputs(p, (0,), attack, seed)
    wanted, report = inputs.honest[1:].mean(axis=0), figures(out)
    assert set(report) == {"mean", "median", "trimmed, b = 1"}
    for name, method, trim in (("mean", "mean", 0), ("median", "median", 0), ("trimmed, b = 1", "trimmed", 1)):
        sums = [plain_sums(p, updates, range(25)) for updates in (inputs.updates, inputs.unharmed())]
        found, unharmed = (combine(p, each, method, trim) for each in sums)
        apart = (found - wanted, unharmed - wanted, found - unharmed)
        assert report[name] == [pytest.approx(float(np.sqrt((x**2).mean())), abs=6e-5) for x in apart]
        assert f"  {name:33}  ({found[0]:.4f}, {found[1]:.4f}, " in out


@pytest.mark.slow
def test_the_median_is_moved_less_than_the_mean_by_many_seeds() -> None:
    p = PRESETS["large"]
    byzantine = byzantine_users(p, 4)
    mean, median = np.zeros(2), np.zeros(2)
    for seed in range(4):
        inputs = draw_inputs(p, byzantine, "gaussian", bytes([seed]))
        found = {
            one.name: one for one in aggregates(inputs, plain_sums(p, inputs.updates, range(100)), range(100), None)
        }
        mean += found["mean"].moved, found["mean"].attacked
        median += found["median"].moved, found["median"].attacked
    assert (median < mean).all()


def test_without_byzantine_users_nothing_is_moved(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys)
    assert "no user is Byzantine (--byzantine B makes B users attack)" in out
    assert "plain mean of the 25 honest users" in out
    assert re.search(r"root mean square error: mean 0\.\d{4}, median 0\.\d{4}$", out, re.M)
    assert "moved" not in out


def test_byzantine_users_are_in_groups_of_their_own() -> None:
    assert byzantine_users(PRESETS["default"], 7) == (0, 5, 10, 15, 20, 1, 6)
    assert byzantine_users(PRESETS["tiny"], 4) == (0, 4, 8, 1)
    assert byzantine_users(PRESETS["default"], 0) == ()


@pytest.mark.parametrize("count", [-1, 13, "1", True])
def test_more_byzantine_users_than_there_are_are_refused(count: Any) -> None:
    with pytest.raises(ParameterError, match=r"^count = .*must be an integer in \[0, 12\]$"):
        byzantine_users(PRESETS["tiny"], count)


@pytest.mark.parametrize(
    ("users", "attack", "text"),
    [((0,), "other", "attack = 'other'"), ((12,), "gaussian", "byzantine = 12"), ((0, 0), "gaussian", "byzantine = 0")],
)
def test_attacks_of_nobody_and_unknown_ones_are_refused(users: tuple[int, ...], attack: str, text: str) -> None:
    with pytest.raises(ParameterError, match=f"^{text}"):
        draw_inputs(PRESETS["tiny"], users, attack, bytes(8))


@pytest.mark.parametrize("attack", ["gaussian", "sign-flip"])
def test_attacks_act_on_inputs_and_are_clipped(attack: str) -> None:
    inputs = draw_inputs(PRESETS["default"], (3, 4), attack, b"seed")
    honest = [user for user in range(25) if user not in (3, 4)]
    assert (inputs.sent[honest] == inputs.honest[honest]).all()
    assert (inputs.sent[3] != inputs.honest[3]).sum() > 15
    assert np.abs(inputs.sent).max() == 1
    assert np.abs(inputs.honest).max() < 1
    assert (inputs.updates[honest] == inputs.unharmed()[honest]).all()
    if attack == "sign-flip":
        assert (inputs.sent[3] == np.clip(-5 * inputs.honest[3], -1, 1)).all()
    else:
        assert (inputs.sent[3] != inputs.sent[4]).any()
    assert attacks.GAUSSIAN_DEVIATION == attacks.SIGN_FLIP_SCALE == 5


@pytest.mark.slow
def test_a_seed_decides_everything(capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (call(capsys, "--byzantine", "2", "--seed", seed)[1] for seed in ("5", "5", "6"))
    assert first == again
    assert block(first, "the aggregate") != block(other, "the aggregate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    part(
        3,
        [
            (["--preset", "tiny"], "N = 12 users in 2 groups with 3 subgroups, t = 3 shares needed"),
            (["--preset", "large", "--byzantine", "5"], "B = 5 is beyond the bound ceil(Z/4) - 1 = 4"),
            (["--groups", "1", "--subgroups", "3", "--users", "12"], "in 1 group with 3 subgroups"),
            (["--users", "31", "--groups", "7"], "N = 31 users in 7 groups, t = 16"),
            (["--levels", "16"], "K = 16, R = 151"),
            (["--levels", "2,4", "--users", "8"], "N = 8 users in 2 groups"),
            (["--subgroups", "1,1,2", "--users", "24"], "in 3 groups with 4 subgroups"),
            (["--colluders", "3"], "T = 3 may collude"),
            (["--length", "5"], "d = 5 elements"),
            (["--byzantine", "24", *drop("masked_input", 24)], "no honest user survives"),
            (
                ["--trim", "1", *drop("masked_input", *range(5, 10))],
                "a segment has only 2 cells left, too few to trim b = 1",
            ),
            (["--seed", str(2**64 - 1)], "D = 5 may drop out"),
        ],
    ),
)
def test_these_rounds_end_well(capsys: pytest.CaptureFixture[str], options: list[str], said: str) -> None:
    code, out, err = call(capsys, *options)
    assert code == 0, err
    assert RIGHT in out
    assert said in out


@pytest.mark.slow
def test_a_wrong_sum_is_not_passed_over(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    right = secagg.unmask

    def shifted(ring: Any, *given: Any) -> Any:
        return ring.add(right(ring, *given), np.ones(len(given[0]), dtype=np.uint64))

    monkeypatch.setattr("secagg_spec.protocols.secagg.round.unmask", shifted)
    with pytest.raises(AssertionError, match="the plain sums"):
        call(capsys, "--levels", "60", "--length", "5")


def test_plain_sums_are_sums_of_integers() -> None:
    p: Parameters = PRESETS["tiny"]
    inputs: Inputs = draw_inputs(p, (), "gaussian", b"x")
    survivors = [user for user in range(12) if user not in (4, 5, 6, 7, 9)]
    found = plain_sums(p, inputs.updates, survivors)
    assert [one.cell.subgroups for one in found] == [(0, 1), (2,), (0, 2), (0,), (1, 2)]
    for one in found:
        rows = [inputs.updates[user, one.cell.start : one.cell.stop].tolist() for user in one.survivors]
        assert one.total.tolist() == [sum(column) for column in zip(*rows, strict=True)]
        assert set(one.survivors) == one.cell.members & set(survivors)


HUGE = str(10**30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--groups", "0"], "groups = 0: must be an integer in [1, 35]"),
        (["--groups", "-3"], "groups = -3: must be an integer in [1, 35]"),
        (["--groups", "36"], "groups = 36: must be an integer in [1, 35]"),
        (["--groups", "1"], "subgroups in all = 1: must be an integer in [2, 35]"),
        (["--groups", "abc"], "--groups"),
        (["--users", "3"], "users = 3: must be enough for 5 groups: group 3 has 0 and needs at least T + 2 = 3 users"),
        (["--groups", "10"], "enough for 10 groups: group 5 has 2 and needs at least T + 2 = 3 users"),
        (
            ["--groups", "35", "--users", "105", "--length", "35"],
            "subgroups in all = 35: must be from 2 to 32, or such that",
        ),
        (["--users", "2"], "users = 2: must be an integer in [3, 65536]"),
        (["--users", "1000"], "at most 2097152 elements"),
        (["--users", HUGE], "users = "),
        (["--length", "4"], "--length = 4: must be an integer of at least Z = 5"),
        (["--length", "0"], "length = 0"),
        (["--length", HUGE], "at most 2097152 elements"),
        (
            ["--groups", "5", "--levels", "2,3"],
            "--levels = [2, 3]: must be 5 numbers, one for each group, or one for all",
        ),
        (["--levels", "8,6,8,10,12"], "levels = [8, 6, 8, 10, 12]: must be ascending"),
        (["--levels", "1"], "levels[0] = 1: must be an integer in [2, 2147483648]"),
        (["--levels", ""], "--levels = '': must be whole numbers with commas between"),
        (["--levels", "x"], "--levels = 'x': must be whole numbers"),
        (["--levels", str(2**32)], "levels[0] = 4294967296: must be an integer in [2, 2147483648]"),
        (["--subgroups", "2"], "group 0 has 5 and needs at least T + 2 = 3 users for each of its 2 subgroups"),
        (["--preset", "large", "--users", "59"], "group 4 has 11 and needs at least T + 2 = 3 users for each of its 4"),
        (["--subgroups", "0"], "subgroups in all = 0: must be an integer in [2, 35]"),
        (["--subgroups", "0,1,1,1,1"], "subgroups[0] = 0: must be"),
        (["--subgroups", "40"], "subgroups in all = 200: must be an integer in [2, 35]"),
        (["--matrix", "joint"], "choose from"),
        (["--preset", "paper"], "choose from"),
        (["--colluders", "0"], "--colluders = 0"),
        (["--colluders", HUGE], "--colluders = "),
        (["--colluders", "4"], "group 0 has 5 and needs at least T + 2 = 6 users"),
        (["--dropouts", "23"], "--dropouts = 23: must be an integer in [0, 22]"),
        (["--dropouts", "22", "--colluders", "2"], "N - D = 3: must be at least T + 2 = 4"),
        (["--threshold", "2"], "--threshold = 2: must be an integer in [3, 20]"),
        (["--byzantine", "25"], "byzantine = 25: must be an integer in [0, 24]"),
        (["--byzantine", "-1"], "byzantine = -1: must be an integer in [0, 24]"),
        (["--attack", "label-flip"], "choose from"),
        (["--trim", "2"], "trim = 2: must be an integer in [0, 1]"),
        (["--trim", "-1"], "trim = -1: must be an integer in [0, 1]"),
        (["--show", "everything"], "choose from"),
        (["--seed", "-1"], "seed = -1"),
        (["--drop", "masked_input:25"], "[0, 25)"),
        (["--drop", "upload:2"], "'upload'"),
        (["--drop", "2"], "as in share_keys:2"),
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
