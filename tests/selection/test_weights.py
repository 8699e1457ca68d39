"""The weak privacy against trying all sets of users, with ranks over the rationals by fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.arithmetic import dependence
from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.selection import codewords, metrics
from secagg_spec.selection.batches import Parameters, family
from secagg_spec.selection.metrics import Log
from secagg_spec.selection.weights import EFFORT, least_weight, least_weights, witness
from tests.selection.test_metrics import table

EFFORTS = st.sampled_from([0, 3, 30, 300, EFFORT])


def rank(rows: Sequence[Sequence[int]]) -> int:
    """The rank over the rationals, by Gauss."""
    left = [[Fraction(entry) for entry in row] for row in rows]
    found = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((row for row in left[found:] if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        left.insert(found, pivot)
        for row in left[found + 1 :]:
            step = row[column] / pivot[column]
            row[:] = [entry - step * other for entry, other in zip(row, pivot, strict=True)]
        found += 1
    return found


def weak(log: Log) -> int:
    """The fewest users outside of which the rank is lower."""
    rows, N = log.astype(int).tolist(), log.shape[1]
    whole = rank(rows)
    for size in range(1, N + 1 if whole else 0):
        for users in combinations(range(N), size):
            if rank([[row[i] for i in range(N) if i not in users] for row in rows]) < whole:
                return size
    return 0


@st.composite
def logs(draw: st.DrawFn, most: int = 8) -> Log:
    N, J = draw(st.integers(1, most)), draw(st.integers(1, most))
    rows = draw(st.lists(st.lists(st.booleans(), min_size=N, max_size=N), min_size=J, max_size=J))
    times = draw(st.lists(st.integers(1, 2), min_size=N, max_size=N))
    return np.repeat(np.array(rows, dtype=bool), times, axis=1)[:, :most]


def check_witness(log: Log, users: tuple[int, ...], high: int) -> None:
    z, word = witness(log, users)
    assert tuple(sum(step for step, there in zip(z, of, strict=True) if there) for of in log.T.tolist()) == word
    held = {user for user, value in enumerate(word) if value}
    assert held
    assert held <= set(users)
    assert len(users) == high


@pytest.mark.requirement("MRA-13", "MRA-14")
@given(logs(), EFFORTS)
@example(table(3, [[0, 1], [1, 2]]), 0)
@example(table(4, [[0, 1], [1, 2], [2, 3], [3, 0]]), 0)
def test_for_few_users_the_numbers_are_the_weak_privacy(log: Log, effort: int) -> None:
    found = least_weight(log, effort=effort)
    assert found.low == found.high == weak(log)
    assert len(found.users) == found.high
    if found.high:
        check_witness(log, found.users, found.high)


@pytest.mark.requirement("MRA-13")
@given(logs(), EFFORTS)
def test_with_little_effort_it_is_between_them(log: Log, effort: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codewords, "EXACT_USERS", 0)
        found, true = least_weight(log, effort=effort), weak(log)
        assert found.low <= true <= found.high
        if found.high:
            check_witness(log, found.users, found.high)
        for t, bounds in enumerate(least_weights(log, effort=effort)):
            assert bounds.low <= weak(log[: t + 1]) <= bounds.high


@pytest.mark.requirement("MRA-13", "MRA-14")
@given(logs())
def test_those_of_all_rounds_are_those_of_each(log: Log) -> None:
    found = least_weights(log)
    assert [bounds.high for bounds in found] == [bounds.low for bounds in found]
    assert [bounds.low for bounds in found] == [least_weight(log[: t + 1]).low for t in range(len(log))]
    for t, bounds in enumerate(found):
        if bounds.high:
            check_witness(log[: t + 1], bounds.users, bounds.high)


@pytest.mark.requirement("MRA-14")
@pytest.mark.parametrize(
    ("N", "rounds", "number"),
    [
        (3, [[0, 1], [1, 2]], 2),
        (4, [[0, 1], [1, 2], [2, 3], [0, 3]], 2),
        (3, [[0, 1], [1, 2], [0, 2]], 1),
        (5, [[]], 0),
        (12, [list(range(12))], 12),
        (12, [list(range(12)), list(range(6))], 6),
        (12, [list(range(12)), [*range(1, 12)]], 1),
    ],
)
def test_known_logs(N: int, rounds: list[list[int]], number: int) -> None:
    """The first two have strong privacy 1 (claim MRS-REM1)."""
    found = least_weight(table(N, rounds))
    assert (found.low, found.high) == (number, number)
    assert str(found) == str(number)


@pytest.mark.parametrize(
    "one", [Parameters(8, 4, 2), Parameters(12, 6, 3), Parameters(24, 12, 4), Parameters(30, 6, 3)]
)
def test_all_sets_of_a_family_have_weak_privacy_of_a_batch(one: Parameters) -> None:
    log = table(one.N, list(family(one)))
    found = least_weight(log)
    assert found.low == found.high == one.T == metrics.strong_privacy(log)


@pytest.mark.requirement("MRA-14")
@pytest.mark.parametrize("seed", range(3))
def test_users_who_are_in_no_set_do_not_count(seed: int) -> None:
    generator = np.random.default_rng(seed)
    log = np.zeros((9, 60), dtype=bool)
    log[:, generator.permutation(60)[:12]] = generator.random((9, 12)) < 0.5
    found = least_weight(log, effort=0)
    assert found.low == found.high == least_weight(log).high
    check_witness(log, found.users, found.high)


@pytest.mark.requirement("MRA-13", "MRA-14")
@given(logs(3), st.integers(0, 40))
def test_rounds_may_be_many_more_than_users(log: Log, more: int) -> None:
    """The sets come again and again, and the last of all is new."""
    many = np.concatenate([log[:-1]] * (more + 1) + [log[-1:]])
    assert least_weight(many).low == least_weight(many).high == weak(log)


def drawn(seed: int, rounds: int, N: int = 120, K: int = 12) -> Log:
    generator = np.random.default_rng(seed)
    log = np.zeros((rounds, N), dtype=bool)
    for row in log:
        row[generator.permutation(N)[:K]] = True
    return log


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("rounds", [5, 30, 60, 100, 112, 119])
def test_bounds_of_many_users_are_sound_and_have_a_witness(rounds: int) -> None:
    log = drawn(rounds, rounds)
    found = least_weight(log, effort=100_000)
    assert 1 <= found.low <= found.high <= 12
    check_witness(log, found.users, found.high)
    assert found.low > {5: 11, 30: 7, 60: 3, 100: 3, 112: 3, 119: 1}[rounds]


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rounds", [20, 70, 108])
def test_a_light_word_that_is_hidden_is_not_passed_over(size: int, rounds: int) -> None:
    """The sum over a few users is the difference of two rounds."""
    log = drawn(rounds, rounds)
    rest = np.flatnonzero(~log[0])
    log[1] = log[0]
    log[1, rest[:size]] = True
    found = least_weight(log[np.random.default_rng(size).permutation(rounds)], effort=100_000)
    assert found.low <= size
    assert found.high >= found.low


def middling(seed: int) -> Log:
    """A log of some more users, most of whom are in sets of their own."""
    generator = np.random.default_rng(seed)
    return generator.random((generator.integers(5, 10), generator.integers(10, 16))) < 0.4


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(24))
def test_with_enough_effort_the_numbers_of_all_rounds_are_equal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codewords, "EXACT_USERS", 0)
    log = middling(seed)
    found = least_weights(log, effort=10**5)
    assert [(bounds.low, bounds.high) for bounds in found] == [
        (least_weight(log[:t]).low,) * 2 for t in range(1, len(log) + 1)
    ]


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("effort", [0, 10, 100, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_with_little_effort_the_numbers_of_rounds_never_increase(
    seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codewords, "EXACT_USERS", 0)
    found = [bounds for bounds in least_weights(middling(seed), effort=effort) if bounds.high]
    assert all(1 <= bounds.low <= bounds.high == len(bounds.users) for bounds in found)
    for numbers in ([bounds.low for bounds in found], [bounds.high for bounds in found]):
        assert numbers == sorted(numbers, reverse=True)


@pytest.mark.slow
def test_bounds_of_rounds_never_increase() -> None:
    log = np.concatenate([np.zeros((2, 40), dtype=bool), drawn(3, 50, 40, 8)])
    found = least_weights(log, effort=20_000)
    assert found[0].high == found[1].high == 0
    assert [bounds.low for bounds in found[2:]] == sorted((bounds.low for bounds in found[2:]), reverse=True)
    assert [bounds.high for bounds in found[2:]] == sorted((bounds.high for bounds in found[2:]), reverse=True)
    assert (found[2].low, found[-1].high) == (8, 1)
    for t, bounds in enumerate(found[2:], start=3):
        alone = least_weight(log[:t], effort=20_000)
        assert max(alone.low, bounds.low) <= min(alone.high, bounds.high)


def test_a_range_is_shown_as_one() -> None:
    found = least_weight(drawn(80, 80), effort=1000)
    assert found.low < found.high
    assert str(found) == f"{found.low}..{found.high}"


OTHERS = [[user for user in range(6) if user != out] for out in range(6)]


@pytest.mark.parametrize(("N", "rounds", "number"), [(6, OTHERS, 1), (7, [[*OTHERS[0], 6], *OTHERS[1:]], 2)])
def test_another_prime_is_taken_where_the_first_does_not_do(
    N: int, rounds: list[list[int]], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modulo 5 the first log has a lower rank, and in the second the sum of all rounds holds user 6 alone."""
    monkeypatch.setattr(dependence, "MODULI", 6)
    found = least_weight(table(N, rounds))
    assert (found.low, found.high) == (number, number)


