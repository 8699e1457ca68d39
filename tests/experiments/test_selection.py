"""The run behind figures 3 to 5 of Multi-RoundSecAgg, and what it says of the paper's statements."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.experiments import selection
from secagg_spec.experiments.selection import Course, Settings, Verdict
from secagg_spec.selection import metrics
from secagg_spec.selection.batches import Parameters, in_family, whole_batches
from tests.quick import exhaustive

SMALL = Settings(24, 6, (3, 2), 40, (Fraction(1, 10), Fraction(3, 10)), seed=3)
RATES = tuple(Fraction(tenth, 10) for tenth in (1, 2, 3, 4, 5))


@pytest.fixture(scope="module")
def small() -> tuple[Course, ...]:
    return selection.run(SMALL)


def test_schemes_are_those_of_the_paper() -> None:
    found = selection.schemes(Settings())
    assert [(one.name, one.strategy, one.parameters.T) for one in found] == [
        ("Random", "random", 1),
        ("Weighted Random", "weighted", 1),
        ("Partition", "partition", 12),
        ("Multi-RoundSecAgg, T=6", "fair", 6),
        ("Multi-RoundSecAgg, T=4", "fair", 4),
        ("Multi-RoundSecAgg, T=3", "fair", 3),
    ]
    assert selection.schemes(Settings(rates=(Fraction(1, 2),)))[-1].strategy == "uniform"


@pytest.mark.parametrize("rule", selection.RULES)
def test_batches_are_chosen_by_the_rule_that_is_asked_for(rule: str) -> None:
    found = selection.schemes(Settings(rule=rule))
    assert [one.strategy for one in found] == ["random", "weighted", "partition", rule, rule, rule]


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="rule = 'most': must be one of fair, least, uniform"):
        Settings(rule="most")


@pytest.mark.slow
@exhaustive
def test_the_least_frequencies_make_the_gap_smaller() -> None:
    """In this run; that they make it least in the long run is UNI-LEAST."""
    gaps = {rule: selection.run(Settings(24, 12, (4,), 400, rule=rule))[-1].gaps[-1] for rule in ("fair", "least")}
    assert gaps["least"] < gaps["fair"]
    assert [one.name for one in selection.schemes(Settings(20, 8, (4,)))] == [
        "Random",
        "Weighted Random",
        "Multi-RoundSecAgg, T=4",
    ]


def test_rates_are_given_as_equally_as_possible() -> None:
    for users, few in ((120, 24), (11, 2), (5, 1)):
        given = selection.rates_of_users(Settings(users, 1, (1,), rates=RATES))
        assert {given.count(rate) - few for rate in RATES} <= {0, 1}
        assert len(given) == users
    assert selection.rates_of_users(Settings()) != selection.rates_of_users(Settings(seed=1))


def test_users_drop_out_as_often_as_their_rates_say() -> None:
    settings = Settings(rounds=4000, rates=(Fraction(0), Fraction(1, 4), Fraction(1)))
    rates = selection.rates_of_users(settings)
    shares = selection.available(settings, rates).mean(axis=0)
    for rate, share in zip(rates, shares, strict=True):
        assert share == 1 - rate if rate in (0, 1) else abs(share - 0.75) < 0.04


def test_sums_are_over_sets_of_the_family_of_users_who_are_there(small: tuple[Course, ...]) -> None:
    there = selection.available(SMALL, selection.rates_of_users(SMALL))
    for course in small:
        p = course.scheme.parameters
        for row, users in zip(course.log, there, strict=True):
            chosen = np.flatnonzero(row).tolist()
            assert (users | ~row).all()
            whole = whole_batches(p, np.flatnonzero(users).tolist())
            assert in_family(p, chosen) if len(whole) >= p.K else not chosen


def test_numbers_are_those_of_the_log(small: tuple[Course, ...]) -> None:
    rates = selection.rates_of_users(SMALL)
    for course in small:
        assert course.strong == metrics.strong_privacy(course.log)
        assert course.gaps[-1] == metrics.fairness_gap(course.log)
        assert course.cardinalities[-1] == metrics.cardinality(course.log)
        assert course.expected == metrics.expected_cardinality(course.scheme.parameters, rates)
        assert len(course.weak) == len(course.gaps) == len(course.cardinalities) == SMALL.rounds
        assert course.strong <= course.weak[-1].high
    assert [course.strong for course in small] == [1, 1, 6, 3, 2]
    assert [str(course.weak[-1]) for course in small] == ["1", "1", "6", "3", "2"]


def test_the_same_seed_gives_the_same_run(small: tuple[Course, ...]) -> None:
    for one, again in zip(small, selection.run(SMALL), strict=True):
        assert (one.log == again.log).all()
        assert one.weak == again.weak
    other = selection.run(Settings(24, 6, (3, 2), 40, SMALL.rates, seed=4), effort=0)
    assert any((one.log != again.log).any() for one, again in zip(small, other, strict=True))


def test_progress_is_told_from_none_to_nearly_all() -> None:
    report: list[tuple[str, float]] = []
    selection.run(Settings(6, 2, (1,), 3), lambda what, share: report.append((what, share)))
    shares = [share for _, share in report]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.5 < shares[-1] < 1
    assert report[0][0] == "Random: rounds"


def test_statements_of_the_paper_hold_where_they_do() -> None:
    found = selection.verdicts(selection.run(Settings(24, 6, (3,), 40, (Fraction(1, 50), Fraction(1, 20)))))
    assert [(one.claim, one.holds) for one in found] == [("MRS-THM1P", True), ("MRS-OBS2", True), ("MRS-OBS1", True)]


def test_statements_of_the_paper_fail_where_they_do() -> None:
    """With p = 1/3, T = 4 is far from almost as cardinal; and without any sum there is no privacy to compare."""
    found = selection.verdicts(selection.run(Settings(24, 12, (4,), 40, (Fraction(1, 3),)), effort=0))
    assert [one.holds for one in found if one.claim == "MRS-OBS1"] == [False]
    nobody = selection.verdicts(selection.run(Settings(24, 12, (4,), 3, (Fraction(1),))))
    assert isinstance(nobody[0], Verdict)
    assert [one.holds for one in nobody] == [None, None, None]


@pytest.mark.slow
@exhaustive
def test_observations_of_the_paper_with_its_parameters() -> None:
    """What figure 4 is about, with 200 rounds of 12 of 120 users."""
    courses = selection.run(Settings(), effort=100_000)
    assert all(one.holds for one in selection.verdicts(courses))
    assert [course.family for course in courses[2:]] == [10, 190, 4060, 91390]
    for course in courses[:2]:
        highs = [bounds.high for bounds in course.weak]
        assert highs[0] == 12
        assert highs[100] >= 12
        assert highs[-1] == 1
    assert [course.weak[-1].low for course in courses[2:]] == [12, 6, 4, 3]


def test_the_trade_off_is_theorem_1() -> None:
    found = selection.trade_off(120, 12, Fraction(3, 10))
    assert [T for T, _ in found] == [1, 2, 3, 4, 6, 12]
    assert all(metrics.expected_cardinality(Parameters(120, 12, T), Fraction(3, 10)) == C for T, C in found)
    assert [C for _, C in found] == sorted((C for _, C in found), reverse=True)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ParameterError, match="a divisor of 12 and of 120, and 4 or 6 is next to it"):
        Settings(privacy=(5,))
    with pytest.raises(ParameterError, match="privacy"):
        Settings(privacy=())
    with pytest.raises(ParameterError, match="privacy"):
        Settings(privacy=(3, 3))
    with pytest.raises(ParameterError, match="per_round = 13"):
        Settings(12, 13)
    with pytest.raises(OutOfRange, match=r"dropout = '3/2': must be a probability in \[0, 1\]"):
        Settings(rates=(Fraction(3, 2),))
    with pytest.raises(ParameterError, match="random order and as equally as possible"):
        Settings(2, 1, (1,), rates=RATES)
