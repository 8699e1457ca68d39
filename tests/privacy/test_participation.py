"""The audit of logs, segment by segment: combinations, what no sum shows, and the rule of HeteroSAg."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, ParameterError, TooFewSurvivors
from secagg_spec.privacy import participation
from secagg_spec.privacy.participation import account, decimal, expand, written
from secagg_spec.protocols.heterosag.plan import PRESETS
from secagg_spec.protocols.heterosag.round import check_cells, check_past
from secagg_spec.selection.participation import Log, Roster, Sums, of_sets

TINY = PRESETS["tiny"]
ROUNDS = st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), max_size=6)
SURVIVORS = st.lists(st.sets(st.integers(0, TINY.N - 1), max_size=2), min_size=1, max_size=4)
"""Who drops out of each round."""


def stayed(dropped: set[int]) -> list[int]:
    return [user for user in range(TINY.N) if user not in dropped]


@given(ROUNDS)
def test_combinations_and_drifts_are_exact(rounds: list[list[int]]) -> None:
    found = account(of_sets(Roster(5), rounds))
    for one in found.combined(list(found.found)):
        total = [sum((t.factor for t in one.terms if user in t.users), start=Fraction(0)) for user in range(5)]
        assert total == [int(user == one.found.user) for user in range(5)]
        assert all(list(term.users) == sorted(rounds[term.at]) for term in one.terms)
        assert max(term.at for term in one.terms) == one.found.at
        signs = {term.at: 1 if term.factor > 0 else -1 for term in one.terms}
        assert one.drift == sum(term.factor * signs[term.at] * len(rounds[term.at]) for term in one.terms)


@given(ROUNDS)
def test_what_no_sum_shows_is_shown_by_none(rounds: list[list[int]]) -> None:
    found = account(of_sets(Roster(5), rounds))
    for user in range(5):
        changes = found.unseen(user, 0)
        until = found.found[user].at if user in found.found else len(rounds)
        assert changes[user]
        assert all(sum(changes.get(other, 0) for other in users) == 0 for users in rounds[:until])
    assert found.empty == tuple(at for at, users in enumerate(rounds) if not users)
    assert found.absent == tuple(user for user in range(5) if not any(user in users for users in rounds))
    assert found.weak.low >= min(found.strong, found.weak.high)
    assert (found.strong == 0) == (found.weak.high == 0) == (not any(rounds))


@given(SURVIVORS)
def test_cells_are_those_of_the_plan(dropped: list[set[int]]) -> None:
    rounds = [stayed(users) for users in dropped]
    log = expand(of_sets(Roster(TINY.N), rounds, 3), TINY)
    assert (log.first, log.rounds, log.cells, len(log.segments)) == (3, len(rounds), True, TINY.count)
    for segment, sums in enumerate(log.segments):
        cells = [cell.members for cell in TINY.parts if cell.segment == segment]
        expected = [
            (at, set(cell) & set(users)) for at, users in enumerate(rounds) for cell in cells if cell & set(users)
        ]
        found = [
            (at, set(np.flatnonzero(row).tolist())) for at, row in zip(sums.rounds.tolist(), sums.sets, strict=True)
        ]
        assert found == expected
    assert log.taking_part.tolist() == [[user in users for user in range(TINY.N)] for users in rounds]


@given(SURVIVORS)
def test_sessions_that_users_answer_have_a_strong_privacy_of_T_and_two(dropped: list[set[int]]) -> None:
    """HSA-27 refuses a round exactly when the audit of the rounds so far finds fewer together."""
    past: list[frozenset[int]] = []
    for users in map(stayed, dropped):
        here = account(expand(of_sets(Roster(TINY.N), [sorted(some) for some in (*past, users)]), TINY))
        try:
            check_past(TINY, users, past)
        except TooFewSurvivors:
            assert here.strong < TINY.T + 2
        else:
            assert here.strong >= TINY.T + 2
            assert not here.found
            past.append(frozenset(users))


def test_a_user_of_a_cell_comes_out_when_it_alone_is_missing() -> None:
    everyone = list(range(TINY.N))
    found = account(expand(of_sets(Roster(TINY.N), [everyone, everyone[:-1]]), TINY))
    assert list(found.found) == [TINY.N - 1]
    assert found.found[TINY.N - 1].at == 1
    [one] = found.combined([TINY.N - 1])
    assert [(term.at, int(term.factor)) for term in one.terms] == [(0, 1), (1, -1)]
    assert set(one.terms[0].users) - set(one.terms[1].users) == {TINY.N - 1}


@given(SURVIVORS)
def test_survivors_that_a_cell_allows_are_no_stronger_than_its_classes(dropped: list[set[int]]) -> None:
    sets = [sorted(users) for users in map(stayed, dropped) if allowed(users)]
    found = account(expand(of_sets(Roster(TINY.N), sets), TINY))
    for one in found.found.values():
        assert any(one.user in users for users in sets)
        assert found.strong == 1


def allowed(users: list[int]) -> bool:
    """Whether each cell has enough survivors, or none."""
    try:
        check_cells(TINY, users)
    except TooFewSurvivors:
        return False
    return True


def test_plans_refuse_logs_that_do_not_fit() -> None:
    with pytest.raises(LengthMismatch, match="users = 5: must be 12, the N of the plan"):
        expand(of_sets(Roster(5), [[0]]), TINY)
    log = expand(of_sets(Roster(TINY.N), [[0]]), TINY)
    with pytest.raises(ParameterError, match="one of survivors, without segments"):
        expand(log, TINY)
    with pytest.raises(ParameterError, match="user = 3: must be a recoverable one"):
        account(of_sets(Roster(5), [[0]])).combined([3])


def test_plans_refuse_logs_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participation, "MAX_ENTRIES", 100)
    with pytest.raises(ParameterError, match="at most 100 truth values"):
        expand(of_sets(Roster(TINY.N), [[0], [1]]), TINY)


@given(st.integers(-(10**9000), 10**9000), st.integers(1, 50))
def test_long_numbers_are_written_as_they_are(number: int, below: int) -> None:
    text = written(Fraction(number, below))
    top, _, bottom = text.partition("/")
    value = 0
    for start in range(0, len(top.lstrip("-")), 4000):
        piece = top.lstrip("-")[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    assert Fraction(-value if top[0] == "-" else value, int(bottom or 1)) == Fraction(number, below)


@pytest.mark.parametrize(
    "number", [10**5000 - 1, 1 - 10**5000, 0, -1, np.int64(-7)], ids=["long", "below", "0", "-1", "np"]
)
def test_digits_are_those_of_the_number(number: int) -> None:
    digits, value = decimal(number).removeprefix("-"), 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        value = value * 10 ** len(piece) + int(piece)
    assert value == abs(int(number))
    assert decimal(number).startswith("-") == (number < 0)


def test_what_is_no_number_is_not_written() -> None:
    wrong: Any
    for wrong in ("1", 1.0, True, None, Fraction(1, 2)):
        with pytest.raises(ParameterError, match=r"^number = '.*': must be an integer$"):
            decimal(wrong)
    for wrong in ("1", 0.5, 1, True, None):
        with pytest.raises(ParameterError, match=r"^number = '.*': must be of the class Fraction$"):
            written(wrong)


@example([[0, 1, 2], [1, 2, 3]])
@given(ROUNDS)
def test_the_weak_privacy_of_many_users_is_between_plain_bounds(rounds: list[list[int]]) -> None:
    log = of_sets(Roster(5), rounds)
    close = account(log).weak
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(participation, "_MOST_CLASSES", 0)
        plain = account(log).weak
    assert plain.low <= close.low == close.high <= plain.high
    assert plain.high <= max(1, min((len(users) for users in rounds if users), default=1))


def test_a_user_of_several_segments_is_told_where_it_comes_out_first() -> None:
    late = Sums(np.array([[True, True], [False, True]]), np.array([0, 1]))
    early = Sums(np.array([[True, False], [True, True]]), np.array([0, 1]))
    for segments, where in (((late, early), 1), ((early, late), 0)):
        found = account(Log(Roster(2), 4, 2, segments, True)).found
        assert [(one.user, one.at, one.segment) for one in found.values()] == [(0, 0, where), (1, 1, 0)]


@pytest.mark.requirement("MRA-11")
def test_combinations_are_for_collections_of_recoverable_users() -> None:
    found = account(of_sets(Roster(3), [[0, 1], [1]]))
    first = found.audits[0]
    asked: Any = np.int64(1)
    assert first.combination(asked) == first.combinations([1])[1] == first.combinations({1})[1]
    call: Any
    for call in (first.combinations, found.combined):
        for user in (True, 1.0, "1", None, -1):
            with pytest.raises(ParameterError, match=r"^user = .*: must be an integer >= 0$"):
                call([user])
        for users in (1, None, "01", iter([1])):
            with pytest.raises(ParameterError, match=r"^users = .*: must be a list or another collection of integers$"):
                call(users)
    for asked in (True, 1.0, [1]):
        with pytest.raises(ParameterError, match=r"^user = .*: must be an integer >= 0$"):
            first.combination(asked)


@pytest.mark.requirement("MRA-11", "ERR-02")
@pytest.mark.parametrize("strange", [-1, 3, 1.0, True, "0", None])
@pytest.mark.parametrize("name", ["user", "segment", "at"])
def test_users_segments_and_rounds_that_do_not_exist_are_refused(name: str, strange: Any) -> None:
    log = of_sets(Roster(3), [[0, 1], [1, 2], [0, 2]])
    call, given = (log.number, {}) if name == "at" else (account(log).unseen, {"user": 0, "segment": 0})
    with pytest.raises(ParameterError, match=rf"^{name} = .*: must be an integer in "):
        call(**{**given, name: strange})
