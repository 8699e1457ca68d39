"""Runs benchmarks, prints what they give, and stores it: ``python -m tests.benchmarks [NAME …] [--json FILE]``.

A name is that of a module or of one benchmark. Only a run of all is stored, so that all figures of a file are of one
machine in one state.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import stored
from tests.benchmarks.catalogue import UnknownName, chosen
from tests.benchmarks.record import Absent, Benchmark, met, run
from tests.benchmarks.words import cost, found, ratio, wanted

from secagg_spec.conformance.adapter.values import writable_file, writable_folder
from secagg_spec.errors import UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 when a benchmark could not run, or 2 when it is asked for wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", help="a module or a benchmark; all when left out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the records; for a run of all")
    parser.add_argument("--list", action="store_true", help="list the benchmarks, and run none")
    options = parser.parse_args(arguments)
    try:
        benchmarks = chosen(options.name)
    except UnknownName as error:
        return _refused(str(error))
    if options.json and options.name:
        return _refused("--json stores all benchmarks of one run together: leave out the names")
    if options.json and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        return _refused("--json stores figures of BLAS on one thread: run make bench")
    try:
        if options.json:
            writable_folder("--json", options.json.parent)
        if options.json and options.json.exists():
            writable_file("--json", options.json, begins=f'{{\n "schema": "{stored.VERSION}"')
    except UsageError as error:
        return _refused(str(error))
    if options.list:
        print("\n".join(one.id for one in benchmarks))
        return 0
    records = [record for one in benchmarks if (record := _told(one))]
    if len(records) < len(benchmarks):
        print(f"{len(benchmarks) - len(records)} could not run{'; nothing is stored' if options.json else ''}")
        return 1
    if options.json:
        stored.store(stored.document(records), options.json)
    return 0


def _refused(words: str) -> int:
    print(f"benchmarks: {words}", file=sys.stderr)
    return 2


def _told(benchmark: Benchmark) -> Mapping[str, Any] | None:
    """Run a benchmark and print its line; None when it cannot run here."""
    try:
        record = run(benchmark)
    except Absent as absent:
        print(f"{benchmark.id}: cannot run: {absent}", flush=True)
        return None
    print(line(record), flush=True)
    return record


def line(record: Mapping[str, Any]) -> str:
    """Return one line on a record: its id, its ratio, what both sides cost, and whether the aim is met."""
    costs = " / ".join(cost(record, side) for side in ("what", "beside"))
    verdict = f"  aim {wanted(record)}: {found(record)}" if met(record) is not None else ""
    return f"{record['id']:32} {ratio(record):>24}  {costs:20}{verdict}"


if __name__ == "__main__":
    sys.exit(main())
