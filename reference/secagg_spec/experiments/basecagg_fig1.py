"""Figure 1 of BASecAgg: its accuracy next to that of FedBuff, with two functions of staleness.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, tau_max         ``users``, ``buffer``, ``tau_max``
E, B, eta_l, lambda   ``epochs``, ``batch``, ``rate``, ``decay``
c_l, c_g              ``level``, ``c_g``
eta_g                 1
====================  ==========================================

FedBuff averages the updates themselves with weights s(tau); BASecAgg quantises both. FedAsync and FedAvg are also
drawn, without statements about them.

Source: BASecAgg, section 4 and appendix C; claim BAS-FIG1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from secagg_spec.arithmetic import staleness
from secagg_spec.experiments import aggregators, runs
from secagg_spec.experiments.curves import accuracies
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, accuracy, by_seed

WEIGHTINGS: Mapping[str, str] = MappingProxyType({"constant": "constant", "polynomial": "polynomial:1"})
"""The functions of staleness: s = 1, and s = 1 / (1 + tau)."""
BUFFERED = ("FedBuff", "BASecAgg")
MARGIN = 0.01
MIXING = 0.6
"""alpha of FedAsync."""
_LOOKS = {
    ("FedBuff", "constant"): ("#0072b2", "-"),
    ("BASecAgg", "constant"): ("#e69f00", "--"),
    ("FedBuff", "polynomial"): ("#0072b2", "-"),
    ("BASecAgg", "polynomial"): ("#e69f00", "--"),
    ("FedAsync", "polynomial"): ("#cc79a7", ":"),
    ("FedAvg", None): ("#444444", "-."),
}
"""The schemes with their weightings, and their line styles."""


def cells(settings: Data) -> list[Data]:
    """Return one cell for each seed and each scheme."""
    shared = {name: value for name, value in settings.items() if name != "seeds"}
    return [
        {**shared, "scheme": scheme, "weighting": weighting, "seed": seed}
        for seed in range(settings["seeds"])
        for scheme, weighting in _LOOKS
    ]


def run(cell: Data, context: Context) -> Data:
    """Train with one scheme."""
    task = runs.task(cell, context)
    if cell["scheme"] == "FedAvg":
        return _fedavg(cell, task, context)
    if cell["scheme"] == "FedAsync":
        return _fedasync(cell, task, context)
    return buffered(cell, task, context, _aggregator(cell, task), cell["c_g"] if cell["scheme"] == "BASecAgg" else None)


def buffered(cell: Data, task: runs.Task, context: Context, aggregator: Any, c_g: int | None) -> Data:
    """Return the course of FedBuff with an aggregator; with whole weights if there is a c_g."""
    return runs.run_buffered(
        task,
        aggregator,
        rounds=cell["rounds"],
        buffer=cell["buffer"],
        tau_max=cell["tau_max"],
        staleness=_function(cell),
        c_g=c_g,
        evaluate=cell["evaluate"],
        tell=context.tell,
    )


def _aggregator(cell: Data, task: runs.Task) -> Any:
    settings = {name: cell[name] for name in ("level", "c_g", "tau_max", "every")}
    settings |= {"aggregator": "basecagg", "staleness": _function(cell)}
    chosen = settings if cell["scheme"] == "BASecAgg" else {"aggregator": "plain"}
    return aggregators.build(chosen, cell["users"], task.model.d, cell["seed"])


def _function(cell: Data) -> staleness.Staleness:
    return staleness.read("staleness", WEIGHTINGS[cell["weighting"]])


def _fedavg(cell: Data, task: runs.Task, context: Context) -> Data:
    """Return the course of FedAvg with K users in a round and no stale updates."""
    return runs.run_synchronous(
        task,
        aggregators.build({"aggregator": "plain"}, cell["users"], task.model.d, cell["seed"]),
        rounds=cell["rounds"],
        choose=runs.uniform(task, cell["buffer"]),
        evaluate=cell["evaluate"],
        tell=context.tell,
    )


def _fedasync(cell: Data, task: runs.Task, context: Context) -> Data:
    """Return the course of FedAsync, counting K uploads as a round."""
    K = cell["buffer"]
    found = runs.run_fedasync(
        task,
        rounds=cell["rounds"] * K,
        tau_max=cell["tau_max"],
        staleness=_function(cell),
        mixing=MIXING,
        evaluate=cell["evaluate"] * K,
        tell=context.tell,
    )
    return {**found, "rounds": [uploads / K for uploads in found["rounds"]]}


# -------------------------------------------------------------------------------------------------- statements


def statements(settings: Data) -> tuple[Statement, ...]:
    """Return the statements of section 4: for each function of staleness the two accuracies are almost the same."""
    return tuple(statement for weighting in WEIGHTINGS for statement in _statements(weighting))


def _statements(weighting: str) -> Iterator[Statement]:
    measure = "accuracy of BASecAgg minus that of FedBuff"
    worse = f"with {weighting} weights BASecAgg is not less accurate than FedBuff"
    better = f"with {weighting} weights BASecAgg is not more accurate than FedBuff"
    yield Statement("BAS-FIG1", f"not-worse-{weighting}", worse, measure, ">=", -MARGIN)
    yield Statement("BAS-FIG1", f"not-better-{weighting}", better, measure, "<=", MARGIN)


def numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return the differences of the accuracies, by statement and seed."""
    found: dict[str, list[float]] = {}
    for weighting in WEIGHTINGS:
        plain, mine = (by_seed(results, scheme=scheme, weighting=weighting) for scheme in BUFFERED)
        differences = [accuracy(mine[seed]) - accuracy(plain[seed]) for seed in mine]
        found |= {f"not-worse-{weighting}": differences, f"not-better-{weighting}": differences}
    return found


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """Yield accuracy and loss of each evaluated round of each cell."""
    for result in results:
        chosen = {name: result.cell[name] for name in ("scheme", "weighting", "seed")}
        found = result.found
        for round, value, loss in zip(found["rounds"], found["accuracy"], found["loss"], strict=True):
            yield {**chosen, "round": round, "accuracy": value, "loss": loss}


