"""An integer that Python writes into no text is refused with one of the project's errors."""

from __future__ import annotations

import numpy as np
import pytest

from secagg_spec.arithmetic import sampling, validate
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.protocols.agreement import check_threshold
from secagg_spec.protocols.fedbuff.round import average_integers

HUGE = 10**5000


@pytest.mark.parametrize("numbers", [(HUGE, 0, 1, 3), (5, HUGE, 1, 4), (5, 0, HUGE, 4), (5, 0, 1, HUGE)])
def test_thresholds_of_huge_numbers_are_refused(numbers: tuple[int, int, int, int]) -> None:
    with pytest.raises(ParameterError, match=r"an integer of 16610 bits: must be an integer"):
        check_threshold(numbers[3], numbers[0], numbers[1], numbers[2])


def test_a_huge_count_is_refused_and_a_large_one_is_taken() -> None:
    with pytest.raises(ParameterError, match=r"^n = an integer of 16610 bits: must be .* of 8192 bits at most$"):
        sampling.elements_from_bytes(Ring(7), b"", HUGE)
    assert validate.integer("n", 2**8192 - 1, 0) == 2**8192 - 1
    with pytest.raises(ParameterError):
        validate.integer("n", 2**8192, 0)


def test_a_level_beyond_float64_is_refused() -> None:
    updates = [np.array([3, -6], dtype=np.int64)] * 2
    assert average_integers([1, 2], updates, 3).tolist() == [1.0, -2.0]
    with pytest.raises(OutOfRange, match=r"^c_l = an integer of 1101 bits: must be below 2\*\*1023 / 3"):
        average_integers([1, 2], updates, 1 << 1100)
