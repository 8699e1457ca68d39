"""Planted bugs of intervals, verdicts, kept cells and results, which their tests find."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.errors import ParameterError

Function = Callable[..., Any]
_HERE = "secagg_spec.experiments"
_STATISTICS = "tests/experiments/test_statistics.py::"
_SWEEPS = "tests/experiments/test_sweeps.py::"
_RESULTS = "tests/experiments/test_results.py::"
_CATALOGUE = "tests/experiments/test_catalogue.py::"
_KEY = f"{_HERE}.sweeps:Sweep.key"
_KEYS = _SWEEPS + "test_a_kept_cell_is_one_of_the_same_experiment_cell_data_device_and_version"
_BOUNDS = (0.0, 0.25, 0.5, 0.75, 1.0)


def _module(name: str) -> Any:
    return import_module(f"{_HERE}.{name}")


def _interval() -> object:
    return asdict(_module("statistics").interval([0.1, 0.2, 0.4]))


def _verdicts() -> object:
    """Return the verdicts on an interval from 0.25 to 0.75, at its ends, beyond them, and with few seeds."""
    statistics = _module("statistics")
    return [
        statistics.verdict(statistics.Interval(0.5, 0.25, 0.75, count), relation, bound, asked)
        for count, asked in ((5, 5), (4, 5), (2, 1))
        for relation in (">=", "<=")
        for bound in _BOUNDS
    ]


def _run_of_a_cell(cell: Mapping[str, Any], context: object) -> Mapping[str, Any]:
    return {"number": cell["seed"]}


EXPERIMENTS = (SimpleNamespace(name="witness", run=_run_of_a_cell),)
"""What the witnesses run, found by the name of this module."""
_CELLS = tuple({"seed": seed} for seed in range(3))


class _Ear:
    """Notes how many cells are kept whenever one is through."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[object] = []

    def begin(self, cells: int, kept: int, under_way: object) -> None:
        self.told.append((cells, kept))

    def finished(self) -> None:
        self.told.append(len(list(self.folder.glob("*.json"))))

    def damaged(self, path: Path) -> None:
        self.told.append("damaged")


def _sweep(folder: Path, cells: Sequence[Mapping[str, Any]] = _CELLS, **members: Any) -> Any:
    experiment = _module("experiment")
    given = {"hashes": {"digits": {"a file": "0" * 64}}, "context": experiment.Context(), **members}
    return _module("sweeps").Sweep(__name__, "witness", cells, folder=folder, **given)


def _swept() -> object:
    """Return what a sweep tells and gives, with its cells in two orders."""
    told = []
    for cells in (_CELLS, _CELLS[::-1]):
        with tempfile.TemporaryDirectory() as name:
            ear = _Ear(Path(name))
            found = _module("sweeps").run(_sweep(Path(name), cells), ear, jobs=1)
            told.append((ear.told, [one.cell for one in found.results]))
    return told


def _keys() -> object:
    """Return how many of the keys of different cells differ."""
    folder = Path()
    other = {"hashes": {"digits": {"a file": "1" * 64}}}, {"context": _module("experiment").Context(device="cuda")}
    sweeps = [_sweep(folder), *(_sweep(folder, **members) for members in other)]
    keys = {one.key(cell) for one in sweeps for cell in _CELLS}
    keys |= {replace(sweeps[0], name="another").key(_CELLS[0])}
    return len(keys), sweeps[0].key(_CELLS[0])


def _damaged() -> object:
    """Return what is read of a kept cell whose number was changed."""
    sweeps = _module("sweeps")
    with tempfile.TemporaryDirectory() as name:
        sweep = _sweep(Path(name))
        key = sweep.key(_CELLS[1])
        sweeps._keep(sweep.folder, key, _CELLS[1], sweeps.Finished({"number": 1}, 0.5))
        path = sweeps._file(sweep.folder, key)
        path.write_text(path.read_text(encoding="utf-8").replace('"number":1', '"number":2'), encoding="utf-8")
        return sweeps._read(path, key)


def _experiment() -> Any:
    """Return an experiment that says that a number is at least 0.5."""
    experiment = _module("experiment")
    stated = experiment.Statement("BAS-FIG1", "number", "The number is large.", "number", ">=", 0.5)
    members = dict.fromkeys(experiment.Experiment.__dataclass_fields__)
    return experiment.Experiment(
        **{
            **members,
            "name": "witness",
            "title": "A number",
            "figures": ("none",),
            "about": "Nothing is trained.",
            "presets": {"default": {"data": "none", "seeds": 3}},
            "statements": lambda settings: (stated,),
            "numbers": lambda settings, found: {"number": [one.found["number"] for one in found]},
        }
    )


