"""The code that shares a mask: decoding, refusals, and privacy decided by counting every case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode, default_points
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import (
    BadShare,
    DuplicateUser,
    LengthMismatch,
    NonCanonical,
    ParameterError,
    TooFewSurvivors,
    UnknownUser,
)
from tests.strategies import arrays, bulk, codes, fewer, integers_of, pseudorandom, snapshot, subsets, vector

TINY = MaskCode(PrimeField(7), 5, 3, 1)
PRIVATE = [(5, 4, 2, 1), (5, 4, 3, 1), (5, 4, 3, 2), (7, 5, 3, 1), (7, 6, 4, 2)]
PRIVACY = pytest.mark.parametrize(("q", "N", "U", "T"), PRIVATE)


def shares_by_hand(rows: Sequence[Sequence[int]], points: Sequence[int], q: int) -> list[list[int]]:
    """The share of each point: the combination of the rows with its powers, by Python integers."""
    return [
        [sum(pow(a, k, q) * x for k, x in enumerate(column)) % q for column in zip(*rows, strict=True)] for a in points
    ]


def shared(code: MaskCode, d: int, seed: int) -> tuple[UintArray, UintArray]:
    """A mask and its shares, from a seed."""
    q = code.field.modulus
    mask = pseudorandom(seed, q, d)
    return mask, code.encode(mask, pseudorandom(seed + 1, q, code.T, code.share_length(d)))


# ------------------------------------------------------------------------------------------- parameters and layout


@pytest.mark.requirement("MDS-01")
@pytest.mark.parametrize("q", [2, 3, 5, 7])
def test_parameters_are_refused_exactly_outside_the_bounds(q: int) -> None:
    field = PrimeField(q)
    for N, U, T in product(range(-1, 9), repeat=3):
        if 1 <= T < U <= N < q:
            assert MaskCode(field, N, U, T).points.tolist() == list(range(1, N + 1))
        else:
            with pytest.raises(ParameterError):
                MaskCode(field, N, U, T)


@pytest.mark.requirement("MDS-01")
def test_an_empty_vector_is_refused() -> None:
    empty = np.empty(0, dtype=np.uint64)
    with pytest.raises(ParameterError):
        TINY.encode(empty, np.empty((1, 0), dtype=np.uint64))
    with pytest.raises(ParameterError):
        TINY.decode([0, 1, 2], np.empty((3, 0), dtype=np.uint64), 0)


@pytest.mark.requirement("MDS-02")
@pytest.mark.parametrize(
    "points", [(0, 1, 2, 3, 4), (1, 2, 3, 4, 7), (1, 2, 3, 4, 8), (1, 2, 3, 4, -1), (1, 2, 2, 3, 4)]
)
def test_points_that_are_0_or_equal_or_no_elements_are_refused(points: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="points"):
        MaskCode(PrimeField(7), 5, 3, 1, points)


@pytest.mark.requirement("MDS-02", "MOD-07")
@pytest.mark.parametrize("points", [(), (1, 2, 3, 4), (1, 2, 3, 4, 5, 6)])
def test_one_point_for_each_user(points: tuple[int, ...]) -> None:
    with pytest.raises(LengthMismatch, match="points"):
        MaskCode(PrimeField(7), 5, 3, 1, points)


@pytest.mark.requirement("MDS-03")
@given(codes(), st.integers(1, 12), st.data())
def test_the_layout_cuts_the_vector_and_pads_it_by_zeros(code: MaskCode, d: int, data: st.DataObject) -> None:
    mask = data.draw(arrays(code.field.modulus, d))
    rows, parts = code.sub_masks(mask), code.U - code.T
    length = code.share_length(d)
    assert (length - 1) * parts < d <= length * parts
    assert rows.shape == (parts, length)
    assert integers_of(rows.ravel()) == integers_of(mask) + [0] * (parts * length - d)


@pytest.mark.requirement("MDS-03")
@pytest.mark.parametrize("d", [3, 4])
def test_sub_masks_are_not_those_of_a_mask_that_is_written_over(d: int) -> None:
    mask = vector(range(d))
    rows = TINY.sub_masks(mask)
    mask[:] = 6
    assert rows.ravel().tolist() == [*range(d), 0][:4]


def test_the_points_of_a_code_cannot_be_changed() -> None:
    for shown in (TINY.points, TINY.columns):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 0


@pytest.mark.requirement("MDS-03", "MDS-04")
def test_the_example_of_the_text() -> None:
    shares = TINY.encode(vector([4, 0, 6]), vector([2, 5]).reshape(1, 2))
    assert shares[2].tolist() == [5, 3]
    assert shares.tolist() == shares_by_hand([[4, 0], [6, 0], [2, 5]], [1, 2, 3, 4, 5], 7)


@pytest.mark.requirement("MDS-03", "MDS-04")
@given(codes(), st.integers(1, 9), st.data())
def test_shares_are_the_stated_combination(code: MaskCode, d: int, data: st.DataObject) -> None:
    q, length = code.field.modulus, code.share_length(d)
    mask, noise = data.draw(arrays(q, d)), data.draw(arrays(q, code.T, length))
    padded = integers_of(mask) + [0] * (length * (code.U - code.T) - d)
    rows = [padded[k * length : (k + 1) * length] for k in range(code.U - code.T)] + integers_of(noise)
    assert integers_of(code.encode(mask, noise)) == shares_by_hand(rows, integers_of(code.points), q)


@pytest.mark.requirement("MDS-04")
def test_the_default_points_are_1_to_N() -> None:
    assert [*default_points(5)] == [1, 2, 3, 4, 5]
    assert integers_of(TINY.points) == [1, 2, 3, 4, 5]


@pytest.mark.requirement("MDS-05")
def test_a_code_of_billions_of_users_decodes_the_shares_of_a_few() -> None:
    q = DEFAULT_PRIME
    code, users = MaskCode(PrimeField(q), 2**32 - 6, 3, 1), (0, 2**31, 2**32 - 7)
    shares = vector([(4 + 6 * (user + 1) + 2 * (user + 1) ** 2) % q for user in users]).reshape(3, 1)
    assert code.decode(users, shares, 2).tolist() == [4, 6]


@pytest.mark.requirement("MDS-04")
@pytest.mark.parametrize("d", [3 * 8191, 3 * 8192, 3 * 8192 + 1, 3 * 8193])
def test_long_vectors_are_encoded_in_every_column(d: int) -> None:
    code = MaskCode(PrimeField(), 5, 4, 1)
    mask, shares = shared(code, d, seed=9)
    users = [4, 2, 1, 0, 3]
    assert np.array_equal(code.decode(users, shares[users], d), mask)


@pytest.mark.slow
@pytest.mark.requirement("MDS-04", "MDS-05")
@pytest.mark.filterwarnings("ignore")
def test_encoding_agrees_with_galois() -> None:
    import galois

    q, code = 257, MaskCode(PrimeField(257), 6, 4, 2)
    mask, noise = pseudorandom(1, q, 6), pseudorandom(2, q, 2, 3)
    gf = galois.GF(q, compile="python-calculate")
    matrix = gf(np.concatenate([mask.reshape(2, 3), noise]).astype(np.int64))
    vandermonde = gf(np.array([[pow(a, k, q) for k in range(4)] for a in range(1, 7)]))
    assert integers_of(code.encode(mask, noise)) == integers_of(vandermonde @ matrix)


# ------------------------------------------------------------------------------------------------------- decoding


@pytest.mark.requirement("MDS-05")
def test_every_set_of_users_decodes_at_tiny() -> None:
    for d, seed in ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5)):
        mask, shares = shared(TINY, d, seed)
        for users in subsets(range(5), at_least=3):
            for order in (users, users[::-1]):
                assert np.array_equal(TINY.decode(order, shares[list(order)], d), mask)


@pytest.mark.requirement("MDS-05")
@given(codes(), st.integers(1, 9), st.data())
def test_any_U_or_more_shares_decode(code: MaskCode, d: int, data: st.DataObject) -> None:
    q = code.field.modulus
    mask = data.draw(bulk(q, d))
    shares = code.encode(mask, data.draw(bulk(q, code.T, code.share_length(d))))
    users = data.draw(st.permutations(range(code.N)))[: data.draw(st.integers(code.U, code.N))]
    assert np.array_equal(code.decode(users, shares[users], d), mask)


@pytest.mark.requirement("MDS-05", "MDS-10")
@fewer(2)
@given(codes())
def test_any_U_columns_and_any_T_noise_columns_are_independent(code: MaskCode) -> None:
    import flint

    q, columns = code.field.modulus, integers_of(code.columns)
    for top, size in ((0, code.U), (code.U - code.T, code.T)):
        for users in combinations(range(code.N), size):
            square = [[columns[top + k][j] for j in users] for k in range(size)]
            assert flint.nmod_mat(square, q).rank() == size


@pytest.mark.requirement("MDS-06")
@given(codes(), st.integers(1, 9), st.integers(1, 5), st.data())
def test_sums_of_shares_decode_to_the_sum(code: MaskCode, d: int, count: int, data: st.DataObject) -> None:
    q = code.field.modulus
    masks = data.draw(bulk(q, count, d))
    noises = data.draw(bulk(q, count, code.T, code.share_length(d)))
    total = np.sum([code.encode(m, n).astype(object) for m, n in zip(masks, noises, strict=True)], axis=0) % q
    users = data.draw(st.permutations(range(code.N)))[: code.U]
    expected = [sum(column) % q for column in zip(*integers_of(masks), strict=True)]
    assert integers_of(code.decode(users, np.asarray(total, dtype=np.uint64)[users], d)) == expected


@pytest.mark.requirement("MDS-06")
@given(codes(), st.integers(1, 9), st.data())
def test_what_the_padding_decodes_to_is_not_looked_at(code: MaskCode, d: int, data: st.DataObject) -> None:
    q, length = code.field.modulus, code.share_length(d)
    full = length * (code.U - code.T)
    padded = data.draw(arrays(q, full))
    shares = code.encode(padded, data.draw(arrays(q, code.T, length)))
    everyone = list(range(code.N))
    assert integers_of(code.decode(everyone, shares, d)) == integers_of(padded[:d])


@pytest.mark.requirement("MDS-07")
def test_fewer_than_U_shares_are_refused() -> None:
    _, shares = shared(TINY, 3, seed=1)
    for users in ((), (0,), (4, 1)):
        with pytest.raises(TooFewSurvivors) as caught:
            TINY.decode(users, shares[list(users)].reshape(-1, 2), 3)
        assert not caught.value.blamed


@pytest.mark.requirement("MDS-08")
@given(st.permutations(range(5)), st.integers(0, 4), st.sampled_from([-1, 5, 6, 2**32]))
def test_users_named_twice_or_unknown_are_refused(order: list[int], at: int, stranger: int) -> None:
    _, shares = shared(TINY, 3, seed=1)
    with pytest.raises(DuplicateUser):
        TINY.decode([*order, order[at]], shares[[*order, order[at]]], 3)
    with pytest.raises(UnknownUser):
        TINY.decode([*order[:at], stranger, *order[at + 1 :]], shares[order], 3)


@pytest.mark.requirement("MDS-09")
def test_every_single_altered_position_is_detected() -> None:
    _, shares = shared(TINY, 3, seed=4)
    for users in subsets(range(5), at_least=4):
        for row, column, delta in product(range(len(users)), range(2), range(1, 7)):
            altered = shares[list(users)]
            altered[row, column] = (altered[row, column] + np.uint64(delta)) % np.uint64(7)
            with pytest.raises(BadShare) as caught:
                TINY.decode(users, altered, 3)
            assert caught.value.blamed == set(users)


@pytest.mark.requirement("MDS-09")
@given(codes(), st.integers(1, 9), st.data())
def test_altered_shares_are_detected_exactly_when_more_than_U_are_given(
    code: MaskCode, d: int, data: st.DataObject
) -> None:
    q, length = code.field.modulus, code.share_length(d)
    shares = code.encode(data.draw(bulk(q, d)), data.draw(bulk(q, code.T, length)))
    users = data.draw(st.permutations(range(code.N)))[: data.draw(st.integers(code.U, code.N))]
    given_shares = shares[users]
    row, column = data.draw(st.integers(0, len(users) - 1)), data.draw(st.integers(0, length - 1))
    given_shares[row, column] = (int(given_shares[row, column]) + data.draw(st.integers(1, q - 1))) % q
    if len(users) == code.U:
        code.decode(users, given_shares, d)
    else:
        with pytest.raises(BadShare):
            code.decode(users, given_shares, d)


@pytest.mark.requirement("MOD-06", "MOD-07", "MDS-01")
def test_vectors_that_do_not_fit_are_refused() -> None:
    mask, noise = vector([1, 2, 3]), vector([[1, 2]])
    with pytest.raises(LengthMismatch, match="noise"):
        TINY.encode(mask, vector([[1]]))
    with pytest.raises(LengthMismatch, match="noise"):
        TINY.encode(mask, vector([[1, 2], [3, 4]]))
    with pytest.raises(NonCanonical, match="noise"):
        TINY.encode(mask, vector([[1, 7]]))
    with pytest.raises(NonCanonical, match="mask"):
        TINY.encode(vector([1, 2, 7]), noise)
    shares = TINY.encode(mask, noise)
    with pytest.raises(LengthMismatch, match="shares"):
        TINY.decode([0, 1, 2], shares[:4], 3)
    with pytest.raises(LengthMismatch, match="shares"):
        TINY.decode([0, 1, 2], shares[:3], 5)


@pytest.mark.requirement("ERR-01")
def test_inputs_stay_as_they_were() -> None:
    mask, noise = vector([1, 2, 3]), vector([[1, 2]])
    shares = TINY.encode(mask, noise)
    before = snapshot([mask, noise, shares])
    TINY.decode([0, 1, 2, 3, 4], shares, 3)[0] = 6
    assert snapshot([mask, noise, shares]) == before


# -------------------------------------------------------------------------------------------------------- privacy


def all_vectors(q: int, size: int) -> UintArray:
    """Every vector of `size` elements, one in each column: a (size, q**size) array."""
    return np.array(list(product(range(q), repeat=size)), dtype=np.uint64).T.copy()


def view_counts(code: MaskCode, mask: Sequence[int], users: Sequence[int]) -> Counter[tuple[int, ...]]:
    """How often each tuple of the users' shares occurs, over every noise; the mask has one element a sub-mask."""
    noise = all_vectors(code.field.modulus, code.T)
    shares = code.encode(np.repeat(vector(mask), noise.shape[1]), noise)
    return Counter(zip(*integers_of(shares[list(users)]), strict=True))


