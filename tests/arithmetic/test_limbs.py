"""The matrix product from floating-point limbs against Python integers, above all at the ends of its ranges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.limbs import exact_matmul, inner_blocks, two_factors
from secagg_spec.arithmetic.validate import UintArray
from tests.strategies import EDGE_MODULI, OTHER_MODULI, bulk, fewer, moduli, pseudorandom, snapshot

ALL_MODULI = pytest.mark.parametrize("modulus", EDGE_MODULI + OTHER_MODULI)
INNER = (1, 2, 62, 63, 64, 65, 126, 127, 128, 129, 300)


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
@pytest.mark.parametrize("inner", [1, 63, 64, 127, 128, 1000])
def test_no_partial_sum_passes_2_to_53(modulus: int, inner: int) -> None:
    """Whatever the right factor is: limbs are at most 2**15, and what is added for the moved ones is below R."""
    for value in extremes(modulus):
        left = np.concatenate([constant(1, inner, value), pseudorandom(value, modulus, 2, inner)])
        factors, at = two_factors(left, modulus), 0
        for part in inner_blocks(factors, modulus):
            assert part.start in (at, None)
            sizes = np.abs(factors[:, :, part]).sum(axis=(0, 2)).astype(object)
            assert max(int(size) for size in sizes) * 2**15 + modulus <= 2**53
            at = part.stop
        assert at >= inner
        for factor, scale in zip(factors, (1, 2**16), strict=True):
            pairs = zip(factor.ravel().tolist(), left.ravel().tolist(), strict=True)
            assert not any((int(got) - element * scale) % modulus for got, element in pairs)


@pytest.mark.requirement("MOD-04")
@fewer(2)
@given(st.data())
def test_random_products_are_exact(data: st.DataObject) -> None:
    modulus = data.draw(moduli())
    rows, columns = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    inner = data.draw(st.sampled_from((0, *INNER, 700)))
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
