"""The result of an experiment: a JSON document, rows of a CSV file, and pictures; its verdicts can be recomputed.

Source: spec/experiments.md, sections 6 and 7 (EXP-27, EXP-28); spec/experiment.schema.json.
"""

from __future__ import annotations

import csv
import io
import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from secagg_spec import __version__, documents, resources, schemas
from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import pictures
from secagg_spec.experiments.experiment import Data, Experiment, Judged, Result, Statement, judged
from secagg_spec.experiments.sweeps import Swept, write_whole

SCHEMA = "secagg-spec-experiment/1"
BEGINS = '{\n "schema": "secagg-spec-experiment/'
"""How a file of results begins."""
_CLOSE = 1e-12
_PACKAGES = ("numpy", "torch", "scikit-learn", "scipy")


@dataclass(frozen=True)
class Run:
    """One run of an experiment: its preset, its settings, and the seeds that the preset asks for."""

    experiment: Experiment
    preset: str
    settings: Data
    asked: int
    hashes: Mapping[str, Mapping[str, str]]
    device: str = "cpu"


def document(run: Run, swept: Swept) -> dict[str, Any]:
    """Return the whole result of a run without failed cells, in the form of `spec/experiment.schema.json` (EXP-27)."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "experiment": run.experiment.name,
        "title": run.experiment.title,
        "figures": list(run.experiment.figures),
        "preset": run.preset,
        "settings": dict(run.settings),
        "asked": run.asked,
        "data": {name: dict(files) for name, files in run.hashes.items()},
        "environment": {"device": run.device, **_environment()},
        "statements": [_statement(one) for one in run.experiment.judge(run.settings, swept.results, run.asked)],
        "seconds": {**_seconds(swept.results), "cells": sum(swept.seconds)},
        "aggregators": aggregators(swept.results),
        "results": [
            {"cell": one.cell, "found": one.found, "seconds": seconds}
            for one, seconds in zip(swept.results, swept.seconds, strict=True)
        ],
    }


def _statement(one: Judged) -> dict[str, Any]:
    return {
        **asdict(one.statement),
        "numbers": list(one.numbers),
        "interval": asdict(one.interval),
        "verdict": one.verdict,
    }


def _environment() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _seconds(results: Sequence[Result]) -> dict[str, float]:
    """Return the seconds of training and of aggregation of all cells together."""
    times = [seconds for one in results for seconds in _members(one.found, "seconds") if isinstance(seconds, Mapping)]
    return {name: float(sum(seconds.get(name, 0.0) for seconds in times)) for name in ("training", "aggregation")}


def aggregators(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return for each aggregator its rounds by the whole protocol and by the shortcut, and what it clipped (EXP-15)."""
    found: dict[str, dict[str, Any]] = {}
    for one in results:
        for account in _members(one.found, "aggregator"):
            if isinstance(account, Mapping):
                total = found.setdefault(
                    account["name"], {"name": account["name"], "protocol": 0, "shortcut": 0, "moved": 0}
                )
                for name in ("protocol", "shortcut", "moved"):
                    total[name] += account.get(name, 0)
    return list(found.values())


def _members(found: object, name: str) -> Iterator[Any]:
    """Yield the members of this name, anywhere in plain data."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            if key == name:
                yield value
            else:
                yield from _members(value, name)
    elif isinstance(found, list) and found and isinstance(found[0], Mapping | list):
        for value in found:
            yield from _members(value, name)


# --------------------------------------------------------------------------------------------- reading, judging again


def read(path: Path) -> dict[str, Any]:
    """Return the document of a file whose verdicts follow from its numbers.

    Raises
    ------
    ParameterError
        The file holds no such document, or a verdict does not follow from its numbers (EXP-28).
    """
    content = load(path)
    check(content)
    return content


def load(path: Path) -> dict[str, Any]:
    """Return the document of a file, whose verdicts may not follow from its numbers.

    Raises
    ------
    ParameterError
        The file cannot be read, or breaks `spec/experiment.schema.json`.
    """
    path = validate.path_of("results", path)
    try:
        content = documents.read_json(path)
    except OSError as error:
        raise ParameterError("results", str(path), f"a file of results: {error.strerror}") from None
    except ValueError as error:
        raise ParameterError("results", str(path), f"a file of results: it {error}") from None
    for where, fault in schemas.faults(content, schemas.load(resources.root("spec") / "experiment.schema.json")):
        place = "".join(f"{part}: " for part in where)
        raise ParameterError(f"results: {path}", "another content", f"as in experiment.schema.json; {place}{fault}")
    return dict(content)


def check(content: Data) -> None:
    """Refuse a document with a verdict or an interval that does not follow from its numbers (EXP-28)."""
    for stated, again in zip(content["statements"], judge_again(content), strict=True):
        if not follows(stated, again):
            member = "interval" if stated["verdict"] == again.verdict else "verdict"
            allowed = f"what its numbers give, {again.verdict} with {again.interval}"
            raise ParameterError(f"the {member} of {stated['name']}", stated[member], allowed)


def follows(stated: Data, again: Judged) -> bool:
    """Return whether a stored verdict and interval equal the recomputed ones, except for the last bits.

    Versions of SciPy may differ in the last bits of the quantile.
    """
    interval, reached = stated["interval"], asdict(again.interval)
    ends = all(math.isclose(interval[name], reached[name], rel_tol=_CLOSE, abs_tol=_CLOSE) for name in reached)
    return ends and stated["verdict"] == again.verdict


def judge_again(content: Data) -> tuple[Judged, ...]:
    """Return the statements of a document, judged again on its stored numbers (EXP-28)."""
    return tuple(
        judged(
            Statement(**{name: stated[name] for name in Statement.__dataclass_fields__}),
            stated["numbers"],
            int(content["asked"]),
        )
        for stated in content["statements"]
    )


def results_of(content: Data) -> tuple[Result, ...]:
    """Return the results of the cells of a document."""
    return tuple(Result(one["cell"], one["found"]) for one in content["results"])


# ------------------------------------------------------------------------------------------------------------ files


def write(run: Run, content: Data, folder: Path) -> tuple[Path, ...]:
    """Write results.json, results.csv and the pictures into a folder; return the files.

    Raises
    ------
    ParameterError
        A file cannot be written.
    """
    results = results_of(content)
    paths = folder / "results.json", folder / "results.csv"
    write_whole(paths[0], json.dumps(content, indent=1, allow_nan=False) + "\n")
    write_whole(paths[1], table(run.experiment.rows(run.settings, results)))
    try:
        drawn = pictures.write(lambda plt: run.experiment.draw(plt, run.settings, results), folder)
    except OSError as error:
        raise ParameterError("pictures", str(folder), f"writable: {error.strerror}") from None
    return (*paths, *drawn)


def table(rows: Iterator[Mapping[str, Any]]) -> str:
    """Return rows as CSV: columns in order of appearance, empty cells where a row lacks a member."""
    kept = list(rows)
    columns = list(dict.fromkeys(name for row in kept for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    return text.getvalue()
