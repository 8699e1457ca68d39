"""Secret sharing: every subset at tiny sizes, exact rationals as oracle, refusals, and what t - 1 shares say."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import prod

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.shamir import PRIME, SharesByOwner, element_bytes, reconstruct, share
from secagg_spec.errors import (
    BadShare,
    DuplicateUser,
    LengthMismatch,
    NonCanonical,
    ParameterError,
    TooFewSurvivors,
    UnknownUser,
)

LAST_USER = 2**32 - 2
FIELD = flint.fmpz_mod_ctx(PRIME)
POLYNOMIALS = flint.fmpz_mod_poly_ctx(FIELD)

numbers = st.sampled_from((0, 1, 2**256 - 1, 2**256, PRIME - 1)) | st.integers(0, PRIME - 1)
secrets = st.sampled_from((bytes(32), b"\x01" + bytes(31), bytes(31) + b"\x80", b"\xff" * 32)) | st.binary(
    min_size=32, max_size=32
)
users = st.sampled_from((0, 1, LAST_USER)) | st.integers(0, LAST_USER)


@st.composite
def sharings(draw: st.DrawFn, most: int = 6) -> tuple[bytes, tuple[int, ...], list[int]]:
    """A secret, t - 1 coefficients and at least t holders."""
    t = draw(st.integers(2, most))
    chosen = draw(st.lists(users, min_size=t, max_size=most + 3, unique=True))
    return draw(secrets), tuple(draw(st.lists(numbers, min_size=t - 1, max_size=t - 1))), chosen


def pseudorandom(seed: int, count: int) -> tuple[int, ...]:
    """Numbers of the field that a seed determines."""
    data = np.random.default_rng(seed).bytes(66 * count)
    return tuple(int.from_bytes(data[66 * k : 66 * k + 66], "little") % PRIME for k in range(count))


def by_hand(secret: bytes, coefficients: Sequence[int], x: int) -> int:
    """The value of the polynomial, as a sum of powers."""
    return int(POLYNOMIALS([int.from_bytes(secret, "little"), *coefficients])(x))


def at_zero(points: Sequence[int], values: Sequence[int]) -> int:
    """The value at 0 of the polynomial through some points, by exact rationals."""
    total = 0
    for x, y in zip(points, values, strict=True):
        weight = prod((Fraction(other, other - x) for other in points if other != x), start=Fraction(1))
        total += y * weight.numerator * pow(weight.denominator, -1, PRIME)
    return total % PRIME


# ------------------------------------------------------------------------------------------------ sharing and back


@pytest.mark.requirement("SHM-04")
@given(sharings())
def test_shares_are_values_of_the_polynomial(sharing: tuple[bytes, tuple[int, ...], list[int]]) -> None:
    secret, coefficients, chosen = sharing
    assert share(secret, coefficients, chosen) == tuple(by_hand(secret, coefficients, user + 1) for user in chosen)


@pytest.mark.requirement("SHM-04", "SHM-05")
def test_the_example_of_the_text() -> None:
    shares = share(b"\x05" + bytes(31), (3,), (0, 1, 2))
    assert shares == (8, 11, 14)
    assert shamir.element_bytes(shares[2]) == b"\x0e" + bytes(65)
    assert reconstruct(2, (0, 2), (8, 14)) == b"\x05" + bytes(31)


@pytest.mark.requirement("SHM-08")
@pytest.mark.parametrize(("t", "n"), [(t, n) for n in range(2, 7) for t in range(2, n + 1)])
def test_every_subset_of_t_or_more_gives_the_secret(t: int, n: int) -> None:
    secret = bytes(range(200, 232))
    shares = share(secret, pseudorandom(t, t - 1), range(n))
    for size in range(t, n + 1):
        for subset in combinations(range(n), size):
            assert reconstruct(t, subset, [shares[user] for user in subset]) == secret


@pytest.mark.requirement("SHM-08")
@given(sharings(), st.data())
def test_any_t_holders_in_any_order_give_the_secret(
    sharing: tuple[bytes, tuple[int, ...], list[int]], data: st.DataObject
) -> None:
    secret, coefficients, chosen = sharing
    t, shares = len(coefficients) + 1, dict(zip(chosen, share(secret, coefficients, chosen), strict=True))
    subset = data.draw(st.lists(st.sampled_from(chosen), min_size=t, unique=True))
    assert reconstruct(t, subset, [shares[user] for user in subset]) == secret


@pytest.mark.requirement("SHM-04", "SHM-08", "SHM-10")
@pytest.mark.parametrize(("t", "n", "first"), [(51, 100, 0), (33, 67, LAST_USER - 66), (64, 64, 7), (2, 70, 2**31)])
def test_large_sharings(t: int, n: int, first: int) -> None:
    secret, coefficients, holders = bytes(range(32)), pseudorandom(n, t - 1), range(first, first + n)
    shares = share(secret, coefficients, holders)
    assert all(value == by_hand(secret, coefficients, user + 1) for user, value in zip(holders, shares, strict=True))
    assert reconstruct(t, holders, shares) == secret
    assert reconstruct(t, holders[n - t :], shares[n - t :]) == secret
    for at in {0, t, n - 1} if n > t else ():
        altered = [value ^ (user == holders[at]) for user, value in zip(holders, shares, strict=True)]
        with pytest.raises(BadShare):
            reconstruct(t, holders, altered)


def test_the_weights_of_many_points_are_products_of_small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: list[int] = []

    def counted(numbers: list[int]) -> int:
        factors.append(len(numbers))
        return prod(numbers)

    monkeypatch.setattr(shamir, "prod", counted)
    holders = range(10**6, 10**6 + 100)
    assert reconstruct(2, holders, share(bytes(range(32)), pseudorandom(1, 1), holders)) == bytes(range(32))
    assert max(factors) <= 32


@pytest.mark.requirement("SHM-04", "SHM-07")
def test_leading_coefficients_may_be_zero() -> None:
    secret = bytes(range(32))
    number = int.from_bytes(secret, "little")
    assert share(secret, (0, 0), range(4)) == (number,) * 4
    assert share(secret, (5, 0), range(4)) == tuple(number + 5 * x for x in range(1, 5))
    assert reconstruct(3, range(4), (number,) * 4) == secret


@pytest.mark.requirement("ERR-01")
def test_a_call_leaves_its_inputs_alone_and_gives_the_same_again() -> None:
    coefficients, holders = [4, 5], [3, 1, 2]
    shares = list(share(bytes(32), coefficients, holders))
    assert reconstruct(3, holders, shares) == reconstruct(3, holders, shares) == bytes(32)
    assert (coefficients, holders) == ([4, 5], [3, 1, 2])
    assert shares == list(share(bytes(32), tuple(np.array(coefficients)), np.array(holders).tolist()))


@pytest.mark.requirement("ERR-02")
def test_a_threshold_of_numpy_does_not_wrap() -> None:
    assert reconstruct(np.uint8(2), range(300), share(bytes(32), (5,), range(300))) == bytes(32)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.requirement("SHM-01")
def test_thresholds_outside_the_bounds_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"^len\(coefficients\) = 0: must be an integer in \[1, 2\]$"):
        share(bytes(32), (), range(3))
    with pytest.raises(ParameterError, match=r"^len\(coefficients\) = 3: must be an integer in \[1, 2\]$"):
        share(bytes(32), (1, 2, 3), range(3))
    for t in (-1, 0, 1, 2**16 + 1, True, 2.0, "2"):
        with pytest.raises(ParameterError, match="t = "):
            reconstruct(t, range(3), (1, 2, 3))  # type: ignore[arg-type]
    assert len(share(bytes(32), (1, 2), range(3))) == 3


@pytest.mark.requirement("SHM-01")
def test_more_holders_than_the_text_allows_are_refused() -> None:
    assert len(share(bytes(32), (1,), range(2**16))) == 2**16
    with pytest.raises(ParameterError, match=r"^len\(users\) = 65537: must be an integer in"):
        share(bytes(32), (1,), range(2**16 + 1))
    with pytest.raises(ParameterError, match="users"):
        reconstruct(2, range(2**16 + 1), (0,) * (2**16 + 1))


@pytest.mark.requirement("SHM-02")
@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ((0, 1, 1), DuplicateUser),
        ((5, 1, 5), DuplicateUser),
        ((0, 1, -1), UnknownUser),
        ((0, 1, LAST_USER + 1), UnknownUser),
        ((0, 1, 2**32), UnknownUser),
        ((0, 1, PRIME), UnknownUser),
        ((0, 1, "2"), ParameterError),
        ("012", ParameterError),
        ({0, 1, 2}, ParameterError),
        (None, ParameterError),
    ],
)
def test_users_that_cannot_be_are_refused(chosen: Sequence[int], error: type[Exception]) -> None:
    with pytest.raises(error, match="users"):
        share(bytes(32), (1,), chosen)
    with pytest.raises(error, match="users"):
        reconstruct(2, chosen, (1, 2, 3))


@pytest.mark.requirement("SHM-03")
@pytest.mark.parametrize("length", [0, 31, 33, 66])
def test_a_secret_of_another_length_is_refused_and_not_shown(length: int) -> None:
    with pytest.raises(LengthMismatch, match=rf"^len\(secret\) = {length}: must be 32 bytes$"):
        share(b"\x07" * length, (1,), range(3))


@pytest.mark.requirement("SHM-03")
def test_a_secret_that_is_not_bytes_is_refused() -> None:
    for secret in ("0" * 32, bytearray(32), 5, None):
        with pytest.raises(ParameterError, match="secret"):
            share(secret, (1,), range(3))  # type: ignore[arg-type]


@pytest.mark.requirement("SHM-06")
@pytest.mark.parametrize("value", [-1, PRIME, PRIME + 1, 2**521, 2**528 - 1, 2**4000])
def test_numbers_outside_the_field_are_refused(value: int) -> None:
    with pytest.raises(NonCanonical, match="coefficients"):
        share(bytes(32), (1, value), range(3))
    with pytest.raises(NonCanonical, match="shares"):
        reconstruct(2, (0, 1, 2), (1, 2, value))
    with pytest.raises(NonCanonical, match="value"):
        shamir.element_bytes(value)


@pytest.mark.requirement("SHM-06")
@pytest.mark.parametrize("value", [1.0, "1", b"\x01", True, None])
def test_what_is_no_integer_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="coefficients"):
        share(bytes(32), (value,), range(3))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="shares"):
        reconstruct(2, (0, 1), (1, value))  # type: ignore[arg-type]


@pytest.mark.requirement("MOD-07")
@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_one_share_for_each_user(count: int) -> None:
    with pytest.raises(LengthMismatch, match="one share for each"):
        reconstruct(2, (0, 1, 2), (1,) * count)


@pytest.mark.requirement("SHM-09")
@given(sharings(), st.data())
def test_fewer_than_t_shares_are_refused(
    sharing: tuple[bytes, tuple[int, ...], list[int]], data: st.DataObject
) -> None:
    secret, coefficients, chosen = sharing
    few = chosen[: data.draw(st.integers(0, len(coefficients)))]
    with pytest.raises(TooFewSurvivors, match=f"t = {len(coefficients) + 1} are needed") as caught:
        reconstruct(len(coefficients) + 1, few, share(secret, coefficients, chosen)[: len(few)])
    assert caught.value.blamed == frozenset()


@pytest.mark.requirement("SHM-10")
@given(sharings(), st.data())
def test_one_wrong_share_among_more_than_t_is_noticed(
    sharing: tuple[bytes, tuple[int, ...], list[int]], data: st.DataObject
) -> None:
    secret, coefficients, chosen = sharing
    chosen = sorted({*chosen, *range(len(coefficients) + 2)})
    shares = list(share(secret, coefficients, chosen))
    at = data.draw(st.integers(0, len(chosen) - 1))
    shares[at] = (shares[at] + data.draw(st.integers(1, PRIME - 1))) % PRIME
    with pytest.raises(BadShare, match="do not lie on one polynomial") as caught:
        reconstruct(len(coefficients) + 1, chosen, shares)
    assert caught.value.blamed == set(chosen)


@pytest.mark.requirement("SHM-10")
@pytest.mark.parametrize(("t", "m"), [(2, 6), (3, 6), (5, 6), (3, 40)])
def test_a_polynomial_of_any_higher_degree_is_noticed(t: int, m: int) -> None:
    """Its value at 0 is that of a right one, so that the relations alone can tell."""
    shares = share(bytes(32), pseudorandom(1, t - 1), range(m))
    for degree in range(t, m):
        altered = [(value + pow(user + 1, degree, PRIME)) % PRIME for user, value in enumerate(shares)]
        with pytest.raises(BadShare, match="one polynomial"):
            reconstruct(t, range(m), altered)


@pytest.mark.requirement("SHM-10", "SHM-11")
@given(st.integers(2, 5), st.data())
def test_exactly_t_shares_give_what_they_interpolate(t: int, data: st.DataObject) -> None:
    """With t shares there is nothing to compare them with; only a number of more than 32 bytes is refused."""
    chosen = data.draw(st.lists(users, min_size=t, max_size=t, unique=True))
    shares = data.draw(st.lists(numbers, min_size=t, max_size=t))
    expected = at_zero([user + 1 for user in chosen], shares)
    if expected < 2**256:
        assert reconstruct(t, chosen, shares) == expected.to_bytes(32, "little")
    else:
        with pytest.raises(BadShare, match="no secret"):
            reconstruct(t, chosen, shares)


@pytest.mark.requirement("SHM-11")
@pytest.mark.parametrize("number", [2**256, 2**256 + 5, PRIME - 1])
@pytest.mark.parametrize("m", [3, 5])
def test_a_number_that_is_no_secret_is_refused(number: int, m: int) -> None:
    shares = [(number + 7 * x + 9 * x * x) % PRIME for x in range(1, m + 1)]
    with pytest.raises(BadShare, match="no secret") as caught:
        reconstruct(3, range(m), shares)
    assert caught.value.blamed == set(range(m))
    largest = [value - number + 2**256 - 1 for value in shares]
    assert reconstruct(3, range(m), [value % PRIME for value in largest]) == b"\xff" * 32


# ------------------------------------------------------------------------------------------------ bytes and sampling


@pytest.mark.requirement("SHM-05")
@given(numbers)
def test_numbers_and_bytes(value: int) -> None:
    data = shamir.element_bytes(value)
    assert len(data) == 66
    assert sum(byte << 8 * at for at, byte in enumerate(data)) == value
    assert shamir.element_from_bytes("share", data) == value


@pytest.mark.requirement("SHM-06")
@pytest.mark.parametrize("data", [b"", bytes(65), bytes(67), bytes(132)])
def test_bytes_of_another_length_are_no_number(data: bytes) -> None:
    with pytest.raises(LengthMismatch, match=f"share = '{len(data)} bytes': must be 66 bytes"):
        shamir.element_from_bytes("share", data)


@pytest.mark.requirement("SHM-06")
@pytest.mark.parametrize("value", [PRIME, PRIME + 1, 2**528 - 1])
def test_bytes_of_too_large_a_number_are_refused(value: int) -> None:
    with pytest.raises(NonCanonical, match="share"):
        shamir.element_from_bytes("share", value.to_bytes(66, "little"))


@pytest.mark.requirement("SHM-05", "SHM-06")
@given(st.lists(numbers, max_size=4))
def test_several_numbers_and_bytes(values: list[int]) -> None:
    data = b"".join(map(shamir.element_bytes, values))
    assert shamir.elements_from_bytes("coefficients", data, len(values)) == tuple(values)
    for wrong, count in ((data, len(values) + 1), (data + b"0", len(values)), (data + bytes(66), len(values))):
        with pytest.raises(LengthMismatch, match=f"coefficients = '{len(wrong)} bytes': must be {count} times 66"):
            shamir.elements_from_bytes("coefficients", wrong, count)
    with pytest.raises(NonCanonical, match=rf"coefficients\[{len(values)}\]"):
        shamir.elements_from_bytes("coefficients", data + b"\xff" * 66, len(values) + 1)


@pytest.mark.parametrize("owners", [(1, 5), [1, 5], range(1, 9, 4)])
def test_shares_by_owner_are_a_mapping_from_any_sequence(owners: Sequence[int]) -> None:
    held = SharesByOwner(owners, element_bytes(7) + element_bytes(9))
    assert dict(held) == {1: 7, 5: 9}
    assert not any(owner in held for owner in (0, 2, 6, "a", None, b"1", (1,)))
    with pytest.raises(KeyError):
        held[2]


@pytest.mark.requirement("SHM-07")
@given(st.lists(st.sampled_from((0, 1, PRIME - 1, PRIME, 2**522 - 1, 2**528 - 1)) | st.integers(0, 2**528 - 1)))
def test_coefficients_from_bytes(pieces: list[int]) -> None:
    data = b"".join(piece.to_bytes(66, "little") for piece in pieces)
    assert shamir.coefficients_from_bytes(data) == tuple(x % 2**521 for x in pieces if x % 2**521 != PRIME)


@pytest.mark.requirement("SHM-07")
@pytest.mark.parametrize("length", [1, 65, 67])
def test_bytes_that_do_not_fill_whole_pieces_are_refused(length: int) -> None:
    with pytest.raises(LengthMismatch, match="a multiple of 66"):
        shamir.coefficients_from_bytes(bytes(length))


# --------------------------------------------------------------------------------------------------------- privacy


@pytest.mark.requirement("SHM-12")
@given(st.integers(2, 6), secrets, st.data())
def test_any_t_minus_1_shares_fit_every_secret_in_exactly_one_way(t: int, secret: bytes, data: st.DataObject) -> None:
    """The map from coefficients to t - 1 shares is one to one, so uniform coefficients give uniform shares."""
    chosen = data.draw(st.lists(users, min_size=t, max_size=t, unique=True))
    seen = data.draw(st.lists(numbers, min_size=t - 1, max_size=t - 1))
    number = int.from_bytes(secret, "little")
    rows = [[pow(user + 1, k, PRIME) for k in range(1, t)] for user in chosen[: t - 1]]
    matrix = flint.fmpz_mod_mat(t - 1, t - 1, [entry for row in rows for entry in row], FIELD)
    shifted = flint.fmpz_mod_mat(t - 1, 1, [value - number for value in seen], FIELD)
    coefficients = [int(entry) for entry in (matrix.inv() * shifted).entries()]
    assert share(secret, coefficients, chosen)[: t - 1] == tuple(seen)


@pytest.mark.requirement("SHM-01", "SHM-06", "ERR-02")
def test_an_error_names_what_is_wrong_with_shares() -> None:
    """2**16 users are taken, and then lack shares; one more are too many."""
    with pytest.raises(LengthMismatch, match=f"^len\\(shares\\) = 1: must be {2**16}, one share for each"):
        reconstruct(2, range(2**16), [0])
    with pytest.raises(ParameterError, match=f"^len\\(users\\) = {2**16 + 1}: "):
        reconstruct(2, range(2**16 + 1), [0])
    for wrong in (True, 1.0, "1"):
        with pytest.raises(ParameterError, match=f"^shares\\[1\\] = {type(wrong).__name__!r}: must be an integer in"):
            reconstruct(2, [0, 1], [0, wrong])  # type: ignore[list-item]
