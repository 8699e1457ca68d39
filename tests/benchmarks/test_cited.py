"""Figures that pages cite from the benchmarks: the stored ones lie where a page says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks import stored

DOCS = Path(__file__).parents[2] / "docs"
RECORDS: Mapping[str, Mapping[str, Any]] = {one["id"]: one for one in stored.load()["records"]}
RANGE = r"([\d.]+) to ([\d.]+)"
BASA, HETEROSAG = "explanation/basa-costs.md", "explanation/heterosag-costs.md"
CITED = [
    (BASA, rf"\| boxes alone at all positions: .* \| {RANGE} \|", "basa-boxes-all"),
    (BASA, rf"\| at the first position, .* \| {RANGE} \|", "basa-boxes-first"),
    (BASA, rf"\| at the last position, .* \| {RANGE} \|", "basa-boxes-last"),
    (BASA, rf"\| the whole visit, .* \| {RANGE} \|", "basa-visit-all"),
    (BASA, rf"\| a user in \*settle\* beside \*void\*, .* \| {RANGE} \|", "basa-settle-user-0"),
    (BASA, rf"\| the same with two spare positions \| {RANGE} \|", "basa-settle-user-2"),
    (BASA, rf"\| the server in `recover`, 30 .* \| {RANGE} \|", "basa-settle-server-unused"),
    (BASA, rf"\| the same, 20 streams .* \| {RANGE} \|", "basa-settle-server-skipped"),
    (BASA, rf"\| all 64 users .* with 2 buffers beside one \| {RANGE} times", "basa-buffers-2"),
    (BASA, rf"\| the same with 4 \| {RANGE} times", "basa-buffers-4"),
    (BASA, rf"\| the same with 8 \| {RANGE} times", "basa-buffers-8"),
    (HETEROSAG, rf"\| time of masking, K = 2 \| {RANGE} times", "heterosag-masking-2"),
    (HETEROSAG, rf"\| time of masking, K = 16 \| {RANGE} times", "heterosag-masking-16"),
    (HETEROSAG, rf"\| time of masking, K = 65,536 \| {RANGE} times", "heterosag-masking-65536"),
    (HETEROSAG, rf"\| time of the whole step `masked_input`, .* \| {RANGE} times", "heterosag-step"),
]


def page(name: str) -> str:
    """The text of a page, as one line for each of its paragraphs and rows."""
    return re.sub(r"\n(?=[^|\n])", " ", (DOCS / name).read_text(encoding="utf-8"))


def median(name: str) -> float:
    """The stored ratio of a benchmark."""
    return float(RECORDS[name]["ratio"]["median"])


@pytest.mark.parametrize(("name", "pattern", "benchmark"), CITED, ids=[one[2] for one in CITED])
def test_the_stored_ratio_lies_in_the_range_of_the_page(name: str, pattern: str, benchmark: str) -> None:
    [(low, high)] = re.findall(pattern, page(name))
    assert float(low) <= median(benchmark) <= float(high)


def test_what_pages_say_in_words_is_what_is_stored() -> None:
    text = page(BASA)
    assert "About half of the time with CP-ABE goes into one product of three pairings" in text
    assert 0.4 <= median("basa-share-products") <= 0.6
    assert "took about a tenth of the 250 ms of one core" in text
    assert 0.05 <= RECORDS["basa-visit-last"]["cost"]["what"] / 0.25 <= 0.2
    assert "takes the memory of 5.5 updates" in text
    assert "with 10 streams and with 40 alike" in text
    assert median("basa-memory") == pytest.approx(1, abs=0.05)
    d = RECORDS["basa-memory"]["sizes"]["d"]
    assert RECORDS["basa-memory"]["cost"]["what"] / (8 * d) == pytest.approx(5.5, abs=0.1)


def test_figures_of_decisions_still_hold() -> None:
    product = page("decisions/0003-exact-matrix-product.md")
    assert "took a sixth to a twelfth of the time" in product
    assert 6 <= median("encoding-time") <= 12
    assert "and 1.8 to 2.1 masks of memory above inputs and output" in product
    assert 1.8 <= round(median("encoding-memory"), 1) <= 2.1
    training = page("decisions/0014-training-and-experiments.md")
    assert "Gradients of dense layers, written out for all users together, are faster again" in training
    most = {"vmap": 0.0, "stacked": 0.0}
    for model, batch in itertools.product(("logistic-8", "mlp-8", "logistic-28", "mlp-28"), (10, 50)):
        ratios = {way: median(f"training-{model}-{batch}-{way}") for way in most}
        assert ratios["stacked"] > ratios["vmap"]
        most = {way: max(ratios[way], ratio) for way, ratio in most.items()}
    [vmap] = re.findall(r"up to (\d+) times as fast as a loop for dense .* \((\d+) times on another", training)
    [stacked] = re.findall(r"are faster again \(up to (\d+) times, and (\d+) on the other machine\)", training)
    for way, (here, there) in {"vmap": vmap, "stacked": stacked}.items():
        assert int(there) <= round(most[way]) <= int(here)
    assert (
        "at most half as fast again for the widest of them at batches of 50, and slower for LeNet-5 there" in training
    )
    assert median("training-lenet5-28-50-vmap") < 0.9 < median("training-mlp-28-50-vmap") < 1.55
