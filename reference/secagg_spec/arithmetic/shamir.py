"""Shamir's secret sharing: any t of n users can reconstruct a secret, and t - 1 of them learn nothing.

Notation: p is `PRIME`; f is the polynomial with f(0) = s, the secret; user j holds f(j + 1).

Numbers of this field are Python integers, since no array type holds 521 bits. Sums and products are reduced only
every `_LAZY` steps: the points are small, so intermediate numbers grow by a few words at most.

Source: Shamir, How to share a secret, 1979; spec/conventions.md, section 11 (SHM-01 to SHM-12).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from operator import mul
from typing import Final

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import BadShare, LengthMismatch, NonCanonical, ParameterError, TooFewSurvivors

PRIME: Final = 2**521 - 1
ELEMENT_BYTES: Final = 66
SECRET_BYTES: Final = 32
MIN_THRESHOLD: Final = 2
MAX_HOLDERS: Final = 2**16
_LAZY: Final = 32


def share(secret: bytes, coefficients: Sequence[int], users: Sequence[int]) -> tuple[int, ...]:
    """Return the shares of `users`, in their order: numbers in ``[0, p)`` (SHM-04).

    Parameters
    ----------
    secret : bytes
        32 bytes.
    coefficients : sequence of int
        t - 1 uniform numbers in ``[0, p)``, fresh for each secret (SHM-07).
    users : sequence of int
        At least t distinct users in ``[0, 2**32 - 2]``.

    Raises
    ------
    LengthMismatch
        The secret is not 32 bytes long (SHM-03).
    NonCanonical
        A coefficient is not in ``[0, p)`` (SHM-06).
    DuplicateUser, UnknownUser
        A user is listed twice, or is outside ``[0, 2**32 - 2]`` (SHM-02).
    ParameterError
        t is below 2 or above the number of users, or there are more than 2**16 users (SHM-01).
    """
    constant = _secret_number(secret)
    higher = elements("coefficients", coefficients)
    holders = validate.users("users", users, validate.MAX_COUNT)
    validate.integer("len(users)", len(holders), MIN_THRESHOLD, MAX_HOLDERS)
    validate.integer("len(coefficients)", len(higher), MIN_THRESHOLD - 1, len(holders) - 1)
    descending = (*higher[::-1], constant)
    return tuple(_evaluate(descending, user + 1) for user in holders)


def reconstruct(t: int, users: Sequence[int], shares: Sequence[int]) -> bytes:
    """Return the secret, 32 bytes, that the shares determine (SHM-08).

    Parameters
    ----------
    t : int
        The threshold: how many shares suffice.
    users : sequence of int
        At least t distinct users.
    shares : sequence of int
        Their shares, in that order.

    Raises
    ------
    ParameterError
        t is not in ``[2, 2**16]``, or there are more than 2**16 users (SHM-01).
    DuplicateUser, UnknownUser
        A user is listed twice, or is outside ``[0, 2**32 - 2]`` (SHM-02).
    LengthMismatch, NonCanonical
        The number of shares differs from the number of users, or a share is not in ``[0, p)`` (MOD-07, SHM-06).
    TooFewSurvivors
        Fewer than t shares (SHM-09).
    BadShare
        More than t shares that do not lie on one polynomial, or a secret of 2**256 or more (SHM-10, SHM-11).
    """
    t = validate.integer("t", t, MIN_THRESHOLD, MAX_HOLDERS)
    holders, values = validate.users("users", users, validate.MAX_COUNT), elements("shares", shares)
    if len(holders) > MAX_HOLDERS:
        raise ParameterError("len(users)", len(holders), f"at most {MAX_HOLDERS}")
    if len(values) != len(holders):
        raise LengthMismatch("len(shares)", len(values), f"{len(holders)}, one share for each of the users")
    if len(holders) < t:
        raise TooFewSurvivors(f"{len(holders)} shares are given and t = {t} are needed")
    points = tuple(user + 1 for user in holders)
    terms = [value * weight % PRIME for value, weight in zip(values, _weights(points), strict=True)]
    if not _lie_on_one_polynomial(points, terms, t):
        raise BadShare(f"the {len(holders)} shares do not lie on one polynomial of degree {t - 1} or less", holders)
    return _secret_bytes(sum(terms) % PRIME, holders)


def check_numbers(t: int, n: int) -> None:
    """Refuse a threshold or a number of holders that is out of range (SHM-01).

    Raises
    ------
    ParameterError
        2 <= t <= n <= 2**16 does not hold.
    """
    validate.integer("n", n, MIN_THRESHOLD, MAX_HOLDERS)
    validate.integer("t", t, MIN_THRESHOLD, n)


def elements(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Return numbers that are all in ``[0, p)``; an error calls them `name`.

    Raises
    ------
    ParameterError
        They are no sequence of integers.
    NonCanonical
        A number is not in ``[0, p)`` (SHM-06).
    """
    given = validate.sequence(name, values, "integers in [0, 2**521 - 1)")
    return tuple(_element(f"{name}[{at}]", value) for at, value in enumerate(given))


def element_bytes(value: int) -> bytes:
    """Return a number in ``[0, p)`` as 66 bytes, little-endian (SHM-05).

    Raises
    ------
    NonCanonical
        The number is not in ``[0, p)`` (SHM-06).
    """
    return _element("value", value).to_bytes(ELEMENT_BYTES, "little")


def element_from_bytes(name: str, data: bytes) -> int:
    """Return the number in ``[0, p)`` that 66 bytes encode; `name` appears in the error message (SHM-05).

    Raises
    ------
    LengthMismatch
        `data` is not 66 bytes long (SHM-06).
    NonCanonical
        The number is p or more (SHM-06).
    """
    data = validate.octets(name, data)
    if len(data) != ELEMENT_BYTES:
        raise LengthMismatch(name, f"{len(data)} bytes", f"{ELEMENT_BYTES} bytes")
    return _element(name, int.from_bytes(data, "little"))


