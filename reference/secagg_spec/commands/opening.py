"""Opens the adapters of a command line: known implementations, or the command that starts an adapter."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from itertools import chain

from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.limits import START_SECONDS
from secagg_spec.conformance.running.expectations import ADAPTER
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from secagg_spec.errors import UsageError
from secagg_spec.terminal import did_you_mean


def connections(
    targets: Sequence[str], command: Sequence[str], timeout: float = 10.0, start_timeout: float = START_SECONDS
) -> list[tuple[str, ProcessConnection | str]]:
    """Return the name of each implementation with its connection, not yet started, or with the reason it is absent.

    Parameters
    ----------
    targets : sequence of str
        Known implementations, or patterns such as ``flower*``. Each is set up first if it needs an environment; one
        that is named twice counts once.
    command : sequence of str
        The command of an adapter; empty if targets are named.
    timeout, start_timeout : float
        Seconds for an answer, and for the answer to `hello`.

    Raises
    ------
    UsageError
        Both are given or neither, or a target is unknown.
    """
    if bool(targets) == bool(command):
        raise UsageError("name a --target, or give the command of an adapter after -- (not both)")
    if command:
        return [(ADAPTER, ProcessConnection(command, timeout, start_timeout))]
    return [(name, _connection(name, timeout, start_timeout)) for name in names(targets)]


def names(targets: Sequence[str]) -> list[str]:
    """Return the names of known implementations that names and patterns choose, each once.

    Raises
    ------
    UsageError
        One chooses none.
    """
    named = {pattern: fnmatch.filter(TARGETS, pattern) for pattern in targets}
    for pattern, found in named.items():
        if not found:
            raise UsageError(
                f"--target {pattern}: {did_you_mean(pattern, TARGETS)}the targets are {', '.join(TARGETS)}"
            )
    return list(dict.fromkeys(chain(*named.values())))


def _connection(target: str, timeout: float, start_timeout: float) -> ProcessConnection | str:
    try:
        opened = TARGETS[target].connect(timeout)
    except TargetAbsent as absent:
        return str(absent)
    opened.start_timeout = start_timeout
    return opened
