"""What is said of an answer that is not that of a vector."""

import sys

import numpy as np
import pytest

from secagg_spec.conformance.adapter.wire import pack_reals
from secagg_spec.conformance.vectors.differences import first_difference
from tests.conformance.test_vectors import FAKE, run


@pytest.mark.parametrize(
    ("name", "got", "want", "said"),
    [
        ("value", "0100000002000000", "0100000003000000", "value[1] is 2, must be 3"),
        ("sums", ["01000000", "02000000"], ["01000000", "05000000"], "sums[1][0] is 2, must be 5"),
        ("lengths", [1, 1, 2], [2, 1, 1], "lengths[0] is 1, must be 2"),
        ("moduli", [["9", "7"]], [["9", "8"]], "moduli[0][1] is 7, must be 8"),
        ("value", "01000000", "0100000003000000", ""),
        ("value", 7, "01000000", ""),
        ("lengths", None, [1], ""),
        ("secret", "00", "01", ""),
    ],
)
def test_the_first_entry_that_differs_is_named(name: str, got: object, want: object, said: str) -> None:
    assert first_difference(name, got, want) == said


def test_real_numbers_are_shown_as_numbers() -> None:
    got, want = (pack_reals(np.array([0.5, x])) for x in (np.inf, 1.5))
    assert first_difference("segment", got, want) == "segment[1] is inf, must be 1.5"


def test_files_of_which_nothing_is_declared_have_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "-k", "m*.encode", "--", sys.executable, FAKE, "none")
    assert "of 3 files nothing is declared: adapter, code, messages" in out
    assert "code.json" not in out
