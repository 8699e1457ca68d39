"""The command ``secagg-spec reproduce``: runs the papers' experiments, and says whether they confirm the claims."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from secagg_spec.arithmetic import validate
from secagg_spec.commands.options import Rules, jobs
from secagg_spec.conformance.adapter.values import count, writable_file, writable_folder
from secagg_spec.errors import UsageError
from secagg_spec.experiments import catalogue, figures, pictures, results, sweeps
from secagg_spec.experiments.experiment import PRESETS, Context, Data, Experiment, Statement
from secagg_spec.experiments.progress import Progress
from secagg_spec.experiments.results import Run
from secagg_spec.experiments.statistics import FEWEST, VERDICTS
from secagg_spec.experiments.sweeps import Failure, Sweep, Swept
from secagg_spec.extras import install
from secagg_spec.terminal import working

_PACKAGES = ("joblib", "tqdm", "scipy", "threadpoolctl", "torch", "sklearn", "simpy", "PIL")
"""Packages that experiments import, all in one extra."""
_WIDTH = 110
_MOST_SEEDS = 1000
_MOST_ERRORS = 8
_EPILOG = """Each finished cell is stored at once in DIR/NAME/cells. To continue an interrupted run, start it again
with the same command.

verdicts, on the mean over seeds and its 95 % interval (spec/experiments.md, section 6):
  confirmed                   the whole interval is on the side of the bound
                              that the paper claims
  refuted                     none of it is
  not confirmed at this scale everything else, and too few seeds

exit codes:
  0    done, whatever the verdicts
  1    a cell ended with an error; the others are kept
  2    wrong usage, a missing data set or package, or a file that cannot be
       written
  130  interrupted; 143 terminated: what was finished is kept"""


def add_parser(commands: Any) -> None:
    """Add ``reproduce`` to the commands."""
    parser = commands.add_parser(
        "reproduce",
        description="Run experiments of the papers, and write their numbers and pictures. The statements and their\n"
        "bounds are printed before anything runs.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("name", nargs="*", metavar="NAME", help="experiments, such as basecagg-fig1; or all: every one with the preset")
    add(
        "--list",
        action="store_true",
        help="list every figure, table and tested theorem, and what reproduces it",
    )
    add("--preset", default="default", metavar="NAME", help=f"settings: {', '.join(PRESETS)}; some have more (default)")
    add("--data-dir", type=Path, metavar="DIR", help="a folder with data sets (the variable SECAGG_SPEC_DATA)")
    add("--out", type=Path, default=Path("reproduced"), metavar="DIR", help="folder for the results (reproduced)")
    add("--seeds", type=_seeds, metavar="N", help="number of seeds (that of the experiment)")
    add("--jobs", type=jobs, metavar="N", help="number of processes (one for each core)")
    add("--scheduler", metavar="ADDRESS", help="run on a Dask cluster, such as tcp://127.0.0.1:8786")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="the device that trains (cpu)")
    add("--anew", action="store_true", help="run stored cells again")
    parser.set_defaults(run=main, rules=Rules(only={"list": ()}))


def _seeds(text: str) -> int:
    if count(text, "seeds") > _MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"{text} seeds are more than {_MOST_SEEDS}, the most that are run")
    return int(text)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: done; 1: a cell ended with an error."""
    if options.list:
        with working("reading what there is"):
            lines = list(_listed())
        print("\n".join(lines))
        return 0
    planned = _planned(options)
    for plan in planned:
        _refuse_lost(plan.folder)
        _make(plan.sweep.folder)
    codes = [_reproduce(plan, options) for plan in planned]
    if len(planned) > 1:
        print("\n".join(_summed(planned, codes)), flush=True)
    return max(codes)


# ---------------------------------------------------------------------------------------------------- before a run


@dataclass(frozen=True)
class _Plan:
    """A run of an experiment, its cells, and the folder of its files."""

    run: Run
    cells: Sequence[Data]
    sweep: Sweep
    folder: Path


def _planned(options: argparse.Namespace) -> tuple[_Plan, ...]:
    """Return the runs that were asked for; refuse whatever cannot run before anything runs."""
    with working("loading the experiments"):
        names = _names(options.name)
        _refuse(options)
        named = [catalogue.load(name) for name in names]
        chosen = [one for one in named if options.name != ["all"] or options.preset in one.presets]
        plans = tuple(_plan(one, options) for one in chosen or named)
    left_out = [one.name for one in named if one not in chosen]
    if left_out:
        print(f"left out, since they have no preset {options.preset}: {', '.join(left_out)}", flush=True)
    return plans


def _names(given: Sequence[str]) -> tuple[str, ...]:
    if not given:
        raise UsageError("name an experiment, or all; secagg-spec reproduce --list shows them")
    if "all" in given:
        if len(given) > 1:
            raise UsageError("all stands for every experiment: give no other name")
        return tuple(catalogue.MODULES)
    for name in given:
        _refuse_name(name)
    return tuple(dict.fromkeys(given))


