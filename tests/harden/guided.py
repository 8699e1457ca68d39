"""Inputs that a fuzzer guided by coverage looks for (atheris), one surface in one process.

``python -m tests.harden.guided SURFACE --inputs 100000 --out FILE``
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import atheris

READERS = [
    *(
        f"secagg_spec.{layer}"
        for layer in ("arithmetic", "crypto", "protocols", "selection", "events", "history", "schemas")
    ),
    *(
        f"secagg_spec.{module}"
        for module in ("learning.digits", "experiments.results", "experiments.figures", "commands")
    ),
    *(f"secagg_spec.conformance.{module}" for module in ("adapter", "running.repros", "running.expectations", "sdk")),
    *(
        f"secagg_spec.conformance.{module}"
        for module in ("vectors.store", "reports.document", "targets.reference.messages")
    ),
]
"""The modules whose branches guide: those that read. Instrumenting all takes a minute for each surface."""
with atheris.instrument_imports(include=READERS):
    from tests.harden.engine import MOST, Tally
    from tests.harden.spoil import spoiled
    from tests.harden.surfaces import SURFACES


def main(arguments: Sequence[str] | None = None) -> None:
    """Try inputs until there are enough of them, write the tally, and end the process: the fuzzer never returns."""
    parser = argparse.ArgumentParser(prog="python -m tests.harden.guided", description=__doc__)
    parser.add_argument("surface", choices=list(SURFACES))
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="where the tally is written")
    options = parser.parse_args(arguments)
    surface = SURFACES[options.surface]
    seeds, tally = surface.seeds(), Tally(surface.name)
    corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
    for at, seed in enumerate(seeds):
        (corpus / str(at)).write_bytes(seed)

    def one(data: bytes) -> None:
        tally.take(partial(surface.read, data), data, surface.errors)
        if tally.tried >= options.inputs:
            options.out.write_bytes(pickle.dumps(tally))
            sys.stdout.flush()
            os._exit(0)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        return spoiled(data, seeds, random)[:most] if random.random() < 0.5 else bytes(atheris.Mutate(data, most))

    longest = max(map(len, seeds)) + MOST
    atheris.Setup(
        ["harden", f"-seed={options.seed}", f"-max_len={longest}", "-verbosity=0", "-rss_limit_mb=4096", str(corpus)],
        one,
        custom_mutator=mutated,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