def _run() -> Any:
    experiment = _experiment()
    return _module("results").Run(experiment, "default", experiment.presets["default"], 3, {"digits": {"f": "0" * 64}})


def _results() -> tuple[Any, ...]:
    seconds = {"training": 2.0, "aggregation": 1.0}
    Result = _module("experiment").Result
    return tuple(Result(cell, {"number": 0.6 + cell["seed"] / 100, "seconds": seconds}) for cell in _CELLS)


def _document() -> Any:
    found = _results()
    return _module("results").document(_run(), _module("sweeps").Swept(found, (1.0,) * len(found), ()))


def _by_seed() -> object:
    Result = _module("experiment").Result
    found = [Result(cell, {"diverged": cell["seed"] or None}) for cell in _CELLS]
    return _module("experiment").by_seed(found)


def _refusal(act: Callable[[], object]) -> Callable[[], object]:
    """Return a function that says whether something is refused."""

    def witness() -> object:
        try:
            act()
        except ParameterError as error:
            return str(error)
        return "no refusal"

    return witness


# ------------------------------------------------------------------------------------------ statements, verdicts


@mutant(
    "statements-are-said-after-the-run",
    "EXP-21",
    "acceptance: a bound may be chosen once the numbers are known, and nobody notices",
    "secagg_spec.reproduce_command:_stated",
    lambda: list(import_module("secagg_spec.reproduce_command")._stated(_experiment().statements({})[0])),
    "tests/test_reproduce_command.py::test_statements_and_bounds_are_said_before_anything_is_run",
    kind="acceptance",
    source="clause left out",
)
def _unsaid(right: Function) -> Function:
    return lambda statement: iter(())


@mutant(
    "interval-of-the-normal-distribution",
    "EXP-22",
    "sum: with five seeds the interval is too short by a third, and verdicts are too sure",
    f"{_HERE}.statistics:_quantile",
    _interval,
    _STATISTICS + "test_the_interval_holds_the_mean_of_the_distribution_in_95_of_100_cases",
    kind="sum",
    source="other rule: the normal distribution",
)
def _normal(right: Function) -> Function:
    return lambda freedom: 1.959963984540054


@mutant(
    "interval-of-one-side",
    "EXP-22",
    "sum: the interval is one of 90 %",
    f"{_HERE}.statistics:_quantile",
    _interval,
    _STATISTICS + "test_the_interval_is_that_of_student",
    kind="sum",
    source="other rule: the quantile of one side",
)
def _one_side(right: Function) -> Function:
    def quantile(freedom: int) -> float:
        return float(import_module("scipy.stats").t.ppf(0.95, freedom))

    return quantile


@mutant(
    "as-many-degrees-of-freedom-as-seeds",
    "EXP-22",
    "sum: the interval is too short",
    f"{_HERE}.statistics:_quantile",
    _interval,
    _STATISTICS + "test_the_interval_is_that_of_student",
    kind="sum",
    source="off by one",
)
def _freedom(right: Function) -> Function:
    return lambda freedom: right(freedom + 1)


@mutant(
    "variance-over-all-seeds",
    "EXP-22",
    "sum: the interval is too short",
    f"{_HERE}.statistics:interval",
    _interval,
    _STATISTICS + "test_the_interval_is_that_of_student",
    kind="sum",
    source="off by one",
)
def _variance(right: Function) -> Function:
    def interval(numbers: Sequence[float]) -> Any:
        found = right(numbers)
        half = (found.high - found.mean) * math.sqrt((found.count - 1) / found.count)
        return replace(found, low=found.mean - half, high=found.mean + half)

    return interval


@mutant(
    "verdict-of-the-mean",
    "EXP-23",
    "acceptance: a mean that is beyond the bound by chance confirms, or refutes",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_the_verdict_asks_where_the_whole_interval_is",
    kind="acceptance",
    source="clause in part",
)
def _mean(right: Function) -> Function:
    return lambda found, *rest: right(replace(found, low=found.mean, high=found.mean), *rest)


@mutant(
    "few-seeds-decide",
    "EXP-23",
    "acceptance: whoever runs fewer seeds gets a verdict that the experiment does not give",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_too_few_seeds_confirm_nothing",
    kind="acceptance",
    source="clause left out",
)
def _few(right: Function) -> Function:
    return lambda found, relation, bound, seeds: right(found, relation, bound, 0)


