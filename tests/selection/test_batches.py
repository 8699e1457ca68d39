"""Batches and the family that they make, against sets that are counted one by one."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.errors import DuplicateUser, ParameterError, UnknownUser
from secagg_spec.selection.batches import (
    MAX_USERS,
    MOST_LISTED,
    PRESETS,
    Parameters,
    complete,
    family,
    family_size,
    in_family,
    whole_batches,
)

SMALL = [
    Parameters(N, K, T)
    for N, K, T in product(range(1, 9), repeat=3)
    if T <= K <= N and N // T * T == N and K // T * T == K
]


def batches_of(p: Parameters) -> list[set[int]]:
    """The batches, by the text: bT to bT + T - 1."""
    return [set(range(start, start + p.T)) for start in range(0, p.N, p.T)]


def unions(p: Parameters, users: Collection[int]) -> bool:
    """Whether users are a union of batches: no batch is there in part."""
    return all(batch <= set(users) or batch.isdisjoint(users) for batch in batches_of(p))


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.requirement("MRA-01")
def test_parameters_are_taken_exactly_when_batches_fill_the_roster_and_a_round() -> None:
    for N, K, T in product(range(-1, 9), repeat=3):
        if 1 <= T <= K <= N and N % T == 0 and K % T == 0:
            p = Parameters(N, K, T)
            assert (p.batches * T, p.per_round * T) == (N, K)
        else:
            with pytest.raises(ParameterError):
                Parameters(N, K, T)


@pytest.mark.requirement("MRA-01")
def test_the_most_users_are_what_32_bits_number() -> None:
    assert Parameters(MAX_USERS, 15, 5).batches == (2**32 - 1) // 5
    for N, K, T in ((2**32, 16, 8), (2**32, 2**32, 1), (2**40, 2, 1)):
        with pytest.raises(ParameterError, match=r"^N = "):
            Parameters(N, K, T)


@pytest.mark.requirement("MRA-01")
@pytest.mark.parametrize(
    ("N", "K", "T", "text"),
    [
        (12, 6, 4, "K = 6: must be a multiple of T = 4, as 4 or 8 are"),
        (13, 6, 3, "N = 13: must be a multiple of T = 3, as 12 or 15 are"),
        (MAX_USERS, 8, 4, f"N = {MAX_USERS}: must be a multiple of T = 4, as {MAX_USERS - 3} is"),
        (12, 6, 0, "T = 0: must be an integer in"),
        (12, 6, 7, "T = 7: must be an integer in"),
        (12, 13, 1, "K = 13: must be an integer in"),
        (12, 6, True, "T = True: must be an integer in"),
        (12.0, 6, 3, "N = 12.0: must be an integer in"),
        ("12", 6, 3, "N = '12': must be an integer in"),
    ],
)
def test_a_parameter_that_is_refused_is_named(N: int, K: int, T: int, text: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Parameters(N, K, T)
    assert str(caught.value).startswith(text)


def test_the_presets_are_those_of_the_text() -> None:
    assert {name: (p.N, p.K, p.T) for name, p in PRESETS.items()} == {
        "tiny": (12, 6, 3),
        "default": (24, 12, 4),
        "paper": (120, 12, 6),
    }


# ---------------------------------------------------------------------------------------------------------- family


@pytest.mark.requirement("MRA-02")
@pytest.mark.parametrize("p", SMALL, ids=str)
def test_the_family_is_all_unions_of_as_many_batches_as_a_round_takes(p: Parameters) -> None:
    found = list(family(p))
    want = [users for users in combinations(range(p.N), p.K) if unions(p, users)]
    assert found == want
    assert len(found) == family_size(p) == comb(p.N // p.T, p.K // p.T)
    assert all(in_family(p, users) for users in found)


@pytest.mark.requirement("MRA-02")
@given(st.sampled_from(SMALL), st.data())
def test_a_set_is_of_the_family_exactly_when_it_is_listed(p: Parameters, data: st.DataObject) -> None:
    users = data.draw(st.sets(st.integers(0, p.N - 1)))
    assert in_family(p, users) == (tuple(sorted(users)) in set(family(p)))
    assert in_family(p, users) == (len(users) == p.K and unions(p, users))


def test_users_that_do_not_exist_are_in_no_question_of_the_family() -> None:
    p = Parameters(4, 2, 2)
    for users in ([1, 9], [1, 9, 3], [9]):
        with pytest.raises(UnknownUser, match=r"^users = 9"):
            in_family(p, users)
    for users in ([1, 1], [1, 1, 1]):
        with pytest.raises(DuplicateUser):
            in_family(p, users)
    with pytest.raises(ParameterError, match=r"^users = 'int'"):
        in_family(p, 5)  # type: ignore[arg-type]


@pytest.mark.requirement("MRA-02")
@pytest.mark.parametrize(("N", "K"), [(12, 6), (12, 12), (8, 4), (6, 6)])
def test_families_of_larger_batches_are_in_those_of_their_divisors(N: int, K: int) -> None:
    sizes = [T for T in range(1, K + 1) if N % T == 0 and K % T == 0]
    families = {T: set(family(Parameters(N, K, T))) for T in sizes}
    for T, larger in product(sizes, repeat=2):
        if larger % T == 0:
            assert families[larger] <= families[T]
    assert families[1] == set(combinations(range(N), K))


@pytest.mark.requirement("MRA-02")
def test_the_batches_of_a_family_are_groups_that_never_mix_when_one_makes_a_round() -> None:
    groups = list(family(Parameters(20, 5, 5)))
    assert [set(group) for group in groups] == batches_of(Parameters(20, 5, 5))


@pytest.mark.requirement("MRA-02")
def test_sizes_of_the_paper() -> None:
    assert [family_size(Parameters(120, 12, T)) for T in (1, 2, 3, 4, 6, 12)] == [
        10542859559688820,
        50063860,
        91390,
        4060,
        190,
        10,
    ]


def test_families_that_hardly_end_are_refused() -> None:
    assert family_size(Parameters(MAX_USERS - 1, MAX_USERS - 2, 1)) == MAX_USERS - 1
    for K in (MAX_USERS // 2, 2**18, MAX_USERS - 2**18):
        with pytest.raises(ParameterError, match=r"^\(N, K, T\) = .* must be such that .* is at most 4194304$"):
            family_size(Parameters(MAX_USERS, K, 1))
    assert next(family(Parameters(3 * MOST_LISTED, 6, 3))) == tuple(range(6))
    with pytest.raises(ParameterError, match=r"^N/T = 1048577: must be an integer in \[1, 1048576\]$"):
        family(Parameters(MOST_LISTED + 1, 2, 1))


@given(st.sampled_from(SMALL), st.data())
def test_members_and_batches_are_inverse(p: Parameters, data: st.DataObject) -> None:
    user = data.draw(st.integers(0, p.N - 1))
    assert user in p.members(p.batch_of(user))
    assert [set(p.members(batch)) for batch in range(p.batches)] == batches_of(p)
    assert set(p.users(range(p.batches))) == set(range(p.N))
    for wrong in (-1, p.N):
        with pytest.raises(ParameterError, match="user"):
            p.batch_of(wrong)
    for wrong in (-1, p.batches):
        with pytest.raises(ParameterError, match="batch"):
            p.members(wrong)
    with pytest.raises(ParameterError, match=r"^batches = 'set': must be a sequence of integers$"):
        p.users({0})  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- what of them is whole


@pytest.mark.requirement("MRA-18")
@given(st.sampled_from(SMALL), st.data())
def test_whole_batches_are_the_largest_union_that_is_there(p: Parameters, data: st.DataObject) -> None:
    here = data.draw(st.sets(st.integers(0, p.N - 1)))
    order = data.draw(st.permutations(sorted(here)))
    found = whole_batches(p, order)
    assert found == whole_batches(p, here)
    assert list(found) == sorted(set().union(*(batch for batch in batches_of(p) if batch <= here)))


@pytest.mark.requirement("MRA-18")
@pytest.mark.parametrize(("users", "error"), [((0, 12), UnknownUser), ((-1,), UnknownUser), ((3, 3), DuplicateUser)])
def test_users_of_no_roster_have_no_batches(users: tuple[int, ...], error: type[Exception]) -> None:
    with pytest.raises(error, match="users"):
        whole_batches(PRESETS["tiny"], users)


@given(st.sampled_from(SMALL), st.data())
def test_complete_batches_are_those_of_whom_all_are_available(p: Parameters, data: st.DataObject) -> None:
    available = np.array(data.draw(st.lists(st.booleans(), min_size=p.N, max_size=p.N)))
    here = {user for user in range(p.N) if available[user]}
    assert complete(p, available).tolist() == [b for b, batch in enumerate(batches_of(p)) if batch <= here]
