"""Users who were always summed together, against combinations of sums and what they tell about bounded inputs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.participation_classes import participation_classes, small_class
from secagg_spec.errors import ParameterError

families = st.lists(st.frozensets(st.integers(0, 6)), max_size=5)


@pytest.mark.requirement("HSA-27", "HSA-28")
@given(families)
def test_classes_are_the_users_that_no_set_tells_apart(sets: list[frozenset[int]]) -> None:
    found = participation_classes(sets)
    everybody = frozenset[int]().union(*sets)
    assert frozenset[int]().union(*found) == everybody
    assert sum(map(len, found)) == len(everybody)
    for a, b in product(sorted(everybody), repeat=2):
        together = any({a, b} <= members for members in found)
        assert together == all((a in members) == (b in members) for members in sets)


@pytest.mark.requirement("HSA-27")
@given(families, st.integers(1, 4))
def test_a_class_that_is_too_small_is_found(sets: list[frozenset[int]], least: int) -> None:
    found, sizes = small_class(sets, least), [len(members) for members in participation_classes(sets)]
    assert (found is not None) == any(size < least for size in sizes)
    assert found is None or (found in participation_classes(sets) and len(found) == min(sizes))


@pytest.mark.requirement("HSA-27")
@given(families, st.lists(st.integers(-3, 3), min_size=5, max_size=5), st.integers(2, 9))
def test_no_combination_is_about_fewer_users_than_a_class_has(
    sets: list[frozenset[int]], factors: list[int], m: int
) -> None:
    """Exactly, and modulo any m: where it is not zero, it is so for all of a class."""
    entries = {user: sum(f for f, s in zip(factors, sets, strict=False) if user in s) for user in range(7)}
    fewest = min(map(len, participation_classes(sets)), default=0)
    for modulus in (0, m):
        about = [user for user, entry in entries.items() if (entry % modulus if modulus else entry)]
        assert not about or len(about) >= fewest


@pytest.mark.requirement("HSA-27")
@pytest.mark.parametrize(
    ("sets", "factors", "combined"),
    [
        ([{0, 1, 2}, {0, 3, 4}, {1, 2, 3, 5}], (1, 1, -1), [2, 0, 0, 0, 1, -1]),
        (
            [{0, 1, 4, 5, 6, 7, 8}, {1, 4, 6, 8}, {0, 1, 8}, {1, 2, 3, 5, 6, 7, 8}, {0, 1, 2, 3, 4, 5, 6}],
            (2, -1, 1, -2, 1),
            None,
        ),
    ],
)
def test_sums_that_tell_of_one_user_though_no_combination_is_about_few(
    sets: list[set[int]], factors: tuple[int, ...], combined: list[int] | None
) -> None:
    """With inputs of 0 and 1, and T = 1: the first tells two users apart modulo 2, the second tells one outright."""
    users = 1 + max(map(max, sets))
    rows = np.array([[int(user in members) for user in range(users)] for members in sets])
    if combined is not None:
        assert (np.array(factors) @ rows).tolist() == combined
    inputs = np.array(list(product((0, 1), repeat=users)))
    report: dict[tuple[int, ...], set[int]] = {}
    for given_inputs, sums in zip(inputs, inputs @ rows.T, strict=True):
        report.setdefault(tuple(sums.tolist()), set()).add(int(given_inputs[0]))
    if combined is None:
        assert all(len(values) == 1 for values in report.values())
    assert small_class([frozenset(members) for members in sets], 3) is not None


@pytest.mark.parametrize("user", [None, "anna", 0.5, True])
def test_users_of_sets_are_integers(user: object) -> None:
    with pytest.raises(ParameterError, match=f"^sets = '{type(user).__name__}': must be an integer"):
        participation_classes([frozenset({3, user}), frozenset({4})])  # type: ignore[arg-type]