@mutant(
    "two-seeds-decide",
    "EXP-23",
    "acceptance: an experiment that asks for two seeds gets a verdict from them",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_too_few_seeds_confirm_nothing",
    kind="acceptance",
    source="clause in part",
)
def _two(right: Function) -> Function:
    def verdict(found: Any, relation: str, bound: float, seeds: int) -> Any:
        return right(
            replace(found, count=max(found.count, 3)) if found.count >= seeds else found, relation, bound, seeds
        )

    return verdict


@mutant(
    "at-most-is-at-least",
    "EXP-23",
    "acceptance: statements with an upper bound get the opposite verdict",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_the_verdict_asks_where_the_whole_interval_is",
    kind="acceptance",
    source="sign",
)
def _relation(right: Function) -> Function:
    return lambda found, relation, bound, seeds: right(found, ">=", bound, seeds)


@mutant(
    "what-is-not-confirmed-is-refuted",
    "EXP-23",
    "refusal: a statement that a run cannot decide is called wrong",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_the_verdict_asks_where_the_whole_interval_is",
    kind="refusal",
    source="clause too strict",
)
def _refuted(right: Function) -> Function:
    def verdict(found: Any, relation: str, bound: float, seeds: int) -> Any:
        statistics = _module("statistics")
        reached = right(found, relation, bound, seeds)
        enough = found.count >= max(seeds, 3)
        return statistics.REFUTED if enough and reached == statistics.UNCONFIRMED else reached

    return verdict


@mutant(
    "an-interval-that-ends-at-the-bound-confirms-nothing",
    "EXP-23",
    "refusal: equal accuracies do not confirm that none is lower",
    f"{_HERE}.statistics:verdict",
    _verdicts,
    _STATISTICS + "test_the_verdict_asks_where_the_whole_interval_is",
    kind="refusal",
    source="off by one",
)
def _end(right: Function) -> Function:
    def verdict(found: Any, relation: str, bound: float, seeds: int) -> Any:
        away = math.inf if relation == ">=" else -math.inf
        return right(found, relation, math.nextafter(bound, away), seeds)

    return verdict


@mutant(
    "seeds-that-diverged-are-left-out",
    "EXP-24",
    "acceptance: a scheme that diverges with some seeds seems as good as one that never does",
    f"{_HERE}.experiment:by_seed",
    _by_seed,
    _RESULTS + "test_a_seed_that_diverged_counts",
    kind="acceptance",
    source="silent repair",
)
def _left_out(right: Function) -> Function:
    return lambda found, **wanted: {
        seed: one for seed, one in right(found, **wanted).items() if not one.get("diverged")
    }


# --------------------------------------------------------------------------------------------------- kept cells


def _key_without(member: str) -> Callable[[Function], Function]:
    """Return what builds a key of a cell that does not depend on one member."""

    def build(right: Function) -> Function:
        blank = {"hashes": {}, "context": _module("experiment").Context(), "name": ""}[member]
        return lambda sweep, cell: right(replace(sweep, **{member: blank}), cell)

    return build


for _member, _effect in (
    ("hashes", "other data under the same name give the result of the old"),
    ("context", "what another device computed is used"),
    ("name", "cells of two experiments that look the same share a result"),
):
    mutant(
        f"kept-cells-without-{_member}",
        "EXP-25",
        f"acceptance: {_effect}",
        _KEY,
        _keys,
        _KEYS,
        kind="acceptance",
        source=f"field not bound: {_member}, in the key of a kept cell",
    )(_key_without(_member))


@mutant(
    "kept-cells-of-any-version",
    "EXP-25",
    "acceptance: what an older harness computed, with a bug that was mended since, is used",
    _KEY,
    _keys,
    _KEYS,
    kind="acceptance",
    source="field not bound: the version, in the key of a kept cell",
)
def _version(right: Function) -> Function:
    def key(sweep: Any, cell: Any) -> Any:
        hashes = {name: dict(files) for name, files in sweep.hashes.items()}
        return _module("sweeps").digest([sweep.name, cell, hashes, sweep.context.device])

    return key


@mutant(
    "cells-are-kept-at-the-end",
    "EXP-25",
    "form: a run that is killed begins anew",
    f"{_HERE}.sweeps:run",
    _swept,
    _SWEEPS + "test_a_finished_cell_is_kept_before_the_next_is_run",
    kind="form",
    source="order",
)
def _late(right: Function) -> Function:
    def run(sweep: Any, tell: Any, **options: Any) -> Any:
        with tempfile.TemporaryDirectory() as name:
            found = right(replace(sweep, folder=Path(name)), tell, **options)
            sweep.folder.mkdir(parents=True, exist_ok=True)
            for path in Path(name).iterdir():
                (sweep.folder / path.name).write_bytes(path.read_bytes())
            return found

    return run


