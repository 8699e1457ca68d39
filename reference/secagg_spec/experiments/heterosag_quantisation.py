"""Figures 5, 9 and 11 of HeteroSAg: heterogeneous levels against two levels and against no quantisation.

====================  ==========================================
paper                 here
====================  ==========================================
N, G                  ``users``, the length of ``levels``
K_0, ..., K_4         `LEVELS`
r1, r2                ``-range``, ``range``
rates of the groups   `RATES`, in Mb/s
====================  ==========================================

The three schemes use the same users, batches and draws. Time is how long a user of each group needs to send its masked
segments, by the formula of appendix J.1; a round lasts until the slowest group has sent.

Source: HeteroSAg, section 5.1, appendices J.1 and J.2; claims HET-EXP1, HET-TAB4, HET-TAB4B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.experiments import aggregators, runs
from secagg_spec.experiments.curves import accuracies
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed
from secagg_spec.protocols.heterosag.costs import masked_bits
from secagg_spec.protocols.heterosag.plan import Parameters, cells_of

LEVELS = (2, 6, 8, 10, 12)
FLOAT = 2**32
"""K of numbers that are sent unquantised, with 32 bits each, as the paper counts them."""
SCHEMES: Mapping[str, tuple[int, ...] | None] = MappingProxyType(
    {"heterogeneous": LEVELS, "two levels": (2,) * 5, "no quantisation": None}
)
RATES = (1.0, 2.0, 2.0, 2.0, 2.0)
"""Mb/s of each group: group 0 are the stragglers."""
CLOSE = -0.03
SLOWER = 150
"""The round from which the learning rate of figure 11 falls."""
_LOOKS = {"heterogeneous": ("#009e73", "-"), "two levels": ("#d55e00", "--"), "no quantisation": ("#0072b2", "-.")}

_SORTED: Data = {
    "data": "digits",
    "partition": "by-class",
    "alphas": [None],
    "users": 25,
    "model": "mlp",
    "epochs": 5,
    "batch": 6,
    "rate": 0.03,
    "slower": None,
    "rounds": 100,
    "range": 0.25,
    "better": 0.15,
    "every": 50,
    "evaluate": 2,
    "seeds": 5,
}
_DIRICHLET: Data = {
    **_SORTED,
    "partition": "dirichlet",
    "alphas": [0.7, 1.0, 10.0],
    "users": 50,
    "better": 0.0,
    "seeds": 3,
}
_PAPER: Data = {**_SORTED, "data": "mnist", "batch": 240, "rounds": 200, "every": 0, "evaluate": 5, "seeds": 3}
_TINY: Data = {"users": 15, "rounds": 4, "epochs": 1, "every": 2, "evaluate": 1, "seeds": 3}


def cells(settings: Data) -> list[Data]:
    """Return one cell for each seed, each alpha and each scheme."""
    shared = {name: value for name, value in settings.items() if name not in {"alphas", "better", "seeds"}}
    return [
        {**shared, "alpha": alpha, "scheme": scheme, "seed": seed}
        for seed in range(settings["seeds"])
        for alpha in settings["alphas"]
        for scheme in SCHEMES
    ]


def run(cell: Data, context: Context) -> Data:
    """Train with one scheme."""
    task = runs.task(cell, context)
    N, d = cell["users"], task.model.d
    cells_alone = {"aggregator": "heterosag", "groups": len(LEVELS), "matrix": "cyclic", "method": "mean"}
    levels, ends = SCHEMES[cell["scheme"]], (-cell["range"], cell["range"])
    quantiser = {"levels": levels, "range": ends, "clip": True, "every": cell["every"]}
    settings = cells_alone if levels is None else {**cells_alone, **quantiser}
    found = runs.run_synchronous(
        task,
        aggregators.build(settings, N, d, cell["seed"]),
        rounds=cell["rounds"],
        choose=lambda number: range(N),
        weighted=False,
        rate_of=partial(learning_rate, cell["rate"], cell["slower"]),
        evaluate=cell["evaluate"],
        tell=context.tell,
    )
    return {**found, "d": d, "megabits": megabits(cell, d)}


def learning_rate(rate: float, slower: int | None, round: int) -> float:
    """Return eta of a round: constant, or from round `slower` on divided by 1 + 0.02 t (appendix J.2.2)."""
    return rate if slower is None or round <= slower else rate / (1 + 0.02 * round)


# ------------------------------------------------------------------------------------------- communication time


def megabits(cell: Data, d: int) -> list[float]:
    """Return how many Mb a user of each group sends in a round, by the formula of appendix J.1."""
    N, G, levels = cell["users"], len(LEVELS), SCHEMES[cell["scheme"]]
    sizes = tuple(len(part) for part in np.array_split(np.empty(N, bool), G))
    plan = Parameters(N, 0, 1, N // 2 + 1, d, sizes, (1,) * G, levels or (2,) * G, Range(-1.0, 1.0), "cyclic")
    bits = _bits_of_floats if levels is None else masked_bits
    return [bits(plan, sum(sizes[:group])) / 1e6 for group in range(G)]


def _bits_of_floats(plan: Parameters, user: int) -> int:
    """Return the bits of all masked segments of a user whose numbers have 32 bits each."""
    return sum(cell.length * (len(cell.members) * (FLOAT - 1)).bit_length() for cell in cells_of(plan, user))


def seconds(found: Data) -> float:
    """Return the sending time of a round: the slowest group's megabits over its rate."""
    return max(float(bits) / rate for bits, rate in zip(found["megabits"], RATES, strict=True))


