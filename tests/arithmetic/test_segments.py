"""The matrices of cells: those of the paper and the text, and what is decodable against all sets of subgroups."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.segments import (
    ALONE,
    MATRICES,
    Matrix,
    algorithm_1,
    algorithm_2,
    cyclic,
    decodable,
    entries,
    inference_robustness,
    joint,
    perfect,
    separate,
)
from secagg_spec.errors import ParameterError
from tests.arithmetic.test_factorisations import constructed
from tests.quick import one_in, some

FIGURE_2 = "002*2/0*033/0110*/01*10/*1221"
FIGURE_7 = "002332/0*03*3/011044/01*10*/012210/*12*21"
PERFECT = [count for count in range(2, 41) if constructed(count + count % 2)]
BOTH = [("cyclic", count) for count in range(2, 41)] + [("perfect", count) for count in PERFECT]


def figure(text: str) -> list[list[int]]:
    """A matrix as the paper's figures write it."""
    return [[ALONE if sign == "*" else int(sign) for sign in row] for row in text.split("/")]


# ---------------------------------------------------------------------------------------------------- the matrices


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", range(2, 41))
def test_the_cyclic_matrix_is_algorithm_1_of_the_paper(count: int) -> None:
    assert algorithm_1(count) == entries(cyclic(count))


@pytest.mark.requirement("HSA-11")
def test_the_matrices_of_the_figures() -> None:
    assert entries(cyclic(5)) == figure(FIGURE_2)
    assert entries(cyclic(6)) == figure(FIGURE_7)
    assert entries(perfect(5)) == figure(FIGURE_2)


@pytest.mark.requirement("HSA-11")
def test_algorithm_2_is_algorithm_1_on_all_subgroups_and_as_printed_only_for_few() -> None:
    for groups in range(1, 5):
        for subgroups in product(range(1, 5), repeat=groups):
            right = algorithm_1(sum(subgroups))
            assert algorithm_2(subgroups) == right
            if max(subgroups) <= 2:
                assert algorithm_2(subgroups, lambda d: 0) == right


@pytest.mark.parametrize("count", [0, -1, "a", None, 1.0])
def test_the_algorithms_of_the_paper_are_for_one_group_or_more(count: Any) -> None:
    with pytest.raises(ParameterError, match=r"^groups = "):
        algorithm_1(count)
    with pytest.raises(ParameterError, match=r"^subgroups\[1\] = "):
        algorithm_2([2, count])


@pytest.mark.parametrize("start", [2, -1, 100, "x", None, 0.5])
def test_a_counter_of_algorithm_2_that_starts_elsewhere_is_refused(start: Any) -> None:
    with pytest.raises(ParameterError, match=r"^first\(1\) = "):
        algorithm_2([2, 3], lambda d: start if d else 0)


