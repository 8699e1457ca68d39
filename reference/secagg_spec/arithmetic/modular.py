"""Integers modulo R: `Ring` for any 2 <= R <= 2**32, `PrimeField` for primes.

Notation: R (HeteroSAg) and q (LightSecAgg, BASecAgg) are `modulus`. Elements are uint64 in ``[0, modulus)``; every
method checks its inputs and returns elements. The remainder operator is used in this folder only, because a uint64
difference wraps modulo 2**64 and not modulo R.

Source: spec/conventions.md, section 2 (MOD-01 to MOD-07).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import running, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.limbs import exact_matmul
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError

Summand: TypeAlias = UintArray | Iterator[NDArray[Any]]
"""A vector, or its consecutive pieces."""
MAX_MODULUS = 2**32
DEFAULT_PRIME = 2**32 - 5
_PAIR = ("a", "b")
_PIECE = 2**16
_TERM = "a truth value and a vector"
_BASES = tuple(n for n in range(2, 114) if all(n % p for p in range(2, n)))
_FEW = 64
"""Up to this many elements are inverted one by one; more are inverted faster together."""


def is_prime(n: int) -> bool:
    """Return whether the integer `n`, of 2^10 bits at most, is prime; the answer is exact for every n below 2**32.

    The Miller-Rabin test with the bases 2, 3, 5, 7 and 11 is correct for all n below 2_152_302_898_747. With the 30
    primes up to 113, a composite that is not made to pass all of them passes with a probability below 2**-60.

    Raises
    ------
    ParameterError
        `n` is no integer, or has more than 2^10 bits: the time grows with the cube of their number.
    """
    n = validate.secret_integer("n", n, "an integer")
    if n.bit_length() > 2**10:
        raise ParameterError("n", n, "an integer of 1024 bits at most")
    bases: Sequence[int] = (2, 3, 5, 7, 11)
    if n >= 2_152_302_898_747:
        bases = _BASES
    if n < 2 or any(n % p == 0 for p in bases):
        return n in bases
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    return all(_passes(n, base, (n - 1) >> twos, twos) for base in bases)


def _passes(n: int, base: int, odd: int, twos: int) -> bool:
    x = pow(base, odd, n)
    return x in (1, n - 1) or any((x := x * x % n) == n - 1 for _ in range(twos - 1))


class Ring:
    """The integers modulo `modulus`, 2 <= modulus <= 2**32.

    Raises
    ------
    ParameterError
        The modulus is not an integer in that range (MOD-01).
    """

    dtype: np.dtype[Any] = np.dtype(np.uint64)
    """What an array of elements has."""

    def __init__(self, modulus: int) -> None:
        self.modulus = validate.integer("modulus", modulus, 2, MAX_MODULUS)
        self._m = np.uint64(self.modulus)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.modulus})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ring) and type(self) is type(other) and self.modulus == other.modulus

    def __hash__(self) -> int:
        return hash((type(self), self.modulus))

    def check(self, name: str, value: object, shape: tuple[int | None, ...] | None) -> UintArray:
        """Return `value` when it is an array of elements of this ring with the given shape (MOD-06, MOD-07)."""
        return validate.elements(name, value, self.modulus, shape)

    def add(self, a: UintArray, b: UintArray, *, names: tuple[str, str] = _PAIR) -> UintArray:
        """Return a + b, elementwise; `a` and `b` have the same shape (MOD-03). An error calls them `names`."""
        a, b = self._pair(a, b, names)
        return (a + b) % self._m

    def subtract(self, a: UintArray, b: UintArray, *, names: tuple[str, str] = _PAIR) -> UintArray:
        """Return a - b, elementwise; `a` and `b` have the same shape (MOD-03). An error calls them `names`."""
        a, b = self._pair(a, b, names)
        return (a + (self._m - b)) % self._m

    def multiply(self, a: UintArray, b: UintArray) -> UintArray:
        """Return a * b, elementwise; `a` and `b` have the same shape (MOD-03). Exact: products are below 2**64."""
        a, b = self._pair(a, b, _PAIR)
        return (a * b) % self._m

    def sum(self, rows: UintArray) -> UintArray:
        """Return the sum of the rows of an (n, d) array, n >= 0: d elements (MOD-03)."""
        rows = self.check("rows", rows, (None, None))
        assert rows.shape[0] < 2**32, "uint64 holds fewer than 2**32 summands below 2**32"
        total: UintArray = rows.sum(axis=0, dtype=np.uint64)
        return total % self._m

    def weighted_sum(
        self, weights: UintArray, rows: Sequence[UintArray] | UintArray, *, name: str = "rows"
    ) -> UintArray:
        """Return the sum of n >= 1 vectors of d elements, each times its weight; weights are elements (MOD-03).

        An error calls the vectors `name`.

        Raises
        ------
        LengthMismatch
            The numbers of vectors and weights differ, there are no weights, or the vectors differ in length.
        """
        weights = self.check("weights", weights, (None,))
        if isinstance(rows, np.ndarray):
            rows = list(self.check(name, rows, (None, None)))
        vectors = validate.sequence(name, rows, "vectors")
        if len(vectors) != weights.size or not len(vectors):
            raise LengthMismatch(f"len({name})", len(vectors), f"{weights.size}, one for each weight, and at least 1")
        length = self.check(f"{name}[0]", vectors[0], (None,)).size
        checked = [self.check(f"{name}[{at}]", vector, (length,)) for at, vector in enumerate(vectors)]
        if int(weights.sum(dtype=np.float64)) >= 2**31:  # a sum of products may exceed 2**64
            return self.matmul(weights.reshape(1, -1), np.stack(checked)).reshape(-1)
        total: UintArray = np.zeros(length, dtype=self.dtype)
        for left in range(0, length, _PIECE):
            piece = total[left : left + _PIECE]
            for weight, vector in zip(weights, checked, strict=True):
                piece += weight * vector[left : left + _PIECE]
            piece %= self._m
        return total

    def signed_sum(
        self,
        start: UintArray,
        *terms: Iterable[tuple[bool, Summand]],
        name: str = "start",
        names: Sequence[Iterable[str]] = (),
    ) -> UintArray:
        """Return `start` plus the vectors marked True, minus the vectors marked False: d elements (MOD-03).

        A few vectors are read at a time (`running`), and none is kept. Each is an array of shape (d,), or an iterator
        of its consecutive pieces: arrays of unsigned integers of any width, d elements in all. An error calls the start
        `name`, and the vectors of each iterable as `names` has it.

        Raises
        ------
        ParameterError
            The modulus is above 2**32, or a vector is neither.
        LengthMismatch, NonCanonical
            A vector has another length, or holds something else than elements.
        """
        self.check_words()
        start = self.check(name, start, (None,))
        plus, minus = start.astype(np.uint32), np.zeros(start.size, dtype=np.uint32)
        sums = {True: running.Sum(plus, self.modulus), False: running.Sum(minus, self.modulus)}
        for at, given in enumerate(terms):
            if not isinstance(given, Iterable):
                raise ParameterError(f"terms[{at}]", validate.class_of(given), "a list or another iterable of pairs")
        called = names or [validate.entries(f"terms[{at}]") for at in range(len(terms))]
        running.add_all(self._streams(sums, chain(*map(zip, called, terms)), start.shape))
        return sums[True].minus(sums[False])

    def _streams(
        self,
        sums: Mapping[bool, running.Sum],
        terms: Iterable[tuple[str, object]],
        shape: tuple[int, ...],
    ) -> Iterator[tuple[str, running.Sum, Iterator[NDArray[Any]]]]:
        """Add the arrays among the vectors, and yield the others, each with its name and its sum."""
        for name, term in terms:
            sign, vector = validate.parts(name, term, 2, _TERM)
            if not isinstance(sign, (bool, np.bool_)):
                raise ParameterError(name, validate.class_of(sign), _TERM)
            added = sums[bool(sign)]
            if isinstance(vector, np.ndarray):
                added.make_room(1)
                added.add(0, self.check(name, vector, shape))
            elif isinstance(vector, Iterator):
                yield name, added, vector
            else:
                raise ParameterError(
                    name, validate.class_of(vector), "a numpy array of dtype uint64, or an iterator of its pieces"
                )

    def check_words(self) -> None:
        """Refuse a ring whose elements are no words of 32 bits: `wide.WideRing`."""

    def zeros(self, d: int) -> UintArray:
        """Return d elements that are 0, 2^32 - 1 at most; each takes 8 bytes."""
        return np.zeros(validate.integer("d", d, 0, validate.MAX_COUNT), dtype=self.dtype)

    def matmul(self, a: UintArray, b: UintArray) -> UintArray:
        """Return the exact product of an (m, k) and a (k, n) array, shape (m, n) (MOD-04)."""
        a = self.check("a", a, (None, None))
        b = self.check("b", b, (a.shape[1], None))
        return exact_matmul(a, b, self.modulus)

    def encode_signed(self, values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> UintArray:
        """Return the residues of int64 `values` that lie in ``[-(R // 2), (R - 1) // 2]`` (QNT-05).

        Raises
        ------
        ParameterError
            Not an array of dtype int64.
        OutOfRange
            A value would not survive `decode_signed`.
        """
        values = validate.signed("values", values)
        low, high = -(self.modulus // 2), (self.modulus - 1) // 2
        bad = (values < low) | (values > high)
        if bad.any():
            raise OutOfRange("values", int(values[bad][0]), f"in [{low}, {high}] for the modulus {self.modulus}")
        return np.where(values < 0, values + self.modulus, values).astype(np.uint64)

    def decode_signed(self, values: UintArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return x for x <= (R - 1) // 2 and x - R otherwise, as int64 (QNT-06; BASecAgg eq. 14, repaired)."""
        values = self.check("values", values, None)
        signed = values.astype(np.int64)
        return np.where(signed <= (self.modulus - 1) // 2, signed, signed - self.modulus)

    def _pair(self, a: UintArray, b: UintArray, names: tuple[str, str]) -> tuple[UintArray, UintArray]:
        a = self.check(names[0], a, None)
        return a, self.check(names[1], b, a.shape)


class PrimeField(Ring):
    """The field of integers modulo a prime `modulus` <= 2**32, with inverse, solve and rank.

    Raises
    ------
    ParameterError
        The modulus is out of range (MOD-01) or composite (MOD-02).
    """

    def __init__(self, modulus: int = DEFAULT_PRIME) -> None:
        super().__init__(modulus)
        if not is_prime(self.modulus):
            raise ParameterError("modulus", modulus, "a prime")

    def inverse(self, a: UintArray) -> UintArray:
        """Return the elementwise inverse: for few elements by Euclid's algorithm, else by Fermat's theorem (MOD-05).

        Raises
        ------
        OutOfRange
            An element is 0.
        """
        a = self.check("a", a, None)
        if not a.all():
            raise OutOfRange("a", 0, "different from 0 to have an inverse")
        if a.size > _FEW:
            return self._power(a, self.modulus - 2)
        return np.array([pow(x, -1, self.modulus) for x in a.ravel().tolist()], dtype=self.dtype).reshape(a.shape)

    def solve(self, matrix: UintArray, right: UintArray) -> UintArray:
        """Return x with ``matrix @ x = right``, for a square invertible (k, k) matrix and right of shape (k, n).

        Raises
        ------
        ParameterError
            The matrix is singular.
        """
        matrix = self.check("matrix", matrix, (None, None))
        size = matrix.shape[0]
        validate.array_shape("matrix", matrix, (size, size))
        right = self.check("right", right, (size, None))
        reduced, pivots = self._eliminate(np.concatenate([matrix, right], axis=1), size)
        if len(pivots) < size:
            raise ParameterError("matrix", f"of rank {len(pivots)}", f"invertible, of rank {size}")
        return reduced[:, size:]

    def rank(self, matrix: UintArray) -> int:
        """Return the rank of an (m, n) matrix."""
        matrix = self.check("matrix", matrix, (None, None))
        return len(self._eliminate(matrix.copy(), matrix.shape[1])[1])

    def powers(self, points: UintArray, count: int) -> UintArray:
        """Return the (count, n) Vandermonde matrix whose row k holds the k-th powers of the n points; count < 2^32.

        Each of its elements takes 8 bytes.
        """
        points = self.check("points", points, (None,))
        rows = np.ones((validate.integer("count", count, 0, validate.MAX_COUNT), points.size), dtype=self.dtype)
        for k in range(1, count):
            rows[k] = rows[k - 1] * points % self._m
        return rows

    def interpolation(self, points: UintArray, count: int, together: int) -> Iterator[UintArray]:
        """Yield, some rows at a time, what takes values at n points to the first coefficients of their polynomial.

        Its degree is below n. These are the first `count` rows of the inverse of ``powers(points, n)`` transposed, in
        O(n (n + count)).

        Parameters
        ----------
        points : array (n,)
            Distinct elements, none of them 0.
        count : int
            In ``[0, n]``.
        together : int
            The most rows of a part, at least 1.

        Yields
        ------
        array (rows, n)
            ``count`` rows in all: row k holds the coefficients of x^k of the Lagrange polynomials.

        Raises
        ------
        OutOfRange
            A point is 0, or stands twice.
        ParameterError
            `count` or `together` is out of its range.
        """
        points = self.check("points", points, (None,))
        count = validate.integer("count", count, 0, points.size)
        together = validate.integer("together", together, 1)
        product = np.ones(1, dtype=self.dtype)  # the product of all x - point, from the constant on
        seen = {0}
        for at, point in enumerate(points):
            if int(point) in seen:
                raise OutOfRange(f"points[{at}]", int(point), "different from 0 and from the points before it")
            seen.add(int(point))
            grown = self.zeros(product.size + 1)
            grown[1:] = product
            grown[:-1] += self._m - product * point % self._m
            product = grown % self._m
        slope = self.zeros(points.size)
        for degree in range(points.size, 0, -1):
            slope = (slope * points + product[degree] * self.dtype.type(degree) % self._m) % self._m
        inverse = self.inverse(points)
        scaled, row = self.inverse(slope), self.zeros(points.size)
        for left in range(0, count, together):
            part = np.empty((min(together, count - left), points.size), dtype=self.dtype)
            for at in range(len(part)):  # the product by x - point, from the constant on, and by its slope there
                divided = row + (self._m - product[left + at] * scaled % self._m)
                row = part[at] = divided % self._m * inverse % self._m
            yield part

    def _power(self, base: UintArray, exponent: int) -> UintArray:
        result = np.ones_like(base)
        while exponent:
            if exponent & 1:
                result = result * base % self._m
            base, exponent = base * base % self._m, exponent >> 1
        return result

    def _eliminate(self, work: UintArray, columns: int) -> tuple[UintArray, list[int]]:
        """Bring the first `columns` columns of `work` to reduced row echelon form, in place."""
        pivots: list[int] = []
        for column in range(columns):
            row = len(pivots)
            candidates = np.flatnonzero(work[row:, column])
            if not candidates.size:
                continue
            work[[row, row + candidates[0]]] = work[[row + candidates[0], row]]
            inverse = self.dtype.type(pow(int(work[row, column]), -1, self.modulus))
            work[row] = work[row] * inverse % self._m
            factors = work[:, column : column + 1].copy()
            factors[row] = 0
            work[:] = (work + (self._m - factors * work[row] % self._m)) % self._m
            pivots.append(column)
        return work, pivots


guard(__name__)
