"""Integers modulo R above 2**32: the same laws as below, against Python's own integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import quantizer, wide
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import Ring, is_prime
from secagg_spec.errors import OutOfRange, ParameterError

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
