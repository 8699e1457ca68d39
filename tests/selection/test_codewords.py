"""The second way to bound a weight, by bases, against all sets of columns with few of a base among them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import comb, floor, inf
from typing import Any

import flint
import numpy as np
import pytest

from secagg_spec.arithmetic import dependence
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, ParameterError
from secagg_spec.selection import codewords
from secagg_spec.selection.codewords import Code, code_of
from secagg_spec.selection.metrics import Log


def rank(rows: Log) -> int:
    return int(flint.fmpz_mat(rows.astype(int).tolist()).rank()) if rows.size else 0


def drawn(seed: int) -> Code:
    """The code of a small log, some users of which are always together, with fewer words than all."""
    generator = np.random.default_rng(seed)
    while True:
        rows = generator.random((generator.integers(2, 7), 9)) < generator.choice([0.3, 0.5])
        rows[0, 0] = True
        code = code_of(np.repeat(rows, generator.choice([1, 1, 2], 9), axis=1))
        if code.rank < len(code.weights):
            return code


def lightest(code: Code, base: codewords._Base, most: int) -> int:
    """The least weight of words with at most that many columns of a base, by trying all sets of columns."""
    found = [int(code.weights.sum()) + 1]
    for size in range(1, len(code.weights) + 1):
        for places in combinations(range(len(code.weights)), size):
            if len(np.intersect1d(places, base.inside)) <= most:
                weight = int(code.weights[list(places)].sum())
                if weight < min(found) and rank(np.delete(code.rows, places, axis=1)) < code.rank:
                    found.append(weight)
    return min(found)


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(25))
def test_pairs_of_rows_are_all_looked_at(seed: int) -> None:
    code = drawn(seed)
    code.high = int(code.weights.sum()) + 1
    code._note_rows(code.base)
    assert code.high == lightest(code, code.base, 1)
    code._note_pairs(code.base)
    assert code.high == lightest(code, code.base, 2)


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("most", [2, 3, 4])
def test_what_is_said_not_to_be_there_is_not(seed: int, most: int) -> None:
    code = drawn(seed)
    true = lightest(code, code.base, most)
    for weight in range(1, true + 3):
        if weight <= code.high and code._cost_of_base(code.base, weight, most) < 10**9:
            assert not code._has_no_word(code.base, weight, most) or weight <= true


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", [117, 214, 300, 318])
@pytest.mark.parametrize("most", [3, 4])
def test_a_word_of_three_rows_that_is_lighter_than_those_of_two_is_not_passed_over(seed: int, most: int) -> None:
    generator = np.random.default_rng(seed)
    code = code_of(generator.random((generator.integers(4, 8), 10)) < 0.5)
    code.high = int(code.weights.sum()) + 1
    code._note_rows(code.base)
    code._note_pairs(code.base)
    assert lightest(code, code.base, most) < code.high
    assert not code._has_no_word(code.base, code.high, most)


@pytest.mark.requirement("MRA-13")
def test_some_base_has_few_columns_of_a_light_word() -> None:
    """Each user is in few of the bases, so a light word does not have many columns of all of them."""
    base = drawn(0).base
    for shared, count, weight in product((1, 2, 3), range(1, 8), range(1, 9)):
        most = max(columns for columns in range(30) if columns * count <= shared * (weight - 1))
        assert codewords._Packing((base,) * count, shared).most(weight) == most


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(10))
def test_there_is_one_group_more_than_a_light_word_has_other_columns(seed: int) -> None:
    code = drawn(seed)
    inside, outside = (sorted(code.weights[places].tolist()) for places in (code.base.inside, code.base.outside))
    for size, weight in product(range(1, code.rank + 1), range(1, int(code.weights.sum()) + 2)):
        others = [count for count in range(30) if sum(inside[:size]) + count * outside[0] < weight]
        assert code._groups(code.base, weight, size) == len(others)


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_the_cost_of_a_base_is_what_is_compared(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of rows on the other columns, and on each group of these the rows of all sets, unless one is found."""
    code, compared = drawn(seed), list[int]()
    searched, noted, weight = dependence.lightest, code._note_pairs, min(most, code.high)
    cost = code._cost_of_base(code.base, weight, most)

    def lightest(field: PrimeField, matrix: UintArray, size: int, weights: Any) -> Any:
        compared.append(comb(matrix.shape[1], max(size - 1, 1)))
        return searched(field, matrix, size, weights)

    def pairs(base: codewords._Base) -> None:
        compared.extend([len(base.outside)] * len(list(combinations(base.inside, 2))))
        noted(base)

    monkeypatch.setattr(codewords, "_SPLITS", 1)
    monkeypatch.setattr(dependence, "lightest", lightest)
    monkeypatch.setattr(code, "_note_pairs", pairs)
    if cost < inf:
        assert sum(compared) == cost if code._has_no_word(code.base, weight, most) else sum(compared) <= cost


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(10))
def test_each_base_is_independent_and_each_user_in_few(seed: int) -> None:
    code = drawn(seed)
    for packing in code._all_packings():
        used = np.bincount(np.concatenate([base.inside for base in packing.bases]), minlength=len(code.weights))
        assert (used <= packing.shared * code.weights).all()
        for base in packing.bases:
            assert rank(code.rows[:, base.inside]) == len(base.inside) == code.rank
            assert sorted([*base.inside.tolist(), *base.outside.tolist()]) == list(range(len(code.weights)))


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize("seed", range(40))
def test_rows_are_independent_on_columns_when_all_sets_of_them_are(seed: int) -> None:
    code, generator = drawn(seed), np.random.default_rng(seed)
    base, most = code.base, min(3, code.rank, len(code.base.outside))
    part = np.sort(generator.permutation(len(base.outside))[: generator.integers(most, len(base.outside) + 1)])
    sets = (rows for size in range(1, most + 1) for rows in combinations(range(code.rank), size))
    modulus = code.field.modulus
    ranks = ((flint.nmod_mat(base.rest[list(rows)][:, part].tolist(), modulus).rank(), len(rows)) for rows in sets)
    assert code._independent(base, part, most) == all(rank == count for rank, count in ranks)


