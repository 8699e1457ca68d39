"""Draws the two pictures of measured costs that pages show: ``python -m tests.benchmarks.plots docs/assets``.

Each point is the least processor time of several runs that take turns. This needs matplotlib.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from tests.benchmarks import basa, heterosag
from tests.benchmarks.record import Side, processor

from secagg_spec.crypto.boxes import PositionKeys
from secagg_spec.crypto.caches import forget
from secagg_spec.protocols.heterosag.costs import user_masks

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "secagg-spec", "font.size": 11})
from matplotlib import pyplot as plt  # noqa: E402

DIMENSIONS = (100_000, 500_000, 1_000_000)
SIZES = (10, 25, 50, 100, 150, 200)
COUNTS = tuple(range(2, 26))


def main(arguments: Sequence[str]) -> int:
    """Draw both pictures into the folder that is named; 0 when done, 2 when none is."""
    if len(arguments) != 1:
        print("usage: python -m tests.benchmarks.plots FOLDER", file=sys.stderr)
        return 2
    basa_cost(Path(arguments[0]))
    heterosag_masking(Path(arguments[0]))
    return 0


def least(sides: Sequence[Side], turns: int) -> list[float]:
    """Return the least cost of each side; they take turns, so that a slow moment of the machine meets all."""
    costs = [[side() for side in sides] for _ in range(turns)]
    return [min(found) for found in zip(*costs, strict=True)]


# ------------------------------------------------------------------------------------------------------------ BASA


def basa_cost(folder: Path) -> None:
    """Draw the time of a user of BASA against K, for three lengths, and the lines through it."""
    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    for d, marker in zip(DIMENSIONS, "os^", strict=True):
        times = user_times(d)
        slope, intercept, fit = line(SIZES, times)
        print(f"d = {d:,}: {slope * 1e3:.2f} ms for each position and {intercept * 1e3:.1f} ms, R^2 = {fit:.4f}")
        ends = np.array([0, SIZES[-1]])
        (drawn,) = axes.plot(ends, slope * ends + intercept, linewidth=1)
        label = f"d = {d / 1e6:g} million ($R^2$ = {fit:.3f})"
        axes.plot(SIZES, times, marker, color=drawn.get_color(), label=label)
    axes.set(xlabel="size of the buffer, K (updates)", ylabel="time of a user (seconds of one core)", xlim=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title="measured, and line of least squares", loc="upper left")
    figure.savefig(folder / "basa-cost.svg", metadata={"Date": None})


def user_times(d: int) -> list[float]:
    """Return the time of a visit at the middle position, for each size of a buffer."""
    visits = [basa.visit(basa.parameters(K, d), PositionKeys(), K // 2) for K in SIZES]
    return least([one.seconds for one in visits], 7)


def line(sizes: Sequence[int], times: Sequence[float]) -> tuple[float, float, float]:
    """Return slope and intercept of the line of least squares, and R^2."""
    measured = np.asarray(times)
    slope, intercept = np.polyfit(sizes, measured, 1)
    rest = measured - np.polyval((slope, intercept), sizes)
    return float(slope), float(intercept), 1 - float(np.sum(rest**2) / np.sum((measured - measured.mean()) ** 2))


# -------------------------------------------------------------------------------------------------------- HeteroSAg


@dataclass(frozen=True)
class Point:
    """One number of groups: masks per element by the formula, and both costs over SecAgg's."""

    groups: int
    users: int
    masks: float
    formula: float
    measured: float


def points(levels: int = 16) -> list[Point]:
    """Measure user 0 for each number of groups, in turn with SecAgg."""
    whole = processor(heterosag.masking_of(heterosag.plain(levels), 0).take, forget)
    found = []
    for groups in COUNTS:
        p = heterosag.parameters(groups, levels)
        mine, theirs = least([processor(heterosag.masking_of(p, 0).take, forget), whole], 9)
        each = user_masks(p, 0).elements / p.d
        found.append(Point(groups, p.sizes[0], each, each / p.N, mine / theirs))
        print(f"G = {groups:2}, n = {p.sizes[0]:2}: {each:6.2f} masks an element, {mine / theirs:.3f} of SecAgg's time")
    return found


def heterosag_masking(folder: Path) -> None:
    """Draw the cost of masking against the number of groups, beside the formula, and write the numbers."""
    found = points()
    _write(folder / "heterosag-masking.csv", found)
    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    axes.plot(COUNTS, [point.formula for point in found], "-", label="masks to expand, by the formula")
    axes.plot(COUNTS, [point.measured for point in found], "o", label="processor time, measured")
    axes.axhline(1, color="grey", linewidth=1, linestyle="--", label="SecAgg on the complete graph")
    axes.set(xlabel="number of groups, G", ylabel="cost of masking, in units of SecAgg's")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title=f"N = {heterosag.N} users, d = {heterosag.D:,}, K = 16")
    figure.savefig(folder / "heterosag-masking.svg", metadata={"Date": None})


def _write(path: Path, found: Sequence[Point]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["groups", "users_of_a_group", "masks_per_element", "formula_over_secagg", "time_over_secagg"])
        for one in found:
            out.writerow([one.groups, one.users, f"{one.masks:.4f}", f"{one.formula:.4f}", f"{one.measured:.3f}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
