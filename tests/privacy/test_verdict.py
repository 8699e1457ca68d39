"""Verdicts, against the exact information of every case, over fields and over rings with zero divisors."""

from __future__ import annotations

from itertools import combinations
from math import isclose, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import PrimeField, Ring, is_prime
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, NonCanonical, ParameterError
from secagg_spec.privacy import verdict as module
from secagg_spec.privacy.verdict import Verdict, decide, readable
from tests.privacy.enumeration import codes, conditional_information, determined, every_vector
from tests.strategies import arrays, integers_of, vector

System = tuple[int, UintArray, UintArray, UintArray]


@st.composite
def systems(draw: st.DrawFn, moduli: tuple[int, ...], most: int = 3) -> System:
    """Views A s + B r with allowed functionals, up to 3 secrets and 2 random symbols."""
    R = draw(st.sampled_from(moduli))
    secrets, noise, rows = draw(st.integers(1, most)), draw(st.integers(0, 2)), draw(st.integers(0, 4))
    allowed = draw(st.integers(0, 2))
    return R, draw(arrays(R, rows, secrets)), draw(arrays(R, rows, noise)), draw(arrays(R, allowed, secrets))


def compare_with_enumeration(verdict: Verdict, system: System) -> None:
    """Count every case of s and r, and compare the information and the number of determined functionals."""
    R, A, B, allowed = system
    cases = every_vector(R, A.shape[1] + B.shape[1])
    secrets = cases[: A.shape[1]]
    none = np.zeros((1, cases.shape[1]), dtype=np.uint64)
    s = codes(R, secrets)
    v = codes(R, np.concatenate([none, np.concatenate([A, B], axis=1) @ cases % np.uint64(R)]))
    f = codes(R, np.concatenate([none, allowed @ secrets % np.uint64(R)]))
    assert isclose(conditional_information(s, v, f), verdict.bits, abs_tol=1e-9)
    assert isclose(conditional_information(s, v, np.zeros_like(s)), log2(verdict.leak), abs_tol=1e-9)
    assert determined(R, secrets, v) == verdict.leak
    assert determined(R, secrets, v, f) == verdict.leak * verdict.withheld
    # the functionals that are named are determined, and together with the allowed ones are all that is
    named = codes(R, np.concatenate([none, verdict.excess @ secrets % np.uint64(R)]))
    assert isclose(conditional_information(named, v, f), verdict.bits, abs_tol=1e-9)


@given(systems((2, 3)))
def test_over_a_field_ranks_give_the_exact_information(system: System) -> None:
    R, A, B, allowed = system
    compare_with_enumeration(decide(PrimeField(R), A, B, allowed), system)


@pytest.mark.slow
@given(systems((2, 3, 4, 6)))
def test_over_a_ring_howell_gives_the_exact_information(system: System) -> None:
    R, A, B, allowed = system
    compare_with_enumeration(decide(Ring(R), A, B, allowed), system)


@given(systems((8, 9, 12), most=1))
def test_over_larger_rings_too(system: System) -> None:
    R, A, B, allowed = system
    compare_with_enumeration(decide(Ring(R), A, B, allowed), system)


@given(systems((2, 5, 7, 2**31 - 1, 2**32 - 5), most=4))
def test_both_ways_agree_where_both_apply(system: System) -> None:
    R, A, B, allowed = system
    field, ring = decide(PrimeField(R), A, B, allowed), decide(Ring(R), A, B, allowed)
    assert (field.index, field.leak, field.withheld) == (ring.index, ring.leak, ring.withheld)
    assert field.dimension == ring.dimension
    assert field.index == R**field.dimension


def members(R: int, rows: list[list[int]], width: int) -> set[tuple[int, ...]]:
    """All combinations of rows modulo R, by adding rows until nothing new comes."""
    found = {(0,) * width}
    for row in rows:
        steps = [[factor * entry for entry in row] for factor in range(R)]
        found = {tuple((a + b) % R for a, b in zip(one, step, strict=True)) for one in found for step in steps}
    return found


@given(systems((4, 6, 8, 12), most=2))
def test_no_functional_follows_from_the_others_and_the_dimension_is_the_fewest(system: System) -> None:
    R, A, B, allowed = system
    verdict, width = decide(Ring(R), A, B, allowed), A.shape[1]
    base, excess = integers_of(allowed), integers_of(verdict.excess)
    whole = members(R, [*base, *excess], width)
    for row in excess:
        assert len(members(R, [*base, *(other for other in excess if other is not row)], width)) < len(whole)
    generating = (
        count
        for count in range(width + 1)
        for rows in combinations(sorted(whole), count)
        if members(R, [*base, *map(list, rows)], width) == whole
    )
    assert verdict.dimension == next(generating)


