"""Figures 6 and 13 of HeteroSAg: the median of cells and the mean of all users, when some users attack.

====================  ==========================================
paper                 here
====================  ==========================================
N, G, n               `users`, `groups`, N / G
B                     `byzantine`: the number of users that attack, each in its own group
alpha                 `alpha` of Dirichlet's distribution, None for equal shares
sigma = 5, -5, 30     `learning.attacks`, `LABEL_SCALE`
====================  ==========================================

Source: HeteroSAg, section 5.2 and appendix J.3; spec/heterosag.md, section 7; spec/experiments.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.experiments import runs
from secagg_spec.experiments.aggregators import build
from secagg_spec.experiments.curves import accuracies, band
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed
from secagg_spec.experiments.runs import Task, Work
from secagg_spec.learning import attacks
from secagg_spec.learning.datasets import IntArray, Samples
from secagg_spec.learning.streams import ATTACK, stream

MEDIANS, MEANS = "HET-EXP2", "HET-EXP2F"
LABEL_SCALE = 30.0
LOSS, GAP = -0.02, 0.3
"""The largest loss of accuracy of a median that withstands an attack, and the smallest gain over the mean."""
NONE, GAUSSIAN, SIGN_FLIP, LABEL_FLIP, MODEL_FLIP = "none", "gaussian", "sign-flip", "label-flip", "model-sign-flip"
MEAN, MEDIAN = "mean", "median"
BOUND = 64.0
LEVELS = 2**23 + 1
_TITLES = {
    NONE: "no attack",
    GAUSSIAN: "Gaussian",
    SIGN_FLIP: "sign flip of updates",
    LABEL_FLIP: "label flip",
    MODEL_FLIP: "sign flip of models",
}
_ABOUT = """FedAvg in which all users take part in each round, with equal weights. The mean is that of SecAgg; the
median is the coordinate-wise median of the cells of HeteroSAg, with the cyclic matrix of algorithm 1. Sums of
quantised updates stand for both protocols, and both quantise with the same step of 2**-16, since the paper states no
quantiser for this experiment; numbers beyond the range (at least 64) are moved to its bound and counted. Users send
updates. Under the Gaussian attack a user claims a model of random numbers; under the sign flip it sends -5 times its
update; under the label flip it trains on labels 9 - y, since y - 9 is no label, and sends 30 times its update. The
paper says that updates are multiplied, but also that users send models; so a sign flip of the model itself is shown
as well, without a statement. So is what comes of more Byzantine users than the paper's bound allows. The groups
of the Byzantine users are drawn."""
_ABOUT_6 = f"""{_ABOUT} By default the bundled digits stand for MNIST, with 100 users in 25 groups, 6 of them Byzantine,
and batches of 3, which are the five steps of a round as with the paper's 40 of 200 samples. The preset paper has MNIST
(figure 6a), and paper-cifar10 the JPEG copies of CIFAR-10 (6b). The rate is the paper's; 100 rounds are chosen here."""
_ABOUT_13 = f"""{_ABOUT} Batches are a fifth of the mean number of samples of a user, not of each user's own. By default
the bundled digits stand for CIFAR-10, with 60 users in 15 groups, 3 of them Byzantine, so that no user is without
samples. The preset paper has CIFAR-10 as JPEG copies. The paper's rate is kept; 50 and 100 rounds are chosen here."""


# ---------------------------------------------------------------------------------------------------------- the attacks


Attack = Callable[[RealArray, RealArray, np.random.Generator], RealArray]
"""Maps the model that a user started from, the model that it trained, and draws to the model that it claims."""


def _gaussian(start: RealArray, trained: RealArray, rng: np.random.Generator) -> RealArray:
    return attacks.gaussian(trained, rng.normal(0.0, attacks.GAUSSIAN_DEVIATION, trained.size))


def _sign_flip(start: RealArray, trained: RealArray, rng: np.random.Generator) -> RealArray:
    return start - attacks.sign_flip(start - trained)


def _label_flip(start: RealArray, trained: RealArray, rng: np.random.Generator) -> RealArray:
    return start - LABEL_SCALE * (start - trained)


def _model_flip(start: RealArray, trained: RealArray, rng: np.random.Generator) -> RealArray:
    return attacks.sign_flip(trained)


ATTACKS: Mapping[str, Attack] = {
    GAUSSIAN: _gaussian,
    SIGN_FLIP: _sign_flip,
    LABEL_FLIP: _label_flip,
    MODEL_FLIP: _model_flip,
}


