"""The audit of logs: who comes out, when, by what, and why not before."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import row_space
from secagg_spec.arithmetic.participation_classes import class_labels
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import ParameterError
from secagg_spec.privacy import multiround
from secagg_spec.privacy.multiround import audit
from tests.arithmetic.test_row_space import logs


def first_rounds(log: BoolArray) -> dict[int, int]:
    """Oracle: how many rounds it takes to recover each user, by ranks over the rationals."""
    rounds, users = log.shape
    found: dict[int, int] = {}
    for count in range(1, rounds + 1):
        known = sympy.Matrix(count, users, log[:count].astype(int).ravel().tolist())
        rank = known.rank()
        for user in set(range(users)) - set(found):
            if known.col_join(sympy.eye(users)[user, :]).rank() == rank:
                found[user] = count
    return found


def weighed(log: BoolArray, vector: tuple[int, ...]) -> list[int]:
    """The sums that the server sees of models of one number each."""
    return [sum(number for hit, number in zip(row, vector, strict=True) if hit) for row in log]


@pytest.mark.requirement("MRA-10")
@given(logs(9, 6))
def test_users_are_recovered_in_the_first_round_that_does_it(log: BoolArray) -> None:
    found = audit(log)
    assert {user: recovery.rounds for user, recovery in found.recoveries.items()} == first_rounds(log)
    assert list(found.recoveries) == sorted(found.recoveries)


@pytest.mark.requirement("MRA-11")
@given(logs(9, 6))
def test_combinations_are_unit_vectors(log: BoolArray) -> None:
    found = audit(log)
    for user, recovery in found.recoveries.items():
        total = [Fraction(0)] * log.shape[1]
        rounds = [at for at, _ in found.combination(user)]
        assert rounds == sorted(set(rounds))
        assert all(at < recovery.rounds for at in rounds)
        for at, factor in found.combination(user):
            assert factor != 0
            for member in np.flatnonzero(log[at]):
                total[member] += factor
        assert total == [int(member == user) for member in range(log.shape[1])]


@given(logs(9, 6))
def test_witnesses_are_not_seen_by_the_rounds_before(log: BoolArray) -> None:
    found = audit(log)
    for user in range(log.shape[1]):
        rounds = found.recoveries[user].rounds - 1 if user in found.recoveries else len(log)
        witness = found.not_before(user)
        assert witness[user] != 0
        assert not any(weighed(log[:rounds], witness))


def test_the_example_of_the_introduction() -> None:
    found = audit(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool))
    half = Fraction(1, 2)
    assert {user: recovery.rounds for user, recovery in found.recoveries.items()} == {0: 3, 1: 3, 2: 3}
    assert found.combination(0) == ((0, half), (1, -half), (2, half))
    assert found.combination(1) == ((0, half), (1, half), (2, -half))


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_whole_batches_are_never_recovered(batches: int, rounds: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 3))
    rows = st.lists(st.booleans(), min_size=batches, max_size=batches)
    log = np.repeat(np.array([data.draw(rows) for _ in range(rounds)], dtype=bool), size, axis=1)
    assert not audit(log).recoveries


def test_large_coefficients_are_exact() -> None:
    """A random log whose combinations have hundreds of digits: no fraction is small modulo the prime."""
    users = 60
    log = np.random.default_rng(8).random((2 * users, users)) < 0.3
    found = audit(log)
    assert found.recoveries
    largest = 0
    for user in list(found.recoveries)[:5]:
        combination = found.combination(user)
        largest = max(largest, *(factor.denominator for _, factor in combination))
        total = [sum(factor for at, factor in combination if log[at, member]) for member in range(users)]
        assert total == [int(member == user) for member in range(users)]
    assert largest > 2**31


def test_an_unlucky_prime_is_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    log = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    monkeypatch.setattr(multiround, "PRIMES", (2, 3, row_space.PRIMES[0]))
    assert {recovery.rounds for recovery in audit(log).recoveries.values()} == {3}
    monkeypatch.setattr(multiround, "PRIMES", (2,))
    with pytest.raises(ParameterError, match="decidable modulo one of"):
        audit(log)


@pytest.mark.parametrize(
    "rounds",
    [
        ["1111101", "0101110", "1011010", "1100010"],
        [f"{1 << at | 1 << 200 - at:0201b}" for at in range(100)],
        [f"{1 << 300 + at | 1 << at | 1 << at + 97:0450b}" for at in range(150)],
    ],
    ids=["a user hidden by three others", "pairs", "users hidden by two others each"],
)
def test_who_is_hidden_has_a_witness_whatever_hides_it(rounds: list[str]) -> None:
    log = np.array([[digit == "1" for digit in row] for row in rounds])
    found = audit(log)
    assert not found.recoveries
    witness = found.not_before(0)
    assert all(number for number, column in zip(witness, log.T, strict=True) if column.any())
    assert weighed(log, witness) == [0] * len(log)


@given(logs(8, 6))
def test_whatever_small_prime_is_tried_first_the_audit_is_the_same(log: BoolArray) -> None:
    expected = {user: recovery.rounds for user, recovery in audit(log).recoveries.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiround, "PRIMES", (2, 3, 5, 7, *row_space.PRIMES))
        assert {user: recovery.rounds for user, recovery in audit(log).recoveries.items()} == expected


@given(logs(8, 6))
def test_class_labels_tell_users_with_different_columns(log: BoolArray) -> None:
    labels = class_labels(log).tolist()
    for one in range(log.shape[1]):
        assert (labels[one] == -1) == (not log[:, one].any())
        for other in range(log.shape[1]):
            assert (labels[one] == labels[other]) == bool((log[:, one] == log[:, other]).all())


@pytest.mark.parametrize("log", [[[True]], np.array([[1]]), np.array([True])])
def test_logs_of_another_kind_are_refused(log: object) -> None:
    with pytest.raises(ParameterError, match="log"):
        audit(log)  # type: ignore[arg-type]


def test_an_audit_keeps_the_log_that_was_audited() -> None:
    log = np.array([[True, True, False], [False, True, True], [True, False, True]])
    found = audit(log)
    before = found.combination(0)
    log[:] = False
    assert found.combination(0) == before
    assert not found.log.flags.writeable


def test_only_recoverable_users_have_a_combination() -> None:
    found = audit(np.array([[True, True]]))
    with pytest.raises(ParameterError, match="must be a recoverable one"):
        found.combination(0)
    with pytest.raises(ParameterError, match="user = 2"):
        found.not_before(2)


@pytest.mark.parametrize("free", [5, 99, 200])
def test_hidden_users_have_a_witness_however_their_models_hang_together(free: int) -> None:
    """Models that are minus a free one, and models that are differences of two free ones, of many pairs."""
    pairs = [(at, at + step) for step in (1, 61, 97, 127, 128) for at in range(free - step)]
    log = np.zeros((len(pairs) + free, len(pairs) + 2 * free), dtype=bool)
    minus, plus = len(pairs), len(pairs) + free
    for row, (one, other) in enumerate(pairs):
        log[row, [row, plus + one, minus + other]] = True
    for at in range(free):
        log[len(pairs) + at, [minus + at, plus + at]] = True
    found = audit(log)
    assert not found.recoveries
    assert all(found.witness)
    assert not any(weighed(log, found.witness))


def test_many_users_and_few_rounds() -> None:
    log = np.random.default_rng(6).random((12, 40_000)) < 0.5
    found = audit(log)
    assert not found.recoveries
    assert all(found.witness)
    assert not any(log @ np.array(found.witness))


@pytest.mark.parametrize("extra", [1, 4, 30])
def test_users_are_certified_beside_others_who_stay_hidden(extra: int) -> None:
    """A dense log in which some users came late, and are not told from each other yet."""
    random = np.random.default_rng(extra)
    users, late = 60, extra + 1
    log = np.zeros((users + extra + 1, users + late), dtype=bool)
    log[:, :users] = random.random((len(log), users)) < 0.4
    log[-extra - 1 :, users:] = random.random((extra + 1, late)) < 0.5
    found = audit(log[:-1])
    combinations = found.combinations(list(found.recoveries)[::7])
    for user, combination in combinations.items():
        total = [sum(factor for at, factor in combination if log[at, member]) for member in range(users + late)]
        assert total == [int(member == user) for member in range(users + late)]
    assert not any(weighed(log[:-1], found.witness))


def test_users_are_recovered_beside_four_who_hide_each_other() -> None:
    """In each round are as many of users 0 and 1 as of 2 and 3; of all others the models come out, of these none."""
    random = np.random.default_rng(5)
    rounds = random.random((200, 40)) < 0.5
    log = rounds[rounds[:, 0].astype(int) + rounds[:, 1] == rounds[:, 2].astype(int) + rounds[:, 3]]
    found = audit(log)
    assert sorted(found.recoveries) == list(range(4, 40))
    assert all(found.witness[:4])
    last = found.combination(39)
    assert max(factor.denominator for _, factor in last) > 2**31
    total = [sum(factor for at, factor in last if log[at, member]) for member in range(40)]
    assert total == [int(member == 39) for member in range(40)]


@pytest.mark.slow
def test_a_claim_that_holds_modulo_the_prime_alone_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 7 for a prime, users of a component that is not whole seem recoverable, and are not."""
    monkeypatch.setattr(multiround, "_small", lambda *_: None)
    random = np.random.default_rng(3)
    for _ in range(30):
        log = random.random((7, 8)) < 0.5
        expected = first_rounds(log)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multiround, "PRIMES", (2, 3, 5, 7, *row_space.PRIMES))
            found = audit(log)
        assert {user: recovery.rounds for user, recovery in found.recoveries.items()} == expected
        for user, combination in found.combinations(list(expected)).items():
            total = [sum(factor for at, factor in combination if log[at, member]) for member in range(8)]
            assert total == [int(member == user) for member in range(8)]