@mutant(
    "kept-cells-are-trusted",
    "EXP-25",
    "acceptance: a file that was changed or cut gives other results",
    f"{_HERE}.sweeps:_read",
    _damaged,
    _SWEEPS + "test_a_damaged_kept_cell_is_said_and_run_again",
    kind="acceptance",
    source="clause left out",
)
def _trusted(right: Function) -> Function:
    def read(path: Path, key: str) -> Any:
        try:
            content = import_module("json").loads(path.read_text(encoding="utf-8"))
            return _module("sweeps").Finished(content["found"], content["seconds"])
        except (ValueError, KeyError, TypeError):
            return None

    return read


@mutant(
    "results-in-the-order-of-their-keys",
    "EXP-26",
    "form: results change places when the version does, or the data",
    f"{_HERE}.sweeps:run",
    _swept,
    _SWEEPS + "test_the_order_of_cells_makes_no_difference",
    kind="form",
    source="order",
)
def _ordered(right: Function) -> Function:
    def run(sweep: Any, *arguments: Any, **options: Any) -> Any:
        found = right(sweep, *arguments, **options)
        return replace(found, results=tuple(sorted(found.results, key=lambda one: str(sweep.key(one.cell)))))

    return run


# ------------------------------------------------------------------------------------------------------ results


@mutant(
    "result-without-hashes",
    "EXP-27",
    "form: nobody can tell on which data it rests",
    f"{_HERE}.results:document",
    lambda: _document()["data"],
    _RESULTS + "test_the_document_names_what_was_run",
    kind="form",
    source="clause in part",
)
def _hashless(right: Function) -> Function:
    return lambda run, swept: {**right(run, swept), "data": {}}


@mutant(
    "aggregation-costs-nothing",
    "EXP-27",
    "sum: the seconds of aggregation count as those of training",
    f"{_HERE}.results:_seconds",
    lambda: {name: _document()["seconds"][name] for name in ("training", "aggregation")},
    _RESULTS + "test_the_document_names_what_was_run",
    kind="sum",
    source="wrong term",
)
def _costless(right: Function) -> Function:
    return lambda found: {"training": sum(right(found).values()), "aggregation": 0.0}


@mutant(
    "verdicts-are-read",
    "EXP-28",
    "acceptance: a verdict that somebody wrote into the file stands",
    f"{_HERE}.results:check",
    _refusal(
        lambda: _module("results").check(
            {**_document(), "statements": [{**_document()["statements"][0], "verdict": "refuted"}]}
        )
    ),
    _RESULTS + "test_a_verdict_that_does_not_follow_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    return lambda content: None


@mutant(
    "verdicts-for-the-seeds-that-were-run",
    "EXP-28",
    "acceptance: the file of a run with fewer seeds says that its statement is confirmed",
    f"{_HERE}.results:judge_again",
    lambda: [one.verdict for one in _module("results").judge_again({**_document(), "asked": 9})],
    _RESULTS + "test_a_verdict_that_does_not_follow_is_refused",
    kind="acceptance",
    source="wrong term",
)
def _asked(right: Function) -> Function:
    return lambda content: right({**content, "asked": content["settings"]["seeds"]})


@mutant(
    "an-unknown-experiment-is-passed-over",
    "EXP-29",
    "acceptance: a figure seems to have been run that was only misspelt",
    f"{_HERE}.catalogue:load",
    _refusal(lambda: _module("catalogue").load("multi-round-fig9")),
    _CATALOGUE + "test_an_unknown_experiment_is_refused_with_what_is_close",
    kind="acceptance",
    source="silent repair",
)
def _passed_over(right: Function) -> Function:
    def load(name: str) -> Any:
        return None if name not in _module("catalogue").MODULES else right(name)

    return load


@mutant(
    "an-unknown-preset-is-the-default",
    "EXP-29",
    "acceptance: who misspells paper gets the small settings, and takes them for those of the paper",
    f"{_HERE}.catalogue:settings",
    _refusal(lambda: _module("catalogue").settings(_experiment(), "papers")),
    _CATALOGUE + "test_an_unknown_preset_is_refused_with_what_is_close",
    kind="acceptance",
    source="silent repair",
)
def _default(right: Function) -> Function:
    return lambda experiment, preset: experiment.presets.get(preset, experiment.presets.get("default"))
