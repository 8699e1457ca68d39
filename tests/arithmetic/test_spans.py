"""Combinations of sums that are about few users, against all combinations with small factors."""

from __future__ import annotations

from itertools import combinations, product
from math import gcd, prod

import pytest
from flint import fmpz_mat
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.spans import light_combination, minors


@pytest.mark.requirement("HSA-27")
@given(st.integers(1, 5).flatmap(lambda k: st.lists(st.lists(st.integers(-3, 3), min_size=k, max_size=k), max_size=5)))
def test_the_minors_are_those_of_the_smith_form(rows: list[list[int]]) -> None:
    if not rows:
        assert minors(rows) == (0, 1)
        return
    smith = fmpz_mat(rows).snf()
    factors = [abs(int(smith[i, i])) for i in range(min(smith.nrows(), smith.ncols()))]
    nonzero = [factor for factor in factors if factor]
    assert minors(rows) == (len(nonzero), prod(nonzero))


def light(sets: list[frozenset[int]], users: int, least: int) -> bool:
    """Whether a combination with factors from -2 to 2 is about fewer than `least` users, exactly or modulo 2 to 5."""
    for factors in product(range(-2, 3), repeat=len(sets)):
        entries = [sum(f for f, s in zip(factors, sets, strict=True) if user in s) for user in range(users)]
        divisor = gcd(*entries)
        if divisor:
            for m in (0, 2, 3, 4, 5):
                left = sum(bool(entry // divisor % m if m else entry) for entry in entries)
                if 0 < left < least:
                    return True
    return False


@pytest.mark.requirement("HSA-27")
@given(st.lists(st.frozensets(st.integers(0, 5), min_size=1), min_size=1, max_size=3), st.integers(2, 4))
def test_three_sums_are_about_few_users_when_some_combination_is(sets: list[frozenset[int]], least: int) -> None:
    found = light_combination(sets, least)
    assert (found is not None) == light(sets, 6, least)
    assert found is None or len(found) < least


@pytest.mark.requirement("HSA-27")
def test_a_sum_that_is_about_two_users_modulo_two() -> None:
    sets = [frozenset(chosen) for chosen in ((0, 1, 2), (0, 3, 4), (1, 2, 3, 5))]
    assert light_combination(sets, 3) == frozenset({4, 5})
    assert all(light_combination(pair, 3) is None for pair in combinations(sets, 2))


@pytest.mark.requirement("HSA-27")
def test_few_users_are_found_before_larger_choices_are_made() -> None:
    """Of the classes, 40 users each of its own, there are too many choices of up to 19 to list them."""
    everyone = frozenset(range(40))
    parts = [frozenset(user for user in everyone if user >> bit & 1) for bit in range(6)]
    assert light_combination([everyone, *parts, everyone - {7}], 20) == frozenset({7})


@pytest.mark.requirement("HSA-27")
def test_sets_that_are_not_light_can_tell_a_single_bit() -> None:
    """What section 8 says that the rule does not see: users are counted there, and not what they weigh."""
    named = ("0145678", "1468", "018", "1235678", "0123456")
    sets = [frozenset(map(int, users)) for users in named]
    assert light_combination(sets, 3) is None
    weights = [sum(f for f, s in zip((1, -2, 2, -1, 1), sets, strict=True) if user in s) for user in range(9)]
    assert weights == [4, 1, 0, 0, 0, 1, -1, 0, 0]
    assert told(sets, 9, known=()) == {0}


@pytest.mark.requirement("HSA-27")
def test_sets_that_are_not_light_can_tell_two_bits_to_a_colluder() -> None:
    sets = [frozenset(map(int, users)) for users in ("1256", "0246", "3456", "236")]
    assert light_combination(sets, 3) is None
    assert told(sets, 7, known=()) == set()
    assert told(sets, 7, known=(0,)) == {3, 4}


def told(sets: list[frozenset[int]], users: int, known: tuple[int, ...]) -> set[int]:
    """Whose bits the sums over sets tell to those who know the bits of some, whatever all bits are."""
    seen: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for bits in product(range(2), repeat=users):
        sums = (sum(bits[user] for user in chosen) for chosen in sets)
        seen.setdefault((*sums, *(bits[user] for user in known)), []).append(bits)
    columns = [[set(column) for column in zip(*inputs, strict=True)] for inputs in seen.values()]
    return {user for user in range(users) if user not in known and all(len(each[user]) == 1 for each in columns)}


@pytest.mark.requirement("HSA-27")
@given(st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=1, max_size=4), st.integers(3, 4))
def test_sets_whose_classes_are_large_are_not_light(sets: list[frozenset[int]], least: int) -> None:
    """Each user stands for a class of `least` users."""
    large = [frozenset(least * user + at for user in chosen for at in range(least)) for chosen in sets]
    assert light_combination(large, least) is None