def test_a_factor_that_the_prime_divides_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """User 3 is made of four rounds, one of them twice: modulo 2, of three."""
    log = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]], dtype=bool)
    monkeypatch.setattr(multiround, "PRIMES", (2,))
    assert [(at, int(factor)) for at, factor in audit(log).combination(3)] == [(0, -2), (1, 1), (2, 1), (3, 1)]


def test_what_is_no_combination_but_modulo_the_prime_is_seen_in_what_the_rounds_hide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first three rounds hide (1, -1, -1, 2), which modulo 2 leaves user 3 alone; with the fourth all come out."""
    log = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], [1, 0, 0, 0]], dtype=bool)
    monkeypatch.setattr(multiround, "PRIMES", (2, row_space.PRIMES[0]))
    assert {user: recovery.rounds for user, recovery in audit(log).recoveries.items()} == dict.fromkeys(range(4), 4)
    monkeypatch.setattr(multiround, "PRIMES", (2,))
    with pytest.raises(ParameterError, match="decidable modulo one of"):
        audit(log)


def test_a_class_whose_first_user_would_have_nothing_left() -> None:
    log = np.array([[1, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    found = audit(log)
    assert all(found.witness)
    assert not any(weighed(log, found.witness))


def test_a_user_that_comes_out_later_does_not_modulo_two_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is certified besides holds with 2 for a prime, but for what the rounds hide."""
    rows = ["1010011", "1001110", "1100111", "0111101", "0011000", "0011110", "0111010", "1010011", "0111111"]
    log = np.array([[digit == "1" for digit in row] for row in rows])
    monkeypatch.setattr(multiround, "PRIMES", (2, row_space.PRIMES[0]))
    assert {user: recovery.rounds for user, recovery in audit(log).recoveries.items()} == first_rounds(log)