# ---------------------------------------------------------------------------------------------------- pictures


def draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the accuracy against the rounds, with a panel for each function of staleness."""
    figure, panels = plt.subplots(1, 2, figsize=(10.4, 4.4), layout="constrained", sharey=True)
    for axes, weighting in zip(panels, WEIGHTINGS, strict=True):
        for (scheme, function), (colour, line) in _LOOKS.items():
            if function in (weighting, None):
                found = list(by_seed(results, scheme=scheme, weighting=function).values())
                accuracies(axes, found, colour, line, scheme)
        formula = "s(τ) = 1" if weighting == "constant" else "s(τ) = 1 / (1 + τ)"
        axes.set(title=f"{weighting} weights, {formula}", xlabel=_rounds(settings), ylim=(0, 1))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(loc="best")
    panels[0].set_ylabel("test accuracy")
    return {"accuracy": figure}


def _rounds(settings: Data) -> str:
    return f"round, of {settings['buffer']} updates"


# --------------------------------------------------------------------------------------------------- experiment

DEFAULT: Data = {
    "data": "digits",
    "partition": "iid",
    "users": 100,
    "buffer": 10,
    "tau_max": 10,
    "model": "mlp",
    "epochs": 5,
    "batch": 5,
    "rate": 0.03,
    "decay": 5e-4,
    "level": 2**16,
    "c_g": 2**6,
    "rounds": 150,
    "every": 75,
    "evaluate": 2,
    "seeds": 5,
}
PAPER: Data = {
    **DEFAULT,
    "data": "mnist",
    "model": "lenet5",
    "epochs": 1,
    "batch": 50,
    "rate": 0.01,
    "rounds": 500,
    "every": 0,
    "evaluate": 5,
    "seeds": 3,
}
CIFAR: Data = {**PAPER, "data": "cifar10", "model": "mcmahan-cnn", "rate": 0.1}
TINY: Data = {**DEFAULT, "users": 8, "buffer": 4, "tau_max": 2, "rounds": 4, "epochs": 1, "every": 2, "evaluate": 1}
ABOUT = (
    "N users hold as many samples each, drawn at random; the updates of K of them make a round. The paper says neither"
    " how many epochs a user trains nor how many rounds there are: with its data it is one epoch here, 12 steps on"
    " MNIST, as in FedBuff, and 500 rounds; with the digits 15 steps in five epochs, and fewer rounds."
)

EXPERIMENTS = (
    Experiment(
        "basecagg-fig1",
        "BASecAgg beside FedBuff, with constant and polynomial weights of staleness",
        ("BASecAgg, figure 1",),
        ABOUT + " The preset paper is figure 1(a), paper-cifar10 is figure 1(b), with the network of McMahan et al. in"
        " place of one that the paper takes from elsewhere. The learning rate on the digits was chosen for FedBuff.",
        {
            "default": MappingProxyType(dict(DEFAULT)),
            "paper": MappingProxyType(dict(PAPER)),
            "paper-cifar10": MappingProxyType(dict(CIFAR)),
            "tiny": MappingProxyType({**TINY, "seeds": 3}),
        },
        cells,
        run,
        statements,
        numbers,
        rows,
        draw,
    ),
)
