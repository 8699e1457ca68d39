"""A line of means with a band over seeds, for the pictures of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def band(
    axes: Any, x: Sequence[float], runs: Sequence[Sequence[float]], colour: str, line: str = "-", label: str = ""
) -> None:
    """Draw the mean over seeds against x, and a band from minimum to maximum.

    A run that ended early has fewer numbers: a cross marks its end, and the mean goes on without it.

    Parameters
    ----------
    axes : matplotlib axes
    x : sequence of float
        At least as many as the numbers of the longest run.
    runs : sequence of sequences of float
        One for each seed.
    colour, line, label : str
        The style of the line, and its name in the legend.
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
    """Draw the accuracies of all seeds against their rounds; a run that ended early has fewer rounds.

    Parameters are those of `band`; `found` has the result of `runs` for each seed.
    """
    longest = max((one["rounds"] for one in found), key=len)
    band(axes, longest, [one["accuracy"] for one in found], colour, line, label)
