"""The T-private MDS code that shares a mask among N users; any U of them can reconstruct it.

Notation of the papers: q is `field.modulus`; N, U, T are the parameters; [z]_k are the sub-masks, [n]_k the noise rows;
v_j is the column of powers of the point a_j.

Source: BASecAgg eq. (6), LightSecAgg as in BASecAgg eq. (21); spec/conventions.md, section 3 (MDS-01 to MDS-10).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField, is_prime
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import BadShare, LengthMismatch, ParameterError, TooFewSurvivors

_COLUMNS, _ROWS, _ENTRIES = 8192, 32, 27_000
"""What is multiplied at a time: columns of rows to encode; rows of an inverse, and more while the entries are few."""


class MaskCode:
    """The (N, U) Vandermonde code with T noise rows over a prime field.

    Parameters
    ----------
    field : PrimeField
        The field of q > N elements.
    N, U, T : int
        Number of users, of shares that suffice, and of shares that reveal nothing; ``1 <= T < U <= N``.
    points : sequence of int, optional
        One point per user, distinct and in ``[1, q)``; by default ``j + 1`` for user j.

    Raises
    ------
    ParameterError
        The parameters violate MDS-01, or the points violate MDS-02.
    """

    def __init__(self, field: PrimeField, N: int, U: int, T: int, points: Sequence[int] | None = None) -> None:
        self.field = field
        self.N = validate.integer("N", N, 2, field.modulus - 1)
        self.U = validate.integer("U", U, 2, self.N)
        self.T = validate.integer("T", T, 1, self.U - 1)
        self._points = default_points(self.N) if points is None else self._check_points(points)

    @cached_property
    def points(self) -> UintArray:
        """The point of each user, an (N,) array."""
        return validate.read_only(np.array(self._points, dtype=self.field.dtype))

    @cached_property
    def columns(self) -> UintArray:
        """The powers of the points, a (U, N) array whose column j is v_j."""
        return validate.read_only(self.field.powers(self.points, self.U))

    def _check_points(self, points: Sequence[int]) -> Sequence[int]:
        validate.sequence("points", points, "elements")
        if len(points) != self.N:
            raise LengthMismatch("points", points, f"N = {self.N} points")
        points = [validate.integer("points", point, 1, self.field.modulus - 1) for point in points]
        seen: set[int] = set()
        for point in points:
            if point in seen:
                raise ParameterError("points", point, "given to one user only")
            seen.add(point)
        return points

    def share_length(self, d: int, name: str = "d") -> int:
        """Return L = ceil(d / (U - T)), the length of a share of a vector of `d` elements, d >= 1 (MDS-03).

        Errors call d by the given `name`.
        """
        return -(-validate.integer(name, d, 1, validate.MAX_COUNT) // (self.U - self.T))

    def sub_masks(self, mask: UintArray) -> UintArray:
        """Return the U - T sub-masks of a vector of d elements, padded with zeros, as a (U - T, L) array (MDS-03)."""
        mask = self.field.check("mask", mask, (None,))
        length = self.share_length(mask.size, "len(mask)")
        rows = np.zeros(length * (self.U - self.T), dtype=self.field.dtype)
        rows[: mask.size] = mask
        return rows.reshape(self.U - self.T, length)

    def encode(self, mask: UintArray, noise: UintArray) -> UintArray:
        """Return the N shares of a mask, an (N, L) array whose row j is the share of user j (MDS-04).

        Parameters
        ----------
        mask : array (d,)
            The vector, d >= 1 elements.
        noise : array (T, L)
            Uniform elements, fresh for each mask (MDS-10).

        Source: BASecAgg eq. (6).
        """
        rows = self.sub_masks(mask)
        noise = self.field.check("noise", noise, (self.T, rows.shape[1]))
        shares = np.empty((self.N, rows.shape[1]), dtype=self.field.dtype)
        for left in range(0, rows.shape[1], _COLUMNS):
            part = slice(left, left + _COLUMNS)
            shares[:, part] = self.field.matmul(
                np.ascontiguousarray(self.columns.T), np.concatenate([rows[:, part], noise[:, part]])
            )
        return shares

    def decode(self, users: Sequence[int], shares: UintArray, d: int) -> UintArray:
        """Return the vector of `d` elements that the shares determine (MDS-05, MDS-06).

        Parameters
        ----------
        users : sequence of int
            At least U distinct users.
        shares : array (len(users), L)
            Their shares, in that order.
        d : int
            The length of the vector, before padding.

        Raises
        ------
        DuplicateUser, UnknownUser
            A user is listed twice, or is outside ``[0, N)`` (MDS-08).
        TooFewSurvivors
            Fewer than U shares (MDS-07).
        BadShare
            More than U shares that do not lie on one codeword (MDS-09).
        """
        chosen = validate.users("users", users, self.N)
        shares = self.field.check("shares", shares, (len(chosen), self.share_length(d)))
        if len(chosen) < self.U:
            raise TooFewSurvivors(f"{len(chosen)} shares are given and U = {self.U} are needed")
        points = np.array([self._points[user] for user in chosen], dtype=self.field.dtype)
        needed = self.U if len(chosen) > self.U else self.U - self.T
        together = max(_ROWS, _ENTRIES // self.U)
        inverse = self.field.interpolation(points[: self.U], needed, together)
        rows = np.concatenate([self.field.matmul(part, shares[: self.U]) for part in inverse])
        self._check_extra(chosen, points, rows, shares)
        return rows[: self.U - self.T].reshape(-1)[:d].copy()

    def _check_extra(self, users: tuple[int, ...], points: UintArray, rows: UintArray, shares: UintArray) -> None:
        extra = np.split(points[self.U :], range(_ROWS, len(users) - self.U, _ROWS))
        powers = (np.ascontiguousarray(self.field.powers(part, len(rows)).T) for part in extra)
        expected = np.concatenate([self.field.matmul(part, rows) for part in powers])
        if not np.array_equal(expected, shares[self.U :]):
            raise BadShare(f"the {len(users)} shares do not lie on one codeword", users)


def check_prime(q: int, N: int) -> int:
    """Return q if it is a prime above N, so that each of N users has a point, and at most 2**32 (MDS-01).

    Raises
    ------
    ParameterError
        It is not, or N is not an integer in [1, 2^32 - 6].
    """
    N = validate.integer("N", N, 1, DEFAULT_PRIME - 1)
    allowed = f"a prime in [{N + 1}, {DEFAULT_PRIME}]"
    q = validate.integer("q", q, N + 1, DEFAULT_PRIME, allowed)
    if not is_prime(q):
        raise ParameterError("q", q, allowed)
    return q


def default_points(N: int) -> range:
    """Return the point j + 1 of each user j in ``[0, N)``."""
    return range(1, validate.integer("N", N, 1, validate.MAX_COUNT) + 1)


guard(__name__)
