"""Released software as a side of a benchmark: a program in its own environment, which times itself."""

from __future__ import annotations

import json
import subprocess

from tests.benchmarks.record import Absent

from secagg_spec.conformance.targets import TARGETS, TargetAbsent

PREAMBLE = """
import json, sys, time

def serve(actions):
    for line in sys.stdin:
        start = time.process_time()
        actions[line.strip()]()
        print(json.dumps(time.process_time() - start), flush=True)
"""
"""What each program begins with; it ends with `serve`, given its actions by name."""


class Program:
    """A program that runs in the environment of a target, until it is closed.

    Parameters
    ----------
    target : str
        A target of the kit that has an environment of its own.
    source : str
        Python that ends with a call of `serve`.
    sizes : int
        The arguments of the program; the path of the target's adapter comes before them.

    Raises
    ------
    Absent
        The target cannot run here.
    """

    def __init__(self, target: str, source: str, *sizes: int) -> None:
        try:
            python, adapter = TARGETS[target].command()[:2]
        except TargetAbsent as absent:
            raise Absent(f"{target}: {absent}") from None
        self._target = target
        command = [python, "-c", PREAMBLE + source, adapter, *map(str, sizes)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, action: str) -> float:
        """Let the program do something once, and return the seconds of the processor that it took.

        Raises
        ------
        RuntimeError
            The program ended; what it said stands on standard error.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(action + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program of {self._target} ended with {self._process.wait()} at {action!r}")
        return float(json.loads(line))

    def close(self) -> None:
        """End the program."""
        with self._process as process:
            process.kill()