def test_a_subgroup_that_is_dropped_is_not_asked_for() -> None:
    with pytest.raises(ParameterError, match=r"^subgroups = \[1\]: must be without those that are dropped"):
        decodable(cyclic(4), (0, 1), (1, 2))


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("subgroups", [(3,), (3, 1), (1, 3), (1, 2, 3), (4, 4)])
def test_algorithm_2_as_printed_is_wrong_for_three_subgroups_of_a_group(subgroups: tuple[int, ...]) -> None:
    assert algorithm_2(subgroups, lambda d: 0) != algorithm_1(sum(subgroups))


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize(("name", "count"), BOTH)
def test_each_subgroup_is_alone_once_and_with_each_other_once(name: str, count: int) -> None:
    matrix = MATRICES[name](count)
    assert len(matrix) == count
    for row in matrix:
        assert sorted(a for cell in row for a in cell) == list(range(count))
        assert all(len(cell) in {1, 2} and list(cell) == sorted(cell) for cell in row)
        assert list(row) == sorted(row)
    cells = sorted(cell for row in matrix for cell in row)
    assert cells == sorted([*((a,) for a in range(count)), *combinations(range(count), 2)])


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", [count for count in PERFECT if sympy.isprime(count) and count > 2])
def test_for_a_prime_the_two_are_one(count: int) -> None:
    assert perfect(count) == cyclic(count)


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", [count for count in PERFECT if count % 2 == 0])
def test_for_an_even_number_the_last_segment_shows_all(count: int) -> None:
    assert perfect(count)[-1] == tuple((a,) for a in range(count))
    assert all(len(row) == count // 2 for row in perfect(count)[:-1])


@pytest.mark.requirement("HSA-06", "ERR-02")
def test_perfect_is_refused_without_a_construction() -> None:
    for count in range(2, 65):
        if constructed(count + count % 2):
            assert len(perfect(count)) == count
        else:
            with pytest.raises(ParameterError, match=f"^subgroups in all = {count}:"):
                perfect(count)
    assert set(range(2, 33)) <= set(PERFECT)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("count", [0, -1, 4.0, True, None, "5", 10**500])
def test_what_is_no_number_of_subgroups_is_refused(name: str, count: Any) -> None:
    with pytest.raises(ParameterError, match="^subgroups in all = " if name == "perfect" else "^count = "):
        MATRICES[name](count)


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", range(1, 6))
def test_the_naive_matrices(count: int) -> None:
    assert separate(count) == (tuple((a,) for a in range(count)),) * count
    assert joint(count) == ((tuple(range(count)),),) * count
    assert entries(separate(count)) == [[ALONE] * count] * count


# -------------------------------------------------------------------------------------------- inference robustness


def shares(matrix: Matrix, dropped: tuple[int, ...] = ()) -> dict[int, int]:
    """In how many segments each set, written as bits, is decodable: definition 1 on all sets."""
    alive = sum(1 << a for a in range(len(matrix)) if a not in dropped)
    sets = np.array([bits for bits in range(1, 2 ** len(matrix)) if bits & alive == bits != alive], dtype=np.int64)
    counts = np.zeros(len(sets), np.int64)
    for row in matrix:
        covered = np.zeros(len(sets), np.int64)
        for cell in row:
            bits = sum(1 << a for a in cell) & alive
            covered |= np.where(sets & bits == bits, bits, 0)
        counts += covered == sets
    return dict(zip(sets.tolist(), counts.tolist(), strict=True))


def judge(matrix: Matrix, dropped: tuple[int, ...] = ()) -> Fraction:
    """The robustness that the reference finds is that of definition 1, and its witness is one."""
    found, every = inference_robustness(matrix, dropped), shares(matrix, dropped)
    most = max(every.values(), default=0)
    assert found.value == 1 - Fraction(most, len(matrix))
    assert len(found.rows) == most
    if most:
        bits = sum(1 << a for a in found.subgroups)
        assert every[bits] == most
        assert decodable(matrix, found.subgroups, dropped) == found.rows
    return found.value


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", range(2, 12))
@pytest.mark.parametrize("name", MATRICES)
def test_the_robustness_is_that_of_definition_1(name: str, count: int) -> None:
    judge(MATRICES[name](count))


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", range(3, 12))
@pytest.mark.parametrize("name", ["cyclic", "perfect"])
def test_the_robustness_is_that_of_definition_1_when_subgroups_drop_out(name: str, count: int) -> None:
    left_out = [dropped for size in (1, 2) for dropped in combinations(range(count), size)]
    for dropped in some(5, left_out) if count < 9 else some(4, left_out[::3]):
        judge(MATRICES[name](count), dropped)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Matrices of rows of any cells, one row often there twice or more."""
    count = draw(st.integers(2, 7))
    row = st.lists(st.integers(0, count - 1), min_size=count, max_size=count).map(_by_label)
    rows = draw(st.lists(row, min_size=1, max_size=count))
    return tuple(rows[draw(st.integers(0, len(rows) - 1))] for _ in range(count))


def _by_label(labels: list[int]) -> tuple[tuple[int, ...], ...]:
    cells = {label: tuple(a for a, other in enumerate(labels) if other == label) for label in labels}
    return tuple(sorted(cells.values()))


@pytest.mark.requirement("HSA-11")
@given(matrices(), st.data())
def test_the_robustness_of_any_matrix_is_that_of_definition_1(matrix: Matrix, data: st.DataObject) -> None:
    dropped = data.draw(st.sets(st.integers(0, len(matrix) - 1), max_size=len(matrix) - 1))
    judge(matrix, tuple(sorted(dropped)))


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", range(2, 8))
def test_what_is_decodable_is_that_of_all_sets(count: int) -> None:
    for name in ("cyclic", "perfect"):
        for dropped in ((), (1,)):
            for bits, most in shares(MATRICES[name](count), dropped).items():
                chosen = [a for a in range(count) if bits >> a & 1]
                assert len(decodable(MATRICES[name](count), chosen, dropped)) == most


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", one_in(3, range(2, 25)))
def test_the_robustness_of_cyclic_is_by_the_smallest_prime_factor(count: int) -> None:
    smallest = min(sympy.primefactors(count))
    assert inference_robustness(cyclic(count)).value == 1 - Fraction(1, smallest)
    if count > 2:
        dropped = inference_robustness(cyclic(count), (count // 2,)).value
        share = Fraction(2, count) if sympy.isprime(count) else Fraction(1, smallest)
        assert dropped == 1 - share


@pytest.mark.slow
@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", [count for count in PERFECT if count <= 32])
def test_the_robustness_of_perfect_is_the_largest_that_there_is(count: int) -> None:
    alone = 1 if count % 2 or count == 2 else 2
    assert inference_robustness(perfect(count)).value == 1 - Fraction(alone, count)
    if 2 < count < 20:
        for dropped in {0, count // 2, count - 1}:
            assert inference_robustness(perfect(count), (dropped,)).value == 1 - Fraction(2, count)


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("count", one_in(6, range(4, 17)))
def test_the_robustness_of_perfect_with_two_subgroups_lost(count: int) -> None:
    for dropped in some(2, combinations(range(0, count, 1 + count // 12), 2)):
        assert inference_robustness(perfect(count), dropped).value == 1 - Fraction(3, count)


@pytest.mark.requirement("HSA-11")
def test_a_third_of_the_segments_of_six_groups_is_a_half() -> None:
    """What theorem 1 of the paper claims to be impossible: groups 0, 2 and 4 in the rows 1, 3 and 5 of its figure 7."""
    assert decodable(cyclic(6), (0, 2, 4)) == (1, 3, 5)
    assert inference_robustness(cyclic(6)).value == Fraction(1, 2)


@pytest.mark.requirement("HSA-11")
def test_no_matrix_of_four_or_three_subgroups_shows_less_than_perfect() -> None:
    for count in (3, 4):
        rows = {tuple(sorted(row)) for row in _rows(tuple(range(count)))}
        best = max(
            (inference_robustness(matrix).value for matrix in product(rows, repeat=count) if _fair(matrix)),
        )
        assert best == inference_robustness(perfect(count)).value


def _rows(left: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    """The ways to divide subgroups into cells of one or two."""
    if not left:
        return [()]
    first, rest = left[0], left[1:]
    found = [((first,), *others) for others in _rows(rest)]
    for partner in rest:
        found += [((first, partner), *others) for others in _rows(tuple(a for a in rest if a != partner))]
    return found


def _fair(matrix: Matrix) -> bool:
    cells = [cell for row in matrix for cell in row]
    return len(cells) == len(set(cells)) == len(matrix) * (len(matrix) + 1) // 2


@pytest.mark.requirement("ERR-02")
def test_the_robustness_of_too_many_parts_is_refused() -> None:
    with pytest.raises(ParameterError, match="matrix = '22 parts of two rows'"):
        inference_robustness((*separate(22)[:2], *joint(22)[:20]))


@pytest.mark.slow
def test_the_robustness_of_many_subgroups() -> None:
    many = cyclic(66)
    assert decodable(many, range(0, 66, 2)) == tuple(range(1, 66, 2))
    assert inference_robustness(perfect(67)).value == Fraction(66, 67)


def test_the_subgroups_of_a_union_of_parts_ascend() -> None:
    """The parts {1, 2} and {0, 3} of the first two rows together are known in all rows, and neither alone is."""
    apart, tied = ((0, 3), (1, 2), (4, 5)), ((0, 1), (2, 3), (4, 5))
    found = inference_robustness((apart, apart, tied, tied, tied, tied))
    assert (found.subgroups, found.rows) == ((0, 1, 2, 3), (0, 1, 2, 3, 4, 5))


def test_subgroups_may_have_any_numbers() -> None:
    matrix = (((0, 1), (4, 5)), ((0, 4), (1, 5)), ((0, 1), (4, 5)))
    found = inference_robustness(matrix)
    assert (found.value, found.subgroups, found.rows) == (Fraction(1, 3), (0, 1), (0, 2))
    union = inference_robustness((((0, 7), (1, 5)), ((0, 1), (5, 7)), ((0, 7), (5,), (1,)), ((5, 1), (7, 0))))
    assert (union.subgroups, union.rows) == ((0, 7), (0, 2, 3))
    large = tuple(tuple(tuple(2**16 - 6 + a for a in cell) for cell in row) for row in cyclic(6))
    assert inference_robustness(large).value == inference_robustness(cyclic(6)).value


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("strange", [9, 4, -1, 0.5])
def test_subgroups_that_a_matrix_does_not_have_are_refused(strange: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^subgroups = \[{strange}\]"):
        decodable(cyclic(4), [0, strange])
    for judge in (inference_robustness, lambda matrix, dropped: decodable(matrix, (0,), dropped)):
        with pytest.raises(ParameterError, match=rf"^dropped = \[{strange}\]: must be subgroups of the matrix$"):
            judge(cyclic(4), [strange])


@pytest.mark.requirement("ERR-02")
def test_a_cell_with_what_is_no_subgroup_is_named() -> None:
    for wrong in (-1, 2**16, None):
        with pytest.raises(ParameterError, match=rf"^matrix\[1\]\[0\] = {wrong}: must be an integer in \[0, 65535\]$"):
            entries((((0, 1),), ((0, wrong),)))  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("second", [((0,),), ((0, 1), (2,)), ((0, 1), (1,)), ((0,), (2,))])
def test_rows_of_different_subgroups_have_no_robustness(second: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ParameterError, match=r"matrix\[2\] = .*each subgroup of the first row once"):
        inference_robustness((((0, 1),), ((0,), (1,)), second))


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    "matrix",
    [
        5,
        None,
        "ab",
        (((0,), (1,)), 5),
        ((0, 1), (0, 1)),
        ((("a",), (1,)), ((0,), (1,))),
        (((0.0,), (1,)), ((0,), (1,))),
        (((0, 1), ()), ((0,), (1,))),
        (((0,), (0,)), ((0,), (1,))),
        (((0, 1), (1,)), ((0,), (1,))),
        (((0,),), ((0,), (1,))),
    ],
)
def test_what_is_no_matrix_is_refused(matrix: Any) -> None:
    for judge in (entries, inference_robustness, lambda matrix: decodable(matrix, [0])):
        with pytest.raises(ParameterError, match=r"^matrix"):
            judge(matrix)


def test_the_entry_of_a_cell_is_its_smaller_subgroup() -> None:
    assert entries((((1, 0),), ((0,), (1,)))) == [[0, 0], [ALONE, ALONE]]
