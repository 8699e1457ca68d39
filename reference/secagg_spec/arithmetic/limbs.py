"""An exact matrix product modulo R from floating-point products.

A float64 holds every integer up to 2**53. The left factor is split into two signed limbs of 16 bits, and the right
factor is centred around 0. The inner dimension is cut into blocks short enough that no partial sum exceeds 2**53.
The products then run in the machine's BLAS and are exact; the reduction also runs in floating point.

The plain form is ``sum(int(a[i, k]) * int(b[k, j])) % R``; a property test compares the two.
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic.validate import RealArray, UintArray

_LIMB = 2**16
_EXACT = 2**53
_MAX_BLOCK = 2**16
_COLUMNS = 1024


def exact_matmul(a: UintArray, b: UintArray, modulus: int) -> UintArray:
    """Return a @ b modulo `modulus` for elements a (m, k) and b (k, n), as (m, n) elements (MOD-04).

    Memory in addition to the inputs and the output: a float64 copy of `a` in two limbs, and blocks of 1024 columns.
    """
    rows, inner = a.shape
    high, low = _limbs(_centred(a, modulus))
    block = inner_block(modulus)
    product = np.empty((rows, b.shape[1]), dtype=np.uint64)
    for left in range(0, b.shape[1], _COLUMNS):
        columns = slice(left, left + _COLUMNS)
        total = np.zeros(product[:, columns].shape)
        for start in range(0, inner, block):
            part = slice(start, start + block)
            factor = _centred(b[part, columns], modulus)
            total += _block_product(high[:, part], low[:, part], factor, modulus)
            total = total if inner <= block else _reduce(total, modulus)
        product[:, columns] = _canonical(total, modulus)
    return product


def inner_block(modulus: int) -> int:
    """Return how many products of a limb (at most 2**15) and a centred element may be summed.

    The sum, a reduced high part times 2**16 and one modulus stay below 2**53 together.
    """
    room = _EXACT - modulus - _LIMB * (modulus // 2 + 2)
    return min(_MAX_BLOCK, room // ((_LIMB // 2) * (modulus // 2 + 1)))


def _block_product(high: RealArray, low: RealArray, factor: RealArray, modulus: int) -> RealArray:
    product = _reduce(high @ factor, modulus)
    product *= _LIMB
    product += low @ factor
    return _reduce(product, modulus)


def _centred(a: UintArray, modulus: int) -> RealArray:
    """Return the representatives in ``[-(modulus // 2), modulus // 2]`` as float64."""
    values = a.view(np.int64).astype(np.float64)
    values -= (values > modulus // 2) * np.float64(modulus)
    return values


def _limbs(values: RealArray) -> tuple[RealArray, RealArray]:
    """Split integers of magnitude up to 2**31 into high * 2**16 + low, both of magnitude up to 2**15."""
    high = np.rint(values / _LIMB)
    return high, values - high * _LIMB


def _reduce(values: RealArray, modulus: int) -> RealArray:
    """Return representatives of magnitude at most modulus / 2 + 2, in place, for integers below 2**53 - modulus.

    The quotient has a relative error of 2**-52. It is below 2**53 / modulus, and at most 2**32 for the small moduli
    (blocks have at most 2**16 terms), so the remainder exceeds modulus / 2 by less than 2, and by less than a half
    when the modulus is below 2**18. Quotient times modulus is an integer below 2**53, hence exact.
    """
    quotient = values * (1.0 / modulus)
    np.rint(quotient, out=quotient)
    quotient *= modulus
    values -= quotient
    return values


def _canonical(values: RealArray, modulus: int) -> UintArray:
    integers = values.astype(np.int64)
    integers += (integers >> 63) & modulus
    return integers.view(np.uint64)
