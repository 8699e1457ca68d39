"""Exact linear algebra over the rationals: a thin layer over FLINT.

Source: spec/multi-round.md, section 4 (MRA-10, MRA-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, lcm

import flint
import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.arithmetic.validate import BoolArray, UintArray
from secagg_spec.errors import LengthMismatch, ParameterError

Numbers = NDArray[np.generic]


def rank(matrix: Numbers) -> int:
    """Return the rank of an (m, n) matrix of integers or truth values.

    Raises
    ------
    ParameterError
        The matrix has other entries, or does not have two axes.
    """
    entries = _entries(matrix)
    return int(flint.fmpz_mat(entries).rank()) if matrix.size else 0


def independent_columns(matrix: Numbers, prime: int) -> list[int]:
    """Return, ascending, a largest set of columns that are independent modulo a prime, each as early as possible.

    Raises
    ------
    ParameterError
        The matrix has other entries than integers or truth values, or does not have two axes; or the modulus is no
        prime below 2^64.
    """
    prime = validate.integer("prime", prime, 2, 2**64 - 1)
    if not is_prime(prime):
        raise ParameterError("prime", prime, "a prime")
    entries = _entries(matrix)
    if not matrix.size:
        return []
    reduced, count = flint.nmod_mat(entries, prime).rref()
    columns, at = list[int](), 0
    for row in range(int(count)):
        while int(reduced[row, at]) == 0:
            at += 1
        columns.append(at)
    return columns


def solve(matrix: Numbers, right: Sequence[int]) -> tuple[Fraction, ...]:
    """Return x with matrix x = right, for an invertible (n, n) matrix of integers.

    Raises
    ------
    ParameterError
        The matrix is not invertible, or a number is no integer.
    LengthMismatch
        The matrix is not square, or the right side has another length.
    """
    return solve_all(matrix, [right])[0]


def solve_all(matrix: Numbers, rights: Sequence[Sequence[int]]) -> list[tuple[Fraction, ...]]:
    """Return x with matrix x = right for each right side, like `solve`, but faster than solving for each alone."""
    left, size = _entries(matrix), len(matrix)
    validate.array_shape("matrix", matrix, (size, size))
    for right in rights:
        if len(validate.collection("right", right, "integers")) != size:
            raise LengthMismatch("len(right)", len(right), f"{size}, one number for each row of the matrix")
    if not size or not rights:
        return [() for _ in rights]
    numbers = [
        [validate.secret_integer("right", number, "integers") for number in row] for row in zip(*rights, strict=True)
    ]
    try:
        found = flint.fmpz_mat(left).solve(flint.fmpz_mat(numbers))
    except ZeroDivisionError:
        raise ParameterError("matrix", "a singular one", "invertible") from None
    entry = ((found[row, at] for row in range(len(matrix))) for at in range(len(rights)))
    return [tuple(Fraction(int(number.p), int(number.q)) for number in column) for column in entry]


def _entries(matrix: Numbers) -> list[list[int]]:
    """Return the entries of a matrix as integers; nothing is rounded or reduced."""
    if validate.array("matrix", matrix, None).dtype.kind not in "biu" or matrix.ndim != 2:
        raise ParameterError("matrix", matrix, "an array of integers or truth values with two axes")
    return [list(map(int, row)) for row in matrix.tolist()]


def small_fractions(residues: UintArray, prime: int) -> tuple[Fraction, ...] | None:
    """Return, for each residue, the fraction a/b with |a|, b at most sqrt(prime/2) that it may represent.

    This is for checked arguments: a vector of numbers modulo an odd prime.

    Returns
    -------
    tuple of Fraction, or None
        None when a residue represents no such fraction. The caller must verify the result, since other fractions are
        possible.
    """
    bound = isqrt(prime // 2)
    known: dict[int, Fraction] = {0: Fraction(0)}
    for residue in residues.tolist():
        if residue not in known:
            found = _fraction(residue, prime, bound)
            if found is None:
                return None
            known[residue] = found
    return tuple(known[residue] for residue in residues.tolist())


def _fraction(residue: int, prime: int, bound: int) -> Fraction | None:
    """Return a/b = residue modulo a prime with |a|, b <= bound, by Euclid's algorithm."""
    before, after, down, up = prime, residue, 0, 1
    while after > bound:
        quotient = before // after
        before, after, down, up = after, before - quotient * after, up, down - quotient * up
    return Fraction(after, up) if 0 < abs(up) <= bound else None


def integers(numbers: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """Return the numerators of fractions over their least common denominator, and that denominator."""
    for number in numbers:
        validate.instance("numbers", number, Fraction)
    common = lcm(*(number.denominator for number in numbers)) if numbers else 1
    return tuple(number.numerator * (common // number.denominator) for number in numbers), common


def multiply(matrix: BoolArray, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return matrix x for an (m, n) matrix of zeros and ones and n integers, for checked arguments; exact."""
    total = np.zeros(len(matrix), dtype=object)
    for place in reversed(_places(matrix, numbers)):
        total = total * 2**32 + place
    return tuple(int(number) for number in total)


def in_kernel(matrix: BoolArray, numbers: Sequence[int]) -> bool:
    """Return whether matrix x = 0, for checked arguments, the same as those of `multiply`."""
    carry = np.zeros(len(matrix), dtype=np.int64)
    for place in _places(matrix, numbers):
        carry += place
        if (carry & (2**32 - 1)).any():
            return False
        carry >>= 32
    return not carry.any()


def _places(matrix: BoolArray, numbers: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return the product of a matrix of zeros and ones with each 32-bit digit of the numbers, lowest digit first.

    The product is computed in floating point and is exact: fewer than 2**21 columns, and digits below 2**32.
    """
    if matrix.shape[1] >= 2**21:
        raise ParameterError("matrix", f"{matrix.shape[1]} columns", f"of fewer than {2**21} columns")
    support = [at for at, number in enumerate(numbers) if number]
    count = max((abs(numbers[at]).bit_length() for at in support), default=0) // 32 + 1
    digits = np.array([np.frombuffer(abs(numbers[at]).to_bytes(4 * count, "little"), dtype="<u4") for at in support])
    signs = np.array([1.0 if numbers[at] > 0 else -1.0 for at in support])
    product = matrix[:, support].astype(np.float64) @ (digits.reshape(-1, count) * signs[:, np.newaxis])
    return list(np.ascontiguousarray(product.T).astype(np.int64))


guard(__name__)
