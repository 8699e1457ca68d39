"""Properties of the streams of random numbers."""

from __future__ import annotations

import pytest

from secagg_spec.errors import ParameterError
from secagg_spec.learning import streams
from secagg_spec.learning.streams import stream


@pytest.mark.requirement("EXP-08")
def test_a_stream_is_the_same_whenever_it_is_asked_for() -> None:
    for which in range(streams.KEYS + 1):
        assert (stream(3, which, 5, 7).random(4) == stream(3, which, 5, 7).random(4)).all()


def test_streams_of_other_seeds_uses_and_numbers_differ() -> None:
    asked = [(3, 1), (4, 1), (3, 2), (3, 1, 0, 1), (3, 1, 1), (3, 1, 1, 2), (3, 1, 2, 1)]
    assert len({stream(*one).random() for one in asked}) == len(asked)


@pytest.mark.parametrize("asked", [(-1, 0), (2**32, 0), (0, 10), (0, 0, -1), (0.5, 0)])
def test_numbers_out_of_range_are_refused(asked: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError):
        stream(*asked)
