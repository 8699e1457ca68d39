"""What a log is worth, against the definitions on sets, and what to expect, against all ways to drop out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection import metrics
from secagg_spec.selection.batches import Parameters, complete, family
from secagg_spec.selection.metrics import Log

RATES = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)])


def table(N: int, rounds: Sequence[Sequence[int]]) -> Log:
    return np.array([[user in users for user in range(N)] for users in rounds], dtype=bool).reshape(len(rounds), N)


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    N = draw(st.integers(1, 8))
    return N, draw(st.lists(st.lists(st.integers(0, N - 1), unique=True), max_size=8))


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    T, some = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    N = T * some
    return Parameters(min(N, 8 // T * T), T * draw(st.integers(1, min(some, 8 // T))), T)


@pytest.mark.requirement("MRA-12")
@given(logs())
def test_strong_privacy_is_the_least_number_of_users_in_the_same_sets(log: tuple[int, list[list[int]]]) -> None:
    N, rounds = log
    of = [tuple(user in users for users in rounds) for user in range(N)]
    sizes = [of.count(one) for one in of if any(one)]
    assert metrics.strong_privacy(table(N, rounds)) == min(sizes, default=0)
    for users in metrics.classes(table(N, rounds)):
        assert list(users) == [user for user in range(N) if of[user] == of[users[0]]]


@pytest.mark.requirement("MRA-12")
def test_strong_privacy_of_known_logs() -> None:
    assert metrics.strong_privacy(table(3, [[0, 1], [1, 2]])) == 1
    assert metrics.strong_privacy(table(4, [[0, 1], []])) == 2
    assert metrics.strong_privacy(table(4, [[], []])) == 0
    assert metrics.strong_privacy(np.zeros((0, 5), dtype=bool)) == 0
    for one in (Parameters(8, 4, 2), Parameters(12, 6, 3), Parameters(9, 3, 3)):
        assert metrics.strong_privacy(table(one.N, list(family(one)))) == one.T


@pytest.mark.requirement("MRA-16")
@given(logs())
def test_gap_and_cardinality_are_those_of_the_definition(log: tuple[int, list[list[int]]]) -> None:
    N, rounds = log
    found = metrics.fairness_gap(table(N, rounds)), metrics.cardinality(table(N, rounds))
    counts = [sum(user in users for users in rounds) for user in range(N)]
    if rounds:
        gap = Fraction(max(counts), len(rounds)) - Fraction(min(counts), len(rounds))
        assert found == (gap, Fraction(sum(map(len, rounds)), len(rounds)))
    else:
        assert found == (Fraction(0), Fraction(0))


@pytest.mark.requirement("MRA-16")
@given(logs())
def test_those_of_each_round_are_those_of_the_rounds_before_it(log: tuple[int, list[list[int]]]) -> None:
    N, rounds = log
    whole = table(N, rounds)
    assert metrics.fairness_gaps(whole) == [metrics.fairness_gap(whole[: t + 1]) for t in range(len(rounds))]
    assert metrics.cardinalities(whole) == [metrics.cardinality(whole[: t + 1]) for t in range(len(rounds))]


def ways_to_drop_out(rates: Sequence[Fraction]) -> list[tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Fraction]]:
    """Who is available, and how likely that is."""
    found = []
    for there in product((False, True), repeat=len(rates)):
        odds = Fraction(1)
        for rate, stays in zip(rates, there, strict=True):
            odds *= 1 - rate if stays else rate
        found.append((np.array(there, dtype=bool), odds))
    return found


@given(parameters(), st.data())
def test_expected_cardinality_is_the_mean_over_all_ways_to_drop_out(one: Parameters, data: st.DataObject) -> None:
    rates = data.draw(st.lists(RATES, min_size=one.N, max_size=one.N))
    takes_place = [odds for there, odds in ways_to_drop_out(rates) if len(complete(one, there)) >= one.per_round]
    assert metrics.expected_cardinality(one, rates) == one.K * sum(takes_place)
    assert metrics.expected_cardinality(one, rates[0]) == metrics.expected_cardinality(one, [rates[0]] * one.N)


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 10), Fraction(3, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("T", [1, 3, 4, 6, 12])
def test_expected_cardinality_for_one_rate_is_that_of_theorem_1(T: int, p: Fraction) -> None:
    n, k, q = 120 // T, 12 // T, 1 - (1 - p) ** T
    lost = sum((comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(n - k + 1, n + 1)), start=Fraction(0))
    assert metrics.expected_cardinality(Parameters(120, 12, T), p) == 12 * (1 - lost)


def test_expected_cardinality_takes_numbers_as_they_are() -> None:
    assert metrics.expected_cardinality(Parameters(4, 2, 2), 0.5) == Fraction(7, 8)
    assert metrics.expected_cardinality(Parameters(4, 2, 2), [0, 0, 1, 1]) == 2


@given(st.sampled_from([(2, 1, 1), (3, 2, 1), (4, 2, 2), (6, 4, 2), (6, 2, 2)]), st.data())
def test_least_gap_is_that_of_all_sets_of_batches(sizes: tuple[int, int, int], data: st.DataObject) -> None:
    one = Parameters(*sizes)
    rates = data.draw(st.lists(RATES, min_size=one.N, max_size=one.N))
    ways = [(set(complete(one, there).tolist()), odds) for there, odds in ways_to_drop_out(rates)]

    def most(some: set[int]) -> Fraction:
        means = [odds * min(len(some & B), one.per_round) for B, odds in ways if len(B) >= one.per_round]
        return sum(means, start=Fraction(0))

    everyone = set(range(one.batches))
    sets = [set(some) for size in range(1, one.batches + 1) for some in combinations(range(one.batches), size)]
    high = max((most(everyone) - most(everyone - some)) / len(some) for some in sets)
    assert metrics.least_gap(one, rates) == high - min(most(some) / len(some) for some in sets)


def test_least_gap_of_the_text() -> None:
    never, half = Fraction(0), Fraction(1, 2)
    assert metrics.least_gap(Parameters(4, 2, 2), [never, never, half, half]) == half
    assert metrics.least_gap(Parameters(4, 2, 2), [never, half, half, never]) == 0
    assert metrics.least_gap(Parameters(120, 12, 6), 0.3) == 0


def test_bad_input_is_refused() -> None:
    one = Parameters(4, 2, 2)
    with pytest.raises(ParameterError, match="log"):
        metrics.strong_privacy([[True]])  # type: ignore[arg-type]
    with pytest.raises(LengthMismatch, match=r"log\.shape"):
        metrics.fairness_gap(np.zeros(3, dtype=bool))
    with pytest.raises(LengthMismatch, match=r"len\(rates\)"):
        metrics.expected_cardinality(one, [0.5] * 3)
    with pytest.raises(OutOfRange, match=r"rates\[2\] = 1\.5"):
        metrics.expected_cardinality(one, [0, 1, 1.5, 0])
    with pytest.raises(OutOfRange, match="rates = nan"):
        metrics.expected_cardinality(one, float("nan"))
    with pytest.raises(ParameterError, match="rates"):
        metrics.expected_cardinality(one, True)
    for many, rates in ((2**20, 0.1), (2000, 0.1), (2000, [0.1] * 2000), (2**32 - 2, 1)):
        with pytest.raises(ParameterError, match=r"^rates = '\d+ batches, and denominators of \d+ bits': must be "):
            metrics.expected_cardinality(Parameters(many, many // 2, 1), rates)
    with pytest.raises(
        ParameterError, match=r"^rates = 'such that 1048576 sets of batches differ': must be at most 65536$"
    ):
        metrics.least_gap(Parameters(20, 2, 1), [Fraction(1, n + 2) for n in range(20)])
