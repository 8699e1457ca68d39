"""Perfect one-factorisations: each two factors are one circle, and the factors are those of the text."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import sympy

from secagg_spec import resources
from secagg_spec.arithmetic.factorisations import STARTERS, Factor, perfect_factorisation
from secagg_spec.errors import ParameterError
from tests.quick import some


def constructed(points: int) -> bool:
    """Whether the text has a construction for so many points."""
    halves = points % 2 == 0 and points > 2 and (sympy.isprime(points - 1) or sympy.isprime(points // 2))
    return points in {2, 16, 28} or halves


KNOWN = [points for points in range(2, 65) if constructed(points)]


def circle(factors: tuple[Factor, Factor], points: int) -> int:
    """How many points the circle through 0 has."""
    turns = [{a: b for pair in factor for a, b in (pair, pair[::-1])} for factor in factors]
    at, length = turns[1][turns[0][0]], 2
    while at != 0:
        at, length = turns[1][turns[0][at]], length + 2
    return length


def test_all_up_to_32_are_known() -> None:
    assert set(range(2, 33, 2)) <= set(KNOWN)
    assert set(KNOWN) - set(range(33)) == {34, 38, 42, 44, 46, 48, 54, 58, 60, 62}


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("points", KNOWN)
def test_each_two_factors_form_one_circle_through_all_points(points: int) -> None:
    factors = perfect_factorisation(points)
    assert len(factors) == points - 1
    for factor in factors:
        assert sorted(point for pair in factor for point in pair) == list(range(points))
        assert all(a < b for a, b in factor)
    pairs = [pair for factor in factors for pair in factor]
    assert len(set(pairs)) == len(pairs) == points * (points - 1) // 2
    for first, second in some(7, combinations(factors, 2)):
        assert circle((first, second), points) == points


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("points", [n for n in KNOWN if n > 2 and sympy.isprime(n - 1)])
def test_of_one_point_more_than_a_prime_the_pairs_have_the_sum_of_the_text(points: int) -> None:
    p = points - 1
    for row, factor in enumerate(perfect_factorisation(points)):
        assert all((a + b) % p == (row + 1) % p for a, b in factor if b != p)
        assert [2 * a % p for a, b in factor if b == p] == [(row + 1) % p]


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("points", [n for n in KNOWN if sympy.isprime(n // 2) and not sympy.isprime(n - 1) and n > 2])
def test_of_twice_a_prime_the_pairs_are_those_of_the_text(points: int) -> None:
    p, factors = points // 2, perfect_factorisation(points)
    for row, factor in enumerate(factors[:p]):
        assert set(factor) == {(row, row + p)} | {
            tuple(sorted((a, (2 * row - a) % points))) for a in range(points) if a not in {row, row + p}
        }
    odd = [j for j in range(1, points, 2) if j != p]
    for j, factor in zip(odd, factors[p:], strict=True):
        assert set(factor) == {tuple(sorted((a, (a + j) % points))) for a in range(0, points, 2)}


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("points", [16, 28])
def test_a_starter_has_each_number_and_each_difference_once_and_is_that_of_the_text(points: int) -> None:
    starter, order = STARTERS[points], points - 1
    assert sorted(number for pair in starter for number in pair) == list(range(1, order))
    differences = [difference for a, b in starter for difference in ((a - b) % order, (b - a) % order)]
    assert sorted(differences) == list(range(1, order))
    page = (resources.root("spec") / "heterosag.md").read_text(encoding="utf-8")
    [cell] = re.findall(rf"^\| {points} \| (\{{.*) \|$", page, re.MULTILINE)
    assert tuple((int(a), int(b)) for a, b in re.findall(r"\{(\d+), (\d+)\}", cell)) == starter
    for shift, factor in enumerate(perfect_factorisation(points)):
        shifted = {tuple(sorted(((a + shift) % order, (b + shift) % order))) for a, b in starter}
        assert set(factor) == shifted | {(shift, order)}


@pytest.mark.requirement("HSA-06", "ERR-02")
@pytest.mark.parametrize("points", [n for n in range(2, 65) if not constructed(n)])
def test_other_numbers_of_points_are_refused(points: int) -> None:
    with pytest.raises(ParameterError, match=f"points = {points}"):
        perfect_factorisation(points)


@pytest.mark.requirement("HSA-06", "ERR-02")
@pytest.mark.parametrize("points", [1, 0, -2, 4.0, True, None, "4", 10**500])
def test_what_is_no_number_of_points_is_refused(points: Any) -> None:
    with pytest.raises(ParameterError, match="points"):
        perfect_factorisation(points)