def _refuse_name(name: str) -> None:
    """Refuse a name that is no experiment; for a figure without its own experiment, name its replacement (EXP-29)."""
    known = ("all", *catalogue.MODULES)
    others = {figure.short: figure for figure in figures.load() if figure.short not in known}
    if name in others:
        raise UsageError(f"{name} is no experiment; {others[name].name} -> {others[name].stands}")
    validate.one_of("experiment", name, known)


def _refuse(options: argparse.Namespace) -> None:
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise UsageError(f"{package} is not installed: {install(package, _PACKAGES)}")
    if options.jobs is not None and options.scheduler is not None:
        raise UsageError("--jobs starts processes on this machine, --scheduler uses a cluster: give only one of them")
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UsageError(f"--data-dir {options.data_dir}: there is no such folder")
    pictures.library()
    writable_folder("--out", options.out)
    if options.device != "cpu":
        _refuse_device(options.device)


def _refuse_lost(folder: Path) -> None:
    """Refuse a folder with files of these names that no run wrote: beside theirs a run left its results."""
    whole = folder / "results.json"
    if whole.exists():
        writable_file("--out", whole, begins=results.BEGINS)
        return
    for path in sorted(path for name in ("results.csv", "*.svg", "*.png") for path in folder.glob(name)):
        raise UsageError(f"--out {path}: this file is of no run, and could be lost; name another folder")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from None


def _refuse_device(device: str) -> None:
    import torch  # noqa: PLC0415

    if not torch.cuda.is_available():
        raise UsageError(f"--device {device}: PyTorch finds no such device on this machine")


def _plan(experiment: Experiment, options: argparse.Namespace) -> _Plan:
    preset = catalogue.settings(experiment, options.preset)
    settings = dict(preset) if options.seeds is None else {**preset, "seeds": options.seeds}
    cells = tuple(experiment.cells(settings))
    data = _data(options)
    run = Run(experiment, options.preset, settings, preset["seeds"], _hashes(settings, cells, data), options.device)
    folder = options.out / experiment.name
    context = Context(None if data is None else data.resolve(), options.device)
    module = catalogue.MODULES[experiment.name]
    return _Plan(run, cells, Sweep(module, experiment.name, cells, run.hashes, context, folder / "cells"), folder)


def _data(options: argparse.Namespace) -> Path | None:
    named = os.environ.get("SECAGG_SPEC_DATA")
    return options.data_dir or (Path(named) if named else None)


def _hashes(settings: Data, cells: Sequence[Data], folder: Path | None) -> Mapping[str, Mapping[str, str]]:
    """Return the file hashes of each data set that the cells use; verify the data while reading it (EXP-01)."""
    used = dict.fromkeys(cell.get("data", settings["data"]) for cell in cells)
    return {name: sweeps.hashes(name, folder) for name in used if name != "none"}


# ------------------------------------------------------------------------------------------------------------ a run


def _reproduce(plan: _Plan, options: argparse.Namespace) -> int:
    print("\n".join(_announced(plan)), flush=True)
    progress = Progress(plan.run.experiment.name)
    try:
        swept = sweeps.run(
            plan.sweep, progress, jobs=options.jobs or -1, scheduler=options.scheduler, anew=options.anew
        )
    except KeyboardInterrupt:
        progress.end()
        print(_to_go_on(plan), file=sys.stderr)
        raise
    finally:
        progress.end()
    if swept.failures:
        print("\n".join(_failed(plan, swept)), file=sys.stderr)
        return 1
    content = results.document(plan.run, swept)
    files = results.write(plan.run, content, plan.folder)
    print("\n".join(_lines(content, files)), flush=True)
    return 0


def _announced(plan: _Plan) -> Iterator[str]:
    """Say what runs, with which settings, and how each statement will be decided, before anything runs (EXP-21)."""
    run = plan.run
    yield f"{run.experiment.name}: {run.experiment.title} ({'; '.join(run.experiment.figures)})"
    yield from _wrapped(run.experiment.about, "  ")
    yield from _wrapped(f"preset {run.preset}: {_settings(run.settings)}", "  ", 4)
    for name, files in run.hashes.items():
        yield f"  data {name}: {len(files)} {'file' if len(files) == 1 else 'files'}, with the hashes expected"
    if run.settings["seeds"] < max(run.asked, FEWEST):
        yield f"  nothing can be decided: seeds = {run.settings['seeds']}, and {max(run.asked, FEWEST)} are needed"
    yield "statements, each decided by the mean over the seeds and its 95 % interval:"
    for statement in run.experiment.statements(run.settings):
        yield from _stated(statement)
    if (plan.folder / "results.json").exists():
        yield f"the results in {plan.folder} will be replaced"