def test_what_rounds_hide_decides_a_claim_over_the_rationals() -> None:
    """Three rounds hide (1, -1, -1, 2): modulo 2 user 3 comes out, and over the rationals it does not."""
    log = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]], dtype=bool)
    screen = multiround._Screen(log, 2)
    assert [screen.space.add(row) for row in screen.rows] == [True] * 3
    screen.independent = [0, 1, 2]
    assert screen.space.units().tolist() == [3]
    claim = multiround.Recovery(3, 3, (), (0, 1, 2), screen.space.origins[-1], 2)
    with pytest.raises(multiround._UnluckyPrimeError):
        screen._check({3: claim})
    screen._check({})


def test_a_log_that_no_prime_decides_is_named_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rounds of three users and two rounds of nobody, with a user who is in none."""
    log = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    monkeypatch.setattr(multiround, "PRIMES", (2,))
    with pytest.raises(ParameterError, match=r"^log = '5 rounds of 4 users': "):
        audit(log)


def test_rounds_after_all_came_out_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user who is in no round cannot come out, so there is nothing to wait for."""
    rows: list[BoolArray] = []
    add = row_space.RowSpace.add

    def counted(space: row_space.RowSpace, row: BoolArray) -> bool:
        rows.append(row)
        return add(space, row)

    monkeypatch.setattr(row_space.RowSpace, "add", counted)
    log = np.array([[1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], *[[1, 0, 1, 1]] * 5], dtype=bool)
    assert {user: found.rounds for user, found in audit(log).recoveries.items()} == {0: 1, 2: 2, 3: 3}
    assert len(rows) == 3
