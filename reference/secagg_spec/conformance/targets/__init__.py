"""The implementations that the kit knows: the reference, the Node twin, and released software behind adapters."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.targets import environments

_HERE = Path(__file__).parent
Command = Callable[[], list[str]]


class TargetAbsent(Exception):
    """The target cannot run on this machine; the message names what is missing."""


@dataclass(frozen=True)
class Target:
    """A named implementation, and the command that starts its adapter."""

    name: str
    about: str
    command: Command
    expectations: Path | None = None
    seconds: float = 0.0
    """The least time that an answer is waited for: some released software is slow, above all on a busy machine."""

    @property
    def environment(self) -> environments.Environment | None:
        """The environment of released software; None for what this project wrote."""
        return self.command.environment if isinstance(self.command, Apart) else None

    def connect(self, timeout: float) -> ProcessConnection:
        """Return a connection; first set up the target's environment if it needs one.

        An answer is waited for as many seconds as `timeout` says, and no fewer than the target needs.

        Raises
        ------
        TargetAbsent
            This machine lacks something that the target needs.
        """
        return ProcessConnection(self.command(), max(timeout, self.seconds))


def _reference() -> list[str]:
    return [sys.executable, "-m", "secagg_spec.conformance.targets.reference"]


def _node() -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise TargetAbsent("node is not installed")
    return [node, str(_HERE / "node" / "adapter.js")]


@dataclass(frozen=True)
class Apart:
    """The command that starts an adapter, a file below this folder, in its own environment."""

    program: str
    environment: environments.Environment
    flags: tuple[str, ...] = ()

    def __call__(self) -> list[str]:
        """Return the command; first set up the environment."""
        try:
            python = environments.ready(self.environment)
        except environments.SetupFailed as failed:
            raise TargetAbsent(str(failed)) from None
        return [str(python), str(_HERE / self.program), *self.flags]


def _fedml(program: str, *flags: str) -> Command:
    return Apart(f"fedml/{program}.py", environments.FEDML, flags)


def _flower(*flags: str, version: str = environments.FLOWER_NOW) -> Command:
    return Apart("flower/adapter.py", environments.FLOWER[version], flags)


def _fedbiomed(*flags: str) -> Command:
    return Apart("fedbiomed/adapter.py", environments.FEDBIOMED, flags)


_FEDML_EXPECTED, _FLOWER_EXPECTED, _OPENFL_EXPECTED, _DECLEARN_EXPECTED, _FEDBIOMED_EXPECTED = (
    _HERE / name / "expectations.toml" for name in ("fedml", "flower", "openfl", "declearn", "fedbiomed")
)

_FLOWER_SECONDS = 60.0
"""Flower shares a secret among 255 users in 5 s on a quiet machine."""
_OPENFL_SECONDS = 60.0
"""On a busy machine OpenFL took more than 10 s for the same."""

TARGETS = {
    target.name: target
    for target in (
        Target("reference", "the reference of this project", _reference),
        Target("node", "an independent implementation in JavaScript, written from the text alone", _node),
        Target(
            "fedml",
            "FedML 0.9.6, fedml.core.mpc.lightsecagg, in the configuration that its release documents",
            _fedml("adapter"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-any",
            "the same functions, with everything that they accept although no document says so",
            _fedml("adapter", "--any"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-managers",
            "FedML 0.9.6, the managers of fedml.cross_silo.lightsecagg, message by message in one process",
            _fedml("managers"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-managers-twice",
            "the same managers, with clients that say twice that they are online",
            _fedml("managers", "--twice"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-secagg",
            "FedML 0.9.6, fedml.core.mpc.secagg, function by function",
            _fedml("secagg"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-secagg-large",
            "its secret sharing with 24 to 40 users and thresholds of 12 and more",
            _fedml("secagg", "--large"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-secagg-lcc",
            "its Lagrange code, LCC_encoding and LCC_decoding",
            _fedml("secagg", "--lcc"),
            _FEDML_EXPECTED,
        ),
        Target(
            "fedml-clients",
            "processes that begin with fedml.init, as its clients do, and share masks by fedml.core.mpc.lightsecagg",
            _fedml("adapter", "--init"),
            _FEDML_EXPECTED,
        ),
        Target(
            "flower",
            "Flower 1.41.0, SecAggPlusWorkflow and secaggplus_mod, with parameters that its release documents",
            _flower(),
            _FLOWER_EXPECTED,
            _FLOWER_SECONDS,
        ),
        Target(
            "flower-any",
            "the same workflow and mod, with numbers of shares that they accept although no document names them",
            _flower("--any"),
            _FLOWER_EXPECTED,
            _FLOWER_SECONDS,
        ),
        Target(
            "flower-binary32",
            "the helper that quantises, given arrays of binary32",
            _flower("--binary32"),
            _FLOWER_EXPECTED,
            _FLOWER_SECONDS,
        ),
        Target(
            "openfl",
            "OpenFL 1.9, SecAggBootstrapping, SecAggSetup and SecureWeightedAverage, and the helpers below them",
            Apart("openfl/adapter.py", environments.OPENFL),
            _OPENFL_EXPECTED,
            _OPENFL_SECONDS,
        ),
        Target(
            "declearn",
            "declearn 2.9.1, declearn.secagg.masking with its X3DH setup, its Shamir sharing and X3DHManager",
            Apart("declearn/adapter.py", environments.DECLEARN),
            _DECLEARN_EXPECTED,
        ),
        Target(
            "fedbiomed",
            "Fed-BioMed 6.4.1, the masks of LOM with SecaggRound and LomSecureAggregation, configured as released",
            _fedbiomed(),
            _FEDBIOMED_EXPECTED,
        ),
        Target(
            "fedbiomed-unvalidated",
            "the same with secagg_insecure_validation switched off",
            _fedbiomed("--unvalidated"),
            _FEDBIOMED_EXPECTED,
        ),
        *(
            Target(
                f"flower@{version}",
                f"Flower {version}, behind the same adapter as flower",
                _flower(version=version),
                _FLOWER_EXPECTED,
                _FLOWER_SECONDS,
            )
            for version in environments.FLOWER
            if version != environments.FLOWER_NOW
        ),
    )
}
