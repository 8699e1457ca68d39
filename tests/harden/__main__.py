"""Tries to break the project, and prints one table: ``python -m tests.harden [--inputs N] [--kills N] [--only NAME]``.

The exit code is 1 when anything unexpected came out; each defect is printed with the shortest input that shows it.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random

from secagg_spec.conformance.adapter.values import count
from tests.harden import builds, killed, platforms, public, supply
from tests.harden.engine import Tally, tried
from tests.harden.surfaces import SURFACES


@dataclass
class Row:
    """A line of the table: what was tried, how often, and what came of it."""

    name: str
    tried: str
    came: str
    defects: list[str] = field(default_factory=list)


COSTS = {"command line": 300, "report": 15, "results of experiments": 5, "figures": 8}
"""How many times as long as others an input of a surface takes, in parts of a thousandth of a second; it gets fewer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try everything, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.harden", description=__doc__)
    parser.add_argument(
        "--inputs", type=partial(count, what="inputs"), default=1_000_000, help="how many inputs, over all surfaces"
    )
    parser.add_argument(
        "--kills", type=partial(count, what="kills"), default=200, help="how many kills, over all commands"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only parts whose name has this")
    options = parser.parse_args(arguments)
    chosen = [(name, act) for name, act in parts(options.inputs, options.kills, options.seed) if options.only in name]
    if not chosen:
        known = ", ".join(name for name, _ in parts(options.inputs, options.kills, options.seed))
        parser.error(f"--only {options.only}: no part has this in its name; they are {known}")
    failed = False
    print(f"{'what':34}{'tried':>12}  what came of it", flush=True)
    for _, act in chosen:
        began = time.monotonic()
        row = act()
        failed |= bool(row.defects)
        came = f"{len(row.defects)} UNEXPECTED" if row.defects else row.came
        print(f"{row.name:34}{row.tried:>12}  {came} ({time.monotonic() - began:.0f} s)", flush=True)
        for defect in row.defects:
            print(f"    {defect}", flush=True)
    return int(failed)


def parts(inputs: int, kills: int, seed: int) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield the parts, each with what makes its row."""
    shares = {name: 1 / COSTS.get(name, 1) for name in SURFACES}
    total = sum(shares.values()) + 2
    for name in SURFACES:
        count = round(inputs * shares[name] / total)
        yield name, lambda name=name, count=count: of_tally(searched(name, count, seed))  # type: ignore[misc]
    each = round(inputs / total)
    yield "public functions", lambda: of_tally(public.tried(each, seed, public.right_calls()))
    yield (
        "methods, classes",
        lambda: of_tally(public.tried(each, seed, public.right_calls_of_methods(), "methods, classes")),
    )
    yield "objects of another class", lambda: of_tally(public.calls_of_another_class())
    share = -(-kills // len(killed.JOBS))
    for job in killed.JOBS:
        yield f"kill -9: {job.name}", lambda job=job: of_kills(job, share, seed)  # type: ignore[misc]
    for name, find in (
        ("two builds, the same bytes", builds.same_bytes),
        ("the wheel alone", builds.alone),
        ("settings of the process", platforms.settings),
        ("oldest and newest numpy", platforms.numpys),
        ("licences, build/sbom.json", supply.licences),
        ("Python 3.12 to 3.14", platforms.later_pythons),
        ("disk, pipes, paths", platforms.troubles),
    ):
        yield name, lambda name=name, find=find: Row(name, "once", "nothing else", list(find()))  # type: ignore[misc]


def searched(name: str, inputs: int, seed: int) -> Tally:
    """Return what came of inputs on a surface: guided by coverage where atheris is installed, else only drawn."""
    if find_spec("atheris") is None:
        return tried(SURFACES[name], inputs, seed)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tally"
        words = ["-m", "tests.harden.guided", name, "--inputs", str(inputs), "--seed", str(seed), "--out", str(out)]
        done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
        if not out.exists():
            tally = Tally(name)
            tally.keep("the process ended", done.stderr[-500:].decode(errors="replace"), b"")
            return tally
        found = pickle.loads(out.read_bytes())
        assert isinstance(found, Tally)
        return found


def of_tally(tally: Tally) -> Row:
    """Return the row of a surface."""
    came = f"{tally.read} read, {tally.refused} refused with a sentence, at most {tally.slowest:.2f} s for one"
    defects = [f"{where}: {said}; {data[:300]!r}" for where, (said, data) in tally.defects.items()]
    return Row(tally.surface, f"{tally.tried}", came, defects)


def of_kills(job: killed.Job, kills: int, seed: int) -> Row:
    """Return the row of a command that is killed."""
    found = killed.killed(job, kills, Random(seed))
    came = f"files whole or absent, reruns end as ever; {found.left} hidden files left"
    return Row(f"kill -9: {job.name}", str(found.kills), came, found.defects)


if __name__ == "__main__":
    sys.exit(main())
