"""Table 1 and figures 2 and 4 of BASA: the time until a model is good enough, synchronous and asynchronous.

========================  ==========================================================
paper                     here
========================  ==========================================================
SFL                       FedAvg: `synchronous` rounds of `at_once` users
AFL                       FedBuff: `buffered` updates of users who come and go, `buffer` of them in a sum
No SA                     no protocol
LSA                       LightSecAgg; in AFL BASecAgg
beta                      `beta`, the mean of the exponential delays
concurrent users          `at_once`
========================  ==========================================================

A cell measures the cost of its protocol, runs its clock, and trains with the users and the staleness from the clock.
A synchronous course is the same for all beta: it is trained once, and timed for each beta. In AFL each beta and each
scheme has its own course, since the order of the updates depends on the cost of the protocol.

Source: BASA, sections 4.2 and 4.3, appendices B and C.1; spec/experiments.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic import staleness
from secagg_spec.experiments import aggregators, costs, runs
from secagg_spec.experiments.curves import band
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed
from secagg_spec.learning.clock import Buffered, ServerStep, Work, buffered, synchronous

SHORTEST, OVERHEAD, NO_DELAY, GROWS, AT_ONCE = "BASA-RUN1", "BASA-RUN2", "BASA-RUN3", "BASA-RUN4", "BASA-RUN5"
NO_SA, BASA, BY_POSITION = "No SA (AFL)", "BASA (AFL)", "BASA by position (AFL)"
SECAGG, LSA_SFL, LSA_AFL = "SecAgg (SFL)", "LSA (SFL)", "LSA (AFL)"
HELD = 3
"""A target is held at a step if the accuracy is at least the target at this many steps, from this one on."""


@dataclass(frozen=True)
class Scheme:
    """A row of the table: the aggregator, the protocol whose costs are measured, and its line style."""

    aggregator: str
    protocol: str
    buffered: bool
    look: tuple[str, str, str]


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        NO_SA: Scheme("plain", "none", True, ("#444444", ":", "P")),
        BASA: Scheme("basa", "basa by attributes", True, ("#0072b2", "-", "o")),
        BY_POSITION: Scheme("basa", "basa", True, ("#56b4e9", "--", "s")),
        SECAGG: Scheme("secagg", "secagg", False, ("#009e73", "-.", "^")),
        LSA_SFL: Scheme("lightsecagg", "lightsecagg", False, ("#e69f00", "--", "v")),
        LSA_AFL: Scheme("basecagg", "basecagg", True, ("#d55e00", "-.", "D")),
    }
)

_ABOUT = """AFL is asynchronous, SFL synchronous learning; SA is secure aggregation, LSA LightSecAgg, in AFL BASecAgg.
The time is simulated: a user trains for a fixed time and a delay, and protocols cost what they were
measured to cost on the machine of the run, by the implementations of this project, without a network. The fixed time is
not in the paper, but its table has it: with LSA in SFL, the times for beta = 0 and 3 on MNIST differ by 121.2 s, which
is 9.95 rounds of 3 H_32 s each, so a round took 0.78 s for beta = 0; a user trains for 0.75 s here (on FEMNIST for
4.95 s, on CIFAR-10 for 1.86 s). The target is held when three steps in a row are not below it; a run that does not get
there counts with the time of its last step. FedBuff weights by 1/sqrt(1 + tau), nobody is in a buffer twice, users and
server have no momentum, and no update is refused for its age. BASA encrypts by attributes, as in the paper; beside it,
with one key pair for each position. The sums of quantised updates stand for the protocols, which run when costs are
measured. The server of LSA in AFL solves a linear system of as many unknowns as users answer, 70 % of all: with 1000
users that takes seconds, and with a faster decoder it would not. By default the bundled digits stand for the paper's
data, and 100 users for its 1000 or 3400."""

_DIGITS: Data = {
    "data": "digits",
    "partition": "dirichlet",
    "alpha": 0.5,
    "users": 100,
    "model": "logistic",
    "epochs": 5,
    "batch": 10,
    "rate": 0.05,
    "target": 0.8,
    "training": 0.75,
    "buffer": 10,
    "rounds": 60,
    "steps": 150,
    "every": 0,
    "repeats": 3,
    "seeds": 5,
}
_TINY: Data = {
    **_DIGITS,
    "users": 16,
    "buffer": 3,
    "rounds": 4,
    "steps": 8,
    "epochs": 1,
    "repeats": 1,
    "seeds": 3,
    "target": 0.2,
}
_MNIST: Data = {**_DIGITS, "data": "mnist", "users": 1000, "rounds": 40}
_WRITERS: Data = {
    **_DIGITS,
    "data": "mnist-writers",
    "partition": "writers",
    "alpha": None,
    "users": 500,
    "model": "femnist-cnn",
    "training": 4.95,
    "target": 0.75,
    "rounds": 150,
    "steps": 600,
    "seeds": 3,
}
_CIFAR: Data = {
    **_DIGITS,
    "data": "cifar10",
    "users": 210,
    "model": "flsim-cnn",
    "training": 1.86,
    "target": 0.5,
    "rounds": 300,
    "steps": 1500,
    "seeds": 3,
}
_MOST = 28
"""The seeds from 0 on whose partition gives each of 100 users some of the digits: that of seed 28 leaves one none."""
_TABLE = (NO_SA, BASA, BY_POSITION, SECAGG, LSA_SFL, LSA_AFL)


# ------------------------------------------------------------------------------------------------------------- a cell


def cells(settings: Data) -> list[Data]:
    """Return a cell for each seed, scheme and number of concurrent users; in AFL also for each beta."""
    shared = {name: value for name, value in settings.items() if name not in {"schemes", "betas", "at_once", "seeds"}}
    return [
        {"seed": seed, "scheme": scheme, "at_once": at_once, "betas": betas, **shared}
        for seed in range(settings["seeds"])
        for at_once in settings["at_once"]
        for scheme in settings["schemes"]
        for betas in _together(scheme, list(settings["betas"]))
    ]


def _together(scheme: str, betas: list[float]) -> list[list[float]]:
    """Return the scales of delays that share one training."""
    return [[beta] for beta in betas] if SCHEMES[scheme].buffered else [betas]


def run(cell: Data, context: Context) -> Data:
    """Train with one scheme; return its course, its costs (EXP-20), and the time of each step for each beta."""
    task = runs.task(cell, context)
    scheme = SCHEMES[cell["scheme"]]
    in_a_sum = cell["buffer"] if scheme.buffered else cell["at_once"]
    measured = costs.measure(costs.Setting(scheme.protocol, cell["users"], in_a_sum, task.model.d), cell["repeats"])
    settings = {"aggregator": scheme.aggregator, "every": cell["every"], **_WEIGHTS}
    aggregator = aggregators.build(settings, cell["users"], task.model.d, cell["seed"])
    train = _buffered if scheme.buffered else _synchronous
    clocks, found = train(cell, task, aggregator, measured, context)
    times = [[step.time for step in steps] for steps in clocks]
    return {**found, "d": task.model.d, "costs": measured, "times": times, "ages": [_age(steps) for steps in clocks]}


_WEIGHTS: Data = {"staleness": "polynomial:1/2", "c_g": 64, "tau_max": 1000}


def _synchronous(
    cell: Data, task: runs.Task, aggregator: aggregators.Aggregator, measured: Data, context: Context
) -> tuple[list[tuple[ServerStep, ...]], Data]:
    choose = runs.uniform(task, cell["at_once"])
    chosen = [choose(number) for number in range(cell["rounds"])]
    clocks = [
        synchronous(chosen, Work(cell["training"], beta), costs.costs(measured), cell["seed"]) for beta in cell["betas"]
    ]
    found = runs.run_synchronous(task, aggregator, rounds=cell["rounds"], choose=choose, tell=context.tell)
    return clocks, found


def _buffered(
    cell: Data, task: runs.Task, aggregator: aggregators.Aggregator, measured: Data, context: Context
) -> tuple[list[tuple[ServerStep, ...]], Data]:
    [beta] = cell["betas"]
    plan = Buffered(cell["users"], cell["at_once"], cell["buffer"])
    steps = buffered(plan, cell["steps"], Work(cell["training"], beta), costs.costs(measured), cell["seed"])
    found = runs.run_buffered(
        task,
        aggregator,
        rounds=cell["steps"],
        buffer=cell["buffer"],
        tau_max=max(max(step.staleness(number)) for number, step in enumerate(steps)),
        staleness=staleness.read("staleness", _WEIGHTS["staleness"]),
        c_g=None if aggregator.name == "plain" else _WEIGHTS["c_g"],
        tell=context.tell,
        arrivals=_arrivals(steps),
    )
    return [steps], found


def _arrivals(steps: Sequence[ServerStep]) -> runs.Arrivals:
    return lambda number: (list(steps[number].users), list(steps[number].staleness(number)))


def _age(steps: Sequence[ServerStep]) -> float:
    """Return the mean staleness of all updates."""
    return float(np.mean([step.staleness(number) for number, step in enumerate(steps)]))


# ------------------------------------------------------------------------------------------------- the time to a target


def reached(accuracy: Sequence[float], target: float) -> int | None:
    """Return the first step at which the target is held (`HELD`), from 1, or None.

    Entry 0 of the accuracy is that of the first model, before all steps.
    """
    enough = [value >= target for value in accuracy]
    return next((at for at in range(1, len(enough) - HELD + 1) if all(enough[at : at + HELD])), None)


def time_to(found: Data, target: float, which: int) -> float:
    """Return the simulated seconds until the target is held, on the clock of one beta.

    A run that never holds the target counts with the time of its last step (EXP-24).
    """
    times, at = found["times"][which], reached(found["accuracy"], target)
    return float(times[-1] if at is None else times[at - 1])


def times_of(settings: Data, results: Sequence[Result], scheme: str, beta: float, at_once: int) -> list[float]:
    """Return the seconds of each seed, in the order of the seeds."""
    together = next(group for group in _together(scheme, list(settings["betas"])) if beta in group)
    found = by_seed(results, scheme=scheme, at_once=at_once, betas=together)
    return [time_to(found[seed], settings["target"], together.index(beta)) for seed in sorted(found)]


# ---------------------------------------------------------------------------------------------------------- statements


def _ratio(settings: Data, results: Sequence[Result], one: str, beta: float, at_once: int) -> list[float]:
    """Return the times of a scheme over those of BASA, one number for each seed."""
    pair = (times_of(settings, results, scheme, beta, at_once) for scheme in (one, BASA))
    return [a / b for a, b in zip(*pair, strict=True)]


def _over(one: str) -> str:
    return f"time of {one} over that of {BASA}"


def table_statements(settings: Data) -> tuple[Statement, ...]:
    """Return the statements of section 4.2 about table 1."""
    overhead = f"time of {BASA} over that of {NO_SA}"
    delays = [beta for beta in settings["betas"] if beta > 0]
    shortest = [
        Statement(
            SHORTEST,
            _shorter(scheme, beta),
            f"for beta = {beta:g} BASA takes no more time than {scheme}",
            _over(scheme),
            ">=",
            1.0,
        )
        for beta, scheme in product(delays, (SECAGG, LSA_SFL, LSA_AFL))
    ]
    falls = Statement(
        OVERHEAD,
        "overhead falls",
        "the extra relative cost of BASA becomes smaller as the stragglers become worse",
        f"{overhead}: for beta = {delays[-1]:g} minus for beta = {delays[0]:g}",
        "<=",
        0.0,
    )
    slower = Statement(
        NO_DELAY,
        "no delays",
        "for beta = 0 BASA is less efficient than secure aggregation in SFL",
        f"time of {BASA} over that of {LSA_SFL}",
        ">=",
        1.0,
    )
    return (*shortest, falls, slower)


def _shorter(scheme: str, beta: float) -> str:
    return f"{scheme}, beta = {beta:g}"


def table_numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return one number for each seed, for each statement of table 1."""
    [at_once] = settings["at_once"]
    delays = [beta for beta in settings["betas"] if beta > 0]
    found = {
        _shorter(scheme, beta): _ratio(settings, results, scheme, beta, at_once)
        for beta, scheme in product(delays, (SECAGG, LSA_SFL, LSA_AFL))
    }
    first, last = (_ratio(settings, results, NO_SA, beta, at_once) for beta in (delays[0], delays[-1]))
    found["overhead falls"] = [1 / after - 1 / before for before, after in zip(first, last, strict=True)]
    found["no delays"] = [1 / ratio for ratio in _ratio(settings, results, LSA_SFL, 0.0, at_once)]
    return found