@pytest.mark.requirement("MDS-10")
@PRIVACY
def test_any_T_shares_are_uniform_whatever_the_mask_is(q: int, N: int, U: int, T: int) -> None:
    code = MaskCode(PrimeField(q), N, U, T)
    uniform = Counter(dict.fromkeys(product(range(q), repeat=T), 1))
    for mask in product(range(q), repeat=U - T):
        for users in combinations(range(N), T):
            assert view_counts(code, mask, users) == uniform


@pytest.mark.requirement("MDS-10")
@PRIVACY
def test_any_T_plus_1_shares_say_something_about_the_mask(q: int, N: int, U: int, T: int) -> None:
    code = MaskCode(PrimeField(q), N, U, T)
    zero = (0,) * (U - T)
    for users in combinations(range(N), T + 1):
        reference = view_counts(code, zero, users)
        masks = product(range(q), repeat=U - T)
        assert any(view_counts(code, mask, users) != reference for mask in masks)


@pytest.mark.requirement("MDS-02", "MDS-10")
@pytest.mark.parametrize(("q", "U", "T"), [(5, 3, 1), (7, 3, 1), (7, 4, 2)])
def test_the_point_0_would_give_a_sub_mask_in_clear(q: int, U: int, T: int) -> None:
    for mask in product(range(q), repeat=U - T):
        for noise in product(range(q), repeat=T):
            rows = [[x] for x in (*mask, *noise)]
            assert shares_by_hand(rows, [0], q) == [[mask[0]]]
    columns = [[pow(a, k, q) for k in range(U)] for a in range(U)]
    assert PrimeField(q).rank(vector(columns)) == U


@pytest.mark.requirement("MDS-01", "MDS-02", "ERR-02")
def test_an_error_names_what_is_wrong_with_a_code() -> None:
    """One user is too few whatever U is; a point that stands twice is named with its value."""
    with pytest.raises(ParameterError, match=r"^N = 1: "):
        MaskCode(PrimeField(7), 1, 2, 1)
    with pytest.raises(ParameterError, match=r"^points = 3: must be given to one user only$"):
        MaskCode(PrimeField(7), 3, 2, 1, (3, 1, 3))
