"""An exact matrix product modulo R from one floating-point product.

A float64 holds every integer up to 2**53. The right factor is split into two balanced limbs of 16 bits,
``b = low + 2**16 * high``, and the left factor stands twice beside itself: as it is, and times 2**16 modulo R. So the
residue is that of one product, ``[a, 2**16 * a] @ [low; high]``. The inner dimension is cut into blocks in which the
sizes of `a` keep every partial sum below 2**53, so that the machine's BLAS is exact in any order of additions.

The plain form is ``sum(int(a[i, k]) * int(b[k, j])) % R``; a property test compares the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import RealArray, UintArray

_LIMB = 2**16
_EXACT = 2**53
_COLUMNS, _ROOM = 1024, 72_000
"""The columns that are multiplied at a time: at most so many, and fewer where they would hold more elements."""


def exact_matmul(a: UintArray, b: UintArray, modulus: int) -> UintArray:
    """Return a @ b modulo `modulus` for elements a (m, k) and b (k, n), as (m, n) elements (MOD-04).

    This is for checked arguments.

    The larger of the two is split, so that the smaller stands beside itself: else the product of the transposes is
    taken. Memory in addition to the inputs and the output: two float64 copies of the smaller, and blocks of columns.
    """
    if b.shape[1] < a.shape[0]:
        return np.ascontiguousarray(exact_matmul(b.T, a.T, modulus).T)
    rows, inner = a.shape
    width = max(1, min(_COLUMNS, b.shape[1], max(64, _ROOM // max(inner, 1))))
    factors = two_factors(a, modulus)
    blocks = [(part, _beside_itself(factors[:, :, part], modulus)) for part in inner_blocks(factors, modulus)]
    del factors
    product = np.zeros((rows, b.shape[1]), dtype=np.uint64)
    room, spare, sums = np.empty((2 * inner + 1, width)), np.empty((inner, width)), np.empty((rows, width))
    for left in range(0, b.shape[1], width):
        columns = product[:, left : left + width]
        for number, (part, factor) in enumerate(blocks):
            right = _limbs(b[part, left : left + width], room, spare)
            residues = _residues(np.matmul(factor, right, out=sums[:, : columns.shape[1]]), modulus)
            if number:
                residues = (columns + residues) % np.uint64(modulus)
            columns[...] = residues
    return product


def two_factors(a: UintArray, modulus: int) -> RealArray:
    """Return `a` and 2**16 times `a`, (2, m, k), as representatives of about half the modulus in magnitude at most.

    This is for checked arguments.
    """
    factors = np.empty((2, *a.shape))
    factors[0] = _centred(a.view(np.int64), modulus)
    factors[1] = _centred(factors[0] * _LIMB, modulus)
    return factors


def _centred(values: NDArray[Any], modulus: int) -> RealArray:
    """Return representatives of half the modulus and 1 in magnitude at most, of integers below 2**48 in magnitude."""
    centred: RealArray = values - np.rint(values * (1 / modulus)) * modulus
    return centred


def inner_blocks(factors: RealArray, modulus: int) -> list[slice]:
    """Return the fewest parts of the inner dimension, of one length up to the last, whose partial sums are exact.

    This is for checked arguments.

    A limb is at most 2**15 in magnitude. So is a partial sum of a row at most 2**15 times the sizes of its factors,
    plus the constant that `_beside_itself` adds.
    """
    room, inner = (_EXACT - modulus) // (_LIMB // 2), factors.shape[2]
    if factors.size == 0 or inner * (modulus + 2) <= room:
        return [slice(inner)] if factors.size else []
    sizes = np.abs(factors).sum(axis=0)
    lengths = (-(-inner // count) for count in range(1, inner + 1))
    length = next(one for one in lengths if np.add.reduceat(sizes, range(0, inner, one), axis=1).max() <= room)
    return [slice(start, start + length) for start in range(0, inner, length)]


def _beside_itself(factors: RealArray, modulus: int) -> RealArray:
    """Return the left factor of `_limbs`, (m, 2 k + 1): the last column undoes what the high limbs are moved by."""
    moved = factors[1].sum(axis=1, keepdims=True) % modulus * (_LIMB // 2) % modulus
    return np.concatenate((factors[0], factors[1], moved), axis=1)


def _limbs(b: UintArray, room: RealArray, spare: RealArray) -> RealArray:
    """Return the low limbs in ``[-2**15, 2**15]``, the high limbs minus 2**15, in the same range, and ones below.

    They lie in `room`; `spare` is written over. New arrays for each block of columns cost more than what is done here.
    """
    inner, width = b.shape
    limbs = room[: 2 * inner + 1, :width]
    low, high = limbs[:inner], limbs[inner:-1]
    np.copyto(low, b.view(np.int64), casting="unsafe")
    np.rint(np.multiply(low, 1 / _LIMB, out=high), out=high)
    low -= np.multiply(high, _LIMB, out=spare[:inner, :width])
    high -= _LIMB // 2
    limbs[-1] = 1
    return limbs


def _residues(sums: RealArray, modulus: int) -> UintArray:
    """Return the elements of exact sums; numpy divides by a scalar several times faster than it finds remainders."""
    integers = sums.astype(np.int64)
    integers -= integers // modulus * modulus
    return integers.view(np.uint64)


guard(__name__)
