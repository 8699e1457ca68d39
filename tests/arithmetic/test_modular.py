"""Integers modulo R against Python integers, galois, python-flint and sympy."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import add, mul, sub
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from secagg_spec.arithmetic.modular import DEFAULT_PRIME, MAX_MODULUS, PrimeField, Ring, is_prime
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.arithmetic.wide import WideField
from secagg_spec.errors import LengthMismatch, NonCanonical, OutOfRange, ParameterError
from tests.strategies import EDGE_MODULI, OTHER_MODULI, PRIMES, arrays, integers_of, moduli, primes, snapshot, vector

OPERATIONS: dict[str, Callable[[int, int], int]] = {"add": add, "subtract": sub, "multiply": mul}
BINARY = pytest.mark.parametrize("operation", OPERATIONS)


def matrix_product(a: UintArray, b: UintArray, modulus: int) -> list[list[int]]:
    """The product by Python integers."""
    columns = list(zip(*integers_of(b), strict=True))
    return [[sum(map(mul, row, column)) % modulus for column in columns] for row in integers_of(a)]


# -------------------------------------------------------------------------------------------------- the modulus


@pytest.mark.requirement("MOD-01")
@pytest.mark.parametrize("modulus", [-7, 0, 1, 2**32 + 1, 2**64, 2**64 + 7])
@pytest.mark.parametrize("kind", [Ring, PrimeField])
def test_a_modulus_out_of_range_is_refused(kind: type[Ring], modulus: int) -> None:
    with pytest.raises(ParameterError, match="modulus"):
        kind(modulus)


@pytest.mark.requirement("MOD-01")
@pytest.mark.parametrize("modulus", EDGE_MODULI + OTHER_MODULI)
def test_every_modulus_in_range_is_taken(modulus: int) -> None:
    assert Ring(modulus).modulus == modulus
    assert MAX_MODULUS == 2**32


@pytest.mark.requirement("MOD-02")
@given(st.integers(2, 2**32))
def test_a_field_is_refused_exactly_when_the_modulus_is_composite(modulus: int) -> None:
    import sympy

    if sympy.isprime(modulus):
        assert PrimeField(modulus).modulus == modulus
    else:
        with pytest.raises(ParameterError, match="modulus"):
            PrimeField(modulus)


@pytest.mark.requirement("MOD-02")
def test_primes_are_decided_exactly() -> None:
    sieve = np.ones(20_000, dtype=bool)
    sieve[:2] = False
    for p in range(2, 142):
        sieve[p * p :: p] = sieve[p * p :: p] & ~sieve[p]
    assert [n for n in range(20_000) if is_prime(n)] == np.flatnonzero(sieve).tolist()


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("n", ["7", 7.5, 7.0, True, None, [7]])
def test_what_is_no_integer_is_no_prime(n: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^n = '{type(n).__name__}': must be an integer$"):
        is_prime(n)
    assert is_prime(np.int64(7))  # type: ignore[arg-type]


@pytest.mark.requirement("ERR-02")
def test_a_number_of_too_many_bits_is_refused_at_once() -> None:
    assert is_prime(2**521 - 1)
    with pytest.raises(ParameterError, match=r"^n = an integer of 9689 bits: must be an integer of 1024 bits at most$"):
        is_prime(2**9689 - 1)


@pytest.mark.requirement("MOD-02")
@pytest.mark.parametrize("n", [2047, 1373653, 25326001, 3215031751, 65537 * 65521, 65521**2, 2**32 - 1, 2**32])
def test_strong_pseudoprimes_are_composite(n: int) -> None:
    assert not is_prime(n)
    with pytest.raises(ParameterError, match="a prime"):
        PrimeField(n)


@pytest.mark.requirement("MOD-02")
@pytest.mark.parametrize(
    ("base", "p", "q"),
    [(2, 9283, 27847), (3, 61381, 122761), (5, 1069, 2137), (7, 7333, 21997), (11, 28351, 113401)],
)
def test_each_base_shows_a_composite_that_the_others_pass(base: int, p: int, q: int) -> None:
    """Each product is a strong pseudoprime to the four other bases, as sympy says too."""
    from sympy.ntheory.primetest import mr

    passed = [other for other in (2, 3, 5, 7, 11) if mr(p * q, [other])]
    assert passed == [other for other in (2, 3, 5, 7, 11) if other != base]
    assert not is_prime(p * q)


@pytest.mark.requirement("MOD-02")
def test_the_default_prime_is_the_largest_below_2_to_32() -> None:
    import sympy

    assert sympy.prevprime(2**32) == DEFAULT_PRIME == PrimeField().modulus
    assert all(sympy.isprime(p) and is_prime(p) for p in PRIMES)


# ------------------------------------------------------------------------------------------ elementwise operations


@BINARY
@pytest.mark.requirement("MOD-03")
@given(data=st.data())
def test_elementwise_operations_are_exact(operation: str, data: st.DataObject) -> None:
    modulus = data.draw(moduli())
    shape = data.draw(st.sampled_from([(0,), (1,), (5,), (2, 3)]))
    a, b = data.draw(arrays(modulus, *shape)), data.draw(arrays(modulus, *shape))
    got = getattr(Ring(modulus), operation)(a, b)
    pairs = zip(integers_of(a.ravel()), integers_of(b.ravel()), strict=True)
    assert integers_of(got.ravel()) == [OPERATIONS[operation](x, y) % modulus for x, y in pairs]
    assert (got.shape, got.dtype) == (shape, np.uint64)


@BINARY
@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize("modulus", EDGE_MODULI + OTHER_MODULI)
def test_extreme_pairs_are_exact(operation: str, modulus: int) -> None:
    values = sorted({0, 1, modulus // 2, modulus - 2, modulus - 1})
    pairs = [(x, y) for x in values for y in values]
    got = getattr(Ring(modulus), operation)(vector([x for x, _ in pairs]), vector([y for _, y in pairs]))
    assert integers_of(got) == [OPERATIONS[operation](x, y) % modulus for x, y in pairs]


@pytest.mark.requirement("MOD-03")
@given(st.data())
def test_the_sum_of_rows_is_exact(data: st.DataObject) -> None:
    modulus, n, d = data.draw(moduli()), data.draw(st.integers(0, 9)), data.draw(st.integers(0, 4))
    rows = data.draw(arrays(modulus, n, d))
    expected = [sum(row[k] for row in integers_of(rows)) % modulus for k in range(d)]
    assert integers_of(Ring(modulus).sum(rows)) == expected


@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize("modulus", EDGE_MODULI)
def test_a_long_sum_of_the_largest_element_is_exact(modulus: int) -> None:
    rows = np.full((70_000, 1), modulus - 1, dtype=np.uint64)
    assert integers_of(Ring(modulus).sum(rows)) == [70_000 * (modulus - 1) % modulus]


@pytest.mark.slow
@pytest.mark.requirement("MOD-03", "MOD-05")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("q", [2, 7, 257, 2**31 - 1])
def test_a_field_agrees_with_galois(q: int) -> None:
    import galois

    field, other = PrimeField(q), galois.GF(q, compile="python-calculate")
    a = vector([1 % q, (q - 1), q // 2 or 1, 3 % q or 1])
    b = vector([q - 1, q - 1, 1, 1])
    x, y = other(a.astype(np.int64)), other(b.astype(np.int64))
    assert integers_of(field.add(a, b)) == integers_of(x + y)
    assert integers_of(field.subtract(a, b)) == integers_of(x - y)
    assert integers_of(field.multiply(a, b)) == integers_of(x * y)
    assert integers_of(field.inverse(a)) == integers_of(x**-1)


@pytest.mark.parametrize("d", [0, 1, 5])
def test_zeros_are_as_many_as_asked_for(d: int) -> None:
    assert integers_of(Ring(7).check("zeros", Ring(7).zeros(d), (d,))) == [0] * d
    with pytest.raises(ParameterError, match=r"^d = "):
        Ring(7).zeros(-1 - d)
    with pytest.raises(ParameterError, match=r"^d = .*: must be an integer in \[0, 4294967295\]$"):
        Ring(7).zeros(2**80 + d)


# ------------------------------------------------------------------------------------------------- linear algebra


@pytest.mark.requirement("MOD-08")
@given(moduli(), st.permutations((0, 2, 3)), st.integers(0, 3))
def test_a_matrix_product_without_terms_is_zeros_of_its_shape(modulus: int, shape: list[int], more: int) -> None:
    m, k, n = (0 if at == more else size for at, size in enumerate(shape))
    a, b = np.zeros((m, k), np.uint64), np.zeros((k, n), np.uint64)
    got = Ring(modulus).matmul(a, b)
    assert got.shape == (m, n)
    assert integers_of(got) == [[0] * n for _ in range(m)]
    assert got.dtype == np.uint64


@pytest.mark.requirement("MOD-04", "MOD-08")
@given(st.data())
def test_a_matrix_product_is_exact(data: st.DataObject) -> None:
    modulus = data.draw(moduli())
    m, k, n = (data.draw(st.integers(0, 5)) for _ in range(3))
    a, b = data.draw(arrays(modulus, m, k)), data.draw(arrays(modulus, k, n))
    got = Ring(modulus).matmul(a, b)
    expected = matrix_product(a, b, modulus) if k else [[0] * n for _ in range(m)]
    assert got.shape == (m, n)
    assert integers_of(got) == expected


@pytest.mark.requirement("MOD-05")
@given(st.data())
def test_the_inverse_of_every_element_but_0(data: st.DataObject) -> None:
    q = data.draw(primes())
    values = data.draw(st.lists(st.integers(1, q - 1) | st.sampled_from([1, q - 1]), min_size=1, max_size=6))
    inverses = [pow(x, -1, q) for x in values]
    assert all(x * inverse % q == 1 for x, inverse in zip(values, inverses, strict=True))
    for few_or_many in (1, 40):
        assert integers_of(PrimeField(q).inverse(vector(few_or_many * values))) == few_or_many * inverses
    assert PrimeField(q).inverse(vector(values).reshape(1, -1, 1)).shape == (1, len(values), 1)


@pytest.mark.requirement("MOD-05")
@given(st.data())
def test_the_inverse_of_0_is_refused(data: st.DataObject) -> None:
    q = data.draw(primes())
    values = data.draw(arrays(q, 4))
    values[data.draw(st.integers(0, 3))] = 0
    with pytest.raises(OutOfRange):
        PrimeField(q).inverse(values)


@pytest.mark.requirement("MDS-05")
@given(st.data())
def test_solve_and_rank_agree_with_flint(data: st.DataObject) -> None:
    import flint

    q, k, n = data.draw(primes()), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    matrix, right = data.draw(arrays(q, k, k)), data.draw(arrays(q, k, n))
    oracle = flint.nmod_mat(k, k, integers_of(matrix.ravel()), q)
    field = PrimeField(q)
    assert field.rank(matrix) == oracle.rank()
    if oracle.rank() < k:
        with pytest.raises(ParameterError, match="invertible"):
            field.solve(matrix, right)
        return
    solution = oracle.solve(flint.nmod_mat(k, n, integers_of(right.ravel()), q))
    assert integers_of(field.solve(matrix, right)) == [[int(x) for x in row] for row in solution.tolist()]


@pytest.mark.requirement("MDS-05")
@given(st.data())
def test_the_rank_of_a_product_agrees_with_flint(data: st.DataObject) -> None:
    import flint

    q = data.draw(primes())
    m, k, n = (data.draw(st.integers(1, 5)) for _ in range(3))
    field = PrimeField(q)
    product = field.matmul(data.draw(arrays(q, m, k)), data.draw(arrays(q, k, n)))
    before = snapshot(product)
    assert field.rank(product) == flint.nmod_mat(m, n, integers_of(product.ravel()), q).rank()
    assert snapshot(product) == before


@pytest.mark.requirement("MDS-04")
@given(st.data())
def test_powers_are_exact(data: st.DataObject) -> None:
    q, count = data.draw(primes()), data.draw(st.integers(1, 6))
    points = data.draw(arrays(q, 3))
    expected = [[pow(x, k, q) for x in integers_of(points)] for k in range(count)]
    assert integers_of(PrimeField(q).powers(points, count)) == expected


@pytest.mark.requirement("ERR-02")
def test_powers_are_fewer_than_2_to_the_32() -> None:
    with pytest.raises(ParameterError, match=r"^count = 4294967296: must be an integer in \[0, 4294967295\]"):
        PrimeField(7).powers(vector([1, 2]), 2**32)


@pytest.mark.requirement("MDS-05")
@given(st.data())
def test_interpolation_is_what_elimination_gives(data: st.DataObject) -> None:
    """The structured inverse of the code against the general one, for large moduli too."""
    q = data.draw(st.one_of(primes(), st.sampled_from([2**61 - 1, 2**127 - 1])))
    field = PrimeField(q) if q < 2**32 else WideField(q)
    points = data.draw(st.lists(st.integers(1, q - 1), min_size=1, max_size=min(q - 1, 9), unique=True))
    count = data.draw(st.integers(0, len(points)))
    at, eye = np.array(points, dtype=field.dtype), np.eye(len(points), dtype=int).astype(field.dtype)
    general = field.solve(np.ascontiguousarray(field.powers(at, len(points)).T), eye)
    parts = list(field.interpolation(at, count, data.draw(st.integers(1, 10))))
    assert [row for part in parts for row in integers_of(part)] == integers_of(general[:count])


@pytest.mark.requirement("MDS-02", "ERR-02")
@pytest.mark.parametrize(
    ("points", "wrong"), [([0], "0] = 0"), ([1, 0], "1] = 0"), ([3, 3], "1] = 3"), ([1, 2, 1], "2] = 1")]
)
def test_interpolation_refuses_points_that_are_0_or_stand_twice(points: list[int], wrong: str) -> None:
    with pytest.raises(OutOfRange, match=rf"^points\[{re.escape(wrong)}: must be different from 0 and from the points"):
        next(PrimeField(7).interpolation(np.array(points, dtype=np.uint64), 1, 1))


@pytest.mark.parametrize("together", [0, -1])
def test_interpolation_refuses_parts_without_rows(together: int) -> None:
    with pytest.raises(ParameterError, match=rf"^together = {together}: must be an integer >= 1$"):
        next(PrimeField(7).interpolation(np.array([1, 2], dtype=np.uint64), 2, together))


# ------------------------------------------------------------------------------------------------------ refusals

_TWO = {"add": (2, 2), "subtract": (2, 2), "multiply": (2, 2), "matmul": ((2, 2), (2, 2)), "solve": ((2, 2), (2, 2))}
_ONE = {"sum": (2, 2), "inverse": 2, "rank": (2, 2), "decode_signed": 2}
_INPUTS: dict[str, tuple[Any, ...]] = {**_TWO, **{name: (shape,) for name, shape in _ONE.items()}}


def valid_inputs(operation: str, field: PrimeField) -> list[UintArray]:
    """Arrays that the operation takes; matrices are invertible."""
    eye = np.eye(2, dtype=np.uint64)
    return [eye.copy() if shape == (2, 2) else np.ones(shape, dtype=np.uint64) for shape in _INPUTS[operation]]


@pytest.mark.requirement("MOD-06", "ERR-02")
@pytest.mark.parametrize("operation", _INPUTS)
@given(data=st.data())
def test_a_number_that_is_no_element_is_refused(operation: str, data: st.DataObject) -> None:
    q = data.draw(primes())
    inputs = valid_inputs(operation, PrimeField(q))
    bad = data.draw(st.sampled_from(inputs))
    bad.flat[data.draw(st.integers(0, bad.size - 1))] = data.draw(st.sampled_from((q, q + 1, 2**63, 2**64 - 1)))
    before = snapshot(inputs)
    with pytest.raises(NonCanonical):
        getattr(PrimeField(q), operation)(*inputs)
    assert snapshot(inputs) == before


@pytest.mark.requirement("MOD-07", "ERR-02")
@pytest.mark.parametrize("operation", _TWO)
@given(data=st.data())
def test_lengths_that_do_not_fit_are_refused(operation: str, data: st.DataObject) -> None:
    field = PrimeField(data.draw(primes()))
    first, second = valid_inputs(operation, field)
    axes = st.lists(st.integers(0, 3), min_size=0, max_size=3).map(tuple)
    shape = data.draw(axes)
    assume(shape != second.shape if operation != "matmul" else len(shape) != 2 or shape[0] != 2)
    assume(operation != "solve" or len(shape) != 2 or shape[0] != 2)
    with pytest.raises(LengthMismatch):
        getattr(field, operation)(first, np.zeros(shape, dtype=np.uint64))


@pytest.mark.requirement("MOD-03", "MOD-06", "MOD-07")
@pytest.mark.parametrize("modulus", [97, 2**32])
def test_a_signed_sum_takes_whole_vectors_and_their_pieces_and_nothing_else(modulus: int) -> None:
    ring, start, vectors = Ring(modulus), vector([5, 6, 7]), [vector([96, 0, 1]), vector([3, 2, 96])]
    pieces: Any = iter([vectors[1][:2], vectors[1][2:].astype(np.uint32)])
    total = ring.signed_sum(start, [(True, vectors[0])], [(False, pieces)])
    assert integers_of(total) == [(5 + 96 - 3) % modulus, (6 - 2) % modulus, (7 + 1 - 96) % modulus]
    for wrong in ([1, 2, 3], None, 5, (vectors[0],)):
        with pytest.raises(ParameterError, match="an iterator of its pieces"):
            ring.signed_sum(start, [(True, wrong)])  # type: ignore[list-item]
    for sizes in ((1, 1), (2, 2), ()):
        with pytest.raises(LengthMismatch):
            ring.signed_sum(start, [(True, (start[:size] for size in sizes))])
    terms: Any
    for terms in ([None], ["ab"], [()], [(True,)], [(None, start)], [([], start)]):
        with pytest.raises(ParameterError, match=r"^terms\[1\]\[0\] = '.*': must be a truth value and a vector$"):
            ring.signed_sum(start, [], terms)
    with pytest.raises(ParameterError, match=r"^terms\[1\] = 'NoneType': must be a list or another iterable of pairs$"):
        ring.signed_sum(start, [], None)  # type: ignore[arg-type]


@pytest.mark.requirement("MOD-06", "ERR-02")
@pytest.mark.parametrize("modulus", [97, 128])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize("at", range(4))
def test_a_piece_of_a_vector_holds_elements_only(modulus: int, positive: bool, dtype: type, at: int) -> None:
    ring = Ring(modulus)
    wrong: NDArray[Any] = np.full(4, modulus - 1, dtype=dtype)
    assert ring.signed_sum(ring.zeros(4), [(positive, iter([wrong[:2], wrong[2:]]))]).size == 4
    wrong[at] = modulus
    with pytest.raises(NonCanonical, match=rf"^terms\[0\]\[0\]\[{at % 2}\] = {modulus}: must be in \[0, {modulus}\)$"):
        ring.signed_sum(ring.zeros(4), [(positive, iter([wrong[:2], wrong[2:]]))])


@pytest.mark.requirement("MOD-07")
def test_a_system_that_is_not_square_is_refused() -> None:
    with pytest.raises(LengthMismatch):
        PrimeField(7).solve(np.ones((2, 3), dtype=np.uint64), np.ones((2, 1), dtype=np.uint64))


@pytest.mark.requirement("ERR-01")
@pytest.mark.parametrize("operation", _INPUTS)
def test_inputs_stay_as_they_were(operation: str) -> None:
    field = PrimeField(257)
    inputs = valid_inputs(operation, field)
    for array in inputs:
        array.setflags(write=False)
    before = snapshot(inputs)
    getattr(field, operation)(*inputs)
    assert snapshot(inputs) == before


@pytest.mark.requirement("MOD-06", "ERR-02")
@pytest.mark.parametrize("dtype", ["int64", "uint32", "float64", "object", ">u8"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    ones = np.ones(2, dtype=dtype)
    for operation in ("add", "subtract", "multiply"):
        with pytest.raises(ParameterError, match="uint64"):
            getattr(Ring(7), operation)(ones, ones)


@pytest.mark.requirement("MOD-01")
def test_rings_are_equal_when_kind_and_modulus_are() -> None:
    assert (Ring(7), hash(Ring(7))) == (Ring(7), hash(Ring(7)))
    assert Ring(7) != Ring(8)
    assert Ring(7) != PrimeField(7)
    assert repr(PrimeField(7)) == "PrimeField(7)"


@pytest.mark.requirement("MOD-07", "ERR-02")
@pytest.mark.parametrize("operation", ["add", "subtract", "multiply"])
def test_of_two_inputs_the_wrong_one_is_named(operation: str) -> None:
    right, wrong = vector([6, 5]), vector([6, 7])
    call = getattr(Ring(7), operation)
    with pytest.raises(NonCanonical, match=r"^a\[1\] = 7: "):
        call(wrong, right)
    with pytest.raises(NonCanonical, match=r"^b\[1\] = 7: "):
        call(right, wrong)
    with pytest.raises(LengthMismatch, match=r"^b.shape = \(1,\): "):
        call(right, right[:1])


@pytest.mark.requirement("QNT-05", "ERR-02")
def test_the_first_signed_value_outside_the_range_is_named() -> None:
    with pytest.raises(OutOfRange, match=r"^values = -5: must be in \[-4, 3\] for the modulus 8$"):
        Ring(8).encode_signed(np.array([3, -5, -4, 4, 9]))
