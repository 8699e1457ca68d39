"""The numbers of HeteroSAg: what is refused, who is in which cell of which segment, and what keys are bound to."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic.levels import LARGEST, Range
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.protocols.heterosag.plan import MATRICES, PRESETS, UNIT, Parameters, cells_of
from tests.protocols.heterogeneous import SMALL, sessions

TINY = PRESETS["tiny"]


def page() -> str:
    """The text."""
    return (resources.root("spec") / "heterosag.md").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------ what is refused


def right(N: int, D: int, T: int, t: int, sizes: tuple[int, ...], subgroups: tuple[int, ...]) -> bool:
    """HSA-01, word by word."""
    if sum(sizes) != N or min(sizes) < 1 or min(subgroups) < 1 or sum(subgroups) < 2:
        return False
    smallest = min(size // parts for size, parts in zip(sizes, subgroups, strict=True))
    return smallest >= T + 2 and T >= 1 and D >= 0 and N - D >= T + 2 and T + 2 <= t <= N - D


@pytest.mark.requirement("HSA-01")
@pytest.mark.parametrize("groups", [1, 2])
def test_parameters_are_taken_exactly_inside_the_bounds(groups: int) -> None:
    taken = 0
    sizes_of = product((-1, 0, 2, 3, 4, 7, 8), repeat=groups)
    for sizes, subgroups in product(sizes_of, product((0, 1, 2, 3), repeat=groups)):
        N = sum(sizes)
        for n, D, T, t in ((N, 0, 1, 3), (N + 1, 0, 1, 3), (N - 1, 0, 1, 3), (N, 1, 1, 3), (N, 0, 2, 4), (N, 1, 1, N)):
            if right(n, D, T, t, sizes, subgroups):
                taken += 1
                assert Parameters(n, D, T, t, 9, sizes, subgroups, (2,) * groups, UNIT).enough == max(t, T + 2)
            else:
                with pytest.raises(ParameterError):
                    Parameters(n, D, T, t, 9, sizes, subgroups, (2,) * groups, UNIT)
    assert taken > 3


@pytest.mark.requirement("HSA-01")
def test_dropouts_colluders_and_threshold_are_taken_exactly_inside_the_bounds() -> None:
    for D, T, t in product(range(-1, 9), range(-1, 5), range(10)):
        if right(8, D, T, t, (4, 4), (1, 1)):
            assert replace(SMALL, D=D, T=T, t=t).T == T
        else:
            with pytest.raises(ParameterError):
                replace(SMALL, D=D, T=T, t=t)


@pytest.mark.requirement("HSA-01", "HSA-02", "HSA-04", "HSA-05", "HSA-06", "ERR-02")
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        *[
            (name, bad, ParameterError)
            for name in ("N", "D", "T", "t", "d")
            for bad in (True, 3.0, "3", None, -1, 2**40)
        ],
        ("sizes", (8,), LengthMismatch),
        ("sizes", (), LengthMismatch),
        ("sizes", (4, 0), ParameterError),
        ("sizes", (8, 0), ParameterError),
        ("sizes", (4, 5), ParameterError),
        ("sizes", (4.0, 4), ParameterError),
        ("sizes", (True, 7), ParameterError),
        ("sizes", "44", ParameterError),
        ("sizes", 8, ParameterError),
        ("sizes", np.array([4, 4]), ParameterError),
        ("subgroups", (1,), LengthMismatch),
        ("subgroups", (1, 1, 1), LengthMismatch),
        ("subgroups", (1, 0), ParameterError),
        ("subgroups", (1, 2), ParameterError),
        ("subgroups", (1, True), ParameterError),
        ("subgroups", (1, 1.0), ParameterError),
        ("levels", (1, 4), ParameterError),
        ("levels", (4, 2), ParameterError),
        ("levels", (2,), LengthMismatch),
        ("levels", (2, 2**31 + 1), ParameterError),
        ("levels", (2, 4.0), ParameterError),
        ("levels", (2, True), ParameterError),
        ("levels", (2, None), ParameterError),
        ("range", (-1.0, 1.0), ParameterError),
        ("range", None, ParameterError),
        ("matrix", "joint", ParameterError),
        ("matrix", "Perfect", ParameterError),
        ("matrix", 1, ParameterError),
        ("matrix", ["perfect"], ParameterError),
        ("matrix", {}, ParameterError),
        ("matrix", np.array(["perfect", "cyclic"]), ParameterError),
    ],
    ids=str,
)
def test_a_parameter_that_is_refused_is_named(name: str, value: Any, error: type[ParameterError]) -> None:
    with pytest.raises(error, match="subgroups" if (name, error) == ("sizes", LengthMismatch) else name):
        replace(SMALL, **{name: value})


@pytest.mark.requirement("HSA-01")
def test_one_group_of_one_subgroup_is_refused() -> None:
    with pytest.raises(ParameterError, match="subgroups"):
        replace(SMALL, sizes=(8,), subgroups=(1,), levels=(2,))
    assert replace(SMALL, sizes=(8,), subgroups=(2,), levels=(2,)).count == 2


@pytest.mark.requirement("HSA-02")
@given(st.lists(st.integers(-1, 6), min_size=2, max_size=2))
def test_levels_do_not_fall(levels: list[int]) -> None:
    if 2 <= levels[0] <= levels[1]:
        assert replace(SMALL, levels=tuple(levels)).levels == tuple(levels)
    else:
        with pytest.raises(ParameterError, match="levels"):
            replace(SMALL, levels=tuple(levels))


@pytest.mark.requirement("HSA-03")
@pytest.mark.parametrize("sizes", [(3, 3), (3, 5), (5, 10), (17, 34)])
def test_a_modulus_is_at_most_2_to_the_32(sizes: tuple[int, int]) -> None:
    """Each of these numbers of users in the largest cell divides 2**32 - 1, or the largest K is where they do not."""
    N = sum(sizes)
    for levels in (2, (2**32 - 1) // N + 1):
        given = Parameters(N, 0, 1, 3, 2, sizes, (1, 1), (levels, levels), UNIT)
        assert max(cell.ring.modulus for cell in given.parts) == N * (levels - 1) + 1 <= 2**32
    with pytest.raises(ParameterError, match="levels"):
        Parameters(N, 0, 1, 3, 2, sizes, (1, 1), (levels + 1, levels + 1), UNIT)


@pytest.mark.requirement("HSA-03")
def test_the_modulus_2_to_the_32_itself_is_taken() -> None:
    K = (2**32 - 1) // 15 + 1
    given = Parameters(15, 0, 1, 3, 2, (5, 10), (1, 1), (K, K), UNIT)
    assert given.parts[0].ring.modulus == 2**32


@pytest.mark.requirement("HSA-04")
@pytest.mark.parametrize("name", ["tiny", "default", "large"])
def test_there_are_no_more_segments_than_elements(name: str) -> None:
    preset = PRESETS[name]
    assert set(replace(preset, d=preset.count).lengths) == {1}
    with pytest.raises(ParameterError, match="d = "):
        replace(preset, d=preset.count - 1)


@pytest.mark.requirement("HSA-05")
@pytest.mark.parametrize(
    "bounds", [(1.0, -1.0), (0.0, 0.0), (np.nan, 1.0), (-1.0, np.inf), (-LARGEST, LARGEST), (nextafter(1, 2), 1.0)]
)
def test_a_range_that_is_none_cannot_be_given(bounds: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="range"):
        replace(SMALL, range=Range(*bounds))


@pytest.mark.requirement("HSA-06")
@pytest.mark.parametrize("count", [32, 33, 34, 35, 36])
def test_perfect_is_refused_where_there_is_no_construction(count: int) -> None:
    def build(matrix: str) -> Parameters:
        return Parameters(3 * count, 0, 1, 3, count, (3 * count,), (count,), (2,), UNIT, matrix)

    assert build("cyclic").count == count
    if count in {35, 36}:
        with pytest.raises(ParameterError, match="subgroups"):
            build("perfect")
    else:
        assert build("perfect").count == count


@pytest.mark.requirement("HSA-12", "ERR-02")
def test_integers_of_numpy_are_integers() -> None:
    plain = Parameters(20, 2, 1, 4, 6, (10, 10), (2, 2), (3, 200), UNIT)
    small = [np.uint8(value) for value in (20, 2, 1, 4, 6)]
    pairs: list[Any] = [[np.uint8(a), np.int64(b)] for a, b in (plain.sizes, plain.subgroups)]
    other = Parameters(*small, *pairs, [np.uint8(3), np.uint8(200)], UNIT)  # type: ignore[call-arg,arg-type]
    assert other == plain
    assert hash(other) == hash(plain)
    assert [cell.ring.modulus for cell in other.parts] == [cell.ring.modulus for cell in plain.parts]
    assert other.digest == plain.digest


# ------------------------------------------------------------------------------------------------------- the plan


@pytest.mark.requirement("HSA-11")
@given(sessions(most=24))
def test_users_are_cut_into_subgroups_and_elements_into_segments(p: Parameters) -> None:
    members, start = [], 0
    for size, parts in zip(p.sizes, p.subgroups, strict=True):
        for part in range(parts):
            stop = start + size // parts + (part < size % parts)
            members.append(tuple(range(start, stop)))
            start = stop
    assert p.members == tuple(members)
    assert p.group_of == tuple(group for group, parts in enumerate(p.subgroups) for _ in range(parts))
    assert p.lengths == tuple(p.d // p.count + (at < p.d % p.count) for at in range(p.count))


@pytest.mark.requirement("HSA-11", "HSA-12")
@given(sessions(most=24))
def test_each_element_of_each_user_is_in_one_cell_of_its_row(p: Parameters) -> None:
    starts = [sum(p.lengths[:at]) for at in range(p.count)]
    seen = []
    for cell in p.parts:
        assert (cell.start, cell.length) == (starts[cell.segment], p.lengths[cell.segment])
        assert cell.subgroups in p.plan[cell.segment]
        assert cell.members == {user for subgroup in cell.subgroups for user in p.members[subgroup]}
        assert cell.levels == p.levels[p.group_of[min(cell.subgroups)]]
        assert cell.levels == min(p.levels[p.group_of[subgroup]] for subgroup in cell.subgroups)
        assert cell.ring.modulus == len(cell.members) * (cell.levels - 1) + 1
        seen += [(user, at) for user in cell.members for at in range(cell.start, cell.stop)]
    assert sorted(seen) == list(product(range(p.N), range(p.d)))
    order = [(cell.segment, cell.subgroups) for cell in p.parts]
    assert order == sorted(order)
    for user in range(p.N):
        assert [cell.segment for cell in cells_of(p, user)] == list(range(p.count))


@pytest.mark.requirement("HSA-12")
@given(sessions())
def test_the_modulus_just_holds_the_sum(p: Parameters) -> None:
    for cell in p.parts:
        assert len({sum([k] * len(cell.members)) for k in (0, cell.levels - 1)}) == 2
        assert cell.ring.modulus - 1 == len(cell.members) * (cell.levels - 1)


@pytest.mark.requirement("HSA-12")
def test_the_plan_of_the_preset_tiny() -> None:
    assert TINY.members == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    assert TINY.lengths == (2, 1, 1)
    cells = [(c.segment, c.subgroups, c.levels, c.ring.modulus) for c in TINY.parts]
    assert cells == [
        (0, (0, 1), 2, 9),
        (0, (2,), 3, 9),
        (1, (0, 2), 2, 9),
        (1, (1,), 2, 5),
        (2, (0,), 2, 5),
        (2, (1, 2), 2, 9),
    ]


@pytest.mark.requirement("HSA-12")
def test_unlike_moduli_on_one_segment_fail_as_in_example_1() -> None:
    """Two users, moduli 2 and 4: whatever the server reduces by, some sum is wrong; that of the text is right."""

    def decoded(x: tuple[int, int], mask: int, moduli: tuple[int, int], server: int) -> int:
        y = (x[0] + mask) % moduli[0], (x[1] - mask) % moduli[1]
        return sum(y) % server

    assert decoded((1, 3), 1, (2, 4), 100) == 2
    for server in range(2, 20):
        inputs = product(product(range(2), range(4)), range(2))
        assert any(decoded(x, mask, (2, 4), server) != sum(x) for x, mask in inputs)
    R = 2 * (4 - 1) + 1
    for x, mask in product(product(range(4), range(4)), range(R)):
        assert decoded(x, mask, (R, R), R) == sum(x)
    for smaller in range(2, R):
        assert decoded((3, 3), 0, (smaller, smaller), smaller) != 6


@pytest.mark.requirement("HSA-12")
def test_masks_whose_sum_is_0_for_the_server_fail_as_in_example_2() -> None:
    """Three users, moduli 2, 6 and 6: the twelve tuples of table 1, and what overflows."""
    tuples = [masks for masks in product(range(2), range(6), range(6)) if sum(masks) % 6 == 0]
    assert len(tuples) == 12
    for user, size in enumerate((2, 6, 6)):
        counts = [sum(masks[user] == value for masks in tuples) for value in range(size)]
        assert counts == [12 // size] * size

    def decoded(x: tuple[int, ...], masks: tuple[int, ...]) -> int:
        return sum((value + mask) % R for value, mask, R in zip(x, masks, (2, 6, 6), strict=True)) % 6

    assert decoded((1, 0, 0), (1, 1, 4)) == 5
    for x, masks in product(product(range(2), range(3), range(3)), tuples):
        overflows = x[0] + masks[0] >= 2
        assert (decoded(x, masks) == sum(x)) == (not overflows)


# --------------------------------------------------------------------------------------------------- keys and text

CHANGES: dict[str, Callable[[Parameters], Parameters]] = {
    "N": lambda p: replace(p, N=9, sizes=(4, 5)),
    "D": lambda p: replace(p, D=p.D - 1),
    "T": lambda p: replace(p, T=2, t=4),
    "t": lambda p: replace(p, t=p.t + 1),
    "d": lambda p: replace(p, d=p.d + 1),
    "r1": lambda p: replace(p, range=Range(nextafter(-1.0, 0.0), 1.0)),
    "r2": lambda p: replace(p, range=Range(-1.0, nextafter(1.0, 0.0))),
    "matrix": lambda p: replace(p, matrix="cyclic"),
    "users": lambda p: replace(p, sizes=(5, 3)),
    "subgroups": lambda p: replace(p, N=10, sizes=(4, 6), subgroups=(1, 2)),
    "levels": lambda p: replace(p, levels=(2, 5)),
    "all levels": lambda p: replace(p, levels=(4, 4)),
}


@pytest.mark.requirement("HSA-22")
def test_every_parameter_is_in_the_digest() -> None:
    digests = {name: change(SMALL).digest for name, change in CHANGES.items()}
    assert len({SMALL.digest, *digests.values()}) == len(CHANGES) + 1


@pytest.mark.requirement("HSA-22")
def test_ranges_that_are_equal_are_one_for_keys() -> None:
    plus, minus = (replace(TINY, range=Range(zero, 1.0)) for zero in (0.0, -0.0))
    assert plus == minus
    assert plus.digest == minus.digest
    assert replace(TINY, range=Range(-1.0, -0.0)).digest == replace(TINY, range=Range(-1.0, 0.0)).digest


@pytest.mark.requirement("HSA-22")
def test_matrices_that_are_one_for_a_prime_are_two_for_keys() -> None:
    one, other = TINY, replace(TINY, matrix="cyclic")
    assert one.plan == other.plan
    assert len({one.digest, other.digest, replace(TINY, matrix="separate").digest}) == 3


@pytest.mark.requirement("HSA-22")
@given(sessions())
def test_the_digest_is_that_of_the_text(p: Parameters) -> None:
    r1, r2 = (int.from_bytes(struct.pack(">d", bound), "big") for bound in (p.range.low, p.range.high))
    pairs = [("N", p.N), ("D", p.D), ("T", p.T), ("t", p.t), ("d", p.d), ("r1", r1), ("r2", r2)]
    pairs.append(("matrix", {"cyclic": 0, "perfect": 1, "separate": 2}[p.matrix]))
    for group in range(len(p.sizes)):
        pairs += [("users", p.sizes[group]), ("subgroups", p.subgroups[group]), ("levels", p.levels[group])]
    assert p.digest == hash_parameters(pairs)
    assert MATRICES[:2] == ("cyclic", "perfect")


@pytest.mark.requirement("HSA-01", "HSA-02")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    section = page().split("\n## 2. ")[1].split("\n- [HSA-01]")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[0][2:] == list(PRESETS)
    for column, preset in enumerate(PRESETS.values(), start=2):
        stated = {row[0].strip("$"): row[column] for row in rows[2:]}
        assert {name: int(stated[name]) for name in "NDTtd"} == {name: getattr(preset, name) for name in "NDTtd"}
        assert [float(bound) for bound in stated["r_1, r_2"].split(", ")] == [preset.range.low, preset.range.high]
        assert stated["matrix"] == preset.matrix
        assert int(stated["G"]) == len(preset.sizes)
        for symbol, numbers in (("n_g", preset.sizes), ("L_g", preset.subgroups), ("K_g", preset.levels)):
            assert tuple(int(number) for number in stated[symbol].split(", ")) == numbers


@pytest.mark.requirement("HSA-11")
def test_the_example_of_the_text_is_the_matrix_of_five_subgroups() -> None:
    table = page().split("For Z = 5:")[1].split("*Perfect*")[0]
    rows = [re.findall(r"\\\*|\d", line)[1:] for line in table.splitlines() if re.match(r"\| \d", line)]
    stated = [["*" if entry == "\\*" else entry for entry in row] for row in rows]
    assert "/".join("".join(row) for row in stated) == "002*2/0*033/0110*/01*10/*1221"


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("user", [-1, 8, 1.0, True, None, "1"])
def test_cells_of_nobody_are_refused(user: Any) -> None:
    with pytest.raises(ParameterError, match="user"):
        cells_of(SMALL, user)