@dataclass(frozen=True, eq=False)
class AttackedTask(Task):
    """A task in which an attack changes the training results of some users."""

    attack: Attack
    byzantine: frozenset[int]

    def updates(
        self, users: Sequence[int], starts: RealArray, number: int, work: Work, rate: float | None = None
    ) -> RealArray:
        """Return what users send as their updates in a round; seed, round and user determine the noise."""
        sent = super().updates(users, starts, number, work, rate)
        for at, user in enumerate(users):
            if user in self.byzantine:
                start, rng = starts[at], stream(self.seed, ATTACK, number, user)
                sent[at] = start - self.attack(start, start - sent[at], rng)
        return sent


def byzantine_users(seed: int, users: int, groups: int, count: int) -> frozenset[int]:
    """Return the attackers: the first user of each of `count` drawn groups; a larger set includes a smaller one."""
    count = validate.integer("byzantine", count, 0, groups)
    first = [int(part[0]) for part in np.array_split(np.arange(users), groups)]
    return frozenset(first[group] for group in stream(seed, ATTACK).permutation(groups)[:count])


def attacked(task: Task, attack: str, byzantine: frozenset[int]) -> Task:
    """Return a task in which some users attack."""
    if attack == NONE:
        return task
    if attack == LABEL_FLIP:
        own = np.concatenate([task.parts[user] for user in sorted(byzantine)])
        samples = flipped(task.trainer.samples, own, task.dataset.classes)
        task = replace(task, trainer=replace(task.trainer, samples=samples))
    members = {one.name: getattr(task, one.name) for one in fields(task)}
    return AttackedTask(**members, attack=ATTACKS[attack], byzantine=byzantine)


def flipped(samples: Samples, places: IntArray, classes: int) -> Samples:
    """Return samples in which those at some places have the opposite labels."""
    labels = samples.y.copy()
    labels[places] = attacks.label_flip(labels[places], classes)
    return Samples(samples.x, labels)


# ------------------------------------------------------------------------------------------------------------ the cells


def _cells(settings: Data) -> list[Data]:
    return [
        {"seed": seed, "alpha": alpha, "attack": attack, "byzantine": count, "method": method, **_fixed(settings)}
        for seed in range(settings["seeds"])
        for alpha in settings["alphas"]
        for attack, count, method in _schemes(settings)
    ]


def _schemes(settings: Data) -> Iterator[tuple[str, int, str]]:
    """Yield attack, number of Byzantine users and method: mean and median up to the bound, the median beyond it."""
    yield from ((NONE, 0, method) for method in (MEAN, MEDIAN))
    for attack in (*settings["attacks"], *settings["shown"]):
        yield from ((attack, settings["byzantine"], method) for method in (MEAN, MEDIAN))
    yield from ((attack, count, MEDIAN) for attack in settings["attacks"] for count in settings["beyond"])


def _fixed(settings: Data) -> Data:
    names = ("data", "partition", "users", "groups", "model", "epochs", "batch", "rate", "rounds", "evaluate")
    return {name: settings[name] for name in names}


def _run(cell: Data, context: Context) -> Data:
    N, seed = cell["users"], cell["seed"]
    byzantine = byzantine_users(seed, N, cell["groups"], cell["byzantine"])
    task = attacked(runs.task(cell, context), cell["attack"], byzantine)
    aggregator = build(_aggregator(cell), N, task.model.d, seed)
    return runs.run_synchronous(
        task,
        aggregator,
        rounds=cell["rounds"],
        choose=lambda number: range(N),
        weighted=False,
        evaluate=cell["evaluate"],
        tell=context.tell,
    )


def _aggregator(cell: Data) -> Data:
    """Return the settings of SecAgg, or of the median of HeteroSAg, with one step; both run as the shortcut."""
    if cell["method"] == MEAN:
        return {"aggregator": "secagg", "level": 2**16, "clip": True, "every": 0}
    cells = {"groups": cell["groups"], "levels": LEVELS, "range": (-BOUND, BOUND), "method": MEDIAN}
    return {"aggregator": "heterosag", "clip": True, "every": 0, **cells}


# ------------------------------------------------------------------------------------------------ what the paper says


def _statements(settings: Data) -> tuple[Statement, ...]:
    return tuple(
        one for alpha in settings["alphas"] for attack in settings["attacks"] for one in _of_attack(alpha, attack)
    )