def delay_statements(settings: Data) -> tuple[Statement, ...]:
    """Return the statement of section 4.3 about figure 2."""
    betas = settings["betas"]
    text = "BASA gains on SecAgg in SFL as delays become longer"
    measure = f"{_over(SECAGG)}: for beta = {betas[-1]:g} minus for beta = {betas[0]:g}"
    return (Statement(GROWS, "gain grows", text, measure, ">=", 0.0),)


def delay_numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return one number for each seed, for the statement of figure 2."""
    [at_once], betas = settings["at_once"], settings["betas"]
    first, last = (_ratio(settings, results, SECAGG, beta, at_once) for beta in (betas[0], betas[-1]))
    return {"gain grows": [after - before for before, after in zip(first, last, strict=True)]}


def concurrency_statements(settings: Data) -> tuple[Statement, ...]:
    """Return the statements of appendix C.1 about figure 4."""
    return tuple(
        Statement(
            AT_ONCE,
            _with(at_once),
            f"with {at_once} users at once BASA is more efficient than SecAgg in SFL",
            _over(SECAGG),
            ">=",
            1.0,
        )
        for at_once in settings["at_once"]
    )


def _with(at_once: int) -> str:
    return f"{at_once} users at once"


def concurrency_numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """Return one number for each seed, for each statement of figure 4."""
    [beta] = settings["betas"]
    return {_with(at_once): _ratio(settings, results, SECAGG, beta, at_once) for at_once in settings["at_once"]}


# ------------------------------------------------------------------------------------------------ rows and pictures


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """Return a row for each seed, scheme, number of concurrent users and beta."""
    for one in results:
        step, measured = reached(one.found["accuracy"], settings["target"]), one.found["costs"]
        for which, beta in enumerate(one.cell["betas"]):
            yield {
                **{name: one.cell[name] for name in ("seed", "scheme", "at_once")},
                "beta": beta,
                "seconds": time_to(one.found, settings["target"], which),
                "steps": "not reached" if step is None else step,
                "staleness": one.found["ages"][which],
                **{name: measured[name] for name in ("user", "server", "authority", "sending", "after")},
                "mean visit": float(np.mean(measured["visits"])) if measured["visits"] else 0.0,
            }


def draw_table(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the times as bars, and the accuracy of the first seed against time."""
    return {"time-to-target": _bars(plt, settings, results), "accuracy-against-time": _courses(plt, settings, results)}


