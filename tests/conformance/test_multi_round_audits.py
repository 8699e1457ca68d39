"""Audits of Multi-RoundSecAgg in the kit: the oracles beside exact ranks of python-flint, what is drawn, and forms."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.cases import multi_round_logs
from secagg_spec.conformance.cases.multi_round_logs import AUDIT, Log
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.base import CheckFailed
from secagg_spec.conformance.checks.multi_round_audits import Recovered, fraction, judge_combination
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors.judge import PASS, judge
from secagg_spec.privacy.multiround import audit
from tests.conformance import shipped

COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))
TRIANGLE = Log(4, ((0, 1), (1, 2), (0, 2)))


def rank(rows: list[list[int]]) -> int:
    """The rank over the rationals."""
    return int(flint.fmpz_mat(rows).rank()) if rows and rows[0] else 0


def matrix(log: Log) -> list[list[int]]:
    """A row for each round and a column for each user of the roster."""
    return [[int(user in users) for user in range(log.N)] for users in log.rounds]


# --------------------------------------------------------------------------------------------------------- oracles


@pytest.mark.requirement("MRA-10")
@COMMON
@given(st.data())
def test_a_user_is_recoverable_when_its_unit_vector_does_not_raise_the_rank(data: Any) -> None:
    log = multi_round_logs.log(data.draw)
    rows = matrix(log)
    found: dict[int, int] = {}
    for t in range(1, len(rows) + 1):
        for user in range(log.N):
            unit = [int(other == user) for other in range(log.N)]
            if rank([*rows[:t], unit]) == rank(rows[:t]):
                found.setdefault(user, t)
    assert log.recoverable() == found


@pytest.mark.requirement("MRA-13")
@COMMON
@given(st.data())
def test_the_weak_privacy_is_the_least_support_outside_of_which_columns_have_a_smaller_rank(data: Any) -> None:
    log = data.draw(st.sampled_from([multi_round_logs.any_log, multi_round_logs.circulant, multi_round_logs.chain]))(
        data.draw
    )
    rows = matrix(log)
    full = rank(rows)
    sizes = [
        size
        for size in range(1, log.N + 1)
        for support in combinations(range(log.N), size)
        if rank([[row[user] for user in range(log.N) if user not in support] for row in rows]) < full
    ]
    assert log.weak() == (min(sizes) if sizes else 0)


@pytest.mark.requirement("MRA-12", "MRA-13")
@COMMON
@given(st.data())
def test_weak_privacy_is_never_less_than_strong_in_large_logs_of_few_classes(data: Any) -> None:
    log = multi_round_logs.large(data.draw)
    assert log.weak() >= log.strong()
    assert len(log.users()) > 12
    assert len(log.classes()) <= 9


@pytest.mark.slow
def test_all_kinds_of_logs_are_drawn() -> None:
    seen: set[object] = set()

    @settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def look(data: Any) -> None:
        log = multi_round_logs.log(data.draw)
        known = log.recoverable()
        seen.update({"nobody"} if not known else {"somebody"} if len(known) < len(log.users()) else {"everybody"})
        seen.update({"empty"} if () in log.rounds else (), {"absent"} if len(log.users()) < log.N else ())
        seen.update({"weak is more"} if log.weak() > log.strong() else ())
        seen.update({"in between"} if any(0 < t < len(log.rounds) for t in known.values()) else ())
        seen.update({"many"} if len(log.users()) > 12 else ())

    look()
    assert seen == {"nobody", "somebody", "everybody", "empty", "absent", "weak is more", "in between", "many"}


# ----------------------------------------------------------------------------------------------------------- forms


@pytest.mark.requirement("MRA-11")
@pytest.mark.parametrize(
    ("value", "number"),
    [(["1", "2"], Fraction(1, 2)), (["-3", "1"], Fraction(-3)), (["0", "1"], Fraction(0))],
)
def test_fractions_are_two_decimal_strings(value: Any, number: Fraction) -> None:
    assert fraction(value) == number


@pytest.mark.parametrize(
    "value", [["2", "4"], ["1", "0"], ["0", "2"], ["1", "-2"], ["01", "2"], ["1"], "1/2", [1.5, 1]]
)
def test_others_are_none(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        fraction(value)


def answering(change: Any) -> DirectConnection:
    """The reference with another answer to an audit."""
    made = reference.build()
    right = made._handlers[AUDIT]
    made._handlers[AUDIT] = lambda **given: change(right(**given))
    return DirectConnection(made.answer)


def found(change: Any, name: str) -> Outcome:
    """What a check says of other answers."""
    connection = answering(change)
    caps, _ = run(connection, Settings(pattern="no such check"))
    return run_check(connection, caps, REGISTRY[f"{AUDIT}/{name}"], Settings(cases=40, seed=1))


@pytest.mark.parametrize(
    "change",
    [
        lambda result: {},
        lambda result: {**result, "weak": [result["weak"][0]]},
        lambda result: {**result, "gap": "0"},
        lambda result: {**result, "cardinality": ["2", "2"]},
        lambda result: {**result, "recoverable": None},
        lambda result: {**result, "strong": str(result["strong"])},
    ],
)
def test_results_of_another_form_are_faults_of_form(change: Any) -> None:
    outcome = found(change, "strong")
    assert outcome.failure
    assert outcome.failure.verdict == "protocol"


@pytest.mark.slow
@pytest.mark.requirement("MRA-13", "MRA-14")
def test_two_numbers_that_differ_are_right_for_many_users_only() -> None:
    def open_ended(result: Any) -> Any:
        return {**result, "weak": [result["strong"], result["weak"][1]]}

    assert found(open_ended, "weak").failure
    assert found(open_ended, "weak-large").failure is None
    for wrong in ([0, 0], [0, 40], [40, 40]):
        assert found(lambda result, wrong=wrong: {**result, "weak": wrong}, "weak-large").failure


@pytest.mark.requirement("MRA-10", "MRA-11")
def test_another_combination_of_the_same_rounds_is_right() -> None:
    """Rounds 0 and 1 are equal, so that user 2 comes out by either, and by half of both; but not by round 3."""
    log = Log(3, ((0, 1), (0, 1), (0, 1, 2), (0, 1)))
    asked = {"id": 1, "op": AUDIT, "params": log.params()}
    [given] = reference.build().answer(asked)["result"]["recoverable"]
    half, last = ["-1", "2"], ["1", "1"]
    cases: list[tuple[Any, bool]] = [
        (given["combination"], True),
        ([[0, ["-1", "1"]], [2, last]], True),
        ([[1, ["-1", "1"]], [2, last]], True),
        ([[0, half], [1, half], [2, last]], True),
        ([[2, last], [3, ["-1", "1"]]], False),
        ([[0, half], [2, last]], False),
        ([[0, ["-1", "1"]], [1, ["0", "1"]], [2, last]], False),
    ]
    for combination, right in cases:
        entry = Recovered(2, 3, tuple((at, fraction(factor)) for at, factor in combination))
        if right:
            judge_combination(log, entry, log.recoverable())
        else:
            with pytest.raises(CheckFailed):
                judge_combination(log, entry, log.recoverable())


# --------------------------------------------------------------------------------------------------------- vectors


@pytest.mark.requirement("MRA-02")
def test_the_sets_of_a_family_may_stand_in_any_order_in_its_vectors() -> None:
    vector = shipped.VECTORS["family-tiny"]
    for change, passes in ((lambda sets: sets[::-1], True), (lambda sets: sets[1:], False), (lambda sets: None, False)):
        made = reference.build()
        right = made._handlers["select.family"]
        made._handlers["select.family"] = lambda right=right, change=change, **given: {
            **right(**given),
            "sets": change(right(**given)["sets"]),
        }
        connection = DirectConnection(made.answer)
        caps, _ = run(connection, Settings(pattern="no such check"))
        assert (judge(connection, caps, vector).verdict == PASS) is passes


@settings(max_examples=5, deadline=None, database=None)
@given(st.data())
def test_logs_with_large_factors_have_them(data: Any) -> None:
    log, user = multi_round_logs.growing(data.draw)
    matrix = np.array([[member in users for member in range(log.N)] for users in log.rounds])
    found = audit(matrix)
    assert {one.user: one.rounds for one in found.recoveries.values()} == {user: len(log.rounds)}
    assert max(abs(factor) for _, factor in found.combination(user)) > 2**53
