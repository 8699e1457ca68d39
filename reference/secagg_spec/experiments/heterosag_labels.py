"""Figures 10 and 12 of HeteroSAg: the labels that users hold when their shares follow Dirichlet's distribution.

====================  ==========================================================================
paper                 here
====================  ==========================================================================
N, alpha              `users`, `alpha` of a cell
label distribution    `counts` (N, classes): the samples of each label that each user holds, for the first seed
====================  ==========================================================================

The *distance* of a user is the total variation distance between its shares of labels and those of all the data. A label
is *scarce* for a user if less than a hundredth of its samples have it.

Source: HeteroSAg, appendices J.2 and J.3; spec/experiments.md, section 2 (EXP-05).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed
from secagg_spec.learning import datasets, partitions
from secagg_spec.learning.streams import PARTITION, stream

CLAIM = "HET-DIRICHLET"
SCARCE = 0.01
_ABOUT = """The labels of the training samples of each of N users, partitioned by Dirichlet's distribution; nothing is
trained. The paper draws the partition with FedML, which gives no further samples of a class to users that have their
N-th of all, and draws again until each user has ten samples: here the shares are those of Dirichlet, without such a
repair. By default the bundled digits stand for CIFAR-10, with fewer users."""
_COLOURS = (
    "#332288",
    "#88ccee",
    "#44aa99",
    "#117733",
    "#999933",
    "#ddcc77",
    "#cc6677",
    "#882255",
    "#aa4499",
    "#bbbbbb",
)


def _preset(data: str, users: tuple[int, ...], seeds: int) -> Data:
    return {"data": data, "users": users, "alphas": (0.7, 1.0, 10.0), "seeds": seeds}


_PRESETS = {
    "tiny": _preset("digits", (12,), 3),
    "default": _preset("digits", (30, 60), 10),
    "paper": _preset("cifar10", (100, 300), 10),
}


def _cells(settings: Data) -> list[Data]:
    return [
        {"seed": seed, "data": settings["data"], "users": users, "alpha": alpha, "drawn": seed == 0}
        for seed in range(settings["seeds"])
        for users in settings["users"]
        for alpha in settings["alphas"]
    ]


def _run(cell: Data, context: Context) -> Data:
    dataset = datasets.load(cell["data"], context.data)
    rng = stream(cell["seed"], PARTITION)
    parts = partitions.split(dataset, "dirichlet", cell["users"], rng, cell["alpha"])
    counts = partitions.label_counts(dataset.train.y, parts, dataset.classes)
    context.tell(1.0)
    found = {"distance": distance(counts), "scarce": scarce(counts)}
    return found | ({"counts": counts.tolist()} if cell["drawn"] else {})


def shares(counts: datasets.IntArray) -> RealArray:
    """Return the shares of labels of each user, (N, classes), from counts of the same shape."""
    return np.asarray(counts / counts.sum(axis=1, keepdims=True), dtype=np.float64)


def distance(counts: datasets.IntArray) -> float:
    """Return the mean over users of the total variation distance between their labels and all labels, in [0, 1]."""
    everyone = counts.sum(axis=0) / counts.sum()
    return float(np.abs(shares(counts) - everyone).sum(axis=1).mean() / 2)


def scarce(counts: datasets.IntArray) -> float:
    """Return the mean over users of the number of labels that less than a hundredth of their samples have."""
    return float((shares(counts) < SCARCE).sum(axis=1).mean())


# ------------------------------------------------------------------------------------------------ what the paper says


def _statements(settings: Data) -> tuple[Statement, ...]:
    return tuple(one for users in settings["users"] for one in _of_users(users, settings["alphas"]))


def _of_users(users: int, alphas: Sequence[float]) -> Iterator[Statement]:
    for less, more in pairwise(alphas):
        text = (
            f"with {users} users, labels are nearer to those of all the data with alpha = {more:g} than with {less:g}"
        )
        measure = f"mean distance with alpha = {less:g} minus that with {more:g}"
        yield Statement(CLAIM, _nearer(users, less, more), text, measure, ">=", 0.0)
    text = f"with {users} users and alpha = {alphas[0]:g}, each has very few samples of some labels"
    measure = f"mean number of labels that less than a hundredth of a user's samples have, alpha = {alphas[0]:g}"
    yield Statement(CLAIM, _few(users), text, measure, ">=", 1.0)


def _nearer(users: int, less: float, more: float) -> str:
    return f"N = {users}: alpha {less:g} to {more:g}"


def _few(users: int) -> str:
    return f"N = {users}: scarce labels"


def _numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = {}
    for users in settings["users"]:
        of = [by_seed(results, users=users, alpha=alpha) for alpha in settings["alphas"]]
        for (less, with_less), (more, with_more) in pairwise(zip(settings["alphas"], of, strict=True)):
            differences = [with_less[seed]["distance"] - with_more[seed]["distance"] for seed in sorted(with_less)]
            found[_nearer(users, less, more)] = differences
        found[_few(users)] = [of[0][seed]["scarce"] for seed in sorted(of[0])]
    return found


# ------------------------------------------------------------------------------------------------ rows and pictures


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        named = {name: one.cell[name] for name in ("seed", "users", "alpha")}
        yield {**named, "distance": one.found["distance"], "scarce labels": one.found["scarce"]}


def _draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    return {f"labels-{users}-users": _figure(plt, settings, results, users) for users in settings["users"]}


def _figure(plt: Any, settings: Data, results: Sequence[Result], users: int) -> Any:
    """Draw one panel for each alpha, for the first seed: a bar for each user."""
    alphas = settings["alphas"]
    figure, panels = plt.subplots(len(alphas), 1, figsize=(11, 2.6 * len(alphas)), sharex=True, layout="constrained")
    for letter, axes, alpha in zip("abcdefgh", panels, alphas, strict=False):
        of = by_seed(results, users=users, alpha=alpha)
        stack(axes, np.array(of[0]["counts"], dtype=np.int64))
        mean = np.mean([found["distance"] for found in of.values()])
        axes.set_title(f"({letter}) alpha = {alpha:g}: mean distance from all the data {mean:.2f}", loc="left")
    panels[-1].set_xlabel(f"user, of {users}")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], title="label", loc="outside right center")
    return figure


def stack(axes: Any, counts: datasets.IntArray) -> None:
    """Draw the shares of labels as one bar for each user; `counts` is (N, classes)."""
    parts = shares(counts).T
    bottoms = np.cumsum(parts, axis=0) - parts
    for label, (heights, bottom) in enumerate(zip(parts, bottoms, strict=True)):
        colour = _COLOURS[divmod(label, len(_COLOURS))[1]]
        axes.bar(range(len(counts)), heights, 1.0, bottom, color=colour, label=str(label), linewidth=0)
    axes.set(ylabel="share of samples", ylim=(0, 1), xlim=(-0.5, len(counts) - 0.5))
    axes.grid(visible=False)


EXPERIMENTS = (
    Experiment(
        name="heterosag-fig10",
        title="Which labels users hold, for three parameters of Dirichlet's distribution",
        figures=("HeteroSAg, figure 10", "HeteroSAg, figure 12"),
        about=_ABOUT,
        presets=_PRESETS,
        cells=_cells,
        run=_run,
        statements=_statements,
        numbers=_numbers,
        rows=_rows,
        draw=_draw,
    ),
)