def elements_from_bytes(name: str, data: bytes, count: int) -> tuple[int, ...]:
    """Return `count` consecutive numbers in ``[0, p)``; `name` appears in the error message (SHM-05).

    Raises
    ------
    ParameterError
        `count` is not an integer, or is negative.
    LengthMismatch
        `data` is not 66 bytes long per number (SHM-06).
    NonCanonical
        A number is p or more (SHM-06).
    """
    data, count = validate.octets(name, data), validate.integer("count", count, 0)
    if len(data) != count * ELEMENT_BYTES:
        raise LengthMismatch(name, f"{len(data)} bytes", f"{count} times {ELEMENT_BYTES} bytes")
    starts = range(0, len(data), ELEMENT_BYTES)
    return tuple(element_from_bytes(f"{name}[{k}]", data[at : at + ELEMENT_BYTES]) for k, at in enumerate(starts))


def coefficients_from_bytes(data: bytes) -> tuple[int, ...]:
    """Return the numbers that `data` yields: little-endian, 66 bytes each, 7 bits cleared, p skipped (SHM-07).

    Raises
    ------
    LengthMismatch
        The bytes do not fill whole pieces.
    """
    if len(validate.octets("data", data)) % ELEMENT_BYTES:
        raise LengthMismatch("data", f"{len(data)} bytes", f"a multiple of {ELEMENT_BYTES} bytes")
    pieces = (data[start : start + ELEMENT_BYTES] for start in range(0, len(data), ELEMENT_BYTES))
    numbers = (int.from_bytes(piece, "little") & PRIME for piece in pieces)
    return tuple(number for number in numbers if number != PRIME)


def _evaluate(descending: Sequence[int], x: int) -> int:
    """Return the value at x of the polynomial with these coefficients, the highest first (Horner)."""
    value = 0
    for start in range(0, len(descending), _LAZY):
        for coefficient in descending[start : start + _LAZY]:
            value = value * x + coefficient
        value %= PRIME
    return value


@lru_cache(maxsize=64)
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weights w with f(0) = w_1 f(x_1) + ... + w_m f(x_m) for every f of degree below m (Lagrange)."""
    products = [point * _product([other - point for other in points if other != point]) % PRIME for point in points]
    whole = _product(points)
    return tuple(whole * inverse % PRIME for inverse in _inverses(products))


def _product(numbers: Sequence[int]) -> int:
    """Return the product of small numbers modulo p, reduced every `_LAZY` numbers."""
    product = 1
    for start in range(0, len(numbers), _LAZY):
        product = product * prod(numbers[start : start + _LAZY]) % PRIME
    return product


def _inverses(values: Sequence[int]) -> list[int]:
    """Return the inverses of nonzero numbers, with a single inversion (Montgomery)."""
    before = list(accumulate(values, lambda left, right: left * right % PRIME, initial=1))
    inverse = pow(before[-1], -1, PRIME)
    found = []
    for value, left in zip(reversed(values), reversed(before[:-1]), strict=True):
        found.append(inverse * left % PRIME)
        inverse = inverse * value % PRIME
    return found[::-1]


def _lie_on_one_polynomial(points: Sequence[int], terms: Sequence[int], t: int) -> bool:
    """Return whether the m shares behind the Lagrange `terms` are the values of a polynomial of degree below t.

    This holds if and only if Σ x_i^k w_i f(x_i) = 0 for k = 1 … m - t. If f has degree below t, each sum is the value
    at 0 of x^k f(x), whose degree is below m. Conversely, these m - t independent relations leave t dimensions.
    """
    for step in range(1, len(points) - t + 1):
        terms = list(map(mul, terms, points))
        if sum(terms) % PRIME:
            return False
        if step % _LAZY == 0:
            terms = [term % PRIME for term in terms]
    return True


def _element(name: str, value: object) -> int:
    number = validate.secret_integer(name, value, "an integer in [0, 2**521 - 1)")
    if not 0 <= number < PRIME:
        raise NonCanonical(name, number, "an integer in [0, 2**521 - 1)")
    return number


def _secret_number(secret: bytes) -> int:
    secret = validate.octets("secret", secret)
    if len(secret) != SECRET_BYTES:
        raise LengthMismatch("len(secret)", len(secret), f"{SECRET_BYTES} bytes")
    return int.from_bytes(secret, "little")


def _secret_bytes(value: int, users: Sequence[int]) -> bytes:
    try:
        return value.to_bytes(SECRET_BYTES, "little")
    except OverflowError:
        raise BadShare(
            f"the shares give a number of more than {SECRET_BYTES} bytes, which is no secret", users
        ) from None


class SharesByOwner(Mapping[int, int]):
    """Shares by owner, read from their bytes when they are looked up, so that none is held twice.

    Parameters
    ----------
    owners : sequence of int
        The owners, ascending.
    data : bytes
        Their shares in this order, `ELEMENT_BYTES` each, all of them below `PRIME`.
    """

    def __init__(self, owners: Sequence[int], data: bytes) -> None:
        self._owners, self._data = owners, data

    def __getitem__(self, owner: int) -> int:
        try:
            at = bisect_left(self._owners, owner)
        except TypeError:  # what is no number is no owner
            at = len(self)
        if at == len(self) or self._owners[at] != owner:
            raise KeyError(owner)
        return element_from_bytes("share", self._data[ELEMENT_BYTES * at : ELEMENT_BYTES * (at + 1)])

    def __iter__(self) -> Iterator[int]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)


guard(__name__)