# ------------------------------------------------------------------------------------------------- statements


def statements(settings: Data) -> tuple[Statement, ...]:
    """Return the statements of section 5.1 and appendix J.2, for each distribution of the labels."""
    return tuple(statement for alpha in settings["alphas"] for statement in _statements(alpha, settings["better"]))


def _statements(alpha: float | None, bound: float) -> Iterator[Statement]:
    of = "" if alpha is None else f", alpha = {alpha:g}"
    close = f"heterogeneous levels are about as accurate as no quantisation{of}"
    better = f"heterogeneous levels are {f'{100 * bound:g} % ' if bound else ''}more accurate than two levels{of}"
    same = f"heterogeneous levels need no more time than two levels{of}"
    yield Statement("HET-EXP1", _name("close", alpha), close, "difference of the accuracies", ">=", CLOSE)
    yield Statement("HET-EXP1", _name("better", alpha), better, "difference of the accuracies", ">=", bound)
    yield Statement("HET-EXP1", _name("time", alpha), same, "ratio of the times of a round", "<=", 1.0)


def _name(what: str, alpha: float | None) -> str:
    return what if alpha is None else f"{what}-{alpha:g}"


def numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return the differences of accuracies and the ratios of times, by statement and seed."""
    found: dict[str, list[float]] = {}
    for alpha in settings["alphas"]:
        mine, two, none = (by_seed(results, alpha=alpha, scheme=scheme) for scheme in SCHEMES)
        found[_name("close", alpha)] = [accuracy(mine[seed]) - accuracy(none[seed]) for seed in mine]
        found[_name("better", alpha)] = [accuracy(mine[seed]) - accuracy(two[seed]) for seed in mine]
        found[_name("time", alpha)] = [seconds(mine[seed]) / seconds(two[seed]) for seed in mine]
    return found


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """Yield the accuracy of each evaluated round of each cell, and the time spent on sending so far."""
    for result in results:
        chosen = {name: result.cell[name] for name in ("scheme", "alpha", "seed")}
        for round, value in zip(result.found["rounds"], result.found["accuracy"], strict=True):
            yield {**chosen, "round": round, "accuracy": value, "seconds": seconds(result.found) * round}


# --------------------------------------------------------------------------------------------------- pictures


def draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the accuracy against the rounds for each distribution, and the time of all rounds for each scheme."""
    alphas = settings["alphas"]
    width = 4.6 * (len(alphas) + 1)
    figure, panels = plt.subplots(1, len(alphas) + 1, figsize=(width, 4.2), layout="constrained")
    for axes, alpha in zip(panels, alphas, strict=False):
        _accuracies(axes, results, alpha)
    _times(panels[-1], settings, results)
    return {"accuracy-and-time": figure}


