"""Which combinations of sums are about few users, against all combinations of small families of sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.spans import light_combination, rank
from tests.quick import some

USERS = 5
families = st.lists(st.frozensets(st.integers(0, 5)), max_size=6)


def supports(sets: Sequence[frozenset[int]], users: int) -> set[frozenset[int]]:
    """Who the combinations of up to four sums are about: all with the coefficients -2 … 2.

    A combination about as few users as possible has, up to a factor, the minors of a matrix of zeros and ones with
    three rows at most as its coefficients, and these are at most 2.
    """
    assert len(sets) <= 4
    rows = np.array([[user in members for user in range(users)] for members in sets], dtype=int).reshape(-1, users)
    vectors = np.array(list(product(range(-2, 3), repeat=len(rows))), dtype=int).reshape(-1, len(rows)) @ rows
    about = {tuple(vector) for vector in vectors != 0}
    return {frozenset(np.flatnonzero(vector).tolist()) for vector in about} - {frozenset()}


def one_of_each_kind() -> list[tuple[frozenset[int], ...]]:
    """The families of up to four sets of users, one of those that differ in the names of users only."""
    masks = range(1, 2**USERS)
    renamed = np.array(
        [[sum(1 << order[user] for user in range(USERS) if mask >> user & 1) for mask in range(2**USERS)]
         for order in permutations(range(USERS))]
    )  # fmt: skip
    found: list[tuple[frozenset[int], ...]] = []
    for size in range(1, 5):
        every = np.array(list(combinations(masks, size)))
        codes = np.sort(renamed[:, every], axis=2) @ (2**USERS) ** np.arange(size)
        first = np.flatnonzero(codes.min(axis=0) == codes[0])
        for family in every[first].tolist():
            found.append(tuple(frozenset(user for user in range(USERS) if mask >> user & 1) for mask in family))
    return found


@pytest.mark.requirement("HSA-27")
def test_the_fewest_users_are_those_of_all_combinations() -> None:
    kinds = one_of_each_kind()
    assert len(kinds) > 200
    for sets in some(4, kinds):
        about = supports(sets, USERS)
        fewest = min(map(len, about))
        for least in (1, fewest, fewest + 1, USERS + 1):
            users = light_combination(sets, least)
            if least <= fewest:
                assert users is None
            else:
                assert users in about
                assert len(users) == fewest


@pytest.mark.requirement("HSA-27")
@given(families, st.integers(1, 7))
def test_users_are_found_exactly_when_a_combination_is_about_few(sets: list[frozenset[int]], least: int) -> None:
    """Decided by the null spaces of another library: what is zero outside of few users, and not everywhere."""

    def about_only(users: frozenset[int]) -> bool:
        rows = flint.fmpq_mat(len(sets), 6, [int(user in members) for members in sets for user in range(6)])
        outside = [[int(user in members) for user in range(6) if user not in users] for members in sets]
        kept = flint.fmpq_mat(len(sets), 6 - len(users), [entry for row in outside for entry in row])
        return bool(rows.rank() > kept.rank())

    found = light_combination(sets, least)
    sizes = [size for size in range(1, 7) if any(about_only(frozenset(s)) for s in combinations(range(6), size))]
    if not sizes or sizes[0] >= least:
        assert found is None
    else:
        assert found is not None
        assert len(found) == sizes[0]
        assert about_only(found)


@pytest.mark.requirement("HSA-27")
@given(families, st.integers(1, 5), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(sets: list[frozenset[int]], least: int, random: Any) -> None:
    again = [*sets, *sets]
    random.shuffle(again)
    found, other = light_combination(sets, least), light_combination(again, least)
    assert (found is None) == (other is None)
    assert found is None or other is None or len(found) == len(other)


@pytest.mark.requirement("HSA-27")
def test_the_combinations_of_the_text() -> None:
    cell = frozenset(range(8))
    assert light_combination([cell], 3) is None
    assert light_combination([cell, cell - {5}], 3) == frozenset({5})
    assert light_combination([cell, cell - {4, 5}], 3) == frozenset({4, 5})
    assert light_combination([cell, cell - {3, 4, 5}], 3) is None
    assert light_combination([cell, cell - {1, 2, 3}, cell - {3, 4, 5}, cell - {1, 2, 4, 5}], 3) is not None
    assert light_combination([], 3) is None
    assert light_combination([frozenset()], 3) is None


@pytest.mark.requirement("HSA-27")
def test_the_same_sets_of_many_users_are_quickly_done() -> None:
    cell = frozenset(range(400))
    sets = [cell - frozenset(range(3 * at, 3 * at + 3)) for at in range(40)]
    assert light_combination(sets, 3) is None
    assert light_combination([*sets, cell - {1}], 3) is not None


@pytest.mark.requirement("HSA-27")
@given(st.data(), st.integers(0, 6), st.integers(1, 6))
def test_the_rank_is_that_of_another_library(data: st.DataObject, height: int, width: int) -> None:
    entry = st.sampled_from((0, 0, 1, 1, -1, 2, 10**30))
    rows = data.draw(st.lists(st.lists(entry, min_size=width, max_size=width), min_size=height, max_size=height))
    assert rank(rows) == flint.fmpz_mat(height, width, [value for row in rows for value in row]).rank()


@pytest.mark.requirement("HSA-27")
def test_a_combination_may_need_coefficients_that_are_not_units() -> None:
    pairs = [frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})]
    assert rank([[1, 1, 0], [0, 1, 1], [1, 0, 1]]) == 3
    assert len(light_combination(pairs, 2) or ()) == 1