def test_twice_a_row_is_counted_once_and_coprime_parts_together() -> None:
    none = np.empty((2, 0), dtype=np.uint64)
    twice = decide(Ring(4), vector([[2, 1], [0, 2]]), none, np.empty((0, 2), dtype=np.uint64))
    assert (twice.functionals, twice.dimension, twice.index) == (("2*s[0] + s[1]",), 1, 4)
    coprime = decide(Ring(6), vector([[2, 0], [0, 3]]), none, np.empty((0, 2), dtype=np.uint64))
    assert (coprime.functionals, coprime.dimension, coprime.index) == (("2*s[0]", "3*s[1]"), 1, 6)


def one(value: int) -> UintArray:
    """A 1 x 1 matrix."""
    return vector([[value]])


NOTHING = np.empty((0, 1), dtype=np.uint64)


@pytest.mark.parametrize("ring", [Ring(4), PrimeField(2)])
def test_each_secret_has_one_name(ring: Ring) -> None:
    for names in ([], ["a", "b"]):
        with pytest.raises(
            LengthMismatch, match=rf"^len\(secrets\) = {len(names)}: must be 1, one name for each secret$"
        ):
            decide(ring, one(1), one(1), NOTHING, names)
    with pytest.raises(ParameterError, match=r"^secrets = 'str': must be a list or another sequence of text$"):
        decide(ring, one(1), one(1), NOTHING, "a")


def test_twice_a_secret_modulo_4_tells_one_bit() -> None:
    verdict = decide(Ring(4), one(2), np.empty((1, 0), dtype=np.uint64), NOTHING)
    assert (verdict.bits, verdict.functionals) == (1.0, ("2*s[0]",))
    assert decide(PrimeField(2), one(2 % 2), np.empty((1, 0), dtype=np.uint64), NOTHING).private


def test_a_secret_plus_three_times_noise_modulo_6_tells_log2_3_bits() -> None:
    verdict = decide(Ring(6), one(1), one(3), NOTHING)
    assert verdict.index == 3
    assert isclose(verdict.bits, log2(3))
    assert verdict.functionals == ("2*s[0]",)
    assert decide(PrimeField(2**32 - 5), one(1), one(3), NOTHING).private


@pytest.mark.parametrize("R", [2, 4, 6, 7, 2**32])
def test_a_one_time_pad_tells_nothing_and_a_clear_value_everything(R: int) -> None:
    ring = PrimeField(R) if is_prime(R) else Ring(R)
    assert decide(ring, one(1), one(1), NOTHING).private
    clear = decide(ring, one(1), one(0), NOTHING)
    assert (clear.index, clear.leak, clear.functionals) == (R, R, ("s[0]",))


def test_what_is_allowed_is_not_counted_and_what_is_withheld_is() -> None:
    field, total = PrimeField(7), vector([[1, 1, 1]])
    view = vector([[1, 1, 1], [0, 1, 1]])
    verdict = decide(field, view, np.zeros((2, 0), dtype=np.uint64), total, ("x_0[0]", "x_1[0]", "x_2[0]"))
    assert verdict.functionals == ("x_0[0]",)
    assert (verdict.index, verdict.leak, verdict.withheld) == (7, 49, 1)
    silent = decide(field, view[:0], np.zeros((0, 0), dtype=np.uint64), total)
    assert silent.private
    assert silent.withheld == 7


@given(systems((5, 6), most=4), st.data())
def test_the_verdict_depends_on_the_row_space_only(system: System, data: st.DataObject) -> None:
    R, A, B, allowed = system
    ring = PrimeField(R) if is_prime(R) else Ring(R)
    order = data.draw(st.permutations(range(len(A))))
    first, second = decide(ring, A, B, allowed), decide(ring, A[order], B[order], allowed)
    assert (first.index, first.leak) == (second.index, second.leak)


@pytest.mark.parametrize(
    ("row", "text"),
    [([0, 1, 1], "b + c"), ([6, 0, 2], "-a + 2*c"), ([0, 0, 0], "0"), ([3, 4, 0], "3*a - 3*b")],
)
def test_functionals_are_readable(row: list[int], text: str) -> None:
    assert readable(vector(row), ("a", "b", "c"), 7) == text


def test_a_functional_has_a_coefficient_for_each_name() -> None:
    for names in (("a",), ("a", "b", "c")):
        with pytest.raises(LengthMismatch, match=r"^len\(names\) = "):
            readable(vector([1, 2]), names, 7)


