"""Running sums against the plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import running
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import NonCanonical, ParameterError
from tests.strategies import integers_of


def pieces(vector: UintArray, size: int) -> Iterator[Any]:
    """A vector as words, some at a time."""
    return (vector[at : at + size].astype(np.uint32) for at in range(0, vector.size, size))


@pytest.mark.requirement("MOD-03")
@given(st.sampled_from([2, 97, 2**16, 2**31 + 11, 2**32 - 5, 2**32]), st.integers(0, 40), st.integers(1, 5), st.data())
def test_a_signed_sum_is_the_plain_one_in_any_pieces(R: int, count: int, d: int, data: st.DataObject) -> None:
    """Large elements, and more vectors than are read together: the carries of a word matter."""
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    low = data.draw(st.sampled_from([0, R - 1, R // 2]))
    vectors = draw.integers(low, R, (count + 1, d), dtype=np.uint64)
    signs = [bool(sign) for sign in draw.integers(0, 2, count)]
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    whole = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    given_as = [v if w else pieces(v, s) for v, w, s in zip(vectors[1:], whole, sizes, strict=True)]
    found = Ring(R).signed_sum(vectors[0], zip(signs, given_as, strict=True))
    plain = [
        (int(vectors[0, j]) + sum((1 if s else -1) * int(x) for s, x in zip(signs, vectors[1:, j], strict=True))) % R
        for j in range(d)
    ]
    assert integers_of(found) == plain


@pytest.mark.requirement("MOD-03")
@pytest.mark.parametrize("count", [running._MOST - 1, running._MOST, running._MOST + 1, 3 * running._MOST + 2])
@pytest.mark.parametrize("R", [2**32 - 5, 2**31 + 11, 97])
@pytest.mark.parametrize("whole", [True, False])
def test_carries_are_reduced_before_they_pass_8_bits(count: int, R: int, whole: bool) -> None:
    top = np.full(3, R - 1, dtype=np.uint64)
    terms = ((True, top if whole else pieces(top, 2)) for _ in range(count))
    assert integers_of(Ring(R).signed_sum(top, terms)) == [-(count + 1) % R] * 3


@pytest.mark.requirement("MOD-06")
@pytest.mark.parametrize(
    ("piece", "error"),
    [
        (np.array([-3]), NonCanonical),
        (np.array([3]), NonCanonical),
        (np.array([1.9]), NonCanonical),
        (np.array([True]), NonCanonical),
        (np.array([97], np.uint8), NonCanonical),
        (np.ma.array([1], dtype=np.uint64), ParameterError),
        ([1], ParameterError),
    ],
)
def test_a_piece_that_holds_no_elements_is_refused(piece: Any, error: type[Exception]) -> None:
    for sign in (True, False):
        with pytest.raises(error, match=r"terms\[0\]\[0\]"):
            Ring(97).signed_sum(np.array([1], np.uint64), [(sign, iter([piece]))])
    good = [(True, iter([np.array([96], np.uint8)])), (True, iter([np.array([3], ">u4")]))]
    assert Ring(97).signed_sum(np.array([1], np.uint64), good).tolist() == [3]
