"""The page on the costs of HeteroSAg: each number that is counted, counted again."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from secagg_spec.protocols.heterosag.costs import masked_bits, secagg_bits, user_masks
from secagg_spec.protocols.heterosag.plan import UNIT, Parameters

DOCS = Path(__file__).parents[1] / "docs"
N, D = 100, 79_510


def parameters(groups: int, levels: tuple[int, ...], parts: int = 1) -> Parameters:
    """Those of N users in groups as equal as they can be."""
    sizes = tuple(len(part) for part in np.array_split(np.empty(N, bool), groups))
    return Parameters(N, 20, 1, 51, D, sizes, (parts,) * groups, levels, UNIT)


def rows(heading: str) -> list[list[float]]:
    """The numbers of the table on the page that begins so."""
    page = (DOCS / "explanation" / "heterosag-costs.md").read_text(encoding="utf-8")
    lines = page[page.index(heading) :].splitlines()[2:]
    table = lines[: lines.index("")]
    return [[float(cell) for cell in line.strip("| ").split("|")] for line in table]


@pytest.mark.parametrize("row", rows("| groups | K = 2"), ids=lambda row: f"G = {row[0]:g}")
def test_bits_of_equal_levels_are_as_counted(row: list[float]) -> None:
    groups, *report = row
    for K, ratio in zip((2, 16, 256, 65536), report, strict=True):
        p = parameters(int(groups), (K,) * int(groups))
        assert ratio == round(masked_bits(p, 0) / secagg_bits(D, N, K), 3)


def test_bits_of_different_levels_are_as_counted() -> None:
    K = (2, 6, 8, 10, 12)
    p, report = parameters(5, K, 4), rows("| group | K | bits")
    assert [row[:2] for row in report] == [[g, K[g]] for g in range(5)]
    for g, row in enumerate(report):
        sent = sum(masked_bits(p, p.members[4 * g + part][0]) for part in range(4)) / 4
        assert row[2:] == [round(sent / D, 2), *(round(sent / secagg_bits(D, N, k), 2) for k in (2, K[g], 12))]


def test_the_table_beside_the_figure_has_the_formula_and_plausible_times() -> None:
    with (DOCS / "assets" / "heterosag-masking.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [int(row["groups"]) for row in table] == list(range(2, 26))
    for row in table:
        p = parameters(int(row["groups"]), (16,) * int(row["groups"]))
        masks = user_masks(p, 0).elements / D
        assert row["users_of_a_group"] == str(p.sizes[0])
        assert (row["masks_per_element"], row["formula_over_secagg"]) == (f"{masks:.4f}", f"{masks / N:.4f}")
        assert 0 < float(row["time_over_secagg"]) < 1
    [twenty] = [row for row in table if row["groups"] == "20"]
    assert float(twenty["time_over_secagg"]) <= 1 / 5


def test_the_figures_of_the_text_are_those_of_twenty_groups() -> None:
    page = (DOCS / "explanation" / "heterosag-costs.md").read_text(encoding="utf-8")
    p = parameters(20, (16,) * 20)
    found = user_masks(p, 0)
    assert f"{found.masks} keys instead of {N}" in page
    assert f"streams of {max(p.lengths):,} elements instead of {D:,}" in page
    assert re.search(rf"by the formula \| {N * D / found.elements:.1f} times", page)
