"""Opens what a command line names: a known implementation, or the command that starts an adapter."""

from __future__ import annotations

from collections.abc import Sequence

from secagg_spec.conformance.connection import START_SECONDS, ProcessConnection
from secagg_spec.conformance.expectations import ADAPTER
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.conformance.wire import UsageError


def connection(
    target: str | None, command: Sequence[str], timeout: float = 10.0, start_timeout: float = START_SECONDS
) -> tuple[str, ProcessConnection]:
    """Return the name and the connection of one implementation, not yet started.

    Parameters
    ----------
    target : str or None
        A known implementation, set up first where it needs an environment.
    command : sequence of str
        The command of an adapter; empty where a target is named.
    timeout, start_timeout : float
        Seconds for an answer, and for that to `hello`.

    Raises
    ------
    UsageError
        Both are given or none, or no target has this name.
    TargetAbsent
        The target cannot run on this machine.
    """
    if (target is None) == (not command):
        raise UsageError("name a --target, or give the command of an adapter after -- (not both)")
    if target is None:
        return ADAPTER, ProcessConnection(command, timeout, start_timeout)
    if target not in TARGETS:
        raise UsageError(f"--target {target}: the targets are {', '.join(TARGETS)}")
    opened = TARGETS[target].connect(timeout)
    opened.start_timeout = start_timeout
    return target, opened
