"""Intervals and verdicts, against SciPy's own interval, and by how often an interval holds the mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.experiments.statistics import CONFIRMED, REFUTED, UNCONFIRMED, Interval, interval, verdict

NUMBERS = st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=2, max_size=12)


@pytest.mark.requirement("EXP-22")
@pytest.mark.slow
@given(NUMBERS)
def test_the_interval_is_that_of_student(numbers: list[float]) -> None:
    from scipy import stats

    found = interval(numbers)
    assert found.count == len(numbers)
    if len(set(numbers)) == 1:
        assert (found.mean, found.low, found.high) == (numbers[0],) * 3
        return
    low, high = stats.t.interval(0.95, len(numbers) - 1, np.mean(numbers), stats.sem(numbers))
    assert [found.low, found.high] == pytest.approx([low, high], rel=1e-9, abs=1e-6)
    assert found.mean == pytest.approx(np.mean(numbers), rel=1e-12, abs=1e-9)


@pytest.mark.requirement("EXP-22")
@pytest.mark.parametrize("count", [3, 5, 10])
def test_the_interval_holds_the_mean_of_the_distribution_in_95_of_100_cases(count: int) -> None:
    drawn = np.random.default_rng([22, count]).normal(7.0, 2.0, (2000, count))
    found = [interval(row.tolist()) for row in drawn]
    share = sum(one.low <= 7.0 <= one.high for one in found) / len(found)
    assert abs(share - 0.95) < 4 * math.sqrt(0.95 * 0.05 / len(found))


@pytest.mark.requirement("EXP-22")
def test_one_number_is_its_own_interval() -> None:
    assert interval([0.25]) == Interval(0.25, 0.25, 0.25, 1)


@pytest.mark.requirement("EXP-22")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "strange",
    [
        math.nan,
        math.inf,
        -math.inf,
        1.1e150,
        -1e308,
        10**400,
        np.float32("inf"),
        np.float32("nan"),
        "1",
        None,
        True,
        np.True_,
        np.timedelta64(3),
    ],
)
def test_a_number_that_is_not_finite_is_refused(strange: Any) -> None:
    for numbers in ([1.0, strange, 2.0], [strange] * 3):
        with pytest.raises(OutOfRange, match="finite"):
            interval(numbers)
    assert math.isfinite(interval([1e150, -1e150, 1e150]).high)


@pytest.mark.requirement("EXP-22")
def test_without_a_number_there_is_no_interval() -> None:
    with pytest.raises(ParameterError, match="one number or more"):
        interval([])
    with pytest.raises(ParameterError, match="a sequence of numbers"):
        interval(np.ones(3))  # type: ignore[arg-type]


@pytest.mark.requirement("EXP-22", "ERR-02")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int8])
def test_numbers_of_numpy_are_those_of_python(kind: Callable[[float], float]) -> None:
    assert interval([kind(number) for number in (100.0, 120.0, 125.0)]) == interval([100.0, 120.0, 125.0])


@pytest.mark.requirement("EXP-23")
@pytest.mark.parametrize("relation", [">", "<", "==", "", None])
def test_another_relation_is_refused(relation: Any) -> None:
    with pytest.raises(ParameterError, match=r"relation = .*one of >=, <="):
        verdict(Interval(5.0, 5.0, 5.0, 9), relation, 4.0, 3)


AT = Interval(0.5, 0.25, 0.75, 5)


@pytest.mark.requirement("EXP-23", "ERR-02")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bound", math.nan),
        ("bound", math.inf),
        ("bound", "1"),
        ("bound", True),
        ("bound", 10**400),
        ("seeds", "3"),
        ("seeds", -1),
        ("seeds", 3.0),
        ("found", None),
    ],
)
def test_a_verdict_on_no_numbers_is_refused(name: str, value: Any) -> None:
    given = {"found": AT, "relation": ">=", "bound": 0.0, "seeds": 5, name: value}
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        verdict(**given)


@pytest.mark.requirement("EXP-23")
@pytest.mark.parametrize(
    ("relation", "bound", "expected"),
    [
        (">=", 0.0, CONFIRMED),
        (">=", 0.25, CONFIRMED),
        (">=", 0.26, UNCONFIRMED),
        (">=", 0.5, UNCONFIRMED),
        (">=", 0.75, UNCONFIRMED),
        (">=", 0.76, REFUTED),
        ("<=", 1.0, CONFIRMED),
        ("<=", 0.75, CONFIRMED),
        ("<=", 0.74, UNCONFIRMED),
        ("<=", 0.5, UNCONFIRMED),
        ("<=", 0.25, UNCONFIRMED),
        ("<=", 0.24, REFUTED),
    ],
)
def test_the_verdict_asks_where_the_whole_interval_is(relation: str, bound: float, expected: str) -> None:
    assert verdict(AT, relation, bound, 5) == expected


@pytest.mark.requirement("EXP-23")
@pytest.mark.parametrize(
    ("count", "asked", "expected"),
    [(4, 5, UNCONFIRMED), (5, 5, CONFIRMED), (6, 5, CONFIRMED), (2, 1, UNCONFIRMED), (3, 1, CONFIRMED)],
)
@pytest.mark.parametrize(("relation", "bound"), [(">=", 0.0), ("<=", 1.0)])
def test_too_few_seeds_confirm_nothing(count: int, asked: int, expected: str, relation: str, bound: float) -> None:
    assert verdict(Interval(0.5, 0.25, 0.75, count), relation, bound, asked) == expected


@pytest.mark.requirement("EXP-23")
@pytest.mark.parametrize(("relation", "bound"), [(">=", 1.0), ("<=", 0.0)])
def test_too_few_seeds_refute_nothing(relation: str, bound: float) -> None:
    assert verdict(Interval(0.5, 0.25, 0.75, 3), relation, bound, 5) == UNCONFIRMED
    assert verdict(Interval(0.5, 0.25, 0.75, 5), relation, bound, 5) == REFUTED


@pytest.mark.requirement("EXP-23")
@given(NUMBERS.filter(lambda numbers: len(numbers) >= 3), st.floats(-1e3, 1e3))
def test_the_two_relations_mirror_each_other(numbers: Sequence[float], bound: float) -> None:
    found, mirrored = interval(numbers), interval([-number for number in numbers])
    assert verdict(found, ">=", bound, 3) == verdict(mirrored, "<=", -bound, 3)
