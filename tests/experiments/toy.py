"""An experiment for tests: two schemes, whose numbers are drawn. Run as a program, it is ``secagg-spec reproduce toy``.

The cells say in the file that `TOY_LOG` names that they ran, and whether an interrupt would end the process in which
one of several runs. Where `TOY_GATE` names a folder, it has to hold the file
``open`` before a cell of another scheme than the first ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec import cli
from secagg_spec.experiments import catalogue
from secagg_spec.experiments.experiment import Context, Data, Experiment, Result, Statement, by_seed

SCHEMES = ("plain", "secure")
NAME, MODULE = "toy", "tests.experiments.toy"


def cells(settings: Data) -> Sequence[Data]:
    """One cell for each scheme and seed."""
    seeds = range(settings["seeds"])
    return [{"scheme": one, "seed": seed, "fails": settings["fails"]} for one in SCHEMES for seed in seeds]


def run(cell: Data, context: Context) -> Data:
    """Draw the accuracies of three rounds, a product of matrices, and what an aggregator would say of itself."""
    _say(f"{cell['scheme']} {cell['seed']}")
    if multiprocessing.current_process().name.startswith("Loky") and not _deaf():
        _say("hears interrupts")
    if f"{cell['scheme']} {cell['seed']}" == cell["fails"]:
        raise ZeroDivisionError("nothing to divide by")
    rng = np.random.default_rng([cell["seed"], 7])
    accuracy = np.sort(rng.uniform(0.5, 0.9, 3)) - (0.001 if cell["scheme"] == "secure" else 0.0)
    square = rng.normal(size=(300, 300))
    _wait(cell)
    return {
        "accuracy": accuracy.tolist(),
        "product": float((square @ square).sum()),
        "seconds": {"training": 2.0, "aggregation": 0.5},
        "aggregator": {"name": cell["scheme"], "protocol": 1, "shortcut": 2, "moved": 3},
    }


def _say(what: str) -> None:
    if "TOY_LOG" in os.environ:
        with Path(os.environ["TOY_LOG"]).open("a", encoding="utf-8") as log:
            log.write(what + "\n")


def _deaf() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _wait(cell: Data) -> None:
    gate = os.environ.get("TOY_GATE")
    end = time.monotonic() + 20
    while gate and cell["scheme"] != SCHEMES[0] and not (Path(gate) / "open").exists() and time.monotonic() < end:
        time.sleep(0.02)


def statements(settings: Data) -> tuple[Statement, ...]:
    """One statement, about the last round."""
    text = "The secure scheme is as accurate as the plain one."
    return (Statement("BAS-FIG1", "toy", text, "accuracy, secure less plain", ">=", -0.01),)


def numbers(settings: Data, results: Sequence[Result]) -> Mapping[str, Sequence[float]]:
    """The difference of the accuracies of each seed."""
    plain, secure = (by_seed(results, scheme=one) for one in SCHEMES)
    return {"toy": [secure[seed]["accuracy"][-1] - plain[seed]["accuracy"][-1] for seed in plain]}


def rows(settings: Data, results: Sequence[Result]) -> Iterator[Mapping[str, Any]]:
    """A row for each cell."""
    for one in results:
        yield {"scheme": one.cell["scheme"], "seed": one.cell["seed"], "accuracy": one.found["accuracy"][-1]}


def draw(plt: Any, settings: Data, results: Sequence[Result]) -> Mapping[str, Any]:
    """A curve for each cell."""
    figure, axes = plt.subplots()
    for one in results:
        axes.plot(one.found["accuracy"])
    return {"accuracy": figure}


def experiment(**members: Any) -> Experiment:
    """The experiment, with other members."""
    presets = {name: {"data": "none", "seeds": seeds, "fails": ""} for name, seeds in (("tiny", 3), ("default", 4))}
    given: dict[str, Any] = {
        "name": NAME,
        "title": "Numbers that are drawn",
        "figures": ("no paper, figure 0",),
        "about": "Nothing is trained.",
        "presets": MappingProxyType(presets),
        "cells": cells,
        "run": run,
        "statements": statements,
        "numbers": numbers,
        "rows": rows,
        "draw": draw,
    }
    return Experiment(**{**given, **members})


def ends(cell: Data, context: Context) -> Data:
    """End the process of the cell."""
    os._exit(1)


def _failing() -> Mapping[str, Data]:
    return {"default": {"data": "none", "seeds": 3, "fails": "secure 1"}}


def _of_mnist() -> Mapping[str, Data]:
    return {"default": {"data": "mnist", "seeds": 3, "fails": ""}}


EXPERIMENTS = (
    experiment(),
    experiment(name="toy-fails", presets=_failing()),
    experiment(name="toy-mnist", presets=_of_mnist()),
    experiment(name="ends", run=ends),
)
MODULES = MappingProxyType({one.name: MODULE for one in EXPERIMENTS[:3]})


if __name__ == "__main__":
    catalogue.MODULES = MODULES
    sys.exit(cli.main(["reproduce", *sys.argv[1:]]))