def _accuracies(axes: Any, results: Sequence[Result], alpha: float | None) -> None:
    for scheme, (colour, line) in _LOOKS.items():
        found = list(by_seed(results, alpha=alpha, scheme=scheme).values())
        accuracies(axes, found, colour, line, scheme)
    title = "sorted by class" if alpha is None else f"Dirichlet, alpha = {alpha:g}"
    axes.set(title=title, xlabel="round", ylabel="test accuracy", ylim=(0, 1))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="best")


def _times(axes: Any, settings: Data, results: Sequence[Result]) -> None:
    for place, scheme in enumerate(SCHEMES):
        found = next(r.found for r in results if r.cell["scheme"] == scheme)
        total = seconds(found) * settings["rounds"]
        axes.bar(place, total, color=_LOOKS[scheme][0])
        axes.annotate(f"{total:.3g} s", (place, total), ha="center", va="bottom")
    axes.set_xticks(range(len(SCHEMES)), [name.replace(" ", "\n") for name in SCHEMES])
    axes.set(title=f"time to send, {settings['rounds']} rounds", ylabel="seconds")
    axes.margins(y=0.1)
    axes.grid(visible=False, axis="x")


# ------------------------------------------------------------------------------------------------ experiments

_ABOUT = (
    "N users in five groups, a cyclic matrix of segments, local SGD of five epochs, the mean of all users. The paper"
    " gives neither r1 nor r2: updates are carried between -range and range here, and what lies outside is moved to"
    " the bound and counted. What is quantised is the update, not the model. Time is that of sending, by the formula of"
    " appendix J.1."
)


def _experiment(name: str, number: int, title: str, presets: Mapping[str, Data], about: str) -> Experiment:
    return Experiment(
        name,
        title,
        (f"HeteroSAg, figure {number}",),
        _ABOUT + about,
        {kind: MappingProxyType(dict(settings)) for kind, settings in presets.items()},
        cells,
        run,
        statements,
        numbers,
        rows,
        draw,
    )


EXPERIMENTS = (
    _experiment(
        "heterosag-fig5",
        5,
        "Heterogeneous levels, two levels and none, with users of one class or two",
        {"default": _SORTED, "paper": _PAPER, "tiny": {**_SORTED, **_TINY}},
        " The default has the digits, with batches that give as many steps as the paper's.",
    ),
    _experiment(
        "heterosag-fig9",
        9,
        "Heterogeneous levels, two levels and none, with 100 users of one class or two",
        {
            "default": {**_SORTED, "users": 100, "batch": 2, "better": 0.0, "rounds": 60, "every": 60, "seeds": 12},
            "paper": {**_PAPER, "users": 100, "batch": 60, "better": 0.0},
            "tiny": {**_SORTED, **_TINY, "users": 20, "better": 0.0},
        },
        " The default has the digits, with batches that give nearly as many steps as the paper's.",
    ),
    _experiment(
        "heterosag-fig11",
        11,
        "Heterogeneous levels, two levels and none, with Dirichlet's shares of the data",
        {
            "default": {**_DIRICHLET, "rounds": 60, "rate": 0.02, "slower": SLOWER},
            "paper": {
                **_DIRICHLET,
                "data": "cifar10",
                "model": "heterosag-cnn",
                "users": 100,
                "batch": 100,
                "rate": 0.02,
                "slower": SLOWER,
                "rounds": 250,
                "every": 0,
                "evaluate": 5,
            },
            "tiny": {**_DIRICHLET, **_TINY, "alphas": [1.0, 10.0]},
        },
        " A batch is a fifth of the mean number of samples of a user; the paper's is a fifth of the user's own.",
    ),
)
