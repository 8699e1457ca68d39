"""The implementations that the kit knows: the reference, the Node twin, and released software behind our adapters."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from secagg_spec.conformance.connection import ProcessConnection
from secagg_spec.conformance.targets import environments

_HERE = Path(__file__).parent


class TargetAbsent(Exception):
    """The target cannot run on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Target:
    """A named implementation and how its adapter is started."""

    name: str
    about: str
    command: Callable[[], list[str]]
    expectations: Path | None = None

    def connect(self, timeout: float) -> ProcessConnection:
        """Return a connection; set up the target's environment first where it needs one.

        Raises
        ------
        TargetAbsent
            Something that the target needs is not on this machine.
        """
        return ProcessConnection(self.command(), timeout)


def _reference() -> list[str]:
    return [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]


def _node() -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise TargetAbsent("node is not installed")
    return [node, str(_HERE / "node" / "adapter.js")]


def _fedml(*flags: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        try:
            python = environments.ready("fedml-0.9.6", environments.FEDML)
        except environments.SetupFailed as failed:
            raise TargetAbsent(str(failed)) from None
        return [str(python), str(_HERE / "fedml" / "adapter.py"), *flags]

    return command


_FEDML_EXPECTED = _HERE / "fedml" / "expectations.toml"

TARGETS = {
    target.name: target
    for target in (
        Target("reference", "the reference of this project", _reference),
        Target("node", "an independent implementation in JavaScript, written from the text alone", _node),
        Target(
            "fedml",
            "FedML 0.9.6, fedml.core.mpc.lightsecagg, in the configuration that its release documents",
            _fedml(),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-any",
            "the same functions, with everything that they accept although no document says so",
            _fedml("--any"),
            _FEDML_EXPECTED,
        ),
    )
}
