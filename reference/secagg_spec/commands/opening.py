"""Opens the adapters of a command line: known implementations, or the command that starts an adapter."""

from __future__ import annotations

from collections.abc import Sequence

from secagg_spec.conformance.adapter.connection import START_SECONDS, ProcessConnection
from secagg_spec.conformance.running.expectations import ADAPTER
from secagg_spec.conformance.targets import TARGETS, TargetAbsent
from secagg_spec.errors import UsageError


def connections(
    targets: Sequence[str], command: Sequence[str], timeout: float = 10.0, start_timeout: float = START_SECONDS
) -> list[tuple[str, ProcessConnection | str]]:
    """Return the name of each implementation with its connection, not yet started, or with the reason it is absent.

    Parameters
    ----------
    targets : sequence of str
        Known implementations. Each is set up first if it needs an environment; a repeated name counts once.
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
    unknown = [name for name in targets if name not in TARGETS]
    if unknown:
        raise UsageError(f"--target {unknown[0]}: the targets are {', '.join(TARGETS)}")
    return [(name, _connection(name, timeout, start_timeout)) for name in dict.fromkeys(targets)]


def _connection(target: str, timeout: float, start_timeout: float) -> ProcessConnection | str:
    try:
        opened = TARGETS[target].connect(timeout)
    except TargetAbsent as absent:
        return str(absent)
    opened.start_timeout = start_timeout
    return opened
