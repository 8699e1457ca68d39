"""Models out of sums: exact combinations, the error when models drift, and the proof that there is none."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import assume, given
from hypothesis import strategies as st

from secagg_spec.errors import DuplicateUser, LengthMismatch, OutOfRange, ParameterError, UnknownUser
from secagg_spec.privacy import reconstruction
from secagg_spec.privacy.reconstruction import Combination, combination, drift_bound, mildest, recovered, witness
from secagg_spec.selection.metrics import Log

NUMBERS = st.integers(-(2**40), 2**40)


@st.composite
def logs(draw: st.DrawFn, users: int = 5, rounds: int = 7) -> Log:
    """Whatever sets of up to five users, in up to seven rounds."""
    N, J = draw(st.integers(1, users)), draw(st.integers(1, rounds))
    rows = st.lists(st.booleans(), min_size=N, max_size=N)
    return np.array(draw(st.lists(rows, min_size=J, max_size=J)), dtype=bool)


@st.composite
def recoverable(draw: st.DrawFn) -> tuple[Log, int]:
    """A log and a user whose model comes out."""
    log = draw(logs())
    users = [user for user in range(log.shape[1]) if combination(log, user) is not None]
    assume(users)
    return log, draw(st.sampled_from(users))


def column(found: Combination, log: Log) -> list[Fraction]:
    """What a combination makes of the log."""
    return [sum((z * int(log[t, user]) for t, z in found), Fraction(0)) for user in range(log.shape[1])]


def unit(log: Log, *users: int) -> list[int]:
    return [int(user in users) for user in range(log.shape[1])]


def in_span(log: Log, users: tuple[int, ...]) -> bool:
    """Whether a sum is a combination, by ranks of another library."""
    matrix = sympy.Matrix(log.astype(int).tolist())
    return bool(matrix.rank() == matrix.col_join(sympy.Matrix([unit(log, *users)])).rank())


@given(logs())
def test_a_combination_is_the_user_and_there_is_one_exactly_when_it_is_in_the_span(log: Log) -> None:
    for user in range(log.shape[1]):
        found = combination(log, user)
        assert (found is not None) == in_span(log, (user,))
        if found is not None:
            assert column(found, log) == unit(log, user)
            assert [t for t, _ in found] == sorted({t for t, _ in found})
            assert all(z for _, z in found)


@given(recoverable())
def test_a_combination_takes_no_round_after_the_first_that_will_do(case: tuple[Log, int]) -> None:
    log, user = case
    found = combination(log, user)
    assert found is not None
    last = found[-1][0]
    assert combination(log[: last + 1], user) == found
    assert combination(log[:last], user) is None


@given(logs(), st.data())
def test_sums_over_users_are_combined_as_single_ones_are(log: Log, data: st.DataObject) -> None:
    users = tuple(sorted(data.draw(st.sets(st.integers(0, log.shape[1] - 1), min_size=1))))
    found = combination(log, *users)
    assert (found is not None) == in_span(log, users)
    assert found is None or column(found, log) == unit(log, *users)


@given(logs())
def test_there_is_a_witness_exactly_when_there_is_no_combination(log: Log) -> None:
    for user in range(log.shape[1]):
        found = witness(log, user)
        assert (found is None) == (combination(log, user) is not None)
        if found is not None:
            assert found[user] != 0
            assert not (log.astype(int) @ found).any()


def test_the_witness_of_a_batch_moves_a_number_from_one_user_to_another() -> None:
    log = np.array([[1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]], dtype=bool)
    found = witness(log, 3)
    assert found is not None
    assert found.tolist() == [0, 0, -1, 1, 0, 0]
    first = witness(np.ones((1, 4), dtype=bool), 1)
    assert first is not None
    assert first.tolist() == [-1, 1, 0, 0], "of several users, the first one"


def test_a_user_that_is_never_seen_may_hold_anything() -> None:
    found = witness(np.array([[1, 0]], dtype=bool), 1)
    assert found is not None
    assert found.tolist() == [0, 1]


def test_users_without_a_twin_may_be_hidden_too() -> None:
    log = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]], dtype=bool)
    found = witness(log, 0)
    assert found is not None
    assert sorted(found.tolist()) == [-1, -1, 1, 1]


@given(recoverable(), st.data())
def test_models_come_out_of_integer_sums_exactly(case: tuple[Log, int], data: st.DataObject) -> None:
    log, user = case
    N = log.shape[1]
    models = np.array(data.draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=N, max_size=N)), dtype=np.int64)
    for found in (combination(log, user), mildest(log, user)):
        assert found is not None
        assert recovered(found, log.astype(np.int64) @ models).tolist() == models[user].tolist()


def test_products_beyond_64_bits_stay_exact() -> None:
    log = ~np.eye(4, dtype=bool)
    models = np.array([[2**61 + 3], [2**61], [2**61 - 7], [2**61 + 1]], dtype=np.int64)
    found = combination(log, 0)
    assert found is not None
    assert found[0] == (0, Fraction(-2, 3))
    assert recovered(found, log.astype(np.int64) @ models).tolist() == [2**61 + 3]


@given(recoverable())
def test_real_sums_give_the_model_nearly(case: tuple[Log, int]) -> None:
    log, user = case
    models = np.linspace(-1, 1, log.shape[1] * 2).reshape(-1, 2)
    found = combination(log, user)
    assert found is not None
    assert np.allclose(reconstruction.estimated(found, log @ models), models[user])


@pytest.mark.slow
@given(recoverable())
def test_the_mildest_combination_has_the_least_sum_of_squares(case: tuple[Log, int]) -> None:
    log, user = case
    found = mildest(log, user)
    assert found is not None
    assert column(found, log) == unit(log, user)
    numbers = np.zeros(len(log))
    numbers[[t for t, _ in found]] = [float(z) for _, z in found]
    assert np.allclose(numbers, np.linalg.pinv(log.T.astype(float))[:, user])


def test_the_mildest_combination_is_there_when_the_combination_is() -> None:
    for rows in combinations(np.eye(3, dtype=bool) | np.roll(np.eye(3, dtype=bool), 1, axis=1), 2):
        log = np.array(rows)
        assert [mildest(log, user) is None for user in range(3)] == [True] * 3


@given(recoverable(), st.fractions(0, 3), st.data())
def test_drift_is_never_worse_than_the_bound(case: tuple[Log, int], delta: Fraction, data: st.DataObject) -> None:
    log, user = case
    N = log.shape[1]
    drifts = [[data.draw(st.fractions(-1, 1)) * delta for _ in range(N)] for _ in log]
    for found in (combination(log, user), mildest(log, user)):
        assert found is not None
        error = sum((z * sum(drifts[t][j] for j in range(N) if log[t, j]) for t, z in found), Fraction(0))
        assert abs(error) <= drift_bound(log, found, delta)


@given(recoverable(), st.integers(0, 1000))
def test_the_bound_is_attained_by_drifts_of_the_sign_of_the_numbers(case: tuple[Log, int], delta: int) -> None:
    log, user = case
    models = np.arange(log.shape[1], dtype=np.int64)[:, np.newaxis] * 17
    found = combination(log, user)
    assert found is not None
    signs = {t: 1 if z > 0 else -1 for t, z in found}
    sums = [models[row].sum(axis=0) + delta * signs.get(t, 0) * int(row.sum()) for t, row in enumerate(log)]
    (value,) = recovered(found, np.array(sums, dtype=np.int64))
    assert value - int(models[user, 0]) == drift_bound(log, found, delta)


def test_witnesses_beyond_64_bits_stay_exact() -> None:
    log = np.random.default_rng(0).random((59, 60)) < 0.5
    found = witness(log, 0)
    assert found is not None
    assert found[0]
    assert max(map(abs, found)) > 2**63
    assert not (log.astype(object) @ found).any()


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (((-1, Fraction(1)),), ParameterError, "combination = -1: must be an integer >= 0"),
        (((True, Fraction(1)),), ParameterError, "combination = True: must be an integer >= 0"),
        (((0, 0.5),), ParameterError, r"combination = \(0, 0.5\): must be a round and a fraction"),
        (((0, True),), ParameterError, r"combination = \(0, True\): must be a round and a fraction"),
        ((0,), ParameterError, "combination = 0: must be a round and a fraction"),
        (None, ParameterError, "combination = 'NoneType': must be a list or another sequence"),
    ],
)
def test_what_is_no_combination_is_named(wrong: Any, error: type[Exception], text: str) -> None:
    log, sums = np.ones((2, 2), dtype=bool), np.ones((2, 1), dtype=np.int64)
    for call in (
        lambda: recovered(wrong, sums),
        lambda: reconstruction.estimated(wrong, sums.astype(float)),
        lambda: drift_bound(log, wrong, 1),
    ):
        with pytest.raises(error, match=text):
            call()


def test_numbers_that_are_too_large_or_none_are_named() -> None:
    log, sums = np.ones((1, 1), dtype=bool), np.ones((1, 1))
    with pytest.raises(OutOfRange, match="combination = 'a number of 2"):
        reconstruction.estimated(((0, Fraction(10**400)),), sums)
    for ends in ([1e308, 1e308], [1e308, -1e308]):
        with pytest.raises(OutOfRange, match=r"^aggregates = 1e\+308: must be such that their combination is finite$"):
            reconstruction.estimated(((0, Fraction(2)), (1, Fraction(2))), np.array([ends]).T)
    assert reconstruction.estimated((), np.ones((1, 2))).tolist() == [0, 0]
    for delta in (float("nan"), float("inf"), -1):
        with pytest.raises(OutOfRange, match="delta = "):
            drift_bound(log, ((0, Fraction(1)),), delta)
    assert drift_bound(log, ((0, Fraction(1)),), 10**400) == 10**400
    with pytest.raises(ParameterError, match="delta = '1'"):
        drift_bound(log, ((0, Fraction(1)),), "1")  # type: ignore[arg-type]


def test_bad_arguments_are_named() -> None:
    log = np.ones((1, 1), dtype=bool)
    found = combination(log, 0)
    assert found == ((0, Fraction(1)),)
    with pytest.raises(ParameterError, match=r"log = .*: must be a numpy array of dtype bool"):
        combination(log.astype(int), 0)
    with pytest.raises(LengthMismatch, match=r"log\.shape"):
        witness(log[0], 0)
    with pytest.raises(UnknownUser, match=r"users = 1: must be a user in \[0, 1\)"):
        mildest(log, 1)
    with pytest.raises(UnknownUser, match=r"^user = 1: must be a user in \[0, 1\)"):
        witness(log, 1)
    with pytest.raises(DuplicateUser, match="users = 0"):
        combination(log, 0, 0)
    with pytest.raises(ParameterError, match="aggregates = 'ndarray of dtype float64'"):
        recovered(found, np.ones((1, 1)))  # type: ignore[arg-type]
    with pytest.raises(LengthMismatch, match=r"^len\(aggregates\) = 0: must be at least 1, the rounds that"):
        recovered(found, np.ones((0, 1), dtype=np.int64))
    with pytest.raises(OutOfRange, match=r"aggregates\[0\]\[0\] = nan"):
        reconstruction.estimated(found, np.full((1, 1), np.nan))
    with pytest.raises(LengthMismatch, match=r"^len\(log\) = 0: must be at least 1, the rounds that"):
        drift_bound(log[:0], found, 1)


def test_no_rounds_combine_to_nothing() -> None:
    for combined in (recovered((), np.ones((2, 3), dtype=np.int64)), reconstruction.estimated((), np.ones((2, 3)))):
        assert combined.tolist() == [0, 0, 0]
