"""An exact matrix product modulo R from floating-point products.

A float64 holds every integer up to 2**53. The left factor is split into two signed limbs of 16 bits, the right factor
is centred around 0, and the inner dimension is cut into blocks so short that no partial sum passes that bound. The
products then run in the machine's BLAS and are exact; the reduction runs in floating point as well.

The plain form is ``sum(int(a[i, k]) * int(b[k, j])) % R``; a property test ties the two together.
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic.validate import RealArray, UintArray

_LIMB = 2**16
_EXACT = 2**53
_COLUMNS = 4096


def exact_matmul(a: UintArray, b: UintArray, modulus: int) -> UintArray:
    """Return a @ b modulo `modulus` for elements a (m, k) and b (k, n), as (m, n) elements (MOD-04).

    Memory above inputs and output: a float64 copy of `a` in two limbs, and blocks of 4096 columns.
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
            total += _reduce(_reduce(high[:, part] @ factor, modulus) * _LIMB, modulus)
            total += _reduce(low[:, part] @ factor, modulus)
            total = _reduce(total, modulus)
        product[:, columns] = _canonical(total, modulus)
    return product


def inner_block(modulus: int) -> int:
    """Return how many products of a limb (at most 2**15) and a centred element fit, with a remainder, below 2**53."""
    return (_EXACT - modulus) // ((_LIMB // 2) * (modulus // 2 + 1))


def _centred(a: UintArray, modulus: int) -> RealArray:
    """Return the representatives in ``[-(modulus // 2), modulus // 2]`` as float64."""
    values = a.astype(np.float64)
    return np.subtract(values, modulus, out=values, where=values > modulus // 2)


def _limbs(values: RealArray) -> tuple[RealArray, RealArray]:
    """Split integers of magnitude up to 2**31 into high * 2**16 + low, both of magnitude up to 2**15."""
    high = np.rint(values / _LIMB)
    return high, values - high * _LIMB


def _reduce(values: RealArray, modulus: int) -> RealArray:
    """Return representatives of magnitude at most modulus / 2 + 1, in place, for integers up to 2**53 - modulus.

    The quotient's rounding error is at most 1 / modulus, so the remainder passes modulus / 2 by at most 1; and
    quotient * modulus is an integer below 2**53, hence exact.
    """
    quotient = values / modulus
    np.rint(quotient, out=quotient)
    quotient *= modulus
    values -= quotient
    return values


def _canonical(values: RealArray, modulus: int) -> UintArray:
    values[values < 0] += modulus
    assert not values.size or (values.min() >= 0 and values.max() < modulus), "reduction left the range"
    return values.astype(np.uint64)
