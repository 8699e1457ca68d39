"""The examples of the pages that have some run, and print what stands there."""

from __future__ import annotations

import doctest
import re
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


def test_what_is_learned_exactly_is_counted() -> None:
    failed, tried = doctest.testfile(str(DOCS / "explanation" / "learns-exactly.md"), module_relative=False)
    assert failed == 0
    assert tried > 10


def test_the_table_of_ways_is_what_is_counted() -> None:
    text = (DOCS / "explanation" / "learns-exactly.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(\d), (\d)\*\* \| \*\*(\d)\*\* \| (.*) \|$", text, re.MULTILINE)
    pairs = [(a, b) for a in range(2) for b in range(2)]
    shown = {(int(a), int(b)): (int(total), cells.split(" | ")) for a, b, total, cells in rows}
    assert set(shown) == set(pairs)
    for a, b in pairs:
        views = [((a + m) % 2, (b - m) % 2) for m in range(2)]
        assert shown[a, b] == ((a + b) % 2, [str(views.count(view) or "·") for view in pairs])