@pytest.mark.requirement("MRA-13")
def test_a_weight_that_is_shown_already_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    code = drawn(1)
    asked = list[int]()
    monkeypatch.setattr(code, "_by_columns", asked.append)
    monkeypatch.setattr(code, "_by_bases", lambda weight, effort: asked.append(weight))
    assert code.raise_to(code.low, 10**6)
    assert not asked
    assert not code.raise_to(code.low + 1, 10**6)
    assert asked == [code.low + 1]


@pytest.mark.requirement("MRA-13")
def test_bases_are_made_unless_the_average_one_would_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """For q bases of r columns, each of n users in c at most, q r <= c n, and so c (w - 1) / q >= r (w - 1) / n."""

    class Made(Exception):
        pass

    def made() -> None:
        raise Made

    code = drawn(3)
    monkeypatch.setattr(code, "_all_packings", made)
    users, weights = int(code.weights.sum()), range(2, int(code.weights.sum()) + 1)
    for weight in weights:
        cost = dependence.cost(code.rank, floor(Fraction(code.rank * (weight - 1), users)))
        if cost:
            code._by_bases(weight, cost - 1)
        with pytest.raises(Made):
            code._by_bases(weight, cost)
    assert len({code.rank * (weight - 1) // users for weight in weights}) > 2


@pytest.mark.requirement("MRA-13")
def test_of_many_rounds_few_rows_are_kept_when_all_columns_are_independent_on_them() -> None:
    patterns = np.array([[1 << place == number for place in range(5)] for number in (1, 2, 4, 8, 16)])
    others = np.array([[bool(number >> place & 1) for place in range(5)] for number in range(1, 32)])
    assert len(code_of(np.concatenate([patterns, others])).rows) == 10
    assert len(code_of(np.concatenate([others, patterns])[:, [0, 1, 2, 3, 3]]).rows) == 8
    hidden = np.concatenate([others[:15], others[15:]])
    hidden[:, 4] = False
    hidden[-1, 4] = True
    assert len(code_of(hidden).rows) == len(np.unique(hidden, axis=0))


@pytest.mark.parametrize(
    ("shape", "error"), [((2, 3), ParameterError), ((0, 3), LengthMismatch), ((2, 0), LengthMismatch)]
)
def test_a_log_in_which_nobody_took_part_has_no_code(shape: tuple[int, int], error: type[ParameterError]) -> None:
    with pytest.raises(error, match=r"^log") as caught:
        code_of(np.zeros(shape, dtype=bool))
    assert type(caught.value) is error


@pytest.mark.parametrize("log", [None, [[True]], np.ones((2, 2))])
def test_the_code_of_what_is_no_log_is_refused(log: Any) -> None:
    with pytest.raises(ParameterError, match=r"^log = .*must be a numpy array of dtype bool$"):
        code_of(log)