def _of_attack(alpha: float | None, attack: str) -> Iterator[Statement]:
    where = "" if alpha is None else f", alpha = {alpha:g}"
    text = f"under the attack {attack}{where}, the median of cells is almost as accurate as without an attack"
    measure = "accuracy of the median under the attack minus that without one"
    yield Statement(MEDIANS, _name(MEDIAN, attack, alpha), text, measure, ">=", LOSS)
    text = f"under the attack {attack}{where}, the mean is much less accurate than the median of cells"
    measure = "accuracy of the median minus that of the mean, both under the attack"
    yield Statement(MEANS, _name(MEAN, attack, alpha), text, measure, ">=", GAP)


def _name(method: str, attack: str, alpha: float | None) -> str:
    return f"{method}, {attack}" + ("" if alpha is None else f", alpha {alpha:g}")


def _numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = {}
    for alpha in settings["alphas"]:
        quiet = _accuracies(results, alpha, NONE, 0, MEDIAN)
        for attack in settings["attacks"]:
            median, mean = (_accuracies(results, alpha, attack, settings["byzantine"], how) for how in (MEDIAN, MEAN))
            found[_name(MEDIAN, attack, alpha)] = [median[seed] - quiet[seed] for seed in sorted(median)]
            found[_name(MEAN, attack, alpha)] = [median[seed] - mean[seed] for seed in sorted(median)]
    return found


def _of(results: Sequence[Result], alpha: float | None, attack: str, count: int, method: str) -> dict[int, Data]:
    return by_seed(results, alpha=alpha, attack=attack, byzantine=count, method=method)


def _accuracies(results: Sequence[Result], *scheme: Any) -> dict[int, float]:
    return {seed: accuracy(found) for seed, found in _of(results, *scheme).items()}


# ------------------------------------------------------------------------------------------------ rows and pictures


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        names = ("seed", "alpha", "attack", "byzantine", "method")
        scheme = {name: one.cell[name] for name in names} | {"moved": one.found["aggregator"]["moved"]}
        for values in zip(*(one.found[name] for name in ("rounds", "accuracy", "loss")), strict=True):
            yield scheme | dict(zip(("round", "accuracy", "loss"), values, strict=True))


def _draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    figures = {"accuracy": _curves(plt, settings, results)}
    return figures | ({"beyond-the-bound": _beyond(plt, settings, results)} if settings["beyond"] else {})


_LINES = (
    (NONE, MEAN, "#444444", ":", "mean, no attack"),
    (NONE, MEDIAN, "#009e73", "--", "median of cells, no attack"),
    ("", MEAN, "#d55e00", "-.", "mean, attacked"),
    ("", MEDIAN, "#0072b2", "-", "median of cells, attacked"),
)