@pytest.mark.requirement("MRA-13")
@given(logs(10))
@example(table(5, [[0, 2, 3, 4], [1, 2, 3, 4]]))
def test_by_bases_it_is_between_the_numbers(log: Log) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codewords, "EXACT_USERS", 0)
        patch.setattr(codewords.Code, "_cost_of_columns", lambda code, weight: 10**12)
        found = least_weight(log, effort=10**9)
    assert found.low <= weak(log) <= found.high


def test_bad_input_is_refused() -> None:
    log = table(3, [[0, 1], [1, 2]])
    with pytest.raises(ParameterError, match="effort"):
        least_weight(log, effort=-1)
    with pytest.raises(ParameterError, match="log"):
        least_weights([[0, 1]])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="users"):
        witness(log, [0])
    with pytest.raises(UnknownUser):
        witness(log, [3])


@pytest.mark.requirement("MRA-13")
def test_for_twelve_users_no_effort_is_needed_and_for_thirteen_it_is() -> None:
    rows = np.random.default_rng(1).random((7, 13)) < 0.5
    for users, exact in ((12, True), (13, False)):
        log = rows[:, :users]
        without, found = least_weight(log, effort=0), least_weight(log)
        assert found.low == found.high
        assert (without.low == without.high) is exact
        assert without == found or not exact
