"""Integers modulo R above 2**32: the same laws as below, against Python's own integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import quantizer, wide
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import Ring, is_prime
from secagg_spec.arithmetic.sampling import elements_from_bytes, elements_of
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import NonCanonical, OutOfRange, ParameterError

PRIMES = (2**61 - 1, 2**127 - 1, 2**255 - 19, 2**521 - 1)
MODULI = st.sampled_from((*PRIMES, 2**33, 2**64, 2**521))


@pytest.mark.requirement("MOD-03", "MOD-04", "MOD-05")
@given(MODULI, st.data())
def test_operations_are_those_of_integers(q: int, data: Any) -> None:
    ring = wide.ring(q)
    rows = st.lists(st.integers(0, q - 1), min_size=3, max_size=3)
    left, right = data.draw(rows), data.draw(rows)
    a, b = wide.objects(left), wide.objects(right)
    assert ring.add(a, b).tolist() == [(x + y) % q for x, y in zip(left, right, strict=True)]
    assert ring.subtract(a, b).tolist() == [(x - y) % q for x, y in zip(left, right, strict=True)]
    assert ring.multiply(a, b).tolist() == [x * y % q for x, y in zip(left, right, strict=True)]
    product = ring.matmul(a.reshape(1, 3), b.reshape(3, 1))
    assert product.tolist() == [[sum(x * y for x, y in zip(left, right, strict=True)) % q]]
    if is_prime(q) and all(left):
        assert wide.field(q).multiply(a, wide.field(q).inverse(a)).tolist() == [1, 1, 1]


@pytest.mark.requirement("MDS-05", "MDS-06")
@given(st.sampled_from(PRIMES), st.data())
def test_any_shares_decode(q: int, data: Any) -> None:
    code = MaskCode(wide.field(q), 5, 3, 1)
    element = st.integers(0, q - 1)
    mask = wide.objects(data.draw(st.lists(element, min_size=3, max_size=3)))
    shares = code.encode(mask, wide.objects(data.draw(st.lists(element, min_size=2, max_size=2))).reshape(1, 2))
    users = data.draw(st.permutations(range(5)))[:3]
    assert code.decode(users, shares[users], 3).tolist() == mask.tolist()
    same = MaskCode(code.field, 5, 3, 1, [np.int64(1), np.uint8(2), 3, 4, 5])  # type: ignore[list-item]
    assert same.points.tolist() == code.points.tolist()
    assert (same.decode(users, shares[users], 3) == mask).all()


@pytest.mark.requirement("QNT-02", "QNT-03", "QNT-05", "QNT-07")
@given(st.sampled_from((1, 3, 2**16)), st.floats(-1000, 1000), st.sampled_from((0.0, 0.5, 1 - 2.0**-53)))
def test_the_quantiser_is_that_of_small_moduli(level: int, x: float, u: float) -> None:
    given_: dict[str, Any] = {"level": level, "weight": 1, "rounding": np.array([u])}
    small, large = Ring(2**32), wide.ring(2**61 - 1)
    values = wide.quantize(np.array([x]), ring=large, **given_)
    want = quantizer.quantize(np.array([x]), ring=small, **given_)
    assert large.decode_signed(values).tolist() == small.decode_signed(want).tolist()
    formats: tuple[quantizer.Format, ...] = ("binary64", "binary32")
    for format in formats:
        back = wide.dequantize(values, level=level, ring=large, format=format)
        assert back.tolist() == wide.dequantize(want, level=level, ring=small, format=format).tolist()


@pytest.mark.requirement("QNT-04", "QNT-07", "QNT-08", "MOD-01", "MOD-02")
def test_large_levels_are_exact_and_bounds_are_kept() -> None:
    ring = wide.ring(2**255 - 19)
    numbers: dict[str, Any] = {"level": 2**200, "weight": 1, "rounding": np.array([0.0])}
    assert ring.decode_signed(wide.quantize(np.array([-0.75]), ring=ring, **numbers)).tolist() == [-3 * 2**198]
    assert wide.dequantize(wide.objects([3]), level=2**53, ring=ring)[0] == Fraction(3, 2**53)
    with pytest.raises(OutOfRange):
        wide.quantize(np.array([2.0**54]), ring=ring, **numbers)
    with pytest.raises(ParameterError):
        wide.dequantize(wide.objects([3]), level=2**60 + 1, ring=ring)
    for wrong in (2**521 + 1, 2**522):
        with pytest.raises(ParameterError):
            wide.ring(wrong)
    for composite in (2**64, (2**61 - 1) * (2**31 - 1), 3317044064679887385961981):
        with pytest.raises(ParameterError):
            wide.field(composite)


@pytest.mark.requirement("MOD-03", "MOD-05")
@given(st.sampled_from(PRIMES), st.data())
def test_sums_with_weights_and_fields_are_those_of_integers(q: int, data: Any) -> None:
    field, element = wide.field(q), st.integers(0, q - 1)
    rows = data.draw(st.lists(st.lists(element, min_size=2, max_size=2), min_size=3, max_size=3))
    weights = data.draw(st.lists(st.integers(0, 3) | element, min_size=3, max_size=3))
    found = field.weighted_sum(wide.objects(weights), [wide.objects(row) for row in rows])
    columns = list(zip(*rows, strict=True))
    assert found.tolist() == [sum(w * x for w, x in zip(weights, column, strict=True)) % q for column in columns]
    matrix = np.array(rows, dtype=object)[:2]
    if field.rank(matrix) == 2:
        right = wide.objects(rows[2]).reshape(2, 1)
        assert field.matmul(matrix, field.solve(matrix, right)).tolist() == right.tolist()
    many = wide.objects([x + 1 for x in range(70)])
    assert field.multiply(many, field.inverse(many)).tolist() == [1] * 70


WIDE = wide.ring(2**40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: WIDE.signed_sum(wide.objects([2**39]), [(True, wide.objects([1]))]),
        lambda: expand(bytes(32), WIDE, 1),
        lambda: quantizer.quantize(np.zeros(1), level=1, ring=WIDE, weight=1, rounding=np.zeros(1)),
        lambda: draw_elements(SeededSource(bytes(32), ""), WIDE, (3,)),
        lambda: elements_from_bytes(WIDE, bytes(64), 1),
        lambda: elements_of(WIDE, np.zeros(4, np.uint32)),
    ],
)
def test_what_is_made_of_words_of_32_bits_refuses_larger_rings(call: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match=r"modulus = 1099511627776: must be at most 2\*\*32"):
        call()


@pytest.mark.parametrize("format", [None, "binary16", np.array(["binary32", "binary64"])])
def test_the_format_of_wide_numbers_is_one_of_two(format: Any) -> None:
    with pytest.raises(ParameterError, match=r"^format = .*: must be 'binary64' or 'binary32'$"):
        wide.dequantize(wide.objects([1]), level=1, ring=WIDE, format=format)


@pytest.mark.requirement("MOD-06")
@pytest.mark.parametrize("wrong", [1.5, "a", None, np.int64(1), True, -1, 2**40])
def test_what_is_no_element_is_refused(wrong: Any) -> None:
    for method in (WIDE.add, WIDE.multiply):
        with pytest.raises(NonCanonical, match=r"b\[1\] = "):
            method(wide.objects([1, 2]), wide.objects([1, wrong]))
    if not isinstance(wrong, (int, np.int64)):
        with pytest.raises(ParameterError, match="values = "):
            WIDE.encode_signed(wide.objects([wrong]))
        with pytest.raises(ParameterError, match="values = 'list'"):
            WIDE.encode_signed([wrong])  # type: ignore[arg-type]


@pytest.mark.requirement("QNT-07")
@pytest.mark.filterwarnings("error")
def test_levels_of_numpy_and_numbers_beyond_binary32() -> None:
    ring, large = wide.ring(2**210), wide.objects([1, 2**200])
    assert wide.dequantize(large, level=np.int64(4), ring=ring).tolist() == [0.25, 2.0**198]  # type: ignore[arg-type]
    with pytest.raises(OutOfRange, match=r"values\[1\] / level = .*binary32"):
        wide.dequantize(large, level=1, ring=ring, format="binary32")
    level: Any = np.int64(4)
    assert wide.dequantize(wide.objects([2**90]), level=level, ring=ring, format="binary32").tolist() == [2.0**88]


@pytest.mark.parametrize("modulus", ["7", 7.0, True, None, 1, 2**521 + 1])
def test_a_modulus_that_is_none_is_refused_for_rings_of_every_size(modulus: Any) -> None:
    for make in (wide.ring, wide.field):
        with pytest.raises(ParameterError, match=r"^modulus = .*must be an integer in \[2, "):
            make(modulus)