def test_no_functional_is_named_that_follows_from_others_and_what_is_allowed() -> None:
    """2*a + b tells 3*b as well, modulo 6; that c and d are allowed changes nothing."""
    allowed = np.array([[0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.uint64)
    for known in (allowed[:0], allowed):
        found = decide(Ring(6), np.array([[2, 1, 0, 0]], dtype=np.uint64), np.zeros((1, 0), np.uint64), known)
        assert integers_of(found.excess) == [[2, 1, 0, 0]]
        assert found.index == 6


def test_systems_that_do_not_fit_are_refused() -> None:
    field = PrimeField(5)
    with pytest.raises(LengthMismatch, match="B"):
        decide(field, one(1), np.zeros((2, 1), dtype=np.uint64), NOTHING)
    with pytest.raises(LengthMismatch, match="allowed"):
        decide(field, one(1), one(1), np.zeros((1, 2), dtype=np.uint64))
    with pytest.raises(NonCanonical, match="A"):
        decide(field, one(5), one(1), NOTHING)
    assert integers_of(decide(field, one(1), one(0), NOTHING).excess) == [[1]]


@pytest.mark.parametrize(("most", "terms"), [(4, [2, 3]), (3, [3, 3])])
def test_of_many_secrets_only_one_reduced_basis_is_looked_at(
    most: int, terms: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The difference of the two rows has fewer terms, and is in the basis that is reduced from the last secret on."""
    monkeypatch.setattr(module, "_MANY_SECRETS", most)
    rows = np.array([[1, 0, 1, 1], [0, 1, 1, 1]], dtype=np.uint64)
    found = decide(PrimeField(7), rows, np.zeros((2, 0), np.uint64), rows[:0])
    assert sorted(np.count_nonzero(found.excess, axis=1).tolist()) == terms


def test_of_functionals_that_follow_from_each_other_the_simpler_one_is_named() -> None:
    """Modulo 6, 2*a + b + c tells with 2*c the same as with 3*b + c, which has more terms."""
    rows = np.array([[0, 3, 5], [4, 5, 5]], dtype=np.uint64)
    found = decide(Ring(6), rows, np.zeros((2, 0), np.uint64), rows[:0])
    assert sorted(integers_of(found.excess)) == [[0, 0, 2], [2, 1, 1]]
    by_hand = members(6, [[0, 0, 2], [2, 1, 1]], 3)
    assert by_hand == members(6, [[0, 3, 1], [2, 1, 1]], 3) == members(6, integers_of(rows), 3)


def test_rows_are_decided_for_any_modulus() -> None:
    found = module.decide_rows(2**70, [[2**69]], 0, [], ("s",))
    assert found.excess.tolist() == [[2**69]]
    assert found.leak == 2


@pytest.mark.parametrize("noise", [-1, 0.5, None])
def test_the_number_of_uniform_symbols_is_none_or_more(noise: Any) -> None:
    with pytest.raises(ParameterError, match=r"^noise = .*: must be an integer in "):
        module.decide_rows(4, [[1]], noise, [], ("s",))
    with pytest.raises(ParameterError, match=r"^R = 1: must be an integer >= 2$"):
        module.decide_rows(1, [[1]], 0, [], ("s",))


@pytest.mark.parametrize("wrong", [[1, 2, 3], None, 3, ["a", 1]])
def test_a_row_that_does_not_fit_is_named_by_its_argument_and_place(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^(len\()?rows\[1\]"):
        module.decide_rows(4, [[1, 1], wrong], 1, [[1]], ("s",))
    with pytest.raises(ParameterError, match=r"^(len\()?allowed\[1\]"):
        module.decide_rows(4, [[1, 1]], 1, [[1], wrong], ("s",))


def test_names_of_secrets_are_text_also_where_nothing_leaks() -> None:
    names: Any = (1,)
    empty = np.zeros((0, 1), np.uint64)
    with pytest.raises(ParameterError, match=r"^secrets\[0\] = 'int': must be of the class str$"):
        decide(Ring(4), empty, np.zeros((0, 0), np.uint64), empty, names)
    with pytest.raises(ParameterError, match=r"^names\[0\] = 'int': must be of the class str$"):
        module.decide_rows(4, [], 0, [], names)
    with pytest.raises(LengthMismatch, match=r"^len\(names\) = 1: must be 2"):
        readable(np.array([1, 2], np.uint64), ("a",), 4)


@pytest.mark.parametrize(
    ("row", "modulus", "said"),
    [
        ([1, 2], 7, "row = 'list': must be a numpy array"),
        (np.array([1.5, 2.0]), 7, r"row = 1.5: must be an integer in \[0, 6\]"),
        (np.array([1j, 0]), 7, r"row = 1j: must be an integer in \[0, 6\]"),
        (np.array([9, 2]), 7, r"row = 9: must be an integer in \[0, 6\]"),
        (np.array([[1, 2]]), 7, r"row.shape = \(1, 2\): must be \(any\)"),
        (np.array([1, 2]), "7", "modulus = '7': must be an integer >= 1"),
    ],
)
def test_what_is_no_functional_is_not_read(row: Any, modulus: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}$"):
        readable(row, ("a", "b"), modulus)