def _bars(plt: Any, settings: Data, results: Sequence[Result]) -> Any:
    schemes, betas = settings["schemes"], settings["betas"]
    figure, panels = plt.subplots(1, len(betas), figsize=(4 * len(betas), 4.4), layout="constrained")
    for axes, beta in zip(panels, betas, strict=True):
        for at, scheme in enumerate(schemes):
            _bar(axes, at, scheme, times_of(settings, results, scheme, beta, settings["at_once"][0]))
        axes.set(title=_delayed(beta), xticks=[])
        axes.grid(visible=False, axis="x")
    panels[0].set_ylabel(f"simulated time to accuracy {settings['target']:g} (seconds)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(schemes))
    return figure


def _delayed(beta: float) -> str:
    return f"mean delay beta = {beta:g} s"


def _bar(axes: Any, at: int, scheme: str, times: Sequence[float]) -> None:
    """Draw the mean over seeds as a bar, with a line from minimum to maximum."""
    mean = float(np.mean(times))
    axes.bar(at, mean, 0.9, color=SCHEMES[scheme].look[0], label=scheme)
    axes.plot([at, at], [min(times), max(times)], color="black", linewidth=1)


def _courses(plt: Any, settings: Data, results: Sequence[Result]) -> Any:
    betas = settings["betas"]
    figure, panels = plt.subplots(1, len(betas), figsize=(4.2 * len(betas), 4.4), sharey=True, layout="constrained")
    [at_once] = settings["at_once"]
    for axes, beta in zip(panels, betas, strict=True):
        for scheme in settings["schemes"]:
            _course(axes, settings, results, scheme, beta)
        slowest = max(max(times_of(settings, results, scheme, beta, at_once)) for scheme in settings["schemes"])
        axes.axhline(settings["target"], color="black", linewidth=0.8)
        axes.set(title=_delayed(beta), xlabel="simulated time (seconds)", xlim=(0, 1.3 * slowest), ylim=(0, 1))
    panels[0].set_ylabel("accuracy on test data (first seed)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(settings["schemes"]))
    return figure


def _course(axes: Any, settings: Data, results: Sequence[Result], scheme: str, beta: float) -> None:
    [at_once] = settings["at_once"]
    together = next(group for group in _together(scheme, list(settings["betas"])) if beta in group)
    found = by_seed(results, scheme=scheme, at_once=at_once, betas=together)
    first, (colour, line, _) = found[min(found)], SCHEMES[scheme].look
    times = [0.0, *first["times"][together.index(beta)]][: len(first["accuracy"])]
    axes.plot(times, first["accuracy"], line, color=colour, label=scheme, linewidth=1.4)


def draw_delays(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the times against beta."""
    [at_once], betas = settings["at_once"], settings["betas"]
    figure = _lines(plt, settings, betas, lambda scheme, beta: times_of(settings, results, scheme, beta, at_once))
    figure.axes[0].set(xlabel=f"mean delay beta (seconds), {at_once} users at once")
    return {"time-against-delay": figure}


def draw_concurrency(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """Draw the times against the number of concurrent users."""
    [beta], sizes = settings["betas"], settings["at_once"]
    figure = _lines(plt, settings, sizes, lambda scheme, size: times_of(settings, results, scheme, beta, size))
    figure.axes[0].set(xlabel=f"users at once, {_delayed(beta)}")
    return {"time-against-users": figure}


def _lines(plt: Any, settings: Data, x: Sequence[Any], times: Callable[[str, Any], list[float]]) -> Any:
    """Draw for each scheme the mean over seeds, with a band from minimum to maximum."""
    figure, axes = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
    for scheme in settings["schemes"]:
        colour, line, mark = SCHEMES[scheme].look
        of = np.array([times(scheme, value) for value in x])
        band(axes, x, of.T.tolist(), colour, line + mark, scheme)
    axes.set_xticks(x)
    axes.set(ylabel=f"simulated time to accuracy {settings['target']:g} (seconds)", ylim=0)
    figure.legend(loc="outside lower center", ncols=len(settings["schemes"]))
    return figure


# ------------------------------------------------------------------------------------------------------- experiments


def _presets(**of: Data) -> Mapping[str, Data]:
    return of


EXPERIMENTS = (
    Experiment(
        name="basa-table1",
        title="The time to a target accuracy with BASA, other secure aggregation, and none",
        figures=("BASA, table 1",),
        about=_ABOUT,
        presets=_presets(
            tiny={**_TINY, "schemes": _TABLE, "betas": [0.0, 3.0, 6.0], "at_once": [6]},
            default={**_DIGITS, "schemes": _TABLE, "betas": [0.0, 3.0, 6.0], "at_once": [32], "seeds": _MOST},
            paper={**_MNIST, "schemes": _TABLE, "betas": [0.0, 3.0, 6.0], "at_once": [32]},
        ),
        cells=cells,
        run=run,
        statements=table_statements,
        numbers=table_numbers,
        rows=rows,
        draw=draw_table,
    ),
    Experiment(
        name="basa-fig2",
        title="The time to a target accuracy against the scale of delays, with many users at once",
        figures=("BASA, figure 2",),
        about=_ABOUT,
        presets=_presets(
            tiny={**_TINY, "schemes": (BASA, SECAGG), "betas": [1.0, 6.0], "at_once": [8]},
            default={**_DIGITS, "schemes": (BASA, SECAGG), "betas": [1.0, 2.0, 4.0, 6.0], "at_once": [64]},
            paper={**_CIFAR, "schemes": (BASA, SECAGG), "betas": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "at_once": [200]},
        ),
        cells=cells,
        run=run,
        statements=delay_statements,
        numbers=delay_numbers,
        rows=rows,
        draw=draw_delays,
    ),
    Experiment(
        name="basa-fig4",
        title="The time to a target accuracy against the number of users at once",
        figures=("BASA, figure 4",),
        about=_ABOUT,
        presets=_presets(
            tiny={**_TINY, "schemes": (NO_SA, BASA, SECAGG), "betas": [5.0], "at_once": [4, 8]},
            default={**_DIGITS, "schemes": (NO_SA, BASA, SECAGG), "betas": [5.0], "at_once": [16, 32, 64]},
            paper={**_WRITERS, "schemes": (NO_SA, BASA, SECAGG), "betas": [5.0], "at_once": [50, 100, 150, 200]},
        ),
        cells=cells,
        run=run,
        statements=concurrency_statements,
        numbers=concurrency_numbers,
        rows=rows,
        draw=draw_concurrency,
    ),
)
