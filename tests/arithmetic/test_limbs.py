"""The matrix product from floating-point limbs against Python integers, above all at the ends of its ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.limbs import exact_matmul, inner_block
from secagg_spec.arithmetic.validate import UintArray
from tests.strategies import EDGE_MODULI, OTHER_MODULI, bulk, fewer, moduli, pseudorandom, snapshot

ALL_MODULI = pytest.mark.parametrize("modulus", EDGE_MODULI + OTHER_MODULI)
INNER = (1, 2, 126, 127, 128, 129, 300)


def extremes(modulus: int) -> list[int]:
    """Elements at the ends of the ranges of the element, its centred value and its two limbs."""
    wanted = (modulus - 1, modulus // 2, modulus // 2 + 1, 2**15, 2**15 + 1, 0x7FFF8000, 0x80008000, 0x7FFF7FFF)
    return sorted({value % modulus for value in wanted})


def product(a: UintArray, b: UintArray, modulus: int) -> UintArray:
    """The product by Python integers."""
    return np.asarray((a.astype(object) @ b.astype(object)) % modulus, dtype=np.uint64)


def constant(rows: int, columns: int, value: int) -> UintArray:
    """A matrix of one value."""
    return np.full((rows, columns), value, dtype=np.uint64)


@pytest.mark.requirement("MOD-04")
@ALL_MODULI
@pytest.mark.parametrize("inner", INNER)
def test_extreme_entries_are_exact(modulus: int, inner: int) -> None:
    for x in extremes(modulus):
        for y in extremes(modulus):
            got = exact_matmul(constant(2, inner, x), constant(inner, 2, y), modulus)
            assert got.tolist() == [[inner * x * y % modulus] * 2] * 2


@pytest.mark.requirement("MOD-04")
@ALL_MODULI
def test_all_entries_q_minus_1_are_exact_around_the_blocks(modulus: int) -> None:
    block = inner_block(modulus)
    for inner in (block - 1, block, block + 1, 2 * block, 2 * block + 1):
        got = exact_matmul(constant(1, inner, modulus - 1), constant(inner, 1, modulus - 1), modulus)
        assert got.tolist() == [[inner % modulus]]


@pytest.mark.requirement("MOD-04")
@ALL_MODULI
def test_extreme_entries_are_exact_around_the_blocks(modulus: int) -> None:
    block = inner_block(modulus)
    values = np.array(extremes(modulus), dtype=np.uint64)
    for inner in (block - 1, block, block + 1):
        left, right = np.repeat(values[:, None], inner, axis=1), np.repeat(values[None, :], inner, axis=0)
        expected = [[inner * int(x) * int(y) % modulus for y in values] for x in values]
        assert exact_matmul(left, right, modulus).tolist() == expected


@pytest.mark.requirement("MOD-04")
@given(moduli())
def test_no_partial_sum_passes_2_to_53(modulus: int) -> None:
    block, limb, centred = inner_block(modulus), 2**15, modulus // 2
    assert block >= 1
    assert block * limb * centred + modulus <= 2**53
    assert (centred + 2) * 2**16 + block * limb * centred + modulus <= 2**53


@pytest.mark.requirement("MOD-04")
@fewer(2)
@given(st.data())
def test_random_products_are_exact(data: st.DataObject) -> None:
    modulus = data.draw(moduli())
    rows, columns = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    inner = data.draw(st.sampled_from((0, *INNER, min(inner_block(modulus), 700) + 1)))
    a, b = data.draw(bulk(modulus, rows, inner)), data.draw(bulk(modulus, inner, columns))
    got = exact_matmul(a, b, modulus)
    assert got.shape == (rows, columns)
    assert got.dtype == np.uint64
    assert np.array_equal(got, product(a, b, modulus))


@pytest.mark.requirement("MOD-04")
@pytest.mark.parametrize("columns", [1023, 1024, 1025, 2049])
def test_every_column_is_computed(columns: int) -> None:
    modulus = 2**32 - 5
    a, b = pseudorandom(1, modulus, 2, 130), pseudorandom(2, modulus, 130, columns)
    assert np.array_equal(exact_matmul(a, b, modulus), product(a, b, modulus))


@pytest.mark.requirement("MOD-04", "ERR-01")
def test_strided_and_read_only_inputs_are_taken_as_they_are() -> None:
    modulus = 2**32 - 5
    a, b = pseudorandom(3, modulus, 7, 4).T, pseudorandom(4, modulus, 14, 6)[::2, ::-1]
    a.setflags(write=False)
    before = snapshot([a, b])
    assert np.array_equal(exact_matmul(a, b, modulus), product(a, b, modulus))
    assert snapshot([a, b]) == before


@pytest.mark.slow
@pytest.mark.requirement("MOD-04")
@pytest.mark.filterwarnings("ignore")
def test_a_product_agrees_with_galois_and_flint() -> None:
    import flint
    import galois

    q = 2**31 - 1
    a, b = pseudorandom(5, q, 5, 6), pseudorandom(6, q, 6, 4)
    got = exact_matmul(a, b, q).tolist()
    field = galois.GF(q, compile="python-calculate")
    assert got == (field(a.astype(np.int64)) @ field(b.astype(np.int64))).tolist()
    oracle = flint.nmod_mat(5, 6, a.ravel().tolist(), q) * flint.nmod_mat(6, 4, b.ravel().tolist(), q)
    assert got == [[int(x) for x in row] for row in oracle.tolist()]