def _curves(plt: Any, settings: Data, results: Sequence[Result]) -> Any:
    """Draw one panel for each attack and alpha: accuracy against rounds."""
    names, alphas = (*settings["attacks"], *settings["shown"]), settings["alphas"]
    panels = [(attack, alpha) for attack in names for alpha in alphas]
    columns = len(alphas) if len(alphas) > 1 else 2
    shape = -(-len(panels) // columns), columns
    size = (4.4 * columns, 3.3 * shape[0] + 0.6)
    figure, grid = plt.subplots(*shape, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained")
    for letter, axes, (attack, alpha) in zip("abcdefghijkl", grid.flat, panels, strict=False):
        _panel(axes, settings, results, attack, alpha)
        where = "" if alpha is None else f", alpha = {alpha:g}"
        axes.set_title(f"({letter}) {_TITLES[attack]}{where}", loc="left")
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("round")
        axes.xaxis.get_major_locator().set_params(integer=True)
    for axes in grid[:, 0]:
        axes.set_ylabel("accuracy on test images")
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _panel(axes: Any, settings: Data, results: Sequence[Result], attack: str, alpha: float | None) -> None:
    for fixed, method, colour, line, label in _LINES:
        count = 0 if fixed else settings["byzantine"]
        found = list(_of(results, alpha, fixed or attack, count, method).values())
        accuracies(axes, found, colour, line, label)
    axes.set(ylim=(0, 1.02), xlim=(0, settings["rounds"]))


def _beyond(plt: Any, settings: Data, results: Sequence[Result]) -> Any:
    """Draw the last accuracy of the median against the number of Byzantine users."""
    figure, axes = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
    (alpha,) = settings["alphas"]
    looks = zip(settings["attacks"], (("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", "-.")), strict=False)
    for attack, (colour, line) in looks:
        schemes = [(NONE, 0), *((attack, count) for count in (settings["byzantine"], *settings["beyond"]))]
        by_count = [list(_accuracies(results, alpha, *scheme, MEDIAN).values()) for scheme in schemes]
        seeds = [list(of) for of in zip(*by_count, strict=False)]
        band(axes, [count for _, count in schemes], seeds, colour, f"o{line}", _TITLES[attack])
    axes.axvline(settings["byzantine"] + 0.5, color="#444444", linewidth=1, linestyle=":")
    axes.annotate("the paper's bound", (settings["byzantine"] + 0.7, 0.03))
    axes.set_xticks([0, settings["byzantine"], *settings["beyond"]])
    axes.set(xlabel=f"Byzantine users, of {settings['users']} in {settings['groups']} groups", ylim=(0, 1.02))
    axes.set_ylabel("accuracy of the median of cells")
    axes.legend(loc="best")
    return figure


# -------------------------------------------------------------------------------------------------------- the settings


_DIGITS: Data = {"data": "digits", "model": "mlp"}
_FIVE_STEPS: Data = {"epochs": 1, "rate": 0.06}
_THREE = (GAUSSIAN, SIGN_FLIP, LABEL_FLIP)
_SIX: Data = {"partition": "iid", "alphas": (None,), "attacks": _THREE, "shown": (MODEL_FLIP,), **_FIVE_STEPS}
_ALPHAS = (0.7, 1.0, 10.0)
_TWO: Data = {"attacks": (GAUSSIAN, SIGN_FLIP), "shown": (), "beyond": ()}
_THIRTEEN: Data = {"partition": "dirichlet", "alphas": _ALPHAS, "epochs": 4, "rate": 0.02, **_TWO}
_TINY: Data = {"users": 15, "groups": 5, "byzantine": 1, "batch": 20, "rounds": 2, "evaluate": 1}
_PAPER_6: Data = {
    **_SIX, "data": "mnist", "model": "mlp", "users": 300, "groups": 75, "byzantine": 18, "beyond": (38, 60),
    "batch": 40, "rounds": 100, "evaluate": 5, "seeds": 3,
}  # fmt: skip
_PRESETS_6: Mapping[str, Data] = {
    "tiny": {**_SIX, **_DIGITS, **_TINY, "beyond": (3, 5), "seeds": 3},
    "default": {
        **_SIX, **_DIGITS, "users": 100, "groups": 25, "byzantine": 6, "beyond": (13, 20),
        "batch": 3, "rounds": 100, "evaluate": 2, "seeds": 5,
    },
    "paper": _PAPER_6,
    "paper-cifar10": {**_PAPER_6, "data": "cifar10", "model": "heterosag-cnn"},
}  # fmt: skip
_PRESETS_13: Mapping[str, Data] = {
    "tiny": {**_THIRTEEN, **_DIGITS, **_TINY, "seeds": 3},
    "default": {
        **_THIRTEEN, **_DIGITS, "users": 60, "groups": 15, "byzantine": 3,
        "batch": 5, "rounds": 50, "evaluate": 1, "seeds": 5,
    },
    "paper": {
        **_THIRTEEN, "data": "cifar10", "model": "heterosag-cnn", "users": 300, "groups": 75, "byzantine": 18,
        "batch": 33, "rounds": 100, "evaluate": 5, "seeds": 3,
    },
}  # fmt: skip


def _experiment(name: str, title: str, figure: str, about: str, presets: Mapping[str, Data]) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        figures=(figure,),
        about=about,
        presets=presets,
        cells=_cells,
        run=_run,
        statements=_statements,
        numbers=_numbers,
        rows=_rows,
        draw=_draw,
    )


EXPERIMENTS = (
    _experiment(
        "heterosag-fig6",
        "Mean and median of cells under three attacks, with equal shares of the data",
        "HeteroSAg, figure 6",
        _ABOUT_6,
        _PRESETS_6,
    ),
    _experiment(
        "heterosag-fig13",
        "Mean and median of cells under two attacks, with Dirichlet's shares of the data",
        "HeteroSAg, figure 13",
        _ABOUT_13,
        _PRESETS_13,
    ),
)
