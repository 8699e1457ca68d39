"""The examples of the pages that have some run, and print what stands there."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_on_the_errors_of_heterosag_run() -> None:
    page = DOCS / "explanation" / "heterosag-errors.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert (failed, tried) == (0, 16)


@pytest.mark.slow
def test_the_way_from_updates_to_a_model_runs() -> None:
    failed, tried = doctest.testfile(str(DOCS / "tutorials" / "from-updates-to-a-model.md"), module_relative=False)
    assert failed == 0
    assert tried > 30


def test_the_numbers_for_choosing_parameters_are_right() -> None:
    failed, tried = doctest.testfile(str(DOCS / "how-to" / "choose-parameters.md"), module_relative=False)
    assert failed == 0
    assert tried > 10
