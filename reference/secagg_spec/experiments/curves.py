"""A line of means with a band of seeds: what the pictures of training have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def band(
    axes: Any, x: Sequence[float], runs: Sequence[Sequence[float]], colour: str, line: str = "-", label: str = ""
) -> None:
    """Draw the mean of the runs of all seeds against x, and a band from the least to the largest.

    A run that ended early has fewer numbers; from its end on the others are drawn without it, and a cross marks it.

    Parameters
    ----------
    axes : matplotlib axes
    x : sequence of float
        At least as many as the longest run has numbers.
    runs : sequence of sequences of float
        One for each seed.
    colour, line, label : str
        How the line looks, and what the legend calls it.
    """
    longest = max(map(len, runs))
    padded = np.full((len(runs), longest), np.nan)
    for row, run in zip(padded, runs, strict=True):
        row[: len(run)] = run
    here = np.asarray(x[:longest], np.float64)
    axes.plot(here, np.nanmean(padded, axis=0), line, color=colour, label=label)
    axes.fill_between(here, np.nanmin(padded, axis=0), np.nanmax(padded, axis=0), color=colour, alpha=0.18, linewidth=0)
    for run in runs:
        if 0 < len(run) < longest:
            axes.plot(here[len(run) - 1], run[-1], "x", color=colour)


def accuracies(axes: Any, found: Sequence[Mapping[str, Any]], colour: str, line: str, label: str) -> None:
    """Draw the accuracies of the courses of all seeds against their rounds, of which a run that ended early has fewer.

    Parameters are those of `band`; `found` has what `runs` gave for each seed.
    """
    longest = max((one["rounds"] for one in found), key=len)
    band(axes, longest, [one["accuracy"] for one in found], colour, line, label)
