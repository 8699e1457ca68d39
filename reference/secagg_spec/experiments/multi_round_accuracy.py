"""Figure 6 of Multi-RoundSecAgg: accuracy against rounds for six ways to choose users, IID and not.

====================  ==========================================================================
paper                 here
====================  ==========================================================================
N, K, T               `users`, `per_round`, `privacy` of settings
p_i                   `rates`, written as fractions
beta                  `alpha` of a cell
====================  ==========================================================================

`experiments.selection` chooses who is in the sum of a round. A round that cannot take place leaves the model unchanged,
and counts.

Source: Multi-RoundSecAgg, section 6; spec/multi-round.md; spec/experiments.md; claims MRS-ACC, MRS-ACC2, MRS-ACC3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from secagg_spec.experiments import aggregators, curves, runs, selection
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed

RANDOM, WEIGHTED, PARTITION = "Random", "Weighted Random", "Partition"
SETTINGS: Mapping[str, Data] = {
    "IID": {"partition": "iid", "alpha": None},
    "non-IID": {"partition": "dirichlet", "alpha": 0.5},
}
COMPARABLE = 0.02
"""The largest difference of accuracies that counts as comparable."""
_LOOKS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#444444")
_ABOUT = """Rounds of FedAvg, in which all users count the same, with SecAgg as aggregator; every twentieth round it is
run whole, and the sum of quantised updates stands for the others. Users drop out as in the paper. CIFAR-100 is not
among the data, and VGG-11 takes days on a processor: by default the bundled digits and a network of 2,410 parameters
stand for them, with N = 120 and K = 12 as in the paper, and 12 samples a user; in the preset paper it is the JPEG copy
of CIFAR-10 and the network of HeteroSAg, and in mnist MNIST and 784-100-10. The paper's hyper-parameters are in an
appendix that was not read; these are decided here."""
_RATES = [f"{tenth}/10" for tenth in (1, 2, 3, 4, 5)]


def _preset(data: str, model: str, rounds: int, seeds: int, **others: Any) -> Data:
    return {
        "data": data,
        "model": model,
        "users": 120,
        "per_round": 12,
        "privacy": [6, 4, 3],
        "rates": _RATES,
        "rounds": rounds,
        "epochs": 1,
        "batch": 10,
        "rate": 0.1,
        "evaluate": 5,
        "aggregator": {"aggregator": "secagg", "level": 2**16, "every": 20},
        "seeds": seeds,
        **others,
    }


_TINY = {"users": 24, "per_round": 6, "privacy": [3, 2], "evaluate": 2}
_PRESETS = {
    "tiny": _preset("digits", "logistic", 8, 3, **_TINY),
    "default": _preset("digits", "mlp", 200, 12, epochs=5),
    "mnist": _preset("mnist", "mlp", 200, 5, batch=50),
    "paper": _preset("cifar10", "heterosag-cnn", 300, 3, batch=50, rate=0.05, evaluate=10),
}
_RUN = ("data", "model", "users", "per_round", "privacy", "rates", "rounds", "epochs", "batch", "rate", "evaluate")


def _schemes(settings: Data) -> list[str]:
    return [RANDOM, WEIGHTED, PARTITION, *map(_named, settings["privacy"])]


def _named(T: int) -> str:
    return f"Multi-RoundSecAgg, T={T}"


def _cells(settings: Data) -> list[Data]:
    of_all = {name: settings[name] for name in (*_RUN, "aggregator")}
    return [
        {"seed": seed, "scheme": scheme, "setting": setting, **SETTINGS[setting], **of_all}
        for seed in range(settings["seeds"])
        for setting in SETTINGS
        for scheme in _schemes(settings)
    ]


def _run(cell: Data, context: Context) -> Data:
    task, sets = runs.task(cell, context), chosen(cell)
    aggregator = aggregators.build(cell["aggregator"], cell["users"], task.model.d, cell["seed"])
    found = runs.run_synchronous(
        task,
        aggregator,
        rounds=cell["rounds"],
        choose=lambda number: sets[number],
        weighted=False,
        evaluate=cell["evaluate"],
        tell=context.tell,
    )
    return {**found, "cardinality": sum(map(len, sets)) / len(sets)}


def chosen(cell: Data) -> list[list[int]]:
    """Return the users in the sum of each round of a cell; none if the round cannot take place."""
    settings = selection.Settings(
        cell["users"],
        cell["per_round"],
        tuple(cell["privacy"]),
        cell["rounds"],
        tuple(map(Fraction, cell["rates"])),
        cell["seed"],
    )
    scheme = next(one for one in selection.schemes(settings) if one.name == cell["scheme"])
    there = selection.available(settings, selection.rates_of_users(settings))
    return [[int(user) for user in row.nonzero()[0]] for row in selection.take_rounds(settings, scheme, there)]


# ------------------------------------------------------------------------------------------------ what the paper says


def _statements(settings: Data) -> tuple[Statement, ...]:
    return tuple(one for setting in SETTINGS for one in _of_setting(setting, settings["privacy"]))


def _of_setting(setting: str, privacy: Sequence[int]) -> Iterator[Statement]:
    for T in privacy:
        yield _comparable(T) if setting == "IID" else _better(T)
    yield Statement(
        "MRS-ACC3",
        f"{setting}: partition",
        "user partitioning has the worst accuracy",
        "least accuracy of the other schemes minus that of the partition",
        ">=",
        0.0,
    )


def _comparable(T: int) -> Statement:
    text = f"the accuracy with T = {T} is comparable to that of random selection"
    return Statement("MRS-ACC", f"IID: T = {T}", text, "its accuracy minus that of random selection", ">=", -COMPARABLE)


def _better(T: int) -> Statement:
    text = f"the accuracy with T = {T} is at least that of random selection"
    return Statement("MRS-ACC2", f"non-IID: T = {T}", text, "its accuracy minus that of random selection", ">=", 0.0)


def _numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    numbers: dict[str, Sequence[float]] = {}
    for setting in SETTINGS:
        of = {scheme: _accuracies(results, setting, scheme) for scheme in _schemes(settings)}
        for T in settings["privacy"]:
            numbers[f"{setting}: T = {T}"] = [a - b for a, b in zip(of[_named(T)], of[RANDOM], strict=True)]
        worst = [min(values) for values in zip(*(of[s] for s in of if s != PARTITION), strict=True)]
        numbers[f"{setting}: partition"] = [a - b for a, b in zip(worst, of[PARTITION], strict=True)]
    return numbers


def _accuracies(results: Sequence[Result], setting: str, scheme: str) -> list[float]:
    of = by_seed(results, setting=setting, scheme=scheme)
    return [accuracy(of[seed]) for seed in sorted(of)]


# ------------------------------------------------------------------------------------------------ rows and pictures


def _rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    for one in results:
        named = {name: one.cell[name] for name in ("seed", "setting", "scheme")}
        named["cardinality"] = one.found["cardinality"]
        for at, values in enumerate(zip(one.found["accuracy"], one.found["loss"], strict=True)):
            yield {**named, "round": one.found["rounds"][at], "accuracy": values[0], "loss": values[1]}


def _draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    figure, panels = plt.subplots(1, 2, figsize=(13, 5), sharey=True, layout="constrained")
    for letter, axes, setting in zip("ab", panels, SETTINGS, strict=True):
        _panel(axes, settings, results, setting)
        axes.set(title=f"({letter}) {setting}", xlabel="round", xlim=(0, settings["rounds"]))
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_ylabel("test accuracy")
    names = panels[0].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=3)
    return {"accuracy": figure}


def _panel(axes: Any, settings: Data, results: Sequence[Result], setting: str) -> None:
    for scheme, colour in zip(_schemes(settings), _LOOKS, strict=False):
        of = list(by_seed(results, setting=setting, scheme=scheme).values())
        dashed = "--" if scheme in {WEIGHTED, PARTITION} else "-"
        curves.accuracies(axes, of, colour, dashed, scheme)


EXPERIMENTS = (
    Experiment(
        name="multi-round-fig6",
        title="Accuracy against rounds for six ways to choose users, IID and not",
        figures=("Multi-RoundSecAgg, figure 6",),
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