def _settings(settings: Data) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in settings.items())


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} {_shown(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _stated(statement: Statement) -> Iterator[str]:
    yield from _wrapped(f"{statement.claim}, {statement.name}: {statement.text}", "  ", 4)
    yield from _wrapped(f"{statement.measure} {statement.relation} {statement.bound:g}", "      ", 8)


def _wrapped(text: str, indent: str, further: int | None = None) -> list[str]:
    after = indent if further is None else " " * further
    return textwrap.wrap(
        " ".join(text.split()), _WIDTH, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False
    )


def _to_go_on(plan: _Plan) -> str:
    kept = f"{sweeps.stored(plan.sweep)} of {len(plan.cells)} cells are kept in {plan.sweep.folder}"
    return f"{plan.run.experiment.name}: {kept}; run the same command to continue"


# -------------------------------------------------------------------------------------------------------- after it


def _failed(plan: _Plan, swept: Swept) -> Iterator[str]:
    name, cells = plan.run.experiment.name, len(plan.cells)
    yield f"{name}: {len(swept.failures)} of {cells} cells ended with an error, so nothing is decided:"
    for failure in swept.failures[:_MOST_ERRORS]:
        yield from _wrapped(_blamed(failure), "  ", 4)
    if len(swept.failures) > _MOST_ERRORS:
        yield f"  and {len(swept.failures) - _MOST_ERRORS} more"
    yield f"{name}: {len(swept.results)} cells are kept in {plan.sweep.folder}; the same command runs only the others"


def _blamed(failure: Failure) -> str:
    return f"{failure.error}, in the cell {_settings(failure.cell)}"


def _lines(content: Data, files: Sequence[Path]) -> Iterator[str]:
    yield ""
    for statement in content["statements"]:
        yield from _verdict(statement)
    yield f"  {_times(content['seconds'])}"
    for one in content["aggregators"]:
        if one["protocol"] + one["shortcut"]:
            yield f"  {_rounds(one)}"
    yield from _exceptions(content["results"])
    yield "  written:"
    yield from (f"    {file}" for file in files)
    yield ""


def _exceptions(cells: Sequence[Data]) -> Iterator[str]:
    """Say how many cells diverged (EXP-09), and how many samples no user holds (EXP-03)."""
    diverged = [one["found"] for one in cells if one["found"].get("diverged")]
    if diverged:
        said = f"{len(diverged)} of {len(cells)} cells diverged, and count with their accuracy before that"
        yield from _wrapped(f"{said}; the first in round {diverged[0]['diverged']}: {diverged[0].get('why')}", "  ", 4)
    left_out = max((one["found"].get("left_out", 0) for one in cells), default=0)
    if left_out:
        yield f"  {left_out:,} training samples are held by no user"


def _times(seconds: Data) -> str:
    parts = f"processor time: training {seconds['training']:.1f} s, aggregation {seconds['aggregation']:.1f} s"
    return f"{parts}; elapsed time, summed over the cells: {seconds['cells']:.1f} s"


def _rounds(one: Data) -> str:
    moved = f"; {one['moved']:,} numbers clipped to a bound" if one["moved"] else ""
    shortcut = f"{one['shortcut']:,} by summing quantised updates"
    return f"{one['name']}: {one['protocol']:,} rounds by the whole protocol, {shortcut}{moved}"


def _verdict(statement: Data) -> Iterator[str]:
    found = statement["interval"]
    yield from _wrapped(
        f"{statement['verdict'].upper()}: {statement['claim']}, {statement['name']}: {statement['text']}", "  ", 4
    )
    numbers = ", ".join(f"{number:.4g}" for number in statement["numbers"])
    yield from _wrapped(f"{statement['measure']}: {numbers}", "      ", 8)
    interval = f"mean {found['mean']:.4g}, interval [{found['low']:.4g}, {found['high']:.4g}]"
    yield f"      {interval}; claimed {statement['relation']} {statement['bound']:g}"


def _summed(planned: Sequence[_Plan], codes: Sequence[int]) -> Iterator[str]:
    """Count the verdicts of each experiment's statements."""
    width = max(len(plan.run.experiment.name) for plan in planned)
    yield f"{'':{width}}  {'  '.join(VERDICTS)}"
    for plan, code in zip(planned, codes, strict=True):
        yield f"{plan.run.experiment.name:{width}}  {_counts(plan) if code == 0 else 'a cell ended with an error'}"


def _counts(plan: _Plan) -> str:
    found = [one["verdict"] for one in results.read(plan.folder / "results.json")["statements"]]
    return "  ".join(f"{found.count(verdict) or '-':>{len(verdict)}}" for verdict in VERDICTS)


def _listed() -> Iterator[str]:
    """List all figures and tables by paper."""
    known = figures.load()
    for paper, title in figures.PAPERS.items():
        yield title
        for figure in known:
            if figure.paper == paper:
                yield from _wrapped(figure.shows, f"  {figure.number:<12}", 14)
                yield from _wrapped(f"-> {figure.stands}", " " * 14, 17)
        yield ""
    yield "presets: " + ", ".join(PRESETS) + "; secagg-spec reproduce all runs every experiment"
