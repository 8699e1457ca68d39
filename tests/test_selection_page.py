"""The numbers of the page on ways to choose users are those of the package."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from secagg_spec.experiments import selection
from secagg_spec.experiments.selection import Settings, rates_of_users, trade_off
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.metrics import expected_cardinality, fairness_gap, least_gap

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "explanation" / "selection.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_table_of_expected_cardinalities() -> None:
    rates = [rates_of_users(Settings(seed=seed)) for seed in range(100)]
    for T, *shown in re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M):
        found = [expected_cardinality(Parameters(120, 12, int(T)), given) for given in rates]
        assert [f"{float(C):.2f}" for C in (min(found), sum(found) / 100, max(found))] == shown


def test_the_numbers_in_the_text() -> None:
    gap = least_gap(Parameters(120, 12, 12), rates_of_users(Settings()))
    assert f"cannot have less than {float(gap):.3f} in the long run" in PAGE
    assert f"T = 4 leaves {float(dict(trade_off(120, 12, Fraction(1, 2)))[4]):.1f}\nof 12 users" in PAGE


def test_the_gaps_of_the_least_rule() -> None:
    settings = Settings(rule="least")
    there = selection.available(settings, rates_of_users(settings))
    logs = [selection.take_rounds(settings, scheme, there) for scheme in selection.schemes(settings)[-3:]]
    first, second, third = (f"{float(fairness_gap(log)):.3f}" for log in logs)
    assert f"T = 6, 4 and 3 end at {first}, {second} and {third} in this run" in PAGE


def test_the_figures_are_there() -> None:
    for name in re.findall(r"\(\.\./(assets/[^)]+)\)", PAGE):
        assert (DOCS / name).is_file()
