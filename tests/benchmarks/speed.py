"""Speeds as ratios within one run: ``make bench``. Nothing here is a test, since a machine's speed is not a property.

Each figure is the median of several runs that take turns, so that a slow moment of the machine meets both sides.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.conformance.connection import ProcessConnection
from secagg_spec.conformance.runner import Settings, run
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from secagg_spec.conformance.wire import Request
from secagg_spec.crypto.entropy import SeededSource, draw_elements

D, N, U, T = 10**6, 100, 70, 50
SMALL_PRIME = 32749
RUNS = 5

FEDML = """
import importlib.util, json, sys, time
spec = importlib.util.spec_from_file_location("adapter", sys.argv[1])
adapter = importlib.util.module_from_spec(spec); spec.loader.exec_module(adapter)
import numpy as np
d, N, U, T, p = map(int, sys.argv[2:7])
mask = np.random.randint(p, size=(d, 1))
for line in sys.stdin:
    start = time.perf_counter()
    adapter.lsa.mask_encoding(d, N, U, T, p, mask)
    print(json.dumps(time.perf_counter() - start), flush=True)
"""


def main() -> None:
    """Print all figures."""
    encoding()
    echo()
    cases()
    default_run()


def encoding() -> None:
    """Encode one mask of a million elements: ours with the default prime, FedML's with a prime that it can handle."""
    field = PrimeField()
    code = MaskCode(field, N, U, T)
    mask = draw_elements(SeededSource(b"bench", "mask"), field, (D,))
    noise = draw_elements(SeededSource(b"bench", "noise"), field, (T, code.share_length(D)))
    print(f"encode one mask, d = {D:,}, (N, U, T) = ({N}, {U}, {T})")
    ours, theirs = in_turn(lambda: code.encode(mask, noise), _fedml_encoder())
    print(f"  reference, q = 2**32 - 5: {statistics.median(ours):.3f} s")
    if theirs:
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        print(f"  FedML 0.9.6, q = {SMALL_PRIME}:  {statistics.median(theirs):.3f} s, {ratio:.1f} times the reference")
    print(f"  memory above inputs and output: {_extra_masks(code, mask, noise):.1f} masks")


def echo() -> None:
    """Count raw round trips through the pipe, beside those of a loop that writes, reads and does nothing else."""
    print(f"lines through a pipe to a program that repeats them: {_bare_rate():,.0f} a second")
    for name in ("reference", "node"):
        try:
            connection = TARGETS[name].connect(10.0)
        except TargetAbsent as absent:
            print(f"echo, {name}: {absent}")
            continue
        rates = [_echo_rate(connection) for _ in range(RUNS)]
        connection.close()
        print(f"raw echo calls through the pipe, {name}: {statistics.median(rates):,.0f} a second")


def cases() -> None:
    """Count cases of drawn parameters: generation, the pipe, and the comparison together."""
    for name in ("field.add/exact", "field.add/types", "mds.encode/exact", "secagg.user/types"):
        connection = TARGETS["reference"].connect(10.0)
        _, outcomes = run(connection, Settings(cases=500, pattern=name))
        connection.close()
        [outcome] = [outcome for outcome in outcomes if outcome.check.id == name]
        print(f"cases of {name}, drawn, asked and compared: {outcome.cases / outcome.seconds:,.0f} a second")


def default_run() -> None:
    """Time the run of an implementation that declares everything, with two processes."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "secagg_spec.cli", "conform", "--jobs", "2", "--target", "reference"]
        subprocess.run([*command, "--repro", folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"conform --target reference --jobs 2, everything: {time.perf_counter() - start:.0f} s")


def _bare_rate(calls: int = 3000) -> float:
    program = "import os\nwhile line := os.read(0, 65536): os.write(1, line)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = Request("echo", {"data": 1}).line(1).encode()
        start = time.perf_counter()
        for _ in range(calls):
            os.write(process.stdin.fileno(), line)
            os.read(process.stdout.fileno(), 65536)
        rate = calls / (time.perf_counter() - start)
        process.stdin.close()
    return rate


def _echo_rate(connection: ProcessConnection, calls: int = 3000) -> float:
    request = Request("echo", {"data": 1})
    connection.ask(request)
    start = time.perf_counter()
    for _ in range(calls):
        connection.ask(request)
    return calls / (time.perf_counter() - start)


def in_turn(first: Callable[[], Any], second: Callable[[], float] | None) -> tuple[list[float], list[float]]:
    """Return the seconds of two things that take turns."""
    ours, theirs = [], []
    first()
    for _ in range(RUNS):
        start = time.perf_counter()
        first()
        ours.append(time.perf_counter() - start)
        if second:
            theirs.append(second())
    return ours, theirs


def _fedml_encoder() -> Callable[[], float] | None:
    """Return a function that times one encoding in FedML's own environment."""
    try:
        python, adapter = TARGETS["fedml"].command()[:2]
    except TargetAbsent as absent:
        print(f"  FedML: {absent}")
        return None
    arguments = [str(number) for number in (D, N, U, T, SMALL_PRIME)]
    process = subprocess.Popen(
        [python, "-c", FEDML, str(Path(adapter)), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def encode() -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return float(json.loads(process.stdout.readline()))

    encode()
    return encode


def _extra_masks(code: MaskCode, mask: Any, noise: Any) -> float:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    shares = code.encode(mask, noise)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(shares, np.ndarray)
    return float(peak - before - shares.nbytes) / float(mask.nbytes)


if __name__ == "__main__":
    main()
